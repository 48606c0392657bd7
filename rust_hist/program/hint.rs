// SPDX-License-Identifier: GPL-2.0

//! Hints after the message of a refusal: the name, word or modifier that may have been meant.
//!
//! There is no C counterpart.
//!
//! Context: process, may sleep.

use crate::{
    error::{
        ErrKind,
        Refusal, //
    },
    field::TaskNumber,
    lang::{
        Usage,
        BLANK, //
    },
    text::{
        lex::{
            is_blank,
            Nearest, //
        },
        Span, //
    }, //
};

use super::{
    compile::Compiler,
    expr::read_op,
    Field,
    Kind,
    Modifier, //
};

/// The fields that every event has and that are not part of a record.
const SPECIAL: [&[u8]; 5] = [
    b"common_timestamp",
    b"common_stacktrace",
    b"common_cpu",
    b"common_comm",
    b"hitcount",
];

/// Hints that follow a message about a refused modifier.
pub(super) const VALID: &[u8] = b"valid here: ";
const NAMES: &[u8] = b"hex, sym, sym-offset, syscall";
const BUCKETS: &[u8] = b"log2, log2=N, buckets=N";
pub(super) const VALUES: &[u8] = b"hex, percent, graph, sum, min, max, avg, stddev";
pub(super) const FOR_NUMBERS: &[u8] = b"log2 and buckets are for numbers";
pub(super) const FOR_STACKS: &[u8] = b"stacktrace is for stacks";
const ONE_MODIFIER: &[u8] = b"a field has one modifier";
pub(super) const SECONDS: &[u8] = b"common_timestamp/1000000000 is in seconds";

impl Compiler<'_, '_> {
    /// Returns the refusal of a modifier, or of a field without one, with the parts of the hint `why`.
    pub(super) fn bad_modifier(&self, at: Span, why: &[&[u8]]) -> Refusal {
        self.refuse(ErrKind::BadFieldModifier, at).detailed(why)
    }

    /// Adds the hint that a field has one modifier to the refusal of a name whose system, the first of `event`, is a
    /// field.
    pub(super) fn second_modifier(&self, event: Option<(Span, Span)>, refusal: Refusal) -> Refusal {
        let Some((field, _)) = event else {
            return refusal;
        };
        let name = field.of(self.text);
        let is_field = Field::special(name, Modifier::None).is_some()
            || self.task_number(field).is_some()
            || self.event.field(name).is_some();

        match name {
            _ if !is_field || !refusal.is(ErrKind::FieldNotFound) => refusal,
            b"common_timestamp" => refusal.detailed(&[ONE_MODIFIER, b", ", SECONDS]),
            _ => refusal.detailed(&[ONE_MODIFIER]),
        }
    }

    /// Returns the refusal of a field that does not exist, with the nearest name of a field as a hint.
    pub(super) fn no_field(&self, name: Span) -> Refusal {
        let typed = name.of(self.text);
        let refusal = self.refuse(ErrKind::FieldNotFound, name);
        let mut nearest = Nearest::to(typed);

        if typed.iter().copied().any(is_blank) {
            return refusal.detailed(&[BLANK]);
        }
        SPECIAL.into_iter().for_each(|name| nearest.offer(name));
        for number in TaskNumber::ALL.into_iter().filter(|n| self.event.has(*n)) {
            nearest.offer(number.name().as_bytes());
        }
        self.event.fields(&mut |name| nearest.offer(name));
        match nearest.word() {
            Some(word) => refusal.detailed(&[b"did you mean ", word]),
            None => refusal,
        }
    }

    /// Adds the modifiers that the field `name` may have to the refusal of another modifier.
    pub(super) fn valid_modifiers(&self, name: Span, usage: Usage, refusal: Refusal) -> Refusal {
        let text = name.of(self.text);
        let special = Field::special(text, Modifier::None);
        let kind = match special {
            Some(field) => Some(field.kind),
            None if self.task_number(name).is_some() => Some(Kind::Number),
            None => self
                .event
                .field(text)
                .and_then(|desc| Some(read_op(&desc)?.1)),
        };
        let valid: &[&[u8]] = match (kind, usage) {
            (_, _) if !refusal.is(ErrKind::BadFieldModifier) || !refusal.detail().is_empty() => {
                return refusal
            }
            (None, _) => return refusal,
            (Some(Kind::Cpumask), _) => &[b"a mask of CPUs has none"],
            (Some(Kind::String), _) => &[b"a string has none"],
            (Some(Kind::Stack), _) => &[b"a stack has none but stacktrace"],
            (Some(Kind::Number), _) if text == b"common_timestamp" => &[VALID, b"usecs, ", BUCKETS],
            (Some(Kind::Number), Usage::Value) => &[VALID, VALUES],
            (Some(Kind::Number), Usage::Variable) => &[VALID, NAMES],
            (Some(Kind::Number), Usage::Key) if text == b"common_pid" => {
                &[VALID, NAMES, b", ", BUCKETS, b", execname"]
            }
            (Some(Kind::Number), Usage::Key | Usage::Operand) => &[VALID, NAMES, b", ", BUCKETS],
        };

        refusal.detailed(valid)
    }
}
