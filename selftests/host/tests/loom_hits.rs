// SPDX-License-Identifier: GPL-2.0

//! Hits on the paths of the module, under the model checker and with three threads: M-06, M-07, M-14 (no key twice:
//! what a missing barrier did to the C code, CVE-2024-26645), X-01, X-08 (a full table), X-12 and X-13 with a third
//! context; and the table of the module, which is cleared (X-07), read by epochs (X-41), grows (X-60) or whose starts expire
//! while it is hit. It waits for hits by a lock that the model checker knows.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test --test loom_hits`.

#![cfg(loom)]

mod lang_common;
mod run;

use lang_common::*;
use loom::sync::{Arc, RwLock};
use loom::thread;
use run::*;
use rust_hist::program::track_row;
use rust_hist::sync::{Pair, Relaxed};
use rust_hist::tracing_map::{Key, Lookup, TrackCell, Tracked, When};
use rust_hist_tables::{Event as Triggers, Pipe};
use std::collections::BTreeMap;

/// The memory of a tracked value.
type Words = std::sync::Arc<[Pair]>;

/// Checks all interleavings with at most so many preemptions, or `LOOM_MAX_PREEMPTIONS` where that is less.
fn check(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    let most = model.preemption_bound.unwrap_or(preemptions);
    model.preemption_bound = Some(most.min(preemptions));
    // A map that is emptied has more words than other cases have steps.
    model.max_branches = 10_000;
    model.check(test);
}

/// Triggers with tables of `1 << bits` elements, or twice as many if they grow, for three CPUs.
fn triggers(bits: u32, hash: Hash, texts: &[&str]) -> Arc<World> {
    let tables = Tables {
        bits,
        grows_to: bits + 1,
        cpus: 3,
        hash,
    };
    let mut world = World {
        tables,
        ..World::default()
    };

    world.synth("num u64 a");
    for text in texts {
        world.add(&ZOO, ALL, text);
    }
    Arc::new(world)
}

/// The same with a shard for each of these CPUs.
fn world(bits: u32, hash: Hash, texts: &[&str]) -> Arc<World> {
    let world = triggers(bits, hash, texts);
    let mut all = world.triggers.iter();

    assert!(all.all(|trigger| trigger.table.is_per_cpu()));
    world
}

/// Hits that are waited for: one that is inside has the lock together with others, and who waits takes it alone.
type Inside = Arc<RwLock<()>>;

/// Calls `replace`, which gives a table another map, and `meanwhile` when hits have it.
fn exchange<R>(
    inside: &Inside,
    mut meanwhile: impl FnMut() + 'static,
    replace: impl FnOnce() -> R,
) -> R {
    let inside = inside.clone();
    let hook = move |place| {
        if place == At::Grace {
            meanwhile();
            drop(inside.write().expect("no panic"));
        }
    };

    with_hook(hook, replace)
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
        let map = world.triggers[0].map();

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
        let map = world.triggers[0].map();
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
        let map = world.triggers[0].map();
        let map = map.view();

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

/// One call of trigger `n` that is waited for.
fn call_inside(world: &World, inside: &Inside, n: usize, cpu: u32, key: u64, says: u64) -> bool {
    let _inside = inside.read().expect("no panic");
    call_with(world, n, cpu, key, says).is_hit
}

/// X-07: each call falls wholly before or wholly after a clear.
#[test]
fn a_clear_splits_no_hit() {
    check(3, || {
        let world = counts(2, Hash::Seeded);
        let inside = Inside::default();
        let old = world.triggers[0].map();
        let other = {
            let (world, inside) = (world.clone(), inside.clone());
            thread::spawn(move || call_inside(&world, &inside, 0, 1, 7, 0))
        };
        let clear = {
            let (world, inside) = (world.clone(), inside.clone());
            thread::spawn(move || exchange(&inside, || (), || world.triggers[0].table.clear()))
        };
        assert!(call_inside(&world, &inside, 0, 0, 8, 0));
        assert!(other.join().expect("thread"));
        clear.join().expect("thread").expect("memory");

        // Nothing comes to the old map any more.
        assert!(call(&world, 0, 9));
        let new = rows(&world);
        assert_eq!(new.get(&9), Some(&1));
        let hits = world.triggers[0].map().account().hits;
        assert_eq!(hits, new.values().sum::<u64>());
        assert_eq!(old.account().hits + hits, 3);
        for key in [7, 8] {
            let elt = old.lookup(&[key]);
            let hits = elt.map_or(0, |elt| old.sum(elt, 0));
            assert_eq!(hits + new.get(&key).unwrap_or(&0), 1);
        }
    });
}

/// X-41: each hit is in one epoch.
#[test]
fn each_hit_is_in_one_epoch() {
    check(3, || {
        let world = world(1, Hash::Seeded, &["keys=common_pid"]);
        let inside = Inside::default();
        let event = std::sync::Arc::new(Triggers::new());
        event.add(&world.triggers[0].table).expect("memory");
        let pipe = Pipe::open(&event).expect("memory");
        let other = {
            let (world, inside) = (world.clone(), inside.clone());
            thread::spawn(move || {
                for key in [7, 8, 7] {
                    assert!(call_inside(&world, &inside, 0, 1, key, 0));
                }
            })
        };
        let epochs = [(); 2].map(|()| {
            let epoch = exchange(&inside, || (), || pipe.read());
            epoch.expect("memory").give()
        });
        other.join().expect("thread");

        let last = world.sums(0);
        for (key, fired) in [(7, 2), (8, 1)] {
            let row = format!(r#"{{"k":[{key}],"v":["#);
            let hits = |text: &String| {
                let (_, hits) = text.split_once(&row)?;
                hits.split([',', ']']).next()?.parse::<u64>().ok()
            };
            let present = last.iter().filter(|(own, _)| own[0] == key);
            let present = present.map(|(_, sums)| sums[0]);
            let sum: u64 = epochs.iter().filter_map(hits).chain(present).sum();
            assert_eq!(sum, fired, "{epochs:?} {last:?}");
        }
        event.remove_all();
    });
}

/// X-60: a table grows while it is hit: each hit is counted once, whichever map it goes to, and no key has two rows. `before`
/// are there when it begins, `during` come meanwhile.
fn grows_under(bits: u32, hash: Hash, before: &'static [u64], during: &'static [u64]) {
    check(3, move || {
        let text = "keys=common_pid.execname:vals=common_pid:size=128..256";
        let world = triggers(bits, hash, &[text]);
        let inside = Inside::default();

        for &key in before {
            assert!(call(&world, 1, key));
        }
        let other = {
            let (world, inside) = (world.clone(), inside.clone());
            thread::spawn(move || {
                let hit = |&key: &u64| call_inside(&world, &inside, 0, 1, key, 0).then_some(key);
                during.iter().filter_map(hit).collect::<Vec<_>>()
            })
        };
        let table = &world.triggers[0].table;
        exchange(&inside, || (), || table.replace()).expect("memory");

        let counted = other.join().expect("thread");
        let mut expected = BTreeMap::new();
        for &key in before.iter().chain(&counted) {
            *expected.entry(key).or_default() += 1;
        }
        assert_eq!(rows(&world), expected);
        let account = table.account().expect("memory");
        assert_eq!(account.dropped_full, (during.len() - counted.len()) as u64);
        assert_eq!(account.calls(), (before.len() + during.len()) as u64);

        // No element was lost: as many further keys fit as there is room for.
        let map = world.triggers[0].map();
        let fit = (100..).take_while(|&key| map.insert(&[key], |_| ()).is_some());
        assert_eq!(expected.len() + fit.count(), 2 << bits);
    });
}

#[test]
fn a_key_is_hit_while_its_table_grows() {
    grows_under(0, Hash::Seeded, &[7], &[7, 7]);
    grows_under(1, Hash::Same, &[7], &[7, 7]);
}

#[test]
fn a_key_is_inserted_while_its_table_grows() {
    grows_under(1, Hash::Seeded, &[7], &[8, 8]);
    grows_under(1, Hash::Same, &[7], &[8, 7]);
}

#[test]
fn a_table_grows_that_is_full() {
    grows_under(0, Hash::Seeded, &[7], &[8, 9]);
    grows_under(1, Hash::Same, &[6, 7], &[8]);
}

/// A tracked value of a table that grows: a hit that has begun before the exchange, and one that comes after it, leave the
/// largest number and what was saved with it.
#[test]
fn of_two_maps_the_larger_number_is_kept() {
    for (late, early) in [(9, 7), (7, 9)] {
        check(2, move || {
            let text = "keys=common_pid:n=u8:onmax($n).save(u64):size=128..256";
            let world = world(1, Hash::Seeded, &[text]);
            let inside = Inside::default();
            assert!(call_with(&world, 0, 0, 7, 5).is_hit);

            let other = {
                let (world, inside) = (world.clone(), inside.clone());
                thread::spawn(move || call_inside(&world, &inside, 0, 1, 7, late))
            };
            let mut comes = true;
            let meanwhile = {
                let world = world.clone();
                move || {
                    if std::mem::take(&mut comes) {
                        assert!(call_with(&world, 0, 2, 7, early).is_hit);
                    }
                }
            };
            let table = &world.triggers[0].table;
            exchange(&inside, meanwhile, || table.replace()).expect("memory");
            assert!(other.join().expect("thread"));

            let track = world.triggers[0].program.actions[0].track;
            world.with_rows(0, |_, rows| {
                let kept = track_row(&track.expect("tracked"), rows[0].aux);
                assert_eq!((kept.value, kept.row), (9, &[9][..]));
            });
        });
    }
}

/// Ends a generation of the first trigger while hits are inside.
fn turn(world: &World, inside: &Inside) {
    Machine::this().pass(1000);
    exchange(inside, || (), || world.triggers[0].table.replace()).expect("memory");
}

/// Starts that expire, of which the first generation has ended if `is_old`, and key 7 has begun in it with 1; and what ends
/// them.
fn expiring(is_old: bool) -> (Arc<World>, Inside) {
    let texts = [
        "keys=common_pid:n=u8:expire(1s)",
        "keys=common_pid:less=u64-$n",
    ];
    let (world, inside) = (world(1, Hash::Seeded, &texts), Inside::default());

    assert!(call_with(&world, 0, 0, 7, 1).is_hit);
    if is_old {
        turn(&world, &inside);
    }
    (world, inside)
}

/// How many starts were ended, and how many were overwritten or left, once no hit is under way.
fn ended(world: &World, inside: &Inside) -> (u64, u64) {
    for _ in 0..3 {
        turn(world, inside);
    }
    let account = world.triggers[0].table.account().expect("memory");

    let hits = world.triggers[1].map().account().hits;
    (hits, account.expired + account.overwritten)
}

/// X-66: a start is ended once, also at the end of its generation; and if that is the last moment, it may have expired.
#[test]
fn of_two_ends_one_has_the_start_when_its_generation_ends() {
    for is_old in [false, true] {
        check(2, move || {
            let (world, inside) = expiring(is_old);
            let others = [1, 2].map(|cpu| {
                let (world, inside) = (world.clone(), inside.clone());
                thread::spawn(move || call_inside(&world, &inside, 1, cpu, 7, 9))
            });
            turn(&world, &inside);
            let [one, two] = others.map(|other| other.join().expect("thread"));
            let (hits, left) = ended(&world, &inside);

            assert_eq!((hits, hits + left), (u64::from(one) + u64::from(two), 1));
            assert!(
                is_old || hits == 1,
                "a start of the youngest generation was lost"
            );
        });
    }
}

/// X-66: a key begins again while it is ended and its generation ends: each start is ended or counted.
#[test]
fn a_start_an_end_and_the_end_of_a_generation() {
    for is_old in [false, true] {
        check(2, move || {
            let (world, inside) = expiring(is_old);
            let [begin, end] = [(0, 1), (1, 2)].map(|(n, cpu)| {
                let (world, inside) = (world.clone(), inside.clone());
                thread::spawn(move || call_inside(&world, &inside, n, cpu, 7, 9))
            });
            turn(&world, &inside);
            assert!(begin.join().expect("thread"));
            let is_ended = end.join().expect("thread");

            // The later one is in sight, unless it was this one that was ended.
            let again = call_with(&world, 1, 0, 7, 9).is_hit;
            assert!(again || is_ended);
            let (hits, left) = ended(&world, &inside);
            let all = u64::from(is_ended) + u64::from(again);
            assert_eq!((hits, hits + left), (all, 2));
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
