// SPDX-License-Identifier: GPL-2.0

//! A program run over one record: the key's words, the variables that it needs, and the values.
//!
//! C counterpart: `event_hist_trigger()`, `add_to_key()` and the `hist_field_*()` functions of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//! A record may be shorter than its event's format says, and its location words may say anything:
//! what lies outside reads as zero, or as the part of a string that is inside.
//!
//! `program/exec/refs.rs` reads the variables of other triggers, `program/exec/entry.rs` does what comes
//! when the entry is known: variables and actions; `program/exec/text.rs` has strings and stacks, and
//! `program/exec/trace.rs` the values of synthetic events. Long keys are in pieces (`program/exec/pieces.rs`), or
//! those of strings and numbers of the record (`program/exec/text_key.rs`), or a stack of it
//! (`program/exec/stack_key.rs`).
//!
//! Context: any, NMI included. Never allocates, sleeps, locks or panics.

mod entry;
mod pieces;
mod refs;
mod stack_key;
mod text;
mod text_key;
mod trace;

pub use self::{
    entry::{
        track_row,
        Effects,
        Kept, //
    },
    pieces::KeyPieces,
    refs::{
        OwnBuf,
        OwnVals,
        RefBuf,
        Refs,
        Tables,
        Unset, //
    },
    stack_key::StackKey,
    text_key::TextKey, //
};

use crate::{
    field::Env,
    limits::{
        COMM_LEN,
        KEY_WORDS_MAX,
        VALS_MAX, //
    },
    sync::Atomic, //
};

use super::{
    bytes::array_at,
    Field,
    Op,
    Program, //
};

/// Room for the key of one hit.
pub type KeyBuf = [u64; KEY_WORDS_MAX];

/// Room for the values of one hit.
pub type ValBuf = [u64; VALS_MAX];

/// One record, with all that surrounds its hit.
#[derive(Clone, Copy)]
struct Hit<'h, E, T> {
    program: &'h Program,
    record: &'h [u8],
    env: &'h E,
    refs: &'h Refs<'h, T>,
    /// The extra words of the entry.
    aux: &'h [Atomic<u64>],
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
                Op::Stacktrace => env.stacktrace(|frames| {
                    slot.fill(0);
                    for (word, frame) in slot.iter_mut().zip(frames) {
                        *word = *frame;
                    }
                }),
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
        _ => string_in(field, record),
    }
}

/// The bytes of a string of the record, as [`string_at`].
#[inline(always)]
fn string_in<'r>(field: &Field, record: &'r [u8]) -> &'r [u8] {
    let (at, len) = place_of(field.op, record).unwrap_or((0, 0));
    let from = record.get(at..).unwrap_or(&[]);

    from.get(..len).unwrap_or(from)
}

/// The place and the length of a string of the record, of which either may be beyond its end; `None` if it is no such
/// string.
#[inline(always)]
fn place_of(op: Op, record: &[u8]) -> Option<(usize, usize)> {
    Some(match op {
        Op::StaticString { offset, len } => (index(offset), index(len)),
        Op::DynString { offset } => location(record, offset),
        Op::RelDynString { offset } => {
            let (at, len) = location(record, offset);
            let base = index(offset).saturating_add(size_of::<u32>());

            (base.saturating_add(at), len)
        }
        _ => return None,
    })
}

/// `bits` as an index.
#[inline(always)]
fn index(bits: u32) -> usize {
    // CAST: tracing needs 32-bit pointers at least.
    bits as usize
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
