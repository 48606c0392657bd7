// SPDX-License-Identifier: GPL-2.0

//! Keys of more than two words, which are kept and found without the zeros at their end.

#![cfg(not(loom))]

mod common;

use common::{insert, map, shape, Quarters, Same, Words};
use rust_hist::tracing_map::{copy_pairs, KeyHash, Map, Rows, SeededHash, Sum, Whole};
use std::collections::HashMap;

const WORDS: usize = 6;

/// All keys of six words that are 0 or 1, in a mixed order.
fn all_keys() -> impl Iterator<Item = [u64; WORDS]> {
    (0..1 << WORDS).map(|i| {
        let bits = i * 37 % (1 << WORDS);
        std::array::from_fn(|word| bits >> word & 1)
    })
}

fn without_zeros(mut key: &[u64]) -> &[u64] {
    while let [words @ .., 0] = key {
        key = words;
    }
    key
}

/// Returns how often each key was hit.
fn hitcounts<H: KeyHash>(map: &Map<Words, H>) -> HashMap<Vec<u64>, u64> {
    let limit = map.used();
    let mut words = vec![0; limit * map.shape().row_words()];
    let len = map.copy_rows(limit, &mut words, copy_pairs);
    let rows = Rows::new(map.shape(), &words, len);
    let all: HashMap<_, _> = rows
        .iter()
        .map(|row| (row.key.to_vec(), row.sums[0]))
        .collect();

    assert_eq!(all.len(), len, "two rows of one key");
    all
}

fn each_way_of_writing_a_key_finds_it<H: KeyHash>() {
    let mut map = map::<H>(shape(7, WORDS, 0, 1, 1));

    for key in all_keys() {
        let shortest = without_zeros(&key).len();

        assert!(map.lookup(&key).is_none());
        for len in shortest..=WORDS {
            let elt = map.insert(&key[..len], |_| ()).expect("room for all");
            map.shard(0).hit(elt, &[0; 0]);
            assert_eq!(map.lookup(&key[..len]), Some(elt));
        }
    }

    let found = hitcounts(&map);
    assert_eq!(found.len(), 1 << WORDS);
    for key in all_keys() {
        let ways = WORDS - without_zeros(&key).len() + 1;
        assert_eq!(found.get(&key[..]), Some(&(ways as u64)), "{key:?}");
    }

    map.empty();
    assert_eq!((hitcounts(&map).len(), map.used()), (0, 0));
    for key in all_keys() {
        assert!(map.lookup(&key).is_none());
        assert!(map.insert(&key, |_| ()).is_some());
    }
}

#[test]
fn each_way_of_writing_a_long_key_finds_it() {
    each_way_of_writing_a_key_finds_it::<SeededHash>();
    each_way_of_writing_a_key_finds_it::<Quarters2>();
    each_way_of_writing_a_key_finds_it::<Same>();
}

/// As [`Quarters`], for keys that may have no word.
#[derive(Clone, Copy, Default)]
struct Quarters2;

impl KeyHash for Quarters2 {
    fn hash(self, key: &[u64]) -> u64 {
        key.first().map_or(0, |_| Quarters.hash(key))
    }
}

#[test]
fn no_key_has_more_words_than_keys_have() {
    let map = map::<SeededHash>(shape(7, 5, 0, 1, 1));

    assert!(map.insert(&[1, 2, 3, 4, 5, 0], |_| ()).is_none());
    assert!(map.lookup(&[0; 6]).is_none());
    assert_eq!(map.used(), 0);
}

#[test]
fn keys_of_two_words_have_both() {
    let map = map::<SeededHash>(shape(7, 2, 0, 1, 1));

    assert!(map.insert(&[1], |_| ()).is_none());
    assert!(map.insert(&[1, 0], |_| ()).is_some());
    assert!(map.lookup(&[1]).is_none());
}

/// An element that was given back holds another key, whose words must not show behind a shorter one.
#[test]
fn nothing_is_left_of_a_longer_key() {
    let map = map::<SeededHash>(shape(2, 5, 0, 1, 1));
    let long = [1, 2, 3, 4, 5];
    let mut inner = None;

    let outer = map.insert(&long, |_| inner = map.insert(&long, |_| ()));
    assert_eq!(outer, inner);

    assert!(map.insert(&[7], |_| ()).is_some());
    assert_eq!(map.used(), 2, "the element given back was not taken again");
    let keys: Vec<_> = hitcounts(&map).into_keys().collect();
    assert!(keys.contains(&vec![7, 0, 0, 0, 0]));
    assert_eq!(keys.len(), 2);
}

#[test]
fn the_longest_key_fits() {
    let map = map::<SeededHash>(shape(7, 63, 0, 1, 1));
    let mut key = [1; 63];

    let full = map.insert(&key, |_| ());
    key[62] = 0;
    let shorter = map.insert(&key, |_| ());
    assert!(full.is_some() && shorter.is_some() && full != shorter);
    assert_eq!(map.lookup(&key[..62]), shorter);
    assert_eq!(map.lookup(&[1; 63]), full);
}

/// Long keys of one length have one hash.
#[derive(Clone, Copy, Default)]
struct Lengths;

impl KeyHash for Lengths {
    fn hash(self, _key: &[u64]) -> u64 {
        0
    }

    fn end(self, _sum: Sum) -> u64 {
        0
    }
}

/// Keys of each length without a 0 at the end, and for each length one that differs in the first, one that differs
/// in the last word.
fn keys(most: usize) -> impl Iterator<Item = Vec<u64>> {
    (1..=most).flat_map(|len| {
        let key: Vec<u64> = (1..=len as u64).map(|word| word << 32 | word).collect();
        let (mut first, mut last) = (key.clone(), key.clone());

        first[0] ^= 1 << 63;
        last[len - 1] ^= 1 << 62;
        [key, first, last]
    })
}

fn a_key_is_found_by_each_form<H: KeyHash>() {
    const MOST: usize = 31;
    let map = map::<H>(shape(7, MOST, 0, 1, 1));

    for key in keys(MOST) {
        let elt = insert(&map, Whole::of_long(&key), |_| ()).expect("room for all");

        assert_eq!(map.used() - 1, elt.index(), "{key:?} is not another key");
    }
    for key in keys(MOST) {
        let elt = map.lookup(&key);
        let mut longer = key.clone();

        longer.resize(MOST, 0);
        assert!(elt.is_some());
        assert_eq!(insert(&map, Whole::of_long(&key), |_| ()), elt);
        assert_eq!(map.lookup(&longer), elt);
    }
}

#[test]
fn a_long_key_is_found_by_each_form() {
    a_key_is_found_by_each_form::<SeededHash>();
    a_key_is_found_by_each_form::<Lengths>();
}
