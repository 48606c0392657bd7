// SPDX-License-Identifier: GPL-2.0

//! Views of a trace event, of its file in one instance, and of a record that is being written.
//!
//! C headers: [`include/linux/trace_events.h`](srctree/include/linux/trace_events.h),
//! [`kernel/trace/trace.h`](srctree/kernel/trace/trace.h).
//!
//! An event file lives as long as it is referenced or `event_mutex` is held, unless it was freed before; views are
//! borrowed for that time and never stored.

use super::{
    bindings,
    guard::{
        EventMutexHeld,
        PreemptOff, //
    },
    record::SOFT_DISABLED,
    trace_core, //
};
use crate::field::{
    FieldDesc,
    FieldKind, //
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

/// A trace event, which all instances share.
#[repr(transparent)]
pub(super) struct EventCall(Opaque<bindings::trace_event_call>);

impl EventCall {
    /// Borrows the C object.
    ///
    /// # Safety
    ///
    /// `ptr` must point to an event that stays allocated for `'a`.
    pub(super) unsafe fn from_raw<'a>(ptr: *mut bindings::trace_event_call) -> &'a Self {
        // SAFETY: by the contract; `EventCall` is a transparent wrapper.
        unsafe { &*ptr.cast::<Self>() }
    }

    /// Returns the system and the name of the event, empty if it has none.
    pub(super) fn names(&self) -> (&[u8], &[u8]) {
        // SAFETY: the event is live; the helper only reads it.
        let name = unsafe { bindings::hist_helper_trace_event_name(self.0.get()) };
        // SAFETY: the event owns its name for its whole life, and its class that of the system; null if there is none.
        let (system, name) = unsafe { (c_str((*(*self.0.get()).class).system), c_str(name)) };
        (
            system.unwrap_or_default().to_bytes(),
            name.unwrap_or_default().to_bytes(),
        )
    }

    /// Iterates over the event's own fields, in the order of the core's list.
    ///
    /// # Safety
    ///
    /// The fields must be complete, and not change while they are borrowed.
    pub(super) unsafe fn own_fields(&self) -> impl Iterator<Item = &bindings::ftrace_event_field> {
        let call = self.0.get();
        // SAFETY: the event is live, and so is its class; like `trace_get_fields()`, uses the function of the class if
        // there is one. By the contract the list is complete and does not change.
        let list = unsafe {
            let class = (*call).class;
            let head = match (*class).get_fields {
                Some(get_fields) => get_fields(call),
                None => &raw mut (*class).fields,
            };
            clist_create!(head, FieldNode, bindings::ftrace_event_field, link)
        };
        // SAFETY: a field on the list is live, and does not change by the contract.
        list.iter().map(|field| unsafe { &*field.0.get() })
    }

    fn flags(&self) -> i32 {
        // SAFETY: the event is live.
        unsafe { (*self.0.get()).flags }
    }

    /// Returns whether the event was created at run time: a synthetic event, or a probe. Such an event has its own
    /// reference count.
    fn is_dynamic(&self) -> bool {
        self.flags() & FLAG_DYNAMIC != 0
    }

    /// Returns whether the event can be enabled, as all can except some of ftrace's own.
    pub(super) fn can_be_enabled(&self) -> bool {
        // SAFETY: the event is live, and so is its class.
        let registers = unsafe { (*(*self.0.get()).class).reg }.is_some();
        registers && self.flags() & FLAG_IGNORE_ENABLE == 0
    }

    /// Returns the module with the event's code; null for the kernel image and for dynamic events.
    pub(super) fn module(&self) -> *mut bindings::module {
        if self.is_dynamic() {
            // The field has a reference count instead of a module.
            return core::ptr::null_mut();
        }
        // SAFETY: the event is live; the flag tells that this member of the union is valid.
        unsafe { *(*self.0.get()).__bindgen_anon_2.module.as_ref() }.cast()
    }

    /// Returns the state of the module with the event's code.
    fn module_state(&self) -> Option<bindings::module_state> {
        let module: *const bindings::module = self.module();
        // SAFETY: the module of a live event is live; its state is a word that is written at once.
        (!module.is_null()).then(|| unsafe { (&raw const (*module).state).read_volatile() })
    }

    /// Takes a reference like the inline function `trace_event_try_get_ref()`; `None` if the event is going away, or
    /// its module is still loading.
    pub(super) fn try_get(&self) -> Option<EventRef> {
        let got = match self.is_dynamic() {
            // SAFETY: the event is live, and has its own reference count.
            true => unsafe { trace_core::trace_event_dyn_try_get_ref(self.0.get()) },
            // SAFETY: the event is live, so its module is, too, or there is none.
            false => unsafe { bindings::try_module_get(self.module()) },
        };
        // INVARIANT: if `got`, one of the two calls took the reference.
        let event = got.then(|| EventRef(NonNull::from(self)))?;
        let state = self.module_state();
        state
            .is_none_or(|state| state == bindings::module_state_MODULE_STATE_LIVE)
            .then_some(event)
    }
}

/// A counted reference to an event.
///
/// # Invariants
///
/// This value owns a reference to the event.
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
            // SAFETY: by the type invariant; the event has its own reference count.
            true => unsafe { trace_core::trace_event_dyn_put_ref(self.0.as_ptr().cast()) },
            // SAFETY: by the type invariant the reference is to the module, if there is one.
            false => unsafe { bindings::module_put(self.module()) },
        }
    }
}

/// One event in one instance: the directory `events/<system>/<event>/`.
#[repr(transparent)]
pub(crate) struct EventFile(Opaque<bindings::trace_event_file>);

impl EventFile {
    /// Borrows the C object.
    ///
    /// # Safety
    ///
    /// `ptr` must point to an event file that stays allocated for `'a`, and `event_mutex` must be held for `'a`.
    pub(super) unsafe fn from_raw<'a>(ptr: *mut bindings::trace_event_file) -> &'a Self {
        // SAFETY: by the contract; `EventFile` is a transparent wrapper.
        unsafe { &*ptr.cast::<Self>() }
    }

    /// Returns the C object.
    pub(super) fn as_ptr(&self) -> *mut bindings::trace_event_file {
        self.0.get()
    }

    /// Returns the event of this file.
    pub(super) fn call(&self) -> &EventCall {
        // SAFETY: the object is live, `event_call` is set before the file can be found, and the event lives as long.
        unsafe { EventCall::from_raw((*self.as_ptr()).event_call) }
    }

    /// Returns the system and the name of the event, empty if it has none.
    pub(crate) fn names(&self) -> (&[u8], &[u8]) {
        self.call().names()
    }

    /// Returns whether the event can be enabled, as all can except some of ftrace's own.
    pub(crate) fn can_be_enabled(&self) -> bool {
        self.call().can_be_enabled()
    }

    /// Returns the instance of the file.
    pub(crate) fn instance(&self) -> Instance<'_> {
        // SAFETY: the object is live; `tr` is set once, when the file is created.
        Instance(unsafe { (*self.as_ptr()).tr }, PhantomData)
    }

    /// Returns whether the event was created at run time: a synthetic event, or a probe, which may itself be on a
    /// synthetic event.
    pub(crate) fn is_dynamic(&self) -> bool {
        self.call().is_dynamic()
    }

    /// Returns whether the event's code is in `module`.
    pub(super) fn is_of_module(&self, module: ModuleId) -> bool {
        core::ptr::eq(self.call().module(), module.0)
    }

    /// Returns whether the event is enabled, and not only soft-enabled for triggers.
    pub(super) fn is_enabled(&self) -> bool {
        // CAST: a flag of the C enumeration.
        const ENABLED: c_ulong = bindings::EVENT_FILE_FL_ENABLED as c_ulong;

        // SAFETY: the object is live; the flags are one word, which is written at once.
        let flags = unsafe { (&raw const (*self.as_ptr()).flags).read_volatile() };
        flags & (ENABLED | SOFT_DISABLED) == ENABLED
    }

    /// Returns whether the event is about to go away with its module.
    pub(crate) fn is_going(&self) -> bool {
        self.call().module_state() == Some(bindings::module_state_MODULE_STATE_GOING)
    }

    /// Looks up a field by name: the event's own, then the generic, then the common ones.
    pub(crate) fn field(&self, name: &CStr, _held: &EventMutexHeld) -> Option<FieldDesc<'_>> {
        let (call, name) = (self.call().0.get(), name.as_char_ptr().cast_mut());
        // SAFETY: the event is live and its fields do not change under `event_mutex`; the name is
        // only compared.
        let field = unsafe { trace_core::trace_find_event_field(call, name) };
        // SAFETY: the field lives as long as the event or the kernel.
        let field = unsafe { field.as_ref() }?;
        Some(FieldDesc {
            // SAFETY: a field has a type, which lives as long as the field.
            type_name: unsafe { c_str(field.type_) }.unwrap_or_default().to_bytes(),
            offset: u32::try_from(field.offset).unwrap_or(u32::MAX),
            size: u32::try_from(field.size).unwrap_or(0),
            signed: field.is_signed() != 0,
            kind: field_kind(field.filter_type),
        })
    }

    /// Iterates over the names of the event's own fields.
    pub(crate) fn own_fields<'a>(
        &'a self,
        _held: &'a EventMutexHeld,
    ) -> impl Iterator<Item = &'a [u8]> {
        // SAFETY: the fields do not change under `event_mutex`.
        let fields = unsafe { self.call().own_fields() };
        // SAFETY: the field is live, and so is its name.
        fields.filter_map(|field| unsafe { c_str(field.name) }.map(CStr::to_bytes))
    }

    /// Iterates over the triggers of the event, of any kind, in order. After removing one, start a new iteration.
    pub(super) fn triggers<'a>(
        &'a self,
        _held: &'a EventMutexHeld,
    ) -> impl Iterator<Item = &'a TriggerNode> {
        let head = self.as_ptr();
        // SAFETY: the file is live, and the list is initialised with it; its entries are of this type, and its writers
        // hold `event_mutex`, so the list does not change meanwhile.
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

/// A field in the list of its event.
#[repr(transparent)]
struct FieldNode(Opaque<bindings::ftrace_event_field>);

/// A trigger of any kind that is not freed.
#[repr(transparent)]
pub(super) struct TriggerNode(Opaque<bindings::event_trigger_data>);

impl TriggerNode {
    /// Borrows the C object.
    ///
    /// # Safety
    ///
    /// `ptr` must point to a node that is complete and not freed for `'a`.
    pub(super) unsafe fn from_raw<'a>(ptr: *mut bindings::event_trigger_data) -> &'a Self {
        // SAFETY: by the contract; `TriggerNode` is a transparent wrapper.
        unsafe { &*ptr.cast::<Self>() }
    }

    /// Returns the C object.
    pub(super) fn as_ptr(&self) -> *mut bindings::event_trigger_data {
        self.0.get()
    }

    /// Returns the bit by which triggers of this kind are distinguished from all others.
    pub(super) fn kind(&self) -> u32 {
        // SAFETY: the node is live; its command was set when it was created, and stays registered as long.
        unsafe { (*(*self.as_ptr()).cmd_ops).trigger_type }
    }

    /// Pauses or continues the trigger. Hits may call this: the core reads the flag, a byte that is written at once,
    /// without a lock.
    pub(super) fn set_paused(&self, paused: bool) {
        // SAFETY: the node is live.
        unsafe { (&raw mut (*self.as_ptr()).paused).write_volatile(paused) };
    }

    /// Returns the name of the trigger's command.
    pub(super) fn name(&self) -> Option<&CStr> {
        // SAFETY: the node is live; its command, which owns the name, stays registered as long.
        unsafe { c_str((*(*self.as_ptr()).cmd_ops).name) }
    }
}

// CAST: flags of the C enumeration, whose values fit the `int` that holds them.
const FLAG_DYNAMIC: i32 = bindings::TRACE_EVENT_FL_DYNAMIC as i32;
const FLAG_IGNORE_ENABLE: i32 = bindings::TRACE_EVENT_FL_IGNORE_ENABLE as i32;

/// Borrows a C string, or returns `None` for null.
///
/// # Safety
///
/// `ptr` must be null, or point to a NUL-terminated string that stays unchanged for `'a`.
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

/// Returns the representation of a field of this class in a record.
fn field_kind(class: c_int) -> FieldKind {
    match u32::try_from(class).unwrap_or(bindings::FILTER_OTHER) {
        bindings::FILTER_STATIC_STRING => FieldKind::StaticString,
        bindings::FILTER_DYN_STRING => FieldKind::DynString,
        bindings::FILTER_RDYN_STRING => FieldKind::RelDynString,
        bindings::FILTER_PTR_STRING => FieldKind::PtrString,
        bindings::FILTER_TRACE_FN => FieldKind::Function,
        bindings::FILTER_COMM => FieldKind::Comm,
        bindings::FILTER_CPU => FieldKind::Cpu,
        bindings::FILTER_STACKTRACE => FieldKind::Stack,
        bindings::FILTER_CPUMASK => FieldKind::Cpumask,
        _ => FieldKind::Other,
    }
}

/// A trace instance: a `trace_array`.
#[derive(Clone, Copy)]
pub(crate) struct Instance<'a>(*mut bindings::trace_array, PhantomData<&'a EventFile>);

impl<'a> Instance<'a> {
    /// Returns the C object.
    pub(super) fn as_ptr(&self) -> *mut bindings::trace_array {
        self.0
    }

    /// Returns the name of the instance; the top one has none.
    pub(crate) fn name(&self) -> Option<&'a CStr> {
        // SAFETY: the instance is live, and has its name as long.
        unsafe { c_str((*self.0).name) }
    }

    /// Returns whether both are the same instance.
    pub(crate) fn is(&self, other: &Self) -> bool {
        core::ptr::eq(self.0, other.0)
    }

    /// Looks up any event of the instance, even one that cannot be enabled.
    pub(crate) fn event(
        &self,
        system: &CStr,
        event: &CStr,
        _held: &EventMutexHeld,
    ) -> Option<&'a EventFile> {
        // SAFETY: the instance is live and `event_mutex` held; the names are only compared.
        let file = unsafe {
            trace_core::__find_event_file(self.0, system.as_char_ptr(), event.as_char_ptr())
        };
        // SAFETY: the file stays on the list of its instance while the mutex is held, which is as long as the file is
        // borrowed from which the instance was taken.
        (!file.is_null()).then(|| unsafe { EventFile::from_raw(file) })
    }

    /// Keeps the instance from being removed until [`Instance::unpin`]; takes `trace_types_lock`.
    pub(crate) fn pin(&self) -> Result {
        // SAFETY: the instance is live as long as one of its files.
        to_result(unsafe { trace_core::tracing_check_open_get_tr(self.0) }).map_err(|_| ENODEV)
    }

    /// Undoes one [`Instance::pin`]; takes `trace_types_lock`.
    pub(crate) fn unpin(&self) {
        // SAFETY: the instance is live, and has a reference that `pin` took.
        unsafe { trace_core::trace_array_put(self.0) };
    }

    /// Returns whether the clock of the instance counts nanoseconds.
    #[inline(always)]
    pub(crate) fn clock_in_ns(&self) -> bool {
        // SAFETY: the instance is live as long as one of its files.
        unsafe { trace_core::trace_clock_in_ns(self.0) }
    }

    /// Sets the clock of the instance, which empties its buffers.
    pub(crate) fn set_clock(&self, name: &CStr) -> Result {
        // SAFETY: the instance is live as long as one of its files; the name is only read.
        to_result(unsafe { trace_core::tracing_set_clock(self.0, name.as_char_ptr()) })
    }

    /// Makes all records be written in place, with their final time stamp, instead of first into the CPU's scratch
    /// buffer, until a call with `false` undoes this one.
    ///
    /// Takes `trace_types_lock`, so paths that free triggers must not call it.
    pub(crate) fn refuse_scratch(&self, is_refused: bool) {
        // SAFETY: the instance is live while a file of it is, and each call with `false` undoes one with `true`.
        unsafe { trace_core::refuse_scratch(self.0, is_refused) };
    }
}

/// A record that is being written, with the other arguments of a trigger function.
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
    /// Returns the bytes of the record.
    #[inline(always)]
    pub(crate) fn data(&self) -> &'a [u8] {
        self.data
    }

    /// Returns the proof that preemption is off.
    #[inline(always)]
    pub(crate) fn preempt_off(&self) -> &PreemptOff<'a> {
        &self.preempt
    }
}

impl<'a> Hit<'a> {
    /// Returns the arguments of a trigger function as a hit; `None` if there is no record.
    ///
    /// # Safety
    ///
    /// The arguments must be the event file for which a trigger function is called, and the arguments of the tracing
    /// core, either both a record and its event or neither; all must stay valid for `'a`.
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
        // SAFETY: `event` was reserved in the buffer of the instance, in the substitute buffer while tracing is off, or
        // is this CPU's scratch record. The former two turn preemption off until the commit, the last one until it is
        // released; triggers run before that.
        let preempt = unsafe { PreemptOff::assume() };
        // SAFETY: `event` is the header of a record that the core has filled.
        let len = unsafe { record_len(event) };
        // SAFETY: the record's data is `len` bytes at `rec`; it belongs to this context until the commit, and the core
        // does not write to it while triggers run.
        let data = unsafe { core::slice::from_raw_parts(rec.cast::<u8>(), len) };
        Some(Self {
            file,
            buffer,
            event,
            record: Record { data, preempt },
        })
    }

    /// Returns the record without the other arguments.
    #[inline(always)]
    pub(crate) fn into_record(self) -> Record<'a> {
        self.record
    }

    /// Returns the bytes of the record.
    #[inline(always)]
    pub(crate) fn data(&self) -> &'a [u8] {
        self.record.data()
    }

    /// Returns whether the clock of the instance counts nanoseconds.
    #[inline(always)]
    pub(crate) fn clock_in_ns(&self) -> bool {
        // SAFETY: the file and its instance are live while one of their events is being written.
        unsafe { trace_core::trace_clock_in_ns((*self.file).tr) }
    }

    /// Returns the time stamp of the record; a record in the scratch buffer gets it at the first call.
    #[inline(always)]
    pub(crate) fn time_stamp(&self) -> u64 {
        // SAFETY: `buffer` and `event` belong to the record that is being written, for `file`.
        unsafe { trace_core::time_stamp(self.file, self.buffer, self.event) }
    }
}

/// Returns the number of bytes of data in a record.
///
/// # Safety
///
/// `event` must be the header of a record that this CPU is writing, with preemption off.
#[inline(always)]
unsafe fn record_len(event: *mut bindings::ring_buffer_event) -> usize {
    // SAFETY: every record has a word after its header: the smallest record in the ring buffer has two words, and in
    // the scratch record this word is the length of the data.
    let first = unsafe { first_word(event) };
    // SAFETY: by the contract.
    if unsafe { trace_core::is_scratch(event) } {
        return first;
    }
    let mut event = event;
    // SAFETY: by the contract, `event` is a readable header.
    let mut type_len = unsafe { (*event).type_len() };
    if type_len >= TYPE_TIME_EXTEND {
        // SAFETY: a time stamp of two words comes first; the record's own header follows.
        event = unsafe { event.cast::<u32>().add(2).cast() };
        // SAFETY: by the contract, this is the header of the record.
        type_len = unsafe { (*event).type_len() };
    }
    if type_len != 0 {
        // CAST: a five-bit number, which counts words.
        return (type_len as usize) << 2;
    }
    // SAFETY: every record has a word after its header. A header without a length has it there, and counts the word.
    unsafe { first_word(event) }.saturating_sub(size_of::<u32>())
}

const TYPE_TIME_EXTEND: u32 = bindings::ring_buffer_type_RINGBUF_TYPE_TIME_EXTEND;

/// Returns the first word after the header of a record.
///
/// # Safety
///
/// `event` must be the header of a record with such a word.
#[inline(always)]
unsafe fn first_word(event: *mut bindings::ring_buffer_event) -> usize {
    // SAFETY: by the contract.
    let word = unsafe { (*event).array.as_ptr().read() };
    // CAST: the length of a record is below the size of a sub-buffer.
    word as usize
}
