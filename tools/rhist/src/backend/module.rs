// SPDX-License-Identifier: MIT OR Apache-2.0

//! Plans for the module: latencies by `join()`, fine intervals, and epochs, each of which a read of `hist_pipe` ends.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::PathBuf;

use super::{finish, Lost, Maker, Plan, Source};
use crate::error::{Error, Result};
use crate::model::Table;
use crate::parse::json;
use crate::question::Measure;
use crate::tracefs::{read, Tracefs};

pub(super) fn plan(maker: &mut Maker<'_>) -> Result<()> {
    let question = maker.question;
    let size = maker.size();
    maker.needs();
    match &question.measure {
        Measure::Count { event, .. } | Measure::Distribution { event, .. } if question.lines => {
            super::lines::plan(maker, &event.event, event.filter.as_deref());
        }
        Measure::Count { event, sums } => {
            super::c::count(maker, event, sums);
        }
        Measure::Distribution { event, field } => {
            let keys = maker.keys(Some(maker.interval(&field.field)));
            let largest = match maker.exemplars("largest") {
                none if none.is_empty() => none,
                kept => format!(":largest={}{kept}", field.field),
            };
            let vals = maker.shown(&field.field);
            let text = format!("keys={keys}:vals={vals}:size={size}{largest}");
            maker.trigger(&event.event, &text, &event.condition());
            maker.plan.event = event.event.clone();
        }
        // A filter sees the fields of one event alone, no number that is computed from two.
        Measure::Latency { stack, only, .. } if *stack || only.is_some() || question.lines => {
            super::c::latency(maker)?
        }
        Measure::Latency {
            start,
            start_on,
            end,
            end_on,
            waiting,
            expires,
            ..
        } => {
            let text = format!(
                "keys={}:ts0=common_timestamp:{}",
                start_on.join(","),
                maker.starts(*waiting, expires)
            );
            maker.trigger(&start.event, &text, &start.condition());
            let keys = maker.keys(Some(maker.interval("$lat")));
            let text = format!(
                "join({}):lat=common_timestamp-$ts0:keys={keys}:vals={}:size={size}{}",
                end_on.join(","),
                maker.shown("$lat"),
                maker.exemplars("lat")
            );
            maker.trigger(&end.event, &text, &end.condition());
            maker.plan.event = maker.event(&end.event);
        }
    }
    let file = if maker.backend.command() == "rhist" {
        "rhist_pipe"
    } else {
        "hist_pipe"
    };
    maker.plan.file = file.into();
    super::c::units(maker);
    Ok(())
}

/// Reads the file `hist_pipe`.
pub struct Pipe {
    file: File,
    path: PathBuf,
    stats: Vec<PathBuf>,
    plan: Plan,
    buffer: Vec<u8>,
}

impl Pipe {
    /// Opens the plan's `hist_pipe` in an instance in which the plan has been carried out.
    pub fn open(instance: &Tracefs, plan: &Plan) -> Result<Self> {
        let path = instance.event_file(&plan.event, &plan.file);
        let stats = plan.file.replace("_pipe", "_stats");
        Ok(Self {
            file: File::open(&path).map_err(|error| Error::file("open", &path, &error))?,
            stats: plan
                .events
                .iter()
                .map(|event| instance.event_file(event, &stats))
                .collect(),
            path,
            plan: plan.clone(),
            buffer: Vec::new(),
        })
    }

    /// Calls `each` with the title and the number of each line of all triggers' statistics.
    fn each_number(&self, mut each: impl FnMut(&str, u64)) -> Result<()> {
        for path in &self.stats {
            for line in String::from_utf8_lossy(&read(path)?).lines() {
                if let Some((title, number)) = line.split_once(": ") {
                    each(title, number.parse().unwrap_or_default());
                }
            }
        }
        Ok(())
    }

    fn fill(&mut self) -> io::Result<()> {
        self.buffer.clear();
        self.file.rewind()?;
        self.file.read_to_end(&mut self.buffer)?;
        Ok(())
    }
}

impl Source for Pipe {
    fn next(&mut self) -> Result<Table> {
        self.fill()
            .map_err(|error| Error::file("read", &self.path, &error))?;
        let tables = json::tables(&self.buffer)?;
        let mut table = tables
            .into_iter()
            .find(|table| table.consumed)
            .ok_or_else(|| {
                error!(
                    "{} has no table, so somebody has removed the trigger; start again",
                    self.path.display()
                )
            })?;
        finish(&mut table, &self.plan);
        // The cost is the sum over all triggers, not only the last one's.
        if let Some(cost) = &mut table.cost {
            *cost = 0;
            self.each_number(|title, number| {
                if title == "overhead_ppm" {
                    *cost += number;
                }
            })?;
        }
        Ok(table)
    }

    fn lines(&self) -> Option<&[u8]> {
        Some(&self.buffer)
    }

    fn lost(&mut self) -> Result<Lost> {
        let mut lost = Lost::default();
        self.each_number(|title, number| match title {
            "dropped_full" => lost.full += number,
            "dropped_nested" => lost.nested += number,
            "lost_traces" => lost.traces += number,
            "expired" => *lost.expired.get_or_insert(0) += number,
            "overwritten" => *lost.overwritten.get_or_insert(0) += number,
            _ => {}
        })?;
        Ok(lost)
    }
}
