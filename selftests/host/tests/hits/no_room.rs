// SPDX-License-Identifier: GPL-2.0

//! Hits of keys that find no room, on all paths: they are dropped, or counted in the row of others, and where the table may
//! grow a larger one is asked for. And strings for whose end keys have no room: X-75.

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

            assert_eq!(ended.is_hit, fits || others, "{text} on {}", path.name());
            // A key that is there may ask once more, if its slots go on at the beginning of the table.
            if is_new || !fits {
                let asks = grows && key >= 6;
                assert_eq!(ended.grows, asks, "{text}, key {key} on {}", path.name());
            }
        }

        let mut sums = vec![0; map.shape().sums];
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

#[test]
fn x_75_strings_without_room_on_each_path() {
    for (text, strings) in [
        ("keys=filename", 1),
        ("keys=label", 1),
        ("keys=filename,u8,label:vals=u64", 2),
        ("keys=seven,sixteen,filename,u64,u8", 1),
        ("keys=filename:v=u64", 1),
        ("keys=filename,common_stacktrace", 1),
        ("keys=filename:onmatch(zoo.all).done(u64)", 1),
        ("keys=filename:x=u64-$n", 1),
        ("keys=filename:x=u64-$n,y=u64-$m", 1),
        ("keys=filename:vals=common_uid,u64", 1),
        ("keys=filename:join(u8):x=u64-$less", 1),
        // What variables are looked for by is in no row.
        ("keys=u64:join(filename):x=u64-$n", 0),
        ("keys=sixteen,common_comm,u64,common_cpu,u8", 0),
    ] {
        let mut world = World::default();
        world.synth("done u64 x");
        for starts in ["keys=filename:n=u64,m=u8", "keys=u8:less=u64"] {
            world.add(&ZOO, ("zoo", "start"), starts);
        }
        let n = world.add(&ZOO, ALL, text);

        for path in world.paths(n) {
            let world = world.anew();
            for (len, is_cut) in [
                (0, false),
                (254, false),
                (255, false),
                (256, true),
                (600, true),
            ] {
                for _ in 0..2 {
                    let record = with_strings(len);
                    let before = world.triggers[n].map().account().cut_strings;

                    for m in 0..=n {
                        let ended = match m == n {
                            true => world.hit_on(&path, m, &record, &AROUND),
                            false => world.hit(m, &record, &AROUND),
                        };
                        assert!(ended.is_hit, "{text} on {}", path.name());
                    }
                    let cut = world.triggers[n].map().account().cut_strings - before;
                    let wanted = if is_cut { strings } else { 0 };
                    assert_eq!(cut, wanted, "{text}, {len} bytes on {}", path.name());
                }
            }
        }
    }
}

/// A record of [`ZOO`] whose strings have so many bytes and a NUL, and whose full arrays have none.
fn with_strings(len: u32) -> Vec<u8> {
    let mut record = vec![b'x'; 2100];

    record[40..44].copy_from_slice(&(800 | (len + 1) << 16).to_ne_bytes());
    record[48..52].copy_from_slice(&((1450 - 52) | (len + 1) << 16).to_ne_bytes());
    for at in [800, 1450] {
        record[at + len as usize] = 0;
    }
    record
}
