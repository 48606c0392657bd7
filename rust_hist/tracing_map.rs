// SPDX-License-Identifier: GPL-2.0

//! A lock-free map from keys to sums, of fixed size.
//!
//! C counterpart: [`kernel/trace/tracing_map.c`](srctree/kernel/trace/tracing_map.c).
//!
//! The table is open-addressed with four times as many slots as elements; `tracing_map/probe.rs` has the lookup and the
//! insertion of keys.
//!
//! Sums are kept in shards, one for each CPU where memory allows, and added up by the reader.
//!
//! Context: any, NMI included. Never allocates, sleeps, locks or panics.

mod account;
mod cell;
mod expire;
mod grow;
mod hash;
mod key;
mod moving;
mod pool;
mod probe;
mod reuse;
mod rows;
mod shape;
mod slot;
pub mod sort;
mod tally;
mod track;
mod wide;
mod writer;

pub use self::{
    account::{
        Account,
        Ending,
        Loss,
        Shard,
        Values, //
    },
    cell::{
        Emptied,
        NumCell,
        Taken,
        TextCell, //
    },
    expire::{
        Generations,
        Left,
        Starts, //
    },
    hash::{
        Factors,
        HashSeed,
        KeyHash,
        SeededHash,
        Sum, //
    },
    key::{
        add_word,
        in_steps,
        long_hash,
        Key,
        Whole,
        SHORT_KEY_WORDS,
        STEP,
        UNROLLED_MAX, //
    },
    moving::{
        Missing,
        Moving,
        TakenFrom, //
    },
    probe::{
        address_of,
        Inserter,
        Lookup,
        MapView, //
    },
    rows::{
        copy_pairs,
        copy_words,
        Row,
        Rows, //
    },
    shape::{
        Dimensions,
        Shape, //
    },
    tally::{
        Gauge,
        Merge,
        Number,
        Tallies,
        Tally, //
    },
    track::{
        is_tracked,
        track_value,
        Order,
        TrackCell,
        Tracked,
        When, //
    },
    writer::WordWriter, //
};

use self::{
    pool::Pool,
    shape::CONTROL_WORDS,
    slot::Slot, //
};
use crate::sync::{
    Acquire,
    Atomic,
    Pair, //
};
use core::ops::Deref;

/// An element of a map, by its index. Elements are never freed, so an `Elt` is valid as long as its map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Elt(u32);

impl Elt {
    /// Returns the index, less than the number of elements of the map.
    #[inline]
    pub fn index(self) -> usize {
        // CAST: `u32` fits in `usize` on every architecture that Linux supports.
        self.0 as usize
    }
}

/// The map.
///
/// Any number of contexts may use the map at once without a lock. `S` is the memory, which the map owns: a `KVVec` in
/// the kernel, a `Vec` on the host.
///
/// # Invariants
///
/// - A slot that names an element never changes again, and no other slot names that element.
/// - The key of an element that a slot names is complete and will not change.
/// - No two slots name elements with equal keys: an inserter looks at each slot of the key's probe path up to the one
///   that it takes, and no slot on the path is ever freed.
///
/// # Examples
///
/// ```
/// use rust_hist::sync::Pair;
/// use rust_hist::tracing_map::{Dimensions, Map, SeededHash, Shape};
///
/// let dimensions = Dimensions { bits: 7, key_words: 1, sums: 2, ..Dimensions::default() };
/// let shape = Shape::new(dimensions, 1).ok_or("out of range")?;
/// let storage: Vec<Pair> = (0..shape.pairs()).map(|_| Pair::zero()).collect();
/// let map = Map::new(shape, storage, SeededHash::default()).ok_or("too little memory")?;
///
/// let elt = map.insert(&[42], |_aux| ()).ok_or("full")?;
/// map.shard(0).hit(elt, &[1000]);
///
/// assert_eq!(map.lookup(&[42]), Some(elt));
/// assert_eq!(map.sum(elt, 1), 1000);
/// assert_eq!(map.account().hits, 1);
/// # Ok::<(), &str>(())
/// ```
pub struct Map<S, H = SeededHash> {
    shape: Shape,
    storage: S,
    hash: H,
}

/// Returns `n` words from `at` on; an empty slice if there are fewer.
#[inline]
fn part(words: &[Atomic<u64>], at: usize, n: usize) -> &[Atomic<u64>] {
    words
        .get(at..)
        .and_then(|rest| rest.get(..n))
        .unwrap_or(&[])
}

/// Returns an empty slice; by a call, so that a hit need not choose between two addresses.
#[cold]
#[inline(never)]
fn no_pairs() -> &'static [Pair] {
    &[]
}

impl<S, H> Map<S, H>
where
    S: Deref<Target = [Pair]>,
    H: KeyHash,
{
    /// Returns an empty map in `storage`, which must be all 0; `None` if `storage` is too small.
    pub fn new(shape: Shape, storage: S, hash: H) -> Option<Self> {
        if storage.len() < shape.pairs() {
            return None;
        }
        Some(Self {
            shape,
            storage,
            hash,
        })
    }

    /// Returns the shape with which the map was created.
    #[inline]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the view of the map through which hits use it.
    #[inline]
    pub fn view(&self) -> MapView<'_, S, H> {
        MapView::new(self)
    }

    /// Returns all words of the map.
    #[inline]
    pub fn words(&self) -> &[Atomic<u64>] {
        Pair::words(&self.storage)
    }

    #[inline]
    fn slots(&self) -> &[Atomic<u64>] {
        self.words()
            .get(CONTROL_WORDS..self.shape.keys_at)
            .unwrap_or(&[])
    }

    #[inline]
    fn pool(&self) -> Pool<'_> {
        Pool::new(self.words(), &self.shape)
    }

    /// Returns the key words of an element.
    #[inline]
    pub fn key(&self, elt: Elt) -> &[Atomic<u64>] {
        part(self.words(), self.shape.key_at(elt), self.shape.key_words)
    }

    /// Returns the aux words of an element, in pairs.
    #[inline(always)]
    pub fn aux(&self, elt: Elt) -> &[Pair] {
        self.view().aux(elt)
    }

    /// Returns the element of `key`, or `None` if the key is not in the map.
    ///
    /// A key has as many words as the shape says. Of a key with more than two words, words that are 0 may be left out
    /// at the end.
    ///
    /// Finds every key whose insertion is complete; a key whose insertion is in progress may be found or not.
    pub fn lookup(&self, key: &[u64]) -> Option<Elt> {
        let key = Whole::new(key, &self.shape)?;

        self.view().get(&key, key.hash(self.hash))
    }

    /// Returns the element of `key`, which is inserted if it is not in the map, or `None` if all elements are taken.
    /// See [`Map::lookup`] for the words of a key, [`Inserter::init`] for `init`, and [`Map::insert_at`].
    pub fn insert(&self, key: &[u64], init: impl FnOnce(&[Atomic<u64>])) -> Option<Elt> {
        let key = Whole::new(key, &self.shape)?;
        let hash = key.hash(self.hash);

        match self.view().find(&key, hash) {
            Lookup::Found(elt) => Some(elt),
            Lookup::Full => None,
            Lookup::Absent(at) => self.insert_at(key, hash, at, init),
        }
    }

    /// Returns the number of elements that were ever taken from the pool; all elements in the map have an index below
    /// it.
    pub fn used(&self) -> usize {
        self.pool().used()
    }

    /// Visits the elements in the map, in no particular order.
    ///
    /// Keys inserted meanwhile may be visited or not; no key is visited twice.
    pub fn published(&self) -> impl Iterator<Item = Elt> + '_ {
        self.slots()
            .iter()
            // ORDERING: pairs with `Release` in `publish`; key and aux words are visible.
            .filter_map(|slot| Slot(slot.load(Acquire)).elt())
    }
}
