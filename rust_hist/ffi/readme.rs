// SPDX-License-Identifier: GPL-2.0

//! A text at the end of the `README` of tracefs.
//!
//! C header: [`kernel/trace/trace.h`](srctree/kernel/trace/trace.h)

use super::bindings;
use core::ffi::CStr;
use kernel::{
    error::to_result,
    prelude::*, //
};

/// Keeps a text in the `README` until it is dropped.
///
/// # Invariants
///
/// The text is registered.
pub(crate) struct Registration(());

impl Registration {
    /// Appends `text`; `EBUSY` if another module has appended one.
    pub(crate) fn new(text: &'static CStr) -> Result<Self> {
        // SAFETY: the text lives as long as the module, and is taken back before that ends.
        to_result(unsafe { bindings::tracing_readme_register(text.as_char_ptr()) })?;
        // INVARIANT: registered.
        Ok(Self(()))
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: registered by `new`. The call waits for a reader that is copying the text.
        unsafe { bindings::tracing_readme_unregister() };
    }
}
