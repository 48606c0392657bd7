// SPDX-License-Identifier: MIT OR Apache-2.0

//! `rhist shell`: runs a command for which the files of the module are in tracefs.
//!
//! On a kernel whose tracefs has no place for them they are in a file system of their own, rhistfs. The command runs in a mount
//! namespace in which that is mounted over tracefs, for programs that cannot be told another directory.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process;

use clap::{Arg, ArgMatches, Command};

use crate::error::{Error, Result};

const PLACE: &str = "/sys/kernel/tracing";

/// In a mount namespace of its own. The place of rhistfs is free there for tracefs, which the links of rhistfs lead to.
const SCRIPT: &str = "mount --bind /sys/kernel/tracing /sys/kernel/rhist &&
mount -t rhistfs -o lower=/sys/kernel/rhist none /sys/kernel/tracing &&
exec \"$@\"";

/// Returns the definition of the command.
pub fn command() -> Command {
    Command::new("shell")
        .about("Runs a command that finds the files of the module in tracefs, on every kernel")
        .arg(
            Arg::new("COMMAND")
                .num_args(0..)
                .trailing_var_arg(true)
                .allow_hyphen_values(true)
                .value_parser(clap::value_parser!(OsString))
                .help("The command and its arguments; without one, a shell"),
        )
}

/// Becomes the command. Returns only if that fails.
pub fn run(matches: &ArgMatches) -> Result<()> {
    let mut words: Vec<&OsString> = matches
        .get_many("COMMAND")
        .map(Iterator::collect)
        .unwrap_or_default();
    let shell = env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
    if words.is_empty() {
        words.push(&shell);
    }
    let read = |file| fs::read_to_string(file).unwrap_or_default();
    let mut command = if is_needed(&read("/proc/filesystems"), &read("/proc/self/mounts"))? {
        let mut unshare = process::Command::new("unshare");
        unshare
            .args(["-m", "sh", "-c", SCRIPT, "rhist"])
            .args(words);
        unshare
    } else {
        let mut command = process::Command::new(words[0]);
        command.args(&words[1..]);
        command
    };
    let name = command.get_program().to_string_lossy().into_owned();
    Err(error!("{name}: {}", command.exec()))
}

/// Returns whether a program finds the files of the module in tracefs only if rhistfs is mounted over it, given the lists of
/// file systems and mounts.
fn is_needed(types: &str, mounts: &str) -> Result<bool> {
    if !types.lines().any(|line| line.ends_with("\trhistfs")) {
        let has_module = fs::exists("/sys/module/rust_hist").unwrap_or_default();
        return match has_module {
            true => Ok(false),
            false => Err(Error::new("there is no module; modprobe rust_hist")),
        };
    }
    let last = mounts.lines().rev().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        (words.next() == Some(PLACE)).then(|| words.next() == Some("rhistfs"))
    });
    Ok(last != Some(true))
}

#[cfg(test)]
mod tests {
    use super::is_needed;

    #[test]
    fn the_view_is_mounted_over_tracefs_once() {
        const TYPES: &str = "nodev\tsysfs\nnodev\trhistfs\n\text4\n";
        const TRACEFS: &str = "tracefs /sys/kernel/tracing tracefs rw 0 0\n";
        let beside = format!("{TRACEFS}none /sys/kernel/rhist rhistfs rw 0 0\n");
        let over =
            format!("{beside}none /sys/kernel/tracing rhistfs rw,lower=/sys/kernel/rhist 0 0\n");
        let needed = |mounts: &str| is_needed(TYPES, mounts).unwrap();
        assert!(needed(TRACEFS));
        assert!(needed(&beside));
        assert!(!needed(&over));
        assert!(needed(""));
    }

    #[test]
    fn without_a_module_there_is_an_error() {
        let error = is_needed("nodev\tsysfs\n", "").unwrap_err().to_string();
        assert!(error.contains("modprobe rust_hist"), "{error}");
    }
}
