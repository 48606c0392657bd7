// SPDX-License-Identifier: GPL-2.0

//! CPUs, and per-CPU memory.
//!
//! C header: [`include/linux/cpumask.h`](srctree/include/linux/cpumask.h),
//! [`include/linux/percpu.h`](srctree/include/linux/percpu.h)

use super::bindings;
use kernel::{
    cpu::nr_cpu_ids,
    ffi::c_ulong, //
};

/// Returns the number of CPUs that are online. Context: any.
pub(crate) fn online() -> u32 {
    // SAFETY: the number is part of the kernel image, and is written at once.
    let n = unsafe { (&raw const bindings::__num_online_cpus.counter).read_volatile() };
    // CAST: the number of CPUs fits.
    n as u32
}

/// Returns whether a CPU with this number is possible.
fn is_possible(cpu: u32) -> bool {
    // CAST: no CPU has a number that does not fit.
    let (cpu, bits) = (cpu as usize, c_ulong::BITS as usize);
    // The mask has a bit for each CPU that any machine may have.
    let mask = (&raw const bindings::__cpu_possible_mask).cast::<c_ulong>();
    // SAFETY: the mask is part of the kernel image, and does not change after boot. Callers pass numbers of CPUs, each
    // of which has a bit.
    let word = unsafe { mask.add(cpu / bits).read() };
    word >> (cpu % bits) & 1 != 0
}

/// Iterates over the offsets of all possible CPUs, at which each has its part of per-CPU memory.
pub(super) fn offsets() -> impl Iterator<Item = usize> {
    let cpus = (0..nr_cpu_ids()).filter(|&cpu| is_possible(cpu));
    cpus.map(|cpu| {
        let offsets = (&raw const bindings::__per_cpu_offset).cast::<usize>();
        // SAFETY: the array is part of the kernel image and has an item for each CPU, which does not change after boot.
        unsafe { offsets.add(cpu as usize).read() }
    })
}
