// SPDX-License-Identifier: GPL-2.0

//! The generic function that executes a hit. Its instances are the paths of `program/paths.rs`.
//!
//! C counterpart: `event_hist_trigger()` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//!
//! Each call ends in exactly one count of the account of the trigger's map.
//!
//! Context: any, NMI included, with preemption off. Never allocates, sleeps, locks or panics.

use crate::tracing_map::{
    Elt,
    Ending,
    Key,
    Lookup,
    Loss,
    Map,
    MapView,
    NumCell,
    Values, //
};

use super::{
    eval::{
        Inputs,
        NUMBERS,
        OF_RECORD, //
    },
    exec::{
        Context,
        EntryHit,
        KeyForm,
        RefBuf,
        RefKey,
        Unset, //
    },
    needs::{
        KeyKind,
        ACTIONS,
        AGED,
        APART,
        IN_ENTRY,
        KEY_ANY,
        KEY_STAMP,
        KEY_VALUES,
        LAST,
        MOVING,
        NESTED,
        SEVERAL,
        SHARED,
        STAMP,
        SUMS,
        TALLIES,
        VALS_ANY,
        VALS_EXPRS, //
    }, //
};

/// Whether a path has handled a hit; `M` is the failed lookup that it passes on if not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<M> {
    /// The call is counted: as a hit, dropped or ignored.
    Done,
    /// The path has changed nothing, and the caller must run its `Rest`, which inserts the key.
    Redo(M),
}

/// The failed lookup of a key by a path: the slot where it ended, as in [`Lookup::Absent`], and the map, as another map
/// may since have replaced it. The hash is not kept: few hits need it again, and all others would lose a register.
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

/// The failed lookup of a path that runs in the context `C`.
pub type MissedIn<'c, C> = Missed<'c, <C as Context<'c>>::Storage, <C as Context<'c>>::Hash>;

/// Values that are no plain numbers of the record.
const COMPUTED_VALS: u32 = VALS_EXPRS | VALS_ANY;

/// Handles one hit. `K` is the form of the key, `REFS` the most references of the trigger, `STEPS` the other steps,
/// `ROOM` the most numbers computed once. Without [`LAST`] it returns [`Outcome::Redo`] for a key that is not in the
/// map. `found` is the variable that [`LookPath::look`] has found, `missed` another path's failed lookup for this hit.
#[inline(always)]
pub(super) fn hit<'c, K, C, const REFS: usize, const STEPS: u32, const ROOM: usize>(
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

    // The key, after the numbers that it depends on. Reading the time stamp takes a call, so a hit reads it as late as
    // possible: it may end before.
    let mut stamp = 0;
    if const { STEPS & KEY_STAMP != 0 && STEPS & KEY_ANY != 0 } {
        stamp = key_stamp(cx);
    }
    let mut numbers = [0; ROOM];
    let values_first = values_first::<C, STEPS, false>(cx, stamp, &mut numbers);
    let mut room = <K::Room<'_, C>>::default();
    let known = match const { ROOM } {
        0 => &[][..],
        _ => &numbers,
    };
    let (key, cuts) = K::key::<C, STEPS, false>(cx, stamp, known, &mut room);
    let hash = key.hash(map.hash());
    let is_last = const { STEPS & LAST != 0 };
    let seen = match missed {
        Some(missed) => Some(Lookup::Absent(missed.at)),
        None if is_last => None,
        None => Some(map.find(&key, hash)),
    };
    if let (false, Some(Lookup::Absent(at))) = (is_last, seen) {
        return Outcome::Redo(Missed { map: map.map(), at });
    }

    // Then the variables of other triggers are read, and the numbers computed once.
    let (mut only, mut many) = ([0], RefBuf::Empty);
    let refs = read::<K, C, REFS, STEPS>(cx, key, hash, found, &mut only, &mut many);
    let Ok(refs) = refs else {
        return count::<C, STEPS>(cx, map, Ending::Ignored);
    };
    let refs = match refs {
        _ if const { ROOM == 0 } => refs,
        // `numbers` holds them already: they were computed for the key, and there are no references.
        _ if values_first && cx.program().refs.is_empty() => &numbers,
        _ => {
            if const { STEPS & KEY_STAMP != 0 && STEPS & KEY_ANY == 0 } {
                stamp = key_stamp(cx);
            }
            with_values(cx, stamp, refs, &mut numbers)
        }
    };

    let elt = match seen {
        _ if is_last => enter::<K, C>(cx, map, key, hash, seen),
        Some(Lookup::Found(elt)) => Ok(elt),
        // An absent key was passed to another path above, so the map is full.
        _ => Err(Ending::DroppedFull),
    };
    let elt = match elt {
        Ok(elt) => elt,
        Err(ending) => return count::<C, STEPS>(cx, map, ending),
    };

    if cuts != 0 {
        count_cuts::<C>(map.map(), cx.cpu(), cuts);
    }
    go_on::<C, STEPS>(cx, map, refs, elt)
}

/// Handles one hit of a trigger with `join()`, which looks up variables of other triggers by the key `J`, before the
/// row's key is known. No other path can redo the hit, as the variables may have been consumed.
#[inline(always)]
pub(super) fn joined<'c, K, J, C, const REFS: usize, const STEPS: u32, const ROOM: usize>(
    cx: C,
) -> Outcome<MissedIn<'c, C>>
where
    K: KeyForm,
    J: KeyForm,
    C: Context<'c>,
{
    // `RefKey` takes the number of words from the key itself, or else from the key of the row, which is another key here.
    const { assert!(J::KIND.is_whole()) };

    let map = cx.map();

    if const { STEPS & NESTED != 0 } && cx.is_too_deep() {
        return count::<C, STEPS>(cx, map, Ending::DroppedNested);
    }

    // The variables of other triggers are read first.
    let mut stamp = 0;
    if const { STEPS & KEY_STAMP != 0 && STEPS & KEY_VALUES != 0 } {
        stamp = key_stamp(cx);
    }
    let mut numbers = [0; ROOM];
    values_first::<C, STEPS, true>(cx, stamp, &mut numbers);
    let mut lookup_room = <J::Room<'_, C>>::default();
    let (lookup, _) = J::key::<C, 0, true>(cx, stamp, &numbers, &mut lookup_room);
    let (mut only, mut many) = ([0], RefBuf::Empty);
    let hash = lookup.hash(map.hash());
    let refs = read::<J, C, REFS, STEPS>(cx, lookup, hash, None, &mut only, &mut many);
    let Ok(refs) = refs else {
        return count::<C, STEPS>(cx, map, Ending::Ignored);
    };

    // The numbers that depend on these variables, and the key.
    if const { STEPS & KEY_STAMP != 0 && STEPS & KEY_VALUES == 0 } {
        stamp = key_stamp(cx);
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

    go_on::<C, STEPS>(cx, map, refs, elt)
}

/// Returns the time stamp for the numbers of a key and those that are computed once.
#[inline(always)]
fn key_stamp<'c>(cx: impl Context<'c>) -> u64 {
    let program = cx.program();

    program.stamp(&cx, program.plan.has_key_stamp)
}

/// Runs the back of the hit: inlined here or, with [`APART`], the function that the trigger has for it.
#[inline(always)]
fn go_on<'c, C: Context<'c>, const STEPS: u32>(
    cx: C,
    map: MapView<'c, C::Storage, C::Hash>,
    refs: &[u64],
    elt: Elt,
) -> Outcome<MissedIn<'c, C>> {
    match const { STEPS & APART } {
        0 => leave::<C, STEPS>(cx, map, refs, elt),
        _ => cx.leave(map.map(), elt, refs),
    }
    Outcome::Done
}

/// Computes the numbers of the hit that are computed once, if the key for looking up variables has any of them; returns
/// whether it has.
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

/// Reads the variables of other triggers, by the key of the row, or by the key of `join()`.
#[inline(always)]
fn read<'h, 'c, K, C, const REFS: usize, const STEPS: u32>(
    cx: C,
    key: K::Key<'_>,
    hash: u64,
    found: Option<NumCell<'c>>,
    only: &'h mut [u64; 1],
    many: &'h mut RefBuf,
) -> Result<&'h [u64], Unset>
where
    K: KeyForm,
    C: Context<'c>,
{
    match &cx.program().refs[..] {
        _ if const { REFS == 0 } => Ok(&[]),
        _ if const { STEPS & MOVING != 0 } => {
            let copy = key;

            cx.program()
                .read_moving(cx, RefKey::<K, true>::new(&copy, hash), many)
        }
        _ if const { STEPS & AGED != 0 } => {
            read_settled::<K, C, REFS, true>(cx, key, hash, found, only, many)
        }
        _ => read_settled::<K, C, REFS, false>(cx, key, hash, found, only, many),
    }
}

/// Reads the variables of other triggers where none of their tables is moving.
#[inline(always)]
fn read_settled<'h, 'c, K, C, const REFS: usize, const AGED: bool>(
    cx: C,
    key: K::Key<'_>,
    hash: u64,
    found: Option<NumCell<'c>>,
    only: &'h mut [u64; 1],
    many: &'h mut RefBuf,
) -> Result<&'h [u64], Unset>
where
    K: KeyForm,
    C: Context<'c>,
{
    match &cx.program().refs[..] {
        [reference, more @ ..] if const { REFS == 1 } || more.is_empty() => {
            let number = match found {
                Some(cell) => reference.read_found(cell),
                None => reference.read_only(cx, &RefKey::<K, AGED>::new(&key, hash)),
            };

            *only = [number.unwrap_or(0)];
            number.map(|_| &only[..])
        }
        // A slice of the same length as for one reference, so that the compiler knows the length.
        [] => Ok(&only[..]),
        _ => {
            if const { REFS > 1 } {
                // The copy lets paths with one reference keep the key in registers.
                let copy = key;

                cx.program()
                    .read_refs(cx, RefKey::<K, AGED>::new(&copy, hash), many)
            } else {
                // Paths with `REFS == 1` have at most one reference.
                Ok(&only[..])
            }
        }
    }
}

/// Copies the variables of other triggers to `numbers`, and computes after them the numbers that are computed once.
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

/// Finds the entry with the key of the row, or creates it.
#[inline(always)]
fn enter_row<'c, K: KeyForm, C: Context<'c>, const STEPS: u32>(
    cx: C,
    map: MapView<'c, C::Storage, C::Hash>,
    stamp: u64,
    refs: &[u64],
) -> Result<Elt, Ending> {
    let mut room = <K::Room<'_, C>>::default();
    let (key, cuts) = K::key::<C, STEPS, false>(cx, stamp, refs, &mut room);
    let hash = key.hash(map.hash());

    let elt = enter::<K, C>(cx, map, key, hash, None)?;

    if cuts != 0 {
        count_cuts::<C>(map.map(), cx.cpu(), cuts);
    }
    Ok(elt)
}

/// Calls [`enter_row`] in a stack frame of its own, so that a long key does not take stack during the rest of the hit.
#[inline(never)]
fn enter_apart<'c, K: KeyForm, C: Context<'c>, const STEPS: u32>(
    cx: C,
    map: MapView<'c, C::Storage, C::Hash>,
    stamp: u64,
    refs: &[u64],
) -> Result<Elt, Ending> {
    enter_row::<K, C, STEPS>(cx, map, stamp, refs)
}

/// Finds the entry with this key, or creates it; `seen` is the result of an earlier lookup. The error is how the call
/// ends.
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

/// Counts `cuts` strings that did not fit into the key of a hit. Takes no context, whose parts would then have to be
/// kept until here.
#[cold]
#[inline(never)]
fn count_cuts<'c, C: Context<'c>>(map: &Map<C::Storage, C::Hash>, cpu: u32, cuts: usize) {
    // CAST: `usize` has at most 64 bits.
    map.shard(cpu).lose(Loss::Cut, cuts as u64);
}

/// Leaves a hit in its entry. `refs` are the numbers of [`Inputs`].
#[inline(always)]
pub(super) fn leave<'c, C: Context<'c>, const STEPS: u32>(
    cx: C,
    map: MapView<'c, C::Storage, C::Hash>,
    refs: &[u64],
    elt: Elt,
) {
    // To read the time stamp takes a call, so it comes before there is anything to be kept in registers.
    let program = cx.program();
    let stamp = match const { STEPS & STAMP } {
        0 => 0,
        _ => program.stamp(&cx, program.plan.has_stamp),
    };

    // The sums.
    let inputs = Inputs::new(cx, stamp, refs);
    let shard = map.shard(cx.cpu(), STEPS & SHARED != 0);
    let sums = Sums::<C, STEPS> { inputs };
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

    // Then variables are stored and actions run.
    if const { STEPS & IN_ENTRY != 0 } {
        map.with_aux(
            elt,
            #[inline(always)]
            |aux| {
                let hit = EntryHit {
                    cx,
                    map: map.map(),
                    elt,
                    stamp,
                    refs,
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
}

/// Counts a call that is dropped or ignored, and ends it.
#[inline(always)]
pub(super) fn count<'c, C: Context<'c>, const STEPS: u32>(
    cx: C,
    map: MapView<'c, C::Storage, C::Hash>,
    ending: Ending,
) -> Outcome<MissedIn<'c, C>> {
    map.shard(cx.cpu(), STEPS & (SHARED | APART) != 0)
        .count(ending);
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

        match (plan.vals.places().get(i), const { STEPS & COMPUTED_VALS }) {
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

/// Keeps statistics that few hits change: a new maximum, the square of a large number.
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
    keep::<C, VALS_ANY>(Inputs::new(cx, stamp, refs), map, elt, from);
}

/// Keeps statistics that few hits change, if all values are plain numbers of the record.
#[inline(always)]
pub fn keep_plain<'c, C: Context<'c>>(
    cx: C,
    map: &Map<C::Storage, C::Hash>,
    elt: Elt,
    from: usize,
) {
    keep::<C, 0>(Inputs::new(cx, 0, &[]), map, elt, from);
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
