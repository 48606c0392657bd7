// SPDX-License-Identifier: GPL-2.0

//! The record of a synthetic event: measuring and writing it.
//!
//! C counterpart: `get_field_size()`, `write_synth_entry()`, `trace_string()`, `trace_stack()` of
//! [`kernel/trace/trace_events_synth.c`](srctree/kernel/trace/trace_events_synth.c). A record is the header, the words
//! of the fields, and then the strings and stacks without a fixed offset, in the order of the fields. The word of such
//! a field is a `__data_loc`: the offset in the low 16 bits, the length in bytes in the 16 bits above.
//!
//! Context: any, NMI included. Never allocates, sleeps, locks or panics.

use super::{
    unused_bits,
    words,
    Schema,
    FIELDS_MAX,
    HEADER, //
};
use crate::{
    field::SynthClass,
    limits::STACK_DEPTH,
    sync::store_8, //
};

/// Maximum bytes of a string without a fixed offset, its NUL included (`MAX_STRING_SIZE`).
pub const DYN_STRING_MAX: usize = 4096;
/// Bytes of a field's slot, or of one word of it.
const WORD: usize = size_of::<u64>();
/// The content of a static string that could not be read (`FAULT_STRING`).
pub const FAULT: &[u8] = b"(fault)";

/// The reason why a value cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// The memory of the value cannot be read. The record is written, with [`FAULT`] or without the value.
    Fault,
    /// A writer changed the value during each of a bounded number of tries. No record is written.
    Torn,
}

/// The reason why a record is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Writers kept changing a value.
    Torn,
    /// An offset, a length or the record itself does not fit in 16 bits.
    TooLong,
}

/// The values of one record, by the index of the field.
///
/// Context: any, NMI included; an implementation neither sleeps nor allocates. [`Schema`] calls each method only for
/// fields of that method's class. A string may change between [`Schema::measure`] and [`Schema::write`]; the record
/// then keeps the measured length. Lengths and contents are queried through [`FieldValues::materialize`], [stable
/// strings](FieldValues::stable_string) directly.
pub trait FieldValues {
    /// Returns a number, whose low bytes are written to the record.
    fn number(&self, field: usize) -> u64;

    /// Returns the length of a dynamic string in bytes, without its NUL.
    fn string_len(&self, field: usize) -> Result<usize, Unread>;

    /// Copies a static or dynamic string, without its NUL, to `to` as far as it fits; returns the number of bytes
    /// copied.
    fn string(&self, field: usize, to: &mut [u8]) -> Result<usize, Unread>;

    /// Returns the number of frames of a stack, none of which is 0.
    fn stack_len(&self, field: usize) -> Result<usize, Unread>;

    /// Copies the frames of a stack to `to` as far as they fit, as 64-bit words in native byte order; returns the
    /// number of frames copied.
    fn stack(&self, field: usize, to: &mut [u8]) -> Result<usize, Unread>;

    /// Returns the bytes of a string, without its NUL, if they cannot change while the values are borrowed, so that the
    /// string need not be queried twice.
    #[inline]
    fn stable_string(&self, _field: usize) -> Option<&[u8]> {
        None
    }

    /// Calls `next` with these values, but with the expensive ones (a stack trace) computed: each value is queried
    /// twice, for its length and for its content.
    #[inline]
    fn materialize<N: WithValues>(&self, next: N) -> N::Out
    where
        Self: Sized,
    {
        next.run(self)
    }
}

/// The continuation of [`FieldValues::materialize`], a trait because it is generic over the values.
pub trait WithValues {
    /// The result.
    type Out;

    /// Runs the continuation with the values.
    fn run(self, values: &impl FieldValues) -> Self::Out;
}

/// The length of one record and of each of its values without a fixed offset.
///
/// Lives on the caller's stack, where [`Schema::measure`] fills it: moving it would take as long as writing a short
/// record.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    total: u16,
    /// The bytes to reserve for the value of each field without a fixed offset.
    parts: [u16; FIELDS_MAX],
}

/// The sizes of a record before it is measured.
impl Default for Sizes {
    #[inline]
    fn default() -> Self {
        Self {
            total: 0,
            parts: [0; FIELDS_MAX],
        }
    }
}

impl Sizes {
    /// Returns the size of the record in bytes, header included: a multiple of 4.
    #[inline]
    pub fn record_len(&self) -> usize {
        self.total.into()
    }

    #[inline]
    fn reserved(&self, field: usize) -> usize {
        self.parts.get(field).copied().unwrap_or(0).into()
    }
}

/// The unwritten rest of a record, from `offset` on.
pub(super) struct Tail<'r> {
    bytes: &'r mut [u8],
    offset: usize,
}

impl<'r> Tail<'r> {
    /// Removes the next `n` bytes from the rest; returns their offset in the record and the bytes.
    #[inline]
    pub(super) fn take(&mut self, n: usize) -> Option<(usize, &'r mut [u8])> {
        let offset = self.offset;
        let (taken, rest) = core::mem::take(&mut self.bytes).split_at_mut_checked(n)?;

        self.bytes = rest;
        self.offset = offset.checked_add(n)?;
        Some((offset, taken))
    }

    /// Sets the remaining bytes to 0.
    #[inline]
    pub(super) fn clear(self) {
        clear_all(self.bytes);
    }
}

/// Returns the `__data_loc` word for a value at `offset`; `None` if offset or length has more than 16 bits.
#[inline]
pub(super) fn data_loc(offset: usize, len: usize) -> Option<u64> {
    let offset = u32::from(u16::try_from(offset).ok()?);
    let len = u32::from(u16::try_from(len).ok()?);

    Some(in_slot((len << 16 | offset).into(), 32))
}

/// Copies `bytes` to the start of `slot`.
pub(super) fn put(slot: &mut [u8], bytes: &[u8]) -> Option<()> {
    slot.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(())
}

impl Schema {
    /// Queries the lengths of one record's values and stores them in `sizes`.
    ///
    /// # Errors
    ///
    /// [`Lost::Torn`] if a length cannot be read, [`Lost::TooLong`] if one exceeds 16 bits.
    #[inline]
    pub fn measure<V: FieldValues>(&self, values: &V, sizes: &mut Sizes) -> Result<(), Lost> {
        if self.dynamic {
            self.measure_parts(values, sizes)
        } else {
            sizes.total = record_len(self.fixed_len())?;
            Ok(())
        }
    }

    // A trigger on the event may generate the next event while this one's record is committed, so every frame that is
    // live during the commit counts once for each level of nesting. This function and `write` are not inlined, so that
    // their frames are gone by then.
    #[inline(never)]
    fn measure_parts<V: FieldValues>(&self, values: &V, sizes: &mut Sizes) -> Result<(), Lost> {
        let mut total = self.fixed_len();

        for ((i, field), bytes) in (0..FIELDS_MAX)
            .zip(self.fields.iter())
            .zip(&mut sizes.parts)
        {
            let n = match field.class {
                SynthClass::Number | SynthClass::StaticString => continue,
                SynthClass::DynString => string_size(i, values)?,
                SynthClass::Stack => stack_size(i, values)?,
            };

            *bytes = u16::try_from(n).map_err(|_| Lost::TooLong)?;
            total = total.saturating_add(n);
        }
        sizes.total = record_len(total)?;
        Ok(())
    }

    /// Returns the size in bytes of a record without the values that have no fixed offset, header included.
    #[inline]
    pub fn fixed_len(&self) -> usize {
        // OVERFLOW: `words` has 16 bits, and `usize` at least 32.
        self.words() * 8 + HEADER
    }

    /// Writes a whole record except for its header. `record` should have at least [`Sizes::record_len`] bytes. Further
    /// bytes, and bytes that a value does not fill, become 0, so that a reader never sees the old contents of the
    /// buffer. (If all fields are numbers, `record` must end less than 8 bytes after them.)
    ///
    /// # Errors
    ///
    /// [`Lost::Torn`] if a value cannot be read, [`Lost::TooLong`] if `record` is too short.
    #[inline(never)]
    pub fn write<V: FieldValues>(
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
            let (slot, after) = core::mem::take(&mut fixed)
                .split_at_mut_checked(usize::from(words(field.class)) * 8)
                .ok_or(Lost::TooLong)?;

            fixed = after;
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

                    data_loc(offset, len).ok_or(Lost::TooLong)?
                }
            };

            store_8(slot.first_chunk_mut().ok_or(Lost::TooLong)?, word);
        }
        rest.clear();
        Ok(())
    }

    /// Splits a record, without its header, into the slots of the fields and the rest.
    #[inline]
    pub(super) fn split<'r>(&self, record: &'r mut [u8]) -> Option<(&'r mut [u8], Tail<'r>)> {
        let body = record.get_mut(HEADER..)?;
        let (fixed, bytes) = body.split_at_mut_checked(self.words() * 8)?;
        let offset = self.fixed_len();

        Some((fixed, Tail { bytes, offset }))
    }

    /// Writes the record of an event whose fields are all numbers, as [`Schema::write`] does.
    ///
    /// # Errors
    ///
    /// [`Lost::TooLong`] if `record` is too short.
    #[inline(always)]
    pub fn write_numbers<V: FieldValues>(&self, values: &V, record: &mut [u8]) -> Result<(), Lost> {
        let mut slots = record
            .get_mut(HEADER..)
            .unwrap_or(&mut [])
            .chunks_exact_mut(WORD);

        if slots.len() < self.fields.len() {
            return Err(Lost::TooLong);
        }

        for ((i, field), slot) in (0..FIELDS_MAX).zip(self.fields.iter()).zip(slots.by_ref()) {
            if let Some(slot) = slot.first_chunk_mut() {
                store_8(slot, in_slot(values.number(i), field.unused));
            }
        }
        // The length of a record is rounded up to a multiple of 4.
        clear_all(slots.into_remainder());
        Ok(())
    }

    /// Clears a record: numbers become 0, strings empty. The header stays.
    pub fn clear(&self, record: &mut [u8]) {
        if let Some(body) = record.get_mut(HEADER..) {
            body.fill(0);
        }
    }

    /// Sets a number of a record; `false` if the field is no number or the record is too short.
    pub fn put_number(&self, record: &mut [u8], field: usize, value: u64) -> bool {
        self.slot(record, field, SynthClass::Number)
            .and_then(|(slot, size)| Some((slot.first_chunk_mut()?, size)))
            .map(|(slot, size)| store_8(slot, in_slot(value, unused_bits(size))))
            .is_some()
    }

    /// Sets a static string of a record to `text`, at most 255 bytes of it; `false` if the field is no static string or
    /// the record is too short.
    pub fn put_string(&self, record: &mut [u8], field: usize, text: &[u8]) -> bool {
        let Some((slot, _)) = self.slot(record, field, SynthClass::StaticString) else {
            return false;
        };
        let len = text.len().min(slot.len().saturating_sub(1));

        slot.fill(0);
        text.get(..len).and_then(|text| put(slot, text)).is_some()
    }

    /// Returns the bytes of a field in a record, and its size; `None` if the field is not of class `class`.
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

/// Returns the word of a slot with a number at its start that leaves `unused` bits of the slot unused.
#[inline]
pub(super) fn in_slot(value: u64, unused: u8) -> u64 {
    let unused = u32::from(unused);
    let high = value.wrapping_shl(unused);

    if cfg!(target_endian = "big") {
        high
    } else {
        high.wrapping_shr(unused)
    }
}

/// Returns `len` rounded up as the ring buffer does, so that the bytes of padding are written, too.
#[inline]
pub(super) fn record_len(len: usize) -> Result<u16, Lost> {
    u16::try_from(len.saturating_add(3) & !3).map_err(|_| Lost::TooLong)
}

/// Returns the length of a value, `None` for a value that cannot be read, and an error for one that is torn.
#[inline]
fn unless_torn(len: Result<usize, Unread>) -> Result<Option<usize>, Lost> {
    match len {
        Ok(len) => Ok(Some(len)),
        Err(Unread::Fault) => Ok(None),
        Err(Unread::Torn) => Err(Lost::Torn),
    }
}

/// Returns the number of bytes of a dynamic string outside of its slot.
#[inline]
fn string_size<V: FieldValues>(i: usize, values: &V) -> Result<usize, Lost> {
    let size = |len: usize| len.saturating_add(1).min(DYN_STRING_MAX);

    Ok(unless_torn(values.string_len(i))?.map_or(0, size))
}

/// Returns the number of bytes of a stack outside of its slot: a word with the number of frames, and the frames.
#[inline(never)]
fn stack_size<V: FieldValues>(i: usize, values: &V) -> Result<usize, Lost> {
    let frames = unless_torn(values.stack_len(i))?.unwrap_or(0);

    Ok(frames.min(STACK_DEPTH).saturating_add(1).saturating_mul(8))
}

/// Writes a string into its slot.
#[inline]
fn write_static<V: FieldValues>(slot: &mut [u8], i: usize, values: &V) -> Result<(), Lost> {
    let (nul, text) = slot.split_last_mut().ok_or(Lost::TooLong)?;

    *nul = 0;
    let len = unless_torn(values.string(i, text))?;

    // Also clears leftovers if the string became shorter while it was copied.
    clear_from(text, len.unwrap_or(0));
    match len {
        Some(_) => Ok(()),
        None => put(text, FAULT).ok_or(Lost::TooLong),
    }
}

/// Writes a string into the bytes reserved for it; returns its length, NUL included.
#[inline]
fn write_dynamic<V: FieldValues>(to: &mut [u8], i: usize, values: &V) -> Result<usize, Lost> {
    let Some((nul, text)) = to.split_last_mut() else {
        return Ok(0);
    };

    *nul = 0;
    let len = unless_torn(values.string(i, text))?.map(|len| len.min(text.len()));

    clear_from(text, len.unwrap_or(0));
    Ok(len.map_or(0, |len| len.saturating_add(1)))
}

/// Clears the bytes after the first `len`, mostly none or a few words.
#[inline]
fn clear_from(bytes: &mut [u8], len: usize) {
    clear_all(bytes.get_mut(len..).unwrap_or(&mut []));
}

/// Clears bytes. Up to three bytes, the padding of a record, are cleared without a call.
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

/// Writes a stack into the bytes reserved for it; returns the length for the field's word.
///
/// PARITY: `trace_stack()` copies at most 31 words, of which the first is the number of frames; for a stack without
/// frames it copies nothing.
#[inline(never)]
fn write_stack<V: FieldValues>(to: &mut [u8], i: usize, values: &V) -> Result<usize, Lost> {
    to.fill(0);
    let Some((count, all)) = to.split_at_mut_checked(8) else {
        return Ok(0);
    };
    let size = all.len();
    let frames = all.get_mut(..size.min((STACK_DEPTH - 1) * 8));
    let copied = unless_torn(values.stack(i, frames.unwrap_or(&mut [])))?.unwrap_or(0);
    let copied = copied.min(size / 8).min(STACK_DEPTH - 1);

    if copied == 0 {
        return Ok(0);
    }
    // C stores the number of frames before it drops the last frame of a full stack.
    let whole = size / 8 == STACK_DEPTH && copied == STACK_DEPTH - 1;
    let frames = if whole { STACK_DEPTH } else { copied };

    // CAST: at most `STACK_DEPTH`, which is 31.
    put(count, &(frames as u64).to_ne_bytes());
    Ok(copied.saturating_add(1).saturating_mul(8))
}
