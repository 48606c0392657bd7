// SPDX-License-Identifier: GPL-2.0

//! Stack traces as triggers take them.
//!
//! C counterpart: [`kernel/stacktrace.c`](srctree/kernel/stacktrace.c), and the skip count in
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).

use super::{
    bindings,
    guard::PreemptOff, //
};
use crate::limits::STACK_DEPTH;
use kernel::ffi::c_ulong;

/// How many frames of the tracing core come between a trigger function and the traced code.
///
/// PARITY: `HIST_STACKTRACE_SKIP` is 5, and counts the C trigger function as one of them.
const CORE_FRAMES: usize = 4;

/// More frames of ours than any build has: a parameter of an event has ten of them.
const OWN_FRAMES_MAX: usize = 16;

/// Room for all frames that a trigger may want, and those that it does not.
const ALL_FRAMES: usize = OWN_FRAMES_MAX + CORE_FRAMES + STACK_DEPTH;

/// Saves the return addresses of the code that hit the event: [`STACK_DEPTH`] at most.
///
/// How many frames of ours come first depends on what the compiler inlines and on what the stack is
/// wanted for, so they are looked for in each trace.
#[inline(never)]
pub(crate) fn save(entries: &mut [u64], _preempt: &PreemptOff<'_>) {
    let mut all = [0u64; ALL_FRAMES];
    // CAST: far below 2^32.
    let size = all.len() as u32;
    // SAFETY: the array has `size` words, as large as the `unsigned long` of the machine.
    let count = unsafe { bindings::stack_trace_save(all.as_mut_ptr().cast(), size, 0) };
    // CAST: at most `size`.
    let frames = all.get(..count as usize).unwrap_or(&[]);
    let own = frames.iter().take_while(|&&frame| is_ours(frame)).count();
    let wanted = frames.iter().skip(own.saturating_add(CORE_FRAMES));

    for (to, from) in entries.iter_mut().zip(wanted) {
        *to = *from;
    }
}

/// Whether `address` is in the code of this module.
fn is_ours(address: u64) -> bool {
    // CAST: words of the same size, see below.
    let address = address as c_ulong;
    // SAFETY: the module lives while its code runs; the helper only compares.
    unsafe { bindings::hist_helper_within_module(address, super::this_module()) }
}

const _: () = assert!(size_of::<u64>() == size_of::<c_ulong>());
