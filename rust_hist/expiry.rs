// SPDX-License-Identifier: GPL-2.0

//! `expire(T)`: how long a start is kept that no end consumes.
//!
//! There is no C counterpart.
//!
//! Context: any. Plain values.

/// The shortest and the longest time that may be given, in milliseconds.
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
/// assert_eq!((expiry.ms, expiry.n, expiry.unit), (90_000, 90, "s"));
/// assert!(Expiry::new(99, b"ms").is_none(), "less than 100 ms");
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Expiry {
    /// The number that was typed.
    pub n: u64,
    /// The unit that was typed.
    pub unit: &'static str,
    /// The time in milliseconds.
    pub ms: u64,
}

impl Expiry {
    /// Returns the time of `n` milliseconds (`ms`), seconds (`s`), minutes (`m`) or hours (`h`); `None` for another
    /// unit, or if the time is out of range.
    pub fn new(n: u64, unit: &[u8]) -> Option<Self> {
        let (unit, each) = *UNITS.iter().find(|(name, _)| name.as_bytes() == unit)?;
        let ms = n.checked_mul(each)?;

        (LEAST..=MOST).contains(&ms).then_some(Self { n, unit, ms })
    }
}

/// Two times are equal if they are of the same length, regardless of their units.
impl PartialEq for Expiry {
    fn eq(&self, other: &Self) -> bool {
        self.ms == other.ms
    }
}
