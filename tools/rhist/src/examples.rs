// SPDX-License-Identifier: MIT OR Apache-2.0

//! Examples of command lines, for help and man pages. The files of recipes have their own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use clap::builder::Resettable;
use clap::Command;

use crate::recipe::{Example, Recipe};

/// The examples of commands that are no recipes: a command line, and its purpose.
const OWN: &str = "\
count sched:sched_switch --by next_comm | switches to each task
count kmem:kmalloc --by call_site.sym --sum bytes_alloc | bytes by site
dist kmem:kmalloc bytes_req --if 'bytes_req > 4096' | sizes of large allocations
lat sched:sched_waking sched:sched_switch --on pid=next_pid --by next_comm | from waking to running, as runq
func vfs_read --by comm | how long a function takes, and for whom
func 'vfs_*' --calls | how often each of several is called
run recipes/bio.toml --variant queued | a variant of the recipe in a file
record runq 1 60 | a minute, a table each second, into rhist-runq.jsonl
record -o today.jsonl syscalls --latency | until ^C
record --baseline -o good.jsonl | a minute of a good day, for rhist why
replay rhist-runq.jsonl | the table of a recording
replay rhist-runq.jsonl --heat | as a heat map
diff rhist-runq.jsonl today.jsonl | what has changed from one to the other
why good.jsonl | what has changed since then, in a minute
why good.jsonl today.jsonl | the same of two that were recorded
plot rhist-runq.jsonl -o runq.html | all pictures and the table
plot rhist-runq.jsonl --picture heat -o heat.svg | a heat map
flame rhist-offcpu.jsonl -o sleeps.svg | a flame graph of stacks
export prometheus runq 'syscalls 5 --latency' | two questions for scrapes at 127.0.0.1:9435
export otlp --endpoint http://127.0.0.1:4318 runq | to a collector
ls | all hist triggers, whoever made them
show sched:sched_switch | the tables of an event
top | live
stats | each trigger, its cost and its losses
doctor | each question is tried
explain 'hist:keys=pid.log2' | in words, or where it is wrong
shell trace-cmd stat | what trace-cmd finds, with the triggers of the module
clean --dry-run | what a killed rhist has left
completions bash | for ~/.local/share/bash-completion/completions/rhist
man /usr/local/share/man/man1 | a page for each command";

/// Returns the examples of a command, given by its words.
pub fn of(words: &str, recipes: &[Recipe]) -> Vec<Example> {
    if let Some(recipe) = recipes.iter().find(|recipe| recipe.name == words) {
        return recipe.examples.clone();
    }
    let own = OWN.lines().filter_map(|line| line.split_once(" | "));
    own.filter(|(ask, _)| {
        let rest = ask.strip_prefix(words);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    })
    .map(|(ask, says)| Example {
        ask: ask.into(),
        says: says.into(),
    })
    .collect()
}

/// Adds to each command its examples, which are shown at the end of its long help.
pub fn add(command: Command, recipes: &[Recipe]) -> Command {
    command.mut_subcommands(|command| add_to(command, "", recipes))
}

fn add_to(command: Command, before: &str, recipes: &[Recipe]) -> Command {
    let words = format!("{before}{}", command.get_name());
    let examples = of(&words, recipes);
    let before = format!("{words} ");
    // The subcommands of `record` are the questions, which have their examples already.
    let command = match words.as_str() {
        "export" => command.mut_subcommands(|command| add_to(command, &before, recipes)),
        _ => command,
    };
    let mut text = "Examples:".to_owned();
    for Example { ask, says } in &examples {
        let _ = write!(text, "\n  rhist {ask}\n          {says}");
    }
    let text = (!examples.is_empty()).then_some(text);
    command.after_long_help(text.map_or(Resettable::Reset, |text| Resettable::Value(text.into())))
}

/// Returns the section of a man page with these examples.
pub fn section(examples: &[Example]) -> String {
    let mut text = ".SH EXAMPLES\n".to_owned();
    for Example { ask, says } in examples {
        let _ = write!(
            text,
            ".TP\n\\fBrhist {}\\fR\n{}\n",
            escaped(ask),
            escaped(says)
        );
    }
    text
}

/// Returns a section of a man page: the names that `--by` of a recipe knows, each with its fields of the kernel.
pub fn fields(recipe: &Recipe) -> String {
    let all = recipe.variants.iter().flat_map(|variant| &variant.by);
    let mut names: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, key) in all {
        names.entry(name).or_default().insert(key);
    }
    let mut text = ".SH FIELDS\n".to_owned();
    for (name, keys) in names {
        let keys = Vec::from_iter(keys).join(", ");
        let _ = write!(text, ".TP\n\\fB{}\\fR\n{}\n", escaped(name), escaped(&keys));
    }
    text
}

/// Returns a text with troff's special characters escaped. No example begins a line with a dot or a quotation mark.
fn escaped(text: &str) -> String {
    let text = text
        .replace('\\', "\\e")
        .replace('-', "\\-")
        .replace('\'', "\\(aq");
    match text.starts_with('.') {
        true => format!("\\&{text}"),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn troff_takes_them_as_they_are() {
        let one = |ask: &str, says: &str| Example {
            ask: ask.into(),
            says: says.into(),
        };
        let all = [one("dist a:b --if 'c > 1'", ".x"), one("a\\b", "y")];
        let lines = ".SH EXAMPLES\n.TP\n\\fBrhist dist a:b \\-\\-if \\(aqc > 1\\(aq\\fR\n\\&.x\n\
                     .TP\n\\fBrhist a\\eb\\fR\ny\n";
        assert_eq!(section(&all), lines);
    }
}
