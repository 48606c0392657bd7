// SPDX-License-Identifier: GPL-2.0

//! The edge of `ffi` to arm64: `sp_el0` has the running task, which begins with what is asked for here.
//!
//! C counterpart: [`arch/arm64/include/asm/current.h`](srctree/arch/arm64/include/asm/current.h),
//! [`arch/arm64/include/asm/smp.h`](srctree/arch/arm64/include/asm/smp.h) and
//! [`arch/arm64/include/asm/preempt.h`](srctree/arch/arm64/include/asm/preempt.h).
//!
//! Context: any, NMI included.

use super::bindings;
use core::arch::asm;

/// Returns what the running task begins with.
#[inline(always)]
fn thread_info() -> *mut bindings::thread_info {
    let task: *mut bindings::thread_info;
    // SAFETY: only the register is read. It is the same wherever this task runs.
    unsafe {
        asm!(
            "mrs {task}, sp_el0",
            task = out(reg) task,
            options(nostack, nomem, preserves_flags, pure),
        );
    }
    task
}

/// Returns where `preempt_count()` is, in the lower half of a word.
#[inline(always)]
fn count() -> *mut u32 {
    // SAFETY: the running task is there as long as it runs.
    unsafe { (&raw mut (*thread_info()).__bindgen_anon_1.preempt_count).cast() }
}

/// Returns the number of this CPU.
///
/// # Safety
///
/// The task must stay on the CPU as long as the number is used.
#[inline(always)]
pub(super) unsafe fn cpu() -> u32 {
    // SAFETY: the running task is there as long as it runs; by the contract nobody changes the number meanwhile.
    unsafe { (*thread_info()).cpu }
}

/// Returns `preempt_count()`.
#[inline(always)]
pub(super) fn preempt_count() -> u32 {
    // SAFETY: it is read whole. Who interrupts the task leaves it as it was.
    unsafe { count().read_volatile() }
}

/// Adds 1 to `preempt_count()`.
///
/// # Safety
///
/// The caller must lower it again, with preemption off before and after.
#[inline(always)]
#[cfg(CONFIG_PREEMPT_COUNT)]
pub(super) unsafe fn raise_preempt_count() {
    // SAFETY: the count is of this task alone. Who interrupts the task between reading and writing leaves it as it was.
    // OVERFLOW: the lowest 8 bits count sections, of which there are few.
    unsafe { count().write_volatile(preempt_count().wrapping_add(1)) };
    // No access of the section comes before that; an interrupt might see it otherwise.
    core::sync::atomic::compiler_fence(core::sync::atomic::Ordering::SeqCst);
}

/// Takes 1 from `preempt_count()`.
///
/// # Safety
///
/// The caller must have raised it, and preemption must stay off. Nobody looks whether another task is to run.
#[inline(always)]
#[cfg(CONFIG_PREEMPT_COUNT)]
pub(super) unsafe fn lower_preempt_count() {
    // No access of the section comes after this; an interrupt might see it otherwise.
    core::sync::atomic::compiler_fence(core::sync::atomic::Ordering::SeqCst);
    // SAFETY: the count is of this task alone. Who interrupts the task between reading and writing leaves it as it was.
    // OVERFLOW: the caller has raised it.
    unsafe { count().write_volatile(preempt_count().wrapping_sub(1)) };
}

/// Returns the record that this CPU writes first and copies if somebody wants it; null if there is none.
#[inline(always)]
pub(super) fn scratch_record() -> *mut bindings::ring_buffer_event {
    // SAFETY: it reads a pointer that this CPU has.
    unsafe { bindings::hist_helper_scratch_record() }
}

/// Writes `words` zeros.
///
/// # Safety
///
/// They must be there, in a block that nobody else knows.
pub(super) unsafe fn clear(block: *mut u64, words: usize) {
    // SAFETY: by the contract.
    unsafe { block.write_bytes(0, words) };
}
