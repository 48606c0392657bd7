// SPDX-License-Identifier: GPL-2.0

//! Reads variables of other triggers for a hit.
//!
//! C counterpart: `resolve_var_refs()` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//!
//! Context: any, NMI included.

use crate::{
    limits::REFS_MAX,
    sync::{
        Atomic,
        Pair, //
    },
    tracing_map::{
        address_of,
        Elt,
        Emptied,
        Key,
        KeyHash,
        Map,
        MapView,
        Missing,
        Moving,
        NumCell,
        Taken,
        TakenFrom,
        TextCell, //
    }, //
};

use core::ops::Deref;

use super::{
    super::{
        Cell,
        Kind,
        Program,
        Ref, //
    },
    Context,
    KeyForm, //
};

/// Size of the buffer for programs with two to four references.
const FEW_REFS: usize = 4;
/// Size of the buffer for programs with five to eight references.
const MORE_REFS: usize = 8;

/// Room for the numbers that one hit reads from other triggers' variables. Only as much is cleared as the hit needs.
pub(in super::super) enum RefBuf {
    /// No room: the hit reads at most one such variable.
    Empty,
    /// Room for [`FEW_REFS`] numbers.
    Few([u64; FEW_REFS]),
    /// Room for [`REFS_MAX`] numbers.
    All([u64; REFS_MAX]),
}

impl RefBuf {
    /// Makes room for `len` numbers.
    #[inline(always)]
    fn make(&mut self, len: usize) -> Result<&mut [u64], Unset> {
        *self = match len {
            0..=FEW_REFS => Self::Few([0; FEW_REFS]),
            _ => Self::All([0; REFS_MAX]),
        };
        match self {
            Self::Empty => None,
            Self::Few(room) => room.get_mut(..len),
            Self::All(room) => room.get_mut(..len),
        }
        .ok_or(Unset)
    }
}

/// Error of a variable that is not set for the hit's key: the hit is then ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unset;

/// Returns the maps that `source` replaces, the newest first.
pub(super) fn older_than<'c, C: Context<'c>>(
    cx: C,
    source: C::Source,
) -> impl Iterator<Item = C::Source> {
    core::iter::successors(cx.replaced(source), move |older| cx.replaced(*older))
}

/// The key of a hit, to be looked up in the tables of other triggers. With `AGED` it is looked up in all maps of a
/// table whose starts expire, the newest first.
pub(in super::super) struct RefKey<'h, 'r, K: KeyForm, const AGED: bool> {
    key: &'h K::Key<'r>,
    hash: u64,
}

impl<'h, 'r, K: KeyForm, const AGED: bool> RefKey<'h, 'r, K, AGED> {
    /// Wraps a key and its hash.
    #[inline]
    pub(in super::super) fn new(key: &'h K::Key<'r>, hash: u64) -> Self {
        Self { key, hash }
    }

    /// Returns the extra words of the entry with this key in the table of another trigger, if there is one.
    #[inline(always)]
    fn find<'c, C: Context<'c>>(&self, cx: C, source: C::Source) -> Option<&'c [Pair]> {
        match self.aux(cx, cx.view(source)) {
            None if const { AGED } => self.find_older(cx, source),
            found => found,
        }
    }

    /// Returns the extra words of the entry in a map that `source` replaces, mostly the only one.
    #[inline]
    fn find_older<'c, C: Context<'c>>(&self, cx: C, source: C::Source) -> Option<&'c [Pair]> {
        let older = cx.replaced(source)?;

        match self.aux(cx, cx.view(older)) {
            None => self.find_oldest(cx, older),
            found => found,
        }
    }

    /// Returns the extra words of the entry in one of the maps that `source` replaces.
    #[cold]
    #[inline(never)]
    fn find_oldest<'c, C: Context<'c>>(&self, cx: C, source: C::Source) -> Option<&'c [Pair]> {
        older_than(cx, source).find_map(|older| self.aux(cx, cx.view(older)))
    }

    /// Returns the extra words of the entry with this key in `map`, if there is one.
    #[inline(always)]
    fn aux<'c, C: Context<'c>>(
        &self,
        cx: C,
        map: MapView<'c, C::Storage, C::Hash>,
    ) -> Option<&'c [Pair]> {
        let words = match K::whole(self.key) {
            Some(words) => words.len(),
            None => cx.program().key_words(),
        };
        let elt = match map.shape().key_words == words {
            true => map.get(self.key, self.hash)?,
            false => look_up_beginning::<K, _, _>(*self.key, map.map())?,
        };

        Some(map.aux(elt))
    }
}

/// Looks up the beginning of a key in a table with shorter keys: `tracing_map_lookup()` ignores the rest of a longer
/// key, too.
#[cold]
#[inline(never)]
fn look_up_beginning<K: KeyForm, S, H>(key: K::Key<'_>, map: &Map<S, H>) -> Option<Elt>
where
    S: Deref<Target = [Pair]>,
    H: KeyHash,
{
    debug_assert!(
        K::KIND.is_whole(),
        "a path of such triggers has `WHOLE_KEY`"
    );
    map.lookup(K::whole(&key)?.get(..map.shape().key_words)?)
}

impl Cell {
    /// Returns the words of the variable within the extra words of an entry.
    #[inline]
    pub(super) fn of<'a>(&self, aux: &'a [Atomic<u64>]) -> &'a [Atomic<u64>] {
        aux.get(usize::from(self.at)..)
            .and_then(|from| from.get(..usize::from(self.words)))
            .unwrap_or(&[])
    }
}

impl Program {
    /// Reads the variables of other triggers that the hit needs, in the entries of the hit's key.
    ///
    /// Variables with `consume` are consumed, either all or none. Returns an error if a variable is unset. A string or
    /// stack is only checked here: it is copied when it is used, from the entry that was found here.
    #[inline(never)]
    pub(in super::super) fn read_refs<'h, 'c, C: Context<'c>, K: KeyForm, const AGED: bool>(
        &self,
        cx: C,
        key: RefKey<'_, '_, K, AGED>,
        buf: &'h mut RefBuf,
    ) -> Result<&'h [u64], Unset> {
        let buf = buf.make(self.refs.len())?;

        match self.refs.len() {
            0..=FEW_REFS => self.read_up_to::<C, K, AGED, FEW_REFS>(cx, &key, buf)?,
            n if n <= MORE_REFS => self.read_up_to::<C, K, AGED, MORE_REFS>(cx, &key, buf)?,
            _ => self.read_up_to::<C, K, AGED, REFS_MAX>(cx, &key, buf)?,
        }
        Ok(buf)
    }

    /// Reads the variables of at most `N` references to `buf`; once all are found to be set, consumes those with
    /// `consume`.
    #[inline(always)]
    fn read_up_to<'c, C: Context<'c>, K: KeyForm, const AGED: bool, const N: usize>(
        &self,
        cx: C,
        key: &RefKey<'_, '_, K, AGED>,
        buf: &mut [u64],
    ) -> Result<(), Unset> {
        // The variables to be consumed, which all are numbers.
        let mut cells = [None; N];
        let mut takes = false;
        let mut last: Option<(u16, &[Pair])> = None;

        for ((reference, place), cell) in self.refs.iter().zip(&mut *buf).zip(&mut cells) {
            let aux = match last {
                Some((table, aux)) if table == reference.table => aux,
                _ => reference.aux(cx, key)?,
            };

            last = Some((reference.table, aux));
            if reference.consume {
                let number = NumCell::at(aux, reference.cell.at).filter(NumCell::is_set);

                *cell = Some(number.ok_or(Unset)?);
                takes = true;
            } else {
                *place = reference.read(aux).ok_or(Unset)?;
            }
        }
        match takes {
            true => take_all(&cells, buf),
            false => Ok(()),
        }
    }
}

/// Reading variables of any tables. In tables that may be growing all variables are numbers, read as [`Moving`].
impl Program {
    /// Like [`Program::read_refs`], but works while tables of the variables grow.
    #[inline(never)]
    pub(in super::super) fn read_moving<'h, 'c, C: Context<'c>, K: KeyForm>(
        &self,
        cx: C,
        key: RefKey<'_, '_, K, true>,
        buf: &'h mut RefBuf,
    ) -> Result<&'h [u64], Unset> {
        let buf = buf.make(self.refs.len())?;

        loop {
            match self.try_read_moving(cx, &key, buf) {
                Ok(()) => return Ok(buf),
                Err(Missing::Unset) => return Err(Unset),
                // The entry is now in the new map, so the next round finds another cell.
                Err(Missing::Moved) => (),
            }
        }
    }

    fn try_read_moving<'c, C: Context<'c>, K: KeyForm>(
        &self,
        cx: C,
        key: &RefKey<'_, '_, K, true>,
        buf: &mut [u64],
    ) -> Result<(), Missing> {
        // The variables to be consumed.
        let mut places: [Option<Place<'c, C>>; REFS_MAX] = [const { None }; REFS_MAX];
        let refs = self.refs.iter();

        for ((reference, number), place) in refs.zip(&mut *buf).zip(&mut places) {
            if reference.cell.kind != Kind::Number {
                // A table that grows has no strings or stacks.
                let aux = reference.aux(cx, key).map_err(|Unset| Missing::Unset)?;

                *number = reference.read(aux).ok_or(Missing::Unset)?;
                continue;
            }

            let found = reference.place(cx, key).ok_or(Missing::Unset)?;
            if reference.consume {
                found.number.check_set()?;
                *place = Some(found);
            } else {
                *number = found.number.read()?;
            }
        }

        let mut all: [Option<TakenFrom>; REFS_MAX] = [None; REFS_MAX];

        for ((place, number), taken) in places.iter().zip(buf).zip(&mut all) {
            let Some(place) = place else {
                continue;
            };

            match place.number.consume() {
                Ok(from) => {
                    *number = from.value();
                    *taken = Some(from);
                }
                Err(missing) => {
                    self.put_back_moving(cx, key, &places, &all);
                    return Err(missing);
                }
            }
        }
        Ok(())
    }

    /// Puts the consumed numbers back.
    #[cold]
    #[inline(never)]
    fn put_back_moving<'c, C: Context<'c>, K: KeyForm>(
        &self,
        cx: C,
        key: &RefKey<'_, '_, K, true>,
        places: &[Option<Place<'c, C>>],
        all: &[Option<TakenFrom>],
    ) {
        for ((reference, place), taken) in self.refs.iter().zip(places).zip(all) {
            let (Some(place), Some(taken)) = (place, taken) else {
                continue;
            };

            if place.number.restore(taken).is_err() {
                // Meanwhile the entry has been moved to the new map.
                let number = Moving::new(reference.number_in(cx, key, place.map), None);
                let put = number.put_back(taken.value());

                debug_assert!(put.is_ok());
            }
        }
    }
}

/// A number variable, and the newest map of its table.
struct Place<'c, C: Context<'c>> {
    number: Moving<'c>,
    map: C::Source,
}

impl Ref {
    /// Returns the cell of the variable in the entry of this key in `map`, if there is one.
    fn number_in<'c, C: Context<'c>, K: KeyForm>(
        &self,
        cx: C,
        key: &RefKey<'_, '_, K, true>,
        map: C::Source,
    ) -> Option<NumCell<'c>> {
        NumCell::at(key.aux(cx, cx.view(map))?, self.cell.at)
    }

    /// Returns the number variable in all maps that its table has at this moment.
    fn place<'c, C: Context<'c>, K: KeyForm>(
        &self,
        cx: C,
        key: &RefKey<'_, '_, K, true>,
    ) -> Option<Place<'c, C>> {
        let map = cx.source(self.table)?;

        if self.expires {
            // Entries of tables with expiring starts are not moved: there is one cell, in whichever map.
            let cell = NumCell::at(key.find(cx, map)?, self.cell.at);

            return Some(Place {
                number: Moving::new(None, cell),
                map,
            });
        }
        let old = cx.replaced(map);
        let new = self.number_in(cx, key, map);
        let old = old.and_then(|old| self.number_in(cx, key, old));

        Some(Place {
            number: Moving::new(new, old),
            map,
        })
    }
}

/// Consumes the numbers in `cells`, all set a moment ago, to the same places of `buf`. If one is unset by now, puts the
/// consumed ones back, as if the hit had come a moment later.
#[inline(always)]
fn take_all<const N: usize>(
    cells: &[Option<NumCell<'_>>; N],
    buf: &mut [u64],
) -> Result<(), Unset> {
    let mut all = [Emptied::default(); N];

    for ((cell, place), left) in cells.iter().zip(&mut *buf).zip(&mut all) {
        let Some(cell) = cell else {
            continue;
        };

        match cell.consume() {
            Some(taken) => (*place, *left) = (taken.value, taken.left),
            None => {
                put_back(cells, buf, &all);
                return Err(Unset);
            }
        }
    }
    Ok(())
}

/// Puts the consumed numbers back.
#[cold]
#[inline(never)]
fn put_back(cells: &[Option<NumCell<'_>>], buf: &[u64], all: &[Emptied]) {
    for ((cell, value), left) in cells.iter().zip(buf).zip(all) {
        if let Some(cell) = cell {
            // Cells not consumed have the default `Emptied`, whose version no cell that was set has: `restore` ignores
            // them.
            cell.restore(&Taken {
                value: *value,
                left: *left,
            });
        }
    }
}

impl Ref {
    /// Returns the extra words of the entry that has the variable.
    #[inline(always)]
    fn aux<'c, K: KeyForm, const AGED: bool>(
        &self,
        cx: impl Context<'c>,
        key: &RefKey<'_, '_, K, AGED>,
    ) -> Result<&'c [Pair], Unset> {
        key.find(cx, cx.source(self.table).ok_or(Unset)?)
            .ok_or(Unset)
    }

    /// Reads the variable from the extra words of an entry: a number, or the address of the words if a string or stack
    /// is set; `None` if it is unset.
    #[inline(always)]
    fn read(&self, aux: &[Pair]) -> Option<u64> {
        match self.cell.kind {
            Kind::Number => NumCell::at(aux, self.cell.at)?.read(),
            Kind::String | Kind::Cpumask | Kind::Stack => {
                let cell = TextCell::new(self.cell.of(Pair::words(aux)))?;

                cell.is_set().then(|| address_of(aux))
            }
        }
    }

    /// Reads the only variable that a hit needs; consumes it if the reference says so.
    #[inline(always)]
    pub(in super::super) fn read_only<'c, K: KeyForm, const AGED: bool>(
        &self,
        cx: impl Context<'c>,
        key: &RefKey<'_, '_, K, AGED>,
    ) -> Result<u64, Unset> {
        let aux = self.aux(cx, key)?;
        let number = match self.consume {
            true => NumCell::at(aux, self.cell.at)
                .and_then(|cell| cell.consume())
                .map(|taken| taken.value),
            false => self.read(aux),
        };

        number.ok_or(Unset)
    }

    /// Returns the cell of the only variable that a hit needs, a number, in the entry of this key, if it is set at this
    /// moment.
    #[inline(always)]
    pub(in super::super) fn find_only<'c, C: Context<'c>, K: KeyForm>(
        &self,
        cx: C,
        key: &K::Key<'_>,
    ) -> Option<NumCell<'c>> {
        debug_assert!(
            self.cell.kind == Kind::Number,
            "a path of others has `TEXT_REFS`"
        );

        let source = cx.source(self.table)?;
        let key = RefKey::<K, false>::new(key, key.hash(cx.view(source).hash()));

        NumCell::at(key.find(cx, source)?, self.cell.at).filter(NumCell::is_set)
    }

    /// Reads the variable that [`Ref::find_only`] has found; consumes it if the reference says so.
    #[inline]
    pub(in super::super) fn read_found(&self, cell: NumCell<'_>) -> Result<u64, Unset> {
        let number = match self.consume {
            true => cell.consume().map(|taken| taken.value),
            false => cell.read(),
        };

        number.ok_or(Unset)
    }
}
