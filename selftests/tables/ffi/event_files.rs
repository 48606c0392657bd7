// SPDX-License-Identifier: GPL-2.0

//! Files of an event.

use super::{
    event::EventFile,
    guard::{EventMutex, EventMutexHeld},
    poll::PollEvents,
    seq::SeqWriter,
};
use crate::sim::{self, At};
use kernel::prelude::*;
use std::fmt;

/// What one kind of file shows.
pub trait EventTable: Sized + 'static {
    type Opened;
    type Copy;

    fn open(event: LockedEvent<'_>) -> Result<Self::Opened>;
    fn copy(opened: &Self::Opened, event: LockedEvent<'_>) -> Result<Self::Copy>;
    fn records(copy: &Self::Copy) -> usize;
    fn show(copy: &Self::Copy, index: usize, out: &mut SeqWriter<'_>) -> fmt::Result;
    fn given(_copy: &mut Self::Copy) {}
    fn poll(opened: &Self::Opened, event: LockedEvent<'_>) -> PollEvents;
}

/// An event with `event_mutex` held.
pub struct LockedEvent<'a> {
    file: &'a EventFile,
    held: EventMutex,
}

impl<'a> LockedEvent<'a> {
    /// Takes the mutex.
    pub fn lock(file: &'a EventFile) -> Self {
        Self {
            file,
            held: EventMutex::lock(),
        }
    }

    pub fn unlocked<R>(self, run: impl FnOnce() -> R) -> Result<(Self, R)> {
        let file = self.file;
        drop(self);
        let result = run();
        Ok((Self::lock(file), result))
    }

    /// Others come in meanwhile.
    pub fn pause(self) -> Result<Self> {
        Ok(self.unlocked(|| sim::at(At::Pause))?.0)
    }

    pub fn file(&self) -> &EventFile {
        self.file
    }

    pub fn held(&self) -> &EventMutexHeld {
        &self.held
    }
}
