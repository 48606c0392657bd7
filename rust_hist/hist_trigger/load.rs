// SPDX-License-Identifier: GPL-2.0

//! Triggers that are made when the module is loaded, by its parameter `triggers`.
//!
//! There is no C counterpart: C has the boot configuration, which is over before a module can be
//! loaded. See `lang/load.rs` for the form of the list.
//!
//! The triggers are those of the top instance. An entry that is refused is reported, and entered in
//! the error log as if it had been written; it does not keep the others from being made.
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
    text::terminated,
    HistTrigger, //
};
use crate::{
    ffi::{
        command::{
            Command,
            Line, //
        },
        guard::EventMutex,
        load::{
            triggers,
            TopEvent, //
        }, //
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

/// The commands that an entry may be of.
pub(crate) struct Commands<'a> {
    /// `hist`.
    pub(crate) hist: &'a Command<HistTrigger>,
    /// `enable_hist` and `disable_hist`.
    pub(crate) enable: [&'a Command<EnableTrigger>; 2],
}

/// Said of an entry for which the error log alone may have a reason, that of the filter parser.
const REFUSED: &[u8] = b"refused, error_log may say why";

/// Makes the triggers of the parameter, in order.
pub(crate) fn run(commands: &Commands<'_>) {
    for entry in load_entries(triggers().to_bytes()) {
        if let Err(failure) = one(commands, &entry) {
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

/// Why an entry comes to nothing before its command sees it.
fn failure(error: Error, why: &'static CStr) -> Failure {
    Failure {
        error,
        why: Some(why),
    }
}

/// Makes one trigger.
fn one(commands: &Commands<'_>, entry: &LoadEntry<'_>) -> core::result::Result<(), Failure> {
    let (system, event) = entry
        .names()
        .ok_or_else(|| failure(EINVAL, c"an entry is SYSTEM.EVENT COMMAND:..."))?;
    let (word, params) = entry.command();
    let no_memory = |error| failure(error, c"out of memory");

    let system = terminated(system).map_err(no_memory)?;
    let event = terminated(event).map_err(no_memory)?;
    let event = TopEvent::get(system.as_c_str(), event.as_c_str())
        .map_err(|error| failure(error, c"no such event"))?;
    let params = params.map(terminated).transpose().map_err(no_memory)?;
    let line = Line {
        remove: false,
        params: params.as_ref().map(|params| params.as_c_str()),
    };

    let mutex = EventMutex::lock();
    let held = mutex.held();
    let file = event.file(held);
    if word == commands.hist.name().to_bytes() {
        return command::run(commands.hist, file, line, held);
    }
    for command in commands.enable {
        if word == command.name().to_bytes() {
            return enable::run(command, file, line, held);
        }
    }
    Err(failure(EINVAL, c"no such command"))
}
