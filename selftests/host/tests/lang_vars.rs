// SPDX-License-Identifier: GPL-2.0

//! Variables, references, expressions, handlers and actions: what is accepted and how it prints,
//! what is refused and why.
//!
//! The names of the tests are ids of the behaviour inventory.

#![cfg(not(loom))]

mod lang_common;

use lang_common::{
    world::World,
    *, //
};
use rust_hist::{
    alloc::fail_after,
    error::{
        ErrKind::{
            self,
            *, //
        },
        Errno::{
            E2big,
            Edom,
            Eexist,
            Einval,
            Enomem, //
        },
        Refusal,
    },
    lang,
    program::{
        Cell,
        Do,
        Handler,
        Insn,
        Kind,
        Op,
        Program,
        Purpose, //
    },
};

/// A world with variables of two other events.
fn world() -> World {
    World::new()
        .with(
            "sched",
            "switch",
            "keys=next_pid:ts0=common_timestamp.usecs,who=next_comm,prio=next_prio,both=next_pid",
        )
        .with(
            "kmem",
            "kmalloc",
            "keys=common_pid:bytes=bytes_req,seven=7,zero=0,both=node,st=common_stacktrace",
        )
}

/// The line of a trigger with `keys=s32`, the values, and what follows them.
fn line(vals: &str, vars: &str, rest: &str) -> String {
    format!("keys=s32:vals=hitcount{vals}{vars}:sort=hitcount:size=2048{rest}")
}

#[test]
fn h_cmd_20_and_21_definitions() {
    let mut world = world();

    for (typed, printed) in [
        ("x=u8", "x=u8"),
        ("x=u8,y=u16", "x=u8,y=u16"),
        ("x=u8:y=u16", "x=u8,y=u16"),
        ("x=u8.hex", "x=u8.hex"),
        ("x=u64.sym-offset", "x=u64.sym-offset"),
        ("x=u64.syscall", "x=u64.syscall"),
        ("x=u8.usecs", "x=u8.usecs"),
        ("x=0x10", "x=16"),
        ("x=hitcount", "x=hitcount"),
        ("x=common_cpu", "x=common_cpu"),
        ("x=cpu", "x=cpu"),
        ("x=filename", "x=filename"),
        ("x=seven", "x=seven"),
        ("x=comm", "x=comm"),
        ("x=common_comm", "x=common_comm"),
        ("x=stack", "x=stack"),
        ("x=stack.stacktrace", "x=stack"),
        ("x=stacktrace", "x=common_stacktrace"),
        ("x=common_pid.execname", "x=common_pid.execname"),
        ("x=u8+1", "x=u8+1"),
        ("x=zoo.all.u8", "x=u8"),
        ("=u8", "=u8"),
        ("x y=u8", "x y=u8"),
        ("keys2=u8", "keys2=u8"),
        ("x=u8,keys=u16", "x=u8,keys=u16"),
        // What looks like a handler and has an equals sign defines a variable.
        ("onmax($x).save(a=u8", "onmax($x).save(a=u8"),
    ] {
        world.accepts(
            &format!("keys=s32:{typed}"),
            &line("", &format!(":{printed}"), ""),
        );
        world.accepts(
            &format!("{typed}:keys=s32"),
            &line("", &format!(":{printed}"), ""),
        );
    }

    for (text, errno, entries) in [
        (
            "keys=s32:x=u8,y",
            Einval,
            &[(MalformedAssignment, "y")] as &[_],
        ),
        ("keys=s32:x=u8,", Einval, &[(MalformedAssignment, "")]),
        ("keys=s32:x=u8,,z=u8", Einval, &[(MalformedAssignment, "")]),
        ("keys=s32:x=u8,y=", Einval, &[(FieldNotFound, "")]),
        ("keys=s32:y=u8,x=", Einval, &[(FieldNotFound, "")]),
        ("keys=s32:x=a=b", Einval, &[(FieldNotFound, "a=b")]),
        ("keys=s32:x=u8,x=u16", Einval, &[(DuplicateVar, "x")]),
        ("keys=s32:x=u8:x=u16", Einval, &[(DuplicateVar, "x")]),
        ("keys=s32:x=junk", Einval, &[(FieldNotFound, "junk")]),
        (
            "keys=s32:x=u8.log2",
            Einval,
            &[(BadFieldModifier, "u8.log2")],
        ),
        (
            "keys=s32:x=u8.buckets=5",
            Einval,
            &[(BadFieldModifier, "u8.buckets=5")],
        ),
        (
            "keys=s32:x=zoo.all.u8.log2",
            Einval,
            &[(BadFieldModifier, "zoo")],
        ),
        (
            "keys=s32:x=u8.percent",
            Einval,
            &[(BadFieldModifier, "percent")],
        ),
        (
            "keys=s32:x=u8.graph",
            Einval,
            &[(BadFieldModifier, "graph")],
        ),
        (
            "keys=s32:x=u8.execname",
            Einval,
            &[(BadFieldModifier, "execname")],
        ),
        ("keys=s32:x=5k", Einval, &[(ExpectNumber, "5k")]),
        // Handlers, definitions, values, variables, keys, sort keys.
        (
            "keys=junk:sort=foo:x=bar:vals=zap,u8.junk:y=u8,z:onmatch(a.b).c(dd)",
            Einval,
            // Of the event, the first place.
            &[(InvalidSubsysEvent, "b")],
        ),
        (
            "keys=junk:sort=foo:x=bar:vals=zap,u8.junk:y=u8,z",
            Einval,
            &[(MalformedAssignment, "z")],
        ),
        (
            "keys=junk:sort=foo:x=bar:vals=zip,u8.junk",
            Einval,
            &[(FieldNotFound, "zip")],
        ),
        (
            "keys=junk:sort=foo:x=bar",
            Einval,
            &[(FieldNotFound, "bar")],
        ),
        (
            "keys=junk:sort=foo:x=u8",
            Einval,
            &[(FieldNotFound, "junk")],
        ),
        ("keys=s32:sort=x:x=u8", Einval, &[(InvalidSortField, "x")]),
    ] {
        world.refuses(text, errno, entries);
    }
}

#[test]
fn h_cmd_20_at_most_sixteen() {
    let mut world = world();
    let tokens = |n: usize| (0..n).map(|i| format!(":v{i:02}=u8")).collect::<String>();
    let items = |n: usize| {
        (0..n)
            .map(|i| format!("v{i:02}=u8"))
            .collect::<Vec<_>>()
            .join(",")
    };

    assert!(world.compile(&format!("keys=s32{}", tokens(16))).is_ok());
    assert!(world.compile(&format!("keys=s32:{}", items(16))).is_ok());
    world.refuses(
        &format!("keys=s32{}", tokens(17)),
        Einval,
        &[(TooManyVars, "v16=u8")],
    );
    world.refuses(
        &format!("keys=s32:{}", items(17)),
        Einval,
        &[(TooManyVars, "v16")],
    );
    world.refuses(
        &format!("keys=s32:{}:w=u8", items(16)),
        Einval,
        &[(TooManyVars, "w")],
    );
    world.refuses(
        &format!("w=u8,ww=u8:keys=s32{}", tokens(15)),
        Einval,
        &[(TooManyVars, "v14")],
    );
}

#[test]
fn h_var_06_unique_on_the_event() {
    let mut world = world().with("zoo", "all", "keys=u8:mine=u16");

    world.refuses("keys=s32:mine=u8", Einval, &[(DuplicateVar, "mine")]);
    // On another event it is another variable.
    world.accepts("keys=s32:both=u8", &line("", ":both=u8", ""));

    // A command that changes a trigger finds the name taken by the trigger itself.
    let text = b"keys=u8:mine=u16:pause";
    let spec = lang::parse(b"hist", text).expect("parses");

    assert!(Program::compile(&spec, &mut world, Purpose::Change).is_ok());
    assert!(Program::compile(&spec, &mut world, Purpose::New).is_err());
}

#[test]
fn h_var_08_to_11_references() {
    let mut world = world().with("zoo", "all", "keys=u8:mine=u16");

    for (typed, printed) in [
        // Of the trigger itself: the field.
        (":x=u8,y=$x", ":x=u8,y=u8"),
        (":y=$x,x=u8.hex", ":y=u8.hex,x=u8.hex"),
        (":x=u8,y=$x+1", ":x=u8,y=u8+1"),
        (":x=u8,y=zoo.all.$x", ":x=u8,y=u8"),
        (":ts0=common_cpu,y=$ts0", ":ts0=common_cpu,y=common_cpu"),
        // Of another one.
        (":x=$prio", ":x=$prio"),
        (":x=sched.switch.$prio", ":x=sched.switch.$prio"),
        (
            ":x=sched.switch.$both,y=kmem.kmalloc.$both",
            ":x=sched.switch.$both,y=kmem.kmalloc.$both",
        ),
        (":x=$who", ":x=$who"),
        (":x=$st", ":x=$st"),
        (":x=$mine", ":x=$mine"),
        // One variable is shown as it was first called.
        (":x=$prio,y=sched.switch.$prio", ":x=$prio,y=$prio"),
        // One of the same name, but an expression, does not hide it.
        (":prio=u8+1,x=$prio", ":prio=u8+1,x=$prio"),
        (":x=$prio-1", ":x=$prio-1"),
        (":x=sched.switch.$prio-1", ":x=sched.switch.$prio-1"),
        (":x=-($prio)", ":x=-($prio)"),
    ] {
        world.accepts(
            &format!("keys=s32{typed}"),
            &line("", printed, &clock(typed)),
        );
    }
    world.accepts("keys=s32:vals=$prio", &line(",$prio", "", ""));
    world.accepts(
        "keys=s32:vals=$prio:sort=prio",
        "keys=s32:vals=hitcount,$prio:sort=$prio:size=2048",
    );
    world.accepts(
        "keys=s32:vals=sched.switch.$prio:sort=sched.switch.$prio.descending",
        "keys=s32:vals=hitcount,sched.switch.$prio:sort=sched.switch.$prio.descending:size=2048",
    );
    world.accepts("keys=s32:vals=$x:x=u8", &line(",u8", ":x=u8", ""));

    for text in [
        "keys=s32:x=$junk",
        "keys=s32:vals=$junk",
        "keys=s32:x=$junk+1",
        "keys=s32:x=u8+$junk",
        "keys=s32:x=sched.switch.$junk",
        "keys=s32:x=no.such.$junk",
        "keys=s32:junk=u8+1:x=$junk",
        "keys=s32:junk=$prio:x=$junk",
        "keys=s32:junk=-(u8):x=$junk",
    ] {
        let at = text.find("$junk").expect("refers") + "hist:".len();
        let name = "hist:".len() + text.find("junk").expect("names");

        world.refuses_at(text, Einval, &[(VarNotFound, name), (FieldNotFound, at)]);
    }
    world.refuses(
        "keys=s32:x=$both",
        Einval,
        &[
            (VarNotUnique, "both"),
            (VarNotFound, "both"),
            (FieldNotFound, "$both"),
        ],
    );
    // The name stands in the text before, too.
    world.refuses(
        "keys=s32:x=$x",
        Einval,
        &[(VarNotFound, "x"), (FieldNotFound, "$x")],
    );
    world.refuses("keys=s32:x=$", Einval, &[(FieldNotFound, "$")]);
    // A constant of the trigger itself would be a field of that name.
    world.refuses("keys=s32:x=77:y=$x", Einval, &[(FieldNotFound, "77")]);
    // A dot makes it a name with a modifier.
    world.refuses(
        "keys=s32:x=$prio.hex",
        Einval,
        &[(VarNotFound, "prio.hex"), (FieldNotFound, "$prio")],
    );
    world.refuses(
        "keys=s32:x=$prio.junk",
        Einval,
        &[(VarNotFound, "prio.junk"), (BadFieldModifier, "junk")],
    );
    world.refuses(
        "keys=s32:y=zoo.all.$x:x=s.t.$u",
        Einval,
        &[(BadFieldModifier, "t.$u")],
    );
}

/// What follows the size of a trigger with stamps.
fn clock(text: &str) -> String {
    if text.contains("common_timestamp") {
        ":clock=global".into()
    } else {
        String::new()
    }
}

#[test]
fn h_var_08_events_of_handlers_come_first() {
    let mut world = world();
    let refs = |world: &mut World, text: &str| {
        let program = compile_with(world, text, Purpose::Change).expect(text);

        program.refs().iter().map(|r| r.table()).collect::<Vec<_>>()
    };

    assert_eq!(
        refs(&mut world, "keys=s32:x=$both:onmatch(kmem.kmalloc).syn(u8)"),
        [1]
    );
    assert_eq!(
        refs(&mut world, "keys=s32:x=$both:onmatch(sched.switch).syn(u8)"),
        [0]
    );
    // The other event's, if theirs has none of the name.
    assert_eq!(
        refs(&mut world, "keys=s32:x=$prio:onmatch(kmem.kmalloc).syn(u8)"),
        [0]
    );
    for handlers in [
        "onmatch(kmem.kmalloc).syn(u8):onmatch(sched.switch).syn(u8)",
        "onmatch(kmem.kmalloc).syn(u8):onmatch(kmem.kmalloc).syn(u16)",
    ] {
        world.refuses(
            &format!("keys=s32:x=$both:{handlers}"),
            Einval,
            &[
                (VarNotUnique, "both"),
                (VarNotFound, "both"),
                (FieldNotFound, "$both"),
            ],
        );
    }
}

/// Compiles without settling what the handlers do.
fn compile_with(world: &mut World, text: &str, purpose: Purpose) -> Result<Program, Refusal> {
    Program::compile(&lang::parse(b"hist", text.as_bytes())?, world, purpose)
}

#[test]
fn h_var_13_at_most_sixteen_references() {
    let sixteen = (0..16).map(|i| format!("a{i:02}=u8")).collect::<Vec<_>>();
    let mut world = World::new()
        .with("zoo", "all", &format!("keys=u8:{}", sixteen.join(",")))
        .with("kmem", "kmalloc", "keys=node:b00=ptr,b01=ptr");

    let refs = |n: usize| (0..n).map(|i| format!("$a{i:02}")).collect::<Vec<_>>();
    // Four in an expression, as many expressions as it takes.
    let text = |names: &[String]| {
        names
            .chunks(4)
            .enumerate()
            .map(|(i, names)| format!(":x{i}={}", names.join("+")))
            .collect::<String>()
    };
    let mut names = refs(16);
    let program = world
        .compile(&format!("keys=s32{}", text(&names)))
        .expect("sixteen");

    assert_eq!(program.refs().len(), 16);
    assert!(program.refs().iter().all(|r| r.consumes()));

    // The same ones again are no more.
    assert!(world
        .compile(&format!("keys=s32{}:y=$a03", text(&names)))
        .is_ok());
    names.push("$b00".into());
    world.refuses(
        &format!("keys=s32{}", text(&names)),
        Einval,
        &[(VarNotFound, "b00"), (FieldNotFound, "$b00")],
    );
    names.pop();
    // Handlers count theirs, too; C says ENOMEM.
    world.refuses(
        &format!("keys=s32{}:onmax($x0).snapshot()", text(&names)),
        Enomem,
        &[(TooManyRefs, "$x0)")],
    );
    names.pop();
    assert!(world
        .compile(&format!(
            "keys=s32{}:onmax($x0).snapshot():onchange($x0).snapshot()",
            text(&names)
        ))
        .is_ok());
    world.refuses(
        &format!(
            "keys=s32{}:onmax($x0).snapshot():onchange($x1).snapshot()",
            text(&names)
        ),
        Enomem,
        &[(TooManyRefs, "$x1)")],
    );
}

#[test]
fn h_var_03_and_04_who_consumes() {
    let mut world = world();
    let consumes = |world: &mut World, text: &str| {
        let program = world
            .compile(&format!("keys=s32:{text}"))
            .unwrap_or_else(|refusal| panic!("{text}: {refusal:?}"));

        program
            .refs()
            .iter()
            .map(|r| r.consumes())
            .collect::<Vec<_>>()
    };

    assert_eq!(consumes(&mut world, "x=$prio"), [false]);
    assert_eq!(consumes(&mut world, "x=-($prio)"), [false]);
    assert_eq!(consumes(&mut world, "x=$prio+1"), [true]);
    assert_eq!(consumes(&mut world, "x=1+$prio"), [true]);
    assert_eq!(consumes(&mut world, "x=$prio:y=$prio+1"), [true]);
    assert_eq!(consumes(&mut world, "x=$prio+1:y=$prio"), [true]);
    assert_eq!(consumes(&mut world, "x=$prio:y=$bytes+1"), [false, true]);
    // A constant that is folded is read all the same.
    assert_eq!(consumes(&mut world, "x=$seven+1"), [true]);
}

#[test]
fn h_key_08_references_in_keys() {
    let mut world = world();

    world.accepts(
        "keys=$x:x=u8",
        "keys=u8:vals=hitcount:x=u8:sort=hitcount:size=2048",
    );
    world.accepts(
        "keys=$x+1:x=u8",
        "keys=u8+1:vals=hitcount:x=u8:sort=hitcount:size=2048",
    );
    world.refuses("keys=$prio", Einval, &[(InvalidRefKey, "$prio")]);
    world.refuses("keys=u8+$prio", Einval, &[(InvalidRefKey, "u8")]);
    world.refuses("keys=$prio+u8", Einval, &[(InvalidRefKey, "$prio")]);
    world.refuses("keys=-(u8+$prio)", Einval, &[(InvalidRefKey, "-(u8")]);
    world.refuses(
        "keys=sched.switch.$prio",
        Einval,
        &[(InvalidRefKey, "sched")],
    );
    // A constant is no reference once it is folded.
    world.accepts(
        "keys=$seven+1",
        "keys=8:vals=hitcount:sort=hitcount:size=2048",
    );
}

#[test]
fn h_key_09_no_strings_and_stacks_to_sum() {
    let mut world = world();

    world.refuses("keys=s32:vals=$who", Einval, &[(StringValue, "$who")]);
    world.refuses("keys=s32:vals=$st", Einval, &[(BadFieldModifier, "$st")]);
    world.refuses(
        "keys=s32:vals=sched.switch.$who",
        Einval,
        &[(StringValue, "sched")],
    );
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

    // Each with the caret of C, or of our own where it is silent.
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
            let own = "hist:".len() + before.len() + at;
            let found = match kind {
                MissingOperand | UnaryMinusParens | UnsupportedField => own,
                // The bytes from there on, as far as C's string goes.
                _ => first_place(&text, own, kind, expr, at),
            };

            world.refuses_at(&text, errno, &[(kind, found)]);
        }
    }
}

/// Where the caret for the piece that begins at `at` of `expr` stands: the first place of its bytes
/// in the whole command.
fn first_place(text: &str, own: usize, kind: ErrKind, expr: &str, at: usize) -> usize {
    let rest = &expr[at..];
    let piece = match kind {
        // All of it.
        UnaryMinusSubexpr => rest,
        // Up to a dot, an operator or a parenthesis.
        _ if rest.starts_with('(') => rest.split(['+', '-']).next().unwrap_or(rest),
        _ if rest.contains('.') && !rest.contains(".log2") => {
            rest.split('.').next().unwrap_or(rest)
        }
        _ => rest.split(['+', '-', '*', '/', ')']).next().unwrap_or(rest),
    };
    let whole = format!("hist:{text}");
    let found = whole.find(piece).expect("stands there");

    assert!(found <= own, "{text}");
    found
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

        world.refuses_at(&text, E2big, &[(ExprTooLong, at)]);
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
            &[(TimestampMismatch, 0)],
        );
    }

    // What is computed from microseconds counts them, in other triggers too.
    let mut world = world.with(
        "zoo",
        "all",
        "keys=u8:lat=common_timestamp.usecs-$ts0:copy=$ts0",
    );

    world.refuses_at("keys=s32:x=$lat+1", Einval, &[(TimestampMismatch, 0)]);
    world.refuses_at("keys=s32:x=$copy+1", Einval, &[(TimestampMismatch, 0)]);
    world.accepts("keys=s32:x=$lat+$copy", &line("", ":x=$lat+$copy", ""));
}

#[test]
fn h_exp_code() {
    let mut world = world();
    let p = world
        .compile("keys=s32:x=u8*2-$prio/u16:y=1+2")
        .expect("compiles");
    let Op::Expr(code) = p.vars()[0].field().op() else {
        panic!("an expression");
    };
    let code: Vec<_> = code
        .of(p.code())
        .iter()
        .map(|insn| match insn {
            Insn::Push(field) => match field.op() {
                Op::Num { .. } => "field".to_string(),
                Op::Const(value) => value.to_string(),
                Op::Ref(n) => format!("${n}"),
                _ => "?".to_string(),
            },
            other => format!("{other:?}"),
        })
        .collect();

    assert_eq!(code, ["field", "2", "Mul", "$0", "field", "Div", "Sub"]);
    assert_eq!(p.vars()[1].field().op(), Op::Const(3));
    // Nothing is left of what was folded.
    assert_eq!(p.code().len(), 7);
}

#[test]
fn cells_have_their_places() {
    let mut world = world();
    let cells = |world: &mut World, text: &str| {
        let p = world
            .compile(text)
            .unwrap_or_else(|refusal| panic!("{text}: {refusal:?}"));
        let cells: Vec<Cell> = p.vars().iter().map(|var| var.cell()).collect();

        (cells, p.aux_words())
    };
    let number = |at| Cell {
        at,
        words: 2,
        kind: Kind::Number,
    };
    let string = |at, words| Cell {
        at,
        words,
        kind: Kind::String,
    };

    assert_eq!(cells(&mut world, "keys=s32"), (vec![], 0));
    assert_eq!(cells(&mut world, "keys=common_pid.execname"), (vec![], 2));
    assert_eq!(
        cells(&mut world, "keys=s32:a=u8,b=u16"),
        (vec![number(0), number(2)], 4)
    );
    // Numbers first; a string has its bytes and a word more.
    assert_eq!(
        cells(&mut world, "keys=s32:a=seven,b=u16,c=filename,d=comm,e=u8"),
        (
            vec![
                string(4, 2),
                number(0),
                string(6, 33),
                string(39, 3),
                number(2)
            ],
            42
        )
    );
    assert_eq!(
        cells(&mut world, "keys=s32:a=common_pid.execname,b=u8"),
        (vec![string(4, 3), number(2)], 8)
    );
    assert_eq!(
        cells(&mut world, "keys=s32:a=$who,b=$st"),
        (
            vec![
                string(0, 3),
                Cell {
                    at: 3,
                    words: 32,
                    kind: Kind::Stack
                }
            ],
            36
        )
    );

    let p = world
        .compile(
            "keys=s32:x=u8:onmax($x).save(u8,seven,filename,common_stacktrace):\
             onchange($x).snapshot()",
        )
        .expect("compiles");
    let tracks: Vec<_> = p
        .actions()
        .iter()
        .map(|action| action.track().expect("tracks"))
        .collect();
    let saves: Vec<_> = p
        .saves()
        .iter()
        .map(|save| (save.at(), save.words()))
        .collect();

    assert_eq!(saves, [(0, 1), (1, 1), (2, 32), (34, 31)]);
    assert_eq!(tracks[0].at, 2);
    assert_eq!(tracks[0].row_words, 65);
    assert_eq!(tracks[0].words(), 2 + 3 * 65);
    // Even again.
    assert_eq!(tracks[1].at, 200);
    assert_eq!(tracks[1].words(), 2);
    assert_eq!(p.aux_words(), 202);
}

#[test]
fn what_others_see_of_a_variable() {
    let text = "keys=s32:a=s16:b=7:c=u8.usecs:d=filename:e=common_cpu:f=a.b.s8+u64";
    let p = World::new().compile(text).expect("compiles");
    let var = |name: &str| {
        p.export(name.as_bytes(), text.as_bytes(), 5)
            .unwrap_or_else(|| panic!("{name}"))
    };

    assert!(p.export(b"s32", text.as_bytes(), 0).is_none());
    assert!(p.export(b"", text.as_bytes(), 0).is_none());
    for (name, size, signed, type_name, usecs, constant) in [
        ("a", 2, true, "s16", false, None),
        ("b", 8, false, "u64", false, Some(7)),
        ("c", 1, false, "u8", true, None),
        ("d", 4, false, "__data_loc char[]", false, None),
        ("e", 4, false, "unsigned int", false, None),
        ("f", 1, true, "s8", false, None),
    ] {
        let var = var(name);

        assert_eq!(var.table, 5);
        assert_eq!(var.signed, signed, "{name}");
        if name != "d" {
            assert_eq!(var.size, size, "{name}");
        }
        assert_eq!(var.type_name, type_name.as_bytes(), "{name}");
        assert_eq!(var.usecs, usecs, "{name}");
        assert_eq!(var.constant, constant, "{name}");
    }
}

#[test]
fn h_mod_07_the_name_of_the_task() {
    let mut world = world();
    let p = world.accepts(
        "keys=s32:x=common_pid.execname",
        &line("", ":x=common_pid.execname", ""),
    );

    assert!(p.needs_comm());
    assert_eq!(p.vars()[0].field().op(), Op::EntryComm);
    assert_eq!(p.vars()[0].field().kind(), Kind::String);
    assert_eq!(p.vars()[0].field().size(), 256);

    // A copy of the variable's text is one more.
    let p = world.accepts(
        "keys=s32:x=common_pid.execname:y=$x",
        &line("", ":x=common_pid.execname,y=common_pid.execname", ""),
    );

    assert_eq!(p.vars()[1].field().op(), Op::EntryComm);
}

#[test]
fn h_cmd_22_handlers() {
    let mut world = world();
    let nine = ":onmax($x).snapshot()".repeat(9);

    assert!(world
        .compile(&format!(
            "keys=s32:x=u8{}",
            &nine["onmax($x).snapshot():".len()..]
        ))
        .is_ok());

    let text = format!("keys=s32:x=u8{nine}");
    let at = "hist:".len() + text.len() - ":onmax($x).snapshot()".len() + 1;

    world.refuses_at(&text, Einval, &[(TooManyActions, at)]);
}

#[test]
fn h_act_01_onmatch() {
    let mut world = world();

    for (handler, entries) in [
        (
            "onmatch(kmem.kmalloc",
            &[(NoClosingParen, "kmem.kmalloc")] as &[_],
        ),
        ("onmatch(", &[(NoClosingParen, "")]),
        ("onmatch(kmem)", &[(SubsysNotFound, "kmem")]),
        ("onmatch()", &[(SubsysNotFound, "")]),
        ("onmatch(kmem.junk)", &[(InvalidSubsysEvent, "junk")]),
        ("onmatch(junk.kmalloc)", &[(InvalidSubsysEvent, "kmalloc")]),
        ("onmatch(kmem.)", &[(InvalidSubsysEvent, "")]),
        ("onmatch(kmem.kmalloc)", &[(ActionNotFound, "")]),
        ("onmatch(kmem.kmalloc).", &[(ActionNotFound, "")]),
        ("onmatch(kmem.kmalloc).syn", &[(ActionNotFound, "")]),
        ("onmatch(kmem.kmalloc).syn(", &[(InvalidParam, "")]),
        ("onmatch(kmem.kmalloc).syn()", &[(InvalidParam, "")]),
        ("onmatch(kmem.kmalloc).syn(u8, )", &[(InvalidParam, "")]),
        ("onmatch(kmem.kmalloc).syn(u8,$)", &[(InvalidParam, "$")]),
        // C wants two bytes of each parameter.
        (
            "onmatch(kmem.kmalloc).syn(u)",
            &[(SynthEventNotFound, "syn")],
        ),
        (
            "onmatch(kmem.kmalloc).trace(z)",
            &[(SynthEventNotFound, "z")],
        ),
        (
            "onmatch(kmem.kmalloc).save(u8)",
            &[(ActionMismatch, "save")],
        ),
        ("onmatch(kmem.kmalloc).save()", &[(InvalidParam, "")]),
        (
            "onmatch(kmem.kmalloc).snapshot()",
            &[(ActionMismatch, "snapshot")],
        ),
        ("onmatch(kmem.kmalloc).snapshot(", &[(NoClosingParen, "")]),
        (
            "onmatch(kmem.kmalloc).snapshot(foo",
            &[(NoClosingParen, "foo")],
        ),
        // There is no synthetic event of any name.
        (
            "onmatch(kmem.kmalloc).syn(u8)",
            &[(SynthEventNotFound, "syn")],
        ),
        (
            "onmatch(kmem.kmalloc).trace(synth,u8)",
            &[(SynthEventNotFound, "synth")],
        ),
        (
            "onmatch(kmem.kmalloc).trace(synth)",
            &[(SynthEventNotFound, "synth")],
        ),
        (
            "onmatch(kmem.kmalloc).tracer(u16,u8)",
            &[(SynthEventNotFound, "u16")],
        ),
    ] {
        world.refuses(&format!("keys=s32:{handler}"), Einval, entries);
    }
    // That comes last.
    world.refuses(
        "keys=s32:onmatch(kmem.kmalloc).syn(u8):sort=junk",
        Einval,
        &[(InvalidSortField, "junk")],
    );
    // A removal does not get that far.
    for text in [
        "keys=s32:onmatch(kmem.kmalloc).syn(u8)",
        "keys=s32:onmatch(kmem.kmalloc).trace(synth,$u8,a.b.c)",
        "keys=s32:onmax($junk).save(junk)",
    ] {
        assert!(compile_with(&mut world, text, Purpose::Change).is_ok());
    }
}

#[test]
fn h_act_03_and_04_tracked_variables() {
    let mut world = world();

    for handler in ["onmax", "onchange"] {
        for (typed, printed) in [
            ("($x).save(u8,u16)", "($x).save(u8,u16)"),
            ("($x).save( u8 , u16 )", "($x).save(u8,u16)"),
            ("($x).save(u8,u16", "($x).save(u8,u16)"),
            ("($x).save(u8)junk", "($x).save(u8)"),
            ("($x)junk.save(u8)", "($x).save(u8)"),
            ("($x).savefoo(u8)", "($x).savefoo(u8)"),
            ("($x).snapshot()", "($x).snapshot()"),
            ("($x).snapshot(junk)", "($x).snapshot()"),
            ("($x).save(u8.hex,u16.log2)", "($x).save(u8.hex,u16.log2)"),
            ("($x).save($prio)", "($x).save($prio)"),
            (
                "($x).save(sched.switch.$prio)",
                "($x).save(sched.switch.$prio)",
            ),
            ("($x).save(zap.zip.u8)", "($x).save(zap.zip.u8)"),
            ("($x).save(55,0x10)", "($x).save(55,0x10)"),
            ("($x).save(filename,comm)", "($x).save(filename,comm)"),
            ("($x).save(u8,u8)", "($x).save(u8,u8)"),
            (
                "($x).save(common_pid.execname)",
                "($x).save(common_pid.execname)",
            ),
            ("($y).save(u8)", "($y).save(u8)"),
        ] {
            let p = world.accepts(
                &format!("keys=s32:x=u8:y=$prio+1:{handler}{typed}"),
                &line("", ":x=u8,y=$prio+1", &format!(":{handler}{printed}")),
            );
            let expected = usize::from(typed.starts_with("($y"));

            match p.actions()[0].handler() {
                Handler::Max { var, .. } if handler == "onmax" => {
                    assert_eq!(usize::from(var), expected);
                }
                Handler::Change { var, .. } if handler == "onchange" => {
                    assert_eq!(usize::from(var), expected);
                }
                other => panic!("{other:?}"),
            }
        }
        for (typed, entries) in [
            ("(x).save(u8)", &[(OnxNotVar, "x")] as &[_]),
            ("().save(u8)", &[(OnxNotVar, "")]),
            ("($junk).save(u8)", &[(OnxVarNotFound, "junk")]),
            ("($prio).save(u8)", &[(OnxVarNotFound, "prio")]),
            ("($).save(u8)", &[(OnxVarNotFound, "")]),
            ("($x)", &[(ActionNotFound, "")]),
            ("($x).", &[(ActionNotFound, "")]),
            ("($x).save", &[(ActionNotFound, "")]),
            ("($x).save(", &[(InvalidParam, "")]),
            ("($x).save()", &[(InvalidParam, "")]),
            ("($x).save(u8,)", &[(InvalidParam, "")]),
            (
                "($x).save(u)",
                &[
                    (FieldNotFound, "u"),
                    (FieldVarParseFail, "u"),
                    (FieldVarCreateFail, "u"),
                ],
            ),
            ("($x).snapshot(", &[(NoClosingParen, "")]),
            ("($x).syn(u8)", &[(SynthEventNotFound, "syn")]),
            ("($junk).syn(u8)", &[(OnxVarNotFound, "junk")]),
            (
                "($x).save(junk)",
                &[
                    (FieldNotFound, "junk"),
                    (FieldVarParseFail, "junk"),
                    (FieldVarCreateFail, "junk"),
                ],
            ),
            (
                "($x).save(u8.percent)",
                &[
                    (BadFieldModifier, "percent"),
                    (FieldVarParseFail, "u8.percent"),
                    (FieldVarCreateFail, "u8.percent"),
                ],
            ),
            (
                "($x).save($junk)",
                &[
                    (VarNotFound, "junk"),
                    (FieldNotFound, "$junk"),
                    (FieldVarParseFail, "$junk"),
                    (FieldVarCreateFail, "$junk"),
                ],
            ),
            // The trigger's own definitions are forgotten by then.
            (
                "($x).save($x)",
                &[
                    (VarNotFound, "x"),
                    (FieldNotFound, "$x"),
                    (FieldVarParseFail, "$x"),
                    (FieldVarCreateFail, "$x"),
                ],
            ),
            (
                "($x).save($both)",
                &[
                    (VarNotUnique, "both"),
                    (VarNotFound, "both"),
                    (FieldNotFound, "$both"),
                    (FieldVarParseFail, "$both"),
                    (FieldVarCreateFail, "$both"),
                ],
            ),
            (
                "($x).save(zap.zip.junk)",
                &[
                    (FieldNotFound, "junk"),
                    (FieldVarParseFail, "zap"),
                    (FieldVarCreateFail, "zap"),
                ],
            ),
            (
                "($x).save(5junk)",
                &[
                    (ExpectNumber, "5junk"),
                    (FieldVarParseFail, "5junk"),
                    (FieldVarCreateFail, "5junk"),
                ],
            ),
            (
                "($x).save(u8+u16)",
                &[
                    (FieldNotFound, "u8+u16"),
                    (FieldVarParseFail, "u8+u16"),
                    (FieldVarCreateFail, "u8+u16"),
                ],
            ),
            // A variable of that name.
            (
                "($x).save(u8,u16)",
                &[(VarCreateFindFail, "u16"), (FieldVarCreateFail, "u16")],
            ),
        ] {
            let other = if typed == "($x).save(u8,u16)" {
                "u16=u32:"
            } else {
                ""
            };

            world.refuses(
                &format!("keys=s32:x=u64:{other}{handler}{typed}"),
                Einval,
                entries,
            );
        }
        // Without a parenthesis, where C says nothing.
        let text = format!("keys=s32:x=u8:{handler}($x");

        world.refuses_at(
            &text,
            Einval,
            &[(NoClosingParen, "hist:".len() + text.len() - 2)],
        );
        world.refuses(
            &format!("keys=s32:x=filename:{handler}($x).save(u8)"),
            Einval,
            &[(OnxNotNumber, "$x")],
        );
        let text = format!("keys=s32:x=u8:{handler}($x).save(odd)");
        let at = "hist:".len() + text.find("odd").expect("there");

        world.refuses_at(
            &text,
            Enomem,
            &[
                (UnsupportedField, at),
                (FieldVarParseFail, at),
                (FieldVarCreateFail, at),
            ],
        );
        // The names under which C keeps the tracked value.
        let hidden = if handler == "onmax" {
            "__max"
        } else {
            "__change"
        };

        world.refuses_at(
            &format!("keys=s32:x=u8:{hidden}=u8:{handler}($x).save(u8)"),
            Einval,
            &[(OnxVarCreateFail, 0)],
        );
    }
    world.refuses_at(
        "keys=s32:x=u8:onmax($x).save(u8):onchange($x).save(u16)",
        Eexist,
        &[(TooManySaveActions, 0)],
    );
    // Several handlers.
    let p = world.accepts(
        "keys=s32:x=u8:onmax($x).save(u8):onchange($x).snapshot():onmax($x).snapshot() if u8",
        &line(
            "",
            ":x=u8",
            ":onmax($x).save(u8):onchange($x).snapshot():onmax($x).snapshot() if u8",
        ),
    );

    assert!(matches!(
        p.actions()[0].act(),
        Do::Save { first: 0, len: 1 }
    ));
    assert!(matches!(p.actions()[1].act(), Do::Snapshot));
}

#[test]
fn h_act_12_at_most_64_parameters() {
    let mut world = world();
    let params = |n: usize| vec!["u8"; n].join(",");

    world.refuses_at(
        &format!("keys=s32:x=u8:onmax($x).save({})", params(65)),
        Einval,
        &[(TooManyParams, 0)],
    );
    // There are not that many variables.
    world.refuses(
        &format!("keys=s32:x=u8:onmax($x).save({})", params(64)),
        Einval,
        &[(VarCreateFindFail, "u8"), (FieldVarCreateFail, "u8")],
    );
    world.refuses(
        &format!("keys=s32:onmatch(kmem.kmalloc).syn({})", params(64)),
        Einval,
        &[(SynthEventNotFound, "syn")],
    );
    world.refuses(
        &format!("keys=s32:onmatch(kmem.kmalloc).trace(syn,{})", params(64)),
        Einval,
        &[(SynthEventNotFound, "syn")],
    );
    world.refuses_at(
        &format!("keys=s32:onmatch(kmem.kmalloc).trace(syn,{})", params(65)),
        Einval,
        &[(TooManyParams, 0)],
    );
}

#[test]
fn h_var_13_hidden_variables_count() {
    let mut world = world();
    let vars = |n: usize| (0..n).map(|i| format!(":v{i:02}=u16")).collect::<String>();

    assert!(world
        .compile(&format!("keys=s32{}:onmax($v00).snapshot()", vars(15)))
        .is_ok());
    world.refuses_at(
        &format!("keys=s32{}:onmax($v00).snapshot()", vars(16)),
        Einval,
        &[(OnxVarCreateFail, 0)],
    );
    world.refuses_at(
        &format!(
            "keys=s32{}:onmax($v00).snapshot():onchange($v00).snapshot()",
            vars(15)
        ),
        Einval,
        &[(OnxVarCreateFail, 0)],
    );
    assert!(world
        .compile(&format!("keys=s32{}:onmax($v00).save(u8)", vars(14)))
        .is_ok());
    world.refuses(
        &format!("keys=s32{}:onmax($v00).save(u8,u64)", vars(14)),
        Einval,
        &[(VarCreateFindFail, "u64"), (FieldVarCreateFail, "u64")],
    );
    world.refuses_at(
        &format!(
            "keys=s32{}:onmax($v00).save(u8):onchange($v00).snapshot()",
            vars(14)
        ),
        Einval,
        &[(OnxVarCreateFail, 0)],
    );
}

/// Whichever allocation fails, the command is refused for lack of memory, and for nothing else.
#[test]
fn every_allocation_may_fail() {
    let mut world = world();

    for text in [
        "keys=s32:vals=u8",
        "name=foo:keys=s32,u8+u16,common_stacktrace:vals=$prio,2*3+u8:sort=u8+u16:x=$bytes-1,y=$s,\
         k=7*6,s=filename,c=$who:onmax($x).save(u8,filename,$prio):onchange($x).snapshot():\
         clock=mono:ts=common_timestamp.usecs-$ts0 if u8 > 1",
        "keys=s32:x=u8:z=sched.switch.$prio+kmem.kmalloc.$bytes*$seven/u16:onmax($z).save(u16)",
    ] {
        let expected = line_of(&world.compile(text).expect(text), text.as_bytes());
        let mut failed = 0;

        loop {
            fail_after(Some(failed));

            let result = world.compile(text);

            fail_after(None);
            match result {
                Ok(program) => {
                    assert_eq!(line_of(&program, text.as_bytes()), expected);
                    break;
                }
                Err(refusal) => assert_eq!(refusal, Refusal::silent(Enomem), "{text}: {failed}"),
            }
            failed += 1;
        }
        assert!(failed > 2, "{text}");
    }

    // A text that is wrong stays wrong, or there is no memory to find out.
    for text in [
        "keys=s32:x=u8:onmax($x).save(u8,junk)",
        "keys=s32:x=$prio+$both",
        "keys=s32:x=$who+1",
        "keys=s32:x=u8:onmax($x).save(u8):onmax($x).save(u8)",
    ] {
        let expected = world.compile(text).map(|_| ()).expect_err(text);

        for failed in 0.. {
            fail_after(Some(failed));

            let refusal = world.compile(text).map(|_| ()).expect_err(text);

            fail_after(None);
            if refusal == expected {
                break;
            }
            assert_eq!(refusal, Refusal::silent(Enomem), "{text}: {failed}");
        }
    }
}
