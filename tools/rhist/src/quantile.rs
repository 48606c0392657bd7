// SPDX-License-Identifier: MIT OR Apache-2.0

//! Percentiles of a distribution: between which numbers they are, which is known for sure.

use std::fmt;
use std::str::FromStr;

use crate::model::{Bucket, Distribution, Kind, Number};

/// A percentage above 0, up to 100 and with at most three decimals, in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u32);

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

/// The interval in which a percentile is: at least so many percent of the hits are at its last number or below, and
/// fewer are below its first one. There is none without hits.
pub fn quantile(distribution: &Distribution, percent: Percent) -> Option<Bucket> {
    let hits: u128 = distribution
        .buckets
        .iter()
        .map(|&(_, n)| u128::from(n))
        .sum();
    // Which of the hits in ascending order it is, from 1.
    let rank = (hits * u128::from(percent.0)).div_ceil(100_000);
    let mut below = 0;
    distribution.buckets.iter().find_map(|&(bucket, n)| {
        below += u128::from(n);
        (below >= rank && n > 0).then_some(bucket)
    })
}

/// How far the last number of an interval is above any other number in it, in words.
pub fn error_of(kind: Kind) -> Option<String> {
    match kind {
        Kind::Log2 { scale } => {
            let percent = (2f64.powf(0.5f64.powi(scale.into())) - 1.0) * 100.0;
            Some(match scale {
                0 => "upper bounds, less than twice the true value".to_owned(),
                _ => format!("upper bounds, at most {percent:.1} % above"),
            })
        }
        Kind::Buckets { width } => Some(format!(
            "upper bounds, at most {} above",
            width.saturating_sub(1)
        )),
        _ => None,
    }
}

/// The power of two in which an interval is: above half of the last number, up to it.
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
        let said = |scale| error_of(Kind::Log2 { scale }).unwrap();
        assert!(said(1).contains("41.4 %") || said(1).contains("41.5 %"));
        assert!(said(3).contains("9.1 %"));
        assert!(said(6).contains("1.1 %"));
    }

    fn interval(width: u64, number: u64) -> Bucket {
        let lo = Number::from(number / width * width);
        Bucket {
            lo,
            hi: lo + Number::from(width) - 1,
        }
    }

    proptest! {
        /// A percentile of a list that is sorted is in the interval.
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
            let distribution = Distribution { buckets: buckets.into_iter().collect() };
            numbers.sort_unstable();
            let rank = (numbers.len() as u64 * u64::from(thousandths)).div_ceil(100_000);
            let wanted = numbers[rank as usize - 1];
            prop_assert_eq!(quantile(&distribution, Percent(thousandths)), Some(interval(width, wanted)));
        }

        #[test]
        fn powers_of_two_hold_what_they_fold(number in 0..u64::MAX) {
            let folded = power_of_two(interval(1, number));
            prop_assert!(folded.lo <= number.into() && Number::from(number) <= folded.hi);
            prop_assert!(folded.lo <= 2 || (folded.lo - 1).count_ones() == 1);
        }
    }
}
