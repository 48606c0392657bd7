// SPDX-License-Identifier: GPL-2.0

//! The file `selftests/grammar` and the parsers agree: what it derives is accepted, what it calls
//! wrong is refused, and no word of the language is missing from it.

#![cfg(not(loom))]

mod grammar_file;
mod lang_common;

use grammar_file::{
    dice,
    Grammar, //
};
use lang_common::world::World;
use rust_hist::{
    error::ErrKind,
    lang::{
        self,
        load_entries,
        EnableSpec, //
    },
    schema,
};
use std::collections::BTreeMap;

const TEXTS: u64 = 20_000;

#[test]
fn every_derived_trigger_parses() {
    let grammar = Grammar::read();

    for seed in 0..TEXTS {
        let text = grammar.derive("trigger", &mut dice(seed));
        let spec = lang::parse(b"hist", text.as_bytes());
        // More variables and handlers than there may be are no question of the grammar.
        let allowed = [
            ErrKind::TooManyVars,
            ErrKind::TooManyActions,
            // Nor are two quantiles that are one, or more than there may be.
            ErrKind::InvalidQuantile,
            ErrKind::TooManyQuantiles,
        ];

        if let Err(refusal) = spec {
            assert!(
                allowed.iter().any(|kind| refusal.is(*kind)),
                "{text}: {refusal:?}"
            );
        }
    }
}

/// The fields of the grammar's events are not those of the tests' events, so that not every trigger
/// is accepted here; but none may be refused for what it looks like.
#[test]
fn derived_triggers_are_refused_for_their_meaning_alone() {
    let grammar = Grammar::read();
    let mut refused = BTreeMap::<String, u64>::new();
    let mut accepted = 0u64;

    for seed in 0..TEXTS {
        let text = grammar.trigger_of_the_zoo(&mut dice(seed));

        match World::new().synth("done u64 x").compile(&text) {
            Ok(_) => accepted += 1,
            Err(refusal) => {
                if let Some(entry) = refusal.entry() {
                    assert!(!SYNTAX.contains(&entry.kind), "{text}: {refusal:?}");
                    *refused.entry(format!("{:?}", entry.kind)).or_default() += 1;
                }
            }
        }
    }
    assert!(accepted > TEXTS / 10, "{accepted} accepted, {refused:?}");
}

/// What is wrong with the text itself.
const SYNTAX: &[ErrKind] = &[
    ErrKind::NoKeys,
    ErrKind::NoFilter,
    ErrKind::EmptyAssignment,
    ErrKind::UnknownWord,
    ErrKind::InvalidSize,
    ErrKind::InvalidSizes,
    ErrKind::UnaryMinusParens,
    ErrKind::InvalidSortModifier,
];

#[test]
fn every_derived_synthetic_event_is_one() {
    let grammar = Grammar::read();

    for seed in 0..TEXTS {
        let text = grammar.derive("synthetic", &mut dice(seed));

        assert!(
            schema::parse(text.as_bytes(), |_| false).is_ok(),
            "{text}: {:?}",
            schema::parse(text.as_bytes(), |_| false)
        );
    }
    for text in grammar.words("wrong-synth") {
        let parsed = schema::parse(text.as_bytes(), |_| false);
        assert!(parsed.is_err(), "{text}: {parsed:?}");
    }
}

#[test]
fn every_derived_enabling_and_load_entry_parses() {
    let grammar = Grammar::read();

    for seed in 0..TEXTS {
        let text = grammar.derive("enable", &mut dice(seed));
        let (_, params) = text.split_once(':').expect("a prefix");
        let spec = EnableSpec::parse(params.as_bytes()).expect("parses");
        assert!(spec.limit().is_ok() && spec.filter().is_ok(), "{text}");

        let text = grammar.derive("load-entry", &mut dice(seed));
        let mut entries = load_entries(text.as_bytes());
        let entry = entries.next().expect("an entry");
        assert!(
            entry.names().is_some() && entries.next().is_none(),
            "{text}"
        );
    }
}

/// A word that is wrong in its place, in a trigger that is right but for that.
#[test]
fn what_the_grammar_calls_wrong_is_refused() {
    let places = [
        ("wrong-key", "keys=u8.@"),
        ("wrong-parts", "keys=u8.@"),
        ("wrong-quantile", "keys=u8.log2:quantiles(@)"),
        ("wrong-value", "keys=u8:vals=u16.@"),
        ("wrong-column", "keys=u8:sort=@"),
        ("wrong-definition", "keys=u8:@"),
        ("wrong-join", "keys=u8:aa=$bb:@"),
        ("wrong-size", "keys=u8:size=@"),
        ("wrong-action", "keys=u8:v=u8:onmax($v).@"),
        ("wrong-tracked", "keys=u8:v=u8:onmax(@).save(u8)"),
    ];
    let grammar = Grammar::read();
    let mut accepted = Vec::new();

    for (rule, place) in places {
        for word in grammar.words(rule) {
            let text = place.replace('@', word);
            if World::new().compile(&text).is_ok() {
                accepted.push(text);
            }
        }
    }
    assert!(accepted.is_empty(), "{accepted:?}");
}

/// Every word that the parser knows is in the file.
#[test]
fn no_word_is_missing() {
    let grammar = Grammar::read();
    let all: Vec<&str> = grammar
        .names()
        .flat_map(|name| grammar.words(name))
        .collect();

    for word in [
        "keys=",
        "key=",
        "vals=",
        "values=",
        "val=",
        "nohitcount",
        "NOHC",
        "pause",
        "cont",
        "continue",
        "clear",
        "hex",
        "sym",
        "sym-offset",
        "usecs",
        "syscall",
        "log2",
        "log2=6",
        "99.9",
        "percent",
        "sum",
        "min",
        "max",
        "avg",
        "stddev",
        "graph",
        "stacktrace",
        "common_stacktrace",
        "common_pid.execname",
        "hitcount",
        ".ascending",
        ".descending",
        "onmax",
        "onchange",
        "snapshot()",
        "join(",
        "others",
        "10s",
        "hist",
        "rhist",
    ] {
        assert!(all.contains(&word), "{word}");
    }
}
