// SPDX-License-Identifier: GPL-2.0

//! The tracing map against a `HashMap` with a limit, over random lists of operations.

#![cfg(not(loom))]

mod common;

use common::{
    map_model::{check, Op},
    Quarters, Same,
};
use proptest::prelude::*;
use rust_hist::tracing_map::SeededHash;

fn op() -> impl Strategy<Value = Op> {
    // Few keys, so that they meet; more than fit, so that tables get full.
    let key = 0..24u64;
    prop_oneof![
        6 => (0..3u32, key.clone(), any::<u64>())
            .prop_map(|(cpu, key, value)| Op::Hit { cpu, key, value }),
        2 => (key.clone(), key.clone()).prop_map(|(key, inner)| Op::Nested { key, inner }),
        2 => key.prop_map(|key| Op::Lookup { key }),
        1 => Just(Op::CopyRows),
        1 => Just(Op::Empty),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn map_is_a_hash_map_with_a_limit(
        bits in 0..5u32,
        // The last one makes three CPUs share a shard.
        cpus in prop_oneof![Just(3u32), Just(8192)],
        ops in prop::collection::vec(op(), 0..120),
    ) {
        check::<SeededHash>(bits, cpus, &ops);
        check::<Same>(bits, cpus, &ops);
        check::<Quarters>(bits, cpus, &ops);
    }
}
