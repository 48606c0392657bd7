// SPDX-License-Identifier: GPL-2.0

//! `core::fmt::Write` over a `seq_file`.
//!
//! C header: [`include/linux/seq_file.h`](srctree/include/linux/seq_file.h)

use super::bindings;
use core::{
    fmt,
    marker::PhantomData, //
};

/// Writes to the page that a reader of a `seq_file` gets.
pub(crate) struct SeqWriter<'a> {
    file: *mut bindings::seq_file,
    _file: PhantomData<&'a mut bindings::seq_file>,
}

impl SeqWriter<'_> {
    /// # Safety
    ///
    /// `file` must be live and used by nobody else for the life of the value.
    pub(super) unsafe fn from_raw(file: *mut bindings::seq_file) -> Self {
        Self {
            file,
            _file: PhantomData,
        }
    }

    /// Appends bytes, which need not be text.
    ///
    /// When the page is full the rest is dropped: the core notices and asks for the same record
    /// again with a larger page.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> fmt::Result {
        // SAFETY: the file is ours by the contract of `from_raw`, the bytes are only read.
        let ret = unsafe { bindings::seq_write(self.file, bytes.as_ptr().cast(), bytes.len()) };
        if ret < 0 {
            return Err(fmt::Error);
        }
        Ok(())
    }
}

impl fmt::Write for SeqWriter<'_> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.bytes(s.as_bytes())
    }
}
