// SPDX-License-Identifier: GPL-2.0

//! Hashing of keys.
//!
//! The C implementation uses jhash, which costs more than the rest of a hit for long keys. Nothing
//! outside depends on the choice: rows are sorted before they are shown.

use crate::limits::KEY_WORDS_MAX;

const _: () = assert!(KEY_WORDS_MAX <= FACTORS.len());

/// A hash of key words. A map calls it through a type parameter so that tests can make keys collide.
///
/// The top bits of a hash choose the slot.
pub trait KeyHash {
    /// Returns the hash of `key`, which is not long.
    fn hash(key: &[u64]) -> u32;

    /// Returns the hash of a long key by the sum of its words, each times [its factor](factors).
    #[inline(always)]
    fn end(sum: u64) -> u32 {
        // CAST: the upper half, which fits.
        ((sum ^ (sum >> 32)).wrapping_mul(GOLDEN) >> 32) as u32
    }
}

/// The hash that triggers use: one multiplication a word.
///
/// The odd constant is 2^64 divided by the golden ratio. The upper half of a product depends on all
/// bits of the factor and spreads arithmetic progressions (ids, addresses, buckets) evenly. Between
/// words the upper half is folded into the lower one, which is all that the next product sees of it.
pub struct Fibonacci;

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the factors of the words of a long key from word `at` on.
///
/// Each place has an odd factor of its own, which keeps words that changed places apart.
#[inline(always)]
pub fn factors(at: usize) -> &'static [u64] {
    FACTORS.get(at..).unwrap_or(&[])
}

/// The factors of the words of a long key: random odd numbers, those of splitmix64.
static FACTORS: [u64; 64] = {
    let mut factors = [0; 64];
    let mut state: u64 = 0;
    let mut i = 0;

    while i < factors.len() {
        state = state.wrapping_add(GOLDEN);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        factors[i] = (z ^ (z >> 31)) | 1;
        i += 1;
    }
    factors
};

impl KeyHash for Fibonacci {
    #[inline(always)]
    fn hash(key: &[u64]) -> u32 {
        let mut h: u64 = 0;
        for &word in key {
            h = (h ^ (h >> 32) ^ word).wrapping_mul(GOLDEN);
        }
        // CAST: the upper half, which fits.
        (h >> 32) as u32
    }
}
