// SPDX-License-Identifier: GPL-2.0

//! The hit as one generic function, and the table of its instances, the paths.
//!
//! C counterpart: `event_hist_trigger()` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//!
//! A path is an instance of [`hit`] whose constants say which steps it has; the other steps leave no code. [`paths`]
//! lists the paths; [`select`] takes the first that offers what a trigger needs, and the last one offers everything. A
//! new shape of triggers is a line in [`paths`].
//!
//! Each call ends in exactly one count of the account of the trigger's map.
//!
//! Context: any, NMI included, with preemption off. Never allocates, sleeps, locks or panics.

use core::marker::PhantomData;

use crate::{
    limits::{
        C_KEYS_MAX,
        C_KEY_WORDS_MAX,
        KEYS_MAX,
        KEY_WORDS_MAX,
        NUMBERS_MAX,
        REFS_MAX, //
    },
    tracing_map::{
        Elt,
        Ending,
        Key,
        Lookup,
        Map,
        MapView,
        NumCell,
        Values, //
    }, //
};

use super::{
    eval::{
        Inputs,
        NUMBERS,
        OF_RECORD, //
    },
    exec::{
        Columns,
        Context,
        Copied,
        Hit,
        KeyForm,
        RefKey,
        Stack,
        StackField,
        Unset,
        Words, //
    },
    needs::{
        KeyKind,
        Needs,
        ACTIONS,
        EVERYTHING,
        KEY_ANY,
        KEY_EXPRS,
        KEY_PARTS,
        KEY_TEXT,
        KEY_VALUES,
        MOVING,
        NESTED,
        NO_REFS,
        SEVERAL,
        SHARED,
        STAMP,
        SUMS,
        TALLIES,
        VALS_ANY,
        VALS_EXPRS,
        VARS,
        VARS_ANY,
        VARS_EXPRS,
        VARS_NAME,
        VARS_OTHER,
        VARS_STACK,
        VARS_STAMP,
        VARS_TEXT,
        WHOLE_KEY, //
    }, //
};

/// Whether a path has handled a hit; `M` says what it has missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<M> {
    /// The call is counted: as a hit, dropped or ignored.
    Done,
    /// The path has changed nothing, and the caller must run its `Rest`, which inserts the key.
    Redo(M),
}

/// Where the lookup of a key has ended that a path has not found, as in [`Lookup::Absent`], and in which map: another one
/// may have taken its place, in whose slots the key is elsewhere. It does not say the hash, too: to keep that for the few
/// hits that want it takes a register of all others.
pub struct Missed<'m, S, H> {
    map: &'m Map<S, H>,
    at: usize,
}

impl<S, H> Clone for Missed<'_, S, H> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S, H> Copy for Missed<'_, S, H> {}

/// What a path in `C` may have missed.
pub type MissedIn<'c, C> = Missed<'c, <C as Context<'c>>::Storage, <C as Context<'c>>::Hash>;

/// The computation of numbers that all others may be made of.
const VALUES: u32 = KEY_VALUES;

/// Values that are no plain numbers of the record.
const COMPUTED_VALS: u32 = VALS_EXPRS | VALS_ANY;

/// Steps that write the aux words of the element.
const IN_ENTRY: u32 = VARS
    | VARS_STAMP
    | VARS_EXPRS
    | VARS_ANY
    | VARS_TEXT
    | VARS_NAME
    | VARS_STACK
    | VARS_OTHER
    | ACTIONS;

/// Handles one hit. `K` is the form of the key, `REFS` the most references that the trigger may have, `STEPS` the other
/// steps, `ROOM` the most numbers that are computed once. With `LAST` false it returns [`Outcome::Redo`] for a key that
/// is not in the map. `found` is the variable that [`LookPath::look`] has found, `missed` what another path says of the
/// same key of the same record.
#[inline(always)]
fn hit<'c, K, C, const REFS: usize, const STEPS: u32, const ROOM: usize, const LAST: bool>(
    cx: C,
    found: Option<NumCell<'c>>,
    missed: Option<MissedIn<'c, C>>,
) -> Outcome<MissedIn<'c, C>>
where
    K: KeyForm,
    C: Context<'c>,
{
    let map = match missed {
        Some(missed) => missed.map.view(),
        None => cx.map(),
    };

    if const { STEPS & NESTED != 0 } && cx.is_too_deep() {
        return count::<C, STEPS>(cx, map, Ending::DroppedNested);
    }

    // The key, and what it is made of.
    let mut stamp = 0;
    if const { stamp_comes_before(STEPS, ROOM) == KEY_ANY } {
        stamp = cx.program().stamp(&cx);
    }
    let mut numbers = [0; ROOM];
    let values_first = values_first::<C, STEPS, false>(cx, stamp, &mut numbers);
    let mut room = <K::Room<'_, C>>::default();
    let known = match const { ROOM } {
        0 => &[][..],
        _ => &numbers,
    };
    let key = K::key::<C, STEPS, false>(cx, stamp, known, &mut room);
    let hash = key.hash(map.hash());
    let seen = match missed {
        Some(missed) => Some(Lookup::Absent(missed.at)),
        None if LAST => None,
        None => Some(map.find(&key, hash)),
    };
    if let (false, Some(Lookup::Absent(at))) = (LAST, seen) {
        return Outcome::Redo(Missed { map: map.map(), at });
    }

    // The variables of other triggers, and the numbers that are computed once.
    let (mut only, mut many) = ([0], None);
    let refs = read::<K, C, REFS, STEPS, false>(cx, key, hash, found, &mut only, &mut many);
    let Ok(refs) = refs else {
        return count::<C, STEPS>(cx, map, Ending::Ignored);
    };
    let refs = match refs {
        _ if const { ROOM == 0 } => refs,
        // Nothing has changed.
        _ if values_first && cx.program().refs().is_empty() => &numbers,
        _ => {
            if const { stamp_comes_before(STEPS, ROOM) == VALUES } {
                stamp = cx.program().stamp(&cx);
            }
            with_values(cx, stamp, refs, &mut numbers)
        }
    };

    let elt = match seen {
        _ if LAST => enter::<K, C>(cx, map, key, hash, seen),
        Some(Lookup::Found(elt)) => Ok(elt),
        // What is not there has been left to another call.
        _ => Err(Ending::DroppedFull),
    };
    let elt = match elt {
        Ok(elt) => elt,
        Err(ending) => return count::<C, STEPS>(cx, map, ending),
    };
    let whole = match const { STEPS & WHOLE_KEY } {
        0 => &[],
        _ => K::whole(&key),
    };

    leave::<C, STEPS, ROOM>(cx, map, stamp, refs, elt, whole)
}

/// Handles one hit of a trigger that looks for variables of others by the key `J`, before the key of its row is known.
/// It cannot be left to another call: the variables may have been taken.
#[inline(always)]
fn joined<'c, K, J, C, const REFS: usize, const STEPS: u32, const ROOM: usize>(
    cx: C,
) -> Outcome<MissedIn<'c, C>>
where
    K: KeyForm,
    J: KeyForm,
    C: Context<'c>,
{
    let map = cx.map();

    if const { STEPS & NESTED != 0 } && cx.is_too_deep() {
        return count::<C, STEPS>(cx, map, Ending::DroppedNested);
    }

    // The variables of other triggers.
    let mut stamp = 0;
    if const { STEPS & STAMP != 0 && STEPS & KEY_VALUES != 0 } {
        stamp = cx.program().stamp(&cx);
    }
    let mut numbers = [0; ROOM];
    values_first::<C, STEPS, true>(cx, stamp, &mut numbers);
    let mut lookup_room = <J::Room<'_, C>>::default();
    let lookup = J::key::<C, 0, true>(cx, stamp, &numbers, &mut lookup_room);
    let (mut only, mut many) = ([0], None);
    let hash = lookup.hash(map.hash());
    let refs = read::<J, C, REFS, STEPS, true>(cx, lookup, hash, None, &mut only, &mut many);
    let Ok(refs) = refs else {
        return count::<C, STEPS>(cx, map, Ending::Ignored);
    };

    // What is computed of them, and the key.
    if const { STEPS & STAMP != 0 && STEPS & KEY_VALUES == 0 } {
        stamp = cx.program().stamp(&cx);
    }
    let refs = with_values(cx, stamp, refs, &mut numbers);
    let elt = match const { K::KIND } {
        KeyKind::Words(_) => enter_row::<K, C, STEPS>(cx, map, stamp, refs),
        _ => enter_apart::<K, C, STEPS>(cx, map, stamp, refs),
    };
    let elt = match elt {
        Ok(elt) => elt,
        Err(ending) => return count::<C, STEPS>(cx, map, ending),
    };
    let whole = match const { STEPS & WHOLE_KEY } {
        0 => &[],
        _ => J::whole(&lookup),
    };

    leave::<C, STEPS, ROOM>(cx, map, stamp, refs, elt, whole)
}

/// Computes the numbers that are computed once if the key is made of them by which variables of other triggers are
/// looked for; returns whether it is.
#[inline(always)]
fn values_first<'c, C: Context<'c>, const STEPS: u32, const LOOKUP: bool>(
    cx: C,
    stamp: u64,
    numbers: &mut [u64],
) -> bool {
    let is_so =
        const { STEPS & KEY_VALUES != 0 } && cx.program().key_of::<LOOKUP>().plan.has_values;

    if is_so {
        cx.program().compute_values(cx, stamp, numbers);
    }
    is_so
}

/// Reads the variables of other triggers, by the key of the row or by another one: `LOOKUP`.
#[inline(always)]
fn read<'h, 'c, K, C, const REFS: usize, const STEPS: u32, const LOOKUP: bool>(
    cx: C,
    key: K::Key<'_>,
    hash: u64,
    found: Option<NumCell<'c>>,
    only: &'h mut [u64; 1],
    many: &'h mut Option<[u64; REFS_MAX]>,
) -> Result<&'h [u64], Unset>
where
    K: KeyForm,
    C: Context<'c>,
{
    match cx.program().refs() {
        _ if const { REFS == 0 } => Ok(&[]),
        _ if const { STEPS & MOVING != 0 } => {
            let copy = key;

            cx.program().read_moving(
                cx,
                RefKey::<K, LOOKUP>::new(&copy, hash),
                many.insert([0; REFS_MAX]),
            )
        }
        [reference, more @ ..] if const { REFS == 1 } || more.is_empty() => {
            let number = match found {
                Some(cell) => reference.read_found(cell),
                None => reference.read_only(cx, &RefKey::<K, LOOKUP>::new(&key, hash)),
            };

            *only = [number.unwrap_or(0)];
            number.map(|_| &only[..])
        }
        // As many as if there were one, so that their number is known.
        [] => Ok(&only[..]),
        _ => {
            if const { REFS > 1 } {
                // A copy, so that the key needs no place in memory where there are fewer.
                let copy = key;

                cx.program().read_refs(
                    cx,
                    RefKey::<K, LOOKUP>::new(&copy, hash),
                    many.insert([0; REFS_MAX]),
                )
            } else {
                // There is one at most.
                Ok(&only[..])
            }
        }
    }
}

/// Puts the variables of other triggers into `numbers`, and behind them the numbers that are computed once.
#[inline(always)]
fn with_values<'h, 'c, C: Context<'c>, const ROOM: usize>(
    cx: C,
    stamp: u64,
    refs: &[u64],
    numbers: &'h mut [u64; ROOM],
) -> &'h [u64] {
    for (place, number) in numbers.iter_mut().zip(refs) {
        *place = *number;
    }
    cx.program().compute_values(cx, stamp, numbers);
    numbers
}

/// Finds the entry with the key of the row, or makes it.
#[inline(always)]
fn enter_row<'c, K: KeyForm, C: Context<'c>, const STEPS: u32>(
    cx: C,
    map: MapView<'c, C::Storage, C::Hash>,
    stamp: u64,
    refs: &[u64],
) -> Result<Elt, Ending> {
    let mut room = <K::Room<'_, C>>::default();
    let key = K::key::<C, STEPS, false>(cx, stamp, refs, &mut room);
    let hash = key.hash(map.hash());

    enter::<K, C>(cx, map, key, hash, None)
}

/// The same, in a frame of its own, which is gone when the rest of the hit runs: there is a long key in it.
#[inline(never)]
fn enter_apart<'c, K: KeyForm, C: Context<'c>, const STEPS: u32>(
    cx: C,
    map: MapView<'c, C::Storage, C::Hash>,
    stamp: u64,
    refs: &[u64],
) -> Result<Elt, Ending> {
    enter_row::<K, C, STEPS>(cx, map, stamp, refs)
}

/// Finds the entry with this key, `seen` if it has been looked for already, or makes it. The error is how the call ends.
#[inline(always)]
fn enter<'c, K: KeyForm, C: Context<'c>>(
    cx: C,
    map: MapView<'c, C::Storage, C::Hash>,
    key: K::Key<'_>,
    hash: u64,
    seen: Option<Lookup>,
) -> Result<Elt, Ending> {
    let seen = match seen {
        Some(seen) => seen,
        None => map.find(&key, hash),
    };

    match seen {
        Lookup::Found(elt) => Ok(elt),
        Lookup::Full => Err(Ending::DroppedFull),
        Lookup::Absent(at) => map
            .map()
            .insert_at(key, hash, at, cx.new_entry())
            .ok_or(Ending::DroppedFull),
    }
}

/// Leaves a hit in its entry. `whole` is the key by which variables of other triggers are looked for, if anything needs
/// it in one piece.
#[inline(always)]
fn leave<'c, C: Context<'c>, const STEPS: u32, const ROOM: usize>(
    cx: C,
    map: MapView<'c, C::Storage, C::Hash>,
    mut stamp: u64,
    refs: &[u64],
    elt: Elt,
    whole: &[u64],
) -> Outcome<MissedIn<'c, C>> {
    // The sums.
    if const { stamp_comes_before(STEPS, ROOM) == VALS_ANY } {
        stamp = cx.program().stamp(&cx);
    }
    let inputs = Inputs {
        record: cx.record(),
        env: cx,
        stamp,
        refs,
    };
    let shard = map.shard(cx.cpu(), STEPS & SHARED != 0);
    let sums = Sums::<C, STEPS> { inputs };
    let program = cx.program();
    let has_tallies = match const { STEPS & (SUMS | TALLIES) } {
        0 | SUMS => false,
        TALLIES => true,
        _ => program.plan.has_tallies,
    };
    let left = match const { STEPS & SEVERAL } {
        _ if !has_tallies => {
            shard.hit(elt, &sums);
            None
        }
        0 => shard.keep::<false>(elt, &program.tallies, &sums),
        _ => shard.keep::<true>(elt, &program.tallies, &sums),
    };
    if let Some(from) = left {
        match const { STEPS & COMPUTED_VALS } {
            0 => cx.keep_rest(map.map(), elt, from),
            _ => keep_computed(cx, map.map(), stamp, refs, elt, from),
        }
    }

    // Variables and actions.
    if const { STEPS & IN_ENTRY != 0 } {
        if const { stamp_comes_before(STEPS, ROOM) == IN_ENTRY } {
            stamp = cx.program().stamp(&cx);
        }
        map.with_aux(
            elt,
            #[inline(always)]
            |aux| {
                let hit = Hit {
                    cx,
                    map: map.map(),
                    stamp,
                    refs,
                    key: whole,
                    aux,
                };

                hit.set_vars::<STEPS>();
                if const { STEPS & ACTIONS != 0 } {
                    hit.act::<STEPS>();
                }
            },
        );
    }

    cx.wake();
    Outcome::Done
}

/// The first step of a path that may need the time stamp. To read it takes a call, which a hit that ends before that
/// step does not make.
const fn stamp_comes_before(steps: u32, room: usize) -> u32 {
    match steps & STAMP {
        0 => 0,
        _ if steps & KEY_ANY != 0 => KEY_ANY,
        _ if room != 0 => VALUES,
        _ if steps & VALS_ANY != 0 => VALS_ANY,
        _ => IN_ENTRY,
    }
}

/// Counts a call that is no hit, and ends it.
#[inline(always)]
fn count<'c, C: Context<'c>, const STEPS: u32>(
    cx: C,
    map: MapView<'c, C::Storage, C::Hash>,
    ending: Ending,
) -> Outcome<MissedIn<'c, C>> {
    map.shard(cx.cpu(), STEPS & SHARED != 0).count(ending);
    Outcome::Done
}

/// The values of a hit, each computed when it is added.
struct Sums<'h, C, const STEPS: u32> {
    inputs: Inputs<'h, C>,
}

impl<'h, 'c: 'h, C: Context<'c>, const STEPS: u32> Values for Sums<'h, C, STEPS> {
    #[inline(always)]
    fn value(&self, i: usize) -> u64 {
        let Inputs { record, env, .. } = self.inputs;
        let plan = &env.program().plan;

        match (plan.vals.place(i), const { STEPS & COMPUTED_VALS }) {
            (None, _) => 0,
            (Some(value), 0) => {
                debug_assert!(value.is_plain());
                value.load(record, || env.cpu()).unwrap_or(0)
            }
            (Some(value), VALS_EXPRS) => plan.number::<OF_RECORD>(value, self.inputs),
            (Some(value), _) => plan.number::<NUMBERS>(value, self.inputs),
        }
    }
}

/// Keeps of a hit what few of them take: a new maximum, the square of a large number.
#[cold]
#[inline(never)]
fn keep_computed<'c, C: Context<'c>>(
    cx: C,
    map: &Map<C::Storage, C::Hash>,
    stamp: u64,
    refs: &[u64],
    elt: Elt,
    from: usize,
) {
    let inputs = Inputs {
        record: cx.record(),
        env: cx,
        stamp,
        refs,
    };

    keep::<C, VALS_ANY>(inputs, map, elt, from);
}

/// The same if all values are plain numbers of the record.
#[inline(always)]
pub fn keep_plain<'c, C: Context<'c>>(
    cx: C,
    map: &Map<C::Storage, C::Hash>,
    elt: Elt,
    from: usize,
) {
    keep::<C, 0>(Inputs::of_key(cx, 0, &[]), map, elt, from);
}

#[inline(always)]
fn keep<'c, C: Context<'c>, const STEPS: u32>(
    inputs: Inputs<'_, C>,
    map: &Map<C::Storage, C::Hash>,
    elt: Elt,
    from: usize,
) {
    let cx = inputs.env;

    map.shard(cx.cpu()).keep_rest(
        elt,
        &cx.program().tallies,
        &Sums::<C, STEPS> { inputs },
        from,
    );
}

/// A path whose hits need the bytes of the record and the CPU, but no time stamp and no event.
pub trait RecordPath {
    /// What handles a hit for which this path returns [`Outcome::Redo`].
    type Rest: RecordRest;

    /// Handles a hit whose key is in the map, or for which the map is full.
    fn hit<'c, C: Context<'c>>(cx: C) -> Outcome<MissedIn<'c, C>>;
}

/// What a [`RecordPath`] leaves. Its key is made of the record and the CPU alone, so that it is the same again.
pub trait RecordRest {
    /// Handles a hit whose key the path has missed.
    fn hit<'c, C: Context<'c>>(cx: C, missed: MissedIn<'c, C>);
}

/// A path for any triggers.
pub trait HitPath {
    /// The path that handles a hit for which this one returns [`Outcome::Redo`].
    type Rest: HitPath;

    /// Handles a hit whose key is in the map, for which the map is full, or which is ignored.
    fn hit<'c, C: Context<'c>>(cx: C) -> Outcome<MissedIn<'c, C>>;
}

/// A path for triggers most of whose hits find the only variable that they read unset: [`LookPath::look`] ends these
/// after one lookup.
pub trait LookPath {
    /// Looks the variable up, and returns it if it is set. If not, the call has been counted.
    fn look<'c, C: Context<'c>>(cx: C) -> Option<NumCell<'c>>;

    /// Handles a hit whose variable was set when [`LookPath::look`] looked.
    fn rest<'c, C: Context<'c>>(cx: C, found: NumCell<'c>);
}

/// Keys `K` and `STEPS`, for triggers that read no variable of another one. `REST` are the steps of the rest.
pub(super) struct OfRecord<K, const STEPS: u32, const REST: u32>(PhantomData<K>);

impl<K: KeyForm, const STEPS: u32, const REST: u32> RecordPath for OfRecord<K, STEPS, REST> {
    type Rest = RestOfRecord<K, REST>;

    #[inline(always)]
    fn hit<'c, C: Context<'c>>(cx: C) -> Outcome<MissedIn<'c, C>> {
        const { assert!(STEPS & !REST == 0 && REST & !(WITH_TALLIES | SUMS | OF_RECORD_ALONE) == 0) };
        hit::<K, C, 0, STEPS, 0, false>(cx, None, None)
    }
}

/// The rest of each such path.
pub(super) struct RestOfRecord<K, const REST: u32>(PhantomData<K>);

impl<K: KeyForm, const REST: u32> RecordRest for RestOfRecord<K, REST> {
    #[inline(always)]
    fn hit<'c, C: Context<'c>>(cx: C, missed: MissedIn<'c, C>) {
        hit::<K, C, 0, REST, 0, true>(cx, None, Some(missed));
    }
}

/// Steps of a [`RecordPath`] without variables.
const PLAIN: u32 = KEY_TEXT | NESTED | SHARED;
/// Steps of a [`RecordPath`] without variables whose keys may be buckets.
const WITH_PARTS: u32 = PLAIN | KEY_PARTS;
/// Steps of a [`RecordPath`] that keeps more than the sums of two numbers.
const WITH_TALLIES: u32 = WITH_PARTS | ALL_TALLIES;
/// Steps of a [`RecordPath`] with more words than a short key: it keeps whatever there is.
const MANY_WORDS: u32 = NESTED | SHARED | SUMS | ALL_TALLIES;
/// Steps of a [`RecordPath`] with variables.
const WITH_VARS: u32 = PLAIN | VARS | VARS_TEXT;
/// Steps of a [`RecordPath`] without variables that computes expressions.
const WITH_EXPRS: u32 = WITH_PARTS | KEY_EXPRS | VALS_EXPRS;
/// Steps of a [`RecordPath`] with variables that computes expressions.
const OF_RECORD_ALONE: u32 = WITH_VARS | WITH_EXPRS | VARS_EXPRS | VARS_NAME;

/// Keys `K`, at most `REFS` variables of other triggers, and `STEPS`.
pub(super) struct Path<K, const REFS: usize, const STEPS: u32>(PhantomData<K>);

impl<K: KeyForm, const REFS: usize, const STEPS: u32> HitPath for Path<K, REFS, STEPS> {
    type Rest = General<K>;

    #[inline(always)]
    fn hit<'c, C: Context<'c>>(cx: C) -> Outcome<MissedIn<'c, C>> {
        const { assert!(K::IS_WHOLE || STEPS & WHOLE_KEY == 0) };
        // Actions need a stack frame in any case, so a path with actions and no reference inserts keys itself.
        match const { REFS == 0 && STEPS & ACTIONS != 0 } {
            false => hit::<K, C, REFS, STEPS, 0, false>(cx, None, None),
            true => hit::<K, C, REFS, STEPS, 0, true>(cx, None, None),
        }
    }
}

/// Keys `K` and everything but numbers that are computed once, [`TALLIES`], and variables of tables that grow; and the rest
/// of each other path with these keys.
pub(super) struct General<K>(PhantomData<K>);

impl<K: KeyForm> HitPath for General<K> {
    type Rest = Self;

    #[inline(always)]
    fn hit<'c, C: Context<'c>>(cx: C) -> Outcome<MissedIn<'c, C>> {
        hit::<K, C, REFS_MAX, FOR_ALL, 0, true>(cx, None, None)
    }
}

/// Keys `K`, at most one variable of another trigger, some numbers that are computed once, and `STEPS`.
pub(super) struct WithValues<K, const STEPS: u32>(PhantomData<K>);

impl<K: KeyForm, const STEPS: u32> HitPath for WithValues<K, STEPS> {
    type Rest = Settled<KEY_WORDS_MAX>;

    #[inline(always)]
    fn hit<'c, C: Context<'c>>(cx: C) -> Outcome<MissedIn<'c, C>> {
        // Maxima and the like need a stack frame in any case.
        match const { STEPS & TALLIES } {
            0 => hit::<K, C, 1, STEPS, FEW_NUMBERS, false>(cx, None, None),
            _ => hit::<K, C, 1, STEPS, FEW_NUMBERS, true>(cx, None, None),
        }
    }
}

/// As many numbers in one list as most triggers have that have any.
const FEW_NUMBERS: usize = 4;

/// Keys `K`, at most one variable of another trigger that the key `J` finds, some numbers that are computed once, and
/// `STEPS`.
pub(super) struct Joined<K, J, const STEPS: u32>(PhantomData<(K, J)>);

impl<K: KeyForm, J: KeyForm, const STEPS: u32> HitPath for Joined<K, J, STEPS> {
    type Rest = Settled<KEY_WORDS_MAX>;

    #[inline(always)]
    fn hit<'c, C: Context<'c>>(cx: C) -> Outcome<MissedIn<'c, C>> {
        joined::<K, J, C, 1, STEPS, FEW_NUMBERS>(cx)
    }
}

/// Short keys `K`, and variables of tables that may be getting larger maps.
pub(super) struct FromMoving<K>(PhantomData<K>);

impl<K: KeyForm> HitPath for FromMoving<K> {
    type Rest = Self;

    #[inline(always)]
    fn hit<'c, C: Context<'c>>(cx: C) -> Outcome<MissedIn<'c, C>> {
        hit::<K, C, REFS_MAX, OF_MOVING, 0, true>(cx, None, None)
    }
}

/// Any keys of at most `WORDS` words and everything else, of triggers that read no variables of tables that grow.
pub(super) struct Settled<const WORDS: usize>;

impl<const WORDS: usize> HitPath for Settled<WORDS> {
    type Rest = Self;

    #[inline(always)]
    fn hit<'c, C: Context<'c>>(cx: C) -> Outcome<MissedIn<'c, C>> {
        joined::<Copied<WORDS>, Copied<WORDS>, C, REFS_MAX, { EVERYTHING & !MOVING }, NUMBERS_MAX>(
            cx,
        )
    }
}

/// Any keys of at most `WORDS` words and everything else.
pub(super) struct Everything<const WORDS: usize>;

impl<const WORDS: usize> HitPath for Everything<WORDS> {
    type Rest = Self;

    #[inline(always)]
    fn hit<'c, C: Context<'c>>(cx: C) -> Outcome<MissedIn<'c, C>> {
        joined::<Copied<WORDS>, Copied<WORDS>, C, REFS_MAX, EVERYTHING, NUMBERS_MAX>(cx)
    }
}

/// Keys `K`, one variable of another trigger, and `STEPS`.
pub(super) struct Await<K, const STEPS: u32>(PhantomData<K>);

impl<K: KeyForm, const STEPS: u32> LookPath for Await<K, STEPS> {
    #[inline(always)]
    fn look<'c, C: Context<'c>>(cx: C) -> Option<NumCell<'c>> {
        const { assert!(STEPS & (KEY_ANY | WHOLE_KEY) == 0) };

        let mut room = <K::Room<'_, C>>::default();
        let key = K::key::<C, STEPS, false>(cx, 0, &[], &mut room);
        let only = cx.program().refs().first();
        let found = only.and_then(|only| only.find_only::<C, K>(cx, &key));

        if found.is_none() {
            let ending = match cx.is_too_deep() {
                true => Ending::DroppedNested,
                false => Ending::Ignored,
            };

            count::<C, STEPS>(cx, cx.map(), ending);
        }
        found
    }

    #[inline(always)]
    fn rest<'c, C: Context<'c>>(cx: C, found: NumCell<'c>) {
        hit::<K, C, 1, STEPS, 0, true>(cx, Some(found), None);
    }
}

/// Turns a path into a function that can be stored: one that the tracing core calls, or one of a test.
pub trait Entry {
    /// That function.
    type Fn: Copy + 'static;

    /// That of a path that needs nothing but the record.
    fn of_record<P: RecordPath>() -> Self::Fn;

    /// That of a path where most hits need no more than a lookup.
    fn of_look<P: LookPath>() -> Self::Fn;

    /// That of any path.
    fn of<P: HitPath>() -> Self::Fn;
}

/// One row of the table.
#[derive(Clone, Copy)]
pub struct Row<F> {
    /// What the path offers.
    pub offers: Needs,
    /// Its function.
    pub enter: F,
}

const fn offer<K: KeyForm>(refs: usize, steps: u32) -> Needs {
    Needs {
        key: K::KIND,
        words: K::MOST_WORDS,
        join: None,
        refs,
        numbers: 0,
        // What keeps more than sums does not keep sums alone, unless it says so.
        steps: match steps & TALLIES {
            0 => steps | SUMS,
            _ => steps,
        },
    }
}

fn record<E: Entry, K: KeyForm, const STEPS: u32, const REST: u32>() -> Row<E::Fn> {
    Row {
        offers: offer::<K>(0, STEPS | NO_REFS),
        enter: E::of_record::<OfRecord<K, STEPS, REST>>(),
    }
}

fn path<E: Entry, K: KeyForm, const REFS: usize, const STEPS: u32>() -> Row<E::Fn> {
    Row {
        offers: offer::<K>(REFS, STEPS | NO_REFS),
        enter: E::of::<Path<K, REFS, STEPS>>(),
    }
}

fn awaits<E: Entry, K: KeyForm, const STEPS: u32>() -> Row<E::Fn> {
    Row {
        offers: offer::<K>(1, STEPS),
        enter: E::of_look::<Await<K, STEPS>>(),
    }
}

fn general<E: Entry, K: KeyForm>() -> Row<E::Fn> {
    let steps = match K::IS_WHOLE {
        true => FOR_ALL,
        false => FOR_ALL & !WHOLE_KEY,
    };

    Row {
        offers: offer::<K>(REFS_MAX, steps),
        enter: E::of::<General<K>>(),
    }
}

fn values<E: Entry, K: KeyForm, const STEPS: u32>() -> Row<E::Fn> {
    Row {
        offers: Needs {
            numbers: FEW_NUMBERS,
            ..offer::<K>(1, STEPS | NO_REFS)
        },
        enter: E::of::<WithValues<K, STEPS>>(),
    }
}

fn joins<E: Entry, K: KeyForm, J: KeyForm, const STEPS: u32>() -> Row<E::Fn> {
    Row {
        offers: Needs {
            join: Some(J::KIND),
            numbers: FEW_NUMBERS,
            ..offer::<K>(1, STEPS)
        },
        enter: E::of::<Joined<K, J, STEPS>>(),
    }
}

fn from_moving<E: Entry, K: KeyForm>() -> Row<E::Fn> {
    Row {
        offers: offer::<K>(REFS_MAX, OF_MOVING),
        enter: E::of::<FromMoving<K>>(),
    }
}

fn everything<E: Entry, P: HitPath, const WORDS: usize, const STEPS: u32>() -> Row<E::Fn> {
    Row {
        offers: Needs {
            join: Some(KeyKind::Copied),
            numbers: NUMBERS_MAX,
            ..offer::<Copied<WORDS>>(REFS_MAX, STEPS)
        },
        enter: E::of::<P>(),
    }
}

/// How many paths there are.
pub const PATHS: usize = 107;

// What rows offer, in the order of how much code it is.
const COMPUTED: u32 = KEY_EXPRS | KEY_ANY | VALS_EXPRS | VALS_ANY | STAMP;
const STAMPED: u32 = STAMP | VARS_STAMP;
const ANY_VARS: u32 = STAMPED | VARS | VARS_EXPRS | VARS_ANY;
const TEXTS: u32 = VARS_TEXT | VARS_NAME;
const FOR_ALL: u32 = EVERYTHING & !(KEY_VALUES | ALL_TALLIES | MOVING);
const OF_MOVING: u32 = KEY_TEXT | COMPUTED | ANY_VARS | ACTIONS | SHARED | NESTED | MOVING;
const JOINED: u32 = KEY_TEXT | COMPUTED | SHARED | NESTED;
const VALUED: u32 = JOINED | KEY_VALUES;
const ALL_TALLIES: u32 = TALLIES | SEVERAL;

/// The paths. The first row that offers what a trigger needs is its path; the last offers everything.
///
/// Each row is made when it is looked at: all together are too large for the stack of a task that makes a trigger.
#[rustfmt::skip]
pub fn paths<E: Entry>() -> impl Iterator<Item = Row<E::Fn>> {
    let rows: &'static [fn() -> Row<E::Fn>; PATHS] = &const { [
        record::<E, Words<1>, 0, PLAIN>,
        record::<E, Words<2>, 0, PLAIN>,
        record::<E, Words<3>, 0, PLAIN>,
        record::<E, Words<1>, { KEY_TEXT }, PLAIN>,
        record::<E, Words<2>, { KEY_TEXT }, PLAIN>,
        record::<E, Words<3>, { KEY_TEXT }, PLAIN>,
        record::<E, Words<4>, { KEY_TEXT }, PLAIN>,
        record::<E, Words<1>, { NESTED }, PLAIN>,
        record::<E, Words<2>, { NESTED }, PLAIN>,
        record::<E, Words<1>, { PLAIN }, PLAIN>,
        record::<E, Words<2>, { PLAIN }, PLAIN>,
        record::<E, Words<3>, { PLAIN }, PLAIN>,
        record::<E, Words<4>, { PLAIN }, PLAIN>,
        record::<E, Words<1>, { KEY_PARTS }, WITH_PARTS>,
        record::<E, Words<2>, { KEY_PARTS | KEY_TEXT }, WITH_PARTS>,
        record::<E, Words<3>, { KEY_PARTS | KEY_TEXT }, WITH_PARTS>,
        record::<E, Words<1>, { KEY_PARTS | NESTED }, WITH_PARTS>,
        record::<E, Words<2>, { KEY_PARTS | NESTED }, WITH_PARTS>,
        record::<E, Words<1>, { WITH_PARTS }, WITH_PARTS>,
        record::<E, Words<2>, { WITH_PARTS }, WITH_PARTS>,
        record::<E, Words<3>, { WITH_PARTS }, WITH_PARTS>,
        record::<E, Words<4>, { WITH_PARTS }, WITH_PARTS>,
        record::<E, Words<1>, { WITH_EXPRS }, WITH_EXPRS>,
        record::<E, Words<2>, { WITH_EXPRS }, WITH_EXPRS>,
        record::<E, Words<3>, { WITH_EXPRS }, WITH_EXPRS>,
        record::<E, Words<4>, { WITH_EXPRS }, WITH_EXPRS>,
        record::<E, Words<1>, { TALLIES }, WITH_TALLIES>,
        record::<E, Words<1>, { ALL_TALLIES }, WITH_TALLIES>,
        record::<E, Words<2>, { KEY_TEXT | TALLIES }, WITH_TALLIES>,
        record::<E, Words<1>, { WITH_TALLIES }, WITH_TALLIES>,
        record::<E, Words<2>, { WITH_TALLIES }, WITH_TALLIES>,
        record::<E, Words<3>, { WITH_TALLIES }, WITH_TALLIES>,
        record::<E, Words<4>, { WITH_TALLIES }, WITH_TALLIES>,
        record::<E, Words<5>, { MANY_WORDS }, MANY_WORDS>,
        record::<E, Words<6>, { MANY_WORDS }, MANY_WORDS>,
        record::<E, Words<7>, { MANY_WORDS }, MANY_WORDS>,
        record::<E, Words<8>, { MANY_WORDS }, MANY_WORDS>,
        record::<E, Words<1>, { VARS }, WITH_VARS>,
        record::<E, Words<2>, { VARS }, WITH_VARS>,
        record::<E, Words<1>, { VARS | NESTED | SHARED }, WITH_VARS>,
        record::<E, Words<2>, { VARS | NESTED | SHARED }, WITH_VARS>,
        record::<E, Words<3>, { VARS | KEY_TEXT | NESTED | SHARED }, WITH_VARS>,
        record::<E, Words<4>, { VARS | KEY_TEXT | NESTED | SHARED }, WITH_VARS>,
        record::<E, Words<1>, { KEY_TEXT | VARS | VARS_TEXT | SHARED }, WITH_VARS>,
        record::<E, Words<2>, { KEY_TEXT | VARS | VARS_TEXT | SHARED }, WITH_VARS>,
        record::<E, Words<1>, { OF_RECORD_ALONE }, OF_RECORD_ALONE>,
        record::<E, Words<2>, { OF_RECORD_ALONE }, OF_RECORD_ALONE>,
        record::<E, Words<3>, { OF_RECORD_ALONE }, OF_RECORD_ALONE>,
        record::<E, Words<4>, { OF_RECORD_ALONE }, OF_RECORD_ALONE>,
        path::<E, Words<1>, 0, { STAMPED }>,
        path::<E, Words<2>, 0, { STAMPED }>,
        path::<E, Words<1>, 0, { COMPUTED | ANY_VARS }>,
        path::<E, Words<2>, 0, { COMPUTED | ANY_VARS }>,
        path::<E, Words<1>, 0, { KEY_TEXT | COMPUTED | SHARED | NESTED }>,
        path::<E, Words<2>, 0, { KEY_TEXT | COMPUTED | SHARED | NESTED }>,
        path::<E, Words<3>, 0, { KEY_TEXT | COMPUTED | SHARED | NESTED }>,
        path::<E, Words<4>, 0, { KEY_TEXT | COMPUTED | SHARED | NESTED }>,
        path::<E, Words<1>, 0, { VARS | VARS_STACK | SHARED }>,
        path::<E, Words<2>, 0, { VARS | VARS_STACK | SHARED }>,
        path::<E, Words<1>, 0, { VARS | ACTIONS | WHOLE_KEY }>,
        path::<E, Words<2>, 0, { VARS | ACTIONS | WHOLE_KEY }>,
        path::<E, Words<3>, 0, { KEY_TEXT | VARS | ACTIONS | WHOLE_KEY | SHARED }>,
        path::<E, Words<1>, 0, { KEY_TEXT | COMPUTED | ANY_VARS | TEXTS | ACTIONS | WHOLE_KEY | SHARED }>,
        path::<E, Words<2>, 0, { KEY_TEXT | COMPUTED | ANY_VARS | TEXTS | ACTIONS | WHOLE_KEY | SHARED }>,
        path::<E, Words<1>, 1, { STAMPED }>,
        path::<E, Words<2>, 1, { STAMPED }>,
        path::<E, Words<1>, 1, { ANY_VARS }>,
        path::<E, Words<2>, 1, { ANY_VARS }>,
        path::<E, Words<1>, 1, { KEY_TEXT | ANY_VARS | ACTIONS | SHARED }>,
        path::<E, Words<2>, 1, { KEY_TEXT | ANY_VARS | ACTIONS | SHARED }>,
        awaits::<E, Words<1>, { ANY_VARS | ACTIONS | NESTED }>,
        awaits::<E, Words<2>, { ANY_VARS | ACTIONS | NESTED }>,
        general::<E, Words<1>>,
        general::<E, Words<2>>,
        general::<E, Words<3>>,
        general::<E, Words<4>>,
        path::<E, Columns<C_KEYS_MAX>, 0, { SHARED }>,
        path::<E, Columns<C_KEYS_MAX>, 0, { COMPUTED | SHARED | NESTED }>,
        path::<E, Columns<C_KEYS_MAX>, 1, { COMPUTED | ANY_VARS | ACTIONS | SHARED }>,
        general::<E, Columns<C_KEYS_MAX>>,
        path::<E, StackField, 0, { SHARED | NESTED }>,
        general::<E, StackField>,
        path::<E, Stack, 0, 0>,
        general::<E, Stack>,
        general::<E, Copied<C_KEY_WORDS_MAX>>,
        general::<E, Copied<KEY_WORDS_MAX>>,
        values::<E, Words<1>, { VALUED }>,
        values::<E, Words<2>, { VALUED }>,
        values::<E, Words<1>, { VALUED | ANY_VARS }>,
        values::<E, Words<2>, { VALUED | ANY_VARS }>,
        values::<E, Columns<C_KEYS_MAX>, { VALUED }>,
        values::<E, Columns<C_KEYS_MAX>, { VALUED | ALL_TALLIES }>,
        values::<E, Columns<KEYS_MAX>, { VALUED | SUMS | ALL_TALLIES }>,
        values::<E, Words<1>, { VALUED | ALL_TALLIES }>,
        values::<E, Words<2>, { VALUED | ALL_TALLIES }>,
        joins::<E, Words<1>, Words<1>, { JOINED }>,
        joins::<E, Words<2>, Words<1>, { JOINED }>,
        joins::<E, Words<3>, Words<1>, { JOINED }>,
        joins::<E, Words<1>, Words<2>, { JOINED }>,
        joins::<E, Words<2>, Words<2>, { JOINED }>,
        joins::<E, Words<1>, Words<1>, { JOINED | ALL_TALLIES }>,
        joins::<E, Words<2>, Words<1>, { JOINED | ALL_TALLIES }>,
        everything::<E, Settled<C_KEY_WORDS_MAX>, C_KEY_WORDS_MAX, { EVERYTHING & !MOVING }>,
        everything::<E, Settled<KEY_WORDS_MAX>, KEY_WORDS_MAX, { EVERYTHING & !MOVING }>,
        from_moving::<E, Words<1>>,
        from_moving::<E, Words<2>>,
        everything::<E, Everything<KEY_WORDS_MAX>, KEY_WORDS_MAX, EVERYTHING>,
    ] };

    rows.iter().map(|row| row())
}

/// Chooses the path for hits that need this: the first row that offers it.
pub fn select<E: Entry>(needs: &Needs) -> E::Fn {
    let found = paths::<E>().find(|row| needs.are_covered_by(&row.offers));

    debug_assert!(found.is_some());
    // The last row offers everything.
    found.map_or_else(E::of::<Everything<KEY_WORDS_MAX>>, |row| row.enter)
}
