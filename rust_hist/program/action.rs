// SPDX-License-Identifier: GPL-2.0

//! Handlers and actions.
//!
//! C counterpart: `parse_actions()`, `action_parse()`, `create_actions()`, `track_data_create()` and
//! `create_field_var()` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//! They are taken apart before anything else is compiled, since references look at the events that
//! they name, and settled after everything else, when a new trigger is about to be made.
//!
//! Context: process.

use crate::{
    error::{
        Entry,
        ErrKind,
        Errno,
        Refusal, //
    },
    lang::{
        HistSpec,
        Usage,
        ON_CHANGE,
        ON_MATCH,
        ON_MAX, //
    },
    limits::{
        PARAMS_MAX,
        REFS_MAX,
        VARS_MAX, //
    },
    text::{
        lex::{
            trim,
            Split, //
        },
        Span, //
    }, //
};

use super::{
    compile::Compiler,
    resolver::Resolver,
    var::{
        even,
        take, //
    },
    Action,
    Do,
    Field,
    Handler,
    Kind,
    Program,
    Save,
    Track, //
};

/// The names under which C keeps what handlers track.
const MAX_VAR: &[u8] = b"__max";
const CHANGE_VAR: &[u8] = b"__change";

/// The actions that have a word of their own.
#[derive(Clone, Copy)]
enum Keyword {
    Save,
    Snapshot,
    Trace,
}

impl Handler {
    /// The tracked variable: what is typed, and its index.
    pub(super) fn tracked(&self) -> Option<(Span, u8)> {
        match *self {
            Self::Match { .. } => None,
            Self::Max { arg, var } | Self::Change { arg, var } => Some((arg, var)),
        }
    }
}

impl Compiler<'_, '_> {
    /// Takes the handler tokens apart.
    pub(super) fn parse_actions(&mut self) -> Result<(), Refusal> {
        for &token in self.spec.actions.as_slice() {
            let bytes = token.of(self.spec.command.text());
            let action = if bytes.starts_with(ON_MATCH) {
                self.parse_onmatch(token.skip(ON_MATCH.len()))?
            } else if bytes.starts_with(ON_MAX) {
                let (arg, rest) = self.tracked(token.skip(ON_MAX.len()))?;

                self.parse_action(Handler::Max { arg, var: 0 }, rest)?
            } else {
                let (arg, rest) = self.tracked(token.skip(ON_CHANGE.len()))?;

                self.parse_action(Handler::Change { arg, var: 0 }, rest)?
            };

            self.program.actions.push(action)?;
        }
        Ok(())
    }

    /// Splits at the first `byte`: what is before it, and what is behind it if it is there.
    fn split(&self, span: Span, byte: u8) -> (Span, Option<Span>) {
        let mut parts = Split::new(self.spec.command.text(), span, byte);

        (parts.next().unwrap_or(span), parts.rest())
    }

    fn parse_onmatch(&mut self, span: Span) -> Result<Action, Refusal> {
        let command = &self.spec.command;
        let text = command.text();
        let (name, Some(rest)) = self.split(span, b')') else {
            return Err(command.refuse(ErrKind::NoClosingParen, span));
        };
        let (system, Some(event)) = self.split(name, b'.') else {
            return Err(command.refuse(ErrKind::SubsysNotFound, name));
        };

        if !self.event.event_exists(system.of(text), event.of(text)) {
            return Err(command.refuse(ErrKind::InvalidSubsysEvent, event));
        }
        self.parse_action(Handler::Match { system, event }, rest)
    }

    /// What a handler tracks, and what follows it.
    fn tracked(&self, span: Span) -> Result<(Span, Span), Refusal> {
        match self.split(span, b')') {
            (arg, Some(rest)) => Ok((arg, rest)),
            _ => Err(self
                .spec
                .command
                .explain(Errno::Einval, ErrKind::NoClosingParen, span)),
        }
    }

    /// Parses `.word(param, ..)`, to which `handler` belongs.
    ///
    /// PARITY: `action_parse()` looks for the first dot, the next parenthesis and the one that
    /// closes it, and at nothing else.
    fn parse_action(&mut self, handler: Handler, span: Span) -> Result<Action, Refusal> {
        let command = &self.spec.command;
        let missing = || Refusal::new(Errno::Einval, ErrKind::ActionNotFound, 0);
        let (word, list) = self.split(self.split(span, b'.').1.ok_or_else(missing)?, b'(');
        let (list, rest) = self.split(list.ok_or_else(missing)?, b')');
        let keyword = self.keyword(word)?;
        let mismatch = || match handler {
            Handler::Match { .. } => Err(command.refuse(ErrKind::ActionMismatch, word)),
            Handler::Max { .. } | Handler::Change { .. } => Ok(()),
        };
        let first = narrow(self.program.params.len())?;
        let mut act = Do::Snapshot;

        match keyword {
            Some(Keyword::Save) => {
                self.parse_params(list, None)?;
                mismatch()?;
                act = Do::Save { first: 0, len: 0 };
            }
            Some(Keyword::Snapshot) => {
                if rest.is_none() {
                    return Err(command.refuse(ErrKind::NoClosingParen, list));
                }
                mismatch()?;
            }
            Some(Keyword::Trace) | None => {
                let keyword = keyword.is_some();
                let mut event = word;

                self.parse_params(list, keyword.then_some(&mut event))?;
                act = Do::Trace {
                    event,
                    keyword,
                    synth: 0,
                    first: 0,
                    len: 0,
                };
            }
        }

        let len = narrow(self.program.params.len())?.saturating_sub(first);

        Ok(Action {
            handler,
            act,
            word,
            params: (first, len),
            track: None,
        })
    }

    /// The action that a word stands for; `None` for a synthetic event by its own name.
    ///
    /// PARITY: `action_parse()` looks at how the word begins, and never finds an event called `saved`
    /// or `trace_lat`.
    fn keyword(&mut self, word: Span) -> Result<Option<Keyword>, Refusal> {
        const WORDS: [(&[u8], Keyword); 3] = [
            (b"save", Keyword::Save),
            (b"snapshot", Keyword::Snapshot),
            (b"trace", Keyword::Trace),
        ];
        let typed = word.of(self.spec.command.text());
        let Some((known, keyword)) = WORDS.iter().find(|(known, _)| typed.starts_with(known))
        else {
            return Ok(None);
        };

        if typed != *known && self.event.synth(typed)?.is_some() {
            return Ok(None);
        }
        Ok(Some(*keyword))
    }

    /// Takes a list of parameters apart; the first one goes to `event`, if that is asked for.
    fn parse_params(&mut self, list: Span, mut event: Option<&mut Span>) -> Result<(), Refusal> {
        let command = &self.spec.command;
        let mut count = 0usize;

        for item in self.spec.items(list) {
            if count >= PARAMS_MAX {
                return Err(Refusal::new(Errno::Einval, ErrKind::TooManyParams, 0));
            }

            let param = trim(command.text(), item);

            // PARITY: `parse_action_params()` wants two bytes.
            if matches!(param.of(command.text()), b"" | b"$") {
                return Err(command.refuse(ErrKind::InvalidParam, param));
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

    /// Settles one action.
    fn create_action(&mut self, action: &mut Action) -> Result<(), Refusal> {
        if let Some((arg, _)) = action.handler.tracked() {
            self.create_tracked(action, arg)?;
        }

        let row_words = match action.act {
            Do::Save { .. } => self.create_save(action)?,
            Do::Snapshot => 0,
            Do::Trace { event, keyword, .. } => {
                action.act = self.create_trace(action, event, keyword)?;
                0
            }
        };

        if action.handler.tracked().is_some() {
            self.place_track(action, row_words)?;
        }
        Ok(())
    }

    /// Gives what the handler tracks its place.
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

    /// Finds the variable that a handler tracks.
    fn create_tracked(&mut self, action: &mut Action, arg: Span) -> Result<(), Refusal> {
        let command = &self.spec.command;
        let text = command.text();

        if !arg.of(text).starts_with(b"$") {
            return Err(command.refuse(ErrKind::OnxNotVar, arg));
        }

        let name = arg.skip(1);
        let vars = self.program.vars();
        let Some(found) = vars
            .iter()
            .position(|var| var.name.of(text) == name.of(text))
        else {
            return Err(command.refuse(ErrKind::OnxVarNotFound, name));
        };

        // PARITY: C compares the addresses of strings.
        if vars
            .get(found)
            .is_some_and(|var| var.field.kind != Kind::Number)
        {
            return Err(command.explain(Errno::Einval, ErrKind::OnxNotNumber, arg));
        }

        let index = u8::try_from(found).map_err(|_| Refusal::silent(Errno::E2big))?;

        if !self.program.is_tracked(index) && self.program.references() >= REFS_MAX {
            return Err(command.explain(Errno::Enomem, ErrKind::TooManyRefs, arg));
        }

        let (handler, hidden) = match action.handler {
            Handler::Change { .. } => (Handler::Change { arg, var: index }, CHANGE_VAR),
            _ => (Handler::Max { arg, var: index }, MAX_VAR),
        };

        if self.is_taken(hidden) || self.program.variables() >= VARS_MAX {
            return Err(Refusal::new(Errno::Einval, ErrKind::OnxVarCreateFail, 0));
        }
        action.handler = handler;
        self.program.tracked = self.program.tracked.saturating_add(1);
        Ok(())
    }

    /// Compiles a parameter that is a field of the event. C makes a variable of its name for it, whose
    /// name must be free; `room` says whether C has room for one.
    pub(super) fn field_var(&mut self, name: Span, room: bool) -> Result<Field, Refusal> {
        let command = self.spec.command;
        let at = command.column(self.seen(name));
        let entry = |kind| Entry { kind, at };
        let parsed = self
            .atom(name, Usage::Variable)
            .map_err(|refusal| refusal.then_if_any(entry(ErrKind::FieldVarParseFail)))?;

        if !room || self.is_taken(parsed.seen.of(command.text())) {
            return Err(Refusal::new(Errno::Einval, ErrKind::VarCreateFindFail, at));
        }
        Ok(parsed.field)
    }

    /// Finds the fields that `save()` keeps: the words of a row.
    fn create_save(&mut self, action: &mut Action) -> Result<u16, Refusal> {
        if !self.program.saves.is_empty() {
            return Err(Refusal::new(Errno::Eexist, ErrKind::TooManySaveActions, 0));
        }

        let (first, len) = action.params;
        let mut words = 0;

        for at in first..first.saturating_add(len) {
            let Some(&name) = self.program.params.get(usize::from(at)) else {
                break;
            };
            let create_fail = Entry {
                kind: ErrKind::FieldVarCreateFail,
                at: self.spec.command.column(self.seen(name)),
            };
            let room = self.program.variables() < VARS_MAX;
            let field = self
                .field_var(name, room)
                .map_err(|refusal| refusal.then_if_any(create_fail))?;

            let at = take(&mut words, self.program.data_words(&field))?;

            self.program.saves.push(Save {
                name,
                field,
                at,
                words: words.saturating_sub(at),
            })?;
        }

        action.act = Do::Save {
            first: 0,
            len: narrow(self.program.saves.len())?,
        };
        Ok(words)
    }
}

impl Program {
    /// Settles what the handlers do: the last step before a new trigger is made. A command that
    /// changes or removes a trigger does not come here.
    ///
    /// The order is that of C: mistakes in here count after those of the filter, and before the
    /// trigger exists already.
    pub fn create_actions(
        &mut self,
        spec: &HistSpec<'_>,
        event: &mut dyn Resolver,
    ) -> Result<(), Refusal> {
        // Their number is below the limit.
        self.act_refs = u8::try_from(self.refs.len()).unwrap_or(u8::MAX);

        let exact = spec.exact();
        let mut compiler = Compiler::new(self, &exact, event);
        let mut at = 0;

        while let Some(&before) = compiler.program.actions.get(at) {
            let mut action = before;

            compiler.create_action(&mut action)?;
            if let Some(place) = compiler.program.actions.get_mut(at) {
                *place = action;
            }
            at = at.saturating_add(1);
        }
        self.starts_paused = spec.starts_paused(self.timestamps);
        Ok(self.lower_actions()?)
    }

    /// Variables as C counts them: what handlers track and what they save included.
    fn variables(&self) -> usize {
        self.vars
            .len()
            .saturating_add(self.saves.len())
            .saturating_add(usize::from(self.tracked))
    }

    /// References as C counts them: those of handlers to the trigger's own variables included.
    fn references(&self) -> usize {
        (0..=u8::MAX)
            .take(self.vars.len())
            .filter(|&index| self.is_tracked(index))
            .count()
            .saturating_add(self.refs.len())
    }

    /// Whether a settled handler tracks the variable `index`.
    fn is_tracked(&self, index: u8) -> bool {
        self.actions().iter().any(|action| {
            action.track.is_some()
                && action
                    .handler
                    .tracked()
                    .is_some_and(|(_, var)| var == index)
        })
    }

    /// All that is typed between the parentheses of an action.
    pub(super) fn typed_of(&self, action: &Action) -> impl Iterator<Item = Span> + '_ {
        let event = match action.act {
            Do::Trace {
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

    /// The parameters of an action.
    pub(super) fn params_of(&self, action: &Action) -> &[Span] {
        let (first, len) = action.params;

        self.params
            .get(usize::from(first)..)
            .and_then(|from| from.get(..usize::from(len)))
            .unwrap_or(&[])
    }
}

pub(super) fn narrow(n: usize) -> Result<u16, Refusal> {
    u16::try_from(n).map_err(|_| Refusal::silent(Errno::E2big))
}
