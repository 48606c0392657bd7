// SPDX-License-Identifier: GPL-2.0

//! Any sequence of operations on a map, among them hits that interrupt an insertion, against a
//! `HashMap` with a limit.

use rust_hist::tracing_map::SeededHash;

use crate::{
    bytes::Bytes,
    common::{
        map_model::{
            check,
            Op, //
        },
        Quarters,
        Same, //
    },
};

const OPS_MAX: usize = 400;

pub(crate) fn run(input: &[u8]) {
    let mut input = Bytes(input);
    let bits = u32::from(input.below(6));
    // The last one makes CPUs share a shard.
    let cpus = [1, 3, 64, 8192][usize::from(input.below(4))];
    let hash = input.below(3);
    let mut ops = Vec::new();

    while !input.is_empty() && ops.len() < OPS_MAX {
        let kind = input.byte();
        let key = u64::from(input.below(48));

        ops.push(match kind % 8 {
            0..=3 => Op::Hit {
                cpu: u32::from(kind >> 3) % cpus.min(3),
                key,
                value: match kind >> 6 {
                    0 => 1,
                    1 => u64::MAX,
                    _ => input.word(),
                },
            },
            4 | 5 => Op::Nested {
                key,
                inner: u64::from(input.below(48)),
            },
            6 => Op::Lookup { key },
            _ if kind >> 5 == 0 => Op::Empty,
            _ => Op::CopyRows,
        });
    }
    match hash {
        0 => check::<SeededHash>(bits, cpus, &ops),
        1 => check::<Same>(bits, cpus, &ops),
        _ => check::<Quarters>(bits, cpus, &ops),
    }
}
