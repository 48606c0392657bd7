// SPDX-License-Identifier: GPL-2.0

//! How much memory a map takes, and where in it everything lies.
//!
//! ```text
//! control | slots (4 << bits) | keys | aux | shard 0: account, sums | shard 1: account, sums | ...
//! ```
//!
//! All in 64-bit words of one block. Control is written only when a new key comes; slots and keys once
//! for each key; aux, too, but for the variables there. What every hit writes is in the shard of its CPU, and no
//! two shards share a pair of cache lines.

use super::Elt;
use crate::limits::{
    ACTIONS_MAX,
    BITS_MAX,
    COMM_LEN,
    KEY_WORDS_MAX,
    PARAMS_MAX,
    STR_SLOT,
    SUMS_MAX,
    TRACK_ROWS,
    VARS_MAX, //
};

/// Words in a pair of 64-byte cache lines, which x86 prefetches together.
const LINE_PAIR: usize = 16;

/// Slots for each element. In a full map one in four is taken, so that of most keys that it does not hold the
/// first slot is free: a drop takes no longer than a hit.
const SLOTS_PER_ELT: usize = 4;

/// Words before the slots; see `pool`.
pub(super) const CONTROL_WORDS: usize = LINE_PAIR;

/// Words of an account at the head of a shard; see `account`.
pub(super) const ACCOUNT_WORDS: usize = LINE_PAIR;

/// Most words of an element's aux area: a task's name, the variables and the saved rows fit, all of
/// them strings.
const AUX_WORDS_MAX: usize = 8192;

const _: () = {
    let string = STR_SLOT / 8;
    let saved = PARAMS_MAX * string * TRACK_ROWS;
    assert!(COMM_LEN / 8 + VARS_MAX * (string + 1) + ACTIONS_MAX * 2 + saved <= AUX_WORDS_MAX);
};

// `Map::aux` counts these by 16 bits, and what is before them by 32.
const _: () = {
    let before = ((SLOTS_PER_ELT + KEY_WORDS_MAX) << BITS_MAX) + CONTROL_WORDS + 1;
    assert!(AUX_WORDS_MAX <= u16::MAX as usize && before <= u32::MAX as usize);
};

/// Most words of a key that is looked at as a whole: three numbers, or two and a short string. Longer ones
/// are for [`Map::glance_at`](super::Map::glance_at).
pub const SHORT_KEY_WORDS: usize = 4;

/// Bytes that the C implementation takes for an entry, less its key: 208 were measured with a key
/// of 8 bytes and one value, and 242 where the allocator keeps more for each of its five blocks.
const C_BYTES_LESS_KEY: usize = 200;

/// How many times the memory of the C implementation a map may take.
///
/// The aux words alone may be that much, as saved rows are kept in [`TRACK_ROWS`] copies. So they do
/// not count when it comes to how much there is for shards.
const C_TIMES_MAX: usize = 3;

const _: () = assert!(TRACK_ROWS <= C_TIMES_MAX);

/// The dimensions of a map.
///
/// A plain value without lock or lifetime; it never changes once built.
///
/// # Invariants
///
/// - `shards << cpu_shift` is at least the number of CPUs that it was built for.
/// - `cpu_shift` is 0 iff each CPU has a shard of its own.
/// - The offsets and `words` describe the layout above for these dimensions.
/// - `words` is at most `most_words`, unless one shard alone takes more.
/// - `aux_at` and `aux_words` are even, as [`crate::sync::Pair`] needs it.
///
/// # Examples
///
/// ```
/// use rust_hist::tracing_map::{Dimensions, Shape};
///
/// let dimensions = Dimensions { bits: 11, key_words: 1, aux_words: 0, sums: 2 };
/// let shape = Shape::new(dimensions, 4).ok_or("out of range")?;
/// assert_eq!(shape.elts(), 2048);
/// assert!(shape.words() * 8 <= 208 * 2048);
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub(super) elts: usize,
    pub(super) slot_mask: usize,
    pub(super) hash_shift: u32,
    pub(super) key_words: usize,
    pub(super) aux_words: usize,
    pub(super) sums: usize,
    pub(super) shards: usize,
    pub(super) cpu_shift: u32,
    pub(super) keys_at: usize,
    pub(super) aux_at: usize,
    pub(super) shards_at: usize,
    pub(super) shard_words: usize,
    words: usize,
    most_words: usize,
}

/// What a map has to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimensions {
    /// The number of elements, as a power of two. The language allows none below 2^7; a model check
    /// wants two.
    pub bits: u32,
    /// 64-bit words of a key.
    pub key_words: usize,
    /// 64-bit words that an element holds beside key and sums, an even number.
    pub aux_words: usize,
    /// Sums of an element; the first one is the hit count.
    pub sums: usize,
}

impl Dimensions {
    fn are_possible(&self) -> bool {
        self.bits <= BITS_MAX
            && (1..=KEY_WORDS_MAX).contains(&self.key_words)
            && self.aux_words <= AUX_WORDS_MAX
            && self.aux_words % 2 == 0
            && (1..=SUMS_MAX).contains(&self.sums)
    }

    /// Returns `times` the words that the C implementation needs for key and sums, and the aux words.
    fn words_of_c(&self, times: usize) -> Option<usize> {
        (C_BYTES_LESS_KEY / 8)
            .checked_add(self.key_words)?
            .checked_mul(times)?
            .checked_add(self.aux_words)?
            .checked_mul(1usize.checked_shl(self.bits)?)
    }
}

impl Shape {
    /// Returns the shape of a map for CPUs 0 to `nr_cpus - 1`, or `None` if a dimension is out of
    /// range.
    ///
    /// Each CPU gets a shard of its own as long as the map then takes at most three times the memory
    /// that the C implementation needs; past that, 2, 4, ... neighbouring CPUs share one. With an
    /// 8-byte key and one value that is the case on more than 36 CPUs. (In general on more than
    /// `(71 + 2 * key_words) / sums`; on a few less where the table is small.)
    pub fn new(dimensions: Dimensions, nr_cpus: u32) -> Option<Self> {
        let Dimensions {
            bits,
            key_words,
            aux_words,
            sums,
        } = dimensions;

        if !dimensions.are_possible() {
            return None;
        }

        let elts = 1usize.checked_shl(bits)?;
        let slots = elts.checked_mul(SLOTS_PER_ELT)?;

        let keys_at = slots.checked_add(CONTROL_WORDS)?;
        let aux_at = elts
            .checked_mul(key_words)?
            .checked_add(keys_at)?
            .checked_next_multiple_of(2)?;
        let shards_at = elts
            .checked_mul(aux_words)?
            .checked_add(aux_at)?
            .checked_next_multiple_of(LINE_PAIR)?;
        let shard_words = elts
            .checked_mul(sums)?
            .checked_add(ACCOUNT_WORDS)?
            .checked_next_multiple_of(LINE_PAIR)?;

        let budget = dimensions.words_of_c(C_TIMES_MAX)?;
        let affordable = budget
            .saturating_sub(shards_at)
            .checked_div(shard_words)
            .map_or(1, |shards| shards.max(1));

        // CAST: `u32` fits in `usize` on every architecture that Linux supports.
        let last_cpu = nr_cpus.checked_sub(1)? as usize;
        let cpu_shift = (0..u32::BITS).find(|&shift| last_cpu.wrapping_shr(shift) < affordable)?;
        let shards = last_cpu.wrapping_shr(cpu_shift).checked_add(1)?;

        let words = shards.checked_mul(shard_words)?.checked_add(shards_at)?;
        // What takes less than in C is not to take more by being rounded up.
        let most_words = dimensions
            .words_of_c(1)
            .filter(|&most| words <= most)
            .unwrap_or(budget);

        // INVARIANT: `last_cpu >> cpu_shift` is the last shard, and the shift stays 0 iff all CPUs
        // are affordable.
        Some(Self {
            elts,
            slot_mask: slots.checked_sub(1)?,
            hash_shift: u64::BITS.checked_sub(slots.ilog2())?,
            key_words,
            aux_words,
            sums,
            shards,
            cpu_shift,
            keys_at,
            aux_at,
            shards_at,
            shard_words,
            words,
            most_words,
        })
    }

    /// Returns how many 64-bit words of memory the map needs, all of them 0 in the beginning.
    pub fn words(&self) -> usize {
        self.words
    }

    /// Returns how many bytes the map may take, with all that its memory is rounded up by.
    pub fn most_bytes(&self) -> usize {
        self.most_words.saturating_mul(8)
    }

    /// Returns the words of a key.
    #[inline(always)]
    pub fn key_words(&self) -> usize {
        self.key_words
    }

    /// Returns how many keys the map can hold.
    pub fn elts(&self) -> usize {
        self.elts
    }

    /// Returns how many shards the sums are kept in.
    pub fn shards(&self) -> usize {
        self.shards
    }

    /// Returns how many CPUs share a shard.
    pub fn cpus_per_shard(&self) -> u64 {
        1u64.wrapping_shl(self.cpu_shift)
    }

    /// Says whether keys are so long that it pays to leave out the zeros at their end.
    #[inline(always)]
    pub(super) fn has_long_keys(&self) -> bool {
        self.key_words > SHORT_KEY_WORDS
    }

    /// Says whether each CPU has a shard of its own.
    pub fn per_cpu(&self) -> bool {
        self.cpu_shift == 0
    }

    /// Returns the words of a row copied out of the map: key, aux, sums.
    pub fn row_words(&self) -> usize {
        // OVERFLOW: their limits are below 2^10.
        self.key_words
            .wrapping_add(self.aux_words)
            .wrapping_add(self.sums)
    }

    /// Returns where in a row the sums begin.
    pub(super) fn sums_in_row(&self) -> usize {
        // OVERFLOW: as in `row_words`.
        self.key_words.wrapping_add(self.aux_words)
    }

    /// Returns where in a shard the sums of the element of this index begin.
    #[inline(always)]
    pub(super) fn sums_at(&self, index: usize) -> usize {
        // OVERFLOW: less than the words of a shard.
        index.wrapping_mul(self.sums).wrapping_add(ACCOUNT_WORDS)
    }

    /// Returns where the key of an element is.
    #[inline(always)]
    pub(super) fn key_at(&self, elt: Elt) -> usize {
        // OVERFLOW: below the number of words, since the index is less than that of elements.
        elt.index()
            .wrapping_mul(self.key_words)
            .wrapping_add(self.keys_at)
    }
}
