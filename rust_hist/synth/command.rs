// SPDX-License-Identifier: GPL-2.0

//! Lines that create and delete synthetic events.
//!
//! C counterparts: `create_or_delete_synth_event()` and `create_synth_event()` of
//! [`kernel/trace/trace_events_synth.c`](srctree/kernel/trace/trace_events_synth.c).
//!
//! Context: process. An event is looked up and created under `event_mutex`, without releasing it in between.

use super::{
    find,
    names,
    publish,
    SynthEvent, //
};
use crate::{
    error::Errno,
    ffi::{
        dyn_event::{
            Busy,
            Owner, //
        },
        error_log,
        guard::{
            EventMutex,
            EventMutexHeld, //
        },
        text::TextBuf, //
    },
    schema::{
        logged,
        parse,
        parse_dynamic,
        refusal,
        SynthCommand,
        SynthErr,
        SynthRefusal, //
    },
    text::Out, //
};
use core::ffi::CStr;
use kernel::prelude::*;

/// Carries out one line of the module's file of synthetic events, for a module or for user space.
pub(super) fn run(line: &CStr, owner: Owner) -> Result {
    let text = line.to_bytes();
    let held = &EventMutex::lock();
    match parse(text, |name| find(name, held).is_some()) {
        Ok(SynthCommand::Nothing) => Ok(()),
        Ok(SynthCommand::Create(schema)) => publish(schema, owner, held),
        Ok(SynthCommand::Delete(name)) => delete(line, name, held),
        Err(refusal) => Err(refuse(line, &refusal, b"")),
    }
}

/// Carries out one line of `dynamic_events`; `false` if it is for another type of events.
pub(super) fn run_dynamic(line: &CStr) -> Result<bool> {
    let prefix = names().prefix.to_bytes();
    let system = names().system.to_bytes();
    let held = &EventMutex::lock();
    let exists = |name: &[u8]| find(name, held).is_some();
    match parse_dynamic(line.to_bytes(), prefix, system, exists) {
        Ok(Some(SynthCommand::Create(schema))) => publish(schema, Owner::NONE, held).map(|()| true),
        Ok(Some(SynthCommand::Nothing | SynthCommand::Delete(_))) => Ok(true),
        Ok(None) => Ok(false),
        Err(refusal) => Err(refuse(line, &refusal, b"")),
    }
}

/// Logs why a line is refused, with a detail after the message, if there is one; returns the errno for the writer.
fn refuse(line: &CStr, refusal: &SynthRefusal, detail: &[u8]) -> Error {
    if let Some(entry) = refusal.entry() {
        let text = line.to_bytes();
        // Columns count in the line without the leading text that the log omits.
        let skipped = text.len().saturating_sub(logged(text).len());
        let logged = line
            .to_bytes_with_nul()
            .get(skipped..)
            .and_then(|rest| CStr::from_bytes_with_nul(rest).ok());
        error_log::report(
            None,
            names().file,
            logged.unwrap_or(line),
            entry.kind.text(),
            detail,
            entry.at,
        );
    }
    Error::from_errno(-refusal.errno.code())
}

/// Deletes the event named in `line` of the module's file of synthetic events.
fn delete(line: &CStr, name: &[u8], held: &EventMutexHeld) -> Result {
    let refuse = |errno, kind, detail: &[u8]| {
        let refusal = refusal(errno, kind, line.to_bytes(), name);
        Err(refuse(line, &refusal, detail))
    };
    let Some(event) = find(name, held) else {
        return refuse(Errno::Enoent, SynthErr::NotFound, b"");
    };
    if event.is_busy(held) {
        return refuse(Errno::Ebusy, SynthErr::Busy, who(&event, held).as_bytes());
    }
    super::delete(&event, held)
}

/// Logs that an event is in use: that it is not deleted by a line of `dynamic_events`, whose text the core does not
/// pass on, or, with `all`, that it prevents the deletion of all events. The event's definition stands for the line.
pub(super) fn still_in_use(event: &SynthEvent, all: bool, held: &EventMutexHeld) {
    let name = event.schema.name().to_bytes();
    let mut line = TextBuf::new();
    let written = match all {
        true => event.schema.write_definition(&mut line),
        false => line.write_parts(&[b"-:", names().system.to_bytes(), b"/", name]),
    };
    // If there is no memory, nothing is logged.
    if written.and_then(|()| line.write_bytes(b"\0")).is_err() {
        return;
    }
    let line = line.into_bytes();
    if let Ok(line) = CStr::from_bytes_until_nul(&line) {
        // The writer gets the errno that `is_busy` returns.
        let at = match all {
            true => 0,
            false => line.to_bytes().len().saturating_sub(name.len()),
        };
        let at = u16::try_from(at).unwrap_or(0);
        let refusal = SynthRefusal::new(Errno::Ebusy, SynthErr::Busy, at);
        let _ = refuse(line, &refusal, who(event, held).as_bytes());
    }
}

/// Returns the user of a busy event, for the log; empty if there is no memory.
fn who(event: &SynthEvent, held: &EventMutexHeld) -> TextBuf {
    let (before, name, instance): (&[u8], &[u8], Option<&CStr>) = match event.busy(held) {
        Busy::User(user) => (b"traced by ", user, None),
        Busy::Enabled(instance) => (b"enabled", b"", instance),
        Busy::Trigger(name, instance) => (b"it has a trigger, ", name.to_bytes(), instance),
        Busy::Perf => (b"open in perf", b"", None),
        Busy::Other => (
            b"an event probe or a trigger of another event refers to it",
            b"",
            None,
        ),
    };
    let [within, instance] = instance.map_or([b"".as_slice(); 2], |name| {
        [b", in the instance ", name.to_bytes()]
    });
    TextBuf::joined(&[before, name, within, instance]).unwrap_or_else(|_| TextBuf::new())
}
