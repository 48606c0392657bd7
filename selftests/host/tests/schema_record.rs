// SPDX-License-Identifier: GPL-2.0

//! Records of synthetic events: their bytes, their text, and what forged ones show.

#![cfg(not(loom))]

mod schema_common;

use rust_hist::{
    limits::STACK_DEPTH,
    schema::{
        Lost,
        StableValues,
        Unread,
        HEADER, //
    },
};
use schema_common::*;

/// S-REC-01.
#[test]
fn words_follow_each_other() {
    let schema = defined("ev u8 a; char b[3]; long c[]; char d[]; int e; char f[256]; u64 g");
    let at: Vec<_> = schema.fields().map(|f| (f.at, f.offset())).collect();

    assert_eq!(
        at,
        [
            (0, 8),
            (1, 16),
            (33, 272),
            (34, 280),
            (35, 288),
            (36, 296),
            (68, 552)
        ]
    );
    assert_eq!(schema.words(), 69);
    assert!(schema.dynamic);
    assert!(!defined("ev char b[3]").dynamic);
}

#[test]
fn numbers_take_their_low_bytes() {
    let schema = defined("ev u8 a; s16 b; pid_t c; s64 d; bool e");
    let big = 0x1122_3344_5566_7788;
    let record = record(&schema, vec![big.into(); 5]);

    assert_eq!(record.len(), HEADER + 5 * 8);
    let words: Vec<_> = (0..5).map(|at| word(&record, at)).collect();
    if cfg!(target_endian = "little") {
        assert_eq!(words, [0x88, 0x7788, 0x5566_7788, big, 0x88]);
    }
}

/// S-REC-06.
#[test]
fn negative_numbers() {
    let schema = defined("ev s8 a; s16 b; s32 c; s64 d; char e; u8 f; u16 g; u32 h; u64 i; bool j");
    let minus = u64::MAX;
    let record = record(&schema, vec![minus.into(); 10]);

    assert_eq!(
        line(&schema, &record),
        "ev: a=-1 b=-1 c=-1 d=-1 e=-1 f=255 g=65535 h=4294967295 i=18446744073709551615 j=-1\n"
    );
}

/// S-REC-01.
#[test]
fn static_strings_take_256_bytes() {
    let schema = defined("ev char a[16]; int b");
    let record = record(&schema, vec!["hello".into(), 7.into()]);

    assert_eq!(record.len(), HEADER + 256 + 8);
    assert_eq!(&record[HEADER..HEADER + 6], b"hello\0");
    assert!(record[HEADER + 5..HEADER + 256].iter().all(|&b| b == 0));
    assert_eq!(line(&schema, &record), "ev: a=hello b=7\n");
}

/// S-REC-01, B-13.
#[test]
fn static_strings_at_their_limit() {
    let schema = defined("ev char a[1]; int b");

    for len in [254, 255, 256, 257, 5000] {
        let text = "x".repeat(len);
        let record = record(&schema, vec![text.as_str().into(), 7.into()]);
        let shown = "x".repeat(len.min(255));

        assert_eq!(record[HEADER + 255], 0);
        assert_eq!(line(&schema, &record), format!("ev: a={shown} b=7\n"));
    }
}

/// S-REC-02.
#[test]
fn dynamic_strings_follow_the_words() {
    let schema = defined("ev char a[]; u8 b; char c[]");
    let record = record(&schema, vec!["ab".into(), 1.into(), "cde".into()]);

    assert_eq!(place(&record, 0), (32, 3));
    assert_eq!(place(&record, 2), (35, 4));
    assert_eq!(&record[32..], b"ab\0cde\0\0");
    assert_eq!(line(&schema, &record), "ev: a=ab b=1 c=cde\n");
}

/// S-REC-02.
#[test]
fn dynamic_strings_at_their_limits() {
    let schema = defined("ev char a[]");

    for len in [0, 1, 2, 3, 4, 255, 256, 257, 4094, 4095, 4096, 9000] {
        let text = "y".repeat(len);
        let record = record(&schema, vec![text.as_str().into()]);
        let kept = len.min(4095);

        assert_eq!(place(&record, 0), (16, kept + 1));
        assert_eq!(record.len(), (16 + kept + 1).next_multiple_of(4));
        assert_eq!(line(&schema, &record), format!("ev: a={}\n", &text[..kept]));
    }
}

/// B-12.
#[test]
fn strings_that_change_after_they_were_measured() {
    let schema = defined("ev char a[]; char b[]");
    let values = |len, text: &str| vec![Value::Changing(len, text.into()), "end".into()];

    let grown = record(&schema, values(3, "longer than it was"));
    assert_eq!((place(&grown, 0), place(&grown, 1)), ((24, 4), (28, 4)));
    assert_eq!(line(&schema, &grown), "ev: a=lon b=end\n");

    // What it needs no more stays free, and is 0.
    let shrunk = record(&schema, values(9, "ab"));
    assert_eq!((place(&shrunk, 0), place(&shrunk, 1)), ((24, 3), (34, 4)));
    assert_eq!(&shrunk[24..], b"ab\0\0\0\0\0\0\0\0end\0\0\0");
    assert_eq!(line(&schema, &shrunk), "ev: a=ab b=end\n");
}

/// S-REC-03.
#[test]
fn strings_that_cannot_be_read() {
    let schema = defined("ev char a[]; char b[16]; long c[]; char d[]");
    let fault = || Unread::Fault.into();
    let record = record(&schema, vec![fault(), fault(), fault(), "d".into()]);

    assert_eq!(place(&record, 0).1, 0);
    assert_eq!(line(&schema, &record), "ev: a= b=(fault) c=STACK:\nd=d\n");
    assert!(!record[HEADER..].contains(&b'#'), "a failed copy shows");
}

#[test]
fn nothing_is_written_without_every_text() {
    for text in ["ev char a[]", "ev char a[16]", "ev long a[]"] {
        let schema = defined(text);
        let row = Row(vec![Unread::Torn.into()]);

        match measured(&schema, &row) {
            Err(lost) => assert_eq!(lost, Lost::Torn),
            // A static string is not measured.
            Ok(sizes) => {
                let mut record = vec![STALE; sizes.record_len()];
                assert_eq!(schema.write(&row, &sizes, &mut record), Err(Lost::Torn));
            }
        }
    }
}

/// S-REC-05.
#[test]
fn stacks_start_with_their_number_of_frames() {
    let schema = defined("ev long a[]; int b");
    let record = record(&schema, vec![[0x10, 0x20, 0x30].into(), 9.into()]);

    assert_eq!(place(&record, 0), (24, 32));
    let words: Vec<_> = (2..6).map(|at| word(&record, at)).collect();
    assert_eq!(words, [3, 0x10, 0x20, 0x30]);
    assert_eq!(
        line(&schema, &record),
        "ev: a=STACK:\n=> f10\n=> f20\n=> f30\nb=9\n"
    );
}

/// The C code reserves a word for the count of an empty stack, and does not write it.
#[test]
fn an_empty_stack() {
    let schema = defined("ev long a[]");
    let record = record(&schema, vec![[].into()]);

    assert_eq!(record.len(), 24);
    assert_eq!(place(&record, 0), (16, 0));
    assert_eq!(word(&record, 1), 0);
    assert_eq!(line(&schema, &record), "ev: a=STACK:\n\n");
}

/// The C code counts and reserves 31 frames, and writes 30 of them.
#[test]
fn a_stack_of_all_the_frames_there_may_be() {
    let schema = defined("ev long a[]");

    for frames in [STACK_DEPTH - 1, STACK_DEPTH, STACK_DEPTH + 5] {
        let value = Value::Stack((1..=frames as u64).collect());
        let record = record(&schema, vec![value]);
        let counted = frames.min(STACK_DEPTH);

        assert_eq!(record.len(), 16 + (counted + 1) * 8);
        assert_eq!(place(&record, 0), (16, STACK_DEPTH * 8));
        assert_eq!(word(&record, 1), counted as u64);
        assert_eq!(word(&record, STACK_DEPTH), STACK_DEPTH as u64 - 1);
    }
}

#[test]
fn a_record_that_its_words_cannot_describe() {
    let fields: Vec<_> = (0..64).map(|n| format!("char f{n}[]")).collect();
    let schema = defined(&format!("ev {}", fields.join("; ")));
    let long = "z".repeat(4000);
    let row = Row(vec![long.as_str().into(); 64]);

    assert_eq!(measured(&schema, &row).map(|_| ()), Err(Lost::TooLong));
    let row = Row(vec!["z".into(); 64]);
    assert!(measured(&schema, &row).is_ok());
    // More fields than there is room for.
    assert!(!schema.collect_stable(&row, &mut StableValues::default()));
}

#[test]
fn memory_beyond_the_record_becomes_zero_and_too_little_is_refused() {
    let schema = defined("ev char a[]; u8 b");
    let row = Row(vec!["ab".into(), 1.into()]);
    let sizes = measured(&schema, &row).expect("all there");
    let mut record = vec![STALE; 64];

    assert_eq!(sizes.record_len(), 28);
    assert_eq!(schema.write(&row, &sizes, &mut record), Ok(()));
    assert!(record[27..].iter().all(|&b| b == 0));
    for short in [0, 7, 8, 20, 26] {
        let mut record = vec![STALE; short];
        assert_eq!(schema.write(&row, &sizes, &mut record), Err(Lost::TooLong));
    }
}

#[test]
fn field_by_field() {
    let schema = defined("ev char a[4]; s16 b; u64 c");
    let mut record = vec![STALE; schema.fixed_len()];

    schema.clear(&mut record);
    assert_eq!(line(&schema, &record), "ev: a= b=0 c=0\n");
    assert!(schema.put_string(&mut record, 0, b"hello"));
    assert!(schema.put_string(&mut record, 0, b"hi"));
    assert!(schema.put_number(&mut record, 1, u64::MAX));
    assert!(schema.put_number(&mut record, 2, 5));
    assert_eq!(line(&schema, &record), "ev: a=hi b=-1 c=5\n");
    assert_eq!(record[HEADER + 3], 0);

    assert!(
        !schema.put_number(&mut record, 0, 1),
        "a string is no number"
    );
    assert!(
        !schema.put_string(&mut record, 1, b"x"),
        "a number is no string"
    );
    assert!(
        !schema.put_number(&mut record, 3, 1),
        "there is no fourth field"
    );
    assert!(
        !schema.put_number(&mut record[..20], 2, 1),
        "it is not in the record"
    );
    let long = [b'x'; 300];
    assert!(schema.put_string(&mut record, 0, &long));
    assert_eq!(record[HEADER + 254..HEADER + 258], [b'x', 0, 255, 255]);
}

/// S-REC-04.
#[test]
fn print_formats() {
    let schema = defined("ev u64 lat; gfp_t g; char c[16]; char d[]; unsigned long s[]; long l");

    assert_eq!(
        print_fmt(&schema),
        "\"lat=%llu g=%x c=%s d=%s s=%s l=%ld\", REC->lat, REC->g, REC->c, __get_str(d), \
         __get_stacktrace(s), REC->l"
    );
}

/// S-REC-05.
#[test]
fn allocation_flags_stand_behind_the_blank() {
    let schema = defined("ev gfp_t a; int b");
    let record = record(&schema, vec![0x1_0000_0cc0.into(), 2.into()]);
    assert_eq!(line(&schema, &record), "ev: a=cc0  (Gcc0)b=2\n");

    let schema = defined("ev gfp_t a");
    let record = schema_common::record(&schema, vec![0xcc0.into()]);
    assert_eq!(line(&schema, &record), "ev: a=cc0 (Gcc0)\n");
}

/// S-REC-07.
#[test]
fn verbose_lines_show_each_format() {
    let schema = defined("ev u64 a; char b[]; gfp_t c; s8 d");
    let record = record(&schema, vec![1.into(), "x".into(), 16.into(), 2.into()]);
    let line = Text::of(|out| schema.write_line(&record, true, &Plain, out));

    assert_eq!(line, "ev: %llu a=1 %s b=x %x c=10  (G10)%d d=2\n");
}

/// B-10: what `inject` can make, any word and a record that ends with the declared size of its last
/// field.
#[test]
fn forged_records() {
    let schema = defined("ev long a[]; char b[]; char c[4]");
    let mut record = vec![0; HEADER + 16 + 4];
    let loc = |offset: u32, len: u32| u64::from(len << 16 | offset).to_ne_bytes();

    record[HEADER + 16..].copy_from_slice(b"last");
    for (offset, len, shown) in [
        (0, 0, ""),
        (24, 4, "last"),
        (24, 0xffff, "last"),
        (25, 2, "as"),
        (27, 1, "t"),
        (28, 1, ""),
        (28, 0, ""),
        (0xffff, 0xffff, ""),
    ] {
        record[HEADER + 8..HEADER + 16].copy_from_slice(&loc(offset, len));
        assert_eq!(
            line(&schema, &record),
            format!("ev: a=STACK:\nb={shown} c=last\n")
        );
    }
    record[HEADER + 8..HEADER + 16].fill(0);
    for (offset, len, frames) in [(0, 0xffff, 2), (8, 20, 1), (20, 8, 0), (0xffff, 0xffff, 0)] {
        record[HEADER..HEADER + 8].copy_from_slice(&loc(offset, len));
        let line = line(&schema, &record);
        assert_eq!(line.matches("=> ").count(), frames, "{line}");
    }
}

#[test]
fn records_that_end_early() {
    let schema = defined("ev u64 a; s16 b; char c[16]; char d[]; long e[]; gfp_t f");

    for len in 0..HEADER + 300 {
        let line = line(&schema, &vec![0xff; len]);
        assert!(line.starts_with("ev: a=") && line.ends_with('\n'), "{line}");
    }
    assert_eq!(line(&schema, &[]), "ev: a=0 b=0 c= d= e=STACK:\nf=0 (G0)\n");
}
