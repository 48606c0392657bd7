// SPDX-License-Identifier: GPL-2.0

//! A trigger command of our own, and the triggers that it makes.
//!
//! C counterpart: [`kernel/trace/trace_events_trigger.c`](srctree/kernel/trace/trace_events_trigger.c).
//!
//! The core calls everything here but the [`EntryFn`]s and [`Trigger::miss`] with `event_mutex` held.
//! Those run in the context of the event, which may be an NMI, while the trigger is on its event
//! file, and for up to a tracepoint grace period after it was taken off.
//!
//! A trigger whose hits are timed has another function in front of its own; those of all others pay nothing. What they
//! have cost may be looked at once a second, in a work of the command, see [`Trigger::watch`].
//!
//! A command refuses lines until [`Command::open`], so that the steps of the module's set-up that
//! follow its registration may fail: no trigger can be there yet.
//!
//! Every trigger holds a reference on the module, which the core drops after it has freed the trigger.
//! A trigger on an event of a module goes when that module goes, which the core does not see to.

use super::{
    bindings,
    clock,
    delayed,
    event::{
        EventFile,
        Hit,
        ModuleId,
        Record,
        TriggerNode, //
    },
    guard::{
        EventMutex,
        EventMutexHeld,
        Guarded,
        PreemptGuard,
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

// CAST: the number of a bit in a flag word.
const TRIGGER_COND: c_ulong = bindings::EVENT_FILE_FL_TRIGGER_COND_BIT as c_ulong;

/// What a kind of trigger does; the implementor is the data of one trigger.
#[vtable]
pub(crate) trait Trigger: Sized + Send + Sync + 'static {
    /// The bit that tells nodes of this kind from all others on a trigger list.
    const TYPE: u32;

    /// Whether a record is wanted; else the event need not write one for the trigger alone, and
    /// calls of [`Trigger::miss`] are regular.
    const NEEDS_RECORD: bool;

    /// Whether a new trigger comes before all others of its event, and not behind them.
    const FIRST: bool;

    /// What all triggers of a command have in common, made for the first one that needs it.
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

    /// The function that handles the records of the trigger. It never changes.
    fn entry(&self) -> EntryFn<Self>;

    /// Handles a call without a record. If one is needed, a race with the set-up of the event is the
    /// cause.
    fn miss(&self, preempt: &PreemptOff<'_>);

    /// Takes a trigger off its event file, whose event goes away with its module.
    fn event_going(trigger: Attached<'_, Self>, held: &EventMutexHeld);

    /// Called when the trigger is about to be on its event file.
    fn attaching(&self, _held: &EventMutexHeld) {}

    /// Called when the trigger is off the list of its event file, before it is freed. A hit may still
    /// be under way.
    ///
    /// The removal of an instance, which holds `trace_types_lock`, comes through here.
    fn detached(&self, _held: &EventMutexHeld) {}

    /// Looks after the triggers of a command, a second after [`Command::watch_soon`]; says whether to do so again a second
    /// later.
    fn watch(_command: &Command<Self>, _held: &EventMutexHeld) -> bool {
        false
    }

    /// Writes the line of the `trigger` file.
    fn print(trigger: &Attached<'_, Self>, out: &mut SeqWriter<'_>) -> core::fmt::Result;
}

/// How some triggers handle a record of which they need nothing but the data; the implementor is a type without values.
pub(crate) trait RecordPath<T: 'static> {
    /// Handles what the path leaves, in a frame of its own.
    type Rest: RecordRest<T>;

    /// Handles a record, or does nothing and says of it what there is to say.
    fn hit<'a>(
        trigger: &'a T,
        record: Record<'a>,
    ) -> Option<<Self::Rest as RecordRest<T>>::Left<'a>>;
}

/// Handles the records that a [`RecordPath`] leaves; the implementor is a type without values.
pub(crate) trait RecordRest<T: 'static> {
    /// What a path says of a record that it leaves.
    type Left<'a>: Copy;

    /// Handles a record.
    fn hit<'a>(trigger: &'a T, record: Record<'a>, left: Self::Left<'a>);
}

/// How some triggers handle a record; the implementor is a type without values.
pub(crate) trait FastPath<T> {
    /// Handles what the path leaves, in a frame of its own.
    type Rest: FastPath<T>;

    /// Handles a record, or does nothing and returns `false`.
    fn hit(trigger: &T, hit: Hit<'_>) -> bool;
}

/// How triggers handle a record if most records need only a lookup; the implementor is a type without values.
pub(crate) trait LookPath<T: 'static> {
    /// What a look may find: as much as a register holds, so that nothing of it needs a place in memory.
    type Found<'a>: Copy;

    /// Handles a record; or returns with what it has found, if there is more to do.
    fn look<'a>(trigger: &'a T, hit: Hit<'a>) -> Option<Self::Found<'a>>;

    /// Handles a record of which there is more to do.
    fn rest<'a>(trigger: &'a T, hit: Hit<'a>, found: Self::Found<'a>);
}

/// The function that the core calls for each record of a trigger.
///
/// # Invariants
///
/// It is one of [`Command`], so [`HitFn`] says when it may be called.
pub(crate) struct EntryFn<T>(HitFn, PhantomData<fn(T)>);

impl<T: Trigger> EntryFn<T> {
    /// That of a path which needs nothing but the data of a record.
    pub(crate) fn of_record<P: RecordPath<T>>() -> Self {
        // INVARIANT: one of `Command`.
        Self(Command::<T>::hit_record::<P>, PhantomData)
    }

    /// That of a path where most records need no more than a look.
    pub(crate) fn of_look<P: LookPath<T>>() -> Self {
        // INVARIANT: one of `Command`.
        Self(Command::<T>::look::<P>, PhantomData)
    }

    /// That of any path.
    pub(crate) fn of<P: FastPath<T>>() -> Self {
        // INVARIANT: one of `Command`.
        Self(Command::<T>::hit::<P>, PhantomData)
    }
}

impl<T> Clone for EntryFn<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for EntryFn<T> {}

/// One line for a command, split by the core at the first separator.
pub(crate) struct Line<'a> {
    /// Whether the line began with `!`.
    pub(crate) remove: bool,
    /// What follows the name of the command, blanks at both ends stripped; `None` if nothing does.
    pub(crate) params: Option<&'a CStr>,
}

/// A registered trigger command.
///
/// # Invariants
///
/// - `command` is on the core's list.
/// - `nodes` are the nodes of the command that are on event files, and it has room for `promised` more.
///   Both are used under `event_mutex`.
#[pin_data(PinnedDrop)]
pub(crate) struct Command<T: Trigger> {
    #[pin]
    command: Opaque<bindings::event_command>,
    nodes: Guarded<KVec<*mut bindings::event_trigger_data>>,
    /// How many triggers are about to be put on their events: the values of [`Ready`].
    promised: Cell<usize>,
    /// Not 0 once lines are accepted.
    open: Atomic<u32>,
    /// Calls [`Trigger::watch`]. It takes `event_mutex`, so nobody who holds that may wait for it; the triggers that it
    /// looks after are found on `nodes`, so their removal need not.
    #[pin]
    work: delayed::Work,
    shared: SetOnce<T::Shared>,
}

/// What the private data of a node points at.
///
/// # Invariants
///
/// - `file` is the event file that the node is for, or on. It is valid as long as the node is on it, and until the
///   hits that began then are over.
/// - `operations` are those of `command`, but for `trigger`, which is a function for this data: with a `filter`
///   [`Command::filtered`] or [`Command::filtered_slowly`], and the core is told that a record is needed; else
///   [`Command::timed`] iff there is a `timed`, which then does not change any more.
/// - `node` is the node, and `command` is registered as long as there is one.
// What every hit needs comes first.
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

/// What the core calls for a hit: `event_command::trigger`.
///
/// # Safety
///
/// For the trigger core, with a node of ours that is, or just was, on the list of its file, and whose data it is for.
type HitFn = unsafe extern "C" fn(
    *mut bindings::event_trigger_data,
    *mut bindings::trace_buffer,
    *mut c_void,
    *mut bindings::ring_buffer_event,
);

// SAFETY: the core protects its list by its locks, ours is used under `event_mutex`, and everything
// else is constant.
unsafe impl<T: Trigger> Send for Command<T> {}

// SAFETY: the core protects its list by its locks, ours is used under `event_mutex`, and everything
// else is constant.
unsafe impl<T: Trigger> Sync for Command<T> {}

impl<T: Trigger> Command<T> {
    /// The core tells a command from a post trigger, which it runs without the record, by flags.
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

    /// Registers the command `name`, which refuses lines yet; `EBUSY` if there is one of that name.
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
                // SAFETY: this is the place of the command.
                unsafe { command.write(operations) };
                // SAFETY: it is complete, and stays where it is until `drop` takes it off the list.
                to_result(unsafe { trace_core::register_event_command(command) })
            }),
        }))
    }

    /// Has the command accept lines.
    pub(crate) fn open(&self) {
        // ORDERING: pairs with `parse_callback`.
        self.open.store(1, Release);
    }

    /// Has [`Trigger::watch`] called in a second, unless it will be anyway. Does not sleep.
    pub(crate) fn watch_soon(&self, _held: &EventMutexHeld) {
        const WATCH_MS: u32 = 1000;
        // SAFETY: it was made with the command, and `drop` cancels it.
        unsafe { delayed::queue(&self.work, WATCH_MS) };
    }

    /// # Safety
    ///
    /// For the workqueue, with the work of a command.
    unsafe extern "C" fn work_callback(work: *mut bindings::work_struct) {
        let work = work.cast::<bindings::delayed_work>();
        // SAFETY: by the contract the work is the member of a `Command`, which waits for it before it goes.
        let command = unsafe { owner_of!(work, Self, work) };
        let held = &EventMutex::lock();
        if T::watch(command, held) {
            command.watch_soon(held);
        }
    }

    /// The command that the core knows by `command`.
    ///
    /// # Safety
    ///
    /// `command` must be that of a value of this type which stays registered for `'a`.
    unsafe fn from_raw<'a>(command: *mut bindings::event_command) -> &'a Self {
        // SAFETY: by the contract.
        unsafe { owner_of!(command, Self, command) }
    }

    /// The name of the command.
    pub(crate) fn name(&self) -> &'static CStr {
        // SAFETY: `register` set the name, a static string.
        unsafe { CStr::from_char_ptr((*self.command.get()).name) }
    }

    /// What its triggers have in common, which `make` makes if there is none yet.
    pub(crate) fn shared(
        &self,
        make: impl FnOnce() -> Result<T::Shared>,
        _held: &EventMutexHeld,
    ) -> Result<&T::Shared> {
        if self.shared.as_ref().is_none() {
            self.shared.populate(make()?);
        }
        // The mutex keeps others from being faster, and nobody takes it back.
        self.shared.as_ref().ok_or(ENOMEM)
    }

    /// All triggers of the command, on whatever event, in the order of their creation.
    ///
    /// Triggers may come and go meanwhile; then some may be left out, or come twice.
    pub(crate) fn triggers<'a>(
        &'a self,
        held: &'a EventMutexHeld,
    ) -> impl Iterator<Item = Attached<'a, T>> {
        let mut at = 0;
        core::iter::from_fn(move || {
            let node = *self.nodes.get(held).get(at)?;
            at += 1;
            // SAFETY: by the type invariant it is a node of this command that is on its file.
            Some(Attached(unsafe { Node::from_raw(node) }))
        })
    }

    /// # Safety
    ///
    /// For the trigger core, with `event_mutex` held and the arguments of `event_command::parse`.
    unsafe extern "C" fn parse_callback(
        command: *mut bindings::event_command,
        file: *mut bindings::trace_event_file,
        glob: *mut c_char,
        _cmd: *mut c_char,
        params: *mut c_char,
    ) -> c_int {
        // SAFETY: the core has `command` from `register`, and calls it while it is registered.
        let command = unsafe { Self::from_raw(command) };
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
            // SAFETY: `params` is null or a string of the core's that nobody changes meanwhile.
            params: (!params.is_null()).then(|| unsafe { CStr::from_char_ptr(params) }),
        };
        from_result(|| T::parse(command, file, line, &held).map(|()| 0))
    }

    /// # Safety
    ///
    /// For the trigger core, with `event_mutex` held and a live file.
    unsafe extern "C" fn unreg_all_callback(file: *mut bindings::trace_event_file) {
        // SAFETY: the core calls with the mutex held, for the whole call.
        let held = unsafe { EventMutexHeld::assume() };
        // SAFETY: the file is live while the mutex is held.
        T::remove_all(unsafe { EventFile::from_raw(file) }, &held);
    }

    /// # Safety
    ///
    /// That of [`HitFn`].
    #[inline(never)]
    unsafe extern "C" fn hit_record<P: RecordPath<T>>(
        data: *mut bindings::event_trigger_data,
        buffer: *mut bindings::trace_buffer,
        rec: *mut c_void,
        event: *mut bindings::ring_buffer_event,
    ) {
        // SAFETY: by the contract; the node is freed only after the grace period that this call holds up.
        let private = unsafe { Node::<T>::from_raw(data) }.private();
        // SAFETY: `file` is the event file that the node was made for, and the rest is what the core passed to this
        // call; all of it is valid until the call returns.
        match unsafe { Hit::from_raw(private.file, buffer, rec, event) } {
            Some(hit) => {
                if let Some(left) = P::hit(&private.data, hit.into_record()) {
                    Self::rest_of_record::<P::Rest>(&private.data, hit.into_record(), left);
                }
            }
            None => Self::missed(&private.data),
        }
    }

    /// Handles a record that a path has left.
    #[cold]
    #[inline(never)]
    fn rest_of_record<'a, R: RecordRest<T>>(trigger: &'a T, record: Record<'a>, left: R::Left<'a>) {
        R::hit(trigger, record, left);
    }

    /// Runs the path `P`. If that leaves the record, calls `P::Rest` with the arguments unchanged: a tail call, which
    /// needs no stack frame.
    ///
    /// # Safety
    ///
    /// That of [`HitFn`].
    #[inline(never)]
    unsafe extern "C" fn hit<P: FastPath<T>>(
        data: *mut bindings::event_trigger_data,
        buffer: *mut bindings::trace_buffer,
        rec: *mut c_void,
        event: *mut bindings::ring_buffer_event,
    ) {
        // SAFETY: by the contract; the node is freed only after the grace period that this call holds up.
        let private = unsafe { Node::<T>::from_raw(data) }.private();
        // SAFETY: `file` is the event file that the node was made for, and the rest is what the core passed to this
        // call; all of it is valid until the call returns.
        match unsafe { Hit::from_raw(private.file, buffer, rec, event) } {
            Some(hit) if P::hit(&private.data, hit) => (),
            // SAFETY: by the contract of this function.
            Some(_) => unsafe { Self::hit::<P::Rest>(private.node, buffer, rec, event) },
            None => Self::missed(&private.data),
        }
    }

    /// # Safety
    ///
    /// That of [`HitFn`].
    #[inline(never)]
    unsafe extern "C" fn look<P: LookPath<T>>(
        data: *mut bindings::event_trigger_data,
        buffer: *mut bindings::trace_buffer,
        rec: *mut c_void,
        event: *mut bindings::ring_buffer_event,
    ) {
        // SAFETY: by the contract; the node is freed only after the grace period that this call holds up.
        let private = unsafe { Node::<T>::from_raw(data) }.private();
        // SAFETY: `file` is the event file that the node was made for, and the rest is what the core passed to this
        // call; all of it is valid until the call returns.
        let Some(hit) = (unsafe { Hit::from_raw(private.file, buffer, rec, event) }) else {
            return Self::missed(&private.data);
        };
        if let Some(found) = P::look(&private.data, hit) {
            // SAFETY: by the contract of this function.
            unsafe { Self::rest_of_look::<P>(private, buffer, rec, event, found) };
        }
    }

    /// Handles a record for which the lookup has found something.
    ///
    /// # Safety
    ///
    /// That of [`HitFn`].
    #[inline(never)]
    unsafe fn rest_of_look<'a, P: LookPath<T>>(
        private: &'a Private<T>,
        buffer: *mut bindings::trace_buffer,
        rec: *mut c_void,
        event: *mut bindings::ring_buffer_event,
        found: P::Found<'a>,
    ) {
        // SAFETY: `file` is the event file that the node was made for, and the rest is what the core passed to this
        // call; all of it is valid until the call returns.
        match unsafe { Hit::from_raw(private.file, buffer, rec, event) } {
            Some(hit) => P::rest(&private.data, hit, found),
            None => Self::missed(&private.data),
        }
    }

    /// Calls the function that the trigger has for the records that its filter accepts.
    ///
    /// # Safety
    ///
    /// The requirements of [`HitFn`], with a trigger that has a filter.
    #[inline(never)]
    unsafe extern "C" fn filtered<const PLACES: bool, const TASK: bool>(
        data: *mut bindings::event_trigger_data,
        buffer: *mut bindings::trace_buffer,
        rec: *mut c_void,
        event: *mut bindings::ring_buffer_event,
    ) {
        // SAFETY: by the contract; the node is freed only after the grace period that this call holds up.
        let private = unsafe { Node::<T>::from_raw(data) }.private();
        // SAFETY: by the invariant of `Private`, as this is its function.
        let filter = unsafe { private.filter.as_ref().unwrap_unchecked() };
        // SAFETY: `file` is the node's event file, and the rest is what the core passed; valid until the call returns.
        let Some(hit) = (unsafe { Hit::from_raw(private.file, buffer, rec, event) }) else {
            // PARITY: as in C, a call without a record passes the filter.
            return Self::missed(&private.data);
        };
        match filter.quick::<PLACES, TASK>(*hit.into_record().preempt_off(), hit.data()) {
            // SAFETY: by the contract of this function.
            Some(true) => unsafe { Self::filtered_in(private)(data, buffer, rec, event) },
            Some(false) => (),
            // SAFETY: by the contract of this function.
            None => unsafe { Self::filtered_slowly(data, buffer, rec, event) },
        }
    }

    /// The function for the records that the filter accepts.
    fn filtered_in(private: &Private<T>) -> HitFn {
        let entry = private.data.entry().0;
        private.timed.as_ref().map_or(entry, |_| Self::timed)
    }

    /// As [`Command::filtered`], for all filters; it calls others, so it has a stack frame.
    ///
    /// # Safety
    ///
    /// The requirements of [`HitFn`], with a trigger that has a filter.
    #[inline(never)]
    unsafe extern "C" fn filtered_slowly(
        data: *mut bindings::event_trigger_data,
        buffer: *mut bindings::trace_buffer,
        rec: *mut c_void,
        event: *mut bindings::ring_buffer_event,
    ) {
        // SAFETY: by the contract; the node is freed only after the grace period that this call holds up.
        let private = unsafe { Node::<T>::from_raw(data) }.private();
        // SAFETY: `file` is the node's event file, and the rest is what the core passed; valid until the call returns.
        let hit = unsafe { Hit::from_raw(private.file, buffer, rec, event) };
        let (Some(hit), Some(filter)) = (hit, &private.filter) else {
            return Self::missed(&private.data);
        };
        if filter.accepts(*hit.into_record().preempt_off(), hit.data()) {
            // SAFETY: by the contract of this function.
            unsafe { Self::filtered_in(private)(data, buffer, rec, event) }
        }
    }

    /// Counts a call of the function that the trigger has, and times one of some.
    ///
    /// # Safety
    ///
    /// That of [`HitFn`], for a trigger that is timed.
    #[inline(never)]
    unsafe extern "C" fn timed(
        data: *mut bindings::event_trigger_data,
        buffer: *mut bindings::trace_buffer,
        rec: *mut c_void,
        event: *mut bindings::ring_buffer_event,
    ) {
        // SAFETY: by the contract; the node is freed only after the grace period that this call holds up.
        let private = unsafe { Node::<T>::from_raw(data) }.private();
        // SAFETY: by the invariant of `Private`, as this is its function.
        let meter = unsafe { private.timed.as_ref().unwrap_unchecked() };
        match meter.count() {
            // SAFETY: the function is for this data; by the contract of this function.
            false => unsafe { (private.data.entry().0)(data, buffer, rec, event) },
            // SAFETY: by the contract of this function.
            true => unsafe { Self::sample(private, buffer, rec, event) },
        }
    }

    /// Times a call of the function that the trigger has.
    ///
    /// # Safety
    ///
    /// That of [`Command::timed`].
    #[cold]
    #[inline(never)]
    unsafe fn sample(
        private: &Private<T>,
        buffer: *mut bindings::trace_buffer,
        rec: *mut c_void,
        event: *mut bindings::ring_buffer_event,
    ) {
        // SAFETY: by the invariant of `Private`, for a trigger that is timed.
        let meter = unsafe { private.timed.as_ref().unwrap_unchecked() };
        // A record has preemption off, and says how often, so only a call without one turns it off here.
        let guard = event.is_null().then(PreemptGuard::new);
        let begin = clock::local();
        // SAFETY: the function is for this data; by the contract of this function.
        unsafe { (private.data.entry().0)(private.node, buffer, rec, event) };
        // A clock that was corrected meanwhile may have gone back: that is no sample.
        meter.add(clock::local().wrapping_sub(begin));
        drop(guard);
    }

    /// Handles a call without a record.
    #[cold]
    #[inline(never)]
    fn missed(data: &T) {
        data.miss(&PreemptGuard::new().proof());
    }

    /// # Safety
    ///
    /// For the trigger core, with `event_mutex` held and a node of ours that it took off its list.
    unsafe extern "C" fn free_callback(data: *mut bindings::event_trigger_data) {
        // SAFETY: the core calls with the mutex held, for the whole call.
        let held = unsafe { EventMutexHeld::assume() };
        // SAFETY: by the contract; it is freed below.
        unsafe { Node::<T>::from_raw(data) }.detached(&held);
        // SAFETY: the node is off its lists, and nobody else frees it.
        unsafe { trace_core::trigger_data_free(data) };
    }

    /// # Safety
    ///
    /// For the trigger core, with `event_mutex` held, a live `seq_file` and a node of ours.
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
    /// For the trigger core, once, after the grace period, with a node of ours.
    unsafe extern "C" fn private_free_callback(data: *mut bindings::event_trigger_data) {
        // SAFETY: `Prepared::new` stored the box here, and nobody reaches it any more.
        drop(unsafe { KBox::<Private<T>>::from_foreign((*data).private_data) });
    }
}

impl<T: Trigger> ModuleGoing for Command<T> {
    /// Removes the triggers on events of `module`, which is going away.
    fn module_going(&self, module: ModuleId) {
        let held = &EventMutex::lock();
        let is_going = |trigger: &Attached<'_, T>| trigger.file().is_of_module(module);
        while let Some(trigger) = self.triggers(held).find(is_going) {
            T::event_going(trigger, held);
        }
    }
}

/// Keeps a command registered until it is dropped.
pub(crate) type Registration<T> = Watched<Command<T>>;

#[pinned_drop]
impl<T: Trigger> PinnedDrop for Command<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: registered by `register`. No trigger is left: each of them pins the module.
        let ret = unsafe { trace_core::unregister_event_command(self.command.get()) };
        if ret != 0 {
            pr_err!("the trigger command was not registered any more: {}\n", ret);
        }
        // The last time it finds no trigger. It may have to wait for `event_mutex`, which is not held here.
        // SAFETY: it was made with the command, of which there is no trigger any more.
        unsafe { delayed::cancel(&self.work) };
    }
}

/// A node of the command of `T`, while it is not freed. Its private data is a boxed [`Private`].
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
        // SAFETY: `Prepared::new` stored the box there, which goes with the node.
        unsafe { KBox::borrow((*self.as_ptr()).private_data) }
    }

    /// The command that the trigger is of.
    fn command(&self) -> &Command<T> {
        // SAFETY: by the invariant of `Private`.
        unsafe { &*self.private().command }
    }

    /// Does what comes with the end of the trigger on its event file.
    fn detached(&self, held: &EventMutexHeld) {
        let own = self.as_ptr();
        self.command()
            .nodes
            .get(held)
            .retain(|&mut node| node != own);
        self.private().data.detached(held);
    }
}

/// A complete trigger that is not on an event file; dropping it frees it.
///
/// # Invariants
///
/// Nobody else knows the node.
pub(crate) struct Prepared<T: Trigger>(NonNull<Node<T>>);

impl<T: Trigger> Prepared<T> {
    /// Allocates a node for `data` and `file`, which takes a reference on the module. Its hits are the records that the
    /// filter accepts.
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
        // INVARIANT: this is the node. The file and the function are those of the data, and a node pins the module, whose
        // command it is.
        private.node = node.as_ptr();
        // As C does for the copy that a named trigger has: the core reaches all operations but `parse` by the node.
        let operations = private.operations.get();
        // SAFETY: the node is ours alone.
        unsafe {
            (*node.as_ptr()).cmd_ops = operations;
            (*node.as_ptr()).private_data = private.into_foreign();
            (*node.as_ptr()).private_data_free = Some(Command::<T>::private_free_callback);
        }
        // INVARIANT: just made so.
        Ok(Self(node.cast()))
    }

    fn node(&self) -> &Node<T> {
        // SAFETY: the node is freed with the value.
        unsafe { self.0.as_ref() }
    }

    /// The event file that the trigger is for.
    fn file(&self) -> *mut bindings::trace_event_file {
        self.node().private().file
    }

    /// Has the hits of the trigger counted and timed; `ENOMEM`.
    pub(crate) fn time(&mut self) -> Result {
        let meter = Meter::new()?;
        // SAFETY: `new` stored the box there; nobody else knows the node.
        let private = unsafe { &mut *(*self.node().as_ptr()).private_data.cast::<Private<T>>() };
        if private.timed.is_none() {
            // INVARIANT: the function set below is for a trigger that has a `timed`.
            private.timed = Some(meter);
            if private.filter.is_none() {
                // SAFETY: nobody else knows the node, so nobody calls its operations.
                unsafe { (*private.operations.get()).trigger = Some(Command::<T>::timed) };
            }
        }
        Ok(())
    }

    /// Creates the trigger stopped.
    pub(crate) fn set_paused(&mut self) {
        self.node().0.set_paused(true);
    }

    /// Makes the event call its triggers, for this one to be among them.
    pub(crate) fn enable(self, held: &EventMutexHeld) -> Result<Ready<'_, T>> {
        let command = self.node().command();
        // INVARIANT: there is room for one more than was promised.
        let promised = command.promised.get().saturating_add(1);
        command.nodes.get(held).reserve(promised, GFP_KERNEL)?;
        command.promised.set(promised);
        // SAFETY: the file is live and `event_mutex` is held.
        let ret = unsafe { trace_core::trace_event_trigger_enable_disable(self.file(), 1) };
        // The count is raised also when this failed.
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
        // SAFETY: by the type invariant nobody else knows the node; its data goes with it.
        unsafe { trace_core::trigger_data_free(self.node().as_ptr()) };
    }
}

/// A complete trigger whose event calls its triggers, of which it is none yet; dropping it takes that
/// back and frees the trigger.
///
/// # Invariants
///
/// The trigger count of the file was raised for the trigger, and room for its node was promised by the
/// list of the command.
pub(crate) struct Ready<'a, T: Trigger> {
    prepared: Prepared<T>,
    held: &'a EventMutexHeld,
}

impl<T: Trigger> Ready<'_, T> {
    /// Puts the trigger on the list of its file.
    ///
    /// This is the single visible step.
    pub(crate) fn attach(self) {
        let ready = ManuallyDrop::new(self);
        let prepared = &ready.prepared;
        let file = prepared.file();
        let node = prepared.node().as_ptr();
        prepared.node().private().data.attaching(ready.held);
        if T::NEEDS_RECORD || prepared.node().private().filter.is_some() {
            // SAFETY: the flags of a live file; the function is atomic. The bit comes before the
            // node, so that the node is not called without a record.
            unsafe { bindings::set_bit(TRIGGER_COND, &raw mut (*file).flags) };
        }
        let command = prepared.node().command();
        // INVARIANT: the room that was promised is used, or given up by `drop`.
        command
            .promised
            .set(command.promised.get().saturating_sub(1));
        // By the type invariant there is room; the list lets us know by a result nevertheless.
        let _ = command.nodes.get(ready.held).push_within_capacity(node);
        // SAFETY: the list is initialised, and its writers hold `event_mutex`.
        let mut behind = unsafe { &raw mut (*file).triggers };
        if T::FIRST {
            // SAFETY: the writers of the list hold `event_mutex`. The end of a list that begins at its first node is
            // its beginning.
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

/// A trigger on its event file, borrowed under `event_mutex`.
///
/// # Invariants
///
/// The node is on its file, and `event_mutex` is held for `'a`.
pub(crate) struct Attached<'a, T: Trigger>(&'a Node<T>);

impl<'a, T: Trigger> Attached<'a, T> {
    /// The triggers of this kind on `file`, in the order of their creation.
    pub(crate) fn all(
        file: &'a EventFile,
        held: &'a EventMutexHeld,
    ) -> impl Iterator<Item = Attached<'a, T>> {
        file.triggers(held)
            .filter(|node| node.kind() == T::TYPE)
            // SAFETY: the type says that it is one of ours; the mutex keeps it on the list.
            .map(|node| Self(unsafe { Node::from_raw(node.as_ptr()) }))
    }

    /// The command that the trigger is of.
    pub(crate) fn command(&self) -> &'a Command<T> {
        self.0.command()
    }

    /// The event file that the trigger is on.
    pub(crate) fn file(&self) -> &'a EventFile {
        // SAFETY: by the invariant of `Private`, as the node is on its file, and the mutex is held.
        unsafe { EventFile::from_raw(self.0.private().file) }
    }

    /// The data of the trigger.
    pub(crate) fn data(&self) -> &'a T {
        &self.0.private().data
    }

    /// What its hits have cost, if they are timed.
    pub(crate) fn meter(&self) -> Option<&'a Meter> {
        self.0.private().timed.as_ref()
    }

    /// Whether hits are let through.
    pub(crate) fn is_paused(&self) -> bool {
        // SAFETY: the node is live; writers of the flag hold `event_mutex`, or are hits: a byte that is written whole.
        unsafe { (&raw const (*self.0.as_ptr()).paused).read_volatile() }
    }

    /// Stops or continues the trigger; a hit that is under way is not waited for.
    pub(crate) fn set_paused(&self, paused: bool) {
        self.0 .0.set_paused(paused);
    }

    /// Takes the trigger off its file and has it freed after the grace period.
    pub(crate) fn remove(self, held: &EventMutexHeld) {
        let (file, node) = (self.file().as_ptr(), self.0.as_ptr());
        // SAFETY: the node is on the list of the file, whose writers hold `event_mutex` as we do.
        unsafe { bindings::hist_helper_list_del_rcu(&raw mut (*node).list) };
        // SAFETY: the file is live; this lowers what `attach` raised.
        unsafe { trace_core::trace_event_trigger_enable_disable(file, 0) };
        // SAFETY: the file is live and `event_mutex` held.
        unsafe { trace_core::update_cond_flag(file) };
        self.0.detached(held);
        // SAFETY: the node is off its lists, and the value that stands for it is consumed.
        unsafe { trace_core::trigger_data_free(node) };
    }
}
