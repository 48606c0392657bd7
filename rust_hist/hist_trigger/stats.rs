// SPDX-License-Identifier: GPL-2.0

//! The `hist_stats` file: what became of every call of the triggers of an event, and their memory.
//!
//! There is no C counterpart: C does not count what it loses by nesting, nor what it ignores.
//!
//! `calls` is the sum of `hits`, the two kinds of drops, and `ignored`, always. `lost_saves` counts the
//! hits whose `save()` found no room, `lost_traces` the records of synthetic events that could not be
//! written, `lost_limited` the actions that the trigger's `limit()` has left out. All begin at 0 when the table is made or
//! cleared. `entries` are those of the present epoch, whose number is shown once a reader of `hist_pipe` has been given an
//! earlier one. With `overhead` there is what the calls have cost, and who has paused the trigger if that was too much. With `expire(T)`
//! `expired` counts the starts that nobody has ended, `overwritten` those that the next one of their key took the place of
//! before, and `forced` how often the time was cut short for want of room. Triggers of one name have their table, and
//! so their account, in common. A line begins with its title and a colon, an empty line comes between two
//! triggers.

use super::{
    overhead,
    told::{
        Tell,
        Told, //
    },
    write_line,
    HistTrigger, //
};
use crate::{
    ffi::{
        command::Attached,
        guard::EventMutexHeld,
        text::TextBuf, //
    },
    text::Out, //
};
use core::{
    fmt,
    fmt::Write, //
};

/// The kind of file.
pub(crate) type StatsFile = Told<Stats>;

/// What it tells.
pub(crate) struct Stats;

impl Tell for Stats {
    const NONE: &'static [u8] = b"# no triggers\n";

    fn tell(
        n: usize,
        trigger: &Attached<'_, HistTrigger>,
        held: &EventMutexHeld,
        out: &mut TextBuf,
    ) -> fmt::Result {
        let data = trigger.data();
        let counted = data.table.counted(held).map_err(|_| fmt::Error)?;
        let (maps, program) = (&counted.maps, &data.definition.program);
        let account = counted.before(program).plus(&maps.account(program));
        let shape = maps.youngest().shape();
        let memory = data.memory(held) + trigger.meter().map_or(0, |meter| meter.bytes());

        if n > 0 {
            out.write_str("\n")?;
        }
        out.write_bytes(b"trigger: ")?;
        write_line(trigger, out)?;
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
            ("memory", memory as u64),
        ];
        for (title, n) in lines {
            writeln!(out, "{title}: {n}")?;
        }
        if let Some(n) = data.table.consumed_epoch(held) {
            writeln!(out, "epoch: {n}")?;
        }
        if data.definition.program.limit().is_some() {
            writeln!(out, "lost_limited: {}", account.lost_limited)?;
        }
        if let Some(overhead) = overhead::of(trigger, held) {
            writeln!(out, "overhead_ns: {}", overhead.ns)?;
            writeln!(out, "overhead_ppm: {}", overhead.ppm)?;
            writeln!(out, "overhead_samples: {}", overhead.samples)?;
            if overhead.is_over {
                out.write_str("paused_by: overhead\n")?;
            }
        }
        if let Some(grown) = data.table.grown(held) {
            writeln!(out, "grown: {}", grown.times)?;
            writeln!(out, "grow_failed: {}", grown.failed)?;
        }
        if let Some(forced) = data.table.forced(held) {
            writeln!(out, "expired: {}", account.expired)?;
            writeln!(out, "overwritten: {}", account.overwritten)?;
            writeln!(out, "forced: {forced}")?;
        }
        Ok(())
    }
}
