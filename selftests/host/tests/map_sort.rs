// SPDX-License-Identifier: GPL-2.0

//! Sorting of copied rows against the standard library's stable sort with plain comparisons.

#![cfg(not(loom))]

mod common;

use common::shape;
use proptest::prelude::*;
use rust_hist::stat::Stat;
use rust_hist::tracing_map::sort::{row_of, sort, Column, Compare, SortEntry, SortKey};
use rust_hist::tracing_map::{Gauge, Row, Rows, Shape, Tallies, Tally};
use std::cmp::Ordering;
use std::collections::HashSet;
use std::ffi::CStr;

/// Rows with a number, a string of 16 bytes and two sums.
const KEY_WORDS: usize = 3;

/// The rows in their order.
fn indices(order: &[SortEntry]) -> Vec<u32> {
    order.iter().map(|place| row_of(place) as u32).collect()
}

fn row_shape() -> Shape {
    shape(7, KEY_WORDS, 0, 2, 1)
}

fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn text_of(words: &[u64]) -> Vec<u8> {
    let mut bytes = bytes_of(words);
    bytes.push(0);
    CStr::from_bytes_until_nul(&bytes)
        .expect("a NUL")
        .to_bytes()
        .to_vec()
}

/// The comparison of one column, written down again in terms of the field's C type.
fn compare(column: Column, a: &Row<'_>, b: &Row<'_>) -> Ordering {
    match column {
        Column::Sum(i) => a.sums[i].cmp(&b.sums[i]),
        Column::Made(gauge) => gauge.number(a.sums).cmp(&gauge.number(b.sums)),
        Column::Key { at, compare } => {
            let (x, y) = (a.key[at], b.key[at]);
            match compare {
                Compare::Number {
                    size: 1,
                    signed: true,
                } => (x as i8).cmp(&(y as i8)),
                Compare::Number {
                    size: 2,
                    signed: true,
                } => (x as i16).cmp(&(y as i16)),
                Compare::Number {
                    size: 4,
                    signed: true,
                } => (x as i32).cmp(&(y as i32)),
                Compare::Number {
                    size: 8,
                    signed: true,
                } => (x as i64).cmp(&(y as i64)),
                Compare::Number {
                    size: 1,
                    signed: false,
                } => (x as u8).cmp(&(y as u8)),
                Compare::Number {
                    size: 2,
                    signed: false,
                } => (x as u16).cmp(&(y as u16)),
                Compare::Number {
                    size: 4,
                    signed: false,
                } => (x as u32).cmp(&(y as u32)),
                Compare::Number {
                    size: 8,
                    signed: false,
                } => x.cmp(&y),
                Compare::Number { .. } | Compare::Equal => Ordering::Equal,
                Compare::Text { words } => {
                    text_of(&a.key[at..at + words]).cmp(&text_of(&b.key[at..at + words]))
                }
                Compare::Bytes { words } => {
                    bytes_of(&a.key[at..at + words]).cmp(&bytes_of(&b.key[at..at + words]))
                }
                Compare::Mask { words } => {
                    let number = |key: &[u64]| {
                        let words = key[at..at + words].iter().rev();
                        words.fold(0, |all, &word| all << 64 | u128::from(word))
                    };
                    number(a.key).cmp(&number(b.key))
                }
            }
        }
    }
}

fn expected(rows: &Rows<'_>, keys: &[SortKey]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..rows.len() as u32).collect();
    order.sort_by(|&a, &b| {
        let a = rows.get(a as usize).expect("a row");
        let b = rows.get(b as usize).expect("a row");
        keys.iter()
            .map(|key| {
                let order = compare(key.column, &a, &b);
                if key.descending {
                    order.reverse()
                } else {
                    order
                }
            })
            .find(|&order| order != Ordering::Equal)
            .unwrap_or_else(|| bytes_of(a.key).cmp(&bytes_of(b.key)))
    });
    order
}

fn word() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0..4u64,
        2 => (0..4u64).prop_map(|v| v.wrapping_neg()),
        // Equal in the lowest bytes, different above; signs at every size.
        2 => (0..4u64, 0..64u32).prop_map(|(v, shift)| v << shift),
        1 => any::<u64>(),
    ]
}

/// Bytes among which NULs, and different ones after a NUL, are frequent.
fn text() -> impl Strategy<Value = [u64; 2]> {
    let byte = prop_oneof![3 => Just(0u8), 4 => Just(b'a'), 2 => Just(b'b'), 1 => any::<u8>()];
    prop::collection::vec(byte, 16).prop_map(|bytes| {
        let mut words = [0; 2];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(bytes.try_into().expect("8 bytes"));
        }
        words
    })
}

fn row() -> impl Strategy<Value = [u64; 5]> {
    (word(), text(), word(), word()).prop_map(|(n, t, a, b)| [n, t[0], t[1], a, b])
}

fn sort_key() -> impl Strategy<Value = SortKey> {
    let compare = prop_oneof![
        (
            prop::sample::select(vec![1u32, 2, 4, 8, 3, 16]),
            any::<bool>()
        )
            .prop_map(|(size, signed)| Compare::Number { size, signed }),
        Just(Compare::Equal),
    ];
    let column = prop_oneof![
        2 => (0..2usize).prop_map(Column::Sum),
        2 => any::<bool>().prop_map(|is_signed| {
            Column::Made(Gauge::new(&Tallies::new(&[Tally::new(is_signed)]), 0, Stat::Avg))
        }),
        3 => compare.prop_map(|compare| Column::Key { at: 0, compare }),
        2 => Just(Column::Key { at: 1, compare: Compare::Text { words: 2 } }),
        1 => Just(Column::Key { at: 1, compare: Compare::Mask { words: 2 } }),
        2 => (0..3usize, 0..3usize).prop_map(|(at, words)| Column::Key {
            at,
            compare: Compare::Bytes { words: words.min(KEY_WORDS - at) },
        }),
    ];
    (column, any::<bool>()).prop_map(|(column, descending)| SortKey { column, descending })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn order_is_that_of_a_plain_sort(
        rows in prop::collection::vec(row(), 0..80),
        keys in prop::collection::vec(sort_key(), 0..3),
    ) {
        // No two rows of a map have the same key.
        let mut seen = HashSet::new();
        let rows: Vec<_> = rows.into_iter().filter(|row| seen.insert(row[..KEY_WORDS].to_vec())).collect();
        let words: Vec<u64> = rows.iter().flatten().copied().collect();
        let rows = Rows::new(&row_shape(), &words, rows.len());

        let mut order = vec![[u64::MAX; 3]; rows.len()];
        sort(&rows, &keys, &mut order);
        prop_assert_eq!(indices(&order), expected(&rows, &keys));
    }
}

#[test]
fn ties_come_in_the_order_of_key_bytes() {
    // In memory the lowest byte of a little-endian number comes first.
    let keys = [0x0100, 0x0001, 0x00ff, 0x0200, 0x0000];
    let words: Vec<u64> = keys.iter().flat_map(|&key| [key, 0, 0, 1, 1]).collect();
    let rows = Rows::new(&row_shape(), &words, keys.len());
    let by_hitcount = SortKey {
        column: Column::Sum(0),
        descending: true,
    };

    let mut order = [[0; 3]; 5];
    sort(&rows, &[by_hitcount], &mut order);
    let mut sorted = keys;
    sorted.sort_by_key(|key: &u64| key.to_ne_bytes());
    assert_eq!(order.map(|place| keys[row_of(&place)]), sorted);
}

#[test]
fn an_order_of_another_length_is_filled_as_far_as_there_are_rows() {
    let words: Vec<u64> = [3, 1, 2]
        .iter()
        .flat_map(|&key| [key, 0, 0, key, 0])
        .collect();
    let rows = Rows::new(&row_shape(), &words, 3);

    let mut order = [[9; 3]; 5];
    sort(&rows, &[SortKey::default()], &mut order);
    assert_eq!(indices(&order[..3]), [1, 2, 0]);

    let mut order = [[9; 3]; 2];
    sort(&rows, &[SortKey::default()], &mut order);
    assert_eq!(indices(&order), [1, 0]);
    sort(&rows, &[SortKey::default()], &mut []);
}

#[test]
fn large_tables_are_in_order() {
    const ROWS: usize = 32_768;

    for (what, hits) in [
        (
            "random",
            (|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as fn(u64) -> u64,
        ),
        ("few values", |i| {
            i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62
        }),
        ("ascending", |i| i),
        ("descending", |i| u64::MAX - i),
        ("all equal", |_| 1),
    ] {
        let words: Vec<u64> = (0..ROWS as u64)
            .flat_map(|i| [i.wrapping_mul(0xd6e8_feb8_6659_fd93), 0, 0, hits(i), i])
            .collect();
        let rows = Rows::new(&row_shape(), &words, ROWS);
        let mut order = vec![SortEntry::default(); ROWS];

        sort(&rows, &[SortKey::default()], &mut order);
        assert!(
            indices(&order) == expected(&rows, &[SortKey::default()]),
            "{what}"
        );
    }
}
