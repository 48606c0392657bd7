// SPDX-License-Identifier: GPL-2.0

//! Definitions: what is written to `synthetic_events` and `dynamic_events`.
//!
//! C counterpart: `create_or_delete_synth_event()`, `create_synth_event()`,
//! `__create_synth_event()` and `parse_synth_field()` of
//! [`kernel/trace/trace_events_synth.c`](srctree/kernel/trace/trace_events_synth.c).
//! What is accepted, which error comes first and where its caret stands is the same.
//!
//! Context: process, may sleep.

use super::{
    kind::{
        Kind,
        NoKind, //
    },
    Refusal,
    Schema,
    SynthErr,
    FIELDS_MAX, //
};
use crate::{
    error::Errno,
    text::lex, //
};

/// What one line asks for.
#[derive(Debug)]
pub enum Command<'t> {
    /// To create this event.
    Create(Schema),
    /// To delete the event of that name.
    Delete(&'t [u8]),
    /// Nothing: the line is empty.
    Nothing,
}

/// The part of `text` that `error_log` shows, and the columns of carets count in.
pub fn logged(text: &[u8]) -> &[u8] {
    skip_spaces(text)
}

/// Reads one line of `synthetic_events`; `exists` says whether the name of a new event is taken.
pub fn parse<'t>(
    text: &'t [u8],
    exists: impl FnOnce(&[u8]) -> bool,
) -> Result<Command<'t>, Refusal> {
    let text = logged(text);

    if text.is_empty() {
        return Ok(Command::Nothing);
    }
    check(text)?;
    let blank = text.iter().copied().position(lex::is_blank);
    let (name, fields) = match (blank, text) {
        (Some(at), _) => text.split_at_checked(at).unwrap_or((text, &[])),
        (None, [b'!', ..]) => (text, &[][..]),
        (None, _) => return Err(Refusal::whole(SynthErr::InvalidCmd)),
    };

    match name {
        [b'!', name @ ..] => Ok(Command::Delete(name)),
        _ => create(text, name, fields, exists).map(Command::Create),
    }
}

/// Reads one line of `dynamic_events`, which is ours if it starts with `prefix` and a colon.
///
/// `None`: it is of another kind. What is deleted there goes another way, see [`Schema::name`].
pub fn parse_dynamic<'t>(
    text: &'t [u8],
    prefix: &[u8],
    system: &[u8],
    exists: impl FnOnce(&[u8]) -> bool,
) -> Result<Option<Command<'t>>, Refusal> {
    let text = logged(text);

    if text.is_empty() {
        return Ok(Some(Command::Nothing));
    }
    let Some([b':', rest @ ..]) = text.strip_prefix(prefix) else {
        return Ok(None);
    };
    if !text.iter().copied().any(lex::is_blank) {
        return Err(Refusal::whole(SynthErr::InvalidCmd));
    }
    // PARITY: `create_synth_event()` finds a slash in the fields, too.
    let rest = match rest.strip_prefix(system) {
        _ if !rest.contains(&b'/') => rest,
        Some([b'/', rest @ ..]) => rest,
        _ => return Err(Refusal::whole(SynthErr::InvalidDynCmd)),
    };
    check(rest)?;
    let blank = rest.iter().copied().position(lex::is_blank);
    let (name, fields) = blank
        .and_then(|at| rest.split_at_checked(at))
        .unwrap_or((rest, &[]));

    create(text, name, fields, exists).map(|schema| Some(Command::Create(schema)))
}

/// What [`parse_dynamic`] and [`parse`] demand before they look closer: three words before the
/// first semicolon.
fn check(text: &[u8]) -> Result<(), Refusal> {
    let first = text.split(|&b| b == b';').next().unwrap_or(&[]);

    if first.starts_with(b"!") || words(first).count() >= 3 {
        Ok(())
    } else {
        Err(Refusal::whole(SynthErr::InvalidCmd))
    }
}

/// The event that `text` defines.
fn create(
    text: &[u8],
    name: &[u8],
    fields: &[u8],
    exists: impl FnOnce(&[u8]) -> bool,
) -> Result<Schema, Refusal> {
    if name.is_empty() {
        return Err(Refusal::whole(SynthErr::InvalidCmd));
    }
    if !is_good_name(name) {
        return Err(Refusal::new(Errno::Einval, SynthErr::BadName, text, name));
    }
    if exists(name) {
        return Err(Refusal::new(
            Errno::Eexist,
            SynthErr::EventExists,
            text,
            name,
        ));
    }
    let mut schema = Schema::new(name)?;

    for part in fields.split(|&b| b == b';') {
        let mut words = words(part).peekable();

        while words.peek().is_some() {
            add_field(text, &mut words, &mut schema)?;
        }
    }
    if schema.is_empty() {
        return Err(Refusal::whole(SynthErr::InvalidCmd));
    }
    Ok(schema)
}

/// Takes one field from `words`, of which there is one at least.
fn add_field<'t>(
    text: &[u8],
    words: &mut impl Iterator<Item = &'t [u8]>,
    schema: &mut Schema,
) -> Result<(), Refusal> {
    let refuse = |kind, what: &[u8]| Err(Refusal::new(Errno::Einval, kind, text, what));
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
    let bracket = lex::position(declared, b'[');
    let (name, array) = bracket
        .and_then(|at| declared.split_at_checked(at))
        .unwrap_or((declared, &[]));

    if !is_good_name(name) {
        return refuse(SynthErr::BadName, declared);
    }
    let typed = &[prefix, type_name, array];
    let kind = match kind_of(typed)? {
        Ok(kind) => kind,
        Err(NoKind::Length) if bracket.is_some() => {
            return refuse(SynthErr::InvalidArraySpec, declared);
        }
        Err(_) => return refuse(SynthErr::InvalidType, type_name),
    };
    if schema.len() == FIELDS_MAX {
        return Err(Refusal::whole(SynthErr::TooManyFields));
    }
    Ok(schema.add(typed, kind, name)?)
}

/// What the type says that these pieces make together.
fn kind_of(pieces: &[&[u8]]) -> Result<Result<Kind, NoKind>, Refusal> {
    let mut whole = crate::alloc::Vec::new();

    for piece in pieces {
        whole.extend_from_slice(piece)?;
    }
    Ok(Kind::of(&whole))
}

/// The words of `text`, as `argv_split()` finds them.
fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&b| lex::is_space(b)).filter(|w| !w.is_empty())
}

/// `text` without the white space before it.
fn skip_spaces(text: &[u8]) -> &[u8] {
    let first = text.iter().position(|&b| !lex::is_space(b));

    first.and_then(|at| text.get(at..)).unwrap_or(&[])
}

/// Whether events and fields may be called so.
fn is_good_name(name: &[u8]) -> bool {
    match name {
        [first, rest @ ..] => {
            is_letter(*first) && rest.iter().all(|&b| is_letter(b) || b.is_ascii_digit())
        }
        [] => false,
    }
}

/// Whether a name may start with `byte`. To `isalpha()` of the kernel characters are Latin-1.
fn is_letter(byte: u8) -> bool {
    match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'_' => true,
        0xd7 | 0xf7 => false,
        _ => byte >= 0xc0,
    }
}
