// SPDX-License-Identifier: GPL-2.0

//! Who gets the records of an event.
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
            Moment,
            Room, //
        }, //
    },
    Event,
    Kind, //
};
use crate::sync::{
    Acquire,
    Atomic,
    Relaxed, //
};
use core::marker::PhantomData;
use kernel::prelude::*;

/// What stands for a listener of ours in the list of a tracepoint.
///
/// The core may put a stub of its own in place of a listener that goes, where it has no memory for a
/// shorter list.
pub(super) const PROBE: *const c_void = (probe as extern "C" fn()) as *const c_void;

/// Nobody calls it: who finds it in a list writes the record.
extern "C" fn probe() {}

/// One who gets the records of an event: an instance, or perf.
pub(crate) struct Listener<'a> {
    /// The event file of the instance, or null.
    file: *mut bindings::trace_event_file,
    /// The event.
    call: *mut bindings::trace_event_call,
    _event: PhantomData<&'a ()>,
}

impl<K: Kind> Event<K> {
    /// Where the list of those who listen is.
    #[inline(always)]
    fn list(&self) -> &Atomic<*mut bindings::tracepoint_func> {
        // SAFETY: the tracepoint lives as long as the event. C writes the word whole.
        unsafe { Atomic::from_ptr(&raw mut (*self.tracepoint.get()).funcs) }
    }

    /// The function of our entries.
    #[inline(always)]
    fn probe(&self) -> *mut c_void {
        // SAFETY: set when the event is made, and never changed.
        unsafe { (*self.class.get()).probe }
    }

    /// Whether there may be one that [`Event::listeners`] finds; no context knows for how long.
    #[inline(always)]
    pub(crate) fn has_listeners(&self) -> bool {
        // ORDERING: a hint; `listeners` looks again.
        !self.list().load(Relaxed).is_null()
    }

    /// The one who listens to the event now, if it is [`Plain`] and nobody else does.
    #[inline(always)]
    pub(crate) fn only_listener<'a>(&'a self, preempt: &'a PreemptOff<'_>) -> Option<Plain<'a>> {
        let call = self.call.get();
        if !preempt.is_watched() {
            return None;
        }
        // ORDERING: pairs with `rcu_assign_pointer()` in `tracepoint.c`; the entries are complete.
        let list = self.list().load(Acquire);
        // SAFETY: the list is freed after a grace period that waits for this CPU, since it is watched.
        let (function, data) = unsafe { entry(list) }?;
        let is_ours = core::ptr::eq(function, self.probe());
        let is_perf = core::ptr::eq(data, call.cast());
        // SAFETY: the list is not freed meanwhile; behind an entry there is another one.
        let has_others = unsafe { entry(list.wrapping_add(1)) }.is_some();
        // SAFETY: what our entries have is an event file if it is not the event. One that was on the list when this began
        // lives until those who may have seen it there have been waited for.
        if !is_ours || is_perf || has_others || !unsafe { record::is_plain(data.cast()) } {
            return None;
        }
        // INVARIANT: looked at before.
        Some(Plain(Listener {
            file: data.cast(),
            call,
            _event: PhantomData,
        }))
    }

    /// What our entries of a list have as their data: an event file each, or the call for perf.
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

    /// The event files of those who listen to the event, and `None` for perf, while nobody may come or go.
    pub(super) fn listening<'a>(
        &'a self,
        _held: &'a EventMutexHeld,
    ) -> impl Iterator<Item = Option<&'a EventFile>> {
        let call = self.call.get();
        // ORDERING: the list changes under the mutex only.
        let list = self.list().load(Relaxed);
        // SAFETY: the list is freed after another one took its place, which nobody does under the mutex.
        unsafe { self.entries(list) }.map(move |data| {
            // SAFETY: what our entries have is an event file if it is not the event, which stays while the mutex is held.
            (!core::ptr::eq(data, call.cast())).then(|| unsafe { EventFile::from_raw(data.cast()) })
        })
    }

    /// Those who listen to the event now. None does once it is deleted.
    #[inline]
    pub(crate) fn listeners<'a>(
        &'a self,
        preempt: &'a PreemptOff<'_>,
    ) -> impl Iterator<Item = Listener<'a>> {
        let call = self.call.get();
        let list = match preempt.is_watched() {
            // ORDERING: pairs with `rcu_assign_pointer()` in `tracepoint.c`; the entries are complete.
            true => self.list().load(Acquire),
            // A probe on the way of a CPU that comes or goes, whom nobody would wait for.
            false => core::ptr::null_mut(),
        };
        // SAFETY: the list is freed after a grace period of the tracepoints only. Theirs is of the
        // fast kind of SRCU, which takes in a grace period of RCU, and so waits for whoever has
        // preemption off.
        unsafe { self.entries(list) }.map(move |data| Listener {
            // In the reference to ourselves stands perf.
            file: match core::ptr::eq(data, call.cast()) {
                true => core::ptr::null_mut(),
                false => data.cast(),
            },
            call,
            _event: PhantomData,
        })
    }
}

/// The function and the data of a list entry; `None` at the end and if there is no list.
///
/// # Safety
///
/// `entry` must be null, or point at an entry of a list that lives.
#[inline]
unsafe fn entry(entry: *mut bindings::tracepoint_func) -> Option<(*mut c_void, *mut c_void)> {
    if entry.is_null() {
        return None;
    }
    // SAFETY: by the contract. C changes the word, whole, when it puts its stub there.
    let function = unsafe { Atomic::from_ptr(&raw mut (*entry).func) };
    // ORDERING: an entry is as it was when the list was published, or a stub.
    let function = function.load(Relaxed);
    // SAFETY: by the contract; it does not change.
    (!function.is_null()).then(|| (function, unsafe { (*entry).data }))
}

impl Listener<'_> {
    /// Whether no record is wanted now.
    #[inline(always)]
    pub(crate) fn is_off(&self) -> bool {
        // SAFETY: an event file that was on the list when this began lives until those who may have
        // seen it there have been waited for.
        !self.file.is_null() && unsafe { record::is_soft_disabled(self.file) }
    }

    /// Writes a record of `len` bytes; `fill` gets all of it and says whether it is complete. Its state
    /// is in `room`.
    #[inline(always)]
    pub(crate) fn begin<'r>(
        &self,
        room: &'r mut Room,
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> bool,
        preempt: &PreemptOff<'_>,
    ) -> Begun<'r> {
        if self.file.is_null() {
            // SAFETY: the event is live, and perf was on the list, who waits for writers before what
            // is its own goes.
            Begun::Done(unsafe { record::write_perf(self.call, len, fill, preempt) })
        } else {
            // SAFETY: an event file that was on the list when this began lives until those who may have seen it there have
            // been waited for.
            unsafe { record::begin(room, self.file, len, fill, preempt) }
        }
    }
}

/// An instance that wants all records of an event as soon as they are there, and nothing else.
///
/// # Invariants
///
/// As those of a [`Listener`], which has an event file.
pub(crate) struct Plain<'a>(Listener<'a>);

impl Plain<'_> {
    /// As [`Listener::begin`], in a known moment.
    #[inline(always)]
    pub(crate) fn begin<'r>(
        &self,
        room: &'r mut Room,
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> bool,
        moment: Moment,
        preempt: &PreemptOff<'_>,
    ) -> Begun<'r> {
        let Listener { file, call, .. } = self.0;
        // SAFETY: by the type invariant there is a file, of the event. As it was on the list when this began, it lives
        // until those who may have seen it there have been waited for.
        unsafe { record::begin_at(room, (file, call), len, fill, moment, preempt) }
    }
}
