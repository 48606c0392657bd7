// SPDX-License-Identifier: GPL-2.0

//! The parsed command: pieces of its text, and the text itself with its carets.
//!
//! C counterpart: `struct hist_trigger_attrs`, `last_cmd` and `errpos()` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//!
//! Context: process.

use core::num::NonZeroU64;

use crate::{
    error::{
        ErrKind,
        Errno,
        Refusal, //
    },
    limits::{
        List,
        ACTIONS_MAX,
        BITS_DEFAULT,
        VARS_MAX, //
    },
    text::{
        lex::Split,
        Span, //
    }, //
};

/// The clock of a trigger with stamps that names none.
pub(crate) const CLOCK: &[u8] = b"global";

/// The words that parsing rewrites before it looks for operators, so that their dash is none.
const SYM: &[u8] = b".sym";
const OFFSET: &[u8] = b"-offset";

/// `field.MODIFIER`: how a column is computed or shown. A field has one at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Modifier {
    /// None.
    #[default]
    None,
    /// `.hex`
    Hex,
    /// `.sym`
    Sym,
    /// `.sym-offset`
    SymOffset,
    /// `.execname`, of `common_pid` alone
    Execname,
    /// `.syscall`
    Syscall,
    /// `.log2`; the hit computes it
    Log2,
    /// `.buckets=N`; the hit computes it
    Buckets(NonZeroU64),
    /// `.usecs`
    Usecs,
    /// `.percent`, of values alone
    Percent,
    /// `.graph`, of values alone
    Graph,
    /// `.stacktrace`, of stack fields alone
    Stacktrace,
}

/// A command as `error_log` shows it: the prefix, a colon, the text.
#[derive(Clone, Copy, Debug)]
pub struct Command<'t> {
    prefix: &'t [u8],
    text: &'t [u8],
    /// Where the parameters end and the filter begins.
    params: Span,
    /// Carets stand under the very piece, not where its bytes stand first.
    exact: bool,
}

impl<'t> Command<'t> {
    pub(super) fn new(prefix: &'t [u8], text: &'t [u8], params: Span) -> Self {
        Self {
            prefix,
            text,
            params,
            exact: false,
        }
    }

    /// The text behind the prefix and the colon.
    pub fn text(&self) -> &'t [u8] {
        self.text
    }

    /// Byte `at` of the text, with the dash of `.sym-offset` in the parameters read as `X`.
    ///
    /// PARITY: `event_hist_trigger_parse()` overwrites that dash, so typing the `X` works too, and
    /// a caret for a piece with such a dash finds nothing.
    pub(super) fn byte(&self, at: usize) -> u8 {
        let byte = self.text.get(at).copied().unwrap_or(0);

        if byte != b'-' || !(self.params.start..self.params.end).contains(&at) {
            return byte;
        }
        let before = self.text.get(..at).unwrap_or(&[]);
        let from = self.text.get(at..).unwrap_or(&[]);

        if before.ends_with(SYM) && from.starts_with(OFFSET) {
            b'X'
        } else {
            byte
        }
    }

    /// The bytes of `span` as [`Command::byte`] reads them.
    pub(super) fn bytes(&self, span: Span) -> impl Iterator<Item = u8> + Clone + '_ {
        (span.start..span.end.min(self.text.len())).map(|at| self.byte(at))
    }

    /// Whether the bytes of `span` are `word`.
    pub(super) fn is(&self, span: Span, word: &[u8]) -> bool {
        self.bytes(span).eq(word.iter().copied())
    }

    /// Whether the bytes of `span` begin with `word`.
    pub(super) fn begins(&self, span: Span, word: &[u8]) -> bool {
        self.bytes(span.first(word.len())).eq(word.iter().copied())
    }

    /// The column of the first place in the command where `needle` stands; 0 if it stands nowhere.
    fn find(&self, needle: impl Iterator<Item = u8> + Clone) -> u16 {
        let mut command = self.prefix.iter().chain(b":").chain(self.text).copied();
        let mut at = 0u16;

        loop {
            let mut here = command.clone();

            if needle.clone().all(|byte| here.next() == Some(byte)) {
                return at;
            }
            if command.next().is_none() {
                return 0;
            }
            at = at.saturating_add(1);
        }
    }

    /// The column of the caret for the piece `span`: where its bytes stand first.
    ///
    /// PARITY: `errpos()` knows the piece's bytes alone, not its place; the caret of `sort=b` for
    /// an unknown `b` may point into the word before. In handlers and actions, whose parameters are names
    /// that are typed before most of the time, ours stands under the piece.
    pub fn column(&self, span: Span) -> u16 {
        if self.exact {
            self.column_at(span.start)
        } else {
            self.find(self.bytes(span))
        }
    }

    /// As [`Command::column`], for a word that need not be typed.
    pub fn column_of(&self, word: &[u8]) -> u16 {
        self.find(word.iter().copied())
    }

    /// The column of the byte `at` of the text, for entries of our own.
    pub fn column_at(&self, at: usize) -> u16 {
        let at = self.prefix.len().saturating_add(1).saturating_add(at);

        u16::try_from(at).unwrap_or(u16::MAX)
    }

    /// A refusal that C does not explain: `kind`, with the caret where `span` begins.
    pub fn explain(&self, errno: Errno, kind: ErrKind, span: Span) -> Refusal {
        Refusal::new(errno, kind, self.column_at(span.start))
    }

    /// The refusal that C answers to most mistakes: EINVAL, and `kind` with the caret at `span`.
    pub fn refuse(&self, kind: ErrKind, span: Span) -> Refusal {
        Refusal::new(Errno::Einval, kind, self.column(span))
    }
}

/// The change a command asks of a trigger that exists already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// `pause`
    Pause,
    /// `cont` or `continue`
    Continue,
    /// `clear`
    Clear,
}

/// Where a field is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// In `keys=`.
    Key,
    /// In `vals=`.
    Value,
    /// As a variable, or in `save()`.
    Variable,
    /// In an expression.
    Operand,
}

impl Usage {
    /// Whether `.percent` and `.graph` are read here.
    ///
    /// PARITY: `parse_expr()` forgets where the expression stands, so an operand may have them.
    pub(super) fn has_shares(self) -> bool {
        matches!(self, Self::Value | Self::Operand)
    }
}

/// A parsed trigger command: pieces of its text.
#[derive(Clone, Copy, Debug)]
pub struct HistSpec<'t> {
    pub(crate) command: Command<'t>,
    pub(crate) keys: Span,
    pub(crate) vals: Option<Span>,
    pub(crate) sort: Option<Span>,
    /// `name=` with what follows it.
    pub(crate) name: Option<Span>,
    /// What follows `clock=`, without blanks around.
    pub(crate) clock: Option<Span>,
    pub(crate) filter: Option<Span>,
    pub(crate) bits: u32,
    /// Tokens of variables: `v=expr[,v=expr ..]`.
    pub(crate) vars: List<Span, VARS_MAX>,
    /// Tokens of handlers: `onmax($v).save(..)`.
    pub(crate) actions: List<Span, ACTIONS_MAX>,
    pub(crate) pause: bool,
    pub(crate) cont: bool,
    pub(crate) clear: bool,
    pub(crate) nohitcount: bool,
    /// The text ends in the state `[paused]`, as a printed line does.
    pub(super) paused: bool,
}

impl<'t> HistSpec<'t> {
    /// A specification of which only the text and the filter are known.
    pub(super) fn new(command: Command<'t>, filter: Option<Span>) -> Self {
        Self {
            command,
            keys: Span::default(),
            vals: None,
            sort: None,
            name: None,
            clock: None,
            filter,
            bits: BITS_DEFAULT,
            vars: List::new(),
            actions: List::new(),
            pause: false,
            cont: false,
            clear: false,
            nohitcount: false,
            paused: false,
        }
    }

    /// The same, whose carets stand under the very pieces.
    pub(crate) fn exact(mut self) -> Self {
        self.command.exact = true;
        self
    }

    /// Whether a new trigger begins stopped; `stamps` says whether it has time stamps.
    ///
    /// PARITY: without them C does not look at the clock, nor at what stands behind it.
    pub(crate) fn starts_paused(&self, stamps: bool) -> bool {
        let behind_clock = self
            .clock
            .is_some_and(|clock| self.filter.is_none() && clock.end == self.command.params.end);

        self.pause || self.paused && (stamps || !behind_clock)
    }

    /// What the command asks of a trigger like it that exists; `None`: nothing, it is a new one.
    ///
    /// Where several are asked, the first in the order of [`Update`] acts alone.
    pub fn update(&self) -> Option<Update> {
        if self.pause {
            Some(Update::Pause)
        } else if self.cont {
            Some(Update::Continue)
        } else if self.clear {
            Some(Update::Clear)
        } else {
            None
        }
    }

    /// The refusal of `name=`: a trigger of that name exists and is another one.
    pub fn refuse_name(&self) -> Refusal {
        self.command
            .refuse(ErrKind::NamedMismatch, self.name.unwrap_or_default())
    }

    /// The refusal of `clock=`: there is no such clock.
    pub fn refuse_clock(&self) -> Refusal {
        match self.clock {
            Some(clock) => self.command.refuse(ErrKind::SetClockFail, clock),
            None => Refusal::new(
                Errno::Einval,
                ErrKind::SetClockFail,
                self.command.column_of(CLOCK),
            ),
        }
    }

    /// The items of a list in the text.
    pub(crate) fn items(&self, list: Span) -> Split<'t> {
        Split::new(self.command.text(), list, b',')
    }

    /// Whether `span` is `word`.
    pub(crate) fn is(&self, span: Span, word: &[u8]) -> bool {
        self.command.is(span, word)
    }
}
