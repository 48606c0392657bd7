// SPDX-License-Identifier: GPL-2.0

//! What every hit runs through: record -> key -> references -> element -> sums -> variables -> actions.
//!
//! C counterpart: `event_hist_trigger()`.
//! Context: any, NMI included, with preemption off. Never allocates, sleeps, locks or panics.
//!
//! `hist_trigger/hot/vars.rs` has what comes with variables and actions, `hist_trigger/hot/text.rs` the ways for
//! strings of the record, `hist_trigger/hot/chain.rs` those of triggers on events that other hits generate,
//! `hist_trigger/hot/shards.rs` those for tables whose CPUs share shards.
//!
//! Each call ends in exactly one count of the account, of the shard of this CPU.

mod chain;
mod shards;
mod text;
mod vars;

pub(super) use self::chain::Chain;

use self::shards::{
    Own,
    Shards, //
};

use super::{
    storage::{
        Live,
        Table, //
    },
    HistTrigger, //
};
use crate::{
    ffi::{
        command::{
            ShortWay,
            TriedWay,
            Way, //
        },
        event::{
            Hit,
            Record, //
        },
        guard::PreemptOff,
        poll,
        stack,
        task, //
    },
    field::Env,
    limits::{
        COMM_LEN,
        COMM_WORDS,
        KEY_WORDS_MAX,
        VALS_MAX, //
    },
    program::{
        Program,
        Refs, //
    },
    sync::{
        Atomic,
        Relaxed, //
    },
    tracing_map::{
        Elt,
        Ending,
        Glance,
        Pieces,
        Sharing,
        Values,
        SHORT_KEY_WORDS, //
    }, //
};
use core::marker::PhantomData;
use kernel::sync::Arc;

/// What surrounds a hit in the kernel.
#[derive(Clone, Copy)]
struct Surroundings<'a>(Hit<'a>);

impl Env for Surroundings<'_> {
    #[inline(always)]
    fn timestamp(&self) -> u64 {
        self.0.time_stamp()
    }

    #[inline(always)]
    fn clock_in_ns(&self) -> bool {
        self.0.clock_in_ns()
    }

    #[inline(always)]
    fn cpu(&self) -> u32 {
        self.0.preempt_off().cpu()
    }

    #[inline(always)]
    fn comm(&self, out: &mut [u8; COMM_LEN]) {
        task::comm(out, self.0.preempt_off());
    }

    #[inline(always)]
    fn stacktrace<R>(&self, found: impl FnOnce(&[u64]) -> R) -> R {
        stack::with(found, self.0.preempt_off())
    }
}

/// The values of a record, for a trigger that has nothing but numbers.
struct NumberVals<'a> {
    trigger: &'a HistTrigger,
    record: &'a [u8],
    preempt: PreemptOff<'a>,
}

impl Values for NumberVals<'_> {
    #[inline(always)]
    fn value(&self, i: usize) -> u64 {
        let program = &self.trigger.definition.program;
        program.number_val(i, self.record, || self.preempt.cpu())
    }
}

/// The way for the records of a trigger that reads variables of `sources`.
///
/// That where CPUs share shards is one of [`shards::way`] or knows it: those of [`text`], [`Words`](vars::Words),
/// [`MoreWords`](vars::MoreWords), [`InChain`](vars::InChain), [`LongVars`](vars::LongVars), [`StackVar`](vars::StackVar), [`LongKey`], [`StackField`],
/// and that of all triggers.
pub(super) fn way(
    program: &Program,
    table: &Table,
    sources: &[Arc<Table>],
    chain: Chain,
) -> Way<HistTrigger> {
    let is_own = table.is_per_cpu();
    if let Some(way) = shards::way(program, is_own, chain) {
        return way;
    }
    let is_plain = program.is_plain();
    let is_all_numbers = program.all_numbers_keys() != 0 && program.number_keys() == 0;
    match program.key_in_words() {
        _ if chain.is_counted() && (is_all_numbers || !is_plain) => {
            way_in_chain(program, is_own, sources)
        }
        _ if is_all_numbers => way_of_all_numbers(program),
        0 if is_plain => way_of_long_key(program, is_own, chain),
        0 if vars::is_long(program, sources) => Way::tried::<vars::LongVars>(),
        0 => chain.any(),
        _ if is_plain && is_own => short_way(program, chain),
        _ if is_plain => chain.any(),
        _ => way_of_words(program, is_own),
    }
}

/// The way for the records of a trigger that has or reads variables, or has actions, with a key of words that are at
/// hand.
fn way_of_words(program: &Program, is_own: bool) -> Way<HistTrigger> {
    let (since, tracking) = match is_own {
        true => (program.since_keys(), program.tracking_keys()),
        false => (0, 0),
    };
    match program.key_in_words() {
        1 if program.has_record_vars() => Way::tried::<text::Texts<1>>(),
        2 if program.has_record_vars() => Way::tried::<text::Texts<2>>(),
        1 if !vars::are_few(program) && vars::MoreWords::have_room(program) => {
            Way::own::<vars::MoreWords>()
        }
        _ if !vars::are_few(program) => Way::any(),
        1 if program.stack_keys() != 0 => Way::tried::<vars::StackVar<1>>(),
        2 if program.stack_keys() != 0 => Way::tried::<vars::StackVar<2>>(),
        1 if since != 0 => Way::tried::<vars::Since<1>>(),
        2 if since != 0 => Way::tried::<vars::Since<2>>(),
        1 if tracking != 0 => Way::tried::<vars::Tracks<1>>(),
        2 if tracking != 0 => Way::tried::<vars::Tracks<2>>(),
        1 => Way::own::<vars::Words<1>>(),
        2 => Way::own::<vars::Words<2>>(),
        3 => Way::own::<vars::Words<3>>(),
        4 => Way::own::<vars::Words<4>>(),
        _ => Way::any(),
    }
}

/// The way for the records of a trigger in a chain of events.
fn way_in_chain(program: &Program, is_own: bool, sources: &[Arc<Table>]) -> Way<HistTrigger> {
    let awaits = is_own && awaits_number(program, sources);
    match program.key_in_words() {
        _ if !vars::are_few(program) => Way::own::<vars::InChain<0>>(),
        1 if awaits => Way::look::<vars::Awaits<1>>(),
        2 if awaits => Way::look::<vars::Awaits<2>>(),
        1 => Way::own::<vars::InChain<1>>(),
        2 => Way::own::<vars::InChain<2>>(),
        3 => Way::own::<vars::InChain<3>>(),
        4 => Way::own::<vars::InChain<4>>(),
        _ => Way::own::<vars::InChain<0>>(),
    }
}

/// Whether such a trigger needs one variable, as [`Program::awaits_number`] says, in an entry of the whole key.
fn awaits_number(program: &Program, sources: &[Arc<Table>]) -> bool {
    let has_key = |source: &Arc<Table>| source.key_words() == program.key_words();

    program.awaits_number() && sources.iter().all(has_key)
}

/// The way for the records of a trigger that has nothing but numbers.
fn way_of_all_numbers(program: &Program) -> Way<HistTrigger> {
    match (program.all_numbers_keys(), program.numbers_are_at_hand()) {
        (1, true) => Way::tried::<AllNumbers<1, false>>(),
        (1, false) => Way::tried::<AllNumbers<1, true>>(),
        (2, true) => Way::tried::<AllNumbers<2, false>>(),
        (2, false) => Way::tried::<AllNumbers<2, true>>(),
        _ => Way::any(),
    }
}

/// The short way for the records of a trigger that has nothing but its key and values.
fn short_way(program: &Program, chain: Chain) -> Way<HistTrigger> {
    match (program.number_keys(), program.number_keys_have_text()) {
        (1, false) => chain.short::<Numbers<1, false>>(),
        (2, false) => chain.short::<Numbers<2, false>>(),
        (3, false) => chain.short::<Numbers<3, false>>(),
        (1, true) => chain.short::<Numbers<1, true>>(),
        (2, true) => chain.short::<Numbers<2, true>>(),
        (3, true) => chain.short::<Numbers<3, true>>(),
        (4, true) => chain.short::<Numbers<4, true>>(),
        _ => chain.any(),
    }
}

/// The way of triggers with `N` words of keys and nothing but numbers, of which some are text if `TEXT`.
struct Numbers<const N: usize, const TEXT: bool, S = Own>(PhantomData<S>);

impl<const N: usize, const TEXT: bool, S: Shards> ShortWay<HistTrigger> for Numbers<N, TEXT, S> {
    #[inline(always)]
    fn hit(trigger: &HistTrigger, record: Record<'_>) {
        hit_numbers::<N, TEXT, S>(trigger, record);
    }
}

/// The way of triggers with `N` keys that have variables, too, and nothing but numbers in them; see
/// [`hit_all_numbers`].
struct AllNumbers<const N: usize, const STAMPS: bool, S = Own>(PhantomData<S>);

impl<const N: usize, const STAMPS: bool, S: Shards> TriedWay<HistTrigger>
    for AllNumbers<N, STAMPS, S>
{
    #[inline(always)]
    fn hit(trigger: &HistTrigger, hit: Hit<'_>) -> bool {
        hit_all_numbers::<N, STAMPS, S>(trigger, hit)
    }

    #[inline(always)]
    fn rest(trigger: &HistTrigger, hit: &Hit<'_>) {
        vars::hit_with_few_words(trigger, hit);
    }
}

/// The way of triggers that have nothing but a key that is no number, and values.
fn way_of_long_key(program: &Program, is_own: bool, chain: Chain) -> Way<HistTrigger> {
    match program.key_words() {
        0..=SHORT_KEY_WORDS => chain.any(),
        _ if is_own && program.key_is_stack() && program.vals().is_empty() => {
            chain.tried::<Stack>()
        }
        _ if program.has_text_key() => chain.tried::<text::TextKey>(),
        _ if program.key_is_stack_field() => chain.tried::<StackField>(),
        _ => chain.tried::<LongKey>(),
    }
}

/// The way of triggers that have nothing but a long key and values: the key is looked for where it lies.
struct LongKey;

impl TriedWay<HistTrigger> for LongKey {
    #[inline(always)]
    fn hit(trigger: &HistTrigger, hit: Hit<'_>) -> bool {
        let program = &trigger.definition.program;
        let preempt = *hit.preempt_off();
        let map = &trigger.table.in_hit(&preempt).map;
        let cpu = || preempt.cpu();
        let vals = PlainVals { program, hit };
        let is_done = program.key_in_pieces(hit.data(), &Surroundings(hit), |key| {
            map.hit_pieces_at_once(key, Sharing(cpu), &vals)
        });

        wake_if(is_done)
    }

    #[inline(always)]
    fn rest(trigger: &HistTrigger, hit: &Hit<'_>) {
        hit_with_long_key(trigger, hit);
    }
}

/// The way of triggers that have nothing but a stack of the record as their key, and values.
struct StackField;

impl TriedWay<HistTrigger> for StackField {
    #[inline(always)]
    fn hit(trigger: &HistTrigger, hit: Hit<'_>) -> bool {
        let program = &trigger.definition.program;
        let preempt = *hit.preempt_off();
        let cpu = || preempt.cpu();
        let map = &trigger.table.in_hit(&preempt).map;
        let vals = PlainVals { program, hit };
        let key = program.stack_key(hit.data());
        let is_done = map.hit_pieces_at_once(&key, Sharing(cpu), &vals);

        wake_if(is_done)
    }

    #[inline(always)]
    fn rest(trigger: &HistTrigger, hit: &Hit<'_>) {
        hit_with_long_key(trigger, hit);
    }
}

/// The way of triggers that count the kernel stacks, and whose CPUs share no shard.
///
/// It has no frame but its own: each one takes an unwinder as long as half of all else.
struct Stack;

impl TriedWay<HistTrigger> for Stack {
    #[inline(always)]
    fn hit(trigger: &HistTrigger, hit: Hit<'_>) -> bool {
        let preempt = *hit.preempt_off();
        let map = &trigger.table.in_hit(&preempt).map;
        let cpu = || preempt.cpu();
        let count = |frames: &[u64]| map.hit_piece_at_once(frames, cpu, &NoVals);
        let is_done = stack::with_some(count, &preempt).unwrap_or(false);

        wake_if(is_done)
    }

    #[inline(always)]
    fn rest(trigger: &HistTrigger, hit: &Hit<'_>) {
        hit_with_long_key(trigger, hit);
    }
}

/// The values of a record, for a trigger that has nothing but its key and values.
struct PlainVals<'a> {
    program: &'a Program,
    hit: Hit<'a>,
}

impl Values for PlainVals<'_> {
    #[inline(always)]
    fn value(&self, i: usize) -> u64 {
        let env = Surroundings(self.hit);
        self.program
            .value_at(i, self.hit.data(), &env, &Refs::none())
    }
}

/// There are no values but the count of hits.
struct NoVals;

impl Values for NoVals {
    #[inline(always)]
    fn value(&self, _i: usize) -> u64 {
        0
    }
}

/// Handles one record of a trigger with `N` keys that has nothing but numbers: at once, if the key is there or
/// cannot be.
#[inline(always)]
fn hit_numbers<const N: usize, const TEXT: bool, S: Shards>(
    trigger: &HistTrigger,
    record: Record<'_>,
) {
    let program = &trigger.definition.program;
    let preempt = *record.preempt_off();
    let map = &trigger.table.in_hit(&preempt).map;
    let key = program.numbers_key::<N, TEXT>(record.data(), || preempt.cpu());
    let vals = NumberVals {
        trigger,
        record: record.data(),
        preempt,
    };

    // Whoever polls waits for hits: there is nobody to wake when one is dropped.
    match map.hit_at_once(&key, S::place(|| preempt.cpu()), &vals) {
        Glance::Found(_) => poll::wake(),
        Glance::Full => (),
        Glance::Unclear => hit_new_numbers::<N, TEXT>(trigger, record),
    }
}

/// As [`hit_numbers`], of a trigger that has variables, too, and nothing but numbers in them; `STAMPS` says whether
/// it may take a call to know some of these or of the key.
///
/// Does nothing if the key may have to be inserted, and says so with `false`.
#[inline(always)]
fn hit_all_numbers<const N: usize, const STAMPS: bool, S: Shards>(
    trigger: &HistTrigger,
    hit: Hit<'_>,
) -> bool {
    let program = &trigger.definition.program;
    let preempt = *hit.preempt_off();
    let cpu = || preempt.cpu();
    let env = Surroundings(hit);
    let map = &trigger.table.in_hit(&preempt).map;
    let key = match STAMPS {
        true => program.all_numbers_key::<N>(hit.data(), &env),
        false => program.numbers_key::<N, false>(hit.data(), cpu),
    };
    let vals = NumberVals {
        trigger,
        record: hit.data(),
        preempt,
    };

    let seen = map.hit_at_once_and(&key, S::place(cpu), &vals, |aux| match STAMPS {
        true => program.set_number_vars(aux, hit.data(), &env),
        false => program.set_vars_at_hand(aux, hit.data(), cpu),
    });
    is_handled(seen)
}

/// Tells whoever polls if a call is over, and says whether it is.
#[inline(always)]
fn wake_if(is_done: bool) -> bool {
    if is_done {
        poll::wake();
    }
    is_done
}

/// Whether a call is over in whose look at the slots this was seen; whoever polls is told of a hit.
#[inline(always)]
fn is_handled(seen: Glance) -> bool {
    match seen {
        Glance::Found(_) => {
            poll::wake();
            true
        }
        Glance::Full => true,
        Glance::Unclear => false,
    }
}

/// As [`hit_numbers`], for a key that may have to be inserted.
#[cold]
#[inline(never)]
fn hit_new_numbers<const N: usize, const TEXT: bool>(trigger: &HistTrigger, record: Record<'_>) {
    let program = &trigger.definition.program;
    let preempt = record.preempt_off();
    let live = trigger.table.in_hit(preempt);
    let key = program.numbers_key::<N, TEXT>(record.data(), || preempt.cpu());

    if let Some(elt) = insert(program, live, &key, preempt) {
        let vals: [u64; VALS_MAX] =
            core::array::from_fn(|i| program.number_val(i, record.data(), || preempt.cpu()));
        live.map.shard(preempt.cpu()).hit(elt, &vals);
        poll::wake();
    }
}

/// Handles one record.
#[inline(always)]
pub(super) fn hit(trigger: &HistTrigger, hit: &Hit<'_>) {
    let program = &trigger.definition.program;
    if !program.is_plain() {
        vars::hit(trigger, hit);
    } else if program.key_words() > SHORT_KEY_WORDS {
        hit_with_long_key(trigger, hit);
    } else {
        hit_with_short_key(trigger, hit);
    }
}

/// Handles one record of a trigger with a long key, which is looked for where it lies.
#[inline(never)]
fn hit_with_long_key(trigger: &HistTrigger, hit: &Hit<'_>) {
    let live = trigger.table.in_hit(hit.preempt_off());
    let program = &trigger.definition.program;
    let env = Surroundings(*hit);
    program.key_in_pieces(hit.data(), &env, |key| hit_pieces(program, live, key, hit));
}

/// Handles one record, whose key is at hand in pieces.
#[inline(always)]
fn hit_pieces(program: &Program, live: &Live, key: &impl Pieces, hit: &Hit<'_>) {
    match live.map.glance_at(key) {
        Glance::Found(elt) => {
            add(program, live, elt, hit, &Refs::none());
            poll::wake();
        }
        Glance::Full => live
            .map
            .shard(hit.preempt_off().cpu())
            .count(Ending::DroppedFull),
        Glance::Unclear => hit_new_pieces(program, live, key, hit),
    }
}

/// As [`hit_with_long_key`], for a key that may have to be inserted.
#[cold]
#[inline(never)]
fn hit_new_pieces(program: &Program, live: &Live, key: &impl Pieces, hit: &Hit<'_>) {
    let mut words = [0; KEY_WORDS_MAX];
    key.each(|at, word| {
        if let Some(place) = words.get_mut(at) {
            *place = word;
        }
    });
    let key = words.get(..program.key_words()).unwrap_or(&[]);
    plain_hit(program, live, key, hit);
}

/// Handles one record of a trigger with a short key.
#[inline(never)]
fn hit_with_short_key(trigger: &HistTrigger, hit: &Hit<'_>) {
    // To clear the room for the longest key would take as long as all else.
    hit_with_key(trigger, hit, &mut [0; SHORT_KEY_WORDS]);
}

/// Handles one record, whose key has room in `key`.
#[inline(always)]
fn hit_with_key(trigger: &HistTrigger, hit: &Hit<'_>, key: &mut [u64]) {
    let live = trigger.table.in_hit(hit.preempt_off());
    let program = &trigger.definition.program;
    let key = program.key(hit.data(), &Surroundings(*hit), key);
    plain_hit(program, live, key, hit);
}

/// Handles one record, by a trigger that has nothing but its key and values.
#[inline(always)]
fn plain_hit(program: &Program, live: &Live, key: &[u64], hit: &Hit<'_>) {
    if let Some(elt) = insert(program, live, key, hit.preempt_off()) {
        add(program, live, elt, hit, &Refs::none());
        poll::wake();
    }
}

/// Finds or makes the element of a key; if there is no room the call is counted as dropped.
#[inline(always)]
fn insert(program: &Program, live: &Live, key: &[u64], preempt: &PreemptOff<'_>) -> Option<Elt> {
    let elt = live.map.insert(key, |aux| save_comm(program, aux, preempt));
    if elt.is_none() {
        live.map.shard(preempt.cpu()).count(Ending::DroppedFull);
    }
    elt
}

/// Adds the values of a record to the sums of its element, which counts the call as a hit.
#[inline(always)]
fn add<T>(program: &Program, live: &Live, elt: Elt, hit: &Hit<'_>, refs: &Refs<'_, T>) {
    let mut vals = [0; VALS_MAX];
    let vals = program.values(hit.data(), &Surroundings(*hit), refs, &mut vals);
    live.map.shard(hit.preempt_off().cpu()).hit(elt, vals);
}

/// Counts a call that changes nothing else.
fn count(trigger: &HistTrigger, ending: Ending, preempt: &PreemptOff<'_>) {
    let map = &trigger.table.in_hit(preempt).map;
    map.shard(preempt.cpu()).count(ending);
}

/// Counts a call without a record.
///
/// The event was told to call its triggers a moment before it was told that one wants the record.
pub(super) fn miss(trigger: &HistTrigger, preempt: &PreemptOff<'_>) {
    count(trigger, Ending::Ignored, preempt);
}

/// The words of an element for the name of the task that made it; none if that is not shown.
fn comm_of<'a>(program: &Program, aux: &'a [Atomic<u64>]) -> &'a [Atomic<u64>] {
    if !program.needs_comm() {
        return &[];
    }
    aux.get(..COMM_WORDS).unwrap_or(&[])
}

/// Keeps the name of the task that makes an element, where the trigger shows it.
fn save_comm(program: &Program, aux: &[Atomic<u64>], preempt: &PreemptOff<'_>) {
    let aux = comm_of(program, aux);
    if aux.is_empty() {
        return;
    }
    let mut comm = [0; COMM_LEN];
    if task::is_idle(preempt) {
        let idle = b"<idle>";
        for (to, from) in comm.iter_mut().zip(idle) {
            *to = *from;
        }
    } else {
        task::comm(&mut comm, preempt);
    }
    for (to, from) in aux.iter().zip(comm.chunks_exact(size_of::<u64>())) {
        let word = u64::from_ne_bytes(from.try_into().unwrap_or_default());
        // ORDERING: the map publishes the element after this.
        to.store(word, Relaxed);
    }
}
