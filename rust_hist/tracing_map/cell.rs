// SPDX-License-Identifier: GPL-2.0

//! The variables of an element: numbers, strings and stacks.
//!
//! C counterpart: `tracing_map_set_var()`, `tracing_map_read_var_once()` and the like of
//! [`kernel/trace/tracing_map.c`](srctree/kernel/trace/tracing_map.c).
//!
//! A variable whose words are all 0 is not set. No context waits for another: readers do not wait for a writer that
//! they may have interrupted, and writers do not wait for each other.
//!
//! Context: any, NMI included. A loop is repeated only after another context has changed the variable, and
//! readers of strings and stacks repeat it a bounded number of times.

use crate::{
    limits::{
        STACK_DEPTH,
        STR_SLOT, //
    },
    sync::{
        Acquire,
        Atomic,
        Full,
        Pair,
        PairValue,
        Release, //
    },
};

use super::WordWriter;

/// How often a reader tries to copy a string or stack before it treats it as not set.
const READ_TRIES: usize = 4;

/// The bit of a meta word that says that the variable is set.
const SET: u64 = 1;
/// Bits of a number's meta word once another map has taken the number over: that it has, and that the number was set.
/// [`SET`] is 0 then.
const CLOSED: u64 = 2;
const WITH_NUMBER: u64 = 4;
/// The lowest bit of the version of a number.
const NUM_VERSION: u64 = 8;

/// The bit of the meta word of a string that is set while a context writes it.
const BUSY: u64 = 2;
/// The lowest bit of the length of the content in words, and the number of its bits.
const LEN_AT: u32 = 2;
const LEN_BITS: u32 = 6;
/// The lowest bit of the version of a string.
const TEXT_VERSION: u64 = 1 << (LEN_AT + LEN_BITS);

const _: () = assert!(STR_SLOT / 8 < 1 << LEN_BITS && STACK_DEPTH < 1 << LEN_BITS);

/// A number that may be unset: a value, and a meta word with a version and [`SET`].
///
/// Borrows a pair of an element's aux words and needs no lock. Every change takes effect atomically, by a
/// compare-exchange of both words.
///
/// # Invariants
///
/// Each change increments the version except for [`NumCell::restore`], which brings back the number that was taken
/// together with its version. So an equal meta word means an equal number, unless the version wraps, after 2^61
/// changes, during one operation. The version also tells how often the number was set and taken.
///
/// # Examples
///
/// ```
/// use rust_hist::{sync::Pair, tracing_map::NumCell};
///
/// let pair = Pair::zero();
/// let ts0 = NumCell::new(&pair);
///
/// assert_eq!(ts0.read(), None);
/// ts0.set(1500);
/// let taken = ts0.consume().ok_or("not set")?;
/// assert_eq!((taken.value, ts0.read()), (1500, None));
/// ts0.restore(&taken);
/// assert_eq!(ts0.read(), Some(1500));
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Copy)]
pub struct NumCell<'a> {
    pair: &'a Pair,
}

/// The result of [`NumCell::consume`]: the number that it has unset. A plain value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The number.
    pub value: u64,
    /// The cell right after the number was unset.
    pub left: Emptied,
}

/// A cell from which a number was taken; tells whether the cell has changed since. A plain value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Emptied {
    meta: u64,
}

/// The state of a number in a map that is being replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CellState {
    /// The number is set.
    Set,
    /// The number is not set.
    Unset,
    /// The other map has taken over the number, which is `None` if it was not set.
    Closed(Option<u64>),
}

impl<'a> NumCell<'a> {
    /// The number of words of a number.
    pub const WORDS: usize = 2;

    /// Returns the variable in `pair`.
    #[inline]
    pub fn new(pair: &'a Pair) -> Self {
        Self { pair }
    }

    /// Returns the variable [at](Pair::at) word `at` of an element; `None` if the element has no pair there.
    #[inline]
    pub fn at(aux: &'a [Pair], at: u16) -> Option<Self> {
        Pair::at(aux, at).map(Self::new)
    }

    /// Sets the number.
    #[inline]
    pub fn set(&self, value: u64) {
        // INVARIANT: increments the version.
        self.pair.set::<NUM_VERSION, SET>(value);
    }

    /// Returns the number, or `None` if it is not set.
    #[inline(always)]
    pub fn read(&self) -> Option<u64> {
        let PairValue { value, meta } = self.pair.load();

        (meta & SET != 0).then_some(value)
    }

    /// Returns whether the number is set. Another context may set or consume it right after the call.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.pair.meta() & SET != 0
    }

    /// Unsets the number and returns it, or `None` if it is not set.
    ///
    /// If several contexts consume the number, one of them gets it.
    #[inline]
    pub fn consume(&self) -> Option<Taken> {
        let (old, left) = self.pair.change(
            #[inline(always)]
            |old| {
                let meta = next(old.meta);

                (old.meta & SET != 0).then_some(PairValue { meta, ..old })
            },
        )?;

        Some(Taken {
            value: old.value,
            left: Emptied { meta: left.meta },
        })
    }

    /// Undoes a [`NumCell::consume`] of this cell, unless another context has set the number since: then the
    /// later number stays.
    #[inline]
    pub fn restore(&self, taken: &Taken) {
        // INVARIANT: restores the number and the version. No other context can restore the same version: the number was
        // not set in between, so no other context has taken it.
        self.pair.change(
            #[inline(always)]
            |old| {
                (old.meta == taken.left.meta).then_some(PairValue {
                    value: taken.value,
                    meta: old.meta.wrapping_sub(NUM_VERSION) | SET,
                })
            },
        );
    }

    /// Returns how often the number was taken and not restored, given that it was set `set` times since the cell was
    /// created. Only for a map that no larger one has replaced. Changes during the call may be missing in the result.
    pub fn taken(&self, set: u64) -> u64 {
        (self.pair.meta() / NUM_VERSION).saturating_sub(set)
    }
}

/// Returns the meta word after a change of the cell that unsets it.
#[inline]
fn next(meta: u64) -> u64 {
    // INVARIANT: increments the version.
    (meta & !SET).wrapping_add(NUM_VERSION)
}

/// Operations while another map replaces the cell's map, see [`Moving`](super::Moving).
impl NumCell<'_> {
    /// Returns whether the cell was ever written to.
    pub(super) fn was_written(&self) -> bool {
        self.pair.meta() != 0
    }

    /// Sets the number if the cell was never written to.
    pub(super) fn write_first(&self, value: u64) {
        let new = PairValue {
            value,
            meta: NUM_VERSION | SET,
        };

        // INVARIANT: changes the version. If the exchange fails, a later write has come first, and this one is
        // outdated.
        let _ = self.pair.cmpxchg(PairValue::default(), new);
    }

    /// Closes the cell, which no hit sets any more, and returns its number; `None` if it is not set.
    pub(super) fn close(&self) -> Option<u64> {
        let (old, _) = self.pair.change(|old| {
            let number = match old.meta & SET {
                0 => 0,
                _ => WITH_NUMBER,
            };

            Some(PairValue {
                meta: next(old.meta) | CLOSED | number,
                ..old
            })
        })?;

        (old.meta & SET != 0).then_some(old.value)
    }

    /// Returns the state of the number at this moment.
    #[inline]
    pub(super) fn state(&self) -> CellState {
        let PairValue { value, meta } = self.pair.load();

        match meta & (SET | CLOSED | WITH_NUMBER) {
            0 => CellState::Unset,
            SET => CellState::Set,
            CLOSED => CellState::Closed(None),
            _ => CellState::Closed(Some(value)),
        }
    }

    /// Calls [`NumCell::restore`]; returns whether the cell's only change since then was that it was closed.
    pub(super) fn restore_unless_closed(&self, taken: &Taken) -> bool {
        self.restore(taken);
        self.pair.meta() == taken.left.meta.wrapping_add(NUM_VERSION) | CLOSED
    }
}

/// A string or stack that may be unset: a meta word with version, length, [`BUSY`] and [`SET`], and then words of
/// content, which have no meaning beyond the length.
///
/// Borrows an element's aux words and needs no lock.
///
/// # Invariants
///
/// - The content changes only while [`BUSY`] is set, by the writer that has set it.
/// - The version changes with each change of the content, before the content does.
///
/// # Examples
///
/// ```
/// use rust_hist::{sync::Atomic, tracing_map::TextCell};
///
/// let words: Vec<_> = (0..4).map(|_| Atomic::<u64>::new(0)).collect();
/// let stack = TextCell::new(&words).ok_or("no words")?;
/// let mut copy = [0; 3];
///
/// assert!(stack.fill(|content| Some(content.put_all([0x1000, 0x2000].into_iter()))));
/// assert_eq!(stack.copy(copy.len(), |at, word| copy[at] = word), Some(2));
/// assert_eq!(copy, [0x1000, 0x2000, 0]);
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Copy)]
pub struct TextCell<'a> {
    meta: &'a Atomic<u64>,
    content: &'a [Atomic<u64>],
}

impl<'a> TextCell<'a> {
    /// Returns the variable in `words`; `None` if there are no words.
    #[inline]
    pub fn new(words: &'a [Atomic<u64>]) -> Option<Self> {
        let (meta, content) = words.split_first()?;

        Some(Self { meta, content })
    }

    /// Makes this context the only writer and returns the meta word; `None` if there is another writer.
    #[inline(always)]
    fn claim(&self) -> Option<u64> {
        loop {
            // ORDERING: pairs with `Release` of the meta word in `fill`, like the `cmpxchg` below.
            let old = self.meta.load(Acquire);
            if old & BUSY != 0 {
                return None;
            }
            // INVARIANT: increments the version and sets `BUSY` before the content changes.
            let busy = (old & !(TEXT_VERSION - 1)).wrapping_add(TEXT_VERSION) | BUSY;

            // ORDERING: pairs with `Release` of the meta word in `fill`: the stores of the last writer come
            // before those of this one. The `Release` of each word keeps the stores of this one after it.
            if self.meta.cmpxchg(old, busy, Full).is_ok() {
                return Some(busy);
            }
        }
    }

    /// Calls `fill` to write the content. Sets the variable to the number of words that `fill` returns, or unsets it if
    /// that is `None`.
    ///
    /// Returns `false` and does nothing if another context is writing the variable. To readers, this looks like a write
    /// that the other context has overwritten at once.
    #[inline(always)]
    pub fn fill(&self, fill: impl FnOnce(WordWriter<'a>) -> Option<usize>) -> bool {
        let Some(busy) = self.claim() else {
            return false;
        };
        let set = match fill(WordWriter::new(self.content)) {
            // CAST: widens `usize`. The content of a variable has less than `2^LEN_BITS` words, which an
            // assertion in this file checks.
            Some(len) => ((len as u64 & ((1 << LEN_BITS) - 1)) << LEN_AT).wrapping_add(SET),
            None => 0,
        };

        // INVARIANT: this context has set `BUSY`, and makes no change to the content after this.
        // OVERFLOW: `busy` has the bit `BUSY` and none of the bits of `set`.
        // ORDERING: pairs with `Acquire` of the meta word in `claim` and `copy`: the stores of the content come before.
        self.meta
            .store(busy.wrapping_sub(BUSY).wrapping_add(set), Release);
        true
    }

    /// Returns whether the variable is set; `false` if other contexts keep writing it.
    #[inline]
    pub fn is_set(&self) -> bool {
        for _ in 0..READ_TRIES {
            // ORDERING: pairs with `Release` of the meta word in `fill`, so that a caller which copies the
            // content afterwards reads this one or a later one.
            let meta = self.meta.load(Acquire);
            if meta & BUSY == 0 {
                return meta & SET != 0;
            }
        }
        false
    }

    /// Passes at most `max` words of the content to `put`, with their index, and returns their number; `None`
    /// if the variable is not set, or if other contexts keep writing it.
    ///
    /// `put` may be called again from index 0 on, so the words passed to it are valid only once this returns a number.
    #[inline]
    pub fn copy(&self, max: usize, mut put: impl FnMut(usize, u64)) -> Option<usize> {
        self.read(
            #[inline(always)]
            |content| {
                let mut len = 0;

                for word in content.iter().take(max) {
                    put(len, load(word));
                    // OVERFLOW: at most the length of a slice.
                    len = len.wrapping_add(1);
                }
                len
            },
        )
    }

    /// Copies the content to `to`, as far as it fits, and returns the number of words; `None` as for
    /// [`TextCell::copy`].
    #[inline]
    pub fn copy_to(&self, to: WordWriter<'_>) -> Option<usize> {
        self.read(
            #[inline(always)]
            |content| to.put_all(content.iter().map(load)),
        )
    }

    /// Returns the result of `take` for the content; `None` if the variable is not set, or if other contexts keep
    /// writing it. `take` may be called several times; only the last call's content is valid.
    #[inline(always)]
    fn read<T>(&self, mut take: impl FnMut(&'a [Atomic<u64>]) -> T) -> Option<T> {
        for _ in 0..READ_TRIES {
            // ORDERING: pairs with `Release` of the meta word in `fill`: the loads below return the content
            // that belongs to this meta word, or words of a later one.
            let meta = self.meta.load(Acquire);
            if meta & (SET | BUSY) == 0 {
                return None;
            }
            if meta & BUSY != 0 {
                continue;
            }
            // CAST: the mask leaves `LEN_BITS` bits.
            let len = (meta.wrapping_shr(LEN_AT) & ((1 << LEN_BITS) - 1)) as usize;
            let taken = take(self.content.get(..len).unwrap_or(self.content));
            // ORDERING: the `Acquire` of the loads of the content keeps this load after them.
            if self.meta.load(Acquire) == meta {
                return Some(taken);
            }
        }
        None
    }
}

/// Reads a word of the content.
#[inline]
fn load(word: &Atomic<u64>) -> u64 {
    // ORDERING: pairs with `Release` of the words that a `WordWriter` writes: if this is a word of a later content, the load
    // of the meta word that follows returns one that is at least as late.
    word.load(Acquire)
}
