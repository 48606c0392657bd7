// SPDX-License-Identifier: GPL-2.0

//! `trace()` actions: what is accepted, how it is printed, what is refused and where: H-ACT-05, H-ACT-06,
//! H-ACT-12 to H-ACT-17, H-ACT-19 to H-ACT-24, H-ACT-26, H-ACT-28, B-08, B-09, B-22, B-23,
//! E-12 to E-21, E-26 to E-28.

#![cfg(not(loom))]

mod lang_common;

use lang_common::{
    world::World,
    *, //
};
use rust_hist::{
    error::{
        ErrKind::*,
        Errno::*,
        Refusal, //
    },
    field::SynthClass,
    lang,
    limits::{
        PARAMS_MAX,
        REFS_MAX, //
    },
    program::{
        ActionKind,
        ArgSource,
        Program,
        Purpose, //
    },
};

/// Allocations by node with a variable, switches by priority; the next trigger is for a switch.
fn world() -> World {
    World::new()
        .with(
            "kmem",
            "kmalloc",
            "keys=node:ts=bytes_req,who=common_comm if node >= 0",
        )
        .on("sched", "switch")
        .synth("lat u64 lat; pid_t pid")
        .synth("word char[16] word")
        .synth("one int prio")
        .synth("x int y")
}

/// Where the parameters of the first action come from: `r`, `v` or `f`, each with its number.
fn sources(program: &Program) -> Vec<String> {
    program
        .args_of(&program.actions[0])
        .iter()
        .map(|arg| match arg.source {
            ArgSource::Ref(n) => format!("r{n}"),
            ArgSource::Own(n) => format!("v{n}"),
            ArgSource::Field(field) => format!("f{}", field.size),
        })
        .collect()
}

#[test]
fn h_act_05_both_forms_with_all_handlers() {
    let mut world = world();

    for handler in ["onmatch(kmem.kmalloc)", "onmax($l)", "onchange($l)"] {
        for (typed, printed) in [
            ("lat($l,next_pid)", "lat($l,next_pid)"),
            ("lat( $l , next_pid )", "lat($l,next_pid)"),
            ("lat($l,next_pid", "lat($l,next_pid)"),
            ("lat($l,next_pid)junk", "lat($l,next_pid)"),
            ("trace(lat,$l,next_pid)", "trace(lat,$l,next_pid)"),
            ("trace( lat ,$l,next_pid)", "trace(lat,$l,next_pid)"),
            ("tracefoo(lat,$l,next_pid)", "tracefoo(lat,$l,next_pid)"),
        ] {
            let program = world.accepts(
                &format!("keys=next_prio:l=prev_state:{handler}.{typed}")
                    .replace("prev_state", "8"),
                &format!(
                    "keys=next_prio:vals=hitcount:l=8:sort=hitcount:size=2048:{handler}.{printed}"
                ),
            );

            assert_eq!(sources(&program), ["v0", "f4"]);
            assert!(matches!(
                program.actions[0].kind,
                ActionKind::Trace {
                    synth: 0,
                    first: 0,
                    len: 2,
                    ..
                }
            ));
            assert_eq!(
                program.actions[0].track.is_some(),
                !handler.starts_with("onmatch")
            );
        }
    }
    world.refuses(
        "keys=next_prio:onmatch(kmem.kmalloc).zap(next_prio)",
        Einval,
        (SynthEventNotFound, "zap"),
    );
    world.refuses(
        "keys=next_prio:onmatch(kmem.kmalloc).trace(zap,next_prio)",
        Einval,
        (SynthEventNotFound, "zap"),
    );
}

#[test]
fn h_act_06_events_that_are_called_like_actions() {
    let mut world = world()
        .synth("saved int x")
        .synth("save int x")
        .synth("snapshots int x")
        .synth("trace int x")
        .synth("tracer int x");

    for (typed, synth) in [
        ("saved(next_prio)", 4),
        ("trace(save,next_prio)", 5),
        ("snapshots(next_prio)", 6),
        ("trace(trace,next_prio)", 7),
        ("tracer(next_prio)", 8),
        ("traced(saved,next_prio)", 4),
    ] {
        let program = world.accepts(
            &format!("keys=next_prio:onmatch(kmem.kmalloc).{typed}"),
            &format!("keys=next_prio{TAIL}:onmatch(kmem.kmalloc).{typed}"),
        );

        assert!(
            matches!(program.actions[0].kind, ActionKind::Trace { synth: n, .. } if n == synth),
            "{typed}"
        );
    }
    // The exact words stay what they are.
    world.refuses(
        "keys=next_prio:onmatch(kmem.kmalloc).save(next_prio)",
        Einval,
        (ActionMismatch, "save"),
    );
}

#[test]
fn h_act_06_a_trigger_is_found_whatever_its_words_mean_by_now() {
    let text = "keys=next_prio:v=next_pid:onmax($v).saver(prev_pid)";
    let removal = |world: &mut World| {
        let spec = lang::parse(b"hist", text.as_bytes()).expect(text);

        Program::compile(&spec, world, Purpose::Change).expect(text)
    };
    let mut before = world();
    let mut after = world().synth("saver pid_t pid");
    let saves = before.compile(text).expect(text);
    let traces = after.compile(text).expect(text);

    assert!(saves.actions[0].kind == ActionKind::Save);
    assert!(matches!(traces.actions[0].kind, ActionKind::Trace { .. }));
    for made in [&saves, &traces] {
        for world in [&mut before, &mut after] {
            assert!(removal(world).same_trigger(text.as_bytes(), made, text.as_bytes()));
        }
    }
}

#[test]
fn h_act_12_parameters_of_one_letter() {
    let mut world = world()
        .synth("y int z")
        .with("zoo", "all", "keys=s32:b=u64");

    world.accepts(
        "keys=next_prio:z=next_prio:onmax($z).x($z)",
        "keys=next_prio:vals=hitcount:z=next_prio:sort=hitcount:size=2048:onmax($z).x($z)",
    );
    world.accepts(
        "keys=next_prio:onmatch(kmem.kmalloc).trace(x,next_prio)",
        &format!("keys=next_prio{TAIL}:onmatch(kmem.kmalloc).trace(x,next_prio)"),
    );
    for (typed, at) in [
        ("x()", "x(^)"),
        ("x( )", "x(^ )"),
        ("x(next_prio,)", ",^)"),
        ("x($)", "$"),
    ] {
        world.refuses(
            &format!("keys=next_prio:onmatch(kmem.kmalloc).{typed}"),
            Einval,
            (InvalidParam, at),
        );
    }

    let many = ["7"; PARAMS_MAX + 1].join(",");

    world.refuses(
        &format!("keys=next_prio:onmatch(kmem.kmalloc).x({many})"),
        Einval,
        (TooManyParams, ""),
    );
}

#[test]
fn h_act_13_h_act_14_where_a_variable_is_looked_for() {
    let text = "keys=next_prio:l=common_timestamp:onmatch(kmem.kmalloc)";
    let mut world = world()
        .with("zoo", "all", "keys=s32:only=u64,ts=u64")
        .synth("u u64 a");

    for (param, expected) in [
        ("$l", "v0"),
        ("sched.switch.$l", "v0"),
        ("$ts", "r0"),
        ("kmem.kmalloc.$ts", "r0"),
        ("zoo.all.$ts", "r0"),
        ("zoo.all.$only", "r0"),
    ] {
        let program = world.compile(&format!("{text}.u({param})")).expect(param);

        assert_eq!(sources(&program), [expected], "{param}");
        // A parameter does not take what it reads.
        assert!(program.refs.iter().all(|reference| !reference.consume));
    }
    for (handler, param, entry) in [
        // The event that the handler names is the only one.
        ("onmatch(kmem.kmalloc)", "$only", (ParamNotFound, "only")),
        (
            "onmatch(kmem.kmalloc)",
            "kmem.kmalloc.$l2",
            (ParamNotFound, "l2"),
        ),
        (
            "onmatch(kmem.kmalloc)",
            "zap.zip.$ts",
            (ParamNotFound, "ts"),
        ),
        (
            "onmatch(kmem.kmalloc)",
            "sched.switch.$ts2",
            (ParamNotFound, "ts2"),
        ),
        ("onmax($l)", "$ts", (VarNotUnique, "ts")),
        ("onmax($l)", "$junk", (ParamNotFound, "junk")),
    ] {
        world.refuses(
            &format!("keys=next_prio:l=8:{handler}.u({param})"),
            Einval,
            entry,
        );
    }
    // Without an event that a handler names, one of all.
    let program = world
        .compile("keys=next_prio:l=8:onmax($l).u($only)")
        .expect("one has it");

    assert_eq!(sources(&program), ["r0"]);
    // Of another action's event, too.
    let program = world
        .compile("keys=next_prio:l=8:onmatch(zoo.all).u($l):onmax($l).u($ts)")
        .expect("found by the other handler");

    assert_eq!(program.refs.len(), 1);
}

#[test]
fn h_act_13_forms_of_parameters() {
    let mut world = world()
        .synth("u u64 a")
        .synth("c char[] a")
        .synth("i int a");

    for (event, param, expected) in [
        ("i", "prev_prio", "f4"),
        ("i", "sched.switch.prev_prio", "f4"),
        ("i", "sched.switch.prev_prio.hex", "f4"),
        ("i", "sched.switch.prev_prio.log2", "f4"),
        ("u", "55", "f8"),
        ("u", "0x10", "f8"),
        ("u", "common_timestamp", "f8"),
        ("u", "sched.switch.common_timestamp.usecs", "f8"),
        ("u", "hitcount", "f8"),
        ("c", "comm", "f256"),
        ("c", "common_comm", "f256"),
        ("c", "prev_comm", "f16"),
        ("i", "kmem.kmalloc.node", "r0"),
        ("u", "bytes_req", "r0"),
        ("u", "kmem.kmalloc.bytes_req.hex", "r0"),
    ] {
        let program = world.accepts(
            &format!("keys=next_prio:onmatch(kmem.kmalloc).{event}({param})"),
            &format!(
                "keys=next_prio{}:onmatch(kmem.kmalloc).{event}({param})",
                if param.contains("timestamp") {
                    TAIL.to_string() + ":clock=global"
                } else {
                    TAIL.to_string()
                }
            ),
        );

        assert_eq!(sources(&program), [expected], "{param}");
        assert_eq!(program.timestamps, param.contains("timestamp"));
    }
    for param in ["prev_prio.hex", "sched.switch", "a.$b", ".a"] {
        let text = format!("keys=next_prio:onmatch(kmem.kmalloc).i({param})");
        let at = format!("hist:{text}").find(param).expect("is there");

        // C says nothing.
        world.refuses_at(&text, Einval, (InvalidParam, at));
    }
    world.refuses(
        "keys=next_prio:onmatch(kmem.kmalloc).u(5x)",
        Einval,
        (ExpectNumber, "5x"),
    );
}

#[test]
fn h_act_15_a_field_of_the_event() {
    let mut world = world();

    // A variable of its name is in the way; without another event that is the end.
    world.refuses(
        "keys=next_prio:next_pid=8:onmax($next_pid).lat($next_pid,next_pid)",
        Einval,
        (VarCreateFindFail, ",^next_pid"),
    );
    // With one it is looked for there.
    world.refuses(
        "keys=next_prio:prev_pid=8:onmatch(kmem.kmalloc).lat($prev_pid,prev_pid)",
        Einval,
        (VarCreateFindFail, ",^prev_pid"),
    );

    let program = world
        .compile("keys=next_prio:node=8:onmatch(kmem.kmalloc).one(node)")
        .expect("the other event has it");

    assert_eq!(sources(&program), ["r0"]);
    // One field as often as wanted.
    assert_eq!(
        sources(
            &world
                .compile("keys=next_prio:onmatch(kmem.kmalloc).one(prev_prio):onmatch(kmem.kmalloc).x(prev_prio)")
                .expect("no clash")
        ),
        ["f4"]
    );
}

#[test]
fn h_act_15_e_12_limits_of_fields() {
    let fields = |n: usize| vec!["prev_prio"; n].join(",");
    let define = |n: usize| {
        let fields: Vec<_> = (0..n).map(|i| format!("int f{i}")).collect();

        format!("all {}", fields.join(";"))
    };
    let action = format!("onmatch(kmem.kmalloc).all({})", fields(PARAMS_MAX));
    let mut world = world().synth(&define(PARAMS_MAX));

    // H-ACT-26: not only sixteen of them.
    let program = world
        .compile(&format!("keys=next_prio:{action}"))
        .expect("as many as an event has fields");

    assert_eq!(program.args.len(), PARAMS_MAX);
    assert_eq!(program.refs.len(), 0);
    world.refuses(
        &format!("keys=next_prio:a=8:{action}:onmax($a).one(next_prio)"),
        Einval,
        (TooManyFieldVars, "(^next_prio"),
    );
}

#[test]
fn h_act_16_h_act_17_a_field_of_the_other_event() {
    let mut world = world().synth("u u64 a");

    for (text, entry) in [
        // Nowhere to look.
        (
            "keys=next_prio:l=8:onmax($l).u(junk)",
            (FieldNotFound, "junk"),
        ),
        (
            "keys=next_prio:onmatch(kmem.kmalloc).u(junk)",
            (FieldNotFound, "junk"),
        ),
        (
            "keys=next_prio:onmatch(kmem.kmalloc).u(zap.zip.junk)",
            (EventFileNotFound, "junk"),
        ),
        (
            "keys=next_prio:onmatch(kmem.kmalloc).u(zoo.all.u64)",
            (HistNotFound, "u64"),
        ),
        (
            "keys=next_prio:l=8:onchange($l).u(zoo.all.u64)",
            (HistNotFound, "u64"),
        ),
        // The keys are not the same.
        (
            "keys=next_comm:onmatch(kmem.kmalloc).u(bytes_req)",
            (HistNotFound, "bytes_req"),
        ),
        (
            "keys=next_prio,prev_prio:onmatch(kmem.kmalloc).u(kmem.kmalloc.bytes_req)",
            (HistNotFound, "bytes_req"),
        ),
        (
            "keys=next_prio:onmatch(kmem.kmalloc).u(kmem.kmalloc.bytes_req.zap)",
            (BadFieldModifier, "bytes_req.zap"),
        ),
        // Its own event is none of another one.
        (
            "keys=next_prio:onmatch(kmem.kmalloc).u(sched.switch.junk)",
            (HistNotFound, "junk"),
        ),
    ] {
        let before = world.triggers.len();

        world.refuses(text, Einval, entry);
        assert_eq!(world.triggers.len(), before, "{text}");
    }

    let program = world
        .compile("keys=next_prio:onmatch(kmem.kmalloc).u(bytes_req):onmatch(kmem.kmalloc).u(kmem.kmalloc.bytes_req)")
        .expect("there is one with such a key");

    assert_eq!(world.triggers.len(), 2);

    let helper = &world.triggers[1];

    assert_eq!(
        String::from_utf8_lossy(&helper.text),
        "keys=node:synthetic_bytes_req=bytes_req if node >= 0"
    );
    // Both actions read one variable.
    assert_eq!(program.refs.len(), 1);
    assert_eq!(program.refs[0].table, 1);
    assert_eq!(
        program.name_of(program.refs[0].name, b""),
        b"synthetic_bytes_req"
    );
    // H-ACT-19: it is there for the next one.
    world
        .compile("keys=prev_prio:onmatch(kmem.kmalloc).u(bytes_req)")
        .expect("it is there");
    assert_eq!(world.triggers.len(), 2);
}

#[test]
fn h_act_20_which_keys_are_the_same() {
    let keys =
        |event: &Event, text: &str| compile(event, format!("keys={text}").as_bytes()).expect(text);

    for (a, b, same) in [
        ("next_prio", "prev_prio", true),
        ("next_prio", "next_pid", false),
        ("next_prio,next_comm", "prev_prio,prev_comm", true),
        ("next_prio,next_comm", "prev_comm,prev_prio", false),
        ("next_prio", "prev_prio,prev_comm", false),
        // A bucket is no signed number; how wide it is does not count.
        ("next_prio.log2", "prev_prio", false),
        ("next_prio.log2", "prev_prio.buckets=5", true),
        ("next_prio.hex", "prev_prio", true),
        ("common_cpu", "cpu", true),
        ("common_stacktrace", "stacktrace", true),
        ("common_timestamp", "hitcount", true),
        ("next_prio+1", "prev_prio", true),
        ("prev_state", "common_timestamp", false),
    ] {
        let (a, b) = (keys(&SWITCH, a), keys(&SWITCH, b));

        assert_eq!(a.has_keys_of(&b), same);
        assert_eq!(b.has_keys_of(&a), same);
    }
    assert!(keys(&SWITCH, "next_prio").has_keys_of(&keys(&KMALLOC, "node")));
}

#[test]
fn h_key_10_which_keys_can_find_which() {
    let keys =
        |event: &Event, text: &str| compile(event, format!("keys={text}").as_bytes()).expect(text);

    for (own, source, can) in [
        ("next_prio", "next_pid", true),
        ("next_prio", "prev_state", true),
        ("next_prio,next_comm", "prev_prio", true),
        ("next_prio", "prev_prio,prev_comm", false),
        ("next_comm", "prev_comm", true),
        ("next_comm", "next_pid", false),
        ("next_pid", "next_comm", false),
        ("next_pid", "common_stacktrace", false),
        ("next_comm,next_pid", "next_pid,next_comm", false),
        ("next_prio.log2", "prev_prio", false),
        ("next_prio", "prev_prio.log2", false),
        ("next_prio.buckets=5", "prev_prio.buckets=6", false),
        ("next_prio.buckets=5", "prev_prio.buckets=5", true),
    ] {
        let found = keys(&SWITCH, own).can_find(&keys(&SWITCH, source));

        assert_eq!(found, can, "{own} {source}");
    }
}

#[test]
fn h_act_21_b_08_helpers_take_keys_of_every_kind() {
    for (keys, printed) in [
        ("u32.log2", "u32.log2"),
        ("u32.buckets=10,s8.hex", "u32.buckets=10,s8.hex"),
        ("common_cpu", "common_cpu"),
        ("common_stacktrace", "common_stacktrace"),
        ("stacktrace", "common_stacktrace"),
        ("common_timestamp.usecs", "common_timestamp.usecs"),
        ("u8+u16*2", "u8+u16*2"),
        ("common_comm,cpu", "common_comm,cpu"),
        ("common_pid.execname", "common_pid.execname"),
        ("stack", "stack.stacktrace"),
        ("func2=u8,u16", ""),
        ("u64.sym-offset", "u64.sym-offset"),
        ("id.syscall", ""),
        ("filename", "filename"),
    ] {
        let text = format!("keys={keys} if u8 > 1 && u16 < 3");
        let Ok(program) = compile(&ZOO, text.as_bytes()) else {
            assert_eq!(printed, "", "{keys}");
            continue;
        };
        let mut out = Text::default();

        program
            .write_helper(
                text.as_bytes(),
                b"s16",
                program.filter(text.as_bytes()),
                &mut out,
            )
            .expect("the collector takes everything");
        assert_eq!(
            String::from_utf8_lossy(&out.0),
            format!("keys={printed}:synthetic_s16=s16 if u8 > 1 && u16 < 3")
        );

        let helper = compile(&ZOO, &out.0).expect("a trigger");

        assert!(helper.has_keys_of(&program));
        assert_eq!(helper.key_words(), program.key_words());
        assert!(helper.export(b"synthetic_s16", &out.0, 0).is_some());
    }
}

#[test]
fn h_act_22_too_many_and_too_few() {
    let mut world = world();

    world.refuses(
        "keys=next_prio:onmatch(kmem.kmalloc).lat($ts)",
        Einval,
        (SynthCountMismatch, "lat"),
    );
    world.refuses(
        "keys=next_prio:onmatch(kmem.kmalloc).trace(lat,$ts)",
        Einval,
        (SynthCountMismatch, "lat"),
    );
    world.refuses(
        "keys=next_prio:onmatch(kmem.kmalloc).trace(lat)",
        Einval,
        (SynthCountMismatch, "lat"),
    );
    world.refuses(
        "keys=next_prio:onmatch(kmem.kmalloc).lat($ts,next_pid,prev_state)",
        Einval,
        (SynthTypeMismatch, "prev_state"),
    );
    // What is not there is said first.
    world.refuses(
        "keys=next_prio:onmatch(kmem.kmalloc).lat($ts,next_pid,$junk)",
        Einval,
        (ParamNotFound, "junk"),
    );
}

/// Whether a field or variable of the zoo goes into a synthetic field of a type.
fn fits(world: &mut World, param: &str) -> bool {
    let text = format!("keys=u64:n=u64,i=s32,d=filename,c=seven,s=stack,k=common_comm,a=u32,x=s32+1:onmatch(kmem.kmalloc).syn({param})");

    match world.compile(&text) {
        Ok(_) => true,
        Err(refusal) => {
            assert!(refusal.is(SynthTypeMismatch), "{param}: {refusal:?}");
            false
        }
    }
}

#[test]
fn h_act_23_h_act_24_b_09_types() {
    // A number, signed numbers by their sizes, a string of fixed length, any string, a stack.
    const PARAMS: [&str; 17] = [
        "$n", "$i", "$a", "$x", "$d", "$c", "$s", "$k", "u8", "s8", "u32", "s32", "u64", "s64",
        "seven", "filename", "stack",
    ];

    for (typed, fitting) in [
        ("u8", "u8 s8"),
        ("s8", "s8"),
        ("u32", "$a u32 s32"),
        // Fields may be signed whatever C thinks of them.
        ("int", "$i $x s32"),
        ("s32", "$i $x s32"),
        ("pid_t", "$i $x s32"),
        ("u64", "$n u64 s64"),
        ("long", "s64"),
        ("unsigned long", "$n u64 s64"),
        ("char[7]", "$c seven"),
        // As many bytes as C copies of a string of any length.
        ("char[256]", "$d $k filename"),
        // Eight bytes are no string.
        ("char[8]", ""),
        ("char[]", "$d $c $k seven filename"),
        ("long[]", "$s stack"),
        ("unsigned long[]", "$s stack"),
    ] {
        let mut world = World::new().synth(&format!("syn {typed} f"));
        let found: Vec<_> = PARAMS
            .into_iter()
            .filter(|param| fits(&mut world, param))
            .collect();

        assert_eq!(found.join(" "), fitting, "{typed}");
    }
    // A string of four bytes is no number of four.
    let mut world = World::new().on("sched", "switch").synth("syn u64 f; u64 g");

    world.refuses(
        "keys=next_prio:onmatch(kmem.kmalloc).syn(7,prev_comm)",
        Einval,
        (SynthTypeMismatch, "prev_comm"),
    );
    assert_eq!(
        world.synths[0].field(0).map(|f| f.class),
        Some(SynthClass::Number)
    );
}

#[test]
fn references_are_limited() {
    let vars: Vec<_> = (0..REFS_MAX).map(|i| format!("v{i}=bytes_req")).collect();
    let more: Vec<_> = vars.iter().map(|var| format!("w{var}")).collect();
    let define: Vec<_> = (0..REFS_MAX).map(|i| format!("u64 f{i}")).collect();
    let params: Vec<_> = (0..REFS_MAX).map(|i| format!("$v{i}")).collect();
    let mut world = World::new()
        .with("kmem", "kmalloc", &format!("keys=node:{}", vars.join(",")))
        .with("kmem", "kmalloc", &format!("keys=node:{}", more.join(",")))
        .on("sched", "switch")
        .synth(&format!("all {}", define.join(";")))
        .synth("u u64 a");
    let text = format!(
        "keys=next_prio:own=8:onmatch(kmem.kmalloc).all({})",
        params.join(",")
    );
    let program = world.compile(&text).expect("sixteen");

    assert_eq!(program.refs.len(), REFS_MAX);
    // What is the trigger's own, or there already, takes no room.
    for param in ["$v3", "$own", "9"] {
        world
            .compile(&format!("{text}:onmatch(kmem.kmalloc).u({param})"))
            .expect(param);
    }

    let text = format!("{text}:onmatch(kmem.kmalloc).u($wv3)");
    let at = format!("hist:{text}").find("wv3").expect("is there");

    world.refuses_at(&text, Enomem, (TooManyRefs, at));
}

#[test]
fn h_act_28_triggers_differ_by_their_parameters() {
    let mut world = world();
    let text = "keys=next_prio:onmatch(kmem.kmalloc).lat($ts,next_pid)";
    let program = world.compile(text).expect(text);

    for (other, same) in [
        (
            "keys=next_prio:onmatch(kmem.kmalloc).lat($ts,next_pid)",
            true,
        ),
        (
            "keys=next_prio:onmatch(kmem.kmalloc).lat( $ts , next_pid )",
            true,
        ),
        (
            "keys=next_prio:onmatch(kmem.kmalloc).trace(lat,$ts,next_pid)",
            true,
        ),
        (
            "keys=next_prio:onmatch(kmem.kmalloc).tracers(lat,$ts,next_pid)",
            true,
        ),
        (
            "keys=next_prio:onmatch(kmem.kmalloc).lat($ts,prev_pid)",
            false,
        ),
        (
            "keys=next_prio:onmatch(kmem.kmalloc).lat(kmem.kmalloc.$ts,next_pid)",
            false,
        ),
        (
            "keys=next_prio:onmatch(sched.switch).lat(kmem.kmalloc.$ts,next_pid)",
            false,
        ),
        ("keys=next_prio:onmatch(kmem.kmalloc).one(next_prio)", false),
        ("keys=next_prio", false),
    ] {
        let spec = lang::parse(b"hist", other.as_bytes()).expect(other);
        let removal = Program::compile(&spec, &mut world, Purpose::Change).expect(other);

        assert_eq!(
            removal.same_trigger(other.as_bytes(), &program, text.as_bytes()),
            same,
            "{other}"
        );
    }
}

#[test]
fn memory_may_end_anywhere() {
    let text = "keys=next_prio:l=8:onmatch(kmem.kmalloc).lat($ts,next_pid):onmatch(kmem.kmalloc).lat(bytes_req,prev_pid)";

    for n in 0.. {
        let mut world = world();

        rust_hist::alloc::fail_after(Some(n));
        let made = world.compile(text);
        rust_hist::alloc::fail_after(None);
        match made {
            Ok(_) => {
                assert!(n > 20);
                break;
            }
            Err(refusal) => assert_eq!(refusal, Refusal::silent(Enomem), "{n}"),
        }
    }
}

/// Why a text is refused, and what is said after the text of the last entry.
fn refused(world: &mut World, text: &str) -> (Refusal, String) {
    let refusal = world.compile(text).map(|_| ()).expect_err(text);
    let detail = String::from_utf8(refusal.detail().to_vec()).expect("is text");

    (refusal, detail)
}

#[test]
fn e_18_both_types_are_named() {
    let mut world = world()
        .synth("dyn char[] name")
        .synth("frames long[] frames");

    for (action, expected) in [
        ("lat(next_pid,next_pid)", "field u64 lat, param pid_t"),
        ("lat($ts,$ts)", "field pid_t pid, param size_t"),
        ("lat($ts,prev_comm)", "field pid_t pid, param char[16]"),
        ("word($ts)", "field char[16] word, param size_t"),
        ("dyn(next_pid)", "field char[] name, param pid_t"),
        ("frames($who)", "field long[] frames, param char[]"),
        (
            "one(common_stacktrace)",
            "field int prio, param unsigned long[]",
        ),
        ("one(next_prio,next_prio)", "the event has fewer fields"),
    ] {
        let text = format!("keys=next_prio:onmatch(kmem.kmalloc).{action}");
        let (refusal, detail) = refused(&mut world, &text);

        assert!(refusal.is(SynthTypeMismatch), "{text}: {refusal:?}");
        assert_eq!(detail, expected, "{text}");
    }
    // Of a string whose place the record has, what was typed.
    let mut world = world.on("zoo", "all");

    assert_eq!(
        refused(&mut world, "keys=u64:v=8:onmax($v).word(filename)").1,
        "field char[16] word, param char[]"
    );
}

#[test]
fn b_22_a_caret_stands_under_the_parameter() {
    let mut world = world();

    for (text, entry) in [
        (
            "keys=next_pid,next_comm:onmatch(kmem.kmalloc).lat($ts,next_comm)",
            (SynthTypeMismatch, "$ts,^next_comm"),
        ),
        (
            "keys=next_prio:ts2=8:onmatch(kmem.kmalloc).lat($ts,$ts3,$ts2)",
            (ParamNotFound, "$ts,$^ts3"),
        ),
        (
            "keys=next_prio:latency=8:onmatch(kmem.kmalloc).lat($latency)",
            (SynthCountMismatch, ".^lat("),
        ),
        (
            "keys=next_prio:sort=next_prio:onmatch(kmem.next_prio).lat($ts,next_pid)",
            (InvalidSubsysEvent, "kmem.^next_prio"),
        ),
        (
            "keys=next_prio:v=next_prio:onmax($v).save(next_pid,prio)",
            (FieldNotFound, "next_pid,^prio"),
        ),
    ] {
        world.refuses(text, Einval, entry);
    }
    world.refuses(
        "keys=next_prio:sort=o:onmatch(kmem.kmalloc).lat($ts,next_pid)",
        Einval,
        (InvalidSortField, "sort=^o"),
    );
}

#[test]
fn h_act_13_a_variable_without_its_dollar_sign() {
    let mut world = world();

    for (text, at, name) in [
        (
            "keys=next_prio:wait=8:onmatch(kmem.kmalloc).lat(wait,next_pid)",
            "lat(^wait",
            "$wait",
        ),
        // Also without an event to look at, and one of the matched event.
        (
            "keys=next_prio:wait=8:onmax($wait).trace(lat,wait,next_pid)",
            "lat,^wait",
            "$wait",
        ),
        (
            "keys=next_prio:onmatch(kmem.kmalloc).lat(ts,next_pid)",
            "lat(^ts",
            "$ts",
        ),
        (
            "keys=next_prio:onmatch(zoo.all).lat(kmem.kmalloc.ts,next_pid)",
            "kmem.kmalloc.^ts",
            "$ts",
        ),
    ] {
        world.refuses(text, Einval, (MissingDollar, at));
        assert_eq!(refused(&mut world, text).1, name, "{text}");
    }
    // Where it is no variable either it is a field that is not there.
    world.refuses(
        "keys=next_prio:wait=8:onmax($wait).lat(waits,next_pid)",
        Einval,
        (FieldNotFound, "waits"),
    );
    // A field comes first.
    assert!(world
        .compile("keys=next_prio:node=8:onmatch(kmem.kmalloc).one(node)")
        .is_ok());
}

#[test]
fn h_var_08_two_handlers_of_one_event() {
    let mut world = world()
        .with("zoo", "all", "keys=s32:ts=u64")
        .synth("u u64 a");
    let twice = "onmatch(kmem.kmalloc).u($ts):onmatch(kmem.kmalloc)";
    let program = world
        .compile(&format!(
            "keys=next_prio:d=next_pid-$ts:{twice}.lat($ts,next_pid)"
        ))
        .expect("one event has it");

    assert_eq!(sources(&program), ["r0"]);
    assert_eq!(program.refs.len(), 1);
    world.refuses(
        "keys=next_prio:onmatch(kmem.kmalloc).u(8):onmatch(zoo.all).u(8):onmax($x).u($ts):x=8",
        Einval,
        (VarNotUnique, "u($^ts"),
    );
}
