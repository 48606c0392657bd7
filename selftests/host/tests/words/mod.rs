// SPDX-License-Identifier: GPL-2.0

//! Strings, stacks and rows as slices of words, which the module only sees one by one.

#![allow(dead_code, reason = "not every test needs all of it")]

use rust_hist::tracing_map::{RowWriter, TextCell};

/// What tests do with a string or stack.
pub(crate) trait Content {
    /// Sets it to `words`.
    fn write(&self, words: impl IntoIterator<Item = u64>) -> bool;

    /// Unsets it.
    fn unset(&self) -> bool;

    /// Copies it to `to`, as much as fits, and zeros after it.
    fn read(&self, to: &mut [u64]) -> Option<()>;
}

impl Content for TextCell<'_> {
    fn write(&self, words: impl IntoIterator<Item = u64>) -> bool {
        self.fill(|content| {
            Some(
                words
                    .into_iter()
                    .enumerate()
                    .map(|(at, word)| content.put(at, word))
                    .count(),
            )
        })
    }

    fn unset(&self) -> bool {
        self.fill(|_| None)
    }

    fn read(&self, to: &mut [u64]) -> Option<()> {
        let len = self.copy(to.len(), |at, word| to[at] = word)?;
        to[len..].fill(0);
        Some(())
    }
}

/// What tests do with a row.
pub(crate) trait RowContent {
    /// Writes `words` from word `at` on.
    fn put_all(&self, at: usize, words: impl IntoIterator<Item = u64>);
}

impl RowContent for RowWriter<'_> {
    fn put_all(&self, at: usize, words: impl IntoIterator<Item = u64>) {
        for (at, word) in (at..).zip(words) {
            self.put(at, word);
        }
    }
}
