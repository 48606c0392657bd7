// SPDX-License-Identifier: GPL-2.0

//! The values of the parameters of a `trace()`, read while its record is written.
//!
//! C counterpart: `update_field_vars()` and what `trace_event_raw_event_synth()` takes from
//! `var_ref_vals`, of [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//! A field is read from the record at hand, and so is what a variable of the trigger has from there; a
//! number is that of this very hit. Other strings and stacks are copied from where they are kept, in a
//! bounded number of tries.
//!
//! Context: any, NMI included.

use crate::{
    field::Env,
    limits::{
        COMM_LEN,
        STR_SLOT, //
    },
    schema::{
        Unread,
        Values, //
    },
};

use super::{
    super::{
        Arg,
        ArgSource,
        Field,
        Kind,
        Op, //
    },
    entry::{
        end_string,
        Hit,
        TEXT_WORDS, //
    },
    index,
    string_at,
    OwnVals,
    Tables, //
};

/// The values of one action in one hit.
pub(super) struct ArgVals<'h, E, T> {
    pub(super) hit: &'h Hit<'h, E, T>,
    pub(super) own: &'h OwnVals,
    pub(super) args: &'h [Arg],
}

impl<E: Env, T: Tables> ArgVals<'_, E, T> {
    fn source(&self, at: usize) -> Option<&ArgSource> {
        self.args.get(at).map(Arg::source)
    }

    /// The field behind a string or stack that needs no look at an entry: a variable of the trigger holds
    /// what this very hit has stored, whoever has written it since.
    #[inline]
    fn at_hand(&self, at: usize) -> Option<&Field> {
        let field = match self.source(at)? {
            ArgSource::Field(field) => return Some(field),
            ArgSource::Own(n) => self.hit.program.vars().get(usize::from(*n))?.field(),
            ArgSource::Ref(_) => return None,
        };

        matches!(
            field.op(),
            Op::Comm
                | Op::StaticString { .. }
                | Op::DynString { .. }
                | Op::RelDynString { .. }
                | Op::StackField { .. }
        )
        .then_some(field)
    }

    /// Calls `found` with the bytes of a string, without NUL.
    #[inline]
    fn with_string<R>(&self, at: usize, found: impl FnOnce(Bytes<'_>) -> R) -> Result<R, Unread> {
        if let Some(field) = self.at_hand(at) {
            let mut comm = [0; COMM_LEN];
            let bytes = string_at(field, self.hit.record, self.hit.env, &mut comm);

            return Ok(found(Bytes::Record(in_bounds(field, bytes))));
        }

        let mut buf = [0; TEXT_WORDS];

        self.copy(at, Kind::String, &mut buf)?;
        Ok(found(Bytes::Words(&buf)))
    }

    /// Calls `found` with the frames of a stack.
    #[inline]
    fn with_stack<R>(&self, at: usize, found: impl FnOnce(&[u64]) -> R) -> Result<R, Unread> {
        let mut buf = [0; TEXT_WORDS];

        self.copy(at, Kind::Stack, &mut buf)?;
        let len = buf.iter().take_while(|&&frame| frame != 0).count();

        Ok(found(buf.get(..len).unwrap_or(&[])))
    }

    /// Copies a string or stack to `buf`.
    #[inline(never)]
    fn copy(&self, at: usize, kind: Kind, buf: &mut [u64]) -> Result<(), Unread> {
        let hit = self.hit;

        match (self.at_hand(at), self.source(at)) {
            (Some(field), _) => hit.text(field, buf),
            (None, Some(ArgSource::Own(n))) => hit.own_text(*n, buf),
            (None, Some(ArgSource::Ref(n))) => hit.foreign_text(*n, buf),
            (None, Some(ArgSource::Field(_)) | None) => None,
        }
        .ok_or(Unread::Torn)?;

        if kind == Kind::String {
            end_string(buf);
        }
        Ok(())
    }
}

impl<E: Env, T: Tables> Values for ArgVals<'_, E, T> {
    fn number(&self, field: usize) -> u64 {
        match self.source(field) {
            Some(ArgSource::Field(field)) => self.hit.number(field),
            Some(ArgSource::Own(n)) => self.own.get(*n),
            Some(ArgSource::Ref(n)) => self.hit.foreign_number(*n),
            None => 0,
        }
    }

    fn string_len(&self, field: usize) -> Result<usize, Unread> {
        self.with_string(field, |bytes| bytes.len())
    }

    fn string(&self, field: usize, to: &mut [u8]) -> Result<usize, Unread> {
        self.with_string(field, |bytes| bytes.copy(to))
    }

    fn stack_len(&self, field: usize) -> Result<usize, Unread> {
        self.with_stack(field, |frames| frames.len())
    }

    fn stack(&self, field: usize, to: &mut [u8]) -> Result<usize, Unread> {
        self.with_stack(field, |frames| {
            let places = to.chunks_exact_mut(size_of::<u64>());

            places
                .zip(frames)
                .map(|(place, frame)| place.copy_from_slice(&frame.to_ne_bytes()))
                .count()
        })
    }
}

/// The bytes of a string up to its first NUL, where they are.
enum Bytes<'b> {
    Record(&'b [u8]),
    /// As words, of which the last one ends in a NUL.
    Words(&'b [u64]),
}

impl Bytes<'_> {
    /// How many there are.
    #[inline]
    fn len(&self) -> usize {
        match self {
            Self::Record(bytes) => bytes.len(),
            Self::Words(words) => bytes_of(words).count(),
        }
    }

    /// Copies as many as fit; returns how many.
    #[inline]
    fn copy(&self, to: &mut [u8]) -> usize {
        match self {
            Self::Record(bytes) => put(to, bytes.iter().copied()),
            Self::Words(words) => put(to, bytes_of(words)),
        }
    }
}

/// The bytes of words up to their first NUL.
#[inline]
fn bytes_of(words: &[u64]) -> impl Iterator<Item = u8> + '_ {
    words
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .take_while(|&byte| byte != 0)
}

/// Writes as many bytes as fit; returns how many.
#[inline]
fn put(to: &mut [u8], bytes: impl Iterator<Item = u8>) -> usize {
    to.iter_mut()
        .zip(bytes)
        .map(|(to, from)| *to = from)
        .count()
}

/// As much of a string of the record as a variable of it would keep: up to its NUL, for which there
/// must be room in its field, and in a variable.
#[inline]
fn in_bounds<'r>(field: &Field, bytes: &'r [u8]) -> &'r [u8] {
    let room = match field.op() {
        Op::StaticString { len, .. } => index(len).min(STR_SLOT),
        _ => STR_SLOT,
    }
    .saturating_sub(1);
    let bytes = bytes.get(..room).unwrap_or(bytes);

    bytes.split(|&byte| byte == 0).next().unwrap_or(&[])
}
