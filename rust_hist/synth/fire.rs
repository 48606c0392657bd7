// SPDX-License-Identifier: GPL-2.0

//! Generating synthetic events: writing their records.
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
            CommonFields,
            RecordBuf, //
            WriteResult,
        }, //
    },
    schema::{
        FieldValues,
        Sizes,
        StableValues,
        WithValues, //
    }, //
};

impl SynthEvent {
    /// Generates the event: each listener that has enabled it gets a record with these values. `moment` is the context
    /// of the hit, which the header of the record shows.
    ///
    /// Does nothing if no listener has enabled the event, or if the event was deleted. Returns the number of listeners
    /// whose record was lost.
    #[inline(always)]
    pub(crate) fn fire(
        &self,
        values: &impl FieldValues,
        moment: CommonFields,
        preempt: &PreemptOff<'_>,
    ) -> u32 {
        match self.only_listener(preempt) {
            Some(listener) if self.schema.numbers => {
                self.fire_numbers(&listener, values, moment, preempt)
            }
            Some(listener) => match self.fire_stable(&listener, values, moment, preempt) {
                Some(fired) => fired,
                None => self.fire_each(values, preempt),
            },
            None => self.fire_each(values, preempt),
        }
    }

    /// Writes the record of an event whose fields are all numbers to its only listener.
    ///
    /// No other event is generated meanwhile, since a [`Plain`] listener has no triggers.
    #[inline(never)]
    fn fire_numbers(
        &self,
        listener: &Plain<'_>,
        values: &impl FieldValues,
        moment: CommonFields,
        preempt: &PreemptOff<'_>,
    ) -> u32 {
        // PARITY: like `get_hist_pad()`, counts in the record's `common_preempt_count`.
        let again = preempt.again();
        let mut room = RecordBuf::new();
        let schema = &self.schema;
        let fill = |record: &mut [u8]| schema.write_numbers(values, record).is_ok();
        end(listener.begin(&mut room, schema.fixed_len(), fill, moment, again.proof()))
    }

    /// Writes the record of an event with few fields and stable values to its only listener; `None`, without writing a
    /// record, if the event has other fields or values.
    ///
    /// No other event is generated meanwhile, since a [`Plain`] listener has no triggers.
    #[inline(never)]
    fn fire_stable(
        &self,
        listener: &Plain<'_>,
        values: &impl FieldValues,
        moment: CommonFields,
        preempt: &PreemptOff<'_>,
    ) -> Option<u32> {
        // PARITY: like `get_hist_pad()`, counts in the record's `common_preempt_count`.
        let again = preempt.again();
        let mut room = RecordBuf::new();
        let mut stable = StableValues::default();
        let schema = &self.schema;
        if !schema.collect_stable(values, &mut stable) {
            return None;
        }
        let fill = |record: &mut [u8]| schema.write_stable(&stable, record).is_some();
        let begun = listener.begin(&mut room, stable.record_len(), fill, moment, again.proof());
        Some(end(begun))
    }

    /// Writes a record to each listener.
    #[inline(never)]
    fn fire_each(&self, values: &impl FieldValues, preempt: &PreemptOff<'_>) -> u32 {
        // PARITY: like `get_hist_pad()`, counts in the record's `common_preempt_count`.
        let again = preempt.again();
        let mut room = RecordBuf::new();
        let mut lost: u32 = 0;
        for listener in self.listeners(again.proof()) {
            let begun = self.begin(&mut room, &listener, values, again.proof());
            lost = lost.saturating_add(end(begun));
        }
        lost
    }

    /// Writes a record for one listener, which the caller must commit.
    ///
    /// Not inlined: a trigger of the event may generate the next event during the commit, on top of the caller's frame,
    /// when this frame is gone.
    #[inline(never)]
    fn begin<'r>(
        &self,
        room: &'r mut RecordBuf,
        listener: &Listener<'_>,
        values: &impl FieldValues,
        preempt: &PreemptOff<'_>,
    ) -> Begun<'r> {
        if listener.is_off() {
            return Begun::Done(WriteResult::Unwanted);
        }
        values.materialize(Begin {
            event: self,
            room,
            listener,
            preempt,
        })
    }
}

/// Measures and writes a record for one listener, with all stacks of its values computed.
struct Begin<'b, 'r> {
    event: &'b SynthEvent,
    room: &'r mut RecordBuf,
    listener: &'b Listener<'b>,
    preempt: &'b PreemptOff<'b>,
}

impl<'r> WithValues for Begin<'_, 'r> {
    type Out = Begun<'r>;

    #[inline(never)]
    fn run(self, values: &impl FieldValues) -> Begun<'r> {
        let schema = &self.event.schema;
        let mut sizes = Sizes::default();
        if schema.measure(values, &mut sizes).is_err() {
            return Begun::Done(WriteResult::Lost);
        }
        let fill = |record: &mut [u8]| schema.write(values, &sizes, record).is_ok();
        self.listener
            .begin(self.room, sizes.record_len(), fill, self.preempt)
    }
}

/// Commits a record that is complete; returns the number of lost records.
#[inline]
fn end(begun: Begun<'_>) -> u32 {
    match begun {
        // The triggers of the event run inside `commit()`, and may generate another event.
        Begun::Complete(record) => record.commit(),
        Begun::Done(WriteResult::Lost) => return 1,
        Begun::Done(_) => {}
    }
    0
}
