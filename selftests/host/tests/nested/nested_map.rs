// SPDX-License-Identifier: GPL-2.0

//! The tracing map under interrupts: a hit is interrupted before each of its accesses by another one
//! that runs to its end, which is interrupted in the same way, up to four deep, M-06,
//! M-07, M-14, B-26. All places for one interrupt at each level are tried, and for two in one hit.

use crate::{
    lang_common::*,
    run::*, //
};
use rust_hist::{
    sync::interrupted,
    tracing_map::{
        copy_pairs,
        Rows, //
    }, //
};
use std::{
    cell::Cell,
    collections::BTreeMap,
    rc::Rc, //
};

/// Who is interrupted, by whom, and so on: the key of each hit.
type Keys = &'static [u64];

/// The task of the hit with each key, which its entry keeps.
const NAMES: [&str; 12] = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
];

/// A trigger whose key is one number, with a value of one and one of the key.
const TEXT: &str = "keys=common_pid.execname:vals=common_pid,u8";

/// A world with this trigger.
fn world(bits: u32, cpus: u32, hash: Hash) -> World {
    let mut world = World {
        tables: Tables {
            bits,
            cpus,
            hash,
            ..Tables::default()
        },
        ..World::default()
    };

    world.add(&ZOO, ALL, TEXT);
    world
}

/// One call of the trigger.
fn call(world: &World, key: u64) {
    let mut record = [1; 16];
    let around = Around {
        cpu: 0,
        comm: NAMES[key as usize],
        ..AROUND
    };

    record[4..8].copy_from_slice(&(key as u32).to_ne_bytes());
    world.hit(0, &record, &around);
}

/// Calls with the first key, interrupted before access `at[0]` by a call with the second one, which
/// is interrupted before its access `at[1]`, and so on. Returns whether all were reached.
fn nest(world: &Rc<World>, keys: Keys, at: &[u64]) -> bool {
    let Some((&key, inner)) = keys.split_first() else {
        return true;
    };
    let Some((&at, rest)) = at.split_first() else {
        call(world, key);
        return true;
    };
    let reached = Rc::new(Cell::new(false));
    let handler = {
        let (world, reached, rest) = (world.clone(), reached.clone(), rest.to_vec());
        let steps = Cell::new(0);
        move || {
            if steps.get() == at {
                reached.set(nest(&world, inner, &rest));
            }
            steps.set(steps.get() + 1);
        }
    };

    interrupted(handler, || call(world, key));
    reached.get()
}

/// The hits by key; each row is whole, and is the one that a lookup finds.
fn rows(world: &World) -> BTreeMap<u64, u64> {
    let map = &world.triggers[0].map();
    let mut found = BTreeMap::new();

    world.with_rows(0, |_, rows| {
        for row in rows {
            let (key, hits) = (row.key[0], row.sums[0]);
            let name = words_of(NAMES[key as usize], 2);
            assert_eq!(row.aux, name, "a row that is not complete");
            assert_eq!(row.sums, [hits, hits.wrapping_mul(key), hits]);
            assert!(map.lookup(row.key).is_some(), "a row that nobody finds");
            assert!(found.insert(key, hits).is_none(), "two rows of one key");
        }
    });
    found
}

/// Tries all places for the interrupts, in a table of `1 << bits` elements that has the keys `before`.
fn all(hash: Hash, bits: u32, cpus: u32, before: Keys, keys: Keys) {
    let depth = keys.len() - 1;
    let mut at = vec![0; depth];
    let mut tried = 0u64;
    let empty = world(bits, cpus, hash);

    // As an odometer whose wheels have as many places as there are accesses.
    loop {
        let world = Rc::new(empty.anew());
        for &key in before {
            call(&world, key);
        }
        if nest(&world, keys, &at) {
            settle(&world, bits, before, keys);
            tried += 1;
            at[depth - 1] += 1;
            continue;
        }
        // The innermost one came to its end: the next place for the one outside of it.
        let Some(wheel) = (0..depth).rev().find(|&wheel| at[wheel] > 0 && wheel > 0) else {
            break;
        };
        at[wheel] = 0;
        at[wheel - 1] += 1;
    }
    eprintln!("{tried} places for {keys:?} after {before:?}");
    assert!(tried >= 5u64.pow(depth as u32 - 1), "{tried} tried");
}

/// What holds when all is over.
fn settle(world: &World, bits: u32, before: Keys, keys: Keys) {
    let map = &world.triggers[0].map();
    let account = map.account();
    let found = rows(world);
    let mut called = BTreeMap::<u64, u64>::new();

    for key in before.iter().chain(keys) {
        *called.entry(*key).or_default() += 1;
    }
    assert_eq!(account.calls(), (before.len() + keys.len()) as u64);
    assert_eq!(account.hits, found.values().sum::<u64>());
    assert!(found.iter().all(|(key, hits)| *hits <= called[key]));
    if called.len() < 1 << bits {
        // With an element to spare for each that is interrupted nobody is turned away.
        let spare = (1usize << bits) - called.len();
        if spare + 1 >= keys.len() {
            assert_eq!(found, called);
        }
    }
    // No element is lost: as many further keys fit as there is room for.
    let room = (1u64 << bits) - found.len() as u64;
    for key in 1000..1000 + room {
        assert!(map.insert(&[key], |_| ()).is_some(), "an element was lost");
    }
    assert!(map.insert(&[999], |_| ()).is_none());
    assert!(found.keys().all(|key| map.lookup(&[*key]).is_some()));
}

#[test]
fn a_new_key_interrupted_by_itself() {
    all(Hash::Seeded, 2, 1, &[], &[7, 7]);
    all(Hash::Seeded, 2, 1, &[], &[7, 7, 7]);
    all(Hash::Same, 3, 1, &[1, 2], &[7, 7, 7]);
}

#[test]
fn a_new_key_interrupted_by_others() {
    all(Hash::Same, 3, 1, &[], &[7, 8]);
    all(Hash::Quarters, 3, 1, &[3], &[7, 3, 11]);
    all(Hash::Same, 3, 1, &[1], &[7, 8, 7]);
    all(Hash::Seeded, 3, 8192, &[], &[7, 8, 7]);
}

#[test]
fn a_key_that_is_there() {
    all(Hash::Seeded, 2, 1, &[7], &[7, 7, 7]);
    all(Hash::Same, 2, 1, &[1, 7], &[7, 8, 7]);
    all(Hash::Seeded, 2, 8192, &[7], &[7, 7, 7]);
}

#[test]
fn the_last_element() {
    all(Hash::Same, 1, 1, &[1], &[7, 8, 7]);
    all(Hash::Same, 1, 1, &[1], &[7, 7, 7]);
    all(Hash::Quarters, 0, 1, &[], &[7, 7, 8]);
    all(Hash::Seeded, 0, 1, &[], &[7, 8, 7]);
    all(Hash::Same, 1, 1, &[1, 2], &[7, 8, 1]);
}

#[test]
fn four_deep() {
    all(Hash::Same, 3, 1, &[], &[7, 8, 7, 8]);
    all(Hash::Seeded, 1, 1, &[1], &[7, 8, 7, 1]);
}

/// Two interrupts come to one hit, one behind the other.
fn twice(hash: Hash, bits: u32, before: Keys, keys: Keys) {
    let [outer, first, second] = *keys else {
        panic!("three keys");
    };
    let empty = world(bits, 1, hash);
    for at in 0u64.. {
        for later in at.. {
            let world = Rc::new(empty.anew());
            for &key in before {
                call(&world, key);
            }
            let steps = Rc::new(Cell::new(0));
            let handler = {
                let (world, steps) = (world.clone(), steps.clone());
                move || {
                    let step = steps.replace(steps.get() + 1);
                    if step == at {
                        call(&world, first);
                    }
                    if step == later {
                        call(&world, second);
                    }
                }
            };
            interrupted(handler, || call(&world, outer));
            if steps.get() <= later {
                if later == at {
                    assert!(at >= 5, "{at} places");
                    return;
                }
                break;
            }
            settle(&world, bits, before, keys);
        }
    }
}

#[test]
fn two_interrupts_of_one_hit() {
    twice(Hash::Seeded, 2, &[], &[7, 7, 8]);
    twice(Hash::Same, 3, &[1], &[7, 8, 7]);
    twice(Hash::Same, 1, &[1], &[7, 8, 7]);
    twice(Hash::Seeded, 0, &[], &[7, 7, 8]);
    twice(Hash::Quarters, 2, &[7], &[7, 3, 7]);
}

/// A reader that is interrupted by hits sees whole rows, and none twice.
#[test]
fn a_reader_interrupted_by_hits() {
    let empty = world(3, 1, Hash::Same);
    for at in 0.. {
        let world = Rc::new(empty.anew());
        for key in [1, 2, 1] {
            call(&world, key);
        }
        let steps = Cell::new(0);
        let reached = Rc::new(Cell::new(false));
        let handler = {
            let (world, reached) = (world.clone(), reached.clone());
            move || {
                if steps.get() == at {
                    reached.set(true);
                    for key in [2, 3, 4] {
                        call(&world, key);
                    }
                }
                steps.set(steps.get() + 1);
            }
        };
        let map = &world.triggers[0].map();
        let mut words = vec![0; 8 * map.shape().row_words()];
        let len = interrupted(handler, || map.copy_rows(8, &mut words, copy_pairs));
        let mut keys = Vec::new();

        for row in Rows::new(map.shape(), &words, len).iter() {
            assert_eq!(row.aux, words_of(NAMES[row.key[0] as usize], 2));
            keys.push(row.key[0]);
        }
        keys.sort_unstable();
        assert!(keys.starts_with(&[1, 2]) && keys.windows(2).all(|pair| pair[0] < pair[1]));
        if !reached.get() {
            assert!(at > 10);
            break;
        }
        assert_eq!(
            rows(&world),
            BTreeMap::from([(1, 2), (2, 2), (3, 1), (4, 1)])
        );
    }
}
