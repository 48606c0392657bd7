// SPDX-License-Identifier: GPL-2.0

//! Lookup and insertion: the only code that follows the slots of a key.
//!
//! C counterpart: `__tracing_map_insert()`.
//!
//! An inserter takes an element **first**, writes the key to it, and then publishes it with one compare-exchange of a
//! free slot. So a slot is free or complete, never in between: no context waits for another, an interrupt of an
//! inserter finds a consistent table, and a slot once taken stays, so that no probe path is ever cut, until an unused
//! map is emptied. (The C implementation claims the slot first, and has to free it again when no element is left.) If
//! two inserters of one key both take an element, the second one finds the first one's slot and frees its element.
//!
//! Context: any, NMI included. Never allocates, sleeps, locks or panics.

use super::{
    account::Shard,
    key::Key,
    no_pairs,
    pool::Pool,
    shape::CONTROL_WORDS,
    slot::Slot,
    Elt,
    KeyHash,
    Map,
    Shape, //
};
use crate::sync::{
    Acquire,
    Atomic,
    Pair,
    Release, //
};
use core::ops::Deref;

/// The caller's part of an insertion; a closure is [`Inserter::init`].
pub trait Inserter {
    /// Writes the aux words of a new element before any other context can see it. All words that readers expect must be
    /// written, as another inserter may have used and freed the element before. The element may still be freed.
    fn init(self, aux: &[Atomic<u64>]);

    /// Called when another map should replace this one. May be called several times.
    fn crowded(&self) {}
}

impl<F: FnOnce(&[Atomic<u64>])> Inserter for F {
    #[inline(always)]
    fn init(self, aux: &[Atomic<u64>]) {
        self(aux);
    }
}

/// The result of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The key has this element.
    Found(Elt),
    /// The key is not in the map, and all elements are taken.
    Full,
    /// The key is not in the map yet; this is the index of the slot from which [`Map::insert_at`] goes on, or the
    /// number of slots.
    Absent(usize),
}

/// The end of a walk along the slots of a key.
enum WalkEnd {
    /// The slot of the key was found.
    Held(Elt),
    /// A free slot with this index was found: the key is not in the map.
    Free(usize),
    /// The end of the table was reached; the walk would go on at the first slot.
    Last(usize),
}

/// Returns the address of aux words, for [`MapView::aux_from`]. It is only compared, never dereferenced.
#[inline(always)]
pub fn address_of(aux: &[Pair]) -> u64 {
    // CAST: an address has 64 bits at most.
    aux.as_ptr().addr() as u64
}

/// A map together with its words: otherwise the compiler would read the address of the words from the map again after
/// each addition. A view; as cheap to copy as a slice.
pub struct MapView<'m, S, H> {
    map: &'m Map<S, H>,
    pairs: &'m [Pair],
}

impl<S, H> Clone for MapView<'_, S, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S, H> Copy for MapView<'_, S, H> {}

impl<'m, S, H> MapView<'m, S, H>
where
    S: Deref<Target = [Pair]>,
    H: KeyHash,
{
    #[inline(always)]
    pub(super) fn new(map: &'m Map<S, H>) -> Self {
        Self {
            map,
            pairs: &map.storage,
        }
    }

    #[inline(always)]
    fn words(self) -> &'m [Atomic<u64>] {
        Pair::words(self.pairs)
    }

    /// Returns the shape of the map.
    #[inline(always)]
    pub fn shape(self) -> &'m Shape {
        self.map.shape()
    }

    /// Returns the hash function of the map.
    #[inline(always)]
    pub fn hash(self) -> H {
        self.map.hash
    }

    /// Returns the map itself, which is one word to pass on.
    #[inline(always)]
    pub fn map(self) -> &'m Map<S, H> {
        self.map
    }

    /// Returns the part of the map that `cpu` writes on a hit. The caller must be on that CPU and stay there. With
    /// `may_share` false each CPU of the map must [have a shard of its own](Shape::per_cpu).
    #[inline(always)]
    pub fn shard(self, cpu: u32, may_share: bool) -> Shard<'m> {
        Shard::new(self.words(), self.shape(), cpu, may_share)
    }

    /// Returns the aux words of an element, in pairs; an empty slice if the map has no such element.
    #[inline(always)]
    pub fn aux(self, elt: Elt) -> &'m [Pair] {
        let (at, end) = self.aux_at(elt);

        match self.pairs.get(at..end) {
            Some(aux) => aux,
            None => no_pairs(),
        }
    }

    /// Returns the aux words that begin at `address`, which [`address_of`] has returned for the aux words of an
    /// element; `None` if they are not in this map.
    ///
    /// While a caller may still use the map that the address is from, no other map has the same words.
    #[inline(always)]
    pub fn aux_from(self, address: u64) -> Option<&'m [Pair]> {
        // For words of another map the index is beyond the end, as no two maps share words.
        let bytes = address.wrapping_sub(address_of(self.pairs));
        let at = usize::try_from(bytes).ok()? / size_of::<Pair>();

        // OVERFLOW: a range that wraps ends before it begins, so `get` returns `None`.
        self.pairs
            .get(at..at.wrapping_add(self.map.shape.aux_pairs.into()))
    }

    /// Calls `then` with the aux words of an element, if the map has it. Avoids the choice between two addresses that
    /// the compiler makes from an [`Option`].
    #[inline(always)]
    pub fn with_aux(self, elt: Elt, then: impl FnOnce(&'m [Pair])) {
        let (at, end) = self.aux_at(elt);

        if end <= self.pairs.len() {
            then(self.pairs.get(at..end).unwrap_or(&[]));
        }
    }

    /// Returns the range of an element's aux words, counted in pairs.
    #[inline(always)]
    fn aux_at(self, elt: Elt) -> (usize, usize) {
        // Short numbers, so that the compiler knows that no sum below overflows, and tests the end alone.
        let len = usize::from(self.map.shape.aux_pairs);
        let first = self.map.shape.aux_pairs_at;
        // OVERFLOW: below the number of pairs, since the index is less than the number of elements.
        let at = elt.index().wrapping_mul(len).wrapping_add(first as usize);

        (at, at.wrapping_add(len))
    }

    /// Returns the index of the first key word of an element.
    #[inline(always)]
    fn place<K: Key>(self, elt: Elt) -> usize {
        let Some(words) = K::WORDS else {
            return self.map.shape.key_at(elt);
        };

        debug_assert!(words == self.map.shape.key_words);
        // OVERFLOW: below the number of words, since the index is less than the number of elements.
        elt.index()
            .wrapping_mul(words)
            .wrapping_add(self.map.shape.keys_at)
    }

    /// Returns whether the element of a slot has this key, whose hash is `hash`.
    #[inline(always)]
    fn holds<K: Key>(self, slot: Slot, elt: Elt, key: &K, hash: u64) -> bool {
        (K::WORDS.is_some() || slot.has_hash(hash)) && key.is_at(self.words(), self.place::<K>(elt))
    }

    /// Walks along the slots of a key with this hash, up to the last slot of the table.
    #[inline(always)]
    fn walk<K: Key>(self, key: &K, hash: u64) -> WalkEnd {
        // OVERFLOW: the number of a slot is at most `slot_mask`.
        let mut at = CONTROL_WORDS.wrapping_add(self.map.shape.home(hash));

        while let Some(slot) = self.words().get(at) {
            // ORDERING: pairs with `Release` in `publish`; the key of the element is visible.
            let slot = Slot(slot.load(Acquire));
            let Some(elt) = slot.elt() else {
                return WalkEnd::Free(at.wrapping_sub(CONTROL_WORDS));
            };

            if self.holds(slot, elt, key, hash) {
                return WalkEnd::Held(elt);
            }
            // OVERFLOW: below the number of words.
            at = at.wrapping_add(1);
            if at >= self.map.shape.keys_at {
                break;
            }
        }
        WalkEnd::Last(at.wrapping_sub(CONTROL_WORDS))
    }

    /// Looks up a key with the [hash](Key::hash) `hash`, in order to count a hit. Has no effect.
    ///
    /// [`Lookup::Full`] is returned only if a hit without room is dropped and nothing else is to be done.
    /// [`Lookup::Absent`] may be returned for a key that another context is inserting at this moment, and for the few
    /// keys whose slots continue at the beginning of the table; [`Map::insert_at`] finds these.
    #[inline(always)]
    pub fn find<K: Key>(self, key: &K, hash: u64) -> Lookup {
        match self.walk(key, hash) {
            WalkEnd::Held(elt) => Lookup::Found(elt),
            WalkEnd::Free(at) if self.is_full_at(at) => Lookup::Full,
            WalkEnd::Free(at) | WalkEnd::Last(at) => Lookup::Absent(at),
        }
    }

    /// Returns whether all elements are taken and slot `at`, which was free before, still is.
    #[inline(always)]
    fn is_full_at(self, at: usize) -> bool {
        if !Pool::new(self.words(), self.shape()).is_empty() {
            return false;
        }
        // The last element may have been used for this very key meanwhile, and published in this slot.
        //
        // ORDERING: pairs with `Release` in `publish`; the `Acquire` of `is_empty` keeps this look after that one.
        self.words()
            .get(CONTROL_WORDS.wrapping_add(at))
            .is_some_and(|slot| Slot(slot.load(Acquire)).elt().is_none())
    }

    /// Returns the element of a key with this hash, `None` if the key is not in the map.
    ///
    /// Finds every key whose insertion is complete; a key whose insertion is in progress may be found or not.
    #[inline(always)]
    pub fn get<K: Key>(self, key: &K, hash: u64) -> Option<Elt> {
        match self.walk(key, hash) {
            WalkEnd::Held(elt) => Some(elt),
            WalkEnd::Free(_) => None,
            WalkEnd::Last(_) => self.map.get_from(*key, hash, 0).ok(),
        }
    }
}

/// The cold functions. They take `&Map`, which is one register, so that the fast path keeps its [`MapView`] in registers.
impl<S, H> Map<S, H>
where
    S: Deref<Target = [Pair]>,
    H: KeyHash,
{
    /// Returns the element of `key`, searched from slot `at` on and around the end of the table; the error is the free
    /// slot where the search ended.
    #[cold]
    #[inline(never)]
    pub(super) fn get_from<K: Key>(&self, key: K, hash: u64, mut at: usize) -> Result<Elt, usize> {
        // There are more slots than elements, so the loop ends at a free slot at the latest.
        for _ in 0..=self.shape.slot_mask {
            // OVERFLOW: the number of a slot is at most `slot_mask`.
            let Some(slot) = self.words().get(CONTROL_WORDS.wrapping_add(at)) else {
                break;
            };
            // ORDERING: pairs with `Release` in `publish`; the key of the element is visible.
            let slot = Slot(slot.load(Acquire));
            let Some(elt) = slot.elt() else {
                break;
            };

            if self.view().holds(slot, elt, &key, hash) {
                return Ok(elt);
            }
            at = at.wrapping_add(1) & self.shape.slot_mask;
        }
        Err(at)
    }

    /// Returns the element of a key for which [`MapView::find`] has returned [`Lookup::Absent`] with `at`. Inserts the
    /// key if it is still absent; if all elements are taken, returns the element of [all others](super::Shape::others),
    /// `None` without one.
    ///
    /// Without room, at some moments of the call all elements were taken, and the key was not in the map. Another
    /// context may be about to publish the same key with the last element.
    #[cold]
    #[inline(never)]
    pub fn insert_at<K: Key>(
        &self,
        key: K,
        hash: u64,
        at: usize,
        inserter: impl Inserter,
    ) -> Option<Elt> {
        // No element is taken for a key that is in the map, not even for a moment in which another key might need the
        // last one.
        let at = match at {
            at if at <= self.shape.slot_mask => at,
            _ => match self.get_from(key, hash, 0) {
                Ok(elt) => return Some(elt),
                Err(at) => at,
            },
        };
        let taken = self.pool().take();
        let Some(elt) = taken.or_else(|| self.take_last(&inserter)) else {
            // The last element may have been used for this very key meanwhile.
            let found = self.get_from(key, hash, at);
            return found.ok().or(self.shape.others());
        };

        self.put(key, hash, at, elt, |aux| inserter.init(aux))
    }

    /// Signals that another map should replace this crowded one, and allocates one of the last elements; `None` if the
    /// map is not to be replaced, or no element is free.
    #[cold]
    #[inline(never)]
    fn take_last(&self, inserter: &impl Inserter) -> Option<Elt> {
        if !self.shape.is_replaced() {
            return None;
        }
        inserter.crowded();
        self.pool().take_last()
    }

    /// Writes a key to `elt`, which the caller owns, and publishes it. If another inserter of the key was faster, frees
    /// `elt`. Returns the element of the key.
    #[inline(always)]
    pub(super) fn put<K: Key>(
        &self,
        key: K,
        hash: u64,
        at: usize,
        elt: Elt,
        init: impl FnOnce(&[Atomic<u64>]),
    ) -> Option<Elt> {
        // Another inserter may have left its key in the element, which no other context sees before `publish`.
        key.write(super::part(
            self.words(),
            self.view().place::<K>(elt),
            self.shape.key_words,
        ));
        init(Pair::words(self.aux(elt)));

        let found = self.publish(key, hash, at, elt);
        if found != Some(elt) {
            self.pool().give_back(elt);
        }
        found
    }

    /// Puts `elt`, which holds `key`, in the first free slot from `at` on, and returns it; or returns the element with
    /// which another inserter of the key was faster.
    #[inline(always)]
    fn publish<K: Key>(&self, key: K, hash: u64, mut at: usize, elt: Elt) -> Option<Elt> {
        for _ in 0..=self.shape.slot_mask {
            // INVARIANT: the element is owned by this inserter and its key is complete; only a free slot changes.
            // ORDERING: pairs with `Acquire` in `walk`, `get_from`, `is_full_at` and `published`; key and aux words are visible
            // before the slot.
            let won = self
                .words()
                // OVERFLOW: the number of a slot is at most `slot_mask`.
                .get(CONTROL_WORDS.wrapping_add(at))?
                .cmpxchg(Slot::FREE.0, Slot::new(hash, elt).0, Release)
                .is_ok();
            if won {
                return Some(elt);
            }

            // Another context has taken the slot. A failed `cmpxchg` orders nothing, so look again.
            match self.get_from(key, hash, at) {
                Ok(other) => return Some(other),
                Err(next) => at = next,
            }
        }
        None
    }
}
