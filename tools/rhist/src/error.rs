// SPDX-License-Identifier: MIT OR Apache-2.0

//! Errors: one sentence that says what is wrong, and the way out.

use std::fmt;
use std::io;
use std::path::Path;

/// What went wrong, as the user reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    text: String,
    closed: bool,
}

/// The result of all that can fail.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            closed: false,
        }
    }

    /// What the system said about this file.
    pub fn file(what: &str, path: &Path, error: &io::Error) -> Self {
        Self {
            closed: error.kind() == io::ErrorKind::BrokenPipe,
            ..tracefs::Error::file(what, path, error).into()
        }
    }

    /// Whether it is only that nobody reads any more, as behind `| head -1`.
    pub fn is_closed(&self) -> bool {
        self.closed
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

impl From<tracefs::Error> for Error {
    fn from(error: tracefs::Error) -> Self {
        Self::new(error.to_string())
    }
}

impl From<hist_tables::Error> for Error {
    fn from(error: hist_tables::Error) -> Self {
        Self::new(error.to_string())
    }
}
