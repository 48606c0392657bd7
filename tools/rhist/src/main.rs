// SPDX-License-Identifier: MIT OR Apache-2.0

//! The command `rhist`.

use std::process::ExitCode;

fn main() -> ExitCode {
    rhist::cli::main()
}
