// SPDX-License-Identifier: GPL-2.0

//! Triggers that read each other's variables, from text to row: H-VAR-01 to H-VAR-05, H-VAR-12,
//! H-VAR-14, H-VAR-15, H-EXP-13, H-ACT-03, H-ACT-04, H-ACT-07, H-KEY-10, H-MOD-07, H-OUT-04,
//! H-OUT-05, H-OUT-15 to H-OUT-18, X-12 to X-14, B-01, B-02, B-10, B-27, B-30.

use crate::{
    lang_common::*,
    run::*,
    words::Content, //
};
use proptest::prelude::*;
use rust_hist::{
    limits::COMM_WORDS,
    program::Resolver,
    render::{
        Renderer,
        Stats, //
    },
    sync::{Pair, Relaxed},
    tracing_map::{
        NumCell,
        TextCell, //
    },
};

#[test]
fn h_var_03_a_latency_takes_each_start_once() {
    let mut world = World::default();
    let start = world.add(&SWITCH, WAKING, "keys=next_pid:ts0=common_timestamp.usecs");
    let end = world.add(
        &SWITCH,
        SWITCHED,
        "keys=next_pid:lat=common_timestamp.usecs-$ts0:onmax($lat).save(next_comm,prev_pid)",
    );
    let record = switch("a", 1, "b", 2, 3);

    // Nobody has woken it.
    assert_eq!(world.hit(end, &record, &at(1_000)), IGNORED);
    assert_eq!(world.hit(start, &record, &at(10_000)), HIT);
    assert_eq!(world.hit(end, &record, &at(25_000)), HIT);
    // The start is used up.
    assert_eq!(world.hit(end, &record, &at(30_000)), IGNORED);
    // Another key has no start, either.
    let other = switch("a", 1, "c", 9, 3);
    assert_eq!(world.hit(end, &other, &at(30_000)), IGNORED);

    let account = world.triggers[end].map().account();
    assert_eq!((account.hits, account.ignored), (1, 3));
    assert_eq!(account.calls(), 4);
    assert_eq!(
        world.rows(end),
        [concat!(
            "{ next_pid:          2 } hitcount:          1",
            "\n\tmax:         15",
            "  next_comm: b                                 prev_pid:          1\n"
        )]
    );
}

#[test]
fn h_var_03_numbers_less_references_are_read_beside_a_copy() {
    let mut world = World::default();
    let start = world.add(
        &SWITCH,
        WAKING,
        "keys=next_pid:a=prev_pid,b=next_prio,c=next_pid",
    );
    let end = world.add(
        &SWITCH,
        SWITCHED,
        "keys=next_pid:x=next_prio-$a,y=prev_pid-$b,z=$c",
    );
    let later = switch("c", -5, "b", 2, 3);
    let numbers = |world: &World| {
        let aux = &world.aux(end, &[2]);
        [0, 2, 4].map(|at| NumCell::at(aux, at).and_then(|cell| cell.read()))
    };

    assert_eq!(world.hit(end, &later, &AROUND), IGNORED);
    world.hit(start, &switch("a", 1, "b", 2, 30), &AROUND);
    assert_eq!(world.hit(end, &later, &AROUND), HIT);
    assert_eq!(
        numbers(&world),
        [Some(2), Some(0_u64.wrapping_sub(35)), Some(2)]
    );
    // Two of the three are used up.
    assert_eq!(world.hit(end, &later, &AROUND), IGNORED);
}

#[test]
fn h_var_03_numbers_of_each_size_less_references() {
    let mut world = World::default();
    let start = world.add(&ZOO, WAKING, "keys=u8:a=u64,b=s64,c=s16,d=u32");
    let end = world.add(
        &ZOO,
        SWITCHED,
        "keys=u8:w=u32-$d,x=s64-$b,y=u64-$a,z=s16-$c",
    );
    let record = |u64: u64, s64: i64, s16: i16, u32: u32| {
        let mut record = vec![0; 100];
        record[8] = 7;
        record[12..14].copy_from_slice(&s16.to_ne_bytes());
        record[16..20].copy_from_slice(&u32.to_ne_bytes());
        record[24..32].copy_from_slice(&u64.to_ne_bytes());
        record[32..40].copy_from_slice(&s64.to_ne_bytes());
        record
    };

    world.hit(start, &record(1 << 40, -3, -2, 9), &AROUND);
    assert_eq!(world.hit(end, &record(u64::MAX, 4, -7, 5), &AROUND), HIT);
    let aux = &world.aux(end, &[7]);
    assert_eq!(
        [0, 2, 4, 6].map(|at| NumCell::at(aux, at).and_then(|cell| cell.read())),
        [
            Some(4_u64.wrapping_neg()),
            Some(7),
            Some(u64::MAX - (1 << 40)),
            Some(5_u64.wrapping_neg())
        ]
    );
}

#[test]
fn h_var_03_a_plain_copy_takes_nothing() {
    let mut world = World::default();
    let start = world.add(&SWITCH, WAKING, "keys=next_pid:prio=next_prio");
    let copy = world.add(&SWITCH, SWITCHED, "keys=next_pid:vals=$prio:again=$prio");
    let record = switch("a", 1, "b", 2, 30);

    world.hit(start, &record, &AROUND);
    for _ in 0..3 {
        assert_eq!(world.hit(copy, &record, &AROUND), HIT);
    }
    assert_eq!(
        world.rows(copy),
        ["{ next_pid:          2 } hitcount:          3  prio:         90\n"]
    );
}

#[test]
fn x_12_an_earlier_reference_is_not_taken_when_a_later_one_is_unset() {
    let mut world = World::default();
    let one = world.add(&SWITCH, WAKING, "keys=next_pid:one=common_timestamp");
    let two = world.add(&SWITCH, WAKING, "keys=next_pid:two=common_timestamp");
    let both = world.add(
        &SWITCH,
        SWITCHED,
        "keys=next_pid:a=common_timestamp-$one:b=common_timestamp-$two:onmax($a).save(prev_pid)\
         :onmax($b).snapshot()",
    );
    let record = switch("a", 1, "b", 2, 3);

    world.hit(one, &record, &at(100));
    assert_eq!(world.hit(both, &record, &at(150)), IGNORED);
    assert_eq!(world.hit(both, &record, &at(160)), IGNORED);
    world.hit(two, &record, &at(170));
    let ended = world.hit(both, &record, &at(200));
    assert!(ended.is_hit);
    assert_eq!(ended.snapshots, [30]);
    assert_eq!(world.hit(both, &record, &at(210)), IGNORED);
    assert!(world.rows(both)[0].contains("max:        100"));
}

#[test]
fn h_exp_13_a_constant_still_wants_the_entry() {
    let mut world = World::default();
    let start = world.add(&SWITCH, WAKING, "keys=next_pid:ten=10");
    let user = world.add(&SWITCH, SWITCHED, "keys=next_pid:vals=$ten");
    let record = switch("a", 1, "b", 2, 3);

    assert_eq!(world.hit(user, &record, &AROUND), IGNORED);
    world.hit(start, &record, &AROUND);
    assert_eq!(world.hit(user, &record, &AROUND), HIT);
}

#[test]
fn h_act_03_onmax_keeps_the_row_of_the_largest() {
    let mut world = World::default();
    let n = world.add(
        &SWITCH,
        SWITCHED,
        "keys=prev_pid:p=next_prio:onmax($p).save(next_comm,next_pid)",
    );
    let row = |max: u64, comm: &str, pid: i32| {
        format!("\tmax: {max:>10}  next_comm: {comm:<32}  next_pid: {pid:>10}\n")
    };

    // A zero is no larger than what is there, and there is nothing in the row.
    world.hit(n, &switch("a", 1, "zero", 4, 0), &AROUND);
    assert!(world.rows(n)[0].ends_with(&row(0, "(null)", 0)));
    world.hit(n, &switch("a", 1, "five", 5, 5), &AROUND);
    world.hit(n, &switch("a", 1, "three", 3, 3), &AROUND);
    assert!(world.rows(n)[0].ends_with(&row(5, "five", 5)));
    // Unsigned: -1 is the largest there is.
    world.hit(n, &switch("a", 1, "a long name of 16", 6, -1), &AROUND);
    assert!(world.rows(n)[0].ends_with(&row(u64::MAX, "a long name of ", 6)));
    world.hit(n, &switch("a", 1, "five", 5, 100), &AROUND);
    assert!(world.rows(n)[0].contains("a long name"));
}

#[test]
fn h_act_04_onchange_keeps_the_row_of_the_last_change() {
    let mut world = World::default();
    let n = world.add(
        &SWITCH,
        SWITCHED,
        "keys=prev_pid:p=next_prio:onchange($p).save(next_pid)",
    );
    let row = |value: u64, pid: i32| format!("\tchanged: {value:>10}  next_pid: {pid:>10}\n");

    for (prio, pid, value, saved) in [(0, 9, 0, 0), (5, 8, 5, 8), (5, 7, 5, 8), (3, 6, 3, 6)] {
        world.hit(n, &switch("a", 1, "b", pid, prio), &AROUND);
        assert!(world.rows(n)[0].ends_with(&row(value, saved)), "{prio}");
    }
}

#[test]
fn h_act_08_a_snapshot_is_asked_for_at_each_new_value() {
    let mut world = World::default();
    let n = world.add(
        &SWITCH,
        SWITCHED,
        "keys=common_pid.execname:p=next_prio:onchange($p).snapshot()",
    );
    let asked: Vec<_> = [4, 4, 2, 0, 0]
        .into_iter()
        .flat_map(|prio| {
            let ended = world.hit(n, &switch("a", 1, "b", 2, prio), &AROUND);
            ended.snapshots
        })
        .collect();
    assert_eq!(asked, [4, 2, 0]);
    // Rows show nothing of it.
    assert_eq!(world.rows(n).len(), 1);
    assert!(!world.rows(n)[0].contains("changed"));
}

#[test]
fn h_out_17_the_snapshot_block() {
    let mut world = World::default();
    let n = world.add(
        &SWITCH,
        SWITCHED,
        "keys=common_pid.execname,next_comm:p=next_prio:onmax($p).snapshot()",
    );
    let Trigger { text, program, .. } = &world.triggers[n];
    let table = Renderer {
        program,
        text,
        stats: &Stats::default(),
        symbols: &Frames,
    };
    let mut out = Text::default();
    let mut key = vec![17];
    key.extend(words_of("next", 2));

    table
        .snapshot(42, &key, &words_of("bash", COMM_WORDS), &mut out)
        .expect("printed");
    assert_eq!(
        String::from_utf8_lossy(&out.0),
        format!(
            "\nSnapshot taken (see tracing/snapshot).  Details:\n\
             \ttriggering value {{ onmax($p) }}:         42\
             \ttriggered by event with key: {{ common_pid: bash            [        17], \
             next_comm: {:<50} }}\n",
            "next"
        )
    );

    // There is none without the action.
    let n = world.add(&SWITCH, WAKING, "keys=prev_pid");
    let Trigger { text, program, .. } = &world.triggers[n];
    let table = Renderer {
        program,
        text,
        stats: &Stats::default(),
        symbols: &Frames,
    };
    let mut out = Text::default();
    table.snapshot(1, &[2], &[], &mut out).expect("nothing");
    assert!(out.0.is_empty());
}

#[test]
fn h_out_16_saved_values_come_once() {
    let mut world = World::default();
    let n = world.add(
        &SWITCH,
        SWITCHED,
        "keys=prev_pid:p=next_prio:q=next_pid:onchange($q).snapshot():onmax($p).save(next_pid)",
    );
    world.hit(n, &switch("a", 1, "b", 2, 3), &AROUND);
    let row = &world.rows(n)[0];
    assert_eq!(row.matches("next_pid").count(), 1);
    assert_eq!(row.matches("max:").count(), 1);
}

#[test]
fn b_27_a_saved_stack_is_shown_as_symbols() {
    let mut world = World::default();
    let n = world.add(
        &SWITCH,
        SWITCHED,
        "keys=prev_pid:p=next_prio:onmax($p).save(common_stacktrace,next_pid)",
    );
    world.hit(n, &switch("a", 1, "b", 2, 3), &AROUND);
    assert!(world.rows(n)[0].ends_with(
        "\tmax:          3  common_stacktrace:\n         sym_ffffffff81000001+0x0\
         \n         sym_ffffffff81000002+0x0\n\tnext_pid:          2\n"
    ));
    // The frames of a deeper stack do not show after those of a later one.
    let shallow = Around {
        frames: &[0xabc],
        ..AROUND
    };
    world.hit(n, &switch("a", 1, "b", 2, 4), &shallow);
    assert!(world.rows(n)[0].ends_with(
        "\tmax:          4  common_stacktrace:\n         sym_abc+0x0\n\tnext_pid:          2\n"
    ));
}

/// The string or stack in a variable.
fn text_in(world: &World, n: usize, var: &str, key: &[u64]) -> Option<Vec<u64>> {
    let Trigger { program, text, .. } = &world.triggers[n];
    let cell = program.var(var.as_bytes(), text).expect("a variable").cell;
    let aux = world.aux(n, key);
    let words = &Pair::words(&aux)[usize::from(cell.at)..][..usize::from(cell.words)];
    let mut content = vec![0xdead_beef; words.len() - 1];
    TextCell::new(words)
        .expect("words")
        .read(&mut content)
        .map(|()| content)
}

fn string_in(world: &World, n: usize, var: &str, key: &[u64]) -> Option<String> {
    text_in(world, n, var, key).map(|words| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let len = bytes.iter().position(|&b| b == 0).expect("a NUL");
        String::from_utf8(bytes[..len].to_vec()).expect("UTF-8")
    })
}

#[test]
fn h_var_14_strings_of_all_kinds_are_copied() {
    let mut world = World::default();
    let n = world.add(
        &ZOO,
        WAKING,
        "keys=u8:f=filename:l=label:c=common_comm:s=seven:e=common_pid.execname",
    );
    let mut record = zoo(&[("filename", b"/etc/passwd\0rubbish"), ("label", b"abc")]);
    world.hit(n, &record, &AROUND);
    for (var, is) in [
        ("f", "/etc/passwd"),
        ("l", "abc"),
        ("c", "sh"),
        ("e", "sh"),
        ("s", "sevenXY"),
    ] {
        assert_eq!(
            string_in(&world, n, var, &[200]).as_deref(),
            Some(is),
            "{var}"
        );
    }

    // 255 bytes at most, and nothing left of a longer one.
    for len in [1, 254, 255, 256, 300, 2] {
        let long = vec![b'x'; len];
        record = zoo(&[("filename", &long), ("label", b"")]);
        world.hit(n, &record, &AROUND);
        let is = string_in(&world, n, "f", &[200]).expect("set");
        assert_eq!(is.len(), len.min(255));
        assert_eq!(string_in(&world, n, "l", &[200]).as_deref(), Some(""));
    }
    // The name in the entry is that of the task that made it.
    let other = Around {
        comm: "other",
        ..AROUND
    };
    world.hit(n, &record, &other);
    assert_eq!(string_in(&world, n, "c", &[200]).as_deref(), Some("other"));
    assert_eq!(string_in(&world, n, "e", &[200]).as_deref(), Some("sh"));
}

#[test]
fn h_var_12_a_string_is_copied_by_an_alias() {
    let mut world = World::default();
    let from = world.add(
        &SWITCH,
        WAKING,
        "keys=next_pid:who=prev_comm:st=common_stacktrace",
    );
    let to = world.add(
        &SWITCH,
        SWITCHED,
        "keys=next_pid:copy=$who:frames=$st:p=next_prio:onmax($p).save(prev_pid)",
    );
    let record = switch("me", 1, "b", 2, 3);

    assert_eq!(world.hit(to, &record, &AROUND), IGNORED);
    world.hit(from, &record, &AROUND);
    assert_eq!(world.hit(to, &record, &AROUND), HIT);
    assert_eq!(string_in(&world, to, "copy", &[2]).as_deref(), Some("me"));
    let mut frames = AROUND.frames.to_vec();
    frames.resize(31, 0);
    assert_eq!(text_in(&world, to, "frames", &[2]), Some(frames));

    // Somebody is writing the source, and never ends: the hit is ignored.
    let Trigger { program, text, .. } = &world.triggers[from];
    let cell = program.var(b"who", text).expect("a variable").cell;
    let aux = world.aux(from, &[2]);
    let meta = &Pair::words(&aux)[usize::from(cell.at)];
    let before = meta.load(Relaxed);
    meta.store(before | 2, Relaxed);
    assert_eq!(world.hit(to, &record, &AROUND), IGNORED);
    meta.store(before, Relaxed);
    assert_eq!(world.hit(to, &record, &AROUND), HIT);
}

#[test]
fn h_var_15_a_stack_field_is_cut_to_its_room() {
    let mut world = World::default();
    let n = world.add(&ZOO, WAKING, "keys=u8:s=stack");
    for count in [0u64, 1, 2, 31, 32, 1000, u64::MAX] {
        let frames: Vec<u64> = (1..=40).collect();
        let mut bytes = count.to_ne_bytes().to_vec();
        bytes.extend(frames.iter().flat_map(|frame| frame.to_ne_bytes()));
        world.hit(n, &zoo(&[("stack", &bytes)]), &AROUND);

        let mut expected = frames;
        expected.truncate(count.min(31) as usize);
        expected.resize(31, 0);
        assert_eq!(text_in(&world, n, "s", &[200]), Some(expected), "{count}");
    }
}

/// A record of [`ZOO`] with these dynamic fields, and `u8` 200, `seven` "sevenXY".
fn zoo(fields: &[(&str, &[u8])]) -> Vec<u8> {
    let mut record = vec![0u8; 100];
    record[8] = 200;
    record[68..75].copy_from_slice(b"sevenXY");
    for (name, bytes) in fields {
        let place = ZOO.field(name.as_bytes()).expect("a field").offset as usize;
        let mut at = record.len();
        record.extend_from_slice(bytes);
        if *name == "label" {
            at -= place + 4;
        }
        let word = (at as u32) | (bytes.len() as u32) << 16;
        record[place..place + 4].copy_from_slice(&word.to_ne_bytes());
    }
    record
}

#[test]
fn h_key_10_keys_match_by_their_bytes() {
    let mut world = World::default();
    let from = world.add(&SWITCH, WAKING, "keys=next_pid,next_comm:x=next_prio");
    let same = world.add(&SWITCH, SWITCHED, "keys=prev_pid,prev_comm:vals=$x");
    let turned = world.add(&SWITCH, SWITCHED, "keys=prev_comm,prev_pid:vals=$x");

    world.hit(from, &switch("a", 1, "b", 2, 3), &AROUND);
    assert_eq!(world.hit(same, &switch("b", 2, "c", 3, 3), &AROUND), HIT);
    assert_eq!(
        world.hit(same, &switch("c", 2, "c", 3, 3), &AROUND),
        IGNORED
    );
    assert_eq!(
        world.hit(turned, &switch("b", 2, "c", 3, 3), &AROUND),
        IGNORED
    );
}

#[test]
fn h_out_04_expressions_are_summed_and_shown() {
    let mut world = World::default();
    let n = world.add(
        &SWITCH,
        SWITCHED,
        "keys=prev_pid:vals=prev_prio-next_prio,next_pid:x=next_prio+1",
    );
    for prio in [3, 4] {
        world.hit(n, &switch("a", 1, "b", 2, prio), &AROUND);
    }
    assert_eq!(
        world.rows(n),
        ["{ prev_pid:          1 } hitcount:          2  prev_prio-next_prio:          7  next_pid:          4\n"]
    );
}

#[test]
fn b_01_a_handler_compares_its_own_hit() {
    // The variable is overwritten between being set and being compared, as by another CPU.
    let mut world = World::default();
    world.synth("one int a");
    let n = world.add(
        &SWITCH,
        SWITCHED,
        "keys=prev_pid:p=next_prio:onmatch(sched.sched_switch).one($p)\
         :onmax($p).save(next_pid):onmax($p).one($p)",
    );
    world.hit(n, &switch("a", 1, "b", 2, 3), &AROUND);

    let aux = &world.aux(n, &[1]);
    let number = NumCell::at(aux, world.triggers[n].program.vars[0].cell.at).expect("a variable");
    for (path, prio) in world.paths(n).zip(5..) {
        let record = switch("a", 1, "b", 2, prio);
        let ended = world.interrupted(&path, n, &record, &AROUND, &|| _ = number.set(99));

        assert!(
            world.rows(n)[0].contains(&format!("max: {prio:>10}")),
            "{}",
            path.name()
        );
        assert_eq!(
            ended.traced,
            vec![format!("one: a={prio}"); 2],
            "{}",
            path.name()
        );
        assert_eq!(number.read(), Some(99));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..Default::default() })]

    /// Whatever a record says, and however short it is: nothing is read outside of it, strings end,
    /// and each call is counted once.
    #[test]
    fn b_10_b_30_any_record_is_survived(
        records in proptest::collection::vec(
            (proptest::collection::vec(any::<u8>(), 0..200), 0..3usize), 1..20)
    ) {
        let mut world = World::default();
        world.add(
            &ZOO,
            WAKING,
            "keys=u8:f=filename:l=label:s=stack:c=common_comm:n=s32*u64/s8:sv=seven\
             :onmax($n).save(filename,label,stack,seven,s16,common_stacktrace)",
        );
        world.add(&ZOO, SWITCHED, "keys=u8:a=$f:b=$l:c2=$s:d=u16-$n:onchange($d).save(s64)");
        world.add(&ZOO, SWITCHED, "keys=filename:vals=u32/s16-u8,s8");
        let mut calls = [0; 3];

        for (record, n) in &records {
            calls[*n] += 1;
            world.hit(*n, record, &AROUND);
        }
        for (n, calls) in calls.into_iter().enumerate() {
            let account = world.triggers[n].map().account();

            prop_assert_eq!((account.calls(), account.lost_saves), (calls, 0));
            let map = world.triggers[n].map();
            let hits: u64 = map.published().map(|elt| map.sum(elt, 0)).sum();
            prop_assert_eq!(hits, map.account().hits);
        }
        let map = world.triggers[0].map();
        for elt in map.published() {
            let Trigger { program, text, .. } = &world.triggers[0];
            for name in ["f", "l", "c", "sv"] {
                let cell = program.var(name.as_bytes(), text).expect("a variable").cell;
                let at = usize::from(cell.at);
                let words = &Pair::words(map.aux(elt))[at..at + usize::from(cell.words)];
                let mut content = vec![0; words.len() - 1];
                let read = TextCell::new(words).and_then(|cell| cell.read(&mut content));
                prop_assert!(read.is_some());
                prop_assert!(content.iter().any(|word| word.to_ne_bytes().contains(&0)));
            }
        }
    }
}
