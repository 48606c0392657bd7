// SPDX-License-Identifier: GPL-2.0

//! The parameter with triggers to create when the module is loaded, and look-up of their events.
//!
//! C header: [`include/linux/moduleparam.h`](srctree/include/linux/moduleparam.h)

use super::{
    bindings,
    event::EventFile,
    guard::EventMutexHeld,
    trace_core, //
};
use core::{
    ffi::CStr,
    ptr::NonNull, //
};
use kernel::{
    error::from_err_ptr,
    prelude::*, //
};

/// Returns the parameter `triggers`, empty if it was not given.
pub(crate) fn triggers() -> &'static CStr {
    let text = &raw const bindings::hist_helper_triggers;
    // SAFETY: the core has written a string there before the module's init function, and the parameter cannot be
    // written after that.
    unsafe { CStr::from_char_ptr(text.cast()) }
}

/// An event of the top instance, which stays until this is dropped.
///
/// # Invariants
///
/// The pointer came from `trace_get_event_file()`.
pub(crate) struct TopEvent(NonNull<bindings::trace_event_file>);

impl TopEvent {
    /// Looks up an event; `EINVAL` if there is none that can be enabled. Takes `event_mutex`.
    pub(crate) fn get(system: &CStr, event: &CStr) -> Result<Self> {
        // SAFETY: the names are only compared; a null instance is the top one.
        let file = from_err_ptr(unsafe {
            trace_core::trace_get_event_file(
                core::ptr::null(),
                system.as_char_ptr(),
                event.as_char_ptr(),
            )
        })?;
        // INVARIANT: the call before returned the pointer.
        Ok(Self(NonNull::new(file).ok_or(EINVAL)?))
    }

    /// Returns the event's file.
    pub(crate) fn file<'a>(&'a self, _held: &'a EventMutexHeld) -> &'a EventFile {
        // SAFETY: by the type invariant there is a reference to its event and its instance.
        unsafe { EventFile::from_raw(self.0.as_ptr()) }
    }
}

impl Drop for TopEvent {
    fn drop(&mut self) {
        // SAFETY: undoes `trace_get_event_file()`.
        unsafe { trace_core::trace_put_event_file(self.0.as_ptr()) };
    }
}
