// SPDX-License-Identifier: MIT OR Apache-2.0

//! The options that several commands have, and the ways in which commands end.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::Resettable;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use crate::backend::Wanted;
use crate::error::{Error, Result};
use crate::output;
use crate::quantile::Percent;
use crate::question::Intervals;
use crate::tracefs::Tracefs;
use crate::units::Scale;
use crate::view::form::Form;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Everything succeeded.
    Done,
    /// The results are incomplete.
    Incomplete,
}

/// The options of all commands.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Everywhere")]
pub struct Global {
    /// The directory in which tracefs is mounted
    #[arg(long, global = true, value_name = "DIR")]
    pub tracefs: Option<PathBuf>,
    /// Who counts: the module, or C's implementation
    #[arg(long, global = true, value_enum, default_value_t)]
    pub backend: Wanted,
    /// Leave what was made in tracefs until 'rhist clean' removes it
    #[arg(long, global = true)]
    pub keep: bool,
    /// Say nothing but results and errors
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Say each line that is written to tracefs, as it is written
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    pub verbose: bool,
    /// Colours
    #[arg(long, global = true, value_enum, default_value_t)]
    pub color: output::Colour,
}

impl Global {
    /// Returns the tracefs given by `--tracefs`, or else the mounted one.
    pub fn tracefs(&self) -> Result<Tracefs> {
        let tracefs = Tracefs::find(self.tracefs.as_deref())?;
        Ok(tracefs.telling(self.verbose.then_some(output::say)))
    }
}

/// The options for the shown part of a table.
#[derive(Debug, Clone, Args)]
pub struct Rows {
    /// Percentiles to show
    #[arg(
        long,
        value_name = "P,..",
        value_delimiter = ',',
        default_value = "50,99"
    )]
    pub pct: Vec<Percent>,
    /// Beside percentiles the average, the total, the smallest and the largest: exactly with the module, with C the last
    /// two as bounds
    #[arg(long)]
    pub avg: bool,
    /// How many rows to show, 0 for all
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub top: usize,
}

/// How the answer to a question is shown.
#[derive(Debug, Clone, Args)]
pub struct Showing {
    /// The shown part of the table.
    #[command(flatten)]
    pub rows: Rows,
    /// Show all times in this unit
    #[arg(long, value_enum)]
    pub unit: Option<Scale>,
    /// How to write tables; stacks on one line, as bcc's -f, are what 'rhist flame' writes
    #[arg(short, long, value_enum, default_value_t)]
    pub format: Form,
    /// Write to this file
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Show the present interval on the whole screen
    #[arg(long)]
    pub live: bool,
    /// Show a heat map over time: at the end (^C), or with --live on the whole screen
    #[arg(long, conflicts_with = "format")]
    pub heat: bool,
    /// Show each hit as a line, in place of a table
    #[arg(long, conflicts_with_all = ["interval", "live", "heat", "exemplars"])]
    pub each: bool,
    /// Show each hit as a line that took at least so many microseconds, or a time such as 10ms
    #[arg(long, value_name = "TIME", value_parser = microseconds, conflicts_with_all = ["interval", "live", "heat", "min", "exemplars"])]
    pub slower: Option<Duration>,
    /// Print the lines that would be written to tracefs, for both backends
    #[arg(long)]
    pub dry_run: bool,
}

/// The options of all questions, however the answer is shown.
#[derive(Debug, Clone, Default, Args)]
pub struct Options {
    /// Seconds between two tables, or a time such as 500ms; without it there is one, at the end (^C)
    #[arg(value_parser = seconds)]
    pub interval: Option<Duration>,
    /// How many tables
    #[arg(value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub tables: Option<u64>,
    /// Only these processes, with threads that they start later
    #[arg(short, long, value_name = "PID,..", value_delimiter = ',')]
    pub pid: Vec<u64>,
    /// Only these threads
    #[arg(
        short,
        long,
        value_name = "TID,..",
        value_delimiter = ',',
        conflicts_with = "pid"
    )]
    pub tid: Vec<u64>,
    /// Only tasks of this control group and those below it: a path, a unit, or the name of a container or a pod
    #[arg(long, value_name = "GROUP", conflicts_with_all = ["pid", "tid"])]
    pub cgroup: Option<String>,
    /// Only tasks of this name; the parent of bcc's syscount -c has no letter here
    #[arg(short, long, value_name = "NAME")]
    pub comm: Option<String>,
    /// Divide by these fields or names
    #[arg(long, value_name = "FIELD,..", value_delimiter = ',')]
    pub by: Option<Vec<String>>,
    /// Only records that pass this filter of the kernel
    #[arg(long = "if", value_name = "FILTER")]
    pub filter: Option<String>,
    /// Only times of at least so many microseconds, or a time such as 10ms; milliseconds, as bcc's -m, are --unit ms
    #[arg(short, long, value_name = "TIME", value_parser = microseconds)]
    pub min: Option<Duration>,
    /// Only times of at most so many microseconds, or a time such as 1s
    #[arg(short = 'M', long, value_name = "TIME", value_parser = microseconds)]
    pub max: Option<Duration>,
    /// Intervals of this width, in the unit of the field or as a time such as 10us, in place of powers of two
    #[arg(long, value_name = "WIDTH", value_parser = width)]
    pub buckets: Option<Intervals>,
    /// Percentiles at most so many percent above the true values; C's implementation counts for a second first, and
    /// chooses the width of its intervals by that
    #[arg(
        long,
        value_name = "PERCENT",
        value_parser = clap::value_parser!(u64).range(2..=100),
        conflicts_with = "buckets"
    )]
    pub within: Option<u64>,
    /// Rows that the table in the kernel has room for
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u32).range(128..=131_072))]
    pub size: Option<u32>,
    /// Keep the largest hit of each interval, so that it is known which one it was (the module alone)
    #[arg(long)]
    pub exemplars: bool,
    /// Also what this rhist does itself
    #[arg(long = "self")]
    pub itself: bool,
    /// Also the idle task, which 'profile' leaves out
    #[arg(long)]
    pub idle: bool,
    /// Count also events that happen more than a million times a second on a CPU (C's implementation)
    #[arg(long)]
    pub yes: bool,
}

impl Options {
    /// Returns how fine the intervals are to be.
    pub fn intervals(&self) -> Intervals {
        let within = self.within.map(Intervals::Within);
        self.buckets.or(within).unwrap_or_default()
    }
}

/// A time above 0: so many seconds, or a number with its unit.
pub fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let found = time(text, 1.0).filter(|duration| !duration.is_zero());
    found.ok_or_else(|| {
        format!("'{text}' is no number of seconds above 0, and no time such as 500ms")
    })
}

fn width(text: &str) -> std::result::Result<Intervals, String> {
    let wrong = || format!("'{text}' is no number above 0, and no time such as 10us");
    let found = match text.parse() {
        Ok(number) => Some((number, Intervals::Width(number))),
        Err(_) => time(text, f64::NAN).and_then(|time| {
            let ns = u64::try_from(time.as_nanos()).ok()?;
            Some((ns, Intervals::Time(ns)))
        }),
    };
    let found = found.filter(|&(number, _)| number > 0);
    found.map(|(_, intervals)| intervals).ok_or_else(wrong)
}

/// A time: a number of microseconds, or one with its unit.
pub fn microseconds(text: &str) -> std::result::Result<Duration, String> {
    time(text, 1e-6)
        .ok_or_else(|| format!("'{text}' is no number of microseconds, and no time such as 10ms"))
}

/// A number with the unit of a time, or without one if a number alone has so many seconds.
pub fn time(text: &str, usual: f64) -> Option<Duration> {
    let units = [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    let with_unit = |&(name, seconds): &(&str, f64)| Some((text.strip_suffix(name)?, seconds));
    let (number, seconds) = units.iter().find_map(with_unit).unwrap_or((text, usual));
    let number: f64 = number.parse().ok()?;
    Duration::try_from_secs_f64(number * seconds).ok()
}

/// Adds arguments, and keeps the description of the command.
pub fn with<T: Args>(command: Command) -> Command {
    let (about, long) = (
        command.get_about().cloned(),
        command.get_long_about().cloned(),
    );
    T::augment_args(command)
        .about(Resettable::from(about))
        .long_about(Resettable::from(long))
}

/// An argument that must be given.
pub fn required(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).required(true).help(help)
}

/// An option with a value.
pub fn valued(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

/// An option without a value.
pub fn flag(name: &'static str, help: &'static str) -> Arg {
    let option = Arg::new(name).long(name).help(help);
    option.action(ArgAction::SetTrue)
}

/// Returns the parsed arguments of a command.
pub fn arguments<T: FromArgMatches>(matches: &ArgMatches) -> Result<T> {
    T::from_arg_matches(matches).map_err(|error| Error::new(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_seconds() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(seconds("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(seconds("2s"), Ok(Duration::from_secs(2)));
        for wrong in ["0", "0s", "-1", "x", "inf", "NaN", "1e300", "5h", "ms", ""] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_and_widths_have_units() {
        assert_eq!(microseconds("1500"), Ok(Duration::from_micros(1500)));
        assert_eq!(microseconds("1.5ms"), Ok(Duration::from_micros(1500)));
        assert_eq!(microseconds("0"), Ok(Duration::ZERO));
        assert_eq!(width("800"), Ok(Intervals::Width(800)));
        assert_eq!(width("10us"), Ok(Intervals::Time(10_000)));
        for wrong in ["0", "0us", "1.5", "x"] {
            assert!(width(wrong).is_err(), "{wrong}");
        }
    }
}
