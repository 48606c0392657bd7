// SPDX-License-Identifier: GPL-2.0

//! Work that a thread does at once or some time later.
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

/// A work and its timer, for a value that is pinned.
pub(super) type Work = Opaque<bindings::delayed_work>;

/// A function that does the work.
pub(super) type WorkFn = unsafe extern "C" fn(*mut bindings::work_struct);

/// Makes a work. `run` is called with its address, which is that of the first member.
///
/// The timer is not deferrable: on a CPU that is idle such a one waits, however busy the others are.
pub(super) fn new(run: WorkFn) -> impl PinInit<Work> {
    Opaque::ffi_init(move |own| {
        // SAFETY: this is the place of the work, which nobody uses yet.
        unsafe { init(own, run) }
    })
}

/// Makes a work where it stays.
///
/// # Safety
///
/// There must be room for the work, which nobody else uses.
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

// CAST: a small number that stands for no CPU.
const ANY_CPU: c_int = bindings::wq_misc_consts_WORK_CPU_UNBOUND as c_int;

/// Has the work done in so many milliseconds, unless it waits for its time already. Does not sleep.
///
/// # Safety
///
/// The work was made by [`new`] or [`init`], and [`cancel`] will be called before it goes.
pub(super) unsafe fn queue(work: &Work, ms: c_uint) {
    let delay = msecs_to_jiffies(ms);
    // SAFETY: by the contract; the queue is one of the kernel's.
    unsafe { bindings::queue_delayed_work_on(ANY_CPU, bindings::system_dfl_wq, work.get(), delay) };
}

/// Has the work done at once, also if it waits for its time. Does not sleep.
///
/// # Safety
///
/// As that of [`queue`].
pub(super) unsafe fn queue_now(work: &Work) {
    // SAFETY: by the contract; the queue is one of the kernel's.
    unsafe { bindings::mod_delayed_work_on(ANY_CPU, bindings::system_dfl_wq, work.get(), 0) };
}

/// Waits until the work is done, if it is being done, and has it done no more. Sleeps; the caller holds no lock that the work
/// takes.
///
/// # Safety
///
/// The work was made by [`new`] or [`init`], and nobody but itself queues it any more.
pub(super) unsafe fn cancel(work: &Work) {
    // SAFETY: by the contract.
    unsafe { bindings::cancel_delayed_work_sync(work.get()) };
}
