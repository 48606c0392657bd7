// SPDX-License-Identifier: GPL-2.0

//! `overhead` and `overhead(P%)`: what is accepted, how it prints, what is refused.

#![cfg(not(loom))]

mod lang_common;

use lang_common::*;
use rust_hist::{
    error::{
        ErrKind::*,
        Errno::Einval, //
    },
    lang,
    overhead::Budget, //
};

const TABLE: &str = "keys=prev_pid:vals=hitcount:sort=hitcount:size=2048";

#[test]
fn it_prints_behind_all_others_and_as_short_as_it_may_be_typed() {
    for (typed, printed) in [
        ("overhead", "overhead"),
        ("overhead(1%)", "overhead(1%)"),
        ("overhead(0.01%)", "overhead(0.01%)"),
        ("overhead(00.010%)", "overhead(0.01%)"),
        ("overhead(12.5%)", "overhead(12.5%)"),
        ("overhead(0.125%)", "overhead(0.125%)"),
        ("overhead(100%)", "overhead(100%)"),
        ("overhead(100.000%)", "overhead(100%)"),
        // Of several the last one counts.
        ("overhead(1%):overhead(2%)", "overhead(2%)"),
        ("overhead(1%):overhead", "overhead"),
        ("overhead:overhead(3%)", "overhead(3%)"),
    ] {
        let printed = format!("{TABLE}:{printed}");
        accepts(&SWITCH, &format!("keys=prev_pid:{typed}"), &printed);
        accepts(&SWITCH, &format!("{typed}:keys=prev_pid"), &printed);
    }
    accepts(
        &SWITCH,
        "keys=prev_pid.log2:overhead(1%):p=next_prio:quantiles(50):onmax($p).snapshot():limit(1/s) if next_prio > 5",
        "keys=prev_pid.log2:vals=hitcount:p=next_prio:sort=hitcount:size=2048:onmax($p).snapshot():limit(1/s)\
         :quantiles(50):overhead(1%) if next_prio > 5",
    );
}

#[test]
fn the_line_makes_the_same_trigger_in_its_state() {
    for (state, is_paused) in [("active", false), ("paused", true)] {
        for word in ["overhead", "overhead(0.5%)"] {
            let text = format!("{TABLE}:{word} [{state}]");
            let program = compile(&SWITCH, text.as_bytes()).expect("accepted");
            assert_eq!(program.starts_paused, is_paused, "{text}");
        }
    }
}

#[test]
fn it_does_not_identify_a_trigger() {
    let all = ["", ":overhead", ":overhead(1%)", ":overhead(2%)"].map(|rest| {
        let text = format!("keys=prev_pid{rest}");
        (compile(&SWITCH, text.as_bytes()).expect("accepted"), text)
    });
    for (a, a_text) in &all {
        for (b, b_text) in &all {
            let (a_text, b_text) = (a_text.as_bytes(), b_text.as_bytes());
            assert!(a.same_trigger(a_text, b, b_text));
            assert!(a.same_shape(a_text, b, b_text));
        }
    }
}

#[test]
fn what_is_no_percentage_is_refused() {
    for percentage in [
        "",
        "%",
        "0%",
        "0.009%",
        "100.001%",
        "101%",
        "4294967296%",
        "1",
        "1%%",
        "-1%",
        "+1%",
        ".5%",
        "1.%",
        "1.2345%",
        "1e1%",
        "0x1%",
        " 1%",
        "1 %",
        "1%,2%",
    ] {
        let text = format!("hist:keys=prev_pid:overhead(^{percentage})");
        explains(&SWITCH, &text, Einval, InvalidBudget);
    }
    for end in ["1%", "1", "1%)x"] {
        let text = format!("hist:keys=prev_pid:overhead(^{end}");
        explains(&SWITCH, &text, Einval, InvalidBudget);
    }
    for word in ["overheads", "overhead)", "over", " overhead", "Overhead"] {
        let text = format!("hist:keys=prev_pid:^{word}");
        explains(&SWITCH, &text, Einval, UnknownWord);
    }
    // With `=` it is a variable, as in C.
    accepts(
        &SWITCH,
        "keys=prev_pid:overhead=next_prio",
        "keys=prev_pid:vals=hitcount:overhead=next_prio:sort=hitcount:size=2048",
    );
}

#[test]
fn every_thousandth_of_the_range_is_a_budget() {
    for n in 0..=100_010 {
        let text = format!("keys=a:overhead({}.{:03}%)", n / 1000, n % 1000);
        let is_one = (10..=100_000).contains(&n);
        assert_eq!(
            lang::parse(b"hist", text.as_bytes()).is_ok(),
            is_one,
            "{text}"
        );
        assert_eq!(Budget::new(n).map(Budget::thousandths), is_one.then_some(n));
    }
}
