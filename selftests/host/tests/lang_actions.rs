// SPDX-License-Identifier: GPL-2.0

//! Handlers and actions: what is accepted and how it prints, what is refused and why.
//!
//! The names of the tests are ids of the behaviour inventory.

#![cfg(not(loom))]

mod lang_common;

use lang_common::vars::*;
use rust_hist::{
    error::{
        ErrKind::*,
        Errno::{
            Eexist,
            Einval,
            Enomem, //
        }, //
    },
    program::{
        ActionKind,
        Handler,
        Purpose, //
    }, //
};

#[test]
fn h_cmd_22_handlers() {
    let mut world = world();
    let nine = ":onmax($x).snapshot()".repeat(9);

    assert!(world
        .compile(&format!(
            "keys=s32:x=u8{}",
            &nine["onmax($x).snapshot():".len()..]
        ))
        .is_ok());

    let text = format!("keys=s32:x=u8{nine}");
    let at = "hist:".len() + text.len() - ":onmax($x).snapshot()".len() + 1;

    world.refuses_at(&text, Einval, (TooManyActions, at));
}

#[test]
fn h_act_01_onmatch() {
    let mut world = world();

    for (handler, entry) in [
        ("onmatch(kmem.kmalloc", (NoClosingParen, "kmem.kmalloc")),
        ("onmatch(", (NoClosingParen, "onmatch(^")),
        ("onmatch(kmem)", (SubsysNotFound, "kmem")),
        ("onmatch()", (SubsysNotFound, "^)")),
        ("onmatch(kmem.junk)", (InvalidSubsysEvent, "junk")),
        ("onmatch(junk.kmalloc)", (InvalidSubsysEvent, "kmalloc")),
        ("onmatch(kmem.)", (InvalidSubsysEvent, "kmem.^)")),
        ("onmatch(kmem.kmalloc)", (ActionNotFound, "")),
        ("onmatch(kmem.kmalloc).", (ActionNotFound, "")),
        ("onmatch(kmem.kmalloc).syn", (ActionNotFound, "")),
        ("onmatch(kmem.kmalloc).syn(", (InvalidParam, "syn(^")),
        ("onmatch(kmem.kmalloc).syn()", (InvalidParam, "syn(^)")),
        ("onmatch(kmem.kmalloc).syn(u8, )", (InvalidParam, "u8,^ )")),
        ("onmatch(kmem.kmalloc).syn(u8,$)", (InvalidParam, "$")),
        // C wants two bytes of each parameter.
        ("onmatch(kmem.kmalloc).syn(u)", (SynthEventNotFound, "syn")),
        ("onmatch(kmem.kmalloc).trace(z)", (SynthEventNotFound, "z")),
        ("onmatch(kmem.kmalloc).save(u8)", (ActionMismatch, "save")),
        ("onmatch(kmem.kmalloc).save()", (InvalidParam, "save(^)")),
        (
            "onmatch(kmem.kmalloc).snapshot()",
            (ActionMismatch, "snapshot"),
        ),
        (
            "onmatch(kmem.kmalloc).snapshot(",
            (NoClosingParen, "snapshot(^"),
        ),
        (
            "onmatch(kmem.kmalloc).snapshot(foo",
            (NoClosingParen, "foo"),
        ),
        // There is no synthetic event of any name.
        ("onmatch(kmem.kmalloc).syn(u8)", (SynthEventNotFound, "syn")),
        (
            "onmatch(kmem.kmalloc).trace(synth,u8)",
            (SynthEventNotFound, "synth"),
        ),
        (
            "onmatch(kmem.kmalloc).trace(synth)",
            (SynthEventNotFound, "synth"),
        ),
        (
            "onmatch(kmem.kmalloc).tracer(u16,u8)",
            (SynthEventNotFound, "u16"),
        ),
    ] {
        world.refuses(&format!("keys=s32:{handler}"), Einval, entry);
    }
    // That comes last.
    world.refuses(
        "keys=s32:onmatch(kmem.kmalloc).syn(u8):sort=junk",
        Einval,
        (InvalidSortField, "junk"),
    );
    // A removal does not get that far.
    for text in [
        "keys=s32:onmatch(kmem.kmalloc).syn(u8)",
        "keys=s32:onmatch(kmem.kmalloc).trace(synth,$u8,a.b.c)",
        "keys=s32:onmax($junk).save(junk)",
    ] {
        assert!(compile_with(&mut world, text, Purpose::Change).is_ok());
    }
}

#[test]
fn h_act_03_and_04_tracked_variables() {
    let mut world = world();

    for handler in ["onmax", "onchange"] {
        for (typed, printed) in [
            ("($x).save(u8,u16)", "($x).save(u8,u16)"),
            ("($x).save( u8 , u16 )", "($x).save(u8,u16)"),
            ("($x).save(u8,u16", "($x).save(u8,u16)"),
            ("($x).save(u8)junk", "($x).save(u8)"),
            ("($x)junk.save(u8)", "($x).save(u8)"),
            ("($x).savefoo(u8)", "($x).savefoo(u8)"),
            ("($x).snapshot()", "($x).snapshot()"),
            ("($x).snapshot(junk)", "($x).snapshot()"),
            ("($x).save(u8.hex,u16.log2)", "($x).save(u8.hex,u16.log2)"),
            ("($x).save($prio)", "($x).save($prio)"),
            (
                "($x).save(sched.switch.$prio)",
                "($x).save(sched.switch.$prio)",
            ),
            ("($x).save(zap.zip.u8)", "($x).save(zap.zip.u8)"),
            ("($x).save(55,0x10)", "($x).save(55,0x10)"),
            ("($x).save(filename,comm)", "($x).save(filename,comm)"),
            ("($x).save(u8,u8)", "($x).save(u8,u8)"),
            (
                "($x).save(common_pid.execname)",
                "($x).save(common_pid.execname)",
            ),
            ("($y).save(u8)", "($y).save(u8)"),
        ] {
            let p = world.accepts(
                &format!("keys=s32:x=u8:y=$prio+1:{handler}{typed}"),
                &line("", ":x=u8,y=$prio+1", &format!(":{handler}{printed}")),
            );
            let expected = usize::from(typed.starts_with("($y"));

            assert_eq!(p.actions[0].handler.word(), handler);
            match p.actions[0].handler {
                Handler::Track { var, .. } => assert_eq!(usize::from(var), expected),
                other => panic!("{other:?}"),
            }
        }
        for (typed, entry) in [
            ("(x).save(u8)", (OnxNotVar, "(^x)")),
            ("().save(u8)", (OnxNotVar, "(^).")),
            ("($junk).save(u8)", (OnxVarNotFound, "junk")),
            ("($prio).save(u8)", (OnxVarNotFound, "prio")),
            ("($).save(u8)", (OnxVarNotFound, "($^).")),
            ("($x)", (ActionNotFound, "")),
            ("($x).", (ActionNotFound, "")),
            ("($x).save", (ActionNotFound, "")),
            ("($x).save(", (InvalidParam, "save(^")),
            ("($x).save()", (InvalidParam, "save(^)")),
            ("($x).save(u8,)", (InvalidParam, ",^)")),
            ("($x).save(u)", (FieldNotFound, "(^u)")),
            ("($x).snapshot(", (NoClosingParen, "snapshot(^")),
            ("($x).syn(u8)", (SynthEventNotFound, "syn")),
            ("($junk).syn(u8)", (OnxVarNotFound, "junk")),
            ("($x).save(junk)", (FieldNotFound, "junk")),
            ("($x).save(u8.percent)", (BadFieldModifier, "percent")),
            ("($x).save($junk)", (VarNotFound, "junk")),
            // The trigger's own definitions are forgotten by then.
            ("($x).save($x)", (VarNotFound, "save($^x")),
            ("($x).save($both)", (VarNotUnique, "both")),
            ("($x).save(zap.zip.junk)", (FieldNotFound, "junk")),
            ("($x).save(5junk)", (ExpectNumber, "5junk")),
            ("($x).save(u8+u16)", (FieldNotFound, "u8+u16")),
            // A variable of that name.
            ("($x).save(u8,u16)", (VarCreateFindFail, "save(u8,^u16")),
        ] {
            let other = if typed == "($x).save(u8,u16)" {
                "u16=u32:"
            } else {
                ""
            };

            world.refuses(
                &format!("keys=s32:x=u64:{other}{handler}{typed}"),
                Einval,
                entry,
            );
        }
        // Without a parenthesis, where C says nothing.
        let text = format!("keys=s32:x=u8:{handler}($x");

        world.refuses_at(
            &text,
            Einval,
            (NoClosingParen, "hist:".len() + text.len() - 2),
        );
        world.refuses(
            &format!("keys=s32:x=filename:{handler}($x).save(u8)"),
            Einval,
            (OnxNotNumber, "$x"),
        );
        let text = format!("keys=s32:x=u8:{handler}($x).save(odd)");
        let at = "hist:".len() + text.find("odd").expect("there");

        world.refuses_at(&text, Enomem, (UnsupportedField, at));
        // The names under which C keeps the tracked value.
        let hidden = if handler == "onmax" {
            "__max"
        } else {
            "__change"
        };

        world.refuses_at(
            &format!("keys=s32:x=u8:{hidden}=u8:{handler}($x).save(u8)"),
            Einval,
            (OnxVarCreateFail, 0),
        );
    }
    world.refuses_at(
        "keys=s32:x=u8:onmax($x).save(u8):onchange($x).save(u16)",
        Eexist,
        (TooManySaveActions, 0),
    );
    // Several handlers.
    let p = world.accepts(
        "keys=s32:x=u8:onmax($x).save(u8):onchange($x).snapshot():onmax($x).snapshot() if u8",
        &line(
            "",
            ":x=u8",
            ":onmax($x).save(u8):onchange($x).snapshot():onmax($x).snapshot() if u8",
        ),
    );

    assert!(matches!(p.actions[0].kind, ActionKind::Save));
    assert!(matches!(p.actions[1].kind, ActionKind::Snapshot));
}

#[test]
fn h_act_12_at_most_64_parameters() {
    let mut world = world();
    let params = |n: usize| vec!["u8"; n].join(",");

    world.refuses_at(
        &format!("keys=s32:x=u8:onmax($x).save({})", params(65)),
        Einval,
        (TooManyParams, 0),
    );
    // There are not that many variables.
    world.refuses(
        &format!("keys=s32:x=u8:onmax($x).save({})", params(64)),
        Einval,
        (
            VarCreateFindFail,
            ".save(u8,u8,u8,u8,u8,u8,u8,u8,u8,u8,u8,u8,u8,u8,^u8",
        ),
    );
    world.refuses(
        &format!("keys=s32:onmatch(kmem.kmalloc).syn({})", params(64)),
        Einval,
        (SynthEventNotFound, "syn"),
    );
    world.refuses(
        &format!("keys=s32:onmatch(kmem.kmalloc).trace(syn,{})", params(64)),
        Einval,
        (SynthEventNotFound, "syn"),
    );
    world.refuses_at(
        &format!("keys=s32:onmatch(kmem.kmalloc).trace(syn,{})", params(65)),
        Einval,
        (TooManyParams, 0),
    );
}
