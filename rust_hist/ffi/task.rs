// SPDX-License-Identifier: GPL-2.0

//! The task that runs now.
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

/// Copies the name of the current task, which may change while it is read.
#[inline(always)]
pub(crate) fn comm(to: &mut [u8; COMM_LEN], _preempt: &PreemptOff<'_>) {
    // SAFETY: there always is a current task, and it lives while it runs, with so many bytes. Others may change them
    // meanwhile, so they are read by `load_8()` alone.
    let from: &[u8; COMM_LEN] = unsafe { &*bindings::hist_helper_current_comm().cast() };

    // A rename that comes in between may tear the name, as for every reader of it; its last byte is always NUL.
    // Word by word without a loop: the compiler may not unroll one, or call a function for an iterator of chunks.
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

/// A number of the current task, or of the node of this CPU.
///
/// C counterpart: `task_tgid_nr()`, `cgroup_id()`, `current_uid()` and `numa_node_id()`.
#[inline(always)]
pub(crate) fn number(which: TaskNumber, _preempt: &PreemptOff<'_>) -> u64 {
    // SAFETY: there always is a current task, and it lives while it runs, and so do its credentials, which nobody else
    // changes. With preemption off RCU keeps the set of its control groups, and with the set the groups.
    unsafe {
        match which {
            TaskNumber::Tgid => widen(bindings::hist_helper_current_tgid()),
            #[cfg(CONFIG_CGROUPS)]
            TaskNumber::Cgroup => bindings::hist_helper_current_cgroup(),
            // Nobody asks: there is no such field.
            #[cfg(not(CONFIG_CGROUPS))]
            TaskNumber::Cgroup => 0,
            TaskNumber::Uid => bindings::hist_helper_current_uid().into(),
            TaskNumber::Node => widen(bindings::hist_helper_current_node()),
        }
    }
}

/// A number as wide as those of a hit.
#[inline(always)]
fn widen(number: core::ffi::c_int) -> u64 {
    // CAST: the bits of the signed number, as of any field that is one.
    i64::from(number) as u64
}

/// Sleeps for a tick, or until the task is killed; `EINTR` then. The caller is in process context and holds no lock that others
/// need meanwhile.
pub(super) fn pause() -> Result {
    // SAFETY: by the contract the caller may sleep.
    match unsafe { bindings::hist_helper_pause() } {
        true => Err(EINTR),
        false => Ok(()),
    }
}

/// Whether this CPU runs its idle task.
#[inline(always)]
pub(crate) fn is_idle(_preempt: &PreemptOff<'_>) -> bool {
    // SAFETY: there always is a current task, and it lives while it runs.
    unsafe { bindings::hist_helper_current_tgid() == 0 }
}
