// SPDX-License-Identifier: GPL-2.0

//! The `hist_stats` file: what became of every call of the triggers of an event, and their memory.
//!
//! There is no C counterpart: C does not count what it loses by nesting, nor what it ignores.
//!
//! `calls` is the sum of `hits`, the two kinds of drops, and `ignored`, always. `lost_saves` counts the
//! hits whose `save()` found no room. All begin at 0 when the table is made or cleared. Triggers of one
//! name have their table, and so their account, in common. A line begins with its title and a colon, an empty line comes
//! between two triggers.

use super::{
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
        seq::SeqWriter, //
    },
    program::Out,
    sync::Relaxed, //
};
use core::{
    fmt,
    fmt::Write, //
};
use kernel::prelude::*;

/// The kind of file.
pub(crate) struct StatsFile;

/// Writes what there is to say of one trigger.
fn describe(
    n: usize,
    trigger: &Attached<'_, HistTrigger>,
    held: &EventMutexHeld,
    out: &mut TextBuf,
) -> fmt::Result {
    let data = trigger.data();
    let definition = &data.definition;
    let live = data.table.held(held);
    let map = &live.map;
    let account = map.account();
    let shape = map.shape();

    if n > 0 {
        out.write_str("\n")?;
    }
    out.write_bytes(b"trigger: ")?;
    definition.program.write_line(
        definition.prefix,
        &definition.text,
        trigger.is_paused(),
        out,
    )?;
    let lines = [
        ("calls", account.calls()),
        ("hits", account.hits),
        ("dropped_full", account.dropped_full),
        ("dropped_nested", account.dropped_nested),
        ("ignored", account.ignored),
        // ORDERING: a number by itself.
        ("lost_saves", live.lost_saves.load(Relaxed)),
        // CAST: counts of things in memory.
        ("entries", map.published().count() as u64),
        ("size", shape.elts() as u64),
        ("shards", shape.shards() as u64),
        ("memory", data.memory(held) as u64),
    ];
    for (title, n) in lines {
        writeln!(out, "{title}: {n}")?;
    }
    Ok(())
}

impl EventTable for StatsFile {
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
            describe(n, &trigger, held, &mut text).map_err(|_| ENOMEM)?;
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
