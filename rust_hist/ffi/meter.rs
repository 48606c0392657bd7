// SPDX-License-Identifier: GPL-2.0

//! The measured cost of a trigger's hits: per-CPU words in which hits are counted and timed.
//!
//! C header: [`include/linux/percpu.h`](srctree/include/linux/percpu.h)
//!
//! The words belong to the trigger, not to its table: triggers with one name share a table, but each has its own cost;
//! the map of a table changes with every epoch, and CPUs may share its shards.

use super::{
    arch,
    bindings,
    cpus, //
};
use crate::{
    overhead::{
        Cost,
        EVERY, //
    },
    sync::{
        Atomic,
        Relaxed, //
    }, //
};
use core::ptr::NonNull;
use kernel::{
    cpu::nr_cpu_ids,
    prelude::*, //
};

/// The number that each call adds to the first half of its CPU's first word. Each [`EVERY`]th addition carries.
const STEP: u32 = 1 << STEP_BITS;
const STEP_BITS: u32 = u32::BITS - EVERY.ilog2();

/// The words of a meter on one CPU.
type MeterWords = [Atomic<u64>; 3];

/// Indices of the words with the number of timed calls, whose additions carried, and with their time in ns.
const SAMPLES: usize = 1;
const TIME: usize = 2;

/// The words of one trigger. Each CPU writes its own, by instructions that are atomic against interrupts: they are at this
/// address plus the CPU's offset, which functions of `arch` add.
///
/// # Invariants
///
/// The pointer came from `pcpu_alloc_noprof`, with the size and the alignment of the words, and this value owns the memory.
pub(crate) struct Meter(NonNull<MeterWords>);

// SAFETY: the words are only lent, and may be used by any thread.
unsafe impl Send for Meter {}

// SAFETY: the words are only lent, and may be used by any thread.
unsafe impl Sync for Meter {}

impl Meter {
    /// Allocates words that are 0. Process context, sleeps; `ENOMEM` if there is no memory.
    pub(super) fn new() -> Result<Self> {
        let (size, align) = (size_of::<MeterWords>(), align_of::<MeterWords>());
        // SAFETY: the size and the alignment are those of a type.
        let base = unsafe { bindings::pcpu_alloc_noprof(size, align, false, bindings::GFP_KERNEL) };
        // INVARIANT: just allocated.
        NonNull::new(base.cast()).map(Self).ok_or(ENOMEM)
    }

    /// Counts a call; returns whether it is to be timed, as one in [`EVERY`] calls on a CPU is. One instruction and a
    /// jump.
    ///
    /// Context: any, NMI included.
    #[inline(always)]
    pub(super) fn count(&self) -> bool {
        // SAFETY: each CPU has its words as long as the meter exists, and all other accesses to the first one are
        // loads.
        unsafe { arch::add_half_on_cpu::<STEP>(self.0.as_ptr().cast()) }
    }

    /// Adds the time of a call for which [`Meter::count`] has returned true.
    ///
    /// Context: any, NMI included.
    pub(super) fn add(&self, ns: u64) {
        self.add_to::<SAMPLES>(1);
        self.add_to::<TIME>(Cost::sample(ns));
    }

    /// Adds `n` to word `AT` of this CPU.
    fn add_to<const AT: usize>(&self, n: u64) {
        const { assert!(AT * 8 < size_of::<MeterWords>()) };
        // SAFETY: like in `count`, for another word, which the assertion keeps inside the words.
        unsafe { arch::add_on_cpu(self.0.as_ptr().cast::<u64>().wrapping_add(AT), n) };
    }

    /// Returns the cost of all calls. Exact once these are complete.
    pub(crate) fn cost(&self) -> Cost {
        let costs = cpus::offsets().map(|offset| {
            // SAFETY: by the type invariant there are words at this offset; they are atomic numbers, which were 0 at first.
            let [steps, samples, ns] = unsafe { &*self.0.as_ptr().wrapping_byte_add(offset) };
            // ORDERING: the words publish nothing else, here and below.
            let steps = (steps.load(Relaxed) >> STEP_BITS) & (EVERY - 1);
            let samples = samples.load(Relaxed);
            Cost {
                calls: samples.wrapping_mul(EVERY).wrapping_add(steps),
                samples,
                ns: ns.load(Relaxed),
            }
        });
        costs.fold(Cost::default(), |sum, cost| sum.plus(&cost))
    }

    /// Returns the bytes that the words of all CPUs take.
    pub(crate) fn bytes(&self) -> usize {
        // CAST: the number of CPUs fits.
        size_of::<MeterWords>() * nr_cpu_ids() as usize
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        // SAFETY: by the type invariant this value owns the memory.
        unsafe { bindings::free_percpu(self.0.as_ptr().cast()) };
    }
}
