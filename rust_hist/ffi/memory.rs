// SPDX-License-Identifier: GPL-2.0

//! Large blocks of memory that are 0.
//!
//! C header: [`include/linux/slab.h`](srctree/include/linux/slab.h)
//!
//! The user chooses the size of a table, so an allocation that does not fit must fail instead of invoking the OOM
//! killer: that takes a flag which the kernel crate does not have.

use super::{
    arch,
    bindings, //
};
use crate::sync::Pair;
use core::{
    ops::Deref,
    ptr::NonNull, //
};
use kernel::{
    alloc::AllocError,
    prelude::*, //
};

/// A type of 64-bit words for which memory full of zeros is a valid value.
///
/// # Safety
///
/// All-zero memory must be a valid value of the type, and its size must be a multiple of 8.
pub(crate) unsafe trait ZeroIsValid {}

// SAFETY: zeros are a valid number of 8 bytes.
unsafe impl ZeroIsValid for u64 {}

// SAFETY: an array of zeros is valid if each item may be zeros; its size is a multiple of the item's.
unsafe impl<T: ZeroIsValid, const N: usize> ZeroIsValid for [T; N] {}

// SAFETY: an array of pairs of words, each of which has 8 bytes and may be zeros.
unsafe impl ZeroIsValid for CacheLines {}

const FLAGS: bindings::gfp_t =
    bindings::GFP_KERNEL | bindings::__GFP_NOWARN | 1 << bindings::___GFP_RETRY_MAYFAIL_BIT;

/// The flags for memory that is charged to the memory cgroup of the caller.
const FLAGS_CHARGED: bindings::gfp_t = FLAGS | 1 << bindings::___GFP_ACCOUNT_BIT;

/// Returns whether the kernel clears all allocated memory anyway, as with `init_on_alloc` on its command line. A kernel
/// that fills memory with a pattern to find errors only clears it on request.
fn clears_anyway() -> bool {
    // SAFETY: the key is set while the kernel boots, and never written later.
    unsafe { bindings::init_on_alloc.key.enabled.counter > 0 }
}

/// The largest block, in bytes, whose pages are physically contiguous.
const TOGETHER_MAX: usize = 4 << 20;

/// The unit to which larger blocks are rounded up: a large page, of which they consist if possible.
const LARGE_PAGE: usize = 2 << 20;

/// Returns the bytes that a block of `size` bytes takes, including the excess from rounding up.
fn rounded(size: usize) -> usize {
    match size {
        0 => 0,
        1..=TOGETHER_MAX => size.next_power_of_two(),
        _ => size.saturating_add(LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE,
    }
}

/// Allocates `len` zeros, of separate pages if the block is large, and charges them to the memory cgroup of the caller.
/// May sleep.
///
/// For memory that a reader requests, copies of rows and maps for `hist_pipe`: the limit of the reader's cgroup
/// applies. A trigger's own memory outlives its creator, and is charged to no cgroup.
pub(crate) fn charged_zeros<T: ZeroIsValid>(
    len: usize,
) -> core::result::Result<KVVec<T>, AllocError> {
    zeros_within(len, usize::MAX, FLAGS_CHARGED)
}

/// Allocates `len` zeros; if rounding up would make the block larger than `most` bytes, of small pages, which add
/// little memory, but cost the CPU more TLB entries. May sleep.
fn zeros_within<T: ZeroIsValid>(
    len: usize,
    most: usize,
    flags: bindings::gfp_t,
) -> core::result::Result<KVVec<T>, AllocError> {
    let size = len.checked_mul(size_of::<T>()).ok_or(AllocError)?;
    if size == 0 {
        return Ok(KVVec::new());
    }
    let allocate = if rounded(size) <= most {
        bindings::kvrealloc_node_align_noprof
    } else {
        bindings::vrealloc_node_align_noprof
    };
    // The block is cleared only once, by the kernel or by `arch::clear`.
    let (flags, is_clear) = match clears_anyway() {
        true => (flags | bindings::__GFP_ZERO, true),
        false => (flags, false),
    };
    // SAFETY: with a null pointer either function allocates a new block.
    let block = unsafe {
        allocate(
            core::ptr::null(),
            size,
            align_of::<T>(),
            flags,
            bindings::NUMA_NO_NODE,
        )
    };
    let block = NonNull::new(block).ok_or(AllocError)?;
    if !is_clear {
        // SAFETY: the block is new and has `size` bytes, by the contract of the trait a multiple of 8.
        unsafe { arch::clear(block.cast().as_ptr(), size / 8) };
    }
    // SAFETY: `KVVec` frees its block by `kvfree()`, which is right for blocks of either function. The block has room
    // for `len` values, all of them zeros, which are valid by the contract of the trait.
    Ok(unsafe { KVVec::from_raw_parts(block.cast().as_ptr(), len, len) })
}

/// The number of pairs in a [`CacheLines`], two cache lines, which x86 prefetches together.
const LINE_PAIRS: usize = 8;

/// Two cache lines, at an address that is a multiple of their size.
#[repr(C, align(128))]
struct CacheLines([Pair; LINE_PAIRS]);

const _: () = assert!(size_of::<CacheLines>() == LINE_PAIRS * size_of::<Pair>());

/// SharedWords that several contexts share, all 0 at first; they are aligned like a [`CacheLines`].
pub(crate) struct SharedWords {
    lines: KVVec<CacheLines>,
    bytes: usize,
}

impl SharedWords {
    /// Allocates this many pairs of words, or a few more, in little more than `most` bytes if they fit in there; with
    /// `is_charged` they are charged to the memory cgroup of the caller. May sleep.
    pub(crate) fn zeros(
        pairs: usize,
        most: usize,
        is_charged: bool,
    ) -> core::result::Result<Self, AllocError> {
        let flags = match is_charged {
            true => FLAGS_CHARGED,
            false => FLAGS,
        };
        // The block's size is a multiple of the alignment, from which `kmalloc()` derives its alignment.
        let lines: KVVec<CacheLines> = zeros_within(pairs.div_ceil(LINE_PAIRS), most, flags)?;
        let bytes = lines.len() * size_of::<CacheLines>();
        Ok(Self {
            lines,
            bytes: match rounded(bytes) {
                rounded if rounded <= most => rounded,
                _ => bytes,
            },
        })
    }

    /// Returns the bytes that the words take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Deref for SharedWords {
    type Target = [Pair];

    #[inline(always)]
    fn deref(&self) -> &[Pair] {
        // SAFETY: a `CacheLines` is an array of `LINE_PAIRS` pairs, and the lines follow each other without a gap. OVERFLOW:
        // the block has fewer bytes than the address space.
        unsafe {
            core::slice::from_raw_parts(
                self.lines.as_ptr().cast(),
                self.lines.len().wrapping_mul(LINE_PAIRS),
            )
        }
    }
}
