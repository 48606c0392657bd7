// SPDX-License-Identifier: GPL-2.0

//! The parts of a column: its name, where a hit takes its value from, and the kind of the value.
//!
//! C counterpart: the `HIST_FIELD_FL_*` flags and the functions of `enum hist_field_fn` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//!
//! Plain values. Context: any.

use core::ops::Range;

use crate::{
    field::TaskNumber,
    lang::expr::Operator,
    text::Span, //
};

use super::Field;

/// The name of a column, or the text of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// A span of the trigger's text.
    Text(Span),
    /// A special field, which has one displayed name regardless of how it was typed.
    Fixed(&'static str),
    /// A span of the bytes that the compiler has added to the program (`made`).
    Made(Span),
}

/// The source from which a hit takes the value of a column. Offsets are bytes in the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// The constant 1 of `hitcount`.
    One,
    /// A number of the record.
    Num {
        /// The offset of the number.
        offset: u32,
        /// The size of the number in bytes: 1, 2, 4 or 8.
        size: u8,
        /// Whether the number is signed.
        signed: bool,
    },
    /// The time stamp of the record.
    Timestamp,
    /// The current CPU.
    Cpu,
    /// A number of the current task.
    Task(TaskNumber),
    /// The name of the current task, a string.
    Comm,
    /// A string of at most `len` bytes.
    StaticString {
        /// The offset of the string.
        offset: u32,
        /// The size of the string in bytes.
        len: u32,
    },
    /// A string or a mask whose offset and length are in a `__data_loc` word.
    DynString {
        /// The offset of the `__data_loc` word.
        offset: u32,
    },
    /// A string whose length, and offset from the end of the word, are in a `__rel_loc` word.
    RelDynString {
        /// The offset of the `__rel_loc` word.
        offset: u32,
    },
    /// The kernel stack of the hit.
    Stacktrace,
    /// A stack of the record, whose offset is in a `__data_loc` word: a word with the number of frames, and the frames.
    StackField {
        /// The offset of the `__data_loc` word.
        offset: u32,
    },
    /// The name of the task that created the entry, a string that the entry keeps. Only a variable can be this
    /// (`v=common_pid.execname`).
    EntryComm,
    /// A constant.
    Const(u64),
    /// The value of `refs()[n]`.
    Ref(u8),
    /// The number that the current hit gives to `vars()[n]`.
    Own(u8),
    /// The result of an expression.
    Expr(Code),
}

impl Op {
    /// Returns the source of a number in the record; `None` if no number has this size.
    pub(super) fn num(offset: u32, size: u32, signed: bool) -> Option<Self> {
        let size = u8::try_from(size).ok()?;

        matches!(size, 1 | 2 | 4 | 8).then_some(Self::Num {
            offset,
            size,
            signed,
        })
    }
}

/// The place of one expression: a range of [`super::Program::code`], or of the steps of the plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Code {
    pub(super) start: u16,
    pub(super) len: u16,
}

impl Code {
    /// Returns the expression's items of `all`, the items of the program; an empty slice if the range is outside of
    /// `all`.
    #[inline]
    pub fn of<'p, T>(&self, all: &'p [T]) -> &'p [T] {
        part(all, self.start, self.len)
    }

    /// Returns the indices of the expression's items.
    #[inline]
    pub(super) fn range(&self) -> Range<usize> {
        range(self.start, self.len)
    }
}

/// Returns the `len` items of `all` from `first` on; an empty slice if there are fewer.
#[inline]
pub(super) fn part<T>(all: &[T], first: u16, len: u16) -> &[T] {
    all.get(range(first, len)).unwrap_or(&[])
}

/// Returns the `len` indices from `first` on.
#[inline]
fn range(first: u16, len: u16) -> Range<usize> {
    let first = usize::from(first);

    // OVERFLOW: both numbers had 16 bits.
    first..first.wrapping_add(usize::from(len))
}

/// An instruction of an expression in postfix order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insn {
    /// Pushes a number: a field with its own modifier, a constant or a reference.
    Push(Field),
    /// Negates the top value.
    Neg,
    /// Replaces the top two values by their sum.
    Add,
    /// Replaces the top two values by their difference: the lower one minus the top one.
    Sub,
    /// Replaces the top two values by their product.
    Mul,
    /// Replaces the top two values by their unsigned quotient: the lower one divided by the top one, or
    /// all ones for a division by zero.
    Div,
}

/// Whether a number is a time stamp or an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Time {
    /// Neither, as far as is known.
    #[default]
    None,
    /// A time stamp of a record.
    Stamp,
    /// A difference of time stamps.
    Interval,
}

impl Time {
    /// Returns the class of the result of a binary operator, from the classes of its operands.
    pub(super) fn of(operator: Operator, left: Self, right: Self) -> Self {
        match (operator, left, right) {
            (Operator::Sub, Self::Stamp, Self::Stamp)
            | (Operator::Add | Operator::Sub, Self::Interval, Self::Interval) => Self::Interval,
            _ => Self::None,
        }
    }
}

/// The kind of a column's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A 64-bit number.
    Number,
    /// Bytes that a NUL ends.
    String,
    /// A mask of CPUs, in as many words as the longest string has. Only a key can be a mask.
    Cpumask,
    /// At most [`crate::limits::STACK_DEPTH`] addresses; a zero follows the last one if there are fewer.
    Stack,
}

/// The place of a variable in the extra words of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Index of the first word; even for a number, whose two words are exchanged as one.
    pub at: u16,
    /// The number of words: two for a number, and one more than the value has for a string or stack.
    pub words: u16,
    /// The kind of the variable's value.
    pub kind: Kind,
}
