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
        dyn_event::{
            Listener,
            Plain, //
        },
        guard::PreemptOff,
        record::{
            Begun,
            Moment,
            Outcome,
            Room, //
        }, //
    },
    schema::{
        Next,
        Sizes,
        Still,
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
    /// Whether anybody may have it enabled.
    #[inline(always)]
    pub(crate) fn is_listened_to(&self) -> bool {
        self.has_listeners()
    }

    /// Fires the event: everyone who has it enabled gets a record with these values, written in this moment.
    ///
    /// A no-op if nobody has, or if the event has been deleted.
    #[inline(always)]
    pub(crate) fn fire(
        &self,
        values: &impl Values,
        moment: Moment,
        preempt: &PreemptOff<'_>,
    ) -> Fired {
        match self.only_listener(preempt) {
            Some(listener) if self.schema().has_numbers_alone() => {
                self.fire_numbers(&listener, values, moment, preempt)
            }
            Some(listener) => match self.fire_still(&listener, values, moment, preempt) {
                Some(fired) => fired,
                None => self.fire_each(values, preempt),
            },
            None => self.fire_each(values, preempt),
        }
    }

    /// Fires an event that has nothing but numbers, to the one who listens.
    ///
    /// Nothing nests in here: the event has no triggers there.
    #[inline(never)]
    fn fire_numbers(
        &self,
        listener: &Plain<'_>,
        values: &impl Values,
        moment: Moment,
        preempt: &PreemptOff<'_>,
    ) -> Fired {
        // PARITY: `get_hist_pad()` counts in the record's `common_preempt_count`.
        let again = preempt.again();
        let mut fired = Fired::default();
        let mut room = Room::new();
        let schema = self.schema();
        let fill = |record: &mut [u8]| schema.write_numbers(values, record).is_ok();
        fired.end(listener.begin(&mut room, schema.fixed_len(), fill, moment, again.proof()));
        fired
    }

    /// Fires an event of few fields to the one who listens, if all values stand still; else does nothing.
    ///
    /// Nothing nests in here, as in `fire_numbers`.
    #[inline(never)]
    fn fire_still(
        &self,
        listener: &Plain<'_>,
        values: &impl Values,
        moment: Moment,
        preempt: &PreemptOff<'_>,
    ) -> Option<Fired> {
        // PARITY: as in `fire_numbers`.
        let again = preempt.again();
        let mut fired = Fired::default();
        let mut room = Room::new();
        let mut still = Still::new();
        let schema = self.schema();
        if !schema.gather(values, &mut still) {
            return None;
        }
        let fill = |record: &mut [u8]| schema.write_still(&still, record).is_some();
        fired.end(listener.begin(&mut room, still.record_len(), fill, moment, again.proof()));
        Some(fired)
    }

    /// Fires the event to all who listen.
    #[inline(never)]
    fn fire_each(&self, values: &impl Values, preempt: &PreemptOff<'_>) -> Fired {
        // PARITY: as in `fire_numbers`.
        let again = preempt.again();
        let mut fired = Fired::default();
        let mut room = Room::new();
        for listener in self.listeners(again.proof()) {
            fired.end(self.begin(&mut room, &listener, values, again.proof()));
        }
        fired
    }

    /// Writes a record for one listener.
    ///
    /// What it takes of the stack is gone when it returns, unlike the frame of who calls it, in which the
    /// next level of events nests.
    #[inline(never)]
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
        values.settle(Begin {
            event: self,
            room,
            listener,
            preempt,
        })
    }
}

/// Writes a record of settled values for one listener.
struct Begin<'b, 'r> {
    event: &'b SynthEvent,
    room: &'r mut Room,
    listener: &'b Listener<'b>,
    preempt: &'b PreemptOff<'b>,
}

impl<'r> Next for Begin<'_, 'r> {
    type Out = Begun<'r>;

    #[inline(never)]
    fn run(self, values: &impl Values) -> Begun<'r> {
        let schema = self.event.schema();
        let mut sizes = Sizes::new();
        if schema.measure(values, &mut sizes).is_err() {
            return Begun::Done(Outcome::Lost);
        }
        let fill = |record: &mut [u8]| schema.write(values, &sizes, record).is_ok();
        self.listener
            .begin(self.room, sizes.record_len(), fill, self.preempt)
    }
}

impl Fired {
    /// Ends the writing of one record.
    #[inline(always)]
    fn end(&mut self, begun: Begun<'_>) {
        match begun {
            // The triggers of the event run in here, and may fire another event.
            Begun::Complete(record) => record.commit(),
            Begun::Done(Outcome::Lost) => self.lost = self.lost.saturating_add(1),
            Begun::Done(_) => {}
        }
    }
}
