// SPDX-License-Identifier: GPL-2.0

//! Stack traces for hits of triggers.
//!
//! C counterpart: [`kernel/stacktrace.c`](srctree/kernel/stacktrace.c), and the skip count in
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).

use super::{
    bindings,
    guard::PreemptOff, //
};
use crate::limits::STACK_DEPTH;
#[cfg(rust_hist_built_in)]
use crate::sync::{
    Atomic,
    Relaxed, //
};
use core::mem::MaybeUninit;
use kernel::ffi::c_ulong;
#[cfg(rust_hist_built_in)]
use kernel::ffi::c_void;

/// The number of frames of the tracing core between a trigger function and the traced code.
///
/// PARITY: `HIST_STACKTRACE_SKIP` is 5, as it includes the C trigger function.
const CORE_FRAMES: usize = 4;

/// More frames of this module than any build has in a hit; the parameter of an event has ten of them.
const OWN_FRAMES_MAX: usize = 16;

/// Room for all frames that a trigger may need, and for those that are skipped.
const ALL_FRAMES: usize = OWN_FRAMES_MAX + CORE_FRAMES + STACK_DEPTH;

/// Room for a stack.
#[derive(Clone, Copy)]
pub(crate) struct StackBuf([MaybeUninit<u64>; ALL_FRAMES]);

impl Default for StackBuf {
    #[inline(always)]
    fn default() -> Self {
        Self([const { MaybeUninit::uninit() }; ALL_FRAMES])
    }
}

/// Returns the return addresses of the code that hit the event: at most [`STACK_DEPTH`], and none is 0, at which the
/// unwinder ends.
///
/// The number of this module's frames depends on inlining and on the purpose of the stack, so they are searched for in
/// each trace. Unwinding one frame takes longer than the rest of a hit, so this function is inlined.
#[inline(always)]
pub(crate) fn save<'r>(room: &'r mut StackBuf, _preempt: &PreemptOff<'_>) -> &'r [u64] {
    let StackBuf(room) = room;
    // CAST: the size is far below 2^32.
    let size = ALL_FRAMES as u32;
    // SAFETY: the array has `size` words, each as large as the machine's `unsigned long`.
    let count = unsafe { bindings::stack_trace_save(room.as_mut_ptr().cast(), size, 0) };
    // SAFETY: the function has written as many words as it returned, at most `size`.
    let frames = unsafe { core::slice::from_raw_parts(room.as_ptr().cast(), count as usize) };
    match without_ours(frames) {
        Some(frames) => frames,
        None => no_frames(),
    }
}

/// Returns an empty slice; by a call, so that a hit need not choose between two addresses.
#[cold]
#[inline(never)]
fn no_frames() -> &'static [u64] {
    &[]
}

/// Returns the frames after those of this module and of the tracing core.
#[inline(always)]
fn without_ours(frames: &[u64]) -> Option<&[u64]> {
    let code = code();
    // The first frame is this function's.
    let mut own = 1;

    while frames.get(own).is_some_and(|&frame| is_own(frame, &code)) {
        // OVERFLOW: the number of a frame is small.
        own = own.wrapping_add(1);
    }
    // OVERFLOW: the number of a frame, plus a few, is small.
    let wanted = frames.get(own.wrapping_add(CORE_FRAMES)..)?;
    Some(wanted.get(..STACK_DEPTH).unwrap_or(wanted))
}

/// The addresses of some code.
struct CodeRange {
    base: u64,
    size: u64,
}

impl CodeRange {
    #[inline(always)]
    fn has(&self, address: u64) -> bool {
        address.wrapping_sub(self.base) < self.size
    }
}

/// The number of bytes of `event_triggers_call()`.
#[cfg(rust_hist_built_in)]
static SIZE: Atomic<u64> = Atomic::new(0);

/// Learns how long the function is that calls triggers, before there are any.
#[cfg(rust_hist_built_in)]
pub(crate) fn learn() {
    let (mut size, mut offset) = (0, 0);
    let at = triggers_call().addr();
    // SAFETY: the function only looks the address up. It writes to both variables, or to none.
    unsafe { bindings::kallsyms_lookup_size_offset(at, &raw mut size, &raw mut offset) };
    // CAST: a word of 64 bits.
    // ORDERING: hits come after the registration of a trigger, which orders this before them.
    SIZE.store(size as u64, Relaxed);
}

/// The function of the core that calls the triggers of an event.
#[cfg(rust_hist_built_in)]
#[inline(always)]
fn triggers_call() -> *mut c_void {
    // CAST: an address.
    bindings::event_triggers_call as *mut c_void
}

/// Returns whether a frame before which all are this code's is this code's, too.
#[cfg(rust_hist_built_in)]
#[inline(always)]
fn is_own(frame: u64, caller: &CodeRange) -> bool {
    !caller.has(frame)
}

/// Returns whether a frame is this module's.
#[cfg(not(rust_hist_built_in))]
#[inline(always)]
fn is_own(frame: u64, code: &CodeRange) -> bool {
    code.has(frame)
}

/// Returns the address range of the function that calls triggers: where this code is among the kernel's, nothing says.
#[cfg(rust_hist_built_in)]
#[inline(always)]
fn code() -> CodeRange {
    CodeRange {
        // CAST: an address.
        base: triggers_call().addr() as u64,
        // ORDERING: stored before there are hits.
        size: SIZE.load(Relaxed),
    }
}

/// Returns the address range of this module's code.
#[cfg(not(rust_hist_built_in))]
#[inline(always)]
fn code() -> CodeRange {
    // A module's first memory area is its code (`HIST_AT_MODULE_TEXT`).
    // SAFETY: the module lives while its code runs. No reference is created, as C may change other members meanwhile.
    let text = unsafe { &raw const (*super::this_module()).mem[0] };
    // SAFETY: this is a pointer to a member of the module; the place and size of the code do not change while it runs.
    let (base, size) = unsafe { ((*text).base, (*text).size) };

    CodeRange {
        // CAST: an address.
        base: base.addr() as u64,
        size: size.into(),
    }
}

const _: () = assert!(size_of::<u64>() == size_of::<c_ulong>());
