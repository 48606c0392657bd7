// SPDX-License-Identifier: GPL-2.0

//! `core::fmt::Write` over a `trace_seq`: the line of a record in `trace`.
//!
//! C header: [`include/linux/trace_seq.h`](srctree/include/linux/trace_seq.h)

use super::bindings;
use crate::text::Out;
use core::fmt;

/// Writes to the buffer of a reader of `trace`.
pub(crate) struct TraceWriter<'a>(pub(super) &'a mut bindings::trace_seq);

impl fmt::Write for TraceWriter<'_> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.write_bytes(s.as_bytes())
    }
}

impl Out for TraceWriter<'_> {
    /// Bytes that do not fit any more are left out, and the core notices.
    fn write_bytes(&mut self, bytes: &[u8]) -> fmt::Result {
        // A larger piece fits no buffer.
        let len = u32::try_from(bytes.len()).map_err(|_| fmt::Error)?;
        // SAFETY: the buffer is ours, the bytes are only read.
        unsafe { bindings::trace_seq_putmem(self.0, bytes.as_ptr().cast(), len) };
        Ok(())
    }
}
