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
use crate::sync::{
    local_add,
    local_inc,
    Atomic,
    Relaxed, //
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
    /// A variable that the hit reads was not set.
    Ignored,
}

impl Ending {
    const ALL: [Self; 4] = [
        Self::Hit,
        Self::DroppedFull,
        Self::DroppedNested,
        Self::Ignored,
    ];

    /// The word of the account; a hit is counted by its element alone.
    #[inline(always)]
    pub(super) fn word(self) -> Option<usize> {
        match self {
            Self::Hit => None,
            Self::DroppedFull => Some(0),
            Self::DroppedNested => Some(1),
            Self::Ignored => Some(2),
        }
    }
}

/// The values of a call, each computed when it is wanted.
pub trait Values {
    /// Value `i`, which adds to sum `i + 1`.
    fn value(&self, i: usize) -> u64;
}

/// The number of calls of a trigger by their outcome, added up over the CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Calls that were counted in an element.
    pub hits: u64,
    /// Calls dropped because the table was full.
    pub dropped_full: u64,
    /// Calls dropped because too many were nested.
    pub dropped_nested: u64,
    /// Calls ignored because a variable was not set.
    pub ignored: u64,
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

    fn add(&mut self, ending: Ending, n: u64) {
        let total = match ending {
            Ending::Hit => &mut self.hits,
            Ending::DroppedFull => &mut self.dropped_full,
            Ending::DroppedNested => &mut self.dropped_nested,
            Ending::Ignored => &mut self.ignored,
        };
        *total = total.wrapping_add(n);
    }
}

/// The part of a map that one CPU writes on every hit.
///
/// It must be used on the CPU that it was asked for, without migrating in between: a CPU's own shard
/// is written by instructions that are atomic only against that CPU's interrupts.
#[derive(Clone, Copy)]
pub struct Shard<'a> {
    words: &'a [Atomic<u64>],
    /// Where the account is; the sums are behind it.
    at: usize,
    sums: usize,
    per_cpu: bool,
}

impl<'a> Shard<'a> {
    /// Returns the shard of `cpu`.
    #[inline(always)]
    pub(super) fn new(words: &'a [Atomic<u64>], shape: &Shape, cpu: u32) -> Self {
        // CAST: `u32` fits in `usize` on every architecture that Linux supports.
        let index = (cpu as usize).wrapping_shr(shape.cpu_shift);

        Self {
            words,
            // OVERFLOW: below the number of words for a CPU of the shape, see `Shape::new`; nothing
            // is found for another one.
            at: index
                .wrapping_mul(shape.shard_words)
                .wrapping_add(shape.shards_at),
            sums: shape.sums,
            per_cpu: shape.per_cpu(),
        }
    }

    /// Returns the word at `at` of the shard.
    #[inline(always)]
    fn word(&self, at: usize) -> Option<&'a Atomic<u64>> {
        self.words.get(self.at.wrapping_add(at))
    }

    /// Returns where the sums of an element are.
    #[inline(always)]
    fn sums_at(&self, elt: Elt) -> usize {
        elt.index()
            .wrapping_mul(self.sums)
            .wrapping_add(ACCOUNT_WORDS)
    }

    /// Adds to the word at `at` of the shard.
    #[inline(always)]
    fn add_at(&self, at: usize, v: u64) {
        if self.per_cpu {
            local_add(self.words, self.at.wrapping_add(at), v);
        } else if let Some(word) = self.word(at) {
            // ORDERING: a number by itself; readers want the sum, not an order.
            word.fetch_add(v, Relaxed);
        }
    }

    /// Adds one to the word at `at` of the shard.
    #[inline(always)]
    fn inc_at(&self, at: usize) {
        if self.per_cpu {
            local_inc(self.words, self.at.wrapping_add(at));
        } else if let Some(word) = self.word(at) {
            // ORDERING: the count need not be consistent with other words.
            word.fetch_add(1, Relaxed);
        }
    }

    /// Counts a call that ended in this way, and that is no hit.
    #[inline(always)]
    pub fn count(&self, ending: Ending) {
        if let Some(at) = ending.word() {
            self.inc_at(at);
        }
    }

    /// Counts a call that hit an element in the element's hit count, and adds `values` to its further sums,
    /// wrapping around. There is no sum past those of the shape.
    #[inline(always)]
    pub fn hit(&self, elt: Elt, values: &[u64]) {
        let at = self.sums_at(elt);

        self.inc_at(at);
        for (i, &v) in (1..self.sums).zip(values) {
            self.add_at(at.wrapping_add(i), v);
        }
    }

    /// As [`Shard::hit`], each value is computed when it is wanted.
    #[inline(always)]
    pub(super) fn hit_at_once(&self, elt: Elt, values: &impl Values) {
        let at = self.sums_at(elt);

        self.inc_at(at);
        if self.sums > 1 {
            self.add_at(at.wrapping_add(1), values.value(0));
            if self.sums > 2 {
                self.add_at(at.wrapping_add(2), values.value(1));
            }
        }
    }
}

impl<S, H> Map<S, H>
where
    S: Deref<Target = [Atomic<u64>]>,
    H: KeyHash,
{
    /// Returns what `cpu` writes on a hit. The caller is on that CPU and stays there.
    #[inline(always)]
    pub fn shard(&self, cpu: u32) -> Shard<'_> {
        Shard::new(self.words(), self.shape(), cpu)
    }

    /// Adds up the account of all CPUs, with or without calls in progress.
    ///
    /// It adds up the hit counts of all elements, so the time grows with the number of elements in use.
    pub fn account(&self) -> Account {
        self.account_of(self.hits())
    }

    /// Adds up the account of all CPUs for a caller that knows the number of hits already.
    pub fn account_of(&self, hits: u64) -> Account {
        let mut account = Account::default();

        for ending in Ending::ALL {
            let n = ending.word().map_or(hits, |at| self.over_shards(at));
            account.add(ending, n);
        }
        account
    }

    /// Adds up the hit counts of all elements, one shard after the other. That of a free element is 0.
    pub fn hits(&self) -> u64 {
        let shape = self.shape();
        let used = self.used();
        let mut hits: u64 = 0;

        for shard in 0..shape.shards {
            // OVERFLOW: less than the number of words of the map, which `Shape::new` computes without
            // overflow.
            let at = shard
                .wrapping_mul(shape.shard_words)
                .wrapping_add(shape.shards_at)
                .wrapping_add(ACCOUNT_WORDS);
            let sums = self.words().get(at..).unwrap_or(&[]);
            for count in sums.iter().step_by(shape.sums.max(1)).take(used) {
                // ORDERING: the count need not be consistent with other words; it is exact once the calls that
                // add to it are complete.
                hits = hits.wrapping_add(count.load(Relaxed));
            }
        }
        hits
    }

    /// Returns sum `i` of an element, added up over the CPUs; 0 past the sums of the shape.
    pub fn sum(&self, elt: Elt, i: usize) -> u64 {
        if i >= self.shape().sums {
            return 0;
        }
        // OVERFLOW: less than the words of a shard.
        self.over_shards(
            elt.index()
                .wrapping_mul(self.shape().sums)
                .wrapping_add(ACCOUNT_WORDS)
                .wrapping_add(i),
        )
    }

    /// Adds up the word at `at` of each shard, wrapping around.
    fn over_shards(&self, at: usize) -> u64 {
        let shape = self.shape();
        let words = self.words();
        // OVERFLOW: below the number of words up to the last shard; one round more is not used.
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
