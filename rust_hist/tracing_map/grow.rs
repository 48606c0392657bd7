// SPDX-License-Identifier: GPL-2.0

//! Growth of a table: a larger map replaces a full one and takes over all that it has counted.
//!
//! There is no C counterpart.
//!
//! The new map reserves for each element of the old map the element with the same index, so no row lacks room, however
//! many keys are inserted meanwhile. The steps are:
//!
//! 1. [`Map::reserve_for`] and [`Map::take_keys`], while hits use the old map and none knows the new one: later hits
//!    with these keys find them in the new map;
//! 2. hits start to use the new map;
//! 3. once no hit uses the old map any more, [`Map::take_rows`] adds its rows to the new map, with the keys that were
//!    inserted since step 1, and [`Map::take_account`] adds the account;
//! 4. [`Map::release`] frees the reserved elements that were not needed.
//!
//! Until step 4 the counts of the new map are too low, and nothing may read it. The old map keeps its counts.
//!
//! The first aux words of an element, `fixed` in number, are written when the key is inserted, and are copied. The
//! others are variables, all of them numbers, and tracked values, which the caller takes over. Hits look for them in
//! both maps until step 4 is done; `tracing_map/moving.rs` moves the numbers, and [`TrackCell::take_over`] the tracked
//! values.
//!
//! [`TrackCell::take_over`]: super::TrackCell::take_over
//!
//! Context: process. Never allocates, sleeps or locks.

use super::{
    copy_words,
    key::{
        Key,
        Whole, //
    },
    slot::Slot,
    Elt,
    Ending,
    KeyHash,
    Map, //
};
use crate::{
    limits::{
        KEY_WORDS_MAX,
        SUM_WORDS_MAX, //
    },
    sync::{
        Acquire,
        Pair,
        Relaxed, //
    }, //
};
use core::ops::{
    Deref,
    Range, //
};

/// The number of slots that are processed at a time, which takes some microseconds.
const SLOTS: usize = 256;

/// The smallest ratio between the sizes of the next map and this one.
const GROWTH: usize = 4;

/// The number of keys expected while a table grows, as a multiple of the keys that were refused before.
const HASTE: usize = 4;

impl<S, H> Map<S, H>
where
    S: Deref<Target = [Pair]>,
    H: KeyHash,
{
    /// Returns whether a larger map should replace this one. Counts the used slots, as many of the elements that were
    /// reserved for keys of a smaller map may have been freed.
    pub fn is_crowded(&self) -> bool {
        let plenty = self.shape().plenty;

        self.used() >= plenty && self.published().count() >= plenty
    }

    /// Returns the number of calls that found no room, including those taken over from a smaller map.
    pub fn refused(&self) -> u64 {
        let others = self.shape().others();
        let dropped = Ending::DroppedFull.word();

        dropped
            .map_or(0, |at| self.over_shards(at))
            .wrapping_add(others.map_or(0, |elt| self.sum(elt, 0)))
    }

    /// Returns the number of elements that a larger map needs, at least [`GROWTH`] times the present number.
    /// `taken_over` is the number of refused calls that came from a smaller map.
    ///
    /// A refused key comes again and is refused again, so the refused calls are divided by the mean hits of the keys
    /// that got the last elements. More calls are refused until the larger map is ready, so it gets room for [`HASTE`]
    /// times as many keys.
    pub fn wanted(&self, taken_over: u64) -> usize {
        let refused = self.refused().saturating_sub(taken_over);
        let last = || {
            self.published()
                .filter(|elt| elt.index() >= self.shape().plenty)
        };
        let hits = last().fold(0u64, |hits, elt| hits.saturating_add(self.sum(elt, 0)));
        // CAST: `usize` has 64 bits.
        let keys = refused.saturating_mul(last().count() as u64) / hits.max(1);
        let elts = self.shape().elts;
        let more = usize::try_from(keys).unwrap_or(usize::MAX);

        elts.saturating_mul(GROWTH)
            .max(more.saturating_mul(HASTE).saturating_add(elts))
    }

    /// Returns the ranges of all slots, each of which takes little time to process.
    pub fn slot_ranges(&self) -> impl Iterator<Item = Range<usize>> {
        let slots = self.slots().len();

        (0..slots)
            .step_by(SLOTS)
            .map(move |at| at..at.saturating_add(SLOTS).min(slots))
    }

    /// Reserves an element for each one of `old`, which has fewer elements. This map must be empty.
    pub fn reserve_for(&mut self, old: &Self) {
        self.pool().reserve(old.shape().elts);
    }

    /// Inserts the keys in a range of the slots of `old`. Hits may use `old` meanwhile.
    pub fn take_keys(&mut self, old: &Self, slots: Range<usize>, fixed: u16) {
        for elt in old.elts_in(slots) {
            self.take_key(old, elt, fixed);
        }
    }

    /// Adds the sums of the rows in a range of the slots of `old`, which no hit uses any more. The caller must be on
    /// `cpu`, stay there, and pass each slot once. `carry` gets the aux words of the new and of the old element, and
    /// takes over those after the fixed words.
    pub fn take_rows(
        &self,
        old: &Self,
        slots: Range<usize>,
        cpu: u32,
        fixed: u16,
        carry: impl Fn(&[Pair], &[Pair]),
    ) {
        let shard = self.shard(cpu);
        let mut sums = [0; SUM_WORDS_MAX];
        let sums = sums.get_mut(..self.shape().sums).unwrap_or(&mut []);

        for elt in old.elts_in(slots) {
            if let Some(own) = self.take_key(old, elt, fixed) {
                old.copy_sums(elt, sums);
                shard.add_row(own, sums);
                carry(self.aux(own), old.aux(elt));
            }
        }
    }

    /// Adds the counts of `old` besides its rows, once no hit uses it any more. The caller must be on `cpu`, stay
    /// there, and call this once.
    pub fn take_account(&self, old: &Self, cpu: u32) {
        let shard = self.shard(cpu);
        let mut sums = [0; SUM_WORDS_MAX];
        let sums = sums.get_mut(..self.shape().sums).unwrap_or(&mut []);

        shard.add_account(|word| old.over_shards(word));
        if let Some(own) = self.shape().others().filter(|_| old.copy_others(sums)) {
            shard.add_row(own, sums);
        }
    }

    /// Frees the elements that were reserved for elements of `old` without a slot there. Call it once, after all rows
    /// were taken over.
    pub fn release(&self, old: &Self) {
        let (pool, old_pool) = (self.pool(), old.pool());
        let never_taken = (0u32..).take(old.shape().elts).skip(old.used()).map(Elt);

        // No insertion is in progress in `old`, so an element without a slot is on its stack or was never taken.
        for elt in never_taken.chain(old_pool.given_back()) {
            pool.give_back(elt);
        }
    }

    /// Iterates over the elements that a range of the slots names.
    fn elts_in(&self, slots: Range<usize>) -> impl Iterator<Item = Elt> + '_ {
        let slots = self.slots().get(slots).unwrap_or(&[]);

        // ORDERING: pairs with `Release` in `publish`; key and aux words are visible.
        slots
            .iter()
            .filter_map(|slot| Slot(slot.load(Acquire)).elt())
    }

    /// Returns this map's element for the key of `elt` in `old`: the reserved element with the same index, unless a hit
    /// has inserted the key meanwhile.
    fn take_key(&self, old: &Self, elt: Elt, fixed: u16) -> Option<Elt> {
        let mut words = [0; KEY_WORDS_MAX];
        let words = words.get_mut(..self.shape().key_words)?;
        copy_words(old.key(elt), words);
        let key = Whole::new(words, self.shape())?;
        let hash = key.hash(self.hash);

        match self.get_from(key, hash, self.shape().home(hash)) {
            Ok(found) => {
                if found != elt {
                    self.pool().give_back(elt);
                }
                Some(found)
            }
            Err(at) => self.put(key, hash, at, elt, |aux| {
                for (to, from) in aux.iter().zip(Pair::words(old.aux(elt))).take(fixed.into()) {
                    // ORDERING: the slots that name the elements were read with `Acquire`, and will be published with
                    // `Release`.
                    to.store(from.load(Relaxed), Relaxed);
                }
            }),
        }
    }
}
