// SPDX-License-Identifier: GPL-2.0

//! The content of a slot of the table.

use super::Elt;

/// The bits of a hash that a slot stores: the upper half.
const HASH: u64 = u64::MAX << 32;

/// The content of a slot: half of the hash of a key and the index of the key's element, in one word.
///
/// A plain value, which the table stores in an `Atomic<u64>`.
///
/// # Invariants
///
/// The word is 0 iff the slot is free; else its lower half is the index of an element plus one, and its upper half the
/// upper half of the hash of the element's key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot(pub(super) u64);

impl Slot {
    /// A free slot. Memory that is all 0 is a table of free slots.
    pub(super) const FREE: Self = Self(0);

    /// Returns the slot for element `elt`, whose key has this hash.
    #[inline]
    pub(super) fn new(hash: u64, elt: Elt) -> Self {
        // INVARIANT: the index of an element is less than 2^20, so the lower half is not 0.
        // OVERFLOW: the index of an element is less than 2^20.
        Self((hash & HASH) | u64::from(elt.0).wrapping_add(1))
    }

    /// Returns whether the slot stores this hash. The slot must not be free.
    #[inline]
    pub(super) fn has_hash(self, hash: u64) -> bool {
        (self.0 ^ hash) & HASH == 0
    }

    /// Returns the element, `None` if the slot is free.
    #[inline]
    pub(super) fn elt(self) -> Option<Elt> {
        // CAST: takes the lower half.
        (self.0 as u32).checked_sub(1).map(Elt)
    }
}
