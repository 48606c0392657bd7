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

/// How often the thread has given a table a turn.
static TURNS: Guarded<u64> = Guarded::new(0);

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
    // The thread may be the last owner of a table, which it frees at the end of a round, without the mutex.
    while let Some(table) = next() {
        let done = match table.expires() {
            true => table.succeed(),
            false => table.grow(),
        };
        failed |= done.is_err();
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

/// Finds the table whose turn it is: of those that have asked for another map or whose time has come, the one whose last turn
/// was the longest ago.
fn next() -> Option<Arc<Table>> {
    let held = EventMutex::lock();
    let now = Moment::now().monotonic;
    let is_due = |table: &Arc<Table>| table.due(&held).is_some_and(|due| due <= now);
    let tables = TABLES.get(&held).iter();
    let next = tables
        .filter(|table| table.wants_room() || is_due(table))
        .min_by_key(|table| table.last_turn(&held))?;
    let turns = TURNS.get(&held);
    *turns += 1;
    next.set_last_turn(*turns, &held);
    Some(next.clone())
}

/// Waits until all tables of an event have all that they have counted in one map, and returns with `event_mutex` held.
/// `EINTR` if the task is killed meanwhile.
pub(super) fn settled(mut event: LockedEvent<'_>) -> Result<LockedEvent<'_>> {
    let is_growing = |event: &LockedEvent<'_>| {
        let mut triggers = Attached::<HistTrigger>::all(event.file(), event.held());
        triggers.any(|trigger| trigger.data().table.is_growing(event.held()))
    };
    while is_growing(&event) {
        event = event.pause()?;
    }
    Ok(event)
}
