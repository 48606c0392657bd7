// SPDX-License-Identifier: GPL-2.0

//! `event_mutex`, sections without preemption, and grace periods.

use crate::sim::{self, At};
use std::{
    cell::UnsafeCell,
    marker::PhantomData,
    ops::Deref,
    sync::{atomic::Ordering, Arc},
};

/// Proof that `event_mutex` is held.
pub struct EventMutexHeld(());

/// `event_mutex` of the machine, until it is dropped.
pub struct EventMutex(EventMutexHeld, Arc<sim::Machine>);

impl EventMutex {
    /// Takes the mutex. Others come in before, and while it is held by another task.
    pub fn lock() -> Self {
        let machine = sim::Machine::this();
        sim::at(At::Lock);
        while machine.is_held.swap(true, Ordering::Acquire) {
            sim::at(At::Lock);
        }
        Self(EventMutexHeld(()), machine)
    }
}

impl Drop for EventMutex {
    fn drop(&mut self) {
        self.1.is_held.store(false, Ordering::Release);
    }
}

impl Deref for EventMutex {
    type Target = EventMutexHeld;

    fn deref(&self) -> &EventMutexHeld {
        &self.0
    }
}

/// A value that is used under `event_mutex`.
pub struct Guarded<T>(UnsafeCell<T>);

// SAFETY: the mutex lets one task at a time use the value.
unsafe impl<T: Send> Sync for Guarded<T> {}

impl<T> Guarded<T> {
    pub const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// Returns the value.
    #[expect(clippy::mut_from_ref, reason = "the proof stands for the lock")]
    pub fn get<'a>(&'a self, _held: &'a EventMutexHeld) -> &'a mut T {
        // SAFETY: the mutex keeps all other tasks away; the module has the same rule for its users.
        unsafe { &mut *self.0.get() }
    }
}

/// Proof that preemption is off.
#[derive(Clone, Copy)]
pub struct PreemptOff<'a>(PhantomData<&'a ()>, u32);

impl PreemptOff<'_> {
    /// Returns the number of this CPU.
    pub fn cpu(&self) -> u32 {
        self.1
    }
}

/// A section without preemption: a hit, or a step of the thread. Whoever waits for hits waits until it is dropped.
pub struct PreemptGuard(sim::Section, u32);

impl PreemptGuard {
    /// Begins a section of the thread. Others come in before.
    pub fn new() -> Self {
        sim::at(At::Step);
        Self::of_hit(0)
    }

    /// Begins a section of a hit on this CPU.
    pub fn of_hit(cpu: u32) -> Self {
        Self(sim::Section::new(), cpu)
    }

    /// Returns the proof.
    pub fn proof(&self) -> PreemptOff<'_> {
        PreemptOff(PhantomData, self.1)
    }
}

/// Waits until the sections without preemption are over that have begun before. Others come in meanwhile.
pub fn wait_for_hits() {
    sim::wait_for_sections();
}
