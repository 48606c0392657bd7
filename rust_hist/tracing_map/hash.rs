// SPDX-License-Identifier: GPL-2.0

//! Hashing of keys.
//!
//! The C implementation uses jhash, which costs more than the rest of a hit for long keys. Nothing
//! outside depends on the choice: rows are sorted before they are shown.

/// A hash of key words. A map calls it through a type parameter so that tests can make keys collide.
pub trait KeyHash {
    /// Returns the hash of `key`. Its top bits choose the slot.
    fn hash(key: &[u64]) -> u32;
}

/// The hash that triggers use: one multiplication a word.
///
/// The odd constant is 2^64 divided by the golden ratio. The upper half of a product depends on all
/// bits of the factor and spreads arithmetic progressions (ids, addresses, buckets) evenly. Between
/// words the upper half is folded into the lower one, which is all that the next product sees of it.
pub struct Fibonacci;

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

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
