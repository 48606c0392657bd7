// SPDX-License-Identifier: GPL-2.0

//! The tracing map under the model checker: all interleavings of a few steps, and all values that
//! the memory model lets a load see: M-06 and M-07 (claim and publish), M-14 (no key twice), X-08
//! (a full table), B-26.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test --test loom_map`. Tables are as small as the case
//! allows, since every word of them is an object of the model.

#![cfg(loom)]

mod common;

use common::{map, shape, Same, Words};
use loom::sync::Arc;
use loom::thread;
use rust_hist::stat::Stat;
use rust_hist::sync::{Pair, Relaxed};
use rust_hist::tracing_map::{
    copy_pairs, Dimensions, Elt, Ending, KeyHash, Map, Rows, SeededHash, Shape, Tallies, Tally,
};
use std::collections::{BTreeMap, BTreeSet};

/// Checks all interleavings with at most so many preemptions, or `LOOM_MAX_PREEMPTIONS` where that is less. The numbers below are as high as a run
/// of some seconds allows.
fn check(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    let most = model.preemption_bound.unwrap_or(preemptions);
    model.preemption_bound = Some(most.min(preemptions));
    model.check(test);
}

/// A table of `1 << bits` elements with keys of one word and two aux words, in which CPUs share the
/// only shard unless `cpus` says otherwise.
fn small<H: KeyHash>(bits: u32, cpus: u32) -> Arc<Map<Words, H>> {
    Arc::new(map(shape(bits, 1, 2, 1, cpus)))
}

/// Inserts a key whose aux word says so too.
fn insert<H: KeyHash>(map: &Map<Words, H>, key: u64) -> Option<Elt> {
    map.insert(&[key], |aux| aux[0].store(!key, Relaxed))
}

/// One call of a trigger: hit or drop.
fn call<H: KeyHash>(map: &Map<Words, H>, cpu: u32, key: u64) -> Option<Elt> {
    let elt = insert(map, key);
    let shard = map.shard(cpu);
    match elt {
        Some(elt) => shard.hit(elt, &[0; 0]),
        None => shard.count(Ending::DroppedFull),
    }
    elt
}

/// Returns the hits by key, and checks that each row is whole and is the one that a lookup finds.
fn rows<H: KeyHash>(map: &Map<Words, H>) -> BTreeMap<u64, u64> {
    let limit = map.used();
    let mut words = vec![0; limit * map.shape().row_words()];
    let len = map.copy_rows(limit, &mut words, copy_pairs);
    let mut found = BTreeMap::new();

    for row in Rows::new(map.shape(), &words, len).iter() {
        assert_eq!(row.aux[0], !row.key[0], "a row that is not complete");
        assert!(map.lookup(row.key).is_some(), "a row that nobody finds");
        assert!(
            found.insert(row.key[0], row.sums[0]).is_none(),
            "two rows of one key"
        );
    }
    found
}

/// Checks the account against the rows and the number of calls.
fn settle<H: KeyHash>(map: &Map<Words, H>, calls: u64) {
    let account = map.account();
    assert_eq!(account.hits, rows(map).values().sum::<u64>());
    assert_eq!(account.calls(), calls);
}

#[test]
fn one_key_from_two_threads_has_one_element() {
    check(7, || {
        let map = small::<SeededHash>(1, 2);
        let other = {
            let map = map.clone();
            thread::spawn(move || call(&map, 1, 7))
        };
        let a = call(&map, 0, 7);
        let b = other.join().expect("thread");

        assert!(a.is_some(), "two elements are enough");
        assert_eq!(a, b);
        assert_eq!(rows(&map), BTreeMap::from([(7, 2)]));
        settle(&map, 2);

        // The loser gave its element back: exactly one more key fits.
        assert!(insert(&map, 8).is_some());
        assert!(insert(&map, 9).is_none());
        assert!(map.lookup(&[7]).is_some() && map.lookup(&[8]).is_some());
    });
}

#[test]
fn two_keys_that_begin_at_one_slot_both_get_one() {
    check(7, || {
        let map = small::<Same>(1, 2);
        let other = {
            let map = map.clone();
            thread::spawn(move || call(&map, 1, 8))
        };
        let a = call(&map, 0, 7);
        let b = other.join().expect("thread");

        assert!(a.is_some() && b.is_some());
        assert_ne!(a, b);
        assert_eq!(rows(&map), BTreeMap::from([(7, 1), (8, 1)]));
        settle(&map, 2);
    });
}

/// One element left, and both keys want the slot behind the one that is taken. The key that gets no
/// element must not cut the way to the other one.
fn last_element<H: KeyHash + 'static>() {
    check(5, || {
        let map = small::<H>(1, 2);
        assert!(call(&map, 0, 1).is_some());
        let other = {
            let map = map.clone();
            thread::spawn(move || call(&map, 1, 2).is_some())
        };
        let a = call(&map, 0, 3).is_some();
        let b = other.join().expect("thread");

        assert!(a != b, "one element, two keys");
        let winner = if a { 3 } else { 2 };
        assert_eq!(rows(&map), BTreeMap::from([(1, 1), (winner, 1)]));
        assert_eq!(map.account().dropped_full, 1);

        // All that is in the table stays reachable, and nothing else gets in.
        assert!(call(&map, 0, 1).is_some());
        assert!(call(&map, 0, winner).is_some());
        assert!(call(&map, 0, 5 - winner).is_none());
        settle(&map, 6);
    });
}

#[test]
fn last_element_and_neighbouring_slots() {
    last_element::<Same>();
    last_element::<SeededHash>();
}

/// The same with three threads, two of which want the same key.
#[test]
fn last_element_wanted_for_two_keys_by_three() {
    check(2, || {
        let map = small::<Same>(1, 1);
        assert!(insert(&map, 1).is_some());
        let others: Vec<_> = [2, 3]
            .into_iter()
            .map(|key| {
                let map = map.clone();
                thread::spawn(move || insert(&map, key).is_some())
            })
            .collect();
        let a = insert(&map, 2).is_some();
        let there: Vec<bool> = others
            .into_iter()
            .map(|other| other.join().expect("thread"))
            .collect();

        let keys: BTreeSet<u64> = rows(&map).into_keys().collect();
        assert_eq!(keys.len(), 2, "the element was lost");
        assert!(keys.contains(&1));
        // Whoever was told that its key is there finds it there.
        assert!(!(a || there[0]) || keys.contains(&2));
        assert!(!there[1] || keys.contains(&3));
        assert!(a || there[0] || there[1]);
    });
}

/// One element, wanted twice for one key: it may look taken to the second one, but is not lost.
#[test]
fn last_element_wanted_for_one_key_by_two() {
    check(6, || {
        let map = small::<SeededHash>(0, 1);
        let other = {
            let map = map.clone();
            thread::spawn(move || call(&map, 0, 7).is_some())
        };
        let a = call(&map, 0, 7).is_some();
        let b = other.join().expect("thread");

        assert!(a || b);
        assert_eq!(
            rows(&map),
            BTreeMap::from([(7, u64::from(a) + u64::from(b))])
        );
        settle(&map, 2);
        assert!(call(&map, 0, 7).is_some());
        assert!(call(&map, 0, 8).is_none());
        settle(&map, 4);
    });
}

/// Two elements lie on the stack of those given back. One thread takes the upper one; meanwhile the
/// other takes both and gives the upper one back. The first must not believe that nothing changed.
#[test]
fn elements_given_back_are_not_handed_out_twice() {
    check(4, || {
        let map = small::<SeededHash>(2, 1);
        // Each is interrupted by the next before it publishes, so two give their element back.
        let first = map.insert(&[1], |aux| {
            aux[0].store(!1, Relaxed);
            let second = map.insert(&[1], |aux| {
                aux[0].store(!1, Relaxed);
                assert!(insert(&map, 1).is_some());
            });
            assert!(second.is_some());
        });
        assert!(first.is_some());
        assert_eq!(map.used(), 3);

        let other = {
            let map = map.clone();
            thread::spawn(move || {
                let outer = map.insert(&[2], |aux| {
                    aux[0].store(!2, Relaxed);
                    assert!(insert(&map, 2).is_some());
                });
                assert!(outer.is_some());
            })
        };
        assert!(insert(&map, 3).is_some());
        other.join().expect("thread");

        // Four elements, three keys so far: one more fits, and nobody's key was overwritten.
        assert!(insert(&map, 4).is_some());
        assert!(insert(&map, 5).is_none());
        assert_eq!(rows(&map).into_keys().collect::<Vec<_>>(), [1, 2, 3, 4]);
    });
}

#[test]
fn a_lookup_sees_a_whole_element_or_none() {
    check(7, || {
        let map = Arc::new(map::<SeededHash>(shape(0, 2, 2, 1, 1)));
        let other = {
            let map = map.clone();
            thread::spawn(move || {
                map.insert(&[7, 8], |aux| {
                    aux[0].store(17, Relaxed);
                    aux[1].store(18, Relaxed);
                })
            })
        };

        if let Some(elt) = map.lookup(&[7, 8]) {
            let aux: Vec<u64> = Pair::words(map.aux(elt))
                .iter()
                .map(|word| word.load(Relaxed))
                .collect();
            assert_eq!(aux, [17, 18]);
        }
        let mut words = [0; 5];
        let len = map.copy_rows(1, &mut words, copy_pairs);
        for row in Rows::new(map.shape(), &words, len).iter() {
            assert_eq!((row.key, row.aux), (&[7, 8][..], &[17, 18][..]));
        }
        assert!(other.join().expect("thread").is_some());
    });
}

/// An element that was given back gets another key: whoever finds that key sees nothing of the first.
#[test]
fn an_element_used_again_is_whole_too() {
    check(7, || {
        let map = small::<Same>(1, 1);
        let outer = map.insert(&[1], |aux| {
            aux[0].store(99, Relaxed);
            assert!(insert(&map, 1).is_some());
        });
        assert!(outer.is_some());

        let other = {
            let map = map.clone();
            thread::spawn(move || assert!(insert(&map, 2).is_some()))
        };
        let seen = rows(&map);
        assert!(seen.len() <= 2 && seen.contains_key(&1));
        if let Some(elt) = map.lookup(&[2]) {
            assert_eq!(Pair::words(map.aux(elt))[0].load(Relaxed), !2);
        }
        other.join().expect("thread");
        assert_eq!(rows(&map).into_keys().collect::<Vec<_>>(), [1, 2]);
    });
}

#[test]
fn every_call_is_in_the_account_and_in_the_rows() {
    for cpus in [2, 8192] {
        check(4, move || {
            let map = small::<SeededHash>(0, cpus);
            let other = {
                let map = map.clone();
                thread::spawn(move || {
                    call(&map, 1, 7);
                    call(&map, 1, 8);
                })
            };
            call(&map, 0, 7);
            map.shard(0).count(Ending::DroppedNested);
            map.shard(0).count(Ending::Ignored);
            other.join().expect("thread");

            let account = map.account();
            assert_eq!((account.dropped_nested, account.ignored), (1, 1));
            settle(&map, 5);
        });
    }
}

/// Hits of a number whose squares are kept, and a reader: what it takes for between two hits has all of as many hits.
/// With `is_shared` CPUs share the shard, and each hit goes the longer way.
fn squares_under(number: u64, hits: u64, is_shared: bool) {
    check(2, move || {
        let mut tally = Tally::new(false);
        tally.keep(Stat::Stddev);
        let tallies = Tallies::new(&[tally]);
        let dimensions = Dimensions {
            key_words: 1,
            sums: tallies.words(),
            ..Dimensions::default()
        };
        let all = if is_shared { 4096 } else { 1 };
        let shape = Shape::with(dimensions, *tallies.merge(), all).expect("in range");
        assert_eq!(shape.per_cpu(), !is_shared);
        let words = (0..shape.pairs()).map(|_| Pair::zero()).collect();
        let map = Arc::new(
            Map::<Words, SeededHash>::new(shape, words, SeededHash::default()).expect("words"),
        );
        let elt = map.insert(&[7], |_| ()).expect("room");
        let row = |map: &Map<Words, SeededHash>| {
            let mut words = vec![0; map.shape().row_words()];
            let len = map.copy_rows(1, &mut words, copy_pairs);
            let sums: Vec<_> = Rows::new(map.shape(), &words, len)
                .iter()
                .next()
                .expect("a row")
                .sums
                .to_vec();
            sums
        };
        let hitting = {
            let map = map.clone();
            thread::spawn(move || {
                for _ in 0..hits {
                    let shard = map.shard(0);
                    if let Some(from) = shard.keep::<true>(elt, &tallies, &[number]) {
                        shard.keep_rest(elt, &tallies, &[number], from);
                    }
                }
            })
        };
        let seen = row(&map);
        hitting.join().expect("thread");
        let last = row(&map);

        // The count, the sum, how many have begun, and five words of squares behind the upper bits.
        let whole = |row: &[u64]| {
            let square = u128::from(number).pow(2) * u128::from(row[0]);
            let words = (0..5).map(|j| (square >> (24 * j)) as u64);
            row[1] == number * row[0] && row[2] == row[0] && row[4..].iter().copied().eq(words)
        };
        assert!(whole(&last) && last[0] == hits, "{last:?}");
        assert!(seen[2] != seen[0] || whole(&seen), "{seen:?}");
    });
}

#[test]
fn squares_between_two_hits_are_all_of_so_many() {
    // Of a small number two words change, of a large one more.
    squares_under(3, 2, false);
    squares_under(1 << 20, 1, false);
    squares_under(1 << 20, 1, true);
}
