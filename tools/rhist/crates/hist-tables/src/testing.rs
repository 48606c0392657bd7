// SPDX-License-Identifier: MIT OR Apache-2.0

//! A table for tests of this crate and of the tool.

use std::collections::BTreeMap;

use crate::model::{
    Account, Bucket, Exemplar, Key, KeyColumn, Kind, Number, Row, Table, Unit, ValueColumn,
};

/// Gives the first rows of a table exemplars with these numbers, of tasks of these names.
pub(crate) fn exemplify(table: &mut Table, all: &[(Number, &str)]) {
    for (row, &(value, comm)) in table.rows.iter_mut().zip(all) {
        let name = ("next_comm".to_owned(), Key::Text(comm.into()));
        let cpu = ("common_cpu".to_owned(), Key::Number(1));
        row.exemplar = Some(Box::new(Exemplar {
            value,
            fields: [name, cpu].into(),
        }));
    }
}

/// Returns a table with the keys number and interval, and these rows.
pub(crate) fn table(rows: &[(i128, u32, u64)]) -> Table {
    let mut summed: BTreeMap<(i128, u32), u64> = BTreeMap::new();
    for &(key, power, hits) in rows {
        *summed.entry((key, power)).or_default() += hits;
    }
    Table {
        event: "sched:sched_switch".into(),
        trigger: "hist:keys=pid,lat.log2:vals=hitcount,lat:sort=hitcount:size=2048".into(),
        active: true,
        consumed: true,
        span: None,
        keys: vec![
            KeyColumn {
                name: "pid".into(),
                kind: Kind::Number,
                unit: None,
            },
            KeyColumn {
                name: "lat".into(),
                kind: Kind::Log2 { scale: 0 },
                unit: Some(Unit::Ns),
            },
        ],
        values: vec![
            ValueColumn::of_sums("hitcount".into()),
            ValueColumn {
                unit: Some(Unit::Ns),
                ..ValueColumn::of_sums("lat".into())
            },
        ],
        account: Account {
            hits: summed.values().sum(),
            ..Account::default()
        },
        cost: None,
        rows: summed
            .into_iter()
            .map(|((key, power), hits)| Row {
                keys: vec![
                    Key::Number(key),
                    Key::Bucket {
                        bucket: Bucket {
                            lo: (1 << power) / 2 + 1,
                            hi: 1 << power,
                        },
                        index: Some(i64::from(power)),
                    },
                ],
                values: vec![hits.into(), Number::from(hits) << power],
                exemplar: None,
            })
            .collect(),
    }
}
