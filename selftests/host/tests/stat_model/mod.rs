// SPDX-License-Identifier: GPL-2.0

//! What a column shows of numbers, computed with numbers of any size.

use num_bigint::BigInt;
use rust_hist::{stat::Stat, tracing_map::Number};

/// A number as it is, not as it is kept.
pub(crate) fn of(word: u64, is_signed: bool) -> BigInt {
    match is_signed {
        true => (word as i64).into(),
        false => word.into(),
    }
}

/// What is shown of numbers, each as often as is said, in hundredths.
pub(crate) fn model(numbers: &[(u64, u64)], is_signed: bool, stat: Stat) -> BigInt {
    let all = || {
        numbers
            .iter()
            .map(|(word, n)| (of(*word, is_signed), BigInt::from(*n)))
    };
    let hits: BigInt = all().map(|(_, n)| n).sum();
    let total: BigInt = all().map(|(v, n)| v * n).sum();
    let modulus = BigInt::from(1) << 64;

    match stat {
        Stat::Min => all().map(|(v, _)| v).min().expect("some") * 100,
        Stat::Max => all().map(|(v, _)| v).max().expect("some") * 100,
        Stat::Sum | Stat::Avg => {
            let word = ((&total % &modulus) + &modulus) % &modulus;
            let sum = of(u64::try_from(word).expect("64 bits"), is_signed);

            match stat {
                Stat::Sum => sum * 100,
                // Cut off towards zero.
                _ => sum * 100 / hits,
            }
        }
        Stat::Stddev => {
            let squares: BigInt = all().map(|(v, n)| &v * &v * n).sum();
            let variance = (&hits * squares - &total * &total) * 10_000;

            BigInt::sqrt(&(variance / (&hits * &hits)))
        }
    }
}

pub(crate) fn hundredths(number: Number) -> BigInt {
    let magnitude: BigInt = BigInt::from(number.whole) * 100 + number.hundredths;

    match number.negative {
        true => -magnitude,
        false => magnitude,
    }
}
