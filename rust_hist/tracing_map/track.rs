// SPDX-License-Identifier: GPL-2.0

//! What `onmax()` and `onchange()` keep in an element: a number, and the row saved with it.
//!
//! C counterpart: `check_track_val_max()`, `save_track_val()` and `save_track_data_vars()`, which
//! compare and store one by one; here value and row are always those of one hit.
//!
//! Memory that is all 0 is a 0 that no hit has stored, as in C.
//!
//! Context: any, NMI included. A loop goes round again only because another context has stored a
//! number meanwhile.

use crate::limits::TRACK_ROWS;
use crate::sync::{
    Acquire,
    Atomic,
    Both,
    Pair,
    Release, //
};

/// The bits of the meta word with the number of the current row.
const ROW: u64 = 0b11;
/// The bit that says whether any hit has stored a number.
const FIRED: u64 = 0b100;
/// Where the bits begin that say which rows are being written.
const CLAIMS_AT: u32 = 3;
const CLAIMS: u64 = 0b111 << CLAIMS_AT;
/// One version.
const VERSION: u64 = 1 << 6;

const _: () = assert!(TRACK_ROWS == CLAIMS.count_ones() as usize && TRACK_ROWS <= ROW as usize);

/// When a number takes the place of the one that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// If it is larger, unsigned.
    Larger,
    /// If it is another one.
    Other,
}

impl When {
    #[inline(always)]
    fn holds(self, new: u64, old: u64) -> bool {
        match self {
            When::Larger => new > old,
            When::Other => new != old,
        }
    }
}

/// How an update ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracked {
    /// The number that is there stays.
    Same,
    /// The number is there now, with its row.
    Stored,
    /// The number should be there, but all rows were in use: more hits than there are spare rows
    /// wrote to this element at once. The number that is there stays.
    Lost,
}

/// The number tracked in `words` from `at` on at this moment, which is 0 if no hit has stored any.
#[inline(always)]
pub fn track_value(words: &[Atomic<u64>], at: usize) -> u64 {
    // ORDERING: a hint of what `TrackCell::update` will find.
    words.get(at).map_or(0, |value| value.load(Acquire))
}

/// A tracked number and its row.
///
/// A view of an element's aux part, whose owner it borrows; it needs no lock.
///
/// # Invariants
///
/// - A row is written only by the one hit that has claimed it. A claimed row is not the current one,
///   and stays with its hit until that makes it the current one or gives it back.
/// - The version changes with each change of the number; so a current row whose version is still the
///   same has not changed since.
#[derive(Clone, Copy)]
pub struct TrackCell<'a> {
    pair: Pair<'a>,
    rows: &'a [Atomic<u64>],
    row_words: usize,
}

/// Returns the claim bit of a row.
#[inline(always)]
fn claim_of(row: u64) -> u64 {
    // CAST: less than 4. OVERFLOW: the same.
    1u64.wrapping_shl(CLAIMS_AT.wrapping_add(row as u32))
}

impl<'a> TrackCell<'a> {
    /// The cell in `words`, with rows of `row_words` words; `None` if there are too few words or
    /// [`Pair`] refuses them.
    #[inline(always)]
    pub fn new(words: &'a [Atomic<u64>], row_words: usize) -> Option<Self> {
        let pair = Pair::new(words)?;
        let rows = words.get(2..)?.get(..row_words.checked_mul(TRACK_ROWS)?)?;

        Some(Self {
            pair,
            rows,
            row_words,
        })
    }

    /// Returns the words of a row.
    #[inline(always)]
    fn row(&self, row: u64) -> &'a [Atomic<u64>] {
        // CAST: less than 4. OVERFLOW: at most the words of all rows and one more.
        let at = (row as usize).wrapping_mul(self.row_words);

        self.rows
            .get(at..)
            .and_then(|from| from.get(..self.row_words))
            .unwrap_or(&[])
    }

    /// Stores `value` if it belongs there, together with the row that `fill` writes word by word.
    ///
    /// `fill` gets a row that is this hit's alone and holds what an earlier hit left there. It is not
    /// called for nothing but when another hit comes in between that makes `value` too small.
    #[inline]
    pub fn update(&self, when: When, value: u64, fill: impl FnOnce(&RowWriter<'a>)) -> Tracked {
        if !when.holds(value, self.pair.value()) {
            return Tracked::Same;
        }
        let mut old = self.pair.glance();

        if self.row_words == 0 {
            return self.store(when, value, old, 0, 0);
        }

        let (row, claimed) = loop {
            let free = |row: &u64| *row != old.meta & ROW && old.meta & claim_of(*row) == 0;
            // CAST: 3.
            let Some(row) = (0..TRACK_ROWS as u64).find(free) else {
                return Tracked::Lost;
            };
            let new = Both {
                value: old.value,
                // INVARIANT: neither current nor claimed. The number stays, and so does the version.
                meta: old.meta | claim_of(row),
            };
            match self.pair.cmpxchg(old, new) {
                Ok(()) => break (row, new),
                Err(held) => old = held,
            }
            if !when.holds(value, old.value) {
                return Tracked::Same;
            }
        };

        fill(&RowWriter {
            words: self.row(row),
        });
        self.store(when, value, claimed, row, claim_of(row))
    }

    /// Makes `value` the number and `row` the current row, and gives `claim` back; only the latter if
    /// `value` does not belong there any more.
    #[inline]
    fn store(&self, when: When, value: u64, mut old: Both, row: u64, claim: u64) -> Tracked {
        loop {
            // INVARIANT: the claim is that of this hit. With the number the version changes.
            let (new, end) = if when.holds(value, old.value) {
                let version = (old.meta & !(ROW | FIRED | CLAIMS)).wrapping_add(VERSION);
                let meta = version | (old.meta & CLAIMS & !claim) | FIRED | row;
                (Both { value, meta }, Tracked::Stored)
            } else {
                let meta = old.meta & !claim;
                (Both { meta, ..old }, Tracked::Same)
            };
            if new == old {
                return end;
            }
            // The full order of this pairs with `load` in `read` and in `update`: the row comes
            // before the number.
            match self.pair.cmpxchg(old, new) {
                Ok(()) => return end,
                Err(held) => old = held,
            }
        }
    }

    /// Copies the row to `to`, or as much as fits, and returns the number; `None` if no hit has
    /// stored any, and then `to` is left as it is.
    #[inline]
    pub fn read(&self, to: &mut [u64]) -> Option<u64> {
        let mut old = self.pair.load();

        loop {
            if old.meta & FIRED == 0 {
                return None;
            }
            for (to, from) in to.iter_mut().zip(self.row(old.meta & ROW)) {
                // ORDERING: pairs with `Release` in `RowWriter`: whoever sees a word of a later row
                // sees below that the number has changed before.
                *to = from.load(Acquire);
            }
            let new = self.pair.load();
            if new.meta & !CLAIMS == old.meta & !CLAIMS {
                return Some(new.value);
            }
            old = new;
        }
    }
}

/// A row that is being written.
pub struct RowWriter<'a> {
    words: &'a [Atomic<u64>],
}

impl RowWriter<'_> {
    /// Writes word `at` of the row, if there is one.
    #[inline(always)]
    pub fn put(&self, at: usize, word: u64) {
        if let Some(place) = self.words.get(at) {
            // ORDERING: pairs with `Acquire` in `TrackCell::read`.
            place.store(word, Release);
        }
    }
}
