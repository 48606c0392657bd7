// SPDX-License-Identifier: GPL-2.0

//! Triggers on their events.

use super::{event::EventFile, guard::EventMutexHeld};
use crate::hist_trigger::HistTrigger;
use kernel::sync::Arc;
use std::marker::PhantomData;

/// A trigger that is on an event.
pub struct Attached<'a, T> {
    file: &'a EventFile,
    data: Arc<HistTrigger>,
    _type: PhantomData<T>,
}

impl<'a> Attached<'a, HistTrigger> {
    /// Returns those of an event.
    pub fn all(file: &'a EventFile, held: &'a EventMutexHeld) -> impl Iterator<Item = Self> + 'a {
        let triggers = file.triggers.get(held).clone();
        triggers.into_iter().map(move |data| Self {
            file,
            data,
            _type: PhantomData,
        })
    }

    pub fn file(&self) -> &'a EventFile {
        self.file
    }

    pub fn data(&self) -> &HistTrigger {
        &self.data
    }

    pub fn is_paused(&self) -> bool {
        false
    }
}
