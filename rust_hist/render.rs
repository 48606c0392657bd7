// SPDX-License-Identifier: GPL-2.0

//! The text of the `hist` file: header, rows and totals of one trigger.
//!
//! C counterpart: `hist_trigger_show()` and the functions that it calls in
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c). The text is part of the user
//! interface and equals C's, byte for byte.
//!
//! Rows are copies, so nothing here races with hits. Rows are written one at a time, in the order of
//! [`sort`](crate::tracing_map::sort::sort); the caller may continue after any row.
//!
//! Context: process. Never allocates.

mod action;
mod fold;
pub mod json;
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

pub use self::{
    fold::Fold,
    json::Json,
    value::Stats, //
};

/// Names of functions, objects and system calls, which only the running kernel knows.
pub trait Symbols {
    /// Writes the name of the function or object at `addr`, as `%ps` does.
    fn symbol<W: Out>(&self, addr: u64, out: &mut W) -> fmt::Result;

    /// Writes the name with offset and size, as `%pS` does.
    fn symbol_offset<W: Out>(&self, addr: u64, out: &mut W) -> fmt::Result;

    /// Returns the name of system call `nr`, `None` if there is no such call.
    fn syscall(&self, nr: u64) -> Option<&[u8]>;
}

/// Writes the rows of one trigger.
///
/// Borrows all of its parts, and needs no lock, since the rows are copies.
///
/// # Examples
///
/// ```
/// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/out.rs")); }
/// # mod event { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/event.rs")); }
/// # use {doc::Buffer, event::SchedSwitch};
/// # use core::fmt;
/// use rust_hist::{
///     lang,
///     program::{Program, Purpose},
///     render::{Renderer, Stats, Symbols},
///     text::Out,
///     tracing_map::{Dimensions, Rows, Shape},
/// };
///
/// struct NoSymbols;
///
/// impl Symbols for NoSymbols {
///     fn symbol<W: Out>(&self, addr: u64, out: &mut W) -> fmt::Result {
///         write!(out, "{addr:#x}")
///     }
///     fn symbol_offset<W: Out>(&self, addr: u64, out: &mut W) -> fmt::Result {
///         self.symbol(addr, out)
///     }
///     fn syscall(&self, _nr: u64) -> Option<&[u8]> {
///         None
///     }
/// }
///
/// let text = b"keys=next_pid:vals=prev_state";
/// let spec = lang::parse(b"hist", text)?;
/// let program = Program::compile(&spec, &mut SchedSwitch, Purpose::New)?;
///
/// // One row: the key 42, 3 hits and the sum 5.
/// let dimensions = Dimensions { bits: 7, key_words: 1, sums: 2, ..Dimensions::default() };
/// let shape = Shape::new(dimensions, 1).expect("in range");
/// let rows = Rows::new(&shape, &[42, 3, 5], 1);
/// let renderer = Renderer { program: &program, text, stats: &Stats::of(&program, &rows), symbols: &NoSymbols };
/// let mut out = Buffer::default();
///
/// for row in rows.iter() {
///     renderer.row(&row, &mut out).expect("no limit");
/// }
/// assert_eq!(out.text(), "{ next_pid:         42 } hitcount:          3  prev_state:          5\n");
/// # Ok::<(), rust_hist::error::Refusal>(())
/// ```
#[derive(Clone, Copy)]
pub struct Renderer<'a, S> {
    /// The compiled trigger.
    pub program: &'a Program,
    /// The text of the trigger, to which the spans of the program refer.
    pub text: &'a [u8],
    /// The statistics of the rows to be written.
    pub stats: &'a Stats,
    /// Looks up names in the kernel.
    pub symbols: &'a S,
}

impl<S: Symbols> Renderer<'_, S> {
    /// Writes one row, newline included.
    ///
    /// `row` comes from a map with the program's key words and sums; [`Program::copy_aux`] has copied its aux words. A
    /// [folded](Fold) row has quantiles after its values, and no tracked values, which each row of the group has its
    /// own of. A row [of others](Row::is_of_others) is written, too.
    pub fn row<W: Out>(&self, row: &Row<'_>, out: &mut W) -> fmt::Result {
        self.key(row, out)?;
        self.values(row, out)?;
        match Fold::of(self.program).filter(|fold| fold.is_folded(row)) {
            Some(fold) => self.quantiles(&fold, row, out)?,
            None => self.actions(row, out)?,
        }
        out.write_bytes(b"\n")
    }
}

/// Writes the text before the trigger line of trigger `n`, counted from 0.
pub fn begin(n: usize, out: &mut dyn Out) -> fmt::Result {
    if n > 0 {
        out.write_bytes(b"\n\n")?;
    }
    out.write_bytes(b"# event histogram\n#\n# trigger info: ")
}

/// Writes the text between the trigger line and the rows.
pub fn end_header(out: &mut dyn Out) -> fmt::Result {
    out.write_bytes(b"#\n\n")
}

/// Writes the totals after `entries` rows.
///
/// As in C, the number of dropped hits only counts hits that found the table full.
pub fn totals<W: Out>(account: &Account, entries: usize, out: &mut W) -> fmt::Result {
    let lines: [(&[u8], u64); 3] = [
        (b"\nTotals:\n    Hits: ", account.hits),
        // CAST: `usize` has at most 64 bits.
        (b"\n    Entries: ", entries as u64),
        (b"\n    Dropped: ", account.dropped_full),
    ];
    for (title, n) in lines {
        out.write_bytes(title)?;
        out.write_bytes(decimal(n).as_bytes())?;
    }
    out.write_bytes(b"\n")
}
