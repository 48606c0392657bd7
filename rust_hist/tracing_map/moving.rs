// SPDX-License-Identifier: GPL-2.0

//! A number variable, while its table gets a larger map.
//!
//! There is no C counterpart.
//!
//! The cell of the old map is valid until the cell of the new map is written for the first time. Hits that set the
//! variable write only to the new map. The thread that grows the table closes the old cell by one exchange, and then
//! writes its number to the new cell, unless that was written before. A hit that reads the variable in between finds a
//! closed cell with a number, and writes that to the new cell itself. So at each moment one place has the number, and
//! no context waits:
//!
//! =============  =======================  =====================================
//! new cell       old cell                 the variable is
//! =============  =======================  =====================================
//! written        any                      the number in the new cell
//! never written  open                     the number in the old cell
//! never written  closed with a number     that number, to be written to the new cell
//! never written  closed without a number  not set
//! =============  =======================  =====================================
//!
//! A cell is closed when no hit is in progress that began with the old map and may set the variable there.
//!
//! Context: any, NMI included. A loop is repeated only after another context has changed the variable.

use super::cell::{
    CellState,
    NumCell,
    Taken, //
};

/// A variable in both maps, or in the only map. A view.
#[derive(Clone, Copy)]
pub struct Moving<'a> {
    new: Option<NumCell<'a>>,
    old: Option<NumCell<'a>>,
}

/// The reason why there is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The variable is not set.
    Unset,
    /// The new map had no entry with the key when the caller looked for it, but has one now: the caller must look
    /// again.
    Moved,
}

/// A number that [`Moving::consume`] has taken. A plain value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenFrom {
    is_old: bool,
    taken: Taken,
}

impl TakenFrom {
    /// Returns the number.
    pub fn value(&self) -> u64 {
        self.taken.value
    }
}

impl<'a> Moving<'a> {
    /// Returns the variable with its cells in both maps, `None` for a map without an entry for the key. The caller must
    /// get the old map before it looks in the new one; without an old map, the new one has everything.
    pub fn new(new: Option<NumCell<'a>>, old: Option<NumCell<'a>>) -> Self {
        Self { new, old }
    }

    /// Returns the result of `take` for the cell that is valid, and whether that is the old map's cell.
    fn find<R>(&self, take: impl Fn(&NumCell<'a>) -> Option<R>) -> Result<(R, bool), Missing> {
        let in_new = |new: NumCell<'a>| match take(&new) {
            Some(found) => Ok((found, false)),
            None => Err(Missing::Unset),
        };

        if let Some(new) = self.new.filter(NumCell::was_written) {
            return in_new(new);
        }
        let old = self.old.ok_or(Missing::Unset)?;

        loop {
            if let Some(found) = take(&old) {
                return Ok((found, true));
            }
            match old.state() {
                // The number was set after `take` looked; try again.
                CellState::Set => (),
                CellState::Unset | CellState::Closed(None) => return Err(Missing::Unset),
                CellState::Closed(Some(value)) => {
                    let new = self.new.ok_or(Missing::Moved)?;

                    new.write_first(value);
                    return in_new(new);
                }
            }
        }
    }

    /// Returns the number, which stays set.
    pub fn read(&self) -> Result<u64, Missing> {
        Ok(self.find(NumCell::read)?.0)
    }

    /// Returns `Ok` if the number is set. Another context may set or consume it right after the call.
    pub fn check_set(&self) -> Result<(), Missing> {
        self.find(|cell| cell.is_set().then_some(())).map(|_| ())
    }

    /// Unsets the number and returns it. If several contexts consume the number, one of them gets it.
    pub fn consume(&self) -> Result<TakenFrom, Missing> {
        let (taken, is_old) = self.find(NumCell::consume)?;

        Ok(TakenFrom { is_old, taken })
    }

    /// Undoes a [`Moving::consume`] of this variable, unless another context has set it since: then the later number
    /// stays. Returns [`Missing::Moved`] if the caller must find the new cell and call [`Moving::put_back`] on it.
    pub fn restore(&self, from: &TakenFrom) -> Result<(), Missing> {
        let cell = match from.is_old {
            true => self.old,
            false => self.new,
        };
        let is_closed = cell.is_some_and(|cell| cell.restore_unless_closed(&from.taken));

        match is_closed {
            true => self.put_back(from.value()),
            false => Ok(()),
        }
    }

    /// Sets the new cell to a number that was consumed from the old cell before that was closed, unless the new cell
    /// was written.
    pub fn put_back(&self, value: u64) -> Result<(), Missing> {
        self.new.ok_or(Missing::Moved)?.write_first(value);
        Ok(())
    }

    /// Makes the new cell the valid one. Only for the thread that grows the table, after it has inserted the key into
    /// the new map, and when no hit uses the old map alone.
    pub fn carry(&self) {
        let (Some(new), Some(old)) = (self.new, self.old) else {
            return;
        };

        if let Some(value) = old.close() {
            new.write_first(value);
        }
    }
}
