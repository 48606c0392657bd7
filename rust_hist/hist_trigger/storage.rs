// SPDX-License-Identifier: GPL-2.0

//! The tables of triggers: their memory, and the replacement of one map by another.
//!
//! A map is replaced when the table is cleared, when a reader of `hist_pipe` ends an epoch (`hist_trigger/pipe.rs`),
//! when the table grows (`hist_trigger/growth.rs`), and when starts expire (`hist_trigger/storage/expiry.rs`), always
//! under `event_mutex`. Maps are reference-counted by the table and by readers, so readers copy rows without a lock.
//!
//! Context: process, may sleep. Functions that fail return `ENOMEM` and change nothing.

mod expiry;

pub(super) use self::expiry::Maps;

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
            PreemptGuard,
            PreemptOff, //
        },
        memory::SharedWords,
        poll,
        random,
        work, //
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
use core::{
    mem::{
        take,
        ManuallyDrop, //
    },
    ptr::null_mut, //
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

/// The random numbers of the hashes of all keys in all tables, set before the first table is created. They are shared
/// since a trigger looks up its key in other triggers' tables by the same hash.
static SEED: SetOnce<HashSeed> = SetOnce::new();

/// Derives the numbers that all hashes of keys begin with from `seed`, or chooses them at random if `seed` is 0. Called
/// once, when the module is loaded.
pub(crate) fn seed_hashes(seed: u64) {
    SEED.populate(match seed {
        0 => HashSeed::random(random::number),
        seed => HashSeed::new(seed),
    });
}

/// The parameters of a program's first map.
#[derive(Clone, Copy)]
struct MapForm {
    dimensions: Dimensions,
    merge: Merge,
}

impl MapForm {
    fn of(program: &Program) -> Self {
        Self {
            dimensions: Dimensions {
                bits: program.bits,
                grows_to: program.grows_to.unwrap_or(0),
                expires: program.expiry().is_some(),
                others: program.others,
                key_words: program.key_words(),
                aux_words: program.aux_words(),
                sums: program.sums(),
            },
            merge: *program.merge(),
        }
    }

    /// Returns this form for a map of another size.
    fn with_bits(self, bits: u32) -> Self {
        Self {
            dimensions: Dimensions {
                bits,
                ..self.dimensions
            },
            ..self
        }
    }

    /// Returns the shape on this machine; `None` for dimensions that the language excludes.
    fn shape(&self) -> Option<Shape> {
        Shape::with(self.dimensions, self.merge, nr_cpu_ids())
    }
}

/// A map of a table, in kernel memory.
pub(super) type HistMap = Map<SharedWords, SeededHash>;

/// A map, and the size of its memory. The table gets it empty.
// The map is the first field, as instructions with small offsets are shorter.
#[repr(C)]
pub(super) struct Live {
    /// The map.
    pub(super) map: HistMap,
    /// The number of bytes of the map's words.
    word_bytes: usize,
    /// The map that this one replaces, while that may have variables that are not here yet. Its owner, [`Table::grow`]
    /// or the table, drops it only a grace period after this pointer was cleared, or after this map was removed from
    /// the table.
    replaced: Atomic<*mut Live>,
}

impl Live {
    /// Allocates an empty map; `EINVAL` stands for dimensions that the language excludes. With `is_charged` the memory
    /// is charged to the memory cgroup of the task, a reader.
    fn new(form: MapForm, is_charged: bool) -> Result<UniqueArc<Self>> {
        let shape = form.shape().ok_or(EINVAL)?;
        let words = SharedWords::zeros(shape.pairs(), shape.most_bytes(), is_charged)?;
        let hash = SeededHash::new(SEED.as_ref().ok_or(EINVAL)?);
        let live = Self {
            word_bytes: words.bytes(),
            map: HistMap::new(shape, words, hash).ok_or(EINVAL)?,
            replaced: Atomic::new(null_mut()),
        };
        let flags = match is_charged {
            true => GFP_KERNEL_ACCOUNT,
            false => GFP_KERNEL,
        };
        Ok(UniqueArc::new(live, flags)?)
    }

    /// Returns the map that this one replaces, for the length of one hit, if that may have variables that are not here
    /// yet. `None` if all moved variables are here, where later look-ups find them, or if older ones have expired.
    pub(super) fn replaced<'a>(&'a self, _preempt: PreemptOff<'a>) -> Option<&'a Self> {
        // ORDERING: pairs with the stores in `Table::grow` and `Table::succeed`: the old map is complete; or with the
        // clearing of the pointer: the variables are here.
        let replaced = self.replaced.load(Acquire);
        // SAFETY: null, or the address of a map that is neither freed nor emptied before a grace period after this pointer
        // was cleared, or after the hit's `self` was removed from the table; the hit delays the grace period.
        unsafe { replaced.as_ref() }
    }

    /// Returns the bytes that the map takes.
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.word_bytes
    }
}

/// An epoch that has ended, kept until a reader has received its rows.
struct Retired {
    maps: Arc<Maps>,
    epoch: Epoch,
    /// Whether a reader has claimed the epoch and not finished.
    is_claimed: bool,
}

/// The epochs of a table, and the state of its maps.
struct Epochs {
    /// The number of the present epoch, and its start in ns of the monotonic clock.
    number: u64,
    from: u64,
    /// Whether readers have received earlier epochs.
    is_consumed: bool,
    /// The counts of epochs that readers have received, since the table was created or cleared.
    before: Account,
    /// The epoch that ended and that no reader has received yet. The present epoch ends only after that, so there is at
    /// most one.
    retired: Option<Retired>,
    /// The map for the next epoch, while files are open that may end the present one.
    spare: Option<UniqueArc<Live>>,
    /// The number of those files.
    readers: usize,
    /// With `expire()`: the maps before the present one, oldest first, and the counts of still older ones in this
    /// epoch.
    older: KVec<Arc<Live>>,
    gone: Account,
    /// The number of maps in `older` that were not the youngest any more when the previous generation ended.
    old: usize,
    /// The end of the present generation, in ns of the monotonic clock.
    due: u64,
    /// The number of refused calls that the map has taken over from a smaller one.
    refused: u64,
    /// How often the table has grown, or failed to, since it was created or cleared.
    grown: Grown,
    /// Whether some counts of the map are still in the map that it replaces.
    is_growing: bool,
    /// The number of the last turn that the growing thread has given to this table.
    turn: u64,
}

/// How often a table has got a larger map.
#[derive(Clone, Copy, Default)]
pub(super) struct Grown {
    pub(super) times: u64,
    /// How often there was no memory for a larger map.
    pub(super) failed: u64,
    /// How often a generation ended early, for lack of room.
    pub(super) forced: u64,
}

/// A table's request for another map: none; a request; a request for which there was no memory.
const CONTENT: u32 = 0;
const WANTING: u32 = 1;
const FAILED: u32 = 2;

/// The delay before another attempt after a lack of memory, in ms.
pub(super) const LATER_MS: u32 = 1000;

impl Epochs {
    /// Returns the present epoch, up to `now`.
    fn present(&self, now: &Moment) -> Epoch {
        Epoch {
            number: self.number,
            from: self.from,
            to: now.monotonic,
            real: now.real,
        }
    }

    /// Begins the next epoch at `now`.
    fn advance(&mut self, now: &Moment) {
        self.number = self.number.wrapping_add(1);
        self.from = now.monotonic;
    }

    /// Returns the ended epoch if `maps`, which a reader has claimed, are its maps.
    fn of_claim(&mut self, maps: &Arc<Maps>) -> Option<&mut Retired> {
        self.retired
            .as_mut()
            .filter(|retired| Arc::ptr_eq(&retired.maps, maps))
    }
}

/// The counts of a table since it was created or cleared, to be added up without the mutex: that takes a load for each
/// word of all shards.
pub(super) struct Counted {
    /// The maps of the present epoch.
    pub(super) maps: Arc<Maps>,
    /// The maps of an ended epoch that no reader has received yet.
    retired: Option<Arc<Maps>>,
    /// The sum of the epochs that readers have received.
    before: Account,
}

impl Counted {
    /// Returns the counts before the present epoch.
    pub(super) fn before(&self, program: &Program) -> Account {
        match &self.retired {
            Some(maps) => self.before.plus(&maps.account(program)),
            None => self.before,
        }
    }

    /// Returns the hits in all epochs.
    pub(super) fn hits(&self) -> u64 {
        let of = |maps: &Arc<Maps>| maps.account_hits();
        let retired = self.retired.as_ref().map_or(0, of);
        let hits = self.before.hits.wrapping_add(retired);
        hits.wrapping_add(of(&self.maps))
    }
}

/// The table of a trigger, or of all triggers with one name: a map that can be replaced while it is hit.
///
/// Owned jointly by the triggers that write it, by those that read its variables, each of which lives a grace period
/// longer than it is attached, and by files that consume it. Two tables are the same iff their addresses are.
///
/// # Invariants
///
/// `live` came from [`Arc::into_raw`], and the table owns that reference. It changes only under `event_mutex`.
pub(super) struct Table {
    live: Atomic<*mut Live>,
    /// The form of the first map; later maps may have more elements.
    form: MapForm,
    /// The request for another map: [`CONTENT`], [`WANTING`] or [`FAILED`].
    room: Atomic<u32>,
    /// The definition of the trigger for which the table was created; it has the places of the variables.
    definition: Arc<Definition>,
    /// The snapshot of the instance, if a trigger of the table takes it.
    snapshot: SetOnce<Snapshot>,
    epochs: Guarded<Epochs>,
}

/// Empties a map that no hit uses any more; `None` if a reader still uses it and now owns it alone.
fn emptied(live: Arc<Live>) -> Option<UniqueArc<Live>> {
    let mut live = Pin::into_inner(Arc::into_unique_or_drop(live)?);
    live.map.empty();
    // ORDERING: no other context has the map.
    live.replaced.store(null_mut(), Relaxed);
    Some(live)
}

/// Converts a map's reference to a pointer, for a later [`Arc::from_raw`].
fn into_raw(live: Arc<Live>) -> *mut Live {
    Arc::into_raw(live).cast_mut()
}

impl Table {
    /// Creates an empty table for a trigger.
    ///
    /// Not inlined: the table is on this function's stack before it is moved.
    #[inline(never)]
    pub(super) fn new(definition: Arc<Definition>) -> Result<Arc<Self>> {
        let form = MapForm::of(&definition.program);
        let due = expiry::after(&definition.program);
        let table = Self {
            // INVARIANT: the reference is passed to the table here.
            live: Atomic::new(into_raw(Live::new(form, false)?.into())),
            form,
            room: Atomic::new(CONTENT),
            definition,
            snapshot: SetOnce::new(),
            epochs: Guarded::new(Epochs {
                number: 1,
                from: Moment::now().monotonic,
                is_consumed: false,
                before: Account::default(),
                retired: None,
                spare: None,
                readers: 0,
                older: KVec::new(),
                gone: Account::default(),
                old: 0,
                due,
                refused: 0,
                grown: Grown::default(),
                is_growing: false,
                turn: 0,
            }),
        };
        Ok(Arc::new(table, GFP_KERNEL)?)
    }

    /// Returns the definition of the trigger for which the table was created.
    pub(super) fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Returns whether each CPU has its own shard in all maps that the table may have.
    pub(super) fn is_per_cpu(&self) -> bool {
        let Dimensions { bits, grows_to, .. } = self.form.dimensions;
        (bits..=grows_to.max(bits)).all(|bits| {
            let shape = self.form.with_bits(bits).shape();
            shape.is_some_and(|shape| shape.per_cpu())
        })
    }

    /// Returns the number of words of the keys of all its maps.
    pub(super) fn key_words(&self) -> usize {
        self.form.dimensions.key_words
    }

    /// Returns the snapshot that hits of the table take.
    #[inline]
    pub(super) fn snapshot(&self) -> Option<&Snapshot> {
        self.snapshot.as_ref()
    }

    /// Gives the table its snapshot. Only for the creator of the table.
    pub(super) fn set_snapshot(&self, snapshot: Snapshot) {
        self.snapshot.populate(snapshot);
    }

    /// Returns the present map, for the length of one hit.
    #[inline]
    pub(super) fn in_hit<'a>(&'a self, _preempt: PreemptOff<'a>) -> &'a Live {
        // ORDERING: pairs with the exchange in `exchange`; the new map is visible before its address.
        let live = self.live.load(Acquire);
        // SAFETY: by the type invariant; a map that was removed from the table is dropped or changed only after all
        // hits that may have seen it, and the table is freed only after a grace period.
        unsafe { &*live }
    }

    /// Returns the present map, for a reader, which may keep it.
    pub(super) fn live(&self, _held: &EventMutexHeld) -> Arc<Live> {
        // ORDERING: the mutex orders this load against changes.
        let live = self.live.load(Relaxed);
        // SAFETY: by the type invariant, while the mutex is held; the table keeps its reference.
        let live = unsafe { ManuallyDrop::new(Arc::from_raw(live)) };
        Arc::clone(&live)
    }

    /// Returns the counts of the table, including those of hits in progress once these have ended.
    pub(super) fn counted(&self, held: &EventMutexHeld) -> Result<Counted> {
        let maps = self.maps(held)?;
        let epochs = self.epochs.get(held);
        Ok(Counted {
            maps,
            retired: epochs.retired.as_ref().map(|retired| retired.maps.clone()),
            before: epochs.before,
        })
    }

    /// Returns the bytes that the table takes.
    pub(super) fn bytes(&self, held: &EventMutexHeld) -> usize {
        let live = self.live(held);
        let epochs = self.epochs.get(held);
        let spare = epochs.spare.as_ref().map_or(0, |spare| spare.bytes());
        let older = epochs.older.iter().map(|live| live.bytes());
        let retired = epochs.retired.as_ref();
        let retired = retired.map_or(0, |retired| retired.maps.bytes());
        size_of::<Self>() + live.bytes() + spare + older.sum::<usize>() + retired
    }

    /// Returns the present epoch, up to `now`.
    pub(super) fn epoch(&self, now: &Moment, held: &EventMutexHeld) -> Epoch {
        self.epochs.get(held).present(now)
    }

    /// Returns the number of the present epoch, if readers have received earlier ones.
    pub(super) fn consumed_epoch(&self, held: &EventMutexHeld) -> Option<u64> {
        let epochs = self.epochs.get(held);
        epochs.is_consumed.then_some(epochs.number)
    }

    /// Replaces the present map by `next`, and returns the old one. Hits that have seen the old map may still use it
    /// until [`wait_for_hits`] returns.
    fn exchange(&self, next: Arc<Live>, held: &EventMutexHeld) -> Arc<Live> {
        let epochs = self.epochs.get(held);
        epochs.refused = 0;
        epochs
            .spare
            .take_if(|spare| spare.map.shape() != next.map.shape());
        // INVARIANT: the reference is passed to the table here, and the mutex is held.
        // ORDERING: pairs with `Acquire` in `in_hit`.
        let old = self.live.xchg(into_raw(next), Release);
        // SAFETY: by the type invariant, and the table's reference is passed on.
        unsafe { Arc::from_raw(old) }
    }

    /// Empties the table: each hit is counted entirely before or entirely after that.
    ///
    /// The discarded hits, including those of epochs that no reader has claimed, are in no account any more.
    pub(super) fn clear(&self, held: &EventMutexHeld) -> Result {
        let next = Live::new(self.form, false)?;
        let old = self.exchange(next.into(), held);
        let epochs = self.epochs.get(held);
        epochs.advance(&Moment::now());
        epochs.before = Account::default();
        epochs.grown = Grown::default();
        let retired = take(&mut epochs.retired);
        let generations = self.begin(held);
        wait_for_hits();
        drop((old, retired, generations));
        Ok(())
    }
}

/// Operations for files that end epochs.
impl Table {
    /// Counts one more, or one less, file that may end epochs. The spare map is freed with the last of them.
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

    /// Allocates a spare map with the size of the present one, charged to the memory cgroup of the caller. Takes
    /// `event_mutex`.
    pub(super) fn new_spare(&self) -> Result<UniqueArc<Live>> {
        let live = self.live(&EventMutex::lock());
        Live::new(self.like(&live), true)
    }

    /// Keeps an empty spare map; drops it if there is one, if no file needs it, or if the present map has another size.
    pub(super) fn put_spare(&self, spare: UniqueArc<Live>, held: &EventMutexHeld) {
        let epochs = self.epochs.get(held);
        let fits = self.live(held).map.shape() == spare.map.shape();
        if fits && epochs.readers > 0 && epochs.spare.is_none() {
            epochs.spare = Some(spare);
        }
    }

    /// Returns whether an epoch can be claimed without allocating a map.
    pub(super) fn is_ready(&self, held: &EventMutexHeld) -> bool {
        let epochs = self.epochs.get(held);
        epochs.spare.is_some() || epochs.retired.is_some()
    }

    /// Returns whether a reader has claimed an epoch that it has not received yet.
    pub(super) fn is_claimed(&self, held: &EventMutexHeld) -> bool {
        let retired = &self.epochs.get(held).retired;
        retired.as_ref().is_some_and(|retired| retired.is_claimed)
    }

    /// Returns whether there is an epoch with hits to claim.
    pub(super) fn has_unread(&self, held: &EventMutexHeld) -> bool {
        let used = self.live(held).map.used();
        let epochs = self.epochs.get(held);
        match &epochs.retired {
            Some(retired) => !retired.is_claimed,
            None => used != 0 || !epochs.older.is_empty(),
        }
    }

    /// Prepares everything that [`Table::claim`] needs. Returns `EBUSY` unless the caller has checked
    /// [`Table::is_ready`] and [`Table::is_claimed`] before, under the same lock.
    pub(super) fn next_claim(&self, now: &Moment, held: &EventMutexHeld) -> Result<Claimable> {
        if let Some(retired) = &self.epochs.get(held).retired {
            return match retired.is_claimed {
                true => Err(EBUSY),
                false => Ok(Claimable {
                    maps: retired.maps.clone(),
                    epoch: retired.epoch,
                    spare: None,
                }),
            };
        }
        let maps = self.maps(held)?;
        let epochs = self.epochs.get(held);
        Ok(Claimable {
            maps,
            epoch: epochs.present(now),
            spare: Some(epochs.spare.take().ok_or(EBUSY)?),
        })
    }

    /// Claims the ended epoch; without one, ends the present epoch and claims it. Its maps are complete after
    /// [`wait_for_hits`]. The mutex must not have been released since [`Table::next_claim`] returned `next`.
    pub(super) fn claim(
        table: Arc<Self>,
        next: Claimable,
        now: &Moment,
        held: &EventMutexHeld,
    ) -> Claim {
        let Claimable { maps, epoch, spare } = next;
        if let Some(spare) = spare {
            drop(table.exchange(spare.into(), held));
            drop(table.begin(held));
            let epochs = table.epochs.get(held);
            epochs.retired = Some(Retired {
                maps: maps.clone(),
                epoch,
                is_claimed: false,
            });
            epochs.advance(now);
        }
        if let Some(retired) = table.epochs.get(held).of_claim(&maps) {
            retired.is_claimed = true;
        }
        Claim {
            table,
            maps: Some(maps),
        }
    }
}

/// An epoch that can be claimed.
pub(super) struct Claimable {
    maps: Arc<Maps>,
    pub(super) epoch: Epoch,
    /// The map for the epoch after it; `None` if the claimed epoch has ended already.
    spare: Option<UniqueArc<Live>>,
}

/// Operations for tables that get another map because theirs is crowded.
impl Table {
    /// Whether the table may ever get a larger map.
    pub(super) fn may_grow(&self) -> bool {
        self.form.dimensions.bits < self.form.dimensions.grows_to
    }

    /// Returns whether the table may ever get another map because its map is crowded or its starts expire.
    pub(super) fn is_replaced(&self) -> bool {
        self.may_grow() || self.expires()
    }

    /// Returns how often the table has grown, if it may grow.
    pub(super) fn grown(&self, held: &EventMutexHeld) -> Option<Grown> {
        self.may_grow().then(|| self.epochs.get(held).grown)
    }

    /// Requests another map for the table. Called by hits.
    #[cold]
    #[inline(never)]
    pub(super) fn ask_for_room(&self) {
        // ORDERING: the word is only a hint, here and below: a hit that reads an old value asks once too often, or
        // leaves the request to the next hit that finds the map crowded.
        if self.room.load(Relaxed) == CONTENT {
            self.room.store(WANTING, Relaxed);
            work::ask();
        }
    }

    /// Returns whether a hit has requested another map.
    pub(super) fn wants_room(&self) -> bool {
        // ORDERING: a hit stores the request before it calls `work::ask`; queueing the work orders the store before its
        // run.
        self.room.load(Relaxed) == WANTING
    }

    /// Sets the state of requests; hits from now on may change it.
    fn leave_room(&self, room: u32) {
        // ORDERING: the word is only a hint: a hit that inserts into a crowded map later asks again.
        self.room.store(room, Relaxed);
    }

    /// Repeats the request for a larger map if it failed for lack of memory.
    pub(super) fn try_again(&self) {
        // ORDERING: the word is only a hint: only the thread that calls this leaves the state `FAILED`.
        if self.room.load(Relaxed) == FAILED {
            self.room.store(WANTING, Relaxed);
        }
    }

    /// Returns the number of the last turn that the thread has given to the table.
    pub(super) fn last_turn(&self, held: &EventMutexHeld) -> u64 {
        self.epochs.get(held).turn
    }

    /// Records the number of the turn that the thread gives to the table.
    pub(super) fn set_last_turn(&self, turn: u64, held: &EventMutexHeld) {
        self.epochs.get(held).turn = turn;
    }

    /// Returns whether some counts of the table are missing in the maps that readers get.
    pub(super) fn is_growing(&self, held: &EventMutexHeld) -> bool {
        self.epochs.get(held).is_growing
    }

    /// Returns the largest number of elements that a map of the table may have.
    fn most_elts(&self) -> usize {
        let Dimensions { bits, grows_to, .. } = self.form.dimensions;
        1 << bits.max(grows_to)
    }

    /// Returns the form of a map with the size of `live`.
    fn like(&self, live: &Live) -> MapForm {
        self.form.with_bits(live.map.shape().elts.trailing_zeros())
    }

    /// Allocates a map for the keys of `old` and those that it has refused: at least four times as large, or as large
    /// as the table may be; if there is no memory for that, a smaller one.
    fn larger(&self, old: &Live) -> Result<UniqueArc<Live>> {
        let taken_over = self.epochs.get(&EventMutex::lock()).refused;
        let wanted = old.map.wanted(taken_over).min(self.most_elts());
        let bits = old.map.shape().elts.trailing_zeros();
        let most = wanted.next_power_of_two().trailing_zeros().max(bits + 1);
        let mut larger = (bits + 1..=most).rev();
        let next = larger.find_map(|bits| Live::new(self.form.with_bits(bits), false).ok());
        if next.is_none() {
            self.epochs.get(&EventMutex::lock()).grown.failed += 1;
        }
        next.ok_or(ENOMEM)
    }

    /// Gives the table a larger map, if it still needs one; `ENOMEM` if there is no memory. See `tracing_map/grow.rs`
    /// for the steps. Only one thread may call this.
    ///
    /// Hits make no requests until the larger map is there, so after a failure the next attempt does not follow at
    /// once.
    pub(super) fn grow(&self) -> Result {
        let old = self.live(&EventMutex::lock());
        if !old.map.is_crowded() || old.map.shape().elts >= self.most_elts() {
            self.leave_room(CONTENT);
            return Ok(());
        }
        let mut next = self.larger(&old).inspect_err(|_| self.leave_room(FAILED))?;
        let program = &self.definition.program;
        let fixed = program.fixed_words();
        let has_variables = self.form.dimensions.aux_words > usize::from(fixed);
        next.map.reserve_for(&old.map);
        for slots in old.map.slot_ranges() {
            next.map.take_keys(&old.map, slots, fixed);
        }
        if has_variables {
            // ORDERING: `exchange` publishes this store together with the address of the map; hits find the pointer
            // only there.
            next.replaced.store(Arc::as_ptr(&old).cast_mut(), Relaxed);
        }
        let next = Arc::from(next);
        {
            let held = EventMutex::lock();
            self.leave_room(CONTENT);
            // The table may have been cleared, or consumed.
            if !Arc::ptr_eq(&self.live(&held), &old) {
                return Ok(());
            }
            drop(self.exchange(next.clone(), &held));
            let epochs = self.epochs.get(&held);
            epochs.grown.times += 1;
            epochs.is_growing = true;
        }
        wait_for_hits();
        for slots in old.map.slot_ranges() {
            let preempt = PreemptGuard::new();
            let carry = |new: &[_], old: &[_]| program.carry(new, old);
            next.map
                .take_rows(&old.map, slots, preempt.proof().cpu(), fixed, carry);
        }
        {
            let preempt = PreemptGuard::new();
            next.map.take_account(&old.map, preempt.proof().cpu());
        }
        next.map.release(&old.map);
        {
            let held = EventMutex::lock();
            if Arc::ptr_eq(&self.live(&held), &next) {
                self.epochs.get(&held).refused = old.map.refused();
            }
        }
        if has_variables {
            // ORDERING: pairs with `Acquire` in `Live::replaced`: a hit that does not see the old map sees all
            // variables here.
            next.replaced.store(null_mut(), Release);
            wait_for_hits();
        }
        self.epochs.get(&EventMutex::lock()).is_growing = false;
        Ok(())
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // ORDERING: no other context uses the table any more.
        let live = self.live.load(Relaxed);
        // SAFETY: by the type invariant, and the table drops its reference here.
        drop(unsafe { Arc::from_raw(live) });
    }
}

/// One reader's claim on an ended epoch. If the reader does not receive it, another reader does.
pub(super) struct Claim {
    table: Arc<Table>,
    /// The maps of the epoch, until the claim is settled.
    maps: Option<Arc<Maps>>,
}

impl Claim {
    /// Returns the maps; `None` once the claim is settled.
    pub(super) fn maps(&self) -> Option<&Maps> {
        self.maps.as_deref()
    }

    /// Ends the claim of a reader that has received the rows: their counts are added to those of earlier epochs, and
    /// the map is reused. Takes `event_mutex`.
    pub(super) fn settle(&mut self) {
        let Some(maps) = self.maps.take() else {
            return;
        };
        let account = maps.account(&self.table.definition.program);
        {
            let held = EventMutex::lock();
            let epochs = self.table.epochs.get(&held);
            // If the table was cleared meanwhile, its counts have restarted without this epoch.
            if epochs.of_claim(&maps).is_some() {
                epochs.retired = None;
                epochs.before = epochs.before.plus(&account);
            }
            epochs.is_consumed = true;
        }
        // A reader that still uses the map then owns it alone.
        let live = maps.live();
        drop(maps);
        if let Some(spare) = emptied(live) {
            self.table.put_spare(spare, &EventMutex::lock());
        }
        // Another reader may wait for the next epoch.
        poll::wake();
    }
}

impl Drop for Claim {
    /// Takes `event_mutex`, unless the claim is settled.
    fn drop(&mut self) {
        let Some(maps) = self.maps.take() else {
            return;
        };
        if let Some(own) = self.table.epochs.get(&EventMutex::lock()).of_claim(&maps) {
            own.is_claimed = false;
        }
        // Pollers were told that there is nothing to read, which now changes.
        poll::wake();
    }
}
