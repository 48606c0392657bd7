// SPDX-License-Identifier: GPL-2.0

//! Values with several owners.

use crate::alloc::{may_allocate, AllocError, Flags};
use std::{
    ops::{Deref, DerefMut},
    pin::Pin,
    ptr::NonNull,
    sync::{
        atomic::{fence, AtomicUsize, Ordering},
        OnceLock,
    },
};

struct Inner<T> {
    owners: AtomicUsize,
    value: T,
}

/// A value with several owners. The last one drops it; its memory is kept, so a use after that is no use of other memory.
pub struct Arc<T>(NonNull<Inner<T>>);

// SAFETY: as that of the standard library.
unsafe impl<T: Send + Sync> Send for Arc<T> {}
// SAFETY: as that of the standard library.
unsafe impl<T: Send + Sync> Sync for Arc<T> {}

impl<T> Arc<T> {
    /// Moves a value there.
    pub fn new(value: T, flags: Flags) -> Result<Self, AllocError> {
        Ok(UniqueArc::new(value, flags)?.into())
    }

    fn inner(&self) -> &Inner<T> {
        // SAFETY: the memory is never freed.
        unsafe { self.0.as_ref() }
    }

    /// Returns whether both are the same value.
    pub fn ptr_eq(a: &Self, b: &Self) -> bool {
        a.0 == b.0
    }

    /// Returns the address of the value.
    pub fn as_ptr(this: &Self) -> *const T {
        &raw const this.inner().value
    }

    /// Gives the value up, for [`Arc::from_raw`].
    pub fn into_raw(this: Self) -> *const T {
        let raw = Self::as_ptr(&this);
        std::mem::forget(this);
        raw
    }

    /// Takes a value back.
    ///
    /// # Safety
    ///
    /// It comes from [`Arc::into_raw`], once for each time.
    pub unsafe fn from_raw(raw: *const T) -> Self {
        let before = std::mem::offset_of!(Inner<T>, value);
        // SAFETY: by the contract it lies in an `Inner`.
        let inner = unsafe { raw.byte_sub(before) }
            .cast_mut()
            .cast::<Inner<T>>();
        // SAFETY: not null.
        Self(unsafe { NonNull::new_unchecked(inner) })
    }

    /// Returns the value if there is no other owner.
    pub fn into_unique_or_drop(this: Self) -> Option<Pin<UniqueArc<T>>> {
        let this = std::mem::ManuallyDrop::new(this);
        if this.inner().owners.fetch_sub(1, Ordering::Release) != 1 {
            return None;
        }
        fence(Ordering::Acquire);
        this.inner().owners.store(1, Ordering::Relaxed);
        // SAFETY: nothing that is moved relies on not being moved: the kernel's pins it as it must for any type.
        Some(unsafe { Pin::new_unchecked(UniqueArc(Self(this.0))) })
    }
}

impl<T> Clone for Arc<T> {
    fn clone(&self) -> Self {
        let before = self.inner().owners.fetch_add(1, Ordering::Relaxed);
        assert!(before > 0, "a value that was freed gets an owner");
        Self(self.0)
    }
}

impl<T> Drop for Arc<T> {
    fn drop(&mut self) {
        let before = self.inner().owners.fetch_sub(1, Ordering::Release);
        assert!(before > 0, "a value was freed twice");
        if before == 1 {
            fence(Ordering::Acquire);
            match cfg!(loom) {
                // The model checker has too many executions to keep what each has freed.
                // SAFETY: this was the last owner, and the memory is that of a box.
                true => drop(unsafe { Box::from_raw(self.0.as_ptr()) }),
                // SAFETY: this was the last owner.
                false => unsafe { std::ptr::drop_in_place(&raw mut (*self.0.as_ptr()).value) },
            }
        }
    }
}

impl<T> Deref for Arc<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner().value
    }
}

impl<T> From<UniqueArc<T>> for Arc<T> {
    fn from(unique: UniqueArc<T>) -> Self {
        unique.0
    }
}

/// A value that is to get several owners.
pub struct UniqueArc<T>(Arc<T>);

impl<T> UniqueArc<T> {
    /// Moves a value there.
    pub fn new(value: T, _: Flags) -> Result<Self, AllocError> {
        may_allocate()?;
        let inner = Box::leak(Box::new(Inner {
            owners: AtomicUsize::new(1),
            value,
        }));
        Ok(Self(Arc(inner.into())))
    }
}

impl<T> Deref for UniqueArc<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for UniqueArc<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: there is no other owner.
        unsafe { &mut (*self.0 .0.as_ptr()).value }
    }
}

/// A value that is set once.
pub struct SetOnce<T>(OnceLock<T>);

impl<T> SetOnce<T> {
    /// Returns one that is not set.
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Sets it, and says whether it was not set before.
    pub fn populate(&self, value: T) -> bool {
        self.0.set(value).is_ok()
    }

    /// Returns the value, if it is set.
    pub fn as_ref(&self) -> Option<&T> {
        self.0.get()
    }
}

impl<T> Default for SetOnce<T> {
    fn default() -> Self {
        Self::new()
    }
}
