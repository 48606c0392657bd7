// SPDX-License-Identifier: GPL-2.0

//! Being told that a module goes away, before the tracing core frees its events.
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

/// Above the tracing core, which removes the events of the module at priority 1.
const PRIORITY: i32 = 2;

// CAST: a value of a small enumeration, which the chain passes as a word.
const GOING: c_ulong = bindings::module_state_MODULE_STATE_GOING as c_ulong;

/// What has to know that a module goes away.
pub(crate) trait ModuleGoing: Send + Sync {
    /// Called after the exit function of `module`, or after its init function has failed. Sleeps; no lock
    /// of the tracing core is held.
    fn module_going(&self, module: ModuleId);
}

impl<T: ModuleGoing> ModuleGoing for &T {
    fn module_going(&self, module: ModuleId) {
        (*self).module_going(module);
    }
}

/// A value that is told when a module goes away, until it is dropped.
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

    /// Makes the value, and registers the notifier.
    pub(super) fn new(value: impl PinInit<T, Error>) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            value <- value,
            block <- Opaque::try_ffi_init(|block: *mut bindings::notifier_block| {
                // SAFETY: this is the place of the block.
                unsafe { block.write(Self::BLOCK) };
                // SAFETY: the block is complete, and stays where it is until `drop` takes it off the list.
                to_result(unsafe { bindings::register_module_notifier(block) })
            }),
        })
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
            // SAFETY: by the contract the block is the member of a `Watched`, which lives while it is on the list.
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
        // SAFETY: by the type invariant. The call waits until no callback runs.
        unsafe { bindings::unregister_module_notifier(self.block.get()) };
    }
}
