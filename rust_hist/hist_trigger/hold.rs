// SPDX-License-Identifier: GPL-2.0

//! What a trigger takes of its instance for as long as it is on its event.
//!
//! C counterpart: `save_hist_vars()`, `tracing_set_filter_buffering()` and what `create_actions()`
//! takes.
//!
//! All of it is given back when the trigger is removed, and not when it is freed a grace period later:
//! whoever removed a trigger can then remove the instance, or make another one in its place. Nothing of
//! it is given back when the instance goes: a trigger that has more than its records' time stamps keeps
//! the instance from going.
//!
//! Context: process, under `event_mutex`.

use super::storage::Table;
use crate::{
    ffi::event::Instance,
    program::Program, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Whether a trigger keeps its instance from being removed: its variables may be read by triggers on
/// other events, or it reads theirs.
pub(super) fn needs_instance(program: &Program) -> bool {
    !program.vars().is_empty() || !program.refs().is_empty()
}

/// What is taken; dropping it gives it back.
pub(super) struct Hold<'a> {
    instance: Instance<'a>,
    /// The instance cannot be removed.
    pinned: bool,
    /// Records carry their final time stamp from the beginning.
    stamps: bool,
    /// The table whose snapshot is that of the instance.
    snapshot: Option<Arc<Table>>,
}

impl<'a> Hold<'a> {
    /// Takes nothing yet.
    pub(super) fn new(instance: Instance<'a>) -> Self {
        Self {
            instance,
            pinned: false,
            stamps: false,
            snapshot: None,
        }
    }

    /// What [`Hold::keep`] left with a trigger, but for the snapshot.
    pub(super) fn kept(instance: Instance<'a>, program: &Program) -> Self {
        Self {
            instance,
            pinned: needs_instance(program),
            stamps: program.needs_timestamp(),
            snapshot: None,
        }
    }

    /// Keeps the instance from being removed.
    pub(super) fn pin(&mut self) -> Result {
        self.instance.pin()?;
        self.pinned = true;
        Ok(())
    }

    /// Has records carry their final time stamp.
    pub(super) fn exact_stamps(&mut self) {
        self.instance.refuse_scratch();
        self.stamps = true;
    }

    /// The instance's snapshot is that of a table, whose hits are over when the value is dropped.
    pub(super) fn snapshot(&mut self, table: Arc<Table>) {
        self.snapshot = Some(table);
    }

    /// Leaves it all with a trigger, which is on its event from now on.
    pub(super) fn keep(mut self) {
        // The table is the trigger's own, too.
        self.snapshot = None;
        core::mem::forget(self);
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        if let Some(snapshot) = self.snapshot.as_ref().and_then(|table| table.snapshot()) {
            snapshot.disable();
        }
        if self.stamps {
            self.instance.allow_scratch();
        }
        if self.pinned {
            self.instance.unpin();
        }
    }
}
