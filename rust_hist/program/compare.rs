// SPDX-License-Identifier: GPL-2.0

//! The comparison of two programs: whether they are the same trigger, and which parts differ.
//!
//! C counterpart: `hist_trigger_match()` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//!
//! Context: process. Never allocates.

use core::mem;

use crate::text::Span;

use super::{
    Action,
    ActionKind,
    Code,
    Field,
    Insn,
    Key,
    Name,
    Op,
    Program, //
};

/// The parts of a trigger, in the order of the trigger line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Name,
    Keys,
    Vals,
    Vars,
    Sort,
    /// Size, clock and `nohitcount`, which do not identify a trigger: a removal need not repeat them.
    Table,
    Actions,
    Join,
    Quantiles,
    Others,
    /// How long starts are kept (`expire()`), which does not identify a trigger either.
    Expiry,
    /// `overhead`, which does not identify a trigger either.
    Overhead,
    Filter,
}

impl Part {
    pub(super) const ALL: [Self; 13] = [
        Self::Name,
        Self::Keys,
        Self::Vals,
        Self::Vars,
        Self::Sort,
        Self::Table,
        Self::Actions,
        Self::Join,
        Self::Quantiles,
        Self::Others,
        Self::Expiry,
        Self::Overhead,
        Self::Filter,
    ];
}

impl Program {
    /// Returns whether `self`, compiled from `text`, and `other`, compiled from `other_text`, are the same trigger. An
    /// event refuses a second one; `!`, `pause`, `cont` and `clear` find the first one.
    ///
    /// Names and filters are compared as text.
    ///
    /// PARITY: `hist_trigger_match()` ignores the width of buckets, constants, and what an expression computes.
    pub fn same_trigger(&self, text: &[u8], other: &Program, other_text: &[u8]) -> bool {
        Part::ALL
            .iter()
            .all(|&part| self.same_part(part, text, other, other_text))
    }

    /// Returns whether two triggers are the same except for their names and filters, so that they can share their
    /// entries. Both must have the same sizes if they may grow, and the same `expire()`.
    pub fn same_shape(&self, text: &[u8], other: &Program, other_text: &[u8]) -> bool {
        let range = |program: &Program| Some((program.bits, program.grows_to?));

        range(self) == range(other)
            && self.expiry() == other.expiry()
            && Part::ALL
                .iter()
                .filter(|part| !matches!(part, Part::Name | Part::Filter))
                .all(|&part| self.same_part(part, text, other, other_text))
    }

    /// Returns how similar two triggers are: the number of equal parts, where the keys count more than all other parts
    /// together.
    pub fn likeness(&self, text: &[u8], other: &Program, other_text: &[u8]) -> usize {
        Part::ALL
            .iter()
            .filter(|&&part| self.same_part(part, text, other, other_text))
            .map(|part| match part {
                Part::Keys => Part::ALL.len(),
                _ => 1,
            })
            .sum()
    }

    /// Returns whether one part of both triggers is the same.
    pub(super) fn same_part(
        &self,
        part: Part,
        text: &[u8],
        other: &Program,
        other_text: &[u8],
    ) -> bool {
        let pair = TriggerPair {
            a: (self, text),
            b: (other, other_text),
        };

        match part {
            Part::Name => self.name(text) == other.name(other_text),
            Part::Keys => same_all(&self.keys, &other.keys, |a, b| pair.same_key(a, b)),
            Part::Vals => same_all(&self.vals, &other.vals, |a, b| pair.same(a, b)),
            Part::Vars => same_all(&self.vars, &other.vars, |a, b| {
                pair.same_text(a.name, b.name) && pair.same(&a.field, &b.field)
            }),
            Part::Sort => self.sort_keys() == other.sort_keys(),
            Part::Table | Part::Expiry | Part::Overhead => true,
            Part::Actions => {
                self.limit() == other.limit()
                    && same_all(&self.actions, &other.actions, |a, b| pair.same_action(a, b))
            }
            Part::Join => same_all(&self.joins, &other.joins, |a, b| {
                same_all(&a.keys, &b.keys, |a, b| pair.same_key(a, b))
            }),
            Part::Quantiles => self.quantiles() == other.quantiles(),
            Part::Others => self.others == other.others,
            Part::Filter => self.filter(text) == other.filter(other_text),
        }
    }
}

impl Program {
    /// Returns whether extra words and sums of entries have the same layout, which triggers must have to share their
    /// entries: with equal texts, the fields of their events may still differ in size. The actions of both programs
    /// must be compiled.
    pub fn same_layout(&self, other: &Program) -> bool {
        self.aux_words() == other.aux_words()
            && self.columns == other.columns
            && self.tallies == other.tallies
            && same_all(&self.vars, &other.vars, |a, b| a.cell == b.cell)
            && same_all(&self.actions, &other.actions, |a, b| a.track == b.track)
            && same_all(&self.saves, &other.saves, |a, b| {
                a.at == b.at && a.words == b.words && a.field.kind == b.field.kind
            })
    }
}

/// Returns whether two lists have the same length and `same` holds for each pair of items.
fn same_all<T>(a: &[T], b: &[T], same: impl Fn(&T, &T) -> bool) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
}

/// Two programs, each with its text.
struct TriggerPair<'p> {
    a: (&'p Program, &'p [u8]),
    b: (&'p Program, &'p [u8]),
}

impl TriggerPair<'_> {
    fn same_key(&self, a: &Key, b: &Key) -> bool {
        a.offset == b.offset && a.size == b.size && self.same(&a.field, &b.field)
    }

    /// Returns whether two fields are the same, regardless of their places in the record.
    fn same(&self, a: &Field, b: &Field) -> bool {
        let same_op = match (a.op, b.op) {
            (Op::Const(a), Op::Const(b)) => a == b,
            (Op::Ref(a), Op::Ref(b)) => self.same_ref(a, b),
            // If another trigger has a variable of that name, which of the two it means depends on which trigger came
            // first.
            (Op::Own(_), Op::Ref(_) | Op::Own(_)) | (Op::Ref(_), Op::Own(_)) => {
                return a.modifier == b.modifier && self.same_name(a.name, b.name)
            }
            (Op::Expr(a), Op::Expr(b)) => self.same_code(a, b),
            (a, b) => mem::discriminant(&a) == mem::discriminant(&b),
        };

        same_op
            && a.modifier == b.modifier
            && a.size == b.size
            && a.signed == b.signed
            && self.same_name(a.type_name, b.type_name)
            && (matches!(a.op, Op::Ref(_)) || self.same_name(a.name, b.name))
    }

    fn same_code(&self, a: Code, b: Code) -> bool {
        same_all(a.of(&self.a.0.code), b.of(&self.b.0.code), |a, b| {
            match (a, b) {
                (Insn::Push(a), Insn::Push(b)) => self.same(a, b),
                (a, b) => mem::discriminant(a) == mem::discriminant(b),
            }
        })
    }

    /// Returns whether two references name the same variable, and the same event if both texts name one.
    fn same_ref(&self, a: u8, b: u8) -> bool {
        let (Some(a), Some(b)) = (
            self.a.0.refs.get(usize::from(a)),
            self.b.0.refs.get(usize::from(b)),
        ) else {
            return false;
        };
        let same_event = match (a.event, b.event) {
            (Some(a), Some(b)) => self.same_event_name(a, b),
            _ => true,
        };

        same_event && self.same_name(a.name, b.name)
    }

    fn same_action(&self, a: &Action, b: &Action) -> bool {
        let same_handler = match (a.handler.matched(), b.handler.matched()) {
            (Some(a), Some(b)) => self.same_event_name(a, b),
            _ => match (a.handler.tracked(), b.handler.tracked()) {
                (Some((arg, _)), Some((other, _))) => {
                    a.handler.word() == b.handler.word() && self.same_text(arg, other)
                }
                _ => false,
            },
        };

        same_handler && (self.same_event(a, b) || self.same_typed(a, b))
    }

    /// Returns whether two actions generate the same synthetic event with the same parameters, with or
    /// without the word `trace`.
    fn same_event(&self, a: &Action, b: &Action) -> bool {
        let (ActionKind::Trace { event, .. }, ActionKind::Trace { event: other, .. }) =
            (a.kind, b.kind)
        else {
            return false;
        };

        self.same_text(event, other)
            && same_all(self.a.0.params_of(a), self.b.0.params_of(b), |a, b| {
                self.same_text(*a, *b)
            })
    }

    /// Returns whether two actions have the same text. Their kinds may still differ: a synthetic event called `saved`
    /// may have been created after the first one.
    fn same_typed(&self, a: &Action, b: &Action) -> bool {
        let (a_list, b_list) = (self.a.0.typed_of(a), self.b.0.typed_of(b));
        let (a_text, b_text) = (self.a.1, self.b.1);

        self.same_text(a.word, b.word)
            && a_list
                .map(|span| span.of(a_text))
                .eq(b_list.map(|span| span.of(b_text)))
    }

    /// Returns whether two pairs of system and event have the same names.
    fn same_event_name(&self, a: (Span, Span), b: (Span, Span)) -> bool {
        self.same_text(a.0, b.0) && self.same_text(a.1, b.1)
    }

    fn same_text(&self, a: Span, b: Span) -> bool {
        a.of(self.a.1) == b.of(self.b.1)
    }

    fn same_name(&self, a: Name, b: Name) -> bool {
        self.a.0.name_of(a, self.a.1) == self.b.0.name_of(b, self.b.1)
    }
}
