// SPDX-License-Identifier: MIT OR Apache-2.0

//! The triggers of a question, for both backends: a latency takes two by `join()`, or three and a synthetic event.

use super::{Backend, Maker};
use crate::error::Result;
use crate::model::Unit;
use crate::question::{By, Latency, Measure, Records, CURRENT, SIZE, TASK};

/// Adds the steps that ask a question.
pub(super) fn plan(maker: &mut Maker<'_>) -> Result<()> {
    let question = maker.question;
    maker.needs();
    match &question.measure {
        Measure::Count { event, .. } | Measure::Distribution { event, .. } if question.lines => {
            super::lines::plan(maker, &event.event, event.filter.as_deref());
        }
        Measure::Count { event, sums } => {
            let sums: Vec<&str> = sums.iter().map(|sum| sum.field.as_str()).collect();
            let values = match sums.is_empty() {
                true => String::new(),
                false => format!(":vals={}", sums.join(",")),
            };
            let keys = maker.keys(None);
            maker.answer(event, &format!("keys={keys}{values}:size={}", maker.size()));
        }
        Measure::Distribution { event, field } => distribution(maker, event, &field.field),
        // A filter sees the fields of one event alone, no number that is computed from two.
        Measure::Latency(latency)
            if maker.backend != Backend::C
                && !(latency.stack || latency.only.is_some() || question.lines) =>
        {
            joined(maker, latency);
        }
        Measure::Latency(latency) => passed(maker, latency)?,
    }
    maker.plan.file = match maker.backend {
        Backend::C => "hist".to_owned(),
        Backend::Module { .. } => format!("{}_pipe", maker.backend.command()),
    };
    // Text output lacks the units of columns.
    maker.plan.unit = question.unit();
    let times = ["lat", "$lat"].map(|name| (name.to_owned(), Unit::Ns));
    let sums = question.sums().iter();
    maker.plan.sums = match question.measure {
        Measure::Latency(_) => times.into(),
        _ => sums
            .filter_map(|sum| Some((sum.field.clone(), sum.unit?)))
            .collect(),
    };
    Ok(())
}

/// Adds the trigger that divides the numbers of a field into intervals.
fn distribution(maker: &mut Maker<'_>, event: &Records, field: &str) {
    let largest = match maker.exemplars("largest") {
        none if none.is_empty() => none,
        kept => format!(":largest={field}{kept}"),
    };
    let keys = maker.keys(Some(maker.interval(field)));
    let (vals, size) = (maker.shown(field), maker.size());
    maker.answer(
        event,
        &format!("keys={keys}:vals={vals}:size={size}{largest}"),
    );
}

/// Adds the two triggers of a latency, the second of which looks the starts up.
fn joined(maker: &mut Maker<'_>, latency: &Latency) {
    let text = format!(
        "keys={}:ts0=common_timestamp:{}",
        latency.start_on.join(","),
        maker.starts(latency.waiting, &latency.expires)
    );
    maker.trigger(&latency.start, &text);
    let text = format!(
        "join({}):lat=common_timestamp-$ts0:keys={}:vals={}:size={}{}",
        latency.end_on.join(","),
        maker.keys(Some(maker.interval("$lat"))),
        maker.shown("$lat"),
        maker.size(),
        maker.exemplars("lat")
    );
    maker.answer(&latency.end, &text);
}

/// Adds triggers for a latency; a synthetic event passes it, with the keys, to a third trigger with the intervals.
fn passed(maker: &mut Maker<'_>, latency: &Latency) -> Result<()> {
    let question = maker.question;
    let stack = latency.stack;
    let mut fields = vec!["u64 lat".to_owned()];
    let mut parameters = vec!["$lat"];
    // The task comes with the first event.
    let by = question.by.iter().filter(|by| by.key != TASK);
    for field in by
        .map(By::field)
        .chain(question.saves.iter().map(String::as_str))
    {
        // The synthetic event happens in the context of the second event, so common fields need not be passed on.
        if !field.starts_with("common_") && !parameters.contains(&field) {
            fields.push(maker.declaration(field)?);
            parameters.push(field);
        }
    }
    let (mut kept, mut passed) = (String::new(), "");
    if stack {
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
        latency.start_on.join(","),
        maker.starts(latency.waiting, &latency.expires)
    );
    maker.trigger(&latency.start, &text);
    let on = latency.end_on.join(",");
    let (keys, rows) = match maker.backend.joins(stack) {
        true => (format!("join({on}):keys=common_cpu"), SIZE),
        false => (format!("keys={on}"), latency.waiting),
    };
    let text = format!(
        "{keys}:lat=common_timestamp-$ts0{passed}:onmatch({}).trace({name},{}):size={rows}{clock}",
        maker.event(&latency.start.event).replace(':', "."),
        parameters.join(",")
    );
    maker.trigger(&latency.end, &text);
    let event = format!("{}synthetic:{name}", maker.backend.prefix());
    let times = Records {
        filter: latency.only.clone(),
        ..Records::all(event)
    };
    if question.lines {
        super::lines::plan(maker, &times.event, times.filter.as_deref());
    } else if stack {
        let keys = maker.keys(Some("stack.stacktrace".into()));
        maker.answer(
            &times,
            &format!("keys={keys}:vals=lat:size={}", maker.size()),
        );
    } else {
        distribution(maker, &times, "lat");
    }
    Ok(())
}
