// SPDX-License-Identifier: GPL-2.0

//! The variables of an element on real CPUs: M-12, X-12, X-13, X-14, B-02 to B-04.

#![cfg(not(loom))]

mod words;

use rust_hist::sync::{Pair, PairValue, Relaxed};
use rust_hist::tracing_map::{
    NumCell,
    TextCell,
    TrackCell,
    Tracked,
    When, //
};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use words::Content;

fn pairs<const N: usize>() -> [Pair; N] {
    std::array::from_fn(|_| Pair::zero())
}

#[test]
fn a_pair_is_exchanged_as_one() {
    let [before, pair, behind] = &pairs::<3>();
    let both = |value, meta| PairValue { value, meta };

    assert!(Pair::supported());
    assert_eq!(pair.load(), both(0, 0));
    assert_eq!(pair.cmpxchg(both(0, 0), both(1, 2)), Ok(()));
    assert_eq!(pair.cmpxchg(both(1, 3), both(9, 9)), Err(both(1, 2)));
    assert_eq!(pair.cmpxchg(both(0, 2), both(9, 9)), Err(both(1, 2)));
    assert_eq!(
        pair.cmpxchg(both(1, 2), both(u64::MAX, u64::MAX - 1)),
        Ok(())
    );
    assert_eq!(pair.load(), both(u64::MAX, u64::MAX - 1));
    assert_eq!(before.load(), both(0, 0));
    assert_eq!(behind.load(), both(0, 0));
}

#[test]
fn the_words_of_pairs_are_those_of_each() {
    let pairs = pairs::<3>();
    let words = Pair::words(&pairs);

    assert_eq!(words.len(), 6);
    for (n, pair) in (0u64..).zip(&pairs) {
        let new = PairValue {
            value: 10 * n,
            meta: 10 * n + 1,
        };
        assert_eq!(pair.cmpxchg(PairValue::default(), new), Ok(()));
    }
    let held: Vec<u64> = words.iter().map(|word| word.load(Relaxed)).collect();
    assert_eq!(held, [0, 1, 10, 11, 20, 21]);
    assert!(Pair::words(&[]).is_empty());
}

#[test]
fn a_cell_that_does_not_fit_is_refused() {
    let pairs = pairs::<5>();

    assert!(NumCell::at(&pairs, 8).is_some());
    assert!(NumCell::at(&pairs, 10).is_none());
    assert!(NumCell::at(&pairs, u16::MAX).is_none());
    assert!(TrackCell::new(&pairs, 2, 2).is_some());
    assert!(TrackCell::new(&pairs, 10, 0).is_none());

    // Of three rows of two words the last one is missing.
    let short = TrackCell::new(&pairs, 4, 2).expect("there are words for the number");
    let store = |value| short.update(&When::Larger, value, |row| row.put(0, value));
    let mut row = [0];

    assert_eq!([store(1), store(2), store(3)], [Tracked::Stored; 3]);
    assert_eq!((short.read(&mut row), row), (Some(3), [3]));
    assert_eq!(
        short.update(&When::Larger, 4, |row| {
            // The row that is neither the current one nor claimed is the last.
            assert_eq!(short.update(&When::Larger, 5, |_| ()), Tracked::Lost);
            row.put(0, 4);
        }),
        Tracked::Stored
    );
    assert_eq!((short.read(&mut row), row), (Some(4), [4]));
}

/// Each CPU writes numbers that nobody else writes, and takes what is there.
#[test]
fn each_write_is_taken_once_or_overwritten() {
    const WRITES: u64 = 200_000;
    let pair = Pair::zero();
    let cell = NumCell::new(&pair);

    let mut all: Vec<u64> = thread::scope(|scope| {
        let workers: Vec<_> = (0..4)
            .map(|cpu: u64| {
                scope.spawn(move || {
                    let mut taken = Vec::new();
                    for i in 0..WRITES {
                        if cpu % 2 == 0 {
                            cell.set(cpu << 32 | i);
                        } else if let Some(it) = cell.consume() {
                            if i % 7 == 0 {
                                cell.restore(&it);
                            } else {
                                taken.push(it.value);
                            }
                        }
                    }
                    taken
                })
            })
            .collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().expect("worker"))
            .collect()
    });
    if let Some(it) = cell.consume() {
        all.push(it.value);
    }
    assert!(cell.consume().is_none() && cell.read().is_none());

    let unique: HashSet<u64> = all.iter().copied().collect();
    assert_eq!(unique.len(), all.len(), "a write was taken twice");
    assert!(all
        .iter()
        .all(|v| v >> 32 != 1 && v >> 32 <= 2 && v & 0xffff_ffff < WRITES));
}

/// Writers on all CPUs, one of which is interrupted in the middle by itself, and a reader.
#[test]
fn the_largest_and_its_row_stay_together() {
    const HITS: u64 = 100_000;
    let pairs = pairs::<6>();
    let cell = TrackCell::new(&pairs, 0, 3).expect("they are enough");
    let done = AtomicBool::new(false);
    let hit = |v: u64| {
        cell.update(&When::Larger, v, |row| {
            row.put_all([v, !v, v ^ 0xff].into_iter());
        })
    };

    thread::scope(|scope| {
        let writers: Vec<_> = (0..2u64)
            .map(|cpu| {
                scope.spawn(move || {
                    let mut lost = 0;
                    for i in 1..=HITS {
                        if hit(i * 2 + cpu) == Tracked::Lost {
                            lost += 1;
                        }
                    }
                    lost
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            let mut last = 0;
            while !done.load(Ordering::Relaxed) {
                let mut row = [0; 3];
                if let Some(v) = cell.read(&mut row) {
                    assert_eq!(row, [v, !v, v ^ 0xff]);
                    assert!(v >= last);
                    last = v;
                }
            }
        });
        for writer in writers {
            assert_eq!(writer.join().expect("writer"), 0, "two have a row each");
        }
        done.store(true, Ordering::Relaxed);
        reader.join().expect("reader");
    });

    let mut row = [0; 3];
    assert_eq!(cell.read(&mut row), Some(HITS * 2 + 1));
}

#[test]
fn a_string_is_whole_under_its_writers() {
    const WRITES: u64 = 100_000;
    let pairs = pairs::<16>();
    let cell = TextCell::new(Pair::words(&pairs)).expect("words");
    let done = AtomicBool::new(false);

    thread::scope(|scope| {
        let writers: Vec<_> = (1..3u64)
            .map(|cpu| {
                scope.spawn(move || {
                    for i in 0..WRITES {
                        let len = 1 + (i + cpu) as usize % 31;
                        cell.write(std::iter::repeat_n(i << 2 | cpu, len));
                    }
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            let mut seen = 0u64;
            while !done.load(Ordering::Relaxed) {
                let mut content = [0; 31];
                if cell.read(&mut content).is_some() {
                    let v = content[0];
                    let len = content.iter().take_while(|&&word| word == v).count();
                    assert_eq!(len, 1 + ((v >> 2) + (v & 3)) as usize % 31, "a torn string");
                    assert!(content[len..].iter().all(|&word| word == 0));
                    seen += 1;
                }
            }
            seen
        });
        for writer in writers {
            writer.join().expect("writer");
        }
        done.store(true, Ordering::Relaxed);
        reader.join().expect("reader");
    });
    assert!(cell.is_set());
}

#[test]
fn a_reader_gives_up_on_a_writer_that_it_has_interrupted() {
    let pairs = pairs::<2>();
    let cell = TextCell::new(Pair::words(&pairs)).expect("words");
    let mut content = [0; 3];

    assert!(cell.write([1, 2, 3]));
    let inside = cell.write((4..7).inspect(|_| {
        assert!(!cell.is_set() && cell.read(&mut content).is_none());
        // Another writer leaves it to the one that is there.
        assert!(!cell.write([9]) && !cell.unset());
    }));
    assert!(inside);
    assert_eq!(cell.read(&mut content), Some(()));
    assert_eq!(content, [4, 5, 6]);
    assert!(cell.unset() && cell.read(&mut content).is_none());
}
