// SPDX-License-Identifier: GPL-2.0

//! Large blocks of zeros, of which it is known whether they have been freed.

use crate::{sim, sync::Pair};
use kernel::{
    alloc::{may_allocate, AllocError},
    prelude::*,
};
use std::{ops::Deref, sync::Arc};

/// Allocates zeros.
pub fn charged_zeros<T: Clone + Default>(len: usize) -> Result<KVVec<T>, AllocError> {
    KVec::zeros(len)
}

/// SharedWords that several contexts share.
pub struct SharedWords(Arc<sim::Block>);

impl SharedWords {
    /// Allocates pairs of words. Others come in before.
    pub fn zeros(pairs: usize, _most: usize, _is_charged: bool) -> Result<Self, AllocError> {
        sim::at(sim::At::Step);
        may_allocate()?;
        Ok(Self(sim::Block::new(pairs)))
    }

    /// Returns the memory that they take.
    pub fn bytes(&self) -> usize {
        size_of_val(self.0.pairs())
    }
}

impl Deref for SharedWords {
    type Target = [Pair];

    fn deref(&self) -> &[Pair] {
        self.0.pairs()
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        self.0.free();
    }
}
