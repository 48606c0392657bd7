// SPDX-License-Identifier: GPL-2.0

//! The record of a synthetic event.
//!
//! C counterpart: `get_field_size()`, `write_synth_entry()`, `trace_string()`, `trace_stack()` of
//! [`kernel/trace/trace_events_synth.c`](srctree/kernel/trace/trace_events_synth.c).
//! Header, then the words of the fields, then what has no fixed place in the order of the fields.
//! Where it is, its word says: the offset in the low half, the bytes in the high half of 32 bits.
//!
//! Context: any, NMI included. Never allocates, sleeps, locks or panics.

use super::{
    words,
    Schema,
    FIELDS_MAX,
    HEADER, //
};
use crate::{
    field::SynthClass,
    limits::STACK_DEPTH, //
};

/// Most bytes of a string elsewhere in the record, its NUL included (`MAX_STRING_SIZE`).
pub const DYN_STRING_MAX: usize = 4096;
/// Bytes of a slot.
const WORD: usize = size_of::<u64>();
/// What a static string says that could not be read (`FAULT_STRING`).
pub const FAULT: &[u8] = b"(fault)";

/// Why there is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// Its memory cannot be read; the record says so.
    Fault,
    /// It was being changed in each of the bounded number of tries: no record is written.
    Torn,
}

/// Why a record is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// A value could not be had.
    Torn,
    /// It would have more bytes than its words can say.
    TooLong,
}

/// The values of one record, by the number of their field.
///
/// Each method is only called for fields of its class; it does not sleep, and may be called from
/// NMI. Between [`Schema::measure`] and [`Schema::write`] a text may change: its measured length
/// holds. Strings and stacks are asked for of values that are [settled](Values::settle), but for
/// those that [stand still](Values::still).
pub trait Values {
    /// The value of a number; its low bytes are stored.
    fn number(&self, field: usize) -> u64;

    /// The bytes of a dynamic string, without NUL.
    fn string_len(&self, field: usize) -> Result<usize, Unread>;

    /// Copies a string, static or dynamic, without NUL, as much of it as fits; returns how much.
    fn string(&self, field: usize, to: &mut [u8]) -> Result<usize, Unread>;

    /// The frames of a stack, none of them 0.
    fn stack_len(&self, field: usize) -> Result<usize, Unread>;

    /// Copies the frames of a stack as 64-bit words in the byte order of the machine, as many as
    /// fit; returns how many.
    fn stack(&self, field: usize, to: &mut [u8]) -> Result<usize, Unread>;

    /// The bytes of a string, without NUL, if they stand still as long as the values are borrowed: such a one
    /// need not be asked for twice.
    #[inline(always)]
    fn still(&self, _field: usize) -> Option<&[u8]> {
        None
    }

    /// Calls `next` with the same values, of which those are at hand that take long to have: each is asked for its
    /// length, and then for itself.
    #[inline(always)]
    fn settle<N: Next>(&self, next: N) -> N::Out
    where
        Self: Sized,
    {
        next.run(self)
    }
}

/// What is done with values that are [settled](Values::settle).
pub trait Next {
    /// What comes of it.
    type Out;

    /// Does it.
    fn run(self, values: &impl Values) -> Self::Out;
}

/// What the parts of one record without a fixed place take.
///
/// It is filled where it is: to move it takes as long as to write a short record.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    total: u16,
    /// The bytes by field, as they are reserved.
    parts: [u16; FIELDS_MAX],
}

impl Sizes {
    /// Those of no record yet.
    #[inline(always)]
    pub const fn new() -> Self {
        Self {
            total: 0,
            parts: [0; FIELDS_MAX],
        }
    }

    /// The bytes of the record, header included: a multiple of 4.
    #[inline(always)]
    pub fn record_len(&self) -> usize {
        self.total.into()
    }

    #[inline(always)]
    fn reserved(&self, field: usize) -> usize {
        self.parts.get(field).copied().unwrap_or(0).into()
    }
}

impl Default for Sizes {
    fn default() -> Self {
        Self::new()
    }
}

/// The part of a record that is not written yet, from `offset` on.
pub(super) struct Rest<'r> {
    bytes: &'r mut [u8],
    offset: usize,
}

impl<'r> Rest<'r> {
    /// Takes the next `n` bytes; returns where in the record they are.
    #[inline(always)]
    pub(super) fn take(&mut self, n: usize) -> Option<(usize, &'r mut [u8])> {
        let offset = self.offset;
        let (taken, rest) = core::mem::take(&mut self.bytes).split_at_mut_checked(n)?;

        self.bytes = rest;
        self.offset = offset.checked_add(n)?;
        Some((offset, taken))
    }

    /// Clears what has not been taken.
    #[inline(always)]
    pub(super) fn clear(self) {
        clear_all(self.bytes);
    }
}

/// The word of what is elsewhere.
#[inline(always)]
pub(super) fn place(offset: usize, len: usize) -> Option<u64> {
    let offset = u32::from(u16::try_from(offset).ok()?);
    let len = u32::from(u16::try_from(len).ok()?);

    Some(in_slot((len << 16 | offset).into(), 32))
}

/// Copies `bytes` to the start of `slot`.
pub(super) fn put(slot: &mut [u8], bytes: &[u8]) -> Option<()> {
    slot.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(())
}

/// Writes a number of `size` bytes.
fn put_number(slot: &mut [u8], size: u16, value: u64) -> Option<()> {
    // CAST: the low bytes are meant.
    match size {
        1 => put(slot, &(value as u8).to_ne_bytes()),
        2 => put(slot, &(value as u16).to_ne_bytes()),
        4 => put(slot, &(value as u32).to_ne_bytes()),
        _ => put(slot, &value.to_ne_bytes()),
    }
}

impl Schema {
    /// Asks for the lengths of one record.
    #[inline(always)]
    pub fn measure<V: Values>(&self, values: &V, sizes: &mut Sizes) -> Result<(), Lost> {
        if self.dynamic {
            self.measure_parts(values, sizes)
        } else {
            sizes.total = record_len(self.fixed_len())?;
            Ok(())
        }
    }

    // Firing an event fires what waits for it, so what is on the stack counts for each level: this and
    // `write` take theirs down again before a record is committed.
    #[inline(never)]
    fn measure_parts<V: Values>(&self, values: &V, sizes: &mut Sizes) -> Result<(), Lost> {
        let mut total = self.fixed_len();

        for ((i, field), bytes) in (0..FIELDS_MAX)
            .zip(self.fields.iter())
            .zip(&mut sizes.parts)
        {
            let n = match field.class {
                SynthClass::Number | SynthClass::StaticString => continue,
                SynthClass::DynString => string_room(i, values)?,
                SynthClass::Stack => stack_room(i, values)?,
            };

            *bytes = u16::try_from(n).map_err(|_| Lost::TooLong)?;
            total = total.saturating_add(n);
        }
        sizes.total = record_len(total)?;
        Ok(())
    }

    /// The bytes of a record, header included, without what has no fixed place.
    #[inline]
    pub fn fixed_len(&self) -> usize {
        // OVERFLOW: `words` has 16 bits.
        self.words() * 8 + HEADER
    }

    /// Whether the event has nothing but numbers: then all records have [`Schema::fixed_len`] bytes.
    #[inline(always)]
    pub fn has_numbers_alone(&self) -> bool {
        self.numbers
    }

    /// Writes all of a record but its header. `record` has at least [`Sizes::record_len`] bytes; what
    /// there is beyond becomes 0, and so does what a shorter value leaves: none of it is what the buffer held
    /// before. (Where all fields are numbers there is nothing but what it was rounded up by.)
    #[inline(never)]
    pub fn write<V: Values>(
        &self,
        values: &V,
        sizes: &Sizes,
        record: &mut [u8],
    ) -> Result<(), Lost> {
        if self.numbers {
            return self.write_numbers(values, record);
        }
        let (mut fixed, mut rest) = self.split(record).ok_or(Lost::TooLong)?;

        for (i, field) in (0..FIELDS_MAX).zip(self.fields.iter()) {
            let (slot, behind) = core::mem::take(&mut fixed)
                .split_at_mut_checked(usize::from(words(field.class)) * 8)
                .ok_or(Lost::TooLong)?;

            fixed = behind;
            let word = match field.class {
                SynthClass::Number => in_slot(values.number(i), field.unused),
                SynthClass::StaticString => {
                    write_static(slot, i, values)?;
                    continue;
                }
                SynthClass::DynString | SynthClass::Stack => {
                    let (offset, to) = rest.take(sizes.reserved(i)).ok_or(Lost::TooLong)?;
                    let len = match field.class {
                        SynthClass::Stack => write_stack(to, i, values)?,
                        _ => write_dynamic(to, i, values)?,
                    };

                    place(offset, len).ok_or(Lost::TooLong)?
                }
            };

            *slot.first_chunk_mut().ok_or(Lost::TooLong)? = word.to_ne_bytes();
        }
        rest.clear();
        Ok(())
    }

    /// The slots of a record, and what is behind them.
    #[inline(always)]
    pub(super) fn split<'r>(&self, record: &'r mut [u8]) -> Option<(&'r mut [u8], Rest<'r>)> {
        let body = record.get_mut(HEADER..)?;
        let (fixed, bytes) = body.split_at_mut_checked(self.words() * 8)?;
        let offset = self.fixed_len();

        Some((fixed, Rest { bytes, offset }))
    }

    /// [`Schema::write`] for an event that has nothing but numbers.
    #[inline(always)]
    pub fn write_numbers<V: Values>(&self, values: &V, record: &mut [u8]) -> Result<(), Lost> {
        let mut slots = record
            .get_mut(HEADER..)
            .unwrap_or(&mut [])
            .chunks_exact_mut(WORD);

        if slots.len() < self.fields.len() {
            return Err(Lost::TooLong);
        }

        for ((i, field), slot) in (0..FIELDS_MAX).zip(self.fields.iter()).zip(slots.by_ref()) {
            if let Some(slot) = slot.first_chunk_mut() {
                *slot = in_slot(values.number(i), field.unused).to_ne_bytes();
            }
        }
        // There is nothing behind, but what the record was rounded up by.
        clear_all(slots.into_remainder());
        Ok(())
    }

    /// Makes a record empty: numbers 0, strings without characters. The header stays.
    pub fn clear(&self, record: &mut [u8]) {
        if let Some(body) = record.get_mut(HEADER..) {
            body.fill(0);
        }
    }

    /// Sets one number of a record; `false` if the field is no number or the record too short.
    pub fn put_number(&self, record: &mut [u8], field: usize, value: u64) -> bool {
        self.slot(record, field, SynthClass::Number)
            .and_then(|(slot, size)| put_number(slot, size, value))
            .is_some()
    }

    /// Sets one static string of a record, of which 255 bytes at most fit; `false` if the field is
    /// none or the record too short.
    pub fn put_string(&self, record: &mut [u8], field: usize, text: &[u8]) -> bool {
        let Some((slot, _)) = self.slot(record, field, SynthClass::StaticString) else {
            return false;
        };
        let len = text.len().min(slot.len().saturating_sub(1));

        slot.fill(0);
        text.get(..len).and_then(|text| put(slot, text)).is_some()
    }

    /// The bytes of a field in a record, if it is of this class, and its size.
    fn slot<'r>(
        &self,
        record: &'r mut [u8],
        field: usize,
        class: SynthClass,
    ) -> Option<(&'r mut [u8], u16)> {
        let field = self.field(field).filter(|f| f.class == class)?;
        let from = field.offset();
        let to = from.checked_add(usize::from(words(class)) * 8)?;

        Some((record.get_mut(from..to)?, field.size))
    }
}

/// The word of a slot with a number, which comes first and leaves `unused` bits of it.
#[inline(always)]
pub(super) fn in_slot(value: u64, unused: u8) -> u64 {
    let unused = u32::from(unused);
    let high = value.wrapping_shl(unused);

    if cfg!(target_endian = "big") {
        high
    } else {
        high.wrapping_shr(unused)
    }
}

/// The length of a record of `len` bytes: the ring buffer rounds up likewise, so the bytes that it adds are
/// written, too.
#[inline]
pub(super) fn record_len(len: usize) -> Result<u16, Lost> {
    u16::try_from(len.saturating_add(3) & !3).map_err(|_| Lost::TooLong)
}

/// The bytes that a dynamic string takes outside of its slot.
#[inline]
fn string_room<V: Values>(i: usize, values: &V) -> Result<usize, Lost> {
    match values.string_len(i) {
        Ok(len) => Ok(len.saturating_add(1).min(DYN_STRING_MAX)),
        Err(Unread::Fault) => Ok(0),
        Err(Unread::Torn) => Err(Lost::Torn),
    }
}

/// The bytes that a stack takes outside of its slot: before the frames stands their number.
#[inline(never)]
fn stack_room<V: Values>(i: usize, values: &V) -> Result<usize, Lost> {
    match values.stack_len(i) {
        Ok(frames) => Ok(frames.min(STACK_DEPTH).saturating_add(1).saturating_mul(8)),
        Err(Unread::Fault) => Ok(8),
        Err(Unread::Torn) => Err(Lost::Torn),
    }
}

/// Writes a string into its slot.
#[inline]
fn write_static<V: Values>(slot: &mut [u8], i: usize, values: &V) -> Result<(), Lost> {
    let (nul, text) = slot.split_last_mut().ok_or(Lost::TooLong)?;

    *nul = 0;
    match values.string(i, text) {
        // What a string that shrank under the copy left there goes, too.
        Ok(len) => clear_from(text, len),
        Err(Unread::Fault) => {
            clear_from(text, 0);
            put(text, FAULT).ok_or(Lost::TooLong)?;
        }
        Err(Unread::Torn) => return Err(Lost::Torn),
    }
    Ok(())
}

/// Writes a string into what is reserved for it; returns its bytes, NUL included.
#[inline]
fn write_dynamic<V: Values>(to: &mut [u8], i: usize, values: &V) -> Result<usize, Lost> {
    let Some((nul, text)) = to.split_last_mut() else {
        return Ok(0);
    };

    *nul = 0;
    match values.string(i, text) {
        Ok(len) => {
            let len = len.min(text.len());

            clear_from(text, len);
            Ok(len.saturating_add(1))
        }
        Err(Unread::Fault) => {
            clear_from(text, 0);
            Ok(0)
        }
        Err(Unread::Torn) => Err(Lost::Torn),
    }
}

/// Clears what is behind the first `len` bytes, mostly nothing or a few words.
#[inline(always)]
fn clear_from(bytes: &mut [u8], len: usize) {
    clear_all(bytes.get_mut(len..).unwrap_or(&mut []));
}

/// Clears bytes. To call a function for none, or for those that a record was rounded up by, takes longer.
#[inline(always)]
fn clear_all(bytes: &mut [u8]) {
    if bytes.len() > 3 {
        bytes.fill(0);
        return;
    }
    if let Some(two) = bytes.first_chunk_mut() {
        *two = [0; 2];
    }
    if let Some(last) = bytes.last_mut() {
        *last = 0;
    }
}

/// Writes a stack into what is reserved for it; returns the bytes that readers are told of.
///
/// PARITY: `trace_stack()` copies 31 words at most, of which the first is the number of frames, and
/// nothing of a stack without frames.
#[inline(never)]
fn write_stack<V: Values>(to: &mut [u8], i: usize, values: &V) -> Result<usize, Lost> {
    to.fill(0);
    let Some((count, all)) = to.split_at_mut_checked(8) else {
        return Ok(0);
    };
    let room = all.len();
    let frames = all.get_mut(..room.min((STACK_DEPTH - 1) * 8));
    let copied = match values.stack(i, frames.unwrap_or(&mut [])) {
        Ok(copied) => copied,
        Err(Unread::Fault) => 0,
        Err(Unread::Torn) => return Err(Lost::Torn),
    };
    let copied = copied.min(room / 8).min(STACK_DEPTH - 1);

    if copied == 0 {
        return Ok(0);
    }
    // A whole stack is as long as it was measured; a shorter one has changed since.
    let whole = room / 8 == STACK_DEPTH && copied == STACK_DEPTH - 1;
    let told = if whole { STACK_DEPTH } else { copied };

    // CAST: at most 31.
    put_number(count, 8, told as u64);
    Ok(copied.saturating_add(1).saturating_mul(8))
}
