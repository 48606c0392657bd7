// SPDX-License-Identifier: GPL-2.0

//! Strings and stacks as slices of words, which the module only sees one by one.

#![allow(dead_code, reason = "not every test needs all of it")]

use rust_hist::tracing_map::TextCell;

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
