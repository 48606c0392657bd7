// SPDX-License-Identifier: GPL-2.0

//! The variables of an element: a number, or a string or stack.
//!
//! C counterpart: `tracing_map_set_var()`, `tracing_map_read_var_once()` and the others.
//!
//! Memory that is all 0 is a variable that is not set. Nobody waits: not a reader for a writer that
//! it may have interrupted, nor a writer for another one.
//!
//! Context: any, NMI included. A loop goes round again only because another context has changed the
//! variable meanwhile, and the loops of readers are bounded.

use crate::{
    limits::{
        STACK_DEPTH,
        STR_SLOT, //
    },
    sync::{
        Acquire,
        Atomic,
        Both,
        Full,
        Pair,
        Release, //
    }, //
};

/// How often a string or stack is read before it counts as not set.
const READ_TRIES: usize = 4;

/// The bit of a meta word that says whether the variable is set.
const SET: u64 = 1;
/// One version of a number.
const NUM_VERSION: u64 = 2;

/// The bit of the meta word of a string that says whether somebody is writing it.
const BUSY: u64 = 2;
/// Where the bits begin that say how many words of content are written, and how many bits they are.
const LEN_AT: u32 = 2;
const LEN_BITS: u32 = 6;
/// One version of a string.
const TEXT_VERSION: u64 = 1 << (LEN_AT + LEN_BITS);

const _: () = assert!(STR_SLOT / 8 < 1 << LEN_BITS && STACK_DEPTH < 1 << LEN_BITS);

/// A number that may be unset: a value, and a meta word with version and [`SET`].
///
/// A view of two words of an element's aux part, whose owner it borrows; it needs no lock. All that
/// is done to it takes effect at one moment, that of the compare-exchange.
///
/// # Invariants
///
/// Each change takes the version one further, so equal meta words mean that nothing was done in
/// between. It would have to change 2^63 times while one context stands still.
#[derive(Clone, Copy)]
pub struct NumCell<'a> {
    pair: Pair<'a>,
}

/// What a number was when it was taken: see [`NumCell::consume`]. A plain value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The number.
    pub value: u64,
    /// The meta word of the cell behind it, whose value stayed.
    meta: u64,
}

impl<'a> NumCell<'a> {
    /// Words that it takes.
    pub const WORDS: usize = 2;

    /// The variable in the first two of `words`; `None` if [`Pair`] refuses them.
    #[inline(always)]
    pub fn new(words: &'a [Atomic<u64>]) -> Option<Self> {
        Self::at(words, 0)
    }

    /// The variable in the two of `words` from `at` on, as [`NumCell::new`].
    #[inline(always)]
    pub fn at(words: &'a [Atomic<u64>], at: u16) -> Option<Self> {
        Pair::at(words, at).map(|pair| Self { pair })
    }

    /// Exchanges what the cell holds for what `change` makes of it, which is `None` for nothing.
    /// Returns what it was before and what it is now.
    #[inline(always)]
    fn change(&self, change: impl Fn(Both) -> Option<(u64, u64)>) -> Option<(Both, Both)> {
        // `change` decides by the meta word alone, which is whole; the exchange proves the value.
        let mut old = self.pair.glance();

        loop {
            let (value, set) = change(old)?;
            // INVARIANT: the next version.
            let meta = (old.meta & !SET).wrapping_add(NUM_VERSION) | set;
            let new = Both { value, meta };

            match self.pair.cmpxchg(old, new) {
                Ok(()) => return Some((old, new)),
                Err(held) => old = held,
            }
        }
    }

    /// Sets the number.
    #[inline]
    pub fn set(&self, value: u64) {
        self.change(|_| Some((value, SET)));
    }

    /// Reads the number; `None` if it is not set.
    #[inline]
    pub fn read(&self) -> Option<u64> {
        let Both { value, meta } = self.pair.load();

        (meta & SET != 0).then_some(value)
    }

    /// Whether it is set. Another context may set or consume it before the caller does anything.
    #[inline(always)]
    pub fn is_set(&self) -> bool {
        self.pair.meta() & SET != 0
    }

    /// Unsets the number and returns what it was; `None` if it is not set.
    ///
    /// Of all who want one write of it, one gets it.
    #[inline]
    pub fn consume(&self) -> Option<Taken> {
        let (old, left) = self.change(|old| (old.meta & SET != 0).then_some((old.value, 0)))?;

        Some(Taken {
            value: old.value,
            meta: left.meta,
        })
    }

    /// Undoes a [`NumCell::consume`] of this cell, unless somebody has set the number since: the
    /// later number is the one that counts, as if the other had never been taken.
    #[inline]
    pub fn restore(&self, taken: &Taken) {
        self.change(|old| (old.meta == taken.meta).then_some((taken.value, SET)));
    }
}

/// A string or stack that may be unset: a meta word with version, length, [`BUSY`] and [`SET`], and `n`
/// words of content, of which those from the length on mean nothing.
///
/// A view of an element's aux part, whose owner it borrows; it needs no lock.
///
/// # Invariants
///
/// - The content changes only while [`BUSY`] is set, by the one writer that has set it.
/// - The version changes with each change of the content, before the content does.
#[derive(Clone, Copy)]
pub struct TextCell<'a> {
    meta: &'a Atomic<u64>,
    content: &'a [Atomic<u64>],
}

/// The content of a string or stack that this context alone may write; see [`TextCell::fill`].
pub struct TextWriter<'a> {
    content: &'a [Atomic<u64>],
}

impl TextWriter<'_> {
    /// Writes one word; nothing if there is no such word.
    #[inline(always)]
    pub fn put(&self, at: usize, word: u64) {
        if let Some(place) = self.content.get(at) {
            // ORDERING: pairs with `Acquire` of the words in `copy`: whoever sees it sees busy, too.
            place.store(word, Release);
        }
    }

    /// Writes as many words as there are and as there is room for, and returns how many.
    #[inline(always)]
    pub fn put_all(&self, words: &[u64]) -> usize {
        for (place, &word) in self.content.iter().zip(words) {
            // ORDERING: as in `put`.
            place.store(word, Release);
        }
        words.len().min(self.content.len())
    }
}

impl<'a> TextCell<'a> {
    /// The variable in `words`; `None` if there are none.
    #[inline(always)]
    pub fn new(words: &'a [Atomic<u64>]) -> Option<Self> {
        let (meta, content) = words.split_first()?;

        Some(Self { meta, content })
    }

    /// Makes this context the only writer; `None` if there is another one.
    #[inline(always)]
    fn claim(&self) -> Option<u64> {
        loop {
            // ORDERING: pairs with `Release` in `release`, as the `cmpxchg` does.
            let old = self.meta.load(Acquire);
            if old & BUSY != 0 {
                return None;
            }
            // INVARIANT: the next version, and busy.
            let busy = (old & !(TEXT_VERSION - 1)).wrapping_add(TEXT_VERSION) | BUSY;

            // ORDERING: pairs with `Release` in `release`: what the last writer wrote comes before.
            // What this one writes comes after by the `Release` of each word.
            if self.meta.cmpxchg(old, busy, Full).is_ok() {
                return Some(busy);
            }
        }
    }

    /// Sets the variable to what `fill` writes, which returns how many words of it there are; or unsets
    /// it, if there are none to be had.
    ///
    /// Where another context is about to write it, too, `false` is returned and nothing is done:
    /// that is as if this write had come just before the other one, which nobody can tell.
    #[inline(always)]
    pub fn fill(&self, fill: impl FnOnce(&TextWriter<'a>) -> Option<usize>) -> bool {
        let Some(busy) = self.claim() else {
            return false;
        };
        let content = self.content;
        let set = match fill(&TextWriter { content }) {
            // CAST: a few bits; no content has more words than these can say, see above, and no reader goes further.
            Some(len) => ((len as u64 & ((1 << LEN_BITS) - 1)) << LEN_AT).wrapping_add(SET),
            None => 0,
        };

        // INVARIANT: it was this context that set `BUSY`, and the content is complete.
        // OVERFLOW: none of the bits of `set` is in the other, and `BUSY` is.
        // ORDERING: pairs with `Acquire` in `claim` and `copy`; the content comes before.
        self.meta
            .store(busy.wrapping_sub(BUSY).wrapping_add(set), Release);
        true
    }

    /// Whether the variable is set; not if it is being written all the time, as for [`TextCell::copy`].
    #[inline]
    pub fn is_set(&self) -> bool {
        for _ in 0..READ_TRIES {
            // ORDERING: only a hint of what `copy` would say.
            let meta = self.meta.load(Acquire);
            if meta & BUSY == 0 {
                return meta & SET != 0;
            }
        }
        false
    }

    /// Hands the content on word by word, at most `room` words, and returns how many there were; `None`
    /// if the variable is not set or is being written all the time.
    ///
    /// What `put` has been given means nothing until this returns: it may begin again, from word 0.
    #[inline]
    pub fn copy(&self, room: usize, mut put: impl FnMut(usize, u64)) -> Option<usize> {
        for _ in 0..READ_TRIES {
            // ORDERING: pairs with `Release` in `fill`; the content is as complete as the meta
            // word says.
            let meta = self.meta.load(Acquire);
            if meta & (SET | BUSY) == 0 {
                return None;
            }
            if meta & BUSY != 0 {
                continue;
            }
            // CAST: a few bits.
            let len = (meta.wrapping_shr(LEN_AT) & ((1 << LEN_BITS) - 1)) as usize;
            let len = len.min(room);
            for (at, from) in (0..len).zip(self.content) {
                // ORDERING: pairs with `Release` in `TextWriter::put`: whoever sees a word of a later
                // content sees below that it became busy.
                put(at, from.load(Acquire));
            }
            // ORDERING: the loads above come before by their `Acquire`.
            if self.meta.load(Acquire) == meta {
                return Some(len.min(self.content.len()));
            }
        }
        None
    }
}
