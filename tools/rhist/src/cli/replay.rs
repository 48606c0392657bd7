// SPDX-License-Identifier: MIT OR Apache-2.0

//! `replay`: shows a recording like a question that is being counted.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, Command};

use super::keep::{outcome, outcome_of, sum_of, Chosen};
use crate::error::{Error, Result};
use crate::model::{Account, Span, Table};
use crate::options::{with, Global, Outcome, Rows};
use crate::output::Sink;
use crate::record::Recording;
use crate::stop::{Stop, NEVER};
use crate::view::form::{self, Form};
use crate::view::heat::{self, Paper};
use crate::view::table::Look;
use crate::view::top::{self, Feed};

/// `replay`
#[derive(Debug, Clone, Args)]
pub struct Replay {
    /// What 'rhist record' wrote, or - for the standard input
    pub file: PathBuf,
    /// How many times as fast as it was; 0 does not wait at all
    #[arg(long, value_name = "X", default_value = "0", default_value_if("live", "true", "1"), value_parser = speed)]
    pub speed: f64,
    /// Show the present table on the whole screen, at the speed at which it was recorded
    #[arg(long, conflicts_with = "format")]
    pub live: bool,
    /// Show a heat map over time; with --live on the whole screen
    #[arg(long)]
    pub heat: bool,
    /// The part of the recording to show.
    #[command(flatten)]
    pub chosen: Chosen,
    /// The shown part of the table.
    #[command(flatten)]
    pub rows: Rows,
    /// How to write tables
    #[arg(short, long, value_enum, default_value_t, conflicts_with = "heat")]
    pub format: Form,
}

/// Returns the definition of the command in this file.
pub fn command() -> Command {
    with::<Replay>(Command::new("replay").about("What did a recording say?"))
}

/// Parses a speed, relative to the original one: a number that is not negative.
pub fn speed(text: &str) -> std::result::Result<f64, String> {
    let speed = text
        .parse()
        .ok()
        .filter(|speed: &f64| speed.is_finite() && *speed >= 0.0);
    speed.ok_or_else(|| format!("'{text}' is no speed: 2 is twice as fast, 0 does not wait at all"))
}

/// Waits so that epochs appear at the times at which they were recorded.
pub struct Pace {
    speed: f64,
    begin: Option<(Instant, Span)>,
}

impl Pace {
    /// Returns a pace of `speed` times the original one; 0 never waits.
    pub fn new(speed: f64) -> Self {
        Self { speed, begin: None }
    }

    /// Returns when an epoch is due; `None` if it is due at once.
    pub fn due(&mut self, span: Option<Span>) -> Option<Instant> {
        let span = span.filter(|_| self.speed > 0.0)?;
        let (begin, first) = *self.begin.get_or_insert_with(|| (Instant::now(), span));
        let seconds = span.to.saturating_sub(first.to) as f64 / 1e9 / self.speed;
        // A time too far away to be expressed is never reached.
        begin
            .checked_add(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
            .or(Some(begin + NEVER))
    }

    /// Waits until an epoch is due.
    pub fn wait(&mut self, span: Option<Span>) {
        if let Some(due) = self.due(span) {
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
    }
}

impl Replay {
    /// Runs the command.
    pub fn run(self, global: &Global) -> Result<Outcome> {
        match (self.live, self.heat) {
            (true, _) => self.live(global),
            (false, true) => self.heat(global),
            (false, false) => self.tables(global),
        }
    }

    /// Keeps only the chosen rows of a table.
    fn choose(&self, table: &mut Table) {
        let mut rows = std::mem::take(&mut table.rows);
        rows.retain(|row| self.chosen.takes(table, row));
        table.rows = rows;
    }

    /// Prints the tables, one after the other.
    fn tables(&self, global: &Global) -> Result<Outcome> {
        let mut sink = Sink::open(None)?;
        // Tables on a terminal show the progress themselves.
        let progress = !global.quiet && !sink.terminal;
        let mut recording = Recording::open(&self.file)?.with_progress(progress);
        let mut pace = Pace::new(self.speed);
        let mut lost: Vec<Account> = Vec::new();
        let mut first = true;
        let mut begin = None;
        for table in &mut recording {
            let mut table = table?;
            if !table.consumed {
                continue;
            }
            self.choose(&mut table);
            pace.wait(table.span);
            let look = Look {
                colour: global.color.wanted(sink.terminal),
                width: sink.width,
                cut: sink.terminal,
                ..self.look(&table)
            };
            let mut bytes = Vec::new();
            if self.format == Form::Text {
                let span = table.span.map_or((0, 0), |span| (span.from, span.to));
                let begin = *begin.get_or_insert(span.0);
                let elapsed = Duration::from_nanos(span.1.saturating_sub(begin));
                bytes = form::heading(&table, elapsed, first).into_bytes();
            }
            bytes.extend(form::table(&table, self.format, &look, first)?);
            lost.push(table.account);
            first = false;
            sink.write(&bytes)?;
        }
        Ok(outcome(recording.cut(), sum_of(&lost).iter()))
    }

    fn heat(&self, global: &Global) -> Result<Outcome> {
        let mut sink = Sink::open(None)?;
        let paper = Paper::of_output(global.color.wanted(sink.terminal));
        let loaded = self.chosen.load(&self.file, global)?;
        let series = loaded.series(self.chosen.table)?;
        let text = heat::draw(&loaded.title, &series.sum.table, &series.epochs, paper);
        sink.write(text.as_bytes())?;
        Ok(outcome_of(&loaded))
    }

    fn live(&self, global: &Global) -> Result<Outcome> {
        let recording = Recording::open(&self.file)?;
        let title = recording.title().to_owned();
        let mut played = Played {
            replay: self,
            recording,
            pace: Pace::new(self.speed),
            next: None,
            of: None,
            lost: Vec::new(),
        };
        played.fill();
        let look = match &played.next {
            Some((_, Ok(table))) => self.look(table),
            _ => Look::default(),
        };
        let look = Look {
            colour: global.color.wanted(true),
            ..look
        };
        top::run(&title, &look, self.heat, &Stop::on_signals()?, &mut played)?;
        Ok(outcome(played.recording.cut(), sum_of(&played.lost).iter()))
    }

    fn look(&self, table: &Table) -> Look {
        Look {
            percents: self.rows.pct.clone(),
            avg: self.rows.avg,
            top: self.rows.top,
            ..Look::of(table)
        }
    }
}

/// The tables of one trigger of a recording, in their original form.
struct Played<'a> {
    replay: &'a Replay,
    recording: Recording,
    pace: Pace,
    /// The next table, and when it is due.
    next: Option<(Instant, Result<Table>)>,
    /// The event and the trigger of the first table.
    of: Option<(String, String)>,
    lost: Vec<Account>,
}

impl Played<'_> {
    /// Reads the next table ahead.
    fn fill(&mut self) {
        while self.next.is_none() {
            let Some(read) = self.recording.next() else {
                return;
            };
            let mut due = Instant::now();
            let read = match read {
                Ok(mut table) => {
                    let trigger = (table.event.clone(), table.trigger.clone());
                    let unfit = self.replay.heat && table.interval_column().is_none();
                    if !table.consumed || unfit || self.of.as_ref().is_some_and(|of| *of != trigger)
                    {
                        continue;
                    }
                    self.of = Some(trigger);
                    self.replay.choose(&mut table);
                    due = self.pace.due(table.span).unwrap_or(due);
                    Ok(table)
                }
                Err(error) => Err(error),
            };
            self.next = Some((due, read));
        }
    }
}

impl Feed for Played<'_> {
    fn due(&mut self) -> Option<Instant> {
        self.fill();
        self.next.as_ref().map(|(due, _)| *due)
    }

    fn next(&mut self) -> Result<Table> {
        self.fill();
        let missing = || Err(Error::new("the recording has ended"));
        let table = self.next.take().map_or_else(missing, |(_, table)| table)?;
        self.lost.push(table.account);
        Ok(table)
    }

    fn stays(&self) -> bool {
        true
    }
}
