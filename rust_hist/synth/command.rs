// SPDX-License-Identifier: GPL-2.0

//! Lines that make and delete synthetic events.
//!
//! C counterparts: `create_or_delete_synth_event()` and `create_synth_event()` of
//! [`kernel/trace/trace_events_synth.c`](srctree/kernel/trace/trace_events_synth.c).
//!
//! Context: process. An event is looked for and made in one hold of `event_mutex`.

use super::{
    delete,
    find,
    names,
    publish, //
};
use crate::{
    error::Errno,
    ffi::{
        dyn_event::Owner,
        error_log,
        guard::EventMutex, //
    },
    schema::{
        logged,
        parse,
        parse_dynamic,
        Command,
        Refusal,
        SynthErr, //
    }, //
};
use core::ffi::CStr;
use kernel::prelude::*;

/// Carries out one line of our own file, for a module or for nobody.
pub(super) fn run(line: &CStr, owner: Owner) -> Result {
    let text = line.to_bytes();
    let mutex = EventMutex::lock();
    let held = mutex.held();
    match parse(text, |name| find(name, held).is_some()) {
        Ok(Command::Nothing) => Ok(()),
        Ok(Command::Create(schema)) => publish(schema, owner, held),
        Ok(Command::Delete(name)) => {
            drop(mutex);
            delete(name).inspect_err(|&error| say_why(line, name, error))
        }
        Err(refusal) => Err(refuse(line, &refusal)),
    }
}

/// Carries out one line of `dynamic_events`; `false` if it is for another type of events.
pub(super) fn run_dynamic(line: &CStr) -> Result<bool> {
    let prefix = names().prefix.to_bytes();
    let system = names().system.to_bytes();
    let mutex = EventMutex::lock();
    let held = mutex.held();
    let exists = |name: &[u8]| find(name, held).is_some();
    match parse_dynamic(line.to_bytes(), prefix, system, exists) {
        Ok(Some(Command::Create(schema))) => publish(schema, Owner::NONE, held).map(|()| true),
        Ok(Some(Command::Nothing | Command::Delete(_))) => Ok(true),
        Ok(None) => Ok(false),
        Err(refusal) => Err(refuse(line, &refusal)),
    }
}

/// Logs why a line is refused, and returns what the writer gets.
fn refuse(line: &CStr, refusal: &Refusal) -> Error {
    if let Some(kind) = refusal.kind {
        let text = line.to_bytes();
        // The line without what stands before it, which is what the column counts in.
        let skipped = text.len().saturating_sub(logged(text).len());
        let logged = line
            .to_bytes_with_nul()
            .get(skipped..)
            .and_then(|rest| CStr::from_bytes_with_nul(rest).ok());
        error_log::report_top(
            names().file,
            logged.unwrap_or(line),
            kind.text(),
            refusal.at,
        );
    }
    Error::from_errno(-refusal.errno.code())
}

/// Logs why an event is not deleted.
///
/// PARITY: `synth_event_delete()` says nothing.
fn say_why(line: &CStr, name: &[u8], error: Error) {
    let (errno, kind) = if error == ENOENT {
        (Errno::Enoent, SynthErr::NotFound)
    } else if error == EBUSY {
        (Errno::Ebusy, SynthErr::Busy)
    } else {
        return;
    };
    // The writer gets the error that there was.
    let _ = refuse(line, &Refusal::new(errno, kind, line.to_bytes(), name));
}
