// SPDX-License-Identifier: GPL-2.0

//! Synthetic events from hits, from text to record: H-ACT-01 to H-ACT-05, H-ACT-15, H-ACT-17, H-ACT-25,
//! H-ACT-26, H-VAR-03, X-12, X-14, B-01, B-02, B-09, B-10, B-12.

use crate::{
    lang_common::*,
    run::*, //
};
use proptest::prelude::*;
use rust_hist::{
    limits::STACK_DEPTH,
    sync::{Pair, Relaxed},
};

/// A world with a latency from waking to switching.
fn latency(action: &'static str) -> (World, usize, usize) {
    let mut world = World::default();

    world.synth("lat u64 lat; pid_t pid; char comm[16]; char[] who");
    let start = world.add(
        &SWITCH,
        WAKING,
        "keys=next_pid:ts=common_timestamp,who=prev_comm",
    );
    let end = world.add(&SWITCH, SWITCHED, action);

    (world, start, end)
}

fn traced(lines: &[&str]) -> Ended {
    Ended {
        traced: lines.iter().map(|line| line.to_string()).collect(),
        ..HIT
    }
}

#[test]
fn h_act_01_an_event_for_each_match() {
    let (world, start, end) = latency(
        "keys=next_pid:l=common_timestamp-$ts:\
         onmatch(sched.sched_waking).lat($l,next_pid,next_comm,$who)",
    );
    let record = switch("waker", 1, "sleeper", 2, 3);

    // H-ACT-02: nothing woke it yet.
    assert_eq!(world.hit(end, &record, &at(5)), IGNORED);
    assert_eq!(world.hit(start, &record, &at(10)), HIT);
    assert_eq!(
        world.hit(end, &record, &at(25)),
        traced(&["lat: lat=15 pid=2 comm=sleeper who=waker"])
    );
    // H-VAR-03: the start was taken.
    assert_eq!(world.hit(end, &record, &at(30)), IGNORED);
}

#[test]
fn h_act_01_parameters_are_not_consumed() {
    let mut world = World::default();

    world.synth("seen u64 ts");
    let start = world.add(&SWITCH, WAKING, "keys=next_pid:ts=common_timestamp");
    let end = world.add(
        &SWITCH,
        SWITCHED,
        "keys=next_pid:onmatch(sched.sched_waking).seen($ts)",
    );
    let record = switch("a", 1, "b", 2, 3);

    world.hit(start, &record, &at(10));
    for _ in 0..3 {
        assert_eq!(world.hit(end, &record, &at(25)), traced(&["seen: ts=10"]));
    }
}

#[test]
fn h_act_01_without_references_every_hit_matches() {
    let mut world = World::default();

    world.synth("plain pid_t a; u64 b; u64 c; u64 d");
    world.add(&SWITCH, WAKING, "keys=next_pid");
    let n = world.add(
        &SWITCH,
        SWITCHED,
        "keys=next_pid:onmatch(sched.sched_waking).trace(plain,prev_pid,hitcount,7,common_timestamp)",
    );

    assert_eq!(
        world.hit(n, &switch("a", -1, "b", 2, 3), &at(99)),
        traced(&["plain: a=-1 b=1 c=7 d=99"])
    );
}

#[test]
fn h_act_03_h_act_04_tracked_values_decide() {
    let mut world = World::default();

    world.synth("max int prio; int v");
    let max = world.add(
        &SWITCH,
        WAKING,
        "keys=prev_pid:m=next_prio:onmax($m).max(next_prio,$m)",
    );
    let change = world.add(
        &SWITCH,
        SWITCHED,
        "keys=prev_pid:m=next_prio:onchange($m).trace(max,next_prio,$m)",
    );
    let hit = |n, prio| world.hit(n, &switch("a", 1, "b", 2, prio), &AROUND).traced;

    for (prio, in_max, in_change) in [(3, 1, 1), (3, 0, 0), (2, 0, 1), (5, 1, 1)] {
        assert_eq!(hit(max, prio).len(), in_max, "{prio}");
        assert_eq!(hit(change, prio).len(), in_change, "{prio}");
    }
    assert_eq!(hit(max, 9), ["max: prio=9 v=9"]);
    // H-OUT-15: the row says what the largest was.
    assert!(world.rows(max)[0].contains("max:          9"));
    assert!(world.rows(change)[0].contains("changed:          5"));
}

#[test]
fn h_act_25_actions_run_in_their_order() {
    let mut world = World::default();

    world.synth("one int a");
    world.synth("two char[] a");
    world.add(&SWITCH, WAKING, "keys=next_pid");
    let n = world.add(
        &SWITCH,
        SWITCHED,
        "keys=next_pid:m=next_prio:onmatch(sched.sched_waking).two(next_comm):\
         onmax($m).save(next_comm):onchange($m).one($m):onmatch(sched.sched_waking).one(prev_prio):\
         onmax($m).snapshot()",
    );
    let ended = world.hit(n, &switch("a", 1, "b", 2, 3), &AROUND);

    assert_eq!(ended.traced, ["two: a=b", "one: a=3", "one: a=7"]);
    assert_eq!(ended.snapshots, [3]);
    assert!(world.rows(n)[0].contains("next_comm: b"));
}

/// A record of the zoo.
fn zoo() -> Vec<u8> {
    let mut record = vec![0u8; 160];
    let mut put = |at: usize, bytes: &[u8]| record[at..at + bytes.len()].copy_from_slice(bytes);

    put(8, &[200, 200]);
    put(10, &60_000u16.to_ne_bytes());
    put(12, &(-2i16).to_ne_bytes());
    put(16, &4_000_000_000u32.to_ne_bytes());
    put(20, &(-3i32).to_ne_bytes());
    put(24, &u64::MAX.to_ne_bytes());
    put(32, &(-4i64).to_ne_bytes());
    // filename: 6 bytes at 100; label: 4 bytes after its word; stack: 24 bytes at 120.
    put(40, &(6u32 << 16 | 100).to_ne_bytes());
    put(48, &(4u32 << 16 | (112 - 52)).to_ne_bytes());
    put(64, &(24u32 << 16 | 120).to_ne_bytes());
    put(68, b"sevenup");
    put(100, b"/etc\0x");
    put(112, b"lab\0");
    put(120, &2u64.to_ne_bytes());
    put(128, &0x1111u64.to_ne_bytes());
    put(136, &0x2222u64.to_ne_bytes());
    record
}

#[test]
fn h_act_15_values_of_every_kind() {
    let mut world = World::default();

    world.synth("num u8 a; s8 b; u16 c; s16 d; u32 e; s32 f; u64 g; s64 h; unsigned int i; u64 j");
    world.synth("text char[] i; char[] j; char[7] k; char[] m; char[256] n");
    world.synth("stacks long[] l; unsigned long[] r");
    world.add(&SWITCH, WAKING, "keys=next_pid");
    let n = world.add(
        &ZOO,
        SWITCHED,
        "keys=u8:onmatch(sched.sched_waking).num(u8,s8,u16,s16,u32,s32,u64,s64,cpu,0x10):\
         onmatch(sched.sched_waking).text(filename,label,seven,common_comm,comm):\
         onmatch(sched.sched_waking).stacks(stack,common_stacktrace)",
    );

    assert_eq!(
        world.hit(n, &zoo(), &AROUND).traced,
        [
            "num: a=200 b=-56 c=60000 d=-2 e=4000000000 f=-3 g=18446744073709551615 h=-4 i=3 j=16",
            // A string that fills its field keeps one byte less, as with C.
            "text: i=/etc j=lab k=sevenu m=sh n=sh",
            "stacks: l=STACK:\n=> sym_1111+0x0\n=> sym_2222+0x0\nr=STACK:\n\
             => sym_ffffffff81000001+0x0\n=> sym_ffffffff81000002+0x0",
        ]
    );
}

#[test]
fn h_act_13_variables_of_every_kind() {
    let mut world = World::default();

    world.synth("all s32 n; char[] s; long[] t; char[] c; u64 e");
    let define = "keys=u8:n=s32,s=filename,t=stack,c=common_pid.execname,e=u16+1";
    let start = world.add(&ZOO, WAKING, define);
    let own = world.add(
        &ZOO,
        SWITCHED,
        "keys=u8:on=s32,os=filename,ot=stack,oc=common_pid.execname,oe=u16+1:\
         onmatch(sched.sched_waking).all($on,$os,$ot,$oc,5):\
         onmatch(sched.sched_waking).all($n,$s,$t,$c,6)",
    );
    let line =
        |e| format!("all: n=-3 s=/etc t=STACK:\n=> sym_1111+0x0\n=> sym_2222+0x0\nc=sh e={e}");

    assert_eq!(world.hit(own, &zoo(), &AROUND), IGNORED);
    assert_eq!(world.hit(start, &zoo(), &AROUND), HIT);
    assert_eq!(world.hit(own, &zoo(), &AROUND).traced, [line(5), line(6)]);
}

#[test]
fn h_act_17_fields_of_the_other_event() {
    let mut world = World::default();

    world.synth("both pid_t waker; char[16] name");
    // What the glue prepares.
    let (pid, comm) = (
        world.add(
            &SWITCH,
            WAKING,
            "keys=next_pid:synthetic_next_prio=prev_pid",
        ),
        world.add(
            &SWITCH,
            WAKING,
            "keys=next_pid:synthetic_next_comm=prev_comm",
        ),
    );
    let end = world.add(
        &SWITCH,
        SWITCHED,
        "keys=next_pid:onmatch(sched.sched_waking).\
         both(sched.sched_waking.next_prio,sched.sched_waking.next_comm)",
    );
    let record = switch("waker", 7, "b", 2, 3);

    world.hit(pid, &record, &AROUND);
    assert_eq!(world.hit(end, &record, &AROUND), IGNORED);
    world.hit(comm, &record, &AROUND);
    assert_eq!(
        world.hit(end, &record, &AROUND),
        traced(&["both: waker=7 name=waker"])
    );
}

#[test]
fn x_14_b_02_a_text_that_is_being_written_loses_the_event() {
    let mut world = World::default();

    world.synth("lat u64 lat; pid_t pid; char[] who; char[] own; char comm[16]; long[] s");
    let start = world.add(
        &SWITCH,
        WAKING,
        "keys=next_pid:ts=common_timestamp,who=prev_comm",
    );
    let end = world.add(
        &SWITCH,
        SWITCHED,
        "keys=next_pid:own=common_pid.execname,comm=next_comm,s=common_stacktrace:\
         onmatch(sched.sched_waking).lat($ts,next_pid,$who,$own,$comm,$s)",
    );
    let record = switch("waker", 1, "sleeper", 2, 3);

    world.hit(start, &record, &at(10));

    let whole = world.hit(end, &record, &at(20));

    assert!(whole.traced[0].starts_with("lat: lat=10 pid=2 who=waker own=sh comm=sleeper s=STACK:"));
    for (n, name, expected) in [
        // A reference says so before anything is done.
        (start, "who", &IGNORED),
        (end, "own", &traced(&["Torn"])),
        (end, "s", &traced(&["Torn"])),
        // This one is in the record.
        (end, "comm", &whole),
    ] {
        let Trigger { program, text, .. } = &world.triggers[n];
        let cell = program.var(name.as_bytes(), text).expect("defined").cell;
        let aux = world.aux(n, &[2]);
        let meta = &Pair::words(&aux)[usize::from(cell.at)];
        let before = meta.load(Relaxed);

        meta.store(before | 2, Relaxed);
        assert_eq!(&world.hit(end, &record, &at(20)), expected, "{name}");
        meta.store(before, Relaxed);
        assert_eq!(world.hit(end, &record, &at(20)), whole);
    }
}

#[test]
fn h_act_26_as_many_as_an_event_has_fields() {
    const PARAMS: &str = "prev_pid,next_prio,prev_prio,prev_pid,next_prio,prev_prio,prev_pid,next_prio,prev_prio,\
                          prev_pid,next_prio,prev_prio,prev_pid,next_prio,prev_prio,prev_pid,next_prio,prev_prio,7";
    let mut world = World::default();
    let count = PARAMS.split(',').count();
    let fields: Vec<_> = (0..count)
        .map(|i| format!("{} f{i}", if i + 1 == count { "u64" } else { "s32" }))
        .collect();
    let text = format!("keys=next_pid:onmatch(sched.sched_waking).many({PARAMS})");

    assert!(count > 16);
    world.synth(&format!("many {}", fields.join(";")));
    world.add(&SWITCH, WAKING, "keys=next_pid");
    let n = world.add(&SWITCH, SWITCHED, text.leak());
    let ended = world.hit(n, &switch("a", 1, "b", 2, 3), &AROUND);

    assert_eq!(ended.traced.len(), 1);
    assert!(ended.traced[0].starts_with("many: f0=1 f1=3 f2=7 f3=1 "));
    assert!(ended.traced[0].ends_with(" f18=7"));
}

#[test]
fn strings_at_their_limits() {
    let mut world = World::default();

    world.synth("text char[] d; char[256] s");
    world.add(&SWITCH, WAKING, "keys=next_pid");
    let n = world.add(
        &ZOO,
        SWITCHED,
        "keys=u8:v=filename:onmatch(sched.sched_waking).text(filename,filename):\
         onmatch(sched.sched_waking).text($v,$v)",
    );

    for len in [0, 1, 254, 255, 256, 257, 400] {
        let mut record = zoo();
        let at = record.len();
        let kept = "x".repeat(len.min(255));

        record[40..44].copy_from_slice(&((len as u32) << 16 | at as u32).to_ne_bytes());
        record.extend(vec![b'x'; len]);
        assert_eq!(
            world.hit(n, &record, &AROUND).traced,
            vec![format!("text: d={kept} s={kept}"); 2],
            "{len}"
        );
    }
}

#[test]
fn stacks_at_their_limits() {
    let mut world = World::default();

    world.synth("deep long[] s");
    world.add(&SWITCH, WAKING, "keys=next_pid");
    let n = world.add(
        &ZOO,
        SWITCHED,
        "keys=u8:v=stack:onmatch(sched.sched_waking).deep(stack):\
         onmatch(sched.sched_waking).deep($v)",
    );

    for count in [
        0usize,
        1,
        STACK_DEPTH - 2,
        STACK_DEPTH - 1,
        STACK_DEPTH,
        STACK_DEPTH + 1,
        500,
    ] {
        let mut record = zoo();
        let at = record.len();

        record[64..68].copy_from_slice(&((8u32) << 16 | at as u32).to_ne_bytes());
        record.extend((count as u64).to_ne_bytes());
        for frame in 1..=count as u64 {
            record.extend(frame.to_ne_bytes());
        }

        let traced = world.hit(n, &record, &AROUND).traced;

        assert_eq!(traced[0], traced[1]);
        assert_eq!(
            traced[0].lines().count() - 1,
            count.min(STACK_DEPTH - 1),
            "{count}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

    /// Whatever a record says, and however short it is: each hit gives an event, whose record is
    /// written to its last byte.
    #[test]
    fn b_10_b_12_any_record_gives_an_event(
        records in proptest::collection::vec(
            (proptest::collection::vec(any::<u8>(), 0..200), 0..2usize), 1..20)
    ) {
        let mut world = World::default();
        world.synth("any u8 a; char[] b; char[] c; long[] d; char[7] e; s64 f; char[256] g; char[] h; long[] i");
        world.add(
            &ZOO,
            WAKING,
            "keys=u8:f=filename,l=label,s=stack,sv=seven,n=s64",
        );
        world.add(
            &ZOO,
            SWITCHED,
            "keys=u8:of=filename,ol=label,os=stack:\
             onmatch(sched.sched_waking).any(u8,filename,label,stack,seven,s64,filename,$of,$os):\
             onmatch(sched.sched_waking).any(u8,$f,$l,$s,$sv,$n,$f,$ol,common_stacktrace)",
        );
        for (record, n) in &records {
            let ended = world.hit(*n, record, &AROUND);

            if *n == 1 && ended.is_hit {
                prop_assert_eq!(ended.traced.len(), 2);
                prop_assert!(ended.traced.iter().all(|line| line.starts_with("any: a=")));
            }
        }
        for trigger in &world.triggers {
            prop_assert_eq!(trigger.map().account().lost_traces, 0);
        }
    }
}
