// SPDX-License-Identifier: GPL-2.0

//! Which fields, modifiers and special fields are keys and values, and how they print.
//!
//! The names of the tests are ids of the behaviour inventory.

#![cfg(not(loom))]

mod lang_common;

use lang_common::*;
use rust_hist::{
    bucket::Scale,
    error::{
        ErrKind::*,
        Errno::Einval, //
    },
    program::{
        Kind,
        Modifier, //
    },
};

#[test]
fn h_mod_01_one_modifier() {
    for m in ["junk", "HEX", "log", "log22", "hex ", " hex", "bucke"] {
        refuses(
            &KMALLOC,
            &format!("hist:keys=ptr.^{m}"),
            Einval,
            BadFieldModifier,
        );
    }
    // That is a difference.
    refuses(&KMALLOC, "hist:keys=ptr.sym-^offse", Einval, FieldNotFound);
    refuses(&KMALLOC, "hist:keys=ptr.^", Einval, BadFieldModifier);
    refuses(
        &KMALLOC,
        "hist:keys=node:vals=ptr.^",
        Einval,
        BadFieldModifier,
    );
    // With two dots the first two names are those of an event.
    refuses(&KMALLOC, "hist:keys=ptr.hex.^log2", Einval, FieldNotFound);
    accepts(
        &KMALLOC,
        "keys=kmem.kmalloc.ptr",
        &format!("keys=ptr{TAIL}"),
    );
    accepts(&KMALLOC, "keys=a.b.ptr.hex", &format!("keys=ptr.hex{TAIL}"));
    // The modifier is looked at before the field.
    refuses(&KMALLOC, "hist:keys=foo.^bar", Einval, BadFieldModifier);
    refuses(&KMALLOC, "hist:keys=^foo.hex", Einval, FieldNotFound);
}

#[test]
fn h_mod_02_to_05_names_of_numbers() {
    for (typed, modifier) in [
        ("hex", Modifier::Hex),
        ("sym", Modifier::Sym),
        ("sym-offset", Modifier::SymOffset),
        ("syscall", Modifier::Syscall),
    ] {
        let p = keys(&KMALLOC, &format!("ptr.{typed}"), &format!("ptr.{typed}"));

        assert_eq!(p.keys[0].field.modifier, modifier);
        if modifier != Modifier::Hex {
            refuses(
                &KMALLOC,
                &format!("hist:keys=node:vals=^ptr.{typed}"),
                Einval,
                BadFieldModifier,
            );
        }
    }
    accepts(
        &KMALLOC,
        "keys=node:vals=ptr.hex",
        "keys=node:vals=hitcount,ptr.hex:sort=hitcount:size=2048",
    );
    refuses(
        &KMALLOC,
        "hist:keys=ptr.^sym-offsetx",
        Einval,
        BadFieldModifier,
    );
    keys(&KMALLOC, "ptr.symXoffset", "ptr.sym-offset");
}

#[test]
fn h_mod_06_and_08_execname() {
    let p = keys(&KMALLOC, "common_pid.execname", "common_pid.execname");

    assert!(p.needs_comm());
    assert!(!keys(&KMALLOC, "common_pid", "common_pid").needs_comm());
    refuses(
        &SWITCH,
        "hist:keys=prev_pid.^execname",
        Einval,
        BadFieldModifier,
    );
    let p = accepts(
        &KMALLOC,
        "keys=node:vals=common_pid.execname",
        "keys=node:vals=hitcount,common_pid.execname:sort=hitcount:size=2048",
    );

    assert!(!p.needs_comm());
}

#[test]
fn scales_of_log2() {
    for n in 0..=6u8 {
        let p = keys(
            &KMALLOC,
            &format!("bytes_req.log2={n}"),
            &match n {
                0 => "bytes_req.log2".to_owned(),
                _ => format!("bytes_req.log2={n}"),
            },
        );
        let scale = Scale::new(n).expect("a scale");

        assert_eq!(p.keys[0].field.modifier, Modifier::Log2(scale));
    }
    for wrong in ["", "7", "9", "10", "-1", "+1", "0x1", "01", "4 ", "a"] {
        refuses(
            &KMALLOC,
            &format!("hist:keys=bytes_req.log2=^{wrong}"),
            Einval,
            InvalidScale,
        );
    }
    refuses(&KMALLOC, "hist:keys=node+ptr.log2=^7", Einval, InvalidScale);
    // The caret is under the number itself, wherever else its digits are.
    refuses(
        &KMALLOC,
        "hist:size=4096:keys=node.log2=^9",
        Einval,
        InvalidScale,
    );
    refuses(
        &KMALLOC,
        "hist:keys=node:vals=^bytes_req.log2=4",
        Einval,
        BadFieldModifier,
    );
    accepts(
        &KMALLOC,
        "keys=node.log2=3,ptr.log2=5-1:sort=node.log2=3.descending",
        "keys=node.log2=3,ptr.log2=5-1:vals=hitcount:sort=node.log2=3.descending:size=2048",
    );
}

#[test]
fn h_mod_09_log2() {
    keys(&KMALLOC, "bytes_req.log2", "bytes_req.log2");
    keys(&ZOO, "pointed.log2", "pointed.log2");
    refuses(
        &KMALLOC,
        "hist:keys=node:vals=^bytes_req.log2",
        Einval,
        BadFieldModifier,
    );
    refuses(
        &KMALLOC,
        "hist:keys=node:vals=^hitcount.log2",
        Einval,
        BadFieldModifier,
    );
    for name in ["prev_comm", "common_comm", "comm", "common_stacktrace"] {
        refuses(
            &SWITCH,
            &format!("hist:keys=^{name}.log2"),
            Einval,
            BadFieldModifier,
        );
        refuses(
            &SWITCH,
            &format!("hist:keys=^{name}.buckets=8"),
            Einval,
            BadFieldModifier,
        );
    }
    refuses(&ZOO, "hist:keys=^filename.log2", Einval, BadFieldModifier);
    refuses(&ZOO, "hist:keys=^filename.log2=3", Einval, BadFieldModifier);
    refuses(&ZOO, "hist:keys=^stack.log2", Einval, BadFieldModifier);
}

#[test]
fn h_mod_10_buckets() {
    for typed in ["buckets=10", "bucket=10", "buckets=0xa", "bucket=012"] {
        keys(&KMALLOC, &format!("ptr.{typed}"), "ptr.buckets=10");
    }
    keys(
        &KMALLOC,
        "ptr.buckets=18446744073709551615",
        "ptr.buckets=18446744073709551615",
    );
    refuses(
        &KMALLOC,
        "hist:keys=ptr.buckets=^0",
        Einval,
        BadFieldModifier,
    );
    refuses(
        &KMALLOC,
        "hist:keys=ptr.buckets=^12x",
        Einval,
        BadFieldModifier,
    );
    refuses(
        &KMALLOC,
        "hist:keys=ptr.bucket^x=1",
        Einval,
        BadFieldModifier,
    );
    refuses(&KMALLOC, "hist:keys=ptr.bucket^", Einval, BadFieldModifier);
    refuses(&KMALLOC, "hist:keys=ptr.buckets^", Einval, BadFieldModifier);
    refuses(
        &KMALLOC,
        "hist:keys=ptr.buckets=^18446744073709551616",
        Einval,
        BadFieldModifier,
    );
    refuses(
        &KMALLOC,
        "hist:keys=node:vals=^ptr.buckets=10",
        Einval,
        BadFieldModifier,
    );
}

#[test]
fn h_mod_11_usecs() {
    let p = keys(&KMALLOC, "ptr.usecs", "ptr.usecs");

    assert!(!p.timestamps && !p.usecs);

    let p = accepts(
        &KMALLOC,
        "keys=common_timestamp:vals=common_timestamp.usecs",
        "keys=common_timestamp:vals=hitcount,common_timestamp.usecs:sort=hitcount:size=2048:\
         clock=global",
    );

    assert!(p.timestamps && p.usecs);
}

#[test]
fn h_mod_12_to_14_percent_and_graph() {
    accepts(
        &KMALLOC,
        "keys=node:vals=ptr.percentfoo,hitcount.graph=bar",
        "keys=node:vals=hitcount,ptr.percent,hitcount.graph:sort=hitcount:size=2048",
    );
    accepts(
        &KMALLOC,
        "keys=node:vals=hitcount.hex",
        "keys=node:vals=hitcount,hitcount.hex:sort=hitcount:size=2048",
    );
    refuses(
        &KMALLOC,
        "hist:keys=node.^percent",
        Einval,
        BadFieldModifier,
    );
    refuses(&KMALLOC, "hist:keys=node.^graphx", Einval, BadFieldModifier);
}

#[test]
fn h_mod_15_stacktrace_of_a_stack_field() {
    let p = keys(&ZOO, "stack.stacktrace", "stack.stacktrace");

    assert_eq!(p.key_words(), 31);
    keys(&ZOO, "stack", "stack.stacktrace");
    accepts(
        &ZOO,
        "keys=stack:sort=stack.descending",
        "keys=stack.stacktrace:vals=hitcount:sort=stack.descending:size=2048",
    );
    for name in [
        "u8",
        "common_stacktrace",
        "stacktrace",
        "common_cpu",
        "filename",
        "hitcount",
    ] {
        refuses(
            &ZOO,
            &format!("hist:keys=^{name}.stacktrace"),
            Einval,
            BadFieldModifier,
        );
    }
    refuses(&ZOO, "hist:keys=^junk.stacktrace", Einval, FieldNotFound);
    refuses(
        &ZOO,
        "hist:keys=u8:vals=^stack.stacktrace",
        Einval,
        BadFieldModifier,
    );
    refuses(&ZOO, "hist:keys=u8:vals=^stack", Einval, BadFieldModifier);
}

#[test]
fn h_spf_01_hitcount() {
    keys(&KMALLOC, "hitcount", "hitcount");
    accepts(
        &KMALLOC,
        "keys=hitcount,node:sort=hitcount.descending",
        "keys=hitcount,node:vals=hitcount:sort=hitcount.descending:size=2048",
    );
}

#[test]
fn h_spf_02_timestamp() {
    let p = accepts(
        &KMALLOC,
        "keys=common_timestamp",
        "keys=common_timestamp:vals=hitcount:sort=hitcount:size=2048:clock=global",
    );

    assert!(p.timestamps && !p.usecs);
}

#[test]
fn h_spf_03_and_04_cpu() {
    for name in ["common_cpu", "cpu", "CPU"] {
        keys(&KMALLOC, name, name);
        accepts(
            &KMALLOC,
            &format!("keys={name}.log2:vals={name}:sort={name}"),
            &format!("keys={name}.log2:vals=hitcount,{name}:sort={name}:size=2048"),
        );
    }
    const OWN: Event = Event(&[("cpu", "int", 8, 4, true, rust_hist::field::FieldKind::Other)]);

    assert!(matches!(
        keys(&OWN, "cpu", "cpu").keys[0].field.op,
        rust_hist::program::Op::Num { .. }
    ));
}

#[test]
fn h_spf_05_stacktrace() {
    for name in ["common_stacktrace", "stacktrace", "STACKTRACE"] {
        let p = keys(&KMALLOC, name, "common_stacktrace");

        assert_eq!(p.keys[0].field.kind, Kind::Stack);
        refuses(
            &KMALLOC,
            &format!("hist:keys=node:vals=^{name}"),
            Einval,
            BadFieldModifier,
        );
    }
    keys(&KMALLOC, "common_stacktrace.hex", "common_stacktrace.hex");
    accepts(
        &KMALLOC,
        "keys=stacktrace,node:sort=common_stacktrace",
        "keys=common_stacktrace,node:vals=hitcount:sort=common_stacktrace:size=2048",
    );
    refuses(
        &KMALLOC,
        "hist:keys=stacktrace:sort=^stacktrace",
        Einval,
        InvalidSortField,
    );
}

#[test]
fn h_spf_06_and_07_comm() {
    use rust_hist::tracing_map::sort::{Column, Compare};

    for name in ["common_comm", "comm", "COMM"] {
        let p = accepts(
            &KMALLOC,
            &format!("keys={name}:sort={name}"),
            &format!("keys={name}:vals=hitcount:sort={name}:size=2048"),
        );

        assert_eq!(p.key_words(), 32);
        let compare = Compare::Text { words: 32 };
        assert_eq!(p.sort_keys()[0].column, Column::Key { at: 0, compare });
    }
}

#[test]
fn h_spf_08_common_fields() {
    keys(
        &KMALLOC,
        "common_type,common_flags",
        "common_type,common_flags",
    );
    keys(
        &KMALLOC,
        "common_preempt_count,common_pid",
        "common_preempt_count,common_pid",
    );
}

#[test]
fn h_key_01_sort_by_size_and_sign() {
    use rust_hist::tracing_map::sort::{Column, Compare};

    for (name, size, signed) in [
        ("u8", 1, false),
        ("s8", 1, true),
        ("u16", 2, false),
        ("s16", 2, true),
        ("u32", 4, false),
        ("s32", 4, true),
        ("u64", 8, false),
        ("s64", 8, true),
        ("pointed", 8, false),
        ("common_cpu", 8, false),
        ("common_timestamp", 8, false),
    ] {
        let p = compile(&ZOO, format!("keys={name}:sort={name}").as_bytes()).expect(name);

        let compare = Compare::Number { size, signed };
        let column = Column::Key { at: 0, compare };

        assert_eq!(p.sort_keys()[0].column, column, "{name}");
    }
}

#[test]
fn h_key_05_pointers_are_numbers() {
    let p = keys(&ZOO, "pointed", "pointed");

    assert_eq!(p.keys[0].field.kind, Kind::Number);
    accepts(
        &ZOO,
        "keys=u8:vals=pointed",
        "keys=u8:vals=hitcount,pointed:sort=hitcount:size=2048",
    );
}

#[test]
fn h_key_07_expressions_and_constants() {
    for item in ["ptr-node", "ptr+node", "ptr*2", "ptr/2", "-(ptr)", "5"] {
        let p = keys(&KMALLOC, item, item);

        assert_eq!(p.key_words(), 1);
        accepts(
            &KMALLOC,
            &format!("keys=node:vals={item}"),
            &format!("keys=node:vals=hitcount,{item}:sort=hitcount:size=2048"),
        );
    }
    keys(&KMALLOC, "0x10", "16");
    accepts(
        &KMALLOC,
        "keys=ptr-node:sort=ptr-node.descending",
        "keys=ptr-node:vals=hitcount:sort=ptr-node.descending:size=2048",
    );
    accepts(
        &KMALLOC,
        "keys=ptr.hex-node.log2,-(ptr.buckets=010):sort=ptr.hex-node.log2.descending,-(ptr.buckets=8)",
        "keys=ptr.hex-node.log2,-(ptr.buckets=8):vals=hitcount:\
         sort=ptr.hex-node.log2.descending,-(ptr.buckets=8):size=2048",
    );
    refuses(&KMALLOC, "hist:keys=^5x", Einval, ExpectNumber);
    refuses(&KMALLOC, "hist:keys=^5.hex", Einval, ExpectNumber);
    refuses(&KMALLOC, "hist:keys=^junk-sym", Einval, FieldNotFound);
    refuses(&KMALLOC, "hist:keys=5:sort=^5", Einval, InvalidSortField);
}

#[test]
fn h_key_08_references_lead_nowhere() {
    for text in [
        "hist:keys=$^foo",
        "hist:keys=a.b.$^foo",
        "hist:keys=node:vals=$^foo.hex",
        "hist:keys=$^foo.junk",
    ] {
        refuses(&KMALLOC, text, Einval, VarNotFound);
    }
    refuses(&KMALLOC, "hist:keys=^$", Einval, FieldNotFound);
}

#[test]
fn h_key_09_strings_are_no_values() {
    for name in [
        "filename",
        "label",
        "seven",
        "common_comm",
        "comm",
        "filename.hex",
    ] {
        refuses(
            &ZOO,
            &format!("hist:keys=u8:vals=^{name}"),
            Einval,
            StringValue,
        );
    }
    refuses(
        &ZOO,
        "hist:keys=u8:vals=^filename.sym",
        Einval,
        BadFieldModifier,
    );
}
