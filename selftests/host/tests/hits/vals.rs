// SPDX-License-Identifier: GPL-2.0

//! what rows show of the numbers of their hits, and more keys and values than C has room for, on the paths
//! of the module.

use super::exec_plan::{
    alike,
    fields,
    keys,
    number,
    numbers,
    words, //
};
use crate::{
    lang_common::*,
    run::*,
    stat_model::{
        hundredths,
        model, //
    }, //
};
use proptest::prelude::*;
use rust_hist::{
    program::Modifier,
    render::Json,
    stat::Stat,
    tracing_map::{
        sort::Column,
        Row, //
    }, //
};
use std::collections::BTreeMap;

/// A value: a field or a variable of the trigger, and perhaps what is shown of it.
fn val() -> impl Strategy<Value = String> {
    let shown = prop::sample::select(
        [&[""][..], &[".sum", ".min", ".max", ".avg", ".stddev"][..]].concat(),
    );
    let what = prop_oneof![3 => fields().prop_map(str::to_owned), 1 => Just("$own".to_owned())];

    (what, shown).prop_map(|(what, shown)| format!("{what}{shown}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..Default::default() })]

    /// Each row has the keys of its hits, and shows what is to be shown of all of their numbers.
    #[test]
    fn rows_show_what_their_hits_had(
        keys in prop::collection::vec(prop_oneof![2 => numbers(), 1 => keys()], 1..=8),
        vals in prop::collection::vec(val(), 1..=8),
        records in alike(),
        times in 1usize..30,
        cpus in prop::sample::select(vec![CPUS, 8192]),
    ) {
        let text = format!("keys={}:vals={}:own=s32*3", keys.join(","), vals.join(","));
        let mut world = World::default();

        world.tables.cpus = cpus;
        // Keys may be too long.
        prop_assume!(world.try_add(&ZOO, ALL, text.as_bytes()).is_ok());

        let program = world.triggers[0].program.clone();
        let mut wanted = BTreeMap::<Vec<u64>, Vec<Vec<(u64, u64)>>>::new();

        for i in 0..times {
            let record = &records[i % records.len()];
            let around = Around { cpu: (i % CPUS as usize) as u32, ..AROUND };
            let key: Vec<u64> = program
                .keys
                .iter()
                .flat_map(|key| words(&program, &key.field, key.words(), record, &around))
                .collect();
            let row = wanted.entry(key).or_insert(vec![Vec::new(); vals.len()]);

            for (numbers, field) in row.iter_mut().zip(program.vals.iter()) {
                numbers.push((number(&program, field, record, &around), 1));
            }
            prop_assert_eq!(world.hit(0, record, &around), HIT);
        }

        let found = world.sums(0);
        prop_assert_eq!(found.iter().map(|row| &row.0).collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
        for ((_, sums), row) in found.iter().zip(wanted.values()) {
            prop_assert_eq!(sums[0], row[0].len() as u64);
            for ((column, field), numbers) in program.columns.iter().zip(program.vals.iter()).zip(row) {
                let stat = match field.modifier {
                    Modifier::Stat(stat) => stat,
                    _ => Stat::Sum,
                };
                match column {
                    Column::Sum(at) => prop_assert_eq!(
                        sums[*at],
                        numbers.iter().fold(0u64, |sum, (n, _)| sum.wrapping_add(*n)),
                        "{}", &text
                    ),
                    Column::Made(gauge) => prop_assert_eq!(
                        gauge.number(sums).map(hundredths),
                        Some(model(numbers, field.signed, stat)),
                        "{} {:?}", &text, numbers
                    ),
                    Column::Key { .. } => prop_assert!(false),
                }
            }
        }
    }
}

/// A record of the zoo with these numbers.
fn record(s32: i32, u8: u8) -> Vec<u8> {
    let mut record = vec![0; 256];

    record[20..24].copy_from_slice(&s32.to_ne_bytes());
    record[8] = u8;
    record
}

fn hit_by(world: &World, numbers: &[(i32, u8)]) {
    for (i, (s32, u8)) in numbers.iter().enumerate() {
        let around = Around {
            cpu: i as u32 % CPUS,
            ..AROUND
        };
        assert_eq!(world.hit(0, &record(*s32, *u8), &around), HIT);
    }
}

#[test]
fn x_22_text_and_json_of_a_row() {
    let mut world = World::default();
    let n = world.add(
        &ZOO,
        ALL,
        "keys=u8:vals=s32,s32.min,s32.max,s32.avg,s32.stddev,u8.max,s32.sum,s32.hex",
    );

    hit_by(&world, &[(-5, 1), (2, 1), (-1, 1), (7, 2)]);
    assert_eq!(
        world.rows(n),
        [
            "{ u8:          1 } hitcount:          3  s32: 18446744073709551612  s32.min:         -5  \
             s32.max:          2  s32.avg:      -1.33  s32.stddev:       2.86  u8.max:          1  \
             s32.sum: 18446744073709551612  s32: fffffffffffffffc\n",
            "{ u8:          2 } hitcount:          1  s32:          7  s32.min:          7  \
             s32.max:          7  s32.avg:       7.00  s32.stddev:       0.00  u8.max:          2  \
             s32.sum:          7  s32:          7\n",
        ]
    );

    let Trigger { program, text, .. } = &world.triggers[n];
    let json = Json {
        program,
        text,
        symbols: &Frames,
    };
    let line = |row: &Row<'_>| {
        let mut out = Text::default();

        json.row(row, &mut out).expect("printed");
        String::from_utf8_lossy(&out.0).into_owned()
    };

    assert_eq!(
        world.with_rows(n, |_, rows| rows.iter().map(line).collect::<Vec<_>>()),
        [
            "{\"k\":[1],\"v\":[3,-4,-5,2,-1.33,2.86,1,-4,-4]}\n",
            "{\"k\":[2],\"v\":[1,7,7,7,7.00,0.00,2,7,7]}\n",
        ]
    );
}
