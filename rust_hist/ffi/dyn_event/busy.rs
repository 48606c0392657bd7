// SPDX-License-Identifier: GPL-2.0

//! Who keeps an event from being deleted.
//!
//! There is no C counterpart: C says `EBUSY` and no more.

use super::{
    super::{
        event::EventFile,
        guard::EventMutexHeld, //
    },
    Event,
    Kind, //
};
use core::ffi::CStr;

/// Why an event cannot be deleted. The names are those of instances; the top one has none.
pub(crate) enum Busy<'a> {
    /// Somebody writes to it.
    User(&'a [u8]),
    /// It is enabled.
    Enabled(Option<&'a CStr>),
    /// It has a trigger, of this command.
    Trigger(&'a CStr, Option<&'a CStr>),
    /// Perf has it open.
    Perf,
    /// Something else of the kernel refers to it: an event probe, or a trigger that enables it.
    Other,
}

impl<K: Kind> Event<K> {
    /// Who keeps the event, which is busy, from being deleted; of several the first.
    pub(crate) fn busy<'a>(&'a self, held: &'a EventMutexHeld) -> Busy<'a> {
        if let Some(user) = self.state.users.get(held).first() {
            return Busy::User(user);
        }
        let listeners = || self.listening(held);
        // To enable it says more than that something on the way asks for its records, too.
        let enabled = listeners()
            .flatten()
            .find(|file| file.is_enabled())
            .map(|file| Busy::Enabled(file.instance().name()));
        let trigger = |file: &'a EventFile| {
            let name = file.triggers(held).next()?.name()?;
            Some(Busy::Trigger(name, file.instance().name()))
        };

        enabled
            .or_else(|| listeners().flatten().find_map(trigger))
            .or_else(|| listeners().any(|file| file.is_none()).then_some(Busy::Perf))
            .unwrap_or(Busy::Other)
    }
}
