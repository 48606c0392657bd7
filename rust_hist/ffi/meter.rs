// SPDX-License-Identifier: GPL-2.0

//! What the hits of a trigger cost: words of each CPU that they count and time themselves in.
//!
//! C header: [`include/linux/percpu.h`](srctree/include/linux/percpu.h)
//!
//! They are words of the trigger and not of its table: triggers of one name share the table, and have a cost each; the map
//! of a table changes with every epoch, and CPUs may share a shard of it.

use super::{
    arch,
    cpus::PerCpu, //
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
use kernel::{
    cpu::nr_cpu_ids,
    prelude::*, //
};

/// What each call adds to the first half of the first word of its CPU. Each [`EVERY`]th has a carry.
const STEP: u32 = 1 << STEP_BITS;
const STEP_BITS: u32 = u32::BITS - EVERY.ilog2();

/// The words of a CPU.
type Words = [Atomic<u64>; 3];

/// How many calls had a carry, each of which was timed, and their ns.
const SAMPLES: usize = 1;
const TIME: usize = 2;

/// The words of one trigger. Each CPU writes its own, by instructions that no interrupt divides.
pub(crate) struct Meter(PerCpu<Words>);

impl Meter {
    /// Allocates words that are 0. Process context, sleeps; `ENOMEM`.
    pub(super) fn new() -> Result<Self> {
        // SAFETY: they are numbers.
        Ok(Self(unsafe { PerCpu::zeroed() }?))
    }

    /// Counts a call; says of one in [`EVERY`] on a CPU that it is to be timed. One instruction and a jump.
    ///
    /// Context: any, NMI included.
    #[inline(always)]
    pub(super) fn count(&self) -> bool {
        // SAFETY: the words of each CPU are there as long as the meter, and all other accesses to the first one are loads.
        unsafe { arch::add_half_on_cpu::<STEP>(self.0.base().cast()) }
    }

    /// Adds what a call has taken, for which [`Meter::count`] has said so.
    ///
    /// Context: any, NMI included.
    pub(super) fn add(&self, ns: u64) {
        self.add_to::<SAMPLES>(1);
        self.add_to::<TIME>(Cost::sample(ns));
    }

    /// Adds to a word of this CPU.
    fn add_to<const AT: usize>(&self, n: u64) {
        const { assert!(AT * 8 < size_of::<Words>()) };
        // SAFETY: as in `count`, of another word, which the assertion finds among them.
        unsafe { arch::add_on_cpu(self.0.base().cast::<u64>().wrapping_add(AT), n) };
    }

    /// What all calls have cost. Exact once they are complete.
    pub(crate) fn cost(&self) -> Cost {
        let costs = self.0.all().map(|[steps, samples, ns]| {
            // ORDERING: sums that stand for themselves, here and below.
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

    /// The bytes that it takes, of all CPUs.
    pub(crate) fn bytes(&self) -> usize {
        // CAST: a number of CPUs.
        size_of::<Words>() * nr_cpu_ids() as usize
    }
}
