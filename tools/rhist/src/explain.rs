// SPDX-License-Identifier: MIT OR Apache-2.0

//! A trigger in words: `rhist-explain` says them, a program of its own, as it has the parser of the module and with it
//! the licence of the kernel.

use std::env;
use std::io;
use std::path::PathBuf;
use std::process::Command;

use crate::error::{Error, Result};

/// The program: beside this one, or where a shell finds it.
const PROGRAM: &str = "rhist-explain";

/// Says in words what a trigger does; the error has a caret under what is wrong.
pub fn explain(trigger: &str) -> Result<String> {
    let beside = env::current_exe()
        .ok()
        .map(|own| own.with_file_name(PROGRAM));
    let program = beside.filter(|path| path.exists());
    let program = program.unwrap_or_else(|| PathBuf::from(PROGRAM));
    let output = Command::new(&program).arg("--").arg(trigger).output();
    let output = output.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::new(format!(
            "{PROGRAM}, which explains triggers, is neither beside rhist nor in PATH; it is part of the package, and of \
             what 'make tool' builds"
        )),
        _ => Error::file("run", &program, &error),
    })?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    match output.status.success() {
        true => Ok(text(output.stdout)),
        false => {
            let said = text(output.stderr);
            Err(Error::new(
                said.strip_prefix("rhist-explain: ")
                    .unwrap_or(&said)
                    .trim_end(),
            ))
        }
    }
}
