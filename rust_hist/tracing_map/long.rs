// SPDX-License-Identifier: GPL-2.0

//! Keys of many words: strings and stacks.
//!
//! Most words of such a key are zeros, since there is room for the longest string. They are neither
//! hashed nor copied: a word that is 0 adds nothing to the hash, and the length without the zeros at the
//! end is a part of it. So a key can be looked for where it lies, in the record.
//!
//! Context: any, NMI included.

use super::{
    account::Values,
    hash::Factors,
    place::Place,
    shape::CONTROL_WORDS,
    slot::Slot,
    Elt,
    Ending,
    Glance,
    KeyHash,
    Map,
    Probe, //
};
use crate::{
    limits::{
        BITS_MAX,
        KEY_WORDS_MAX, //
    },
    sync::{
        Acquire,
        Atomic,
        Relaxed, //
    }, //
};
use core::ops::Deref;

/// The bits of a hash that have the length of a key, where keys are long. The others choose the slot.
const LEN_MASK: u64 = 0b11_1111 << LEN_SHIFT;
/// Above the half that slots do not keep.
const LEN_SHIFT: u32 = 32;

const _: () = assert!(KEY_WORDS_MAX as u64 <= LEN_MASK >> LEN_SHIFT);
const _: () = assert!(BITS_MAX + 2 + LEN_MASK.count_ones() <= u64::BITS - LEN_SHIFT);

/// A key that lies in pieces.
pub trait Pieces {
    /// Hands each word that may be other than 0 on, with its place in the key, in ascending order. Each
    /// call hands on the same.
    fn each(&self, found: impl FnMut(usize, u64));

    /// Returns the sum of all words, each times its factor, and how many words there are up to the last one
    /// that is not 0.
    fn sum(&self, factors: &Factors) -> (u64, usize);

    /// Says whether `held` begins with the words of the key, up to the last one of them that is not 0.
    fn is_in(&self, held: &[Atomic<u64>]) -> bool;

    /// As [`Pieces::is_in`], of what is in `words` from `at` on.
    #[inline(always)]
    fn is_at(&self, words: &[Atomic<u64>], at: usize) -> bool {
        words.get(at..).is_some_and(|held| self.is_in(held))
    }
}

/// A key in one piece, whose last word is not 0.
impl Pieces for &[u64] {
    #[inline(always)]
    fn each(&self, mut found: impl FnMut(usize, u64)) {
        for (at, &word) in (0..self.len()).zip(*self) {
            found(at, word);
        }
    }

    #[inline(always)]
    fn sum(&self, factors: &Factors) -> (u64, usize) {
        let mut sum: u64 = 0;
        // As many, so that there is one number to count to.
        let factors = factors.get(..self.len()).unwrap_or(&[]);

        in_steps(self, factors, |word, factor| {
            sum = sum.wrapping_add(word.wrapping_mul(*factor));
        });
        (sum, self.len())
    }

    #[inline(always)]
    fn is_in(&self, held: &[Atomic<u64>]) -> bool {
        self.is_at(held, 0)
    }

    #[inline(always)]
    fn is_at(&self, words: &[Atomic<u64>], at: usize) -> bool {
        let mut differ = 0;
        // OVERFLOW: below the number of words. As above.
        let Some(held) = words.get(at..at.wrapping_add(self.len())) else {
            return false;
        };

        in_steps(held, self, |held, wanted| {
            // ORDERING: see `Map::glance_at`.
            differ |= held.load(Relaxed) ^ *wanted;
        });
        differ == 0
    }
}

/// A key that lies in pieces, with its hash: to look for it in more than one map.
pub struct Hashed<'k, K> {
    key: &'k K,
    hash: u64,
}

/// How many words of a key in one piece are gone through between two looks at whether there are more.
const STEP: usize = 4;

/// Calls `each` for each pair of `a` and `b`, which are of one length. Of a plain loop the compiler makes these steps,
/// too, and a loop for what is left behind them, which takes as long.
#[inline(always)]
fn in_steps<A, B>(a: &[A], b: &[B], mut each: impl FnMut(&A, &B)) {
    let (mut steps_a, mut steps_b) = (a.chunks_exact(STEP), b.chunks_exact(STEP));

    for (a, b) in steps_a.by_ref().zip(steps_b.by_ref()) {
        for (a, b) in a.iter().zip(b) {
            each(a, b);
        }
    }
    match (steps_a.remainder(), steps_b.remainder()) {
        ([a0, a1, a2], [b0, b1, b2]) => {
            each(a0, b0);
            each(a1, b1);
            each(a2, b2);
        }
        ([a0, a1], [b0, b1]) => {
            each(a0, b0);
            each(a1, b1);
        }
        ([a0], [b0]) => each(a0, b0),
        _ => {}
    }
}

/// Returns the hash of a key, its length included.
#[inline(always)]
fn hash_of(hash: impl KeyHash, key: &impl Pieces) -> u64 {
    let (sum, len) = key.sum(hash.factors());

    // CAST: at most `KEY_WORDS_MAX`.
    (hash.end(sum) & !LEN_MASK) | ((len as u64) << LEN_SHIFT)
}

impl<S, H> Map<S, H>
where
    S: Deref<Target = [Atomic<u64>]>,
    H: KeyHash,
{
    /// [`Map::find`] for long keys.
    #[inline(never)]
    pub(super) fn find_long<'k>(&self, key: &'k [u64]) -> Option<(&'k [u64], u64, Probe)> {
        if key.len() > self.shape.key_words {
            return None;
        }
        let len = key.iter().rposition(|&word| word != 0);
        // OVERFLOW: less than the words of a key.
        let key = key.get(..len.map_or(0, |last| last.wrapping_add(1)))?;

        let hash = hash_of(self.hash, &key);
        Some((key, hash, self.probe(key, hash, self.home(hash))))
    }

    /// As [`Map::glance`], of a long key that lies in pieces.
    #[inline(always)]
    pub fn glance_at(&self, key: &impl Pieces) -> Glance {
        self.glance_from(self.words(), key, hash_of(self.hash, key))
    }

    /// As [`Map::hit_at_once`], of a long key that lies in pieces.
    #[inline(always)]
    pub fn hit_pieces_at_once(
        &self,
        key: &impl Pieces,
        place: impl Place,
        values: &impl Values,
    ) -> bool {
        let words = self.words();
        let seen = self.glance_from(words, key, hash_of(self.hash, key));

        self.count_seen(words, seen, place, values)
    }

    /// A long key with its hash.
    #[inline(always)]
    pub fn hashed<'k, K: Pieces>(&self, key: &'k K) -> Hashed<'k, K> {
        let hash = hash_of(self.hash, key);

        Hashed { key, hash }
    }

    /// As [`Map::glance_at`].
    #[inline(always)]
    pub fn glance_hashed(&self, key: &Hashed<'_, impl Pieces>) -> Glance {
        self.glance_from(self.words(), key.key, key.hash)
    }

    /// As [`Map::lookup`], of a long key that lies in pieces; all maps with the same [hash](KeyHash) have the same
    /// hash of a key.
    #[inline(always)]
    pub fn look_hashed(&self, key: &Hashed<'_, impl Pieces>) -> Option<Elt> {
        let Hashed { key, hash } = *key;
        let (words, shape) = (self.words(), self.shape());
        let mut at = self.home(hash);

        // There are more slots than elements, so this ends at a free one at the latest.
        for _ in 0..=shape.slot_mask {
            // OVERFLOW: a slot's number is at most `slot_mask`.
            let slot = words.get(CONTROL_WORDS.wrapping_add(at))?;
            // ORDERING: as in `glance_from`, here and below.
            let content = Slot(slot.load(Acquire));

            if content.is_free() {
                return None;
            }
            if let Some(elt) = content.elt_if(hash) {
                if key.is_at(words, shape.key_at(elt)) {
                    return Some(elt);
                }
            }
            at = at.wrapping_add(1) & shape.slot_mask;
        }
        None
    }

    /// Counts a call, unless what was seen says that there is more to do.
    #[inline(always)]
    fn count_seen(
        &self,
        words: &[Atomic<u64>],
        seen: Glance,
        place: impl Place,
        values: &impl Values,
    ) -> bool {
        match seen {
            Glance::Found(elt) => place.hit(words, self.shape(), elt, values),
            Glance::Full => place.count(words, self.shape(), Ending::DroppedFull),
            Glance::Unclear => return false,
        }
        true
    }

    /// As [`Map::hit_pieces_at_once`], of a key in one piece, whose last word is not 0: without a call, if it is in
    /// the first of its slots, as most are.
    #[inline(always)]
    pub fn hit_piece_at_once(&self, key: &[u64], place: impl Place, values: &impl Values) -> bool {
        let words = self.words();
        let hash = hash_of(self.hash, &key);

        match self.at_home(words, key, hash) {
            Some(elt) => {
                place.hit(words, self.shape(), elt, values);
                true
            }
            None => self.hit_piece_beyond(key, hash, place, values),
        }
    }

    /// Returns the element of a key with this hash, if it is in the first of its slots.
    #[inline(always)]
    fn at_home(&self, words: &[Atomic<u64>], key: &[u64], hash: u64) -> Option<Elt> {
        // OVERFLOW: a slot's number is at most `slot_mask`.
        let slot = words.get(CONTROL_WORDS.wrapping_add(self.home(hash)))?;
        // ORDERING: as in `glance_from`.
        let content = Slot(slot.load(Acquire));

        if content.is_free() {
            return None;
        }
        let elt = content.elt_if(hash)?;
        key.is_at(words, self.shape().key_at(elt)).then_some(elt)
    }

    /// As [`Map::hit_piece_at_once`], of a key with this hash that is not in the first of its slots.
    #[cold]
    #[inline(never)]
    fn hit_piece_beyond(
        &self,
        key: &[u64],
        hash: u64,
        place: impl Place,
        values: &impl Values,
    ) -> bool {
        let words = self.words();
        let seen = self.glance_from(words, &key, hash);

        self.count_seen(words, seen, place, values)
    }

    /// As [`Map::glance_at`]; `words` are those of the map, `hash` is that of the key.
    #[inline(always)]
    fn glance_from(&self, words: &[Atomic<u64>], key: &impl Pieces, hash: u64) -> Glance {
        let shape = self.shape();
        // OVERFLOW: a slot's number is at most `slot_mask`.
        let mut at = CONTROL_WORDS.wrapping_add(self.home(hash));

        // The walk ends at a free slot, or behind the last one, where it would begin anew.
        while at < shape.keys_at {
            let Some(slot) = words.get(at) else {
                break;
            };
            // ORDERING: pairs with `Release` in `publish`; the key of the element is visible.
            let content = Slot(slot.load(Acquire));

            if content.is_free() {
                return self.glance_at_free(words, slot);
            }
            if let Some(elt) = content.elt_if(hash) {
                // ORDERING: the `Acquire` above; the key of a published element does not change. Hash and
                // length are equal: so no word behind the key is looked at.
                if key.is_at(words, shape.key_at(elt)) {
                    return Glance::Found(elt);
                }
            }
            // OVERFLOW: below the number of words.
            at = at.wrapping_add(1);
        }
        Glance::Unclear
    }
}
