// SPDX-License-Identifier: GPL-2.0

//! The part of a row after the braces: hit count and sums.
//!
//! C counterpart: `hist_trigger_print_val()`.

use super::{
    text::{
        decimal,
        hex,
        spaces, //
    },
    Renderer,
    Symbols, //
};
use crate::limits::SUMS_MAX;
use crate::program::Modifier;
use crate::text::Out;
use crate::tracing_map::{
    Row,
    Rows, //
};
use core::fmt;

pub(super) const VALUE_WIDTH: usize = 10;
const PERCENT_WIDTH: usize = 3;
const BAR: &[u8; 20] = b"####################";
const NO_BAR: &[u8; 20] = b"             [ERROR]";

/// The total and the maximum of one column, for percentages and bars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ColumnStats {
    total: u64,
    max: u64,
}

/// The total and the maximum of each column, for percentages and bars. A plain value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    columns: [ColumnStats; SUMS_MAX],
}

impl Stats {
    /// Returns the statistics of `rows`.
    pub fn of(rows: &Rows<'_>) -> Self {
        let mut stats = Self::default();

        for row in rows.iter() {
            for (column, &v) in stats.columns.iter_mut().zip(row.sums) {
                column.total = column.total.wrapping_add(v);
                column.max = column.max.max(v);
            }
        }
        stats
    }

    fn column(&self, i: usize) -> ColumnStats {
        self.columns.get(i).copied().unwrap_or_default()
    }
}

/// Returns `v` in hundredths of a percent of `whole`; `None` if the divisor is 0.
///
/// As in C, if the product would overflow, the divisor is divided instead; the result is truncated to
/// 32 bits, and the largest 32-bit number is an error.
fn hundredths(v: u64, whole: u64) -> Option<u32> {
    const ALL: u64 = 10_000;

    let part = if v < u64::MAX / ALL {
        // OVERFLOW: `v` is below `u64::MAX / ALL`.
        v.wrapping_mul(ALL).checked_div(whole)
    } else {
        v.checked_div(whole / ALL)
    };

    match part {
        // CAST: truncated as in C; a part of at most its whole fits.
        Some(part) => Some(part as u32).filter(|&part| part != u32::MAX),
        None if v == 0 => Some(0),
        None => None,
    }
}

/// Writes the share of `v` in percent.
fn percent<W: Out>(v: u64, total: u64, out: &mut W) -> fmt::Result {
    let Some(part) = hundredths(v, total) else {
        return out.write_bytes(b"[ERROR]");
    };

    out.write_bytes(b" ")?;
    out.write_bytes(decimal(u64::from(part / 100)).right(PERCENT_WIDTH))?;
    out.write_bytes(if part % 100 < 10 { b".0" } else { b"." })?;
    out.write_bytes(decimal(u64::from(part % 100)).as_bytes())
}

/// Writes a bar whose full length represents `max`.
fn graph<W: Out>(v: u64, max: u64, out: &mut W) -> fmt::Result {
    let Some(part) = hundredths(v, max) else {
        return out.write_bytes(NO_BAR);
    };

    // OVERFLOW: wraps like the 32-bit product in C.
    // CAST: the length of the bar is 20, and the quotient has 32 bits.
    let len = (part.wrapping_mul(BAR.len() as u32) / 10_000) as usize;
    let bar = BAR.get(..len).unwrap_or(BAR);
    out.write_bytes(bar)?;
    spaces(BAR.len().saturating_sub(bar.len()), out)
}

impl<S: Symbols> Renderer<'_, S> {
    /// Writes the values of a row: the hit count, unless hidden, and the trigger's values.
    pub(super) fn values<W: Out>(&self, row: &Row<'_>, out: &mut W) -> fmt::Result {
        if !self.program.nohitcount() {
            self.value(0, b"hitcount", Modifier::None, row, out)?;
        }
        for (i, field) in (1..).zip(self.program.vals()) {
            // PARITY: `hist_trigger_entry_print()` does not show a computed value.
            out.write_bytes(b" ")?;
            self.value(
                i,
                self.program.field_name(field, self.text),
                field.modifier(),
                row,
                out,
            )?;
        }
        Ok(())
    }

    fn value<W: Out>(
        &self,
        i: usize,
        name: &[u8],
        modifier: Modifier,
        row: &Row<'_>,
        out: &mut W,
    ) -> fmt::Result {
        let v = row.sums.get(i).copied().unwrap_or(0);
        let column = self.stats.column(i);

        out.write_bytes(b" ")?;
        out.write_bytes(name)?;
        match modifier {
            Modifier::Percent => {
                out.write_bytes(b" (%):")?;
                percent(v, column.total, out)
            }
            Modifier::Graph => {
                out.write_bytes(b": ")?;
                graph(v, column.max, out)
            }
            Modifier::Hex => {
                out.write_bytes(b": ")?;
                out.write_bytes(hex(v).right(VALUE_WIDTH))
            }
            _ => {
                out.write_bytes(b": ")?;
                out.write_bytes(decimal(v).right(VALUE_WIDTH))
            }
        }
    }
}
