// SPDX-License-Identifier: GPL-2.0

//! `onchange($x,DELTA)`, `onover($x,T[,H])` and `limit(N/s)` in hits, against a model of one row.

use crate::{
    lang_common::*,
    run::*, //
};
use proptest::prelude::*;

/// When a handler runs its action, for one row.
#[derive(Clone, Copy, Debug)]
enum Model {
    Change {
        by: u128,
        last: Option<i128>,
    },
    Over {
        limit: i128,
        back: i128,
        is_above: bool,
    },
}

impl Model {
    fn fires(&mut self, value: i128) -> bool {
        match self {
            Self::Change { by, last } => {
                let fires = last.is_none_or(|last| value.abs_diff(last) >= *by);
                if fires {
                    *last = Some(value);
                }
                fires
            }
            Self::Over {
                limit,
                back,
                is_above,
            } => {
                let fires = !*is_above && value > *limit;
                *is_above = fires || *is_above && value > *back;
                fires
            }
        }
    }
}

/// Runs a handler over the numbers of a variable in two rows, on each path that does for it.
fn agrees(handler: &str, var: &str, model: Model, numbers: &[(bool, i128)]) {
    let mut world = World::default();
    let text = format!("keys=prev_pid:p={var}:{handler}.snapshot()");
    let n = world.add(&SWITCH, SWITCHED, &text);

    for path in world.paths(n) {
        let world = world.anew();
        let mut models = [model; 2];
        for &(row, value) in numbers {
            let prio = i32::try_from(value).unwrap_or(0);
            // As the variable has it: a time stamp, or a signed field.
            let around = at(value as u64);
            let record = switch("a", i32::from(row), "b", 2, prio);
            let asked = world.hit_on(&path, n, &record, &around).snapshots;
            let fires = models[usize::from(row)].fires(value);

            assert_eq!(
                asked,
                vec![value as u64; usize::from(fires)],
                "{text}: {value}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changes_of_signed_numbers(by in 1u64..9, numbers in prop::collection::vec((any::<bool>(), -12i128..12), 0..60)) {
        let model = Model::Change { by: by.into(), last: None };
        agrees(&format!("onchange($p,{by})"), "next_prio", model, &numbers);
    }

    #[test]
    fn changes_of_unsigned_numbers(by in any::<u64>(), numbers in prop::collection::vec((any::<bool>(), any::<u64>()), 0..30)) {
        let numbers: Vec<_> = numbers.into_iter().map(|(row, value)| (row, value.into())).collect();
        let by = by.max(1);
        let model = Model::Change { by: by.into(), last: None };
        agrees(&format!("onchange($p,{by})"), "common_timestamp", model, &numbers);
    }

    #[test]
    fn crossings_of_signed_numbers(limit in -9i128..9, back in 0i128..6, numbers in prop::collection::vec((any::<bool>(), -16i128..16), 0..60)) {
        let model = Model::Over { limit, back: limit - back, is_above: false };
        agrees(&format!("onover($p,{limit},{back})"), "next_prio", model, &numbers);
    }

    #[test]
    fn crossings_of_unsigned_numbers(limit in 3u64..9, back in 0u64..3, numbers in prop::collection::vec((any::<bool>(), 0u64..12), 0..60)) {
        let numbers: Vec<_> = numbers.into_iter().map(|(row, value)| (row, i128::from(value))).collect();
        let model = Model::Over { limit: limit.into(), back: (limit - back).into(), is_above: false };
        agrees(&format!("onover($p,{limit},{back})"), "common_timestamp", model, &numbers);
    }

    /// However the hits come, a unit of time has at most as many actions as fill a bucket and become of it.
    #[test]
    fn a_limit_is_a_bucket_of_tokens(actions in 1u64..5, waits in prop::collection::vec(0u64..600_000_000, 1..60)) {
        let mut world = World::default();
        let text = format!("keys=prev_pid:p=next_prio:onchange($p).snapshot():limit({actions}/s)");
        let n = world.add(&SWITCH, SWITCHED, &text);
        let each = 1_000_000_000 / actions;
        // Tokens, in nanoseconds of their filling up.
        let (mut tokens, mut now, mut lost) = (actions * each, 0, 0);

        for (i, wait) in waits.into_iter().enumerate() {
            now += wait;
            tokens = (tokens + wait).min(actions * each);
            let asked = world.hit(n, &switch("a", 1, "b", 2, i as i32 + 1), &at(now)).snapshots;
            let has_token = tokens >= each;
            tokens -= u64::from(has_token) * each;
            lost += u64::from(!has_token);

            prop_assert_eq!(asked.len(), usize::from(has_token), "at {}", now);
        }
        prop_assert_eq!(world.triggers[n].map().account().lost_limited, lost);
    }
}

#[test]
fn the_first_number_of_a_row_is_a_change() {
    let mut world = World::default();
    let n = world.add(
        &SWITCH,
        SWITCHED,
        "keys=prev_pid:p=next_prio:onchange($p,5).save(next_pid)",
    );
    let row = |value: i32, pid: i32| format!("\tchanged: {value:>10}  next_pid: {pid:>10}\n");

    for (prio, pid, value, saved) in [(0, 9, 0, 9), (4, 8, 0, 9), (-5, 7, -5, 7), (-1, 6, -5, 7)] {
        world.hit(n, &switch("a", 1, "b", pid, prio), &AROUND);
        assert!(world.rows(n)[0].ends_with(&row(value, saved)), "{prio}");
    }
}

#[test]
fn a_row_shows_the_number_that_was_over() {
    let mut world = World::default();
    let n = world.add(
        &SWITCH,
        SWITCHED,
        "keys=prev_pid:p=next_prio:onover($p,-3,2).save(next_pid)",
    );
    let row = |value: i32, pid: i32| format!("\tover: {value:>10}  next_pid: {pid:>10}\n");

    for (prio, pid, value, saved) in [
        (-3, 9, 0, 0),
        (-2, 8, -2, 8),
        (7, 7, -2, 8),
        (-4, 6, -2, 8),
        (7, 5, -2, 8),
        (-5, 4, -2, 8),
        (7, 3, 7, 3),
    ] {
        world.hit(n, &switch("a", 1, "b", pid, prio), &AROUND);
        assert!(world.rows(n)[0].ends_with(&row(value, saved)), "{prio}");
    }
}

/// What a limit leaves out is as if the hit had not met the condition: the next one may.
#[test]
fn what_is_left_out_comes_later() {
    let mut world = World::default();
    let n = world.add(
        &SWITCH,
        SWITCHED,
        "keys=prev_pid:p=next_prio:onover($p,10).save(next_pid):limit(1/s)",
    );
    const SECOND: u64 = 1_000_000_000;
    let hit = |row, pid, prio, now| {
        world.hit(n, &switch("a", row, "b", pid, prio), &at(now));
    };

    hit(1, 1, 11, SECOND);
    hit(2, 2, 11, SECOND);
    assert_eq!(world.triggers[n].map().account().lost_limited, 1);
    assert!(
        world.rows(n)[1].contains("over:          0"),
        "{:?}",
        world.rows(n)
    );
    hit(2, 3, 12, 2 * SECOND);
    assert!(world.rows(n)[1].contains("over:         12  next_pid:          3"));
    assert_eq!(world.triggers[n].map().account().lost_limited, 1);
}
