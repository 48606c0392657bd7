// SPDX-License-Identifier: GPL-2.0

//! The clocks of time stamps. A trigger has those of an instance, of which the events that have triggers are: not those of its
//! records, since no module can change these.
//!
//! C counterpart: `trace_clocks` in [`kernel/trace/trace.c`](srctree/kernel/trace/trace.c)

use super::{
    super::event::c_str,
    bindings,
    held,
    Atomic,
    OwnFile,
    FILES, //
};
use crate::sync::Relaxed;
use kernel::prelude::*;

/// A clock by its name. All of them count nanoseconds, and may be asked in any context.
struct Clock(&'static core::ffi::CStr, unsafe extern "C" fn() -> u64);

/// The first is that of an instance which has not been told of one.
static CLOCKS: [Clock; 7] = [
    Clock(c"local", bindings::trace_clock_local),
    Clock(c"global", bindings::trace_clock_global),
    Clock(c"perf", bindings::trace_clock),
    Clock(c"mono", bindings::ktime_get_mono_fast_ns),
    Clock(c"mono_raw", bindings::ktime_get_raw_fast_ns),
    Clock(c"boot", bindings::ktime_get_boot_fast_ns),
    Clock(c"tai", bindings::ktime_get_tai_fast_ns),
];

/// Gives the events of an instance another clock; `EINVAL` if the module has none of that name.
///
/// # Safety
///
/// The instance must be live, and the mutex held.
pub(in super::super) unsafe fn tracing_set_clock(
    instance: *mut bindings::trace_array,
    name: *const c_char,
) -> c_int {
    // SAFETY: by the contract.
    let name = unsafe { c_str(name) };
    let Some(index) = CLOCKS.iter().position(|clock| Some(clock.0) == name) else {
        return EINVAL.to_errno();
    };
    // SAFETY: by the contract.
    for own in FILES
        .get(unsafe { &held() })
        .iter()
        .filter(|own| own.instance() == instance)
    {
        // CAST: a small number.
        // ORDERING: a number by itself.
        own.clock.store(index as u32, Relaxed);
    }
    0
}

/// Whether the clock of an instance counts nanoseconds.
///
/// # Safety
///
/// None is needed.
#[inline(always)]
pub(in super::super) unsafe fn trace_clock_in_ns(_instance: *mut bindings::trace_array) -> bool {
    true
}

/// Whether the clock of the time stamps of an event counts nanoseconds.
///
/// # Safety
///
/// None is needed.
#[inline(always)]
pub(in super::super) unsafe fn stamps_in_ns(_file: *mut bindings::trace_event_file) -> bool {
    true
}

/// The time stamp of a hit: now.
///
/// # Safety
///
/// The file must be live.
#[inline(always)]
pub(in super::super) unsafe fn time_stamp(
    file: *mut bindings::trace_event_file,
    _buffer: *mut bindings::trace_buffer,
    _event: *mut bindings::ring_buffer_event,
) -> u64 {
    // SAFETY: by the contract.
    let clock: &Atomic<u32> = &unsafe { OwnFile::of(file) }.clock;
    // CAST: an index.
    // ORDERING: a number by itself.
    let clock = CLOCKS.get(clock.load(Relaxed) as usize);
    // SAFETY: the clocks have no precondition.
    clock.map_or(0, |clock| unsafe { (clock.1)() })
}
