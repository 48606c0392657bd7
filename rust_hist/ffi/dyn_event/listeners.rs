// SPDX-License-Identifier: GPL-2.0

//! The listeners of an event, which get its records.
//!
//! C counterparts: `trace_synth()` in
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c), and
//! [`kernel/tracepoint.c`](srctree/kernel/tracepoint.c), which keeps the list.

use super::{
    super::{
        bindings,
        event::EventFile,
        guard::{
            EventMutexHeld,
            PreemptOff, //
        },
        record::{
            self,
            Begun,
            CommonFields,
            RecordBuf, //
        }, //
    },
    DynEventType, //
    Event,
};
use crate::sync::{
    Acquire,
    Atomic,
    Relaxed, //
};
use core::marker::PhantomData;
use kernel::prelude::*;

/// The function that stands for a listener of this module in the list of a tracepoint.
///
/// If there is no memory for a shorter list, the core replaces a listener that goes by a stub.
pub(super) const PROBE: *const c_void = (probe as extern "C" fn()) as *const c_void;

/// Never called: a writer that finds it in the list writes the record instead.
extern "C" fn probe() {}

/// A listener, which gets the records of an event: an instance, or perf.
pub(crate) struct Listener<'a> {
    /// The event file of the instance; null for perf.
    file: *mut bindings::trace_event_file,
    /// The event.
    call: *mut bindings::trace_event_call,
    _event: PhantomData<&'a ()>,
}

impl<K: DynEventType> Event<K> {
    /// Returns the pointer to the list of listeners.
    #[inline(always)]
    fn list(&self) -> &Atomic<*mut bindings::tracepoint_func> {
        // SAFETY: the tracepoint lives as long as the event. C writes the word at once.
        unsafe { Atomic::from_ptr(&raw mut (*self.tracepoint.get()).funcs) }
    }

    /// Returns the function in the entries of this type of events.
    #[inline(always)]
    fn probe(&self) -> *mut c_void {
        // SAFETY: set when the event is created, and never changed.
        unsafe { (*self.class.get()).probe }
    }

    /// Returns whether [`Event::listeners`] may find any; the result may be outdated at once.
    #[inline(always)]
    pub(crate) fn has_listeners(&self) -> bool {
        // ORDERING: only a hint; `listeners` loads the list again.
        !self.list().load(Relaxed).is_null()
    }

    /// Returns the listener of the event, if there is only one and it is [`Plain`].
    #[inline(always)]
    pub(crate) fn only_listener<'a>(&'a self, preempt: &'a PreemptOff<'_>) -> Option<Plain<'a>> {
        let call = self.call.get();
        if !preempt.is_watched() {
            return None;
        }
        // ORDERING: pairs with `rcu_assign_pointer()` in `tracepoint.c`; the entries are complete.
        let list = self.list().load(Acquire);
        // SAFETY: the list is freed after a grace period that waits for this CPU, since RCU watches it.
        let (function, data) = unsafe { entry(list) }?;
        let is_ours = core::ptr::eq(function, self.probe());
        let is_perf = core::ptr::eq(data, call.cast());
        // SAFETY: the list is not freed meanwhile; each entry is followed by another one.
        let has_others = unsafe { entry(list.wrapping_add(1)) }.is_some();
        // SAFETY: the data of entries with this probe is an event file unless it is the event. A file that was on the
        // list at the beginning of this function lives until all contexts that may have seen it there have been waited
        // for.
        if !is_ours || is_perf || has_others || !unsafe { record::is_plain(data.cast()) } {
            return None;
        }
        // INVARIANT: checked just before.
        Some(Plain(Listener {
            file: data.cast(),
            call,
            _event: PhantomData,
        }))
    }

    /// Iterates over the data of this type's entries in a list: an event file each, or the call for perf.
    ///
    /// # Safety
    ///
    /// `at` must be null or the beginning of a list that is not freed while the iterator is used.
    #[inline(always)]
    unsafe fn entries(
        &self,
        mut at: *mut bindings::tracepoint_func,
    ) -> impl Iterator<Item = *mut c_void> {
        let ours = self.probe();
        core::iter::from_fn(move || loop {
            // SAFETY: by the contract. The last entry is all 0.
            let (function, data) = unsafe { entry(at) }?;
            at = at.wrapping_add(1);
            if core::ptr::eq(function, ours) {
                return Some(data);
            }
        })
    }

    /// Iterates over the event files that listen to the event, with `None` for perf; the mutex keeps listeners from
    /// changing.
    pub(super) fn listening<'a>(
        &'a self,
        _held: &'a EventMutexHeld,
    ) -> impl Iterator<Item = Option<&'a EventFile>> {
        let call = self.call.get();
        // ORDERING: the list changes only under the mutex.
        let list = self.list().load(Relaxed);
        // SAFETY: the list is freed after another one has replaced it, which happens only under the mutex.
        unsafe { self.entries(list) }.map(move |data| {
            // SAFETY: the data of these entries is an event file unless it is the event; it stays while the mutex is
            // held.
            (!core::ptr::eq(data, call.cast())).then(|| unsafe { EventFile::from_raw(data.cast()) })
        })
    }

    /// Iterates over the listeners of the event at this moment. A deleted event has none.
    #[inline]
    pub(crate) fn listeners<'a>(
        &'a self,
        preempt: &'a PreemptOff<'_>,
    ) -> impl Iterator<Item = Listener<'a>> {
        let call = self.call.get();
        let list = match preempt.is_watched() {
            // ORDERING: pairs with `rcu_assign_pointer()` in `tracepoint.c`; the entries are complete.
            true => self.list().load(Acquire),
            // A hit on a CPU that is coming or going: RCU would not wait for it.
            false => core::ptr::null_mut(),
        };
        // SAFETY: the list is freed after a grace period of tracepoints. That is one of fast SRCU, which includes a
        // grace period of RCU, and so waits for contexts with preemption off.
        unsafe { self.entries(list) }.map(move |data| Listener {
            // An entry whose data is the event itself stands for perf.
            file: match core::ptr::eq(data, call.cast()) {
                true => core::ptr::null_mut(),
                false => data.cast(),
            },
            call,
            _event: PhantomData,
        })
    }
}

/// Returns the function and the data of a list entry; `None` at the end, or if there is no list.
///
/// # Safety
///
/// `entry` must be null, or point to an entry of a live list.
#[inline]
unsafe fn entry(entry: *mut bindings::tracepoint_func) -> Option<(*mut c_void, *mut c_void)> {
    if entry.is_null() {
        return None;
    }
    // SAFETY: by the contract. C writes the word at once when it puts its stub there.
    let function = unsafe { Atomic::from_ptr(&raw mut (*entry).func) };
    // ORDERING: the entry is unchanged since the list was published, or has become a stub.
    let function = function.load(Relaxed);
    // SAFETY: by the contract; the word does not change.
    (!function.is_null()).then(|| (function, unsafe { (*entry).data }))
}

impl Listener<'_> {
    /// Returns whether the listener wants no record now.
    #[inline(always)]
    pub(crate) fn is_off(&self) -> bool {
        // SAFETY: an event file that was on the list at the beginning lives until all contexts that may have seen it
        // there have been waited for.
        !self.file.is_null() && unsafe { record::is_soft_disabled(self.file) }
    }

    /// Writes a record of `len` bytes; `fill` writes all of them and returns whether the record is complete. The
    /// record's state is in `room`.
    #[inline(always)]
    pub(crate) fn begin<'r>(
        &self,
        room: &'r mut RecordBuf,
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> bool,
        preempt: &PreemptOff<'_>,
    ) -> Begun<'r> {
        if self.file.is_null() {
            // SAFETY: the event is live, and perf was on the list; perf waits for writers before it frees its data.
            Begun::Done(unsafe { record::write_perf(self.call, len, fill, preempt) })
        } else {
            // SAFETY: an event file that was on the list at the beginning lives until all contexts that may have seen
            // it there have been waited for.
            unsafe { record::begin(room, self.file, len, fill, preempt) }
        }
    }
}

/// An instance that wants all records of an event at once, without triggers or other conditions.
///
/// # Invariants
///
/// The invariants of [`Listener`]; the listener has an event file.
pub(crate) struct Plain<'a>(Listener<'a>);

impl Plain<'_> {
    /// Like [`Listener::begin`], with a known context (`moment`).
    #[inline(always)]
    pub(crate) fn begin<'r>(
        &self,
        room: &'r mut RecordBuf,
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> bool,
        moment: CommonFields,
        preempt: &PreemptOff<'_>,
    ) -> Begun<'r> {
        let Listener { file, call, .. } = self.0;
        // SAFETY: by the type invariant there is a file of this event. It was on the list at the beginning, so it lives
        // until all contexts that may have seen it there have been waited for.
        unsafe { record::begin_at(room, (file, call), len, fill, moment, preempt) }
    }
}
