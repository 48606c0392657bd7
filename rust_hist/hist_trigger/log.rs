// SPDX-License-Identifier: GPL-2.0

//! Logs in `error_log` why a command was refused.
//!
//! C counterpart: `last_cmd_set()` and `hist_err()`; their global variables are a value here.
//!
//! Context: process.

use crate::{
    alloc::AllocError,
    error::Refusal,
    ffi::{
        error_log,
        event::EventFile,
        text::TextBuf, //
    }, //
};
use core::ffi::CStr;
use kernel::prelude::*;

/// The reason why a command failed.
pub(crate) struct Failure {
    /// The errno for the writer.
    pub(crate) error: Error,
    /// The message that was logged, if there is one.
    pub(crate) why: Option<&'static CStr>,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { error, why: None }
    }
}

impl From<AllocError> for Failure {
    fn from(error: AllocError) -> Self {
        Self::from(Error::from(error))
    }
}

/// The data of an entry in the error log.
#[derive(Clone, Copy)]
pub(super) struct Log<'a> {
    /// The name of the command.
    pub(super) prefix: &'a [u8],
    /// The text after the name.
    pub(super) text: &'a [u8],
    /// The event that the command is for.
    pub(super) file: &'a EventFile,
    /// Whether a `!` precedes the name; columns do not count it.
    pub(super) removes: bool,
}

impl Log<'_> {
    /// Logs why a command is refused, and returns the failure for the writer.
    pub(super) fn refuse(&self, refusal: &Refusal) -> Failure {
        if let Some(entry) = refusal.entry() {
            // If there is no memory for the entry, the writer still gets the errno.
            let _ = self.add(entry.kind.text(), entry.at, refusal.detail());
        }
        Failure {
            error: Error::from_errno(-refusal.errno.code()),
            why: refusal.entry().map(|entry| entry.kind.text()),
        }
    }

    /// Logs a message about a command, which need not be refused: with a detail, and the caret at byte `at` of the text
    /// after the command's name.
    ///
    /// If there is no memory, nothing is logged.
    pub(super) fn say(&self, text: &CStr, detail: &[u8], at: usize) {
        let at = self.prefix.len().saturating_add(at);
        let _ = self.add(text, u16::try_from(at).unwrap_or(u16::MAX), detail);
    }

    /// Adds an entry, with a detail after the message if there is one.
    fn add(&self, text: &CStr, at: u16, detail: &[u8]) -> Result {
        let location = self.location()?;
        // PARITY: `last_cmd_set()` omits the sign `!`.
        let sign: &[u8] = if self.removes { b"!" } else { b"" };
        let command = TextBuf::joined(&[sign, self.prefix, b":", self.text, b"\0"])?;
        error_log::report(
            Some(self.file.instance()),
            location.as_c_str(),
            command.as_c_str(),
            text,
            detail,
            at.saturating_add(u16::from(self.removes)),
        );
        Ok(())
    }

    /// Returns the location for an entry: `hist:SYSTEM:EVENT`, or nothing for an event without a name.
    fn location(&self) -> Result<TextBuf> {
        match self.file.names() {
            (_, []) => TextBuf::terminated(b""),
            (system, name) => TextBuf::joined(&[self.prefix, b":", system, b":", name, b"\0"]),
        }
    }
}
