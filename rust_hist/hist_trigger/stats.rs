// SPDX-License-Identifier: GPL-2.0

//! The `hist_stats` file: the outcomes of all calls of an event's triggers, and their memory.
//!
//! There is no C counterpart: C counts neither hits dropped by nesting nor ignored calls.
//!
//! `calls` is always the sum of `hits`, both kinds of drops, and `ignored`. `lost_saves` counts the hits whose `save()`
//! found no room, `lost_traces` the records of synthetic events that could not be written, `lost_limited` the actions
//! that `limit()` has suppressed, `cut_strings` the strings that were longer than the key's room for them. All start at
//! 0 when the table is created or cleared. `entries` are those of the present epoch, whose number is shown once a
//! reader of `hist_pipe` has received an earlier one. With `overhead` the cost of the calls is shown, and whether the
//! trigger was paused because of it. With `expire(T)`, `expired` counts the starts that no end has consumed,
//! `overwritten` those that were set again before, and `forced` how often a generation ended early for lack of room.
//! Triggers with the same name share their table, and so these numbers. A line begins with its title and a colon, an
//! empty line separates two triggers.

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

/// The type of the file.
pub(crate) type StatsFile = Told<StatsText>;

/// The file's text about one trigger.
pub(crate) struct StatsText {
    /// The first lines: an empty line unless the trigger is the first, and the line of the trigger.
    head: TextBuf,
    definition: Arc<Definition>,
    counted: Counted,
    memory: usize,
    /// The number of the epoch, if readers have received earlier ones.
    epoch: Option<u64>,
    overhead: Option<Overhead>,
    grown: Option<Grown>,
    forced: Option<u64>,
}

impl Tell for StatsText {
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
            // CAST: these are numbers of objects in memory.
            ("entries", maps.keys() as u64),
            ("size", shape.elts as u64),
            ("shards", shape.shards as u64),
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
