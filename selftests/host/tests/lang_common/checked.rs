// SPDX-License-Identifier: GPL-2.0

//! What holds for any text that somebody may write to a `trigger` file.

use rust_hist::{
    lang,
    program::{
        ArgSource,
        Handler,
        Kind,
        Program,
        Purpose,
        Resolver, //
    },
};

use super::{
    world::World,
    *, //
};

/// Events with variables to refer to, and synthetic events.
pub(crate) fn world() -> World {
    World::new()
        .synth("num u8 a")
        .synth("txt char[] a")
        .synth("sts long[] a")
        .synth("saver pid_t a")
        .synth("big u64 a; u64 b; u64 c; u64 d")
        .with(
            "sched",
            "switch",
            "keys=next_pid:ts0=common_timestamp.usecs,who=next_comm,prio=next_prio,both=next_pid",
        )
        .with(
            "kmem",
            "kmalloc",
            "keys=common_pid:seven=7,both=node,st=common_stacktrace",
        )
        .with("kmem", "kmalloc", "keys=cpu:other=ptr if node > 1")
}

/// What must hold for any text: no panic; spans inside it; a refusal says something sensible; what
/// is printed makes the same trigger and the same line.
pub(crate) fn check(event: &Event, text: &[u8]) -> bool {
    check_with(&mut event.clone(), text)
}

/// As [`check`], for the event that `resolver` knows.
pub(crate) fn check_with(resolver: &mut dyn Resolver, text: &[u8]) -> bool {
    match create(resolver, text) {
        Err(refusal) => {
            // With memory enough, each refusal is explained.
            let entry = refusal.entry().expect("an entry");

            assert!(usize::from(entry.at) <= b"hist:".len() + text.len());
            assert!(!entry.kind.text().to_bytes().is_empty());
            false
        }
        Ok(program) => {
            let line = line_of(&program, text);
            let printed = typed(&line);
            let again = create(resolver, printed).unwrap_or_else(|refusal| {
                panic!(
                    "{:?} was printed as {:?}: {refusal:?}",
                    String::from_utf8_lossy(text),
                    String::from_utf8_lossy(printed)
                )
            });

            assert!(program.same_trigger(text, &again, printed));
            assert!(again.same_trigger(printed, &program, text));
            assert_eq!(line_of(&again, printed), line);
            assert_eq!(again.bits, program.bits);
            assert_eq!(again.nohitcount, program.nohitcount);
            assert_eq!(again.usecs, program.usecs);
            assert_eq!(again.timestamps, program.timestamps);
            assert_eq!(again.aux_words(), program.aux_words());
            check_places(&program);

            // A removal finds it.
            let spec = lang::parse(b"hist", printed).expect("parses");
            let removal =
                Program::compile(&spec, resolver, Purpose::Change).expect("can be looked for");

            assert!(program.same_trigger(text, &removal, printed));
            true
        }
    }
}

/// What must hold of the places in an entry: no two share a word, pairs are aligned, all are inside.
fn check_places(program: &Program) {
    let comm = usize::from(program.needs_comm()) * 2;
    let mut taken: Vec<(usize, usize)> = vec![(0, comm)];

    for var in program.vars.iter() {
        let cell = var.cell;

        if !var.is_stored() {
            continue;
        }
        assert!(cell.words >= 2);
        assert!(cell.kind != Kind::Number || (cell.at % 2 == 0 && cell.words == 2));
        taken.push((cell.at.into(), cell.words.into()));
    }
    for action in program.actions.iter() {
        assert!(program.args_of(action).iter().all(|arg| match arg.source {
            ArgSource::Ref(n) => usize::from(n) < program.refs.len(),
            ArgSource::Own(n) => usize::from(n) < program.vars.len(),
            ArgSource::Field(_) => true,
        }));

        let Some(track) = action.track else {
            assert!(matches!(action.handler, Handler::Match { .. }));
            continue;
        };

        assert_eq!(track.at % 2, 0);
        taken.push((track.at.into(), track.words()));
    }
    taken.sort_unstable();
    for pair in taken.windows(2) {
        assert!(pair[0].0 + pair[0].1 <= pair[1].0);
    }

    let (at, words) = taken[taken.len() - 1];

    assert!(at + words <= program.aux_words());
    assert_eq!(program.aux_words() % 2, 0);
}
