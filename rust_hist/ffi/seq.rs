// SPDX-License-Identifier: GPL-2.0

//! `core::fmt::Write` over a `seq_file`.
//!
//! C header: [`include/linux/seq_file.h`](srctree/include/linux/seq_file.h)

use super::bindings;
use crate::text::Out;
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
}

impl fmt::Write for SeqWriter<'_> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.write_bytes(s.as_bytes())
    }
}

impl Out for SeqWriter<'_> {
    /// When the page is full the rest is dropped: the core notices and asks for the same record
    /// again with a larger page.
    fn write_bytes(&mut self, bytes: &[u8]) -> fmt::Result {
        // SAFETY: the file is ours by the contract of `from_raw`.
        let file = unsafe { &mut *self.file };
        let room = file.size.saturating_sub(file.count);

        if bytes.len() >= room {
            // As `seq_write()` says that there is no room.
            file.count = file.size;
            return Err(fmt::Error);
        }
        // SAFETY: the page has `size` bytes, of which those from `count` on are free.
        let free = unsafe { file.buf.add(file.count) };
        // SAFETY: there is room for them, as was just checked, and nobody else has the page.
        unsafe {
            free.cast::<u8>()
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len())
        };
        // OVERFLOW: below the size.
        file.count = file.count.wrapping_add(bytes.len());
        Ok(())
    }
}
