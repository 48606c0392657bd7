// SPDX-License-Identifier: MIT OR Apache-2.0

//! Errors: one sentence that says what is wrong, with a remedy.

use std::fmt;
use std::io;
use std::path::Path;

/// An error, in words for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    text: String,
    closed: bool,
}

/// The result of functions that can fail.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Returns an error with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            closed: false,
        }
    }

    /// Returns the error of a system call on this file; `what` is the action that failed.
    pub fn file(what: &str, path: &Path, error: &io::Error) -> Self {
        Self {
            closed: error.kind() == io::ErrorKind::BrokenPipe,
            ..tracefs::Error::file(what, path, error).into()
        }
    }

    /// Returns whether the error is only that the reader has closed the output, as `| head -1` does.
    pub fn is_closed(&self) -> bool {
        self.closed
    }
}

/// Returns an [`Error`] with a text that is made as by [`format!`].
macro_rules! error {
    ($($text:tt)*) => {
        $crate::error::Error::new(format!($($text)*))
    };
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
