// SPDX-License-Identifier: GPL-2.0

//! Being told that a module goes away, before the tracing core frees its events.
//!
//! C header: [`include/linux/module.h`](srctree/include/linux/module.h)

use super::{
    bindings,
    command::{
        Command,
        Trigger, //
    },
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

/// Tells a command when a module goes away, until it is dropped.
///
/// # Invariants
///
/// The block is on the list of module notifiers.
pub(super) struct ModuleWatch<T: Trigger>(Pin<KBox<Watch<T>>>);

/// # Invariants
///
/// `command` is valid while the block is on the list.
#[repr(C)]
struct Watch<T: Trigger> {
    block: Opaque<bindings::notifier_block>,
    command: *const Command<T>,
}

// SAFETY: the list protects itself, and a command may be used from any thread.
unsafe impl<T: Trigger> Send for ModuleWatch<T> {}

// SAFETY: as above.
unsafe impl<T: Trigger> Sync for ModuleWatch<T> {}

impl<T: Trigger> ModuleWatch<T> {
    /// Registers the notifier.
    ///
    /// # Safety
    ///
    /// `command` must stay valid until the value is dropped.
    pub(super) unsafe fn new(command: *const Command<T>) -> Result<Self> {
        let block = bindings::notifier_block {
            notifier_call: Some(Self::callback),
            priority: PRIORITY,
            ..Default::default()
        };
        // INVARIANT: by the contract, and because `drop` takes the block off the list.
        let watch = Watch {
            block: Opaque::new(block),
            command,
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
            let command = unsafe { (*block.cast::<Watch<T>>()).command };
            // SAFETY: by the invariant of `Watch`.
            unsafe { &*command }.module_going(ModuleId(module.cast()));
        }
        // CAST: a small number.
        bindings::NOTIFY_OK as c_int
    }
}

impl<T: Trigger> Drop for ModuleWatch<T> {
    fn drop(&mut self) {
        // SAFETY: registered by `new`. The call waits until no callback runs.
        unsafe { bindings::unregister_module_notifier(self.0.block.get()) };
    }
}
