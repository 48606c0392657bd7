// SPDX-License-Identifier: GPL-2.0

//! The `hist` trigger: glue between the kernel's events and the pure rooms.
//!
//! C counterpart: [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//!
//! A line written to a `trigger` file becomes a [`Definition`] (`hist_trigger/command.rs`), which gets
//! a map (`hist_trigger/storage.rs`) and is put on the event. Every record of the event then runs
//! through `hist_trigger/hot.rs`, and readers of the `hist` and `hist_stats` files through
//! `hist_trigger/show.rs` and `hist_trigger/stats.rs`.

mod command;
mod hot;
pub(crate) mod readme;
mod resolve;
pub(crate) mod show;
pub(crate) mod stats;
mod storage;
mod text;

use self::storage::MapCell;
use crate::{
    ffi::{
        command::{
            Attached,
            Command,
            Line,
            Trigger, //
        },
        event::{
            EventFile,
            Hit, //
        },
        guard::{
            EventMutexHeld,
            PreemptOff, //
        },
        seq::SeqWriter, //
    },
    program::Program, //
};
use core::fmt;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// What a trigger is: the text it was made from and what that means. Never changes.
///
/// Readers keep it beyond the life of the trigger.
pub(crate) struct Definition {
    /// The name of the command.
    prefix: &'static [u8],
    /// What follows the name; names and filter of the program are pieces of it.
    text: KVec<u8>,
    program: Program,
}

impl Definition {
    /// Whether both are the same trigger, for an event that has one of them.
    fn is_same(&self, other: &Self) -> bool {
        self.program
            .same_trigger(&self.text, &other.program, &other.text)
    }
}

/// One trigger on one event of one instance.
///
/// Lives from its creation to a grace period after it was taken off its event.
pub(crate) struct HistTrigger {
    definition: Arc<Definition>,
    map: MapCell,
}

impl HistTrigger {
    /// The bytes that the trigger takes, with its map.
    fn memory(&self, held: &EventMutexHeld) -> usize {
        size_of::<Self>()
            + size_of::<Definition>()
            + self.definition.text.capacity()
            + storage::bytes(self.map.held(held))
    }
}

/// Takes a trigger off its event.
fn remove(trigger: Attached<'_, HistTrigger>, file: &EventFile, held: &EventMutexHeld) {
    let timestamps = trigger.data().definition.program.needs_timestamp();
    trigger.remove(held);
    if timestamps {
        file.instance().allow_scratch();
    }
}

impl Trigger for HistTrigger {
    // No kernel has a type of its own up here; the C code looks into every trigger of its types.
    const TYPE: u32 = 1 << 16;

    fn parse(
        command: &Command<Self>,
        file: &EventFile,
        line: Line<'_>,
        held: &EventMutexHeld,
    ) -> Result {
        command::run(command, file, line, held)
    }

    fn remove_all(file: &EventFile, held: &EventMutexHeld) {
        for trigger in Attached::all(file, held) {
            remove(trigger, file, held);
        }
    }

    #[inline(always)]
    fn hit(&self, hit: &Hit<'_>) {
        hot::hit(self, hit);
    }

    fn miss(&self, preempt: &PreemptOff<'_>) {
        hot::miss(self, preempt);
    }

    fn event_going(trigger: Attached<'_, Self>, file: &EventFile, held: &EventMutexHeld) {
        remove(trigger, file, held);
    }

    fn print(trigger: &Attached<'_, Self>, out: &mut SeqWriter<'_>) -> fmt::Result {
        let definition = &trigger.data().definition;
        definition.program.write_line(
            definition.prefix,
            &definition.text,
            trigger.is_paused(),
            out,
        )
    }
}
