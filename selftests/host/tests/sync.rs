// SPDX-License-Identifier: GPL-2.0

//! The facade over atomics, as it is on the host.

#![cfg(not(loom))]

use rust_hist::sync::{local_add, local_inc, Acquire, Atomic, Full, Relaxed, Release};

#[test]
fn a_compare_exchange_says_what_it_found() {
    let word = Atomic::<u32>::new(1);

    assert_eq!(word.cmpxchg(1, 2, Full), Ok(1));
    assert_eq!(word.cmpxchg(1, 3, Release), Err(2));
    assert_eq!(word.load(Acquire), 2);
    assert_eq!(word.xchg(5, Acquire), 2);
    word.store(7, Release);
    assert_eq!(word.load(Relaxed), 7);
}

#[test]
fn additions_wrap() {
    let words = [Atomic::<u64>::new(u64::MAX - 1)];
    let [word] = &words;

    local_inc(&words, 0);
    assert_eq!(word.load(Relaxed), u64::MAX);
    local_inc(&words, 0);
    assert_eq!(word.load(Relaxed), 0);
    local_add(&words, 0, u64::MAX);
    local_add(&words, 0, 3);
    assert_eq!(word.fetch_add(u64::MAX, Relaxed), 2);
    assert_eq!(word.load(Relaxed), 1);
    // There is no such word.
    local_inc(&words, 1);
    local_add(&words, usize::MAX, 1);
    assert_eq!(word.load(Relaxed), 1);
}

/// One writer, as on a CPU; the others only look, and never see less than before.
#[test]
fn a_reader_of_a_local_word_sees_it_grow() {
    const ADDITIONS: u64 = 2_000_000;
    let words = [Atomic::<u64>::new(0)];
    let [word] = &words;

    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut last = 0;
            while last < ADDITIONS * 4 {
                let now = word.load(Relaxed);
                assert!(now >= last);
                last = now;
            }
            last
        });
        for _ in 0..ADDITIONS {
            local_inc(&words, 0);
            local_add(&words, 0, 3);
        }
        assert_eq!(reader.join().expect("reader"), ADDITIONS * 4);
    });
}
