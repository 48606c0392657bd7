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
        Self {
            path: instance.event_file(&plan.event, &plan.file),
            all: plan
                .events
                .iter()
                .map(|event| (event.clone(), instance.event_file(event, &plan.file)))
                .collect(),
            plan: plan.clone(),
            before: None,
            span: Span {
                epoch: 0,
                from: now(ClockId::Monotonic),
                to: now(ClockId::Monotonic),
                real: now(ClockId::Realtime),
            },
        }
    }
}

/// The time of a clock, in nanoseconds.
pub(super) fn now(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    u64::try_from(time.tv_sec).unwrap_or_default() * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or_default()
}

impl Source for Readings {
    fn next(&mut self) -> Result<Table> {
        self.span = Span {
            epoch: self.span.epoch + 1,
            from: self.span.to,
            to: now(ClockId::Monotonic),
            real: now(ClockId::Realtime),
        };
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
