// SPDX-License-Identifier: GPL-2.0

//! A vector with fallible allocation, for the pure layers.
//!
//! C header: [`include/linux/slab.h`](srctree/include/linux/slab.h)
//!
//! It wraps `kernel::alloc::KVec` in the kernel and `std::vec::Vec` on the host. No other pure file
//! allocates. A host test chooses with `fail_after` which allocation fails.
//!
//! Context: growing: process, may sleep (`GFP_KERNEL`). Reading: any, NMI included.

use core::ops::{
    Deref,
    DerefMut, //
};

#[cfg(CONFIG_RUST)]
pub use kernel::alloc::AllocError;

#[cfg(CONFIG_RUST)]
use kernel::alloc::{
    flags::GFP_KERNEL,
    KVec, //
};

#[cfg(not(CONFIG_RUST))]
pub use self::host::{
    fail_after,
    AllocError, //
};

#[cfg(not(CONFIG_RUST))]
use self::host::KVec;

/// A vector that returns [`AllocError`] if it cannot grow.
///
/// It is not `Clone`, since that would allocate.
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
#[derive(PartialEq, Eq, Debug)]
pub struct Vec<T>(KVec<T>);

impl<T> Vec<T> {
    /// Returns an empty vector, which has no memory yet.
    pub fn new() -> Self {
        Self(KVec::new())
    }

    /// Appends `item`.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if there is no memory; the vector is unchanged.
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

    /// Returns the bytes of memory allocated for the items.
    pub fn bytes(&self) -> usize {
        self.0.capacity().saturating_mul(size_of::<T>())
    }
}

impl<T: Copy> Vec<T> {
    /// Appends all of `items`.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if there is no memory; some of the items may have been appended.
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

    #[inline]
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for Vec<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

/// The replacement of the kernel's allocator on the host.
#[cfg(not(CONFIG_RUST))]
mod host {
    extern crate std;

    use core::cell::Cell;

    pub(super) use std::vec::Vec as KVec;

    /// The error of a failed allocation.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct AllocError;

    std::thread_local! {
        /// The number of further allocations of this thread that succeed; `None` for all.
        static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
    }

    /// Lets the next `n` allocations of this thread succeed and all later ones fail; `None` lets all succeed again.
    pub fn fail_after(n: Option<usize>) {
        LEFT.with(|left| left.set(n));
    }

    /// Counts one allocation, or fails if none is left.
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
