// SPDX-License-Identifier: GPL-2.0

//! A vector that may find no memory, for the pure rooms.
//!
//! C header: [`include/linux/slab.h`](srctree/include/linux/slab.h)
//!
//! In the kernel it stands on `kernel::alloc`, on the host on `std`. No other pure file allocates.
//! On the host a test can say which allocation fails; see `fail_after`.
//!
//! Context: process, may sleep. Reading: any.

use core::{
    fmt,
    ops::{
        Deref,
        DerefMut, //
    }, //
};

#[cfg(CONFIG_RUST)]
pub use kernel::alloc::AllocError;

#[cfg(CONFIG_RUST)]
use kernel::{
    alloc::{
        flags::GFP_KERNEL,
        KVec, //
    }, //
};

#[cfg(not(CONFIG_RUST))]
pub use self::host::{
    fail_after,
    AllocError, //
};

#[cfg(not(CONFIG_RUST))]
use self::host::KVec;

/// A vector that grows one by one, and says so when it cannot.
///
/// Owned by one; to share it, share the owner. It has no clone, since that would allocate.
///
/// # Examples
///
/// ```
/// use rust_hist::alloc::{fail_after, AllocError, Vec};
///
/// let mut numbers = Vec::new();
/// numbers.push(1)?;
/// fail_after(Some(1));
/// numbers.push(2)?;
/// assert!(numbers.push(3).is_err());
/// assert_eq!(*numbers, [1, 2]);
/// # Ok::<(), AllocError>(())
/// ```
#[derive(PartialEq, Eq)]
pub struct Vec<T>(KVec<T>);

impl<T> Vec<T> {
    /// An empty one, without memory.
    pub fn new() -> Self {
        Self(KVec::new())
    }

    /// Appends `item`.
    pub fn push(&mut self, item: T) -> Result<(), AllocError> {
        #[cfg(CONFIG_RUST)]
        {
            self.0.push(item, GFP_KERNEL)
        }
        #[cfg(not(CONFIG_RUST))]
        {
            host::may_allocate()?;
            self.0.push(item);
            Ok(())
        }
    }

    /// Drops the items from `len` on.
    pub fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    /// The bytes that it takes besides itself.
    pub fn bytes(&self) -> usize {
        self.0.capacity().saturating_mul(size_of::<T>())
    }
}

impl<T: Copy> Vec<T> {
    /// Appends all of `items`, or some of them if memory ends.
    pub fn extend_from_slice(&mut self, items: &[T]) -> Result<(), AllocError> {
        items.iter().try_for_each(|item| self.push(*item))
    }
}

impl<T> Default for Vec<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Deref for Vec<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for Vec<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T: fmt::Debug> fmt::Debug for Vec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// What stands in for the kernel's allocator.
#[cfg(not(CONFIG_RUST))]
mod host {
    extern crate std;

    use core::cell::Cell;

    pub(super) use std::vec::Vec as KVec;

    /// There is no memory.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct AllocError;

    std::thread_local! {
        /// How many more times this thread finds memory; `None`: always.
        static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
    }

    /// Lets this thread append `n` more items and then none; with `None` all again.
    pub fn fail_after(n: Option<usize>) {
        LEFT.with(|left| left.set(n));
    }

    /// Counts one allocation.
    pub(super) fn may_allocate() -> Result<(), AllocError> {
        LEFT.with(|left| match left.get() {
            None => Ok(()),
            Some(n) => {
                left.set(Some(n.checked_sub(1).ok_or(AllocError)?));
                Ok(())
            }
        })
    }
}
