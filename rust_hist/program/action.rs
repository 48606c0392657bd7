// SPDX-License-Identifier: GPL-2.0

//! The compiler of handlers and actions.
//!
//! C counterpart: `parse_actions()`, `action_parse()`, `create_actions()`, `track_data_create()` and
//! `create_field_var()` of [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c). Handlers are
//! parsed before anything else is compiled, since references search their events, and compiled after everything else,
//! when a new trigger is about to be created.
//!
//! Context: process, may sleep.

use crate::{
    error::{
        ErrKind,
        Errno,
        Refusal, //
    },
    lang::{
        HistSpec,
        Usage,
        ON_CHANGE,
        ON_MATCH,
        ON_MAX,
        ON_OVER, //
    },
    limits::{
        PARAMS_MAX,
        REFS_MAX,
        VARS_MAX, //
    },
    text::{
        lex::{
            number,
            trim,
            Split, //
        },
        Span, //
    },
    tracing_map::{
        Order,
        When, //
    }, //
};

use super::{
    bytes::widen,
    compile::Compiler,
    resolver::Resolver,
    types::part,
    var::{
        even,
        take, //
    },
    Action,
    ActionKind,
    Field,
    Handler,
    Kind,
    Program,
    Save,
    Track, //
};

/// The prefixes of handlers that track a variable, with their conditions, into which [`Compiler::condition`] puts the
/// numbers.
const TRACKS: [(&[u8], When); 3] = [
    (ON_MAX, When::Larger),
    (ON_CHANGE, When::Other),
    (
        ON_OVER,
        When::Above {
            limit: 0,
            back: 0,
            order: Order::UNSIGNED,
        },
    ),
];

/// Returns the name of the variable that C uses for the tracked value, or would use if it had such a handler.
pub(super) fn hidden_var(when: When) -> &'static [u8] {
    match when {
        When::Larger => b"__max",
        When::Other | When::Apart { .. } => b"__change",
        When::Above { .. } => b"__over",
    }
}

impl Handler {
    /// Returns the text and the index of the tracked variable.
    pub(super) fn tracked(&self) -> Option<(Span, u8)> {
        match *self {
            Self::Match { .. } => None,
            Self::Track { arg, var, .. } => Some((arg, var)),
        }
    }
}

impl Compiler<'_, '_> {
    /// Parses all handlers with their actions.
    #[inline(never)]
    pub(super) fn parse_actions(&mut self) -> Result<(), Refusal> {
        for &token in self.spec.actions.as_slice() {
            let bytes = token.of(self.text);
            let tracks = TRACKS.iter().find(|(word, _)| bytes.starts_with(word));
            let span = token.skip(tracks.map_or(ON_MATCH, |(word, _)| word).len());
            let (arg, Some(rest)) = self.split(span, b')') else {
                return Err(self.refuse(ErrKind::NoClosingParen, span));
            };
            let handler = match tracks {
                Some(&(_, when)) => Handler::Track { arg, var: 0, when },
                None => self.parse_onmatch(arg)?,
            };
            let action = self.parse_action(handler, rest)?;

            self.program.actions.push(action)?;
        }
        Ok(())
    }

    /// Splits at the first `byte`: returns what precedes it, and what follows it if it occurs.
    fn split(&self, span: Span, byte: u8) -> (Span, Option<Span>) {
        let mut parts = Split::new(self.text, span, byte);

        (parts.next().unwrap_or(span), parts.rest())
    }

    fn parse_onmatch(&self, name: Span) -> Result<Handler, Refusal> {
        let (system, Some(event)) = self.split(name, b'.') else {
            return Err(self.refuse(ErrKind::SubsysNotFound, name));
        };

        if !self
            .event
            .event_exists(system.of(self.text), event.of(self.text))
        {
            return Err(self.refuse(ErrKind::InvalidSubsysEvent, event));
        }
        Ok(Handler::Match { system, event })
    }

    /// Parses `.word(param, ..)`, which follows `handler`.
    ///
    /// PARITY: like `action_parse()`, it searches for the first dot, the next opening and the next closing
    /// parenthesis, and ignores everything else.
    fn parse_action(&mut self, handler: Handler, span: Span) -> Result<Action, Refusal> {
        let missing = || Refusal::new(Errno::Einval, ErrKind::ActionNotFound, 0);
        let (word, list) = self.split(self.split(span, b'.').1.ok_or_else(missing)?, b'(');
        let (list, rest) = self.split(list.ok_or_else(missing)?, b')');
        let first = narrow(self.program.params.len())?;
        let mut kind = self.action_kind(word)?;

        match &mut kind {
            ActionKind::Save => self.parse_params(list, None)?,
            ActionKind::Snapshot if rest.is_none() => {
                return Err(self.refuse(ErrKind::NoClosingParen, list));
            }
            ActionKind::Snapshot => (),
            ActionKind::Trace { event, keyword, .. } => {
                self.parse_params(list, keyword.then_some(event))?;
            }
        }
        if let (Handler::Match { .. }, ActionKind::Save | ActionKind::Snapshot) = (handler, kind) {
            return Err(self.refuse(ErrKind::ActionMismatch, word));
        }

        let len = narrow(self.program.params.len())?.saturating_sub(first);

        Ok(Action {
            handler,
            kind,
            word,
            params: (first, len),
            track: None,
        })
    }

    /// Returns the action for `word`, a keyword or else the name of a synthetic event, still without parameters.
    ///
    /// PARITY: `action_parse()` compares only the start of the word, so C cannot generate an event called
    /// `saved` or `trace_lat`.
    fn action_kind(&mut self, word: Span) -> Result<ActionKind, Refusal> {
        let typed = word.of(self.text);
        let trace = |keyword| ActionKind::Trace {
            event: word,
            keyword,
            synth: 0,
            first: 0,
            len: 0,
        };
        let keywords: [(&[u8], _); 3] = [
            (b"save", ActionKind::Save),
            (b"snapshot", ActionKind::Snapshot),
            (b"trace", trace(true)),
        ];
        let mut keywords = keywords.into_iter();

        match keywords.find(|(prefix, _)| typed.starts_with(prefix)) {
            Some((prefix, kind)) if typed == prefix || self.event.synth(typed)?.is_none() => {
                Ok(kind)
            }
            _ => Ok(trace(false)),
        }
    }

    /// Parses a list of parameters. If `event` is given, the first parameter is stored there.
    fn parse_params(&mut self, list: Span, mut event: Option<&mut Span>) -> Result<(), Refusal> {
        let mut count = 0usize;

        for item in self.spec.items(list) {
            if count >= PARAMS_MAX {
                return Err(Refusal::new(Errno::Einval, ErrKind::TooManyParams, 0));
            }

            let param = trim(self.text, item);

            // PARITY: `parse_action_params()` refuses every parameter of one byte.
            if matches!(param.of(self.text), b"" | b"$") {
                return Err(self.refuse(ErrKind::InvalidParam, param));
            }
            if let Some(event) = event.take() {
                *event = param;
                continue;
            }
            count = count.saturating_add(1);
            self.program.params.push(param)?;
        }
        Ok(())
    }

    /// Compiles one action.
    fn create_action(&mut self, action: &mut Action) -> Result<(), Refusal> {
        if let Handler::Track { arg, when, .. } = action.handler {
            self.create_tracked(action, arg, when)?;
        }

        let row_words = match action.kind {
            ActionKind::Save => self.create_save(action)?,
            ActionKind::Snapshot => 0,
            ActionKind::Trace { event, keyword, .. } => {
                action.kind = self.create_trace(action, event, keyword)?;
                0
            }
        };

        if action.handler.tracked().is_some() {
            self.place_track(action, row_words)?;
        }
        Ok(())
    }

    /// Assigns the tracked value its words in an entry.
    fn place_track(&mut self, action: &mut Action, row_words: u16) -> Result<(), Refusal> {
        let mut track = Track {
            at: self.program.aux_words,
            row_words,
        };
        let mut end = track.at;

        take(&mut end, track.words())?;
        track.at = core::mem::replace(&mut self.program.aux_words, even(end));
        action.track = Some(track);
        Ok(())
    }

    /// Looks up the variable that a handler tracks.
    fn create_tracked(
        &mut self,
        action: &mut Action,
        arg: Span,
        when: When,
    ) -> Result<(), Refusal> {
        // `onmax()` has one parameter, as in C: the whole argument.
        let (name, numbers) = match when {
            When::Larger => (arg, None),
            When::Other | When::Apart { .. } | When::Above { .. } => self.split(arg, b','),
        };

        if !name.of(self.text).starts_with(b"$") {
            return Err(self.refuse(ErrKind::OnxNotVar, arg));
        }

        let name = name.skip(1);
        let Some(index) = self.program.own_var(name.of(self.text), self.text) else {
            return Err(self.refuse(ErrKind::OnxVarNotFound, name));
        };

        let var = self.program.vars.get(usize::from(index));
        let field = var.map_or_else(Field::default, |var| var.field);

        // PARITY: C accepts a string and compares addresses.
        if field.kind != Kind::Number {
            return Err(self.refuse(ErrKind::OnxNotNumber, arg));
        }
        let order = match field.may_be_negative() {
            true => Order::SIGNED,
            false => Order::UNSIGNED,
        };
        let when = self.condition(when, arg, numbers, order)?;

        if !self.program.is_tracked(index) && self.program.references() >= REFS_MAX {
            return Err(self.too_many_refs(arg));
        }

        if self.is_taken(hidden_var(when)) || self.program.variables() >= VARS_MAX {
            return Err(Refusal::new(Errno::Einval, ErrKind::OnxVarCreateFail, 0));
        }
        action.handler = Handler::Track {
            arg,
            var: index,
            when,
        };
        self.program.tracked = self.program.tracked.saturating_add(1);
        Ok(())
    }

    /// Returns the condition `when` with the `numbers` after the variable in the handler's argument `arg`.
    fn condition(
        &self,
        when: When,
        arg: Span,
        numbers: Option<Span>,
        order: Order,
    ) -> Result<When, Refusal> {
        match (when, numbers) {
            (When::Above { .. }, None) => Err(self.refuse(ErrKind::InvalidThreshold, arg)),
            (When::Above { .. }, Some(numbers)) => {
                let (over, below) = self.split(numbers, b',');
                let limit = ranked(trim(self.text, over).of(self.text), order)
                    .ok_or(self.refuse(ErrKind::InvalidThreshold, over))?;
                let back = below.map_or(Some(limit), |below| {
                    limit.checked_sub(number(trim(self.text, below).of(self.text)).ok()?)
                });

                back.map(|back| When::Above { limit, back, order })
                    .ok_or(self.refuse(ErrKind::InvalidHysteresis, below.unwrap_or(arg)))
            }
            (_, None) => Ok(when),
            (_, Some(numbers)) => match number(trim(self.text, numbers).of(self.text)) {
                Ok(by @ 1..) => Ok(When::Apart { by, order }),
                _ => Err(self.refuse(ErrKind::InvalidDelta, numbers)),
            },
        }
    }

    /// Compiles a parameter that is a field of the event. C creates a variable of the same name for the field, so the
    /// name must not be in use; `has_space` says whether C could add a variable.
    pub(super) fn field_var(&mut self, name: Span, has_space: bool) -> Result<Field, Refusal> {
        let at = self.command.column(self.seen(name));
        let parsed = self.atom(name, Usage::Variable)?;

        if !has_space || self.is_taken(parsed.seen.of(self.text)) {
            return Err(Refusal::new(Errno::Einval, ErrKind::VarCreateFindFail, at));
        }
        Ok(parsed.field)
    }

    /// Compiles the parameters of `save()`; returns the number of words of a row.
    fn create_save(&mut self, action: &Action) -> Result<u16, Refusal> {
        if !self.program.saves.is_empty() {
            return Err(Refusal::new(Errno::Eexist, ErrKind::TooManySaveActions, 0));
        }

        let (first, len) = action.params;
        let mut words = 0;

        for at in first..first.saturating_add(len) {
            let Some(&name) = self.program.params.get(usize::from(at)) else {
                break;
            };
            let has_space = self.program.variables() < VARS_MAX;
            let field = self.field_var(name, has_space)?;
            let at = take(&mut words, field.data_words(&self.program.refs))?;

            self.program.saves.push(Save {
                name,
                field,
                at,
                words: words.saturating_sub(at),
            })?;
        }
        Ok(words)
    }
}

impl Program {
    /// Compiles the actions, and lowers the program: the last step before a new trigger is created. A command that
    /// changes or removes a trigger skips it, as no hit runs its program.
    ///
    /// As in C, the actions are checked after the filter, and before the search for an existing trigger.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] with the errno for the writer and the messages for `error_log`.
    pub fn create_actions(
        &mut self,
        spec: &HistSpec<'_>,
        event: &mut dyn Resolver,
    ) -> Result<(), Refusal> {
        // There are at most `REFS_MAX` references, so the conversion does not fail.
        self.act_refs = u8::try_from(self.refs.len()).unwrap_or(u8::MAX);
        self.compile_actions(spec, event)?;
        self.starts_paused = spec.starts_paused(self.timestamps);
        Ok(self.lower()?)
    }

    /// Compiles the actions.
    ///
    /// Not inlined: its stack frame is gone before the program is lowered.
    #[inline(never)]
    fn compile_actions(
        &mut self,
        spec: &HistSpec<'_>,
        event: &mut dyn Resolver,
    ) -> Result<(), Refusal> {
        let mut compiler = Compiler::new(self, spec, event);
        let mut at = 0;

        while let Some(&before) = compiler.program.actions.get(at) {
            let mut action = before;

            compiler.create_action(&mut action)?;
            if let Some(place) = compiler.program.actions.get_mut(at) {
                *place = action;
            }
            at = at.saturating_add(1);
        }
        compiler.check_join()?;
        compiler.check_rows()
    }

    /// Returns the number of variables that C would need: tracked and saved values are variables there, too.
    fn variables(&self) -> usize {
        self.vars
            .len()
            .saturating_add(self.saves.len())
            .saturating_add(usize::from(self.tracked))
    }

    /// Returns the number of references that C would need: handlers refer to the trigger's own variables there, too.
    fn references(&self) -> usize {
        (0..=u8::MAX)
            .take(self.vars.len())
            .filter(|&index| self.is_tracked(index))
            .count()
            .saturating_add(self.refs.len())
    }

    /// Returns whether a compiled handler tracks the variable `index`.
    fn is_tracked(&self, index: u8) -> bool {
        self.actions.iter().any(|action| {
            action.track.is_some()
                && action
                    .handler
                    .tracked()
                    .is_some_and(|(_, var)| var == index)
        })
    }

    /// Iterates over the items between the parentheses of an action, the event included.
    pub(super) fn typed_of(&self, action: &Action) -> impl Iterator<Item = Span> + '_ {
        let event = match action.kind {
            ActionKind::Trace {
                event,
                keyword: true,
                ..
            } => Some(event),
            _ => None,
        };

        event
            .into_iter()
            .chain(self.params_of(action).iter().copied())
    }

    /// Returns the parameters of an action.
    pub(super) fn params_of(&self, action: &Action) -> &[Span] {
        let (first, len) = action.params;

        part(&self.params, first, len)
    }
}

/// Parses a number, and returns its [rank](Order::rank); `None` if it is out of range, or has a sign and `order` is
/// unsigned.
fn ranked(text: &[u8], order: Order) -> Option<u64> {
    let signed = order == Order::SIGNED;
    let value = match text.strip_prefix(b"-") {
        Some(magnitude) if signed => widen(0i64.checked_sub_unsigned(number(magnitude).ok()?)?),
        Some(_) => return None,
        None => number(text).ok()?,
    };
    let is_in_range = !signed || text.starts_with(b"-") || i64::try_from(value).is_ok();

    is_in_range.then(|| order.rank(value))
}

/// Converts a count to 16 bits.
///
/// # Errors
///
/// [`Errno::E2big`] if the count does not fit.
pub(super) fn narrow(n: usize) -> Result<u16, Refusal> {
    u16::try_from(n).map_err(|_| Refusal::silent(Errno::E2big))
}
