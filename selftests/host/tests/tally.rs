// SPDX-License-Identifier: GPL-2.0

//! What is kept of numbers besides their sums, against numbers of any size: exact to the last digit that is shown, with
//! any numbers, on any CPUs, in any order, with and without shards of their own, in one map or in many.

#![cfg(not(loom))]

mod common;
mod stat_model;

use common::{insert, Words};
use num_bigint::BigInt;
use proptest::prelude::*;
use rust_hist::{
    limits::SUM_WORDS_MAX,
    stat::Stat,
    sync::Pair,
    tracing_map::{
        copy_pairs, Dimensions, Gauge, Map, Number, Rows, SeededHash, Shape, Tallies, Tally, Values,
    },
};
use stat_model::{hundredths, model, of};
use std::{
    sync::{
        atomic::{AtomicBool, Ordering},
        Barrier,
    },
    thread,
};

const KEY: [u64; 1] = [7];

fn tally(is_signed: bool, stats: &[Stat]) -> Tally {
    let mut tally = Tally::new(is_signed);

    for stat in stats {
        tally.keep(*stat);
    }
    tally
}

/// A map for `cpus` CPUs; with `is_shared` neighbours share their shards.
fn map_of(tallies: &Tallies, cpus: u32, is_shared: bool) -> Map<Words, SeededHash> {
    map_with(7, tallies, cpus, is_shared)
}

/// The same with another size, up to that of a map that takes the place of the others.
fn map_with(bits: u32, tallies: &Tallies, cpus: u32, is_shared: bool) -> Map<Words, SeededHash> {
    let dimensions = Dimensions {
        bits,
        grows_to: 8,
        expires: false,
        others: true,
        key_words: 1,
        aux_words: 0,
        sums: tallies.words(),
    };
    // As many CPUs as make neighbours share.
    let all = if is_shared { 4096 } else { cpus };
    let shape = Shape::with(dimensions, *tallies.merge(), all).expect("in range");
    let words = (0..shape.pairs()).map(|_| Pair::zero()).collect();

    assert_eq!(shape.per_cpu(), !is_shared);
    Map::new(shape, words, SeededHash::default()).expect("as many words as it asks for")
}

/// One hit with a number for each tally.
fn hit(
    map: &Map<Words, SeededHash>,
    cpu: u32,
    key: [u64; 1],
    tallies: &Tallies,
    numbers: &impl Values,
) {
    let elt = insert(map, key, |_| ()).expect("there is room");
    let shard = map.shard(cpu);

    if tallies.are_sums_of_c() {
        shard.hit(elt, numbers);
    } else if let Some(from) = shard.keep::<true>(elt, tallies, numbers) {
        shard.keep_rest(elt, tallies, numbers, from);
    }
}

/// The sums of the rows by ascending key.
fn sums(map: &Map<Words, SeededHash>) -> Vec<Vec<u64>> {
    let mut words = vec![0; map.used() * map.shape().row_words()];
    let len = map.copy_rows(map.used(), &mut words, copy_pairs);
    let rows = Rows::new(map.shape(), &words, len);
    let mut rows: Vec<_> = rows.iter().map(|row| (row.key[0], row.sums)).collect();

    rows.sort_unstable();
    rows.iter().map(|row| row.1.to_vec()).collect()
}

/// Checks everything that is shown of one of some numbers.
fn check(sums: &[u64], tallies: &Tallies, n: usize, numbers: &[(u64, u64)], is: (bool, &[Stat])) {
    let (is_signed, stats) = is;

    for stat in stats.iter().chain(&[Stat::Sum, Stat::Avg]) {
        let shown = Gauge::new(tallies, n, *stat).number(sums).map(hundredths);
        let wanted = model(numbers, is_signed, *stat);

        assert_eq!(shown, Some(wanted), "{stat:?} of {numbers:?}, {is_signed}");
    }
}

fn word() -> impl Strategy<Value = u64> {
    let edges = [
        0u64,
        1,
        2,
        1 << 24,
        (1 << 24) - 1,
        1 << 31,
        1 << 32,
        1 << 48,
        1 << 62,
        1 << 63,
    ];
    let near = prop::sample::select(edges.to_vec());

    prop_oneof![
        (near, -2i64..3).prop_map(|(edge, by)| edge.wrapping_add(by as u64)),
        (any::<u64>(), 0u32..64).prop_map(|(word, bits)| word >> bits),
        (any::<i64>(), 0u32..64).prop_map(|(word, bits)| (word >> bits) as u64),
    ]
}

fn kept() -> impl Strategy<Value = (bool, Vec<Stat>)> {
    let stats = prop::sample::subsequence(Stat::ALL.to_vec(), 0..=Stat::ALL.len());

    (any::<bool>(), stats.prop_shuffle())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn everything_shown_is_exact(
        first in kept(),
        second in kept(),
        third in kept(),
        hits in prop::collection::vec((0u32..4, [word(), word(), word()]), 1..40),
        is_shared: bool,
    ) {
        let kept = [first, second, third];
        let tallies: Vec<_> = kept.iter().map(|(is_signed, stats)| tally(*is_signed, stats)).collect();
        let tallies = Tallies::new(&tallies);
        let mut map = map_of(&tallies, 4, is_shared);

        for (cpu, numbers) in &hits {
            hit(&map, *cpu, KEY, &tallies, numbers);
            // A neighbour, which nothing of this may come to.
            hit(&map, *cpu, [8], &tallies, &[1, 1, 1]);
        }
        let rows = sums(&map);
        let n = hits.len() as u64;
        prop_assert_eq!(rows[0][0], n);
        for (at, (is_signed, stats)) in kept.iter().enumerate() {
            let numbers: Vec<_> = hits.iter().map(|(_, numbers)| (numbers[at], 1)).collect();

            check(&rows[0], &tallies, at, &numbers, (*is_signed, stats));
            check(&rows[1], &tallies, at, &[(1, n)], (*is_signed, stats));
        }
        // Once it is emptied nothing is left.
        map.empty();
        hit(&map, 1, KEY, &tallies, &[5, 5, 5]);
        let rows = sums(&map);
        for (at, (is_signed, stats)) in kept.iter().enumerate() {
            check(&rows[0], &tallies, at, &[(5, 1)], (*is_signed, stats));
        }
    }

    /// Rows that become one, as those of `quantiles()` and those of several epochs.
    #[test]
    fn rows_merge_as_if_they_had_been_one(
        kept in kept(),
        parts in prop::collection::vec(prop::collection::vec(word(), 1..10), 1..5),
    ) {
        let (is_signed, stats) = kept;
        let tallies = Tallies::new(&[tally(is_signed, &stats)]);
        let merge = tallies.merge();
        let mut all = vec![0; tallies.words()];

        for part in &parts {
            let map = map_of(&tallies, 1, false);

            for number in part {
                hit(&map, 0, KEY, &tallies, &[*number]);
            }
            merge.add(&mut all, &sums(&map)[0]);
        }
        let numbers: Vec<_> = parts.iter().flatten().map(|number| (*number, 1)).collect();
        check(&all, &tallies, 0, &numbers, (is_signed, &stats));
    }

    /// More hits than a test can make: the words as the hits would leave them, which is what `Shard::keep` adds.
    #[test]
    fn deviations_are_exact_for_2_to_the_39_hits(
        is_signed: bool,
        numbers in prop::collection::vec((word(), 0u32..16, 1u64..(1 << 38)), 1..4),
        more in 0u32..40,
    ) {
        let tallies = Tallies::new(&[tally(is_signed, &[Stat::Stddev])]);
        let cut = numbers_of(numbers, is_signed, more);
        let (mut numbers, mut hits): (Vec<(u64, u64)>, u64) = (Vec::new(), 0);

        for (number, bits, n) in cut {
            // As many as there may be of such numbers.
            let n = (n >> bits).max(1);
            hits += n;
            numbers.push((number, n));
        }
        prop_assume!(hits < 1 << 39);
        let mut words = [0u64; 9];
        let modulo = |number: BigInt| -> u64 {
            let modulus = BigInt::from(1) << 64;
            u64::try_from(((number % &modulus) + &modulus) % &modulus).expect("64 bits")
        };
        for (number, n) in &numbers {
            let v = of(*number, is_signed);
            let square = &v * &v;
            let mut add = |at: usize, each: BigInt| {
                words[at] = words[at].wrapping_add(modulo(each * *n));
            };

            add(0, 1.into());
            add(2, 1.into());
            // A shift of a signed number rounds down.
            add(3, &v >> 24);
            for j in 0..5 {
                add(4 + j, &square >> (24 * j));
            }
            add(1, v);
        }
        prop_assert_eq!(words.len(), tallies.words());
        let shown = Gauge::new(&tallies, 0, Stat::Stddev).number(&words).map(hundredths);
        prop_assert_eq!(shown, Some(model(&numbers, is_signed, Stat::Stddev)));
    }

    #[test]
    fn numbers_are_ordered_as_they_are_shown(a in any::<(i64, u8)>(), b in any::<(i64, u8)>()) {
        let number = |(whole, part): (i64, u8)| Number {
            negative: whole < 0,
            whole: whole.unsigned_abs(),
            hundredths: part % 100,
        };

        prop_assert_eq!(number(a).cmp(&number(b)), hundredths(number(a)).cmp(&hundredths(number(b))));
    }
}

/// Cuts numbers so that what they add up to is in the bounds of exactness: below 2^48 if there are very many.
fn numbers_of(
    numbers: Vec<(u64, u32, u64)>,
    is_signed: bool,
    more: u32,
) -> impl Iterator<Item = (u64, u32, u64)> {
    numbers.into_iter().map(move |(number, bits, n)| {
        let shift = 16 + more.min(8);
        let number = match is_signed {
            true => ((number as i64) >> shift) as u64,
            false => number >> shift,
        };
        (number, bits, n)
    })
}

#[test]
fn a_row_without_hits_shows_nothing() {
    let tallies = Tallies::new(&[tally(true, &Stat::ALL)]);
    let words = vec![0; tallies.words()];

    for stat in Stat::ALL {
        assert_eq!(Gauge::new(&tallies, 0, stat).number(&words), None);
    }
}

#[test]
fn each_value_takes_the_words_that_it_needs() {
    let words = |stats: &[Stat]| Tallies::new(&[tally(false, stats)]).words() - 1;

    assert_eq!(words(&[]), 1);
    assert_eq!(words(&[Stat::Sum, Stat::Avg]), 1);
    assert_eq!(words(&[Stat::Max]), 2);
    assert_eq!(words(&[Stat::Max, Stat::Min, Stat::Max]), 3);
    assert_eq!(words(&[Stat::Stddev, Stat::Avg]), 8);
    assert_eq!(words(&Stat::ALL), 10);
}

/// A reader of rows that are being hit sees each as it was between two hits of a CPU: of the numbers 1000 and 1002, as
/// many of both but for one hit of each CPU, the deviation is about 1 and never anything else.
#[test]
fn a_reader_sees_no_half_of_a_hit() {
    const CPUS: u32 = 2;
    const HITS: u64 = 200_000;

    for is_shared in [false, true] {
        let tallies = Tallies::new(&[tally(false, &[Stat::Max, Stat::Min, Stat::Stddev])]);
        let map = map_of(&tallies, CPUS, is_shared);
        let (barrier, is_over) = (Barrier::new(3), AtomicBool::new(false));
        let (map, tallies, barrier, is_over) = (&map, &tallies, &barrier, &is_over);

        thread::scope(|scope| {
            let writers: Vec<_> = (0..CPUS)
                .map(|cpu| {
                    scope.spawn(move || {
                        barrier.wait();
                        for i in 0..HITS {
                            hit(map, cpu, KEY, tallies, &[1000 + i % 2 * 2]);
                        }
                    })
                })
                .collect();
            let reader = scope.spawn(move || {
                let (mut looks, mut settled) = (0u64, 0u64);

                barrier.wait();
                while !is_over.load(Ordering::Relaxed) {
                    for row in sums(map) {
                        let get = |stat| Gauge::new(tallies, 0, stat).number(&row);
                        let (Some(max), Some(min)) = (get(Stat::Max), get(Stat::Min)) else {
                            continue;
                        };

                        assert!((1000..=1002).contains(&max.whole), "{row:?}");
                        assert!((1000..=1002).contains(&min.whole), "{row:?}");
                        looks += 1;
                        // What has begun is what is counted, unless all tries were in vain.
                        if row[0] == row[4] {
                            let deviation = get(Stat::Stddev).expect("hits");
                            assert!(deviation.whole <= 1, "{deviation:?} {row:?}");
                            settled += 1;
                        }
                    }
                }
                (looks, settled)
            });

            for writer in writers {
                writer.join().expect("no panic");
            }
            is_over.store(true, Ordering::Relaxed);
            let (looks, settled) = reader.join().expect("no panic");
            eprintln!("{settled} of {looks} rows between two hits");
        });
        let row = &sums(map)[0];
        let n = HITS * u64::from(CPUS);
        check(
            row,
            tallies,
            0,
            &[(1000, n / 2), (1002, n / 2)],
            (false, &Stat::ALL),
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// What a larger map takes over from the one whose place it takes is as if all hits had gone there.
    #[test]
    fn a_larger_map_takes_everything_over(
        (is_signed, stats) in kept(),
        hits in prop::collection::vec((any::<bool>(), 0u32..4, 1u64..4, word()), 1..40),
        is_shared: bool,
    ) {
        let tallies = Tallies::new(&[tally(is_signed, &stats)]);
        let old = map_with(7, &tallies, 4, is_shared);
        let mut new = map_with(8, &tallies, 4, is_shared);

        for &(_, cpu, key, number) in hits.iter().filter(|hit| !hit.0) {
            hit_or_others(&old, cpu, key, &tallies, number);
        }
        new.reserve_for(&old);
        for slots in old.slot_ranges() {
            new.take_keys(&old, slots, 0);
        }
        for &(_, cpu, key, number) in hits.iter().filter(|hit| hit.0) {
            hit_or_others(&new, cpu, key, &tallies, number);
        }
        for slots in old.slot_ranges() {
            new.take_rows(&old, slots, 3, 0, |_, _| ());
        }
        new.take_account(&old, 3);
        new.release(&old);

        let numbers = |key: u64| -> Vec<_> {
            let of_key = hits.iter().filter(|hit| hit.2 == key);
            of_key.map(|hit| (hit.3, 1)).collect()
        };
        let keys = (1..3).filter(|&key| !numbers(key).is_empty());
        for (row, key) in sums(&new).iter().zip(keys) {
            check(row, &tallies, 0, &numbers(key), (is_signed, &stats));
        }
        let mut others = vec![0; new.shape().sums];
        prop_assert_eq!(new.copy_others(&mut others), !numbers(OTHERS).is_empty());
        if !numbers(OTHERS).is_empty() {
            check(&others, &tallies, 0, &numbers(OTHERS), (is_signed, &stats));
        }
    }
}

/// A key for which there is no room.
const OTHERS: u64 = 3;

/// A hit of a key, or of one without room.
fn hit_or_others(map: &Map<Words, SeededHash>, cpu: u32, key: u64, tallies: &Tallies, number: u64) {
    if key != OTHERS {
        return hit(map, cpu, [key], tallies, &[number]);
    }

    let others = map.shape().others().expect("with others");
    let shard = map.shard(cpu);
    match tallies.are_sums_of_c() {
        true => shard.hit(others, &[number]),
        false => {
            if let Some(from) = shard.keep::<true>(others, tallies, &[number]) {
                shard.keep_rest(others, tallies, &[number], from);
            }
        }
    }
}

/// Threads that share a shard lose no maximum and no square.
#[test]
fn threads_lose_nothing() {
    const CPUS: u32 = 4;
    const HITS: u64 = 50_000;

    for is_shared in [false, true] {
        let tallies = Tallies::new(&[tally(true, &Stat::ALL), tally(false, &Stat::ALL)]);
        let map = map_of(&tallies, CPUS, is_shared);
        let numbers = |cpu: u32, i: u64| {
            let random = (i ^ u64::from(cpu) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            [random >> (i % 40), (random as i64 >> 20) as u64]
        };

        thread::scope(|scope| {
            for cpu in 0..CPUS {
                let (map, tallies) = (&map, &tallies);
                scope.spawn(move || {
                    for i in 0..HITS {
                        hit(map, cpu, KEY, tallies, &numbers(cpu, i));
                    }
                });
            }
        });
        let all: Vec<_> = (0..CPUS)
            .flat_map(|cpu| (0..HITS).map(move |i| numbers(cpu, i)))
            .collect();
        for (at, is_signed) in [(0, true), (1, false)] {
            let numbers: Vec<_> = all.iter().map(|both| (both[at], 1)).collect();

            check(
                &sums(&map)[0],
                &tallies,
                at,
                &numbers,
                (is_signed, &Stat::ALL),
            );
        }
    }
}

/// a trigger with many values has not fewer shards than one with two.
#[test]
fn the_memory_for_shards_grows_with_what_is_kept() {
    let shape = |sums, cpus| {
        let dimensions = Dimensions {
            bits: 11,
            grows_to: 0,
            expires: false,
            others: false,
            key_words: 1,
            aux_words: 0,
            sums,
        };
        Shape::new(dimensions, cpus).expect("in range")
    };

    for sums in 1..=SUM_WORDS_MAX {
        for cpus in [1, 2, 8, 16, 24] {
            assert!(shape(sums, cpus).per_cpu(), "{sums} {cpus}");
        }
    }
    // As ever with what C has room for.
    assert!(shape(2, 36).per_cpu() && !shape(2, 37).per_cpu());
    assert!(shape(3, 24).per_cpu() && !shape(3, 25).per_cpu());
    // 208 bytes three times, and eight more for each word and CPU.
    assert!(shape(11, 8192).words * 8 <= (3 * 208 + 8 * 8 * 64) * 2048);
}
