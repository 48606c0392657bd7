// SPDX-License-Identifier: GPL-2.0

//! Where a hit counts: on which CPU it is, and whether it is known that this one has a shard of its own.
//!
//! Context: any, NMI included.

use super::{
    account::{
        Shard,
        Values, //
    },
    Elt,
    Ending,
    Shape, //
};
use crate::sync::{
    local_add,
    local_inc,
    Atomic, //
};

/// The CPU of a call, which stays on it, and how it counts in the words of a map of a shape.
///
/// What says the number of the CPU is the place of a call in a map whose CPUs have [a shard each](Shape::per_cpu),
/// [`Sharing`] that of one in any map. Nothing is counted for a CPU that the shape was not built for.
pub trait Place {
    /// Counts a call that ended in this way, and that is no hit.
    fn count(&self, words: &[Atomic<u64>], shape: &Shape, ending: Ending);

    /// Counts a call that hit an element, and adds the values to its further sums.
    fn hit(&self, words: &[Atomic<u64>], shape: &Shape, elt: Elt, values: &impl Values);
}

/// This CPU alone writes to the shard: there is no branch.
impl<F: Fn() -> u32> Place for F {
    #[inline(always)]
    fn count(&self, words: &[Atomic<u64>], shape: &Shape, ending: Ending) {
        if let Some(at) = ending.word() {
            // OVERFLOW: as in `hit`.
            local_inc(words, own_shard(shape, self()).wrapping_add(at));
        }
    }

    #[inline(always)]
    fn hit(&self, words: &[Atomic<u64>], shape: &Shape, elt: Elt, values: &impl Values) {
        // OVERFLOW: below the number of words.
        let sums = own_shard(shape, self()).wrapping_add(shape.sums_at(elt.index()));
        let n = shape.sums;

        local_inc(words, sums);
        if n > 1 {
            local_add(words, sums.wrapping_add(1), values.value(0));
            if n > 2 {
                local_add(words, sums.wrapping_add(2), values.value(1));
            }
        }
    }
}

/// Where the shard of a CPU begins that has one of its own.
#[inline(always)]
fn own_shard(shape: &Shape, cpu: u32) -> usize {
    debug_assert!(shape.per_cpu());
    // OVERFLOW: below the number of words for a CPU of the shape; nothing is found for another one.
    // CAST: `u32` fits in `usize` on every architecture that Linux supports.
    (cpu as usize)
        .wrapping_mul(shape.shard_words)
        .wrapping_add(shape.shards_at)
}

/// A CPU whose number this says, and whose neighbours may write to the same shard.
#[derive(Clone, Copy)]
pub struct Sharing<F>(pub F);

impl<F: Fn() -> u32> Place for Sharing<F> {
    #[inline(always)]
    fn count(&self, words: &[Atomic<u64>], shape: &Shape, ending: Ending) {
        let Self(cpu) = self;
        Shard::new(words, shape, cpu()).count(ending);
    }

    #[inline(always)]
    fn hit(&self, words: &[Atomic<u64>], shape: &Shape, elt: Elt, values: &impl Values) {
        let Self(cpu) = self;
        Shard::new(words, shape, cpu()).hit_at_once(elt, values);
    }
}
