// SPDX-License-Identifier: GPL-2.0

//! Telling the core of a type of dynamic events.
//!
//! C counterpart: [`kernel/trace/trace_dynevent.c`](srctree/kernel/trace/trace_dynevent.c)

use super::{
    super::{
        module_notifier::Watched,
        tracefs_file::TracefsFile, //
    },
    file::Callbacks,
    Kind,
    Registry, //
};
use crate::{
    ffi::bindings,
    sync::Release, //
};
use core::{
    ffi::CStr,
    marker::PhantomData, //
};
use kernel::{
    error::to_result,
    prelude::*, //
};

/// Keeps a type and its file registered until it is dropped, in the order of the fields: the file uses the type.
#[pin_data]
pub(crate) struct Registration<K: Kind> {
    _file: TracefsFile,
    _operations: Operations<K>,
    #[pin]
    _watch: Watched<&'static Registry<K>>,
}

impl<K: Kind> Registration<K> {
    /// Registers the type and the file called `file`, by which no event can be made yet. As the type is a module's,
    /// lines of `dynamic_events` come to it before the types of the kernel, which take each line that begins
    /// with a letter of theirs, whatever follows.
    pub(crate) fn new(file: &'static CStr) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            _watch <- Watched::new(Ok(K::registry())),
            _operations: Operations::new()?,
            // SAFETY: the operations name this module as their owner.
            _file: unsafe { TracefsFile::new(file, &Callbacks::<K>::VTABLE) }?,
        })
    }

    /// Lets user space make events.
    pub(crate) fn open(&self) {
        // ORDERING: pairs with `Registry::is_open`.
        K::registry().open.store(1, Release);
    }
}

/// # Invariants
///
/// The operations of the type's registry are on the core's list.
struct Operations<K: Kind>(PhantomData<K>);

impl<K: Kind> Operations<K> {
    fn new() -> Result<Self> {
        // SAFETY: the operations are static, and complete.
        to_result(unsafe { bindings::dyn_event_register(K::registry().operations.get()) })?;
        // INVARIANT: registered.
        Ok(Self(PhantomData))
    }
}

impl<K: Kind> Drop for Operations<K> {
    fn drop(&mut self) {
        // SAFETY: by the type invariant. No event is left: each of them pins the module.
        unsafe { bindings::dyn_event_unregister(K::registry().operations.get()) };
    }
}
