// SPDX-License-Identifier: GPL-2.0

//! Stack traces as triggers take them.
//!
//! C counterpart: [`kernel/stacktrace.c`](srctree/kernel/stacktrace.c), and the skip count in
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).

use super::{
    bindings,
    guard::PreemptOff, //
};
use crate::limits::STACK_DEPTH;
use core::mem::MaybeUninit;
use kernel::ffi::c_ulong;

/// How many frames of the tracing core come between a trigger function and the traced code.
///
/// PARITY: `HIST_STACKTRACE_SKIP` is 5, and counts the C trigger function as one of them.
const CORE_FRAMES: usize = 4;

/// More frames of ours than any build has: a parameter of an event has ten of them.
const OWN_FRAMES_MAX: usize = 16;

/// Room for all frames that a trigger may want, and those that it does not.
const ALL_FRAMES: usize = OWN_FRAMES_MAX + CORE_FRAMES + STACK_DEPTH;

/// Room for a stack.
#[derive(Clone, Copy)]
pub(crate) struct Room([MaybeUninit<u64>; ALL_FRAMES]);

impl Default for Room {
    #[inline(always)]
    fn default() -> Self {
        Self([const { MaybeUninit::uninit() }; ALL_FRAMES])
    }
}

/// Returns the return addresses of the code that hit the event: [`STACK_DEPTH`] at most, none of them 0, at which the
/// unwinder ends.
///
/// How many frames of ours come first depends on what the compiler inlines and on what the stack is
/// wanted for, so they are looked for in each trace. To unwind one takes longer than all else in a hit: so
/// the function has no frame of its own.
#[inline(always)]
pub(crate) fn save<'r>(room: &'r mut Room, _preempt: &PreemptOff<'_>) -> &'r [u64] {
    let Room(room) = room;
    // CAST: far below 2^32.
    let size = ALL_FRAMES as u32;
    // SAFETY: the array has `size` words, as large as the `unsigned long` of the machine.
    let count = unsafe { bindings::stack_trace_save(room.as_mut_ptr().cast(), size, 0) };
    // SAFETY: the function has written as many words as it says, at most `size`.
    let frames = unsafe { core::slice::from_raw_parts(room.as_ptr().cast(), count as usize) };
    match without_ours(frames) {
        Some(frames) => frames,
        None => no_frames(),
    }
}

/// None; by a call, so that a hit need not choose between two addresses.
#[cold]
#[inline(never)]
fn no_frames() -> &'static [u64] {
    &[]
}

/// The frames behind those of this module and of the tracing core.
#[inline(always)]
fn without_ours(frames: &[u64]) -> Option<&[u64]> {
    let code = code();
    // The first one is of the function that this is a part of.
    let mut own = 1;

    while frames.get(own).is_some_and(|&frame| code.has(frame)) {
        // OVERFLOW: the number of a frame.
        own = own.wrapping_add(1);
    }
    // OVERFLOW: the number of a frame, and a few more.
    let wanted = frames.get(own.wrapping_add(CORE_FRAMES)..)?;
    Some(wanted.get(..STACK_DEPTH).unwrap_or(wanted))
}

/// The addresses of this module's code.
struct Code {
    base: u64,
    size: u64,
}

impl Code {
    #[inline(always)]
    fn has(&self, address: u64) -> bool {
        address.wrapping_sub(self.base) < self.size
    }
}

/// Where the code of this module is.
#[inline(always)]
fn code() -> Code {
    // The first is that of the code (`HIST_AT_MODULE_TEXT`).
    // SAFETY: the module lives while its code runs. This makes no reference: C changes other members of it meanwhile.
    let text = unsafe { &raw const (*super::this_module()).mem[0] };
    // SAFETY: it points to a member of the module; where the code is and how long does not change while it runs.
    let (base, size) = unsafe { ((*text).base, (*text).size) };

    Code {
        // CAST: an address.
        base: base.addr() as u64,
        size: size.into(),
    }
}

const _: () = assert!(size_of::<u64>() == size_of::<c_ulong>());
