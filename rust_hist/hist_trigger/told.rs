// SPDX-License-Identifier: GPL-2.0

//! Files that tell of each trigger of an event in turn, as one text: `hist_stats` and `hist_debug`.
//!
//! C counterpart: `hist_debug_show()`.
//!
//! Context: process. The text is made under `event_mutex` when a read begins.

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

/// What such a file has to say.
pub(crate) trait Tell: 'static {
    /// What there is to say of an event that has no triggers.
    const NONE: &'static [u8] = b"";

    /// Writes what there is to say of a trigger, of which `n` come before it.
    fn tell(
        n: usize,
        trigger: &Attached<'_, HistTrigger>,
        held: &EventMutexHeld,
        out: &mut TextBuf,
    ) -> fmt::Result;
}

/// The kind of file that tells what `T` has to say.
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
        let (file, held) = (event.file(), event.held());
        let mut text = TextBuf::charged();
        for (n, trigger) in Attached::all(file, held).enumerate() {
            T::tell(n, &trigger, held, &mut text).map_err(|_| ENOMEM)?;
        }
        if text.as_bytes().is_empty() {
            text.write_bytes(T::NONE).map_err(|_| ENOMEM)?;
        }
        Ok(text)
    }

    fn records(text: &TextBuf) -> usize {
        // An empty record would be asked for again and again.
        usize::from(!text.as_bytes().is_empty())
    }

    fn show(text: &TextBuf, _index: usize, out: &mut SeqWriter<'_>) -> fmt::Result {
        out.write_bytes(text.as_bytes())
    }
}
