// SPDX-License-Identifier: GPL-2.0

//! A hit between whose path and its rest another map takes the place of the one that the path has looked in, as the table
//! grows or is cleared: X-60.

use crate::{
    lang_common::*,
    run::*, //
};
use std::cell::Cell;

const BITS: u32 = 5;
/// As many keys as fit in the first map.
const KEYS: u64 = 1 << BITS;

/// Hits all keys once, and once more those up to `at`, in whose first hit the map is exchanged: if the table grows for one
/// with the same keys, if not for an empty one. Returns whether the path had a rest to run.
fn exchange_in(world: &World, path: &Path, at: u64, grows: bool) -> bool {
    let (mut world, came) = (world.anew(), Cell::new(false));
    let hit = |world: &World, key: u64, interrupt: &dyn Fn()| {
        let mut record = [1; 64];
        record[24..32].copy_from_slice(&key.to_ne_bytes());
        assert!(
            world
                .interrupted(path, 0, &record, &AROUND, interrupt)
                .is_hit
        );
    };

    for key in 0..at {
        hit(&world, key, &|| ());
    }
    match grows {
        true => world.enlarge(0),
        false => world = world.with_generations(0, 1),
    }

    let trigger = &world.triggers[0];
    hit(&world, at, &|| {
        trigger.exchange();
        came.set(true);
    });
    if !came.get() {
        return false;
    }
    if grows {
        for slots in trigger.map.slot_ranges() {
            trigger.take_rows(slots);
        }
        trigger.live().release(&trigger.map);
    }
    for key in 0..KEYS {
        hit(&world, key, &|| ());
    }

    // One row of each key, and the hit is in the map that it began with.
    let mut hits: Vec<_> = (0..KEYS)
        .map(|key| 1 + u64::from(grows && key <= at))
        .collect();
    let mut found: Vec<_> = world.sums(0).iter().map(|(_, sums)| sums[0]).collect();
    hits.sort();
    found.sort();
    assert_eq!(found, hits, "key {at} on {}", path.name);
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
        for hash in [Hash::Seeded, Hash::Same, Hash::Quarters] {
            let mut world = World {
                tables: Tables {
                    bits: BITS,
                    hash,
                    ..Tables::default()
                },
                ..World::default()
            };
            world.add(&ZOO, ALL, text);
            for path in world.paths(0) {
                let mut all = (0..KEYS).flat_map(|at| [(at, false), (at, true)]);
                paths += u32::from(all.all(|(at, grows)| exchange_in(&world, &path, at, grows)));
            }
        }
    }
    assert!(paths >= 12, "{paths} paths");
}
