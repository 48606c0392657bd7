// SPDX-License-Identifier: GPL-2.0

//! What a synthetic event is: its definition, its record, and how both are shown.
//!
//! C counterpart: the parts of
//! [`kernel/trace/trace_events_synth.c`](srctree/kernel/trace/trace_events_synth.c) that do not talk
//! to the tracing core.
//! The text of a definition becomes a [`Schema`], which does not change any more. The glue registers
//! the event, asks the schema for the size of a record and has it written and shown.
//!
//! Context: creating and showing process context, writing a record any, NMI included.

mod error;
mod kind;
mod parse;
mod record;
mod show;
mod still;

use core::ffi::CStr;

use self::kind::Format;
use crate::{
    alloc::{
        AllocError,
        Vec, //
    },
    field::{
        SynthClass,
        SynthField, //
    },
    limits::STR_SLOT, //
};

pub use self::{
    error::{
        Refusal,
        SynthErr, //
    },
    kind::is_type,
    parse::{
        logged,
        parse,
        parse_dynamic,
        Command, //
    },
    record::{
        Lost,
        Next,
        Sizes,
        Unread,
        Values,
        DYN_STRING_MAX,
        FAULT, //
    },
    show::Names,
    still::Still, //
};

/// Most fields of one event (`SYNTH_FIELDS_MAX`).
pub const FIELDS_MAX: usize = 64;
/// Bytes of what every record starts with (`struct trace_entry`).
pub const HEADER: usize = 8;

/// One field as the schema keeps it; the texts are ended by a NUL.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Where the type starts in the schema's text.
    type_name: usize,
    /// Where the name starts.
    name: usize,
    /// One beyond the NUL of the name.
    end: usize,
    class: SynthClass,
    format: Format,
    size: u16,
    signed: bool,
    at: u16,
    /// The bits that a number leaves of its word.
    unused: u8,
}

/// One field of a synthetic event.
#[derive(Clone, Copy, Debug)]
pub struct Field<'s> {
    /// The type as `format` shows it: with `__data_loc ` if the record has only its place.
    pub type_name: &'s CStr,
    /// The name.
    pub name: &'s CStr,
    /// What its values are.
    pub class: SynthClass,
    /// Its bytes as `format` shows them: of a static string those that were asked for, of what is
    /// elsewhere in the record 8.
    pub size: u16,
    /// Whether `format` calls it signed.
    pub signed: bool,
    /// Its first 64-bit word behind the header.
    pub at: u16,
    format: Format,
}

impl Field<'_> {
    /// Where it starts in the record.
    pub fn offset(&self) -> usize {
        // OVERFLOW: `at` has 16 bits.
        usize::from(self.at) * 8 + HEADER
    }

    /// The type as it was typed, which is what the listing shows.
    pub fn typed(&self) -> &[u8] {
        let type_name = self.type_name.to_bytes();

        type_name.strip_prefix(kind::DATA_LOC).unwrap_or(type_name)
    }
}

impl<'s> From<Field<'s>> for SynthField<'s> {
    fn from(field: Field<'s>) -> Self {
        Self {
            name: field.name.to_bytes(),
            type_name: field.type_name.to_bytes(),
            size: field.size.into(),
            signed: field.signed,
            class: field.class,
        }
    }
}

/// A synthetic event: its name and its fields, at least one.
///
/// Never changes; its texts stay where they are as long as it lives, wherever it is moved.
///
/// # Invariants
///
/// - `text` is the name and then type and name of every field, each ended by its only NUL.
/// - The words of the fields follow each other without gap from 0 to `words`.
#[derive(Debug)]
pub struct Schema {
    text: Vec<u8>,
    fields: Vec<Place>,
    words: u16,
    dynamic: bool,
    /// All fields are numbers.
    numbers: bool,
    /// A field is a stack.
    stacks: bool,
}

impl Schema {
    /// The event called `name`, without fields yet.
    fn new(name: &[u8]) -> Result<Self, AllocError> {
        // INVARIANT: no fields, no words; `name` is a good one, so without NUL.
        let mut schema = Self {
            text: Vec::new(),
            fields: Vec::new(),
            words: 0,
            dynamic: false,
            numbers: true,
            stacks: false,
        };

        schema.append(&[name])?;
        Ok(schema)
    }

    /// Appends one NUL-ended text; returns where it starts.
    fn append(&mut self, pieces: &[&[u8]]) -> Result<usize, AllocError> {
        let start = self.text.len();

        for piece in pieces {
            self.text.extend_from_slice(piece)?;
        }
        self.text.push(0)?;
        Ok(start)
    }

    /// Appends a field, whose type is the pieces of `typed` together.
    fn add(&mut self, typed: &[&[u8]], kind: kind::Kind, name: &[u8]) -> Result<(), AllocError> {
        let dynamic = matches!(kind.class, SynthClass::DynString | SynthClass::Stack);
        let type_name = self.append(if dynamic { &[kind::DATA_LOC] } else { &[] })?;

        // The NUL of the prefix gives way to the rest of the type.
        self.text.truncate(self.text.len().saturating_sub(1));
        self.append(typed)?;
        let name = self.append(&[name])?;
        self.fields.push(Place {
            type_name,
            name,
            end: self.text.len(),
            class: kind.class,
            format: kind.format,
            size: kind.size,
            signed: kind.signed,
            at: self.words,
            unused: unused_bits(kind.size),
        })?;
        // INVARIANT: the field's words are the next ones. At most 64 fields of 32 words fit.
        self.words = self.words.saturating_add(words(kind.class));
        self.dynamic |= dynamic;
        self.numbers &= matches!(kind.class, SynthClass::Number);
        self.stacks |= matches!(kind.class, SynthClass::Stack);
        Ok(())
    }

    /// The name of the event.
    pub fn name(&self) -> &CStr {
        self.c_str(0, self.text.len())
    }

    /// How many fields it has.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether it has no field, which is never so once it is parsed.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The field of that number.
    pub fn field(&self, index: usize) -> Option<Field<'_>> {
        self.fields.get(index).map(|place| self.view(place))
    }

    /// All fields in order.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = Field<'_>> + Clone {
        self.fields.iter().map(|place| self.view(place))
    }

    /// The number of the first field called `name`.
    pub fn find(&self, name: &[u8]) -> Option<usize> {
        self.fields().position(|f| f.name.to_bytes() == name)
    }

    /// The 64-bit words of a record between its header and what has no fixed place (`n_u64`).
    pub fn words(&self) -> usize {
        usize::from(self.words)
    }

    /// Whether records differ in length.
    pub fn dynamic(&self) -> bool {
        self.dynamic
    }

    /// A field with its texts.
    fn view(&self, place: &Place) -> Field<'_> {
        Field {
            type_name: self.c_str(place.type_name, place.name),
            name: self.c_str(place.name, place.end),
            class: place.class,
            size: place.size,
            signed: place.signed,
            at: place.at,
            format: place.format,
        }
    }

    /// The text from `start` to the first NUL before `end`.
    fn c_str(&self, start: usize, end: usize) -> &CStr {
        self.text
            .get(start..end)
            .and_then(|text| CStr::from_bytes_until_nul(text).ok())
            .unwrap_or(c"")
    }
}

/// The 64-bit words that a field takes in the fixed part of a record.
const fn words(class: SynthClass) -> u16 {
    match class {
        // CAST: 32.
        SynthClass::StaticString => (STR_SLOT / 8) as u16,
        SynthClass::Number | SynthClass::DynString | SynthClass::Stack => 1,
    }
}

/// The bits that a number of `size` bytes, 1 to 8, leaves of a word; of other fields they say nothing.
fn unused_bits(size: u16) -> u8 {
    const BYTES: u16 = size_of::<u64>() as u16;

    match BYTES.checked_sub(size) {
        // CAST: below 64.
        Some(left) => (left * 8) as u8,
        None => 0,
    }
}

/// Where `part` first stands in `text`.
fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    (0..text.len()).find(|&at| text.get(at..).is_some_and(|rest| rest.starts_with(part)))
}
