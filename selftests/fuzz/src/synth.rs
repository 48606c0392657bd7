// SPDX-License-Identifier: GPL-2.0

//! Any line for `synthetic_events` and `dynamic_events`: it ends as with C; what is listed defines
//! the same event again; values are found in the record; bytes from anywhere are shown as a line.

use rust_hist::{
    alloc::fail_after,
    error::Errno,
    field::SynthClass,
    schema::{
        self,
        Schema,
        SynthCommand,
        Unread, //
    },
};

use crate::{
    bytes::Bytes,
    schema_common::{
        define,
        line,
        listing,
        model::{
            dynamic_is_answered,
            ends_as_in_c, //
        },
        print_fmt,
        record,
        Value, //
    },
};

pub(crate) fn run(input: &[u8]) {
    // The definition, which is a string of C, and after its end what is written and shown.
    let end = input.iter().position(|&b| matches!(b, 0 | b'\n'));
    let (text, rest) = input.split_at(end.unwrap_or(input.len()));

    ends_as_in_c(text);
    dynamic_is_answered(text);
    dynamic_is_answered(&[b"s:", text].concat());
    memory_may_end(text, rest.len());
    if let Ok(SynthCommand::Create(schema)) = schema::parse(text, |_| false) {
        again(&schema);
        written(&schema, Bytes(rest));
    }
}

fn memory_may_end(text: &[u8], left: usize) {
    fail_after(Some(left));
    let parsed = schema::parse(text, |_| false).map(|_| ());
    fail_after(None);
    if let Err(refusal) = parsed {
        assert!(refusal.entry().is_some() || refusal.errno == Errno::Enomem);
    }
}

fn again(schema: &Schema) {
    let listed = listing(schema);
    // Latin-1 letters are names, and no UTF-8.
    if listed.is_ascii() {
        let again = define(listed.trim_end()).expect("what is listed can be typed");

        assert_eq!(listing(&again), listed);
        assert_eq!(print_fmt(&again), print_fmt(schema));
    }
}

fn written(schema: &Schema, mut rest: Bytes<'_>) {
    let values: Vec<Value> = schema
        .fields()
        .map(|field| match (field.class, rest.below(8)) {
            (SynthClass::Number, _) => Value::Number(rest.word()),
            (_, 0) => Value::Missing(Unread::Fault),
            (SynthClass::Stack, n) => Value::Stack(
                (0..u64::from(n) * 5)
                    .map(|i| rest.word().wrapping_add(i))
                    .collect(),
            ),
            (_, 1) => {
                let len = usize::from(rest.byte());
                let n = rest.byte();
                Value::Changing(len, rest.take(n.into()).to_vec())
            }
            _ => {
                let n = rest.byte();
                Value::Text(rest.take(n.into()).to_vec())
            }
        })
        .collect();
    let shown = line(schema, &record(schema, values));
    assert!(shown.ends_with('\n'));

    // No more is shown than the record has, each byte in at most four, and the names.
    let shown = line(schema, rest.0);
    let names = print_fmt(schema).len();
    assert!(shown.ends_with('\n'));
    assert!(shown.len() <= (rest.0.len() + 300) * 24 * schema.len() + names * 2 + 4096);
}
