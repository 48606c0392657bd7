// SPDX-License-Identifier: GPL-2.0

//! Compiling the filter of a trigger for its event.
//!
//! C counterpart: `set_trigger_filter()` of
//! [`kernel/trace/trace_events_trigger.c`](srctree/kernel/trace/trace_events_trigger.c), and `append_filter_err()`.
//! Context: process, under `event_mutex`.

use super::{
    command::Failure,
    resolve, //
};
use crate::{
    alloc::{
        AllocError,
        Vec, //
    },
    ffi::{
        error_log,
        event::EventFile,
        filter,
        guard::EventMutexHeld,
        text::TextBuf, //
    },
    field::{
        FieldDesc,
        TaskNumber, //
    },
    program::filter::{
        Filter,
        Function,
        Subject, //
    }, //
};
use kernel::prelude::*;

/// The event of a filter, for the compiler's look-ups.
struct OnEvent<'a>(&'a EventFile, &'a EventMutexHeld);

impl Subject for OnEvent<'_> {
    fn field(&self, name: &[u8]) -> Option<FieldDesc<'_>> {
        resolve::field(self.0, name, self.1)
    }

    fn has(&self, number: TaskNumber) -> bool {
        resolve::has(number)
    }

    fn function(&self, of: Function<'_>) -> Option<(u64, u64)> {
        filter::function(of)
    }

    fn cpu_list(&self, list: &[u8]) -> Result<Option<Vec<u64>>, AllocError> {
        filter::cpu_list(list)
    }
}

/// Compiles the filter's text, if there is one, for the event of `file`; logs an error in it.
pub(super) fn compile(
    text: Option<&[u8]>,
    file: &EventFile,
    held: &EventMutexHeld,
) -> core::result::Result<Option<Filter>, Failure> {
    let Some(text) = text else {
        return Ok(None);
    };
    Filter::compile(text, &OnEvent(file, held))
        .map(Some)
        .map_err(|refusal| {
            let why = refusal.kind.text();

            // If there is no memory, nothing is logged.
            if let Ok(text) = TextBuf::terminated(text) {
                error_log::report(
                    Some(file.instance()),
                    c"event filter parse error",
                    text.as_c_str(),
                    why,
                    b"",
                    u16::try_from(refusal.at).unwrap_or(u16::MAX),
                );
            }
            Failure {
                error: Error::from_errno(-refusal.errno.code()),
                why: Some(why),
            }
        })
}
