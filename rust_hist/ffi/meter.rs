// SPDX-License-Identifier: GPL-2.0

//! What the hits of a trigger cost: words of each CPU that they count and time themselves in.
//!
//! C header: [`include/linux/percpu.h`](srctree/include/linux/percpu.h)
//!
//! They are words of the trigger and not of its table: triggers of one name share the table, and have a cost each; the map
//! of a table changes with every epoch, and CPUs may share a shard of it.

use super::{
    bindings,
    guard::PreemptOff, //
};
use crate::{
    overhead::{
        Cost,
        EVERY,
        LONGEST, //
    },
    sync::{
        local_add,
        local_inc,
        Atomic,
        Relaxed, //
    }, //
};
use core::ptr::NonNull;
use kernel::{
    cpu::nr_cpu_ids,
    prelude::*, //
};

/// What each call adds to the first half of the first word of its CPU. Each [`EVERY`]th has a carry.
const STEP: u32 = 1 << STEP_BITS;
const STEP_BITS: u32 = u32::BITS - EVERY.ilog2();

/// The words of a CPU.
type Words = [Atomic<u64>; 4];

/// How many calls had a carry, how many of these are samples, and the ns of the latter.
const CARRIES: usize = 1;
const SAMPLES: usize = 2;
const TIME: usize = 3;

/// The words of one trigger.
///
/// # Invariants
///
/// The address is that of a [`Words`] of each possible CPU, which the value owns. A CPU alone writes its own, by
/// instructions that no interrupt divides.
pub(crate) struct Meter(NonNull<c_void>);

// SAFETY: the words are atomic, and each CPU adds to its own.
unsafe impl Send for Meter {}

// SAFETY: the words are atomic, and each CPU adds to its own.
unsafe impl Sync for Meter {}

impl Meter {
    /// Allocates words that are 0. Process context, sleeps; `ENOMEM`.
    pub(super) fn new() -> Result<Self> {
        // SAFETY: the size is not 0, and the alignment a power of two below a page.
        let words =
            unsafe { bindings::hist_helper_alloc_percpu(size_of::<Words>(), size_of::<Words>()) };
        // INVARIANT: just allocated, and zeroed.
        Ok(Self(NonNull::new(words).ok_or(ENOMEM)?))
    }

    /// Counts a call; says of one in [`EVERY`] on a CPU that it is to be timed. One instruction and a jump.
    ///
    /// Context: any, NMI included.
    #[inline(always)]
    pub(super) fn count(&self) -> bool {
        // SAFETY: by the type invariant the address is valid for each CPU, at the distance from where its `gs` points. One
        // instruction changes the half of a word, of whichever CPU it is executed on, and an interrupt comes before it or
        // after it. All other accesses to the word are loads, of a whole one, which the processor does at once.
        unsafe {
            core::arch::asm!(
                "add dword ptr gs:[{words}], {step}",
                "jc {is_timed}",
                words = in(reg) self.0.as_ptr(),
                step = const STEP,
                is_timed = label { return true },
                options(nostack),
            );
        }
        false
    }

    /// Adds what a call has taken, for which [`Meter::count`] has said so.
    ///
    /// Context: any, NMI included.
    pub(super) fn add(&self, ns: u64, _preempt: &PreemptOff<'_>) {
        // SAFETY: by the type invariant; the address of the words of this CPU, on which the proof keeps the task.
        let words =
            unsafe { &*bindings::hist_helper_this_cpu_ptr(self.0.as_ptr()).cast::<Words>() };
        local_inc(words, CARRIES);
        if ns <= LONGEST {
            local_inc(words, SAMPLES);
            local_add(words, TIME, ns);
        }
    }

    /// What all calls have cost. Exact once they are complete.
    pub(crate) fn cost(&self) -> Cost {
        (0..nr_cpu_ids())
            .filter_map(|cpu| {
                // SAFETY: by the type invariant, and the helper returns null for CPUs that cannot be.
                NonNull::new(unsafe { bindings::hist_helper_per_cpu_ptr(self.0.as_ptr(), cpu) })
            })
            .map(|words| {
                // SAFETY: by the type invariant.
                let [steps, carries, samples, ns] = unsafe { words.cast::<Words>().as_ref() };
                // ORDERING: sums that stand for themselves, here and below.
                let steps = (steps.load(Relaxed) >> STEP_BITS) & (EVERY - 1);
                Cost {
                    calls: carries
                        .load(Relaxed)
                        .wrapping_mul(EVERY)
                        .wrapping_add(steps),
                    samples: samples.load(Relaxed),
                    ns: ns.load(Relaxed),
                }
            })
            .fold(Cost::default(), |sum, cost| sum.plus(&cost))
    }

    /// The bytes that it takes, of all CPUs.
    pub(crate) fn bytes(&self) -> usize {
        // CAST: a number of CPUs.
        size_of::<Words>() * nr_cpu_ids() as usize
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        // SAFETY: by the type invariant the words are the value's own.
        unsafe { bindings::free_percpu(self.0.as_ptr()) };
    }
}
