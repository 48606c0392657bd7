// SPDX-License-Identifier: GPL-2.0

//! Splitting, trimming and number parsing with the results of the kernel's string functions.
//!
//! C counterpart: [`lib/string.c`](srctree/lib/string.c) (`strsep()`, `strim()`) and
//! [`lib/kstrtox.c`](srctree/lib/kstrtox.c).
//!
//! Context: any.

use core::fmt;

use super::{
    Out,
    Span, //
};
use crate::error::Errno;

/// Iterates over the parts of a span that `separator` bytes divide, as `strsep()` does: empty parts
/// are included, and a span without a separator is one part.
///
/// # Examples
///
/// ```
/// use rust_hist::text::{lex::Split, Span};
///
/// let text = b"keys=next_pid:pause";
/// let mut parts = Split::new(text, Span { start: 0, end: text.len() }, b':');
///
/// assert_eq!(parts.next().map(|part| part.of(text)), Some(&b"keys=next_pid"[..]));
/// assert_eq!(parts.rest().map(|rest| rest.of(text)), Some(&b"pause"[..]));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Split<'t> {
    text: &'t [u8],
    rest: Option<Span>,
    separator: u8,
}

impl<'t> Split<'t> {
    /// Returns an iterator over the parts of `span` in `text`.
    pub fn new(text: &'t [u8], span: Span, separator: u8) -> Self {
        Self {
            text,
            rest: Some(span),
            separator,
        }
    }

    /// Returns the text after the part that was returned last; `None` after the last part.
    pub fn rest(&self) -> Option<Span> {
        self.rest
    }
}

impl Iterator for Split<'_> {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        let rest = self.rest?;
        let found = position(rest.of(self.text), self.separator);

        self.rest = found.map(|at| rest.skip(at).skip(1));
        Some(found.map_or(rest, |at| rest.first(at)))
    }
}

/// Finds the word among several of which a typed word may be a misspelling: one that differs in one place by one or two
/// bytes, but not in most of its bytes.
///
/// # Examples
///
/// ```
/// use rust_hist::text::lex::Nearest;
///
/// let mut nearest = Nearest::to(b"szie");
/// nearest.offer(b"sort");
/// nearest.offer(b"size");
/// assert_eq!(nearest.word(), Some(&b"size"[..]));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Nearest<'w> {
    typed: &'w [u8],
    found: Option<(usize, &'w [u8])>,
}

impl<'w> Nearest<'w> {
    /// Returns a search for a word like `typed`, without candidates so far.
    pub fn to(typed: &'w [u8]) -> Self {
        Self { typed, found: None }
    }

    /// Considers one of the words. Of words that are equally near, the first one is kept.
    pub fn offer(&mut self, word: &'w [u8]) {
        let alike = |(a, b): &(&u8, &u8)| a == b;
        let before = self.typed.iter().zip(word).take_while(alike).count();
        let typed = self.typed.get(before..).unwrap_or(b"");
        let other = word.get(before..).unwrap_or(b"");
        let behind = typed.iter().rev().zip(other.iter().rev());
        let behind = behind.take_while(alike).count();
        let differs = typed.len().max(other.len()).saturating_sub(behind);
        let shorter = self.typed.len().min(word.len());

        if (1..=2).contains(&differs)
            && differs.saturating_mul(2) <= shorter
            && self.found.is_none_or(|(least, _)| differs < least)
        {
            self.found = Some((differs, word));
        }
    }

    /// Returns the nearest word so far, if any is near enough.
    pub fn word(&self) -> Option<&'w [u8]> {
        self.found.map(|(_, word)| word)
    }
}

/// Returns the index of the first `byte` in `bytes`.
pub fn position(bytes: &[u8], byte: u8) -> Option<usize> {
    bytes.iter().position(|&b| b == byte)
}

/// Returns the index of the first occurrence of `part` in `text`.
pub fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    (0..text.len()).find(|&at| text.get(at..).is_some_and(|rest| rest.starts_with(part)))
}

/// Splits `text` before the first byte that `ends` accepts; without such a byte the second part is empty.
pub fn split_before(text: &[u8], ends: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    let at = text.iter().position(|&b| ends(b));

    at.and_then(|at| text.split_at_checked(at))
        .unwrap_or((text, &[]))
}

/// Returns whether `byte` is white space for the kernel's `isspace()`, which takes bytes as Latin-1.
pub fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t'..=b'\r' | b' ' | 0xa0)
}

/// Returns whether `byte` is a space or a tab, which separate the filter from the parameters.
pub fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Returns `span` without the white space at its start and its end, as `strim()` does.
pub fn trim(text: &[u8], span: Span) -> Span {
    let bytes = span.of(text);
    let first = bytes.iter().position(|&b| !is_space(b));
    let last = bytes.iter().rposition(|&b| !is_space(b));

    match (first, last) {
        (Some(first), Some(last)) => span.first(last.saturating_add(1)).skip(first),
        _ => span.first(0),
    }
}

/// Most decimals that [`thousandths`] parses.
const DECIMALS: usize = 3;

/// Parses a decimal number with at most three decimals, in thousandths; `None` if `text` is no such number.
///
/// # Examples
///
/// ```
/// use rust_hist::text::lex::thousandths;
///
/// assert_eq!(thousandths(b"99.5"), Some(99_500));
/// assert_eq!(thousandths(b"1."), None);
/// ```
pub fn thousandths(text: &[u8]) -> Option<u32> {
    let (whole, decimals) = match position(text, b'.') {
        Some(at) => (text.get(..at)?, text.get(at.saturating_add(1)..)?),
        None => (text, &b"0"[..]),
    };

    if whole.is_empty() || decimals.is_empty() || decimals.len() > DECIMALS {
        return None;
    }

    let zeros = b"000".get(decimals.len()..)?;
    let mut units = 0u32;

    for byte in [whole, decimals, zeros].into_iter().flatten() {
        let digit = char::from(*byte).to_digit(10)?;

        units = units.checked_mul(10)?.checked_add(digit)?;
    }
    Some(units)
}

/// Writes a number of thousandths in the shortest form that [`thousandths`] parses.
pub fn write_thousandths(n: u32, out: &mut dyn Out) -> fmt::Result {
    write!(out, "{}", n / 1000)?;
    match n % 1000 {
        0 => Ok(()),
        n if n % 100 == 0 => write!(out, ".{}", n / 100),
        n if n % 10 == 0 => write!(out, ".{:02}", n / 10),
        n => write!(out, ".{n:03}"),
    }
}

/// Parses a number as `kstrtoull(text, 0, ..)` does: decimal, hexadecimal after `0x`, octal after
/// `0`, with an optional plus sign before it and an optional newline after it.
///
/// # Errors
///
/// [`Errno::Erange`] if the number has more than 64 bits, [`Errno::Einval`] if `text` is no number.
///
/// # Examples
///
/// ```
/// use rust_hist::{error::Errno, text::lex::number};
///
/// assert_eq!(number(b"0x80"), Ok(128));
/// assert_eq!(number(b"128k"), Err(Errno::Einval));
/// assert_eq!(number(b"0x10000000000000000"), Err(Errno::Erange));
/// ```
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

    let rest = digits.get(used..).unwrap_or(&[]);

    match value {
        None => Err(Errno::Erange),
        Some(value) if used > 0 && matches!(rest, [] | [b'\n']) => Ok(value),
        Some(_) => Err(Errno::Einval),
    }
}
