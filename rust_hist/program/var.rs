// SPDX-License-Identifier: GPL-2.0

//! The compiler of variables, and the layout of their words in an entry.
//!
//! C counterpart: `parse_var_defs()`, `create_var_fields()` and `hist_trigger_elt_data_alloc()` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//!
//! Context: process, may sleep.

use crate::{
    error::{
        ErrKind,
        Errno,
        Refusal, //
    },
    lang::{
        expr::{
            root,
            Root, //
        },
        Usage,
        PARAMETERS, //
    },
    limits::{
        COMM_LEN,
        STACK_DEPTH,
        STR_SLOT,
        VARS_MAX, //
    },
    text::{
        lex::{
            Nearest,
            Split, //
        },
        Span, //
    }, //
};

use super::{
    compile::{
        Compiler,
        Own, //
    },
    Cell,
    Field,
    Insn,
    Kind,
    Modifier,
    Op,
    Program,
    Purpose,
    Ref,
    Var,
    NUMBER_WORDS, //
};

/// The definition `name=expr` of a variable, before its expression is compiled.
#[derive(Clone, Copy)]
pub(super) struct Def {
    pub(super) name: Span,
    pub(super) expr: Span,
}

/// The place of a variable that no entry stores: beyond the end of any entry.
const NOWHERE: u16 = u16::MAX;

/// Returns the set that has only the number `n`, which is below 32, as bits.
pub(super) fn bit(n: u8) -> u32 {
    1u32.checked_shl(n.into()).unwrap_or(0)
}

impl Compiler<'_, '_> {
    /// Splits the tokens that define variables into definitions.
    ///
    /// PARITY: `parse_var_defs()` ignores what follows the sixteenth item of a token.
    #[inline(never)]
    pub(super) fn definitions(&mut self) -> Result<(), Refusal> {
        for &token in self.spec.vars.as_slice() {
            for item in self.spec.items(token) {
                let mut parts = Split::new(self.text, item, b'=');
                let name = parts.next().unwrap_or(item);
                let Some(expr) = parts.rest() else {
                    return Err(self.refuse(ErrKind::MalformedAssignment, item));
                };

                if self.defs.len() >= VARS_MAX {
                    return Err(self.refuse(ErrKind::TooManyVars, name));
                }
                self.defs.push(Def { name, expr })?;
            }
        }
        Ok(())
    }

    /// Compiles the definitions of the variables, in order.
    #[inline(never)]
    pub(super) fn variables(&mut self, purpose: Purpose) -> Result<(), Refusal> {
        let mut at = 0;

        while let Some(&Def { name, expr }) = self.defs.get(at) {
            at = at.saturating_add(1);
            self.check_unique(name, expr, purpose)?;
            self.own = Own::Computed;

            let parsed =
                self.expression(expr, Usage::Variable)
                    .and_then(|parsed| match parsed.field.is_bucketed() {
                        true => Err(self
                            .bad_modifier(parsed.seen, &[b"a variable keeps the number itself"])),
                        false => Ok(parsed),
                    })
                    .map_err(|refusal| self.no_parameter(name, expr, refusal))
                    .map_err(|refusal| self.name_first(name, refusal))?;

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
        self.own = self.own_in_vals();
        Ok(())
    }

    /// Refuses a variable whose name this trigger or another trigger of the event has already given to a variable.
    fn check_unique(&mut self, name: Span, expr: Span, purpose: Purpose) -> Result<(), Refusal> {
        let is_own = self
            .program
            .own_var(name.of(self.text), self.text)
            .is_some();

        if purpose == Purpose::Change || !is_own && !self.event.defines(name.of(self.text)) {
            return Ok(());
        }
        // Whether this variable will be stored is not known yet, so the check is made later.
        if !is_own && !self.is_plain(expr) {
            self.defined_elsewhere |= u8::try_from(self.program.vars.len()).map_or(0, bit);
            return Ok(());
        }
        Err(self.refuse(ErrKind::DuplicateVar, name))
    }

    /// Adds to the refusal of `name=expr` with an unknown field that it defines a variable, as a parameter may have
    /// been meant.
    fn no_parameter(&self, name: Span, expr: Span, refusal: Refusal) -> Refusal {
        if !refusal.is(ErrKind::FieldNotFound)
            || !refusal.detail().is_empty()
            || !self.is_plain(expr)
        {
            return refusal;
        }
        let name = name.of(self.text);

        match parameter_like(name) {
            Some(word) => refusal.detailed(&[b"did you mean ", word, b"="]),
            None => refusal.detailed(&[name, b"= is no parameter, so it defines a variable"]),
        }
    }

    /// Returns the refusal of a definition whose expression is refused: for its name, if another trigger has a variable
    /// of that name, as C checks the name first. A silent refusal, of an allocation that failed, is returned as it is.
    fn name_first(&self, name: Span, refusal: Refusal) -> Refusal {
        let own = u8::try_from(self.program.vars.len()).map_or(0, bit);

        match self.defined_elsewhere & own {
            0 => refusal,
            _ if refusal.is_silent() => refusal,
            _ => self.refuse(ErrKind::DuplicateVar, name),
        }
    }

    /// Refuses a variable with the name of another trigger's variable if this one turned out to be stored, or if the
    /// columns were refused. Otherwise returns `columns`, the result of compiling the columns.
    pub(super) fn check_defined_elsewhere(
        &self,
        columns: Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let twice = (0..=u8::MAX)
            .zip(self.program.vars.iter())
            .filter(|(n, _)| self.defined_elsewhere & bit(*n) != 0)
            .find(|(_, var)| columns.is_err() || var.is_stored());

        match twice {
            Some((_, var)) => Err(self.refuse(ErrKind::DuplicateVar, var.name)),
            None => columns,
        }
    }

    /// Returns whether `expr` is a plain field: a reference to such a variable reads the field itself.
    pub(super) fn is_plain(&self, expr: Span) -> bool {
        root(&self.command, expr) == Root::Atom
            && self.referred(expr).is_none()
            && !self.starts_with_digit(expr)
    }

    /// Returns whether any value may be a number that a variable of the trigger gives to the hit.
    pub(super) fn vals_name_values(&self) -> bool {
        let Some(list) = self.spec.vals.map(|list| list.of(self.text)) else {
            return false;
        };
        let is_named = |def: &Def| {
            let name = def.name.of(self.text);
            let mut rest = list;

            while let Some(at) = rest.iter().position(|&byte| byte == b'$') {
                rest = rest.get(at.saturating_add(1)..).unwrap_or(&[]);
                let behind = rest.strip_prefix(name).map(<[u8]>::first);

                match behind {
                    // This is a longer name, of another variable.
                    Some(Some(byte)) if byte.is_ascii_alphanumeric() || *byte == b'_' => (),
                    // With a modifier, even a plain field is the variable's number.
                    Some(byte) if byte == Some(&b'.') || !self.is_plain(def.expr) => return true,
                    _ => (),
                }
            }
            false
        };

        self.defs.iter().any(is_named)
    }

    /// Returns whether this trigger or another one of the event defines a variable `name`.
    pub(super) fn is_taken(&self, name: &[u8]) -> bool {
        self.program.own_var(name, self.text).is_some() || self.event.defines(name)
    }

    /// Returns the variables that no entry stores, one bit each: those that are no plain fields, and that only keys,
    /// values and other variables not stored name.
    fn unstored(&self) -> u32 {
        let program = &self.program;
        let columns = program.named_in_columns();
        let mut unstored = 0;

        // Last to first, as a definition can only name variables before it.
        for (n, def) in (0..=u8::MAX).zip(self.defs.iter()).rev() {
            let users = (0..=u8::MAX)
                .zip(program.vars.iter())
                .filter(|(_, var)| program.named_by(&var.field) & bit(n) != 0)
                .fold(0, |all, (user, _)| all | bit(user));
            let is_named = columns & bit(n) != 0 || users != 0;
            let is_stored = users & !unstored != 0
                || self.is_plain(def.expr)
                || program.has_action_on(def.name.of(self.text), self.text);

            if is_named && !is_stored {
                unstored |= bit(n);
            }
        }
        unstored
    }

    /// Assigns each variable its words in an entry: numbers first, as their two words must be aligned to 16 bytes.
    pub(super) fn place_variables(&mut self) -> Result<(), Refusal> {
        let unstored = self.unstored();
        let mut at = 0;

        if self.program.needs_comm() {
            take(&mut at, COMM_LEN / 8)?;
        }
        let Program { vars, refs, .. } = &mut *self.program;

        for numbers in [true, false] {
            for (n, var) in (0..=u8::MAX).zip(vars.iter_mut()) {
                if (var.field.kind == Kind::Number) != numbers {
                    continue;
                }
                if unstored & bit(n) != 0 {
                    var.cell.at = NOWHERE;
                    continue;
                }

                let words = match var.field.kind {
                    Kind::Number => NUMBER_WORDS,
                    Kind::String | Kind::Cpumask | Kind::Stack => {
                        var.field.data_words(refs).saturating_add(1)
                    }
                };

                var.cell.at = take(&mut at, words)?;
                var.cell.words = at.saturating_sub(var.cell.at);
            }
        }
        self.program.aux_words = even(at);
        Ok(())
    }
}

/// Returns the parameter of which `name` may be a misspelling.
fn parameter_like(name: &[u8]) -> Option<&'static [u8]> {
    let mut nearest = Nearest::to(name);

    PARAMETERS.into_iter().for_each(|word| nearest.offer(word));
    // A longer name such as `size2` is meant to be a variable.
    let found = nearest.word().filter(|word| !name.starts_with(word))?;

    PARAMETERS.into_iter().find(|word| *word == found)
}

impl Program {
    /// Returns the index in the text of the first variable that is a constant, that nothing in the trigger names, and
    /// whose name may be a misspelt parameter; and that parameter, with its equals sign.
    pub fn like_parameter(&self, text: &[u8]) -> Option<(usize, &'static [u8])> {
        let in_vars = self.vars.iter().map(|var| self.named_by(&var.field));
        let named = in_vars.fold(self.named_in_columns(), |all, vars| all | vars);

        (0..=u8::MAX).zip(self.vars.iter()).find_map(|(n, var)| {
            let name = var.name.of(text);
            let is_named = named & bit(n) != 0 || self.has_action_on(name, text);

            match var.field.op {
                Op::Const(_) | Op::One if !is_named => {
                    Some((var.name.start, parameter_like(name)?))
                }
                _ => None,
            }
        })
    }

    /// Returns the variables of this trigger that `field` names, one bit each.
    pub(super) fn named_by(&self, field: &Field) -> u32 {
        self.ops(field).fold(0, |all, op| match op {
            Op::Own(n) => all | bit(n),
            _ => all,
        })
    }

    /// Returns the source of the value of `field`, and the sources of the operands of its expression.
    pub(super) fn ops<'p>(&'p self, field: &'p Field) -> impl Iterator<Item = Op> + 'p {
        let code = match field.op {
            Op::Expr(code) => code.of(&self.code),
            _ => &[],
        };
        let operands = code.iter().filter_map(|insn| match insn {
            Insn::Push(operand) => Some(operand.op),
            _ => None,
        });

        core::iter::once(field.op).chain(operands)
    }

    /// Returns the variables of this trigger that keys and values name, one bit each.
    pub(super) fn named_in_columns(&self) -> u32 {
        let keys = self.keys.iter().map(|key| &key.field);

        keys.chain(self.vals.iter())
            .fold(0, |all, field| all | self.named_by(field))
    }

    /// Returns whether a handler or an action names the variable `name`, with or without an event before the name.
    fn has_action_on(&self, name: &[u8], text: &[u8]) -> bool {
        let names = |param: &[u8]| {
            let before = param.strip_suffix(name);

            before.is_some_and(|before| before.ends_with(b"$"))
        };

        self.actions.iter().any(|action| {
            let tracked = action.handler.tracked();
            let of_handler = tracked.map_or(&[][..], |(arg, _)| arg.of(text));
            let mut of_action = self.params_of(action).iter();

            // The numbers of the handler's condition follow the variable after a comma.
            of_handler.split(|&byte| byte == b',').any(names)
                || of_action.any(|param| names(param.of(text)))
        })
    }
}

impl Field {
    /// Returns the number of 64-bit words that the value of the field takes in an entry; `refs` are those of its program.
    pub(super) fn data_words(&self, refs: &[Ref]) -> usize {
        match self.op {
            Op::StaticString { len, .. } => usize::try_from(len)
                .map_or(STR_SLOT, |len| len.min(STR_SLOT))
                .div_ceil(8),
            Op::Comm | Op::EntryComm => COMM_LEN / 8,
            Op::DynString { .. } | Op::RelDynString { .. } => STR_SLOT / 8,
            Op::Stacktrace | Op::StackField { .. } => STACK_DEPTH,
            Op::Ref(index) if self.kind != Kind::Number => {
                refs.get(usize::from(index)).map_or(0, |reference| {
                    usize::from(reference.cell.words).saturating_sub(1)
                })
            }
            _ => 1,
        }
    }
}

/// Reserves `words` words at `at`, which it advances; returns the index of the first reserved word.
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
