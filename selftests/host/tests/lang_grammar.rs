// SPDX-License-Identifier: GPL-2.0

//! What the trigger language accepts and how it prints it, what it refuses and why.
//!
//! The names of the tests are ids of the behaviour inventory.

#![cfg(not(loom))]

mod lang_common;

use lang_common::*;
use rust_hist::{
    error::{
        ErrKind::*,
        Errno::{
            Einval,
            Enoent,
            Enomem,
            Erange, //
        },
        LogEntry,
    },
    lang,
    program::Update, //
};

#[test]
fn h_cmd_01_blanks_at_the_ends_go_before_a_filter_only() {
    accepts(
        &KMALLOC,
        "  keys=node  if node > 1",
        &format!("keys=node{TAIL} if node > 1"),
    );
    refuses(
        &KMALLOC,
        "hist:keys=^node :vals=bytes_req",
        Einval,
        FieldNotFound,
    );
    explains(&KMALLOC, "hist:^ keys=node x", Einval, NoKeys);
}

#[test]
fn h_cmd_02_order_of_tokens_is_free() {
    accepts(
        &KMALLOC,
        "size=256:pause:sort=bytes_req:vals=bytes_req:keys=node",
        "keys=node:vals=hitcount,bytes_req:sort=bytes_req:size=256",
    );
    for word in [
        "junk",
        "nohitcoun",
        "Pause",
        "keys",
        "",
        "onmatch",
        "onmaxx($x).save(a)",
        "onmax ($x).save(a)",
    ] {
        explains(
            &KMALLOC,
            &format!("hist:keys=node:^{word}"),
            Einval,
            UnknownWord,
        );
        explains(
            &KMALLOC,
            &format!("hist:^{word}:keys=node"),
            Einval,
            UnknownWord,
        );
    }
}

#[test]
fn h_cmd_03_keys_are_mandatory() {
    for text in [
        "",
        "vals=bytes_req",
        "pause",
        "vals=junk",
        "vals=ptr if ptr",
    ] {
        explains(&KMALLOC, &format!("hist:^{text}"), Einval, NoKeys);
    }
    keys(&KMALLOC, "node", "node");
    accepts(&KMALLOC, "key=node", &format!("keys=node{TAIL}"));
}

#[test]
fn h_cmd_04_values() {
    for word in ["val", "vals", "values"] {
        accepts(
            &KMALLOC,
            &format!("keys=node:{word}=bytes_req"),
            "keys=node:vals=hitcount,bytes_req:sort=hitcount:size=2048",
        );
        refuses(
            &KMALLOC,
            &format!("hist:keys=node:^{word}="),
            Einval,
            EmptyAssignment,
        );
    }
    refuses(&KMALLOC, "hist:^keys=", Einval, EmptyAssignment);
    refuses(&KMALLOC, "hist:keys=node:^size=", Einval, EmptyAssignment);
    refuses(&KMALLOC, "hist:keys=node:^x=", Einval, EmptyAssignment);
    // The first mistake counts.
    refuses(&KMALLOC, "hist:^keys=:keys=", Einval, EmptyAssignment);
    refuses(&KMALLOC, "hist:keys=node:^keys=", Einval, EmptyAssignment);
}

#[test]
fn h_cmd_05_x_23_one_to_eight_keys() {
    let eight = "node,ptr,call_site,bytes_req,bytes_alloc,node,ptr,common_cpu";

    keys(&KMALLOC, "node,ptr,call_site", "node,ptr,call_site");
    keys(&KMALLOC, "node,node", "node,node");
    keys(&KMALLOC, eight, eight);
    for ninth in ["bytes_req", ""] {
        explains(
            &KMALLOC,
            &format!("hist:keys={eight},^{ninth}"),
            Einval,
            TooManyKeys,
        );
    }
    refuses(
        &KMALLOC,
        "hist:keys=node,ptr,^junk,bytes_req",
        Einval,
        FieldNotFound,
    );
}

#[test]
fn h_cmd_06_x_23_key_bytes() {
    let p = keys(
        &ZOO,
        "filename,common_stacktrace",
        "filename,common_stacktrace",
    );

    assert_eq!(p.key_words(), 63);

    let p = keys(
        &ZOO,
        "filename,second,common_comm,filename,u8",
        "filename,second,common_comm,filename,u8",
    );

    assert_eq!(p.key_words(), 129);
    for text in [
        "filename,second,filename,second,u8,^u8",
        "filename,second,filename,second,^common_comm",
        "filename,second,filename,common_stacktrace,u8,u8,^u8",
        "big,second,^second",
    ] {
        explains(&ZOO, &format!("hist:keys={text}"), Einval, KeyTooLong);
    }
    keys(
        &ZOO,
        "common_stacktrace,stacktrace,u64",
        "common_stacktrace,common_stacktrace,u64",
    );

    let p = keys(&ZOO, "seven,u8", "seven,u8");

    assert_eq!(p.key_words(), 2);
    assert_eq!(p.keys[1].first_word(), 1);
}

#[test]
fn h_cmd_07_x_23_eight_values_besides_the_hitcount() {
    let eight = ["bytes_req,bytes_alloc"; 4].join(",");
    let ok = [
        ("hitcount", "hitcount"),
        ("bytes_req,bytes_alloc", "hitcount,bytes_req,bytes_alloc"),
        (
            "hitcount,bytes_req,bytes_alloc",
            "hitcount,bytes_req,bytes_alloc",
        ),
        (
            "bytes_req,hitcount,bytes_alloc",
            "hitcount,bytes_req,bytes_alloc",
        ),
        (
            "bytes_req,bytes_alloc,hitcount",
            "hitcount,bytes_req,bytes_alloc",
        ),
        (
            "hitcount,bytes_req,bytes_alloc,hitcount",
            "hitcount,bytes_req,bytes_alloc",
        ),
        ("hitcount,hitcount", "hitcount,hitcount"),
        ("hitcount,bytes_req,hitcount", "hitcount,bytes_req,hitcount"),
        ("hitcount,hitcount,hitcount", "hitcount,hitcount,hitcount"),
    ];

    for (vals, printed) in ok {
        accepts(
            &KMALLOC,
            &format!("keys=node:vals={vals}"),
            &format!("keys=node:vals={printed}:sort=hitcount:size=2048"),
        );
    }
    // More than C has room for. Old texts that end in a hit count which C ignores mean what they meant.
    for (vals, printed) in [
        (
            "bytes_req,bytes_alloc,node",
            "hitcount,bytes_req,bytes_alloc,node",
        ),
        (
            "bytes_req,bytes_alloc,hitcount,node",
            "hitcount,bytes_req,bytes_alloc,node",
        ),
        (
            "hitcount,hitcount,hitcount,node",
            "hitcount,hitcount,hitcount,node",
        ),
        (&eight, &format!("hitcount,{eight}")),
        (&format!("{eight},hitcount"), &format!("hitcount,{eight}")),
        (&format!("hitcount,{eight}"), &format!("hitcount,{eight}")),
    ] {
        accepts(
            &KMALLOC,
            &format!("keys=node:vals={vals}"),
            &format!("keys=node:vals={printed}:sort=hitcount:size=2048"),
        );
    }
    for rest in ["^node", "^junk", "^", "^hitcount,node"] {
        explains(
            &KMALLOC,
            &format!("hist:keys=node:vals={eight},{rest}"),
            Einval,
            TooManyVals,
        );
    }
    refuses(
        &KMALLOC,
        "hist:keys=node:vals=bytes_req,^junk",
        Einval,
        FieldNotFound,
    );
    // Values are looked at before keys.
    refuses(&KMALLOC, "hist:keys=junk:vals=^foo", Einval, FieldNotFound);
    refuses(
        &KMALLOC,
        "hist:keys=node:vals=^,node",
        Einval,
        FieldNotFound,
    );
}

#[test]
fn h_cmd_08_sort_keys() {
    let ok = [
        ("hitcount", "hitcount"),
        ("hitcount.ascending", "hitcount"),
        ("hitcount.descending", "hitcount.descending"),
        ("bytes_req", "bytes_req"),
        ("bytes_req.descending,node", "bytes_req.descending,node"),
        (
            "node.ascending,hitcount.descending",
            "node,hitcount.descending",
        ),
        ("node,node", "node,node"),
    ];

    for (sort, printed) in ok {
        accepts(
            &KMALLOC,
            &format!("keys=node:vals=bytes_req:sort={sort}"),
            &format!("keys=node:vals=hitcount,bytes_req:sort={printed}:size=2048"),
        );
    }
    refuses(
        &KMALLOC,
        "hist:keys=common_pid:vals=bytes_req:sort=common_pid,^junk",
        Einval,
        InvalidSortField,
    );
    refuses(
        &KMALLOC,
        "hist:keys=common_pid:vals=bytes_req:^sort=",
        Einval,
        EmptyAssignment,
    );
    refuses(
        &KMALLOC,
        "hist:keys=common_pid:vals=bytes_req:^sort=common_pid,",
        Einval,
        EmptySortField,
    );
    refuses(
        &KMALLOC,
        "hist:keys=common_pid:^sort=,common_pid",
        Einval,
        EmptySortField,
    );
    refuses(
        &KMALLOC,
        "hist:keys=common_pid:^sort=.descending",
        Einval,
        EmptySortField,
    );
    refuses(
        &KMALLOC,
        "hist:keys=common_pid:vals=bytes_req:sort=common_pid.^junk",
        Einval,
        InvalidSortModifier,
    );
    refuses(
        &KMALLOC,
        "hist:keys=common_pid:sort=hitcount.^junk",
        Einval,
        InvalidSortModifier,
    );
    refuses(
        &KMALLOC,
        "hist:keys=common_pid:sort=hitcount.^",
        Einval,
        InvalidSortModifier,
    );
    refuses(
        &KMALLOC,
        "hist:keys=node:sort=hitcount.^hex",
        Einval,
        InvalidSortModifier,
    );
    refuses(
        &KMALLOC,
        "hist:keys=common_pid:vals=bytes_req,bytes_alloc:^sort=common_pid,bytes_req,bytes_alloc",
        Einval,
        TooManySortFields,
    );
    refuses(
        &KMALLOC,
        "hist:keys=node:^sort=node,node,",
        Einval,
        TooManySortFields,
    );
}

#[test]
fn h_cmd_09_sort_keys_are_columns() {
    refuses(
        &KMALLOC,
        "hist:keys=node:sort=^ptr",
        Einval,
        InvalidSortField,
    );
    // Two columns of one name: the value comes first.
    let p = accepts(
        &KMALLOC,
        "keys=node:vals=node:sort=node",
        "keys=node:vals=hitcount,node:sort=node:size=2048",
    );

    assert_eq!(
        p.sort_keys()[0].column,
        rust_hist::tracing_map::sort::Column::Sum(1)
    );
    // The caret does not stand where the same bytes stand first.
    refuses(
        &KMALLOC,
        "hist:keys=node:sort=^is",
        Einval,
        InvalidSortField,
    );
    refuses(
        &KMALLOC,
        "hist:keys=node:sort=^ys",
        Einval,
        InvalidSortField,
    );
}

#[test]
fn h_cmd_10_the_printed_sort_is_valid_input() {
    for (item, modifier) in [
        ("bytes_req", "log2"),
        ("bytes_req", "buckets=16"),
        ("bytes_req", "hex"),
        ("call_site", "sym"),
        ("call_site", "sym-offset"),
        ("common_pid", "execname"),
        ("node", "syscall"),
    ] {
        let printed = format!(
            "keys={item}.{modifier}:vals=hitcount:sort={item}.{modifier}.descending:size=2048"
        );

        accepts(
            &KMALLOC,
            &format!("keys={item}.{modifier}:sort={item}.descending"),
            &printed,
        );
        accepts(
            &KMALLOC,
            &format!("keys={item}.{modifier}:sort={item}.{modifier}.descending"),
            &printed,
        );
    }
    accepts(
        &KMALLOC,
        "keys=node:vals=bytes_req.percent,bytes_alloc.graph:sort=bytes_req,bytes_alloc.descending",
        "keys=node:vals=hitcount,bytes_req.percent,bytes_alloc.graph:\
         sort=bytes_req.percent,bytes_alloc.graph.descending:size=2048",
    );
    // Only the column's own modifier.
    refuses(
        &KMALLOC,
        "hist:keys=bytes_req.log2:sort=bytes_req.^hex",
        Einval,
        InvalidSortModifier,
    );
    refuses(
        &KMALLOC,
        "hist:keys=bytes_req.buckets=16:sort=bytes_req.^bucket=16",
        Einval,
        InvalidSortModifier,
    );
    refuses(
        &KMALLOC,
        "hist:keys=bytes_req.buckets=16:sort=bytes_req.^buckets=17",
        Einval,
        InvalidSortModifier,
    );
    refuses(
        &KMALLOC,
        "hist:keys=bytes_req.hex:sort=bytes_req.^hex.junk",
        Einval,
        InvalidSortModifier,
    );
    refuses(
        &KMALLOC,
        "hist:keys=bytes_req:sort=bytes_req.^log2",
        Einval,
        InvalidSortModifier,
    );
}

#[test]
fn h_cmd_11_size() {
    for (size, bits) in [
        ("128", 7),
        ("65", 7),
        ("129", 8),
        ("0x100", 8),
        ("0400", 8),
        ("+256", 8),
        ("2048", 11),
        ("131072", 17),
        ("65537", 17),
        ("256\n", 8),
    ] {
        let p = compile(&KMALLOC, format!("keys=node:size={size}").as_bytes()).expect(size);

        assert_eq!(p.bits, bits, "{size}");
    }
    assert_eq!(compile(&KMALLOC, b"keys=node").map(|p| p.bits), Ok(11));
    for size in [
        "0",
        "1",
        "64",
        "131073",
        "0xffffffffffffffff",
        "x",
        "-128",
        "12a",
        "0x",
        "0xg",
        "08",
        " 128",
        "128 ",
        "128\n\n",
        "++128",
        "\n",
    ] {
        explains(
            &KMALLOC,
            &format!("hist:keys=node:size=^{size}"),
            Einval,
            InvalidSize,
        );
    }
    for size in [
        "18446744073709551616",
        "0x10000000000000000",
        "18446744073709551616x",
    ] {
        explains(
            &KMALLOC,
            &format!("hist:keys=node:size=^{size}"),
            Erange,
            InvalidSize,
        );
    }
    // It is looked at before the fields.
    explains(&KMALLOC, "hist:keys=junk:size=^1", Einval, InvalidSize);
}

#[test]
fn h_cmd_12_to_15_pause_cont_clear() {
    let update = |text: &str| {
        let p = compile(&KMALLOC, format!("keys=node{text}").as_bytes()).expect(text);

        (p.update, p.needs_existing, p.starts_paused)
    };

    assert_eq!(update(""), (None, false, false));
    assert_eq!(update(":pause"), (Some(Update::Pause), false, true));
    assert_eq!(update(":cont"), (Some(Update::Continue), true, false));
    assert_eq!(update(":continue"), (Some(Update::Continue), true, false));
    assert_eq!(update(":clear"), (Some(Update::Clear), true, false));
    assert_eq!(update(":clear:cont"), (Some(Update::Continue), true, false));
    assert_eq!(
        update(":clear:cont:pause"),
        (Some(Update::Pause), true, true)
    );
    assert_eq!(
        line_of(
            &compile(&KMALLOC, b"keys=node:pause").expect("pause"),
            b"keys=node:pause"
        ),
        format!("hist:keys=node{TAIL} [paused]").into_bytes()
    );
}

#[test]
fn h_cmd_17_nohitcount() {
    for word in ["nohitcount", "NOHC"] {
        accepts(
            &KMALLOC,
            &format!("keys=node:vals=bytes_req:{word}"),
            "keys=node:vals=bytes_req:sort=hitcount:size=2048:nohitcount",
        );
        accepts(
            &KMALLOC,
            &format!("keys=node:{word}:vals=hitcount.percent"),
            "keys=node:vals=hitcount.percent:sort=hitcount:size=2048:nohitcount",
        );
        refuses(
            &KMALLOC,
            &format!("^hist:keys=node:{word}"),
            Enoent,
            NeedNohcVal,
        );
        refuses(
            &KMALLOC,
            &format!("^hist:keys=node:vals=hitcount:{word}"),
            Enoent,
            NeedNohcVal,
        );
        refuses(
            &KMALLOC,
            &format!("^hist:keys=junk:{word}"),
            Enoent,
            NeedNohcVal,
        );
    }
    // A second plain hitcount is a column of its own, and stays one when it is read back.
    accepts(
        &KMALLOC,
        "keys=node:vals=hitcount,hitcount:nohitcount",
        "keys=node:vals=hitcount,hitcount:sort=hitcount:size=2048:nohitcount",
    );
    accepts(
        &KMALLOC,
        "keys=node:vals=hitcount,bytes_req,hitcount:nohitcount",
        "keys=node:vals=hitcount,bytes_req,hitcount:sort=hitcount:size=2048:nohitcount",
    );
}

#[test]
fn h_cmd_18_and_19_name_and_clock() {
    let p = accepts(
        &KMALLOC,
        "keys=node:name=foo:clock=mono",
        &format!("name=foo:keys=node{TAIL}"),
    );
    let text = b"keys=node:name=foo:clock=mono";

    assert_eq!(p.name(text), Some(&b"foo"[..]));
    assert_eq!(p.clock(text), Some(&b"mono"[..]));
    accepts(
        &KMALLOC,
        "keys=common_timestamp:clock= mono ",
        &format!("keys=common_timestamp{TAIL}:clock=mono"),
    );
    // What does not matter is not looked at.
    accepts(
        &KMALLOC,
        "keys=node:clock=junk",
        &format!("keys=node{TAIL}"),
    );
    refuses(&KMALLOC, "hist:keys=node:^name=", Einval, EmptyAssignment);
    refuses(&KMALLOC, "hist:keys=node:^clock=", Einval, EmptyAssignment);

    let spec = lang::parse(b"hist", b"keys=node:name=foo:clock= junk").expect("parses");
    let entry = |kind, at| Some(LogEntry { kind, at });

    assert_eq!(spec.refuse_name().entry(), entry(NamedMismatch, 15));
    assert_eq!(spec.refuse_clock().entry(), entry(SetClockFail, 31));
}

#[test]
fn h_cmd_23_the_last_one_wins() {
    accepts(
        &KMALLOC,
        "keys=junk:keys=node:vals=foo:vals=ptr:sort=bar:sort=ptr:size=128:size=256",
        "keys=node:vals=hitcount,ptr:sort=ptr:size=256",
    );
    accepts(
        &KMALLOC,
        "keys=common_timestamp:name=a:name=b:clock=local:clock=mono",
        &format!("name=b:keys=common_timestamp{TAIL}:clock=mono"),
    );
    explains(
        &KMALLOC,
        "hist:keys=node:size=^1:size=256",
        Einval,
        InvalidSize,
    );
}

#[test]
fn h_cmd_24_filter() {
    let filter = |text: &'static str| {
        let p = compile(&KMALLOC, text.as_bytes()).expect(text);

        p.filter(text.as_bytes()).map(<[u8]>::to_vec)
    };

    assert_eq!(filter("keys=node"), None);
    assert_eq!(
        filter("keys=node if node > 1").as_deref(),
        Some(&b"node > 1"[..])
    );
    assert_eq!(
        filter("keys=node\tif\tnode>1").as_deref(),
        Some(&b"node>1"[..])
    );
    assert_eq!(
        filter("keys=node if  node > 1  ").as_deref(),
        Some(&b" node > 1"[..])
    );
    assert_eq!(
        filter("keys=node if ptr == 1 if node == 2").as_deref(),
        Some(&b"ptr == 1 if node == 2"[..])
    );
    for text in [
        "^if node > 1",
        "^ifkeys=node",
        "keys=node ^if",
        "keys=node ^if ",
        "keys=node ^ifx",
        "keys=node ^if   ",
    ] {
        explains(&KMALLOC, &format!("hist:{text}"), Einval, NoFilter);
    }
    assert_eq!(filter("keys=node if a").as_deref(), Some(&b"a"[..]));
    // Not words of their own.
    refuses(
        &KMALLOC,
        "hist:keys=^node ifx node > 1",
        Einval,
        FieldNotFound,
    );
    refuses(
        &KMALLOC,
        "hist:keys=^nodeif node > 1",
        Einval,
        FieldNotFound,
    );
    // The text is kept as typed.
    accepts(
        &KMALLOC,
        "keys=node if (  bytes_req  >  1)&&ptr!=0",
        &format!("keys=node{TAIL} if (  bytes_req  >  1)&&ptr!=0"),
    );
    accepts(
        &KMALLOC,
        "keys=node if call_site.function == foo.sym-offset",
        &format!("keys=node{TAIL} if call_site.function == foo.sym-offset"),
    );
}

#[test]
fn h_cmd_25_blanks_inside_are_part_of_the_name() {
    refuses(&KMALLOC, "hist:keys=^node :vals=ptr", Einval, FieldNotFound);
    refuses(&KMALLOC, "hist:keys=node,^ ptr", Einval, FieldNotFound);
    // These are variables, which may have any name.
    accepts(
        &KMALLOC,
        "keys=node: vals=ptr",
        "keys=node:vals=hitcount: vals=ptr:sort=hitcount:size=2048",
    );
    explains(&KMALLOC, "hist:^keys =node", Einval, NoKeys);
}

#[test]
fn h_cmd_26_to_30_identity() {
    let same = |a: &str, b: &str| {
        let pa = compile_change(&KMALLOC, a.as_bytes()).expect(a);
        let pb = compile_change(&KMALLOC, b.as_bytes()).expect(b);
        let ab = pa.same_trigger(a.as_bytes(), &pb, b.as_bytes());

        assert_eq!(ab, pb.same_trigger(b.as_bytes(), &pa, a.as_bytes()));
        ab
    };

    for (a, b) in [
        ("keys=node", "key=node:vals=hitcount:sort=hitcount"),
        ("keys=node", "keys=node:size=4096"),
        ("keys=node:vals=ptr", "keys=node:vals=ptr:nohitcount"),
        ("keys=node", "keys=node:pause"),
        ("keys=node", "keys=node:clear"),
        ("keys=ptr.buckets=16", "keys=ptr.bucket=0x10"),
        (
            "keys=common_timestamp",
            "keys=common_timestamp:clock=global",
        ),
        ("keys=stacktrace", "keys=common_stacktrace"),
        ("keys=node if ptr > 0", "keys=node   if ptr > 0"),
        (
            "keys=node:sort=ptr:sort=node",
            "keys=node:sort=node.ascending",
        ),
        ("keys=ptr.sym-offset", "keys=ptr.symXoffset"),
        (
            "keys=common_timestamp:clock=mono",
            "keys=common_timestamp:clock=local",
        ),
        ("keys=node:vals=ptr+010", "keys=node:vals=ptr+2*4"),
        ("keys=node:x=ptr:y=$x", "keys=node:x=ptr,y=ptr"),
        (
            "keys=node:x=ptr:onmax($x).save(ptr, node )",
            "keys=node:onmax($x).save(ptr,node):x=ptr",
        ),
        (
            "keys=node:x=ptr:onmax($x).snapshot()",
            "keys=node:x=ptr:onmax($x).snapshot(junk)",
        ),
        (
            "keys=node:onmatch(a.b).trace(ee,$x)",
            "keys=node:onmatch(a.b).ee($x)",
        ),
    ] {
        assert!(same(a, b), "{a} and {b}");
    }
    for (a, b) in [
        ("keys=node", "keys=ptr"),
        ("keys=node", "keys=node,ptr"),
        ("keys=node,ptr", "keys=ptr,node"),
        ("keys=node", "keys=node.hex"),
        ("keys=node", "keys=node:vals=ptr"),
        ("keys=node:vals=ptr", "keys=node:vals=ptr.hex"),
        (
            "keys=node:vals=ptr,bytes_req",
            "keys=node:vals=bytes_req,ptr",
        ),
        ("keys=node:sort=node", "keys=node"),
        ("keys=node:sort=node", "keys=node:sort=node.descending"),
        ("keys=node:sort=node", "keys=node:sort=node,hitcount"),
        ("keys=ptr.buckets=16", "keys=ptr.buckets=17"),
        ("keys=node if ptr > 0", "keys=node"),
        ("keys=node if ptr > 0", "keys=node if ptr >0"),
        ("keys=cpu", "keys=common_cpu"),
        ("keys=cpu", "keys=CPU"),
        ("keys=comm", "keys=common_comm"),
        ("keys=common_timestamp", "keys=common_timestamp.usecs"),
        ("name=a:keys=node", "keys=node"),
        ("name=a:keys=node", "name=b:keys=node"),
        ("keys=node:vals=ptr-node", "keys=node:vals=ptr+node"),
        ("keys=node:vals=ptr+1", "keys=node:vals=ptr+2"),
        ("keys=node:vals=1", "keys=node:vals=2"),
        ("keys=node:vals=ptr+node", "keys=node:vals=ptr+bytes_req"),
        ("keys=node:vals=-(ptr)", "keys=node:vals=ptr"),
        (
            "keys=node:vals=ptr.buckets=2+1",
            "keys=node:vals=ptr.buckets=3+1",
        ),
        ("keys=node:x=ptr", "keys=node:y=ptr"),
        ("keys=node:x=ptr", "keys=node:x=bytes_req"),
        ("keys=node:x=ptr", "keys=node"),
        ("keys=node:x=ptr,y=ptr", "keys=node:y=ptr,x=ptr"),
        (
            "keys=node:x=ptr:onmax($x).save(ptr)",
            "keys=node:x=ptr:onchange($x).save(ptr)",
        ),
        (
            "keys=node:x=ptr:onmax($x).save(ptr)",
            "keys=node:x=ptr:onmax($x).save(node)",
        ),
        (
            "keys=node:x=ptr:onmax($x).save(ptr)",
            "keys=node:x=ptr:onmax($x).snapshot()",
        ),
        (
            "keys=node:x=ptr:onmax($x).save(ptr)",
            "keys=node:x=ptr:onmax($y).save(ptr)",
        ),
        (
            "keys=node:x=ptr:onmax($x).save(ptr)",
            "keys=node:x=ptr:onmax($x).savex(ptr)",
        ),
        (
            "keys=node:onmatch(a.b).e($x)",
            "keys=node:onmatch(a.c).e($x)",
        ),
        (
            "keys=node:onmatch(a.b).e($x)",
            "keys=node:onmatch(a.b).f($x)",
        ),
        (
            "keys=node:onmatch(a.b).e($x)",
            "keys=node:onmatch(a.b).e($x,ptr)",
        ),
    ] {
        assert!(!same(a, b), "{a} and {b}");
    }

    // A field of another event differs by its type even if its size and sign are the same.
    const OTHER: Event = Event(&[(
        "node",
        "pid_t",
        8,
        4,
        true,
        rust_hist::field::FieldKind::Other,
    )]);
    let text = b"keys=node";
    let (a, b) = (
        compile(&KMALLOC, text).expect("a"),
        compile(&OTHER, text).expect("b"),
    );

    assert!(!a.same_shape(text, &b, text));
}

#[test]
fn h_cmd_35_the_line() {
    accepts(
        &KMALLOC,
        "keys=node,common_timestamp.usecs:vals=ptr.hex,hitcount.percent:NOHC:size=1000:\
         sort=common_timestamp.descending if ptr",
        "keys=node,common_timestamp.usecs:vals=ptr.hex,hitcount.percent:\
         sort=common_timestamp.usecs.descending:size=1024:clock=global:nohitcount if ptr",
    );

    let mut out = Text::default();
    let text = b"keys=node";
    let p = compile(&KMALLOC, text).expect("plain");

    p.write_line(b"rhist", text, true, &mut out)
        .expect("prints");
    assert_eq!(
        out.0,
        format!("rhist:keys=node{TAIL} [paused]\n").into_bytes()
    );
}

#[test]
fn h_cmd_36_the_line_makes_the_trigger_again_in_its_state() {
    let starts = |text: &str| {
        let program = compile(&KMALLOC, text.as_bytes())
            .unwrap_or_else(|refusal| panic!("{text}: {refusal:?}"));
        let removal = compile_change(&KMALLOC, text.as_bytes()).expect(text);

        assert!(program.same_trigger(text.as_bytes(), &removal, text.as_bytes()));
        // It describes a new trigger, and changes none.
        assert_eq!(program.update, None);
        (
            program.starts_paused,
            program.filter(text.as_bytes()).map(<[u8]>::to_vec),
        )
    };

    for text in [
        "keys=node:vals=hitcount:sort=hitcount:size=2048",
        "keys=common_timestamp:size=2048:clock=mono",
        "keys=node:vals=ptr:nohitcount",
        "keys=node:v=ptr:size=128:onmax($v).save(ptr)",
    ] {
        assert_eq!(starts(&format!("{text} [active]")), (false, None));
        assert_eq!(starts(&format!("{text} [paused]")), (true, None));
        for filter in [
            "node == 1",
            "comm == \"[paused]\"",
            "comm == \"x\" [active]",
        ] {
            let text = format!("{text} if {filter}");
            let expected = |paused| (paused, Some(filter.as_bytes().to_vec()));

            assert_eq!(starts(&format!("{text} [active]")), expected(false));
            assert_eq!(starts(&format!("{text} [paused]")), expected(true));
        }
    }
    // What a filter begins with is no state.
    assert_eq!(
        starts("keys=node if [paused]"),
        (false, Some(b"[paused]".to_vec()))
    );
    assert_eq!(
        starts("keys=node if  [paused]"),
        (false, Some(b" [paused]".to_vec()))
    );
}

#[test]
fn h_cmd_36_what_c_accepts_keeps_its_meaning() {
    let program = |text: &str| compile(&KMALLOC, text.as_bytes()).expect(text);
    // A name is any text, and so is that of a variable.
    let named = program("keys=node:name=a [paused]");

    assert_eq!(
        named.name(b"keys=node:name=a [paused]"),
        Some(&b"a [paused]"[..])
    );
    assert!(!named.starts_paused);

    let alias = program("keys=node:v [paused]=ptr:w=$v [paused]");

    assert_eq!(alias.vars.len(), 2);
    assert!(!alias.starts_paused);
    // Without time stamps a clock is nothing, whatever it is called.
    assert!(!program("keys=node:clock=mono [paused]").starts_paused);
    assert!(program("keys=node:clock=mono if ptr [paused]").starts_paused);
    // Nor is anything else a state.
    for text in [
        "keys=node [active]",
        "keys=node:vals=ptr [paused]",
        "keys=node:clear [active]",
        "keys=node:size=128  [active]",
        "keys=node:size=128 [Active]",
        "keys=node:size=128 [active] [active]",
    ] {
        assert!(compile(&KMALLOC, text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn carets_count_the_prefix() {
    let refusal = lang::parse(b"rhist", b"keys=")
        .map(|_| ())
        .expect_err("empty");

    assert_eq!(refusal.entry().map(|e| e.at), Some(6));
}

/// B-31: the place of an array is not its value.
#[test]
fn h_cmd_38_what_no_column_holds() {
    for name in [
        "odd",
        "func",
        "func.log2",
        "odd.log2",
        "odd.sym",
        "numbers",
        "numbers.hex",
    ] {
        for text in ["keys=^", "keys=u8:vals=^", "keys=u8:x=^", "keys=u8+^"] {
            explains(
                &ZOO,
                &format!("hist:{text}{name}"),
                Enomem,
                UnsupportedField,
            );
        }
    }
    // A mask of CPUs is a key and nothing else.
    for text in [
        "keys=u8:vals=^cpumask",
        "keys=u8:x=^cpumask",
        "keys=u8+^cpumask",
        "keys=^cpumask.hex",
        "keys=^cpumask.log2",
        "keys=u8:v=u16:onmax($v).save(^cpumask)",
    ] {
        explains(&ZOO, &format!("hist:{text}"), Enomem, UnsupportedField);
    }
    explains(&SYS_ENTER, "hist:keys=^args", Enomem, UnsupportedField);
    refuses(&ZOO, "hist:keys=^empty", Einval, FieldNotFound);
}

/// What a refusal says behind its message.
fn detail_of(text: &str) -> String {
    let refusal = compile(&KMALLOC, text.as_bytes())
        .map(|_| ())
        .expect_err(text);

    String::from_utf8_lossy(refusal.detail()).into_owned()
}

#[test]
fn x_25_a_refusal_says_what_may_have_been_meant() {
    const NUMBER: &str = "hex, sym, sym-offset, syscall";

    for (text, detail) in [
        ("keys=bytes_rq", "did you mean bytes_req"),
        ("keys=node:vals=byets_req", "did you mean bytes_req"),
        ("keys=common_timestmap", "did you mean common_timestamp"),
        ("keys=junk", ""),
        (
            "keys=node vals=bytes_req",
            "a blank is part of the word, a colon ends a parameter",
        ),
        (
            "keys=node:v=ptr :onmax($v).save(ptr)",
            "a blank is part of the word, a colon ends a parameter",
        ),
        (
            "keys=node:pause clear",
            "a blank is part of the word, a colon ends a parameter",
        ),
        ("keys=node:puase", "did you mean pause"),
        ("node", "did you mean keys=node"),
        ("keys=node:junk", ""),
        (
            "keys=node:colour=red",
            "colour= is no parameter, so it defines a variable",
        ),
        ("keys=node:szie=many", "did you mean size="),
        (
            "keys=ptr.junk",
            &format!("valid here: {NUMBER}, log2, log2=N, buckets=N"),
        ),
        (
            "keys=common_pid.junk",
            &format!("valid here: {NUMBER}, log2, log2=N, buckets=N, execname"),
        ),
        ("keys=node:v=ptr.junk", &format!("valid here: {NUMBER}")),
        (
            "keys=common_timestamp.junk",
            "valid here: usecs, log2, log2=N, buckets=N",
        ),
        (
            "keys=node:vals=ptr.log2",
            "valid here: hex, percent, graph, sum, min, max, avg, stddev",
        ),
        ("keys=comm.junk", "a string has none"),
        ("keys=comm.log2", "log2 and buckets are for numbers"),
        ("keys=ptr.stacktrace", "stacktrace is for stacks"),
        ("keys=junk.junk", ""),
        ("keys=node:v=ptr.log2", "a variable keeps the number itself"),
        ("keys=ptr.buckets=0", "buckets=N needs a number above 0"),
        ("keys=ptr.buckets=-1", "buckets=N needs a number above 0"),
        ("keys=ptr.hex.log2", "a field has one modifier"),
        (
            "keys=common_timestamp.usecs.buckets=1000000",
            "a field has one modifier, common_timestamp/1000000000 is in seconds",
        ),
        (
            "keys=node:s=common_timestamp.usecs/1000000",
            "a number has none, common_timestamp/1000000000 is in seconds",
        ),
        ("keys=node:s=common_timestamp.usecs-ptr", ""),
    ] {
        assert_eq!(detail_of(text), detail, "{text}");
    }
    refuses(
        &KMALLOC,
        "hist:keys=ptr.buckets=^-1",
        Einval,
        BadFieldModifier,
    );
}

#[test]
fn x_25_a_constant_with_nearly_the_name_of_a_parameter_is_noted() {
    let like = |text: &str| {
        let program = compile(&KMALLOC, text.as_bytes()).expect(text);

        program.like_parameter(text.as_bytes())
    };

    assert_eq!(like("keys=node:szie=512"), Some((10, &b"size"[..])));
    assert_eq!(like("keys=node:srot=hitcount"), Some((10, &b"sort"[..])));
    // It is named, keeps something, is one of several, or is like nothing.
    for text in [
        "keys=node:szie=512:vals=$szie",
        "keys=node:szie=512:x=$szie+ptr",
        "keys=node:szie=512:onmax($szie).save(ptr)",
        "keys=node:szie=ptr",
        "keys=node:size2=512",
        "keys=node:max=512",
    ] {
        assert_eq!(like(text), None, "{text}");
    }
}

#[test]
fn x_25_a_filter_has_no_variables() {
    let refused = |text: &str| {
        let spec = lang::parse(b"hist", text.as_bytes()).expect(text);

        spec.refuse_filter().and_then(|refusal| refusal.entry())
    };

    for marked in [
        "hist:keys=node if ^$lat > 100",
        "hist:keys=node if ptr > 1 && (!^$lat)",
        "hist:keys=node if name == \"x && $y\" ||^$lat > 1",
    ] {
        let at = u16::try_from(marked.find('^').expect("a caret")).expect("short");
        let text = marked.replace('^', "").replacen("hist:", "", 1);

        assert_eq!(
            refused(&text),
            Some(LogEntry {
                kind: FilterVar,
                at
            }),
            "{text}"
        );
    }
    for text in [
        "keys=node if name == \"(\\$x\"",
        "keys=node if name ~ \"&& $x\"",
        "keys=node if name == $x",
        "keys=$x if ptr > 1",
        "keys=node",
    ] {
        assert_eq!(refused(text), None, "{text}");
    }
}

#[test]
fn x_24_a_command_may_be_in_several_lines() {
    for (typed, line) in [
        (
            "keys=node: \\\n\t vals=ptr,\\\n  bytes_req \\\n  if ptr > 1",
            "keys=node:vals=ptr,bytes_req if ptr > 1",
        ),
        (
            "keys=node:onmatch(a.b).\\\n   c(ptr, \\\n node)",
            "keys=node:onmatch(a.b).c(ptr,node)",
        ),
        ("keys=node:\\\n", "keys=node:"),
        // What is in the filter is text.
        (
            "keys=node,\\\nptr if name == \"a,\\\n b\"",
            "keys=node,ptr if name == \"a,\\\n b\"",
        ),
    ] {
        let joined = lang::in_one_line(typed.as_bytes()).expect("memory");

        assert_eq!(joined.as_deref(), Some(line.as_bytes()), "{typed}");
    }
    for text in [
        "keys=node: vals=ptr, bytes_req",
        "keys=node:\n vals=ptr",
        "keys=node:\\ vals=ptr",
        "keys=node if name == \"a,\\\n b\"",
    ] {
        let joined = lang::in_one_line(text.as_bytes()).expect("memory");

        assert!(joined.is_none(), "{text}");
    }
}

#[test]
fn any_bytes_may_be_in_the_text() {
    let text = b"keys=node if ptr == \"\xff\xfe\"";
    let p = compile(&KMALLOC, text).expect("filters are not read here");
    let line = line_of(&p, text);

    assert!(behind_prefix(&line).ends_with(b" if ptr == \"\xff\xfe\""));

    let refusal = compile(&KMALLOC, b"keys=no\xffde")
        .map(|_| ())
        .expect_err("no such field");

    assert_eq!(
        refusal.entry().map(|e| (e.kind, e.at)),
        Some((FieldNotFound, 10))
    );
    // The text ends at a NUL.
    assert!(compile(&KMALLOC, b"keys=node\0:junk").is_ok());
}

#[test]
fn ten_thousand_characters() {
    let long = "a".repeat(10_000);

    refuses(
        &KMALLOC,
        &format!("hist:keys=^{long}"),
        Einval,
        FieldNotFound,
    );
    refuses(
        &KMALLOC,
        &format!("hist:keys=ptr.^{long}"),
        Einval,
        BadFieldModifier,
    );
    explains(
        &KMALLOC,
        &format!("hist:keys=node:^{long}"),
        Einval,
        UnknownWord,
    );
    explains(
        &KMALLOC,
        &format!("hist:keys=node:size=^{}", "9".repeat(10_000)),
        Erange,
        InvalidSize,
    );
    explains(
        &KMALLOC,
        &format!("hist:keys={}^{}", "node,".repeat(8), "node,".repeat(2_000)),
        Einval,
        TooManyKeys,
    );

    let text = format!("keys=node{}", ":pause".repeat(1_666));

    assert!(compile(&KMALLOC, text.as_bytes()).is_ok());

    let text = format!("keys=node if {long}");

    accepts(&KMALLOC, &text, &format!("keys=node{TAIL} if {long}"));
}

#[test]
fn the_number_of_an_entry_is_the_index_of_its_text() {
    use rust_hist::error::ErrKind;

    for (kind, text) in [
        (NoError, "No error"),
        (DuplicateVar, "Variable already defined"),
        (TriggerEexist, "Hist trigger already exists"),
        (BadFieldModifier, "Invalid field modifier"),
        (FieldNotFound, "Couldn't find field"),
        (InvalidSortField, "Sort field must be a key or a val"),
        (
            NeedNohcVal,
            "Non-hitcount value is required for 'nohitcount'",
        ),
        (StringValue, "String type can not be a value"),
    ] {
        assert_eq!(kind.text().to_str(), Ok(text));
        assert_eq!(ErrKind::TEXTS.get(kind as usize), Some(&kind.text()));
    }
    assert_eq!(
        ErrKind::TEXTS.get(48),
        Some(&NeedNohcVal.text()),
        "the numbers of C"
    );
}

#[test]
fn h_cmd_30_the_nearest_trigger_and_where_it_differs() {
    let compiled = |text: &str| compile_change(&KMALLOC, text.as_bytes()).expect(text);
    let likeness = |typed: &str, there: &str| {
        compiled(typed).likeness(typed.as_bytes(), &compiled(there), there.as_bytes())
    };
    // What follows the first difference, in the line of the one that is there.
    let behind = |typed: &str, there: &str| {
        let program = compiled(there);
        let at = compiled(typed)
            .difference(typed.as_bytes(), &program, there.as_bytes())
            .expect("has memory");
        let line = line_of(&program, there.as_bytes());
        String::from_utf8(line[b"hist".len() + at..].to_vec()).expect("is text")
    };

    for (typed, there, rest) in [
        (
            "keys=node",
            "keys=ptr",
            "ptr:vals=hitcount:sort=hitcount:size=2048 [active]",
        ),
        (
            "keys=node,ptr",
            "keys=node",
            ":vals=hitcount:sort=hitcount:size=2048 [active]",
        ),
        (
            "keys=node",
            "keys=node:vals=ptr",
            ",ptr:sort=hitcount:size=2048 [active]",
        ),
        (
            "keys=node:x=ptr",
            "keys=node",
            "sort=hitcount:size=2048 [active]",
        ),
        ("keys=node", "keys=node if ptr > 0", "if ptr > 0 [active]"),
        (
            "keys=node if ptr>0",
            "keys=node if ptr > 0",
            " > 0 [active]",
        ),
        ("keys=node if ptr > 0", "keys=node", "[active]"),
        (
            "keys=node",
            "name=n:keys=node",
            "name=n:keys=node:vals=hitcount:sort=hitcount:size=2048 [active]",
        ),
        (
            "keys=node:size=128 if ptr > 0",
            "keys=node if ptr > 1",
            "1 [active]",
        ),
    ] {
        assert_eq!(behind(typed, there), rest, "{typed} {there}");
    }
    // Keys count more than all else, and the more is the same the nearer it is.
    let typed = "name=n:keys=node:vals=ptr:x=ptr:sort=ptr if ptr > 0";
    let far = "name=n:keys=ptr:vals=ptr:x=ptr:sort=ptr if ptr > 0";
    let near = "keys=node";
    let nearer = "keys=node if ptr > 0";

    assert!(likeness(typed, near) > likeness(typed, far));
    assert!(likeness(typed, nearer) > likeness(typed, near));
    assert!(likeness(typed, typed) > likeness(typed, nearer));
}
