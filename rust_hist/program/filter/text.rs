// SPDX-License-Identifier: GPL-2.0

//! The comparison of a filter's string with its pattern.
//!
//! C counterpart: `filter_parse_regex()` and the `regex_match_*()` functions of
//! [`kernel/trace/trace_events_filter.c`](srctree/kernel/trace/trace_events_filter.c), and `glob_match_len()` of
//! [`lib/glob.c`](srctree/lib/glob.c).
//!
//! Context: any, NMI included. Never panics.

use super::super::exec::until_nul;

/// A way to compare a string with a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// The string equals the pattern.
    Full,
    /// The string begins with the pattern.
    Front,
    /// The string contains the pattern.
    Middle,
    /// The string ends with the pattern.
    End,
    /// The string matches the pattern with its `*`, `?`, `[..]` and `\`.
    Glob,
}

impl How {
    /// Splits the operand of `~` into the way to compare, whether the match is negated by `!`, and the pattern.
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

        // PARITY: `filter_parse_regex()` takes a leading digit for an index, and filters compare such a pattern
        // literally.
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

    /// Returns whether `field`, up to its first NUL, matches the pattern in this way.
    ///
    /// PARITY: two of C's functions also compare bytes after the NUL, and one of these takes the last byte for the NUL.
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

/// Returns the bytes before the first NUL.
fn before_nul(field: &[u8]) -> &[u8] {
    until_nul(field, 0, field.len())
}

/// Returns the bytes up to and including the first NUL, if there is one; else all bytes.
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

/// Returns the byte at `at`; 0 beyond the end.
fn byte(text: &[u8], at: usize) -> u8 {
    text.get(at).copied().unwrap_or(0)
}

/// Returns whether the string, up to its NUL if it has one, matches a glob. After a mismatch the match is tried again
/// at the last `*`, one byte of the string further on.
fn glob(pattern: &[u8], string: &[u8]) -> bool {
    // OVERFLOW: here and below, indices of a pattern, of at most 255 bytes, and of a record.
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

/// Returns whether the class of bytes after a `[`, from `at` on, contains `c`, and the index after its `]`; `None` if
/// the class has no end.
fn class(pattern: &[u8], at: usize, c: u8) -> Option<(bool, usize)> {
    let is_inverted = byte(pattern, at) == b'!';
    let mut at = at.wrapping_add(is_inverted.into());
    let mut first = byte(pattern, at);
    let mut is_in = false;

    // A `]` right after the opening bracket is one of the bytes.
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
