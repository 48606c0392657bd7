// SPDX-License-Identifier: GPL-2.0

//! Maps that larger ones replace while they are hit, and the row of the keys that find no room.

#![cfg(not(loom))]

mod common;

use common::{grow::Table, Quarters, Same};
use proptest::prelude::*;
use rust_hist::tracing_map::{KeyHash, SeededHash};
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
};

#[derive(Clone, Copy, Debug)]
enum Op {
    /// A hit.
    Hit { cpu: u32, key: u64 },
    /// A hit that has begun before the last exchange, if there was one that is not over.
    Late { cpu: u32, key: u64 },
    /// The next step of growth, by a thread on this CPU.
    Step { cpu: u32 },
}

fn op() -> impl Strategy<Value = Op> {
    let (cpu, key) = (0..3u32, 0..40u64);
    prop_oneof![
        6 => (cpu.clone(), key.clone()).prop_map(|(cpu, key)| Op::Hit { cpu, key }),
        2 => (cpu.clone(), key).prop_map(|(cpu, key)| Op::Late { cpu, key }),
        1 => cpu.prop_map(|cpu| Op::Step { cpu }),
    ]
}

/// How far the growth is.
enum Stage {
    None,
    Prepared(u32),
    Exchanged(u32),
}

fn run<H: KeyHash>(bits: u32, others: bool, cpus: u32, ops: &[Op]) {
    let grows_to = 6;
    let table = Table::<H>::new(bits, grows_to, others, cpus);
    let mut stage = Stage::None;
    let mut rows = BTreeMap::<u64, (u64, u64)>::new();
    let (mut of_others, mut dropped) = ((0, 0), 0);
    let mut hit = |which: u32, cpu: u32, key: u64| {
        let (counted, asks) = table.hit_in(which, cpu, key);
        let row = match counted {
            Some(true) => rows.entry(key).or_default(),
            Some(false) => &mut of_others,
            None => {
                assert!(!others);
                dropped += 1;
                assert_eq!(
                    asks,
                    bits + which < grows_to,
                    "a drop that asks for nothing"
                );
                return;
            }
        };
        *row = (row.0 + 1, row.1 + key);
    };
    let mut calls = 0;

    for op in ops.iter().chain([&Op::Step { cpu: 0 }; 2]) {
        match (*op, &stage) {
            (Op::Hit { cpu, key }, _) => hit(table.live(), cpu, key),
            (Op::Late { cpu, key }, Stage::Exchanged(next)) => hit(next - 1, cpu, key),
            (Op::Late { .. }, _) => continue,
            (Op::Step { .. }, Stage::None) if bits + table.live() == grows_to => continue,
            (Op::Step { .. }, Stage::None) => stage = Stage::Prepared(table.prepare()),
            (Op::Step { .. }, &Stage::Prepared(next)) => {
                table.exchange(next);
                stage = Stage::Exchanged(next);
            }
            (Op::Step { cpu }, &Stage::Exchanged(next)) => {
                table.finish(next, cpu);
                stage = Stage::None;
            }
        }
        calls += u64::from(!matches!(op, Op::Step { .. }));
    }
    if let Stage::Exchanged(next) = stage {
        table.finish(next, 0);
    }

    let (others_found, account) = table.rest();
    assert_eq!(table.rows(), rows);
    assert_eq!(others_found, of_others);
    assert_eq!(account.dropped_full, dropped);
    assert_eq!(account.calls(), calls);
    table.check_room();

    // Used again it has nothing of that.
    let mut map = table.map(table.live());
    map.empty();
    assert_eq!((map.used(), map.account()), (0, Default::default()));
    let mut sums = [0; 3];
    assert!(!map.copy_others(&mut sums) && sums == [0; 3]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_or_doubled(
        bits in 0..4u32,
        others in any::<bool>(),
        // The last one makes three CPUs share a shard.
        cpus in prop_oneof![Just(3u32), Just(8192)],
        ops in prop::collection::vec(op(), 0..160),
    ) {
        run::<SeededHash>(bits, others, cpus, &ops);
        run::<Same>(bits, others, cpus, &ops);
        run::<Quarters>(bits, others, cpus, &ops);
    }
}

/// Threads insert and hit keys at full speed while another one grows the table whenever it is asked to.
#[test]
fn threads_hit_while_it_grows() {
    const THREADS: u32 = 3;
    const KEYS: u64 = 3000;
    // As many doublings as it takes for them.
    const GROWS: u32 = 9;
    let table = Table::<SeededHash>::new(3, 13, false, THREADS + 1);
    // Of each thread; odd while a hit is inside.
    let inside = [const { AtomicU64::new(0) }; THREADS as usize];
    let (wanted, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let wait_for_hits = || {
        for inside in &inside {
            let seen = inside.load(Ordering::SeqCst);
            while seen % 2 == 1 && inside.load(Ordering::SeqCst) == seen {
                thread::yield_now();
            }
        }
    };
    let counted: Vec<(BTreeMap<u64, u64>, u64)> = thread::scope(|scope| {
        let hitters: Vec<_> = (0..THREADS)
            .map(|cpu| {
                let (table, wanted, done) = (&table, &wanted, &done);
                let inside = &inside[cpu as usize];
                scope.spawn(move || {
                    let (mut counted, mut calls) = (BTreeMap::new(), 0);
                    for i in 0.. {
                        if table.live() == GROWS && i % KEYS == 0 {
                            break;
                        }
                        calls += 1;
                        let key = (i * 7 + u64::from(cpu) * 1000) % KEYS;
                        inside.fetch_add(1, Ordering::SeqCst);
                        let (hit, asks) = table.hit_in(table.live(), cpu, key);
                        inside.fetch_add(1, Ordering::SeqCst);
                        if hit.is_some() {
                            *counted.entry(key).or_default() += 1;
                        }
                        if asks {
                            wanted.store(true, Ordering::Relaxed);
                        }
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                    (counted, calls)
                })
            })
            .collect();

        while done.load(Ordering::Relaxed) < u64::from(THREADS) {
            if wanted.swap(false, Ordering::Relaxed) && table.map(table.live()).is_crowded() {
                let next = table.prepare();
                table.exchange(next);
                wait_for_hits();
                table.finish(next, THREADS);
            }
            thread::yield_now();
        }
        hitters
            .into_iter()
            .map(|hitter| hitter.join().expect("thread"))
            .collect()
    });

    let mut expected = BTreeMap::<u64, (u64, u64)>::new();
    for (key, hits) in counted.iter().flat_map(|(counted, _)| counted) {
        let row = expected.entry(*key).or_default();
        *row = (row.0 + hits, row.1 + hits * key);
    }
    let (_, account) = table.rest();
    assert_eq!(table.rows(), expected);
    assert_eq!(
        account.calls(),
        counted.iter().map(|(_, calls)| calls).sum::<u64>()
    );
    table.check_room();
}

/// Elements that were kept back for keys of the smaller map, and given back, are room.
#[test]
fn room_that_was_given_back_is_no_crowd() {
    let table = Table::<SeededHash>::new(3, 5, false, 1);
    for key in 0..6 {
        table.hit_in(0, 0, key);
    }
    assert!(table.map(0).is_crowded());
    let next = table.prepare();
    table.exchange(next);
    // Behind eight elements, of which two are for no key.
    for key in 6..11 {
        assert_eq!(table.hit_in(1, 0, key), (Some(true), key == 10));
    }
    table.finish(next, 0);
    assert!(!table.map(1).is_crowded());
    table.hit_in(1, 0, 11);
    assert!(table.map(1).is_crowded());
}
