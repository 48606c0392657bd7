// SPDX-License-Identifier: GPL-2.0

//! Writing records of synthetic events.
//!
//! C counterparts: `trace_event_raw_event_synth()`, `perf_event_raw_event_synth()` of
//! [`kernel/trace/trace_events_synth.c`](srctree/kernel/trace/trace_events_synth.c).
//!
//! Context: any, NMI included, with preemption off. Never allocates, sleeps, locks or panics.

use super::SynthEvent;
use crate::{
    ffi::{
        dyn_event::Listener,
        guard::PreemptOff,
        record::{
            Begun,
            Outcome,
            Room, //
        }, //
    },
    schema::Values, //
};

/// What became of one firing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fired {
    /// How many listeners got no record that should have got one.
    pub(crate) lost: u32,
}

impl SynthEvent {
    /// Whether anybody may have it enabled.
    #[inline(always)]
    pub(crate) fn is_listened_to(&self) -> bool {
        self.has_listeners()
    }

    /// Fires the event: everyone who has it enabled gets a record with these values.
    ///
    /// A no-op if nobody has, or if the event has been deleted.
    #[inline]
    pub(crate) fn fire(&self, values: &impl Values, preempt: &PreemptOff<'_>) -> Fired {
        let mut fired = Fired::default();
        let mut room = Room::new();
        for listener in self.listeners(preempt) {
            match self.begin(&mut room, &listener, values, preempt) {
                // The triggers of the event run in here, and may fire another event.
                Begun::Complete(record) => record.commit(),
                Begun::Done(Outcome::Lost) => fired.lost = fired.lost.saturating_add(1),
                Begun::Done(_) => {}
            }
        }
        fired
    }

    /// Writes a record for one listener.
    #[inline(always)]
    fn begin<'r>(
        &self,
        room: &'r mut Room,
        listener: &Listener<'_>,
        values: &impl Values,
        preempt: &PreemptOff<'_>,
    ) -> Begun<'r> {
        if listener.is_off() {
            return Begun::Done(Outcome::Unwanted);
        }
        let schema = self.schema();
        let Some(len) = schema.len_of_numbers() else {
            return self.begin_parts(room, listener, values, preempt);
        };
        let fill = |record: &mut [u8]| schema.write_numbers(values, record).is_ok();
        listener.begin(room, len, fill, preempt)
    }

    /// As [`SynthEvent::begin`], for an event that has more than numbers.
    ///
    /// What it takes of the stack is gone when it returns, unlike the frame of [`SynthEvent::fire`],
    /// in which the next level of events nests.
    #[inline(never)]
    fn begin_parts<'r>(
        &self,
        room: &'r mut Room,
        listener: &Listener<'_>,
        values: &impl Values,
        preempt: &PreemptOff<'_>,
    ) -> Begun<'r> {
        let Ok(sizes) = self.schema().measure(values) else {
            return Begun::Done(Outcome::Lost);
        };
        let fill = |record: &mut [u8]| self.schema().write(values, &sizes, record).is_ok();
        listener.begin(room, sizes.record_len(), fill, preempt)
    }
}
