// SPDX-License-Identifier: GPL-2.0

//! Registration of a type of dynamic events with the core, and the file that lists, creates and deletes events of this
//! type.
//!
//! C counterparts: [`kernel/trace/trace_dynevent.c`](srctree/kernel/trace/trace_dynevent.c), and `synth_events_fops` in
//! [`kernel/trace/trace_events_synth.c`](srctree/kernel/trace/trace_events_synth.c)

use super::{
    DynEventType,
    Registry, //
};
use crate::{
    ffi::{
        bindings,
        guard::EventMutex,
        module_notifier::Watched,
        seq,
        this_module,
        tracefs_file::TracefsFile, //
    },
    sync::Release, //
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

/// Keeps a type and its file registered until it is dropped; fields are dropped in order, as the file uses the type.
#[pin_data]
pub(crate) struct Registration<K: DynEventType> {
    _file: TracefsFile,
    _operations: Operations<K>,
    #[pin]
    _watch: Watched<&'static Registry<K>>,
}

impl<K: DynEventType> Registration<K> {
    /// Registers the type and the file `file`, through which no event can be created yet. As the type is a module's,
    /// lines of `dynamic_events` are offered to it before the types of the kernel, which accept any line that begins
    /// with their letter.
    pub(crate) fn new(file: &'static CStr) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            _watch <- Watched::new(Ok(K::registry())),
            _operations: Operations::new()?,
            // SAFETY: the operations name this module as their owner.
            _file: unsafe { TracefsFile::new(file, &TypeCallbacks::<K>::VTABLE) }?,
        })
    }

    /// Makes the file, once there is a tracefs.
    #[cfg(rust_hist_built_in)]
    pub(crate) fn create_file(&self) -> Result {
        self._file.create()
    }

    /// Allows user space to create events.
    pub(crate) fn open(&self) {
        // ORDERING: pairs with `Registry::is_open`.
        K::registry().open.store(1, Release);
    }
}

/// # Invariants
///
/// The operations of the type's registry are on the core's list.
struct Operations<K: DynEventType>(PhantomData<K>);

impl<K: DynEventType> Operations<K> {
    fn new() -> Result<Self> {
        // SAFETY: the operations are static, and complete.
        to_result(unsafe { bindings::dyn_event_register(K::registry().operations.get()) })?;
        // INVARIANT: the operations were just registered.
        Ok(Self(PhantomData))
    }
}

// Operations that are built in stay on the list, and are static.
#[cfg(not(rust_hist_built_in))]
impl<K: DynEventType> Drop for Operations<K> {
    fn drop(&mut self) {
        // SAFETY: by the type invariant. No event is left: each of them pins the module.
        unsafe { crate::ffi::trace_core::dyn_event_unregister(K::registry().operations.get()) };
    }
}

/// The callbacks of a type's file.
struct TypeCallbacks<K: DynEventType>(PhantomData<K>);

impl<K: DynEventType> TypeCallbacks<K> {
    const VTABLE: base::file_operations = base::file_operations {
        owner: this_module(),
        open: Some(Self::open),
        read: Some(base::seq_read),
        write: Some(Self::write),
        llseek: Some(base::seq_lseek),
        release: Some(base::single_release),
        ..pin_init::zeroed()
    };

    /// # Safety
    ///
    /// Only the VFS may call this.
    unsafe extern "C" fn open(_inode: *mut base::inode, file: *mut base::file) -> c_int {
        from_result(|| {
            // SAFETY: without an instance this only checks the lock-down.
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
    /// Only the VFS may call this, with an open file.
    unsafe extern "C" fn write(
        file: *mut base::file,
        from: *const c_char,
        size: usize,
        at: *mut base::loff_t,
    ) -> isize {
        // SAFETY: the arguments are those of the VFS for a write.
        unsafe {
            bindings::trace_parse_run_command(file, from, size, at, Some(Self::command_callback))
        }
    }

    /// # Safety
    ///
    /// Only the core may call this, with a line.
    unsafe extern "C" fn command_callback(line: *const c_char) -> c_int {
        if !K::registry().is_open() {
            return EAGAIN.to_errno();
        }
        // SAFETY: by the contract.
        let line = unsafe { CStr::from_char_ptr(line) };
        from_result(|| K::command(line).map(|()| 0))
    }

    /// Lists all events, with `event_mutex` held.
    ///
    /// # Safety
    ///
    /// Only `seq_file.c` may call this, with its lock held.
    unsafe extern "C" fn show(m: *mut base::seq_file, _data: *mut c_void) -> c_int {
        let held = &EventMutex::lock();
        let mut events = K::registry().events(held);
        // SAFETY: the core calls this for one reader, which holds the lock.
        unsafe { seq::show(m, |out| events.try_for_each(|event| event.list(out))) }
    }
}

/// The mode bit of a file that is open for writing.
const WRITE: base::fmode_t = base::fmode_t::from_ne_bytes(2u32.to_ne_bytes());
/// The flag of an open that truncates the file.
const TRUNCATE: u32 = base::O_TRUNC;
