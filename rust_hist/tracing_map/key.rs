// SPDX-License-Identifier: GPL-2.0

//! Keys, in the forms in which a hit has them, and what a map does with each: hash it, compare it, write it.
//!
//! A short key is an array of words. A long one has strings or stacks, and most of its words are zeros, since there
//! is room for the longest string. It is neither copied nor are its zeros hashed: a word that is 0 adds nothing to
//! the hash, and the length without the zeros at the end is a part of it. So a long key is looked up where it lies,
//! in segments of the record.
//!
//! Context: any, NMI included.

use super::{
    KeyHash,
    Shape,
    Sum, //
};
use crate::{
    limits::{
        GROWN_BITS_MAX,
        KEY_WORDS_MAX, //
    },
    sync::{
        Atomic,
        Relaxed, //
    }, //
};

/// Most words of a short key: two numbers, or the name of a task.
pub const SHORT_KEY_WORDS: usize = 2;

/// The bits of the hash of a long key that have its length. The others choose the slot.
const LEN_MASK: u64 = 0b1111_1111 << LEN_SHIFT;
/// Above the half that slots do not keep.
const LEN_SHIFT: u32 = 32;

const _: () = assert!(KEY_WORDS_MAX as u64 <= LEN_MASK >> LEN_SHIFT);
const _: () = assert!(GROWN_BITS_MAX + 2 + LEN_MASK.count_ones() <= u64::BITS - LEN_SHIFT);

/// A key that can be looked up and inserted, as cheap to copy as a few words. Each call sees the same words.
pub trait Key: Copy {
    /// How many words it has, if that is known when the code is compiled: then they are compared without a look at the
    /// hash that a slot keeps, which would take as long.
    const WORDS: Option<usize>;

    /// Returns the hash, which is the same in all maps with the same `hash` whose keys are as long.
    fn hash(&self, hash: impl KeyHash) -> u64;

    /// Says whether the key is in `words` from `at` on, the key of an element. Unless [`Key::WORDS`] is known, the
    /// slot that names the element has the hash of the key.
    fn is_at(&self, words: &[Atomic<u64>], at: usize) -> bool;

    /// Writes all words of the key, zeros at its end included, to those of an element that nobody else can find yet.
    fn write(&self, to: &[Atomic<u64>]);
}

/// A key whose words are all at hand: as many as keys of the map have.
impl<const N: usize> Key for [u64; N] {
    const WORDS: Option<usize> = Some(N);

    #[inline(always)]
    fn hash(&self, hash: impl KeyHash) -> u64 {
        if const { N <= SHORT_KEY_WORDS } {
            return hash.hash(self);
        }

        // By indices: so the compiler unrolls both loops.
        let mut sum = Sum::default();
        for at in 0..N {
            if let (Some(word), Some(factor)) = (self.get(at), hash.factors().get(at)) {
                sum.add(*word, *factor);
            }
        }
        let mut len = N;
        while len > 0 && self.get(len.wrapping_sub(1)) == Some(&0) {
            // OVERFLOW: it is not 0, here and above.
            len = len.wrapping_sub(1);
        }
        long_hash(hash, sum, len)
    }

    #[inline(always)]
    fn is_at(&self, words: &[Atomic<u64>], at: usize) -> bool {
        (0..N).zip(self).all(|(i, wanted)| {
            words
                // OVERFLOW: below the number of words.
                .get(at.wrapping_add(i))
                // ORDERING: the slot was read with `Acquire`; the key of its element does not change.
                .is_some_and(|held| held.load(Relaxed) == *wanted)
        })
    }

    #[inline(always)]
    fn write(&self, to: &[Atomic<u64>]) {
        for (held, word) in to.iter().zip(self) {
            // ORDERING: the slot that names the element is published with `Release` after this.
            held.store(*word, Relaxed);
        }
    }
}

/// Returns the hash of a long key: `sum` is that of its words, `len` how many there are up to the last one that is
/// not 0.
#[inline(always)]
pub fn long_hash(hash: impl KeyHash, sum: Sum, len: usize) -> u64 {
    // CAST: at most `KEY_WORDS_MAX`.
    (hash.end(sum) & !LEN_MASK) | ((len as u64) << LEN_SHIFT)
}

/// A key in one piece.
///
/// # Invariants
///
/// Words from `len` on are 0; `len` is less than their number only if keys of the map are long.
#[derive(Clone, Copy)]
pub struct Whole<'k> {
    words: &'k [u64],
    len: usize,
    is_long: bool,
}

impl<'k> Whole<'k> {
    /// Returns `words` as a key of a map of this shape; `None` if it is none. Of a long one, words that are 0 may be
    /// missing at the end.
    #[inline(always)]
    pub fn new(words: &'k [u64], shape: &Shape) -> Option<Self> {
        let (is_long, len) = (shape.has_long_keys(), words.len());

        if len > shape.key_words || (!is_long && len < shape.key_words) {
            return None;
        }
        Some(Self::with(words, is_long))
    }

    /// Returns all words of a key, however many there are.
    #[inline(always)]
    pub fn of_all(words: &'k [u64]) -> Self {
        Self::with(words, words.len() > SHORT_KEY_WORDS)
    }

    #[inline(always)]
    fn with(words: &'k [u64], is_long: bool) -> Self {
        let last = words.iter().rposition(|&word| word != 0);

        // INVARIANT: behind the last word that is not 0 all are.
        Self {
            words,
            len: match last {
                _ if !is_long => words.len(),
                // OVERFLOW: the index of a word.
                Some(last) => last.wrapping_add(1),
                None => 0,
            },
            is_long,
        }
    }

    /// Returns all words that it was made of.
    #[inline(always)]
    pub fn words(&self) -> &'k [u64] {
        self.words
    }

    /// Returns how many words there are without the zeros at the end of a long key.
    #[inline(always)]
    pub fn trimmed_len(&self) -> usize {
        self.len
    }

    /// Returns the words without the zeros at the end of a long key.
    #[inline(always)]
    fn trimmed(&self) -> &'k [u64] {
        self.words.get(..self.len).unwrap_or(&[])
    }

    /// Returns a long key whose last word is not 0.
    #[inline(always)]
    pub fn of_long(words: &'k [u64]) -> Self {
        debug_assert!(words.last() != Some(&0));
        // INVARIANT: all of them.
        Self {
            words,
            len: words.len(),
            is_long: true,
        }
    }
}

impl Key for Whole<'_> {
    const WORDS: Option<usize> = None;

    #[inline(always)]
    fn hash(&self, hash: impl KeyHash) -> u64 {
        if !self.is_long {
            return hash.hash(self.words);
        }
        let words = self.trimmed();
        let mut sum = Sum::default();
        // As many, so that there is one number to count to.
        let factors = hash.factors().get(..words.len()).unwrap_or(&[]);

        in_steps(words, factors, |word, factor| {
            sum.add(*word, *factor);
        });
        long_hash(hash, sum, words.len())
    }

    #[inline(always)]
    fn is_at(&self, words: &[Atomic<u64>], at: usize) -> bool {
        let (wanted, mut differ) = (self.trimmed(), 0);
        // OVERFLOW: below the number of words.
        let Some(held) = words.get(at..at.wrapping_add(wanted.len())) else {
            return false;
        };

        // With equal hashes, and so equal lengths, it is most likely the key, so to stop at a difference does not
        // pay, and the zeros behind it need no look.
        in_steps(held, wanted, |held, wanted| {
            // ORDERING: the slot was read with `Acquire`; the key of its element does not change.
            differ |= held.load(Relaxed) ^ *wanted;
        });
        differ == 0
    }

    #[inline(always)]
    fn write(&self, to: &[Atomic<u64>]) {
        let zeros = core::iter::repeat(&0);

        for (held, word) in to.iter().zip(self.words.iter().chain(zeros)) {
            // ORDERING: the slot that names the element is published with `Release` after this.
            held.store(*word, Relaxed);
        }
    }
}

/// How many words of a long key are gone through between two looks at whether there are more.
pub const STEP: usize = 4;

/// Calls `each` for each pair of `a` and `b`, which are of one length. Of a plain loop the compiler makes these steps,
/// too, and a loop for what is left after them, which takes as long.
#[inline(always)]
pub fn in_steps<A, B>(a: &[A], b: &[B], mut each: impl FnMut(&A, &B)) {
    let (mut steps_a, mut steps_b) = (a.chunks_exact(STEP), b.chunks_exact(STEP));

    for (a, b) in steps_a.by_ref().zip(steps_b.by_ref()) {
        for (a, b) in a.iter().zip(b) {
            each(a, b);
        }
    }
    match (steps_a.remainder(), steps_b.remainder()) {
        ([a0, a1, a2], [b0, b1, b2]) => {
            each(a0, b0);
            each(a1, b1);
            each(a2, b2);
        }
        ([a0, a1], [b0, b1]) => {
            each(a0, b0);
            each(a1, b1);
        }
        ([a0], [b0]) => each(a0, b0),
        _ => {}
    }
}
