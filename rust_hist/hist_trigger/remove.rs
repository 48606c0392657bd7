// SPDX-License-Identifier: GPL-2.0

//! Removing triggers from their events.
//!
//! C counterpart: `hist_unregister_trigger()`, `hist_unreg_all()` and `hist_trigger_check_refs()`.
//!
//! Context: process, under `event_mutex`, without `trace_types_lock`.

use super::{
    hold::Hold,
    log::Log,
    shown,
    write_line,
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

/// Removes a trigger, and the helpers that only it has read.
pub(super) fn remove(trigger: Attached<'_, HistTrigger>, held: &EventMutexHeld) {
    let command = trigger.command();
    take_off(trigger, held);
    remove_helpers(command, held);
}

/// Removes the helpers whose variables no trigger reads any more.
fn remove_helpers(command: &Command<HistTrigger>, held: &EventMutexHeld) {
    let unused = |trigger: &Attached<'_, HistTrigger>| {
        trigger.data().helper && user(trigger, held).is_none()
    };
    while let Some(helper) = command.triggers(held).find(unused) {
        take_off(helper, held);
    }
}

/// Detaches a trigger from its event.
///
/// Triggers that read the variables keep the table.
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

/// Returns a trigger that reads variables of this one, if there is one.
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

/// Logs that a trigger is kept, as `user` reads its variables. The caller returns an errno, if it can.
pub(super) fn log_in_use(trigger: &Attached<'_, HistTrigger>, user: &Attached<'_, HistTrigger>) {
    let definition = &trigger.data().definition;
    let log = Log {
        prefix: definition.prefix,
        text: &definition.text,
        file: trigger.file(),
        removes: false,
    };
    let _ = log.refuse(&in_use(user));
}

/// Returns the refusal to remove a trigger whose variables `user` reads.
///
/// PARITY: `event_hist_trigger_parse()` logs no reason, `hist_unreg_all()` nothing at all.
pub(super) fn in_use(user: &Attached<'_, HistTrigger>) -> Refusal {
    let refusal = Refusal::new(Errno::Ebusy, ErrKind::TriggerInUse, 0);
    match shown(user.file(), &user.data().definition) {
        Ok(user) => refusal.detailed(&[user.as_bytes()]),
        // If there is no memory, the refusal does not name the user.
        Err(_) => refusal,
    }
}

/// Logs that the event does not have the trigger `program` of the command in `log`, and shows the most similar trigger,
/// with a caret at the first difference.
///
/// PARITY: C logs nothing. The command succeeds.
pub(super) fn nothing(log: &Log<'_>, program: &Program, held: &EventMutexHeld) {
    let mut nearest: Option<(usize, Attached<'_, HistTrigger>)> = None;
    for trigger in Attached::<HistTrigger>::all(log.file, held) {
        let definition = &trigger.data().definition;
        let likeness = program.likeness(log.text, &definition.program, &definition.text);
        // Of equally similar triggers, the first one is shown.
        if nearest.as_ref().is_none_or(|(most, _)| likeness > *most) {
            nearest = Some((likeness, trigger));
        }
    }
    match nearest {
        // If there is no memory, nothing is logged.
        Some((_, nearest)) => drop(compare(log, program, &nearest)),
        None => log.say(ErrKind::NoneToRemove.text(), b"", 1),
    }
}

/// Logs the line of `nearest` with a caret at its first difference from `program`.
fn compare(log: &Log<'_>, program: &Program, nearest: &Attached<'_, HistTrigger>) -> Result {
    let definition = &nearest.data().definition;
    let mut line = TextBuf::new();
    write_line(nearest, &mut line).map_err(|_| ENOMEM)?;
    let at = program.difference(log.text, &definition.program, &definition.text)?;
    let typed = TextBuf::joined(&[b"!", log.prefix, b":", log.text])?;
    let params = line.as_bytes().get(definition.prefix.len() + 1..);
    let params = params.and_then(|params| params.strip_suffix(b"\n"));
    let there = Log {
        prefix: definition.prefix,
        text: params.unwrap_or_default(),
        file: log.file,
        removes: false,
    };
    there.say(ErrKind::NotRemoved.text(), typed.as_bytes(), at);
    Ok(())
}

/// Removes all triggers of an event, unless another trigger reads a variable of one of them.
pub(super) fn remove_all(file: &EventFile, held: &EventMutexHeld) {
    let used = Attached::all(file, held)
        .find_map(|trigger| user(&trigger, held).map(|user| (trigger, user)));
    if let Some((used, user)) = used {
        // No errno can be returned: the file is opened nevertheless.
        return log_in_use(&used, &user);
    }
    // Starts from the beginning each time, as the removal of a trigger may remove others of the list.
    while let Some(trigger) = Attached::all(file, held).next() {
        remove(trigger, held);
    }
}
