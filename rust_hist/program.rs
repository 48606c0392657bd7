// SPDX-License-Identifier: GPL-2.0

//! The compiled trigger: what one hit computes, and what a reader needs to print it.
//!
//! C counterpart: `struct hist_trigger_data` and `struct hist_field` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//!
//! A [`Program`] borrows nothing: names and the filter are [`Span`]s into the trigger's own text,
//! which the owner keeps beside the program and hands to whatever prints or compares. Names that
//! nobody typed, such as that of an expression, are in the program's own bytes. The stages:
//!
//! - `program/compile.rs`: [`Program::compile`] makes it from a [`crate::lang::HistSpec`] and the
//!   fields of the event; `program/expr.rs`, `program/var.rs` and `program/action.rs` do the parts, and
//!   `program/resolver.rs` says what they ask of events and of other triggers;
//! - `program/plan.rs` brings it into the form that a hit wants, with the divisions of `program/reciprocal.rs` and the
//!   numbers of a record of `program/bytes.rs`;
//! - `program/exec.rs`: [`Program::key`] and [`Program::values`] run it over a record;
//! - `program/print.rs`: [`Program::write_line`] prints the trigger line;
//! - `program/compare.rs`: [`Program::same_trigger`] says whether two texts mean one trigger.
//!
//! Context: making one, process context; running it, any.

mod action;
mod bytes;
mod compare;
mod compile;
mod debug;
mod exec;
mod expr;
mod handler;
mod plan;
mod plan_vars;
mod print;
mod reciprocal;
mod resolver;
mod trace;
mod types;
mod var;

pub use crate::lang::{
    Modifier,
    Update, //
};

pub use self::debug::{
    Described,
    Tables as DebugTables, //
};
pub use self::exec::{
    track_row,
    Effects,
    Kept,
    KeyBuf,
    KeyPieces,
    OwnBuf,
    OwnVals,
    RefBuf,
    Refs,
    StackKey,
    Tables,
    TextKey,
    Unset,
    ValBuf, //
};

pub use self::{
    handler::{
        Action,
        Arg,
        ArgSource,
        Do,
        Handler,
        Save,
        Track, //
    },
    reciprocal::Reciprocal,
    resolver::{
        ForeignVar,
        Lookup,
        MatchedField,
        Resolver, //
    },
    trace::HELPER_VAR,
    types::{
        Cell,
        Code,
        Insn,
        Kind,
        Load,
        Name,
        Op, //
    }, //
};

use crate::{
    alloc::Vec,
    limits::{
        List,
        KEYS_MAX,
        SORT_KEYS_MAX,
        VALS_MAX, //
    },
    text::Span,
    tracing_map::sort::SortKey, //
};

/// The words of a number in an entry: its value, and whether it is set.
const NUMBER_WORDS: usize = 2;

/// A field in use: a key, a value, a variable, an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    name: Name,
    op: Op,
    kind: Kind,
    modifier: Modifier,
    /// Whether it counts microseconds, by its own modifier or by that of an operand.
    usecs: bool,
    /// The size, sign and type as C has them: those of the event's field, of the left operand, of
    /// the variable.
    size: u32,
    signed: bool,
    type_name: Name,
}

impl Default for Field {
    fn default() -> Self {
        Self {
            name: Name::Fixed("hitcount"),
            op: Op::One,
            kind: Kind::Number,
            modifier: Modifier::None,
            usecs: false,
            size: 8,
            signed: false,
            type_name: Name::Fixed("u64"),
        }
    }
}

impl Field {
    /// The displayed name, without modifier; [`Program::name_of`] gives its bytes.
    #[inline]
    pub fn name(&self) -> Name {
        self.name
    }

    /// The type's text; [`Program::name_of`] gives its bytes.
    #[inline]
    pub fn type_name(&self) -> Name {
        self.type_name
    }

    /// The bytes as the event or the left operand has them.
    #[inline]
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Whether it is a signed number.
    #[inline]
    pub fn is_signed(&self) -> bool {
        self.signed
    }

    /// Whether it counts microseconds.
    #[inline]
    pub fn usecs(&self) -> bool {
        self.usecs
    }

    /// How it is shown. [`Modifier::Stacktrace`] is that of every stack field, typed or not.
    #[inline]
    pub fn modifier(&self) -> Modifier {
        self.modifier
    }

    /// Where it comes from.
    #[inline]
    pub fn op(&self) -> Op {
        self.op
    }

    /// What its bytes are.
    #[inline]
    pub fn kind(&self) -> Kind {
        self.kind
    }
}

/// A key field and its slot in the whole key.
///
/// # Invariants
///
/// `offset` and `size` are multiples of 8, and `offset + size <= KEY_SIZE_MAX`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Key {
    field: Field,
    offset: u32,
    size: u32,
}

impl Key {
    /// The field.
    #[inline]
    pub fn field(&self) -> &Field {
        &self.field
    }

    /// The slot's first 64-bit word in the key.
    #[inline]
    pub fn first_word(&self) -> usize {
        // CAST: below KEY_WORDS_MAX by the invariant.
        self.offset as usize / 8
    }

    /// The slot's 64-bit words.
    #[inline]
    pub fn words(&self) -> usize {
        // CAST: at most KEY_WORDS_MAX by the invariant.
        self.size as usize / 8
    }
}

/// A variable that the trigger defines.
#[derive(Clone, Copy, Debug)]
pub struct Var {
    name: Span,
    field: Field,
    cell: Cell,
}

impl Var {
    /// Its name in the trigger's own text.
    #[inline]
    pub fn name(&self) -> Span {
        self.name
    }

    /// What a hit stores in it.
    #[inline]
    pub fn field(&self) -> &Field {
        &self.field
    }

    /// Where it is stored.
    #[inline]
    pub fn cell(&self) -> Cell {
        self.cell
    }
}

/// A variable of another trigger that this one reads.
#[derive(Clone, Copy, Debug)]
pub struct Ref {
    table: u16,
    cell: Cell,
    consume: bool,
    name: Name,
    event: Option<(Span, Span)>,
    /// The variable's value, if that never changes.
    constant: Option<u64>,
    /// A use of it.
    field: Field,
}

impl Ref {
    /// The number that the resolver gave to the table that holds the variable.
    #[inline]
    pub fn table(&self) -> u16 {
        self.table
    }

    /// The variable's place in an entry of that table.
    #[inline]
    pub fn cell(&self) -> Cell {
        self.cell
    }

    /// Whether reading the variable unsets it.
    #[inline]
    pub fn consumes(&self) -> bool {
        self.consume
    }

    /// The variable's name, without `$`; [`Program::name_of`] gives its bytes. That of a helper trigger
    /// is nowhere in the text.
    #[inline]
    pub fn name(&self) -> Name {
        self.name
    }

    /// A use of the variable, as a field.
    #[inline]
    pub fn field(&self) -> &Field {
        &self.field
    }

    /// The system and the event before it, if they were typed.
    #[inline]
    pub fn event(&self) -> Option<(Span, Span)> {
        self.event
    }
}

/// What a command is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To make a trigger.
    New,
    /// To find one that exists: its own variables do not get in its way.
    Change,
}

/// A compiled trigger; see the head of this file.
///
/// Never changes once compiled: hits on all CPUs read it without a lock.
///
/// # Invariants
///
/// - `keys` is not empty, the slots follow each other without a gap and end at `key_size`.
/// - `key_size <= KEY_SIZE_MAX`.
/// - `sort` is not empty, and its columns are those of `keys` and `vals`.
/// - `BITS_MIN <= bits <= BITS_MAX`.
#[derive(Debug)]
pub struct Program {
    keys: List<Key, KEYS_MAX>,
    vals: List<Field, VALS_MAX>,
    sort: List<SortKey, SORT_KEYS_MAX>,
    vars: Vec<Var>,
    refs: Vec<Ref>,
    code: Vec<Insn>,
    actions: Vec<Action>,
    params: Vec<Span>,
    saves: Vec<Save>,
    args: Vec<Arg>,
    /// Names and types that are nowhere in the text.
    made: Vec<u8>,
    key_size: u32,
    aux_words: u16,
    /// Handlers that track a variable, those that are settled.
    tracked: u8,
    /// The first of `refs` that are there for actions alone, where these are settled.
    act_refs: u8,
    bits: u32,
    name: Option<Span>,
    clock: Option<Span>,
    filter: Option<Span>,
    timestamps: bool,
    usecs: bool,
    nohitcount: bool,
    update: Option<Update>,
    needs_existing: bool,
    starts_paused: bool,
    plan: plan::Plan,
}

impl Program {
    /// The key fields, in order.
    #[inline]
    pub fn keys(&self) -> &[Key] {
        self.keys.as_slice()
    }

    /// The values besides the raw hitcount, in order; `vals()[i]` adds to sum `i + 1`.
    #[inline]
    pub fn vals(&self) -> &[Field] {
        self.vals.as_slice()
    }

    /// The sort keys: one or two.
    #[inline]
    pub fn sort_keys(&self) -> &[SortKey] {
        self.sort.as_slice()
    }

    /// The variables that it defines, in order.
    #[inline]
    pub fn vars(&self) -> &[Var] {
        &self.vars
    }

    /// The variable called `name`; `text` is the trigger's own.
    pub fn var(&self, name: &[u8], text: &[u8]) -> Option<&Var> {
        self.vars().iter().find(|var| var.name.of(text) == name)
    }

    /// The variable called `name` as another trigger sees it. `table` is its resolver's number for
    /// the table of this one.
    pub fn export<'p>(&'p self, name: &[u8], text: &'p [u8], table: u16) -> Option<ForeignVar<'p>> {
        let Var { field, cell, .. } = *self.var(name, text)?;

        Some(ForeignVar {
            table,
            cell,
            type_name: self.name_of(field.type_name, text),
            size: field.size,
            signed: field.signed,
            usecs: field.usecs,
            constant: match field.op {
                Op::Const(value) => Some(value),
                _ => None,
            },
        })
    }

    /// The variables of other triggers that it reads, each once.
    #[inline]
    pub fn refs(&self) -> &[Ref] {
        &self.refs
    }

    /// The instructions of all its expressions.
    #[inline]
    pub fn code(&self) -> &[Insn] {
        &self.code
    }

    /// Its handlers with their actions, in the order in which they run.
    #[inline]
    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// The parameters of all its `save()`s.
    #[inline]
    pub fn saves(&self) -> &[Save] {
        &self.saves
    }

    /// The parameters of all its `trace()`s.
    #[inline]
    pub fn args(&self) -> &[Arg] {
        &self.args
    }

    /// The bytes of a name; `text` is the trigger's own.
    #[inline]
    pub fn name_of<'p>(&'p self, name: Name, text: &'p [u8]) -> &'p [u8] {
        match name {
            Name::Text(span) => span.of(text),
            Name::Fixed(name) => name.as_bytes(),
            Name::Made(span) => span.of(&self.made),
        }
    }

    /// The displayed name of a column, without modifier; `text` is the trigger's own.
    #[inline]
    pub fn field_name<'p>(&'p self, field: &Field, text: &'p [u8]) -> &'p [u8] {
        self.name_of(field.name, text)
    }

    /// Extra words of an entry, an even number: the name of the task that made it, if
    /// [`Program::needs_comm`]; the variables, numbers first; the tracked values.
    #[inline]
    pub fn aux_words(&self) -> usize {
        usize::from(self.aux_words)
    }

    /// `name=`, by which triggers share their entries; `text` is the trigger's own.
    #[inline]
    pub fn name<'t>(&self, text: &'t [u8]) -> Option<&'t [u8]> {
        self.name.map(|span| span.of(text))
    }

    /// `clock=`, if the command has one; `text` is the trigger's own.
    #[inline]
    pub fn clock<'t>(&self, text: &'t [u8]) -> Option<&'t [u8]> {
        self.clock.map(|span| span.of(text))
    }

    /// The bytes that the program takes besides itself.
    pub fn bytes(&self) -> usize {
        [
            self.vars.bytes(),
            self.refs.bytes(),
            self.code.bytes(),
            self.actions.bytes(),
            self.params.bytes(),
            self.saves.bytes(),
            self.args.bytes(),
            self.made.bytes(),
            self.plan.bytes(),
        ]
        .iter()
        .sum()
    }

    /// 64-bit words of the whole key.
    #[inline]
    pub fn key_words(&self) -> usize {
        // CAST: at most KEY_SIZE_MAX by the invariant.
        self.key_size as usize / 8
    }

    /// Sums of an entry, the raw hitcount included.
    #[inline]
    pub fn sums(&self) -> usize {
        self.vals().len().saturating_add(1)
    }

    /// log2 of the map's size.
    #[inline]
    pub fn size_bits(&self) -> u32 {
        self.bits
    }

    /// The filter's text as it goes behind ` if `.
    #[inline]
    pub fn filter<'t>(&self, text: &'t [u8]) -> Option<&'t [u8]> {
        self.filter.map(|span| span.of(text))
    }

    /// Whether a column is the record's stamp: the trace clock must be set and filters must not
    /// see a record without one.
    #[inline]
    pub fn needs_timestamp(&self) -> bool {
        self.timestamps
    }

    /// Whether stamps are wanted in microseconds.
    #[inline]
    pub fn usecs(&self) -> bool {
        self.usecs
    }

    /// Whether the raw hitcount stays hidden.
    #[inline]
    pub fn nohitcount(&self) -> bool {
        self.nohitcount
    }

    /// Whether an entry keeps the name of the task that made it, for `.execname`.
    #[inline]
    pub fn needs_comm(&self) -> bool {
        self.keys()
            .iter()
            .any(|key| key.field.modifier == Modifier::Execname)
            || self.vars().iter().any(|var| var.field.op == Op::EntryComm)
    }

    /// Takes over what the first trigger of a name decides for all that share its entries: their
    /// number, and whether the raw hitcount is shown.
    pub fn join(&mut self, first: &Self) {
        self.bits = first.bits;
        self.nohitcount = first.nohitcount;
    }

    /// What the command asks of a trigger like it that exists; `None`: nothing, it is a new one.
    #[inline]
    pub fn update(&self) -> Option<Update> {
        self.update
    }

    /// Whether the command makes no sense without a trigger that exists: refuse it then with
    /// [`crate::error::ErrKind::TriggerEnoentClear`].
    #[inline]
    pub fn needs_existing(&self) -> bool {
        self.needs_existing
    }

    /// Whether a new trigger starts stopped.
    #[inline]
    pub fn starts_paused(&self) -> bool {
        self.starts_paused
    }
}
