// SPDX-License-Identifier: MIT OR Apache-2.0

//! Intervals as places on an axis: their order, and folding them into fewer and wider ones.

use std::collections::BTreeMap;

use crate::model::{Bucket, Key, Kind, Number, Span, Table};

/// An interval, and its place among all intervals that its column can have, including empty ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot {
    /// The place of the interval. Neighbouring intervals have places that differ by 1.
    pub place: Number,
    /// The numbers in the interval.
    pub bucket: Bucket,
}

/// Returns the interval of a key with its place, in a column of this kind.
///
/// With `.log2=N` the place is the index of native histograms; the interval of 0 is one place below that of 1, and
/// negative numbers follow below, by their magnitudes.
pub fn slot(kind: Kind, key: &Key) -> Option<Slot> {
    let &Key::Bucket { bucket, index } = key else {
        return None;
    };
    let place = match (kind, index) {
        (Kind::Buckets { width }, _) => bucket.lo.div_euclid(Number::from(width.max(1))),
        (_, Some(index)) if bucket.hi < 0 => -2 - Number::from(index),
        (_, Some(index)) => index.into(),
        (_, None) => -1,
    };
    Some(Slot { place, bucket })
}

/// Returns the hits of a table by interval, in ascending order; none if the table has no column of intervals.
pub fn slots(table: &Table) -> Vec<(Slot, u64)> {
    let Some(column) = table.interval_column() else {
        return Vec::new();
    };
    let kind = table.keys[column].kind;
    let mut sums = BTreeMap::new();
    for row in &table.rows {
        if let Some(slot) = slot(kind, &row.keys[column]) {
            *sums.entry(slot).or_default() += table.hits_of(&row.values);
        }
    }
    sums.into_iter().filter(|&(_, count)| count > 0).collect()
}

/// Merges neighbouring intervals, so that few places are left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fold {
    kind: Kind,
    /// The number of intervals that become one.
    together: Number,
    /// The lowest place after merging.
    first: Number,
    /// The number of places after merging.
    pub places: usize,
}

impl Fold {
    /// Returns the fold of all places from `first` to `last` to at most `most` places, but at least 5: one for 0, and
    /// two for the numbers on each side.
    ///
    /// Neighbours of `.log2=N` are merged by powers of two, which gives the intervals of a smaller `N`.
    pub fn new(kind: Kind, first: Number, last: Number, most: usize) -> Self {
        let most = Number::try_from(most.max(5)).unwrap_or(Number::MAX);
        let is_log = !matches!(kind, Kind::Buckets { .. });
        let mut together = if is_log { 1 } else { (last - first) / most + 1 };
        loop {
            let lowest = wider(kind, first, together);
            let places = wider(kind, last, together) - lowest + 1;
            if places <= most {
                return Self {
                    kind,
                    together,
                    first: lowest,
                    places: usize::try_from(places).unwrap_or_default(),
                };
            }
            together += if is_log { together } else { 1 };
        }
    }

    /// Returns the fold of these intervals; `None` if there are none.
    pub fn of<'a>(kind: Kind, slots: impl Iterator<Item = &'a Slot>, most: usize) -> Option<Self> {
        let places = slots.map(|slot| (slot.place, slot.place));
        let (first, last) = places.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
        Some(Self::new(kind, first, last, most))
    }

    /// Returns the wider place that contains this interval, counted from the lowest.
    pub fn place(&self, slot: Slot) -> Option<usize> {
        usize::try_from(wider(self.kind, slot.place, self.together) - self.first)
            .ok()
            .filter(|&place| place < self.places)
    }

    /// Returns the first and the last of the original places that a wider place contains.
    pub fn range(&self, place: usize) -> (Number, Number) {
        let place = self.first + Number::try_from(place).unwrap_or_default();
        let before = |index: Number| ((index - 1) * self.together + 1).max(0);
        match self.kind {
            Kind::Buckets { .. } => (place * self.together, (place + 1) * self.together - 1),
            _ if place >= 0 => (before(place), place * self.together),
            _ if place == -1 => (-1, -1),
            _ => (-2 - (-2 - place) * self.together, -2 - before(-2 - place)),
        }
    }

    /// Returns the last number of a wider place, for labels: exact up to 2^53.
    pub fn last(&self, place: usize) -> Number {
        self.end(self.first + Number::try_from(place).unwrap_or_default())
    }

    /// Returns the numbers of a wider place, for labels: exact up to 2^53.
    pub fn numbers(&self, place: usize) -> Bucket {
        let hi = self.last(place);
        let before = self.first + Number::try_from(place).unwrap_or_default() - 1;
        let lo = match (self.kind, before) {
            // Whole powers of two have 0 and 1 in one interval.
            (Kind::Log2 { scale: 0 }, -1) => 0,
            _ => self.end(before) + 1,
        };
        Bucket { lo: lo.min(hi), hi }
    }

    fn end(&self, place: Number) -> Number {
        let power = |index: Number, scale: u8| {
            let exponent = (index * self.together) as f64 / f64::from(1u32 << scale.min(31));
            exponent.exp2() as Number
        };
        match self.kind {
            Kind::Log2 { scale } => match place {
                0.. => power(place, scale),
                -1 => 0,
                _ => -power(-3 - place, scale) - 1,
            },
            Kind::Buckets { width } => (place + 1) * self.together * Number::from(width) - 1,
            _ => place,
        }
    }
}

/// The hits of one trigger in one epoch, all groups together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Epoch {
    /// The time of the epoch.
    pub span: Option<Span>,
    /// The number of hits.
    pub hits: u64,
    /// The hits by interval, in ascending order; none if the table has no column of intervals.
    pub slots: Vec<(Slot, u64)>,
}

impl Epoch {
    /// Returns the epoch of `table`: its time, and its hits, also by interval.
    pub fn of(table: &Table) -> Self {
        Self {
            span: table.span,
            hits: table.account.hits,
            slots: slots(table),
        }
    }
}

/// Intervals over time: the hits of each interval in each column of epochs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeatMap {
    /// Maps intervals to rows; the first row is the lowest.
    pub rows: Fold,
    /// The columns, oldest first.
    pub columns: Vec<Column>,
    /// The number of epochs in a column; the last one may have fewer.
    pub together: usize,
}

/// Some consecutive epochs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The times of the first and the last epoch.
    pub spans: Option<(Span, Span)>,
    /// The hits in each row.
    pub cells: Vec<u64>,
}

impl HeatMap {
    /// Returns the heat map of epochs with intervals, folded into `columns` and `rows`. `None` if there are no hits.
    pub fn new(kind: Kind, epochs: &[Epoch], columns: usize, rows: usize) -> Option<Self> {
        let slots = epochs
            .iter()
            .flat_map(|epoch| epoch.slots.iter().map(|(slot, _)| slot));
        let rows = Fold::of(kind, slots, rows)?;
        let together = epochs.len().div_ceil(columns.max(1));
        let columns = epochs.chunks(together).map(|epochs| {
            let mut cells = vec![0; rows.places];
            for (slot, hits) in epochs.iter().flat_map(|epoch| &epoch.slots) {
                if let Some(cell) = rows.place(*slot).and_then(|place| cells.get_mut(place)) {
                    *cell += hits;
                }
            }
            Column {
                spans: epochs[0].span.zip(epochs[epochs.len() - 1].span),
                cells,
            }
        });
        Some(Self {
            rows,
            columns: columns.collect(),
            together,
        })
    }

    /// Returns the hits of the cell with most hits.
    pub fn most(&self) -> u64 {
        let cells = self.columns.iter().flat_map(|column| &column.cells);
        cells.copied().max().unwrap_or_default()
    }

    /// Returns the first epoch's time, and the duration of all epochs in nanoseconds; `None` if they are unknown.
    pub fn duration(&self) -> Option<(Span, u64)> {
        let (first, _) = self.columns.first()?.spans?;
        let (_, last) = self.columns.last()?.spans?;
        (last.to > first.from).then(|| (first, last.to - first.from))
    }
}

/// Returns which of `levels` shades a cell has, by the logarithm of its hits: 0 without hits, the last one if it has
/// `most` hits. Uses no floating point, so that the result is the same everywhere.
pub fn level(hits: u64, most: u64, levels: usize) -> usize {
    let log = |n: u64| match n.checked_ilog2() {
        // The logarithm has four binary digits after the point.
        Some(whole) => {
            u64::from(whole) * 16
                + u64::try_from((u128::from(n) << 4 >> whole) & 15).unwrap_or_default()
        }
        None => 0,
    };
    let above_first = u64::try_from(levels).unwrap_or_default().saturating_sub(1);
    match hits {
        0 => 0,
        _ => {
            1 + usize::try_from(log(hits) * above_first / log(most).max(1))
                .unwrap_or_default()
                .min(levels - 1)
        }
    }
}

fn wider(kind: Kind, place: Number, together: Number) -> Number {
    let up = |index: Number| (index + together - 1) / together;
    match kind {
        Kind::Buckets { .. } => place.div_euclid(together),
        _ if place >= 0 => up(place),
        _ if place == -1 => -1,
        _ => -2 - up(-2 - place),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LOG: Kind = Kind::Log2 { scale: 3 };

    fn key(lo: Number, hi: Number, index: Option<i64>) -> Key {
        Key::Bucket {
            bucket: Bucket { lo, hi },
            index,
        }
    }

    #[test]
    fn places_are_in_the_order_of_the_numbers() {
        let keys = [
            key(-8, -8, Some(24)),
            key(-1, -1, Some(0)),
            key(0, 0, None),
            key(1, 1, Some(0)),
            key(2, 2, Some(8)),
        ];
        let places: Vec<Number> = keys
            .iter()
            .map(|key| slot(LOG, key).unwrap().place)
            .collect();
        assert_eq!(places, [-26, -2, -1, 0, 8]);
        assert_eq!(
            slot(Kind::Buckets { width: 5 }, &key(-5, -1, None))
                .unwrap()
                .place,
            -1
        );
    }

    #[test]
    fn two_neighbours_are_one_of_the_scale_below() {
        // The places 0 to 16 of scale 3, for the numbers from 1 to 4, become 9 places of scale 2.
        let fold = Fold::new(LOG, 0, 16, 9);
        assert_eq!(fold.places, 9);
        let lasts: Vec<Number> = (0..9).map(|place| fold.last(place)).collect();
        assert_eq!(lasts, [1, 1, 1, 1, 2, 2, 2, 3, 4]);
        let numbers = |fold: &Fold, place| {
            let Bucket { lo, hi } = fold.numbers(place);
            (lo, hi)
        };
        assert_eq!([numbers(&fold, 0), numbers(&fold, 8)], [(1, 1), (4, 4)]);
        let all = Fold::new(LOG, -26, 8, 100);
        let zero = all.place(slot(LOG, &key(0, 0, None)).unwrap()).unwrap();
        assert_eq!(numbers(&all, zero), (0, 0));
        assert_eq!(numbers(&all, 0), (-8, -8));
        let whole = Fold::new(Kind::Log2 { scale: 0 }, 0, 12, 100);
        assert_eq!(
            [numbers(&whole, 0), numbers(&whole, 12)],
            [(0, 1), (2049, 4096)]
        );
        let linear = Fold::new(Kind::Buckets { width: 10 }, 3, 1000, 10);
        assert_eq!(linear.numbers(1).lo, linear.last(0) + 1);
        assert!(linear.places <= 10);
        assert_eq!(linear.last(0), linear.together * 10 - 1);
    }

    #[test]
    fn shades_go_by_the_logarithm() {
        let levels: Vec<usize> = [0, 1, 10, 100, 1000]
            .iter()
            .map(|&hits| level(hits, 1000, 9))
            .collect();
        assert_eq!(levels, [0, 1, 3, 6, 9]);
        assert_eq!(level(1, 1, 9), 1);
        assert_eq!(level(u64::MAX, u64::MAX, 9), 9);
    }

    proptest! {
        #[test]
        fn whatever_is_folded_has_a_place(
            mut places in prop::collection::vec(-5000i64..5000, 1..50),
            most in 1usize..100,
            scale in 0u8..7,
            linear in any::<bool>(),
        ) {
            let kind = if linear { Kind::Buckets { width: 7 } } else { Kind::Log2 { scale } };
            places.sort_unstable();
            let bucket = Bucket { lo: 0, hi: 0 };
            let slots: Vec<Slot> = places.iter().map(|&place| Slot { place: place.into(), bucket }).collect();
            let fold = Fold::of(kind, slots.iter(), most).unwrap();
            prop_assert!(fold.places <= most.max(5));
            let folded: Vec<usize> = slots.iter().map(|&slot| fold.place(slot).unwrap()).collect();
            prop_assert!(folded.is_sorted());
            for (slot, &place) in slots.iter().zip(&folded) {
                let (first, last) = fold.range(place);
                prop_assert!(first <= slot.place && slot.place <= last);
            }
            prop_assert_eq!(folded[0], 0);
            prop_assert_eq!(folded.last(), Some(&(fold.places - 1)));
        }
    }
}
