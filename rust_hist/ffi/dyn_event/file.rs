// SPDX-License-Identifier: GPL-2.0

//! The file that lists, makes and deletes events of one type.
//!
//! C counterpart: `synth_events_fops` in
//! [`kernel/trace/trace_events_synth.c`](srctree/kernel/trace/trace_events_synth.c)

use super::{
    super::{
        bindings,
        guard::EventMutex,
        seq::SeqWriter, //
    },
    Kind, //
};
use core::{
    ffi::CStr,
    marker::PhantomData, //
};
use kernel::{
    bindings as base,
    error::{
        from_result,
        to_result, //
    },
    prelude::*, //
};

/// The callbacks of the file of a type.
pub(super) struct Callbacks<K: Kind>(PhantomData<K>);

impl<K: Kind> Callbacks<K> {
    pub(super) const VTABLE: base::file_operations = base::file_operations {
        owner: super::super::this_module(),
        open: Some(Self::open),
        read: Some(base::seq_read),
        write: Some(Self::write),
        llseek: Some(base::seq_lseek),
        release: Some(base::single_release),
        ..pin_init::zeroed()
    };

    /// # Safety
    ///
    /// For the VFS.
    unsafe extern "C" fn open(_inode: *mut base::inode, file: *mut base::file) -> c_int {
        from_result(|| {
            // SAFETY: this only checks the lock-down when it is given no instance.
            to_result(unsafe { bindings::tracing_check_open_get_tr(core::ptr::null_mut()) })?;
            // SAFETY: the file is being opened.
            let (mode, flags) = unsafe { ((*file).f_mode, (*file).f_flags) };
            if mode & WRITE != 0 && flags & TRUNCATE != 0 {
                K::registry().delete_all()?;
            }
            // SAFETY: the file is being opened.
            Ok(unsafe { base::single_open(file, Some(Self::show), core::ptr::null_mut()) })
        })
    }

    /// # Safety
    ///
    /// For the VFS, with an open file.
    unsafe extern "C" fn write(
        file: *mut base::file,
        from: *const c_char,
        size: usize,
        at: *mut base::loff_t,
    ) -> isize {
        // SAFETY: the arguments are those of a write.
        unsafe {
            bindings::trace_parse_run_command(file, from, size, at, Some(Self::command_callback))
        }
    }

    /// # Safety
    ///
    /// For the core, with a line.
    unsafe extern "C" fn command_callback(line: *const c_char) -> c_int {
        if !K::registry().is_open() {
            return EAGAIN.to_errno();
        }
        // SAFETY: by the contract.
        let line = unsafe { CStr::from_char_ptr(line) };
        from_result(|| K::command(line).map(|()| 0))
    }

    /// Lists all events, as they are while `event_mutex` is held.
    ///
    /// # Safety
    ///
    /// For `seq_file.c`, with its lock held.
    unsafe extern "C" fn show(m: *mut base::seq_file, _data: *mut c_void) -> c_int {
        // SAFETY: the core calls from one reader, who holds the lock.
        let mut out = unsafe { SeqWriter::from_raw(m) };
        let held = &EventMutex::lock();
        // A full page is no error here: the core notices, and asks again with a larger one.
        let _ = K::registry()
            .events(held)
            .try_for_each(|event| event.list(&mut out));
        0
    }
}

/// The file may be written to.
const WRITE: base::fmode_t = base::fmode_t::from_ne_bytes(2u32.to_ne_bytes());
/// What was in the file goes.
const TRUNCATE: u32 = base::O_TRUNC;
