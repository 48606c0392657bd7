// SPDX-License-Identifier: MIT OR Apache-2.0

//! `record`: asks a question and writes the tables to a file.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind};
use std::path::PathBuf;

use clap::{Args, Command};

use crate::ask::count;
use crate::error::{Error, Result};
use crate::options::{with, Global, Outcome};
use crate::output;
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
    .subcommand_required(true)
    .arg_required_else_help(true)
    .disable_help_subcommand(true)
    .subcommand_value_name("QUESTION")
    .subcommand_help_heading("Questions")
    .subcommands(questions::commands(recipes))
}

/// Returns the release of the running kernel.
pub fn release() -> String {
    rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned()
}

impl Record {
    /// Runs the command.
    pub fn run(&self, asked: &Asked, tracefs: &Tracefs, global: &Global) -> Result<Outcome> {
        let name = PathBuf::from(format!("rhist-{}.jsonl", asked.question.name));
        let path = self.output.as_ref().unwrap_or(&name);
        let written = |e: io::Error| Error::file("write", path, &e);
        let stop = Stop::on_signals()?;
        count::count(std::slice::from_ref(asked), tracefs, global, &mut |all| {
            let opened = match self.output {
                Some(_) => File::create(path),
                None => File::create_new(path),
            };
            let file = opened.map_err(|e| match e.kind() {
                ErrorKind::AlreadyExists => Error::new(format!(
                    "{} is there already; say another one by -o",
                    path.display()
                )),
                _ => written(e),
            })?;
            let mut file = Some(BufWriter::new(file));
            if !global.quiet {
                output::say(&format!("recording to {}; ^C ends it", path.display()));
            }
            let mut recorder: Option<Recorder<BufWriter<File>>> = None;
            count::every(all, Some(SECOND), &stop, &mut |counting| {
                let table = counting.table()?;
                if let Some(file) = file.take() {
                    let mut header = Header::new(
                        asked.words.clone(),
                        asked.title.clone(),
                        counting.backend.to_string(),
                        release(),
                    );
                    header.know(&table, &counting.plan.names);
                    recorder = Some(Recorder::begin(file, &header).map_err(written)?);
                }
                // Lines are written as they were read, unless another trigger of the question has lost hits.
                match (&mut recorder, counting.lines()) {
                    (Some(recorder), Some(lines)) => recorder.lines(lines),
                    (Some(recorder), None) => recorder.table(&table),
                    (None, _) => Ok(()),
                }
                .map_err(written)
            })
        })
    }
}
