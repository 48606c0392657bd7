// SPDX-License-Identifier: GPL-2.0

//! A table that grows, interrupted before each of its accesses by hits of the table; and a hit that is interrupted by the
//! exchange of the map that it uses; and both where the table has variables or tracked values: X-60.

use crate::{
    interrupted_at,
    lang_common::*,
    run::*, //
};
use rust_hist::{
    program::track_row,
    sync::interrupted, //
};
use std::{
    cell::{
        Cell,
        RefCell, //
    },
    collections::BTreeMap,
    rc::Rc,
    sync::{
        atomic::{
            AtomicBool,
            Ordering, //
        },
        Arc, //
    },
};

/// A table of `1 << bits` entries that has the keys `before` and may have twice as many.
fn counting(bits: u32, hash: Hash, before: &[u64]) -> World {
    let mut world = World {
        tables: Tables {
            bits,
            grows_to: bits + 1,
            cpus: 1,
            hash,
        },
        ..World::default()
    };

    world.add(&ZOO, ALL, "keys=u64:vals=u64:size=128..256");
    for &key in before {
        assert!(count(&world, key));
    }
    world
}

/// One hit of a key, with the key as value; returns whether it was one.
fn count(world: &World, key: u64) -> bool {
    let mut record = [0; 32];

    record[24..].copy_from_slice(&key.to_ne_bytes());
    world.hit(0, &record, &Around { cpu: 0, ..AROUND }).is_hit
}

/// What holds when all is over: the keys that were counted are there as often, and no element is lost: as many further keys
/// fit as there is room for.
fn settle(world: &World, counted: &[u64], calls: usize) {
    let mut expected = BTreeMap::<u64, (u64, u64)>::new();

    for &key in counted {
        let row = expected.entry(key).or_default();
        *row = (row.0 + 1, row.1 + key);
    }
    let found = world.sums(0).into_iter();
    let found: BTreeMap<_, _> = found
        .map(|(key, sums)| (key[0], (sums[0], sums[1])))
        .collect();
    assert_eq!(found, expected);
    let account = world.triggers[0].table.account().expect("memory");
    assert_eq!(account.calls(), calls as u64);

    let map = world.triggers[0].map();
    let fit = (1_000_000..).take_while(|&key| map.insert(&[key], |_| ()).is_some());
    assert_eq!(
        found.len() + fit.count(),
        map.shape().elts,
        "an element was lost"
    );
}

/// Grows a table that has the keys `before`; `inner` come before access `at`, one after the other. Returns whether they came.
fn grow(bits: u32, hash: Hash, before: &[u64], inner: &'static [u64], at: u64) -> bool {
    let world = Rc::new(counting(bits, hash, before));
    let counted = Rc::new(Cell::new(Vec::new()));
    let mut all: Vec<u64> = before.to_vec();

    let nested = {
        let (world, counted) = (world.clone(), counted.clone());
        move || {
            let hit = |&key: &u64| count(&world, key).then_some(key);
            counted.set(inner.iter().filter_map(hit).collect());
        }
    };
    let table = &world.triggers[0].table;
    let (done, came) = interrupted_at(at, nested, || table.replace());
    done.expect("memory");
    assert_eq!(table.replacements().0, 1);

    let calls = before.len() + if came { inner.len() } else { 0 };
    all.extend(counted.take());
    settle(&world, &all, calls);
    came
}

/// A hit of `key`, before whose access `at` the table gets its next map.
fn hit(bits: u32, hash: Hash, before: &[u64], key: u64, at: u64) -> bool {
    let world = Rc::new(counting(bits, hash, before));
    let growth = Rc::new(RefCell::new(None));
    let mut all: Vec<u64> = before.to_vec();

    let nested = {
        let (world, growth) = (world.clone(), growth.clone());
        move || {
            let table = world.triggers[0].table.clone();
            let mut begun = Replacement::begin(move || table.replace());
            assert!(begun.go_to(At::Grace));
            growth.replace(Some(begun));
            // Another hit of the key comes to the next map before this one is over.
            assert!(count(&world, key));
        }
    };
    let (counted, came) = interrupted_at(at, nested, || count(&world, key));

    all.extend(counted.then_some(key));
    if let Some(mut begun) = growth.take() {
        all.push(key);
        begun.finish();
    }
    settle(&world, &all, before.len() + 1 + usize::from(came));
    came
}

/// Tries all places; returns how many there are.
fn all(run: impl Fn(u64) -> bool) {
    let tried = (0..).take_while(|&at| run(at)).count();

    assert!(tried >= 4, "{tried} tried");
}

#[test]
fn growth_interrupted_by_hits() {
    use Hash::*;

    all(|at| grow(1, Seeded, &[7], &[7], at));
    all(|at| grow(1, Seeded, &[7], &[8, 7, 8], at));
    all(|at| grow(2, Same, &[7, 8, 9], &[9, 10, 7], at));
    all(|at| grow(1, Same, &[7, 8], &[9, 10, 11], at));
    all(|at| grow(0, Same, &[7], &[8, 9], at));
}

#[test]
fn a_hit_interrupted_by_growth() {
    use Hash::*;

    all(|at| hit(1, Seeded, &[7], 7, at));
    all(|at| hit(1, Seeded, &[7], 8, at));
    all(|at| hit(2, Same, &[7, 8, 9], 10, at));
    all(|at| hit(1, Same, &[7, 8], 9, at));
}

/// A thread that gives the first table its larger map, one step after the other.
struct Growth {
    replacement: RefCell<Replacement>,
    /// Its accesses are counted, and at one of them it is interrupted, which has happened.
    counts: Arc<AtomicBool>,
    came: Arc<AtomicBool>,
}

impl Growth {
    /// Begins, up to where the next map has the keys that are there. `inner` is to come before access `at` of those that are
    /// counted.
    fn prepare(world: &Arc<World>, at: u64, inner: impl Fn(&World) + Send + 'static) -> Self {
        let counts = Arc::new(AtomicBool::new(false));
        let came = Arc::new(AtomicBool::new(false));
        let (world, is_counting, has_come) = (world.clone(), counts.clone(), came.clone());
        let mut replacement = Replacement::begin(move || {
            let steps = Cell::new(0);
            let table = world.triggers[A].table.clone();
            let handler = move || {
                if is_counting.load(Ordering::Relaxed) && steps.replace(steps.get() + 1) == at {
                    inner(&world);
                    has_come.store(true, Ordering::Relaxed);
                }
            };
            interrupted(handler, || table.replace())
        });

        // There is memory for the map, and the mutex is about to be taken for the exchange.
        assert!(replacement.go_to(At::Step) && replacement.go_to(At::Lock));
        Self {
            replacement: RefCell::new(replacement),
            counts,
            came,
        }
    }

    /// Has hits go to the next map.
    fn exchange(&self) {
        assert!(self.replacement.borrow_mut().go_to(At::Grace));
    }

    /// Takes the rows, when no hit uses the old map any more. It is interrupted if `counts`.
    fn carry(&self, counts: bool) {
        let mut replacement = self.replacement.borrow_mut();

        assert!(replacement.go_to(At::Step));
        self.counts.store(counts, Ordering::Relaxed);
        assert!(replacement.go_to(At::Step));
        self.counts.store(false, Ordering::Relaxed);
    }

    /// Takes the old map out of sight, and waits for hits that may still look there.
    fn settle(&self) {
        assert!(self.replacement.borrow_mut().go_to(At::Grace));
    }

    /// Lets it come to its end.
    fn finish(&self) {
        self.replacement.borrow_mut().finish();
    }
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

/// Tables of which one is to grow: it has the key of the variable already if `has_key`.
fn growing(has_key: bool, hash: Hash) -> World {
    let mut world = World {
        tables: Tables {
            bits: 1,
            grows_to: 2,
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
    // Another key crowds it.
    assert!(world.hit(A, &[0; 32], &AROUND).is_hit);
    if has_key {
        send(&world, A, 1);
    }
    world
}

/// One hit; returns whether it was one.
fn send_as(world: &World, n: usize, says: u8, around: &Around) -> bool {
    let mut record = [0; 32];

    record[8] = says;
    record[9] = says + 1;
    record[24] = 5;
    world.hit(n, &record, around).is_hit
}

fn send(world: &World, n: usize, says: u8) -> bool {
    send_as(world, n, says, &AROUND)
}

/// What hits do.
fn hits(world: &World, event: Came) {
    match event {
        Came::SetA => assert!(send(world, A, 9)),
        Came::SetB => assert!(send(world, B, 1)),
        Came::Both => _ = send(world, BOTH, 0),
        Came::OnlyB => _ = send(world, ONLY_B, 0),
        Came::Exchange | Came::Carry | Came::Settle => panic!("no hit: {event:?}"),
    }
}

fn happen(world: &World, growth: &Growth, event: Came) {
    match event {
        Came::Exchange => growth.exchange(),
        Came::Carry => growth.carry(false),
        Came::Settle => growth.settle(),
        _ => hits(world, event),
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
    let world = Arc::new(growing(has_key, hash));
    let growth = Rc::new(Growth::prepare(&world, at, move |world| {
        inner.iter().for_each(|&event| hits(world, event));
    }));
    assert!(send(&world, A, 7) && send(&world, B, 1));
    let happens = |&event: &Came| happen(&world, &growth, event);
    before.iter().for_each(happens);

    let came = match outer {
        Came::Carry => {
            growth.carry(true);
            growth.came.load(Ordering::Relaxed)
        }
        _ => {
            let nested = {
                let (world, growth) = (world.clone(), growth.clone());
                move || {
                    inner
                        .iter()
                        .for_each(|&event| happen(&world, &growth, event))
                }
            };
            interrupted_at(at, nested, || happen(&world, &growth, outer)).1
        }
    };
    if !came {
        growth.finish();
        return false;
    }
    after.iter().for_each(happens);
    growth.finish();

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

impl Step {
    fn hit(self, world: &World) {
        let (says, is_late) = match self {
            Self::Hit(says) => (says, false),
            Self::Late(says) => (says, true),
            _ => panic!("no hit: {self:?}"),
        };
        assert!(send_as(world, A, says, &Around { is_late, ..AROUND }));
    }
}

/// Runs `outer`, before whose access `at` the `inner` steps come, and the others before and after it, on a table that is about
/// to grow and has 5 as the largest number. Returns whether the inner ones came.
fn tracked(before: &[Step], outer: Step, inner: &'static [Step], after: &[Step], at: u64) -> bool {
    let mut world = World {
        tables: Tables {
            bits: 1,
            grows_to: 2,
            ..Tables::default()
        },
        ..World::default()
    };
    world.add(&ZOO, ALL, "keys=u64:a=u8:onmax($a).save(s8):size=128..256");
    assert!(send(&world, A, 5));

    let world = Arc::new(world);
    let growth = Rc::new(Growth::prepare(&world, at, move |world| {
        inner.iter().for_each(|&step| step.hit(world));
    }));
    world.triggers[A].begin_late();
    let happen = |world: &World, growth: &Growth, step: Step| match step {
        Step::Exchange => growth.exchange(),
        Step::Carry => {
            world.triggers[A].end_late();
            growth.carry(false);
        }
        Step::Settle => growth.settle(),
        hit => hit.hit(world),
    };
    let happens = |&step: &Step| happen(&world, &growth, step);
    before.iter().for_each(happens);
    let came = match outer {
        Step::Carry => {
            world.triggers[A].end_late();
            growth.carry(true);
            growth.came.load(Ordering::Relaxed)
        }
        _ => {
            let nested = {
                let (world, growth) = (world.clone(), growth.clone());
                move || inner.iter().for_each(|&step| happen(&world, &growth, step))
            };
            interrupted_at(at, nested, || happen(&world, &growth, outer)).1
        }
    };
    if !came {
        world.triggers[A].end_late();
        growth.finish();
        return false;
    }
    after.iter().for_each(happens);
    growth.finish();

    let sent = [before, &[outer], inner, after].concat();
    let numbers = sent.iter().filter_map(|step| match *step {
        Step::Hit(says) | Step::Late(says) => Some(u64::from(says)),
        _ => None,
    });
    let largest = numbers.max().map_or(5, |largest| largest.max(5));
    let track = world.triggers[A].program.actions[0].track;
    let case = format!("{outer:?} by {inner:?} at {at}");
    world.with_rows(A, |_, rows| {
        let kept = track_row(&track.expect("tracked"), rows[0].aux);
        assert_eq!(
            (kept.value, kept.row),
            (largest, &[largest + 1][..]),
            "{case}"
        );
    });
    assert_eq!(world.triggers[A].map().account().lost_saves, 0, "{case}");
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
