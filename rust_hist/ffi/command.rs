// SPDX-License-Identifier: GPL-2.0

//! A trigger command of the module, and its triggers.
//!
//! C counterpart: [`kernel/trace/trace_events_trigger.c`](srctree/kernel/trace/trace_events_trigger.c).
//!
//! The core calls everything here with `event_mutex` held, except for the [`EntryFn`]s and [`Trigger::miss`]. These run
//! in the context of the event, which may be an NMI, while the trigger is attached to its event file, and for up to a
//! tracepoint grace period after it was detached.
//!
//! A trigger whose hits are timed has another function before its own; all other triggers pay nothing. A work item of
//! the command may check the cost once a second, see [`Trigger::watch`].
//!
//! A command refuses lines until [`Command::open`], so that steps of the module's initialisation after the registration
//! may fail: there can be no trigger yet.
//!
//! Every trigger holds a reference to the module, which the core drops after it has freed the trigger. A trigger on an
//! event of another module is removed when that module goes, which the core does not do.

mod hit;

pub(crate) use self::hit::{
    EntryFn,
    HitHandler,
    LookHandler,
    RecordFallback,
    RecordHandler, //
};

use self::hit::HitFn;
use super::{
    bindings,
    delayed,
    event::{
        EventFile,
        ModuleId,
        TriggerNode, //
    },
    guard::{
        EventMutex,
        EventMutexHeld,
        Guarded,
        PreemptOff, //
    },
    meter::Meter,
    module_notifier::{
        ModuleGoing,
        Watched, //
    },
    seq::{
        self,
        SeqWriter, //
    },
    trace_core, //
};
use crate::program::filter::Effort;
use crate::program::filter::Filter;
use crate::sync::{
    Acquire,
    Atomic,
    Release, //
};
use core::{
    cell::Cell,
    ffi::CStr,
    marker::PhantomData,
    mem::ManuallyDrop,
    ptr::NonNull, //
};
use kernel::{
    error::{
        from_result,
        to_result, //
    },
    prelude::*,
    sync::SetOnce,
    types::{
        ForeignOwnable,
        Opaque, //
    }, //
};

// CAST: a small flag.
const NEEDS_RECORD: i32 = bindings::event_command_flags_EVENT_CMD_FL_NEEDS_REC as i32;

// CAST: the number of a bit in a word of flags.
const TRIGGER_COND: c_ulong = bindings::EVENT_FILE_FL_TRIGGER_COND_BIT as c_ulong;

/// A kind of triggers; the implementor is the data of one trigger.
#[vtable]
pub(crate) trait Trigger: Sized + Send + Sync + 'static {
    /// The bit by which nodes of this kind are distinguished from all others on a list of triggers.
    const TYPE: u32;

    /// Whether the trigger needs a record. If not, the event need not write one for this trigger, and calls of
    /// [`Trigger::miss`] are normal.
    const NEEDS_RECORD: bool;

    /// Whether a new trigger is inserted before all others of its event, instead of after them.
    const FIRST: bool;

    /// Data that all triggers of a command share, created for the first one that needs them.
    type Shared: Send + Sync;

    /// Carries out one line that was written to a `trigger` file.
    fn parse(
        command: &Command<Self>,
        file: &EventFile,
        line: Line<'_>,
        held: &EventMutexHeld,
    ) -> Result;

    /// Removes all triggers of this kind from `file`, which is being opened with truncation.
    fn remove_all(file: &EventFile, held: &EventMutexHeld);

    /// Returns the function that handles the records of the trigger. It never changes.
    fn entry(&self) -> EntryFn<Self>;

    /// Handles a call without a record. If the trigger needs records, such a call comes from a race with the set-up of
    /// the event.
    fn miss(&self, preempt: &PreemptOff<'_>);

    /// Removes a trigger whose event goes away with its module.
    fn event_going(trigger: Attached<'_, Self>, held: &EventMutexHeld);

    /// Called when the trigger is about to be attached to its event file.
    fn attaching(&self, _held: &EventMutexHeld) {}

    /// Called when the trigger was detached from its event file, before it is freed. A hit may still be in progress.
    ///
    /// Also called during the removal of an instance, which holds `trace_types_lock`.
    fn detached(&self, _held: &EventMutexHeld) {}

    /// Checks the triggers of a command, a second after [`Command::watch_soon`]; returns whether to check again a
    /// second later.
    fn watch(_command: &Command<Self>, _held: &EventMutexHeld) -> bool {
        false
    }

    /// Writes the trigger's line in the `trigger` file.
    fn print(trigger: &Attached<'_, Self>, out: &mut SeqWriter<'_>) -> core::fmt::Result;
}

/// A line for a command, which the core has split at the first separator.
pub(crate) struct Line<'a> {
    /// Whether the line began with `!`.
    pub(crate) remove: bool,
    /// The text after the name of the command, without blanks at both ends; `None` if there is none.
    pub(crate) params: Option<&'a CStr>,
}

/// A registered trigger command.
///
/// # Invariants
///
/// - `command` is on the core's list.
/// - `nodes` are the command's nodes that are attached to event files, and has room for `promised` more. Both are used
///   under `event_mutex`.
#[pin_data(PinnedDrop)]
pub(crate) struct Command<T: Trigger> {
    #[pin]
    command: Opaque<bindings::event_command>,
    nodes: Guarded<KVec<*mut bindings::event_trigger_data>>,
    /// The number of triggers that are about to be attached: the values of [`Ready`].
    promised: Cell<usize>,
    /// Not 0 once lines are accepted.
    open: Atomic<u32>,
    /// The work item that calls [`Trigger::watch`]. It takes `event_mutex`, so a holder of the mutex must not wait for
    /// it; it finds triggers in `nodes`, so their removal need not wait.
    #[pin]
    work: delayed::Work,
    shared: SetOnce<T::Shared>,
}

/// The private data of a node.
///
/// # Invariants
///
/// - `file` is the event file that the node is for or attached to. It is valid as long as the node is attached, and
///   until the hits that began then are over.
/// - `operations` are a copy of those of `command`, except for `trigger`, which is a function for this data: with a
///   `filter` [`Command::filtered`] or [`Command::filtered_slowly`], and the core is told that a record is needed; else
///   [`Command::timed`] iff there is a `timed`, which then does not change any more.
/// - `node` is the node, and `command` is registered as long as the node exists.
// Fields that every hit needs come first.
#[repr(C)]
struct Private<T: Trigger> {
    file: *mut bindings::trace_event_file,
    data: T,
    filter: Option<Filter>,
    timed: Option<Meter>,
    node: *mut bindings::event_trigger_data,
    command: *const Command<T>,
    operations: Opaque<bindings::event_command>,
}

// SAFETY: the core protects its list by its locks, `nodes` is used under `event_mutex`, and everything else is
// constant.
unsafe impl<T: Trigger> Send for Command<T> {}

// SAFETY: the core protects its list by its locks, `nodes` is used under `event_mutex`, and everything else is
// constant.
unsafe impl<T: Trigger> Sync for Command<T> {}

impl<T: Trigger> Command<T> {
    /// By these flags the core distinguishes a command from a post trigger, which it runs without the record.
    const FLAGS: i32 = if T::NEEDS_RECORD { NEEDS_RECORD } else { 0 };

    const VTABLE: bindings::event_command = bindings::event_command {
        trigger_type: T::TYPE,
        flags: Self::FLAGS,
        parse: Some(Self::parse_callback),
        unreg_all: Some(Self::unreg_all_callback),
        free: Some(Self::free_callback),
        print: Some(Self::print_callback),
        ..trace_core::COMMAND
    };

    /// Registers the command `name`, which refuses lines until [`Command::open`]; `EBUSY` if the name is in use.
    pub(crate) fn register(name: &'static CStr) -> impl PinInit<Registration<T>, Error> {
        Watched::new(try_pin_init!(Self {
            nodes: Guarded::new(KVec::new()),
            promised: Cell::new(0),
            open: Atomic::new(0),
            work <- delayed::new(Self::work_callback),
            shared: SetOnce::new(),
            command <- Opaque::try_ffi_init(|command: *mut bindings::event_command| {
                let operations = bindings::event_command {
                    name: name.as_char_ptr().cast_mut(),
                    ..Self::VTABLE
                };
                // SAFETY: the pointer is the place of the command.
                unsafe { command.write(operations) };
                // SAFETY: the command is complete, and stays in place until `drop` takes it off the list.
                to_result(unsafe { trace_core::register_event_command(command) })
            }),
        }))
    }

    /// Makes the command accept lines.
    pub(crate) fn open(&self) {
        // ORDERING: pairs with `parse_callback`.
        self.open.store(1, Release);
    }

    /// Makes the work item call [`Trigger::watch`] in a second, unless it is pending. Does not sleep.
    pub(crate) fn watch_soon(&self, _held: &EventMutexHeld) {
        const WATCH_MS: u32 = 1000;
        // SAFETY: the work item was initialised with the command, and `drop` cancels it.
        unsafe { delayed::queue(&self.work, WATCH_MS) };
    }

    /// # Safety
    ///
    /// Only the workqueue may call this, with the work item of a command.
    unsafe extern "C" fn work_callback(work: *mut bindings::work_struct) {
        let work = work.cast::<bindings::delayed_work>();
        // SAFETY: by the contract the work item is a member of a `Command`, which waits for it before it is freed.
        let command = unsafe { owner_of!(work, Self, work) };
        let held = &EventMutex::lock();
        if T::watch(command, held) {
            command.watch_soon(held);
        }
    }

    /// Returns the name of the command.
    pub(crate) fn name(&self) -> &'static CStr {
        // SAFETY: `register` set the name, a static string.
        unsafe { CStr::from_char_ptr((*self.command.get()).name) }
    }

    /// Returns the data that the command's triggers share, which `make` creates if they are missing.
    pub(crate) fn shared(
        &self,
        make: impl FnOnce() -> Result<T::Shared>,
        _held: &EventMutexHeld,
    ) -> Result<&T::Shared> {
        if self.shared.as_ref().is_none() {
            self.shared.populate(make()?);
        }
        // The mutex excludes other creators, and the data are never removed.
        self.shared.as_ref().ok_or(ENOMEM)
    }

    /// Iterates over all triggers of the command, on any event, in the order of their creation.
    ///
    /// If triggers are created or removed meanwhile, some may be left out, or visited twice.
    pub(crate) fn triggers<'a>(
        &'a self,
        held: &'a EventMutexHeld,
    ) -> impl Iterator<Item = Attached<'a, T>> {
        let mut at = 0;
        core::iter::from_fn(move || {
            let node = *self.nodes.get(held).get(at)?;
            at += 1;
            // SAFETY: by the type invariant this is a node of this command that is attached.
            Some(Attached(unsafe { Node::from_raw(node) }))
        })
    }

    /// # Safety
    ///
    /// Only the trigger core may call this, with `event_mutex` held and the arguments of `event_command::parse`.
    unsafe extern "C" fn parse_callback(
        command: *mut bindings::event_command,
        file: *mut bindings::trace_event_file,
        glob: *mut c_char,
        _cmd: *mut c_char,
        params: *mut c_char,
    ) -> c_int {
        // SAFETY: the core has `command` from `register`, and calls it while it is registered.
        let command = unsafe { owner_of!(command, Self, command) };
        // ORDERING: pairs with `open`.
        if command.open.load(Acquire) == 0 {
            // CAST: a small number.
            return -(bindings::EAGAIN as c_int);
        }
        // SAFETY: the core calls with the mutex held, for the whole call.
        let held = unsafe { EventMutexHeld::assume() };
        // SAFETY: the file is live while the mutex is held.
        let file = unsafe { EventFile::from_raw(file) };
        let line = Line {
            // SAFETY: `glob` is a string.
            remove: unsafe { glob.read() } == b'!' as c_char,
            // SAFETY: `params` is null or a string of the core that does not change meanwhile.
            params: (!params.is_null()).then(|| unsafe { CStr::from_char_ptr(params) }),
        };
        from_result(|| T::parse(command, file, line, &held).map(|()| 0))
    }

    /// # Safety
    ///
    /// Only the trigger core may call this, with `event_mutex` held and a live file.
    unsafe extern "C" fn unreg_all_callback(file: *mut bindings::trace_event_file) {
        // SAFETY: the core calls with the mutex held, for the whole call.
        let held = unsafe { EventMutexHeld::assume() };
        // SAFETY: the file is live while the mutex is held.
        T::remove_all(unsafe { EventFile::from_raw(file) }, &held);
    }

    /// # Safety
    ///
    /// Only the trigger core may call this, with `event_mutex` held and a node of this module off its list.
    unsafe extern "C" fn free_callback(data: *mut bindings::event_trigger_data) {
        // SAFETY: the core calls with the mutex held, for the whole call.
        let held = unsafe { EventMutexHeld::assume() };
        // SAFETY: by the contract; the node is freed below.
        unsafe { Node::<T>::from_raw(data) }.detached(&held);
        // SAFETY: the node is off its lists, and only this call frees it.
        unsafe { trace_core::trigger_data_free(data) };
    }

    /// # Safety
    ///
    /// Only the trigger core may call this, with `event_mutex` held, a live `seq_file` and a node of this module.
    unsafe extern "C" fn print_callback(
        m: *mut bindings::seq_file,
        data: *mut bindings::event_trigger_data,
    ) -> c_int {
        // SAFETY: by the contract; the node is live while the mutex is held.
        let trigger = Attached(unsafe { Node::<T>::from_raw(data) });
        // SAFETY: `m` is live and this call is its only user.
        unsafe { seq::show(m, |out| T::print(&trigger, out)) }
    }

    /// # Safety
    ///
    /// Only the trigger core may call this, once, after the grace period, with a node of this module.
    unsafe extern "C" fn private_free_callback(data: *mut bindings::event_trigger_data) {
        // SAFETY: `Prepared::new` stored the box here, and no other context uses it any more.
        drop(unsafe { KBox::<Private<T>>::from_foreign((*data).private_data) });
    }
}

impl<T: Trigger> ModuleGoing for Command<T> {
    /// Removes the triggers on events of `module`, which is going away.
    fn module_going(&self, module: ModuleId) {
        let held = EventMutex::lock();
        let is_going = |trigger: &Attached<'_, T>| trigger.file().is_of_module(module);
        while let Some(trigger) = self.triggers(&held).find(is_going) {
            T::event_going(trigger, &held);
        }
        trace_core::let_go(held);
    }
}

/// Keeps a command registered until it is dropped.
pub(crate) type Registration<T> = Watched<Command<T>>;

#[pinned_drop]
impl<T: Trigger> PinnedDrop for Command<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: registered by `register`. No trigger is left, as each of them pins the module.
        let ret = unsafe { trace_core::unregister_event_command(self.command.get()) };
        if ret != 0 {
            pr_err!("the trigger command was not registered any more: {}\n", ret);
        }
        // In a last run the work finds no trigger. It may wait for `event_mutex`, which is not held here.
        // SAFETY: the work item was initialised with the command, and nothing queues it any more.
        unsafe { delayed::cancel(&self.work) };
    }
}

/// A node of the command of `T` that is not freed. Its private data is a boxed [`Private`].
#[repr(transparent)]
struct Node<T>(TriggerNode, PhantomData<T>);

impl<T: Trigger> Node<T> {
    /// # Safety
    ///
    /// `node` must be a node of the command of `T` that is not freed for `'a`.
    #[inline(always)]
    unsafe fn from_raw<'a>(node: *mut bindings::event_trigger_data) -> &'a Self {
        // SAFETY: by the contract; `Node` is a transparent wrapper.
        unsafe { &*node.cast::<Self>() }
    }

    fn as_ptr(&self) -> *mut bindings::event_trigger_data {
        self.0.as_ptr()
    }

    #[inline(always)]
    fn private(&self) -> &Private<T> {
        // SAFETY: `Prepared::new` stored the box there, which is freed with the node.
        unsafe { KBox::borrow((*self.as_ptr()).private_data) }
    }

    /// Returns the command of the trigger.
    fn command(&self) -> &Command<T> {
        // SAFETY: by the invariant of `Private`.
        unsafe { &*self.private().command }
    }

    /// Updates the command's state when the trigger is detached from its event file.
    fn detached(&self, held: &EventMutexHeld) {
        let own = self.as_ptr();
        self.command()
            .nodes
            .get(held)
            .retain(|&mut node| node != own);
        self.private().data.detached(held);
    }
}

/// A complete trigger that is not attached to its event file; dropping it frees it.
///
/// # Invariants
///
/// No other context knows the node.
pub(crate) struct Prepared<T: Trigger>(NonNull<Node<T>>);

impl<T: Trigger> Prepared<T> {
    /// Allocates a node for `data` and `file`, which takes a reference to the module. The filter decides which records
    /// are its hits.
    pub(crate) fn new(
        command: &Command<T>,
        data: T,
        filter: Option<Filter>,
        file: &EventFile,
    ) -> Result<Self> {
        let cmd = command.command.get();
        let effort = filter.as_ref().map(Filter::effort);
        let function: HitFn = match effort {
            None => data.entry().0,
            Some(Effort::Bytes) => Command::<T>::filtered::<false, false>,
            Some(Effort::Places) => Command::<T>::filtered::<true, false>,
            Some(Effort::Task) => Command::<T>::filtered::<false, true>,
            Some(Effort::All) => Command::<T>::filtered_slowly,
        };
        let operations = bindings::event_command {
            name: command.name().as_char_ptr().cast_mut(),
            trigger: Some(function),
            flags: effort.map_or(Command::<T>::FLAGS, |_| NEEDS_RECORD),
            ..Command::<T>::VTABLE
        };
        let mut private = KBox::new(
            Private {
                file: file.as_ptr(),
                data,
                filter,
                timed: None,
                node: core::ptr::null_mut(),
                command,
                operations: Opaque::new(operations),
            },
            GFP_KERNEL,
        )?;
        // SAFETY: `cmd` is registered; the name is unused, a null parameter means no count.
        let node = unsafe {
            trace_core::trigger_data_alloc(
                cmd,
                (*cmd).name,
                core::ptr::null_mut(),
                core::ptr::null_mut(),
            )
        };
        let node = NonNull::new(node).ok_or(ENOMEM)?;
        // INVARIANT: this is the node. The file and the function match the data, and the node pins the module, and so
        // the command.
        private.node = node.as_ptr();
        // As C does for its copies for named triggers: the core finds all operations except `parse` through the node.
        let operations = private.operations.get();
        // SAFETY: no other context knows the node.
        unsafe {
            (*node.as_ptr()).cmd_ops = operations;
            (*node.as_ptr()).private_data = private.into_foreign();
            (*node.as_ptr()).private_data_free = Some(Command::<T>::private_free_callback);
        }
        // INVARIANT: the node was just created.
        Ok(Self(node.cast()))
    }

    fn node(&self) -> &Node<T> {
        // SAFETY: the node is freed together with this value.
        unsafe { self.0.as_ref() }
    }

    /// Returns the event file that the trigger is for.
    fn file(&self) -> *mut bindings::trace_event_file {
        self.node().private().file
    }

    /// Makes the hits of the trigger be counted and timed; `ENOMEM` if there is no memory.
    pub(crate) fn time(&mut self) -> Result {
        let meter = Meter::new()?;
        // SAFETY: `new` stored the box there; no other context knows the node.
        let private = unsafe { &mut *(*self.node().as_ptr()).private_data.cast::<Private<T>>() };
        if private.timed.is_none() {
            // INVARIANT: the function set below is for a trigger with a `timed`.
            private.timed = Some(meter);
            if private.filter.is_none() {
                // SAFETY: no other context knows the node, so its operations are not in use.
                unsafe { (*private.operations.get()).trigger = Some(Command::<T>::timed) };
            }
        }
        Ok(())
    }

    /// Makes the trigger start paused.
    pub(crate) fn set_paused(&mut self) {
        self.node().0.set_paused(true);
    }

    /// Makes the event call its triggers, before this one is added to them.
    pub(crate) fn enable(self, held: &EventMutexHeld) -> Result<Ready<'_, T>> {
        let command = self.node().command();
        // INVARIANT: there is room for one more than was promised.
        let promised = command.promised.get().saturating_add(1);
        command.nodes.get(held).reserve(promised, GFP_KERNEL)?;
        command.promised.set(promised);
        // SAFETY: the file is live and `event_mutex` is held.
        let ret = unsafe { trace_core::trace_event_trigger_enable_disable(self.file(), 1) };
        // The count is raised even if the call fails.
        let ready = Ready {
            prepared: self,
            held,
        };
        to_result(ret)?;
        Ok(ready)
    }
}

impl<T: Trigger> Drop for Prepared<T> {
    fn drop(&mut self) {
        // SAFETY: by the type invariant no other context knows the node; its data are freed with it.
        unsafe { trace_core::trigger_data_free(self.node().as_ptr()) };
    }
}

/// A complete trigger whose event already calls its triggers, but to which it is not attached yet; dropping it undoes
/// that and frees the trigger.
///
/// # Invariants
///
/// The trigger count of the file was raised for this trigger, and room for its node was reserved in the list of the
/// command.
pub(crate) struct Ready<'a, T: Trigger> {
    prepared: Prepared<T>,
    held: &'a EventMutexHeld,
}

impl<T: Trigger> Ready<'_, T> {
    /// Adds the trigger to the list of its file.
    ///
    /// This is the single visible step.
    pub(crate) fn attach(self) {
        let ready = ManuallyDrop::new(self);
        let prepared = &ready.prepared;
        let file = prepared.file();
        let node = prepared.node().as_ptr();
        prepared.node().private().data.attaching(ready.held);
        if T::NEEDS_RECORD || prepared.node().private().filter.is_some() {
            // SAFETY: the flags belong to a live file; the function is atomic. The bit is set before the node is added,
            // so that the node is not called without a record.
            unsafe { bindings::set_bit(TRIGGER_COND, &raw mut (*file).flags) };
        }
        let command = prepared.node().command();
        // INVARIANT: the reserved room is used here, or released by `drop`.
        command
            .promised
            .set(command.promised.get().saturating_sub(1));
        // By the type invariant there is room, so this cannot fail.
        let _ = command.nodes.get(ready.held).push_within_capacity(node);
        // SAFETY: the list is initialised, and its writers hold `event_mutex`.
        let mut behind = unsafe { &raw mut (*file).triggers };
        if T::FIRST {
            // SAFETY: the writers of the list hold `event_mutex`. Seen from its first node, the end of the list is its
            // beginning.
            behind = unsafe { (*behind).next };
        }
        // SAFETY: the node is complete and on no list; the writers of this one hold `event_mutex`.
        unsafe { bindings::hist_helper_list_add_tail_rcu(&raw mut (*node).list, behind) };
    }
}

impl<T: Trigger> Drop for Ready<'_, T> {
    fn drop(&mut self) {
        let command = self.prepared.node().command();
        command
            .promised
            .set(command.promised.get().saturating_sub(1));
        // SAFETY: the file is live while the mutex is held; by the type invariant the count is raised.
        unsafe { trace_core::trace_event_trigger_enable_disable(self.prepared.file(), 0) };
    }
}

/// A trigger that is attached to its event file, borrowed under `event_mutex`.
///
/// # Invariants
///
/// The node is attached to its file, and `event_mutex` is held for `'a`.
pub(crate) struct Attached<'a, T: Trigger>(&'a Node<T>);

impl<'a, T: Trigger> Attached<'a, T> {
    /// Iterates over the triggers of this kind on `file`, in the order of their creation.
    pub(crate) fn all(
        file: &'a EventFile,
        held: &'a EventMutexHeld,
    ) -> impl Iterator<Item = Attached<'a, T>> {
        file.triggers(held)
            .filter(|node| node.kind() == T::TYPE)
            // SAFETY: the type shows that this is a node of this command's kind; the mutex keeps it on the list.
            .map(|node| Self(unsafe { Node::from_raw(node.as_ptr()) }))
    }

    /// Returns the command of the trigger.
    pub(crate) fn command(&self) -> &'a Command<T> {
        self.0.command()
    }

    /// Returns the event file of the trigger.
    pub(crate) fn file(&self) -> &'a EventFile {
        // SAFETY: by the invariant of `Private`, as the node is attached, and the mutex is held.
        unsafe { EventFile::from_raw(self.0.private().file) }
    }

    /// Returns the data of the trigger.
    pub(crate) fn data(&self) -> &'a T {
        &self.0.private().data
    }

    /// Returns the measured cost of the trigger's hits; `None` if they are not timed.
    pub(crate) fn meter(&self) -> Option<&'a Meter> {
        self.0.private().timed.as_ref()
    }

    /// Returns whether the trigger is paused, so that it ignores records.
    pub(crate) fn is_paused(&self) -> bool {
        // SAFETY: the node is live; the flag is a byte that is written at once, by holders of `event_mutex` or by hits.
        unsafe { (&raw const (*self.0.as_ptr()).paused).read_volatile() }
    }

    /// Pauses or continues the trigger; does not wait for a hit in progress.
    pub(crate) fn set_paused(&self, paused: bool) {
        self.0 .0.set_paused(paused);
    }

    /// Detaches the trigger from its file, and lets it be freed after the grace period.
    pub(crate) fn remove(self, held: &EventMutexHeld) {
        let (file, node) = (self.file().as_ptr(), self.0.as_ptr());
        // SAFETY: the node is on the list of the file, whose writers hold `event_mutex` as this caller does.
        unsafe { bindings::hist_helper_list_del_rcu(&raw mut (*node).list) };
        // SAFETY: the file is live; this lowers the count that was raised for the trigger.
        unsafe { trace_core::trace_event_trigger_enable_disable(file, 0) };
        // SAFETY: the file is live and `event_mutex` held.
        unsafe { trace_core::update_cond_flag(file) };
        self.0.detached(held);
        // SAFETY: the node is off its lists, and the value that borrowed it is consumed.
        unsafe { trace_core::trigger_data_free(node) };
    }
}
