// SPDX-License-Identifier: MIT OR Apache-2.0

//! Flame graphs of tables whose keys are stack traces.

use std::collections::BTreeMap;

use inferno::flamegraph::{self, Options};

use crate::error::{Error, Result};
use crate::model::{Key, Table};
use crate::units;

/// Returns the stacks of a table, outermost function first and other keys before it, each with a value from one column.
///
/// This is the format of `stackcollapse` and `perf`: `a;b;c 12`.
pub fn folded(table: &Table, column: usize) -> Result<Vec<String>> {
    let stack = |row_keys: &[Key]| row_keys.iter().any(|key| matches!(key, Key::Stack(_)));
    if !table.rows.is_empty() && !table.rows.iter().any(|row| stack(&row.keys)) {
        return Err(error!(
            "the table of {} has no key of stack traces, so it has no flame graph; record one with --stacks",
            table.event
        ));
    }
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for row in &table.rows {
        let (mut frames, mut functions): (Vec<String>, Vec<String>) = Default::default();
        for key in &row.keys {
            match key {
                Key::Stack(stack) => {
                    let names = stack.iter().rev().map(|name| units::function(name));
                    functions.extend(names.map(|name| frame(&units::text(name))));
                }
                key => frames.push(frame(&units::key(key, None))),
            }
        }
        frames.extend(functions);
        let value = u64::try_from(row.values[column]).unwrap_or_default();
        if value > 0 && !frames.is_empty() {
            *sums.entry(frames.join(";")).or_default() += value;
        }
    }
    Ok(sums
        .into_iter()
        .map(|(stack, value)| format!("{stack} {value}"))
        .collect())
}

/// Returns a frame without the characters that separate frames and lines.
fn frame(text: &str) -> String {
    text.replace([';', '\n'], ":")
}

/// Returns the index of the column of values for a flame graph: the column with this name, or else the first one that
/// is not the number of hits.
pub fn column(table: &Table, name: Option<&str>) -> Result<usize> {
    let names: Vec<&str> = table
        .values
        .iter()
        .map(|value| value.name.as_str())
        .collect();
    let found = match name {
        Some(name) => names.iter().position(|&value| value == name),
        None => {
            let sum = names.iter().position(|&value| value != "hitcount");
            sum.or(table.hitcount())
        }
    };
    found.ok_or_else(|| {
        error!(
            "the table has no such column; say --value with one of {}",
            names.join(", ")
        )
    })
}

/// Returns the flame graph of a table as SVG, with a script for navigation.
pub fn draw(title: &str, table: &Table, column: usize) -> Result<String> {
    let lines = folded(table, column)?;
    if lines.is_empty() {
        return Err(Error::new(
            "there are no hits with a stack trace to draw; record for longer",
        ));
    }
    let value = &table.values[column];
    let mut options = Options::default();
    options.title = units::plain(title);
    options.subtitle = Some(units::text(&table.trigger));
    options.count_name = match value.unit {
        Some(unit) => unit.name().to_owned(),
        None if value.name == "hitcount" => "hits".to_owned(),
        None => units::text(&value.name),
    };
    options.image_width = Some(1200);
    options.deterministic = true;
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut svg)
        .map_err(|e| error!("cannot draw the flame graph: {e}"))?;
    String::from_utf8(svg).map_err(|e| error!("cannot draw the flame graph: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{KeyColumn, Kind, Row};
    use crate::testing::table as some_table;

    pub(crate) fn stacks() -> Table {
        let mut table = some_table(&[]);
        let column = |name: &str, kind| KeyColumn {
            name: name.into(),
            kind,
            unit: None,
        };
        table.keys = vec![column("comm", Kind::Text), column("stack", Kind::Stack)];
        let row = |comm: &str, stack: &[&str], hits: i128, sum: i128| Row {
            keys: vec![
                Key::Text(comm.into()),
                Key::Stack(stack.iter().map(|&frame| frame.into()).collect()),
            ],
            values: vec![hits, sum],
            exemplar: None,
        };
        table.rows = vec![
            row(
                "bash",
                &[
                    "schedule+0x1/0x2",
                    "do_wait+0x10/0x20",
                    "x64_sys_call+0x1/0x2",
                ],
                3,
                300,
            ),
            row(
                "bash",
                &[
                    "schedule+0x1/0x2",
                    "do_wait+0x18/0x20",
                    "x64_sys_call+0x1/0x2",
                ],
                1,
                100,
            ),
            row(
                "a;b <c>",
                &["schedule+0x1/0x2", "read+0x1/0x2 [ext4]"],
                2,
                50,
            ),
        ];
        table
    }

    #[test]
    fn stacks_fold_by_function() {
        let table = stacks();
        assert_eq!(
            folded(&table, 1).unwrap(),
            [
                "a:b <c>;read;schedule 50",
                "bash;x64_sys_call;do_wait;schedule 400"
            ]
        );
        assert_eq!(column(&table, None).unwrap(), 1);
        assert_eq!(column(&table, Some("hitcount")).unwrap(), 0);
        assert!(column(&table, Some("x"))
            .unwrap_err()
            .to_string()
            .contains("hitcount, lat"));
    }

    #[test]
    fn flame_graphs_have_all_frames() {
        let svg = draw("Where do they sleep", &stacks(), 1).unwrap();
        for text in ["Where do they sleep", "do_wait", "a:b &lt;c&gt;", "450 ns"] {
            assert!(svg.contains(text), "{text}");
        }
        assert_eq!(svg, draw("Where do they sleep", &stacks(), 1).unwrap());
    }

    #[test]
    fn what_has_no_stacks_is_said() {
        let table = some_table(&[(1, 1, 1)]);
        assert!(draw("", &table, 0)
            .unwrap_err()
            .to_string()
            .contains("no key of stack traces"));
        let mut empty = stacks();
        empty.rows.clear();
        assert!(draw("", &empty, 0)
            .unwrap_err()
            .to_string()
            .contains("no hits"));
    }
}
