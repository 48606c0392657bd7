// SPDX-License-Identifier: GPL-2.0

//! The types of synthetic fields.
//!
//! C counterpart: `synth_field_size()`, `synth_field_signed()`, `synth_field_fmt()` of
//! [`kernel/trace/trace_events_synth.c`](srctree/kernel/trace/trace_events_synth.c).
//!
//! Context: any.

use crate::{
    field::SynthClass,
    limits::STR_SLOT,
    text::lex::{
        self,
        find, //
    }, //
};

/// The prefix of the type of a field without a fixed offset; its word in the record has an offset and a length.
pub(super) const DATA_LOC: &[u8] = b"__data_loc ";
/// The substring by which C recognises the type of a string.
const STRING: &[u8] = b"char[";
/// The substring by which C recognises the type of a stack.
const STACK: &[u8] = b"long[";

/// The `printk()` conversion of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// `%d`
    Int,
    /// `%u`
    Unsigned,
    /// `%ld`
    Long,
    /// `%lu`
    UnsignedLong,
    /// `%lld`
    LongLong,
    /// `%llu`
    UnsignedLongLong,
    /// `%x`, followed by the names of the flags.
    Gfp,
    /// `%s`
    Text,
}

impl Format {
    /// Returns the conversion as `print fmt` shows it.
    pub(super) const fn text(self) -> &'static [u8] {
        match self {
            Self::Int => b"%d",
            Self::Unsigned => b"%u",
            Self::Long => b"%ld",
            Self::UnsignedLong => b"%lu",
            Self::LongLong => b"%lld",
            Self::UnsignedLongLong => b"%llu",
            Self::Gfp => b"%x",
            Self::Text => b"%s",
        }
    }
}

/// The properties that a type gives a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FieldType {
    pub(super) class: SynthClass,
    pub(super) size: u16,
    pub(super) signed: bool,
    pub(super) format: Format,
}

/// The reason why a text is not a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TypeError {
    /// There is no such type.
    Unknown,
    /// It is a string with an invalid length.
    Length,
}

/// The types of numbers: name, size in bytes, conversion.
const NUMBERS: &[(&[u8], u16, Format)] = &[
    (b"s64", 8, Format::LongLong),
    (b"u64", 8, Format::UnsignedLongLong),
    (b"s32", 4, Format::Int),
    (b"u32", 4, Format::Unsigned),
    (b"s16", 2, Format::Int),
    (b"u16", 2, Format::Unsigned),
    (b"s8", 1, Format::Int),
    (b"u8", 1, Format::Unsigned),
    (b"char", 1, Format::Int),
    (b"unsigned char", 1, Format::Unsigned),
    (b"int", 4, Format::Int),
    (b"unsigned int", 4, Format::Unsigned),
    (b"long", 8, Format::Long),
    (b"unsigned long", 8, Format::UnsignedLong),
    (b"bool", 1, Format::Int),
    (b"pid_t", 4, Format::Int),
    (b"gfp_t", 4, Format::Gfp),
];

impl FieldType {
    /// Returns the type called `text`.
    pub(super) fn of(text: &[u8]) -> Result<Self, TypeError> {
        // The unsigned types start with `u`. C tests the type after it has added the prefix `__data_loc `, so values
        // without a fixed offset are always signed.
        let signed = !text.starts_with(b"u") && text != b"gfp_t";

        if let Some(&(_, size, format)) = NUMBERS.iter().find(|(name, ..)| *name == text) {
            return Ok(Self {
                class: SynthClass::Number,
                size,
                signed,
                format,
            });
        }
        let (class, size) = if find(text, STRING).is_some() {
            match string_size(text).ok_or(TypeError::Length)? {
                0 => (SynthClass::DynString, 8),
                size => (SynthClass::StaticString, size),
            }
        } else if find(text, STACK).is_some() {
            (SynthClass::Stack, 8)
        } else {
            return Err(TypeError::Unknown);
        };

        Ok(Self {
            class,
            size,
            signed: signed || class != SynthClass::StaticString,
            format: Format::Text,
        })
    }
}

/// Returns the number between the brackets of a string's type, 0 if the brackets are empty, or `None`
/// if the length is invalid or the first closing bracket does not end the type.
fn string_size(text: &[u8]) -> Option<u16> {
    let start = find(text, STRING)?;
    let end = lex::position(text, b']')?;
    let digits = text.get(start.checked_add(STRING.len())?..end)?;

    if end.checked_add(1)? != text.len() || digits.len() > 3 {
        return None;
    }
    if digits.is_empty() {
        return Some(0);
    }
    let size = u16::try_from(lex::number(digits).ok()?).ok()?;

    (usize::from(size) <= STR_SLOT).then_some(size)
}

/// Returns whether the kernel's API accepts this type for a new field.
///
/// PARITY: `synth_event_check_arg_fn()` accepts every array; an invalid one is refused when the definition is parsed.
pub fn is_type(text: &[u8]) -> bool {
    text.contains(&b'[') || FieldType::of(text).is_ok()
}
