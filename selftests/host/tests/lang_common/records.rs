// SPDX-License-Identifier: GPL-2.0

//! Records of `lang_common::ZOO`, as no kernel would write them. Not in `lang_common`, which fuzzers have without proptest.

use proptest::prelude::*;

/// A record of any length and bytes, whose location words mostly point into it or near its end.
pub(crate) fn records() -> impl Strategy<Value = Vec<u8>> {
    let bytes = prop::collection::vec(prop_oneof![Just(0u8), Just(255), any::<u8>()], 0..800);
    let locations = prop::collection::vec((0..900u32, 0..300u32), 4);
    // A stack begins with a count.
    (bytes, locations, 0..40u64).prop_map(|(mut record, locations, count)| {
        let mut put = |at: usize, bytes: &[u8]| {
            if let Some(to) = record.get_mut(at..at + bytes.len()) {
                to.copy_from_slice(bytes);
            }
        };
        for (at, (place, len)) in [40, 44, 48, 64].into_iter().zip(&locations) {
            put(at, &(place | len << 16).to_ne_bytes());
        }
        put(locations[3].0 as usize, &count.to_ne_bytes());
        record
    })
}
