// SPDX-License-Identifier: GPL-2.0

//! Memory and hashes for maps under test.

#![allow(dead_code, reason = "not every test uses all of it")]

#[cfg(not(loom))]
pub(crate) mod map_model;

use rust_hist::sync::{Atomic, Pair};
use rust_hist::tracing_map::{Dimensions, Elt, Key, KeyHash, Lookup, Map, Shape};
use std::sync::Arc;

/// The memory of a map on the host, which a test may look at besides.
pub(crate) type Words = Arc<[Pair]>;

/// Returns a shape or says why the test is wrong.
pub(crate) fn shape(
    bits: u32,
    key_words: usize,
    aux_words: usize,
    sums: usize,
    nr_cpus: u32,
) -> Shape {
    let dimensions = Dimensions {
        bits,
        key_words,
        aux_words,
        sums,
        ..Dimensions::default()
    };
    Shape::new(dimensions, nr_cpus).expect("dimensions in range")
}

/// Returns an empty map.
pub(crate) fn map<H: KeyHash>(shape: Shape) -> Map<Words, H> {
    let words = (0..shape.pairs()).map(|_| Pair::zero()).collect();
    Map::new(shape, words, Default::default()).expect("as many words as the shape asks for")
}

/// Finds or inserts a key, as a hit does.
pub(crate) fn insert<K: Key, H: KeyHash>(
    map: &Map<Words, H>,
    key: K,
    init: impl FnOnce(&[Atomic<u64>]),
) -> Option<Elt> {
    let hash = key.hash(map.view().hash());

    match map.view().find(&key, hash) {
        Lookup::Found(elt) => Some(elt),
        Lookup::Full => None,
        Lookup::Absent(at) => map.insert_at(key, hash, at, init),
    }
}

/// All keys begin at the same slot, and have the same hash.
#[derive(Clone, Copy, Default)]
pub(crate) struct Same;

impl KeyHash for Same {
    fn hash(self, _key: &[u64]) -> u64 {
        u64::MAX
    }
}

/// Keys begin at one of four slots; the last one wraps around.
#[derive(Clone, Copy, Default)]
pub(crate) struct Quarters;

impl KeyHash for Quarters {
    fn hash(self, key: &[u64]) -> u64 {
        key[0] << 62 | (key[0] & 0xf0) << 32
    }
}
