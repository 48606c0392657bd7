// SPDX-License-Identifier: GPL-2.0

//! What every hit runs through: record -> key -> references -> element -> sums -> variables -> actions.
//!
//! C counterpart: `event_hist_trigger()`.
//! Context: any, NMI included, with preemption off. Never allocates, sleeps, locks or panics.
//!
//! Each call ends in exactly one count of the account, of the shard of this CPU.

use super::{
    storage::{
        Live,
        Table, //
    },
    HistTrigger, //
};
use crate::{
    ffi::{
        event::Hit,
        guard::PreemptOff,
        poll,
        stack,
        task, //
    },
    field::Env,
    limits::{
        COMM_LEN,
        KEY_WORDS_MAX,
        VALS_MAX, //
    },
    program::{
        Action,
        Effects,
        Program,
        RefBuf,
        Refs,
        Tables, //
    },
    render::COMM_WORDS,
    schema::Values,
    sync::{
        Atomic,
        Relaxed, //
    },
    tracing_map::Ending, //
};
use kernel::sync::Arc;

const _: () = assert!(COMM_LEN == task::COMM_LEN);

/// What surrounds a hit in the kernel.
struct Surroundings<'a>(&'a Hit<'a>);

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
    fn stacktrace(&self, out: &mut [u64]) {
        stack::save(out, self.0.preempt_off());
    }
}

/// The tables that a trigger reads variables of, during one hit.
struct Sources<'a> {
    tables: &'a [Arc<Table>],
    preempt: &'a PreemptOff<'a>,
}

impl Tables for Sources<'_> {
    fn aux(&self, table: u16, key: &[u64]) -> Option<&[Atomic<u64>]> {
        let map = &self
            .tables
            .get(usize::from(table))?
            .in_hit(self.preempt)
            .map;
        Some(map.aux(map.lookup(key)?))
    }
}

/// What the actions of one hit do outside of the entry.
struct Outside<'a> {
    trigger: &'a HistTrigger,
    hit: &'a Hit<'a>,
    key: &'a [u64],
    comm: &'a [Atomic<u64>],
    /// Records of events that could not be written.
    lost: u64,
}

impl Effects for Outside<'_> {
    fn snapshot(&mut self, action: &Action, value: u64) {
        if let Some(snapshot) = self.trigger.table.snapshot() {
            snapshot.take(&action.handler(), value, self.key, self.comm);
        }
    }

    #[inline(never)]
    fn trace(&mut self, synth: u16, values: &impl Values) {
        let Some(synth) = self.trigger.synths.get(usize::from(synth)) else {
            return;
        };
        // Whoever has events to generate has a count.
        let _inside = match &self.trigger.nest {
            Some(nest) => nest.enter(self.hit),
            None => return,
        };
        let fired = synth.fire(values, self.hit.preempt_off());
        self.lost = self.lost.wrapping_add(fired.lost.into());
    }
}

/// Words of the keys that most triggers have: three numbers, or a task's name and another one.
const SHORT_KEY_WORDS: usize = 3;

/// Handles one record.
#[inline(always)]
pub(super) fn hit(trigger: &HistTrigger, hit: &Hit<'_>) {
    // To clear the room for the longest key would take as long as all else.
    if trigger.definition.program.key_words() <= SHORT_KEY_WORDS {
        hit_with_key(trigger, hit, &mut [0; SHORT_KEY_WORDS]);
    } else {
        hit_with_long_key(trigger, hit);
    }
}

#[inline(never)]
fn hit_with_long_key(trigger: &HistTrigger, hit: &Hit<'_>) {
    hit_with_key(trigger, hit, &mut [0; KEY_WORDS_MAX]);
}

/// Handles one record, whose key has room in `key`.
#[inline(always)]
fn hit_with_key(trigger: &HistTrigger, hit: &Hit<'_>, key: &mut [u64]) {
    let preempt = hit.preempt_off();
    let live = trigger.table.in_hit(preempt);
    let shard = live.map.shard(preempt.cpu());
    if trigger.nest.as_ref().is_some_and(|nest| nest.is_full(hit)) {
        shard.count(Ending::DroppedNested);
        return;
    }
    let program = &trigger.definition.program;
    let env = Surroundings(hit);

    let key = program.key(hit.data(), &env, key);
    if !program.is_plain() {
        return hit_with_vars(trigger, live, key, hit);
    }

    let Some(elt) = live.map.insert(key, |aux| save_comm(program, aux, preempt)) else {
        shard.count(Ending::DroppedFull);
        return;
    };
    let mut vals = [0; VALS_MAX];
    let vals = program.values(hit.data(), &env, &Refs::none(), &mut vals);
    shard.hit(elt, vals);
    poll::wake();
}

/// Handles one record, by a trigger that has or reads variables.
#[inline(never)]
fn hit_with_vars(trigger: &HistTrigger, live: &Live, key: &[u64], hit: &Hit<'_>) {
    let preempt = hit.preempt_off();
    let shard = live.map.shard(preempt.cpu());
    let program = &trigger.definition.program;
    let env = Surroundings(hit);

    let sources = Sources {
        tables: &trigger.sources,
        preempt,
    };
    let mut refs = RefBuf::default();
    let Ok(refs) = program.resolve(key, &sources, &mut refs) else {
        shard.count(Ending::Ignored);
        return;
    };
    let Some(elt) = live.map.insert(key, |aux| save_comm(program, aux, preempt)) else {
        shard.count(Ending::DroppedFull);
        return;
    };
    let mut vals = [0; VALS_MAX];
    let vals = program.values(hit.data(), &env, &refs, &mut vals);
    shard.hit(elt, vals);

    if !program.vars().is_empty() || !program.actions().is_empty() {
        let aux = live.map.aux(elt);
        let own = program.set_vars(aux, hit.data(), &env, &refs);
        let mut outside = Outside {
            trigger,
            hit,
            key,
            comm: comm_of(program, aux),
            lost: 0,
        };
        let lost = program.act(aux, &own, hit.data(), &env, &refs, &mut outside);
        live.lose(lost, outside.lost);
    }
    poll::wake();
}

/// Counts a call without a record.
///
/// The event was told to call its triggers a moment before it was told that one wants the record.
pub(super) fn miss(trigger: &HistTrigger, preempt: &PreemptOff<'_>) {
    let map = &trigger.table.in_hit(preempt).map;
    map.shard(preempt.cpu()).count(Ending::Ignored);
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
