// SPDX-License-Identifier: GPL-2.0

//! Starts that expire, and what ends them.

use crate::{
    lang_common::*,
    run::*, //
};
use proptest::prelude::*;
use rust_hist::{
    sync::{
        Acquire,
        Atomic,
        Release, //
    },
    tracing_map::{
        sort::{
            sort,
            SortEntry, //
        },
        Generations,
        Left,
        Rows, //
    }, //
};
use std::{
    collections::BTreeMap,
    sync::atomic::{
        AtomicBool,
        AtomicU64,
        Ordering, //
    },
    thread, //
};

#[derive(Clone, Copy, Debug)]
enum Op {
    /// Begins a key; `late` if the hit has begun before the last exchange of maps.
    Start {
        key: u64,
        value: u8,
        late: bool,
    },
    /// Ends it.
    End {
        key: u64,
        late: bool,
    },
    /// Ends the generation, or has a further map within it.
    Turn,
    Extend,
}

fn op() -> impl Strategy<Value = Op> {
    let (key, late) = (0..6u64, prop::bool::weighted(0.2));

    prop_oneof![
        4 => (key.clone(), 1..=u8::MAX, late.clone())
            .prop_map(|(key, value, late)| Op::Start { key, value, late }),
        3 => (key, late).prop_map(|(key, late)| Op::End { key, late }),
        2 => Just(Op::Turn),
        1 => Just(Op::Extend),
    ]
}

fn record_of(key: u64, value: u8) -> [u8; 64] {
    let mut record = [0; 64];

    record[8] = value;
    record[24..32].copy_from_slice(&key.to_ne_bytes());
    record
}

/// The trigger that ends what the first one begins; between the two is one with a variable that is set for each key.
const END: usize = 2;

/// The starts of one map: of each key that has begun there, and whether it has ended.
#[derive(Clone, Default)]
struct Starts {
    last: BTreeMap<u64, Option<u8>>,
    /// How many others nobody has ended before the next one of the key.
    overwritten: u64,
}

fn run(world: &World, path: &Path, ops: &[Op]) {
    let steps = ops
        .iter()
        .filter(|op| matches!(op, Op::Turn | Op::Extend))
        .count();
    let world = world.anew().with_generations(0, steps);
    let source = &world.triggers[0];
    // From the oldest on, and the first of them that is in sight, and that which the next turn leaves in sight.
    let mut maps = vec![Starts::default()];
    let (mut first, mut old) = (0, 0);
    let (mut hits, mut ignored, mut sum) = (0, 0, 0);

    for key in 0..6 {
        assert!(world.hit(1, &record_of(key, 0), &AROUND).is_hit);
    }

    for op in ops {
        let live = maps.len() - 1;
        let at = |late: bool| if late { live.saturating_sub(1) } else { live };

        match *op {
            // Who was late for a turn and is not done at the next one would have been waited for.
            Op::Start { key, value, late } => {
                let hit = || world.hit(0, &record_of(key, value), &AROUND);
                let ended = if late { source.as_before(hit) } else { hit() };
                let map = &mut maps[at(late)];
                let before = map.last.insert(key, Some(value));

                assert_eq!(ended, HIT);
                map.overwritten += u64::from(before.flatten().is_some());
            }
            Op::End { key, late } => {
                let hit = || world.hit_on(path, END, &record_of(key, 0), &AROUND).is_hit;
                let is_hit = if late { source.as_before(hit) } else { hit() };
                let found = (first..=at(late))
                    .rev()
                    .find(|&n| maps[n].last.contains_key(&key))
                    .and_then(|n| maps[n].last.get_mut(&key)?.take());

                assert_eq!(is_hit, found.is_some(), "{op:?} on {}", path.name);
                match found {
                    Some(value) => (hits, sum) = (hits + 1, sum + u64::from(value)),
                    None => ignored += 1,
                }
            }
            Op::Extend => {
                source.extend();
                maps.push(Starts::default());
            }
            Op::Turn => {
                source.hide(old as u32);
                source.exchange();
                maps.push(Starts::default());
                (first, old) = (old, live + 1);
                // All of the maps before the new one are old at the next turn.
                old = old.min(maps.len() - 1);
            }
        }
    }

    let account = world.triggers[END].map.account();
    assert_eq!(
        (account.hits, account.ignored),
        (hits, ignored),
        "{}",
        path.name
    );
    assert_eq!(
        world.sums(END).iter().map(|(_, sums)| sums[1]).sum::<u64>(),
        sum
    );
    for (n, starts) in maps.iter().enumerate() {
        let mut wanted = Left {
            overwritten: starts.overwritten,
            ..Left::default()
        };
        for (key, start) in &starts.last {
            let hidden = maps[n + 1..].iter().any(|map| map.last.contains_key(key));
            match start {
                None => (),
                Some(_) if hidden => wanted.overwritten += 1,
                Some(_) => wanted.expired += 1,
            }
        }
        assert_eq!(source.left(n as u32), wanted, "map {n}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn each_start_is_ended_in_the_youngest_map_that_has_its_key(ops in prop::collection::vec(op(), 0..80)) {
        for (start, user) in [
            ("keys=u64:a=u8", "keys=u64:x=$a+0:vals=$x"),
            ("keys=u64:a=u8,b=u16,c=filename", "keys=u64:x=$a+0,y=$b+0:vals=$x"),
            ("keys=u64:b=u16,a=u8", "keys=u64:x=$a+0,y=$b+0:vals=$x:onmatch(sched.sched_waking).num(u64)"),
            ("keys=u64:a=u8", "join(u64):x=$a+0:keys=u32:vals=$x"),
            // A table that may be getting a larger map at the same time: on paths that look in both.
            ("keys=u64:a=u8", "keys=u64:x=$a+0,y=$other:vals=$x"),
        ] {
            for hash in [Hash::Seeded, Hash::Same] {
                let mut world = World {
                    tables: Tables { bits: 4, hash, ..Tables::default() },
                    ..World::default()
                };
                world.synth("num u64 a");
                world.add(&ZOO, WAKING, &format!("{start}:expire(1s)"));
                world.add(&ZOO, SWITCHED, "keys=u64:other=u16:size=128..256");
                world.add(&ZOO, ALL, user);
                let mut paths = 0;
                for path in world.paths(END) {
                    run(&world, &path, &ops);
                    paths += 1;
                }
                assert!(paths > 0);
            }
        }
    }
}

/// Threads begin keys and end them while another one ends generations, as fast as it may: none is matched twice, and each
/// one was ended, has expired, or is there.
#[test]
fn threads_begin_and_end_while_generations_end() {
    const TURNS: usize = 60;
    const KEYS: u64 = 300;
    let mut world = World {
        tables: Tables {
            bits: 12,
            ..Tables::default()
        },
        ..World::default()
    };
    world.add(&ZOO, WAKING, "keys=u64:a=u8:expire(1s)");
    world.add(&ZOO, ALL, "keys=u64:x=$a+0:vals=$x");
    let world = world.with_generations(0, TURNS);
    let source = &world.triggers[0];
    // Of each thread; odd while a hit is inside.
    let inside = [const { AtomicU64::new(0) }; 3];
    let is_over = AtomicBool::new(false);
    let begun = Atomic::<u64>::new(0);
    let wait_for_hits = || {
        for inside in &inside {
            let seen = inside.load(Ordering::SeqCst);
            while seen % 2 == 1 && inside.load(Ordering::SeqCst) == seen {
                thread::yield_now();
            }
        }
    };
    let hit = |thread: usize, n: usize, key: u64| {
        let around = Around {
            cpu: thread as u32,
            ..AROUND
        };
        inside[thread].fetch_add(1, Ordering::SeqCst);
        let is_hit = world.hit(n, &record_of(key, 1), &around).is_hit;
        inside[thread].fetch_add(1, Ordering::SeqCst);
        is_hit
    };
    let (mut expired, mut overwritten) = (0, 0);

    thread::scope(|scope| {
        scope.spawn(|| {
            for i in 0.. {
                if is_over.load(Ordering::SeqCst) {
                    break;
                }
                assert!(hit(0, 0, i % KEYS));
                begun.fetch_add(1, Release);
            }
        });
        for thread in 1..3 {
            let (is_over, hit) = (&is_over, &hit);
            scope.spawn(move || {
                for i in 0.. {
                    if is_over.load(Ordering::SeqCst) {
                        break;
                    }
                    hit(thread, 1, (i * 7) % KEYS);
                }
            });
        }
        for n in 0..TURNS as u32 {
            source.turn();
            wait_for_hits();
            if let Some(gone) = n.checked_sub(1) {
                let Left {
                    expired: more,
                    overwritten: hidden,
                } = source.left(gone);
                expired += more;
                overwritten += hidden;
            }
            thread::yield_now();
        }
        is_over.store(true, Ordering::SeqCst);
    });
    for n in TURNS as u32 - 1..=TURNS as u32 {
        let left = source.left(n);
        expired += left.expired;
        overwritten += left.overwritten;
    }
    let ended = world.triggers[1].map().account().hits;
    let begun = begun.load(Acquire);
    assert_eq!(ended + expired + overwritten, begun);
    assert!(ended > 0 && begun > 0, "{ended} of {begun}");
}

/// Rows of several maps are one for each key, with what is kept of numbers merged as over CPUs.
#[test]
fn rows_of_generations_are_merged() {
    let mut world = World {
        tables: Tables {
            bits: 4,
            ..Tables::default()
        },
        ..World::default()
    };
    world.add(
        &ZOO,
        WAKING,
        "keys=u64:vals=u8,u8.max,u8.min:a=u8:expire(1s)",
    );
    let world = world.with_generations(0, 2);
    let source = &world.triggers[0];
    for (key, value) in [(7, 5), (8, 1), (7, 9)] {
        world.hit(0, &record_of(key, value), &AROUND);
    }
    source.turn();
    world.hit(0, &record_of(7, 3), &AROUND);
    source.turn();
    for (key, value) in [(9, 4), (7, 200)] {
        world.hit(0, &record_of(key, value), &AROUND);
    }

    let shape = *source.map.shape();
    let mut words = Vec::new();
    for n in (0..3).rev() {
        let map = source.numbered(n);
        let mut copy = vec![0; map.used() * shape.row_words()];
        let len = map.copy_rows(map.used(), &mut copy, |_, to| to.fill(u64::from(n)));
        copy.truncate(len * shape.row_words());
        words.extend(copy);
    }
    let rows = Rows::new(&shape, &words, words.len() / shape.row_words());
    let mut order = vec![SortEntry::default(); rows.len()];
    sort(&rows, &[], &mut order);
    let generations = Generations::new(rows, &order);
    assert_eq!((rows.len(), generations.keys()), (5, 3));
    let mut merged = vec![0; 3 * shape.row_words()];
    generations.merge(shape.merge(), &mut merged);
    let merged = Rows::new(&shape, &merged, 3);
    let all: Vec<_> = merged
        .iter()
        .map(|row| (row.key[0], row.sums[0], row.sums[1], row.aux[0]))
        .collect();
    // The extra words are those of the youngest map that has the key.
    assert!(all.contains(&(7, 4, 217, 2)), "{all:?}");
    assert!(
        all.contains(&(8, 1, 1, 0)) && all.contains(&(9, 1, 4, 2)),
        "{all:?}"
    );
    let seven = merged.iter().find(|row| row.key[0] == 7).expect("a row");
    assert_eq!(seven.sums[2], 200, "the maximum");
    let alone = |n: u32| {
        source
            .numbered(n)
            .alone((n + 1..3).map(|n| source.numbered(n)))
    };
    assert_eq!([alone(0), alone(1), alone(2)], [1, 0, 2]);
}
