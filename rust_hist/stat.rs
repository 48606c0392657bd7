// SPDX-License-Identifier: GPL-2.0

//! What can be shown of many numbers.
//!
//! Plain values. Context: any.

/// What a column shows of the numbers that the hits of a row have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stat {
    /// Their sum, modulo 2^64.
    Sum,
    /// The smallest one.
    Min,
    /// The largest one.
    Max,
    /// Their mean: the sum, divided by the number of hits.
    Avg,
    /// Their standard deviation: the square root of the mean of the squares of their distances from the mean.
    Stddev,
}

impl Stat {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Sum, Self::Min, Self::Max, Self::Avg, Self::Stddev];

    /// Returns the name as a modifier.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Min => "min",
            Self::Max => "max",
            Self::Avg => "avg",
            Self::Stddev => "stddev",
        }
    }
}
