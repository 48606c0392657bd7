// SPDX-License-Identifier: GPL-2.0

//! What is kept of numbers under interrupts: a hit is interrupted before each of its accesses by one with a smaller or a
//! larger number, which is interrupted in the same way. Nothing is lost, with and without shards of their own: X-22.
//! A reader that hits come between sees a row as it was before one of them or after it.

use rust_hist::{
    stat::Stat,
    sync::{
        interrupted,
        Pair, //
    },
    tracing_map::{
        copy_pairs,
        Dimensions,
        Gauge,
        Map,
        Number,
        Rows,
        SeededHash,
        Shape,
        Tallies,
        Tally, //
    },
};
use std::{
    cell::Cell,
    rc::Rc, //
};

type Table = Map<Vec<Pair>, SeededHash>;

/// What an interrupt comes with: smaller ones, larger ones, and such as take more than one word of squares.
const NUMBERS: [i64; 6] = [7, -7, 1 << 30, -(1 << 40), i64::MAX, i64::MIN];

fn tally() -> Tallies {
    let mut tally = Tally::new(true);

    for stat in Stat::ALL {
        tally.keep(stat);
    }
    Tallies::new(&[tally])
}

fn table(is_shared: bool) -> Table {
    let tallies = tally();
    let dimensions = Dimensions {
        bits: 1,
        grows_to: 0,
        expires: false,
        others: false,
        key_words: 1,
        aux_words: 0,
        sums: tallies.words(),
    };
    let cpus = if is_shared { 8192 } else { 1 };
    let shape = Shape::with(dimensions, *tallies.merge(), cpus).expect("in range");
    let words = (0..shape.pairs()).map(|_| Pair::zero()).collect();

    assert_eq!(shape.per_cpu(), !is_shared);
    Map::new(shape, words, SeededHash::default()).expect("as many words as it asks for")
}

fn hit(table: &Table, number: i64) {
    let elt = table.insert(&[7], |_| ()).expect("there is room");
    let (shard, tallies, numbers) = (table.shard(0), tally(), [number as u64]);

    if let Some(from) = shard.keep::<true>(elt, &tallies, &numbers) {
        shard.keep_rest(elt, &tallies, &numbers, from);
    }
}

/// Hits with the first number, interrupted before access `at[0]` by a hit with the second one, and so on. Returns whether
/// all were reached.
fn nest(table: &Rc<Table>, numbers: &[i64], at: &[u64]) -> bool {
    let (Some((number, inner)), Some((&at, rest))) = (numbers.split_first(), at.split_first())
    else {
        hit(table, numbers[0]);
        return true;
    };
    let reached = Rc::new(Cell::new(false));
    let handler = {
        let (table, reached) = (table.clone(), reached.clone());
        let (inner, rest, steps) = (inner.to_vec(), rest.to_vec(), Cell::new(0));

        move || {
            if steps.get() == at {
                reached.set(nest(&table, &inner, &rest));
            }
            steps.set(steps.get() + 1);
        }
    };

    interrupted(handler, || hit(table, *number));
    reached.get()
}

/// The words of the only row, and what is shown of them.
fn shown(table: &Table) -> (Vec<u64>, Vec<Number>) {
    let mut words = vec![0; table.used() * table.shape().row_words()];
    let len = table.copy_rows(table.used(), &mut words, copy_pairs);
    let rows = Rows::new(table.shape(), &words, len);
    let sums = rows.get(0).expect("a row").sums.to_vec();
    let gauge = |stat| Gauge::new(&tally(), 0, stat).number(&sums);

    (
        sums.clone(),
        Stat::ALL.into_iter().filter_map(gauge).collect(),
    )
}

/// What is shown of these numbers, each in a hit of its own, one behind the other.
fn wanted(numbers: &[i64]) -> (Vec<u64>, Vec<Number>) {
    let table = table(false);

    for number in numbers {
        hit(&table, *number);
    }
    shown(&table)
}

#[test]
fn x_22_interrupts_lose_no_maximum_and_no_square() {
    let mut tried = 0u64;

    for is_shared in [false, true] {
        for second in NUMBERS {
            for third in NUMBERS {
                let numbers = [100, second, third];
                let wanted = wanted(&[&[1, -1][..], &numbers].concat());

                for at in 0.. {
                    let mut inner = 0;

                    loop {
                        let table = Rc::new(table(is_shared));

                        hit(&table, 1);
                        hit(&table, -1);
                        if !nest(&table, &numbers, &[at, inner]) {
                            break;
                        }
                        assert_eq!(shown(&table), wanted, "{numbers:?} at {at}, {inner}");
                        (inner, tried) = (inner + 1, tried + 1);
                    }
                    if inner == 0 {
                        break;
                    }
                }
            }
        }
    }
    eprintln!("{tried} places");
    assert!(tried > 1000);
}

#[test]
fn x_22_a_reader_sees_rows_between_two_hits() {
    let numbers = |n: usize| &[3, 1 << 30, -(1 << 40), 900, -5][..n];
    let mut tried = 0;

    for is_shared in [false, true] {
        for at in 0u64.. {
            let table = Rc::new(table(is_shared));

            for number in numbers(3) {
                hit(&table, *number);
            }
            // Two hits behind each other come to a place of the reader.
            let (steps, hits) = (Rc::new(Cell::new(0)), table.clone());
            let handler = {
                let steps = steps.clone();
                move || {
                    if steps.get() == at {
                        hit(&hits, 900);
                        hit(&hits, -5);
                    }
                    steps.set(steps.get() + 1);
                }
            };
            let seen = interrupted(handler, || shown(&table));

            if steps.get() <= at {
                break;
            }
            assert!(
                seen == wanted(numbers(3)) || seen == wanted(numbers(5)),
                "at {at}: {seen:?}"
            );
            tried += 1;
        }
    }
    assert!(tried > 20, "{tried} tried");
}
