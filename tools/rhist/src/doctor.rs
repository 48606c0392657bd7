// SPDX-License-Identifier: MIT OR Apache-2.0

//! Says which questions this kernel can answer, and the reasons why not for others, with remedies.

use std::fmt::Write as _;
use std::fs::OpenOptions;

use crate::ask::count::lacks_comm;
use crate::backend::{Backend, Plan, Step, EXPIRES, GROWS, OVERHEAD};
use crate::error::{Error, Result};
use crate::question::Question;
use crate::recipe::{has_probes, Recipe, Wishes};
use crate::session::{owner, switched_off, Leftovers, Session};
use crate::tracefs::Tracefs;

/// Words of triggers that only the module has: the word, how the README of tracefs names it, and the tool's use for it.
const WORDS: [(&str, &str, &str); 6] = [
    ("join()", "[:join(", "a latency takes two triggers"),
    (".log2=N", ".log2=N", "percentiles as fine as one wants"),
    (".max", ".sum .min .max", "exact maxima beside percentiles"),
    ("size=A..B", GROWS, "tables of --by grow"),
    ("expire()", EXPIRES, "requests that never end take no rows"),
    ("overhead", OVERHEAD, "--live says what it costs"),
];

/// Returns a report on everything that the tool needs.
pub fn doctor(tracefs: Result<Tracefs>, recipes: &[Recipe]) -> Result<String> {
    let mut text = String::new();
    let tracefs = tracefs.map_err(|error| error!("nothing can be asked: {error}"))?;
    let mut line = |good: bool, what: &str, more: &str| {
        let good = if good { "yes" } else { "no " };
        let _ = writeln!(text, "{good} {what:<22} {more}");
    };
    line(true, "tracefs", &tracefs.root().display().to_string());
    let trigger = tracefs.event_file("sched:sched_switch", "trigger");
    let has = OpenOptions::new().append(true).open(&trigger).is_ok();
    let more = match has {
        true => "triggers can be written",
        false => "triggers cannot be written by this user; run as root, or mount tracefs with -o gid=GROUP,mode=770",
    };
    line(has, "permission", more);
    let readme = tracefs.read_text("README").unwrap_or_default();
    let all = Backend::all(&tracefs);
    let module = all.iter().find(|&&backend| backend != Backend::C);
    let more = module.map_or_else(
        || "no percentiles finer than a factor of two; modprobe rust_hist".to_owned(),
        |backend| format!("triggers are called {}", backend.command()),
    );
    line(module.is_some(), "module", &more);
    // Beside C's implementation the README is C's.
    if module == Some(&Backend::Module { beside: false }) {
        for (word, said, what) in WORDS {
            let has = readme.contains(said);
            let more = if has {
                what
            } else {
                "the module is an older one"
            };
            line(has, &format!("module: {word}"), more);
        }
    }
    let has = all.contains(&Backend::C);
    let more = match (has, module) {
        (true, _) => "latencies take three triggers and an event",
        (false, Some(_)) => "the module is in their place",
        (false, None) => "build the kernel with CONFIG_HIST_TRIGGERS",
    };
    line(has, "hist triggers of C", more);
    let has = tracefs.path("instances").is_dir();
    let more = match has {
        true => "the tool has one of its own",
        false => "this kernel is too old",
    };
    line(has, "instances", more);
    for (kind, what) in [("f", "probes of functions"), ("t", "probes of tracepoints")] {
        let has = has_probes(&tracefs, kind);
        let older = kind == "f" && !has && has_probes(&tracefs, "p");
        let more = match (has, older) {
            (true, _) => "",
            (false, true) => "of one function, and of none by a pattern",
            (false, false) => "Linux 6.5 has them, with CONFIG_FPROBE_EVENTS",
        };
        line(has || older, what, more);
    }
    let left = Leftovers::find_unkept(&tracefs);
    let more = match left.is_empty() {
        true => "nothing is left of a killed rhist",
        false => "a killed rhist has left something; 'rhist clean' removes it",
    };
    line(left.is_empty(), "clean", more);
    let mut kept = Leftovers::find(&tracefs).instances;
    kept.retain(|name| !left.instances.contains(name));
    if !kept.is_empty() {
        let names = kept.join(", ");
        let more = format!("--keep has left {names}; 'rhist clean' removes it");
        line(true, "kept", &more);
    }
    let mut trial = match all.first() {
        Some(&backend) => Session::begin(&tracefs, &Plan::default(), 0, false)
            .map(|session| Trial { backend, session }),
        None => Err(Error::new("this kernel has no hist triggers")),
    };
    let _ = match &trial {
        Ok(_) => writeln!(text, "\nquestions, each tried:"),
        Err(error) => {
            writeln!(
                text,
                "\nquestions, by files alone, as none can be tried: {error}"
            )
        }
    };
    for recipe in recipes {
        let flags = recipe.flags();
        for flag in std::iter::once(None).chain(flags.iter().map(|&(flag, _)| Some(flag))) {
            let name = match flag {
                None => recipe.name.clone(),
                Some(flag) => format!("{} --{flag}", recipe.name),
            };
            let asked = recipe.ask(flag, &tracefs, &Wishes::default());
            let tried = asked.and_then(|(_, question)| match &mut trial {
                Ok(trial) => trial.ask(&tracefs, question),
                Err(_) => Ok(()),
            });
            let (good, more) = match tried {
                Ok(()) => ("yes", String::new()),
                Err(error) => ("no ", in_a_line(&error.to_string())),
            };
            let _ = writeln!(text, "{}", format!("{good} {name:<22} {more}").trim_end());
        }
    }
    if let Ok(trial) = trial {
        trial.session.end()?;
    }
    Ok(text)
}

/// Questions that are tried for a moment, in an instance for this purpose.
struct Trial {
    backend: Backend,
    session: Session,
}

impl Trial {
    /// Makes everything that a question needs, with the smallest tables, and removes it again.
    fn ask(&mut self, tracefs: &Tracefs, mut question: Question) -> Result<()> {
        while question.halve() {}
        question.lacks_comm = lacks_comm(&mut self.session, self.backend, &question);
        let mut plan = self.backend.plan(tracefs, &question, &owner(0))?;
        if plan.steps.contains(&Step::Schedstats) {
            // A trial must not switch settings that other processes see.
            plan.steps.retain(|step| *step != Step::Schedstats);
            switched_off()?;
        }
        self.session.try_out(&plan.steps, |_| Ok(()))
    }
}

/// Returns an error on one line: the action that failed, and the kernel's reason.
fn in_a_line(error: &str) -> String {
    let mut lines = error.lines();
    let first = lines.next().unwrap_or_default();
    match lines.find_map(|line| line.split_once("error: ")) {
        Some((_, reason)) => format!("{first}: {reason}"),
        None => first.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_is_one_line() {
        let error = "the kernel refused a line for a/trigger: Invalid argument\n  hist:keys=x\n\
                     [ 1.0] hist:a:b: error: Couldn't find field\n  Command: hist:keys=x\n           ^";
        assert_eq!(
            in_a_line(error),
            "the kernel refused a line for a/trigger: Invalid argument: Couldn't find field"
        );
        assert_eq!(in_a_line("one line"), "one line");
    }
}
