// SPDX-License-Identifier: GPL-2.0

//! The tracing core of a kernel without the series: what that does not export, made of what all kernels export.
//!
//! C counterparts: [`kernel/trace/trace_events_trigger.c`](srctree/kernel/trace/trace_events_trigger.c),
//! [`kernel/trace/trace_events.c`](srctree/kernel/trace/trace_events.c), [`kernel/trace/trace.c`](srctree/kernel/trace/trace.c).
//! The functions have the names, arguments and results of those of the core, where it has them.
//!
//! An event that has triggers in an instance has an [`OwnFile`] there: a `trace_event_file` of the module. The `reg()`
//! of the event's class registers this file as the data of a probe; from then on the core calls its triggers. The
//! core's own file of the event is pinned meanwhile, so neither the event nor the instance can be removed.
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
#[path = "stock/view.rs"]
mod view;

use super::{
    bindings,
    delayed,
    guard::{
        wait_for_hits,
        EventMutex,
        EventMutexHeld,
        Guarded, //
    },
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
            stamps_in_ns,
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
            tracing_open_file_tr,
            tracing_readme_append,
            tracing_release_file_tr, //
        },
    },
    super::bindings::{
        hist_stock_mutex as event_mutex,
        hist_stock_poll_wq as hist_poll_wq, //
    },
};

/// All names are free in the files of the module.
pub(crate) const HAS_HIST: bool = false;

/// The zeroed command that each command of the module is filled in from.
pub(super) const COMMAND: bindings::event_command = pin_init::zeroed();

/// The registered commands.
static COMMANDS: Guarded<KVec<Registered>> = Guarded::new(KVec::new());

/// A command of [`COMMANDS`].
#[derive(Clone, Copy, PartialEq)]
struct Registered(*mut bindings::event_command);

// SAFETY: the pointer is used under the mutex only.
unsafe impl Send for Registered {}

/// The module's files of events that are in use, or that were looked up a moment ago.
static FILES: Guarded<KVec<Own>> = Guarded::new(KVec::new());

/// The first of the nodes that are to be freed; each node points to the next one.
static GRAVES: Atomic<*mut OwnNode> = Atomic::new(null_mut());

/// Returns the proof that the mutex is held. The caller holds it; this does not lock.
///
/// # Safety
///
/// The mutex must be held, until the value is dropped.
unsafe fn held() -> EventMutexHeld {
    // SAFETY: by the contract.
    unsafe { EventMutexHeld::assume() }
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
        let _ = commands.insert_within_capacity(0, Registered(command));
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
    let mut unused = KVec::new();
    let mutex = EventMutex::lock();
    let files = FILES.get(&mutex);
    let mut at = 0;
    while let Some(file) = files.get(at) {
        // Without memory, a later run of the work frees the file.
        if file.is_used() || unused.reserve(1, GFP_KERNEL).is_err() {
            at += 1;
        } else if let Ok(file) = files.remove(at) {
            let _ = unused.push_within_capacity(file);
        }
    }
    // ORDERING: a node whose file goes was buried under the mutex.
    let mut grave = GRAVES.xchg(null_mut(), Full);
    drop(mutex);
    if grave.is_null() && unused.is_empty() {
        return;
    }
    wait_for_hits();
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
    // The nodes point to these files, so the files are freed last.
    drop(unused);
}

// --- files of events ---

/// The module's own file of an event in an instance.
#[repr(C)]
struct OwnFile {
    file: Opaque<bindings::trace_event_file>,
    /// The file of the core, with references on it, on the instance and on the event.
    real: *mut bindings::trace_event_file,
    /// How often it is open. Changes under the mutex.
    opened: Cell<u32>,
    /// Whether the core calls its triggers. Changes under the mutex.
    registered: Cell<bool>,
    /// The index in `clocks::CLOCKS` of the clock that gives time stamps in the instance.
    clock: Atomic<u32>,
}

type Own = KBox<OwnFile>;

// SAFETY: the value holds a reference on `real`, and the members that change do so under the mutex.
unsafe impl Send for OwnFile {}

// CAST: flags of the C enumeration.
const TRIGGER_MODE: c_ulong = bindings::EVENT_FILE_FL_TRIGGER_MODE_BIT as c_ulong;
const TRIGGER_COND: c_ulong = bindings::EVENT_FILE_FL_TRIGGER_COND_BIT as c_ulong;
/// Flags by which only triggers see the records, and by which the core leaves out tasks that `set_event_pid` of the
/// instance does not name, if it names any.
const FLAGS: c_ulong = bindings::EVENT_FILE_FL_SOFT_DISABLED as c_ulong
    | bindings::EVENT_FILE_FL_PID_FILTER as c_ulong;

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

    /// Returns the module's file of an event in an instance; makes it if there is none.
    fn find(
        instance: Option<&CStr>,
        system: &CStr,
        event: &CStr,
        held: &EventMutexHeld,
    ) -> Result<&'static Self> {
        // SAFETY: the names are only compared; null stands for the top instance.
        let real = kernel::error::from_err_ptr(unsafe {
            bindings::trace_get_event_file(
                instance.map_or(core::ptr::null(), CStr::as_char_ptr),
                system.as_char_ptr(),
                event.as_char_ptr(),
            )
        })?;
        let files = FILES.get(held);
        if let Some(own) = files.iter().find(|own| own.real == real) {
            // SAFETY: the reference was taken above; the file that was found holds another one.
            unsafe { bindings::trace_put_event_file(real) };
            // SAFETY: the file stays in its box while the mutex is held. A caller that keeps it for longer counts as a
            // user.
            let own = &raw const **own;
            // SAFETY: the pointer was made from a reference one line above; the file stays in its box.
            return Ok(unsafe { &*own });
        }
        // SAFETY: the file is pinned.
        let (call, tr) = unsafe { ((*real).event_call, (*real).tr) };
        let clock = files
            .iter()
            .find(|own| own.instance() == tr)
            .map_or(0, |own| own.clock.load(Relaxed));
        // From here on, dropping the value releases the reference on the core's file.
        let own = KBox::new(
            Self {
                file: Opaque::new(bindings::trace_event_file {
                    event_call: call,
                    tr,
                    flags: FLAGS,
                    ..Default::default()
                }),
                real,
                opened: Cell::new(0),
                registered: Cell::new(false),
                clock: Atomic::new(clock),
            },
            GFP_KERNEL,
        );
        let own = own.inspect_err(|_| {
            // SAFETY: the reference was taken above.
            unsafe { bindings::trace_put_event_file(real) };
        })?;
        let file = own.file.get();
        for head in [
            // SAFETY: the file is ours.
            unsafe { &raw mut (*file).list },
            // SAFETY: the file is ours.
            unsafe { &raw mut (*file).triggers },
        ] {
            // SAFETY: the file is ours; an empty list points at itself.
            unsafe {
                head.write(bindings::list_head {
                    next: head,
                    prev: head,
                })
            };
        }
        let at = &raw const *own;
        files.push(own, GFP_KERNEL)?;
        // Frees the file again if the caller fails before the file is used.
        sweep_soon();
        // SAFETY: the file stays in its box while the mutex is held. A caller that keeps it for longer counts as a
        // user.
        Ok(unsafe { &*at })
    }

    fn instance(&self) -> *mut bindings::trace_array {
        // SAFETY: the member does not change after the file was made.
        unsafe { (*self.file.get()).tr }
    }

    /// The name of the event.
    fn name(&self) -> Option<&CStr> {
        // SAFETY: the event is pinned, and keeps its name.
        unsafe {
            super::event::c_str(bindings::hist_helper_trace_event_name(
                (*self.file.get()).event_call,
            ))
        }
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

    fn is_used(&self) -> bool {
        let (triggers, enabled) = self.counts();
        // ORDERING: the numbers change under the mutex only.
        self.opened.get() != 0 || triggers.load(Relaxed) != 0 || enabled.load(Relaxed) != 0
    }

    /// Keeps the file from being freed until [`OwnFile::close`].
    fn open(&self, _held: &EventMutexHeld) -> *mut bindings::trace_event_file {
        self.opened.set(self.opened.get().saturating_add(1));
        self.file.get()
    }

    /// Takes back one [`OwnFile::open`].
    fn close(&self, _held: &EventMutexHeld) {
        self.opened.set(self.opened.get().saturating_sub(1));
        sweep_soon();
    }

    /// Makes the core call the triggers of the file, or stop calling them.
    fn register(&self, on: bool) -> Result {
        // SAFETY: the event is pinned, and its class with it.
        let (call, class) = unsafe {
            let call = (*self.file.get()).event_call;
            (call, (*call).class)
        };
        // SAFETY: the class is that of a live event, and keeps the name of its system.
        if on && unsafe { CStr::from_char_ptr((*class).system) } == c"syscalls" {
            // An instance has one place for the file of a system call, and the core's file is in it.
            let name = self.name().unwrap_or_default().as_char_ptr().cast_mut();
            let mut texts = [c"System calls need a kernel with the series".as_char_ptr()];
            // SAFETY: the instance is live, and the strings are constant or stay as long as the event.
            unsafe {
                tracing_log_err(
                    self.instance(),
                    c"syscalls".as_char_ptr(),
                    name,
                    texts.as_mut_ptr(),
                    0,
                    0,
                )
            };
            return Err(EOPNOTSUPP);
        }
        let mut data = (call, self.file.get(), on);
        // SAFETY: the mutex is held. `register` takes data of this type, which outlives the call.
        let ret = unsafe {
            bindings::hist_stock_with_event_mutex(Some(register), (&raw mut data).cast())
        };
        to_result(ret)?;
        self.registered.set(on);
        Ok(())
    }
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        // SAFETY: releases the reference that `trace_get_event_file()` returned in `find`.
        unsafe { bindings::trace_put_event_file(self.real) };
    }
}

/// Iterates over the module's files of the events of an instance; null stands for the top one.
fn events_of<'a>(
    instance: *mut bindings::trace_array,
    held: &'a EventMutexHeld,
) -> impl Iterator<Item = &'a super::event::EventFile> {
    let is_of = move |own: &&'a Own| match instance.is_null() {
        // SAFETY: an instance lives as long as its files.
        true => unsafe { (*own.instance()).name }.is_null(),
        false => own.instance() == instance,
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
/// `data` must be an event, a file, and whether to register it.
unsafe extern "C" fn register(data: *mut c_void) -> c_int {
    type Data = (
        *mut bindings::trace_event_call,
        *mut bindings::trace_event_file,
        bool,
    );
    // SAFETY: by the contract.
    let (call, file, on) = unsafe { data.cast::<Data>().read() };
    let how = match on {
        true => bindings::trace_reg_TRACE_REG_REGISTER,
        false => bindings::trace_reg_TRACE_REG_UNREGISTER,
    };
    // SAFETY: the event is pinned, and its class with it.
    match unsafe { (*(*call).class).reg } {
        // SAFETY: `event_mutex` is held, and the file stays until it is unregistered.
        Some(reg) => unsafe { reg(call, how, file.cast()) },
        None => EINVAL.to_errno(),
    }
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
    let (name, system, event) = unsafe {
        (
            super::event::c_str((*instance).name),
            CStr::from_char_ptr(system),
            CStr::from_char_ptr(event),
        )
    };
    // SAFETY: by the contract.
    let file = OwnFile::find(name, system, event, unsafe { &held() });
    file.map_or(null_mut(), |own| own.file.get())
}

/// Returns the module's file of an event, with a reference; an error is returned as a pointer.
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
    let (instance, system, event) = unsafe {
        (
            super::event::c_str(instance),
            CStr::from_char_ptr(system),
            CStr::from_char_ptr(event),
        )
    };
    match OwnFile::find(instance, system, event, held) {
        Ok(own) => own.open(held),
        Err(error) => error.to_ptr(),
    }
}

/// Takes back one [`trace_get_event_file`].
///
/// # Safety
///
/// The file must be what that returned. The mutex must not be held.
pub(super) unsafe fn trace_put_event_file(file: *mut bindings::trace_event_file) {
    // SAFETY: by the contract, the file is open.
    unsafe { OwnFile::of(file) }.close(&EventMutex::lock());
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
    let (held, view) = unsafe { (held(), super::event::EventFile::from_raw(file)) };
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
pub(super) unsafe fn refuse_scratch(_instance: *mut bindings::trace_array) {}

/// Does nothing, like [`refuse_scratch`].
///
/// # Safety
///
/// None is needed.
pub(super) unsafe fn allow_scratch(_instance: *mut bindings::trace_array) {}

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
