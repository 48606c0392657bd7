// SPDX-License-Identifier: GPL-2.0

//! The tracing map under interrupts: a hit is interrupted before each of its accesses by another one
//! that runs to its end, which is interrupted in the same way, up to four deep, M-06,
//! M-07, M-14, B-26. All places for one interrupt at each level are tried, and for two in one hit.
//!
//! Run with `RUSTFLAGS="--cfg nested" cargo test --test nested_map`.

#![cfg(nested)]

mod common;

use common::{map, shape, Quarters, Same, Words};
use rust_hist::sync::{interrupted, Relaxed};
use rust_hist::tracing_map::{copy_words, Ending, Glance, KeyHash, Map, Rows, SeededHash, Values};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

type Table<H> = Rc<Map<Words, H>>;

/// Who is interrupted, by whom, and so on: the key of each hit.
type Keys = &'static [u64];

/// What a call with this key adds to the sums.
struct Added(u64);

impl Values for Added {
    fn value(&self, i: usize) -> u64 {
        [self.0, 1][i]
    }
}

/// One call of a trigger with a key of one word and two values, as the module makes it.
fn call<H: KeyHash>(map: &Map<Words, H>, key: u64) {
    if map.shape().per_cpu() && map.hit_at_once(&[key], || 0, &Added(key)) != Glance::Unclear {
        return;
    }
    let elt = map.insert(&[key], |aux| {
        aux[0].store(!key, Relaxed);
        aux[1].store(key, Relaxed);
    });
    let shard = map.shard(0);
    match elt {
        Some(elt) => shard.hit(elt, &[key, 1]),
        None => shard.count(Ending::DroppedFull),
    }
}

/// Calls with the first key, interrupted before access `at[0]` by a call with the second one, which
/// is interrupted before its access `at[1]`, and so on. Returns whether all were reached.
fn nest<H: KeyHash + 'static>(map: &Table<H>, keys: Keys, at: &[u64]) -> bool {
    let Some((&key, inner)) = keys.split_first() else {
        return true;
    };
    let Some((&at, rest)) = at.split_first() else {
        call(map, key);
        return true;
    };
    let reached = Rc::new(Cell::new(false));
    let handler = {
        let (map, reached, rest) = (map.clone(), reached.clone(), rest.to_vec());
        let steps = Cell::new(0);
        move || {
            if steps.get() == at {
                reached.set(nest(&map, inner, &rest));
            }
            steps.set(steps.get() + 1);
        }
    };

    interrupted(handler, || call(map, key));
    reached.get()
}

/// The hits by key; each row is whole, and is the one that a lookup finds.
fn rows<H: KeyHash>(map: &Map<Words, H>) -> BTreeMap<u64, u64> {
    let limit = map.used();
    let mut words = vec![0; limit * map.shape().row_words()];
    let len = map.copy_rows(limit, &mut words, copy_words);
    let mut found = BTreeMap::new();

    for row in Rows::new(map.shape(), &words, len).iter() {
        let (key, hits) = (row.key[0], row.sums[0]);
        assert_eq!(row.aux, [!key, key], "a row that is not complete");
        assert_eq!(row.sums, [hits, hits.wrapping_mul(key), hits]);
        assert!(map.lookup(row.key).is_some(), "a row that nobody finds");
        assert!(found.insert(key, hits).is_none(), "two rows of one key");
    }
    found
}

/// Tries all places for the interrupts, in a table of `1 << bits` elements that has the keys `before`.
fn all<H: KeyHash + 'static>(bits: u32, cpus: u32, before: Keys, keys: Keys) {
    let depth = keys.len() - 1;
    let mut at = vec![0; depth];
    let mut tried = 0u64;

    // As an odometer whose wheels have as many places as there are accesses.
    loop {
        let map: Table<H> = Rc::new(map(shape(bits, 1, 2, 3, cpus)));
        for &key in before {
            call(&map, key);
        }
        if nest(&map, keys, &at) {
            settle(&map, bits, before, keys);
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
fn settle<H: KeyHash>(map: &Map<Words, H>, bits: u32, before: Keys, keys: Keys) {
    let account = map.account();
    let found = rows(map);
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
    all::<SeededHash>(2, 1, &[], &[7, 7]);
    all::<SeededHash>(2, 1, &[], &[7, 7, 7]);
    all::<Same>(3, 1, &[1, 2], &[7, 7, 7]);
}

#[test]
fn a_new_key_interrupted_by_others() {
    all::<Same>(3, 1, &[], &[7, 8]);
    all::<Quarters>(3, 1, &[3], &[7, 3, 11]);
    all::<Same>(3, 1, &[1], &[7, 8, 7]);
    all::<SeededHash>(3, 8192, &[], &[7, 8, 7]);
}

#[test]
fn a_key_that_is_there() {
    all::<SeededHash>(2, 1, &[7], &[7, 7, 7]);
    all::<Same>(2, 1, &[1, 7], &[7, 8, 7]);
    all::<SeededHash>(2, 8192, &[7], &[7, 7, 7]);
}

#[test]
fn the_last_element() {
    all::<Same>(1, 1, &[1], &[7, 8, 7]);
    all::<Same>(1, 1, &[1], &[7, 7, 7]);
    all::<Quarters>(0, 1, &[], &[7, 7, 8]);
    all::<SeededHash>(0, 1, &[], &[7, 8, 7]);
    all::<Same>(1, 1, &[1, 2], &[7, 8, 1]);
}

#[test]
fn four_deep() {
    all::<Same>(3, 1, &[], &[7, 8, 7, 8]);
    all::<SeededHash>(1, 1, &[1], &[7, 8, 7, 1]);
}

/// Two interrupts come to one hit, one behind the other.
fn twice<H: KeyHash + 'static>(bits: u32, before: Keys, keys: Keys) {
    let [outer, first, second] = *keys else {
        panic!("three keys");
    };
    for at in 0u64.. {
        for later in at.. {
            let map: Table<H> = Rc::new(map(shape(bits, 1, 2, 3, 1)));
            for &key in before {
                call(&map, key);
            }
            let steps = Rc::new(Cell::new(0));
            let handler = {
                let (map, steps) = (map.clone(), steps.clone());
                move || {
                    let step = steps.replace(steps.get() + 1);
                    if step == at {
                        call(&map, first);
                    }
                    if step == later {
                        call(&map, second);
                    }
                }
            };
            interrupted(handler, || call(&map, outer));
            if steps.get() <= later {
                if later == at {
                    assert!(at >= 5, "{at} places");
                    return;
                }
                break;
            }
            settle(&map, bits, before, keys);
        }
    }
}

#[test]
fn two_interrupts_of_one_hit() {
    twice::<SeededHash>(2, &[], &[7, 7, 8]);
    twice::<Same>(3, &[1], &[7, 8, 7]);
    twice::<Same>(1, &[1], &[7, 8, 7]);
    twice::<SeededHash>(0, &[], &[7, 7, 8]);
    twice::<Quarters>(2, &[7], &[7, 3, 7]);
}

/// A reader that is interrupted by hits sees whole rows, and none twice.
#[test]
fn a_reader_interrupted_by_hits() {
    for at in 0.. {
        let map: Table<Same> = Rc::new(map(shape(3, 1, 2, 3, 1)));
        for key in [1, 2, 1] {
            call(&map, key);
        }
        let steps = Cell::new(0);
        let reached = Rc::new(Cell::new(false));
        let handler = {
            let (map, reached) = (map.clone(), reached.clone());
            move || {
                if steps.get() == at {
                    reached.set(true);
                    for key in [2, 3, 4] {
                        call(&map, key);
                    }
                }
                steps.set(steps.get() + 1);
            }
        };
        let mut words = vec![0; 8 * map.shape().row_words()];
        let len = {
            let map = map.clone();
            interrupted(handler, || map.copy_rows(8, &mut words, copy_words))
        };
        let mut keys = Vec::new();

        for row in Rows::new(map.shape(), &words, len).iter() {
            assert_eq!(row.aux, [!row.key[0], row.key[0]]);
            keys.push(row.key[0]);
        }
        keys.sort_unstable();
        assert!(keys.starts_with(&[1, 2]) && keys.windows(2).all(|pair| pair[0] < pair[1]));
        if !reached.get() {
            assert!(at > 10);
            break;
        }
        assert_eq!(rows(&map), BTreeMap::from([(1, 2), (2, 2), (3, 1), (4, 1)]));
    }
}
