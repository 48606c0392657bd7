// SPDX-License-Identifier: GPL-2.0

//! The tracing map under threads that do their worst, with every call accounted for.

#![cfg(not(loom))]

mod common;

use common::{map, shape, Quarters, Words};
use rust_hist::sync::Relaxed;
use rust_hist::tracing_map::{copy_pairs, Ending, KeyHash, Map, Rows, SeededHash};
use std::collections::{HashMap, HashSet};
use std::sync::{
    atomic::{AtomicBool, Ordering},
    Barrier,
};
use std::thread;

/// xorshift64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

fn key_words(key: u64) -> [u64; 2] {
    [key, !key]
}

/// What one thread knows of its own calls.
#[derive(Default)]
struct Ledger {
    /// By key: hits and the sum of the values.
    sums: HashMap<u64, (u64, u64)>,
    dropped: u64,
}

/// Hits the map with random keys below `keys`; a key that was once there must not vanish.
fn work<H: KeyHash>(map: &Map<Words, H>, cpu: u32, seed: u64, calls: u64, keys: u64) -> Ledger {
    let mut random = Random(seed);
    let mut ledger = Ledger::default();
    let shard = map.shard(cpu);

    for _ in 0..calls {
        let key = random.next() % keys;
        let value = random.next();
        let elt = map.insert(&key_words(key), |aux| aux[0].store(key + 1, Relaxed));
        match elt {
            Some(elt) => {
                shard.hit(elt, &[value]);
                let sums = ledger.sums.entry(key).or_default();
                sums.0 += 1;
                sums.1 = sums.1.wrapping_add(value);
            }
            None => {
                assert!(
                    !ledger.sums.contains_key(&key),
                    "key {key} became unreachable"
                );
                shard.count(Ending::DroppedFull);
                ledger.dropped += 1;
            }
        }
    }
    ledger
}

fn rows_of<H: KeyHash>(map: &Map<Words, H>) -> Vec<(u64, u64, u64)> {
    let limit = map.used();
    let mut words = vec![0; limit * map.shape().row_words()];
    let len = map.copy_rows(limit, &mut words, copy_pairs);

    Rows::new(map.shape(), &words, len)
        .iter()
        .map(|row| {
            assert_eq!(row.key, key_words(row.key[0]), "a torn key");
            assert_eq!(row.aux, [row.key[0] + 1, 0], "aux words of another key");
            (row.key[0], row.sums[0], row.sums[1])
        })
        .collect()
}

fn stress<H: KeyHash>(bits: u32, nr_cpus: u32, threads: u32, calls: u64, keys: u64) {
    let map = map::<H>(shape(bits, 2, 2, 2, nr_cpus));
    let start = Barrier::new(threads as usize + 1);
    let done = AtomicBool::new(false);

    let ledgers: Vec<Ledger> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|cpu| {
                let (map, start) = (&map, &start);
                scope.spawn(move || {
                    start.wait();
                    work(map, cpu, 0x9e37_79b9 + u64::from(cpu), calls, keys)
                })
            })
            .collect();

        // A reader that looks on: rows are complete, there are never two of a key, none goes away.
        let reader = scope.spawn(|| {
            start.wait();
            let mut before = HashSet::new();
            while !done.load(Ordering::Relaxed) {
                let rows = rows_of(&map);
                let now: HashSet<u64> = rows.iter().map(|row| row.0).collect();
                assert_eq!(now.len(), rows.len(), "two rows of one key");
                assert!(now.is_superset(&before), "a row went away");
                assert!(now.len() <= 1 << bits);
                before = now;
                thread::yield_now();
            }
        });

        let ledgers = workers
            .into_iter()
            .map(|worker| worker.join().expect("worker"))
            .collect();
        done.store(true, Ordering::Relaxed);
        reader.join().expect("reader");
        ledgers
    });

    let mut expected: HashMap<u64, (u64, u64)> = HashMap::new();
    for ledger in &ledgers {
        for (key, (hits, sum)) in &ledger.sums {
            let total = expected.entry(*key).or_default();
            total.0 += hits;
            total.1 = total.1.wrapping_add(*sum);
        }
    }
    let found: HashMap<u64, (u64, u64)> = rows_of(&map)
        .into_iter()
        .map(|(key, hits, sum)| (key, (hits, sum)))
        .collect();
    assert_eq!(found, expected);

    let account = map.account();
    assert_eq!(
        account.hits,
        expected.values().map(|row| row.0).sum::<u64>()
    );
    assert_eq!(
        account.dropped_full,
        ledgers.iter().map(|l| l.dropped).sum::<u64>()
    );
    assert_eq!(account.calls(), u64::from(threads) * calls);
    if keys > 1 << bits {
        assert_eq!(found.len(), 1 << bits, "elements were lost");
        assert!(account.dropped_full > 0);
    }
}

#[test]
fn tables_with_room() {
    stress::<SeededHash>(11, 4, 4, 200_000, 1024);
    stress::<Quarters>(8, 4, 4, 20_000, 200);
}

#[test]
fn one_key() {
    stress::<SeededHash>(7, 4, 4, 500_000, 1);
}

#[test]
fn shared_shards() {
    // CPUs 0 to 3 of so many share one shard, and add with atomics.
    assert!(!shape(7, 2, 2, 2, 8192).per_cpu());
    stress::<SeededHash>(7, 8192, 4, 200_000, 100);
}

#[test]
fn full_tables() {
    stress::<SeededHash>(7, 4, 4, 100_000, 1000);
    stress::<SeededHash>(10, 4, 4, 200_000, 5000);
}

/// Many small tables: that is where inserters meet, at the first keys and at the last element.
#[test]
fn small_tables_filled_again_and_again() {
    for _ in 0..300 {
        stress::<SeededHash>(2, 4, 4, 200, 12);
        stress::<Quarters>(3, 4, 4, 200, 12);
        stress::<SeededHash>(0, 4, 4, 100, 3);
    }
}
