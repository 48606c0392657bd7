// SPDX-License-Identifier: GPL-2.0

//! Division by an invariant number, which costs a hit a multiplication.
//!
//! C counterpart: `div_by_mult_and_shift()` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c), whose quotients are
//! sometimes one too large.
//!
//! Context: any, NMI included; [`Reciprocal::new`], which takes 64 steps, process. Never panics.

use core::num::NonZeroU64;

/// A divisor with the constants that replace the division.
///
/// # Examples
///
/// ```
/// use core::num::NonZeroU64;
/// use rust_hist::program::Reciprocal;
///
/// let seven = Reciprocal::new(NonZeroU64::new(7).ok_or("zero")?).ok_or("one")?;
///
/// assert_eq!(seven.quotient(u64::MAX), u64::MAX / 7);
/// # Ok::<(), &str>(())
/// ```
///
/// # Invariants
///
/// `n / width`, for each `n` of 64 bits, is `(magic * n / 2^64 + n) / 2^(shift + 1)`, each quotient truncated:
/// `2^(shift + 1)` is the smallest power that is not below `width`, and `magic` is
/// `2^64 * (2^(shift + 1) - width) / width + 1`.
///
/// Granlund, Montgomery: Division by Invariant Integers using Multiplication, 1994, fig. 4.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reciprocal {
    pub(super) magic: u64,
    pub(super) shift: u8,
}

impl Reciprocal {
    /// Returns the reciprocal of `width`; `None` for 1, which divides every number.
    pub fn new(width: NonZeroU64) -> Option<Self> {
        let width = width.get();
        let below = width.checked_sub(1).filter(|&below| below != 0)?;
        let shift = below.ilog2();
        // `2^(shift + 1) - width`, which is less than `width`. For a shift of 63 the power is 2^64, which wraps to 0.
        let rest = match shift {
            63 => width.wrapping_neg(),
            _ => 2u64.wrapping_shl(shift).wrapping_sub(width),
        };

        // INVARIANT: the fraction is less than 2^64 - 1, as `rest` is less than `width`, so adding 1 does not wrap.
        Some(Self {
            magic: fraction(rest, width).wrapping_add(1),
            // CAST: at most 63.
            shift: shift as u8,
        })
    }

    /// Returns `n / width`.
    #[inline]
    pub fn quotient(&self, n: u64) -> u64 {
        let high = high(self.magic, n);
        // OVERFLOW: `high` is at most `n`, so the difference does not wrap. `high + n` may have 65 bits, so
        // half of it is computed as half of the difference plus `high`.
        let half = (n.wrapping_sub(high) >> 1).wrapping_add(high);

        half.wrapping_shr(self.shift.into())
    }
}

/// Returns the upper 64 bits of a product.
#[inline]
fn high(a: u64, b: u64) -> u64 {
    // CAST: the shift leaves 64 bits.
    (u128::from(a).wrapping_mul(u128::from(b)) >> 64) as u64
}

/// Returns the truncated quotient `2^64 * of / by`, for an `of` less than `by`.
fn fraction(of: u64, by: u64) -> u64 {
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
    quotient
}
