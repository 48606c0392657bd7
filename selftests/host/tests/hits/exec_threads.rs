// SPDX-License-Identifier: GPL-2.0

//! Triggers that refer to each other, hit by threads at once while others look on: every call is
//! accounted for, a variable is taken once, and what is shown together was together: to
//! X-14, B-02 to B-04.
//!
//! `scripts/test tsan` runs it, and the other tests with threads, under ThreadSanitizer.

use crate::{
    lang_common::*,
    run::*, //
};
use std::{
    sync::{
        atomic::{
            AtomicBool,
            Ordering, //
        },
        Barrier, //
    },
    thread, //
};

/// Rounds of a thread; debug builds and sanitizers take their time.
const ROUNDS: u64 = 40_000;
const KEYS: u64 = 5;

/// xorshift64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// A record in which all says the same number.
fn whole(n: u64, key: u64) -> Vec<u8> {
    let text = format!("t{n}");
    switch(&text, n as i32, &text, key as i32, n as i32)
}

/// Runs `work` on every CPU at once, and `look` meanwhile; returns what the work returns.
fn at_once<T: Send>(work: impl Fn(u32) -> T + Sync, look: impl Fn() + Sync) -> Vec<T> {
    let start = Barrier::new(CPUS as usize + 1);
    let done = AtomicBool::new(false);

    thread::scope(|scope| {
        let workers: Vec<_> = (0..CPUS)
            .map(|cpu| {
                let (start, work) = (&start, &work);
                scope.spawn(move || {
                    start.wait();
                    work(cpu)
                })
            })
            .collect();
        let onlooker = scope.spawn(|| {
            start.wait();
            while !done.load(Ordering::Relaxed) {
                look();
                thread::yield_now();
            }
        });
        let results: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        done.store(true, Ordering::Relaxed);
        onlooker.join().expect("onlooker");
        results
            .into_iter()
            .map(|result| result.expect("worker"))
            .collect()
    })
}

/// The word behind `name` in a row.
fn word<'r>(row: &'r str, name: &str) -> &'r str {
    row.split_once(name)
        .and_then(|(_, behind)| behind.split_whitespace().next())
        .unwrap_or_else(|| panic!("no {name} in {row}"))
}

#[test]
fn each_start_gives_one_latency() {
    let mut world = World::default();
    world.synth("lat u64 lat");
    let start = world.add(&SWITCH, WAKING, "keys=next_pid:ts0=common_timestamp");
    let end = world.add(
        &SWITCH,
        SWITCHED,
        "keys=next_pid:lat=common_timestamp-$ts0:onmatch(sched.sched_waking).lat($lat)",
    );
    let world = &world;

    let counts = at_once(
        |cpu| {
            let mut random = Random(77 + u64::from(cpu));
            let (mut started, mut ended, mut ignored) = (0u64, 0u64, 0u64);

            for n in 0..ROUNDS {
                let record = whole(n, random.next() % KEYS);
                let around = Around {
                    ts: n * 10 + 1_000_000,
                    cpu,
                    ..AROUND
                };

                if random.next() % 2 == 0 {
                    assert_eq!(world.hit(start, &record, &around), HIT);
                    started += 1;
                    continue;
                }
                let hit = world.hit(end, &record, &around);
                match hit.is_hit {
                    true => {
                        assert_eq!(hit.traced.len(), 1);
                        ended += 1;
                    }
                    false => ignored += 1,
                }
            }
            (started, ended, ignored)
        },
        || {
            for n in [start, end] {
                assert!(world.rows(n).len() as u64 <= KEYS);
            }
        },
    );
    let sum = |of: fn(&(u64, u64, u64)) -> u64| counts.iter().map(of).sum::<u64>();

    assert_eq!(world.triggers[start].map().account().hits, sum(|c| c.0));
    let account = world.triggers[end].map().account();
    assert_eq!(
        (account.hits, account.ignored),
        (sum(|c| c.1), sum(|c| c.2))
    );
    assert!(sum(|c| c.1) <= sum(|c| c.0), "a start was taken twice");
}

#[test]
fn a_saved_row_is_that_of_the_maximum() {
    let mut world = World::default();
    let n = world.add(
        &SWITCH,
        SWITCHED,
        "keys=next_pid:p=prev_pid:onmax($p).save(next_prio,next_comm,prev_comm)",
    );
    let world = &world;
    let look = || {
        for row in world.rows(n) {
            let max = word(&row, "max:");
            if max != "0" {
                assert_eq!(word(&row, "next_prio:"), max, "{row}");
                assert_eq!(word(&row, "next_comm:"), format!("t{max}"), "{row}");
                assert_eq!(word(&row, "prev_comm:"), format!("t{max}"), "{row}");
            }
        }
    };

    let hits = at_once(
        |cpu| {
            let mut random = Random(99 + u64::from(cpu));
            let hit = |round| {
                let key = random.next() % KEYS;
                // Rising, so that there is always something to save.
                let v = round + 1 + random.next() % 100;
                let around = Around { cpu, ..AROUND };

                world.hit(n, &whole(v, key), &around);
                (key, v)
            };
            (0..ROUNDS).map(hit).collect::<Vec<_>>()
        },
        look,
    );

    look();
    // Those whose value is larger than what was saved were lost, and counted.
    let mut lost = 0;
    for row in world.rows(n) {
        let key: u64 = word(&row, "next_pid:").parse().expect("a number");
        let max: u64 = word(&row, "max:").parse().expect("a number");
        let of_key = hits.iter().flatten().filter(|hit| hit.0 == key);

        assert!(of_key.clone().any(|hit| hit.1 == max), "{row}");
        lost += of_key.filter(|hit| hit.1 > max).count() as u64;
    }
    let account = world.triggers[n].map().account();
    assert_eq!(account.hits, u64::from(CPUS) * ROUNDS);
    assert!(lost <= account.lost_saves, "{lost}, {account:?}");
}

#[test]
fn strings_and_stacks_are_whole() {
    const FRAMES: [&[u64]; 2] = [&[0xaaaa; 20], &[0xbbbb; 9]];

    let mut world = World::default();
    world.synth("both char[] who; long[] stack");
    let writer = world.add(
        &SWITCH,
        WAKING,
        "keys=next_pid:who=prev_comm:stack=common_stacktrace",
    );
    let reader = world.add(
        &SWITCH,
        SWITCHED,
        "keys=next_pid:onmatch(sched.sched_waking).both($who,$stack)",
    );
    let world = &world;
    let names = ["a".repeat(15), "b".repeat(9), "c".repeat(3)];

    at_once(
        |cpu| {
            let mut random = Random(5 + u64::from(cpu));

            for _ in 0..ROUNDS / 2 {
                let name = &names[(random.next() % 3) as usize];
                let record = switch(name, 1, "x", (random.next() % 2) as i32, 1);
                let around = Around {
                    cpu,
                    frames: FRAMES[(random.next() % 2) as usize],
                    ..AROUND
                };

                if random.next() % 2 == 0 {
                    world.hit(writer, &record, &around);
                    continue;
                }
                let mut traced = world.hit(reader, &record, &around).traced;
                // One whose value was being written is lost, and counted.
                traced.retain(|text| text != "Torn");
                for text in traced {
                    let who = word(&text, "who=");
                    assert!(names.iter().any(|name| name == who), "{text}");
                    assert!(
                        !(text.contains("aaaa+") && text.contains("bbbb+")),
                        "{text}"
                    );
                }
            }
        },
        || {},
    );
    for n in [writer, reader] {
        let account = world.triggers[n].map().account();
        assert_eq!(account.calls(), account.hits + account.ignored);
    }
}
