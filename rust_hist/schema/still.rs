// SPDX-License-Identifier: GPL-2.0

//! The record of a synthetic event of few fields, of which none is a stack, and whose values stand still.
//!
//! C counterpart: as of `record`. To ask each value for its length first and then for itself takes longer than
//! all else that is done for such a record.
//!
//! Context: any, NMI included. Never allocates, sleeps, locks or panics.

use super::{
    record::{
        in_slot,
        place,
        put,
        record_len, //
    },
    words,
    Schema,
    Values, //
};
use crate::{
    field::SynthClass,
    limits::STR_SLOT, //
};

/// Fields of an event for which there is room. For two more it takes a call to clear it.
const FEW: usize = 6;

/// A value before there is room for it.
#[derive(Clone, Copy)]
enum Part<'v> {
    Number(u64),
    Text(&'v [u8]),
}

/// The values of one record, all of which stand still. It is filled where it is.
pub struct Still<'v> {
    parts: [Part<'v>; FEW],
    len: u16,
}

impl Still<'_> {
    /// Those of no record yet.
    #[inline(always)]
    pub const fn new() -> Self {
        Self {
            parts: [Part::Number(0); FEW],
            len: 0,
        }
    }

    /// The bytes of the record, header included: a multiple of 4.
    #[inline(always)]
    pub fn record_len(&self) -> usize {
        self.len.into()
    }
}

impl Default for Still<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl Schema {
    /// Asks for the values of one record, and says whether there is room for all of them and they stand still.
    #[inline(always)]
    pub fn gather<'v, V: Values>(&self, values: &'v V, still: &mut Still<'v>) -> bool {
        if self.stacks || self.fields.len() > FEW {
            return false;
        }
        let mut len = self.fixed_len();

        for i in 0..FEW {
            let (Some(field), Some(part)) = (self.fields.get(i), still.parts.get_mut(i)) else {
                break;
            };

            if matches!(field.class, SynthClass::Number) {
                *part = Part::Number(values.number(i));
                continue;
            }
            // What is longer is cut off, which nobody needs to be quick at.
            let Some(text) = values.still(i).filter(|text| text.len() < STR_SLOT) else {
                return false;
            };

            *part = Part::Text(text);
            if matches!(field.class, SynthClass::DynString) {
                // OVERFLOW: the lengths of a few strings.
                len = len.wrapping_add(text.len()).wrapping_add(1);
            }
        }
        match record_len(len) {
            Ok(len) => {
                still.len = len;
                true
            }
            Err(_) => false,
        }
    }

    /// Writes all of a record but its header, as [`Schema::write`], which has at least [`Still::record_len`] bytes;
    /// `None` if it has not.
    #[inline(always)]
    pub fn write_still(&self, still: &Still<'_>, record: &mut [u8]) -> Option<()> {
        let (mut fixed, mut rest) = self.split(record)?;

        for (field, part) in self.fields.iter().zip(&still.parts) {
            let (slot, behind) = core::mem::take(&mut fixed)
                .split_at_mut_checked(usize::from(words(field.class)) * 8)?;

            fixed = behind;
            let word = match (part, field.class) {
                (Part::Number(value), _) => in_slot(*value, field.unused),
                (Part::Text(text), SynthClass::StaticString) => {
                    // All of it: what is behind would be cleared by bytes, too, not by words alone.
                    slot.fill(0);
                    put(slot, text)?;
                    continue;
                }
                (Part::Text(text), _) => {
                    // OVERFLOW: the length of a slice.
                    let len = text.len().wrapping_add(1);
                    let (offset, to) = rest.take(len)?;

                    put(to, text)?;
                    *to.last_mut()? = 0;
                    place(offset, len)?
                }
            };

            *slot.first_chunk_mut()? = word.to_ne_bytes();
        }
        rest.clear();
        Some(())
    }
}
