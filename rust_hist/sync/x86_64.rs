// SPDX-License-Identifier: GPL-2.0

//! The edge of the pure layers to x86-64.
//!
//! C counterpart: [`arch/x86/include/asm/percpu.h`](srctree/arch/x86/include/asm/percpu.h) and
//! [`arch/x86/include/asm/cmpxchg_64.h`](srctree/arch/x86/include/asm/cmpxchg_64.h).
//!
//! Context: any, NMI included.

use super::{
    Atomic,
    PairValue, //
};

/// Adds `v`, wrapping around, to the word that is `BEHIND` words behind word `at` of `words`, by one `add` to memory without
/// a `lock` prefix: no addition is lost to an interrupt of this CPU. The instruction adds both.
///
/// # Safety
///
/// There must be such a word.
#[inline(always)]
pub(super) unsafe fn local_add<const BEHIND: usize>(words: &[Atomic<u64>], at: usize, v: u64) {
    // SAFETY: by the contract the instruction computes the address of a live `Atomic<u64>`, which is aligned and valid for
    // a read and a write of 8 bytes. All other accesses to the word are atomic, the store of an aligned quadword is
    // single-copy atomic on this architecture, and an interrupt comes before or after the instruction, never inside.
    unsafe {
        core::arch::asm!(
            "add qword ptr [{words} + 8 * {at} + {behind}], {v}",
            words = in(reg) words.as_ptr(),
            at = in(reg) at,
            behind = const BEHIND * size_of::<u64>(),
            v = in(reg) v,
            options(nostack),
        );
    }
}

/// Adds one, wrapping around, to word `at` of `words`; [`local_add`] has the guarantees.
///
/// # Safety
///
/// There must be such a word.
#[inline(always)]
pub(super) unsafe fn local_inc(words: &[Atomic<u64>], at: usize) {
    // SAFETY: by the contract the instruction computes the address of a live `Atomic<u64>`, which is aligned and valid for
    // a read and a write of 8 bytes. All other accesses to the word are atomic, the store of an aligned quadword is
    // single-copy atomic on this architecture, and an interrupt comes before or after the instruction, never inside.
    unsafe {
        core::arch::asm!(
            "inc qword ptr [{words} + 8 * {at}]",
            words = in(reg) words.as_ptr(),
            at = in(reg) at,
            options(nostack),
        );
    }
}

/// Has what this CPU writes from here on come after what it has written before, for whoever reads in the opposite order.
///
/// No CPU of this architecture changes the order of writes.
#[inline(always)]
pub(super) fn order_writes() {
    core::sync::atomic::compiler_fence(core::sync::atomic::Ordering::SeqCst);
}

/// Returns whether this CPU has the instruction of [`cmpxchg_pair`].
pub(super) fn has_pairs() -> bool {
    const CX16: u32 = 1 << 13;

    // SAFETY: all CPUs of this architecture have the instruction `cpuid` and its leaf 1.
    #[allow(unused_unsafe, reason = "safe in newer compilers")]
    let features = unsafe { core::arch::x86_64::__cpuid(1) };
    features.ecx & CX16 != 0
}

/// Makes `word`, which only this CPU writes, `new` if it is `old`, by a `cmpxchg` without a `lock` prefix; else returns what
/// it is.
#[inline(always)]
pub(super) fn local_cmpxchg(word: &Atomic<u64>, old: u64, new: u64) -> Result<u64, u64> {
    let ptr: *mut u64 = word.as_ptr();
    let held: u64;

    // SAFETY: `ptr` is the address of a live `Atomic<u64>`, which is aligned and valid for a read and a write of 8
    // bytes. All other accesses to the word are atomic, the store of an aligned quadword is single-copy atomic on
    // this architecture, and an interrupt comes before or after the instruction, never inside.
    unsafe {
        core::arch::asm!(
            "cmpxchg qword ptr [{ptr}], {new}",
            ptr = in(reg) ptr,
            new = in(reg) new,
            inout("rax") old => held,
            options(nostack),
        );
    }
    if held == old {
        Ok(held)
    } else {
        Err(held)
    }
}

/// Writes `new` if `words`, which must be aligned to 16 bytes, hold `old`, fully ordered; says whether they did. An address
/// that is not aligned ends in a fault.
#[inline(always)]
pub(super) fn cmpxchg_pair(words: &[Atomic<u64>; 2], old: PairValue, new: PairValue) -> bool {
    let [first, _] = words;
    let ptr: *mut u64 = first.as_ptr();

    // SAFETY: `ptr` points to an array of two live `Atomic<u64>`, which is valid for a read and a write
    // of 16 bytes. All other accesses to the words are atomic, and a locked instruction on 16 aligned
    // bytes is atomic against accesses of any size; it would fault on an unaligned address, which the
    // invariant of `Pair` excludes. The assembler does not accept `rbx` as an operand, so `xchg` saves
    // `rbx` in `rsi` and restores both without changing the flags, before the jump, too. Every operand
    // names its register, so the compiler cannot choose `rbx` for one.
    unsafe {
        core::arch::asm!(
            "xchg rsi, rbx",
            "lock cmpxchg16b [rdi]",
            "xchg rsi, rbx",
            "jne {other}",
            in("rdi") ptr,
            in("rsi") new.value,
            in("rcx") new.meta,
            inout("rax") old.value => _,
            inout("rdx") old.meta => _,
            other = label { return false },
            options(nostack),
        );
    }
    true
}

/// Returns 8 bytes as a number.
#[inline(always)]
pub(super) fn load_8(bytes: &[u8; 8]) -> u64 {
    u64::from_ne_bytes(*bytes)
}

/// Returns 4 bytes as a number.
#[inline(always)]
pub(super) fn load_4(bytes: &[u8; 4]) -> u32 {
    u32::from_ne_bytes(*bytes)
}

/// Returns 2 bytes as a number.
#[inline(always)]
pub(super) fn load_2(bytes: &[u8; 2]) -> u16 {
    u16::from_ne_bytes(*bytes)
}

/// Makes 8 bytes `number`.
#[inline(always)]
pub(super) fn store_8(bytes: &mut [u8; 8], number: u64) {
    *bytes = number.to_ne_bytes();
}
