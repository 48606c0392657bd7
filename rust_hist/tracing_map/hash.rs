// SPDX-License-Identifier: GPL-2.0

//! Hashing of keys.
//!
//! C counterpart: `jhash()`, which for a long key takes longer than the rest of a hit. The choice is not
//! visible to users, since rows are sorted before they are shown.
//!
//! User space chooses the keys: the arguments of a system call, the fields of a user event. So the start
//! value of the hash of a short key and the factors of the words of a long key are random numbers, chosen
//! when the module is loaded: without them nobody can choose keys that share a slot.
//!
//! Context: any, NMI included.

use crate::limits::KEY_WORDS_MAX;

/// The number of factors, one for each word of a key.
const WORDS: usize = KEY_WORDS_MAX;

/// The factors of the words of a long key, in order.
pub type Factors = [u64; WORDS];

/// A hash function of key words. It is a type parameter of the map, so that tests can make keys collide.
///
/// The top bits of a hash choose the slot, which stores the upper half of the hash. Equal values of a type
/// compute equal hashes. The default value has a fixed seed.
pub trait KeyHash: Copy + Default + Send + Sync {
    /// Returns the hash of `key`, which has at most [`SHORT_KEY_WORDS`](super::SHORT_KEY_WORDS) words.
    fn hash(self, key: &[u64]) -> u64;

    /// Returns the factors by which the words of a long key are multiplied before they are added up.
    #[inline(always)]
    fn factors(self) -> &'static Factors {
        &UNSEEDED.words
    }

    /// Returns the hash of a long key, given the sum of its words, each times [its
    /// factor](KeyHash::factors).
    #[inline(always)]
    fn end(self, sum: u64) -> u64 {
        (sum ^ (sum >> 32)).wrapping_mul(GOLDEN)
    }
}

/// 2^64 divided by the golden ratio: its multiples spread evenly (Knuth, "The Art of Computer Programming",
/// volume 3, section 6.4).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The random numbers of all hashes of the module. They never change once built.
pub struct HashSeed {
    /// The start value of the hash of a short key.
    start: u64,
    /// The odd factors of the words of a long key. Each word has its own, so that keys with the same words in
    /// another order have different sums.
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

/// Returns the next state of splitmix64 and its number.
const fn next(state: u64) -> (u64, u64) {
    let state = state.wrapping_add(GOLDEN);
    let mut z = state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (state, z ^ (z >> 31))
}

/// The numbers of the default value.
static UNSEEDED: HashSeed = HashSeed::new(0);

/// The hash function of triggers: one multiplication for each word, and one more.
///
/// The upper half of a product depends on all bits of a word. Between two words it is folded into the lower
/// half, since the upper half of the next product depends on that the most. At the end the bytes are swapped
/// and multiplied once more, so that an arithmetic progression of keys (ids, addresses, buckets) is spread
/// over the slots like random keys, whatever its stride and the seed are.
#[derive(Clone, Copy)]
pub struct SeededHash {
    /// [`HashSeed::start`].
    start: u64,
    /// [`GOLDEN`], twice: a multiplication by a word in memory is one instruction, by a 64-bit constant two.
    golden: [u64; 2],
    seed: &'static HashSeed,
}

impl SeededHash {
    /// Returns the hash function with the numbers of `seed`.
    pub fn new(seed: &'static HashSeed) -> Self {
        Self {
            start: seed.start,
            golden: [GOLDEN; 2],
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
