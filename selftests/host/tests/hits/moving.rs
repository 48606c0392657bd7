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
use std::{
    cell::RefCell,
    collections::BTreeMap,
    rc::Rc, //
};

const BITS: u32 = 4;
/// From this key on others crowd the table, so that it grows.
const CROWD: u64 = 1000;

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

/// What surrounds a hit of the first table: whether it has begun before the exchange.
fn around(is_late: bool) -> Around {
    Around { is_late, ..AROUND }
}

/// Whether the first table has its larger map.
fn has_grown(world: &World) -> bool {
    world.triggers[0].map().shape().elts > 1 << BITS
}

/// Gives the first table a larger map while `hit` is called for the other operations: for those before the first step before
/// that begins, for those between two steps at one of the places where others may come in, and for the last ones after it.
fn grow(world: World, ops: &[Op], mut hit: impl FnMut(&World, Op) + 'static) -> Rc<World> {
    let world = Rc::new(world);
    let source = &world.triggers[0];
    let mut ops = ops.to_vec().into_iter();
    source.begin_late();
    for op in ops.by_ref().take_while(|op| !matches!(op, Op::Step)) {
        hit(&world, op);
    }
    for key in (CROWD..).take_while(|_| !source.map().is_crowded()) {
        hit(
            &world,
            Op::Start {
                key,
                value: 1,
                late: false,
            },
        );
    }

    let rest = Rc::new(RefCell::new((ops, hit)));
    let hook = {
        let (world, rest) = (world.clone(), rest.clone());
        move |place| {
            let (ops, hit) = &mut *rest.borrow_mut();
            for op in ops.take_while(|op| !matches!(op, Op::Step)) {
                hit(&world, op);
            }
            if place == At::Grace {
                world.triggers[0].end_late();
            }
        }
    };
    with_hook(hook, || source.table.replace()).expect("memory");
    assert_eq!(source.table.replacements().0, 1);
    let (ops, hit) = &mut *rest.borrow_mut();
    for op in ops.filter(|op| !matches!(op, Op::Step)) {
        hit(&world, op);
    }
    world
}

/// What came of the hits that set a variable and read it.
#[derive(Default)]
struct Found {
    vars: BTreeMap<u64, Var>,
    sums: BTreeMap<u64, (u64, u64)>,
    ignored: u64,
}

impl Found {
    fn read(&mut self, key: u64, value: Option<u8>) {
        match value {
            Some(value) => {
                let sum = self.sums.entry(key).or_default();
                *sum = (sum.0 + 1, sum.1 + u64::from(value));
            }
            None => self.ignored += 1,
        }
    }
}

/// `takes` says whether a read unsets the variable.
fn run(world: &World, path: &Path, takes: bool, ops: &[Op]) {
    let found = Rc::new(RefCell::new(Found::default()));
    let hit = {
        let (path, found) = (*path, found.clone());
        move |world: &World, op: Op| {
            let found = &mut *found.borrow_mut();
            let (key, value, late) = match op {
                Op::Start { key, value, late } => (key, Some(value), late),
                Op::End { key, late } => (key, None, late),
                Op::Step => return,
            };
            // It may be over.
            if late && !world.triggers[0].has_late() {
                return;
            }
            let is_new = has_grown(world) && !late;
            let record = record_of(key, value.unwrap_or(0));
            let var = found.vars.entry(key).or_default();

            if value.is_some() {
                match world.hit(0, &record, &around(late)).is_hit {
                    false => (),
                    true if is_new => var.new = Some(value),
                    true => var.old = value,
                }
                return;
            }
            let is_hit = world.hit_on(&path, 1, &record, &around(late)).is_hit;
            let cell = match &mut var.new {
                Some(new) if !late => new,
                _ => &mut var.old,
            };
            let value = *cell;
            assert_eq!(is_hit, value.is_some(), "{op:?} on {}", path.name());
            if takes {
                *cell = None;
            }
            found.read(key, value);
        }
    };
    let world = grow(world.anew(), ops, hit);

    // What is left is there to be read.
    let found = &mut *found.borrow_mut();
    for (key, var) in found.vars.clone() {
        let left = var.new.unwrap_or(var.old);
        let is_hit = world.hit_on(path, 1, &record_of(key, 0), &AROUND).is_hit;

        assert_eq!(is_hit, left.is_some(), "key {key} on {}", path.name());
        found.read(key, left);
    }
    let sums = world
        .sums(1)
        .into_iter()
        .map(|(key, sums)| (key[0], (sums[0], sums[1])));
    assert_eq!(
        sums.collect::<BTreeMap<_, _>>(),
        found.sums,
        "{}",
        path.name()
    );
    assert_eq!(world.triggers[1].map().account().ignored, found.ignored);
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
                world.tables.bits = 6;
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
    let fixed = Rc::new(fixed.anew());
    let hit = {
        let (path, fixed) = (*path, fixed.clone());
        move |world: &World, op: Op| {
            // One that has begun before is one of a moment when the table did not grow yet.
            let Op::Start {
                key,
                value,
                late: false,
            } = op
            else {
                return;
            };
            let record = record_of(key, value);
            let ended = world.hit_on(&path, 0, &record, &AROUND);
            if ended.is_hit {
                let wanted = fixed.hit(0, &record, &AROUND);
                assert_eq!(
                    ended.snapshots,
                    wanted.snapshots,
                    "{op:?} on {}",
                    path.name()
                );
            }
        }
    };
    let world = grow(world.anew(), ops, hit);
    assert_eq!(world.rows(0), fixed.rows(0), "{}", path.name());
}

/// Hits with `onmax()` that begin before the exchange among others: the largest number of all is kept, with what was saved
/// with it.
fn track_late(world: &World, path: &Path, ops: &[Op]) {
    let largest = Rc::new(RefCell::new(BTreeMap::<u64, u8>::new()));
    let hit = {
        let (path, largest) = (*path, largest.clone());
        move |world: &World, op: Op| {
            let Op::Start { key, value, late } = op else {
                return;
            };
            if late && !world.triggers[0].has_late() {
                return;
            }
            let ended = world.hit_on(&path, 0, &record_of(key, value), &around(late));
            if ended.is_hit {
                let mut largest = largest.borrow_mut();
                let most = largest.entry(key).or_default();
                *most = value.max(*most);
            }
        }
    };
    let world = grow(world.anew(), ops, hit);

    let program = &world.triggers[0].program;
    let track = program.actions[0].track.expect("tracked");
    let found = world.with_rows(0, |_, rows| {
        let row = |row: &Row<'_>| {
            let kept = track_row(&track, row.aux);
            assert_eq!(kept.row, [kept.value * 2], "saved by another hit");
            (row.key[0], kept.value as u8)
        };
        rows.iter().map(row).collect::<BTreeMap<_, _>>()
    });
    assert_eq!(found, *largest.borrow(), "{}", path.name());
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
