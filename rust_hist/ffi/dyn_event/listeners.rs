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
    /// Whether there may be one that [`Event::listeners`] finds; no context knows for how long.
    #[inline(always)]
    pub(crate) fn has_listeners(&self) -> bool {
        // SAFETY: the tracepoint lives as long as the event. C writes the word whole.
        let list = unsafe { Atomic::from_ptr(&raw mut (*self.tracepoint.get()).funcs) };
        // ORDERING: a hint; `listeners` looks again.
        !list.load(Relaxed).is_null()
    }

    /// The one who listens to the event now, if it is [`Plain`] and nobody else does.
    #[inline(always)]
    pub(crate) fn only_listener<'a>(&'a self, preempt: &'a PreemptOff<'_>) -> Option<Plain<'a>> {
        let call = self.call.get();
        if !preempt.is_watched() {
            return None;
        }
        // SAFETY: as in `listeners`.
        let list = unsafe { Atomic::from_ptr(&raw mut (*self.tracepoint.get()).funcs) };
        // ORDERING: as in `listeners`.
        let list = list.load(Acquire);
        // SAFETY: as in `listeners`.
        let (function, data) = unsafe { entry(list) }?;
        // SAFETY: set when the event is made, and never changed.
        let is_ours = core::ptr::eq(function, unsafe { (*self.class.get()).probe });
        let is_perf = core::ptr::eq(data, call.cast());
        // SAFETY: as in `listeners`; behind an entry there is another one.
        let has_others = unsafe { entry(list.wrapping_add(1)) }.is_some();
        // SAFETY: what our entries have is an event file if it is not the event; see `Listener::is_off`.
        if !is_ours || is_perf || has_others || !unsafe { record::is_plain(data.cast()) } {
            return None;
        }
        // INVARIANT: looked at above.
        Some(Plain(Listener {
            file: data.cast(),
            call,
            _event: PhantomData,
        }))
    }

    /// The event files of those who listen to the event, and `None` for perf, while nobody may come or go.
    pub(super) fn listening<'a>(
        &'a self,
        _held: &'a EventMutexHeld,
    ) -> impl Iterator<Item = Option<&'a EventFile>> {
        let call = self.call.get();
        // SAFETY: the tracepoint lives as long as the event; its list changes under the mutex only.
        let mut at = unsafe { (*self.tracepoint.get()).funcs };
        // SAFETY: set when the event is made, and never changed.
        let ours = unsafe { (*self.class.get()).probe };
        core::iter::from_fn(move || loop {
            // SAFETY: the list is freed after another one took its place. The last entry is all 0.
            let (function, data) = unsafe { entry(at) }?;
            at = at.wrapping_add(1);
            if core::ptr::eq(function, ours) {
                return Some(match core::ptr::eq(data, call.cast()) {
                    true => None,
                    // SAFETY: what our entries have is an event file if it is not the event, which stays while
                    // the mutex is held.
                    false => Some(unsafe { EventFile::from_raw(data.cast()) }),
                });
            }
        })
    }

    /// Those who listen to the event now. None does once it is deleted.
    #[inline]
    pub(crate) fn listeners<'a>(
        &'a self,
        preempt: &'a PreemptOff<'_>,
    ) -> impl Iterator<Item = Listener<'a>> {
        let call = self.call.get();
        // SAFETY: the tracepoint lives as long as the event. C writes the word whole.
        let list = unsafe { Atomic::from_ptr(&raw mut (*self.tracepoint.get()).funcs) };
        // ORDERING: pairs with `rcu_assign_pointer()` in `tracepoint.c`; the entries are complete.
        let mut at = match preempt.is_watched() {
            true => list.load(Acquire),
            // A probe on the way of a CPU that comes or goes, whom nobody would wait for.
            false => core::ptr::null_mut(),
        };
        // SAFETY: set when the event is made, and never changed.
        let ours = unsafe { (*self.class.get()).probe };
        core::iter::from_fn(move || loop {
            // SAFETY: the list is freed after a grace period of the tracepoints only. Theirs is of the
            // fast kind of SRCU, which takes in a grace period of RCU, and so waits for whoever has
            // preemption off. The last entry is all 0.
            let (function, data) = unsafe { entry(at) }?;
            at = at.wrapping_add(1);
            // In the reference to ourselves stands perf.
            if core::ptr::eq(function, ours) {
                let file = match core::ptr::eq(data, call.cast()) {
                    true => core::ptr::null_mut(),
                    false => data.cast(),
                };
                return Some(Listener {
                    file,
                    call,
                    _event: PhantomData,
                });
            }
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
            // SAFETY: see `is_off`.
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
        // SAFETY: see `Listener::is_off`; by the type invariant there is a file, of the event.
        unsafe { record::begin_at(room, (file, call), len, fill, moment, preempt) }
    }
}
