// SPDX-License-Identifier: GPL-2.0

//! `join()`: what it is made of, what is refused, and what is printed.

#![cfg(not(loom))]

mod lang_common;

use lang_common::{
    vars::{
        clock,
        compile_with, //
    },
    world::World,
    *, //
};
use rust_hist::{
    error::{
        ErrKind::{self, *},
        Errno::*, //
    },
    program::Purpose,
};

fn world() -> World {
    vars::world()
        .with("sched", "switch", "keys=next_comm,next_pid:wide=next_prio")
        .with(
            "sched",
            "switch",
            "keys=prev_state,prev_prio,next_prio:three=prev_pid",
        )
        .with("zoo", "all", "keys=filename:title=u8")
        .with("sched", "switch", "keys=prev_prio.buckets=10:tens=prev_pid")
        .synth("num u64 a")
}

const SIZE: &str = ":size=2048";

#[test]
fn it_is_printed_behind_the_actions() {
    let mut world = world();
    let line = |sort: &str, typed: &str| format!(":sort={sort}{SIZE}{}", clock(typed));

    for (typed, printed, rest) in [
        // The order in which they are typed does not matter, nor do names for one thing.
        (
            "join(s32):d=u8-$prio:keys=u16,$d",
            "keys=u16,$d:vals=hitcount:d=u8-$prio",
            ":join(s32)",
        ),
        (
            "keys=u16:vals=$d:join(s32):d=u8-$prio",
            "keys=u16:vals=hitcount,$d:d=u8-$prio",
            ":join(s32)",
        ),
        (
            "keys=$d.log2:d=u8-$prio:join(u64)",
            "keys=$d.log2:vals=hitcount:d=u8-$prio",
            ":join(u64)",
        ),
        (
            "keys=$prio:join(pointed)",
            "keys=$prio:vals=hitcount",
            ":join(pointed)",
        ),
        (
            "keys=$prio+1:join(common_pid)",
            "keys=$prio+1:vals=hitcount",
            ":join(common_pid)",
        ),
        (
            "keys=u8:vals=$prio:join(cpu)",
            "keys=u8:vals=hitcount,$prio",
            ":join(cpu)",
        ),
        (
            "keys=u8:vals=$title:join(label)",
            "keys=u8:vals=hitcount,$title",
            ":join(label)",
        ),
        (
            "keys=u8:vals=$wide:join(sixteen,u8)",
            "keys=u8:vals=hitcount,$wide",
            ":join(sixteen,u8)",
        ),
        (
            "keys=u8:vals=$three:join(u8,u16,u32)",
            "keys=u8:vals=hitcount,$three",
            ":join(u8,u16,u32)",
        ),
        (
            "keys=u8:join(u8):join(s16):vals=$prio",
            "keys=u8:vals=hitcount,$prio",
            ":join(s16)",
        ),
        (
            "keys=u8:join(s32):x=u8+1:onmax($x).save(u8):y=$prio",
            "keys=u8:vals=hitcount:x=u8+1,y=$prio",
            ":onmax($x).save(u8):join(s32)",
        ),
        (
            "keys=u8:join(s32):onmatch(sched.switch).num($prio)",
            "keys=u8:vals=hitcount",
            ":onmatch(sched.switch).num($prio):join(s32)",
        ),
        (
            "keys=u8:join(s32):vals=$prio if u8 > 1",
            "keys=u8:vals=hitcount,$prio",
            ":join(s32) if u8 > 1",
        ),
    ] {
        // A field of the synthetic event is as long as its parameter.
        if typed.contains("num(") {
            world = world.synth("num s32 b");
            world.synths.remove(0);
        }
        world.accepts(
            typed,
            &format!("{printed}{}{rest}", line("hitcount", typed)),
        );
    }
}

#[test]
fn keys_and_values_may_be_made_of_what_others_have() {
    let mut world = world();

    // What the trigger has comes first: there is no older meaning.
    for text in [
        "join(s32):prio=u8-$seven:keys=u8:vals=$prio",
        "join(s32):prio=u8-$seven:keys=$prio",
    ] {
        let program = world.compile(text).expect(text);

        assert_eq!(program.refs.len(), 1, "{text}");
        assert_eq!(program.aux_words(), 0, "{text}");
    }
    let program = world
        .compile("join(s32):d=u8-$prio:keys=u8:other=$d")
        .expect("stored");

    assert_eq!(program.aux_words(), 4);
    assert_eq!(program.lookup_words(), 1);
}

#[test]
fn refusals_point_at_what_is_wrong() {
    let mut world = world();
    let mut refuse = |marked: &str, kind: ErrKind| {
        let at = marked.find('^').expect("has a caret") + "hist:".len();

        world.refuses_at(&marked.replace('^', ""), Einval, (kind, at));
    };

    refuse("keys=u8:join(^s32)", JoinNoRef);
    refuse("keys=u8:join(^s32):x=u8+1:vals=$x", JoinNoRef);
    refuse("keys=u8:vals=$prio:join(^)", JoinField);
    refuse("keys=u8:vals=$prio:join(u8,^)", JoinField);
    refuse("keys=u8:vals=$prio:join(^u8.log2)", JoinField);
    refuse("keys=u8:vals=$prio:join(^u8.hex)", JoinField);
    refuse("keys=u8:vals=$prio:join(s16,^u8+1)", JoinField);
    refuse("keys=u8:vals=$prio:join(^-(u8))", JoinField);
    refuse("keys=u8:vals=$prio:join(^77)", JoinField);
    refuse("keys=u8:vals=$prio:join(^$prio)", JoinField);
    refuse("keys=u8:vals=$prio:join(^ u8)", JoinField);
    refuse("keys=u8:vals=$prio:join(^hitcount)", JoinField);
    refuse("keys=u8:vals=$prio:join(^junk)", FieldNotFound);
    refuse("keys=u8:vals=$prio:join(u8,^keys)", FieldNotFound);
    refuse("keys=u8:vals=$prio:^join(u8", NoClosingParen);
    refuse("keys=u8:vals=$prio:^join(u8).save(u8) ", NoClosingParen);
    refuse("keys=u8:vals=$prio:^join", UnknownWord);
    refuse(
        "keys=u8:vals=$prio:join(u8,u16,u32,u8,u16,u32,u8,u16,^s32)",
        TooManyKeys,
    );
    refuse(
        "keys=u8:vals=$prio:join(filename,second,filename,second,^second)",
        KeyTooLong,
    );
    // The first field that differs, or the last one if there are too few.
    refuse("keys=u8:vals=$prio:join(s32,^u8)", JoinMismatch);
    refuse("keys=u8:vals=$prio:join(^filename)", JoinMismatch);
    refuse("keys=u8:vals=$prio:join(^seven)", JoinMismatch);
    refuse("keys=u8:vals=$wide:join(^u8,sixteen)", JoinMismatch);
    refuse("keys=u8:vals=$wide:join(^seven,u8)", JoinMismatch);
    refuse("keys=u8:vals=$wide:join(^sixteen)", JoinMismatch);
    refuse("keys=u8:vals=$three:join(u8,^u16)", JoinMismatch);
    refuse("keys=u8:vals=$prio,$wide:join(^s32)", JoinMismatch);
    // No difference of buckets says when something began.
    refuse("keys=u8:vals=$tens:join(^s32)", JoinMismatch);
    // A key is a number of another trigger, and no string.
    refuse("keys=^$who:join(s32)", InvalidRefKey);
    refuse("keys=$d.log2=^7:d=u8-$prio:join(s32)", InvalidScale);
    refuse("keys=$d.^usecs:d=u8-$prio:join(s32)", BadFieldModifier);
    refuse(
        "keys=u8:join(^filename):onmatch(sched.switch).num($prio)",
        JoinMismatch,
    );
    refuse(
        "keys=u8:d=u8-$wide:join(sixteen,^filename):vals=$d",
        JoinMismatch,
    );

    // The keys of the other trigger follow.
    let refusal = world
        .compile("keys=u8:vals=$wide:join(u8)")
        .expect_err("not alike");
    assert_eq!(refusal.detail(), b"keys=next_comm,next_pid");
}

#[test]
fn triggers_with_other_joins_are_others() {
    let mut world = world();
    let texts = [
        "keys=u8:vals=$prio",
        "keys=u8:vals=$prio:join(u8)",
        "keys=u8:vals=$prio:join(u16)",
        "keys=u8:vals=$prio:join(common_pid)",
        "keys=u8:vals=$three:join(u8,u16,u32)",
        "keys=u8:vals=$three:join(u8,u16,s16)",
    ];

    for a in texts {
        let first = world.compile(a).expect(a);

        for b in texts {
            let other = compile_with(&mut world, b, Purpose::Change).expect(b);

            assert_eq!(
                first.same_trigger(a.as_bytes(), &other, b.as_bytes()),
                a == b
            );
            assert_eq!(first.same_shape(a.as_bytes(), &other, b.as_bytes()), a == b);
        }
    }

    let at = |world: &mut World, a: &str, b: &str| {
        let (first, other) = (world.compile(a).expect(a), world.compile(b).expect(b));

        first
            .difference(a.as_bytes(), &other, b.as_bytes())
            .expect("memory")
    };
    assert_eq!(
        at(&mut world, texts[1], texts[2]),
        ":keys=u8:vals=hitcount,$prio:sort=hitcount:size=2048:join(u".len()
    );
}
