// SPDX-License-Identifier: GPL-2.0

//! Entries of an instance's `error_log`.
//!
//! C counterpart: `tracing_log_err()` in [`kernel/trace/trace.c`](srctree/kernel/trace/trace.c).

use super::{
    event::Instance,
    text::TextBuf,
    trace_core, //
};
use core::ffi::CStr;
use kernel::prelude::*;

/// Adds an entry to the log of `instance`, or of the top one: the location, the command, the message with a detail
/// after it unless that is empty, and the column of the command at which the `^` points.
///
/// The log copies everything, so it has no pointers into the module. The function cannot fail: if there is no memory,
/// the detail or the whole entry is missing.
pub(crate) fn report(
    instance: Option<Instance<'_>>,
    location: &CStr,
    command: &CStr,
    text: &CStr,
    detail: &[u8],
    column: u16,
) {
    let longer = match detail {
        [] => None,
        _ => TextBuf::joined(&[text.to_bytes(), b": ", detail, b"\0"]).ok(),
    };
    let text = longer.as_ref().map_or(text, TextBuf::as_c_str);
    let mut texts = [text.as_char_ptr()];
    // SAFETY: the instance is live, and null means the top one; the strings are copied before the call returns, and 0
    // is the index of the only text.
    unsafe {
        trace_core::tracing_log_err(
            instance.map_or(core::ptr::null_mut(), |instance| instance.as_ptr()),
            location.as_char_ptr(),
            command.as_char_ptr().cast_mut(),
            texts.as_mut_ptr(),
            0,
            column,
        )
    };
}
