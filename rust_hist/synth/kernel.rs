// SPDX-License-Identifier: GPL-2.0

//! Synthetic events of the kernel, which hist triggers of the module generate: for kernels in which a module cannot add
//! a type of events.
//!
//! C counterpart: `action_trace()` in [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c)

use crate::{
    error::Errno,
    ffi::{
        dyn_event::{
            KernelEvent,
            Large,
            User, //
        },
        error_log,
        guard::{
            EventMutexHeld,
            PreemptOff, //
        },
        record::Moment,
        text::TextBuf, //
    },
    field::SynthClass,
    limits::STR_SLOT,
    schema::{
        self,
        parse,
        FieldValues,
        Schema,
        SynthCommand,
        WithValues, //
    },
    text::Out, //
};
use core::ffi::CStr;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// The names for synthetic events. Empty here, since the kernel's names are used.
pub(crate) struct Names;

impl Names {
    /// Returns the name of the kernel's file that lists the events.
    pub(crate) fn file(&self) -> &'static CStr {
        c"synthetic_events"
    }
}

/// Like all [`Names`] here: the names of the kernel.
pub(crate) static DROP_IN: Names = Names;

/// Like all [`Names`] here: the names of the kernel.
pub(crate) static BESIDE: Names = Names;

/// Registers nothing: the kernel has its synthetic events already.
pub(crate) struct Registration;

impl Registration {
    /// Does nothing: the kernel's file can be opened at any time.
    pub(crate) fn open(&self) {}
}

/// Registers nothing: the kernel has its synthetic events already.
pub(crate) fn register(_names: &'static Names) -> impl PinInit<Registration, Error> {
    Ok(Registration)
}

/// The words of a stack: its length, as many frames as C copies, and a 0.
const STACK_WORDS: usize = 32;

/// Most fields of an event whose values take little of the stack, if they are numbers.
const FEW: usize = 8;

/// The bytes for the strings and stacks of an event, which a hit has on its own stack.
const PAD: usize = 1024;

/// A synthetic event, which cannot be deleted while the value lives.
///
/// # Invariants
///
/// The schema has the fields of the event, and a pad has room for its strings and stacks.
pub(crate) struct SynthEvent {
    event: KernelEvent,
    schema: Schema,
    /// Whether its values are at most [`FEW`] numbers.
    is_small: bool,
}

/// Returns the event called `name`, if there is one.
pub(crate) fn find(name: &[u8], _held: &EventMutexHeld) -> Option<Arc<SynthEvent>> {
    let text = TextBuf::terminated(name).ok()?;
    let event = KernelEvent::get(text.as_c_str())?;
    let schema = schema_of(name, &event).ok()?;
    let pad = schema
        .fields()
        .map(|field| room_of(field.class))
        .fold(0usize, usize::saturating_add);
    if pad > PAD {
        error_log::report(
            None,
            c"synthetic_events",
            text.as_c_str(),
            c"Too many strings and stacks for trace() on this kernel",
            b"",
            0,
        );
        return None;
    }
    let is_small = pad == 0 && schema.fields().count() <= FEW;
    // INVARIANT: the schema was made from the event's fields, and the room was checked above.
    let event = SynthEvent {
        event,
        schema,
        is_small,
    };
    Arc::new(event, GFP_KERNEL).ok()
}

/// Returns how many bytes of a pad the values of a field take.
fn room_of(class: SynthClass) -> usize {
    match class {
        SynthClass::Number => 0,
        SynthClass::StaticString | SynthClass::DynString => STR_SLOT,
        SynthClass::Stack => STACK_WORDS * 8,
    }
}

/// Returns the schema of an event, from the fields that the kernel has for it.
fn schema_of(name: &[u8], event: &KernelEvent) -> Result<Schema> {
    let mut text = TextBuf::joined(&[name])?;
    event.fields(|kind, name| {
        let kind = kind.strip_prefix(b"__data_loc ").unwrap_or(kind);
        for part in [b" ".as_slice(), kind, b" ", name, b";"] {
            text.write_bytes(part).map_err(|_| ENOMEM)?;
        }
        Ok(())
    })?;
    match parse(text.as_bytes(), |_| false) {
        Ok(SynthCommand::Create(schema)) => Ok(schema),
        Ok(_) => Err(EINVAL),
        Err(refusal) if refusal.errno == Errno::Enomem => Err(ENOMEM),
        Err(_) => Err(EINVAL),
    }
}

/// The result of generating an event once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fired {
    /// How many records were lost, of which only the kernel knows more.
    pub(crate) lost: u32,
}

impl SynthEvent {
    /// Returns the fields of the event.
    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Returns whether the values of the event take little of a hit's stack.
    #[inline]
    pub(crate) fn is_small(&self) -> bool {
        self.is_small
    }

    /// Returns whether anybody has the event enabled.
    #[inline]
    pub(crate) fn has_listeners(&self) -> bool {
        self.event.has_listeners()
    }

    /// Does nothing: the [`SynthEvent`] itself keeps the event.
    pub(crate) fn promise_user(&self, _held: &EventMutexHeld) -> Result {
        Ok(())
    }

    /// Does nothing: the [`SynthEvent`] itself keeps the event.
    pub(crate) fn add_user(&self, _user: &Arc<User>, _held: &EventMutexHeld) {}

    /// Does nothing: the [`SynthEvent`] itself keeps the event.
    pub(crate) fn drop_user(&self, _user: &Arc<User>, _held: &EventMutexHeld) {}

    /// Generates the event: each listener that has it enabled gets a record with these values.
    pub(crate) fn fire(
        &self,
        values: &impl FieldValues,
        _moment: Moment,
        preempt: &PreemptOff<'_>,
    ) -> Fired {
        if !self.has_listeners() {
            return Fired::default();
        }
        // PARITY: `get_hist_pad()` counts in the record's `common_preempt_count`.
        let again = preempt.again();
        values.materialize(Fire {
            event: self,
            preempt: again.proof(),
        })
    }
}

/// The arguments with which an event is generated, after the stack was unwound.
struct Fire<'b> {
    event: &'b SynthEvent,
    preempt: &'b PreemptOff<'b>,
}

impl WithValues for Fire<'_> {
    type Out = Fired;

    #[inline(never)]
    fn run(self, values: &impl FieldValues) -> Fired {
        if self.event.is_small {
            return self.put::<FEW, 0>(values);
        }
        // The values are on the stack while the triggers of the event run.
        match Large::enter(self.preempt) {
            Some(_large) => self.put::<{ schema::FIELDS_MAX }, PAD>(values),
            None => Fired { lost: 1 },
        }
    }
}

impl Fire<'_> {
    /// Generates the event, with at most `FIELDS` fields and `BYTES` bytes for strings and stacks.
    #[inline(never)]
    fn put<const FIELDS: usize, const BYTES: usize>(&self, values: &impl FieldValues) -> Fired {
        let mut words = [0u64; FIELDS];
        let mut pad = Pad([0; BYTES]);
        let mut free = pad.0.as_mut_slice();
        let fields = self.event.schema.fields().enumerate();
        for ((index, field), word) in fields.zip(words.iter_mut()) {
            let Some((room, rest)) =
                core::mem::take(&mut free).split_at_mut_checked(room_of(field.class))
            else {
                return Fired { lost: 1 };
            };
            free = rest;
            *word = match field.class {
                SynthClass::Number => values.number(index),
                SynthClass::StaticString | SynthClass::DynString => {
                    put_string(values, index, room);
                    room.as_ptr().addr() as u64
                }
                SynthClass::Stack => {
                    put_stack(values, index, room);
                    room.as_ptr().addr() as u64
                }
            };
        }
        // SAFETY: each field has its value, as `run` has chosen room for all: strings end with a NUL, and stacks with a 0, since
        // the pad is zero and not used to its last byte or word.
        unsafe { self.event.event.fire(&mut words, self.preempt) };
        Fired::default()
    }
}

/// Memory for the strings and stacks of an event, aligned for words.
#[repr(align(8))]
struct Pad<const BYTES: usize>([u8; BYTES]);

/// Copies a string and a NUL after it.
fn put_string(values: &impl FieldValues, index: usize, room: &mut [u8]) {
    let Some((_, to)) = room.split_last_mut() else {
        return;
    };
    if values.string(index, to).is_err() {
        for (byte, from) in to.iter_mut().zip(schema::FAULT) {
            *byte = *from;
        }
    }
}

/// Copies the frames of a stack, with their number before them and a 0 after them.
fn put_stack(values: &impl FieldValues, index: usize, room: &mut [u8]) {
    let Some((length, frames)) = room.split_first_chunk_mut::<8>() else {
        return;
    };
    let Some((frames, _)) = frames.split_last_chunk_mut::<8>() else {
        return;
    };
    let count = values.stack(index, frames).unwrap_or(0);
    *length = (count as u64).to_ne_bytes();
}
