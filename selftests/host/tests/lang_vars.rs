// SPDX-License-Identifier: GPL-2.0

//! Variables and references: what is accepted and how it prints, what is refused and why.
//!
//! The names of the tests are ids of the behaviour inventory.

#![cfg(not(loom))]

mod lang_common;

use lang_common::{
    vars::*,
    world::World,
    *, //
};
use rust_hist::{
    alloc::fail_after,
    error::{
        ErrKind::*,
        Errno::{
            Einval,
            Enomem, //
        },
        Refusal, //
    },
    lang,
    program::{
        Cell,
        Kind,
        Op,
        Program,
        Purpose, //
    }, //
};

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

    for (text, errno, entry) in [
        ("keys=s32:x=u8,y", Einval, (MalformedAssignment, "u8,^y")),
        ("keys=s32:x=u8,", Einval, (MalformedAssignment, "u8,^")),
        (
            "keys=s32:x=u8,,z=u8",
            Einval,
            (MalformedAssignment, "u8,^,"),
        ),
        ("keys=s32:x=u8,y=", Einval, (FieldNotFound, "y=^")),
        ("keys=s32:y=u8,x=", Einval, (FieldNotFound, "x=^")),
        ("keys=s32:x=a=b", Einval, (FieldNotFound, "a=b")),
        ("keys=s32:x=u8,x=u16", Einval, (DuplicateVar, "u8,^x")),
        ("keys=s32:x=u8:x=u16", Einval, (DuplicateVar, "u8:^x")),
        ("keys=s32:x=junk", Einval, (FieldNotFound, "junk")),
        ("keys=s32:x=u8.log2", Einval, (BadFieldModifier, "u8.log2")),
        (
            "keys=s32:x=u8.buckets=5",
            Einval,
            (BadFieldModifier, "u8.buckets=5"),
        ),
        (
            "keys=s32:x=zoo.all.u8.log2",
            Einval,
            (BadFieldModifier, "zoo"),
        ),
        (
            "keys=s32:x=u8.percent",
            Einval,
            (BadFieldModifier, "percent"),
        ),
        ("keys=s32:x=u8.graph", Einval, (BadFieldModifier, "graph")),
        (
            "keys=s32:x=u8.execname",
            Einval,
            (BadFieldModifier, "execname"),
        ),
        ("keys=s32:x=5k", Einval, (ExpectNumber, "5k")),
        // Handlers, definitions, values, variables, keys, sort keys.
        (
            "keys=junk:sort=foo:x=bar:vals=zap,u8.junk:y=u8,z:onmatch(a.b).c(dd)",
            Einval,
            (InvalidSubsysEvent, "a.^b"),
        ),
        (
            "keys=junk:sort=foo:x=bar:vals=zap,u8.junk:y=u8,z",
            Einval,
            (MalformedAssignment, "u8,^z"),
        ),
        (
            "keys=junk:sort=foo:x=bar:vals=zip,u8.junk",
            Einval,
            (FieldNotFound, "zip"),
        ),
        ("keys=junk:sort=foo:x=bar", Einval, (FieldNotFound, "bar")),
        ("keys=junk:sort=foo:x=u8", Einval, (FieldNotFound, "junk")),
        (
            "keys=s32:sort=x:x=u8",
            Einval,
            (InvalidSortField, "sort=^x"),
        ),
    ] {
        world.refuses(text, errno, entry);
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
        (TooManyVars, "v16=u8"),
    );
    world.refuses(
        &format!("keys=s32:{}", items(17)),
        Einval,
        (TooManyVars, "v16"),
    );
    world.refuses(
        &format!("keys=s32:{}:w=u8", items(16)),
        Einval,
        (TooManyVars, "w"),
    );
    world.refuses(
        &format!("w=u8,ww=u8:keys=s32{}", tokens(15)),
        Einval,
        (TooManyVars, "v14"),
    );
}

#[test]
fn h_var_06_unique_on_the_event() {
    let mut world = world().with("zoo", "all", "keys=u8:mine=u16");

    world.refuses("keys=s32:mine=u8", Einval, (DuplicateVar, "mine"));
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
        // Of the trigger itself: an expression, a constant, another variable.
        (":prio=u8+1,x=$prio", ":prio=u8+1,x=$prio"),
        (":a=u8+1,b=$a*2,c=$b-$a", ":a=u8+1,b=$a*2,c=$b-$a"),
        (":a=u8+1,b=zoo.all.$a", ":a=u8+1,b=zoo.all.$a"),
        (":a=-(u8),b=-($a)", ":a=-(u8),b=-($a)"),
        (":a=$prio,b=$a+1", ":a=$prio,b=$a+1"),
        (":a=77,b=$a", ":a=77,b=$a"),
        (":a=77,b=$a+1", ":a=77,b=78"),
        (":q.q=u8+1,b=$q.q-1", ":q.q=u8+1,b=$q.q-1"),
        (":a=u8+1,b=$a.log2+1", ":a=u8+1,b=$a.log2+1"),
        (":a=u8,b=$a.hex", ":a=u8,b=$a.hex"),
        // What comes later is not known yet.
        (":x=$prio,prio=u8+1", ":x=$prio,prio=u8+1"),
        (":prio=$prio", ":prio=$prio"),
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
        "keys=s32:x=$junk:junk=u8+1",
        // Strings and stacks are no numbers of the hit.
        "keys=s32:junk=$who:x=$junk",
        "keys=s32:junk=$st:vals=$junk",
    ] {
        let name = "hist:$".len() + text.find("$junk").expect("names");

        world.refuses_at(text, Einval, (VarNotFound, name));
    }
    world.refuses("keys=s32:x=$both", Einval, (VarNotUnique, "both"));
    // The name stands in the text before, too.
    world.refuses("keys=s32:x=$x", Einval, (VarNotFound, "$^x"));
    world.refuses("keys=s32:x=$", Einval, (FieldNotFound, "$"));
    // A constant of the trigger itself that comes later would be a field of that name.
    world.refuses("keys=s32:y=$x:x=77", Einval, (FieldNotFound, "77"));
    for modifier in ["usecs", "execname", "stacktrace", "percent"] {
        world.refuses(
            &format!("x=u8+1:keys=$x.{modifier}"),
            Einval,
            (BadFieldModifier, &format!("$x.^{modifier}")),
        );
    }
    for modifier in ["log2", "sym", "syscall"] {
        world.refuses(
            &format!("x=u8+1:keys=s32:vals=$x.{modifier}"),
            Einval,
            (BadFieldModifier, &format!("$x.{modifier}")),
        );
    }
    // A dot makes it a name with a modifier.
    world.refuses("keys=s32:x=$prio.hex", Einval, (VarNotFound, "prio.hex"));
    world.refuses("keys=s32:x=$prio.junk", Einval, (VarNotFound, "prio.junk"));
    world.refuses(
        "keys=s32:y=zoo.all.$x:x=s.t.$u",
        Einval,
        (BadFieldModifier, "t.$u"),
    );
}

#[test]
fn h_var_11_keys_and_values_name_numbers_of_the_hit() {
    let mut world = world().with("zoo", "all", "keys=u8:mine=u16,mine2=u32");
    let tail = ":sort=hitcount:size=2048";

    for (typed, printed) in [
        // A plain field: C's text.
        ("keys=$x:vals=$x:x=u8", "keys=u8:vals=hitcount,u8:x=u8"),
        ("keys=$x:x=u8+1", "keys=$x:vals=hitcount:x=u8+1"),
        ("keys=u8:vals=$x:x=u8+1", "keys=u8:vals=hitcount,$x:x=u8+1"),
        (
            "keys=zoo.all.$x:x=u8+1",
            "keys=zoo.all.$x:vals=hitcount:x=u8+1",
        ),
        (
            "keys=$x.log2,$x:x=u8+1",
            "keys=$x.log2,$x:vals=hitcount:x=u8+1",
        ),
        (
            "keys=$x.buckets=5:x=u8",
            "keys=$x.buckets=5:vals=hitcount:x=u8",
        ),
        (
            "keys=u8:vals=$x.hex,$x.percent:x=s16-1",
            "keys=u8:vals=hitcount,$x.hex,$x.percent:x=s16-1",
        ),
        ("keys=$x+1:x=u8*2", "keys=$x+1:vals=hitcount:x=u8*2"),
        (
            "keys=u8:vals=$y:x=$prio,y=$x+1",
            "keys=u8:vals=hitcount,$y:x=$prio,y=$x+1",
        ),
        ("keys=u8:vals=$x:x=7", "keys=u8:vals=hitcount,$x:x=7"),
        // Another trigger's comes first in values, as C knows no other.
        (
            "keys=u8:vals=$prio:prio=s16+1",
            "keys=u8:vals=hitcount,$prio:prio=s16+1",
        ),
        // As long as it is stored nowhere, its name may be that of a variable of another trigger of the event.
        ("keys=$mine:mine=u8+1", "keys=$mine:vals=hitcount:mine=u8+1"),
        (
            "keys=u8:vals=$mine:mine=u8+1",
            "keys=u8:vals=hitcount,$mine:mine=u8+1",
        ),
    ] {
        world.accepts(typed, &format!("{printed}{tail}"));
    }
    for (sort, printed) in [
        ("x", "$x"),
        ("$x", "$x"),
        ("x.descending", "$x.descending"),
        ("u8*2", "u8*2"),
    ] {
        world.accepts(
            &format!("keys=u8:vals=$x,u8*2:x=u8+1:sort={sort}"),
            &format!("keys=u8:vals=hitcount,$x,u8*2:x=u8+1:sort={printed}:size=2048"),
        );
    }

    let refs = |world: &mut World, text| world.compile(text).expect("accepted").refs.len();

    assert_eq!(refs(&mut world, "keys=u8:vals=$prio:prio=s16+1"), 1);
    assert_eq!(refs(&mut world, "keys=u8:vals=$mine:mine=s16+1"), 0);
    assert_eq!(refs(&mut world, "keys=u8:prio=s16+1,x=$prio"), 0);
    // C looks elsewhere for the name of a variable that is but a reference.
    assert_eq!(refs(&mut world, "keys=u8:prio=$bytes,x=$prio+1"), 2);
    assert_eq!(refs(&mut world, "keys=u8:new=$prio,x=$new+1"), 1);
    // Not of that name.
    assert_eq!(refs(&mut world, "keys=u8:vals=$prio:pri=s16+1"), 1);

    // No key can be known before the entries that have the variables of other triggers.
    for text in [
        "keys=$x:x=$prio",
        "keys=$x:x=u8-$prio",
        "keys=$y+1:x=u8-$prio,y=$x*2",
    ] {
        let seen = text
            .split(':')
            .next()
            .and_then(|keys| keys.strip_prefix("keys="))
            .expect("keys");
        let seen = seen.trim_end_matches("+1");

        world.refuses(text, Einval, (InvalidRefKey, seen));
    }
    // Two columns cannot have one name.
    world.refuses(
        "keys=u8:vals=$u8:u8=s16+1",
        Einval,
        (AmbiguousColumn, "$^u8:"),
    );
    world.refuses(
        "keys=s16:vals=u8,u8,u8,u8,u8,u8,u8,zoo.all.$u16,u16:u16=s16+1",
        Einval,
        (TooManyVals, "u16:"),
    );
    // A variable that something else names is stored.
    for text in [
        "keys=$mine:mine=u8+1,other=$mine",
        "keys=$mine:mine=u8+1:onmax($mine).save(u8)",
        "mine=u8+1:keys=u8",
        "mine=u8:keys=$mine",
    ] {
        world.refuses(text, Einval, (DuplicateVar, "mine=u8"));
    }
    // One that is stored nowhere does not hide another one.
    world.refuses(
        "keys=$mine:mine=u8+1,other=u8+2,mine2=u8+3",
        Einval,
        (DuplicateVar, "mine2"),
    );
    // What C finds first is said first.
    world.refuses("mine=u8+1:keys=junk", Einval, (DuplicateVar, "mine"));
    for expr in ["u8+u8+u8+u8+u8", "u8+junk", "(u8+1"] {
        let text = format!("keys=s32:other=u8,mine={expr}");
        world.refuses(&text, Einval, (DuplicateVar, "mine"));
    }
    world.refuses(
        "mine=u8+1:keys=$mine:mine=u8+2",
        Einval,
        (DuplicateVar, "$mine:^mine"),
    );
}

#[test]
fn what_only_keys_and_values_name_is_stored_nowhere() {
    let stored = |text: &str| {
        let program = world().synth("num u8 a").compile(text).expect(text);
        let names = program.vars.iter().filter(|var| var.is_stored());
        let names =
            names.map(|var| String::from_utf8_lossy(var.name.of(text.as_bytes())).into_owned());

        (names.collect::<Vec<_>>().join(","), program.aux_words())
    };
    let is = |text, names: &str, words| assert_eq!(stored(text), (names.into(), words), "{text}");

    is("keys=u8:x=u8+1", "x", 2);
    is("keys=u8:vals=$x:x=u8+1", "", 0);
    is("keys=$x:x=u8+1", "", 0);
    is("keys=$x:x=u8+1,y=u16", "y", 2);
    // Others may name a field that has a name, as in C.
    is("keys=$x:x=u8", "x", 2);
    is("keys=$x.log2:x=u8", "x", 2);
    // A chain of which only the end is a column.
    is("keys=$z:x=u8+1,y=$x*2,z=$y-$x", "", 0);
    is("keys=$y:x=u8+1,y=$x*2,z=$y-$x", "x,y,z", 6);
    is("keys=$y:x=u8+1,y=$x*2,z=$x*3", "x,z", 4);
    is("keys=$x:x=u8+1:onmax($x).save(u16)", "x", 8);
    is("keys=$x:x=u8+1:onchange($x,5).save(u16)", "x", 8);
    is("keys=$x:x=u8+1:onover($x,5,2).save(u16)", "x", 8);
    is("keys=$x:x=u8+1,y=u16:onmax($y).num($x)", "x,y", 6);
    is("keys=$x:x=u8+1,y=u16:onmax($y).num(zoo.all.$x)", "x,y", 6);

    // Nobody else sees it.
    let mut world = world().with(
        "sched",
        "switch",
        "keys=next_pid:vals=$cost:cost=next_prio*2",
    );

    world.refuses("keys=s32:x=$cost", Einval, (VarNotFound, "cost"));
}

#[test]
fn a_removal_means_the_variable_that_the_trigger_had_when_it_was_made() {
    let text = "keys=s32:vals=$cost:cost=u8*2";
    let mut world = world();
    let first = world.compile(text).expect("the trigger's own");
    let mut world = world.with("sched", "switch", "keys=next_pid:cost=next_prio");
    let other = compile_with(&mut world, text, Purpose::Change).expect("the other one's");

    assert_eq!((first.refs.len(), other.refs.len()), (0, 1));
    assert!(first.same_trigger(text.as_bytes(), &other, text.as_bytes()));
    assert!(other.same_trigger(text.as_bytes(), &first, text.as_bytes()));
}

#[test]
fn h_var_08_events_of_handlers_come_first() {
    let mut world = world();
    let refs = |world: &mut World, text: &str| {
        let program = compile_with(world, text, Purpose::Change).expect(text);

        program.refs.iter().map(|r| r.table).collect::<Vec<_>>()
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
    world.refuses(
        "keys=s32:x=$both:onmatch(kmem.kmalloc).syn(u8):onmatch(sched.switch).syn(u8)",
        Einval,
        (VarNotUnique, "both"),
    );
    // To C the same event is another one the second time.
    assert_eq!(
        refs(
            &mut world,
            "keys=s32:x=$both:onmatch(kmem.kmalloc).syn(u8):onmatch(kmem.kmalloc).syn(u16)"
        ),
        [1]
    );
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

    assert_eq!(program.refs.len(), 16);
    assert!(program.refs.iter().all(|r| r.consume));

    // The same ones again are no more.
    assert!(world
        .compile(&format!("keys=s32{}:y=$a03", text(&names)))
        .is_ok());
    names.push("$b00".into());
    world.refuses(
        &format!("keys=s32{}", text(&names)),
        Einval,
        (VarNotFound, "b00"),
    );
    names.pop();
    // Handlers count theirs, too; C says ENOMEM.
    world.refuses(
        &format!("keys=s32{}:onmax($x0).snapshot()", text(&names)),
        Enomem,
        (TooManyRefs, "$x0)"),
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
        (TooManyRefs, "$x1)"),
    );
}

#[test]
fn h_var_03_and_04_who_consumes() {
    let mut world = world();
    let consumes = |world: &mut World, text: &str| {
        let program = world
            .compile(&format!("keys=s32:{text}"))
            .unwrap_or_else(|refusal| panic!("{text}: {refusal:?}"));

        program.refs.iter().map(|r| r.consume).collect::<Vec<_>>()
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
    world.refuses("keys=$prio", Einval, (InvalidRefKey, "$prio"));
    world.refuses("keys=u8+$prio", Einval, (InvalidRefKey, "u8"));
    world.refuses("keys=$prio+u8", Einval, (InvalidRefKey, "$prio"));
    world.refuses("keys=-(u8+$prio)", Einval, (InvalidRefKey, "-(u8"));
    world.refuses("keys=sched.switch.$prio", Einval, (InvalidRefKey, "sched"));
    // A constant is no reference once it is folded.
    world.accepts(
        "keys=$seven+1",
        "keys=8:vals=hitcount:sort=hitcount:size=2048",
    );
}

#[test]
fn h_key_09_no_strings_and_stacks_to_sum() {
    let mut world = world();

    world.refuses("keys=s32:vals=$who", Einval, (StringValue, "$who"));
    world.refuses("keys=s32:vals=$st", Einval, (BadFieldModifier, "$st"));
    world.refuses(
        "keys=s32:vals=sched.switch.$who",
        Einval,
        (StringValue, "sched"),
    );
}

#[test]
fn cells_have_their_places() {
    let mut world = world();
    let cells = |world: &mut World, text: &str| {
        let p = world
            .compile(text)
            .unwrap_or_else(|refusal| panic!("{text}: {refusal:?}"));
        let cells: Vec<Cell> = p.vars.iter().map(|var| var.cell).collect();

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
        .actions
        .iter()
        .map(|action| action.track.expect("tracks"))
        .collect();
    let saves: Vec<_> = p
        .saves
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
        let field = var.var.field;
        let shown = var.definer.name_of(field.type_name, var.text);
        let value = match field.op {
            Op::Const(value) => Some(value),
            _ => None,
        };

        assert_eq!(var.table, 5);
        assert_eq!(field.signed, signed, "{name}");
        if name != "d" {
            assert_eq!(field.size, size, "{name}");
        }
        assert_eq!(shown, type_name.as_bytes(), "{name}");
        assert_eq!(field.usecs, usecs, "{name}");
        assert_eq!(value, constant, "{name}");
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
    assert_eq!(p.vars[0].field.op, Op::EntryComm);
    assert_eq!(p.vars[0].field.kind, Kind::String);
    assert_eq!(p.vars[0].field.size, 256);

    // A copy of the variable's text is one more.
    let p = world.accepts(
        "keys=s32:x=common_pid.execname:y=$x",
        &line("", ":x=common_pid.execname,y=common_pid.execname", ""),
    );

    assert_eq!(p.vars[1].field.op, Op::EntryComm);
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
        (OnxVarCreateFail, 0),
    );
    world.refuses_at(
        &format!(
            "keys=s32{}:onmax($v00).snapshot():onchange($v00).snapshot()",
            vars(15)
        ),
        Einval,
        (OnxVarCreateFail, 0),
    );
    assert!(world
        .compile(&format!("keys=s32{}:onmax($v00).save(u8)", vars(14)))
        .is_ok());
    world.refuses(
        &format!("keys=s32{}:onmax($v00).save(u8,u64)", vars(14)),
        Einval,
        (VarCreateFindFail, "u64"),
    );
    world.refuses_at(
        &format!(
            "keys=s32{}:onmax($v00).save(u8):onchange($v00).snapshot()",
            vars(14)
        ),
        Einval,
        (OnxVarCreateFail, 0),
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
