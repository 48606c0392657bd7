// SPDX-License-Identifier: GPL-2.0

//! The tracing map against a `HashMap` with a limit.

use super::{insert, shape, Words};
use rust_hist::sync::{Pair, Relaxed};
use rust_hist::tracing_map::{copy_pairs, Ending, KeyHash, Map, Rows};
use std::collections::HashMap;

/// Something that is done to a map.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    /// Insert the key if need be and add to its sums, on this CPU.
    Hit {
        cpu: u32,
        key: u64,
        value: u64,
    },
    /// The same, interrupted by a hit of another key before the element is published.
    Nested {
        key: u64,
        inner: u64,
    },
    Lookup {
        key: u64,
    },
    CopyRows,
    /// Copy all rows and begin anew in the same memory.
    Empty,
}

/// A table with a limit.
#[derive(Default)]
struct Model {
    limit: usize,
    /// By key: hit count, sum, and the number of the operation that inserted it.
    rows: HashMap<u64, (u64, u64, u64)>,
    hits: u64,
    dropped: u64,
}

impl Model {
    /// Returns whether the key is in the table after the hit, when `held` elements are in the hands
    /// of somebody else.
    fn hit(&mut self, key: u64, value: u64, stamp: u64, held: usize) -> bool {
        let room = self.rows.len() + held < self.limit;
        if !self.rows.contains_key(&key) && !room {
            self.dropped += 1;
            return false;
        }
        let row = self.rows.entry(key).or_insert((0, 0, stamp));
        row.0 += 1;
        row.1 = row.1.wrapping_add(value);
        self.hits += 1;
        true
    }
}

/// Three words that differ in one place, so that comparing them is tested too.
fn words_of(key: u64) -> [u64; 3] {
    let mut words = [5, 6, 7];
    words[(key % 3) as usize] += 100 * (key + 1);
    words
}

/// Gives the operations to a map and to the model, which say the same after each.
pub(crate) fn check<H: KeyHash>(bits: u32, cpus: u32, ops: &[Op]) {
    let shape = shape(bits, 3, 2, 2, cpus);
    let words: Words = (0..shape.pairs()).map(|_| Pair::zero()).collect();
    let mut map =
        Map::new(shape, words.clone(), H::default()).expect("as many words as it asks for");
    let mut model = Model {
        limit: shape.elts,
        ..Model::default()
    };
    let hit = |map: &Map<Words, H>,
               cpu: u32,
               key: u64,
               value: u64,
               stamp: u64,
               inner: &mut dyn FnMut()| {
        let elt = insert(map, words_of(key), |aux| {
            aux[0].store(stamp, Relaxed);
            inner();
        });
        let shard = map.shard(cpu);
        match elt {
            Some(elt) => shard.hit(elt, &[value]),
            None => shard.count(Ending::DroppedFull),
        }
        elt.is_some()
    };

    for (stamp, op) in (1u64..).zip(ops) {
        match *op {
            Op::Hit { cpu, key, value } => {
                let there = hit(&map, cpu, key, value, stamp, &mut || ());
                assert_eq!(there, model.hit(key, value, stamp, 0));
            }
            Op::Nested { key, inner } => {
                // The interrupt comes only when the outer key is new and got an element.
                let interrupted = !model.rows.contains_key(&key) && model.rows.len() < model.limit;
                let mut inner_there = None;
                let there = hit(&map, 0, key, 1, stamp, &mut || {
                    inner_there = Some(hit(&map, 0, inner, 1, stamp + 1_000_000, &mut || ()));
                });

                assert_eq!(inner_there.is_some(), interrupted);
                if let Some(inner_there) = inner_there {
                    assert_eq!(inner_there, model.hit(inner, 1, stamp + 1_000_000, 1));
                }
                assert_eq!(there, model.hit(key, 1, stamp, 0));
            }
            Op::Lookup { key } => {
                let elt = map.lookup(&words_of(key));
                let row = model.rows.get(&key);
                assert_eq!(elt.is_some(), row.is_some());
                if let (Some(elt), Some(row)) = (elt, row) {
                    assert_eq!((map.sum(elt, 0), map.sum(elt, 1)), (row.0, row.1));
                    assert_eq!(Pair::words(map.aux(elt))[0].load(Relaxed), row.2);
                }
            }
            Op::CopyRows | Op::Empty => {
                let limit = map.used();
                let mut copied = vec![0; limit * shape.row_words()];
                let mut settled = vec![u64::MAX; limit * shape.row_words()];
                let len = map.copy_rows(limit, &mut copied, copy_pairs);
                let rows: HashMap<Vec<u64>, (u64, u64, u64)> = Rows::new(&shape, &copied, len)
                    .iter()
                    .map(|row| (row.key.to_vec(), (row.sums[0], row.sums[1], row.aux[0])))
                    .collect();
                let expected: HashMap<Vec<u64>, (u64, u64, u64)> = model
                    .rows
                    .iter()
                    .map(|(key, row)| (words_of(*key).to_vec(), *row))
                    .collect();
                assert_eq!(len, expected.len());
                assert_eq!(rows, expected);
                assert_eq!(map.copy_settled_rows(&mut settled, copy_pairs), len);
                let len = len * shape.row_words();
                assert_eq!(settled[..len], copied[..len]);

                if let Op::Empty = *op {
                    map.empty();
                    assert!(Pair::words(&words)
                        .iter()
                        .all(|word| word.load(Relaxed) == 0));
                    model = Model {
                        limit: model.limit,
                        ..Model::default()
                    };
                }
            }
        }
        let account = map.account();
        assert_eq!(
            (account.hits, account.dropped_full),
            (model.hits, model.dropped)
        );
    }
}
