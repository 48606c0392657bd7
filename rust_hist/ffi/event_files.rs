// SPDX-License-Identifier: GPL-2.0

//! Files of this module in the directory of every event, read record by record.
//!
//! C counterpart: `event_hist_fops` in
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c), and
//! [`fs/seq_file.c`](srctree/fs/seq_file.c).
//!
//! A read belongs to the open file. The shown data are copied when a read begins at offset 0; later reads continue in
//! the copy, even if the event changes, until the event is gone. The copy is charged to the memory cgroup of the
//! reader, which need not be that of the triggers' creator.
//!
//! Locking: [`EventTable::Opened`] is shared by all users of the open file; the copy belongs to the holder of the lock
//! of its `seq_file`, which the core takes around each run of `start`, `show`, `next` and `stop`.

use super::{
    bindings,
    event::EventFile,
    guard::{
        EventMutex,
        EventMutexHeld, //
    },
    poll::{
        PollEvents,
        Poller, //
    },
    seq::{
        self,
        SeqWriter, //
    },
    task,
    trace_core, //
};
use crate::sync::{
    Atomic,
    Relaxed, //
};
use core::{
    cell::UnsafeCell,
    ffi::CStr,
    fmt,
    marker::{
        PhantomData,
        PhantomPinned, //
    },
    ptr::NonNull, //
};
use kernel::{
    bindings as base,
    error::{
        from_result,
        to_result,
        VTABLE_DEFAULT_ERROR, //
    },
    new_mutex,
    prelude::*,
    sync::Mutex,
    types::ForeignOwnable, //
};

/// A kind of file in the directory of an event.
#[vtable]
pub(crate) trait EventTable: Sized + 'static {
    /// The state of an open file besides the copy.
    type Opened: Send + Sync;
    /// The copied data of a reader.
    type Copy: Send;

    /// Called when the file is opened.
    fn open(event: LockedEvent<'_>) -> Result<Self::Opened>;

    /// Copies the data that the file shows at this moment.
    fn copy(opened: &Self::Opened, event: LockedEvent<'_>) -> Result<Self::Copy>;

    /// Returns the number of records in the copy.
    fn records(copy: &Self::Copy) -> usize;

    /// Writes one record.
    fn show(copy: &Self::Copy, index: usize, out: &mut SeqWriter<'_>) -> fmt::Result;

    /// Called when the reader has received the first bytes of the copy. If it does not receive them, the copy is
    /// dropped.
    fn given(_copy: &mut Self::Copy) {}

    /// Returns the events for `poll()`. Called with the poller on the wait queue; without this method the file is
    /// always readable.
    fn poll(_opened: &Self::Opened, _event: LockedEvent<'_>) -> PollEvents {
        build_error!(VTABLE_DEFAULT_ERROR)
    }
}

/// The event of an open file, with `event_mutex` held until this is dropped.
///
/// # Invariants
///
/// The event was not freed when the mutex was taken, and so cannot be freed while it is held.
pub(crate) struct LockedEvent<'a> {
    file: &'a EventFile,
    /// The open file.
    of: *mut base::file,
    held: EventMutex,
}

impl LockedEvent<'_> {
    /// Locks `event_mutex` and finds the event of `file`; `ENODEV` if it is gone.
    ///
    /// # Safety
    ///
    /// `file` must be an open file of an event, for the life of this value.
    unsafe fn lock(file: *mut base::file) -> Result<Self> {
        let held = EventMutex::lock();
        // SAFETY: by the contract, and the mutex is held.
        let event = NonNull::new(unsafe { bindings::hist_helper_event(file) });
        Ok(Self {
            // INVARIANT: the event is not freed yet.
            // SAFETY: the file stays while the mutex is held, and is borrowed for no longer.
            file: unsafe { EventFile::from_raw(event.ok_or(ENODEV)?.as_ptr()) },
            of: file,
            held,
        })
    }

    /// Releases the mutex while `run` runs; `ENODEV` if the event is gone afterwards.
    pub(crate) fn unlocked<R>(self, run: impl FnOnce() -> R) -> Result<(Self, R)> {
        let file = self.of;
        drop(self);
        let result = run();
        // SAFETY: the contract of the first lock holds until the returned value is dropped.
        Ok((unsafe { Self::lock(file) }?, result))
    }

    /// Releases the mutex for a tick, for a caller that waits for another holder of it. `EINTR` if the task is killed
    /// meanwhile, `ENODEV` if the event is gone afterwards.
    pub(crate) fn pause(self) -> Result<Self> {
        let (event, slept) = self.unlocked(task::pause)?;
        slept.map(|()| event)
    }

    /// Returns the event file.
    pub(crate) fn file(&self) -> &EventFile {
        self.file
    }

    /// Returns the proof that `event_mutex` is held.
    pub(crate) fn held(&self) -> &EventMutexHeld {
        &self.held
    }
}

/// The data of an open file.
///
/// # Invariants
///
/// `file` is the open file that owns this value. `copy` is accessed only under the lock of its `seq_file`.
#[pin_data]
struct OpenState<T: EventTable> {
    file: *mut base::file,
    /// Held from the beginning of a read until it is known whether the reader has received anything.
    #[pin]
    reading: Mutex<()>,
    /// Set by a read at offset 0, and cleared by the `start` that follows.
    refresh: Atomic<u32>,
    opened: T::Opened,
    poller: Poller,
    copy: UnsafeCell<Option<T::Copy>>,
}

/// The callbacks of one kind of file.
struct FileCallbacks<T: EventTable>(PhantomData<T>);

impl<T: EventTable> FileCallbacks<T> {
    const SEQ_VTABLE: base::seq_operations = base::seq_operations {
        start: Some(Self::start),
        stop: Some(Self::stop),
        next: Some(Self::next),
        show: Some(Self::show),
    };

    /// With their owner, they pin the module while a file is open.
    const VTABLE: base::file_operations = base::file_operations {
        owner: super::this_module(),
        open: Some(Self::open),
        read: Some(Self::read),
        llseek: Some(base::seq_lseek),
        release: Some(Self::release),
        poll: if T::HAS_POLL { Some(Self::poll) } else { None },
        ..pin_init::zeroed()
    };

    /// # Safety
    ///
    /// Only the VFS may call this, with an inode whose private data is an event file.
    unsafe extern "C" fn open(inode: *mut base::inode, file: *mut base::file) -> c_int {
        from_result(|| {
            // SAFETY: by the contract. The call checks the lock-down and takes references to the instance and the event
            // file.
            to_result(unsafe { trace_core::tracing_open_file_tr(inode, file) })?;
            // SAFETY: the file is being opened, with the references from the call before.
            let opened = unsafe { Self::open_locked(file) };
            if opened.is_err() {
                // SAFETY: releases the references of `tracing_open_file_tr()`.
                unsafe { trace_core::tracing_release_file_tr(inode, file) };
            }
            opened.map(|()| 0)
        })
    }

    /// # Safety
    ///
    /// `file` must be an event file that is being opened, with references to event file and instance.
    unsafe fn open_locked(file: *mut base::file) -> Result {
        // SAFETY: by the contract.
        let opened = T::open(unsafe { LockedEvent::lock(file) }?)?;
        let state = KBox::pin_init(
            pin_init!(OpenState::<T> {
                file,
                reading <- new_mutex!(()),
                refresh: Atomic::new(0),
                opened,
                poller: Poller::new(),
                copy: UnsafeCell::new(None),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        // SAFETY: the file is being opened; the operations are constant.
        to_result(unsafe { base::seq_open(file, &Self::SEQ_VTABLE) })?;
        // SAFETY: `seq_open` stored a `seq_file` there, which no other context uses yet.
        unsafe { (*Self::seq_of(file)).private = state.into_foreign() };
        Ok(())
    }

    /// Returns the `seq_file` of an open file.
    ///
    /// # Safety
    ///
    /// `file` must have been opened by `seq_open`.
    unsafe fn seq_of(file: *mut base::file) -> *mut base::seq_file {
        // SAFETY: by the contract, the private data is a `seq_file`.
        unsafe { (*file).private_data }.cast()
    }

    /// Returns the data of an open file.
    ///
    /// # Safety
    ///
    /// `m` must be the `seq_file` of a file of this kind that stays open for `'a`.
    unsafe fn state<'a>(m: *mut base::seq_file) -> &'a OpenState<T> {
        // SAFETY: `open_locked` stored the box there, and only `release` takes it back.
        unsafe { Pin::<KBox<OpenState<T>>>::borrow((*m).private) }.get_ref()
    }

    /// # Safety
    ///
    /// Only the VFS may call this, with an open file.
    unsafe extern "C" fn read(
        file: *mut base::file,
        to: *mut c_char,
        size: usize,
        at: *mut base::loff_t,
    ) -> isize {
        // SAFETY: the file is open.
        let m = unsafe { Self::seq_of(file) };
        // SAFETY: the file is open.
        let state = unsafe { Self::state(m) };
        let _reading = state.reading.lock();
        // SAFETY: the VFS passes the offset of this read.
        let begins = size != 0 && unsafe { at.read() } == 0;
        if begins {
            // ORDERING: only tells that some read began anew; the lock of the `seq_file` orders everything else.
            state.refresh.store(1, Relaxed);
        }
        // SAFETY: the arguments are those of the VFS for a read.
        let given = unsafe { base::seq_read(file, to, size, at) };
        if given > 0 || begins {
            // SAFETY: `seq_open` has initialised the mutex, which lives as long as the file is open.
            let lock = unsafe { Mutex::<()>::from_raw(&raw mut (*m).lock) };
            let _locked = lock.lock();
            // SAFETY: the lock of the `seq_file` is held.
            let copy = unsafe { &mut *state.copy.get() };
            match copy {
                Some(copy) if given > 0 => T::given(copy),
                // The next read begins anew, and data that the reader has not received need not wait for it.
                _ => *copy = None,
            }
        }
        given
    }

    /// # Safety
    ///
    /// Only `seq_file.c` may call this, with its lock held.
    unsafe extern "C" fn start(m: *mut base::seq_file, at: *mut base::loff_t) -> *mut c_void {
        // SAFETY: the file is open.
        let state = unsafe { Self::state(m) };
        // SAFETY: the lock of the `seq_file` is held.
        let copy = unsafe { &mut *state.copy.get() };
        // SAFETY: the core passes the number of the record.
        let at = unsafe { at.read() };
        // ORDERING: only tells that some read began anew; the lock of the `seq_file` orders everything else.
        if at == 0 && state.refresh.xchg(0, Relaxed) != 0 {
            // The old copy is dropped first, as two are never needed at once, and without the mutex, which its drop may
            // take.
            *copy = None;
        }
        // SAFETY: the file is open.
        let event = match unsafe { LockedEvent::lock(state.file) } {
            Ok(event) => event,
            Err(error) => return error.to_ptr(),
        };
        if copy.is_none() {
            match T::copy(&state.opened, event) {
                Ok(new) => *copy = Some(new),
                Err(error) => return error.to_ptr(),
            }
        }
        Self::token(copy.as_ref(), at)
    }

    /// Returns a non-null token for record `at`; null after the last record.
    fn token(copy: Option<&T::Copy>, at: i64) -> *mut c_void {
        match (copy, usize::try_from(at)) {
            (Some(copy), Ok(index)) if index < T::records(copy) => {
                core::ptr::without_provenance_mut(index + 1)
            }
            _ => core::ptr::null_mut(),
        }
    }

    /// # Safety
    ///
    /// Only `seq_file.c` may call this, with its lock held.
    unsafe extern "C" fn next(
        m: *mut base::seq_file,
        _token: *mut c_void,
        at: *mut base::loff_t,
    ) -> *mut c_void {
        // SAFETY: the file is open, and the lock of the `seq_file` held.
        let copy = unsafe { &*Self::state(m).copy.get() };
        // SAFETY: the core passes the number of the record, which this function must increment.
        let at = unsafe { &mut *at };
        *at = at.saturating_add(1);
        Self::token(copy.as_ref(), *at)
    }

    /// # Safety
    ///
    /// Only `seq_file.c` may call this.
    unsafe extern "C" fn stop(_m: *mut base::seq_file, _token: *mut c_void) {}

    /// # Safety
    ///
    /// Only `seq_file.c` may call this, with its lock held and a token from `start` or `next`.
    unsafe extern "C" fn show(m: *mut base::seq_file, token: *mut c_void) -> c_int {
        // SAFETY: the file is open, and the lock of the `seq_file` held.
        let copy = unsafe { &*Self::state(m).copy.get() };
        let (Some(copy), Some(index)) = (copy, token.addr().checked_sub(1)) else {
            return 0;
        };
        // SAFETY: the core calls this for one reader, which holds the lock.
        unsafe { seq::show(m, |out| T::show(copy, index, out)) }
    }

    /// # Safety
    ///
    /// Only the VFS may call this, with an open file.
    unsafe extern "C" fn poll(
        file: *mut base::file,
        table: *mut base::poll_table_struct,
    ) -> base::__poll_t {
        // SAFETY: the file is open.
        let state = unsafe { Self::state(Self::seq_of(file)) };
        state.poller.announce();
        // SAFETY: the file is open.
        let Ok(event) = (unsafe { LockedEvent::lock(file) }) else {
            return PollEvents::ERROR.0;
        };
        // SAFETY: the arguments are those of the VFS for a poll, and the mutex is held.
        unsafe { trace_core::hist_poll_wait(file, table) };
        T::poll(&state.opened, event).0
    }

    /// # Safety
    ///
    /// Only the VFS may call this, with a file that is closed by its last user.
    unsafe extern "C" fn release(inode: *mut base::inode, file: *mut base::file) -> c_int {
        // SAFETY: `open_locked` stored the box there, and no other context uses the file any more.
        drop(unsafe { Pin::<KBox<OpenState<T>>>::from_foreign((*Self::seq_of(file)).private) });
        // SAFETY: releases the references of `tracing_open_file_tr`.
        unsafe { trace_core::tracing_release_file_tr(inode, file) };
        // SAFETY: undoes `seq_open`.
        unsafe { base::seq_release(inode, file) }
    }
}

/// A file in all event directories.
#[repr(transparent)]
pub(crate) struct FileEntry(trace_core::event_dir_file);

// SAFETY: it has only pointers to constant values.
unsafe impl Send for FileEntry {}

// SAFETY: it has only pointers to constant values.
unsafe impl Sync for FileEntry {}

impl FileEntry {
    /// Returns a file of the kind `T`, readable for its owner and group.
    ///
    /// The file only appears if the kernel has reserved its name.
    pub(crate) fn new<T: EventTable>(name: &'static CStr) -> Self {
        Self(trace_core::event_dir_file {
            name: name.as_char_ptr(),
            fops: &FileCallbacks::<T>::VTABLE,
        })
    }
}

/// Keeps files in all event directories until it is dropped.
///
/// # Invariants
///
/// The core uses this list of files in place. `end` has no name, which ends the list.
#[repr(C)]
#[pin_data(PinnedDrop)]
pub(crate) struct Registration<const N: usize> {
    files: [FileEntry; N],
    end: FileEntry,
    #[pin]
    _pin: PhantomPinned,
}

impl<const N: usize> Registration<N> {
    /// Makes the files appear.
    ///
    /// From here on files can be opened, and then the module stays until their last close; so loading the module must
    /// not fail any more.
    pub(crate) fn new(files: [FileEntry; N]) -> impl PinInit<Self> {
        pin_init!(&this in Self {
            files,
            end: FileEntry(pin_init::zeroed()),
            _pin: PhantomPinned,
            _: {
                // SAFETY: the list is complete, and stays in place until `drop` has withdrawn it; the operations name
                // this module as their owner.
                unsafe { trace_core::event_dir_files_serve(this.as_ptr().cast()) };
            },
        })
    }
}

#[pinned_drop]
impl<const N: usize> PinnedDrop for Registration<N> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: this withdraws the list that `new` has passed. No file is open, as each of them pins the module.
        unsafe { trace_core::event_dir_files_serve(core::ptr::null()) };
    }
}
