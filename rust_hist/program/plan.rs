// SPDX-License-Identifier: GPL-2.0

//! The program as a hit runs it: numbers and strings without their names, in few cache lines.
//!
//! `program/lower.rs` makes the plan when the trigger is created; `program/eval.rs` computes its numbers.
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

/// All that a hit computes: the key, sums, variables and parameters of actions.
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
    /// Whether entries keep the name of the task that created them.
    pub(super) has_creator: bool,
    /// Whether hits keep more than the sums of as many numbers as C has room for.
    pub(super) has_tallies: bool,
    /// The key of the rows.
    pub(super) row: KeyPlan,
    /// The numbers that a hit adds.
    pub(super) vals: List<Operand, VALS_MAX>,
    /// Numbers of the task, and then the other numbers that a hit computes once, each after those it is computed from.
    pub(super) tasks: Vec<TaskNumber>,
    pub(super) values: Vec<Operand>,
    pub(super) vars: Vec<VarStep>,
    /// The parameters of all `save()` actions and of all `trace()` actions.
    pub(super) saves: Vec<VarStep>,
    pub(super) args: Vec<ArgStep>,
    /// The steps of all expressions.
    pub(super) steps: Vec<Step>,
}

/// The plan of a key: its columns, and if possible its words.
///
/// # Invariants
///
/// - `columns` are the keys, in the same order, each with its number.
/// - `words` are the words of the key, if they are few and each of them can be computed by itself; else there are none.
#[derive(Debug, Default)]
pub(super) struct KeyPlan {
    /// Whether the key has the name of the task.
    pub(super) has_comm: bool,
    /// Whether the key has numbers that the hit computes once.
    pub(super) has_values: bool,
    pub(super) words: List<Operand, KEY_PARTS_MAX>,
    pub(super) columns: Vec<KeyColumn>,
}

/// One field of a key, and the number that a hit computes for it unless it is a string or a stack.
#[derive(Debug)]
pub(super) struct KeyColumn {
    pub(super) key: Key,
    pub(super) number: Operand,
}

/// A key of a program: its fields, its number of words, and its plan.
#[derive(Clone, Copy)]
pub(super) struct KeyParts<'p> {
    pub(super) keys: &'p [Key],
    pub(super) words: usize,
    pub(super) plan: &'p KeyPlan,
}

impl Plan {
    /// Returns whether a number is, or is computed from, a variable of another trigger or a number that the hit
    /// computes once.
    pub(super) fn reads_list(&self, number: &Operand) -> bool {
        let mut steps = number.code.of(&self.steps).iter();

        number.reads_list() || steps.any(|step| step.operand.reads_list())
    }

    /// Returns the steps of the values that `save()` stores.
    #[inline]
    pub(super) fn saves_of(&self, action: &Action) -> &[VarStep] {
        match action.kind {
            ActionKind::Save => &self.saves,
            ActionKind::Snapshot | ActionKind::Trace { .. } => &[],
        }
    }

    /// Returns the parameters of the event that an action generates.
    #[inline]
    pub(super) fn args_of(&self, action: &Action) -> &[ArgStep] {
        match action.kind {
            ActionKind::Trace { first, len, .. } => part(&self.args, first, len),
            ActionKind::Snapshot | ActionKind::Save => &[],
        }
    }

    /// Returns the bytes of memory allocated for the plan's parts.
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

/// The step of a hit for one variable of the trigger, or for one parameter of `save()`.
#[derive(Clone, Copy, Debug)]
pub(super) struct VarStep {
    /// The number to store; 0 for a string or a stack.
    pub(super) number: Operand,
    /// Index of the variable in [`super::Program::vars`], or of the parameter among those of all actions.
    pub(super) n: u8,
    /// Index of the first word in the extra words of the entry, or in the row of `save()`.
    pub(super) at: u16,
    pub(super) kind: Kind,
    /// The string to store, of the record or a task name.
    pub(super) text: TextAt,
    /// The number of words for a string or stack; for a variable, without the first word, which is no content.
    pub(super) room: u8,
}

/// The number of words of a variable that is the name of a task.
pub(super) const NAME: usize = 1 + COMM_WORDS;

/// A string or stack that a hit copies by a step of its own, in fewer bytes than as an [`Op`].
#[derive(Clone, Copy, Debug)]
pub(super) struct TextAt {
    /// The offset of the string in the record, or of the word that locates it; or the index of a variable.
    at: u32,
    pub(super) from: TextFrom,
    /// The room for the string where it is stored, in bytes; for a string of fixed size at most its size.
    most: u8,
}

/// Where a string or stack comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextFrom {
    /// A field of fixed size of the record, of at most [`SHORT_FIELD`] bytes.
    Fixed,
    /// A field of fixed size of the record, of more than [`SHORT_FIELD`] bytes.
    LongFixed,
    /// A string of the record; a `__data_loc` word has its offset and length.
    Dyn,
    /// A string of the record; a `__rel_loc` word has its length, and its offset from the end of that word.
    Rel,
    /// The name of the running task.
    Task,
    /// The name of the task that created the entry.
    Creator,
    /// A variable of another trigger.
    Variable,
    /// A source that no other variant names; or none, for a number.
    Elsewhere,
}

impl TextFrom {
    /// Returns whether the source is a string of the record.
    #[inline]
    pub(super) fn is_record(self) -> bool {
        matches!(self, Self::Fixed | Self::LongFixed | Self::Dyn | Self::Rel)
    }
}

/// Longest string field of fixed size that is copied whole: up to this size, copying the bytes after the NUL is faster
/// than searching for the NUL.
const SHORT_FIELD: u32 = 32;

impl TextAt {
    /// Returns the place for `op`, [`TextFrom::Elsewhere`] unless it is a string or stack; `most` is the room for it in
    /// bytes.
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
        // No place has room for more than 255 bytes.
        let most = u8::try_from(most).unwrap_or(u8::MAX);

        Self { at, from, most }
    }

    /// Returns the offset and the length of the string in the record, either of which may be beyond the record's end;
    /// `None` if the string is not in the record.
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

    /// Returns the index of a variable in [`super::Program::refs`].
    #[inline]
    pub(super) fn reference(&self) -> u8 {
        // CAST: `at` is the index of a reference, which fits.
        self.at as u8
    }
}

/// The step of a hit for one parameter of `trace()` that is a number, or a string of the record.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArgStep {
    pub(super) from: ArgFrom,
    /// The number to compute, if the parameter is a number of the record.
    pub(super) number: Operand,
    /// The place of the string, if the parameter is a string of the record.
    pub(super) text: TextAt,
}

/// The source of the number of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgFrom {
    /// The variable of the trigger itself with this index.
    Own(u8),
    /// The variable of another trigger with this index.
    Ref(u8),
    /// The record.
    Record,
}

impl VarStep {
    /// Returns whether the variable is a number.
    #[inline]
    pub(super) fn is_number(&self) -> bool {
        self.kind == Kind::Number
    }

    /// Returns the words of a string or stack variable among the extra words of an entry.
    #[inline]
    pub(super) fn text_words<'a>(&self, aux: &'a [Atomic<u64>]) -> Option<&'a [Atomic<u64>]> {
        let at = usize::from(self.at);

        // With the 1 added, the compiler knows that there is a first word. OVERFLOW: both were short numbers.
        aux.get(at..at.wrapping_add(usize::from(self.room).wrapping_add(1)))
    }

    /// Returns the words of a string or stack variable that is known to have `N` words.
    #[inline]
    pub(super) fn words<'a, const N: usize>(
        &self,
        aux: &'a [Atomic<u64>],
    ) -> Option<&'a [Atomic<u64>; N]> {
        let at = usize::from(self.at);

        // OVERFLOW: a short number and a small one.
        aux.get(at..at.wrapping_add(N))?.first_chunk()
    }

    /// Stores the number of the variable in the extra words of an entry; does nothing if the variable is not stored.
    #[inline]
    pub(super) fn set(&self, aux: &[Pair], value: u64) {
        if let Some(cell) = NumCell::at(aux, self.at) {
            cell.set(value);
        }
    }
}
