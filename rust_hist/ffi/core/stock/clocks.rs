// SPDX-License-Identifier: GPL-2.0

//! The clocks that give triggers their time stamps. Each instance has one for its triggers, which `clock=` chooses. It
//! is not the clock of the instance's records, which no module can change.
//!
//! C counterpart: `trace_clocks` in [`kernel/trace/trace.c`](srctree/kernel/trace/trace.c)

use super::{
    super::event::c_str,
    bindings,
    Atomic,
    EventMutexHeld,
    OwnFile,
    FILES, //
};
use crate::sync::Relaxed;
use kernel::prelude::*;

/// A clock by its name. All of them count nanoseconds, and may be asked in any context.
struct Clock(&'static core::ffi::CStr, unsafe extern "C" fn() -> u64);

/// The clocks that `clock=` can name. An instance has the first one until a trigger names another.
static CLOCKS: [Clock; 7] = [
    Clock(c"local", bindings::trace_clock_local),
    Clock(c"global", bindings::trace_clock_global),
    Clock(c"perf", bindings::trace_clock),
    Clock(c"mono", bindings::ktime_get_mono_fast_ns),
    Clock(c"mono_raw", bindings::ktime_get_raw_fast_ns),
    Clock(c"boot", bindings::ktime_get_boot_fast_ns),
    Clock(c"tai", bindings::ktime_get_tai_fast_ns),
];

/// Sets the clock of all events with triggers in an instance; `EINVAL` if the module has no clock with this name.
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
        .get(unsafe { &EventMutexHeld::assume() })
        .iter()
        .filter(|own| own.is_pinned() && own.instance() == instance)
    {
        // CAST: the index is below the number of clocks.
        // ORDERING: no other data depends on the index.
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

/// Returns the time stamp of a hit: the present time by the clock of its instance.
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
    // CAST: the index is below the number of clocks.
    // ORDERING: no other data depends on the index.
    let clock = CLOCKS.get(clock.load(Relaxed) as usize);
    // SAFETY: the clocks have no precondition.
    clock.map_or(0, |clock| unsafe { (clock.1)() })
}
