// SPDX-License-Identifier: GPL-2.0

//! The statistics that a column can show of many numbers.
//!
//! Plain values. Context: any.

/// A statistic of the numbers of a row's hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stat {
    /// The sum, modulo 2^64.
    Sum,
    /// The smallest number.
    Min,
    /// The largest number.
    Max,
    /// The mean: the sum, divided by the number of hits.
    Avg,
    /// The standard deviation: the square root of the mean of the squared distances from the mean.
    Stddev,
}

impl Stat {
    /// All statistics.
    pub const ALL: [Self; 5] = [Self::Sum, Self::Min, Self::Max, Self::Avg, Self::Stddev];

    /// Returns the modifier that selects this statistic.
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
