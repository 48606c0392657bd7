// SPDX-License-Identifier: GPL-2.0

//! The free elements of a map.
//!
//! Elements that were never allocated have an index from `NEXT` on, which only grows. Elements that an inserter has
//! freed, because another inserter published the same key first, are on a stack. The stack is linked through the first
//! key word of its elements, which is unused while they are free.
//!
//! Context: any, NMI included. A loop is repeated only after another context has allocated or freed an element.

use super::{
    Elt,
    Shape, //
};
use crate::sync::{
    Acquire,
    Atomic,
    Relaxed,
    Release, //
};

/// Index of the control word that counts the elements that were ever allocated.
const NEXT: usize = 0;
/// Index of the control word with the top of the stack: a tag, and the index plus one of the top element.
const TOP: usize = 1;

/// The free elements of a map, in the memory of the map.
///
/// # Invariants
///
/// - Each element is in exactly one of four states: its index is at least `NEXT`; it is on the stack; one inserter owns
///   it; exactly one slot refers to it, which never changes until the whole map is emptied.
/// - `NEXT` never exceeds the number of elements.
/// - Every change of `TOP` increments its upper half, so that an old and a new word with the same top differ, unless
///   there are 2^32 changes during one `take`.
#[derive(Clone, Copy)]
pub(super) struct Pool<'a> {
    words: &'a [Atomic<u64>],
    shape: &'a Shape,
}

/// Returns the word that follows `old` for a stack with `top`, an index plus one or 0.
fn next_top(old: u64, top: u64) -> u64 {
    ((old >> 32).wrapping_add(1) << 32) | top
}

/// Returns the index plus one of the top element, from the word `TOP`.
fn top_of(word: u64) -> u64 {
    word & u64::from(u32::MAX)
}

impl<'a> Pool<'a> {
    pub(super) fn new(words: &'a [Atomic<u64>], shape: &'a Shape) -> Self {
        Self { words, shape }
    }

    /// Returns the link word of the element with index plus one `top`.
    fn link(self, top: u64) -> Option<&'a Atomic<u64>> {
        let index = top.checked_sub(1)?;
        self.words
            .get(self.shape.key_at(Elt(u32::try_from(index).ok()?)))
    }

    /// Returns the number of elements that were ever allocated.
    pub(super) fn used(self) -> usize {
        // ORDERING: the number is only a bound; readers find elements through slots, loaded with `Acquire`.
        self.words
            .get(NEXT)
            // CAST: `NEXT` is at most the number of elements, which is a `usize`.
            .map_or(0, |next| next.load(Relaxed) as usize)
    }

    /// Visits the elements on the stack. No element may be allocated or freed meanwhile.
    pub(super) fn given_back(self) -> impl Iterator<Item = Elt> + 'a {
        // ORDERING: the caller runs after all changes of the stack, here and below.
        let mut top = self
            .words
            .get(TOP)
            .map_or(0, |top| top_of(top.load(Relaxed)));

        core::iter::from_fn(move || {
            let link = self.link(top)?;
            // OVERFLOW: `link` returned a word for `top`, so it is not 0.
            let elt = u32::try_from(top.wrapping_sub(1)).ok().map(Elt);
            top = top_of(link.load(Relaxed));
            elt
        })
    }

    /// Reserves the first `n` elements, which the caller then owns. No element may have been allocated yet.
    pub(super) fn reserve(self, n: usize) {
        if let Some(next) = self.words.get(NEXT) {
            // INVARIANT: the elements are owned by one inserter, the caller.
            // ORDERING: publishing the map to other contexts orders this store before their loads.
            // CAST: `usize` has at most 64 bits.
            next.store(n as u64, Relaxed);
        }
    }

    /// Returns whether no element was free at some time during the call. Always false for a map whose insertions must
    /// do more than fail when it is full.
    #[inline]
    pub(super) fn is_empty(self) -> bool {
        let (Some(next), Some(stack)) = (self.words.get(NEXT), self.words.get(TOP)) else {
            return true;
        };
        // ORDERING: `Acquire` keeps the caller's later loads of the slots after this one, so that they return
        // the content of the slots when the last element was allocated, or later. `NEXT` never decreases.
        // CAST: `usize` has at most 64 bits.
        if next.load(Acquire) < self.shape.full_at as u64 {
            return false;
        }
        // ORDERING: `Acquire` keeps the caller's later loads of the slots after this one, and pairs with
        // `Release` in `give_back`.
        top_of(stack.load(Acquire)) == 0
    }

    /// Allocates an element, which the caller then owns; `None` if none is free, or if the free ones are reserved for
    /// [`Pool::take_last`], in a map that another one is to replace.
    #[inline]
    pub(super) fn take(self) -> Option<Elt> {
        self.pop().or_else(|| self.take_new(self.shape.plenty))
    }

    /// Allocates one of the last elements of a map that is to be replaced; `None` if none is free.
    pub(super) fn take_last(self) -> Option<Elt> {
        self.take_new(self.shape.elts)
    }

    /// Allocates an element that was never allocated before, among the first `end` ones.
    #[inline(always)]
    fn take_new(self, end: usize) -> Option<Elt> {
        let next = self.words.get(NEXT)?;

        loop {
            // ORDERING: a caller that gets `None` searches the slots again: `Acquire` keeps these loads after
            // this one, so that they return the content of the slots when the last element was allocated, or later.
            let n = next.load(Acquire);
            // CAST: `usize` has at most 64 bits.
            if n >= end as u64 {
                return None;
            }
            // INVARIANT: element `n`, which was never allocated, is owned by this inserter.
            // ORDERING: no context has written to an element that was never allocated, so there is nothing to order.
            // OVERFLOW: `n` is less than the number of elements.
            if next.cmpxchg(n, n.wrapping_add(1), Relaxed).is_ok() {
                return u32::try_from(n).ok().map(Elt);
            }
        }
    }

    #[inline]
    fn pop(self) -> Option<Elt> {
        let stack = self.words.get(TOP)?;

        loop {
            // ORDERING: pairs with `Release` in `give_back`: the link, and all stores of the last owner to the
            // element, come before the loads and stores of the new owner.
            let old = stack.load(Acquire);
            let top = top_of(old);
            let link = self.link(top)?;

            // Another context may have popped this element and be writing its key to the word. Then the tag has
            // changed, and the `cmpxchg` below fails.
            //
            // ORDERING: the `Acquire` load of `TOP` orders it after the store of the link in `give_back`.
            let below = top_of(link.load(Relaxed));

            // INVARIANT: the tag is the same, so `top` is still the top and `below` the element under it; `top`
            // is owned by this inserter.
            // ORDERING: pairs with `Release` in `give_back`: the last owner's stores to the element come before.
            if stack.cmpxchg(old, next_top(old, below), Acquire).is_ok() {
                // OVERFLOW: `link` returned a word for `top`, so it is not 0.
                return u32::try_from(top.wrapping_sub(1)).ok().map(Elt);
            }
        }
    }

    /// Frees an element that the caller has allocated and not published.
    pub(super) fn give_back(self, elt: Elt) {
        // OVERFLOW: an index has 32 bits.
        let top = u64::from(elt.0).wrapping_add(1);
        let (Some(stack), Some(link)) = (self.words.get(TOP), self.link(top)) else {
            return;
        };

        loop {
            // ORDERING: if the word is outdated, the `cmpxchg` below fails.
            let old = stack.load(Relaxed);
            // ORDERING: the caller owns the element; the `Release` of the `cmpxchg` below orders this store.
            link.store(top_of(old), Relaxed);

            // INVARIANT: the element, which this inserter owned, is on the stack, and its link is set.
            // ORDERING: pairs with `Acquire` in `pop`: a context that pops the element sees its link.
            if stack.cmpxchg(old, next_top(old, top), Release).is_ok() {
                return;
            }
        }
    }
}
