// SPDX-License-Identifier: GPL-2.0

//! What `hist_debug` says of a trigger. The guest's tests compare whole files with those of C.

mod lang_common;

use core::fmt;
use lang_common::{
    compile,

    world::World,
    Text,
    SWITCH,
    ZOO, //
};
use rust_hist::{
    program::{
        DebugTables,
        Program,
        Ref,
        VarInfo, //
    },
    text::Out, //
};

/// Every reference reads the first variable of one other table.
struct Tables;

impl DebugTables for Tables {
    fn write_own(&self, out: &mut dyn Out) -> fmt::Result {
        out.write_str("own")
    }

    fn write_of(&self, _: &Ref, out: &mut dyn Out) -> fmt::Result {
        out.write_str("other")
    }

    fn variable<R>(&self, _: &Ref, found: impl FnOnce(VarInfo<'_>) -> R) -> R {
        found(VarInfo {
            name: b"theirs",
            index: 7,
            type_name: b"u16",
            size: 2,
            signed: false,
        })
    }
}

fn debug(program: &Program, text: &str) -> String {
    let mut out = Text::default();

    program
        .write_debug(text.as_bytes(), &Tables, &mut out)
        .expect("the collector takes everything");
    String::from_utf8(out.0).expect("is text")
}

/// The lines of a trigger that begin with `title`, after it.
fn values<'t>(text: &'t str, title: &str) -> Vec<&'t str> {
    text.lines()
        .filter_map(|line| line.trim_start().strip_prefix(title))
        .collect()
}

#[test]
fn fields_stand_in_the_order_of_c() {
    let text = "keys=next_pid,prev_comm:vals=prev_prio:v=prev_state";
    let program = compile(&SWITCH, text.as_bytes()).expect(text);
    let shown = debug(&program, text);

    assert!(shown.starts_with(
        "hist_data: own\n\n  n_vals: 3\n  n_keys: 2\n  n_fields: 5\n\n  val fields:\n\n"
    ));
    assert_eq!(
        values(&shown, "hist_data->fields["),
        ["0]:", "1]:", "2]:", "3]:", "4]:"]
    );
    assert_eq!(
        values(&shown, "ftrace_event_field name: "),
        ["prev_prio", "prev_state", "next_pid", "prev_comm"]
    );
    assert_eq!(
        values(&shown, "function: hist_field_"),
        ["counter()", "s32()", "s64()", "s32()", "string()"]
    );
    // Keys have the bytes of their slots.
    assert_eq!(values(&shown, "size: "), ["8", "4", "8", "8", "16"]);
    assert!(!shown.contains("variable reference fields"));
}

#[test]
fn computed_fields_name_what_computes_them() {
    let text = "keys=u32.log2,s32.buckets=3,filename:\
                a=u8+1,b=u8-1,c=u8*2,d=u8/4,e=u8/3,f=u8/4000001,g=u8/s8,h=-(u8),i=6*7,j=u8";
    let program = compile(&ZOO, text.as_bytes()).expect(text);
    let shown = debug(&program, text);

    assert_eq!(
        values(&shown, "function: hist_field_"),
        [
            "counter()",
            "plus()",
            "minus()",
            "mult()",
            "div_power2()",
            "div_mult_shift()",
            "div_not_power2()",
            "div()",
            "uminus()",
            "const()",
            "u8()",
            "log2()",
            "bucket()",
            "dynstring()",
        ]
    );
    assert_eq!(values(&shown, "constant: "), ["42"]);
    // A bucket is no signed number.
    assert_eq!(values(&shown, "is_signed: ").last(), Some(&"0"));
}

#[test]
fn quantiles_name_the_field_that_they_fold() {
    let text = "keys=prev_comm,prev_pid.log2=3,prev_prio:vals=next_pid:quantiles(50,99.9)";
    let program = compile(&SWITCH, text.as_bytes()).expect(text);
    let shown = debug(&program, text);

    assert_eq!(values(&shown, "scale: "), ["3"]);
    // Hits, the value, the first key.
    assert!(
        shown.ends_with("\n  quantiles of hist_data->fields[3]:\n      50\n      99.9\n"),
        "{shown}"
    );
    assert!(shown.contains("hist_data->fields[3]:\n      flags:\n        HIST_FIELD_FL_KEY\n      ftrace_event_field name: prev_pid\n"));
    // Buckets of a signed field mirror.
    assert_eq!(values(&shown, "is_signed: ")[3], "1");

    let text = "keys=prev_pid.log2";
    let program = compile(&SWITCH, text.as_bytes()).expect(text);

    assert!(!debug(&program, text).contains("quantiles"));
    assert!(!debug(&program, text).contains("scale"));
}

#[test]
fn variables_are_numbered_through_all_actions() {
    let text = "keys=next_pid:a=next_prio,b=prev_prio:\
                onmax($b).save(next_comm,prev_pid):onchange($a).snapshot():onmax($b).snapshot()";
    let program = compile(&SWITCH, text.as_bytes()).expect(text);
    let shown = debug(&program, text);

    assert_eq!(
        values(&shown, "var.name: "),
        [
            "a",
            "b",
            "__max",
            "__change",
            "__max",
            "next_comm",
            "prev_pid"
        ]
    );
    assert_eq!(
        values(&shown, "var.idx (into tracing_map_elt.vars[]): "),
        // fields, var_refs, then the actions: the reference and the value that is tracked.
        ["0", "1", "1", "0", "1", "2", "0", "5", "1", "6", "3", "4"]
    );
    assert_eq!(
        values(&shown, "var_ref_idx (into hist_data->var_refs[]): "),
        ["0", "1", "0", "1", "0"]
    );
    assert_eq!(
        values(&shown, "hist_data->var_refs["),
        ["0]:", "1]:"],
        "{shown}"
    );
}

#[test]
fn references_name_the_table_that_they_read() {
    let mut world = World::new().with("kmem", "kmalloc", "keys=node:x=bytes_req,y=node");
    let text = "keys=s32:vals=$x:a=$y,b=kmem.kmalloc.$x+1";
    let program = world.compile(text).expect(text);
    let shown = debug(&program, text);

    assert_eq!(
        values(&shown, "var.hist_data: "),
        ["other", "other", "other"]
    );
    assert_eq!(values(&shown, "HIST_FIELD_FL_ALIAS").len(), 1);
    assert_eq!(values(&shown, "name: "), ["theirs", "theirs", "theirs"]);
    assert_eq!(
        values(&shown, "var_ref_idx (into hist_data->var_refs[]): "),
        ["0", "1", "0", "1"]
    );
}

#[test]
fn parameters_are_references_and_variables_as_in_c() {
    let mut world = World::new()
        .with("kmem", "kmalloc", "keys=node:x=bytes_req,y=bytes_req")
        .on("sched", "switch")
        .synth("ev u64 a; u64 b; pid_t c; int d; char[] e");
    let text = "keys=next_prio:a=$x,p=prev_prio:onmax($p).ev($y,$x,prev_pid,$p,prev_comm):\
                onmatch(kmem.kmalloc).ev($y,$a,sched.switch.next_pid,sched.switch.$p,prev_comm)";
    let program = world.compile(text).expect(text);
    let shown = debug(&program, text);
    let (_, refs) = shown
        .split_once("variable reference fields:\n")
        .expect("has references");
    let (refs, rest) = refs
        .split_once("field variables:\n")
        .expect("has parameters that are fields");
    let (fields, _) = rest
        .split_once("action tracking variables")
        .expect("has actions");

    // $x of the expression; $p; $y; two fields; then $a and two fields of the second action.
    assert_eq!(
        values(refs, "name: "),
        [
            "theirs",
            "p",
            "theirs",
            "prev_pid",
            "prev_comm",
            "a",
            "next_pid",
            "prev_comm"
        ]
    );
    assert_eq!(
        values(refs, "var_ref_idx (into hist_data->var_refs[]): "),
        ["0", "1", "2", "3", "4", "5", "6", "7"]
    );
    assert_eq!(values(refs, "system: "), ["sched"]);
    assert_eq!(values(refs, "event_name: "), ["switch"]);
    // a, p; __max; the fields.
    assert_eq!(
        values(fields, "var.idx (into tracing_map_elt.vars[]): "),
        ["3", "4", "5", "6"]
    );
    assert_eq!(
        values(fields, "var.name: "),
        ["prev_pid", "prev_comm", "next_pid", "prev_comm"]
    );
    assert_eq!(
        values(fields, "hist_data->field_vars["),
        ["0]:", "1]:", "2]:", "3]:"]
    );
    assert_eq!(
        values(fields, "ftrace_event_field name: "),
        ["prev_pid", "prev_comm", "next_pid", "prev_comm"]
    );
    // What C makes of a signed field is unsigned, as long as it is a variable.
    assert_eq!(values(fields, "is_signed: "), ["1", "0", "1", "0"]);
    assert_eq!(values(refs, "is_signed: ")[3..5], ["0", "0"]);
}
