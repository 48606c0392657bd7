// SPDX-License-Identifier: GPL-2.0

//! The task that is running now.
//!
//! C header: [`include/linux/sched.h`](srctree/include/linux/sched.h)

use super::{
    bindings,
    guard::PreemptOff, //
};
use crate::{
    field::TaskNumber,
    limits::COMM_LEN,
    sync::{
        load_8,
        store_8, //
    }, //
};
use kernel::prelude::*;

const WORD: usize = size_of::<u64>();
const _: () = assert!(COMM_LEN == bindings::TASK_COMM_LEN as usize && COMM_LEN == 2 * WORD);

/// The bytes of a task's stack.
// CAST: a small number.
const STACK_OF_TASK: c_ulong = bindings::HIST_STACK_OF_TASK as c_ulong;
/// The bytes of stack that a hit needs: the most that `scripts/check-object` allows, and 1248 for the core's functions.
const STACK_OF_HIT: c_ulong = 6144;

/// Copies the name of the current task. The name may change meanwhile.
#[inline(always)]
pub(crate) fn comm(to: &mut [u8; COMM_LEN], _preempt: &PreemptOff<'_>) {
    // SAFETY: there always is a current task, and it lives while it runs, with this many bytes. Other tasks may change
    // them meanwhile, so they are read only by `load_8()`.
    let from: &[u8; COMM_LEN] = unsafe { &*bindings::hist_helper_current_comm().cast() };

    // A rename meanwhile may tear the name, as for every reader; its last byte is always NUL. Two calls without a loop:
    // the compiler may not unroll a loop, and may call a function for an iterator of chunks.
    copy_word(to, from, 0);
    copy_word(to, from, WORD);
}

#[inline(always)]
fn copy_word(to: &mut [u8; COMM_LEN], from: &[u8; COMM_LEN], at: usize) {
    let to = to.get_mut(at..).and_then(<[_]>::first_chunk_mut);
    if let (Some(to), Some(word)) = (to, load_8(from, at)) {
        store_8(to, word);
    }
}

/// Returns a number of the current task, or of the NUMA node of this CPU.
///
/// C counterpart: `task_tgid_nr()`, `cgroup_id()`, `current_uid()` and `numa_node_id()`.
#[inline(always)]
pub(crate) fn number(which: TaskNumber, _preempt: &PreemptOff<'_>) -> u64 {
    // SAFETY: there always is a current task, which lives while it runs, and so do its credentials, which only it
    // changes. With preemption off, RCU keeps the set of its control groups and the groups.
    unsafe {
        match which {
            TaskNumber::Tgid => widen(bindings::hist_helper_current_tgid()),
            #[cfg(CONFIG_CGROUPS)]
            TaskNumber::Cgroup => bindings::hist_helper_current_cgroup(),
            // Never used, as there is no such field without control groups.
            #[cfg(not(CONFIG_CGROUPS))]
            TaskNumber::Cgroup => 0,
            TaskNumber::Uid => bindings::hist_helper_current_uid().into(),
            TaskNumber::Node => widen(bindings::hist_helper_current_node()),
        }
    }
}

/// Returns a number in the 64 bits that hits use.
#[inline(always)]
fn widen(number: core::ffi::c_int) -> u64 {
    // CAST: keeps the bits of the signed number, like any signed field.
    i64::from(number) as u64
}

/// Sleeps for a tick; returns `EINTR` if the task is killed meanwhile. The caller must be in process context and hold
/// no lock that other tasks need meanwhile.
pub(super) fn pause() -> Result {
    // SAFETY: by the contract the caller may sleep.
    match unsafe { bindings::hist_helper_pause() } {
        true => Err(EINTR),
        false => Ok(()),
    }
}

/// Returns whether the stack has room for another hit inside of this one. In an NMI `has_taken_much` says whether hits
/// have left no room.
#[inline(always)]
pub(crate) fn has_stack(has_taken_much: impl FnOnce() -> bool, _preempt: &PreemptOff<'_>) -> bool {
    // SAFETY: there always is a current task, and its stack lives while it runs.
    let left = unsafe { bindings::hist_helper_stack_left() };
    if left < STACK_OF_TASK {
        return left >= STACK_OF_HIT;
    }
    // SAFETY: it has no precondition.
    !has_taken_much() || !unsafe { bindings::hist_helper_in_nmi() }
}

/// Returns whether this CPU runs its idle task.
#[inline(always)]
pub(crate) fn is_idle(_preempt: &PreemptOff<'_>) -> bool {
    // SAFETY: there always is a current task, and it lives while it runs.
    unsafe { bindings::hist_helper_current_tgid() == 0 }
}
