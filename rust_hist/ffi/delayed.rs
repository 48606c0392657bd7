// SPDX-License-Identifier: GPL-2.0

//! Work that a thread does a second later.
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

/// How much later, in milliseconds.
const LATER: c_uint = 1000;

/// Makes a work. `run` is called with its address, which is that of the first member.
///
/// The timer is not deferrable: on a CPU that is idle such a one waits, however busy the others are.
pub(super) fn new(run: WorkFn) -> impl PinInit<Work> {
    const { assert!(core::mem::offset_of!(bindings::delayed_work, work) == 0) };
    Opaque::ffi_init(move |own: *mut bindings::delayed_work| {
        let name = c"rust_hist".as_char_ptr();
        // SAFETY: this is the place of the work; name and key are static.
        unsafe {
            let key = static_lock_class!().as_ptr();
            bindings::init_work_with_key(&raw mut (*own).work, Some(run), false, name, key);
        };
        // SAFETY: this is the place of the work; name and key are static. The function is for the timer of a
        // `delayed_work`.
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
    })
}

/// Has the work done in a second, unless it waits for that already. Does not sleep.
///
/// # Safety
///
/// The work was made by [`new`], and [`cancel`] will be called before it goes.
pub(super) unsafe fn queue(work: &Work) {
    // CAST: a small number that stands for no CPU.
    let any = bindings::wq_misc_consts_WORK_CPU_UNBOUND as c_int;
    // SAFETY: by the contract; the queue is one of the kernel's.
    unsafe {
        bindings::queue_delayed_work_on(
            any,
            bindings::system_dfl_wq,
            work.get(),
            msecs_to_jiffies(LATER),
        )
    };
}

/// Waits until the work is done, if it is being done, and has it done no more. Sleeps; the caller holds no lock that the work
/// takes.
///
/// # Safety
///
/// The work was made by [`new`], and nobody but itself queues it any more.
pub(super) unsafe fn cancel(work: &Work) {
    // SAFETY: by the contract.
    unsafe { bindings::cancel_delayed_work_sync(work.get()) };
}
