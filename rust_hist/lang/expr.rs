// SPDX-License-Identifier: GPL-2.0

//! The root of an expression: the operator that is applied last.
//!
//! C counterpart: `contains_operator()` and `parse_unary()` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//! Among operators of one precedence the last one is the root, so they are left-associative.
//!
//! Context: process.

use crate::{
    error::{
        ErrKind,
        Refusal, //
    },
    text::Span, //
};

use super::CommandText;

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
    /// A unary minus: the last minus sign is the first byte of the text.
    Minus,
    /// The operator at this byte of the text.
    Binary(Operator, usize),
}

/// Returns the root of the expression `span`.
pub(crate) fn root(command: &CommandText<'_>, span: Span) -> Root {
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

/// Returns the text inside the parentheses of `-(..)`.
///
/// PARITY: like `parse_unary()`, it looks for an opening parenthesis anywhere after the sign, and
/// then skips the byte after the sign as if it were that parenthesis.
pub(crate) fn negated(command: &CommandText<'_>, span: Span) -> Result<Span, Refusal> {
    let text = command.text();
    let no_parens = command.refuse(ErrKind::UnaryMinusParens, span);
    let rest = span.skip(1);

    if !rest.of(text).contains(&b'(') {
        return Err(no_parens);
    }

    let rest = rest.skip(1);
    let close = rest.of(text).iter().rposition(|&byte| byte == b')');
    let inner = rest.first(close.ok_or(no_parens)?);

    if inner.end.saturating_add(1) == rest.end {
        Ok(inner)
    } else {
        Err(command.refuse(ErrKind::UnaryMinusSubexpr, rest))
    }
}
