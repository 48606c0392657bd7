// SPDX-License-Identifier: GPL-2.0

//! The paths of hits, and the table from which the path of a trigger is chosen.
//!
//! A path is an instance of [`hit`] or [`joined`] whose constants say which steps it has; the other steps leave no code.
//! [`paths`] lists them; [`select`] takes the first that has all that a trigger needs, and the last one has everything.
//! A new shape of triggers is a line in [`paths`].
//!
//! Context: [`select`] process; the paths any, NMI included, with preemption off. They never allocate, sleep, lock or
//! panic.

use core::marker::PhantomData;

use crate::{
    limits::{
        C_KEYS_MAX,
        KEYS_MAX,
        NUMBERS_MAX,
        REFS_MAX, //
    },
    tracing_map::{
        Ending,
        NumCell, //
    }, //
};

use super::{
    exec::{
        Columns,
        Context,
        Copied,
        KeyForm,
        MoreWords,
        Stack,
        StackField,
        Words, //
    },
    hit::{
        count,
        hit,
        joined,
        MissedIn,
        Outcome, //
    },
    needs::{
        KeyKind,
        Needs,
        ACTIONS,
        AGED,
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
        TEXT_REFS,
        VALS_ANY,
        VALS_EXPRS,
        VARS,
        VARS_ANY,
        VARS_EXPRS,
        VARS_NAME,
        VARS_STACK,
        VARS_STAMP,
        VARS_TEXT,
        WHOLE_KEY, //
    }, //
};

/// A path for hits that need the bytes of the record and the CPU, but no time stamp and no event.
pub trait RecordPath {
    /// The type that handles a hit for which this path returns [`Outcome::Redo`].
    type Rest: RecordRest;

    /// Handles a hit if its key is in the map, or if the map is full; returns [`Outcome::Redo`] otherwise.
    fn hit<'c, C: Context<'c>>(cx: C) -> Outcome<MissedIn<'c, C>>;
}

/// Handles the hits that a [`RecordPath`] does not. Their key is made of the record and the CPU alone, so computing it
/// again gives the same key.
pub trait RecordRest {
    /// Handles a hit for which the path has found no entry.
    fn hit<'c, C: Context<'c>>(cx: C, missed: MissedIn<'c, C>);
}

/// A path for triggers of any kind.
pub trait HitPath {
    /// The path that handles a hit for which this one returns [`Outcome::Redo`].
    type Rest: HitPath;

    /// Handles a hit if its key is in the map, if the map is full, or if it is ignored; else returns [`Outcome::Redo`].
    fn hit<'c, C: Context<'c>>(cx: C) -> Outcome<MissedIn<'c, C>>;
}

/// A path for triggers most of whose hits find the only variable that they read unset: [`LookPath::look`] ends such
/// hits after one lookup.
pub trait LookPath {
    /// Looks up the variable, and returns it if it is set. If it is unset, counts and ends the call, and returns
    /// `None`.
    fn look<'c, C: Context<'c>>(cx: C) -> Option<NumCell<'c>>;

    /// Handles a hit whose variable was set when [`LookPath::look`] looked.
    fn rest<'c, C: Context<'c>>(cx: C, found: NumCell<'c>);
}

/// The path with keys `K` and `STEPS`, for triggers that read no variable of another trigger.
pub(super) struct OfRecord<K, const STEPS: u32>(PhantomData<K>);

impl<K: KeyForm, const STEPS: u32> RecordPath for OfRecord<K, STEPS> {
    type Rest = RestOfRecord<K>;

    #[inline(always)]
    fn hit<'c, C: Context<'c>>(cx: C) -> Outcome<MissedIn<'c, C>> {
        const { assert!(STEPS & !OF_ANY_RECORD == 0) };
        hit::<K, C, 0, STEPS, 0, false>(cx, None, None)
    }
}

/// The rest of each [`OfRecord`] path with keys `K`.
pub(super) struct RestOfRecord<K>(PhantomData<K>);

impl<K: KeyForm> RecordRest for RestOfRecord<K> {
    #[inline(always)]
    fn hit<'c, C: Context<'c>>(cx: C, missed: MissedIn<'c, C>) {
        hit::<K, C, 0, OF_ANY_RECORD, 0, true>(cx, None, Some(missed));
    }
}

/// Steps of a [`RecordPath`] without variables.
const PLAIN: u32 = KEY_TEXT | NESTED | SHARED;
/// Steps of a [`RecordPath`] without variables whose keys may be buckets.
const WITH_PARTS: u32 = PLAIN | KEY_PARTS;
/// Steps of a [`RecordPath`] that keeps more statistics than the sums of two numbers.
const WITH_TALLIES: u32 = WITH_PARTS | ALL_TALLIES;
/// Steps of a [`RecordPath`] with variables.
const WITH_VARS: u32 = PLAIN | VARS | VARS_TEXT;
/// Steps of a [`RecordPath`] without variables that computes expressions.
const WITH_EXPRS: u32 = WITH_PARTS | KEY_EXPRS | VALS_EXPRS;
/// Steps of a [`RecordPath`] with variables that computes expressions.
const OF_RECORD_ALONE: u32 = WITH_VARS | WITH_EXPRS | VARS_EXPRS | VARS_NAME;
/// Steps of any [`RecordPath`].
const OF_ANY_RECORD: u32 = OF_RECORD_ALONE | SUMS | ALL_TALLIES;

/// The path with keys `K`, at most `REFS` variables of other triggers, and `STEPS`.
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

/// The path with keys `K` and all steps except for numbers computed once, [`TALLIES`], and variables of tables that
/// [change](CHANGING); also the rest of each [`Path`] with these keys.
pub(super) struct General<K>(PhantomData<K>);

impl<K: KeyForm> HitPath for General<K> {
    type Rest = Self;

    #[inline(always)]
    fn hit<'c, C: Context<'c>>(cx: C) -> Outcome<MissedIn<'c, C>> {
        hit::<K, C, REFS_MAX, FOR_ALL, 0, true>(cx, None, None)
    }
}

/// The path with keys `K`, at most one variable of another trigger, a few numbers computed once, and `STEPS`.
pub(super) struct WithValues<K, const STEPS: u32>(PhantomData<K>);

impl<K: KeyForm, const STEPS: u32> HitPath for WithValues<K, STEPS> {
    type Rest = Settled;

    #[inline(always)]
    fn hit<'c, C: Context<'c>>(cx: C) -> Outcome<MissedIn<'c, C>> {
        // Maxima and other statistics need a stack frame in any case, so these paths insert keys themselves.
        match const { STEPS & TALLIES } {
            0 => hit::<K, C, 1, STEPS, FEW_NUMBERS, false>(cx, None, None),
            _ => hit::<K, C, 1, STEPS, FEW_NUMBERS, true>(cx, None, None),
        }
    }
}

/// Room for the list of numbers, enough for most triggers that have such a list.
const FEW_NUMBERS: usize = 4;

/// The path with keys `K`, at most one variable of another trigger that is looked up by the key `J`, a few numbers
/// computed once, and `STEPS`.
pub(super) struct Joined<K, J, const STEPS: u32>(PhantomData<(K, J)>);

impl<K: KeyForm, J: KeyForm, const STEPS: u32> HitPath for Joined<K, J, STEPS> {
    type Rest = Settled;

    #[inline(always)]
    fn hit<'c, C: Context<'c>>(cx: C) -> Outcome<MissedIn<'c, C>> {
        joined::<K, J, C, 1, STEPS, FEW_NUMBERS>(cx)
    }
}

/// The path with short keys `K`, at most `REFS` variables of other triggers in tables that change, and `STEPS`.
pub(super) struct Changing<K, const REFS: usize, const STEPS: u32>(PhantomData<K>);

impl<K: KeyForm, const REFS: usize, const STEPS: u32> HitPath for Changing<K, REFS, STEPS> {
    type Rest = FromMoving<K>;

    #[inline(always)]
    fn hit<'c, C: Context<'c>>(cx: C) -> Outcome<MissedIn<'c, C>> {
        const { assert!(STEPS & !OF_MOVING == 0) };
        hit::<K, C, REFS, STEPS, 0, false>(cx, None, None)
    }
}

/// The path with short keys `K` and any variables of tables that change.
pub(super) struct FromMoving<K>(PhantomData<K>);

impl<K: KeyForm> HitPath for FromMoving<K> {
    type Rest = Self;

    #[inline(always)]
    fn hit<'c, C: Context<'c>>(cx: C) -> Outcome<MissedIn<'c, C>> {
        hit::<K, C, REFS_MAX, OF_MOVING, 0, true>(cx, None, None)
    }
}

/// The path with any keys and all steps, for triggers that read no variables of tables that change.
pub(super) struct Settled;

impl HitPath for Settled {
    type Rest = Self;

    #[inline(always)]
    fn hit<'c, C: Context<'c>>(cx: C) -> Outcome<MissedIn<'c, C>> {
        joined::<Copied, Copied, C, REFS_MAX, { EVERYTHING & !CHANGING }, NUMBERS_MAX>(cx)
    }
}

/// The path with any keys and all steps.
pub(super) struct Everything;

impl HitPath for Everything {
    type Rest = Self;

    #[inline(always)]
    fn hit<'c, C: Context<'c>>(cx: C) -> Outcome<MissedIn<'c, C>> {
        joined::<Copied, Copied, C, REFS_MAX, EVERYTHING, NUMBERS_MAX>(cx)
    }
}

/// The path with keys `K`, one variable of another trigger, and `STEPS`.
pub(super) struct Await<K, const STEPS: u32>(PhantomData<K>);

impl<K: KeyForm, const STEPS: u32> LookPath for Await<K, STEPS> {
    #[inline(always)]
    fn look<'c, C: Context<'c>>(cx: C) -> Option<NumCell<'c>> {
        const { assert!(STEPS & (KEY_ANY | WHOLE_KEY) == 0) };

        let mut room = <K::Room<'_, C>>::default();
        let (key, _) = K::key::<C, STEPS, false>(cx, 0, &[], &mut room);
        let only = cx.program().refs().first();
        let found = only.and_then(|only| match const { STEPS & AGED } {
            0 => only.find_only::<C, K, false>(cx, &key),
            _ => only.find_only::<C, K, true>(cx, &key),
        });

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

/// Turns a path into a function pointer: for the tracing core to call, or for a test.
pub trait Entry {
    /// The type of the function pointer.
    type Fn: Copy + 'static;

    /// Returns the function of a path that needs only the record.
    fn of_record<P: RecordPath>() -> Self::Fn;

    /// Returns the function of a path on which most hits end after a lookup.
    fn of_look<P: LookPath>() -> Self::Fn;

    /// Returns the function of a path of any kind.
    fn of<P: HitPath>() -> Self::Fn;
}

/// One row of the table of paths.
#[derive(Clone, Copy)]
pub struct Row<F> {
    /// The most that a trigger may need to take this path.
    pub offers: Needs,
    /// The path's function.
    pub enter: F,
}

const fn offer<K: KeyForm>(refs: usize, steps: u32) -> Needs {
    Needs {
        key: K::KIND,
        join: None,
        refs,
        numbers: 0,
        steps: steps
            // A path with `TALLIES` cannot keep two plain sums, unless its steps have `SUMS`, too.
            | match steps & TALLIES {
                0 => SUMS,
                _ => 0,
            }
            // In keys of columns a bucket is an expression, not a word.
            | match (K::KIND, steps & KEY_EXPRS) {
                (KeyKind::Columns | KeyKind::ManyColumns, 0) => KEY_TEXT,
                (KeyKind::Columns | KeyKind::ManyColumns, _) => KEY_TEXT | KEY_PARTS,
                _ => 0,
            },
    }
}

fn record<E: Entry, K: KeyForm, const STEPS: u32>() -> Row<E::Fn> {
    Row {
        offers: offer::<K>(0, STEPS | NO_REFS),
        enter: E::of_record::<OfRecord<K, STEPS>>(),
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

fn changing<E: Entry, K: KeyForm, const REFS: usize, const STEPS: u32>() -> Row<E::Fn> {
    Row {
        offers: offer::<K>(REFS, STEPS | NO_REFS),
        enter: E::of::<Changing<K, REFS, STEPS>>(),
    }
}

fn from_moving<E: Entry, K: KeyForm>() -> Row<E::Fn> {
    Row {
        offers: offer::<K>(REFS_MAX, OF_MOVING),
        enter: E::of::<FromMoving<K>>(),
    }
}

fn everything<E: Entry, P: HitPath, const STEPS: u32>() -> Row<E::Fn> {
    Row {
        offers: Needs {
            join: Some(KeyKind::Copied),
            numbers: NUMBERS_MAX,
            ..offer::<Copied>(REFS_MAX, STEPS)
        },
        enter: E::of::<P>(),
    }
}

/// The number of paths.
pub const PATHS: usize = 76;

// Sets of steps that rows offer, ordered by the size of their code.
const COMPUTED: u32 = KEY_EXPRS | KEY_ANY | VALS_EXPRS | VALS_ANY | STAMP;
const STAMPED: u32 = STAMP | VARS_STAMP;
const ANY_VARS: u32 = STAMPED | VARS | VARS_EXPRS | VARS_ANY;
const TEXTS: u32 = VARS_TEXT | VARS_NAME;
const FOR_ALL: u32 = EVERYTHING & !(KEY_VALUES | ALL_TALLIES | CHANGING);
/// Steps for tables that get other maps, to which not all variables are moved.
const CHANGING: u32 = MOVING | AGED;
const OF_MOVING: u32 =
    KEY_TEXT | COMPUTED | ANY_VARS | TEXTS | ACTIONS | TEXT_REFS | SHARED | NESTED | CHANGING;
const OF_EXPIRING: u32 = OF_MOVING & !MOVING;
const ANY_COLUMNS: u32 = KEY_TEXT | COMPUTED | SHARED | NESTED;
const VALUED: u32 = ANY_COLUMNS | KEY_VALUES;
/// Steps of a path with `join()`: any statistics of numbers, but no stored variables and no actions.
const JOINING: u32 = ANY_COLUMNS | SUMS | ALL_TALLIES;
const ALL_TALLIES: u32 = TALLIES | SEVERAL;

/// The paths. A trigger takes the first row that offers all it needs; the last row offers everything.
///
/// Each row is built when it is looked at: all rows together are too large for the stack of a task that creates a
/// trigger.
#[rustfmt::skip]
pub fn paths<E: Entry>() -> impl Iterator<Item = Row<E::Fn>> {
    let rows: &'static [fn() -> Row<E::Fn>; PATHS] = &const { [
        record::<E, Words<1>, 0>,
        record::<E, Words<2>, 0>,
        record::<E, Words<1>, { KEY_TEXT }>,
        record::<E, Words<2>, { KEY_TEXT }>,
        record::<E, Words<1>, { PLAIN }>,
        record::<E, Words<2>, { PLAIN }>,
        record::<E, Words<3>, { PLAIN }>,
        record::<E, Words<4>, { PLAIN }>,
        record::<E, Words<1>, { KEY_PARTS }>,
        record::<E, Words<1>, { WITH_EXPRS }>,
        record::<E, Words<2>, { WITH_EXPRS }>,
        record::<E, Words<1>, { TALLIES }>,
        record::<E, Words<1>, { WITH_TALLIES }>,
        record::<E, Words<2>, { WITH_TALLIES }>,
        record::<E, Words<1>, { VARS }>,
        record::<E, Words<2>, { VARS }>,
        record::<E, Words<1>, { WITH_VARS }>,
        record::<E, Words<2>, { WITH_VARS }>,
        record::<E, Words<1>, { OF_RECORD_ALONE }>,
        record::<E, Words<2>, { OF_RECORD_ALONE }>,
        record::<E, MoreWords, { WITH_EXPRS }>,
        record::<E, MoreWords, { WITH_TALLIES }>,
        record::<E, MoreWords, { OF_RECORD_ALONE }>,
        path::<E, Words<1>, 0, { STAMPED }>,
        path::<E, Words<2>, 0, { STAMPED }>,
        path::<E, Words<1>, 0, { ANY_COLUMNS | ANY_VARS }>,
        path::<E, Words<2>, 0, { ANY_COLUMNS | ANY_VARS }>,
        path::<E, MoreWords, 0, { ANY_COLUMNS }>,
        path::<E, Words<1>, 0, { VARS | VARS_STACK | SHARED }>,
        path::<E, Words<2>, 0, { VARS | VARS_STACK | SHARED }>,
        path::<E, Words<1>, 0, { VARS | ACTIONS }>,
        path::<E, Words<2>, 0, { VARS | ACTIONS }>,
        path::<E, Words<1>, 0, { KEY_TEXT | COMPUTED | ANY_VARS | TEXTS | ACTIONS | SHARED }>,
        path::<E, Words<2>, 0, { KEY_TEXT | COMPUTED | ANY_VARS | TEXTS | ACTIONS | SHARED }>,
        path::<E, Words<1>, 1, { STAMPED }>,
        path::<E, Words<1>, 1, { ANY_VARS }>,
        path::<E, Words<2>, 1, { ANY_VARS }>,
        path::<E, Words<1>, 1, { KEY_TEXT | ANY_VARS | ACTIONS | TEXT_REFS | SHARED }>,
        path::<E, Words<2>, 1, { KEY_TEXT | ANY_VARS | ACTIONS | TEXT_REFS | SHARED }>,
        awaits::<E, Words<1>, { ANY_VARS | ACTIONS | NESTED }>,
        awaits::<E, Words<2>, { ANY_VARS | ACTIONS | NESTED }>,
        general::<E, Words<1>>,
        general::<E, Words<2>>,
        general::<E, MoreWords>,
        path::<E, Columns<C_KEYS_MAX>, 0, { SHARED }>,
        path::<E, Columns<C_KEYS_MAX>, 0, { COMPUTED | SHARED | NESTED }>,
        path::<E, Columns<C_KEYS_MAX>, 1, { COMPUTED | ANY_VARS | ACTIONS | TEXT_REFS | SHARED }>,
        general::<E, Columns<C_KEYS_MAX>>,
        path::<E, StackField, 0, { SHARED | NESTED }>,
        general::<E, StackField>,
        path::<E, Stack, 0, 0>,
        general::<E, Stack>,
        general::<E, Copied>,
        values::<E, Words<1>, { VALUED | ANY_VARS }>,
        values::<E, Words<2>, { VALUED | ANY_VARS }>,
        values::<E, Columns<C_KEYS_MAX>, { VALUED | ALL_TALLIES }>,
        values::<E, Columns<KEYS_MAX>, { VALUED | SUMS | ALL_TALLIES }>,
        values::<E, Words<1>, { VALUED | ALL_TALLIES }>,
        values::<E, Words<2>, { VALUED | ALL_TALLIES }>,
        joins::<E, Words<1>, Words<1>, { JOINING }>,
        joins::<E, Words<2>, Words<1>, { JOINING }>,
        joins::<E, Words<3>, Words<1>, { JOINING }>,
        joins::<E, Words<1>, Words<2>, { ANY_COLUMNS }>,
        joins::<E, Words<2>, Words<2>, { ANY_COLUMNS }>,
        everything::<E, Settled, { EVERYTHING & !CHANGING }>,
        changing::<E, Words<1>, 1, { ANY_VARS | AGED }>,
        changing::<E, Words<2>, 1, { ANY_VARS | AGED }>,
        awaits::<E, Words<1>, { ANY_VARS | ACTIONS | NESTED | AGED }>,
        awaits::<E, Words<2>, { ANY_VARS | ACTIONS | NESTED | AGED }>,
        changing::<E, Words<1>, REFS_MAX, { OF_EXPIRING }>,
        changing::<E, Words<2>, REFS_MAX, { OF_EXPIRING }>,
        joins::<E, Words<1>, Words<1>, { JOINING | AGED }>,
        joins::<E, Words<2>, Words<2>, { ANY_COLUMNS | AGED }>,
        from_moving::<E, Words<1>>,
        from_moving::<E, Words<2>>,
        everything::<E, Everything, EVERYTHING>,
    ] };

    rows.iter().map(|row| row())
}

/// Chooses the path for hits with these needs: the first row that offers all of them.
pub fn select<E: Entry>(needs: &Needs) -> E::Fn {
    let found = paths::<E>().find(|row| needs.are_covered_by(&row.offers));

    debug_assert!(found.is_some());
    // The last row offers everything, so a row is always found.
    found.map_or_else(E::of::<Everything>, |row| row.enter)
}
