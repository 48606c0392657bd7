// SPDX-License-Identifier: GPL-2.0

//! What bugs of the C code did, asked of ours: CVE-2024-43890 (the counter of elements wraps after 2^32
//! hits that a full table drops, and elements are handed out again), X-08, M-08.
//!
//! Two elements for one key (CVE-2024-26645) are looked for in `loom_map`, `loom_hits`, `nested_map` and
//! by the litmus tests `publish` and `second-inserter`.

use crate::{
    lang_common::*,
    run::*, //
};
use rust_hist::sync::Relaxed;

/// However many calls a full table drops, all that changes is the one word that counts them. So there
/// is nothing else that could wrap, whatever their number.
fn drops_change_nothing(bits: u32, hash: Hash) {
    const DROPS: u64 = 5_000;

    let mut world = World {
        tables: Tables {
            bits,
            cpus: 1,
            hash,
            ..Tables::default()
        },
        ..World::default()
    };
    world.add(&ZOO, ALL, "keys=u64:vals=u8");
    let on_cpu_0 = Around { cpu: 0, ..AROUND };
    let elts = 1u64 << bits;

    for path in world.paths(0) {
        let world = world.anew();
        let map = world.triggers[0].map();
        let look = || -> Vec<u64> { map.words().iter().map(|word| word.load(Relaxed)).collect() };
        let call = |key: u64| {
            let mut record = [1; 32];

            record[24..].copy_from_slice(&key.to_ne_bytes());
            world.hit_on(&path, 0, &record, &on_cpu_0).is_hit
        };

        for key in 0..elts {
            assert!(call(key));
        }
        // The first drop may note that the table is full.
        assert!(!call(elts));
        let before = look();

        for n in 0..DROPS {
            assert!(!call(elts + n));
        }
        let changed: Vec<(u64, u64)> = before
            .into_iter()
            .zip(look())
            .filter(|(before, now)| before != now)
            .collect();

        assert_eq!(changed, [(1, 1 + DROPS)], "{}", path.name());
        assert_eq!(map.used() as u64, elts);
        let account = map.account();
        assert_eq!((account.hits, account.dropped_full), (elts, 1 + DROPS));
        for key in 0..elts {
            let elt = map.lookup(&[key]).expect("what was there stays");
            assert_eq!((map.sum(elt, 0), map.sum(elt, 1)), (1, 1));
        }
    }
}

#[test]
fn dropped_calls_take_no_elements() {
    for bits in [0, 1, 7, 11] {
        drops_change_nothing(bits, Hash::Seeded);
    }
    drops_change_nothing(7, Hash::Quarters);
}
