// SPDX-License-Identifier: GPL-2.0

//! The hits of triggers that have more than keys and values: variables, references, actions; and of
//! those that can be part of a chain of synthetic events.
//!
//! C counterpart: `event_hist_trigger()`, `resolve_var_refs()` and `hist_trigger_actions()`.
//! Context: any, NMI included, with preemption off. Never allocates, sleeps, locks or panics.

mod long;

pub(super) use self::long::{
    is_long,
    LongVars, //
};

use super::{
    super::{
        nest::Pad,
        storage::{
            HistMap,
            Live, //
        },
        HistTrigger, //
    },
    add,
    comm_of,
    count,
    insert,
    is_handled,
    plain_hit,
    shards::{
        Any,
        Own,
        Shards, //
    },
    NumberVals,
    Surroundings, //
};
use crate::{
    ffi::{
        command::{
            LookWay,
            OwnWay,
            TriedWay, //
        },
        event::Hit,
        guard::PreemptOff,
        poll,
        record::Moment, //
    },
    limits::{
        KEY_WORDS_MAX,
        REFS_MAX,
        VARS_MAX, //
    },
    program::{
        Action,
        Effects,
        Program,
        Refs,
        Tables,
        Unset, //
    },
    schema::FieldValues,
    sync::Atomic,
    tracing_map::{
        Elt,
        Ending,
        Glance,
        NumCell,
        Values as SumValues, //
    }, //
};
use core::marker::PhantomData;

/// The tables that a trigger reads variables of, during one hit; `hash` is that of the key, if it is known.
#[derive(Clone, Copy)]
struct Sources<'a, H = Unknown> {
    trigger: &'a HistTrigger,
    preempt: PreemptOff<'a>,
    hash: H,
}

/// Whether the hash of a key of one word is known.
trait Hash: Copy {
    /// The hash of `key` in `map`, as in all others.
    fn of(self, map: &HistMap, key: &[u64; 1]) -> u64;
}

#[derive(Clone, Copy)]
struct Unknown;

impl Hash for Unknown {
    #[inline(always)]
    fn of(self, map: &HistMap, key: &[u64; 1]) -> u64 {
        map.hash(key)
    }
}

impl Hash for u64 {
    #[inline(always)]
    fn of(self, _map: &HistMap, _key: &[u64; 1]) -> u64 {
        self
    }
}

impl<H: Hash> Tables for Sources<'_, H> {
    #[inline(always)]
    fn aux(&self, table: u16, key: &[u64]) -> Option<&[Atomic<u64>]> {
        let table = self.trigger.sources.get(usize::from(table))?;
        let map = &table.in_hit(&self.preempt).map;
        let words = map.shape().key_words();
        let elt = match *key {
            [word] if words == 1 => map.look(&[word], self.hash.of(map, &[word]))?,
            // As in `tracing_map_lookup()`, a key that is longer is one by its beginning.
            _ => look_up(map, key.get(..words)?)?,
        };

        Some(map.aux(elt))
    }
}

#[inline(never)]
fn look_up(map: &HistMap, key: &[u64]) -> Option<Elt> {
    map.lookup(key)
}

/// The values of a record, for a trigger that may read variables of others.
struct Vals<'a, T> {
    program: &'a Program,
    hit: Hit<'a>,
    refs: Refs<'a, T>,
}

impl<T> SumValues for Vals<'_, T> {
    #[inline(always)]
    fn value(&self, i: usize) -> u64 {
        self.program
            .value_at(i, self.hit.data(), &Surroundings(self.hit), &self.refs)
    }
}

/// What the actions of one hit do outside of the entry.
#[derive(Clone, Copy)]
struct Outside<'a> {
    trigger: &'a HistTrigger,
    live: &'a Live,
    hit: Hit<'a>,
    key: &'a [u64],
    aux: &'a [Atomic<u64>],
}

impl Effects for Outside<'_> {
    #[cold]
    #[inline(never)]
    fn snapshot(self, action: &Action, value: u64) {
        if let Some(snapshot) = self.trigger.table.snapshot() {
            let comm = comm_of(&self.trigger.definition.program, self.aux);
            snapshot.take(&action.handler(), value, self.key, comm);
        }
    }

    #[inline(always)]
    fn is_wanted(self, synth: u16) -> bool {
        let synth = self.trigger.synths.get(usize::from(synth));
        synth.is_some_and(|synth| synth.has_listeners())
    }

    #[inline(always)]
    fn trace(self, synth: u16, values: &impl FieldValues) {
        let Some(synth) = self.trigger.synths.get(usize::from(synth)) else {
            return;
        };
        let fired = synth.fire(values, Moment::of(&self.hit), self.hit.preempt_off());
        self.live.lose(0, fired.lost.into());
    }
}

/// Words of the keys, and numbers of variables, that most triggers have.
pub(super) const FEW: usize = 4;

/// How many variables of their own, and of others, [`MoreWords`] have room for.
const MORE: usize = 8;

/// Whether a trigger has at most `most` variables, and reads at most as many of others.
pub(super) fn are_at_most(program: &Program, most: usize) -> bool {
    program.refs().len() <= most && program.vars().len() <= most
}

/// Whether [`Words`] have room for the variables of a trigger and for those of others that it reads.
pub(super) fn are_few(program: &Program) -> bool {
    are_at_most(program, FEW)
}

/// Handles one record, by a trigger that has or reads variables, or has actions.
#[inline(always)]
pub(super) fn hit(trigger: &HistTrigger, hit: &Hit<'_>) {
    let program = &trigger.definition.program;
    // To clear the room for all there may be would take as long as all else.
    if program.key_words() <= FEW && program.numbers() <= FEW {
        hit_with_room(trigger, hit, &mut [0; FEW], &mut [0; FEW]);
    } else {
        hit_with_much(trigger, hit);
    }
}

/// As [`hit`], of a trigger whose key has at most [`FEW`] words.
#[inline(never)]
pub(super) fn hit_with_few_words(trigger: &HistTrigger, hit: &Hit<'_>) {
    let mut numbers = [0; REFS_MAX + VARS_MAX];
    hit_with_room(trigger, hit, &mut [0; FEW], &mut numbers);
}

#[inline(never)]
fn hit_with_much(trigger: &HistTrigger, hit: &Hit<'_>) {
    let (mut key, mut numbers) = ([0; KEY_WORDS_MAX], [0; REFS_MAX + VARS_MAX]);
    hit_with_room(trigger, hit, &mut key, &mut numbers);
}

/// The way of triggers whose key has `N` words, each computed by itself, with at most [`FEW`] variables that read at
/// most as many.
pub(super) struct Words<const N: usize>;

impl<const N: usize> OwnWay<HistTrigger> for Words<N> {
    #[inline(always)]
    fn hit(trigger: &HistTrigger, hit: &Hit<'_>) {
        hit_with_words::<N, FEW, Any>(trigger, *hit, None);
    }
}

/// As [`Words`], of triggers whose key has one word, with at most [`MORE`] variables that read at most as many.
pub(super) struct MoreWords;

impl MoreWords {
    /// Whether there is room for the variables of a trigger.
    pub(super) fn have_room(program: &Program) -> bool {
        are_at_most(program, MORE)
    }
}

impl OwnWay<HistTrigger> for MoreWords {
    #[inline(always)]
    fn hit(trigger: &HistTrigger, hit: &Hit<'_>) {
        hit_with_words::<1, MORE, Any>(trigger, *hit, None);
    }
}

/// As [`hit`], in the way [`Words`], with room for `ROOM` numbers of either kind; `found` is where the only reference
/// is, if that is known.
#[inline(always)]
fn hit_with_words<const N: usize, const ROOM: usize, S: Shards>(
    trigger: &HistTrigger,
    hit: Hit<'_>,
    found: Option<NumCell<'_>>,
) {
    let program = &trigger.definition.program;
    let preempt = *hit.preempt_off();
    let cpu = || preempt.cpu();
    let live = trigger.table.in_hit(&preempt);
    let key = program.numbers_key::<N, true>(hit.data(), cpu);
    let hash = live.map.hash(&key);
    let sources = Sources {
        trigger,
        preempt,
        hash: Unknown,
    };
    let hashed = Sources {
        trigger,
        preempt,
        hash,
    };
    // Few triggers read variables, and most of those one.
    let (one, mut few);
    let numbers = match (found, program.refs()) {
        (Some(found), all) => match all.first().map(|only| only.in_cell(&found)) {
            Some(Ok(number)) => {
                one = [number];
                Ok(&one[..])
            }
            _ => Err(Unset),
        },
        (None, []) => Ok::<&[u64], Unset>(&[]),
        (None, [only]) => match only.in_entry(&key, &hashed) {
            Ok(number) => {
                one = [number];
                Ok(&one[..])
            }
            Err(unset) => Err(unset),
        },
        _ => {
            few = [0; ROOM];
            program.numbers_of_refs(&{ key }, &{ hashed }, &mut few)
        }
    };
    let Ok(numbers) = numbers else {
        return live.map.count_at_once(Ending::Ignored, S::place(cpu));
    };
    let refs = Refs::of(numbers, &key, sources);
    let elt = match live.map.glance(&key, hash) {
        Glance::Found(elt) => elt,
        Glance::Full => return live.map.count_at_once(Ending::DroppedFull, S::place(cpu)),
        Glance::Unclear => match insert_words(program, live, key, preempt) {
            Some(elt) => elt,
            None => return,
        },
    };
    let vals = Vals { program, hit, refs };

    live.map.hit_element(elt, S::place(cpu), &vals);
    set_and_act(trigger, live, elt, hit, refs, &mut [0; ROOM]);
}

#[cold]
#[inline(never)]
fn insert_words<const N: usize>(
    program: &Program,
    live: &Live,
    key: [u64; N],
    preempt: PreemptOff<'_>,
) -> Option<Elt> {
    insert(program, live, &key, &preempt)
}

/// The way of triggers with `N` keys that have nothing but numbers, and keep the time since what another trigger has
/// in a variable.
pub(super) struct Since<const N: usize, S = Own>(PhantomData<S>);

impl<const N: usize, S: Shards> TriedWay<HistTrigger> for Since<N, S> {
    #[inline(always)]
    fn hit(trigger: &HistTrigger, hit: Hit<'_>) -> bool {
        hit_since::<N, S>(trigger, hit)
    }

    #[inline(always)]
    fn rest(trigger: &HistTrigger, hit: &Hit<'_>) {
        hit_with_few_words(trigger, hit);
    }
}

/// Handles one record in the way [`Since`], unless its key may have to be inserted.
#[inline(always)]
fn hit_since<const N: usize, S: Shards>(trigger: &HistTrigger, hit: Hit<'_>) -> bool {
    let program = &trigger.definition.program;
    let preempt = *hit.preempt_off();
    let cpu = || preempt.cpu();
    let map = &trigger.table.in_hit(&preempt).map;
    let key = program.numbers_key::<N, false>(hit.data(), cpu);
    let hash = map.hash(&key);
    let elt = match map.glance(&key, hash) {
        Glance::Found(elt) => Some(elt),
        Glance::Full => None,
        Glance::Unclear => return false,
    };
    let [only] = program.refs() else {
        return false;
    };
    let sources = Sources {
        trigger,
        preempt,
        hash,
    };
    let Ok(number) = only.in_entry(&key, &sources) else {
        map.count_at_once(Ending::Ignored, S::place(cpu));
        return true;
    };
    let Some(elt) = elt else {
        map.count_at_once(Ending::DroppedFull, S::place(cpu));
        return true;
    };
    let vals = NumberVals {
        trigger,
        record: hit.data(),
        preempt,
    };

    map.hit_element(elt, S::place(cpu), &vals);
    program.set_since(map.aux(elt), &Surroundings(hit), number);
    poll::wake();
    true
}

/// The way of triggers with `N` keys that have nothing but numbers, and keep the kernel stack in a variable.
///
/// It has no frame but its own, as that of triggers that count stacks.
pub(super) struct StackVar<const N: usize>;

impl<const N: usize> TriedWay<HistTrigger> for StackVar<N> {
    #[inline(always)]
    fn hit(trigger: &HistTrigger, hit: Hit<'_>) -> bool {
        let program = &trigger.definition.program;
        let preempt = *hit.preempt_off();
        let cpu = || preempt.cpu();
        let map = &trigger.table.in_hit(&preempt).map;
        let key = program.numbers_key::<N, false>(hit.data(), cpu);
        let vals = NumberVals {
            trigger,
            record: hit.data(),
            preempt,
        };
        let seen = map.hit_at_once_and(&key, Any::place(cpu), &vals, |aux| {
            program.set_stack(aux, &Surroundings(hit));
        });

        is_handled(seen)
    }

    #[inline(always)]
    fn rest(trigger: &HistTrigger, hit: &Hit<'_>) {
        hit_with_few_words(trigger, hit);
    }
}

/// The way of triggers with `N` keys that have nothing but numbers, and actions that keep one of them.
pub(super) struct Tracks<const N: usize, S = Own>(PhantomData<S>);

impl<const N: usize, S: Shards> TriedWay<HistTrigger> for Tracks<N, S> {
    #[inline(always)]
    fn hit(trigger: &HistTrigger, hit: Hit<'_>) -> bool {
        hit_tracks::<N, S>(trigger, hit)
    }

    #[inline(always)]
    fn rest(trigger: &HistTrigger, hit: &Hit<'_>) {
        hit_with_few_words(trigger, hit);
    }
}

/// Handles one record in the way [`Tracks`], unless its key may have to be inserted.
#[inline(always)]
fn hit_tracks<const N: usize, S: Shards>(trigger: &HistTrigger, hit: Hit<'_>) -> bool {
    let program = &trigger.definition.program;
    let preempt = *hit.preempt_off();
    let cpu = || preempt.cpu();
    let live = trigger.table.in_hit(&preempt);
    let key = program.numbers_key::<N, false>(hit.data(), cpu);
    let vals = NumberVals {
        trigger,
        record: hit.data(),
        preempt,
    };

    let seen = live.map.hit_at_once_and(&key, S::place(cpu), &vals, |aux| {
        program.set_vars_at_hand(aux, hit.data(), cpu);
        if program.is_due(aux, hit.data(), cpu) {
            act_on_numbers(trigger, live, key, hit, aux);
        }
    });
    is_handled(seen)
}

/// Runs the actions in the way [`Tracks`].
#[inline(never)]
fn act_on_numbers<const N: usize>(
    trigger: &HistTrigger,
    live: &Live,
    key: [u64; N],
    hit: Hit<'_>,
    aux: &[Atomic<u64>],
) {
    let program = &trigger.definition.program;
    let mut own = [0; FEW];
    let own = program.own_at_hand(hit.data(), || hit.preempt_off().cpu(), &mut own);
    let outside = Outside {
        trigger,
        live,
        hit,
        key: &key,
        aux,
    };
    let (env, refs) = (Surroundings(hit), Refs::of(&[], &key, ()));
    let lost = program.act(aux, &own, hit.data(), &env, &refs, outside);

    live.lose(lost, 0);
}

/// Does what is to be done when a hit has been counted: variables, actions, pollers.
#[inline(always)]
fn set_and_act<T: Tables>(
    trigger: &HistTrigger,
    live: &Live,
    elt: Elt,
    hit: Hit<'_>,
    refs: Refs<'_, T>,
    own: &mut [u64],
) {
    let program = &trigger.definition.program;
    let env = Surroundings(hit);
    let aux = live.map.aux(elt);
    let own = program.set_vars(aux, hit.data(), &env, &refs, own);

    if !program.actions().is_empty() {
        let outside = Outside {
            trigger,
            live,
            hit,
            key: refs.key(),
            aux,
        };
        let lost = program.act(aux, &own, hit.data(), &env, &refs, outside);
        live.lose(lost, 0);
    }
    poll::wake();
}

/// The way of triggers on events that may have been generated by another hit, or may generate one.
///
/// `N` is as for [`Words`], or 0 for another key.
pub(super) struct InChain<const N: usize>;

impl<const N: usize> OwnWay<HistTrigger> for InChain<N> {
    #[inline(always)]
    fn hit(trigger: &HistTrigger, hit: &Hit<'_>) {
        hit_in_chain::<N>(trigger, hit);
    }
}

/// Handles one record in the way [`InChain`].
///
/// Only what such a hit needs until the end is in the frames from here to where it generates an event.
#[inline(always)]
fn hit_in_chain<const N: usize>(trigger: &HistTrigger, hit: &Hit<'_>) {
    let Some(nest) = &trigger.nest else {
        return;
    };
    let Some(mut level) = nest.enter(hit) else {
        return count(trigger, Ending::DroppedNested, hit.preempt_off());
    };
    if N != 0 {
        return hit_with_words::<N, FEW, Any>(trigger, *hit, None);
    }
    let Pad { key, numbers } = level.pad();
    if trigger.definition.program.is_plain() {
        plain_hit_in_chain(trigger, hit, key);
    } else {
        hit_with_room(trigger, hit, key, numbers);
    }
}

/// The way of triggers on such events that have `N` keys, nothing but numbers, and read one variable, a number of a
/// table that has as many keys: most of their records find it unset, and are over then.
pub(super) struct Awaits<const N: usize>;

impl<const N: usize> LookWay<HistTrigger> for Awaits<N> {
    type Found<'a> = NumCell<'a>;

    #[inline(always)]
    fn look<'a>(trigger: &'a HistTrigger, hit: &'a Hit<'_>) -> Option<NumCell<'a>> {
        look_for_number::<N>(trigger, hit)
    }

    #[inline(always)]
    fn rest(trigger: &HistTrigger, hit: &Hit<'_>, found: NumCell<'_>) {
        let Some(nest) = &trigger.nest else {
            return;
        };
        match nest.enter(hit) {
            Some(_level) => hit_with_words::<N, FEW, Own>(trigger, *hit, Some(found)),
            None => count(trigger, Ending::DroppedNested, hit.preempt_off()),
        }
    }
}

/// Looks for the variable that a hit in the way [`Awaits`] needs. Without it the hit is counted here.
#[inline(always)]
fn look_for_number<'a, const N: usize>(
    trigger: &'a HistTrigger,
    hit: &'a Hit<'_>,
) -> Option<NumCell<'a>> {
    let program = &trigger.definition.program;
    let preempt = hit.preempt_off();
    let key = program.numbers_key::<N, false>(hit.data(), || preempt.cpu());
    let found = program.refs().first().and_then(|only| {
        let table = trigger.sources.get(usize::from(only.table()))?;
        let map = &table.in_hit(preempt).map;

        only.set_number(map.aux(map.look(&key, map.hash(&key))?))
    });

    if found.is_none() {
        // A hit that cannot begin does not come so far as to be ignored.
        let ending = match trigger
            .nest
            .as_ref()
            .is_some_and(|nest| nest.is_full(hit.preempt_off()))
        {
            true => Ending::DroppedNested,
            false => Ending::Ignored,
        };
        let map = &trigger.table.in_hit(preempt).map;
        map.count_at_once(ending, || preempt.cpu());
    }
    found
}

#[inline(never)]
fn plain_hit_in_chain(trigger: &HistTrigger, hit: &Hit<'_>, key: &mut [u64]) {
    let live = trigger.table.in_hit(hit.preempt_off());
    let program = &trigger.definition.program;
    let key = program.key(hit.data(), &Surroundings(*hit), key);
    plain_hit(program, live, key, hit);
}

#[inline(never)]
fn key<'a>(program: &Program, hit: &Hit<'_>, key: &'a mut [u64]) -> &'a [u64] {
    program.key(hit.data(), &Surroundings(*hit), key)
}

/// Handles one record, with room for its key and for the numbers of its variables.
#[inline(never)]
fn hit_with_room(trigger: &HistTrigger, hit: &Hit<'_>, room: &mut [u64], numbers: &mut [u64]) {
    let program = &trigger.definition.program;
    let live = trigger.table.in_hit(hit.preempt_off());
    let key = match program.numbers_key_in(hit.data(), hit.preempt_off().cpu(), room) {
        0 => key(program, hit, room),
        words => room.get(..words).unwrap_or(&[]),
    };
    let Some((numbers, own)) = numbers.split_at_mut_checked(program.refs().len()) else {
        return;
    };
    let sources = Sources {
        trigger,
        preempt: *hit.preempt_off(),
        hash: Unknown,
    };
    let Ok(refs) = program.resolve(key, sources, numbers) else {
        count(trigger, Ending::Ignored, hit.preempt_off());
        return;
    };
    let Some(elt) = insert(program, live, key, hit.preempt_off()) else {
        return;
    };
    add(program, live, elt, hit, &refs);
    set_and_act(trigger, live, elt, *hit, refs, own);
}
