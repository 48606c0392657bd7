// SPDX-License-Identifier: GPL-2.0

//! Files of our own in the directory of every event, read record by record.
//!
//! C counterpart: `event_hist_fops` in
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c), and
//! [`fs/seq_file.c`](srctree/fs/seq_file.c).
//!
//! A read belongs to the open file. What it shows is copied when it begins at offset 0; later reads
//! go on in that copy, however the event changes, until the event itself is gone. The copy is charged to
//! the memory cgroup of the reader, who need not be the one that made the triggers.
//!
//! Who may touch what: [`EventTable::Opened`] is shared by all users of the open file; the copy
//! belongs to whoever holds the lock of its `seq_file`, which the core takes around each run of
//! `start`, `show`, `next` and `stop`.

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

/// What one kind of file shows.
#[vtable]
pub(crate) trait EventTable: Sized + 'static {
    /// What an open file keeps besides the copy.
    type Opened: Send + Sync;
    /// What a reader goes through.
    type Copy: Send;

    /// Called when the file is opened.
    fn open(event: LockedEvent<'_>) -> Result<Self::Opened>;

    /// Copies what the file shows now.
    fn copy(opened: &Self::Opened, event: LockedEvent<'_>) -> Result<Self::Copy>;

    /// How many records the copy has.
    fn records(copy: &Self::Copy) -> usize;

    /// Writes one record.
    fn show(copy: &Self::Copy, index: usize, out: &mut SeqWriter<'_>) -> fmt::Result;

    /// Called when the reader has been given the first bytes of the copy. If that fails the copy is dropped.
    fn given(_copy: &mut Self::Copy) {}

    /// What is ready. Called with the poller on the wait queue; without it there always is something to read.
    fn poll(_opened: &Self::Opened, _event: LockedEvent<'_>) -> PollEvents {
        build_error!(VTABLE_DEFAULT_ERROR)
    }
}

/// The event of an open file, with `event_mutex` held until this is dropped.
///
/// # Invariants
///
/// The event was not freed when the mutex was taken, and so it cannot be now.
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
    /// `file` must be open, of an event file, for the life of the value.
    unsafe fn lock(file: *mut base::file) -> Result<Self> {
        let held = EventMutex::lock();
        // SAFETY: by the contract, and the mutex is held.
        let event = NonNull::new(unsafe { bindings::hist_helper_event(file) });
        Ok(Self {
            // INVARIANT: it is not freed yet.
            // SAFETY: it stays while the mutex is held, and nobody gets it for longer.
            file: unsafe { EventFile::from_raw(event.ok_or(ENODEV)?.as_ptr()) },
            of: file,
            held,
        })
    }

    /// Gives the mutex back while `run` runs; `ENODEV` if the event is gone then.
    pub(crate) fn unlocked<R>(self, run: impl FnOnce() -> R) -> Result<(Self, R)> {
        let file = self.of;
        drop(self);
        let result = run();
        // SAFETY: as when the value was made, which was to live until the one that is returned is dropped.
        Ok((unsafe { Self::lock(file) }?, result))
    }

    /// Gives the mutex back for a tick, for a caller that waits for what another task does under it. `EINTR` if the task is killed
    /// meanwhile, `ENODEV` if the event is gone then.
    pub(crate) fn pause(self) -> Result<Self> {
        let (event, slept) = self.unlocked(task::pause)?;
        slept.map(|()| event)
    }

    /// The event file.
    pub(crate) fn file(&self) -> &EventFile {
        self.file
    }

    /// The proof that `event_mutex` is held.
    pub(crate) fn held(&self) -> &EventMutexHeld {
        &self.held
    }
}

/// What hangs on an open file.
///
/// # Invariants
///
/// `file` is the open file that owns the value. `copy` is touched only under the lock of its
/// `seq_file`.
#[pin_data]
struct OpenState<T: EventTable> {
    file: *mut base::file,
    /// Held from the beginning of a read until it is known whether the reader was given anything.
    #[pin]
    reading: Mutex<()>,
    /// Set by a read at offset 0, taken by the `start` that follows.
    refresh: Atomic<u32>,
    opened: T::Opened,
    poller: Poller,
    copy: UnsafeCell<Option<T::Copy>>,
}

/// The callbacks of one kind of file.
struct Callbacks<T: EventTable>(PhantomData<T>);

impl<T: EventTable> Callbacks<T> {
    const SEQ_VTABLE: base::seq_operations = base::seq_operations {
        start: Some(Self::start),
        stop: Some(Self::stop),
        next: Some(Self::next),
        show: Some(Self::show),
    };

    /// They pin the module while a file is open.
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
    /// For the VFS, with an inode whose private data is an event file.
    unsafe extern "C" fn open(inode: *mut base::inode, file: *mut base::file) -> c_int {
        from_result(|| {
            // SAFETY: by the contract. This checks the lock-down and takes references on the instance
            // and on the event file.
            to_result(unsafe { trace_core::tracing_open_file_tr(inode, file) })?;
            // SAFETY: the file is being opened, with the references of the call before.
            let opened = unsafe { Self::open_locked(file) };
            if opened.is_err() {
                // SAFETY: gives back what `tracing_open_file_tr()` took.
                unsafe { trace_core::tracing_release_file_tr(inode, file) };
            }
            opened.map(|()| 0)
        })
    }

    /// # Safety
    ///
    /// `file` must be an event file being opened, with references on event file and instance.
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
        // SAFETY: `seq_open` stored a `seq_file` there, which nobody else can use yet.
        unsafe { (*Self::seq_of(file)).private = state.into_foreign() };
        Ok(())
    }

    /// The `seq_file` of an open file.
    ///
    /// # Safety
    ///
    /// `file` must have been through `seq_open`.
    unsafe fn seq_of(file: *mut base::file) -> *mut base::seq_file {
        // SAFETY: by the contract, the private data is a `seq_file`.
        unsafe { (*file).private_data }.cast()
    }

    /// What hangs on an open file.
    ///
    /// # Safety
    ///
    /// `m` must be the `seq_file` of a file of this kind that stays open for `'a`.
    unsafe fn state<'a>(m: *mut base::seq_file) -> &'a OpenState<T> {
        // SAFETY: `open_locked` stored the box there, and `release` alone takes it back.
        unsafe { Pin::<KBox<OpenState<T>>>::borrow((*m).private) }.get_ref()
    }

    /// # Safety
    ///
    /// For the VFS, with an open file.
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
            // ORDERING: only says that some read began anew; the lock of the `seq_file` orders what
            // follows from it.
            state.refresh.store(1, Relaxed);
        }
        // SAFETY: the arguments are those of a read.
        let given = unsafe { base::seq_read(file, to, size, at) };
        if given > 0 || begins {
            // SAFETY: `seq_open` has initialised the mutex, which lives as long as the file is open.
            let lock = unsafe { Mutex::<()>::from_raw(&raw mut (*m).lock) };
            let _locked = lock.lock();
            // SAFETY: the lock of the `seq_file` is held.
            let copy = unsafe { &mut *state.copy.get() };
            match copy {
                Some(copy) if given > 0 => T::given(copy),
                // The next read begins anew. What the reader was not given does not wait for that.
                _ => *copy = None,
            }
        }
        given
    }

    /// # Safety
    ///
    /// For `seq_file.c`, with its lock held.
    unsafe extern "C" fn start(m: *mut base::seq_file, at: *mut base::loff_t) -> *mut c_void {
        // SAFETY: the file is open.
        let state = unsafe { Self::state(m) };
        // SAFETY: the lock of the `seq_file` is held.
        let copy = unsafe { &mut *state.copy.get() };
        // SAFETY: the core passes the number of the record.
        let at = unsafe { at.read() };
        // ORDERING: only says that some read began anew; the lock of the `seq_file` orders what follows from it.
        if at == 0 && state.refresh.xchg(0, Relaxed) != 0 {
            // The old one goes first, as two at once are never needed, and without the mutex, which it may take.
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

    /// A non-null token for record `at`, null past the last.
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
    /// For `seq_file.c`, with its lock held.
    unsafe extern "C" fn next(
        m: *mut base::seq_file,
        _token: *mut c_void,
        at: *mut base::loff_t,
    ) -> *mut c_void {
        // SAFETY: the file is open, and the lock of the `seq_file` held.
        let copy = unsafe { &*Self::state(m).copy.get() };
        // SAFETY: the core passes the number of the record, for us to raise.
        let at = unsafe { &mut *at };
        *at = at.saturating_add(1);
        Self::token(copy.as_ref(), *at)
    }

    /// # Safety
    ///
    /// For `seq_file.c`.
    unsafe extern "C" fn stop(_m: *mut base::seq_file, _token: *mut c_void) {}

    /// # Safety
    ///
    /// For `seq_file.c`, with its lock held and a token from `start` or `next`.
    unsafe extern "C" fn show(m: *mut base::seq_file, token: *mut c_void) -> c_int {
        // SAFETY: the file is open, and the lock of the `seq_file` held.
        let copy = unsafe { &*Self::state(m).copy.get() };
        let (Some(copy), Some(index)) = (copy, token.addr().checked_sub(1)) else {
            return 0;
        };
        // SAFETY: the core calls from one reader, who holds the lock.
        unsafe { seq::show(m, |out| T::show(copy, index, out)) }
    }

    /// # Safety
    ///
    /// For the VFS, with an open file.
    unsafe extern "C" fn poll(
        file: *mut base::file,
        table: *mut base::poll_table_struct,
    ) -> base::__poll_t {
        // SAFETY: the file is open.
        let state = unsafe { Self::state(Self::seq_of(file)) };
        state.poller.announce();
        // SAFETY: the file is open.
        let Ok(event) = (unsafe { LockedEvent::lock(file) }) else {
            return PollEvents::ERROR.bits();
        };
        // SAFETY: the arguments are those of a poll; the wait queue stays.
        unsafe { base::poll_wait(file, &raw mut trace_core::hist_poll_wq, table) };
        T::poll(&state.opened, event).bits()
    }

    /// # Safety
    ///
    /// For the VFS, with a file that is closed by its last user.
    unsafe extern "C" fn release(inode: *mut base::inode, file: *mut base::file) -> c_int {
        // SAFETY: `open_locked` stored the box there, and nobody else uses the file any more.
        drop(unsafe { Pin::<KBox<OpenState<T>>>::from_foreign((*Self::seq_of(file)).private) });
        // SAFETY: the counterpart of `tracing_open_file_tr`.
        unsafe { trace_core::tracing_release_file_tr(inode, file) };
        // SAFETY: the counterpart of `seq_open`.
        unsafe { base::seq_release(inode, file) }
    }
}

/// A file for all event directories.
#[repr(transparent)]
pub(crate) struct Entry(trace_core::event_dir_file);

// SAFETY: it points to constant values alone.
unsafe impl Send for Entry {}

// SAFETY: it points to constant values alone.
unsafe impl Sync for Entry {}

impl Entry {
    /// A file of the kind `T`, which its owner and group may read.
    ///
    /// The file appears only if the kernel reserves its name.
    pub(crate) fn new<T: EventTable>(name: &'static CStr) -> Self {
        Self(trace_core::event_dir_file {
            name: name.as_char_ptr(),
            fops: &Callbacks::<T>::VTABLE,
        })
    }
}

/// Keeps files in all event directories until it is dropped.
///
/// # Invariants
///
/// The core serves the files, whose list it uses in place. `end` has no name, which ends the list.
#[repr(C)]
#[pin_data(PinnedDrop)]
pub(crate) struct Registration<const N: usize> {
    files: [Entry; N],
    end: Entry,
    #[pin]
    _pin: PhantomPinned,
}

impl<const N: usize> Registration<N> {
    /// Makes the files appear.
    ///
    /// From here on they can be open, and then nothing but their last close lets the module go; so the
    /// load of the module must not fail any more.
    pub(crate) fn new(files: [Entry; N]) -> impl PinInit<Self> {
        pin_init!(&this in Self {
            files,
            end: Entry(pin_init::zeroed()),
            _pin: PhantomPinned,
            _: {
                // SAFETY: the list is complete, and stays where it is until `drop` has taken it back; the
                // operations name this module as their owner.
                unsafe { trace_core::event_dir_files_serve(this.as_ptr().cast()) };
            },
        })
    }
}

#[pinned_drop]
impl<const N: usize> PinnedDrop for Registration<N> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: this takes back what `new` did. No file is open: each of them pins the module.
        unsafe { trace_core::event_dir_files_serve(core::ptr::null()) };
    }
}
