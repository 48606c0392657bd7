// SPDX-License-Identifier: GPL-2.0

//! What the compiler asks of an event and of the other triggers of its instance.
//!
//! C counterpart: `trace_find_event_field()` of [`kernel/trace/trace_events.c`](srctree/kernel/trace/trace_events.c),
//! `find_event_var()` and `create_field_var_hist()` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//! The glue implements [`Resolver`] over the kernel, tests over tables.
//!
//! Context: process.

use crate::{
    alloc::AllocError,
    error::ErrKind,
    field::{
        FieldDesc,
        SynthField, //
    }, //
};

use super::{
    Cell,
    Program, //
};

/// A variable of another trigger, as [`Program::export`] gives it.
#[derive(Clone, Copy, Debug)]
pub struct ForeignVar<'p> {
    /// The resolver's number for the table that holds it.
    pub table: u16,
    /// Its place in an entry of that table.
    pub cell: Cell,
    /// The type's text.
    pub type_name: &'p [u8],
    /// Its bytes as C has them.
    pub size: u32,
    /// Whether it is a signed number.
    pub signed: bool,
    /// Whether it counts microseconds.
    pub usecs: bool,
    /// Its value, if that never changes.
    pub constant: Option<u64>,
}

/// Why a variable cannot be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Two events have one of that name.
    NotUnique,
    /// No memory to note it.
    Failed(AllocError),
}

impl From<AllocError> for Lookup {
    fn from(e: AllocError) -> Self {
        Self::Failed(e)
    }
}

/// What comes of asking for a field of another event, see [`Resolver::matched_field`].
#[derive(Clone, Copy, Debug)]
pub enum MatchedField<'p> {
    /// The variable that holds it.
    Var(ForeignVar<'p>),
    /// There is no such event.
    NoEvent,
    /// The event has no trigger with such keys.
    NoHist,
    /// The helper trigger was refused, with this entry first.
    NotCreated(Option<ErrKind>),
    /// The helper trigger has no such variable.
    NoVar,
}

/// Knows one event: its fields, and the variables that a trigger on it can see.
pub trait Resolver {
    /// The field called `name`: the event's own first, then the generic ones, then the common ones.
    ///
    /// `name` is any bytes without NUL.
    fn field(&self, name: &[u8]) -> Option<FieldDesc<'_>>;

    /// Whether this is the event itself.
    fn is_own(&self, system: &[u8], event: &[u8]) -> bool;

    /// Whether the instance has this event.
    fn event_exists(&self, system: &[u8], event: &[u8]) -> bool;

    /// Whether a trigger of the event itself defines a variable `name`.
    fn defines(&self, name: &[u8]) -> bool;

    /// The variable `name` of a trigger on `system.event` in the same instance.
    ///
    /// A resolver that finds one gives its table a number, the same one each time.
    fn var_of(
        &mut self,
        system: &[u8],
        event: &[u8],
        name: &[u8],
    ) -> Result<Option<ForeignVar<'_>>, Lookup>;

    /// The variable `name` of any trigger in the same instance, provided that one event alone has
    /// it.
    fn var(&mut self, name: &[u8]) -> Result<Option<ForeignVar<'_>>, Lookup>;

    /// The number that stands for the synthetic event `name`, the same one each time; `None` if there
    /// is no such event.
    fn synth(&mut self, name: &[u8]) -> Result<Option<u16>, AllocError>;

    /// Field `index` of the synthetic event of this number; `None` beyond the last one.
    fn synth_field(&self, synth: u16, index: usize) -> Option<SynthField<'_>>;

    /// The field `name` of `system.event`, as a variable of a helper trigger there, which is prepared
    /// if it is not there.
    ///
    /// `user` is who wants it: the helper takes its keys from a trigger of the other event that
    /// [has such keys](Program::has_keys_of). `name` may have a modifier.
    fn matched_field(
        &mut self,
        user: &Program,
        system: &[u8],
        event: &[u8],
        name: &[u8],
    ) -> Result<MatchedField<'_>, AllocError>;
}
