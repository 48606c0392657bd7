// SPDX-License-Identifier: GPL-2.0

//! What a reader of the `hist` file gets: header, rows and totals of one trigger.
//!
//! C counterpart: `hist_trigger_show()` and the functions that it calls in
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c). The text is an
//! interface and the same byte for byte.
//!
//! Rows are copies, so nothing here races with hits. One row is written at a time, in whatever order
//! [`order`] gave; the caller may stop between two rows and go on later.
//!
//! Context: process. Never allocates.

mod action;
mod key;
mod text;
mod value;

use self::text::decimal;
use crate::program::Program;
use crate::text::Out;
use crate::tracing_map::{
    Account,
    Row, //
};
use core::fmt;

pub use self::value::Stats;

/// What only the kernel can say about a number.
pub trait Symbols {
    /// Writes the name of the function or object at `addr`, as `%ps` does.
    fn symbol<W: Out>(&self, addr: u64, out: &mut W) -> fmt::Result;

    /// Writes the name with offset and size, as `%pS` does.
    fn symbol_offset<W: Out>(&self, addr: u64, out: &mut W) -> fmt::Result;

    /// Returns the name of a system call, `None` if there is none of this number.
    fn syscall(&self, nr: u64) -> Option<&[u8]>;
}

/// A trigger whose rows are being shown.
///
/// Borrows everything; needs no lock, since the rows are copies.
#[derive(Clone, Copy)]
pub struct Table<'a, S> {
    /// The compiled trigger.
    pub program: &'a Program,
    /// The trigger's own text, which the names of the program are parts of.
    pub text: &'a [u8],
    /// Of the same rows; see [`Stats::of`].
    pub stats: &'a Stats,
    /// The kernel's names.
    pub symbols: &'a S,
}

impl<S: Symbols> Table<'_, S> {
    /// Writes one row, newline included.
    ///
    /// `row` is one of a map with the program's key words and sums, and its aux words are what
    /// [`Program::copy_aux`] makes of them.
    pub fn entry<W: Out>(&self, row: &Row<'_>, out: &mut W) -> fmt::Result {
        self.key(row, out)?;
        self.values(row, out)?;
        self.actions(row, out)?;
        out.write_bytes(b"\n")
    }
}

/// Writes what comes before the trigger line. `n` triggers were shown before this one.
pub fn begin<W: Out>(n: usize, out: &mut W) -> fmt::Result {
    if n > 0 {
        out.write_bytes(b"\n\n")?;
    }
    out.write_bytes(b"# event histogram\n#\n# trigger info: ")
}

/// Writes what comes between the trigger line, which ends in a newline, and the rows.
pub fn end_header<W: Out>(out: &mut W) -> fmt::Result {
    out.write_bytes(b"#\n\n")
}

/// Writes the totals below `entries` rows.
///
/// As in C, hits that were dropped for another reason than a full table are not in them.
pub fn totals<W: Out>(account: &Account, entries: usize, out: &mut W) -> fmt::Result {
    let lines: [(&[u8], u64); 3] = [
        (b"\nTotals:\n    Hits: ", account.hits),
        // CAST: no machine has more than 64 bits.
        (b"\n    Entries: ", entries as u64),
        (b"\n    Dropped: ", account.dropped_full),
    ];
    for (title, n) in lines {
        out.write_bytes(title)?;
        out.write_bytes(decimal(n).as_bytes())?;
    }
    out.write_bytes(b"\n")
}
