// SPDX-License-Identifier: GPL-2.0

//! `core::fmt::Write` over a `seq_file`.
//!
//! C header: [`include/linux/seq_file.h`](srctree/include/linux/seq_file.h)

use super::bindings;
use crate::text::Out;
use core::fmt;
use kernel::ffi::c_int;

/// Writes to the page of a reader of a `seq_file`.
pub(crate) struct SeqWriter<'a>(&'a mut bindings::seq_file);

/// Calls `write` for the output of `file`, and returns the result that the core expects from a `show` callback.
///
/// # Safety
///
/// `file` must be live and not used by any other context meanwhile.
pub(super) unsafe fn show(
    file: *mut bindings::seq_file,
    write: impl FnOnce(&mut SeqWriter<'_>) -> fmt::Result,
) -> c_int {
    // A full page is no error here: the core detects it, and calls again with a larger page.
    // SAFETY: by the contract.
    let _ = write(&mut SeqWriter(unsafe { &mut *file }));
    0
}

impl fmt::Write for SeqWriter<'_> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.write_bytes(s.as_bytes())
    }
}

impl Out for SeqWriter<'_> {
    /// Once the page is full, all further output is dropped.
    fn write_bytes(&mut self, bytes: &[u8]) -> fmt::Result {
        let Self(file) = self;

        if bytes.len() >= file.size.saturating_sub(file.count) {
            // Like `seq_write()`, marks the page as full.
            file.count = file.size;
            return Err(fmt::Error);
        }
        // SAFETY: the page has `size` bytes, of which those from `count` on are free and enough, as was just checked;
        // no other context has the page.
        unsafe {
            let free = file.buf.add(file.count).cast::<u8>();
            free.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        // OVERFLOW: the sum is below the size.
        file.count = file.count.wrapping_add(bytes.len());
        Ok(())
    }
}
