// SPDX-License-Identifier: GPL-2.0

//! what triggers say of their table beyond its size: that it grows, sums what finds no room, and forgets
//! starts; what is accepted, how it prints, what is refused.

#![cfg(not(loom))]

mod lang_common;

use lang_common::*;
use rust_hist::error::{
    ErrKind::*,
    Errno::{
        Einval,
        Erange, //
    },
};

/// Whether the triggers of `common` and `a`, and of `common` and `b`, have tables of one shape, and are the same.
fn are_same(common: &str, a: &str, b: &str) -> (bool, bool) {
    let (a_text, b_text) = (format!("{common}{a}"), format!("{common}{b}"));
    let (a, b) = (
        compile(&KMALLOC, a_text.as_bytes()).expect("right"),
        compile(&KMALLOC, b_text.as_bytes()).expect("right"),
    );

    (
        a.same_shape(a_text.as_bytes(), &b, b_text.as_bytes()),
        a.same_trigger(a_text.as_bytes(), &b, b_text.as_bytes()),
    )
}

#[test]
fn x_60_sizes_of_a_table_that_grows() {
    for (size, bits, line) in [
        ("128..256", (7, 8), "128..256"),
        ("65..0x100", (7, 8), "128..256"),
        ("1000..1048576", (10, 20), "1024..1048576"),
        ("0400..256", (8, 8), "256..256"),
        ("262144..524289", (18, 20), "262144..1048576"),
    ] {
        let text = format!("keys=node:size={size}");
        let p = compile(&KMALLOC, text.as_bytes()).expect(size);

        assert_eq!((p.bits, p.grows_to), (bits.0, Some(bits.1)), "{size}");
        let shown = String::from_utf8(line_of(&p, text.as_bytes())).expect("ASCII");
        assert!(shown.contains(&format!(":size={line} ")), "{shown}");
    }
    for (size, errno) in [
        ("^64..256", Einval),
        ("^0..256", Einval),
        ("^..256", Einval),
        ("^..", Einval),
        ("^x..256", Einval),
        ("128..^", Einval),
        ("128..^0", Einval),
        ("128..^x", Einval),
        ("128..^1048577", Einval),
        ("128..^256..512", Einval),
        ("128..^.256", Einval),
        ("^512..256", Einval),
        ("^256..255", Einval),
        ("^1048577..1048577", Einval),
        ("128..^99999999999999999999", Erange),
        ("^99999999999999999999..128", Erange),
    ] {
        explains(
            &KMALLOC,
            &format!("hist:keys=node:size={size}"),
            errno,
            InvalidSizes,
        );
    }
    // One alone has C's limit.
    for size in ["^262144", "^1048576", "^128.256"] {
        explains(
            &KMALLOC,
            &format!("hist:keys=node:size={size}"),
            Einval,
            InvalidSize,
        );
    }
}

#[test]
fn x_60_x_61_what_rows_keep() {
    for (grows, is_refused) in [
        ("keys=node:v=common_pid.execname:size=^128..256", true),
        ("keys=node:v=common_comm:size=^128..256", true),
        ("keys=node:v=common_stacktrace:w=ptr:size=^128..256", true),
        // Numbers and tracked values find their way to a larger table, but are of one key.
        ("keys=node:v=ptr:onmax($v).save(ptr):size=128..256", false),
        (
            "keys=node:v=ptr:onchange($v).snapshot():size=128..256",
            false,
        ),
        (
            "keys=node:v=ptr:onover($v,10).save(ptr):size=128..256",
            false,
        ),
        ("keys=node:v=ptr:size=128..256", false),
        (
            "keys=common_pid.execname:v=ptr,w=node+1:size=128..256",
            false,
        ),
    ] {
        match is_refused {
            true => explains(&KMALLOC, &format!("hist:{grows}"), Einval, GrowingVars),
            false => _ = compile(&KMALLOC, grows.as_bytes()).expect(grows),
        }
        for size in ["size=256", "size=128..256"] {
            let text = grows.replace('^', "").replace("size=128..256", size);
            explains(
                &KMALLOC,
                &format!("hist:{text}:^others"),
                Einval,
                OthersVars,
            );
        }
    }
    for text in [
        // They do not grow.
        "keys=node:v=common_comm:size=256..256",
        "keys=node:v=ptr:onmax($v).save(ptr):size=256..256",
        // No variable is kept.
        "keys=$v:v=ptr+1:size=128..256:others",
        "keys=common_pid.execname:vals=ptr:size=128..256:others",
        "keys=node:others",
    ] {
        let p = compile(&KMALLOC, text.as_bytes()).expect(text);

        assert_eq!(p.others, text.contains("others"));
        let shown = String::from_utf8(line_of(&p, text.as_bytes())).expect("ASCII");
        assert_eq!(shown.contains(":others ["), p.others, "{shown}");
    }
}

#[test]
fn x_65_how_long_starts_are_kept() {
    for (time, ms) in [
        ("100ms", 100),
        ("0x64ms", 100),
        ("10s", 10_000),
        ("5m", 300_000),
        ("1h", 3_600_000),
        ("3600s", 3_600_000),
    ] {
        let text = format!("keys=node:v=ptr:expire({time})");
        let p = compile(&KMALLOC, text.as_bytes()).expect(time);
        let shown = String::from_utf8(line_of(&p, text.as_bytes())).expect("ASCII");

        assert_eq!(p.expiry().map(|expiry| expiry.ms), Some(ms));
        let shown_time = time.replace("0x64", "100");
        assert!(
            shown
                .trim_end()
                .ends_with(&format!(":size=2048:expire({shown_time}) [active]")),
            "{shown}"
        );
    }
    for time in [
        "^99ms",
        "^3600001ms",
        "^61m",
        "^2h",
        "^0s",
        "^10",
        "^s",
        "^",
        "^10us",
        "^-1s",
        "^1.5s",
        "^10S",
        "^99999999999999999999s",
        "^1h30m",
        "^99999999999999999h",
    ] {
        let text = format!("hist:keys=node:v=ptr:expire({time})");
        explains(&KMALLOC, &text, Einval, InvalidExpiry);
    }
    explains(
        &KMALLOC,
        "hist:keys=node:v=ptr:expire(^10s",
        Einval,
        InvalidExpiry,
    );
    explains(
        &KMALLOC,
        "hist:keys=node:v=ptr:^expire",
        Einval,
        UnknownWord,
    );
    explains(
        &KMALLOC,
        "hist:keys=node:v=ptr:expire(10s):^expire(10s)",
        Einval,
        ExpiryTwice,
    );
}

#[test]
fn x_65_what_expires() {
    for (text, kind) in [
        ("keys=node:^expire(10s)", ExpiryNoVar),
        ("keys=node:v=common_comm:^expire(10s)", ExpiryNoVar),
        ("keys=$v:v=ptr+1:^expire(10s)", ExpiryNoVar),
        (
            "keys=node:v=ptr:onmax($v).save(ptr):^expire(10s)",
            ExpiryTracks,
        ),
        (
            "keys=node:v=ptr:^expire(10s):onchange($v).save(ptr)",
            ExpiryTracks,
        ),
        (
            "keys=node:v=ptr:^expire(10s):onover($v,5).save(ptr)",
            ExpiryTracks,
        ),
        ("keys=node:v=ptr:expire(10s):^others", OthersVars),
    ] {
        explains(&KMALLOC, &format!("hist:{text}"), Einval, kind);
    }
    // Nothing has to find its way to a larger table.
    for text in [
        "keys=node:v=ptr,c=common_comm,s=common_stacktrace:size=128..256:expire(10s)",
        "keys=node:v=common_pid.execname,w=ptr:size=128..256:expire(10s)",
    ] {
        let p = compile(&KMALLOC, text.as_bytes()).expect(text);

        assert!(p.may_grow() && !p.moves());
    }
    let p = compile(&KMALLOC, b"keys=node:v=ptr:size=128..256").expect("right");
    assert!(p.may_grow() && p.moves());

    // As a size it does not tell a trigger from another one, but is that of the table.
    let same = |a: &str, b: &str| are_same("keys=node:v=ptr", a, b);
    assert_eq!(same(":expire(60s)", ":expire(1m)"), (true, true));
    assert_eq!(same(":expire(60s)", ":expire(61s)"), (false, true));
    assert_eq!(same(":expire(60s)", ""), (false, true));
}

/// The words of a row that are copied, and those behind them, which are numbers.
#[test]
fn x_60_fixed_words() {
    for (text, fixed, all) in [
        ("keys=node:size=128..256", 0, 0),
        ("keys=common_pid.execname:size=128..256", 2, 2),
        ("keys=node:v=ptr:size=128..256", 0, 2),
        (
            "keys=common_pid.execname:v=ptr,w=node+1:size=128..256",
            2,
            6,
        ),
        ("keys=$u:u=node+1,v=ptr:size=128..256", 0, 2),
    ] {
        let p = compile(&KMALLOC, text.as_bytes()).expect(text);

        assert_eq!((p.fixed_words(), p.aux_words()), (fixed, all), "{text}");
    }
}

#[test]
fn x_60_x_61_triggers_that_share_a_table_agree() {
    let same = |a: &str, b: &str| are_same("keys=node", a, b);

    assert_eq!(same(":size=128", ":size=256"), (true, true));
    assert_eq!(same(":size=128..512", ":size=100..512"), (true, true));
    // The size does not tell a trigger from another one, but it has to be that of the table.
    assert_eq!(same(":size=128..512", ":size=128"), (false, true));
    assert_eq!(same(":size=128..512", ":size=128..256"), (false, true));
    assert_eq!(same(":size=128..512", ":size=256..512"), (false, true));
    assert_eq!(same(":others", ""), (false, false));
    assert_eq!(same(":others", ":others"), (true, true));
}
