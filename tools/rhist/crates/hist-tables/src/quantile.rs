// SPDX-License-Identifier: MIT OR Apache-2.0

//! Percentiles of a distribution, with the bounds between which they certainly are.

use std::fmt;
use std::str::FromStr;

use crate::model::{Bucket, Distribution, Group, KeyColumn, Kind, Number};
use crate::units::{self, Round};

/// The largest `N` of `.log2=N`.
const FINEST: u8 = 6;

/// A percentage above 0, up to 100 and with at most three decimals, in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u32);

impl Percent {
    /// The median: half of all hits.
    pub const MEDIAN: Self = Self(50_000);
    /// All but one in a hundred.
    pub const TAIL: Self = Self(99_000);
}

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("'{text}' is no percentage above 0 and up to 100 with at most three decimals")
        };
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        if part.len() > 3
            || whole.len() > 3
            || !(whole.to_owned() + part)
                .bytes()
                .all(|b| b.is_ascii_digit())
        {
            return Err(wrong());
        }
        let digits = format!("{whole}{part:0<3}");
        match digits.parse() {
            Ok(thousandths @ 1..=100_000) => Ok(Self(thousandths)),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0 / 1000)?;
        match self.0 % 1000 {
            0 => Ok(()),
            part => f.write_str(format!(".{part:03}").trim_end_matches('0')),
        }
    }
}

/// Returns the interval that contains a percentile: at least this percentage of the hits is at its last number or
/// below, and less is below its first number. It is cut at the smallest and the largest number, if they are known.
/// `None` without hits.
pub fn quantile(distribution: &Distribution, percent: Percent) -> Option<Bucket> {
    let hits: u128 = distribution
        .buckets
        .iter()
        .map(|&(_, n)| u128::from(n))
        .sum();
    // The rank, from 1, of the hit that is the percentile, in ascending order.
    let rank = (hits * u128::from(percent.0)).div_ceil(100_000);
    let mut below = 0;
    distribution.buckets.iter().find_map(|&(bucket, n)| {
        below += u128::from(n);
        (below >= rank && n > 0).then_some(Bucket {
            lo: distribution
                .min
                .map_or(bucket.lo, |min| min.clamp(bucket.lo, bucket.hi)),
            hi: distribution
                .max
                .map_or(bucket.hi, |max| max.clamp(bucket.lo, bucket.hi)),
        })
    })
}

/// Returns by how many percent the last number of an interval of `.log2=scale` exceeds the first one at most.
fn above(scale: u8) -> f64 {
    (2f64.powf(0.5f64.powi(scale.into())) - 1.0) * 100.0
}

/// Returns the smallest scale with at most this excess; the largest scale, with 1.1 %, if none is fine enough.
pub fn scale_within(percent: u64) -> u8 {
    let fits = |scale: &u8| above(*scale) <= percent as f64;
    (0..FINEST).find(fits).unwrap_or(FINEST)
}

/// Returns the width of intervals, one digit and zeros, with which this percentile of each group is at most `within`
/// percent above the true value, and about how many rows they take. `None` without hits.
pub fn width_within(groups: &[Group], percent: Percent, within: u64) -> Option<(u64, u64)> {
    let distributions = groups.iter().map(|group| &group.distribution);
    let percentiles = distributions
        .clone()
        .filter_map(|all| quantile(all, percent));
    let least = percentiles.map(|bucket| bucket.lo).min()?;
    let width = u64::try_from(least * Number::from(within) / 100).unwrap_or_default();
    let digit = 10u64.pow(width.checked_ilog10().unwrap_or_default());
    let width = (width / digit * digit).max(1);
    let ends =
        distributions.filter_map(|all| Some((all.buckets.first()?.0, all.buckets.last()?.0)));
    let rows = ends.map(|(first, last)| (last.hi - first.lo) / Number::from(width) + 1);
    Some((
        width,
        u64::try_from(rows.sum::<Number>()).unwrap_or(u64::MAX),
    ))
}

/// Returns, in words, how far a percentile may be above the true value.
pub fn error_of(column: &KeyColumn) -> Option<String> {
    match column.kind {
        Kind::Log2 { scale: 0 } => Some("upper bounds, less than twice the true value".to_owned()),
        Kind::Log2 { scale } => Some(format!("upper bounds, at most {:.1} % above", above(scale))),
        Kind::Buckets { width } => Some(format!(
            "upper bounds, at most {} above",
            units::value(Number::from(width) - 1, column.unit, Round::Up)
        )),
        _ => None,
    }
}

/// Returns the power of two that contains an interval: from above half of its last number up to that number.
pub fn power_of_two(bucket: Bucket) -> Bucket {
    let Ok(hi) = u64::try_from(bucket.hi) else {
        return bucket;
    };
    if hi <= 1 {
        return Bucket { lo: 0, hi: 1 };
    }
    let end = Number::try_from(u128::from(hi).next_power_of_two()).unwrap_or(Number::MAX);
    Bucket {
        lo: end / 2 + 1,
        hi: end.min(u64::MAX.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Unit;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn percent(text: &str) -> Percent {
        text.parse().unwrap()
    }

    #[test]
    fn percentages_are_exact() {
        for text in ["50", "99.9", "0.001", "12.25", "100"] {
            assert_eq!(percent(text).to_string(), text);
        }
        for text in ["0", "100.001", "-1", "1.2345", "", "x", "5e1", "+5"] {
            assert!(text.parse::<Percent>().is_err(), "{text}");
        }
    }

    #[test]
    fn no_hits_have_no_percentile() {
        assert_eq!(quantile(&Distribution::default(), percent("50")), None);
    }

    #[test]
    fn bounds_are_those_of_the_module() {
        let column = |kind| KeyColumn {
            name: "lat".into(),
            kind,
            unit: Some(Unit::Ns),
        };
        let said = |scale| error_of(&column(Kind::Log2 { scale })).unwrap();
        assert!(said(1).contains("41.4 %") || said(1).contains("41.5 %"));
        assert!(said(3).contains("9.1 %"));
        assert!(said(6).contains("1.1 %"));
        let wide = column(Kind::Buckets { width: 2000 });
        assert!(error_of(&wide).unwrap().ends_with("at most 2.00us above"));
    }

    #[test]
    fn the_scale_is_no_finer_than_needed() {
        for (percent, scale) in [(100, 0), (99, 1), (42, 1), (41, 2), (10, 3), (9, 4), (2, 6)] {
            assert_eq!(scale_within(percent), scale, "{percent}");
        }
    }

    /// Returns a group with hits in powers of two.
    fn group(numbers: &[u64]) -> Group {
        let mut buckets = BTreeMap::new();
        for &number in numbers {
            *buckets
                .entry(power_of_two(interval(1, number)))
                .or_default() += 1;
        }
        let distribution = Distribution {
            buckets: buckets.into_iter().collect(),
            ..Distribution::default()
        };
        Group {
            keys: Vec::new(),
            values: Vec::new(),
            distribution,
            exemplars: Vec::new(),
        }
    }

    #[test]
    fn widths_are_of_the_lowest_percentile() {
        let width = |groups: &[Group], within| width_within(groups, percent("50"), within);
        assert_eq!(width(&[], 10), None);
        // The group's hits are in the intervals 8193 .. 16384 and up to 32768.
        let high = group(&[9000, 9000, 20_000]);
        assert_eq!(
            width(std::slice::from_ref(&high), 10),
            Some((800, 24_575 / 800 + 1))
        );
        // The lower group's hits are in 513 .. 1024: a tenth of that is fine enough for the higher group, too.
        let both = [high, group(&[1000])];
        assert_eq!(width(&both, 10), Some((50, 24_575 / 50 + 1 + 511 / 50 + 1)));
        assert_eq!(width(&[group(&[0])], 10).unwrap().0, 1);
        let (_, rows) = width(&[group(&[1, 1 << 63])], 10).unwrap();
        assert!(rows > 1 << 62);
    }

    fn interval(width: u64, number: u64) -> Bucket {
        let lo = Number::from(number / width * width);
        Bucket {
            lo,
            hi: lo + Number::from(width) - 1,
        }
    }

    proptest! {
        /// Checks that the percentile of a sorted list is in the interval.
        #[test]
        fn the_true_value_is_inside(
            mut numbers in prop::collection::vec(0..100_000u64, 1..300),
            width in 1..5000u64,
            thousandths in 1..=100_000u32,
        ) {
            let mut buckets = BTreeMap::new();
            for &number in &numbers {
                *buckets.entry(interval(width, number)).or_default() += 1;
            }
            let distribution = Distribution { buckets: buckets.into_iter().collect(), ..Distribution::default() };
            numbers.sort_unstable();
            let rank = (numbers.len() as u64 * u64::from(thousandths)).div_ceil(100_000);
            let wanted = numbers[rank as usize - 1];
            prop_assert_eq!(quantile(&distribution, Percent(thousandths)), Some(interval(width, wanted)));
            // With known smallest and largest numbers, the percentile's bounds do not exceed them.
            let (min, max) = (Number::from(numbers[0]), Number::from(numbers[numbers.len() - 1]));
            let known = Distribution { min: Some(min), max: Some(max), ..distribution };
            let Bucket { lo, hi } = quantile(&known, Percent(thousandths)).unwrap();
            prop_assert!(min <= lo && lo <= wanted.into() && Number::from(wanted) <= hi && hi <= max);
        }

        /// Checks that percentiles from the chosen intervals are as precise as wanted.
        #[test]
        fn chosen_intervals_are_fine_enough(
            mut numbers in prop::collection::vec(1..1_000_000u64, 1..100),
            thousandths in 1..=100_000u32,
            within in 2..100u64,
        ) {
            let wanted = Percent(thousandths);
            let (width, rows) = width_within(&[group(&numbers)], wanted, within).unwrap();
            numbers.sort_unstable();
            let taken: std::collections::BTreeSet<u64> = numbers.iter().map(|n| n / width).collect();
            prop_assert!(taken.len() as u64 <= rows + 1);
            let rank = (numbers.len() as u64 * u64::from(thousandths)).div_ceil(100_000);
            let number = numbers[rank as usize - 1];
            let said = interval(width, number).hi;
            prop_assert!((said - Number::from(number)) * 100 <= Number::from(number * within));
        }

        #[test]
        fn powers_of_two_hold_what_they_fold(number in 0..u64::MAX) {
            let folded = power_of_two(interval(1, number));
            prop_assert!(folded.lo <= number.into() && Number::from(number) <= folded.hi);
            prop_assert!(folded.lo <= 2 || (folded.lo - 1).count_ones() == 1);
        }
    }
}
