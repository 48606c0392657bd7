// SPDX-License-Identifier: GPL-2.0

//! The compiled trigger: the steps of a hit, and the names and formats with which a reader prints the results.
//!
//! C counterpart: `struct hist_trigger_data` and `struct hist_field` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//!
//! A [`Program`] borrows nothing: names and the filter are [`Span`]s of the trigger's text, which its owner keeps next
//! to the program and passes to the functions that print or compare. Names that are not part of the text, such as the
//! name of an expression, are bytes of the program. The stages:
//!
//! - `program/compile.rs`: [`Program::compile`] creates a program from a [`crate::lang::HistSpec`] and the fields of
//!   the event. `program/expr.rs`, `program/var.rs`, `program/action.rs` and `program/trace.rs` compile its parts,
//!   `program/hint.rs` adds hints to refusals; `program/resolver.rs` is the interface to events and to other triggers;
//! - `program/lower.rs` lowers it to the form that a hit executes (`program/plan.rs`): operands
//!   (`program/operand.rs`), with the divisions of `program/reciprocal.rs` and the loads of `program/bytes.rs`;
//! - `program/hit.rs` runs the plan over a record, by the steps of `program/exec.rs` and the numbers of
//!   `program/eval.rs`; `program/paths.rs` has the compiled variants of a hit, from which [`select`] chooses one by the
//!   needs of a program (`program/needs.rs`);
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
        PathRow, //
        RecordPath,
        RecordRest,
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

/// The number of 64-bit words that a number takes in an entry: its value, and whether it is set.
const NUMBER_WORDS: usize = 2;

/// A use of a field: a key, a value, a variable or an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The displayed name without its modifier; [`Program::name_of`] returns its bytes.
    pub name: Name,
    /// Where a hit takes the field's value from.
    pub op: Op,
    /// The kind of the field's value: a number, a string, a mask or a stack.
    pub kind: Kind,
    /// The modifier of the field. A stack of the record always has [`Modifier::Stacktrace`], typed or not.
    pub modifier: Modifier,
    /// Whether the number is in microseconds, by the field's own modifier or by the modifier of an operand.
    pub usecs: bool,
    /// Whether the field is a time stamp, an interval, or neither.
    pub time: Time,
    /// Size in bytes, sign and type as C computes them: from the event's field, the left operand or the variable.
    pub size: u32,
    /// Whether the field is a signed number.
    pub signed: bool,
    /// Whether buckets are made for signed numbers, which C does not have.
    signed_buckets: bool,
    /// The text of the type; [`Program::name_of`] returns its bytes.
    pub type_name: Name,
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
    /// Returns the kind of buckets into which the field's numbers are put; `None` if it has no such modifier.
    pub fn buckets(&self) -> Option<Buckets> {
        let buckets = self.modifier.buckets()?;

        Some(buckets.with_sign(self.signed_buckets))
    }
}

/// A key field and its slot in the whole key.
///
/// # Invariants
///
/// `offset` and `size` are multiples of 8, and `offset + size <= KEY_SIZE_MAX`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Key {
    /// The field of which this key is made.
    pub field: Field,
    offset: u32,
    size: u32,
}

impl Key {
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

/// The key of `join()`, by which a trigger looks up the variables of other triggers instead of by the key of its rows.
///
/// # Invariants
///
/// `keys` and `size` hold to the invariants of a [`Program`]'s keys; `spans` are the places of the keys' names in the
/// text.
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
    /// The span of the variable's name in the trigger's text.
    pub name: Span,
    /// The field that a hit stores in this variable.
    pub field: Field,
    /// The words of this variable in an entry.
    pub cell: Cell,
}

impl Var {
    /// Returns whether an entry keeps the variable, so that other triggers may read it. A variable that only keys and
    /// values of its own trigger name is a value of the hit alone.
    #[inline]
    pub fn is_stored(&self) -> bool {
        self.cell.words != 0
    }
}

/// A number that a hit computes once, for all columns and parameters that name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HitValue {
    /// This number of the current task.
    Task(TaskNumber),
    /// The variable `vars()[n]` of the trigger itself.
    Own(u8),
}

/// A variable of another trigger that this one reads.
#[derive(Clone, Copy, Debug)]
pub struct Ref {
    /// The number that the resolver gave to the table that holds the variable.
    pub table: u16,
    /// The variable's words in an entry of the table that holds it.
    pub cell: Cell,
    /// Whether the table has maps of several ages, as its starts expire.
    expires: bool,
    /// Whether reading the variable unsets it.
    pub consume: bool,
    /// The variable's name without `$`; [`Program::name_of`] returns its bytes. The name of a helper trigger's variable
    /// is not part of the text.
    pub name: Name,
    /// The system and the event that precede the variable in the text; `None` if they were not typed.
    pub event: Option<(Span, Span)>,
    /// The value, if the variable is a constant.
    constant: Option<u64>,
    /// The variable as a field, for columns that name it.
    pub field: Field,
}

/// The purpose for which a command is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Creates a trigger.
    New,
    /// Finds an existing trigger, whose variables are then no duplicates of the command's.
    Change,
}

/// A compiled trigger.
///
/// It never changes once [`Program::create_actions`] has succeeded, so hits on all CPUs read it without a lock.
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
/// A trigger is compiled and printed. `SchedSwitch` is a [`Resolver`] that looks up the fields of an event in a table.
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
#[derive(Debug, Default)]
pub struct Program {
    /// The keys, in the order of the text.
    pub keys: Vec<Key>,
    /// The values besides the raw hitcount, in the order of the text.
    pub vals: Vec<Field>,
    /// The sum, maximum or other statistic of a row that is shown for each of `vals`.
    pub columns: Vec<Column>,
    /// The statistics kept of each number that a hit adds, and the index of the first of `vals` with that number.
    tallies: Tallies,
    numbers: Vec<u8>,
    /// At most one; a list, as an empty one takes less room than an unused `Join`.
    joins: Vec<Join>,
    sort: List<SortKey, SORT_KEYS_MAX>,
    /// The variables that the trigger defines, in the order of the text.
    pub vars: Vec<Var>,
    /// The variables of other triggers that this trigger reads, each once.
    pub refs: Vec<Ref>,
    /// The numbers that a hit computes once, each after those that it is computed from.
    values: Vec<HitValue>,
    /// The instructions of all expressions.
    pub code: Vec<Insn>,
    /// The handlers with their actions, in the order in which they run.
    pub actions: Vec<Action>,
    params: Vec<Span>,
    /// The parameters of all `save()` actions.
    pub saves: Vec<Save>,
    /// The parameters of all `trace()` actions.
    pub args: Vec<Arg>,
    quantiles: List<Quantile, QUANTILES_MAX>,
    limit: Option<Limit>,
    /// Whether the cost of the trigger's hits is measured.
    pub overhead: bool,
    /// The limit on the cost of the trigger's hits; `None` if there is none.
    pub budget: Option<Budget>,
    /// Names and types that are not part of the text.
    made: Vec<u8>,
    key_size: u32,
    aux_words: u16,
    /// The number of compiled handlers that track a variable.
    tracked: u8,
    /// Index of the first of `refs` that only actions use, set once the actions are compiled.
    act_refs: u8,
    /// Log2 of the map's size; for a table that may grow, of the size of the first map.
    pub bits: u32,
    /// Log2 of the size that the table may grow to; `None` for a table of fixed size.
    pub grows_to: Option<u32>,
    /// Whether hits of keys that find no room are summed in one row of their own.
    pub others: bool,
    expiry: Option<Expiry>,
    name: Option<Span>,
    clock: Option<Span>,
    filter: Option<Span>,
    /// Whether a column is the record's time stamp: the trace clock must then be set, and the ring buffer must stamp a
    /// record before filters discard it.
    pub timestamps: bool,
    /// Whether a time stamp is shown in microseconds.
    pub usecs: bool,
    /// Whether the raw hitcount is hidden.
    pub nohitcount: bool,
    /// The change that the command makes to an existing trigger; `None` if the command creates one.
    pub update: Option<Update>,
    /// Whether the command is refused with [`crate::error::ErrKind::TriggerEnoentClear`] if there is no trigger to
    /// change.
    pub needs_existing: bool,
    /// Whether a new trigger starts paused.
    pub starts_paused: bool,
    plan: plan::Plan,
}

impl Program {
    /// Returns how the sums of an entry are merged over CPUs, and over entries.
    pub fn merge(&self) -> &Merge {
        self.tallies.merge()
    }

    /// Returns the one or two sort keys.
    #[inline]
    pub fn sort_keys(&self) -> &[SortKey] {
        self.sort.as_slice()
    }

    /// Returns the variable `name`, which other triggers may read; `text` is the text of the trigger.
    pub fn var(&self, name: &[u8], text: &[u8]) -> Option<&Var> {
        let mut stored = self.vars.iter().filter(|var| var.is_stored());

        stored.find(|var| var.name.of(text) == name)
    }

    /// Returns the index of the variable `name` that the trigger defines, stored or not; `text` is the trigger's text.
    fn own_var(&self, name: &[u8], text: &[u8]) -> Option<u8> {
        let found = self.vars.iter().position(|var| var.name.of(text) == name);

        u8::try_from(found?).ok()
    }

    /// Returns the variable `name` for a trigger that reads it. `table` is the number of this trigger's table in the
    /// reader's resolver; `text` is the text of this trigger.
    pub fn export<'p>(&'p self, name: &[u8], text: &'p [u8], table: u16) -> Option<ForeignVar<'p>> {
        Some(ForeignVar {
            table,
            var: self.var(name, text)?,
            definer: self,
            text,
        })
    }

    /// Returns the quantiles to show of the [folded key](Program::folded_key), as they were typed.
    #[inline]
    pub fn quantiles(&self) -> &[Quantile] {
        self.quantiles.as_slice()
    }

    /// Returns whether the keys have strings that may be longer than the room for them.
    pub fn may_cut(&self) -> bool {
        self.keys.iter().any(|key| {
            let Field { op, kind, .. } = key.field;

            kind == Kind::String && matches!(op, Op::DynString { .. } | Op::RelDynString { .. })
        })
    }

    /// Returns the limit on how often the trigger's actions run; `None` if there is none.
    #[inline]
    pub fn limit(&self) -> Option<&Limit> {
        self.limit.as_ref()
    }

    /// Returns the key of buckets that `quantiles()` leaves out of the rows; `None` if there are no quantiles.
    pub fn folded_key(&self) -> Option<&Key> {
        match self.quantiles() {
            [] => None,
            _ => self.keys.iter().find(|key| key.field.is_bucketed()),
        }
    }

    /// Returns the bytes of a name; `text` is the text of the trigger.
    #[inline]
    pub fn name_of<'p>(&'p self, name: Name, text: &'p [u8]) -> &'p [u8] {
        match name {
            Name::Text(span) => span.of(text),
            Name::Fixed(name) => name.as_bytes(),
            Name::Made(span) => span.of(&self.made),
        }
    }

    /// Returns the displayed name of a column without its modifier; `text` is the text of the trigger.
    #[inline]
    pub fn field_name<'p>(&'p self, field: &Field, text: &'p [u8]) -> &'p [u8] {
        self.name_of(field.name, text)
    }

    /// Returns the number of 64-bit words of an entry besides key and sums, an even number: the name of the task that
    /// created it, if [`Program::needs_comm`]; the variables, numbers first; the tracked values.
    #[inline]
    pub fn aux_words(&self) -> usize {
        usize::from(self.aux_words)
    }

    /// Returns the name given by `name=`, by which triggers share their entries; `text` is the text of the trigger.
    #[inline]
    pub fn name<'t>(&self, text: &'t [u8]) -> Option<&'t [u8]> {
        self.name.map(|span| span.of(text))
    }

    /// Returns the clock given by `clock=`; `None` if it was not typed. `text` is the text of the trigger.
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

    /// Returns the number of 64-bit words of the whole key.
    #[inline]
    pub fn key_words(&self) -> usize {
        // CAST: at most `KEY_SIZE_MAX` by the invariant, so it fits in `usize`.
        self.key_size as usize / 8
    }

    /// Returns the keys by which variables of other triggers are looked up: the keys of `join()`, else those of the
    /// rows.
    #[inline]
    pub fn lookup_keys(&self) -> &[Key] {
        self.key_of::<true>().keys
    }

    /// Returns the number of 64-bit words of the key by which variables of other triggers are looked up.
    #[inline]
    pub fn lookup_words(&self) -> usize {
        self.key_of::<true>().words
    }

    /// Returns the key of the rows; or, if `LOOKUP`, the key by which variables of other triggers are looked up.
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
                keys: &self.keys,
                words: self.key_words(),
                plan: &self.plan.row,
            },
        }
    }

    /// Returns the number of 64-bit sums of an entry: the raw hitcount, the sums of its numbers, and their other
    /// statistics.
    #[inline]
    pub fn sums(&self) -> usize {
        self.tallies.words()
    }

    /// Returns whether the table may ever get a larger map.
    #[inline]
    pub fn may_grow(&self) -> bool {
        self.grows_to.is_some_and(|bits| bits > self.bits)
    }

    /// Returns whether any handler tracks a value (`onmax()`, `onchange()`, `onover()`).
    pub fn tracks(&self) -> bool {
        self.actions.iter().any(|action| action.track.is_some())
    }

    /// For a table that may grow: returns how many of the extra words of an entry do not change after its creation:
    /// those before the variables, which are numbers, and before the tracked values.
    pub fn fixed_words(&self) -> u16 {
        let stored = self.vars.iter().filter(|var| var.is_stored());

        stored
            .map(|var| var.cell.at)
            .min()
            .unwrap_or(self.aux_words)
    }

    /// Returns whether variables may be moving from one map of the table to another. Where starts expire, variables
    /// stay in their map.
    #[inline]
    pub fn moves(&self) -> bool {
        self.may_grow() && self.expiry().is_none()
    }

    /// Returns how long a start that no end consumes is kept at least; `None` if the trigger has no `expire()`.
    #[inline]
    pub fn expiry(&self) -> Option<&Expiry> {
        self.expiry.as_ref()
    }

    /// Returns the text of the filter after ` if `; `text` is the text of the trigger.
    #[inline]
    pub fn filter<'t>(&self, text: &'t [u8]) -> Option<&'t [u8]> {
        self.filter.map(|span| span.of(text))
    }

    /// Returns whether an entry keeps the name of the task that created it, which `.execname` shows.
    #[inline]
    pub fn needs_comm(&self) -> bool {
        self.keys
            .iter()
            .any(|key| key.field.modifier == Modifier::Execname)
            || self.vars.iter().any(|var| var.field.op == Op::EntryComm)
    }

    /// Copies from the first trigger of a name the settings that all triggers sharing its entries have: the number of
    /// entries, and whether the raw hitcount is shown.
    pub fn join(&mut self, first: &Self) {
        self.bits = first.bits;
        self.nohitcount = first.nohitcount;
    }
}
