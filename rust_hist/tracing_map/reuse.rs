// SPDX-License-Identifier: GPL-2.0

//! Reuse of a map that another one has replaced and that no hit uses any more: it is copied, emptied, and used again.
//!
//! There is no C counterpart.
//!
//! Both take time proportional to the number of rows, not to the size: with no insertion in progress, the elements ever
//! allocated are those in the map and those in the pool, and the slot of an element is found by its key.
//!
//! Context: any. Never allocates, sleeps or locks.

use super::{
    copy_words,
    key::{
        Key,
        Whole, //
    },
    part,
    shape::{
        ACCOUNT_WORDS,
        CONTROL_WORDS, //
    },
    slot::Slot,
    Elt,
    KeyHash,
    Map, //
};
use crate::{
    limits::KEY_WORDS_MAX,
    sync::{
        Atomic,
        Pair,
        Relaxed, //
    }, //
};
use core::ops::Deref;

/// Stands for the slot of an element that no slot names.
const NO_SLOT: u64 = u64::MAX;

/// Sets `words` to 0.
fn clear(words: &[Atomic<u64>]) {
    for word in words {
        // ORDERING: no other context has the map; publishing it again orders this store before.
        word.store(0, Relaxed);
    }
}

impl<S, H> Map<S, H>
where
    S: Deref<Target = [Pair]>,
    H: KeyHash,
{
    /// Copies all rows to `to`, which must have room for [`Map::used`] rows, and returns their number. No insertion may
    /// be in progress; the rows are then exactly those of [`Map::copy_rows`].
    pub fn copy_settled_rows<F>(&self, to: &mut [u64], copy_aux: F) -> usize
    where
        F: Fn(&[Pair], &mut [u64]),
    {
        self.copy(self.used(), to, copy_aux, |map, row_words, rows| {
            map.mark_settled(row_words, rows);
        })
    }

    /// Empties the map: all of its words are 0 again.
    pub fn empty(&mut self) {
        let used = self.used();

        self.find_slots(used);
        self.free_slots(used);

        let shape = *self.shape();
        // OVERFLOW: these are parts of the map, below the number of words that `Shape::new` computes without overflow;
        // no more elements were allocated than the map has.
        let of_elts = |at: usize, words: usize| part(self.words(), at, used.wrapping_mul(words));
        clear(part(self.words(), 0, CONTROL_WORDS));
        clear(of_elts(shape.keys_at, shape.key_words));
        clear(of_elts(shape.aux_at(), shape.aux_words()));
        for shard in 0..shape.shards {
            let at = shape.shard_at(shard);
            clear(part(self.words(), at, ACCOUNT_WORDS));
            clear(of_elts(at.wrapping_add(ACCOUNT_WORDS), shape.sums));
            if let Some(others) = shape.others() {
                let sums = at.wrapping_add(shape.sums_at(others.index()));
                clear(part(self.words(), sums, shape.sums));
            }
        }
    }

    /// Iterates over the allocated elements, in the map or in the pool, each with the first word of its key.
    fn allocated(&self, used: usize) -> impl Iterator<Item = (Elt, &Atomic<u64>)> + '_ {
        (0u32..)
            .map(Elt)
            .take(used)
            .filter_map(|elt| Some((elt, self.key(elt).first()?)))
    }

    /// Stores the index of its slot in the first key word of each allocated element.
    ///
    /// Frees no slot while it searches, which would cut the probe paths of other keys.
    ///
    /// Not inlined: a whole key is on its stack.
    #[inline(never)]
    fn find_slots(&mut self, used: usize) {
        let mut key = [0; KEY_WORDS_MAX];
        let words = key.get_mut(..self.shape().key_words).unwrap_or(&mut []);

        for (elt, first) in self.allocated(used) {
            copy_words(self.key(elt), words);
            let slot = Whole::new(words, self.shape())
                .and_then(|key| self.slot_of(elt, key.hash(self.hash)));
            // CAST: `usize` has at most 64 bits.
            let slot = slot.map_or(NO_SLOT, |at| at as u64);
            // ORDERING: no other context has the map.
            first.store(slot, Relaxed);
        }
    }

    /// Returns the index of the slot that names an element, whose key has this hash; `None` if the element is in the
    /// pool.
    fn slot_of(&self, elt: Elt, hash: u64) -> Option<usize> {
        let shape = self.shape();
        let mut at = shape.home(hash);

        for _ in 0..=shape.slot_mask {
            // ORDERING: no other context has the map.
            if Slot(self.slots().get(at)?.load(Relaxed)).elt()? == elt {
                return Some(at);
            }
            at = at.wrapping_add(1) & shape.slot_mask;
        }
        None
    }

    /// Frees the slots whose indices `find_slots` has stored.
    fn free_slots(&mut self, used: usize) {
        for (_, first) in self.allocated(used) {
            // ORDERING: no other context has the map.
            let at = usize::try_from(first.load(Relaxed)).ok();
            // `NO_SLOT` is beyond the slots of any table.
            if let Some(slot) = at.and_then(|at| self.slots().get(at)) {
                // ORDERING: no other context has the map.
                slot.store(Slot::FREE.0, Relaxed);
            }
        }
    }
}
