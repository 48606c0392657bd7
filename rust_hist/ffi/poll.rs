// SPDX-License-Identifier: GPL-2.0

//! Waking pollers of a `hist` file.
//!
//! C counterpart: `hist_poll_wakeup()` in
//! [`include/linux/trace_events.h`](srctree/include/linux/trace_events.h).
//!
//! A waker must order its hit before it checks for waiters, by a full barrier, which is too expensive for each hit. So
//! hits first test a static key, which is off while there are no pollers; the first poller waits until no hit is in
//! progress that has found the key off.

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

/// Wakes the pollers, if there are any. Called after a hit was counted, in any context.
#[inline(always)]
pub(crate) fn wake() {
    // SAFETY: the key is defined in helpers.c.
    let is_polled = unsafe {
        static_branch_unlikely!(
            bindings::hist_helper_pollers,
            bindings::hist_helper_key,
            key
        )
    };

    // `Poller::announce` waits for all hits that may have found the key off.
    if is_polled {
        wake_pollers();
    }
}

#[cold]
#[inline(never)]
fn wake_pollers() {
    // SAFETY: may be called in any context: queues an irq_work if there are waiters.
    unsafe { bindings::hist_helper_poll_wakeup() };
}

/// The state of a file that was never polled.
const SILENT: u32 = 0;
/// The state of a poller of which every hit knows.
const ANNOUNCED: u32 = 1;

/// The polling state of an open file.
///
/// # Invariants
///
/// The static key counts the file once if `state` is `ANNOUNCED`, and once for each thread that is about to set it.
pub(super) struct Poller {
    state: Atomic<u32>,
}

impl Poller {
    /// Returns the state of a file that was never polled.
    pub(super) fn new() -> Self {
        // INVARIANT: in this state the static key does not count the file.
        Self {
            state: Atomic::new(SILENT),
        }
    }

    /// Makes every hit from now on wake the pollers. Sleeps the first time it is called.
    pub(super) fn announce(&self) {
        // ORDERING: pairs with `Release` below: a thread that reads `ANNOUNCED` runs after the wait.
        if self.state.load(Acquire) == ANNOUNCED {
            return;
        }
        // SAFETY: the call may sleep, as pollers may. When it returns, the key is on for all CPUs.
        unsafe { bindings::hist_helper_pollers_inc() };
        synchronize_rcu();
        // INVARIANT: the key counts the file once for this thread, which sets `ANNOUNCED` or undoes its count.
        // ORDERING: pairs with `Acquire` above.
        if self.state.cmpxchg(SILENT, ANNOUNCED, Release).is_err() {
            forget();
        }
    }
}

/// Undoes one count of the static key. Sleeps.
fn forget() {
    // SAFETY: the callers have raised the count, and may sleep.
    unsafe { bindings::hist_helper_pollers_dec() };
}

impl Drop for Poller {
    fn drop(&mut self) {
        // ORDERING: no other context uses the file any more.
        if self.state.load(Relaxed) == ANNOUNCED {
            forget();
        }
    }
}

/// The result of `poll()`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PollEvents(base::__poll_t);

impl PollEvents {
    /// No event is ready.
    pub(crate) const NONE: Self = Self(0);
    /// The file is readable.
    pub(crate) const READABLE: Self = Self(bindings::HIST_POLL_READABLE as base::__poll_t);
    /// There were hits since the file was last polled or read.
    pub(crate) const PRIORITY: Self = Self(bindings::HIST_POLL_PRIORITY as base::__poll_t);
    /// The event of the file is gone.
    pub(crate) const ERROR: Self = Self(bindings::HIST_POLL_ERROR as base::__poll_t);

    /// Returns the events of both.
    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the value for the VFS.
    pub(super) fn bits(self) -> base::__poll_t {
        self.0
    }
}
