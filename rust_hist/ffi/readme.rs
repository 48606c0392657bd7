// SPDX-License-Identifier: GPL-2.0

//! A text at the end of the `README` of tracefs.
//!
//! C header: [`kernel/trace/trace.h`](srctree/kernel/trace/trace.h)

use super::trace_core;
use core::ffi::CStr;
use kernel::prelude::*;

/// Keeps a text in the `README` until it is dropped.
///
/// # Invariants
///
/// The text is the one that follows that of the kernel.
pub(crate) struct Registration(());

impl Registration {
    /// Appends `text`.
    pub(crate) fn new(text: &'static CStr) -> Self {
        // SAFETY: the text lives as long as the module, and is taken back before that ends.
        unsafe { trace_core::tracing_readme_append(text.as_char_ptr()) };
        // INVARIANT: appended.
        Self(())
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: this takes back what `new` did, and waits for a reader that is copying the text.
        unsafe { trace_core::tracing_readme_append(core::ptr::null()) };
    }
}
