// SPDX-License-Identifier: GPL-2.0

//! Rows copied out of a map, to be sorted and shown while hits go on.
//!
//! C counterpart: `tracing_map_sort_entries()`, which copies only keys and pointers.
//!
//! Context: copying and reading: any. Never allocates, sleeps or locks.

use super::{
    part,
    Elt,
    KeyHash,
    Map,
    Merge,
    Shape, //
};
use crate::{
    limits::SUM_WORDS_MAX,
    sync::{
        Acquire,
        Atomic,
        Pair,
        Relaxed, //
    }, //
};
use core::ops::Deref;

/// Rows that were copied from a map, in memory that the caller owns.
///
/// # Invariants
///
/// `words` is a whole number of rows of `row_words` words: key, aux, sums.
///
/// # Examples
///
/// The rows of a map are copied and sorted by hits, most hits first:
///
/// ```
/// use rust_hist::{
///     sync::Pair,
///     tracing_map::{
///         copy_pairs,
///         sort::{row_of, sort, Column, SortEntry, SortKey},
///         Dimensions, Map, Rows, SeededHash, Shape,
///     },
/// };
///
/// let dimensions = Dimensions { bits: 7, key_words: 1, sums: 1, ..Dimensions::default() };
/// let shape = Shape::new(dimensions, 1).ok_or("out of range")?;
/// let storage: Vec<_> = (0..shape.pairs()).map(|_| Pair::zero()).collect();
/// let map = Map::new(shape, storage, SeededHash::default()).ok_or("too little memory")?;
///
/// for key in [7, 8, 9, 8] {
///     let elt = map.insert(&[key], |_aux| ()).ok_or("full")?;
///     map.shard(0).hit(elt, &[]);
/// }
///
/// let mut copy = vec![0; map.used() * shape.row_words()];
/// let len = map.copy_rows(map.used(), &mut copy, copy_pairs);
/// let rows = Rows::new(&shape, &copy, len);
/// let mut order = vec![SortEntry::default(); rows.len()];
/// let by_hits = SortKey { column: Column::Sum(0), descending: true };
///
/// sort(&rows, &[by_hits], &mut order);
/// let first = order.first().and_then(|entry| rows.get(row_of(entry))).ok_or("no row")?;
/// assert_eq!((first.key, first.sums), (&[8][..], &[2][..]));
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Copy)]
pub struct Rows<'a> {
    words: &'a [u64],
    key_words: usize,
    aux_words: usize,
    row_words: usize,
    len: usize,
}

/// The number of rows whose sums are added up together.
const BLOCK: usize = 32;

/// The mark of a row whose element is to be copied, in the word of the first sum.
const MARKED: u64 = 1;

/// One row of a copied map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'a> {
    /// The key.
    pub key: &'a [u64],
    /// The aux words of the element.
    pub aux: &'a [u64],
    /// The sums over all CPUs; the first one is the hit count.
    pub sums: &'a [u64],
}

impl<'a> Row<'a> {
    /// Returns the row of all keys that found no room, which has no key.
    pub fn of_others(sums: &'a [u64]) -> Self {
        Self {
            key: &[],
            aux: &[],
            sums,
        }
    }

    /// Returns whether this is the row of all keys that found no room.
    pub fn is_of_others(&self) -> bool {
        self.key.is_empty()
    }
}

impl<'a> Rows<'a> {
    /// Returns at most `len` rows that a map of `shape` has copied to `words`.
    pub fn new(shape: &Shape, words: &'a [u64], len: usize) -> Self {
        let row_words = shape.row_words();
        let len = words
            .len()
            .checked_div(row_words)
            .map_or(0, |rows| rows.min(len));

        // INVARIANT: `words` is cut to `len` whole rows.
        Self {
            // OVERFLOW: at most the length of `words`.
            words: words.get(..len.wrapping_mul(row_words)).unwrap_or(&[]),
            key_words: shape.key_words,
            aux_words: shape.aux_words(),
            row_words,
            len,
        }
    }

    /// Returns rows in `words`: each has `key_words` words of key, and as many aux words and sums as the rows of
    /// `others`. Words after the last whole row are ignored.
    pub fn with_keys(others: &Rows<'_>, key_words: usize, words: &'a [u64]) -> Self {
        let row_words = others
            .row_words
            .saturating_sub(others.key_words)
            .saturating_add(key_words);
        let len = words.len().checked_div(row_words).unwrap_or(0);

        // INVARIANT: `words` is cut to `len` whole rows.
        Self {
            // OVERFLOW: at most the length of `words`.
            words: words.get(..len.wrapping_mul(row_words)).unwrap_or(&[]),
            key_words,
            aux_words: others.aux_words,
            row_words,
            len,
        }
    }

    /// Returns the number of words of a row.
    pub fn row_words(&self) -> usize {
        self.row_words
    }

    /// Returns the number of words of a key.
    pub fn key_words(&self) -> usize {
        self.key_words
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns row `i`; `None` if there are fewer rows.
    #[inline]
    pub fn get(&self, i: usize) -> Option<Row<'a>> {
        let at = i.checked_mul(self.row_words)?;
        let row = self.words.get(at..)?.get(..self.row_words)?;
        let (key, rest) = row.split_at_checked(self.key_words)?;
        let (aux, sums) = rest.split_at_checked(self.aux_words)?;

        Some(Row { key, aux, sums })
    }

    /// Returns word `at` of row `i`, or 0 if there is no such word.
    #[inline]
    pub(super) fn word(&self, i: usize, at: usize) -> u64 {
        let at = i.wrapping_mul(self.row_words).wrapping_add(at);
        self.words.get(at).copied().unwrap_or(0)
    }

    /// Returns whether the key bytes of row `a` come before those of row `b`.
    #[inline]
    pub(super) fn key_is_less(&self, a: usize, b: usize) -> bool {
        for at in 0..self.key_words {
            let (a, b) = (self.word(a, at), self.word(b, at));
            if a != b {
                return a.to_be() < b.to_be();
            }
        }
        false
    }

    /// Returns the index of sum `i` in a row.
    pub(super) fn sum_at(&self, i: usize) -> usize {
        // OVERFLOW: the key has at most 129 words, the aux part at most 8192, and there are at most 81 sums.
        self.key_words.wrapping_add(self.aux_words).wrapping_add(i)
    }

    /// Returns the sum of the hit counts of all rows, wrapping around.
    pub fn hits(&self) -> u64 {
        let at = self.sum_at(0);
        (0..self.len)
            .map(|i| self.word(i, at))
            .fold(0, u64::wrapping_add)
    }

    /// Iterates over the rows in the order in which they were copied.
    pub fn iter(&self) -> impl Iterator<Item = Row<'a>> + '_ {
        (0..self.len).filter_map(|i| self.get(i))
    }
}

/// Copies the aux words of an element, like [`copy_words`].
pub fn copy_pairs(from: &[Pair], to: &mut [u64]) {
    copy_words(Pair::words(from), to);
}

/// Copies words one by one. The copy is consistent only if no other context changes them.
pub fn copy_words(from: &[Atomic<u64>], to: &mut [u64]) {
    for (to, from) in to.iter_mut().zip(from) {
        // ORDERING: the caller has found the element by loading its slot with `Acquire`, so the words that its inserter
        // wrote are visible.
        *to = from.load(Relaxed);
    }
}

impl<S, H> Map<S, H>
where
    S: Deref<Target = [Pair]>,
    H: KeyHash,
{
    /// Copies the elements with an index below `limit` to `to` and returns their number.
    ///
    /// If `limit` is the result of [`Map::used`] and `to` has `limit * row_words()` words, every key is copied whose
    /// insertion was complete when `used` was called. Hits go on meanwhile: each word of a row is copied at some time
    /// during the call. `copy_aux` copies the aux words of an element; [`copy_pairs`] is enough for words that do not
    /// change.
    ///
    /// The slots are in the order of hashes, so copying in that order would access the elements, and each shard, at
    /// random. Therefore the slots are only read to mark the elements, which are then copied in the order of memory.
    pub fn copy_rows(
        &self,
        limit: usize,
        to: &mut [u64],
        copy_aux: impl Fn(&[Pair], &mut [u64]),
    ) -> usize {
        self.copy(limit, to, copy_aux, |map, row_words, rows| {
            map.mark(row_words, rows, map.published(), MARKED);
        })
    }

    /// Copies the elements with an index below `limit` whose rows the function `mark` has marked.
    pub(super) fn copy(
        &self,
        limit: usize,
        to: &mut [u64],
        copy_aux: impl Fn(&[Pair], &mut [u64]),
        mark: impl FnOnce(&Self, usize, &mut [u64]),
    ) -> usize {
        let row_words = self.shape().row_words().max(1);
        let limit = to.len().checked_div(row_words).unwrap_or(0).min(limit);
        let Some(to) = to.get_mut(..limit.wrapping_mul(row_words)) else {
            return 0;
        };

        self.mark_all(row_words, to, 0);
        mark(self, row_words, to);
        let len = self.copy_marked(row_words, to, copy_aux);

        // OVERFLOW: at most the length of `to`.
        let rows = to.get_mut(..len.wrapping_mul(row_words)).unwrap_or(&mut []);
        for block in rows.chunks_mut(row_words.wrapping_mul(BLOCK)) {
            self.add_up(row_words, block);
        }
        len
    }

    /// Marks all rows with `mark`.
    fn mark_all(&self, row_words: usize, rows: &mut [u64], mark: u64) {
        let mark_at = self.shape().sums_in_row();

        for row in rows.chunks_exact_mut(row_words) {
            if let Some(word) = row.get_mut(mark_at) {
                *word = mark;
            }
        }
    }

    /// Marks the rows whose index is the index of one of `elts` with `mark`.
    fn mark(&self, row_words: usize, rows: &mut [u64], elts: impl Iterator<Item = Elt>, mark: u64) {
        let mark_at = self.shape().sums_in_row();

        for elt in elts {
            // OVERFLOW: a row is not longer than an element's words in the map, so the index is less than the
            // number of words of the map.
            let at = elt.index().wrapping_mul(row_words).wrapping_add(mark_at);
            if let Some(word) = rows.get_mut(at) {
                *word = mark;
            }
        }
    }

    /// Marks the rows whose index is the index of an element in the map. No insertion may be in progress.
    pub(super) fn mark_settled(&self, row_words: usize, rows: &mut [u64]) {
        self.mark_all(row_words, rows, MARKED);
        self.mark(row_words, rows, self.pool().given_back(), 0);
    }

    /// Copies the key and aux words of the marked elements to consecutive rows, and returns their number.
    /// The word of the first sum of a row becomes the index of its element.
    fn copy_marked(
        &self,
        row_words: usize,
        rows: &mut [u64],
        copy_aux: impl Fn(&[Pair], &mut [u64]),
    ) -> usize {
        let shape = self.shape();
        let mark_at = shape.sums_in_row();
        let mut len: usize = 0;

        for (elt, index) in (0u32..).map(Elt).zip(0..rows.len() / row_words.max(1)) {
            // OVERFLOW: less than the length of `rows`.
            let marked = rows.get(index.wrapping_mul(row_words).wrapping_add(mark_at));
            if marked != Some(&MARKED) {
                continue;
            }
            // A row is never written after its own mark, so each mark is read before it is overwritten.
            let Some(row) = rows
                .get_mut(len.wrapping_mul(row_words)..)
                .and_then(|rest| rest.get_mut(..row_words))
            else {
                break;
            };
            let Some((key, rest)) = row.split_at_mut_checked(shape.key_words) else {
                break;
            };
            let Some((aux, sums)) = rest.split_at_mut_checked(shape.aux_words()) else {
                break;
            };
            copy_words(self.key(elt), key);
            copy_aux(self.aux(elt), aux);
            if let Some(first) = sums.first_mut() {
                // CAST: `usize` has at most 64 bits.
                *first = index as u64;
            }
            // OVERFLOW: `len` is at most the number of elements.
            len = len.wrapping_add(1);
        }
        len
    }

    /// In each of at most [`BLOCK`] rows, replaces the element's index by the element's sums over all shards.
    ///
    /// The shards are added one after the other; the rows are few enough to stay in the L1 cache.
    fn add_up(&self, row_words: usize, rows: &mut [u64]) {
        let shape = self.shape();
        let sums_at = shape.sums_in_row();
        let mut places = [0; BLOCK];

        for (place, row) in places.iter_mut().zip(rows.chunks_exact_mut(row_words)) {
            let sums = row.get_mut(sums_at..).unwrap_or(&mut []);
            // CAST: the index of an element has 32 bits.
            let index = sums.first().map_or(0, |index| *index as usize);
            *place = shape.sums_at(index);
            sums.fill(0);
        }
        for shard in 0..shape.shards {
            let shard = part(self.words(), shape.shard_at(shard), shape.shard_words);
            for (place, row) in places.iter().zip(rows.chunks_exact_mut(row_words)) {
                let sums = row.get_mut(sums_at..).unwrap_or(&mut []);

                add_part(sums, shard.get(*place..).unwrap_or(&[]), &shape.merge);
            }
        }
    }

    /// Copies the sums of an element, merged over the CPUs, to `sums`, which has the shape's number of words.
    pub(super) fn copy_sums(&self, elt: Elt, sums: &mut [u64]) {
        let shape = self.shape();

        let place = shape.sums_at(elt.index());

        sums.fill(0);
        for shard in 0..shape.shards {
            // OVERFLOW: less than the number of words of the map.
            let at = shape.shard_at(shard).wrapping_add(place);

            add_part(sums, self.words().get(at..).unwrap_or(&[]), &shape.merge);
        }
    }
}

/// Adds the words of one element and CPU to those of a row: `parts` begins with as many words as `sums` has.
#[inline]
fn add_part(sums: &mut [u64], parts: &[Atomic<u64>], merge: &Merge) {
    if !merge.is_plain() {
        return merge_into(sums, parts, merge);
    }
    for (sum, part) in sums.iter_mut().zip(parts) {
        // ORDERING: the sums of one row need not be consistent with each other while hits add to them.
        *sum = sum.wrapping_add(part.load(Relaxed));
    }
}

/// How often the words of one element and CPU are read at most before they are used even if a hit is changing them.
const READ_TRIES: usize = if cfg!(loom) { 1 } else { 16 };

/// Merges the words of one element and CPU into a row, if possible as they are between two hits.
#[inline(never)]
fn merge_into(sums: &mut [u64], parts: &[Atomic<u64>], merge: &Merge) {
    let mut words = [0; SUM_WORDS_MAX];
    let words = words.get_mut(..sums.len()).unwrap_or(&mut []);
    // ORDERING: `Acquire` keeps each load after the one before it. A hit first writes the count of hits that have
    // begun, and last the hit count: if the former, read again at the end, equals the latter, no hit was in progress.
    let load = |at: usize| parts.get(at).map_or(0, |word| word.load(Acquire));

    for _ in 0..READ_TRIES {
        for (at, word) in words.iter_mut().enumerate() {
            *word = load(at);
        }
        if merge.settle(words, load) {
            break;
        }
    }
    merge.add(sums, words);
}
