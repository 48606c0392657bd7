// SPDX-License-Identifier: GPL-2.0

//! The fields that all events have, and the names of system calls.
//!
//! C counterparts: `trace_find_event_field()` in [`kernel/trace/trace_events.c`](srctree/kernel/trace/trace_events.c), and
//! `get_syscall_name()` in [`kernel/trace/trace_syscalls.c`](srctree/kernel/trace/trace_syscalls.c)

use super::{
    super::event::{
        c_str,
        EventCall, //
    },
    bindings,
    pins::{
        files_of,
        with_event_mutex, //
    },
    EventMutexHeld, //
};
use core::{
    ffi::CStr,
    mem::offset_of, //
};
use kernel::{
    prelude::*,
    sync::SetOnce, //
};

/// A field that is on no event's list of fields: a generic one, or one that all records begin with.
#[repr(transparent)]
struct CommonField(bindings::ftrace_event_field);

// SAFETY: the field points to constant strings only.
unsafe impl Sync for CommonField {}

impl CommonField {
    const fn new(
        name: &'static CStr,
        kind: &'static CStr,
        class: u32,
        signed: bool,
        at: usize,
        size: usize,
    ) -> Self {
        Self(bindings::ftrace_event_field {
            name: name.as_ptr().cast(),
            type_: kind.as_ptr().cast(),
            // CAST: the class, the offset and the size are small numbers.
            filter_type: class as c_int,
            offset: at as c_int,
            size: size as c_int,
            // `check` verifies that the lowest bit of this word says "signed".
            _bitfield_1: bindings::__BindgenBitfieldUnit::new([signed as u8]),
            ..EMPTY
        })
    }
}

// SAFETY: the structure has numbers and pointers only, for which 0 is valid.
const EMPTY: bindings::ftrace_event_field = unsafe { core::mem::zeroed() };

/// Checks that two fields that are declared signed are so for C, too; `ENODEV` if not.
pub(super) fn check() -> Result {
    let [cpu, .., pid] = &FIELDS;
    match (cpu.0.is_signed(), pid.0.is_signed()) {
        (1, 1) => Ok(()),
        _ => Err(ENODEV),
    }
}

/// A generic field, such as `CPU`, whose value is not in the record.
macro_rules! generic {
    ($name:literal, $kind:literal, $class:ident, $signed:literal) => {
        CommonField::new($name, $kind, bindings::$class, $signed, 0, 0)
    };
}

/// A field that each record begins with.
macro_rules! common {
    ($name:literal, $kind:literal, $field:ident, $size:literal, $signed:literal) => {
        CommonField::new(
            $name,
            $kind,
            bindings::FILTER_OTHER,
            $signed,
            offset_of!(bindings::trace_entry, $field),
            $size,
        )
    };
}

static FIELDS: [CommonField; 11] = [
    generic!(c"CPU", c"int", FILTER_CPU, true),
    generic!(c"cpu", c"int", FILTER_CPU, true),
    generic!(c"common_cpu", c"int", FILTER_CPU, true),
    generic!(c"COMM", c"char *", FILTER_COMM, false),
    generic!(c"comm", c"char *", FILTER_COMM, false),
    generic!(c"stacktrace", c"char *", FILTER_STACKTRACE, false),
    generic!(c"STACKTRACE", c"char *", FILTER_STACKTRACE, false),
    common!(c"common_type", c"unsigned short", type_, 2, false),
    common!(c"common_flags", c"unsigned char", flags, 1, false),
    common!(
        c"common_preempt_count",
        c"unsigned char",
        preempt_count,
        1,
        false
    ),
    common!(c"common_pid", c"int", pid, 4, true),
];

/// Returns the field of an event with this name: one of its own, else a generic one, else one that all records have;
/// null if there is none.
///
/// # Safety
///
/// The event must be live, its fields not change, and `name` be a string.
pub(in super::super) unsafe fn trace_find_event_field(
    call: *mut bindings::trace_event_call,
    name: *mut c_char,
) -> *const bindings::ftrace_event_field {
    // SAFETY: by the contract.
    let name = unsafe { c_str(name) };
    // SAFETY: by the contract.
    let own = unsafe { EventCall::from_raw(call).own_fields() };
    let mut all = Iterator::chain(own, FIELDS.iter().map(|field| &field.0));
    // SAFETY: a field on the list is live, with its name; the others have constant strings.
    all.find(|field| unsafe { c_str(field.name) } == name)
        .map_or(core::ptr::null(), core::ptr::from_ref)
}

/// The names of system calls by number, each of which the kernel image keeps; null where there is none.
static SYSCALLS: SetOnce<SyscallNames> = SetOnce::new();

struct SyscallNames(KVec<*const c_char>);

// SAFETY: the strings are constant.
unsafe impl Send for SyscallNames {}

// SAFETY: the strings are constant.
unsafe impl Sync for SyscallNames {}

/// Asks the events of system calls in the top instance for their names. Sleeps.
pub(super) fn learn_syscalls(held: &EventMutexHeld) -> Result {
    if SYSCALLS.as_ref().is_some() {
        return Ok(());
    }
    let mut names = SyscallNames(KVec::new());
    with_event_mutex(held, || {
        // SAFETY: the event is the module's own, with a file in the top instance, and `event_mutex` is held.
        for file in unsafe { files_of(bindings::hist_stock_top()) } {
            // SAFETY: a file on the list is live, with its event and the event's class.
            let (system, data) = unsafe {
                let call = (*file).event_call;
                (c_str((*(*call).class).system), (*call).data)
            };
            if system != Some(c"syscalls") {
                continue;
            }
            // SAFETY: the data of an event of `syscalls` is a `syscall_metadata`.
            let (name, number) = unsafe {
                let data = data.cast::<bindings::syscall_metadata>();
                ((*data).name, (*data).syscall_nr)
            };
            let Ok(number) = usize::try_from(number) else {
                continue;
            };
            if number >= names.0.len() {
                names.0.resize(number + 1, core::ptr::null(), GFP_KERNEL)?;
            }
            if let Some(place) = names.0.get_mut(number) {
                *place = name;
            }
        }
        Ok(())
    })?;
    SYSCALLS.populate(names);
    Ok(())
}

/// Returns the name of a system call; null if no call has this number.
///
/// # Safety
///
/// None is needed.
pub(in super::super) unsafe fn syscall_name(number: c_int) -> *const c_char {
    let name = || {
        SYSCALLS
            .as_ref()?
            .0
            .get(usize::try_from(number).ok()?)
            .copied()
    };
    name().unwrap_or(core::ptr::null())
}
