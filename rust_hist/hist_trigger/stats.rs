// SPDX-License-Identifier: GPL-2.0

//! The `hist_stats` file: what became of every call of the triggers of an event, and their memory.
//!
//! There is no C counterpart: C does not count what it loses by nesting, nor what it ignores.
//!
//! `calls` is the sum of `hits`, the two kinds of drops, and `ignored`, always. `lost_saves` counts the
//! hits whose `save()` found no room, `lost_traces` the records of synthetic events that could not be
//! written, `lost_limited` the actions that the trigger's `limit()` has left out, `cut_strings` the strings that were
//! longer than what keys have of them. All begin at 0 when the table is made or
//! cleared. `entries` are those of the present epoch, whose number is shown once a reader of `hist_pipe` has been given an
//! earlier one. With `overhead` there is what the calls have cost, and who has paused the trigger if that was too much. With `expire(T)`
//! `expired` counts the starts that nobody has ended, `overwritten` those that the next one of their key took the place of
//! before, and `forced` how often the time was cut short for want of room. Triggers of one name have their table, and
//! so their account, in common. A line begins with its title and a colon, an empty line comes between two
//! triggers.

use super::{
    overhead,
    storage::{
        Counted,
        Grown, //
    },
    told::{
        Tell,
        Told, //
    },
    write_line,
    Definition,
    HistTrigger, //
};
use crate::{
    ffi::{
        command::Attached,
        guard::EventMutexHeld,
        text::TextBuf, //
    },
    render::json::Overhead,
    text::Out, //
};
use core::{
    fmt,
    fmt::Write, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// The kind of file.
pub(crate) type StatsFile = Told<Stats>;

/// What it tells of a trigger.
pub(crate) struct Stats {
    /// The beginning: an empty line behind another trigger, and the line of this one.
    head: TextBuf,
    definition: Arc<Definition>,
    counted: Counted,
    memory: usize,
    /// The number of the epoch, if readers have been given earlier ones.
    epoch: Option<u64>,
    overhead: Option<Overhead>,
    grown: Option<Grown>,
    forced: Option<u64>,
}

impl Tell for Stats {
    const NONE: &'static [u8] = b"# no triggers\n";

    fn of(n: usize, trigger: &Attached<'_, HistTrigger>, held: &EventMutexHeld) -> Result<Self> {
        let data = trigger.data();
        let table = &data.table;
        let mut head = TextBuf::charged();
        head.write_str(if n > 0 { "\ntrigger: " } else { "trigger: " })
            .and_then(|()| write_line(trigger, &mut head))
            .map_err(|_| ENOMEM)?;
        Ok(Self {
            head,
            definition: data.definition.clone(),
            counted: table.counted(held)?,
            memory: data.memory(held) + trigger.meter().map_or(0, |meter| meter.bytes()),
            epoch: table.consumed_epoch(held),
            overhead: overhead::of(trigger, held),
            grown: table.grown(held),
            forced: table.forced(held),
        })
    }

    fn tell(&self, out: &mut TextBuf) -> fmt::Result {
        let (maps, program) = (&self.counted.maps, &self.definition.program);
        let account = self.counted.before(program).plus(&maps.account(program));
        let shape = maps.youngest().shape();

        out.write_bytes(self.head.as_bytes())?;
        let lines = [
            ("calls", account.calls()),
            ("hits", account.hits),
            ("dropped_full", account.dropped_full),
            ("dropped_nested", account.dropped_nested),
            ("ignored", account.ignored),
            ("lost_saves", account.lost_saves),
            ("lost_traces", account.lost_traces),
            // CAST: counts of things in memory.
            ("entries", maps.keys() as u64),
            ("size", shape.elts() as u64),
            ("shards", shape.shards() as u64),
            ("cpus_per_shard", shape.cpus_per_shard()),
            ("memory", self.memory as u64),
        ];
        for (title, n) in lines {
            writeln!(out, "{title}: {n}")?;
        }
        if let Some(n) = self.epoch {
            writeln!(out, "epoch: {n}")?;
        }
        if program.limit().is_some() {
            writeln!(out, "lost_limited: {}", account.lost_limited)?;
        }
        if program.may_cut() {
            writeln!(out, "cut_strings: {}", account.cut_strings)?;
        }
        if let Some(overhead) = &self.overhead {
            writeln!(out, "overhead_ns: {}", overhead.ns)?;
            writeln!(out, "overhead_ppm: {}", overhead.ppm)?;
            writeln!(out, "overhead_samples: {}", overhead.samples)?;
            if overhead.is_over {
                out.write_str("paused_by: overhead\n")?;
            }
        }
        if let Some(grown) = &self.grown {
            writeln!(out, "grown: {}", grown.times)?;
            writeln!(out, "grow_failed: {}", grown.failed)?;
        }
        if let Some(forced) = self.forced {
            writeln!(out, "expired: {}", account.expired)?;
            writeln!(out, "overwritten: {}", account.overwritten)?;
            writeln!(out, "forced: {forced}")?;
        }
        Ok(())
    }
}
