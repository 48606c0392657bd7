// SPDX-License-Identifier: GPL-2.0

//! Elements that no key has taken.
//!
//! There are two kinds: those never handed out, above an index that only grows, and those given back
//! by an inserter that lost its key to another one, on a stack. The stack is linked through the
//! first key word of its elements, which nobody else needs while they lie there.
//!
//! Context: any, NMI included. A loop goes round again only because another context took or gave
//! back an element meanwhile.

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

/// The control word with the number of elements ever handed out.
const NEXT: usize = 0;
/// The control word with the stack: a tag, and the index plus one of the element on top.
const TOP: usize = 1;

/// The free elements of a map, seen through its memory.
///
/// # Invariants
///
/// - Each element is in exactly one place: at or above `NEXT`, on the stack, in the hands of one
///   inserter, or named by exactly one slot; from there it does not return.
/// - `NEXT` never exceeds the number of elements.
/// - The upper half of `TOP` is one more after every change, so a stack that changed and changed
///   back looks different. It would have to change 2^32 times while one `take` stands still.
#[derive(Clone, Copy)]
pub(super) struct Pool<'a> {
    words: &'a [Atomic<u64>],
    shape: &'a Shape,
}

/// Returns the word for a stack with `top` (an index plus one, or 0) that comes after `old`.
fn next_top(old: u64, top: u64) -> u64 {
    ((old >> 32).wrapping_add(1) << 32) | top
}

/// Returns the index plus one of the element on top in `word`.
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

    /// Returns how many elements were ever handed out.
    pub(super) fn used(self) -> usize {
        // ORDERING: a bound for a walk over slots, which has its own `Acquire`.
        self.words
            .get(NEXT)
            // CAST: at most the number of elements.
            .map_or(0, |next| next.load(Relaxed) as usize)
    }

    /// Says whether no element was left, at some moment of the call.
    #[inline(always)]
    pub(super) fn is_empty(self) -> bool {
        let (Some(next), Some(stack)) = (self.words.get(NEXT), self.words.get(TOP)) else {
            return true;
        };
        // ORDERING: what the caller looks at next it has to see as it was after the last element was taken, or later;
        // so a load that is enough to say so is `Acquire`. Once it is at its end it stays there.
        // CAST: 2^17 at most.
        if next.load(Acquire) < self.shape.elts as u64 {
            return false;
        }
        // ORDERING: `Acquire` as for the word above, and pairs with `Release` in `give_back`.
        top_of(stack.load(Acquire)) == 0
    }

    /// Takes an element, which then belongs to the caller alone; `None` if there is none.
    pub(super) fn take(self) -> Option<Elt> {
        self.pop().or_else(|| self.take_new())
    }

    fn take_new(self) -> Option<Elt> {
        let next = self.words.get(NEXT)?;
        // CAST: 2^17 at most.
        let elts = self.shape.elts as u64;

        loop {
            // ORDERING: nobody has written to an element that was never handed out; who is told that there is none
            // looks at the slots again, and has to see them as they were after the last one was taken, or later.
            let n = next.load(Acquire);
            if n >= elts {
                return None;
            }
            // INVARIANT: element `n` goes from "never handed out" to this inserter.
            // ORDERING: as above.
            // OVERFLOW: at most the number of elements.
            if next.cmpxchg(n, n.wrapping_add(1), Relaxed).is_ok() {
                return u32::try_from(n).ok().map(Elt);
            }
        }
    }

    fn pop(self) -> Option<Elt> {
        let stack = self.words.get(TOP)?;

        loop {
            // ORDERING: pairs with `Release` in `give_back`; the link and all that the last owner
            // wrote to the element come before what the new owner reads and writes there.
            let old = stack.load(Acquire);
            let top = top_of(old);
            let link = self.link(top)?;

            // Another context may have popped this element and be writing its key here. Then the tag
            // has changed and what we read is thrown away.
            //
            // ORDERING: the `Acquire` above made the link of an element still on the stack visible.
            let below = top_of(link.load(Relaxed));

            // INVARIANT: with the tag unchanged `top` is still the top and `below` the next one.
            // ORDERING: pairs with `Release` in `give_back`, as the load does.
            if stack.cmpxchg(old, next_top(old, below), Acquire).is_ok() {
                // OVERFLOW: `link` has found an element for it, so it is not 0.
                return u32::try_from(top.wrapping_sub(1)).ok().map(Elt);
            }
        }
    }

    /// Gives back an element that the caller took and did not publish.
    pub(super) fn give_back(self, elt: Elt) {
        // OVERFLOW: 32 bits.
        let top = u64::from(elt.0).wrapping_add(1);
        let (Some(stack), Some(link)) = (self.words.get(TOP), self.link(top)) else {
            return;
        };

        loop {
            // ORDERING: only compared; the `cmpxchg` below fails if it is stale.
            let old = stack.load(Relaxed);
            // ORDERING: the element is ours until the `cmpxchg` below, which orders this store.
            link.store(top_of(old), Relaxed);

            // INVARIANT: the element goes from this inserter to the stack, with its link set.
            // ORDERING: pairs with `Acquire` in `pop`.
            if stack.cmpxchg(old, next_top(old, top), Release).is_ok() {
                return;
            }
        }
    }
}
