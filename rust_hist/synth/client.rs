// SPDX-License-Identifier: GPL-2.0

//! Synthetic events for other Rust modules, which include this file and nothing else of this crate.
//!
//! C header: [`include/linux/trace_events.h`](srctree/include/linux/trace_events.h)
//!
//! This wraps the kernel's own API in safe types, so a module that uses it works with each implementation, `rust_hist`
//! or the kernel's C code. A Rust module cannot link with another module's crate, only with exported functions, so it
//! includes the file:
//!
//! ```ignore
//! #[path = "../../rust_hist/synth/client.rs"]
//! mod synth_event;
//! ```
//!
//! Create an event with [`SynthEvent::new`], find it in an instance with [`SynthEvent::file`], and trace it there with
//! [`EventFile::trace`]. A module must delete its events before it is unloaded; dropping [`SynthEvent`] and
//! [`EventFile`] does so.

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

/// The system of all synthetic events.
const SYSTEM: &CStr = c"synthetic";
/// The kernel's limit, `SYNTH_FIELDS_MAX`.
const FIELDS_MAX: usize = 64;

/// `struct trace_event_file`, of which only the address is used.
#[repr(C)]
struct RawFile([u8; 0]);

/// `struct trace_array`, of which only the address is used.
#[repr(C)]
struct RawInstance([u8; 0]);

/// `struct module`, of which only the address is used.
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

/// The type and the name of a field: `Field(c"u64", c"latency")`, `Field(c"char[]", c"what")`.
#[derive(Clone, Copy)]
pub(crate) struct Field<'a>(pub(crate) &'a CStr, pub(crate) &'a CStr);

impl Field<'_> {
    /// Returns whether the field is a string; `None` for another array, which is a stack: only a histogram trigger can
    /// give a value for it.
    fn is_text(self) -> Option<bool> {
        let (kind, name) = (self.0.to_bytes(), self.1.to_bytes());
        if !kind.contains(&b'[') && !name.contains(&b'[') {
            return Some(false);
        }
        kind.starts_with(b"char").then_some(true)
    }
}

/// The value of a field.
#[derive(Clone, Copy)]
pub(crate) enum Value<'a> {
    /// A number; a smaller field stores its low bits.
    Number(u64),
    /// A string, which is copied to the record; a field of a fixed size stores at most 255 bytes.
    Text(&'a CStr),
}

/// Conversions of integers; signed ones are sign-extended.
macro_rules! value_from {
    ($($number:ty),+) => {
        $(
            impl From<$number> for Value<'_> {
                fn from(number: $number) -> Self {
                    // CAST: sign-extended if the type is signed; the field stores the low bits.
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

/// A reference on the file of an event in one instance, which prevents the removal of both.
///
/// # Invariants
///
/// The pointer came from `trace_get_event_file()`.
struct PinnedFile(NonNull<RawFile>);

impl PinnedFile {
    /// Returns a reference on the event in the named instance, or in the top one.
    fn get(event: &CStr, instance: Option<&CStr>) -> Result<Self> {
        // SAFETY: all arguments are NUL-terminated strings, or null for the top instance.
        let file = from_err_ptr(unsafe {
            trace_get_event_file(
                instance.map_or(null(), CStr::as_char_ptr),
                SYSTEM.as_char_ptr(),
                event.as_char_ptr(),
            )
        })?;
        // INVARIANT: `trace_get_event_file()` has returned the pointer.
        NonNull::new(file).map(Self).ok_or(EINVAL)
    }
}

impl Drop for PinnedFile {
    fn drop(&mut self) {
        // SAFETY: by the type invariant `trace_get_event_file()` has returned the file with a reference, which
        // this value owns.
        unsafe { trace_put_event_file(self.0.as_ptr()) };
    }
}

// SAFETY: the functions of the tracing core that take the file may be called by any task.
unsafe impl Send for PinnedFile {}
// SAFETY: the functions of the tracing core that take the file may be called by several tasks at once, and
// do their own locking.
unsafe impl Sync for PinnedFile {}

/// A synthetic event that this module has created. Dropping the last [`Arc`] deletes it; until then no other
/// user can delete it.
///
/// Context: creating and dropping: process, may sleep, without a lock of the tracing core.
///
/// # Invariants
///
/// This value has created an event with this name and as many fields as `texts` has elements. A field is a string iff
/// its element is true, and no field is a stack. `pin` is `Some` until `drop`.
pub(crate) struct SynthEvent {
    name: CString,
    texts: KVec<bool>,
    pin: Option<PinnedFile>,
}

impl SynthEvent {
    /// Creates an event.
    ///
    /// # Errors
    ///
    /// `EEXIST` if an event with this name exists, `EINVAL` if the name, a type or the number of fields (1 to 64) is
    /// invalid; `error_log` in tracefs has the reason.
    ///
    /// # Examples
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
        // SAFETY: the name, and types and names of the `count` fields, are NUL-terminated strings, which the
        // function copies.
        to_result(unsafe {
            synth_event_create(
                name.as_char_ptr(),
                raw.as_mut_ptr(),
                count,
                module.as_ptr().cast(),
            )
        })?;
        // From here on, dropping the value deletes the event.
        let mut event = Self {
            name: own_name,
            texts,
            pin: None,
        };
        event.pin = Some(PinnedFile::get(name, None)?);
        // INVARIANT: the event was created with these fields, and then pinned. In between, root may have deleted it and
        // created another one with that name, which the API cannot detect; `rust_hist` then records strings as faulted,
        // where the C code may fault.
        Ok(place.write(event).into())
    }

    /// Returns the event in the top instance, or in the named one. Neither the instance nor the event can be
    /// removed while the file exists.
    ///
    /// # Errors
    ///
    /// `ENOENT` if there is no such instance.
    pub(crate) fn file(self: &Arc<Self>, instance: Option<&CStr>) -> Result<EventFile> {
        // INVARIANT: this is the file of this event, which `pin` protects from deletion.
        Ok(EventFile {
            file: PinnedFile::get(&self.name, instance)?,
            instance: instance.map(CStr::to_cstring).transpose()?,
            event: self.clone(),
        })
    }
}

impl Drop for SynthEvent {
    fn drop(&mut self) {
        self.pin = None;
        // SAFETY: the name is a NUL-terminated string.
        let result = to_result(unsafe { synth_event_delete(self.name.as_char_ptr()) });
        if let Err(error) = result {
            // The event stays without an owner. With the kernel's C code it must not be enabled any more.
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
    file: PinnedFile,
    instance: Option<CString>,
    event: Arc<SynthEvent>,
}

impl EventFile {
    /// Enables or disables recording in the instance, as `enable` in tracefs does.
    ///
    /// Context: process, may sleep; takes `event_mutex`. While an event is enabled in any instance, it cannot be
    /// deleted, and its module cannot be unloaded.
    ///
    /// # Errors
    ///
    /// `ENOENT` if there is no such instance, and the errors of the tracing core.
    pub(crate) fn enable(&self, on: bool) -> Result {
        let (system, name) = (SYSTEM.as_char_ptr(), self.event.name.as_char_ptr());
        let Some(instance) = &self.instance else {
            // SAFETY: both names are NUL-terminated strings.
            return to_result(unsafe { trace_set_clr_event(system, name, on.into()) });
        };
        // SAFETY: the name is a NUL-terminated string. The instance exists, by the reference on its file, so the
        // function does not create one.
        let instance = unsafe { trace_array_get_by_name(instance.as_char_ptr(), null()) };
        if instance.is_null() {
            return Err(ENOENT);
        }
        // SAFETY: `trace_array_get_by_name()` has returned the instance with a reference; the others are
        // NUL-terminated strings.
        let result = to_result(unsafe { trace_array_set_clr_event(instance, system, name, on) });
        // SAFETY: this drops the reference of `trace_array_get_by_name()`, after the last use of the instance.
        unsafe { trace_array_put(instance) };
        result
    }

    /// Writes a record with these values, one for each field in order, if the event is enabled.
    ///
    /// Context: any, NMI included. Never allocates or sleeps.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the number of values differs from the number of fields, if a value is a number for a string or a
    /// string for a number, or if the buffer has no space.
    pub(crate) fn trace(&self, values: &[Value<'_>]) -> Result {
        let mut raw = [0u64; FIELDS_MAX];
        let texts = &self.event.texts;
        if values.len() != texts.len() || values.len() > raw.len() {
            return Err(EINVAL);
        }
        for ((to, value), text) in raw.iter_mut().zip(values).zip(texts.iter()) {
            *to = match (value, *text) {
                (Value::Number(number), false) => *number,
                // CAST: the API takes the address of a string.
                (Value::Text(text), true) => text.as_char_ptr() as u64,
                _ => return Err(EINVAL),
            };
        }
        // CAST: `raw` has at least this many elements, at most `FIELDS_MAX`, 64.
        let count = values.len() as c_uint;
        // SAFETY: by the type invariant the file is live. `raw` has `count` values, one for each field of the
        // event, and those of string fields are addresses of strings that outlive the call.
        to_result(unsafe { synth_event_trace_array(self.file.0.as_ptr(), raw.as_mut_ptr(), count) })
    }
}
