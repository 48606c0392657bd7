// SPDX-License-Identifier: GPL-2.0

//! Properties of the trigger language over texts of all sorts.

#![cfg(not(loom))]

mod lang_common;

use lang_common::*;
use proptest::prelude::*;
use rust_hist::lang;

/// A word of the language, or nearly one.
fn word() -> impl Strategy<Value = Vec<u8>> {
    let words: Vec<&[u8]> = vec![
        b"keys=",
        b"key=",
        b"vals=",
        b"val=",
        b"values=",
        b"sort=",
        b"size=",
        b"clock=",
        b"name=",
        b"pause",
        b"cont",
        b"continue",
        b"clear",
        b"nohitcount",
        b"NOHC",
        b"hitcount",
        b"node",
        b"ptr",
        b"bytes_req",
        b"common_pid",
        b"common_cpu",
        b"cpu",
        b"comm",
        b"common_comm",
        b"common_timestamp",
        b"common_stacktrace",
        b"stacktrace",
        b"prev_comm",
        b"filename",
        b"stack",
        b"seven",
        b"u8",
        b".hex",
        b".sym",
        b".sym-offset",
        b".symXoffset",
        b".execname",
        b".syscall",
        b".log2",
        b".buckets=",
        b".bucket=",
        b".usecs",
        b".percent",
        b".graph",
        b".stacktrace",
        b".ascending",
        b".descending",
        b",",
        b":",
        b"=",
        b".",
        b" ",
        b"\t",
        b" if ",
        b"if",
        b"$x",
        b"128",
        b"0x10",
        b"0",
        b"18446744073709551616",
        b"-",
        b"+",
        b"\xff",
        b"\0",
        b"\n",
        b"!",
        b"onmatch(",
        b")",
    ];

    prop::sample::select(words).prop_map(<[u8]>::to_vec)
}

/// A text of words.
fn soup() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(word(), 0..24).prop_map(|words| words.concat())
}

/// A column with perhaps a modifier.
fn column(modifiers: Vec<&'static str>) -> impl Strategy<Value = String> {
    let names = vec![
        "hitcount",
        "u8",
        "s16",
        "u64",
        "pointed",
        "common_pid",
        "common_cpu",
        "cpu",
        "comm",
        "common_comm",
        "common_timestamp",
        "common_stacktrace",
        "stacktrace",
        "filename",
        "stack",
        "seven",
        "a.b.u32",
    ];

    (prop::sample::select(names), prop::sample::select(modifiers))
        .prop_map(|(name, modifier)| format!("{name}{modifier}"))
}

/// A list of columns.
fn columns(modifiers: Vec<&'static str>, most: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(column(modifiers), 1..=most).prop_map(|items| items.join(","))
}

/// A text that is mostly a valid trigger of [`ZOO`].
fn trigger() -> impl Strategy<Value = String> {
    let key_modifiers = vec![
        "",
        "",
        "",
        "",
        ".hex",
        ".sym",
        ".sym-offset",
        ".syscall",
        ".log2",
        ".buckets=16",
        ".bucket=0x20",
        ".usecs",
        ".execname",
        ".stacktrace",
    ];
    let val_modifiers = vec!["", "", "", ".hex", ".percent", ".graph", ".usecs"];
    let sort_modifiers = vec![
        "",
        "",
        ".ascending",
        ".descending",
        ".hex",
        ".log2.descending",
    ];
    let options = prop::sample::select(vec![
        "",
        ":pause",
        ":nohitcount",
        ":NOHC:size=4096",
        ":cont",
    ]);
    let filter = prop::sample::select(vec![
        "",
        "",
        " if u8 > 1",
        " if  seven == \"a:b\" ",
        "\tif\tx",
    ]);

    (
        columns(key_modifiers, 3),
        prop::option::of(columns(val_modifiers, 3)),
        prop::option::of(columns(sort_modifiers, 2)),
        options,
        filter,
    )
        .prop_map(|(keys, vals, sort, options, filter)| {
            let vals = vals.map(|v| format!(":vals={v}")).unwrap_or_default();
            let sort = sort.map(|s| format!(":sort={s}")).unwrap_or_default();

            format!("keys={keys}{vals}{sort}{options}{filter}")
        })
}

/// What must hold for any text: no panic; spans inside it; a refusal says something sensible; what
/// is printed makes the same trigger and the same line.
fn check(event: &Event, text: &[u8]) -> bool {
    match compile(event, text) {
        Err(refusal) => {
            for entry in refusal.entries() {
                assert!(usize::from(entry.at) <= b"hist:".len() + text.len());
                assert!(!entry.kind.text().to_bytes().is_empty());
            }
            false
        }
        Ok(program) => {
            let line = line_of(&program, text);
            let printed = behind_prefix(&line);
            let again = compile(event, printed).unwrap_or_else(|refusal| {
                panic!(
                    "{:?} was printed as {:?}: {refusal:?}",
                    String::from_utf8_lossy(text),
                    String::from_utf8_lossy(printed)
                )
            });

            assert!(program.same_trigger(text, &again, printed));
            assert!(again.same_trigger(printed, &program, text));
            assert_eq!(behind_prefix(&line_of(&again, printed)), printed);
            assert_eq!(again.size_bits(), program.size_bits());
            assert_eq!(again.nohitcount(), program.nohitcount());
            assert_eq!(again.usecs(), program.usecs());
            assert_eq!(again.needs_timestamp(), program.needs_timestamp());
            true
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8192))]

    #[test]
    fn any_bytes(text in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = lang::parse(b"hist", &text);
        check(&ZOO, &text);
        check(&ZOO, &[b"keys=", text.as_slice()].concat());
    }

    #[test]
    fn any_soup_of_words(text in soup()) {
        check(&KMALLOC, &text);
        check(&ZOO, &[b"keys=u8", text.as_slice()].concat());
    }

    #[test]
    fn triggers(text in trigger()) {
        check(&ZOO, text.as_bytes());
    }

    /// A trigger with one byte changed.
    #[test]
    fn damaged_triggers(text in trigger(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut text = text.into_bytes();
        let at = at.index(text.len());

        text[at] = byte;
        check(&ZOO, &text);
    }

    /// Numbers are those of the standard library where both know the form.
    #[test]
    fn numbers(value in any::<u64>(), radix in prop::sample::select(vec![8u32, 10, 16])) {
        let (text, prefix) = match radix {
            8 => (format!("{value:o}"), "0"),
            16 => (format!("{value:x}"), "0X"),
            _ => (format!("{value}"), ""),
        };

        prop_assert_eq!(lang::lex::number(format!("{prefix}{text}").as_bytes()), Ok(value));
    }
}

/// The generator of triggers is of no use if most of them are refused.
#[test]
fn most_triggers_are_accepted() {
    use proptest::{
        strategy::ValueTree,
        test_runner::TestRunner, //
    };

    let mut runner = TestRunner::deterministic();
    let accepted = (0..1000)
        .filter(|_| {
            let text = trigger()
                .new_tree(&mut runner)
                .expect("generates")
                .current();

            check(&ZOO, text.as_bytes())
        })
        .count();

    assert!(accepted > 100, "{accepted} of 1000");
}
