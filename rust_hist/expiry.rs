// SPDX-License-Identifier: GPL-2.0

//! `expire(T)`: how long a start that nobody ends is kept.
//!
//! There is no C counterpart.
//!
//! Context: any. Plain values.

use core::num::NonZeroU32;

/// The shortest and the longest time, in milliseconds.
const LEAST: u64 = 100;
const MOST: u64 = 3_600_000;

/// The units of time, and the milliseconds of each.
const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];

/// A time from 100 ms to an hour, as it was typed.
///
/// # Examples
///
/// ```
/// use rust_hist::expiry::Expiry;
///
/// let expiry = Expiry::new(90, b"s").ok_or("no time")?;
///
/// assert_eq!((expiry.ms(), expiry.n(), expiry.unit()), (90_000, 90, "s"));
/// assert!(Expiry::new(99, b"ms").is_none(), "less than 100 ms");
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Expiry {
    n: NonZeroU32,
    /// Its place among the units.
    unit: u8,
}

impl Expiry {
    /// Returns the time of so many milliseconds (`ms`), seconds (`s`), minutes (`m`) or hours (`h`); `None` for another unit,
    /// or if it is out of range.
    pub fn new(n: u64, unit: &[u8]) -> Option<Self> {
        let unit = UNITS.iter().position(|(name, _)| name.as_bytes() == unit)?;
        let own = Self {
            n: NonZeroU32::new(u32::try_from(n).ok()?)?,
            unit: u8::try_from(unit).ok()?,
        };

        (LEAST..=MOST).contains(&own.ms()).then_some(own)
    }

    /// Returns the number that was typed.
    pub fn n(&self) -> u32 {
        self.n.get()
    }

    /// Returns the unit of that.
    pub fn unit(&self) -> &'static str {
        self.of_unit().0
    }

    fn of_unit(&self) -> (&'static str, u64) {
        // By `new` there is one.
        UNITS
            .get(usize::from(self.unit))
            .copied()
            .unwrap_or_default()
    }

    /// Returns the time in milliseconds.
    pub fn ms(&self) -> u64 {
        // OVERFLOW: a number of 32 bits and one of 22.
        u64::from(self.n.get()).wrapping_mul(self.of_unit().1)
    }
}

/// Those of the same length are the same.
impl PartialEq for Expiry {
    fn eq(&self, other: &Self) -> bool {
        self.ms() == other.ms()
    }
}
