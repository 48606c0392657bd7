// SPDX-License-Identifier: GPL-2.0

//! Generates synthetic events of the kernel.
//!
//! C counterpart: `trace_synth()` in [`kernel/trace/trace_synth.h`](srctree/kernel/trace/trace_synth.h)

use super::{
    bindings,
    event::c_str,
    guard::PreemptOff, //
};
use core::{
    ffi::CStr,
    marker::PhantomData,
    ptr::NonNull, //
};
use kernel::{
    interop::list::clist_create,
    prelude::*,
    types::Opaque, //
};

/// The description of who generates an event. Nothing reads it: the kernel has no place for it.
pub(crate) type User = KVec<u8>;

/// A synthetic event, which stays while the value lives.
///
/// # Invariants
///
/// The file came from `trace_get_event_file()`, for the system of synthetic events.
pub(crate) struct KernelEvent(NonNull<bindings::trace_event_file>);

// SAFETY: the file is counted, and used by all tasks.
unsafe impl Send for KernelEvent {}

// SAFETY: the file is counted, and used by all tasks.
unsafe impl Sync for KernelEvent {}

/// A field as an entry of the list of its event's fields.
#[repr(transparent)]
struct Listed(Opaque<bindings::ftrace_event_field>);

/// The type of `probe` in the class of a synthetic event, which `scripts/layout` has checked.
type Probe = unsafe extern "C" fn(*mut c_void, *mut u64, *mut c_uint);

impl KernelEvent {
    /// The event of this name, if there is one. Takes `event_mutex`.
    pub(crate) fn get(name: &CStr) -> Option<Self> {
        // SAFETY: the names are only compared; null is the top instance.
        let file = unsafe {
            bindings::trace_get_event_file(
                core::ptr::null(),
                c"synthetic".as_char_ptr(),
                name.as_char_ptr(),
            )
        };
        let file = kernel::error::from_err_ptr(file).ok()?;
        // INVARIANT: `trace_get_event_file()` has just returned the file.
        NonNull::new(file).map(Self)
    }

    fn call(&self) -> *mut bindings::trace_event_call {
        // SAFETY: by the type invariant.
        unsafe { self.0.as_ref().event_call }
    }

    /// Calls `each` with the type and the name of each field, in order.
    pub(crate) fn fields(&self, mut each: impl FnMut(&[u8], &[u8]) -> Result) -> Result {
        // SAFETY: the event is live, with its class, and its fields do not change; the list is complete.
        let list = unsafe {
            clist_create!(
                &raw mut (*(*self.call()).class).fields,
                Listed,
                bindings::ftrace_event_field,
                link
            )
        };
        let mut fields = KVec::new();
        for field in list.iter() {
            fields.push(field.0.get(), GFP_KERNEL)?;
        }
        // The core adds each field at the front of the list.
        for &field in fields.iter().rev() {
            // SAFETY: a field on the list is live, with its texts.
            let (kind, name) = unsafe { (c_str((*field).type_), c_str((*field).name)) };
            each(
                kind.unwrap_or_default().to_bytes(),
                name.unwrap_or_default().to_bytes(),
            )?;
        }
        Ok(())
    }

    fn listeners(&self) -> *mut bindings::tracepoint_func {
        // SAFETY: a synthetic event has a tracepoint; the pointer to its functions is written as one word.
        unsafe { (&raw const (*(*self.call()).__bindgen_anon_1.tp).funcs).read_volatile() }
    }

    /// Whether anybody has the event enabled, in any instance or by perf.
    #[inline(always)]
    pub(crate) fn has_listeners(&self) -> bool {
        !self.listeners().is_null()
    }

    /// Generates the event with these values, one for each field in order. A value is a number, the address of a string
    /// that ends with a NUL, or the address of a stack: a word with the number of frames, the frames, and a 0.
    ///
    /// # Safety
    ///
    /// There must be a value for each field, as its type wants it.
    pub(crate) unsafe fn fire(&self, values: &mut [u64], _preempt: &PreemptOff<'_>) {
        let mut at = self.listeners();
        if at.is_null() {
            return;
        }
        loop {
            // SAFETY: preemption is off, so the list is not freed; it ends with an entry without a function.
            let (function, data) = unsafe { ((*at).func, (*at).data) };
            if function.is_null() {
                break;
            }
            // SAFETY: all functions of a synthetic event's tracepoint are of the type `Probe`.
            let probe = unsafe { core::mem::transmute::<*mut c_void, Probe>(function) };
            // SAFETY: by the contract. Value N belongs to field N. The probe takes a mutable pointer, but only reads the order.
            unsafe { probe(data, values.as_mut_ptr(), ORDER.as_ptr().cast_mut()) };
            at = at.wrapping_add(1);
        }
    }
}

/// A hit that has the values of a large event on its stack; dropping this ends it.
pub(crate) struct Large<'p>(PhantomData<&'p PreemptOff<'p>>);

impl<'p> Large<'p> {
    /// Begins; `None` in an NMI, whose stack has but 8192 bytes, and if two such hits nest on this CPU already.
    pub(crate) fn enter(_preempt: &'p PreemptOff<'p>) -> Option<Self> {
        // SAFETY: preemption is off until the value is dropped.
        let is_entered = unsafe { bindings::hist_stock_enter_large() };
        // Not `then_some`, which makes and drops the value of a refusal, too.
        is_entered.then(|| Self(PhantomData))
    }
}

impl Drop for Large<'_> {
    fn drop(&mut self) {
        // SAFETY: `enter` has begun it, on this CPU: preemption has been off since.
        unsafe { bindings::hist_stock_leave_large() };
    }
}

/// The most fields of a synthetic event.
const FIELDS: usize = 64;

static ORDER: [c_uint; FIELDS] = {
    let mut order = [0; FIELDS];
    let mut at = 0;
    while at < FIELDS {
        order[at] = at as c_uint;
        at += 1;
    }
    order
};

impl Drop for KernelEvent {
    fn drop(&mut self) {
        // SAFETY: by the type invariant.
        unsafe { bindings::trace_put_event_file(self.0.as_ptr()) };
    }
}
