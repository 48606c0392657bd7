// SPDX-License-Identifier: MIT OR Apache-2.0

//! Counting: sets questions up, reads their tables at the end of each interval, and removes all again.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::budget::{fit, memory, more_room};
use super::plan;
use super::width::{choose_width, first_second};
use crate::backend::fold::Folded;
use crate::backend::lines::Lines;
use crate::backend::{c::Readings, module::Pipe, Backend, Lost, Plan, Source, Step};
use crate::error::Result;
use crate::model::Table;
use crate::options::{Global, Outcome};
use crate::question::{Question, COMM};
use crate::questions::Asked;
use crate::session::{owner, Leftovers, Session};
use crate::stop::{Stop, NEVER, SECOND};
use crate::tracefs::Tracefs;
use crate::whose::{threads, watch};

/// The most hits a second on one CPU that are counted without `--yes`.
const MANY: u128 = 1_000_000;

/// A question that is being counted.
pub struct Counting<'a> {
    /// The question that is asked.
    pub asked: &'a Asked,
    /// The index of the question among those asked at once, from 0.
    pub number: usize,
    /// The source of the question's tables.
    pub source: Box<dyn Source>,
    /// The plan that was carried out for the question.
    pub plan: Plan,
    /// The implementation that counts.
    pub backend: Backend,
    /// The number of tables that were due so far.
    pub tables: u32,
    /// The losses up to the last table.
    pub lost: Lost,
    /// Whether the account of the last table was left as it was read.
    pub as_it_came: bool,
}

impl Counting<'_> {
    /// Returns the next table. Its account has the losses of all triggers of the question, not only its own.
    pub fn table(&mut self) -> Result<Table> {
        let mut table = self.source.next()?;
        let own = table.account;
        self.as_it_came = true;
        // With a single trigger, the table's own account is complete.
        if self.plan.triggers() == 1 {
            return Ok(table);
        }
        let lost = self.source.lost()?;
        lost.account(&self.lost, &mut table.account);
        self.lost = lost;
        self.as_it_came = table.account.is_as(&own);
        Ok(table)
    }

    /// Returns the JSON lines of the last table as they were read, if they were JSON and their account is complete.
    pub fn lines(&self) -> Option<&[u8]> {
        self.source.lines().filter(|_| self.as_it_came)
    }

    /// Returns whether there were as many tables as the user wants.
    fn is_done(&self) -> bool {
        let wanted = self.asked.options.tables;
        wanted.is_some_and(|wanted| u64::from(self.tables) >= wanted)
    }

    /// Returns the time of the next table after a start at `begin`; `otherwise` is the interval if the user gave none.
    fn due(&self, begin: Instant, otherwise: Option<Duration>) -> Instant {
        let interval = self.asked.options.interval.or(otherwise).unwrap_or(NEVER);
        let due = begin.checked_add(interval.saturating_mul(self.tables + 1));
        due.unwrap_or(begin + NEVER)
    }
}

/// Calls a function for each question at the end of each of its intervals, until the wanted number of tables was read,
/// or until a signal ends all questions.
pub fn every(
    all: &mut [Counting<'_>],
    otherwise: Option<Duration>,
    stop: &Stop,
    what: &mut dyn FnMut(&mut Counting<'_>) -> Result<()>,
) -> Result<()> {
    let begin = Instant::now();
    loop {
        let going = all.iter().filter(|counting| !counting.is_done());
        let Some(next) = going.map(|counting| counting.due(begin, otherwise)).min() else {
            return Ok(());
        };
        let stopped = stop.wait(Some(next));
        for counting in all.iter_mut().filter(|counting| !counting.is_done()) {
            if stopped || counting.due(begin, otherwise) <= next {
                counting.tables += 1;
                what(counting)?;
            }
        }
        if stopped {
            return Ok(());
        }
    }
}

/// Asks questions, calls `body` to read the tables, and then removes all that was made. Signals must already be
/// handled, so that they do not kill the process.
pub fn count(
    all: &[Asked],
    tracefs: &Tracefs,
    global: &Global,
    body: &mut dyn FnMut(&mut [Counting<'_>]) -> Result<()>,
) -> Result<Outcome> {
    let backend = Backend::choose(tracefs, global.backend)?;
    let mut all = fit(all, memory(), backend, tracefs, global.quiet)?;
    let is_folded = |asked: &Asked| {
        let question = &asked.question;
        question.only.is_some() || question.by.iter().any(|by| by.owner.is_some())
    };
    // Started before the process's threads are listed, so that its thread is left out of the counts, too.
    let seen = all.iter().any(is_folded).then(|| watch(Path::new("/")));
    let own = threads(Path::new("/"), std::process::id().into());
    for asked in all.iter_mut().filter(|asked| !asked.options.itself) {
        asked.question.leave_out(&own);
    }
    clean_up(tracefs, global.quiet);
    let alone = all.len() == 1;
    let which = |asked: &Asked| match alone {
        true => String::new(),
        false => format!("{}: ", asked.words.join(" ")),
    };
    let mut begun = Vec::new();
    for (i, asked) in all.iter_mut().enumerate() {
        let mut plan = plan::plan(asked, backend, tracefs, &owner(i))?;
        let mut session = Session::begin(tracefs, &plan, i, global.keep)?;
        // Events are created first, so that their rates are measured, too.
        let (needs, _) = plan.needs();
        session.apply(needs)?;
        if lacks_comm(&mut session, backend, &asked.question) {
            asked.question.lacks_comm = true;
            plan = plan::plan(asked, backend, tracefs, &owner(i))?;
        }
        let (_, rest) = plan.needs();
        if backend == Backend::C && !asked.options.yes {
            check_rates(&mut session, backend, rest)?;
        }
        if let Some(within) = first_second(backend, &asked.question) {
            let table = session.try_out(rest, |instance| {
                thread::sleep(SECOND);
                open(backend, instance, &plan)?.next()
            })?;
            let said = choose_width(asked, &table, within);
            plan = plan::plan(asked, backend, tracefs, &owner(i))?;
            if !global.quiet {
                say!("rhist: {}{said}", which(asked));
            }
        }
        begun.push((session, plan));
    }
    let mut sessions = Vec::new();
    let mut counting = Vec::new();
    for (i, (asked, (mut session, plan))) in all.iter().zip(begun).enumerate() {
        session.apply(plan.needs().1)?;
        let source = lines(backend, tracefs, session.instance(), &plan)?;
        counting.push(Counting {
            asked,
            number: i,
            source: match (&plan.fold, &seen) {
                (Some(fold), Some(seen)) => Box::new(Folded::new(source, fold, seen.clone())),
                _ => source,
            },
            plan,
            backend,
            tables: 0,
            lost: Lost::default(),
            as_it_came: false,
        });
        sessions.push(session);
    }
    body(&mut counting)?;
    let mut said = Vec::new();
    let mut remarks = Vec::new();
    for Counting { asked, source, .. } in &mut counting {
        let which = which(asked);
        remarks.extend(source.remark().map(|remark| format!("{which}{remark}")));
        let lost = source.lost()?.sentences(more_room(&asked.question));
        said.extend(lost.iter().map(|sentence| format!("{which}{sentence}")));
    }
    drop(counting);
    for session in sessions {
        session.end()?;
    }
    for sentence in remarks.iter().chain(&said) {
        say!("rhist: {sentence}");
    }
    Ok(match said.is_empty() {
        true => Outcome::Done,
        false => Outcome::Incomplete,
    })
}

/// Opens the source of the answers of a plan that was carried out: records where each hit is a line, else its table.
fn lines(
    backend: Backend,
    tracefs: &Tracefs,
    instance: &Tracefs,
    plan: &Plan,
) -> Result<Box<dyn Source>> {
    let Some(each) = &plan.each else {
        return open(backend, instance, plan);
    };
    let tables = (plan.triggers() > 0).then(|| open(backend, instance, plan));
    let lines = Lines::open(tracefs, instance, each, tables.transpose()?, memory())?;
    Ok(Box::new(lines))
}

/// Opens the table of a plan that was carried out.
pub fn open(backend: Backend, instance: &Tracefs, plan: &Plan) -> Result<Box<dyn Source>> {
    Ok(match backend {
        Backend::Module { .. } => Box::new(Pipe::open(instance, plan)?),
        Backend::C => Box::new(Readings::open(instance, plan)),
    })
}

/// Returns whether a question groups by the running task's name and the kernel refuses such a key, by trying it.
pub fn lacks_comm(session: &mut Session, backend: Backend, question: &Question) -> bool {
    backend == Backend::C
        && question.is_by_comm()
        && !session.takes(
            "sched:sched_process_exec",
            &format!("hist:keys={COMM}:size=128"),
        )
}

/// Refuses events that happen so often that counting them costs too much, unless the user gave `--yes`.
fn check_rates(session: &mut Session, backend: Backend, steps: &[Step]) -> Result<()> {
    for (event, rate, _) in session.rates(&backend.command(), steps)? {
        if rate > MANY {
            return Err(error!(
                "{event} happens {rate} times a second on one CPU, so counting it slows the machine down; \
                 narrow it down by --if, or insist by --yes"
            ));
        }
    }
    Ok(())
}

/// Removes leftovers of killed processes, and says so. Leftovers that stay do no harm to this question.
fn clean_up(tracefs: &Tracefs, quiet: bool) {
    let left = Leftovers::find_unkept(tracefs);
    if left.is_empty() {
        return;
    }
    match left.remove(tracefs) {
        Err(error) => say!("rhist: something that a killed rhist has left stays: {error}"),
        Ok(()) if quiet => {}
        Ok(()) => {
            let things = left.instances.len() + left.shared.len();
            say!("rhist: removed what a killed rhist had left: {things} instances and events");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use std::sync::mpsc::channel;

    use crate::questions::tests::asked;

    /// A source that returns the same table each time, and loses more each time.
    struct Losing(Option<Table>, Lost, Option<u64>);

    impl Source for Losing {
        fn next(&mut self) -> Result<Table> {
            self.0.clone().ok_or_else(|| Error::new("nobody counts"))
        }

        fn lost(&mut self) -> Result<Lost> {
            self.1.full += 3;
            self.1.nested += 2;
            if let Some(more) = self.2 {
                *self.1.expired.get_or_insert(0) += more;
                *self.1.overwritten.get_or_insert(0) += 2 * more;
            }
            Ok(self.1)
        }

        fn lines(&self) -> Option<&[u8]> {
            Some(b"lines")
        }
    }

    fn counting(asked: &Asked, table: Option<Table>) -> Counting<'_> {
        let tracefs = Tracefs::find(Some(std::path::Path::new("tests/tracefs"))).unwrap();
        Counting {
            asked,
            number: 0,
            source: Box::new(Losing(table, Lost::default(), None)),
            plan: Backend::C.plan(&tracefs, &asked.question, "1").unwrap(),
            backend: Backend::C,
            tables: 0,
            lost: Lost::default(),
            as_it_came: false,
        }
    }

    #[test]
    fn tables_have_the_losses_of_all_triggers() {
        let text = "{\"v\":1,\"type\":\"hist\",\"event\":\"a:b\",\"trigger\":\"hist:keys=x\",\"state\":\"active\",\
                    \"epoch\":1,\"from\":0,\"to\":5,\"real\":6,\"keys\":[{\"name\":\"x\",\"kind\":\"number\"}],\
                    \"vals\":[{\"name\":\"hitcount\"}]}\n\
                    {\"type\":\"end\",\"entries\":0,\"calls\":1,\"hits\":0,\"dropped_full\":1,\"dropped_nested\":0,\
                    \"ignored\":0,\"lost_saves\":0,\"lost_traces\":0}\n";
        let mut table = crate::parse::json::tables(text.as_bytes())
            .unwrap()
            .remove(0);
        let asked = asked("runq");
        let mut all = counting(&asked, Some(table.clone()));
        for _ in 0..2 {
            let account = all.table().unwrap().account;
            assert_eq!((account.full, account.losses.unwrap().nested), (3, 2));
            assert_eq!(all.lines(), None);
        }
        table.account.full = 3;
        table.account.losses.as_mut().unwrap().nested = 2;
        let mut all = counting(&asked, Some(table.clone()));
        all.table().unwrap();
        assert_eq!(all.lines(), Some(&b"lines"[..]));
        // If nothing has expired, the lines are passed on unchanged, even if they lack the counts of expiry.
        for (more, lines) in [(0, Some(&b"lines"[..])), (4, None)] {
            all.source = Box::new(Losing(Some(table.clone()), Lost::default(), Some(more)));
            all.lost = Lost::default();
            for _ in 0..2 {
                let losses = all.table().unwrap().account.losses.unwrap();
                let both = (losses.expired, losses.overwritten);
                assert_eq!(both, (Some(more), Some(2 * more)));
                assert_eq!((losses.retired, all.lines()), (None, lines));
            }
        }
        // A question with one trigger has the losses of that trigger's table.
        let asked = self::asked("count sched:sched_switch");
        table.account.full = 1;
        let mut all = counting(&asked, Some(table));
        assert_eq!(all.table().unwrap().account.full, 1);
        assert_eq!(all.lines(), Some(&b"lines"[..]));
    }

    #[test]
    fn questions_have_intervals_of_their_own() {
        let asked = ["runq 0.02 3", "runq --by comm", "oncpu 0.001 1"].map(asked);
        let mut all: Vec<Counting<'_>> = (0..)
            .zip(&asked)
            .map(|(number, asked)| Counting {
                number,
                ..counting(asked, None)
            })
            .collect();
        let (sender, receiver) = channel();
        let mut order = Vec::new();
        // The question without an end is ended by a signal.
        every(
            &mut all,
            Some(SECOND / 10),
            &Stop(receiver),
            &mut |counting| {
                order.push(counting.number);
                if counting.number == 1 {
                    let _ = sender.send(());
                }
                Ok(())
            },
        )
        .unwrap();
        assert_eq!(order, [2, 0, 0, 0, 1, 1]);
        let first = every(&mut all[..1], None, &Stop(channel().1), &mut |_| {
            Err(Error::new("there were as many as wanted"))
        });
        assert_eq!(first, Ok(()));
    }
}
