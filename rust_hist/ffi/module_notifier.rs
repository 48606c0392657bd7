// SPDX-License-Identifier: GPL-2.0

//! Being told that a module goes away, before the tracing core frees its events.
//!
//! C header: [`include/linux/module.h`](srctree/include/linux/module.h)

use super::{
    bindings,
    event::ModuleId, //
};
use kernel::{
    error::to_result,
    prelude::*,
    types::Opaque, //
};

/// Above the tracing core, which removes the events of the module at priority 1.
const PRIORITY: i32 = 2;

// CAST: a value of a small enumeration, which the chain passes as a word.
const GOING: c_ulong = bindings::module_state_MODULE_STATE_GOING as c_ulong;

/// What has to know that a module goes away.
pub(super) trait ModuleGoing {
    /// Called after the exit function of `module`, or after its init function has failed. Sleeps; no lock
    /// of the tracing core is held.
    fn module_going(&self, module: ModuleId);
}

/// Tells a value when a module goes away, until it is dropped.
///
/// # Invariants
///
/// The block is on the list of module notifiers.
pub(super) struct ModuleWatch<T: ModuleGoing + Sync>(Pin<KBox<Watch<T>>>);

/// # Invariants
///
/// `told` is valid while the block is on the list.
#[repr(C)]
struct Watch<T> {
    block: Opaque<bindings::notifier_block>,
    told: *const T,
}

// SAFETY: the list protects itself, and who is told may be used from any thread.
unsafe impl<T: ModuleGoing + Sync> Send for ModuleWatch<T> {}

// SAFETY: as above.
unsafe impl<T: ModuleGoing + Sync> Sync for ModuleWatch<T> {}

impl<T: ModuleGoing + Sync> ModuleWatch<T> {
    /// Registers the notifier.
    ///
    /// # Safety
    ///
    /// `told` must stay valid until the value is dropped.
    pub(super) unsafe fn new(told: *const T) -> Result<Self> {
        let block = bindings::notifier_block {
            notifier_call: Some(Self::callback),
            priority: PRIORITY,
            ..Default::default()
        };
        // INVARIANT: by the contract, and because `drop` takes the block off the list.
        let watch = Watch {
            block: Opaque::new(block),
            told,
        };
        let watch = KBox::pin(watch, GFP_KERNEL)?;
        // SAFETY: the box keeps the block alive and in place until `drop`.
        to_result(unsafe { bindings::register_module_notifier(watch.block.get()) })?;
        // INVARIANT: registered.
        Ok(Self(watch))
    }

    /// # Safety
    ///
    /// For the notifier chain of modules, with our block and a live module.
    unsafe extern "C" fn callback(
        block: *mut bindings::notifier_block,
        state: c_ulong,
        module: *mut c_void,
    ) -> c_int {
        if state == GOING {
            // SAFETY: the block is the first member of a `Watch` that is on the list.
            let told = unsafe { (*block.cast::<Watch<T>>()).told };
            // SAFETY: by the invariant of `Watch`.
            unsafe { &*told }.module_going(ModuleId(module.cast()));
        }
        // CAST: a small number.
        bindings::NOTIFY_OK as c_int
    }
}

impl<T: ModuleGoing + Sync> Drop for ModuleWatch<T> {
    fn drop(&mut self) {
        // SAFETY: registered by `new`. The call waits until no callback runs.
        unsafe { bindings::unregister_module_notifier(self.0.block.get()) };
    }
}
