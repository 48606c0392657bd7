// SPDX-License-Identifier: GPL-2.0

//! `quantiles()`: what is accepted, how it prints, and what is refused.

#![cfg(not(loom))]

mod lang_common;

use lang_common::*;
use proptest::prelude::*;
use rust_hist::{
    error::{
        ErrKind::*,
        Errno::Einval, //
    },
    lang::Quantile, //
};

const KEYS: &str = "keys=prev_comm,prev_pid.log2=3";
const VALS: &str = ":vals=hitcount";
const SIZE: &str = ":size=2048";

/// A trigger prints with these quantiles and this order.
fn prints(rest: &str, sort: &str, quantiles: &str) {
    accepts(
        &SWITCH,
        &format!("{KEYS}{rest}"),
        &format!("{KEYS}{VALS}:sort={sort}{SIZE}:quantiles({quantiles})"),
    );
}

#[test]
fn quantiles_print_as_short_as_they_may_be_typed() {
    prints(":quantiles(50)", "hitcount", "50");
    prints(":quantiles(50.000, 099,99.90)", "hitcount", "50,99,99.9");
    prints(
        ":quantiles(0.001,0.01,0.1,1,10,99.999,99.99,100)",
        "hitcount",
        "0.001,0.01,0.1,1,10,99.999,99.99,100",
    );
    // Of several lists the last one counts.
    prints(":quantiles(1,2):quantiles(3)", "hitcount", "3");
}

#[test]
fn they_follow_the_actions_and_precede_the_filter() {
    accepts(
        &SWITCH,
        "quantiles(99):keys=prev_pid.buckets=10:p=prev_prio:onmax($p).snapshot() if prev_pid > 1",
        "keys=prev_pid.buckets=10:vals=hitcount:p=prev_prio:sort=hitcount:size=2048\
         :onmax($p).snapshot():quantiles(99) if prev_pid > 1",
    );
    // The state at the end of a line.
    for state in ["", " [active]", " [paused]"] {
        accepts(
            &SWITCH,
            &format!("{KEYS}:quantiles(99){state}"),
            &format!("{KEYS}{VALS}:sort=hitcount{SIZE}:quantiles(99)"),
        );
    }
}

#[test]
fn rows_can_be_sorted_by_them() {
    prints(
        ":quantiles(50,99):sort=prev_pid.p99.descending",
        "prev_pid.p99.descending",
        "50,99",
    );
    prints(
        ":quantiles(99,99.9):sort=prev_pid.p99.9,prev_pid.p99.ascending",
        "prev_pid.p99.9,prev_pid.p99",
        "99,99.9",
    );
    prints(
        ":quantiles(99):sort=prev_comm,hitcount.descending",
        "prev_comm,hitcount.descending",
        "99",
    );
    // The sum of the same field.
    accepts(
        &SWITCH,
        "keys=prev_pid.log2:vals=prev_pid:sort=prev_pid:quantiles(1)",
        "keys=prev_pid.log2:vals=hitcount,prev_pid:sort=prev_pid:size=2048:quantiles(1)",
    );
}

#[test]
fn what_is_no_quantile_is_refused() {
    for wrong in [
        "",
        "0",
        "0.000",
        "100.001",
        "101",
        "-1",
        "+1",
        "1.",
        ".5",
        "1.2345",
        "p50",
        "5 0",
        "0x10",
        "1e1",
        "99999999999999999999",
        "18446744073709551617",
    ] {
        explains(
            &SWITCH,
            &format!("hist:{KEYS}:quantiles(50,^{wrong})"),
            Einval,
            InvalidQuantile,
        );
    }
    explains(
        &SWITCH,
        &format!("hist:{KEYS}:quantiles(^)"),
        Einval,
        InvalidQuantile,
    );
    explains(
        &SWITCH,
        &format!("hist:{KEYS}:quantiles(50,^50.0)"),
        Einval,
        InvalidQuantile,
    );
    explains(
        &SWITCH,
        &format!("hist:{KEYS}:quantiles(1,2,3,4,5,6,7,8,^9)"),
        Einval,
        TooManyQuantiles,
    );
    refuses(
        &SWITCH,
        &format!("hist:{KEYS}:quantiles(^50"),
        Einval,
        NoClosingParen,
    );
    explains(
        &SWITCH,
        &format!("hist:{KEYS}:quantiles(50)^x"),
        Einval,
        UnknownWord,
    );
    explains(
        &SWITCH,
        &format!("hist:{KEYS}:^quantile(50)"),
        Einval,
        UnknownWord,
    );
    explains(
        &SWITCH,
        &format!("hist:{KEYS}:^quantiles"),
        Einval,
        UnknownWord,
    );
    // With an equals sign it is a variable, as in C.
    refuses(
        &SWITCH,
        &format!("hist:{KEYS}:quantiles=^50x"),
        Einval,
        ExpectNumber,
    );
}

#[test]
fn one_key_is_folded() {
    explains(
        &SWITCH,
        "hist:keys=prev_pid,prev_comm:^quantiles(50)",
        Einval,
        QuantilesKey,
    );
    explains(
        &SWITCH,
        "hist:keys=prev_pid.log2,prev_comm,^prev_prio.buckets=3:quantiles(50)",
        Einval,
        QuantilesKey,
    );
    // An expression is none, whatever its operands are.
    explains(
        &SWITCH,
        "hist:keys=prev_pid.log2+1:^quantiles(50)",
        Einval,
        QuantilesKey,
    );
    for key in ["prev_pid.log2", "prev_pid.log2=6", "prev_pid.buckets=1"] {
        let program = accepts(
            &SWITCH,
            &format!("keys=prev_comm,{key}:quantiles(50)"),
            &format!("keys=prev_comm,{key}{VALS}:sort=hitcount{SIZE}:quantiles(50)"),
        );

        assert_eq!(program.folded_key(), program.keys.get(1));
        assert_eq!(program.quantiles(), [Quantile::parse(b"50").expect("one")]);
    }
    assert_eq!(
        keys(&SWITCH, "prev_pid.log2", "prev_pid.log2").folded_key(),
        None
    );
}

#[test]
fn what_would_be_lost_is_refused() {
    explains(
        &SWITCH,
        &format!("hist:{KEYS}:p=prev_prio:onmax($p).^save(prev_comm):quantiles(50)"),
        Einval,
        QuantilesSave,
    );
    for sort in [
        "prev_pid",
        "prev_pid.descending",
        "prev_pid.log2=3",
        "prev_pid.log2=3.descending",
    ] {
        explains(
            &SWITCH,
            &format!("hist:{KEYS}:sort=hitcount,^{sort}:quantiles(50)"),
            Einval,
            FoldedSort,
        );
    }
    refuses(
        &SWITCH,
        &format!("hist:{KEYS}:sort=prev_pid.^p51:quantiles(50)"),
        Einval,
        InvalidSortModifier,
    );
    refuses(
        &SWITCH,
        &format!("hist:{KEYS}:sort=prev_pid.^p50"),
        Einval,
        InvalidSortModifier,
    );
}

#[test]
fn they_tell_two_triggers_apart() {
    let one = |quantiles: &str| {
        let text = format!("{KEYS}{quantiles}");

        (compile(&SWITCH, text.as_bytes()).expect("a trigger"), text)
    };
    let same = |a: &str, b: &str| {
        let ((a, a_text), (b, b_text)) = (one(a), one(b));
        let same = a.same_trigger(a_text.as_bytes(), &b, b_text.as_bytes());

        assert_eq!(same, a.same_shape(a_text.as_bytes(), &b, b_text.as_bytes()));
        same
    };

    assert!(same(":quantiles(50)", ":quantiles(50.0)"));
    assert!(!same(":quantiles(50)", ":quantiles(51)"));
    assert!(!same(":quantiles(50,51)", ":quantiles(51,50)"));
    assert!(!same(":quantiles(50)", ""));
}

proptest! {
    /// The rank is the smallest number that is not below the share.
    #[test]
    fn ranks_are_rounded_up(units in 1u32..=100_000, hits: u64, shift in 0u32..64) {
        let hits = hits >> shift;
        let text = format!("{}.{:03}", units / 1000, units % 1000);
        let quantile = Quantile::parse(text.as_bytes()).expect("a quantile");
        let exact = (u128::from(hits) * u128::from(units)).div_ceil(100_000);

        prop_assert_eq!(u128::from(quantile.rank(hits)), exact);
    }
}
