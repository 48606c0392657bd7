// SPDX-License-Identifier: GPL-2.0

//! A larger map takes the place of a full one, with all that it has counted.
//!
//! There is no C counterpart.
//!
//! The new map has an element kept back for each one of the old map, of the same number: so no row lacks room, however
//! many keys are inserted meanwhile. It goes in these steps:
//!
//! 1. [`Map::reserve_for`] and [`Map::take_keys`], while hits use the old map and nobody knows the new one: hits of these
//!    keys find them in the new map, too;
//! 2. hits are given the new map;
//! 3. when no hit uses the old map any more, [`Map::take_rows`] adds its rows to the new one, with the keys that were
//!    inserted since, and [`Map::take_account`] the rest of what it has counted;
//! 4. [`Map::release`] gives back the elements that are left.
//!
//! Until then the new map has counted too little, and nobody may read it. The old one keeps what it has counted.
//!
//! The first aux words of an element, of which the caller says how many are `fixed`, are written when the key is inserted
//! and are copied. The others are variables, all of them numbers, and tracked values, which the caller carries over. Hits
//! look for them in both maps until the last step is over; `tracing_map/moving.rs` has how numbers go from one to the other,
//! and [`TrackCell::take_over`] how tracked values do.
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

/// How many slots are gone through at a time: as many as take some microseconds.
const SLOTS: usize = 256;

/// How many times as large as a map the next one is at least.
const GROWTH: usize = 4;

/// How many times as many keys are expected while a table grows as were refused before.
const HASTE: usize = 4;

impl<S, H> Map<S, H>
where
    S: Deref<Target = [Pair]>,
    H: KeyHash,
{
    /// Returns whether another map is to take the place of this one. Goes through the slots: of the elements that were
    /// kept back for keys of a smaller map, many may have been given back.
    pub fn is_crowded(&self) -> bool {
        let plenty = self.shape().plenty;

        self.used() >= plenty && self.published().count() >= plenty
    }

    /// Returns how many calls have found no room, those included that it has taken over from a smaller map.
    pub fn refused(&self) -> u64 {
        let others = self.shape().others();
        let dropped = Ending::DroppedFull.word();

        dropped
            .map_or(0, |at| self.over_shards(at))
            .wrapping_add(others.map_or(0, |elt| self.sum(elt, 0)))
    }

    /// Returns how many elements a larger map needs, at least [`GROWTH`] times as many as there are. Of the calls that this
    /// one has refused so many were `taken_over`.
    ///
    /// A key that was refused comes again and is refused again. So the calls are divided by the hits that a key has had
    /// which came a little before, one that has got one of the last elements. More calls are refused until the larger map is
    /// there, so there is to be room for [`HASTE`] times as many keys.
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

    /// Returns all slots, in parts that take little time each.
    pub fn slot_ranges(&self) -> impl Iterator<Item = Range<usize>> {
        let slots = self.slots().len();

        (0..slots)
            .step_by(SLOTS)
            .map(move |at| at..at.saturating_add(SLOTS).min(slots))
    }

    /// Keeps back the elements for those of `old`, which has fewer. The map is empty.
    pub fn reserve_for(&mut self, old: &Self) {
        self.pool().reserve(old.shape().elts);
    }

    /// Inserts the keys in a part of the slots of `old`. Hits may go on there.
    pub fn take_keys(&mut self, old: &Self, slots: Range<usize>, fixed: u16) {
        for elt in old.elts_in(slots) {
            self.take_key(old, elt, fixed);
        }
    }

    /// Adds what the rows in a part of the slots of `old`, to which no hit goes any more, have counted, for a caller that is
    /// on `cpu` and stays there. Each slot is for one call. `carry` is given the aux words of the new element and of the old
    /// one, and brings over what is behind the fixed words.
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

    /// Adds what `old`, which no hit uses any more, has counted besides its rows, for a caller that is on `cpu` and stays
    /// there. It is for one call.
    pub fn take_account(&self, old: &Self, cpu: u32) {
        let shard = self.shard(cpu);
        let mut sums = [0; SUM_WORDS_MAX];
        let sums = sums.get_mut(..self.shape().sums).unwrap_or(&mut []);

        shard.add_account(|word| old.over_shards(word));
        if let Some(own) = self.shape().others().filter(|_| old.copy_others(sums)) {
            shard.add_row(own, sums);
        }
    }

    /// Gives back the elements that were kept for those of `old` that are in no slot there. It is for one call, when all
    /// rows have been taken.
    pub fn release(&self, old: &Self) {
        let (pool, old_pool) = (self.pool(), old.pool());
        let never_taken = (0u32..).take(old.shape().elts).skip(old.used()).map(Elt);

        // No insertion is under way in `old`, so an element that is in no slot is on its stack or was never taken.
        for elt in never_taken.chain(old_pool.given_back()) {
            pool.give_back(elt);
        }
    }

    /// Iterates over the elements that are in a part of the slots.
    fn elts_in(&self, slots: Range<usize>) -> impl Iterator<Item = Elt> + '_ {
        let slots = self.slots().get(slots).unwrap_or(&[]);

        // ORDERING: pairs with `Release` in `publish`; key and aux words are visible.
        slots
            .iter()
            .filter_map(|slot| Slot(slot.load(Acquire)).elt())
    }

    /// Returns the element of the key that `elt` has in `old`: that of the same number, which was kept for it, unless a
    /// hit has inserted the key since.
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
