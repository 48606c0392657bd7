// SPDX-License-Identifier: GPL-2.0

//! A file of our own at the top of tracefs, which cannot be opened any more once the module has gone.
//!
//! C counterpart: [`fs/tracefs/inode.c`](srctree/fs/tracefs/inode.c)

use super::bindings;
use core::{
    ffi::CStr,
    ptr::NonNull, //
};
use kernel::{
    bindings as base,
    prelude::*, //
};

/// Readable and writable by the owner, readable by the group, as such files are.
const MODE: base::umode_t = 0o640;

/// Keeps a file at the top of tracefs until it is dropped.
///
/// # Invariants
///
/// This is the entry of the file, which was not removed yet.
pub(super) struct TracefsFile(NonNull<base::dentry>);

// SAFETY: the file system has its own locks.
unsafe impl Send for TracefsFile {}

// SAFETY: the file system has its own locks.
unsafe impl Sync for TracefsFile {}

impl TracefsFile {
    /// Makes the file.
    ///
    /// # Safety
    ///
    /// The operations must name this module as their owner.
    pub(super) unsafe fn new(
        name: &'static CStr,
        operations: &'static base::file_operations,
    ) -> Result<Self> {
        // SAFETY: the operations are constant, and stay until the inode does not use them any more.
        let dentry = unsafe {
            bindings::tracefs_create_file(
                name.as_char_ptr(),
                MODE,
                core::ptr::null_mut(),
                core::ptr::null_mut(),
                operations,
            )
        };
        // INVARIANT: the file is there now.
        Ok(Self(NonNull::new(dentry).ok_or(ENODEV)?))
    }
}

impl Drop for TracefsFile {
    fn drop(&mut self) {
        let dentry = self.0.as_ptr();
        // The files of event directories that were served until now are still in the cache of names. Opening
        // them fails; but whoever only asks whether they are there is to be told, too.
        //
        // SAFETY: by the type invariant; the file system is there as long as the file is.
        unsafe { base::shrink_dcache_sb((*dentry).d_sb) };
        // SAFETY: by the type invariant; a file has its inode as long as it is not removed.
        let inode = unsafe { (*dentry).d_inode };
        // SAFETY: the entry has a reference to its inode.
        unsafe { base::ihold(inode) };
        // SAFETY: by the type invariant. Nobody finds the file any more.
        unsafe { bindings::tracefs_remove(dentry) };
        // Who has it without having opened it (`O_PATH`) keeps the inode, for which opening fails
        // from here on.
        // SAFETY: a reference is held.
        unsafe { base::make_bad_inode(inode) };
        // SAFETY: taken above.
        unsafe { base::iput(inode) };
        wait_for_opens();
    }
}

/// Waits for those who read the operations of an inode before they changed, and have not looked yet
/// whether the module may be used.
///
/// Between the two a task may lose the processor, but does not give it up. That is what a grace
/// period of tasks waits for. A kernel that can preempt and has none of these (no BPF, no function
/// tracer, no optimized probes) leaves a gap of a few instructions: for who was preempted just there,
/// opening by `/proc` what had been found before, until after the module was freed.
fn wait_for_opens() {
    #[cfg(CONFIG_TASKS_RCU)]
    // SAFETY: the caller may sleep.
    unsafe {
        base::synchronize_rcu_tasks();
    }
    #[cfg(not(CONFIG_TASKS_RCU))]
    super::guard::synchronize_rcu();
}
