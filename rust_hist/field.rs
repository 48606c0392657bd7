// SPDX-License-Identifier: GPL-2.0

//! What the language knows of an event: its fields, and what surrounds a hit.
//!
//! C counterpart: `struct ftrace_event_field` and the `FILTER_*` kinds of
//! [`include/linux/trace_events.h`](srctree/include/linux/trace_events.h).
//! Fields are looked up while a trigger is created, [`Env`] is asked at every hit. The glue implements both
//! over the kernel, tests over tables.
//!
//! Context: any.

use crate::limits::COMM_LEN;

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
