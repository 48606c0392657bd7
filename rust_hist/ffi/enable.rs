// SPDX-License-Identifier: GPL-2.0

//! An event whose triggers are paused and continued by a trigger of another event.
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
    trace_core, //
};
use crate::sync::{
    Acquire,
    Atomic, //
};
use core::marker::PhantomData;
use kernel::{
    error::to_result,
    prelude::*, //
};

/// A reference to an event, which stays while this value lives.
///
/// # Invariants
///
/// The event was looked up in the instance of this value's user. `file` is its file there, which lives as long as the
/// instance; the removal of an instance first removes all triggers and waits for their hits.
pub(crate) struct Target {
    file: *mut bindings::trace_event_file,
    event: EventRef,
}

// SAFETY: the reference may be dropped by any task; the file is used under `event_mutex`, and by hits through atomic
// accesses.
unsafe impl Send for Target {}

// SAFETY: the event is only read; the file is used under `event_mutex`, and by hits through atomic accesses.
unsafe impl Sync for Target {}

impl Target {
    /// Takes a reference; `EBUSY` if the event is going away, or its module is still loading.
    ///
    /// PARITY: `event_enable_trigger_parse()` accepts a module that is still loading, which a reference does not keep
    /// if its init fails.
    pub(crate) fn pin(file: &EventFile, _held: &EventMutexHeld) -> Result<Self> {
        // INVARIANT: the reference is to the event of the file.
        Ok(Self {
            event: file.call().try_get().ok_or(EBUSY)?,
            file: file.as_ptr(),
        })
    }

    /// Returns whether this is the event of `file`.
    pub(crate) fn is(&self, file: &EventFile) -> bool {
        core::ptr::eq(self.file, file.as_ptr())
    }

    /// Returns the event file. The trigger that owns this value must be attached.
    pub(crate) fn file(&self, _held: &EventMutexHeld) -> &EventFile {
        // SAFETY: by the type invariant.
        unsafe { EventFile::from_raw(self.file) }
    }

    /// Returns the system and the name of the event.
    pub(crate) fn names(&self) -> (&[u8], &[u8]) {
        self.event.names()
    }

    /// Pauses or continues all triggers of the kind `T`. For hits, in any context.
    pub(crate) fn set_paused<T: Trigger>(&self, paused: bool, _preempt: &PreemptOff<'_>) {
        // SAFETY: by the type invariant the file is live; only takes the address of its member.
        let head = unsafe { &raw mut (*self.file).triggers };
        let mut at = head;
        loop {
            // SAFETY: `at` is the head, or a node that was on the list during this hit, and is freed only after it. C
            // writes the links at once.
            let next = unsafe { Atomic::from_ptr(&raw mut (*at).next) };
            // ORDERING: pairs with the release in `list_add_tail_rcu()`; the node is complete.
            at = next.load(Acquire);
            if core::ptr::eq(at, head) {
                break;
            }
            // SAFETY: every node of this list is the `list` member of an `event_trigger_data`.
            let node = unsafe { kernel::container_of!(at, bindings::event_trigger_data, list) };
            // SAFETY: the node was on the list during this hit, so it is freed only after it.
            let node = unsafe { TriggerNode::from_raw(node) };
            if node.kind() == T::TYPE {
                node.set_paused(paused);
            }
        }
    }
}

/// Makes an event call its triggers even if it is not enabled, until this is dropped.
///
/// # Invariants
///
/// The event was soft-enabled for this value.
pub(crate) struct SoftEnabled<'a>(&'a EventFile, PhantomData<&'a EventMutexHeld>);

impl<'a> SoftEnabled<'a> {
    /// Enables the event.
    pub(crate) fn new(file: &'a EventFile, held: &'a EventMutexHeld) -> Result<Self> {
        // SAFETY: the file is live and the mutex held.
        let ret = unsafe { trace_core::trace_event_enable_disable(file.as_ptr(), 1, 1) };
        // INVARIANT: the count is raised even if the call fails.
        let enabled = Self::kept(file, held);
        to_result(ret).map(|()| enabled)
    }

    /// Returns a value again that was created for this event, and forgotten.
    pub(crate) fn kept(file: &'a EventFile, _held: &'a EventMutexHeld) -> Self {
        Self(file, PhantomData)
    }
}

impl Drop for SoftEnabled<'_> {
    fn drop(&mut self) {
        // SAFETY: the file is live and the mutex held; by the type invariant the count was raised.
        unsafe { trace_core::trace_event_enable_disable(self.0.as_ptr(), 0, 1) };
    }
}
