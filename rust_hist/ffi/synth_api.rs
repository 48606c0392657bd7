// SPDX-License-Identifier: GPL-2.0

//! The in-kernel API of synthetic events, as C modules call it.
//!
//! C header: [`include/linux/trace_events.h`](srctree/include/linux/trace_events.h). The two variadic functions, and
//! the exports, are in `synth_api.c`; [`export_synth_api`] defines all others for a type that implements [`SynthApi`].
//!
//! Context: functions that create and delete events sleep and take `event_mutex`; functions that trace may be called in
//! any context. Addresses of objects must be valid, as in C. Addresses of traced strings may be invalid: the record
//! then says so.
//!
//! A builder (`dynevent_cmd`) collects a text; the event is created when it is ended. An open trace
//! (`synth_event_trace_state`) is a reserved record: preemption is off until it is ended.

use super::{
    bindings,
    dyn_event::{
        DynEventType,
        Event,
        Owner, //
    },
    event::c_str,
    guard::PreemptGuard,
    record::{
        self,
        Reserved, //
    }, //
};
use core::{
    ffi::CStr,
    marker::PhantomData,
    ptr::{
        self,
        NonNull, //
    },
};
use kernel::{
    error::{
        code,
        from_result,
        to_result, //
    },
    ffi::{
        c_char,
        c_int,
        c_uint,
        c_ulong, //
    },
    prelude::*,
    sync::ArcBorrow, //
};

/// The declarations of the kernel's header, with which the definitions are compared.
pub(crate) mod declared {
    pub(crate) use super::bindings::{
        synth_event_add_field,
        synth_event_add_field_str,
        synth_event_add_fields,
        synth_event_add_next_val,
        synth_event_add_val,
        synth_event_cmd_init,
        synth_event_create,
        synth_event_delete,
        synth_event_gen_cmd_array_start,
        synth_event_trace_array,
        synth_event_trace_end,
        synth_event_trace_start, //
    };
}

pub(crate) use super::nofault::Raw;

/// A builder of an event's definition.
pub(crate) type Cmd = bindings::dynevent_cmd;
/// Type and name of a field.
pub(crate) type Desc = bindings::synth_field_desc;
/// An open trace.
pub(crate) type TraceState = bindings::synth_event_trace_state;
/// An event in an instance.
pub(crate) type File = bindings::trace_event_file;
/// A module.
pub(crate) type Module = bindings::module;

/// The size in bytes of the text of an event that is created by one call.
const TEXT_LEN: usize = bindings::MAX_DYNEVENT_CMD_LEN as usize;

/// The values of one record, in the order of the fields.
#[derive(Clone, Copy)]
pub(crate) struct RawValues<'a>(&'a [u64]);

impl RawValues<'_> {
    /// Returns the value of a field; 0 if it was not passed.
    pub(crate) fn get(self, field: usize) -> Raw {
        Raw(self.0.get(field).copied().unwrap_or(0))
    }
}

/// The field of an open trace to which a value is assigned.
#[derive(Clone, Copy)]
pub(crate) enum Which<'a> {
    /// Assigns to the field with this number.
    Nth(usize),
    /// Assigns to the field with this name.
    Named(&'a CStr),
}

/// The operations of a type of events that the functions of this file need.
#[vtable]
pub(crate) trait SynthApi: DynEventType {
    /// The largest number of fields of an event.
    const FIELDS_MAX: u32;

    /// Returns whether `kind` is accepted as the type of a field.
    fn is_type(kind: &CStr) -> bool;

    /// Creates an event from its text, `NAME TYPE FIELD;...`.
    fn make(text: &CStr, owner: Owner) -> Result;

    /// Deletes the event with this name.
    fn delete(name: &CStr) -> Result;

    /// Returns the number of values of a record; `None` if a field of the event cannot be passed as a value.
    fn values(&self) -> Option<usize>;

    /// Returns the size of each record in bytes, its header included; `None` if sizes differ.
    fn fixed_len(&self) -> Option<usize>;

    /// Returns the size in bytes of a record with these values, and a function that writes them into it.
    fn measure<'a>(
        &'a self,
        values: RawValues<'a>,
    ) -> Result<(usize, impl FnOnce(&mut [u8]) -> bool + 'a)>;

    /// Writes one value into a record that was cleared.
    fn put(&self, record: &mut [u8], which: Which<'_>, value: Raw) -> Result;
}

/// The implementation of the API's functions for the type `T`.
pub(crate) struct ApiFns<T>(PhantomData<T>);

/// Returns a string that C passed; `EINVAL` if it is null.
///
/// # Safety
///
/// `ptr` must be null or point to a string that does not change for `'a`.
pub(crate) unsafe fn string<'a>(ptr: *const c_char) -> Result<&'a CStr> {
    // SAFETY: by the contract.
    unsafe { c_str(ptr) }.ok_or(EINVAL)
}

/// Returns an array that C passed; `EINVAL` if it is null although it has elements.
///
/// # Safety
///
/// `ptr` must be null or point to `len` elements that do not change for `'a`.
pub(crate) unsafe fn array<'a, E>(ptr: *mut E, len: c_uint) -> Result<&'a [E]> {
    match (ptr.is_null(), len) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(EINVAL),
        // CAST: a pointer has at least as many bits as the number.
        // SAFETY: by the contract.
        (false, _) => Ok(unsafe { core::slice::from_raw_parts(ptr, len as usize) }),
    }
}

/// Returns a builder that C passed; `EINVAL` if it is null or not for a synthetic event.
///
/// # Safety
///
/// `cmd` must be null, or point to a builder that no other context uses for `'a`, with a valid buffer.
pub(crate) unsafe fn builder<'a>(cmd: *mut Cmd) -> Result<Builder<'a>> {
    // INVARIANT: by the contract.
    // SAFETY: by the contract.
    let builder = Builder(unsafe { cmd.as_mut() }.ok_or(EINVAL)?);
    match builder.0.type_ {
        bindings::dynevent_type_DYNEVENT_TYPE_SYNTH => Ok(builder),
        _ => Err(EINVAL),
    }
}

/// A builder to which this value has exclusive access.
///
/// # Invariants
///
/// The buffer is valid, and its content ends with a NUL. The private data is null or a module that lives until the
/// builder is ended.
pub(crate) struct Builder<'a>(&'a mut Cmd);

impl Builder<'_> {
    /// Appends texts; `E2BIG` if the buffer has no room.
    fn append(&mut self, texts: &[&CStr]) -> Result {
        for text in texts {
            // SAFETY: by the type invariant; the text is a string.
            let ret = unsafe { bindings::seq_buf_puts(&raw mut self.0.seq, text.as_char_ptr()) };
            to_result(ret).map_err(|_| E2BIG)?;
        }
        Ok(())
    }

    /// Appends the texts of one field, and counts the field.
    fn append_field<T: SynthApi>(&mut self, texts: &[&CStr]) -> Result {
        self.append(texts)?;
        self.0.n_fields = self.0.n_fields.saturating_add(1);
        if self.0.n_fields > T::FIELDS_MAX {
            return Err(EINVAL);
        }
        Ok(())
    }
}

/// Returns the event of an event file that C passed; `EINVAL` if it is null or of another type of events.
///
/// # Safety
///
/// `file` must be null, or the caller must hold a reference to it for `'a`.
pub(crate) unsafe fn traced<'a, T: SynthApi>(file: *mut File) -> Result<Traced<'a, T>> {
    let file = NonNull::new(file).ok_or(EINVAL)?.as_ptr();
    // SAFETY: by the contract.
    let event = unsafe { Event::of_file(file) }.ok_or(EINVAL)?;
    // INVARIANT: by the contract.
    Ok(Traced { event, file })
}

/// An event in one instance.
///
/// # Invariants
///
/// `file` is a file of `event`, and live for `'a`.
pub(crate) struct Traced<'a, T: SynthApi> {
    event: ArcBorrow<'a, Event<T>>,
    file: *mut File,
}

impl<T: SynthApi> Traced<'_, T> {
    /// Returns whether a traced record would be kept. Calls the event's triggers that need no record.
    fn is_enabled(&self) -> bool {
        // CAST: a flag of the C enumeration.
        const ENABLED: c_ulong = bindings::EVENT_FILE_FL_ENABLED as c_ulong;

        // PARITY: `__synth_event_trace_init()` walks the triggers without protecting them.
        let _triggers_stay = PreemptGuard::new();
        // SAFETY: by the type invariant. Other contexts change the word atomically.
        let flags = unsafe { (&raw const (*self.file).flags).read_volatile() };
        // SAFETY: by the type invariant.
        flags & ENABLED != 0 && !unsafe { record::is_soft_disabled(self.file) }
    }

    /// Reserves a record of `len` bytes in the instance.
    fn reserve(&self, len: usize) -> Result<Reserved> {
        // SAFETY: by the type invariant the file is live; callers of the API may record events.
        unsafe { Reserved::new(self.file, len) }.ok_or(EINVAL)
    }
}

/// Returns the state for a trace that is being opened, set to 0; `EINVAL` if it is null.
///
/// # Safety
///
/// `state` must be null, or used by no other context for `'a`.
pub(crate) unsafe fn fresh<'a>(state: *mut TraceState) -> Result<&'a mut TraceState> {
    let state = NonNull::new(state).ok_or(EINVAL)?.as_ptr();
    // SAFETY: by the contract there is room for it; all its bytes may be 0.
    unsafe { ptr::write_bytes(state, 0, 1) };
    // SAFETY: by the contract this is the only access, and the state is initialised.
    Ok(unsafe { &mut *state })
}

/// Returns the state of an open trace; `EINVAL` if it is null.
///
/// # Safety
///
/// `state` must be null, or have been passed to `synth_event_trace_start()`, and be used by no other context for `'a`;
/// the caller must still hold the reference to that event file.
pub(crate) unsafe fn opened<'a>(state: *mut TraceState) -> Result<OpenTrace<'a>> {
    // INVARIANT: by the contract.
    // SAFETY: by the contract.
    Ok(OpenTrace(unsafe { state.as_mut() }.ok_or(EINVAL)?))
}

/// An open trace.
///
/// # Invariants
///
/// [`ApiFns::trace_start`] has filled the state, and the caller still holds the reference to that event file.
pub(crate) struct OpenTrace<'a>(&'a mut TraceState);

impl OpenTrace<'_> {
    /// Returns the event and the record; `EINVAL` if the trace was ended.
    fn kept<T: SynthApi>(&self) -> Result<(&Event<T>, Reserved)> {
        if self.0.entry.is_null() {
            return Err(EINVAL);
        }
        // SAFETY: by the type invariant, this is the event, which lives as long as its file.
        let event = unsafe { &*self.0.event.cast::<Event<T>>() };
        let len = event.fixed_len().ok_or(EINVAL)?;
        // SAFETY: by the type invariant, this is a record of that length, which only `trace_end()` commits, as its last
        // user.
        let record = unsafe { Reserved::from_raw(self.0.fbuffer, self.0.buffer, len) };
        Ok((event, record))
    }

    fn put<T: SynthApi>(&self, which: Which<'_>, value: u64) -> Result {
        if self.0.disabled {
            return Ok(());
        }
        let (event, mut record) = self.kept::<T>()?;
        event.put(record.bytes(), which, Raw(value))
    }
}

impl<T: SynthApi> ApiFns<T> {
    /// Returns a builder in a buffer of `size` bytes.
    fn builder_in(buffer: *mut c_char, size: usize) -> Cmd {
        Cmd {
            seq: bindings::seq_buf {
                buffer,
                size,
                len: 0,
            },
            type_: bindings::dynevent_type_DYNEVENT_TYPE_SYNTH,
            run_command: Some(Self::run),
            ..Default::default()
        }
    }

    /// # Safety
    ///
    /// `cmd` must point to memory for a builder, and `buf` must have `maxlen` bytes as long as the builder is used.
    pub(crate) unsafe fn cmd_init(cmd: *mut Cmd, buf: *mut c_char, maxlen: c_int) {
        // CAST: C passes a number of bytes.
        // SAFETY: by the contract.
        unsafe { cmd.write(Self::builder_in(buf, maxlen as usize)) };
        if maxlen > 0 {
            // SAFETY: by the contract; an empty text ends with a NUL, too.
            unsafe { buf.write(0) };
        }
    }

    /// Ends a builder; `dynevent_create()` calls this.
    ///
    /// # Safety
    ///
    /// `cmd` must be a builder that no other context uses.
    unsafe extern "C" fn run(cmd: *mut Cmd) -> c_int {
        // SAFETY: by the contract.
        from_result(|| Self::end(unsafe { builder(cmd) }?).map(|()| 0))
    }

    fn end(builder: Builder<'_>) -> Result {
        let Builder(cmd) = builder;
        // PARITY: the C code creates an event from the part of the text that had room.
        if cmd.seq.len >= cmd.seq.size {
            return Err(E2BIG);
        }
        // SAFETY: by the type invariant.
        let text = unsafe { string(cmd.seq.buffer) }?;
        // SAFETY: by the type invariant.
        T::make(text, unsafe { Owner::from_raw(cmd.private_data.cast()) })
    }

    pub(crate) fn array_start(
        builder: &mut Builder<'_>,
        name: &CStr,
        module: *mut Module,
        fields: &[Desc],
    ) -> Result {
        builder.0.event_name = name.as_char_ptr();
        // INVARIANT: the header requires that the caller's module lives this long.
        builder.0.private_data = module.cast();
        // CAST: a small number.
        if fields.len() > T::FIELDS_MAX as usize {
            return Err(EINVAL);
        }
        builder.append(&[c" ", name, c" "])?;
        Self::add_fields(builder, fields)
    }

    pub(crate) fn add_field(builder: &mut Builder<'_>, kind: &CStr, name: &CStr) -> Result {
        if !T::is_type(kind) {
            return Err(EINVAL);
        }
        builder.append_field::<T>(&[c" ", kind, c" ", name, c";"])
    }

    pub(crate) fn add_field_str(builder: &mut Builder<'_>, text: &CStr) -> Result {
        builder.append_field::<T>(&[c" ", text, c";"])
    }

    pub(crate) fn add_fields(builder: &mut Builder<'_>, fields: &[Desc]) -> Result {
        for field in fields {
            // SAFETY: both are null or strings, as the header requires of the caller.
            let (kind, name) = unsafe { (string(field.type_)?, string(field.name)?) };
            Self::add_field(builder, kind, name)?;
        }
        Ok(())
    }

    pub(crate) fn create(name: &CStr, fields: &[Desc], module: *mut Module) -> Result {
        let mut text = KVec::<c_char>::from_elem(0, TEXT_LEN, GFP_KERNEL)?;
        let mut cmd = Self::builder_in(text.as_mut_ptr(), TEXT_LEN);
        // INVARIANT: the buffer is valid, with all bytes 0, until the end of this function.
        Self::array_start(&mut Builder(&mut cmd), name, module, fields)?;
        // INVARIANT: the buffer is still valid, with a text in it.
        Self::end(Builder(&mut cmd))
    }

    pub(crate) fn delete(name: &CStr) -> Result {
        T::delete(name)
    }

    pub(crate) fn trace_array(traced: Traced<'_, T>, values: Option<&[u64]>) -> Result {
        if !traced.is_enabled() {
            return Ok(());
        }
        let values = values.filter(|values| traced.event.values() == Some(values.len()));
        let (len, fill) = traced.event.measure(RawValues(values.ok_or(EINVAL)?))?;
        let mut record = traced.reserve(len)?;
        if !fill(record.bytes()) {
            record.discard();
            return Err(EINVAL);
        }
        record.commit();
        Ok(())
    }

    pub(crate) fn trace_start(state: &mut TraceState, traced: Result<Traced<'_, T>>) -> Result {
        let traced = traced?;
        if !traced.is_enabled() {
            state.disabled = true;
            return Ok(());
        }
        let len = traced.event.fixed_len().ok_or(code::ENOTSUPP)?;
        let mut record = traced.reserve(len)?;
        if let Some(body) = record.bytes().get_mut(size_of::<bindings::trace_entry>()..) {
            body.fill(0);
        }
        let (buffer, nest) = record.into_raw();
        state.event = ptr::from_ref(&*traced.event).cast_mut().cast();
        state.entry = buffer.entry.cast();
        state.fbuffer = buffer;
        state.buffer = nest;
        Ok(())
    }

    pub(crate) fn add_val(name: &CStr, value: u64, trace: OpenTrace<'_>) -> Result {
        if trace.0.add_next {
            return Err(EINVAL);
        }
        trace.0.add_name = true;
        trace.put::<T>(Which::Named(name), value)
    }

    pub(crate) fn add_next_val(value: u64, trace: OpenTrace<'_>) -> Result {
        if trace.0.add_name {
            return Err(EINVAL);
        }
        trace.0.add_next = true;
        // CAST: a pointer has at least as many bits as the number.
        let which = Which::Nth(trace.0.cur_field as usize);
        trace.0.cur_field = trace.0.cur_field.saturating_add(1);
        trace.put::<T>(which, value)
    }

    pub(crate) fn trace_end(trace: OpenTrace<'_>) -> Result {
        if trace.0.disabled {
            return Ok(());
        }
        let (_, record) = trace.kept::<T>()?;
        record.commit();
        trace.0.entry = ptr::null_mut();
        Ok(())
    }
}

/// Defines the API for the type that implements [`SynthApi`], which is given with its whole path.
///
/// Each definition is compared with bindgen's declaration from the kernel's header.
macro_rules! export_synth_api {
    ($api:path) => {
        /// The functions that `synth_api.c` exports.
        mod exported {
            use $crate::ffi::synth_api::*;
            use kernel::{error::from_result, prelude::*};

            /// Calls [`ApiFns::cmd_init`].
            ///
            /// # Safety
            ///
            /// See [`ApiFns::cmd_init`].
            #[no_mangle]
            unsafe extern "C" fn synth_event_cmd_init(cmd: *mut Cmd, buf: *mut c_char, len: c_int) {
                // SAFETY: the caller's contract is the same as the function's.
                unsafe { ApiFns::<$api>::cmd_init(cmd, buf, len) }
            }

            const _: () = {
                if true {
                    declared::synth_event_cmd_init
                } else {
                    synth_event_cmd_init
                };
            };

            $crate::ffi::synth_api::export_synth_api! { @functions $api:
                synth_event_add_field(cmd: *mut Cmd, kind: *const c_char, name: *const c_char)
                    = add_field(&mut builder(cmd)?, string(kind)?, string(name)?);
                synth_event_add_field_str(cmd: *mut Cmd, text: *const c_char)
                    = add_field_str(&mut builder(cmd)?, string(text)?);
                synth_event_add_fields(cmd: *mut Cmd, fields: *mut Desc, n: c_uint)
                    = add_fields(&mut builder(cmd)?, array(fields, n)?);
                synth_event_add_next_val(value: u64, state: *mut TraceState)
                    = add_next_val(value, opened(state)?);
                synth_event_add_val(name: *const c_char, value: u64, state: *mut TraceState)
                    = add_val(string(name)?, value, opened(state)?);
                synth_event_create(
                    name: *const c_char, fields: *mut Desc, n: c_uint, module: *mut Module
                ) = create(string(name)?, array(fields, n)?, module);
                synth_event_delete(name: *const c_char) = delete(string(name)?);
                synth_event_gen_cmd_array_start(
                    cmd: *mut Cmd, name: *const c_char, module: *mut Module, fields: *mut Desc, n: c_uint
                ) = array_start(&mut builder(cmd)?, string(name)?, module, array(fields, n)?);
                synth_event_trace_array(file: *mut File, vals: *mut u64, n: c_uint)
                    = trace_array(traced(file)?, array(vals, n).ok());
                synth_event_trace_end(state: *mut TraceState) = trace_end(opened(state)?);
                synth_event_trace_start(file: *mut File, state: *mut TraceState)
                    = trace_start(fresh(state)?, traced(file));
            }
        }
    };
    (@functions $api:path: $(
        $name:ident($($arg:ident: $kind:ty),*) = $entry:ident($($value:expr),*);
    )+) => {
        $(
            #[doc = concat!("[`ApiFns::", stringify!($entry), "`], exported.")]
            ///
            /// # Safety
            ///
            /// The arguments must be as the kernel's documentation of the function requires, or null.
            #[no_mangle]
            unsafe extern "C" fn $name($($arg: $kind),*) -> c_int {
                // SAFETY: by the contract.
                from_result(|| unsafe { ApiFns::<$api>::$entry($($value),*) }.map(|()| 0))
            }

            const _: () = {
                if true {
                    declared::$name
                } else {
                    $name
                };
            };
        )+
    };
}

pub(crate) use export_synth_api;
