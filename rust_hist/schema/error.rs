// SPDX-License-Identifier: GPL-2.0

//! Why a command on synthetic events is refused.
//!
//! C counterpart: the `ERRORS` table of
//! [`kernel/trace/trace_events_synth.c`](srctree/kernel/trace/trace_events_synth.c).
//! The errno is the writer's, the text is for `error_log`.
//!
//! Context: any.

use core::ffi::CStr;

use super::{
    find,
    logged, //
};
use crate::{
    alloc::AllocError,
    error::{
        kinds_with_texts,
        Errno, //
    },
};

kinds_with_texts! {
    /// What an entry of `error_log` says of a synthetic event.
    SynthErr:
    /// The name of an event or field has other characters than letters, digits and `_`.
    BadName: c"Illegal name",
    /// The command is no definition.
    InvalidCmd: c"Command must be of the form: <name> field[;field] ...",
    /// `dynamic_events` names another group.
    InvalidDynCmd: c"Command must be of the form: s or -:[synthetic/]<name> field[;field] ...",
    /// The name is taken; goes with [`Errno::Eexist`].
    EventExists: c"Event already exists",
    /// More than [`super::FIELDS_MAX`] fields.
    TooManyFields: c"Too many fields",
    /// `unsigned` without a type and a name behind it.
    IncompleteType: c"Incomplete type",
    /// No such type, or no array of it.
    InvalidType: c"Invalid type",
    /// A type without a name.
    InvalidField: c"Invalid field",
    /// What stands in the brackets is no length.
    InvalidArraySpec: c"Invalid array specification",
    // From here on the entries are our own: C has no counterpart.
    /// There is no event of that name; goes with [`Errno::Enoent`].
    NotFound: c"No such synthetic event",
    /// The event is used; goes with [`Errno::Ebusy`].
    Busy: c"Synthetic event is in use",
}

/// Why a command is refused: an errno, and an entry unless there is just no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What the writer gets.
    pub errno: Errno,
    /// What `error_log` says.
    pub kind: Option<SynthErr>,
    /// Column of the caret in [`logged`].
    pub at: u16,
}

impl Refusal {
    /// A refusal of `command` whose caret is where `what` first occurs in it, else at its start.
    ///
    /// PARITY: `errpos()`, so `what` may occur earlier than where it was found.
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

    /// A refusal of a definition, with the caret at its start.
    pub(super) const fn whole(kind: SynthErr) -> Self {
        Self {
            errno: Errno::Einval,
            kind: Some(kind),
            at: 0,
        }
    }
}

impl From<AllocError> for Refusal {
    fn from(_: AllocError) -> Self {
        Self {
            errno: Errno::Enomem,
            kind: None,
            at: 0,
        }
    }
}
