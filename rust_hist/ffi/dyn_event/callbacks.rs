// SPDX-License-Identifier: GPL-2.0

//! The core's callbacks for a type of dynamic events.
//!
//! C headers: [`kernel/trace/trace_dynevent.h`](srctree/kernel/trace/trace_dynevent.h),
//! [`include/linux/trace_events.h`](srctree/include/linux/trace_events.h).

use super::{
    super::{
        bindings,
        event::c_str,
        guard::EventMutexHeld,
        seq,
        trace_seq::TraceWriter, //
    },
    DynEventType, //
    Event,
    FieldDef,
};
use crate::sync::Relaxed;
use core::ffi::CStr;
use kernel::{
    error::{
        from_result,
        to_result, //
    },
    prelude::*,
    sync::{
        Arc,
        ArcBorrow, //
    }, //
};

impl<K: DynEventType> Event<K> {
    /// # Safety
    ///
    /// Only the core may call this, with a line and under the lock of the types.
    pub(super) unsafe extern "C" fn create_callback(line: *const c_char) -> c_int {
        // CAST: a small number.
        const NOT_OURS: c_int = -(bindings::ECANCELED as c_int);

        if !K::registry().is_open() {
            return NOT_OURS;
        }
        // SAFETY: by the contract.
        let line = unsafe { CStr::from_char_ptr(line) };
        from_result(|| K::create(line).map(|ours| if ours { 0 } else { NOT_OURS }))
    }

    /// # Safety
    ///
    /// Only the core may call this, with `event_mutex` held, a live `seq_file` and an event of this type.
    pub(super) unsafe extern "C" fn show_callback(
        m: *mut bindings::seq_file,
        node: *mut bindings::dyn_event,
    ) -> c_int {
        // SAFETY: by the contract.
        let event = unsafe { Self::from_dyn_event(node) };
        // SAFETY: `m` is live and this call is its only user.
        unsafe { seq::show(m, |out| event.show(out)) }
    }

    /// Returns the event of a callback, and the proof that the core holds `event_mutex` during the call.
    ///
    /// # Safety
    ///
    /// `event_mutex` must be held, and `node` must belong to an event of this type, for `'a`.
    unsafe fn locked<'a>(node: *mut bindings::dyn_event) -> (ArcBorrow<'a, Self>, EventMutexHeld) {
        // SAFETY: by the contract, an event of this type is on the list while the mutex is held.
        unsafe { (Self::from_dyn_event(node), EventMutexHeld::assume()) }
    }

    /// # Safety
    ///
    /// Only the core may call this, with `event_mutex` held and an event of this type.
    pub(super) unsafe extern "C" fn is_busy_callback(node: *mut bindings::dyn_event) -> bool {
        // SAFETY: by the contract, for the whole call.
        let (event, held) = unsafe { Self::locked(node) };
        let is_busy = event.is_busy(&held);
        if is_busy {
            // The core only asks when all events are to be deleted.
            K::still_in_use(&event, true, &held);
        }
        is_busy
    }

    /// # Safety
    ///
    /// Only the core may call this, with `event_mutex` held and an event of this type, which is freed if the result is
    /// 0.
    pub(super) unsafe extern "C" fn free_callback(node: *mut bindings::dyn_event) -> c_int {
        // SAFETY: by the contract, for the whole call.
        let (event, held) = unsafe { Self::locked(node) };
        // The reference keeps the event when the list drops its own.
        let event = Arc::from(event);
        if event.is_busy(&held) {
            K::still_in_use(&event, false, &held);
        }
        from_result(|| Self::delete(&event, &held).map(|()| 0))
    }

    /// # Safety
    ///
    /// Only the core may call this, with `event_mutex` held, strings, or null for the system, and an event of this
    /// type.
    pub(super) unsafe extern "C" fn match_callback(
        system: *const c_char,
        name: *const c_char,
        _argc: c_int,
        _argv: *mut *const c_char,
        node: *mut bindings::dyn_event,
    ) -> bool {
        // SAFETY: by the contract.
        let (event, name, system) =
            unsafe { (Self::from_dyn_event(node), c_str(name), c_str(system)) };
        name == Some(event.name()) && system.is_none_or(|system| system == K::system())
    }

    /// # Safety
    ///
    /// Only the core may call this, while the event is being registered.
    pub(super) unsafe extern "C" fn define_fields(call: *mut bindings::trace_event_call) -> c_int {
        // SAFETY: by the contract.
        let event = unsafe { Self::of_call(call) };
        from_result(|| {
            for field in event.fields() {
                // SAFETY: by the contract.
                unsafe { define(call, &field) }?;
            }
            // ORDERING: this task reads it after the call of the core.
            event.defined.store(1, Relaxed);
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// Only the core may call this, with `event_mutex` held, and with `data` the listener that comes or goes.
    pub(super) unsafe extern "C" fn reg(
        call: *mut bindings::trace_event_call,
        what: bindings::trace_reg,
        data: *mut c_void,
    ) -> c_int {
        let (comes, goes) = match what {
            bindings::trace_reg_TRACE_REG_REGISTER
            | bindings::trace_reg_TRACE_REG_PERF_REGISTER => (true, false),
            bindings::trace_reg_TRACE_REG_UNREGISTER
            | bindings::trace_reg_TRACE_REG_PERF_UNREGISTER => (false, true),
            _ => (false, false),
        };
        // SAFETY: by the contract.
        let event = unsafe { Self::of_call(call) };
        if comes && !event.come() {
            return EBUSY.to_errno();
        }
        // SAFETY: by the contract.
        let ret = unsafe { bindings::trace_event_reg(call, what, data) };
        if goes || comes && ret != 0 {
            event.leave();
        }
        ret
    }

    /// Counts a new listener, which pins the owner of the event; `false` if that module is going.
    fn come(&self) -> bool {
        // ORDERING: accessed only under `event_mutex`.
        let owner = self.owner.load(Relaxed);
        // SAFETY: the module is live, or there is none: `module_going` clears it before it is freed.
        let kept = unsafe { bindings::try_module_get(owner) };
        if kept {
            // ORDERING: accessed only under `event_mutex`.
            self.listeners.fetch_add(1, Relaxed);
        }
        kept
    }

    /// Counts a listener that has left.
    fn leave(&self) {
        // ORDERING: all of these are accessed only under `event_mutex`.
        self.listeners.fetch_sub(1, Relaxed);
        let left = &K::registry().left;
        let now = left.load(Relaxed).wrapping_add(1);
        left.store(now, Relaxed);
        self.left.store(now, Relaxed);
        // ORDERING: accessed only under `event_mutex`. A module with listeners stays, so the owner is the same.
        let owner = self.owner.load(Relaxed);
        // SAFETY: `come` took the reference when the listener came.
        unsafe { bindings::module_put(owner) };
    }

    /// # Safety
    ///
    /// Only the core may call this, with the lock on events held for reading and a record of this event.
    pub(super) unsafe extern "C" fn print(
        iter: *mut bindings::trace_iterator,
        _flags: c_int,
        event: *mut bindings::trace_event,
    ) -> bindings::print_line_t {
        // SAFETY: the output functions are a member of a call.
        let call = unsafe { kernel::container_of!(event, bindings::trace_event_call, event) };
        // SAFETY: the lock keeps the event from being freed.
        let event = unsafe { Self::of_call(call) };
        // SAFETY: the iterator is live.
        let record = unsafe { event.record_of(iter) };
        // SAFETY: the iterator is live, and its instance lives as long as it is read from.
        let verbose = unsafe { is_verbose((*iter).tr) };
        // SAFETY: the iterator is live, and this call the only user of its buffer.
        let seq = unsafe { &mut (*iter).seq };
        // A full buffer is no error here: the core detects it.
        let _ = event.kind.print(record, verbose, &mut TraceWriter(seq));
        // SAFETY: the buffer belongs to the iterator, which is live.
        unsafe { bindings::trace_handle_return(seq) }
    }

    /// Returns the record that is to be shown.
    ///
    /// # Safety
    ///
    /// `iter` must have a record of this event, which stays valid for `'a`.
    unsafe fn record_of<'a>(&self, iter: *mut bindings::trace_iterator) -> &'a [u8] {
        // SAFETY: by the contract.
        let size = unsafe { (*iter).ent_size };
        let len = match usize::try_from(size) {
            // The size is missing when a record is printed while it is written (`tp_printk`): the data after the fields
            // are then left out.
            Ok(0) | Err(_) => self.kind.record_len(),
            Ok(len) => len,
        };
        // SAFETY: by the contract; no record, not even an injected one, ends before the end of its last field.
        unsafe { core::slice::from_raw_parts((*iter).ent.cast::<u8>(), len) }
    }
}

/// Defines one field in the core.
///
/// # Safety
///
/// `call` must be that of the field's event, which is being registered.
unsafe fn define(call: *mut bindings::trace_event_call, field: &FieldDef<'_>) -> Result {
    let filter = match field.stack {
        true => bindings::FILTER_STACKTRACE,
        false => bindings::FILTER_OTHER,
    };
    let offset = c_int::try_from(field.offset).map_err(|_| EINVAL)?;
    let size = c_int::try_from(field.size).map_err(|_| EINVAL)?;
    // CAST: a small number.
    let filter = filter as c_int;
    // SAFETY: by the contract; the texts belong to the event, which lives as long as its fields.
    to_result(unsafe {
        bindings::trace_define_field(
            call,
            field.type_name.as_char_ptr(),
            field.name.as_char_ptr(),
            offset,
            size,
            field.signed.into(),
            filter,
        )
    })
}

/// Returns whether the option `verbose` is set in the instance.
///
/// # Safety
///
/// `instance` must be null or live.
unsafe fn is_verbose(instance: *mut bindings::trace_array) -> bool {
    const VERBOSE: u64 = 1 << bindings::trace_iterator_bits_TRACE_ITER_VERBOSE_BIT;

    // SAFETY: by the contract; the word is written at once.
    !instance.is_null()
        && unsafe { (&raw const (*instance).trace_flags).read_volatile() } & VERBOSE != 0
}
