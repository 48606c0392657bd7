// SPDX-License-Identifier: GPL-2.0

//! Numbers of the task, as what they can be.

use crate::{
    lang_common::*,
    run::*, //
};
use proptest::prelude::*;

const NAMES: [&str; 4] = ["common_tgid", "common_cgroup", "common_uid", "common_node"];

/// The event of readers.
const OTHER: (&str, &str) = ("zoo", "other");

fn as_task(task: [u64; 4]) -> Around {
    Around { task, ..AROUND }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    #[test]
    fn each_is_what_the_surroundings_say(task in any::<[u64; 4]>(), which in 0..4usize, byte in any::<u8>()) {
        let (name, number) = (NAMES[which], task[which]);
        let mut record = vec![0; 100];
        record[8] = byte;

        let around = as_task(task);
        let hit = |text: String| one_hit(&text, &record, &around).expect(&text);

        prop_assert_eq!(hit(format!("keys={name}")).0, [number]);
        prop_assert_eq!(hit(format!("keys={name}.buckets=10")).0, [number / 10 * 10]);
        prop_assert_eq!(hit(format!("keys=u8,{name}:vals={name}")), (vec![byte.into(), number], vec![number]));
        prop_assert_eq!(hit(format!("keys={name}*3-u8")).0, [number.wrapping_mul(3).wrapping_sub(byte.into())]);
        prop_assert_eq!(hit(format!("keys=$x:x={name}+1")).0, [number.wrapping_add(1)]);
        prop_assert_eq!(hit(format!("keys={}", NAMES[..3].join(","))).0, &task[..3]);

        // As a variable, saved, and in an event.
        let mut world = World::default();
        let ty = ["pid_t", "u64", "unsigned int", "int"][which];

        world.synth(&format!("done {ty} a"));
        let n = world.add(&ZOO, ALL, &format!("keys=u8:x={name}:m=u8+1:onmax($m).save({name}):onmax($m).done({name})"));
        let reader = world.add(&ZOO, OTHER, "keys=u8:vals=$x");

        let ended = world.hit(n, &record, &around);
        prop_assert_eq!(ended.traced.len(), 1);
        prop_assert_eq!(world.hit(reader, &record, &as_task([0; 4])), HIT);
        prop_assert_eq!(world.sums(reader), [(vec![byte.into()], vec![1, number])]);
        let saved = format!("{name}: {number:>10}");
        prop_assert!(world.rows(n)[0].contains(&saved), "{} has no {saved}", world.rows(n)[0]);

        // By which one is joined with what the same task has left.
        let mut world = World::default();
        let start = world.add(&ZOO, OTHER, &format!("keys={name}:ts=common_timestamp"));
        let end = world.add(&ZOO, ALL, &format!("join({name}):d=common_timestamp-$ts:keys={name},$d"));
        let mut another = task;

        another[which] ^= 1;
        prop_assert_eq!(world.hit(start, &record, &Around { ts: 10, ..around }), HIT);
        prop_assert_eq!(world.hit(end, &record, &Around { ts: 15, ..as_task(another) }), IGNORED);
        prop_assert_eq!(world.hit(end, &record, &Around { ts: 17, ..around }), HIT);
        prop_assert_eq!(world.sums(end), [(vec![number, 7], vec![1])]);
    }
}

#[test]
fn a_field_of_the_event_comes_first() {
    const EVENT: Event = Event(&[(
        "common_uid",
        "u64",
        8,
        8,
        false,
        rust_hist::field::FieldKind::Other,
    )]);

    let mut world = World::default();
    let n = world.add(&EVENT, ALL, "keys=common_uid,common_tgid");
    let mut record = vec![0; 16];

    record[8] = 5;
    world.hit(n, &record, &AROUND);
    assert_eq!(world.sums(n), [(vec![5, AROUND.task[0]], vec![1])]);
}

#[test]
fn columns_have_their_names() {
    let mut world = World::default();
    let n = world.add(
        &ZOO,
        ALL,
        "keys=common_tgid,common_uid.hex:vals=common_node:sort=common_uid",
    );

    world.hit(n, &[0; 16], &AROUND);
    assert_eq!(
        world.rows(n),
        ["{ common_tgid:         77, common_uid: 3e8 } hitcount:          1  common_node:          1\n"]
    );
}
