// SPDX-License-Identifier: GPL-2.0

//! Hits on the paths of the module, under the model checker and with three threads: M-06, M-07, M-14 (no key twice:
//! what a missing barrier did to the C code, CVE-2024-26645), X-01, X-08 (a full table), X-12 and X-13 with a third
//! context.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test --test loom_hits`.

#![cfg(loom)]

mod common;
mod lang_common;
mod run;

use common::Words;
use lang_common::*;
use loom::sync::Arc;
use loom::thread;
use run::*;
use rust_hist::program::track_row;
use rust_hist::sync::{Pair, Relaxed};
use rust_hist::tracing_map::{Key, Lookup, TrackCell, Tracked, When};
use std::collections::BTreeMap;

/// Checks all interleavings with at most so many preemptions, or `LOOM_MAX_PREEMPTIONS` where that is less.
fn check(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    let most = model.preemption_bound.unwrap_or(preemptions);
    model.preemption_bound = Some(most.min(preemptions));
    model.check(test);
}

/// Triggers with tables of `1 << bits` elements and a shard for each of three CPUs.
fn world(bits: u32, hash: Hash, texts: &[&str]) -> Arc<World> {
    let tables = Tables {
        bits,
        cpus: 3,
        hash,
    };
    let mut world = World {
        tables,
        ..World::default()
    };

    world.synth("num u64 a");
    for text in texts {
        let n = world.add(&ZOO, ALL, text);
        assert!(world.triggers[n].map.shape().per_cpu());
    }
    Arc::new(world)
}

/// The task of the hit with each key, which its entry keeps.
const NAMES: [&str; 12] = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
];

/// A table whose key is one number, with the key as value.
fn counts(bits: u32, hash: Hash) -> Arc<World> {
    world(bits, hash, &["keys=common_pid.execname:vals=common_pid"])
}

/// One call of trigger `n` on a CPU: all that the record says is one number, its key another one.
fn call_with(world: &World, n: usize, cpu: u32, key: u64, says: u64) -> Ended {
    let mut record = [0; 32];
    let around = Around {
        cpu,
        comm: NAMES[key as usize],
        ..AROUND
    };

    record[4..8].copy_from_slice(&(key as u32).to_ne_bytes());
    record[8] = says as u8;
    record[10..12].copy_from_slice(&(says as u16).to_ne_bytes());
    record[24..32].copy_from_slice(&says.to_ne_bytes());
    world.hit(n, &record, &around)
}

/// One call of the first trigger.
fn call(world: &World, cpu: u32, key: u64) -> bool {
    call_with(world, 0, cpu, key, 0).is_hit
}

/// Runs a call of trigger `n` with each key and number on a CPU of its own, at once.
fn at_once(world: &Arc<World>, n: usize, calls: [(u64, u64); 3]) -> [Ended; 3] {
    let [mine, others @ ..] = calls;
    let mut cpu = 0;
    let others = others.map(|(key, says)| {
        let world = world.clone();

        cpu += 1;
        thread::spawn(move || call_with(&world, n, cpu, key, says))
    });
    let mine = call_with(world, n, 0, mine.0, mine.1);
    let [one, two] = others.map(|other| other.join().expect("thread"));

    [mine, one, two]
}

/// The hits by key. Each key has one row, which is whole.
fn rows(world: &World) -> BTreeMap<u64, u64> {
    let mut found = BTreeMap::new();

    world.with_rows(0, |_, rows| {
        for row in rows {
            let (key, hits) = (row.key[0], row.sums[0]);
            let name = words_of(NAMES[key as usize], 2);
            assert_eq!(row.aux, name, "a row that is not complete");
            assert_eq!(row.sums[1], hits * key);
            assert!(found.insert(key, hits).is_none(), "two rows of one key");
        }
    });
    found
}

#[test]
fn one_key_of_three_threads_has_one_element() {
    check(2, || {
        let world = counts(2, Hash::Seeded);
        let map = &world.triggers[0].map;

        at_once(&world, 0, [(7, 0); 3]);
        assert_eq!(rows(&world), BTreeMap::from([(7, 3)]));
        // Whoever lost gave its element back: three more keys fit.
        for key in [8, 9, 10] {
            assert!(map.insert(&[key], |_| ()).is_some());
        }
        assert!(map.insert(&[11], |_| ()).is_none());
    });
}

#[test]
fn three_keys_that_begin_at_one_slot() {
    check(2, || {
        let world = counts(2, Hash::Same);

        at_once(&world, 0, [7, 8, 7].map(|key| (key, 0)));
        assert_eq!(rows(&world), BTreeMap::from([(7, 2), (8, 1)]));
        assert_eq!(world.triggers[0].map().account().calls(), 3);
    });
}

/// A full table: what is there is never turned away, and what is not never comes in.
#[test]
fn the_last_element_and_those_that_come_too_late() {
    check(2, || {
        let world = counts(1, Hash::Same);
        let map = &world.triggers[0].map;
        assert!(call(&world, 0, 1));

        at_once(&world, 0, [2, 3, 1].map(|key| (key, 0)));
        let found = rows(&world);
        let account = map.account();
        assert_eq!(found.len(), 2, "an element was lost: {found:?}");
        assert_eq!(found[&1], 2, "a key that is there was turned away");
        assert_eq!((account.hits, account.dropped_full), (3, 1));
        let winner = *found.keys().max().expect("two");
        assert!(map.lookup(&[winner]).is_some());
        assert!(map.insert(&[5 - winner], |_| ()).is_none());
    });
}

/// The same with one key: nobody is turned away for the element that the other holds, but as long as
/// that is not published.
#[test]
fn the_last_element_for_one_key() {
    check(3, || {
        let world = counts(1, Hash::Seeded);
        call(&world, 0, 1);
        let other = {
            let world = world.clone();
            thread::spawn(move || {
                call(&world, 1, 7);
                call(&world, 1, 7);
            })
        };
        call(&world, 0, 7);
        other.join().expect("thread");

        let account = world.triggers[0].map().account();
        let hits = account.hits - 1;
        assert_eq!(rows(&world), BTreeMap::from([(1, 1), (7, hits)]));
        assert_eq!(account.calls(), 4);
        // Whoever had the element is never turned away.
        assert!(hits >= 1);
    });
}

#[test]
fn a_look_sees_a_whole_element_or_none() {
    check(3, || {
        let world = counts(1, Hash::Same);
        let other = {
            let world = world.clone();
            thread::spawn(move || {
                call(&world, 1, 7);
                call(&world, 1, 8);
            })
        };
        let map = world.triggers[0].map.view();

        for key in [7, 8] {
            if let Lookup::Found(elt) = map.find(&[key], [key].hash(map.hash())) {
                let aux: Vec<u64> = Pair::words(map.aux(elt))
                    .iter()
                    .map(|word| word.load(Relaxed))
                    .collect();
                assert_eq!(aux, words_of(NAMES[key as usize], 2));
            }
        }
        other.join().expect("thread");
        assert_eq!(rows(&world).len(), 2);
    });
}

/// A number that is read once, by three hits that look for it before they do anything else, and by three that do not.
#[test]
fn of_three_consumers_one_gets_the_number() {
    for end in [
        "keys=common_pid:less=u64-$n:onmatch(zoo.all).num($less)",
        "keys=common_pid:less=u64-$n",
    ] {
        check(2, move || {
            let world = world(1, Hash::Seeded, &["keys=common_pid:n=u8", end]);

            assert!(call_with(&world, 0, 0, 7, 1).is_hit);
            let ended = at_once(&world, 1, [(7, 11), (7, 21), (7, 31)]);
            let hits = ended.iter().filter(|ended| ended.is_hit).count();
            let account = world.triggers[1].map().account();

            assert_eq!((hits, account.hits, account.ignored), (1, 1, 2));
        });
    }
}

/// Two numbers that are read once and one hit that writes them again: each is taken as often as it was written at most,
/// and both are taken or none.
#[test]
fn of_two_consumers_none_takes_half() {
    check(2, || {
        let texts = [
            "keys=common_pid:n=u8,m=u8",
            "keys=common_pid:less=u64-$n,more=u64-$m",
        ];
        let world = world(1, Hash::Seeded, &texts);

        assert!(call_with(&world, 0, 0, 7, 1).is_hit);
        let others = [1, 2].map(|cpu| {
            let world = world.clone();
            thread::spawn(move || call_with(&world, 1, cpu, 7, 30).is_hit)
        });
        let [one, two] = others.map(|other| other.join().expect("thread"));

        // One may see the other's numbers half taken, and give back what it took.
        assert!(!(one && two));
        // What was not taken is there for the next one.
        assert_eq!(call_with(&world, 1, 0, 7, 30).is_hit, !(one || two));
    });
}

/// Starts that expire, of which the first generation has ended if `is_old`, and key 7 has begun in it with 1; and what ends
/// them.
fn expiring(is_old: bool) -> Arc<World> {
    let mut world = World {
        tables: Tables {
            bits: 1,
            cpus: 3,
            hash: Hash::Seeded,
        },
        ..World::default()
    };

    world.add(&ZOO, ALL, "keys=common_pid:n=u8:expire(1s)");
    world.add(&ZOO, ALL, "keys=common_pid:less=u64-$n");
    let world = world.with_generations(0, 1 + u32::from(is_old) as usize);
    assert!(call_with(&world, 0, 0, 7, 1).is_hit);
    if is_old {
        world.triggers[0].turn();
    }
    Arc::new(world)
}

/// A tracked value of a table that grows: a hit that has begun before the exchange, and one that comes after it, leave the
/// largest number and what was saved with it.
#[test]
fn of_two_maps_the_larger_number_is_kept() {
    for (late, early) in [(9, 7), (7, 9)] {
        check(2, move || {
            let mut world = World {
                tables: Tables {
                    bits: 1,
                    cpus: 3,
                    hash: Hash::Seeded,
                },
                ..World::default()
            };
            world.add(
                &ZOO,
                ALL,
                "keys=common_pid:n=u8:onmax($n).save(u64):size=128..256",
            );
            assert!(call_with(&world, 0, 0, 7, 5).is_hit);
            world.enlarge(0);

            let world = Arc::new(world);
            let other = {
                let world = world.clone();
                thread::spawn(move || call_with(&world, 0, 1, 7, late).is_hit)
            };
            world.triggers[0].exchange();
            assert!(call_with(&world, 0, 2, 7, early).is_hit);
            assert!(other.join().expect("thread"));
            world.triggers[0].take_rows(0..8);
            world.triggers[0].settle();

            let track = world.triggers[0].program.actions()[0].track();
            world.with_rows(0, |_, rows| {
                let kept = track_row(&track.expect("tracked"), rows[0].aux);
                assert_eq!((kept.value, kept.row), (9, &[9][..]));
            });
        });
    }
}

/// How many starts were ended, and how many were overwritten or left, once no hit is under way.
fn ended(world: &World) -> (u64, u64) {
    let source = &world.triggers[0];
    let left = (0..=source.next.len() as u32).map(|n| source.left(n));
    let left = left.map(|left| left.expired + left.overwritten).sum();

    (world.triggers[1].map().account().hits, left)
}

/// a start is ended once, also at the end of its generation; and if that is the last moment, it may have expired.
#[test]
fn of_two_ends_one_has_the_start_when_its_generation_ends() {
    for is_old in [false, true] {
        check(2, move || {
            let world = expiring(is_old);
            let others = [1, 2].map(|cpu| {
                let world = world.clone();
                thread::spawn(move || call_with(&world, 1, cpu, 7, 9).is_hit)
            });
            world.triggers[0].turn();
            let [one, two] = others.map(|other| other.join().expect("thread"));
            let (hits, left) = ended(&world);

            assert_eq!((hits, hits + left), (u64::from(one) + u64::from(two), 1));
            assert!(
                is_old || hits == 1,
                "a start of the youngest generation was lost"
            );
        });
    }
}

/// a key begins again while it is ended and its generation ends: each start is ended or counted.
#[test]
fn a_start_an_end_and_the_end_of_a_generation() {
    for is_old in [false, true] {
        check(2, move || {
            let world = expiring(is_old);
            let [begin, end] = [(0, 1), (1, 2)].map(|(n, cpu)| {
                let world = world.clone();
                thread::spawn(move || call_with(&world, n, cpu, 7, 9).is_hit)
            });
            world.triggers[0].turn();
            assert!(begin.join().expect("thread"));
            let is_ended = end.join().expect("thread");
            let (hits, left) = ended(&world);

            assert_eq!((hits, left), (u64::from(is_ended), 2 - u64::from(is_ended)));
            // The later one is in sight, unless it was this one that was ended.
            let again = call_with(&world, 1, 0, 7, 9).is_hit;
            assert!(again || is_ended);
        });
    }
}

/// What is there is the larger one, with its own row.
#[test]
fn of_two_maxima_the_larger_stays() {
    check(2, || {
        let text = "keys=common_pid:v=u8:onmax($v).save(u16,u64)";
        let world = world(1, Hash::Seeded, &[text]);

        assert!(call_with(&world, 0, 0, 7, 0).is_hit);
        let other = {
            let world = world.clone();
            thread::spawn(move || call_with(&world, 0, 1, 7, 9))
        };
        let ended = [call_with(&world, 0, 0, 7, 5), other.join().expect("thread")];
        let rows = world.rows(0);
        let row = format!("\tmax: {0:>10}  u16: {0:>10}  u64: {0:>10}\n", 9);

        assert!(ended.iter().all(|ended| *ended == HIT));
        assert!(rows[0].ends_with(&row), "{rows:?} is not {row}");
        assert_eq!(world.triggers[0].map().account().hits, 3);
    });
}

/// Two at a time have a row to write to. A third is lost, which it is told, or comes to its turn; what
/// is there is the largest of those that were not lost, with its own row.
#[test]
fn of_three_maxima_the_largest_that_is_not_lost_stays() {
    check(2, || {
        let cell: Words = (0..4).map(|_| Pair::zero()).collect();
        let update = |cell: &Words, v: u64| {
            let cell = TrackCell::new(cell, 0, 2).expect("eight words");
            cell.update(&When::Larger, v, |row| {
                row.put(0, v);
                row.put(1, !v);
            })
        };
        let others = [5, 9].map(|v| {
            let cell = cell.clone();
            thread::spawn(move || update(&cell, v))
        });
        let mine = update(&cell, 7);
        let [five, nine] = others.map(|thread| thread.join().expect("thread"));

        let mut row = [0; 2];
        let found = TrackCell::new(&cell, 0, 2)
            .expect("eight words")
            .read(&mut row);
        let kept = [(5, five), (7, mine), (9, nine)]
            .into_iter()
            .filter(|(_, tracked)| *tracked != Tracked::Lost)
            .map(|(v, _)| v)
            .max();
        assert_eq!(found, kept);
        assert_eq!(row, [row[0], !row[0]]);
        assert_eq!(found, Some(row[0]));
    });
}
