// SPDX-License-Identifier: GPL-2.0

//! Compiled handlers with their actions.
//!
//! C counterpart: `struct action_data` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//!
//! Plain values. Context: any.

use crate::{
    limits::TRACK_ROWS,
    text::Span,
    tracing_map::When, //
};

use super::{
    Field,
    NUMBER_WORDS, //
};

/// The condition on which an action runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handler {
    /// `onmatch(system.event)`: each hit runs it.
    Match {
        /// The system.
        system: Span,
        /// The event.
        event: Span,
    },
    /// `onmax($v)`, `onchange($v[,DELTA])`, `onover($v,T[,H])`: a hit runs it for whose number of the variable a
    /// condition holds.
    Track {
        /// The text between the parentheses.
        arg: Span,
        /// The variable's index in [`super::Program::vars`].
        var: u8,
        /// The condition.
        when: When,
    },
}

impl Handler {
    /// Returns the word before the parenthesis.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Match { .. } => "onmatch",
            Self::Track { when, .. } => match when {
                When::Larger => "onmax",
                When::Other | When::Apart { .. } => "onchange",
                When::Above { .. } => "onover",
            },
        }
    }
}

/// The effect of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionKind {
    /// `save(..)`: stores a range of [`super::Program::saves`] in the entry.
    Save {
        /// Index of the first of them.
        first: u16,
        /// Their number.
        len: u16,
    },
    /// `snapshot()`: swaps the buffers of the instance.
    Snapshot,
    /// `trace(event, ..)` or `event(..)`: generates the synthetic event from a range of
    /// [`super::Program::args`].
    Trace {
        /// The synthetic event.
        event: Span,
        /// Whether the text has the word `trace`.
        keyword: bool,
        /// The resolver's number for the synthetic event.
        synth: u16,
        /// Index of the first of the parameters.
        first: u16,
        /// Their number.
        len: u16,
    },
}

/// A handler with its action.
#[derive(Clone, Copy, Debug)]
pub struct Action {
    pub(super) handler: Handler,
    pub(super) kind: ActionKind,
    /// The word before the parenthesis.
    pub(super) word: Span,
    /// Index of the first of its parameters in [`super::Program::params`], and their number.
    pub(super) params: (u16, u16),
    pub(super) track: Option<Track>,
}

impl Action {
    /// Returns the condition on which it runs.
    #[inline]
    pub fn handler(&self) -> Handler {
        self.handler
    }

    /// Returns its effect.
    #[inline]
    pub fn kind(&self) -> ActionKind {
        self.kind
    }

    /// Returns the words of the tracked value in an entry; `None` for `onmatch`.
    #[inline]
    pub fn track(&self) -> Option<Track> {
        self.track
    }
}

/// The words of a tracked value in the aux words of an entry: two for the number, and then
/// [`crate::limits::TRACK_ROWS`] rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track {
    /// Index of its first word, an even number.
    pub at: u16,
    /// The words of a row; 0 if the action is not `save()`.
    pub row_words: u16,
}

impl Track {
    /// Returns the number of its words.
    #[inline]
    pub fn words(&self) -> usize {
        usize::from(self.row_words)
            .saturating_mul(TRACK_ROWS)
            .saturating_add(NUMBER_WORDS)
    }
}

/// A parameter of `save()`.
#[derive(Clone, Copy, Debug)]
pub struct Save {
    pub(super) name: Span,
    pub(super) field: Field,
    pub(super) at: u16,
    pub(super) words: u16,
}

impl Save {
    /// Returns the text of the parameter, which is its displayed name.
    #[inline]
    pub fn name(&self) -> Span {
        self.name
    }

    /// Returns the field that is saved.
    #[inline]
    pub fn field(&self) -> &Field {
        &self.field
    }

    /// Returns the index of its first word in the row.
    #[inline]
    pub fn at(&self) -> usize {
        usize::from(self.at)
    }

    /// Returns the number of its words: one for a number, else those of the string or of the frames.
    #[inline]
    pub fn words(&self) -> usize {
        usize::from(self.words)
    }
}

/// A parameter of an [`ActionKind::Trace`].
///
/// Its value is of the class of the synthetic event's field: a number, a string or a stack. Unlike in C
/// it is never an address.
#[derive(Clone, Copy, Debug)]
pub struct Arg {
    pub(super) name: Span,
    pub(super) event: Option<(Span, Span)>,
    pub(super) source: ArgSource,
}

impl Arg {
    /// Returns the text of the parameter, without a preceding event and without `$`.
    #[inline]
    pub fn name(&self) -> Span {
        self.name
    }

    /// Returns the system and the event that precede it in the text, if they do.
    #[inline]
    pub fn event(&self) -> Option<(Span, Span)> {
        self.event
    }

    /// Returns where its value comes from.
    #[inline]
    pub fn source(&self) -> &ArgSource {
        &self.source
    }
}

/// Where the value of a parameter comes from.
#[derive(Clone, Copy, Debug)]
pub enum ArgSource {
    /// The variable of another trigger that [`super::Program::refs`]`[n]` refers to.
    Ref(u8),
    /// The variable [`super::Program::vars`]`[n]` of the trigger itself.
    Own(u8),
    /// A field of the record that the hit is for.
    Field(Field),
}
