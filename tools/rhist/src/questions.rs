// SPDX-License-Identifier: MIT OR Apache-2.0

//! Questions on the command line: recipes and the user's own questions, to be asked, recorded or exported.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::error::{Error, Result};
use crate::model::{Number, Unit};
use crate::options::{arguments, flag, required, valued, with, Options};
use crate::quantile::Percent;
use crate::question::{Only, Probe, Question};
use crate::recipe::{has_probes, Kind, Recipe, Side, Variant, Wishes};
use crate::tracefs::Tracefs;
use crate::units::{self, Round};
use crate::whose::{threads, Seen};

/// The commands that ask questions.
pub fn commands(recipes: &[Recipe]) -> Vec<Command> {
    let event = |name| required(name, "An event, system:event");
    let mut commands: Vec<Command> = recipes.iter().map(recipe_command).collect();
    let own = [
        Command::new("count")
            .about("How often does an event happen?")
            .arg(event("EVENT"))
            .arg(valued("sum", "FIELD,..", "Add these fields up").value_delimiter(',')),
        Command::new("dist")
            .about("How are the numbers of a field distributed?")
            .arg(event("EVENT"))
            .arg(required("FIELD", "A field of the event")),
        Command::new("lat")
            .about("How long does it take from one event to another one?")
            .arg(event("START"))
            .arg(event("END"))
            .arg(
                valued(
                    "on",
                    "KEY[=KEY],..",
                    "The fields in which the two agree, in START and, if it has another name there, in END",
                )
                .required(true)
                .value_delimiter(','),
            )
            .arg(flag("stack", "Add the times up by the stack of START")),
        Command::new("func")
            .about("How long does a function of the kernel take?")
            .arg(required(
                "FUNCTION",
                "A function of the kernel, or several by * and ?: a row for each",
            ))
            .arg(flag(
                "calls",
                "How often it is called, in place of how long it takes",
            )),
        Command::new("run")
            .about("A recipe of a file")
            .arg(
                required("RECIPE", "A file as those in /etc/rhist/recipes.d")
                    .value_parser(clap::value_parser!(PathBuf)),
            )
            .arg(valued("variant", "FLAG", "A variant of the recipe")),
    ];
    commands.extend(own.map(with::<Options>));
    commands
}

fn recipe_command(recipe: &Recipe) -> Command {
    let mut command = Command::new(recipe.name.clone())
        .about(recipe.question.clone())
        .long_about(format!(
            "{}\n\n{}",
            recipe.question,
            recipe.prose.replace('\n', " ")
        ));
    for (flag, help) in recipe.flags() {
        let others = recipe
            .flags()
            .into_iter()
            .map(|(other, _)| other.to_owned());
        command = command.arg(
            Arg::new(flag.to_owned())
                .long(flag.to_owned())
                .action(ArgAction::SetTrue)
                .conflicts_with_all(others.filter(|other| other != flag))
                .help(help.to_owned()),
        );
    }
    for option in &recipe.options {
        command = command.arg(
            Arg::new(option.name.clone())
                .long(option.name.clone())
                .short(option.short)
                .value_name(option.value.clone())
                .value_delimiter(',')
                .help(option.help.clone()),
        );
    }
    let names = recipe.variants.iter().flat_map(|variant| variant.by.keys());
    let names: BTreeSet<&str> = names.map(String::as_str).collect();
    let names = Vec::from_iter(names).join(", ");
    with::<Options>(command).mut_arg("by", |arg| {
        arg.help(format!(
            "Divide by these: {names}, fields of the event, or what the task belongs to: tgid, uid, cgroup, pod"
        ))
    })
}

/// A question as it was typed.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The question itself.
    pub question: Question,
    /// The heading of the measured number's column.
    pub heading: String,
    /// The title of the answer.
    pub title: String,
    /// The words of the question, in a form that can be typed again.
    pub words: Vec<String>,
    /// The options for counting.
    pub options: Options,
    /// The lowest percentile to show; the median if percentiles are not shown here.
    pub lowest: Percent,
}

impl Asked {
    /// Parses a question in one text: its name and options, split as by a shell.
    pub fn parse(text: &str, recipes: &[Recipe], tracefs: &Tracefs) -> Result<Self> {
        let mut all = Command::new("rhist")
            .no_binary_name(true)
            .subcommand_required(true)
            .disable_help_subcommand(true)
            .subcommands(commands(recipes));
        let words = split(text)?;
        let name = words.first().map(String::as_str).unwrap_or_default();
        if all.find_subcommand(name).is_none() {
            return Err(error!(
                "there is no question '{name}'; 'rhist --help' names them, and one with options is one word: 'runq 5'"
            ));
        }
        // On a mistake prints an error with the usage, or the help that was asked for, and ends the program.
        let matches = all
            .try_get_matches_from_mut(words)
            .unwrap_or_else(|error| error.exit());
        Self::new(&all, &matches, recipes, tracefs)
    }

    /// Returns the question given by a subcommand of `command`.
    pub fn new(
        command: &Command,
        matches: &ArgMatches,
        recipes: &[Recipe],
        tracefs: &Tracefs,
    ) -> Result<Self> {
        let missing = || Error::new("there is no question to ask; 'rhist --help' names them");
        let (name, matches) = matches.subcommand().ok_or_else(missing)?;
        let options: Options = arguments(matches)?;
        let percents = matches.try_get_many::<Percent>("pct").ok().flatten();
        let lowest = percents.and_then(|all| all.min().copied());
        let mut wishes = wishes(&options)?;
        let slower = matches.try_get_one::<Duration>("slower").ok().flatten();
        wishes.options.min = options.min.or(slower.copied());
        wishes.lines =
            slower.is_some() || matches.try_get_one("each").ok().flatten() == Some(&true);
        let words = words(command.find_subcommand(name).ok_or_else(missing)?, matches);
        let recipe = recipes.iter().find(|recipe| recipe.name == name);
        let loaded;
        let own;
        let (variant, question) = match (name, recipe) {
            (_, Some(recipe)) => {
                for option in &recipe.options {
                    let Some(values) = matches.get_many::<String>(&option.name) else {
                        continue;
                    };
                    let numbers = values
                        .map(|value| option.kind.number(value))
                        .collect::<Result<Vec<_>>>()?;
                    wishes.values.push((option.clone(), numbers));
                }
                let flags = recipe.flags();
                let flag = flags
                    .iter()
                    .map(|&(flag, _)| flag)
                    .find(|flag| matches.get_flag(flag));
                recipe.ask(flag, tracefs, &wishes)?
            }
            ("run", None) => {
                let path = matches
                    .get_one::<PathBuf>("RECIPE")
                    .cloned()
                    .unwrap_or_default();
                loaded = Recipe::load(&path)?;
                let flag = matches.get_one::<String>("variant").map(String::as_str);
                loaded.ask(flag, tracefs, &wishes)?
            }
            _ => {
                own = own_question(name, matches, tracefs)?;
                match own.missing(tracefs) {
                    Some(what) => return Err(error!("this kernel lacks {what}")),
                    None => (&own, own.question(name, tracefs, &wishes)?),
                }
            }
        };
        Ok(Self {
            question,
            heading: variant.heading.clone(),
            title: recipe.map_or_else(|| words.join(" "), |recipe| recipe.question.clone()),
            words,
            options,
            lowest: lowest.unwrap_or(Percent::MEDIAN),
        })
    }
}

/// Splits a text into words like a shell: at blanks, except in quotation marks.
pub fn split(text: &str) -> Result<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut mark = None;
    for c in text.chars() {
        match (mark, c) {
            (Some(open), c) if c == open => mark = None,
            (None, '\'' | '"') => {
                mark = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    if let Some(mark) = mark {
        return Err(error!(
            "a quotation mark {mark} in the question {text} has no second one; add it"
        ));
    }
    words.extend(word);
    Ok(words)
}

/// Returns the words that were typed for a command, options first and by their long names.
fn words(command: &Command, matches: &ArgMatches) -> Vec<String> {
    let mut words = vec![command.get_name().to_owned()];
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        let typed = matches.value_source(id) == Some(ValueSource::CommandLine);
        if !typed || argument.is_global_set() {
            continue;
        }
        words.extend(argument.get_long().map(|long| format!("--{long}")));
        if argument.get_action().takes_values() {
            let values = matches.get_raw(id).into_iter().flatten();
            let values: Vec<_> = values.map(|value| value.to_string_lossy()).collect();
            words.push(values.join(","));
        }
    }
    words
}

fn own_question(name: &str, matches: &ArgMatches, tracefs: &Tracefs) -> Result<Variant> {
    let one = |name: &str| matches.get_one::<String>(name).cloned().unwrap_or_default();
    let side = |name: &str| -> Result<Side> {
        let event = one(name).replace(['/', '.'], ":");
        match event.matches(':').count() {
            1 => Ok(Side::of(&event)),
            _ => Err(error!(
                "'{event}' is no event; write system:event, for example sched:sched_switch"
            )),
        }
    };
    let mut variant = Variant {
        heading: "hits".into(),
        ..Variant::default()
    };
    match name {
        "count" => {
            variant.event = Some(side("EVENT")?);
            variant.sums = matches
                .get_many("sum")
                .map(|sums| sums.cloned().collect())
                .unwrap_or_default();
        }
        "dist" => {
            variant.measure = Kind::Distribution;
            variant.event = Some(side("EVENT")?);
            variant.field = Some(one("FIELD"));
            variant.heading = one("FIELD");
        }
        "lat" => {
            variant.measure = Kind::Latency;
            variant.heading = "time".into();
            variant.stack = matches.get_flag("stack");
            let (mut start, mut end) = (side("START")?, side("END")?);
            for on in matches.get_many::<String>("on").into_iter().flatten() {
                let (first, second) = on.split_once('=').unwrap_or((on, on));
                start.on.push(first.into());
                end.on.push(second.into());
            }
            variant.start = Some(start);
            variant.end = Some(end);
        }
        _ => {
            let function = one("FUNCTION");
            let several = function.contains(['*', '?']);
            // Older kernels have only probes of a single function.
            let fprobes = several || has_probes(tracefs, "f") || !has_probes(tracefs, "p");
            let probe = |name: &str, kind: &str, definition: String| Probe {
                kind: kind.into(),
                name: name.into(),
                definition,
            };
            let (entry, exit) = match fprobes {
                true => (
                    probe("entry", "f", function.clone()),
                    probe("exit", "f", format!("{function}%return")),
                ),
                false => (
                    probe("entry", "p", function.clone()),
                    probe("exit", "r", function.clone()),
                ),
            };
            variant.probes.push(entry);
            let which;
            if matches.get_flag("calls") {
                which = "__probe_ip";
                variant.event = Some(Side::of("own:entry"));
            } else {
                which = "__probe_func";
                variant.measure = Kind::Latency;
                variant.heading = "time".into();
                variant.probes.push(exit);
                // One of the functions may call another one of them, so the latency must match the function, too.
                let on = |function: &str| {
                    let task = "common_pid".to_owned();
                    let function = several.then(|| function.to_owned());
                    [task].into_iter().chain(function).collect()
                };
                variant.start = Some(Side {
                    on: on("__probe_ip"),
                    ..Side::of("own:entry")
                });
                variant.end = Some(Side {
                    on: on(which),
                    ..Side::of("own:exit")
                });
            }
            let by = ("function".to_owned(), format!("{which}.sym"));
            if several {
                variant.default_by.push(by.0.clone());
            }
            variant.by = [by].into();
        }
    }
    Ok(variant)
}

fn wishes(options: &Options) -> Result<Wishes> {
    let mut of_processes = Vec::new();
    for &pid in &options.pid {
        let threads = threads(Path::new("/"), pid);
        // A process that is just ending has no threads any more.
        if threads.is_empty() {
            return Err(error!("there is no process {pid}"));
        }
        of_processes.extend(threads);
    }
    let only = match &options.cgroup {
        Some(typed) if !Seen::of(Path::new("/")).has_meant(typed) => {
            return Err(error!(
                "no control group, unit, container or pod is called '{typed}'; --by cgroup and --by pod show names"
            ));
        }
        Some(typed) => Some(Only::Cgroup(typed.clone())),
        None => (!options.pid.is_empty()).then(|| Only::Processes(options.pid.clone())),
    };
    if options.comm.as_ref().is_some_and(|comm| comm.contains('"')) {
        return Err(Error::new(
            "a filter of the kernel cannot name a task with a quotation mark; leave -c out",
        ));
    }
    if let (Some(min), Some(max)) = (options.min, options.max) {
        if min > max {
            let [min, max] = [min, max].map(|time| {
                let ns = Number::try_from(time.as_nanos()).unwrap_or(Number::MAX);
                units::value(ns, Some(Unit::Ns), Round::Down)
            });
            return Err(error!(
                "no time is at least {min} and at most {max}; say --min with the smaller one"
            ));
        }
    }
    Ok(Wishes {
        options: options.clone(),
        only,
        of_processes,
        ..Wishes::default()
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::question::Intervals;

    /// Returns the question for this text, from the tool's recipes.
    pub(crate) fn asked(text: &str) -> Asked {
        let tracefs = Tracefs::find(Some(std::path::Path::new("tests/tracefs"))).unwrap();
        Asked::parse(text, &Recipe::all().unwrap(), &tracefs).unwrap()
    }

    #[test]
    fn times_have_units() {
        // A time gets the unit of the field that it limits or divides.
        let intervals = |text: &str| tests::asked(text).question.intervals;
        assert_eq!(intervals("runq --buckets 10us"), Intervals::Width(10_000));
        assert_eq!(intervals("tcp --buckets 10us"), Intervals::Width(10));
        assert_eq!(intervals("tcp --buckets 999ns"), Intervals::Width(1));
        let only = |text: &str| tests::asked(text).question.event().filter.clone().unwrap();
        assert_eq!(only("runq --preempted --min 2500ns"), "delay >= 2500");
        // A whole number of microseconds of at least 2.5 is at least 3.
        assert_eq!(
            only("tcp --min 2500ns --max 9900ns"),
            "srtt >= 3 && srtt <= 9"
        );
    }

    #[test]
    fn texts_are_divided_as_by_a_shell() {
        let words = |text| split(text).unwrap();
        assert_eq!(words(" runq  1 "), ["runq", "1"]);
        assert_eq!(
            words("runq --if 'comm == \"a b\"' -c \"\""),
            ["runq", "--if", "comm == \"a b\"", "-c", ""]
        );
        assert_eq!(words(""), [""; 0]);
        assert!(split("runq -c 'a").is_err());
    }

    #[test]
    fn words_can_be_typed_again() {
        let recipes = Recipe::all().unwrap();
        let typed = |words: &[&str]| {
            let mut all = Command::new("rhist")
                .no_binary_name(true)
                .subcommands(commands(&recipes));
            let matches = all.try_get_matches_from_mut(words).unwrap();
            let (name, matches) = matches.subcommand().unwrap();
            self::words(all.find_subcommand(name).unwrap(), matches)
        };
        let all = [
            "runq",
            "--preempted",
            "1",
            "3",
            "--if",
            "delay > 5",
            "--by",
            "comm,cpu",
        ];
        assert_eq!(typed(&["runq"]), ["runq"]);
        assert_eq!(
            typed(&[
                "runq",
                "1",
                "--by",
                "comm,cpu",
                "3",
                "--if=delay > 5",
                "--preempted"
            ]),
            all
        );
        assert_eq!(typed(&all), all);
        let own = ["lat", "a:b", "c:d", "--on", "x=y,z"];
        assert_eq!(typed(&own), own);
    }
}
