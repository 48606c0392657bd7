// SPDX-License-Identifier: MIT OR Apache-2.0

//! What this kernel can answer, and what is missing, with the way out.

use std::fmt::Write as _;
use std::fs::OpenOptions;

use crate::backend::{Backend, EXPIRES, GROWS, OVERHEAD};
use crate::error::{Error, Result};
use crate::recipe::{Recipe, Wishes};
use crate::session::Leftovers;
use crate::tracefs::Tracefs;

/// Words of triggers that only the module has and the tool uses: how the README of tracefs says each, and what for.
const WORDS: [(&str, &str, &str); 6] = [
    ("join()", "[:join(", "a latency takes two triggers"),
    (".log2=N", ".log2=N", "percentiles as fine as one wants"),
    (".max", ".sum .min .max", "exact maxima beside percentiles"),
    ("size=A..B", GROWS, "tables of --by grow"),
    ("expire()", EXPIRES, "requests that never end take no rows"),
    ("overhead", OVERHEAD, "--live says what it costs"),
];

/// Looks at all that the tool needs.
pub fn doctor(tracefs: Result<Tracefs>, recipes: &[Recipe]) -> Result<String> {
    let mut text = String::new();
    let tracefs = match tracefs {
        Ok(tracefs) => tracefs,
        Err(error) => return Err(Error::new(format!("nothing can be asked: {error}"))),
    };
    let mut line = |good: bool, what: &str, more: &str| {
        let _ = writeln!(
            text,
            "{} {what:<22} {more}",
            if good { "yes" } else { "no " }
        );
    };
    line(true, "tracefs", &tracefs.root().display().to_string());
    let trigger = tracefs.event_file("sched:sched_switch", "trigger");
    match OpenOptions::new().append(true).open(&trigger) {
        Ok(_) => line(true, "permission", "triggers can be written"),
        Err(_) => line(
            false,
            "permission",
            "triggers cannot be written by this user; run as root, or mount tracefs with -o gid=GROUP,mode=770",
        ),
    }
    let readme = tracefs.read_text("README").unwrap_or_default();
    let all = Backend::all(&tracefs);
    let module = all
        .iter()
        .find(|backend| matches!(backend, Backend::Module { .. }));
    match module {
        Some(backend) => line(
            true,
            "module",
            &format!("triggers are called {}", backend.command()),
        ),
        None => line(
            false,
            "module",
            "no percentiles finer than a factor of two; modprobe rust_hist",
        ),
    }
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
    match (all.contains(&Backend::C), module) {
        (true, _) => line(
            true,
            "hist triggers of C",
            "latencies take three triggers and an event",
        ),
        (false, Some(_)) => line(false, "hist triggers of C", "the module is in their place"),
        (false, None) => line(
            false,
            "hist triggers of C",
            "build the kernel with CONFIG_HIST_TRIGGERS",
        ),
    }
    line(
        tracefs.path("instances").is_dir(),
        "instances",
        if tracefs.path("instances").is_dir() {
            "the tool has one of its own"
        } else {
            "this kernel is too old"
        },
    );
    for (kind, what) in [("f", "probes of functions"), ("t", "probes of tracepoints")] {
        let has = readme.contains(&format!("{kind}[:"));
        line(
            has,
            what,
            if has {
                ""
            } else {
                "build the kernel with CONFIG_FPROBE_EVENTS"
            },
        );
    }
    let left = Leftovers::find_unkept(&tracefs);
    match left.is_empty() {
        true => line(true, "clean", "nothing is left of a killed rhist"),
        false => line(
            false,
            "clean",
            "a killed rhist has left something; 'rhist clean' removes it",
        ),
    }
    let mut kept = Leftovers::find(&tracefs).instances;
    kept.retain(|name| !left.instances.contains(name));
    if !kept.is_empty() {
        let names = kept.join(", ");
        line(
            true,
            "kept",
            &format!("--keep has left {names}; 'rhist clean' removes it"),
        );
    }
    text.push('\n');
    for recipe in recipes {
        let flags = recipe.flags();
        for flag in std::iter::once(None).chain(flags.iter().map(|&(flag, _)| Some(flag))) {
            let name = match flag {
                None => recipe.name.clone(),
                Some(flag) => format!("{} --{flag}", recipe.name),
            };
            let asked = recipe.ask(flag, &tracefs, &Wishes::default());
            let (good, more) = match asked {
                Ok(_) => ("yes", String::new()),
                Err(error) => ("no ", error.to_string()),
            };
            let _ = writeln!(text, "{}", format!("{good} {name:<22} {more}").trim_end());
        }
    }
    Ok(text)
}
