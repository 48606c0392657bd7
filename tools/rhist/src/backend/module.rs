// SPDX-License-Identifier: MIT OR Apache-2.0

//! The module: latencies by `join()`, fine intervals, and epochs that each read of `hist_pipe` ends.

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
        Measure::Count { event, sums } => {
            super::c::count(maker, event, sums);
        }
        Measure::Distribution { event, field } => {
            let keys = maker.keys(Some(maker.interval(&field.field)));
            let text = format!(
                "keys={keys}:vals={}:size={size}{}",
                maker.shown(&field.field),
                event.condition()
            );
            maker.trigger(&event.event, text);
            maker.plan.event = event.event.clone();
        }
        // A filter sees the fields of an event alone, not what is reckoned from two.
        Measure::Latency { stack, only, .. } if *stack || only.is_some() => {
            super::c::latency(maker)?
        }
        Measure::Latency {
            start,
            start_on,
            end,
            end_on,
            waiting,
            ..
        } => {
            let text = format!(
                "keys={}:ts0=common_timestamp:size={waiting}{}",
                start_on.join(","),
                start.condition()
            );
            maker.trigger(&start.event, text);
            let keys = maker.keys(Some(maker.interval("$lat")));
            let text = format!(
                "join({}):lat=common_timestamp-$ts0:keys={keys}:vals={}:size={size}{}",
                end_on.join(","),
                maker.shown("$lat"),
                end.condition()
            );
            maker.trigger(&end.event, text);
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

/// Reads `hist_pipe`.
pub struct Pipe {
    file: File,
    path: PathBuf,
    stats: Vec<PathBuf>,
    plan: Plan,
    buffer: Vec<u8>,
}

impl Pipe {
    /// Opens it in an instance in which the plan was carried out.
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
                Error::new(format!(
                    "{} has no table, so somebody has removed the trigger; start again",
                    self.path.display()
                ))
            })?;
        finish(&mut table, &self.plan);
        Ok(table)
    }

    fn lines(&self) -> Option<&[u8]> {
        Some(&self.buffer)
    }

    fn lost(&mut self) -> Result<Lost> {
        let mut lost = Lost::default();
        for path in &self.stats {
            for line in String::from_utf8_lossy(&read(path)?).lines() {
                let Some((title, number)) = line.split_once(": ") else {
                    continue;
                };
                let number = || number.parse::<u64>().unwrap_or_default();
                match title {
                    "dropped_full" => lost.full += number(),
                    "dropped_nested" => lost.nested += number(),
                    "lost_traces" => lost.traces += number(),
                    _ => {}
                }
            }
        }
        Ok(lost)
    }
}
