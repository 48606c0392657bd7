// SPDX-License-Identifier: GPL-2.0

//! Hashing of keys.
//!
//! The C implementation uses jhash, which costs more than the rest of a hit for long keys. Nothing
//! outside depends on the choice: rows are sorted before they are shown.
//!
//! Whoever makes the events chooses the keys: the arguments of a system call, the fields of a user event.
//! So what the hash of a short key begins with, and the factors of the words of a long one, are drawn when
//! the module is loaded: who does not know them cannot make many keys share a slot.

use crate::limits::KEY_WORDS_MAX;

/// How many factors there are, one for each word of a key.
const WORDS: usize = 64;

const _: () = assert!(KEY_WORDS_MAX <= WORDS);

/// The factors of the words of a long key, in order.
pub type Factors = [u64; WORDS];

/// A hash of key words. A map calls it through a type parameter so that tests can make keys collide.
///
/// The top bits of a hash choose the slot, which keeps its upper half. Two values of one type that were made alike hash alike; the default is
/// one of which everybody knows the factors.
pub trait KeyHash: Copy + Default + Send + Sync {
    /// Returns the hash of `key`, which is not long.
    fn hash(self, key: &[u64]) -> u64;

    /// Returns what the words of a long key are multiplied by before they are added up.
    #[inline(always)]
    fn factors(self) -> &'static Factors {
        &UNSEEDED.words
    }

    /// Returns the hash of a long key by the sum of its words, each times [its factor](KeyHash::factors).
    #[inline(always)]
    fn end(self, sum: u64) -> u64 {
        (sum ^ (sum >> 32)).wrapping_mul(GOLDEN)
    }
}

/// 2^64 divided by the golden ratio: its multiples spread evenly (Knuth, "The Art of Computer Programming",
/// volume 3, section 6.4).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The numbers that all hashes of one module depend on.
///
/// A plain value. It never changes once built.
pub struct HashSeed {
    /// What the hash of a short key begins with.
    start: u64,
    /// The odd factors of the words of a long key, one for each place, which keeps words that changed places apart.
    words: Factors,
}

impl HashSeed {
    /// Returns the numbers that follow from `seed`; equal seeds have equal ones. They are those of splitmix64.
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
        let (mut state, start) = next(seed);
        let mut i = 0;

        while i < words.len() {
            (state, words[i]) = next(state);
            words[i] |= 1;
            i += 1;
        }
        Self { start, words }
    }
}

/// Returns the state that follows `state`, and the number that belongs to it.
const fn next(state: u64) -> (u64, u64) {
    let state = state.wrapping_add(GOLDEN);
    let mut z = state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (state, z ^ (z >> 31))
}

/// What is used where no seed was chosen.
static UNSEEDED: HashSeed = HashSeed::new(0);

/// The hash that triggers use: one multiplication a word, and one more.
///
/// The upper half of a product depends on all bits of a word. Between words the upper half is folded into
/// the lower one, which is all that the next product sees of it. At the end the bytes change places, so that
/// the bits that know most count most once more: whatever the stride of an arithmetic progression of keys
/// (ids, addresses, buckets) and the seed are, its slots are spread as if by chance.
#[derive(Clone, Copy)]
pub struct SeededHash {
    /// [`HashSeed::start`].
    start: u64,
    /// Twice [`GOLDEN`]: to multiply by a word in memory is one instruction, by a constant of this size two.
    golden: [u64; 2],
    seed: &'static HashSeed,
}

impl SeededHash {
    /// The hash with these numbers.
    pub fn new(seed: &'static HashSeed) -> Self {
        Self {
            start: seed.start,
            golden: [GOLDEN; 2],
            seed,
        }
    }
}

/// The numbers of the seed 0.
impl Default for SeededHash {
    fn default() -> Self {
        Self::new(&UNSEEDED)
    }
}

impl KeyHash for SeededHash {
    #[inline(always)]
    fn hash(self, key: &[u64]) -> u64 {
        let [golden, last] = self.golden;
        let mut h = self.start;

        for (i, &word) in (0..key.len()).zip(key) {
            if i > 0 {
                h ^= h >> 32;
            }
            h = (h ^ word).wrapping_mul(golden);
        }
        h.swap_bytes().wrapping_mul(last)
    }

    #[inline(always)]
    fn factors(self) -> &'static Factors {
        &self.seed.words
    }
}
