// SPDX-License-Identifier: GPL-2.0

//! Names for the line of a record that only the running kernel knows.

use crate::{
    ffi::symbols,
    schema::KernelFormat,
    text::Out, //
};
use core::fmt;

/// Looks up names in the running kernel.
pub(super) struct RecordNames;

impl KernelFormat for RecordNames {
    fn symbol_offset<W: Out>(&self, addr: u64, out: &mut W) -> fmt::Result {
        symbols::with_symbol_offset(addr, |name| out.write_bytes(name))
    }

    fn gfp_flags<W: Out>(&self, flags: u64, out: &mut W) -> fmt::Result {
        // CAST: there are fewer than 32 flags.
        symbols::with_gfp_flags(flags as u32, |names| out.write_bytes(names))
    }
}
