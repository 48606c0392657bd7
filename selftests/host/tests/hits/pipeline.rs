// SPDX-License-Identifier: GPL-2.0

//! From the text of a trigger to the text of its table, through all layers, against a table kept by
//! plain means.

use crate::lang_common::{Around, Text, AROUND, SWITCH};
use crate::run::{Frames, Tables, Trigger, World, SWITCHED};
use rust_hist::render::{self, Renderer, Stats};
use rust_hist::tracing_map::sort::{row_of, sort, SortEntry};
use rust_hist::tracing_map::{copy_pairs, Rows};
use std::collections::BTreeMap;

/// A `sched_switch` to a task.
#[derive(Clone, Copy)]
struct Switch {
    next_comm: &'static str,
    next_pid: i32,
    prev_prio: i32,
    prev_state: i64,
}

impl Switch {
    /// Returns the record, laid out as in `SWITCH`.
    fn record(&self) -> Vec<u8> {
        let mut record = vec![0; 64];
        record[28..32].copy_from_slice(&self.prev_prio.to_ne_bytes());
        record[32..40].copy_from_slice(&self.prev_state.to_ne_bytes());
        record[40..40 + self.next_comm.len()].copy_from_slice(self.next_comm.as_bytes());
        record[56..60].copy_from_slice(&self.next_pid.to_ne_bytes());
        record
    }
}

/// The same ones every time.
fn switches() -> Vec<Switch> {
    const TASKS: [(&str, i32); 5] = [
        ("swapper/0", 0),
        ("bash", 1234),
        ("bash", 1235),
        ("kworker/u8:1-ev", 77),
        ("odd", -1),
    ];
    let mut random = 0x9e37_79b9_7f4a_7c15u64;

    (0..2000)
        .map(|_| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let (next_comm, next_pid) = TASKS[(random % 5) as usize];
            Switch {
                next_comm,
                next_pid,
                prev_prio: (random >> 8) as i32 % 140,
                prev_state: (random >> 16) as i64 % 300,
            }
        })
        .collect()
}

/// Puts the records through a trigger and returns its rows and totals.
fn run(text: &str, switches: &[Switch]) -> String {
    let mut world = World {
        tables: Tables {
            cpus: 2,
            ..Tables::default()
        },
        ..World::default()
    };
    let n = world.add(&SWITCH, SWITCHED, text);
    let Trigger { program, text, .. } = &world.triggers[n];
    let map = world.triggers[n].map();

    for (i, switch) in (0..).zip(switches) {
        let around = Around {
            cpu: i % 2,
            ..AROUND
        };
        world.hit(n, &switch.record(), &around);
    }

    let mut words = vec![0; map.used() * map.shape().row_words()];
    let len = map.copy_rows(map.used(), &mut words, copy_pairs);
    let rows = Rows::new(map.shape(), &words, len);
    let stats = Stats::of(program, &rows);
    let table = Renderer {
        program,
        text,
        stats: &stats,
        symbols: &Frames,
    };
    let mut order = vec![SortEntry::default(); len];
    let mut out = Text::default();
    sort(&rows, program.sort_keys(), &mut order);
    for place in &order {
        let row = rows.get(row_of(place)).expect("an index of a row");
        table.row(&row, &mut out).expect("room");
    }
    render::totals(&map.account(), len, &mut out).expect("room");
    String::from_utf8(out.0).expect("UTF-8")
}

fn totals(hits: usize, entries: usize, dropped: usize) -> String {
    format!("\nTotals:\n    Hits: {hits}\n    Entries: {entries}\n    Dropped: {dropped}\n")
}

#[test]
fn names_and_pids_with_sums() {
    let switches = switches();
    let mut model: BTreeMap<(&str, i32), (u64, u64)> = BTreeMap::new();
    for switch in &switches {
        let row = model
            .entry((switch.next_comm, switch.next_pid))
            .or_default();
        row.0 += 1;
        row.1 = row.1.wrapping_add(i64::from(switch.prev_prio) as u64);
    }

    // By name, and the larger pid first.
    let mut rows: Vec<_> = model.into_iter().collect();
    rows.sort_by_key(|((comm, pid), _)| (*comm, -pid));
    let expected: String = rows
        .iter()
        .map(|((comm, pid), (hits, sum))| {
            let pid = i64::from(*pid) as u64;
            format!("{{ next_comm: {comm:<50}, next_pid: {pid:>10} }} hitcount: {hits:>10}  prev_prio: {sum:>10}\n")
        })
        .collect();

    assert_eq!(
        run(
            "keys=next_comm,next_pid:vals=prev_prio:sort=next_comm,next_pid.descending",
            &switches
        ),
        expected + &totals(2000, 5, 0)
    );
}

#[test]
fn buckets_of_a_signed_number() {
    let switches = switches();
    let mut model: BTreeMap<u64, u64> = BTreeMap::new();
    for switch in &switches {
        *model
            .entry(switch.prev_state as u64 / 100 * 100)
            .or_default() += 1;
    }
    let expected: String = model
        .iter()
        .map(|(low, hits)| {
            format!(
                "{{ prev_state: ~ {low}-{} }} hitcount: {hits:>10}\n",
                low + 99
            )
        })
        .collect();

    assert_eq!(
        run("keys=prev_state.buckets=100:sort=prev_state", &switches),
        expected + &totals(2000, model.len(), 0)
    );
}

#[test]
fn a_table_that_is_too_small() {
    let switches = switches();
    let mut model: BTreeMap<i64, u64> = BTreeMap::new();
    let mut dropped = 0;
    for switch in &switches {
        if model.len() < 128 || model.contains_key(&switch.prev_state) {
            *model.entry(switch.prev_state).or_default() += 1;
        } else {
            dropped += 1;
        }
    }
    assert!(dropped > 100);
    let mut rows: Vec<_> = model.into_iter().collect();
    // Ties come in the order of the key's bytes in memory.
    rows.sort_by_key(|(state, hits)| (std::cmp::Reverse(*hits), state.to_ne_bytes()));
    let expected: String = rows
        .iter()
        .map(|(state, hits)| format!("{{ prev_state: {state:>10} }} hitcount: {hits:>10}\n"))
        .collect();

    assert_eq!(
        run(
            "keys=prev_state:sort=hitcount.descending:size=128",
            &switches
        ),
        expected + &totals(2000 - dropped, 128, dropped)
    );
}
