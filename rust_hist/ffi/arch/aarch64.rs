// SPDX-License-Identifier: GPL-2.0

//! The edge of `ffi` to arm64: `sp_el0` has the running task, which begins with what is asked for here.
//!
//! C counterpart: [`arch/arm64/include/asm/current.h`](srctree/arch/arm64/include/asm/current.h),
//! [`arch/arm64/include/asm/percpu.h`](srctree/arch/arm64/include/asm/percpu.h),
//! [`arch/arm64/include/asm/smp.h`](srctree/arch/arm64/include/asm/smp.h) and
//! [`arch/arm64/include/asm/preempt.h`](srctree/arch/arm64/include/asm/preempt.h).
//!
//! Context: any, NMI included.

use super::bindings;
use crate::sync::{
    alternative,
    Atomic,
    Relaxed, //
};
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

/// Returns the time by the clock of this CPU, in nanoseconds: `local_clock()`, which is that of the scheduler on this
/// architecture. Context: any, NMI included.
#[inline(always)]
pub(super) fn local_clock() -> u64 {
    // SAFETY: the function takes no lock and has no precondition; it may be called in any context.
    unsafe { bindings::sched_clock() }
}

/// Returns the record that this CPU writes first and copies if somebody wants it; null if there is none.
#[cfg(not(rust_hist_stock))]
#[inline(always)]
pub(super) fn scratch_record() -> *mut bindings::ring_buffer_event {
    let of_each_cpu = &raw const bindings::trace_buffered_event;

    // SAFETY: each CPU has such a pointer, which is read whole; where the task goes to another CPU meanwhile it is that of
    // the former.
    unsafe { on_cpu(of_each_cpu.cast_mut()).read_volatile() }
}

/// Returns where the word of the present CPU is, of those at `word`, an address of `ffi/cpus.rs`. The task may go to another
/// CPU at any moment, so the caller changes the word by an atomic instruction.
#[inline(always)]
fn on_cpu<T>(word: *mut T) -> *mut T {
    let offset: usize;

    // SAFETY: only a register is read, in which the kernel keeps the offset of this CPU's data: `tpidr_el1`, or `tpidr_el2`
    // where it runs at that level. Whichever CPU it was a moment ago, its word will do.
    unsafe {
        asm!(
            alternative!("mrs {offset}, tpidr_el1", "mrs {offset}, tpidr_el2"),
            offset = out(reg) offset,
            cap = const bindings::ARM64_HAS_VIRT_HOST_EXTN,
            options(nostack, nomem, preserves_flags, pure),
        );
    }
    word.wrapping_byte_add(offset)
}

/// Adds `STEP` to the first half of this CPU's word at `word`, an address of `ffi/cpus.rs`; returns whether that has a carry.
///
/// Context: any, NMI included.
///
/// # Safety
///
/// Each CPU must have such a word, which all others only load.
#[inline(always)]
pub(super) unsafe fn add_half_on_cpu<const STEP: u32>(word: *mut u64) -> bool {
    // SAFETY: by the contract; this architecture is little endian, so the first half has the address of the word.
    let half = unsafe { Atomic::<u32>::from_ptr(on_cpu(word).cast()) };
    // ORDERING: a number by itself.
    half.fetch_add(STEP, Relaxed).overflowing_add(STEP).1
}

/// Adds to this CPU's word at `word`, an address of `ffi/cpus.rs`.
///
/// Context: any, NMI included.
///
/// # Safety
///
/// Each CPU must have such a word, which all others only load.
#[inline(always)]
pub(super) unsafe fn add_on_cpu(word: *mut u64, n: u64) {
    // SAFETY: by the contract.
    let word = unsafe { Atomic::<u64>::from_ptr(on_cpu(word)) };
    // ORDERING: a number by itself.
    word.fetch_add(n, Relaxed);
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
