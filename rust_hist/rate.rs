// SPDX-License-Identifier: GPL-2.0

//! `limit(N/s)`: a limit on how often the actions of a trigger run.
//!
//! A bucket of N tokens fills up in one unit of time; each action takes a token. The only state is the time at which
//! the bucket is full again, one word, so hits on any CPU and in any context share it without a lock.
//!
//! There is no C counterpart; the kernel's `ratelimit_state` takes a lock.
//!
//! Context: any, NMI included. A loop is repeated only after another context has taken a token.

use crate::sync::{
    Atomic,
    Relaxed, //
};

/// The most actions in one unit of time, so that each has at least a microsecond.
const MOST: u64 = 1_000_000;

/// The units of time, and the nanoseconds of each.
const UNITS: [(u8, u64); 3] = [
    (b's', 1_000_000_000),
    (b'm', 60_000_000_000),
    (b'h', 3_600_000_000_000),
];

/// The number of actions that may run in a unit of time.
///
/// # Invariants
///
/// `actions` is from 1 to [`MOST`].
///
/// # Examples
///
/// ```
/// use rust_hist::rate::{Limit, Turns};
///
/// const SECOND: u64 = 1_000_000_000;
/// let (limit, turns) = (Limit::new(2, b's').ok_or("no limit")?, Turns::new());
///
/// assert!(turns.take(&limit, SECOND) && turns.take(&limit, SECOND));
/// assert!(!turns.take(&limit, SECOND), "both were taken");
/// assert!(turns.take(&limit, SECOND + SECOND / 2), "half a second fills one up");
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The number of actions.
    pub actions: u64,
    /// The letter of the unit.
    pub unit: char,
    /// The nanoseconds in which one token fills up.
    each: u64,
}

impl Limit {
    /// Returns the limit of `actions` in a second (`s`), minute (`m`) or hour (`h`); `None` if `actions` is 0 or above
    /// a million, or for another unit.
    pub fn new(actions: u64, unit: u8) -> Option<Self> {
        let (_, ns) = UNITS.iter().find(|(name, _)| *name == unit)?;

        (actions <= MOST).then_some(Self {
            actions,
            unit: char::from(unit),
            each: ns.checked_div(actions)?,
        })
    }
}

/// The bucket of tokens of one trigger.
pub struct Turns {
    /// The time, in ns, at which the bucket is or was full.
    full_at: Atomic<u64>,
}

impl Turns {
    /// Returns a full bucket.
    pub fn new() -> Self {
        Self {
            full_at: Atomic::<u64>::new(0),
        }
    }

    /// Takes a token at the time `now`, in ns of a monotonic clock; returns whether there was one.
    pub fn take(&self, limit: &Limit, now: u64) -> bool {
        // OVERFLOW: at most an hour in ns: `actions` times the time of each one is a unit of time.
        let all = limit.actions.wrapping_mul(limit.each);
        // ORDERING: here and below, this word publishes nothing else; the exchange decides who gets the token.
        let mut full_at = self.full_at.load(Relaxed);

        loop {
            // OVERFLOW: both are times since the clock's start, plus an hour.
            let next = full_at.max(now).wrapping_add(limit.each);
            if next.wrapping_sub(now) > all {
                return false;
            }
            match self.full_at.cmpxchg(full_at, next, Relaxed) {
                Ok(_) => return true,
                Err(held) => full_at = held,
            }
        }
    }
}
