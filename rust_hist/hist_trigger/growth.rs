// SPDX-License-Identifier: GPL-2.0

//! Tables that grow, or whose starts expire: the thread that gives them other maps, and how readers wait for it.
//!
//! There is no C counterpart.
//!
//! A hit that takes one of the last elements of a map, or finds none, requests another map ([`Table::ask_for_room`]);
//! generations of starts end by the clock. The thread then calls `Table::grow` (`hist_trigger/storage.rs`) or
//! `Table::succeed` (`hist_trigger/storage/expiry.rs`) for each such table. While it moves rows to a larger map the
//! table must not be read: readers check this under `event_mutex`, and wait without the mutex if it is so.
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

/// The tables that may get other maps, one entry for each attached trigger.
static TABLES: Guarded<KVec<Arc<Table>>> = Guarded::new(KVec::new());

/// The number of turns that the thread has given to tables.
static TURNS: Guarded<u64> = Guarded::new(0);

/// Runs the thread until it is dropped.
pub(crate) struct Growth {
    _worker: Worker,
}

impl Growth {
    /// Starts the thread. Must be called once, before there are triggers.
    pub(crate) fn new() -> Self {
        Self {
            _worker: Worker::new(run),
        }
    }
}

impl Drop for Growth {
    fn drop(&mut self) {
        // The list may still own reserved memory.
        *TABLES.get(&EventMutex::lock()) = KVec::new();
    }
}

/// Reserves room for `table` in the list of tables that get other maps. The trigger must be attached before the mutex
/// is released, or never.
pub(super) fn reserve(table: &Table, held: &EventMutexHeld) -> Result {
    match table.is_replaced() {
        true => Ok(TABLES.get(held).reserve(1, GFP_KERNEL)?),
        false => Ok(()),
    }
}

/// Adds the table of a trigger that is being attached to the list of tables that get other maps.
pub(super) fn add(table: &Arc<Table>, held: &EventMutexHeld) {
    if table.is_replaced() {
        // `reserve` has made room, so this cannot fail.
        let _ = TABLES.get(held).push_within_capacity(table.clone());
    }
    if table.expires() {
        // The thread must learn when the first generation ends.
        work::ask();
    }
}

/// Removes the table of a trigger that is being detached.
pub(super) fn remove(table: &Arc<Table>, held: &EventMutexHeld) {
    let tables = TABLES.get(held);
    if let Some(at) = tables.iter().position(|other| Arc::ptr_eq(other, table)) {
        // The trigger still owns the table, so it is not freed here.
        let _ = tables.remove(at);
    }
}

/// Gives other maps to the tables that have requested one, or whose generation has ended.
fn run() {
    for table in TABLES.get(&EventMutex::lock()).iter() {
        table.try_again();
    }
    let mut failed = false;
    // The thread may be the last owner of a table, which is then freed without the mutex at the end of the loop's
    // round.
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

/// Returns the milliseconds until the next generation of a table ends; `None` if no table has any.
fn wait_ms() -> Option<u32> {
    let held = EventMutex::lock();
    let due = TABLES
        .get(&held)
        .iter()
        .filter_map(|table| table.due(&held));
    let ns = due.min()?.saturating_sub(Moment::now().monotonic);
    // No generation is longer than an hour.
    Some(u32::try_from(ns.div_ceil(1_000_000)).unwrap_or(u32::MAX))
}

/// Returns the table whose turn it is: among those that have requested a map or whose generation has ended, the one
/// whose last turn was the longest ago.
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

/// Waits until all tables of an event have their counts in one map again, and returns with `event_mutex` held. `EINTR`
/// if the task is killed meanwhile.
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
