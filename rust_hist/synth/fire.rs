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
        guard::PreemptOff,
        record::Outcome, //
    },
    schema::{
        Lost,
        Sizes,
        Values, //
    }, //
};

/// What became of one firing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fired {
    /// How many listeners got no record that should have got one.
    pub(crate) lost: u32,
}

impl SynthEvent {
    /// Fires the event: everyone who has it enabled gets a record with these values.
    ///
    /// A no-op if nobody has, or if the event has been deleted.
    #[inline]
    pub(crate) fn fire(&self, values: &impl Values, preempt: &PreemptOff<'_>) -> Fired {
        let mut fired = Fired::default();
        let mut sizes = None;
        for listener in self.listeners(preempt) {
            if listener.is_off() {
                continue;
            }
            // All of them get a record of the same length.
            let sizes = sizes.get_or_insert_with(|| self.measure(values));
            let outcome = match sizes {
                Ok(sizes) => {
                    let fill = |record: &mut [u8]| self.fill(values, sizes, record);
                    listener.write(sizes.record_len(), fill, preempt)
                }
                Err(_) => Outcome::Lost,
            };
            if outcome == Outcome::Lost {
                fired.lost = fired.lost.saturating_add(1);
            }
        }
        fired
    }

    /// Asks for the lengths of one record. What it takes of the stack is gone when it returns, unlike
    /// the frame of [`SynthEvent::fire`], in which the next level of events nests.
    #[inline(never)]
    fn measure(&self, values: &impl Values) -> Result<Sizes, Lost> {
        self.schema().measure(values)
    }

    /// Writes one record; whether it is complete. See [`SynthEvent::measure`].
    #[inline(never)]
    fn fill(&self, values: &impl Values, sizes: &Sizes, record: &mut [u8]) -> bool {
        self.schema().write(values, sizes, record).is_ok()
    }
}
