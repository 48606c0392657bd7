// SPDX-License-Identifier: GPL-2.0

//! The tracing core of a kernel without the series: what that does not export, made of what all kernels export.
//!
//! C counterparts: [`kernel/trace/trace_events_trigger.c`](srctree/kernel/trace/trace_events_trigger.c),
//! [`kernel/trace/trace_events.c`](srctree/kernel/trace/trace_events.c), [`kernel/trace/trace.c`](srctree/kernel/trace/trace.c).
//! The functions have the names, arguments and results of those of the core, where it has them.
//!
//! An event that has triggers in an instance has an [`OwnFile`] there: a `trace_event_file` of the module. The `reg()`
//! of the event's class registers this file as the data of a probe; from then on the core calls its triggers. The
//! core's own file of the event is pinned meanwhile, so neither the event nor the instance can be removed. A file of the
//! view that is open pins neither: the event is looked up anew by its names when the file is used.
//! `stock/view.rs` has the files that users see.
//!
//! Locks: the mutex of the module stands for `event_mutex`, which comes inside of it, by [`register`].

#[path = "stock/clocks.rs"]
mod clocks;
#[path = "stock/fields.rs"]
mod fields;
#[path = "stock/files.rs"]
mod files;
#[path = "stock/log.rs"]
mod log;
#[path = "stock/mount.rs"]
mod mount;
#[path = "stock/pins.rs"]
mod pins;
#[path = "stock/view.rs"]
mod view;

use self::pins::{
    has_no_triggers,
    init_lists,
    module_of,
    with_event_mutex,
    FilePin,
    Relays,
    HUB,
    RELAYS, //
};
use super::{
    bindings,
    delayed,
    guard::{
        wait_for_hits,
        EventMutex,
        EventMutexHeld,
        Guarded, //
    },
    text::TextBuf,
    this_module, //
};
use crate::sync::{
    Atomic,
    Full,
    Relaxed, //
};
use core::{
    cell::Cell,
    ffi::CStr,
    mem::offset_of,
    ptr::null_mut, //
};
use kernel::{
    error::to_result,
    prelude::*,
    types::Opaque, //
};

pub(super) use {
    self::{
        clocks::{
            time_stamp,
            trace_clock_in_ns,
            tracing_set_clock, //
        },
        fields::{
            syscall_name,
            trace_find_event_field, //
        },
        log::tracing_log_err,
        view::{
            event_dir_file,
            event_dir_files_serve,
            hist_poll_wait,
            tracing_open_file_tr,
            tracing_readme_append,
            tracing_release_file_tr, //
        },
    },
    super::bindings::hist_stock_mutex as event_mutex,
};

/// All names are free in the files of the module.
pub(crate) const HAS_HIST: bool = false;

/// The zeroed command that each command of the module is filled in from.
pub(super) const COMMAND: bindings::event_command = pin_init::zeroed();

/// The registered commands.
static COMMANDS: Guarded<KVec<RegisteredCommand>> = Guarded::new(KVec::new());

/// A command of [`COMMANDS`].
#[derive(Clone, Copy, PartialEq)]
struct RegisteredCommand(*mut bindings::event_command);

// SAFETY: the pointer is used under the mutex only.
unsafe impl Send for RegisteredCommand {}

/// The module's files of events that are in use, or that were looked up a moment ago.
static FILES: Guarded<KVec<KBox<OwnFile>>> = Guarded::new(KVec::new());

/// The first of the nodes that are to be freed; each node points to the next one.
static GRAVES: Atomic<*mut OwnNode> = Atomic::new(null_mut());

/// Dropped before the mutex is released.
pub(super) struct EndOfEventMutex;

impl Drop for EndOfEventMutex {
    /// Gives back the events that were looked up and are not needed after all, so that they can be deleted.
    fn drop(&mut self) {
        // SAFETY: the mutex is held.
        let held = unsafe { EventMutexHeld::assume() };
        for file in FILES.get(&held).iter() {
            // With hits it takes the work, which waits for them.
            if !file.is_used() && !file.hit.get() {
                drop(file.real.take());
            }
        }
    }
}

/// Returns the work that frees nodes and files that nobody uses any more.
fn work() -> &'static delayed::Work {
    // SAFETY: it is static and complete; `Work` is a transparent type that C alone looks into.
    unsafe { &*(&raw const bindings::hist_stock_work).cast::<delayed::Work>() }
}

/// Has [`hist_stock_sweep`] run soon. Any lock may be held.
fn sweep_soon() {
    // SAFETY: the work is complete, and the last command that goes cancels it.
    unsafe { delayed::queue_now(work()) };
}

/// Waits until all nodes and files are freed that nobody uses at the time of the call, so that their events and
/// instances can be removed. Sleeps; no lock may be held.
fn sweep_now() {
    // SAFETY: the work is complete.
    unsafe { bindings::flush_delayed_work(work().get()) };
}

// --- commands ---

/// Registers a command, and with the first one the view; `EBUSY` if there is one of that name.
///
/// # Safety
///
/// The command must be complete, and stay until it is unregistered. The mutex must not be held.
pub(super) unsafe fn register_event_command(command: *mut bindings::event_command) -> c_int {
    kernel::error::from_result(|| {
        let mutex = EventMutex::lock();
        let commands = COMMANDS.get(&mutex);
        // SAFETY: commands on the list and the new one are complete.
        let name =
            |command: *mut bindings::event_command| unsafe { CStr::from_char_ptr((*command).name) };
        if commands.iter().any(|other| name(other.0) == name(command)) {
            return Err(EBUSY);
        }
        commands.reserve(1, GFP_KERNEL)?;
        if commands.is_empty() {
            view::register(&mutex)?;
        }
        let _ = commands.insert_within_capacity(0, RegisteredCommand(command));
        Ok(0)
    })
}

/// Takes a command off the list, and with the last one the view.
///
/// # Safety
///
/// No trigger of the command must be left. The mutex must not be held.
pub(super) unsafe fn unregister_event_command(command: *mut bindings::event_command) -> c_int {
    let mutex = EventMutex::lock();
    let commands = COMMANDS.get(&mutex);
    let before = commands.len();
    commands.retain(|other| other.0 != command);
    let last = commands.is_empty();
    if commands.len() == before {
        return ENODEV.to_errno();
    }
    drop(mutex);
    if last {
        view::unregister();
        // SAFETY: nobody queues the work any more: no file of the view is open, and no trigger left.
        unsafe { delayed::cancel(work()) };
        // SAFETY: the work is cancelled, so it does not run at the same time; no lock is held.
        unsafe { hist_stock_sweep(null_mut()) };
        pins::forget(&EventMutex::lock());
        // SAFETY: the work is static. The function waits until it has woken the tasks that poll.
        unsafe { bindings::irq_work_sync(&raw mut bindings::hist_stock_poll_work) };
    }
    0
}

/// Iterates over the registered commands.
fn commands(held: &EventMutexHeld) -> impl Iterator<Item = *mut bindings::event_command> + '_ {
    COMMANDS.get(held).iter().map(|command| command.0)
}

// --- nodes ---

/// A trigger: the members that the core reads, and those by which the module frees it.
#[repr(C)]
struct OwnNode {
    node: bindings::event_trigger_data,
    next: *mut OwnNode,
}

/// Makes a node, which takes a reference on the module; null without memory.
///
/// # Safety
///
/// `command` must stay as long as the node.
pub(super) unsafe fn trigger_data_alloc(
    command: *mut bindings::event_command,
    _name: *mut c_char,
    _count: *mut c_char,
    private: *mut c_void,
) -> *mut bindings::event_trigger_data {
    let node = OwnNode {
        node: bindings::event_trigger_data {
            // The core takes this number for no limit.
            count: c_ulong::MAX,
            cmd_ops: command,
            private_data: private,
            ..pin_init::zeroed()
        },
        next: null_mut(),
    };
    let Ok(node) = KBox::new(node, GFP_KERNEL) else {
        return null_mut();
    };
    // SAFETY: the pointer is to the module of this code, which is live.
    if !unsafe { bindings::try_module_get(this_module()) } {
        return null_mut();
    }
    KBox::into_raw(node).cast()
}

/// Frees a node when the hits are over that may see it. Any lock may be held.
///
/// # Safety
///
/// The node must be one of [`trigger_data_alloc`], off its list.
pub(super) unsafe fn trigger_data_free(node: *mut bindings::event_trigger_data) {
    let own = node.cast::<OwnNode>();
    // ORDERING: the exchange orders the writes to the node before it.
    let mut first = GRAVES.load(Relaxed);
    loop {
        // SAFETY: by the contract nobody else has the node.
        unsafe { (*own).next = first };
        match GRAVES.cmpxchg(first, own, Full) {
            Ok(_) => break,
            Err(now) => first = now,
        }
    }
    sweep_soon();
}

/// Frees what nobody uses any more, after the hits that may see it.
///
/// # Safety
///
/// For the workqueue, or when the work does not run any more. No lock may be held.
#[no_mangle]
unsafe extern "C" fn hist_stock_sweep(_work: *mut bindings::work_struct) {
    let mut hit = false;
    let mutex = EventMutex::lock();
    let mut relays = Relays::NONE;
    if RELAYS.get(&mutex).are_idle() {
        relays = core::mem::replace(RELAYS.get(&mutex), Relays::NONE);
        hit = !relays.instance.is_null();
    }
    for file in FILES.get(&mutex).iter().filter(|file| !file.is_used()) {
        hit |= file.hit.replace(false);
        file.leaving.set(file.real.take());
    }
    // ORDERING: a node whose file goes was buried under the mutex.
    let mut grave = GRAVES.xchg(null_mut(), Full);
    drop(mutex);
    if hit || !grave.is_null() {
        wait_for_hits();
    }
    while !grave.is_null() {
        // SAFETY: it was made by `trigger_data_alloc`, and nobody sees it any more.
        let mut node = unsafe { KBox::from_raw(grave) };
        grave = node.next;
        if let Some(free) = node.node.private_data_free {
            // SAFETY: the data is freed once, after the grace period.
            unsafe { free(&raw mut node.node) };
        }
        drop(node);
        // SAFETY: the node had a reference. Unloading the module waits for this work, so the code stays until it is
        // over.
        unsafe { bindings::module_put(this_module()) };
    }
    // The nodes pointed to the files, and hits may have used the events until now.
    drop(relays);
    let mutex = EventMutex::lock();
    let files = FILES.get(&mutex);
    for file in files.iter() {
        drop(file.leaving.take());
    }
    files.retain(|file| file.opened.get() != 0 || file.is_pinned());
}

/// Gives back all events that nobody needs any more, such as those of a module that is going away.
pub(super) fn let_go(mutex: EventMutex) {
    drop(mutex);
    sweep_now();
}

// --- files of events ---

/// The names of a system, an event and an instance, each with a NUL. The top instance has an empty name.
struct EventNames(TextBuf);

impl PartialEq for EventNames {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_bytes() == other.0.as_bytes()
    }
}

impl EventNames {
    fn new(system: &[u8], event: &[u8], instance: Option<&[u8]>) -> Result<Self> {
        let instance = instance.unwrap_or_default();
        TextBuf::joined(&[system, b"\0", event, b"\0", instance, b"\0"]).map(Self)
    }

    fn split(&self) -> [&CStr; 3] {
        let mut names = self.0.as_bytes().split_inclusive(|&byte| byte == 0);
        [(); 3].map(|()| {
            CStr::from_bytes_until_nul(names.next().unwrap_or_default()).unwrap_or_default()
        })
    }
}

/// The module's own file of an event in an instance.
#[repr(C)]
struct OwnFile {
    file: Opaque<bindings::trace_event_file>,
    names: EventNames,
    /// The node in the list of the core's file, if the event cannot be enabled, or of that of [`RELAYS`].
    hub: Opaque<bindings::event_trigger_data>,
    /// Without it nobody may use the event, which may be gone. Changes under the mutex.
    real: Cell<Option<FilePin>>,
    /// The former `real`, while the work waits for the hits that may use the event. For the work alone.
    leaving: Cell<Option<FilePin>>,
    /// How many files of the view are open that belong to it. Changes under the mutex.
    opened: Cell<u32>,
    /// How often [`trace_get_event_file`] returned it. Changes under the mutex.
    kept: Cell<u32>,
    /// Whether the core calls its triggers. Changes under the mutex.
    registered: Cell<bool>,
    /// Whether there may be hits that use the event. Changes under the mutex.
    hit: Cell<bool>,
    /// The index in `clocks::CLOCKS` of the clock that gives time stamps in the instance.
    clock: Atomic<u32>,
}

// SAFETY: the members that change do so under the mutex, and any task may drop a pin.
unsafe impl Send for OwnFile {}

// CAST: flags of the C enumeration.
const TRIGGER_MODE: c_ulong = bindings::EVENT_FILE_FL_TRIGGER_MODE_BIT as c_ulong;
const TRIGGER_COND: c_ulong = bindings::EVENT_FILE_FL_TRIGGER_COND_BIT as c_ulong;
/// Flags by which only triggers see the records, and by which the core leaves out tasks that `set_event_pid` of the
/// instance does not name, if it names any.
const FLAGS: c_ulong = bindings::EVENT_FILE_FL_SOFT_DISABLED as c_ulong | PID_FILTER;
const PID_FILTER: c_ulong = bindings::EVENT_FILE_FL_PID_FILTER as c_ulong;

impl OwnFile {
    /// Returns the value whose first member is `file`.
    ///
    /// # Safety
    ///
    /// `file` must be that of a value that lives for `'a`.
    unsafe fn of<'a>(file: *mut bindings::trace_event_file) -> &'a Self {
        const { assert!(offset_of!(OwnFile, file) == 0) };
        // SAFETY: by the contract, and `file` is the first member of the value.
        unsafe { &*file.cast::<Self>() }
    }

    /// Returns the module's file of an event in an instance, pinned until the mutex is released, or for as long as it is
    /// used; makes it if there is none.
    fn find(names: EventNames, held: &EventMutexHeld) -> Result<&'static Self> {
        if let Some(own) = Self::known(&names, held) {
            own.pin(held)?;
            return Ok(own);
        }
        FILES.get(held).reserve(1, GFP_KERNEL)?;
        let own = KBox::new(
            Self {
                file: Opaque::new(bindings::trace_event_file {
                    flags: FLAGS,
                    ..Default::default()
                }),
                names,
                hub: Opaque::new(bindings::event_trigger_data {
                    cmd_ops: (&raw const HUB.0).cast_mut(),
                    ..pin_init::zeroed()
                }),
                real: Cell::new(None),
                leaving: Cell::new(None),
                opened: Cell::new(0),
                kept: Cell::new(0),
                registered: Cell::new(false),
                hit: Cell::new(false),
                clock: Atomic::new(0),
            },
            GFP_KERNEL,
        )?;
        own.pin(held)?;
        let file = own.file.get();
        // SAFETY: the node is ours.
        unsafe { (*own.hub.get()).private_data = file.cast() };
        // SAFETY: the file is ours.
        unsafe { init_lists(file) };
        let at = &raw const *own;
        let _ = FILES.get(held).push_within_capacity(own);
        // SAFETY: the file stays in its box while the mutex is held. A caller that keeps it for longer counts as a
        // user.
        Ok(unsafe { &*at })
    }

    /// Returns the module's file of an event, if there is one.
    fn known(names: &EventNames, held: &EventMutexHeld) -> Option<&'static Self> {
        let mut files = FILES.get(held).iter();
        let own = files.find(|own| own.names == *names)?;
        // SAFETY: the file stays in its box while the mutex is held. A caller that keeps it for longer counts as a
        // user.
        Some(unsafe { &*(&raw const **own) })
    }

    /// Returns what `enable` shows of an event with triggers of the module; `None` if it has none.
    fn state(names: &EventNames, held: &EventMutexHeld) -> Option<&'static [u8]> {
        // CAST: flags of the C enumeration.
        const ENABLED: c_ulong = bindings::EVENT_FILE_FL_ENABLED as c_ulong;
        const SOFT_DISABLED: c_ulong = bindings::EVENT_FILE_FL_SOFT_DISABLED as c_ulong;

        let own = Self::known(names, held)?;
        // SAFETY: the mutex is held, and the reference ends with the function.
        let pin = unsafe { (*own.real.as_ptr()).as_ref() }.filter(|_| own.registered.get())?;
        // SAFETY: the file is pinned. The core changes its flags one by one.
        let flags = unsafe { (&raw const (*pin.real).flags).read_volatile() };
        match flags & (ENABLED | SOFT_DISABLED) {
            ENABLED => Some(b"1*\n"),
            _ => Some(b"0*\n"),
        }
    }

    /// Looks the event up if it is not pinned, and pins it until the mutex is released, or for as long as it is used.
    fn pin(&self, held: &EventMutexHeld) -> Result {
        if self.is_pinned() {
            return Ok(());
        }
        let pin = FilePin::new(&self.names, held)?;
        // SAFETY: the file is pinned.
        let (call, tr) = unsafe { ((*pin.real).event_call, (*pin.real).tr) };
        let other = FILES
            .get(held)
            .iter()
            .find(|own| own.is_pinned() && own.instance() == tr);
        let clock = other.map_or(0, |own| own.clock.load(Relaxed));
        let file = self.file.get();
        // SAFETY: the file is ours. No hit and no trigger uses it, since it was not pinned.
        unsafe {
            (*file).event_call = call;
            (*file).tr = tr;
            // Events that cannot be enabled heed no filter.
            (*file).flags = if pin.is_fixed() {
                FLAGS & !PID_FILTER
            } else {
                FLAGS
            };
        }
        // ORDERING: no other data depends on the index.
        self.clock.store(clock, Relaxed);
        self.real.set(Some(pin));
        Ok(())
    }

    fn is_pinned(&self) -> bool {
        // SAFETY: the mutex is held, and the reference ends here.
        unsafe { (*self.real.as_ptr()).is_some() }
    }

    fn instance(&self) -> *mut bindings::trace_array {
        // SAFETY: the member does not change after the file was made.
        unsafe { (*self.file.get()).tr }
    }

    /// Returns the number of triggers of the file, and the number of requests to call them.
    fn counts(&self) -> (&Atomic<i32>, &Atomic<i32>) {
        let file = self.file.get();
        // SAFETY: an `atomic_t` has the layout of an `Atomic<i32>`, and both members live as long as the file.
        unsafe {
            (
                Atomic::from_ptr(&raw mut (*file).tm_ref.counter),
                Atomic::from_ptr(&raw mut (*file).sm_ref.counter),
            )
        }
    }

    /// Whether the event must stay.
    fn is_used(&self) -> bool {
        let (triggers, enabled) = self.counts();
        // ORDERING: the numbers change under the mutex only.
        self.kept.get() != 0 || triggers.load(Relaxed) != 0 || enabled.load(Relaxed) != 0
    }

    /// Makes the core call the triggers of the file, or stop calling them.
    fn register(&self, on: bool) -> Result {
        let own = self.file.get();
        // SAFETY: the mutex is held, and the reference ends here.
        let pin = unsafe { (*self.real.as_ptr()).as_ref() }.ok_or(ENODEV)?;
        // SAFETY: the file is live.
        let call = unsafe { (*own).event_call };
        // SAFETY: the mutex is held.
        let held = unsafe { &EventMutexHeld::assume() };
        let (list, file, node) = match (pin.is_fixed(), self.names.split()) {
            (true, _) => (pin.real, null_mut(), self.hub.get()),
            (_, [system, ..]) if system == c"syscalls" => {
                let relay = RELAYS.get(held).get(call)?;
                (relay, relay, self.hub.get())
            }
            _ => (null_mut(), own, null_mut()),
        };
        with_event_mutex(held, || {
            // SAFETY: `event_mutex` is held; the files are live, and the node is for the list.
            to_result(unsafe { register(list, file, node, on) })
        })?;
        self.registered.set(on);
        self.hit.set(true);
        Ok(())
    }
}

/// Iterates over the module's files of the events of an instance; null stands for the top one.
fn events_of<'a>(
    instance: *mut bindings::trace_array,
    held: &'a EventMutexHeld,
) -> impl Iterator<Item = &'a super::event::EventFile> {
    let is_of = move |own: &&'a KBox<OwnFile>| {
        own.is_pinned()
            && match instance.is_null() {
                // SAFETY: the instance is pinned.
                true => unsafe { (*own.instance()).name }.is_null(),
                false => own.instance() == instance,
            }
    };
    // SAFETY: the file stays while the mutex is held.
    FILES
        .get(held)
        .iter()
        .filter(is_of)
        .map(|own| unsafe { super::event::EventFile::from_raw(own.file.get()) })
}

/// Registers or unregisters a file with the core: the part of [`OwnFile::register`] that needs `event_mutex`.
///
/// # Safety
///
/// `event_mutex` must be held. `list` must be the file whose list the node is for, or null; and `file` the file to register as
/// long as that list is not empty, or null.
unsafe fn register(
    list: *mut bindings::trace_event_file,
    file: *mut bindings::trace_event_file,
    node: *mut bindings::event_trigger_data,
    on: bool,
) -> c_int {
    // SAFETY: `event_mutex` protects the list. The node is on it, and stays until the hits are over that may see it.
    let remove = move || unsafe { bindings::hist_helper_list_del_rcu(&raw mut (*node).list) };
    if !list.is_null() && !on {
        remove();
    }
    // SAFETY: the file is live.
    let alone = list.is_null() || unsafe { has_no_triggers(list) };
    if !list.is_null() && on {
        // SAFETY: `event_mutex` protects the list, which the node is not on, and which is live.
        unsafe {
            bindings::hist_helper_list_add_tail_rcu(
                &raw mut (*node).list,
                &raw mut (*list).triggers,
            );
        }
    }
    if file.is_null() || !alone {
        return 0;
    }
    let how = match on {
        true => bindings::trace_reg_TRACE_REG_REGISTER,
        false => bindings::trace_reg_TRACE_REG_UNREGISTER,
    };
    // SAFETY: the event is pinned, and its class with it.
    let (call, reg) = unsafe {
        let call = (*file).event_call;
        (call, (*(*call).class).reg)
    };
    let ret = match reg {
        // SAFETY: `event_mutex` is held, and the file stays until it is unregistered.
        Some(reg) => unsafe { reg(call, how, file.cast()) },
        None => EINVAL.to_errno(),
    };
    if ret != 0 && on && !list.is_null() {
        remove();
    }
    ret
}

/// # Safety
///
/// The names must be strings, `instance` may be null.
unsafe fn names(
    instance: *const c_char,
    system: *const c_char,
    event: *const c_char,
) -> Result<EventNames> {
    // SAFETY: by the contract.
    let [instance, system, event] = unsafe {
        [instance, system, event].map(|name| super::event::c_str(name).map(CStr::to_bytes))
    };
    EventNames::new(
        system.unwrap_or_default(),
        event.unwrap_or_default(),
        instance,
    )
}

/// Returns the module's file of an event, also if nobody uses it yet; null without such an event.
///
/// # Safety
///
/// The instance must be live, and the mutex held.
pub(super) unsafe fn __find_event_file(
    instance: *mut bindings::trace_array,
    system: *const c_char,
    event: *const c_char,
) -> *mut bindings::trace_event_file {
    // SAFETY: by the contract; an instance keeps its name, and the top one has none.
    let names = unsafe { names((*instance).name, system, event) };
    // SAFETY: by the contract.
    let file = names.and_then(|names| OwnFile::find(names, unsafe { &EventMutexHeld::assume() }));
    file.map_or(null_mut(), |own| own.file.get())
}

/// Returns the module's file of an event that can be enabled, with a reference; an error is returned as a pointer.
///
/// # Safety
///
/// The names must be strings, `instance` may be null. The mutex must not be held.
pub(super) unsafe fn trace_get_event_file(
    instance: *const c_char,
    system: *const c_char,
    event: *const c_char,
) -> *mut bindings::trace_event_file {
    let held = &EventMutex::lock();
    // SAFETY: by the contract.
    let names = unsafe { names(instance, system, event) };
    let found = names.and_then(|names| {
        let own = OwnFile::find(names, held)?;
        let file = own.file.get();
        // SAFETY: the event is pinned while the mutex is held.
        let event = unsafe { super::event::EventFile::from_raw(file) }.call();
        if !event.can_be_enabled() {
            return Err(EINVAL);
        }
        // SAFETY: null, or a module that is there as long as the event is pinned.
        if !unsafe { bindings::try_module_get(event.module()) } {
            return Err(EBUSY);
        }
        own.kept.set(own.kept.get() + 1);
        Ok(file)
    });
    found.unwrap_or_else(Error::to_ptr)
}

/// Takes back one [`trace_get_event_file`].
///
/// # Safety
///
/// The file must be what that returned. The mutex must not be held.
pub(super) unsafe fn trace_put_event_file(file: *mut bindings::trace_event_file) {
    let _mutex = EventMutex::lock();
    // SAFETY: by the contract.
    let own = unsafe { OwnFile::of(file) };
    own.kept.set(own.kept.get() - 1);
    // SAFETY: `trace_get_event_file` has taken the reference; the event is still pinned.
    unsafe { bindings::module_put(module_of(file)) };
    sweep_soon();
}

/// Adds a request that the core calls the triggers of an event, or takes one back.
///
/// # Safety
///
/// The file must be live, and the mutex held.
pub(super) unsafe fn trace_event_enable_disable(
    file: *mut bindings::trace_event_file,
    on: c_int,
    _soft: c_int,
) -> c_int {
    // SAFETY: by the contract.
    let own = unsafe { OwnFile::of(file) };
    let (_, count) = own.counts();
    // ORDERING: the number changes under the mutex only.
    let before = count.fetch_add(if on != 0 { 1 } else { -1 }, Relaxed);
    let change = match on != 0 {
        true => before == 0,
        false => before == 1 && own.registered.get(),
    };
    if on == 0 {
        sweep_soon();
    }
    kernel::error::from_result(|| {
        if change {
            own.register(on != 0)?;
        }
        Ok(0)
    })
}

/// Adds one to the number of triggers of an event, or subtracts one; asks the core to call them while there are any.
///
/// # Safety
///
/// The file must be live, and the mutex held.
pub(super) unsafe fn trace_event_trigger_enable_disable(
    file: *mut bindings::trace_event_file,
    on: c_int,
) -> c_int {
    // SAFETY: by the contract.
    let (count, _) = unsafe { OwnFile::of(file) }.counts();
    // ORDERING: the number changes under the mutex only.
    let before = count.fetch_add(if on != 0 { 1 } else { -1 }, Relaxed);
    // SAFETY: the file is live; this takes the address of its member.
    let flags = unsafe { &raw mut (*file).flags };
    match (on != 0, before) {
        // SAFETY: the flags of a live file; the function is atomic.
        (true, 0) => unsafe { bindings::set_bit(TRIGGER_MODE, flags) },
        // SAFETY: the flags of a live file; the function is atomic.
        (false, 1) => unsafe { bindings::clear_bit(TRIGGER_MODE, flags) },
        _ => return 0,
    }
    // SAFETY: by the contract.
    unsafe { trace_event_enable_disable(file, on, 1) }
}

/// Clears the flag by which an event writes records before it calls triggers, if no trigger needs a record.
///
/// # Safety
///
/// The file must be live, and the mutex held.
pub(super) unsafe fn update_cond_flag(file: *mut bindings::trace_event_file) {
    // CAST: a small flag.
    const NEEDS_RECORD: i32 = bindings::event_command_flags_EVENT_CMD_FL_NEEDS_REC as i32;

    // SAFETY: by the contract.
    let held = unsafe { EventMutexHeld::assume() };
    // SAFETY: by the contract.
    let view = unsafe { super::event::EventFile::from_raw(file) };
    // SAFETY: a node on the list is live, and has its operations.
    let mut needs = view
        .triggers(&held)
        .map(|node| unsafe { (*(*node.as_ptr()).cmd_ops).flags });
    if !needs.any(|flags| flags & NEEDS_RECORD != 0) {
        // SAFETY: the flags of a live file; the function is atomic.
        unsafe { bindings::clear_bit(TRIGGER_COND, &raw mut (*file).flags) };
    }
}

// --- records, instances ---

/// Returns whether a record is in this CPU's scratch page, which it begins. A page of the ring buffer begins with a
/// header instead, except the later pages of a sub-buffer of several pages: a long record at the beginning of one is
/// taken for a scratch record, and so for four bytes longer than it is. These bytes are within the page.
///
/// # Safety
///
/// This CPU must be writing the record, with preemption off.
#[inline(always)]
pub(super) unsafe fn is_scratch(event: *mut bindings::ring_buffer_event) -> bool {
    // SAFETY: by the contract, it is readable.
    event.addr() & (kernel::page::PAGE_SIZE - 1) == 0 && unsafe { (*event).type_len() } == 0
}

/// Does nothing: without the series, the core alone chooses where records are written first.
///
/// # Safety
///
/// None is needed.
pub(super) unsafe fn refuse_scratch(_instance: *mut bindings::trace_array, _is_refused: bool) {}

/// Keeps an instance from being removed. The top one stays anyhow.
///
/// # Safety
///
/// The instance must be live.
pub(super) unsafe fn tracing_check_open_get_tr(instance: *mut bindings::trace_array) -> c_int {
    // SAFETY: by the contract; an instance keeps its name.
    let name = unsafe { (*instance).name };
    if !name.is_null() {
        // SAFETY: the name is that of a live instance, so none is made; the call takes a reference on it.
        unsafe { bindings::trace_array_get_by_name(name, core::ptr::null()) };
    }
    0
}

/// Takes back one [`tracing_check_open_get_tr`].
///
/// # Safety
///
/// The instance must be live.
pub(super) unsafe fn trace_array_put(instance: *mut bindings::trace_array) {
    // SAFETY: by the contract; an instance keeps its name.
    if !unsafe { (*instance).name }.is_null() {
        // SAFETY: by the contract.
        unsafe { bindings::trace_array_put(instance) };
    }
}

/// Takes a reference on an event that user space made, whose file is pinned.
///
/// # Safety
///
/// The event must be live.
pub(super) unsafe fn trace_event_dyn_try_get_ref(call: *mut bindings::trace_event_call) -> bool {
    // SAFETY: by the contract.
    unsafe { references(call) }.fetch_add(1, Relaxed);
    true
}

/// Takes back one [`trace_event_dyn_try_get_ref`].
///
/// # Safety
///
/// The event must be live.
pub(super) unsafe fn trace_event_dyn_put_ref(call: *mut bindings::trace_event_call) {
    // SAFETY: by the contract.
    unsafe { references(call) }.fetch_add(-1, Full);
}

/// Returns the number of references on an event that user space made.
///
/// # Safety
///
/// The event must be live for `'a`, and dynamic.
unsafe fn references<'a>(call: *mut bindings::trace_event_call) -> &'a Atomic<i32> {
    // SAFETY: by the contract, the event is dynamic, so this member of the union is valid; an `atomic_t` has the layout
    // of an `Atomic<i32>`.
    unsafe { Atomic::from_ptr((&raw mut (*call).__bindgen_anon_2).cast::<i32>()) }
}

// --- strings that may not be there ---

/// Copies the string at a kernel address up to and including its NUL, or its first `count - 1` bytes and a NUL; returns
/// the number of bytes copied.
///
/// # Safety
///
/// `count` bytes must be writable at `to`.
pub(super) unsafe fn strncpy_from_kernel_nofault(
    to: *mut c_char,
    from: *const c_void,
    count: isize,
) -> isize {
    // SAFETY: by the contract.
    unsafe { copy_string(to, from, count, bindings::copy_from_kernel_nofault) }
}

/// Like [`strncpy_from_kernel_nofault`], for an address of the current task.
///
/// # Safety
///
/// `count` bytes must be writable at `to`.
pub(super) unsafe fn strncpy_from_user_nofault(
    to: *mut c_char,
    from: *const c_void,
    count: isize,
) -> isize {
    // SAFETY: by the contract.
    unsafe { copy_string(to, from, count, bindings::copy_from_user_nofault) }
}

/// # Safety
///
/// `count` bytes must be writable at `to`, and `copy` take any address.
unsafe fn copy_string(
    to: *mut c_char,
    from: *const c_void,
    count: isize,
    copy: unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> c_long,
) -> isize {
    let mut copied = 0usize;
    let count = count.unsigned_abs();
    while copied < count {
        let from = from.wrapping_byte_add(copied);
        // Memory after the string may not be mapped, but a page is mapped as a whole.
        let in_page = kernel::page::PAGE_SIZE - from.addr() % kernel::page::PAGE_SIZE;
        let size = in_page.min(count - copied);
        let to = to.wrapping_add(copied);
        // SAFETY: `size` bytes can be written at `to`.
        if unsafe { copy(to.cast(), from, size) } != 0 {
            return EFAULT.to_errno() as isize;
        }
        // SAFETY: the call has written these bytes.
        let bytes = unsafe { core::slice::from_raw_parts(to.cast::<u8>(), size) };
        if let Some(end) = bytes.iter().position(|&byte| byte == 0) {
            return (copied + end + 1) as isize;
        }
        copied += size;
    }
    if let Some(last) = count.checked_sub(1) {
        // SAFETY: `last` is within the bytes that can be written.
        unsafe { to.add(last).write(0) };
    }
    count as isize
}
