// SPDX-License-Identifier: GPL-2.0

//! What a hit does at once with a key that is there, or that a full map has no room for; and what it
//! leaves to [`Map::insert`].

#![cfg(not(loom))]

mod common;

use common::{map, shape, Words};
use rust_hist::sync::{Atomic, Relaxed};
use rust_hist::tracing_map::{
    Account, Ending, Factors, Glance, KeyHash, Map, Pieces, Place, SeededHash, Sharing, Values,
};
use std::thread;

/// What calls add to the sums.
struct Added([u64; 2]);

impl Values for Added {
    fn value(&self, i: usize) -> u64 {
        self.0[i]
    }
}

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

    fn end(self, _sum: u64) -> u64 {
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

    fn end(self, _sum: u64) -> u64 {
        u64::MAX
    }
}

/// Keys of `N` words, none equal to another one.
fn keys<const N: usize>() -> impl Iterator<Item = [u64; N]> {
    (1u64..).map(|n| std::array::from_fn(|word| if word + 1 == N { n } else { 7 }))
}

fn sums<H: KeyHash>(map: &Map<Words, H>, key: &[u64]) -> Option<[u64; 3]> {
    let elt = map.lookup(key)?;
    Some(std::array::from_fn(|i| map.sum(elt, i)))
}

fn a_look_is_a_lookup<H: KeyHash, const N: usize>() {
    let map = map::<H>(shape(3, N, 0, 1, 1));

    for (n, key) in keys::<N>().take(8).enumerate() {
        assert_eq!(map.look(&key, map.hash(&key)), None);
        let elt = map.insert(&key, |_| ());
        assert!(elt.is_some());
        for (there, key) in keys::<N>().take(12).enumerate() {
            assert_eq!(map.look(&key, map.hash(&key)), map.lookup(&key));
            assert_eq!(map.look(&key, map.hash(&key)).is_some(), there <= n);
        }
    }
}

#[test]
fn a_look_finds_what_a_lookup_does() {
    a_look_is_a_lookup::<SeededHash, 1>();
    a_look_is_a_lookup::<SeededHash, 2>();
    a_look_is_a_lookup::<First, 3>();
    a_look_is_a_lookup::<Last, 1>();
    a_look_is_a_lookup::<Last, 3>();
}

fn a_key_is_counted_at_once<H: KeyHash, const N: usize>() {
    let map = map::<H>(shape(2, N, 2, 3, 2));
    let mut account = Account::default();
    let hit = |key: &[u64; N], cpu: u32, values: [u64; 2]| {
        let mut handed = None;
        let seen = map.hit_at_once_and(
            key,
            || cpu,
            &Added(values),
            |aux| {
                handed = Some(aux.as_ptr());
            },
        );
        (seen, handed)
    };

    for key in keys::<N>().take(4) {
        assert_eq!(hit(&key, 0, [1, 2]), (Glance::Unclear, None));
        assert_eq!(map.account(), account);
        let elt = map.insert(&key, |_| ()).expect("room for four");
        let aux = Some(map.aux(elt).as_ptr());

        assert_eq!(hit(&key, 0, [1, u64::MAX]), (Glance::Found(elt), aux));
        assert_eq!(hit(&key, 1, [5, 3]), (Glance::Found(elt), aux));
        assert_eq!(
            map.hit_at_once(&key, || 1, &Added([0, 8])),
            Glance::Found(elt)
        );
        account.hits += 3;
        assert_eq!(map.account(), account);
        assert_eq!(sums(&map, &key), Some([3, 6, 10]));
    }
    for key in keys::<N>().skip(4).take(4) {
        assert_eq!(hit(&key, 1, [1, 2]), (Glance::Full, None));
        assert_eq!(map.hit_at_once(&key, || 0, &NoValues), Glance::Full);
        account.dropped_full += 2;
        assert_eq!(map.account(), account);
    }
    for key in keys::<N>().take(4) {
        assert_eq!(sums(&map, &key), Some([3, 6, 10]));
    }
}

#[test]
fn a_key_that_is_there_or_has_no_room_is_counted_at_once() {
    a_key_is_counted_at_once::<First, 1>();
    a_key_is_counted_at_once::<First, 2>();
    a_key_is_counted_at_once::<First, 4>();
}

#[test]
fn a_count_alone_asks_for_no_value() {
    let map = map::<SeededHash>(shape(7, 1, 0, 1, 1));
    let elt = map.insert(&[1], |_| ()).expect("room");

    assert_eq!(map.hit_at_once(&[1], || 0, &NoValues), Glance::Found(elt));
    assert_eq!(map.sum(elt, 0), 1);
}

#[test]
fn a_key_beyond_the_last_slot_is_left_to_insert() {
    let short = map::<Last>(shape(2, 1, 2, 1, 1));
    let long = map::<Last>(shape(2, 6, 0, 1, 1));
    let [first, second] = [[1; 6], [2; 6]];

    for key in [first, second] {
        assert!(short.insert(&key[..1], |_| ()).is_some());
        assert!(long.insert(&key, |_| ()).is_some());
    }
    for (key, is_seen) in [(first, true), (second, false)] {
        let seen = short.hit_at_once_and(&[key[0]], || 0, &NoValues, |_| assert!(is_seen));
        assert_eq!(seen != Glance::Unclear, is_seen);
        assert_eq!(long.hit_pieces_at_once(&&key[..], || 0, &NoValues), is_seen);
    }
    assert_eq!((short.account().hits, long.account().hits), (1, 1));
}

#[test]
fn each_ending_is_counted_at_once() {
    let map = map::<SeededHash>(shape(7, 1, 0, 1, 3));
    let endings = [
        (Ending::DroppedFull, 1),
        (Ending::DroppedNested, 2),
        (Ending::Ignored, 4),
        (Ending::Hit, 8),
    ];

    for (ending, times) in endings {
        for n in 0..times {
            map.count_at_once(ending, || n % 3);
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

/// A key in two pieces, with words between that are 0.
struct Apart([u64; 2]);

const APART: [usize; 2] = [1, 4];

impl Pieces for Apart {
    fn each(&self, mut found: impl FnMut(usize, u64)) {
        for (at, word) in APART.into_iter().zip(self.0) {
            found(at, word);
        }
    }

    fn sum(&self, factors: &Factors) -> (u64, usize) {
        (&self.words()[..]).sum(factors)
    }

    fn is_in(&self, held: &[Atomic<u64>]) -> bool {
        let words = self.words();
        held.iter()
            .zip(words)
            .take(words.len())
            .all(|(held, word)| held.load(Relaxed) == word)
    }
}

impl Apart {
    fn words(&self) -> [u64; 5] {
        let mut words = [0; 5];
        self.each(|at, word| words[at] = word);
        words
    }
}

fn a_hashed_key_is_found_in_each_map<H: KeyHash>() {
    let maps = [
        map::<H>(shape(2, 6, 0, 1, 1)),
        map::<H>(shape(7, 6, 2, 1, 1)),
    ];

    for n in 1..=4 {
        let key = Apart([n, 9]);
        let hashed = maps[0].hashed(&key);

        for map in &maps {
            assert_eq!(map.look_hashed(&hashed), None);
            let elt = map.insert(&key.words(), |_| ()).expect("room");
            assert_eq!(map.look_hashed(&hashed), Some(elt));
        }
    }
    // No other is there, in a full map or in one that is not.
    for map in &maps {
        assert_eq!(map.look_hashed(&map.hashed(&Apart([5, 9]))), None);
    }
}

#[test]
fn a_long_key_is_found_in_each_map_by_one_hash() {
    a_hashed_key_is_found_in_each_map::<SeededHash>();
    a_hashed_key_is_found_in_each_map::<First>();
    a_hashed_key_is_found_in_each_map::<Last>();
}

fn a_key_in_pieces_is_counted_at_once<H: KeyHash>() {
    let map = map::<H>(shape(2, 6, 0, 3, 2));
    let mut account = Account::default();
    let hit = |key: &Apart, cpu: u32| map.hit_pieces_at_once(key, || cpu, &Added([2, u64::MAX]));

    for n in 1..=4 {
        let key = Apart([n, 9]);

        assert!(!hit(&key, 0));
        assert_eq!(map.account(), account);
        assert!(map.insert(&key.words(), |_| ()).is_some());
        assert!(hit(&key, 0) && hit(&key, 1));
        // The same key in one piece.
        let whole = &key.words()[..];
        assert!(map.hit_pieces_at_once(&whole, || 1, &Added([5, 1])));
        account.hits += 3;
        assert_eq!(map.account(), account);
        assert_eq!(sums(&map, &key.words()), Some([3, 9, u64::MAX]));
    }
    for n in 5..=8 {
        assert!(hit(&Apart([n, 9]), 1));
        account.dropped_full += 1;
        assert_eq!(map.account(), account);
        assert_eq!(sums(&map, &Apart([n, 9]).words()), None);
    }
}

#[test]
fn a_long_key_that_is_there_or_has_no_room_is_counted_at_once() {
    a_key_in_pieces_is_counted_at_once::<First>();
}

/// CPUs of the maps below.
const CPUS: u32 = 64;

/// Calls on all CPUs, in the places that `place` says, and what they come to.
fn on_all<P: Place>(map: &Map<Words>, place: impl Fn(u32) -> P) -> [u64; 3] {
    let elt = map.insert(&[1], |_| ()).expect("room");
    for cpu in 0..CPUS {
        let seen = map.hit_at_once(&[1], place(cpu), &Added([cpu.into(), 1]));
        assert_eq!(seen, Glance::Found(elt));
        map.hit_element(elt, place(cpu), &Added([0, 2]));
        map.count_at_once(Ending::Ignored, place(cpu));
    }
    std::array::from_fn(|i| map.sum(elt, i))
}

#[test]
fn a_place_counts_where_the_cpu_does() {
    let wanted = [128, 63 * 32, 3 * 64];
    let shared = map::<SeededHash>(shape(7, 1, 0, 3, CPUS));
    assert!(!shared.shape().per_cpu());
    assert_eq!(on_all(&shared, |cpu| Sharing(move || cpu)), wanted);
    assert_eq!(shared.account().ignored, 64);

    // Where each CPU has a shard both places are the same.
    for own in [true, false] {
        let map = map::<SeededHash>(shape(7, 32, 0, 1, CPUS));
        assert!(map.shape().per_cpu());
        let elt = map.insert(&[1], |_| ()).expect("room");
        for cpu in 0..CPUS {
            match own {
                true => map.hit_element(elt, || cpu, &NoValues),
                false => map.hit_element(elt, Sharing(|| cpu), &NoValues),
            }
            assert_eq!(map.sum(elt, 0), u64::from(cpu) + 1);
        }
        assert_eq!(map.account().hits, 64);
    }
}

#[test]
fn a_place_counts_in_the_shard_of_its_cpu() {
    let shape = shape(7, 1, 0, 3, CPUS);
    let words = |count: fn(&Map<&[Atomic<u64>], SeededHash>, u32)| -> Vec<u64> {
        let words: Words = (0..shape.words()).map(|_| Atomic::<u64>::new(0)).collect();
        let map = Map::new(shape, &words[..], Default::default()).expect("room");
        map.insert(&[1], |_| ()).expect("room");
        for cpu in (0..CPUS).step_by(3) {
            count(&map, cpu);
        }
        words.iter().map(|word| word.load(Relaxed)).collect()
    };

    let at_once = words(|map, cpu| {
        let seen = map.hit_at_once(&[1], Sharing(|| cpu), &Added([cpu.into(), 7]));
        assert_ne!(seen, Glance::Unclear);
        map.count_at_once(Ending::Ignored, Sharing(|| cpu));
    });
    let by_shard = words(|map, cpu| {
        let elt = map.lookup(&[1]).expect("it is there");
        map.shard(cpu).hit(elt, &[cpu.into(), 7]);
        map.shard(cpu).count(Ending::Ignored);
    });
    assert!(at_once == by_shard);
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
                    let seen = map.hit_at_once(&[1], Sharing(|| cpu), &Added([1, 3]));
                    assert_eq!(seen, Glance::Found(elt));
                    map.count_at_once(Ending::Ignored, Sharing(|| cpu));
                }
            });
        }
    });
    let sums: [u64; 3] = std::array::from_fn(|i| map.sum(elt, i));
    assert_eq!(sums, [4 * HITS, 4 * HITS, 12 * HITS]);
    assert_eq!(map.account().ignored, 4 * HITS);
}
