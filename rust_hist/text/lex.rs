// SPDX-License-Identifier: GPL-2.0

//! Splitting, blanks and numbers, as the kernel's string functions do it.
//!
//! C counterpart: [`lib/string.c`](srctree/lib/string.c) (`strsep()`, `strim()`) and
//! [`lib/kstrtox.c`](srctree/lib/kstrtox.c).
//!
//! Context: any.

use super::Span;
use crate::error::Errno;

/// Yields the pieces of a span of `text` between the bytes `separator`, empty ones included.
///
/// A span without the separator is one piece; so is an empty span.
#[derive(Clone, Copy, Debug)]
pub struct Split<'t> {
    text: &'t [u8],
    rest: Option<Span>,
    separator: u8,
}

impl<'t> Split<'t> {
    /// Splits `span` of `text`.
    pub fn new(text: &'t [u8], span: Span, separator: u8) -> Self {
        Self {
            text,
            rest: Some(span),
            separator,
        }
    }

    /// What is left behind the last separator passed; `None` once the last piece is out.
    pub fn rest(&self) -> Option<Span> {
        self.rest
    }
}

impl Iterator for Split<'_> {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        let rest = self.rest?;
        let found = position(rest.of(self.text), self.separator);

        self.rest = found.map(|at| rest.behind(at).behind(1));
        Some(found.map_or(rest, |at| rest.first(at)))
    }
}

/// Index of the first `byte` in `bytes`.
pub fn position(bytes: &[u8], byte: u8) -> Option<usize> {
    bytes.iter().position(|&b| b == byte)
}

/// Whether `byte` is white space to `isspace()` of the kernel, whose characters are Latin-1.
pub fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | b' ' | 0xa0)
}

/// Whether `byte` may separate the filter from what stands before it.
pub fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// The part of `span` without the white space at its two ends.
pub fn trim(text: &[u8], span: Span) -> Span {
    let bytes = span.of(text);
    let first = bytes.iter().position(|&b| !is_space(b));
    let last = bytes.iter().rposition(|&b| !is_space(b));

    match (first, last) {
        (Some(first), Some(last)) => span.first(last.saturating_add(1)).behind(first),
        _ => span.first(0),
    }
}

/// Reads a number as `kstrtoull(text, 0, ..)` does: decimal, `0x` hexadecimal or `0` octal, with
/// an optional plus sign before and one newline behind.
pub fn number(text: &[u8]) -> Result<u64, Errno> {
    let text = text.strip_prefix(b"+").unwrap_or(text);
    let (radix, digits) = match text {
        [b'0', b'x' | b'X', hex @ ..] if hex.first().is_some_and(u8::is_ascii_hexdigit) => {
            (16, hex)
        }
        [b'0', ..] => (8, text),
        _ => (10, text),
    };
    let mut value = Some(0u64);
    let mut used = 0usize;

    for &byte in digits {
        let Some(digit) = char::from(byte).to_digit(radix) else {
            break;
        };
        value = value
            .and_then(|v| v.checked_mul(u64::from(radix)))
            .and_then(|v| v.checked_add(u64::from(digit)));
        used = used.saturating_add(1);
    }

    let behind = digits.get(used..).unwrap_or(&[]);

    match value {
        None => Err(Errno::Erange),
        Some(value) if used > 0 && matches!(behind, [] | [b'\n']) => Ok(value),
        Some(_) => Err(Errno::Einval),
    }
}
