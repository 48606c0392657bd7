// SPDX-License-Identifier: GPL-2.0

//! Tables of fronts and of backs, from which each trigger gets its path: the functions that handle its hits.
//!
//! A path has two parts. The front computes the key, reads the variables of other triggers and finds the element; it is
//! an instance of [`hit`] or [`joined`]. The back adds to the sums, sets the variables and runs the actions; it is an
//! instance of [`leave`]. The constants of an instance say which steps it has; the other steps leave no code. A front that
//! has [`APART`] calls the back of its trigger through a pointer. A few fronts, for the triggers that most people use, do
//! the work of a back themselves.
//!
//! [`paths`] has the fronts. [`backs_of_record`] has the backs for fronts that need nothing but the record, [`backs`]
//! those for all others. [`select`] takes the first row of each table that covers the needs of a trigger; the last row
//! offers everything. A new key form is a row of [`paths`]; a new step after the lookup is a row of [`backs`], and of
//! [`backs_of_record`] if it needs nothing but the record.
//!
//! Context: [`select`] process; the paths any, NMI included, with preemption off. They never allocate, sleep, lock or
//! panic.

use core::marker::PhantomData;

use crate::{
    limits::{
        NUMBERS_MAX,
        REFS_MAX, //
    },
    tracing_map::{
        Elt,
        Ending,
        Map,
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
        leave,
        MissedIn,
        Outcome, //
    },
    needs::{
        KeyKind,
        Needs,
        ACTIONS,
        AGED,
        APART,
        BACK,
        EVERYTHING,
        KEY_ANY,
        KEY_EXPRS,
        KEY_PARTS,
        KEY_STAMP,
        KEY_VALUES,
        LAST,
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
        VARS_STAMP,
        VARS_TEXT,
        WHOLE_KEY, //
    }, //
};

/// A path that says what it offers.
pub trait Offers {
    /// The most that a trigger of this path may need.
    const OFFERS: Needs;
}

/// A path whose hits need the bytes of the record and the CPU, but no time stamp and no event.
pub trait RecordPath: Offers {
    /// What handles a hit for which this path returns [`Outcome::Redo`].
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

/// A path for any triggers.
pub trait HitPath: Offers {
    /// The path that handles a hit for which this one returns [`Outcome::Redo`].
    type Rest: HitPath;

    /// Handles a hit if its key is in the map, if the map is full, or if it is ignored; else returns [`Outcome::Redo`].
    fn hit<'c, C: Context<'c>>(cx: C) -> Outcome<MissedIn<'c, C>>;
}

/// A path for triggers most of whose hits find the only variable that they read unset: [`LookPath::look`] ends these
/// after one lookup.
pub trait LookPath: Offers {
    /// Looks the variable up, and returns it if it is set. If not, the call has been counted.
    fn look<'c, C: Context<'c>>(cx: C) -> Option<NumCell<'c>>;

    /// Handles a hit whose variable was set when [`LookPath::look`] looked.
    fn rest<'c, C: Context<'c>>(cx: C, found: NumCell<'c>);
}

/// The second part of a path: the steps that a hit takes after its element is known.
pub trait Back {
    /// Leaves a hit in its element. `refs` are [its numbers](super::eval::Inputs).
    fn leave<'c, C: Context<'c>>(cx: C, map: &'c Map<C::Storage, C::Hash>, elt: Elt, refs: &[u64]);
}

/// The steps `STEPS` of a back.
pub(super) struct Leave<const STEPS: u32>;

impl<const STEPS: u32> Back for Leave<STEPS> {
    #[inline]
    fn leave<'c, C: Context<'c>>(cx: C, map: &'c Map<C::Storage, C::Hash>, elt: Elt, refs: &[u64]) {
        const { assert!(STEPS & !BACK == 0) };
        leave::<C, STEPS>(cx, map.view(), refs, elt);
    }
}

/// Keys `K` and `STEPS`, for triggers that read no variable of another one. `R` is a form of the same keys, with which the
/// rest inserts them.
pub(super) struct OfRecord<K, const STEPS: u32, R = K>(PhantomData<(K, R)>);

impl<K: KeyForm, const STEPS: u32, R> Offers for OfRecord<K, STEPS, R> {
    const OFFERS: Needs = offer::<K>(0, STEPS, BACK_OF_RECORD);
}

impl<K: KeyForm, const STEPS: u32, R: KeyForm> RecordPath for OfRecord<K, STEPS, R> {
    type Rest = RestOfRecord<R>;

    #[inline]
    fn hit<'c, C: Context<'c>>(cx: C) -> Outcome<MissedIn<'c, C>> {
        const { assert!(STEPS & !(OF_RECORD | BACK_OF_RECORD | APART) == 0) };
        hit::<K, C, 0, STEPS, 0>(cx, None, None)
    }
}

/// The rest of each [`OfRecord`] path with keys `K`.
pub(super) struct RestOfRecord<K>(PhantomData<K>);

impl<K: KeyForm> RecordRest for RestOfRecord<K> {
    #[inline]
    fn hit<'c, C: Context<'c>>(cx: C, missed: MissedIn<'c, C>) {
        hit::<K, C, 0, { OF_RECORD | APART | LAST }, 0>(cx, None, Some(missed));
    }
}

/// Keys `K`, at most `REFS` variables of other triggers, at most `NUMBERS` of these and of the numbers that are computed
/// once, and `STEPS`. With [`LAST`] it inserts keys; else `R` does.
pub(super) struct Front<K, R, const REFS: usize, const STEPS: u32, const NUMBERS: usize>(
    PhantomData<(K, R)>,
);

impl<K: KeyForm, R, const REFS: usize, const STEPS: u32, const NUMBERS: usize> Offers
    for Front<K, R, REFS, STEPS, NUMBERS>
{
    const OFFERS: Needs = Needs {
        numbers: NUMBERS,
        ..offer::<K>(REFS, STEPS, BACK)
    };
}

impl<K: KeyForm, R: HitPath, const REFS: usize, const STEPS: u32, const NUMBERS: usize> HitPath
    for Front<K, R, REFS, STEPS, NUMBERS>
{
    type Rest = R;

    #[inline]
    fn hit<'c, C: Context<'c>>(cx: C) -> Outcome<MissedIn<'c, C>> {
        hit::<K, C, REFS, STEPS, NUMBERS>(cx, None, None)
    }
}

/// Keys `K` and everything but numbers that are computed once and variables of tables that [change](CHANGING); and the
/// rest of each [`Path`] with these keys.
type General<K> = Front<K, Settled, REFS_MAX, { FOR_ALL | APART | LAST }, 0>;
/// Keys `K`, at most `REFS` variables of other triggers, and `STEPS`.
type Path<K, const REFS: usize, const STEPS: u32> = Front<K, General<K>, REFS, STEPS, 0>;
/// Keys `K`, at most one variable of another trigger, some numbers that are computed once, and `STEPS`.
type FewValues<K, const STEPS: u32> = Front<K, Settled, 1, STEPS, FEW_NUMBERS>;
/// Short keys `K`, and variables of tables whose starts expire.
type Changing<K> = Front<K, Everything, REFS_MAX, { OF_EXPIRING }, 0>;
/// Any keys and everything else, of triggers that read no variables of tables that change.
type Settled = Joined<Copied, Copied, REFS_MAX, { EVERYTHING & !CHANGING | APART }, NUMBERS_MAX>;
/// Any keys and everything else.
type Everything = Joined<Copied, Copied, REFS_MAX, { EVERYTHING | APART }, NUMBERS_MAX>;

/// Room for the list of numbers, enough for most triggers that have such a list.
const FEW_NUMBERS: usize = 4;

/// Keys `K`, at most `REFS` variables of other triggers that the key `J` finds, at most `NUMBERS` of these and of the
/// numbers that are computed once, and `STEPS`.
pub(super) struct Joined<K, J, const REFS: usize, const STEPS: u32, const NUMBERS: usize>(
    PhantomData<(K, J)>,
);

impl<K: KeyForm, J: KeyForm, const REFS: usize, const STEPS: u32, const NUMBERS: usize> Offers
    for Joined<K, J, REFS, STEPS, NUMBERS>
{
    const OFFERS: Needs = Needs {
        join: Some(J::KIND),
        numbers: NUMBERS,
        ..offer::<K>(REFS, STEPS, BACK)
    };
}

impl<K: KeyForm, J: KeyForm, const REFS: usize, const STEPS: u32, const NUMBERS: usize> HitPath
    for Joined<K, J, REFS, STEPS, NUMBERS>
{
    type Rest = Self;

    #[inline]
    fn hit<'c, C: Context<'c>>(cx: C) -> Outcome<MissedIn<'c, C>> {
        joined::<K, J, C, REFS, STEPS, NUMBERS>(cx)
    }
}

/// The path with keys `K`, one variable of another trigger, and `STEPS`.
pub(super) struct Await<K, const STEPS: u32>(PhantomData<K>);

impl<K: KeyForm, const STEPS: u32> Offers for Await<K, STEPS> {
    const OFFERS: Needs = {
        let offers = offer::<K>(1, STEPS, BACK);

        Needs {
            steps: offers.steps & !NO_REFS,
            ..offers
        }
    };
}

impl<K: KeyForm, const STEPS: u32> LookPath for Await<K, STEPS> {
    #[inline(always)]
    fn look<'c, C: Context<'c>>(cx: C) -> Option<NumCell<'c>> {
        const { assert!(STEPS & (KEY_ANY | WHOLE_KEY | AGED) == 0) };

        let mut room = <K::Room<'_, C>>::default();
        let (key, _) = K::key::<C, STEPS, false>(cx, 0, &[], &mut room);
        let only = cx.program().refs.first();
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

    #[inline]
    fn rest<'c, C: Context<'c>>(cx: C, found: NumCell<'c>) {
        const { assert!(STEPS & LAST != 0) };
        hit::<K, C, 1, STEPS, 0>(cx, Some(found), None);
    }
}

/// Turns a path into functions that can be stored: those that the tracing core calls, or those of a test.
pub trait Entry {
    /// A front.
    type Fn: Copy + 'static;
    /// A back of a front that needs nothing but the record.
    type OfRecord: Copy + 'static;
    /// A back of any other front.
    type OfHit: Copy + 'static;

    /// Returns a front that needs nothing but the record.
    fn of_record<P: RecordPath>() -> Self::Fn;

    /// Returns a front where most hits need no more than a lookup.
    fn of_look<P: LookPath>() -> Self::Fn;

    /// Returns any other front.
    fn of<P: HitPath>() -> Self::Fn;

    /// Returns the back of a front that needs nothing but the record.
    fn back_of_record<B: Back>() -> Self::OfRecord;

    /// Returns the back of any other front.
    fn back<B: Back>() -> Self::OfHit;
}

/// A row of one of the tables.
#[derive(Clone, Copy)]
pub struct PathRow<N, F> {
    /// The most that a trigger with this row may need.
    pub offers: N,
    /// The function that a trigger with this row calls.
    pub enter: F,
}

/// Makes a row when it is looked at: all rows together are too large for the stack of a task that creates a trigger.
type MakeRow<N, F> = fn() -> PathRow<N, F>;

/// The functions for the hits of a trigger.
pub struct Chosen<E: Entry> {
    /// The front.
    pub enter: E::Fn,
    /// The back, if the front needs nothing but the record.
    pub of_record: E::OfRecord,
    /// The back, if the front is another one.
    pub of_hit: E::OfHit,
    /// Their rows in [`paths`], [`backs_of_record`] and [`backs`], for `hist_debug`.
    pub rows: [usize; 3],
}

/// Returns the offers of a front with these keys and steps, where all backs that it may call offer `back` together.
const fn offer<K: KeyForm>(refs: usize, steps: u32, back: u32) -> Needs {
    // The columns of a key are no words: a bucket is an expression there.
    let of_columns = match (K::KIND, steps & KEY_EXPRS) {
        (KeyKind::Columns, KEY_EXPRS) => KEY_PARTS,
        _ => 0,
    };
    let steps = match K::KIND.is_whole() {
        true => steps & !LAST,
        false => steps & !(LAST | WHOLE_KEY),
    };

    Needs {
        key: K::KIND,
        join: None,
        refs,
        numbers: 0,
        steps: NO_REFS
            | of_columns
            | match steps & APART {
                0 => of_back(steps),
                _ => steps & !APART | back,
            },
    }
}

/// Returns the offers of a back with these steps. A back with tallies does not keep plain sums unless it has `SUMS`.
const fn of_back(steps: u32) -> u32 {
    match steps & TALLIES {
        0 => steps | SUMS,
        _ => steps,
    }
}

fn record<E: Entry, P: RecordPath>() -> PathRow<Needs, E::Fn> {
    PathRow {
        offers: P::OFFERS,
        enter: E::of_record::<P>(),
    }
}

fn any<E: Entry, P: HitPath>() -> PathRow<Needs, E::Fn> {
    PathRow {
        offers: P::OFFERS,
        enter: E::of::<P>(),
    }
}

fn awaits<E: Entry, P: LookPath>() -> PathRow<Needs, E::Fn> {
    PathRow {
        offers: P::OFFERS,
        enter: E::of_look::<P>(),
    }
}

/// Steps of a front that needs nothing but the record.
const OF_RECORD: u32 = KEY_PARTS | KEY_EXPRS | NESTED;
/// Steps of a back that needs nothing but the record.
const BACK_OF_RECORD: u32 =
    SHARED | SUMS | ALL_TALLIES | VALS_EXPRS | VARS | VARS_TEXT | VARS_EXPRS | VARS_NAME;
const ALL_TALLIES: u32 = TALLIES | SEVERAL;

// What fronts offer.
const RECORD: u32 = OF_RECORD | APART;
const COMPUTED: u32 = KEY_EXPRS | KEY_ANY | KEY_STAMP | NESTED | APART;
const VALUED: u32 = COMPUTED | KEY_VALUES;
/// Steps for variables of tables whose maps are replaced, where not all variables move to the new map.
const CHANGING: u32 = MOVING | AGED;
const FOR_ALL: u32 = EVERYTHING & !(KEY_VALUES | CHANGING);
const OF_EXPIRING: u32 = COMPUTED | TEXT_REFS | AGED;

// What backs offer.
const ANY_VALS: u32 = VALS_EXPRS | VALS_ANY | STAMP | SHARED;
const ANY_NUMBERS: u32 = STAMP | VARS | VARS_STAMP | VARS_EXPRS | VARS_ANY;
const ANY_VARS: u32 = ANY_NUMBERS | SHARED;

/// Returns the fronts. A trigger has the first front that offers all its needs; the last one offers everything.
#[rustfmt::skip]
pub fn paths<E: Entry>() -> impl Iterator<Item = PathRow<Needs, E::Fn>> {
    let rows: &'static [MakeRow<Needs, E::Fn>] = &const { [
        // With their backs.
        record::<E, OfRecord<Words<1>, 0>>,
        record::<E, OfRecord<Words<1>, { VARS }>>,
        record::<E, OfRecord<Words<4>, 0, MoreWords>>,
        any::<E, Path<Words<1>, 0, { VARS_STAMP | STAMP }>>,
        any::<E, Path<Words<1>, 0, { VARS | ACTIONS }>>,
        any::<E, Path<Words<1>, 1, { ANY_NUMBERS }>>,
        awaits::<E, Await<Words<1>, { ANY_NUMBERS | ACTIONS | NESTED | LAST }>>,
        any::<E, Joined<Words<2>, Words<1>, 1, { KEY_EXPRS | KEY_ANY | KEY_STAMP | VALS_EXPRS | VALS_ANY }, FEW_NUMBERS>>,
        any::<E, Joined<Words<3>, Words<1>, 1, { KEY_EXPRS | KEY_ANY | KEY_STAMP | VALS_EXPRS | VALS_ANY }, FEW_NUMBERS>>,
        // Fronts that read nothing but the record and the CPU.
        record::<E, OfRecord<Words<1>, { APART }>>,
        record::<E, OfRecord<Words<2>, { APART }>>,
        record::<E, OfRecord<Words<1>, { RECORD }>>,
        record::<E, OfRecord<Words<3>, { RECORD }, MoreWords>>,
        record::<E, OfRecord<Words<4>, { APART }, MoreWords>>,
        record::<E, OfRecord<MoreWords, { RECORD }>>,
        // Fronts that read at most one variable of another trigger.
        any::<E, Path<Words<1>, 0, { APART }>>,
        any::<E, Path<Words<2>, 0, { APART }>>,
        any::<E, Path<Words<1>, 0, { COMPUTED }>>,
        any::<E, Path<Words<2>, 0, { COMPUTED }>>,
        any::<E, Path<MoreWords, 0, { COMPUTED }>>,
        any::<E, Path<Words<1>, 1, { TEXT_REFS | APART }>>,
        any::<E, Path<Words<2>, 1, { TEXT_REFS | APART }>>,
        awaits::<E, Await<Words<1>, { NESTED | APART | LAST }>>,
        any::<E, General<Words<1>>>,
        any::<E, General<Words<2>>>,
        any::<E, General<MoreWords>>,
        any::<E, Path<Columns, 0, { APART }>>,
        any::<E, Path<Columns, 1, { COMPUTED | TEXT_REFS }>>,
        any::<E, General<Columns>>,
        any::<E, General<StackField>>,
        any::<E, General<Stack>>,
        any::<E, General<Copied>>,
        any::<E, FewValues<Words<1>, { VALUED }>>,
        any::<E, Joined<Words<1>, Words<1>, 1, { COMPUTED | AGED }, FEW_NUMBERS>>,
        any::<E, Joined<Words<2>, Words<1>, 1, { COMPUTED }, FEW_NUMBERS>>,
        any::<E, Settled>,
        any::<E, Changing<Words<1>>>,
        any::<E, Everything>,
    ] };

    rows.iter().map(|row| row())
}

fn of_record<E: Entry, const STEPS: u32>() -> PathRow<u32, E::OfRecord> {
    const { assert!(STEPS & !BACK_OF_RECORD == 0) };
    PathRow {
        offers: of_back(STEPS),
        enter: E::back_of_record::<Leave<STEPS>>(),
    }
}

fn of_hit<E: Entry, const STEPS: u32>() -> PathRow<u32, E::OfHit> {
    PathRow {
        offers: of_back(STEPS),
        enter: E::back::<Leave<STEPS>>(),
    }
}

/// The backs of fronts that need nothing but the record. The last row offers all that these can have.
#[rustfmt::skip]
pub fn backs_of_record<E: Entry>() -> impl Iterator<Item = PathRow<u32, E::OfRecord>> {
    let rows: &'static [MakeRow<u32, E::OfRecord>] = &const { [
        of_record::<E, 0>,
        of_record::<E, { SHARED | VALS_EXPRS }>,
        of_record::<E, { SHARED | VALS_EXPRS | ALL_TALLIES }>,
        of_record::<E, { SHARED | VARS }>,
        of_record::<E, { VARS | VARS_TEXT | VARS_NAME }>,
        of_record::<E, { BACK_OF_RECORD }>,
    ] };

    rows.iter().map(|row| row())
}

/// The backs of all other fronts. The last row offers everything.
#[rustfmt::skip]
pub fn backs<E: Entry>() -> impl Iterator<Item = PathRow<u32, E::OfHit>> {
    let rows: &'static [MakeRow<u32, E::OfHit>] = &const { [
        of_hit::<E, 0>,
        of_hit::<E, { ANY_VALS }>,
        of_hit::<E, { VARS | VARS_STAMP | STAMP }>,
        of_hit::<E, { VARS | ACTIONS }>,
        of_hit::<E, { ANY_VARS | ACTIONS }>,
        of_hit::<E, { ANY_VARS | VARS_TEXT | VARS_NAME }>,
        of_hit::<E, { ANY_VALS | ALL_TALLIES }>,
        of_hit::<E, { ANY_VALS | ANY_VARS | VARS_TEXT | VARS_NAME | ACTIONS }>,
        of_hit::<E, { EVERYTHING & BACK }>,
    ] };

    rows.iter().map(|row| row())
}

/// Returns the first row whose offers suffice, and its function; `last` if there is none.
fn first<N, F>(
    rows: impl Iterator<Item = PathRow<N, F>>,
    offers: impl Fn(&N) -> bool,
    last: fn() -> F,
) -> (usize, F) {
    let mut rows = rows.enumerate();
    let found = rows.find(|(_, row)| offers(&row.offers));

    debug_assert!(found.is_some());
    found.map_or_else(|| (usize::MAX, last()), |(n, row)| (n, row.enter))
}

/// Chooses the functions for hits that need this.
///
/// The last rows offer everything; only one of the two backs is ever called, and the other one may be any.
pub fn select<E: Entry>(needs: &Needs) -> Chosen<E> {
    let back = needs.steps & BACK;
    let (front, enter) = first(
        paths::<E>(),
        |row| needs.are_covered_by(row),
        E::of::<Everything>,
    );
    let (short, of_record) = first(
        backs_of_record::<E>(),
        |row| BACK_OF_RECORD & back & !row == 0,
        E::back_of_record::<Leave<BACK_OF_RECORD>>,
    );
    let (long, of_hit) = first(
        backs::<E>(),
        |row| back & !row == 0,
        E::back::<Leave<{ EVERYTHING & BACK }>>,
    );

    Chosen {
        enter,
        of_record,
        of_hit,
        rows: [front, short, long],
    }
}
