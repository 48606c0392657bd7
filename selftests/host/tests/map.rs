// SPDX-License-Identifier: GPL-2.0

//! The tracing map, one context at a time: limits, contents, memory, hash.

#![cfg(not(loom))]

mod common;

use common::{map, shape, Quarters, Same, Words};
use proptest::prelude::*;
use rust_hist::sync::{Pair, Relaxed};
use rust_hist::tracing_map::{
    address_of, copy_pairs, Account, Dimensions, Elt, Ending, HashSeed, Key, KeyHash, Loss, Map,
    Rows, SeededHash, Shape, Whole,
};
use std::collections::HashSet;
use std::sync::OnceLock;

fn dimensions(bits: u32, key_words: usize, aux_words: usize, sums: usize) -> Dimensions {
    Dimensions {
        bits,
        key_words,
        aux_words,
        sums,
        ..Dimensions::default()
    }
}

fn hit<H: KeyHash>(map: &Map<Words, H>, cpu: u32, key: &[u64]) -> Option<Elt> {
    let elt = map.insert(key, |_| ());
    let shard = map.shard(cpu);
    match elt {
        Some(elt) => shard.hit(elt, &[0; 0]),
        None => shard.count(Ending::DroppedFull),
    }
    elt
}

#[test]
fn dimensions_out_of_range_are_refused() {
    assert!(Shape::new(dimensions(10, 129, 8192, 81), 1).is_some());
    assert!(Shape::new(dimensions(21, 1, 0, 1), 1).is_none());
    let grows_to = |grows_to| Dimensions {
        grows_to,
        ..dimensions(7, 1, 0, 1)
    };
    assert!(Shape::new(grows_to(20), 1).is_some());
    assert!(Shape::new(grows_to(21), 1).is_none());
    assert!(Shape::new(dimensions(7, 0, 0, 1), 1).is_none());
    assert!(Shape::new(dimensions(7, 130, 0, 1), 1).is_none());
    assert!(Shape::new(dimensions(7, 1, 8194, 1), 1).is_none());
    assert!(Shape::new(dimensions(7, 1, 3, 1), 1).is_none());
    assert!(Shape::new(dimensions(7, 1, 0, 0), 1).is_none());
    assert!(Shape::new(dimensions(7, 1, 0, 82), 1).is_none());
    assert!(Shape::new(dimensions(7, 1, 0, 1), 0).is_none());
}

#[test]
fn too_little_memory_is_refused() {
    let shape = shape(7, 1, 0, 1, 1);
    let pairs = |n: usize| -> Words { (0..n).map(|_| Pair::zero()).collect() };

    assert!(
        Map::<_, SeededHash>::new(shape, pairs(shape.pairs() - 1), SeededHash::default()).is_none()
    );
    assert!(
        Map::<_, SeededHash>::new(shape, pairs(shape.pairs()), SeededHash::default()).is_some()
    );
}

#[test]
fn memory_stays_below_that_of_c() {
    // Measured: 208 bytes an entry with a key of 8 bytes and one value.
    for bits in 7..=17 {
        for cpus in 1..=4 {
            let shape = shape(bits, 1, 0, 2, cpus);
            assert!(shape.per_cpu());
            assert!(shape.words * 8 <= 208 << bits, "{bits} bits, {cpus} CPUs");
            assert_eq!(shape.most_bytes(), 208 << bits);
        }
        for cpus in [8, 64, 512, 8192] {
            let shape = shape(bits, 1, 0, 2, cpus);
            assert!(
                shape.words * 8 <= (3 * 208) << bits,
                "{bits} bits, {cpus} CPUs"
            );
        }
    }
}

/// Whatever an entry holds. What it holds beside key and sums is not more than three times what C has
/// for it, which is so for saved rows.
#[test]
fn memory_is_bounded_on_any_machine() {
    for bits in [7, 11, 17] {
        for (key_words, aux_words, sums) in [
            (1, 0, 1),
            (1, 0, 3),
            (1, 64, 3),
            (3, 2, 2),
            (63, 0, 3),
            (63, 8192, 3),
        ] {
            let c = (200 + key_words * 8 + aux_words * 8 / 3) << bits;
            for cpus in [1, 2, 5, 40, 64, 512, 8192] {
                let shape = shape(bits, key_words, aux_words, sums, cpus);
                assert!(
                    shape.words * 8 <= 3 * c + 8,
                    "{bits} bits, {key_words} words of key, {aux_words} of aux, {sums} sums, {cpus} CPUs"
                );
                assert!(shape.shards as u64 * shape.cpus_per_shard() >= u64::from(cpus));
                assert_eq!(shape.per_cpu(), shape.shards == cpus as usize);
            }
        }
    }
}

#[test]
fn cpus_share_shards_past_the_bound() {
    assert_eq!(shape(11, 1, 0, 2, 36).shards, 36);
    let many = shape(11, 1, 0, 2, 512);
    assert!(!many.per_cpu());
    assert_eq!(many.shards, 32);
    assert_eq!(many.cpus_per_shard(), 16);
    // What the documents say of a key of 8 bytes and one value.
    assert_eq!(shape(11, 1, 0, 2, 36).cpus_per_shard(), 1);
    assert_eq!(shape(11, 1, 0, 2, 37).cpus_per_shard(), 2);

    let map = map::<SeededHash>(many);
    for cpu in 0..512 {
        assert!(hit(&map, cpu, &[7]).is_some());
    }
    let elt = map.lookup(&[7]).expect("inserted");
    assert_eq!(map.sum(elt, 0), 512);
    assert_eq!(map.account().hits, 512);
}

#[test]
fn a_key_of_another_length_is_no_key() {
    let map = map::<SeededHash>(shape(7, 2, 0, 1, 1));

    assert!(map.insert(&[1], |_| ()).is_none());
    assert!(map.insert(&[1, 2, 3], |_| ()).is_none());
    assert!(map.insert(&[1, 2], |_| ()).is_some());
    assert!(map.lookup(&[1]).is_none());
    assert_eq!(map.used(), 1);
}

#[test]
fn zero_is_a_key_like_any_other() {
    let map = map::<SeededHash>(shape(7, 1, 0, 1, 1));

    assert!(map.lookup(&[0]).is_none());
    let zero = map.insert(&[0], |_| ()).expect("empty map");
    let one = map.insert(&[1], |_| ()).expect("empty map");
    assert_ne!(zero, one);
    assert_eq!(map.lookup(&[0]), Some(zero));
}

#[test]
fn each_call_is_accounted_for_once() {
    let map = map::<SeededHash>(shape(7, 1, 0, 1, 2));
    for key in 0..200 {
        hit(&map, (key % 2) as u32, &[key]);
    }
    map.shard(0).count(Ending::DroppedNested);
    map.shard(1).count(Ending::Ignored);
    map.shard(1).count(Ending::Ignored);
    map.shard(0).lose(Loss::Save, 1);
    map.shard(0).lose(Loss::Trace, 2);
    map.shard(1).lose(Loss::Trace, 3);
    map.shard(1).lose(Loss::Limit, 4);
    map.shard(0).lose(Loss::Cut, 5);
    map.shard(1).lose(Loss::Cut, 1);

    let account = map.account();
    assert_eq!(
        account,
        Account {
            hits: 128,
            dropped_full: 72,
            dropped_nested: 1,
            ignored: 2,
            lost_saves: 1,
            lost_traces: 5,
            lost_limited: 4,
            cut_strings: 6,
            ..Account::default()
        }
    );
    assert_eq!(account.dropped(), 73);
    assert_eq!(account.calls(), 203);
}

fn full_table_keeps_its_keys<H: KeyHash>(bits: u32) {
    let elts = 1u64 << bits;
    let map = map::<H>(shape(bits, 1, 0, 1, 1));

    for key in 0..elts {
        assert!(hit(&map, 0, &[key]).is_some());
    }
    for _ in 0..3 {
        for key in elts..3 * elts {
            assert!(hit(&map, 0, &[key]).is_none());
            assert!(map.lookup(&[key]).is_none());
        }
        for key in 0..elts {
            assert!(hit(&map, 0, &[key]).is_some());
        }
    }
    for key in 0..elts {
        let elt = map.lookup(&[key]).expect("inserted");
        assert_eq!(map.sum(elt, 0), 4);
    }
    assert_eq!(map.published().count() as u64, elts);
}

#[test]
fn full_table_keeps_its_keys_whatever_their_probe_paths() {
    for bits in 0..=7 {
        full_table_keeps_its_keys::<SeededHash>(bits);
        full_table_keeps_its_keys::<Same>(bits);
        full_table_keeps_its_keys::<Quarters>(bits);
    }
}

#[test]
fn sums_wrap_and_stay_apart() {
    let map = map::<SeededHash>(shape(7, 1, 0, 3, 2));
    let a = map.insert(&[1], |_| ()).expect("empty map");
    let b = map.insert(&[2], |_| ()).expect("empty map");

    map.shard(0).hit(a, &[u64::MAX]);
    map.shard(1).hit(a, &[3]);
    // There is no sum 3: what is meant for it touches nothing.
    map.shard(1).hit(a, &[0, 0, 7]);
    map.shard(1).hit(b, &[0, 5, 7]);

    assert_eq!((map.sum(a, 0), map.sum(a, 1), map.sum(a, 2)), (3, 2, 0));
    assert_eq!((map.sum(b, 0), map.sum(b, 1), map.sum(b, 2)), (1, 0, 5));
    assert_eq!((map.sum(a, 3), map.sum(b, 3)), (0, 0));
    assert_eq!(map.account().calls(), 4);
}

#[test]
fn aux_words_are_written_for_new_keys_only() {
    let map = map::<SeededHash>(shape(7, 1, 2, 1, 1));
    for (key, aux) in [(1, 10), (2, 20), (1, 30)] {
        map.insert(&[key], |words| {
            assert_eq!(words.len(), 2);
            words[0].store(aux, Relaxed);
            words[1].store(aux + 1, Relaxed);
        });
    }

    let aux = |key: u64| -> Vec<u64> {
        let elt = map.lookup(&[key]).expect("inserted");
        Pair::words(map.aux(elt))
            .iter()
            .map(|word| word.load(Relaxed))
            .collect()
    };
    assert_eq!(aux(1), [10, 11]);
    assert_eq!(aux(2), [20, 21]);
}

/// An interrupt that inserts the same key between the taking and the publishing of an element.
#[test]
fn an_inserter_interrupted_by_its_own_key_gives_its_element_back() {
    let map = map::<SeededHash>(shape(1, 1, 0, 1, 1));
    let mut inner = None;
    let outer = map.insert(&[1], |_| inner = map.insert(&[1], |_| ()));

    assert!(outer.is_some());
    assert_eq!(outer, inner);
    assert_eq!(map.published().count(), 1);
    // The element given back is there for the next key, and no third one.
    assert!(map.insert(&[2], |_| ()).is_some());
    assert!(map.insert(&[3], |_| ()).is_none());
    assert!(map.lookup(&[1]).is_some() && map.lookup(&[2]).is_some());
}

#[test]
fn elements_given_back_are_all_used_again() {
    const DEPTH: u64 = 6;

    fn nested(map: &Map<Words>, depth: u64) -> Option<Elt> {
        map.insert(&[1000], |_| {
            if depth > 1 {
                assert!(nested(map, depth - 1).is_some());
            }
        })
    }

    let map = map(shape(3, 1, 0, 1, 1));
    assert!(nested(&map, DEPTH).is_some());
    assert_eq!(map.used() as u64, DEPTH);

    for key in 0..7 {
        assert!(map.insert(&[key], |_| ()).is_some(), "key {key}");
    }
    assert!(map.insert(&[7], |_| ()).is_none());
    assert_eq!(map.published().collect::<HashSet<_>>().len(), 8);
    assert!((0..7).all(|key| map.lookup(&[key]).is_some()));
}

/// Interrupts that take the last element, and one more that finds none.
#[test]
fn interrupts_can_take_the_last_element() {
    let map = map::<Same>(shape(1, 1, 0, 1, 1));
    let mut third = None;

    // The first takes element 0, its interrupt element 1 for another key, and the interrupt of that
    // finds none for a third.
    let outer = map.insert(&[1], |_| {
        assert!(map
            .insert(&[2], |_| third = map.insert(&[3], |_| ()))
            .is_some());
    });
    assert!(outer.is_some());
    assert!(third.is_none());
    assert!(map.lookup(&[1]).is_some() && map.lookup(&[2]).is_some());
}

#[test]
fn rows_are_what_the_map_holds() {
    let map = map::<SeededHash>(shape(7, 2, 2, 2, 3));
    for i in 0..100u64 {
        let elt = map
            .insert(&[i, i * i], |aux| aux[0].store(i + 7, Relaxed))
            .expect("room for all");
        for cpu in 0..3 {
            map.shard(cpu).hit(elt, &[i * u64::from(cpu)]);
        }
    }

    let limit = map.used();
    assert_eq!(limit, 100);
    let mut words = vec![0; limit * map.shape().row_words()];
    let len = map.copy_rows(limit, &mut words, copy_pairs);
    let rows = Rows::new(map.shape(), &words, len);

    assert_eq!(rows.len(), 100);
    let mut seen = HashSet::new();
    for row in rows.iter() {
        let i = row.key[0];
        assert_eq!(row.key, [i, i * i]);
        assert_eq!(row.aux, [i + 7, 0]);
        assert_eq!(row.sums, [3, 3 * i]);
        assert!(seen.insert(i));
    }
    assert_eq!(seen.len(), 100);
    assert!(rows.get(100).is_none());
}

#[test]
fn rows_past_the_limit_or_the_memory_are_left_out() {
    let map = map::<SeededHash>(shape(7, 1, 0, 1, 1));
    for key in 0..50 {
        map.insert(&[key], |_| ());
    }

    let mut words = vec![0; 50 * 2];
    assert_eq!(map.copy_rows(20, &mut words, copy_pairs), 20);
    let rows = Rows::new(map.shape(), &words, 20);
    assert!(rows.iter().all(|row| row.key[0] < 20));

    assert_eq!(map.copy_rows(50, &mut words[..2 * 10 + 1], copy_pairs), 10);
    assert_eq!(map.copy_rows(50, &mut [], copy_pairs), 0);
    assert_eq!(Rows::new(map.shape(), &words[..5], 50).len(), 2);
}

/// The hash of a seed, which lasts as long as the tests do.
fn seeded(seed: u64) -> SeededHash {
    SeededHash::new(Box::leak(Box::new(HashSeed::new(seed))))
}

/// Returns the slot of a key in a map of `1 << bits` elements.
fn slot(hash: SeededHash, key: &[u64], bits: u32) -> usize {
    (Whole::of_all(key).hash(hash) >> (64 - (bits + 2))) as usize
}

/// Returns the longest run of taken slots that a lookup of one of `keys` has to pass, and the mean of all.
fn probes(hash: SeededHash, keys: impl Iterator<Item = Vec<u64>>, bits: u32) -> (usize, f64) {
    let slots = 4usize << bits;
    let mut taken = vec![false; slots];
    let (mut longest, mut sum) = (0, 0);

    for key in keys.take(1 << bits) {
        let home = slot(hash, &key, bits);
        let mut n = 0;
        while taken[(home + n) % slots] {
            n += 1;
        }
        taken[(home + n) % slots] = true;
        longest = longest.max(n);
        sum += n;
    }
    (longest, sum as f64 / f64::from(1u32 << bits))
}

/// Returns key number `i` of a family.
type Family = fn(u64) -> Vec<u64>;

/// Full tables of the keys that people use, with many seeds. Random hashes give 10 to 20, and 0.17 in the mean.
#[test]
fn probe_paths_are_short() {
    for seed in 1..=20 {
        let hash = seeded(seed);
        for bits in [7, 11, 14] {
            for shift in [0, 3, 4, 6, 12, 16, 21, 32, 40, 47] {
                let (longest, mean) = probes(hash, (0u64..).map(|i| vec![i << shift]), bits);
                let what = format!("stride 2^{shift}, {bits} bits, seed {seed}: {longest}, {mean}");
                assert!(longest <= 40 && mean < 2.0, "{what}");
            }
            let families: [(&str, Family); 6] = [
                ("kernel text", |i| vec![0xffff_ffff_8100_0000 + i * 0x35]),
                ("slab objects", |i| vec![0xffff_8881_0000_0000 + i * 192]),
                ("pid and cpu", |i| vec![1000 + i / 4, i % 4]),
                ("grid", |i| vec![i % 256, i / 256]),
                ("grid of pages", |i| vec![(i % 64) << 12, (i / 64) << 12]),
                ("names", |i| {
                    let name = format!("kworker/u8:{i:<10}");
                    name.as_bytes()
                        .chunks(8)
                        .map(|c| c.iter().fold(0, |w, &b| w << 8 | u64::from(b)))
                        .collect()
                }),
            ];
            for (name, family) in families {
                let (longest, mean) = probes(hash, (0..).map(family), bits);
                let what = format!("{name}, {bits} bits, seed {seed}: {longest}, {mean}");
                assert!(longest <= 40 && mean < 1.0, "{what}");
            }
        }
    }
}

/// The strides at which multiples of the golden ratio come next to each other: with one multiplication alone such
/// keys are all in one run of slots.
#[test]
fn no_stride_is_bad() {
    let fibonacci = |n| (0..n).fold((1u64, 1u64), |(a, b), _| (b, a + b)).0;

    for seed in 1..=8 {
        for stride in (5..80).map(fibonacci).chain((3..500).step_by(7)) {
            let keys = (0u64..).map(|i| vec![i.wrapping_mul(stride)]);
            let (longest, mean) = probes(seeded(seed), keys, 11);
            let what = format!("stride {stride}, seed {seed}: {longest}, {mean}");
            assert!(longest <= 40 && mean < 1.0, "{what}");
        }
    }
}

/// Who knows the seed can choose keys that share a slot; with another seed they are spread.
#[test]
fn keys_that_collide_are_spread_by_another_seed() {
    const BITS: u32 = 7;

    for words in [1, 2, 4, 5, 31] {
        let all = (0..).map(|i| (0..words).map(|word| i * (i + word)).collect::<Vec<u64>>());
        let keys: Vec<_> = all
            .filter(|key| slot(seeded(1), key, BITS) == 0)
            .take(1 << BITS)
            .collect();

        let (longest, _) = probes(seeded(1), keys.iter().cloned(), BITS);
        assert_eq!(
            longest,
            (1 << BITS) - 1,
            "{words} words: they do not collide"
        );
        for seed in (2..=10).chain([u64::MAX]) {
            let (longest, mean) = probes(seeded(seed), keys.iter().cloned(), BITS);
            let what = format!("{words} words, seed {seed}: {longest}, {mean}");
            assert!(longest <= 40 && mean < 1.0, "{what}");
        }
    }
}

/// Seeds for which slots are compared.
fn seeds() -> &'static [SeededHash] {
    static SEEDS: OnceLock<Vec<SeededHash>> = OnceLock::new();

    SEEDS.get_or_init(|| (1..=1024).map(seeded).collect())
}

/// Two keys may share one of 512 slots for two in 512 seeds, which are 4 of these in the mean. That they are 25 by chance
/// has a probability of 10^-12.
fn share_few_slots(a: &[u64], b: &[u64]) -> Result<(), String> {
    let shared = seeds()
        .iter()
        .filter(|&&hash| slot(hash, a, 7) == slot(hash, b, 7))
        .count();

    match shared < 25 {
        true => Ok(()),
        false => Err(format!("{a:x?} and {b:x?} share a slot for {shared} seeds")),
    }
}

/// Returns the key with these bits, given by their number, changed.
fn with_bits(mut key: Vec<u64>, bits: &[usize]) -> Vec<u64> {
    for bit in bits {
        key[bit / 64] ^= 1 << (bit % 64);
    }
    key
}

/// No two keys share a slot whatever the seed is, by which many would: those that differ in the top bits of two words and
/// bits next to them, which a product modulo 2^64 with an odd number keeps.
#[test]
fn no_two_keys_share_a_slot_for_all_seeds() {
    for words in [1, 2, 3, 4, 5, 6, 31, 33] {
        let key: Vec<u64> = (1..=words).map(|n| n * 0x0123_4567_89ab_cdef).collect();
        let ends: Vec<_> = [31, 32, 62, 63]
            .into_iter()
            .flat_map(|bit| [bit, bit + 64, bit + 64 * (words as usize - 1)])
            .filter(|bit| bit / 64 < words as usize)
            .collect();

        for (i, first) in ends.iter().enumerate() {
            for (j, second) in ends.iter().enumerate().take(i + 1) {
                for third in &ends[..=j] {
                    let other = with_bits(key.clone(), &[*first, *second, *third]);

                    if other != key {
                        share_few_slots(&key, &other).unwrap();
                    }
                }
            }
        }
    }
}

/// Strings of 31 words whose top bits differ: all of them are legal names of files, and a hash that adds up products modulo
/// 2^64 is the same for half of them, whatever the seed is.
#[test]
fn no_family_of_strings_shares_slots() {
    const BITS: u32 = 11;
    let name = |i: u64| {
        let text = u64::from_le_bytes(*b"filename");
        let mut key: Vec<_> = (0..30).map(|bit| text | (i >> bit & 1) << 63).collect();

        key.push(text | u64::from(i.count_ones() & 1) << 63);
        key
    };

    for seed in 1..=50 {
        // Numbers with different bits far apart as well as next to each other.
        for step in [1, 0x8001, 0x0555_5555] {
            let keys = (0..).map(|i: u64| name(i.wrapping_mul(step)));
            let (longest, mean) = probes(seeded(seed), keys, BITS);
            assert!(
                longest <= 40 && mean < 1.0,
                "step {step}, seed {seed}: {longest}, {mean}"
            );
        }
    }
}

/// A long key and another one that begins with it, be it by zeros and one word.
#[test]
fn no_key_shares_slots_with_those_that_begin_with_it() {
    let whole: Vec<u64> = (1..=40).map(|n| n << 63 | n << 31 | n % 3).collect();

    for len in [0, 1, 2, 3, 4, 5, 8, 31, 39] {
        for more in [1, 2, 7, 40] {
            let (key, mut longer) = (&whole[..len], whole[..whole.len().min(len + more)].to_vec());

            share_few_slots(&padded(key), &padded(&longer)).unwrap();
            longer[len..].fill(0);
            longer.push(1 << 63);
            share_few_slots(&padded(key), &padded(&longer)).unwrap();
        }
    }
}

/// The words of a key of 48 words.
fn padded(key: &[u64]) -> Vec<u64> {
    let mut key = key.to_vec();
    key.resize(48, 0);
    key
}

/// Few bits in which a key of so many words differs from another one, those at both ends of a half of a word most of all.
fn few_bits(words: usize) -> impl Strategy<Value = Vec<usize>> {
    let bit = prop_oneof![3 => prop::sample::select(vec![0, 31, 32, 62, 63]), 1 => 0..64usize];

    prop::collection::vec(
        (0..words, bit).prop_map(|(word, bit)| word * 64 + bit),
        1..6,
    )
}

proptest! {
    #[test]
    fn no_keys_that_differ_in_few_bits_share_slots(
        (key, bits) in (1..=40usize).prop_flat_map(|words| (
            prop::collection::vec(prop_oneof![Just(0), Just(u64::MAX), any::<u64>()], words),
            few_bits(words),
        )),
    ) {
        let other = with_bits(key.clone(), &bits);

        prop_assume!(other != key);
        prop_assert_eq!(share_few_slots(&key, &other), Ok(()));
    }
}

#[test]
fn each_bit_of_a_key_changes_its_hash() {
    for words in 1..=4 {
        let key = vec![0x0123_4567_89ab_cdef; words];
        let hash_of = |key: &[u64]| Whole::of_all(key).hash(SeededHash::default());
        let hash = hash_of(&key);
        for bit in 0..64 * words {
            let mut other = key.clone();
            other[bit / 64] ^= 1 << (bit % 64);
            assert_ne!(hash_of(&other), hash, "bit {bit} of {words} words");
        }
    }
}

/// Extra words are found again by their address, and only in the map that has them.
#[test]
fn extra_words_are_found_by_their_address() {
    let shape = shape(7, 1, 6, 1, 2);
    let (map, other): (Map<Words, SeededHash>, Map<Words, SeededHash>) = (map(shape), map(shape));

    for key in 0..1 << 7 {
        let elt = map.insert(&[key], |_| ()).expect("there is room");
        let aux = map.aux(elt);
        let address = address_of(aux);
        let found = map.view().aux_from(address).expect("it has them");

        assert_eq!(found.len(), 3);
        assert!(core::ptr::eq(found, aux));
        assert!(other.view().aux_from(address).is_none());
    }
    // What is no address of words of the map.
    for address in [0, 8, u64::MAX] {
        assert!(map.view().aux_from(address).is_none());
    }
}
