// SPDX-License-Identifier: GPL-2.0

//! Assembly of the pure layers for x86-64.
//!
//! C counterpart: [`arch/x86/include/asm/percpu.h`](srctree/arch/x86/include/asm/percpu.h) and
//! [`arch/x86/include/asm/cmpxchg_64.h`](srctree/arch/x86/include/asm/cmpxchg_64.h).
//!
//! Context: any, NMI included.

use super::{
    Atomic,
    Pair,
    PairValue, //
};

pub(super) use super::set_by_exchange as set_pair;

/// Adds `v`, wrapping around, to the word that is `BEHIND` words after word `at` of `words`, by one `add` to memory
/// without a `lock` prefix: no addition is lost to an interrupt of this CPU. The instruction adds `at` and `BEHIND`.
///
/// # Safety
///
/// The word must exist.
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

/// Adds 1, wrapping around, to word `at` of `words`; see [`local_add`] for the guarantees.
///
/// # Safety
///
/// The word must exist.
#[inline]
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

/// Orders this CPU's later writes after its earlier writes, for readers that read the words in the opposite order.
///
/// CPUs of this architecture never reorder writes, so only the compiler is kept from it.
#[inline]
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

/// Sets `word`, which only this CPU writes, to `new` if it is `old`, by a `cmpxchg` without a `lock` prefix; else
/// returns its value.
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

/// Writes `new` if `pair` holds `old`, fully ordered; returns whether it did.
#[inline(always)]
pub(super) fn cmpxchg_pair(pair: &Pair, old: PairValue, new: PairValue) -> bool {
    let ptr = core::ptr::from_ref(pair);

    // SAFETY: `ptr` points to two live `Atomic<u64>`, which is valid for a read and a write of 16 bytes, and aligned to
    // them, as the instruction requires. All other accesses to the words are atomic, and a locked instruction on 16
    // aligned bytes is atomic against accesses of any size. It takes the first new word from `rbx`, which no operand
    // may name: the other three registers of its class are taken, and the assembler refuses any other register.
    unsafe {
        core::arch::asm!(
            ".ifnc {value}, rbx",
            ".error \"cmpxchg16b takes its operand from rbx\"",
            ".endif",
            "lock cmpxchg16b [{ptr}]",
            "jne {other}",
            ptr = in(reg) ptr,
            value = in(reg_abcd) new.value,
            in("rcx") new.meta,
            inout("rax") old.value => _,
            inout("rdx") old.meta => _,
            other = label { return false },
            options(nostack),
        );
    }
    true
}

/// Defines a function that returns bytes at an index as a number.
macro_rules! load {
    ($name:ident, $number:ty) => {
        /// Returns the bytes at `at` as a number.
        ///
        /// # Safety
        ///
        /// All bytes of the number must be inside `bytes`.
        #[inline]
        pub(super) unsafe fn $name(bytes: &[u8], at: usize) -> $number {
            // SAFETY: by the contract this reads bytes of the slice, aligned or not.
            unsafe { bytes.as_ptr().add(at).cast::<$number>().read_unaligned() }
        }
    };
}

load!(load_8, u64);
load!(load_4, u32);

/// Stores `number` in 8 bytes.
#[inline]
pub(super) fn store_8(bytes: &mut [u8; 8], number: u64) {
    *bytes = number.to_ne_bytes();
}
