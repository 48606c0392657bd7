// SPDX-License-Identifier: GPL-2.0

//! Large blocks of zeros.
//!
//! C header: [`include/linux/slab.h`](srctree/include/linux/slab.h)
//!
//! The user chooses how large a table is, so a block that does not fit is refused and nobody is killed
//! to make room for it: that takes a flag which the kernel crate does not have.

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

/// A type of 64-bit words, of which memory full of zeros is a valid value.
///
/// # Safety
///
/// It must be, and its size a multiple of 8.
pub(crate) unsafe trait ZeroIsValid {}

// SAFETY: a number.
unsafe impl ZeroIsValid for u64 {}

// SAFETY: each of the values is zero, and that is valid; its size is so many times a multiple of 8.
unsafe impl<T: ZeroIsValid, const N: usize> ZeroIsValid for [T; N] {}

// SAFETY: an array of pairs of words that each hold a number, and have the size of it, 8.
unsafe impl ZeroIsValid for Line {}

const FLAGS: bindings::gfp_t =
    bindings::GFP_KERNEL | bindings::__GFP_NOWARN | 1 << bindings::___GFP_RETRY_MAYFAIL_BIT;

/// The same, charged to the memory cgroup of the caller.
const FLAGS_CHARGED: bindings::gfp_t = FLAGS | 1 << bindings::___GFP_ACCOUNT_BIT;

/// Says whether the kernel clears what it hands out whether it is asked or not, as `init_on_alloc` of its command line
/// wants. Where it fills memory with a pattern to find errors, it clears only if it is asked.
fn clears_anyway() -> bool {
    // SAFETY: the key is one that the kernel sets while it boots; nobody writes it any more.
    unsafe { bindings::init_on_alloc.key.enabled.counter > 0 }
}

/// Bytes of the largest block whose pages lie together.
const TOGETHER_MAX: usize = 4 << 20;

/// What larger blocks are rounded up to: a large page, which they consist of where there are any.
const LARGE_PAGE: usize = 2 << 20;

/// Returns how much a block of `size` bytes takes with what it is rounded up by.
fn rounded(size: usize) -> usize {
    match size {
        0 => 0,
        1..=TOGETHER_MAX => size.next_power_of_two(),
        _ => size.saturating_add(LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE,
    }
}

/// Allocates `len` zeros, by pages where they do not lie together, and charges them to the memory cgroup of the
/// caller. May sleep.
///
/// For what a reader asks for, copies of rows and maps for `hist_pipe`: the limit of his cgroup holds for it. What a
/// trigger is made of stays when who has made it is gone, and is charged to nobody.
pub(crate) fn charged_zeros<T: ZeroIsValid>(
    len: usize,
) -> core::result::Result<KVVec<T>, AllocError> {
    zeros_within(len, usize::MAX, FLAGS_CHARGED)
}

/// Allocates `len` zeros; if rounding made more than `most` bytes of it, by small pages, which adds next to
/// nothing, but makes the CPU look up more addresses of pages. May sleep.
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
    // It is cleared once, by whom it costs less.
    let (flags, is_clear) = match clears_anyway() {
        true => (flags | bindings::__GFP_ZERO, true),
        false => (flags, false),
    };
    // SAFETY: a null pointer asks either function for a new block.
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
    // SAFETY: the block is one that the allocator behind `KVVec` frees, `kvfree()`, whichever function
    // it comes from, with room for `len` values, all of them zero, which by the contract of the trait is
    // valid.
    Ok(unsafe { KVVec::from_raw_parts(block.cast().as_ptr(), len, len) })
}

/// Pairs of words of a [`Line`]: two cache lines, which x86 prefetches together.
const LINE_PAIRS: usize = 8;

/// Two cache lines, at an address that is a multiple of its size.
#[repr(C, align(128))]
struct Line([Pair; LINE_PAIRS]);

const _: () = assert!(size_of::<Line>() == LINE_PAIRS * size_of::<Pair>());

/// Words that several contexts share, all 0 in the beginning; they are aligned as a [`Line`].
pub(crate) struct Words {
    lines: KVVec<Line>,
    bytes: usize,
}

impl Words {
    /// Allocates this many pairs of words, or a few more; in not many more than `most` bytes, if they fit in there; charged to
    /// the memory cgroup of the caller if `is_charged` says so. May sleep.
    pub(crate) fn zeros(
        pairs: usize,
        most: usize,
        is_charged: bool,
    ) -> core::result::Result<Self, AllocError> {
        let flags = match is_charged {
            true => FLAGS_CHARGED,
            false => FLAGS,
        };
        // The block's size is a multiple of the alignment, which is what `kmalloc()` goes by.
        let lines: KVVec<Line> = zeros_within(pairs.div_ceil(LINE_PAIRS), most, flags)?;
        let bytes = lines.len() * size_of::<Line>();
        Ok(Self {
            lines,
            bytes: match rounded(bytes) {
                rounded if rounded <= most => rounded,
                _ => bytes,
            },
        })
    }

    /// The memory that they take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Deref for Words {
    type Target = [Pair];

    #[inline(always)]
    fn deref(&self) -> &[Pair] {
        // SAFETY: a `Line` is an array of `LINE_PAIRS` pairs and nothing else, and the lines follow
        // each other without a gap. OVERFLOW: the block has fewer bytes than an address can tell.
        unsafe {
            core::slice::from_raw_parts(
                self.lines.as_ptr().cast(),
                self.lines.len().wrapping_mul(LINE_PAIRS),
            )
        }
    }
}
