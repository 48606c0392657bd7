// SPDX-License-Identifier: GPL-2.0

//! Rows copied out of a map, to be sorted and shown while the map goes on changing.

use super::{
    Elt,
    KeyHash,
    Map,
    Shape, //
};
use crate::sync::{
    Atomic,
    Relaxed, //
};
use core::ops::Deref;

/// Rows in memory of the caller. A plain view; nothing in it changes.
///
/// # Invariants
///
/// `words` is a whole number of rows of `row_words` words: key, aux, sums.
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    words: &'a [u64],
    key_words: usize,
    aux_words: usize,
    row_words: usize,
    len: usize,
}

/// One row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    /// The key.
    pub key: &'a [u64],
    /// What the element held beside key and sums.
    pub aux: &'a [u64],
    /// The sums over all CPUs; the first one is the hit count.
    pub sums: &'a [u64],
}

impl<'a> Rows<'a> {
    /// Returns the first `len` rows that a map of `shape` copied to `words`, or as many as are there.
    pub fn new(shape: &Shape, words: &'a [u64], len: usize) -> Self {
        let row_words = shape.row_words();
        let len = words
            .len()
            .checked_div(row_words)
            .map_or(0, |rows| rows.min(len));

        // INVARIANT: cut to whole rows.
        Self {
            // OVERFLOW: not more than there are.
            words: words.get(..len.wrapping_mul(row_words)).unwrap_or(&[]),
            key_words: shape.key_words,
            aux_words: shape.aux_words,
            row_words,
            len,
        }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Says whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns row `i`.
    #[inline]
    pub fn get(&self, i: usize) -> Option<Row<'a>> {
        let at = i.checked_mul(self.row_words)?;
        let row = self.words.get(at..)?.get(..self.row_words)?;
        let (key, rest) = row.split_at_checked(self.key_words)?;
        let (aux, sums) = rest.split_at_checked(self.aux_words)?;

        Some(Row { key, aux, sums })
    }

    /// Returns word `at` of row `i`; 0 if there is none.
    #[inline(always)]
    pub(super) fn word(&self, i: usize, at: usize) -> u64 {
        let at = i.wrapping_mul(self.row_words).wrapping_add(at);
        self.words.get(at).copied().unwrap_or(0)
    }

    /// Says whether the key bytes of row `a` come before those of row `b`.
    #[inline(always)]
    pub(super) fn key_is_less(&self, a: usize, b: usize) -> bool {
        for at in 0..self.key_words {
            let (a, b) = (self.word(a, at), self.word(b, at));
            if a != b {
                return a.to_be() < b.to_be();
            }
        }
        false
    }

    /// Returns where in a row sum `i` is.
    pub(super) fn sum_at(&self, i: usize) -> usize {
        self.key_words.wrapping_add(self.aux_words).wrapping_add(i)
    }

    /// Returns the rows in the order in which they were copied.
    pub fn iter(&self) -> impl Iterator<Item = Row<'a>> + '_ {
        (0..self.len).filter_map(|i| self.get(i))
    }
}

/// Copies words that no longer change, or whose changes the reader does not mind.
pub fn copy_words(from: &[Atomic<u64>], to: &mut [u64]) {
    for (to, from) in to.iter_mut().zip(from) {
        // ORDERING: `Map::published` read the element's slot with `Acquire`.
        *to = from.load(Relaxed);
    }
}

impl<S, H> Map<S, H>
where
    S: Deref<Target = [Atomic<u64>]>,
    H: KeyHash,
{
    /// Copies the elements with an index below `limit` to `to` and returns how many there were.
    ///
    /// With `limit` from [`Map::used`] and `limit * row_words()` words, every key fits whose
    /// insertion was over when `used` was called. Hits go on meanwhile: each row is what its sums
    /// were at some moment, not all at the same one. Of the aux words `copy_aux` makes what the row
    /// is to hold of them; [`copy_words`] is for those that do not change.
    pub fn copy_rows<F>(&self, limit: usize, to: &mut [u64], copy_aux: F) -> usize
    where
        F: Fn(&[Atomic<u64>], &mut [u64]),
    {
        let shape = self.shape();
        let mut rows = to.chunks_exact_mut(shape.row_words().max(1));
        let mut len: usize = 0;

        for elt in self.published() {
            if elt.index() >= limit {
                continue;
            }
            let Some(row) = rows.next() else {
                break;
            };
            self.copy_row(elt, row, &copy_aux);
            // OVERFLOW: at most the number of slots.
            len = len.wrapping_add(1);
        }
        len
    }

    fn copy_row<F>(&self, elt: Elt, row: &mut [u64], copy_aux: &F)
    where
        F: Fn(&[Atomic<u64>], &mut [u64]),
    {
        let shape = self.shape();
        let Some((key, rest)) = row.split_at_mut_checked(shape.key_words) else {
            return;
        };
        let Some((aux, sums)) = rest.split_at_mut_checked(shape.aux_words) else {
            return;
        };

        copy_words(self.key(elt), key);
        copy_aux(self.aux(elt), aux);
        for (i, sum) in sums.iter_mut().enumerate() {
            *sum = self.sum(elt, i);
        }
    }
}
