// SPDX-License-Identifier: GPL-2.0

//! The steps of a hit: what a program computes of one record and leaves in its entry.
//!
//! C counterpart: `event_hist_trigger()`, `add_to_key()` and the `hist_field_*()` functions of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//! A record may be shorter than its event's format says, and its location words may say anything:
//! what lies outside reads as zero, or as the part of a string that is inside.
//!
//! `program/hit.rs` puts the steps together. `program/exec/key.rs` computes the key, `program/exec/refs.rs` reads the
//! variables of other triggers, `program/exec/entry.rs` does what comes when the entry is known: variables and
//! actions; `program/exec/text.rs` has strings and stacks, and `program/exec/trace.rs` the values of synthetic events.
//!
//! Context: any, NMI included. Never allocates, sleeps, locks or panics.

mod entry;
mod key;
mod refs;
mod text;
mod trace;

pub use self::{
    entry::{
        track_row,
        Kept, //
    },
    key::{
        Columns,
        Copied,
        KeyForm,
        MoreWords,
        Stack,
        StackField,
        Words, //
    },
    refs::Unset, //
};

pub(super) use self::{
    refs::{
        RefBuf,
        RefKey, //
    },
    text::{
        most_in,
        until_nul, //
    }, //
};

use crate::{
    field::Env,
    rate::Limit,
    schema,
    sync::{
        Atomic,
        Pair, //
    },
    tracing_map::{
        Elt,
        Inserter,
        KeyHash,
        Map,
        MapView,
        When, //
    }, //
};

use core::ops::Deref;

use self::text::WORD;

use super::{
    bytes::{
        located,
        located_behind,
        u64_at, //
    },
    eval::Inputs,
    Op,
    Program, //
};

/// One hit of one trigger: the record, what surrounds it, and what it has an effect on. As cheap to copy as a few
/// words, which is how it is passed on.
///
/// The module implements it over the kernel, the tests over tables. Every method may be called from NMI: no lock, no
/// sleep, no allocation.
pub trait Context<'c>: Env + 'c {
    /// The memory of the maps.
    type Storage: Deref<Target = [Pair]> + 'c;
    /// The hash of their keys.
    type Hash: KeyHash + 'c;
    /// See [`Context::new_entry`]: as small as it can be, or what a hit has is kept in memory for it.
    type NewEntry: Inserter;
    /// See [`Context::source`].
    type Source: Copy;

    /// The program of the trigger.
    fn program(&self) -> &'c Program;

    /// The bytes of the record.
    fn record(&self) -> &'c [u8];

    /// Where the trigger's own rows are at this moment: in this map, and while it grows what is tracked in them may be in
    /// the one [before](Context::replaced) it.
    fn own(&self) -> Self::Source;

    /// The map of the trigger.
    #[inline(always)]
    fn map(&self) -> MapView<'c, Self::Storage, Self::Hash> {
        self.view(self.own())
    }

    /// Where variables of another trigger are, by the number that the resolver gave to its table: in this map, or in
    /// those [before](Context::replaced) it.
    fn source(&self, table: u16) -> Option<Self::Source>;

    /// The map itself.
    fn view(&self, source: Self::Source) -> MapView<'c, Self::Storage, Self::Hash>;

    /// The one whose place it takes, as long as that may have variables or tracked values that are not here.
    fn replaced(&self, source: Self::Source) -> Option<Self::Source>;

    /// Whether the hit is nested in as many others that generate events as there may be.
    fn is_too_deep(&self) -> bool;

    /// Calls [`keep_plain`](super::keep_plain) for the few hits that need it, best by a function that has all of `self` in
    /// registers: then other hits need no stack frame for it.
    fn keep_rest(self, map: &'c Map<Self::Storage, Self::Hash>, elt: Elt, from: usize) {
        super::keep_plain(self, map, elt, from);
    }

    /// Runs the [back](super::paths::Back) of the trigger.
    fn leave(self, map: &'c Map<Self::Storage, Self::Hash>, elt: Elt, refs: &[u64]);

    /// What an insertion of the key leaves to the trigger.
    fn new_entry(&self) -> Self::NewEntry;

    /// Wakes those who wait for hits.
    fn wake(&self);

    /// Whether the `limit()` of the trigger leaves room for an action now, and takes that.
    fn is_within(&self, limit: &Limit) -> bool;

    /// The time of a `snapshot()` has come: `value`, for which the condition held, is the reason, in the entry of `key`
    /// with these extra words.
    fn snapshot(&self, when: When, value: u64, key: &[u64], aux: &[Atomic<u64>]);

    /// Whether anybody wants the event that the resolver called `synth`.
    fn is_wanted(&self, synth: u16) -> bool;

    /// The time of a `trace()` has come: generates the event that the resolver called `synth`. Returns how many of its
    /// records could not be written.
    fn trace(&self, synth: u16, values: &impl schema::FieldValues) -> u32;
}

/// A hit whose entry is known.
pub(super) struct Hit<'h, 'c, C: Context<'c>> {
    pub(super) cx: C,
    /// The map that has the entry; the trigger may have another one meanwhile.
    pub(super) map: &'c Map<C::Storage, C::Hash>,
    /// The entry.
    pub(super) elt: Elt,
    pub(super) stamp: u64,
    /// The numbers of other triggers' variables.
    pub(super) refs: &'h [u64],
    /// The extra words of the entry.
    pub(super) aux: &'h [Pair],
}

// Derived ones would want maps that can be copied.
impl<'c, C: Context<'c>> Clone for Hit<'_, 'c, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<'c, C: Context<'c>> Copy for Hit<'_, 'c, C> {}

impl<'h, 'c: 'h, C: Context<'c>> Hit<'h, 'c, C> {
    /// The extra words of the entry, one by one.
    #[inline(always)]
    fn words(&self) -> &'h [Atomic<u64>] {
        Pair::words(self.aux)
    }

    /// What its numbers are computed of.
    #[inline(always)]
    pub(super) fn inputs(&self) -> Inputs<'h, C> {
        Inputs {
            record: self.cx.record(),
            env: self.cx,
            stamp: self.stamp,
            refs: self.refs,
        }
    }
}

/// The place and the length of a string of the record, of which either may be beyond its end; `None` if it is no such
/// string.
#[inline(always)]
pub(super) fn place_of(op: Op, record: &[u8]) -> Option<(usize, usize)> {
    Some(match op {
        Op::StaticString { offset, len } => (index(offset), index(len)),
        Op::DynString { offset } => located(record, index(offset)),
        Op::RelDynString { offset } => located_behind(record, index(offset)),
        _ => return None,
    })
}

/// `bits` as an index.
#[inline(always)]
fn index(bits: u32) -> usize {
    // CAST: tracing needs 32-bit pointers at least.
    bits as usize
}

/// The frames of the stack whose place the word at `offset` of a record gives, as many as there is `room` for and as
/// are inside.
///
/// PARITY: `event_hist_trigger()` takes the count of the record for granted.
#[inline(always)]
fn stack_at(record: &[u8], offset: u32, room: usize) -> &[u8] {
    let at = located(record, index(offset)).0;
    let count = u64_at(record, at);
    let frames = record
        .get(at..)
        .and_then(|from| from.get(WORD..))
        .unwrap_or(&[]);
    let count = usize::try_from(count)
        .unwrap_or(usize::MAX)
        .min(room)
        .min(frames.len() / WORD);

    frames.get(..count.saturating_mul(WORD)).unwrap_or(&[])
}
