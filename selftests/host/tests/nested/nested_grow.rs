// SPDX-License-Identifier: GPL-2.0

//! A table that grows, interrupted before each of its accesses by hits of the table; and a hit that is interrupted by the
//! exchange of the map that it uses; and both where the table has variables or tracked values: X-60.

use crate::{
    common::{
        grow::Table,
        Same, //
    },
    interrupted_at,
    lang_common::*,
    run::*, //
};
use rust_hist::{
    program::track_row,
    tracing_map::{
        KeyHash,
        SeededHash, //
    }, //
};
use std::{
    cell::Cell,
    collections::BTreeMap,
    rc::Rc, //
};

/// What holds when all is over: the keys that were counted are there as often.
fn settle<H: KeyHash>(table: &Table<H>, counted: &[u64], calls: usize) {
    let mut expected = BTreeMap::<u64, (u64, u64)>::new();

    for &key in counted {
        let row = expected.entry(key).or_default();
        *row = (row.0 + 1, row.1 + key);
    }
    assert_eq!(table.rows(), expected);
    assert_eq!(table.rest().1.calls(), calls as u64);
    table.check_room();
}

/// Grows a table that has the keys `before`; `inner` come before access `at`, one after the other. Returns whether they came.
fn grow<H: KeyHash + 'static>(bits: u32, before: &[u64], inner: &'static [u64], at: u64) -> bool {
    let table = Rc::new(Table::<H>::new(bits, bits + 1, false, 1));
    let counted = Rc::new(Cell::new(Vec::new()));
    let mut all: Vec<u64> = before.to_vec();

    for &key in before {
        assert!(table.hit_in(0, 0, key).0.is_some());
    }
    let nested = {
        let (table, counted) = (table.clone(), counted.clone());
        move || {
            let hit = |&key: &u64| table.hit_in(table.live(), 0, key).0.map(|_| key);
            counted.set(inner.iter().filter_map(hit).collect());
        }
    };
    let ((), came) = interrupted_at(at, nested, || {
        let next = table.prepare();
        table.exchange(next);
        table.finish(next, 0);
    });

    let calls = before.len() + if came { inner.len() } else { 0 };
    all.extend(counted.take());
    settle(&table, &all, calls);
    came
}

/// A hit of `key`, before whose access `at` the table gets its next map.
fn hit<H: KeyHash + 'static>(bits: u32, before: &[u64], key: u64, at: u64) -> bool {
    let table = Rc::new(Table::<H>::new(bits, bits + 1, false, 1));
    let mut all: Vec<u64> = before.to_vec();

    for &key in before {
        assert!(table.hit_in(0, 0, key).0.is_some());
    }
    let nested = {
        let table = table.clone();
        move || {
            let next = table.prepare();
            table.exchange(next);
            // Another hit of the key comes to the next map before this one is over.
            assert!(table.hit_in(next, 0, key).0.is_some());
        }
    };
    let (counted, came) = interrupted_at(at, nested, || table.hit_in(table.live(), 0, key).0);

    all.extend(counted.map(|_| key));
    if came {
        all.push(key);
        table.finish(1, 0);
    }
    settle(&table, &all, before.len() + 1 + usize::from(came));
    came
}

/// Tries all places; returns how many there are.
fn all(run: impl Fn(u64) -> bool) {
    let tried = (0..).take_while(|&at| run(at)).count();

    assert!(tried >= 4, "{tried} tried");
}

#[test]
fn growth_interrupted_by_hits() {
    all(|at| grow::<SeededHash>(1, &[7], &[7], at));
    all(|at| grow::<SeededHash>(1, &[7], &[8, 7, 8], at));
    all(|at| grow::<Same>(2, &[7, 8, 9], &[9, 10, 7], at));
    all(|at| grow::<Same>(1, &[7, 8], &[9, 10, 11], at));
    all(|at| grow::<Same>(0, &[7], &[8, 9], at));
}

#[test]
fn a_hit_interrupted_by_growth() {
    all(|at| hit::<SeededHash>(1, &[7], 7, at));
    all(|at| hit::<SeededHash>(1, &[7], 8, at));
    all(|at| hit::<Same>(2, &[7, 8, 9], 10, at));
    all(|at| hit::<Same>(1, &[7, 8], 9, at));
}

/// What comes in: steps of growth, by another CPU, and hits of the triggers that set and read the variable.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Came {
    Exchange,
    Carry,
    Settle,
    /// Sets the variable of the growing table to 9, or that of the other one.
    SetA,
    SetB,
    /// Reads both variables, or that of the other table.
    Both,
    OnlyB,
}

const A: usize = 0;
const B: usize = 1;
const BOTH: usize = 2;
const ONLY_B: usize = 3;

/// Tables of which one grows: its next map has the key of the variable if `has_key`.
fn growing(has_key: bool, hash: Hash) -> World {
    let mut world = World {
        tables: Tables {
            bits: 1,
            hash,
            ..Tables::default()
        },
        ..World::default()
    };

    for text in [
        "keys=u64:a=u8:size=128..256",
        "keys=u64:b=u8",
        "keys=u64:x=$a+0,y=$b+0:vals=$x",
        "keys=u64:z=$b+0:vals=$z",
    ] {
        world.add(&ZOO, ALL, text);
    }
    if has_key {
        send(&world, A, 1);
    }
    world.enlarge(A);
    world
}

/// One hit; returns whether it was one.
fn send(world: &World, n: usize, says: u8) -> bool {
    let mut record = [0; 32];

    record[8] = says;
    record[9] = says + 1;
    record[24] = 5;
    world.hit(n, &record, &AROUND).is_hit
}

fn happen(world: &World, event: Came) {
    let source = &world.triggers[A];

    match event {
        Came::Exchange => source.exchange(),
        Came::Carry => source.take_rows(0..8),
        Came::Settle => source.settle(),
        Came::SetA => assert!(send(world, A, 9)),
        Came::SetB => assert!(send(world, B, 1)),
        Came::Both => _ = send(world, BOTH, 0),
        Came::OnlyB => _ = send(world, ONLY_B, 0),
    }
}

/// Runs `outer`, before whose access `at` the `inner` come, and the others before and after it. The variable of the growing
/// table is 7 at first, and 9 if it is set once more. Returns whether the inner ones came.
fn carried(
    has_key: bool,
    hash: Hash,
    before: &[Came],
    outer: Came,
    inner: &'static [Came],
    after: &[Came],
    at: u64,
) -> bool {
    let world = Rc::new(growing(has_key, hash));
    assert!(send(&world, A, 7) && send(&world, B, 1));
    before.iter().for_each(|&event| happen(&world, event));

    let nested = {
        let world = world.clone();
        move || inner.iter().for_each(|&event| happen(&world, event))
    };
    if !interrupted_at(at, nested, || happen(&world, outer)).1 {
        return false;
    }
    after.iter().for_each(|&event| happen(&world, event));

    // Each value has been read once, or is there to be read; and a later one has come last.
    let all = [before, &[outer], inner, after].concat();
    let sets = all.contains(&Came::SetA);
    let (hits, sum) = world
        .sums(BOTH)
        .first()
        .map_or((0, 0), |(_, sums)| (sums[0], sums[1]));
    let mut left = Vec::new();
    loop {
        assert!(send(&world, B, 1));
        if !send(&world, BOTH, 0) {
            break;
        }
        let read: u64 = world.sums(BOTH)[0].1[1] - sum;
        left.push(read - left.iter().sum::<u64>());
    }
    // Who asks while both are set has them.
    if all.contains(&Came::Both) && !all.contains(&Came::OnlyB) {
        assert!(
            hits > 0,
            "{outer:?} by {inner:?} at {at}, {hash:?}, {has_key}"
        );
    }
    let all = (hits, sum, left.as_slice());
    let is_right = match sets {
        false => matches!(all, (1, 7, []) | (0, 0, [7])),
        true => matches!(all, (2, 16, []) | (1, 9, []) | (1, 7, [9]) | (0, 0, [9])),
    };
    assert!(
        is_right,
        "{all:?}: {outer:?} by {inner:?} at {at}, {hash:?}, {has_key}"
    );
    true
}

#[test]
fn variables_on_their_way_between_maps() {
    use Came::*;

    let cases: &[(&[Came], Came, &'static [Came], &[Came])] = &[
        // Who reads, by the steps of growth and by others.
        (&[], Both, &[Exchange], &[Carry, Settle]),
        (&[], Both, &[Exchange, SetA], &[Carry, Settle]),
        (&[Exchange], Both, &[Carry], &[Settle]),
        (&[Exchange], Both, &[Carry, Settle], &[]),
        (&[Exchange], Both, &[Carry, Both], &[Settle]),
        (&[Exchange], Both, &[Both], &[Carry, Settle]),
        (&[Exchange], Both, &[SetA], &[Carry, Settle]),
        (&[Exchange], Both, &[SetA, Carry], &[Settle]),
        (&[Exchange], Both, &[Carry, SetA], &[Settle]),
        // What was taken is put back, as the other variable has gone.
        (&[Exchange], Both, &[OnlyB], &[Carry, Settle]),
        (&[Exchange], Both, &[OnlyB, Carry], &[Settle]),
        (&[Exchange], Both, &[OnlyB, Carry, Settle], &[]),
        (&[Exchange], Both, &[OnlyB, Carry, SetA], &[Settle]),
        (&[Exchange], Both, &[OnlyB, SetA], &[Carry, Settle]),
        // The thread that grows the table, and who sets the variable.
        (&[Exchange], Carry, &[Both], &[Settle]),
        (&[Exchange], Carry, &[SetA], &[Settle]),
        (&[Exchange], Carry, &[SetA, Both], &[Settle]),
        (&[Exchange], Carry, &[Both, SetA, SetB, Both], &[Settle]),
        (&[Exchange], SetA, &[Both], &[Carry, Settle]),
        (&[Exchange], SetA, &[Carry], &[Settle]),
        (&[Exchange], SetA, &[Carry, Both], &[Settle]),
    ];

    for &(before, outer, inner, after) in cases {
        for has_key in [false, true] {
            for hash in [Hash::Seeded, Hash::Same] {
                all(|at| carried(has_key, hash, before, outer, inner, after, at));
            }
        }
    }
}

/// What comes in at a tracked value: steps of growth, and hits with a number, `Late` as one that began before the exchange.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Exchange,
    Carry,
    Settle,
    Hit(u8),
    Late(u8),
}

/// Runs `outer`, before whose access `at` the `inner` steps come, and the others before and after it, on a table that is about
/// to grow and has 5 as the largest number. Returns whether the inner ones came.
fn tracked(before: &[Step], outer: Step, inner: &'static [Step], after: &[Step], at: u64) -> bool {
    let mut world = World {
        tables: Tables {
            bits: 1,
            ..Tables::default()
        },
        ..World::default()
    };
    world.add(&ZOO, ALL, "keys=u64:a=u8:onmax($a).save(s8):size=128..256");
    assert!(send(&world, A, 5));
    world.enlarge(A);

    let world = Rc::new(world);
    let happen = |world: &World, step: Step| {
        let source = &world.triggers[A];

        match step {
            Step::Exchange => source.exchange(),
            Step::Carry => source.take_rows(0..8),
            Step::Settle => source.settle(),
            Step::Hit(says) => assert!(send(world, A, says)),
            Step::Late(says) => assert!(source.as_before(|| send(world, A, says))),
        }
    };
    before.iter().for_each(|&step| happen(&world, step));
    let nested = {
        let world = world.clone();
        move || inner.iter().for_each(|&step| happen(&world, step))
    };
    if !interrupted_at(at, nested, || happen(&world, outer)).1 {
        return false;
    }
    after.iter().for_each(|&step| happen(&world, step));

    let sent = [before, &[outer], inner, after].concat();
    let numbers = sent.iter().filter_map(|step| match *step {
        Step::Hit(says) | Step::Late(says) => Some(u64::from(says)),
        _ => None,
    });
    let largest = numbers.max().map_or(5, |largest| largest.max(5));
    let track = world.triggers[A].program.actions()[0].track();
    let case = format!("{outer:?} by {inner:?} at {at}");
    world.with_rows(A, |_, rows| {
        let kept = track_row(&track.expect("tracked"), rows[0].aux);
        assert_eq!(
            (kept.value, kept.row),
            (largest, &[largest + 1][..]),
            "{case}"
        );
    });
    assert_eq!(world.triggers[A].live().account().lost_saves, 0, "{case}");
    true
}

#[test]
fn tracked_values_on_their_way_between_maps() {
    use Step::*;

    let cases: &[(&[Step], Step, &'static [Step], &[Step])] = &[
        // Hits of the new map, by the steps of growth and by others.
        (&[Exchange], Hit(7), &[Carry], &[Settle]),
        (&[Exchange], Hit(3), &[Carry], &[Settle]),
        (&[Exchange], Hit(7), &[Carry, Settle], &[]),
        (&[Exchange], Hit(7), &[Hit(9)], &[Carry, Settle]),
        (&[Exchange], Hit(9), &[Hit(7)], &[Carry, Settle]),
        (&[Exchange], Hit(7), &[Hit(3), Carry], &[Settle]),
        // Others that go on in the old one.
        (&[Exchange], Hit(7), &[Late(9)], &[Carry, Settle]),
        (&[Exchange], Hit(9), &[Late(7)], &[Carry, Settle]),
        (&[Exchange, Late(8)], Hit(7), &[Late(9)], &[Carry, Settle]),
        (&[Exchange, Hit(6)], Late(9), &[Hit(7)], &[Carry, Settle]),
        (&[], Hit(7), &[Exchange, Hit(6)], &[Carry, Settle]),
        (&[], Hit(6), &[Exchange, Hit(7)], &[Carry, Settle]),
        // The thread that grows the table.
        (&[Exchange], Carry, &[Hit(7)], &[Settle]),
        (&[Exchange], Carry, &[Hit(3)], &[Settle]),
        (&[Exchange], Carry, &[Hit(7), Hit(9)], &[Settle]),
    ];

    for &(before, outer, inner, after) in cases {
        all(|at| tracked(before, outer, inner, after, at));
    }
}
