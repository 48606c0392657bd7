// SPDX-License-Identifier: GPL-2.0

//! Triggers that look for variables of others by `join()`: against the form with three triggers that C has, where the end
//! of a pair generates an event that carries what the table is to have.

use super::exec_plan::alike;
use crate::{
    lang_common::*,
    run::*, //
};
use proptest::prelude::*;
use rust_hist::tracing_map::Account;

/// The event of starts.
const START: (&str, &str) = ("zoo", "start");

/// What pairs have in common.
const JOINS: &[&str] = &[
    "u8",
    "common_pid",
    "u8,s16",
    "u8,s16,u32",
    "seven",
    "sixteen,u8",
    "filename",
    "label,u64",
    "common_comm,u8",
    "stack",
    "common_stacktrace,cpu",
    "common_timestamp",
];

/// Numbers that the table has: as variables of the trigger, each by those before it, and of C's form.
const NUMBERS: &[(&str, &str, &str)] = &[
    ("d=u64-$n", "d=u64-$n", "$d"),
    ("d=common_timestamp-$ts", "d=common_timestamp-$ts", "$d"),
    (
        "t=common_timestamp-$ts,d=$t*3",
        "d=common_timestamp*3-$ts*3",
        "$d",
    ),
    ("a=$n,b=$a+s16,d=$b-$ts", "d=$n+s16-$ts", "$d"),
    ("c=u16*2,d=$n*$c", "d=$n*2*u16", "$d"),
];

/// A key or value of it, as both forms have it: `lat` is the variable, and the field of the event.
const MODIFIERS: &[&str] = &["", ".log2", ".buckets=1000", ".hex"];

/// Starts twice, an end, and what the end generates.
struct Forms {
    world: World,
    starts: [usize; 2],
    joined: usize,
    /// The end of C's form, and the fields that go on besides the number.
    ended: usize,
}

impl Forms {
    fn new(by: &str, numbers: (&str, &str, &str), columns: &str, tables: Tables) -> Option<Self> {
        let mut world = World {
            tables,
            ..World::default()
        };
        let (joined, plain, _) = numbers;

        world.synth("done u64 lat");

        // Each form has starts of its own, as it takes them.
        let start = |n: &str| format!("keys={by}:n{n}=u64,ts{n}=common_timestamp");
        let starts = ["a", "b"].map(|n| world.try_add(&ZOO, START, start(n).as_bytes()).ok());
        let [Some(a), Some(b)] = starts else {
            return None;
        };
        let of = |text: &str, n: &str| {
            text.replace("$n", &format!("$n{n}"))
                .replace("$ts", &format!("$ts{n}"))
        };
        let joined = format!("join({by}):{}:{columns}", of(joined, "a"));
        let ended = format!("keys={by}:{}:onmatch(zoo.start).done($d)", of(plain, "b"));
        let joined = world.add(&ZOO, ALL, &joined);
        let ended = world.add(&ZOO, ALL, &ended);

        Some(Self {
            world,
            starts: [a, b],
            joined,
            ended,
        })
    }

    /// A record of either event; returns the number that C's form has generated, if it has.
    fn hit(
        &self,
        is_start: bool,
        record: &[u8],
        around: &Around,
    ) -> Result<Option<u64>, TestCaseError> {
        if is_start {
            for n in self.starts {
                prop_assert_eq!(self.world.hit(n, record, around), HIT);
            }
            return Ok(None);
        }
        let joined = self.world.hit(self.joined, record, around);
        let ended = self.world.hit(self.ended, record, around);

        prop_assert_eq!(joined.is_hit, ended.is_hit);
        Ok(ended.traced.first().map(|text| {
            let number = text.split("lat=").nth(1).expect("has the field");
            number.trim().parse().expect("a number")
        }))
    }
}

/// An event with one number, `lat`, in the place of `u64`.
fn generated(lat: u64) -> Vec<u8> {
    let mut record = vec![0; 64];

    record[24..32].copy_from_slice(&lat.to_ne_bytes());
    record
}

/// The sums of rows by their keys.
type Table = Vec<(Vec<u64>, Vec<u64>)>;

fn stream() -> impl Strategy<Value = Vec<(bool, usize, u64)>> {
    prop::collection::vec((any::<bool>(), 0usize..3, 0u64..1 << 40), 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    /// The table of the third trigger of C's form has the same rows.
    #[test]
    fn a_join_leaves_what_three_triggers_leave(
        by in prop::sample::select(JOINS),
        numbers in prop::sample::select(NUMBERS),
        modifier in prop::sample::select(MODIFIERS),
        records in alike(),
        stream in stream(),
        hash in prop::sample::select(vec![Hash::Seeded, Hash::Same, Hash::Quarters]),
    ) {
        let tables = Tables { bits: 7, hash, ..Tables::default() };
        let Some(forms) = Forms::new(by, numbers, &format!("keys=$d{modifier}:vals=$d"), tables) else {
            return Err(TestCaseError::fail(format!("refused: {by}")));
        };
        let mut third = World { tables, ..World::default() };
        let last = third.add(&ZOO, ALL, &format!("keys=u64{modifier}:vals=u64"));

        for (is_start, record, ts) in stream {
            // Where they are joined by it, one is to be found again.
            let ts = if by == "common_timestamp" { ts % 4 } else { ts };

            if let Some(lat) = forms.hit(is_start, &records[record], &at(ts))? {
                prop_assert_eq!(third.hit(last, &generated(lat), &at(ts)), HIT);
            }
        }
        prop_assert_eq!(forms.world.sums(forms.joined), third.sums(last));

        let account = |world: &World, n: usize| world.triggers[n].map().account();
        let Account { hits, ignored, .. } = account(&forms.world, forms.joined);
        prop_assert_eq!(hits, account(&third, last).hits);
        prop_assert_eq!(ignored, account(&forms.world, forms.ended).ignored);

        // Nothing is kept but the columns.
        prop_assert_eq!(forms.world.triggers[forms.joined].program.aux_words(), 0);
    }

    /// With fields of the end in the key as well, a plain table of what was and what came.
    #[test]
    fn rows_have_fields_of_the_end(
        records in alike(),
        stream in stream(),
        keys in prop::sample::select(vec!["u8,$d", "$d.buckets=4096,s16", "filename,$d", "u8,s16,$d", "seven,$d.log2"]),
    ) {
        let mut world = World::default();
        let start = world.add(&ZOO, START, "keys=u8:ts=common_timestamp");
        let end = world.add(&ZOO, ALL, &format!("join(u8):d=common_timestamp-$ts:keys={keys}:vals=u32,$d"));
        let mut set: std::collections::BTreeMap<u8, u64> = Default::default();
        let mut model: std::collections::BTreeMap<Vec<u64>, Vec<u64>> = Default::default();

        for (is_start, record, ts) in stream {
            let record = &records[record];
            let byte = record.get(8).copied().unwrap_or(0);

            if is_start {
                world.hit(start, record, &at(ts));
                set.insert(byte, ts);
                continue;
            }
            let Some(then) = set.remove(&byte) else {
                prop_assert_eq!(world.hit(end, record, &at(ts)), IGNORED);
                continue;
            };
            prop_assert_eq!(world.hit(end, record, &at(ts)), HIT);

            // A trigger alone whose variable is a constant has the same columns.
            let lat = ts.wrapping_sub(then);
            let alone = format!("d={lat}:keys={keys}:vals=u32,$d");
            let (key, sums) = one_hit(&alone, record, &at(ts)).expect("accepted");
            let row = model.entry(key).or_insert_with(|| vec![0; 3]);

            row[0] += 1;
            for (sum, more) in row[1..].iter_mut().zip(sums) {
                *sum = sum.wrapping_add(more);
            }
        }

        let model: Table = model.into_iter().collect();
        prop_assert_eq!(world.sums(end), model);
    }
}

#[test]
fn of_three_consumers_of_one_start_one_counts() {
    let mut world = World::default();
    let start = world.add(&SWITCH, WAKING, "keys=next_pid:ts=common_timestamp");
    let ends = ["next_comm", "next_prio", "prev_comm,$d"].map(|keys| {
        world.add(
            &SWITCH,
            SWITCHED,
            &format!("join(prev_pid):d=common_timestamp-$ts:keys={keys}:vals=$d"),
        )
    });
    let record = switch("a", 2, "b", 2, 3);

    for n in 0..9 {
        world.hit(start, &record, &at(100));

        let hits = ends.map(|end| world.hit(end, &record, &at(107)));
        let hits = hits.iter().filter(|ended| ended.is_hit).count();

        assert_eq!(hits, 1, "in round {n}");
    }
    // Who only looks does not take it.
    let looks = world.add(&SWITCH, SWITCHED, "join(prev_pid):d=$ts:keys=$d");
    world.hit(start, &record, &at(100));
    for _ in 0..3 {
        assert_eq!(world.hit(looks, &record, &at(107)), HIT);
    }
    assert_eq!(world.sums(looks), [(vec![100], vec![3])]);
}

#[test]
fn actions_of_a_join_see_the_numbers_and_the_rows() {
    let mut world = World::default();

    world.synth("done u64 lat; char[] who; s32 prio");
    let start = world.add(
        &SWITCH,
        WAKING,
        "keys=next_pid:ts=common_timestamp,who=prev_comm,prio=next_prio",
    );
    let end = world.add(
        &SWITCH,
        SWITCHED,
        "join(prev_pid):d=common_timestamp-$ts:keys=next_comm:vals=$d:\
         onmax($d).save(next_pid):onmax($d).snapshot():\
         onmatch(sched.sched_waking).done($d,$who,$prio)",
    );

    world.hit(start, &switch("waker", 1, "b", 2, 3), &at(10));

    let ended = world.hit(end, &switch("b", 2, "c", 4, 3), &at(17));

    assert_eq!(ended.traced, ["done: lat=7 who=waker prio=3"]);
    assert_eq!(ended.snapshots, [7]);
    // That of the row, not that by which the variables were found.
    assert_eq!(ended.snapshot_keys, [words_of("c", 2)]);
    assert_eq!(
        world.rows(end)[0].lines().map(str::trim).collect::<Vec<_>>().join("|"),
        format!("{{ next_comm: {:<50} }} hitcount:          1  d:          7|max:          7  next_pid:          4", "c")
    );
    // The variable that actions name can be read by others.
    let other = world.add(&SWITCH, WAKING, "keys=next_comm:x=$d");
    assert_eq!(world.hit(other, &switch("a", 1, "c", 2, 3), &at(20)), HIT);
}

#[test]
fn a_full_table_takes_its_start_all_the_same() {
    let mut world = World::default();
    let start = world.add(&SWITCH, WAKING, "keys=next_pid:ts=common_timestamp");

    world.tables.bits = 0;
    let end = world.add(
        &SWITCH,
        SWITCHED,
        "join(prev_pid):d=common_timestamp-$ts:keys=$d",
    );

    for ts in 10..14 {
        world.hit(start, &switch("a", 1, "b", 2, 3), &at(10));
        world.hit(end, &switch("b", 2, "c", 4, 3), &at(ts));
        // As in C, it is gone.
        assert_eq!(world.hit(end, &switch("b", 2, "c", 4, 3), &at(ts)), IGNORED);
    }

    let account = world.triggers[end].map().account();
    assert_eq!(
        (account.ignored, account.hits + account.dropped_full),
        (4, 4)
    );
    assert!(account.dropped_full > 0, "{account:?}");
}
