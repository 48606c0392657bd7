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
        Program,
        RefBuf,
        Refs,
        Tables, //
    },
    render::COMM_WORDS,
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

    if !program.vars().is_empty() {
        let aux = live.map.aux(elt);
        let own = program.set_vars(aux, hit.data(), &env, &refs);
        let lost = program.act(aux, &own, hit.data(), &env, &refs, |action, value| {
            if let Some(snapshot) = trigger.table.snapshot() {
                snapshot.take(&action.handler(), value, key, comm_of(program, aux));
            }
        });
        if lost != 0 {
            // ORDERING: a number by itself.
            live.lost_saves.fetch_add(lost, Relaxed);
        }
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
