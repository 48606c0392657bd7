// SPDX-License-Identifier: GPL-2.0

//! The part of a row between the braces: its key.
//!
//! C counterpart: `hist_trigger_print_key()`.

use super::{
    fold::Fold,
    text::{
        cpus,
        decimal,
        hex,
        left,
        left_with,
        spaces,
        string, //
    },
    Renderer,
    Symbols, //
};
use crate::bucket::{
    Bounds,
    Buckets,
    Scale, //
};
use crate::limits::{
    COMM_WORDS,
    STACK_DEPTH, //
};
use crate::program::{
    Key,
    Kind,
    Modifier,
    Op, //
};
use crate::text::Out;
use crate::tracing_map::Row;
use core::fmt;

const NUMBER_WIDTH: usize = 10;
const STRING_WIDTH: usize = 50;
const SYMBOL_WIDTH: usize = 45;
const SYMBOL_OFFSET_WIDTH: usize = 55;
const COMM_WIDTH: usize = 16;
const SYSCALL_WIDTH: usize = 30;
const SYSCALL_NUMBER_WIDTH: usize = 3;
const LOG2_WIDTH: usize = 2;
pub(super) const FRAME_INDENT: usize = 9;

impl<S: Symbols> Renderer<'_, S> {
    /// Writes the key of a row with its braces.
    pub(super) fn key<W: Out>(&self, row: &Row<'_>, out: &mut W) -> fmt::Result {
        let mut has_stack = false;
        let mut comma: &[u8] = b"";
        let fold = Fold::of(self.program).filter(|fold| fold.is_folded(row));
        let keys = self.program.keys.iter();
        let keys = keys.filter(|key| fold.as_ref().is_none_or(|fold| !fold.leaves_out(key)));

        if row.is_of_others() {
            return out.write_bytes(b"{ others }");
        }
        out.write_bytes(b"{ ")?;
        for key in keys {
            out.write_bytes(comma)?;
            comma = b", ";
            let words = key.of(row.key);

            if key.field.kind == Kind::Stack {
                self.stack(key, words, out)?;
                has_stack = true;
            } else {
                out.write_parts(&[self.program.field_name(&key.field, self.text), b": "])?;
                self.part(key, words, row.aux, out)?;
            }
        }
        // The last frame of a stack ends with a newline, so no blank is needed.
        out.write_bytes(match has_stack || comma.is_empty() {
            true => b"}",
            false => b" }",
        })
    }

    /// Writes a key field that is not a stack.
    fn part<W: Out>(&self, key: &Key, words: &[u64], aux: &[u64], out: &mut W) -> fmt::Result {
        let v = words.first().copied().unwrap_or(0);

        match key.field.modifier {
            Modifier::Hex => out.write_bytes(hex(v).as_bytes()),
            Modifier::Sym => {
                address(v, out)?;
                left_with(SYMBOL_WIDTH, out, |out| self.symbols.symbol(v, out))
            }
            Modifier::SymOffset => {
                address(v, out)?;
                left_with(SYMBOL_OFFSET_WIDTH, out, |out| {
                    self.symbols.symbol_offset(v, out)
                })
            }
            Modifier::Execname => {
                let comm = aux.get(..COMM_WORDS).unwrap_or(&[]);
                left_with(COMM_WIDTH, out, |out| string(comm, out))?;
                in_brackets(v, NUMBER_WIDTH, out)
            }
            Modifier::Syscall => {
                let name = self.symbols.syscall(v).unwrap_or(b"unknown_syscall");
                left(name, SYSCALL_WIDTH, out)?;
                in_brackets(v, SYSCALL_NUMBER_WIDTH, out)
            }
            Modifier::Log2(Scale::POWERS) => {
                out.write_bytes(b"~ 2^")?;
                left(decimal(v).as_bytes(), LOG2_WIDTH, out)
            }
            Modifier::Log2(scale) => {
                let Bounds { lo, hi } = Buckets::Log2(scale).bounds(v);

                out.write_bytes(b"~ ")?;
                integer(lo, out)?;
                out.write_bytes(b"-")?;
                integer(hi, out)
            }
            Modifier::Buckets(width) => {
                let last = v.wrapping_add(width.get()).wrapping_sub(1);
                out.write_parts(&[b"~ ", decimal(v).as_bytes(), b"-", decimal(last).as_bytes()])
            }
            Modifier::None
            | Modifier::Usecs
            | Modifier::Percent
            | Modifier::Graph
            | Modifier::Stat(_)
            | Modifier::Stacktrace => match key.field.kind {
                Kind::String => left_with(STRING_WIDTH, out, |out| string(words, out)),
                Kind::Cpumask => left_with(STRING_WIDTH, out, |out| cpus(words, out)),
                Kind::Number | Kind::Stack => out.write_bytes(decimal(v).right(NUMBER_WIDTH)),
            },
        }
    }

    /// Writes a key field that is a stack, one line for each frame.
    fn stack<W: Out>(&self, key: &Key, words: &[u64], out: &mut W) -> fmt::Result {
        if key.field.op == Op::Stacktrace {
            out.write_bytes(b"common_stacktrace:\n")?;
        } else {
            out.write_parts(&[
                self.program.field_name(&key.field, self.text),
                b".stacktrace",
            ])?;
        }
        for frame in frames(words) {
            spaces(FRAME_INDENT, out)?;
            self.symbols.symbol_offset(frame, out)?;
            out.write_bytes(b"\n")?;
        }
        Ok(())
    }
}

/// Writes a number with its sign.
pub(super) fn integer<W: Out>(number: i128, out: &mut W) -> fmt::Result {
    if number < 0 {
        out.write_bytes(b"-")?;
    }
    // CAST: the magnitude has 64 bits.
    out.write_bytes(decimal(number.unsigned_abs() as u64).as_bytes())
}

/// Writes a number with its sign, in at least `width` bytes.
pub(super) fn right<W: Out>(number: i128, width: usize, out: &mut W) -> fmt::Result {
    // CAST: the magnitude has 64 bits.
    let digits = decimal(number.unsigned_abs() as u64).as_bytes().len();
    let len = digits.saturating_add(usize::from(number < 0));

    spaces(width.saturating_sub(len), out)?;
    integer(number, out)
}

/// Returns the frames of a stack, which end before the first 0, if there is one.
pub(super) fn frames(words: &[u64]) -> impl Iterator<Item = u64> + '_ {
    words
        .iter()
        .copied()
        .take(STACK_DEPTH)
        .take_while(|&frame| frame != 0)
}

/// Writes an address in brackets, before the name of its symbol.
fn address<W: Out>(v: u64, out: &mut W) -> fmt::Result {
    out.write_parts(&[b"[", hex(v).as_bytes(), b"] "])
}

/// Writes a number in brackets, after a name.
fn in_brackets<W: Out>(v: u64, width: usize, out: &mut W) -> fmt::Result {
    out.write_parts(&[b"[", decimal(v).right(width), b"]"])
}
