// SPDX-License-Identifier: MIT OR Apache-2.0

//! The command line. Recipes add commands of their own to it.

pub mod fleet;
pub mod keep;
pub mod record;
pub mod replay;
pub mod shell;
pub mod why;

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Command;

use crate::ask;
use crate::error::{Error, Result};
use crate::options::{arguments, flag, required, with, Global, Outcome, Showing};
use crate::questions::{self, Asked};
use crate::reading;
use crate::recipe::Recipe;
use crate::tracefs::Tracefs;
use crate::{doctor, examples, explain, look, output, session};

/// Returns the definition of the whole command line.
pub fn command(recipes: &[Recipe]) -> Command {
    let command = Command::new("rhist")
        .version(crate::VERSION)
        .about("Answers questions by the kernel's event histograms")
        .long_about(
            "Answers questions by the kernel's event histograms: it adds hist triggers in an instance of its own, reads \
             their tables, and removes all of it at the end.\n\nExit status: 0; 1 an error; 2 wrong usage; 3 results are \
             not complete, with the reason and the way out; 141 nobody reads the output any more.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true);
    with::<Global>(command)
        .subcommands(
            questions::commands(recipes)
                .into_iter()
                .map(with::<Showing>),
        )
        .subcommand(record::command(recipes))
        .subcommand(replay::command())
        .subcommands(keep::commands())
        .subcommand(why::command())
        .subcommand(fleet::command())
        .subcommand(Command::new("ls").about("Which triggers are there, anybody's?"))
        .subcommand(with::<look::Show>(
            Command::new("show").about("What have the triggers of an event counted?"),
        ))
        .subcommand(with::<look::Top>(
            Command::new("top").about("What do triggers count at present? Live"),
        ))
        .subcommand(Command::new("stats").about("What do triggers cost, and what did they lose?"))
        .subcommand(
            Command::new("doctor").about("What can this kernel answer, and what is missing?"),
        )
        .subcommand(
            Command::new("explain")
                .about("What does a trigger do, and where is it wrong?")
                .arg(required("TRIGGER", "The text of a trigger: 'hist:keys=..'")),
        )
        .subcommand(
            Command::new("clean")
                .about("Removes what a killed rhist has left, and what --keep has")
                .arg(flag("dry-run", "Only say what there is to remove")),
        )
        .subcommand(shell::command())
        .subcommand(
            Command::new("completions")
                .about("Prints the completions for a shell")
                .arg(
                    required("SHELL", "The shell")
                        .value_parser(clap::value_parser!(clap_complete::Shell)),
                ),
        )
        .subcommand(
            Command::new("man")
                .about("Writes a man page for each command")
                .arg(
                    required("DIR", "The directory to write them to")
                        .value_parser(clap::value_parser!(PathBuf)),
                ),
        )
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    match run() {
        Ok(Outcome::Done) if !reading::left_out() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(3),
        // The exit state that a shell reports for a process killed by SIGPIPE.
        Err(error) if error.is_closed() => ExitCode::from(141),
        Err(error) => {
            say!("rhist: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<Outcome> {
    let recipes = recipes(Recipe::all()?);
    let mut command = examples::add(self::command(&recipes), &recipes);
    let matches = command.get_matches_mut();
    let global: Global = arguments(&matches)?;
    let all = &matches;
    let Some((name, matches)) = all.subcommand() else {
        return Ok(Outcome::Done);
    };
    let done = |result: Result<()>| result.map(|()| Outcome::Done);
    match name {
        "completions" => {
            let mut script = Vec::new();
            if let Some(&shell) = matches.get_one::<clap_complete::Shell>("SHELL") {
                clap_complete::generate(shell, &mut command, "rhist", &mut script);
            }
            return done(output::print(&script));
        }
        "man" => {
            let directory = matches
                .get_one::<PathBuf>("DIR")
                .cloned()
                .unwrap_or_default();
            return done(man(self::command(&recipes), &recipes, &directory));
        }
        "explain" => {
            let trigger = matches.get_one::<String>("TRIGGER");
            let text = explain::explain(trigger.map_or("", String::as_str))?;
            return done(output::print(text.as_bytes()));
        }
        "shell" => return done(shell::run(matches)),
        "replay" => return arguments::<replay::Replay>(matches)?.run(&global),
        "export" => return fleet::run(matches, &recipes, &global),
        "why" => return arguments::<why::Why>(matches)?.run(&recipes, &global),
        "diff" => return arguments::<keep::Diff>(matches)?.run(&global),
        "plot" => return arguments::<keep::Plot>(matches)?.run(&global),
        "flame" => return arguments::<keep::Flame>(matches)?.run(&global),
        _ => {}
    }
    let tracefs = global.tracefs();
    if name == "doctor" {
        let text = doctor::doctor(tracefs, &recipes)?;
        return done(output::print(text.as_bytes()));
    }
    let tracefs = tracefs?;
    match name {
        "ls" => done(look::list(&tracefs)),
        "show" => done(look::show(&tracefs, &global, &arguments(matches)?)),
        "top" => done(look::top(&tracefs, &global, &arguments(matches)?)),
        "stats" => done(look::stats(&tracefs)),
        "clean" => done(clean(&tracefs, matches.get_flag("dry-run"))),
        "record" => {
            let record: record::Record = arguments(matches)?;
            if record.baseline {
                let question = matches.subcommand_name();
                return record.baseline(question, &recipes, &tracefs, &global);
            }
            let questions = command.find_subcommand(name).unwrap_or(&command);
            let asked = Asked::new(questions, matches, &recipes, &tracefs)?;
            record.run(&asked, &tracefs, &global)
        }
        _ => {
            let mut asked = Asked::new(&command, all, &recipes, &tracefs)?;
            let showing: Showing = arguments(matches)?;
            // The live screen shows the cost in its title.
            asked.question.costs = showing.live;
            asked.question.smallest = showing.rows.avg;
            match showing.dry_run {
                true => done(ask::dry_run(&asked, &tracefs, &global)),
                false => ask::ask(&asked, &showing, &tracefs, &global),
            }
        }
    }
}

/// Removes recipes that have the name of a command, and says so.
fn recipes(mut all: Vec<Recipe>) -> Vec<Recipe> {
    if all.iter().any(|recipe| !recipe.is_built_in()) {
        let own = command(&[]);
        all.retain(|recipe| {
            let taken = own.find_subcommand(&recipe.name).is_some();
            if taken {
                say!(
                    "rhist: the recipe {0} is left out, as {0} is a command; name its file otherwise",
                    recipe.name
                );
            }
            !taken
        });
    }
    all
}

fn clean(tracefs: &Tracefs, only_say: bool) -> Result<()> {
    let left = session::Leftovers::find(tracefs);
    let mut text = String::new();
    for name in &left.instances {
        text.push_str(&format!("instance {name}\n"));
    }
    for (file, line) in &left.shared {
        text.push_str(&format!("{file}: {line}\n"));
    }
    if !only_say {
        left.remove(tracefs)?;
    }
    let said = match (left.is_empty(), only_say) {
        (true, _) => "nothing is left of a killed rhist\n",
        (false, true) => "",
        (false, false) => "removed\n",
    };
    output::print((text + said).as_bytes())
}

/// Writes the man pages of all commands.
fn man(command: Command, recipes: &[Recipe], directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory)
        .map_err(|error| Error::file("make the directory", directory, &error))?;
    // The questions have man pages of their own.
    let command = command.mut_subcommand("record", |record| {
        record.mut_subcommands(|question| question.hide(true))
    });
    let failed = |error: io::Error| Error::file("write man pages to", directory, &error);
    let names = leaves(&command);
    clap_mangen::generate_to(command, directory).map_err(failed)?;
    for words in names {
        let path = directory.join(format!("rhist-{}.1", words.replace(' ', "-")));
        let mut section = examples::section(&examples::of(&words, recipes));
        let recipe = recipes.iter().find(|recipe| recipe.name == words);
        section.extend(recipe.map(examples::fields));
        section.push_str(".SH SEE ALSO\nrhist(1), /usr/share/doc/rhist/rhist.rst\n");
        let page = OpenOptions::new().append(true).open(path);
        page.and_then(|mut page| page.write_all(section.as_bytes()))
            .map_err(failed)?;
    }
    Ok(())
}

/// Returns the words of each command that has no subcommands.
pub fn leaves(command: &Command) -> Vec<String> {
    let leaves_of = |command: &Command| match command.get_name() {
        "export" => leaves(command)
            .iter()
            .map(|leaf| format!("export {leaf}"))
            .collect(),
        name => vec![name.to_owned()],
    };
    command.get_subcommands().flat_map(leaves_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command(&Recipe::all().unwrap()).debug_assert();
    }

    #[test]
    fn commands_are_no_recipes() {
        let mut all = Recipe::all().unwrap();
        let built_in = all.len();
        for name in ["ls", "count", "mine"] {
            let recipe = Recipe {
                name: name.into(),
                ..all[0].clone()
            };
            all.push(recipe);
        }
        let left = recipes(all);
        assert_eq!(left.len(), built_in + 1);
        assert_eq!(left[built_in].name, "mine");
        command(&left).debug_assert();
    }

    #[test]
    fn an_interval_and_a_count_are_last() {
        let recipes = Recipe::all().unwrap();
        for words in [
            &["runq"][..],
            &["record", "runq"],
            &["count", "a:b"],
            &["dist", "a:b", "c"],
            &["record", "lat", "a:b", "c:d", "--on", "e"],
        ] {
            let words = [&["rhist"], words, &["0.5", "3"]].concat();
            let matches = command(&recipes).try_get_matches_from(words).unwrap();
            let (name, matches) = matches.subcommand().unwrap();
            let matches = match name {
                "record" => matches.subcommand().unwrap().1,
                _ => matches,
            };
            let options: crate::options::Options = arguments(matches).unwrap();
            assert_eq!(
                options.interval,
                Some(std::time::Duration::from_millis(500))
            );
            assert_eq!(options.tables, Some(3));
        }
    }
}
