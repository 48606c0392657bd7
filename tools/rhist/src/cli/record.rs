// SPDX-License-Identifier: MIT OR Apache-2.0

//! `record`: asks a question and writes the tables to a file.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use rustix::system::uname;

use super::why::{self, Length};
use crate::ask::count::{self, Counting};
use crate::error::{Error, Result};
use crate::model::Table;
use crate::options::{with, Global, Outcome};
use crate::questions::{self, Asked};
use crate::recipe::Recipe;
use crate::record::{Header, Recorder};
use crate::stop::{Stop, SECOND};
use crate::tracefs::Tracefs;

/// The arguments of `record` besides a question.
#[derive(Debug, Clone, Args)]
pub struct Record {
    /// The file to write; without it rhist-QUESTION.jsonl, which must not be there yet
    #[arg(short, long, value_name = "FILE", global = true)]
    pub output: Option<PathBuf>,
    /// In place of a question ask those of 'rhist why', into rhist-baseline.jsonl unless -o says another one
    #[arg(long)]
    pub baseline: bool,
    /// How long that takes.
    #[command(flatten)]
    pub length: Length,
}

/// Returns the definition of the command in this file.
pub fn command(recipes: &[Recipe]) -> Command {
    with::<Record>(
        Command::new("record").about("Asks a question and keeps the answers of all intervals"),
    )
    .long_about(
        "Asks a question and keeps the answers of all intervals. The question is asked as without recording; without \
         INTERVAL it is one second.",
    )
    .arg_required_else_help(true)
    .disable_help_subcommand(true)
    .subcommand_value_name("QUESTION")
    .subcommand_help_heading("Questions")
    .subcommands(questions::commands(recipes))
}

/// Returns the release of the running kernel.
pub fn release() -> String {
    uname().release().to_string_lossy().into_owned()
}

/// The name of the machine.
pub fn host() -> String {
    uname().nodename().to_string_lossy().into_owned()
}

/// Returns the first line of a recording: the words of the question, and the properties of the recording's first table.
fn header(counting: &Counting<'_>, table: &Table) -> Header {
    let mut header = Header::new(
        counting.asked.words.clone(),
        counting.asked.title.clone(),
        counting.backend.to_string(),
        release(),
    );
    header.host = host();
    header.know(table, &counting.plan.names);
    header
}

/// Adds a table as it came, unless another trigger of the question has lost something. The first table begins the
/// recording.
pub fn add<W: Write>(
    recorder: &mut Recorder<W>,
    counting: &Counting<'_>,
    table: &Table,
) -> io::Result<()> {
    if counting.tables == 1 {
        recorder.begin(&header(counting, table))?;
    }
    match counting.lines() {
        Some(lines) => recorder.lines(lines),
        None => recorder.table(table),
    }
}

impl Record {
    /// Opens the file; the one that nobody has named must not be there.
    fn create(&self, path: &Path) -> Result<File> {
        let opened = match self.output {
            Some(_) => File::create(path),
            None => File::create_new(path),
        };
        opened.map_err(|e| match e.kind() {
            ErrorKind::AlreadyExists => {
                error!("{} is there already; say another one by -o", path.display())
            }
            _ => Error::file("write", path, &e),
        })
    }

    /// Says that it begins.
    fn say(path: &Path, global: &Global) {
        if !global.quiet {
            say!("recording to {}; ^C ends it", path.display());
        }
    }

    /// Asks the questions of 'rhist why', and keeps the answers.
    pub fn baseline(
        &self,
        question: Option<&str>,
        recipes: &[Recipe],
        tracefs: &Tracefs,
        global: &Global,
    ) -> Result<Outcome> {
        if let Some(question) = question {
            return Err(error!(
                "--baseline asks questions of its own; leave it or '{question}' out"
            ));
        }
        let name = PathBuf::from("rhist-baseline.jsonl");
        let path = self.output.as_ref().unwrap_or(&name);
        let mut file = None;
        let (bytes, outcome) = why::ask(&self.length, recipes, tracefs, global, &mut || {
            file = Some(self.create(path)?);
            Self::say(path, global);
            Ok(())
        })?;
        let written = file.map_or(Ok(()), |mut file| file.write_all(&bytes));
        written.map_err(|e| Error::file("write", path, &e))?;
        Ok(outcome)
    }

    /// Runs the command.
    pub fn run(&self, asked: &Asked, tracefs: &Tracefs, global: &Global) -> Result<Outcome> {
        let name = PathBuf::from(format!("rhist-{}.jsonl", asked.question.name));
        let path = self.output.as_ref().unwrap_or(&name);
        let written = |e: io::Error| Error::file("write", path, &e);
        let stop = Stop::on_signals()?;
        count::count(std::slice::from_ref(asked), tracefs, global, &mut |all| {
            let mut recorder = Recorder(BufWriter::new(self.create(path)?));
            Self::say(path, global);
            count::every(all, Some(SECOND), &stop, &mut |counting| {
                let table = counting.table()?;
                add(&mut recorder, counting, &table).map_err(written)
            })
        })
    }
}
