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
    error::{
        kinds_with_texts,
        Errno,
        Refusal, //
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

/// The error of a command. Columns of carets count in [`logged`].
pub type SynthRefusal = Refusal<SynthErr>;

/// Returns a refusal of `command`. The caret is at the first occurrence of `what` in the command, or at the start of
/// the command if there is none.
///
/// PARITY: like `errpos()`, searches for the bytes of `what`, which may occur before the mistake.
pub fn refusal(errno: Errno, kind: SynthErr, command: &[u8], what: &[u8]) -> SynthRefusal {
    let at = find(logged(command), what).and_then(|at| u16::try_from(at).ok());

    Refusal::new(errno, kind, at.unwrap_or(0))
}

/// Returns a refusal of a whole definition, with the caret at its start.
pub(super) fn whole(kind: SynthErr) -> SynthRefusal {
    Refusal::new(Errno::Einval, kind, 0)
}
