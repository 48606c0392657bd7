// SPDX-License-Identifier: GPL-2.0

//! The tracked value of `onmax()`, `onchange()` and `onover()` in an element: a number, and the row saved with it.
//!
//! C counterpart: `check_track_val_max()`, `save_track_val()` and `save_track_data_vars()` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c), which compare and store
//! in separate steps. Here number and row always come from the same hit.
//!
//! If all words are 0, the number is 0 and no hit has stored it, as in C.
//!
//! Context: any, NMI included. A loop is repeated only after another context has changed the tracked value.

use crate::limits::TRACK_ROWS;
use crate::sync::{
    Acquire,
    Atomic,
    Pair,
    PairValue, //
};

use super::WordWriter;

/// The bits of the meta word with the index of the current row.
const ROW: u64 = 0b11;
/// The bit of the meta word that is set once a hit has stored a number.
const FIRED: u64 = 0b100;
/// The bits of the meta word that mark the rows that hits are writing, one bit for each row.
const CLAIMS_AT: u32 = 3;
const CLAIMS: u64 = 0b111 << CLAIMS_AT;
/// The bit of the meta word that is set with a number, until a number arrives that [ends](When::Above) it.
const ABOVE: u64 = 1 << 6;
/// The lowest bit of the version.
const VERSION: u64 = 1 << 7;

// `free_row` computes the index of a row from its bit, which is right for three rows.
const _: () = assert!(TRACK_ROWS == 3 && CLAIMS.count_ones() == 3);

/// The condition under which a new number replaces the tracked one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The new number is larger, as an unsigned number.
    Larger,
    /// The new number is different.
    Other,
    /// The new number is the first one, or differs from the tracked one by at least `by`.
    Apart {
        /// The least difference.
        by: u64,
        /// The order of the numbers.
        order: Order,
    },
    /// The new number is above a limit, and since the last stored number there was one at or below `back`.
    Above {
        /// The limit, [ranked](Order::rank).
        limit: u64,
        /// The largest number after which the next one above the limit is stored, ranked; at most `limit`.
        back: u64,
        /// The order of the numbers.
        order: Order,
    },
}

/// How numbers compare: as unsigned or as signed ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order(u64);

impl Order {
    /// The order of unsigned numbers.
    pub const UNSIGNED: Self = Self(0);
    /// The order of signed numbers, in two's complement.
    pub const SIGNED: Self = Self(1 << 63);

    /// Returns a number whose unsigned value compares like `number` does in this order.
    #[inline]
    pub fn rank(self, number: u64) -> u64 {
        number ^ self.0
    }
}

impl When {
    /// Returns the order in which the condition compares numbers.
    pub fn order(self) -> Order {
        match self {
            When::Larger | When::Other => Order::UNSIGNED,
            When::Apart { order, .. } | When::Above { order, .. } => order,
        }
    }

    /// Returns whether the condition holds for the number `new` if `old` is tracked.
    #[inline]
    fn holds(&self, new: u64, old: PairValue) -> bool {
        match self {
            When::Larger => new > old.value,
            When::Other => new != old.value,
            When::Apart { .. } | When::Above { .. } => self.holds_by_state(new, old),
        }
    }

    /// Like [`When::holds`], for conditions that need the meta word. Not inlined, so that other conditions pay nothing
    /// for it.
    #[cold]
    #[inline(never)]
    fn holds_by_state(&self, new: u64, old: PairValue) -> bool {
        match *self {
            When::Larger | When::Other => false,
            When::Apart { by, order } => {
                old.meta & FIRED == 0 || order.rank(new).abs_diff(order.rank(old.value)) >= by
            }
            When::Above { limit, order, .. } => old.meta & ABOVE == 0 && order.rank(new) > limit,
        }
    }

    /// Returns whether `new` ends the state above the limit that the number in `old` has begun.
    #[inline]
    fn ends(&self, new: u64, old: PairValue) -> bool {
        match *self {
            When::Above { back, order, .. } => old.meta & ABOVE != 0 && order.rank(new) <= back,
            When::Larger | When::Other | When::Apart { .. } => false,
        }
    }
}

/// The result of [`TrackCell::update`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracked {
    /// The condition does not hold; the tracked number stays.
    Same,
    /// The new number was stored with its row.
    Stored,
    /// The condition holds, but other hits were writing all spare rows of this element. The tracked number stays.
    Lost,
}

/// Returns the number tracked [at](Pair::at) word `at` of an element, or 0 if no hit has stored one. The result may be
/// outdated at once; [`TrackCell::update`] compares again.
#[inline]
pub fn track_value(aux: &[Pair], at: u16) -> u64 {
    Pair::at(aux, at).map_or(0, Pair::value)
}

/// Returns whether a hit has stored the number tracked [at](Pair::at) word `at` of an element.
#[inline]
pub fn is_tracked(aux: &[Pair], at: u16) -> bool {
    Pair::at(aux, at).is_some_and(|pair| pair.meta() & FIRED != 0)
}

/// A tracked number and its row.
///
/// Borrows an element's aux words and needs no lock.
///
/// # Invariants
///
/// - Only the hit that has claimed a row writes it. A claimed row is not the current one; the claim ends when the hit
///   makes the row the current one or releases it.
/// - The version changes with each change of the number. So while the version stays the same, neither the
///   current row nor its content changes.
///
/// # Examples
///
/// ```
/// use rust_hist::{
///     sync::Pair,
///     tracing_map::{TrackCell, Tracked, When},
/// };
///
/// // Two words for the number, and three rows of one word.
/// let words: [Pair; 3] = core::array::from_fn(|_| Pair::zero());
/// let max = TrackCell::new(&words, 0, 1).ok_or("too few words")?;
/// let mut row = [0];
///
/// assert_eq!(max.update(&When::Larger, 10, |row| row.put(0, 42)), Tracked::Stored);
/// assert_eq!(max.update(&When::Larger, 9, |row| row.put(0, 43)), Tracked::Same);
/// assert_eq!((max.read(&mut row), row), (Some(10), [42]));
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Copy)]
pub struct TrackCell<'a> {
    pair: &'a Pair,
    /// The words after the number: first those of the rows.
    rows: &'a [Atomic<u64>],
    row_words: usize,
}

/// Returns a row that is neither the current one nor claimed, and its claim bit; `None` if there is no such row.
#[inline]
fn free_row(meta: u64) -> Option<(u64, u64)> {
    // CAST: less than 4.
    let current = 1u64.wrapping_shl((meta & ROW) as u32);
    let free = !(meta >> CLAIMS_AT | current) & (CLAIMS >> CLAIMS_AT);
    let first = free & free.wrapping_neg();

    // The bits of the three rows are 1, 2 and 4.
    (first != 0).then_some((first >> 1, first << CLAIMS_AT))
}

impl<'a> TrackCell<'a> {
    /// Returns the value tracked [at](Pair::at) word `at` of an element, with rows of `row_words` words; `None` if the
    /// element has no words for the number. If words of a row are missing, a hit that needs that row is
    /// [lost](Tracked::Lost).
    #[inline]
    pub fn new(aux: &'a [Pair], at: u16, row_words: u16) -> Option<Self> {
        debug_assert!(at % 2 == 0);
        let (pair, rows) = aux.get(usize::from(at / 2)..)?.split_first()?;

        Some(Self {
            pair,
            rows: Pair::words(rows),
            row_words: row_words.into(),
        })
    }

    /// Returns the words of row number `row` of a tracked value; `None` if the element does not have them.
    #[inline]
    fn row(&self, row: u64) -> Option<&'a [Atomic<u64>]> {
        // CAST: a row is less than 4.
        // OVERFLOW: `row_words` is at most 65535, so four rows have few words, here and below.
        let at = (row as usize).wrapping_mul(self.row_words);

        self.rows.get(at..at.wrapping_add(self.row_words))
    }

    /// Stores `value` if `when` holds, together with the row that `fill` writes.
    ///
    /// `fill` gets a row that no other hit writes; its words may be those of an earlier hit. If another hit meanwhile
    /// stores a number for which `when` no longer holds, the row is discarded.
    #[inline]
    pub fn update(&self, when: &When, value: u64, fill: impl FnOnce(WordWriter<'a>)) -> Tracked {
        self.replace(
            value,
            ABOVE,
            #[inline(always)]
            |old| when.holds(value, old),
            #[inline(always)]
            |row| {
                fill(row);
                true
            },
        )
    }

    /// Takes over the tracked value of a cell whose map is replaced by this one's: if no hit has stored a number here,
    /// or if `when` is [`When::Larger`] and the other number is larger. [`Tracked::Lost`] if nothing was done, since
    /// hits were writing all spare rows.
    #[inline(never)]
    pub fn take_over(&self, from: &TrackCell<'_>, when: &When) -> Tracked {
        loop {
            let seen = from.pair.load();
            if seen.meta & FIRED == 0 {
                return Tracked::Same;
            }
            let holds = |own: PairValue| {
                own.meta & FIRED == 0 || *when == When::Larger && seen.value > own.value
            };
            let mut is_whole = true;
            let done = self.replace(seen.value, seen.meta & ABOVE, holds, |row| {
                // ORDERING: pairs with `Release` of the words that a `WordWriter` writes: if this is a word of a later
                // row, the load of the pair below returns a later version.
                let words = from.row(seen.meta & ROW).unwrap_or(&[]).iter();

                row.put_all(words.map(|word| word.load(Acquire)));
                is_whole = from.pair.load().meta & !CLAIMS == seen.meta & !CLAIMS;
                is_whole
            });

            if is_whole {
                return done;
            }
        }
    }

    /// Stores `value` and `above`, together with the row that `fill` writes, if `holds` is true of the pair that they
    /// replace and `fill` does not return false.
    #[inline(always)]
    fn replace(
        &self,
        value: u64,
        above: u64,
        holds: impl Fn(PairValue) -> bool,
        fill: impl FnOnce(WordWriter<'a>) -> bool,
    ) -> Tracked {
        let mut old = self.pair.load_torn();

        if !holds(old) {
            return Tracked::Same;
        }
        if self.row_words == 0 {
            return self.store(value, above, holds, old, 0, 0);
        }

        let (row, claim, words, claimed) = loop {
            let Some((row, claim)) = free_row(old.meta) else {
                return Tracked::Lost;
            };
            let Some(words) = self.row(row) else {
                return Tracked::Lost;
            };
            let new = PairValue {
                value: old.value,
                // INVARIANT: the row is neither the current one nor claimed. The number and the version stay.
                meta: old.meta | claim,
            };
            match self.pair.cmpxchg(old, new) {
                Ok(()) => break (row, claim, words, new),
                Err(held) => old = held,
            }
            if !holds(old) {
                return Tracked::Same;
            }
        };

        if !fill(WordWriter::new(words)) {
            release(self.pair, claim);
            return Tracked::Same;
        }
        self.store(value, above, holds, claimed, row, claim)
    }

    /// Releases `claim`, and makes `value` the number and `row` the current row, unless `holds` has become false since
    /// the pair was `old`.
    #[inline(always)]
    fn store(
        &self,
        value: u64,
        above: u64,
        holds: impl Fn(PairValue) -> bool,
        mut old: PairValue,
        row: u64,
        claim: u64,
    ) -> Tracked {
        loop {
            // INVARIANT: this hit has made the claim; the version changes with the number.
            let version = (old.meta & !(ROW | FIRED | CLAIMS | ABOVE)).wrapping_add(VERSION);
            let meta = version | (old.meta & CLAIMS & !claim) | FIRED | above | row;

            // The full ordering of the exchange pairs with `Pair::load` in `read`: the stores of the row come
            // before that of the number.
            match self.pair.cmpxchg(old, PairValue { value, meta }) {
                Ok(()) => return Tracked::Stored,
                Err(held) => old = held,
            }
            if !holds(old) {
                break;
            }
        }
        release(self.pair, claim);
        Tracked::Same
    }

    /// Returns whether [`TrackCell::update`] or [`TrackCell::end`] has to be called for `value`, by one load.
    #[inline]
    pub fn is_due(&self, when: &When, value: u64) -> bool {
        let old = self.pair.load_torn();

        when.holds(value, old) || when.ends(value, old)
    }

    /// If `value` ends the state above the limit, records that, so that the next number above the limit will be stored;
    /// returns whether it does.
    #[inline]
    pub fn end(&self, when: &When, value: u64) -> bool {
        matches!(when, When::Above { .. }) && end_by_state(self.pair, when, value)
    }

    /// Copies as much of the row to `to` as fits and returns the number; `None`, without changing `to`, if no
    /// hit has stored a number.
    #[inline]
    pub fn read(&self, to: &mut [u64]) -> Option<u64> {
        let mut old = self.pair.load();

        loop {
            if old.meta & FIRED == 0 {
                return None;
            }
            let row = self.row(old.meta & ROW).unwrap_or(&[]);

            for (to, from) in to.iter_mut().zip(row) {
                // ORDERING: pairs with `Release` of the words that a `WordWriter` writes: if this is a word of a later row, the
                // load of the number below returns a later version.
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

/// Releases the claim of a hit; 0 is no claim, of a value without rows.
///
/// Takes the pair alone, as [`end_by_state`] does, so that a hit needs no place in memory for the cell.
#[cold]
#[inline(never)]
fn release(pair: &Pair, claim: u64) {
    // INVARIANT: the hit that has made the claim ends it. The number and the version stay.
    pair.change(|old| {
        (old.meta & claim != 0).then_some(PairValue {
            meta: old.meta & !claim,
            ..old
        })
    });
}

/// If `value` ends the state above the limit that the number in `pair` has begun, records that; returns whether it
/// does.
#[inline(never)]
fn end_by_state(pair: &Pair, when: &When, value: u64) -> bool {
    // INVARIANT: the number, its row, the claims and the version stay.
    pair.change(|old| {
        when.ends(value, old).then_some(PairValue {
            meta: old.meta & !ABOVE,
            ..old
        })
    })
    .is_some()
}
