// SPDX-License-Identifier: GPL-2.0

//! Views of a trace event, of its file in one instance, and of a record being written.
//!
//! C headers: [`include/linux/trace_events.h`](srctree/include/linux/trace_events.h),
//! [`kernel/trace/trace.h`](srctree/kernel/trace/trace.h).
//!
//! An event file lives as long as somebody holds a reference or `event_mutex` with the file not yet
//! freed; the views are borrowed for that time and never stored.

use super::{
    bindings,
    guard::{
        EventMutexHeld,
        PreemptOff, //
    },
    record::SOFT_DISABLED,
    trace_core, //
};
use core::{
    ffi::CStr,
    marker::PhantomData,
    ops::Deref,
    ptr::NonNull, //
};
use kernel::{
    error::to_result,
    interop::list::clist_create,
    prelude::*,
    types::Opaque, //
};

/// A trace event, of all instances.
#[repr(transparent)]
pub(super) struct EventCall(Opaque<bindings::trace_event_call>);

impl EventCall {
    /// Borrows the C object.
    ///
    /// # Safety
    ///
    /// `ptr` must point at an event that stays allocated for `'a`.
    unsafe fn from_raw<'a>(ptr: *mut bindings::trace_event_call) -> &'a Self {
        // SAFETY: by the contract; `EventCall` is a transparent wrapper.
        unsafe { &*ptr.cast::<Self>() }
    }

    /// The name of the event, if it has one.
    pub(super) fn name(&self) -> Option<&CStr> {
        // SAFETY: the event is live; the helper only reads it.
        let name = unsafe { bindings::hist_helper_trace_event_name(self.0.get()) };
        // SAFETY: the event owns the name for as long as it lives, or there is none.
        unsafe { c_str(name) }
    }

    /// The system of the event, if it has one.
    pub(super) fn system(&self) -> Option<&CStr> {
        // SAFETY: the event is live, and its class with it, which owns the name or has none.
        unsafe { c_str((*(*self.0.get()).class).system) }
    }

    fn flags(&self) -> i32 {
        // SAFETY: the event is live.
        unsafe { (*self.0.get()).flags }
    }

    /// Whether the event was made while the kernel runs: a synthetic event, or a probe. Such an event counts its
    /// references itself.
    fn is_dynamic(&self) -> bool {
        self.flags() & FLAG_DYNAMIC != 0
    }

    /// Whether the event can be enabled, as all can but some of ftrace's own.
    fn can_be_enabled(&self) -> bool {
        // SAFETY: the event is live, and its class with it.
        let registers = unsafe { (*(*self.0.get()).class).reg }.is_some();
        registers && self.flags() & FLAG_IGNORE_ENABLE == 0
    }

    /// The module whose code the event is in; null for the kernel image and for dynamic events.
    fn module(&self) -> *mut bindings::module {
        if self.is_dynamic() {
            // The place holds a reference count, not a module.
            return core::ptr::null_mut();
        }
        // SAFETY: the event is live; the flag says that this member of the union is the valid one.
        unsafe { *(*self.0.get()).__bindgen_anon_2.module.as_ref() }.cast()
    }

    /// The state of the module whose code the event is in.
    fn module_state(&self) -> Option<bindings::module_state> {
        let module: *const bindings::module = self.module();
        // SAFETY: the module of a live event is live; its state is a word of its own.
        (!module.is_null()).then(|| unsafe { (&raw const (*module).state).read_volatile() })
    }

    /// Takes a reference, the inline function `trace_event_try_get_ref()`; `None` if the event is going away, or its
    /// module still coming.
    pub(super) fn try_get(&self) -> Option<EventRef> {
        let got = match self.is_dynamic() {
            // SAFETY: the event is live, and counts its references itself.
            true => unsafe { dynamic::try_get(self.0.get()) },
            // SAFETY: the event is live, so its module is, or it has none.
            false => unsafe { bindings::try_module_get(self.module()) },
        };
        // INVARIANT: taken by one of these.
        let event = got.then(|| EventRef(NonNull::from(self)))?;
        let state = self.module_state();
        state
            .is_none_or(|state| state == bindings::module_state_MODULE_STATE_LIVE)
            .then_some(event)
    }
}

/// A counted reference on an event.
///
/// # Invariants
///
/// The event has a reference for the value.
pub(super) struct EventRef(NonNull<EventCall>);

impl Deref for EventRef {
    type Target = EventCall;

    fn deref(&self) -> &EventCall {
        // SAFETY: by the type invariant.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for EventRef {
    fn drop(&mut self) {
        match self.is_dynamic() {
            // SAFETY: by the type invariant; the event counts its references itself.
            true => unsafe { dynamic::put(self.0.as_ptr().cast()) },
            // SAFETY: by the type invariant, which is one on the module, if there is one.
            false => unsafe { bindings::module_put(self.module()) },
        }
    }
}

/// References on events that user space made.
#[cfg(CONFIG_DYNAMIC_EVENTS)]
mod dynamic {
    pub(super) use super::trace_core::{
        trace_event_dyn_put_ref as put,
        trace_event_dyn_try_get_ref as try_get, //
    };
}

/// The kernel has no events that user space made.
#[cfg(not(CONFIG_DYNAMIC_EVENTS))]
mod dynamic {
    use super::bindings::trace_event_call;

    pub(super) unsafe fn put(_call: *mut trace_event_call) {}

    pub(super) unsafe fn try_get(_call: *mut trace_event_call) -> bool {
        false
    }
}

/// One event of one instance: what `events/<system>/<event>/` stands for.
#[repr(transparent)]
pub(crate) struct EventFile(Opaque<bindings::trace_event_file>);

impl EventFile {
    /// Borrows the C object.
    ///
    /// # Safety
    ///
    /// `ptr` must point at an event file that stays allocated for `'a`, and `event_mutex` must be
    /// held for `'a`.
    pub(super) unsafe fn from_raw<'a>(ptr: *mut bindings::trace_event_file) -> &'a Self {
        // SAFETY: by the contract; `EventFile` is a transparent wrapper.
        unsafe { &*ptr.cast::<Self>() }
    }

    /// The C object.
    pub(super) fn as_ptr(&self) -> *mut bindings::trace_event_file {
        self.0.get()
    }

    /// The event that this is a file of.
    pub(super) fn call(&self) -> &EventCall {
        // SAFETY: the object is live, `event_call` is set before the file can be found, and the event lives as long.
        unsafe { EventCall::from_raw((*self.as_ptr()).event_call) }
    }

    /// The name of the event, if it has one.
    pub(crate) fn name(&self) -> Option<&CStr> {
        self.call().name()
    }

    /// The system of the event, if it has one.
    pub(crate) fn system(&self) -> Option<&CStr> {
        self.call().system()
    }

    /// The instance that the file belongs to.
    pub(crate) fn instance(&self) -> Instance<'_> {
        // SAFETY: the object is live; `tr` is set once, when the file is made.
        Instance(unsafe { (*self.as_ptr()).tr }, PhantomData)
    }

    /// Whether the event was made while the kernel runs: a synthetic event, or a probe, which can be one
    /// on a synthetic event.
    pub(crate) fn is_dynamic(&self) -> bool {
        self.call().is_dynamic()
    }

    /// Whether the event comes from the code of `module`.
    pub(super) fn is_of_module(&self, module: ModuleId) -> bool {
        core::ptr::eq(self.call().module(), module.0)
    }

    /// Whether the event has been enabled, and not merely for its triggers' sake.
    pub(super) fn is_enabled(&self) -> bool {
        // CAST: a flag of the C enumeration.
        const ENABLED: c_ulong = bindings::EVENT_FILE_FL_ENABLED as c_ulong;

        // SAFETY: the object is live; the flags are one word.
        let flags = unsafe { (&raw const (*self.as_ptr()).flags).read_volatile() };
        flags & (ENABLED | SOFT_DISABLED) == ENABLED
    }

    /// Whether the event is about to go away with its module.
    pub(crate) fn is_going(&self) -> bool {
        self.call().module_state() == Some(bindings::module_state_MODULE_STATE_GOING)
    }

    /// Looks up a field by name: the event's own, then the generic, then the common ones.
    pub(crate) fn field(&self, name: &CStr, _held: &EventMutexHeld) -> Option<FieldView<'_>> {
        let (call, name) = (self.call().0.get(), name.as_char_ptr().cast_mut());
        // SAFETY: the event is live and its fields do not change under `event_mutex`; the name is
        // only compared.
        let field = unsafe { trace_core::trace_find_event_field(call, name) };
        // SAFETY: what was found lives as long as the event or the kernel.
        unsafe { field.as_ref() }.map(FieldView)
    }

    /// The names of the fields that the event has itself.
    pub(crate) fn own_fields<'a>(
        &'a self,
        _held: &'a EventMutexHeld,
    ) -> impl Iterator<Item = &'a [u8]> {
        let call = self.call().0.get();
        // SAFETY: the event is live, with its class; as `trace_get_fields()`, which a function of the class stands for if
        // there is one. The list is complete and its fields do not change under `event_mutex`.
        let list = unsafe {
            let class = (*call).class;
            let head = match (*class).get_fields {
                Some(get_fields) => get_fields(call),
                None => &raw mut (*class).fields,
            };
            clist_create!(head, FieldNode, bindings::ftrace_event_field, link)
        };
        list.iter().filter_map(|field| {
            // SAFETY: the field is live, and so is its name.
            unsafe { c_str((*field.0.get()).name) }.map(CStr::to_bytes)
        })
    }

    /// The triggers of the event, of whatever kind, in order. Who takes one off begins anew.
    pub(super) fn triggers<'a>(
        &'a self,
        _held: &'a EventMutexHeld,
    ) -> impl Iterator<Item = &'a TriggerNode> {
        let head = self.as_ptr();
        // SAFETY: the file is live, and the list is initialised with it; its entries are of this type, and its writers
        // hold `event_mutex`, so nobody else changes it meanwhile.
        let list = unsafe {
            clist_create!(
                &raw mut (*head).triggers,
                TriggerNode,
                bindings::event_trigger_data,
                list
            )
        };
        list.iter()
    }
}

/// A field on the list of its event.
#[repr(transparent)]
struct FieldNode(Opaque<bindings::ftrace_event_field>);

/// A trigger of whatever kind, while it is not freed.
#[repr(transparent)]
pub(super) struct TriggerNode(Opaque<bindings::event_trigger_data>);

impl TriggerNode {
    /// Borrows the C object.
    ///
    /// # Safety
    ///
    /// `ptr` must point at a node that is complete and not freed for `'a`.
    pub(super) unsafe fn from_raw<'a>(ptr: *mut bindings::event_trigger_data) -> &'a Self {
        // SAFETY: by the contract; `TriggerNode` is a transparent wrapper.
        unsafe { &*ptr.cast::<Self>() }
    }

    /// The C object.
    pub(super) fn as_ptr(&self) -> *mut bindings::event_trigger_data {
        self.0.get()
    }

    /// The bit that tells triggers of its kind from all others.
    pub(super) fn kind(&self) -> u32 {
        // SAFETY: the node is live; its command was set when it was made, and is registered for as long.
        unsafe { (*(*self.as_ptr()).cmd_ops).trigger_type }
    }

    /// Stops or continues the trigger. For hits, too: the core reads the flag without a lock, a byte that is written
    /// whole.
    pub(super) fn set_paused(&self, paused: bool) {
        // SAFETY: the node is live.
        unsafe { (&raw mut (*self.as_ptr()).paused).write_volatile(paused) };
    }

    /// The name of the command that it is of.
    pub(super) fn name(&self) -> Option<&CStr> {
        // SAFETY: the node is live; its command, which keeps its name, is registered for as long.
        unsafe { c_str((*(*self.as_ptr()).cmd_ops).name) }
    }
}

// CAST: flags of the C enumeration, whose values fit the `int` that holds them.
const FLAG_DYNAMIC: i32 = bindings::TRACE_EVENT_FL_DYNAMIC as i32;
const FLAG_IGNORE_ENABLE: i32 = bindings::TRACE_EVENT_FL_IGNORE_ENABLE as i32;

/// Borrows a C string that may be missing.
///
/// # Safety
///
/// `ptr` must be null, or point at a NUL-terminated string that stays unchanged for `'a`.
pub(super) unsafe fn c_str<'a>(ptr: *const c_char) -> Option<&'a CStr> {
    if ptr.is_null() {
        return None;
    }
    // SAFETY: by the contract.
    Some(unsafe { CStr::from_char_ptr(ptr) })
}

/// The address of a module, for comparison only.
#[derive(Clone, Copy)]
pub(crate) struct ModuleId(pub(super) *const bindings::module);

/// What the kernel knows of one field of an event.
#[derive(Clone, Copy)]
pub(crate) struct FieldView<'a>(&'a bindings::ftrace_event_field);

/// How the kernel classes a field; the names of `enum { FILTER_OTHER, ... }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldClass {
    /// A number, or anything that no other class describes.
    Other,
    /// A `__data_loc cpumask_t`.
    Cpumask,
    /// A `char` array inside the record.
    StaticString,
    /// A `__data_loc char[]`.
    DynString,
    /// A `__rel_loc char[]`.
    RelDynString,
    /// A `char *`.
    PtrString,
    /// The address of a function.
    TraceFn,
    /// The generic field that stands for the name of the current task.
    Comm,
    /// The generic field that stands for the number of the CPU.
    Cpu,
    /// The generic field that stands for a stack trace.
    Stacktrace,
}

impl<'a> FieldView<'a> {
    /// The type of the field, as its `format` shows it.
    pub(crate) fn type_text(&self) -> &'a [u8] {
        // SAFETY: a field has a type, which lives as long as the field.
        unsafe { c_str(self.0.type_) }.map_or(b"", CStr::to_bytes)
    }

    /// Where the field begins in a record.
    pub(crate) fn offset(&self) -> u32 {
        u32::try_from(self.0.offset).unwrap_or(u32::MAX)
    }

    /// How many bytes of the fixed part of a record it takes.
    pub(crate) fn size(&self) -> u32 {
        u32::try_from(self.0.size).unwrap_or(0)
    }

    /// Whether it is a signed number.
    pub(crate) fn is_signed(&self) -> bool {
        self.0.is_signed() != 0
    }

    /// The class of the field.
    pub(crate) fn class(&self) -> FieldClass {
        match u32::try_from(self.0.filter_type).unwrap_or(bindings::FILTER_OTHER) {
            bindings::FILTER_STATIC_STRING => FieldClass::StaticString,
            bindings::FILTER_DYN_STRING => FieldClass::DynString,
            bindings::FILTER_RDYN_STRING => FieldClass::RelDynString,
            bindings::FILTER_PTR_STRING => FieldClass::PtrString,
            bindings::FILTER_TRACE_FN => FieldClass::TraceFn,
            bindings::FILTER_COMM => FieldClass::Comm,
            bindings::FILTER_CPU => FieldClass::Cpu,
            bindings::FILTER_STACKTRACE => FieldClass::Stacktrace,
            bindings::FILTER_CPUMASK => FieldClass::Cpumask,
            _ => FieldClass::Other,
        }
    }
}

/// A trace instance: a `trace_array`.
#[derive(Clone, Copy)]
pub(crate) struct Instance<'a>(*mut bindings::trace_array, PhantomData<&'a EventFile>);

impl<'a> Instance<'a> {
    /// The C object.
    pub(super) fn as_ptr(&self) -> *mut bindings::trace_array {
        self.0
    }

    /// The name of the instance; the top one has none.
    pub(crate) fn name(&self) -> Option<&'a CStr> {
        // SAFETY: the instance is live, and has its name for as long.
        unsafe { c_str((*self.0).name) }
    }

    /// Whether both are the same instance.
    pub(crate) fn is(&self, other: &Self) -> bool {
        core::ptr::eq(self.0, other.0)
    }

    /// Looks up an event of the instance, unless it is one of those that can not be enabled.
    pub(crate) fn event(
        &self,
        system: &CStr,
        event: &CStr,
        held: &EventMutexHeld,
    ) -> Option<&'a EventFile> {
        let file = self.any_event(system, event, held)?;
        file.call().can_be_enabled().then_some(file)
    }

    /// Looks up any event of the instance, also one that nobody can enable.
    pub(crate) fn any_event(
        &self,
        system: &CStr,
        event: &CStr,
        _held: &EventMutexHeld,
    ) -> Option<&'a EventFile> {
        // SAFETY: the instance is live and `event_mutex` held; the names are only compared.
        let file = unsafe {
            trace_core::__find_event_file(self.0, system.as_char_ptr(), event.as_char_ptr())
        };
        // SAFETY: the file stays on the list of its instance while the mutex is held, which it is for as
        // long as the file is borrowed that the instance was taken from.
        (!file.is_null()).then(|| unsafe { EventFile::from_raw(file) })
    }

    /// Keeps the instance from being removed, until [`Instance::unpin`]; takes `trace_types_lock`.
    pub(crate) fn pin(&self) -> Result {
        // SAFETY: the instance is live while a file of it is.
        to_result(unsafe { trace_core::tracing_check_open_get_tr(self.0) }).map_err(|_| ENODEV)
    }

    /// Takes back one [`Instance::pin`]; takes `trace_types_lock`.
    pub(crate) fn unpin(&self) {
        // SAFETY: the instance is live, and has a reference that `pin` took.
        unsafe { trace_core::trace_array_put(self.0) };
    }

    /// Whether the clock of the instance counts nanoseconds.
    #[inline(always)]
    pub(crate) fn clock_in_ns(&self) -> bool {
        // SAFETY: the instance is live while a file of it is.
        unsafe { trace_core::trace_clock_in_ns(self.0) }
    }

    /// Switches the clock of the instance, which empties its buffers.
    pub(crate) fn set_clock(&self, name: &CStr) -> Result {
        // SAFETY: the instance is live while a file of it is; the name is only read.
        to_result(unsafe { trace_core::tracing_set_clock(self.0, name.as_char_ptr()) })
    }

    /// Asks for records that are kept to be written in place, where they have their final time stamp,
    /// and not first into the scratch buffer of the CPU; until [`Instance::allow_scratch`].
    ///
    /// Takes `trace_types_lock`: not for paths that free triggers.
    pub(crate) fn refuse_scratch(&self) {
        // SAFETY: the instance is live while a file of it is.
        unsafe { trace_core::refuse_scratch(self.0) };
    }

    /// Takes back one [`Instance::refuse_scratch`].
    pub(crate) fn allow_scratch(&self) {
        // SAFETY: the instance is live, and each call undoes one `refuse_scratch`.
        unsafe { trace_core::allow_scratch(self.0) };
    }
}

/// A record that is being written, as a trigger function sees it.
#[derive(Clone, Copy)]
pub(crate) struct Hit<'a> {
    file: *mut bindings::trace_event_file,
    buffer: *mut bindings::trace_buffer,
    event: *mut bindings::ring_buffer_event,
    record: Record<'a>,
}

/// The bytes of a record that is being written, and the proof that preemption is off meanwhile.
#[derive(Clone, Copy)]
pub(crate) struct Record<'a> {
    data: &'a [u8],
    preempt: PreemptOff<'a>,
}

impl<'a> Record<'a> {
    /// The bytes.
    #[inline(always)]
    pub(crate) fn data(&self) -> &'a [u8] {
        self.data
    }

    /// The proof that preemption is off.
    #[inline(always)]
    pub(crate) fn preempt_off(&self) -> &PreemptOff<'a> {
        &self.preempt
    }
}

impl<'a> Hit<'a> {
    /// Views the arguments of a trigger function, unless there is no record.
    ///
    /// # Safety
    ///
    /// The arguments must be the event file that a trigger function is called for and what the
    /// tracing core calls it with, which is both a record and its event or neither, and stay valid for
    /// `'a`.
    #[inline(always)]
    pub(super) unsafe fn from_raw(
        file: *mut bindings::trace_event_file,
        buffer: *mut bindings::trace_buffer,
        rec: *mut c_void,
        event: *mut bindings::ring_buffer_event,
    ) -> Option<Self> {
        if event.is_null() {
            return None;
        }
        // SAFETY: `event` was reserved in the buffer of the instance, in the buffer that stands in
        // while tracing is off, or is this CPU's scratch record. The first two turn preemption off
        // until the commit, the third until it is given back; all of them come after the triggers.
        let preempt = unsafe { PreemptOff::assume() };
        // SAFETY: `event` heads a record that the core has filled.
        let len = unsafe { record_len(event) };
        // SAFETY: the record's data is `len` bytes at `rec`; it belongs to this context until the
        // commit, and the core does not write to it while triggers run.
        let data = unsafe { core::slice::from_raw_parts(rec.cast::<u8>(), len) };
        Some(Self {
            file,
            buffer,
            event,
            record: Record { data, preempt },
        })
    }

    /// Gives up all but the record.
    #[inline(always)]
    pub(crate) fn into_record(self) -> Record<'a> {
        self.record
    }

    /// The bytes of the record.
    #[inline(always)]
    pub(crate) fn data(&self) -> &'a [u8] {
        self.record.data()
    }

    /// Whether the clock of the instance counts nanoseconds.
    #[inline(always)]
    pub(crate) fn clock_in_ns(&self) -> bool {
        // SAFETY: the file and its instance are live while an event of theirs is being written.
        unsafe { trace_core::stamps_in_ns(self.file) }
    }

    /// The time stamp that the record has.
    #[inline(always)]
    pub(crate) fn time_stamp(&self) -> u64 {
        // SAFETY: `buffer` and `event` are those of the record being written, for `file`.
        unsafe { trace_core::time_stamp(self.file, self.buffer, self.event) }
    }
}

/// How many bytes of data a record has.
///
/// # Safety
///
/// `event` must head a record that this CPU is writing, with preemption off.
#[inline(always)]
unsafe fn record_len(event: *mut bindings::ring_buffer_event) -> usize {
    // SAFETY: every record has a word behind its header: the least that one takes in the ring buffer are two
    // words, and in the scratch record this is the length, of the data alone.
    let first = unsafe { first_word(event) };
    // SAFETY: by the contract.
    if unsafe { trace_core::is_scratch(event) } {
        return first;
    }
    let mut event = event;
    // SAFETY: by the contract, `event` is a readable header.
    let mut type_len = unsafe { (*event).type_len() };
    if type_len >= TYPE_TIME_EXTEND {
        // SAFETY: a time stamp comes first, of two words; the record's own header follows.
        event = unsafe { event.cast::<u32>().add(2).cast() };
        // SAFETY: by the contract, this is the header of the record.
        type_len = unsafe { (*event).type_len() };
    }
    if type_len != 0 {
        // CAST: a five bit number, which counts words.
        return (type_len as usize) << 2;
    }
    // SAFETY: every record has a word behind its header. A header without a length has it there, and counts the word.
    unsafe { first_word(event) }.saturating_sub(size_of::<u32>())
}

const TYPE_TIME_EXTEND: u32 = bindings::ring_buffer_type_RINGBUF_TYPE_TIME_EXTEND;

/// The first word after the header of a record.
///
/// # Safety
///
/// `event` must head a record, which has that word.
#[inline(always)]
unsafe fn first_word(event: *mut bindings::ring_buffer_event) -> usize {
    // SAFETY: by the contract.
    let word = unsafe { (*event).array.as_ptr().read() };
    // CAST: the length of a record is below the size of a sub-buffer.
    word as usize
}
