// SPDX-License-Identifier: MIT OR Apache-2.0

//! Asking a question: counts and shows the answer, or prints the lines that would be written.

pub mod budget;
pub mod count;
pub mod plan;
pub mod share;
pub mod width;

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use budget::{fit, memory};
use count::{count, every, Counting};
use plan::{lines, plan};
use width::first_second;

use crate::backend::{Backend, Wanted};
use crate::error::Result;
use crate::grid::Epoch;
use crate::model::Table;
use crate::options::{Global, Outcome, Showing};
use crate::output::{self, blocks, Sink};
use crate::questions::Asked;
use crate::stop::{Stop, SECOND};
use crate::tracefs::Tracefs;
use crate::view::form::{self, heading, Form};
use crate::view::heat::{self, Paper};
use crate::view::lines::Lines;
use crate::view::map::MOST_EPOCHS;
use crate::view::table::Look;
use crate::view::top::{self, Counted};

/// How often lines are read.
const LOOK: Duration = Duration::from_millis(200);

/// Prints the lines for both backends, or for the one that is wanted.
pub fn dry_run(asked: &Asked, tracefs: &Tracefs, global: &Global) -> Result<()> {
    let there = Backend::all(tracefs);
    let asked = std::slice::from_ref(asked);
    let beside = there.contains(&Backend::Module { beside: true });
    let mut text = String::new();
    let both = [Backend::Module { beside }, Backend::C];
    for backend in both.into_iter().filter(|&one| global.backend.takes(one)) {
        let who = match backend {
            Backend::C => "C's implementation",
            Backend::Module { .. } => "the module",
        };
        let planned =
            fit(asked, memory(), backend, tracefs, global.quiet).and_then(|mut fitted| {
                let asked = fitted.swap_remove(0);
                let plan = plan(&asked, backend, tracefs, "PID")?;
                Ok((asked, plan))
            });
        let (asked, plan) = match planned {
            Ok(planned) => planned,
            // The other backend may be able to answer the question.
            Err(error)
                if global.backend == Wanted::Auto && backend == Backend::C && !text.is_empty() =>
            {
                let _ = writeln!(text, "\n# {who} cannot: {error}");
                continue;
            }
            Err(error) => return Err(error),
        };
        if !text.is_empty() {
            text.push('\n');
        }
        let _ = writeln!(text, "# {who}, in {}:", tracefs.root().display());
        if let Some(within) = first_second(backend, &asked.question) {
            let _ = writeln!(
                text,
                "# for a second first; then with .buckets=WIDTH in place of .log2, {within} % of p{} or less",
                asked.lowest
            );
        }
        text.push_str(&lines(&plan));
    }
    output::print(text.as_bytes())
}

/// Asks a question, and shows a table after each interval.
pub fn ask(
    asked: &Asked,
    showing: &Showing,
    tracefs: &Tracefs,
    global: &Global,
) -> Result<Outcome> {
    if showing.heat && !asked.question.has_intervals() {
        return Err(error!(
            "{} counts here and has no intervals to draw over time; leave --heat out",
            asked.question.name
        ));
    }
    // Chosen before the output file is overwritten, as this can fail.
    Backend::choose(tracefs, global.backend)?;
    let mut sink = Sink::open(showing.output.as_deref())?;
    let stop = Stop::on_signals()?;
    let interval = asked.options.interval;
    let labels = asked.question.by.iter().map(|by| by.label.clone());
    count(std::slice::from_ref(asked), tracefs, global, &mut |all| {
        let (terminal, width) = (sink.terminal, sink.width);
        let look = |counting: &Counting<'_>| Look {
            labels: labels.clone().collect(),
            names: counting.plan.names.clone(),
            heading: asked.heading.clone(),
            percents: showing.rows.pct.clone(),
            avg: showing.rows.avg,
            top: showing.rows.top,
            scale: showing.unit,
            colour: global.color.wanted(terminal),
            blocks: blocks(),
            width,
            cut: terminal,
            ..Look::default()
        };
        if showing.live {
            for counting in all {
                let title = format!("rhist {}  {}", asked.question.name, counting.backend);
                let look = look(counting);
                let mut next = || counting.source.next();
                let interval = interval.unwrap_or(SECOND);
                let mut feed = Counted::new(interval, asked.options.tables, &mut next);
                top::run(&title, &look, showing.heat, &stop, &mut feed)?;
            }
            return Ok(());
        }
        if !global.quiet {
            output::say(&match interval {
                None if asked.question.lines => {
                    "counting, a line for each hit; ^C ends it".to_owned()
                }
                None => "counting; ^C ends it and shows the table".to_owned(),
                Some(interval) => format!(
                    "counting, a table each {} s; ^C ends it",
                    interval.as_secs_f64()
                ),
            });
        }
        if asked.question.lines {
            let mut lines = Lines::default();
            let mut first = true;
            return every(all, Some(LOOK), &stop, &mut |counting| {
                let table = counting.source.next()?;
                if table.rows.is_empty() {
                    return Ok(());
                }
                let out = match showing.format {
                    Form::Text => lines.write(&table, &look(counting)),
                    form => form::table(&table, form, &look(counting), first)?,
                };
                first = false;
                sink.write(&out)
            });
        }
        if showing.heat {
            let mut epochs = Vec::new();
            let mut head: Option<Table> = None;
            every(all, Some(SECOND), &stop, &mut |counting| {
                let table = counting.source.next()?;
                epochs.push(Epoch::of(&table));
                if epochs.len() > MOST_EPOCHS {
                    epochs.remove(0);
                }
                // C's text names the columns only if there are rows.
                if head.is_none() || !table.rows.is_empty() {
                    head = Some(table.without_rows());
                }
                Ok(())
            })?;
            let paper = Paper::of_output(global.color.wanted(terminal));
            return head.map_or(Ok(()), |head| {
                sink.write(heat::draw(&asked.title, &head, &epochs, paper).as_bytes())
            });
        }
        let begin = Instant::now();
        every(all, None, &stop, &mut |counting| {
            let first = counting.tables == 1;
            let table = counting.source.next()?;
            let mut out = Vec::new();
            if showing.format == Form::Text {
                out = heading(&table, begin.elapsed(), first).into_bytes();
            }
            out.extend(form::table(&table, showing.format, &look(counting), first)?);
            sink.write(&out)
        })
    })
}
