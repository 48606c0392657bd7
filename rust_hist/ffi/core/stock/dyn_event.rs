// SPDX-License-Identifier: GPL-2.0

//! Generates synthetic events of the kernel.
//!
//! C counterpart: `trace_synth()` in [`kernel/trace/trace_synth.h`](srctree/kernel/trace/trace_synth.h)

use super::{
    bindings,
    event::{
        c_str,
        EventCall, //
    },
    guard::PreemptOff, //
};
use crate::{
    limits::NEST_MAX,
    sync::{
        Atomic,
        Relaxed, //
    }, //
};
use core::{
    cell::UnsafeCell,
    ffi::CStr,
    ptr::NonNull,
    sync::atomic::{
        compiler_fence,
        Ordering::SeqCst, //
    }, //
};
use kernel::{
    cpu::nr_cpu_ids,
    prelude::*, //
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
        let mut fields = KVec::new();
        // SAFETY: the event is live, and its fields do not change; the list is complete.
        for field in unsafe { EventCall::from_raw(self.call()).own_fields() } {
            fields.push(field, GFP_KERNEL)?;
        }
        // The core adds each field at the front of the list.
        for field in fields.iter().rev() {
            // SAFETY: a field on the list is live, with its texts.
            let (kind, name) = unsafe { (c_str(field.type_), c_str(field.name)) };
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

/// Memory for the values of an event, for each CPU and each of the hits that may nest there.
///
/// # Invariants
///
/// `words` has a part of `1 + NEST_MAX * len` words for each CPU. The first one is how many hits on the CPU are using the
/// memory; it is only written on its CPU, with preemption off. The hit that has raised it from `n` alone uses the words of
/// number `n` after it; a hit that interrupts another one has lowered the count again when the other one continues.
pub(crate) struct Pads {
    words: KVVec<UnsafeCell<u64>>,
    len: usize,
}

// SAFETY: by the type invariant no two tasks use the same word at the same time.
unsafe impl Send for Pads {}

// SAFETY: by the type invariant no two tasks use the same word at the same time.
unsafe impl Sync for Pads {}

impl Pads {
    /// Allocates memory for `len` words. Process context, sleeps.
    pub(crate) fn new(len: usize) -> Result<Self> {
        let each = len
            .checked_mul(NEST_MAX)
            .and_then(|words| words.checked_add(1))
            .ok_or(ENOMEM)?;
        // CAST: the number of CPUs fits.
        let all = each.checked_mul(nr_cpu_ids() as usize).ok_or(ENOMEM)?;
        let mut words = KVVec::with_capacity(all, GFP_KERNEL)?;
        for _ in 0..all {
            words.push(UnsafeCell::new(0), GFP_KERNEL)?;
        }
        // INVARIANT: all counts are 0.
        Ok(Self { words, len })
    }

    /// Calls `run` with memory of its own; returns `None` if [`NEST_MAX`] hits on this CPU are using theirs.
    #[inline]
    pub(crate) fn with<R>(
        &self,
        preempt: &PreemptOff<'_>,
        run: impl FnOnce(&mut [u64]) -> R,
    ) -> Option<R> {
        // OVERFLOW: `new` has multiplied more.
        let each = self.len.wrapping_mul(NEST_MAX).wrapping_add(1);
        // CAST: `u32` fits in `usize` on every architecture that Linux supports.
        let (count, pads) = self
            .words
            .get((preempt.cpu() as usize).wrapping_mul(each)..)?
            .split_first()?;
        // SAFETY: the word lives as long as the value, and is used as an atomic alone.
        let count = unsafe { Atomic::from_ptr(count.get()) };
        // ORDERING: only this CPU accesses the count, here and below.
        let at = count.load(Relaxed);
        if at >= NEST_MAX as u64 {
            return None;
        }
        // CAST: less than `NEST_MAX`.
        let pad = pads
            .get((at as usize).wrapping_mul(self.len)..)?
            .get(..self.len)?;
        // INVARIANT: hits that interrupt this one see the raised count.
        count.store(at + 1, Relaxed);
        // ORDERING: the hits run on this CPU: the compiler must not move the use of the words before the store.
        compiler_fence(SeqCst);
        // SAFETY: the words live as long as the value, and by the type invariant nobody else uses them meanwhile.
        let words =
            unsafe { core::slice::from_raw_parts_mut(UnsafeCell::raw_get(pad.as_ptr()), self.len) };
        let result = run(words);
        // ORDERING: the compiler must not move the use of the words to after the store.
        compiler_fence(SeqCst);
        // INVARIANT: all hits that have interrupted this one have ended.
        count.store(at, Relaxed);
        Some(result)
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
