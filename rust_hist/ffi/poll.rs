// SPDX-License-Identifier: GPL-2.0

//! Waking those who poll a `hist` file.
//!
//! C counterpart: `hist_poll_wakeup()` in
//! [`include/linux/trace_events.h`](srctree/include/linux/trace_events.h).
//!
//! Whoever wakes must order its hit before it looks whether somebody waits, by a full barrier, which
//! is too much for each hit. So a hit looks at [`POLLERS`] first, a word that hardly ever changes, and
//! whoever polls for the first time waits until every hit sees that word changed.

use super::{
    bindings,
    guard::synchronize_rcu, //
};
use crate::sync::{
    Acquire,
    Atomic,
    Relaxed,
    Release, //
};
use kernel::bindings as base;

/// How many open files have polled.
static POLLERS: Atomic<u32> = Atomic::new(0);

/// Wakes those who poll, if there are any. Called after a hit has been counted, in any context.
#[inline(always)]
pub(crate) fn wake() {
    // ORDERING: `Poller::announce` waits for all hits that may still read the old value.
    if POLLERS.load(Relaxed) != 0 {
        wake_pollers();
    }
}

#[cold]
#[inline(never)]
fn wake_pollers() {
    // SAFETY: may be called in any context: it queues an irq_work if somebody waits.
    unsafe { bindings::hist_helper_poll_wakeup() };
}

/// The file has never polled.
const SILENT: u32 = 0;
/// The file is in [`POLLERS`], but there may be hits that do not know.
const COUNTED: u32 = 1;
/// Every hit knows that somebody polls.
const ANNOUNCED: u32 = 2;

/// The part of an open file that polls.
///
/// # Invariants
///
/// The file counts in [`POLLERS`] iff `state` is not `SILENT`.
pub(super) struct Poller {
    state: Atomic<u32>,
}

impl Poller {
    /// One that has never polled.
    pub(super) fn new() -> Self {
        // INVARIANT: it does not count yet.
        Self {
            state: Atomic::new(SILENT),
        }
    }

    /// Makes every hit from now on wake those who poll. Sleeps when it is called for the first time.
    pub(super) fn announce(&self) {
        // ORDERING: pairs with `Release` below: whoever reads `ANNOUNCED` comes after the wait.
        if self.state.load(Acquire) == ANNOUNCED {
            return;
        }
        // ORDERING: decides who counts the file; the wait below orders the rest.
        if self.state.cmpxchg(SILENT, COUNTED, Relaxed).is_ok() {
            // INVARIANT: the winner counts the file, once.
            // ORDERING: `synchronize_rcu` makes it visible to all later hits.
            POLLERS.fetch_add(1, Relaxed);
        }
        // Another thread that came first may still be waiting, so each of them waits for itself.
        synchronize_rcu();
        // ORDERING: pairs with `Acquire` above.
        self.state.store(ANNOUNCED, Release);
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        // ORDERING: nobody else uses the file any more.
        if self.state.load(Relaxed) != SILENT {
            // ORDERING: a hit that still reads the old value wakes in vain.
            POLLERS.fetch_sub(1, Relaxed);
        }
    }
}

/// What `poll()` returns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PollEvents(base::__poll_t);

impl PollEvents {
    /// Nothing is ready.
    pub(crate) const NONE: Self = Self(0);
    /// There is something to read.
    pub(crate) const READABLE: Self = Self(bindings::HIST_POLL_READABLE as base::__poll_t);
    /// Something happened since the file was last asked.
    pub(crate) const PRIORITY: Self = Self(bindings::HIST_POLL_PRIORITY as base::__poll_t);
    /// The event is gone.
    pub(crate) const ERROR: Self = Self(bindings::HIST_POLL_ERROR as base::__poll_t);

    /// Both.
    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The value for the VFS.
    pub(super) fn bits(self) -> base::__poll_t {
        self.0
    }
}
