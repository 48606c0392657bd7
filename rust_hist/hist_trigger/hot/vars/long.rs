// SPDX-License-Identifier: GPL-2.0

//! The way of triggers that have variables beside a long key, which is looked for where it lies, as that of a trigger
//! with nothing else: to copy it, and to clear the room for all that there may be, would take as long as all else.
//!
//! Context: any, NMI included, with preemption off. Never allocates, sleeps, locks or panics.

use super::{
    super::{
        super::{
            storage::{
                Live,
                Table, //
            },
            HistTrigger, //
        },
        shards::{
            Any,
            Shards, //
        },
        Surroundings, //
    },
    hit_with_much,
    set_and_act,
    Vals,
    FEW, //
};
use crate::{
    ffi::{
        command::TriedWay,
        event::Hit,
        guard::PreemptOff, //
    },
    program::{
        Program,
        Refs,
        Tables, //
    },
    sync::Atomic,
    tracing_map::{
        Elt,
        Ending,
        Glance,
        Hashed,
        Pieces,
        SHORT_KEY_WORDS, //
    }, //
};
use kernel::sync::Arc;

/// Whether [`LongVars`] is a way for a trigger that reads variables of `sources`: it has at most [`FEW`] of them and of
/// its own. Those of others are numbers, no action wants the key, and the tables of `sources` have keys of as many
/// words; `add_to` goes by all of that, and by the trigger generating nothing, which the caller sees to.
pub(in crate::hist_trigger::hot) fn is_long(program: &Program, sources: &[Arc<Table>]) -> bool {
    let has_key = |source: &Arc<Table>| source.key_words() == program.key_words();

    program.key_words() > SHORT_KEY_WORDS
        && program.has_few_numbers(FEW)
        && sources.iter().all(has_key)
}

/// The way of triggers that have variables or actions beside a long key.
pub(in crate::hist_trigger::hot) struct LongVars;

impl TriedWay<HistTrigger> for LongVars {
    #[inline(always)]
    fn hit(trigger: &HistTrigger, hit: Hit<'_>) -> bool {
        hit_long(trigger, hit)
    }

    #[inline(always)]
    fn rest(trigger: &HistTrigger, hit: &Hit<'_>) {
        hit_with_much(trigger, hit);
    }
}

/// What is known of a hit when its key and the variables of other triggers have been looked for.
enum Seen {
    /// It adds to this element.
    Held(Elt),
    /// It changes nothing, and is counted so.
    Over(Ending),
    /// Its key may have to be inserted. Nothing has been done.
    New,
}

/// Handles one record in the way [`LongVars`], unless its key may have to be inserted.
#[inline(always)]
fn hit_long(trigger: &HistTrigger, hit: Hit<'_>) -> bool {
    let preempt = *hit.preempt_off();
    let live = trigger.table.in_hit(&preempt);
    let mut numbers = [0; FEW];
    let seen = match trigger.definition.program.has_text_key() {
        true => look_for_text(trigger, live, &hit, &mut numbers),
        false => look_far(trigger, live, &hit, &mut numbers),
    };
    let elt = match seen {
        Seen::Held(elt) => elt,
        Seen::Over(ending) => {
            live.map.count_at_once(ending, Any::place(|| preempt.cpu()));
            return true;
        }
        Seen::New => return false,
    };
    add_to(trigger, live, elt, &hit, &numbers);
    true
}

/// Counts a hit in its element, with the variables of other triggers that it has read.
///
/// It has a frame of its own, as [`look_far`] has: the rest of a hit lies on that of the way.
#[inline(never)]
fn add_to(trigger: &HistTrigger, live: &Live, elt: Elt, hit: &Hit<'_>, numbers: &[u64]) {
    let (program, hit) = (&trigger.definition.program, *hit);
    let preempt = *hit.preempt_off();
    let numbers = numbers.get(..program.refs().len()).unwrap_or(&[]);
    // Nobody asks for the key any more, nor for what another table has.
    let refs = Refs::of(numbers, &[], ());
    let vals = Vals { program, hit, refs };
    let place = Any::place(|| preempt.cpu());

    live.map.hit_element(elt, place, &vals);
    set_and_act(trigger, live, elt, hit, refs, &mut [0; FEW]);
}

/// As [`look`], for the key of a record.
///
/// It has a frame of its own, since the pieces of a key are large and the rest of a hit goes deep.
#[inline(never)]
fn look_far(trigger: &HistTrigger, live: &Live, hit: &Hit<'_>, numbers: &mut [u64]) -> Seen {
    let program = &trigger.definition.program;
    let preempt = *hit.preempt_off();

    program.key_in_pieces(hit.data(), &Surroundings(*hit), |key| {
        look(trigger, live, preempt, key, numbers)
    })
}

/// As [`look_far`], for a key of strings and numbers of the record.
#[inline(never)]
fn look_for_text(trigger: &HistTrigger, live: &Live, hit: &Hit<'_>, numbers: &mut [u64]) -> Seen {
    let program = &trigger.definition.program;
    let preempt = *hit.preempt_off();

    program.with_text_key(
        hit.data(),
        || preempt.cpu(),
        live.map.factors(),
        |key| look(trigger, live, preempt, key, numbers),
    )
}

/// Looks for the element of a key, and reads the variables of other triggers to `numbers`.
#[inline(always)]
fn look<K: Pieces>(
    trigger: &HistTrigger,
    live: &Live,
    preempt: PreemptOff<'_>,
    key: &K,
    numbers: &mut [u64],
) -> Seen {
    let program = &trigger.definition.program;
    let key = live.map.hashed(key);
    let glance = live.map.glance_hashed(&key);

    if glance == Glance::Unclear {
        return Seen::New;
    }
    if !program.refs().is_empty() {
        let sources = LongSources {
            trigger,
            preempt,
            key: &key,
        };

        if program.numbers_of_refs(&[], &sources, numbers).is_err() {
            return Seen::Over(Ending::Ignored);
        }
    }
    match glance {
        Glance::Found(elt) => Seen::Held(elt),
        Glance::Full | Glance::Unclear => Seen::Over(Ending::DroppedFull),
    }
}

/// The tables that a trigger reads variables of, during one hit, whose keys have as many words as its own.
struct LongSources<'a, K> {
    trigger: &'a HistTrigger,
    preempt: PreemptOff<'a>,
    key: &'a Hashed<'a, K>,
}

impl<K> Clone for LongSources<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for LongSources<'_, K> {}

impl<K: Pieces> Tables for LongSources<'_, K> {
    /// The key is known, hash and all.
    #[inline(always)]
    fn aux(&self, table: u16, _key: &[u64]) -> Option<&[Atomic<u64>]> {
        let table = self.trigger.sources.get(usize::from(table))?;
        let map = &table.in_hit(&self.preempt).map;

        Some(map.aux(map.look_hashed(self.key)?))
    }
}
