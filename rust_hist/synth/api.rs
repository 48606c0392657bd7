// SPDX-License-Identifier: GPL-2.0

//! Synthetic events that other modules create and trace.
//!
//! C counterpart: the exported functions of
//! [`kernel/trace/trace_events_synth.c`](srctree/kernel/trace/trace_events_synth.c). `ffi::synth_api` has the functions
//! as C calls them; this file implements them. Rust modules include `client.rs`, which calls the same functions.
//!
//! Context: creating and deleting process context, without `event_mutex`; tracing any.

use super::{
    command,
    delete,
    find,
    Synth, //
};
use crate::{
    ffi::{
        dyn_event::Owner,
        guard::EventMutex,
        synth_api::{
            export_synth_api,
            Raw,
            RawValues,
            SynthApi,
            Which, //
        }, //
    },
    field::SynthClass,
    limits::STR_SLOT,
    schema::{
        self,
        FieldValues,
        Sizes,
        Unread, //
    }, //
};
use core::ffi::CStr;
use kernel::prelude::*;

export_synth_api!(crate::synth::Synth);

#[vtable]
impl SynthApi for Synth {
    // CAST: the number is 64.
    const FIELDS_MAX: u32 = schema::FIELDS_MAX as u32;

    fn is_type(kind: &CStr) -> bool {
        schema::is_type(kind.to_bytes())
    }

    fn make(text: &CStr, owner: Owner) -> Result {
        // PARITY: `synth_event_run_command()` would delete an event with that name.
        if text.to_bytes().trim_ascii_start().starts_with(b"!") {
            return Err(EINVAL);
        }
        command::run(text, owner)
    }

    fn delete(name: &CStr) -> Result {
        let held = &EventMutex::lock();
        delete(&find(name.to_bytes(), held).ok_or(ENOENT)?, held)
    }

    fn values(&self) -> Option<usize> {
        let mut fields = self.schema.fields();
        // The API has no way to pass the number of frames of a stack.
        let stack = fields.any(|field| field.class == SynthClass::Stack);
        (!stack).then_some(self.schema.len())
    }

    fn fixed_len(&self) -> Option<usize> {
        (!self.schema.dynamic).then_some(self.schema.fixed_len())
    }

    fn measure<'a>(
        &'a self,
        values: RawValues<'a>,
    ) -> Result<(usize, impl FnOnce(&mut [u8]) -> bool + 'a)> {
        let mut sizes = Sizes::default();
        self.schema
            .measure(&values, &mut sizes)
            .map_err(|_| EINVAL)?;
        let len = sizes.record_len();
        let write = move |record: &mut [u8]| self.schema.write(&values, &sizes, record).is_ok();
        Ok((len, write))
    }

    fn put(&self, record: &mut [u8], which: Which<'_>, value: Raw) -> Result {
        let index = match which {
            Which::Nth(index) => index,
            Which::Named(name) => self.schema.find(name.to_bytes()).ok_or(EINVAL)?,
        };
        let field = self.schema.field(index).ok_or(EINVAL)?;
        let put = match field.class {
            SynthClass::Number => self.schema.put_number(record, index, value.number()),
            SynthClass::StaticString if !value.is_null() => self.put_string(record, index, value),
            SynthClass::StaticString | SynthClass::DynString | SynthClass::Stack => false,
        };
        put.then_some(()).ok_or(EINVAL)
    }
}

impl Synth {
    /// Stores a string in a record, or a text that says that the string could not be read.
    fn put_string(&self, record: &mut [u8], index: usize, value: Raw) -> bool {
        let mut copy = [0; STR_SLOT - 1];
        let text = match value.string(&mut copy) {
            Some(len) => copy.get(..len).unwrap_or(&copy),
            None => schema::FAULT,
        };
        self.schema.put_string(record, index, text)
    }
}

/// The values that a module passes, which are never stacks.
impl FieldValues for RawValues<'_> {
    fn number(&self, field: usize) -> u64 {
        self.get(field).number()
    }

    fn string_len(&self, field: usize) -> Result<usize, Unread> {
        self.get(field)
            .string_len(schema::DYN_STRING_MAX)
            .ok_or(Unread::Fault)
    }

    fn string(&self, field: usize, to: &mut [u8]) -> Result<usize, Unread> {
        self.get(field).string(to).ok_or(Unread::Fault)
    }

    fn stack_len(&self, _field: usize) -> Result<usize, Unread> {
        Err(Unread::Fault)
    }

    fn stack(&self, _field: usize, _to: &mut [u8]) -> Result<usize, Unread> {
        Err(Unread::Fault)
    }
}
