// SPDX-License-Identifier: MIT OR Apache-2.0

//! The output of the kernel's event histograms as tables: read from text and JSON, added, subtracted, and divided into
//! intervals, whose percentiles have guaranteed bounds.
//!
//! ```
//! let file = b"# event histogram\n#\n# trigger info: hist:keys=pid:vals=hitcount [active]\n#\n\n\
//!     { pid:          5 } hitcount:          4\n\nTotals:\n    Hits: 4\n    Entries: 1\n    Dropped: 0\n";
//! let read = hist_tables::parse::text::tables("sched:sched_switch", file)?;
//! assert_eq!(read.tables[0].account.hits, 4);
//! # Ok::<(), hist_tables::Error>(())
//! ```

pub mod grid;
pub mod model;
pub mod parse;
pub mod quantile;
pub mod units;

#[cfg(test)]
mod testing;

use std::fmt;

/// An error in a file of the kernel or in a recording, as one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(String);

/// The result of functions that can fail.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Returns an error with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
