// SPDX-License-Identifier: GPL-2.0

//! Triggers that are created when the module is loaded, from its parameter `triggers`.
//!
//! There is no C counterpart: C uses the boot configuration, which ends before a module can be loaded. See
//! `lang/load.rs` for the form of the list.
//!
//! The triggers are created in the top instance. A refused entry is reported, and logged in the error log like a
//! written line; the other entries are still created.
//!
//! Context: process, without locks.

use super::{
    command::{
        self,
        Failure, //
    },
    enable::{
        self,
        EnableTrigger, //
    },
    HistTrigger, //
};
use crate::{
    ffi::{
        command::{
            Command,
            Line, //
        },
        error_log,
        guard::EventMutex,
        load::{
            triggers,
            TopEvent, //
        },
        text::TextBuf, //
    },
    lang::{
        load_entries,
        LoadEntry, //
    },
};
use core::ffi::CStr;
use kernel::{
    prelude::*,
    str::BStr, //
};

/// The report on an entry for which only the filter parser's entry in the error log may have a reason.
const REFUSED: &[u8] = b"Refused, error_log may say why";

/// Creates the triggers of the parameter, in order. An entry may use the command `hist`, or one of `enable_hist` and
/// `disable_hist`.
pub(crate) fn run(hist: &Command<HistTrigger>, enable: [&Command<EnableTrigger>; 2]) {
    for entry in load_entries(triggers().to_bytes()) {
        if let Err(failure) = one(hist, enable, &entry) {
            let why = failure.why.map_or(REFUSED, CStr::to_bytes);
            pr_warn!(
                "triggers: {}: {} (error {})\n",
                BStr::from_bytes(entry.text),
                BStr::from_bytes(why),
                failure.error.to_errno()
            );
        }
    }
}

/// Logs and returns the failure of an entry whose command was not called; the caret is at byte `at`.
///
/// Otherwise the command would write to the error log.
fn failure(entry: &LoadEntry<'_>, error: Error, why: &'static CStr, at: usize) -> Failure {
    if let Ok(text) = TextBuf::terminated(entry.text) {
        let at = u16::try_from(at).unwrap_or(u16::MAX);
        let location = c"rust_hist: triggers";
        error_log::report(None, location, text.as_c_str(), why, b"", at);
    }
    Failure {
        error,
        why: Some(why),
    }
}

/// Creates one trigger.
fn one(
    hist: &Command<HistTrigger>,
    enable: [&Command<EnableTrigger>; 2],
    entry: &LoadEntry<'_>,
) -> core::result::Result<(), Failure> {
    let form = c"An entry is SYSTEM.EVENT COMMAND:...";
    let (system, event) = entry
        .names()
        .ok_or_else(|| failure(entry, EINVAL, form, 0))?;
    let (word, params) = entry.command();
    let no_memory = |error| Failure {
        error,
        why: Some(c"Out of memory"),
    };

    let system = TextBuf::terminated(system).map_err(no_memory)?;
    let event = TextBuf::terminated(event).map_err(no_memory)?;
    let event = TopEvent::get(system.as_c_str(), event.as_c_str())
        .map_err(|error| failure(entry, error, c"No such event", 0))?;
    let params = params
        .map(TextBuf::terminated)
        .transpose()
        .map_err(no_memory)?;
    let line = Line {
        remove: false,
        params: params.as_ref().map(|params| params.as_c_str()),
    };

    let held = &EventMutex::lock();
    let file = event.file(held);
    if word == hist.name().to_bytes() {
        return command::run(hist, file, line, held);
    }
    for command in enable {
        if word == command.name().to_bytes() {
            return enable::run(command, file, line, held);
        }
    }
    let at = entry.text.len().saturating_sub(entry.trigger.len());
    Err(failure(entry, EINVAL, c"No such command", at))
}
