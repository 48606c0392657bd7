// SPDX-License-Identifier: GPL-2.0

//! The variables of an element on real CPUs: M-12, X-12, X-13, X-14, B-02 to B-04.

#![cfg(not(loom))]

mod common;
mod words;

use common::{shape, Words};
use rust_hist::sync::{Atomic, Pair, PairValue};
use rust_hist::tracing_map::{
    Map,
    NumCell,
    SeededHash,
    TextCell,
    TrackCell,
    Tracked,
    When, //
};
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use words::Content;

/// Words at an address that is a multiple of 16.
#[repr(align(16))]
struct Aligned([Atomic<u64>; 32]);

fn words() -> Aligned {
    Aligned(std::array::from_fn(|_| Atomic::<u64>::new(0)))
}

#[test]
fn a_pair_is_exchanged_as_one() {
    let words = words();
    let pair = Pair::new(&words.0[2..]).expect("aligned");
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
    assert_eq!(
        Pair::new(&words.0[..2]).map(|pair| pair.load()),
        Some(both(0, 0))
    );
    assert_eq!(
        Pair::new(&words.0[4..]).map(|pair| pair.load()),
        Some(both(0, 0))
    );
}

#[test]
fn a_pair_at_another_address_is_refused() {
    let words = words();
    assert!(Pair::new(&words.0[1..]).is_none());
    assert!(Pair::new(&words.0[..1]).is_none());
    assert!(NumCell::new(&words.0[3..]).is_none());
    assert!(TrackCell::new(&words.0[..8], 2).is_some());
    assert!(TrackCell::new(&words.0[..7], 2).is_none());
    assert!(TrackCell::new(&words.0[1..], 2).is_none());
}

#[test]
fn a_map_with_variables_wants_aligned_memory() {
    struct Odd(Words);

    impl std::ops::Deref for Odd {
        type Target = [Atomic<u64>];

        fn deref(&self) -> &[Atomic<u64>] {
            // One of these two is not aligned.
            let at = usize::from(Pair::new(&self.0).is_some());
            &self.0[at..]
        }
    }

    for (aux_words, fits) in [(0, true), (2, false)] {
        let shape = shape(7, 1, aux_words, 1, 1);
        let words = (0..shape.words() + 2).map(|_| Atomic::<u64>::new(0));
        let map = Map::<_, SeededHash>::new(shape, Odd(words.collect()), SeededHash::default());
        assert_eq!(map.is_some(), fits);
    }
}

/// Each CPU writes numbers that nobody else writes, and takes what is there.
#[test]
fn each_write_is_taken_once_or_overwritten() {
    const WRITES: u64 = 200_000;
    let words = words();
    let cell = NumCell::new(&words.0).expect("aligned");

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
    let words = words();
    let cell = TrackCell::new(&words.0, 3).expect("aligned");
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
    let words = words();
    let cell = TextCell::new(&words.0).expect("words");
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
    let words = words();
    let cell = TextCell::new(&words.0[..4]).expect("words");
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
