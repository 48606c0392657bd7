// SPDX-License-Identifier: GPL-2.0

//! Where an expression falls apart.
//!
//! C counterpart: `contains_operator()` and `parse_unary()` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//! Of operators that bind alike the last is the root, so that evaluation goes from left to right.
//!
//! Context: process.

use crate::{
    error::{
        ErrKind,
        Errno,
        Refusal, //
    },
    text::Span, //
};

use super::Command;

/// An operator between two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Sub,
    Mul,
    Div,
}

/// The root of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    /// No operator: a constant, a field or a reference.
    Atom,
    /// A minus sign that begins the text, and no other.
    Minus,
    /// The operator at this byte of the text.
    Binary(Operator, usize),
}

/// Finds the root of the expression `span`.
pub(crate) fn root(command: &Command<'_>, span: Span) -> Root {
    let last = |operator| {
        (span.start..span.end)
            .rev()
            .find(|&at| command.byte(at) == operator)
    };
    let later = |a: (Option<usize>, Operator), b: (Option<usize>, Operator)| {
        let (at, operator) = if b.0 > a.0 { b } else { a };

        at.map(|at| Root::Binary(operator, at))
    };
    let minus = last(b'-');

    if minus == Some(span.start) {
        return Root::Minus;
    }
    later((minus, Operator::Sub), (last(b'+'), Operator::Add))
        .or_else(|| later((last(b'/'), Operator::Div), (last(b'*'), Operator::Mul)))
        .unwrap_or(Root::Atom)
}

/// What stands between the parentheses of `-(..)`.
///
/// PARITY: like `parse_unary()`, it looks for a parenthesis anywhere behind the sign, and takes the
/// byte behind the sign for it.
pub(crate) fn negated(command: &Command<'_>, span: Span) -> Result<Span, Refusal> {
    let text = command.text();
    let no_parens = command.explain(Errno::Einval, ErrKind::UnaryMinusParens, span);
    let rest = span.behind(1);

    if !rest.of(text).contains(&b'(') {
        return Err(no_parens);
    }

    let rest = rest.behind(1);
    let close = rest.of(text).iter().rposition(|&byte| byte == b')');
    let inner = rest.first(close.ok_or(no_parens)?);

    if inner.end.saturating_add(1) == rest.end {
        Ok(inner)
    } else {
        Err(command.refuse(ErrKind::UnaryMinusSubexpr, rest))
    }
}
