// SPDX-License-Identifier: GPL-2.0

//! The file that lists, makes and deletes events of one type.
//!
//! C counterpart: `synth_events_fops` in
//! [`kernel/trace/trace_events_synth.c`](srctree/kernel/trace/trace_events_synth.c)

use super::{
    super::{
        bindings,
        seq::SeqWriter,
        tracefs_file::TracefsFile, //
    },
    Event,
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

/// Keeps the file of a type until it is dropped.
pub(crate) struct File<K: Kind> {
    _file: TracefsFile,
    _kind: PhantomData<K>,
}

impl<K: Kind> File<K> {
    const SEQ: base::seq_operations = base::seq_operations {
        start: Some(Self::start),
        stop: Some(Self::stop),
        next: Some(Self::next),
        show: Some(Self::show),
    };

    /// Makes the file. The type is registered.
    pub(crate) fn new(name: &'static CStr) -> Result<Self> {
        let operations = base::file_operations {
            owner: super::super::this_module(),
            open: Some(Self::open),
            read: Some(base::seq_read),
            write: Some(Self::write),
            llseek: Some(base::seq_lseek),
            release: Some(base::seq_release),
            ..Default::default()
        };
        Ok(Self {
            // SAFETY: the owner is set above.
            _file: unsafe { TracefsFile::new(name, operations) }?,
            _kind: PhantomData,
        })
    }

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
            // SAFETY: the file is being opened; the operations are constant.
            to_result(unsafe { base::seq_open(file, &Self::SEQ) })?;
            Ok(0)
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

    /// # Safety
    ///
    /// For `seq_file.c`, which calls [`Self::stop`] after it.
    unsafe extern "C" fn start(_m: *mut base::seq_file, at: *mut base::loff_t) -> *mut c_void {
        // SAFETY: the mutex is part of the kernel image. `stop` unlocks it, whatever comes of this.
        unsafe { base::mutex_lock(&raw mut bindings::event_mutex) };
        // SAFETY: the list is initialised, and does not change while the mutex is held; the core passes
        // the number of the record.
        unsafe { base::seq_list_start((&raw mut bindings::dyn_event_list).cast(), at.read()) }
            .cast()
    }

    /// # Safety
    ///
    /// For `seq_file.c`, between [`Self::start`] and [`Self::stop`], with an entry of either.
    unsafe extern "C" fn next(
        _m: *mut base::seq_file,
        entry: *mut c_void,
        at: *mut base::loff_t,
    ) -> *mut c_void {
        // SAFETY: the entry is on the list, which does not change while the mutex is held.
        unsafe { base::seq_list_next(entry, (&raw mut bindings::dyn_event_list).cast(), at) }.cast()
    }

    /// # Safety
    ///
    /// For `seq_file.c`, after [`Self::start`].
    unsafe extern "C" fn stop(_m: *mut base::seq_file, _entry: *mut c_void) {
        // SAFETY: `start` has locked it, in this task.
        unsafe { base::mutex_unlock(&raw mut bindings::event_mutex) };
    }

    /// # Safety
    ///
    /// For `seq_file.c`, with an entry of the list of dynamic events and `event_mutex` held.
    unsafe extern "C" fn show(m: *mut base::seq_file, entry: *mut c_void) -> c_int {
        // The entry is the first member of the event.
        let node = entry.cast::<bindings::dyn_event>();
        // SAFETY: an event on the list is live while the mutex is held.
        if unsafe { K::registry().has(node) } {
            // SAFETY: it is one of this type.
            let event = unsafe { Event::<K>::from_dyn_event(node) };
            // SAFETY: the core calls from one reader.
            let mut out = unsafe { SeqWriter::from_raw(m) };
            // A full page is no error here: the core notices, and asks again.
            let _ = event.list(&mut out);
        }
        0
    }
}

/// The file may be written to.
const WRITE: base::fmode_t = base::fmode_t::from_ne_bytes(2u32.to_ne_bytes());
/// What was in the file goes.
const TRUNCATE: u32 = base::O_TRUNC;
