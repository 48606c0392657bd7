// SPDX-License-Identifier: GPL-2.0

//! What keys and values come to. Any columns over any record: `exec_plan`.

use crate::{
    lang_common::*,
    run::{
        one_hit,
        words_of_bytes as slot, //
    },
};

/// A record of [`ZOO`] with known contents.
fn zoo() -> Vec<u8> {
    let mut record = vec![0u8; 160];
    let mut put = |at: usize, bytes: &[u8]| record[at..at + bytes.len()].copy_from_slice(bytes);

    put(4, &42i32.to_ne_bytes());
    put(8, &[200, 0x80]);
    put(10, &60_000u16.to_ne_bytes());
    put(12, &(-2i16).to_ne_bytes());
    put(16, &4_000_000_000u32.to_ne_bytes());
    put(20, &(-3i32).to_ne_bytes());
    put(24, &u64::MAX.to_ne_bytes());
    put(32, &(-4i64).to_ne_bytes());
    // "filename" at 100, six bytes with its NUL.
    put(40, &(100u32 | 6 << 16).to_ne_bytes());
    put(100, b"hello\0");
    // "label" at 110, counted from 52, three bytes without a NUL.
    put(48, &(58u32 | 3 << 16).to_ne_bytes());
    put(110, b"abc");
    put(56, &0x1234u64.to_ne_bytes());
    // "stack" at 120: a count and two frames.
    put(64, &(120u32 | 24 << 16).to_ne_bytes());
    put(120, &2u64.to_ne_bytes());
    put(128, &11u64.to_ne_bytes());
    put(136, &22u64.to_ne_bytes());
    put(144, &33u64.to_ne_bytes());
    put(68, b"sevenXY");
    record
}

/// The key of `keys` over `record`.
fn key_in(record: &[u8], around: &Around, keys: &str) -> Vec<u64> {
    one_hit(&format!("keys={keys}"), record, around)
        .expect(keys)
        .0
}

fn key_over(record: &[u8], keys: &str) -> Vec<u64> {
    key_in(record, &AROUND, keys)
}

fn key(keys: &str) -> Vec<u64> {
    key_over(&zoo(), keys)
}

fn values(vals: &str) -> Vec<u64> {
    one_hit(&format!("keys=u8:vals={vals}"), &zoo(), &AROUND)
        .expect(vals)
        .1
}

#[test]
fn h_key_01_numbers_are_widened_by_their_sign() {
    assert_eq!(key("u8"), [200]);
    assert_eq!(key("s8"), [(-128i64) as u64]);
    assert_eq!(key("u16"), [60_000]);
    assert_eq!(key("s16"), [(-2i64) as u64]);
    assert_eq!(key("u32"), [4_000_000_000]);
    assert_eq!(key("s32"), [(-3i64) as u64]);
    assert_eq!(key("u64"), [u64::MAX]);
    assert_eq!(key("s64"), [(-4i64) as u64]);
    assert_eq!(key("pointed"), [0x1234]);
    assert_eq!(key("common_pid"), [42]);
    assert_eq!(key("u8,s8,pointed"), [200, (-128i64) as u64, 0x1234]);
    assert_eq!(values("s32,u16"), [(-3i64) as u64, 60_000]);
    assert_eq!(values("hitcount"), [] as [u64; 0]);
    assert_eq!(values("hitcount,hitcount"), [1]);
    assert_eq!(values("hitcount.percent,u8"), [1, 200]);
}

#[test]
fn h_key_02_to_04_strings() {
    assert_eq!(key("filename"), slot(b"hello", 32));
    assert_eq!(key("label"), slot(b"abc", 32));
    assert_eq!(key("seven"), slot(b"sevenXY", 1));
    assert_eq!(
        key("seven,filename,u8"),
        [slot(b"sevenXY", 1), slot(b"hello", 32), vec![200]].concat()
    );
}

#[test]
fn h_key_02_a_full_static_string_gets_its_nul() {
    let mut record = vec![0u8; 712];

    record[696..].copy_from_slice(b"0123456789abcdef");
    assert_eq!(key_over(&record, "sixteen"), slot(b"0123456789abcde", 2));
}

#[test]
fn h_key_03_long_strings_are_cut_at_255() {
    for len in [254u32, 255, 256, 257, 1000] {
        let mut record = zoo();

        record.resize(100, 0);
        record.resize(100 + 2000, b'x');
        record[40..44].copy_from_slice(&(100 | len << 16).to_ne_bytes());

        let expected = "x".repeat(len.min(255) as usize);

        assert_eq!(
            key_over(&record, "filename"),
            slot(expected.as_bytes(), 32),
            "{len}"
        );
    }
}

/// A mask has zeros where a string would end.
#[test]
fn x_76_masks_of_cpus() {
    let mut record = zoo();

    record.resize(900, 0xff);
    for (len, mask) in [(8, &[0b1011 << 32][..]), (24, &[0, 1 << 63, 0]), (8, &[0])] {
        let bytes: Vec<u8> = mask
            .iter()
            .flat_map(|word: &u64| word.to_ne_bytes())
            .collect();
        record[712..716].copy_from_slice(&(800u32 | len << 16).to_ne_bytes());
        record[800..800 + bytes.len()].copy_from_slice(&bytes);
        let key = |keys: &str| key_over(&record, keys);

        assert_eq!(key("cpumask"), slot(&bytes, 32));
        assert_eq!(
            key("u8,cpumask,u16"),
            [vec![200], slot(&bytes, 32), vec![60_000]].concat()
        );
    }
}

#[test]
fn b_30_records_that_end_early() {
    let record = zoo();

    // Numbers read as zero as soon as a byte is missing.
    assert_eq!(key_over(&record[..28], "u64"), [0]);
    assert_eq!(key_over(&record[..28], "s32"), [(-3i64) as u64]);
    assert_eq!(key_over(&[], "u8,common_pid"), [0, 0]);
    // Strings have what is inside.
    assert_eq!(key_over(&record[..103], "filename"), slot(b"hel", 32));
    assert_eq!(key_over(&record[..100], "filename"), slot(b"", 32));
    assert_eq!(key_over(&record[..41], "filename"), slot(b"", 32));
    assert_eq!(key_over(&record[..112], "label"), slot(b"ab", 32));
    // A short string at a fixed place reads like numbers.
    assert_eq!(key_over(&record[..70], "seven"), [0]);
    assert_eq!(
        key_over(&record[..70], "seven,filename")[..1],
        slot(b"se", 1)
    );
    assert_eq!(
        key_over(&record[..140], "stack"),
        slot(&11u64.to_ne_bytes(), 31)
    );
    assert_eq!(key_over(&record[..124], "stack"), slot(b"", 31));
}

#[test]
fn b_10_stack_fields_are_clamped() {
    assert_eq!(key("stack"), [vec![11, 22], vec![0; 29]].concat());
    assert_eq!(key("stack.stacktrace"), key("stack"));

    let mut record = zoo();

    record[120..128].copy_from_slice(&u64::MAX.to_ne_bytes());
    assert_eq!(
        key_over(&record, "stack"),
        [vec![11, 22, 33, 0], vec![0; 27]].concat()
    );
    record.resize(4096, 1);
    assert_eq!(key_over(&record, "stack").len(), 31);
    assert_eq!(key_over(&record, "u8,stack,u16").last(), Some(&60_000));
}

#[test]
fn h_mod_09_log2_is_rounded_up() {
    for (value, log2) in [
        (0, 0),
        (1, 0),
        (2, 1),
        (3, 2),
        (4, 2),
        (5, 3),
        (1 << 63, 63),
        ((1 << 63) + 1, 64),
        (u64::MAX, 64),
    ] {
        let mut record = zoo();

        record[24..32].copy_from_slice(&u64::to_ne_bytes(value));
        assert_eq!(key_over(&record, "u64.log2"), [log2], "{value}");
    }
    assert_eq!(key("s8.log2"), [64]);
    assert_eq!(key("common_cpu.log2"), [2]);
    assert_eq!(key("hitcount.log2,hitcount.buckets=5"), [0, 0]);
}

#[test]
fn finer_buckets_than_powers_of_two() {
    let over = |value: u64, text: &str| {
        let mut record = zoo();

        record[24..32].copy_from_slice(&value.to_ne_bytes());
        key_over(&record, text)
    };

    // 2^4 to 2^5 in two parts: up to 22, and the rest.
    for (value, word) in [
        (0, 0),
        (1, 1),
        (2, 3),
        (16, 9),
        (17, 10),
        (22, 10),
        (23, 11),
        (32, 11),
    ] {
        assert_eq!(over(value, "u64.log2=1"), [word], "{value}");
    }
    assert_eq!(over(1200, "u64.log2=4"), [165]);
    assert_eq!(over(u64::MAX, "u64.log2=6"), [64 * 64 + 1]);
    assert_eq!(over(u64::MAX, "u64.log2=0"), [64]);
    // Negative numbers of signed fields only.
    assert_eq!(key("s8"), [(-128i64) as u64]);
    assert_eq!(key("s8.log2=2"), [(-29i64) as u64]);
    assert_eq!(key("s8.log2=0"), [64]);
    // In expressions it is the same number, and so is that of a constant.
    assert_eq!(over(1200, "u64.log2=4-165,u64.log2=4*2"), [0, 330]);
    assert_eq!(key("hitcount.log2=3"), [1]);
}

#[test]
fn h_mod_10_buckets_are_their_lower_ends() {
    for (value, width, low) in [
        (0, 10, 0),
        (9, 10, 0),
        (10, 10, 10),
        (u64::MAX, 10, u64::MAX - 5),
        (u64::MAX, u64::MAX, u64::MAX),
        (7, 1, 7),
    ] {
        let mut record = zoo();

        record[24..32].copy_from_slice(&u64::to_ne_bytes(value));
        assert_eq!(
            key_over(&record, &format!("u64.buckets={width}")),
            [low],
            "{value}"
        );
    }
}

#[test]
fn h_mod_02_other_modifiers_compute_nothing() {
    for m in ["hex", "sym", "sym-offset", "syscall", "usecs"] {
        assert_eq!(key(&format!("u64.{m}")), [u64::MAX], "{m}");
    }
    assert_eq!(key("common_pid.execname"), [42]);
    assert_eq!(key("seven.hex"), slot(b"sevenXY", 1));
}

#[test]
fn h_mod_11_and_h_spf_02_timestamps() {
    assert_eq!(key("common_timestamp"), [1_234_567_890]);
    // To the nearest microsecond, and one `.usecs` switches all stamps of the trigger.
    assert_eq!(
        key("common_timestamp.usecs,common_timestamp"),
        [1_234_568; 2]
    );
    assert_eq!(values("common_timestamp"), [1_234_567_890]);

    let counter = Around {
        in_ns: false,
        ..AROUND
    };

    assert_eq!(
        key_in(&[], &counter, "common_timestamp.usecs"),
        [1_234_567_890]
    );

    let end = Around {
        ts: u64::MAX,
        ..AROUND
    };

    // As the addition in C, which wraps.
    assert_eq!(key_in(&[], &end, "common_timestamp.usecs"), [0]);
}

#[test]
fn h_spf_03_05_06_surroundings() {
    for name in ["common_cpu", "cpu", "CPU"] {
        assert_eq!(key(name), [3]);
    }
    for name in ["common_comm", "comm", "COMM"] {
        assert_eq!(key(name), slot(b"sh", 32));
    }

    let mut stack = AROUND.frames.to_vec();

    stack.resize(31, 0);
    assert_eq!(key("stacktrace"), stack);
    assert_eq!(key("u8,common_stacktrace"), [vec![200], stack].concat());

    // A name without room for a NUL.
    let long = Around {
        comm: "0123456789abcdef",
        ..AROUND
    };

    assert_eq!(
        key_in(&[], &long, "common_comm"),
        slot(b"0123456789abcdef", 32)
    );
}
