// SPDX-License-Identifier: GPL-2.0

//! Texts in memory of their own.
//!
//! C header: [`include/linux/slab.h`](srctree/include/linux/slab.h)
//!
//! The strings of the kernel crate are made of formatted text, which is UTF-8; what users have typed need not be.

use crate::text::Out;
use core::{
    ffi::CStr,
    fmt, //
};
use kernel::{
    alloc::Flags,
    prelude::*, //
};

/// A text that grows, and what memory it asks for. Writing to it fails when there is none.
pub(crate) struct TextBuf(KVec<u8>, Flags);

impl TextBuf {
    /// An empty text.
    pub(crate) fn new() -> Self {
        Self(KVec::new(), GFP_KERNEL)
    }

    /// An empty text that is charged to the memory cgroup of who writes it: a reader may keep one in each file that it
    /// has open.
    pub(crate) fn charged() -> Self {
        Self(KVec::new(), GFP_KERNEL_ACCOUNT)
    }

    /// The parts one after the other.
    pub(crate) fn joined(parts: &[&[u8]]) -> Result<Self> {
        let mut text = Self::new();
        for part in parts {
            text.0.extend_from_slice(part, text.1)?;
        }
        Ok(text)
    }

    /// A text as C has it, up to its first NUL if it has one.
    pub(crate) fn terminated(text: &[u8]) -> Result<Self> {
        Self::joined(&[text, b"\0"])
    }

    /// The text so far.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text up to its first NUL; nothing if it has none.
    pub(crate) fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.0).unwrap_or_default()
    }

    /// The memory with the text.
    pub(crate) fn into_bytes(self) -> KVec<u8> {
        self.0
    }

    /// Takes a newline off its end.
    pub(crate) fn trim_newline(&mut self) {
        if self.0.last() == Some(&b'\n') {
            let _ = self.0.pop();
        }
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
