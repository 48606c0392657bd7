// SPDX-License-Identifier: GPL-2.0

//! Hits as the module makes them, a look first and the rest only where that is not enough, under the
//! model checker and with three threads: M-06, M-07, M-14 (no key twice: what a missing barrier did to
//! the C code, CVE-2024-26645), X-01, X-08 (a full table), X-12 and X-13 with a third context.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test --test loom_hits`.

#![cfg(loom)]

mod common;

use common::{map, shape, Same, Words};
use loom::sync::Arc;
use loom::thread;
use rust_hist::sync::{Atomic, Relaxed};
use rust_hist::tracing_map::{
    copy_words, Ending, Glance, KeyHash, Map, NumCell, Rows, SeededHash, TrackCell, Tracked,
    Values, When,
};
use std::collections::BTreeMap;

type Table<H> = Arc<Map<Words, H>>;

/// Checks all interleavings with at most so many preemptions.
fn check(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(test);
}

/// A table of `1 << bits` elements, keys of one word, two aux words, a shard for each of three CPUs.
fn small<H: KeyHash>(bits: u32) -> Table<H> {
    let shape = shape(bits, 1, 2, 2, 3);
    assert!(shape.per_cpu());
    Arc::new(map(shape))
}

/// The value of the second sum.
struct One(u64);

impl Values for One {
    fn value(&self, _: usize) -> u64 {
        self.0
    }
}

/// One call of a trigger.
fn call<H: KeyHash>(map: &Map<Words, H>, cpu: u32, key: u64) {
    if map.hit_at_once(&[key], || cpu, &One(key)) != Glance::Unclear {
        return;
    }
    let elt = map.insert(&[key], |aux| aux[0].store(!key, Relaxed));
    match elt {
        Some(elt) => map.shard(cpu).hit(elt, &[key]),
        None => map.shard(cpu).count(Ending::DroppedFull),
    }
}

/// Runs a call with each key on a CPU of its own, at once.
fn at_once<H: KeyHash + 'static>(map: &Table<H>, keys: [u64; 3]) {
    let others: Vec<_> = [(1, keys[1]), (2, keys[2])]
        .into_iter()
        .map(|(cpu, key)| {
            let map = map.clone();
            thread::spawn(move || call(&map, cpu, key))
        })
        .collect();

    call(map, 0, keys[0]);
    for other in others {
        other.join().expect("thread");
    }
}

/// The hits by key. Each key has one row, which is whole.
fn rows<H: KeyHash>(map: &Map<Words, H>) -> BTreeMap<u64, u64> {
    let limit = map.used();
    let mut words = vec![0; limit * map.shape().row_words()];
    let len = map.copy_rows(limit, &mut words, copy_words);
    let mut found = BTreeMap::new();

    for row in Rows::new(map.shape(), &words, len).iter() {
        let (key, hits) = (row.key[0], row.sums[0]);
        assert_eq!(row.aux[0], !key, "a row that is not complete");
        assert_eq!(row.sums[1], hits * key);
        assert!(found.insert(key, hits).is_none(), "two rows of one key");
    }
    found
}

#[test]
fn one_key_of_three_threads_has_one_element() {
    check(2, || {
        let map = small::<SeededHash>(2);

        at_once(&map, [7, 7, 7]);
        assert_eq!(rows(&map), BTreeMap::from([(7, 3)]));
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
        let map = small::<Same>(2);

        at_once(&map, [7, 8, 7]);
        assert_eq!(rows(&map), BTreeMap::from([(7, 2), (8, 1)]));
        assert_eq!(map.account().calls(), 3);
    });
}

/// A full table: what is there is never turned away, and what is not never comes in.
#[test]
fn the_last_element_and_those_that_come_too_late() {
    check(2, || {
        let map = small::<Same>(1);
        call(&map, 0, 1);

        at_once(&map, [2, 3, 1]);
        let found = rows(&map);
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
        let map = small::<SeededHash>(1);
        call(&map, 0, 1);
        let other = {
            let map = map.clone();
            thread::spawn(move || {
                call(&map, 1, 7);
                call(&map, 1, 7);
            })
        };
        call(&map, 0, 7);
        other.join().expect("thread");

        let account = map.account();
        let hits = account.hits - 1;
        assert_eq!(rows(&map), BTreeMap::from([(1, 1), (7, hits)]));
        assert_eq!(account.calls(), 4);
        // Whoever had the element is never turned away.
        assert!(hits >= 1);
    });
}

#[test]
fn a_look_sees_a_whole_element_or_none() {
    check(3, || {
        let map = small::<Same>(1);
        let other = {
            let map = map.clone();
            thread::spawn(move || {
                call(&map, 1, 7);
                call(&map, 1, 8);
            })
        };

        for key in [7, 8] {
            if let Glance::Found(elt) = map.glance(&[key], map.hash(&[key])) {
                assert_eq!(map.aux(elt)[0].load(Relaxed), !key);
            }
        }
        other.join().expect("thread");
        assert_eq!(rows(&map).len(), 2);
    });
}

fn words(n: usize) -> Arc<Words> {
    Arc::new((0..n).map(|_| Atomic::<u64>::new(0)).collect())
}

#[test]
fn of_three_consumers_one_gets_the_number() {
    check(3, || {
        let cell = words(2);
        NumCell::new(&cell).expect("two words").set(1);
        let consume = |cell: Arc<Words>| {
            move || {
                let cell = NumCell::new(&cell).expect("two words");
                cell.consume().map_or(0, |taken| taken.value)
            }
        };

        let a = thread::spawn(consume(cell.clone()));
        let b = thread::spawn(consume(cell.clone()));
        let mine = consume(cell)();
        let theirs = [a, b].map(|thread| thread.join().expect("thread"));
        assert_eq!(mine + theirs[0] + theirs[1], 1);
    });
}

/// Two at a time have a row to write to. A third is lost, which it is told, or comes to its turn; what
/// is there is the largest of those that were not lost, with its own row.
#[test]
fn of_three_maxima_the_largest_that_is_not_lost_stays() {
    check(2, || {
        let cell = words(8);
        let update = |cell: &Words, v: u64| {
            let cell = TrackCell::new(cell, 2).expect("eight words");
            cell.update(When::Larger, v, |row| {
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
        let found = TrackCell::new(&cell, 2)
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
