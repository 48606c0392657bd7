// SPDX-License-Identifier: GPL-2.0

//! The trigger line, as `trigger` and the head of `hist` show it.
//!
//! C counterpart: `event_hist_trigger_print()` and `hist_field_print()` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//! The line up to its state is a command again: it makes the same trigger, and with `!` before it
//! removes it.
//!
//! Context: any.

#![cfg_attr(not(CONFIG_RUST), forbid(unsafe_code))]
#![cfg_attr(
    CONFIG_RUST,
    allow(
        unreachable_pub,
        reason = "the root of the module keeps its rooms private"
    )
)]

use core::fmt;

use crate::lang::CLOCK;

use super::{
    Column,
    Field,
    Modifier,
    Op,
    Out,
    Program, //
};

impl Program {
    /// Prints the whole line, newline included. `prefix` is the command's name, `text` what the
    /// program was made from.
    pub fn write_line(
        &self,
        prefix: &[u8],
        text: &[u8],
        paused: bool,
        out: &mut impl Out,
    ) -> fmt::Result {
        out.write_bytes(prefix)?;
        self.write_keys(text, out)?;
        self.write_vals(text, out)?;
        self.write_sort(text, out)?;
        write!(out, ":size={}", 1u64.checked_shl(self.bits).unwrap_or(0))?;
        if self.timestamps {
            out.write_str(":clock=")?;
            out.write_bytes(CLOCK)?;
        }
        if self.nohitcount {
            out.write_str(":nohitcount")?;
        }
        if let Some(filter) = self.filter(text) {
            out.write_str(" if ")?;
            out.write_bytes(filter)?;
        }
        out.write_str(if paused { " [paused]\n" } else { " [active]\n" })
    }

    fn write_keys(&self, text: &[u8], out: &mut impl Out) -> fmt::Result {
        for (i, key) in self.keys().iter().enumerate() {
            out.write_str(if i == 0 { ":keys=" } else { "," })?;
            self.write_field(&key.field, text, out)?;
        }
        Ok(())
    }

    fn write_vals(&self, text: &[u8], out: &mut impl Out) -> fmt::Result {
        let mut comma = false;

        out.write_str(":vals=")?;
        // PARITY: C drops the raw hitcount here when it is hidden. A second plain hitcount would then
        // be taken for the first when the line is read back.
        if !self.nohitcount || self.vals().iter().any(Field::is_plain_hitcount) {
            out.write_str("hitcount")?;
            comma = true;
        }
        for val in self.vals() {
            if comma {
                out.write_str(",")?;
            }
            self.write_field(val, text, out)?;
            comma = true;
        }
        Ok(())
    }

    fn write_sort(&self, text: &[u8], out: &mut impl Out) -> fmt::Result {
        for (i, sort) in self.sort_keys().iter().enumerate() {
            out.write_str(if i == 0 { ":sort=" } else { "," })?;

            let field = match sort.column {
                Column::Sum(n) => n.checked_sub(1).and_then(|n| self.vals().get(n)),
                Column::Key(n) => self.keys().get(n).map(|key| &key.field),
            };

            match field {
                Some(field) => self.write_sorted(field, text, out)?,
                None => out.write_str("hitcount")?,
            }
            if sort.descending {
                out.write_str(".descending")?;
            }
        }
        Ok(())
    }

    /// Prints the field as it may be typed in `keys=` and `vals=`.
    ///
    /// PARITY: `hist_field_print()` prints the name of a CPU field twice, calls the legacy `comm`
    /// `common_comm`, and leaves the modifier of `common_stacktrace` out.
    fn write_field(&self, field: &Field, text: &[u8], out: &mut impl Out) -> fmt::Result {
        out.write_bytes(self.field_name(field, text))?;
        field.modifier.write(out)
    }

    /// Prints the field as it may be typed in `sort=`.
    fn write_sorted(&self, field: &Field, text: &[u8], out: &mut impl Out) -> fmt::Result {
        match field.modifier {
            Modifier::Stacktrace => out.write_bytes(self.field_name(field, text)),
            _ => self.write_field(field, text, out),
        }
    }
}

impl Field {
    fn is_plain_hitcount(&self) -> bool {
        self.op == Op::One && self.modifier == Modifier::None
    }
}

impl Modifier {
    /// Prints the modifier with its dot.
    fn write(self, out: &mut impl Out) -> fmt::Result {
        out.write_str(match self {
            Modifier::None => return Ok(()),
            Modifier::Hex => ".hex",
            Modifier::Sym => ".sym",
            Modifier::SymOffset => ".sym-offset",
            Modifier::Execname => ".execname",
            Modifier::Syscall => ".syscall",
            Modifier::Log2 => ".log2",
            Modifier::Buckets(width) => return write!(out, ".buckets={width}"),
            Modifier::Usecs => ".usecs",
            Modifier::Percent => ".percent",
            Modifier::Graph => ".graph",
            Modifier::Stacktrace => ".stacktrace",
        })
    }
}
