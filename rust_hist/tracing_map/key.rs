// SPDX-License-Identifier: GPL-2.0

//! Keys in the forms that hits use, and the operations of a map on them: hash, compare, write.
//!
//! A short key is an array of words. A long key has strings or stacks, and mostly zeros, since there is room for the
//! longest string. It is not copied, and its zeros are not hashed: a word that is 0 adds nothing to the hash, and the
//! length without trailing zeros is a part of it. So a long key is looked up in place, in segments of the record.
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

/// Most words of a short key: enough for two numbers, or the name of a task.
pub const SHORT_KEY_WORDS: usize = 2;

/// Most words of a key that are computed, hashed and compared one by one, without a loop.
pub const UNROLLED_MAX: usize = 4;

/// The bits of the hash of a long key that hold its length. The other bits choose the slot.
const LEN_MASK: u64 = 0b1111_1111 << LEN_SHIFT;
/// Just above the half of a hash that slots do not store.
const LEN_SHIFT: u32 = 32;

const _: () = assert!(KEY_WORDS_MAX as u64 <= LEN_MASK >> LEN_SHIFT);
const _: () = assert!(GROWN_BITS_MAX + 2 + LEN_MASK.count_ones() <= u64::BITS - LEN_SHIFT);

/// A key that can be looked up and inserted. As cheap to copy as a few words; all its methods see the same words.
pub trait Key: Copy {
    /// The number of words, if it is known at compile time: the words are then compared without first comparing the
    /// hash in the slot, which would take as long.
    const WORDS: Option<usize>;

    /// Returns the hash, which is equal in all maps with the same `hash` and the same length of keys.
    fn hash(&self, hash: impl KeyHash) -> u64;

    /// Returns whether the element's key in `words`, from `at` on, is this key. Unless [`Key::WORDS`] is known, the
    /// caller has found equal hashes.
    fn is_at(&self, words: &[Atomic<u64>], at: usize) -> bool;

    /// Writes all words of the key, including zeros at its end, to the key words of an element that no other context
    /// can find yet.
    fn write(&self, to: &[Atomic<u64>]);
}

/// A key whose words are all in an array, as many as the map's keys have.
impl<const N: usize> Key for [u64; N] {
    const WORDS: Option<usize> = Some(N);

    #[inline(always)]
    fn hash(&self, hash: impl KeyHash) -> u64 {
        if const { N <= SHORT_KEY_WORDS } {
            return hash.hash(self);
        }

        // No loop over the first words: a crate that is compiled for size does not unroll it.
        let mut sum = Sum::default();
        let mut len = 0;
        if N > 0 {
            len = add_at(&mut sum, len, hash, self, 0);
        }
        if N > 1 {
            len = add_at(&mut sum, len, hash, self, 1);
        }
        if N > 2 {
            len = add_at(&mut sum, len, hash, self, 2);
        }
        if N > 3 {
            len = add_at(&mut sum, len, hash, self, 3);
        }
        for at in UNROLLED_MAX..N {
            len = add_at(&mut sum, len, hash, self, at);
        }
        long_hash(hash, sum, len)
    }

    #[inline]
    fn is_at(&self, words: &[Atomic<u64>], at: usize) -> bool {
        (N < 1 || is_word_at(words, at, self, 0))
            && (N < 2 || is_word_at(words, at, self, 1))
            && (N < 3 || is_word_at(words, at, self, 2))
            && (N < 4 || is_word_at(words, at, self, 3))
            && (N <= UNROLLED_MAX || (UNROLLED_MAX..N).all(|i| is_word_at(words, at, self, i)))
    }

    #[inline]
    fn write(&self, to: &[Atomic<u64>]) {
        for (held, word) in to.iter().zip(self) {
            // ORDERING: the slot that names the element is published with `Release` after this.
            held.store(*word, Relaxed);
        }
    }
}

/// Adds word `at` of a key to `sum`. Returns the number of words up to the last one that is not 0, which was `len` before.
#[inline(always)]
pub fn add_word(sum: &mut Sum, len: usize, at: usize, word: u64, factor: u64) -> usize {
    sum.add(word, factor);
    match word {
        0 => len,
        // OVERFLOW: an index in a key is small.
        _ => at.wrapping_add(1),
    }
}

/// Adds word `at` of `key`, if it has one, with the factor for this place.
#[inline(always)]
fn add_at(sum: &mut Sum, len: usize, hash: impl KeyHash, key: &[u64], at: usize) -> usize {
    match (key.get(at), hash.factors().get(at)) {
        (Some(&word), Some(&factor)) => add_word(sum, len, at, word, factor),
        _ => len,
    }
}

/// Returns whether word `i` of `key` is word `at + i` of `words`.
#[inline]
fn is_word_at(words: &[Atomic<u64>], at: usize, key: &[u64], i: usize) -> bool {
    // OVERFLOW: below the number of words.
    match (words.get(at.wrapping_add(i)), key.get(i)) {
        // ORDERING: the slot was read with `Acquire`; the key of its element does not change.
        (Some(held), Some(wanted)) => held.load(Relaxed) == *wanted,
        _ => false,
    }
}

/// Returns the hash of a long key: `sum` is the sum of its words, `len` their number up to the last one that is not 0.
#[inline]
pub fn long_hash(hash: impl KeyHash, sum: Sum, len: usize) -> u64 {
    // CAST: at most `KEY_WORDS_MAX`.
    (hash.end(sum) & !LEN_MASK) | ((len as u64) << LEN_SHIFT)
}

/// A key in one piece.
///
/// # Invariants
///
/// Words from `len` on are 0; `len` is less than the number of words only if the map has long keys.
#[derive(Clone, Copy)]
pub struct Whole<'k> {
    words: &'k [u64],
    len: usize,
    is_long: bool,
}

impl<'k> Whole<'k> {
    /// Returns `words` as a key of a map of this shape; `None` if their number is wrong. In a map with long keys,
    /// trailing words that are 0 may be left out.
    #[inline]
    pub fn new(words: &'k [u64], shape: &Shape) -> Option<Self> {
        let (is_long, len) = (shape.has_long_keys(), words.len());

        if len > shape.key_words || (!is_long && len < shape.key_words) {
            return None;
        }
        Some(Self::with(words, is_long))
    }

    /// Returns a key made of all of `words`, of any length.
    #[inline]
    pub fn of_all(words: &'k [u64]) -> Self {
        Self::with(words, words.len() > SHORT_KEY_WORDS)
    }

    #[inline(always)]
    fn with(words: &'k [u64], is_long: bool) -> Self {
        let last = words.iter().rposition(|&word| word != 0);

        // INVARIANT: the words after the last one that is not 0 are all 0.
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

    /// Returns all words of which the key was made.
    #[inline]
    pub fn words(&self) -> &'k [u64] {
        self.words
    }

    /// Returns the number of words, not counting trailing zeros of a long key.
    #[inline]
    pub fn trimmed_len(&self) -> usize {
        self.len
    }

    /// Returns the words, without trailing zeros of a long key.
    #[inline]
    fn trimmed(&self) -> &'k [u64] {
        self.words.get(..self.len).unwrap_or(&[])
    }

    /// Returns a long key whose last word is not 0.
    #[inline]
    pub fn of_long(words: &'k [u64]) -> Self {
        debug_assert!(words.last() != Some(&0));
        // INVARIANT: `len` counts all words.
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
        // Cut to the same length, so that the loop counts only one number.
        let factors = hash.factors().get(..words.len()).unwrap_or(&[]);

        in_steps(words, factors, |word, factor| {
            sum.add(*word, *factor);
        });
        long_hash(hash, sum, words.len())
    }

    #[inline]
    fn is_at(&self, words: &[Atomic<u64>], at: usize) -> bool {
        let (wanted, mut differ) = (self.trimmed(), 0);
        // OVERFLOW: below the number of words.
        let Some(held) = words.get(at..at.wrapping_add(wanted.len())) else {
            return false;
        };

        // The hashes and so the lengths are equal, so the keys most likely are, too: stopping at a difference does not
        // pay, and trailing zeros need no comparison.
        in_steps(held, wanted, |held, wanted| {
            // ORDERING: the slot was read with `Acquire`; the key of its element does not change.
            differ |= held.load(Relaxed) ^ *wanted;
        });
        differ == 0
    }

    #[inline]
    fn write(&self, to: &[Atomic<u64>]) {
        let zeros = core::iter::repeat(&0);

        for (held, word) in to.iter().zip(self.words.iter().chain(zeros)) {
            // ORDERING: the slot that names the element is published with `Release` after this.
            held.store(*word, Relaxed);
        }
    }
}

/// The number of words of a long key that are processed between two tests for the end.
pub const STEP: usize = 4;

/// Calls `each` for each pair of `a` and `b`, which must have the same length. From a plain loop the compiler makes
/// such steps, too, but also a loop for the rest, which takes as long as the steps.
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
