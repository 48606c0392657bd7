// SPDX-License-Identifier: GPL-2.0

//! Synthetic events: their definition, their record, and the text that shows both.
//!
//! C counterpart: the parts of [`kernel/trace/trace_events_synth.c`](srctree/kernel/trace/trace_events_synth.c) that do
//! not talk to the tracing core. [`parse`] makes a [`Schema`] from the text of a definition; a schema never changes.
//! The glue in `synth` registers the event, and calls the schema to measure, write and show records.
//!
//! Context: creating and showing: process, may sleep. Writing a record: any, NMI included.

mod error;
mod field_type;
mod parse;
mod record;
mod show;
mod stable;

use core::ffi::CStr;

use self::field_type::{
    FieldType,
    Format, //
};
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
        refusal,
        SynthErr,
        SynthRefusal, //
    },
    field_type::is_type,
    parse::{
        logged,
        parse,
        parse_dynamic,
        SynthCommand, //
    },
    record::{
        FieldValues,
        Lost,
        Sizes,
        Unread,
        WithValues,
        DYN_STRING_MAX,
        FAULT, //
    },
    show::KernelFormat,
    stable::StableValues, //
};

/// Maximum number of fields of one event (`SYNTH_FIELDS_MAX`).
pub const FIELDS_MAX: usize = 64;
/// Bytes of the header of every record (`struct trace_entry`).
pub const HEADER: usize = 8;

/// A field as the schema stores it. A NUL ends each of its texts.
#[derive(Clone, Copy, Debug)]
struct StoredField {
    /// Index of the type in the schema's text.
    type_name: usize,
    /// Index of the name in the schema's text.
    name: usize,
    /// Index after the NUL of the name.
    end: usize,
    class: SynthClass,
    format: Format,
    size: u16,
    signed: bool,
    at: u16,
    /// The number of bits of a 64-bit word that a number of this size does not use.
    unused: u8,
}

/// One field of a synthetic event.
#[derive(Clone, Copy, Debug)]
pub struct SchemaField<'s> {
    /// The type as `format` shows it: with the prefix `__data_loc ` if the value has no fixed offset.
    pub type_name: &'s CStr,
    /// The name.
    pub name: &'s CStr,
    /// The class of the field's values.
    pub class: SynthClass,
    /// The size in bytes as `format` shows it: for a static string as defined, for a value without a fixed offset 8.
    pub size: u16,
    /// Whether `format` shows the field as signed.
    pub signed: bool,
    /// Index of the field's first 64-bit word after the header.
    pub at: u16,
    format: Format,
}

impl SchemaField<'_> {
    /// Returns the offset of the field in the record, in bytes.
    pub fn offset(&self) -> usize {
        // OVERFLOW: `at` has 16 bits, and `usize` at least 32.
        usize::from(self.at) * 8 + HEADER
    }

    /// Returns the type as it was defined and as `synthetic_events` shows it.
    pub fn typed(&self) -> &[u8] {
        let type_name = self.type_name.to_bytes();

        type_name
            .strip_prefix(field_type::DATA_LOC)
            .unwrap_or(type_name)
    }
}

impl<'s> From<SchemaField<'s>> for SynthField<'s> {
    fn from(field: SchemaField<'s>) -> Self {
        Self {
            name: field.name.to_bytes(),
            type_name: field.type_name.to_bytes(),
            size: field.size.into(),
            signed: field.signed,
            class: field.class,
        }
    }
}

/// The definition of a synthetic event: its name and its fields, at least one.
///
/// Never changes. The texts are in memory of their own, so their addresses stay valid when the schema is moved.
///
/// # Invariants
///
/// - `text` is the name and then type and name of every field, each followed by a NUL and without any other.
/// - The words of the fields follow each other without gap from 0 to `words`.
///
/// # Examples
///
/// A record is measured, written and shown:
///
/// ```
/// use core::fmt;
/// use rust_hist::{
///     schema::{self, FieldValues, KernelFormat, Sizes, SynthCommand, Unread},
///     text::Out,
/// };
///
/// struct Latency(u64);
///
/// impl FieldValues for Latency {
///     fn number(&self, _field: usize) -> u64 {
///         self.0
///     }
///     fn string_len(&self, _field: usize) -> Result<usize, Unread> {
///         Ok(4)
///     }
///     fn string(&self, _field: usize, to: &mut [u8]) -> Result<usize, Unread> {
///         to[..4].copy_from_slice(b"idle");
///         Ok(4)
///     }
///     fn stack_len(&self, _field: usize) -> Result<usize, Unread> {
///         Err(Unread::Fault)
///     }
///     fn stack(&self, _field: usize, _to: &mut [u8]) -> Result<usize, Unread> {
///         Err(Unread::Fault)
///     }
/// }
/// # mod out { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/out.rs")); }
/// # use out::Buffer;
/// # struct Host;
/// # impl KernelFormat for Host {
/// #     fn symbol_offset<W: Out>(&self, _: u64, _: &mut W) -> fmt::Result { Ok(()) }
/// #     fn gfp_flags<W: Out>(&self, _: u64, _: &mut W) -> fmt::Result { Ok(()) }
/// # }
///
/// let Ok(SynthCommand::Create(schema)) = schema::parse(b"wake u64 ns; char[] comm", |_| false) else {
///     panic!("the definition is valid");
/// };
/// let mut sizes = Sizes::default();
/// schema.measure(&Latency(1500), &mut sizes).expect("short enough");
/// let mut record = vec![0; sizes.record_len()];
/// schema.write(&Latency(1500), &sizes, &mut record).expect("long enough");
///
/// let mut line = Buffer::default();
/// schema.write_line(&record, false, &Host, &mut line)?;
/// assert_eq!(line.text(), "wake: ns=1500 comm=idle\n");
/// # Ok::<(), fmt::Error>(())
/// ```
#[derive(Debug)]
pub struct Schema {
    text: Vec<u8>,
    fields: Vec<StoredField>,
    words: u16,
    /// Whether the length of a record depends on its values.
    pub dynamic: bool,
    /// Whether all fields are numbers, so that each record has [`Schema::fixed_len`] bytes.
    pub numbers: bool,
    /// Whether a field is a stack.
    stacks: bool,
}

impl Schema {
    /// Returns the event `name` without fields; the caller must add at least one.
    fn new(name: &[u8]) -> Result<Self, AllocError> {
        // INVARIANT: there are no fields and no words; `name` was checked, so it has no NUL.
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

    /// Appends the concatenation of `parts` and a NUL to the text; returns the index of its start.
    fn append(&mut self, parts: &[&[u8]]) -> Result<usize, AllocError> {
        let start = self.text.len();

        for part in parts {
            self.text.extend_from_slice(part)?;
        }
        self.text.push(0)?;
        Ok(start)
    }

    /// Appends a field whose type is the concatenation of the texts `typed`.
    fn add(&mut self, typed: &[&[u8]], parsed: FieldType, name: &[u8]) -> Result<(), AllocError> {
        let dynamic = matches!(parsed.class, SynthClass::DynString | SynthClass::Stack);
        let type_name = self.append(if dynamic {
            &[field_type::DATA_LOC]
        } else {
            &[]
        })?;

        // The prefix of the type loses its NUL, so that the rest of the type follows it.
        self.text.truncate(self.text.len().saturating_sub(1));
        self.append(typed)?;
        let name = self.append(&[name])?;
        self.fields.push(StoredField {
            type_name,
            name,
            end: self.text.len(),
            class: parsed.class,
            format: parsed.format,
            size: parsed.size,
            signed: parsed.signed,
            at: self.words,
            unused: unused_bits(parsed.size),
        })?;
        // INVARIANT: the field's words start at the end of the previous field's; the sum does not
        // saturate, since at most 64 fields have at most 32 words each.
        self.words = self.words.saturating_add(words(parsed.class));
        self.dynamic |= dynamic;
        self.numbers &= matches!(parsed.class, SynthClass::Number);
        self.stacks |= matches!(parsed.class, SynthClass::Stack);
        Ok(())
    }

    /// Returns the name of the event.
    pub fn name(&self) -> &CStr {
        self.c_str(0, self.text.len())
    }

    /// Returns the number of fields.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Returns whether the event has no fields, which is false after its definition was parsed.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Returns field `index`.
    pub fn field(&self, index: usize) -> Option<SchemaField<'_>> {
        self.fields.get(index).map(|place| self.view(place))
    }

    /// Iterates over the fields in the order of the definition.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = SchemaField<'_>> + Clone {
        self.fields.iter().map(|place| self.view(place))
    }

    /// Returns the index of the first field called `name`.
    pub fn find(&self, name: &[u8]) -> Option<usize> {
        self.fields().position(|f| f.name.to_bytes() == name)
    }

    /// Returns the number of 64-bit words of a record between its header and the values without a fixed offset
    /// (`n_u64`).
    pub fn words(&self) -> usize {
        usize::from(self.words)
    }

    /// Returns a stored field with its texts.
    fn view(&self, field: &StoredField) -> SchemaField<'_> {
        SchemaField {
            type_name: self.c_str(field.type_name, field.name),
            name: self.c_str(field.name, field.end),
            class: field.class,
            size: field.size,
            signed: field.signed,
            at: field.at,
            format: field.format,
        }
    }

    /// Returns the text from `start` to the first NUL before `end`.
    fn c_str(&self, start: usize, end: usize) -> &CStr {
        self.text
            .get(start..end)
            .and_then(|text| CStr::from_bytes_until_nul(text).ok())
            .unwrap_or(c"")
    }
}

/// Returns the number of 64-bit words of a field in the fixed part of a record.
const fn words(class: SynthClass) -> u16 {
    match class {
        // CAST: `STR_SLOT / 8` is 32.
        SynthClass::StaticString => (STR_SLOT / 8) as u16,
        SynthClass::Number | SynthClass::DynString | SynthClass::Stack => 1,
    }
}

/// Returns the number of bits of a 64-bit word that a number of `size` bytes, 1 to 8, does not use. The result has no
/// meaning for a field that is no number.
fn unused_bits(size: u16) -> u8 {
    const BYTES: u16 = size_of::<u64>() as u16;

    match BYTES.checked_sub(size) {
        // CAST: less than 8 bytes are left, so the product is below 64.
        Some(left) => (left * 8) as u8,
        None => 0,
    }
}
