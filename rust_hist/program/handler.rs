// SPDX-License-Identifier: GPL-2.0

//! Handlers with their actions, as they are compiled.
//!
//! C counterpart: `struct action_data` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//!
//! Plain values. Context: any.

use crate::{
    limits::TRACK_ROWS,
    text::Span, //
};

use super::{
    Field,
    NUMBER_WORDS, //
};

/// What makes an action run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handler {
    /// `onmatch(system.event)`: every hit.
    Match {
        /// The system.
        system: Span,
        /// The event.
        event: Span,
    },
    /// `onmax($v)`: a new maximum.
    Max {
        /// What is typed between the parentheses.
        arg: Span,
        /// The index in [`super::Program::vars`].
        var: u8,
    },
    /// `onchange($v)`: another value than before.
    Change {
        /// What is typed between the parentheses.
        arg: Span,
        /// The index in [`super::Program::vars`].
        var: u8,
    },
}

/// What an action does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Do {
    /// `save(..)`: keeps these of [`super::Program::saves`] in the entry.
    Save {
        /// The first of them.
        first: u16,
        /// How many.
        len: u16,
    },
    /// `snapshot()`
    Snapshot,
    /// `trace(event, ..)` or `event(..)`: generates the synthetic event from these of
    /// [`super::Program::args`].
    Trace {
        /// The synthetic event.
        event: Span,
        /// Whether the word `trace` is typed.
        keyword: bool,
        /// The resolver's number for the synthetic event.
        synth: u16,
        /// The first of them.
        first: u16,
        /// How many.
        len: u16,
    },
}

/// A handler with its action.
#[derive(Clone, Copy, Debug)]
pub struct Action {
    pub(super) handler: Handler,
    pub(super) act: Do,
    /// The word before the parenthesis, as typed.
    pub(super) word: Span,
    /// Its parameters in [`super::Program::params`]: the first, and how many.
    pub(super) params: (u16, u16),
    pub(super) track: Option<Track>,
}

impl Action {
    /// What makes it run.
    #[inline]
    pub fn handler(&self) -> Handler {
        self.handler
    }

    /// What it does.
    #[inline]
    pub fn act(&self) -> Do {
        self.act
    }

    /// Where the tracked value is kept; that of every handler but `onmatch`.
    #[inline]
    pub fn track(&self) -> Option<Track> {
        self.track
    }
}

/// The place of a tracked value in the extra words of an entry: a number's two words, then
/// [`crate::limits::TRACK_ROWS`] rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track {
    /// Its first word, even.
    pub at: u16,
    /// The words of a row; 0 where nothing is saved.
    pub row_words: u16,
}

impl Track {
    /// All its words.
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
    /// The parameter as typed, which is its displayed name.
    #[inline]
    pub fn name(&self) -> Span {
        self.name
    }

    /// What is saved.
    #[inline]
    pub fn field(&self) -> &Field {
        &self.field
    }

    /// Its first word in the row.
    #[inline]
    pub fn at(&self) -> usize {
        usize::from(self.at)
    }

    /// Its words there: one of a number, those of the string or the frames of the stack.
    #[inline]
    pub fn words(&self) -> usize {
        usize::from(self.words)
    }
}

/// What one parameter of a [`Do::Trace`] is.
///
/// Its value is read as what it is, number, string or stack, which is what the field of the synthetic
/// event takes: never as an address.
#[derive(Clone, Copy, Debug)]
pub struct Arg {
    pub(super) name: Span,
    pub(super) event: Option<(Span, Span)>,
    pub(super) source: ArgSource,
}

impl Arg {
    /// The parameter as typed, without the event before it and without `$`.
    #[inline]
    pub fn name(&self) -> Span {
        self.name
    }

    /// The system and the event before it, if they were typed.
    #[inline]
    pub fn event(&self) -> Option<(Span, Span)> {
        self.event
    }

    /// Where it comes from.
    #[inline]
    pub fn source(&self) -> &ArgSource {
        &self.source
    }
}

/// Where a parameter comes from.
#[derive(Clone, Copy, Debug)]
pub enum ArgSource {
    /// The variable of another trigger behind [`super::Program::refs`]`[n]`.
    Ref(u8),
    /// The trigger's own variable [`super::Program::vars`]`[n]`.
    Own(u8),
    /// A field of the record at hand.
    Field(Field),
}
