// SPDX-License-Identifier: GPL-2.0

//! What the pure layers have to do for any input: not panic, not overflow, and what each target checks.
//!
//! Targets share the events, worlds and checks of the tests in `selftests/host`. `scripts/fuzz` runs
//! them under libFuzzer; the test `corpus` gives them the inputs that were kept.

#[path = "../../host/tests/common/mod.rs"]
mod common;
#[path = "../../host/tests/lang_common/mod.rs"]
mod lang_common;
#[path = "../../host/tests/run/mod.rs"]
mod run;
#[path = "../../host/tests/schema_common/mod.rs"]
mod schema_common;

mod bytes;
mod cells;
mod filter;
mod map;
mod record;
mod scenario;
mod synth;
mod trigger;

/// Something to fuzz.
#[derive(Clone, Copy)]
pub struct Target {
    /// How it is called, and the file of its corpus.
    pub name: &'static str,
    run: fn(&[u8]),
}

impl Target {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self {
            name: "trigger",
            run: trigger::run,
        },
        Self {
            name: "scenario",
            run: scenario::run,
        },
        Self {
            name: "synth",
            run: synth::run,
        },
        Self {
            name: "record",
            run: record::run,
        },
        Self {
            name: "map",
            run: map::run,
        },
        Self {
            name: "cells",
            run: cells::run,
        },
        Self {
            name: "filter",
            run: filter::run,
        },
    ];

    /// The one of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|target| target.name == name)
    }

    /// Runs it over an input; panics if it does not hold.
    pub fn run(&self, input: &[u8]) {
        (self.run)(input);
    }
}
