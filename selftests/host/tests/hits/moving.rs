// SPDX-License-Identifier: GPL-2.0

//! Variables that other triggers read, and values that handlers track, while the table gets a larger map: X-60.

use crate::{
    lang_common::*,
    run::*, //
};
use proptest::prelude::*;
use rust_hist::{
    program::track_row,
    tracing_map::Row, //
};
use std::collections::BTreeMap;

const BITS: u32 = 3;

#[derive(Clone, Copy, Debug)]
enum Op {
    /// Sets the variable of a key; `late` if the hit has begun before the exchange.
    Start { key: u64, value: u8, late: bool },
    /// Reads it.
    End { key: u64, late: bool },
    /// The next step of growth.
    Step,
}

fn op() -> impl Strategy<Value = Op> {
    let (key, late) = (0..10u64, prop::bool::weighted(0.3));

    prop_oneof![
        3 => (key.clone(), 1..=u8::MAX, late.clone())
            .prop_map(|(key, value, late)| Op::Start { key, value, late }),
        3 => (key, late).prop_map(|(key, late)| Op::End { key, late }),
        1 => Just(Op::Step),
    ]
}

/// How far the growth is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    Old,
    Prepared,
    Exchanged,
    /// The slots before this one have been gone through.
    Carrying(usize),
    Settled,
}

/// A variable in both maps: the first is `Some` from the first write on.
#[derive(Clone, Copy, Debug, Default)]
struct Var {
    new: Option<Option<u8>>,
    old: Option<u8>,
}

fn record_of(key: u64, value: u8) -> [u8; 64] {
    let mut record = [0; 64];

    record[8] = value;
    record[10..12].copy_from_slice(&(u16::from(value) * 2).to_ne_bytes());
    record[24..32].copy_from_slice(&key.to_ne_bytes());
    record
}

/// The next step of the growth of the first table.
fn next_stage(world: &mut World, stage: Stage) -> Stage {
    let source = &world.triggers[0];
    let slots = source.map.slot_ranges().last().expect("slots").end;

    match stage {
        Stage::Old => {
            world.enlarge(0);
            Stage::Prepared
        }
        Stage::Prepared => {
            source.exchange();
            Stage::Exchanged
        }
        Stage::Exchanged => Stage::Carrying(0),
        Stage::Carrying(at) if at == slots => {
            source.live().release(&source.map);
            source.settle();
            Stage::Settled
        }
        Stage::Carrying(at) => {
            source.take_rows(at..at + 1);
            Stage::Carrying(at + 1)
        }
        Stage::Settled => Stage::Settled,
    }
}

/// `takes` says whether a read unsets the variable.
fn run(world: &World, path: &Path, takes: bool, ops: &[Op]) {
    let mut world = world.anew();
    let (mut stage, mut vars) = (Stage::Old, BTreeMap::<u64, Var>::new());
    let mut sums = BTreeMap::<u64, (u64, u64)>::new();
    let mut ignored = 0;

    for op in ops.iter().chain([&Op::Step; 40]) {
        let source = &world.triggers[0];
        let is_open = matches!(stage, Stage::Old | Stage::Prepared | Stage::Exchanged);
        let was_exchanged = !matches!(stage, Stage::Old | Stage::Prepared);

        match *op {
            Op::Start { late: true, .. } | Op::End { late: true, .. } if !is_open => (),
            Op::Start { key, value, late } => {
                let hit = || world.hit(0, &record_of(key, value), &AROUND).is_hit;
                let is_hit = if late { source.as_before(hit) } else { hit() };
                let var = vars.entry(key).or_default();

                match late || !was_exchanged {
                    _ if !is_hit => (),
                    true => var.old = Some(value),
                    false => var.new = Some(Some(value)),
                }
            }
            Op::End { key, late } => {
                let hit = || world.hit_on(path, 1, &record_of(key, 0), &AROUND).is_hit;
                let is_hit = if late { source.as_before(hit) } else { hit() };
                let var = vars.entry(key).or_default();
                let cell = match &mut var.new {
                    Some(new) if !late => new,
                    _ => &mut var.old,
                };

                assert_eq!(is_hit, cell.is_some(), "{op:?}, {stage:?} on {}", path.name);
                if let Some(value) = *cell {
                    let sum = sums.entry(key).or_default();
                    *sum = (sum.0 + 1, sum.1 + u64::from(value));
                }
                if takes {
                    *cell = None;
                }
                ignored += u64::from(!is_hit);
            }
            Op::Step => {
                stage = next_stage(&mut world, stage);
            }
        }
    }
    assert_eq!(stage, Stage::Settled);

    // What is left is there to be read.
    for (&key, var) in &vars {
        let left = var.new.unwrap_or(var.old);
        let is_hit = world.hit_on(path, 1, &record_of(key, 0), &AROUND).is_hit;

        assert_eq!(is_hit, left.is_some(), "key {key} on {}", path.name);
        if let Some(value) = left {
            let sum = sums.entry(key).or_default();
            *sum = (sum.0 + 1, sum.1 + u64::from(value));
        }
        ignored += u64::from(!is_hit);
    }
    let found = world
        .sums(1)
        .into_iter()
        .map(|(key, sums)| (key[0], (sums[0], sums[1])));
    assert_eq!(found.collect::<BTreeMap<_, _>>(), sums, "{}", path.name);
    assert_eq!(world.triggers[1].map().account().ignored, ignored);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn each_value_is_read_where_it_is(ops in prop::collection::vec(op(), 0..120)) {
        for (user, takes) in [
            ("keys=u64:vals=$a", false),
            ("keys=u64:x=$a+0,y=$a:vals=$x", true),
            ("join(u64):keys=$k:k=u64:vals=$a+u8", true),
        ] {
            for hash in [Hash::Seeded, Hash::Same] {
                let mut world = World {
                    tables: Tables { bits: BITS, hash, ..Tables::default() },
                    ..World::default()
                };
                world.add(&ZOO, WAKING, "keys=u64:a=u8:size=128..256");
                world.tables.bits = 4;
                world.add(&ZOO, WAKING, user);
                let mut paths = 0;
                for path in world.paths(1) {
                    run(&world, &path, takes, &ops);
                    paths += 1;
                }
                assert!(paths > 0);
            }
        }
    }
}

/// Hits a table that grows meanwhile, and one that does not: each hit does the same, and so are the rows in the end.
fn track(world: &World, path: &Path, fixed: &World, ops: &[Op]) {
    let (mut world, fixed, mut stage) = (world.anew(), fixed.anew(), Stage::Old);
    let mut dropped = 0;

    for op in ops.iter().chain([&Op::Step; 40]) {
        match *op {
            // One that has begun before is one of a moment when the table did not grow yet.
            Op::Start { late: true, .. } | Op::End { .. } => (),
            Op::Start { key, value, .. } => {
                let record = record_of(key, value);
                let ended = world.hit_on(path, 0, &record, &AROUND);
                dropped += u32::from(!ended.is_hit);
                if ended.is_hit {
                    let wanted = fixed.hit(0, &record, &AROUND);
                    assert_eq!(
                        ended.snapshots, wanted.snapshots,
                        "{op:?}, {stage:?} on {}",
                        path.name
                    );
                }
            }
            Op::Step => stage = next_stage(&mut world, stage),
        }
    }
    assert_eq!(stage, Stage::Settled);
    assert_eq!(
        world.rows(0),
        fixed.rows(0),
        "{dropped} dropped on {}",
        path.name
    );
}

/// Hits with `onmax()` that begin before the exchange among others: the largest number of all is kept, with what was saved
/// with it.
fn track_late(world: &World, path: &Path, ops: &[Op]) {
    let (mut world, mut stage) = (world.anew(), Stage::Old);
    let mut largest = BTreeMap::<u64, u8>::new();

    for op in ops.iter().chain([&Op::Step; 40]) {
        let source = &world.triggers[0];
        let is_open = matches!(stage, Stage::Old | Stage::Prepared | Stage::Exchanged);

        match *op {
            Op::End { .. } => (),
            Op::Start { late: true, .. } if !is_open => (),
            Op::Start { key, value, late } => {
                let hit = || {
                    world
                        .hit_on(path, 0, &record_of(key, value), &AROUND)
                        .is_hit
                };
                if if late { source.as_before(hit) } else { hit() } {
                    let most = largest.entry(key).or_default();
                    *most = value.max(*most);
                }
            }
            Op::Step => stage = next_stage(&mut world, stage),
        }
    }
    let program = &world.triggers[0].program;
    let track = program.actions()[0].track().expect("tracked");
    let found = world.with_rows(0, |_, rows| {
        let row = |row: &Row<'_>| {
            let kept = track_row(&track, row.aux);
            assert_eq!(kept.row, [kept.value * 2], "saved by another hit");
            (row.key[0], kept.value as u8)
        };
        rows.iter().map(row).collect::<BTreeMap<_, _>>()
    });
    assert_eq!(found, largest, "{}", path.name);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn each_tracked_value_comes_along(ops in prop::collection::vec(op(), 0..120)) {
        for handler in ["onmax($a)", "onchange($a)", "onchange($a,9)", "onover($a,150)", "onover($a,150,60)"] {
            for action in ["snapshot()", "save(u8,u64)"] {
                for (key, hash) in [("u64", Hash::Seeded), ("u64,u16", Hash::Seeded), ("u64", Hash::Same)] {
                    let text = |size| format!("keys={key}:a=u8:{handler}.{action}:size={size}");
                    let mut world = World {
                        tables: Tables { bits: BITS, hash, ..Tables::default() },
                        ..World::default()
                    };
                    let mut fixed = World::default();
                    world.add(&ZOO, WAKING, &text("128..256"));
                    fixed.add(&ZOO, WAKING, &text("256"));
                    for path in world.paths(0) {
                        track(&world, &path, &fixed, &ops);
                    }
                }
            }
        }
    }

    #[test]
    fn the_largest_of_all_is_kept(ops in prop::collection::vec(op(), 0..120)) {
        for hash in [Hash::Seeded, Hash::Same] {
            let mut world = World {
                tables: Tables { bits: BITS, hash, ..Tables::default() },
                ..World::default()
            };
            world.add(&ZOO, WAKING, "keys=u64:a=u8:onmax($a).save(u16):size=128..256");
            for path in world.paths(0) {
                track_late(&world, &path, &ops);
            }
        }
    }
}
