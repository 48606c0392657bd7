// SPDX-License-Identifier: GPL-2.0

//! Writing one record of an event into the buffer of an instance, or to perf.
//!
//! C counterpart: `trace_event_raw_event_synth()` and `perf_event_raw_event_synth()` of
//! [`kernel/trace/trace_events_synth.c`](srctree/kernel/trace/trace_events_synth.c).
//! Context: any, NMI included, with preemption off.

use super::{
    bindings,
    event::Hit,
    guard::{
        EventMutexHeld,
        PreemptOff, //
    }, //
};
use core::mem::{
    offset_of,
    MaybeUninit, //
};
use kernel::prelude::*;

/// The outcome of writing a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteResult {
    /// The record was written.
    Written,
    /// The record is not wanted: the event is disabled there, tracing is off, or the task is filtered out.
    Unwanted,
    /// The record should have been written, but could not be.
    Lost,
}

/// The state of a record after its data were written.
pub(crate) enum Begun<'r> {
    /// The record is complete, and must be committed.
    Complete(Complete<'r>),
    /// The record needs no further steps.
    Done(WriteResult),
}

/// Memory for the state of one record, which is filled in place: moving it would take as long as writing a short
/// record.
pub(crate) struct RecordBuf(MaybeUninit<Reserved>);

impl RecordBuf {
    /// Returns memory that is not initialised.
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        Self(MaybeUninit::uninit())
    }
}

/// The part of the header, `struct trace_entry`, that is the same for all records of one context: its flags, and its
/// task.
#[derive(Clone, Copy)]
pub(crate) struct CommonFields(u64);

impl CommonFields {
    /// Returns the context in which the record of a hit was begun.
    #[inline(always)]
    pub(crate) fn of(hit: &Hit<'_>) -> Self {
        // The core has written a header, which has at least 8 bytes.
        let header = hit.data().first_chunk();
        Self(header.map_or(0, |bytes| u64::from_le_bytes(*bytes)))
    }

    /// Returns the header of a record of type `kind` that is written now in this context.
    ///
    /// C counterpart: `tracing_gen_ctx_dec()`, `tracing_generic_entry_update()`.
    #[inline(always)]
    fn header(self, kind: c_int, preempt: &PreemptOff<'_>) -> u64 {
        // Like the core, subtracts the count of the tracepoint itself, if tracepoints can be preempted.
        let of_tracepoint = u32::from(cfg!(CONFIG_PREEMPTION));
        let depth = preempt.depth().min(0xf).wrapping_sub(of_tracepoint) & 0xf;
        // CAST: the type of an event has 16 bits in a record.
        let kind = kind as c_ushort;
        // The bits above the depth, which count sections without migration, are kept.
        self.0 & !0x0f00_ffff | u64::from(kind) | u64::from(depth) << 24
    }
}

const _: () = {
    assert!(cfg!(target_endian = "little"));
    assert!(size_of::<bindings::trace_entry>() == size_of::<u64>());
    assert!(offset_of!(bindings::trace_entry, type_) == 0);
    assert!(offset_of!(bindings::trace_entry, flags) == 2);
    assert!(offset_of!(bindings::trace_entry, preempt_count) == 3);
};

/// A record that is complete, and must be committed.
#[must_use]
pub(crate) struct Complete<'r>(&'r mut Reserved);

impl Complete<'_> {
    /// Makes the record visible to readers, after the triggers and the filter of the event have run.
    #[inline(always)]
    pub(crate) fn commit(self) {
        // SAFETY: the borrow of the memory ends with `self`, so the record is not committed twice.
        unsafe { self.0.give() };
    }
}

/// A record that is reserved in the buffer of one instance, and not yet visible to readers.
///
/// C's API for writing field by field keeps such a record between its calls.
///
/// # Invariants
///
/// `buffer.event` is reserved in the buffer that `nest` refers to, with `len` bytes at `buffer.entry`.
pub(crate) struct Reserved {
    buffer: bindings::trace_event_buffer,
    nest: *mut bindings::trace_buffer,
    len: usize,
}

impl Reserved {
    /// Reserves a record of `len` bytes, and writes its header; `None` if there is no room, if tracing is off, or if
    /// the task is filtered out.
    ///
    /// Preemption is off until this value is dropped or committed.
    ///
    /// # Safety
    ///
    /// `file` must be a live event file, and the caller must be in a context where events may be recorded.
    #[cfg(rust_hist_synth_api)]
    pub(super) unsafe fn new(file: *mut bindings::trace_event_file, len: usize) -> Option<Self> {
        let mut room = RecordBuf::new();
        // SAFETY: by the contract.
        unsafe { Self::new_in(&mut room, file, len) }?;
        // SAFETY: reserved above, and the memory is not used again.
        Some(unsafe { room.0.assume_init() })
    }

    /// Like [`Reserved::new`], in memory that the caller has.
    ///
    /// # Safety
    ///
    /// The requirements of [`Reserved::new`].
    #[inline(always)]
    unsafe fn new_in(
        room: &mut RecordBuf,
        file: *mut bindings::trace_event_file,
        len: usize,
    ) -> Option<&mut Self> {
        let at = room.0.as_mut_ptr();
        // SAFETY: by the contract the file is live, and its instance with it.
        let nest = unsafe { (*(*file).tr).array_buffer.buffer };
        // SAFETY: the buffer of an instance lives as long as the instance. The event that is being handled has a
        // reservation in it already, which the buffer would take for recursion without this call.
        unsafe { bindings::ring_buffer_nest_start(nest) };
        // CAST: both types are as wide as a word.
        let size = len as c_ulong;
        // SAFETY: the memory has room for this member.
        let buffer = unsafe { &raw mut (*at).buffer };
        // SAFETY: the file is live, and this function owns the memory for the result.
        let entry = unsafe { bindings::trace_event_buffer_reserve(buffer, file, size) };
        if entry.is_null() {
            // SAFETY: undoes the start above, on the same CPU, as preemption was off in between.
            unsafe { bindings::ring_buffer_nest_end(nest) };
            return None;
        }
        // SAFETY: the memory has room for both members.
        unsafe {
            (&raw mut (*at).nest).write(nest);
            (&raw mut (*at).len).write(len);
        }
        // INVARIANT: the record was reserved above.
        // SAFETY: two of the members were written above, the other one by the reservation.
        Some(unsafe { room.0.assume_init_mut() })
    }

    /// Like [`Reserved::new_in`], for a file that only wants the record, and for a known context, which the core would
    /// otherwise collect again.
    ///
    /// C counterpart: `trace_event_buffer_reserve()`.
    ///
    /// # Safety
    ///
    /// The requirements of [`Reserved::new_in`]; `file` must be a file of the event of `call`.
    #[inline(always)]
    unsafe fn new_at<'r>(
        room: &'r mut RecordBuf,
        (file, call): (
            *mut bindings::trace_event_file,
            *mut bindings::trace_event_call,
        ),
        len: usize,
        moment: CommonFields,
        preempt: &PreemptOff<'_>,
    ) -> Option<&'r mut Self> {
        // SAFETY: by the contract the file is live, and its instance with it.
        let nest = unsafe { (*(*file).tr).array_buffer.buffer };
        // SAFETY: the buffer of an instance lives as long as the instance. The event that is being handled has a
        // reservation in it already, which the buffer would take for recursion without this call.
        unsafe { bindings::ring_buffer_nest_start(nest) };
        // SAFETY: by the contract the event is live; its type does not change.
        let kind = unsafe { (*call).event.type_ };
        // Like in the core, the count excludes the section of the reserved record itself.
        let header = moment.header(kind, preempt);
        // CAST: both types are as wide as a word.
        let size = len as c_ulong;
        // SAFETY: the buffer of an instance lives as long as the instance.
        let event = unsafe { bindings::ring_buffer_lock_reserve(nest, size) };
        if event.is_null() {
            // SAFETY: undoes the start, on the same CPU, as preemption was off in between.
            unsafe { bindings::ring_buffer_nest_end(nest) };
            return None;
        }
        // SAFETY: the record was reserved above.
        let entry = unsafe { data_of(event) };
        // SAFETY: a record has room for a header; the ring buffer aligns records to 4 bytes only.
        unsafe { entry.write_unaligned(header) };
        // CAST: the flags, with the counts in the low bits.
        let trace_ctx = (header & 0xff_0000 | header >> 24 & 0xff) as c_uint;
        // INVARIANT: the record was reserved above.
        Some(room.0.write(Self {
            buffer: bindings::trace_event_buffer {
                buffer: nest,
                event,
                trace_file: file,
                entry: entry.cast(),
                trace_ctx,
                regs: core::ptr::null_mut(),
            },
            nest,
            len,
        }))
    }

    /// Returns all bytes of the record, its header included.
    #[inline(always)]
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: by the type invariant the bytes exist, and belong to this value until the record is committed.
        unsafe { core::slice::from_raw_parts_mut(self.buffer.entry.cast(), self.len) }
    }

    /// Returns the parts of the record, for a caller that keeps them until [`Reserved::from_raw`].
    #[cfg(rust_hist_synth_api)]
    pub(super) fn into_raw(self) -> (bindings::trace_event_buffer, *mut bindings::trace_buffer) {
        (self.buffer, self.nest)
    }

    /// Restores a record from its parts, of [`Reserved::into_raw`].
    ///
    /// # Safety
    ///
    /// The arguments must be the result of `into_raw` for a record of `len` bytes; only one of the values made from
    /// them may be committed or discarded, and no other may be used after that.
    #[cfg(rust_hist_synth_api)]
    pub(super) unsafe fn from_raw(
        buffer: bindings::trace_event_buffer,
        nest: *mut bindings::trace_buffer,
        len: usize,
    ) -> Self {
        // INVARIANT: by the contract.
        Self { buffer, nest, len }
    }

    /// Fills the record by `fill`, which returns whether it is complete. If not, discards it.
    ///
    /// # Safety
    ///
    /// The record must be neither committed nor discarded.
    #[inline(always)]
    unsafe fn complete<'r>(&'r mut self, fill: impl FnOnce(&mut [u8]) -> bool) -> Begun<'r> {
        if !fill(self.bytes()) {
            // SAFETY: by the contract.
            unsafe { self.give_back() };
            return Begun::Done(WriteResult::Lost);
        }
        Begun::Complete(Complete(self))
    }

    /// Makes the record visible to readers, like [`Complete::commit`].
    #[cfg(rust_hist_synth_api)]
    pub(super) fn commit(mut self) {
        // SAFETY: `self` is not used after this.
        unsafe { self.give() };
    }

    /// Makes the record visible to readers.
    ///
    /// # Safety
    ///
    /// This must be the last use of the value.
    #[inline(always)]
    unsafe fn give(&mut self) {
        // SAFETY: by the type invariant; by the contract this happens only once.
        unsafe { bindings::trace_event_buffer_commit(&raw mut self.buffer) };
        // SAFETY: undoes the start in `new_in`.
        unsafe { bindings::ring_buffer_nest_end(self.nest) };
    }

    /// Discards the record.
    #[cfg(rust_hist_synth_api)]
    pub(super) fn discard(mut self) {
        // SAFETY: `self` is not used after this.
        unsafe { self.give_back() };
    }

    /// Discards the record.
    ///
    /// The core has no function for this that a module can call. But it discards a record whose event is soft-disabled,
    /// so for a moment the record gets an event file with that flag.
    ///
    /// # Safety
    ///
    /// The requirements of [`Reserved::give`].
    #[cold]
    #[inline(never)]
    unsafe fn give_back(&mut self) {
        let mut file = MaybeUninit::<bindings::trace_event_file>::zeroed();
        let file = file.as_mut_ptr();
        // SAFETY: this function owns the file, and all its other members are 0: no triggers, no filter.
        unsafe { (&raw mut (*file).flags).write(SOFT_DISABLED) };
        self.buffer.trace_file = file;
        // SAFETY: by the contract.
        unsafe { self.give() };
    }
}

// CAST: a flag of the C enumeration.
pub(super) const SOFT_DISABLED: c_ulong = bindings::EVENT_FILE_FL_SOFT_DISABLED as c_ulong;

/// Returns the address of a reserved record's data.
///
/// # Safety
///
/// `event` must be a record that the ring buffer has reserved.
#[inline(always)]
unsafe fn data_of(event: *mut bindings::ring_buffer_event) -> *mut u64 {
    // SAFETY: by the contract this is the header of a record.
    let words = unsafe { (*event).type_len() };
    if words <= bindings::ring_buffer_type_RINGBUF_TYPE_DATA_TYPE_LEN_MAX {
        // A short record's data follows the header; a longer one, with type 0, has its length in between.
        let behind = 1 + usize::from(words == 0);
        event.cast::<u32>().wrapping_add(behind).cast()
    } else {
        // SAFETY: by the contract.
        unsafe { bindings::ring_buffer_event_data(event) }.cast()
    }
}

/// Returns whether `file` wants all records of its event, without triggers or other conditions.
///
/// # Safety
///
/// `file` must be a live event file.
#[inline(always)]
pub(super) unsafe fn is_plain(file: *mut bindings::trace_event_file) -> bool {
    // CAST: flags of the C enumeration.
    const OTHER: c_ulong = bindings::EVENT_FILE_FL_TRIGGER_MODE as c_ulong
        | bindings::EVENT_FILE_FL_TRIGGER_COND as c_ulong
        | SOFT_DISABLED
        | bindings::EVENT_FILE_FL_FILTERED as c_ulong
        | bindings::EVENT_FILE_FL_PID_FILTER as c_ulong;

    // SAFETY: by the contract. Other contexts change the word atomically.
    unsafe { (&raw const (*file).flags).read_volatile() & OTHER == 0 }
}

/// Like [`begin`], for a file that [`is_plain`], with a known context (`moment`).
///
/// # Safety
///
/// `file` must be a live event file, of the event of `call`.
#[inline(always)]
pub(super) unsafe fn begin_at<'r>(
    room: &'r mut RecordBuf,
    (file, call): (
        *mut bindings::trace_event_file,
        *mut bindings::trace_event_call,
    ),
    len: usize,
    fill: impl FnOnce(&mut [u8]) -> bool,
    moment: CommonFields,
    preempt: &PreemptOff<'_>,
) -> Begun<'r> {
    // SAFETY: by the contract; the caller may record events.
    let Some(record) = (unsafe { Reserved::new_at(room, (file, call), len, moment, preempt) })
    else {
        // SAFETY: the file is live.
        return Begun::Done(unsafe { missing(file, preempt) });
    };
    // SAFETY: no other context has used the record.
    unsafe { record.complete(fill) }
}

/// Reserves a record of `len` bytes in the instance of `file`, and fills it: `fill` gets all bytes, with the header
/// already written, and returns whether the record is complete. The record's state is in `room`.
///
/// # Safety
///
/// `file` must be a live event file.
#[inline(always)]
pub(super) unsafe fn begin<'r>(
    room: &'r mut RecordBuf,
    file: *mut bindings::trace_event_file,
    len: usize,
    fill: impl FnOnce(&mut [u8]) -> bool,
    preempt: &PreemptOff<'_>,
) -> Begun<'r> {
    // SAFETY: by the contract; the caller may record events.
    let Some(record) = (unsafe { Reserved::new_in(room, file, len) }) else {
        // SAFETY: the file is live.
        return Begun::Done(unsafe { missing(file, preempt) });
    };
    // SAFETY: no other context has used the record.
    unsafe { record.complete(fill) }
}

/// Returns the reason why no record could be reserved in the instance of `file`.
///
/// # Safety
///
/// `file` must be a live event file.
#[cold]
unsafe fn missing(file: *mut bindings::trace_event_file, preempt: &PreemptOff<'_>) -> WriteResult {
    // CAST: flags of the C enumeration.
    const PID_FILTER: c_ulong = bindings::EVENT_FILE_FL_PID_FILTER as c_ulong;
    const CONDITION: c_ulong = bindings::EVENT_FILE_FL_TRIGGER_COND_BIT as c_ulong;

    // SAFETY: by the contract. Other contexts change the word atomically.
    let flags = unsafe { (&raw const (*file).flags).read_volatile() };
    // SAFETY: by the contract.
    if flags & PID_FILTER != 0 && unsafe { bindings::trace_event_ignore_this_pid(file) } {
        return WriteResult::Unwanted;
    }
    // A trigger needs the record even if it is not to be kept; the substitute buffer has room for two nested records,
    // regardless of this one's size.
    if flags & (1 << CONDITION) != 0 {
        return WriteResult::Lost;
    }
    // SAFETY: the instance lives as long as its file.
    if unsafe { is_off((*file).tr, preempt) } {
        return WriteResult::Unwanted;
    }
    WriteResult::Lost
}

/// Returns whether recording is off in an instance, or on this CPU.
///
/// # Safety
///
/// `instance` must be live.
unsafe fn is_off(instance: *mut bindings::trace_array, preempt: &PreemptOff<'_>) -> bool {
    // SAFETY: by the contract; the words are written at once.
    let (disabled, stopped) = unsafe {
        (
            (&raw const (*instance).buffer_disabled).read_volatile(),
            (&raw const (*instance).stop_count).read_volatile(),
        )
    };
    if disabled != 0 || stopped != 0 {
        return true;
    }
    // SAFETY: by the contract; only takes the address of a member.
    let mask = unsafe { &raw const (*instance).tracing_cpumask };
    #[cfg(CONFIG_CPUMASK_OFFSTACK)]
    // SAFETY: by the contract; the mask is allocated together with the instance.
    let mask = unsafe { mask.read() };
    // SAFETY: the mask belongs to a live instance, and has a bit for each CPU.
    !unsafe { preempt.is_in(mask.cast()) }
}

/// Returns whether `file` wants no record although its event is registered. Calls the event's triggers that need no
/// record.
///
/// C counterpart: `trace_trigger_soft_disabled()`.
///
/// # Safety
///
/// `file` must be a live event file.
#[inline(always)]
pub(super) unsafe fn is_soft_disabled(file: *mut bindings::trace_event_file) -> bool {
    // CAST: flags of the C enumeration.
    const LOOK: c_ulong = bindings::EVENT_FILE_FL_TRIGGER_MODE as c_ulong
        | SOFT_DISABLED
        | bindings::EVENT_FILE_FL_PID_FILTER as c_ulong;
    const CONDITION: c_ulong = bindings::EVENT_FILE_FL_TRIGGER_COND as c_ulong;

    // SAFETY: by the contract. Other contexts change the word atomically.
    let flags = unsafe { (&raw const (*file).flags).read_volatile() };
    // SAFETY: by the contract.
    flags & LOOK != 0
        && flags & CONDITION == 0
        && unsafe { bindings::__trace_trigger_soft_disabled(file) }
}

/// Writes a record of at least `len` bytes for all that have opened the event by perf on this CPU; `fill` gets all
/// bytes, without a header, and returns whether the record is complete.
///
/// # Safety
///
/// `call` must be a live event that perf has opened.
#[inline(never)]
pub(super) unsafe fn write_perf(
    call: *mut bindings::trace_event_call,
    len: usize,
    fill: impl FnOnce(&mut [u8]) -> bool,
    _preempt: &PreemptOff<'_>,
) -> WriteResult {
    // SAFETY: preemption is off, and perf has lists for all CPUs from before it opens the event until a grace period
    // after it has closed it.
    let head = unsafe { bindings::hist_helper_perf_head(call) };
    // SAFETY: perf keeps the list of this CPU until a grace period after it has closed the event; preemption is off.
    let empty = unsafe { (&raw const (*head).first).read_volatile() }.is_null();
    // SAFETY: by the contract; the pointer is written at once.
    let program = unsafe { (&raw const (*call).prog_array).read_volatile() };
    // PARITY: `perf_event_raw_event_synth()` does not run BPF programs on synthetic events.
    if empty && program.is_null() {
        return WriteResult::Unwanted;
    }
    // SAFETY: the event is live by the contract, and `head` is the list of this CPU.
    unsafe { write_perf_to(call, head, len, fill) }
}

/// The part of [`write_perf`] for an event with listeners.
///
/// # Safety
///
/// The requirements of [`write_perf`]; `head` must be the list of this CPU.
#[inline(always)]
unsafe fn write_perf_to(
    call: *mut bindings::trace_event_call,
    head: *mut bindings::hlist_head,
    len: usize,
    fill: impl FnOnce(&mut [u8]) -> bool,
) -> WriteResult {
    // The kernel warns of a larger record.
    const MAX: usize = bindings::PERF_MAX_TRACE_SIZE as usize;

    let Some(len) = len.checked_next_multiple_of(8).filter(|&len| len <= MAX) else {
        return WriteResult::Lost;
    };
    let mut regs = core::ptr::null_mut();
    let mut context = 0;
    // CAST: at most `MAX`.
    let size = len as c_int;
    // SAFETY: the size is not above the limit, and the results are stored in local variables.
    let data = unsafe { bindings::perf_trace_buf_alloc(size, &raw mut regs, &raw mut context) };
    if data.is_null() {
        return WriteResult::Lost;
    }
    // SAFETY: the buffer of this CPU and context, of `MAX` bytes, belongs to this function until it is submitted.
    let record = unsafe { core::slice::from_raw_parts_mut(data.cast::<u8>(), len) };
    if !fill(record) {
        // SAFETY: the buffer was allocated above.
        unsafe { give_back_perf(data, size, regs, context) };
        return WriteResult::Lost;
    }
    // SAFETY: the registers belong to the buffer.
    unsafe { bindings::hist_helper_caller_regs(regs) };
    // SAFETY: all arguments belong to the buffer that was allocated above, or to the live event.
    unsafe {
        bindings::perf_trace_run_bpf_submit(
            data,
            size,
            context,
            call,
            1,
            regs,
            head,
            core::ptr::null_mut(),
        )
    };
    WriteResult::Written
}

/// Releases a buffer of perf, by submitting it to an empty list.
///
/// # Safety
///
/// The arguments must be those, and the results, of `perf_trace_buf_alloc()`.
#[cold]
unsafe fn give_back_perf(
    data: *mut c_void,
    size: c_int,
    regs: *mut bindings::pt_regs,
    context: c_int,
) {
    let mut nobody = bindings::hlist_head::default();
    // SAFETY: by the contract; the list is empty and lives during the call.
    unsafe {
        bindings::perf_tp_event(
            0,
            1,
            data,
            size,
            regs,
            &raw mut nobody,
            context,
            core::ptr::null_mut(),
        )
    };
}

/// Empties the buffers of the instances that may have records of a deleted event. Takes `trace_types_lock`.
///
/// The mutex has been held since the event was deleted: so no new event has its number yet, and no other deletion has
/// reset the core's marks of these buffers.
pub(crate) fn empty_stale_buffers(_held: &EventMutexHeld) {
    // SAFETY: the caller may sleep, and holds no lock that comes after `trace_types_lock`.
    unsafe { bindings::tracing_reset_all_online_cpus() };
}
