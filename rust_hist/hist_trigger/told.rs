// SPDX-License-Identifier: GPL-2.0

//! Files with a text about each trigger of an event: `hist_stats` and `hist_debug`.
//!
//! C counterpart: `hist_debug_show()`.
//!
//! Context: process. The text is made when a read begins: its data are collected under `event_mutex`, and then added up
//! and written without it.

use super::{
    growth::settled,
    HistTrigger, //
};
use crate::{
    ffi::{
        command::Attached,
        event_files::{
            EventTable,
            LockedEvent, //
        },
        guard::EventMutexHeld,
        seq::SeqWriter,
        text::TextBuf, //
    },
    text::Out, //
};
use core::{
    fmt,
    marker::PhantomData, //
};
use kernel::prelude::*;

/// The text of a file about one trigger.
pub(crate) trait Tell: Sized + Send + 'static {
    /// The text for an event without triggers.
    const NONE: &'static [u8] = b"";

    /// Collects the data of a trigger, which is preceded by `n` others.
    fn of(n: usize, trigger: &Attached<'_, HistTrigger>, held: &EventMutexHeld) -> Result<Self>;

    /// Writes the text. `event_mutex` is not held.
    fn tell(&self, out: &mut TextBuf) -> fmt::Result;
}

/// The type of a file with the texts `T` of all triggers.
pub(crate) struct Told<T>(PhantomData<T>);

#[vtable]
impl<T: Tell> EventTable for Told<T> {
    type Opened = ();
    type Copy = TextBuf;

    fn open(_event: LockedEvent<'_>) -> Result {
        Ok(())
    }

    fn copy(_opened: &(), event: LockedEvent<'_>) -> Result<TextBuf> {
        let event = settled(event)?;
        let held = event.held();
        let mut all = KVec::new();
        for (n, trigger) in Attached::all(event.file(), held).enumerate() {
            all.push(T::of(n, &trigger, held)?, GFP_KERNEL_ACCOUNT)?;
        }
        drop(event);
        let mut text = TextBuf::charged();
        for one in &all {
            one.tell(&mut text).map_err(|_| ENOMEM)?;
        }
        if text.as_bytes().is_empty() {
            text.write_bytes(T::NONE).map_err(|_| ENOMEM)?;
        }
        Ok(text)
    }

    fn records(text: &TextBuf) -> usize {
        // An empty record would be requested again and again.
        usize::from(!text.as_bytes().is_empty())
    }

    fn show(text: &TextBuf, _index: usize, out: &mut SeqWriter<'_>) -> fmt::Result {
        out.write_bytes(text.as_bytes())
    }
}
