// SPDX-License-Identifier: GPL-2.0

//! A program run over one record: the key's words, the variables that it needs, and the values.
//!
//! C counterpart: `event_hist_trigger()`, `add_to_key()` and the `hist_field_*()` functions of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//! A record may be shorter than its event's format says, and its location words may say anything:
//! what lies outside reads as zero, or as the part of a string that is inside.
//!
//! `program/exec/entry.rs` does what comes when the entry is known: variables and actions;
//! `program/exec/trace.rs` has the values of synthetic events.
//!
//! Context: any, NMI included. Never allocates, sleeps, locks or panics.

#![cfg_attr(not(CONFIG_RUST), forbid(unsafe_code))]
#![cfg_attr(
    CONFIG_RUST,
    allow(
        unreachable_pub,
        reason = "the root of the module keeps its rooms private"
    )
)]

mod entry;
mod trace;

pub use self::entry::{
    track_row,
    Effects,
    Kept, //
};

use crate::{
    field::Env,
    limits::{
        COMM_LEN,
        KEY_WORDS_MAX,
        REFS_MAX,
        STACK_MAX,
        VALS_MAX,
        VARS_MAX, //
    },
    sync::Atomic,
    tracing_map::{
        NumCell,
        Taken,
        TextCell, //
    }, //
};

use super::{
    Cell,
    Code,
    Field,
    Insn,
    Kind,
    Load,
    Modifier,
    Op,
    Program,
    Ref, //
};

/// Room for the key of one hit.
pub type KeyBuf = [u64; KEY_WORDS_MAX];

/// Room for the values of one hit.
pub type ValBuf = [u64; VALS_MAX];

/// Room for the numbers that one hit reads from other triggers' variables.
pub type RefBuf = [u64; REFS_MAX];

/// The tables of other triggers, as far as one trigger reads their variables.
pub trait Tables {
    /// The extra words of the entry with this key in the table of this number, if there is one.
    fn aux(&self, table: u16, key: &[u64]) -> Option<&[Atomic<u64>]>;
}

/// There are no other tables.
impl Tables for () {
    fn aux(&self, _table: u16, _key: &[u64]) -> Option<&[Atomic<u64>]> {
        None
    }
}

/// A variable that the hit needs is not set for its key: the hit is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unset;

/// What one hit knows of other triggers' variables. Lives as long as the hit.
#[derive(Clone, Copy)]
pub struct Refs<'h, T> {
    numbers: &'h [u64],
    key: &'h [u64],
    tables: &'h T,
}

impl Refs<'static, ()> {
    /// Those of a trigger that needs none.
    pub fn none() -> Self {
        Self {
            numbers: &[],
            key: &[],
            tables: &(),
        }
    }
}

/// The numbers that one hit has stored in its own variables, by the index of the variable.
///
/// A handler compares these and not what the entry holds, where another hit may have come after.
#[derive(Clone, Copy, Debug)]
pub struct OwnVals([u64; VARS_MAX]);

impl OwnVals {
    fn get(&self, var: u8) -> u64 {
        self.0.get(usize::from(var)).copied().unwrap_or(0)
    }
}

impl Cell {
    /// The words of the variable in those of an entry.
    #[inline(always)]
    fn of<'a>(&self, aux: &'a [Atomic<u64>]) -> &'a [Atomic<u64>] {
        aux.get(usize::from(self.at)..)
            .and_then(|from| from.get(..usize::from(self.words)))
            .unwrap_or(&[])
    }
}

impl Program {
    /// Whether a hit needs nothing but [`Program::key`] and [`Program::values`].
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        self.refs.is_empty() && self.vars.is_empty() && self.actions.is_empty()
    }

    /// Computes the key of the hit: `key_words()` words at the start of `buf`, which has room for
    /// them, as a [`KeyBuf`] always has.
    ///
    /// Every one of these words is written; the others stay as they are.
    #[inline(always)]
    pub fn key<'b>(&self, record: &[u8], env: &impl Env, buf: &'b mut [u64]) -> &'b [u64] {
        for (key, number) in self.keys().iter().zip(self.plan.keys.places()) {
            let Some(slot) = buf
                .get_mut(key.first_word()..)
                .and_then(|from| from.get_mut(..key.words()))
            else {
                continue;
            };

            match key.field.op {
                Op::Comm
                | Op::StaticString { .. }
                | Op::DynString { .. }
                | Op::RelDynString { .. } => {
                    let mut comm = [0; COMM_LEN];

                    put_string(slot, string_at(&key.field, record, env, &mut comm));
                }
                Op::Stacktrace => {
                    slot.fill(0);
                    env.stacktrace(slot);
                }
                Op::StackField { offset } => put_stack(slot, record, location(record, offset).0),
                Op::One
                | Op::Num { .. }
                | Op::Timestamp
                | Op::Cpu
                | Op::EntryComm
                | Op::Const(_)
                | Op::Ref(_)
                | Op::Expr(_) => {
                    if let Some(word) = slot.first_mut() {
                        // A key reads no variable of another trigger.
                        *word = self.number_at(number, record, env, &[]);
                    }
                }
            }
        }

        buf.get(..self.key_words()).unwrap_or(&[])
    }

    /// Reads the variables of other triggers that the hit needs, in the entries of the same key.
    ///
    /// Those that are read once are taken, all of them or none. If one is not set, the hit is to be
    /// ignored. A string or stack need only be set: it is copied when it is used.
    #[inline]
    pub fn resolve<'h, T: Tables>(
        &self,
        key: &'h [u64],
        tables: &'h T,
        buf: &'h mut RefBuf,
    ) -> Result<Refs<'h, T>, Unset> {
        if !self.refs.is_empty() {
            self.read_refs(key, tables, buf)?;
        }
        Ok(Refs {
            numbers: buf.get(..self.refs.len()).unwrap_or(&[]),
            key,
            tables,
        })
    }

    #[inline(never)]
    fn read_refs<T: Tables>(&self, key: &[u64], tables: &T, buf: &mut RefBuf) -> Result<(), Unset> {
        let mut entries = Entries {
            key,
            tables,
            last: None,
        };

        for (reference, place) in self.refs().iter().zip(buf.iter_mut()) {
            let words = entries.words(reference).ok_or(Unset)?;

            match reference.cell.kind {
                Kind::Number => {
                    *place = NumCell::new(words)
                        .and_then(|cell| cell.read())
                        .ok_or(Unset)?;
                }
                Kind::String | Kind::Stack => {
                    TextCell::new(words).filter(TextCell::is_set).ok_or(Unset)?;
                    // The room may be that of an earlier hit.
                    *place = 0;
                }
            }
        }
        if self.refs().iter().any(Ref::consumes) {
            self.take_refs(&mut entries, buf)?;
        }
        Ok(())
    }

    /// Takes the numbers that are read once. All were set a moment ago; if one is not any more, those
    /// taken before it are put back, and it is as if the hit had come a moment later.
    #[inline(never)]
    fn take_refs<T: Tables>(
        &self,
        entries: &mut Entries<'_, T>,
        buf: &mut RefBuf,
    ) -> Result<(), Unset> {
        let mut all: [Option<(NumCell<'_>, Taken)>; REFS_MAX] = [None; REFS_MAX];

        for ((reference, place), taken) in self.refs().iter().zip(buf).zip(all.iter_mut()) {
            if !reference.consumes() {
                continue;
            }
            *taken = entries
                .words(reference)
                .and_then(NumCell::new)
                .and_then(|cell| Some((cell, cell.consume()?)));
            match taken {
                Some((_, Taken { value, .. })) => *place = *value,
                None => {
                    for (cell, taken) in all.iter().flatten() {
                        cell.restore(taken);
                    }
                    return Err(Unset);
                }
            }
        }
        Ok(())
    }

    /// Computes the values of the hit besides the raw hitcount, in the order of `vals()`.
    #[inline(always)]
    pub fn values<'b, T>(
        &self,
        record: &[u8],
        env: &impl Env,
        refs: &Refs<'_, T>,
        buf: &'b mut ValBuf,
    ) -> &'b [u64] {
        for (number, place) in self.plan.vals.as_slice().iter().zip(buf.iter_mut()) {
            *place = self.number_at(number, record, env, refs.numbers);
        }
        buf.get(..self.vals().len()).unwrap_or(&[])
    }

    /// The number that a field comes to; 0 for what is no number, of which there is none here.
    #[inline(always)]
    fn number(&self, field: &Field, record: &[u8], env: &impl Env, refs: &[u64]) -> u64 {
        match field.op {
            Op::Expr(code) => self.expression(code, record, env, refs),
            _ => self.operand(field, record, env, refs),
        }
    }

    /// The number that an expression comes to.
    ///
    /// All arithmetic is that of 64 bits and wraps around.
    ///
    /// PARITY: `div_by_mult_and_shift()` rounds some quotients up; here all are cut.
    #[inline(never)]
    fn expression(&self, code: Code, record: &[u8], env: &impl Env, refs: &[u64]) -> u64 {
        let mut stack = Stack::default();

        for insn in code.of(self.code()) {
            let value = match insn {
                Insn::Push(field) => self.operand(field, record, env, refs),
                Insn::Neg => stack.pop().wrapping_neg(),
                Insn::Add | Insn::Sub | Insn::Mul | Insn::Div => {
                    let right = stack.pop();
                    let left = stack.pop();

                    insn.combine(left, right)
                }
            };
            stack.push(value);
        }
        stack.pop()
    }

    /// The number that a field comes to that is not an expression.
    #[inline(always)]
    fn operand(&self, field: &Field, record: &[u8], env: &impl Env, refs: &[u64]) -> u64 {
        let value = match field.op {
            // PARITY: `create_hist_field()` ignores `.log2` and `.buckets` of a hitcount, and
            // `hist_field_name()` then finds no name for it.
            Op::One => 1,
            Op::Num { offset, load } => load.read(record, index(offset)),
            Op::Timestamp if self.usecs && env.clock_in_ns() => to_usecs(env.timestamp()),
            Op::Timestamp => env.timestamp(),
            Op::Cpu => u64::from(env.cpu()),
            Op::Const(value) => value,
            Op::Ref(n) => refs.get(usize::from(n)).copied().unwrap_or(0),
            Op::Expr(_)
            | Op::Comm
            | Op::EntryComm
            | Op::StaticString { .. }
            | Op::DynString { .. }
            | Op::RelDynString { .. }
            | Op::Stacktrace
            | Op::StackField { .. } => 0,
        };

        match field.modifier {
            Modifier::Log2 => ceil_log2(value),
            Modifier::Buckets(width) => value.wrapping_sub(value % width),
            _ => value,
        }
    }
}

/// The entries of one key in the tables of other triggers, during one hit.
struct Entries<'t, T> {
    key: &'t [u64],
    tables: &'t T,
    /// The table looked into last and the extra words found there.
    last: Option<(u16, &'t [Atomic<u64>])>,
}

impl<'t, T: Tables> Entries<'t, T> {
    /// The words of a variable.
    #[inline]
    fn words(&mut self, reference: &Ref) -> Option<&'t [Atomic<u64>]> {
        let aux = match self.last {
            Some((table, aux)) if table == reference.table => aux,
            _ => self.tables.aux(reference.table, self.key)?,
        };

        self.last = Some((reference.table, aux));
        Some(reference.cell.of(aux))
    }
}

impl Insn {
    /// What two values come to; 0 for an instruction that has no use for two.
    #[inline]
    fn combine(&self, left: u64, right: u64) -> u64 {
        match self {
            Insn::Add => left.wrapping_add(right),
            Insn::Sub => left.wrapping_sub(right),
            Insn::Mul => left.wrapping_mul(right),
            Insn::Div => left.checked_div(right).unwrap_or(u64::MAX),
            Insn::Push(_) | Insn::Neg => 0,
        }
    }
}

/// The values of an expression that wait for their operator.
#[derive(Default)]
struct Stack {
    values: [u64; STACK_MAX],
    len: usize,
}

impl Stack {
    /// Puts a value down; the compiler sees to it that there is room.
    #[inline(always)]
    fn push(&mut self, value: u64) {
        if let Some(place) = self.values.get_mut(self.len) {
            *place = value;
            // OVERFLOW: it was the index of a place.
            self.len = self.len.wrapping_add(1);
        }
    }

    /// Takes the last value; 0 if there is none.
    #[inline(always)]
    fn pop(&mut self) -> u64 {
        self.len = self.len.saturating_sub(1);
        self.values.get(self.len).copied().unwrap_or(0)
    }
}

/// The bytes of a string of the record or of the task, whose name goes to `comm`; nothing if the
/// field is no such string. They may go on behind a NUL.
#[inline]
fn string_at<'r>(
    field: &Field,
    record: &'r [u8],
    env: &impl Env,
    comm: &'r mut [u8; COMM_LEN],
) -> &'r [u8] {
    match field.op {
        Op::Comm => {
            env.comm(comm);
            comm.split(|&byte| byte == 0).next().unwrap_or(&[])
        }
        Op::StaticString { offset, len } => bytes_at(record, index(offset), index(len)),
        Op::DynString { offset } => {
            let (at, len) = location(record, offset);

            bytes_at(record, at, len)
        }
        Op::RelDynString { offset } => {
            let (at, len) = location(record, offset);
            let base = index(offset).saturating_add(size_of::<u32>());

            bytes_at(record, base.saturating_add(at), len)
        }
        _ => &[],
    }
}

impl Load {
    /// The number at `at`, widened to 64 bits by its sign.
    #[inline]
    fn read(self, record: &[u8], at: usize) -> u64 {
        match self {
            Load::U8 => u8::from_ne_bytes(array_at(record, at)).into(),
            Load::U16 => u16::from_ne_bytes(array_at(record, at)).into(),
            Load::U32 => u32::from_ne_bytes(array_at(record, at)).into(),
            Load::U64 | Load::S64 => u64::from_ne_bytes(array_at(record, at)),
            Load::S8 => widen(i8::from_ne_bytes(array_at(record, at))),
            Load::S16 => widen(i16::from_ne_bytes(array_at(record, at))),
            Load::S32 => widen(i32::from_ne_bytes(array_at(record, at))),
        }
    }
}

/// A signed number in 64 bits.
#[inline(always)]
fn widen(value: impl Into<i64>) -> u64 {
    // CAST: keeps the bits.
    value.into() as u64
}

/// `bits` as an index.
#[inline(always)]
fn index(bits: u32) -> usize {
    // CAST: tracing needs 32-bit pointers at least.
    bits as usize
}

/// `N` bytes at `at`; zeros unless all are inside.
#[inline(always)]
fn array_at<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    record
        .get(at..)
        .and_then(|from| from.first_chunk::<N>())
        .copied()
        .unwrap_or([0; N])
}

/// At most `len` bytes at `at`, as many as are inside.
#[inline]
fn bytes_at(record: &[u8], at: usize, len: usize) -> &[u8] {
    let from = record.get(at..).unwrap_or(&[]);

    from.get(..len).unwrap_or(from)
}

/// The place and the length that the location word at `offset` gives.
#[inline]
fn location(record: &[u8], offset: u32) -> (usize, usize) {
    let word = u32::from_ne_bytes(array_at(record, index(offset)));

    (index(word & 0xffff), index(word >> 16))
}

/// Writes `bytes`, as many as leave room for a NUL, and zeros behind them.
#[inline]
fn put_string(slot: &mut [u64], bytes: &[u8]) {
    let room = size_of_val(slot).saturating_sub(1);
    let bytes = bytes.get(..room).unwrap_or(bytes);
    let chunks = bytes.chunks_exact(size_of::<u64>());
    let mut last = [0; size_of::<u64>()];

    for (place, byte) in last.iter_mut().zip(chunks.remainder()) {
        *place = *byte;
    }

    let mut words = slot.iter_mut();

    for (chunk, word) in chunks.zip(words.by_ref()) {
        *word = u64::from_ne_bytes(chunk.try_into().unwrap_or_default());
    }
    if let Some(word) = words.next() {
        *word = u64::from_ne_bytes(last);
    }
    words.into_slice().fill(0);
}

/// Writes the stack at `at`, as many of its frames as there is room for and as are inside.
///
/// PARITY: `event_hist_trigger()` takes the count of the record for granted.
#[inline]
fn put_stack(slot: &mut [u64], record: &[u8], at: usize) {
    let count = u64::from_ne_bytes(array_at(record, at));
    let frames = record
        .get(at..)
        .and_then(|from| from.get(size_of::<u64>()..))
        .unwrap_or(&[])
        .chunks_exact(size_of::<u64>());
    let count = usize::try_from(count).unwrap_or(usize::MAX);

    slot.fill(0);
    for (word, frame) in slot.iter_mut().zip(frames.take(count)) {
        *word = u64::from_ne_bytes(frame.try_into().unwrap_or_default());
    }
}

/// Nanoseconds to microseconds, to the nearest (`ns2usecs()`).
#[inline]
fn to_usecs(ns: u64) -> u64 {
    ns.wrapping_add(500) / 1000
}

/// The smallest power of two that is not below `value` (`order_base_2()`).
#[inline]
fn ceil_log2(value: u64) -> u64 {
    match value {
        0 | 1 => 0,
        _ => u64::from(u64::BITS.wrapping_sub(value.wrapping_sub(1).leading_zeros())),
    }
}
