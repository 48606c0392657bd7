// SPDX-License-Identifier: GPL-2.0

//! Any text after `hist:`, `enable_hist:` or `triggers=`: it makes a trigger whose line makes the
//! same trigger again, or is refused with an explanation whose caret is inside; with too little
//! memory nothing else is said; and no line is longer than what was typed allows.

use rust_hist::{
    alloc::fail_after,
    error::{
        Errno,
        Refusal, //
    },
    lang::{
        load_entries,
        EnableSpec, //
    },
};

use crate::lang_common::{
    checked::{
        check,
        check_with,
        world, //
    },
    create,
    line_of,
    ZOO, //
};

/// What one write to a `trigger` file can hold.
const TEXT_MAX: usize = 4095;
/// Bytes of a line for each byte of the text: the names of implicit columns and the state are added,
/// and a field's name may be shown with its key, its sort and its modifier.
const GROWTH: usize = 4;
const ADDED: usize = 400;

pub(crate) fn run(input: &[u8]) {
    let text = &input[..input.len().min(TEXT_MAX)];

    check(&ZOO, text);
    check_with(&mut world(), text);
    memory_may_end(text);
    others(text);
    if let Ok(program) = create(&mut world(), text) {
        assert!(line_of(&program, text).len() <= text.len() * GROWTH + ADDED);
    }
}

/// Lets one allocation fail; which, the text decides.
fn memory_may_end(text: &[u8]) {
    let left = text
        .iter()
        .fold(0usize, |n, b| n * 31 % 211 + usize::from(*b))
        % 100;
    let mut world = world();
    let expected = create(&mut world, text).map(|_| ());

    fail_after(Some(left));
    let found = create(&mut world, text).map(|_| ());
    fail_after(None);
    assert!(found == expected || found == Err(Refusal::silent(Errno::Enomem)));
}

/// The other two grammars.
fn others(text: &[u8]) {
    if let Ok(spec) = EnableSpec::parse(text) {
        assert!(spec.system.len() + spec.event.len() < text.len());
        let _ = (spec.limit(), spec.filter());
    }
    let mut rest = text.len();
    for entry in load_entries(text) {
        assert!(!entry.text.is_empty() && entry.text.len() <= rest);
        rest -= entry.text.len();
        let (command, params) = entry.command();
        assert!(command.len() + params.map_or(0, <[u8]>::len) <= entry.text.len());
        if let Some((system, event)) = entry.names() {
            assert_eq!(system.len() + event.len() + 1, entry.event.len());
        }
    }
}
