// SPDX-License-Identifier: GPL-2.0

//! The compiled trigger: what a hit computes, and what a reader needs to print it.
//!
//! C counterpart: `struct hist_trigger_data` and `struct hist_field` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//!
//! A [`Program`] borrows nothing: names and the filter are [`Span`]s of the trigger's text, which its
//! owner keeps next to the program and passes to the functions that print or compare. Names that are not
//! part of the text, such as that of an expression, are bytes of the program. The stages:
//!
//! - `program/compile.rs`: [`Program::compile`] creates it from a [`crate::lang::HistSpec`] and the
//!   fields of the event. `program/expr.rs`, `program/var.rs`, `program/action.rs` and `program/trace.rs`
//!   compile its parts, and `program/hint.rs` says what may have been meant; `program/resolver.rs` has the interface to events and to other triggers;
//! - `program/lower.rs` lowers it to the form that a hit executes (`program/plan.rs`): operands
//!   (`program/operand.rs`), with the divisions of `program/reciprocal.rs` and the loads of `program/bytes.rs`;
//! - `program/hit.rs` runs it over a record, by the steps of `program/exec.rs` and the numbers of `program/eval.rs`;
//!   `program/paths.rs` has the instances of it, from which [`select`] chooses by what a program needs
//!   (`program/needs.rs`);
//! - `program/print.rs`: [`Program::write_line`] prints the trigger line;
//! - `program/compare.rs`: [`Program::same_trigger`] compares two triggers.
//!
//! Context: compiling: process, may sleep. Running: any, NMI included.

mod action;
mod bytes;
mod compare;
mod compile;
mod debug;
mod eval;
mod exec;
mod expr;
pub mod filter;
mod handler;
mod hint;
mod hit;
mod lower;
mod needs;
mod operand;
mod paths;
mod plan;
mod print;
mod reciprocal;
mod resolver;
mod trace;
mod types;
mod var;

pub use crate::lang::{
    Modifier,
    Quantile,
    Update, //
};

pub use self::debug::{
    DebugTables,
    VarInfo, //
};
pub use self::exec::{
    track_row,
    Columns,
    Context,
    Copied,
    Kept,
    KeyForm,
    MoreWords,
    Stack,
    StackField,
    Unset,
    Words, //
};

pub use self::hit::{
    keep_plain,
    Missed,
    MissedIn,
    Outcome, //
};

pub use self::needs::{
    KeyKind,
    Needs,
    BACK,
    NESTED, //
};

pub use self::{
    handler::{
        Action,
        ActionKind,
        Arg,
        ArgSource,
        Handler,
        Save,
        Track, //
    },
    paths::{
        backs,
        backs_of_record,
        paths,
        select,
        Back,
        Chosen,
        Entry,
        HitPath,
        LookPath,
        RecordPath,
        RecordRest,
        Row,
        PATHS, //
    },
    reciprocal::Reciprocal,
    resolver::{
        ForeignVar,
        LookupError,
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
        Op,
        Time, //
    }, //
};

use crate::{
    alloc::Vec,
    bucket::Buckets,
    expiry::Expiry,
    field::TaskNumber,
    limits::{
        List,
        QUANTILES_MAX,
        SORT_KEYS_MAX, //
    },
    overhead::Budget,
    rate::Limit,
    text::Span,
    tracing_map::{
        sort::{
            Column,
            SortKey, //
        },
        Merge,
        Tallies, //
    }, //
};

/// The 64-bit words of a number in an entry: its value, and whether it is set.
const NUMBER_WORDS: usize = 2;

/// A use of a field: a key, a value, a variable or an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    name: Name,
    op: Op,
    kind: Kind,
    modifier: Modifier,
    /// Whether it is in microseconds, by its own modifier or by that of an operand.
    usecs: bool,
    time: Time,
    /// The size, sign and type as C computes them: those of the event's field, of the left operand or of
    /// the variable.
    size: u32,
    signed: bool,
    /// Whether its buckets are those of signed numbers, which C does not have.
    signed_buckets: bool,
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
            time: Time::None,
            size: 8,
            signed: false,
            signed_buckets: false,
            type_name: Name::Fixed("u64"),
        }
    }
}

impl Field {
    /// Returns the displayed name without its modifier; [`Program::name_of`] returns its bytes.
    #[inline]
    pub fn name(&self) -> Name {
        self.name
    }

    /// Returns the text of the type; [`Program::name_of`] returns its bytes.
    #[inline]
    pub fn type_name(&self) -> Name {
        self.type_name
    }

    /// Returns the size in bytes, that of the event's field or of the left operand.
    #[inline]
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Returns whether it is a signed number.
    #[inline]
    pub fn is_signed(&self) -> bool {
        self.signed
    }

    /// Returns whether it is in microseconds.
    #[inline]
    pub fn usecs(&self) -> bool {
        self.usecs
    }

    /// Returns what it has to do with time.
    #[inline]
    pub fn time(&self) -> Time {
        self.time
    }

    /// Returns the modifier. Every stack of the record has [`Modifier::Stacktrace`], typed or not.
    #[inline]
    pub fn modifier(&self) -> Modifier {
        self.modifier
    }

    /// Returns the buckets into which its numbers are put, if they are.
    pub fn buckets(&self) -> Option<Buckets> {
        let buckets = self.modifier.buckets()?;

        Some(buckets.with_sign(self.signed_buckets))
    }

    /// Returns where a hit takes it from.
    #[inline]
    pub fn op(&self) -> Op {
        self.op
    }

    /// Returns the kind of its value.
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
    /// Returns the field.
    #[inline]
    pub fn field(&self) -> &Field {
        &self.field
    }

    /// Returns the index of the slot's first 64-bit word in the key.
    #[inline]
    pub fn first_word(&self) -> usize {
        // CAST: at most `KEY_SIZE_MAX` by the invariant, so it fits in `usize`.
        self.offset as usize / 8
    }

    /// Returns the 64-bit words of the slot.
    #[inline]
    pub fn words(&self) -> usize {
        // CAST: at most `KEY_SIZE_MAX` by the invariant, so it fits in `usize`.
        self.size as usize / 8
    }

    /// Returns the slot in the words of a whole key.
    #[inline]
    pub fn of<'k>(&self, key: &'k [u64]) -> &'k [u64] {
        key.get(self.first_word()..)
            .and_then(|rest| rest.get(..self.words()))
            .unwrap_or(&[])
    }
}

/// The key by which a trigger looks for the variables of others, where that is not the key of its rows: `join()`.
///
/// # Invariants
///
/// As those of the keys of a [`Program`]; `spans` are the places of their names in the text.
#[derive(Debug, Default)]
struct Join {
    keys: Vec<Key>,
    spans: Vec<Span>,
    size: u32,
    plan: plan::KeyPlan,
}

/// A variable that the trigger defines.
#[derive(Clone, Copy, Debug)]
pub struct Var {
    name: Span,
    field: Field,
    cell: Cell,
}

impl Var {
    /// Returns the span of its name in the trigger's text.
    #[inline]
    pub fn name(&self) -> Span {
        self.name
    }

    /// Returns the field that a hit stores in it.
    #[inline]
    pub fn field(&self) -> &Field {
        &self.field
    }

    /// Returns its words in an entry.
    #[inline]
    pub fn cell(&self) -> Cell {
        self.cell
    }
}

impl Var {
    /// Returns whether an entry keeps it, so that other triggers may read it. A variable that only keys and values of
    /// its own trigger name is a value of the hit alone.
    #[inline]
    pub fn is_stored(&self) -> bool {
        self.cell.words != 0
    }
}

/// A number that a hit computes once, for all that name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HitValue {
    /// Of the task.
    Task(TaskNumber),
    /// `vars()[n]`.
    Own(u8),
}

/// A variable of another trigger that this one reads.
#[derive(Clone, Copy, Debug)]
pub struct Ref {
    table: u16,
    cell: Cell,
    /// Its table has maps of several ages.
    expires: bool,
    consume: bool,
    name: Name,
    event: Option<(Span, Span)>,
    /// The value of a variable that is a constant.
    constant: Option<u64>,
    /// The reference as a field.
    field: Field,
}

impl Ref {
    /// Returns the number that the resolver gave to the table that holds the variable.
    #[inline]
    pub fn table(&self) -> u16 {
        self.table
    }

    /// Returns the variable's words in an entry of that table.
    #[inline]
    pub fn cell(&self) -> Cell {
        self.cell
    }

    /// Returns whether reading the variable unsets it.
    #[inline]
    pub fn consumes(&self) -> bool {
        self.consume
    }

    /// Returns the variable's name without `$`; [`Program::name_of`] returns its bytes. The name of a
    /// helper trigger's variable is not part of the text.
    #[inline]
    pub fn name(&self) -> Name {
        self.name
    }

    /// Returns the reference as a field.
    #[inline]
    pub fn field(&self) -> &Field {
        &self.field
    }

    /// Returns the system and the event that precede the variable in the text, if they do.
    #[inline]
    pub fn event(&self) -> Option<(Span, Span)> {
        self.event
    }
}

/// The purpose for which a command is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To create a trigger.
    New,
    /// To find an existing trigger, whose variables then are no duplicates of the command's.
    Change,
}

/// A compiled trigger.
///
/// It never changes once [`Program::create_actions`] has succeeded, so hits on all CPUs read it without
/// a lock.
///
/// # Invariants
///
/// - `keys` is not empty, the slots follow each other without a gap and end at `key_size`.
/// - `key_size <= KEY_SIZE_MAX`.
/// - `sort` is not empty, and its columns are those of `keys` and `vals`.
/// - `BITS_MIN <= bits <= BITS_MAX`, or with `grows_to` `BITS_MIN <= bits <= grows_to <= GROWN_BITS_MAX`.
///
/// # Examples
///
/// A trigger is compiled and printed. `SchedSwitch` is a [`Resolver`] that looks up the fields of an
/// event in a table.
///
/// ```
/// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/out.rs")); }
/// # mod event { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/event.rs")); }
/// # use {doc::Buffer, event::SchedSwitch};
/// use rust_hist::{
///     lang,
///     program::{Program, Purpose},
/// };
///
/// let text = b"keys=next_pid:vals=prev_state:sort=prev_state.descending";
/// let spec = lang::parse(b"hist", text)?;
/// let mut program = Program::compile(&spec, &mut SchedSwitch, Purpose::New)?;
/// program.create_actions(&spec, &mut SchedSwitch)?;
///
/// let mut line = Buffer::default();
/// program.write_line(b"hist", text, false, &mut line).expect("no limit");
/// assert_eq!(
///     line.text(),
///     "hist:keys=next_pid:vals=hitcount,prev_state:sort=prev_state.descending:size=2048 [active]\n",
/// );
/// # Ok::<(), rust_hist::error::Refusal>(())
/// ```
#[derive(Debug)]
pub struct Program {
    keys: Vec<Key>,
    vals: Vec<Field>,
    /// What is shown of the sums of a row for each of `vals`.
    columns: Vec<Column>,
    /// What is kept of each number that a hit adds, and which of `vals` has it first.
    tallies: Tallies,
    numbers: Vec<u8>,
    /// None or one; in a list, so that it takes no room where there is none.
    joins: Vec<Join>,
    sort: List<SortKey, SORT_KEYS_MAX>,
    vars: Vec<Var>,
    refs: Vec<Ref>,
    /// The numbers of the hit that something names, each after those that it is computed of.
    values: Vec<HitValue>,
    code: Vec<Insn>,
    actions: Vec<Action>,
    params: Vec<Span>,
    saves: Vec<Save>,
    args: Vec<Arg>,
    quantiles: List<Quantile, QUANTILES_MAX>,
    limit: Option<Limit>,
    overhead: bool,
    budget: Option<Budget>,
    /// Names and types that are not part of the text.
    made: Vec<u8>,
    key_size: u32,
    aux_words: u16,
    /// Compiled handlers that track a variable.
    tracked: u8,
    /// Index of the first of `refs` that only actions use, once these are compiled.
    act_refs: u8,
    bits: u32,
    grows_to: Option<u32>,
    others: bool,
    expiry: Option<Expiry>,
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
    /// Returns the keys, in order.
    #[inline]
    pub fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// Returns the values besides the raw hitcount, in order.
    #[inline]
    pub fn vals(&self) -> &[Field] {
        &self.vals
    }

    /// Returns what is shown of the sums of a row for each of the [values](Program::vals). Values that only differ in
    /// what they show of a number may share its sum.
    #[inline]
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Returns how the sums of an entry are merged over CPUs, and over entries.
    pub fn merge(&self) -> &Merge {
        self.tallies.merge()
    }

    /// Returns the one or two sort keys.
    #[inline]
    pub fn sort_keys(&self) -> &[SortKey] {
        self.sort.as_slice()
    }

    /// Returns the variables that the trigger defines, in order.
    #[inline]
    pub fn vars(&self) -> &[Var] {
        &self.vars
    }

    /// Returns the variable `name`, which other triggers may read; `text` is that of the trigger.
    pub fn var(&self, name: &[u8], text: &[u8]) -> Option<&Var> {
        let mut stored = self.vars().iter().filter(|var| var.is_stored());

        stored.find(|var| var.name.of(text) == name)
    }

    /// Returns the index of the variable `name` that the trigger defines, stored or not; `text` is that of the trigger.
    fn own_var(&self, name: &[u8], text: &[u8]) -> Option<u8> {
        let found = self.vars().iter().position(|var| var.name.of(text) == name);

        u8::try_from(found?).ok()
    }

    /// Returns the variable `name` for a trigger that reads it. `table` is the number of this trigger's
    /// table in the reader's resolver; `text` is that of this trigger.
    pub fn export<'p>(&'p self, name: &[u8], text: &'p [u8], table: u16) -> Option<ForeignVar<'p>> {
        let Var { field, cell, .. } = *self.var(name, text)?;

        Some(ForeignVar {
            table,
            cell,
            type_name: self.name_of(field.type_name, text),
            size: field.size,
            signed: field.signed,
            usecs: field.usecs,
            time: field.time,
            constant: match field.op {
                Op::Const(value) => Some(value),
                _ => None,
            },
            definer: self,
            text,
        })
    }

    /// Returns the variables of other triggers that it reads, each once.
    #[inline]
    pub fn refs(&self) -> &[Ref] {
        &self.refs
    }

    /// Returns the instructions of all expressions.
    #[inline]
    pub fn code(&self) -> &[Insn] {
        &self.code
    }

    /// Returns the handlers with their actions, in the order in which they run.
    #[inline]
    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    /// Returns the parameters of all `save()` actions.
    #[inline]
    pub fn saves(&self) -> &[Save] {
        &self.saves
    }

    /// Returns the parameters of all `trace()` actions.
    #[inline]
    pub fn args(&self) -> &[Arg] {
        &self.args
    }

    /// Returns the quantiles that are shown of the [folded key](Program::folded_key), as they were typed.
    #[inline]
    pub fn quantiles(&self) -> &[Quantile] {
        self.quantiles.as_slice()
    }

    /// Returns whether keys have strings that may be longer than there is room for.
    pub fn may_cut(&self) -> bool {
        self.keys().iter().any(|key| {
            let Field { op, kind, .. } = key.field;

            kind == Kind::String && matches!(op, Op::DynString { .. } | Op::RelDynString { .. })
        })
    }

    /// Returns how often its actions run at most, if it says so.
    #[inline(always)]
    pub fn limit(&self) -> Option<&Limit> {
        self.limit.as_ref()
    }

    /// Returns whether its cost is measured.
    pub fn overhead(&self) -> bool {
        self.overhead
    }

    /// Returns the most that it may cost, if there is a limit.
    pub fn budget(&self) -> Option<Budget> {
        self.budget
    }

    /// Returns the key of buckets that `quantiles()` leaves out of the rows; `None` if there are no quantiles.
    pub fn folded_key(&self) -> Option<&Key> {
        match self.quantiles() {
            [] => None,
            _ => self.keys().iter().find(|key| key.field.is_bucketed()),
        }
    }

    /// Returns the bytes of a name; `text` is that of the trigger.
    #[inline]
    pub fn name_of<'p>(&'p self, name: Name, text: &'p [u8]) -> &'p [u8] {
        match name {
            Name::Text(span) => span.of(text),
            Name::Fixed(name) => name.as_bytes(),
            Name::Made(span) => span.of(&self.made),
        }
    }

    /// Returns the displayed name of a column without its modifier; `text` is that of the trigger.
    #[inline]
    pub fn field_name<'p>(&'p self, field: &Field, text: &'p [u8]) -> &'p [u8] {
        self.name_of(field.name, text)
    }

    /// Returns the 64-bit words of an entry besides key and sums, an even number: the name of the task
    /// that created it, if [`Program::needs_comm`]; the variables, numbers first; the tracked values.
    #[inline]
    pub fn aux_words(&self) -> usize {
        usize::from(self.aux_words)
    }

    /// Returns `name=`, by which triggers share their entries; `text` is that of the trigger.
    #[inline]
    pub fn name<'t>(&self, text: &'t [u8]) -> Option<&'t [u8]> {
        self.name.map(|span| span.of(text))
    }

    /// Returns `clock=`, if the command has it; `text` is that of the trigger.
    #[inline]
    pub fn clock<'t>(&self, text: &'t [u8]) -> Option<&'t [u8]> {
        self.clock.map(|span| span.of(text))
    }

    /// Returns the bytes of memory allocated for the program's parts.
    pub fn bytes(&self) -> usize {
        [
            self.joins.bytes(),
            self.vars.bytes(),
            self.refs.bytes(),
            self.values.bytes(),
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

    /// Returns the 64-bit words of the whole key.
    #[inline]
    pub fn key_words(&self) -> usize {
        // CAST: at most `KEY_SIZE_MAX` by the invariant, so it fits in `usize`.
        self.key_size as usize / 8
    }

    /// Returns the keys by which variables of other triggers are looked for: those of `join()`, else those of the rows.
    #[inline]
    pub fn lookup_keys(&self) -> &[Key] {
        self.key_of::<true>().keys
    }

    /// Returns the 64-bit words of the key by which variables of other triggers are looked for.
    #[inline]
    pub fn lookup_words(&self) -> usize {
        self.key_of::<true>().words
    }

    /// The key of the rows; or, if `LOOKUP`, that by which variables of other triggers are looked for.
    #[inline(always)]
    fn key_of<const LOOKUP: bool>(&self) -> plan::KeyParts<'_> {
        match self.joins.first() {
            Some(join) if const { LOOKUP } => plan::KeyParts {
                keys: &join.keys,
                // CAST: at most `KEY_SIZE_MAX` by the invariant, so it fits in `usize`.
                words: join.size as usize / 8,
                plan: &join.plan,
            },
            _ => plan::KeyParts {
                keys: self.keys(),
                words: self.key_words(),
                plan: &self.plan.row,
            },
        }
    }

    /// Returns the number of sums of an entry, the raw hitcount included, and with what else is kept of its numbers.
    #[inline]
    pub fn sums(&self) -> usize {
        self.tallies.words()
    }

    /// Returns log2 of the map's size, of a table that may grow that of the first map.
    #[inline]
    pub fn size_bits(&self) -> u32 {
        self.bits
    }

    /// Returns whether the table may ever get a larger map.
    #[inline]
    pub fn may_grow(&self) -> bool {
        self.grows_to.is_some_and(|bits| bits > self.bits)
    }

    /// Returns whether handlers track values.
    pub fn tracks(&self) -> bool {
        self.actions().iter().any(|action| action.track.is_some())
    }

    /// Returns how many of the extra words of an entry do not change once it is there, of a table that may grow: all of
    /// them but the variables at their end, which are numbers, and the tracked values.
    pub fn fixed_words(&self) -> u16 {
        let stored = self.vars().iter().filter(|var| var.is_stored());

        stored
            .map(|var| var.cell.at)
            .min()
            .unwrap_or(self.aux_words)
    }

    /// Returns whether variables may be on their way from one map of the table to another one: where starts expire they
    /// stay where they are.
    #[inline]
    pub fn moves(&self) -> bool {
        self.may_grow() && self.expiry().is_none()
    }

    /// Returns log2 of the size that the table may grow to; `None` of one with a fixed size.
    #[inline]
    pub fn grows_to(&self) -> Option<u32> {
        self.grows_to
    }

    /// Returns whether hits of keys that find no room are summed in a row.
    #[inline]
    pub fn others(&self) -> bool {
        self.others
    }

    /// Returns how long a start that nobody ends is kept at least, if it says so.
    #[inline(always)]
    pub fn expiry(&self) -> Option<&Expiry> {
        self.expiry.as_ref()
    }

    /// Returns the text of the filter after ` if `; `text` is that of the trigger.
    #[inline]
    pub fn filter<'t>(&self, text: &'t [u8]) -> Option<&'t [u8]> {
        self.filter.map(|span| span.of(text))
    }

    /// Returns whether a column is the record's time stamp: the trace clock has to be set, and the ring
    /// buffer has to stamp a record before filters discard it.
    #[inline]
    pub fn needs_timestamp(&self) -> bool {
        self.timestamps
    }

    /// Returns whether a time stamp is in microseconds.
    #[inline]
    pub fn usecs(&self) -> bool {
        self.usecs
    }

    /// Returns whether the raw hitcount is hidden.
    #[inline]
    pub fn nohitcount(&self) -> bool {
        self.nohitcount
    }

    /// Returns whether an entry keeps the name of the task that created it, for `.execname`.
    #[inline]
    pub fn needs_comm(&self) -> bool {
        self.keys()
            .iter()
            .any(|key| key.field.modifier == Modifier::Execname)
            || self.vars().iter().any(|var| var.field.op == Op::EntryComm)
    }

    /// Copies what the first trigger of a name decides for all that share its entries: the number of
    /// entries, and whether the raw hitcount is shown.
    pub fn join(&mut self, first: &Self) {
        self.bits = first.bits;
        self.nohitcount = first.nohitcount;
    }

    /// Returns the change that the command makes to an existing trigger, or `None` if it creates one.
    #[inline]
    pub fn update(&self) -> Option<Update> {
        self.update
    }

    /// Returns whether the command is refused with [`crate::error::ErrKind::TriggerEnoentClear`] if there
    /// is no such trigger.
    #[inline]
    pub fn needs_existing(&self) -> bool {
        self.needs_existing
    }

    /// Returns whether a new trigger starts paused.
    #[inline]
    pub fn starts_paused(&self) -> bool {
        self.starts_paused
    }
}
