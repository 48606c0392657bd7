// SPDX-License-Identifier: GPL-2.0

//! Numbers of 256 bits, as far as deviations need them. They avoid division: the kernel has none of more than 64 bits.
//!
//! Plain values. Context: any.

/// A number of 256 bits. It compares like a number, since the upper half comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Wide {
    high: u128,
    low: u128,
}

/// Returns the upper and the lower half.
fn halves(number: u128) -> (u128, u128) {
    (number.wrapping_shr(64), number & u128::from(u64::MAX))
}

impl Wide {
    /// Returns `a * b`.
    pub(super) fn product(a: u128, b: u128) -> Self {
        let ((a1, a0), (b1, b0)) = (halves(a), halves(b));
        // OVERFLOW: these are products of 64-bit numbers, and sums of at most four numbers below 2^126, here and below:
        // the whole product has 256 bits.
        let (carry, last) = halves(a0.wrapping_mul(b0));
        let (left, right) = (halves(a1.wrapping_mul(b0)), halves(a0.wrapping_mul(b1)));
        let (carry, middle) = halves(carry.wrapping_add(left.1).wrapping_add(right.1));

        Self {
            high: a1
                .wrapping_mul(b1)
                .wrapping_add(left.0)
                .wrapping_add(right.0)
                .wrapping_add(carry),
            low: middle.wrapping_shl(64) | last,
        }
    }

    /// Returns the number times `small`, modulo 2^256.
    pub(super) fn times(self, small: u64) -> Self {
        let low = Self::product(self.low, small.into());

        Self {
            high: self.high.wrapping_mul(small.into()).wrapping_add(low.high),
            low: low.low,
        }
    }

    /// Returns the sum, modulo 2^256.
    pub(super) fn plus(self, other: Self) -> Self {
        let (low, carries) = self.low.overflowing_add(other.low);

        Self {
            high: self
                .high
                .wrapping_add(other.high)
                .wrapping_add(carries.into()),
            low,
        }
    }

    /// Returns the difference; 0 if `other` is larger.
    pub(super) fn less(self, other: Self) -> Self {
        if self < other {
            return Self { high: 0, low: 0 };
        }

        let (low, borrows) = self.low.overflowing_sub(other.low);

        Self {
            // OVERFLOW: `other` is not larger.
            high: self
                .high
                .wrapping_sub(other.high)
                .wrapping_sub(borrows.into()),
            low,
        }
    }
}

/// Returns the largest number up to `most` for which `fits` holds, provided that it holds for all smaller ones and for
/// 0.
pub(super) fn largest(most: u64, fits: impl Fn(u128) -> bool) -> u64 {
    let mut found = 0;
    let mut bits = u64::BITS.saturating_sub(most.leading_zeros());

    while let Some(bit) = bits.checked_sub(1) {
        let more = found | 1u64.wrapping_shl(bit);

        if more <= most && fits(more.into()) {
            found = more;
        }
        bits = bit;
    }
    found
}
