// SPDX-License-Identifier: GPL-2.0

//! The part of a row after the braces: hit count, sums and other statistics.
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
use crate::limits::VALS_MAX;
use crate::program::{
    Field,
    Modifier,
    Program, //
};
use crate::text::Out;
use crate::tracing_map::{
    sort::Column,
    Gauge,
    Number,
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
    /// The total modulo 2^64, and how often it has exceeded 64 bits.
    total: u64,
    carries: u64,
    max: u64,
}

/// The total and the maximum of each column, for percentages and bars. A plain value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The statistics of the hit count, and then of the values.
    columns: [ColumnStats; VALS_MAX + 1],
}

impl Stats {
    /// Returns the statistics of `rows`, which are rows of `program`.
    pub fn of(program: &Program, rows: &Rows<'_>) -> Self {
        Self::with(program, rows, None)
    }

    /// Returns the statistics of `rows`, and of the row of others if there is one.
    pub fn with(program: &Program, rows: &Rows<'_>, others: Option<Row<'_>>) -> Self {
        let mut stats = Self::default();
        let mut vals = program.vals.iter();

        if !vals.any(|val| matches!(val.modifier, Modifier::Percent | Modifier::Graph)) {
            return stats;
        }
        for row in rows.iter().chain(others) {
            let columns = core::iter::once(&Column::Sum(0)).chain(program.columns.iter());

            for (stat, column) in stats.columns.iter_mut().zip(columns) {
                let v = match column {
                    Column::Sum(at) => row.sums.get(*at).copied().unwrap_or(0),
                    // Computed statistics and keys have no shares.
                    Column::Made(_) | Column::Key { .. } => continue,
                };
                let (total, carry) = stat.total.overflowing_add(v);

                stat.total = total;
                stat.carries = stat.carries.wrapping_add(carry.into());
                stat.max = stat.max.max(v);
            }
        }
        stats
    }
}

/// Returns `v` in hundredths of a percent of `whole`; `None` for a divisor of 0, unless `v` is 0.
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

/// Writes the share of `v` in percent; `carries` says how often the total has exceeded 64 bits.
///
/// PARITY: C's total wraps around, which it must where sums are negative.
fn percent<W: Out>(v: u64, total: u64, carries: u64, out: &mut W) -> fmt::Result {
    // OVERFLOW: `leading_zeros()` is at most 64.
    let above = u64::BITS.wrapping_sub(carries.leading_zeros());
    // Shifts both numbers so that the total fits in 64 bits: by at most 32 bits, as there are less than 2^32 rows.
    let total = match above {
        0 => total,
        _ => total.wrapping_shr(above) | carries.rotate_right(above),
    };
    let Some(part) = hundredths(v.wrapping_shr(above), total) else {
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

/// Writes a computed statistic of a row; 0 for a row without hits.
fn made<W: Out>(gauge: &Gauge, row: &Row<'_>, out: &mut W) -> fmt::Result {
    let number = gauge.number(row.sums).unwrap_or_default();
    let has_decimals = gauge.has_decimals();
    let digits = decimal(number.whole);
    let decimals = if has_decimals { b".00".len() } else { 0 };
    let len = digits
        .as_bytes()
        .len()
        .saturating_add(usize::from(number.negative))
        .saturating_add(decimals);

    spaces(VALUE_WIDTH.saturating_sub(len), out)?;
    plain_number(&number, has_decimals, out)
}

/// Writes a number, with two decimals if `has_decimals`.
pub(super) fn plain_number<W: Out>(
    number: &Number,
    has_decimals: bool,
    out: &mut W,
) -> fmt::Result {
    if number.negative {
        out.write_bytes(b"-")?;
    }
    out.write_bytes(decimal(number.whole).as_bytes())?;
    if has_decimals {
        out.write_bytes(if number.hundredths < 10 { b".0" } else { b"." })?;
        out.write_bytes(decimal(number.hundredths.into()).as_bytes())?;
    }
    Ok(())
}

impl<S: Symbols> Renderer<'_, S> {
    /// Writes the values of a row: the hit count, unless hidden, and the trigger's values.
    pub(super) fn values<W: Out>(&self, row: &Row<'_>, out: &mut W) -> fmt::Result {
        let columns = self.program.columns.iter();

        if !self.program.nohitcount {
            self.value(0, &Field::default(), &Column::Sum(0), row, out)?;
        }
        for (i, (field, column)) in (1..).zip(self.program.vals.iter().zip(columns)) {
            // PARITY: `hist_trigger_entry_print()` omits a computed value.
            out.write_bytes(b" ")?;
            self.value(i, field, column, row, out)?;
        }
        Ok(())
    }

    /// Writes value `i`; the hit count comes before the first value.
    fn value<W: Out>(
        &self,
        i: usize,
        field: &Field,
        column: &Column,
        row: &Row<'_>,
        out: &mut W,
    ) -> fmt::Result {
        out.write_bytes(b" ")?;
        self.program.write_column(field, self.text, out)?;

        out.write_bytes(match field.modifier {
            Modifier::Percent => b" (%):",
            _ => b": ",
        })?;
        let v = match column {
            Column::Made(gauge) => return made(gauge, row, out),
            Column::Sum(at) => row.sums.get(*at).copied().unwrap_or(0),
            Column::Key { .. } => 0,
        };
        let column = self.stats.columns.get(i).copied().unwrap_or_default();

        match field.modifier {
            Modifier::Percent => {
                let carries = if field.signed { 0 } else { column.carries };

                percent(v, column.total, carries, out)
            }
            Modifier::Graph => graph(v, column.max, out),
            Modifier::Hex => out.write_bytes(hex(v).right(VALUE_WIDTH)),
            _ => out.write_bytes(decimal(v).right(VALUE_WIDTH)),
        }
    }
}
