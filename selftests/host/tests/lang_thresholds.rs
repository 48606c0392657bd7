// SPDX-License-Identifier: GPL-2.0

//! `onchange($x,DELTA)`, `onover($x,T[,H])` and `limit(N/s)`: what is accepted, how it prints, what is refused.

#![cfg(not(loom))]

mod lang_common;

use lang_common::*;
use rust_hist::error::{
    ErrKind::*,
    Errno::Einval, //
};

/// A signed number and an unsigned one.
const VARS: &str = "keys=prev_pid:x=next_prio,t=common_timestamp";
const TABLE: &str = ":sort=hitcount:size=2048:clock=global";

fn prints(typed: &str, printed: &str) {
    accepts(
        &SWITCH,
        &format!("{VARS}:{typed}"),
        &format!("keys=prev_pid:vals=hitcount:x=next_prio,t=common_timestamp{TABLE}:{printed}"),
    );
}

#[test]
fn they_print_as_they_were_typed() {
    for text in [
        "onchange($x,5).save(next_pid)",
        "onchange($x,0x10).snapshot()",
        "onover($x,-5).snapshot()",
        "onover($x,10,3).save(next_pid)",
        "onover($x, 10, 3).snapshot()",
        "onover($t,18446744073709551615).snapshot()",
        "onover($t,5,5).snapshot()",
        "onover($x,-9223372036854775808).snapshot()",
        "onover($x,1).snapshot():limit(1000000/s)",
        "onover($x,1).snapshot():onchange($t,2).save(next_pid):limit(10/m)",
        "onmax($x).snapshot():limit(1/h)",
    ] {
        prints(text, text);
    }
    // The limit comes behind the actions, and of several the last one counts.
    prints(
        "limit(010/s):onmax($x).snapshot():limit(0x10/s)",
        "onmax($x).snapshot():limit(16/s)",
    );
}

#[test]
fn other_numbers_are_another_trigger() {
    let compiled = |rest: &str| {
        let text = format!("{VARS}:{rest}");
        let program = compile(&SWITCH, text.as_bytes()).expect("accepted");
        (program, text)
    };
    let all: Vec<_> = [
        "onchange($x).snapshot()",
        "onchange($x,5).snapshot()",
        "onchange($x,6).snapshot()",
        "onover($x,6).snapshot()",
        "onover($x,6,1).snapshot()",
        "onover($x,6).snapshot():limit(1/s)",
        "onover($x,6).snapshot():limit(1/m)",
    ]
    .map(compiled)
    .into();

    for (i, (a, a_text)) in all.iter().enumerate() {
        for (j, (b, b_text)) in all.iter().enumerate() {
            let same = a.same_trigger(a_text.as_bytes(), b, b_text.as_bytes());
            assert_eq!(same, i == j, "{a_text} {b_text}");
        }
    }
}

#[test]
fn numbers_out_of_range_are_refused() {
    let explained =
        |marked: &str, kind| explains(&SWITCH, &format!("hist:{VARS}:{marked}"), Einval, kind);

    for delta in ["0", "-1", "", "x", "1,2", "18446744073709551616"] {
        explained(&format!("onchange($x,^{delta}).snapshot()"), InvalidDelta);
    }
    explained("onover(^$x).snapshot()", InvalidThreshold);
    for over in [
        "",
        "x",
        "9223372036854775808",
        "-9223372036854775809",
        "--5",
        "1.5",
    ] {
        explained(&format!("onover($x,^{over}).snapshot()"), InvalidThreshold);
    }
    explained("onover($t,^-1).snapshot()", InvalidThreshold);
    for back in ["", "-1", "x", "1,1"] {
        explained(
            &format!("onover($x,5,^{back}).snapshot()"),
            InvalidHysteresis,
        );
    }
    explained("onover($t,5,^6).snapshot()", InvalidHysteresis);
    explained(
        "onover($x,-9223372036854775808,^1).snapshot()",
        InvalidHysteresis,
    );
    for limit in [
        "",
        "1",
        "1/",
        "/s",
        "0/s",
        "1/d",
        "1/ss",
        "1000001/s",
        "-1/s",
        "1/s,2/s",
    ] {
        explained(
            &format!("onmax($x).snapshot():limit(^{limit})"),
            InvalidLimit,
        );
    }
    explained("onmax($x).snapshot():limit(^1/s", InvalidLimit);
    explained("^limit(1/s)", LimitNoAction);
}

#[test]
fn the_variable_is_looked_up_as_in_other_handlers() {
    let refused =
        |marked: &str, kind| refuses(&SWITCH, &format!("hist:{VARS}:{marked}"), Einval, kind);

    for rest in [",5", ",5,1"] {
        refused(&format!("onover($^y{rest}).snapshot()"), OnxVarNotFound);
        refused(&format!("onover(^x{rest}).snapshot()"), OnxNotVar);
    }
    refused("onchange($^y,5).snapshot()", OnxVarNotFound);
    // onmax() has one parameter, which is the name of a variable.
    refused("onmax($^x,5).snapshot()", OnxVarNotFound);
    refused("onover(^$x,5", NoClosingParen);
}
