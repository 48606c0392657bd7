// SPDX-License-Identifier: GPL-2.0

//! Expressions: what is accepted and how it prints, what is refused and why.
//!
//! The names of the tests are ids of the behaviour inventory.

#![cfg(not(loom))]

mod lang_common;

use lang_common::{
    vars::*,
    world::World,
    TAIL, //
};
use rust_hist::{
    error::{
        ErrKind::*,
        Errno::{
            E2big,
            Edom,
            Einval,
            Enomem, //
        }, //
    },
    program::{
        Insn,
        Op, //
    }, //
};

/// H-EXP-09, H-ACT-03: whoever divides a number that may be negative, or tracks the largest one, is told that C has no sign
/// there. A caret stands where the number is.
#[test]
fn where_the_sign_is_lost() {
    for text in [
        "keys=^s32/2",
        "keys=s64:vals=100/^s8",
        "keys=s64:x=u8/^s16",
        "keys=s64:x=s16+u8/u8*2,y=^s16*3/u8",
        "keys=s64:x=-(^s16/2)",
        "keys=u8:x=s32:onmax(^$x).save(u8)",
        "keys=u8:x=s32-u8,y=u8:onmax($y).save(u8):onmax(^$x).snapshot()",
    ] {
        let program = world().compile(&text.replace('^', "")).expect(text);

        assert_eq!(program.loses_sign(), text.find('^'), "{text}");
    }
    for text in [
        "keys=s32:vals=s64",
        "keys=s32*2-s16",
        "keys=u32/2:vals=u64/u8",
        "keys=s32:x=u8/2-s16",
        "keys=s32:x=s32.log2/2",
        "keys=s32:x=u8:onmax($x).save(s32)",
        "keys=u8:x=s32:onchange($x).save(u8):onover($x,5).snapshot()",
    ] {
        let program = world().compile(text).expect(text);

        assert_eq!(program.loses_sign(), None, "{text}");
    }
}

#[test]
fn h_exp_01_to_06_operators() {
    let mut world = world();

    for (typed, printed) in [
        ("u8+u16", "u8+u16"),
        ("u8-u16*u32", "u8-u16*u32"),
        ("u8*u16-u32", "u8*u16-u32"),
        ("u8-u16-u32-u64", "u8-u16-u32-u64"),
        ("u8+u16-u32+u64", "u8+u16-u32+u64"),
        ("u8/u16/u32/u64", "u8/u16/u32/u64"),
        ("u8*u16/u32*u64", "u8*u16/u32*u64"),
        ("u8*u16+u32/u64", "u8*u16+u32/u64"),
        ("-(u8)", "-(u8)"),
        ("-(u8+u16*u32)", "-(u8+u16*u32)"),
        ("-(5)", "-(5)"),
        ("-(2*3)", "-(6)"),
        ("64/8/4/2", "1"),
        ("16-8-4-2", "2"),
        ("4+3*2-2", "8"),
        ("1-2", "18446744073709551615"),
        ("0xffffffffffffffff*2", "18446744073709551614"),
        ("10/3", "3"),
        ("7/8", "0"),
        ("100/7*7", "98"),
        ("u8+2*3", "u8+6"),
        ("2*3+u8", "6+u8"),
        ("u8*2*3", "u8*2*3"),
        ("u8/0x10", "u8/16"),
        ("u8.hex+u16.log2", "u8.hex+u16.log2"),
        ("u8.buckets=010-1", "u8.buckets=8-1"),
        ("u64.sym-offset-1", "u64.sym-offset-1"),
        ("u8.percent+1", "u8.percent+1"),
        ("common_pid.execname+1", "common_pid.execname+1"),
        ("hitcount+common_cpu", "hitcount+common_cpu"),
        ("cpu*2", "cpu*2"),
        ("zoo.all.u8+a.b.u16", "u8+u16"),
        ("$seven*2", "14"),
        ("$seven/2", "3"),
        ("u8/$seven", "u8/$seven"),
        ("pointed+1", "pointed+1"),
    ] {
        world.accepts(
            &format!("keys=s32:x={typed}"),
            &line("", &format!(":x={printed}"), ""),
        );
        world.accepts(
            &format!("keys=s32:vals={typed}"),
            &line(&format!(",{printed}"), "", ""),
        );
        if !typed.contains("$seven") || !printed.contains('$') {
            world.accepts(&format!("keys={typed}"), &format!("keys={printed}{TAIL}"));
        }
    }

    // Each with the caret under what is wrong.
    for (expr, errno, kind, at) in [
        ("u8+", Einval, MissingOperand, 2),
        ("+u8", Einval, MissingOperand, 0),
        ("u8++u16", Einval, MissingOperand, 2),
        ("u8*", Einval, MissingOperand, 2),
        ("/u8", Einval, MissingOperand, 0),
        ("u8+u16*", Einval, MissingOperand, 6),
        ("u8-", Einval, MissingOperand, 2),
        ("-u8", Einval, UnaryMinusParens, 0),
        ("-5", Einval, UnaryMinusParens, 0),
        ("-", Einval, UnaryMinusParens, 0),
        ("-(u8", Einval, UnaryMinusParens, 0),
        ("-(u8-u16)", Einval, UnaryMinusParens, 0),
        ("u8+-(u16)", Einval, MissingOperand, 2),
        ("-(u8)+u16", Einval, UnaryMinusSubexpr, 2),
        ("-(u8)*2", Einval, UnaryMinusSubexpr, 2),
        ("(u8)", Einval, FieldNotFound, 0),
        ("(u8+u16)", Einval, FieldNotFound, 0),
        ("u8+(u16)", Einval, FieldNotFound, 3),
        ("u8*2x", Einval, ExpectNumber, 3),
        ("u8+u16+u32+u64+s64", Einval, TooManySubexpr, 0),
        ("-(u8+u16+u32+u64)", Einval, TooManySubexpr, 2),
        ("u16*u32+u64*s8+s16", Einval, TooManySubexpr, 8),
        ("s16/0", Edom, DivisionByZero, 4),
        ("s64/00", Edom, DivisionByZero, 4),
        ("9/0", Edom, DivisionByZero, 2),
        ("u16/$zero", Edom, DivisionByZero, 4),
        ("u16/kmem.kmalloc.$zero", Edom, DivisionByZero, 4),
        ("filename+1", Einval, InvalidStrOperand, 0),
        ("u16+filename", Einval, InvalidStrOperand, 4),
        ("-(filename)", Einval, InvalidStrOperand, 2),
        ("zap.zip.filename+1", Einval, InvalidStrOperand, 0),
        ("common_comm+1", Einval, InvalidStrOperand, 0),
        ("$who+1", Einval, InvalidStrOperand, 0),
        ("u16-$who", Einval, InvalidStrOperand, 4),
        ("$st+1", Einval, InvalidStrOperand, 0),
        ("common_stacktrace+1", Einval, InvalidStrOperand, 0),
        ("stack+1", Einval, InvalidStrOperand, 0),
        ("filename.log2+1", Einval, BadFieldModifier, 0),
        ("u16+odd", Enomem, UnsupportedField, 4),
        ("zip+zap", Einval, FieldNotFound, 0),
    ] {
        for before in ["vals=u64:keys=s32:qq=", "keys=s32:vals=", "keys="] {
            if before == "keys=" && kind == TooManySubexpr {
                continue;
            }

            let text = format!("{before}{expr}");
            let found = "hist:".len() + before.len() + at;

            world.refuses_at(&text, errno, (kind, found));
        }
    }
}

#[test]
fn b_13_long_expressions() {
    let name = "v".repeat(126);
    let mut world = World::new().with("zoo", "all", &format!("keys=u8:{name}=u8"));
    let fits = format!("${name}+${name}");

    assert_eq!(fits.len(), 255);
    world.accepts(
        &format!("keys=s32:x={fits}"),
        &line("", &format!(":x={fits}"), ""),
    );
    for before in ["x=", "vals=", "y=u8,x=u16+1,z="] {
        let text = format!("keys=s32:{before}1+{fits}");
        let at = "hist:".len() + text.find("1+$").expect("there");

        world.refuses_at(&text, E2big, (ExprTooLong, at));
    }
}

#[test]
fn h_exp_11_usecs_on_both_sides() {
    let mut world = world();

    for (typed, printed) in [
        ("common_timestamp.usecs-$ts0", "common_timestamp.usecs-$ts0"),
        (
            "common_timestamp.usecs-$ts0-$ts0",
            "common_timestamp.usecs-$ts0-$ts0",
        ),
        ("-(common_timestamp.usecs)", "-(common_timestamp.usecs)"),
        ("u8.usecs+u16.usecs", "u8.usecs+u16.usecs"),
        ("common_timestamp-u8", "common_timestamp-u8"),
    ] {
        world.accepts(
            &format!("keys=s32:x={typed}"),
            &line("", &format!(":x={printed}"), &clock(typed)),
        );
    }
    for expr in [
        "common_timestamp.usecs/1000",
        "common_timestamp-$ts0",
        "$ts0*2",
        "2*$ts0",
        "u8.usecs+u16",
        "common_timestamp.usecs-$ts0+1",
        "common_timestamp.usecs-$prio",
    ] {
        world.refuses_at(
            &format!("keys=s32:x={expr}"),
            Einval,
            (TimestampMismatch, 0),
        );
    }

    // What is computed from microseconds counts them, in other triggers too.
    let mut world = world.with(
        "zoo",
        "all",
        "keys=u8:lat=common_timestamp.usecs-$ts0:copy=$ts0",
    );

    world.refuses_at("keys=s32:x=$lat+1", Einval, (TimestampMismatch, 0));
    world.refuses_at("keys=s32:x=$copy+1", Einval, (TimestampMismatch, 0));
    world.accepts("keys=s32:x=$lat+$copy", &line("", ":x=$lat+$copy", ""));
}

#[test]
fn h_exp_code() {
    let mut world = world();
    let p = world
        .compile("keys=s32:x=u8*2-$prio/u16:y=1+2")
        .expect("compiles");
    let Op::Expr(code) = p.vars[0].field.op else {
        panic!("an expression");
    };
    let code: Vec<_> = code
        .of(&p.code)
        .iter()
        .map(|insn| match insn {
            Insn::Push(field) => match field.op {
                Op::Num { .. } => "field".to_string(),
                Op::Const(value) => value.to_string(),
                Op::Ref(n) => format!("${n}"),
                _ => "?".to_string(),
            },
            other => format!("{other:?}"),
        })
        .collect();

    assert_eq!(code, ["field", "2", "Mul", "$0", "field", "Div", "Sub"]);
    assert_eq!(p.vars[1].field.op, Op::Const(3));
    // Nothing is left of what was folded.
    assert_eq!(p.code.len(), 7);
}
