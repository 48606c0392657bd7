// SPDX-License-Identifier: GPL-2.0

//! The compiler of variables, and the layout of their words in an entry.
//!
//! C counterpart: `parse_var_defs()`, `create_var_fields()` and `hist_trigger_elt_data_alloc()` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//!
//! Context: process, may sleep.

use crate::{
    alloc::Vec,
    error::{
        ErrKind,
        Errno,
        Refusal, //
    },
    lang::Usage,
    limits::{
        COMM_LEN,
        STACK_DEPTH,
        STR_SLOT,
        VARS_MAX, //
    },
    text::{
        lex::Split,
        Span, //
    }, //
};

use super::{
    compile::Compiler,
    Cell,
    Field,
    Kind,
    Modifier,
    Op,
    Program,
    Purpose,
    Var,
    NUMBER_WORDS, //
};

/// The definition `name=expr` of a variable, before its expression is compiled.
#[derive(Clone, Copy)]
pub(super) struct Def {
    pub(super) name: Span,
    pub(super) expr: Span,
}

impl Compiler<'_, '_> {
    /// Splits the tokens that define variables into definitions.
    ///
    /// PARITY: `parse_var_defs()` ignores what follows the sixteenth item of a token.
    pub(super) fn definitions(&mut self) -> Result<(), Refusal> {
        let command = &self.spec.command;

        for &token in self.spec.vars.as_slice() {
            for item in self.spec.items(token) {
                let mut parts = Split::new(command.text(), item, b'=');
                let name = parts.next().unwrap_or(item);
                let Some(expr) = parts.rest() else {
                    return Err(command.refuse(ErrKind::MalformedAssignment, item));
                };

                if self.defs.len() >= VARS_MAX {
                    return Err(command.refuse(ErrKind::TooManyVars, name));
                }
                self.defs.push(Def { name, expr })?;
            }
        }
        Ok(())
    }

    /// Compiles the variables.
    pub(super) fn variables(&mut self, purpose: Purpose) -> Result<(), Refusal> {
        let mut at = 0;

        while let Some(&Def { name, expr }) = self.defs.get(at) {
            at = at.saturating_add(1);
            if purpose == Purpose::New && self.is_taken(name.of(self.spec.command.text())) {
                return Err(self.spec.command.refuse(ErrKind::DuplicateVar, name));
            }

            let parsed = self.expression(expr, Usage::Variable)?;

            if parsed.field.is_bucketed() {
                return Err(self
                    .spec
                    .command
                    .refuse(ErrKind::BadFieldModifier, parsed.seen));
            }

            let field = match parsed.field.modifier {
                Modifier::Execname => {
                    Field::generic(parsed.field.name, Op::EntryComm, Modifier::Execname)
                }
                _ => parsed.field,
            };

            self.program.vars.push(Var {
                name,
                field,
                cell: Cell {
                    at: 0,
                    words: 0,
                    kind: field.kind,
                },
            })?;
        }
        Ok(())
    }

    /// Returns whether this trigger or another one of the event defines a variable `name`.
    pub(super) fn is_taken(&self, name: &[u8]) -> bool {
        self.program.var(name, self.spec.command.text()).is_some() || self.event.defines(name)
    }

    /// Assigns each variable its words in an entry: numbers first, whose two words must be aligned to 16
    /// bytes.
    pub(super) fn place_variables(&mut self) -> Result<(), Refusal> {
        let mut vars = core::mem::take(&mut self.program.vars);
        let placed = self.place(&mut vars);

        self.program.vars = vars;
        self.program.aux_words = even(placed?);
        Ok(())
    }

    /// Assigns `vars` their words; returns the number of words in use.
    fn place(&self, vars: &mut Vec<Var>) -> Result<u16, Refusal> {
        let needs_comm = self.program.needs_comm() || vars.iter().any(Var::is_comm);
        let mut at = 0;

        if needs_comm {
            take(&mut at, COMM_LEN / 8)?;
        }
        for numbers in [true, false] {
            for var in vars.iter_mut() {
                if (var.field.kind == Kind::Number) != numbers {
                    continue;
                }

                let words = match var.field.kind {
                    Kind::Number => NUMBER_WORDS,
                    Kind::String | Kind::Stack => {
                        self.program.data_words(&var.field).saturating_add(1)
                    }
                };

                var.cell.at = take(&mut at, words)?;
                var.cell.words = at.saturating_sub(var.cell.at);
            }
        }
        Ok(at)
    }
}

impl Var {
    /// Returns whether its value is the task name that the entry keeps.
    pub(super) fn is_comm(&self) -> bool {
        self.field.op == Op::EntryComm
    }
}

impl Program {
    /// Returns the 64-bit words that the value of a field takes in an entry.
    pub(super) fn data_words(&self, field: &Field) -> usize {
        match field.op {
            Op::StaticString { len, .. } => usize::try_from(len)
                .map_or(STR_SLOT, |len| len.min(STR_SLOT))
                .div_ceil(8),
            Op::Comm | Op::EntryComm => COMM_LEN / 8,
            Op::DynString { .. } | Op::RelDynString { .. } => STR_SLOT / 8,
            Op::Stacktrace | Op::StackField { .. } => STACK_DEPTH,
            Op::Ref(index) if field.kind != Kind::Number => {
                self.refs().get(usize::from(index)).map_or(0, |reference| {
                    usize::from(reference.cell.words).saturating_sub(1)
                })
            }
            _ => 1,
        }
    }
}

/// Reserves `words` words at `at`, which it advances; returns the index of the first one.
///
/// # Errors
///
/// [`Errno::E2big`] if the index after them exceeds 16 bits.
pub(super) fn take(at: &mut u16, words: usize) -> Result<u16, Refusal> {
    let start = *at;

    *at = u16::try_from(words)
        .ok()
        .and_then(|words| at.checked_add(words))
        .ok_or(Refusal::silent(Errno::E2big))?;
    Ok(start)
}

/// Returns `words` rounded up to an even number.
pub(super) fn even(words: u16) -> u16 {
    words.saturating_add(words % 2)
}
