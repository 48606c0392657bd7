// SPDX-License-Identifier: GPL-2.0

//! The maps of triggers: their memory, and how one takes the place of another.
//!
//! Context: process, may sleep. A failure is `ENOMEM`, and nothing has changed then.

use crate::{
    ffi::{
        guard::{
            wait_for_hits,
            EventMutexHeld,
            PreemptOff, //
        },
        memory, //
    },
    sync::{
        Acquire,
        Atomic,
        Relaxed,
        Release, //
    },
    tracing_map::{
        Dimensions,
        Map,
        Shape, //
    }, //
};
use core::ops::Deref;
use kernel::{
    cpu::nr_cpu_ids,
    prelude::*, //
};

/// The words of a map, all 0 in the beginning. Owned by the map that lies in them.
pub(super) struct Words(KVVec<Atomic<u64>>);

impl Deref for Words {
    type Target = [Atomic<u64>];

    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// A map in memory of its own.
pub(super) type HistMap = Map<Words>;

/// Allocates an empty map; `None` in [`Shape::new`] means dimensions that the language excludes.
pub(super) fn new_map(dimensions: Dimensions) -> Result<KBox<HistMap>> {
    let shape = Shape::new(dimensions, nr_cpu_ids()).ok_or(EINVAL)?;
    let words = Words(memory::zeros(shape.words())?);
    let map = HistMap::new(shape, words).ok_or(EINVAL)?;
    Ok(KBox::new(map, GFP_KERNEL)?)
}

/// The bytes that a map takes.
pub(super) fn bytes(map: &HistMap) -> usize {
    size_of::<HistMap>() + map.shape().words() * size_of::<u64>()
}

/// The map of a trigger, which can be exchanged while it is hit.
///
/// # Invariants
///
/// `map` came from a `KBox` and is freed by nobody else. A hit uses it with preemption off; everybody
/// else holds `event_mutex`, under which alone it changes.
pub(super) struct MapCell {
    map: Atomic<*mut HistMap>,
}

impl MapCell {
    /// Takes over a map.
    pub(super) fn new(map: KBox<HistMap>) -> Self {
        // INVARIANT: it came from a box, which is given up here.
        Self {
            map: Atomic::new(KBox::into_raw(map)),
        }
    }

    /// The map, for the length of one hit.
    #[inline(always)]
    pub(super) fn in_hit<'a>(&'a self, _preempt: &'a PreemptOff<'_>) -> &'a HistMap {
        // ORDERING: pairs with the exchange in `replace`; the new map is visible before its address.
        let map = self.map.load(Acquire);
        // SAFETY: by the type invariant; `replace` frees a map after all hits that may have seen it,
        // and whoever frees the cell does so after a grace period.
        unsafe { &*map }
    }

    /// The map, for a reader.
    pub(super) fn held<'a>(&'a self, _held: &'a EventMutexHeld) -> &'a HistMap {
        // ORDERING: the mutex orders whoever changes it.
        let map = self.map.load(Relaxed);
        // SAFETY: by the type invariant it changes only under the mutex.
        unsafe { &*map }
    }

    /// Exchanges the map and frees the old one: each hit falls wholly in one of the two.
    ///
    /// # Safety
    ///
    /// No reference from [`MapCell::held`] may be in use.
    pub(super) unsafe fn replace(&self, map: KBox<HistMap>, _held: &EventMutexHeld) {
        // INVARIANT: the new map came from a box, and the mutex is held.
        // ORDERING: pairs with `Acquire` in `in_hit`.
        let old = self.map.xchg(KBox::into_raw(map), Release);
        wait_for_hits();
        // SAFETY: by the type invariant; hits that saw the old map are over, and by the contract
        // nobody else uses it.
        drop(unsafe { KBox::from_raw(old) });
    }
}

impl Drop for MapCell {
    fn drop(&mut self) {
        // SAFETY: by the type invariant, and nobody else uses the cell any more.
        drop(unsafe { KBox::from_raw(*self.map.get_mut()) });
    }
}
