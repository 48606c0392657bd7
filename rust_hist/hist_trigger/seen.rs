// SPDX-License-Identifier: GPL-2.0

//! What an open file that looks at the tables of an event knows of their hits, for `poll()`.
//!
//! C counterpart: `event_hist_poll()`.
//!
//! Context: process.

use super::{
    storage::Counted,
    HistTrigger, //
};
use crate::{
    ffi::{
        command::Attached,
        event_files::LockedEvent,
        poll::PollEvents, //
    },
    sync::{
        Atomic,
        Relaxed, //
    }, //
};
use kernel::prelude::*;

/// The hits of all triggers of the event that the open file knows of.
pub(crate) struct Seen {
    /// When it was last read; 0 before.
    read: Atomic<u64>,
    /// When it was last opened, read or polled.
    asked: Atomic<u64>,
}

/// The hits of all triggers of an event, added up without the mutex.
fn hits(event: LockedEvent<'_>) -> Result<u64> {
    let mut tables = KVec::new();
    for trigger in Attached::<HistTrigger>::all(event.file(), event.held()) {
        let counted = trigger.data().table.counted(event.held())?;
        tables.push(counted, GFP_KERNEL_ACCOUNT)?;
    }
    drop(event);
    Ok(tables.iter().map(Counted::hits).fold(0, u64::wrapping_add))
}

impl Seen {
    /// As it is when the file is opened.
    pub(super) fn new(event: LockedEvent<'_>) -> Result<Self> {
        Ok(Self {
            read: Atomic::new(0),
            asked: Atomic::new(hits(event)?),
        })
    }

    /// Says that a reader knows of so many hits. One that he has not been shown yet is one that he is told of again.
    pub(super) fn read(&self, hits: u64) {
        // ORDERING: a number by itself; readers and pollers of one file may come in any order.
        self.read.store(hits, Relaxed);
        // ORDERING: a number by itself; readers and pollers of one file may come in any order.
        self.asked.store(hits, Relaxed);
    }

    /// Returns whether there are hits that no reader knows of, and whether there were hits since the file was last asked.
    pub(super) fn poll(&self, event: LockedEvent<'_>) -> PollEvents {
        // ORDERING: a number by itself; readers and pollers of one file may come in any order.
        self.ready(|hits| self.read.load(Relaxed) != hits, event)
    }

    /// As [`Seen::poll`], of a file that knows itself whether there is something to read.
    pub(super) fn poll_of(&self, is_readable: bool, event: LockedEvent<'_>) -> PollEvents {
        self.ready(|_| is_readable, event)
    }

    /// Adds up the hits, and says what is ready; an error if there is no memory to add them up.
    fn ready(&self, is_readable: impl FnOnce(u64) -> bool, event: LockedEvent<'_>) -> PollEvents {
        let Ok(hits) = hits(event) else {
            return PollEvents::ERROR;
        };
        let mut ready = PollEvents::NONE;
        if is_readable(hits) {
            ready = ready.and(PollEvents::READABLE);
        }
        // ORDERING: a number by itself; readers and pollers of one file may come in any order.
        if self.asked.xchg(hits, Relaxed) != hits {
            ready = ready.and(PollEvents::PRIORITY);
        }
        ready
    }
}
