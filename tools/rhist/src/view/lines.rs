// SPDX-License-Identifier: MIT OR Apache-2.0

//! Shows each row of a table as a line as soon as it comes, with its stacks below it.

use std::io::{self, Write};

use super::table::Look;
use crate::backend::lines::TIME;
use crate::model::{Key, Row, Table, UNKNOWN};
use crate::output::{beside, widen};
use crate::units::{self, time_of_day};

/// The first width of a column, which fits most values.
const WIDTH: usize = 8;

/// A table that is shown line by line. The widths of its columns only grow, so that columns stay aligned.
#[derive(Debug, Default)]
pub struct Lines {
    widths: Vec<usize>,
}

impl Lines {
    /// Returns the lines of a table, after the titles if they are the first lines.
    pub fn write(&mut self, table: &Table, look: &Look) -> Vec<u8> {
        let mut out = Vec::new();
        // Writing to memory does not fail.
        let _ = self.all(table, look, &mut out);
        out
    }

    fn all(&mut self, table: &Table, look: &Look, out: &mut Vec<u8>) -> io::Result<()> {
        let hits = table.hitcount();
        let measures: Vec<usize> = (0..table.values.len())
            .filter(|&i| Some(i) != hits)
            .collect();
        let is_stack = |i: usize| {
            let mut rows = table.rows.iter();
            rows.any(|row| matches!(row.keys[i], Key::Stack(_)))
        };
        let keys: Vec<usize> = (0..table.keys.len())
            .filter(|&i| table.keys[i].name != TIME && !is_stack(i))
            .collect();
        let rows = table.rows.iter().map(|row| {
            let measured = measures.iter().map(|&i| match row.values[i] {
                UNKNOWN => "?".to_owned(),
                value => units::shown(value, &table.values[i], look.scale),
            });
            let keys = keys
                .iter()
                .map(|&i| look.key(&table.keys[i].name, &row.keys[i]));
            std::iter::once(time(table, row))
                .chain(measured)
                .chain(keys)
                .collect()
        });
        let rows: Vec<Vec<String>> = rows.collect();
        if self.widths.is_empty() {
            let title = |&i: &usize| match (&table.values[i], measures.len()) {
                (_, 1) if !look.heading.is_empty() => look.heading.to_uppercase(),
                (column, _) => column.title().to_uppercase(),
            };
            let titles = std::iter::once("UTC".to_owned()).chain(measures.iter().map(title));
            let name = |&i: &usize| look.labels.get(i).unwrap_or(&table.keys[i].name);
            let keys = keys.iter().map(|i| name(i).to_uppercase());
            let titles: Vec<String> = titles.chain(keys).collect();
            self.widths = vec![WIDTH; titles.len()];
            for cells in std::iter::once(&titles).chain(&rows) {
                widen(&mut self.widths, cells);
            }
            look.heading(&self.line(&titles, measures.len()), out)?;
        }
        for (row, cells) in table.rows.iter().zip(&rows) {
            widen(&mut self.widths, cells);
            let line = self.line(cells, measures.len());
            writeln!(out, "{}", look.line(&line))?;
            for key in &row.keys {
                let Key::Stack(frames) = key else { continue };
                for frame in frames {
                    let line = format!("      {}", units::text(frame));
                    writeln!(out, "{}", look.line(&line))?;
                }
            }
        }
        Ok(())
    }

    /// Returns a line of these cells; numbers that were measured are aligned to the right.
    fn line(&self, cells: &[String], measures: usize) -> String {
        let line = beside(cells, &self.widths, |i| !(1..=measures).contains(&i));
        line.trim_end().to_owned()
    }
}

/// Returns the time of a hit, to the microsecond.
fn time(table: &Table, row: &Row) -> String {
    let at = table.keys.iter().position(|column| column.name == TIME);
    match at.map(|at| &row.keys[at]) {
        Some(&Key::Number(time)) => {
            let ns = u64::try_from(time).unwrap_or_default();
            format!("{}.{:06}", time_of_day(ns), ns % 1_000_000_000 / 1000)
        }
        _ => String::new(),
    }
}
