// SPDX-License-Identifier: GPL-2.0

//! Telling the core of a type of dynamic events.
//!
//! C counterpart: [`kernel/trace/trace_dynevent.c`](srctree/kernel/trace/trace_dynevent.c)

use super::{
    super::{
        bindings,
        module_notifier::ModuleWatch, //
    },
    Event,
    Kind,
    Registry, //
};
use crate::sync::Release;
use kernel::{
    error::to_result,
    prelude::*, //
};

/// Keeps a type registered until it is dropped.
///
/// # Invariants
///
/// The operations of the type's registry are on the core's list.
pub(crate) struct Registration<K: Kind> {
    _watch: ModuleWatch<Registry<K>>,
}

impl<K: Kind> Registration<K> {
    /// Registers the type, of which no event can be made yet. As it is a module's, lines of
    /// `dynamic_events` come to it before the types of the kernel, which take each line that begins
    /// with a letter of theirs, whatever follows.
    pub(crate) fn new(module: &'static ThisModule) -> Result<Self> {
        // SAFETY: the registry is static.
        let watch = unsafe { ModuleWatch::new(K::registry()) }?;
        let operations = K::registry().operations.get();
        // SAFETY: nobody uses the operations yet.
        unsafe {
            (*operations).owner = module.as_ptr().cast();
            (*operations).create = Some(Event::<K>::create_callback);
            (*operations).show = Some(Event::<K>::show_callback);
            (*operations).is_busy = Some(Event::<K>::is_busy_callback);
            (*operations).free = Some(Event::<K>::free_callback);
            (*operations).match_ = Some(Event::<K>::match_callback);
        }
        // SAFETY: the operations are static, and complete.
        to_result(unsafe { bindings::dyn_event_register(operations) })?;
        // INVARIANT: registered.
        Ok(Self { _watch: watch })
    }

    /// Lets user space make events.
    pub(crate) fn open(&self) {
        // ORDERING: pairs with `Registry::is_open`.
        K::registry().open.store(1, Release);
    }
}

impl<K: Kind> Drop for Registration<K> {
    fn drop(&mut self) {
        // SAFETY: registered by `new`. No event is left: each of them pins the module.
        unsafe { bindings::dyn_event_unregister(K::registry().operations.get()) };
    }
}
