// SPDX-License-Identifier: GPL-2.0

//! What most calls come to: a short key that is there, counted without a call, a loop or a lock.
//!
//! Context: any, NMI included.

use super::{
    account::Values,
    place::Place,
    pool::Pool,
    shape::CONTROL_WORDS,
    slot::Slot,
    Elt,
    Ending,
    KeyHash,
    Map, //
};
use crate::sync::{
    Acquire,
    Atomic,
    Relaxed, //
};
use core::ops::Deref;

/// What a look at the slots where a key begins has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Glance {
    /// The key has this element.
    Found(Elt),
    /// As when [`Map::insert`] says `None`.
    Full,
    /// It takes more than a look.
    Unclear,
}

/// How a walk along the slots of a key has ended.
enum Seen<'w> {
    /// At the one of the key.
    Held(Elt),
    /// At a free one: the key is not there.
    Free(&'w Atomic<u64>),
    /// At the last one.
    End,
}

impl<S, H> Map<S, H>
where
    S: Deref<Target = [Atomic<u64>]>,
    H: KeyHash,
{
    /// Looks for the element of a key of `N` words, as many as keys of the map have, with its [hash](Map::hash), without
    /// any effect.
    ///
    /// That is all there is to do for a key that is there, and for one that a full map has no room for.
    /// Else [`Map::insert`] is to be called.
    #[inline(always)]
    pub fn glance<const N: usize>(&self, key: &[u64; N], hash: u64) -> Glance {
        self.glance_in(self.words(), key, hash)
    }

    /// Returns the hash of a short key, which is the same one in all maps with the same [hash](KeyHash).
    #[inline(always)]
    pub fn hash(&self, key: &[u64]) -> u64 {
        self.hash.hash(key)
    }

    /// As [`Map::glance`]; `words` are those of the map.
    #[inline(always)]
    fn glance_in<const N: usize>(
        &self,
        words: &[Atomic<u64>],
        key: &[u64; N],
        hash: u64,
    ) -> Glance {
        match self.walk(words, key, hash) {
            Seen::Held(elt) => Glance::Found(elt),
            Seen::Free(slot) => self.glance_at_free(words, slot),
            Seen::End => Glance::Unclear,
        }
    }

    /// As [`Map::lookup`], of a key of `N` words, as many as keys of the map have, with its hash: without a call, unless
    /// its slots go beyond the last one.
    #[inline(always)]
    pub fn look<const N: usize>(&self, key: &[u64; N], hash: u64) -> Option<Elt> {
        match self.walk(self.words(), key, hash) {
            Seen::Held(elt) => Some(elt),
            Seen::Free(_) => None,
            Seen::End => self.look_beyond(*key),
        }
    }

    #[cold]
    #[inline(never)]
    fn look_beyond<const N: usize>(&self, key: [u64; N]) -> Option<Elt> {
        self.lookup(&key)
    }

    /// Walks along the slots where a key may be, up to the last one of the map.
    #[inline(always)]
    fn walk<'w, const N: usize>(
        &self,
        words: &'w [Atomic<u64>],
        key: &[u64; N],
        hash: u64,
    ) -> Seen<'w> {
        let shape = self.shape();
        // OVERFLOW: a slot's number is at most `slot_mask`.
        let mut at = CONTROL_WORDS.wrapping_add(self.home(hash));

        debug_assert!(N == shape.key_words);
        // The walk ends at a free slot, or behind the last one, where it would begin anew.
        while let Some(slot) = words.get(at) {
            // ORDERING: pairs with `Release` in `publish`; the key of the element is visible.
            let Some(elt) = Slot(slot.load(Acquire)).elt() else {
                return Seen::Free(slot);
            };
            // OVERFLOW: below the number of words, since the index is less than that of elements.
            let key_at = elt.index().wrapping_mul(N).wrapping_add(shape.keys_at);
            let is_held = (0..N).zip(key).all(|(i, wanted)| {
                words
                    .get(key_at.wrapping_add(i))
                    // ORDERING: as above; the key of a published element does not change.
                    .is_some_and(|held| held.load(Relaxed) == *wanted)
            });
            if is_held {
                return Seen::Held(elt);
            }
            // OVERFLOW: below the number of words.
            at = at.wrapping_add(1);
            if at >= shape.keys_at {
                break;
            }
        }
        Seen::End
    }

    /// What it means that `slot`, on the probe path of a key that is in none of those before it, was
    /// free.
    #[inline(always)]
    pub(super) fn glance_at_free(&self, words: &[Atomic<u64>], slot: &Atomic<u64>) -> Glance {
        if !Pool::new(words, self.shape()).is_empty() {
            return Glance::Unclear;
        }
        // The last element may have gone to this very key meanwhile, and then into this slot.
        //
        // ORDERING: as in `glance`; the `Acquire` of `is_empty` keeps this look behind that.
        if Slot(slot.load(Acquire)).is_free() {
            Glance::Full
        } else {
            Glance::Unclear
        }
    }

    /// Counts a call of a key of `N` words, as many as keys of the map have, that is there or cannot be:
    /// in the second case as dropped, in the first as a hit, whose values are added to the sums. The caller
    /// stays in that [place](Place).
    ///
    /// Says what it has found. If that is [`Glance::Unclear`] it has done nothing; then it is for [`Map::insert`] and
    /// [`Map::shard`] to do.
    #[inline(always)]
    pub fn hit_at_once<const N: usize>(
        &self,
        key: &[u64; N],
        place: impl Place,
        values: &impl Values,
    ) -> Glance {
        self.hit_at_once_and(key, place, values, |_aux| ())
    }

    /// As [`Map::hit_at_once`], and hands the aux words of an element that was hit to `then`.
    #[inline(always)]
    pub fn hit_at_once_and<const N: usize>(
        &self,
        key: &[u64; N],
        place: impl Place,
        values: &impl Values,
        then: impl FnOnce(&[Atomic<u64>]),
    ) -> Glance {
        let words = self.words();
        let seen = self.glance_in(words, key, self.hash(key));

        match seen {
            Glance::Found(elt) => {
                place.hit(words, self.shape(), elt, values);
                let (at, end) = self.aux_at(elt);
                // The compiler makes no choice between addresses of this one.
                if end <= words.len() {
                    then(words.get(at..end).unwrap_or(&[]));
                }
            }
            Glance::Full => place.count(words, self.shape(), Ending::DroppedFull),
            Glance::Unclear => (),
        }
        seen
    }

    /// Where the aux words of an element begin and end.
    #[inline(always)]
    pub(super) fn aux_at(&self, elt: Elt) -> (usize, usize) {
        let shape = self.shape();
        // CAST: no shape has more of either, see `AUX_WORDS_MAX`. So the compiler sees that no sum below
        // overflows, and looks at the end alone.
        let len = usize::from(shape.aux_words as u16);
        let first = shape.aux_at as u32;
        // OVERFLOW: below the number of words, since the index is less than that of elements.
        let at = elt.index().wrapping_mul(len).wrapping_add(first as usize);

        (at, at.wrapping_add(len))
    }

    /// Counts a call that changes nothing else, as [`Map::hit_at_once`] does.
    #[inline(always)]
    pub fn count_at_once(&self, ending: Ending, place: impl Place) {
        place.count(self.words(), self.shape(), ending);
    }

    /// Counts a call that hit an element, as [`Map::hit_at_once`] does.
    #[inline(always)]
    pub fn hit_element(&self, elt: Elt, place: impl Place, values: &impl Values) {
        place.hit(self.words(), self.shape(), elt, values);
    }
}
