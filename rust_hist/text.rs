// SPDX-License-Identifier: GPL-2.0

//! Pieces of a text, how they are found, and where text is written to.
//!
//! `text/lex.rs` splits texts and reads numbers.
//!
//! Context: any.

pub mod lex;

use core::fmt;

/// A piece of a text, as byte positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One beyond the last byte.
    pub end: usize,
}

impl Span {
    /// The whole of `text`.
    pub(crate) fn whole(text: &[u8]) -> Self {
        Self {
            start: 0,
            end: text.len(),
        }
    }

    /// The first `n` bytes of this piece.
    pub(crate) fn first(self, n: usize) -> Self {
        Self {
            start: self.start,
            end: self.start.saturating_add(n).min(self.end),
        }
    }

    /// This piece without its first `n` bytes.
    pub(crate) fn behind(self, n: usize) -> Self {
        Self {
            start: self.start.saturating_add(n).min(self.end),
            end: self.end,
        }
    }

    /// How many bytes it has.
    pub(crate) fn len(self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// Whether there is nothing in it.
    pub(crate) fn is_empty(self) -> bool {
        self.start >= self.end
    }

    /// The bytes of this piece; nothing if `text` is too short for it.
    #[inline]
    pub fn of<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        text.get(self.start..self.end).unwrap_or(&[])
    }
}

/// Where printed bytes go: text of the rooms is UTF-8, text of users need not be.
pub trait Out: fmt::Write {
    /// Appends `bytes` as they are.
    fn write_bytes(&mut self, bytes: &[u8]) -> fmt::Result;
}
