// SPDX-License-Identifier: GPL-2.0

//! The tracing core of a kernel that has the series: all of this is its own.
//!
//! C headers: [`kernel/trace/trace.h`](srctree/kernel/trace/trace.h),
//! [`kernel/trace/trace_dynevent.h`](srctree/kernel/trace/trace_dynevent.h)

/// What depends on whether this code is a module's or the kernel's own.
#[cfg_attr(rust_hist_built_in, path = "patched/built_in.rs")]
#[cfg_attr(not(rust_hist_built_in), path = "patched/module.rs")]
mod place;

use super::{
    arch,
    bindings, //
};
use core::{
    ffi::CStr,
    ptr::{
        null_mut,
        NonNull, //
    }, //
};
use kernel::{
    bindings as base,
    prelude::*,
    sync::Mutex, //
};

#[cfg(not(rust_hist_built_in))]
pub(crate) use self::place::HAS_HIST;
#[cfg(not(rust_hist_built_in))]
pub(super) use self::place::{
    dyn_event_unregister,
    tracing_readme_append, //
};
pub(super) use self::place::{
    event_dir_file,
    event_dir_files_serve,
    COMMAND,
    TYPE, //
};
pub(super) use super::bindings::{
    __find_event_file,
    event_mutex,
    hist_helper_syscall_name as syscall_name,
    register_event_command,
    strncpy_from_kernel_nofault,
    strncpy_from_user_nofault,
    trace_array_put,
    trace_clock_in_ns,
    trace_event_dyn_put_ref,
    trace_event_dyn_try_get_ref,
    trace_event_enable_disable,
    trace_event_trigger_enable_disable,
    trace_find_event_field,
    trace_get_event_file,
    trace_put_event_file,
    tracing_check_open_get_tr,
    tracing_log_err,
    tracing_open_file_tr,
    tracing_release_file_tr,
    tracing_set_clock,
    trigger_data_alloc,
    trigger_data_free,
    unregister_event_command,
    update_cond_flag, //
};

/// Dropped before the mutex is released, which is all that happens.
pub(super) struct EndOfEventMutex;

/// Adds a poller of a `hist` file to the wait queue for hits and for the removal of events.
///
/// # Safety
///
/// The arguments must be those of the VFS for a poll.
#[inline]
pub(super) unsafe fn hist_poll_wait(file: *mut base::file, table: *mut base::poll_table_struct) {
    // SAFETY: by the contract; the wait queue is part of the kernel image.
    unsafe { base::poll_wait(file, &raw mut bindings::hist_poll_wq, table) };
}

/// Creates a file at the top of tracefs, readable and writable by the owner and readable by the group, like the kernel's files
/// of this kind.
///
/// # Errors
///
/// `ENODEV` if there is no tracefs, or it refuses the file.
///
/// # Safety
///
/// The operations must name this module as their owner, or stay while the kernel runs.
pub(super) unsafe fn create_tracefs_file(
    name: &'static CStr,
    operations: &'static base::file_operations,
) -> Result<NonNull<base::dentry>> {
    // SAFETY: the name is constant. By the contract the operations stay until the inode does not use them any more.
    let dentry = unsafe {
        bindings::tracefs_create_file(
            name.as_char_ptr(),
            0o640,
            null_mut(),
            null_mut(),
            operations,
        )
    };
    NonNull::new(dentry).ok_or(ENODEV)
}

/// Releases the mutex. Triggers hold no events of modules.
#[inline]
pub(super) fn let_go(_mutex: super::guard::EventMutex) {}

/// Asks for records that are kept to be written in place and not first into the scratch buffer of the CPU; or takes one such
/// request back. Takes `trace_types_lock`. Not for paths that free triggers: the removal of an instance holds it there.
///
/// # Safety
///
/// The instance must be live, and have been asked before a request is taken back.
pub(super) unsafe fn refuse_scratch(instance: *mut bindings::trace_array, is_refused: bool) {
    // SAFETY: `trace_types_lock` is a mutex of the kernel image, initialised at build time.
    let lock = unsafe { Mutex::from_raw(&raw mut bindings::trace_types_lock) };
    let _locked = lock.lock();
    // SAFETY: by the contract, and the lock protects the count, which is above zero when a request is taken back.
    unsafe { (*instance).exact_stamp_ref += if is_refused { 1 } else { -1 } };
}

/// Whether a record is the one that this CPU writes first and copies if somebody wants it.
///
/// # Safety
///
/// This CPU must be writing the record, with preemption off.
#[inline(always)]
pub(super) unsafe fn is_scratch(event: *mut bindings::ring_buffer_event) -> bool {
    core::ptr::eq(event, arch::scratch_record())
}

/// The time stamp of a record; one in the scratch buffer gets it when it is first asked for.
///
/// # Safety
///
/// This CPU must be writing the record, of an event of `file`.
#[inline(always)]
pub(super) unsafe fn time_stamp(
    _file: *mut bindings::trace_event_file,
    buffer: *mut bindings::trace_buffer,
    event: *mut bindings::ring_buffer_event,
) -> u64 {
    // SAFETY: by the contract.
    unsafe { bindings::tracing_event_time_stamp(buffer, event) }
}
