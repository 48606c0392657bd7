// SPDX-License-Identifier: GPL-2.0

//! The text that shows a synthetic event and its records.
//!
//! C counterpart: `print_synth_event()`, `__set_synth_event_print_fmt()`, `__synth_event_show()` of
//! [`kernel/trace/trace_events_synth.c`](srctree/kernel/trace/trace_events_synth.c). The text is part of the user
//! interface and equals C's, byte for byte.
//!
//! A record need not come from [`Schema::write`]: the `inject` file creates records with any content. So every offset
//! and length in a record is checked.
//!
//! Context: process; records are also shown from a panic (`ftrace_dump_on_oops`). Never allocates.

use core::fmt;

use super::{
    field_type::Format,
    record::put,
    unused_bits,
    Schema,
    SchemaField, //
};
use crate::{
    field::SynthClass,
    limits::STR_SLOT,
    text::{
        lex::split_before,
        Out, //
    }, //
};

/// The conversions that need the running kernel.
pub trait KernelFormat {
    /// Writes the function at `addr` with offset and size, as `%pS` does.
    fn symbol_offset<W: Out>(&self, addr: u64, out: &mut W) -> fmt::Result;

    /// Writes the names of the allocation flags, separated by `|`, as `trace_print_flags_seq()` does.
    fn gfp_flags<W: Out>(&self, flags: u64, out: &mut W) -> fmt::Result;
}

/// Returns at most `len` bytes of `record` from `offset` on, fewer at its end.
fn part(record: &[u8], offset: usize, len: usize) -> &[u8] {
    let bytes = record.get(offset..).unwrap_or(&[]);

    bytes.get(..len).unwrap_or(bytes)
}

/// Reads a number of `size` bytes at `offset`; bytes after the end of the record count as 0.
fn number(record: &[u8], offset: usize, size: u16, signed: bool) -> u64 {
    let mut bytes = [0; 8];
    let unused = u32::from(unused_bits(size));

    put(&mut bytes, part(record, offset, size.into()));
    let word = u64::from_ne_bytes(bytes);
    let top = match cfg!(target_endian = "big") {
        true => word,
        false => word.wrapping_shl(unused),
    };

    match signed {
        // CAST: a signed number is sign-extended.
        true => (top as i64).wrapping_shr(unused) as u64,
        false => top.wrapping_shr(unused),
    }
}

/// Returns the bytes that the `__data_loc` word at `offset` locates.
fn data_at(record: &[u8], offset: usize) -> &[u8] {
    let word = number(record, offset, 4, false);
    // CAST: both halves of the 32-bit word have 16 bits.
    let (offset, len) = ((word & 0xffff) as usize, (word >> 16) as usize);

    part(record, offset, len)
}

/// Returns `bytes` up to the first NUL.
fn text(bytes: &[u8]) -> &[u8] {
    split_before(bytes, |b| b == 0).0
}

impl Schema {
    /// Writes the `print fmt` of the `format` file.
    pub fn write_print_fmt<W: Out>(&self, out: &mut W) -> fmt::Result {
        out.write_bytes(b"\"")?;
        for (i, field) in self.fields().enumerate() {
            if i > 0 {
                out.write_bytes(b" ")?;
            }
            out.write_parts(&[field.name.to_bytes(), b"=", field.format.text()])?;
        }
        out.write_bytes(b"\"")?;
        self.fields().try_for_each(|field| {
            let (before, after): (&[u8], &[u8]) = match field.class {
                SynthClass::DynString => (b", __get_str(", b")"),
                SynthClass::Stack => (b", __get_stacktrace(", b")"),
                SynthClass::Number | SynthClass::StaticString => (b", REC->", b""),
            };

            out.write_parts(&[before, field.name.to_bytes(), after])
        })
    }

    /// Writes the event's line of `synthetic_events`, newline included. `dynamic_events` shows the same line after
    /// `s:synthetic/`.
    pub fn write_listing<W: Out>(&self, out: &mut W) -> fmt::Result {
        self.write_definition(out)?;
        out.write_bytes(b"\n")
    }

    /// Writes the definition of the event as `synthetic_events` shows it, without a newline.
    pub fn write_definition<W: Out>(&self, out: &mut W) -> fmt::Result {
        out.write_bytes(self.name().to_bytes())?;
        for (i, field) in self.fields().enumerate() {
            out.write_bytes(if i == 0 { b"\t" } else { b"; " })?;
            out.write_parts(&[field.typed(), b" ", field.name.to_bytes()])?;
        }
        Ok(())
    }

    /// Writes the line that `trace` shows for `record`, newline included. `record` starts with its header; `verbose` is
    /// the trace option `verbose`.
    pub fn write_line<W: Out, N: KernelFormat>(
        &self,
        record: &[u8],
        verbose: bool,
        names: &N,
        out: &mut W,
    ) -> fmt::Result {
        out.write_parts(&[self.name().to_bytes(), b": "])?;
        let last = self.len().saturating_sub(1);

        for (i, field) in self.fields().enumerate() {
            if verbose {
                out.write_parts(&[field.format.text(), b" "])?;
            }
            out.write_parts(&[field.name.to_bytes(), b"="])?;
            field.write_value(record, i == last, names, out)?;
        }
        out.write_bytes(b"\n")
    }
}

impl SchemaField<'_> {
    /// Writes the field's value, and a blank unless it is the last field.
    fn write_value<W: Out, N: KernelFormat>(
        &self,
        record: &[u8],
        last: bool,
        names: &N,
        out: &mut W,
    ) -> fmt::Result {
        let blank: &[u8] = if last { b"" } else { b" " };
        let offset = self.offset();

        match self.class {
            SynthClass::StaticString => {
                out.write_parts(&[text(part(record, offset, STR_SLOT)), blank])
            }
            SynthClass::DynString => out.write_parts(&[text(data_at(record, offset)), blank]),
            SynthClass::Stack => {
                out.write_bytes(b"STACK:\n")?;
                // The first word is the number of frames.
                for frame in data_at(record, offset).chunks_exact(8).skip(1) {
                    out.write_bytes(b"=> ")?;
                    names.symbol_offset(number(frame, 0, 8, false), out)?;
                    out.write_bytes(b"\n")?;
                }
                Ok(())
            }
            SynthClass::Number => {
                let value = number(record, offset, self.size, self.signed);

                self.write_number(value, out)?;
                out.write_bytes(blank)?;
                if self.format == Format::Gfp {
                    // PARITY: like `print_synth_event()`, writes the flags after the blank.
                    out.write_bytes(b" (")?;
                    names.gfp_flags(value, out)?;
                    out.write_bytes(b")")?;
                }
                Ok(())
            }
        }
    }

    /// Writes a number with the conversion of its type.
    ///
    /// PARITY: `print_synth_event_num_val()` shows a negative number of one or two bytes as a positive one.
    fn write_number<W: Out>(&self, value: u64, out: &mut W) -> fmt::Result {
        match self.format {
            Format::Gfp => write!(out, "{value:x}"),
            // CAST: reinterprets the 64 bits as a signed number.
            _ if self.signed => write!(out, "{}", value as i64),
            _ => write!(out, "{value}"),
        }
    }
}
