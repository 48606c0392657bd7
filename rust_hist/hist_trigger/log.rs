// SPDX-License-Identifier: GPL-2.0

//! Saying in `error_log` why a command was refused.
//!
//! C counterpart: `last_cmd_set()` and `hist_err()`; what they keep in global variables is a value here.
//!
//! Context: process.

use crate::{
    alloc::AllocError,
    error::{
        ErrKind,
        Refusal, //
    },
    ffi::{
        error_log,
        event::EventFile,
        text::TextBuf, //
    }, //
};
use core::ffi::CStr;
use kernel::prelude::*;

/// Why a command failed.
pub(crate) struct Failure {
    /// What the writer gets.
    pub(crate) error: Error,
    /// The entry in the error log, if there is one.
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

/// What is needed to write to the error log.
#[derive(Clone, Copy)]
pub(super) struct Log<'a> {
    /// The name of the command.
    pub(super) prefix: &'a [u8],
    /// What follows it.
    pub(super) text: &'a [u8],
    /// The event that it is for.
    pub(super) file: &'a EventFile,
    /// Whether a `!` was before the name, which no column counts.
    pub(super) removes: bool,
}

impl Log<'_> {
    /// Logs why a command is refused, and returns what the writer gets.
    pub(super) fn refuse(&self, refusal: &Refusal) -> Failure {
        if let Some(entry) = refusal.entry() {
            // Without memory the writer still gets the errno.
            let _ = self.add(entry.kind.text(), entry.at, refusal.detail());
        }
        Failure {
            error: Error::from_errno(-refusal.errno.code()),
            why: refusal.entry().map(|entry| entry.kind.text()),
        }
    }

    /// Logs what is no reason to refuse the command: with a detail, and the caret `at` a byte of what follows the
    /// command's name.
    ///
    /// Without memory there is an entry less.
    pub(super) fn note(&self, kind: ErrKind, detail: &[u8], at: usize) {
        self.say(kind.text(), detail, at);
    }

    /// As [`Log::note`], for any text.
    pub(super) fn say(&self, text: &CStr, detail: &[u8], at: usize) {
        let at = self.prefix.len().saturating_add(at);
        let _ = self.add(text, u16::try_from(at).unwrap_or(u16::MAX), detail);
    }

    /// Adds an entry, with a detail behind its text if there is one.
    fn add(&self, text: &CStr, at: u16, detail: &[u8]) -> Result {
        let location = self.location()?;
        // PARITY: `last_cmd_set()` leaves the sign out.
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

    /// Where it happened: `hist:SYSTEM:EVENT`, or nothing for an event without a name.
    fn location(&self) -> Result<TextBuf> {
        match (self.file.system(), self.file.name()) {
            (Some(system), Some(name)) => TextBuf::joined(&[
                self.prefix,
                b":",
                system.to_bytes(),
                b":",
                name.to_bytes_with_nul(),
            ]),
            _ => TextBuf::joined(&[b"\0"]),
        }
    }
}
