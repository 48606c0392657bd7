// SPDX-License-Identifier: GPL-2.0

//! Large blocks of zeros.
//!
//! C header: [`include/linux/slab.h`](srctree/include/linux/slab.h)
//!
//! The user chooses how large a table is, so a block that does not fit is refused and nobody is killed
//! to make room for it: that takes a flag which the kernel crate does not have.

use super::bindings;
use crate::sync::Atomic;
use core::{
    ops::Deref,
    ptr::NonNull, //
};
use kernel::{
    alloc::AllocError,
    prelude::*, //
};

/// A type of which memory full of zeros is a valid value.
///
/// # Safety
///
/// It must be.
pub(crate) unsafe trait ZeroIsValid {}

// SAFETY: a number.
unsafe impl ZeroIsValid for u64 {}

// SAFETY: each of the values is zero, and that is valid.
unsafe impl<T: ZeroIsValid, const N: usize> ZeroIsValid for [T; N] {}

// SAFETY: an array of words that each hold a number, and have the size of it.
unsafe impl ZeroIsValid for Line {}

const FLAGS: bindings::gfp_t = bindings::GFP_KERNEL
    | bindings::__GFP_ZERO
    | bindings::__GFP_NOWARN
    | 1 << bindings::___GFP_RETRY_MAYFAIL_BIT;

/// Allocates `len` zeros, by pages where they do not lie together. May sleep.
pub(crate) fn zeros<T: ZeroIsValid>(len: usize) -> core::result::Result<KVVec<T>, AllocError> {
    let size = len.checked_mul(size_of::<T>()).ok_or(AllocError)?;
    if size == 0 {
        return Ok(KVVec::new());
    }
    // SAFETY: a null pointer asks for a new block.
    let block = unsafe {
        bindings::kvrealloc_node_align_noprof(
            core::ptr::null(),
            size,
            align_of::<T>(),
            FLAGS,
            bindings::NUMA_NO_NODE,
        )
    };
    let block = NonNull::new(block).ok_or(AllocError)?;
    // SAFETY: the block is one of the allocator behind `KVVec`, with room for `len` values, all of
    // them zero, which by the contract of the trait is valid.
    Ok(unsafe { KVVec::from_raw_parts(block.cast().as_ptr(), len, len) })
}

/// Words of a [`Line`]: a pair of cache lines, which x86 prefetches together.
const LINE_WORDS: usize = 16;

/// A pair of cache lines, at an address that is a multiple of its size.
#[repr(C, align(128))]
struct Line([Atomic<u64>; LINE_WORDS]);

const _: () = assert!(size_of::<Line>() == LINE_WORDS * size_of::<u64>());

/// Words that several contexts share, all 0 in the beginning; they begin on a pair of cache lines.
pub(crate) struct Words(KVVec<Line>);

impl Words {
    /// Allocates `len` words, or a few more. May sleep.
    pub(crate) fn zeros(len: usize) -> core::result::Result<Self, AllocError> {
        // The block's size is a multiple of the alignment, which is what `kmalloc()` goes by.
        Ok(Self(zeros(len.div_ceil(LINE_WORDS))?))
    }
}

impl Deref for Words {
    type Target = [Atomic<u64>];

    #[inline(always)]
    fn deref(&self) -> &[Atomic<u64>] {
        // SAFETY: a `Line` is an array of `LINE_WORDS` words and nothing else, and the lines follow
        // each other without a gap. OVERFLOW: the block has fewer bytes than an address can tell.
        unsafe {
            core::slice::from_raw_parts(
                self.0.as_ptr().cast(),
                self.0.len().wrapping_mul(LINE_WORDS),
            )
        }
    }
}
