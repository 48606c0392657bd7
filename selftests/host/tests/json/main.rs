// SPDX-License-Identifier: GPL-2.0

//! The lines of `hist_json`: as they are written, and parsed back to the rows that they are of.

#![cfg(not(loom))]

#[path = "../lang_common/mod.rs"]
mod lang_common;
mod schema;

use lang_common::{compile, create, Event, Text, KMALLOC, SWITCH, SYS_ENTER, ZOO};
use proptest::prelude::*;
use rust_hist::{
    alloc::AllocError,
    bucket::Scale,
    field::{
        FieldDesc,
        SynthClass,
        SynthField, //
    },
    limits::{
        COMM_WORDS,
        STACK_DEPTH, //
    },
    program::{
        Kind,
        Modifier,
        Program,
        Resolver, //
    },
    render::{
        json::{self, Epoch, Head},
        Json,
        Symbols, //
    },
    text::Out,
    tracing_map::{
        sort::Column,
        Account,
        Row, //
    },
};
use schema::{wide, Schema};
use serde_json::{json, Value};
use std::fmt;

/// Symbols from which the address can be read back, with all that has to be escaped.
struct Names;

impl Symbols for Names {
    fn symbol<W: Out>(&self, addr: u64, out: &mut W) -> fmt::Result {
        write!(out, "\"s\\{addr:x}")
    }

    fn symbol_offset<W: Out>(&self, addr: u64, out: &mut W) -> fmt::Result {
        write!(out, "s{addr:x}+0x1/0x2 [mod]")
    }

    fn syscall(&self, nr: u64) -> Option<&[u8]> {
        (nr == 0).then_some(b"sys_read")
    }
}

const EPOCH: Epoch = Epoch {
    number: 7,
    from: 81234567890,
    to: 81234600012,
    real: 1795312345678901234,
};

const HEAD: Head<'_> = Head {
    event: (b"sched", b"sched_switch"),
    prefix: b"hist",
    paused: false,
    clock_in_ns: true,
    epoch: EPOCH,
    consumed: None,
    overhead: None,
};

fn written(write: impl FnOnce(&mut Text) -> fmt::Result) -> String {
    let mut out = Text::default();
    write(&mut out).expect("room");
    String::from_utf8(out.0).expect("ASCII")
}

/// Parses a line, and checks it against the schema.
fn parsed(line: &str) -> Value {
    let (text, rest) = line.split_once('\n').expect("a line");
    assert!(rest.is_empty() && text.bytes().all(|c| matches!(c, 0x20..=0x7e)));
    let value = serde_json::from_str(text).unwrap_or_else(|why| panic!("{text}: {why}"));
    if let Err(why) = Schema::new().check(&value) {
        panic!("{text}: {why}");
    }
    value
}

fn of<'a>(program: &'a Program, text: &'a [u8]) -> Json<'a, Names> {
    Json {
        program,
        text,
        symbols: &Names,
    }
}

fn header(event: &Event, text: &[u8], head: &Head<'_>) -> Value {
    let program = compile(event, text).expect("a right trigger");
    parsed(&written(|out| of(&program, text).header(head, out)))
}

fn row(event: &Event, text: &str, key: &[u64], aux: &[u64], sums: &[u64]) -> String {
    let program = compile(event, text.as_bytes()).expect("a right trigger");
    assert_eq!(
        (key.len(), sums.len()),
        (program.key_words(), program.sums())
    );
    let line = written(|out| of(&program, text.as_bytes()).row(&Row { key, aux, sums }, out));
    parsed(&line);
    line.trim_end().to_owned()
}

/// The bytes that a string stands for.
fn bytes(value: &Value) -> Vec<u8> {
    let chars = value.as_str().expect("a string").chars();
    chars
        .map(|c| u8::try_from(u32::from(c)).expect("a byte"))
        .collect()
}

/// Bytes as words, padded with zeros.
fn words_of(bytes: &[u8], words: usize) -> Vec<u64> {
    let mut bytes = bytes.to_vec();
    assert!(bytes.len() <= words * 8);
    bytes.resize(words * 8, 0);
    let word = |chunk: &[u8]| u64::from_ne_bytes(chunk.try_into().expect("eight"));
    bytes.chunks_exact(8).map(word).collect()
}

fn number(value: &Value) -> u64 {
    wide(value).unwrap_or_else(|| panic!("{value} is no number")) as u64
}

fn address(value: &Value) -> u64 {
    let text = value.as_str().expect("a string");
    u64::from_str_radix(text.strip_prefix("0x").expect("0x"), 16).expect("hex")
}

/// The address that `Names::symbol_offset` has written.
fn frame(value: &Value) -> u64 {
    let text = value.as_str().expect("a string");
    let hex = text
        .strip_prefix('s')
        .and_then(|text| text.split('+').next());
    u64::from_str_radix(hex.expect("a name"), 16).expect("hex")
}

/// The word of a bucket of `.log2=N`: the index, above the bucket of 0, and negative if its numbers are.
fn bucket(scale: Scale, value: &Value) -> u64 {
    let index = value.get("i").map(number);

    match index {
        Some(i) if scale == Scale::POWERS => i,
        Some(i) if wide(&value["lo"]) < Some(0) => (i + 1).wrapping_neg(),
        Some(i) => i + 1,
        None => 0,
    }
}

/// The key words that a row stands for, and the sums that it shows.
fn decoded(program: &Program, line: &Value) -> (Vec<u64>, Vec<u64>) {
    let mut words = Vec::new();
    let keys = line["k"].as_array().expect("a list");

    assert_eq!(keys.len(), program.keys.len());
    for (key, value) in program.keys.iter().zip(keys) {
        let field = key.field;
        match (field.kind, field.modifier) {
            (Kind::String, _) => words.extend(words_of(&bytes(value), key.words())),
            (Kind::Stack, _) => {
                let frames = value["stack"].as_array().expect("a list");
                let mut frames: Vec<u64> = frames.iter().map(frame).collect();
                assert!(frames.len() <= STACK_DEPTH);
                frames.resize(key.words(), 0);
                words.extend(frames);
            }
            (_, Modifier::Sym | Modifier::SymOffset) => words.push(address(&value["addr"])),
            (_, Modifier::Execname) => words.push(number(&value["pid"])),
            (_, Modifier::Syscall) => words.push(number(&value["nr"])),
            (_, Modifier::Buckets(_)) => words.push(number(&value["lo"])),
            (_, Modifier::Log2(scale)) => words.push(bucket(scale, value)),
            _ => words.push(number(value)),
        }
    }
    let sums = line["v"].as_array().expect("a list");
    (words, sums.iter().map(number).collect())
}

#[test]
fn the_first_line_says_what_the_others_are() {
    assert_eq!(
        header(
            &SWITCH,
            b"keys=next_comm,prev_state.log2:vals=next_prio:pause",
            &Head {
                paused: true,
                ..HEAD
            },
        ),
        json!({
            "v": 1,
            "type": "hist",
            "event": "sched:sched_switch",
            "trigger": "hist:keys=next_comm,prev_state.log2:vals=hitcount,next_prio:sort=hitcount:size=2048",
            "state": "paused",
            "epoch": 7,
            "from": 81234567890u64,
            "to": 81234600012u64,
            "real": 1795312345678901234u64,
            "keys": [
                { "name": "next_comm", "kind": "string" },
                { "name": "prev_state", "kind": "log2", "scale": 0 },
            ],
            "vals": [{ "name": "hitcount" }, { "name": "next_prio" }],
        }),
    );
}

#[test]
fn kinds_of_keys() {
    let kinds = |event: &Event, text: &str| header(event, text.as_bytes(), &HEAD)["keys"].clone();

    for (event, text, kind) in [
        (&KMALLOC, "ptr", "number"),
        (&KMALLOC, "ptr.hex", "number"),
        (&KMALLOC, "call_site.sym", "symbol"),
        (&KMALLOC, "call_site.sym-offset", "symbol"),
        (&SYS_ENTER, "id.syscall", "syscall"),
        (&SWITCH, "common_pid.execname", "execname"),
        (&ZOO, "stack", "stack"),
        (&ZOO, "filename", "string"),
    ] {
        let name = text.split('.').next().expect("a name");
        assert_eq!(
            kinds(event, &format!("keys={text}")),
            json!([{ "name": name, "kind": kind }])
        );
    }
    assert_eq!(
        kinds(&KMALLOC, "keys=common_stacktrace,bytes_req.buckets=32"),
        json!([
            { "name": "common_stacktrace", "kind": "stack" },
            { "name": "bytes_req", "kind": "buckets", "width": 32 },
        ])
    );
}

#[test]
fn hidden_columns_are_in_neither_line() {
    let text = "keys=node:vals=bytes_req:nohitcount";
    assert_eq!(
        header(&KMALLOC, text.as_bytes(), &HEAD)["vals"],
        json!([{ "name": "bytes_req" }])
    );
    assert_eq!(
        row(&KMALLOC, text, &[1], &[], &[5, 6]),
        r#"{"k":[1],"v":[6]}"#
    );
    // A computed value is a column, named by its text.
    let text = "keys=node:vals=bytes_alloc-bytes_req,ptr";
    assert_eq!(
        header(&KMALLOC, text.as_bytes(), &HEAD)["vals"],
        json!([{ "name": "hitcount" }, { "name": "bytes_alloc-bytes_req" }, { "name": "ptr" }])
    );
    assert_eq!(
        row(&KMALLOC, text, &[1], &[], &[5, 6, 7]),
        r#"{"k":[1],"v":[5,6,7]}"#
    );
}

#[test]
fn who_consumes_says_so() {
    for consumed in [true, false] {
        let head = Head {
            consumed: Some(consumed),
            ..HEAD
        };
        assert_eq!(
            header(&SWITCH, b"keys=next_pid", &head)["consumed"],
            consumed
        );
    }
    assert_eq!(
        header(&SWITCH, b"keys=next_pid", &HEAD).get("consumed"),
        None
    );
}

#[test]
fn rows_of_each_kind() {
    let minus = |n: i64| n as u64;

    assert_eq!(
        row(
            &ZOO,
            "keys=s64,u64:vals=s8",
            &[minus(-1), minus(-1)],
            &[],
            &[3, minus(-9)]
        ),
        r#"{"k":[-1,18446744073709551615],"v":[3,-9]}"#
    );
    assert_eq!(
        row(&ZOO, "keys=s64", &[1 << 63], &[], &[1]),
        r#"{"k":[-9223372036854775808],"v":[1]}"#
    );
    assert_eq!(
        row(&KMALLOC, "keys=ptr.hex", &[0xbeef], &[], &[1]),
        r#"{"k":[48879],"v":[1]}"#
    );
    assert_eq!(
        row(&KMALLOC, "keys=call_site.sym", &[0xbeef], &[], &[1]),
        r#"{"k":[{"addr":"0xbeef","sym":"\u0022s\u005cbeef"}],"v":[1]}"#
    );
    assert_eq!(
        row(&KMALLOC, "keys=call_site.sym-offset", &[0xbeef], &[], &[1]),
        r#"{"k":[{"addr":"0xbeef","sym":"sbeef+0x1/0x2 [mod]"}],"v":[1]}"#
    );
    assert_eq!(
        row(&SYS_ENTER, "keys=id.syscall", &[0], &[], &[1]),
        r#"{"k":[{"nr":0,"name":"sys_read"}],"v":[1]}"#
    );
    assert_eq!(
        row(&SYS_ENTER, "keys=id.syscall", &[minus(-1)], &[], &[1]),
        r#"{"k":[{"nr":-1,"name":null}],"v":[1]}"#
    );
    assert_eq!(
        row(
            &SWITCH,
            "keys=common_pid.execname",
            &[1],
            &words_of(b"in it", 2),
            &[1]
        ),
        r#"{"k":[{"pid":1,"comm":"in it"}],"v":[1]}"#
    );
    let mut stack = [0; STACK_DEPTH];
    stack[..2].copy_from_slice(&[16, 32]);
    assert_eq!(
        row(&KMALLOC, "keys=common_stacktrace", &stack, &[], &[1]),
        r#"{"k":[{"stack":["s10+0x1/0x2 [mod]","s20+0x1/0x2 [mod]"]}],"v":[1]}"#
    );
    assert_eq!(
        row(
            &KMALLOC,
            "keys=common_stacktrace",
            &[0; STACK_DEPTH],
            &[],
            &[1]
        ),
        r#"{"k":[{"stack":[]}],"v":[1]}"#
    );
}

#[test]
fn intervals_have_their_bounds() {
    let log2 = |i: u64| row(&KMALLOC, "keys=bytes_req.log2", &[i], &[], &[1]);
    for (i, lo, hi) in [
        (0, 0u64, 1u64),
        (1, 2, 2),
        (2, 3, 4),
        (12, 2049, 4096),
        (63, (1u64 << 62) + 1, 1u64 << 63),
        (64, (1u64 << 63) + 1, u64::MAX),
    ] {
        assert_eq!(
            log2(i),
            format!(r#"{{"k":[{{"i":{i},"lo":{lo},"hi":{hi}}}],"v":[1]}}"#)
        );
    }
    let parts = |word: i64| row(&ZOO, "keys=s64.log2=4", &[word as u64], &[], &[1]);
    for (word, interval) in [
        (0, r#"{"lo":0,"hi":0}"#),
        (1, r#"{"i":0,"lo":1,"hi":1}"#),
        (165, r#"{"i":164,"lo":1167,"hi":1217}"#),
        (-165, r#"{"i":164,"lo":-1217,"hi":-1167}"#),
    ] {
        assert_eq!(parts(word), format!(r#"{{"k":[{interval}],"v":[1]}}"#));
    }
    let buckets = |v: u64| row(&KMALLOC, "keys=bytes_req.buckets=10", &[v], &[], &[1]);
    for (lo, hi) in [(0, 9), (30, 39), (18446744073709551610, u64::MAX)] {
        assert_eq!(
            buckets(lo),
            format!(r#"{{"k":[{{"lo":{lo},"hi":{hi}}}],"v":[1]}}"#)
        );
    }
}

/// The rows are those of C, which aligns the bits of a negative number.
#[test]
fn intervals_of_signed_fields_have_their_sign() {
    let key = |key: &str, word: u64| {
        let line = row(&ZOO, &format!("keys={key}"), &[word], &[], &[1]);
        let line: Value = serde_json::from_str(&line).expect("JSON");
        let side = |name| wide(&line["k"][0][name]).expect("a number");

        (side("lo"), side("hi"))
    };
    let (min, max) = (i64::MIN.into(), i64::MAX.into());

    for (word, bounds) in [
        (0, (0, 999)),
        (4000, (4000, 4999)),
        (18_446_744_073_709_551_000, (-616, -1)),
        (18_446_744_073_709_550_000, (-1616, -617)),
        // Both the largest numbers and the smallest ones.
        (9_223_372_036_854_775_000, (min, max)),
    ] {
        assert_eq!(key("s64.buckets=1000", word), bounds);
    }
    for (word, bounds) in [
        (0, (0, 1)),
        (4, (9, 16)),
        (63, (min, max)),
        (64, (-i128::from(i64::MAX), -1)),
    ] {
        assert_eq!(key("s32.log2", word), bounds);
        assert_eq!(key("s8.log2", word), bounds);
    }
    assert_eq!(key("u64.log2", 64), ((1 << 63) + 1, u64::MAX.into()));

    // Quantiles align the numbers themselves, and so do the rows before them.
    for (word, bounds) in [
        (0, (0, 999)),
        (4000, (4000, 4999)),
        (-1000, (-1000, -1)),
        (-2000, (-2000, -1001)),
        (i64::MAX - 807, (max - 807, max)),
        (i64::MIN, (min, min + 807)),
    ] {
        assert_eq!(key("s64.buckets=1000:quantiles(50)", word as u64), bounds);
    }
    for (word, bounds) in [
        (0, (0, 0)),
        (1, (1, 1)),
        (5, (9, 16)),
        (-1, (-1, -1)),
        (-5, (-16, -9)),
    ] {
        assert_eq!(key("s64.log2:quantiles(50)", word as u64), bounds);
    }
}

#[test]
fn differences_of_time_stamps_have_a_unit() {
    let columns = |expr: &str, clock_in_ns| {
        let text =
            format!("keys=$d.log2=3:vals=$d:t=common_timestamp,u=common_timestamp.usecs,d={expr}");
        let head = Head {
            clock_in_ns,
            ..HEAD
        };
        let line = header(&KMALLOC, text.as_bytes(), &head);
        let key = line["keys"][0]["unit"].clone();

        assert_eq!(key, line["vals"][1]["unit"], "{text}");
        assert_eq!(line["vals"][0].get("unit"), None);
        key
    };

    for (expr, unit) in [
        ("common_timestamp-$t", json!("ns")),
        ("common_timestamp-$t-ptr", Value::Null),
        ("common_timestamp.usecs-$u", json!("us")),
        ("$t", Value::Null),
        ("common_timestamp.log2-$t", Value::Null),
        ("common_timestamp+$t", Value::Null),
        ("ptr-bytes_req", Value::Null),
    ] {
        assert_eq!(columns(expr, true), unit, "{expr}");
        assert_eq!(columns(expr, false), Value::Null, "{expr}");
    }
}

#[test]
fn quantiles_have_the_bounds_of_their_buckets() {
    let text = b"keys=node,bytes_req.log2=4:vals=ptr:quantiles(50,99.9)";
    let program = compile(&KMALLOC, text).expect("a right trigger");
    let row = Row {
        key: &[1, 0, 1, 165],
        aux: &[],
        sums: &[1000, 8],
    };
    let line = written(|out| of(&program, text).row(&row, out));

    assert_eq!(
        parsed(&line),
        json!({
            "k": [1, null],
            "v": [1000, 8],
            "q": { "bytes_req.p50": [1, 1], "bytes_req.p99.9": [1167, 1217] },
        })
    );
    assert_eq!(
        header(&KMALLOC, text, &HEAD)["keys"],
        json!([
            { "name": "node", "kind": "number" },
            { "name": "bytes_req", "kind": "log2", "scale": 4 },
        ])
    );
}

/// [`KMALLOC`], and a synthetic event `syn` of one number.
struct Synthetic;

impl Resolver for Synthetic {
    fn field(&self, name: &[u8]) -> Option<FieldDesc<'_>> {
        KMALLOC.field(name)
    }

    fn synth(&mut self, name: &[u8]) -> Result<Option<u16>, AllocError> {
        Ok((name == b"syn").then_some(0))
    }

    fn synth_field(&self, _: u16, index: usize) -> Option<SynthField<'_>> {
        (index == 0).then_some(SynthField {
            name: b"n",
            type_name: b"u64",
            size: 8,
            signed: false,
            class: SynthClass::Number,
        })
    }
}

#[test]
fn what_handlers_keep() {
    let text = "keys=node:lat=bytes_req,neg=node:\
                onmax($lat).syn($lat):onchange($neg).save(ptr,node,ptr,common_comm):\
                onmax($lat).syn($lat):onmax($neg).syn($lat)";
    let program = create(&mut Synthetic, text.as_bytes()).expect("a right trigger");
    let mut aux = vec![0; program.aux_words()];
    let tracks: Vec<_> = program
        .actions
        .iter()
        .map(|action| action.track.expect("kept"))
        .collect();
    let mut keep = |n: usize, value: u64, row: &[u64]| {
        let at = usize::from(tracks[n].at);
        aux[at] = 1;
        aux[at + 1] = value;
        aux[at + 2..][..row.len()].copy_from_slice(row);
    };
    let minus = |n: i64| n as u64;

    keep(0, u64::MAX, &[]);
    keep(
        1,
        minus(-3),
        &[&[5, minus(-4), 5], &words_of(b"a\"b", 2)[..]].concat(),
    );
    keep(2, 8, &[]);

    let row = Row {
        key: &[1],
        aux: &aux,
        sums: &[1],
    };
    let line = written(|out| of(&program, text.as_bytes()).row(&row, out));
    assert_eq!(
        line,
        concat!(
            r#"{"k":[1],"v":[1],"saved":{"#,
            r#""onmax($lat)":{"value":18446744073709551615},"#,
            r#""onchange($neg)":{"value":-3,"row":{"ptr":5,"node":-4,"common_comm":"a\u0022b"}},"#,
            r#""onmax($lat)#2":{"value":8},"onmax($neg)":null}}"#,
            "\n"
        )
    );
    parsed(&line);
}

#[test]
fn the_first_line_has_the_cost() {
    let schema = Schema::new();
    let head = |is_over| Head {
        paused: is_over,
        overhead: Some(json::Overhead {
            ns: 41,
            ppm: 812,
            samples: u64::MAX,
            is_over,
        }),
        ..HEAD
    };
    let cost = json!({ "ns": 41, "ppm": 812, "samples": u64::MAX });
    let text = b"keys=next_pid:overhead(1%)";
    for (is_over, state) in [(false, "active"), (true, "paused")] {
        let line = header(&SWITCH, text, &head(is_over));
        schema.check(&line).expect("by the schema");
        assert_eq!(line["overhead"], cost);
        assert_eq!(line["state"], state);
        let by = line.get("paused_by").and_then(Value::as_str);
        assert_eq!(by, is_over.then_some("overhead"));
    }
    assert!(header(&SWITCH, text, &HEAD).get("overhead").is_none());
}

/// X-76
#[test]
fn a_mask_of_cpus_is_a_string() {
    let mut key = [0; 33];
    (key[0], key[2]) = (0b1011, 1);
    key[32] = 7;
    let line = row(&ZOO, "keys=cpumask,u8", &key, &[], &[1]);
    assert_eq!(line, r#"{"k":["0-1,3,128",7],"v":[1]}"#);
    let header = header(&ZOO, b"keys=cpumask,u8", &HEAD);
    assert_eq!(
        header["keys"][0],
        json!({ "name": "cpumask", "kind": "string" })
    );
}

#[test]
fn the_last_line_has_the_account() {
    let account = Account {
        hits: 12,
        dropped_full: 3,
        dropped_nested: 4,
        ignored: 5,
        lost_saves: 6,
        lost_traces: 7,
        lost_limited: 8,
        cut_strings: 11,
        overwritten: 9,
        expired: 10,
    };
    let of = |program: &Program, groups, retired| {
        written(|out| {
            let end = json::End {
                entries: 2,
                groups,
                retired,
            };
            json::end(program, &account, &end, out)
        })
    };
    let line = |groups, retired| of(&Program::empty(), groups, retired);
    let mut end = json!({
        "type": "end", "entries": 2, "calls": 24, "hits": 12, "dropped_full": 3, "dropped_nested": 4,
        "ignored": 5, "lost_saves": 6, "lost_traces": 7,
    });
    assert_eq!(parsed(&line(None, None)), end);
    // X-75: of keys that may be cut.
    for (keys, cuts) in [
        ("filename", true),
        ("u8,label", true),
        ("seven,comm", false),
    ] {
        let text = format!("keys={keys}");
        let mut wanted = end.clone();
        if cuts {
            wanted["cut_strings"] = 11.into();
        }
        let program = compile(&ZOO, text.as_bytes()).expect("valid");
        assert_eq!(parsed(&of(&program, None, None)), wanted, "{text}");
    }
    end["groups"] = 1.into();
    assert_eq!(parsed(&line(Some(1), None)), end);
    // X-65: of starts that expire.
    end["retired"] = 2.into();
    end["expired"] = 10.into();
    end["overwritten"] = 9.into();
    assert_eq!(parsed(&line(Some(1), Some(2))), end);
}

#[test]
fn bytes_of_the_trigger_are_escaped() {
    let text = b"keys=next_pid:name=\xff\x01\"\\ if next_comm ~ \"\xe4*\"";
    let trigger = header(&SWITCH, text, &HEAD)["trigger"].clone();
    assert_eq!(
        bytes(&trigger),
        [
            &b"hist:name=\xff\x01\"\\:keys=next_pid:vals=hitcount:sort=hitcount:size=2048"[..],
            b" if next_comm ~ \"\xe4*\"",
        ]
        .concat()
    );
}

#[test]
fn x_61_a_row_of_others() {
    let text = b"keys=ptr:vals=bytes_req.percent:others";
    let program = compile(&KMALLOC, text).expect("a right trigger");
    let others = Row::of_others(&[3, 5]);
    let line = written(|out| of(&program, text).row(&others, out));

    assert_eq!(line, "{\"others\":true,\"v\":[3,5]}\n");
    parsed(&line);
}

#[test]
fn x_40_an_event_without_triggers_is_said_to_have_none() {
    let line = written(|out| json::none((b"a", b"b\"c"), out));

    assert_eq!(
        parsed(&line),
        json!({ "v": 1, "type": "none", "event": "a:b\"c" })
    );
}

#[test]
fn the_schema_refuses() {
    let schema = Schema::new();
    for line in [
        json!({ "k": [1] }),
        json!({ "k": [1], "v": ["1.5"] }),
        json!({ "k": [true], "v": [1] }),
        json!({ "k": [null], "v": [1], "q": { "n.p50": [1] } }),
        json!({ "k": [{ "nr": 1 }], "v": [1] }),
        json!({ "k": [{ "addr": "0xg", "sym": "" }], "v": [1] }),
        json!({ "k": [1], "v": [1], "other": 1 }),
        json!({ "others": false, "v": [1] }),
        json!({ "others": true, "k": [1], "v": [1] }),
        json!({ "type": "end", "entries": 1 }),
        json!({ "type": "other" }),
    ] {
        assert!(schema.check(&line).is_err(), "{line}");
    }
}

/// Triggers of which each key and value is any number, and how many words of a key are a string.
const TRIGGERS: &[(&Event, &str)] = &[
    (&KMALLOC, "keys=ptr,node:vals=bytes_req,node"),
    (&KMALLOC, "keys=call_site.sym,ptr.hex"),
    (&KMALLOC, "keys=call_site.sym-offset:vals=bytes_req.percent"),
    (&SYS_ENTER, "keys=id.syscall,id:vals=id"),
    (&SWITCH, "keys=next_comm,prev_comm,next_pid"),
    (&SWITCH, "keys=common_pid.execname,next_comm"),
    (&ZOO, "keys=filename,s8:vals=s64,u64.hex"),
    (&ZOO, "keys=stack,seven"),
    (&ZOO, "keys=common_stacktrace,s16"),
];

/// Bytes as a key has them: nothing behind a NUL.
fn till_nul(mut bytes: Vec<u8>, words: usize) -> Vec<u64> {
    let len = bytes.iter().position(|&byte| byte == 0);
    bytes.truncate(len.unwrap_or(bytes.len()).min(words * 8));
    words_of(&bytes, words)
}

proptest! {
    /// X-22: what is shown of numbers is what a reader of JSON has, as exactly as it keeps numbers.
    #[test]
    fn what_is_shown_of_numbers_is_parsed_back(
        hits in 0u64..5,
        rest in prop::collection::vec((any::<u64>(), 0u32..64), 40),
    ) {
        let typed = "keys=ptr:vals=node.min,node.max,node.avg,node.stddev,ptr.max,ptr.avg,node,ptr.sum";
        let program = compile(&KMALLOC, typed.as_bytes()).expect("a right trigger");
        let rest = rest.into_iter().map(|(word, bits)| word >> bits);
        let sums: Vec<u64> = [hits].into_iter().chain(rest).take(program.sums()).collect();
        let row = Row { key: &[1], aux: &[], sums: &sums };
        let value = parsed(&written(|out| of(&program, typed.as_bytes()).row(&row, out)));
        let shown = value["v"].as_array().expect("a list");

        prop_assert_eq!(shown.len(), 9);
        for (shown, column) in shown[1..].iter().zip(program.columns.iter()) {
            let Column::Made(gauge) = column else {
                prop_assert!(shown.is_i64() || shown.is_u64());
                continue;
            };
            let Some(number) = gauge.number(&sums) else {
                prop_assert_eq!((shown, hits), (&Value::Null, 0));
                continue;
            };
            let sign = if number.negative { -1 } else { 1 };

            if gauge.has_decimals() {
                let wanted = number.whole as f64 + f64::from(number.hundredths) / 100.0;
                let found = shown.as_f64().expect("a number") * f64::from(sign);
                prop_assert!((found - wanted).abs() <= wanted * 1e-12, "{} {:?}", shown, number);
            } else {
                prop_assert_eq!(wide(shown), Some(i128::from(sign) * i128::from(number.whole)));
            }
        }
        let text = header(&KMALLOC, typed.as_bytes(), &HEAD)["vals"].to_string();
        for stat in ["min", "max", "avg", "stddev", "sum"] {
            prop_assert!(text.contains(&format!("\"agg\":\"{stat}\"")), "{}", text);
        }
    }

    #[test]
    fn a_row_is_parsed_back(
        which in 0..TRIGGERS.len(),
        numbers in prop::collection::vec(any::<u64>(), 8),
        text in prop::collection::vec(any::<u8>(), 0..260),
        frames in prop::collection::vec(1u64.., 0..=STACK_DEPTH),
    ) {
        let (event, typed) = TRIGGERS[which];
        let program = compile(event, typed.as_bytes()).expect("a right trigger");
        let mut numbers = numbers.into_iter();
        let mut key = Vec::new();
        for part in program.keys.iter() {
            match part.field.kind {
                Kind::String => key.extend(till_nul(text.clone(), part.words())),
                Kind::Stack => {
                    let mut frames = frames.clone();
                    frames.resize(part.words(), 0);
                    key.extend(frames);
                }
                Kind::Number => key.push(numbers.next().expect("enough")),
                Kind::Cpumask => unreachable!("none of the triggers"),
            }
        }
        let sums: Vec<u64> = numbers.take(program.sums()).collect();
        let aux = till_nul(text.clone(), COMM_WORDS);
        let row = Row { key: &key, aux: &aux, sums: &sums };
        let line = written(|out| of(&program, typed.as_bytes()).row(&row, out));
        let value = parsed(&line);

        prop_assert_eq!(decoded(&program, &value), (key, sums));
        if let Some(comm) = value["k"][0].get("comm") {
            prop_assert_eq!(words_of(&bytes(comm), COMM_WORDS), aux);
        }
    }
}
