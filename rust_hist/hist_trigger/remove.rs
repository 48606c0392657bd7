// SPDX-License-Identifier: GPL-2.0

//! Taking triggers off their events.
//!
//! C counterpart: `hist_unregister_trigger()`, `hist_unreg_all()` and `hist_trigger_check_refs()`.
//!
//! Context: process, under `event_mutex`, without `trace_types_lock`.

use super::{
    hold::Hold,
    log::Log,
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
        }, //
    }, //
};
use kernel::sync::Arc;

/// Takes a trigger off its event, and the helpers that nobody else reads off theirs.
pub(super) fn remove(trigger: Attached<'_, HistTrigger>, held: &EventMutexHeld) {
    let command = trigger.command();
    take_off(trigger, held);
    remove_helpers(command, held);
}

/// Takes the helpers off their events that nobody reads any more.
fn remove_helpers(command: &Command<HistTrigger>, held: &EventMutexHeld) {
    let unused =
        |trigger: &Attached<'_, HistTrigger>| trigger.data().helper && !is_used(trigger, held);
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

/// Whether another trigger reads variables of this one.
pub(super) fn is_used(trigger: &Attached<'_, HistTrigger>, held: &EventMutexHeld) -> bool {
    let table = &trigger.data().table;
    trigger.command().triggers(held).any(|other| {
        let sources = &other.data().sources;
        sources.iter().any(|source| Arc::ptr_eq(source, table))
    })
}

/// Says that another trigger reads variables of the one that `log` is about.
///
/// PARITY: `event_hist_trigger_parse()` does not say why, `hist_unreg_all()` nothing at all.
pub(super) fn in_use() -> Refusal {
    Refusal::new(Errno::Ebusy, ErrKind::TriggerInUse, 0)
}

/// Takes all triggers off an event, unless a variable of one of them is read by another trigger.
pub(super) fn remove_all(file: &EventFile, held: &EventMutexHeld) {
    if let Some(used) = Attached::all(file, held).find(|trigger| is_used(trigger, held)) {
        let definition = &used.data().definition;
        let log = Log {
            prefix: definition.prefix,
            text: &definition.text,
            file,
        };
        // There is nobody to give the errno to: the file is opened all the same.
        let _ = log.refuse(&in_use());
        return;
    }
    // Each time from the beginning: with a trigger others of the list may go.
    while let Some(trigger) = Attached::all(file, held).next() {
        remove(trigger, held);
    }
}
