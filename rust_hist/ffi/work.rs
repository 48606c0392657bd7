// SPDX-License-Identifier: GPL-2.0

//! Work that a hit asks for and that a thread does.
//!
//! C header: [`include/linux/irq_work.h`](srctree/include/linux/irq_work.h)
//!
//! There is one piece of work for the whole module. A hit may be an NMI, so it raises an interrupt, which wakes the
//! thread. Whoever asks while the work waits asks for the same; whoever asks while it is done has it done once more.
//!
//! The work takes long, and does without points where it gives the CPU away: all kernels of x86-64 can take it.

use super::{
    bindings,
    delayed, //
};
use core::{
    cell::UnsafeCell,
    mem::MaybeUninit, //
};
use kernel::sync::SetOnce;

/// What to do.
static RUN: SetOnce<fn()> = SetOnce::new();

/// The work, once there is a [`Worker`].
static WORK: Static<bindings::delayed_work> = Static(UnsafeCell::new(MaybeUninit::zeroed()));

/// The interrupt.
static INTERRUPT: Static<bindings::irq_work> =
    Static(UnsafeCell::new(MaybeUninit::new(bindings::irq_work {
        func: Some(wake_thread),
        ..pin_init::zeroed()
    })));

/// A structure that C alone uses, at one place.
struct Static<T>(UnsafeCell<MaybeUninit<T>>);

// SAFETY: C protects what it uses.
unsafe impl<T> Sync for Static<T> {}

impl<T> Static<T> {
    fn get(&self) -> *mut T {
        self.0.get().cast()
    }
}

/// The work.
fn the_work() -> &'static delayed::Work {
    // SAFETY: it stays, and `Work` is a transparent type that C alone looks into.
    unsafe { &*WORK.get().cast() }
}

/// Has the work done. Called in any context.
#[cold]
#[inline(never)]
pub(crate) fn ask() {
    // SAFETY: may be called in any context; the structure is complete, and `Worker` waits for it.
    unsafe { bindings::irq_work_queue(INTERRUPT.get()) };
}

/// Has the work done after so many milliseconds, unless somebody asks before.
pub(crate) fn ask_later(ms: u32) {
    // SAFETY: the caller is the work, so there is a `Worker`, which has made it and waits for it.
    unsafe { delayed::queue(the_work(), ms) };
}

/// What the interrupt does.
///
/// # Safety
///
/// For `INTERRUPT`, which hits queue.
unsafe extern "C" fn wake_thread(_interrupt: *mut bindings::irq_work) {
    // SAFETY: a hit is of a trigger, and there is a `Worker` as long as there are any, and until this has returned.
    unsafe { delayed::queue_now(the_work()) };
}

/// What the thread does.
///
/// # Safety
///
/// For `WORK`.
unsafe extern "C" fn work(_work: *mut bindings::work_struct) {
    if let Some(run) = RUN.as_ref() {
        run();
    }
}

/// Keeps the work possible until it is dropped. Nobody asks for it then: a trigger pins the module.
pub(crate) struct Worker(());

impl Worker {
    /// Says what the work is. Called once, before anybody asks.
    pub(crate) fn new(run: fn()) -> Self {
        RUN.populate(run);
        // SAFETY: nobody uses the structure yet.
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
