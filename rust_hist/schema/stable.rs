// SPDX-License-Identifier: GPL-2.0

//! The fast path for the record of a synthetic event: few fields, no stack, and values that do not
//! change while they are borrowed.
//!
//! C counterpart: `trace_event_raw_event_synth()` of
//! [`kernel/trace/trace_events_synth.c`](srctree/kernel/trace/trace_events_synth.c).
//! [`Schema::measure`] and [`Schema::write`] query each string twice, for its length and for its
//! content, which takes longer than the rest of such a record. Here each value is queried once.
//!
//! Context: any, NMI included. Never allocates, sleeps, locks or panics.

use super::{
    record::{
        data_loc,
        in_slot,
        put,
        record_len, //
    },
    words,
    FieldValues,
    Schema, //
};
use crate::{
    field::SynthClass,
    limits::STR_SLOT,
    sync::store_8, //
};

/// Maximum number of fields of an event that takes the fast path. With two more the compiler would call a function to
/// clear [`StableValues`].
const FEW: usize = 6;

/// A value of the record, before the ring buffer has reserved space for it.
#[derive(Clone, Copy)]
enum StableValue<'v> {
    Number(u64),
    Text(&'v [u8]),
}

/// The values of one record, none of which changes while it is borrowed.
///
/// Lives on the caller's stack, where [`Schema::collect_stable`] fills it: moving it would take as long as writing a
/// short record.
pub struct StableValues<'v> {
    values: [StableValue<'v>; FEW],
    len: u16,
}

impl Default for StableValues<'_> {
    #[inline]
    fn default() -> Self {
        Self {
            values: [StableValue::Number(0); FEW],
            len: 0,
        }
    }
}

impl StableValues<'_> {
    /// Returns the size of the record in bytes, header included: a multiple of 4.
    #[inline]
    pub fn record_len(&self) -> usize {
        self.len.into()
    }
}

impl Schema {
    /// Queries the values of one record and measures it. Returns whether the event has few fields, none of them a
    /// stack, and all strings are stable and shorter than [`STR_SLOT`]; otherwise the record must be written by
    /// [`Schema::measure`] and [`Schema::write`].
    #[inline(always)]
    pub fn collect_stable<'v, V: FieldValues>(
        &self,
        values: &'v V,
        stable: &mut StableValues<'v>,
    ) -> bool {
        if self.stacks || self.fields.len() > FEW {
            return false;
        }
        let mut len = self.fixed_len();

        for i in 0..FEW {
            let (Some(field), Some(value)) = (self.fields.get(i), stable.values.get_mut(i)) else {
                break;
            };

            if matches!(field.class, SynthClass::Number) {
                *value = StableValue::Number(values.number(i));
                continue;
            }
            // A longer string must be cut, which is rare and so left to the slow path.
            let Some(text) = values.stable_string(i).filter(|text| text.len() < STR_SLOT) else {
                return false;
            };

            *value = StableValue::Text(text);
            if matches!(field.class, SynthClass::DynString) {
                // OVERFLOW: the sum of at most `FEW` lengths below `STR_SLOT`.
                len = len.wrapping_add(text.len()).wrapping_add(1);
            }
        }
        match record_len(len) {
            Ok(len) => {
                stable.len = len;
                true
            }
            Err(_) => false,
        }
    }

    /// Writes a whole record except for its header, with the bytes that [`Schema::write`] would write; `None` if
    /// `record` has less than [`StableValues::record_len`] bytes.
    #[inline(always)]
    pub fn write_stable(&self, stable: &StableValues<'_>, record: &mut [u8]) -> Option<()> {
        let (mut fixed, mut rest) = self.split(record)?;

        for (field, value) in self.fields.iter().zip(&stable.values) {
            let (slot, after) = core::mem::take(&mut fixed)
                .split_at_mut_checked(usize::from(words(field.class)) * 8)?;

            fixed = after;
            let word = match (value, field.class) {
                (StableValue::Number(value), _) => in_slot(*value, field.unused),
                (StableValue::Text(text), SynthClass::StaticString) => {
                    // Clears the whole slot: clearing only the bytes after the text takes longer, as they do not start
                    // at a word.
                    slot.fill(0);
                    put(slot, text)?;
                    continue;
                }
                (StableValue::Text(text), _) => {
                    // OVERFLOW: `collect_stable` has checked that the text is shorter than `STR_SLOT`.
                    let len = text.len().wrapping_add(1);
                    let (offset, to) = rest.take(len)?;

                    put(to, text)?;
                    *to.last_mut()? = 0;
                    data_loc(offset, len)?
                }
            };

            store_8(slot.first_chunk_mut()?, word);
        }
        rest.clear();
        Some(())
    }
}
