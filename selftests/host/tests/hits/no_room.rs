// SPDX-License-Identifier: GPL-2.0

//! Hits of keys that find no room, on all paths: they are dropped, or counted in the row of others, and where the table may
//! grow a larger one is asked for.

use crate::{
    lang_common::*,
    run::*, //
};
use rust_hist::tracing_map::Account;

const BITS: u32 = 3;
const KEYS: u64 = 12;

/// Hits a table of eight elements with twelve keys, each three times, on each path that its hits can take.
fn each_path(text: &str, others: bool, grows: bool) {
    let mut world = World {
        tables: Tables {
            bits: BITS,
            ..Tables::default()
        },
        ..World::default()
    };
    world.synth("done u64 x");
    world.add(&ZOO, ALL, text);
    let mut paths = 0;

    for path in world.paths(0) {
        let world = world.anew();
        let map = world.triggers[0].map();
        paths += 1;
        for (round, key) in (0..3).flat_map(|round| (0..KEYS).map(move |key| (round, key))) {
            let mut record = [1; 64];
            record[24..32].copy_from_slice(&key.to_ne_bytes());
            let ended = world.hit_on(&path, 0, &record, &AROUND);
            let (is_new, fits) = (round == 0, key < 1 << BITS);

            assert_eq!(ended.is_hit, fits || others, "{text} on {}", path.name);
            // A key that is there may ask once more, if its slots go on at the beginning of the table.
            if is_new || !fits {
                let asks = grows && key >= 6;
                assert_eq!(ended.grows, asks, "{text}, key {key} on {}", path.name);
            }
        }

        let mut sums = vec![0; map.shape().sums()];
        let has_others = map.copy_others(&mut sums);
        let sums = has_others.then(|| (sums[0], sums.get(1).copied().unwrap_or(0)));
        let left: u64 = (1 << BITS..KEYS).sum();
        let (hits, drops) = match others {
            true => (3 * KEYS, 0),
            false => (3 << BITS, 3 * (KEYS - (1 << BITS))),
        };
        let values = if text.contains("vals") { 3 * left } else { 0 };
        assert_eq!(sums, others.then_some((3 * (KEYS - (1 << BITS)), values)));
        assert_eq!(
            map.account(),
            Account {
                hits,
                dropped_full: drops,
                ..Account::default()
            }
        );
        assert_eq!(map.used(), 1 << BITS);
        let _ = world.with_rows(0, |_, rows| {
            assert!(rows.iter().all(|row| row.sums[0] == 3));
        });
    }
    assert!(paths > 1, "{text}");
}

#[test]
fn hits_without_room_on_each_path() {
    for text in [
        "keys=u64",
        "keys=u64:vals=u64",
        "keys=u64,u8:vals=u64",
        "keys=common_pid.execname,u64:vals=u64",
        "keys=u64,filename:vals=u64",
        "keys=u64:vals=u64+0",
        "keys=u64,common_timestamp:vals=u64",
        "keys=u64:onmatch(zoo.all).done(u64)",
        "keys=$v:v=u64+1:vals=u64",
    ] {
        for others in [false, true] {
            for grows in [false, true] {
                let size = if grows { ":size=128..256" } else { "" };
                let word = if others { ":others" } else { "" };
                each_path(&format!("{text}{size}{word}"), others, grows);
            }
        }
    }
}
