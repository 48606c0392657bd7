// SPDX-License-Identifier: GPL-2.0

//! An event whose triggers another event's trigger stops and continues.
//!
//! C counterpart: `event_enable_trigger_parse()` in
//! [`kernel/trace/trace_events_trigger.c`](srctree/kernel/trace/trace_events_trigger.c), and
//! `hist_enable_trigger()` in
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).

use super::{
    bindings,
    command::Trigger,
    event::{
        EventFile,
        EventRef,
        TriggerNode, //
    },
    guard::{
        EventMutexHeld,
        PreemptOff, //
    },
};
use crate::sync::{
    Acquire,
    Atomic, //
};
use core::ffi::CStr;
use kernel::prelude::*;

/// An event that stays while the value lives.
///
/// # Invariants
///
/// The event has been looked up in the instance that the user of the value belongs to. `file` is its file there; it
/// lives as long as the instance, and the removal of that takes all triggers off first and waits for their hits.
pub(crate) struct Target {
    file: *mut bindings::trace_event_file,
    event: EventRef,
}

// SAFETY: the reference may be dropped by any task; the file is used under `event_mutex`, and by hits
// through atomic accesses.
unsafe impl Send for Target {}

// SAFETY: the event is only read; the file is used under `event_mutex`, and by hits through atomic accesses.
unsafe impl Sync for Target {}

impl Target {
    /// Takes a reference; `EBUSY` if the event is going away, or its module still coming.
    ///
    /// PARITY: `event_enable_trigger_parse()` takes a module that is coming, whose references do not
    /// keep it when its init fails.
    pub(crate) fn pin(file: &EventFile, _held: &EventMutexHeld) -> Result<Self> {
        // INVARIANT: the event is that of the file.
        Ok(Self {
            event: file.call().try_get().ok_or(EBUSY)?,
            file: file.as_ptr(),
        })
    }

    /// Whether this is the event of `file`.
    pub(crate) fn is(&self, file: &EventFile) -> bool {
        core::ptr::eq(self.file, file.as_ptr())
    }

    /// The event file, while the trigger that has the value is on its event.
    pub(crate) fn file(&self, _held: &EventMutexHeld) -> &EventFile {
        // SAFETY: by the type invariant.
        unsafe { EventFile::from_raw(self.file) }
    }

    /// The system and the name of the event.
    pub(crate) fn names(&self) -> (&CStr, &CStr) {
        let (system, name) = (self.event.system(), self.event.name());
        (system.unwrap_or_default(), name.unwrap_or_default())
    }

    /// Has the event call its triggers though nobody records it; undone by [`Target::soft_disable`],
    /// also where it failed.
    pub(crate) fn soft_enable(file: &EventFile, _held: &EventMutexHeld) -> Result {
        let raw = file.as_ptr();
        // SAFETY: the file is live and the mutex held.
        let ret = unsafe { bindings::trace_event_enable_disable(raw, 1, 1) };
        if ret < 0 {
            return Err(Error::from_errno(ret));
        }
        Ok(())
    }

    /// Undoes one [`Target::soft_enable`].
    pub(crate) fn soft_disable(file: &EventFile, _held: &EventMutexHeld) {
        // SAFETY: the file is live and the mutex held; a count is lowered that `soft_enable` raised.
        unsafe { bindings::trace_event_enable_disable(file.as_ptr(), 0, 1) };
    }

    /// Stops or continues all triggers of the kind `T`. For hits, in any context.
    pub(crate) fn set_paused<T: Trigger>(&self, paused: bool, _preempt: &PreemptOff<'_>) {
        // SAFETY: by the type invariant the file is live; this takes the address of its member.
        let head = unsafe { &raw mut (*self.file).triggers };
        let mut at = head;
        loop {
            // SAFETY: `at` is the head, or a node that was on the list when this hit was under way,
            // and is freed after it only. The links are words that C writes whole.
            let next = unsafe { Atomic::from_ptr(&raw mut (*at).next) };
            // ORDERING: pairs with the release in `list_add_tail_rcu()`; the node is complete.
            at = next.load(Acquire);
            if core::ptr::eq(at, head) {
                break;
            }
            // SAFETY: every node of this list is the `list` member of an `event_trigger_data`.
            let node = unsafe { kernel::container_of!(at, bindings::event_trigger_data, list) };
            // SAFETY: the node was on the list when this hit was under way, so it is freed after it only.
            let node = unsafe { TriggerNode::from_raw(node) };
            if node.kind() == T::TYPE {
                node.set_paused(paused);
            }
        }
    }
}
