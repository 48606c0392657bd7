// SPDX-License-Identifier: GPL-2.0

//! The compiler of the parameters of `trace()`, and the comparison of keys across triggers.
//!
//! C counterpart: `trace_action_create()`, `trace_action_find_var()`, `trace_action_create_field_var()`,
//! `check_synth_field()`, `compatible_keys()` and `create_field_var_hist()` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//!
//! A parameter is a variable of the trigger itself, a variable of another trigger, or a field. A field
//! of the trigger's event is read from the record when the action runs, so an entry does not store it. A
//! field of another event is the variable of a helper trigger on that event, which the resolver prepares.
//!
//! Context: process, may sleep.

use core::fmt;

use crate::{
    bucket::Buckets,
    error::{
        ErrKind,
        Errno,
        Refusal, //
    },
    field::{
        SynthClass,
        SynthField, //
    },
    limits::PARAMS_MAX,
    text::{
        Out,
        Span, //
    }, //
};

use super::{
    action::narrow,
    compile::Compiler,
    resolver::MatchedField,
    types::part,
    Action,
    ActionKind,
    Arg,
    ArgSource,
    Field,
    Handler,
    Key,
    Kind,
    Name,
    Op,
    Program, //
};

/// The prefix of the variable of a helper trigger; the name of the field follows.
pub const HELPER_VAR: &[u8] = b"synthetic_";

/// The system and the name of an event; `None` if the text names none.
type EventName = Option<(Span, Span)>;

impl Handler {
    /// Returns the event of `onmatch()`.
    pub(super) fn matched(&self) -> EventName {
        match *self {
            Self::Match { system, event } => Some((system, event)),
            Self::Track { .. } => None,
        }
    }
}

impl Compiler<'_, '_> {
    /// Compiles a `trace()` action, which generates the synthetic event `event`.
    pub(super) fn create_trace(
        &mut self,
        action: &Action,
        event: Span,
        keyword: bool,
    ) -> Result<ActionKind, Refusal> {
        let Some(synth) = self.event.synth(event.of(self.text))? else {
            return Err(self.refuse(ErrKind::SynthEventNotFound, event));
        };
        let first = narrow(self.program.args.len())?;
        let (start, len) = action.params;

        for index in 0..len {
            let at = usize::from(start.saturating_add(index));
            let Some(&param) = self.program.params.get(at) else {
                break;
            };
            let (event, name) = self.param(param)?;
            let source = match name.of(self.text).starts_with(b"$") {
                true => self.variable(action.handler, event, name.skip(1))?,
                false => self.field(action.handler, event, name)?,
            };
            let to = self.event.synth_field(synth, usize::from(index));

            if !to.is_some_and(|to| self.program.fits(&source, &to)) {
                let refusal = self.refuse(ErrKind::SynthTypeMismatch, name);

                return Err(match (self.program.field_of(&source), to) {
                    (Some(from), Some(to)) => refusal.detailed(&[
                        b"field ",
                        shown(to.type_name),
                        b" ",
                        to.name,
                        b", param ",
                        shown(self.program.name_of(from.type_name, &[])),
                    ]),
                    _ => refusal.detailed(&[b"the event has fewer fields"]),
                });
            }
            self.program.args.push(Arg {
                name,
                event,
                source,
            })?;
        }

        if self.event.synth_field(synth, usize::from(len)).is_some() {
            return Err(self.refuse(ErrKind::SynthCountMismatch, event));
        }
        Ok(ActionKind::Trace {
            event,
            keyword,
            synth,
            first,
            len,
        })
    }

    /// Splits `system.event.`, if there is one, from a parameter.
    fn param(&self, param: Span) -> Result<(EventName, Span), Refusal> {
        match self.qualified(param) {
            (_, None, name) if name.of(self.text).contains(&b'.') => {
                Err(self.refuse(ErrKind::InvalidParam, param))
            }
            (_, event, name) => Ok((event, name)),
        }
    }

    /// Returns whether `event` is the event of the trigger, or `None`.
    pub(super) fn is_target(&self, event: EventName) -> bool {
        event.is_none_or(|(system, event)| {
            self.event.is_own(system.of(self.text), event.of(self.text))
        })
    }

    /// Looks up a variable: of the trigger itself, then of triggers on the handler's event, then of others.
    fn variable(
        &mut self,
        handler: Handler,
        event: EventName,
        name: Span,
    ) -> Result<ArgSource, Refusal> {
        if self.is_target(event) {
            if let Some(own) = self.program.own_var(name.of(self.text), self.text) {
                return Ok(ArgSource::Own(own));
            }
        }

        self.foreign(event, handler.matched(), name, ErrKind::ParamNotFound)?
            .map(|(index, _)| ArgSource::Ref(index))
            .ok_or(self.too_many_refs(name))
    }

    /// Returns the refusal of one reference more than a trigger may have.
    pub(super) fn too_many_refs(&self, at: Span) -> Refusal {
        self.command
            .explain(Errno::Enomem, ErrKind::TooManyRefs, at)
    }

    /// Compiles a field: of the trigger's event, or of the event of the parameter or of the handler.
    ///
    /// PARITY: if only the other event has the field, C logs that the trigger's event lacks it. C does not log that
    /// `name` is a variable without its `$`.
    fn field(
        &mut self,
        handler: Handler,
        event: EventName,
        name: Span,
    ) -> Result<ArgSource, Refusal> {
        let refusal = match self.named_field(handler, event, name) {
            Err(refusal) if refusal.is(ErrKind::FieldNotFound) => refusal,
            other => return other,
        };

        if self.variable(handler, event, name).is_err() {
            return Err(refusal);
        }

        Err(self
            .refuse(ErrKind::MissingDollar, name)
            .detailed(&[b"$", name.of(self.text)]))
    }

    /// Compiles a field like [`Compiler::field`], without checking whether `name` is a variable.
    fn named_field(
        &mut self,
        handler: Handler,
        event: EventName,
        name: Span,
    ) -> Result<ArgSource, Refusal> {
        let mut refusal = Refusal::silent(Errno::Einval);

        if self.is_target(event) {
            match self.own_field(name) {
                Ok(field) => return Ok(ArgSource::Field(field)),
                Err(found) if found.is_silent() => return Err(found),
                Err(found) => refusal = found,
            }
            refusal.errno = Errno::Einval;
        }

        // If the trigger's own event has no such field, the other event must have it.
        let is_own = !refusal.is_silent() && !refusal.is(ErrKind::FieldNotFound);
        let Some((system, other)) = event.or(handler.matched()) else {
            return Err(refusal);
        };
        let at = self.command.column(self.seen(name));
        let helper_var = [HELPER_VAR, name.of(self.text)];
        let var_name = Name::make(&mut self.program.made, &helper_var)?;
        let matched = self.event.matched_field(
            self.program,
            system.of(self.text),
            other.of(self.text),
            name.of(self.text),
        )?;
        let kind = match matched {
            MatchedField::Var(var) => {
                return self
                    .program
                    .refer(&self.command, event, var_name, &var)?
                    .map(|(index, _)| ArgSource::Ref(index))
                    .ok_or(self.too_many_refs(name))
            }
            MatchedField::NoEvent => ErrKind::EventFileNotFound,
            MatchedField::NoHist => ErrKind::HistNotFound,
            MatchedField::NotCreated(why) => why.unwrap_or(ErrKind::HistCreateFail),
            MatchedField::NoVar => ErrKind::SynthVarNotFound,
        };

        Err(match is_own {
            true => refusal,
            false => Refusal::new(Errno::Einval, kind, at),
        })
    }

    /// Compiles a field of the trigger's event.
    ///
    /// PARITY: C creates a variable for each field, and has at most 16 variables.
    fn own_field(&mut self, name: Span) -> Result<Field, Refusal> {
        let is_field = |arg: &&Arg| matches!(arg.source, ArgSource::Field(_));

        if self.program.args.iter().filter(is_field).count() >= PARAMS_MAX {
            return Err(self.refuse(ErrKind::TooManyFieldVars, name));
        }
        self.field_var(name, true)
    }
}

/// Returns the text of a type in the definition of a synthetic event.
fn shown(type_name: &[u8]) -> &[u8] {
    type_name.strip_prefix(b"__data_loc ").unwrap_or(type_name)
}

impl Field {
    /// Returns whether the field is a signed number. C's buckets of signed numbers are unsigned.
    pub(super) fn may_be_negative(&self) -> bool {
        self.signed && self.buckets().is_none_or(Buckets::has_signed_words)
    }
}

impl Program {
    /// Returns the field that the value of a parameter comes from.
    fn field_of<'p>(&'p self, source: &'p ArgSource) -> Option<&'p Field> {
        match source {
            ArgSource::Ref(n) => self.refs.get(usize::from(*n)).map(|var| &var.field),
            ArgSource::Own(n) => self.vars.get(usize::from(*n)).map(|var| &var.field),
            ArgSource::Field(field) => Some(field),
        }
    }

    /// Returns whether a parameter's value can be stored in the field `to` of a synthetic event.
    ///
    /// PARITY: `check_synth_field()` compares sizes, and so accepts numbers for strings and strings for
    /// numbers. It treats every field of the trigger's event as unsigned, so a signed one is accepted for
    /// an unsigned field; here it is accepted for a signed field, too.
    fn fits(&self, source: &ArgSource, to: &SynthField<'_>) -> bool {
        let Some(from) = self.field_of(source) else {
            return false;
        };
        // The text of a type is a fixed or a made name, never a span of the trigger's text, so no text is needed.
        let same_type = self.name_of(from.type_name, &[]) == to.type_name;
        let same_size = from.size == to.size;
        let same_sign = from.may_be_negative() == to.signed
            || matches!(source, ArgSource::Field(_)) && !to.signed;

        match (from.kind, to.class) {
            (Kind::Number, SynthClass::Number) => same_type || same_size && same_sign,
            (Kind::String, SynthClass::StaticString) => same_type || same_size,
            (Kind::String, SynthClass::DynString) | (Kind::Stack, SynthClass::Stack) => true,
            _ => false,
        }
    }

    /// Returns the parameters of a `trace()`.
    pub fn args_of(&self, action: &Action) -> &[Arg] {
        let ActionKind::Trace { first, len, .. } = action.kind else {
            return &[];
        };

        part(&self.args, first, len)
    }

    /// Returns whether this program's keys equal the keys by which `other` looks up variables, in number, types, sizes
    /// and signs, so that its entries can be found (`compatible_keys()` in C).
    pub fn has_keys_of(&self, other: &Program) -> bool {
        let same = |(a, b): (&Key, &Key)| {
            self.name_of(a.field.type_name, &[]) == other.name_of(b.field.type_name, &[])
                && a.size == b.size
                && a.field.may_be_negative() == b.field.may_be_negative()
        };

        // A helper trigger could not have keys that are variables of this program.
        let is_variable = |key: &Key| {
            self.ops(&key.field)
                .any(|op| matches!(op, Op::Own(_) | Op::Ref(_)))
        };

        self.keys.len() == other.lookup_keys().len()
            && self.keys.iter().zip(other.lookup_keys()).all(same)
            && !self.keys.iter().any(is_variable)
    }

    /// Returns whether a hit of this program can find an entry of `source`: the first keys of this program are of the
    /// same kinds and at the same offsets as the keys of `source`. Numbers of all sizes are one kind, buckets are
    /// another; a string may be longer than the string of `source`.
    pub fn can_find(&self, source: &Program) -> bool {
        let fits = |(own, other): (&Key, &Key)| {
            own.field.kind == other.field.kind
                && own.field.buckets() == other.field.buckets()
                && own.offset == other.offset
                && own.size >= other.size
        };

        let keys = self.lookup_keys();

        keys.len() >= source.keys.len() && keys.iter().zip(source.keys.iter()).all(fits)
    }

    /// Returns the index in the text and the table's number of the first reference whose entry this trigger
    /// can never find; `None` if there is no such reference. `source` returns the program of a table.
    pub fn never_found<'s>(
        &self,
        source: impl Fn(u16) -> Option<&'s Program>,
    ) -> Option<(usize, u16)> {
        self.refs.iter().find_map(|var| {
            let Name::Text(name) = var.name else {
                return None;
            };
            // The dollar sign before the name is part of the reference.
            let start = match var.event {
                Some((system, _)) => system.start,
                None => name.start.saturating_sub(1),
            };

            (!self.can_find(source(var.table)?)).then_some((start, var.table))
        })
    }

    /// Writes the text of a helper trigger whose variable holds `field` of its event. It has the keys of
    /// this program and the filter `filter`.
    pub fn write_helper(
        &self,
        text: &[u8],
        field: &[u8],
        filter: Option<&[u8]>,
        out: &mut dyn Out,
    ) -> fmt::Result {
        out.write_str("keys=")?;
        self.write_key_list(text, out)?;
        out.write_str(":")?;
        out.write_bytes(HELPER_VAR)?;
        out.write_bytes(field)?;
        out.write_str("=")?;
        out.write_bytes(field)?;
        if let Some(filter) = filter {
            out.write_str(" if ")?;
            out.write_bytes(filter)?;
        }
        Ok(())
    }
}
