// SPDX-License-Identifier: GPL-2.0

//! The program as a hit runs it: numbers and strings without their names, in few cache lines.
//!
//! `program/lower.rs` makes it when the trigger is created; `program/eval.rs` computes its numbers.
//!
//! Context: any, NMI included. Never panics.

use crate::{
    alloc::Vec,
    field::TaskNumber,
    limits::{
        List,
        COMM_WORDS,
        KEY_PARTS_MAX,
        VALS_MAX, //
    },
    sync::{
        Atomic,
        Pair, //
    },
    tracing_map::NumCell, //
};

use super::{
    bytes::{
        located,
        located_behind, //
    },
    operand::{
        Operand,
        Step, //
    },
    types::part,
    Action,
    ActionKind,
    Key,
    Kind,
    Op, //
};

/// What a hit computes.
///
/// # Invariants
///
/// - `row` is that of the program, `vars` its variables, in the same order. `vals` are the numbers that its values are
///   made of.
/// - `has_key_stamp` says whether a number of a key, or one that is computed once, needs the time stamp; `has_stamp`
///   whether any other number does.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) has_key_stamp: bool,
    pub(super) has_stamp: bool,
    /// Whether entries keep the name of the task that made them.
    pub(super) has_creator: bool,
    /// Whether hits keep more than the sums of so few numbers as C has room for.
    pub(super) has_tallies: bool,
    /// The key of the rows.
    pub(super) row: KeyPlan,
    /// The numbers that a hit adds.
    pub(super) vals: List<Operand, VALS_MAX>,
    /// What the hit has of the task, and what it computes once behind that, each after what it is computed of.
    pub(super) tasks: Vec<TaskNumber>,
    pub(super) values: Vec<Operand>,
    pub(super) vars: Vec<VarStep>,
    /// The parameters of `save()` and of `trace()`.
    pub(super) saves: Vec<VarStep>,
    pub(super) args: Vec<ArgStep>,
    /// The steps of all expressions.
    pub(super) steps: Vec<Step>,
}

/// What a hit computes for a key.
///
/// # Invariants
///
/// - `columns` are the keys, in the same order, each with its number.
/// - `words` are the words of the key, if they are few and each of them can be computed by itself; else there are none.
#[derive(Debug, Default)]
pub(super) struct KeyPlan {
    /// Whether it has the name of the task.
    pub(super) has_comm: bool,
    /// Whether it has numbers that the hit computes once.
    pub(super) has_values: bool,
    pub(super) words: List<Operand, KEY_PARTS_MAX>,
    pub(super) columns: Vec<KeyColumn>,
}

/// One of the keys, and what a hit computes for it if it is a number.
#[derive(Debug)]
pub(super) struct KeyColumn {
    pub(super) key: Key,
    pub(super) number: Operand,
}

/// A key of a program: its fields, how many words they come to, and what a hit computes for it.
#[derive(Clone, Copy)]
pub(super) struct KeyParts<'p> {
    pub(super) keys: &'p [Key],
    pub(super) words: usize,
    pub(super) plan: &'p KeyPlan,
}

impl Plan {
    /// Whether a number is, or is made of, one of the list of variables of other triggers and of numbers of
    /// the hit.
    pub(super) fn reads_list(&self, number: &Operand) -> bool {
        let mut steps = number.code.of(&self.steps).iter();

        number.reads_list() || steps.any(|step| step.operand.reads_list())
    }

    /// What an action saves.
    #[inline(always)]
    pub(super) fn saves_of(&self, action: &Action) -> &[VarStep] {
        match action.kind {
            ActionKind::Save { first, len } => part(&self.saves, first, len),
            ActionKind::Snapshot | ActionKind::Trace { .. } => &[],
        }
    }

    /// The parameters of the event that an action generates.
    #[inline(always)]
    pub(super) fn args_of(&self, action: &Action) -> &[ArgStep] {
        match action.kind {
            ActionKind::Trace { first, len, .. } => part(&self.args, first, len),
            ActionKind::Snapshot | ActionKind::Save { .. } => &[],
        }
    }

    /// The bytes that it takes besides itself.
    pub(super) fn bytes(&self) -> usize {
        [
            self.tasks.bytes(),
            self.values.bytes(),
            self.vars.bytes(),
            self.saves.bytes(),
            self.args.bytes(),
            self.steps.bytes(),
        ]
        .iter()
        .sum()
    }
}

/// What a hit does for one variable of the trigger, or for one parameter of `save()`.
#[derive(Clone, Copy, Debug)]
pub(super) struct VarStep {
    /// What it is set to, if it is a number; else 0.
    pub(super) number: Operand,
    /// Its index in [`super::Program::vars`], or among all parameters.
    pub(super) n: u8,
    /// Where it begins in the extra words of the entry, or in the row.
    pub(super) at: u16,
    pub(super) kind: Kind,
    /// What it is set to, if it is a string of the record or the name of a task.
    pub(super) text: TextAt,
    /// The words of content, if it is a string or a stack: of a variable, those after the first one.
    pub(super) room: u8,
}

/// The words of a variable that is the name of a task.
pub(super) const NAME: usize = 1 + COMM_WORDS;

/// A string or stack that a hit copies by a step of its own, in fewer bytes than as an [`Op`].
#[derive(Clone, Copy, Debug)]
pub(super) struct TextAt {
    /// Where it is in the record, or the word that says so; the index of the variable.
    at: u32,
    pub(super) from: TextFrom,
    /// The most bytes of it for which there is room where it goes; of those of fixed size, how many there are.
    most: u8,
}

/// Where a string or stack comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextFrom {
    /// A field of fixed size of the record, of at most [`SHORT_FIELD`] bytes.
    Fixed,
    /// A field of fixed size of the record, of more than [`SHORT_FIELD`] bytes.
    LongFixed,
    /// The record, of which a word has the offset and the length of the string.
    Dyn,
    /// The record, of which a word has the length of the string and its offset from the end of that word.
    Rel,
    /// The task that runs.
    Task,
    /// The task that made the entry.
    Creator,
    /// A variable of another trigger.
    Variable,
    /// From elsewhere; none, if it is a number.
    Elsewhere,
}

impl TextFrom {
    /// Whether it is a string of the record.
    #[inline(always)]
    pub(super) fn is_record(self) -> bool {
        matches!(self, Self::Fixed | Self::LongFixed | Self::Dyn | Self::Rel)
    }
}

/// Most bytes of a string in a field of fixed size that are copied without a look for its NUL, which takes longer than to
/// copy what is behind that.
const SHORT_FIELD: u32 = 32;

impl TextAt {
    /// That of an [`Op`] that is one, else none; `most` bytes of it are kept.
    pub(super) fn new(op: Option<Op>, most: u32) -> Self {
        let (from, at, most) = match op {
            Some(Op::StaticString { offset, len }) => match most.min(len) {
                len if len <= SHORT_FIELD => (TextFrom::Fixed, offset, len),
                len => (TextFrom::LongFixed, offset, len),
            },
            Some(Op::DynString { offset }) => (TextFrom::Dyn, offset, most),
            Some(Op::RelDynString { offset }) => (TextFrom::Rel, offset, most),
            Some(Op::Comm) => (TextFrom::Task, 0, most),
            Some(Op::EntryComm) => (TextFrom::Creator, 0, most),
            Some(Op::Ref(n)) => (TextFrom::Variable, n.into(), most),
            _ => (TextFrom::Elsewhere, 0, 0),
        };
        // There is room for no more anywhere.
        let most = u8::try_from(most).unwrap_or(u8::MAX);

        Self { at, from, most }
    }

    /// The place and the length of the string in the record, of which either may be beyond its end; `None` if it is none of
    /// the record.
    #[inline(always)]
    pub(super) fn place(&self, record: &[u8]) -> Option<(usize, usize)> {
        // CAST: tracing needs 32-bit pointers at least.
        let (at, most) = (self.at as usize, usize::from(self.most));

        let (at, len) = match self.from {
            TextFrom::Fixed | TextFrom::LongFixed => return Some((at, most)),
            TextFrom::Dyn => located(record, at),
            TextFrom::Rel => located_behind(record, at),
            _ => return None,
        };

        Some((at, len.min(most)))
    }

    /// Its index among [`super::Program::refs`], of a variable.
    #[inline(always)]
    pub(super) fn reference(&self) -> u8 {
        // CAST: the index of a reference.
        self.at as u8
    }
}

/// What a hit does for one parameter of a `trace()` that is a number, or a string of the record.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArgStep {
    pub(super) from: ArgFrom,
    /// The index of a variable.
    pub(super) n: u8,
    /// The number of the record.
    pub(super) number: Operand,
    /// The string of the record.
    pub(super) text: TextAt,
}

/// Where the number of a parameter comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgFrom {
    /// A variable of the trigger itself.
    Own,
    /// A variable of another trigger.
    Ref,
    /// The record.
    Record,
}

impl VarStep {
    /// Whether the variable is a number.
    #[inline(always)]
    pub(super) fn is_number(&self) -> bool {
        self.kind == Kind::Number
    }

    /// The words of a variable that is a string or a stack among those of an entry.
    #[inline(always)]
    pub(super) fn text_words<'a>(&self, aux: &'a [Atomic<u64>]) -> Option<&'a [Atomic<u64>]> {
        let at = usize::from(self.at);

        // So that the compiler sees that there is a first one. OVERFLOW: both were short numbers.
        aux.get(at..at.wrapping_add(usize::from(self.room).wrapping_add(1)))
    }

    /// The same, of a variable that is known to have `N` words.
    #[inline(always)]
    pub(super) fn words<'a, const N: usize>(
        &self,
        aux: &'a [Atomic<u64>],
    ) -> Option<&'a [Atomic<u64>; N]> {
        let at = usize::from(self.at);

        // OVERFLOW: a short number and a small one.
        aux.get(at..at.wrapping_add(N))?.first_chunk()
    }

    /// Stores the number of a variable that is one in the extra words of an entry, unless it is stored nowhere.
    #[inline(always)]
    pub(super) fn set(&self, aux: &[Pair], value: u64) {
        if let Some(cell) = NumCell::at(aux, self.at) {
            cell.set(value);
        }
    }
}
