// SPDX-License-Identifier: MIT OR Apache-2.0

//! Where results go, and in which form.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::model::{Key, Table, Unit};
use crate::parse::json;
use crate::units::{self, Round};
use crate::view::table::{key_text, Look};

/// How long somebody waits without being told how far it is.
const PATIENCE: Duration = Duration::from_secs(1);

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Colour {
    /// Whether to use them on an output that is a terminal or not.
    pub fn wanted(self, terminal: bool) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => {
                terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            }
        }
    }
}

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

/// A file or the standard output.
pub struct Sink {
    out: Box<dyn Write>,
    name: String,
    /// Whether it is a terminal.
    pub terminal: bool,
    /// How many columns the terminal has.
    pub width: usize,
}

impl Sink {
    /// Opens the file, or takes the standard output.
    pub fn open(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else {
            let stdout = io::stdout();
            return Ok(Self {
                terminal: stdout.is_terminal(),
                width: columns(&stdout),
                out: Box::new(stdout),
                name: "the output".into(),
            });
        };
        let file = File::create(path).map_err(|error| Error::file("write", path, &error))?;
        Ok(Self {
            out: Box::new(file),
            name: path.display().to_string(),
            terminal: false,
            width: 80,
        })
    }

    /// Writes all of it.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.out.write_all(bytes).and_then(|()| self.out.flush());
        written.map_err(|error| Error::file("write", Path::new(&self.name), &error))
    }
}

/// How many columns a terminal has; 80 if it does not say.
fn columns(terminal: impl AsFd) -> usize {
    let size = rustix::termios::tcgetwinsize(terminal);
    let columns = size.map_or(0, |size| usize::from(size.ws_col));
    if columns == 0 {
        80
    } else {
        columns.max(20)
    }
}

/// Prints to the standard output.
pub fn print(bytes: &[u8]) -> Result<()> {
    Sink::open(None)?.write(bytes)
}

/// What waits to be said until the screen is free.
static HELD: Mutex<Option<String>> = Mutex::new(None);

/// Says something beside the results, if somebody listens. What would command a terminal is left out.
pub fn say(text: &str) {
    let text = printable(text) + "\n";
    match HELD.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        Some(held) => held.push_str(&text),
        None => drop(io::stderr().write_all(text.as_bytes())),
    }
}

/// As long as it is there, something else has the whole screen; what is to be said is said afterwards.
pub struct WholeScreen(());

impl WholeScreen {
    /// Takes it.
    pub fn take() -> Self {
        *HELD.lock().unwrap_or_else(PoisonError::into_inner) = Some(String::new());
        Self(())
    }
}

impl Drop for WholeScreen {
    fn drop(&mut self) {
        let held = HELD.lock().unwrap_or_else(PoisonError::into_inner).take();
        let _ = io::stderr().write_all(held.unwrap_or_default().as_bytes());
    }
}

/// How much of a file was read, where that takes longer than a second: a line on the terminal that is there until it is
/// dropped.
pub struct Progress {
    name: String,
    whole: Option<u64>,
    due: Instant,
    shown: usize,
}

impl Progress {
    /// That of a file with this printable name and this length, if somebody can see it.
    pub fn new(name: &str, whole: Option<u64>) -> Option<Self> {
        io::stderr().is_terminal().then(|| Self {
            name: name.to_owned(),
            whole,
            due: Instant::now() + PATIENCE,
            shown: 0,
        })
    }

    /// So many bytes were read.
    pub fn at(&mut self, done: u64) {
        if Instant::now() < self.due {
            return;
        }
        self.due = Instant::now() + PATIENCE / 5;
        self.write(&self.line(done, columns(io::stderr())));
    }

    /// What is said, so short that it is one line.
    fn line(&self, done: u64, width: usize) -> String {
        let much = match self.whole {
            Some(whole) => units::percent(done.min(whole), whole.max(1)),
            None => units::value(done.into(), Some(Unit::Bytes), Round::Down),
        };
        let line = format!("read {much} of {}", self.name);
        line.chars().take(width.saturating_sub(1)).collect()
    }

    /// Writes a line over the last one.
    fn write(&mut self, line: &str) {
        let _ = write!(io::stderr(), "\r{line:<0$}\r", self.shown);
        self.shown = line.chars().count();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown > 0 {
            self.write("");
        }
    }
}

/// Lines without control characters.
fn printable(text: &str) -> String {
    text.replace(|c: char| c.is_control() && c != '\n', "")
}

/// A table in this form. The first one of several has what is needed once.
pub fn table(table: &Table, form: Form, look: &Look, first: bool) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let written = match form {
        Form::Text => look.write(table, &mut out),
        Form::Json => json::write(table, &mut out),
        Form::Csv => csv(table, look, first, &mut out),
    };
    written.map_err(|error| Error::new(format!("cannot write a table: {error}")))?;
    Ok(out)
}

/// A line for each row. Times are in the unit that the title has.
fn csv(table: &Table, look: &Look, titles: bool, out: &mut impl Write) -> io::Result<()> {
    let interval = table.interval_column();
    let with_unit = |name: &str, unit: Option<crate::model::Unit>| match unit {
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
            match column.kind.is_interval() {
                true => line.extend(
                    ["from", "to"].map(|end| with_unit(&format!("{name}_{end}"), column.unit)),
                ),
                false => line.push(name.clone()),
            }
        }
        line.extend(
            table
                .values
                .iter()
                .map(|value| with_unit(&units::text(&value.title()), value.unit)),
        );
        writeln!(
            out,
            "{}",
            line.iter()
                .map(|cell| quoted(cell))
                .collect::<Vec<_>>()
                .join(",")
        )?;
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
        line.extend(
            values
                .map(|(&value, column)| units::plain_value(value, column.agg).unwrap_or_default()),
        );
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
        let rows = crate::model::tests::table(&[(7, 3, 5)]);
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
        let mut rows = crate::model::tests::table(&[(7, 3, 5)]);
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

    #[test]
    fn what_is_said_commands_no_terminal() {
        assert_eq!(printable("a\u{1b}]0;x\u{7}b\n\u{9b}c"), "a]0;xb\nc");
    }

    #[test]
    fn what_is_said_waits_for_the_screen() {
        let held = || HELD.lock().unwrap().clone();
        let screen = WholeScreen::take();
        say("a\u{7}b");
        assert_eq!(held().as_deref(), Some("ab\n"));
        drop(screen);
        assert_eq!(held(), None);
    }

    #[test]
    fn progress_is_one_line() {
        let progress = |whole| Progress {
            name: "ab.jsonl".into(),
            whole,
            due: Instant::now(),
            shown: 0,
        };
        assert_eq!(progress(Some(800)).line(200, 80), "read 25.0 % of ab.jsonl");
        assert_eq!(
            progress(None).line(2_500_000, 80),
            "read 2.38MiB of ab.jsonl"
        );
        assert_eq!(progress(Some(0)).line(7, 10), "read 0.0 ");
    }

    #[test]
    fn colours_are_for_terminals() {
        assert!(Colour::Always.wanted(false));
        assert!(!Colour::Never.wanted(true));
        assert!(!Colour::Auto.wanted(false));
    }
}
