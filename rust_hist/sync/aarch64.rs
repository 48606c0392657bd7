// SPDX-License-Identifier: GPL-2.0

//! The edge of the pure layers to arm64.
//!
//! C counterpart: [`arch/arm64/include/asm/percpu.h`](srctree/arch/arm64/include/asm/percpu.h) and
//! [`arch/arm64/include/asm/atomic_ll_sc.h`](srctree/arch/arm64/include/asm/atomic_ll_sc.h).
//!
//! Context: any, NMI included.

use super::{
    Atomic,
    PairValue,
    Relaxed, //
};

/// Adds `v`, wrapping around, to the word that is `BEHIND` words behind word `at` of `words`. No instruction adds to memory without being atomic against other
/// CPUs, too.
///
/// # Safety
///
/// There must be such a word.
#[inline(always)]
pub(super) unsafe fn local_add<const BEHIND: usize>(words: &[Atomic<u64>], at: usize, v: u64) {
    // SAFETY: by the contract. OVERFLOW: below the number of words.
    let word = unsafe { words.get_unchecked(at.wrapping_add(BEHIND)) };
    // ORDERING: a number by itself; readers want the sum, not an order.
    word.fetch_add(v, Relaxed);
}

/// Adds one, wrapping around, to word `at` of `words`.
///
/// # Safety
///
/// There must be such a word.
#[inline(always)]
pub(super) unsafe fn local_inc(words: &[Atomic<u64>], at: usize) {
    // SAFETY: by the contract.
    unsafe { local_add::<0>(words, at, 1) };
}

/// Has what this CPU writes from here on come after what it has written before, for whoever reads in the opposite order.
#[inline(always)]
pub(super) fn order_writes() {
    // SAFETY: it orders writes, and does nothing else.
    unsafe { core::arch::asm!("dmb ishst", options(nostack, preserves_flags)) };
}

/// Returns whether this CPU has the instructions of [`cmpxchg_pair`]: each CPU of this architecture does.
pub(super) fn has_pairs() -> bool {
    true
}

/// Makes `word`, which only this CPU writes, `new` if it is `old`; else returns what it is.
#[inline(always)]
pub(super) fn local_cmpxchg(word: &Atomic<u64>, old: u64, new: u64) -> Result<u64, u64> {
    // ORDERING: a number by itself.
    word.cmpxchg(old, new, Relaxed)
}

/// Writes `new` if `words`, which must be aligned to 16 bytes, hold `old`, fully ordered; says whether they did. If not, it
/// orders nothing.
///
/// What is read of the words may be one of before and one of after a change by another CPU: only a store that succeeds
/// proves that both were read at one moment, and another CPU has changed them where it does not.
///
/// The exclusive pair is in all CPUs of this architecture, and no slower than `casp` where nobody else writes the words.
#[inline(always)]
pub(super) fn cmpxchg_pair(words: &[Atomic<u64>; 2], old: PairValue, new: PairValue) -> bool {
    let [first, _] = words;
    let ptr: *mut u64 = first.as_ptr();

    // SAFETY: `ptr` points to an array of two live `Atomic<u64>`, which is valid for a read and a write of 16 bytes, and
    // aligned to them by the invariant of `Pair`. All other accesses to the words are atomic. The store happens only if
    // nobody has written to the words since the load; between the two there is neither a branch back nor another access to
    // memory, so the loop comes to its end. `stlxp` orders what comes before, `dmb ish` what comes after, as in the kernel's
    // `cmpxchg128()`.
    unsafe {
        core::arch::asm!(
            "2: ldxp {value}, {meta}, [{ptr}]",
            "cmp {value}, {old_value}",
            "ccmp {meta}, {old_meta}, #0, eq",
            "b.ne {other}",
            "stlxp {failed:w}, {new_value}, {new_meta}, [{ptr}]",
            "cbnz {failed:w}, 2b",
            "dmb ish",
            ptr = in(reg) ptr,
            value = out(reg) _,
            meta = out(reg) _,
            failed = out(reg) _,
            old_value = in(reg) old.value,
            old_meta = in(reg) old.meta,
            new_value = in(reg) new.value,
            new_meta = in(reg) new.meta,
            other = label { return false },
            options(nostack),
        );
    }
    true
}

/// Returns 8 bytes as a number. The target of Rust for the kernel forbids the compiler what C's may do, to load what is not
/// aligned (`strict-align`); the kernel has the CPU do it (`CONFIG_HAVE_EFFICIENT_UNALIGNED_ACCESS`).
#[inline(always)]
pub(super) fn load_8(bytes: &[u8; 8]) -> u64 {
    let number;

    // SAFETY: it loads the 8 bytes of the reference, which are ordinary memory, and does nothing else.
    unsafe {
        core::arch::asm!(
            "ldr {number}, [{bytes}]",
            number = out(reg) number,
            bytes = in(reg) bytes,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    number
}

/// Returns 4 bytes as a number; see [`load_8`].
#[inline(always)]
pub(super) fn load_4(bytes: &[u8; 4]) -> u32 {
    let number;

    // SAFETY: it loads the 4 bytes of the reference, which are ordinary memory, and does nothing else.
    unsafe {
        core::arch::asm!(
            "ldr {number:w}, [{bytes}]",
            number = out(reg) number,
            bytes = in(reg) bytes,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    number
}

/// Returns 2 bytes as a number; see [`load_8`].
#[inline(always)]
pub(super) fn load_2(bytes: &[u8; 2]) -> u16 {
    let number;

    // SAFETY: it loads the 2 bytes of the reference, which are ordinary memory, and does nothing else.
    unsafe {
        core::arch::asm!(
            "ldrh {number:w}, [{bytes}]",
            number = out(reg) number,
            bytes = in(reg) bytes,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    number
}

/// Makes 8 bytes `number`; see [`load_8`].
#[inline(always)]
pub(super) fn store_8(bytes: &mut [u8; 8], number: u64) {
    // SAFETY: it stores to the 8 bytes of the reference, which are ordinary memory, and does nothing else.
    unsafe {
        core::arch::asm!(
            "str {number}, [{bytes}]",
            number = in(reg) number,
            bytes = in(reg) bytes,
            options(nostack, preserves_flags),
        );
    }
}
