// SPDX-License-Identifier: GPL-2.0

//! The lines of `hist_json` and `hist_pipe`, each a JSON object: for the trigger, for each row, and for the end of the
//! table.
//!
//! There is no C counterpart. `Documentation/hist-json.schema.json` describes the lines.
//!
//! Strings are bytes: each byte stands for the character with that number, and is escaped unless it is printable ASCII.
//! So a string decodes to its original bytes, of any value. Numbers are signed where the field is, unlike in the text
//! of `hist`.
//!
//! Context: process. Never allocates.

use super::{
    action::kept_words,
    key::{
        frames,
        integer, //
    },
    text::{
        cpus,
        decimal,
        hex,
        string, //
    },
    value::plain_number,
    Fold,
    Symbols, //
};
use crate::{
    bucket::{
        self,
        Bounds, //
    },
    limits::COMM_WORDS,
    program::{
        track_row,
        Action,
        ActionKind,
        Field,
        Handler,
        Key,
        Kind,
        Modifier,
        Op,
        Program,
        Time, //
    },
    text::{
        Out,
        Span, //
    },
    tracing_map::{
        sort::Column,
        Account,
        Row, //
    }, //
};
use core::fmt;

/// The version of the lines' format, which changes when the meaning of a member changes.
const VERSION: u64 = 1;

/// Writes the lines of one table.
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
///     render::{Json, Symbols},
///     text::Out,
///     tracing_map::Row,
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
/// let json = Json { program: &program, text, symbols: &NoSymbols };
/// let mut out = Buffer::default();
///
/// // One row: the key 42, 3 hits and the sum 5.
/// json.row(&Row { key: &[42], aux: &[], sums: &[3, 5] }, &mut out).expect("no limit");
/// assert_eq!(out.text(), "{\"k\":[42],\"v\":[3,5]}\n");
/// # Ok::<(), rust_hist::error::Refusal>(())
/// ```
#[derive(Clone, Copy)]
pub struct Json<'a, S> {
    /// The compiled trigger.
    pub program: &'a Program,
    /// The text of the trigger, to which the spans of the program refer.
    pub text: &'a [u8],
    /// Looks up names in the kernel.
    pub symbols: &'a S,
}

/// The contents of a table's first line besides the trigger itself.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// The system and the name of the event.
    pub event: (&'a [u8], &'a [u8]),
    /// The name of the command.
    pub prefix: &'a [u8],
    /// Whether the trigger is paused.
    pub paused: bool,
    /// Whether the clock of the trigger counts nanoseconds.
    pub clock_in_ns: bool,
    /// The epoch in which the rows were counted.
    pub epoch: Epoch,
    /// Whether the read consumes the rows, so that the next reader finds the table empty; `None` for a file that never
    /// consumes.
    pub consumed: Option<bool>,
    /// The cost of the trigger, if it has `overhead`.
    pub overhead: Option<Overhead>,
}

/// The cost of a trigger's calls since the trigger was created or cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overhead {
    /// The mean time in nanoseconds of the calls that were timed.
    pub ns: u64,
    /// The share of one CPU that all calls took, in millionths.
    pub ppm: u64,
    /// The number of calls that were timed.
    pub samples: u64,
    /// Whether the trigger is paused because it cost more than its budget.
    pub is_over: bool,
}

/// The time between two moments at which a table was created, consumed or cleared. Each hit of a table is in one epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Epoch {
    /// The number of the epoch, counted from 1.
    pub number: u64,
    /// The start of the epoch, in nanoseconds of the monotonic clock.
    pub from: u64,
    /// The end of the epoch, or the time of the read, in nanoseconds of the monotonic clock.
    pub to: u64,
    /// The time `to` in nanoseconds since 1970.
    pub real: u64,
}

/// Writes the line for an event that has no triggers.
pub fn none<W: Out>(event: (&[u8], &[u8]), out: &mut W) -> fmt::Result {
    begin(b"none", event, out)?;
    out.write_bytes(b"}\n")
}

/// Writes the members at the beginning of an event's first line.
fn begin<W: Out>(kind: &[u8], event: (&[u8], &[u8]), out: &mut W) -> fmt::Result {
    member(b"{\"v\":", VERSION, out)?;
    out.write_parts(&[b",\"type\":\"", kind, b"\",\"event\":"])?;
    in_quotes(out, |out| out.write_parts(&[event.0, b":", event.1]))
}

impl<S: Symbols> Json<'_, S> {
    /// Writes the line before the rows, which describes the trigger.
    pub fn header<W: Out>(&self, head: &Head<'_>, out: &mut W) -> fmt::Result {
        begin(b"hist", head.event, out)?;
        out.write_bytes(b",\"trigger\":")?;
        in_quotes(out, |out| {
            self.program.write_command(head.prefix, self.text, out)
        })?;
        let state: &[u8] = if head.paused { b"paused" } else { b"active" };
        out.write_parts(&[b",\"state\":\"", state, b"\""])?;
        if let Some(overhead) = head.overhead {
            if overhead.is_over {
                out.write_bytes(b",\"paused_by\":\"overhead\"")?;
            }
            member(b",\"overhead\":{\"ns\":", overhead.ns, out)?;
            member(b",\"ppm\":", overhead.ppm, out)?;
            member(b",\"samples\":", overhead.samples, out)?;
            out.write_bytes(b"}")?;
        }
        if let Some(consumed) = head.consumed {
            out.write_bytes(b",\"consumed\":")?;
            out.write_bytes(if consumed { b"true" } else { b"false" })?;
        }
        member(b",\"epoch\":", head.epoch.number, out)?;
        member(b",\"from\":", head.epoch.from, out)?;
        member(b",\"to\":", head.epoch.to, out)?;
        member(b",\"real\":", head.epoch.real, out)?;
        self.columns(head, out)?;
        out.write_bytes(b"}\n")
    }

    /// Writes the names and kinds of the columns, in the order of a row's items.
    fn columns<W: Out>(&self, head: &Head<'_>, out: &mut W) -> fmt::Result {
        let mut comma: &[u8] = b"";

        out.write_bytes(b",\"keys\":[")?;
        for key in self.program.keys.iter() {
            next(&mut comma, out)?;
            self.key_column(&key.field, head, out)?;
        }
        out.write_bytes(b"],\"vals\":[")?;
        comma = b"";
        if !self.program.nohitcount {
            next(&mut comma, out)?;
            self.column(b"hitcount", out)?;
            out.write_bytes(b"}")?;
        }
        for field in self.program.vals.iter() {
            next(&mut comma, out)?;
            self.column(self.program.field_name(field, self.text), out)?;
            if let Modifier::Stat(stat) = field.modifier {
                out.write_bytes(b",\"agg\":")?;
                quoted(stat.name().as_bytes(), out)?;
            }
            unit(field, head, out)?;
            out.write_bytes(b"}")?;
        }
        out.write_bytes(b"]")
    }

    /// Writes the beginning of a column's description, before the members that only some columns have.
    fn column<W: Out>(&self, name: &[u8], out: &mut W) -> fmt::Result {
        out.write_bytes(b"{\"name\":")?;
        quoted(name, out)
    }

    fn key_column<W: Out>(&self, field: &Field, head: &Head<'_>, out: &mut W) -> fmt::Result {
        self.column(
            match field.op {
                Op::Stacktrace => b"common_stacktrace",
                _ => self.program.field_name(field, self.text),
            },
            out,
        )?;
        out.write_bytes(b",\"kind\":")?;
        out.write_bytes(match (field.kind, field.modifier) {
            (Kind::Stack, _) => b"\"stack\"",
            (Kind::String | Kind::Cpumask, _) => b"\"string\"",
            (_, Modifier::Sym | Modifier::SymOffset) => b"\"symbol\"",
            (_, Modifier::Execname) => b"\"execname\"",
            (_, Modifier::Syscall) => b"\"syscall\"",
            (_, Modifier::Log2(_)) => b"\"log2\"",
            (_, Modifier::Buckets(_)) => b"\"buckets\"",
            _ => b"\"number\"",
        })?;
        match field.modifier {
            Modifier::Log2(scale) => member(b",\"scale\":", scale.get().into(), out)?,
            Modifier::Buckets(width) => member(b",\"width\":", width.get(), out)?,
            _ => (),
        }
        unit(field, head, out)?;
        out.write_bytes(b"}")
    }

    /// Writes the line of a row.
    ///
    /// `row` comes from a map with the program's key words and sums; [`Program::copy_aux`] has copied its aux words. A
    /// [folded](Fold) row has quantiles instead of tracked values, which each row of the group has its own of. A row
    /// [of others](Row::is_of_others) is written, too.
    pub fn row<W: Out>(&self, row: &Row<'_>, out: &mut W) -> fmt::Result {
        let fold = Fold::of(self.program).filter(|fold| fold.is_folded(row));
        let mut comma: &[u8] = b"";

        if row.is_of_others() {
            out.write_bytes(b"{\"others\":true")?;
        } else {
            out.write_bytes(b"{\"k\":[")?;
            for key in self.program.keys.iter() {
                next(&mut comma, out)?;
                match fold {
                    Some(fold) if fold.leaves_out(key) => out.write_bytes(b"null")?,
                    _ => self.key(key, row, out)?,
                }
            }
            out.write_bytes(b"]")?;
        }
        out.write_bytes(b",\"v\":[")?;
        comma = b"";
        if !self.program.nohitcount {
            next(&mut comma, out)?;
            out.write_bytes(decimal(row.sums.first().copied().unwrap_or(0)).as_bytes())?;
        }
        for (field, column) in self.program.vals.iter().zip(self.program.columns.iter()) {
            next(&mut comma, out)?;
            match column {
                Column::Sum(at) => number(row.sums.get(*at).copied().unwrap_or(0), field, out)?,
                Column::Made(gauge) => match gauge.number(row.sums) {
                    Some(number) => plain_number(&number, gauge.has_decimals(), out)?,
                    None => out.write_bytes(b"null")?,
                },
                Column::Key { .. } => out.write_bytes(b"null")?,
            }
        }
        out.write_bytes(b"]")?;
        match fold {
            Some(fold) => self.quantiles(&fold, row, out)?,
            None => self.saved(row, out)?,
        }
        out.write_bytes(b"}\n")
    }

    /// Writes the quantiles of a folded row, each with the bounds of its bucket.
    fn quantiles<W: Out>(&self, fold: &Fold<'_>, row: &Row<'_>, out: &mut W) -> fmt::Result {
        let mut comma: &[u8] = b"";

        out.write_bytes(b",\"q\":{")?;
        for (quantile, Bounds { lo, hi }) in fold.quantiles(row) {
            next(&mut comma, out)?;
            in_quotes(out, |out| {
                self.program.write_quantile(quantile, self.text, out)
            })?;
            out.write_bytes(b":[")?;
            integer(lo, out)?;
            out.write_bytes(b",")?;
            integer(hi, out)?;
            out.write_bytes(b"]")?;
        }
        out.write_bytes(b"}")
    }

    /// Writes one key of a row.
    fn key<W: Out>(&self, key: &Key, row: &Row<'_>, out: &mut W) -> fmt::Result {
        let field = &key.field;
        let words = key.of(row.key);
        let v = words.first().copied().unwrap_or(0);

        match (field.kind, field.modifier) {
            (Kind::Stack, _) => self.stack(words, out),
            (Kind::String, _) => text(words, out),
            (Kind::Cpumask, _) => in_quotes(out, |out| cpus(words, out)),
            (_, modifier @ (Modifier::Sym | Modifier::SymOffset)) => {
                out.write_parts(&[b"{\"addr\":\"0x", hex(v).as_bytes(), b"\",\"sym\":"])?;
                in_quotes(out, |out| match modifier {
                    Modifier::Sym => self.symbols.symbol(v, out),
                    _ => self.symbols.symbol_offset(v, out),
                })?;
                out.write_bytes(b"}")
            }
            (_, Modifier::Execname) => {
                out.write_bytes(b"{\"pid\":")?;
                number(v, field, out)?;
                out.write_bytes(b",\"comm\":")?;
                text(row.aux.get(..COMM_WORDS).unwrap_or(&[]), out)?;
                out.write_bytes(b"}")
            }
            (_, Modifier::Syscall) => {
                out.write_bytes(b"{\"nr\":")?;
                number(v, field, out)?;
                out.write_bytes(b",\"name\":")?;
                match self.symbols.syscall(v) {
                    Some(name) => quoted(name, out)?,
                    None => out.write_bytes(b"null")?,
                }
                out.write_bytes(b"}")
            }
            _ => match field.buckets() {
                Some(buckets) => {
                    let numbers = buckets.numbers(v, field.signed);

                    bounds(buckets.index(v), numbers, out)
                }
                None => number(v, field, out),
            },
        }
    }

    fn stack<W: Out>(&self, words: &[u64], out: &mut W) -> fmt::Result {
        let mut comma: &[u8] = b"";

        out.write_bytes(b"{\"stack\":[")?;
        for frame in frames(words) {
            next(&mut comma, out)?;
            in_quotes(out, |out| self.symbols.symbol_offset(frame, out))?;
        }
        out.write_bytes(b"]}")
    }

    /// Writes the tracked and saved values of a row, if the trigger has any, as members named after handlers and
    /// variables.
    fn saved<W: Out>(&self, row: &Row<'_>, out: &mut W) -> fmt::Result {
        let mut comma: &[u8] = b",\"saved\":{";

        for (i, action) in self.program.actions.iter().enumerate() {
            let (Some((arg, var)), Some(track)) = (keeps(action), action.track) else {
                continue;
            };
            let kept = track_row(&track, row.aux);

            next(&mut comma, out)?;
            out.write_bytes(b"\"")?;
            let word = action.handler.word();
            let name = [word.as_bytes(), b"(", arg.of(self.text), b")"];
            Escaped(out).write_parts(&name)?;
            let before = self.program.actions.iter().take(i);
            let same = before
                .filter(|other| other.handler.word() == word)
                .filter_map(keeps)
                .filter(|(other, _)| other.of(self.text) == arg.of(self.text))
                .count();
            if same > 0 {
                // CAST: at most the number of actions. The number makes the member's name unique.
                member(b"#", (same as u64).saturating_add(1), out)?;
            }
            out.write_bytes(b"\":")?;
            if !kept.fired {
                out.write_bytes(b"null")?;
                continue;
            }
            out.write_bytes(b"{\"value\":")?;
            match self.program.vars.get(usize::from(var)) {
                Some(var) => number(kept.value, &var.field, out)?,
                None => out.write_bytes(b"null")?,
            }
            self.saved_row(action, kept.row, out)?;
            out.write_bytes(b"}")?;
        }
        match comma {
            b"," => out.write_bytes(b"}"),
            _ => Ok(()),
        }
    }

    /// Writes the fields that a `save()` keeps. A field that is named twice is written once.
    fn saved_row<W: Out>(&self, action: &Action, row: &[u64], out: &mut W) -> fmt::Result {
        let saves = self.program.saves_of(action);
        let mut comma: &[u8] = b"";

        if action.kind != ActionKind::Save {
            return Ok(());
        }
        out.write_bytes(b",\"row\":{")?;
        for (i, save) in saves.iter().enumerate() {
            let name = save.name.of(self.text);
            let mut before = saves.iter().take(i);
            if before.any(|other| other.name.of(self.text) == name) {
                continue;
            }
            let words = kept_words(save, row);

            next(&mut comma, out)?;
            quoted(name, out)?;
            out.write_bytes(b":")?;
            match save.field.kind {
                Kind::Number => {
                    number(words.first().copied().unwrap_or(0), &save.field, out)?;
                }
                Kind::String | Kind::Cpumask => text(words, out)?,
                Kind::Stack => self.stack(words, out)?,
            }
        }
        out.write_bytes(b"}")
    }
}

/// The numbers of rows in a table.
#[derive(Clone, Copy, Debug, Default)]
pub struct End {
    /// The number of rows with keys.
    pub entries: usize,
    /// The number of groups, of a trigger with quantiles.
    pub groups: Option<usize>,
    /// With `expire()`: the hits that are in no row any more.
    pub retired: Option<u64>,
}

/// Writes the line after the rows: the number of rows, and the outcomes of all calls.
pub fn end<W: Out>(program: &Program, account: &Account, end: &End, out: &mut W) -> fmt::Result {
    // CAST: `usize` has at most 64 bits.
    member(b"{\"type\":\"end\",\"entries\":", end.entries as u64, out)?;
    if let Some(groups) = end.groups {
        // CAST: `usize` has at most 64 bits.
        member(b",\"groups\":", groups as u64, out)?;
    }
    member(b",\"calls\":", account.calls(), out)?;
    member(b",\"hits\":", account.hits, out)?;
    member(b",\"dropped_full\":", account.dropped_full, out)?;
    member(b",\"dropped_nested\":", account.dropped_nested, out)?;
    member(b",\"ignored\":", account.ignored, out)?;
    member(b",\"lost_saves\":", account.lost_saves, out)?;
    member(b",\"lost_traces\":", account.lost_traces, out)?;
    if program.limit().is_some() {
        member(b",\"lost_limited\":", account.lost_limited, out)?;
    }
    if program.may_cut() {
        member(b",\"cut_strings\":", account.cut_strings, out)?;
    }
    if let Some(retired) = end.retired {
        member(b",\"retired\":", retired, out)?;
        member(b",\"expired\":", account.expired, out)?;
        member(b",\"overwritten\":", account.overwritten, out)?;
    }
    out.write_bytes(b"}\n")
}

/// Returns the text of the parameters, and the index of the variable, of a handler that tracks a value in each row;
/// `None` for other handlers.
fn keeps(action: &Action) -> Option<(Span, u8)> {
    match (action.kind, action.handler) {
        (ActionKind::Snapshot, _) | (_, Handler::Match { .. }) => None,
        (_, Handler::Track { arg, var, .. }) => Some((arg, var)),
    }
}

/// Writes the unit of a column's numbers, if it is known.
fn unit<W: Out>(field: &Field, head: &Head<'_>, out: &mut W) -> fmt::Result {
    match (field.time, field.usecs) {
        (Time::Interval, true) if head.clock_in_ns => out.write_bytes(b",\"unit\":\"us\""),
        (Time::Interval, false) if head.clock_in_ns => out.write_bytes(b",\"unit\":\"ns\""),
        _ => Ok(()),
    }
}

/// Writes the text before the next member of a list: `first` before the first one, then a comma.
fn next<W: Out>(first: &mut &[u8], out: &mut W) -> fmt::Result {
    out.write_bytes(core::mem::replace(first, b","))
}

/// Writes `title`, which ends where a number is to follow, and the number.
fn member<W: Out>(title: &[u8], v: u64, out: &mut W) -> fmt::Result {
    out.write_bytes(title)?;
    out.write_bytes(decimal(v).as_bytes())
}

/// Writes a bucket: its index, if it has one, and the smallest and the largest number in it.
fn bounds<W: Out>(index: Option<u64>, Bounds { lo, hi }: Bounds, out: &mut W) -> fmt::Result {
    out.write_bytes(b"{")?;
    if let Some(i) = index {
        member(b"\"i\":", i, out)?;
        out.write_bytes(b",")?;
    }
    out.write_bytes(b"\"lo\":")?;
    integer(lo, out)?;
    out.write_bytes(b",\"hi\":")?;
    integer(hi, out)?;
    out.write_bytes(b"}")
}

/// Writes a number of a field, with its sign if the field has one.
fn number<W: Out>(v: u64, field: &Field, out: &mut W) -> fmt::Result {
    integer(bucket::integer(v, field.signed), out)
}

/// Writes the string in `words` up to its first NUL.
fn text<W: Out>(words: &[u64], out: &mut W) -> fmt::Result {
    in_quotes(out, |out| string(words, out))
}

/// Writes bytes as a string.
fn quoted<W: Out>(bytes: &[u8], out: &mut W) -> fmt::Result {
    in_quotes(out, |out| out.write_bytes(bytes))
}

/// Writes a string, the inside of which is written by `write`.
fn in_quotes<W: Out>(
    out: &mut W,
    write: impl FnOnce(&mut Escaped<'_, W>) -> fmt::Result,
) -> fmt::Result {
    out.write_bytes(b"\"")?;
    write(&mut Escaped(out))?;
    out.write_bytes(b"\"")
}

/// A writer to the inside of a JSON string.
struct Escaped<'a, W>(&'a mut W);

impl<W: Out> fmt::Write for Escaped<'_, W> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.write_bytes(s.as_bytes())
    }
}

impl<W: Out> Out for Escaped<'_, W> {
    fn write_bytes(&mut self, bytes: &[u8]) -> fmt::Result {
        let is_plain = |byte: &u8| matches!(byte, 0x20..=0x7e) && !matches!(byte, b'"' | b'\\');

        for part in bytes.chunk_by(|a, b| is_plain(a) && is_plain(b)) {
            match part {
                [byte] if !is_plain(byte) => write!(self.0, "\\u{byte:04x}")?,
                _ => self.0.write_bytes(part)?,
            }
        }
        Ok(())
    }
}
