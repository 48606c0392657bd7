// SPDX-License-Identifier: GPL-2.0

//! CPUs, and per-CPU memory.
//!
//! C header: [`include/linux/cpumask.h`](srctree/include/linux/cpumask.h),
//! [`include/linux/percpu.h`](srctree/include/linux/percpu.h)

use super::bindings;
use core::ptr::NonNull;
use kernel::{
    cpu::nr_cpu_ids,
    ffi::c_ulong,
    prelude::*, //
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

/// A value for each possible CPU, in memory that is 0 at first.
///
/// # Invariants
///
/// `base` came from `pcpu_alloc_noprof`, with the size and the alignment of `T`, and this value owns it.
pub(super) struct PerCpu<T> {
    base: NonNull<T>,
}

// SAFETY: the values are only lent, and may be used by any thread.
unsafe impl<T: Sync> Send for PerCpu<T> {}

// SAFETY: the values are only lent, and may be used by any thread.
unsafe impl<T: Sync> Sync for PerCpu<T> {}

impl<T> PerCpu<T> {
    /// Allocates the values. Process context, sleeps; `ENOMEM` if there is no memory.
    ///
    /// # Safety
    ///
    /// A `T` must be valid if all its bytes are 0, and need not be dropped.
    pub(super) unsafe fn zeroed() -> Result<Self> {
        // SAFETY: the size and the alignment are those of a type.
        let base = unsafe {
            bindings::pcpu_alloc_noprof(
                size_of::<T>(),
                align_of::<T>(),
                false,
                bindings::GFP_KERNEL,
            )
        };
        // INVARIANT: just allocated.
        Ok(Self {
            base: NonNull::new(base.cast()).ok_or(ENOMEM)?,
        })
    }

    /// Returns the base address: the value of a CPU is at this address plus the CPU's offset, which functions of `arch`
    /// add.
    #[inline(always)]
    pub(super) fn base(&self) -> *mut T {
        self.base.as_ptr()
    }

    /// Iterates over the values of all possible CPUs.
    pub(super) fn all(&self) -> impl Iterator<Item = &T> {
        (0..nr_cpu_ids())
            .filter(|&cpu| is_possible(cpu))
            .map(|cpu| {
                let offsets = (&raw const bindings::__per_cpu_offset).cast::<usize>();
                // SAFETY: the array is part of the kernel image and has an item for each CPU, which does not change
                // after boot.
                let offset = unsafe { offsets.add(cpu as usize).read() };
                // SAFETY: by the type invariant there is a value at this offset, as the CPU is possible.
                unsafe { &*self.base.as_ptr().wrapping_byte_add(offset) }
            })
    }
}

impl<T> Drop for PerCpu<T> {
    fn drop(&mut self) {
        // SAFETY: by the type invariant this value owns the memory.
        unsafe { bindings::free_percpu(self.base.as_ptr().cast()) };
    }
}
