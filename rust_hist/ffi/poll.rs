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
use kernel::{
    bindings as base,
    static_branch_unlikely,
    sync::SetOnce, //
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

/// A count of the static key, which is undone when this is dropped. Sleeps then.
struct Counted(());

impl Drop for Counted {
    fn drop(&mut self) {
        // SAFETY: `Poller::announce` has raised the count, and the callers may sleep.
        unsafe { bindings::hist_helper_pollers_dec() };
    }
}

/// The polling state of an open file: once it is populated, every hit knows of the poller.
pub(super) struct Poller(SetOnce<Counted>);

impl Poller {
    /// Returns the state of a file that was never polled.
    pub(super) fn new() -> Self {
        Self(SetOnce::new())
    }

    /// Makes every hit from now on wake the pollers. Sleeps the first time it is called.
    pub(super) fn announce(&self) {
        if self.0.as_ref().is_some() {
            return;
        }
        // SAFETY: the call may sleep, as pollers may. When it returns, the key is on for all CPUs.
        unsafe { bindings::hist_helper_pollers_inc() };
        let counted = Counted(());
        synchronize_rcu();
        // If another thread was faster, the count of this one is undone.
        self.0.populate(counted);
    }
}

/// The result of `poll()`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PollEvents(pub(super) base::__poll_t);

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
}
