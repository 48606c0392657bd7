// SPDX-License-Identifier: GPL-2.0

//! What the language knows of an event: its fields, and what surrounds a hit.
//!
//! C counterpart: `struct ftrace_event_field` and the `FILTER_*` kinds of
//! [`include/linux/trace_events.h`](srctree/include/linux/trace_events.h).
//! [`Resolver`] is asked while a trigger is created, [`Env`] at every hit. The glue implements both
//! over the kernel, tests over tables.
//!
//! Context: [`Resolver`] process context, [`Env`] any.

use crate::{
    alloc::AllocError,
    error::ErrKind,
    limits::COMM_LEN,
    program::{
        Cell,
        Program, //
    }, //
};

/// How the bytes of a field are to be read: `filter_type` of the event field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// A number, a struct, an array, a pointer: what `FILTER_OTHER` and `FILTER_CPUMASK` say.
    Other,
    /// `char x[N]` inside the record (`FILTER_STATIC_STRING`).
    StaticString,
    /// `__data_loc char[]` (`FILTER_DYN_STRING`).
    DynString,
    /// `__rel_loc char[]` (`FILTER_RDYN_STRING`).
    RelDynString,
    /// `char *`, which nobody may follow (`FILTER_PTR_STRING`).
    PtrString,
    /// A function's address in the function tracer's own events (`FILTER_TRACE_FN`).
    Function,
    /// The CPU, on the generic field `cpu` or `CPU` (`FILTER_CPU`).
    Cpu,
    /// The task's name, on the generic field `comm` or `COMM` (`FILTER_COMM`).
    Comm,
    /// A stack: with a size a `long[]` of a synthetic event, without one the generic field
    /// `stacktrace` or `STACKTRACE` (`FILTER_STACKTRACE`).
    Stack,
}

/// One field of an event, as `trace_find_event_field()` finds it.
///
/// The texts belong to the event; nothing of them is kept after the trigger is compiled.
#[derive(Clone, Copy, Debug)]
pub struct FieldDesc<'e> {
    /// The type as the event's `format` file shows it.
    pub type_name: &'e [u8],
    /// Where the field starts in the record.
    pub offset: u32,
    /// Its bytes there; 0 for the generic fields (`cpu`, `comm`, `stacktrace` ...).
    pub size: u32,
    /// Whether a number of it is signed.
    pub signed: bool,
    /// How to read it.
    pub kind: FieldKind,
}

/// A variable of another trigger, as [`crate::program::Program::export`] gives it.
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

/// What a field of a synthetic event holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SynthClass {
    /// One number.
    Number,
    /// A string of 256 bytes in each record.
    StaticString,
    /// A string of any length, `char[]`.
    DynString,
    /// A stack, `long[]` or `unsigned long[]`.
    Stack,
}

/// One field of a synthetic event. The texts belong to the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynthField<'e> {
    /// Its name.
    pub name: &'e [u8],
    /// The type as C has it, which for a dynamic string is `__data_loc char[]`.
    pub type_name: &'e [u8],
    /// Its bytes as its type has them.
    pub size: u32,
    /// Whether a number of it is signed.
    pub signed: bool,
    /// What it holds.
    pub class: SynthClass,
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

/// What a hit is surrounded by.
///
/// Every method may be called from NMI: no lock, no sleep, no allocation.
pub trait Env: Copy {
    /// The ring buffer's stamp of the record at hand, in the units of the trace clock.
    fn timestamp(&self) -> u64;

    /// Whether that clock counts nanoseconds, so that `.usecs` can convert.
    fn clock_in_ns(&self) -> bool;

    /// The CPU this runs on.
    fn cpu(&self) -> u32;

    /// Writes the current task's name, ended by a NUL where there is room.
    fn comm(&self, out: &mut [u8; COMM_LEN]);

    /// Calls `found` with the return addresses of the kernel stack, innermost first, at most
    /// [`crate::limits::STACK_DEPTH`], without the frames of the tracer itself.
    fn stacktrace<R>(&self, found: impl FnOnce(&[u64]) -> R) -> R;
}
