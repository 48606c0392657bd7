// SPDX-License-Identifier: GPL-2.0

//! The needs of a trigger, and the offers of a path. `program/paths.rs` chooses the path of a trigger by comparing the two,
//! and by nothing else.
//!
//! Plain values, computed when a trigger is created. Context: process.

use crate::{
    limits::C_KEYS_MAX,
    tracing_map::{
        SHORT_KEY_WORDS,
        UNROLLED_MAX, //
    }, //
};

use super::{
    eval::{
        EXPRS,
        IMMEDIATE,
        STAMPS, //
    },
    operand::Operand,
    plan::TextFrom,
    Kind,
    Op,
    Program, //
};

/// Numbers of the key may be of any kind; without this flag they are simple.
pub(super) const KEY_ANY: u32 = 1 << 1;
/// Values may be numbers of any kind; without this flag they are plain numbers of the record.
pub(super) const VALS_ANY: u32 = 1 << 2;
/// Variables may be immediate numbers.
pub(super) const VARS: u32 = 1 << 3;
/// Variables may be the time stamp, or computed from it.
pub(super) const VARS_STAMP: u32 = 1 << 4;
/// Variables may be any other numbers.
pub(super) const VARS_ANY: u32 = 1 << 5;
/// Variables may be strings of the record.
pub(super) const VARS_TEXT: u32 = 1 << 6;
/// Variables may be the kernel stack.
pub(super) const VARS_STACK: u32 = 1 << 7;
/// Variables may be any strings and stacks.
pub(super) const VARS_OTHER: u32 = 1 << 8;
/// There may be actions.
pub(super) const ACTIONS: u32 = 1 << 9;
/// A value, a variable or a parameter of an action may be made of the time stamp of the record.
pub(super) const STAMP: u32 = 1 << 10;
/// Tables of other triggers may have shorter keys: the whole key is needed in one piece, to be looked up by its beginning.
pub(super) const WHOLE_KEY: u32 = 1 << 11;
/// CPUs may share a shard of the table.
pub(super) const SHARED: u32 = 1 << 12;
/// The hit may be nested in one that generates an event, or may generate one.
pub const NESTED: u32 = 1 << 13;
/// The path accepts triggers without references to variables. All paths do but those that begin with a lookup of a
/// variable.
pub(super) const NO_REFS: u32 = 1 << 14;

/// Numbers that the hit computes once may be part of the key by which variables of other triggers are looked up.
pub(super) const KEY_VALUES: u32 = 1 << 15;

/// Words of the key may be buckets of `.log2=N`.
pub(super) const KEY_PARTS: u32 = 1 << 16;

/// Variables may be names of tasks.
pub(super) const VARS_NAME: u32 = 1 << 17;

/// Hits may keep the sums of at most two numbers, and no other statistics.
pub(super) const SUMS: u32 = 1 << 18;
/// Hits may keep statistics besides sums, or more than two numbers.
pub(super) const TALLIES: u32 = 1 << 19;
/// Hits with such statistics may have more than one number.
pub(super) const SEVERAL: u32 = 1 << 20;

/// Numbers of the key may be expressions of the record and the CPU.
pub(super) const KEY_EXPRS: u32 = 1 << 21;
/// Values may be expressions of the record and the CPU, or simple numbers to which an operation is applied.
pub(super) const VALS_EXPRS: u32 = 1 << 22;
/// Variables may be expressions of the record and the CPU.
pub(super) const VARS_EXPRS: u32 = 1 << 23;

/// Tables of other triggers may be getting larger maps while their variables are read.
pub(super) const MOVING: u32 = 1 << 24;

/// Variables of other triggers may expire: their tables have maps of several ages.
pub(super) const AGED: u32 = 1 << 25;

/// Variables of other triggers may be strings and stacks.
pub(super) const TEXT_REFS: u32 = 1 << 26;

/// A number of the key, or one that is computed once, may be made of the time stamp of the record.
pub(super) const KEY_STAMP: u32 = 1 << 27;
/// The table of the trigger may be getting a larger map while its tracked values are looked at.
pub(super) const MOVED: u32 = 1 << 28;

/// All steps of this file.
pub(super) const EVERYTHING: u32 = (1 << 29) - 1;

/// Steps that write the extra words of the entry.
pub(super) const IN_ENTRY: u32 = VARS
    | VARS_STAMP
    | VARS_EXPRS
    | VARS_ANY
    | VARS_TEXT
    | VARS_NAME
    | VARS_STACK
    | VARS_OTHER
    | ACTIONS;

/// The steps of a back, which a hit takes after its element is known.
pub const BACK: u32 =
    IN_ENTRY | VALS_ANY | VALS_EXPRS | SUMS | TALLIES | SEVERAL | STAMP | SHARED | MOVED;

/// Not a step: says that the front of the path calls the trigger's back, a function of its own.
pub(super) const APART: u32 = 1 << 31;

/// Not a step: says that the path inserts keys that are not in the map yet, so that it needs no other path.
pub(super) const LAST: u32 = 1 << 30;

/// The form in which a hit computes its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// This number of words, each computed by itself.
    Words(usize),
    /// More words than [`UNROLLED_MAX`], each computed by itself.
    MoreWords,
    /// Several fields, each a string of the record or a number: at most as many as a key of C has.
    Columns,
    /// A stack of the record and nothing else.
    StackField,
    /// The kernel stack and nothing else.
    Stack,
    /// Any key, copied to one place.
    Copied,
}

/// The features that a trigger needs for its hits, or that a path offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// The form of the key.
    pub key: KeyKind,
    /// The form of the key by which variables of other triggers are looked up, if that is not the row's key.
    pub join: Option<KeyKind>,
    /// How many variables of other triggers are read.
    pub refs: usize,
    /// Number of variables of other triggers plus the numbers that a hit computes once; 0 if it computes none once.
    pub numbers: usize,
    /// The other steps, one bit for each: a set of the flags of this file.
    pub steps: u32,
}

impl KeyKind {
    /// Returns whether a path for keys of the form `row` can run hits with keys of this form.
    fn is_covered_by(self, row: Self) -> bool {
        // `MoreWords` computes any words in a loop, and hashes keys the way long keys are hashed.
        let is_long = match self {
            Self::Words(n) => n > SHORT_KEY_WORDS,
            form => form == Self::MoreWords,
        };

        row == self || row == Self::Copied || is_long && row == Self::MoreWords
    }

    /// Returns whether keys of this form are in one piece, so that a beginning of them can be looked up.
    pub(super) const fn is_whole(self) -> bool {
        !matches!(self, Self::Columns | Self::StackField | Self::Stack)
    }

    /// Returns the form of a key of `n` words that are each computed by itself.
    const fn of_words(n: usize) -> Self {
        if n <= UNROLLED_MAX {
            Self::Words(n)
        } else {
            Self::MoreWords
        }
    }
}

impl Needs {
    /// Returns whether a path that offers `row` can run these hits.
    pub fn are_covered_by(&self, row: &Self) -> bool {
        self.key.is_covered_by(row.key)
            && (row.join == self.join || row.join == Some(KeyKind::Copied))
            && self.refs <= row.refs
            && self.numbers <= row.numbers
            && self.steps & !row.steps == 0
    }
}

impl Program {
    /// Returns the needs of the program's hits. `is_shared`: CPUs share shards of its table. `is_nested`: it generates
    /// events, or its event can be generated. `sources`: words of the keys of the tables whose variables it reads, and
    /// whether those tables may be moving.
    pub fn needs(
        &self,
        is_shared: bool,
        is_nested: bool,
        sources: impl Iterator<Item = (usize, bool)>,
    ) -> Needs {
        let plan = &self.plan;
        let is = |step: u32, any: bool| if any { step } else { 0 };
        let words = plan.row.words.as_slice();
        let mut steps = 0;
        let mut key_number = |number: &Operand| {
            steps |= match plan.kind_of(number) {
                _ if number.is_simple() => 0,
                IMMEDIATE | EXPRS => KEY_EXPRS,
                _ => KEY_ANY,
            }
        };

        match words.is_empty() {
            true => plan
                .row
                .columns
                .iter()
                .for_each(|column| key_number(&column.number)),
            false => words.iter().for_each(key_number),
        }
        for value in plan.vals.as_slice() {
            steps |= match plan.kind_of(value) {
                _ if value.is_plain() => 0,
                IMMEDIATE | EXPRS => VALS_EXPRS,
                _ => VALS_ANY,
            };
        }
        let vars = self.vars.iter().zip(plan.vars.iter());

        for (var, step) in vars.filter(|(var, _)| var.is_stored()) {
            steps |= match var.field.op {
                _ if step.is_number() => match plan.kind_of(&step.number) {
                    IMMEDIATE => VARS,
                    STAMPS => VARS_STAMP,
                    EXPRS => VARS_EXPRS,
                    _ => VARS_ANY,
                },
                Op::Stacktrace => VARS_STACK,
                _ => match step.text.from {
                    from if from.is_record() => VARS_TEXT,
                    TextFrom::Task | TextFrom::Creator => VARS_NAME,
                    _ => VARS_OTHER,
                },
            };
        }

        let mut refs = self.refs.iter();
        let (mut has_shorter, mut is_moving) = (false, false);

        for (words, moves) in sources {
            has_shorter |= words != self.lookup_words();
            is_moving |= moves;
        }

        Needs {
            key: self.key_kind(),
            join: self.joins.first().map(|join| {
                let words = join.plan.words.as_slice();

                match words.iter().all(Operand::is_simple) {
                    true if !words.is_empty() => KeyKind::of_words(words.len()),
                    _ => KeyKind::Copied,
                }
            }),
            refs: self.refs.len(),
            numbers: match plan.tasks.len().saturating_add(plan.values.len()) {
                0 => 0,
                values => self.refs.len().saturating_add(values),
            },
            steps: steps
                | is(NO_REFS, self.refs.is_empty())
                | is(KEY_PARTS, words.iter().any(Operand::has_parts))
                | is(KEY_VALUES, self.key_of::<true>().plan.has_values)
                | is(SUMS, !plan.has_tallies)
                | is(TALLIES, plan.has_tallies)
                | is(SEVERAL, plan.has_tallies && plan.vals.as_slice().len() > 1)
                | is(ACTIONS, !self.actions.is_empty())
                | is(KEY_STAMP, plan.has_key_stamp)
                | is(STAMP, plan.has_stamp)
                | is(WHOLE_KEY, has_shorter)
                | is(
                    TEXT_REFS,
                    refs.any(|reference| reference.cell.kind != Kind::Number),
                )
                | is(SHARED, is_shared)
                | is(MOVING, is_moving)
                | is(MOVED, self.moves() && self.tracks())
                | is(AGED, self.refs.iter().any(|reference| reference.expires))
                | is(NESTED, is_nested),
        }
    }

    fn key_kind(&self) -> KeyKind {
        let words = self.plan.row.words.as_slice().len();
        let mut keys = self.keys.iter();

        match &self.keys[..] {
            _ if words != 0 && words == self.key_words() => KeyKind::of_words(words),
            _ if self.key_words() <= SHORT_KEY_WORDS => KeyKind::Copied,
            [only] if only.field.op == Op::Stacktrace => KeyKind::Stack,
            [only] if only.field.kind == Kind::Stack => KeyKind::StackField,
            _ if keys.any(|key| key.field.kind == Kind::Stack) => KeyKind::Copied,
            keys if keys.len() <= C_KEYS_MAX => KeyKind::Columns,
            _ => KeyKind::Copied,
        }
    }
}
