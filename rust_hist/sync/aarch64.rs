// SPDX-License-Identifier: GPL-2.0

//! Assembly of the pure layers for arm64.
//!
//! C counterpart: [`arch/arm64/include/asm/percpu.h`](srctree/arch/arm64/include/asm/percpu.h) and
//! [`arch/arm64/include/asm/atomic_ll_sc.h`](srctree/arch/arm64/include/asm/atomic_ll_sc.h).
//!
//! Context: any, NMI included.

use super::{
    Atomic,
    Pair,
    PairValue,
    Relaxed, //
};

/// The text of an instruction that the kernel replaces by another one when it loads the module, if the CPUs have the
/// feature named by the operand `cap`. C counterpart: `ALTERNATIVE()`.
#[cfg(CONFIG_RUST)]
macro_rules! alternative {
    ($old:literal, $new:literal) => {
        concat!(
            "661: ",
            $old,
            "
            662:
            .pushsection .altinstructions, \"a\"
            .word 661b - .
            .word 663f - .
            .hword {cap}
            .byte 662b - 661b
            .byte 664f - 663f
            .popsection
            .subsection 1
            663: ",
            $new,
            "
            664:
            .previous"
        )
    };
}
#[cfg(CONFIG_RUST)]
pub(crate) use alternative;

/// Adds `v`, wrapping around, to the word that is `BEHIND` words after word `at` of `words`. The addition is atomic
/// against other CPUs: no instruction adds to memory with less.
///
/// # Safety
///
/// The word must exist.
#[inline]
pub(super) unsafe fn local_add<const BEHIND: usize>(words: &[Atomic<u64>], at: usize, v: u64) {
    // SAFETY: by the contract the word exists. OVERFLOW: below the number of words.
    let word = unsafe { words.get_unchecked(at.wrapping_add(BEHIND)) };
    add(word, v);
}

/// Adds `v`, wrapping around, to `word`.
#[cfg(not(CONFIG_RUST))]
#[inline]
fn add(word: &Atomic<u64>, v: u64) {
    // ORDERING: the word publishes nothing else; readers want the sum, not an order.
    word.fetch_add(v, Relaxed);
}

/// Adds `v`, wrapping around, to `word`: by one instruction if the CPUs have it. When the kernel loads the module, it
/// writes that instruction over the branch to a loop that all CPUs can execute. It is the addition that returns the old
/// value, as in `this_cpu_add()`: CPUs are more likely to execute it in their own caches.
#[cfg(CONFIG_RUST)]
#[inline(always)]
fn add(word: &Atomic<u64>, v: u64) {
    let ptr: *mut u64 = word.as_ptr();

    // SAFETY: `ptr` is the address of a live `Atomic<u64>`, which is aligned and valid for a read and a write of 8
    // bytes. All other accesses to the word are atomic, and so is the addition: the loop stores only if the word was
    // not written since it was loaded. The kernel replaces an instruction by one of the same length that does not jump.
    unsafe {
        core::arch::asm!(
            alternative!("b 3f", ".arch_extension lse\n ldadd {v}, {sum}, [{ptr}]"),
            ".subsection 1",
            "3: ldxr {sum}, [{ptr}]",
            "add {sum}, {sum}, {v}",
            "stxr {failed:w}, {sum}, [{ptr}]",
            "cbnz {failed:w}, 3b",
            "b 662b",
            ".previous",
            cap = const kernel::bindings::ARM64_HAS_LSE_ATOMICS,
            ptr = in(reg) ptr,
            v = in(reg) v,
            sum = out(reg) _,
            failed = out(reg) _,
            options(nostack, preserves_flags),
        );
    }
}

/// Adds 1, wrapping around, to word `at` of `words`.
///
/// # Safety
///
/// The word must exist.
#[inline]
pub(super) unsafe fn local_inc(words: &[Atomic<u64>], at: usize) {
    // SAFETY: by the contract the word exists.
    unsafe { local_add::<0>(words, at, 1) };
}

/// Orders this CPU's later writes after its earlier writes, for readers that read the words in the opposite order.
#[inline]
pub(super) fn order_writes() {
    // SAFETY: the instruction orders writes, and does nothing else.
    unsafe { core::arch::asm!("dmb ishst", options(nostack, preserves_flags)) };
}

/// Returns whether this CPU has the instructions of [`cmpxchg_pair`]: each CPU of this architecture does.
pub(super) fn has_pairs() -> bool {
    true
}

/// Sets `word`, which only this CPU writes, to `new` if it is `old`; else returns its value.
#[inline]
pub(super) fn local_cmpxchg(word: &Atomic<u64>, old: u64, new: u64) -> Result<u64, u64> {
    // ORDERING: the word publishes nothing else.
    word.cmpxchg(old, new, Relaxed)
}

/// Writes `new` if `pair` holds `old`, fully ordered; returns whether it did. A failed exchange orders nothing.
///
/// The loads may return one word from before and one from after a change by another CPU: only a successful store proves
/// that both were read at one moment; if it fails, another CPU has changed the words.
///
/// All CPUs of this architecture have exclusive pairs, which are no slower than `casp` if no other CPU writes the
/// words.
#[inline(always)]
pub(super) fn cmpxchg_pair(pair: &Pair, old: PairValue, new: PairValue) -> bool {
    let ptr = core::ptr::from_ref(pair);

    // SAFETY: `ptr` points to two live `Atomic<u64>`, which is valid for a read and a write of 16 bytes, and aligned to
    // them. All other accesses to the words are atomic. The store happens only if nobody has written to the words since
    // the load; between the two there is neither a branch back nor another access to memory, so the loop comes to its
    // end. `stlxp` orders accesses before, `dmb ish` accesses after, as in the kernel's `cmpxchg128()`.
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

/// Sets the first word of `pair` to `value`, adds `ADD` to the second one and sets `BITS` there, fully ordered, in as
/// few instructions as [`cmpxchg_pair`] takes for the exchange alone.
#[inline(always)]
pub(super) fn set_pair<const ADD: u64, const BITS: u64>(pair: &Pair, value: u64) {
    let ptr = core::ptr::from_ref(pair);

    // SAFETY: `ptr` points to two live `Atomic<u64>`, which is valid for a read and a write of 16 bytes, and aligned to
    // them. All other accesses to the words are atomic. The store happens only if nobody has written to the words since the
    // load; between the two there is neither a branch back nor another access to memory, so the loop comes to its end.
    // `stlxp` orders accesses before, `dmb ish` accesses after.
    unsafe {
        core::arch::asm!(
            "2: ldxp {old}, {meta}, [{ptr}]",
            "add {meta}, {meta}, #{add}",
            "orr {meta}, {meta}, #{bits}",
            "stlxp {failed:w}, {value}, {meta}, [{ptr}]",
            "cbnz {failed:w}, 2b",
            "dmb ish",
            ptr = in(reg) ptr,
            old = out(reg) _,
            meta = out(reg) _,
            failed = out(reg) _,
            value = in(reg) value,
            add = const ADD,
            bits = const BITS,
            options(nostack, preserves_flags),
        );
    }
}

/// Defines a function that returns bytes at an index as a number. Rust's target for the kernel forbids the compiler to
/// make unaligned loads (`strict-align`), unlike C's; the kernel has the CPU allow them
/// (`CONFIG_HAVE_EFFICIENT_UNALIGNED_ACCESS`).
macro_rules! load {
    ($name:ident, $number:ty, $instruction:literal) => {
        /// Returns the bytes at `at` as a number.
        ///
        /// # Safety
        ///
        /// All bytes of the number must be inside `bytes`.
        #[inline(always)]
        pub(super) unsafe fn $name(bytes: &[u8], at: usize) -> $number {
            let number: u64;

            // SAFETY: by the contract this loads bytes of the slice, which are ordinary memory, and does nothing else.
            unsafe {
                core::arch::asm!(
                    $instruction,
                    number = out(reg) number,
                    bytes = in(reg) bytes.as_ptr(),
                    at = in(reg) at,
                    options(pure, readonly, nostack, preserves_flags),
                );
            }
            // SAFETY: the instruction clears the bits above the loaded ones. This tells the compiler, which need not
            // clear them again.
            unsafe { core::hint::assert_unchecked(number <= <$number>::MAX.into()) };
            // CAST: the number fits, as the line before asserts.
            number as $number
        }
    };
}

load!(load_8, u64, "ldr {number}, [{bytes}, {at}]");
load!(load_4, u32, "ldr {number:w}, [{bytes}, {at}]");

/// Stores `number` in 8 bytes, by one instruction like the loads of `load`.
#[inline]
pub(super) fn store_8(bytes: &mut [u8; 8], number: u64) {
    // SAFETY: this stores to the 8 bytes of the reference, which are ordinary memory, and does nothing else.
    unsafe {
        core::arch::asm!(
            "str {number}, [{bytes}]",
            number = in(reg) number,
            bytes = in(reg) bytes,
            options(nostack, preserves_flags),
        );
    }
}
