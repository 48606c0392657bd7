// SPDX-License-Identifier: GPL-2.0

//! FieldValues, names and shorthands for the tests of synthetic events.

#![allow(dead_code, reason = "no test file uses all of this")]

pub(crate) mod model;

use core::fmt::{
    self,
    Write, //
};

use rust_hist::{
    limits::STR_SLOT,
    schema::{
        self,
        FieldValues,
        KernelFormat,
        Lost,
        Schema,
        Sizes,
        StableValues,
        SynthCommand,
        SynthRefusal,
        Unread,
        HEADER, //
    },
    text::Out, //
};

/// Bytes that were written.
#[derive(Default)]
pub(crate) struct Text(pub(crate) Vec<u8>);

impl Write for Text {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.write_bytes(s.as_bytes())
    }
}

impl Out for Text {
    fn write_bytes(&mut self, bytes: &[u8]) -> fmt::Result {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

impl Text {
    pub(crate) fn of(write: impl FnOnce(&mut Text) -> fmt::Result) -> String {
        let mut text = Text::default();

        write(&mut text).expect("there is always room");
        String::from_utf8_lossy(&text.0).into_owned()
    }
}

/// The event that `text` defines, with no other there.
pub(crate) fn define(text: &str) -> Result<Schema, SynthRefusal> {
    match schema::parse(text.as_bytes(), |_| false)? {
        SynthCommand::Create(schema) => Ok(schema),
        other => panic!("{text}: {other:?}"),
    }
}

pub(crate) fn defined(text: &str) -> Schema {
    define(text).unwrap_or_else(|e| panic!("{text}: {e:?}"))
}

pub(crate) fn listing(schema: &Schema) -> String {
    Text::of(|out| schema.write_listing(out))
}

pub(crate) fn print_fmt(schema: &Schema) -> String {
    Text::of(|out| schema.write_print_fmt(out))
}

/// Shows symbols and flags by their numbers.
pub(crate) struct Plain;

impl KernelFormat for Plain {
    fn symbol_offset<W: Out>(&self, addr: u64, out: &mut W) -> fmt::Result {
        write!(out, "f{addr:x}")
    }

    fn gfp_flags<W: Out>(&self, flags: u64, out: &mut W) -> fmt::Result {
        write!(out, "G{flags:x}")
    }
}

pub(crate) fn line(schema: &Schema, record: &[u8]) -> String {
    Text::of(|out| schema.write_line(record, false, &Plain, out))
}

/// One value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Number(u64),
    Text(Vec<u8>),
    /// A text that is this long when it is measured, and has these bytes when it is copied.
    Changing(usize, Vec<u8>),
    Stack(Vec<u64>),
    Missing(Unread),
}

impl From<u64> for Value {
    fn from(n: u64) -> Self {
        Self::Number(n)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl<const N: usize> From<[u64; N]> for Value {
    fn from(frames: [u64; N]) -> Self {
        Self::Stack(frames.into())
    }
}

impl From<Unread> for Value {
    fn from(why: Unread) -> Self {
        Self::Missing(why)
    }
}

pub(crate) struct Row(pub(crate) Vec<Value>);

impl FieldValues for Row {
    fn number(&self, field: usize) -> u64 {
        match &self.0[field] {
            Value::Number(n) => *n,
            other => panic!("{other:?} is no number"),
        }
    }

    fn string_len(&self, field: usize) -> Result<usize, Unread> {
        match &self.0[field] {
            Value::Text(text) => Ok(text.len()),
            Value::Changing(len, _) => Ok(*len),
            Value::Missing(why) => Err(*why),
            other => panic!("{other:?} is no string"),
        }
    }

    fn string(&self, field: usize, to: &mut [u8]) -> Result<usize, Unread> {
        match &self.0[field] {
            Value::Text(text) | Value::Changing(_, text) => {
                let n = text.len().min(to.len());

                // A copy that meets a change may have written more.
                to.fill(b'#');
                to[..n].copy_from_slice(&text[..n]);
                Ok(n)
            }
            Value::Missing(why) => {
                to.fill(b'#');
                Err(*why)
            }
            other => panic!("{other:?} is no string"),
        }
    }

    fn stable_string(&self, field: usize) -> Option<&[u8]> {
        match &self.0[field] {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    fn stack_len(&self, field: usize) -> Result<usize, Unread> {
        match &self.0[field] {
            Value::Stack(frames) => Ok(frames.len()),
            Value::Missing(why) => Err(*why),
            other => panic!("{other:?} is no stack"),
        }
    }

    fn stack(&self, field: usize, to: &mut [u8]) -> Result<usize, Unread> {
        match &self.0[field] {
            Value::Stack(frames) => {
                let slots = to.chunks_exact_mut(8).zip(frames);
                let n = slots.len();

                slots.for_each(|(slot, frame)| slot.copy_from_slice(&frame.to_ne_bytes()));
                Ok(n)
            }
            Value::Missing(why) => Err(*why),
            other => panic!("{other:?} is no stack"),
        }
    }
}

/// What the ring buffer had in its place before, so that nothing stale goes unseen.
pub(crate) const STALE: u8 = 0xa5;

/// What the parts of a record of these values take.
pub(crate) fn measured(schema: &Schema, row: &Row) -> Result<Sizes, Lost> {
    let mut sizes = Sizes::default();

    schema.measure(row, &mut sizes).map(|()| sizes)
}

/// The record of these values, in memory that was used before: the same one whether its values are stable or not.
pub(crate) fn record(schema: &Schema, values: Vec<Value>) -> Vec<u8> {
    let row = Row(values);
    let sizes = measured(schema, &row).expect("every value is there");
    let mut record = vec![STALE; sizes.record_len()];

    schema
        .write(&row, &sizes, &mut record)
        .expect("every value is there");
    assert_eq!(record[..HEADER], [STALE; HEADER], "the header is not ours");

    let mut stable = StableValues::default();
    // As far as there is room, and nothing is cut off.
    let are_stable = schema.len() <= 6
        && row.0.iter().all(|value| match value {
            Value::Number(_) => true,
            Value::Text(text) => text.len() < STR_SLOT,
            _ => false,
        });

    assert_eq!(schema.collect_stable(&row, &mut stable), are_stable);
    if are_stable {
        let mut again = vec![STALE; stable.record_len()];

        assert_eq!(schema.write_stable(&stable, &mut again), Some(()));
        assert_eq!(again, record, "the values are stable");
    }
    record
}

/// The 64-bit word after the header.
pub(crate) fn word(record: &[u8], at: usize) -> u64 {
    let from = HEADER + at * 8;

    u64::from_ne_bytes(record[from..from + 8].try_into().expect("8 bytes"))
}

/// Offset and length in the word of what is elsewhere.
pub(crate) fn place(record: &[u8], at: usize) -> (usize, usize) {
    let word = word(record, at);

    assert_eq!(word >> 32, 0, "the rest of the word is 0");
    ((word & 0xffff) as usize, (word >> 16) as usize)
}
