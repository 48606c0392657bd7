// SPDX-License-Identifier: GPL-2.0

//! The hash of a table.

use crate::sim;
use rust_hist::tracing_map::{HashSeed, KeyHash, SeededHash, Sum};

/// How keys are spread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Hash {
    /// As in the module.
    #[default]
    Seeded,
    /// All keys begin at the last slot, and those of one length have the same hash.
    Same,
    /// Short keys begin at one of four slots.
    Quarters,
}

impl Hash {
    /// Returns the one that the test has chosen.
    pub fn new(seed: &'static HashSeed) -> Self {
        sim::hash(seed)
    }
}

impl KeyHash for Hash {
    fn hash(self, key: &[u64]) -> u64 {
        match self {
            Self::Seeded => SeededHash::default().hash(key),
            Self::Same => u64::MAX,
            Self::Quarters => key[0] << 62 | (key[0] & 0xf0) << 32,
        }
    }

    fn end(self, sum: Sum) -> u64 {
        match self {
            Self::Same => u64::MAX,
            _ => SeededHash::default().end(sum),
        }
    }
}
