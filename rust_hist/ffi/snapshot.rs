// SPDX-License-Identifier: GPL-2.0

//! Conditional snapshots: swapping the trace buffers of an instance for a hit that fulfils a condition.
//!
//! C counterpart: `tracing_snapshot_cond()` in
//! [`kernel/trace/trace_snapshot.c`](srctree/kernel/trace/trace_snapshot.c).
//!
//! An instance has at most one condition. Its state is read and written with the instance's `max_lock` held and
//! interrupts off, and readers copy it under the same lock. It is the innermost lock of tracing: nothing is allocated
//! or called under it.

use super::event::Instance;
use kernel::prelude::*;

/// The state of an instance's condition for snapshots.
pub(crate) trait Condition: Copy + Send + 'static {
    /// The data of a hit on which the condition decides.
    type Hit<'a>;

    /// Decides whether this hit takes a snapshot, and if so stores its data.
    ///
    /// Runs with a raw spinlock held and interrupts off.
    fn accept(&mut self, hit: &Self::Hit<'_>) -> bool;
}

pub(crate) use imp::CondSnapshot;

#[cfg(CONFIG_TRACER_SNAPSHOT)]
mod imp {
    use super::*;
    use crate::{
        ffi::bindings,
        sync::{
            Atomic,
            Relaxed, //
        },
    };
    use core::cell::UnsafeCell;
    use kernel::error::to_result;

    /// The condition of an instance.
    ///
    /// # Invariants
    ///
    /// - While `enabled` is not 0, the instance has `state` as its condition and is live.
    /// - The condition is accessed only under the `max_lock` of the instance.
    pub(crate) struct CondSnapshot<T: Condition> {
        instance: *mut bindings::trace_array,
        enabled: Atomic<u32>,
        state: KBox<UnsafeCell<T>>,
    }

    // SAFETY: the condition is accessed under a lock, and the instance's functions may be called from any thread.
    unsafe impl<T: Condition> Send for CondSnapshot<T> {}

    // SAFETY: the condition is used under a lock, and the instance's functions from any thread.
    unsafe impl<T: Condition> Sync for CondSnapshot<T> {}

    impl<T: Condition> CondSnapshot<T> {
        /// Gives the instance a condition, and a snapshot buffer if it lacks one. `EBUSY` if another trigger has its
        /// condition in the instance, or a tracer or a reader uses the snapshot; else there is no memory, most likely
        /// for the buffer.
        ///
        /// # Safety
        ///
        /// The instance must stay alive until [`CondSnapshot::disable`].
        pub(crate) unsafe fn enable(instance: Instance<'_>, condition: T) -> Result<Self> {
            let instance = instance.as_ptr();
            let state = KBox::new(UnsafeCell::new(condition), GFP_KERNEL)?;
            // SAFETY: the instance is live. The condition stays in place until `disable`, and the core does not use it
            // after that.
            to_result(unsafe {
                bindings::tracing_snapshot_cond_enable(
                    instance,
                    state.get().cast(),
                    Some(Self::update),
                )
            })?;
            // INVARIANT: the instance has this condition now, and lives by the contract.
            Ok(Self {
                instance,
                enabled: Atomic::new(1),
                state,
            })
        }

        /// Takes a snapshot if the condition accepts the hit. In an NMI the core refuses it.
        ///
        /// Must be called by a hit of a trigger, for which [`CondSnapshot::disable`] waits.
        pub(crate) fn take(&self, hit: &T::Hit<'_>) {
            // SAFETY: the instance is live while it is hit; the core passes the pointer to `update`, before it returns.
            unsafe {
                bindings::tracing_snapshot_cond(
                    self.instance,
                    core::ptr::from_ref(hit).cast_mut().cast(),
                )
            };
        }

        /// Returns a copy of the condition's state, allocated as it may be large; `ENOMEM` if there is no memory.
        pub(crate) fn copy(&self) -> Result<KBox<T>> {
            let copy = KBox::new_uninit(GFP_KERNEL_ACCOUNT)?;
            // SAFETY: by the type invariant the instance is live; nothing below sleeps.
            unsafe { bindings::hist_helper_max_lock(self.instance) };
            // SAFETY: by the type invariant, and the lock is held.
            let copy = KBox::write(copy, unsafe { *self.state.get() });
            // SAFETY: the lock was taken above.
            unsafe { bindings::hist_helper_max_unlock(self.instance) };
            Ok(copy)
        }

        /// Removes the condition from the instance.
        ///
        /// No hit may still be about to call [`CondSnapshot::take`]: it would take a snapshot without a condition.
        pub(crate) fn disable(&self) {
            // ORDERING: the exchange decides which caller disables; `event_mutex`, or the last user, orders everything
            // else.
            if self.enabled.xchg(0, Relaxed) != 0 {
                // SAFETY: by the type invariant.
                unsafe { bindings::tracing_snapshot_cond_disable(self.instance) };
            }
        }

        /// # Safety
        ///
        /// Only the core may call this, with the `max_lock` of an instance held whose condition is a `T`, and a hit
        /// that was passed to [`CondSnapshot::take`], or null.
        unsafe extern "C" fn update(
            instance: *mut bindings::trace_array,
            hit: *mut c_void,
        ) -> bool {
            // PARITY: `cond_snapshot_update()` dereferences the null pointer of a `snapshot` trigger. There is only one
            // snapshot, and it belongs to the condition.
            if hit.is_null() {
                return false;
            }
            // SAFETY: the lock is held, under which the instance has its condition.
            let state = unsafe { (*(*instance).cond_snapshot).cond_data }.cast::<T>();
            // SAFETY: `enable` passed a `T` that stays until `disable`; the lock gives exclusive access.
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
    use super::*;

    /// A type without values, for a kernel without snapshots.
    pub(crate) struct CondSnapshot<T: Condition>(core::convert::Infallible, T);

    impl<T: Condition> CondSnapshot<T> {
        /// Returns `ENODEV`, as the kernel has no snapshots.
        ///
        /// # Safety
        ///
        /// There are no requirements.
        pub(crate) unsafe fn enable(_instance: Instance<'_>, _condition: T) -> Result<Self> {
            Err(ENODEV)
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
