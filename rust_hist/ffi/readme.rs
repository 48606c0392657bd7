// SPDX-License-Identifier: GPL-2.0

//! Appending a text to the `README` of tracefs.
//!
//! C header: [`kernel/trace/trace.h`](srctree/kernel/trace/trace.h)

use super::trace_core;
use core::ffi::CStr;
use kernel::prelude::*;

/// Keeps a text appended to the `README` until this is dropped.
///
/// # Invariants
///
/// The text is the one that follows the kernel's own.
pub(crate) struct Registration(());

impl Registration {
    /// Appends `text` to the `README`.
    pub(crate) fn new(text: &'static CStr) -> Self {
        // SAFETY: the text lives as long as the module, and is withdrawn before that ends.
        unsafe { trace_core::tracing_readme_append(text.as_char_ptr()) };
        // INVARIANT: the text was just appended.
        Self(())
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: this withdraws the text of `new`, and waits for a reader that is copying it.
        unsafe { trace_core::tracing_readme_append(core::ptr::null()) };
    }
}
