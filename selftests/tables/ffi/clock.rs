// SPDX-License-Identifier: GPL-2.0

//! The time, which a test moves.

use crate::sim;

/// A moment, in nanoseconds.
#[derive(Clone, Copy)]
pub struct Moment {
    pub monotonic: u64,
    pub real: u64,
}

impl Moment {
    /// Returns the present one.
    pub fn now() -> Self {
        let monotonic = sim::now();
        Self {
            monotonic,
            real: monotonic,
        }
    }
}
