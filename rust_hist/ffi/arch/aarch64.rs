// SPDX-License-Identifier: GPL-2.0

//! Assembly of `ffi` for arm64: `sp_el0` points to the running task, which begins with its `thread_info`.
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

/// Returns `current_thread_info()`, the first member of the running task.
#[inline(always)]
fn thread_info() -> *mut bindings::thread_info {
    let task: *mut bindings::thread_info;
    // SAFETY: only reads the register, which has the same value on each CPU that this task runs on.
    unsafe {
        asm!(
            "mrs {task}, sp_el0",
            task = out(reg) task,
            options(nostack, nomem, preserves_flags, pure),
        );
    }
    task
}

/// Returns the address of `preempt_count()`, the lower half of a word.
#[inline(always)]
fn count() -> *mut u32 {
    // SAFETY: the running task exists as long as it runs.
    unsafe { (&raw mut (*thread_info()).__bindgen_anon_1.preempt_count).cast() }
}

/// Returns the number of this CPU.
///
/// # Safety
///
/// The task must stay on the CPU as long as the number is used.
#[inline(always)]
pub(super) unsafe fn cpu() -> u32 {
    // SAFETY: the running task exists as long as it runs; by the contract the number does not change meanwhile.
    unsafe { (*thread_info()).cpu }
}

/// Returns `preempt_count()`.
#[inline(always)]
pub(super) fn preempt_count() -> u32 {
    // SAFETY: the read is atomic, and an interrupt restores the value.
    unsafe { count().read_volatile() }
}

/// Adds 1 to `preempt_count()`.
///
/// # Safety
///
/// The caller must lower the count again; preemption must be off before and after.
#[inline(always)]
#[cfg(CONFIG_PREEMPT_COUNT)]
pub(super) unsafe fn raise_preempt_count() {
    // SAFETY: only this task uses the count, and an interrupt between read and write restores it. OVERFLOW: the lowest
    // 8 bits count sections, of which there are few.
    unsafe { count().write_volatile(preempt_count().wrapping_add(1)) };
    // No access in the section may move before the store, where an interrupt could see it.
    core::sync::atomic::compiler_fence(core::sync::atomic::Ordering::SeqCst);
}

/// Subtracts 1 from `preempt_count()`.
///
/// # Safety
///
/// The caller must have raised the count, and preemption must stay off: no reschedule is checked.
#[inline(always)]
#[cfg(CONFIG_PREEMPT_COUNT)]
pub(super) unsafe fn lower_preempt_count() {
    // No access in the section may move after the store, where an interrupt could see it.
    core::sync::atomic::compiler_fence(core::sync::atomic::Ordering::SeqCst);
    // SAFETY: only this task uses the count, and an interrupt between read and write restores it. OVERFLOW: the caller
    // has raised the count.
    unsafe { count().write_volatile(preempt_count().wrapping_sub(1)) };
}

/// Returns the time in nanoseconds by the clock of this CPU: `local_clock()`, which is the scheduler's clock on this
/// architecture. Context: any, NMI included.
#[inline(always)]
pub(super) fn local_clock() -> u64 {
    // SAFETY: the function takes no lock and has no precondition; it may be called in any context.
    unsafe { bindings::sched_clock() }
}

/// Returns this CPU's scratch record, to which it writes a record before copying it if it is wanted; null if there is
/// none.
#[cfg(not(rust_hist_stock))]
#[inline(always)]
pub(super) fn scratch_record() -> *mut bindings::ring_buffer_event {
    let of_each_cpu = &raw const bindings::trace_buffered_event;

    // SAFETY: each CPU has such a pointer, which is read at once; if the task migrates meanwhile, it is the former
    // CPU's pointer.
    unsafe { on_cpu(of_each_cpu.cast_mut()).read_volatile() }
}

/// Returns the address of this CPU's word for `word`, an address of `ffi/cpus.rs`. The task may migrate at any moment,
/// so the caller must change the word atomically.
#[inline(always)]
fn on_cpu<T>(word: *mut T) -> *mut T {
    let offset: usize;

    // SAFETY: only reads the register in which the kernel keeps the offset of this CPU's data: `tpidr_el1`, or
    // `tpidr_el2` if it runs at that level. After a migration the former CPU's word is as good.
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

/// Adds `STEP` to the first half of this CPU's word for `word`, an address of `ffi/cpus.rs`; returns whether that
/// carries.
///
/// Context: any, NMI included.
///
/// # Safety
///
/// Each CPU must have such a word, which other code may only load.
#[inline(always)]
pub(super) unsafe fn add_half_on_cpu<const STEP: u32>(word: *mut u64) -> bool {
    // SAFETY: by the contract; on this little-endian architecture the first half has the address of the word.
    let half = unsafe { Atomic::<u32>::from_ptr(on_cpu(word).cast()) };
    // ORDERING: the word publishes nothing else.
    half.fetch_add(STEP, Relaxed).overflowing_add(STEP).1
}

/// Adds `n` to this CPU's word for `word`, an address of `ffi/cpus.rs`.
///
/// Context: any, NMI included.
///
/// # Safety
///
/// Each CPU must have such a word, which other code may only load.
#[inline(always)]
pub(super) unsafe fn add_on_cpu(word: *mut u64, n: u64) {
    // SAFETY: by the contract.
    let word = unsafe { Atomic::<u64>::from_ptr(on_cpu(word)) };
    // ORDERING: the word publishes nothing else.
    word.fetch_add(n, Relaxed);
}

/// Sets `words` words at `block` to 0.
///
/// # Safety
///
/// The words must exist, in a block that no other context knows.
pub(super) unsafe fn clear(block: *mut u64, words: usize) {
    // SAFETY: by the contract.
    unsafe { block.write_bytes(0, words) };
}
