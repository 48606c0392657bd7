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
//!   fields of the event; `program/expr.rs`, `program/var.rs` and `program/action.rs` do the parts;
//! - `program/exec.rs`: [`Program::key`] and [`Program::values`] run it over a record;
//! - `program/print.rs`: [`Program::write_line`] prints the trigger line;
//! - `program/compare.rs`: [`Program::same_trigger`] says whether two texts mean one trigger.
//!
//! Context: making one, process context; running it, any.

#![cfg_attr(not(CONFIG_RUST), forbid(unsafe_code))]
#![cfg_attr(
    CONFIG_RUST,
    allow(
        unreachable_pub,
        reason = "the root of the module keeps its rooms private"
    )
)]

mod action;
mod compare;
mod compile;
mod debug;
mod exec;
mod expr;
mod print;
mod var;

pub use crate::lang::Update;

pub use self::debug::{
    Described,
    Tables as DebugTables, //
};
pub use self::exec::{
    track_row,
    Kept,
    KeyBuf,
    OwnVals,
    RefBuf,
    Refs,
    Tables,
    Unset,
    ValBuf, //
};

use core::{
    fmt,
    num::NonZeroU64, //
};

use crate::{
    alloc::Vec,
    field::ForeignVar,
    limits::{
        List,
        KEYS_MAX,
        SORT_KEYS_MAX,
        TRACK_ROWS,
        VALS_MAX, //
    },
};

/// The words of a number in an entry: its value, and whether it is set.
const NUMBER_WORDS: usize = 2;

/// A piece of a text, as byte positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One beyond the last byte.
    pub end: usize,
}

impl Span {
    /// The whole of `text`.
    pub(crate) fn whole(text: &[u8]) -> Self {
        Self {
            start: 0,
            end: text.len(),
        }
    }

    /// The first `n` bytes of this piece.
    pub(crate) fn first(self, n: usize) -> Self {
        Self {
            start: self.start,
            end: self.start.saturating_add(n).min(self.end),
        }
    }

    /// This piece without its first `n` bytes.
    pub(crate) fn behind(self, n: usize) -> Self {
        Self {
            start: self.start.saturating_add(n).min(self.end),
            end: self.end,
        }
    }

    /// How many bytes it has.
    pub(crate) fn len(self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// Whether there is nothing in it.
    pub(crate) fn is_empty(self) -> bool {
        self.start >= self.end
    }

    /// The bytes of this piece; nothing if `text` is too short for it.
    #[inline]
    pub fn of<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        text.get(self.start..self.end).unwrap_or(&[])
    }
}

/// Where printed bytes go: text of the rooms is UTF-8, text of users need not be.
pub trait Out: fmt::Write {
    /// Appends `bytes` as they are.
    fn write_bytes(&mut self, bytes: &[u8]) -> fmt::Result;
}

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

/// `field.MODIFIER`: how a column is computed or shown. A field has one at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Modifier {
    /// None.
    #[default]
    None,
    /// `.hex`
    Hex,
    /// `.sym`
    Sym,
    /// `.sym-offset`
    SymOffset,
    /// `.execname`, of `common_pid` alone
    Execname,
    /// `.syscall`
    Syscall,
    /// `.log2`; the hit computes it
    Log2,
    /// `.buckets=N`; the hit computes it
    Buckets(NonZeroU64),
    /// `.usecs`
    Usecs,
    /// `.percent`, of values alone
    Percent,
    /// `.graph`, of values alone
    Graph,
    /// `.stacktrace`, of stack fields alone
    Stacktrace,
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

/// The instructions of one expression: a piece of [`Program::code`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Code {
    start: u16,
    len: u16,
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

/// What a sort key refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Sum `n`: 0 is the raw hitcount, `n > 0` is `vals()[n - 1]`.
    Sum(usize),
    /// `keys()[n]`.
    Key(usize),
}

/// How the values of a sort column compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As numbers of this size and sign, of which the column's word holds the low bytes. Sums are
    /// unsigned numbers of 8 bytes.
    Number {
        /// 1, 2, 4 or 8.
        size: u32,
        /// Two's complement.
        signed: bool,
    },
    /// As `strcmp()` does.
    String,
    /// All are equal: the order of the keys' bytes decides.
    None,
}

/// One sort key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortKey {
    /// What to compare.
    pub column: Column,
    /// How to compare it.
    pub order: Order,
    /// Largest first.
    pub descending: bool,
}

impl Default for SortKey {
    fn default() -> Self {
        Self {
            column: Column::Sum(0),
            order: Order::Number {
                size: 8,
                signed: false,
            },
            descending: false,
        }
    }
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
    name: Span,
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

    /// The variable's name, without `$`.
    #[inline]
    pub fn name(&self) -> Span {
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

/// What makes an action run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handler {
    /// `onmatch(system.event)`: every hit.
    Match {
        /// The system.
        system: Span,
        /// The event.
        event: Span,
    },
    /// `onmax($v)`: a new maximum.
    Max {
        /// What is typed between the parentheses.
        arg: Span,
        /// The index in [`Program::vars`].
        var: u8,
    },
    /// `onchange($v)`: another value than before.
    Change {
        /// What is typed between the parentheses.
        arg: Span,
        /// The index in [`Program::vars`].
        var: u8,
    },
}

/// What an action does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Do {
    /// `save(..)`: keeps these of [`Program::saves`] in the entry.
    Save {
        /// The first of them.
        first: u16,
        /// How many.
        len: u16,
    },
    /// `snapshot()`
    Snapshot,
    /// `trace(event, ..)` or `event(..)`: no trigger that runs has it yet.
    Trace {
        /// The synthetic event.
        event: Span,
        /// Whether the word `trace` is typed.
        keyword: bool,
    },
}

/// A handler with its action.
#[derive(Clone, Copy, Debug)]
pub struct Action {
    handler: Handler,
    act: Do,
    /// The word before the parenthesis, as typed.
    word: Span,
    /// Its parameters in [`Program::params`]: the first, and how many.
    params: (u16, u16),
    track: Option<Track>,
}

impl Action {
    /// What makes it run.
    #[inline]
    pub fn handler(&self) -> Handler {
        self.handler
    }

    /// What it does.
    #[inline]
    pub fn act(&self) -> Do {
        self.act
    }

    /// Where the tracked value is kept; that of every handler but `onmatch`.
    #[inline]
    pub fn track(&self) -> Option<Track> {
        self.track
    }
}

/// The place of a tracked value in the extra words of an entry: a number's two words, then
/// [`crate::limits::TRACK_ROWS`] rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track {
    /// Its first word, even.
    pub at: u16,
    /// The words of a row; 0 where nothing is saved.
    pub row_words: u16,
}

impl Track {
    /// All its words.
    #[inline]
    pub fn words(&self) -> usize {
        usize::from(self.row_words)
            .saturating_mul(TRACK_ROWS)
            .saturating_add(NUMBER_WORDS)
    }
}

/// A parameter of `save()`.
#[derive(Clone, Copy, Debug)]
pub struct Save {
    name: Span,
    field: Field,
    at: u16,
    words: u16,
}

impl Save {
    /// The parameter as typed, which is its displayed name.
    #[inline]
    pub fn name(&self) -> Span {
        self.name
    }

    /// What is saved.
    #[inline]
    pub fn field(&self) -> &Field {
        &self.field
    }

    /// Its first word in the row.
    #[inline]
    pub fn at(&self) -> usize {
        usize::from(self.at)
    }

    /// Its words there: one of a number, those of the string or the frames of the stack.
    #[inline]
    pub fn words(&self) -> usize {
        usize::from(self.words)
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
    /// Names and types that are nowhere in the text.
    made: Vec<u8>,
    key_size: u32,
    aux_words: u16,
    /// Handlers that track a variable, those that are settled.
    tracked: u8,
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
            self.made.bytes(),
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
