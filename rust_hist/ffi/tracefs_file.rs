// SPDX-License-Identifier: GPL-2.0

//! A file at the top of tracefs, which cannot be opened any more once the module is gone.
//!
//! C counterpart: [`fs/tracefs/inode.c`](srctree/fs/tracefs/inode.c)

use super::{
    bindings,
    trace_core::create_tracefs_file, //
};
use core::{
    ffi::CStr,
    ptr::NonNull, //
};
use kernel::prelude::*;

/// Keeps a file at the top of tracefs until this is dropped.
///
/// # Invariants
///
/// This is the dentry of the file, which was not removed yet.
pub(super) struct TracefsFile(NonNull<bindings::dentry>);

// SAFETY: the file system has its own locks.
unsafe impl Send for TracefsFile {}

// SAFETY: the file system has its own locks.
unsafe impl Sync for TracefsFile {}

impl TracefsFile {
    /// Creates the file.
    ///
    /// # Safety
    ///
    /// The operations must name this module as their owner.
    pub(super) unsafe fn new(
        name: &'static CStr,
        operations: &'static bindings::file_operations,
    ) -> Result<Self> {
        // SAFETY: by the contract. INVARIANT: the file was just created.
        Ok(Self(unsafe { create_tracefs_file(name, operations)? }))
    }
}

impl Drop for TracefsFile {
    fn drop(&mut self) {
        let dentry = self.0.as_ptr();
        // The files of event directories that were served until now still have dentries. Opening them fails, but a
        // look-up must fail, too, so the dentries are dropped.
        //
        // SAFETY: by the type invariant; the file system exists as long as the file.
        unsafe { bindings::shrink_dcache_sb((*dentry).d_sb) };
        // SAFETY: by the type invariant; a file has its inode until it is removed.
        let inode = unsafe { (*dentry).d_inode };
        // SAFETY: the dentry has a reference to its inode.
        unsafe { bindings::ihold(inode) };
        // SAFETY: by the type invariant. After this the file cannot be found any more.
        unsafe { bindings::tracefs_remove(dentry) };
        // A holder of the file that has not opened it (`O_PATH`) keeps the inode, for which opening fails from here on.
        // SAFETY: a reference is held.
        unsafe { bindings::make_bad_inode(inode) };
        // SAFETY: the reference was taken above.
        unsafe { bindings::iput(inode) };
        wait_for_opens();
    }
}

/// Waits for tasks that have read the operations of an inode before they changed, and have not yet checked whether the
/// module may be used.
///
/// In between, such a task may be preempted, but does not sleep, so a grace period of RCU tasks waits for it. A
/// preemptible kernel without those (no BPF, no function tracer, no optimized probes) leaves a gap of a few
/// instructions: for a task that opens a previously found file through `/proc`, and is preempted just there until after
/// the module was freed.
fn wait_for_opens() {
    #[cfg(CONFIG_TASKS_RCU)]
    // SAFETY: the caller may sleep.
    unsafe {
        bindings::synchronize_rcu_tasks();
    }
    #[cfg(not(CONFIG_TASKS_RCU))]
    super::guard::synchronize_rcu();
}
