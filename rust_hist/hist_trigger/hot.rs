// SPDX-License-Identifier: GPL-2.0

//! What every hit runs through: record -> key -> element -> sums.
//!
//! C counterpart: `event_hist_trigger()`.
//! Context: any, NMI included, with preemption off. Never allocates, sleeps, locks or panics.
//!
//! Each call ends in exactly one count of the account, of the shard of this CPU.

use super::HistTrigger;
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
    sync::{
        Atomic,
        Relaxed, //
    },
    tracing_map::Ending, //
};

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

/// Handles one record.
#[inline(always)]
pub(super) fn hit(trigger: &HistTrigger, hit: &Hit<'_>) {
    let preempt = hit.preempt_off();
    let map = trigger.map.in_hit(preempt);
    let shard = map.shard(preempt.cpu());
    let program = &trigger.definition.program;
    let env = Surroundings(hit);

    let mut key = [0; KEY_WORDS_MAX];
    let key = program.key(hit.data(), &env, &mut key);
    let Some(elt) = map.insert(key, |aux| save_comm(aux, preempt)) else {
        shard.count(Ending::DroppedFull);
        return;
    };

    let mut vals = [0; VALS_MAX];
    let vals = program.values(hit.data(), &env, &mut vals);
    shard.hit(elt, vals);
    poll::wake();
}

/// Counts a call without a record.
///
/// The event was told to call its triggers a moment before it was told that one wants the record.
pub(super) fn miss(trigger: &HistTrigger, preempt: &PreemptOff<'_>) {
    let map = trigger.map.in_hit(preempt);
    map.shard(preempt.cpu()).count(Ending::Ignored);
}

/// Keeps the name of the task that makes an element, where the trigger shows it.
fn save_comm(aux: &[Atomic<u64>], preempt: &PreemptOff<'_>) {
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
