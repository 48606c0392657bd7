// SPDX-License-Identifier: GPL-2.0

//! How a filter compares a string with its pattern.
//!
//! C counterpart: `filter_parse_regex()` and the `regex_match_*()` functions of
//! [`kernel/trace/trace_events_filter.c`](srctree/kernel/trace/trace_events_filter.c), and `glob_match_len()` of
//! [`lib/glob.c`](srctree/lib/glob.c).
//!
//! Context: any, NMI included. Never panics.

use super::super::exec::until_nul;

/// A way to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// The string is the pattern.
    Full,
    /// It begins with it.
    Front,
    /// The pattern is somewhere in it.
    Middle,
    /// It ends with it.
    End,
    /// It is as the pattern describes by `*`, `?`, `[..]` and `\`.
    Glob,
}

impl How {
    /// Splits the operand of `~` into the way to compare, whether a string is meant that does not match, and the pattern.
    pub(super) fn of_glob(operand: &[u8]) -> (Self, bool, &[u8]) {
        let (is_not, pattern) = match operand {
            [b'!', pattern @ ..] => (true, pattern),
            pattern => (false, pattern),
        };
        let (is_end, inner) = match pattern {
            [b'*', inner @ ..] => (true, inner),
            inner => (false, inner),
        };
        let (is_front, inner) = match inner {
            [inner @ .., b'*'] => (true, inner),
            inner => (false, inner),
        };
        let is_special = |byte: &u8| matches!(byte, b'*' | b'[' | b'?' | b'\\');

        // PARITY: what begins with a digit is an index to `filter_parse_regex()`, which filters take as it stands.
        if pattern.first().is_some_and(u8::is_ascii_digit) {
            return (Self::Full, is_not, pattern);
        }
        match (is_end, is_front) {
            _ if inner.iter().any(is_special) => (Self::Glob, is_not, pattern),
            (true, true) => (Self::Middle, is_not, inner),
            (true, false) => (Self::End, is_not, inner),
            (false, true) => (Self::Front, is_not, inner),
            (false, false) => (Self::Full, is_not, inner),
        }
    }

    /// Returns whether `field`, which may have more behind a NUL, is as this way and the pattern say.
    ///
    /// PARITY: two of C's functions look at what is behind the NUL, and one of them takes the last byte for it.
    pub(super) fn matches(self, field: &[u8], pattern: &[u8]) -> bool {
        match self {
            Self::Full => before_nul(field) == pattern,
            Self::Front => before_nul(field).starts_with(pattern),
            Self::Middle => contains(field, pattern),
            Self::End => field
                .split_last()
                .is_some_and(|(_, before)| before.ends_with(pattern)),
            Self::Glob => glob(pattern, field),
        }
    }
}

/// The bytes before the first NUL.
fn before_nul(field: &[u8]) -> &[u8] {
    until_nul(field, 0, field.len())
}

/// The bytes up to and including the first NUL, if there is one.
pub(super) fn with_nul(field: &[u8]) -> &[u8] {
    let len = before_nul(field).len().saturating_add(1);

    field.get(..len).unwrap_or(field)
}

fn contains(field: &[u8], pattern: &[u8]) -> bool {
    let mut rest = field;

    loop {
        if rest.starts_with(pattern) {
            return true;
        }
        match rest {
            [_, behind @ ..] => rest = behind,
            [] => return false,
        }
    }
}

/// The byte at `at`; 0 behind the last one.
fn byte(text: &[u8], at: usize) -> u8 {
    text.get(at).copied().unwrap_or(0)
}

/// Whether the string, up to its NUL if it has one, is as a pattern describes. What does not fit is tried again behind the last `*`,
/// one byte further on: never twice at one place.
fn glob(pattern: &[u8], string: &[u8]) -> bool {
    // OVERFLOW: here and below, places in a pattern, of at most 255 bytes, and in a record.
    let (mut at, mut i) = (0usize, 0usize);
    let mut again = None;

    loop {
        let c = byte(string, i);
        let behind = at.wrapping_add(1);
        let (fits, next) = match byte(pattern, at) {
            b'*' if byte(pattern, behind) == 0 => return true,
            b'*' => {
                again = Some((behind, i));
                at = behind;
                continue;
            }
            b'?' => (c != 0, behind),
            b'[' => class(pattern, behind, c).unwrap_or((c == b'[', behind)),
            b'\\' => (c == byte(pattern, behind), behind.wrapping_add(1)),
            literal => (c == literal, behind),
        };

        match (fits, again) {
            (true, _) if c == 0 => return true,
            (true, _) => (at, i) = (next, i.wrapping_add(1)),
            (false, Some((star, from))) if c != 0 => {
                (at, i) = (star, from.wrapping_add(1));
                again = Some((at, i));
            }
            (false, _) => return false,
        }
    }
}

/// Whether the class of bytes behind a `[`, at `at`, has `c`, and the place behind its `]`; `None` if it has no end.
fn class(pattern: &[u8], at: usize, c: u8) -> Option<(bool, usize)> {
    let is_inverted = byte(pattern, at) == b'!';
    let mut at = at.wrapping_add(is_inverted.into());
    let mut first = byte(pattern, at);
    let mut is_in = false;

    // A `]` that comes first is one of the bytes.
    loop {
        let mut last = first;

        at = at.wrapping_add(1);
        if byte(pattern, at) == b'-' && byte(pattern, at.wrapping_add(1)) != b']' {
            last = byte(pattern, at.wrapping_add(1));
            at = at.wrapping_add(2);
        }
        if first == 0 || last == 0 {
            return None;
        }
        is_in |= (first..=last).contains(&c);
        first = byte(pattern, at);
        if first == b']' {
            return Some((is_in != is_inverted && c != 0, at.wrapping_add(1)));
        }
    }
}
