// SPDX-License-Identifier: GPL-2.0

//! Words of an element that one context writes while others may read them.
//!
//! C counterpart: `memcpy()` and `strscpy()` into the variables and saved fields of an element, in
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//!
//! Context: any, NMI included.

use crate::sync::{
    Atomic,
    Relaxed,
    Release, //
};

/// The content of a string or stack, or a saved row, which only this context may write.
#[derive(Clone, Copy)]
pub struct WordWriter<'a> {
    words: &'a [Atomic<u64>],
}

impl<'a> WordWriter<'a> {
    #[inline]
    pub(super) fn new(words: &'a [Atomic<u64>]) -> Self {
        Self { words }
    }

    /// Returns the number of words that there is room for.
    #[inline]
    pub fn room(&self) -> usize {
        self.words.len()
    }

    /// Writes word `at`; does nothing if there is no such word.
    #[inline]
    pub fn put(&self, at: usize, word: u64) {
        if let Some(to) = self.words.get(at) {
            write(to, word);
        }
    }

    /// Writes `words`, as many as fit, and returns their number.
    #[inline]
    pub fn put_all(&self, words: impl ExactSizeIterator<Item = u64>) -> usize {
        let len = words.len().min(self.words.len());

        for (to, word) in self.words.iter().zip(words) {
            write(to, word);
        }
        len
    }

    /// Writes `words` and then `last`, if all fit; returns whether they did.
    #[inline]
    pub fn put_with_last(&self, words: impl ExactSizeIterator<Item = u64>, last: u64) -> bool {
        let Some((to_last, to)) = self.words.get(..=words.len()).and_then(<[_]>::split_last) else {
            return false;
        };

        for (to, word) in to.iter().zip(words) {
            write(to, word);
        }
        write(to_last, last);
        true
    }

    /// Returns the `len` words from `at` on; `None` if there are not as many.
    #[inline]
    pub fn part(&self, at: u16, len: u8) -> Option<Self> {
        let at = usize::from(at);

        // OVERFLOW: a `u16` and a `u8` are added as `usize`.
        self.words
            .get(at..at.wrapping_add(len.into()))
            .map(Self::new)
    }

    /// Replaces the last word by the result of `change`, if there are exactly `len` words.
    #[inline]
    pub fn change_last_of(&self, len: usize, change: impl FnOnce(u64) -> u64) {
        if let Some(last) = self.words.last().filter(|_| self.words.len() == len) {
            // ORDERING: only this context writes the word, so it reads its own last store.
            write(last, change(last.load(Relaxed)));
        }
    }
}

/// Writes one word.
#[inline]
fn write(to: &Atomic<u64>, word: u64) {
    // ORDERING: pairs with `Acquire` of the words in `TextCell::copy` and `TrackCell::read`: a reader that loads this word
    // then loads a meta word that is at least as late as the one which says that they are being written.
    to.store(word, Release);
}
