// SPDX-License-Identifier: GPL-2.0

//! The tables of triggers: their memory, and how one map takes the place of another.
//!
//! A map takes the place of another one when the table is cleared and when an epoch of it ends, which a reader of
//! `hist_pipe` wants (`hist_trigger/pipe.rs`). Both happen under `event_mutex`. A map lives as long as somebody has it,
//! the table or a reader, so whoever copies the rows of one needs no lock.
//!
//! Context: process, may sleep. A failure is `ENOMEM`, and nothing has changed then.

use super::{
    snapshot::Snapshot,
    Definition, //
};
use crate::{
    ffi::{
        clock::Moment,
        guard::{
            wait_for_hits,
            EventMutex,
            EventMutexHeld,
            Guarded,
            PreemptOff, //
        },
        memory::Words,
        poll,
        random, //
    },
    program::Program,
    render::json::Epoch,
    sync::{
        Acquire,
        Atomic,
        Relaxed,
        Release, //
    },
    tracing_map::{
        Account,
        Dimensions,
        HashSeed,
        Map,
        Merge,
        SeededHash,
        Shape, //
    }, //
};
use core::mem::{
    take,
    ManuallyDrop, //
};
use kernel::{
    cpu::nr_cpu_ids,
    prelude::*,
    sync::{
        Arc,
        SetOnce,
        UniqueArc, //
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

/// The form of the map that a program needs.
#[derive(Clone, Copy)]
struct Form {
    dimensions: Dimensions,
    merge: Merge,
}

impl Form {
    fn of(program: &Program) -> Self {
        Self {
            dimensions: Dimensions {
                bits: program.size_bits(),
                key_words: program.key_words(),
                aux_words: program.aux_words(),
                sums: program.sums(),
            },
            merge: *program.merge(),
        }
    }

    /// The shape on this machine; `None` for dimensions that the language excludes.
    fn shape(&self) -> Option<Shape> {
        Shape::with(self.dimensions, self.merge, nr_cpu_ids())
    }
}

/// A map in memory of its own.
pub(super) type HistMap = Map<Words>;

/// A map, and how much memory it takes. Empty when the table gets it.
// The map comes first: instructions with small offsets are shorter.
#[repr(C)]
pub(super) struct Live {
    /// The map.
    pub(super) map: HistMap,
    /// The bytes that the words of the map take.
    word_bytes: usize,
}

impl Live {
    /// Allocates an empty map; `EINVAL` stands for dimensions that the language excludes. What a reader asks for is
    /// charged to his memory cgroup.
    fn new(form: Form, is_charged: bool) -> Result<UniqueArc<Self>> {
        let shape = form.shape().ok_or(EINVAL)?;
        let words = Words::zeros(shape.words(), shape.most_bytes(), is_charged)?;
        let hash = SeededHash::new(SEED.as_ref().ok_or(EINVAL)?);
        let live = Self {
            word_bytes: words.bytes(),
            map: HistMap::new(shape, words, hash).ok_or(EINVAL)?,
        };
        let flags = match is_charged {
            true => GFP_KERNEL_ACCOUNT,
            false => GFP_KERNEL,
        };
        Ok(UniqueArc::new(live, flags)?)
    }

    /// The bytes that it takes.
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.word_bytes
    }
}

/// A map that another one has replaced, until a reader has been given its rows.
struct Retired {
    live: Arc<Live>,
    epoch: Epoch,
    /// A reader has it, and is not done.
    is_claimed: bool,
}

/// The epochs of a table.
struct Epochs {
    /// That of the map which hits go to: its number, and when it began.
    number: u64,
    from: u64,
    /// Whether there were others that readers have been given.
    is_consumed: bool,
    /// What those have counted since the table was made or cleared.
    before: Account,
    /// Those that readers have not been given yet, the oldest first.
    retired: KVec<Retired>,
    /// The map of the next epoch, while files are open that may end this one.
    spare: Option<UniqueArc<Live>>,
    /// How many such files there are.
    readers: usize,
}

impl Epochs {
    /// The present epoch, up to `now`.
    fn present(&self, now: &Moment) -> Epoch {
        Epoch {
            number: self.number,
            from: self.from,
            to: now.monotonic,
            real: now.real,
        }
    }

    /// Begins the next epoch.
    fn advance(&mut self, now: &Moment) {
        self.number = self.number.wrapping_add(1);
        self.from = now.monotonic;
    }

    /// The oldest epoch that has ended and that no reader has.
    fn unclaimed(&mut self) -> Option<&mut Retired> {
        let mut retired = self.retired.iter_mut();
        retired.find(|retired| !retired.is_claimed)
    }
}

/// The table of a trigger, or of all triggers of one name: a map that can be exchanged while it is hit.
///
/// Owned together by the triggers that write it, those that read its variables, each of which lives a grace period longer
/// than it is on its event, and files that consume it. Two tables are the same iff their addresses are.
///
/// # Invariants
///
/// `live` came from [`Arc::into_raw`], and the table has that reference. It changes under `event_mutex` only.
pub(super) struct Table {
    live: Atomic<*mut Live>,
    form: Form,
    /// The trigger that the table was made for, which says where its variables are.
    definition: Arc<Definition>,
    /// The snapshot of the instance, if a trigger of the table takes it.
    snapshot: SetOnce<Snapshot>,
    epochs: Guarded<Epochs>,
}

/// Gives up a map, which its next owner gets by [`Arc::from_raw`].
fn into_raw(live: UniqueArc<Live>) -> *mut Live {
    Arc::into_raw(Arc::from(live)).cast_mut()
}

impl Table {
    /// Makes an empty table for a trigger.
    pub(super) fn new(definition: Arc<Definition>) -> Result<Arc<Self>> {
        let form = Form::of(&definition.program);
        let table = Self {
            // INVARIANT: the reference is given up here.
            live: Atomic::new(into_raw(Live::new(form, false)?)),
            form,
            definition,
            snapshot: SetOnce::new(),
            epochs: Guarded::new(Epochs {
                number: 1,
                from: Moment::now().monotonic,
                is_consumed: false,
                before: Account::default(),
                retired: KVec::new(),
                spare: None,
                readers: 0,
            }),
        };
        Ok(Arc::new(table, GFP_KERNEL)?)
    }

    /// The trigger that the table was made for.
    pub(super) fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Whether each CPU has a shard of its own in all maps of the table.
    pub(super) fn is_per_cpu(&self) -> bool {
        self.form.shape().is_some_and(|shape| shape.per_cpu())
    }

    /// How many words the keys of all its maps have.
    pub(super) fn key_words(&self) -> usize {
        self.form.dimensions.key_words
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
        // ORDERING: pairs with the exchange in `exchange`; the new map is visible before its address.
        let live = self.live.load(Acquire);
        // SAFETY: by the type invariant; who takes the map away from the table gives it up, or changes it, after all hits
        // that may have seen it, and whoever frees the table does so after a grace period.
        unsafe { &*live }
    }

    /// What the table holds, for a reader, who may keep it.
    pub(super) fn live(&self, _held: &EventMutexHeld) -> Arc<Live> {
        // ORDERING: the mutex orders whoever changes it.
        let live = self.live.load(Relaxed);
        // SAFETY: by the type invariant, while the mutex is held; the reference stays that of the table.
        let live = unsafe { ManuallyDrop::new(Arc::from_raw(live)) };
        Arc::clone(&live)
    }

    /// All that the table has counted since it was made or cleared.
    pub(super) fn totals(&self, held: &EventMutexHeld) -> Account {
        self.before(held).plus(&self.live(held).map.account())
    }

    /// What was counted before the present epoch began.
    pub(super) fn before(&self, held: &EventMutexHeld) -> Account {
        let epochs = self.epochs.get(held);
        epochs
            .retired
            .iter()
            .map(|retired| retired.live.map.account())
            .fold(epochs.before, |sum, account| sum.plus(&account))
    }

    /// The hits that the table has counted since it was made or cleared.
    pub(super) fn hits(&self, held: &EventMutexHeld) -> u64 {
        let before = self.before(held).hits;
        before.wrapping_add(self.live(held).map.hits())
    }

    /// The bytes that the table takes.
    pub(super) fn bytes(&self, held: &EventMutexHeld) -> usize {
        let epochs = self.epochs.get(held);
        let spare = epochs.spare.as_ref().map_or(0, |spare| spare.bytes());
        let retired = epochs.retired.iter().map(|retired| retired.live.bytes());
        size_of::<Self>() + self.live(held).bytes() + spare + retired.sum::<usize>()
    }

    /// The present epoch, up to `now`.
    pub(super) fn epoch(&self, now: &Moment, held: &EventMutexHeld) -> Epoch {
        self.epochs.get(held).present(now)
    }

    /// The number of the present epoch, if readers have been given earlier ones.
    pub(super) fn consumed_epoch(&self, held: &EventMutexHeld) -> Option<u64> {
        let epochs = self.epochs.get(held);
        epochs.is_consumed.then_some(epochs.number)
    }

    /// Puts a map in the place of the present one, and returns that. Hits that have seen the old one may go on in it until
    /// [`wait_for_hits`] returns.
    fn exchange(&self, next: UniqueArc<Live>, _held: &EventMutexHeld) -> Arc<Live> {
        // INVARIANT: the reference is given up here, and the mutex is held.
        // ORDERING: pairs with `Acquire` in `in_hit`.
        let old = self.live.xchg(into_raw(next), Release);
        // SAFETY: by the type invariant, and the table has given its reference up.
        unsafe { Arc::from_raw(old) }
    }

    /// Empties the table: each hit falls wholly before or wholly after that.
    ///
    /// What it discards, epochs that no reader has claimed included, is in the account of nothing any more.
    pub(super) fn clear(&self, held: &EventMutexHeld) -> Result {
        let next = Live::new(self.form, false)?;
        let epochs = self.epochs.get(held);
        let old = self.exchange(next, held);
        epochs.advance(&Moment::now());
        epochs.before = Account::default();
        let retired = take(&mut epochs.retired);
        wait_for_hits();
        drop((old, retired));
        Ok(())
    }
}

/// For files that end epochs.
impl Table {
    /// Says that a file more, or one less, may end epochs. The spare map goes with the last of them.
    pub(super) fn count_reader(&self, is_more: bool, held: &EventMutexHeld) {
        let epochs = self.epochs.get(held);
        match is_more {
            true => epochs.readers += 1,
            false => epochs.readers = epochs.readers.saturating_sub(1),
        }
        if epochs.readers == 0 {
            epochs.spare = None;
        }
    }

    /// Allocates a spare map, charged to the memory cgroup of the caller.
    pub(super) fn new_spare(&self) -> Result<UniqueArc<Live>> {
        Live::new(self.form, true)
    }

    /// Keeps a spare map, which is empty, unless there is one or no file wants it.
    pub(super) fn put_spare(&self, spare: UniqueArc<Live>, held: &EventMutexHeld) {
        let epochs = self.epochs.get(held);
        if epochs.readers > 0 && epochs.spare.is_none() {
            epochs.spare = Some(spare);
        }
    }

    /// Whether an epoch can be claimed without a further map.
    pub(super) fn is_ready(&self, held: &EventMutexHeld) -> bool {
        let epochs = self.epochs.get(held);
        epochs.spare.is_some() || epochs.unclaimed().is_some()
    }

    /// Whether the next epoch that is claimed has hits.
    pub(super) fn has_unread(&self, held: &EventMutexHeld) -> bool {
        self.epochs.get(held).unclaimed().is_some() || self.live(held).map.used() != 0
    }

    /// The epoch that [`Table::claim`] returns next, if it does so at `now`. Makes sure that there is room for it.
    pub(super) fn next_claim(&self, now: &Moment, held: &EventMutexHeld) -> Result<Epoch> {
        let epochs = self.epochs.get(held);
        epochs.retired.reserve(1, GFP_KERNEL)?;
        let left = epochs.unclaimed().map(|retired| retired.epoch);
        Ok(left.unwrap_or_else(|| epochs.present(now)))
    }

    /// Claims the oldest epoch that no reader has; if there is none, ends the present one. Its map is complete when
    /// [`wait_for_hits`] has returned.
    ///
    /// `ENOMEM` is for callers that have not asked [`Table::is_ready`] and [`Table::next_claim`] before, under the same
    /// lock.
    pub(super) fn claim(self: &Arc<Self>, now: &Moment, held: &EventMutexHeld) -> Result<Claim> {
        let epochs = self.epochs.get(held);
        let live = if let Some(retired) = epochs.unclaimed() {
            retired.is_claimed = true;
            retired.live.clone()
        } else {
            epochs.retired.reserve(1, GFP_KERNEL)?;
            let live = self.exchange(epochs.spare.take().ok_or(ENOMEM)?, held);
            let retired = Retired {
                live: live.clone(),
                epoch: epochs.present(now),
                is_claimed: true,
            };
            // There is room.
            epochs.retired.push(retired, GFP_KERNEL)?;
            epochs.advance(now);
            live
        };
        Ok(Claim {
            table: self.clone(),
            live: Some(live),
        })
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: by the type invariant, and nobody else uses the table any more.
        drop(unsafe { Arc::from_raw(*self.live.get_mut()) });
    }
}

/// An epoch that has ended, for one reader. If he is not given it, another one is.
pub(super) struct Claim {
    table: Arc<Table>,
    /// The map, until the claim is settled.
    live: Option<Arc<Live>>,
}

impl Claim {
    /// The map; `None` once the claim is settled.
    pub(super) fn live(&self) -> Option<&Live> {
        self.live.as_deref()
    }

    /// Ends the claim of a reader who has been given the rows: what they count becomes part of what was counted before,
    /// and the map is used again. Takes `event_mutex`.
    pub(super) fn settle(&mut self) {
        let Some(live) = self.live.take() else {
            return;
        };
        let account = live.map.account();
        {
            let held = EventMutex::lock();
            let epochs = self.table.epochs.get(&held);
            // Whoever has cleared the table meanwhile has begun to count anew.
            let at = epochs
                .retired
                .iter()
                .position(|retired| Arc::ptr_eq(&retired.live, &live));
            if at.is_some_and(|at| epochs.retired.remove(at).is_ok()) {
                epochs.before = epochs.before.plus(&account);
            }
            epochs.is_consumed = true;
        }
        // Who is still looking at the map has it for himself then.
        let Some(live) = Arc::into_unique_or_drop(live) else {
            return;
        };
        let mut spare = Pin::into_inner(live);
        spare.map.empty();
        self.table.put_spare(spare, &EventMutex::lock());
    }
}

impl Drop for Claim {
    /// Takes `event_mutex`, unless the claim is settled.
    fn drop(&mut self) {
        let Some(live) = self.live.take() else {
            return;
        };
        {
            let held = EventMutex::lock();
            let mut retired = self.table.epochs.get(&held).retired.iter_mut();
            if let Some(own) = retired.find(|retired| Arc::ptr_eq(&retired.live, &live)) {
                own.is_claimed = false;
            }
        }
        // Whoever polls has been told that there is nothing to read.
        poll::wake();
    }
}
