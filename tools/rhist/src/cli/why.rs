// SPDX-License-Identifier: MIT OR Apache-2.0

//! `why`: the changes since a good day, in sentences.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Command};

use super::record::add;
use crate::ask::{count, share};
use crate::backend::{cpus, Backend};
use crate::error::{Error, Result};
use crate::options::{seconds, with, Global, Outcome};
use crate::output;
use crate::questions::{split, Asked};
use crate::recipe::Recipe;
use crate::record::Recorder;
use crate::stop::Stop;
use crate::tracefs::Tracefs;
use crate::why::{compare, Recorded, PARTS, QUESTIONS};

/// The largest size of a recording in bytes: more than a day has that keeps each second.
const LARGEST: u64 = 256 << 20;

/// How long the questions of a baseline are asked.
#[derive(Debug, Clone, Args)]
pub struct Length {
    /// How long the questions of 'rhist why' are asked: seconds, or a time with its unit
    #[arg(long = "for", value_name = "TIME", default_value = "60", value_parser = seconds)]
    pub length: Duration,
    /// Ask all questions of 'rhist why', also those that would take more than 2 % of all CPUs
    #[arg(long = "costly")]
    pub costly: bool,
}

/// `why`
#[derive(Debug, Clone, Args)]
pub struct Why {
    /// The recording of a good day, by 'rhist record --baseline'
    pub baseline: PathBuf,
    /// The recording to compare with it, made likewise; without it the questions are asked now
    pub now: Option<PathBuf>,
    /// How long the questions are asked.
    #[command(flatten)]
    pub length: Length,
    /// How many sentences
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub top: usize,
}

/// Returns the definition of the command `why`.
pub fn command() -> Command {
    with::<Why>(Command::new("why").about("What has changed since a good day?")).long_about(format!(
        "What has changed since a good day? Asks several questions for a minute, side by side, and compares the answers \
         with those that 'rhist record --baseline' has kept. What has become slower or faster for sure is said in \
         sentences, first what costs most: the hits times the least that each has become longer. The questions are: {}. \
         Together they take at most 2 % of all CPUs; one that would take more than is left is left out, and named.",
        QUESTIONS.join("; ")
    ))
}

/// Asks the questions, and returns their recordings one after the other. Calls `begun` when counting has started for
/// all of them.
pub fn ask(
    length: &Length,
    recipes: &[Recipe],
    tracefs: &Tracefs,
    global: &Global,
    begun: &mut dyn FnMut() -> Result<()>,
) -> Result<(Vec<u8>, Outcome)> {
    let backend = Backend::choose(tracefs, global.backend)?;
    let stop = Stop::on_signals()?;
    let (mut all, mut said) = (Vec::new(), Vec::new());
    for question in QUESTIONS {
        match Asked::parse(question, recipes, tracefs) {
            Ok(mut asked) => {
                asked.words = split(question)?;
                asked.options.tables = Some(PARTS.into());
                asked.options.interval = Some(length.length / PARTS);
                all.push(asked);
            }
            Err(error) => said.push(format!("{question} is left out: {error}")),
        }
    }
    let most = if length.costly { u64::MAX } else { share::MOST };
    let (all, more) = share::affordable(all, most, backend, tracefs)?;
    for sentence in said.iter().chain(&more).filter(|_| !global.quiet) {
        say!("rhist: {sentence}");
    }
    if all.is_empty() {
        return Err(Error::new(
            "none of the questions can be asked; 'rhist doctor' says what is missing",
        ));
    }
    let written = |e: io::Error| error!("cannot write a table: {e}");
    let mut recorders: Vec<_> = all.iter().map(|_| Recorder(Vec::new())).collect();
    let mut costs: Vec<Option<u64>> = vec![None; all.len()];
    // No message says that tables are smaller than usual: on a small machine that is expected of so many questions.
    let silent = Global {
        quiet: true,
        ..global.clone()
    };
    let outcome = count::count(&all, tracefs, &silent, &mut |counted| {
        begun()?;
        count::every(counted, None, &stop, &mut |counting| {
            let table = counting.table()?;
            costs[counting.number] = table.cost;
            add(&mut recorders[counting.number], counting, &table).map_err(written)
        })
    })?;
    if let (Some(costs), false) = (costs.into_iter().sum::<Option<u64>>(), global.quiet) {
        let took = share::percent(costs / cpus());
        say!("rhist: the triggers took {took} of all CPUs");
    }
    let all = recorders.into_iter().flat_map(|recorder| recorder.0);
    Ok((all.collect(), outcome))
}

/// Reads a recording of several questions.
fn read(path: &Path) -> Result<Recorded> {
    let failed = |e: io::Error| Error::file("read", path, &e);
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(LARGEST).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 == LARGEST {
        return Err(error!(
            "{} is larger than 256 MiB; record with a longer interval",
            path.display()
        ));
    }
    Recorded::of(&path.display().to_string(), &bytes)
}

impl Why {
    /// Runs the command.
    pub fn run(&self, recipes: &[Recipe], global: &Global) -> Result<Outcome> {
        let before = read(&self.baseline)?;
        let (now, mut outcome) = match &self.now {
            Some(path) => (read(path)?, Outcome::Done),
            None => {
                let tracefs = global.tracefs()?;
                let (bytes, outcome) = ask(&self.length, recipes, &tracefs, global, &mut || {
                    if !global.quiet {
                        let seconds = self.length.length.as_secs_f64();
                        say!("counting for {seconds} s; ^C ends it");
                    }
                    Ok(())
                })?;
                (Recorded::of("just counted", &bytes)?, outcome)
            }
        };
        output::print(compare(&before, &now, self.top).as_bytes())?;
        for lacking in before.lacks.iter().chain(&now.lacks) {
            say!("rhist: {lacking}");
            outcome = Outcome::Incomplete;
        }
        Ok(outcome)
    }
}
