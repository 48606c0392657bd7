// SPDX-License-Identifier: GPL-2.0

//! A table that larger maps are given while it is hit: X-60.

use crate::{
    lang_common::*,
    run::*, //
};
use std::{
    collections::BTreeMap,
    rc::Rc,
    sync::atomic::{
        AtomicU32,
        Ordering, //
    },
    thread, //
};

/// A table of `1 << bits` entries that may grow.
fn table(bits: u32, grows_to: u32) -> World {
    let mut world = World {
        tables: Tables {
            bits,
            grows_to,
            ..Tables::default()
        },
        ..World::default()
    };

    world.add(&ZOO, WAKING, "keys=u64:vals=u64:size=128..256");
    world
}

/// A hit, with the key as value.
fn hit(world: &World, cpu: u32, key: u64) -> Ended {
    let mut record = [0; 64];

    record[24..32].copy_from_slice(&key.to_ne_bytes());
    world.hit(0, &record, &Around { cpu, ..AROUND })
}

/// Threads insert and hit keys at full speed while another one grows the table whenever it is asked to.
#[test]
fn threads_hit_while_it_grows() {
    const THREADS: u32 = 3;
    const KEYS: u64 = 3000;
    let machine = Machine::start();
    let world = table(3, 13);
    let source = &world.triggers[0];
    let done = AtomicU32::new(0);
    let counted: Vec<(BTreeMap<u64, u64>, u64)> = thread::scope(|scope| {
        let hitters: Vec<_> = (0..THREADS)
            .map(|cpu| {
                let (machine, world, source, done) = (&machine, &world, source, &done);
                scope.spawn(move || {
                    machine.join();
                    let (mut counted, mut calls) = (BTreeMap::new(), 0);
                    for i in 0.. {
                        // Once there is room for all of them.
                        if i % KEYS == 0 && source.map().shape().elts as u64 > KEYS {
                            break;
                        }
                        calls += 1;
                        let key = (i * 7 + u64::from(cpu) * 1000) % KEYS;
                        if hit(world, cpu, key).is_hit {
                            *counted.entry(key).or_default() += 1;
                        }
                    }
                    done.fetch_add(1, Ordering::Relaxed);
                    (counted, calls)
                })
            })
            .collect();

        while done.load(Ordering::Relaxed) < THREADS {
            if machine.takes_work() {
                source.table.replace().expect("memory");
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
    let found = world.sums(0).into_iter();
    let found: BTreeMap<_, _> = found
        .map(|(key, sums)| (key[0], (sums[0], sums[1])))
        .collect();
    assert_eq!(found, expected);
    let account = source.table.account().expect("memory");
    assert_eq!(
        account.calls(),
        counted.iter().map(|(_, calls)| calls).sum::<u64>()
    );

    // No element was lost: as many further keys fit as there is room for.
    let map = source.map();
    let fit = (1_000_000..).take_while(|&key| map.insert(&[key], |_| ()).is_some());
    assert_eq!(found.len() + fit.count(), map.shape().elts);
}

/// Elements that were kept back for keys of the smaller map, and given back, are room.
#[test]
fn room_that_was_given_back_is_no_crowd() {
    let world = Rc::new(table(3, 7));
    let source = &world.triggers[0];
    for key in 0..6 {
        hit(&world, 0, key);
    }
    assert!(source.map().is_crowded());
    let hook = {
        let world = world.clone();
        move |place| {
            // Behind eight elements, of which two are for no key.
            if place == At::Grace {
                for key in 6..23 {
                    let Ended { is_hit, grows, .. } = hit(&world, 0, key);
                    assert_eq!((is_hit, grows), (true, key == 22));
                }
            }
        }
    };
    with_hook(hook, || source.table.replace()).expect("memory");
    assert!(!source.map().is_crowded());
    hit(&world, 0, 23);
    assert!(source.map().is_crowded());
}
