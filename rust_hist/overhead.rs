// SPDX-License-Identifier: GPL-2.0

//! `overhead` and `overhead(P%)`: the measured cost of a trigger's hits, and its limit.
//!
//! Each call is counted, and one of [`EVERY`] is timed. The rest is arithmetic in process context: [`Cost`] has the
//! sums that hits have added up, [`Budget`] the share of the machine that they may take, and [`Window`] the time over
//! which they are compared.
//!
//! There is no C counterpart. The statistics of BPF can only be enabled for all programs at once, and stop none.
//!
//! Context: any. Plain values.

use core::num::NonZeroU32;

/// One call out of this many is timed.
pub const EVERY: u64 = 128;

/// The longest time, in ns, that a timed call counts for: most longer calls were interrupted, by an interrupt or by the
/// machine's host.
const LONGEST: u64 = 1_000_000;

/// The shortest window, in ns, that is compared with the budget.
const SHORTEST: u64 = 500_000_000;

/// One percent, and the whole, in the unit of a [`Budget`].
const PERCENT: u32 = 1000;
const WHOLE: u32 = 100 * PERCENT;
/// The least budget: 0.01 %.
const LEAST: u32 = PERCENT / 100;

/// A share of all CPUs that are online, from 0.01 % to 100 %, in thousandths of a percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget(NonZeroU32);

impl Budget {
    /// Returns the budget of this many thousandths of a percent; `None` if it is less than 0.01 % or more than 100 %.
    pub fn new(thousandths: u32) -> Option<Self> {
        let own = NonZeroU32::new(thousandths)?;

        (LEAST..=WHOLE).contains(&thousandths).then_some(Self(own))
    }

    /// Returns the budget in thousandths of a percent.
    pub fn thousandths(self) -> u32 {
        self.0.get()
    }

    /// Returns whether `spent` ns are more than this share of `elapsed` ns on each of `cpus` CPUs.
    pub fn is_exceeded(self, spent: u64, elapsed: u64, cpus: u32) -> bool {
        let available = elapsed.saturating_mul(u64::from(cpus));
        // OVERFLOW: the products have at most 64 + 17 bits.
        let spent = u128::from(spent).wrapping_mul(u128::from(WHOLE));
        let allowed = u128::from(available).wrapping_mul(u128::from(self.0.get()));

        spent > allowed
    }
}

/// The sums that hits have added up, since the trigger was created or between two moments.
///
/// # Examples
///
/// ```
/// use rust_hist::overhead::Cost;
///
/// const SECOND: u64 = 1_000_000_000;
/// // Of 640,000 calls in a second 10,000 were timed, and took 400 us in all.
/// let cost = Cost { calls: 640_000, samples: 10_000, ns: 400_000 };
///
/// assert_eq!(cost.mean(), 40);
/// assert_eq!(cost.spent(), 25_600_000);
/// assert_eq!(cost.ppm(SECOND), 25_600, "2.56 % of a CPU");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// The number of all calls.
    pub calls: u64,
    /// The number of calls that were timed.
    pub samples: u64,
    /// The nanoseconds that the timed calls took, from the entry of the callback to its end.
    pub ns: u64,
}

impl Cost {
    /// Returns the time that a timed call of `ns` adds to [`Cost::ns`]: at most a millisecond.
    ///
    /// # Examples
    ///
    /// ```
    /// use rust_hist::overhead::Cost;
    ///
    /// assert_eq!(Cost::sample(700), 700);
    /// assert_eq!(Cost::sample(20_000_000), 1_000_000);
    /// ```
    pub fn sample(ns: u64) -> u64 {
        ns.min(LONGEST)
    }

    /// Returns the sums that were added since `before`.
    pub fn since(&self, before: &Self) -> Self {
        // A reader may miss a call that is being timed, and count it the next time.
        Self {
            calls: self.calls.saturating_sub(before.calls),
            samples: self.samples.saturating_sub(before.samples),
            ns: self.ns.saturating_sub(before.ns),
        }
    }

    /// Returns the sums of both costs together.
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            calls: self.calls.wrapping_add(other.calls),
            samples: self.samples.wrapping_add(other.samples),
            ns: self.ns.wrapping_add(other.ns),
        }
    }

    /// Returns the mean time of a timed call in nanoseconds; 0 if no call was timed.
    pub fn mean(&self) -> u64 {
        self.ns.checked_div(self.samples).unwrap_or(0)
    }

    /// Returns the nanoseconds of all calls, assuming that they take as long as the timed ones; 0 if none was timed.
    pub fn spent(&self) -> u64 {
        self.of(self.calls)
    }

    /// Returns the nanoseconds of `calls` calls that take as long as the timed ones.
    fn of(&self, calls: u64) -> u64 {
        scaled(self.ns, calls, self.samples)
    }

    /// Returns the share of one CPU that all calls have taken in `elapsed` ns, in millionths.
    pub fn ppm(&self, elapsed: u64) -> u64 {
        scaled(self.spent(), 1_000_000, elapsed)
    }
}

/// Returns `n * by / of`, rounded down; 0 if `of` is 0, and the largest number if the result has more than 64 bits.
fn scaled(n: u64, by: u64, of: u64) -> u64 {
    // The kernel has no 128-bit division for Rust, so this divides bit by bit.
    // OVERFLOW: the product of two numbers of 64 bits.
    let product = u128::from(n).wrapping_mul(u128::from(by));
    // CAST: takes the upper and the lower half.
    let (mut rest, low) = ((product >> 64) as u64, product as u64);

    if of == 0 {
        return 0;
    }
    if rest >= of {
        return u64::MAX;
    }
    (0..u64::BITS).rev().fold(0, |quotient: u64, bit| {
        let carry = rest >> 63;

        rest = rest << 1 | low.wrapping_shr(bit) & 1;
        if carry == 0 && rest < of {
            return quotient << 1;
        }
        // OVERFLOW: the rest was below `of`, so twice the rest plus one is below twice `of`.
        rest = rest.wrapping_sub(of);
        quotient << 1 | 1
    })
}

/// The time since the cost of a trigger was last compared with its budget.
///
/// # Examples
///
/// ```
/// use rust_hist::overhead::{Budget, Cost, Window};
///
/// const SECOND: u64 = 1_000_000_000;
/// let one_percent = Budget::new(1000).ok_or("no budget")?;
/// let mut window = Window::new(0, Cost::default());
/// let mut cost = Cost { calls: 640_000, samples: 10_000, ns: 400_000 };
///
/// // 2.56 % of one CPU are 0.64 % of four.
/// assert!(!window.end(one_percent, &cost, SECOND, 4));
/// // Three times as much in the next second.
/// cost = Cost { calls: 4 * 640_000, samples: 40_000, ns: 1_600_000 };
/// assert!(window.end(one_percent, &cost, 2 * SECOND, 4));
/// // Nothing more after that.
/// assert!(!window.end(one_percent, &cost, 3 * SECOND, 4));
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// The time at which the window began, in ns.
    since: u64,
    /// The cost at the beginning of the window.
    before: Cost,
}

impl Window {
    /// Returns a window that begins at the time `now`, in ns of a monotonic clock, when hits have added up `before`.
    pub fn new(now: u64, before: Cost) -> Self {
        Self { since: now, before }
    }

    /// Ends the window at the time `now`, when hits have added up `cost`, and begins the next one. Returns whether the
    /// calls in the window exceeded the budget on `cpus` CPUs. A window of less than half a second continues instead.
    ///
    /// Calls in a window without a sample are assumed to take as long as the samples before.
    pub fn end(&mut self, budget: Budget, cost: &Cost, now: u64, cpus: u32) -> bool {
        let elapsed = now.saturating_sub(self.since);

        if elapsed < SHORTEST {
            return false;
        }

        let within = cost.since(&self.before);
        let spent = match within.samples {
            0 => cost.of(within.calls),
            _ => within.spent(),
        };

        *self = Self::new(now, *cost);
        budget.is_exceeded(spent, elapsed, cpus)
    }
}
