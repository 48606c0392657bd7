// SPDX-License-Identifier: GPL-2.0

//! Stack traces as triggers take them.
//!
//! C counterpart: [`kernel/stacktrace.c`](srctree/kernel/stacktrace.c), and the skip count in
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).

use super::{
    bindings,
    guard::PreemptOff, //
};
use crate::sync::{
    Atomic,
    Relaxed, //
};
use kernel::ffi::c_ulong;

/// How many frames of the tracing core come between a trigger function and the traced code.
///
/// PARITY: `HIST_STACKTRACE_SKIP` is 5, and counts the C trigger function as one of them.
const CORE_FRAMES: u32 = 4;

/// More frames of ours than any build has; bounds what [`own_frames`] looks at.
const OWN_FRAMES_MAX: usize = 8;

/// The number of our own frames above the core's, plus one; 0 until the first trace.
///
/// How many there are depends on what the compiler inlines, so it is measured, once. All writers
/// store the same value.
static OWN_FRAMES: Atomic<u32> = Atomic::new(0);

/// Saves the return addresses of the code that hit the event, and says how many there were.
#[inline(never)]
pub(crate) fn save(entries: &mut [u64], _preempt: &PreemptOff<'_>) -> usize {
    // ORDERING: the value stands for itself, and is the same whoever stores it.
    let own = match OWN_FRAMES.load(Relaxed) {
        0 => {
            let own = own_frames();
            // ORDERING: as above.
            OWN_FRAMES.store(own.saturating_add(1), Relaxed);
            own
        }
        known => known.saturating_sub(1),
    };
    save_from(entries, own.saturating_add(CORE_FRAMES))
}

/// Counts the frames from the caller of this function's caller down that are in the module.
#[inline(never)]
fn own_frames() -> u32 {
    let mut entries = [0u64; OWN_FRAMES_MAX];
    let count = save_from(&mut entries, 0);
    let ours = entries
        .iter()
        .take(count)
        .take_while(|&&entry| is_ours(entry))
        .count();
    // CAST: at most `OWN_FRAMES_MAX`. One frame is that of this function itself.
    (ours as u32).saturating_sub(1)
}

/// Whether `address` is in the code of this module.
fn is_ours(address: u64) -> bool {
    // CAST: words of the same size, see below.
    let address = address as c_ulong;
    // SAFETY: the module lives while its code runs; the helper only compares.
    unsafe { bindings::hist_helper_within_module(address, super::this_module()) }
}

/// Saves the return addresses from `skip` frames above the caller.
#[inline(always)]
fn save_from(entries: &mut [u64], skip: u32) -> usize {
    // CAST: the callers' arrays are below a page.
    let size = entries.len() as u32;
    // SAFETY: the array has `size` words, as large as the `unsigned long` of the machine.
    let count = unsafe { bindings::stack_trace_save(entries.as_mut_ptr().cast(), size, skip) };
    // CAST: at most `size`.
    count as usize
}

const _: () = assert!(size_of::<u64>() == size_of::<c_ulong>());
