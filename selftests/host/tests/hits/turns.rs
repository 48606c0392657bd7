// SPDX-License-Identifier: GPL-2.0

//! Several tables that want other maps, and readers meanwhile: X-60, X-66.

use crate::{
    lang_common::*,
    model::alone,
    run::*, //
};
use rust_hist_tables::Event as Triggers;
use std::{
    cell::Cell,
    rc::Rc,
    sync::Arc, //
};

/// Four entries, and a generation ends when they are crowded.
const EXPIRING: &str = "keys=u64:vals=u8:a=u8:expire(1h)";
const GROWING: &str = "keys=u64:vals=u8:size=128..256";

/// Tables of four entries that may grow to 64, each with an event of its own.
fn tables(texts: &[&str]) -> (World, Vec<Arc<Triggers>>) {
    Machine::start();
    let mut world = World {
        tables: Tables {
            bits: 2,
            grows_to: 6,
            ..Tables::default()
        },
        ..World::default()
    };
    let mut events = Vec::new();

    for text in texts {
        let n = world.add(&ZOO, WAKING, text);
        let event = Arc::new(Triggers::new());
        event.add(&world.triggers[n].table).expect("memory");
        events.push(event);
    }
    (world, events)
}

/// A hit of a key.
fn hit(world: &World, n: usize, key: u64) {
    let mut record = [0; 64];

    record[24..32].copy_from_slice(&key.to_ne_bytes());
    world.hit(n, &record, &AROUND);
}

/// Hits of four keys from `first` on, which crowd a table of four entries.
fn crowd(world: &World, n: usize, first: u64) {
    for key in first..first + 4 {
        hit(world, n, key);
    }
}

#[test]
fn a_table_that_always_wants_another_map_keeps_no_other_waiting() {
    let _alone = alone();
    let (world, events) = tables(&[EXPIRING, GROWING, GROWING]);
    let world = Rc::new(world);
    // How often the first table had its turn when each of the others had grown.
    let turns = Rc::new([Cell::new(None), Cell::new(None)]);

    for n in 0..3 {
        crowd(&world, n, 0);
    }
    let hook = {
        let (world, turns) = (world.clone(), turns.clone());
        let next = Cell::new(4);
        move |_: At| {
            let (_, forced) = world.triggers[0].table.replacements();
            for (n, turns) in (1..).zip(turns.iter()) {
                let (grown, _) = world.triggers[n].table.replacements();
                if grown > 0 && turns.get().is_none() {
                    turns.set(Some(forced));
                }
            }
            if forced < 30 {
                crowd(&world, 0, next.replace(next.get() + 4));
            }
        }
    };
    assert!(Machine::this().takes_work());
    with_hook(hook, Machine::work);

    let (_, forced) = world.triggers[0].table.replacements();
    let [one, other] = [0, 1].map(|n| turns[n].get().expect("it has grown"));
    assert!(forced >= 30, "{forced} generations");
    assert!(one <= 2 && other <= 3, "{one}, {other}");
    for event in events {
        event.remove_all();
    }
}

#[test]
fn a_reader_waits_for_its_own_table_alone() {
    let _alone = alone();
    let (world, events) = tables(&[GROWING, GROWING]);
    let read = |n: usize| {
        let event = events[n].clone();
        Task::start(move || event.read_json().expect("memory"))
    };

    // A hit is under way that has seen the smaller map.
    crowd(&world, 0, 0);
    world.triggers[0].begin_late();
    let mut thread = Task::start(Machine::work);
    while thread.step() != Ok(At::Grace) {}

    crowd(&world, 1, 0);
    assert!(read(1).finish().contains(r#""hits":4"#));
    let mut waits = read(0);
    for _ in 0..100 {
        assert!(waits.step().is_ok(), "a table is read that is growing");
    }
    world.triggers[0].end_late();
    thread.finish();
    assert!(waits.finish().contains(r#""hits":4"#));
    for event in events {
        event.remove_all();
    }
}

/// Far more keys come at once than there is room for: the next map has room for most of them.
#[test]
fn a_step_is_as_large_as_what_was_refused() {
    let _alone = alone();
    let (world, events) = tables(&[GROWING]);
    let size = || world.triggers[0].map().shape().elts;

    // A key that comes again and again is one key.
    for _ in 0..50 {
        crowd(&world, 0, 0);
        hit(&world, 0, 100);
    }
    Machine::work();
    assert_eq!(size(), 16);
    for first in 0..10 {
        crowd(&world, 0, 1000 + 4 * first);
    }
    Machine::work();
    assert_eq!(size(), 64);
    events[0].remove_all();

    let (world, events) = tables(&[GROWING]);
    for first in 0..10 {
        crowd(&world, 0, 4 * first);
    }
    Machine::work();
    assert_eq!(world.triggers[0].map().shape().elts, 64);
    events[0].remove_all();
}
