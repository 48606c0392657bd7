// SPDX-License-Identifier: GPL-2.0

//! A file at the top of tracefs, for code that begins before there is a tracefs, and stays.
//!
//! C counterpart: [`fs/tracefs/inode.c`](srctree/fs/tracefs/inode.c)

use super::bindings;
use core::ffi::CStr;
use kernel::{
    bindings as base,
    prelude::*, //
};

/// Readable and writable by the owner, readable by the group, like the kernel's files of this kind.
const MODE: base::umode_t = 0o640;

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
    /// The operations must be those of this file, which is never removed.
    pub(super) unsafe fn new(
        name: &'static CStr,
        operations: &'static base::file_operations,
    ) -> Result<Self> {
        Ok(Self { name, operations })
    }

    /// Makes the file.
    pub(super) fn create(&self) -> Result {
        // SAFETY: the name and the operations are constant.
        let dentry = unsafe {
            bindings::tracefs_create_file(
                self.name.as_char_ptr(),
                MODE,
                core::ptr::null_mut(),
                core::ptr::null_mut(),
                self.operations,
            )
        };
        match dentry.is_null() {
            true => Err(ENODEV),
            false => Ok(()),
        }
    }
}
