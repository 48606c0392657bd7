// SPDX-License-Identifier: GPL-2.0

//! A type of dynamic events of this module, which user space creates and deletes.
//!
//! C counterparts: [`kernel/trace/trace_dynevent.c`](srctree/kernel/trace/trace_dynevent.c), and the
//! registration in [`kernel/trace/trace_events_synth.c`](srctree/kernel/trace/trace_events_synth.c).
//!
//! An event is reference-counted. The list of dynamic events owns one reference, from its creation to its deletion;
//! other owners may keep the memory for longer, but then the event has no listeners. Each event on the list pins the
//! module.
//!
//! Listeners are in the list of the event's tracepoint, as for any event: an event file for each instance in which the
//! event is enabled, and the event itself if perf has it open. No probe in the list is ever called:
//! [`Event::listeners`] walks the list itself.
//!
//! Locks: events are created and deleted under `event_mutex`. Writing their records needs no lock.

mod busy;
mod callbacks;
mod listeners;
mod registration;

use super::{
    bindings,
    event::ModuleId,
    guard::{
        wait_for_hits,
        EventMutex,
        EventMutexHeld,
        Guarded, //
    },
    module_notifier::ModuleGoing,
    seq::SeqWriter,
    trace_seq::TraceWriter, //
};
use crate::sync::{
    Acquire,
    Atomic,
    Relaxed, //
};
use core::{
    ffi::CStr,
    fmt,
    marker::PhantomData,
    mem::offset_of,
    ops::Deref, //
};
use kernel::{
    error::to_result,
    interop::list::clist_create,
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    },
    types::{
        ForeignOwnable,
        Opaque, //
    }, //
};
use pin_init::zeroed;

pub(crate) use {
    busy::Busy,
    listeners::{
        Listener,
        Plain, //
    },
    registration::Registration, //
};

/// A type of dynamic events; the implementor is the type's data of one event.
#[vtable]
pub(crate) trait DynEventType: Sized + Send + Sync + 'static {
    /// The one registry of the type.
    fn registry() -> &'static Registry<Self>;

    /// Carries out a line of `dynamic_events`; `false` if it is for another type.
    ///
    /// Called for every line that no earlier type accepts, under the lock of the types.
    fn create(line: &CStr) -> Result<bool>;

    /// Returns the name of the event.
    fn name(&self) -> &CStr;

    /// Returns the system of all events of the type; always the same text, at the same address.
    fn system() -> &'static CStr;

    /// Iterates over the fields, for their definition in the core.
    fn fields(&self) -> impl Iterator<Item = FieldDef<'_>>;

    /// Returns the smallest size of the event's records, in bytes: up to the end of the last field that the core knows.
    fn record_len(&self) -> usize;

    /// Carries out a line of the file that has only events of this type.
    fn command(line: &CStr) -> Result;

    /// Logs in the error log that an event is in use, and so not deleted: either this event, or all events of the type.
    fn still_in_use(event: &Event<Self>, all: bool, held: &EventMutexHeld);

    /// Writes the event's line in the file of this type.
    fn list(&self, out: &mut SeqWriter<'_>) -> fmt::Result;

    /// Writes the event's line in `dynamic_events`.
    fn show(&self, out: &mut SeqWriter<'_>) -> fmt::Result;

    /// Writes the text that `trace` shows for a record, which need not have been written by this module.
    fn print(&self, record: &[u8], verbose: bool, out: &mut TraceWriter<'_>) -> fmt::Result;
}

/// One field of an event, in the form that the core needs.
pub(crate) struct FieldDef<'a> {
    pub(crate) type_name: &'a CStr,
    pub(crate) name: &'a CStr,
    pub(crate) offset: usize,
    pub(crate) size: usize,
    pub(crate) signed: bool,
    /// Whether the field is the place of a stack trace.
    pub(crate) stack: bool,
}

/// The operations of a type of events, and the state that all its events share.
///
/// # Invariants
///
/// `operations` is on the core's list while there is a [`Registration`].
pub(crate) struct Registry<K: DynEventType> {
    operations: Opaque<bindings::dyn_event_operations>,
    /// Not 0 once events can be created.
    open: Atomic<u32>,
    /// The number of listeners that have left any event; used under `event_mutex`.
    left: Atomic<u64>,
    /// The value of `left` when writers were last waited for; used under `event_mutex`.
    waited: Atomic<u64>,
    _kind: PhantomData<K>,
}

// SAFETY: the operations are constant while they are registered, and the list belongs to the core.
unsafe impl<K: DynEventType> Send for Registry<K> {}

// SAFETY: the operations are constant while they are registered, and the list belongs to the core.
unsafe impl<K: DynEventType> Sync for Registry<K> {}

impl<K: DynEventType> Registry<K> {
    const VTABLE: bindings::dyn_event_operations = bindings::dyn_event_operations {
        create: Some(Event::<K>::create_callback),
        show: Some(Event::<K>::show_callback),
        is_busy: Some(Event::<K>::is_busy_callback),
        free: Some(Event::<K>::free_callback),
        match_: Some(Event::<K>::match_callback),
        ..super::trace_core::TYPE
    };

    /// Returns a registry that is not registered.
    pub(crate) const fn new() -> Self {
        Self {
            operations: Opaque::new(Self::VTABLE),
            open: Atomic::new(0),
            left: Atomic::new(0),
            waited: Atomic::new(0),
            _kind: PhantomData,
        }
    }

    /// Returns whether events can be created.
    fn is_open(&self) -> bool {
        // ORDERING: pairs with `Registration::open`.
        self.open.load(Acquire) != 0
    }

    /// Deletes all events of the type; `EBUSY` without deleting any if one is in use.
    ///
    /// Takes `event_mutex`, and empties the buffers of all instances.
    pub(crate) fn delete_all(&self) -> Result {
        // SAFETY: the operations are registered, since the caller is a file operation, and the file is removed before
        // them.
        to_result(unsafe { bindings::dyn_events_release_all(self.operations.get()) })
    }

    /// Iterates over all events of the type, in the order of their creation.
    pub(crate) fn events<'a>(
        &'a self,
        _held: &'a EventMutexHeld,
    ) -> impl Iterator<Item = ArcBorrow<'a, Event<K>>> {
        let head = &raw mut bindings::dyn_event_list;
        // SAFETY: the list head is part of the kernel image, and initialised there; its entries are of this type, and
        // its writers hold `event_mutex`, so the list does not change meanwhile.
        let list = unsafe { clist_create!(head, DynEvent, bindings::dyn_event, list) };
        list.iter()
            // SAFETY: an event on the list is live; its operations are set when it is created.
            .filter(|event| core::ptr::eq(unsafe { (*event.0.get()).ops }, self.operations.get()))
            // SAFETY: the event is of this type, and stays on the list while the mutex is held.
            .map(|event| unsafe { Event::from_dyn_event(event.0.get()) })
    }
}

/// An event of any type on the list of dynamic events.
#[repr(transparent)]
struct DynEvent(Opaque<bindings::dyn_event>);

impl<K: DynEventType> ModuleGoing for Registry<K> {
    /// Clears the owner of events that `module` could not delete, since they are in use.
    ///
    /// These events have no listeners, as each listener would pin the module.
    ///
    /// PARITY: the C code later pins a module that has been freed.
    fn module_going(&self, module: ModuleId) {
        for event in self.events(&EventMutex::lock()) {
            // ORDERING: under `event_mutex`.
            if core::ptr::eq(event.owner.load(Relaxed), module.0) {
                event.owner.store(core::ptr::null_mut(), Relaxed);
            }
        }
    }
}

/// The name of a context that generates an event, for the error log.
pub(crate) type User = KVec<u8>;

/// An event, with the C structures that represent it.
///
/// # Invariants
///
/// - The C structures point at each other.
/// - While the event is on the list of dynamic events, the list owns a reference to the `Arc`, the data of `call`.
#[pin_data]
pub(crate) struct Event<K: DynEventType> {
    #[pin]
    node: Opaque<bindings::dyn_event>,
    #[pin]
    call: Opaque<bindings::trace_event_call>,
    #[pin]
    class: Opaque<bindings::trace_event_class>,
    #[pin]
    functions: Opaque<bindings::trace_event_functions>,
    #[pin]
    tracepoint: Opaque<bindings::tracepoint>,
    /// The module that created the event for itself; null if user space did, or once that module is gone. Changes under
    /// `event_mutex`.
    owner: Atomic<*mut bindings::module>,
    /// The format of the records, ended by a NUL. The core may replace names of enumerators in it.
    _print_fmt: KVec<u8>,
    /// The users that generate the event and keep it from being deleted.
    users: Guarded<KVec<Arc<User>>>,
    /// The number of instances in which the event is enabled, plus one for perf; used under `event_mutex`, as the next two.
    listeners: Atomic<u32>,
    /// The value of the registry's `left` when a listener last left this event.
    left: Atomic<u64>,
    /// Whether the core has accepted all fields.
    defined: Atomic<u32>,
    kind: K,
}

// SAFETY: the C structures are used under the core's locks, the tracepoint's list is read under RCU, and the module is
// a counted pointer.
unsafe impl<K: DynEventType> Send for Event<K> {}

// SAFETY: the C structures are used under the core's locks, the tracepoint's list is read under RCU, and the module is
// a counted pointer.
unsafe impl<K: DynEventType> Sync for Event<K> {}

impl<K: DynEventType> Deref for Event<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.kind
    }
}

/// The owner of an event: the module that creates it, or none.
#[derive(Clone, Copy)]
pub(crate) struct Owner(*mut bindings::module);

impl Owner {
    /// The owner of an event that user space creates.
    pub(crate) const NONE: Self = Self(core::ptr::null_mut());

    /// Returns the owner `module`, or none if it is null.
    ///
    /// # Safety
    ///
    /// `module` must be null, or a module that is not going away while the event is created. Events that outlive it
    /// clear their owner when it goes.
    #[cfg(rust_hist_synth_api)]
    pub(super) unsafe fn from_raw(module: *mut bindings::module) -> Self {
        Self(module)
    }
}

impl<K: DynEventType> Event<K> {
    /// Creates an event, which is not visible yet; `print_fmt` is the format of its records.
    pub(crate) fn new(kind: K, mut print_fmt: KVec<u8>, owner: Owner) -> Result<Arc<Self>> {
        print_fmt.push(0, GFP_KERNEL)?;
        let format = print_fmt.as_mut_ptr().cast();
        let event = pin_init!(Self {
            kind,
            _print_fmt: print_fmt,
            owner: Atomic::new(owner.0),
            users: Guarded::new(KVec::new()),
            listeners: Atomic::new(0),
            left: Atomic::new(0),
            defined: Atomic::new(0),
            node: Opaque::new(bindings::dyn_event { ops: K::registry().operations.get(), ..zeroed() }),
            tracepoint: Opaque::new(bindings::tracepoint { name: kind.name().as_char_ptr(), ..zeroed() }),
            functions: Opaque::new(bindings::trace_event_functions {
                trace: Some(Self::print),
                ..zeroed()
            }),
            class <- Opaque::ffi_init(|class: *mut bindings::trace_event_class| {
                let list = offset_of!(bindings::trace_event_class, fields);
                let list = class.wrapping_byte_add(list).cast();
                // SAFETY: the pointer is the place of the class.
                unsafe {
                    class.write(bindings::trace_event_class {
                        system: K::system().as_char_ptr(),
                        fields: bindings::list_head { next: list, prev: list },
                        ..Self::CLASS
                    })
                };
            }),
            call: Opaque::new(bindings::trace_event_call {
                class: class.get(),
                __bindgen_anon_1: bindings::trace_event_call__bindgen_ty_1 { tp: tracepoint.get() },
                event: bindings::trace_event { funcs: functions.get(), ..zeroed() },
                print_fmt: format,
                flags: TRACEPOINT,
                ..Default::default()
            }),
        });
        Arc::pin_init(event, GFP_KERNEL)
    }

    const CLASS: bindings::trace_event_class = bindings::trace_event_class {
        probe: listeners::PROBE.cast_mut(),
        perf_probe: listeners::PROBE.cast_mut(),
        reg: Some(Self::reg),
        // The core only reads the array.
        fields_array: core::ptr::from_ref(&Self::FIELDS).cast_mut().cast(),
        ..zeroed()
    };

    /// The core gets the fields from a function. The second item, all 0, ends the list.
    const FIELDS: [bindings::trace_event_fields; 2] = [
        bindings::trace_event_fields {
            type_: FUNCTION_TYPE,
            __bindgen_anon_1: bindings::trace_event_fields__bindgen_ty_1 {
                define_fields: Some(Self::define_fields),
            },
        },
        bindings::trace_event_fields {
            type_: core::ptr::null(),
            __bindgen_anon_1: bindings::trace_event_fields__bindgen_ty_1 {
                define_fields: None,
            },
        },
    ];

    /// Makes the event visible, in all instances.
    ///
    /// Takes `trace_types_lock`.
    pub(crate) fn publish(event: &Arc<Self>, _held: &EventMutexHeld) -> Result {
        let (node, call) = (event.node.get(), event.call.get());
        // INVARIANT: the list owns this reference.
        // SAFETY: the event is not registered, so no other context uses its data.
        unsafe { (*call).data = event.clone().into_foreign() };
        // SAFETY: the structures are complete, and `event_mutex` is held.
        let added = to_result(unsafe { bindings::hist_helper_dyn_event_add(node, call) });
        let published = added.and_then(|()| {
            // SAFETY: `event_mutex` is held, and the event is not registered.
            unsafe { event.register() }.inspect_err(|_| {
                // SAFETY: the event was added by the call before.
                unsafe { bindings::hist_helper_dyn_event_remove(node) }
            })
        });
        if published.is_err() {
            // SAFETY: the event is on no list, and `into_foreign()` returned its data.
            drop(unsafe { Arc::<Self>::from_foreign((*call).data) });
        }
        published
    }

    /// Registers the event with the core; on an error nothing is registered.
    ///
    /// # Safety
    ///
    /// `event_mutex` must be held, and the event must not be registered.
    unsafe fn register(&self) -> Result {
        let call = self.call.get();
        // SAFETY: the output functions are set.
        if unsafe { bindings::register_trace_event(&raw mut (*call).event) } == 0 {
            return Err(ENODEV);
        }
        // SAFETY: by the contract.
        let added = to_result(unsafe { bindings::trace_add_event_call(call) });
        if let Err(error) = added {
            // SAFETY: registered at the beginning of this function.
            unsafe { bindings::unregister_trace_event(&raw mut (*call).event) };
            return Err(error);
        }
        // The core silently leaves out fields for which it has no memory.
        if self.defined.load(Relaxed) == 0 {
            // SAFETY: added above, and no context can have enabled it while the mutex is held.
            unsafe { bindings::trace_remove_event_call(call) };
            return Err(ENOMEM);
        }
        Ok(())
    }

    /// Returns the event that contains a node of the list of dynamic events.
    ///
    /// # Safety
    ///
    /// `node` must belong to an event of this type that stays on the list for `'a`.
    unsafe fn from_dyn_event<'a>(node: *mut bindings::dyn_event) -> ArcBorrow<'a, Self> {
        // SAFETY: by the contract.
        let event = unsafe { owner_of!(node, Self, node) };
        // SAFETY: by the contract.
        unsafe { Self::of_call(event.call.get()) }
    }

    /// Returns the event that contains a `trace_event_call`.
    ///
    /// # Safety
    ///
    /// `call` must belong to an event of this type that stays on the list of dynamic events for `'a`.
    unsafe fn of_call<'a>(call: *mut bindings::trace_event_call) -> ArcBorrow<'a, Self> {
        // SAFETY: by the type invariant, the data is the list's reference.
        unsafe { Arc::<Self>::borrow((*call).data) }
    }

    /// Returns the event of `file`; `None` if it is of another type.
    ///
    /// # Safety
    ///
    /// `file` must be a live event file for `'a`.
    #[cfg(rust_hist_synth_api)]
    pub(super) unsafe fn of_file<'a>(
        file: *mut bindings::trace_event_file,
    ) -> Option<ArcBorrow<'a, Self>> {
        // SAFETY: by the contract; an event lives as long as its files, and so does its class.
        let (call, system) = unsafe { ((*file).event_call, (*(*(*file).event_call).class).system) };
        // SAFETY: only events of this type have their system's text at this address; an event is on the list as long as
        // it has files.
        core::ptr::eq(system, K::system().as_char_ptr()).then(|| unsafe { Self::of_call(call) })
    }

    /// Reserves room for the next [`Event::add_user`], which must follow before the mutex is unlocked.
    pub(crate) fn promise_user(&self, held: &EventMutexHeld) -> Result {
        Ok(self.users.get(held).reserve(1, GFP_KERNEL)?)
    }

    /// Adds a user, which keeps the event from being deleted until [`Event::drop_user`]. Room must have been reserved.
    pub(crate) fn add_user(&self, user: &Arc<User>, held: &EventMutexHeld) {
        // Room was reserved, so this cannot fail.
        let _ = self.users.get(held).push_within_capacity(user.clone());
    }

    /// Undoes one [`Event::add_user`].
    pub(crate) fn drop_user(&self, user: &Arc<User>, held: &EventMutexHeld) {
        self.users
            .get(held)
            .retain(|other| !Arc::ptr_eq(other, user));
    }

    /// Returns whether the event cannot be deleted now.
    ///
    /// PARITY: `synth_event_is_busy()` only checks the users, so that opening the file with truncation deletes some
    /// events before it finds another one enabled.
    pub(crate) fn is_busy(&self, held: &EventMutexHeld) -> bool {
        !self.users.get(held).is_empty()
            // ORDERING: the count changes only under `event_mutex`.
            || self.listeners.load(Relaxed) != 0
            // SAFETY: the event is live.
            || unsafe { bindings::hist_helper_dyn_event_busy(self.call.get()) }
    }

    /// Deletes the event; `EBUSY` if it is in use.
    ///
    /// Sleeps for a grace period if the event had listeners, and takes `trace_types_lock`.
    pub(crate) fn delete(event: &Arc<Self>, held: &EventMutexHeld) -> Result {
        if event.is_gone(held) {
            return Err(ENOENT);
        }
        if event.is_busy(held) {
            return Err(EBUSY);
        }
        event.wait_for_writers();
        // SAFETY: the event is registered as long as it is on the list, and the mutex is held.
        to_result(unsafe { bindings::trace_remove_event_call(event.call.get()) })?;
        // SAFETY: the node was added by `publish`.
        unsafe { bindings::hist_helper_dyn_event_remove(event.node.get()) };
        // SAFETY: by the type invariant the data is the reference of the list, from which the event was just removed.
        drop(unsafe { Arc::<Self>::from_foreign((*event.call.get()).data) });
        Ok(())
    }

    /// Returns whether the event has been deleted.
    pub(crate) fn is_gone(&self, _held: &EventMutexHeld) -> bool {
        // SAFETY: the node belongs to this event; only takes the address of its member.
        let list = unsafe { &raw const (*self.node.get()).list };
        // SAFETY: the node belongs to this event. It points to itself once it was removed from a list.
        core::ptr::eq(unsafe { (*list).next }, list)
    }

    /// Waits for writers that may have found a listener before it left.
    ///
    /// The core frees event files without a grace period, since it assumes that no context writes to an event that is
    /// disabled.
    fn wait_for_writers(&self) {
        let registry = K::registry();
        // ORDERING: both counts change only under `event_mutex`.
        if self.left.load(Relaxed) <= registry.waited.load(Relaxed) {
            return;
        }
        let left = registry.left.load(Relaxed);
        wait_for_hits();
        registry.waited.store(left, Relaxed);
    }
}

// CAST: flags of the C enumeration, whose values fit the `int` that holds them.
const TRACEPOINT: i32 = bindings::TRACE_EVENT_FL_TRACEPOINT as i32;

/// `TRACE_FUNCTION_TYPE`: the fields are defined by a function.
const FUNCTION_TYPE: *const c_char = core::ptr::without_provenance(usize::MAX);
