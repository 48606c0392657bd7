// SPDX-License-Identifier: GPL-2.0

//! What a hit does with a key that is there, that a full map has no room for, or that has to be inserted; and where
//! it counts.

#![cfg(not(loom))]

mod common;

use common::{insert, map, shape, Words};
use rust_hist::sync::{Atomic, Pair, Relaxed};
use rust_hist::tracing_map::{Ending, Key, KeyHash, Lookup, Map, SeededHash, Sum, Values, Whole};
use std::thread;

/// Nothing may be asked for.
struct NoValues;

impl Values for NoValues {
    fn value(&self, i: usize) -> u64 {
        panic!("value {i} of none");
    }
}

/// Keys begin at the first slot, so no slots of theirs are behind the last one.
#[derive(Clone, Copy, Default)]
struct First;

impl KeyHash for First {
    fn hash(self, _key: &[u64]) -> u64 {
        0
    }

    fn end(self, _sum: Sum) -> u64 {
        0
    }
}

/// Keys begin at the last slot, so that of each but one it is beyond that.
#[derive(Clone, Copy, Default)]
struct Last;

impl KeyHash for Last {
    fn hash(self, _key: &[u64]) -> u64 {
        u64::MAX
    }

    fn end(self, _sum: Sum) -> u64 {
        u64::MAX
    }
}

/// Keys of `N` words, none equal to another one.
fn keys<const N: usize>() -> impl Iterator<Item = [u64; N]> {
    (1u64..).map(|n| std::array::from_fn(|word| if word + 1 == N { n } else { 7 }))
}

/// What `find` says of a key, in the form in which it is and in one piece.
fn find<H: KeyHash, const N: usize>(map: &Map<Words, H>, key: &[u64; N]) -> Lookup {
    let whole = Whole::new(key, map.shape()).expect("a key");
    let hash = whole.hash(map.view().hash());
    let found = map.view().find(&whole, hash);

    // As an array, a key has the same hash, also where it is a long one.
    assert_eq!(key.hash(map.view().hash()), hash);
    assert_eq!(map.view().find(key, hash), found);
    assert_eq!(map.view().get(key, hash), map.lookup(key));
    assert_eq!(map.view().get(&whole, hash), map.lookup(key));
    found
}

/// The same, and what `insert_at` makes of it for a key that is there or that there is no room for: it takes no element.
fn find_around<H: KeyHash, const N: usize>(map: &Map<Words, H>, key: &[u64; N]) -> Lookup {
    let is_known = map.lookup(key).is_some() || map.used() == 4;

    match find(map, key) {
        Lookup::Absent(at) if is_known => {
            let whole = Whole::new(key, map.shape()).expect("a key");
            let hash = whole.hash(map.view().hash());

            map.insert_at(whole, hash, at, |_: &[Atomic<u64>]| {
                panic!("nothing is inserted")
            })
            .map_or(Lookup::Full, Lookup::Found)
        }
        found => found,
    }
}

/// Keys in a map of four elements, looked up by `find`.
fn a_key_is_found<H: KeyHash, const N: usize>(find: fn(&Map<Words, H>, &[u64; N]) -> Lookup) {
    let map = map::<H>(shape(2, N, 2, 1, 1));
    let put = |key: &[u64; N]| insert(&map, Whole::new(key, map.shape()).expect("a key"), |_| ());

    for (n, key) in keys::<N>().take(4).enumerate() {
        assert!(matches!(find(&map, &key), Lookup::Absent(_)));
        assert_eq!(map.used(), n, "a look inserts nothing");
        let elt = put(&key);
        assert_eq!(map.lookup(&key), elt);
        assert!(elt.is_some());

        for key in keys::<N>().take(n + 1) {
            let elt = map.lookup(&key).expect("it was inserted");

            assert_eq!(find(&map, &key), Lookup::Found(elt));
            assert_eq!(put(&key), Some(elt));
        }
    }
    for key in keys::<N>().skip(4).take(4) {
        assert_eq!(find(&map, &key), Lookup::Full);
        assert_eq!(map.insert(&key, |_| panic!("there is no room")), None);
        assert_eq!(map.lookup(&key), None);
    }
    assert_eq!(map.used(), 4);
}

#[test]
fn a_key_is_found_or_has_no_room() {
    a_key_is_found::<First, 1>(find);
    a_key_is_found::<First, 2>(find);
    a_key_is_found::<First, 4>(find);
    a_key_is_found::<First, 5>(find);
    a_key_is_found::<First, 9>(find);
}

#[test]
fn a_key_beyond_the_last_slot_is_found_or_has_no_room() {
    a_key_is_found::<Last, 1>(find_around);
    a_key_is_found::<Last, 3>(find_around);
    a_key_is_found::<Last, 6>(find_around);
}

/// A key has one hash in maps of all sizes, so that references look it up by the hash of the hit.
#[test]
fn a_key_is_found_in_each_map_by_one_hash() {
    let maps = [
        map::<SeededHash>(shape(2, 6, 0, 1, 1)),
        map::<SeededHash>(shape(7, 6, 2, 1, 1)),
    ];

    for key in keys::<6>().take(4) {
        let whole = Whole::new(&key, maps[0].shape()).expect("a key");
        let hash = whole.hash(maps[0].view().hash());

        for map in &maps {
            assert_eq!(map.view().get(&whole, hash), None);
            let elt = map.insert(&key, |_| ()).expect("room");
            assert_eq!(map.view().get(&whole, hash), Some(elt));
        }
    }
}

#[test]
fn a_count_alone_asks_for_no_value() {
    let map = map::<SeededHash>(shape(7, 1, 0, 1, 1));
    let elt = map.insert(&[1], |_| ()).expect("room");

    map.shard(0).hit(elt, &NoValues);
    assert_eq!(map.sum(elt, 0), 1);
}

#[test]
fn each_ending_is_counted() {
    let map = map::<SeededHash>(shape(7, 1, 0, 1, 3));
    let endings = [
        (Ending::DroppedFull, 1),
        (Ending::DroppedNested, 2),
        (Ending::Ignored, 4),
        (Ending::Hit, 8),
    ];

    for (ending, times) in endings {
        for n in 0..times {
            map.shard(n % 3).count(ending);
        }
    }
    // A hit is counted by its element alone.
    let account = map.account();
    let counted = (
        account.dropped_full,
        account.dropped_nested,
        account.ignored,
    );
    assert_eq!((counted, account.hits), ((1, 2, 4), 0));
}

/// CPUs of the maps below.
const CPUS: u32 = 64;

#[test]
fn a_shard_of_ones_own_is_that_which_may_be_shared() {
    for (key_words, sums, per_cpu) in [(32, 1, true), (1, 3, false)] {
        let shape = shape(7, key_words, 0, sums, CPUS);
        assert_eq!(shape.per_cpu(), per_cpu);
        let left = |may_share: bool| -> Vec<u64> {
            let words: Words = (0..shape.pairs()).map(|_| Pair::zero()).collect();
            let map = Map::<_, SeededHash>::new(shape, words.clone(), Default::default());
            let map = map.expect("as many words as it asks for");
            let elt = map.insert(&vec![1; key_words], |_| ()).expect("room");

            for cpu in 0..CPUS {
                let shard = map.view().shard(cpu, may_share);

                shard.hit(elt, &[cpu.into(), 7]);
                shard.count(Ending::Ignored);
            }
            let found: [u64; 3] = std::array::from_fn(|i| map.sum(elt, i));
            let wanted = [64, 63 * 32, 7 * 64];
            assert_eq!(found[..sums], wanted[..sums]);
            assert_eq!(map.account().ignored, 64);
            Pair::words(&words)
                .iter()
                .map(|word| word.load(Relaxed))
                .collect()
        };

        assert!(!per_cpu || left(true) == left(false));
        left(true);
    }
}

#[test]
fn cpus_that_share_a_shard_lose_nothing() {
    const HITS: u64 = if cfg!(miri) { 50 } else { 20_000 };
    let map = &map::<SeededHash>(shape(7, 1, 0, 3, CPUS));
    let elt = map.insert(&[1], |_| ()).expect("room");

    thread::scope(|scope| {
        for cpu in 0..4 {
            scope.spawn(move || {
                for _ in 0..HITS {
                    map.shard(cpu).hit(elt, &[1, 3]);
                    map.shard(cpu).count(Ending::Ignored);
                }
            });
        }
    });
    let sums: [u64; 3] = std::array::from_fn(|i| map.sum(elt, i));
    assert_eq!(sums, [4 * HITS, 4 * HITS, 12 * HITS]);
    assert_eq!(map.account().ignored, 4 * HITS);
}
