// SPDX-License-Identifier: GPL-2.0

//! Triggers under interrupts: a hit is interrupted before each of its accesses to what is shared by
//! other hits, of the same trigger and of others, which run to their end, B-01 to
//! B-04.
//!
//! Whatever is shown afterwards must be what one of the orders without interrupts would have left:
//! each word of each row, and each event that was made. Hits and accounts are the same in all orders.

use crate::{
    lang_common::*,
    run::*, //
};
use rust_hist::sync::interrupted;
use std::{
    cell::{
        Cell,
        RefCell, //
    },
    collections::BTreeSet,
    rc::Rc, //
};

type Name = (&'static str, &'static str);

/// Triggers, by their events, and synthetic events.
struct Case {
    synths: &'static [&'static str],
    triggers: &'static [(Name, &'static str)],
    /// The hits that come before: trigger, and what the record says.
    before: &'static [(usize, u64)],
    /// The hit that is interrupted, by those that interrupt it.
    outer: (usize, u64),
    inner: &'static [(usize, u64)],
}

/// What is to be seen when all is over.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Seen {
    /// The words of the rows of each trigger.
    rows: Vec<Vec<String>>,
    accounts: Vec<(u64, u64, u64)>,
    traced: Vec<String>,
    lost: u64,
}

fn world(case: &Case) -> World {
    let mut world = World::default();

    for synth in case.synths {
        world.synth(synth);
    }
    for (event, text) in case.triggers {
        world.add(&SWITCH, *event, text);
    }
    world
}

/// One key; all that the record says comes from one number.
fn hit(world: &World, (n, says): (usize, u64), log: &RefCell<Seen>) {
    let text = "abcdefgh"
        .chars()
        .cycle()
        .skip(says as usize)
        .take(3 + says as usize % 9);
    let text: String = text.collect();
    let record = switch(&text, says as i32, &text, 2, says as i32);
    let around = Around {
        ts: 1000 * says,
        frames: [&[0xa1, 0xa2][..], &[0xb1], &[0xc1, 0xc2, 0xc3]][says as usize % 3],
        ..AROUND
    };
    let ended = world.hit(n, &record, &around);
    let mut log = log.borrow_mut();

    log.traced.extend(ended.traced);
    log.traced
        .extend(ended.snapshots.iter().map(u64::to_string));
}

fn look(world: &World, log: &RefCell<Seen>) -> Seen {
    let mut seen = log.borrow().clone();

    for n in 0..world.triggers.len() {
        let account = world.triggers[n].map().account();
        let rows = world.rows(n);

        assert!(rows.len() <= 1);
        assert_eq!(account.calls(), account.hits + account.ignored);
        seen.lost += account.lost_saves + account.lost_traces;
        seen.accounts
            .push((account.hits, account.dropped(), account.ignored));
        let words = rows.iter().flat_map(|row| row.split_whitespace());
        seen.rows.push(words.map(str::to_owned).collect());
    }
    seen.traced.sort();
    seen
}

fn empty() -> RefCell<Seen> {
    RefCell::new(Seen {
        rows: Vec::new(),
        accounts: Vec::new(),
        traced: Vec::new(),
        lost: 0,
    })
}

/// What the hits leave in this order.
fn in_order(case: &Case, order: &[(usize, u64)]) -> Seen {
    let world = world(case);
    let log = empty();

    for says in case.before.iter().chain(order) {
        hit(&world, *says, &log);
    }
    look(&world, &log)
}

/// What is left when the outer hit is interrupted before access `at`, and the first that interrupts
/// it before its access `deeper` by the rest; `None` where there are not as many.
fn nested(case: &'static Case, at: u64, deeper: Option<u64>) -> Option<Seen> {
    let world = Rc::new(world(case));
    let log = Rc::new(empty());
    let reached = Rc::new(Cell::new(false));

    for says in case.before {
        hit(&world, *says, &log);
    }
    let handler = {
        let (world, log, reached) = (world.clone(), log.clone(), reached.clone());
        let steps = Cell::new(0);
        move || {
            let step = steps.replace(steps.get() + 1);
            if step != at {
                return;
            }
            let (first, rest) = case.inner.split_first().expect("an interrupt");
            let Some(deeper) = deeper else {
                reached.set(true);
                case.inner.iter().for_each(|says| hit(&world, *says, &log));
                return;
            };
            let handler = {
                let (world, log, reached) = (world.clone(), log.clone(), reached.clone());
                let steps = Cell::new(0);
                move || {
                    if steps.replace(steps.get() + 1) == deeper {
                        reached.set(true);
                        rest.iter().for_each(|says| hit(&world, *says, &log));
                    }
                }
            };
            interrupted(handler, || hit(&world, *first, &log));
        }
    };
    interrupted(handler, || hit(&world, case.outer, &log));
    reached.get().then(|| look(&world, &log))
}

/// All orders of the hits.
fn orders(hits: &[(usize, u64)]) -> Vec<Vec<(usize, u64)>> {
    let Some((first, rest)) = hits.split_first() else {
        return vec![Vec::new()];
    };
    orders(rest)
        .into_iter()
        .flat_map(|order| {
            (0..=order.len()).map(move |at| {
                let mut order = order.clone();
                order.insert(at, *first);
                order
            })
        })
        .collect()
}

/// Tries every place. `whole` says that all that is seen must come of one order; else each word of a
/// row and each event must come of some order. Returns how many of the places lost a row.
fn check(case: &'static Case, whole: bool) -> u64 {
    let mut hits = vec![case.outer];
    hits.extend(case.inner);
    let mut allowed: BTreeSet<Seen> = orders(&hits).iter().map(|o| in_order(case, o)).collect();
    let sequential = allowed.clone();
    // Two hits at a time have a row to save to; the third is lost, and counted.
    allowed.extend(orders(&hits[..2]).iter().map(|order| in_order(case, order)));
    let some = |is: &dyn Fn(&Seen) -> bool| allowed.iter().any(is);
    let mut lost = 0;
    let mut look_at = |seen: Seen, place: (u64, Option<u64>)| {
        lost += seen.lost;
        let whole = whole && seen.lost == 0;

        assert!(seen.lost == 0 || (seen.lost == 1 && place.1.is_some()));
        if sequential.contains(&seen) {
            return;
        }
        assert!(!whole, "{place:?}: {seen:#?} is none of {sequential:#?}");
        assert!(
            sequential.iter().any(|a| a.accounts == seen.accounts),
            "{place:?}: {seen:#?}, {sequential:#?}"
        );
        for text in &seen.traced {
            assert!(some(&|a| a.traced.contains(text)), "{place:?}: {text}");
        }
        for (n, words) in seen.rows.iter().enumerate() {
            assert!(some(&|a| a.rows[n].len() == words.len()));
            for (i, word) in words.iter().enumerate() {
                let known = some(&|a| a.rows[n].get(i) == Some(word));
                assert!(known, "{place:?}: {word} in {words:?}, {allowed:#?}");
            }
            // What is saved is of the hit whose number is shown.
            let behind = |name: &str| {
                let at = words.iter().position(|word| word == name);
                at.map(|at| &words[at + 1])
            };
            if let (Some(max), Some(saved)) = (behind("max:"), behind("next_prio:")) {
                assert_eq!(max, saved, "{place:?}: {words:?}");
            }
        }
    };
    let mut at = 0;

    while let Some(seen) = nested(case, at, None) {
        look_at(seen, (at, None));
        if case.inner.len() > 1 {
            let mut deeper = 0;
            while let Some(seen) = nested(case, at, Some(deeper)) {
                look_at(seen, (at, Some(deeper)));
                deeper += 1;
            }
        }
        at += 1;
    }
    assert!(at > 5, "{at} places");
    lost
}

#[test]
fn a_maximum_comes_with_its_row() {
    const CASE: Case = Case {
        synths: &[],
        triggers: &[(
            SWITCHED,
            "keys=next_pid:p=prev_pid:onmax($p).save(next_prio,next_comm)",
        )],
        before: &[(0, 3)],
        outer: (0, 7),
        inner: &[(0, 9), (0, 8)],
    };
    const SMALLER: Case = Case {
        inner: &[(0, 5), (0, 6)],
        ..CASE
    };
    const FIRST: Case = Case {
        before: &[],
        inner: &[(0, 9), (0, 5)],
        ..CASE
    };
    // The variable itself is written apart from what is tracked, and is not shown.
    assert_ne!(check(&CASE, true), 0);
    check(&SMALLER, true);
    check(&FIRST, true);
}

#[test]
fn a_change_comes_with_its_row() {
    const CASE: Case = Case {
        synths: &[],
        triggers: &[(
            SWITCHED,
            "keys=next_pid:p=prev_pid:onchange($p).save(next_prio,next_comm)",
        )],
        before: &[(0, 3)],
        outer: (0, 7),
        inner: &[(0, 9), (0, 9)],
    };
    check(&CASE, true);
}

#[test]
fn a_start_is_taken_once() {
    const CASE: Case = Case {
        synths: &["lat u64 lat"],
        triggers: &[
            (WAKING, "keys=next_pid:ts0=common_timestamp"),
            (
                SWITCHED,
                "keys=next_pid:lat=common_timestamp-$ts0:onmatch(sched.sched_waking).lat($lat)",
            ),
        ],
        before: &[(0, 1)],
        outer: (1, 5),
        inner: &[(1, 6), (1, 7)],
    };
    const STARTED_AGAIN: Case = Case {
        inner: &[(0, 4), (1, 6)],
        ..CASE
    };
    const STARTING: Case = Case {
        outer: (0, 4),
        inner: &[(1, 6), (0, 5)],
        ..CASE
    };
    check(&CASE, true);
    check(&STARTED_AGAIN, true);
    check(&STARTING, true);
}

#[test]
fn strings_and_stacks_are_whole() {
    const CASE: Case = Case {
        synths: &["both char[] who; long[] stack"],
        triggers: &[
            (
                WAKING,
                "keys=next_pid:who=prev_comm:stack=common_stacktrace",
            ),
            (
                SWITCHED,
                "keys=next_pid:onmatch(sched.sched_waking).both($who,$stack)",
            ),
        ],
        before: &[(0, 1)],
        outer: (0, 5),
        inner: &[(1, 6), (0, 4)],
    };
    const READER: Case = Case {
        outer: (1, 5),
        inner: &[(0, 7), (1, 6)],
        ..CASE
    };
    // Two variables are two writes; each of them is whole.
    strings(&CASE);
    strings(&READER);
}

/// Each event shows whole values. One whose value is being written, or was written between its measuring
/// and its copying, is lost, which `hist_stats` of the module counts.
fn strings(case: &'static Case) {
    let pieces: BTreeSet<String> = (0..10u64)
        .flat_map(|says| {
            let order = [(0, says), (1, says)];
            let seen = in_order(
                &Case {
                    before: &[],
                    inner: &[],
                    outer: case.outer,
                    ..*case
                },
                &order,
            );
            seen.traced
        })
        .flat_map(|text| text.split(' ').map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let mut at = 0;

    while let Some(seen) = nested(case, at, None) {
        let mut all = vec![seen];
        let mut deeper = 0;
        while let Some(seen) = nested(case, at, Some(deeper)) {
            all.push(seen);
            deeper += 1;
        }
        for seen in all {
            let calls: u64 = seen.accounts.iter().map(|a| a.0 + a.1 + a.2).sum();
            assert_eq!(calls, 4);
            let torn = seen.traced.iter().filter(|text| *text == "Torn");
            assert_eq!(torn.count() as u64, seen.lost);
            let made = seen.traced.iter().filter(|text| *text != "Torn");
            for piece in made.flat_map(|text| text.split(' ')) {
                assert!(pieces.contains(piece), "{at}: {piece} of {:?}", seen.traced);
            }
        }
        at += 1;
    }
    assert!(at > 8, "{at} places");
}

#[test]
fn sums_and_copies_of_variables() {
    const CASE: Case = Case {
        synths: &[],
        triggers: &[
            (WAKING, "keys=next_pid:n=prev_pid,ten=10:vals=next_prio"),
            (
                SWITCHED,
                "keys=next_pid:vals=next_prio,prev_prio:m=$n:onmax($m).save(prev_pid)",
            ),
        ],
        before: &[(0, 1)],
        outer: (1, 5),
        inner: &[(0, 6), (1, 7)],
    };
    const WRITER: Case = Case {
        outer: (0, 5),
        inner: &[(1, 6), (0, 7)],
        ..CASE
    };
    check(&CASE, false);
    check(&WRITER, false);
}

#[test]
fn a_new_entry_and_its_task() {
    const CASE: Case = Case {
        synths: &[],
        triggers: &[(
            SWITCHED,
            "keys=common_pid.execname,next_comm:p=next_prio:vals=next_prio:onchange($p).snapshot()",
        )],
        before: &[],
        outer: (0, 1),
        inner: &[(0, 1), (0, 1)],
    };
    check(&CASE, true);
}
