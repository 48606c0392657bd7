// SPDX-License-Identifier: GPL-2.0

//! The in-kernel API of synthetic events, as C modules call it.
//!
//! C header: [`include/linux/trace_events.h`](srctree/include/linux/trace_events.h). The two functions
//! that take any number of arguments, and the exports, are in `synth_api.c`; the others are defined
//! by [`export_synth_api`] for whoever implements [`SynthApi`].
//!
//! Context: what creates and deletes sleeps and takes `event_mutex`; what traces may be called from
//! anywhere. Addresses of objects have to be right, as in C. Addresses of strings to be traced may be
//! wrong: then the record says so.
//!
//! A builder (`dynevent_cmd`) is a text that grows; nothing happens before its end. An open trace
//! (`synth_event_trace_state`) is a reserved record: preemption is off until it is ended.

use super::{
    bindings,
    dyn_event::{
        Event,
        Kind,
        Owner, //
    },
    guard::PreemptGuard,
    nofault::Remote,
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

/// What the definitions name.
pub(crate) mod prelude {
    pub(crate) use super::{
        Cmd,
        Desc,
        Entry,
        File,
        Module,
        State, //
    };
    pub(crate) use kernel::{
        error::from_result,
        ffi::{
            c_char,
            c_int,
            c_uint, //
        }, //
    };
}

/// A builder of an event.
pub(crate) type Cmd = bindings::dynevent_cmd;
/// Type and name of a field.
pub(crate) type Desc = bindings::synth_field_desc;
/// An open trace.
pub(crate) type State = bindings::synth_event_trace_state;
/// An event in an instance.
pub(crate) type File = bindings::trace_event_file;
/// A module.
pub(crate) type Module = bindings::module;

/// The bytes of the text of an event that is made at once.
const TEXT_LEN: usize = bindings::MAX_DYNEVENT_CMD_LEN as usize;

/// A value as C modules give it: a number, or the address of a string.
///
/// It becomes what the field is; a number never becomes an address by mistake of the field's type,
/// since only [`SynthApi`] asks for strings, and an address that cannot be read is no harm.
#[derive(Clone, Copy)]
pub(crate) struct Raw(u64);

impl Raw {
    /// The number.
    pub(crate) fn number(self) -> u64 {
        self.0
    }

    /// Whether it is no address at all.
    pub(crate) fn is_null(self) -> bool {
        self.0 == 0
    }

    /// Copies the string, without NUL, as much of it as fits; `None` if it cannot be read.
    pub(crate) fn string(self, to: &mut [u8]) -> Option<usize> {
        Remote::new(self.0).string(to)
    }

    /// The length of the string, at most `max`; `None` if it cannot be read.
    pub(crate) fn string_len(self, max: usize) -> Option<usize> {
        Remote::new(self.0).string_len(max)
    }
}

/// The values of one record, in the order of the fields.
#[derive(Clone, Copy)]
pub(crate) struct RawValues<'a>(&'a [u64]);

impl RawValues<'_> {
    /// The value of that field; 0 if there is none.
    pub(crate) fn get(self, field: usize) -> Raw {
        Raw(self.0.get(field).copied().unwrap_or(0))
    }
}

/// Where an open trace puts a value.
#[derive(Clone, Copy)]
pub(crate) enum Which<'a> {
    /// To the field of that number.
    Nth(usize),
    /// To the field of that name.
    Named(&'a CStr),
}

/// What the functions of this file ask of a type of events.
pub(crate) trait SynthApi: Kind {
    /// Most fields of one event.
    const FIELDS_MAX: u32;

    /// Whether `kind` may be given as the type of a field.
    fn is_type(kind: &CStr) -> bool;

    /// Creates an event of its text, `NAME TYPE FIELD;...`.
    fn make(text: &CStr, owner: Owner) -> Result;

    /// Deletes an event.
    fn delete(name: &CStr) -> Result;

    /// How many values a record has; `None` if a field of the event cannot be given as a value.
    fn values(&self) -> Option<usize>;

    /// The bytes of each record, its header included; `None` if they differ.
    fn fixed_len(&self) -> Option<usize>;

    /// The bytes of a record of these values, and what writes them into it.
    fn measure<'a>(
        &'a self,
        values: RawValues<'a>,
    ) -> Result<(usize, impl FnOnce(&mut [u8]) -> bool + 'a)>;

    /// Puts one value into a record that has been cleared.
    fn put(&self, record: &mut [u8], which: Which<'_>, value: Raw) -> Result;
}

/// The functions, for one implementation.
pub(crate) struct Entry<T>(PhantomData<T>);

/// A string that C gave, or `EINVAL` if there is none.
///
/// # Safety
///
/// `ptr` must be null or point at a string that stays as it is for `'a`.
unsafe fn string<'a>(ptr: *const c_char) -> Result<&'a CStr> {
    if ptr.is_null() {
        return Err(EINVAL);
    }
    // SAFETY: by the contract.
    Ok(unsafe { CStr::from_char_ptr(ptr) })
}

/// The builder, if it is one of a synthetic event.
///
/// # Safety
///
/// `cmd` must be null or point at a builder that nobody else uses for `'a`.
unsafe fn builder<'a>(cmd: *mut Cmd) -> Result<&'a mut Cmd> {
    // SAFETY: by the contract.
    let cmd = unsafe { cmd.as_mut() }.ok_or(EINVAL)?;
    if cmd.type_ != bindings::dynevent_type_DYNEVENT_TYPE_SYNTH {
        return Err(EINVAL);
    }
    Ok(cmd)
}

/// Appends texts; `E2BIG` if there is no room.
fn append<const N: usize>(cmd: &mut Cmd, texts: [&CStr; N]) -> Result {
    for text in texts {
        // SAFETY: the builder is live, and the text is a string.
        let ret = unsafe { bindings::seq_buf_puts(&raw mut cmd.seq, text.as_char_ptr()) };
        to_result(ret).map_err(|_| E2BIG)?;
    }
    Ok(())
}

/// Counts a field that was appended.
fn count<T: SynthApi>(cmd: &mut Cmd) -> Result {
    cmd.n_fields = cmd.n_fields.saturating_add(1);
    if cmd.n_fields > T::FIELDS_MAX {
        return Err(EINVAL);
    }
    Ok(())
}

/// The event of ours that `file` is of.
///
/// # Safety
///
/// `file` must be null, or live for `'a`.
unsafe fn event_of<'a, T: SynthApi>(file: *mut File) -> Result<ArcBorrow<'a, Event<T>>> {
    let file = NonNull::new(file).ok_or(EINVAL)?;
    // SAFETY: by the contract.
    unsafe { Event::<T>::of_file(file.as_ptr()) }.ok_or(EINVAL)
}

/// Whether what is traced is to be recorded. Calls those triggers of the event that need no record.
///
/// # Safety
///
/// `file` must be live.
unsafe fn is_enabled(file: *mut File) -> bool {
    // CAST: a flag of the C enumeration.
    const ENABLED: c_ulong = bindings::EVENT_FILE_FL_ENABLED as c_ulong;

    // PARITY: `__synth_event_trace_init()` goes through the triggers with nothing that keeps them.
    let _triggers_stay = PreemptGuard::new();
    // SAFETY: by the contract. Others change the word, atomically.
    let flags = unsafe { (&raw const (*file).flags).read_volatile() };
    // SAFETY: by the contract.
    flags & ENABLED != 0 && !unsafe { record::is_soft_disabled(file) }
}

/// Turns a record that is reserved into the state of an open trace.
fn keep(state: &mut State, record: Reserved) {
    let (buffer, nest) = record.into_raw();
    state.entry = buffer.entry.cast();
    state.fbuffer = buffer;
    state.buffer = nest;
}

impl<T: SynthApi> Entry<T> {
    /// # Safety
    ///
    /// `cmd` must be a builder to be, `buf` have `maxlen` bytes for as long as that is used.
    pub(crate) unsafe fn cmd_init(cmd: *mut Cmd, buf: *mut c_char, maxlen: c_int) {
        let builder = Cmd {
            seq: bindings::seq_buf {
                buffer: buf,
                // CAST: C gives a number of bytes.
                size: maxlen as usize,
                len: 0,
            },
            type_: bindings::dynevent_type_DYNEVENT_TYPE_SYNTH,
            run_command: Some(Self::run),
            ..Default::default()
        };
        // SAFETY: by the contract.
        unsafe { cmd.write(builder) };
        if maxlen > 0 {
            // SAFETY: by the contract; an empty text ends in a NUL, too.
            unsafe { buf.write(0) };
        }
    }

    /// What `dynevent_create()` calls: the end of a builder.
    ///
    /// # Safety
    ///
    /// `cmd` must be a builder that nobody else uses.
    unsafe extern "C" fn run(cmd: *mut Cmd) -> c_int {
        // SAFETY: by the contract.
        from_result(|| unsafe { Self::run_builder(builder(cmd)?) }.map(|()| 0))
    }

    /// # Safety
    ///
    /// The buffer of `cmd` must have its bytes.
    unsafe fn run_builder(cmd: &mut Cmd) -> Result {
        // PARITY: the C code makes an event of the part that had room.
        if cmd.seq.len >= cmd.seq.size {
            return Err(E2BIG);
        }
        // SAFETY: by the contract, and what was printed into the buffer ends in a NUL, which it has
        // from `cmd_init()` on if nothing was.
        let text = unsafe { string(cmd.seq.buffer) }?;
        // SAFETY: by the contract of `array_start()`, which stored it there.
        T::make(text, unsafe { Owner::from_raw(cmd.private_data.cast()) })
    }

    /// # Safety
    ///
    /// `cmd` must be a builder, `name` a string, `fields` have `n_fields` elements; or be null. `module`
    /// must be null, or live until the builder is ended.
    pub(crate) unsafe fn array_start(
        cmd: *mut Cmd,
        name: *const c_char,
        module: *mut Module,
        fields: *mut Desc,
        n_fields: c_uint,
    ) -> Result {
        // SAFETY: by the contract.
        let builder = unsafe { builder(cmd) }?;
        builder.event_name = name;
        builder.private_data = module.cast();
        if n_fields > T::FIELDS_MAX {
            return Err(EINVAL);
        }
        // SAFETY: by the contract.
        append(builder, [c" ", unsafe { string(name) }?, c" "])?;
        // SAFETY: by the contract.
        unsafe { Self::add_fields(cmd, fields, n_fields) }
    }

    /// # Safety
    ///
    /// `cmd` must be a builder, `kind` and `name` strings; or be null.
    pub(crate) unsafe fn add_field(
        cmd: *mut Cmd,
        kind: *const c_char,
        name: *const c_char,
    ) -> Result {
        // SAFETY: by the contract.
        let cmd = unsafe { builder(cmd) }?;
        // SAFETY: by the contract.
        let kind = unsafe { string(kind) }?;
        // SAFETY: by the contract.
        let name = unsafe { string(name) }?;
        if !T::is_type(kind) {
            return Err(EINVAL);
        }
        append(cmd, [c" ", kind, c" ", name, c";"])?;
        count::<T>(cmd)
    }

    /// # Safety
    ///
    /// `cmd` must be a builder, `text` a string; or be null.
    pub(crate) unsafe fn add_field_str(cmd: *mut Cmd, text: *const c_char) -> Result {
        // SAFETY: by the contract.
        let cmd = unsafe { builder(cmd) }?;
        // SAFETY: by the contract.
        append(cmd, [c" ", unsafe { string(text) }?, c";"])?;
        count::<T>(cmd)
    }

    /// # Safety
    ///
    /// `cmd` must be a builder, `fields` have `n_fields` elements; or be null.
    pub(crate) unsafe fn add_fields(cmd: *mut Cmd, fields: *mut Desc, n_fields: c_uint) -> Result {
        if n_fields == 0 {
            return Ok(());
        }
        if fields.is_null() {
            return Err(EINVAL);
        }
        // SAFETY: by the contract. CAST: a pointer has no less bits than the number.
        let fields = unsafe { core::slice::from_raw_parts(fields, n_fields as usize) };
        for field in fields {
            // SAFETY: by the contract.
            unsafe { Self::add_field(cmd, field.type_, field.name) }?;
        }
        Ok(())
    }

    /// # Safety
    ///
    /// As for [`Entry::array_start`], but for the builder.
    pub(crate) unsafe fn create(
        name: *const c_char,
        fields: *mut Desc,
        n_fields: c_uint,
        module: *mut Module,
    ) -> Result {
        let mut text = KVec::<c_char>::from_elem(0, TEXT_LEN, GFP_KERNEL)?;
        let mut cmd = Cmd::default();
        // CAST: 2048.
        // SAFETY: the builder lives until the end of this function, and its buffer longer.
        unsafe { Self::cmd_init(&raw mut cmd, text.as_mut_ptr(), TEXT_LEN as c_int) };
        // SAFETY: by the contract, and the builder was initialised.
        unsafe { Self::array_start(&raw mut cmd, name, module, fields, n_fields) }?;
        // SAFETY: the buffer has its bytes.
        unsafe { Self::run_builder(&mut cmd) }
    }

    /// # Safety
    ///
    /// `name` must be a string, or null.
    pub(crate) unsafe fn delete(name: *const c_char) -> Result {
        // SAFETY: by the contract.
        T::delete(unsafe { string(name) }?)
    }

    /// # Safety
    ///
    /// The caller must have a reference on `file`; `vals` must have `n_vals` elements.
    pub(crate) unsafe fn trace_array(file: *mut File, vals: *mut u64, n_vals: c_uint) -> Result {
        // SAFETY: by the contract.
        let event = unsafe { event_of::<T>(file) }?;
        // SAFETY: by the contract.
        if !unsafe { is_enabled(file) } {
            return Ok(());
        }
        // CAST: a pointer has no less bits than the number.
        let n_vals = n_vals as usize;
        if event.values() != Some(n_vals) || vals.is_null() {
            return Err(EINVAL);
        }
        // SAFETY: by the contract.
        let values = RawValues(unsafe { core::slice::from_raw_parts(vals, n_vals) });
        let (len, fill) = event.measure(values)?;
        // SAFETY: the file is live by the caller's reference.
        let mut record = unsafe { Reserved::new(file, len) }.ok_or(EINVAL)?;
        if !fill(record.bytes()) {
            record.discard();
            return Err(EINVAL);
        }
        record.commit();
        Ok(())
    }

    /// # Safety
    ///
    /// The caller must have a reference on `file`, until the trace is ended; `state` must be null, or
    /// be for nobody else until then.
    pub(crate) unsafe fn trace_start(file: *mut File, state: *mut State) -> Result {
        let state = NonNull::new(state).ok_or(EINVAL)?.as_ptr();
        // SAFETY: by the contract there is room for it; all of it may be 0.
        unsafe { ptr::write_bytes(state, 0, 1) };
        // SAFETY: by the contract it is ours alone, and initialised by now.
        let state = unsafe { &mut *state };
        // SAFETY: by the contract.
        let event = unsafe { event_of::<T>(file) }?;
        // SAFETY: by the contract.
        if !unsafe { is_enabled(file) } {
            state.disabled = true;
            return Ok(());
        }
        let len = event.fixed_len().ok_or(code::ENOTSUPP)?;
        // SAFETY: the file is live by the caller's reference.
        let mut record = unsafe { Reserved::new(file, len) }.ok_or(EINVAL)?;
        if let Some(body) = record.bytes().get_mut(size_of::<bindings::trace_entry>()..) {
            body.fill(0);
        }
        state.event = ptr::from_ref(&*event).cast_mut().cast();
        keep(state, record);
        Ok(())
    }

    /// # Safety
    ///
    /// `state` must be null, or one that was given to `trace_start()` and for nobody else; `name` must
    /// be a string, or null.
    pub(crate) unsafe fn add_val(name: *const c_char, value: u64, state: *mut State) -> Result {
        // SAFETY: by the contract.
        let name = unsafe { string(name) }?;
        // SAFETY: by the contract.
        let state = unsafe { state.as_mut() }.ok_or(EINVAL)?;
        if state.add_next {
            return Err(EINVAL);
        }
        state.add_name = true;
        // SAFETY: by the contract.
        unsafe { Self::put(state, Which::Named(name), value) }
    }

    /// # Safety
    ///
    /// `state` must be null, or one that was given to `trace_start()` and for nobody else.
    pub(crate) unsafe fn add_next_val(value: u64, state: *mut State) -> Result {
        // SAFETY: by the contract.
        let state = unsafe { state.as_mut() }.ok_or(EINVAL)?;
        if state.add_name {
            return Err(EINVAL);
        }
        state.add_next = true;
        // CAST: a pointer has no less bits than the number.
        let which = Which::Nth(state.cur_field as usize);
        state.cur_field = state.cur_field.saturating_add(1);
        // SAFETY: by the contract.
        unsafe { Self::put(state, which, value) }
    }

    /// # Safety
    ///
    /// `state` must have been given to `trace_start()`, and the references of that time still be held.
    unsafe fn put(state: &mut State, which: Which<'_>, value: u64) -> Result {
        if state.disabled {
            return Ok(());
        }
        // SAFETY: by the contract.
        let (event, mut record) = unsafe { Self::kept(state) }?;
        event.put(record.bytes(), which, Raw(value))
    }

    /// The event and the record of an open trace; `EINVAL` if it is none.
    ///
    /// # Safety
    ///
    /// `state` must have been given to `trace_start()`, and the references of that time still be held.
    unsafe fn kept(state: &State) -> Result<(&Event<T>, Reserved)> {
        if state.entry.is_null() {
            return Err(EINVAL);
        }
        // SAFETY: `trace_start()` stored an event there that lives as long as the caller's reference.
        let event = unsafe { &*state.event.cast::<Event<T>>() };
        let len = event.fixed_len().ok_or(EINVAL)?;
        // SAFETY: it stored a record of that length, which only `trace_end()` commits, as the last.
        let record = unsafe { Reserved::from_raw(state.fbuffer, state.buffer, len) };
        Ok((event, record))
    }

    /// # Safety
    ///
    /// `state` must be null, or one that was given to `trace_start()` and for nobody else.
    pub(crate) unsafe fn trace_end(state: *mut State) -> Result {
        // SAFETY: by the contract.
        let state = unsafe { state.as_mut() }.ok_or(EINVAL)?;
        if state.disabled {
            return Ok(());
        }
        // SAFETY: by the contract.
        let (_, record) = unsafe { Self::kept(state) }?;
        record.commit();
        state.entry = ptr::null_mut();
        Ok(())
    }
}

/// Defines the API for the type that implements [`SynthApi`], given with its whole path.
///
/// Each definition is compared with the declaration that bindgen made of the kernel's header.
macro_rules! export_synth_api {
    ($api:path) => {
        /// The functions that `synth_api.c` exports.
        mod exported {
            use $crate::ffi::synth_api::{
                declared,
                prelude::*, //
            };

            /// [`Entry::cmd_init`], exported.
            ///
            /// # Safety
            ///
            /// As there.
            #[no_mangle]
            unsafe extern "C" fn synth_event_cmd_init(cmd: *mut Cmd, buf: *mut c_char, len: c_int) {
                // SAFETY: the contract of the caller is that of the function.
                unsafe { Entry::<$api>::cmd_init(cmd, buf, len) }
            }

            const _: () = {
                if true {
                    declared::synth_event_cmd_init
                } else {
                    synth_event_cmd_init
                };
            };

            $crate::ffi::synth_api::export_synth_api! { @functions $api:
                synth_event_add_field = add_field(cmd: *mut Cmd, kind: *const c_char, name: *const c_char);
                synth_event_add_field_str = add_field_str(cmd: *mut Cmd, text: *const c_char);
                synth_event_add_fields = add_fields(cmd: *mut Cmd, fields: *mut Desc, n: c_uint);
                synth_event_add_next_val = add_next_val(value: u64, state: *mut State);
                synth_event_add_val = add_val(name: *const c_char, value: u64, state: *mut State);
                synth_event_create = create(
                    name: *const c_char, fields: *mut Desc, n: c_uint, module: *mut Module
                );
                synth_event_delete = delete(name: *const c_char);
                synth_event_gen_cmd_array_start = array_start(
                    cmd: *mut Cmd, name: *const c_char, module: *mut Module, fields: *mut Desc, n: c_uint
                );
                synth_event_trace_array = trace_array(file: *mut File, vals: *mut u64, n: c_uint);
                synth_event_trace_end = trace_end(state: *mut State);
                synth_event_trace_start = trace_start(file: *mut File, state: *mut State);
            }
        }
    };
    (@functions $api:path: $($name:ident = $entry:ident($($arg:ident: $kind:ty),*);)+) => {
        $(
            #[doc = concat!("[`Entry::", stringify!($entry), "`], exported.")]
            ///
            /// # Safety
            ///
            /// As there.
            #[no_mangle]
            unsafe extern "C" fn $name($($arg: $kind),*) -> c_int {
                // SAFETY: the contract of the caller is that of the function.
                from_result(|| unsafe { Entry::<$api>::$entry($($arg),*) }.map(|()| 0))
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
