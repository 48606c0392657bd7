// SPDX-License-Identifier: GPL-2.0

//! A key that is a stack of the record, as it lies there: whole words, gone through in steps.
//!
//! C counterpart: `add_to_key()`, which copies it.
//!
//! Context: any, NMI included.

use crate::{
    sync::{
        Atomic,
        Relaxed, //
    },
    tracing_map::{
        Factors,
        Pieces, //
    }, //
};

use super::{
    super::{
        Op,
        Program, //
    },
    location,
    pieces::stack_at,
    text::WORD, //
};

/// How many words are gone through between two looks at whether there are more.
const STEP: usize = 4;

/// The key of one hit, without the zeros at its end.
pub struct StackKey<'r>(&'r [u8]);

impl Program {
    /// Whether a stack of the record is all that there is to the key.
    pub fn key_is_stack_field(&self) -> bool {
        matches!(self.keys(), [key] if matches!(key.field.op, Op::StackField { .. }))
    }

    /// The key of a hit of such a program.
    #[inline(always)]
    pub fn stack_key<'r>(&self, record: &'r [u8]) -> StackKey<'r> {
        let mut frames: &[u8] = match self.keys().first().map(|key| (key.field.op, key.words())) {
            Some((Op::StackField { offset }, room)) => {
                stack_at(record, location(record, offset).0, room)
            }
            _ => &[],
        };

        while let Some((rest, [0, 0, 0, 0, 0, 0, 0, 0])) = frames.split_last_chunk() {
            frames = rest;
        }
        StackKey(frames)
    }
}

/// The word that a chunk of as many bytes is.
#[inline(always)]
fn word(chunk: &[u8]) -> u64 {
    u64::from_ne_bytes(chunk.try_into().unwrap_or_default())
}

/// Calls `each` for each word of `bytes` and what is in its place in `with`, which is as long.
#[inline(always)]
fn in_steps<T>(bytes: &[u8], with: &[T], mut each: impl FnMut(u64, &T)) {
    let (mut steps, mut with) = (
        bytes.chunks_exact(STEP * WORD), //
        with.chunks_exact(STEP),
    );

    for (step, with) in steps.by_ref().zip(with.by_ref()) {
        for (chunk, with) in step.chunks_exact(WORD).zip(with) {
            each(word(chunk), with);
        }
    }
    for (chunk, with) in steps.remainder().chunks_exact(WORD).zip(with.remainder()) {
        each(word(chunk), with);
    }
}

impl Pieces for StackKey<'_> {
    #[inline(always)]
    fn each(&self, mut found: impl FnMut(usize, u64)) {
        for (at, chunk) in self.0.chunks_exact(WORD).enumerate() {
            found(at, word(chunk));
        }
    }

    #[inline(always)]
    fn sum(&self, factors: &Factors) -> (u64, usize) {
        let len = self.0.len() / WORD;
        let mut sum: u64 = 0;
        // As many, so that there is one number to count to.
        let factors = factors.get(..len).unwrap_or(&[]);

        in_steps(self.0, factors, |word, factor| {
            sum = sum.wrapping_add(word.wrapping_mul(*factor));
        });
        (sum, len)
    }

    #[inline(always)]
    fn is_in(&self, held: &[Atomic<u64>]) -> bool {
        self.is_at(held, 0)
    }

    #[inline(always)]
    fn is_at(&self, words: &[Atomic<u64>], at: usize) -> bool {
        let mut differ = 0;
        // OVERFLOW: below the number of words.
        let Some(held) = words.get(at..at.wrapping_add(self.0.len() / WORD)) else {
            return false;
        };

        in_steps(self.0, held, |wanted, held| {
            // ORDERING: the key of an element that was found does not change.
            differ |= held.load(Relaxed) ^ wanted;
        });
        differ == 0
    }
}
