// SPDX-License-Identifier: MIT OR Apache-2.0

//! The forms in which tables are written: text, JSON and CSV.

use std::io::{self, Write};
use std::time::Duration;

use super::table::{key_text, Look};
use crate::error::Result;
use crate::model::{Key, Table, Unit, ValueColumn};
use crate::parse::json;
use crate::units;

/// How to write tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Form {
    /// For people.
    #[default]
    Text,
    /// Lines as those of hist_json.
    Json,
    /// A line for each row, with a line of titles.
    Csv,
}

/// Returns the line above the table of an interval: its time of day and its length.
pub fn heading(table: &Table, elapsed: Duration, first: bool) -> String {
    let length = table.span.map_or(0.0, |span| span.seconds());
    let hits = units::count(table.account.hits.into());
    let gap = if first { "" } else { "\n" };
    let at = table.span.map_or_else(String::new, |span| {
        format!("{} UTC, ", units::time_of_day(span.real))
    });
    format!(
        "{gap}{at}after {:.1} s: {hits} hits in {length:.3} s\n",
        elapsed.as_secs_f64()
    )
}

/// Returns a table in this form. Only the `first` of several tables has titles.
pub fn table(table: &Table, form: Form, look: &Look, first: bool) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let written = match form {
        Form::Text => look.write(table, &mut out),
        Form::Json => json::write(table, &mut out),
        Form::Csv => csv(table, look, first, &mut out),
    };
    written.map_err(|error| error!("cannot write a table: {error}"))?;
    Ok(out)
}

/// Writes one line for each row. The title names the unit of times.
fn csv(table: &Table, look: &Look, titles: bool, out: &mut impl Write) -> io::Result<()> {
    let interval = table.interval_column();
    let with_unit = |name: &str, unit: Option<Unit>| match unit {
        Some(unit) => format!("{name}_{}", unit.name()),
        None => name.to_owned(),
    };
    if titles {
        let mut line = vec!["from_ns".to_owned(), "to_ns".to_owned()];
        let mut labels = look.labels.iter();
        for (i, column) in table.keys.iter().enumerate() {
            let name = match Some(i) == interval {
                true => &look.heading,
                false => labels.next().unwrap_or(&column.name),
            };
            let ends = ["from", "to"].map(|end| with_unit(&format!("{name}_{end}"), column.unit));
            match column.kind.is_interval() {
                true => line.extend(ends),
                false => line.push(name.clone()),
            }
        }
        let title = |value: &ValueColumn| with_unit(&units::text(&value.title()), value.unit);
        line.extend(table.values.iter().map(title));
        let cells: Vec<String> = line.iter().map(|cell| quoted(cell)).collect();
        writeln!(out, "{}", cells.join(","))?;
    }
    for row in &table.rows {
        let span = table.span.map_or((0, 0), |span| (span.from, span.to));
        let mut line = vec![span.0.to_string(), span.1.to_string()];
        for key in &row.keys {
            match key {
                Key::Bucket { bucket, .. } => {
                    line.extend([bucket.lo.to_string(), bucket.hi.to_string()])
                }
                Key::Stack(frames) => line.push(quoted(&frames.join(";"))),
                other => line.push(quoted(&key_text(other))),
            }
        }
        let values = row.values.iter().zip(&table.values);
        let values = values.map(|(&value, column)| units::plain_value(value, column.agg));
        line.extend(values.map(Option::unwrap_or_default));
        writeln!(out, "{}", line.join(","))?;
    }
    Ok(())
}

fn quoted(cell: &str) -> String {
    match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted() {
        assert_eq!(quoted("a,b \"c\""), "\"a,b \"\"c\"\"\"");
        let rows = crate::testing::table(&[(7, 3, 5)]);
        let look = Look {
            labels: vec!["pid".into()],
            heading: "wait".into(),
            ..Look::default()
        };
        let text = table(&rows, Form::Csv, &look, true).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "from_ns,to_ns,pid,wait_from_ns,wait_to_ns,hitcount,lat_ns\n0,0,7,5,8,5,40\n"
        );
    }

    #[test]
    fn each_interval_has_two_cells() {
        let mut rows = crate::testing::table(&[(7, 3, 5)]);
        rows.keys.insert(0, rows.keys[1].clone());
        rows.keys[0].unit = None;
        let interval = rows.rows[0].keys[1].clone();
        rows.rows[0].keys.insert(0, interval);
        let look = Look {
            labels: vec!["prio".into(), "pid".into()],
            heading: "wait".into(),
            ..Look::default()
        };
        let text = table(&rows, Form::Csv, &look, true).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "from_ns,to_ns,prio_from,prio_to,pid,wait_from_ns,wait_to_ns,hitcount,lat_ns\n\
             0,0,5,8,7,5,8,5,40\n"
        );
    }
}
