// SPDX-License-Identifier: GPL-2.0

//! A variable that is a number, while its table gets a larger map.
//!
//! There is no C counterpart.
//!
//! The cell of the old map counts until that of the new map is written for the first time. Hits that set the variable
//! write to the new map and look at nothing else. The thread that grows the table closes the old cell by one exchange,
//! and then writes the number to the new cell, unless that was written before. A hit that reads the variable between the
//! two finds a closed cell with a number, and writes that to the new cell in the place of the thread. So at each moment
//! one place has the number, and nobody waits:
//!
//! =============  =======================  =====================================
//! new cell       old cell                 the variable is
//! =============  =======================  =====================================
//! written        any                      that of the new cell
//! never written  open                     that of the old cell
//! never written  closed with a number     that number, to be written to the new cell
//! never written  closed without a number  not set
//! =============  =======================  =====================================
//!
//! Cells are closed when no hit is under way that began with the old map and may set the variable there.
//!
//! Context: any, NMI included. A loop is repeated only after another context has changed the variable.

use super::cell::{
    NumCell,
    State,
    Taken, //
};

/// A variable in both maps, or in the only one. A view.
#[derive(Clone, Copy)]
pub struct Moving<'a> {
    new: Option<NumCell<'a>>,
    old: Option<NumCell<'a>>,
}

/// Why there is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The variable is not set.
    Unset,
    /// The new map had no entry of the key when the caller looked for it, and it has one now: he must look again.
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
    /// Returns the variable with its cells in both maps, each `None` if the map has no entry of the key. Whoever looks for
    /// them has to ask for the old map before he looks in the new one; if there was none, all is in the new one.
    pub fn new(new: Option<NumCell<'a>>, old: Option<NumCell<'a>>) -> Self {
        Self { new, old }
    }

    /// Returns what `take` finds in the cell that counts, and whether that is the one of the old map.
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
                // It has been set since `take` looked.
                State::Set => (),
                State::Unset | State::Closed(None) => return Err(Missing::Unset),
                State::Closed(Some(value)) => {
                    let new = self.new.ok_or(Missing::Moved)?;

                    new.write_first(value);
                    return in_new(new);
                }
            }
        }
    }

    /// Returns the number.
    pub fn read(&self) -> Result<u64, Missing> {
        Ok(self.find(NumCell::read)?.0)
    }

    /// Says whether there is a number. Another context may set or consume it right after that.
    pub fn check_set(&self) -> Result<(), Missing> {
        self.find(|cell| cell.is_set().then_some(())).map(|_| ())
    }

    /// Unsets the number and returns it. If several contexts consume the number, one of them gets it.
    pub fn consume(&self) -> Result<TakenFrom, Missing> {
        let (taken, is_old) = self.find(NumCell::consume)?;

        Ok(TakenFrom { is_old, taken })
    }

    /// Undoes a [`Moving::consume`] of this variable, unless another context has set it since: then the later number
    /// stays. [`Missing::Moved`] if that is to be done by [`Moving::put_back`] for the new cell, once the caller has
    /// found it.
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

    /// Sets the new cell to a number taken out of the old one before that was closed, unless it was written.
    pub fn put_back(&self, value: u64) -> Result<(), Missing> {
        self.new.ok_or(Missing::Moved)?.write_first(value);
        Ok(())
    }

    /// Has the new cell count from now on. For the thread that grows the table, which has inserted the key into the new
    /// map, when no hit uses the old map as the only one.
    pub fn carry(&self) {
        let (Some(new), Some(old)) = (self.new, self.old) else {
            return;
        };

        if let Some(value) = old.close() {
            new.write_first(value);
        }
    }
}
