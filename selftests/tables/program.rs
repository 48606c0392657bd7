// SPDX-License-Identifier: GPL-2.0

//! Programs whose tables have the size that a test chooses: the language allows none below 128 entries.

pub use rust_hist::program::*;

use rust_hist::program;
use std::{ops::Deref, sync::Arc};

/// A program.
pub struct Program {
    program: Arc<program::Program>,
    pub bits: u32,
    pub grows_to: Option<u32>,
}

impl Program {
    /// Gives its table `1 << bits` entries, and up to `1 << grows_to` if it is one that grows.
    pub fn with_bits(program: Arc<program::Program>, bits: u32, grows_to: u32) -> Self {
        let grows_to = program.grows_to.map(|_| grows_to);
        Self {
            program,
            bits,
            grows_to,
        }
    }
}

impl Deref for Program {
    type Target = program::Program;

    fn deref(&self) -> &program::Program {
        &self.program
    }
}
