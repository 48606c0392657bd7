// SPDX-License-Identifier: GPL-2.0

//! The compiler's interface to an event and to the other triggers of its instance.
//!
//! C counterpart: `trace_find_event_field()` of [`kernel/trace/trace_events.c`](srctree/kernel/trace/trace_events.c),
//! `find_event_var()` and `create_field_var_hist()` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//! The glue implements [`Resolver`] with the kernel's structures, the host tests with tables.
//!
//! Context: process, may sleep.

use crate::{
    alloc::AllocError,
    error::ErrKind,
    field::{
        FieldDesc,
        SynthField,
        TaskNumber, //
    }, //
};

use super::{
    Program,
    Var, //
};

/// A variable of another trigger, as [`Program::export`] returns it.
#[derive(Clone, Copy, Debug)]
pub struct ForeignVar<'p> {
    /// The resolver's number for the table that holds it.
    pub table: u16,
    /// The variable, in that trigger's program.
    pub var: &'p Var,
    /// The program of the trigger that defines the variable; its keys find the variable's entry.
    pub definer: &'p Program,
    /// The text of the trigger that defines the variable.
    pub text: &'p [u8],
}

/// The error of the lookup of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupError {
    /// Triggers of two events define a variable with this name.
    NotUnique,
    /// There is no memory to assign the table a number.
    Failed(AllocError),
}

impl From<AllocError> for LookupError {
    fn from(e: AllocError) -> Self {
        Self::Failed(e)
    }
}

/// The result of [`Resolver::matched_field`].
#[derive(Clone, Copy, Debug)]
pub enum MatchedField<'p> {
    /// The variable of the helper trigger that holds the field.
    Var(ForeignVar<'p>),
    /// The event does not exist.
    NoEvent,
    /// The event has no trigger with compatible keys.
    NoHist,
    /// The helper trigger was refused; this is the first message of the refusal, if there is one.
    NotCreated(Option<ErrKind>),
    /// The helper trigger does not define the variable.
    NoVar,
}

/// Looks up the fields of the event that a trigger is compiled for, and the variables that it can read.
///
/// Only [`Resolver::field`] must be implemented: the defaults of the other methods fit an instance without other
/// triggers and without synthetic events.
///
/// # Examples
///
/// ```
/// use rust_hist::{
///     field::{FieldDesc, FieldKind},
///     program::Resolver,
/// };
///
/// struct SchedSwitch;
///
/// impl Resolver for SchedSwitch {
///     fn field(&self, name: &[u8]) -> Option<FieldDesc<'_>> {
///         (name == b"next_pid").then_some(FieldDesc {
///             type_name: b"pid_t",
///             offset: 56,
///             size: 4,
///             signed: true,
///             kind: FieldKind::Other,
///         })
///     }
/// }
/// ```
pub trait Resolver {
    /// Returns the field `name`: the event's own first, then the generic ones, then the common ones. `name` has no NUL.
    fn field(&self, name: &[u8]) -> Option<FieldDesc<'_>>;

    /// Calls `visit` with the name of each field of the event, in any order; a refusal suggests the nearest name.
    fn fields<'a>(&'a self, _visit: &mut dyn FnMut(&'a [u8])) {}

    /// Returns whether a hit can compute this number of the task.
    fn has(&self, _number: TaskNumber) -> bool {
        true
    }

    /// Returns whether `system.event` is the event that the trigger is compiled for.
    fn is_own(&self, _system: &[u8], _event: &[u8]) -> bool {
        false
    }

    /// Returns whether the instance has this event.
    fn event_exists(&self, _system: &[u8], _event: &[u8]) -> bool {
        false
    }

    /// Returns whether a trigger of the same event defines a variable `name`.
    fn defines(&self, _name: &[u8]) -> bool {
        false
    }

    /// Returns the variable `name` of a trigger on `system.event` in the same instance. A table always gets the same
    /// number from the resolver.
    ///
    /// # Errors
    ///
    /// [`LookupError::Failed`] if there is no memory.
    fn var_of(
        &mut self,
        _system: &[u8],
        _event: &[u8],
        _name: &[u8],
    ) -> Result<Option<ForeignVar<'_>>, LookupError> {
        Ok(None)
    }

    /// Returns the variable `name` of any trigger in the same instance.
    ///
    /// # Errors
    ///
    /// [`LookupError::NotUnique`] if triggers of several events define it, [`LookupError::Failed`] if
    /// there is no memory.
    fn var(&mut self, _name: &[u8]) -> Result<Option<ForeignVar<'_>>, LookupError> {
        Ok(None)
    }

    /// Returns the number of the synthetic event `name`, always the same one; `None` if there is no such event.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if there is no memory.
    fn synth(&mut self, _name: &[u8]) -> Result<Option<u16>, AllocError> {
        Ok(None)
    }

    /// Returns field `index` of the synthetic event with this number; `None` after the last one.
    fn synth_field(&self, _synth: u16, _index: usize) -> Option<SynthField<'_>> {
        None
    }

    /// Returns the variable of a helper trigger on `system.event` for its field `name`, which may have a modifier.
    /// Without a helper the resolver prepares one, with the keys of a trigger on that event whose keys are
    /// [compatible](Program::has_keys_of) with the keys of `user`.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if there is no memory.
    fn matched_field(
        &mut self,
        _user: &Program,
        _system: &[u8],
        _event: &[u8],
        _name: &[u8],
    ) -> Result<MatchedField<'_>, AllocError> {
        Ok(MatchedField::NoEvent)
    }
}
