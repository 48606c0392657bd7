// SPDX-License-Identifier: GPL-2.0

//! Synthetic events for other Rust modules: they include this file, and nothing else of this crate.
//!
//! C header: [`include/linux/trace_events.h`](srctree/include/linux/trace_events.h)
//!
//! It is a safe view of the kernel's own API, so a module that uses it runs with whatever implements
//! that: `rust_hist`, or the C code of the kernel. A Rust module cannot link with the crate of
//! another one, only with the functions that it exports, hence a file to include:
//!
//! ```ignore
//! #[path = "../../rust_hist/synth/client.rs"]
//! mod synth_event;
//! ```
//!
//! An event is made by [`SynthEvent::new`], found in an instance by [`SynthEvent::file`], and traced
//! there by [`EventFile::trace`]. What a module creates here has to be gone when it is unloaded;
//! [`SynthEvent`] and [`EventFile`] see to that as they are dropped.

#![allow(dead_code, reason = "not every module uses all of it")]

use core::{
    ffi::CStr,
    ptr::{
        null,
        NonNull, //
    },
};
use kernel::{
    error::{
        from_err_ptr,
        to_result, //
    },
    ffi::{
        c_char,
        c_int,
        c_uint, //
    },
    prelude::*,
    str::CString,
    sync::{
        Arc,
        UniqueArc, //
    }, //
};

/// What the kernel calls the system of all synthetic events.
const SYSTEM: &CStr = c"synthetic";
/// The kernel's limit, `SYNTH_FIELDS_MAX`.
const FIELDS_MAX: usize = 64;

/// `struct trace_event_file`, of which only the address is of use here.
#[repr(C)]
struct RawFile([u8; 0]);

/// `struct trace_array`, likewise.
#[repr(C)]
struct RawInstance([u8; 0]);

/// `struct module`, likewise.
#[repr(C)]
struct RawModule([u8; 0]);

/// `struct synth_field_desc`.
#[repr(C)]
struct RawField {
    kind: *const c_char,
    name: *const c_char,
}

extern "C" {
    fn synth_event_create(
        name: *const c_char,
        fields: *mut RawField,
        n_fields: c_uint,
        module: *mut RawModule,
    ) -> c_int;
    fn synth_event_delete(name: *const c_char) -> c_int;
    fn synth_event_trace_array(file: *mut RawFile, vals: *mut u64, n_vals: c_uint) -> c_int;
    fn trace_get_event_file(
        instance: *const c_char,
        system: *const c_char,
        event: *const c_char,
    ) -> *mut RawFile;
    fn trace_put_event_file(file: *mut RawFile);
    fn trace_set_clr_event(system: *const c_char, event: *const c_char, set: c_int) -> c_int;
    fn trace_array_get_by_name(name: *const c_char, systems: *const c_char) -> *mut RawInstance;
    fn trace_array_set_clr_event(
        tr: *mut RawInstance,
        system: *const c_char,
        event: *const c_char,
        set: bool,
    ) -> c_int;
    fn trace_array_put(tr: *mut RawInstance);
}

/// A field of an event to be: `Field(c"u64", c"latency")`, `Field(c"char[]", c"what")`.
#[derive(Clone, Copy)]
pub(crate) struct Field<'a>(pub(crate) &'a CStr, pub(crate) &'a CStr);

impl Field<'_> {
    /// Whether the field is a string; `None` for an array of anything else, a stack, which can be
    /// filled by a histogram trigger alone.
    fn is_text(self) -> Option<bool> {
        let (kind, name) = (self.0.to_bytes(), self.1.to_bytes());
        if !kind.contains(&b'[') && !name.contains(&b'[') {
            return Some(false);
        }
        kind.starts_with(b"char").then_some(true)
    }
}

/// What a field is to hold.
#[derive(Clone, Copy)]
pub(crate) enum Value<'a> {
    /// A number, of which a smaller field takes the lower bits.
    Number(u64),
    /// A string, copied to the record: at most 255 bytes of it to a field of a fixed size.
    Text(&'a CStr),
}

/// Numbers that a field can hold; signed ones keep their sign.
macro_rules! value_from {
    ($($number:ty),+) => {
        $(
            impl From<$number> for Value<'_> {
                fn from(number: $number) -> Self {
                    // CAST: sign extended if it has a sign; the field takes the lower bits again.
                    Self::Number(number as u64)
                }
            }
        )+
    };
}

value_from!(bool, u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);

impl<'a> From<&'a CStr> for Value<'a> {
    fn from(text: &'a CStr) -> Self {
        Self::Text(text)
    }
}

/// A reference on the file of an event in one instance, which keeps both from going.
///
/// # Invariants
///
/// It came from `trace_get_event_file()`.
struct Pin(NonNull<RawFile>);

impl Pin {
    /// Finds the event in the named instance, or in the top one.
    fn get(event: &CStr, instance: Option<&CStr>) -> Result<Self> {
        // SAFETY: all three are strings, or null where that is the top instance.
        let file = from_err_ptr(unsafe {
            trace_get_event_file(
                instance.map_or(null(), CStr::as_char_ptr),
                SYSTEM.as_char_ptr(),
                event.as_char_ptr(),
            )
        })?;
        // INVARIANT: it did.
        NonNull::new(file).map(Self).ok_or(EINVAL)
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        // SAFETY: by the type invariant this value has the reference.
        unsafe { trace_put_event_file(self.0.as_ptr()) };
    }
}

// SAFETY: the functions of the tracing core that take the file may be called by any task.
unsafe impl Send for Pin {}
// SAFETY: the functions of the API do their own locking.
unsafe impl Sync for Pin {}

/// A synthetic event that this module has created. It is deleted when the last [`Arc`] of it goes;
/// until then nobody else can delete it.
///
/// Made and dropped where one may sleep, with no lock of the tracing core held.
///
/// # Invariants
///
/// There is an event of this name, made by this value, with as many fields as `texts` has elements,
/// of which those are strings whose element is true. It has no stacks. `pin` is there until `drop`.
pub(crate) struct SynthEvent {
    name: CString,
    texts: KVec<bool>,
    pin: Option<Pin>,
}

impl SynthEvent {
    /// Creates an event.
    ///
    /// `EEXIST` if there is one of that name, `EINVAL` if the name, a type or the number of fields
    /// (1 to 64) is not valid; `error_log` in tracefs then says more.
    ///
    /// ```ignore
    /// let event = SynthEvent::new(
    ///     module,
    ///     c"lock_wait",
    ///     &[Field(c"char[16]", c"lock"), Field(c"u64", c"ns")],
    /// )?;
    /// let file = event.file(None)?;
    /// file.enable(true)?;
    /// file.trace(&[c"dentry".into(), 1500u64.into()])?;
    /// ```
    pub(crate) fn new(
        module: &'static ThisModule,
        name: &CStr,
        fields: &[Field<'_>],
    ) -> Result<Arc<Self>> {
        let mut texts = KVec::with_capacity(fields.len(), GFP_KERNEL)?;
        let mut raw = KVec::with_capacity(fields.len(), GFP_KERNEL)?;
        for field in fields {
            texts.push(field.is_text().ok_or(EINVAL)?, GFP_KERNEL)?;
            let field = RawField {
                kind: field.0.as_char_ptr(),
                name: field.1.as_char_ptr(),
            };
            raw.push(field, GFP_KERNEL)?;
        }
        let own_name = name.to_cstring()?;
        let place = UniqueArc::new_uninit(GFP_KERNEL)?;
        let count = c_uint::try_from(raw.len())?;
        // SAFETY: name and fields are strings, and there are `count` of these. They are copied.
        to_result(unsafe {
            synth_event_create(
                name.as_char_ptr(),
                raw.as_mut_ptr(),
                count,
                module.as_ptr().cast(),
            )
        })?;
        // From here on it is deleted as the value is dropped.
        let mut event = Self {
            name: own_name,
            texts,
            pin: None,
        };
        event.pin = Some(Pin::get(name, None)?);
        // INVARIANT: just made, of these fields, and pinned. Between the two, root can have deleted it
        // and made another of that name, which the API does not let us see; `rust_hist` then records
        // numbers for strings that cannot be read, where the C code may fault.
        Ok(place.write(event).into())
    }

    /// The event in the top instance, or in the named one.
    ///
    /// `ENOENT` if there is no such instance. Neither it nor the event can go while the file exists.
    pub(crate) fn file(self: &Arc<Self>, instance: Option<&CStr>) -> Result<EventFile> {
        // INVARIANT: it is the file of this event, which nobody has deleted.
        Ok(EventFile {
            file: Pin::get(&self.name, instance)?,
            instance: instance.map(CStr::to_cstring).transpose()?,
            event: self.clone(),
        })
    }
}

impl Drop for SynthEvent {
    fn drop(&mut self) {
        self.pin = None;
        // SAFETY: the name is a string.
        let result = to_result(unsafe { synth_event_delete(self.name.as_char_ptr()) });
        if let Err(error) = result {
            // It stays, and is nobody's. The C code of the kernel should not have it enabled any more.
            pr_warn!(
                "the synthetic event {:?} is in use: {:?}\n",
                &*self.name,
                error
            );
        }
    }
}

/// A synthetic event in one instance.
///
/// # Invariants
///
/// `file` is the file of `event` in `instance`.
pub(crate) struct EventFile {
    file: Pin,
    instance: Option<CString>,
    event: Arc<SynthEvent>,
}

impl EventFile {
    /// Says whether what is traced is to be recorded in the instance, as `enable` in tracefs does.
    ///
    /// Takes `event_mutex`, so the caller may sleep. While an event is enabled anywhere it is not
    /// deleted, and its module cannot be unloaded.
    pub(crate) fn enable(&self, on: bool) -> Result {
        let (system, name) = (SYSTEM.as_char_ptr(), self.event.name.as_char_ptr());
        let Some(instance) = &self.instance else {
            // SAFETY: both are strings.
            return to_result(unsafe { trace_set_clr_event(system, name, on.into()) });
        };
        // SAFETY: the name is a string. The instance exists, by the reference on its file, so none
        // is made.
        let instance = unsafe { trace_array_get_by_name(instance.as_char_ptr(), null()) };
        if instance.is_null() {
            return Err(ENOENT);
        }
        // SAFETY: the instance is ours by the reference that was just taken; the others are strings.
        let result = to_result(unsafe { trace_array_set_clr_event(instance, system, name, on) });
        // SAFETY: gives back that reference.
        unsafe { trace_array_put(instance) };
        result
    }

    /// Writes a record with these values, one for each field in order, if the event is enabled.
    ///
    /// `EINVAL` if the number of values is not that of the fields, if a number is given for a string
    /// or a string for a number, or if the buffer has no space. Neither allocates nor sleeps, and
    /// may be called in any context.
    pub(crate) fn trace(&self, values: &[Value<'_>]) -> Result {
        let mut raw = [0u64; FIELDS_MAX];
        let texts = &self.event.texts;
        if values.len() != texts.len() || values.len() > raw.len() {
            return Err(EINVAL);
        }
        for ((to, value), text) in raw.iter_mut().zip(values).zip(texts.iter()) {
            *to = match (value, *text) {
                (Value::Number(number), false) => *number,
                // CAST: the API has an address for a string.
                (Value::Text(text), true) => text.as_char_ptr() as u64,
                _ => return Err(EINVAL),
            };
        }
        // CAST: at most `FIELDS_MAX`.
        let count = values.len() as c_uint;
        // SAFETY: by the type invariant the file is live, and so it takes as many values as there
        // are, of which those of its string fields are addresses of strings that outlive the call.
        to_result(unsafe { synth_event_trace_array(self.file.0.as_ptr(), raw.as_mut_ptr(), count) })
    }
}
