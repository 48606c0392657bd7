// SPDX-License-Identifier: GPL-2.0

//! A hit between whose path and its rest another map takes the place of the one that the path has looked in, as the table
//! grows or is cleared: X-60.

use crate::{
    lang_common::*,
    run::*, //
};
use std::cell::RefCell;

const BITS: u32 = 6;
/// So many keys from the first one on crowd the first map, and as many as these fit besides.
const CROWD: u64 = 48;
const FIRST: u64 = 1000;
const KEYS: u64 = 16;

/// Hits keys up to `at`, in whose first hit the map is exchanged: if the table grows for one with the same keys, if not for
/// an empty one; and then hits all keys once more. Returns whether the path had a rest to run.
fn exchange_in(world: &World, path: &Path, at: u64, grows: bool) -> bool {
    let world = world.anew();
    let exchange = RefCell::new(None);
    let hit = |key: u64, interrupt: &dyn Fn()| {
        let mut record = [1; 64];
        record[24..32].copy_from_slice(&key.to_ne_bytes());
        assert!(
            world
                .interrupted(path, 0, &record, &AROUND, interrupt)
                .is_hit
        );
    };

    for key in (FIRST..FIRST + CROWD).chain(0..at) {
        hit(key, &|| ());
    }
    hit(at, &|| {
        let table = world.triggers[0].table.clone();
        let mut begun = Replacement::begin(move || match grows {
            true => table.replace(),
            false => table.clear(),
        });
        assert!(begun.go_to(At::Grace));
        exchange.replace(Some(begun));
    });
    let Some(mut begun) = exchange.take() else {
        return false;
    };
    begun.finish();
    for key in 0..KEYS {
        hit(key, &|| ());
    }

    // One row of each key, and the hit is in the map that it began with.
    let mut hits: Vec<_> = (0..KEYS)
        .map(|key| 1 + u64::from(grows && key <= at))
        .collect();
    let rows = world.sums(0).into_iter();
    let rows = rows.filter(|(key, _)| key[0] < FIRST);
    let mut found: Vec<_> = rows.map(|(_, sums)| sums[0]).collect();
    hits.sort();
    found.sort();
    assert_eq!(found, hits, "key {at} on {}", path.name());
    true
}

#[test]
fn a_hit_whose_key_another_map_has_elsewhere() {
    let mut paths = 0;

    for text in [
        "keys=u64",
        "keys=u64,u8:vals=u64",
        "keys=u64:v=u8",
        "keys=u64,filename",
    ] {
        for (size, grows) in [
            ("", false),
            (":size=128..256", false),
            (":size=128..256", true),
        ] {
            for hash in [Hash::Seeded, Hash::Same, Hash::Quarters] {
                let mut world = World {
                    tables: Tables {
                        bits: BITS,
                        hash,
                        ..Tables::default()
                    },
                    ..World::default()
                };
                world.add(&ZOO, ALL, &format!("{text}{size}"));
                for path in world.paths(0) {
                    let mut keys = 0..KEYS;
                    paths += u32::from(keys.all(|at| exchange_in(&world, &path, at, grows)));
                }
            }
        }
    }
    assert!(paths >= 36, "{paths} paths");
}
