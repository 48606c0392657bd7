// SPDX-License-Identifier: GPL-2.0

//! Allocated texts.
//!
//! C header: [`include/linux/slab.h`](srctree/include/linux/slab.h)
//!
//! Strings of the kernel crate are made from formatted text, which is UTF-8; text that users have typed need not be.

use crate::text::Out;
use core::{
    ffi::CStr,
    fmt, //
};
use kernel::{
    alloc::Flags,
    prelude::*, //
};

/// A growing text, and the flags for its allocation. Writing to it fails only if there is no memory.
pub(crate) struct TextBuf(KVec<u8>, Flags);

impl TextBuf {
    /// Returns an empty text.
    pub(crate) fn new() -> Self {
        Self(KVec::new(), GFP_KERNEL)
    }

    /// Returns an empty text that is charged to the memory cgroup of the writer: a reader may keep one in each open
    /// file.
    pub(crate) fn charged() -> Self {
        Self(KVec::new(), GFP_KERNEL_ACCOUNT)
    }

    /// Returns the concatenation of the parts.
    pub(crate) fn joined(parts: &[&[u8]]) -> Result<Self> {
        let mut text = Self::new();
        for part in parts {
            text.0.extend_from_slice(part, text.1)?;
        }
        Ok(text)
    }

    /// Returns the text with a NUL appended, for C, which reads it up to the first NUL.
    pub(crate) fn terminated(text: &[u8]) -> Result<Self> {
        Self::joined(&[text, b"\0"])
    }

    /// Returns the text so far.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the text up to its first NUL; empty if it has none.
    pub(crate) fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.0).unwrap_or_default()
    }

    /// Returns the memory with the text.
    pub(crate) fn into_bytes(self) -> KVec<u8> {
        self.0
    }
}

impl fmt::Write for TextBuf {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.write_bytes(s.as_bytes())
    }
}

impl Out for TextBuf {
    fn write_bytes(&mut self, bytes: &[u8]) -> fmt::Result {
        let grown = self.0.extend_from_slice(bytes, self.1);
        grown.map_err(|_| fmt::Error)
    }
}
