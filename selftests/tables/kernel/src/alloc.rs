// SPDX-License-Identifier: GPL-2.0

//! Allocation that may fail.

use std::{
    cell::Cell,
    ops::{Deref, DerefMut},
};

/// The error of a failed allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocError;

/// How memory is allocated.
#[derive(Clone, Copy, Debug)]
pub struct Flags(());

/// As the kernel does it for itself.
pub const GFP_KERNEL: Flags = Flags(());
/// The same, charged to the memory cgroup of the task.
pub const GFP_KERNEL_ACCOUNT: Flags = Flags(());

thread_local! {
    /// The number of further allocations of this thread that succeed; `None` for all.
    static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Lets the next `n` allocations of this thread succeed and all later ones fail; `None` lets all succeed again.
pub fn fail_after(n: Option<usize>) {
    LEFT.with(|left| left.set(n));
}

/// Counts one allocation of this thread, or fails if none is left.
pub fn may_allocate() -> Result<(), AllocError> {
    LEFT.with(|left| match left.get() {
        None => Ok(()),
        Some(n) => {
            left.set(Some(n.checked_sub(1).ok_or(AllocError)?));
            Ok(())
        }
    })
}

/// A value in memory of its own.
pub struct KBox<T>(Box<T>);

impl<T> KBox<T> {
    /// Moves a value there.
    pub fn new(value: T, _: Flags) -> Result<Self, AllocError> {
        may_allocate()?;
        Ok(Self(Box::new(value)))
    }

    /// Moves the value out.
    pub fn into_inner(this: Self) -> T {
        *this.0
    }
}

impl<T> Deref for KBox<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for KBox<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

/// A vector.
#[derive(Debug)]
pub struct KVec<T>(Vec<T>);

/// A vector that may be large.
pub type KVVec<T> = KVec<T>;

impl<T> KVec<T> {
    /// Returns an empty vector.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Returns an empty vector with room for `n` items.
    pub fn with_capacity(n: usize, flags: Flags) -> Result<Self, AllocError> {
        let mut vec = Self::new();
        vec.reserve(n, flags)?;
        Ok(vec)
    }

    /// Makes room for `n` items more. Only that allocates.
    pub fn reserve(&mut self, n: usize, _: Flags) -> Result<(), AllocError> {
        if self.0.capacity() - self.0.len() < n {
            may_allocate()?;
            self.0.reserve(n);
        }
        Ok(())
    }

    /// Appends an item.
    pub fn push(&mut self, item: T, flags: Flags) -> Result<(), AllocError> {
        self.reserve(1, flags)?;
        self.0.push(item);
        Ok(())
    }

    /// Appends an item where there is room.
    pub fn push_within_capacity(&mut self, item: T) -> Result<(), T> {
        if self.0.len() == self.0.capacity() {
            return Err(item);
        }
        self.0.push(item);
        Ok(())
    }

    /// Takes an item out.
    pub fn remove(&mut self, at: usize) -> Result<T, ()> {
        match at < self.0.len() {
            true => Ok(self.0.remove(at)),
            false => Err(()),
        }
    }

    /// Takes the last item out.
    pub fn pop(&mut self) -> Option<T> {
        self.0.pop()
    }

    /// Takes all items out.
    pub fn drain_all(&mut self) -> impl Iterator<Item = T> + '_ {
        self.0.drain(..)
    }

    /// Returns the number of items that there is room for.
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }
}

impl<T: Clone> KVec<T> {
    /// Appends items.
    pub fn extend_from_slice(&mut self, items: &[T], flags: Flags) -> Result<(), AllocError> {
        self.reserve(items.len(), flags)?;
        self.0.extend_from_slice(items);
        Ok(())
    }
}

impl<T: Default + Clone> KVec<T> {
    /// Returns `n` items that are zero.
    pub fn zeros(n: usize) -> Result<Self, AllocError> {
        may_allocate()?;
        Ok(Self(vec![T::default(); n]))
    }
}

impl<T> Default for KVec<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Deref for KVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for KVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T> IntoIterator for KVec<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, T> IntoIterator for &'a KVec<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut KVec<T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter_mut()
    }
}
