// SPDX-License-Identifier: GPL-2.0

//! Waking those who poll a `hist` file.
//!
//! C counterpart: `hist_poll_wakeup()` in
//! [`include/linux/trace_events.h`](srctree/include/linux/trace_events.h).
//!
//! Whoever wakes must order its hit before it looks whether somebody waits, by a full barrier, which
//! is too much for each hit. So a hit has a static key first, which is off while nobody polls, and
//! whoever polls for the first time waits until no hit is under way that has found it off.

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
use kernel::{
    bindings as base,
    static_branch_unlikely, //
};

/// Wakes those who poll, if there are any. Called after a hit has been counted, in any context.
#[inline(always)]
pub(crate) fn wake() {
    // SAFETY: the key is one of helpers.c.
    let is_polled = unsafe {
        static_branch_unlikely!(
            bindings::hist_helper_pollers,
            bindings::hist_helper_key,
            key
        )
    };

    // `Poller::announce` waits for all hits that may have found it off.
    if is_polled {
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
/// Every hit knows that somebody polls.
const ANNOUNCED: u32 = 1;

/// The part of an open file that polls.
///
/// # Invariants
///
/// The static key counts the file once if `state` is `ANNOUNCED`, and each thread that is about to make it so once.
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
        // SAFETY: it may sleep, and so may a thread that polls. The key is turned on for all CPUs when it returns.
        unsafe { bindings::hist_helper_pollers_inc() };
        synchronize_rcu();
        // INVARIANT: the key counts the file for this thread, which has made it `ANNOUNCED`, or takes its count back.
        // ORDERING: pairs with `Acquire` above.
        if self.state.cmpxchg(SILENT, ANNOUNCED, Release).is_err() {
            forget();
        }
    }
}

/// Takes back one count of the static key. Sleeps.
fn forget() {
    // SAFETY: the callers have counted it, and may sleep.
    unsafe { bindings::hist_helper_pollers_dec() };
}

impl Drop for Poller {
    fn drop(&mut self) {
        // ORDERING: nobody else uses the file any more.
        if self.state.load(Relaxed) == ANNOUNCED {
            forget();
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
