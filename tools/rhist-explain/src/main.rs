// SPDX-License-Identifier: GPL-2.0

//! usage: rhist-explain TRIGGER
//!
//! Explains a trigger in words, or says what is wrong with it: `rhist explain` runs this program. It has the parser and
//! the compiler of the module, so that both take and refuse the same texts.

mod any;
mod explain;

use std::{
    env,
    io::{
        self,
        Write, //
    },
    process::ExitCode, //
};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).filter(|word| word != "--").collect();
    let [trigger] = &arguments[..] else {
        eprintln!("usage: rhist-explain TRIGGER");
        return ExitCode::from(2);
    };

    match explain::explain(trigger) {
        // Nobody may read it any more.
        Ok(said) => match io::stdout().write_all(said.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(141),
        },
        Err(wrong) => {
            eprintln!("rhist-explain: {wrong}");
            ExitCode::FAILURE
        }
    }
}
