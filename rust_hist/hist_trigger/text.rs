// SPDX-License-Identifier: GPL-2.0

//! Names for the text of a table that only the running kernel knows.

use crate::{
    ffi::symbols,
    render::Symbols,
    text::Out, //
};
use core::fmt;

/// Looks up names in the running kernel.
pub(super) struct KernelNames;

impl Symbols for KernelNames {
    fn symbol<W: Out>(&self, addr: u64, out: &mut W) -> fmt::Result {
        symbols::with_symbol(addr, |name| out.write_bytes(name))
    }

    fn symbol_offset<W: Out>(&self, addr: u64, out: &mut W) -> fmt::Result {
        symbols::with_symbol_offset(addr, |name| out.write_bytes(name))
    }

    fn syscall(&self, nr: u64) -> Option<&[u8]> {
        symbols::syscall(nr)
    }
}
