// SPDX-License-Identifier: GPL-2.0

//! What one hit reads of other triggers' variables, and the numbers that it stores in its own.
//!
//! C counterpart: `resolve_var_refs()` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//!
//! Context: any, NMI included.

use crate::{
    limits::{
        REFS_MAX,
        VARS_MAX, //
    },
    sync::Atomic,
    tracing_map::{
        NumCell,
        Taken,
        TextCell, //
    }, //
};

use super::super::{
    Cell,
    Kind,
    Program,
    Ref, //
};

/// As many references as most programs have that have more than one.
const FEW_REFS: usize = 4;
/// And that some have.
const MORE_REFS: usize = 8;

/// Room for the numbers that one hit reads from other triggers' variables.
pub type RefBuf = [u64; REFS_MAX];

/// Room for the numbers that one hit stores in its own variables.
pub type OwnBuf = [u64; VARS_MAX];

/// The tables of other triggers, as far as one trigger reads their variables. Small, and handed on by value.
pub trait Tables: Copy {
    /// The extra words of the entry with this key in the table of this number, if there is one.
    fn aux(&self, table: u16, key: &[u64]) -> Option<&[Atomic<u64>]>;
}

/// There are no other tables.
impl Tables for () {
    fn aux(&self, _table: u16, _key: &[u64]) -> Option<&[Atomic<u64>]> {
        None
    }
}

/// A variable that the hit needs is not set for its key: the hit is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unset;

/// What one hit knows of other triggers' variables. Lives as long as the hit.
#[derive(Clone, Copy)]
pub struct Refs<'h, T> {
    pub(super) numbers: &'h [u64],
    pub(super) key: &'h [u64],
    pub(super) tables: T,
}

impl Refs<'static, ()> {
    /// Those of a trigger that needs none.
    pub fn none() -> Self {
        Self {
            numbers: &[],
            key: &[],
            tables: (),
        }
    }
}

impl<'h, T> Refs<'h, T> {
    /// The numbers of the variables, in the order of [`Program::refs`].
    #[inline(always)]
    pub(in super::super) fn numbers(&self) -> &'h [u64] {
        self.numbers
    }

    /// The key of the hit.
    #[inline(always)]
    pub fn key(&self) -> &'h [u64] {
        self.key
    }

    /// Those that [`Program::numbers_of_refs`] has read.
    #[inline(always)]
    pub fn of(numbers: &'h [u64], key: &'h [u64], tables: T) -> Self {
        Self {
            numbers,
            key,
            tables,
        }
    }
}

/// The numbers that one hit has stored in its own variables, by the index of the variable; 0 in the place
/// of what is no number.
///
/// A handler compares these and not what the entry holds, where another hit may have come after.
#[derive(Clone, Copy, Debug)]
pub struct OwnVals<'h>(pub(super) &'h [u64]);

impl OwnVals<'_> {
    #[inline(always)]
    pub(super) fn get(&self, var: u8) -> u64 {
        self.0.get(usize::from(var)).copied().unwrap_or(0)
    }
}

impl Cell {
    /// The words of the variable in those of an entry.
    #[inline(always)]
    pub(super) fn of<'a>(&self, aux: &'a [Atomic<u64>]) -> &'a [Atomic<u64>] {
        aux.get(usize::from(self.at)..)
            .and_then(|from| from.get(..usize::from(self.words)))
            .unwrap_or(&[])
    }
}

impl Program {
    /// How many numbers a hit reads of other triggers' variables and stores in its own, the places of
    /// strings and stacks included.
    #[inline(always)]
    pub fn numbers(&self) -> usize {
        // OVERFLOW: a few of each.
        self.refs.len().wrapping_add(self.vars.len())
    }

    /// Reads the variables of other triggers that the hit needs, in the entries of the same key.
    ///
    /// Those that are read once are taken, all of them or none. If one is not set, the hit is to be
    /// ignored. A string or stack need only be set: it is copied when it is used.
    ///
    /// `buf` has room for all of them, as a [`RefBuf`] always has.
    #[inline(always)]
    pub fn resolve<'h, T: Tables>(
        &self,
        key: &'h [u64],
        tables: T,
        buf: &'h mut [u64],
    ) -> Result<Refs<'h, T>, Unset> {
        let numbers = match self.refs() {
            [] => &[],
            [only] => {
                *buf.first_mut().ok_or(Unset)? = only.in_entry(key, &tables)?;
                buf.get(..1).ok_or(Unset)?
            }
            _ => self.numbers_of_refs(key, &tables, buf)?,
        };

        Ok(Refs::of(numbers, key, tables))
    }

    /// As [`Program::resolve`], for any number of references.
    #[inline(never)]
    pub fn numbers_of_refs<'h, T: Tables>(
        &self,
        key: &[u64],
        tables: &T,
        buf: &'h mut [u64],
    ) -> Result<&'h [u64], Unset> {
        let buf = buf.get_mut(..self.refs.len()).ok_or(Unset)?;

        match self.refs.len() {
            0..=FEW_REFS => self.read_refs::<T, FEW_REFS>(key, tables, buf)?,
            n if n <= MORE_REFS => self.read_refs::<T, MORE_REFS>(key, tables, buf)?,
            _ => self.read_refs::<T, REFS_MAX>(key, tables, buf)?,
        }
        Ok(buf)
    }

    /// Reads the variables of at most `N` references to `buf`, and takes those that are read once when all have been
    /// found to be set.
    #[inline(always)]
    fn read_refs<T: Tables, const N: usize>(
        &self,
        key: &[u64],
        tables: &T,
        buf: &mut [u64],
    ) -> Result<(), Unset> {
        // Those that are to be taken: they are numbers.
        let mut cells = [None; N];
        let mut last: Option<(u16, &[Atomic<u64>])> = None;

        for ((reference, place), cell) in self.refs().iter().zip(&mut *buf).zip(&mut cells) {
            let aux = match last {
                Some((table, aux)) if table == reference.table => aux,
                _ => tables.aux(reference.table, key).ok_or(Unset)?,
            };

            last = Some((reference.table, aux));
            if reference.consume {
                *cell = Some(reference.set_number(aux).ok_or(Unset)?);
            } else {
                // The room may be that of an earlier hit.
                *place = reference.look(aux).ok_or(Unset)?;
            }
        }
        take_all(&cells, buf)
    }
}

/// Takes the numbers in `cells` to the same places of `buf`. All were set a moment ago; if one is not any more, those
/// taken before it are put back, and it is as if the hit had come a moment later.
#[inline(always)]
fn take_all<const N: usize>(
    cells: &[Option<NumCell<'_>>; N],
    buf: &mut [u64],
) -> Result<(), Unset> {
    let mut all: [Option<Taken>; N] = [None; N];

    for ((cell, place), taken) in cells.iter().zip(buf).zip(&mut all) {
        let Some(cell) = cell else {
            continue;
        };

        *taken = cell.consume();
        match taken {
            Some(taken) => *place = taken.value,
            None => {
                put_back(cells, &all);
                return Err(Unset);
            }
        }
    }
    Ok(())
}

/// Puts back those numbers that have been taken.
#[cold]
#[inline(never)]
fn put_back(cells: &[Option<NumCell<'_>>], all: &[Option<Taken>]) {
    for (cell, taken) in cells.iter().zip(all) {
        if let (Some(cell), Some(taken)) = (cell, taken) {
            cell.restore(taken);
        }
    }
}

impl Ref {
    /// Looks at the variable in the words of an entry: its number, or 0 for a string or stack that is set;
    /// `None` if it is not.
    #[inline(always)]
    fn look(&self, aux: &[Atomic<u64>]) -> Option<u64> {
        match self.cell.kind {
            Kind::Number => NumCell::at(aux, self.cell.at)?.read(),
            Kind::String | Kind::Stack => {
                let cell = TextCell::new(self.cell.of(aux))?;

                cell.is_set().then_some(0)
            }
        }
    }

    /// As [`Ref::look`], in the entry of `key`, and takes a number that is read once; for a hit that needs no
    /// other variable.
    #[inline(always)]
    pub fn in_entry(&self, key: &[u64], tables: &impl Tables) -> Result<u64, Unset> {
        let aux = tables.aux(self.table, key).ok_or(Unset)?;

        if self.consume {
            let cell = NumCell::at(aux, self.cell.at).ok_or(Unset)?;

            Ok(cell.consume().ok_or(Unset)?.value)
        } else {
            self.look(aux).ok_or(Unset)
        }
    }

    /// The variable in the words of an entry, if it is a number that is set at this moment.
    #[inline(always)]
    pub fn set_number<'a>(&self, aux: &'a [Atomic<u64>]) -> Option<NumCell<'a>> {
        NumCell::at(aux, self.cell.at).filter(NumCell::is_set)
    }

    /// As [`Ref::in_entry`], where [`Ref::set_number`] has found the variable.
    #[inline(always)]
    pub fn in_cell(&self, cell: &NumCell<'_>) -> Result<u64, Unset> {
        let number = match self.consume {
            true => cell.consume().map(|taken| taken.value),
            false => cell.read(),
        };

        number.ok_or(Unset)
    }
}
