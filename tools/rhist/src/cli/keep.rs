// SPDX-License-Identifier: MIT OR Apache-2.0

//! The commands that draw and compare recordings.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::{Args, Command};

use crate::diff;
use crate::error::Result;
use crate::model::{Account, Key, Row, Table};
use crate::options::{with, Global, Outcome};
use crate::output::{self, Sink};
use crate::plot::svg::Picture;
use crate::plot::{flame, html, svg};
use crate::quantile::Percent;
use crate::record::{incomplete, Loaded, Recording};
use crate::units;
use crate::view::table::shortened;

/// Which part of a recording is meant.
#[derive(Debug, Clone, Args)]
pub struct Chosen {
    /// Which table, if several triggers were recorded: 1 is the first
    #[arg(long, value_name = "N")]
    pub table: Option<usize>,
    /// Only rows with this key: a name, a number, a system call
    #[arg(long, value_name = "KEY")]
    pub only: Option<String>,
}

impl Chosen {
    /// Returns whether a row was chosen by the options.
    pub fn takes(&self, table: &Table, row: &Row) -> bool {
        let Some(wanted) = &self.only else {
            return true;
        };
        row.keys
            .iter()
            .zip(&table.keys)
            .any(|(key, column)| match key {
                Key::Bucket { .. } => false,
                Key::Task { pid, comm } => {
                    pid.to_string() == *wanted || units::text(comm) == *wanted
                }
                Key::Number(number) => number.to_string() == *wanted,
                key => units::key(key, column.unit) == *wanted,
            })
    }

    /// Reads all chosen rows of a recording.
    pub fn load(&self, path: &Path, global: &Global) -> Result<Loaded> {
        let recording = Recording::open(path)?.with_progress(!global.quiet);
        Loaded::of(recording, |table, row| self.takes(table, row))
    }
}

/// `diff`
#[derive(Debug, Clone, Args)]
pub struct Diff {
    /// The recording of before
    pub a: PathBuf,
    /// The recording of afterwards
    pub b: PathBuf,
    /// The part of the recordings to compare.
    #[command(flatten)]
    pub chosen: Chosen,
    /// Percentiles to compare
    #[arg(
        long,
        value_name = "P,..",
        value_delimiter = ',',
        default_value = "50,99"
    )]
    pub pct: Vec<Percent>,
    /// How many rows to compare
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub top: usize,
}

/// `plot`
#[derive(Debug, Clone, Args)]
pub struct Plot {
    /// What 'rhist record' wrote, or - for the standard input
    pub file: PathBuf,
    /// The picture: a name that ends in .svg, or in .html for all of them and the table
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Which picture an SVG is
    #[arg(long, value_enum, default_value = "histogram")]
    pub picture: Picture,
    /// The part of the recording to draw.
    #[command(flatten)]
    pub chosen: Chosen,
    /// What is written above it
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
}

/// `flame`
#[derive(Debug, Clone, Args)]
pub struct Flame {
    /// What 'rhist record' wrote, or - for the standard input
    pub file: PathBuf,
    /// The picture: a name that ends in .svg; any other one gets the folded stacks as text
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// The width of a function: a column of sums, or hitcount
    #[arg(long, value_name = "COLUMN")]
    pub value: Option<String>,
    /// The part of the recording to draw.
    #[command(flatten)]
    pub chosen: Chosen,
    /// What is written above it
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
}

/// Returns the definitions of the commands in this file.
pub fn commands() -> [Command; 3] {
    let about = |name: &'static str, about: &'static str| Command::new(name).about(about);
    [
        with::<Diff>(about(
            "diff",
            "What has changed from one recording to another?",
        )),
        with::<Plot>(about(
            "plot",
            "Draws a recording: histogram, distribution, heat map",
        )),
        with::<Flame>(about(
            "flame",
            "Draws the stacks of a recording as a flame graph",
        )),
    ]
}

/// Says which hits a recording lacks; returns how the command ends.
pub fn outcome<'a>(cut: Option<&str>, accounts: impl Iterator<Item = &'a Account>) -> Outcome {
    let mut lacks: Vec<String> = cut.map(str::to_owned).into_iter().collect();
    lacks.extend(accounts.filter_map(incomplete));
    for text in &lacks {
        say!("rhist: {text}");
    }
    match lacks.is_empty() {
        true => Outcome::Done,
        false => Outcome::Incomplete,
    }
}

/// Says which hits a recording lacks that was read to its end; returns how the command ends.
pub fn outcome_of(loaded: &Loaded) -> Outcome {
    outcome(
        loaded.cut.as_deref(),
        loaded.series.iter().map(|series| &series.sum.table.account),
    )
}

impl Diff {
    /// Runs the command.
    pub fn run(self, global: &Global) -> Result<Outcome> {
        let [a, b] = [
            self.chosen.load(&self.a, global)?,
            self.chosen.load(&self.b, global)?,
        ];
        let wanted = diff::Wanted {
            percents: self.pct.clone(),
            top: self.top,
            blocks: output::blocks(),
        };
        let series = [a.series(self.chosen.table)?, b.series(self.chosen.table)?];
        let text = diff::compare((&a, series[0]), (&b, series[1]), &wanted)?;
        let mut sink = Sink::open(None)?;
        let text = match sink.terminal {
            true => text
                .lines()
                .map(|line| shortened(line, sink.width) + "\n")
                .collect(),
            false => text,
        };
        sink.write(text.as_bytes())?;
        // Both recordings are checked, so that all gaps of both are reported.
        Ok(outcome_of(&a).max(outcome_of(&b)))
    }
}

impl Plot {
    /// Runs the command.
    pub fn run(self, global: &Global) -> Result<Outcome> {
        let is_html = match self.output.extension().and_then(OsStr::to_str) {
            Some("html" | "htm") => true,
            Some("svg") => false,
            _ => {
                return Err(error!(
                    "'{}' does not say what it is to be; end it in .svg or .html",
                    self.output.display()
                ))
            }
        };
        let mut loaded = self.chosen.load(&self.file, global)?;
        loaded.title = self.title.unwrap_or(loaded.title);
        let series = loaded.series(self.chosen.table)?;
        let text = match is_html {
            true => html::draw(&loaded, series)?,
            false => svg::draw(self.picture, &loaded.title, series)?,
        };
        Sink::open(Some(&self.output))?.write(text.as_bytes())?;
        Ok(outcome_of(&loaded))
    }
}

impl Flame {
    /// Runs the command.
    pub fn run(self, global: &Global) -> Result<Outcome> {
        let mut loaded = self.chosen.load(&self.file, global)?;
        loaded.title = self.title.unwrap_or(loaded.title);
        let table = &loaded.series(self.chosen.table)?.sum.table;
        let column = flame::column(table, self.value.as_deref())?;
        let text = match self.output.extension().and_then(OsStr::to_str) {
            Some("svg") => flame::draw(&loaded.title, table, column)?,
            _ => flame::folded(table, column)?
                .iter()
                .map(|line| format!("{line}\n"))
                .collect(),
        };
        Sink::open(Some(&self.output))?.write(text.as_bytes())?;
        Ok(outcome_of(&loaded))
    }
}

/// Adds up accounts, so that each kind of loss is said once.
pub fn sum_of(accounts: &[Account]) -> Option<Account> {
    accounts.iter().copied().reduce(|mut sum, account| {
        sum.add(&account);
        sum
    })
}
