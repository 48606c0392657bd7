// SPDX-License-Identifier: GPL-2.0

//! Rows copied out of a map, to be sorted and shown while the map goes on changing.

use super::{
    part,
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

/// Rows whose sums are added up together.
const BLOCK: usize = 32;

/// Stands in the place of the first sum of a row whose element is to be copied.
const MARKED: u64 = 1;

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
        // OVERFLOW: less than the words of a row, of which there are few.
        self.key_words.wrapping_add(self.aux_words).wrapping_add(i)
    }

    /// Returns the hits of all rows, wrapping around.
    pub fn hits(&self) -> u64 {
        let at = self.sum_at(0);
        (0..self.len)
            .map(|i| self.word(i, at))
            .fold(0, u64::wrapping_add)
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
    ///
    /// The order of slots is that of hashes: a walk over them jumps about among the elements, and would
    /// do so in each shard. Here it only finds out which elements there are. What they hold is then
    /// copied in the order in which it lies in memory.
    pub fn copy_rows<F>(&self, limit: usize, to: &mut [u64], copy_aux: F) -> usize
    where
        F: Fn(&[Atomic<u64>], &mut [u64]),
    {
        let row_words = self.shape().row_words().max(1);
        let limit = to.len().checked_div(row_words).unwrap_or(0).min(limit);
        let Some(to) = to.get_mut(..limit.wrapping_mul(row_words)) else {
            return 0;
        };

        self.mark(row_words, to);
        let len = self.copy_marked(row_words, to, copy_aux);

        // OVERFLOW: as many words as there are, or fewer.
        let rows = to.get_mut(..len.wrapping_mul(row_words)).unwrap_or(&mut []);
        for block in rows.chunks_mut(row_words.wrapping_mul(BLOCK)) {
            self.add_up(row_words, block);
        }
        len
    }

    /// Writes for each row that there may be whether the map holds its element.
    fn mark(&self, row_words: usize, rows: &mut [u64]) {
        let mark_at = self.shape().sums_in_row();

        for row in rows.chunks_exact_mut(row_words) {
            if let Some(mark) = row.get_mut(mark_at) {
                *mark = 0;
            }
        }
        for elt in self.published() {
            // OVERFLOW: a word of the map has such a place, and a row is not longer.
            let at = elt.index().wrapping_mul(row_words).wrapping_add(mark_at);
            if let Some(mark) = rows.get_mut(at) {
                *mark = MARKED;
            }
        }
    }

    /// Copies key and aux words of all elements that are marked, moves them together, and returns how
    /// many they are. In the place of its first sum each gets its index.
    fn copy_marked<F>(&self, row_words: usize, rows: &mut [u64], copy_aux: F) -> usize
    where
        F: Fn(&[Atomic<u64>], &mut [u64]),
    {
        let shape = self.shape();
        let mark_at = shape.sums_in_row();
        let mut len: usize = 0;

        for (elt, index) in (0u32..).map(Elt).zip(0..rows.len() / row_words.max(1)) {
            // OVERFLOW: as many words as there are, or fewer.
            let marked = rows.get(index.wrapping_mul(row_words).wrapping_add(mark_at));
            if marked != Some(&MARKED) {
                continue;
            }
            // A row comes at the place of its own mark, which has been read, or before it.
            let Some(row) = rows
                .get_mut(len.wrapping_mul(row_words)..)
                .and_then(|rest| rest.get_mut(..row_words))
            else {
                break;
            };
            let Some((key, rest)) = row.split_at_mut_checked(shape.key_words) else {
                break;
            };
            let Some((aux, sums)) = rest.split_at_mut_checked(shape.aux_words) else {
                break;
            };
            copy_words(self.key(elt), key);
            copy_aux(self.aux(elt), aux);
            if let Some(first) = sums.first_mut() {
                // CAST: no machine has more than 64 bits.
                *first = index as u64;
            }
            // OVERFLOW: at most the number of elements.
            len = len.wrapping_add(1);
        }
        len
    }

    /// Puts in the place of the index in some rows, at most [`BLOCK`], their sums over all shards.
    ///
    /// One shard after the other: the rows are few enough to stay in the nearest cache meanwhile.
    fn add_up(&self, row_words: usize, rows: &mut [u64]) {
        let shape = self.shape();
        let sums_at = shape.sums_in_row();
        let mut places = [0; BLOCK];

        for (place, row) in places.iter_mut().zip(rows.chunks_exact_mut(row_words)) {
            let sums = row.get_mut(sums_at..).unwrap_or(&mut []);
            // CAST: an index, which was a `u32`.
            let index = sums.first().map_or(0, |index| *index as usize);
            *place = shape.sums_at(index);
            sums.fill(0);
        }
        for shard in 0..shape.shards {
            // OVERFLOW: below the number of words, see `Shape::new`.
            let at = shard
                .wrapping_mul(shape.shard_words)
                .wrapping_add(shape.shards_at);
            let shard = part(self.words(), at, shape.shard_words);
            for (place, row) in places.iter().zip(rows.chunks_exact_mut(row_words)) {
                let sums = row.get_mut(sums_at..).unwrap_or(&mut []);
                let parts = shard.get(*place..).unwrap_or(&[]);
                for (sum, part) in sums.iter_mut().zip(parts) {
                    // ORDERING: a number by itself; exact once the calls that add to it are over.
                    *sum = sum.wrapping_add(part.load(Relaxed));
                }
            }
        }
    }
}
