// SPDX-License-Identifier: GPL-2.0

//! The buckets of `.log2=N` against integers of any length.
//!
//! A value `v` is in bucket `i` if `2^(i - 1) < v^(2^N) <= 2^i`.

#![cfg(not(loom))]

use num_bigint::BigUint;
use proptest::prelude::*;
use rust_hist::bucket::{
    Bounds,
    Buckets,
    Scale, //
};

/// The largest index at a scale is that of 2^64.
const EXPONENTS: u64 = 64;

fn scales() -> impl Iterator<Item = (u32, Scale)> {
    (0..=6).map(|n| (n, Scale::new(n as u8).expect("a scale")))
}

fn fine_scales() -> impl Iterator<Item = (u32, Scale)> {
    scales().skip(1)
}

/// The index of a value that is not 0, computed exactly.
fn exact(value: u64, n: u32) -> u64 {
    let power = BigUint::from(value).pow(1 << n);

    (power - 1u32).bits()
}

fn word(value: u64, n: u32) -> u64 {
    match (value, n) {
        (0, _) => 0,
        (_, 0) => exact(value, 0),
        _ => exact(value, n) + 1,
    }
}

/// The largest integer of bucket `i`, computed exactly and cut to 64 bits.
fn last(i: u64, n: u32) -> u64 {
    let root = (BigUint::from(1u32) << i).nth_root(1 << n);

    u64::try_from(root).unwrap_or(u64::MAX)
}

fn plain(bounds: Bounds) -> (u64, u64) {
    let word = |end: i128| u64::try_from(end).expect("not negative");

    (word(bounds.lo), word(bounds.hi))
}

#[test]
fn there_are_seven_scales() {
    assert_eq!(scales().count(), 7);
    assert_eq!(Scale::new(7), None);
    assert_eq!(Scale::new(0), Some(Scale::POWERS));
    assert!(scales().all(|(n, scale)| u32::from(scale.get()) == n));
}

#[test]
fn the_bounds_of_each_bucket_are_exact() {
    for (n, scale) in fine_scales() {
        let buckets = Buckets::Log2(scale);

        assert_eq!(buckets.bounds(0), Bounds::of(0, 0));
        assert_eq!(buckets.bounds(1), Bounds::of(1, 1));
        for i in 1..=EXPONENTS << n {
            let (lo, hi) = (last(i - 1, n) + 1, last(i, n));

            assert_eq!(plain(buckets.bounds(i + 1)), (lo, hi), "{n} {i}");
            assert_eq!(scale.index(i + 1), Some(i));
        }
        assert_eq!(scale.index(0), None);
    }
}

#[test]
fn the_ends_of_each_bucket_are_in_it_and_their_neighbours_are_not() {
    for (n, scale) in scales() {
        for i in 0..=EXPONENTS << n {
            let end = last(i, n);

            for value in [end - 1, end, end.saturating_add(1)] {
                let expected = word(value, n);

                assert_eq!(scale.word(value, false), expected, "{n} {value}");
                assert_eq!(
                    scale.word(value, true),
                    match value {
                        _ if n == 0 || value >> 63 == 0 => expected,
                        _ => word(value.wrapping_neg(), n).wrapping_neg(),
                    },
                    "{n} {value} signed"
                );
            }
        }
    }
}

/// All values below 2^24 are between ends that are exact.
#[test]
fn small_values_are_in_the_bucket_of_their_bounds() {
    for (n, scale) in scales() {
        let mut i = 0;
        let mut end = last(i, n);

        assert_eq!(scale.word(0, false), 0);
        for value in 1..1 << 24 {
            while value > end {
                i += 1;
                end = last(i, n);
            }
            assert_eq!(
                scale.word(value, false),
                i + u64::from(n != 0),
                "{n} {value}"
            );
        }
    }
}

#[test]
fn a_scale_of_zero_is_that_of_c() {
    for value in (0..64).flat_map(|e| [(1u64 << e) - 1, 1 << e, (1 << e) + 1]) {
        let c = match value {
            0 => 0,
            _ => u64::from(u64::BITS - (value - 1).leading_zeros()),
        };

        assert_eq!(Scale::POWERS.word(value, false), c);
        assert_eq!(Scale::POWERS.word(value, true), c);
        assert_eq!(Scale::POWERS.index(c), Some(c));
        if value > 0 {
            assert_eq!(exact(value, 0), c);
        }
    }
    let bounds = |word| plain(Buckets::Log2(Scale::POWERS).bounds(word));

    assert_eq!(bounds(0), (0, 1));
    assert_eq!(bounds(1), (2, 2));
    assert_eq!(bounds(10), (513, 1024));
    assert_eq!(bounds(64), ((1 << 63) + 1, u64::MAX));
}

#[test]
fn a_width_has_its_multiples() {
    let bounds =
        |width: u64, word| plain(Buckets::Width(width.try_into().expect("not 0")).bounds(word));

    assert_eq!(bounds(10, 20), (20, 29));
    assert_eq!(bounds(1, 0), (0, 0));
    // The last one of ten ends beyond 64 bits.
    assert_eq!(
        bounds(10, u64::MAX / 10 * 10),
        (u64::MAX / 10 * 10, u64::MAX)
    );
}

#[test]
fn negative_numbers_mirror() {
    let scale = Scale::new(4).expect("a scale");
    let word = |value: i64| scale.word(value as u64, true);

    assert_eq!(word(-1) as i64, -1);
    assert_eq!(word(-1200), word(1200).wrapping_neg());
    assert_eq!(
        Buckets::Log2(scale).bounds(word(-1200)),
        Bounds::of(-1217, -1167)
    );
    assert_eq!(scale.index(word(-1200)), Some(164));
    // 2^63 ends its bucket.
    let last = Buckets::Log2(scale).bounds(word(i64::MIN));

    assert_eq!(last.lo, i64::MIN.into());
    assert_eq!(last.hi, -i128::from(last_before(scale) + 1));
}

fn last_before(scale: Scale) -> u64 {
    last((63 << scale.get()) - 1, scale.get().into())
}

/// Any number of bits, as the powers of two are where it matters.
fn any_value() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0u32..64).prop_map(|(value, shift)| value >> shift)
}

proptest! {
    #[test]
    fn every_value_is_in_its_bucket(value in any_value(), n in 0u8..=6) {
        let scale = Scale::new(n).expect("a scale");
        let found = scale.word(value, false);
        let (lo, hi) = plain(Buckets::Log2(scale).bounds(found));

        prop_assert_eq!(found, word(value, n.into()));
        prop_assert!(lo <= value && value <= hi);
    }

    /// Two neighbours are one bucket of the next coarser scale.
    #[test]
    fn scales_merge(value in 1u64.., n in 1u8..=6, shift in 0u32..64) {
        let value = (value >> shift).max(1);
        let index = |n| {
            let scale = Scale::new(n).expect("a scale");

            scale.index(scale.word(value, false)).expect("not 0")
        };

        prop_assert_eq!(index(n).div_ceil(2), index(n - 1));
    }

    #[test]
    fn words_order_as_numbers_do(a in any_value(), b in any_value(), n in 1u8..=6) {
        let scale = Scale::new(n).expect("a scale");
        let word = |value: u64| scale.word(value, true) as i64;
        let ordered = (a as i64).cmp(&(b as i64));

        prop_assert!(word(a).cmp(&word(b)) == ordered || word(a) == word(b));
    }
}
