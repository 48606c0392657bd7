// SPDX-License-Identifier: GPL-2.0

//! What an element keeps of a number besides its sum: the largest, the smallest, and the sums of the squares.
//!
//! There is no C counterpart.
//!
//! A [`Tally`] says which of them a hit keeps of a number, and [`Shard::keep`] keeps them, in the words of its CPU; a
//! [`Gauge`] says what a reader makes of the words of a row.
//!
//! The words of an element are the hit count, the sums, and then what else is kept, number after number.
//!
//! *The largest* of numbers is the largest word `v ^ flip`, where `flip` makes the order of words that of the numbers;
//! *the smallest* is the same with all bits inverted. All zeros then stand for "none" in both, as in an empty map.
//!
//! *Squares* have twice the bits of a number. Their sum is kept in words that overlap: word `j` is the sum of the
//! squares divided by `2^(24 j)`, modulo `2^64`. Each is one addition, so nothing is lost to an interrupt, and no carry
//! goes from one to the next. What a word has below the next one's unit is known from the quotients that were cut off:
//! less than `2^24` of its units for each hit. So the next word and the bits that the two have in common tell it. The sum
//! of the numbers has a second word for the same reason, as the first one wraps around. All of it is exact for up to 2^39
//! hits of a row whose numbers add up to less than 2^87, and their squares to less than 2^160: any numbers of up to 2^23
//! hits, and numbers below 2^48 of all of them.
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

/// By how many bits the words of squares are apart.
const APART: u32 = 24;

/// The words of squares: how many hits have begun to add to them, the upper bits of the sum, and five of the squares.
const SQUARES: usize = 7;

/// The words of a shard that a hit looks at, from the hit count of its element on: so many that an index of 8 bits and
/// [`SQUARES`] more are among them, and one look is enough for all.
pub(super) const SPAN: usize = 256 + SQUARES;

/// What a hit keeps of one number. The default is its sum and nothing else.
///
/// # Invariants
///
/// - `form` says in one word what `peaks` and `has_squares` say.
/// - Among [`Tallies`], `own` is the index of its first word besides the sum, `squares` that of its first word of squares,
///   if it has any, and the last one alone `is_last`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    form: Form,
    is_last: bool,
    own: u8,
    squares: u8,
    is_signed: bool,
    has_squares: bool,
    /// How many of `flips` there are.
    peaks: u8,
    /// For each of at most two words what a number is combined with, by `^`, before the larger of both stays.
    flips: [u64; 2],
}

/// What is kept of a number besides its sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Form {
    #[default]
    Nothing,
    /// The largest or the smallest.
    Peak,
    /// Both.
    Peaks,
    Squares,
    /// Squares, and one or both.
    All,
}

/// What orders words like the numbers that they stand for; `is_signed` says of what kind these are.
fn order_of(stat: Stat, is_signed: bool) -> u64 {
    let sign = if is_signed { 1 << 63 } else { 0 };

    match stat {
        Stat::Min => !sign,
        _ => sign,
    }
}

impl Tally {
    /// Returns a tally of signed or unsigned numbers, which keeps the sum.
    pub fn new(is_signed: bool) -> Self {
        Self {
            is_signed,
            ..Self::default()
        }
    }

    /// Keeps what `stat` needs as well.
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
        // INVARIANT: as both are now.
        self.form = match (self.has_squares, self.peaks) {
            (false, 0) => Form::Nothing,
            (false, 1) => Form::Peak,
            (false, _) => Form::Peaks,
            (true, 0) => Form::Squares,
            (true, _) => Form::All,
        };
    }

    /// The number of its words besides the sum.
    fn own_words(&self) -> usize {
        let squares = if self.has_squares { SQUARES } else { 0 };

        squares.saturating_add(self.peaks.into())
    }

    /// Which of its words keeps the largest number with this order.
    fn place_of(&self, flip: u64) -> Option<u8> {
        let mut peaks = (0..self.peaks).zip(&self.flips);

        peaks.find_map(|(at, other)| (*other == flip).then_some(at))
    }
}

/// The words of an element that do not add up over the CPUs, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merge {
    /// Those of which the largest counts.
    peaks: u128,
    /// Those that count the hits which have begun to write to the words around.
    begun: u128,
}

impl Merge {
    /// That of the words of an element of which these tallies are kept.
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

    /// Returns whether all words add up and may be read one by one.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.peaks | self.begun == 0
    }

    /// Returns whether of word `i` the largest counts, and not the sum.
    #[inline]
    pub(super) fn takes_largest(&self, i: usize) -> bool {
        // CAST: there are fewer words than bits.
        self.peaks.wrapping_shr(i as u32) & 1 != 0
    }

    /// Adds the words of one element, or row, to those of another.
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

    /// Returns whether `words` were read between two hits, as far as it can be known: the count of hits, which is the
    /// first word and is written last, was read first; `again` reads a word once more. The counts of hits that have begun
    /// are then as they were read now: so where they are not the count of hits, a reader knows that one was under way.
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

/// What hits keep of all their numbers, and where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tallies {
    all: List<Tally, VALS_MAX>,
    merge: Merge,
}

impl Tallies {
    /// Gives each of at most [`VALS_MAX`] numbers its words.
    pub fn new(tallies: &[Tally]) -> Self {
        let mut placed = List::new();
        let mut own = tallies.len().saturating_add(1);

        for (left, tally) in (0..tallies.len()).rev().zip(tallies) {
            let place = u8::try_from(own).unwrap_or(u8::MAX);
            // INVARIANT: its words begin where those of the number before end, and squares come behind the others.
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

    /// The numbers.
    pub fn as_slice(&self) -> &[Tally] {
        self.all.as_slice()
    }

    /// How the words of an element are merged over CPUs, and over elements.
    pub fn merge(&self) -> &Merge {
        &self.merge
    }

    /// Whether there are sums alone, and not more than C has room for: [`Shard::hit`] does for these.
    pub fn are_sums_of_c(&self) -> bool {
        let mut tallies = self.as_slice().iter();

        self.words() <= C_SUMS_MAX && tallies.all(|tally| tally.form == Form::Nothing)
    }

    /// The number of words of an element, the hit count included.
    pub fn words(&self) -> usize {
        let sums = self.as_slice().len().saturating_add(1);

        self.as_slice()
            .iter()
            .fold(sums, |words, tally| words.saturating_add(tally.own_words()))
    }
}

/// What hits keep of their numbers.
impl Shard<'_> {
    /// Counts a call that hit an element of a map with these tallies, in place of [`Shard::hit`].
    ///
    /// What takes more than a few instructions is left to [`Shard::keep_rest`]: returns the index of the first number of
    /// which nothing is kept yet, if there is one. The call is then not counted either. With `SEVERAL` false there is one
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

        if !self.is_own() || !first.keep_at_once(words, 0, values.value(0)) {
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
        // ORDERING: of squares a reader must not see this without the words before; see `merge_into`.
        order_writes();
        local_inc(words, 0);
        None
    }

    /// Counts a call of which [`Shard::keep`] has left something: number `from` and those behind.
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
        // ORDERING: of squares a reader must not see this without the words before; see `merge_into`.
        order_writes();
        self.add_to(words, 0, 1);
    }

    /// The words of an element, and those behind. They are in the map.
    #[inline(always)]
    fn span(&self, elt: Elt) -> Option<&[Atomic<u64>; SPAN]> {
        // CAST: a map has less than 2^32 words. So the compiler sees that the sum does not wrap around.
        let at = self.count_at(elt) as u32 as usize;

        let words = self
            .words()
            // OVERFLOW: 32 bits, and a small number.
            .get(at..at.wrapping_add(SPAN))
            .and_then(<[_]>::first_chunk);

        debug_assert!(words.is_some(), "`Shape::with` has seen to it");
        words
    }

    /// Adds the square of a number.
    fn add_square(&self, words: &[Atomic<u64>; SQUARES], v: u64, is_signed: bool) {
        // CAST: the bits of a signed number.
        let number = v as i64;
        let (high, magnitude) = match is_signed {
            true => (number.wrapping_shr(APART) as u64, number.unsigned_abs()),
            false => (v.wrapping_shr(APART), v),
        };
        // OVERFLOW: the square of a number of 64 bits.
        let square = u128::from(magnitude).wrapping_mul(magnitude.into());

        self.add_to(words, 0, 1);
        order_writes();
        self.add_to(words, 1, high);
        for (at, j) in (2..SQUARES).zip(0u32..) {
            // CAST: cut off, which all words are. OVERFLOW: at most 4 * 24.
            self.add_to(words, at, square.wrapping_shr(APART.wrapping_mul(j)) as u64);
        }
    }
}

impl Tally {
    /// Keeps number `n`, unless that takes more than a few instructions: then it changes nothing and returns false.
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

    /// Whether a number is larger than what one of its words holds.
    #[inline(always)]
    fn is_peak(&self, words: &[Atomic<u64>; SPAN], v: u64, peak: usize) -> bool {
        // OVERFLOW: 8 bits, and 0 or 1.
        let word = words.get(usize::from(self.own).wrapping_add(peak));

        match (word, self.flips.get(peak)) {
            // ORDERING: a number by itself; what comes there until the hit is counted is larger.
            (Some(word), Some(flip)) => v ^ flip > word.load(Relaxed),
            _ => false,
        }
    }

    /// Adds the square of a number below `2^32`, as [`Shard::add_square`] does: to two of its words, or to four. Returns
    /// false of another one.
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
            // OVERFLOW: the square of a number of 32 bits.
            let square = v.wrapping_mul(v);
            local_add_behind::<2>(words, at, square);
            local_add_behind::<3>(words, at, square.wrapping_shr(APART));
            local_add_behind::<4>(words, at, square.wrapping_shr(2 * APART));
            return true;
        }
        local_inc(words, at);
        order_writes();
        // OVERFLOW: the square of a number of 24 bits.
        let square = v.wrapping_mul(v);
        local_add_behind::<2>(words, at, square);
        local_add_behind::<3>(words, at, square.wrapping_shr(APART));
        true
    }
}

/// What a reader makes of the words of a row: a number of one column.
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
    /// The word of the sum.
    sum: u8,
    /// The word of the maximum or minimum; the first one after the count of those that have begun, of squares.
    own: u8,
}

/// A number as it is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Number {
    /// Whether it is below 0.
    pub negative: bool,
    /// Its digits before the decimal point.
    pub whole: u64,
    /// Two digits after it, the rest cut off; 0 of what has none.
    pub hundredths: u8,
}

impl Number {
    /// Returns a word as a signed or an unsigned number.
    fn of(word: u64, is_signed: bool) -> Self {
        // CAST: the bits of a signed number.
        let number = word as i64;
        let negative = is_signed && number < 0;

        Self {
            negative,
            whole: if negative {
                number.unsigned_abs()
            } else {
                word
            },
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
    /// Returns what `stat` is of the number `n` of `tallies`, which keep what it needs.
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

    /// Returns what it is of.
    pub fn stat(&self) -> Stat {
        self.stat
    }

    /// Returns the index of the sum of its number.
    pub fn sum(&self) -> usize {
        self.sum.into()
    }

    /// Returns whether it is shown with decimals.
    pub fn has_decimals(&self) -> bool {
        matches!(self.stat, Stat::Avg | Stat::Stddev)
    }

    /// Returns whether it may be below 0.
    pub fn is_signed(&self) -> bool {
        self.is_signed && self.stat != Stat::Stddev
    }

    /// Returns the number of a row; `None` if it has no hits. `sums` are its words, merged over all CPUs.
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
                // OVERFLOW: 100 times a number of 64 bits, here and below.
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

    /// Returns a number that is not below that of another row unless the [number](Gauge::number) is.
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

/// What a word is beyond `high`, in units of which `2^24` are one of `high`: less than that for each hit. Words that are not
/// of one moment may be further from each other.
fn beyond(high: i128, low: u64) -> i128 {
    // CAST: modulo 2^64, here and below.
    (low.wrapping_sub((high as u64).wrapping_shl(APART)) as i64).into()
}

/// The number of which `high` are the upper bits, in units of `2^24`, and `low` is the lower ones, modulo 2^64.
fn joined(high: i128, low: u64) -> i128 {
    // OVERFLOW: `high` has less than 100 bits.
    high.wrapping_shl(APART).wrapping_add(beyond(high, low))
}

/// The standard deviation of `hits` numbers: that of all of them, not of a sample. With `S` the sum of the squares and
/// `T` that of the numbers it is the square root of `(hits * S - T^2) / hits^2`.
fn deviation(hits: u64, sum: u64, own: [u64; SQUARES - 1], is_signed: bool) -> Number {
    let [upper, q0, q1, q2, q3, q4] = own;
    // CAST: the bits of a signed number.
    let upper = match is_signed {
        true => (upper as i64).into(),
        false => upper.into(),
    };
    let total = joined(upper, sum);
    // The squares in units of 2^48, so that there are less than 128 bits, and the rest.
    let units = joined(joined(q4.into(), q3), q2);
    let more = beyond(units, q1);
    // OVERFLOW: of the sum the lowest 64 bits matter, and `more` has as many.
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
    // Words that are not of one moment may come to less than nothing.
    let variance = squares.less(Wide::product(total, total));
    // In units of a hundredth, `hits` times the deviation is the square root of this.
    let scaled = variance.times(10_000);
    let fits = |parts: u128| match parts.checked_mul(hits.into()) {
        Some(root) => Wide::product(root, root) <= scaled,
        None => false,
    };
    let whole = largest(u64::MAX, |whole| fits(whole.wrapping_mul(100)));
    // OVERFLOW: 100 times a number of 64 bits, and less than 100.
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
