// SPDX-License-Identifier: GPL-2.0

//! The types of synthetic fields.
//!
//! C counterpart: `synth_field_size()`, `synth_field_signed()`, `synth_field_fmt()` of
//! [`kernel/trace/trace_events_synth.c`](srctree/kernel/trace/trace_events_synth.c).
//!
//! Context: any.

use super::find;
use crate::{
    field::SynthClass,
    limits::STR_SLOT,
    text::lex, //
};

/// What comes before the type of a field of which the record has the place.
pub(super) const DATA_LOC: &[u8] = b"__data_loc ";
/// The mark of a string.
const STRING: &[u8] = b"char[";
/// The mark of a stack.
const STACK: &[u8] = b"long[";

/// How `printk()` is told to show a value.
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
    /// `%x`, and the names of the flags.
    Gfp,
    /// `%s`
    Text,
}

impl Format {
    /// The conversion.
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

/// All that a type says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) class: SynthClass,
    pub(super) size: u16,
    pub(super) signed: bool,
    pub(super) format: Format,
}

/// Why a text is no type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoKind {
    /// There is no such type.
    Unknown,
    /// It is a string of no length that there is.
    Length,
}

/// The numbers.
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

impl Kind {
    /// The type called `text`.
    pub(super) fn of(text: &[u8]) -> Result<Self, NoKind> {
        // The types that start with `u` are the unsigned ones, but that is not seen behind
        // `__data_loc `.
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
            match string_size(text).ok_or(NoKind::Length)? {
                0 => (SynthClass::DynString, 8),
                size => (SynthClass::StaticString, size),
            }
        } else if find(text, STACK).is_some() {
            (SynthClass::Stack, 8)
        } else {
            return Err(NoKind::Unknown);
        };

        Ok(Self {
            class,
            size,
            signed: signed || class != SynthClass::StaticString,
            format: Format::Text,
        })
    }
}

/// The number in the brackets of a string's type; 0 if there is none.
///
/// The first closing bracket has to be the end of the type.
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

/// Whether a field added through the kernel's API may have this type.
///
/// PARITY: `synth_event_check_arg_fn()` lets every array pass, which the definition then refuses.
pub fn is_type(text: &[u8]) -> bool {
    text.contains(&b'[') || Kind::of(text).is_ok()
}
