// SPDX-License-Identifier: GPL-2.0

//! Assembly of `ffi` for x86-64: per-CPU data, which are relative to the segment register `gs`.
//!
//! C counterpart: [`arch/x86/include/asm/percpu.h`](srctree/arch/x86/include/asm/percpu.h),
//! [`arch/x86/include/asm/preempt.h`](srctree/arch/x86/include/asm/preempt.h) and
//! [`arch/x86/include/asm/string_64.h`](srctree/arch/x86/include/asm/string_64.h).
//!
//! Context: any, NMI included.

use super::bindings;
use core::arch::asm;

/// Returns the number of this CPU.
///
/// # Safety
///
/// The task must stay on the CPU as long as the number is used.
#[inline(always)]
pub(super) unsafe fn cpu() -> u32 {
    let cpu: u64;
    // SAFETY: the symbol is a per-CPU number, which is read at once; nothing else is accessed. By the contract the task
    // does not migrate while the number is used.
    unsafe {
        asm!(
            "mov {cpu:e}, dword ptr gs:[rip + {of_each_cpu}]",
            cpu = out(reg) cpu,
            of_each_cpu = sym bindings::cpu_number,
            options(nostack, preserves_flags, readonly, pure),
        );
    }
    // SAFETY: an instruction that writes the lower half of a register clears the upper half. This tells the compiler,
    // which need not clear it again.
    unsafe { core::hint::assert_unchecked(cpu <= u32::MAX.into()) };
    // CAST: the number fits, as the line before asserts.
    cpu as u32
}

/// Returns `preempt_count()`; bits above the lowest 24 have other meanings.
#[inline(always)]
pub(super) fn preempt_count() -> u32 {
    let count: u32;
    // SAFETY: the symbol is a per-CPU count, which is read at once; nothing else is accessed.
    unsafe {
        asm!(
            "mov {count:e}, dword ptr gs:[rip + {of_each_cpu}]",
            count = out(reg) count,
            of_each_cpu = sym bindings::__preempt_count,
            options(nostack, preserves_flags, readonly),
        );
    }
    count
}

/// Adds 1 to `preempt_count()`.
///
/// # Safety
///
/// The caller must lower the count again; preemption must be off before and after.
#[inline(always)]
#[cfg(CONFIG_PREEMPT_COUNT)]
pub(super) unsafe fn raise_preempt_count() {
    // SAFETY: the symbol is a per-CPU count, whose lowest bits come first. One instruction changes it, on the CPU on
    // which the task stays.
    unsafe {
        asm!(
            "inc dword ptr gs:[rip + {of_each_cpu}]",
            of_each_cpu = sym bindings::__preempt_count,
            options(nostack),
        );
    }
}

/// Subtracts 1 from `preempt_count()`.
///
/// # Safety
///
/// The caller must have raised the count, and preemption must stay off: no reschedule is checked.
#[inline(always)]
#[cfg(CONFIG_PREEMPT_COUNT)]
pub(super) unsafe fn lower_preempt_count() {
    // SAFETY: the symbol is a per-CPU count, whose lowest bits come first. One instruction changes it, on the CPU on
    // which the task stays.
    unsafe {
        asm!(
            "dec dword ptr gs:[rip + {of_each_cpu}]",
            of_each_cpu = sym bindings::__preempt_count,
            options(nostack),
        );
    }
}

/// Returns the time in nanoseconds by the clock of this CPU. Context: any, NMI included.
#[inline(always)]
pub(super) fn local_clock() -> u64 {
    // SAFETY: the function takes no lock and has no precondition; it may be called in any context.
    unsafe { bindings::local_clock() }
}

/// Returns this CPU's scratch record, to which it writes a record before copying it if it is wanted; null if there is
/// none.
#[cfg(not(rust_hist_stock))]
#[inline(always)]
pub(super) fn scratch_record() -> *mut bindings::ring_buffer_event {
    let record;
    // SAFETY: the symbol is a per-CPU pointer, which is read at once; nothing else is accessed.
    unsafe {
        asm!(
            "mov {record}, qword ptr gs:[rip + {of_each_cpu}]",
            record = out(reg) record,
            of_each_cpu = sym bindings::trace_buffered_event,
            options(nostack, preserves_flags, readonly),
        );
    }
    record
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
    // SAFETY: by the contract. One instruction changes half of the word of the CPU that executes it, and an interrupt
    // comes before or after it. Other code loads the whole word at once.
    unsafe {
        asm!(
            "add dword ptr gs:[{word}], {step}",
            "jc {has_carry}",
            word = in(reg) word,
            step = const STEP,
            has_carry = label { return true },
            options(nostack),
        );
    }
    false
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
    // SAFETY: by the contract. One instruction changes the word of the CPU that executes it.
    unsafe {
        asm!(
            "add qword ptr gs:[{word}], {n}",
            word = in(reg) word,
            n = in(reg) n,
            options(nostack),
        );
    }
}

/// Sets `words` words at `block` to 0, as `memset64()` does.
///
/// `clear_page()`, which `__GFP_ZERO` calls, stores bytes if the CPU reports that this is fast. Both take the same
/// time, but an emulator executes, and counts, eight times as many steps for bytes.
///
/// # Safety
///
/// The words must exist, in a block that no other context knows.
pub(super) unsafe fn clear(block: *mut u64, words: usize) {
    // SAFETY: by the contract; the direction flag is clear at the start of each function.
    unsafe {
        asm!(
            "rep stosq",
            inout("rdi") block => _,
            inout("rcx") words => _,
            in("rax") 0u64,
            options(nostack, preserves_flags),
        );
    }
}
