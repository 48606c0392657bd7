// SPDX-License-Identifier: GPL-2.0

//! Division by a number that is known long before, as a hit does it: by a multiplication.
//!
//! Context: any, NMI included, but for the making of a reciprocal. Never panics.

use core::num::NonZeroU64;

/// A width that numbers are cut to multiples of, without a division.
///
/// # Invariants
///
/// `n / width`, for each `n` of 64 bits, is
///
/// - `magic * n / 2^(64 + shift)`, if `is_short`: `magic` is `2^(64 + shift) / width`, rounded up, has 64 bits,
///   and `magic * width` is above `2^(64 + shift)` by no more than `2^shift`;
/// - `(magic * n / 2^64 + n) / 2^(shift + 1)`, if not: `2^(shift + 1)` is the smallest power that is not below
///   `width`, and `magic` is `2^64 * (2^(shift + 1) - width) / width + 1`.
///
/// All divisions cut. Granlund, Montgomery: Division by Invariant Integers using Multiplication, 1994,
/// theorem 4.2 and fig. 4.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reciprocal {
    magic: u64,
    width: u64,
    shift: u32,
    is_short: bool,
}

impl Reciprocal {
    /// No width, for what is not cut.
    pub(super) const NONE: Self = Self {
        magic: 0,
        width: 0,
        shift: 0,
        is_short: false,
    };

    /// That of a width; `None` if all numbers are multiples of it.
    pub fn new(width: NonZeroU64) -> Option<Self> {
        let width = width.get();
        let below = width.checked_sub(1).filter(|&below| below != 0)?;
        let shift = below.ilog2();
        // `2^(shift + 1) - width`, which is less than `width`; 2^64 is 0 here.
        let rest = 2u64.wrapping_shl(shift).wrapping_sub(width);
        let rest = if shift == 63 {
            width.wrapping_neg()
        } else {
            rest
        };

        if let Some(short) = Self::short(width, shift) {
            return Some(short);
        }
        // INVARIANT: the quotient is less than 2^64 - 1, as `rest` is less than `width`.
        Some(Self {
            magic: fraction(rest, width).0.wrapping_add(1),
            width,
            shift,
            is_short: false,
        })
    }

    /// The short form of a width, above `2^shift` and not above twice that, if it has one.
    fn short(width: u64, shift: u32) -> Option<Self> {
        if width.is_power_of_two() {
            // INVARIANT: 2^64 / width, of a width that is not 1, and nothing is rounded.
            return Some(Self {
                magic: 1u64.wrapping_shl(63u32.wrapping_sub(shift)),
                width,
                shift: 0,
                is_short: true,
            });
        }

        // As the width is no power of two, the quotient has 64 bits, and no division is without a rest.
        let power = 1u64.wrapping_shl(shift);
        let (quotient, rest) = fraction(power, width);

        // INVARIANT: rounded up, the product exceeds the power by what the rest lacks of the width.
        (width.wrapping_sub(rest) <= power).then_some(Self {
            magic: quotient.wrapping_add(1),
            width,
            shift,
            is_short: true,
        })
    }

    /// Whether it is short, which takes a step less.
    pub(super) fn is_short(&self) -> bool {
        self.is_short
    }

    /// `n / width`, if it is short.
    #[inline(always)]
    fn quotient_shortly(&self, n: u64) -> u64 {
        high(self.magic, n).wrapping_shr(self.shift)
    }

    /// `n / width`.
    #[inline(always)]
    pub fn quotient(&self, n: u64) -> u64 {
        if self.is_short {
            return self.quotient_shortly(n);
        }

        let high = high(self.magic, n);
        // OVERFLOW: `high` is not above `n`. The sum, which may have 65 bits, is halved before it is
        // made.
        let half = (n.wrapping_sub(high) >> 1).wrapping_add(high);

        half.wrapping_shr(self.shift)
    }

    /// The largest multiple of the width that is not above `n`, if it is short.
    #[inline(always)]
    pub(super) fn cut_shortly(&self, n: u64) -> u64 {
        // OVERFLOW: a multiple not above `n`.
        self.quotient_shortly(n).wrapping_mul(self.width)
    }

    /// The largest multiple of the width that is not above `n`.
    #[inline(always)]
    pub fn cut(&self, n: u64) -> u64 {
        // OVERFLOW: as above.
        self.quotient(n).wrapping_mul(self.width)
    }
}

/// The upper half of a product.
#[inline(always)]
fn high(a: u64, b: u64) -> u64 {
    // CAST: the upper half, which has 64 bits.
    (u128::from(a).wrapping_mul(u128::from(b)) >> 64) as u64
}

/// `2^64 * of / by`, cut, and the rest, for an `of` that is less than `by`.
fn fraction(of: u64, by: u64) -> (u64, u64) {
    let mut rest = of;
    let mut quotient: u64 = 0;

    for _ in 0..u64::BITS {
        let carry = rest >> 63 != 0;

        rest = rest.wrapping_shl(1);
        quotient = quotient.wrapping_shl(1);
        if carry || rest >= by {
            rest = rest.wrapping_sub(by);
            quotient |= 1;
        }
    }
    (quotient, rest)
}
