// SPDX-License-Identifier: MIT OR Apache-2.0

//! Reads the tables of the module in epochs, each of which a read of `hist_pipe` ends.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::PathBuf;

use super::{finish, Lost, Plan, Source};
use crate::error::{Error, Result};
use crate::model::Table;
use crate::parse::json;
use crate::tracefs::{read, Tracefs};

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
