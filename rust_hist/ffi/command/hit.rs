// SPDX-License-Identifier: GPL-2.0

//! The functions that the core calls for a hit of a trigger.
//!
//! C counterpart: [`event_hist_trigger`](srctree/kernel/trace/trace_events_hist.c).
//!
//! Context: that of the event, which may be an NMI, with preemption off if there is a record.

use super::{
    Command,
    Node,
    Private,
    Trigger, //
};
use crate::ffi::{
    bindings,
    clock,
    event::{
        Hit,
        Record, //
    },
    guard::PreemptGuard, //
};
use core::marker::PhantomData;
use kernel::prelude::*;

/// The type of `event_command::trigger`, which the core calls for a hit.
///
/// # Safety
///
/// Only the trigger core may call it, with a node of this command that is or was just on its file, and has this
/// function.
pub(super) type HitFn = unsafe extern "C" fn(
    *mut bindings::event_trigger_data,
    *mut bindings::trace_buffer,
    *mut c_void,
    *mut bindings::ring_buffer_event,
);

/// A way to handle records of which only the data are needed; the implementor is a type without values.
pub(crate) trait RecordHandler<T: 'static> {
    /// Handles the records that this path does not, in a stack frame of its own.
    type Rest: RecordFallback<T>;

    /// Handles a record; or does nothing and returns data for [`RecordHandler::Rest`].
    fn hit<'a>(
        trigger: &'a T,
        record: Record<'a>,
    ) -> Option<<Self::Rest as RecordFallback<T>>::Left<'a>>;
}

/// Handles the records that a [`RecordHandler`] does not; the implementor is a type without values.
pub(crate) trait RecordFallback<T: 'static> {
    /// The data that a path passes on for a record that it does not handle.
    type Left<'a>: Copy;

    /// Handles a record.
    fn hit<'a>(trigger: &'a T, record: Record<'a>, left: Self::Left<'a>);
}

/// A way to handle records; the implementor is a type without values.
pub(crate) trait HitHandler<T> {
    /// Handles the records that this path does not, in a stack frame of its own.
    type Rest: HitHandler<T>;

    /// Handles a record, or does nothing and returns `false`.
    fn hit(trigger: &T, hit: Hit<'_>) -> bool;
}

/// A way to handle records most of which need only a lookup; the implementor is a type without values.
pub(crate) trait LookHandler<T: 'static> {
    /// The result of a lookup: no larger than a register, so that no part of it needs memory.
    type Found<'a>: Copy;

    /// Looks up a record, and handles it if nothing is found; otherwise returns the result of the lookup.
    fn look<'a>(trigger: &'a T, hit: Hit<'a>) -> Option<Self::Found<'a>>;

    /// Handles a record whose lookup has found something.
    fn rest<'a>(trigger: &'a T, hit: Hit<'a>, found: Self::Found<'a>);
}

/// The function that the core calls for each record of a trigger.
///
/// # Invariants
///
/// The function is a callback of [`Command`], so [`HitFn`] says when it may be called.
pub(crate) struct EntryFn<T>(pub(super) HitFn, PhantomData<fn(T)>);

impl<T: Trigger> EntryFn<T> {
    /// Returns the function for a path that needs only the data of a record.
    pub(crate) fn of_record<P: RecordHandler<T>>() -> Self {
        // INVARIANT: a callback of `Command`.
        Self(Command::<T>::hit_record::<P>, PhantomData)
    }

    /// Returns the function for a path on which most records need only a lookup.
    pub(crate) fn of_look<P: LookHandler<T>>() -> Self {
        // INVARIANT: a callback of `Command`.
        Self(Command::<T>::look::<P>, PhantomData)
    }

    /// Returns the function for a path of any kind.
    pub(crate) fn of<P: HitHandler<T>>() -> Self {
        // INVARIANT: a callback of `Command`.
        Self(Command::<T>::hit::<P>, PhantomData)
    }
}

impl<T> Clone for EntryFn<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for EntryFn<T> {}

impl<T: Trigger> Command<T> {
    /// # Safety
    ///
    /// The requirements of [`HitFn`].
    #[inline(never)]
    unsafe extern "C" fn hit_record<P: RecordHandler<T>>(
        data: *mut bindings::event_trigger_data,
        buffer: *mut bindings::trace_buffer,
        rec: *mut c_void,
        event: *mut bindings::ring_buffer_event,
    ) {
        // SAFETY: by the contract; the node is freed only after a grace period, which this call delays.
        let private = unsafe { Node::<T>::from_raw(data) }.private();
        // SAFETY: `file` is the event file that the node was made for, and the other arguments are those of the core
        // for this call; all are valid until the call returns.
        match unsafe { Hit::from_raw(private.file, buffer, rec, event) } {
            Some(hit) => {
                if let Some(left) = P::hit(&private.data, hit.into_record()) {
                    Self::rest_of_record::<P::Rest>(&private.data, hit.into_record(), left);
                }
            }
            None => Self::missed(&private.data),
        }
    }

    /// Handles a record that a path has not handled.
    #[cold]
    #[inline(never)]
    fn rest_of_record<'a, R: RecordFallback<T>>(
        trigger: &'a T,
        record: Record<'a>,
        left: R::Left<'a>,
    ) {
        R::hit(trigger, record, left);
    }

    /// Runs the path `P`. If that does not handle the record, calls `P::Rest` with the same arguments: a tail call,
    /// which needs no stack frame.
    ///
    /// # Safety
    ///
    /// The requirements of [`HitFn`].
    #[inline(never)]
    unsafe extern "C" fn hit<P: HitHandler<T>>(
        data: *mut bindings::event_trigger_data,
        buffer: *mut bindings::trace_buffer,
        rec: *mut c_void,
        event: *mut bindings::ring_buffer_event,
    ) {
        // SAFETY: by the contract; the node is freed only after a grace period, which this call delays.
        let private = unsafe { Node::<T>::from_raw(data) }.private();
        // SAFETY: `file` is the event file that the node was made for, and the other arguments are those of the core
        // for this call; all are valid until the call returns.
        match unsafe { Hit::from_raw(private.file, buffer, rec, event) } {
            Some(hit) if P::hit(&private.data, hit) => (),
            // SAFETY: by the contract of this function.
            Some(_) => unsafe { Self::hit::<P::Rest>(private.node, buffer, rec, event) },
            None => Self::missed(&private.data),
        }
    }

    /// # Safety
    ///
    /// The requirements of [`HitFn`].
    #[inline(never)]
    unsafe extern "C" fn look<P: LookHandler<T>>(
        data: *mut bindings::event_trigger_data,
        buffer: *mut bindings::trace_buffer,
        rec: *mut c_void,
        event: *mut bindings::ring_buffer_event,
    ) {
        // SAFETY: by the contract; the node is freed only after a grace period, which this call delays.
        let private = unsafe { Node::<T>::from_raw(data) }.private();
        // SAFETY: `file` is the event file that the node was made for, and the other arguments are those of the core
        // for this call; all are valid until the call returns.
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
    /// The requirements of [`HitFn`].
    #[inline(never)]
    unsafe fn rest_of_look<'a, P: LookHandler<T>>(
        private: &'a Private<T>,
        buffer: *mut bindings::trace_buffer,
        rec: *mut c_void,
        event: *mut bindings::ring_buffer_event,
        found: P::Found<'a>,
    ) {
        // SAFETY: `file` is the event file that the node was made for, and the other arguments are those of the core
        // for this call; all are valid until the call returns.
        match unsafe { Hit::from_raw(private.file, buffer, rec, event) } {
            Some(hit) => P::rest(&private.data, hit, found),
            None => Self::missed(&private.data),
        }
    }

    /// Calls the trigger's own function for the records that its filter accepts.
    ///
    /// # Safety
    ///
    /// The requirements of [`HitFn`], with a trigger that has a filter.
    #[inline(never)]
    pub(super) unsafe extern "C" fn filtered<const PLACES: bool, const TASK: bool>(
        data: *mut bindings::event_trigger_data,
        buffer: *mut bindings::trace_buffer,
        rec: *mut c_void,
        event: *mut bindings::ring_buffer_event,
    ) {
        // SAFETY: by the contract; the node is freed only after a grace period, which this call delays.
        let private = unsafe { Node::<T>::from_raw(data) }.private();
        // SAFETY: by the invariant of `Private`, as this function is that of its node.
        let filter = unsafe { private.filter.as_ref().unwrap_unchecked() };
        // SAFETY: `file` is the node's event file, and the core passed the rest; valid until the call returns.
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

    /// Returns the function for records that the filter accepts.
    fn filtered_in(private: &Private<T>) -> HitFn {
        let entry = private.data.entry().0;
        private.timed.as_ref().map_or(entry, |_| Self::timed)
    }

    /// Like [`Command::filtered`], for any filter; it calls other functions, so it has a stack frame.
    ///
    /// # Safety
    ///
    /// The requirements of [`HitFn`], with a trigger that has a filter.
    #[inline(never)]
    pub(super) unsafe extern "C" fn filtered_slowly(
        data: *mut bindings::event_trigger_data,
        buffer: *mut bindings::trace_buffer,
        rec: *mut c_void,
        event: *mut bindings::ring_buffer_event,
    ) {
        // SAFETY: by the contract; the node is freed only after a grace period, which this call delays.
        let private = unsafe { Node::<T>::from_raw(data) }.private();
        // SAFETY: `file` is the node's event file, and the core passed the rest; valid until the call returns.
        let hit = unsafe { Hit::from_raw(private.file, buffer, rec, event) };
        let (Some(hit), Some(filter)) = (hit, &private.filter) else {
            return Self::missed(&private.data);
        };
        if filter.accepts(*hit.into_record().preempt_off(), hit.data()) {
            // SAFETY: by the contract of this function.
            unsafe { Self::filtered_in(private)(data, buffer, rec, event) }
        }
    }

    /// Counts a call of the trigger's own function, and times one of [`EVERY`](crate::overhead::EVERY) calls.
    ///
    /// # Safety
    ///
    /// The requirements of [`HitFn`], with a trigger that is timed.
    #[inline(never)]
    pub(super) unsafe extern "C" fn timed(
        data: *mut bindings::event_trigger_data,
        buffer: *mut bindings::trace_buffer,
        rec: *mut c_void,
        event: *mut bindings::ring_buffer_event,
    ) {
        // SAFETY: by the contract; the node is freed only after a grace period, which this call delays.
        let private = unsafe { Node::<T>::from_raw(data) }.private();
        // SAFETY: by the invariant of `Private`, as this function is that of its node.
        let meter = unsafe { private.timed.as_ref().unwrap_unchecked() };
        match meter.count() {
            // SAFETY: the function is for this data; by the contract of this function.
            false => unsafe { (private.data.entry().0)(data, buffer, rec, event) },
            // SAFETY: by the contract of this function.
            true => unsafe { Self::sample(private, buffer, rec, event) },
        }
    }

    /// Times a call of the trigger's own function.
    ///
    /// # Safety
    ///
    /// The requirements of [`Command::timed`].
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
        // Only a call without a record turns preemption off here: with one it is off, and the record counts its depth.
        let guard = event.is_null().then(PreemptGuard::new);
        let begin = clock::local();
        // SAFETY: the function is for this data; by the contract of this function.
        unsafe { (private.data.entry().0)(private.node, buffer, rec, event) };
        // If the clock was corrected, it may have gone back; such a sample is not added.
        meter.add(clock::local().wrapping_sub(begin));
        drop(guard);
    }

    /// Handles a call without a record.
    #[cold]
    #[inline(never)]
    fn missed(data: &T) {
        data.miss(&PreemptGuard::new().proof());
    }
}
