// SPDX-License-Identifier: GPL-2.0

//! Conditional snapshots: swapping the trace buffers of an instance when a hit is worth it.
//!
//! C counterpart: `tracing_snapshot_cond()` in
//! [`kernel/trace/trace_snapshot.c`](srctree/kernel/trace/trace_snapshot.c).
//!
//! An instance has at most one condition. What belongs to it is decided upon, and written, with the
//! instance's `max_lock` held and interrupts off, and readers copy it under the same lock. It is the
//! innermost lock of tracing: nothing is allocated or called there.

use super::event::Instance;

/// What an instance keeps about its snapshot.
pub(crate) trait Condition: Copy + Send + 'static {
    /// What a hit brings along.
    type Hit<'a>;

    /// Decides whether this hit takes a snapshot, and keeps what there is to keep of it.
    ///
    /// Runs with a raw lock held and interrupts off.
    fn accept(&mut self, hit: &Self::Hit<'_>) -> bool;
}

pub(crate) use imp::CondSnapshot;

/// Why an instance has no room for a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// Another trigger has its condition there, or a tracer or a reader uses the snapshot.
    Busy,
    /// The kernel has no snapshots.
    #[cfg_attr(CONFIG_TRACER_SNAPSHOT, expect(dead_code, reason = "it has"))]
    NotBuilt,
    /// No memory, for the buffer most likely.
    NoMemory,
}

#[cfg(CONFIG_TRACER_SNAPSHOT)]
mod imp {
    use super::{
        Condition,
        Denied,
        Instance, //
    };
    use crate::{
        ffi::bindings,
        sync::{
            Atomic,
            Relaxed, //
        },
    };
    use core::cell::UnsafeCell;
    use kernel::prelude::*;

    /// The condition of an instance.
    ///
    /// # Invariants
    ///
    /// - While `enabled` is not 0, the instance has `state` as its condition and is live.
    /// - The condition is used under the `max_lock` of the instance only.
    pub(crate) struct CondSnapshot<T: Condition> {
        instance: *mut bindings::trace_array,
        enabled: Atomic<u32>,
        state: KBox<UnsafeCell<T>>,
    }

    // SAFETY: the condition is used under a lock, and the instance's functions from any thread.
    unsafe impl<T: Condition> Send for CondSnapshot<T> {}

    // SAFETY: the condition is used under a lock, and the instance's functions from any thread.
    unsafe impl<T: Condition> Sync for CondSnapshot<T> {}

    impl<T: Condition> CondSnapshot<T> {
        /// Gives the instance a condition, and the snapshot buffer that it may lack.
        ///
        /// # Safety
        ///
        /// The instance must stay until [`CondSnapshot::disable`].
        pub(crate) unsafe fn enable(
            instance: Instance<'_>,
            condition: T,
        ) -> core::result::Result<Self, Denied> {
            let instance = instance.as_ptr();
            let state =
                KBox::new(UnsafeCell::new(condition), GFP_KERNEL).map_err(|_| Denied::NoMemory)?;
            // SAFETY: the instance is live. The condition stays in place until `disable`, after
            // which the core does not use it.
            let ret = unsafe {
                bindings::tracing_snapshot_cond_enable(
                    instance,
                    state.get().cast(),
                    Some(Self::update),
                )
            };
            if ret == EBUSY.to_errno() {
                return Err(Denied::Busy);
            }
            if ret < 0 {
                return Err(Denied::NoMemory);
            }
            // INVARIANT: it is the condition of the instance now, which lives by the contract.
            Ok(Self {
                instance,
                enabled: Atomic::new(1),
                state,
            })
        }

        /// Takes a snapshot if the condition accepts the hit. In an NMI the core refuses it.
        ///
        /// To be called by a hit of a trigger that [`CondSnapshot::disable`] waits for.
        pub(crate) fn take(&self, hit: &T::Hit<'_>) {
            // SAFETY: the instance is live while it is hit; the core hands the pointer to `update`,
            // before it returns.
            unsafe {
                bindings::tracing_snapshot_cond(
                    self.instance,
                    core::ptr::from_ref(hit).cast_mut().cast(),
                )
            };
        }

        /// A copy of what belongs to the condition, in memory of its own as it may be large; `ENOMEM`.
        pub(crate) fn copy(&self) -> Result<KBox<T>> {
            let copy = KBox::new_uninit(GFP_KERNEL_ACCOUNT)?;
            // SAFETY: by the type invariant the instance is live; nothing below sleeps.
            unsafe { bindings::hist_helper_max_lock(self.instance) };
            // SAFETY: by the type invariant, and the lock is held.
            let copy = KBox::write(copy, unsafe { *self.state.get() });
            // SAFETY: taken above.
            unsafe { bindings::hist_helper_max_unlock(self.instance) };
            Ok(copy)
        }

        /// Takes the condition back from the instance.
        ///
        /// No hit may still be on its way to [`CondSnapshot::take`]: it would take a snapshot that
        /// has no condition.
        pub(crate) fn disable(&self) {
            // ORDERING: decides who disables; `event_mutex`, or the last user, orders the rest.
            if self.enabled.xchg(0, Relaxed) != 0 {
                // SAFETY: by the type invariant.
                unsafe { bindings::tracing_snapshot_cond_disable(self.instance) };
            }
        }

        /// # Safety
        ///
        /// For the core, with the `max_lock` of an instance held whose condition is a `T`, and a hit
        /// that was given to [`CondSnapshot::take`], or nothing.
        unsafe extern "C" fn update(
            instance: *mut bindings::trace_array,
            hit: *mut c_void,
        ) -> bool {
            // PARITY: `cond_snapshot_update()` follows the null pointer of a `snapshot` trigger.
            // There is one picture, and it belongs to the condition.
            if hit.is_null() {
                return false;
            }
            // SAFETY: the lock is held, under which the instance has its condition.
            let state = unsafe { (*(*instance).cond_snapshot).cond_data }.cast::<T>();
            // SAFETY: `enable` gave a `T` that stays until `disable`; the lock makes it ours.
            let state = unsafe { &mut *state };
            // SAFETY: by the contract.
            state.accept(unsafe { &*hit.cast::<T::Hit<'_>>() })
        }
    }

    impl<T: Condition> Drop for CondSnapshot<T> {
        fn drop(&mut self) {
            self.disable();
        }
    }
}

#[cfg(not(CONFIG_TRACER_SNAPSHOT))]
mod imp {
    use super::{
        Condition,
        Denied,
        Instance, //
    };
    use kernel::prelude::*;

    /// There are no snapshots in this kernel, and so none of these.
    pub(crate) struct CondSnapshot<T: Condition>(core::convert::Infallible, T);

    impl<T: Condition> CondSnapshot<T> {
        /// Fails.
        ///
        /// # Safety
        ///
        /// None is needed.
        pub(crate) unsafe fn enable(
            _instance: Instance<'_>,
            _condition: T,
        ) -> core::result::Result<Self, Denied> {
            Err(Denied::NotBuilt)
        }

        pub(crate) fn take(&self, _hit: &T::Hit<'_>) {
            match self.0 {}
        }

        pub(crate) fn copy(&self) -> Result<KBox<T>> {
            match self.0 {}
        }

        pub(crate) fn disable(&self) {
            match self.0 {}
        }
    }
}
