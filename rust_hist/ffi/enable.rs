// SPDX-License-Identifier: GPL-2.0

//! An event whose triggers another event's trigger stops and continues.
//!
//! C counterpart: `event_enable_trigger_parse()` in
//! [`kernel/trace/trace_events_trigger.c`](srctree/kernel/trace/trace_events_trigger.c), and
//! `hist_enable_trigger()` in
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).

use super::{
    bindings,
    command::{
        Command,
        Trigger, //
    },
    event::EventFile,
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
/// A reference is held on the event `call`, which has been looked up in the instance that the user of
/// the value belongs to. `file` is its file there; it lives as long as the instance, and the removal of
/// that takes all triggers off first and waits for their hits.
pub(crate) struct Target {
    file: *mut bindings::trace_event_file,
    call: *mut bindings::trace_event_call,
}

// SAFETY: the reference may be dropped by any task; the file is used under `event_mutex`, and by hits
// through atomic accesses.
unsafe impl Send for Target {}

// SAFETY: as above.
unsafe impl Sync for Target {}

impl Target {
    /// Takes a reference; `EBUSY` if the event is going away, or its module still coming.
    ///
    /// PARITY: `event_enable_trigger_parse()` takes a module that is coming, whose references do not
    /// keep it when its init fails.
    pub(crate) fn pin(file: &EventFile, _held: &EventMutexHeld) -> Result<Self> {
        let raw = file.as_ptr();
        // SAFETY: the file is live.
        let call = unsafe { (*raw).event_call };
        // SAFETY: the event is live while its file is.
        if !unsafe { try_get(call) } {
            return Err(EBUSY);
        }
        // INVARIANT: the reference has been taken.
        let target = Self { file: raw, call };
        // SAFETY: the event is live.
        if unsafe { is_coming(call) } {
            return Err(EBUSY);
        }
        Ok(target)
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
        // SAFETY: by the type invariant the event is live; the helper only reads it.
        let event = unsafe { bindings::hist_helper_trace_event_name(self.call) };
        // SAFETY: as above, and so is its class.
        let system = unsafe { (*(*self.call).class).system };
        // SAFETY: an event that was looked up has both, strings that live as long as it does.
        unsafe { (CStr::from_char_ptr(system), CStr::from_char_ptr(event)) }
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
            // SAFETY: as said, the node is live.
            unsafe { Command::<T>::set_node_paused(node, paused) };
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // SAFETY: by the type invariant.
        unsafe { put(self.call) };
    }
}

/// Whether the event is one that user space made; such an event counts its references itself.
///
/// # Safety
///
/// `call` must be live.
unsafe fn is_dynamic(call: *mut bindings::trace_event_call) -> bool {
    // CAST: a flag of the C enumeration, whose value fits the `int` that holds it.
    const DYNAMIC: i32 = bindings::TRACE_EVENT_FL_DYNAMIC as i32;
    // SAFETY: by the contract.
    unsafe { (*call).flags & DYNAMIC != 0 }
}

/// Whether the event is one of a module whose init has not ended.
///
/// # Safety
///
/// `call` must be live.
unsafe fn is_coming(call: *mut bindings::trace_event_call) -> bool {
    // SAFETY: by the contract.
    if unsafe { is_dynamic(call) } {
        return false;
    }
    // SAFETY: as above; it is an event of a module, or of the kernel image, which has none.
    let module: *const bindings::module =
        unsafe { (*call).__bindgen_anon_2.module.as_ref().cast() };
    // SAFETY: the module of a live event is live.
    !module.is_null()
        && unsafe { (&raw const (*module).state).read_volatile() }
            != bindings::module_state_MODULE_STATE_LIVE
}

/// The inline function `trace_event_try_get_ref()`.
///
/// # Safety
///
/// `call` must be live.
unsafe fn try_get(call: *mut bindings::trace_event_call) -> bool {
    // SAFETY: by the contract.
    if unsafe { is_dynamic(call) } {
        // SAFETY: as above.
        return unsafe { dynamic::try_get(call) };
    }
    // SAFETY: as above; it is an event of a module, or of the kernel image, which has none.
    unsafe { bindings::try_module_get((*call).__bindgen_anon_2.module.as_ref().cast()) }
}

/// The inline function `trace_event_put_ref()`.
///
/// # Safety
///
/// `call` must be live, with a reference that the caller gives up.
unsafe fn put(call: *mut bindings::trace_event_call) {
    // SAFETY: by the contract.
    if unsafe { is_dynamic(call) } {
        // SAFETY: as above.
        return unsafe { dynamic::put(call) };
    }
    // SAFETY: as above.
    unsafe { bindings::module_put((*call).__bindgen_anon_2.module.as_ref().cast()) };
}

/// References on events that user space made.
#[cfg(CONFIG_DYNAMIC_EVENTS)]
mod dynamic {
    use super::bindings;

    pub(super) use bindings::{
        trace_event_dyn_put_ref as put,
        trace_event_dyn_try_get_ref as try_get, //
    };
}

/// The kernel has no events that user space made.
#[cfg(not(CONFIG_DYNAMIC_EVENTS))]
mod dynamic {
    use super::bindings;

    pub(super) unsafe fn put(_call: *mut bindings::trace_event_call) {}

    pub(super) unsafe fn try_get(_call: *mut bindings::trace_event_call) -> bool {
        false
    }
}
