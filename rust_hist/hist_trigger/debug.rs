// SPDX-License-Identifier: GPL-2.0

//! The `hist_debug` file: what the triggers of an event are made of.
//!
//! C counterpart: `hist_debug_show()`, which needs `CONFIG_HIST_TRIGGERS_DEBUG`. Here the file is there
//! unless the module is built with `RUST_HIST_DEBUG=n`.

use super::{
    storage::Table,
    text::TextBuf,
    HistTrigger, //
};
use crate::{
    ffi::{
        command::Attached,
        event::EventFile,
        event_files::{
            EventTable,
            LockedEvent, //
        },
        guard::EventMutexHeld,
        poll::PollEvents,
        seq::SeqWriter,
        symbols, //
    },
    program::{
        DebugTables,
        Described,
        Out,
        Ref, //
    },
    render, //
};
use core::fmt;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// The kind of file.
pub(crate) struct DebugFile;

/// The tables that a trigger knows, each by its address, which the kernel does not show as it is.
struct Addresses<'a>(&'a HistTrigger);

impl Addresses<'_> {
    fn source(&self, reference: &Ref) -> Option<&Arc<Table>> {
        self.0.sources.get(usize::from(reference.table()))
    }
}

fn write_address<T>(address: *const T, out: &mut impl Out) -> fmt::Result {
    symbols::with_hashed(address, |hashed| out.write_bytes(hashed))
}

impl DebugTables for Addresses<'_> {
    fn write_own(&self, out: &mut impl Out) -> fmt::Result {
        write_address(Arc::as_ptr(&self.0.table), out)
    }

    fn write_of(&self, reference: &Ref, out: &mut impl Out) -> fmt::Result {
        match self.source(reference) {
            Some(table) => write_address(Arc::as_ptr(table), out),
            None => Ok(()),
        }
    }

    fn variable<R>(&self, reference: &Ref, found: impl FnOnce(Described<'_>) -> R) -> R {
        let name = reference.name().of(&self.0.definition.text);
        match self.source(reference) {
            Some(table) => {
                let definition = table.definition();
                found(definition.program.describe(name, &definition.text))
            }
            None => found(Described::default()),
        }
    }
}

/// Writes what there is to say of one trigger.
fn describe(n: usize, trigger: &Attached<'_, HistTrigger>, out: &mut TextBuf) -> fmt::Result {
    let data = trigger.data();
    let definition = &data.definition;

    render::begin(n, out)?;
    definition.program.write_line(
        definition.prefix,
        &definition.text,
        trigger.is_paused(),
        out,
    )?;
    render::end_header(out)?;
    definition
        .program
        .write_debug(&definition.text, &Addresses(data), out)
}

impl EventTable for DebugFile {
    type Opened = ();
    type Copy = TextBuf;

    const POLLS: bool = false;

    fn open(_file: &EventFile, _held: &EventMutexHeld) -> Result {
        Ok(())
    }

    fn copy(_opened: &(), event: LockedEvent<'_>) -> Result<TextBuf> {
        let (file, held) = (event.file(), event.held());
        let mut text = TextBuf::new();
        for (n, trigger) in Attached::all(file, held).enumerate() {
            describe(n, &trigger, &mut text).map_err(|_| ENOMEM)?;
        }
        Ok(text)
    }

    fn records(text: &TextBuf) -> usize {
        // An empty record would be asked for again and again.
        usize::from(!text.as_bytes().is_empty())
    }

    fn show(text: &TextBuf, _index: usize, out: &mut SeqWriter<'_>) -> fmt::Result {
        out.bytes(text.as_bytes())
    }

    fn poll(_opened: &(), _file: &EventFile, _held: &EventMutexHeld) -> PollEvents {
        PollEvents::NONE
    }
}
