// SPDX-License-Identifier: GPL-2.0

//! A table that grows, in the steps of `Table::grow` of the module.

use super::{insert, insert_by, Words};
use rust_hist::sync::{Acquire, Atomic, Pair, Relaxed, Release};
use rust_hist::tracing_map::{
    copy_pairs, Account, Dimensions, Ending, Inserter, KeyHash, Map, Rows, Shape,
};
use std::{cell::Cell, collections::BTreeMap};

/// The extra words that an inserter writes.
const FIXED: u16 = 2;

/// A hit that inserts a key, and whether it asks for a larger map.
struct Asking<'a> {
    key: u64,
    asks: &'a Cell<bool>,
}

impl Inserter for Asking<'_> {
    fn init(self, aux: &[Atomic<u64>]) {
        aux[0].store(!self.key, Relaxed);
    }

    fn crowded(&self) {
        self.asks.set(true);
    }
}

/// The maps of a table, each twice as large as the one before.
pub(crate) struct Table<H> {
    maps: Vec<(Shape, Words)>,
    /// Which of them hits go to.
    live: Atomic<u32>,
    hash: H,
}

impl<H: KeyHash> Table<H> {
    /// Tables of `1 << bits` elements and more, up to `1 << grows_to`.
    pub(crate) fn new(bits: u32, grows_to: u32, others: bool, nr_cpus: u32) -> Self {
        let map = |bits| {
            let dimensions = Dimensions {
                bits,
                grows_to,
                expires: false,
                others,
                key_words: 1,
                aux_words: 2,
                sums: 2,
            };
            let shape = Shape::new(dimensions, nr_cpus).expect("dimensions in range");
            let words = (0..shape.pairs()).map(|_| Pair::zero()).collect();
            (shape, words)
        };
        Self {
            maps: (bits..=grows_to).map(map).collect(),
            live: Atomic::<u32>::new(0),
            hash: H::default(),
        }
    }

    pub(crate) fn map(&self, which: u32) -> Map<Words, H> {
        let (shape, words) = &self.maps[which as usize];
        Map::new(*shape, words.clone(), self.hash).expect("enough words")
    }

    /// The map that a hit which begins now uses to its end.
    pub(crate) fn live(&self) -> u32 {
        // As in `Table::in_hit`.
        self.live.load(Acquire)
    }

    /// One hit, with the key as value, in a map; returns whether an element of its own or that of others counted it, and
    /// whether a larger map was asked for.
    pub(crate) fn hit_in(&self, which: u32, cpu: u32, key: u64) -> (Option<bool>, bool) {
        let map = self.map(which);
        let shape = *map.shape();
        let asks = Cell::new(false);
        let elt = insert_by(&map, [key], Asking { key, asks: &asks });
        match elt {
            Some(elt) => map.shard(cpu).hit(elt, &[key]),
            None => map.shard(cpu).count(Ending::DroppedFull),
        }
        (elt.map(|_| elt != shape.others()), asks.get())
    }

    /// Makes the next map, of all keys of the live one.
    pub(crate) fn prepare(&self) -> u32 {
        let (old, mut next) = (self.map(self.live()), self.map(self.live() + 1));
        next.reserve_for(&old);
        for slots in old.slot_ranges() {
            next.take_keys(&old, slots, FIXED);
        }
        self.live() + 1
    }

    /// Has hits go to the next map.
    pub(crate) fn exchange(&self, next: u32) {
        // As in `Table::exchange`.
        assert_eq!(self.live.xchg(next, Release), next - 1);
    }

    /// Takes over what the old map has. No hit uses it any more.
    pub(crate) fn finish(&self, next: u32, cpu: u32) {
        let (old, next) = (self.map(next - 1), self.map(next));
        for slots in old.slot_ranges() {
            next.take_rows(&old, slots, cpu, FIXED, |_, _| ());
        }
        next.take_account(&old, cpu);
        next.release(&old);
    }

    /// Hits and sum of each key, of rows that are whole and found.
    pub(crate) fn rows(&self) -> BTreeMap<u64, (u64, u64)> {
        let map = self.map(self.live());
        let mut words = vec![0; map.used() * map.shape().row_words()];
        let len = map.copy_settled_rows(&mut words, copy_pairs);
        let mut found = BTreeMap::new();

        for row in Rows::new(map.shape(), &words, len).iter() {
            assert_eq!(row.aux[0], !row.key[0], "a row that is not complete");
            assert!(map.lookup(row.key).is_some(), "a row that nobody finds");
            let sums = (row.sums[0], row.sums[1]);
            assert!(
                found.insert(row.key[0], sums).is_none(),
                "two rows of a key"
            );
        }
        found
    }

    /// Hits and sum of the keys without room, and the account.
    pub(crate) fn rest(&self) -> ((u64, u64), Account) {
        let map = self.map(self.live());
        let mut sums = vec![0; map.shape().sums()];
        map.copy_others(&mut sums);
        ((sums[0], sums[1]), map.account())
    }

    /// Checks that no element of the live map is lost: as many further keys fit as there is room for.
    pub(crate) fn check_room(&self) {
        let map = self.map(self.live());
        let rows = self.rows().len();
        let more = |key: u64| insert(&map, [key], |aux| aux[0].store(!key, Relaxed));
        let full = |elt| elt == map.shape().others();
        let fit = (1_000_000..).take_while(|&key| !full(more(key))).count();
        assert_eq!(rows + fit, map.shape().elts(), "an element was lost");
    }
}
