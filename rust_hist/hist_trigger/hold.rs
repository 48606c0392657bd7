// SPDX-License-Identifier: GPL-2.0

//! Resources of its instance that a trigger holds while it is attached.
//!
//! C counterpart: `save_hist_vars()`, `tracing_set_filter_buffering()` and the resources of `create_actions()`.
//!
//! All of them are released when the trigger is removed, not when it is freed a grace period later: right after the
//! removal the instance can be removed, or another trigger created. They need no release when the instance is removed:
//! a trigger that holds more than time stamps prevents that.
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

/// Returns whether a trigger prevents the removal of its instance: triggers on other events may read its variables, or
/// it reads theirs.
pub(super) fn needs_instance(program: &Program) -> bool {
    !program.vars.is_empty() || !program.refs.is_empty()
}

/// The held resources; dropping this releases them.
pub(super) struct Hold<'a> {
    instance: Instance<'a>,
    /// Whether the instance is pinned, so that it cannot be removed.
    pinned: bool,
    /// Whether records get their final time stamp when they are reserved.
    stamps: bool,
    /// The table that uses the instance's snapshot.
    snapshot: Option<Arc<Table>>,
}

impl<'a> Hold<'a> {
    /// Returns a value that holds nothing yet.
    pub(super) fn new(instance: Instance<'a>) -> Self {
        Self {
            instance,
            pinned: false,
            stamps: false,
            snapshot: None,
        }
    }

    /// Returns the resources that [`Hold::keep`] has left with a trigger, except for the snapshot.
    pub(super) fn kept(instance: Instance<'a>, program: &Program) -> Self {
        Self {
            instance,
            pinned: needs_instance(program),
            stamps: program.timestamps,
            snapshot: None,
        }
    }

    /// Prevents the removal of the instance.
    pub(super) fn pin(&mut self) -> Result {
        self.instance.pin()?;
        self.pinned = true;
        Ok(())
    }

    /// Makes records get their final time stamp when they are reserved.
    pub(super) fn exact_stamps(&mut self) {
        self.instance.refuse_scratch(true);
        self.stamps = true;
    }

    /// Holds the snapshot of the instance for a table, whose hits must be over when this value is dropped.
    pub(super) fn snapshot(&mut self, table: Arc<Table>) {
        self.snapshot = Some(table);
    }

    /// Leaves the resources with a trigger, which is attached from now on.
    pub(super) fn keep(mut self) {
        // The trigger owns the table itself.
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
            self.instance.refuse_scratch(false);
        }
        if self.pinned {
            self.instance.unpin();
        }
    }
}
