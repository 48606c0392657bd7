// SPDX-License-Identifier: GPL-2.0

//! Statistics of a number that an element keeps besides its sum: the largest, the smallest, and sums of squares.
//!
//! There is no C counterpart.
//!
//! A [`Tally`] says which statistics of a number a hit keeps, and [`Shard::keep`] keeps them, in the words of its CPU;
//! a [`Gauge`] says which number a reader computes from the words of a row.
//!
//! The words of an element are the hit count, the sums, and then the other statistics, number after number.
//!
//! *The largest* number is kept as the largest word `v ^ flip`, where `flip` makes words compare like the numbers; *the
//! smallest* is kept so with all bits inverted. In both a word of 0 stands for "none", as in an empty map.
//!
//! *Squares* have twice the bits of a number. Their sum is kept in words that overlap: word `j` is the sum of the
//! squares divided by `2^(24 j)`, modulo `2^64`. Each word takes one addition, so an interrupt loses nothing, and
//! nothing is carried from one word to the next. Below the unit of the next word, a word has only the quotients'
//! remainders that were cut off: less than `2^24` of its units for each hit. So the next word and the bits that both
//! have in common determine it. The sum of the numbers has a second word for the same reason, as the first one wraps
//! around. All of it is exact for up to 2^39 hits of a row whose numbers add up to less than 2^87, and their squares to
//! less than 2^160: any numbers of up to 2^23 hits, and numbers below 2^48 in all 2^39.
//!
//! Context: a [`Tally`] and keeping it: any, NMI included, with preemption off. A [`Gauge`]: any.

use super::{
    wide::{
        largest,
        Wide, //
    },
    Elt,
    Shard,
    Values, //
};
use crate::{
    limits::{
        List,
        C_SUMS_MAX,
        VALS_MAX, //
    },
    stat::Stat,
    sync::{
        local_add_behind,
        local_inc,
        order_writes,
        Atomic,
        Relaxed, //
    }, //
};
use core::cmp::Ordering;

/// The number of bits between the units of two words of squares.
const APART: u32 = 24;

/// The number of words for squares: the count of hits that have begun to add, the upper bits of the sum, five words of
/// squares.
const SQUARES: usize = 7;

/// The number of words that a hit accesses in a shard, from the hit count of its element on: enough for an index of 8
/// bits and [`SQUARES`] words, so that one bounds check does for all.
pub(super) const SPAN: usize = 256 + SQUARES;

/// The statistics that a hit keeps of one number. The default is its sum alone.
///
/// # Invariants
///
/// - `form` combines `peaks` and `has_squares` in one word.
/// - Among [`Tallies`], `own` is the index of the first word besides the sum, `squares` the index of the first word of
///   squares, if there are any, and only the last tally has `is_last`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    form: Form,
    is_last: bool,
    own: u8,
    squares: u8,
    is_signed: bool,
    has_squares: bool,
    /// The number of `flips` in use.
    peaks: u8,
    /// For each of at most two words, the number to combine a value with, by `^`, before the larger of both is kept.
    flips: [u64; 2],
}

/// The statistics of a number besides its sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Form {
    #[default]
    Nothing,
    /// Either the largest or the smallest number.
    Peak,
    /// Both the largest and the smallest number.
    Peaks,
    Squares,
    /// Squares, and the largest or the smallest number or both.
    All,
}

/// Returns the `flip` that makes the largest word stand for the largest or smallest number; `is_signed` is the numbers'
/// kind.
fn order_of(stat: Stat, is_signed: bool) -> u64 {
    let sign = if is_signed { 1 << 63 } else { 0 };

    match stat {
        Stat::Min => !sign,
        _ => sign,
    }
}

impl Tally {
    /// Returns a tally of signed or unsigned numbers that keeps the sum alone.
    pub fn new(is_signed: bool) -> Self {
        Self {
            is_signed,
            ..Self::default()
        }
    }

    /// Adds the statistics that `stat` needs.
    pub fn keep(&mut self, stat: Stat) {
        let flip = order_of(stat, self.is_signed);

        match stat {
            Stat::Sum | Stat::Avg => {}
            Stat::Stddev => self.has_squares = true,
            Stat::Min | Stat::Max if self.place_of(flip).is_some() => {}
            Stat::Min | Stat::Max => {
                if let Some(place) = self.flips.get_mut(usize::from(self.peaks)) {
                    *place = flip;
                    self.peaks = self.peaks.saturating_add(1);
                }
            }
        }
        // INVARIANT: `form` agrees with `has_squares` and `peaks`.
        self.form = match (self.has_squares, self.peaks) {
            (false, 0) => Form::Nothing,
            (false, 1) => Form::Peak,
            (false, _) => Form::Peaks,
            (true, 0) => Form::Squares,
            (true, _) => Form::All,
        };
    }

    /// Returns the number of words besides the sum.
    fn own_words(&self) -> usize {
        let squares = if self.has_squares { SQUARES } else { 0 };

        squares.saturating_add(self.peaks.into())
    }

    /// Returns which of the peak words has this `flip`; `None` if there is none.
    fn place_of(&self, flip: u64) -> Option<u8> {
        let mut peaks = (0..self.peaks).zip(&self.flips);

        peaks.find_map(|(at, other)| (*other == flip).then_some(at))
    }
}

/// The words of an element that do not simply add up over the CPUs, as bit masks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merge {
    /// Words that merge to the largest one.
    peaks: u128,
    /// Words that count the hits that have begun to write to the words after them.
    begun: u128,
}

impl Merge {
    /// Returns how the words of an element with these tallies merge.
    fn of(tallies: &[Tally]) -> Self {
        let mut merge = Self::default();

        for tally in tallies {
            let bit = |at: u8| 1u128.wrapping_shl(at.into());

            for at in tally.own..tally.squares {
                merge.peaks |= bit(at);
            }
            if tally.has_squares {
                merge.begun |= bit(tally.squares);
            }
        }
        merge
    }

    /// Returns whether all words are sums, which may be read one by one: none is a maximum or a part of a square.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.peaks | self.begun == 0
    }

    /// Returns whether word `i` merges to the largest one instead of the sum.
    #[inline]
    pub(super) fn takes_largest(&self, i: usize) -> bool {
        // CAST: there are fewer words than bits.
        self.peaks.wrapping_shr(i as u32) & 1 != 0
    }

    /// Adds the words of one element, or row, to the words of another.
    ///
    /// # Examples
    ///
    /// ```
    /// use rust_hist::{
    ///     stat::Stat,
    ///     tracing_map::{Tallies, Tally},
    /// };
    ///
    /// let mut tally = Tally::new(false);
    /// tally.keep(Stat::Max);
    ///
    /// // Hit count, sum, maximum.
    /// let mut all = [3, 700, 500];
    /// Tallies::new(&[tally]).merge().add(&mut all, &[1, 900, 900]);
    /// assert_eq!(all, [4, 1600, 900]);
    /// ```
    pub fn add(&self, to: &mut [u64], from: &[u64]) {
        let mut peaks = self.peaks;

        if peaks == 0 {
            for (to, from) in to.iter_mut().zip(from) {
                *to = to.wrapping_add(*from);
            }
            return;
        }
        for (to, from) in to.iter_mut().zip(from) {
            *to = match peaks & 1 {
                0 => to.wrapping_add(*from),
                _ => (*to).max(*from),
            };
            peaks >>= 1;
        }
    }

    /// Returns whether `words` were read between two hits, as far as a reader can know. The first word, the hit count,
    /// is written last and was read first. `again` reads a word once more, to update the counts of hits that have
    /// begun: if one differs from the hit count, a hit was in progress.
    pub(super) fn settle(&self, words: &mut [u64], again: impl Fn(usize) -> u64) -> bool {
        let hits = words.first().copied();
        let mut is_settled = true;
        let mut begun = self.begun;

        while begun != 0 {
            // CAST: at most 127.
            let at = begun.trailing_zeros() as usize;

            if let Some(word) = words.get_mut(at) {
                *word = again(at);
                is_settled &= Some(*word) == hits;
            }
            begun &= begun.wrapping_sub(1);
        }
        is_settled
    }
}

/// The statistics that hits keep of all their numbers, and the places of their words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tallies {
    all: List<Tally, VALS_MAX>,
    merge: Merge,
}

impl Tallies {
    /// Assigns words to each of at most [`VALS_MAX`] numbers.
    pub fn new(tallies: &[Tally]) -> Self {
        let mut placed = List::new();
        let mut own = tallies.len().saturating_add(1);

        for (left, tally) in (0..tallies.len()).rev().zip(tallies) {
            let place = u8::try_from(own).unwrap_or(u8::MAX);
            // INVARIANT: the words begin where those of the number before end, and squares are after the other words.
            let _ = placed.push(Tally {
                is_last: left == 0,
                own: place,
                squares: place.saturating_add(tally.peaks),
                ..*tally
            });
            own = own.saturating_add(tally.own_words());
        }
        Self {
            merge: Merge::of(placed.as_slice()),
            all: placed,
        }
    }

    /// Returns the tallies of all numbers.
    pub fn as_slice(&self) -> &[Tally] {
        self.all.as_slice()
    }

    /// Returns how the words of an element merge over CPUs, and over elements.
    pub fn merge(&self) -> &Merge {
        &self.merge
    }

    /// Returns whether there are only sums, and not more than C has room for: then [`Shard::hit`] is enough.
    pub fn are_sums_of_c(&self) -> bool {
        let mut tallies = self.as_slice().iter();

        self.words() <= C_SUMS_MAX && tallies.all(|tally| tally.form == Form::Nothing)
    }

    /// Returns the number of words of an element, the hit count included.
    pub fn words(&self) -> usize {
        let sums = self.as_slice().len().saturating_add(1);

        self.as_slice()
            .iter()
            .fold(sums, |words, tally| words.saturating_add(tally.own_words()))
    }
}

/// Keeping statistics beyond the sums of a few numbers.
impl Shard<'_> {
    /// Counts a call that hit an element of a map with these tallies, in place of [`Shard::hit`].
    ///
    /// Statistics that take more than a few instructions are left to [`Shard::keep_rest`]: returns the index of the
    /// first number that was not kept, if any. The call is then not counted either. With `SEVERAL` false there is one
    /// number.
    #[inline(always)]
    pub fn keep<const SEVERAL: bool>(
        &self,
        elt: Elt,
        tallies: &Tallies,
        values: &impl Values,
    ) -> Option<usize> {
        let words = self.span(elt)?;
        let all = tallies.all.places();
        let [first, ..] = all;

        if !self.is_own || !first.keep_at_once(words, 0, values.value(0)) {
            return Some(0);
        }
        debug_assert!(SEVERAL || first.is_last);
        if SEVERAL && !first.is_last {
            for n in 1..VALS_MAX {
                let Some(tally) = all.get(n) else {
                    break;
                };
                if !tally.keep_at_once(words, n, values.value(n)) {
                    return Some(n);
                }
                if tally.is_last {
                    break;
                }
            }
        }
        // ORDERING: a reader of squares that sees this count must see the words before; see `merge_into`.
        order_writes();
        local_inc(words, 0);
        None
    }

    /// Completes a call that [`Shard::keep`] has left: keeps the numbers from `from` on, and counts the hit.
    pub fn keep_rest(&self, elt: Elt, tallies: &Tallies, values: &impl Values, from: usize) {
        let Some(words) = self.span(elt) else {
            return;
        };

        let mut n = from;

        while let Some(tally) = tallies.as_slice().get(n) {
            let v = values.value(n);

            if tally.has_squares {
                let squares = words.get(tally.squares.into()..);

                if let Some(squares) = squares.and_then(<[_]>::first_chunk) {
                    self.add_square(squares, v, tally.is_signed);
                }
            }
            let peaks = tally.flips.iter().take(tally.peaks.into());
            for (at, flip) in (usize::from(tally.own)..).zip(peaks) {
                self.raise(words, at, v ^ flip);
            }
            n = n.saturating_add(1);
            self.add_to(words, n, v);
        }
        // ORDERING: a reader of squares that sees this count must see the words before; see `merge_into`.
        order_writes();
        self.add_to(words, 0, 1);
    }

    /// Returns the words of an element and the following ones, [`SPAN`] in all, which are in the map.
    #[inline]
    fn span(&self, elt: Elt) -> Option<&[Atomic<u64>; SPAN]> {
        // CAST: a map has less than 2^32 words. The cast tells the compiler that the sum does not wrap around.
        let at = self.count_at(elt) as u32 as usize;

        let words = self
            .words
            // OVERFLOW: the sum of a number of 32 bits and a small one.
            .get(at..at.wrapping_add(SPAN))
            .and_then(<[_]>::first_chunk);

        debug_assert!(words.is_some(), "`Shape::with` has seen to it");
        words
    }

    /// Adds the square of a number to its words.
    fn add_square(&self, words: &[Atomic<u64>; SQUARES], v: u64, is_signed: bool) {
        // CAST: the bits of a signed number.
        let number = v as i64;
        let (high, magnitude) = match is_signed {
            true => (number.wrapping_shr(APART) as u64, number.unsigned_abs()),
            false => (v.wrapping_shr(APART), v),
        };
        // OVERFLOW: the square of a 64-bit number fits in 128 bits.
        let square = u128::from(magnitude).wrapping_mul(magnitude.into());

        self.add_to(words, 0, 1);
        order_writes();
        self.add_to(words, 1, high);
        for (at, j) in (2..SQUARES).zip(0u32..) {
            // CAST: cuts to 64 bits, as all words of squares are. OVERFLOW: at most 4 * 24.
            self.add_to(words, at, square.wrapping_shr(APART.wrapping_mul(j)) as u64);
        }
    }
}

impl Tally {
    /// Keeps number `n`; returns false and changes nothing if that takes more than a few instructions.
    #[inline(always)]
    fn keep_at_once(&self, words: &[Atomic<u64>; SPAN], n: usize, v: u64) -> bool {
        let is_peak = |peak| self.is_peak(words, v, peak);
        let is_left = match self.form {
            Form::Nothing => false,
            Form::Peak => is_peak(0),
            Form::Peaks => is_peak(0) || is_peak(1),
            Form::Squares => !self.add_small_square(words, v),
            Form::All => {
                is_peak(0) || self.peaks > 1 && is_peak(1) || !self.add_small_square(words, v)
            }
        };

        if !is_left {
            local_add_behind::<1>(words, n, v);
        }
        !is_left
    }

    /// Returns whether a number is larger than the one in its peak word `peak`.
    #[inline]
    fn is_peak(&self, words: &[Atomic<u64>; SPAN], v: u64, peak: usize) -> bool {
        // OVERFLOW: the sum of an 8-bit number and 0 or 1.
        let word = words.get(usize::from(self.own).wrapping_add(peak));

        match (word, self.flips.get(peak)) {
            // ORDERING: the word publishes nothing else; until the hit is counted it can only grow.
            (Some(word), Some(flip)) => v ^ flip > word.load(Relaxed),
            _ => false,
        }
    }

    /// Adds the square of a number below `2^32`, as [`Shard::add_square`] does, to two words or to four. Returns false
    /// for a larger number.
    #[inline(always)]
    fn add_small_square(&self, words: &[Atomic<u64>; SPAN], v: u64) -> bool {
        let at = usize::from(self.squares);

        if v >= 1 << APART {
            if v >= 1 << u32::BITS {
                return false;
            }
            local_inc(words, at);
            order_writes();
            local_add_behind::<1>(words, at, v.wrapping_shr(APART));
            // OVERFLOW: the square of a 32-bit number fits in 64 bits.
            let square = v.wrapping_mul(v);
            local_add_behind::<2>(words, at, square);
            local_add_behind::<3>(words, at, square.wrapping_shr(APART));
            local_add_behind::<4>(words, at, square.wrapping_shr(2 * APART));
            return true;
        }
        local_inc(words, at);
        order_writes();
        // OVERFLOW: the square of a 24-bit number fits in 64 bits.
        let square = v.wrapping_mul(v);
        local_add_behind::<2>(words, at, square);
        local_add_behind::<3>(words, at, square.wrapping_shr(APART));
        true
    }
}

/// The number that a reader computes from the words of a row for one column.
///
/// # Examples
///
/// ```
/// use rust_hist::{
///     stat::Stat,
///     tracing_map::{Gauge, Tallies, Tally},
/// };
///
/// let mut tally = Tally::new(false);
/// tally.keep(Stat::Max);
/// let tallies = Tallies::new(&[tally]);
/// let [max, avg] = [Stat::Max, Stat::Avg].map(|stat| Gauge::new(&tallies, 0, stat));
///
/// // Hit count, sum, maximum.
/// let row = [4, 1602, 900];
/// assert_eq!(max.number(&row).map(|n| n.whole), Some(900));
/// assert_eq!(avg.number(&row).map(|n| (n.whole, n.hundredths)), Some((400, 50)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gauge {
    stat: Stat,
    is_signed: bool,
    /// Index of the word with the sum.
    sum: u8,
    /// Index of the word with the maximum or minimum; for squares, of the first word after the count of begun hits.
    own: u8,
}

/// A number in the form in which it is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Number {
    /// Whether the number is below 0.
    pub negative: bool,
    /// The digits before the decimal point.
    pub whole: u64,
    /// The two digits after the decimal point, the rest cut off; 0 for a number without decimals.
    pub hundredths: u8,
}

impl Number {
    /// Returns a word as a signed or an unsigned number.
    fn of(word: u64, is_signed: bool) -> Self {
        // CAST: the bits of a signed number.
        let negative = is_signed && (word as i64) < 0;

        Self {
            negative,
            whole: if negative { word.wrapping_neg() } else { word },
            hundredths: 0,
        }
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        let magnitude = |n: &Self| (n.whole, n.hundredths);

        match (self.negative, other.negative) {
            (false, false) => magnitude(self).cmp(&magnitude(other)),
            (true, true) => magnitude(other).cmp(&magnitude(self)),
            (a, b) => b.cmp(&a),
        }
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Gauge {
    /// Returns the gauge for `stat` of number `n` of `tallies`, which must keep the words for it.
    pub fn new(tallies: &Tallies, n: usize, stat: Stat) -> Self {
        let tally = tallies.as_slice().get(n).copied().unwrap_or_default();
        let own = match stat {
            Stat::Stddev => tally.squares.saturating_add(1),
            _ => {
                let peak = tally.place_of(order_of(stat, tally.is_signed));

                tally.own.saturating_add(peak.unwrap_or(0))
            }
        };

        Self {
            stat,
            is_signed: tally.is_signed,
            sum: u8::try_from(n.saturating_add(1)).unwrap_or(u8::MAX),
            own,
        }
    }

    /// Returns the statistic that the gauge computes.
    pub fn stat(&self) -> Stat {
        self.stat
    }

    /// Returns the index of the word with the number's sum.
    pub fn sum(&self) -> usize {
        self.sum.into()
    }

    /// Returns whether the result is shown with decimals.
    pub fn has_decimals(&self) -> bool {
        matches!(self.stat, Stat::Avg | Stat::Stddev)
    }

    /// Returns whether the result may be below 0.
    pub fn is_signed(&self) -> bool {
        self.is_signed && self.stat != Stat::Stddev
    }

    /// Returns the result for a row; `None` if the row has no hits. `sums` are the row's words, merged over all CPUs.
    pub fn number(&self, sums: &[u64]) -> Option<Number> {
        let word = |at: u8| sums.get(usize::from(at)).copied().unwrap_or(0);
        let hits = sums.first().copied().filter(|&hits| hits != 0)?;

        Some(match self.stat {
            Stat::Sum => Number::of(word(self.sum), self.is_signed),
            Stat::Min | Stat::Max => {
                let flip = order_of(self.stat, self.is_signed);

                Number::of(word(self.own) ^ flip, self.is_signed)
            }
            Stat::Avg => {
                let sum = Number::of(word(self.sum), self.is_signed);
                let rest = u128::from(sum.whole.checked_rem(hits).unwrap_or(0));
                // OVERFLOW: the product of 100 and a 64-bit number, here and below.
                let parts = rest.wrapping_mul(100);
                let hundredths = largest(99, |part| part.wrapping_mul(hits.into()) <= parts);

                Number {
                    whole: sum.whole.checked_div(hits).unwrap_or(0),
                    // CAST: at most 99.
                    hundredths: hundredths as u8,
                    ..sum
                }
            }
            Stat::Stddev => {
                let words = sums.get(usize::from(self.own)..).unwrap_or(&[]);
                let mut own = [0; SQUARES - 1];

                for (own, word) in own.iter_mut().zip(words) {
                    *own = *word;
                }
                deviation(hits, word(self.sum), own, self.is_signed)
            }
        })
    }

    /// Returns a rank by which rows can be compared: it is not less than another row's, unless the
    /// [number](Gauge::number) is.
    pub(super) fn rank(&self, sums: &[u64]) -> u64 {
        match self.number(sums) {
            Some(number) if self.is_signed() => match number.negative {
                // OVERFLOW: the magnitude of a signed number is at most 2^63.
                true => (1u64 << 63).wrapping_sub(number.whole),
                false => (1u64 << 63).wrapping_add(number.whole),
            },
            Some(number) => number.whole,
            None => 0,
        }
    }
}

/// Returns `low` minus `high` in units of `low`, of which `2^24` are one unit of `high`: less than one such unit per
/// hit. Words read at different moments may differ by more.
fn beyond(high: i128, low: u64) -> i128 {
    // CAST: modulo 2^64, here and below.
    (low.wrapping_sub((high as u64).wrapping_shl(APART)) as i64).into()
}

/// Returns the number with the upper bits `high`, in units of `2^24`, and the lower bits `low`, modulo 2^64.
fn joined(high: i128, low: u64) -> i128 {
    // OVERFLOW: `high` has less than 100 bits.
    high.wrapping_shl(APART).wrapping_add(beyond(high, low))
}

/// Returns the standard deviation of `hits` numbers, of all numbers, not of a sample. With `S` the sum of the squares
/// and `T` the sum of the numbers it is the square root of `(hits * S - T^2) / hits^2`.
fn deviation(hits: u64, sum: u64, own: [u64; SQUARES - 1], is_signed: bool) -> Number {
    let [upper, q0, q1, q2, q3, q4] = own;
    // CAST: the bits of a signed number.
    let upper = match is_signed {
        true => (upper as i64).into(),
        false => upper.into(),
    };
    let total = joined(upper, sum);
    // `units` are the squares in units of 2^48, so that they fit in 128 bits; `rest` is the remainder.
    let units = joined(joined(q4.into(), q3), q2);
    let more = beyond(units, q1);
    // OVERFLOW: only the lowest 64 bits of the sum matter.
    let all = units.wrapping_shl(APART).wrapping_add(more);
    let rest = more.wrapping_shl(APART).wrapping_add(beyond(all, q0));
    let squares = Wide::product(
        units.max(0).unsigned_abs(),
        // OVERFLOW: `hits` has 64 bits.
        u128::from(hits).wrapping_shl(2 * APART),
    );
    let rest_of_all = Wide::product(rest.unsigned_abs(), hits.into());
    let squares = match rest < 0 {
        true => squares.less(rest_of_all),
        false => squares.plus(rest_of_all),
    };
    let total = total.unsigned_abs();
    // For words read at different moments the difference could be negative.
    let variance = squares.less(Wide::product(total, total));
    // In units of a hundredth, `hits` times the deviation is the square root of this.
    let scaled = variance.times(10_000);
    let fits = |parts: u128| match parts.checked_mul(hits.into()) {
        Some(root) => Wide::product(root, root) <= scaled,
        None => false,
    };
    let whole = largest(u64::MAX, |whole| fits(whole.wrapping_mul(100)));
    // OVERFLOW: the product of 100 and a 64-bit number, plus less than 100.
    let hundredths = largest(99, |part| {
        fits(u128::from(whole).wrapping_mul(100).wrapping_add(part))
    });

    Number {
        negative: false,
        whole,
        // CAST: at most 99.
        hundredths: hundredths as u8,
    }
}
