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

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was written.
    Written,
    /// Nobody wants it: the event is disabled there, tracing is off, or the task is filtered out.
    Unwanted,
    /// It should have been written, and could not be.
    Lost,
}

/// How far the writing of a record has come.
pub(crate) enum Begun<'r> {
    /// All of it is there, and the readers are to get it.
    Complete(Complete<'r>),
    /// There is nothing more to do.
    Done(Outcome),
}

/// A place for the state of one record, which is filled where it is: to move it takes as long as to write
/// a short record.
pub(crate) struct Room(MaybeUninit<Reserved>);

impl Room {
    /// A place that is free.
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        Self(MaybeUninit::uninit())
    }
}

/// What records have in common that one context writes at one time: its flags, and its task. In the form of
/// their header, `struct trace_entry`.
#[derive(Clone, Copy)]
pub(crate) struct Moment(u64);

impl Moment {
    /// That in which the record of a hit was begun.
    #[inline(always)]
    pub(crate) fn of(hit: &Hit<'_>) -> Self {
        // The core has written a header; there is none that is shorter.
        let header = hit.data().first_chunk();
        Self(header.map_or(0, |bytes| u64::from_le_bytes(*bytes)))
    }

    /// The header of a record of type `kind` that is written now.
    ///
    /// C counterpart: `tracing_gen_ctx_dec()`, `tracing_generic_entry_update()`.
    #[inline(always)]
    fn header(self, kind: c_int, preempt: &PreemptOff<'_>) -> u64 {
        // The core takes off what a tracepoint counts, where one can be preempted.
        let of_tracepoint = u32::from(cfg!(CONFIG_PREEMPTION));
        let depth = preempt.depth().min(0xf).wrapping_sub(of_tracepoint) & 0xf;
        // CAST: types of events have 16 bits in a record.
        let kind = kind as c_ushort;
        // Above the depth is how often migration is off.
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

/// A record that is complete. It has to be committed.
#[must_use]
pub(crate) struct Complete<'r>(&'r mut Reserved);

impl Complete<'_> {
    /// Gives the record to the readers, after the triggers and the filter of the event.
    #[inline(always)]
    pub(crate) fn commit(self) {
        // SAFETY: the borrow of the place ends with `self`, and so nobody commits the record again.
        unsafe { self.0.give() };
    }
}

/// A record that is reserved and not yet with its readers, in the buffer of one instance.
///
/// The C API for writing field by field keeps one between its calls.
///
/// # Invariants
///
/// `buffer.event` is reserved in the buffer that `nest` counts, with `len` bytes at `buffer.entry`.
pub(crate) struct Reserved {
    buffer: bindings::trace_event_buffer,
    nest: *mut bindings::trace_buffer,
    len: usize,
}

impl Reserved {
    /// Reserves a record of `len` bytes, its header written; `None` if there is no room, if tracing
    /// is off, or if the task is filtered out.
    ///
    /// Until the value is dropped or committed preemption is off.
    ///
    /// # Safety
    ///
    /// `file` must be a live event file, and the call be in a place where events may be recorded.
    #[cfg(not(CONFIG_SYNTH_EVENTS))]
    pub(super) unsafe fn new(file: *mut bindings::trace_event_file, len: usize) -> Option<Self> {
        let mut room = Room::new();
        // SAFETY: by the contract.
        unsafe { Self::new_in(&mut room, file, len) }?;
        // SAFETY: reserved above, and the place is not looked at again.
        Some(unsafe { room.0.assume_init() })
    }

    /// As [`Reserved::new`], in a place that is there already.
    ///
    /// # Safety
    ///
    /// As for [`Reserved::new`].
    #[inline(always)]
    unsafe fn new_in(
        room: &mut Room,
        file: *mut bindings::trace_event_file,
        len: usize,
    ) -> Option<&mut Self> {
        let at = room.0.as_mut_ptr();
        // SAFETY: by the contract the file is live, and its instance with it.
        let nest = unsafe { (*(*file).tr).array_buffer.buffer };
        // SAFETY: the buffer of an instance lives as long as that. The event that is being handled
        // is reserved there already, which the buffer takes for recursion unless it is told.
        unsafe { bindings::ring_buffer_nest_start(nest) };
        // CAST: both are as wide as a word.
        let size = len as c_ulong;
        // SAFETY: the place has room for it.
        let buffer = unsafe { &raw mut (*at).buffer };
        // SAFETY: the file is live, and the place for the answer ours.
        let entry = unsafe { bindings::trace_event_buffer_reserve(buffer, file, size) };
        if entry.is_null() {
            // SAFETY: undoes the start above, on the same CPU: preemption was off in between.
            unsafe { bindings::ring_buffer_nest_end(nest) };
            return None;
        }
        // SAFETY: the place has room for both.
        unsafe {
            (&raw mut (*at).nest).write(nest);
            (&raw mut (*at).len).write(len);
        }
        // INVARIANT: reserved above.
        // SAFETY: two of the members are written above, all of the other one by who has reserved.
        Some(unsafe { room.0.assume_init_mut() })
    }

    /// As [`Reserved::new_in`], for a file that wants nothing but a record. The core would ask the CPU once more
    /// for all that is known of the moment.
    ///
    /// C counterpart: `trace_event_buffer_reserve()`.
    ///
    /// # Safety
    ///
    /// As for [`Reserved::new_in`]; `file` must be one of the event of `call`.
    #[inline(always)]
    unsafe fn new_at<'r>(
        room: &'r mut Room,
        (file, call): (
            *mut bindings::trace_event_file,
            *mut bindings::trace_event_call,
        ),
        len: usize,
        moment: Moment,
        preempt: &PreemptOff<'_>,
    ) -> Option<&'r mut Self> {
        // SAFETY: by the contract the file is live, and its instance with it.
        let nest = unsafe { (*(*file).tr).array_buffer.buffer };
        // SAFETY: the buffer of an instance lives as long as that. The event that is being handled is reserved there
        // already, which the buffer takes for recursion unless it is told.
        unsafe { bindings::ring_buffer_nest_start(nest) };
        // SAFETY: by the contract the event is live; its type does not change.
        let kind = unsafe { (*call).event.type_ };
        // As the core does: without the section that the reserved record is in.
        let header = moment.header(kind, preempt);
        // CAST: both are as wide as a word.
        let size = len as c_ulong;
        // SAFETY: the buffer of an instance lives as long as that.
        let event = unsafe { bindings::ring_buffer_lock_reserve(nest, size) };
        if event.is_null() {
            // SAFETY: undoes the start, on the same CPU: preemption was off in between.
            unsafe { bindings::ring_buffer_nest_end(nest) };
            return None;
        }
        // SAFETY: reserved above.
        let entry = unsafe { data_of(event) };
        // SAFETY: a record has room for a header; the ring buffer knows places for words of 4 bytes.
        unsafe { entry.write_unaligned(header) };
        // CAST: the flags, and in the low bits the counts.
        let trace_ctx = (header & 0xff_0000 | header >> 24 & 0xff) as c_uint;
        // INVARIANT: reserved above.
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

    /// All bytes of the record, its header included.
    #[inline(always)]
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: by the type invariant the bytes are there, and until the record is committed
        // nobody else has them.
        unsafe { core::slice::from_raw_parts_mut(self.buffer.entry.cast(), self.len) }
    }

    /// The record for who keeps it elsewhere until [`Reserved::from_raw`]: itself, and the buffer.
    #[cfg(not(CONFIG_SYNTH_EVENTS))]
    pub(super) fn into_raw(self) -> (bindings::trace_event_buffer, *mut bindings::trace_buffer) {
        (self.buffer, self.nest)
    }

    /// The counterpart of [`Reserved::into_raw`].
    ///
    /// # Safety
    ///
    /// The arguments must be what that returned, for a record of `len` bytes, and only one of the values
    /// made of them be committed or discarded, as the last one.
    #[cfg(not(CONFIG_SYNTH_EVENTS))]
    pub(super) unsafe fn from_raw(
        buffer: bindings::trace_event_buffer,
        nest: *mut bindings::trace_buffer,
        len: usize,
    ) -> Self {
        // INVARIANT: by the contract.
        Self { buffer, nest, len }
    }

    /// Has the record filled; `fill` says whether it is complete. If not, it is given back.
    ///
    /// # Safety
    ///
    /// It must be neither committed nor given back.
    #[inline(always)]
    unsafe fn complete<'r>(&'r mut self, fill: impl FnOnce(&mut [u8]) -> bool) -> Begun<'r> {
        if !fill(self.bytes()) {
            // SAFETY: by the contract.
            unsafe { self.give_back() };
            return Begun::Done(Outcome::Lost);
        }
        Begun::Complete(Complete(self))
    }

    /// As [`Complete::commit`].
    #[cfg(not(CONFIG_SYNTH_EVENTS))]
    pub(super) fn commit(mut self) {
        // SAFETY: `self` is gone behind this.
        unsafe { self.give() };
    }

    /// Gives the record to the readers.
    ///
    /// # Safety
    ///
    /// It must be the last that is done with the value.
    #[inline(always)]
    unsafe fn give(&mut self) {
        // SAFETY: by the type invariant, and the contract keeps it from being done twice.
        unsafe { bindings::trace_event_buffer_commit(&raw mut self.buffer) };
        // SAFETY: undoes the start in `new_in`.
        unsafe { bindings::ring_buffer_nest_end(self.nest) };
    }

    /// Gives the record back unwritten.
    #[cfg(not(CONFIG_SYNTH_EVENTS))]
    pub(super) fn discard(mut self) {
        // SAFETY: `self` is gone behind this.
        unsafe { self.give_back() };
    }

    /// Gives the record back unwritten.
    ///
    /// The core has no function for that which a module can call. It gives back a record whose event
    /// is soft-disabled, so for this one moment the record gets an event file that is.
    ///
    /// # Safety
    ///
    /// As for [`Reserved::give`].
    #[cold]
    #[inline(never)]
    unsafe fn give_back(&mut self) {
        let mut file = MaybeUninit::<bindings::trace_event_file>::zeroed();
        let file = file.as_mut_ptr();
        // SAFETY: the file is ours, and all other members of it are 0: no triggers, no filter.
        unsafe { (&raw mut (*file).flags).write(SOFT_DISABLED) };
        self.buffer.trace_file = file;
        // SAFETY: by the contract.
        unsafe { self.give() };
    }
}

// CAST: a flag of the C enumeration.
pub(super) const SOFT_DISABLED: c_ulong = bindings::EVENT_FILE_FL_SOFT_DISABLED as c_ulong;

/// The data of a record that is reserved.
///
/// # Safety
///
/// `event` must be what the ring buffer has reserved.
#[inline(always)]
unsafe fn data_of(event: *mut bindings::ring_buffer_event) -> *mut u64 {
    // SAFETY: by the contract it heads a record.
    let words = unsafe { (*event).type_len() };
    if words <= bindings::ring_buffer_type_RINGBUF_TYPE_DATA_TYPE_LEN_MAX {
        // The data of a short record comes next; that of a longer one, whose type says 0, behind its length.
        let behind = 1 + usize::from(words == 0);
        event.cast::<u32>().wrapping_add(behind).cast()
    } else {
        // SAFETY: by the contract.
        unsafe { bindings::ring_buffer_event_data(event) }.cast()
    }
}

/// Whether `file` wants all records of its event, and nobody wants to see them before.
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

    // SAFETY: by the contract. Others change the word, atomically.
    unsafe { (&raw const (*file).flags).read_volatile() & OTHER == 0 }
}

/// As [`begin`], for a file that [`is_plain`], in a known moment.
///
/// # Safety
///
/// `file` must be a live event file, of the event of `call`.
#[inline(always)]
pub(super) unsafe fn begin_at<'r>(
    room: &'r mut Room,
    (file, call): (
        *mut bindings::trace_event_file,
        *mut bindings::trace_event_call,
    ),
    len: usize,
    fill: impl FnOnce(&mut [u8]) -> bool,
    moment: Moment,
    preempt: &PreemptOff<'_>,
) -> Begun<'r> {
    // SAFETY: by the contract; the caller may record events.
    let Some(record) = (unsafe { Reserved::new_at(room, (file, call), len, moment, preempt) })
    else {
        // SAFETY: the file is live.
        return Begun::Done(unsafe { missing(file, preempt) });
    };
    // SAFETY: nobody has used the record.
    unsafe { record.complete(fill) }
}

/// Reserves a record of `len` bytes in the instance of `file`, and has it filled; `fill` gets all of
/// it, with its header written already, and says whether it is complete. Its state is in `room`.
///
/// # Safety
///
/// `file` must be a live event file.
#[inline(always)]
pub(super) unsafe fn begin<'r>(
    room: &'r mut Room,
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
    // SAFETY: nobody has used the record.
    unsafe { record.complete(fill) }
}

/// Why there is no room for a record in the instance of `file`.
///
/// # Safety
///
/// `file` must be a live event file.
#[cold]
unsafe fn missing(file: *mut bindings::trace_event_file, preempt: &PreemptOff<'_>) -> Outcome {
    // CAST: flags of the C enumeration.
    const PID_FILTER: c_ulong = bindings::EVENT_FILE_FL_PID_FILTER as c_ulong;
    const CONDITION: c_ulong = bindings::EVENT_FILE_FL_TRIGGER_COND_BIT as c_ulong;

    // SAFETY: by the contract. Others change the word, atomically.
    let flags = unsafe { (&raw const (*file).flags).read_volatile() };
    // SAFETY: by the contract.
    if flags & PID_FILTER != 0 && unsafe { bindings::trace_event_ignore_this_pid(file) } {
        return Outcome::Unwanted;
    }
    // A trigger wants the record even where it is not to be kept; the buffer that then stands in
    // has room for two that are nested, whatever this one is told.
    if flags & (1 << CONDITION) != 0 {
        return Outcome::Lost;
    }
    // SAFETY: the instance lives as long as its file.
    if unsafe { is_off((*file).tr, preempt) } {
        return Outcome::Unwanted;
    }
    Outcome::Lost
}

/// Whether nothing is recorded in an instance now, or not on this CPU.
///
/// # Safety
///
/// `instance` must be live.
unsafe fn is_off(instance: *mut bindings::trace_array, preempt: &PreemptOff<'_>) -> bool {
    // SAFETY: by the contract; words that others write whole.
    let (disabled, stopped) = unsafe {
        (
            (&raw const (*instance).buffer_disabled).read_volatile(),
            (&raw const (*instance).stop_count).read_volatile(),
        )
    };
    if disabled != 0 || stopped != 0 {
        return true;
    }
    // SAFETY: by the contract; this takes the address of a member.
    let mask = unsafe { &raw const (*instance).tracing_cpumask };
    #[cfg(CONFIG_CPUMASK_OFFSTACK)]
    // SAFETY: by the contract; the mask is allocated with the instance.
    let mask = unsafe { mask.read() };
    // SAFETY: the mask is that of a live instance, and has a bit for each CPU.
    !unsafe { preempt.is_in(mask.cast()) }
}

/// Whether `file` wants no record although its event is registered. Calls those triggers of the event
/// that need no record.
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

    // SAFETY: by the contract. Others change the word, atomically.
    let flags = unsafe { (&raw const (*file).flags).read_volatile() };
    // SAFETY: by the contract.
    flags & LOOK != 0
        && flags & CONDITION == 0
        && unsafe { bindings::__trace_trigger_soft_disabled(file) }
}

/// Writes a record of at least `len` bytes for all who opened the event by perf on this CPU; `fill`
/// gets all of it, without a header yet, and says whether it is complete.
///
/// # Safety
///
/// `call` must be a live event which perf has opened.
#[inline(never)]
pub(super) unsafe fn write_perf(
    call: *mut bindings::trace_event_call,
    len: usize,
    fill: impl FnOnce(&mut [u8]) -> bool,
    _preempt: &PreemptOff<'_>,
) -> Outcome {
    // SAFETY: preemption is off, and perf has lists for all CPUs before it opens the event, until a
    // grace period after it has closed it.
    let head = unsafe { bindings::hist_helper_perf_head(call) };
    // SAFETY: perf keeps the list of this CPU until a grace period after it has closed the event; preemption is off.
    let empty = unsafe { (&raw const (*head).first).read_volatile() }.is_null();
    // SAFETY: by the contract; a pointer that is written whole.
    let program = unsafe { (&raw const (*call).prog_array).read_volatile() };
    // PARITY: `perf_event_raw_event_synth()` does not run BPF programs on synthetic events.
    if empty && program.is_null() {
        return Outcome::Unwanted;
    }
    // SAFETY: the event is live by the contract, and `head` is the list of this CPU.
    unsafe { write_perf_to(call, head, len, fill) }
}

/// The part of [`write_perf`] for an event that somebody listens to.
///
/// # Safety
///
/// As for [`write_perf`]; `head` is the list of this CPU.
unsafe fn write_perf_to(
    call: *mut bindings::trace_event_call,
    head: *mut bindings::hlist_head,
    len: usize,
    fill: impl FnOnce(&mut [u8]) -> bool,
) -> Outcome {
    // The kernel warns of a larger one.
    const MAX: usize = bindings::PERF_MAX_TRACE_SIZE as usize;

    let Some(len) = len.checked_next_multiple_of(8).filter(|&len| len <= MAX) else {
        return Outcome::Lost;
    };
    let mut regs = core::ptr::null_mut();
    let mut context = 0;
    // CAST: at most `MAX`.
    let size = len as c_int;
    // SAFETY: the size is not above the limit, the answers go to places of ours.
    let data = unsafe { bindings::perf_trace_buf_alloc(size, &raw mut regs, &raw mut context) };
    if data.is_null() {
        return Outcome::Lost;
    }
    // SAFETY: the buffer of this CPU and context, of `MAX` bytes, is ours until it is submitted.
    let record = unsafe { core::slice::from_raw_parts_mut(data.cast::<u8>(), len) };
    if !fill(record) {
        // SAFETY: the buffer was allocated above.
        unsafe { give_back_perf(data, size, regs, context) };
        return Outcome::Lost;
    }
    // SAFETY: the registers came with the buffer.
    unsafe { bindings::hist_helper_caller_regs(regs) };
    // SAFETY: all of these belong to the buffer that was allocated above, or to the live event.
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
    Outcome::Written
}

/// Gives a buffer of perf back: it is submitted to nobody.
///
/// # Safety
///
/// The arguments must be what `perf_trace_buf_alloc()` was given and gave.
#[cold]
unsafe fn give_back_perf(
    data: *mut c_void,
    size: c_int,
    regs: *mut bindings::pt_regs,
    context: c_int,
) {
    let mut nobody = bindings::hlist_head::default();
    // SAFETY: by the contract; the list is empty and lives for the call.
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

/// Empties the buffers of the instances that may have records of a deleted event. Takes
/// `trace_types_lock`.
///
/// The mutex has been held since the event was deleted: no event that came after it has its number yet, and no other
/// deletion has made the core forget which buffers they are.
pub(crate) fn empty_stale_buffers(_held: &EventMutexHeld) {
    // SAFETY: the caller may sleep, and holds no lock that comes after that one.
    unsafe { bindings::tracing_reset_all_online_cpus() };
}
