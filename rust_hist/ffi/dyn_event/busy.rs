// SPDX-License-Identifier: GPL-2.0

//! The users that keep an event from being deleted.
//!
//! There is no C counterpart: C returns `EBUSY` without a reason.

use super::{
    super::{
        event::EventFile,
        guard::EventMutexHeld, //
    },
    DynEventType, //
    Event,
};
use core::ffi::CStr;

/// The reason why an event cannot be deleted. The optional names are those of instances; the top instance has none.
pub(crate) enum Busy<'a> {
    /// This user generates the event.
    User(&'a [u8]),
    /// The event is enabled in this instance.
    Enabled(Option<&'a CStr>),
    /// The event has a trigger of this command, in this instance.
    Trigger(&'a CStr, Option<&'a CStr>),
    /// Perf has the event open.
    Perf,
    /// Another part of the kernel refers to the event: an event probe, or a trigger that enables it.
    Other,
}

impl<K: DynEventType> Event<K> {
    /// Returns the reason why the event, which is busy, cannot be deleted; of several the first one.
    pub(crate) fn busy<'a>(&'a self, held: &'a EventMutexHeld) -> Busy<'a> {
        if let Some(user) = self.users.get(held).first() {
            return Busy::User(user);
        }
        let listeners = || self.listening(held);
        // An instance that enables the event is a better reason than one that only needs its records for triggers.
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
