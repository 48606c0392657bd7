// SPDX-License-Identifier: MIT OR Apache-2.0

//! Errors: one sentence that says what is wrong, with a remedy.

use std::fmt;
use std::io;
use std::path::Path;

/// An error, in words for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(String);

/// The result of functions that can fail.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Returns an error with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the error of a system call on this file; `what` is the action that failed.
    pub fn file(what: &str, path: &Path, error: &io::Error) -> Self {
        let reason = reason(error);
        Self(format!("cannot {what} {}: {reason}", path.display()))
    }
}

/// Returns an error of the system in words, without its number.
pub fn reason(error: &impl fmt::Display) -> String {
    let text = error.to_string();
    text.split(" (os error")
        .next()
        .unwrap_or_default()
        .to_owned()
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
