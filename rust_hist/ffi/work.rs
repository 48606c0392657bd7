// SPDX-License-Identifier: GPL-2.0

//! Work that a hit requests and a thread does.
//!
//! C header: [`include/linux/irq_work.h`](srctree/include/linux/irq_work.h)
//!
//! There is one work item for the whole module. A hit may be an NMI, so it raises an interrupt, which wakes the thread.
//! Requests while the work is pending are merged; a request while it runs makes it run once more.
//!
//! The work runs for long, and has no explicit scheduling points, which kernels of x86-64 do not need.

use super::{
    bindings,
    delayed, //
};
use core::{
    cell::UnsafeCell,
    mem::MaybeUninit, //
};
use kernel::sync::SetOnce;

/// The function that does the work.
static RUN: SetOnce<fn()> = SetOnce::new();

/// The work item, initialised by [`Worker`].
static WORK: Static<bindings::delayed_work> = Static(UnsafeCell::new(MaybeUninit::zeroed()));

/// The interrupt that wakes the thread.
static INTERRUPT: Static<bindings::irq_work> =
    Static(UnsafeCell::new(MaybeUninit::new(bindings::irq_work {
        func: Some(wake_thread),
        ..pin_init::zeroed()
    })));

/// A structure in a static, which only C uses.
struct Static<T>(UnsafeCell<MaybeUninit<T>>);

// SAFETY: C protects its structures.
unsafe impl<T> Sync for Static<T> {}

impl<T> Static<T> {
    fn get(&self) -> *mut T {
        self.0.get().cast()
    }
}

/// Returns the work item.
fn the_work() -> &'static delayed::Work {
    // SAFETY: it is a static, and `Work` is a transparent type that only C uses.
    unsafe { &*WORK.get().cast() }
}

/// Requests the work. May be called in any context.
#[cold]
#[inline(never)]
pub(crate) fn ask() {
    // SAFETY: may be called in any context; the structure is complete, and `Worker` waits for it.
    unsafe { bindings::irq_work_queue(INTERRUPT.get()) };
}

/// Requests the work after `ms` milliseconds, unless it is requested before.
pub(crate) fn ask_later(ms: u32) {
    // SAFETY: the caller is the work, so there is a `Worker`, which has initialised the work item and waits for it.
    unsafe { delayed::queue(the_work(), ms) };
}

/// The function of the interrupt.
///
/// # Safety
///
/// Only for `INTERRUPT`, which hits queue.
unsafe extern "C" fn wake_thread(_interrupt: *mut bindings::irq_work) {
    // SAFETY: a hit belongs to a trigger, and the `Worker` exists as long as there are any, and until this has
    // returned.
    unsafe { delayed::queue_now(the_work()) };
}

/// The function of the work item.
///
/// # Safety
///
/// Only for `WORK`.
unsafe extern "C" fn work(_work: *mut bindings::work_struct) {
    if let Some(run) = RUN.as_ref() {
        run();
    }
}

/// Keeps the work item usable until this is dropped. No hit requests work then, as each trigger pins the module.
pub(crate) struct Worker(());

impl Worker {
    /// Sets the function that does the work. Must be called once, before any request.
    pub(crate) fn new(run: fn()) -> Self {
        RUN.populate(run);
        // SAFETY: no other context uses the structure yet.
        unsafe { delayed::init(WORK.get(), work) };
        Self(())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // SAFETY: the caller is in process context. There are no hits any more, so the interrupt is not queued again.
        unsafe { bindings::irq_work_sync(INTERRUPT.get()) };
        // SAFETY: the caller is in process context and holds no lock. Only the interrupt and the work itself queue it.
        unsafe { delayed::cancel(the_work()) };
    }
}
