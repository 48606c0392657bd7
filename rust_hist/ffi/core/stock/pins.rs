// SPDX-License-Identifier: GPL-2.0

//! The files of the core by which the module's triggers are called, and what keeps them.
//!
//! C counterparts: `trace_get_event_file()` in [`kernel/trace/trace_events.c`](srctree/kernel/trace/trace_events.c), and
//! `event_triggers_call()` in [`kernel/trace/trace_events_trigger.c`](srctree/kernel/trace/trace_events_trigger.c)

use super::{
    super::text::TextBuf,
    bindings,
    view::Lower,
    EventMutexHeld,
    EventNames,
    Guarded,
    COMMAND,
    PID_FILTER, //
};
use crate::sync::{
    Atomic,
    Relaxed, //
};
use core::{
    ffi::CStr,
    ptr::null_mut, //
};
use kernel::{
    error::{
        from_result,
        to_result, //
    },
    interop::list::clist_create,
    prelude::*,
    types::Opaque, //
};

/// The core's file of an event in an instance, which keeps the event and the instance; but an event of a module goes with
/// that, whose notifier removes the triggers and then calls [`let_go`].
pub(super) struct FilePin {
    pub(super) real: *mut bindings::trace_event_file,
    /// The file that `trace_get_event_file()` returned: `real`, or if that has no reference count, since the event is
    /// part of the kernel image and cannot be enabled, the one of the module's own event in the instance.
    counted: *mut bindings::trace_event_file,
}

impl FilePin {
    /// Looks an event up; `EINVAL` if the instance has none of these names. Takes `event_mutex`.
    pub(super) fn new(names: &EventNames, held: &EventMutexHeld) -> Result<Self> {
        let [system, event, instance] = names.split();
        let get = |system: &CStr, event: &CStr| {
            // SAFETY: the names are only compared; null stands for the top instance.
            kernel::error::from_err_ptr(unsafe {
                bindings::trace_get_event_file(
                    match instance.is_empty() {
                        true => core::ptr::null(),
                        false => instance.as_char_ptr(),
                    },
                    system.as_char_ptr(),
                    event.as_char_ptr(),
                )
            })
        };
        match get(system, event) {
            Ok(real) => {
                // SAFETY: the file has a reference on the module, which goes no further than the notifier without it.
                unsafe { bindings::module_put(module_of(real)) };
                return Ok(Self {
                    real,
                    counted: real,
                });
            }
            Err(error) if error == EINVAL => (),
            Err(error) => return Err(error),
        }
        let counted = get(c"rust_hist", c"event_mutex")?;
        let mut pin = Self {
            real: null_mut(),
            counted,
        };
        if let Some((last, real)) = LAST.get(held) {
            if *last == *names {
                pin.real = real.0;
                return Ok(pin);
            }
        }
        with_event_mutex(held, || {
            // SAFETY: the instance of the counted file is pinned, and `event_mutex` is held.
            let mut files = unsafe { files_of((*counted).tr) };
            let found = files.find(|&file| {
                // SAFETY: a file on the list is live, and `event_mutex` stands for the mutex here, which is held, too.
                let file = unsafe { super::super::event::EventFile::from_raw(file) };
                !file.call().can_be_enabled()
                    && file.names() == (system.to_bytes(), event.to_bytes())
            });
            pin.real = found.ok_or(EINVAL)?;
            Ok(())
        })?;
        if instance.is_empty() {
            *LAST.get(held) = Some((
                EventNames::new(system.to_bytes(), event.to_bytes(), None)?,
                Real(pin.real),
            ));
        }
        Ok(pin)
    }

    /// Whether the event cannot be enabled, so that the core calls the triggers of `real` alone.
    pub(super) fn is_fixed(&self) -> bool {
        self.real != self.counted
    }
}

/// Forgets the last event, before the module goes.
pub(super) fn forget(held: &EventMutexHeld) {
    *LAST.get(held) = None;
}

impl Drop for FilePin {
    fn drop(&mut self) {
        // SAFETY: `trace_get_event_file()` has returned the file, and this is the only release. The reference on the
        // module, which the function takes back, was dropped in `new`.
        unsafe {
            if !self.is_fixed() {
                bindings::__module_get(module_of(self.real));
            }
            bindings::trace_put_event_file(self.counted);
        }
    }
}

/// A file of the kernel image.
struct Real(*mut bindings::trace_event_file);

// SAFETY: the file is used under the mutex only.
unsafe impl Send for Real {}

/// The event of the top instance that [`FilePin::new`] found last with `event_mutex` held, since to take that takes long. It stays
/// while the kernel runs.
static LAST: Guarded<Option<(EventNames, Real)>> = Guarded::new(None);

/// Returns the module with the code of an event; null for one of the kernel image, or that user space made.
///
/// # Safety
///
/// The file must be live.
pub(super) unsafe fn module_of(file: *mut bindings::trace_event_file) -> *mut bindings::module {
    // SAFETY: by the contract; a live file has its event.
    unsafe { super::super::event::EventFile::from_raw(file) }
        .call()
        .module()
}

/// Calls `run` with `event_mutex` held. `EBUSY`, without a call, if somebody else enables and disables the module's own event
/// all the time.
pub(super) fn with_event_mutex<F: FnMut() -> Result>(_held: &EventMutexHeld, mut run: F) -> Result {
    /// # Safety
    ///
    /// `data` must be a function of this type that nobody else calls.
    unsafe extern "C" fn call<F: FnMut() -> Result>(data: *mut c_void) -> c_int {
        // SAFETY: by the contract.
        let run = unsafe { &mut *data.cast::<F>() };
        from_result(|| run().map(|()| 0))
    }

    // SAFETY: the mutex is held; `call` takes data of this type, which outlives the call.
    to_result(unsafe {
        bindings::hist_stock_with_event_mutex(Some(call::<F>), (&raw mut run).cast())
    })
}

/// Iterates over the core's files of the events of an instance.
///
/// # Safety
///
/// The instance must be live for `'a`, and `event_mutex` be held meanwhile.
pub(super) unsafe fn files_of<'a>(
    instance: *mut bindings::trace_array,
) -> impl Iterator<Item = *mut bindings::trace_event_file> + 'a {
    // SAFETY: by the contract; the list has such entries, and `event_mutex` protects it.
    let list = unsafe {
        let head = &raw mut (*instance).events;
        clist_create!(head, ListedFile, bindings::trace_event_file, list)
    };
    list.iter().map(|file| file.0.get())
}

/// The file of an event as an entry of its instance's list.
#[repr(transparent)]
struct ListedFile(Opaque<bindings::trace_event_file>);

/// The command of the node by which the core calls the module's triggers where it does not call its file.
pub(super) struct Hub(pub(super) bindings::event_command);

// SAFETY: the core only reads the value.
unsafe impl Sync for Hub {}

pub(super) static HUB: Hub = Hub(bindings::event_command {
    trigger: Some(hub_hit),
    print: Some(hub_print),
    ..COMMAND
});

/// Calls the module's triggers of an event.
///
/// # Safety
///
/// For the core, with the node of an [`OwnFile`] and the arguments of a hit.
unsafe extern "C" fn hub_hit(
    node: *mut bindings::event_trigger_data,
    buffer: *mut bindings::trace_buffer,
    record: *mut c_void,
    event: *mut bindings::ring_buffer_event,
) {
    // SAFETY: the data of the node is the module's file of the event, which stays until the hits are over that may see
    // the node. The rest are the arguments of the hit. No trigger of the module wants to be called after the record.
    unsafe {
        let file = (*node).private_data.cast::<bindings::trace_event_file>();
        if (*file).flags & PID_FILTER == 0 || !bindings::trace_event_ignore_this_pid(file) {
            bindings::event_triggers_call(file, buffer, record, event);
        }
    }
}

/// Prints what stands for the module's triggers in files of tracefs: a comment.
///
/// # Safety
///
/// For the core, with a `seq_file` that is being shown.
unsafe extern "C" fn hub_print(
    m: *mut bindings::seq_file,
    _node: *mut bindings::event_trigger_data,
) -> c_int {
    // SAFETY: by the contract.
    unsafe { kernel::bindings::seq_write(m.cast(), HUB_TEXT.as_ptr().cast(), HUB_TEXT.len()) }
}

/// The line by which [`hub_print`] shows a node.
const HUB_TEXT: &[u8] = b"# hist triggers of rust_hist, see /sys/kernel/rhist\n";

/// The names that the instance of [`RELAYS`] may have: the first that no user has taken.
const NAMES: [&CStr; 3] = [c"rust_hist", c"rust_hist_calls", c"rust_hist_system_calls"];

/// The place in [`NAMES`] of the name of the instance; after the last one while there is none.
static NAME: Atomic<usize> = Atomic::new(NAMES.len());

/// Returns whether this is the name of the module's own instance, which the view does not show.
pub(super) fn is_relays(name: &[u8]) -> bool {
    // ORDERING: no other data depends on the index.
    let own = NAMES.get(NAME.load(Relaxed));
    own.is_some_and(|own| own.to_bytes() == name)
}

/// Returns the index of a name that no instance has; `EBUSY` if there is none.
fn free_name() -> Result<usize> {
    for (index, name) in NAMES.iter().enumerate() {
        let path = TextBuf::joined(&[b"/instances/", name.to_bytes_with_nul()])?;
        match Lower::find(path.as_c_str()) {
            Err(error) if error == ENOENT => return Ok(index),
            found => found.map(drop)?,
        }
    }
    Err(EBUSY)
}

/// What system calls call: files of the module in an instance of its own. Each instance has one place for the file of a system
/// call, which the core's file takes when somebody enables the event.
pub(super) struct Relays {
    pub(super) instance: *mut bindings::trace_array,
    files: KVec<KBox<Opaque<bindings::trace_event_file>>>,
}

// SAFETY: any task may use and drop the instance.
unsafe impl Send for Relays {}

pub(super) static RELAYS: Guarded<Relays> = Guarded::new(Relays::NONE);

impl Relays {
    pub(super) const NONE: Self = Self {
        instance: null_mut(),
        files: KVec::new(),
    };

    /// Returns the file of an event; makes it if there is none. Takes `event_mutex`.
    pub(super) fn get(
        &mut self,
        call: *mut bindings::trace_event_call,
    ) -> Result<*mut bindings::trace_event_file> {
        // CAST: flags of the C enumeration.
        const FLAGS: c_ulong = bindings::EVENT_FILE_FL_SOFT_DISABLED as c_ulong
            | bindings::EVENT_FILE_FL_TRIGGER_MODE as c_ulong
            | bindings::EVENT_FILE_FL_TRIGGER_COND as c_ulong;

        if self.instance.is_null() {
            let index = free_name()?;
            let name = NAMES.get(index).ok_or(EBUSY)?.as_char_ptr();
            // SAFETY: the names are constant.
            self.instance =
                unsafe { bindings::trace_array_get_by_name(name, c"syscalls".as_char_ptr()) };
            if !self.instance.is_null() {
                // ORDERING: no other data depends on the index.
                NAME.store(index, Relaxed);
            }
        }
        if self.instance.is_null() {
            return Err(ENOMEM);
        }
        // SAFETY: a file of the list is live.
        let mut files = self.files.iter().map(|file| file.get());
        if let Some(file) = files.find(|&file| unsafe { (*file).event_call } == call) {
            return Ok(file);
        }
        let file = KBox::new(
            Opaque::new(bindings::trace_event_file {
                event_call: call,
                tr: self.instance,
                flags: FLAGS,
                ..Default::default()
            }),
            GFP_KERNEL,
        )?;
        let at = file.get();
        // SAFETY: the file is ours.
        unsafe { init_lists(at) };
        self.files.push(file, GFP_KERNEL)?;
        Ok(at)
    }

    /// Whether no file has a node. The mutex is held.
    pub(super) fn are_idle(&self) -> bool {
        // SAFETY: a file of the list is live, and its list changes under the mutex.
        self.files
            .iter()
            .all(|file| unsafe { has_no_triggers(file.get()) })
    }
}

impl Drop for Relays {
    fn drop(&mut self) {
        if !self.instance.is_null() {
            // ORDERING: no other data depends on the index.
            NAME.store(NAMES.len(), Relaxed);
            // SAFETY: releases the reference of `get`. The instance goes, but if somebody else uses it.
            unsafe {
                bindings::trace_array_put(self.instance);
                bindings::trace_array_destroy(self.instance);
            }
        }
    }
}

/// Makes the lists of a file empty.
///
/// # Safety
///
/// Nobody else may use the file.
pub(super) unsafe fn init_lists(file: *mut bindings::trace_event_file) {
    // SAFETY: by the contract; an empty list points at itself.
    unsafe {
        for head in [&raw mut (*file).list, &raw mut (*file).triggers] {
            (*head).next = head;
            (*head).prev = head;
        }
    }
}

/// Whether the list of triggers of a file is empty.
///
/// # Safety
///
/// The file must be live, and the list not change.
pub(super) unsafe fn has_no_triggers(file: *mut bindings::trace_event_file) -> bool {
    // SAFETY: by the contract.
    unsafe { (*file).triggers.next == &raw mut (*file).triggers }
}
