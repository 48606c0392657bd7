// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tests the output of the command by `tests/trycmd/*.trycmd`, on recorded files of tracefs.
//!
//! `TRYCMD=overwrite cargo test` writes the present output to these files, for a review.

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn what_it_prints() {
    trycmd::TestCases::new().case("tests/trycmd/*.trycmd");
}

/// Leftovers of killed processes are removed, and `-v` prints each write as a shell command.
#[test]
fn each_line_is_said() {
    let root = std::env::temp_dir().join(format!("rhist-said-{}", std::process::id()));
    fs::create_dir_all(root.join("events")).unwrap();
    fs::create_dir_all(root.join("instances/rhist-4194305-77")).unwrap();
    let events = root.join("synthetic_events");
    let left = "rhist_4194305_a\tu64 x\n";
    for verbose in [true, false] {
        fs::write(&events, left).unwrap();
        fs::create_dir_all(root.join("instances/rhist-4194305-77")).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_rhist"))
            .arg("--tracefs")
            .arg(&root)
            .arg("clean")
            .args(verbose.then_some("-v"))
            .output()
            .unwrap();
        assert!(output.status.success());
        let all = fs::read_to_string(&events).unwrap();
        assert_eq!(all, format!("{left}!rhist_4194305_a\n"));
        let said = format!(
            "rmdir {0}/instances/rhist-4194305-77\necho '!rhist_4194305_a' >> {0}/synthetic_events\n",
            root.display()
        );
        let expected = if verbose { said } else { String::new() };
        assert_eq!(String::from_utf8(output.stderr).unwrap(), expected);
    }
    fs::remove_dir_all(root).unwrap();
}

/// The program beside this one explains triggers; its output is printed, and its exit state returned.
#[test]
fn triggers_are_explained_by_a_program() {
    let root = std::env::temp_dir().join(format!("rhist-explained-{}", std::process::id()));
    fs::create_dir_all(&root).unwrap();
    let rhist = root.join("rhist");
    // Other processes write the programs: a file that this one has open for writing is open in the children of other
    // tests, too, until they run their programs, and cannot be executed meanwhile.
    let run = |program: &str, arguments: [&Path; 3]| {
        let status = Command::new(program).args(arguments).status();
        assert!(status.unwrap().success());
    };
    let built = Path::new(env!("CARGO_BIN_EXE_rhist"));
    run("cp", ["--".as_ref(), built, &rhist]);
    let explain = |trigger: &str| {
        let mut command = Command::new(&rhist);
        command.args(["explain", trigger]).env("PATH", &root);
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    let (status, _, said) = explain("hist:keys=a");
    assert_eq!(status, Some(1));
    assert!(
        said.contains("rhist-explain, which explains triggers, is neither beside"),
        "{said}"
    );
    let program = root.join("rhist-explain");
    let script = "#!/bin/sh\nif [ \"$2\" = hist:keys=a ]; then echo \"It counts.\"; \
                  else echo \"rhist-explain: wrong: $2\" >&2; exit 1; fi\n";
    let write = format!(
        "cat >'{0}' <<'END'\n{script}END\nchmod +x '{0}'",
        program.display()
    );
    run("sh", ["-e".as_ref(), "-c".as_ref(), write.as_ref()]);
    assert_eq!(
        explain("hist:keys=a"),
        (Some(0), "It counts.\n".into(), String::new())
    );
    assert_eq!(
        explain("x"),
        (Some(1), String::new(), "rhist: wrong: x\n".into())
    );
    fs::remove_dir_all(root).unwrap();
}

/// Objects kept with --keep are not taken for leftovers of a killed process.
#[test]
fn doctor_tells_what_is_kept() {
    let root = std::env::temp_dir().join(format!("rhist-kept-{}", std::process::id()));
    fs::create_dir_all(root.join("events")).unwrap();
    let doctor = |instance: &str| {
        fs::create_dir_all(root.join("instances").join(instance)).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_rhist"))
            .arg("--tracefs")
            .arg(&root)
            .arg("doctor")
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let lines = text.lines().filter_map(|line| {
            let said = line.split_once(char::is_whitespace)?.1.trim_start();
            (said.starts_with("clean") || said.starts_with("kept")).then(|| line.to_owned())
        });
        lines.collect::<Vec<_>>()
    };
    let clean = "yes clean                  nothing is left of a killed rhist";
    let left =
        "no  clean                  a killed rhist has left something; 'rhist clean' removes it";
    let kept = "yes kept                   --keep has left rhist-4194305-77-keep; 'rhist clean' removes it";
    assert_eq!(doctor("somebody"), [clean]);
    assert_eq!(doctor("rhist-4194305-77-keep"), [clean, kept]);
    assert_eq!(doctor("rhist-4194305-78"), [left, kept]);
    fs::remove_dir_all(root).unwrap();
}

/// A row that cannot be read is left out, so the result is incomplete.
#[test]
fn a_row_that_cannot_be_read_is_missing() {
    let root = std::env::temp_dir().join(format!("rhist-row-{}", std::process::id()));
    let event = root.join("events/a/b");
    fs::create_dir_all(&event).unwrap();
    fs::write(event.join("format"), "").unwrap();
    let show = |rows: &str| {
        let text = format!(
            "# event histogram\n#\n# trigger info: hist:keys=x:vals=hitcount [active]\n#\n\n{rows}\nTotals:\n    \
             Hits: 7\n    Entries: 2\n    Dropped: 0\n"
        );
        fs::write(event.join("hist"), text).unwrap();
        Command::new(env!("CARGO_BIN_EXE_rhist"))
            .arg("--tracefs")
            .arg(&root)
            .args(["show", "a:b", "-f", "csv"])
            .output()
            .unwrap()
    };
    let row = "{ x:          5 } hitcount:          4\n";
    let shown = "from_ns,to_ns,x,hitcount\n0,0,5,4\n";
    for (rows, status, said) in [
        (row.to_owned(), 0, ""),
        (
            format!("{row}{{ x: y }} hitcount: z\n"),
            3,
            "such rows are left out: a row of the histogram of a:b is not",
        ),
    ] {
        let output = show(&rows);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{errors}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), shown);
        assert!(errors.contains(said), "{errors}");
        assert_eq!(errors.contains("--by"), status == 3);
    }
    fs::remove_dir_all(root).unwrap();
}

/// Bash accepts the completions, and completes words that can be typed.
#[test]
fn bash_completes() {
    let rhist = env!("CARGO_BIN_EXE_rhist");
    let script = Command::new(rhist)
        .args(["completions", "bash"])
        .output()
        .unwrap();
    let file = std::env::temp_dir().join(format!("rhist-bash-{}", std::process::id()));
    fs::write(&file, script.stdout).unwrap();
    let checked = Command::new("bash").arg("-n").arg(&file).status().unwrap();
    assert!(checked.success());
    // The arguments are those of bash: the command, the word to complete, and the word before it.
    let complete = r#". "$1"; shift
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
        function=$(complete -p rhist); function=${function##*-F }
        "${function%% *}" rhist "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}""#;
    let completed = |words: &[&str]| {
        let output = Command::new("bash")
            .args(["--norc", "-c", complete, "bash"])
            .arg(&file)
            .arg("rhist")
            .args(words)
            .output()
            .unwrap();
        assert!(output.stderr.is_empty(), "{output:?}");
        String::from_utf8(output.stdout)
            .unwrap()
            .trim_end()
            .to_owned()
    };
    assert_eq!(completed(&["run"]), "runq\nrun");
    assert_eq!(completed(&["runq", "--pre"]), "--preempted");
    assert_eq!(completed(&["record", "runq", "--pre"]), "--preempted");
    assert_eq!(completed(&["--backend", "m"]), "module");
    assert_eq!(completed(&["syscalls", "--format", ""]), "text\njson\ncsv");
    fs::remove_file(file).unwrap();
}
