// SPDX-License-Identifier: GPL-2.0

//! Work items that a thread runs at once or after a delay.
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h)

use super::bindings;
use kernel::{
    ffi::{
        c_int,
        c_uint, //
    },
    prelude::*,
    static_lock_class,
    time::msecs_to_jiffies,
    types::Opaque, //
};

/// A work item with its timer, in a pinned value.
pub(super) type Work = Opaque<bindings::delayed_work>;

/// The function of a work item.
pub(super) type WorkFn = unsafe extern "C" fn(*mut bindings::work_struct);

/// Initialises a work item. `run` is called with its address, which is also the address of its first member.
///
/// The timer is not deferrable: a deferrable one would wait on an idle CPU even if other CPUs are busy.
pub(super) fn new(run: WorkFn) -> impl PinInit<Work> {
    Opaque::ffi_init(move |own| {
        // SAFETY: this is the place of the work item, which no other context uses yet.
        unsafe { init(own, run) }
    })
}

/// Initialises a work item in its final place.
///
/// # Safety
///
/// There must be room for the work item, which no other context uses.
pub(super) unsafe fn init(own: *mut bindings::delayed_work, run: WorkFn) {
    const { assert!(core::mem::offset_of!(bindings::delayed_work, work) == 0) };
    let name = c"rust_hist".as_char_ptr();
    // SAFETY: by the contract; name and key are static.
    unsafe {
        let key = static_lock_class!().as_ptr();
        bindings::init_work_with_key(&raw mut (*own).work, Some(run), false, name, key);
    };
    // SAFETY: by the contract; name and key are static. The function is for the timer of a `delayed_work`.
    unsafe {
        let key = static_lock_class!().as_ptr();
        bindings::timer_init_key(
            &raw mut (*own).timer,
            Some(bindings::delayed_work_timer_fn),
            bindings::TIMER_IRQSAFE,
            name,
            key,
        );
    };
}

// CAST: a small number, which means any CPU.
const ANY_CPU: c_int = bindings::wq_misc_consts_WORK_CPU_UNBOUND as c_int;

/// Queues the work to run in `ms` milliseconds, unless it is pending. Does not sleep.
///
/// # Safety
///
/// The work item must have been initialised by [`new`] or [`init`], and [`cancel`] must be called before it is freed.
pub(super) unsafe fn queue(work: &Work, ms: c_uint) {
    let delay = msecs_to_jiffies(ms);
    // SAFETY: by the contract; the workqueue is one of the kernel's.
    unsafe { bindings::queue_delayed_work_on(ANY_CPU, bindings::system_dfl_wq, work.get(), delay) };
}

/// Queues the work to run at once, even if it is pending for later. Does not sleep.
///
/// # Safety
///
/// The requirements of [`queue`].
pub(super) unsafe fn queue_now(work: &Work) {
    // SAFETY: by the contract; the workqueue is one of the kernel's.
    unsafe { bindings::mod_delayed_work_on(ANY_CPU, bindings::system_dfl_wq, work.get(), 0) };
}

/// Cancels the work, and waits for it if it is running. Sleeps; the caller must not hold a lock that the work takes.
///
/// # Safety
///
/// The work item must have been initialised by [`new`] or [`init`], and only the work itself may still queue it.
pub(super) unsafe fn cancel(work: &Work) {
    // SAFETY: by the contract.
    unsafe { bindings::cancel_delayed_work_sync(work.get()) };
}
