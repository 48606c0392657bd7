// SPDX-License-Identifier: GPL-2.0

//! The memory layout of a map.
//!
//! ```text
//! control | slots (4 << bits) | keys | aux | shard 0: account, sums | shard 1: account, sums | ...
//! ```
//!
//! All parts are 64-bit words of one allocation. The control words are written only when a key is inserted, a slot and
//! a key once, and aux words once except for variables. All words that every hit writes are in the shard of its CPU,
//! and no two shards share a pair of cache lines.
//!
//! Context: any. Never allocates.

use super::{
    key::SHORT_KEY_WORDS,
    tally::SPAN,
    Elt,
    Merge, //
};
use crate::limits::{
    ACTIONS_MAX,
    COMM_LEN,
    C_SUMS_MAX,
    GROWN_BITS_MAX,
    KEY_WORDS_MAX,
    PARAMS_MAX,
    STR_SLOT,
    SUM_WORDS_MAX,
    TRACK_ROWS,
    VARS_MAX, //
};

/// Words in a pair of 64-byte cache lines, which x86 prefetches together.
const LINE_PAIR: usize = 16;

/// Slots for each element. In a full map one slot in four is taken, so for most keys that are not in the map the first
/// slot is free, and a dropped hit takes no longer than any other.
const SLOTS_PER_ELT: usize = 4;

/// Words before the slots, of which `pool.rs` uses two.
pub(super) const CONTROL_WORDS: usize = LINE_PAIR;

/// Words at the start of a shard, of which `account.rs` uses six.
pub(super) const ACCOUNT_WORDS: usize = LINE_PAIR;

/// Maximum number of aux words of an element: enough for a task's name, all variables and all saved rows,
/// even if all of them are strings.
const AUX_WORDS_MAX: usize = 8192;

const _: () = {
    let string = STR_SLOT / 8;
    let saved = PARAMS_MAX * string * TRACK_ROWS;
    assert!(COMM_LEN / 8 + VARS_MAX * (string + 1) + ACTIONS_MAX * 2 + saved <= AUX_WORDS_MAX);
};

/// Bytes of an entry in the C implementation, without its key. An entry with a key of 8 bytes and one value was
/// measured to take 208 bytes, and 242 with an allocator that has more overhead for each of its five blocks.
const C_BYTES_LESS_KEY: usize = 200;

/// The maximum memory of a map, as a multiple of the memory of the C implementation.
///
/// The aux words alone may take this much, as saved rows have [`TRACK_ROWS`] copies. So they are not counted as memory
/// available for shards.
const C_TIMES_MAX: usize = 3;

const _: () = assert!(TRACK_ROWS <= C_TIMES_MAX);

/// For each word of an entry that C has no room for, the memory of shards for at most this many CPUs may be added:
/// otherwise a trigger with more values would have fewer shards than one with few.
const MORE_SHARDS: usize = 64;

/// The memory layout of a map. A plain value, which never changes once created.
///
/// # Invariants
///
/// - `shards << cpu_shift` is at least the number of CPUs that the shape was created for.
/// - `cpu_shift` is 0 iff each CPU has a shard of its own.
/// - The offsets and `words` describe the layout shown above for these dimensions.
/// - `words` is at most `most_words`, unless one shard alone takes more, and less than 2^32.
///
/// # Examples
///
/// ```
/// use rust_hist::tracing_map::{Dimensions, Shape};
///
/// let dimensions = Dimensions { bits: 11, key_words: 1, sums: 2, ..Dimensions::default() };
/// let shape = Shape::new(dimensions, 4).ok_or("out of range")?;
/// assert_eq!(shape.elts, 2048);
/// assert!(shape.words * 8 <= 208 * 2048);
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The number of elements, which is the number of keys that the map can hold.
    pub elts: usize,
    /// The number of taken elements at which a lookup that finds no key reports a full table; never reached if an
    /// insertion without room must do more than to count the drop.
    pub(super) full_at: usize,
    /// The number of taken elements at which another map should replace this one; all elements if none should.
    pub(super) plenty: usize,
    /// Whether there are sums for hits of keys that find no room, after the sums of the last element.
    has_others: bool,
    pub(super) slot_mask: usize,
    pub(super) hash_shift: u32,
    /// The number of words of a key.
    pub key_words: usize,
    /// The number of aux words of an element, counted in pairs, and the index of the first element's pairs.
    pub(super) aux_pairs: u16,
    pub(super) aux_pairs_at: u32,
    /// The number of sums of a row.
    pub sums: usize,
    /// How the words of an element are merged over the shards.
    pub merge: Merge,
    /// The number of shards.
    pub shards: usize,
    pub(super) cpu_shift: u32,
    pub(super) keys_at: usize,
    pub(super) shards_at: usize,
    pub(super) shard_words: usize,
    /// The number of 64-bit words of memory that the map needs, all of which must be 0.
    pub words: usize,
    most_words: usize,
}

/// The dimensions of a map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dimensions {
    /// log2 of the number of elements. The language requires at least 7; model checks use less.
    pub bits: u32,
    /// log2 of the number of elements up to which larger maps replace this one; at most `bits` if none does.
    pub grows_to: u32,
    /// Whether another map replaces this one even if it is not larger, as starts in it expire.
    pub expires: bool,
    /// Whether hits of keys that find no room are summed together, instead of being dropped.
    pub others: bool,
    /// 64-bit words of a key.
    pub key_words: usize,
    /// 64-bit aux words of an element (variables, saved rows), an even number.
    pub aux_words: usize,
    /// The number of sums of an element; the first one is the hit count. Other statistics of a value count as sums,
    /// too.
    pub sums: usize,
}

impl Dimensions {
    fn are_possible(&self) -> bool {
        self.bits.max(self.grows_to) <= GROWN_BITS_MAX
            && (1..=KEY_WORDS_MAX).contains(&self.key_words)
            && self.aux_words <= AUX_WORDS_MAX
            && self.aux_words % 2 == 0
            && (1..=SUM_WORDS_MAX).contains(&self.sums)
    }

    /// Returns `times` the words that the C implementation needs without aux words, plus this map's aux words.
    fn words_of_c(&self, times: usize) -> Option<usize> {
        (C_BYTES_LESS_KEY / 8)
            .checked_add(self.key_words)?
            .checked_mul(times)?
            .checked_add(self.aux_words)?
            .checked_mul(1usize.checked_shl(self.bits)?)
    }

    /// Returns the words that may be added to shards for sums that C has no room for.
    fn more_words(&self, nr_cpus: u32) -> Option<usize> {
        // CAST: `u32` fits in `usize` on every architecture that Linux supports.
        self.sums
            .saturating_sub(C_SUMS_MAX)
            .checked_mul(MORE_SHARDS.min(nr_cpus as usize))?
            .checked_mul(1usize.checked_shl(self.bits)?)
    }
}

impl Shape {
    /// Returns the shape of a map for CPUs 0 to `nr_cpus - 1`, or `None` if a dimension is out of range.
    ///
    /// Each CPU gets a shard of its own if the map then takes at most three times the memory of the C implementation;
    /// if not, 2, 4, ... neighbouring CPUs share a shard. With an 8-byte key and one value, CPUs share on machines with
    /// more than 36 CPUs. (In general more than `(71 + 2 * key_words) / sums`, and a few less if the table is small.)
    /// Each sum after the third may take 8 more bytes of an entry for each of up to 64 CPUs.
    pub fn new(dimensions: Dimensions, nr_cpus: u32) -> Option<Self> {
        Self::with(dimensions, Merge::default(), nr_cpus)
    }

    /// Returns the shape of a map whose sums are merged by `merge`.
    pub fn with(dimensions: Dimensions, merge: Merge, nr_cpus: u32) -> Option<Self> {
        let Dimensions {
            bits,
            grows_to,
            expires,
            others,
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
            .checked_add(others.into())?
            .checked_mul(sums)?
            .checked_add(ACCOUNT_WORDS)?
            .checked_next_multiple_of(LINE_PAIR)?;

        // A hit accesses `SPAN` words from the last element's hit count on, see `Shard::keep`.
        let behind = match sums > C_SUMS_MAX || !merge.is_plain() {
            true => SPAN,
            false => 0,
        };
        let budget = dimensions
            .words_of_c(C_TIMES_MAX)?
            .checked_add(dimensions.more_words(nr_cpus)?)?;
        let affordable = budget
            .saturating_sub(shards_at)
            .checked_div(shard_words)
            .map_or(1, |shards| shards.max(1));

        // CAST: `u32` fits in `usize` on every architecture that Linux supports.
        let last_cpu = nr_cpus.checked_sub(1)? as usize;
        let cpu_shift = (0..u32::BITS).find(|&shift| last_cpu.wrapping_shr(shift) < affordable)?;
        let shards = last_cpu.wrapping_shr(cpu_shift).checked_add(1)?;

        let words = shards
            .checked_mul(shard_words)?
            .checked_add(shards_at)?
            .checked_add(behind)?;
        u32::try_from(words).ok()?;
        // A map that takes less memory than C's must not take more because its allocation is rounded up.
        let most_words = dimensions
            .words_of_c(1)
            .filter(|&most| words <= most)
            .unwrap_or(budget.checked_add(behind)?);

        let is_replaced = bits < grows_to || expires;
        let last = if is_replaced { elts.div_ceil(4) } else { 0 };

        // INVARIANT: `last_cpu >> cpu_shift` is the last shard, so the shards are enough for all CPUs. The
        // shift is 0 iff there are as many shards as CPUs. The offsets were computed in the order of the
        // layout, `aux_at` was rounded up to an even number, and `aux_words` was checked to be even, so halves are exact.
        Some(Self {
            elts,
            full_at: if is_replaced || others {
                usize::MAX
            } else {
                elts
            },
            // OVERFLOW: `last` is a quarter of `elts`.
            plenty: elts.wrapping_sub(last),
            has_others: others,
            slot_mask: slots.checked_sub(1)?,
            hash_shift: u64::BITS.checked_sub(slots.ilog2())?,
            key_words,
            aux_pairs: u16::try_from(aux_words / 2).ok()?,
            aux_pairs_at: u32::try_from(aux_at / 2).ok()?,
            sums,
            merge,
            shards,
            cpu_shift,
            keys_at,
            shards_at,
            shard_words,
            words,
            most_words,
        })
    }

    /// Returns the number of [pairs](crate::sync::Pair) of words that the map needs.
    pub fn pairs(&self) -> usize {
        self.words.div_ceil(2)
    }

    /// Returns the maximum number of bytes of the map's allocation, including the excess from rounding up.
    pub fn most_bytes(&self) -> usize {
        self.most_words.saturating_mul(8)
    }

    /// Returns the element that stands for all keys that find no room, which has sums but no key; `None` if their hits
    /// are dropped.
    #[inline]
    pub fn others(&self) -> Option<Elt> {
        // CAST: there are at most 2^20 elements.
        self.has_others.then_some(Elt(self.elts as u32))
    }

    /// Returns whether another map should replace this one when it is crowded.
    #[inline]
    pub fn is_replaced(&self) -> bool {
        self.plenty < self.elts
    }

    /// Returns the number of CPUs that share a shard.
    pub fn cpus_per_shard(&self) -> u64 {
        1u64.wrapping_shl(self.cpu_shift)
    }

    /// Returns whether keys are so long that leaving out zeros at their end pays.
    #[inline]
    pub(super) fn has_long_keys(&self) -> bool {
        self.key_words > SHORT_KEY_WORDS
    }

    /// Returns whether each CPU has a shard of its own.
    pub fn per_cpu(&self) -> bool {
        self.cpu_shift == 0
    }

    /// Returns the number of aux words of an element.
    pub fn aux_words(&self) -> usize {
        // OVERFLOW: at most 8192.
        usize::from(self.aux_pairs).wrapping_mul(2)
    }

    /// Returns the index of the first aux word of the first element.
    pub(super) fn aux_at(&self) -> usize {
        // CAST: less than the number of words.
        (self.aux_pairs_at as usize).wrapping_mul(2)
    }

    /// Returns the number of words of a row copied out of the map: key, aux, sums.
    pub fn row_words(&self) -> usize {
        // OVERFLOW: a key has at most 129 words, the aux part at most 8192, and there are at most 81 sums.
        self.sums_in_row().wrapping_add(self.sums)
    }

    /// Returns the index of the first sum in a row.
    pub(super) fn sums_in_row(&self) -> usize {
        // OVERFLOW: a key has at most 129 words, and the aux part at most 8192.
        self.key_words.wrapping_add(self.aux_words())
    }

    /// Returns the index of the first slot in which keys with this hash may be.
    #[inline]
    pub(super) fn home(&self, hash: u64) -> usize {
        // CAST: the shift leaves the top bits alone, fewer than 32.
        hash.wrapping_shr(self.hash_shift) as usize
    }

    /// Returns the index, in a shard, of the first sum of the element `index`.
    #[inline]
    pub(super) fn sums_at(&self, index: usize) -> usize {
        // OVERFLOW: less than `shard_words`, which `Shape::new` computes without overflow.
        index.wrapping_mul(self.sums).wrapping_add(ACCOUNT_WORDS)
    }

    /// Returns the index of the first word of a shard.
    #[inline]
    pub(super) fn shard_at(&self, shard: usize) -> usize {
        // OVERFLOW: for a shard of the shape, less than the number of words, which `Shape::new` computes without
        // overflow.
        shard
            .wrapping_mul(self.shard_words)
            .wrapping_add(self.shards_at)
    }

    /// Returns the index of the first key word of an element.
    #[inline]
    pub(super) fn key_at(&self, elt: Elt) -> usize {
        // OVERFLOW: less than `aux_at`, which `Shape::new` computes without overflow, since the index of an element is
        // less than the number of elements.
        elt.index()
            .wrapping_mul(self.key_words)
            .wrapping_add(self.keys_at)
    }
}
