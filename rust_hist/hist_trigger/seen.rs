// SPDX-License-Identifier: GPL-2.0

//! The hits that an open file knows of, for `poll()`.
//!
//! C counterpart: `event_hist_poll()`.
//!
//! Context: process.

use super::{
    growth::settled,
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

/// The numbers of hits, of all triggers of the event, that an open file knows of.
pub(crate) struct Seen {
    /// The number of hits when the file was last read; 0 before its first read.
    read: Atomic<u64>,
    /// The hits when the file was last opened, read or polled.
    asked: Atomic<u64>,
}

/// Returns the hits of all triggers of an event, none of whose tables is growing; they are added up without the mutex.
fn hits(event: LockedEvent<'_>) -> Result<u64> {
    let event = settled(event)?;
    let mut tables = KVec::new();
    for trigger in Attached::<HistTrigger>::all(event.file(), event.held()) {
        let counted = trigger.data().table.counted(event.held())?;
        tables.push(counted, GFP_KERNEL_ACCOUNT)?;
    }
    drop(event);
    Ok(tables.iter().map(Counted::hits).fold(0, u64::wrapping_add))
}

impl Seen {
    /// Returns the state of a file that is being opened.
    pub(super) fn new(event: LockedEvent<'_>) -> Result<Self> {
        Ok(Self {
            read: Atomic::new(0),
            asked: Atomic::new(hits(event)?),
        })
    }

    /// Records that a reader knows of `hits` hits. A hit that the reader was not shown is reported by `poll()` again.
    pub(super) fn read(&self, hits: u64) {
        // ORDERING: the word publishes nothing else; readers and pollers of one file may come in any order.
        self.read.store(hits, Relaxed);
        // ORDERING: the word publishes nothing else; readers and pollers of one file may come in any order.
        self.asked.store(hits, Relaxed);
    }

    /// Returns whether the file is readable, and whether there were hits since it was last polled or read; an error
    /// event if there is no memory. A file that does not say itself whether it `is_readable` is so if there are hits
    /// that no reader knows of.
    pub(super) fn poll(&self, is_readable: Option<bool>, event: LockedEvent<'_>) -> PollEvents {
        let Ok(hits) = hits(event) else {
            return PollEvents::ERROR;
        };
        let mut ready = PollEvents::NONE;
        // ORDERING: the word publishes nothing else; readers and pollers of one file may come in any order.
        if is_readable.unwrap_or_else(|| self.read.load(Relaxed) != hits) {
            ready = ready.and(PollEvents::READABLE);
        }
        // ORDERING: the word publishes nothing else; readers and pollers of one file may come in any order.
        if self.asked.xchg(hits, Relaxed) != hits {
            ready = ready.and(PollEvents::PRIORITY);
        }
        ready
    }
}
