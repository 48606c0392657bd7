// SPDX-License-Identifier: GPL-2.0

//! Reading the kernel's clocks.
//!
//! C header: [`include/linux/timekeeping.h`](srctree/include/linux/timekeeping.h)

use super::{
    arch,
    bindings, //
};

/// Returns the time by `CLOCK_MONOTONIC`, in nanoseconds. The result may be off by some nanoseconds if the caller has
/// interrupted a correction of the clock.
///
/// Context: any, NMI included.
pub(crate) fn fast() -> u64 {
    // SAFETY: the function takes no lock and has no precondition; it may be called in any context.
    unsafe { bindings::ktime_get_mono_fast_ns() }
}

/// Returns the time in nanoseconds by the clock of this CPU, which is good for measuring short durations with any clock
/// source.
///
/// Context: any, NMI included, with preemption off from the beginning to the end of the measured duration.
pub(crate) fn local() -> u64 {
    arch::local_clock()
}

/// A moment by two clocks, in nanoseconds.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    /// The time by `CLOCK_MONOTONIC`.
    pub(crate) monotonic: u64,
    /// The time by `CLOCK_REALTIME`.
    pub(crate) real: u64,
}

impl Moment {
    /// Returns the present moment, also before the kernel keeps time.
    pub(crate) fn now() -> Self {
        Self {
            monotonic: fast(),
            // SAFETY: the function takes no lock and has no precondition.
            real: unsafe { bindings::ktime_get_real_fast_ns() },
        }
    }
}
