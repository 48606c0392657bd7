// SPDX-License-Identifier: GPL-2.0

//! The variables of an element under the model checker: X-12 and B-03 (read-once), X-13 and B-04
//! (a tracked value with its row), X-14 and B-02 (strings), H-VAR-19 and H-NAM-05 (a shared table
//! that is cleared while it is hit), X-60 (a number while its table gets a larger map).
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test --test loom_cells`.

#![cfg(loom)]

mod common;
mod words;

use common::{map, shape, Words};
use loom::sync::Arc;
use loom::thread;
use rust_hist::sync::{Acquire, Atomic, Pair, Release};
use rust_hist::tracing_map::{
    Map, Missing, Moving, NumCell, Order, SeededHash, TakenFrom, TextCell, TrackCell, Tracked, When,
};
use words::Content;

/// Checks all interleavings with at most so many preemptions, or `LOOM_MAX_PREEMPTIONS` where that is less.
fn check(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    let most = model.preemption_bound.unwrap_or(preemptions);
    model.preemption_bound = Some(most.min(preemptions));
    model.check(test);
}

/// Words that are all 0.
fn words(n: usize) -> Arc<Words> {
    Arc::new((0..n.div_ceil(2)).map(|_| Pair::zero()).collect())
}

fn num(aux: &[Pair]) -> NumCell<'_> {
    NumCell::at(aux, 0).expect("two words")
}

#[test]
fn each_write_goes_to_one_consumer() {
    check(4, || {
        let cell = words(2);
        num(&cell).set(1);
        let consume = |cell: Arc<Words>| move || num(&cell).consume().map(|taken| taken.value);

        let a = thread::spawn(consume(cell.clone()));
        let b = thread::spawn(consume(cell.clone()));
        let taken = [a, b].map(|thread| thread.join().expect("thread"));

        let mut got: Vec<u64> = taken.into_iter().flatten().collect();
        assert_eq!(got.pop(), Some(1), "nobody got it");
        assert!(got.is_empty(), "both got it");
        assert_eq!(num(&cell).read(), None);
    });
}

/// What is written is taken once, or overwritten, or still there: nothing comes twice and the last
/// write is not lost.
#[test]
fn no_write_is_lost_to_a_stale_flag() {
    check(3, || {
        let cell = words(2);
        let consume = |cell: &Arc<Words>| num(cell).consume().map(|taken| taken.value);

        let writer = {
            let cell = cell.clone();
            thread::spawn(move || [1, 2].map(|v| num(&cell).set(v)))
        };
        let other = {
            let cell = cell.clone();
            thread::spawn(move || num(&cell).consume().map(|taken| taken.value))
        };
        let mine = consume(&cell);
        writer.join().expect("thread");
        let theirs = other.join().expect("thread");
        let left = consume(&cell);

        let mut got: Vec<u64> = [mine, theirs, left].into_iter().flatten().collect();
        assert!(!got.is_empty(), "both writes are gone");
        got.sort_unstable();
        got.dedup();
        let all = [mine, theirs, left].into_iter().flatten().count();
        assert_eq!(got.len(), all, "a write came twice");
        assert_eq!(consume(&cell), None);
    });
}

#[test]
fn a_number_put_back_does_not_hide_a_later_one() {
    check(2, || {
        let cell = words(2);
        num(&cell).set(1);
        let other = {
            let cell = cell.clone();
            thread::spawn(move || num(&cell).set(2))
        };
        let third = {
            let cell = cell.clone();
            thread::spawn(move || num(&cell).consume().map(|taken| taken.value))
        };

        if let Some(taken) = num(&cell).consume() {
            num(&cell).restore(&taken);
        }
        other.join().expect("thread");
        let theirs = third.join().expect("thread");
        let left = num(&cell).read();

        // Without the one who puts back, the same: 2 is there, or has been taken.
        match theirs {
            Some(2) => assert_eq!(left, None),
            Some(1) | None => assert_eq!(left, Some(2)),
            other => panic!("nobody wrote {other:?}"),
        }
    });
}

/// The same number again is another write: putting the first one back must not make two of it.
#[test]
fn a_number_put_back_does_not_come_twice() {
    check(4, || {
        let cell = words(2);
        num(&cell).set(1);
        let other = {
            let cell = cell.clone();
            thread::spawn(move || {
                num(&cell).set(1);
                num(&cell).consume().is_some()
            })
        };

        if let Some(taken) = num(&cell).consume() {
            num(&cell).restore(&taken);
        }
        let theirs = other.join().expect("thread");
        assert_eq!(num(&cell).read().is_none(), theirs);
    });
}

#[test]
fn a_reader_sees_a_number_that_was_written_and_the_latest_after_all() {
    check(4, || {
        let cell = words(2);
        num(&cell).set(7);
        let other = {
            let cell = cell.clone();
            thread::spawn(move || {
                num(&cell).consume().expect("set");
                num(&cell).set(8);
            })
        };
        assert!(matches!(num(&cell).read(), None | Some(7) | Some(8)));
        other.join().expect("thread");
        assert_eq!(num(&cell).read(), Some(8));
    });
}

/// One step of a hit with a row: the row says twice what the value is.
fn track(cell: &[Pair], when: When, value: u64) -> Tracked {
    let cell = TrackCell::new(cell, 0, 2).expect("eight words");
    cell.update(&when, value, |row| {
        row.put_all([value, !value].into_iter());
    })
}

fn tracked(cell: &[Pair]) -> Option<u64> {
    let cell = TrackCell::new(cell, 0, 2).expect("eight words");
    let mut row = [0; 2];
    let value = cell.read(&mut row);
    if let Some(value) = value {
        assert_eq!(row, [value, !value], "value and row of two hits");
    }
    value
}

fn largest(cell: Arc<Words>, v: u64) -> impl FnOnce() {
    move || assert_ne!(track(&cell, When::Larger, v), Tracked::Lost)
}

#[test]
fn the_maximum_is_exact() {
    check(3, || {
        let cell = words(8);
        let other = thread::spawn(largest(cell.clone(), 5));
        largest(cell.clone(), 9)();
        other.join().expect("thread");

        assert_eq!(tracked(&cell), Some(9));
        assert_eq!(track(&cell, When::Larger, 9), Tracked::Same);
        // Both rows were given back.
        assert_eq!(track(&cell, When::Larger, 10), Tracked::Stored);
        assert_eq!(tracked(&cell), Some(10));
    });
}

#[test]
fn a_maximum_is_seen_with_its_own_row() {
    check(2, || {
        let cell = words(8);
        let other = {
            let cell = cell.clone();
            thread::spawn(move || {
                largest(cell.clone(), 5)();
                largest(cell, 9)();
            })
        };
        assert!(matches!(tracked(&cell), None | Some(5) | Some(9)));
        other.join().expect("thread");
        assert_eq!(tracked(&cell), Some(9));
    });
}

#[test]
fn a_row_is_not_written_again_under_its_reader() {
    check(2, || {
        let cell = words(8);
        track(&cell, When::Larger, 1);
        let other = {
            let cell = cell.clone();
            thread::spawn(move || {
                for v in 2..4 {
                    assert_eq!(track(&cell, When::Larger, v), Tracked::Stored);
                }
            })
        };
        assert!(matches!(tracked(&cell), Some(1..=3)));
        other.join().expect("thread");
        assert_eq!(tracked(&cell), Some(3));
    });
}

#[test]
fn a_change_is_seen_with_its_row() {
    check(3, || {
        let cell = words(8);
        let writer = |cell: Arc<Words>, v: u64| move || track(&cell, When::Other, v);

        let a = thread::spawn(writer(cell.clone(), 5));
        let b = thread::spawn(writer(cell.clone(), 5));
        let ends = [a, b].map(|thread| thread.join().expect("thread"));

        // One of two equal values is a change, and one alone.
        assert!(ends.contains(&Tracked::Stored) && ends.contains(&Tracked::Same));
        assert_eq!(tracked(&cell), Some(5));
        assert_eq!(track(&cell, When::Other, 5), Tracked::Same);
        assert_eq!(track(&cell, When::Other, 0), Tracked::Stored);
        assert_eq!(tracked(&cell), Some(0));
    });
}

/// Of two hits above the limit one runs the action; so it is again once one has come that is back. There is no row:
/// rows are claimed alike for each condition, and the tests of maxima and changes model that.
#[test]
fn one_crossing_is_one() {
    const OVER: When = When::Above {
        limit: 10,
        back: 5,
        order: Order::UNSIGNED,
    };

    fn number(cell: &[Pair]) -> TrackCell<'_> {
        TrackCell::new(cell, 0, 0).expect("two words")
    }

    check(2, || {
        let cell = words(2);
        let hit = |cell: Arc<Words>, v: u64| {
            move || match number(&cell).end(&OVER, v) {
                true => 0,
                false => usize::from(number(&cell).update(&OVER, v, |_| ()) == Tracked::Stored),
            }
        };
        let last = || number(&cell).read(&mut []);

        let a = thread::spawn(hit(cell.clone(), 11));
        let b = thread::spawn(hit(cell.clone(), 5));
        let fired = hit(cell.clone(), 12)() + a.join().expect("thread");
        b.join().expect("thread");

        // The number that is back may have come between the two.
        assert!((1..=2).contains(&fired), "{fired} of two");
        assert!(matches!(last(), Some(11 | 12)));
        hit(cell.clone(), 5)();
        assert_eq!(hit(cell.clone(), 10)(), 0);
        assert_eq!(hit(cell.clone(), 13)(), 1);
        assert_eq!(hit(cell.clone(), 6)() + hit(cell.clone(), 14)(), 0);
        assert_eq!(last(), Some(13));
    });
}

/// Three at once are one more than there are rows: one of them is lost, and says so.
#[test]
fn a_lost_row_is_told() {
    check(3, || {
        let cell = words(8);
        let inner = {
            let cell = cell.clone();
            move |v: u64| track(&cell, When::Larger, v)
        };
        let view = TrackCell::new(&cell, 0, 2).expect("eight words");
        let mut ends = Vec::new();

        let outer = view.update(&When::Larger, 1, |row| {
            row.put_all([1, !1].into_iter());
            let view = TrackCell::new(&cell, 0, 2).expect("eight words");
            ends.push(view.update(&When::Larger, 2, |row| {
                ends_in_loss(&inner, 3);
                row.put_all([2, !2].into_iter());
            }));
        });
        assert_eq!(ends, [Tracked::Stored]);
        assert_eq!(outer, Tracked::Same);
        assert_eq!(tracked(&cell), Some(2));
        assert_eq!(inner(3), Tracked::Stored);
    });
}

fn ends_in_loss(update: &impl Fn(u64) -> Tracked, v: u64) {
    assert_eq!(update(v), Tracked::Lost);
}

fn text(cell: &[Pair]) -> TextCell<'_> {
    TextCell::new(Pair::words(cell)).expect("a word")
}

#[test]
fn a_string_is_never_torn() {
    check(3, || {
        let cell = words(3);
        let writer = |cell: Arc<Words>, v: u64| move || text(&cell).write([v, !v]);
        let look = |cell: &[Pair]| {
            let mut seen = [0; 2];
            text(cell).read(&mut seen).map(|()| {
                assert_eq!(seen[1], !seen[0], "a torn string");
                seen[0]
            })
        };

        let a = thread::spawn(writer(cell.clone(), 1));
        let b = thread::spawn(writer(cell.clone(), 2));
        let seen = look(&cell);
        assert!(matches!(seen, None | Some(1) | Some(2)));
        let written = [a, b].map(|thread| thread.join().expect("thread"));

        assert!(written.contains(&true), "both left it to the other");
        assert!(matches!(look(&cell), Some(1) | Some(2)));
    });
}

#[test]
fn unsetting_a_string_excludes_its_writer() {
    check(4, || {
        let cell = words(2);
        assert!(text(&cell).write([1]));
        let other = {
            let cell = cell.clone();
            thread::spawn(move || text(&cell).write([2]))
        };
        let unset = text(&cell).unset();
        let written = other.join().expect("thread");

        assert!(unset || written);
        let mut seen = [0];
        match text(&cell).read(&mut seen) {
            Some(()) => assert!(written && seen == [2]),
            None => assert!(unset && !text(&cell).is_set()),
        }
    });
}

/// A table that two triggers share is exchanged for an empty one. A hit inserts, sets its variable
/// and is done, wholly in one of the two; whoever looks for the variable finds what was set in the
/// table that it looks in.
#[test]
fn a_shared_table_is_cleared_whole() {
    type Table = Map<Words, SeededHash>;

    fn set(map: &Table, v: u64) {
        let elt = map.insert(&[7], |_| ()).expect("room");
        num(map.aux(elt)).set(v);
        map.shard(0).hit(elt, &[0; 0]);
    }

    check(2, || {
        let maps: Arc<[Table; 2]> =
            Arc::new([map(shape(1, 1, 2, 1, 1)), map(shape(1, 1, 2, 1, 1))]);
        let current = Arc::new(Atomic::<u32>::new(0));
        let member = |v: u64| {
            let (maps, current) = (maps.clone(), current.clone());
            move || {
                // ORDERING: pairs with `Release` in the clear.
                let at = current.load(Acquire) as usize;
                set(&maps[at], v);
                at
            }
        };

        let a = thread::spawn(member(1));
        let clear = {
            let current = current.clone();
            // ORDERING: pairs with `Acquire` in the hits.
            thread::spawn(move || current.store(1, Release))
        };
        // ORDERING: as in a hit.
        let reader = &maps[current.load(Acquire) as usize];
        let seen = reader
            .lookup(&[7])
            .and_then(|elt| num(reader.aux(elt)).read());
        assert!(matches!(seen, None | Some(1)));
        let b = member(2)();
        let a = a.join().expect("thread");
        clear.join().expect("thread");

        for (at, map) in maps.iter().enumerate() {
            let calls = usize::from(a == at) + usize::from(b == at);
            assert_eq!(map.account().hits, calls as u64);
            let value = map.lookup(&[7]).and_then(|elt| num(map.aux(elt)).read());
            assert_eq!(value.is_some(), calls > 0);
        }
    });
}

/// A variable in an old and in a new map; the latter gets the entry when somebody sets `is_there`, if it has not had it from
/// the beginning.
#[derive(Clone)]
struct Grown {
    cells: Arc<[Words; 2]>,
    is_there: Option<Arc<Atomic<u64>>>,
}

impl Grown {
    /// The number is 1 in the old map.
    fn new(is_there: bool) -> Self {
        let words = || (0..1).map(|_| Pair::zero()).collect();
        let grown = Self {
            cells: Arc::new([words(), words()]),
            is_there: (!is_there).then(|| Arc::new(Atomic::<u64>::new(0))),
        };

        num(&grown.cells[0]).set(1);
        grown
    }

    fn in_new(&self) -> Option<NumCell<'_>> {
        // As a slot that names the entry.
        let is_there = self
            .is_there
            .as_ref()
            .is_none_or(|is| is.load(Acquire) != 0);

        is_there.then(|| num(&self.cells[1]))
    }

    fn insert(&self) {
        if let Some(is_there) = &self.is_there {
            is_there.store(1, Release);
        }
    }

    fn look(&self) -> Moving<'_> {
        Moving::new(self.in_new(), Some(num(&self.cells[0])))
    }

    /// What a hit that writes to the new map does.
    fn set(&self, value: u64) {
        self.insert();
        num(&self.cells[1]).set(value);
    }

    /// What the thread does that grows the table.
    fn carry(&self) {
        self.insert();
        self.look().carry();
    }

    /// What a hit that reads the variable does, and the cells where it has found it.
    fn take(&self) -> Option<(Moving<'_>, TakenFrom)> {
        loop {
            let cells = self.look();

            match cells.consume() {
                Ok(taken) => return Some((cells, taken)),
                Err(Missing::Unset) => return None,
                Err(Missing::Moved) => (),
            }
        }
    }

    fn consume(&self) -> Option<u64> {
        self.take().map(|(_, taken)| taken.value())
    }

    /// What it does that has taken the variable and finds another one unset.
    fn put_back(&self) {
        let Some((cells, taken)) = self.take() else {
            return;
        };

        if cells.restore(&taken).is_err() {
            let new = Moving::new(self.in_new(), None);
            assert_eq!(new.put_back(taken.value()), Ok(()));
        }
    }

    /// What hits find when the thread is done.
    fn left(&self) -> Option<u64> {
        num(&self.cells[1]).read()
    }

    /// Runs `other` while the table grows.
    fn at_once<R: Send + 'static>(&self, other: impl FnOnce(&Self) -> R + Send + 'static) -> R {
        let grown = self.clone();
        let other = thread::spawn(move || other(&grown));

        self.carry();
        other.join().expect("thread")
    }
}

#[test]
fn x_60_a_number_on_its_way_is_found() {
    for is_there in [false, true] {
        check(3, move || {
            let grown = Grown::new(is_there);
            let read = |grown: &Grown| loop {
                match grown.look().read() {
                    Err(Missing::Moved) => (),
                    other => return other,
                }
            };

            assert_eq!(grown.at_once(read), Ok(1));
            assert_eq!(grown.left(), Some(1));
        });
        check(3, move || {
            let grown = Grown::new(is_there);

            assert_eq!(grown.at_once(Grown::consume), Some(1));
            assert_eq!(grown.left(), None);
        });
    }
}

#[test]
fn x_60_a_number_on_its_way_goes_to_one_consumer() {
    check(2, || {
        let grown = Grown::new(true);
        let third = grown.clone();
        let third = thread::spawn(move || third.consume());

        let taken = [grown.at_once(Grown::consume), third.join().expect("thread")];
        assert!(
            matches!(taken, [Some(1), None] | [None, Some(1)]),
            "{taken:?}"
        );
        assert_eq!(grown.left(), None);
    });
}

/// A number that is set in the new map hides that of the old one, whoever comes when.
#[test]
fn x_60_a_later_number_is_not_hidden_by_one_on_its_way() {
    for is_there in [false, true] {
        check(3, move || {
            let grown = Grown::new(is_there);

            grown.at_once(|grown| grown.set(2));
            assert_eq!(grown.left(), Some(2));
        });
    }
    check(2, || {
        let grown = Grown::new(true);
        let third = grown.clone();
        let third = thread::spawn(move || third.consume());

        grown.at_once(|grown| grown.set(2));
        match third.join().expect("thread") {
            Some(1) => assert_eq!(grown.left(), Some(2)),
            Some(2) => assert_eq!(grown.left(), None),
            other => panic!("{other:?}"),
        }
    });
}

/// Put back it is there again, and once.
#[test]
fn x_60_a_number_put_back_on_its_way() {
    for is_there in [false, true] {
        check(3, move || {
            let grown = Grown::new(is_there);

            grown.at_once(Grown::put_back);
            assert_eq!(grown.left(), Some(1));
        });
    }
    check(2, || {
        let grown = Grown::new(true);
        let third = grown.clone();
        let third = thread::spawn(move || third.set(2));

        grown.at_once(Grown::put_back);
        third.join().expect("thread");
        assert_eq!(grown.left(), Some(2));
    });
}
