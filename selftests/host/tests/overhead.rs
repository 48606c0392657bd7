// SPDX-License-Identifier: GPL-2.0

//! what a trigger costs, of given counts, and when that is too much, against integers of any length.

#![cfg(not(loom))]

use num_bigint::BigUint;
use proptest::prelude::*;
use rust_hist::overhead::{
    Budget,
    Cost,
    Window,
    EVERY, //
};

const SECOND: u64 = 1_000_000_000;

fn budget(thousandths: u32) -> Budget {
    Budget::new(thousandths).expect("a budget")
}

fn cost(calls: u64, samples: u64, ns: u64) -> Cost {
    Cost { calls, samples, ns }
}

/// `n * by / of`, exactly.
fn exact(n: u64, by: u64, of: u64) -> u64 {
    if of == 0 {
        return 0;
    }
    let result = BigUint::from(n) * by / of;

    u64::try_from(result).unwrap_or(u64::MAX)
}

/// Numbers of each length alike.
fn any_number() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0u32..=64).prop_map(|(n, zeros)| n.checked_shr(zeros).unwrap_or(0))
}

#[test]
fn nothing_costs_nothing() {
    let nothing = Cost::default();

    assert_eq!(
        (nothing.mean(), nothing.spent(), nothing.ppm(SECOND)),
        (0, 0, 0)
    );
    // No time has passed.
    assert_eq!(cost(64, 1, 50).ppm(0), 0);
    // None was timed yet.
    assert_eq!((cost(63, 0, 0).spent(), cost(63, 0, 0).ppm(SECOND)), (0, 0));
}

#[test]
fn what_small_numbers_cost_is_exact() {
    for samples in 1..40 {
        for ns in 0..200 {
            for calls in [0, 1, samples, 63, samples * EVERY, samples * EVERY + 63] {
                let cost = cost(calls, samples, ns);
                assert_eq!(cost.mean(), ns / samples);
                assert_eq!(cost.spent(), ns * calls / samples);
                assert_eq!(cost.ppm(997), ns * calls / samples * 1_000_000 / 997);
            }
        }
    }
}

#[test]
fn what_the_largest_numbers_cost_is_exact() {
    let most = u64::MAX;

    for n in [0, 1, 2, most >> 1, most - 1, most] {
        assert_eq!(cost(n, most, most).spent(), n);
        assert_eq!(cost(most, n, n).spent(), if n == 0 { 0 } else { most });
        assert_eq!(cost(n, most - 1, most).spent(), exact(most, n, most - 1));
        assert_eq!(
            cost(most, 1, n).ppm(most),
            exact(exact(n, most, 1), 1_000_000, most)
        );
    }
}

#[test]
fn what_years_cost() {
    // A hundred CPUs that do nothing else for a year.
    let elapsed = 365 * 86_400 * SECOND;
    let calls = 100 * (elapsed / 50);
    let cost = cost(calls, calls / EVERY, calls / EVERY * 50);

    assert_eq!(cost.mean(), 50);
    assert_eq!(cost.spent(), 100 * elapsed);
    assert_eq!(cost.ppm(elapsed), 100_000_000);
}

#[test]
fn exactly_the_budget_is_not_too_much() {
    for thousandths in [10, 1000, 1001, 99_999, 100_000] {
        for cpus in [1, 2, 7, 8192] {
            // So many ns are a whole number of thousandths.
            let elapsed = 100_000 * 12_345;
            let most = elapsed / 100_000 * u64::from(thousandths) * u64::from(cpus);

            assert!(!budget(thousandths).is_exceeded(most, elapsed, cpus));
            assert!(budget(thousandths).is_exceeded(most + 1, elapsed, cpus));
            assert!(!budget(thousandths).is_exceeded(0, elapsed, cpus));
        }
    }
}

#[test]
fn a_short_window_goes_on() {
    let budget = budget(1000);
    let mut window = Window::new(5 * SECOND, Cost::default());
    let storm = cost(6_400_000, 100_000, 5_000_000);

    // 320 ms in 100 ms of two CPUs, and in 400, and in 1000.
    for now in [51, 54] {
        assert!(!window.end(budget, &storm, now * SECOND / 10, 2));
    }
    assert!(window.end(budget, &storm, 6 * SECOND, 2));
    // A clock that has gone back.
    assert!(!window.end(
        budget,
        &cost(12_800_000, 200_000, 10_000_000),
        5 * SECOND,
        2
    ));
}

/// a call that was interrupted counts as a long one and not as all of that time, and hits that each take as long are
/// not overlooked.
#[test]
fn calls_above_a_millisecond_are_too_much() {
    let timed = |times: &[u64]| {
        let ns = times.iter().map(|ns| Cost::sample(*ns)).sum();

        cost(times.len() as u64 * EVERY, times.len() as u64, ns)
    };
    let is_over = |cost| Window::new(0, Cost::default()).end(budget(10_000), &cost, SECOND, 1);

    assert_eq!(timed(&[3 * SECOND, 1, 999_999, 1_000_001]).ns, 3_000_000);
    // 20 % of a CPU for each.
    assert!(is_over(timed(&[SECOND / 640; 2])));
    // One of 128 was interrupted for a tenth of a second.
    let mut times = [1000; 128];
    times[0] = SECOND / 10;
    assert_eq!(timed(&times).spent(), (127_000 + 1_000_000) * EVERY);
}

#[test]
fn what_was_before_a_window_is_not_in_it() {
    let storm = cost(6_400_000, 100_000, 5_000_000);
    let mut window = Window::new(SECOND, storm);

    assert!(!window.end(budget(10), &storm, 2 * SECOND, 1));
    assert!(window.end(budget(10), &storm.plus(&storm), 3 * SECOND, 1));
}

#[test]
fn a_window_without_a_sample_goes_by_those_before() {
    let mut window = Window::new(0, Cost::default());
    let ppm = |n: u32| budget(n / 10);

    // 60 calls of which nothing is known.
    assert!(!window.end(ppm(100), &cost(60, 0, 0), SECOND, 1));
    // Four more, of 100 us each.
    assert!(!window.end(ppm(500), &cost(64, 1, 100_000), 2 * SECOND, 1));
    // 60 more, of which none was timed, are 6 ms.
    assert!(window.end(ppm(5_900), &cost(124, 1, 100_000), 3 * SECOND, 1));
    assert!(!window.end(ppm(6_100), &cost(184, 1, 100_000), 4 * SECOND, 1));
    assert!(!window.end(ppm(100), &cost(184, 1, 100_000), 5 * SECOND, 1));
}

proptest! {
    #[test]
    fn any_cost_is_the_exact_one(
        calls in any_number(),
        samples in any_number(),
        ns in any_number(),
        elapsed in any_number(),
    ) {
        let cost = cost(calls, samples, ns);
        let spent = exact(ns, calls, samples);

        prop_assert_eq!(cost.spent(), spent);
        prop_assert_eq!(cost.ppm(elapsed), exact(spent, 1_000_000, elapsed));
    }

    #[test]
    fn a_budget_is_a_share_of_all_cpus(
        thousandths in 10u32..=100_000,
        spent: u64,
        elapsed in 1u64..1 << 50,
        cpus in 1u32..8192,
    ) {
        let share = BigUint::from(spent) * 100_000u32;
        let allowed = BigUint::from(elapsed) * cpus * thousandths;

        prop_assert_eq!(budget(thousandths).is_exceeded(spent, elapsed, cpus), share > allowed);
    }

    /// The windows of a trigger one after the other: each is judged by its own calls alone.
    #[test]
    fn each_window_is_judged_by_itself(
        steps in proptest::collection::vec((0u64..3_000_000, 1u64..2000, 0u64..2 * SECOND), 1..30),
        thousandths in 10u32..5000,
        cpus in 1u32..16,
    ) {
        let mut window = Window::new(0, Cost::default());
        let (mut now, mut all) = (0, Cost::default());
        let (mut since, mut before) = (0, all);

        for (samples, mean, later) in steps {
            now += later;
            all = all.plus(&cost(samples * EVERY, samples, samples * mean));
            let is_over = window.end(budget(thousandths), &all, now, cpus);
            if now - since < SECOND / 2 {
                prop_assert!(!is_over);
                continue;
            }
            let own = (all.ns - before.ns, all.samples - before.samples);
            let known = if own.1 == 0 { (all.ns, all.samples) } else { own };
            let spent = match known.1 {
                0 => 0,
                samples => exact(known.0, all.calls - before.calls, samples),
            };
            let limit = u128::from(now - since) * u128::from(cpus) * u128::from(thousandths);
            prop_assert_eq!(is_over, u128::from(spent) * 100_000 > limit);
            (since, before) = (now, all);
        }
    }

    /// What is between two readings does not depend on what was before.
    #[test]
    fn costs_add_up(a in (0u64..1 << 40, 0u64..1 << 30, 0u64..1 << 50), b in (0u64..1 << 40, 0u64..1 << 30, 0u64..1 << 50)) {
        let (a, b) = (cost(a.0, a.1, a.2), cost(b.0, b.1, b.2));

        prop_assert_eq!(a.plus(&b).since(&a), b);
        prop_assert_eq!(a.since(&a.plus(&b)), Cost::default());
    }
}
