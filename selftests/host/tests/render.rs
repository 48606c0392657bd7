// SPDX-License-Identifier: GPL-2.0

//! The text of the `hist` file, byte for byte.
//!
//! Expected texts are written from the format strings of the C implementation.

#![cfg(not(loom))]

mod lang_common;

use lang_common::{compile, line_of, Event, Text, KMALLOC, SWITCH, SYS_ENTER, ZOO};
use rust_hist::limits::COMM_WORDS;
use rust_hist::program::Program;
use rust_hist::render::{self, Renderer, Stats, Symbols};
use rust_hist::text::Out;
use rust_hist::tracing_map::sort::{row_of, sort, SortEntry};
use rust_hist::tracing_map::{Account, Dimensions, Row, Rows, Shape};
use std::fmt;

/// Two functions and three system calls.
struct Names;

impl Symbols for Names {
    fn symbol<W: Out>(&self, addr: u64, out: &mut W) -> fmt::Result {
        match addr {
            0xffff_ffff_81a0_0010 => out.write_bytes(b"vfs_read"),
            0xffff_ffff_c000_0007 => out.write_bytes(b"i915_gem_execbuffer2 [i915]"),
            _ => write!(out, "0x{addr:x}"),
        }
    }

    fn symbol_offset<W: Out>(&self, addr: u64, out: &mut W) -> fmt::Result {
        match addr {
            0xffff_ffff_81a0_0010 => {
                // In pieces, as a formatter may write it.
                out.write_bytes(b"vfs_read")?;
                out.write_bytes(b"+0x10/0x200")
            }
            0xffff_ffff_c000_0007 => out.write_bytes(b"i915_gem_execbuffer2+0x7/0x123 [i915]"),
            _ => write!(out, "0x{addr:x}"),
        }
    }

    fn syscall(&self, nr: u64) -> Option<&[u8]> {
        match nr {
            0 => Some(b"sys_read"),
            257 => Some(b"sys_openat"),
            1000 => Some(b"sys_a_name_of_more_than_thirty_letters"),
            _ => None,
        }
    }
}

/// Key words, aux words and sums of a row.
type Copied<'a> = (&'a [u64], &'a [u64], &'a [u64]);

fn shape_of(program: &Program) -> Shape {
    let dimensions = Dimensions {
        bits: program.bits,
        key_words: program.key_words(),
        aux_words: if program.needs_comm() { COMM_WORDS } else { 0 },
        sums: program.sums(),
        ..Dimensions::default()
    };
    Shape::new(dimensions, 1).expect("a program fits in a map")
}

/// Returns the text of a trigger with these rows, header to totals.
fn show(event: &Event, text: &str, copied: &[Copied<'_>]) -> String {
    String::from_utf8(show_bytes(event, text.as_bytes(), copied)).expect("UTF-8")
}

fn show_bytes(event: &Event, text: &[u8], copied: &[Copied<'_>]) -> Vec<u8> {
    let program = compile(event, text).expect("a right trigger");
    let shape = shape_of(&program);
    let words: Vec<u64> = copied
        .iter()
        .flat_map(|(key, aux, sums)| {
            assert_eq!(key.len() + aux.len() + sums.len(), shape.row_words());
            [*key, *aux, *sums].concat()
        })
        .collect();
    let rows = Rows::new(&shape, &words, copied.len());
    let stats = Stats::of(&program, &rows);
    let table = Renderer {
        program: &program,
        text,
        stats: &stats,
        symbols: &Names,
    };
    let account = Account {
        hits: rows.iter().map(|row| row.sums[0]).sum(),
        dropped_full: 3,
        dropped_nested: 1000,
        ignored: 1000,
        ..Account::default()
    };

    let mut out = Text::default();
    let mut order = vec![SortEntry::default(); rows.len()];
    render::begin(0, &mut out).expect("room");
    out.write_bytes(&line_of(&program, text)).expect("room");
    out.write_bytes(b"\n").expect("room");
    render::end_header(&mut out).expect("room");
    sort(&rows, program.sort_keys(), &mut order);
    for place in &order {
        let row = rows.get(row_of(place)).expect("an index of a row");
        table.row(&row, &mut out).expect("room");
    }
    render::totals(&account, rows.len(), &mut out).expect("room");
    out.0
}

/// Returns the only row of a trigger, without its newline.
fn row(event: &Event, text: &str, copied: Copied<'_>) -> String {
    let text = show(event, text, &[copied]);
    let (_, rows) = text.split_once("#\n\n").expect("a header");
    let (row, _) = rows.split_once("\n\nTotals:\n").expect("totals");
    row.to_owned()
}

/// Returns a string as the words of a key.
fn words<const N: usize>(text: &[u8]) -> [u64; N] {
    let mut bytes = text.to_vec();
    assert!(bytes.len() <= 8 * N);
    bytes.resize(8 * N, 0);
    let mut words = [0; N];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_ne_bytes(bytes.try_into().expect("8 bytes"));
    }
    words
}

#[test]
fn a_whole_table() {
    assert_eq!(
        show(
            &KMALLOC,
            "keys=call_site:vals=bytes_req",
            &[
                (&[18446744072102520590], &[], &[273, 10920]),
                (&[18446744071580700980], &[], &[1, 8]),
                (&[18446744071579359876], &[], &[1, 152]),
                (&[5], &[], &[12345678901, u64::MAX]),
            ],
        ),
        "# event histogram\n\
         #\n\
         # trigger info: hist:keys=call_site:vals=hitcount,bytes_req:sort=hitcount:size=2048 [active]\n\
         #\n\
         \n\
         { call_site: 18446744071580700980 } hitcount:          1  bytes_req:          8\n\
         { call_site: 18446744071579359876 } hitcount:          1  bytes_req:        152\n\
         { call_site: 18446744072102520590 } hitcount:        273  bytes_req:      10920\n\
         { call_site:          5 } hitcount: 12345678901  bytes_req: 18446744073709551615\n\
         \n\
         Totals:\n    Hits: 12345679176\n    Entries: 4\n    Dropped: 3\n"
    );
}

#[test]
fn an_empty_table() {
    assert_eq!(
        show(&KMALLOC, "keys=ptr:pause", &[]),
        "# event histogram\n\
         #\n\
         # trigger info: hist:keys=ptr:vals=hitcount:sort=hitcount:size=2048 [paused]\n\
         #\n\
         \n\
         \n\
         Totals:\n    Hits: 0\n    Entries: 0\n    Dropped: 3\n"
    );
}

#[test]
fn two_newlines_between_triggers() {
    let mut out = Text::default();
    render::begin(1, &mut out).expect("room");
    assert_eq!(out.0, b"\n\n# event histogram\n#\n# trigger info: ");
}

#[test]
fn numbers_are_unsigned_and_ten_wide() {
    let one = |v: u64| row(&ZOO, "keys=s64", (&[v], &[], &[1]));

    assert_eq!(one(0), "{ s64:          0 } hitcount:          1");
    assert_eq!(
        one(9_999_999_999),
        "{ s64: 9999999999 } hitcount:          1"
    );
    assert_eq!(
        one(10_000_000_000),
        "{ s64: 10000000000 } hitcount:          1"
    );
    assert_eq!(
        one(u64::MAX),
        "{ s64: 18446744073709551615 } hitcount:          1"
    );
}

#[test]
fn hex() {
    let text = "keys=ptr.hex:vals=bytes_req.hex";

    assert_eq!(
        row(
            &KMALLOC,
            text,
            (&[0xffff_8881_0012_abcd], &[], &[7, 0xbeef])
        ),
        "{ ptr: ffff88810012abcd } hitcount:          7  bytes_req:       beef"
    );
    assert_eq!(
        row(&KMALLOC, text, (&[0], &[], &[7, u64::MAX])),
        "{ ptr: 0 } hitcount:          7  bytes_req: ffffffffffffffff"
    );
}

#[test]
fn symbols_are_45_and_55_wide() {
    let sym = |v: u64| row(&KMALLOC, "keys=call_site.sym", (&[v], &[], &[1]));
    let offset = |v: u64| row(&KMALLOC, "keys=call_site.sym-offset", (&[v], &[], &[1]));

    for (name, v) in [
        ("vfs_read", 0xffff_ffff_81a0_0010u64),
        ("i915_gem_execbuffer2 [i915]", 0xffff_ffff_c000_0007),
        ("0x1234", 0x1234),
    ] {
        assert_eq!(
            sym(v),
            format!("{{ call_site: [{v:x}] {name:<45} }} hitcount:          1")
        );
    }
    for (name, v) in [
        ("vfs_read+0x10/0x200", 0xffff_ffff_81a0_0010u64),
        (
            "i915_gem_execbuffer2+0x7/0x123 [i915]",
            0xffff_ffff_c000_0007,
        ),
        ("0x0", 0),
    ] {
        assert_eq!(
            offset(v),
            format!("{{ call_site: [{v:x}] {name:<55} }} hitcount:          1")
        );
    }
}

#[test]
fn system_calls_by_name() {
    let id = |v: u64| row(&SYS_ENTER, "keys=id.syscall", (&[v], &[], &[1]));

    for (name, v) in [
        ("sys_read", 0u64),
        ("sys_openat", 257),
        ("unknown_syscall", 999),
        ("sys_a_name_of_more_than_thirty_letters", 1000),
        ("unknown_syscall", u64::MAX),
    ] {
        assert_eq!(
            id(v),
            format!("{{ id: {name:<30}[{v:>3}] }} hitcount:          1")
        );
    }
}

#[test]
fn task_names() {
    let pid = |comm: &[u8], v: u64| {
        let comm: [u64; COMM_WORDS] = words(comm);
        row(&SWITCH, "keys=common_pid.execname", (&[v], &comm, &[1]))
    };

    assert_eq!(
        pid(b"bash", 3196),
        "{ common_pid: bash            [      3196] } hitcount:          1"
    );
    assert_eq!(
        pid(b"<idle>", 0),
        "{ common_pid: <idle>          [         0] } hitcount:          1"
    );
    // The longest name, and what is after a NUL.
    assert_eq!(
        pid(b"fifteen_letters", 1),
        "{ common_pid: fifteen_letters [         1] } hitcount:          1"
    );
    assert_eq!(
        pid(b"sh\0t_letters\0", 1),
        "{ common_pid: sh              [         1] } hitcount:          1"
    );
}

/// as `%*pbl` has them, and in the order of the masks as numbers.
#[test]
fn masks_of_cpus() {
    let key = |words: &[u64]| [words, &vec![0; 32 - words.len()]].concat();
    let mask = |words: &[u64]| row(&ZOO, "keys=cpumask", (&key(words), &[], &[1]));

    for (words, list) in [
        (&[0][..], ""),
        (&[1], "0"),
        (&[0b1011], "0-1,3"),
        (&[0b1110_0111 << 56], "56-58,61-63"),
        (&[1 << 63, 1], "63-64"),
        (&[u64::MAX, u64::MAX], "0-127"),
        (&[1 << 10 | 1 << 12, 0, 1 << 1], "10,12,129"),
    ] {
        assert_eq!(
            mask(words),
            format!("{{ cpumask: {list:<50} }} hitcount:          1")
        );
    }

    let masks = [[0, 1], [1 << 63, 0], [2, 0], [1, 1]].map(|words| key(&words));
    let rows = masks.each_ref().map(|key| (&key[..], &[][..], &[1][..]));
    let shown = show(&ZOO, "keys=cpumask:sort=cpumask", &rows);
    let lists = shown
        .lines()
        .filter_map(|line| line.strip_prefix("{ cpumask: "));
    let lists: Vec<_> = lists.filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(lists, ["1", "63", "64", "0,64"]);
}

#[test]
fn powers_of_two() {
    let lat = |v: u64| row(&KMALLOC, "keys=bytes_req.log2", (&[v], &[], &[1]));

    assert_eq!(lat(0), "{ bytes_req: ~ 2^0  } hitcount:          1");
    assert_eq!(lat(7), "{ bytes_req: ~ 2^7  } hitcount:          1");
    assert_eq!(lat(64), "{ bytes_req: ~ 2^64 } hitcount:          1");
}

#[test]
fn parts_of_powers_of_two() {
    let at = |text: &str, v: u64| row(&ZOO, text, (&[v], &[], &[1]));

    for (word, shown) in [
        (0, "0-0"),
        (1, "1-1"),
        (165, "1167-1217"),
        (1025, "17664662643191237677-18446744073709551615"),
    ] {
        assert_eq!(
            at("keys=u64.log2=4", word),
            format!("{{ u64: ~ {shown} }} hitcount:          1")
        );
    }
    assert_eq!(
        at("keys=s64.log2=4", 165u64.wrapping_neg()),
        "{ s64: ~ -1217--1167 } hitcount:          1"
    );
    assert_eq!(
        at("keys=u64.log2=0", 7),
        "{ u64: ~ 2^7  } hitcount:          1"
    );
}

#[test]
fn buckets() {
    let at = |text: &str, v: u64| row(&KMALLOC, text, (&[v], &[], &[1]));

    assert_eq!(
        at("keys=bytes_req.buckets=32", 64),
        "{ bytes_req: ~ 64-95 } hitcount:          1"
    );
    assert_eq!(
        at("keys=bytes_req.buckets=1", 7),
        "{ bytes_req: ~ 7-7 } hitcount:          1"
    );
    // The last bucket ends past the highest number and wraps.
    assert_eq!(
        at("keys=bytes_req.buckets=10", 18446744073709551610),
        "{ bytes_req: ~ 18446744073709551610-3 } hitcount:          1"
    );
}

#[test]
fn microseconds_are_plain_numbers() {
    assert_eq!(
        row(
            &KMALLOC,
            "keys=common_timestamp.usecs:vals=bytes_req.usecs",
            (&[12], &[], &[1, 13])
        ),
        "{ common_timestamp:         12 } hitcount:          1  bytes_req:         13"
    );
}

#[test]
fn strings_are_fifty_wide() {
    let comm = |text: &[u8]| {
        let key: [u64; 2] = words(text);
        row(&SWITCH, "keys=next_comm", (&key, &[], &[1]))
    };
    assert_eq!(
        comm(b"rcu_preempt"),
        format!(
            "{{ next_comm: {:<50} }} hitcount:          1",
            "rcu_preempt"
        )
    );
    assert_eq!(
        comm(b""),
        format!("{{ next_comm: {:<50} }} hitcount:          1", "")
    );
    assert_eq!(
        comm(b"eight888\0x"),
        format!("{{ next_comm: {:<50} }} hitcount:          1", "eight888")
    );

    let file = |text: &[u8]| {
        let key: [u64; 32] = words(text);
        row(&ZOO, "keys=filename", (&key, &[], &[1]))
    };
    let long = "/usr/lib/x86_64-linux-gnu/a/path/of/more/than/fifty/letters";
    assert_eq!(
        file(long.as_bytes()),
        format!("{{ filename: {long} }} hitcount:          1")
    );
    let longest = "x".repeat(255);
    assert_eq!(
        file(longest.as_bytes()),
        format!("{{ filename: {longest} }} hitcount:          1")
    );
}

#[test]
fn strings_need_not_be_utf8() {
    let key: [u64; 2] = words(b"caf\xe9 \xff\x01");
    let text = show_bytes(&SWITCH, b"keys=next_comm", &[(&key, &[], &[1])]);
    let wanted = b"{ next_comm: caf\xe9 \xff\x01   ";

    assert!(text.windows(wanted.len()).any(|part| part == wanted));
}

#[test]
fn compound_keys() {
    let comm: [u64; 2] = words(b"sshd");
    let key = [&comm[..], &[3196], &[2]].concat();

    assert_eq!(
        row(
            &SWITCH,
            "keys=next_comm,next_pid,common_cpu:vals=prev_prio",
            (&key, &[], &[4, 480])
        ),
        format!(
            "{{ next_comm: {:<50}, next_pid:       3196, common_cpu:          2 }} \
             hitcount:          4  prev_prio:        480",
            "sshd"
        )
    );
}

fn stack(frames: &[u64]) -> [u64; 31] {
    let mut words = [0; 31];
    words[..frames.len()].copy_from_slice(frames);
    words
}

#[test]
fn kernel_stacks() {
    let frames = stack(&[0xffff_ffff_81a0_0010, 0xffff_ffff_c000_0007]);
    let expected = "{ common_stacktrace:\n\
                    \x20        vfs_read+0x10/0x200\n\
                    \x20        i915_gem_execbuffer2+0x7/0x123 [i915]\n\
                    } hitcount:          3  bytes_req:         96";

    for text in [
        "keys=common_stacktrace:vals=bytes_req",
        "keys=stacktrace:vals=bytes_req",
    ] {
        assert_eq!(row(&KMALLOC, text, (&frames, &[], &[3, 96])), expected);
    }
    // As deep as it gets, and none at all.
    let deep = row(
        &KMALLOC,
        "keys=common_stacktrace",
        (&stack(&[0x77; 31]), &[], &[1]),
    );
    assert_eq!(deep.matches("\n         0x77\n").count(), 16);
    assert_eq!(deep.lines().count(), 33);
    assert_eq!(
        row(&KMALLOC, "keys=common_stacktrace", (&stack(&[]), &[], &[1])),
        "{ common_stacktrace:\n} hitcount:          1"
    );
}

#[test]
fn a_stack_beside_other_keys() {
    let frames = stack(&[0xffff_ffff_81a0_0010]);
    let behind = [&frames[..], &[64]].concat();
    let before = [&[64], &frames[..]].concat();

    assert_eq!(
        row(&KMALLOC, "keys=common_stacktrace,bytes_req", (&behind, &[], &[1])),
        "{ common_stacktrace:\n         vfs_read+0x10/0x200\n, bytes_req:         64} hitcount:          1"
    );
    assert_eq!(
        row(&KMALLOC, "keys=bytes_req,common_stacktrace", (&before, &[], &[1])),
        "{ bytes_req:         64, common_stacktrace:\n         vfs_read+0x10/0x200\n} hitcount:          1"
    );
}

#[test]
fn a_stack_in_the_record_begins_on_the_line_of_its_name() {
    assert_eq!(
        row(
            &ZOO,
            "keys=stack.stacktrace",
            (&stack(&[0x77, 0x78]), &[], &[1])
        ),
        "{ stack.stacktrace         0x77\n         0x78\n} hitcount:          1"
    );
}

/// Returns the second column of each row for these sums.
fn column(text: &str, sums: &[u64]) -> Vec<String> {
    let rows: Vec<([u64; 1], [u64; 2])> = (0..).zip(sums).map(|(i, v)| ([i], [1, *v])).collect();
    let copied: Vec<Copied<'_>> = rows
        .iter()
        .map(|(key, sums)| (&key[..], &[][..], &sums[..]))
        .collect();

    show(&KMALLOC, text, &copied)
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| {
            line.split_once("hitcount:          1")
                .expect("a row")
                .1
                .to_owned()
        })
        .collect()
}

#[test]
fn percentages() {
    let percent = |sums: &[u64]| column("keys=ptr:vals=bytes_req.percent:sort=ptr", sums);

    assert_eq!(
        percent(&[1, 2, 0, 997]),
        [
            "  bytes_req (%):   0.10",
            "  bytes_req (%):   0.20",
            "  bytes_req (%):   0.00",
            "  bytes_req (%):  99.70",
        ]
    );
    assert_eq!(percent(&[5]), ["  bytes_req (%): 100.00"]);
    assert_eq!(
        percent(&[1, 2]),
        ["  bytes_req (%):  33.33", "  bytes_req (%):  66.66"]
    );
    assert_eq!(
        percent(&[0, 0]),
        ["  bytes_req (%):   0.00", "  bytes_req (%):   0.00"]
    );
    // Too large to multiply: the total is divided instead.
    assert_eq!(
        percent(&[1 << 62, 1 << 62]),
        ["  bytes_req (%):  50.00", "  bytes_req (%):  50.00"]
    );
    // H-OUT-09: a total above 64 bits.
    assert_eq!(
        percent(&[u64::MAX, 1]),
        ["  bytes_req (%): 100.00", "  bytes_req (%):   0.00"]
    );
    assert_eq!(
        percent(&[u64::MAX, u64::MAX, u64::MAX / 2, 1 << 62, 1 << 62]),
        [
            "  bytes_req (%):  33.33",
            "  bytes_req (%):  33.33",
            "  bytes_req (%):  16.66",
            "  bytes_req (%):   8.33",
            "  bytes_req (%):   8.33",
        ]
    );
    // That of a signed field is 5.
    assert_eq!(
        column(
            "keys=ptr:vals=node.percent:sort=ptr",
            &[10, 5u64.wrapping_neg()]
        ),
        ["  node (%): 200.00", "  node (%):[ERROR]"]
    );
}

#[test]
fn bars() {
    let graph = |sums: &[u64]| column("keys=ptr:vals=bytes_req.graph:sort=ptr", sums);

    assert_eq!(
        graph(&[20, 10, 1, 0, 19]),
        [
            "  bytes_req: ####################",
            "  bytes_req: ##########          ",
            "  bytes_req: #                   ",
            "  bytes_req:                     ",
            "  bytes_req: ################### ",
        ]
    );
    assert_eq!(graph(&[0]), ["  bytes_req:                     "]);
    assert_eq!(
        graph(&[u64::MAX, u64::MAX / 2]),
        [
            "  bytes_req: ####################",
            "  bytes_req: ##########          ",
        ]
    );
}

#[test]
fn hitcount_in_other_forms() {
    let sums = [30, 30];
    assert_eq!(
        row(
            &KMALLOC,
            "keys=ptr:vals=hitcount.percent",
            (&[1], &[], &sums)
        ),
        "{ ptr:          1 } hitcount:         30  hitcount (%): 100.00"
    );
    assert_eq!(
        row(
            &KMALLOC,
            "keys=ptr:vals=hitcount.graph:nohitcount",
            (&[1], &[], &sums)
        ),
        "{ ptr:          1 }  hitcount: ####################"
    );
    assert_eq!(
        row(&KMALLOC, "keys=ptr:vals=hitcount.hex", (&[1], &[], &sums)),
        "{ ptr:          1 } hitcount:         30  hitcount:         1e"
    );
}

#[test]
fn the_hit_count_can_be_hidden() {
    assert_eq!(
        row(
            &KMALLOC,
            "keys=ptr:vals=bytes_req,bytes_alloc:nohitcount",
            (&[1], &[], &[9, 2, 3])
        ),
        "{ ptr:          1 }  bytes_req:          2  bytes_alloc:          3"
    );
}

#[test]
fn rows_come_in_the_order_asked_for() {
    let keys_of = |text: &str, rows: &[Copied<'_>]| -> Vec<u64> {
        show(&ZOO, text, rows)
            .lines()
            .filter(|line| line.starts_with('{'))
            .map(|line| {
                let number = line.split([':', '}']).nth(1).expect("a key").trim();
                number.parse().expect("a number")
            })
            .collect()
    };
    let rows: [Copied<'_>; 4] = [
        (&[1], &[], &[5, 10]),
        (&[2], &[], &[5, 30]),
        (&[u64::MAX], &[], &[7, 20]),
        (&[4], &[], &[1, 20]),
    ];

    assert_eq!(keys_of("keys=s64:vals=u64", &rows), [4, 1, 2, u64::MAX]);
    assert_eq!(
        keys_of("keys=s64:vals=u64:sort=s64", &rows),
        [u64::MAX, 1, 2, 4]
    );
    assert_eq!(
        keys_of("keys=u64:vals=s64:sort=u64", &rows),
        [1, 2, 4, u64::MAX]
    );
    assert_eq!(
        keys_of("keys=s64:vals=u64:sort=u64.descending,hitcount", &rows),
        [2, 4, u64::MAX, 1]
    );
    assert_eq!(
        keys_of(
            "keys=s64:vals=u64:sort=hitcount.descending,s64.descending",
            &rows
        ),
        [u64::MAX, 2, 1, 4]
    );
}

#[test]
fn x_61_a_row_of_others() {
    let text = b"keys=ptr,node:vals=bytes_req.percent,bytes_alloc.graph:others";
    let program = compile(&KMALLOC, text).expect("a right trigger");
    let words = [1, 2, 10, 25, 30];
    let rows = Rows::new(&shape_of(&program), &words, 1);
    let others = Row::of_others(&[4, 75, 60]);
    let stats = Stats::with(&program, &rows, Some(others));
    let table = Renderer {
        program: &program,
        text,
        stats: &stats,
        symbols: &Names,
    };
    let mut out = Text::default();

    table
        .row(&rows.get(0).expect("a row"), &mut out)
        .expect("room");
    table.row(&others, &mut out).expect("room");
    assert_eq!(
        String::from_utf8(out.0).expect("ASCII"),
        "{ ptr:          1, node:          2 } hitcount:         10  bytes_req (%):  25.00  bytes_alloc: ##########          \n\
         { others } hitcount:          4  bytes_req (%):  75.00  bytes_alloc: ####################\n"
    );
}

/// Output that does not fit ends the row with an error and not with a part that looks whole.
#[test]
fn no_room_is_an_error() {
    struct Room(usize);

    impl fmt::Write for Room {
        fn write_str(&mut self, s: &str) -> fmt::Result {
            self.write_bytes(s.as_bytes())
        }
    }

    impl Out for Room {
        fn write_bytes(&mut self, bytes: &[u8]) -> fmt::Result {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(fmt::Error)?;
            Ok(())
        }
    }

    let text = b"keys=call_site.sym:vals=bytes_req.percent,bytes_alloc.graph";
    let program = compile(&KMALLOC, text).expect("a right trigger");
    let words = [0xffff_ffff_81a0_0010, 1, 2, 3];
    let rows = Rows::new(&shape_of(&program), &words, 1);
    let stats = Stats::of(&program, &rows);
    let table = Renderer {
        program: &program,
        text,
        stats: &stats,
        symbols: &Names,
    };
    let row = rows.get(0).expect("a row");
    let mut whole = Text::default();
    table.row(&row, &mut whole).expect("room");

    for room in 0..whole.0.len() {
        assert!(table.row(&row, &mut Room(room)).is_err());
    }
    assert!(table.row(&row, &mut Room(whole.0.len())).is_ok());
}
