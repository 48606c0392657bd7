// SPDX-License-Identifier: GPL-2.0

//! The tables of triggers: their memory, and how one map takes the place of another.
//!
//! Context: process, may sleep. A failure is `ENOMEM`, and nothing has changed then.

use super::{
    snapshot::Snapshot,
    Definition, //
};
use crate::{
    ffi::{
        guard::{
            wait_for_hits,
            EventMutexHeld,
            PreemptOff, //
        },
        memory::Words,
        random, //
    },
    program::Program,
    sync::{
        Acquire,
        Atomic,
        Relaxed,
        Release, //
    },
    tracing_map::{
        Dimensions,
        HashSeed,
        Map,
        SeededHash,
        Shape, //
    }, //
};
use kernel::{
    cpu::nr_cpu_ids,
    prelude::*,
    sync::{
        Arc,
        SetOnce, //
    }, //
};

/// The factors of the hashes of all keys in all tables, set before the first table is made. A trigger looks for its
/// key in the tables of others, too, by a hash that is computed once.
static SEED: SetOnce<HashSeed> = SetOnce::new();

/// Chooses the factors by `seed`, or at random if that is 0. Called once, when the module is loaded.
pub(crate) fn seed_hashes(seed: u64) {
    let seed = match seed {
        0 => random::number(),
        seed => seed,
    };
    SEED.populate(HashSeed::new(seed));
}

/// The dimensions of the map that a program needs.
fn dimensions(program: &Program) -> Dimensions {
    Dimensions {
        bits: program.size_bits(),
        key_words: program.key_words(),
        aux_words: program.aux_words(),
        sums: program.sums(),
    }
}

/// A map in memory of its own.
pub(super) type HistMap = Map<Words>;

/// A map, and what is counted beside it; all begin anew together.
// The map comes first: instructions with small offsets are shorter, and `Losses` is aligned to 128 bytes.
#[repr(C)]
pub(super) struct Live {
    /// The map.
    pub(super) map: HistMap,
    /// The bytes that the words of the map take.
    word_bytes: usize,
    /// What actions have lost.
    pub(super) losses: Losses,
}

/// What the actions of hits have lost, on all CPUs.
///
/// In a pair of cache lines of its own: a CPU that loses something leaves the others that of the map.
#[repr(align(128))]
pub(super) struct Losses {
    /// Rows that `save()` had no room for, because more hits than there are rows wrote to one entry
    /// at once.
    pub(super) saves: Atomic<u64>,
    /// Records of synthetic events that could not be written.
    pub(super) traces: Atomic<u64>,
}

impl Live {
    /// Counts what the actions of a hit have lost.
    #[inline(always)]
    pub(super) fn lose(&self, saves: u64, traces: u64) {
        for (count, n) in [(&self.losses.saves, saves), (&self.losses.traces, traces)] {
            if n != 0 {
                // ORDERING: a number by itself.
                count.fetch_add(n, Relaxed);
            }
        }
    }

    /// Allocates an empty map; `EINVAL` stands for dimensions that the language excludes.
    fn new(dimensions: Dimensions) -> Result<KBox<Self>> {
        let shape = Shape::new(dimensions, nr_cpu_ids()).ok_or(EINVAL)?;
        let words = Words::zeros(shape.words(), shape.most_bytes())?;
        let hash = SeededHash::new(SEED.as_ref().ok_or(EINVAL)?);
        let live = Self {
            word_bytes: words.bytes(),
            map: HistMap::new(shape, words, hash).ok_or(EINVAL)?,
            losses: Losses {
                saves: Atomic::new(0),
                traces: Atomic::new(0),
            },
        };
        Ok(KBox::new(live, GFP_KERNEL)?)
    }

    /// The bytes that it takes.
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.word_bytes
    }
}

/// The table of a trigger, or of all triggers of one name: a map that can be exchanged while it is hit.
///
/// Owned together by the triggers that write it and those that read its variables, each of which lives
/// a grace period longer than it is on its event. Two tables are the same iff their addresses are.
///
/// # Invariants
///
/// `live` came from a `KBox` and is freed by nobody else. A hit uses it with preemption off; everybody
/// else holds `event_mutex`, under which alone it changes.
pub(super) struct Table {
    live: Atomic<*mut Live>,
    dimensions: Dimensions,
    /// The trigger that the table was made for, which says where its variables are.
    definition: Arc<Definition>,
    /// The snapshot of the instance, if a trigger of the table takes it.
    snapshot: SetOnce<Snapshot>,
}

impl Table {
    /// Makes an empty table for a trigger.
    pub(super) fn new(definition: Arc<Definition>) -> Result<Arc<Self>> {
        let dimensions = dimensions(&definition.program);
        // INVARIANT: it came from a box, which is given up here.
        let table = Self {
            live: Atomic::new(KBox::into_raw(Live::new(dimensions)?)),
            dimensions,
            definition,
            snapshot: SetOnce::new(),
        };
        Ok(Arc::new(table, GFP_KERNEL)?)
    }

    /// The trigger that the table was made for.
    pub(super) fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Whether each CPU has a shard of its own in all maps of the table.
    pub(super) fn is_per_cpu(&self) -> bool {
        Shape::new(self.dimensions, nr_cpu_ids()).is_some_and(|shape| shape.per_cpu())
    }

    /// How many words the keys of all its maps have.
    pub(super) fn key_words(&self) -> usize {
        self.dimensions.key_words
    }

    /// The snapshot that hits of the table take.
    #[inline(always)]
    pub(super) fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.as_ref()
    }

    /// Gives the table its snapshot. It is for the one who has made the table to do.
    pub(super) fn set_snapshot(&self, snapshot: Snapshot) {
        self.snapshot.populate(snapshot);
    }

    /// What the table holds, for the length of one hit.
    #[inline(always)]
    pub(super) fn in_hit<'a>(&'a self, _preempt: PreemptOff<'a>) -> &'a Live {
        // ORDERING: pairs with the exchange in `clear`; the new map is visible before its address.
        let live = self.live.load(Acquire);
        // SAFETY: by the type invariant; `clear` frees a map after all hits that may have seen it,
        // and whoever frees the table does so after a grace period.
        unsafe { &*live }
    }

    /// What the table holds, for a reader.
    pub(super) fn held<'a>(&'a self, _held: &'a EventMutexHeld) -> &'a Live {
        // ORDERING: the mutex orders whoever changes it.
        let live = self.live.load(Relaxed);
        // SAFETY: by the type invariant it changes only under the mutex.
        unsafe { &*live }
    }

    /// The bytes that the table takes.
    pub(super) fn bytes(&self, held: &EventMutexHeld) -> usize {
        size_of::<Self>() + self.held(held).bytes()
    }

    /// Empties the table: each hit falls wholly before or wholly after that.
    ///
    /// # Safety
    ///
    /// No reference from [`Table::held`] may be in use.
    pub(super) unsafe fn clear(&self, _held: &EventMutexHeld) -> Result {
        let live = Live::new(self.dimensions)?;
        // INVARIANT: the new map came from a box, and the mutex is held.
        // ORDERING: pairs with `Acquire` in `in_hit`.
        let old = self.live.xchg(KBox::into_raw(live), Release);
        wait_for_hits();
        // SAFETY: by the type invariant; hits that saw the old map are over, and by the contract
        // nobody else uses it.
        drop(unsafe { KBox::from_raw(old) });
        Ok(())
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: by the type invariant, and nobody else uses the table any more.
        drop(unsafe { KBox::from_raw(*self.live.get_mut()) });
    }
}
