// SPDX-License-Identifier: GPL-2.0

//! Properties of the trigger language over texts of all sorts.

#![cfg(not(loom))]

mod lang_common;

use lang_common::{
    checked::{
        check,
        check_with,
        world, //
    },
    *, //
};
use proptest::prelude::*;
use rust_hist::{
    alloc::fail_after,
    error::{
        Errno,
        Refusal, //
    },
    lang,
    text::lex, //
};

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
        b"onmatch(kmem.kmalloc).",
        b"onmax($x).",
        b"onchange($y).",
        b"onmax(",
        b"save(",
        b"snapshot()",
        b"trace(",
        b"num(",
        b"txt(",
        b"saver(",
        b"trace(num,",
        b"onmatch(zoo.all).",
        b"(",
        b")",
        b"*",
        b"/",
        b"x=",
        b"y=",
        b":x=u8",
        b":y=$prio",
        b"$prio",
        b"$who",
        b"$both",
        b"sched.switch.$both",
        b"$seven",
        b"$ts0",
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
        ".log2=0",
        ".log2=5",
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
        ":quantiles(50)",
        ":quantiles(99.9,50,0.5)",
        ":others",
        ":size=128..4096:others",
        ":expire(10s)",
        ":expire(100ms):size=128..4096",
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

/// A part of an expression: a constant, a field, a reference.
fn operand() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "u8",
        "s16",
        "u64.hex",
        "pointed",
        "u32.log2",
        "s32.log2=3",
        "u8.buckets=010",
        "u64.sym-offset",
        "common_cpu",
        "cpu",
        "hitcount",
        "common_timestamp",
        "common_timestamp.usecs",
        "a.b.u32",
        "1",
        "0x10",
        "7",
        "$x",
        "$y",
        "$prio",
        "$seven",
        "$ts0",
        "sched.switch.$both",
        "kmem.kmalloc.$both",
        "$who",
    ])
}

/// An expression, mostly a valid one.
fn expression() -> impl Strategy<Value = String> {
    let operators = prop::sample::select(vec!["+", "-", "*", "/"]);

    (
        operand(),
        prop::collection::vec((operators, operand()), 0..=3),
        prop::bool::weighted(0.1),
    )
        .prop_map(|(first, rest, negated)| {
            let rest: String = rest
                .iter()
                .map(|(operator, operand)| format!("{operator}{operand}"))
                .collect();

            if negated {
                format!("-({first}{rest})").replace("-offset", "")
            } else {
                format!("{first}{rest}")
            }
        })
}

/// The definition of a variable.
fn definition() -> impl Strategy<Value = String> {
    let names = prop::sample::select(vec!["x", "y", "z", "lat", "keys2"]);
    let plain = prop::sample::select(vec![
        "u8",
        "s16.hex",
        "u64.sym-offset",
        "filename",
        "seven",
        "comm",
        "stack",
        "common_stacktrace",
        "common_pid.execname",
        "common_timestamp.usecs",
        "$who",
        "$st",
        "$prio",
        "zoo.all.$x",
        "0x7f",
    ])
    .prop_map(str::to_owned);

    (names, prop_oneof![plain, expression()]).prop_map(|(name, expr)| format!("{name}={expr}"))
}

/// A handler with its action.
fn handler() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "onmax($x).save(u8,filename)",
        "onmax($y).snapshot()",
        "onchange($x).save( common_pid.execname , $prio,u16.log2)",
        "onchange($lat).save(sched.switch.$both,stack",
        "onmax($z)junk.save(55)junk",
        "onchange($z).snapshot(junk)",
        "onmatch(sched.switch).num(u8)",
        "onmatch(sched.switch).trace(num,zoo.all.u8.hex",
        "onmax($x).txt(filename)",
        "onmatch(kmem.kmalloc).txt( $x )",
        "onmatch(sched.switch).txt($who)junk",
        "onmatch(sched.switch).tracks(sts,stack)",
        "onchange($y).saver(sched.switch.$both)",
        "onmatch(zoo.all).big(s64,$lat,7,common_timestamp.usecs)",
        "onmatch(zoo.all).big(s64,$lat,7,common_timestamp)",
        "onmatch(kmem.kmalloc).big(bytes_req,hitcount,ptr,kmem.kmalloc.bytes_alloc)",
    ])
    .prop_map(str::to_owned)
}

/// A text that is mostly a valid trigger of [`ZOO`], with variables and handlers.
fn full_trigger() -> impl Strategy<Value = String> {
    (
        trigger(),
        prop::option::of(expression()),
        prop::collection::vec(definition(), 0..4),
        any::<bool>(),
        prop::collection::vec(handler(), 0..3),
        prop::sample::select(vec!["", "", ":name=foo", ":clock=mono"]),
    )
        .prop_map(|(trigger, value, definitions, one, handlers, option)| {
            let value = value.map(|v| format!("vals={v}:")).unwrap_or_default();
            let definitions = match definitions.join(if one { "," } else { ":" }).as_str() {
                "" => String::new(),
                some => format!("{some}:"),
            };
            let handlers: String = handlers.iter().map(|h| format!("{h}:")).collect();
            let (trigger, filter) =
                trigger.split_at(trigger.find([' ', '\t']).unwrap_or(trigger.len()));

            format!("{definitions}{value}{handlers}{trigger}{option}{filter}")
        })
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

    #[test]
    fn soups_about_others(text in soup()) {
        check_with(&mut world(), &[b"keys=u8", text.as_slice()].concat());
        check_with(&mut world(), &[b"keys=u8:z=", text.as_slice()].concat());
    }

    #[test]
    fn triggers_with_variables(text in full_trigger()) {
        check_with(&mut world(), text.as_bytes());
    }

    #[test]
    fn damaged_triggers_with_variables(
        text in full_trigger(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut text = text.into_bytes();
        let at = at.index(text.len());

        text[at] = byte;
        check_with(&mut world(), &text);
    }

    /// Whichever allocation fails, nothing else is said.
    #[test]
    fn memory_may_end_anywhere(text in full_trigger(), left in 0usize..200) {
        let mut world = world();
        let expected = create(&mut world, text.as_bytes()).map(|_| ());

        fail_after(Some(left));

        let found = create(&mut world, text.as_bytes()).map(|_| ());

        fail_after(None);
        assert!(found == expected || found == Err(Refusal::silent(Errno::Enomem)), "{found:?}");
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

        prop_assert_eq!(lex::number(format!("{prefix}{text}").as_bytes()), Ok(value));
    }
}

/// The generators of triggers are of no use if most of them are refused.
#[test]
fn most_triggers_are_accepted() {
    use proptest::{
        strategy::ValueTree,
        test_runner::TestRunner, //
    };

    let mut runner = TestRunner::deterministic();
    let mut accepted = |accepts: &mut dyn FnMut(&mut TestRunner) -> bool| {
        (0..1000).filter(|_| accepts(&mut runner)).count()
    };
    let plain = accepted(&mut |runner| {
        let text = trigger().new_tree(runner).expect("generates").current();

        check(&ZOO, text.as_bytes())
    });
    let full = accepted(&mut |runner| {
        let text = full_trigger()
            .new_tree(runner)
            .expect("generates")
            .current();

        check_with(&mut world(), text.as_bytes())
    });

    assert!(plain > 100 && full > 30, "{plain} and {full} of 1000");

    // So are those of actions.
    let handlers = accepted(&mut |runner| {
        let text = handler().new_tree(runner).expect("generates").current();
        let text = format!("keys=cpu:x=s32,y=s32,z=u8,lat=u64:{text}");

        check_with(&mut world(), text.as_bytes())
    });

    assert!(handlers > 500, "{handlers} of 1000");
}
