// SPDX-License-Identifier: GPL-2.0

//! `limit(N/s)`: how often the actions of a trigger run at most.
//!
//! A bucket of N tokens, which fills up in one unit of time; each action takes one. All of its state is the time at which
//! the bucket is full again, one word, so hits on any CPU and in any context share it without a lock.
//!
//! There is no C counterpart; the kernel's `ratelimit_state` takes a lock.
//!
//! Context: any, NMI included. A loop is repeated only after another context has taken a token.

use crate::sync::{
    Atomic,
    Relaxed, //
};

/// The most actions in one unit of time, so that one takes a microsecond at least.
const MOST: u64 = 1_000_000;

/// The units of time, and the nanoseconds of each.
const UNITS: [(u8, u64); 3] = [
    (b's', 1_000_000_000),
    (b'm', 60_000_000_000),
    (b'h', 3_600_000_000_000),
];

/// How many actions may run in a unit of time.
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
    actions: u64,
    unit: u8,
    /// The nanoseconds in which one token fills up.
    each: u64,
}

impl Limit {
    /// Returns the limit of so many actions in a second (`s`), minute (`m`) or hour (`h`); `None` if `actions` is 0 or
    /// above a million, or for another unit.
    pub fn new(actions: u64, unit: u8) -> Option<Self> {
        let (_, ns) = UNITS.iter().find(|(name, _)| *name == unit)?;

        (actions <= MOST).then_some(Self {
            actions,
            unit,
            each: ns.checked_div(actions)?,
        })
    }

    /// Returns the number of actions.
    pub fn actions(&self) -> u64 {
        self.actions
    }

    /// Returns the letter of the unit.
    pub fn unit(&self) -> char {
        char::from(self.unit)
    }
}

/// The tokens of one trigger.
pub struct Turns {
    /// The time, in ns, at which the bucket is full, or was.
    full_at: Atomic<u64>,
}

impl Turns {
    /// Returns a full bucket.
    pub fn new() -> Self {
        Self {
            full_at: Atomic::<u64>::new(0),
        }
    }

    /// Takes a token at the time `now`, in ns by a clock that never goes back; says whether there was one.
    pub fn take(&self, limit: &Limit, now: u64) -> bool {
        // OVERFLOW: a million times a microsecond, and no more than an hour for fewer.
        let all = limit.actions.wrapping_mul(limit.each);
        // ORDERING: nothing else is published by it, here and below; the exchange decides who has the token.
        let mut full_at = self.full_at.load(Relaxed);

        loop {
            // OVERFLOW: times of a clock that began at 0, and an hour.
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
