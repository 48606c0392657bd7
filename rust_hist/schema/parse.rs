// SPDX-License-Identifier: GPL-2.0

//! The parser of the lines that are written to `synthetic_events` and `dynamic_events`.
//!
//! C counterpart: `create_or_delete_synth_event()`, `create_synth_event()`, `__create_synth_event()` and
//! `parse_synth_field()` of [`kernel/trace/trace_events_synth.c`](srctree/kernel/trace/trace_events_synth.c). The same
//! lines are accepted as in C, and all others refused with the same error and caret.
//!
//! Context: process, may sleep.

use super::{
    error::whole,
    field_type::{
        FieldType,
        TypeError, //
    },
    refusal,
    Schema,
    SynthErr,
    SynthRefusal,
    FIELDS_MAX, //
};
use crate::{
    alloc::Vec,
    error::Errno,
    text::lex::{
        self,
        split_before, //
    }, //
};

/// The command in one line.
#[derive(Debug)]
pub enum SynthCommand<'t> {
    /// Create this event.
    Create(Schema),
    /// Delete the event with this name.
    Delete(&'t [u8]),
    /// Do nothing: the line is empty.
    Nothing,
}

/// Returns the part of `text` that `error_log` shows, and in which the columns of carets count: `text` without leading
/// white space.
pub fn logged(text: &[u8]) -> &[u8] {
    split_before(text, |b| !lex::is_space(b)).1
}

/// Parses one line of `synthetic_events`. `exists` returns whether an event with a name exists.
///
/// # Errors
///
/// A [`SynthRefusal`] with the errno for the writer and the message for `error_log`.
///
/// # Examples
///
/// ```
/// use rust_hist::schema::{parse, SynthCommand, SynthErr};
///
/// let Ok(SynthCommand::Create(schema)) = parse(b"wake u64 ns; pid_t pid", |_| false) else {
///     panic!("the definition is valid");
/// };
/// assert_eq!(schema.name(), c"wake");
/// assert_eq!(schema.find(b"pid"), Some(1));
///
/// let refusal = parse(b"wake u63 ns", |_| false).expect_err("no such type");
/// assert_eq!(refusal.entry().map(|entry| (entry.kind, entry.at)), Some((SynthErr::InvalidType, 5)));
/// ```
pub fn parse<'t>(
    text: &'t [u8],
    exists: impl FnOnce(&[u8]) -> bool,
) -> Result<SynthCommand<'t>, SynthRefusal> {
    let text = logged(text);

    if text.is_empty() {
        return Ok(SynthCommand::Nothing);
    }
    check(text)?;
    let (name, fields) = split_before(text, lex::is_blank);

    match name {
        [b'!', name @ ..] => Ok(SynthCommand::Delete(name)),
        _ if fields.is_empty() => Err(whole(SynthErr::InvalidCmd)),
        _ => create(text, name, fields, exists).map(SynthCommand::Create),
    }
}

/// Parses one line of `dynamic_events`; `None` if it is for another type of dynamic events, as it does not start with
/// `prefix` and a colon. The tracing core parses the lines that delete an event itself, and finds the event by its
/// name.
///
/// # Errors
///
/// See [`parse`].
pub fn parse_dynamic<'t>(
    text: &'t [u8],
    prefix: &[u8],
    system: &[u8],
    exists: impl FnOnce(&[u8]) -> bool,
) -> Result<Option<SynthCommand<'t>>, SynthRefusal> {
    let text = logged(text);

    if text.is_empty() {
        return Ok(Some(SynthCommand::Nothing));
    }
    let Some([b':', rest @ ..]) = text.strip_prefix(prefix) else {
        return Ok(None);
    };
    if !text.iter().copied().any(lex::is_blank) {
        return Err(whole(SynthErr::InvalidCmd));
    }
    // PARITY: like `create_synth_event()`, also finds a slash in the fields.
    let rest = match rest.strip_prefix(system) {
        _ if !rest.contains(&b'/') => rest,
        Some([b'/', rest @ ..]) => rest,
        _ => return Err(whole(SynthErr::InvalidDynCmd)),
    };
    check(rest)?;
    let (name, fields) = split_before(rest, lex::is_blank);

    create(text, name, fields, exists).map(|schema| Some(SynthCommand::Create(schema)))
}

/// Refuses a line that creates an event if it has less than three words before the first semicolon.
fn check(text: &[u8]) -> Result<(), SynthRefusal> {
    let first = text.split(|&b| b == b';').next().unwrap_or(&[]);

    if first.starts_with(b"!") || words(first).count() >= 3 {
        Ok(())
    } else {
        Err(whole(SynthErr::InvalidCmd))
    }
}

/// Creates the schema of the event `name` with the fields `fields`, which are parts of `text`.
fn create(
    text: &[u8],
    name: &[u8],
    fields: &[u8],
    exists: impl FnOnce(&[u8]) -> bool,
) -> Result<Schema, SynthRefusal> {
    if name.is_empty() {
        return Err(whole(SynthErr::InvalidCmd));
    }
    if !is_good_name(name) {
        return Err(refusal(Errno::Einval, SynthErr::BadName, text, name));
    }
    if exists(name) {
        return Err(refusal(Errno::Eexist, SynthErr::EventExists, text, name));
    }
    let mut schema = Schema::new(name)?;

    for part in fields.split(|&b| b == b';') {
        let mut words = words(part).peekable();

        while words.peek().is_some() {
            add_field(text, &mut words, &mut schema)?;
        }
    }
    if schema.is_empty() {
        return Err(whole(SynthErr::InvalidCmd));
    }
    Ok(schema)
}

/// Parses the next field of `words`, which has at least one word left, and adds it to `schema`.
fn add_field<'t>(
    text: &[u8],
    words: &mut impl Iterator<Item = &'t [u8]>,
    schema: &mut Schema,
) -> Result<(), SynthRefusal> {
    let refuse = |kind, what: &[u8]| Err(refusal(Errno::Einval, kind, text, what));
    let mut type_name = words.next().unwrap_or(&[]);
    let mut name = words.next();
    let mut prefix: &[u8] = &[];

    if type_name == b"unsigned" {
        let (Some(second), Some(third)) = (name, words.next()) else {
            return refuse(SynthErr::IncompleteType, type_name);
        };
        prefix = b"unsigned ";
        type_name = second;
        name = Some(third);
    }
    let Some(declared) = name else {
        return refuse(SynthErr::InvalidField, type_name);
    };
    let (name, array) = split_before(declared, |b| b == b'[');

    if !is_good_name(name) {
        return refuse(SynthErr::BadName, declared);
    }
    let typed = &[prefix, type_name, array];
    let mut all = Vec::new();

    for part in typed {
        all.extend_from_slice(part)?;
    }
    let parsed = match FieldType::of(&all) {
        Ok(parsed) => parsed,
        Err(TypeError::Length) if !array.is_empty() => {
            return refuse(SynthErr::InvalidArraySpec, declared);
        }
        Err(_) => return refuse(SynthErr::InvalidType, type_name),
    };
    if schema.len() == FIELDS_MAX {
        return Err(whole(SynthErr::TooManyFields));
    }
    Ok(schema.add(typed, parsed, name)?)
}

/// Splits `text` into words like `argv_split()`.
fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&b| lex::is_space(b)).filter(|w| !w.is_empty())
}

/// Returns whether `name` is a valid name of an event or a field.
fn is_good_name(name: &[u8]) -> bool {
    match name {
        [first, rest @ ..] => {
            is_letter(*first) && rest.iter().all(|&b| is_letter(b) || b.is_ascii_digit())
        }
        [] => false,
    }
}

/// Returns whether a name may start with `byte`. The kernel's `isalpha()` takes bytes for Latin-1.
fn is_letter(byte: u8) -> bool {
    match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'_' => true,
        0xd7 | 0xf7 => false,
        _ => byte >= 0xc0,
    }
}
