// SPDX-License-Identifier: MIT OR Apache-2.0

//! Reads the tables of C's implementation, whose counts only grow.

use std::path::PathBuf;

use rustix::time::{clock_gettime, ClockId};

use super::{finish, Lost, Plan, Source};
use crate::error::Result;
use crate::model::{Span, Table};
use crate::reading;
use crate::tracefs::{read, Tracefs};

/// Reads the file `hist`, and subtracts the previous reading.
pub struct Readings {
    path: PathBuf,
    all: Vec<(String, PathBuf)>,
    plan: Plan,
    before: Option<Table>,
    span: Span,
}

impl Readings {
    /// Returns readings of the plan's table in `instance`, where the plan has been carried out.
    pub fn open(instance: &Tracefs, plan: &Plan) -> Self {
        let file = |event: &String| (event.clone(), instance.event_file(event, &plan.file));
        Self {
            path: instance.event_file(&plan.event, &plan.file),
            all: plan.events.iter().map(file).collect(),
            plan: plan.clone(),
            before: None,
            span: next_span(None),
        }
    }
}

/// Returns the time from the end of an epoch until now, or now without one.
pub(super) fn next_span(before: Option<Span>) -> Span {
    let now = |clock| {
        let time = clock_gettime(clock);
        u64::try_from(time.tv_sec).unwrap_or_default() * 1_000_000_000
            + u64::try_from(time.tv_nsec).unwrap_or_default()
    };
    let to = now(ClockId::Monotonic);
    Span {
        epoch: before.map_or(0, |before| before.epoch + 1),
        from: before.map_or(to, |before| before.to),
        to,
        real: now(ClockId::Realtime),
    }
}

impl Source for Readings {
    fn next(&mut self) -> Result<Table> {
        self.span = next_span(Some(self.span));
        let mut table = reading::tables(&self.plan.event, &read(&self.path)?)?
            .pop()
            .ok_or_else(|| {
                error!(
                    "{} has no table, so somebody has removed the trigger; start again",
                    self.path.display()
                )
            })?;
        for name in &self.plan.signed {
            if let Some(column) = table.keys.iter().position(|key| key.name == *name) {
                table.signed(column);
            }
            if let Some(column) = table.values.iter().position(|value| value.name == *name) {
                table.signed_sum(column);
            }
        }
        finish(&mut table, &self.plan);
        // The kernel's total excludes hits of rows that were added while it copied the table, so the rows are added up.
        if table.hitcount().is_some() {
            let hits = table.rows.iter().map(|row| table.hits_of(&row.values));
            table.account.hits = hits.sum();
        }
        let mut since = match &self.before {
            Some(before) => table.since(before)?,
            None => table.clone(),
        };
        since.span = Some(self.span);
        self.before = Some(table);
        Ok(since)
    }

    fn lost(&mut self) -> Result<Lost> {
        let mut lost = Lost::default();
        for (event, path) in &self.all {
            for table in reading::tables(event, &read(path)?)? {
                lost.full += table.account.full;
            }
        }
        Ok(lost)
    }
}
