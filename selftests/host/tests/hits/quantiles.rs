// SPDX-License-Identifier: GPL-2.0

//! Folded rows against the sorted list of what was hit.

use crate::lang_common::{Text, AROUND, SWITCH};
use crate::run::{Frames, Tables, World, SWITCHED};
use proptest::prelude::*;
use rust_hist::{
    program::Program,
    render::{
        Fold,
        Renderer,
        Stats, //
    },
    tracing_map::{
        sort::{
            row_of,
            sort,
            SortEntry, //
        },
        Account,
        Rows, //
    },
};
use std::collections::BTreeMap;

/// The numbers of one task after the other; the sum of each hit is 3.
type Tasks = [(&'static str, Vec<i64>)];

/// What is known of a group: its name, hits and sum, and the bounds of its quantiles.
type Group = (String, u64, u64, Vec<(i128, i128)>);

/// Hits a trigger with these numbers, and calls `look` with its folded rows in the order in which they are shown, and
/// the number of rows before.
fn folded<R>(
    text: &str,
    tasks: &Tasks,
    look: impl FnOnce(&Program, &Fold<'_>, &Rows<'_>, &[SortEntry], usize) -> R,
) -> R {
    let mut world = World {
        tables: Tables {
            bits: 17,
            ..Tables::default()
        },
        ..World::default()
    };
    let n = world.add(&SWITCH, SWITCHED, text);

    for (task, numbers) in tasks {
        for number in numbers {
            let mut record = vec![0; 64];

            record[28..32].copy_from_slice(&3i32.to_ne_bytes());
            record[32..40].copy_from_slice(&number.to_ne_bytes());
            record[40..40 + task.len()].copy_from_slice(task.as_bytes());
            world.hit(n, &record, &AROUND);
        }
    }
    let program = &world.triggers[n].program;

    world.with_rows(n, |rows, _| {
        let fold = Fold::of(program).expect("quantiles");
        let mut order = vec![SortEntry::default(); rows.len()];

        fold.sort(rows, &mut order);

        let row_words = fold.row_words(rows);
        let mut words = vec![0xdead_beef; row_words * fold.groups(rows, &order).count()];

        for (group, row) in fold.groups(rows, &order).zip(words.chunks_mut(row_words)) {
            fold.fold(rows, group, row);
        }

        let groups = fold.rows(rows, &words);
        let mut order = vec![SortEntry::default(); groups.len()];

        sort(&groups, program.sort_keys(), &mut order);
        look(program, &fold, &groups, &order, rows.len())
    })
}

fn groups(text: &str, tasks: &Tasks) -> Vec<Group> {
    folded(text, tasks, |_, fold, rows, order, _| {
        order
            .iter()
            .map(|entry| {
                let row = rows.get(row_of(entry)).expect("a row");
                let name: Vec<u8> = row
                    .key
                    .iter()
                    .take(2)
                    .flat_map(|word| word.to_ne_bytes())
                    .filter(|&byte| byte != 0)
                    .collect();
                let quantiles = fold
                    .quantiles(&row)
                    .map(|(_, bounds)| (bounds.lo, bounds.hi));

                (
                    String::from_utf8(name).expect("a name"),
                    row.sums[0],
                    row.sums[1],
                    quantiles.collect(),
                )
            })
            .collect()
    })
}

/// The smallest number with at least so many thousandths of a percent of them at or below it.
fn exact(numbers: &[i64], units: u64) -> i128 {
    let mut sorted = numbers.to_vec();

    sorted.sort_unstable();
    let rank = (sorted.len() as u64 * units).div_ceil(100_000);

    sorted[rank as usize - 1].into()
}

const PERCENTAGES: [(&str, u64); 8] = [
    ("0.1", 100),
    ("1", 1000),
    ("25", 25_000),
    ("50", 50_000),
    ("90", 90_000),
    ("99", 99_000),
    ("99.9", 99_900),
    ("100", 100_000),
];

fn check(key: &str, tasks: &Tasks, largest_error: impl Fn(i128) -> i128) {
    let list = PERCENTAGES.map(|(text, _)| text).join(",");
    let text = format!("keys=next_comm,prev_state.{key}:vals=prev_prio:quantiles({list})");
    let found = groups(&text, tasks);
    let names: BTreeMap<_, _> = tasks
        .iter()
        .map(|(name, numbers)| (*name, numbers))
        .collect();

    assert_eq!(found.len(), names.len());
    for (name, hits, sum, quantiles) in found {
        let numbers = names[name.as_str()];

        assert_eq!(hits, numbers.len() as u64);
        assert_eq!(sum, 3 * hits);
        assert_eq!(quantiles.len(), PERCENTAGES.len());
        for ((percent, units), (lo, hi)) in PERCENTAGES.into_iter().zip(quantiles) {
            let exact = exact(numbers, units);

            assert!(
                lo <= exact && exact <= hi,
                "{key} {name} {percent}: {lo} {exact} {hi}"
            );
            assert!(
                hi - exact <= largest_error(exact),
                "{key} {name} {percent}: {exact} {hi}"
            );
        }
    }
}

fn shapes() -> [(&'static str, Vec<i64>); 7] {
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };

    [
        (
            "uniform",
            (0..2000).map(|_| (next() % 100_000) as i64).collect(),
        ),
        (
            "tail",
            (0..3000)
                .map(|_| (next() >> (next() % 62 + 2)) as i64)
                .collect(),
        ),
        ("constant", vec![1200; 777]),
        (
            "two",
            (0..1000)
                .map(|i| if i % 100 == 0 { 1 << 40 } else { 17 })
                .collect(),
        ),
        ("zeros", vec![0; 1001]),
        ("one", vec![5]),
        (
            "around",
            (0..2500)
                .map(|_| (next() >> 32) as i64 % 5000 - 2500)
                .collect(),
        ),
    ]
}

#[test]
fn quantiles_are_those_of_the_sorted_list() {
    for n in 1..=6 {
        // In units of 0.1 percent, rounded up.
        let error = [0, 415, 190, 91, 45, 22, 11][n];

        check(&format!("log2={n}"), &shapes(), |exact| {
            exact.abs() * error / 1000
        });
    }
}

#[test]
fn quantiles_of_powers_and_widths_are_those_of_the_sorted_list() {
    check("log2", &shapes(), |exact| exact.abs().max(1));
    check("buckets=100", &shapes(), |_| 99);
    check("buckets=1", &shapes(), |_| 0);
}

/// Everything as it is shown.
fn shown(text: &str, tasks: &Tasks, dropped_full: u64) -> String {
    folded(text, tasks, |program, fold, rows, order, entries| {
        let renderer = Renderer {
            program,
            text: text.as_bytes(),
            stats: &Stats::of(program, rows),
            symbols: &Frames,
        };
        let account = Account {
            dropped_full,
            ..Account::default()
        };
        let mut out = Text::default();

        for entry in order {
            let row = rows.get(row_of(entry)).expect("a row");

            renderer.row(&row, &mut out).expect("room");
        }
        assert!(entries >= rows.len());
        fold.totals(&account, rows.len(), false, &mut out)
            .expect("room");
        String::from_utf8(out.0).expect("UTF-8")
    })
}

#[test]
fn rows_without_the_folded_key_with_quantiles() {
    let tasks = [("gawk", vec![1200, 1200, 40_000]), ("sh", vec![0, 1, 2, 3])];

    assert_eq!(
        shown(
            "keys=prev_state.log2=4,next_comm:vals=prev_prio:sort=prev_state.p50.descending:quantiles(50,99.9)",
            &tasks,
            0
        ),
        "\
{ next_comm: gawk                                               } hitcount:          3  prev_prio:          9  prev_state.p50:       1217  prev_state.p99.9:      40693
{ next_comm: sh                                                 } hitcount:          4  prev_prio:         12  prev_state.p50:          1  prev_state.p99.9:          3
    Groups: 2
    Quantiles: shown values are upper bounds, at most 4.5 % above
"
    );
    assert_eq!(
        shown("keys=prev_state.buckets=100:quantiles(50):vals=prev_prio.percent", &tasks, 1),
        "\
{ } hitcount:          7  prev_prio (%): 100.00  prev_state.p50:         99
    Groups: 1
    Quantiles: shown values are upper bounds, at most 99 above; they are those of the hits that were not dropped
"
    );
    assert_eq!(
        shown(
            "keys=prev_state.log2:quantiles(25):nohitcount:vals=prev_prio",
            &tasks,
            0
        ),
        "\
{ }  prev_prio:         21  prev_state.p25:          1
    Groups: 1
    Quantiles: shown values are upper bounds, at most 100 % above
"
    );
}

#[test]
fn negative_quantiles() {
    let tasks = [
        ("a", vec![-1200, -1200, 5]),
        ("b", vec![-7, -7, -7]),
        ("c", vec![9]),
    ];

    assert_eq!(
        shown(
            "keys=next_comm,prev_state.log2=4:sort=prev_state.p50:quantiles(50)",
            &tasks,
            0
        )
        .lines()
        .take(3)
        .map(|line| line.rsplit(':').next().unwrap_or(""))
        .collect::<Vec<_>>(),
        ["      -1167", "         -7", "          9"]
    );
}

/// C takes a negative number for the large one that has its bits, and does not have quantiles.
#[test]
fn quantiles_of_powers_and_widths_have_the_sign_of_their_field() {
    let numbers = vec![-1001, -9, -9, -9, 5, 5, 5, 4000];
    let quantiles = |text: &str| groups(text, &[("a", numbers.clone())])[0].3.clone();

    assert_eq!(
        quantiles("keys=next_comm,prev_state.buckets=1000:vals=prev_prio:quantiles(25,50,99)"),
        [(-1000, -1), (-1000, -1), (4000, 4999)]
    );
    assert_eq!(
        quantiles("keys=next_comm,prev_state.log2:vals=prev_prio:quantiles(25,50,99)"),
        [(-16, -9), (-16, -9), (2049, 4096)]
    );
    assert_eq!(
        shown(
            "keys=prev_state.buckets=1000:quantiles(1,25,99)",
            &[("a", numbers.clone())],
            0
        )
        .lines()
        .next(),
        Some("{ } hitcount:          8  prev_state.p1:      -1001  prev_state.p25:         -1  prev_state.p99:       4999")
    );
}

/// What a handler tracks belongs to a row of the table, which a folded row no longer is.
#[test]
fn tracked_values_are_left_out() {
    let text = "keys=prev_state.log2=1:p=prev_prio:onmax($p).snapshot():quantiles(50)";

    assert!(!shown(text, &[("a", vec![1, 2, 3])], 0).contains("max"));
}

/// The words between are part of the group's key, on either side of the folded one.
#[test]
fn each_group_is_there_once() {
    let tasks = [("a", vec![1, 2, 3, 1000]), ("b", vec![1, 1])];
    let text = "keys=prev_prio,prev_state.log2=2,next_comm:quantiles(100)";

    folded(text, &tasks, |_, _, rows, _, entries| {
        assert_eq!((rows.len(), entries), (2, 5));
        let hits: Vec<_> = rows.iter().map(|row| row.sums[0]).collect();

        assert_eq!(hits, [4, 2]);
    });
}

#[test]
fn no_rows_fold_to_none() {
    assert_eq!(
        shown("keys=prev_state.log2=6:quantiles(50)", &[], 0)
            .lines()
            .next(),
        Some("    Groups: 0")
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_quantile_of_any_numbers(
        numbers in prop::collection::vec((any::<i64>(), 0u32..64).prop_map(|(n, shift)| n >> shift), 1..60),
        units in 1u64..=100_000,
        key in prop_oneof![
            (0u8..=6).prop_map(|n| format!("log2={n}")),
            (any::<u64>(), 0u32..64).prop_map(|(n, shift)| format!("buckets={}", (n >> shift).max(1))),
        ],
    ) {
        let text = format!(
            "keys=next_comm,prev_state.{key}:vals=prev_prio:quantiles({}.{:03})",
            units / 1000,
            units % 1000
        );
        let exact = exact(&numbers, units);
        let found = groups(&text, &[("a", numbers)]);
        let (lo, hi) = found[0].3[0];

        prop_assert!(lo <= exact && exact <= hi, "{} {} {}", lo, exact, hi);
    }
}
