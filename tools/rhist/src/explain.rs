// SPDX-License-Identifier: MIT OR Apache-2.0

//! Explains a trigger in words, by calling `rhist-explain`. That is a separate program, as it contains the module's
//! parser and is under the kernel's licence.

use std::env;
use std::io;
use std::path::PathBuf;
use std::process::Command;

use crate::error::{Error, Result};

/// The name of the program, which is in the directory of this one, or found like a shell does.
const PROGRAM: &str = "rhist-explain";

/// Returns in words what a trigger does; the error has a caret under the mistake.
pub fn explain(trigger: &str) -> Result<String> {
    let beside = env::current_exe()
        .ok()
        .map(|own| own.with_file_name(PROGRAM));
    let program = beside.filter(|path| path.exists());
    let program = program.unwrap_or_else(|| PathBuf::from(PROGRAM));
    let output = Command::new(&program).arg("--").arg(trigger).output();
    let output = output.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => error!(
            "{PROGRAM}, which explains triggers, is neither beside rhist nor in PATH; it is part of the package, and of \
             what 'make tool' builds"
        ),
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
