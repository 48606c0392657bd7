// SPDX-License-Identifier: GPL-2.0

//! The compiled trigger: what one hit computes, and what a reader needs to print it.
//!
//! C counterpart: `struct hist_trigger_data` and `struct hist_field` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//!
//! A [`Program`] is a plain value of fixed size. It holds no text and borrows nothing: names and the
//! filter are [`Span`]s into the trigger's own text, which the owner keeps beside the program and
//! hands to whatever prints or compares. The stages, one file each:
//!
//! - `program/compile.rs`: [`Program::compile`] makes it from a [`crate::lang::HistSpec`] and the
//!   fields of the event;
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

mod compare;
mod compile;
mod exec;
mod print;

pub use self::exec::{
    KeyBuf,
    ValBuf, //
};

use core::{
    fmt,
    num::NonZeroU64, //
};

use crate::limits::{
    List,
    KEYS_MAX,
    SORT_KEYS_MAX,
    VALS_MAX, //
};

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
}

impl Name {
    /// The name's bytes; `text` is the trigger's own.
    #[inline]
    pub fn of<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        match self {
            Name::Text(span) => span.of(text),
            Name::Fixed(name) => name.as_bytes(),
        }
    }
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

impl Op {
    /// What this step produces.
    #[inline]
    pub fn kind(&self) -> Kind {
        match self {
            Op::One | Op::Num { .. } | Op::Timestamp | Op::Cpu => Kind::Number,
            Op::Comm | Op::StaticString { .. } | Op::DynString { .. } | Op::RelDynString { .. } => {
                Kind::String
            }
            Op::Stacktrace | Op::StackField { .. } => Kind::Stack,
        }
    }
}

/// A field in use: a key or a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    name: Name,
    op: Op,
    modifier: Modifier,
    /// The size and sign of the event's field, of which sorting and comparing make use.
    size: u32,
    signed: bool,
    /// Fingerprint of the field's type text; 0 where there is no such text.
    type_hash: u64,
}

impl Default for Field {
    fn default() -> Self {
        Self {
            name: Name::Fixed("hitcount"),
            op: Op::One,
            modifier: Modifier::None,
            size: 8,
            signed: false,
            type_hash: 0,
        }
    }
}

impl Field {
    /// The displayed name, without modifier.
    #[inline]
    pub fn name<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        self.name.of(text)
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
        self.op.kind()
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

/// The change a command asks of a trigger that exists already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// `pause`
    Pause,
    /// `cont` or `continue`
    Continue,
    /// `clear`
    Clear,
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
#[derive(Clone, Copy, Debug)]
pub struct Program {
    keys: List<Key, KEYS_MAX>,
    vals: List<Field, VALS_MAX>,
    sort: List<SortKey, SORT_KEYS_MAX>,
    key_size: u32,
    bits: u32,
    filter: Option<Span>,
    timestamps: bool,
    usecs: bool,
    nohitcount: bool,
    pause: bool,
    cont: bool,
    clear: bool,
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
    }

    /// What the command asks of a trigger like it that exists; `None`: nothing, it is a new one.
    ///
    /// Where several are asked, the first in the order of [`Update`] acts alone.
    #[inline]
    pub fn update(&self) -> Option<Update> {
        if self.pause {
            Some(Update::Pause)
        } else if self.cont {
            Some(Update::Continue)
        } else if self.clear {
            Some(Update::Clear)
        } else {
            None
        }
    }

    /// Whether the command makes no sense without a trigger that exists: refuse it then with
    /// [`crate::error::ErrKind::TriggerEnoentClear`].
    #[inline]
    pub fn needs_existing(&self) -> bool {
        self.cont || self.clear
    }

    /// Whether a new trigger starts stopped.
    #[inline]
    pub fn starts_paused(&self) -> bool {
        self.pause
    }
}
