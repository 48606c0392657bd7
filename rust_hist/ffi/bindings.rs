// SPDX-License-Identifier: GPL-2.0

//! What bindgen made of the kernel's private tracing headers; not for use outside `ffi`.
//!
//! The file is generated when the module is built, from the headers of the kernel that it is built
//! for: a structure that lost a field we use, or a function whose signature changed, is a compile
//! error in the file that uses it. Sizes and offsets are compared with those of the C compiler, by
//! assertions that bindgen generates and, for the structures of the kernel crate, by those below.
//!
//! Types that the generated file does not define come from [`kernel::bindings`], so that a pointer
//! from one is a pointer of the other. A type that it does define shadows the kernel crate's, which
//! is opaque there.

#![allow(
    clippy::all,
    clippy::cast_lossless,
    clippy::ptr_as_ptr,
    clippy::ref_as_ptr,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    improper_ctypes,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub,
    unsafe_op_in_unsafe_fn,
    reason = "generated code"
)]

use core::mem::offset_of;
pub(super) use kernel::bindings::*;
use pin_init::MaybeZeroable;

include!(concat!(env!("RUST_HIST_OBJ"), "/ffi/bindings_generated.rs"));

const _: () = {
    assert!(size_of::<file_operations>() == HIST_SIZE_FILE_OPERATIONS as usize);
    assert!(size_of::<seq_operations>() == HIST_SIZE_SEQ_OPERATIONS as usize);
    assert!(size_of::<notifier_block>() == HIST_SIZE_NOTIFIER_BLOCK as usize);
    assert!(size_of::<tracepoint>() == HIST_SIZE_TRACEPOINT as usize);
    assert!(offset_of!(file, private_data) == HIST_AT_FILE_PRIVATE_DATA as usize);
    assert!(offset_of!(seq_file, private) == HIST_AT_SEQ_FILE_PRIVATE as usize);
    assert!(offset_of!(module, state) == HIST_AT_MODULE_STATE as usize);
    assert!(offset_of!(module, mem) == HIST_AT_MODULE_TEXT as usize);
    assert!(offset_of!(dentry, d_inode) == HIST_AT_DENTRY_INODE as usize);
    assert!(offset_of!(dentry, d_sb) == HIST_AT_DENTRY_SB as usize);
};
