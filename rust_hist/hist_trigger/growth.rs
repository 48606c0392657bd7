// SPDX-License-Identifier: GPL-2.0

//! Tables that grow: the thread that does it, and how readers come after it.
//!
//! There is no C counterpart.
//!
//! A hit that takes one of the last elements of a map that may grow, or finds none, asks for a larger one
//! ([`Table::ask_for_room`]). `Table::grow` in `hist_trigger/storage.rs` has what the thread does then for each table. While
//! it moves rows to the new map nobody may read the table: readers look under `event_mutex` whether it is so, and if it
//! is, they wait without the mutex.
//!
//! Context: process, may sleep.

use super::{
    storage::Table,
    HistTrigger, //
};
use crate::ffi::{
    command::Attached,
    event_files::LockedEvent,
    guard::{
        EventMutex,
        EventMutexHeld,
        Guarded, //
    },
    work::{
        self,
        Worker, //
    }, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// The tables that may grow, of the triggers that are on their events: one for each of these.
static TABLES: Guarded<KVec<Arc<Table>>> = Guarded::new(KVec::new());

/// The table that the thread has in hand.
static IN_HAND: Guarded<Option<Arc<Table>>> = Guarded::new(None);

/// Keeps the thread until it is dropped.
pub(crate) struct Growth {
    _worker: Worker,
}

impl Growth {
    /// Called once, before there are triggers.
    pub(crate) fn new() -> Self {
        Self {
            _worker: Worker::new(run),
        }
    }
}

impl Drop for Growth {
    fn drop(&mut self) {
        // There may be room that was reserved.
        *TABLES.get(&EventMutex::lock()) = KVec::new();
    }
}

/// Reserves room for a trigger of a table, which is on its event before the mutex is given back, or never.
pub(super) fn reserve(table: &Table, held: &EventMutexHeld) -> Result {
    match table.may_grow() {
        true => Ok(TABLES.get(held).reserve(1, GFP_KERNEL)?),
        false => Ok(()),
    }
}

/// Says that a trigger of a table is on its event.
pub(super) fn add(table: &Arc<Table>, held: &EventMutexHeld) {
    if table.may_grow() {
        // There is room, by `reserve`; the list lets us know by a result nevertheless.
        let _ = TABLES.get(held).push_within_capacity(table.clone());
    }
}

/// Says that a trigger of a table is on its event no more.
pub(super) fn remove(table: &Arc<Table>, held: &EventMutexHeld) {
    let tables = TABLES.get(held);
    if let Some(at) = tables.iter().position(|other| Arc::ptr_eq(other, table)) {
        // The trigger has the table still, so it is not freed here.
        let _ = tables.remove(at);
    }
}

/// Grows the tables that have asked for it.
fn run() {
    for table in TABLES.get(&EventMutex::lock()).iter() {
        table.try_again();
    }
    let mut failed = false;
    let mut in_hand = next();
    while let Some(table) = &in_hand {
        failed |= table.grow().is_err();
        // The thread may be its last owner, who frees it here, without the mutex.
        in_hand = next();
    }
    if failed {
        work::ask_later();
    }
}

/// Takes a table that has asked for more room in hand, and lets go of the one before.
fn next() -> Option<Arc<Table>> {
    let held = EventMutex::lock();
    let mut tables = TABLES.get(&held).iter();
    let next = tables.find(|table| table.wants_room()).cloned();
    // The caller has the one before still, so it is not freed here.
    IN_HAND.get(&held).clone_from(&next);
    next
}

/// Waits until all tables of an event have all that they have counted in one map, and returns with `event_mutex` held.
pub(super) fn settled(event: LockedEvent<'_>) -> Result<LockedEvent<'_>> {
    match IN_HAND.get(event.held()) {
        None => Ok(event),
        Some(_) => wait(event),
    }
}

#[cold]
#[inline(never)]
fn wait(mut event: LockedEvent<'_>) -> Result<LockedEvent<'_>> {
    let is_growing = |event: &LockedEvent<'_>| {
        let mut triggers = Attached::<HistTrigger>::all(event.file(), event.held());
        triggers.any(|trigger| trigger.data().table.is_growing(event.held()))
    };
    while is_growing(&event) {
        (event, ()) = event.unlocked(work::wait)?;
    }
    Ok(event)
}
