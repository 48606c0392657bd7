// SPDX-License-Identifier: GPL-2.0

//! Maps of different age, of a table whose starts expire.
//!
//! There is no C counterpart.
//!
//! Starts go to the youngest map. Whoever ends one looks for its key there, and only if the key is not there in the one
//! before, and so on: so a start hides all of its key that are older. From time to time
//!
//! 1. an empty map becomes the youngest, and the maps that were no longer the youngest at the time before are taken out of
//!    sight; the others stay;
//! 2. when no hit uses those any more, [`Map::left`] counts the starts in them that nobody has ended.
//!
//! So a start is found from one such time to the next at least. Nothing is moved from one map to another. What is done to
//! the variables of a map while it is in sight is done by the exchanges of their cells, so each start is ended once or
//! counted in the last step.
//!
//! Readers have the rows of all maps that are in sight, as [`Generations`].
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

/// What has become of the starts of one key in one map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Starts {
    /// Nobody has ended the last one.
    pub is_left: bool,
    /// Nobody has ended so many before the next one began.
    pub overwritten: u64,
}

/// What has become of the starts of a map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Nobody has ended them.
    pub expired: u64,
    /// Nobody has either, and the next one of the key has begun, in the same map or in a younger one.
    pub overwritten: u64,
}

impl<S, H> Map<S, H>
where
    S: Deref<Target = [Pair]>,
    H: KeyHash,
{
    /// Counts the starts that nobody has ended: those that were overwritten, and the last ones of their elements, by whether
    /// the key is in one of the `younger` maps. `starts` says it of an element by its aux words and hits. While hits use
    /// this map the result may be off by what they do; the others are in use.
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
            let (mut expired, mut overwritten) = (0, starts.overwritten);

            match starts.is_left {
                true if self.is_in(younger.clone(), elt) => {
                    overwritten = overwritten.wrapping_add(1)
                }
                is_left => expired = u64::from(is_left),
            }
            // OVERFLOW: at most as many as there were hits.
            left.expired = left.expired.wrapping_add(expired);
            left.overwritten = left.overwritten.wrapping_add(overwritten);
        }
        left
    }

    /// Counts the elements whose keys are in none of the `younger` maps.
    pub fn alone<'m>(&self, younger: impl Iterator<Item = &'m Self> + Clone) -> usize
    where
        Self: 'm,
    {
        self.published()
            .filter(|elt| !self.is_in(younger.clone(), *elt))
            .count()
    }

    /// Returns whether the key of an element is in one of the maps.
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

/// Rows of several maps of a table, those of a younger map before those of an older one, in the order of their keys.
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
    /// Returns those rows, which `sort` has put in the order of their keys.
    pub fn new(rows: Rows<'a>, order: &'a [SortEntry]) -> Self {
        Self { rows, order }
    }

    /// The rows of each key.
    fn groups(&self) -> impl Iterator<Item = &'a [SortEntry]> + 'a {
        let rows = self.rows;
        let key = move |entry: &SortEntry| rows.get(row_of(entry)).map(|row| row.key);

        self.order.chunk_by(move |a, b| key(a) == key(b))
    }

    /// Returns the number of keys.
    pub fn keys(&self) -> usize {
        self.groups().count()
    }

    /// Writes one row for each key to `to`, which has room for as many: the extra words are those of the youngest map.
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
