// SPDX-License-Identifier: GPL-2.0

//! Variables of a trigger as numbers of its own hit: what their names come to in keys, values and expressions.

use super::exec_plan::{
    alike,
    FIELDS, //
};
use crate::{
    lang_common::*,
    run::*, //
};
use proptest::prelude::*;

/// A number of few operators.
fn number() -> impl Strategy<Value = String> {
    let fields = || prop::sample::select(&FIELDS[..]);

    prop_oneof![
        (
            fields(),
            prop::sample::select(vec!["*3", "/7", "*s16", "/u8"])
        )
            .prop_map(|(a, b)| format!("{a}{b}")),
        Just("common_timestamp*2".into()),
        Just("common_cpu*5".into()),
        Just("u64.log2*3".into()),
    ]
}

/// What text has in the place of a variable that is a product or a quotient.
fn around() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["@", "@+u8", "@-s16", "s64-@", "@+@", "@-u8"])
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

    /// A name comes to what the definition in its place would come to, wherever it stands.
    #[test]
    fn a_name_comes_to_what_it_is_defined_as(
        number in number(),
        around in around(),
        records in alike(),
        times in 1u32..4,
    ) {
        let record = &records[0];
        let plain = around.replace('@', &number);
        let named = around.replace('@', "$a");
        let again = around.replace('@', "$b");
        let hit = |text: String| one_hit(&text, record, &AROUND).expect(&text);
        let key = hit(format!("keys={plain}"));
        let val = hit(format!("keys=u8:vals={plain}"));

        prop_assert_eq!(&hit(format!("keys={named}:a={number}")), &key);
        prop_assert_eq!(&hit(format!("keys=u8:vals={named}:a={number}")), &val);
        // By another name.
        prop_assert_eq!(&hit(format!("a={number}:b=$a:keys={again}")), &key);
        prop_assert_eq!(&hit(format!("a={number}:x={named}:keys=$x")), &key);
        prop_assert_eq!(&hit(format!("a={number}:x={named}:keys=u8:vals=$x")), &val);

        // What others read is the same, and so is what an action keeps.
        let mut world = World::default();
        let text = format!("keys=u16:a={number}:x={named}:y=$x:onmax($y).save(u8):vals=$y");
        let n = world.add(&ZOO, ALL, &text);
        let reader = world.add(&ZOO, OTHER, "keys=u16:vals=$x,$a");

        for _ in 0..times {
            prop_assert_eq!(world.hit(n, record, &AROUND), HIT);
        }
        prop_assert_eq!(world.hit(reader, record, &AROUND), HIT);

        let (a, x) = (hit(format!("keys={number}")).0[0], key.0[0]);
        let sums = world.sums(reader).remove(0).1;

        prop_assert_eq!(sums, vec![1, x, a]);
        let sums = world.sums(n).remove(0).1;
        prop_assert_eq!(sums[1], x.wrapping_mul(times.into()));
        let max = format!("max: {x:>10}");
        prop_assert!(x == 0 || world.rows(n)[0].contains(&max), "{} has no {max}", world.rows(n)[0]);
    }
}

/// The event of readers.
const OTHER: (&str, &str) = ("zoo", "other");

#[test]
fn modifiers_make_keys_of_numbers_of_the_hit() {
    let mut record = vec![0; 100];

    record[24..32].copy_from_slice(&1000u64.to_ne_bytes());

    let key = |key: &str| {
        one_hit(&format!("keys={key}:x=u64*2:f=u64"), &record, &AROUND)
            .expect(key)
            .0
    };

    assert_eq!(key("$x"), [2000]);
    assert_eq!(key("$x.log2"), [11]);
    assert_eq!(key("$x.buckets=300"), [1800]);
    assert_eq!(key("$x.log2+1"), [12]);
    assert_eq!(key("$f.log2"), [10]);
    assert_eq!(key("u64.log2,$x.log2,$x"), [10, 11, 2000]);
}

#[test]
fn columns_have_the_names_of_variables() {
    let mut world = World::default();
    let n = world.add(
        &SWITCH,
        SWITCHED,
        "keys=$d.log2,next_pid:vals=$d,$sum.hex:d=next_prio*2:sum=$d+prev_prio",
    );

    world.hit(n, &switch("a", 1, "b", 2, 5), &AROUND);
    world.hit(n, &switch("a", 1, "b", 2, 6), &AROUND);
    assert_eq!(
        world.rows(n),
        ["{ d: ~ 2^4 , next_pid:          2 } hitcount:          2  d:         22  sum:         24\n"]
    );
}

#[test]
fn a_value_that_needs_an_unset_variable_is_none() {
    let mut world = World::default();
    let from = world.add(&SWITCH, WAKING, "keys=next_pid:at=common_timestamp");
    let to = world.add(
        &SWITCH,
        SWITCHED,
        "keys=prev_pid:vals=$lat,$twice:lat=common_timestamp-$at:twice=$lat*2",
    );

    assert_eq!(world.triggers[to].program.aux_words(), 0);
    assert_eq!(world.hit(to, &switch("b", 2, "c", 3, 3), &at(10)), IGNORED);
    world.hit(from, &switch("a", 1, "b", 2, 3), &at(20));
    assert_eq!(world.hit(to, &switch("b", 2, "c", 3, 3), &at(27)), HIT);
    // It is consumed.
    assert_eq!(world.hit(to, &switch("b", 2, "c", 3, 3), &at(28)), IGNORED);
    assert_eq!(world.sums(to), [(vec![2], vec![1, 7, 14])]);
}
