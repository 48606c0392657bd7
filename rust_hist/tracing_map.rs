// SPDX-License-Identifier: GPL-2.0

//! A lock-free map from keys to sums, of fixed size.
//!
//! C counterpart: [`kernel/trace/tracing_map.c`](srctree/kernel/trace/tracing_map.c).
//!
//! The table is open-addressed with four times as many slots as there are elements. A key that is not
//! there takes an element **first**, writes its key to it, and then publishes it with one
//! compare-exchange of a free slot. So a slot is free or complete and never anything between: nobody
//! waits for anybody, whoever interrupts an inserter finds a consistent table, and a slot once taken
//! stays, so that no probe path is ever cut (the C implementation claims the slot first, and has to
//! free it again when no element is left). Two inserters of one key both take an element; the one
//! that comes second finds the first one's slot and gives its element back.
//!
//! Sums are kept in shards, one for each CPU where memory allows, and added up by the reader.
//!
//! Context: any, NMI included. Never allocates, sleeps, locks or panics.

mod account;
mod cell;
mod glance;
mod hash;
mod long;
mod place;
mod pool;
mod rows;
mod shape;
mod slot;
pub mod sort;
mod track;

pub use self::{
    account::{
        Account,
        Ending,
        Shard,
        Values, //
    },
    cell::{
        NumCell,
        Taken,
        TextCell, //
    },
    glance::Glance,
    hash::{
        Factors,
        HashSeed,
        KeyHash,
        SeededHash, //
    },
    long::{
        Hashed,
        Pieces, //
    },
    place::{
        Place,
        Sharing, //
    },
    rows::{
        copy_words,
        Row,
        Rows, //
    },
    shape::{
        Dimensions,
        Shape,
        SHORT_KEY_WORDS, //
    },
    track::{
        track_value,
        RowWriter,
        TrackCell,
        Tracked,
        When, //
    }, //
};

use self::{
    pool::Pool,
    shape::CONTROL_WORDS,
    slot::Slot, //
};
use crate::sync::{
    Acquire,
    Atomic,
    Pair,
    Relaxed,
    Release, //
};
use core::{
    iter,
    ops::Deref, //
};

/// An element of a map, by its index. Elements are never freed, so it is valid as long as the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Elt(u32);

impl Elt {
    /// Returns the index, less than the number of elements of the map.
    #[inline(always)]
    pub fn index(self) -> usize {
        // CAST: `u32` fits in `usize` on every architecture that Linux supports.
        self.0 as usize
    }
}

/// The map.
///
/// Any number of contexts may use it at once; it needs no lock. `S` is the memory, which the map
/// keeps as long as it lives: a `KVVec` in the kernel, a `Vec` on the host.
///
/// # Invariants
///
/// - A slot that names an element names it for ever, and no other slot names it.
/// - The key of an element that a slot names is complete and will not change.
/// - No two slots name elements with equal keys: an inserter looks at each slot of the key's probe
///   path up to the one that it takes, and none of them is ever freed.
///
/// # Examples
///
/// ```
/// use rust_hist::sync::Atomic;
/// use rust_hist::tracing_map::{Dimensions, Map, SeededHash, Shape};
///
/// let dimensions = Dimensions { bits: 7, key_words: 1, aux_words: 0, sums: 2 };
/// let shape = Shape::new(dimensions, 1).ok_or("out of range")?;
/// let words: Vec<Atomic<u64>> = (0..shape.words()).map(|_| Atomic::<u64>::new(0)).collect();
/// let map = Map::new(shape, words, SeededHash::default()).ok_or("too little memory")?;
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

/// Returns `n` words from `at` on, none if there are not that many.
#[inline(always)]
fn part(words: &[Atomic<u64>], at: usize, n: usize) -> &[Atomic<u64>] {
    words
        .get(at..)
        .and_then(|rest| rest.get(..n))
        .unwrap_or(&[])
}

/// None; by a call, so that a hit need not choose between two addresses.
#[cold]
#[inline(never)]
fn no_words() -> &'static [Atomic<u64>] {
    &[]
}

/// Where a key is, or where it would go.
enum Probe {
    Found(Elt),
    Free(usize),
    /// The whole table was seen, which the number of elements excludes.
    Nowhere,
}

impl<S, H> Map<S, H>
where
    S: Deref<Target = [Atomic<u64>]>,
    H: KeyHash,
{
    /// Returns an empty map in `storage`, which must be all 0; `None` if it is too small, or not
    /// aligned to 16 bytes where elements have aux words.
    pub fn new(shape: Shape, storage: S, hash: H) -> Option<Self> {
        if storage.len() < shape.words() {
            return None;
        }
        if shape.aux_words > 0 && Pair::new(&storage).is_none() {
            return None;
        }
        Some(Self {
            shape,
            storage,
            hash,
        })
    }

    /// Returns the shape that the map was made with.
    #[inline(always)]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns what the words of long keys are multiplied by; see [`KeyHash::factors`].
    #[inline(always)]
    pub fn factors(&self) -> &'static Factors {
        self.hash.factors()
    }

    #[inline(always)]
    fn words(&self) -> &[Atomic<u64>] {
        &self.storage
    }

    #[inline(always)]
    fn slots(&self) -> &[Atomic<u64>] {
        self.words()
            .get(CONTROL_WORDS..self.shape.keys_at)
            .unwrap_or(&[])
    }

    #[inline(always)]
    fn pool(&self) -> Pool<'_> {
        Pool::new(self.words(), &self.shape)
    }

    /// Returns the key words of an element.
    #[inline(always)]
    fn key(&self, elt: Elt) -> &[Atomic<u64>] {
        part(self.words(), self.shape.key_at(elt), self.shape.key_words)
    }

    /// Returns the aux words of an element.
    #[inline(always)]
    pub fn aux(&self, elt: Elt) -> &[Atomic<u64>] {
        let (at, end) = self.aux_at(elt);

        match self.words().get(at..end) {
            Some(aux) => aux,
            None => no_words(),
        }
    }

    /// Says whether a published element whose key has the hash of `key` holds it.
    #[inline(always)]
    fn holds(&self, elt: Elt, key: &[u64]) -> bool {
        let at = self.shape.key_at(elt);

        if self.shape.has_long_keys() {
            // With equal hashes it is most likely the key, so to stop at a difference does not pay. The
            // length is in the hash, and what is behind it is 0 in both.
            let held = part(self.words(), at, self.shape.key_words);
            let differ = held.iter().zip(key).fold(0, |differ, (held, wanted)| {
                // ORDERING: as below.
                differ | (held.load(Relaxed) ^ *wanted)
            });
            return differ == 0;
        }

        key.iter().enumerate().all(|(i, wanted)| {
            self.words()
                .get(at.wrapping_add(i))
                // ORDERING: the slot was read with `Acquire`; its element's key does not change.
                .is_some_and(|held| held.load(Relaxed) == *wanted)
        })
    }

    /// Follows the probe path of `key`, which is as [`Map::find`] returns it, from slot `at` on.
    #[inline(always)]
    fn probe(&self, key: &[u64], hash: u64, mut at: usize) -> Probe {
        // There are more slots than elements, so this ends at a free one at the latest.
        for _ in 0..self.shape.slot_mask.wrapping_add(1) {
            // OVERFLOW: a slot's number is at most `slot_mask`.
            let Some(slot) = self.words().get(CONTROL_WORDS.wrapping_add(at)) else {
                break;
            };
            // ORDERING: pairs with `Release` in `publish`; the key of the element is visible.
            let slot = Slot(slot.load(Acquire));

            if slot.is_free() {
                return Probe::Free(at);
            }
            if let Some(elt) = slot.elt_if(hash) {
                if self.holds(elt, key) {
                    return Probe::Found(elt);
                }
            }
            at = at.wrapping_add(1) & self.shape.slot_mask;
        }
        Probe::Nowhere
    }

    /// Returns the slot where the probe path of a hash begins.
    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        // CAST: the top bits alone, fewer than 32.
        hash.wrapping_shr(self.shape.hash_shift) as usize
    }

    /// Returns `key` without the zeros at its end if keys are long, its hash, and where the key is or
    /// would go; `None` if it is no key of this map.
    #[inline(always)]
    fn find<'k>(&self, key: &'k [u64]) -> Option<(&'k [u64], u64, Probe)> {
        if self.shape.has_long_keys() {
            return self.find_long(key);
        }
        if key.len() != self.shape.key_words {
            return None;
        }
        // The most frequent length gets code of its own, without loops over words.
        if let [word] = key {
            let one = [*word];
            let hash = self.hash(&one);
            return Some((key, hash, self.probe(&one, hash, self.home(hash))));
        }
        let hash = self.hash(key);
        Some((key, hash, self.probe(key, hash, self.home(hash))))
    }

    /// Returns the element of `key`, or `None` if the key is not in the map.
    ///
    /// A key has as many words as the shape says. Of one with more than four, words that are 0 may be
    /// missing at the end.
    ///
    /// It sees every key whose insertion is over, and those in progress or not.
    #[inline]
    pub fn lookup(&self, key: &[u64]) -> Option<Elt> {
        match self.find(key)? {
            (_, _, Probe::Found(elt)) => Some(elt),
            (_, _, Probe::Free(_) | Probe::Nowhere) => None,
        }
    }

    /// Returns the element of `key`, which is inserted if it is not in the map, or `None` if all
    /// elements are taken. For the words of a key see [`Map::lookup`].
    ///
    /// For a new key `init` writes what belongs in the element's aux words before anybody else can
    /// see it. It has to write all that readers expect there, since another inserter may have used
    /// the element before and given it back. It may run and its work be thrown away.
    ///
    /// `None` means that all elements were taken and the key was not in the map, both at some moment
    /// of the call. Another context may be about to publish the same key with the last element.
    #[inline(always)]
    pub fn insert<F>(&self, key: &[u64], init: F) -> Option<Elt>
    where
        F: FnOnce(&[Atomic<u64>]),
    {
        match self.find(key)? {
            (_, _, Probe::Found(elt)) => Some(elt),
            (key, hash, Probe::Free(at)) => self.insert_new(key, hash, at, init),
            (_, _, Probe::Nowhere) => None,
        }
    }

    /// Inserts `key`, which is in no slot from its home up to slot `at`, and that one was free.
    #[cold]
    #[inline(never)]
    fn insert_new<F>(&self, key: &[u64], hash: u64, at: usize, init: F) -> Option<Elt>
    where
        F: FnOnce(&[Atomic<u64>]),
    {
        let pool = self.pool();
        let Some(elt) = pool.take() else {
            // The last element may have gone to this very key meanwhile.
            return match self.probe(key, hash, at) {
                Probe::Found(elt) => Some(elt),
                Probe::Free(_) | Probe::Nowhere => None,
            };
        };

        // Another inserter may have left its key there.
        let rest = iter::repeat(&0);
        for (held, word) in self.key(elt).iter().zip(key.iter().chain(rest)) {
            // ORDERING: ours alone until `publish`, whose `Release` orders this before the slot.
            held.store(*word, Relaxed);
        }
        init(self.aux(elt));

        let found = self.publish(key, hash, at, elt);
        if found != Some(elt) {
            pool.give_back(elt);
        }
        found
    }

    /// Puts `elt`, which holds `key`, in the first free slot from `at` on, and returns it; or returns
    /// the element that another inserter of the key was faster with.
    fn publish(&self, key: &[u64], hash: u64, mut at: usize, elt: Elt) -> Option<Elt> {
        let slots = self.slots();

        for _ in 0..slots.len() {
            // INVARIANT: the element is ours and its key is complete; a slot changes only from free.
            // ORDERING: pairs with `Acquire` in `probe` and `Published`; key and aux words are
            // visible before the slot.
            let won = slots
                .get(at)?
                .cmpxchg(Slot::FREE.0, Slot::new(hash, elt).0, Release)
                .is_ok();
            if won {
                return Some(elt);
            }

            // Somebody has taken the slot. A failed `cmpxchg` orders nothing, so look again.
            match self.probe(key, hash, at) {
                Probe::Found(other) => return Some(other),
                Probe::Free(next) => at = next,
                Probe::Nowhere => return None,
            }
        }
        None
    }

    /// Returns how many elements were ever taken from the pool; all that the map holds have an index
    /// below it.
    pub fn used(&self) -> usize {
        self.pool().used()
    }

    /// Visits the elements that the map holds, in no particular order.
    ///
    /// Keys inserted meanwhile may be among them or not; none comes twice.
    pub fn published(&self) -> impl Iterator<Item = Elt> + '_ {
        self.slots()
            .iter()
            // ORDERING: pairs with `Release` in `publish`; key and aux words are visible.
            .filter_map(|slot| Slot(slot.load(Acquire)).elt())
    }
}
