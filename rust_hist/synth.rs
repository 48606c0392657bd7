// SPDX-License-Identifier: GPL-2.0

//! Synthetic events: made by user space, fired by hist triggers and by modules.
//!
//! C counterpart:
//! [`kernel/trace/trace_events_synth.c`](srctree/kernel/trace/trace_events_synth.c).
//! What an event is, its record and how it is shown, is in `schema`; how the core knows of it in
//! `ffi::dyn_event`. Here the two come together.
//!
//! An event is found by its name under `event_mutex`, which also protects against its deletion. Who
//! fires it later holds a counted reference, and counts as a user while the event shall stay
//! ([`SynthEvent::add_user`](crate::ffi::dyn_event::Event::add_user)). A deleted event may still be
//! fired: nobody listens.
//!
//! Lock order: the lock of the types of dynamic events (held by the core around lines of
//! `dynamic_events`), `event_mutex`, `trace_types_lock`.

#[cfg(not(CONFIG_SYNTH_EVENTS))]
mod api;
mod command;
mod fire;
mod print;

use crate::{
    ffi::{
        dyn_event::{
            self,
            Event,
            FieldDef,
            Kind,
            Owner,
            Registry, //
        },
        guard::EventMutexHeld,
        record,
        seq::SeqWriter,
        text::TextBuf,
        trace_seq::TraceWriter, //
    },
    field::SynthClass,
    schema::Schema,
    text::Out, //
};
use core::{
    ffi::CStr,
    fmt, //
};
use kernel::{
    prelude::*,
    sync::{
        Arc,
        SetOnce, //
    }, //
};

/// What synthetic events are called, in their files and in those of the core.
pub(crate) struct Names {
    /// The file that lists them; also what the error log calls it.
    file: &'static CStr,
    /// The system that they are in.
    system: &'static CStr,
    /// What their lines in `dynamic_events` begin with, before the colon.
    prefix: &'static CStr,
}

impl Names {
    /// The file that lists the events.
    pub(crate) fn file(&self) -> &'static CStr {
        self.file
    }
}

/// Those of the C implementation, for a kernel without it.
pub(crate) static DROP_IN: Names = Names {
    file: c"synthetic_events",
    system: c"synthetic",
    prefix: c"s",
};

/// Beside the C implementation.
pub(crate) static BESIDE: Names = Names {
    file: c"rsynthetic_events",
    system: c"rsynthetic",
    prefix: c"rs",
};

/// The names in use, set before anything is registered.
static NAMES: SetOnce<&'static Names> = SetOnce::new();

/// The names in use.
fn names() -> &'static Names {
    NAMES.as_ref().copied().unwrap_or(&DROP_IN)
}

static EVENTS: Registry<Synth> = Registry::new();

/// What is particular to a synthetic event: its definition.
pub(crate) struct Synth {
    schema: Schema,
}

/// A synthetic event.
pub(crate) type SynthEvent = Event<Synth>;

impl Synth {
    /// The definition.
    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }
}

#[vtable]
impl Kind for Synth {
    fn registry() -> &'static Registry<Self> {
        &EVENTS
    }

    fn create(line: &CStr) -> Result<bool> {
        command::run_dynamic(line)
    }

    fn command(line: &CStr) -> Result {
        command::run(line, Owner::NONE)
    }

    fn name(&self) -> &CStr {
        self.schema.name()
    }

    fn system() -> &'static CStr {
        names().system
    }

    fn fields(&self) -> impl Iterator<Item = FieldDef<'_>> {
        self.schema.fields().map(|field| FieldDef {
            type_name: field.type_name,
            name: field.name,
            offset: field.offset(),
            size: field.size.into(),
            signed: field.signed,
            stack: field.class == SynthClass::Stack,
        })
    }

    fn record_len(&self) -> usize {
        self.fields()
            .map(|field| field.offset.saturating_add(field.size))
            .max()
            .unwrap_or(0)
    }

    fn still_in_use(event: &SynthEvent, all: bool, held: &EventMutexHeld) {
        command::still_in_use(event, all, held);
    }

    fn list(&self, out: &mut SeqWriter<'_>) -> fmt::Result {
        self.schema.write_listing(out)
    }

    fn show(&self, out: &mut SeqWriter<'_>) -> fmt::Result {
        out.write_bytes(names().prefix.to_bytes())?;
        out.write_bytes(b":")?;
        out.write_bytes(names().system.to_bytes())?;
        out.write_bytes(b"/")?;
        self.schema.write_listing(out)
    }

    fn print(&self, record: &[u8], verbose: bool, out: &mut TraceWriter<'_>) -> fmt::Result {
        self.schema
            .write_line(record, verbose, &print::KernelNames, out)
    }
}

/// The event called `name`, if there is one.
pub(crate) fn find(name: &[u8], held: &EventMutexHeld) -> Option<Arc<SynthEvent>> {
    EVENTS
        .events(held)
        .find(|event| event.schema.name().to_bytes() == name)
        .map(Arc::from)
}

/// Deletes an event: `EBUSY` if it is in use.
///
/// The instances in which the event has been enabled have their buffers emptied, before anybody can make the next
/// event, which gets its number, and would be shown its records.
///
/// PARITY: `synth_event_delete()` does so for the event of a module only, and without the mutex.
fn delete(event: &Arc<SynthEvent>, held: &EventMutexHeld) -> Result {
    Event::delete(event, held)?;
    record::empty_stale_buffers(held);
    Ok(())
}

/// Makes an event of a schema, whose name is free.
fn publish(schema: Schema, owner: Owner, held: &EventMutexHeld) -> Result {
    let mut print_fmt = TextBuf::new();
    // What is written to fails only for lack of memory.
    schema.write_print_fmt(&mut print_fmt).map_err(|_| ENOMEM)?;
    let event = Event::new(Synth { schema }, print_fmt.into_bytes(), owner)?;
    Event::publish(&event, held)
}

/// Keeps synthetic events, and their file, registered until it is dropped.
pub(crate) type Registration = dyn_event::Registration<Synth>;

/// Registers the type of events and its file, by which nobody can make events yet.
pub(crate) fn register(use_names: &'static Names) -> impl PinInit<Registration, Error> {
    NAMES.populate(use_names);
    Registration::new(use_names.file)
}
