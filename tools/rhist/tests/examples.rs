// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tests the command lines of help, man pages and documents, run by a shell.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rhist::cli;
use rhist::examples;
use rhist::questions::{split, Asked};
use rhist::recipe::Recipe;
use rhist::tracefs::Tracefs;

/// The commands that ask questions, run with --dry-run.
const QUESTIONS: [&str; 5] = ["count", "dist", "lat", "func", "run"];

/// Commands that only read: recordings, or tracefs.
const READERS: [&str; 4] = ["replay", "diff", "plot", "flame"];
const LOOKERS: [&str; 4] = ["ls", "stats", "doctor", "clean"];

/// Runs a command line in this directory, and fails with its output if it is wrong.
fn type_in(line: &str, directory: &Path) {
    let bin = Path::new(env!("CARGO_BIN_EXE_rhist")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell
        .args(["-c", line])
        .env("PATH", path)
        .current_dir(directory);
    let output = shell.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{line}: {said}");
}

/// Parses the command line and the questions in it without running it, as it would count, or write to the system.
fn take_apart(line: &str) {
    let recipes = Recipe::all().unwrap();
    let words = split(line).unwrap();
    let taken = cli::command(&recipes).try_get_matches_from(&words);
    taken.unwrap_or_else(|error| panic!("{line}: {error}"));
    if words[1] == "export" {
        let tracefs = Tracefs::find(Some(Path::new("tests/tracefs"))).unwrap();
        let mut asked = words[3..].iter().peekable();
        while let Some(word) = asked.next() {
            match word.starts_with("--") {
                true => drop(asked.next()),
                false => drop(Asked::parse(word, &recipes, &tracefs).unwrap()),
            }
        }
    }
}

#[test]
fn each_command_has_examples_that_can_be_typed() {
    let recipes = Recipe::all().unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let recordings = std::env::temp_dir().join(format!("rhist-examples-{}", std::process::id()));
    fs::create_dir_all(&recordings).unwrap();
    for (from, to) in [
        ("runq", "rhist-runq"),
        ("runq", "today"),
        ("offcpu", "rhist-offcpu"),
    ] {
        let data = here.join(format!("tests/data/{from}.jsonl"));
        fs::copy(data, recordings.join(format!("{to}.jsonl"))).unwrap();
    }
    for words in cli::leaves(&cli::command(&recipes)) {
        let all = examples::of(&words, &recipes);
        assert!(!all.is_empty(), "{words}");
        let question = recipes.iter().any(|recipe| recipe.name == words);
        for example in all {
            let line = format!("rhist {}", example.ask);
            assert!(line.starts_with(&format!("rhist {words}")), "{line}");
            let name = words.as_str();
            if question || QUESTIONS.contains(&name) {
                type_in(&format!("{line} --tracefs tests/tracefs --dry-run"), here);
            } else if READERS.contains(&name) {
                type_in(&line, &recordings);
            } else if LOOKERS.contains(&name) {
                type_in(&format!("{line} --tracefs tests/tracefs"), here);
            } else {
                take_apart(&line);
            }
        }
    }
    fs::remove_dir_all(recordings).unwrap();
}

#[test]
fn help_and_man_pages_end_with_examples() {
    let line = "rhist bio --disks 10";
    let rhist = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_rhist"))
            .args(words)
            .output()
            .unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let help = rhist(&["bio", "--help"]);
    assert!(
        help.contains(&format!("Examples:\n  {line}\n          by disk")),
        "{help}"
    );
    assert!(!rhist(&["bio", "-h"]).contains(line));
    let pages = std::env::temp_dir().join(format!("rhist-pages-{}", std::process::id()));
    rhist(&["man", pages.to_str().unwrap()]);
    let page = |name: &str| fs::read_to_string(pages.join(name)).unwrap();
    let (_, section) = page("rhist-bio.1")
        .split_once(".SH EXAMPLES\n")
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    assert!(
        section.starts_with(".TP\n\\fBrhist bio \\-\\-disks 10\\fR\nby disk"),
        "{section}"
    );
    for part in [
        ".SH FIELDS\n.TP\n\\fBcomm\\fR\n",
        ".TP\n\\fBdisk\\fR\ndev\n.TP\n",
        "\n.SH SEE ALSO\nrhist(1)",
    ] {
        assert!(section.contains(part), "{section}");
    }
    assert!(page("rhist-export-otlp.1").contains(".SH EXAMPLES"));
    fs::remove_dir_all(pages).unwrap();
}

/// Tests the right column of the table for users of other tools in the documents.
#[test]
fn who_comes_from_elsewhere_can_type_each_row() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let document: PathBuf = here.join("../../Documentation/rhist.rst");
    let text = fs::read_to_string(document).unwrap();
    let (_, table) = text.split_once("Coming from other tools\n").unwrap();
    let (table, _) = table.split_once("Keeping and exporting\n").unwrap();
    let (_, rows) = table.split_once("here\n").unwrap();
    let mut typed = 0;
    for row in rows.lines().filter(|row| row.starts_with("``")) {
        let (_, line) = row.rsplit_once("  ``").unwrap();
        let line = line.trim_end_matches('`');
        assert!(line.starts_with("rhist "), "{row}");
        type_in(&format!("{line} --tracefs tests/tracefs --dry-run"), here);
        typed += 1;
    }
    assert!(typed > 40, "{typed}");
}
