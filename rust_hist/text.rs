// SPDX-License-Identifier: GPL-2.0

//! Spans of a text, and the trait for writing text.
//!
//! `text/lex.rs` splits texts and reads numbers as the kernel's string functions do.
//!
//! Context: any.

pub mod lex;

use crate::alloc::Vec;
use core::fmt;

/// A range of bytes in a text that is kept elsewhere.
///
/// A span does not borrow its text, so a compiled trigger can hold spans next to the text itself.
///
/// # Examples
///
/// ```
/// use rust_hist::text::Span;
///
/// let span = Span { start: 5, end: 9 };
/// assert_eq!(span.of(b"keys=next:size=128"), b"next");
/// assert_eq!(span.of(b"short"), b"", "a span outside of the text is empty");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Index of the first byte.
    pub start: usize,
    /// Index after the last byte.
    pub end: usize,
}

impl Span {
    /// Returns the span of all of `text`.
    pub(crate) fn whole(text: &[u8]) -> Self {
        Self {
            start: 0,
            end: text.len(),
        }
    }

    /// Returns the first `n` bytes of the span.
    pub(crate) fn first(self, n: usize) -> Self {
        Self {
            start: self.start,
            end: self.start.saturating_add(n).min(self.end),
        }
    }

    /// Returns the span without its first `n` bytes.
    pub(crate) fn skip(self, n: usize) -> Self {
        Self {
            start: self.start.saturating_add(n).min(self.end),
            end: self.end,
        }
    }

    /// Returns the length in bytes.
    pub(crate) fn len(self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// Returns whether the span has no bytes.
    pub(crate) fn is_empty(self) -> bool {
        self.start >= self.end
    }

    /// Returns the bytes of the span in `text`, or no bytes if `text` ends before the span does.
    #[inline]
    pub fn of<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        text.get(self.start..self.end).unwrap_or(&[])
    }
}

/// A writer that takes bytes as well as UTF-8 text: text typed by a user need not be UTF-8.
///
/// # Errors
///
/// An implementation fails only if it has no memory or no space for the bytes.
///
/// # Examples
///
/// ```
/// use core::fmt::{self, Write};
/// use rust_hist::text::Out;
///
/// struct Buffer(Vec<u8>);
///
/// impl Write for Buffer {
///     fn write_str(&mut self, s: &str) -> fmt::Result {
///         self.write_bytes(s.as_bytes())
///     }
/// }
///
/// impl Out for Buffer {
///     fn write_bytes(&mut self, bytes: &[u8]) -> fmt::Result {
///         self.0.extend_from_slice(bytes);
///         Ok(())
///     }
/// }
///
/// let mut out = Buffer(Vec::new());
/// write!(out, "size={}:", 128)?;
/// out.write_bytes(b"name=\xff")?;
/// assert_eq!(out.0, b"size=128:name=\xff");
/// # Ok::<(), fmt::Error>(())
/// ```
pub trait Out: fmt::Write {
    /// Writes `bytes` unchanged.
    fn write_bytes(&mut self, bytes: &[u8]) -> fmt::Result;

    /// Writes each of `parts` unchanged.
    fn write_parts(&mut self, parts: &[&[u8]]) -> fmt::Result {
        parts.iter().try_for_each(|part| self.write_bytes(part))
    }
}

impl Out for Vec<u8> {
    fn write_bytes(&mut self, bytes: &[u8]) -> fmt::Result {
        self.extend_from_slice(bytes).map_err(|_| fmt::Error)
    }
}

impl fmt::Write for Vec<u8> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.write_bytes(s.as_bytes())
    }
}
