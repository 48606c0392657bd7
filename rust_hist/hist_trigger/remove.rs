// SPDX-License-Identifier: GPL-2.0

//! Taking triggers off their events.
//!
//! C counterpart: `hist_unregister_trigger()`, `hist_unreg_all()` and `hist_trigger_check_refs()`.
//!
//! Context: process, under `event_mutex`, without `trace_types_lock`.

use super::{
    hold::Hold,
    line,
    log::Log,
    shown,
    HistTrigger, //
};
use crate::{
    error::{
        ErrKind,
        Errno,
        Refusal, //
    },
    ffi::{
        command::{
            Attached,
            Command, //
        },
        event::EventFile,
        guard::{
            wait_for_hits,
            EventMutexHeld, //
        },
        text::TextBuf, //
    },
    program::Program, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Takes a trigger off its event, and the helpers that nobody else reads off theirs.
pub(super) fn remove(trigger: Attached<'_, HistTrigger>, held: &EventMutexHeld) {
    let command = trigger.command();
    take_off(trigger, held);
    remove_helpers(command, held);
}

/// Takes the helpers off their events that nobody reads any more.
fn remove_helpers(command: &Command<HistTrigger>, held: &EventMutexHeld) {
    let unused = |trigger: &Attached<'_, HistTrigger>| {
        trigger.data().helper && user(trigger, held).is_none()
    };
    while let Some(helper) = command.triggers(held).find(unused) {
        take_off(helper, held);
    }
}

/// Takes a trigger off its event.
///
/// Triggers that read its variables keep its table.
fn take_off(trigger: Attached<'_, HistTrigger>, held: &EventMutexHeld) {
    let command = trigger.command();
    let table = trigger.data().table.clone();
    let mut hold = Hold::kept(
        trigger.file().instance(),
        &trigger.data().definition.program,
    );
    trigger.remove(held);

    let is_last = || {
        !command
            .triggers(held)
            .any(|other| Arc::ptr_eq(&other.data().table, &table))
    };
    if table.snapshot().is_some() && is_last() {
        wait_for_hits();
        hold.snapshot(table);
    }
}

/// Another trigger that reads variables of this one.
pub(super) fn user<'a>(
    trigger: &Attached<'a, HistTrigger>,
    held: &'a EventMutexHeld,
) -> Option<Attached<'a, HistTrigger>> {
    let table = &trigger.data().table;
    trigger.command().triggers(held).find(|other| {
        let sources = &other.data().sources;
        sources.iter().any(|source| Arc::ptr_eq(source, table))
    })
}

/// Says that `user` reads variables of a trigger that is to go.
///
/// PARITY: `event_hist_trigger_parse()` does not say why, `hist_unreg_all()` nothing at all.
pub(super) fn in_use(user: &Attached<'_, HistTrigger>) -> Refusal {
    let refusal = Refusal::new(Errno::Ebusy, ErrKind::TriggerInUse, 0);
    match shown(user.file(), &user.data().definition) {
        Ok(user) => refusal.detailed(&[user.as_bytes()]),
        // Without memory nobody is told who it is.
        Err(_) => refusal,
    }
}

/// Says that no trigger of the event is the one that `log` is about, `program`, and shows that which is most like it,
/// with a caret where that differs.
///
/// PARITY: C says nothing. The command succeeds.
pub(super) fn nothing(log: &Log<'_>, program: &Program, held: &EventMutexHeld) {
    let mut nearest: Option<(usize, Attached<'_, HistTrigger>)> = None;
    for trigger in Attached::<HistTrigger>::all(log.file, held) {
        let definition = &trigger.data().definition;
        let likeness = program.likeness(log.text, &definition.program, &definition.text);
        // Of several it is the first.
        if nearest.as_ref().is_none_or(|(most, _)| likeness > *most) {
            nearest = Some((likeness, trigger));
        }
    }
    match nearest {
        // Without memory there is no entry.
        Some((_, nearest)) => drop(compare(log, program, &nearest)),
        None => log.note(ErrKind::NoneToRemove, b"", 1),
    }
}

/// Shows the trigger `nearest`, which is not `program`.
fn compare(log: &Log<'_>, program: &Program, nearest: &Attached<'_, HistTrigger>) -> Result {
    let definition = &nearest.data().definition;
    let line = line(nearest)?;
    let at = program.difference(log.text, &definition.program, &definition.text)?;
    let typed = TextBuf::joined(&[b"!", log.prefix, b":", log.text])?;
    let params = line.as_bytes().get(definition.prefix.len() + 1..);
    let there = Log {
        prefix: definition.prefix,
        text: params.unwrap_or_default(),
        file: log.file,
        removes: false,
    };
    there.note(ErrKind::NotRemoved, typed.as_bytes(), at);
    Ok(())
}

/// Takes all triggers off an event, unless a variable of one of them is read by another trigger.
pub(super) fn remove_all(file: &EventFile, held: &EventMutexHeld) {
    let used = Attached::all(file, held)
        .find_map(|trigger| user(&trigger, held).map(|user| (trigger, user)));
    if let Some((used, user)) = used {
        let definition = &used.data().definition;
        let log = Log {
            prefix: definition.prefix,
            text: &definition.text,
            file,
            removes: false,
        };
        // There is nobody to give the errno to: the file is opened all the same.
        let _ = log.refuse(&in_use(&user));
        return;
    }
    // Each time from the beginning: with a trigger others of the list may go.
    while let Some(trigger) = Attached::all(file, held).next() {
        remove(trigger, held);
    }
}
