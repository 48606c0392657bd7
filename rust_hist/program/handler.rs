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
    /// `onmax($v)`, `onchange($v[,DELTA])`, `onover($v,T[,H])`: each hit runs it whose number of the variable fulfils a
    /// condition.
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
    /// Returns the name of the handler, which precedes its parenthesis.
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
    /// `save(..)`: stores [`super::Program::saves`] in the entry. A trigger has at most one such action.
    Save,
    /// `snapshot()`: swaps the buffers of the instance.
    Snapshot,
    /// `trace(event, ..)` or `event(..)`: generates the synthetic event from a range of [`super::Program::args`].
    Trace {
        /// The synthetic event.
        event: Span,
        /// Whether the text has the word `trace`.
        keyword: bool,
        /// The resolver's number for the synthetic event.
        synth: u16,
        /// Index of the first parameter.
        first: u16,
        /// Number of the parameters.
        len: u16,
    },
}

/// A handler with its action.
#[derive(Clone, Copy, Debug)]
pub struct Action {
    /// The condition on which the action runs.
    pub handler: Handler,
    /// The effect of the action.
    pub kind: ActionKind,
    /// The action's name in the text, before its parenthesis.
    pub(super) word: Span,
    /// Index of the first of the action's parameters in [`super::Program::params`], and their number.
    pub(super) params: (u16, u16),
    /// The words of the tracked value in an entry; `None` for `onmatch`.
    pub track: Option<Track>,
}

/// The place of a tracked value in the extra words of an entry: two words for the number, and then
/// [`crate::limits::TRACK_ROWS`] rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track {
    /// Index of the first word, an even number.
    pub at: u16,
    /// The words of a row; 0 if the action is not `save()`.
    pub row_words: u16,
}

impl Track {
    /// Returns the number of words of the tracked value and its rows.
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
    /// The text of the parameter, which is also its displayed name.
    pub name: Span,
    /// The field that is saved.
    pub field: Field,
    pub(super) at: u16,
    pub(super) words: u16,
}

impl Save {
    /// Returns the index of the parameter's first word in the row.
    #[inline]
    pub fn at(&self) -> usize {
        usize::from(self.at)
    }

    /// Returns the number of words of the parameter in the row: one for a number, else the words of the string or of
    /// the frames.
    #[inline]
    pub fn words(&self) -> usize {
        usize::from(self.words)
    }
}

/// A parameter of an [`ActionKind::Trace`].
///
/// The value is of the same class as the field of the synthetic event: a number, a string or a stack. Unlike in C it is
/// never an address.
#[derive(Clone, Copy, Debug)]
pub struct Arg {
    /// The text of the parameter, without a preceding event and without `$`.
    pub name: Span,
    /// The system and the event that precede the parameter in the text; `None` if they were not typed.
    pub event: Option<(Span, Span)>,
    /// Where the parameter's value comes from.
    pub source: ArgSource,
}

/// The source of a parameter's value.
#[derive(Clone, Copy, Debug)]
pub enum ArgSource {
    /// The variable of another trigger that [`super::Program::refs`]`[n]` refers to.
    Ref(u8),
    /// The variable [`super::Program::vars`]`[n]` of the trigger itself.
    Own(u8),
    /// A field of the record that the hit is for.
    Field(Field),
}
