// SPDX-License-Identifier: GPL-2.0

//! The parsed command, as spans of its text, and the text, which computes the columns of carets.
//!
//! C counterpart: `struct hist_trigger_attrs`, `last_cmd` and `errpos()` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//!
//! Context: process.

use core::num::NonZeroU64;

use crate::{
    bucket::{
        Buckets,
        Scale, //
    },
    error::{
        ErrKind,
        Errno,
        Refusal, //
    },
    expiry::Expiry,
    limits::{
        List,
        ACTIONS_MAX,
        BITS_DEFAULT,
        QUANTILES_MAX,
        VARS_MAX, //
    },
    overhead::Budget,
    rate::Limit,
    stat::Stat,
    text::{
        lex::{
            is_space,
            Split, //
        },
        Span, //
    }, //
};

use super::Quantile;

/// The trace clock of a trigger that uses time stamps and has no `clock=`.
pub(crate) const CLOCK: &[u8] = b"global";

/// Parameters with an equals sign that a variable's name may be a misspelling of. Shorter parameters are like too many
/// names.
pub(crate) const PARAMETERS: [&[u8]; 7] = [
    b"keys", b"vals", b"values", b"sort", b"size", b"name", b"clock",
];

/// The two halves of the modifier `.sym-offset`, whose dash must not be taken for a minus sign.
const SYM: &[u8] = b".sym";
const OFFSET: &[u8] = b"-offset";

/// `field.MODIFIER`: how a column is computed or shown. A field has at most one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Modifier {
    /// No modifier.
    #[default]
    None,
    /// `.hex`
    Hex,
    /// `.sym`
    Sym,
    /// `.sym-offset`
    SymOffset,
    /// `.execname`, only for `common_pid`
    Execname,
    /// `.syscall`
    Syscall,
    /// `.log2`, `.log2=N`, which a hit computes
    Log2(Scale),
    /// `.buckets=N`, which a hit computes
    Buckets(NonZeroU64),
    /// `.usecs`
    Usecs,
    /// `.percent`, only for values
    Percent,
    /// `.graph`, only for values
    Graph,
    /// `.sum`, `.min`, `.max`, `.avg` and `.stddev`, only for values
    Stat(Stat),
    /// `.stacktrace`, only for stacks
    Stacktrace,
}

impl Modifier {
    /// Returns the buckets into which the modifier puts numbers; `None` if it puts them into none.
    pub fn buckets(self) -> Option<Buckets> {
        match self {
            Self::Log2(scale) => Some(Buckets::Log2(scale)),
            Self::Buckets(width) => Some(Buckets::Width(width)),
            _ => None,
        }
    }
}

/// The text of a command as `error_log` shows it: the prefix, a colon, and the parsed text.
///
/// [`CommandText::column`] computes the columns of carets, which count from the first byte of the prefix.
#[derive(Clone, Copy, Debug)]
pub struct CommandText<'t> {
    prefix: &'t [u8],
    text: &'t [u8],
    /// The parameters, without the filter.
    params: Span,
}

impl<'t> CommandText<'t> {
    pub(super) fn new(prefix: &'t [u8], text: &'t [u8], params: Span) -> Self {
        Self {
            prefix,
            text,
            params,
        }
    }

    /// Returns the text after the prefix and the colon.
    pub fn text(&self) -> &'t [u8] {
        self.text
    }

    /// Returns byte `at` of the text, but `X` for the dash of `.sym-offset` in the parameters.
    ///
    /// PARITY: `event_hist_trigger_parse()` overwrites that dash with `X`, so a user may also type `X`.
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

    /// Returns the bytes of `span` as [`CommandText::byte`] reads them.
    pub(super) fn bytes(&self, span: Span) -> impl Iterator<Item = u8> + Clone + '_ {
        (span.start..span.end.min(self.text.len())).map(|at| self.byte(at))
    }

    /// Returns whether the bytes of `span` are `word`.
    pub(super) fn is(&self, span: Span, word: &[u8]) -> bool {
        self.bytes(span).eq(word.iter().copied())
    }

    /// Returns whether the bytes of `span` begin with `word`.
    pub(super) fn begins(&self, span: Span, word: &[u8]) -> bool {
        self.bytes(span.first(word.len())).eq(word.iter().copied())
    }

    /// Returns the column of the caret for `span`, which is the column of its first byte.
    ///
    /// PARITY: `errpos()` searches for the bytes of the span, so the caret of `sort=b` for an unknown `b` may point
    /// into an earlier word.
    pub fn column(&self, span: Span) -> u16 {
        let at = self
            .prefix
            .len()
            .saturating_add(1)
            .saturating_add(span.start);

        u16::try_from(at).unwrap_or(u16::MAX)
    }

    /// Returns a refusal: `kind`, with the caret at the start of `span`.
    pub fn explain(&self, errno: Errno, kind: ErrKind, span: Span) -> Refusal {
        Refusal::new(errno, kind, self.column(span))
    }

    /// Returns the refusal of most mistakes: `EINVAL`, and `kind` with the caret at the start of `span`.
    pub fn refuse(&self, kind: ErrKind, span: Span) -> Refusal {
        self.explain(Errno::Einval, kind, span)
    }
}

/// The change that a command makes to an existing trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// `pause`
    Pause,
    /// `cont` or `continue`
    Continue,
    /// `clear`
    Clear,
}

/// The place in a command where a field is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// In `keys=`.
    Key,
    /// In `vals=`.
    Value,
    /// An expression for a variable, or for a parameter of an action.
    Variable,
    /// In an expression.
    Operand,
}

impl Usage {
    /// Returns whether `.percent` and `.graph` are accepted here.
    ///
    /// PARITY: `parse_expr()` does not know where the expression is used, so C accepts them for every operand.
    pub(super) fn allows_shares(self) -> bool {
        matches!(self, Self::Value | Self::Operand)
    }
}

/// A parsed trigger command: spans of its text.
#[derive(Clone, Copy, Debug)]
pub struct HistSpec<'t> {
    pub(crate) command: CommandText<'t>,
    pub(crate) keys: Span,
    pub(crate) vals: Option<Span>,
    pub(crate) sort: Option<Span>,
    /// The text inside the parentheses of `join()`.
    pub(crate) join: Option<Span>,
    /// `name=` with the text after it.
    pub(crate) name: Option<Span>,
    /// The text after `clock=`, trimmed.
    pub(crate) clock: Option<Span>,
    pub(crate) filter: Option<Span>,
    /// log2 of the number of entries; for `size=A..B` log2 of `A`.
    pub(crate) bits: u32,
    /// log2 of the number of entries that the table may grow to: of `B` in `size=A..B`.
    pub(crate) grows_to: Option<u32>,
    /// The text after `size=`.
    pub(crate) size: Span,
    /// The word `others`.
    pub(crate) others: Option<Span>,
    /// The time of `expire(..)`; if it was given several times, of the last one.
    pub(crate) expiry: Option<Expiry>,
    /// The tokens that define variables: `v=expr[,v=expr ..]`.
    pub(crate) vars: List<Span, VARS_MAX>,
    /// The tokens of handlers with their actions: `onmax($v).save(..)`.
    pub(crate) actions: List<Span, ACTIONS_MAX>,
    /// `quantiles(..)`, and the quantiles in its parentheses.
    pub(crate) quantiles: (Span, List<Quantile, QUANTILES_MAX>),
    /// `limit(..)`, and the parsed limit.
    pub(crate) limit: Option<(Span, Limit)>,
    /// Whether `overhead` was given, and the budget of `overhead(P%)`.
    pub(crate) overhead: bool,
    pub(crate) budget: Option<Budget>,
    pub(crate) pause: bool,
    pub(crate) cont: bool,
    pub(crate) clear: bool,
    pub(crate) nohitcount: bool,
    /// Whether the text ends in the state `[paused]`, as a trigger line does.
    pub(super) paused: bool,
}

impl<'t> HistSpec<'t> {
    /// Returns a specification with the text and the filter, and defaults for all else.
    pub(super) fn new(command: CommandText<'t>, filter: Option<Span>) -> Self {
        Self {
            command,
            keys: Span::default(),
            vals: None,
            sort: None,
            join: None,
            name: None,
            clock: None,
            filter,
            bits: BITS_DEFAULT,
            grows_to: None,
            size: Span::default(),
            others: None,
            expiry: None,
            vars: List::new(),
            actions: List::new(),
            quantiles: (Span::default(), List::new()),
            limit: None,
            overhead: false,
            budget: None,
            pause: false,
            cont: false,
            clear: false,
            nohitcount: false,
            paused: false,
        }
    }

    /// Returns whether a new trigger starts paused; `timestamps` says whether it uses time stamps.
    ///
    /// PARITY: C ignores the clock of a trigger without time stamps, and the text after that clock: such a trigger line
    /// does not carry its state.
    pub(crate) fn starts_paused(&self, timestamps: bool) -> bool {
        let ends_in_clock = self
            .clock
            .is_some_and(|clock| self.filter.is_none() && clock.end == self.command.params.end);

        self.pause || self.paused && (timestamps || !ends_in_clock)
    }

    /// Returns the change that the command makes to an existing trigger, or `None` if it creates one.
    ///
    /// If the command asks for several changes, only the first one in the order of [`Update`] is made.
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

    /// Returns the refusal of `name=` for a trigger that does not match the existing one of that name.
    pub fn refuse_name(&self) -> Refusal {
        self.command
            .refuse(ErrKind::NamedMismatch, self.name.unwrap_or_default())
    }

    /// Returns the refusal of a filter that names a variable: it has a dollar sign in place of a field's name.
    ///
    /// PARITY: C says that there is no such field.
    pub fn refuse_filter(&self) -> Option<Refusal> {
        let filter = self.filter?;
        let mut quote = None;
        let mut before = b'(';

        for (at, &byte) in filter.of(self.command.text()).iter().enumerate() {
            match (quote, byte) {
                (None, b'$') if matches!(before, b'(' | b'!' | b'&' | b'|') => {
                    return Some(self.command.refuse(ErrKind::FilterVar, filter.skip(at)));
                }
                (None, b'"' | b'\'') => quote = Some(byte),
                (Some(end), _) if end == byte => quote = None,
                _ => (),
            }
            if !is_space(byte) {
                before = byte;
            }
        }
        None
    }

    /// Returns the refusal of `clock=` for a trace clock that does not exist.
    pub fn refuse_clock(&self) -> Refusal {
        match self.clock {
            Some(clock) => self.command.refuse(ErrKind::SetClockFail, clock),
            None => Refusal::new(Errno::Einval, ErrKind::SetClockFail, 0),
        }
    }

    /// Returns the comma-separated items of `list`.
    pub(crate) fn items(&self, list: Span) -> Split<'t> {
        Split::new(self.command.text(), list, b',')
    }

    /// Returns the parameters that begin with `prefix`.
    pub(crate) fn params<'p>(&self, prefix: &'p [u8]) -> impl Iterator<Item = Span> + 'p
    where
        't: 'p,
    {
        let CommandText { text, params, .. } = self.command;

        Split::new(text, params, b':').filter(move |token| token.of(text).starts_with(prefix))
    }

    /// Returns whether `span` is `word`.
    pub(crate) fn is(&self, span: Span, word: &[u8]) -> bool {
        self.command.is(span, word)
    }
}
