// SPDX-License-Identifier: GPL-2.0

//! Hashing of keys.
//!
//! C counterpart: `jhash()`, which takes longer for a long key than the rest of a hit. The choice is invisible to
//! users, since rows are sorted before they are shown.
//!
//! User space chooses the keys: the arguments of a system call, the fields of a user event. So the hash is one of a
//! universal family, chosen at random when the module is loaded: any two keys share a slot for few of its members,
//! with a probability of at most about twice that of random slots.
//!
//! # The family
//!
//! Its numbers are `a`, `b` and `c`, which are odd, and `k[i]` for word `w[i]` of a key. All sums are modulo `2^64`.
//!
//! ==============  ==========================================================  =====================================
//! key of          is reduced to                                               which two keys share with at most
//! ==============  ==========================================================  =====================================
//! one word        `z = a w[0]`                                                0
//! more words      `z = L + a H`: `L` is the sum of the lower halves and `H`   `2^-29`
//!                 of the upper halves of products of 128 bits
//! two words       `(w[0] + k[0]) (w[1] + k[1])`
//! a long key      `w[i] k[i]` for all words
//! ==============  ==========================================================  =====================================
//!
//! The hash is `c swap(b swap(z))`, where `swap` reverses the bytes. Its top bits are the number of the slot.
//!
//! # The proof
//!
//! The keys of a table have one length; a long key that is shorter is padded with zeros, which add nothing. So two
//! keys differ in a word with the same `i`, even if one is the beginning of the other. The
//! following holds for any values of the other words and the other numbers:
//!
//! - *One word*: an odd factor keeps numbers apart.
//! - *A word times its number*: let `L` and `H` of two keys differ by given numbers. Then so do the lower halves of
//!   `w k[i]` and of `w' k[i]`, and the upper ones, modulo `2^64`. Each of these two differences is one of two
//!   integers, so `(w - w') k[i]` is one of four, of which each fits at most one `k[i]`: four in `2^64`.
//! - *Two words in one product*: say that the second ones differ. Then so do the factors `y` and `y'` that they come
//!   to, for any `k[i+1]`. The first factor `x` is any number with the same probability, and that of the other
//!   key is `x + d` or `x + d - 2^64`, with a known `d`. In each case, `x (y' - y)` is one of four integers, as in
//!   the case of a word times its number, and each fits at most one `x`: eight in `2^64`. If the second words are
//!   equal, `x` and `x'` differ by a known number for each `x`, and four of all `y` fit.
//! - *Both sums*: so `dL` and `dH`, by which the sums of two keys differ, are two given numbers with a probability of
//!   at most `2^-61`. The keys have one `z` if `dL + a dH` is 0. If `dH` is 0, so is `dL`. Else let `2^t` be the
//!   largest power of two in `dH`. `a dH` is any odd multiple of it with the same probability, one in `2^(63-t)`, and
//!   `dL` must be an odd multiple as well. There are `2^(2(63-t))` such pairs of `dL` and `dH`, with a probability of
//!   `2^-61` each and of 1 together. The sum over all `t` is less than `2^-29`.
//! - *The slot*: `u = swap(b swap(z))` differs for different `z`, as each step can be taken back. Let `2^t` be the
//!   largest power of two in the difference of two `u`. `c` times that is any odd multiple of `2^t` with the same
//!   probability, one in `2^(63-t)`. With one of `2^s` slots for both, it is less than `2^(64-s)` away from 0, as are
//!   `2^(64-s-t)` of these multiples, or none if `t` is larger than `63-s`: at most two in `2^s` (Dietzfelbinger et
//!   al., "A reliable randomized algorithm for the closest-pair problem", 1997).
//! - *The length* of a long key replaces eight bits of its hash that choose no slot, even of the largest table.
//!
//! Pairs do not say how keys of one kind lie in a row. Of consecutive numbers a product alone makes a single run of
//! slots for some `c`. The two swaps, with a multiplication by `b` between, spread the keys that occur in practice
//! like random numbers for all seeds that were tried.
//!
//! Context: any, NMI included.

use super::SHORT_KEY_WORDS;
use crate::limits::KEY_WORDS_MAX;

/// The number of factors, one for each word of a key.
const WORDS: usize = KEY_WORDS_MAX;

/// The factors by which the words of a long key are multiplied, in order.
pub type Factors = [u64; WORDS];

/// The sums of the lower and of the upper halves of products. For a long key, each word is multiplied by [its
/// factor](KeyHash::factors), so that words that are 0 add nothing.
#[derive(Clone, Copy, Default)]
pub struct Sum {
    low: u64,
    high: u64,
}

impl Sum {
    /// Adds the product of two words.
    #[inline]
    pub fn add(&mut self, word: u64, factor: u64) {
        // OVERFLOW: the product of 64-bit numbers fits in 128 bits.
        let product = u128::from(word).wrapping_mul(factor.into());

        // CAST: takes the lower and the upper half.
        self.low = self.low.wrapping_add(product as u64);
        self.high = self.high.wrapping_add((product >> 64) as u64);
    }
}

/// A hash function of key words. It is a type parameter of the map, so that tests can make keys collide.
///
/// The top bits of a hash choose the slot, which stores the upper half of the hash. Equal values of a type
/// compute equal hashes. The default value has a fixed seed.
pub trait KeyHash: Copy + Default + Send + Sync {
    /// Returns the hash of `key`, which has at most [`SHORT_KEY_WORDS`] words.
    fn hash(self, key: &[u64]) -> u64;

    /// Returns the factors by which the words of a long key are multiplied before they are added up.
    #[inline]
    fn factors(self) -> &'static Factors {
        &UNSEEDED.words
    }

    /// Returns the hash of a long key, given the sum of its words.
    #[inline]
    fn end(self, sum: Sum) -> u64 {
        SeededHash::default().end(sum)
    }
}

/// 2^64 divided by the golden ratio, the step of splitmix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Odd factors that spread numbers over the slots.
#[derive(Clone, Copy)]
struct Ends {
    /// The factor of a key of one word, and of [`Sum::high`].
    first: u64,
    /// The inner factor of [`Ends::spread`].
    inner: u64,
    /// The outer factor of [`Ends::spread`].
    last: u64,
}

impl Ends {
    /// Returns a hash whose top bits collide for few choices of the factors, if the numbers differ.
    ///
    /// The last multiplication alone would do, but for some factors it would map an arithmetic progression of keys
    /// (ids, addresses, buckets) to one run of slots. A product depends most on the low bits; with its bytes swapped,
    /// the next product depends on all bits. So such keys spread like random ones, for any stride and seed.
    #[inline]
    fn spread(&self, number: u64) -> u64 {
        number
            .swap_bytes()
            .wrapping_mul(self.inner)
            .swap_bytes()
            .wrapping_mul(self.last)
    }

    /// Returns the hash for the sum of a key's words.
    #[inline]
    fn of(&self, sum: Sum) -> u64 {
        self.spread(sum.low.wrapping_add(sum.high.wrapping_mul(self.first)))
    }
}

/// The random numbers of all hashes of the module. They never change once built.
pub struct HashSeed {
    ends: Ends,
    /// A number for each word of a key, so that keys with the same words in another order have different sums.
    words: Factors,
}

impl HashSeed {
    /// Returns the numbers that the generator splitmix64 produces from `seed`.
    ///
    /// # Examples
    ///
    /// ```
    /// use rust_hist::tracing_map::{HashSeed, KeyHash, SeededHash};
    ///
    /// static ONE: HashSeed = HashSeed::new(1);
    /// static TWO: HashSeed = HashSeed::new(2);
    ///
    /// assert_ne!(SeededHash::new(&ONE).hash(&[42]), SeededHash::new(&TWO).hash(&[42]));
    /// ```
    pub const fn new(seed: u64) -> Self {
        let mut words = [0; WORDS];
        let (state, first) = next(seed);
        let (state, inner) = next(state);
        let (mut state, last) = next(state);
        let mut i = 0;

        while i < words.len() {
            (state, words[i]) = next(state);
            i += 1;
        }
        Self {
            ends: Ends {
                first: first | 1,
                inner: inner | 1,
                last: last | 1,
            },
            words,
        }
    }

    /// Returns random numbers for hashes; `number` must return independent random numbers.
    ///
    /// Not inlined, as they take half of the stack that a function may have.
    #[inline(never)]
    pub fn random(mut number: impl FnMut() -> u64) -> Self {
        Self {
            ends: Ends {
                first: number() | 1,
                inner: number() | 1,
                last: number() | 1,
            },
            words: core::array::from_fn(|_| number()),
        }
    }
}

/// Returns the next state of the generator splitmix64, and its number.
const fn next(state: u64) -> (u64, u64) {
    let state = state.wrapping_add(GOLDEN);
    let mut z = state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (state, z ^ (z >> 31))
}

/// The numbers of the default hash function.
static UNSEEDED: HashSeed = HashSeed::new(0);

/// The hash function of triggers.
///
/// A key of one word is multiplied by an odd number. For a key of two words, a number is added to each, and the sums
/// are multiplied. Each word of a long key is multiplied by its own number. The halves of the products are added up,
/// and the result is [spread](Ends::spread) over the slots.
#[derive(Clone, Copy)]
pub struct SeededHash {
    /// Copy of [`HashSeed::ends`], so that short keys need not read an address first.
    ends: Ends,
    /// Copy of the first numbers of [`HashSeed::words`].
    words: [u64; SHORT_KEY_WORDS],
    seed: &'static HashSeed,
}

impl SeededHash {
    /// Returns the hash function with the numbers of `seed`.
    pub fn new(seed: &'static HashSeed) -> Self {
        let [a, b, ..] = seed.words;

        Self {
            ends: seed.ends,
            words: [a, b],
            seed,
        }
    }
}

/// The hash function with the seed 0.
impl Default for SeededHash {
    fn default() -> Self {
        Self::new(&UNSEEDED)
    }
}

impl KeyHash for SeededHash {
    #[inline]
    fn hash(self, key: &[u64]) -> u64 {
        let mut sum = Sum::default();

        if let [word] = key {
            return self.ends.spread(word.wrapping_mul(self.ends.first));
        }
        if let ([a, b], [c, d]) = (key, self.words) {
            sum.add(a.wrapping_add(c), b.wrapping_add(d));
        }
        self.ends.of(sum)
    }

    #[inline]
    fn factors(self) -> &'static Factors {
        &self.seed.words
    }

    #[inline]
    fn end(self, sum: Sum) -> u64 {
        // Reads the seed, not the copies, which would take registers while the words are added up, as they are read
        // with the map.
        self.seed.ends.of(sum)
    }
}
