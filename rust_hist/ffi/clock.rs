// SPDX-License-Identifier: GPL-2.0

//! What time it is.
//!
//! C header: [`include/linux/timekeeping.h`](srctree/include/linux/timekeeping.h)

use super::{
    arch,
    bindings, //
};
use kernel::time::{
    ClockSource,
    Monotonic,
    RealTime, //
};

/// Returns the time by `CLOCK_MONOTONIC`, in nanoseconds. Where it interrupts a correction of that clock it may be some
/// nanoseconds off.
///
/// Context: any, NMI included.
pub(crate) fn fast() -> u64 {
    // SAFETY: the function takes no lock and has no precondition; it may be called in any context.
    unsafe { bindings::ktime_get_mono_fast_ns() }
}

/// Returns the time by the clock of this CPU, in nanoseconds: for the length of something short, whatever clock source
/// the kernel has.
///
/// Context: any, NMI included, with preemption off until the end of what is measured.
pub(crate) fn local() -> u64 {
    arch::local_clock()
}

/// A moment by two clocks, in nanoseconds.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    /// `CLOCK_MONOTONIC`.
    pub(crate) monotonic: u64,
    /// `CLOCK_REALTIME`.
    pub(crate) real: u64,
}

impl Moment {
    /// The present one. Context: any but NMI.
    pub(crate) fn now() -> Self {
        Self {
            // CAST: neither clock is ever below 0.
            monotonic: Monotonic::ktime_get() as u64,
            real: RealTime::ktime_get() as u64,
        }
    }
}
