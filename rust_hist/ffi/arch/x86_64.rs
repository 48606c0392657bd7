// SPDX-License-Identifier: GPL-2.0

//! The edge of `ffi` to x86-64: what a CPU keeps for itself, at a distance from where its `gs` points.
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
    // SAFETY: the symbol is that of a number which each CPU has; it is read whole, and nothing else is touched. By the
    // contract the CPU stays the same between two of these.
    unsafe {
        asm!(
            "mov {cpu:e}, dword ptr gs:[rip + {of_each_cpu}]",
            cpu = out(reg) cpu,
            of_each_cpu = sym bindings::cpu_number,
            options(nostack, preserves_flags, readonly, pure),
        );
    }
    // SAFETY: an instruction that writes the lower half of a register clears the upper one. So the
    // compiler need not do it again.
    unsafe { core::hint::assert_unchecked(cpu <= u32::MAX.into()) };
    // CAST: the line before says so.
    cpu as u32
}

/// Returns `preempt_count()`, with more bits than that above the lowest 24.
#[inline(always)]
pub(super) fn preempt_count() -> u32 {
    let count: u32;
    // SAFETY: the symbol is that of a count which each CPU has; it is read whole, and nothing else is touched.
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
/// The caller must lower it again, with preemption off before and after.
#[inline(always)]
#[cfg(CONFIG_PREEMPT_COUNT)]
pub(super) unsafe fn raise_preempt_count() {
    // SAFETY: the symbol is that of a count which each CPU has, and whose lowest bits come first. One instruction changes
    // it, of the CPU that the task stays on.
    unsafe {
        asm!(
            "inc dword ptr gs:[rip + {of_each_cpu}]",
            of_each_cpu = sym bindings::__preempt_count,
            options(nostack),
        );
    }
}

/// Takes 1 from `preempt_count()`.
///
/// # Safety
///
/// The caller must have raised it, and preemption must stay off. Nobody looks whether another task is to run.
#[inline(always)]
#[cfg(CONFIG_PREEMPT_COUNT)]
pub(super) unsafe fn lower_preempt_count() {
    // SAFETY: the symbol is that of a count which each CPU has, and whose lowest bits come first. One instruction changes
    // it, of the CPU that the task stays on.
    unsafe {
        asm!(
            "dec dword ptr gs:[rip + {of_each_cpu}]",
            of_each_cpu = sym bindings::__preempt_count,
            options(nostack),
        );
    }
}

/// Returns the time by the clock of this CPU, in nanoseconds. Context: any, NMI included.
#[inline(always)]
pub(super) fn local_clock() -> u64 {
    // SAFETY: the function takes no lock and has no precondition; it may be called in any context.
    unsafe { bindings::local_clock() }
}

/// Returns the record that this CPU writes first and copies if somebody wants it; null if there is none.
#[cfg(not(rust_hist_stock))]
#[inline(always)]
pub(super) fn scratch_record() -> *mut bindings::ring_buffer_event {
    let record;
    // SAFETY: the symbol is that of a pointer which each CPU has; it is read whole, and nothing else is touched.
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

/// Adds `STEP` to the first half of this CPU's word at `word`, an address of `ffi/cpus.rs`; returns whether that has a carry.
///
/// Context: any, NMI included.
///
/// # Safety
///
/// Each CPU must have such a word, which all others only load.
#[inline(always)]
pub(super) unsafe fn add_half_on_cpu<const STEP: u32>(word: *mut u64) -> bool {
    // SAFETY: by the contract. One instruction changes the half of a word, of whichever CPU it is executed on, and an
    // interrupt comes before it or after it. Loads are of a whole word, which the processor does at once.
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

/// Adds to this CPU's word at `word`, an address of `ffi/cpus.rs`.
///
/// Context: any, NMI included.
///
/// # Safety
///
/// Each CPU must have such a word, which all others only load.
#[inline(always)]
pub(super) unsafe fn add_on_cpu(word: *mut u64, n: u64) {
    // SAFETY: by the contract. One instruction changes the word of whichever CPU it is executed on.
    unsafe {
        asm!(
            "add qword ptr gs:[{word}], {n}",
            word = in(reg) word,
            n = in(reg) n,
            options(nostack),
        );
    }
}

/// Writes `words` zeros, as `memset64()` does.
///
/// `clear_page()`, behind `__GFP_ZERO`, stores bytes where the CPU says that it is good at that. By the clock one
/// is as good as the other; an emulator takes, and counts, eight times as many steps for bytes.
///
/// # Safety
///
/// They must be there, in a block that nobody else knows.
pub(super) unsafe fn clear(block: *mut u64, words: usize) {
    // SAFETY: by the contract; the direction flag is clear wherever a function begins.
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
