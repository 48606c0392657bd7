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
            Pads,
            User, //
        },
        guard::{
            EventMutexHeld,
            PreemptOff, //
        },
        record::CommonFields,
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
    sync::Arc,
    transmute::AsBytes, //
};

/// The names for synthetic events: the kernel's names.
pub(crate) struct SynthNames {
    /// The name of the kernel's file that lists the events.
    pub(crate) file: &'static CStr,
}

/// Like all [`SynthNames`] here: the names of the kernel.
pub(crate) static DROP_IN: SynthNames = SynthNames {
    file: c"synthetic_events",
};

/// Like all [`SynthNames`] here: the names of the kernel.
pub(crate) static BESIDE: SynthNames = SynthNames {
    file: c"synthetic_events",
};

/// Registers nothing: the kernel has its synthetic events already.
pub(crate) struct Registration;

impl Registration {
    /// Does nothing: the kernel's file can be opened at any time.
    pub(crate) fn open(&self) {}
}

/// Registers nothing: the kernel has its synthetic events already.
pub(crate) fn register(_names: &'static SynthNames) -> impl PinInit<Registration, Error> {
    Ok(Registration)
}

/// The words of a stack: its length, as many frames as C copies, and a 0.
const STACK_WORDS: usize = 32;

const WORD: usize = size_of::<u64>();

/// A synthetic event, which cannot be deleted while the value lives.
///
/// # Invariants
///
/// The schema has the fields of the event, and a pad has a word for each, and after these room for their strings and stacks.
pub(crate) struct SynthEvent {
    event: KernelEvent,
    /// The fields of the event.
    pub(crate) schema: Schema,
    pads: Pads,
}

/// Returns the event called `name`, if there is one.
pub(crate) fn find(name: &[u8], _held: &EventMutexHeld) -> Option<Arc<SynthEvent>> {
    let text = TextBuf::terminated(name).ok()?;
    let event = KernelEvent::get(text.as_c_str())?;
    let schema = schema_of(name, &event).ok()?;
    // OVERFLOW: an event has at most `FIELDS_MAX` fields.
    let words = schema
        .fields()
        .map(|field| 1 + words_of(field.class))
        .fold(0, usize::wrapping_add);
    let pads = Pads::new(words).ok()?;
    // INVARIANT: the schema was made from the event's fields, and the pads with room for them.
    let event = SynthEvent {
        event,
        schema,
        pads,
    };
    Arc::new(event, GFP_KERNEL).ok()
}

/// Returns how many words a value of this class takes, beside the one that stands for it.
fn words_of(class: SynthClass) -> usize {
    match class {
        SynthClass::Number => 0,
        SynthClass::StaticString | SynthClass::DynString => STR_SLOT / WORD,
        SynthClass::Stack => STACK_WORDS,
    }
}

/// Returns the schema of an event, from the fields that the kernel has for it.
fn schema_of(name: &[u8], event: &KernelEvent) -> Result<Schema> {
    let mut text = TextBuf::joined(&[name])?;
    event.fields(|kind, name| {
        let kind = kind.strip_prefix(b"__data_loc ").unwrap_or(kind);
        text.write_parts(&[b" ", kind, b" ", name, b";"])
            .map_err(|_| ENOMEM)
    })?;
    match parse(text.as_bytes(), |_| false) {
        Ok(SynthCommand::Create(schema)) => Ok(schema),
        Ok(_) => Err(EINVAL),
        Err(refusal) if refusal.errno == Errno::Enomem => Err(ENOMEM),
        Err(_) => Err(EINVAL),
    }
}

impl SynthEvent {
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
    /// Returns the number of lost records, of which only the kernel knows more.
    pub(crate) fn fire(
        &self,
        values: &impl FieldValues,
        _moment: CommonFields,
        preempt: &PreemptOff<'_>,
    ) -> u32 {
        if !self.has_listeners() {
            return 0;
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
    type Out = u32;

    #[inline(never)]
    fn run(self, values: &impl FieldValues) -> u32 {
        let fired = self.event.pads.with(self.preempt, |pad| {
            let fields = self.event.schema.fields();
            let (words, mut free) = pad.split_at_mut_checked(fields.count())?;
            let fields = self.event.schema.fields().enumerate();
            for ((index, field), word) in fields.zip(words.iter_mut()) {
                let (room, rest) =
                    core::mem::take(&mut free).split_at_mut_checked(words_of(field.class))?;
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
            // SAFETY: each field has its value: strings end with a NUL, and stacks with a 0.
            unsafe { self.event.event.fire(words, self.preempt) };
            Some(())
        });
        fired.flatten().is_none().into()
    }
}

/// Copies a string and a NUL after it.
fn put_string(values: &impl FieldValues, index: usize, room: &mut [u64]) {
    let Some((last, to)) = AsBytes::as_bytes_mut(room).split_last_mut() else {
        return;
    };
    let len = values.string(index, to).unwrap_or_else(|_| {
        let len = schema::FAULT.len().min(to.len());
        for (byte, from) in to.iter_mut().zip(schema::FAULT) {
            *byte = *from;
        }
        len
    });
    *to.get_mut(len).unwrap_or(last) = 0;
}

/// Copies the frames of a stack, with their number before them and a 0 after them.
fn put_stack(values: &impl FieldValues, index: usize, room: &mut [u64]) {
    let Some(((length, frames), last)) = room
        .split_last_mut()
        .and_then(|(last, room)| Some((room.split_first_mut()?, last)))
    else {
        return;
    };
    let count = values
        .stack(index, AsBytes::as_bytes_mut(frames))
        .unwrap_or(0);
    *frames.get_mut(count).unwrap_or(last) = 0;
    *length = count as u64;
}
