// SPDX-License-Identifier: MIT OR Apache-2.0

//! The commands that export counts to systems that gather them from many machines.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgMatches, Args, Command};

use super::keep::{outcome, sum_of};
use super::record::{host, release};
use super::replay::{speed, Pace};
use crate::ask::count;
use crate::error::{Error, Result};
use crate::export::otlp::{self, Origin, Sender};
use crate::export::prometheus::{self, Le, Shared};
use crate::export::{event_name, Questions, MOST_SERIES};
use crate::model::{Account, Table};
use crate::options::{arguments, with, Global, Outcome};
use crate::questions::Asked;
use crate::recipe::Recipe;
use crate::record::{Header, Recording};
use crate::stop::{Stop, SECOND};

/// How often counts are sent if the user gives no interval.
const INTERVAL: Duration = Duration::from_secs(10);

/// The arguments of all exporters.
#[derive(Debug, Clone, Args)]
pub struct Common {
    /// Questions as they are asked without exporting, each with its options one word: runq 'syscalls 5 --latency';
    /// INTERVAL is how often it is read
    #[arg(value_name = "QUESTION", required_unless_present = "replay")]
    pub questions: Vec<String>,
    /// Export a recording in place of what is counted now
    #[arg(long, value_name = "FILE", conflicts_with = "questions")]
    pub replay: Option<PathBuf>,
    /// How many times as fast as it was recorded; 0 does not wait at all
    #[arg(long, value_name = "X", default_value = "1", value_parser = speed)]
    pub speed: f64,
    /// The names of the questions in the names of metrics, in their order; without it, what was asked, with a number if
    /// it was asked before
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    pub name: Vec<String>,
    /// How many rows of a table are told apart; what more there are is counted together
    #[arg(long, value_name = "N", default_value_t = MOST_SERIES)]
    pub series: usize,
}

/// `export prometheus`
#[derive(Debug, Clone, Args)]
pub struct Prometheus {
    /// Answer scrapes at this address
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:9435",
        conflicts_with = "textfile"
    )]
    pub listen: SocketAddr,
    /// Write a file for node_exporter at each interval, in place of answering scrapes
    #[arg(long, value_name = "PATH")]
    pub textfile: Option<PathBuf>,
    /// The ends of the buckets of classic histograms; clients that take native histograms get the intervals as they were
    /// counted
    #[arg(long, value_enum, default_value_t)]
    pub le: Le,
    /// For command lines of before, as clients get native histograms anyway
    #[arg(long, hide = true)]
    pub native: bool,
    /// The arguments of all exporters.
    #[command(flatten)]
    pub common: Common,
}

/// `export otlp`
#[derive(Debug, Clone, Args)]
pub struct Otlp {
    /// The collector: http://HOST:PORT
    #[arg(long, value_name = "URL")]
    pub endpoint: String,
    /// Send what was counted in each interval, in place of all until then
    #[arg(long)]
    pub delta: bool,
    /// The arguments of all exporters.
    #[command(flatten)]
    pub common: Common,
}

/// Returns the definition of the commands in this file.
pub fn command() -> Command {
    let about = |name: &'static str, about: &'static str| Command::new(name).about(about);
    about(
        "export",
        "Tells Prometheus or OpenTelemetry what is counted",
    )
    .subcommand_required(true)
    .arg_required_else_help(true)
    .subcommand(with::<Prometheus>(about(
        "prometheus",
        "Classic and native histograms, by scrapes or for node_exporter",
    )))
    .subcommand(with::<Otlp>(about(
        "otlp",
        "Exponential histograms, sent to a collector by HTTP",
    )))
}

/// Runs one of the commands in this file.
pub fn run(matches: &ArgMatches, recipes: &[Recipe], global: &Global) -> Result<Outcome> {
    match matches.subcommand() {
        Some(("prometheus", matches)) => arguments::<Prometheus>(matches)?.run(recipes, global),
        Some(("otlp", matches)) => arguments::<Otlp>(matches)?.run(recipes, global),
        _ => Err(Error::new("say export prometheus or export otlp")),
    }
}

/// A table to export, with its labels.
struct Told<'a> {
    /// The name of the question, for the names of metrics.
    question: &'a str,
    /// The question in words.
    title: &'a str,
    /// The release of the kernel that counted.
    kernel: &'a str,
    table: &'a Table,
}

impl Common {
    /// Calls `tell` with each table when it is due, until there are no more tables or a signal arrives. Returns whether
    /// the tables were complete.
    fn feed(
        &self,
        recipes: &[Recipe],
        global: &Global,
        stop: &Stop,
        interval: Duration,
        tell: &mut dyn FnMut(Told<'_>) -> Result<()>,
    ) -> Result<Outcome> {
        if let Some(path) = &self.replay {
            return self.feed_recording(Recording::open(path)?, stop, tell);
        }
        let tracefs = global.tracefs()?;
        let asked = self.questions.iter();
        let asked: Vec<Asked> = asked
            .map(|question| Asked::parse(question, recipes, &tracefs))
            .collect::<Result<_>>()?;
        let names = self.names(&asked);
        let kernel = release();
        count::count(&asked, &tracefs, global, &mut |all| {
            count::every(all, Some(interval), stop, &mut |counting| {
                let mut table = counting.table()?;
                let mut header = Header::default();
                header.know(&table, &counting.plan.names);
                header.complete(&mut table);
                tell(Told {
                    question: &names[counting.number],
                    title: &counting.asked.title,
                    kernel: &kernel,
                    table: &table,
                })
            })
        })
    }

    /// Returns the names of questions for the names of metrics, all different.
    fn names(&self, asked: &[Asked]) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for (i, asked) in asked.iter().enumerate() {
            let name = self.name.get(i).unwrap_or(&asked.question.name);
            let numbered = (2..).map(|number| format!("{name}_{number}"));
            let mut all = std::iter::once(name.clone()).chain(numbered);
            names.extend(all.find(|name| !names.contains(name)));
        }
        names
    }

    fn feed_recording(
        &self,
        mut recording: Recording,
        stop: &Stop,
        tell: &mut dyn FnMut(Told<'_>) -> Result<()>,
    ) -> Result<Outcome> {
        let header = recording.header.clone();
        let asked = header.as_ref().and_then(|header| header.question.first());
        let mut question = self.name.first().or(asked).cloned();
        let title = header.as_ref().map(|header| header.title.clone());
        let title = title.unwrap_or_default();
        let kernel = header.map(|header| header.kernel).unwrap_or_default();
        let mut pace = Pace::new(self.speed);
        let mut lost: Vec<Account> = Vec::new();
        while let Some(table) = recording.next().transpose()? {
            if !table.consumed {
                continue;
            }
            if pace.due(table.span).is_some_and(|due| stop.wait(Some(due))) {
                break;
            }
            // A question without a name is named after its event.
            let question = question.get_or_insert_with(|| {
                let (_, event) = table.event.split_once(':').unwrap_or_default();
                event_name(event)
            });
            tell(Told {
                question,
                title: &title,
                kernel: &kernel,
                table: &table,
            })?;
            lost.push(table.account);
        }
        Ok(outcome(recording.cut(), sum_of(&lost).iter()))
    }
}

impl Prometheus {
    fn run(self, recipes: &[Recipe], global: &Global) -> Result<Outcome> {
        let stop = Stop::on_signals()?;
        let shared = Shared::new(Questions::new(self.common.series), self.le);
        if self.textfile.is_none() {
            let listener = prometheus::listen(self.listen)?;
            // With port 0 the system chooses the port.
            let address = listener.local_addr().unwrap_or(self.listen);
            prometheus::serve(listener, shared.clone())?;
            if !global.quiet {
                say!("rhist: the metrics are at http://{address}/metrics");
            }
        }
        let write = || match &self.textfile {
            Some(path) => prometheus::write_file(&shared, path),
            None => Ok(()),
        };
        let mut failed = false;
        let outcome = self
            .common
            .feed(recipes, global, &stop, SECOND, &mut |told| {
                shared.with(|exposed| {
                    let metrics = exposed.questions.titled(told.question, told.title);
                    metrics.add(told.table).map(|_| ())
                })?;
                let written = write();
                // A full disk may have room again. One message is enough.
                if let Some(error) = written.as_ref().err().filter(|_| !failed) {
                    say!("rhist: {error}; it is tried again");
                }
                failed = written.is_err();
                Ok(())
            });
        shared.with(|exposed| exposed.up = false);
        // Written after a failure, too: the file then says that nothing is counted any more.
        let written = write();
        let outcome = outcome?;
        written?;
        if self.textfile.is_none() && self.common.replay.is_some() {
            // The recording's counts can be scraped until a signal ends the program.
            stop.wait(None);
        }
        Ok(outcome)
    }
}

impl Otlp {
    fn run(self, recipes: &[Recipe], global: &Global) -> Result<Outcome> {
        let stop = Stop::on_signals()?;
        let mut sender = Sender::new(&self.endpoint, self.delta)?;
        let mut questions = Questions::new(self.common.series);
        let host = match self.common.replay {
            // A recording does not have the name of its machine.
            Some(_) => String::new(),
            None => host(),
        };
        let mut said = None;
        let outcome = self
            .common
            .feed(recipes, global, &stop, INTERVAL, &mut |told| {
                let origin = Origin {
                    host: host.clone(),
                    kernel: told.kernel.to_owned(),
                };
                let metrics = questions.of(told.question);
                let points = match self.delta {
                    true => otlp::metrics(told.question, &metrics.delta(told.table)?, true),
                    false => otlp::metrics(told.question, metrics.add(told.table)?, false),
                };
                let answer = sender.send(told.question, &otlp::request(&origin, points));
                // Only a new message is printed.
                if let Some(text) = answer.as_ref().filter(|_| answer != said) {
                    say!("rhist: {text}");
                }
                said = answer;
                Ok(())
            })?;
        Ok(match sender.finish()? {
            0 => outcome,
            lost => {
                say!("rhist: requests that were not taken: {lost}");
                Outcome::Incomplete
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracefs::Tracefs;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        common: Common,
    }

    #[test]
    fn questions_have_names_of_their_own() {
        let tracefs = Tracefs::find(Some(std::path::Path::new("tests/tracefs"))).unwrap();
        let recipes = Recipe::all().unwrap();
        let names = |words: &[&str]| {
            let line = Line::parse_from(["export"].iter().chain(words));
            let asked: Vec<Asked> = line
                .common
                .questions
                .iter()
                .map(|text| Asked::parse(text, &recipes, &tracefs).unwrap())
                .collect();
            line.common.names(&asked)
        };
        let three = ["runq", "oncpu", "runq --by comm"];
        assert_eq!(names(&three), ["runq", "oncpu", "runq_2"]);
        let named = [&three[..], &["--name", "a,b,c"]].concat();
        assert_eq!(names(&named), ["a", "b", "c"]);
        let some = [&three[..], &["--name", "runq_2"]].concat();
        assert_eq!(names(&some), ["runq_2", "oncpu", "runq"]);
        assert_eq!(
            names(&["runq", "runq", "runq"]),
            ["runq", "runq_2", "runq_3"]
        );
    }
}
