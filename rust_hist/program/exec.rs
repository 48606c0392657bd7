// SPDX-License-Identifier: GPL-2.0

//! A program run over one record: the key's words and the values.
//!
//! C counterpart: `event_hist_trigger()`, `add_to_key()` and the `hist_field_*()` functions of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//! A record may be shorter than its event's format says, and its location words may say anything:
//! what lies outside reads as zero, or as the part of a string that is inside.
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

use crate::{
    field::Env,
    limits::{
        COMM_LEN,
        KEY_WORDS_MAX,
        VALS_MAX, //
    },
};

use super::{
    Field,
    Load,
    Modifier,
    Op,
    Program, //
};

/// Room for the key of one hit.
pub type KeyBuf = [u64; KEY_WORDS_MAX];

/// Room for the values of one hit.
pub type ValBuf = [u64; VALS_MAX];

impl Program {
    /// Computes the key of the hit: `key_words()` words at the start of `buf`.
    ///
    /// Every one of these words is written; the others stay as they are.
    #[inline]
    pub fn key<'b>(&self, record: &[u8], env: &impl Env, buf: &'b mut KeyBuf) -> &'b [u64] {
        for key in self.keys() {
            let Some(slot) = buf
                .get_mut(key.first_word()..)
                .and_then(|from| from.get_mut(..key.words()))
            else {
                continue;
            };

            match key.field.op {
                Op::Comm => {
                    let mut comm = [0; COMM_LEN];

                    env.comm(&mut comm);
                    put_string(slot, comm.split(|&byte| byte == 0).next().unwrap_or(&[]));
                }
                Op::StaticString { offset, len } => {
                    put_string(slot, bytes_at(record, index(offset), index(len)));
                }
                Op::DynString { offset } => {
                    let (at, len) = location(record, offset);

                    put_string(slot, bytes_at(record, at, len));
                }
                Op::RelDynString { offset } => {
                    let (at, len) = location(record, offset);
                    let base = index(offset).saturating_add(size_of::<u32>());

                    put_string(slot, bytes_at(record, base.saturating_add(at), len));
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
                        *word = self.number(&key.field, record, env);
                    }
                }
            }
        }

        buf.get(..self.key_words()).unwrap_or(&[])
    }

    /// Computes the values of the hit besides the raw hitcount, in the order of `vals()`.
    #[inline]
    pub fn values<'b>(&self, record: &[u8], env: &impl Env, buf: &'b mut ValBuf) -> &'b [u64] {
        for (field, place) in self.vals().iter().zip(buf.iter_mut()) {
            *place = self.number(field, record, env);
        }
        buf.get(..self.vals().len()).unwrap_or(&[])
    }

    /// The number that a field comes to; 0 for what is no number, of which there is none here.
    #[inline]
    fn number(&self, field: &Field, record: &[u8], env: &impl Env) -> u64 {
        let value = match field.op {
            // PARITY: `create_hist_field()` ignores `.log2` and `.buckets` of a hitcount, and
            // `hist_field_name()` then finds no name for it.
            Op::One => 1,
            Op::Num { offset, load } => load.read(record, index(offset)),
            Op::Timestamp if self.usecs && env.clock_in_ns() => to_usecs(env.timestamp()),
            Op::Timestamp => env.timestamp(),
            Op::Cpu => u64::from(env.cpu()),
            Op::Const(value) => value,
            Op::Ref(_) | Op::Expr(_) => 0,
            Op::Comm
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
