// SPDX-License-Identifier: GPL-2.0

//! Buckets: how a hit maps a number to the word of its bucket, and which numbers a word stands for.
//!
//! C counterpart: `hist_field_log2()` and `hist_field_bucket()` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//!
//! `.log2=N` divides each power of two in `2^N` parts, each `2^(1/2^N)` times as wide as the one before it:
//! the bounds of Prometheus' native histograms with schema `N` and of OpenTelemetry's exponential
//! histograms with scale `N`. Bucket `i` has the numbers above `2^((i - 1) / 2^N)` and up to `2^(i / 2^N)`.
//! Two neighbours of a scale are one bucket of the scale below it: `i` becomes `i / 2`, rounded up.
//!
//! Words have the order of the numbers. The word of `.log2` is the exponent, as in C, so that 0 and 1 share a bucket.
//! On a finer scale the word of bucket `i` is `i + 1`, the word of 0 is 0, and a negative number of a signed field has
//! the negated word of its magnitude.
//!
//! Like C, `.log2` and `.buckets` take a negative number for the large unsigned number with the same bits. Where C sets
//! no rule, [`Buckets::SignedPowers`] and [`Buckets::SignedWidth`] keep the sign.
//!
//! Context: any, NMI included. Integers only; never panics.

use core::num::NonZeroU64;

/// The finest scale; buckets of coarser scales are computed from its buckets.
const FINEST: u32 = 6;
/// The number of parts of a power of two at the finest scale.
const PARTS: usize = 1 << FINEST;

/// log2 of the number of parts into which `.log2=N` divides a power of two: `N`, from 0 to 6.
///
/// # Examples
///
/// ```
/// use rust_hist::bucket::{Bounds, Buckets, Scale};
///
/// let scale = Scale::new(4).ok_or("0 to 6")?;
/// let word = scale.word(1200, false);
///
/// assert_eq!(scale.index(word), Some(164));
/// assert_eq!(Buckets::Log2(scale).bounds(word), Bounds::of(1167, 1217));
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scale(u8);

impl Scale {
    /// The scale of `.log2` without a number, whose buckets are those of C.
    pub const POWERS: Self = Self(0);

    /// Returns the scale of `.log2=n`; `None` if there is no such scale.
    pub const fn new(n: u8) -> Option<Self> {
        // CAST: a small number.
        if n <= FINEST as u8 {
            Some(Self(n))
        } else {
            None
        }
    }

    /// Returns the `N` of `.log2=N`.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Returns the word of the bucket of `value`, a number of a `signed` field or of an unsigned one.
    pub fn word(self, value: u64, signed: bool) -> u64 {
        match self {
            Self::POWERS => ceil_log2(value),
            _ => part_of(value, self.coarser(), signed),
        }
    }

    /// Returns the index that Prometheus gives to the bucket with this word; for a bucket of negative numbers, the
    /// index of their magnitudes. `None` for the bucket of 0, which has no index.
    pub fn index(self, word: u64) -> Option<u64> {
        match self {
            Self::POWERS => Some(word),
            _ => magnitude(word).checked_sub(1),
        }
    }

    /// Returns the number of scales between this one and the finest one.
    pub(crate) const fn coarser(self) -> u32 {
        // OVERFLOW: a scale is at most the finest one.
        FINEST.wrapping_sub(self.0 as u32)
    }

    /// Returns the largest integer in bucket `i`, limited to 64 bits.
    fn last(self, i: u64) -> u64 {
        let finest = i.wrapping_shl(self.coarser());
        // CAST: less than `PARTS`.
        let part = POWERS.get((finest % PARTS as u64) as usize);
        // CAST: at most 64.
        let unused = 63u32.checked_sub((finest / PARTS as u64) as u32);

        match (part, unused) {
            (Some(part), Some(unused)) => part.wrapping_shr(unused),
            _ => u64::MAX,
        }
    }
}

/// A way to put numbers into buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buckets {
    /// `.log2`, `.log2=N`
    Log2(Scale),
    /// `.buckets=N`
    Width(NonZeroU64),
    /// `.log2` of numbers that keep their sign. The number 0 has a bucket of its own.
    SignedPowers,
    /// `.buckets=N` of numbers that keep their sign. The word is the smallest number in its bucket.
    SignedWidth(NonZeroU64),
}

/// Returns the number with these bits.
pub fn integer(bits: u64, signed: bool) -> i128 {
    match signed {
        // CAST: keeps the bits.
        true => (bits as i64).into(),
        false => bits.into(),
    }
}

/// The smallest and the largest integer in a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The smallest integer.
    pub lo: i128,
    /// The largest integer.
    pub hi: i128,
}

impl Bounds {
    /// Returns the bounds of a bucket from `lo` to `hi`.
    pub fn of(lo: impl Into<i128>, hi: impl Into<i128>) -> Self {
        Self {
            lo: lo.into(),
            hi: hi.into(),
        }
    }

    /// Returns the smallest and the largest signed number whose bits are those of an unsigned number between `self.lo`
    /// and `self.hi`.
    fn of_bits(self) -> Self {
        // CAST: keeps the bits of an unsigned number.
        match (self.lo as i64, self.hi as i64) {
            (lo, hi) if (lo < 0) != (hi < 0) => Self::of(i64::MIN, i64::MAX),
            (lo, hi) => Self::of(lo, hi),
        }
    }
}

impl Buckets {
    /// Returns these buckets, in the variant that keeps the sign of `signed` numbers.
    pub fn with_sign(self, signed: bool) -> Self {
        match self {
            Self::Log2(Scale::POWERS) if signed => Self::SignedPowers,
            Self::Width(width) if signed => Self::SignedWidth(width),
            _ => self,
        }
    }

    /// Returns the smallest and the largest number in the bucket with this word, of numbers that are `signed` or not.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::num::NonZeroU64;
    /// use rust_hist::bucket::{Bounds, Buckets};
    ///
    /// let width = NonZeroU64::new(1000).ok_or("not 0")?;
    ///
    /// // C aligns the bits of -9.
    /// let word = 18_446_744_073_709_551_000;
    /// assert_eq!(Buckets::Width(width).numbers(word, true), Bounds::of(-616, -1));
    /// assert_eq!(Buckets::SignedWidth(width).numbers(-1000i64 as u64, true), Bounds::of(-1000, -1));
    /// # Ok::<(), &str>(())
    /// ```
    pub fn numbers(self, word: u64, signed: bool) -> Bounds {
        let bounds = self.bounds(word);

        match signed && !self.has_signed_words() {
            true => bounds.of_bits(),
            false => bounds,
        }
    }

    /// Returns the bounds of the bucket with this word, limited to 64 bits.
    ///
    /// The bounds of `.log2` and `.buckets` are bits of a negative number, whose value [`Buckets::numbers`] returns.
    pub fn bounds(self, word: u64) -> Bounds {
        let scale = match self {
            Self::Width(width) => {
                // OVERFLOW: a width is not 0.
                return Bounds::of(word, word.saturating_add(width.get().wrapping_sub(1)));
            }
            Self::SignedWidth(width) => return signed_bounds(word, width),
            Self::Log2(scale) => scale,
            Self::SignedPowers => Scale::POWERS,
        };
        let is_signed = self.has_signed_words();
        let Some(i) = self.index(word) else {
            return Bounds::of(0, 0);
        };
        let (lo, hi) = match i.checked_sub(1) {
            // OVERFLOW: only the last bucket of all ends with the largest number, and no bucket follows it.
            Some(before) => (scale.last(before).wrapping_add(1), scale.last(i)),
            None if !is_signed => (0, 1),
            None => (1, 1),
        };

        if !is_signed || !is_negative(word) {
            return Bounds::of(lo, hi);
        }
        // OVERFLOW: the numbers have 64 bits.
        let [lo, hi] = [hi, lo].map(|end| i128::from(end).wrapping_neg());

        Bounds::of(lo, hi)
    }

    /// Returns the [index](Scale::index) of the bucket with this word; `None` if it has none.
    pub fn index(self, word: u64) -> Option<u64> {
        match self {
            Self::Width(_) | Self::SignedWidth(_) => None,
            Self::Log2(scale) => scale.index(word),
            Self::SignedPowers => magnitude(word).checked_sub(1),
        }
    }

    /// Returns whether words are compared as signed numbers.
    pub fn has_signed_words(self) -> bool {
        match self {
            Self::Log2(scale) => scale != Scale::POWERS,
            Self::Width(_) => false,
            Self::SignedPowers | Self::SignedWidth(_) => true,
        }
    }
}

/// Returns the largest multiple of `width` that is not above the signed number `value`; the smallest number of all if
/// that is below it.
pub(crate) fn signed_multiple(value: u64, width: u64) -> u64 {
    // OVERFLOW: a remainder is at most its number, here and below.
    let below = |number: u64| number.wrapping_sub(number.checked_rem(width).unwrap_or(0));

    if !is_negative(value) {
        return below(value);
    }
    // The complement of a negative number is not negative.
    match below(!value).checked_add(width) {
        // CAST: keeps the bits.
        Some(magnitude) if magnitude <= i64::MIN as u64 => magnitude.wrapping_neg(),
        _ => i64::MIN as u64,
    }
}

/// Returns the bounds of the bucket whose smallest number is `word`.
fn signed_bounds(word: u64, width: NonZeroU64) -> Bounds {
    let width = width.get();
    // The bucket with the smallest number of all may be shorter.
    let len = match magnitude(word).checked_rem(width) {
        Some(0) | None => width,
        Some(rest) => rest,
    };
    // OVERFLOW: a length is not 0. A bucket of positive numbers is cut at the largest number, and one of negative
    // numbers ends below 0.
    let hi = match is_negative(word) {
        true => word.wrapping_add(len.wrapping_sub(1)),
        // CAST: keeps the bits.
        false => word
            .saturating_add(len.wrapping_sub(1))
            .min(i64::MAX as u64),
    };

    // CAST: keeps the bits.
    Bounds::of(word as i64, hi as i64)
}

/// Returns the exponent of the smallest power of two that is not below `value` (`order_base_2()`): the word of `.log2`.
#[inline]
pub(crate) fn ceil_log2(value: u64) -> u64 {
    // OVERFLOW: 0 is left as it is.
    match NonZeroU64::new(value.wrapping_sub(u64::from(value != 0))) {
        // OVERFLOW: at most 64.
        Some(below) => below.ilog2().wrapping_add(1).into(),
        None => 0,
    }
}

/// Returns the word of a number on a scale that is `coarser` steps below the finest one. Only the lowest bits of
/// `coarser` are used.
#[inline(always)]
fn part(value: u64, coarser: u32) -> u64 {
    let Some(value) = NonZeroU64::new(value) else {
        return 0;
    };
    let exponent = value.ilog2();
    // Rotates the highest bit to the lowest place, and the bits below it to the top.
    let mantissa = value.get().rotate_right(exponent);
    // CAST: 7 bits.
    let slice = mantissa.wrapping_shr(u64::BITS - SLICE_BITS) as usize;
    let carry = CARRIES.get(slice).copied().unwrap_or(0);
    let parts = mantissa
        .wrapping_add(carry)
        .wrapping_shr(u64::BITS - SLICE_BITS);
    // OVERFLOW: at most 2^12; for the number 1 it wraps to -1, which is meant.
    let before = u64::from(exponent)
        .wrapping_shl(FINEST)
        .wrapping_add(parts)
        .wrapping_sub(1);

    // CAST: the sign is kept, so that the quotient is rounded down.
    // OVERFLOW: at most 2^12.
    (before as i64).wrapping_shr(coarser).wrapping_add(2) as u64
}

/// Like [`part`], but the word of a `signed` number whose highest bit is set is negative.
#[inline]
pub(crate) fn part_of(value: u64, coarser: u32, signed: bool) -> u64 {
    if is_negative(value) && signed {
        return part(value.wrapping_neg(), coarser).wrapping_neg();
    }
    part(value, coarser)
}

const fn is_negative(word: u64) -> bool {
    word > i64::MAX as u64
}

/// Returns the magnitude of a signed word.
const fn magnitude(word: u64) -> u64 {
    if is_negative(word) {
        word.wrapping_neg()
    } else {
        word
    }
}

/// The number of bits after the highest one that select a slice, in which a hit looks up where the next part begins. At
/// the finest scale a part is wider than a slice (ln 2 / 64 against 1 / 128), so at most one part begins in each slice.
const SLICE_BITS: u32 = FINEST + 1;

/// `2^63 * 2^(j / 64)`, rounded down: the largest number of 64 bits in each part.
#[rustfmt::skip]
const POWERS: [u64; PARTS] = [
    0x8000_0000_0000_0000, 0x8164_d1f3_bc03_0773, 0x82cd_8698_ac2b_a1d7, 0x843a_28c3_acde_4046,
    0x85aa_c367_cc48_7b14, 0x871f_6196_9e8d_1010, 0x8898_0e80_92da_8527, 0x8a14_d575_496e_fd9a,
    0x8b95_c1e3_ea8b_d6e6, 0x8d1a_df5b_7e5b_a9e5, 0x8ea4_398b_45cd_53c0, 0x9031_dc43_1466_b1dc,
    0x91c3_d373_ab11_c336, 0x935a_2b2f_13e6_e92b, 0x94f4_efa8_fef7_0961, 0x9694_2d37_2018_5a00,
    0x9837_f051_8db8_a96f, 0x99e0_4593_20b7_fa64, 0x9b8d_39b9_d54e_5538, 0x9d3e_d9a7_2cff_b750,
    0x9ef5_3260_91a1_11ad, 0xa0b0_510f_b971_4fc2, 0xa270_4303_0c49_6818, 0xa435_15ae_09e6_809e,
    0xa5fe_d6a9_b151_38ea, 0xa7cd_93b4_e965_3569, 0xa9a1_5ab4_ea7c_0ef8, 0xab7a_39b5_a93e_d337,
    0xad58_3eea_42a1_4ac6, 0xaf3b_78ad_690a_4374, 0xb123_f581_d2ac_258f, 0xb311_c412_a911_2489,
    0xb504_f333_f9de_6484, 0xb6fd_91e3_28d1_7791, 0xb8fb_af47_62fb_9ee9, 0xbaff_5ab2_133e_45fb,
    0xbd08_a39f_580c_36be, 0xbf17_99b6_7a73_1082, 0xc12c_4cca_6670_9456, 0xc346_ccda_2497_6407,
    0xc567_2a11_5506_dadd, 0xc78d_74c8_abb9_b15c, 0xc9b9_bd86_6e2f_27a2, 0xcbec_14fe_f272_7c5c,
    0xce24_8c15_1f84_80e3, 0xd063_33da_ef2b_2594, 0xd2a8_1d91_f12a_e45a, 0xd4f3_5aab_cfed_fa1f,
    0xd744_fcca_d69d_6af4, 0xd99d_15c2_78af_d7b5, 0xdbfb_b797_daf2_3755, 0xde60_f482_5e0e_9123,
    0xe0cc_deec_2a94_e111, 0xe33f_8972_be8a_5a51, 0xe5b9_06e7_7c83_48a8, 0xe839_6a50_3c4b_dc68,
    0xeac0_c6e7_dd24_392e, 0xed4f_301e_d994_2b84, 0xefe4_b99b_dcda_f5cb, 0xf281_773c_59ff_b139,
    0xf525_7d15_2486_cc2c, 0xf7d0_df73_0ad1_3bb8, 0xfa83_b2db_722a_033a, 0xfd3e_0c0c_f486_c174,
];

/// For each slice the number to add to a mantissa, so that the highest bits of the sum are the number of parts that end
/// below it: the parts that end below the slice, and a carry if the mantissa is above the end of a part inside the
/// slice.
static CARRIES: [u64; 1 << SLICE_BITS] = carries();

const fn carries() -> [u64; 1 << SLICE_BITS] {
    let mut carries = [0; 1 << SLICE_BITS];
    let top = u64::BITS - SLICE_BITS;
    let mut below = 0;
    let mut slice = 0;

    while slice < carries.len() {
        // The mantissa at which the next of the `PARTS` intervals ends.
        let end = if below < PARTS {
            POWERS[below] << 1 | 1
        } else {
            u64::MAX
        };
        let starts = (slice as u64) << top;

        // OVERFLOW: both differences are modulo 2^64.
        carries[slice] = if below < PARTS && end >> top == slice as u64 {
            below += 1;
            ((below as u64) << top).wrapping_sub(end).wrapping_sub(1)
        } else {
            ((below as u64) << top).wrapping_sub(starts)
        };
        slice += 1;
    }
    carries
}
