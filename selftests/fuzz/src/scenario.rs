// SPDX-License-Identifier: GPL-2.0

//! A few triggers that may refer to each other, whatever their texts, and hits of all of them: every
//! call is accounted for and every row is shown.

use crate::{
    lang_common::{
        Around,
        AROUND,
        SWITCH,
        ZOO, //
    },
    run::{
        World,
        SWITCHED,
        WAKING, //
    },
};

const TRIGGERS_MAX: usize = 6;
const RECORDS: u64 = 24;

pub(crate) fn run(input: &[u8]) {
    let mut world = World::default();
    world.synth("num u8 a");
    world.synth("two u64 a; s32 b");
    world.synth("txt char[] a; char[16] b");
    world.synth("sts long[] a");

    // A line is a trigger, after a letter for its event.
    for line in input.split(|&b| b == b'\n').take(TRIGGERS_MAX) {
        let [event, text @ ..] = line else {
            continue;
        };
        let (fields, event) = match event % 3 {
            0 => (&ZOO, ("zoo", "all")),
            1 => (&SWITCH, SWITCHED),
            _ => (&SWITCH, WAKING),
        };
        let _ = world.try_add(fields, event, &text[..text.len().min(1000)]);
    }

    let mut random = input.iter().fold(0x9e37_79b9_7f4a_7c15u64, |h, &b| {
        (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
    });
    let mut hits = vec![0; world.triggers.len()];
    for call in 0..RECORDS {
        let record: Vec<u8> = (0..720)
            .map(|_| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                // Few values, so that keys meet.
                (random >> 20) as u8 & 0x83
            })
            .collect();
        let around = Around {
            ts: call * 1_000_000 + random % 1000,
            ..AROUND
        };

        for (n, hits) in hits.iter_mut().enumerate() {
            *hits += u64::from(world.hit(n, &record, &around).is_hit);
        }
    }
    for (n, hits) in hits.into_iter().enumerate() {
        let account = world.triggers[n].map().account();

        assert_eq!((account.calls(), account.hits), (RECORDS, hits));
        assert!(world.rows(n).len() as u64 <= account.hits);
    }
}
