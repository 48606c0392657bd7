// SPDX-License-Identifier: GPL-2.0

//! Keys with strings of the record, and numbers at hand besides.
//!
//! C counterpart: `add_to_key()`, which copies them and clears the rest.
//!
//! Whatever such a column is, it comes to some whole words of the record and one word behind them: so one loop
//! does for all, where [`super::KeyPieces`] has to tell them apart at each step.
//!
//! Context: any, NMI included.

use crate::{
    limits::KEYS_MAX,
    sync::{
        Atomic,
        Relaxed, //
    },
    tracing_map::{
        factors,
        Pieces, //
    }, //
};

use super::{
    super::{
        Op,
        Program, //
    },
    place_of,
    text::{
        last_word,
        most_in,
        WORD, //
    }, //
};

/// The key of one hit.
///
/// # Invariants
///
/// `sum` and `end` are those of all words of the pieces, as [`Pieces::sum`] returns them.
pub struct TextKey<'k> {
    pieces: &'k [Piece<'k>],
    sum: u64,
    end: usize,
}

/// One column of it: its words from `at` on, but for zeros behind them.
#[derive(Clone, Copy)]
struct Piece<'r> {
    at: usize,
    /// Some words of the record.
    whole: &'r [u8],
    /// The word behind these: what is left of a string, or a number.
    last: u64,
}

impl Pieces for TextKey<'_> {
    #[inline(always)]
    fn each(&self, mut found: impl FnMut(usize, u64)) {
        for piece in self.pieces {
            let (mut at, mut whole) = (piece.at, piece.whole);

            while let Some((word, behind)) = whole.split_first_chunk() {
                found(at, u64::from_ne_bytes(*word));
                whole = behind;
                // OVERFLOW: below the words of a key.
                at = at.wrapping_add(1);
            }
            found(at, piece.last);
        }
    }

    #[inline(always)]
    fn sum(&self) -> (u64, usize) {
        (self.sum, self.end)
    }

    #[inline(always)]
    fn is_in(&self, held: &[Atomic<u64>]) -> bool {
        let mut rest = held;

        for piece in self.pieces {
            // OVERFLOW: in ascending order; what is left is a part of all.
            let gap = piece.at.wrapping_sub(held.len().wrapping_sub(rest.len()));
            let mut whole = piece.whole;

            if !skip_zeros(&mut rest, gap) {
                return false;
            }
            while let Some((word, behind)) = whole.split_first_chunk() {
                if !skip(&mut rest, u64::from_ne_bytes(*word)) {
                    return false;
                }
                whole = behind;
            }
            if !skip(&mut rest, piece.last) {
                return false;
            }
        }
        true
    }
}

/// Goes on behind the first word, if that is `wanted`.
#[inline(always)]
fn skip(held: &mut &[Atomic<u64>], wanted: u64) -> bool {
    match held.split_first() {
        // ORDERING: the key of an element that was found does not change.
        Some((first, behind)) if first.load(Relaxed) == wanted => {
            *held = behind;
            true
        }
        _ => false,
    }
}

/// Goes on behind so many words, if all of them are 0.
#[inline(always)]
fn skip_zeros(held: &mut &[Atomic<u64>], len: usize) -> bool {
    let Some((mut zeros, behind)) = held.split_at_checked(len) else {
        return false;
    };

    while let [a, b, c, d, more @ ..] = zeros {
        // ORDERING: as in `skip`.
        if (a.load(Relaxed) | b.load(Relaxed) | c.load(Relaxed) | d.load(Relaxed)) != 0 {
            return false;
        }
        zeros = more;
    }
    while !zeros.is_empty() {
        if !skip(&mut zeros, 0) {
            return false;
        }
    }
    *held = behind;
    true
}

impl Program {
    /// Whether [`Program::with_text_key`] computes the key: it is made of strings of the record and of numbers that are
    /// at hand.
    pub fn has_text_key(&self) -> bool {
        let numbers = self.plan.keys.places();

        self.keys()
            .iter()
            .zip(numbers)
            .all(|(key, number)| match key.field.op {
                op if op.is_text_of_record() => true,
                Op::Num { .. } | Op::Cpu | Op::Const(_) | Op::One | Op::Expr(_) => {
                    number.is_simple()
                }
                _ => false,
            })
    }

    /// Computes the key of the hit, as [`Program::key`] does, of a program for which [`Program::has_text_key`], and
    /// hands it on.
    #[inline(always)]
    pub fn with_text_key<R>(
        &self,
        record: &[u8],
        cpu: impl Fn() -> u32 + Copy,
        found: impl FnOnce(&TextKey<'_>) -> R,
    ) -> R {
        let mut pieces = [Piece {
            at: 0,
            whole: &[],
            last: 0,
        }; KEYS_MAX];
        let (mut sum, mut end): (u64, usize) = (0, 0);
        let keys = self.keys().iter().zip(self.plan.keys.places());

        for ((key, number), piece) in keys.zip(&mut pieces) {
            let mut at = key.first_word();
            let (whole, last) = match place_of(key.field.op, record) {
                Some((place, len)) => {
                    let from = record.get(place..).unwrap_or(&[]);

                    split(from, len.min(most_in(key.words())))
                }
                None => (&[][..], number.simple(record, cpu).unwrap_or(0)),
            };
            let mut add = |word: u64| {
                let factor = factors(0).get(at).unwrap_or(&0);

                sum = sum.wrapping_add(word.wrapping_mul(*factor));
                // OVERFLOW: below the words of a key.
                at = at.wrapping_add(1);
                if word != 0 {
                    end = at;
                }
            };
            let mut rest = whole;

            while let Some((word, behind)) = rest.split_first_chunk() {
                add(u64::from_ne_bytes(*word));
                rest = behind;
            }
            add(last);
            *piece = Piece {
                at: key.first_word(),
                whole,
                last,
            };
        }
        // INVARIANT: all words of the pieces were added; the others are 0.
        found(&TextKey {
            pieces: pieces.get(..self.keys().len()).unwrap_or(&[]),
            sum,
            end,
        })
    }
}

/// The first `len` bytes of `from`, as many as there are: those of whole words, and the word behind them.
#[inline(always)]
fn split(from: &[u8], len: usize) -> (&[u8], u64) {
    let len = len.min(from.len());
    // OVERFLOW: at most `len`.
    let (whole, last) = from
        .split_at_checked(len.wrapping_sub(len % WORD))
        .unwrap_or((&[], &[]));

    (whole, last_word(last, len % WORD))
}
