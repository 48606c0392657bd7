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
    /// Registers the type, of which no event can be made yet; with `first`, lines of
    /// `dynamic_events` come to it before all others.
    pub(crate) fn new(module: &'static ThisModule, first: bool) -> Result<Self> {
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
        if first {
            // SAFETY: they are on the list now.
            unsafe { move_to_front(&raw mut (*operations).list) };
        }
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

/// Moves the last entry of the list of types to its front.
///
/// The kernel types take each line that begins with a letter of theirs, whatever follows. Beside the
/// C implementation our prefix begins with the `r` of return probes.
///
/// The lock of the list is not ours to take. Who goes through the list meanwhile follows the `next`
/// pointers alone: at each step below they lead from any entry to the end, and the worst that can
/// happen is that a line comes to a type twice, or not to ours.
///
/// # Safety
///
/// `entry` must be the last on the list. All other changes of the list must have happened before:
/// types of the kernel image are registered at boot, and there is no other module with one.
unsafe fn move_to_front(entry: *mut bindings::list_head) {
    // SAFETY: by the contract, behind the last entry comes the head.
    let head = unsafe { (*entry).next };
    // SAFETY: the neighbours are live, and only we change them.
    unsafe {
        let first = (*head).next;
        if core::ptr::eq(first, entry) {
            return;
        }
        let before = (*entry).prev;
        (&raw mut (*before).next).write_volatile(head);
        (*head).prev = before;
        (&raw mut (*entry).next).write_volatile(first);
        (*entry).prev = head;
        (*first).prev = entry;
        (&raw mut (*head).next).write_volatile(entry);
    }
}
