// SPDX-License-Identifier: GPL-2.0

//! A file at the top of tracefs, for code that begins before there is a tracefs, and stays.
//!
//! C counterpart: [`fs/tracefs/inode.c`](srctree/fs/tracefs/inode.c)

use super::trace_core::create_tracefs_file;
use core::ffi::CStr;
use kernel::{
    bindings as base,
    prelude::*, //
};

/// A file that is to be made.
pub(super) struct TracefsFile {
    name: &'static CStr,
    operations: &'static base::file_operations,
}

// SAFETY: the operations do not change.
unsafe impl Send for TracefsFile {}

// SAFETY: the operations do not change.
unsafe impl Sync for TracefsFile {}

impl TracefsFile {
    /// Returns a file that is not made yet.
    ///
    /// # Safety
    ///
    /// The operations must be those of this file, which is never removed, and stay while the kernel runs.
    pub(super) unsafe fn new(
        name: &'static CStr,
        operations: &'static base::file_operations,
    ) -> Result<Self> {
        Ok(Self { name, operations })
    }

    /// Makes the file.
    pub(super) fn create(&self) -> Result {
        // SAFETY: by the contract of `new`, as the file is never removed.
        unsafe { create_tracefs_file(self.name, self.operations) }.map(drop)
    }
}
