// SPDX-License-Identifier: GPL-2.0

//! What columns are made of: where a value comes from, what it is, how it is shown and sorted.
//!
//! C counterpart: the `HIST_FIELD_FL_*` flags and the functions of `enum hist_field_fn` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//!
//! Plain values. Context: any.

use crate::text::Span;

use super::Field;

/// The name of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// As typed.
    Text(Span),
    /// A special field that goes by one name however it is typed.
    Fixed(&'static str),
    /// Made by the compiler: bytes of the program itself.
    Made(Span),
}

/// How a number stands in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// 1 byte, unsigned.
    U8,
    /// 1 byte, signed.
    S8,
    /// 2 bytes, unsigned.
    U16,
    /// 2 bytes, signed.
    S16,
    /// 4 bytes, unsigned.
    U32,
    /// 4 bytes, signed.
    S32,
    /// 8 bytes, unsigned.
    U64,
    /// 8 bytes, signed.
    S64,
}

/// One step of a hit: where a column comes from. All decisions are taken when it is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// 1: `hitcount`.
    One,
    /// A number of the record.
    Num {
        /// Its place there.
        offset: u32,
        /// Its size and sign.
        load: Load,
    },
    /// The record's stamp.
    Timestamp,
    /// The CPU.
    Cpu,
    /// The name of the current task; a string.
    Comm,
    /// `len` bytes of the record; a string.
    StaticString {
        /// Its place there.
        offset: u32,
        /// Its bytes there.
        len: u32,
    },
    /// A string whose place and length a word of the record gives.
    DynString {
        /// The place of that word.
        offset: u32,
    },
    /// As [`Op::DynString`], counted from the end of that word.
    RelDynString {
        /// The place of that word.
        offset: u32,
    },
    /// The kernel stack of the hit.
    Stacktrace,
    /// A stack in the record: a count, then that many frames, at the place a word of the record
    /// gives.
    StackField {
        /// The place of that word.
        offset: u32,
    },
    /// The name of the task that made the entry, as the entry keeps it; a string. Of variables
    /// alone (`v=common_pid.execname`).
    EntryComm,
    /// A constant.
    Const(u64),
    /// The value of `refs()[n]`.
    Ref(u8),
    /// Computed by these instructions.
    Expr(Code),
}

impl Op {
    /// Whether it is a string that is in the record.
    #[inline(always)]
    pub(super) fn is_text_of_record(self) -> bool {
        matches!(
            self,
            Self::StaticString { .. } | Self::DynString { .. } | Self::RelDynString { .. }
        )
    }
}

/// The instructions of one expression: a piece of [`Program::code`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Code {
    pub(super) start: u16,
    pub(super) len: u16,
}

impl Code {
    /// The instructions; `code` is that of the program.
    #[inline]
    pub fn of<'p>(&self, code: &'p [Insn]) -> &'p [Insn] {
        code.get(usize::from(self.start)..)
            .and_then(|from| from.get(..usize::from(self.len)))
            .unwrap_or(&[])
    }
}

/// One instruction, in postfix order: at most [`crate::limits::STACK_MAX`] values wait at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insn {
    /// Puts a number down: a field with its own modifier, a constant or a reference.
    Push(Field),
    /// Negates the last value.
    Neg,
    /// Adds the last value to the one before it, and so on.
    Add,
    /// Subtracts the last value from the one before it.
    Sub,
    /// Multiplies the last two values.
    Mul,
    /// Divides the value before the last one by it, unsigned; a division by zero gives all ones.
    Div,
}

/// What a column's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One 64-bit number.
    Number,
    /// Bytes up to a NUL; there always is one.
    String,
    /// [`crate::limits::STACK_DEPTH`] addresses, ended by a zero if there are fewer.
    Stack,
}

/// The place of a variable's value in the extra words of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Its first word. Even for a number, whose two words are exchanged as one.
    pub at: u16,
    /// Its words: two of a number; else one, and those of the string or the stack behind it.
    pub words: u16,
    /// What it holds.
    pub kind: Kind,
}
