// SPDX-License-Identifier: GPL-2.0

//! `overhead` and `overhead(P%)`: the measured cost of a trigger, and pausing a trigger that costs too much.
//!
//! `ffi/meter.rs` counts and times hits, `overhead.rs` has the arithmetic. Once a second a work item of the command
//! checks the triggers with a budget, as long as there are any. It takes `event_mutex`, and finds triggers in the list
//! of the command: a removal, which holds the mutex, need not wait for it.
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

/// The measured cost of one trigger.
pub(super) struct HitCost(Guarded<CostState>);

struct CostState {
    /// The time at which the trigger was created or cleared, in ns of the monotonic clock, and the cost up to then.
    since: u64,
    before: Cost,
    /// The time over which the cost is compared with the budget.
    window: Window,
    /// Whether the trigger was paused because it cost too much, and was not continued since.
    is_over: bool,
}

impl HitCost {
    /// Returns the gauge of a new trigger.
    pub(super) fn new() -> Result<KBox<Self>> {
        let now = Moment::now().monotonic;
        let state = CostState {
            since: now,
            before: Cost::default(),
            window: Window::new(now, Cost::default()),
            is_over: false,
        };
        Ok(KBox::new(Self(Guarded::new(state)), GFP_KERNEL)?)
    }
}

/// Returns the cost of a trigger since it was created or cleared; `None` without `overhead`.
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

/// Called when a trigger is paused or continued by a command: its cost up to now is not compared with the budget any
/// more.
pub(super) fn decided(trigger: &Attached<'_, HistTrigger>, held: &EventMutexHeld) {
    if let (Some(gauge), Some(meter)) = (&trigger.data().gauge, trigger.meter()) {
        let state = gauge.0.get(held);
        state.is_over = false;
        state.window = Window::new(Moment::now().monotonic, meter.cost());
    }
}

/// Restarts the measurement for all triggers of a table that is being cleared.
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

/// Pauses the triggers that exceed their budget. Returns whether any trigger has a budget.
pub(super) fn watch(command: &Command<HistTrigger>, held: &EventMutexHeld) -> bool {
    let mut are_any = false;
    for trigger in command.triggers(held) {
        let (Some(gauge), Some(meter)) = (&trigger.data().gauge, trigger.meter()) else {
            continue;
        };
        let Some(budget) = trigger.data().definition.program.budget else {
            continue;
        };
        are_any = true;
        let state = gauge.0.get(held);
        let now = Moment::now().monotonic;
        let is_over = state.window.end(budget, &meter.cost(), now, cpus::online());
        if !trigger.is_paused() {
            // A hit of another event may have continued the trigger.
            state.is_over = is_over;
            if is_over {
                trigger.set_paused(true);
                // The new window excludes hits since the cost was read, for which a later `cont` must not be charged.
                state.window = Window::new(now, meter.cost());
            }
        }
    }
    are_any
}
