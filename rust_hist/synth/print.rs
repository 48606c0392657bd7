// SPDX-License-Identifier: GPL-2.0

//! What the schema writes to, and the names that only the running kernel knows.

use crate::{
    ffi::{
        symbols::{
            self,
            Style, //
        },
        trace_seq::TraceWriter, //
    },
    schema::Names,
    text::Out, //
};
use core::fmt;
use kernel::prelude::*;

impl Out for TraceWriter<'_> {
    fn write_bytes(&mut self, bytes: &[u8]) -> fmt::Result {
        self.bytes(bytes)
    }
}

/// A text in memory of its own. Writing fails when there is no memory.
pub(super) struct Text(KVec<u8>);

impl Text {
    /// An empty text.
    pub(super) fn new() -> Self {
        Self(KVec::new())
    }

    /// The text.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The memory with the text.
    pub(super) fn into_bytes(self) -> KVec<u8> {
        self.0
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.write_bytes(s.as_bytes())
    }
}

impl Out for Text {
    fn write_bytes(&mut self, bytes: &[u8]) -> fmt::Result {
        self.0
            .extend_from_slice(bytes, GFP_KERNEL)
            .map_err(|_| fmt::Error)
    }
}

/// The names that the running kernel has.
pub(super) struct KernelNames;

impl Names for KernelNames {
    fn symbol_offset<W: Out>(&self, addr: u64, out: &mut W) -> fmt::Result {
        symbols::with_symbol(addr, Style::Offset, |name| out.write_bytes(name))
    }

    fn gfp_flags<W: Out>(&self, flags: u64, out: &mut W) -> fmt::Result {
        // CAST: there are fewer than 32 of them.
        symbols::with_gfp_flags(flags as u32, |names| out.write_bytes(names))
    }
}
