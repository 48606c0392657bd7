// SPDX-License-Identifier: GPL-2.0

//! Event filters: the part of a trigger behind `if`.
//!
//! C counterpart: [`kernel/trace/trace_events_filter.c`](srctree/kernel/trace/trace_events_filter.c).

use super::{
    bindings,
    event::EventFile,
    guard::EventMutexHeld,
    text::TextBuf, //
};
use kernel::{
    error::to_result,
    prelude::*, //
};

/// A NUL-terminated text that the filter parser may write to.
pub(crate) struct FilterText(TextBuf);

/// What stands before the filter in a command.
const IF: &[u8] = b"if ";

impl FilterText {
    /// Makes the text `if FILTER`.
    pub(crate) fn new(filter: &[u8]) -> Result<Self> {
        Ok(Self(TextBuf::joined(&[IF, filter, b"\0"])?))
    }

    /// The text with its `if`.
    pub(super) fn as_mut_ptr(&mut self) -> *mut c_char {
        self.0.as_mut_ptr().cast()
    }

    /// Says whether the filter is one for the event of `file`; logs what is wrong with it.
    pub(crate) fn check(&mut self, file: &EventFile, _held: &EventMutexHeld) -> Result {
        let raw = file.as_ptr();
        let mut filter = core::ptr::null_mut();
        // SAFETY: the text has the length of `IF` at least, and ends in NUL.
        let text = unsafe { self.as_mut_ptr().add(IF.len()) };
        // SAFETY: the file is live, `event_mutex` held, and the text ours to change.
        let ret = unsafe {
            bindings::create_event_filter((*raw).tr, (*raw).event_call, text, true, &mut filter)
        };
        // SAFETY: made by the call above, also when it failed, or null; nobody else knows it.
        unsafe { bindings::free_event_filter(filter) };
        to_result(ret)
    }
}
