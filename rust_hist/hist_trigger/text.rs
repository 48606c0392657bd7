// SPDX-License-Identifier: GPL-2.0

//! Where the pure rooms write text: the page of a reader, or a buffer that grows.

use crate::{
    ffi::{
        seq::SeqWriter,
        symbols::{
            self,
            Style, //
        }, //
    },
    render::Symbols,
    text::Out, //
};
use core::{
    ffi::CStr,
    fmt, //
};
use kernel::prelude::*;

impl Out for SeqWriter<'_> {
    fn write_bytes(&mut self, bytes: &[u8]) -> fmt::Result {
        self.bytes(bytes)
    }
}

/// A text in memory of its own, charged to the memory cgroup of who writes it: a reader may keep one in each file
/// that it has open. Writing fails when there is no memory.
pub(crate) struct TextBuf(KVec<u8>);

impl TextBuf {
    /// An empty text.
    pub(super) fn new() -> Self {
        Self(KVec::new())
    }

    /// The memory with the text.
    pub(super) fn into_bytes(self) -> KVec<u8> {
        self.0
    }

    /// Takes a newline off its end.
    pub(super) fn trim_newline(&mut self) {
        if self.0.last() == Some(&b'\n') {
            let _ = self.0.pop();
        }
    }

    /// The text so far.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Write for TextBuf {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.write_bytes(s.as_bytes())
    }
}

impl Out for TextBuf {
    fn write_bytes(&mut self, bytes: &[u8]) -> fmt::Result {
        self.0
            .extend_from_slice(bytes, GFP_KERNEL_ACCOUNT)
            .map_err(|_| fmt::Error)
    }
}

/// A text as C has it.
pub(super) struct Terminated(TextBuf);

/// Copies a text, up to its first NUL if it has one.
pub(super) fn terminated(text: &[u8]) -> Result<Terminated> {
    let mut copy = TextBuf::new();
    for part in [text, b"\0"] {
        copy.write_bytes(part).map_err(|_| ENOMEM)?;
    }
    Ok(Terminated(copy))
}

impl Terminated {
    /// The text.
    pub(super) fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(self.0.as_bytes()).unwrap_or_default()
    }
}

/// The names that the running kernel has.
pub(super) struct KernelNames;

impl Symbols for KernelNames {
    fn symbol<W: Out>(&self, addr: u64, out: &mut W) -> fmt::Result {
        symbols::with_symbol(addr, Style::Name, |name| out.write_bytes(name))
    }

    fn symbol_offset<W: Out>(&self, addr: u64, out: &mut W) -> fmt::Result {
        symbols::with_symbol(addr, Style::Offset, |name| out.write_bytes(name))
    }

    fn syscall(&self, nr: u64) -> Option<&[u8]> {
        symbols::syscall(nr)
    }
}
