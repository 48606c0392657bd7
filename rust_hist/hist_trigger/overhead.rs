// SPDX-License-Identifier: GPL-2.0

//! `overhead` and `overhead(P%)`: what a trigger has cost, and the end of one that costs too much.
//!
//! `ffi/meter.rs` counts and times hits, `overhead.rs` has the arithmetic. A trigger with a budget is looked at once a
//! second by a work of the command, until there is none any more. The work takes `event_mutex`, and finds triggers on the
//! list of the command: a removal, which holds that mutex, has nothing to wait for.
//!
//! There is no C counterpart.
//!
//! Context: process, under `event_mutex`.

use super::{
    storage::Table,
    HistTrigger, //
};
use crate::{
    ffi::{
        clock::Moment,
        command::{
            Attached,
            Command, //
        },
        cpus,
        guard::{
            EventMutexHeld,
            Guarded, //
        }, //
    },
    overhead::{
        Cost,
        Window, //
    },
    render::json, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// What is known of the cost of one trigger.
pub(super) struct Gauge(Guarded<State>);

struct State {
    /// When it was made or cleared, in ns of the monotonic clock, and what hits had cost until then.
    since: u64,
    before: Cost,
    /// What is compared with the budget.
    window: Window,
    /// It was paused because it cost too much, and nobody has continued it.
    is_over: bool,
}

impl Gauge {
    /// That of a new trigger.
    pub(super) fn new() -> Result<KBox<Self>> {
        let now = Moment::now().monotonic;
        let state = State {
            since: now,
            before: Cost::default(),
            window: Window::new(now, Cost::default()),
            is_over: false,
        };
        Ok(KBox::new(Self(Guarded::new(state)), GFP_KERNEL)?)
    }
}

/// What a trigger has cost since it was made or cleared; `None` if it is not asked for.
pub(super) fn of(
    trigger: &Attached<'_, HistTrigger>,
    held: &EventMutexHeld,
) -> Option<json::Overhead> {
    let (gauge, meter) = (trigger.data().gauge.as_ref()?, trigger.meter()?);
    let state = gauge.0.get(held);
    let cost = meter.cost().since(&state.before);
    let elapsed = Moment::now().monotonic.saturating_sub(state.since);
    Some(json::Overhead {
        ns: cost.mean(),
        ppm: cost.ppm(elapsed),
        samples: cost.samples,
        is_over: state.is_over && trigger.is_paused(),
    })
}

/// Says that somebody has paused or continued a trigger: what it has cost until then counts no more.
pub(super) fn decided(trigger: &Attached<'_, HistTrigger>, held: &EventMutexHeld) {
    if let (Some(gauge), Some(meter)) = (&trigger.data().gauge, trigger.meter()) {
        let state = gauge.0.get(held);
        state.is_over = false;
        state.window = Window::new(Moment::now().monotonic, meter.cost());
    }
}

/// Begins anew with the cost of the triggers of a table, which is cleared.
pub(super) fn clear(command: &Command<HistTrigger>, table: &Arc<Table>, held: &EventMutexHeld) {
    let now = Moment::now().monotonic;
    for trigger in command.triggers(held) {
        if !Arc::ptr_eq(&trigger.data().table, table) {
            continue;
        }
        if let (Some(gauge), Some(meter)) = (&trigger.data().gauge, trigger.meter()) {
            let state = gauge.0.get(held);
            (state.since, state.before) = (now, meter.cost());
        }
    }
}

/// Pauses the triggers whose budget is exceeded. Says whether there are any with a budget.
pub(super) fn watch(command: &Command<HistTrigger>, held: &EventMutexHeld) -> bool {
    let mut are_any = false;
    for trigger in command.triggers(held) {
        let (Some(gauge), Some(meter)) = (&trigger.data().gauge, trigger.meter()) else {
            continue;
        };
        let Some(budget) = trigger.data().definition.program.budget() else {
            continue;
        };
        are_any = true;
        let state = gauge.0.get(held);
        let now = Moment::now().monotonic;
        let is_over = state.window.end(budget, &meter.cost(), now, cpus::online());
        if !trigger.is_paused() {
            // A hit of another event may have continued it.
            state.is_over = is_over;
            if is_over {
                trigger.set_paused(true);
                // Without what has come while this was decided, which is not that of whoever continues it.
                state.window = Window::new(now, meter.cost());
            }
        }
    }
    are_any
}
