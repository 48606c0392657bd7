// SPDX-License-Identifier: GPL-2.0

//! Events, surroundings and shorthands for the tests of the trigger language.

#![allow(dead_code, reason = "no test file uses all of this")]

pub(crate) mod checked;
pub(crate) mod vars;
pub(crate) mod world;

use core::fmt::{
    self,
    Write, //
};

use rust_hist::{
    error::{
        ErrKind,
        Errno,
        LogEntry,
        Refusal, //
    },
    field::{
        FieldDesc,
        FieldKind, //
    },
    lang,
    program::{
        Program,
        Purpose,
        Resolver, //
    },
    text::Out, //
};

type Row = (&'static str, &'static str, u32, u32, bool, FieldKind);

/// An event as a table of its own fields.
#[derive(Clone, Copy)]
pub(crate) struct Event(pub(crate) &'static [Row]);

use FieldKind::*;

const COMMON: &[Row] = &[
    ("common_type", "unsigned short", 0, 2, false, Other),
    ("common_flags", "unsigned char", 2, 1, false, Other),
    ("common_preempt_count", "unsigned char", 3, 1, false, Other),
    ("common_pid", "int", 4, 4, true, Other),
];

const GENERIC: &[Row] = &[
    ("CPU", "int", 0, 0, true, Cpu),
    ("cpu", "int", 0, 0, true, Cpu),
    ("common_cpu", "int", 0, 0, true, Cpu),
    ("COMM", "char *", 0, 0, true, Comm),
    ("comm", "char *", 0, 0, true, Comm),
    ("stacktrace", "char *", 0, 0, true, Stack),
    ("STACKTRACE", "char *", 0, 0, true, Stack),
];

impl Resolver for Event {
    fn field(&self, name: &[u8]) -> Option<FieldDesc<'_>> {
        [self.0, GENERIC, COMMON]
            .into_iter()
            .flatten()
            .find(|row| row.0.as_bytes() == name)
            .map(|&(_, type_name, offset, size, signed, kind)| FieldDesc {
                type_name: type_name.as_bytes(),
                offset,
                size,
                signed,
                kind,
            })
    }

    fn fields<'a>(&'a self, visit: &mut dyn FnMut(&'a [u8])) {
        self.0.iter().for_each(|row| visit(row.0.as_bytes()));
    }

    fn is_own(&self, system: &[u8], event: &[u8]) -> bool {
        system == b"own" && event == b"event"
    }

    fn event_exists(&self, system: &[u8], event: &[u8]) -> bool {
        self.is_own(system, event) || system == b"a"
    }
}

pub(crate) const KMALLOC: Event = Event(&[
    ("call_site", "unsigned long", 8, 8, false, Other),
    ("ptr", "const void *", 16, 8, false, Other),
    ("bytes_req", "size_t", 24, 8, false, Other),
    ("bytes_alloc", "size_t", 32, 8, false, Other),
    ("gfp_flags", "unsigned long", 40, 8, false, Other),
    ("node", "int", 48, 4, true, Other),
]);

pub(crate) const SWITCH: Event = Event(&[
    ("prev_comm", "char[16]", 8, 16, false, StaticString),
    ("prev_pid", "pid_t", 24, 4, true, Other),
    ("prev_prio", "int", 28, 4, true, Other),
    ("prev_state", "long", 32, 8, true, Other),
    ("next_comm", "char[16]", 40, 16, false, StaticString),
    ("next_pid", "pid_t", 56, 4, true, Other),
    ("next_prio", "int", 60, 4, true, Other),
]);

pub(crate) const SYS_ENTER: Event = Event(&[
    ("id", "long", 8, 8, true, Other),
    ("args", "unsigned long[6]", 16, 48, false, Other),
]);

/// One field of every kind and size.
pub(crate) const ZOO: Event = Event(&[
    ("u8", "u8", 8, 1, false, Other),
    ("s8", "s8", 9, 1, true, Other),
    ("u16", "u16", 10, 2, false, Other),
    ("s16", "s16", 12, 2, true, Other),
    ("u32", "u32", 16, 4, false, Other),
    ("s32", "s32", 20, 4, true, Other),
    ("u64", "u64", 24, 8, false, Other),
    ("s64", "s64", 32, 8, true, Other),
    ("filename", "__data_loc char[]", 40, 4, false, DynString),
    ("second", "__data_loc char[]", 44, 4, false, DynString),
    ("label", "__rel_loc char[]", 48, 4, false, RelDynString),
    ("pointed", "char *", 56, 8, false, PtrString),
    ("stack", "long[]", 64, 4, false, Stack),
    ("seven", "char[7]", 68, 7, false, StaticString),
    ("func", "unsigned long", 80, 8, false, Function),
    ("odd", "u8[3]", 88, 3, false, Other),
    ("big", "char[600]", 96, 600, false, StaticString),
    ("empty", "char[]", 96, 0, false, Other),
    ("sixteen", "char[16]", 696, 16, false, StaticString),
    ("cpumask", "__data_loc cpumask_t", 712, 4, false, Cpumask),
    ("numbers", "__rel_loc u64[]", 716, 4, false, Other),
]);

/// Surroundings with known answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Around {
    pub(crate) ts: u64,
    pub(crate) in_ns: bool,
    pub(crate) cpu: u32,
    pub(crate) comm: &'static str,
    /// The numbers of the task, in the order of [`rust_hist::field::TaskNumber`].
    pub(crate) task: [u64; 4],
    /// The kernel stack; none of them is 0.
    pub(crate) frames: &'static [u64],
    /// Whether as many hits as may be are generating an event already.
    pub(crate) is_deep: bool,
    /// Whether the hit has begun before, with that which a trigger keeps from being over.
    pub(crate) is_late: bool,
}

pub(crate) const AROUND: Around = Around {
    ts: 1_234_567_890,
    in_ns: true,
    cpu: 3,
    comm: "sh",
    task: [77, 0x1_0000_0001, 1000, 1],
    frames: &[0xffff_ffff_8100_0001, 0xffff_ffff_8100_0002],
    is_deep: false,
    is_late: false,
};

/// Collects what is printed.
#[derive(Default)]
pub(crate) struct Text(pub(crate) Vec<u8>);

impl Write for Text {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.write_bytes(s.as_bytes())
    }
}

impl Out for Text {
    fn write_bytes(&mut self, bytes: &[u8]) -> fmt::Result {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// Compiles what follows `hist:` as for a new trigger.
pub(crate) fn compile(event: &Event, text: &[u8]) -> Result<Program, Refusal> {
    create(&mut event.clone(), text)
}

/// Compiles what follows `hist:` as for a new trigger on the event that `resolver` knows.
pub(crate) fn create(resolver: &mut dyn Resolver, text: &[u8]) -> Result<Program, Refusal> {
    let spec = lang::parse(b"hist", text)?;
    let mut program = Program::compile(&spec, resolver, Purpose::New)?;

    program.create_actions(&spec, resolver)?;
    Ok(program)
}

/// Compiles what follows `hist:` as for a command that looks for a trigger.
pub(crate) fn compile_change(event: &Event, text: &[u8]) -> Result<Program, Refusal> {
    Program::compile(
        &lang::parse(b"hist", text)?,
        &mut event.clone(),
        Purpose::Change,
    )
}

/// The trigger line of a program, without its newline.
pub(crate) fn line_of(program: &Program, text: &[u8]) -> Vec<u8> {
    let mut out = Text::default();

    program
        .write_line(b"hist", text, program.starts_paused, &mut out)
        .expect("the collector takes everything");
    assert_eq!(out.0.pop(), Some(b'\n'));
    out.0
}

/// A printed line as it is typed after `hist:`, with its state.
pub(crate) fn typed(line: &[u8]) -> &[u8] {
    line.strip_prefix(b"hist:").expect("has the prefix")
}

/// What follows `hist:` in a printed line, up to its state.
pub(crate) fn behind_prefix(line: &[u8]) -> &[u8] {
    let line = typed(line);

    line.strip_suffix(b" [active]")
        .or_else(|| line.strip_suffix(b" [paused]"))
        .expect("has a state")
}

/// Checks that `text` is accepted and printed as `expected` (without prefix and state), and that
/// what is printed makes the same trigger and the same line again, with its state and without.
pub(crate) fn accepts(event: &Event, text: &str, expected: &str) -> Program {
    let program =
        compile(event, text.as_bytes()).unwrap_or_else(|refusal| panic!("{text}: {refusal:?}"));
    let line = line_of(&program, text.as_bytes());
    let printed = behind_prefix(&line);

    assert_eq!(String::from_utf8_lossy(printed), expected, "{text}");

    for typed in [printed, typed(&line)] {
        let again =
            compile(event, typed).unwrap_or_else(|refusal| panic!("{expected}: {refusal:?}"));

        assert_eq!(behind_prefix(&line_of(&again, typed)), printed);
        assert!(program.same_trigger(text.as_bytes(), &again, typed));
        assert!(again.same_trigger(typed, &program, text.as_bytes()));
    }
    program
}

/// Checks that a command is refused with `errno` and an entry, whose caret is where `^` stands.
pub(crate) fn refuses(event: &Event, marked: &str, errno: Errno, kind: ErrKind) {
    let at = marked.find('^').expect("has a caret");
    let text = marked.replace('^', "");
    let text = text.strip_prefix("hist:").expect("has the prefix");
    let refusal = match compile(event, text.as_bytes()) {
        Ok(_) => panic!("{marked}: accepted"),
        Err(refusal) => refusal,
    };
    let at = u16::try_from(at).expect("short");

    assert_eq!(refusal.errno, errno, "{marked}");
    assert_eq!(refusal.entry(), Some(LogEntry { kind, at }), "{marked}");
}

/// Checks that a command is refused with `errno` and an entry of our own, whose caret is where `^`
/// stands.
pub(crate) fn explains(event: &Event, marked: &str, errno: Errno, kind: ErrKind) {
    assert!(kind as usize > ErrKind::NeedNohcVal as usize);
    refuses(event, marked, errno, kind);
}

/// The rest of a line without options.
pub(crate) const TAIL: &str = ":vals=hitcount:sort=hitcount:size=2048";

/// A trigger of `keys` alone, printed as `printed`.
pub(crate) fn keys(event: &Event, keys: &str, printed: &str) -> Program {
    accepts(
        event,
        &format!("keys={keys}"),
        &format!("keys={printed}{TAIL}"),
    )
}
