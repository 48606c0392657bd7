// SPDX-License-Identifier: GPL-2.0

//! The tables of triggers: their memory, and how one map takes the place of another.
//!
//! A map takes the place of another one when the table is cleared, when an epoch of it ends, which a reader of
//! `hist_pipe` wants (`hist_trigger/pipe.rs`), when it grows (`hist_trigger/growth.rs`), and when starts in it expire
//! (`hist_trigger/storage/expiry.rs`). All of that happens under `event_mutex`. A map lives as long as somebody has it, the table or a reader, so whoever copies the rows of one needs no
//! lock.
//!
//! Context: process, may sleep. A failure is `ENOMEM`, and nothing has changed then.

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
        memory::Words,
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

/// The numbers of the hashes of all keys in all tables, set before the first table is made. A trigger looks for its
/// key in the tables of others, too, by a hash that is computed once.
static SEED: SetOnce<HashSeed> = SetOnce::new();

/// Chooses the numbers by `seed`, or at random if that is 0. Called once, when the module is loaded.
pub(crate) fn seed_hashes(seed: u64) {
    SEED.populate(match seed {
        0 => HashSeed::random(random::number),
        seed => HashSeed::new(seed),
    });
}

/// The form of the first map that a program needs.
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
                grows_to: program.grows_to().unwrap_or(0),
                expires: program.expiry().is_some(),
                others: program.others(),
                key_words: program.key_words(),
                aux_words: program.aux_words(),
                sums: program.sums(),
            },
            merge: *program.merge(),
        }
    }

    /// The same with another size.
    fn with_bits(self, bits: u32) -> Self {
        Self {
            dimensions: Dimensions {
                bits,
                ..self.dimensions
            },
            ..self
        }
    }

    /// The shape on this machine; `None` for dimensions that the language excludes.
    fn shape(&self) -> Option<Shape> {
        Shape::with(self.dimensions, self.merge, nr_cpu_ids())
    }
}

/// A map in memory of its own.
pub(super) type HistMap = Map<Words, SeededHash>;

/// A map, and how much memory it takes. Empty when the table gets it.
// The map comes first: instructions with small offsets are shorter.
#[repr(C)]
pub(super) struct Live {
    /// The map.
    pub(super) map: HistMap,
    /// The bytes that the words of the map take.
    word_bytes: usize,
    /// The one whose place it takes, while that may have variables that are not here. Whoever owns it, [`Table::grow`] or
    /// the table, gives it up a grace period after the address was taken away from here, or this one from the table.
    replaced: Atomic<*mut Live>,
}

impl Live {
    /// Allocates an empty map; `EINVAL` stands for dimensions that the language excludes. What a reader asks for is
    /// charged to his memory cgroup.
    fn new(form: Form, is_charged: bool) -> Result<UniqueArc<Self>> {
        let shape = form.shape().ok_or(EINVAL)?;
        let words = Words::zeros(shape.pairs(), shape.most_bytes(), is_charged)?;
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

    /// The one whose place it takes, for the length of one hit, if that may have variables that are not here. If there is
    /// none, all that are on their way have come, and whoever looks for them after the call finds them; or those before
    /// have expired.
    pub(super) fn replaced<'a>(&'a self, _preempt: PreemptOff<'a>) -> Option<&'a Self> {
        // ORDERING: pairs with the stores in `Table::grow` and `Table::succeed`: the old map is complete; or with what takes
        // it away: the variables are here.
        let replaced = self.replaced.load(Acquire);
        // SAFETY: null, or the address of a map that is neither freed nor emptied before a grace period after it was taken
        // away from here, or `self` from the table, which the hit has seen there; the hit holds that up.
        unsafe { replaced.as_ref() }
    }

    /// The bytes that it takes.
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.word_bytes
    }
}

/// An epoch that has ended, until a reader has been given its rows.
struct Retired {
    maps: Arc<Maps>,
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
    /// The one that readers have not been given yet. The next one ends when they have, so there is one at most.
    retired: Option<Retired>,
    /// The map of the next epoch, while files are open that may end this one.
    spare: Option<UniqueArc<Live>>,
    /// How many such files there are.
    readers: usize,
    /// The maps before that which hits go to, where starts expire, the oldest first, and what those before them have
    /// counted in this epoch.
    older: KVec<Arc<Live>>,
    gone: Account,
    /// How many of them were no longer the youngest when the generation before this one ended.
    old: usize,
    /// When this one is to end, in ns of the monotonic clock.
    due: u64,
    /// The calls without room that the map has taken over from a smaller one.
    refused: u64,
    /// What became of the table since it was made or cleared.
    grown: Grown,
    /// Some of what the map has to have is in another one still.
    is_growing: bool,
    /// The number of the last turn that the thread which gives tables other maps has given this one.
    turn: u64,
}

/// How often a table has got a larger map.
#[derive(Clone, Copy, Default)]
pub(super) struct Grown {
    pub(super) times: u64,
    /// How often there was no memory for one.
    pub(super) failed: u64,
    /// How often starts expired early, for want of room.
    pub(super) forced: u64,
}

/// What a table has said of the map that is to take the place of its own: nothing; that it wants one; that there was no memory for it.
const CONTENT: u32 = 0;
const WANTING: u32 = 1;
const FAILED: u32 = 2;

/// How much later an attempt comes after one that has failed for want of memory, in ms.
pub(super) const LATER_MS: u32 = 1000;

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

    /// The maps of the epoch that has ended, for a reader who has claimed it.
    fn of_claim(&mut self, maps: &Arc<Maps>) -> Option<&mut Retired> {
        self.retired
            .as_mut()
            .filter(|retired| Arc::ptr_eq(&retired.maps, maps))
    }
}

/// What a table has counted since it was made or cleared, to be added up without the mutex: that takes as many loads as all
/// shards have words.
pub(super) struct Counted {
    /// The maps of the present epoch.
    pub(super) maps: Arc<Maps>,
    /// The maps of an epoch that has ended and that no reader has been given yet.
    retired: Option<Arc<Maps>>,
    /// The sum of the epochs that readers have been given.
    before: Account,
}

impl Counted {
    /// What was counted before the present epoch began.
    pub(super) fn before(&self, program: &Program) -> Account {
        match &self.retired {
            Some(maps) => self.before.plus(&maps.account(program)),
            None => self.before,
        }
    }

    /// The hits.
    pub(super) fn hits(&self) -> u64 {
        let of = |maps: &Arc<Maps>| maps.account_hits();
        let retired = self.retired.as_ref().map_or(0, of);
        let hits = self.before.hits.wrapping_add(retired);
        hits.wrapping_add(of(&self.maps))
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
    /// That of the map that it was made with; another one may have more elements.
    form: Form,
    /// Whether it wants another map.
    room: Atomic<u32>,
    /// The trigger that the table was made for, which says where its variables are.
    definition: Arc<Definition>,
    /// The snapshot of the instance, if a trigger of the table takes it.
    snapshot: SetOnce<Snapshot>,
    epochs: Guarded<Epochs>,
}

/// Empties a map that no hit uses any more, unless somebody is still looking at it: he has it for himself then.
fn emptied(live: Arc<Live>) -> Option<UniqueArc<Live>> {
    let mut live = Pin::into_inner(Arc::into_unique_or_drop(live)?);
    live.map.empty();
    // ORDERING: nobody else has the map.
    live.replaced.store(null_mut(), Relaxed);
    Some(live)
}

/// Gives up a map, which its next owner gets by [`Arc::from_raw`].
fn into_raw(live: Arc<Live>) -> *mut Live {
    Arc::into_raw(live).cast_mut()
}

impl Table {
    /// Makes an empty table for a trigger.
    ///
    /// Not inlined: it is on this stack before it is in its place.
    #[inline(never)]
    pub(super) fn new(definition: Arc<Definition>) -> Result<Arc<Self>> {
        let form = Form::of(&definition.program);
        let due = expiry::after(&definition.program);
        let table = Self {
            // INVARIANT: the reference is given up here.
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

    /// The trigger that the table was made for.
    pub(super) fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Whether each CPU has a shard of its own in all maps of the table.
    pub(super) fn is_per_cpu(&self) -> bool {
        let Dimensions { bits, grows_to, .. } = self.form.dimensions;
        (bits..=grows_to.max(bits)).all(|bits| {
            let shape = self.form.with_bits(bits).shape();
            shape.is_some_and(|shape| shape.per_cpu())
        })
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

    /// What the table has counted, and will have counted when hits that are under way are over.
    pub(super) fn counted(&self, held: &EventMutexHeld) -> Result<Counted> {
        let maps = self.maps(held)?;
        let epochs = self.epochs.get(held);
        Ok(Counted {
            maps,
            retired: epochs.retired.as_ref().map(|retired| retired.maps.clone()),
            before: epochs.before,
        })
    }

    /// The bytes that the table takes.
    pub(super) fn bytes(&self, held: &EventMutexHeld) -> usize {
        let live = self.live(held);
        let epochs = self.epochs.get(held);
        let spare = epochs.spare.as_ref().map_or(0, |spare| spare.bytes());
        let older = epochs.older.iter().map(|live| live.bytes());
        let retired = epochs.retired.as_ref();
        let retired = retired.map_or(0, |retired| retired.maps.bytes());
        size_of::<Self>() + live.bytes() + spare + older.sum::<usize>() + retired
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
    fn exchange(&self, next: Arc<Live>, held: &EventMutexHeld) -> Arc<Live> {
        let epochs = self.epochs.get(held);
        epochs.refused = 0;
        epochs
            .spare
            .take_if(|spare| spare.map.shape() != next.map.shape());
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

    /// Allocates a spare map, as large as the present one, charged to the memory cgroup of the caller. Takes
    /// `event_mutex`.
    pub(super) fn new_spare(&self) -> Result<UniqueArc<Live>> {
        let live = self.live(&EventMutex::lock());
        Live::new(self.like(&live), true)
    }

    /// Keeps a spare map, which is empty, unless there is one, no file wants it, or the present one has another size.
    pub(super) fn put_spare(&self, spare: UniqueArc<Live>, held: &EventMutexHeld) {
        let epochs = self.epochs.get(held);
        let fits = self.live(held).map.shape() == spare.map.shape();
        if fits && epochs.readers > 0 && epochs.spare.is_none() {
            epochs.spare = Some(spare);
        }
    }

    /// Whether an epoch can be claimed without a further map.
    pub(super) fn is_ready(&self, held: &EventMutexHeld) -> bool {
        let epochs = self.epochs.get(held);
        epochs.spare.is_some() || epochs.retired.is_some()
    }

    /// Whether a reader has an epoch that he has not been given yet.
    pub(super) fn is_claimed(&self, held: &EventMutexHeld) -> bool {
        let retired = &self.epochs.get(held).retired;
        retired.as_ref().is_some_and(|retired| retired.is_claimed)
    }

    /// Whether an epoch can be claimed that has hits.
    pub(super) fn has_unread(&self, held: &EventMutexHeld) -> bool {
        let used = self.live(held).map.used();
        let epochs = self.epochs.get(held);
        match &epochs.retired {
            Some(retired) => !retired.is_claimed,
            None => used != 0 || !epochs.older.is_empty(),
        }
    }

    /// Gets all that [`Table::claim`] needs. `EBUSY` is for callers that have not asked [`Table::is_ready`] and
    /// [`Table::is_claimed`] before, under the same lock.
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

    /// Claims the epoch that has ended; if there is none, ends the present one. Its maps are complete when
    /// [`wait_for_hits`] has returned. The mutex was not given back since [`Table::next_claim`] returned `next`.
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
    /// The map of the one after it, if it has not ended.
    spare: Option<UniqueArc<Live>>,
}

/// For tables that get another map because theirs is crowded.
impl Table {
    /// Whether the table may ever get a larger map.
    pub(super) fn may_grow(&self) -> bool {
        self.form.dimensions.bits < self.form.dimensions.grows_to
    }

    /// Whether it may ever get another map because of what is in it.
    pub(super) fn is_replaced(&self) -> bool {
        self.may_grow() || self.expires()
    }

    /// What became of that, if it may.
    pub(super) fn grown(&self, held: &EventMutexHeld) -> Option<Grown> {
        self.may_grow().then(|| self.epochs.get(held).grown)
    }

    /// Has the table get another map, some time later. Called by hits.
    #[cold]
    #[inline(never)]
    pub(super) fn ask_for_room(&self) {
        // ORDERING: a hint by itself, here and below: who sees an old one asks once more than need be, or leaves it to the
        // next hit that finds the map crowded.
        if self.room.load(Relaxed) == CONTENT {
            self.room.store(WANTING, Relaxed);
            work::ask();
        }
    }

    /// Whether a hit has asked for another map.
    pub(super) fn wants_room(&self) -> bool {
        // ORDERING: a hit stores the request before it calls `work::ask`; queueing the work orders that before its run.
        self.room.load(Relaxed) == WANTING
    }

    /// Leaves what the table has said to the hits that come from now on.
    fn leave_room(&self, room: u32) {
        // ORDERING: a hint by itself: a hit that inserts into a crowded map later asks again.
        self.room.store(room, Relaxed);
    }

    /// Has the table ask once more for what there was no memory for.
    pub(super) fn try_again(&self) {
        // ORDERING: a hint by itself: only the thread that calls this leaves the state `FAILED`.
        if self.room.load(Relaxed) == FAILED {
            self.room.store(WANTING, Relaxed);
        }
    }

    /// The number of the last turn that the thread has given the table.
    pub(super) fn last_turn(&self, held: &EventMutexHeld) -> u64 {
        self.epochs.get(held).turn
    }

    /// Says that the thread gives the table its turn.
    pub(super) fn set_last_turn(&self, turn: u64, held: &EventMutexHeld) {
        self.epochs.get(held).turn = turn;
    }

    /// Whether some of what the table has counted is in none of its maps for readers.
    pub(super) fn is_growing(&self, held: &EventMutexHeld) -> bool {
        self.epochs.get(held).is_growing
    }

    /// The most elements that a map of the table has.
    fn most_elts(&self) -> usize {
        let Dimensions { bits, grows_to, .. } = self.form.dimensions;
        1 << bits.max(grows_to)
    }

    /// The form of a map that is as large as another one of the table.
    fn like(&self, live: &Live) -> Form {
        self.form.with_bits(live.map.shape().elts().ilog2())
    }

    /// Makes a map for the keys of another one and those that it has refused: at least four times as large, or as large as
    /// the table may be; if there is no memory for that, the next smaller one.
    fn larger(&self, old: &Live) -> Result<UniqueArc<Live>> {
        let taken_over = self.epochs.get(&EventMutex::lock()).refused;
        let wanted = old.map.wanted(taken_over).min(self.most_elts());
        let bits = old.map.shape().elts().ilog2();
        let most = wanted.next_power_of_two().ilog2().max(bits + 1);
        let mut larger = (bits + 1..=most).rev();
        let next = larger.find_map(|bits| Live::new(self.form.with_bits(bits), false).ok());
        if next.is_none() {
            self.epochs.get(&EventMutex::lock()).grown.failed += 1;
        }
        next.ok_or(ENOMEM)
    }

    /// Gives the table a larger map, if it still needs one; `ENOMEM` if there is no memory for it. `tracing_map/grow.rs` has
    /// the steps. For one thread.
    ///
    /// Hits ask for nothing until the larger map is there, so a failure is not followed by the next attempt at once.
    pub(super) fn grow(&self) -> Result {
        let old = self.live(&EventMutex::lock());
        if !old.map.is_crowded() || old.map.shape().elts() >= self.most_elts() {
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
            // ORDERING: hits see it with the address of the map, which `exchange` stores. They look there only.
            next.replaced.store(Arc::as_ptr(&old).cast_mut(), Relaxed);
        }
        let next = Arc::from(next);
        {
            let held = EventMutex::lock();
            self.leave_room(CONTENT);
            // It may have been cleared, or consumed.
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
            // ORDERING: pairs with `Acquire` in `Live::replaced`: who does not see the old map sees all variables here.
            next.replaced.store(null_mut(), Release);
            wait_for_hits();
        }
        self.epochs.get(&EventMutex::lock()).is_growing = false;
        Ok(())
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // ORDERING: nobody else uses the table any more.
        let live = self.live.load(Relaxed);
        // SAFETY: by the type invariant, and the table gives its reference up.
        drop(unsafe { Arc::from_raw(live) });
    }
}

/// An epoch that has ended, for one reader. If he is not given it, another one is.
pub(super) struct Claim {
    table: Arc<Table>,
    /// Its maps, until the claim is settled.
    maps: Option<Arc<Maps>>,
}

impl Claim {
    /// Its maps; `None` once the claim is settled.
    pub(super) fn maps(&self) -> Option<&Maps> {
        self.maps.as_deref()
    }

    /// Ends the claim of a reader who has been given the rows: what they count becomes part of what was counted before,
    /// and the map is used again. Takes `event_mutex`.
    pub(super) fn settle(&mut self) {
        let Some(maps) = self.maps.take() else {
            return;
        };
        let account = maps.account(&self.table.definition.program);
        {
            let held = EventMutex::lock();
            let epochs = self.table.epochs.get(&held);
            // Whoever has cleared the table meanwhile has begun to count anew.
            if epochs.of_claim(&maps).is_some() {
                epochs.retired = None;
                epochs.before = epochs.before.plus(&account);
            }
            epochs.is_consumed = true;
        }
        // Who is still looking at the map has it for himself then.
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
        // Whoever polls has been told that there is nothing to read.
        poll::wake();
    }
}
