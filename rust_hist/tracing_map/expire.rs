// SPDX-License-Identifier: GPL-2.0

//! Maps of different age, for a table whose starts expire (`expire()`).
//!
//! There is no C counterpart.
//!
//! Starts are set in the youngest map. An end looks for its key there, and if the key is missing, in the next older
//! map, and so on: so a start hides all older starts of its key. From time to time
//!
//! 1. an empty map becomes the youngest; the maps that were not the youngest the last time already are removed from the
//!    list that hits search, the others stay;
//! 2. once no hit uses the removed maps any more, [`Map::left`] counts the starts in them that no end has consumed.
//!
//! So a start can be found for at least one such interval. Nothing is moved between maps. Variables of a listed map are
//! changed only by exchanges of their cells, so each start is either consumed once or counted in step 2.
//!
//! Readers merge the rows of all listed maps with [`Generations`].
//!
//! Context: any. Never allocates, sleeps or locks.

use super::{
    copy_words,
    key::{
        Key,
        Whole, //
    },
    sort::{
        row_of,
        SortEntry, //
    },
    Elt,
    KeyHash,
    Map,
    Merge,
    Rows, //
};
use crate::{
    limits::KEY_WORDS_MAX,
    sync::Pair, //
};
use core::ops::Deref;

/// The starts of one key in one map that no end has consumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Starts {
    /// Whether the last start was not consumed.
    pub is_left: bool,
    /// The number of starts that the next start has overwritten.
    pub overwritten: u64,
}

/// The starts of a whole map that no end has consumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Starts that were the last of their key.
    pub expired: u64,
    /// Starts after which the key started again, in the same map or in a younger one.
    pub overwritten: u64,
}

impl<S, H> Map<S, H>
where
    S: Deref<Target = [Pair]>,
    H: KeyHash,
{
    /// Counts the starts that no end has consumed: those that were overwritten, and the last start of each element,
    /// which counts as overwritten if the key is in one of the `younger` maps, else as expired. `starts` returns the
    /// starts of an element from its aux words and hits. Hits on this map during the call may be missing; the other
    /// maps are in use.
    pub fn left<'m>(
        &self,
        younger: impl Iterator<Item = &'m Self> + Clone,
        starts: impl Fn(&[Pair], u64) -> Starts,
    ) -> Left
    where
        Self: 'm,
    {
        let mut left = Left::default();

        for elt in self.published() {
            let starts = starts(self.aux(elt), self.sum(elt, 0));
            let last = match starts.is_left && self.is_in(younger.clone(), elt) {
                true => &mut left.overwritten,
                false => &mut left.expired,
            };

            // OVERFLOW: at most as many as there were hits, here and below.
            *last = last.wrapping_add(starts.is_left.into());
            left.overwritten = left.overwritten.wrapping_add(starts.overwritten);
        }
        left
    }

    /// Returns the number of elements whose keys are in none of the `younger` maps.
    pub fn alone<'m>(&self, younger: impl Iterator<Item = &'m Self> + Clone) -> usize
    where
        Self: 'm,
    {
        self.published()
            .filter(|elt| !self.is_in(younger.clone(), *elt))
            .count()
    }

    /// Returns whether the key of element `elt` is in one of the `maps`.
    fn is_in<'m>(&self, mut maps: impl Iterator<Item = &'m Self>, elt: Elt) -> bool
    where
        Self: 'm,
    {
        let mut words = [0; KEY_WORDS_MAX];
        let Some(words) = words.get_mut(..self.shape().key_words) else {
            return false;
        };
        copy_words(self.key(elt), words);
        let Some(key) = Whole::new(words, self.shape()) else {
            return false;
        };
        let hash = key.hash(self.hash);

        maps.any(|map| map.view().get(&key, hash).is_some())
    }
}

/// Rows of several maps of a table, ordered by key; rows of younger maps have lower indices than rows of older ones.
///
/// # Examples
///
/// ```
/// use rust_hist::tracing_map::{sort::{sort, SortEntry}, Dimensions, Generations, Merge, Rows, Shape};
///
/// let dimensions = Dimensions { bits: 7, key_words: 1, sums: 2, ..Dimensions::default() };
/// let shape = Shape::new(dimensions, 1).ok_or("out of range")?;
/// // Key, hits, sum; keys 7 and 8 of the younger map, and 7 of the older one.
/// let words = [7, 1, 10, 8, 1, 20, 7, 2, 30];
/// let rows = Rows::new(&shape, &words, 3);
/// let mut order = [SortEntry::default(); 3];
/// sort(&rows, &[], &mut order);
///
/// let generations = Generations::new(rows, &order);
/// let mut merged = vec![0; generations.keys() * rows.row_words()];
/// generations.merge(&Merge::default(), &mut merged);
/// assert_eq!(merged, [7, 3, 40, 8, 1, 20]);
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Copy)]
pub struct Generations<'a> {
    rows: Rows<'a>,
    order: &'a [SortEntry],
}

impl<'a> Generations<'a> {
    /// Returns the generations in `rows`; `order` has the rows sorted by their keys.
    pub fn new(rows: Rows<'a>, order: &'a [SortEntry]) -> Self {
        Self { rows, order }
    }

    /// Iterates over the groups of rows with equal keys.
    fn groups(&self) -> impl Iterator<Item = &'a [SortEntry]> + 'a {
        let rows = self.rows;
        let key = move |entry: &SortEntry| rows.get(row_of(entry)).map(|row| row.key);

        self.order.chunk_by(move |a, b| key(a) == key(b))
    }

    /// Returns the number of different keys.
    pub fn keys(&self) -> usize {
        self.groups().count()
    }

    /// Writes one row for each key to `to`, which must have room for all: sums are merged, extra words are the youngest
    /// map's.
    pub fn merge(&self, merge: &Merge, to: &mut [u64]) {
        let chunks = to.chunks_exact_mut(self.rows.row_words().max(1));

        for (group, to) in self.groups().zip(chunks) {
            let members = || {
                group
                    .iter()
                    .filter_map(|entry| self.rows.get(row_of(entry)))
            };
            let youngest = group.iter().map(row_of).min();
            let Some(youngest) = youngest.and_then(|row| self.rows.get(row)) else {
                continue;
            };
            let mut places = to.iter_mut();
            let words = youngest.key.iter().chain(youngest.aux);

            for (word, place) in words.zip(places.by_ref()) {
                *place = *word;
            }

            let sums = places.into_slice();

            sums.fill(0);
            for row in members() {
                merge.add(sums, row.sums);
            }
        }
    }
}
