// SPDX-License-Identifier: GPL-2.0

//! The parts of the tracing core that only code has which is built into the kernel.
//!
//! C counterparts: [`kernel/trace/trace_events.c`](srctree/kernel/trace/trace_events.c),
//! [`kernel/trace/trace_events_trigger.c`](srctree/kernel/trace/trace_events_trigger.c)

use crate::{
    ffi::bindings,
    sync::{
        Acquire,
        Atomic,
        Release, //
    },
};
use core::{
    ffi::CStr,
    ptr::null_mut, //
};
use kernel::prelude::*;

/// What all commands have in common.
pub(in crate::ffi) const COMMAND: bindings::event_command = pin_init::zeroed();

/// What all types of dynamic events have in common.
pub(in crate::ffi) const TYPE: bindings::dyn_event_operations = pin_init::zeroed();

/// A file of event directories; one without a name ends a list.
#[repr(C)]
#[derive(Zeroable)]
pub(in crate::ffi) struct event_dir_file {
    pub(in crate::ffi) name: *const c_char,
    pub(in crate::ffi) fops: *const bindings::file_operations,
}

/// The files of event directories; null before they are known.
static FILES: Atomic<*mut event_dir_file> = Atomic::new(null_mut());

/// Sets the files of event directories.
///
/// # Safety
///
/// `files` must end with one without a name, and stay; or be null.
pub(in crate::ffi) unsafe fn event_dir_files_serve(files: *const event_dir_file) {
    // ORDERING: pairs with `event_hist_file_fops`.
    FILES.store(files.cast_mut(), Release);
}

/// The operations of the file of that name in an event directory; null if it is none of these.
///
/// # Safety
///
/// `name` must be a string.
#[no_mangle]
unsafe extern "C" fn event_hist_file_fops(name: *const c_char) -> *const bindings::file_operations {
    // SAFETY: by the contract.
    let name = unsafe { CStr::from_char_ptr(name) };
    // ORDERING: pairs with `event_dir_files_serve`.
    let mut at: *const event_dir_file = FILES.load(Acquire);
    // SAFETY: each file before the one without a name is followed by another, and they stay.
    while let Some(file) = unsafe { at.as_ref() }.filter(|file| !file.name.is_null()) {
        // SAFETY: a file has a static name.
        if unsafe { CStr::from_char_ptr(file.name) } == name {
            return file.fops;
        }
        at = at.wrapping_add(1);
    }
    core::ptr::null()
}
