// SPDX-License-Identifier: GPL-2.0

//! The ways of triggers with strings of the record in their key or in their variables.
//!
//! Context: that of the hit.

use super::{
    super::HistTrigger,
    hit_with_long_key,
    is_handled,
    vars,
    wake_if,
    NumberVals,
    PlainVals, //
};
use crate::{
    ffi::{
        command::TriedWay,
        event::Hit, //
    },
    tracing_map::Sharing, //
};

/// The way of triggers with `N` words of keys that have variables, too, some of them strings of the record.
pub(super) struct Texts<const N: usize>;

impl<const N: usize> TriedWay<HistTrigger> for Texts<N> {
    #[inline(always)]
    fn hit(trigger: &HistTrigger, hit: Hit<'_>) -> bool {
        let program = &trigger.definition.program;
        let preempt = *hit.preempt_off();
        let cpu = || preempt.cpu();
        let map = &trigger.table.in_hit(&preempt).map;
        let key = program.numbers_key::<N, true>(hit.data(), cpu);
        let vals = NumberVals {
            trigger,
            record: hit.data(),
            preempt,
        };

        let seen = map.hit_at_once_and(&key, Sharing(cpu), &vals, |aux| {
            program.set_vars_in_record(aux, hit.data(), cpu);
        });
        is_handled(seen)
    }

    #[inline(always)]
    fn rest(trigger: &HistTrigger, hit: &Hit<'_>) {
        vars::hit_with_few_words(trigger, hit);
    }
}

/// The way of triggers that have nothing but a key with strings of the record and values.
pub(super) struct TextKey;

impl TriedWay<HistTrigger> for TextKey {
    #[inline(always)]
    fn hit(trigger: &HistTrigger, hit: Hit<'_>) -> bool {
        let program = &trigger.definition.program;
        let preempt = *hit.preempt_off();
        let cpu = || preempt.cpu();
        let map = &trigger.table.in_hit(&preempt).map;
        let vals = PlainVals { program, hit };
        // Inlined by order: the same way at the end of a chain has this closure, too.
        let is_done = program.with_text_key(
            hit.data(),
            cpu,
            map.factors(),
            #[inline(always)]
            |key| map.hit_pieces_at_once(key, Sharing(cpu), &vals),
        );

        wake_if(is_done)
    }

    #[inline(always)]
    fn rest(trigger: &HistTrigger, hit: &Hit<'_>) {
        hit_with_long_key(trigger, hit);
    }
}
