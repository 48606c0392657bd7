// SPDX-License-Identifier: GPL-2.0

//! The errors of commands on synthetic events.
//!
//! C counterpart: the `ERRORS` table of
//! [`kernel/trace/trace_events_synth.c`](srctree/kernel/trace/trace_events_synth.c).
//! The writer gets the errno; `error_log` shows the message.
//!
//! Context: any.

use core::ffi::CStr;

use super::logged;
use crate::{
    alloc::AllocError,
    error::{
        kinds_with_texts,
        Errno, //
    },
    text::lex::find, //
};

kinds_with_texts! {
    /// A message of `error_log` on a synthetic event.
    SynthErr:
    /// The name of an event or field has other characters than letters, digits and `_`.
    BadName: c"Illegal name",
    /// The command is no definition.
    InvalidCmd: c"Command must be of the form: <name> field[;field] ...",
    /// The line of `dynamic_events` names another group.
    InvalidDynCmd: c"Command must be of the form: s or -:[synthetic/]<name> field[;field] ...",
    /// An event with this name exists; the errno is [`Errno::Eexist`].
    EventExists: c"Event already exists",
    /// More than [`super::FIELDS_MAX`] fields.
    TooManyFields: c"Too many fields",
    /// `unsigned` is not followed by a type and a name.
    IncompleteType: c"Incomplete type",
    /// The type does not exist, or has no arrays.
    InvalidType: c"Invalid type",
    /// A type is not followed by a name.
    InvalidField: c"Invalid field",
    /// The brackets do not contain a valid length.
    InvalidArraySpec: c"Invalid array specification",
    // C has no counterpart of the messages below.
    /// No event has this name; the errno is [`Errno::Enoent`].
    NotFound: c"No such synthetic event",
    /// The event is in use; the errno is [`Errno::Ebusy`].
    Busy: c"Synthetic event is in use",
}

/// The error of a command: an errno, and a message unless memory allocation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynthRefusal {
    /// The errno for the writer.
    pub errno: Errno,
    /// The message for `error_log`.
    pub kind: Option<SynthErr>,
    /// Column of the caret in [`logged`].
    pub at: u16,
}

impl SynthRefusal {
    /// Returns a refusal of `command`. The caret is at the first occurrence of `what` in the command, or at the start
    /// of the command if there is none.
    ///
    /// PARITY: like `errpos()`, searches for the bytes of `what`, which may occur before the mistake.
    pub fn new(errno: Errno, kind: SynthErr, command: &[u8], what: &[u8]) -> Self {
        let command = logged(command);
        let at = match what {
            [] => None,
            _ => find(command, what),
        };

        Self {
            errno,
            kind: Some(kind),
            at: at.and_then(|at| u16::try_from(at).ok()).unwrap_or(0),
        }
    }

    /// Returns a refusal of a whole definition, with the caret at its start.
    pub(super) const fn whole(kind: SynthErr) -> Self {
        Self {
            errno: Errno::Einval,
            kind: Some(kind),
            at: 0,
        }
    }
}

impl From<AllocError> for SynthRefusal {
    fn from(_: AllocError) -> Self {
        Self {
            errno: Errno::Enomem,
            kind: None,
            at: 0,
        }
    }
}
