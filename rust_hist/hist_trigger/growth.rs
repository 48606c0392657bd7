// SPDX-License-Identifier: GPL-2.0

//! Tables that grow, or whose starts expire: the thread that gives them other maps, and how readers come after it.
//!
//! There is no C counterpart.
//!
//! A hit that takes one of the last elements of a map that another one is to replace, or finds none, asks for that
//! ([`Table::ask_for_room`]); and generations of starts end by the clock. `Table::grow` in `hist_trigger/storage.rs` and
//! `Table::succeed` in `hist_trigger/storage/expiry.rs` have what the thread does then for each table. While it moves rows
//! to a larger map nobody may read the table: readers look under `event_mutex` whether it is so, and if it is, they wait
//! without the mutex.
//!
//! Context: process, may sleep.

use super::{
    storage::{
        Table,
        LATER_MS, //
    },
    HistTrigger, //
};
use crate::ffi::{
    clock::Moment,
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

/// The tables that may get other maps, of the triggers that are on their events: one for each of these.
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
    match table.is_replaced() {
        true => Ok(TABLES.get(held).reserve(1, GFP_KERNEL)?),
        false => Ok(()),
    }
}

/// Says that a trigger of a table is on its event.
pub(super) fn add(table: &Arc<Table>, held: &EventMutexHeld) {
    if table.is_replaced() {
        // There is room, by `reserve`; the list lets us know by a result nevertheless.
        let _ = TABLES.get(held).push_within_capacity(table.clone());
    }
    if table.expires() {
        // For the time at which its first generation ends.
        work::ask();
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

/// Gives the tables other maps that have asked for it, or whose time has come.
fn run() {
    for table in TABLES.get(&EventMutex::lock()).iter() {
        table.try_again();
    }
    let mut failed = false;
    let mut in_hand = next();
    while let Some(table) = &in_hand {
        let done = match table.expires() {
            true => table.succeed(),
            false => table.grow(),
        };
        failed |= done.is_err();
        // The thread may be its last owner, who frees it here, without the mutex.
        in_hand = next();
    }
    let ms = match (failed, wait_ms()) {
        (true, ms) => Some(ms.map_or(LATER_MS, |ms| ms.min(LATER_MS))),
        (false, ms) => ms,
    };
    if let Some(ms) = ms {
        work::ask_later(ms);
    }
}

/// How many milliseconds it is until the next generation of a table ends, if there are any.
fn wait_ms() -> Option<u32> {
    let held = EventMutex::lock();
    let due = TABLES
        .get(&held)
        .iter()
        .filter_map(|table| table.due(&held));
    let ns = due.min()?.saturating_sub(Moment::now().monotonic);
    // None is longer than an hour.
    Some(u32::try_from(ns.div_ceil(1_000_000)).unwrap_or(u32::MAX))
}

/// Takes a table that has asked for another map, or whose time has come, in hand, and lets go of the one before.
fn next() -> Option<Arc<Table>> {
    let held = EventMutex::lock();
    let now = Moment::now().monotonic;
    let is_due = |table: &Arc<Table>| table.due(&held).is_some_and(|due| due <= now);
    let mut tables = TABLES.get(&held).iter();
    let next = tables
        .find(|table| table.wants_room() || is_due(table))
        .cloned();
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
