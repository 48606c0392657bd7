// SPDX-License-Identifier: GPL-2.0

//! CPUs, and what each of them has of its own.
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

/// Returns how many CPUs are online now. Context: any.
pub(crate) fn online() -> u32 {
    // SAFETY: a number of the kernel image, which is written whole.
    let n = unsafe { (&raw const bindings::__num_online_cpus.counter).read_volatile() };
    // CAST: a count.
    n as u32
}

/// Says whether there may be a CPU of this number.
fn is_possible(cpu: u32) -> bool {
    // CAST: no CPU has a number that does not fit.
    let (cpu, bits) = (cpu as usize, c_ulong::BITS as usize);
    // The mask has room for as many CPUs as there can be of any machine.
    let mask = (&raw const bindings::__cpu_possible_mask).cast::<c_ulong>();
    // SAFETY: a mask of the kernel image, which does not change once the kernel has booted. The callers ask for numbers of
    // CPUs, of which it has a bit each.
    let word = unsafe { mask.add(cpu / bits).read() };
    word >> (cpu % bits) & 1 != 0
}

/// A value that each possible CPU has of its own, in memory that is 0 at first.
///
/// # Invariants
///
/// `base` came from `pcpu_alloc_noprof`, with the size and the alignment of `T`, and the value owns it.
pub(super) struct PerCpu<T> {
    base: NonNull<T>,
}

// SAFETY: the values are only lent, and may be used by any thread.
unsafe impl<T: Sync> Send for PerCpu<T> {}

// SAFETY: the values are only lent, and may be used by any thread.
unsafe impl<T: Sync> Sync for PerCpu<T> {}

impl<T> PerCpu<T> {
    /// Allocates the values. Process context, sleeps; `ENOMEM`.
    ///
    /// # Safety
    ///
    /// A `T` may be all zeros, and need not be dropped.
    pub(super) unsafe fn zeroed() -> Result<Self> {
        // SAFETY: the size is that of a type, and what it is aligned to a power of two.
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

    /// The address from which that of each CPU has the distance that is the CPU's: `arch` finds the value of the CPU that
    /// executes it.
    #[inline(always)]
    pub(super) fn base(&self) -> *mut T {
        self.base.as_ptr()
    }

    /// The values of all CPUs that may be.
    pub(super) fn all(&self) -> impl Iterator<Item = &T> {
        (0..nr_cpu_ids())
            .filter(|&cpu| is_possible(cpu))
            .map(|cpu| {
                let offsets = (&raw const bindings::__per_cpu_offset).cast::<usize>();
                // SAFETY: an array of the kernel image with an item for each CPU, which do not change once the kernel has
                // booted.
                let offset = unsafe { offsets.add(cpu as usize).read() };
                // SAFETY: by the type invariant there is a value of this CPU at that distance, as it is a possible one.
                unsafe { &*self.base.as_ptr().wrapping_byte_add(offset) }
            })
    }
}

impl<T> Drop for PerCpu<T> {
    fn drop(&mut self) {
        // SAFETY: by the type invariant the memory is the value's own.
        unsafe { bindings::free_percpu(self.base.as_ptr().cast()) };
    }
}
