// SPDX-License-Identifier: GPL-2.0

//! The fields of an event, and the context of a hit.
//!
//! C counterpart: `struct ftrace_event_field` and the `FILTER_*` kinds of
//! [`include/linux/trace_events.h`](srctree/include/linux/trace_events.h).
//! The compiler looks up [`FieldDesc`] and [`SynthField`] when a trigger is created; each hit queries
//! [`Env`]. The glue takes both from the kernel, the host tests from tables.
//!
//! Context: any, NMI included.

use crate::limits::{
    COMM_LEN,
    TASK_NUMBERS, //
};

/// The representation of a field in the record: `filter_type` of the event field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// A number, structure, array or pointer (`FILTER_OTHER`).
    Other,
    /// `__data_loc cpumask_t` (`FILTER_CPUMASK`).
    Cpumask,
    /// `char x[N]` inside the record (`FILTER_STATIC_STRING`).
    StaticString,
    /// `__data_loc char[]` (`FILTER_DYN_STRING`).
    DynString,
    /// `__rel_loc char[]` (`FILTER_RDYN_STRING`).
    RelDynString,
    /// `char *`, which must not be dereferenced (`FILTER_PTR_STRING`).
    PtrString,
    /// A function's address in the function tracer's own events (`FILTER_TRACE_FN`).
    Function,
    /// The number of the CPU, as the generic field `cpu` or `CPU` (`FILTER_CPU`).
    Cpu,
    /// The name of the task, as the generic field `comm` or `COMM` (`FILTER_COMM`).
    Comm,
    /// A stack (`FILTER_STACKTRACE`): `long[]` of a synthetic event if it has a size, else the generic
    /// field `stacktrace` or `STACKTRACE`.
    Stack,
}

/// One field of an event, as `trace_find_event_field()` finds it.
///
/// Borrows its text from the event. The compiler copies the parts that it keeps.
#[derive(Clone, Copy, Debug)]
pub struct FieldDesc<'e> {
    /// The type as the event's `format` file shows it.
    pub type_name: &'e [u8],
    /// The offset in the record, in bytes.
    pub offset: u32,
    /// The size in the record, in bytes; 0 for the generic fields (`cpu`, `comm`, `stacktrace` ...).
    pub size: u32,
    /// Whether the field's numbers are signed.
    pub signed: bool,
    /// The representation of the field in the record.
    pub kind: FieldKind,
}

/// The class of the values of a field of a synthetic event.
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

/// One field of a synthetic event. It borrows its texts from the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynthField<'e> {
    /// The name of the field.
    pub name: &'e [u8],
    /// The type as C keeps it: a dynamic string has the type `__data_loc char[]`.
    pub type_name: &'e [u8],
    /// The size of the type in bytes.
    pub size: u32,
    /// Whether the field's numbers are signed.
    pub signed: bool,
    /// The class of the field's values.
    pub class: SynthClass,
}

/// A number of the task that a hit is in, or of its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskNumber {
    /// The process id (`tgid`).
    Tgid,
    /// The control group in the default hierarchy: its id, which is the inode number of its directory.
    Cgroup,
    /// The user id in the initial user namespace.
    Uid,
    /// The NUMA node of the CPU.
    Node,
}

impl TaskNumber {
    /// All numbers of the task.
    pub const ALL: [Self; TASK_NUMBERS] = [Self::Tgid, Self::Cgroup, Self::Uid, Self::Node];

    /// Returns the name of the field for this number.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tgid => "common_tgid",
            Self::Cgroup => "common_cgroup",
            Self::Uid => "common_uid",
            Self::Node => "common_node",
        }
    }
}

/// The context of a hit. As cheap to copy as a few words.
///
/// Context: any, NMI included, with preemption off: an implementation takes no lock, does not sleep and
/// does not allocate.
pub trait Env: Copy {
    /// Room for a stack. Its default must take no code to make.
    type Stack: Copy + Default;

    /// Returns the time stamp that the ring buffer gave the record, in the unit of the trace clock.
    fn timestamp(&self) -> u64;

    /// Returns whether the trace clock counts nanoseconds, which `.usecs` then converts.
    fn clock_in_ns(&self) -> bool;

    /// Returns the current CPU.
    fn cpu(&self) -> u32;

    /// Returns this number of the current task.
    fn task(&self, which: TaskNumber) -> u64;

    /// Writes the current task's name to `out`. A NUL ends a name that is shorter than `out`.
    fn comm(&self, out: &mut [u8; COMM_LEN]);

    /// Returns the return addresses of the kernel stack, innermost first: at most [`crate::limits::STACK_DEPTH`],
    /// without the frames of the tracer. No address is 0.
    fn stack<'s>(&self, room: &'s mut Self::Stack) -> &'s [u64];
}
