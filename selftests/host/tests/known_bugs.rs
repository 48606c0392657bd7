// SPDX-License-Identifier: GPL-2.0

//! What bugs of the C code did, asked of ours: CVE-2024-43890 (the counter of elements wraps after 2^32
//! hits that a full table drops, and elements are handed out again), X-08, M-08.
//!
//! Two elements for one key (CVE-2024-26645) are looked for in `loom_map`, `loom_hits`, `nested_map` and
//! by the litmus tests `publish` and `second-inserter`.

#![cfg(not(loom))]

mod common;

use common::{shape, Quarters};
use rust_hist::sync::{Atomic, Relaxed};
use rust_hist::tracing_map::{Ending, Glance, KeyHash, Map, SeededHash, Values};

struct One;

impl Values for One {
    fn value(&self, _: usize) -> u64 {
        1
    }
}

/// A call as the module makes it.
fn call<H: KeyHash>(map: &Map<&[Atomic<u64>], H>, key: u64) {
    if map.hit_at_once(&[key], || 0, &One) != Glance::Unclear {
        return;
    }
    match map.insert(&[key], |_| ()) {
        Some(elt) => map.shard(0).hit(elt, &[1]),
        None => map.shard(0).count(Ending::DroppedFull),
    }
}

/// However many calls a full table drops, all that changes is the one word that counts them. So there
/// is nothing else that could wrap, whatever their number.
fn drops_change_nothing<H: KeyHash>(bits: u32) {
    const DROPS: u64 = 20_000;

    let shape = shape(bits, 1, 0, 2, 1);
    let words: Vec<_> = (0..shape.words()).map(|_| Atomic::<u64>::new(0)).collect();
    let map: Map<&[Atomic<u64>], H> = Map::new(shape, words.as_slice(), Default::default())
        .expect("as many words as it asks for");
    let look = || -> Vec<u64> { words.iter().map(|word| word.load(Relaxed)).collect() };
    let elts = 1u64 << bits;

    for key in 0..elts {
        call(&map, key);
    }
    // The first drop may note that the table is full.
    call(&map, elts);
    let before = look();

    for n in 0..DROPS {
        call(&map, elts + n);
    }
    let changed: Vec<(u64, u64)> = before
        .into_iter()
        .zip(look())
        .filter(|(before, now)| before != now)
        .collect();

    assert_eq!(changed, [(1, 1 + DROPS)]);
    assert_eq!(map.used() as u64, elts);
    let account = map.account();
    assert_eq!((account.hits, account.dropped_full), (elts, 1 + DROPS));
    for key in 0..elts {
        let elt = map.lookup(&[key]).expect("what was there stays");
        assert_eq!(map.sum(elt, 0), 1);
    }
}

#[test]
fn dropped_calls_take_no_elements() {
    for bits in [0, 1, 7, 11] {
        drops_change_nothing::<SeededHash>(bits);
    }
    drops_change_nothing::<Quarters>(7);
}
