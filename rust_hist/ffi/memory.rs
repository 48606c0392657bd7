// SPDX-License-Identifier: GPL-2.0

//! Large blocks of zeros.
//!
//! C header: [`include/linux/slab.h`](srctree/include/linux/slab.h)
//!
//! The user chooses how large a table is, so a block that does not fit is refused and nobody is killed
//! to make room for it: that takes a flag which the kernel crate does not have.

use super::bindings;
use crate::sync::Atomic;
use core::ptr::NonNull;
use kernel::{
    alloc::AllocError,
    prelude::*, //
};

/// A type of which memory full of zeros is a valid value.
///
/// # Safety
///
/// It must be, and it must not need more alignment than a word.
pub(crate) unsafe trait ZeroIsValid {}

// SAFETY: a number.
unsafe impl ZeroIsValid for u32 {}

// SAFETY: a number.
unsafe impl ZeroIsValid for u64 {}

// SAFETY: holds a number, and has the size and alignment of it.
unsafe impl ZeroIsValid for Atomic<u64> {}

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
