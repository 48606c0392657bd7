// SPDX-License-Identifier: GPL-2.0

//! The steps of a hit: how a program computes keys and values of a record and stores them in its entry.
//!
//! C counterpart: `event_hist_trigger()`, `add_to_key()` and the `hist_field_*()` functions of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//! A record may be shorter than the format of its event says, and its location words may say anything. A number reads
//! as zero unless all of it is inside the record, and so does each word of a key of a few words. Of any other string only
//! the part inside is read.
//!
//! `program/hit.rs` puts the steps together: `program/exec/key.rs` computes the key, `program/exec/refs.rs` reads
//! variables of other triggers, `program/exec/entry.rs` sets variables and runs actions, `program/exec/text.rs` copies
//! strings and stacks, and `program/exec/trace.rs` has the values of synthetic events.
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

/// One hit of one trigger: its record, its surroundings (CPU, time, task) and its effects outside the map. A few words,
/// so it is passed by value.
///
/// The module implements it over the kernel, the tests over tables. NMI may call each method: no lock, sleep or
/// allocation.
pub trait Context<'c>: Env + 'c {
    /// The memory of the maps.
    type Storage: Deref<Target = [Pair]> + 'c;
    /// The hash of the keys of these maps.
    type Hash: KeyHash + 'c;
    /// Result of [`Context::new_entry`]: as small as possible, so that the state of a hit can stay in registers.
    type NewEntry: Inserter;
    /// Names the newest map of a table; see [`Context::source`].
    type Source: Copy;

    /// The program of the trigger.
    fn program(&self) -> &'c Program;

    /// The bytes of the record.
    fn record(&self) -> &'c [u8];

    /// The newest map of the trigger's own rows. While the table grows, tracked values may still be in the
    /// [older](Context::replaced) map.
    fn own(&self) -> Self::Source;

    /// The map of the trigger.
    #[inline]
    fn map(&self) -> MapView<'c, Self::Storage, Self::Hash> {
        self.view(self.own())
    }

    /// The newest map with variables of another trigger, by the number that the resolver gave to its table. Variables
    /// may still be in [older](Context::replaced) maps.
    fn source(&self, table: u16) -> Option<Self::Source>;

    /// The map that a [`Context::Source`] names.
    fn view(&self, source: Self::Source) -> MapView<'c, Self::Storage, Self::Hash>;

    /// The older map that `source` replaces, as long as variables or tracked values may still be only there.
    fn replaced(&self, source: Self::Source) -> Option<Self::Source>;

    /// Whether this hit is nested in as many event-generating hits as are allowed.
    fn is_too_deep(&self) -> bool;

    /// Calls [`keep_plain`](super::keep_plain) for the few hits that need it. Best done by a function that gets all of
    /// `self` in registers: then other hits need no stack frame for it.
    fn keep_rest(self, map: &'c Map<Self::Storage, Self::Hash>, elt: Elt, from: usize) {
        super::keep_plain(self, map, elt, from);
    }

    /// Runs the [back](super::paths::Back) of the trigger.
    fn leave(self, map: &'c Map<Self::Storage, Self::Hash>, elt: Elt, refs: &[u64]);

    /// What an insertion of the key leaves to the trigger.
    fn new_entry(&self) -> Self::NewEntry;

    /// Wakes the tasks that wait for hits.
    fn wake(&self);

    /// Whether the `limit()` of the trigger allows an action now; if so, the action counts against the limit.
    fn is_within(&self, limit: &Limit) -> bool;

    /// Takes the snapshot of a `snapshot()` action because the condition held for `value`, in the entry with `key` and
    /// the extra words `aux`.
    fn snapshot(&self, when: When, value: u64, key: &[u64], aux: &[Atomic<u64>]);

    /// Whether the synthetic event `synth` (the resolver's number) is enabled for anything.
    fn is_wanted(&self, synth: u16) -> bool;

    /// Generates the synthetic event `synth` (the resolver's number) for a `trace()` action. Returns how many of its
    /// records could not be written.
    fn trace(&self, synth: u16, values: &impl schema::FieldValues) -> u32;
}

/// A hit whose entry has been found or made.
pub(super) struct EntryHit<'h, 'c, C: Context<'c>> {
    pub(super) cx: C,
    /// The map that has the entry; the trigger may have got a larger one since.
    pub(super) map: &'c Map<C::Storage, C::Hash>,
    /// The entry of the hit in `map`.
    pub(super) elt: Elt,
    pub(super) stamp: u64,
    /// The numbers that were read from other triggers' variables.
    pub(super) refs: &'h [u64],
    /// The extra words of the entry.
    pub(super) aux: &'h [Pair],
}

// Not derived: a derived `Clone` or `Copy` would require copyable maps.
impl<'c, C: Context<'c>> Clone for EntryHit<'_, 'c, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<'c, C: Context<'c>> Copy for EntryHit<'_, 'c, C> {}

impl<'h, 'c: 'h, C: Context<'c>> EntryHit<'h, 'c, C> {
    /// The extra words of the entry, as single words.
    #[inline]
    fn words(&self) -> &'h [Atomic<u64>] {
        Pair::words(self.aux)
    }

    /// The operands from which numbers of this hit are computed.
    #[inline]
    pub(super) fn inputs(&self) -> Inputs<'h, C> {
        Inputs::new(self.cx, self.stamp, self.refs)
    }
}

/// Returns the place and length of a string field of the record, either of which may be beyond the record's end; `None`
/// if `op` is no string field.
#[inline]
pub(super) fn place_of(op: Op, record: &[u8]) -> Option<(usize, usize)> {
    Some(match op {
        Op::StaticString { offset, len } => (index(offset), index(len)),
        Op::DynString { offset } => located(record, index(offset)),
        Op::RelDynString { offset } => located_behind(record, index(offset)),
        _ => return None,
    })
}

/// Converts 32 bits to an index.
#[inline]
fn index(bits: u32) -> usize {
    // CAST: tracing needs 32-bit pointers at least.
    bits as usize
}

/// Returns the frames of a stack field whose location word is at `offset` of a record: at most `room` frames, and only
/// those inside the record.
///
/// PARITY: `event_hist_trigger()` trusts the frame count in the record.
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
