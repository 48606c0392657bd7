// SPDX-License-Identifier: GPL-2.0

//! The per-CPU part of a map: the account, and the CPU's part of the sums.
//!
//! A shard belongs to one CPU, or on a machine with very many CPUs to a few neighbours. Interrupts and NMIs
//! on the CPU write to the same words, by single instructions or atomic operations, so that no addition is
//! lost. A reader adds up the shards.
//!
//! Context: writing: any, NMI included, with preemption off. Reading: any.

use super::{
    Elt,
    KeyHash,
    Map,
    Shape, //
};
use crate::{
    limits::C_SUMS_MAX,
    sync::{
        local_add,
        local_inc,
        local_raise,
        Atomic,
        Pair,
        Relaxed, //
    }, //
};
use core::ops::Deref;

use super::shape::ACCOUNT_WORDS;

/// The outcome of one call of a trigger. Each call has exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The hit was counted in the element of its key.
    Hit,
    /// The key was not in the map, and all elements were taken.
    DroppedFull,
    /// Too many hits were nested on the CPU.
    DroppedNested,
    /// A variable that the hit reads was not set, or the call came without a record.
    Ignored,
}

impl Ending {
    /// Returns the index of the account's word for this outcome; `None` for a hit, which its element counts.
    #[inline]
    pub(super) fn word(self) -> Option<usize> {
        match self {
            Self::Hit => None,
            Self::DroppedFull => Some(0),
            Self::DroppedNested => Some(1),
            Self::Ignored => Some(2),
        }
    }
}

/// A loss of a hit's variables or actions. The hit itself is counted as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// A row that `save()` had no room for, as more hits wrote to one entry at once than there are rows.
    Save = 3,
    /// A record of a synthetic event that could not be written.
    Trace,
    /// An action that `limit()` has suppressed.
    Limit,
    /// The end of a string that was too long for its place in the key.
    Cut,
}

impl Loss {
    /// Returns the index of the account's word for this loss.
    const fn word(self) -> usize {
        // CAST: the index of a word; the endings have those before it.
        self as usize
    }
}

/// The values of a call, each computed when it is needed.
pub trait Values {
    /// Value `i`, which adds to sum `i + 1`.
    fn value(&self, i: usize) -> u64;
}

/// The numbers of calls of a trigger by their outcome, and of losses, added up over the CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Calls that were counted in an element.
    pub hits: u64,
    /// Calls dropped because the table was full.
    pub dropped_full: u64,
    /// Calls dropped because too many were nested.
    pub dropped_nested: u64,
    /// Calls ignored because a variable was not set, or because they came without a record.
    pub ignored: u64,
    /// Rows that `save()` had no room for.
    pub lost_saves: u64,
    /// Records of synthetic events that could not be written.
    pub lost_traces: u64,
    /// Actions that `limit()` has suppressed.
    pub lost_limited: u64,
    /// Strings of keys that were longer than the key's room for them.
    pub cut_strings: u64,
    /// With `expire()`: starts that were set again before an end consumed them. Not counted by the map, but by
    /// [`Map::left`].
    pub overwritten: u64,
    /// With `expire()`: starts that no end has consumed, and that are gone. Also counted by [`Map::left`].
    pub expired: u64,
}

impl Account {
    /// Returns the number of dropped calls.
    pub fn dropped(&self) -> u64 {
        self.dropped_full.wrapping_add(self.dropped_nested)
    }

    /// Returns the number of all calls.
    pub fn calls(&self) -> u64 {
        self.hits
            .wrapping_add(self.dropped())
            .wrapping_add(self.ignored)
    }

    /// Returns the sums of two accounts.
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            hits: self.hits.wrapping_add(other.hits),
            dropped_full: self.dropped_full.wrapping_add(other.dropped_full),
            dropped_nested: self.dropped_nested.wrapping_add(other.dropped_nested),
            ignored: self.ignored.wrapping_add(other.ignored),
            lost_saves: self.lost_saves.wrapping_add(other.lost_saves),
            lost_traces: self.lost_traces.wrapping_add(other.lost_traces),
            lost_limited: self.lost_limited.wrapping_add(other.lost_limited),
            cut_strings: self.cut_strings.wrapping_add(other.cut_strings),
            overwritten: self.overwritten.wrapping_add(other.overwritten),
            expired: self.expired.wrapping_add(other.expired),
        }
    }
}

impl<const N: usize> Values for [u64; N] {
    #[inline]
    fn value(&self, i: usize) -> u64 {
        self.get(i).copied().unwrap_or(0)
    }
}

/// The part of a map that one CPU writes on every hit.
///
/// Use it only on its CPU, without migrating in between: a CPU's own shard is written by instructions that are atomic
/// only against interrupts of that CPU.
#[derive(Clone, Copy)]
pub struct Shard<'a> {
    /// All words of the map.
    pub(super) words: &'a [Atomic<u64>],
    /// Index of the first word of the account; the sums follow it.
    at: usize,
    shape: &'a Shape,
    /// Whether no other CPU writes to this shard.
    pub(super) is_own: bool,
}

impl<'a> Shard<'a> {
    /// Returns the shard of `cpu`, as [`MapView::shard`](super::MapView::shard) does.
    #[inline(always)]
    pub(super) fn new(
        words: &'a [Atomic<u64>],
        shape: &'a Shape,
        cpu: u32,
        may_share: bool,
    ) -> Self {
        debug_assert!(may_share || shape.per_cpu());
        // CAST: `u32` fits in `usize` on every architecture that Linux supports.
        let index = match may_share {
            true => (cpu as usize).wrapping_shr(shape.cpu_shift),
            false => cpu as usize,
        };

        Self {
            words,
            // For a CPU that the shape is not for, no word is found at the index.
            at: shape.shard_at(index),
            shape,
            is_own: !may_share || shape.per_cpu(),
        }
    }

    /// Adds the words of an element of another map with the same sums, already merged over that map's CPUs.
    pub(super) fn add_row(&self, elt: Elt, sums: &[u64]) {
        let merge = &self.shape.merge;

        for (i, &sum) in (0..self.shape.sums).zip(sums) {
            // OVERFLOW: below the number of words.
            let at = self.count_at(elt).wrapping_add(i);

            match merge.takes_largest(i) {
                true => self.raise(self.words, at, sum),
                false => self.add_to(self.words, at, sum),
            }
        }
    }

    /// Adds the account of another map; `word` returns each of its words.
    pub(super) fn add_account(&self, word: impl Fn(usize) -> u64) {
        for i in 0..ACCOUNT_WORDS {
            // OVERFLOW: below the number of words.
            self.add_to(self.words, self.at.wrapping_add(i), word(i));
        }
    }

    /// Adds `v` to word `at` of `words`, which are in this shard.
    #[inline]
    pub(super) fn add_to(&self, words: &[Atomic<u64>], at: usize, v: u64) {
        if self.is_own {
            local_add(words, at, v);
        } else if let Some(word) = words.get(at) {
            // ORDERING: the word publishes nothing else; readers want the sum, not an order.
            word.fetch_add(v, Relaxed);
        }
    }

    /// Raises word `at` of `words`, which are in this shard, to `v`, unless it is as large already.
    #[inline(always)]
    pub(super) fn raise(&self, words: &[Atomic<u64>], at: usize, v: u64) {
        if self.is_own {
            local_raise(words, at, v);
        } else if let Some(word) = words.get(at) {
            // ORDERING: the word publishes nothing else, here and below; readers want the largest number, not an order.
            let mut held = word.load(Relaxed);

            while held < v {
                match word.cmpxchg(held, v, Relaxed) {
                    Ok(_) => return,
                    Err(now) => held = now,
                }
            }
        }
    }

    /// Returns the index, among all words of the map, of the hit count of an element.
    #[inline]
    pub(super) fn count_at(&self, elt: Elt) -> usize {
        // OVERFLOW: below the number of words.
        self.at.wrapping_add(self.shape.sums_at(elt.index()))
    }

    /// Adds 1 to word `at` of the map.
    #[inline]
    fn inc(&self, at: usize) {
        if self.is_own {
            local_inc(self.words, at);
        } else if let Some(word) = self.words.get(at) {
            // ORDERING: the word publishes nothing else; readers want the sum, not an order.
            word.fetch_add(1, Relaxed);
        }
    }

    /// Counts a call with this outcome; does nothing for a hit, which is counted in its element.
    #[inline]
    pub fn count(&self, ending: Ending) {
        if let Some(at) = ending.word() {
            // OVERFLOW: below the number of words.
            self.inc(self.at.wrapping_add(at));
        }
    }

    /// Counts `n` losses of this kind.
    #[cold]
    #[inline(never)]
    pub fn lose(&self, loss: Loss, n: u64) {
        // OVERFLOW: below the number of words.
        self.add_to(self.words, self.at.wrapping_add(loss.word()), n);
    }

    /// Counts a call that hit an element in the element's hit count, and adds the values to its further sums,
    /// wrapping around. Each value is computed when it is added; there is none past the sums of the shape.
    #[inline(always)]
    pub fn hit(&self, elt: Elt, values: &impl Values) {
        // OVERFLOW: the indices of the further sums are below the number of words, too.
        let at = self.count_at(elt);
        let sums = self.shape.sums;

        self.inc(at);
        // No loop: most triggers have at most one value. Triggers with more values than C has room for use tallies.
        const { assert!(C_SUMS_MAX == 3) };
        if sums > 1 {
            self.add_to(self.words, at.wrapping_add(1), values.value(0));
            if sums > 2 {
                self.add_to(self.words, at.wrapping_add(2), values.value(1));
            }
        }
    }
}

impl<S, H> Map<S, H>
where
    S: Deref<Target = [Pair]>,
    H: KeyHash,
{
    /// Returns the part of the map that `cpu` writes on a hit. The caller must be on that CPU and stay there.
    #[inline]
    pub fn shard(&self, cpu: u32) -> Shard<'_> {
        self.view().shard(cpu, true)
    }

    /// Adds up the account of all CPUs, with or without calls in progress.
    ///
    /// It adds up the hit counts of all elements, so the time grows with the number of elements in use.
    pub fn account(&self) -> Account {
        self.account_of(self.hits())
    }

    /// Adds up the account of all CPUs for a caller that knows the number of hits already.
    pub fn account_of(&self, hits: u64) -> Account {
        let ended = |ending: Ending| ending.word().map_or(0, |at| self.over_shards(at));
        let lost = |loss: Loss| self.over_shards(loss.word());

        Account {
            hits,
            dropped_full: ended(Ending::DroppedFull),
            dropped_nested: ended(Ending::DroppedNested),
            ignored: ended(Ending::Ignored),
            lost_saves: lost(Loss::Save),
            lost_traces: lost(Loss::Trace),
            lost_limited: lost(Loss::Limit),
            cut_strings: lost(Loss::Cut),
            ..Account::default()
        }
    }

    /// Adds up the hit counts of all elements, one shard after the other. A free element has a hit count of 0.
    pub fn hits(&self) -> u64 {
        let shape = self.shape();
        let used = self.used();
        let mut hits: u64 = 0;

        for shard in 0..shape.shards {
            // OVERFLOW: less than the number of words of the map.
            let at = shape.shard_at(shard).wrapping_add(ACCOUNT_WORDS);
            let sums = self.words().get(at..).unwrap_or(&[]);
            for count in sums.iter().step_by(shape.sums.max(1)).take(used) {
                // ORDERING: the count need not be consistent with other words; it is exact once the calls that
                // add to it are complete.
                hits = hits.wrapping_add(count.load(Relaxed));
            }
        }
        match shape.others() {
            Some(others) => hits.wrapping_add(self.sum(others, 0)),
            None => hits,
        }
    }

    /// Returns sum `i` of an element, added up over the CPUs, so `i` must be no maximum or minimum; 0 past the sums of
    /// the shape.
    pub fn sum(&self, elt: Elt, i: usize) -> u64 {
        if i >= self.shape().sums {
            return 0;
        }
        // OVERFLOW: less than the words of a shard.
        self.over_shards(self.shape().sums_at(elt.index()).wrapping_add(i))
    }

    /// Copies the sums of the keys that found no room to `sums`, as many as the shape has; returns whether any hit was
    /// counted there.
    pub fn copy_others(&self, sums: &mut [u64]) -> bool {
        let Some(others) = self.shape().others() else {
            return false;
        };

        self.copy_sums(others, sums);
        sums.first().is_some_and(|&hits| hits != 0)
    }

    /// Adds up the word at `at` of each shard, wrapping around.
    pub(super) fn over_shards(&self, at: usize) -> u64 {
        let shape = self.shape();
        let words = self.words();
        // OVERFLOW: below the number of words up to the last shard; the index after that is not used.
        let mut at = shape.shards_at.wrapping_add(at);
        let mut sum: u64 = 0;

        for _ in 0..shape.shards {
            if let Some(word) = words.get(at) {
                // ORDERING: the sum need not be consistent with other words; it is exact once the calls that
                // add to it are complete.
                sum = sum.wrapping_add(word.load(Relaxed));
            }
            at = at.wrapping_add(shape.shard_words);
        }
        sum
    }
}
