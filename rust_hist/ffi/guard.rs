// SPDX-License-Identifier: GPL-2.0

//! Proofs, as zero-sized values, of the context that a function runs in.
//!
//! C counterpart: [`include/linux/preempt.h`](srctree/include/linux/preempt.h),
//! [`kernel/trace/trace_events.c`](srctree/kernel/trace/trace_events.c) for `event_mutex`.
//!
//! Lock order of the tracing core, outermost first: `event_mutex`, `trigger_cmd_mutex`,
//! `trace_types_lock`. Nothing in this file takes `trigger_cmd_mutex`.

use super::{
    arch,
    bindings,
    trace_core, //
};
use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    ops::Deref, //
};
use kernel::{
    ffi::c_ulong,
    sync::{
        Mutex,
        MutexGuard, //
    },
    types::NotThreadSafe, //
};

/// Proof that this task holds `event_mutex`.
///
/// # Invariants
///
/// `event_mutex` is held by the current task while this value exists.
pub(crate) struct EventMutexHeld(NotThreadSafe);

impl EventMutexHeld {
    /// Asserts that the caller holds `event_mutex`; for callbacks of the tracing core.
    ///
    /// # Safety
    ///
    /// `event_mutex` must be held by this task, and stay held until the value is dropped.
    pub(super) unsafe fn assume() -> Self {
        // INVARIANT: by the contract of this function.
        Self(NotThreadSafe)
    }
}

/// `event_mutex`, held by this task until the guard is dropped.
pub(crate) struct EventMutex {
    held: EventMutexHeld,
    // Dropped before the guard.
    _end: trace_core::EndOfEventMutex,
    _guard: MutexGuard<'static, ()>,
}

impl EventMutex {
    /// Takes `event_mutex`. Sleeps; the caller must not hold a lock that comes after it.
    pub(crate) fn lock() -> Self {
        // SAFETY: `event_mutex` is a mutex that stays, initialised at build time.
        let mutex = unsafe { Mutex::from_raw(&raw mut trace_core::event_mutex) };
        Self {
            _guard: mutex.lock(),
            // INVARIANT: taken by the line before, and released when all fields are dropped.
            held: EventMutexHeld(NotThreadSafe),
            _end: trace_core::EndOfEventMutex,
        }
    }
}

impl Deref for EventMutex {
    type Target = EventMutexHeld;

    /// Returns the proof that the mutex is held.
    fn deref(&self) -> &EventMutexHeld {
        &self.held
    }
}

/// A value that is accessed under `event_mutex`.
pub(crate) struct Guarded<T>(UnsafeCell<T>);

// SAFETY: the mutex lets only one task at a time use the value.
unsafe impl<T: Send> Sync for Guarded<T> {}

impl<T> Guarded<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// Returns the value. A caller must not call another user of it while it has the reference.
    #[expect(clippy::mut_from_ref, reason = "the proof stands for the lock")]
    pub(crate) fn get<'a>(&'a self, _held: &'a EventMutexHeld) -> &'a mut T {
        // SAFETY: the mutex excludes all other tasks; within the task the reference is the only one, as the callers
        // must ensure.
        unsafe { &mut *self.0.get() }
    }
}

/// Proof that preemption is off: the task stays on this CPU, and no other task runs on it.
///
/// Interrupts and NMIs may still come at any point.
///
/// # Invariants
///
/// Preemption is off while this value or a copy of it exists.
#[derive(Clone, Copy)]
pub(crate) struct PreemptOff<'a>(PhantomData<&'a ()>, NotThreadSafe);

impl PreemptOff<'_> {
    /// Asserts that preemption is off.
    ///
    /// # Safety
    ///
    /// Preemption must be off now and for the lifetime of the value and its copies.
    #[inline(always)]
    pub(super) unsafe fn assume() -> Self {
        // INVARIANT: by the contract of this function.
        Self(PhantomData, NotThreadSafe)
    }

    /// Returns the number of this CPU, valid as long as the proof.
    #[inline(always)]
    pub(crate) fn cpu(&self) -> u32 {
        // SAFETY: by the type invariant the CPU stays the same as long as the number is used.
        unsafe { arch::cpu() }
    }

    /// Returns the number of nested sections without preemption.
    #[inline(always)]
    pub(super) fn depth(&self) -> u32 {
        // The bits above count interrupts of several kinds.
        arch::preempt_count() & 0xff
    }

    /// Raises the count of nested sections without preemption until the value is dropped; records contain the count.
    #[inline(always)]
    pub(crate) fn again(&self) -> PreemptOffAgain<'_> {
        #[cfg(CONFIG_PREEMPT_COUNT)]
        // SAFETY: lowering the count later needs no reschedule: by the type invariant preemption stays off.
        unsafe {
            arch::raise_preempt_count();
        }
        PreemptOffAgain(*self)
    }

    /// Returns whether RCU watches this CPU, as it does all CPUs that are online.
    #[inline(always)]
    pub(super) fn is_watched(&self) -> bool {
        // SAFETY: the mask is part of the kernel image.
        unsafe { self.is_in((&raw const bindings::__cpu_online_mask).cast()) }
    }

    /// Returns whether this CPU is in a mask.
    ///
    /// # Safety
    ///
    /// `mask` must point to the words of a `cpumask`.
    #[inline(always)]
    pub(super) unsafe fn is_in(&self, mask: *const c_ulong) -> bool {
        // CAST: the number of a CPU fits.
        let cpu = self.cpu() as usize;
        let bits = c_ulong::BITS as usize;
        // SAFETY: by the contract; a mask has a bit for each CPU, and its words are written at once.
        let word = unsafe { mask.add(cpu / bits).read_volatile() };
        word >> (cpu % bits) & 1 != 0
    }
}

/// A nested section without preemption.
///
/// # Invariants
///
/// The count of nested sections was raised for this value, on this CPU.
pub(crate) struct PreemptOffAgain<'a>(PreemptOff<'a>);

impl PreemptOffAgain<'_> {
    /// Returns the proof that preemption is off.
    #[inline(always)]
    pub(crate) fn proof(&self) -> &PreemptOff<'_> {
        &self.0
    }
}

impl Drop for PreemptOffAgain<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        #[cfg(CONFIG_PREEMPT_COUNT)]
        // SAFETY: the count was raised for this value. By the type invariant preemption stays off, so the count stays
        // above 0.
        unsafe {
            arch::lower_preempt_count();
        }
    }
}

/// Turns preemption off until this is dropped.
pub(crate) struct PreemptGuard(NotThreadSafe);

impl PreemptGuard {
    /// Turns preemption off.
    pub(crate) fn new() -> Self {
        // SAFETY: the count that this raises is lowered again by `drop`, on the same task.
        unsafe { bindings::hist_helper_preempt_disable() };
        Self(NotThreadSafe)
    }

    /// Returns the proof that preemption is off.
    pub(crate) fn proof(&self) -> PreemptOff<'_> {
        // SAFETY: `new` turned preemption off, and the proof cannot outlive the guard.
        unsafe { PreemptOff::assume() }
    }
}

impl Drop for PreemptGuard {
    fn drop(&mut self) {
        // SAFETY: this lowers the count that `new` raised.
        unsafe { bindings::hist_helper_preempt_enable() };
    }
}

/// Waits until every trigger function that was running when this was called has returned.
///
/// Sleeps for a grace period of tracepoints, and one of RCU, since probes other than tracepoints only turn preemption
/// off. `event_mutex` may be held.
pub(crate) fn wait_for_hits() {
    // SAFETY: the function only requires that the caller may sleep; all callers are in process context and hold at most
    // mutexes.
    unsafe { bindings::hist_helper_tracepoint_sync() };
    synchronize_rcu();
}

/// Waits until all sections without preemption and all RCU sections that have already begun are over. Sleeps.
pub(super) fn synchronize_rcu() {
    // SAFETY: the callers are in process context and hold at most mutexes.
    unsafe { kernel::bindings::synchronize_rcu() };
}
