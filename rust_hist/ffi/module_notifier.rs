// SPDX-License-Identifier: GPL-2.0

//! Notification that a module is going away, before the tracing core frees its events.
//!
//! C header: [`include/linux/module.h`](srctree/include/linux/module.h)

use super::{
    bindings,
    event::ModuleId, //
};
use core::ops::Deref;
use kernel::{
    error::to_result,
    prelude::*,
    types::Opaque, //
};

/// Higher than the tracing core's, which removes the events of the module at priority 1.
const PRIORITY: i32 = 2;

// CAST: a value of a small enumeration, which the chain passes as a word.
const GOING: c_ulong = bindings::module_state_MODULE_STATE_GOING as c_ulong;

/// An object that must react when a module goes away.
pub(crate) trait ModuleGoing: Send + Sync {
    /// Called after the exit function of `module`, or after its init function has failed. May sleep; no lock of the
    /// tracing core is held.
    fn module_going(&self, module: ModuleId);
}

impl<T: ModuleGoing> ModuleGoing for &T {
    fn module_going(&self, module: ModuleId) {
        (*self).module_going(module);
    }
}

/// A value that is notified when a module goes away, until this is dropped.
///
/// # Invariants
///
/// `block` is on the list of module notifiers.
#[pin_data(PinnedDrop)]
pub(crate) struct Watched<T: ModuleGoing> {
    #[pin]
    block: Opaque<bindings::notifier_block>,
    #[pin]
    value: T,
}

// SAFETY: the list of notifiers protects its blocks, and the value may be used by any thread.
unsafe impl<T: ModuleGoing> Send for Watched<T> {}

// SAFETY: the list of notifiers protects its blocks, and the value may be used by any thread.
unsafe impl<T: ModuleGoing> Sync for Watched<T> {}

impl<T: ModuleGoing> Watched<T> {
    const BLOCK: bindings::notifier_block = bindings::notifier_block {
        notifier_call: Some(Self::callback),
        priority: PRIORITY,
        ..pin_init::zeroed()
    };

    /// Creates the value, and registers the notifier.
    pub(super) fn new(value: impl PinInit<T, Error>) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            value <- value,
            block <- Opaque::try_ffi_init(|block: *mut bindings::notifier_block| {
                // SAFETY: the pointer is the place of the block.
                unsafe { block.write(Self::BLOCK) };
                // SAFETY: the block is complete, and stays in place until `drop` takes it off the list.
                to_result(unsafe { bindings::register_module_notifier(block) })
            }),
        })
    }

    /// # Safety
    ///
    /// Only the notifier chain of modules may call this, with a block of this type and a live module.
    unsafe extern "C" fn callback(
        block: *mut bindings::notifier_block,
        state: c_ulong,
        module: *mut c_void,
    ) -> c_int {
        if state == GOING {
            // SAFETY: by the contract the block is a member of a `Watched`, which lives while it is on the list.
            let watched = unsafe { owner_of!(block, Self, block) };
            watched.value.module_going(ModuleId(module.cast()));
        }
        // CAST: a small number.
        bindings::NOTIFY_OK as c_int
    }
}

impl<T: ModuleGoing> Deref for Watched<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

#[pinned_drop]
impl<T: ModuleGoing> PinnedDrop for Watched<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: by the type invariant. The call waits for running callbacks.
        unsafe { bindings::unregister_module_notifier(self.block.get()) };
    }
}
