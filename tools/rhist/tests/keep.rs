// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tests recordings in the hands of a user: shown, drawn, compared, cut, and on a full disk.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use quick_xml::events::Event;
use quick_xml::Reader;

const LOG: &str = include_str!("data/runq.jsonl");
const COUNTS: &str = include_str!("data/syscalls.jsonl");
const STACKS: &str = include_str!("data/offcpu.jsonl");

/// A directory that is removed when the test ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("rhist-keep-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn rhist(arguments: &[&str], files: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rhist"));
    command
        .args(arguments)
        .args(files)
        .env("LC_ALL", "C.UTF-8")
        .output()
        .unwrap()
}

fn shown(output: &Output) -> String {
    assert!(output.status.success(), "{}", said(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Parses an XML file, which must be well formed; returns the names of all elements, and all texts.
fn parsed(xml: &str) -> (Vec<String>, String) {
    let mut reader = Reader::from_str(xml);
    let (mut names, mut texts) = (Vec::new(), String::new());
    loop {
        match reader.read_event().unwrap() {
            Event::Eof => return (names, texts),
            Event::Start(start) | Event::Empty(start) => {
                names.push(String::from_utf8(start.name().as_ref().to_vec()).unwrap());
            }
            Event::Text(text) => {
                texts.push_str(&text.decode().unwrap());
                texts.push('\n');
            }
            _ => {}
        }
    }
}

fn count(names: &[String], name: &str) -> usize {
    names.iter().filter(|other| *other == name).count()
}

/// Checks that a page makes a browser load nothing from elsewhere.
fn asks_nobody(text: &str) {
    // References within the same file are allowed.
    let text = text.replace("url(#", "");
    for wanted in ["src=", "href=\"http", "url(", "@import"] {
        assert!(!text.contains(wanted), "{wanted}");
    }
}

#[test]
fn a_recording_is_shown_again() {
    let scratch = Scratch::new("replay");
    let file = scratch.file("runq.jsonl", LOG);
    insta::assert_snapshot!("replay", shown(&rhist(&["replay"], &[&file])));
    insta::assert_snapshot!(
        "replay_heat",
        shown(&rhist(&["replay", "--heat"], &[&file]))
    );
    let one = shown(&rhist(&["replay", "--only", "gawk"], &[&file]));
    assert!(one.contains("gawk") && !one.contains("make"), "{one}");
    // The replay as JSON equals the recording except for its first line.
    let again = shown(&rhist(&["replay", "-f", "json"], &[&file]));
    let lines = |text: &str| {
        text.lines()
            .filter(|line| line.starts_with("{\"k\""))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(lines(&again), lines(LOG));
}

#[test]
fn pictures_have_what_was_counted() {
    let scratch = Scratch::new("plot");
    let file = scratch.file("runq.jsonl", LOG);
    for (picture, snapshot) in [
        ("histogram", "svg_histogram"),
        ("cdf", "svg_cdf"),
        ("heat", "svg_heat"),
    ] {
        let out = scratch.0.join("x.svg");
        let arguments = ["plot", "--picture", picture, "-o", out.to_str().unwrap()];
        shown(&rhist(&arguments, &[&file]));
        let svg = fs::read_to_string(&out).unwrap();
        let (names, texts) = parsed(&svg);
        assert_eq!(names[0], "svg");
        assert!(count(&names, "rect") > 5, "{picture}");
        for text in ["How long do tasks wait for a CPU?", "lat (ns)", "hits"] {
            assert!(texts.contains(text), "{picture}: {text} in {texts}");
        }
        asks_nobody(&svg);
        insta::assert_snapshot!(snapshot, svg);
    }
}

#[test]
fn a_picture_of_rows() {
    let scratch = Scratch::new("rows");
    let file = scratch.file("syscalls.jsonl", COUNTS);
    let out = scratch.0.join("x.svg");
    shown(&rhist(&["plot", "-o", out.to_str().unwrap()], &[&file]));
    let (_, texts) = parsed(&fs::read_to_string(&out).unwrap());
    assert!(texts.contains("read") && texts.contains('%'), "{texts}");
    let output = rhist(
        &["plot", "--picture", "cdf", "-o", out.to_str().unwrap()],
        &[&file],
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("there is only its histogram"));
}

/// Checks pictures of one row, and of ten thousand.
#[test]
fn pictures_of_few_and_many() {
    let scratch = Scratch::new("many");
    let (head, end) = (
        COUNTS.lines().next().unwrap(),
        COUNTS.lines().last().unwrap(),
    );
    for rows in [1, 10_000] {
        let all: String = (0..rows)
            .map(|i| {
                format!(
                    "{{\"k\":[{{\"nr\":{i},\"name\":null}}],\"v\":[{}]}}\n",
                    i + 1
                )
            })
            .collect();
        let file = scratch.file(
            "many.jsonl",
            &format!("{head}\n{}\n{all}{end}\n", COUNTS.lines().nth(1).unwrap()),
        );
        for name in ["x.svg", "x.html"] {
            let out = scratch.0.join(name);
            shown(&rhist(&["plot", "-o", out.to_str().unwrap()], &[&file]));
            let text = fs::read_to_string(&out).unwrap();
            asks_nobody(&text);
            if name == "x.svg" {
                let (names, _) = parsed(&text);
                assert!(count(&names, "rect") <= 30);
            } else {
                assert_eq!(text.matches("<tr>").count(), rows + 1);
            }
        }
    }
    for (rows, epochs) in [(1, 1), (100, 300)] {
        let mut text = String::from("{\"v\":1,\"type\":\"rhist\",\"title\":\"Many\"}\n");
        let head = LOG.lines().nth(1).unwrap();
        let end = LOG.lines().last().unwrap();
        for epoch in 1u64..=epochs {
            let (from, to) = (epoch * 1_000_000_000, (epoch + 1) * 1_000_000_000);
            text += &head.replace(
                "\"epoch\":1,\"from\":1000000000,\"to\":2000000000",
                &format!("\"epoch\":{epoch},\"from\":{from},\"to\":{to}"),
            );
            text.push('\n');
            for row in 0..rows {
                let lo = 1000 + row * 100;
                text += &format!(
                    "{{\"k\":[\"gawk\",{{\"i\":{},\"lo\":{lo},\"hi\":{}}}],\"v\":[1,1]}}\n",
                    80 + row,
                    lo + 99
                );
            }
            text += end;
            text.push('\n');
        }
        let file = scratch.file("long.jsonl", &text);
        for picture in ["histogram", "cdf", "heat"] {
            let out = scratch.0.join("long.svg");
            shown(&rhist(
                &["plot", "--picture", picture, "-o", out.to_str().unwrap()],
                &[&file],
            ));
            let svg = fs::read_to_string(&out).unwrap();
            let (names, _) = parsed(&svg);
            assert!(count(&names, "rect") >= 1);
            assert!(svg.len() < 8 << 20, "{picture}: {}", svg.len());
        }
    }
}

#[test]
fn a_page_has_all_of_it() {
    let scratch = Scratch::new("html");
    let out = scratch.0.join("x.html");
    for (text, pictures) in [(LOG, 3), (COUNTS, 1), (STACKS, 2)] {
        let file = scratch.file("x.jsonl", text);
        shown(&rhist(&["plot", "-o", out.to_str().unwrap()], &[&file]));
        let html = fs::read_to_string(&out).unwrap();
        assert_eq!(
            html.matches("xmlns=\"http://www.w3.org/2000/svg\"").count(),
            pictures
        );
        assert!(html.contains("<title>") && html.contains("</table>"));
        assert!(!html.contains("<script") && !html.contains("<?xml") && !html.contains("onload"));
        asks_nobody(&html);
    }
}

#[test]
fn flames_are_drawn_and_folded() {
    let scratch = Scratch::new("flame");
    let file = scratch.file("offcpu.jsonl", STACKS);
    let out = scratch.0.join("x.svg");
    shown(&rhist(&["flame", "-o", out.to_str().unwrap()], &[&file]));
    let svg = fs::read_to_string(&out).unwrap();
    let (_, texts) = parsed(&svg);
    assert!(texts.contains("Where do tasks sleep?") && texts.contains("do_wait"));
    asks_nobody(&svg);
    let folded = scratch.0.join("x.folded");
    shown(&rhist(
        &[
            "flame",
            "--value",
            "hitcount",
            "-o",
            folded.to_str().unwrap(),
        ],
        &[&file],
    ));
    let text = fs::read_to_string(&folded).unwrap();
    assert!(
        text.contains("bash;entry_SYSCALL_64;do_syscall_64;do_wait;schedule 4\n"),
        "{text}"
    );
    let other = scratch.file("runq.jsonl", LOG);
    let output = rhist(&["flame", "-o", out.to_str().unwrap()], &[&other]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("no key of stack traces"));
}

#[test]
fn two_recordings_are_compared() {
    let scratch = Scratch::new("diff");
    let a = scratch.file("a.jsonl", LOG);
    let b = scratch.file(
        "b.jsonl",
        &LOG.replace(
            "\"i\":85,\"lo\":1449,\"hi\":1579",
            "\"i\":93,\"lo\":2897,\"hi\":3158",
        ),
    );
    let text = shown(&rhist(&["diff"], &[&a, &b]));
    insta::assert_snapshot!("diff", text.replace(scratch.0.to_str().unwrap(), "DIR"));
    let plain = Command::new(env!("CARGO_BIN_EXE_rhist"))
        .arg("diff")
        .args([&a, &b])
        .env("LC_ALL", "C")
        .output()
        .unwrap();
    assert!(shown(&plain).is_ascii());
}

#[test]
fn what_has_changed_is_said() {
    let scratch = Scratch::new("why");
    let good = scratch.file("good.jsonl", &format!("{LOG}{COUNTS}"));
    let text = shown(&rhist(&["why"], &[&good, &good]));
    assert!(text.contains("nothing has changed for sure, of "), "{text}");
    assert!(
        text.contains("not compared: syscalls --count: it has no times"),
        "{text}"
    );
    // One of the two is damaged, and the other one is compared.
    let damaged = COUNTS.replacen("\"v\":[", "\"v\":{", 1);
    let damaged = scratch.file("bad.jsonl", &format!("{LOG}{damaged}"));
    for files in [[&good, &damaged], [&damaged, &good]] {
        let output = rhist(&["why"], &files.map(PathBuf::as_path));
        assert_eq!(output.status.code(), Some(3));
        let said = said(&output);
        assert!(
            said.starts_with("rhist: syscalls --count is left out: ") && said.lines().count() == 1,
            "{said}"
        );
        assert!(String::from_utf8_lossy(&output.stdout).contains("of 1 question"));
    }
    let newer = scratch.file("newer.jsonl", &LOG.replacen("{\"v\":1", "{\"v\":2", 1));
    for (arguments, files, text) in [
        (&["why"][..], &[&good, &newer][..], "needs a newer rhist"),
        (&["why"], &[&scratch.0, &good], "Is a directory"),
        (
            &["--tracefs", "tests/tracefs", "record", "--baseline", "runq"],
            &[],
            "leave it or 'runq' out",
        ),
        (&["--tracefs", "tests/tracefs", "record"], &[], ""),
    ] {
        let files: Vec<&Path> = files.iter().map(|file| file.as_path()).collect();
        let output = rhist(arguments, &files);
        assert_ne!(output.status.code(), Some(0), "{arguments:?}");
        assert!(said(&output).contains(text), "{}", said(&output));
    }
}

#[test]
fn a_cut_recording_is_used_and_said() {
    let scratch = Scratch::new("cut");
    let file = scratch.file("cut.jsonl", &LOG[..LOG.len() - 40]);
    let out = scratch.0.join("x.svg");
    for arguments in [
        vec!["replay"],
        vec!["replay", "--heat"],
        vec!["plot", "-o", out.to_str().unwrap()],
        vec![
            "export",
            "prometheus",
            "--speed",
            "0",
            "--textfile",
            out.to_str().unwrap(),
            "--replay",
        ],
    ] {
        let output = rhist(&arguments, &[&file]);
        assert_eq!(
            output.status.code(),
            Some(3),
            "{arguments:?}: {}",
            said(&output)
        );
        assert!(
            said(&output).contains("is cut in the middle of a table"),
            "{}",
            said(&output)
        );
    }
    let lossy = scratch.file(
        "lossy.jsonl",
        &LOG.replace("\"dropped_full\":0", "\"dropped_full\":9"),
    );
    let output = rhist(&["replay"], &[&lossy]);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        said(&output).contains("27 hits of new keys"),
        "{}",
        said(&output)
    );
}

#[test]
fn what_is_no_recording_is_said() {
    let scratch = Scratch::new("wrong");
    let wrong = scratch.file("wrong.jsonl", "hello\n");
    let out = scratch.0.join("x.png");
    let file = scratch.file("runq.jsonl", LOG);
    for (arguments, file, text) in [
        (vec!["replay"], &wrong, "line 1"),
        (
            vec!["replay", "--heat"],
            &scratch.0.join("none"),
            "cannot open",
        ),
        (vec!["replay", "--heat"], &scratch.0, "Is a directory"),
        (
            vec!["plot", "-o", out.to_str().unwrap()],
            &file,
            "end it in .svg or .html",
        ),
        (
            vec!["plot", "--table", "9", "-o", "/nowhere/x.svg"],
            &file,
            "say --table with one of",
        ),
        (
            vec!["plot", "-o", "/nowhere/x.svg"],
            &file,
            "/nowhere/x.svg",
        ),
    ] {
        let output = rhist(&arguments, &[file]);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(said(&output).contains(text), "{}", said(&output));
        assert_eq!(
            said(&output)
                .lines()
                .filter(|line| line.starts_with("rhist: "))
                .count(),
            1
        );
    }
}

#[test]
fn a_full_disk_and_a_closed_pipe_are_survived() {
    let scratch = Scratch::new("full");
    let file = scratch.file("runq.jsonl", LOG);
    for arguments in [vec!["replay"], vec!["replay", "--heat"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_rhist"))
            .args(&arguments)
            .arg(&file)
            .stdout(full)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(
            said(&output).contains("No space left on device"),
            "{}",
            said(&output)
        );
        // Closes both outputs, of results and of messages.
        for quiet in [true, false] {
            let closed = || {
                let (stdout, _) = UnixStream::pair().unwrap();
                Stdio::from(OwnedFd::from(stdout))
            };
            let output = Command::new(env!("CARGO_BIN_EXE_rhist"))
                .args(&arguments)
                .arg(&file)
                .stdout(closed())
                .stderr(if quiet { Stdio::piped() } else { closed() })
                .output()
                .unwrap();
            assert_eq!(output.status.code(), Some(141));
            assert_eq!(said(&output), "");
        }
    }
    let full = scratch.0.join("full.svg");
    std::os::unix::fs::symlink("/dev/full", &full).unwrap();
    for command in ["plot", "flame"] {
        let file = scratch.file("x.jsonl", STACKS);
        let output = rhist(&[command, "-o", full.to_str().unwrap()], &[&file]);
        assert_eq!(output.status.code(), Some(1));
        assert!(
            said(&output).contains("No space left on device"),
            "{}",
            said(&output)
        );
    }
}

#[test]
fn no_title_commands_a_terminal() {
    const TITLE: &str = "a\u{1b}]0;x\u{7}b";
    let scratch = Scratch::new("title");
    let hostile = |text: &str| {
        let (header, rest) = text.split_once('\n').unwrap();
        let mut header: serde_json::Value = serde_json::from_str(header).unwrap();
        header["title"] = TITLE.into();
        format!("{header}\n{rest}")
    };
    let log = scratch.file("log.jsonl", &hostile(LOG));
    let stacks = scratch.file("stacks.jsonl", &hostile(STACKS));
    for (arguments, files) in [
        (&["replay", "--heat"][..], &[log.as_path()][..]),
        (&["diff"], &[&log, &log]),
    ] {
        let text = shown(&rhist(arguments, files));
        assert!(text.contains("a?]0;x?b"), "{text}");
        assert!(
            !text.contains(|c: char| c.is_control() && c != '\n'),
            "{text}"
        );
    }
    let picture = scratch.0.join("x.svg");
    for (arguments, file) in [
        (&["plot", "-o"][..], &log),
        (&["flame", "-o"], &stacks),
        (&["plot", "--title", TITLE, "-o"], &log),
        (&["flame", "--title", TITLE, "-o"], &stacks),
    ] {
        shown(&rhist(arguments, &[&picture, file]));
        let svg = fs::read_to_string(&picture).unwrap();
        parsed(&svg);
        assert!(svg.contains("a?]0;x?b"), "{svg}");
        assert!(!svg.contains(['\u{1b}', '\u{7}']));
    }
    let wrong = LOG.replacen("\"active\"", "\"\\u001b[2J\"", 1);
    let output = rhist(&["replay"], &[&scratch.file("wrong.jsonl", &wrong)]);
    assert!(said(&output).contains("[2J") && !said(&output).contains('\u{1b}'));
}

/// Checks that a task of more than a second shows its progress on a terminal, and only there.
#[test]
fn progress_is_for_terminals() {
    let scratch = Scratch::new("progress");
    let log = scratch.file("log.jsonl", LOG);
    let svg = scratch.0.join("x.svg");
    let (begin, end) = LOG.split_at(LOG.find("\n{\"v\"").unwrap() + 1);
    let rest = scratch.file("rest.jsonl", end);
    let begin = scratch.file("begin.jsonl", begin);
    // Standard input has the header at once, and the tables 1.3 seconds later.
    let slowly = format!(
        "(cat {}; sleep 1.3; cat {}) |",
        begin.display(),
        rest.display()
    );
    let rhist = env!("CARGO_BIN_EXE_rhist");
    let plot = format!("{slowly} {rhist} plot - -o {}", svg.display());
    let replay = format!("{rhist} replay --speed 0.8 {}", log.display());
    // Each command runs on a terminal whose output is recorded.
    let told = |command: &str| {
        let output = Command::new("script")
            .args(["-qec", command, "/dev/null"])
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        shown(&output)
    };
    let erased = |text: &str| text.ends_with("\r") && text.trim_end_matches('\r').ends_with("  ");
    let text = told(&plot);
    assert!(
        text.starts_with("\rread ") && text.contains("KiB of standard input"),
        "{text:?}"
    );
    assert!(erased(&text), "{text:?}");
    let text = told(&format!("{replay} >/dev/null"));
    assert!(
        text.contains(" % of ") && text.contains("log.jsonl"),
        "{text:?}"
    );
    assert!(erased(&text), "{text:?}");
    // No progress is shown if tables are printed, with --quiet, or without a terminal.
    assert!(!told(&replay).contains("read "));
    assert_eq!(told(&format!("{plot} --quiet")), "");
    assert_eq!(told(&format!("({plot}) 2>&1 | cat")), "");
}
