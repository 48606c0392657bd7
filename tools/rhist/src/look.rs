// SPDX-License-Identifier: MIT OR Apache-2.0

//! Shows triggers that exist, regardless of who made them, and changes nothing.

use std::collections::HashMap;
use std::time::Duration;

use clap::Args;

use crate::error::{Error, Result};
use crate::model::{Account, Key, KeyColumn, Kind, Number, Row, Table, Unit, ValueColumn};
use crate::options::{Global, Rows};
use crate::output::{self, Sink};
use crate::parse::json;
use crate::quantile::Percent;
use crate::reading;
use crate::session::triggers_of;
use crate::stop::Stop;
use crate::tracefs::{names_in, read, Format, Holds, Tracefs};
use crate::units::{self, count, Round, Scale};
use crate::view::form::{self, Form};
use crate::view::table::Look;
use crate::view::top::{self, Counted};

/// The arguments of `show`.
#[derive(Debug, Clone, Args)]
pub struct Show {
    /// The event, system:event
    pub event: String,
    /// An instance of tracefs
    #[arg(long, value_name = "NAME")]
    pub instance: Option<String>,
    /// The shown part of the table.
    #[command(flatten)]
    pub rows: Rows,
    /// Show all times in this unit
    #[arg(long, value_enum)]
    pub unit: Option<Scale>,
    /// How to write tables
    #[arg(short, long, value_enum, default_value_t)]
    pub format: Form,
}

/// The arguments of `top`.
#[derive(Debug, Clone, Args)]
pub struct Top {
    /// An event, system:event; without it all triggers are shown by their hits
    pub event: Option<String>,
    /// An instance of tracefs
    #[arg(long, value_name = "NAME")]
    pub instance: Option<String>,
    /// Seconds between two looks
    #[arg(short, long, value_name = "SECONDS", default_value_t = 1.0)]
    pub interval: f64,
}

/// Returns the top directory of tracefs and its instances, with their names.
fn instances(tracefs: &Tracefs) -> Vec<(String, Tracefs)> {
    let names = names_in(&tracefs.path("instances"));
    let named = names.into_iter().map(|name| {
        let instance = tracefs.instance(&name);
        (name, instance)
    });
    std::iter::once(("-".to_owned(), tracefs.clone()))
        .chain(named)
        .collect()
}

/// Returns the histograms of an event: those of the module, and those of C's implementation.
fn tables(tracefs: &Tracefs, event: &str) -> Result<Vec<Table>> {
    if !tracefs.has_event(event) {
        return Err(error!(
            "there is no event {event}; 'ls {}' shows those that are there",
            tracefs.path("events").display()
        ));
    }
    let mut tables = Vec::new();
    for file in ["hist_json", "rhist_json"] {
        let path = tracefs.event_file(event, file);
        if path.exists() {
            tables.extend(json::tables(&read(&path)?)?);
        }
    }
    let path = tracefs.event_file(event, "hist");
    if path.exists() && !tracefs.event_file(event, "hist_json").exists() {
        let format = Format::of(tracefs, event)?;
        for mut table in reading::tables(event, &read(&path)?)? {
            sign(&mut table, &format);
            tables.push(table);
        }
    }
    Ok(tables)
}

/// Gives signed numbers their sign, which C does not print; the format of the event tells which fields are signed.
fn sign(table: &mut Table, format: &Format) {
    let signed = |name: &str| {
        let field = format.field(name);
        field.is_some_and(|field| matches!(field.holds, Holds::Number { signed: true, .. }))
    };
    for column in 0..table.keys.len() {
        if signed(&table.keys[column].name) {
            table.signed(column);
        }
    }
    for column in 0..table.values.len() {
        if signed(&table.values[column].name) {
            table.signed_sum(column);
        }
    }
}

/// `ls`: the hist triggers of all instances.
pub fn list(tracefs: &Tracefs) -> Result<()> {
    let titles = ["INSTANCE", "EVENT", "TRIGGER"];
    let mut rows = vec![titles.map(str::to_owned).into()];
    for (name, instance) in instances(tracefs) {
        for event in triggers_of(&instance) {
            let path = instance.event_file(&event, "trigger");
            for line in String::from_utf8_lossy(&read(&path)?).lines() {
                if line.starts_with("hist:") || line.starts_with("rhist:") {
                    rows.push(vec![name.clone(), event.clone(), line.to_owned()]);
                }
            }
        }
    }
    print(&rows, |_| true)
}

/// Prints lines of cells, the first of which has the titles.
fn print(rows: &[Vec<String>], left: impl Fn(usize) -> bool) -> Result<()> {
    if rows.len() == 1 {
        return output::print(b"there are no hist triggers\n");
    }
    let plain = |row: &Vec<String>| row.iter().map(|cell| units::plain(cell)).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(plain).collect();
    output::print(output::columns(&rows, left).as_bytes())
}

/// Returns how to show the table of a trigger that the tool did not make.
fn look_of(table: &Table) -> Look {
    Look {
        heading: match table.interval() {
            Some(column) => units::text(&column.name),
            None => "hits".into(),
        },
        ..Look::of(table)
    }
}

/// Returns the instance of this name, or the top directory without one.
fn instance(tracefs: &Tracefs, name: &Option<String>) -> Tracefs {
    match name {
        Some(name) => tracefs.instance(name),
        None => tracefs.clone(),
    }
}

fn no_trigger(event: &str) -> Error {
    error!("{event} has no hist trigger; 'rhist ls' shows those that are there")
}

/// `show`: prints the tables of an event's triggers.
pub fn show(tracefs: &Tracefs, global: &Global, show: &Show) -> Result<()> {
    let instance = instance(tracefs, &show.instance);
    let event = show.event.replace(['/', '.'], ":");
    let tables = tables(&instance, &event)?;
    if tables.is_empty() {
        return Err(no_trigger(&event));
    }
    let mut sink = Sink::open(None)?;
    for (i, table) in tables.iter().enumerate() {
        let look = Look {
            percents: show.rows.pct.clone(),
            avg: show.rows.avg,
            top: show.rows.top,
            scale: show.unit,
            colour: global.color.wanted(sink.terminal),
            width: sink.width,
            cut: sink.terminal,
            ..look_of(table)
        };
        let mut out = Vec::new();
        if show.format == Form::Text {
            let gap = if i > 0 { "\n" } else { "" };
            out = format!("{gap}{}\n", units::text(&table.trigger)).into_bytes();
        }
        out.extend(form::table(table, show.format, &look, true)?);
        sink.write(&out)?;
    }
    Ok(())
}

/// `stats`: prints the account of each trigger.
pub fn stats(tracefs: &Tracefs) -> Result<()> {
    let titles = [
        "INSTANCE", "EVENT", "CALLS", "HITS", "FULL", "NESTED", "IGNORED", "LOST", "ROWS",
        "MEMORY", "TRIGGER",
    ];
    let mut rows: Vec<Vec<String>> = vec![titles.iter().map(|&title| title.to_owned()).collect()];
    for (name, instance) in instances(tracefs) {
        for event in triggers_of(&instance) {
            let module =
                ["hist_stats", "rhist_stats"].map(|file| instance.event_file(&event, file));
            let module = module.iter().find(|path| path.exists());
            if let Some(path) = module {
                for block in String::from_utf8_lossy(&read(path)?).split("\n\n") {
                    let lines = block.lines().filter_map(|line| line.split_once(": "));
                    let known: HashMap<&str, &str> = lines.collect();
                    let Some(trigger) = known.get("trigger") else {
                        continue;
                    };
                    let number = |title: &str| {
                        let number = known.get(title).and_then(|n| n.parse::<u64>().ok());
                        number.unwrap_or_default()
                    };
                    let mut row = vec![name.clone(), event.clone()];
                    for title in ["calls", "hits", "dropped_full", "dropped_nested", "ignored"] {
                        row.push(count(number(title).into()));
                    }
                    row.push(count((number("lost_saves") + number("lost_traces")).into()));
                    row.push(format!("{}/{}", number("entries"), number("size")));
                    let memory = number("memory").into();
                    row.push(units::value(memory, Some(Unit::Bytes), Round::Up));
                    row.push((*trigger).to_owned());
                    rows.push(row);
                }
            }
            let path = instance.event_file(&event, "hist");
            if path.exists() && !instance.event_file(&event, "hist_json").exists() {
                for table in reading::tables(&event, &read(&path)?)? {
                    let unknown = "?".to_owned();
                    let size = table.trigger.split(":size=").nth(1);
                    let size = size.and_then(|rest| rest.split([':', ' ']).next());
                    rows.push(vec![
                        name.clone(),
                        event.clone(),
                        unknown.clone(),
                        count(table.account.hits.into()),
                        count(table.account.full.into()),
                        unknown.clone(),
                        unknown.clone(),
                        unknown.clone(),
                        format!("{}/{}", table.rows.len(), size.unwrap_or("?")),
                        unknown,
                        units::text(&table.trigger),
                    ]);
                }
            }
        }
    }
    print(&rows, |i| i < 2 || i == titles.len() - 1)
}

/// Returns a table of all triggers with their hits.
fn overview(tracefs: &Tracefs) -> Result<Table> {
    let mut rows = Vec::new();
    let mut cost = None;
    for (name, instance) in instances(tracefs) {
        for event in triggers_of(&instance) {
            for table in tables(&instance, &event).unwrap_or_default() {
                if let Some(more) = table.cost {
                    *cost.get_or_insert(0) += more;
                }
                rows.push(Row {
                    keys: [&name, &event, &table.trigger]
                        .map(|text| Key::Text(text.clone()))
                        .into(),
                    values: vec![table.account.hits.into()],
                    exemplar: None,
                });
            }
        }
    }
    let key = |name: &str| KeyColumn {
        name: name.into(),
        kind: Kind::Text,
        unit: None,
    };
    Ok(Table {
        event: "all".into(),
        trigger: String::new(),
        active: true,
        consumed: true,
        span: None,
        keys: ["instance", "event", "trigger"].map(key).into(),
        values: vec![ValueColumn::of_sums("hitcount".into())],
        rows,
        account: Account::default(),
        cost,
    })
}

/// Returns the hits of each trigger since `before`; a trigger that had more hits then was cleared, and starts from 0.
fn overview_since(now: &Table, before: &Table) -> Table {
    let before: HashMap<&[Key], Number> = before
        .rows
        .iter()
        .map(|row| (row.keys.as_slice(), row.values[0]))
        .collect();
    let rows = now.rows.iter().filter_map(|row| {
        let hits = row.values[0];
        let old = before.get(row.keys.as_slice()).copied();
        let new = hits - old.filter(|&old| old <= hits).unwrap_or(0);
        (new > 0).then(|| Row {
            keys: row.keys.clone(),
            values: vec![new],
            exemplar: None,
        })
    });
    Table {
        rows: rows.collect(),
        ..now.without_rows()
    }
}

/// `top`: shows the present counts on the whole screen.
pub fn top(tracefs: &Tracefs, global: &Global, args: &Top) -> Result<()> {
    let interval = Duration::try_from_secs_f64(args.interval)
        .ok()
        .filter(|interval| !interval.is_zero())
        .ok_or_else(|| Error::new("the interval is a number of seconds above 0"))?;
    let instance = instance(tracefs, &args.instance);
    let event = args.event.as_ref();
    let event = event.map(|event| event.replace(['/', '.'], ":"));
    let read = || match &event {
        Some(event) => {
            let last = tables(&instance, event)?.pop();
            last.ok_or_else(|| no_trigger(event))
        }
        None => overview(tracefs),
    };
    let mut before = read()?;
    let look = Look {
        percents: vec![Percent::MEDIAN, Percent::TAIL],
        colour: global.color.wanted(true),
        ..look_of(&before)
    };
    let title = format!("rhist top  {}", event.as_deref().unwrap_or("all triggers"));
    let stop = Stop::on_signals()?;
    let mut next = || {
        let now = read()?;
        // A table that was cleared starts from 0.
        let since = match &event {
            Some(_) => now.since(&before).unwrap_or_else(|_| now.clone()),
            None => overview_since(&now, &before),
        };
        before = now;
        Ok(since)
    };
    let mut feed = Counted::new(interval, None, &mut next);
    top::run(&title, &look, false, &stop, &mut feed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_signed_can_be_negative() {
        let text = "# event histogram\n# trigger info: hist:keys=id:vals=hitcount,ret,n [active]\n\n\
                    { id: 18446744073709551615 } hitcount:          1  ret: 18446744073709551605  n: 18446744073709551605\n\
                    \nTotals:\n    Hits: 1\n    Dropped: 0\n";
        let mut table = reading::tables("a:b", text.as_bytes()).unwrap().remove(0);
        let format = "\tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n\
                      \tfield:long ret;\toffset:16;\tsize:8;\tsigned:1;\n\
                      \tfield:u64 n;\toffset:24;\tsize:8;\tsigned:0;\n";
        sign(&mut table, &Format::parse(format));
        assert_eq!(table.rows[0].keys, [Key::Number(-1)]);
        assert_eq!(table.rows[0].values, [1, -11, 18_446_744_073_709_551_605]);
    }

    #[test]
    fn triggers_come_and_go() {
        let all = |rows: &[(&str, Number)]| Table {
            rows: rows
                .iter()
                .map(|&(name, hits)| Row {
                    keys: vec![Key::Text(name.into())],
                    values: vec![hits],
                    exemplar: None,
                })
                .collect(),
            ..crate::testing::table(&[])
        };
        let before = all(&[("gone", 100), ("cleared", 50), ("same", 7), ("more", 5)]);
        let now = all(&[("cleared", 3), ("same", 7), ("more", 9), ("new", 2)]);
        let since = overview_since(&now, &before);
        assert_eq!(
            since.rows,
            all(&[("cleared", 3), ("more", 4), ("new", 2)]).rows
        );
    }
}
