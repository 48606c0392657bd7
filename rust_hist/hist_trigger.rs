// SPDX-License-Identifier: GPL-2.0

//! The `hist` trigger: glue between the kernel's events and the pure layers.
//!
//! C counterpart: [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//!
//! A line written to a `trigger` file (`hist_trigger/command.rs`) is compiled against the fields of the event and the
//! variables of the instance (`hist_trigger/resolve.rs`), and becomes a [`Definition`]. With a table
//! (`hist_trigger/storage.rs`) it becomes a [`HistTrigger`], which acquires resources of its instance
//! (`hist_trigger/hold.rs`) and is attached to the event until its removal (`hist_trigger/remove.rs`). Every record of
//! the event then runs through `hist_trigger/hot.rs`, and readers of the event's files through `hist_trigger/show.rs`,
//! `json.rs`, `pipe.rs`, `stats.rs` and `debug.rs`.
//!
//! Its actions may generate events of `synth.rs`. Fields of the matched event that an action needs are kept by a helper
//! trigger on that event (`hist_trigger/helper.rs`); `hist_trigger/nest.rs` limits how deep hits may nest.
//!
//! Related: the commands that pause and continue triggers (`hist_trigger/enable.rs`), the triggers created when the
//! module is loaded (`hist_trigger/load.rs`), snapshots (`hist_trigger/snapshot.rs`), and the cost of triggers
//! (`hist_trigger/overhead.rs`).

mod command;
mod copied;
#[cfg(rust_hist_debug)]
pub(crate) mod debug;
pub(crate) mod enable;
mod filter;
pub(crate) mod growth;
mod helper;
mod hold;
mod hot;
pub(crate) mod json;
pub(crate) mod load;
mod log;
mod nest;
mod overhead;
pub(crate) mod pipe;
#[cfg(not(rust_hist_built_in))]
pub(crate) mod readme;
mod remove;
mod resolve;
mod seen;
pub(crate) mod show;
mod snapshot;
pub(crate) mod stats;
pub(crate) mod storage;
mod text;
mod told;

use self::{
    nest::{
        Nest,
        Nesting, //
    },
    overhead::HitCost,
    resolve::Found,
    storage::Table, //
};
use crate::{
    alloc::Vec,
    ffi::{
        command::{
            Attached,
            Command,
            EntryFn,
            Line,
            Trigger, //
        },
        dyn_event::User,
        event::EventFile,
        guard::{
            EventMutexHeld,
            PreemptOff, //
        },
        seq::SeqWriter,
        text::TextBuf, //
    },
    program::{
        Chosen,
        Program, //
    },
    rate::Turns,
    render,
    synth::SynthEvent,
    text::Out, //
};
use core::fmt;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// The definition of a trigger: its text, and the program compiled from that. Never changes.
///
/// Readers may own it beyond the life of the trigger.
pub(crate) struct Definition {
    /// The name of the command.
    prefix: &'static [u8],
    /// The text after the name; names and the filter of the program are spans of it.
    text: KVec<u8>,
    program: Program,
}

impl Definition {
    /// Returns an empty program, for the compiler to fill.
    ///
    /// It is allocated at once, as the compiler needs the stack.
    #[inline(never)]
    fn empty() -> Result<KBox<Program>> {
        Ok(KBox::new(Program::empty(), GFP_KERNEL)?)
    }

    /// Returns a definition of a program and the text from which it was compiled.
    #[inline(never)]
    fn new(prefix: &'static [u8], text: &[u8], program: KBox<Program>) -> Result<Arc<Self>> {
        let mut copy = KVec::with_capacity(text.len(), GFP_KERNEL)?;
        copy.extend_from_slice(text, GFP_KERNEL)?;
        let definition = Self {
            prefix,
            text: copy,
            program: KBox::into_inner(program),
        };
        Ok(Arc::new(definition, GFP_KERNEL)?)
    }

    /// Returns whether `program`, compiled from `text`, is the same trigger; an event has at most one of them.
    fn is(&self, program: &Program, text: &[u8]) -> bool {
        program.name(text) == self.program.name(&self.text)
            && program.same_trigger(text, &self.program, &self.text)
    }

    /// Returns whether the trigger `program` can share the table of this one.
    fn has_shape(&self, program: &Program, text: &[u8]) -> bool {
        program.same_shape(text, &self.program, &self.text) && program.same_layout(&self.program)
    }
}

/// A trigger on one event of one instance.
///
/// Lives until a grace period after it was detached from its event.
pub(crate) struct HistTrigger {
    definition: Arc<Definition>,
    table: Arc<Table>,
    /// The tables of the variables that the trigger reads, by the program's numbers for them.
    sources: Vec<Arc<Table>>,
    /// The events that the trigger generates, by the program's numbers for them. While it is attached, it counts as a
    /// user of each.
    synths: Vec<Arc<SynthEvent>>,
    /// The trigger's name as a user of those events, if there are any.
    user: Option<Arc<User>>,
    /// Whether hits of the trigger can be part of a chain of events.
    nesting: Nesting,
    /// The state of the trigger's `limit()`.
    turns: Turns,
    /// The cost of the trigger's hits, if it is measured.
    gauge: Option<KBox<HitCost>>,
    /// The functions that handle its hits.
    path: Chosen<hot::ForCore>,
    /// Whether the trigger was made for others, which read its variables, and goes with the last of them.
    helper: bool,
}

impl HistTrigger {
    /// Returns a trigger for an event.
    fn new(
        command: &Command<Self>,
        file: &EventFile,
        definition: Arc<Definition>,
        table: Arc<Table>,
        found: Found,
        held: &EventMutexHeld,
    ) -> Result<Self> {
        let nesting = Nesting::new(command, file, !found.synths.is_empty(), held)?;
        let user = (!found.synths.is_empty())
            .then(|| user(file, &definition))
            .transpose()?;
        for synth in found.synths.iter() {
            synth.promise_user(held)?;
        }
        growth::reserve(&table, held)?;
        let path = hot::path(
            &definition.program,
            &table,
            &found.tables,
            nesting.is_inside(),
        );
        let gauge = definition.program.overhead.then(HitCost::new).transpose()?;
        Ok(Self {
            path,
            definition,
            table,
            sources: found.tables,
            synths: found.synths,
            user,
            nesting,
            turns: Turns::new(),
            gauge,
            helper: false,
        })
    }

    /// Returns whether a trigger that reads `sources` can share the table of this one.
    ///
    /// Triggers that share a table read the same tables, all of which are older. So no table reads itself, even through
    /// others, and there always is a trigger that can be removed.
    fn has_sources(&self, sources: &[Arc<Table>]) -> bool {
        let own = self.sources.iter().map(Arc::as_ptr);
        own.eq(sources.iter().map(Arc::as_ptr))
    }

    /// Returns the bytes of the trigger with its table, which others may own, too.
    fn memory(&self, held: &EventMutexHeld) -> usize {
        size_of::<Self>()
            + size_of::<Definition>()
            + self.definition.text.capacity()
            + self.definition.program.bytes()
            + self.sources.bytes()
            + self.synths.bytes()
            + self.user.as_ref().map_or(0, |user| user.capacity())
            + self.gauge.as_ref().map_or(0, |_| size_of::<HitCost>())
            + self.table.bytes(held)
    }
}

/// Writes the line of a trigger, newline included.
fn write_line(trigger: &Attached<'_, HistTrigger>, out: &mut dyn Out) -> fmt::Result {
    let definition = &trigger.data().definition;

    definition.program.write_line(
        definition.prefix,
        &definition.text,
        trigger.is_paused(),
        out,
    )
}

/// Returns the event and the command of a trigger; the error log shows them if the trigger prevents another command.
fn shown(file: &EventFile, definition: &Definition) -> Result<TextBuf> {
    let (system, event) = file.names();
    let mut text = TextBuf::joined(&[system, b":", event, b": "])?;
    definition
        .program
        .write_command(definition.prefix, &definition.text, &mut text)
        .map_err(|_| ENOMEM)?;
    Ok(text)
}

/// Like [`shown`], with the instance's name, for readers in another instance.
fn user(file: &EventFile, definition: &Definition) -> Result<Arc<User>> {
    let shown = shown(file, definition)?;
    let text = match file.instance().name() {
        Some(name) => TextBuf::joined(&[b"instance ", name.to_bytes(), b", ", shown.as_bytes()])?,
        None => shown,
    };
    Ok(Arc::new(text.into_bytes(), GFP_KERNEL)?)
}

/// Writes the header of a trigger that follows `n` others, up to the rows or fields.
fn write_header(n: usize, trigger: &Attached<'_, HistTrigger>, out: &mut dyn Out) -> fmt::Result {
    render::begin(n, out)?;
    write_line(trigger, out)?;
    render::end_header(out)
}

#[vtable]
impl Trigger for HistTrigger {
    // The kernel's own types are below this; C code inspects the triggers of its types.
    const TYPE: u32 = 1 << 16;
    const NEEDS_RECORD: bool = true;
    const FIRST: bool = false;

    type Shared = Arc<Nest>;

    fn parse(
        command: &Command<Self>,
        file: &EventFile,
        line: Line<'_>,
        held: &EventMutexHeld,
    ) -> Result {
        command::run(command, file, line, held).map_err(|failure| failure.error)
    }

    fn remove_all(file: &EventFile, held: &EventMutexHeld) {
        remove::remove_all(file, held);
    }

    fn entry(&self) -> EntryFn<Self> {
        self.path.enter
    }

    fn miss(&self, preempt: &PreemptOff<'_>) {
        hot::miss(self, preempt);
    }

    fn event_going(trigger: Attached<'_, Self>, held: &EventMutexHeld) {
        remove::remove(trigger, held);
    }

    fn watch(command: &Command<Self>, held: &EventMutexHeld) -> bool {
        overhead::watch(command, held)
    }

    fn attaching(&self, held: &EventMutexHeld) {
        growth::add(&self.table, held);
        for (synth, user) in self.synths.iter().zip(self.user.iter().cycle()) {
            synth.add_user(user, held);
        }
    }

    fn detached(&self, held: &EventMutexHeld) {
        growth::remove(&self.table, held);
        // A hit in progress may still generate these events; once removed, an event is in no instance any more.
        for (synth, user) in self.synths.iter().zip(self.user.iter().cycle()) {
            synth.drop_user(user, held);
        }
    }

    fn print(trigger: &Attached<'_, Self>, out: &mut SeqWriter<'_>) -> fmt::Result {
        write_line(trigger, out)
    }
}
