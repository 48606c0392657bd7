// SPDX-License-Identifier: GPL-2.0

//! Properties of synthetic events over definitions, values and records of all sorts.

#![cfg(not(loom))]

mod schema_common;

use proptest::prelude::*;
use rust_hist::{
    alloc::{
        fail_after,
        AllocError, //
    },
    field::SynthClass,
    schema::{
        Schema,
        Unread,
        HEADER, //
    },
};
use schema_common::{
    model::{
        dynamic_is_answered,
        ends_as_in_c, //
    },
    *, //
};

/// A piece of a definition, or of nonsense.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let known: Vec<&[u8]> = vec![
        b"ev",
        b"a",
        b"b[]",
        b"c[16]",
        b"d[256]",
        b"e[257]",
        b"f[",
        b"[]",
        b"g]",
        b"int",
        b"u64",
        b"s8",
        b"unsigned",
        b"char",
        b"long",
        b"gfp_t",
        b"bool",
        b"char[]",
        b"char[8]",
        b"long[]",
        b"!",
        b"!ev",
        b";",
        b"; ",
        b" ;",
        b"/",
        b"s:",
        b"synthetic/",
        b"#",
        b"\xa0",
        b"\x0b",
    ];

    prop_oneof![
        4 => proptest::sample::select(known).prop_map(<[u8]>::to_vec),
        1 => proptest::collection::vec(1u8..=255, 0..4),
    ]
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    let blank: Vec<&[u8]> = vec![b" ", b"  ", b"\t", b"", b" "];
    let blank = proptest::sample::select(blank);

    proptest::collection::vec((piece(), blank), 0..12).prop_map(|pieces| {
        pieces
            .into_iter()
            .flat_map(|(p, b)| [p, b.to_vec()].concat())
            .collect()
    })
}

/// A definition that holds, and values for it.
fn event() -> impl Strategy<Value = (String, Vec<Value>)> {
    let number = proptest::sample::select(vec![
        "s8",
        "u8",
        "s16",
        "u16",
        "s32",
        "u32",
        "s64",
        "u64",
        "bool",
        "pid_t",
        "gfp_t",
        "char",
        "unsigned char",
        "int",
        "unsigned int",
        "long",
        "unsigned long",
    ]);
    let unread = |value: BoxedStrategy<Value>| prop_oneof![9 => value, 1 => Just(Value::Missing(Unread::Fault))];
    let bytes = |len| proptest::collection::vec(1u8..=255, 0..len);
    let texts = prop_oneof![
        9 => bytes(600).prop_map(Value::Text),
        1 => (0..40usize, bytes(40)).prop_map(|(len, text)| Value::Changing(len, text)),
    ];
    let stacks = proptest::collection::vec(1u64.., 0..40).prop_map(Value::Stack);
    let field = prop_oneof![
        (number, any::<u64>()).prop_map(|(t, n)| (t.to_owned(), n.into())),
        (1..=256u16, unread(texts.clone().boxed())).prop_map(|(n, v)| (format!("char[{n}]"), v)),
        unread(texts.boxed()).prop_map(|v| ("char[]".into(), v)),
        unread(stacks.boxed()).prop_map(|v| ("long[]".into(), v)),
    ];

    proptest::collection::vec(field, 1..12).prop_map(|fields| {
        let (types, values): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
        let fields: Vec<_> = types
            .iter()
            .enumerate()
            .map(|(i, t)| format!("{t} f{i}"))
            .collect();

        (format!("ev {}", fields.join("; ")), values)
    })
}

/// What the record says of a field.
fn read<'r>(schema: &Schema, record: &'r [u8], i: usize) -> &'r [u8] {
    let field = schema.field(i).expect("a field");

    match field.class {
        SynthClass::Number => &record[field.offset()..][..field.size.into()],
        SynthClass::StaticString => &record[field.offset()..][..256],
        SynthClass::DynString | SynthClass::Stack => {
            let (offset, len) = place(record, field.at.into());
            &record[offset..offset + len]
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Each line ends as the model says, at the same column.
    #[test]
    fn lines_end_as_in_c(text in text()) {
        ends_as_in_c(&text);
    }

    /// Whatever is written to `dynamic_events`, carets stay within the command.
    #[test]
    fn dynamic_lines_are_answered(text in text(), ours in any::<bool>()) {
        let prefix: &[u8] = if ours { b"s:" } else { b"" };

        dynamic_is_answered(&[prefix, &text].concat());
    }

    /// What is listed defines the same event again.
    #[test]
    fn a_listing_is_a_definition((text, _) in event()) {
        let schema = defined(&text);
        let listed = listing(&schema);
        let again = defined(listed.trim_end());

        prop_assert_eq!(listing(&again), listed);
        prop_assert_eq!(print_fmt(&again), print_fmt(&schema));
    }

    #[test]
    fn no_memory_is_always_survived((text, _) in event(), n in 0..200usize) {
        fail_after(Some(n));
        let schema = define(&text);
        fail_after(None);
        if let Err(refusal) = schema {
            prop_assert_eq!(refusal, AllocError.into());
        }
    }

    /// Every value is found again where the record says that it is, and no byte is left over.
    #[test]
    fn records_hold_their_values((text, values) in event()) {
        let schema = defined(&text);
        let record = record(&schema, values.clone());
        let mut used = vec![false; record.len()];

        used[..HEADER].fill(true);
        for (i, value) in values.iter().enumerate() {
            let field = schema.field(i).expect("a field");
            let bytes = read(&schema, &record, i);
            let start = bytes.as_ptr().addr() - record.as_ptr().addr();
            let words = if field.class == SynthClass::StaticString { 32 } else { 1 };

            if field.class != SynthClass::Number {
                used[start..start + bytes.len()].fill(true);
            }
            used[field.offset()..][..words * 8].fill(true);
            match (field.class, value) {
                (SynthClass::Number, Value::Number(n)) => {
                    prop_assert_eq!(bytes, &n.to_le_bytes()[..bytes.len()]);
                }
                (SynthClass::StaticString, Value::Text(text) | Value::Changing(_, text)) => {
                    let len = text.len().min(255);
                    prop_assert_eq!(&bytes[..len], &text[..len]);
                    prop_assert!(bytes[len..].iter().all(|&b| b == 0));
                }
                (SynthClass::StaticString, _) => prop_assert!(bytes.starts_with(b"(fault)\0")),
                (SynthClass::DynString, Value::Text(text)) => {
                    prop_assert_eq!(bytes, [text, &[0][..]].concat());
                }
                (SynthClass::DynString, Value::Changing(len, text)) => {
                    let len = text.len().min(*len);
                    prop_assert_eq!(bytes, [&text[..len], &[0][..]].concat());
                }
                (SynthClass::Stack, Value::Stack(frames)) if !frames.is_empty() => {
                    let count = frames.len().min(31) as u64;
                    let words = [&[count], &frames[..frames.len().min(30)]].concat();
                    let expected: Vec<_> = words.iter().flat_map(|w| w.to_ne_bytes()).collect();
                    prop_assert_eq!(bytes, expected);
                }
                _ => prop_assert_eq!(bytes, b""),
            }
        }
        let rest = record.iter().zip(&used).filter(|(_, used)| !**used);
        prop_assert!(rest.clone().all(|(&byte, _)| byte == 0), "stale bytes");
        let line = line(&schema, &record);
        prop_assert!(line.starts_with("ev: f0=") && line.ends_with('\n'));
    }

    /// Bytes from anywhere are shown as some line; nothing beyond them is read.
    #[test]
    fn any_bytes_are_shown(
        (text, _) in event(),
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
    ) {
        let schema = defined(&text);
        let line = line(&schema, &bytes);

        prop_assert!(line.starts_with("ev: f0=") && line.ends_with('\n'));
    }

    /// A word that leads somewhere shows those bytes of the record, and only those.
    #[test]
    fn any_place_is_kept_inside(offset in 0..80u32, len in 0..80u32) {
        let schema = defined("ev char f[]");
        let mut record: Vec<u8> = (0..64).map(|n| b'0' + n % 10).collect();
        let (from, to) = (offset as usize, (offset + len) as usize);

        record[HEADER..HEADER + 8].copy_from_slice(&u64::from(len << 16 | offset).to_le_bytes());
        let inside = record.get(from..to.min(64)).unwrap_or(&[]);
        let shown = inside.split(|&b| b == 0).next().unwrap_or(&[]);
        let expected = format!("ev: f={}\n", String::from_utf8_lossy(shown));
        prop_assert_eq!(line(&schema, &record), expected);
    }
}
