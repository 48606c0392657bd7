// SPDX-License-Identifier: MIT OR Apache-2.0

//! Plans for C's implementation: latencies with a synthetic event, powers of two, differences of readings.

use std::path::PathBuf;

use rustix::time::{clock_gettime, ClockId};

use super::{finish, Lost, Maker, Plan, Source};
use crate::error::Result;
use crate::model::{Account, Span, Table, Unit};
use crate::question::{condition, Measure, Records, Sum, CURRENT, TASK};
use crate::reading;
use crate::recipe::SIZE;
use crate::tracefs::{read, Tracefs};

pub(super) fn plan(maker: &mut Maker<'_>) -> Result<()> {
    let question = maker.question;
    maker.needs();
    match &question.measure {
        Measure::Count { event, .. } | Measure::Distribution { event, .. } if question.lines => {
            super::lines::plan(maker, &event.event, event.filter.as_deref());
        }
        Measure::Count { event, sums } => count(maker, event, sums),
        Measure::Distribution { event, field } => {
            let keys = maker.keys(Some(maker.interval(&field.field)));
            let text = format!("keys={keys}:vals={}:size={}", field.field, maker.size());
            maker.trigger(&event.event, &text, &event.condition());
            maker.plan.event = event.event.clone();
        }
        Measure::Latency { .. } => latency(maker)?,
    }
    maker.plan.file = "hist".into();
    units(maker);
    Ok(())
}

/// Adds one trigger that counts, which is the same for both backends.
pub(super) fn count(maker: &mut Maker<'_>, event: &Records, sums: &[Sum]) {
    let sums: Vec<&str> = sums.iter().map(|sum| sum.field.as_str()).collect();
    let values = if sums.is_empty() {
        String::new()
    } else {
        format!(":vals={}", sums.join(","))
    };
    let keys = maker.keys(None);
    let text = format!("keys={keys}{values}:size={}", maker.size());
    maker.trigger(&event.event, &text, &event.condition());
    maker.plan.event = maker.event(&event.event);
}

/// Adds triggers for a latency; a synthetic event passes it, with the keys, to a third trigger with the intervals.
pub(super) fn latency(maker: &mut Maker<'_>) -> Result<()> {
    let question = maker.question;
    let Measure::Latency {
        start,
        start_on,
        end,
        end_on,
        waiting,
        expires,
        stack,
        only,
    } = &question.measure
    else {
        return Ok(());
    };
    // The synthetic event happens in the context of the second event, so common fields need not be passed on.
    let mut carried: Vec<&str> = Vec::new();
    for by in question.by.iter().filter(|by| !by.is_common()) {
        // The task comes with the first event.
        if by.key == TASK {
            continue;
        }
        if !carried.contains(&by.field()) {
            carried.push(by.field());
        }
    }
    for field in question
        .saves
        .iter()
        .filter(|field| !field.starts_with("common_"))
    {
        if !carried.contains(&field.as_str()) {
            carried.push(field);
        }
    }
    let mut fields = vec!["u64 lat".to_owned()];
    let mut parameters = vec!["$lat"];
    for field in carried {
        fields.push(maker.declaration(field)?);
        parameters.push(field);
    }
    let (mut kept, mut passed) = (String::new(), "");
    if *stack {
        fields.push("unsigned long[] stack".into());
        parameters.push("$s");
        (kept, passed) = (",st=common_stacktrace".to_owned(), ",s=$st");
    }
    if let Some(by) = question.by.iter().find(|by| by.key == TASK) {
        let task = question.start_task.as_deref().unwrap_or(CURRENT);
        fields.push(format!("int {}", by.field()));
        parameters.push("$tp");
        kept = format!("{kept},tp={task}");
    }
    let name = maker.synthetic(&fields);
    // The clock of records, by which it is known when they were.
    let clock = if question.lines { ":clock=mono" } else { "" };
    let text = format!(
        "keys={}:ts0=common_timestamp{kept}:{}{clock}",
        start_on.join(","),
        maker.starts(*waiting, expires)
    );
    maker.trigger(&start.event, &text, &start.condition());
    let on = end_on.join(",");
    let (keys, rows) = match maker.backend.joins(*stack) {
        true => (format!("join({on}):keys=common_cpu"), SIZE),
        false => (format!("keys={on}"), *waiting),
    };
    let text = format!(
        "{keys}:lat=common_timestamp-$ts0{passed}:onmatch({}).trace({name},{}):size={rows}{clock}",
        maker.event(&start.event).replace(':', "."),
        parameters.join(",")
    );
    maker.trigger(&end.event, &text, &end.condition());
    let event = format!("{}:{name}", maker.backend.synthetic_system());
    if question.lines {
        super::lines::plan(maker, &event, only.as_deref());
        return Ok(());
    }
    let (keys, vals) = match stack {
        true => (maker.keys(Some("stack.stacktrace".into())), "lat".into()),
        false => (maker.keys(Some(maker.interval("lat"))), maker.shown("lat")),
    };
    let largest = match maker.exemplars("largest") {
        none if none.is_empty() => none,
        kept => format!(":largest=lat{kept}"),
    };
    let text = format!("keys={keys}:vals={vals}:size={}{largest}", maker.size());
    maker.trigger(&event, &text, &condition(only.as_deref()));
    maker.plan.event = event;
    Ok(())
}

/// Sets the units of the columns, which text output lacks.
pub(super) fn units(maker: &mut Maker<'_>) {
    let question = maker.question;
    maker.plan.unit = question.unit();
    match &question.measure {
        Measure::Count { sums, .. } => {
            let sums = sums
                .iter()
                .filter_map(|sum| Some((sum.field.clone(), sum.unit?)));
            maker.plan.sums = sums.collect();
        }
        Measure::Distribution { field, .. } => {
            maker.plan.sums = field
                .unit
                .map(|unit| (field.field.clone(), unit))
                .into_iter()
                .collect();
        }
        Measure::Latency { .. } => {
            maker.plan.sums = ["lat", "$lat"]
                .map(|name| (name.to_owned(), Unit::Ns))
                .into();
        }
    }
}

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
