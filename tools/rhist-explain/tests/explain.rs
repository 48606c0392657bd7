// SPDX-License-Identifier: GPL-2.0

//! Texts that the module accepts are explained; others are refused with the module's message.

#![allow(
    dead_code,
    reason = "the modules are those of a program and of other tests"
)]

#[path = "../src/any.rs"]
mod any;
#[path = "../src/explain.rs"]
mod explain;
#[path = "../../../selftests/host/tests/grammar_file/mod.rs"]
mod grammar_file;
#[path = "../../../selftests/host/tests/lang_common/mod.rs"]
mod lang_common;

use explain::explain;
use grammar_file::{
    dice,
    Grammar, //
};
use lang_common::world::World;
use std::{
    fs,
    path::Path, //
};

const TEXTS: u64 = 5_000;

/// Each line in the tests of recipes and of other questions that the tool says it would write is explained.
#[test]
fn what_the_tool_writes_is_explained() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rhist/tests/trycmd");
    let mut explained = 0;

    for entry in fs::read_dir(directory).expect("the tests of the tool") {
        let path = entry.expect("a file").path();

        for line in fs::read_to_string(&path).expect("text").lines() {
            let quoted = line
                .strip_prefix("echo '")
                .and_then(|line| line.split_once("' >> "));
            let Some((trigger, _)) = quoted.filter(|(_, file)| file.ends_with("/trigger")) else {
                continue;
            };
            let said = explain(trigger).unwrap_or_else(|wrong| panic!("{wrong}"));

            assert!(
                said.starts_with("Counts the hits of the event"),
                "{trigger}: {said}"
            );
            explained += 1;
        }
    }
    assert!(explained > 100, "{explained}");
}

/// Each text that is accepted for an event is explained without the event.
#[test]
fn what_the_module_takes_is_explained() {
    let grammar = Grammar::read();
    let mut accepted = 0;

    for seed in 0..TEXTS {
        let text = grammar.trigger_of_the_zoo(&mut dice(seed));

        if World::new().synth("done u64 x").compile(&text).is_err() {
            continue;
        }
        let said = explain(&format!("hist:{text}"));

        assert!(said.is_ok(), "{}", said.unwrap_err());
        accepted += 1;
    }
    assert!(accepted > TEXTS / 10, "{accepted}");
}

/// A text that no event makes valid has the message and the caret of the module.
#[test]
fn what_the_module_refuses_is_refused_alike() {
    let grammar = Grammar::read();
    let mut refused = 0;

    for (rule, before) in [
        ("wrong-key", "keys=u8."),
        ("wrong-parts", "keys=u8."),
        ("wrong-value", "keys=u8:vals=u16."),
        ("wrong-size", "keys=u8:size="),
    ] {
        // A stack is one where its event says so, and a name with two dots is a variable of another event.
        for word in grammar
            .words(rule)
            .into_iter()
            .filter(|&word| word != "stacktrace" && !word.contains('.'))
        {
            let trigger = format!("hist:{before}{word}");
            let refusal = lang_common::create(
                &mut lang_common::ZOO.clone(),
                trigger.strip_prefix("hist:").unwrap().as_bytes(),
            )
            .expect_err(&trigger);
            let entry = refusal.entry().expect("a message");
            let text = entry.kind.text().to_string_lossy();
            let mark = format!("\n  {trigger}\n  {}^", " ".repeat(entry.at.into()));
            let wrong = explain(&trigger).expect_err(&trigger);

            assert!(
                wrong.starts_with(&*text) && wrong.ends_with(&mark),
                "{wrong}, {text}{mark}"
            );
            refused += 1;
        }
    }
    assert!(refused > 10, "{refused}");
}

#[test]
fn triggers_are_in_words() {
    let said = explain(
        "hist:keys=call_site.sym,common_pid.execname:vals=bytes_req,bytes_req.max:sort=bytes_req.descending:size=4096 \
         if bytes_req > 8",
    );
    assert_eq!(
        said.as_deref(),
        Ok(
            "Counts the hits of the event, a row for each call_site (as a symbol) and common_pid (with the name of the task).\n\
             Columns: the sum of bytes_req and the largest bytes_req.\n\
             Rows are in the order of bytes_req, largest first.\n\
             The table has room for 4096 rows; hits of new keys are dropped when it is full.\n\
             Only records count for which this is true: bytes_req > 8.\n"
        )
    );

    let said = explain(
        "!rhist:join(next_pid):lat=common_timestamp-$ts0:keys=next_comm,$lat.log2=3:quantiles(50,99):size=128..1024\
         :overhead(1.5%)",
    );
    assert_eq!(
        said.as_deref(),
        Ok(
            "Removes the trigger that does this:\n\
             Counts the hits of the event, a row for each next_comm and power of two of $lat, in 8 parts.\n\
             Keeps the time since $ts0 as $lat.\n\
             Variables of other triggers are found by next_pid.\n\
             Of $lat it shows the percentiles 50 and 99, in place of rows.\n\
             The table has room for 128 rows and grows up to 1024; hits of new keys are dropped when it is full.\n\
             It measures what it costs, and pauses above 1.5 % of all CPUs.\n"
        )
    );

    let said =
        explain("hist:keys=pid:ts0=common_timestamp.usecs:expire(10s):onmax($ts0).save(comm,prio)");
    assert!(said
        .unwrap_err()
        .starts_with("expire() can't be combined with onmax"));

    let said = explain("enable_hist:sched:sched_switch:5 if next_pid == 1");
    assert_eq!(
        said.as_deref(),
        Ok(
            "Each hit has the histograms of sched:sched_switch go on.\nIt does so 5 times.\n\
            Only records count for which this is true: next_pid == 1.\n"
        )
    );
}

#[test]
fn what_is_no_trigger_is_said() {
    for (text, what) in [
        ("keys=a", "a trigger begins with 'hist:'"),
        (
            "traceon:5",
            "a histogram begins with 'hist:', not with 'traceon:'",
        ),
        ("hist:", "No keys given"),
        ("hist:keys=ü", "Couldn't find field"),
        ("enable_hist:sched", "it is 'enable_hist:SYSTEM:EVENT"),
    ] {
        let wrong = explain(text).expect_err(text);

        assert!(wrong.starts_with(what) && wrong.ends_with('^'), "{wrong}");
    }
}
