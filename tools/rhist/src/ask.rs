// SPDX-License-Identifier: MIT OR Apache-2.0

//! Asking a question: what is written, what is read at each interval, and what is said in the end.

use std::fmt::Write as _;
use std::fs;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::backend::{c::Readings, module::Pipe, Backend, Lost, Plan, Source, Step, Wanted};
use crate::cli::question::Asked;
use crate::cli::{Global, Outcome, Showing};
use crate::error::{Error, Result};
use crate::model::{Table, Unit};
use crate::output::{self, Form, Sink};
use crate::quantile::width_within;
use crate::question::{Intervals, Measure, Question, COMM};
use crate::recipe::SIZE;
use crate::record::Epoch;
use crate::session::{owner, Leftovers, Session};
use crate::tracefs::{echo, Tracefs};
use crate::units;
use crate::view::heat::{self, Paper};
use crate::view::map::MOST_EPOCHS;
use crate::view::table::Look;
use crate::view::top::{self, Counted};

/// How many hits a second a CPU may have without being asked for.
const MANY: u128 = 1_000_000;

/// The rows of the largest table.
const MOST_ROWS: u32 = 131_072;

/// How long a trigger can be, so that the kernel takes also the line that removes it: less than a page with `!` and the
/// end of the line.
const MOST_LINE: usize = 4093;

/// How long an interval is that nobody has said.
pub const SECOND: Duration = Duration::from_secs(1);

/// Longer than anybody waits.
pub const NEVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Waits for the end of an interval, or for a signal that ends the program.
pub struct Stop(Receiver<()>);

impl Stop {
    /// From now on signals do not kill the process.
    pub fn on_signals() -> Result<Self> {
        let mut wanted = vec![SIGINT, SIGTERM];
        if !is_ignored(SIGHUP) {
            wanted.push(SIGHUP);
        }
        let mut signals = Signals::new(wanted)
            .map_err(|error| Error::new(format!("cannot wait for signals: {error}")))?;
        let (sender, receiver) = channel();
        thread::spawn(move || {
            for _ in signals.forever() {
                if sender.send(()).is_err() {
                    break;
                }
            }
        });
        Ok(Self(receiver))
    }

    /// Waits until then, or for ever. Says whether a signal came.
    pub fn wait(&self, until: Option<Instant>) -> bool {
        match until {
            None => {
                let _ = self.0.recv();
                true
            }
            Some(until) => {
                let rest = until.saturating_duration_since(Instant::now());
                !matches!(self.0.recv_timeout(rest), Err(RecvTimeoutError::Timeout))
            }
        }
    }
}

/// Whether this process was started so that the signal is ignored, as nohup does.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// The lines that ask a question, which the kernel takes.
fn plan(asked: &Asked, backend: Backend, tracefs: &Tracefs, owner: &str) -> Result<Plan> {
    let plan = backend.plan(tracefs, &asked.question, owner)?;
    let long = |step: &Step| matches!(step, Step::Trigger { line, .. } if line.len() > MOST_LINE);
    if !plan.steps.iter().any(long) {
        return Ok(plan);
    }
    Err(Error::new(match asked.options.pid {
        Some(pid) => format!(
            "process {pid} has {} threads, and a filter that names all of them is too long for the kernel; \
             -c NAME asks for those of one name",
            asked.threads
        ),
        None => format!(
            "a trigger of this question has more than {MOST_LINE} bytes, which is too long for the kernel; \
             shorten the filter"
        ),
    }))
}

/// Prints the lines for both backends, or for the one that is wanted.
pub fn dry_run(asked: &Asked, tracefs: &Tracefs, global: &Global) -> Result<()> {
    let there = Backend::all(tracefs);
    let asked = std::slice::from_ref(asked);
    let beside = there.contains(&Backend::Module { beside: true });
    let mut text = String::new();
    for backend in [Backend::Module { beside }, Backend::C] {
        let wanted = match global.backend {
            Wanted::Auto => true,
            Wanted::Module => backend != Backend::C,
            Wanted::C => backend == Backend::C,
        };
        if !wanted {
            continue;
        }
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
            // One of the two may be able to.
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

/// The plan as commands of a shell.
pub fn lines(plan: &Plan) -> String {
    let instance = "instances/rhist-PID";
    let file =
        |event: &str, name: &str| format!("{instance}/events/{}/{name}", event.replace(':', "/"));
    let mut text = format!("mkdir {instance}\n");
    for step in &plan.steps {
        let _ = match step {
            Step::Schedstats => writeln!(text, "echo 1 > /proc/sys/kernel/sched_schedstats"),
            Step::Dynamic { line, .. } => writeln!(text, "{}", echo(line, "dynamic_events")),
            Step::Synthetic { file, line, .. } => writeln!(text, "{}", echo(line, file)),
            Step::Trigger { event, line } => {
                writeln!(text, "{}", echo(line, &file(event, "trigger")))
            }
        };
    }
    let _ = writeln!(text, "cat {}", file(&plan.event, &plan.file));
    text
}

/// The memory of this machine, in bytes.
fn memory() -> u64 {
    let all = rustix::system::sysinfo();
    all.totalram as u64 * u64::from(all.mem_unit)
}

/// Halves the tables of questions until all of them together take at most a hundredth of this memory, and says so: a
/// machine with less memory has fewer tasks and requests, too. Tables of what is told apart by fields may grow as far as
/// there is such memory left. Tables stay for which the user asked for a size.
fn fit(
    all: &[Asked],
    memory: u64,
    backend: Backend,
    tracefs: &Tracefs,
    quiet: bool,
) -> Result<Vec<Asked>> {
    let fits = |all: &[Asked]| {
        let mut needed = 0;
        for asked in all.iter().filter(|asked| !asked.question.size_asked) {
            let plan = plan(asked, backend, tracefs, "")?;
            needed += memory_of(backend, &asked.question, &plan);
        }
        Ok::<bool, Error>(needed <= memory / 100)
    };
    let mut all = all.to_vec();
    let mut part = 1;
    while !fits(&all)? {
        part *= 2;
        let given = all.iter_mut().filter(|asked| !asked.question.size_asked);
        let smaller = given.map(|asked| asked.question.halve());
        if smaller.filter(|&smaller| smaller).count() == 0 {
            return Err(Error::new(
                "the smallest tables take more than a hundredth of the memory of this machine; ask fewer questions",
            ));
        }
    }
    while backend.grows(tracefs) {
        let mut larger = all.clone();
        let questions = larger.iter_mut().map(|asked| &mut asked.question);
        let growing = questions.filter(|question| !question.size_asked && !question.by.is_empty());
        let raised = growing.map(|question| question.grow(MOST_ROWS));
        if raised.filter(|&raised| raised).count() == 0 || !fits(&larger)? {
            break;
        }
        all = larger;
    }
    if part > 1 && !quiet {
        output::say(&format!(
            "rhist: tables with 1/{part} of their rows take a hundredth of the memory; --size asks for more"
        ));
    }
    Ok(all)
}

/// About what the tables of a question take.
fn memory_of(backend: Backend, question: &Question, plan: &Plan) -> u64 {
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    // The entry twice, the element and a key, of which a stack has 248 bytes; and sums, which the module keeps for each
    // CPU, as far as there are not very many of them.
    let row = match backend {
        Backend::C => 192,
        Backend::Module { .. } => 256 + 16 * cpus.min(36),
    };
    let row_of = |stack: bool| row + if stack { 256 } else { 0 };
    let (waiting, stack) = match &question.measure {
        Measure::Latency {
            waiting,
            expires,
            stack,
            ..
        } => {
            // The first trigger has a table of what waits, with the stacks; what forgets starts has two of it. So has one
            // between the first and the last, unless it joins.
            let forgets = expires.is_some() && backend != Backend::C;
            let first = row_of(*stack) * if forgets { 2 } else { 1 };
            let between = if backend.joins(*stack) {
                SIZE
            } else {
                *waiting
            };
            let between = plan.triggers().saturating_sub(2) * u64::from(between) * row;
            (u64::from(*waiting) * first + between, *stack)
        }
        _ => (
            0,
            question
                .by
                .iter()
                .any(|by| by.field().ends_with("stacktrace")),
        ),
    };
    waiting + u64::from(question.size.max(question.most)) * row_of(stack)
}

/// The threads of this process.
fn threads() -> Vec<u64> {
    let tasks = fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    let mut threads: Vec<u64> = tasks
        .filter_map(|task| task.file_name().to_str()?.parse().ok())
        .collect();
    threads.sort_unstable();
    threads
}

/// Whether a question divides by the name of the task that runs and the kernel refuses that: by a trial.
pub fn lacks_comm(session: &mut Session, backend: Backend, question: &Question) -> bool {
    backend == Backend::C
        && question.is_by_comm()
        && !session.takes(
            "sched:sched_process_exec",
            &format!("hist:keys={COMM}:size=128"),
        )
}

/// Refuses events that happen so often that counting them is felt, unless the user insists.
fn check_rates(session: &mut Session, backend: Backend, steps: &[Step]) -> Result<()> {
    for (event, rate) in session.rates(backend.command(), steps)? {
        if rate > MANY {
            return Err(Error::new(format!(
                "{event} happens {rate} times a second on one CPU, so counting it slows the machine down; \
                 narrow it down by --if, or insist by --yes"
            )));
        }
    }
    Ok(())
}

/// How many percent percentiles may be above the true values, where that is less than the intervals of powers of two
/// have: their width is chosen by what the first second counts.
fn first_second(backend: Backend, question: &Question) -> Option<u64> {
    match question.intervals {
        Intervals::Within(percent)
            if backend == Backend::C && question.has_intervals() && percent < 100 =>
        {
            Some(percent)
        }
        _ => None,
    }
}

/// Chooses the width of the intervals of a question by a table of powers of two, and says which one. They stay as they
/// are if the table has no room for finer ones.
fn choose_width(asked: &mut Asked, table: &Table, within: u64) -> String {
    let question = &mut asked.question;
    let unit = question.unit().map_or("", Unit::name);
    match width_within(&table.groups(), asked.lowest, within) {
        None => "nothing was counted in the first second, so the intervals are powers of two".into(),
        Some((width, rows)) if rows <= question.size.into() => {
            question.intervals = Intervals::Width(width);
            format!("the intervals are {width}{unit} wide by the first second, as by --buckets {width}")
        }
        Some((width, rows)) => format!(
            "the intervals are powers of two: of {width}{unit} they take about {rows} rows, and there are {}; {}",
            question.size,
            match rows <= MOST_ROWS.into() {
                true => format!("--size {} makes room", rows.next_power_of_two()),
                false => "ask for less by --max, --if or --by".into(),
            }
        ),
    }
}

/// Removes what killed processes have left, and says so. What cannot be removed disturbs nobody who asks.
fn clean_up(tracefs: &Tracefs, quiet: bool) {
    let left = Leftovers::find_unkept(tracefs);
    if left.is_empty() {
        return;
    }
    match left.remove(tracefs) {
        Err(error) => output::say(&format!(
            "rhist: something that a killed rhist has left stays: {error}"
        )),
        Ok(()) if quiet => {}
        Ok(()) => {
            let things = left.instances.len() + left.shared.len();
            output::say(&format!(
                "rhist: removed what a killed rhist had left: {things} instances and events"
            ));
        }
    }
}

/// Asks, and shows a table after each interval.
pub fn ask(
    asked: &Asked,
    showing: &Showing,
    tracefs: &Tracefs,
    global: &Global,
) -> Result<Outcome> {
    if showing.heat && !asked.question.has_intervals() {
        return Err(Error::new(format!(
            "{} counts here and has no intervals to draw over time; leave --heat out",
            asked.question.name
        )));
    }
    // Before a file is written over.
    Backend::choose(tracefs, global.backend)?;
    let mut sink = Sink::open(showing.output.as_deref())?;
    let stop = Stop::on_signals()?;
    let interval = asked.options.interval;
    count(std::slice::from_ref(asked), tracefs, global, &mut |all| {
        let (terminal, width) = (sink.terminal, sink.width);
        let look = |counting: &Counting<'_>| Look {
            labels: asked
                .question
                .by
                .iter()
                .map(|by| by.label.clone())
                .collect(),
            names: counting.plan.names.clone(),
            heading: asked.heading.clone(),
            percents: showing.rows.pct.clone(),
            top: showing.rows.top,
            scale: showing.unit,
            colour: global.color.wanted(terminal),
            blocks: blocks(),
            width,
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
        if !global.quiet && interval.is_none() {
            output::say("counting; ^C ends it and shows the table");
        }
        if showing.heat {
            let mut epochs = Vec::new();
            let mut head = None;
            every(all, Some(SECOND), &stop, &mut |counting| {
                let table = counting.source.next()?;
                epochs.push(Epoch::of(&table));
                if epochs.len() > MOST_EPOCHS {
                    epochs.remove(0);
                }
                // C's text names the columns only above rows.
                if head.is_none() || !table.rows.is_empty() {
                    head = Some(table.without_rows());
                }
                Ok(())
            })?;
            let paper = Paper::of_output(global.color.wanted(terminal));
            return match head {
                Some(head) => {
                    sink.write(heat::draw(&asked.title, &head, &epochs, paper).as_bytes())
                }
                None => Ok(()),
            };
        }
        let begin = Instant::now();
        every(all, None, &stop, &mut |counting| {
            let first = counting.tables == 1;
            let table = counting.source.next()?;
            let mut out = Vec::new();
            if showing.format == Form::Text && interval.is_some() {
                out = heading(&table, begin.elapsed(), first).into_bytes();
            }
            out.extend(output::table(
                &table,
                showing.format,
                &look(counting),
                first,
            )?);
            sink.write(&out)
        })
    })
}

/// A question that is being counted.
pub struct Counting<'a> {
    /// The question.
    pub asked: &'a Asked,
    /// Which of the questions it is, the first being 0.
    pub number: usize,
    /// Its table.
    pub source: Box<dyn Source>,
    /// How it was asked.
    pub plan: Plan,
    /// Who counts.
    pub backend: Backend,
    /// How many tables were due.
    pub tables: u32,
    /// What was lost until the last table.
    pub lost: Lost,
    /// Whether the last table has the account with which it came.
    pub as_it_came: bool,
}

impl Counting<'_> {
    /// The next table. In its account is what all triggers of the question have lost, for those who see nothing else.
    pub fn table(&mut self) -> Result<Table> {
        let mut table = self.source.next()?;
        let own = table.account;
        self.as_it_came = true;
        // That of a single trigger has it already.
        if self.plan.triggers() == 1 {
            return Ok(table);
        }
        let lost = self.source.lost()?;
        lost.account(&self.lost, &mut table.account);
        self.lost = lost;
        self.as_it_came = table.account.is_as(&own);
        Ok(table)
    }

    /// The lines of the last table as they came, if they came as JSON with the same account.
    pub fn lines(&self) -> Option<&[u8]> {
        self.source.lines().filter(|_| self.as_it_came)
    }

    /// Whether there were as many tables as wanted.
    fn is_done(&self) -> bool {
        let wanted = self.asked.options.tables;
        wanted.is_some_and(|wanted| u64::from(self.tables) >= wanted)
    }

    /// When the next table is due if counting began then; `otherwise` is the interval that nobody has said.
    fn due(&self, begin: Instant, otherwise: Option<Duration>) -> Instant {
        let interval = self.asked.options.interval.or(otherwise).unwrap_or(NEVER);
        let due = begin.checked_add(interval.saturating_mul(self.tables + 1));
        due.unwrap_or(begin + NEVER)
    }
}

/// Does something with each question at the end of each of its intervals, until there were as many as wanted or a signal
/// comes, which ends all of them.
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

/// Asks questions, and takes all of it back when `body` is done with the tables. Signals must not end the process by then.
pub fn count(
    all: &[Asked],
    tracefs: &Tracefs,
    global: &Global,
    body: &mut dyn FnMut(&mut [Counting<'_>]) -> Result<()>,
) -> Result<Outcome> {
    let backend = Backend::choose(tracefs, global.backend)?;
    let mut all = fit(all, memory(), backend, tracefs, global.quiet)?;
    let own = threads();
    for asked in &mut all {
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
        let mut plan = self::plan(asked, backend, tracefs, &owner(i))?;
        let mut session = Session::begin(tracefs, &plan, i, global.keep)?;
        // Events are made first, so that they are measured, too.
        let (needs, _) = plan.needs();
        session.apply(needs)?;
        if lacks_comm(&mut session, backend, &asked.question) {
            asked.question.lacks_comm = true;
            plan = self::plan(asked, backend, tracefs, &owner(i))?;
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
            plan = self::plan(asked, backend, tracefs, &owner(i))?;
            if !global.quiet {
                output::say(&format!("rhist: {}{said}", which(asked)));
            }
        }
        begun.push((session, plan));
    }
    let mut sessions = Vec::new();
    let mut counting = Vec::new();
    for (i, (asked, (mut session, plan))) in all.iter().zip(begun).enumerate() {
        session.apply(plan.needs().1)?;
        counting.push(Counting {
            asked,
            number: i,
            source: open(backend, session.instance(), &plan)?,
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
    for Counting { asked, source, .. } in &mut counting {
        let which = which(asked);
        let sentences = source.lost()?.sentences(more_room(&asked.question));
        said.extend(
            sentences
                .iter()
                .map(|sentence| format!("{which}{sentence}")),
        );
    }
    drop(counting);
    for session in sessions {
        session.end()?;
    }
    for sentence in &said {
        output::say(&format!("rhist: {sentence}"));
    }
    Ok(match said.is_empty() {
        true => Outcome::Done,
        false => Outcome::Incomplete,
    })
}

/// A size with which all tables of a question are larger, if there is one.
fn more_room(question: &Question) -> Option<u32> {
    let waiting = match question.measure {
        Measure::Latency { waiting, .. } => waiting,
        _ => question.size,
    };
    let size = question.size.max(question.most);
    let more = (size.saturating_mul(4)).max(waiting * 2).min(MOST_ROWS);
    (more > size.min(waiting)).then_some(more)
}

/// Opens the table of a plan that was carried out.
pub fn open(backend: Backend, instance: &Tracefs, plan: &Plan) -> Result<Box<dyn Source>> {
    Ok(match backend {
        Backend::Module { .. } => Box::new(Pipe::open(instance, plan)?),
        Backend::C => Box::new(Readings::open(instance, plan)),
    })
}

/// Whether the output may have characters beyond ASCII.
pub fn blocks() -> bool {
    let language = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|v| !v.is_empty()));
    language.is_some_and(|language| language.to_lowercase().replace('-', "").contains("utf8"))
}

/// The line above the table of an interval.
pub fn heading(table: &Table, elapsed: Duration, first: bool) -> String {
    let length = table.span.map_or(0.0, |span| span.seconds());
    let hits = units::count(table.account.hits.into());
    let gap = if first { "" } else { "\n" };
    format!(
        "{gap}after {:.1} s: {hits} hits in {length:.3} s\n",
        elapsed.as_secs_f64()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::Recipe;

    /// Gives one table, again and again, and loses more each time.
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

    fn asked(text: &str) -> Asked {
        let tracefs = Tracefs::find(Some(std::path::Path::new("tests/tracefs"))).unwrap();
        Asked::parse(text, &Recipe::all().unwrap(), &tracefs).unwrap()
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
        // Where nothing has expired the lines are as they came, though they do not say so.
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
        // One trigger has lost what its own table says.
        let asked = self::asked("count sched:sched_switch");
        table.account.full = 1;
        let mut all = counting(&asked, Some(table));
        assert_eq!(all.table().unwrap().account.full, 1);
        assert_eq!(all.lines(), Some(&b"lines"[..]));
    }

    #[test]
    fn a_trigger_that_is_too_long_is_said() {
        let tracefs = Tracefs::find(Some(std::path::Path::new("tests/tracefs"))).unwrap();
        let mut asked = asked("count sched:sched_switch");
        let mut fill = |length: usize, pid| {
            let rest = "hist:keys=common_type:size=2048 if ".len();
            let Measure::Count { event, .. } = &mut asked.question.measure else {
                panic!("no count")
            };
            event.filter = Some("x".repeat(length - rest));
            (asked.options.pid, asked.threads) = (pid, 700);
            let planned = plan(&asked, Backend::C, &tracefs, "1");
            planned.map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(fill(MOST_LINE, None), Ok(()));
        assert!(fill(MOST_LINE + 1, None).unwrap_err().contains("shorten"));
        let error = fill(MOST_LINE + 1, Some(7)).unwrap_err();
        assert!(error.starts_with("process 7 has 700 threads"), "{error}");
    }

    #[test]
    fn all_tables_take_memory() {
        let tracefs = Tracefs::find(Some(std::path::Path::new("tests/tracefs"))).unwrap();
        let of = |backend: Backend, text: &str| {
            let question = asked(text).question;
            let plan = backend.plan(&tracefs, &question, "1").unwrap();
            memory_of(backend, &question, &plan)
        };
        let memory = |text: &str| of(Backend::C, text);
        assert_eq!(memory("count sched:sched_switch"), 2048 * 192);
        // The two of a latency, and that of the intervals.
        assert_eq!(memory("runq"), (2 * 16384 + 8192) * 192);
        assert_eq!(memory("offcpu --stacks"), 8192 * (448 + 192) + 4096 * 448);
        // The trigger that joins has few rows, unless it hands stacks on.
        let module = Backend::Module { beside: false };
        let row = of(module, "count sched:sched_switch") / 2048;
        let all = of(module, "runq --min 5");
        assert_eq!(all, (16384 + 2048 + 8192) * row);
        let stacks = 8192 * (2 * row + 256) + 4096 * (row + 256);
        assert_eq!(of(module, "offcpu --stacks"), stacks);
    }

    #[test]
    fn tables_fit_small_machines() {
        let tracefs = Tracefs::find(Some(std::path::Path::new("tests/tracefs"))).unwrap();
        let rows = |all: &[Asked], memory: u64| {
            let fitted = fit(all, memory << 20, Backend::C, &tracefs, true)?;
            let rows = fitted.iter().map(|asked| match asked.question.measure {
                Measure::Latency { waiting, .. } => (waiting, asked.question.size),
                _ => (0, asked.question.size),
            });
            Ok::<Vec<_>, Error>(rows.collect())
        };
        // What the exporter's package exports, as it is installed.
        let default = include_str!("../debian/rhist-exporter.default");
        let exported = default.split('\'').skip(1).step_by(2).map(asked);
        let exported: Vec<Asked> = exported.collect();
        assert_eq!(exported.len(), 2);
        assert_eq!(rows(&exported, 2048), Ok(vec![(16384, 8192); 2]));
        assert_eq!(rows(&exported, 512), Ok(vec![(4096, 2048); 2]));
        let sized = ["runq --size 131072", "runq"].map(asked);
        let fitted = rows(&sized, 512).unwrap();
        assert_eq!(fitted, [(131_072, 131_072), (8192, 4096)]);
        let many = vec![asked("runq"); 128];
        let error = rows(&many, 512).unwrap_err();
        assert!(error.to_string().contains("ask fewer questions"), "{error}");
    }

    #[test]
    fn triggers_say_what_they_take_where_they_can() {
        let growing = Tracefs::find(Some("tests/tracefs-growing".as_ref())).unwrap();
        let older = Tracefs::find(Some("tests/tracefs".as_ref())).unwrap();
        let module = Backend::Module { beside: false };
        let mut asked = asked("runq --if pid>1");
        let counted = |asked: &Asked, backend, tracefs: &Tracefs| {
            let text = lines(&plan(asked, backend, tracefs, "1").unwrap());
            let all = text.lines().filter(|line| line.contains("keys=")).count();
            (all, text.matches(":overhead").count())
        };
        assert_eq!(counted(&asked, module, &growing).1, 0);
        asked.question.costs = true;
        let (all, with) = counted(&asked, module, &growing);
        assert!(all > 1 && with == all, "{with} of {all}");
        assert_eq!(counted(&asked, Backend::C, &growing).1, 0);
        assert_eq!(counted(&asked, module, &older).1, 0);
    }

    #[test]
    fn requests_without_an_end_are_forgotten_where_they_can() {
        let find = |path: &str| Tracefs::find(Some(path.as_ref())).unwrap();
        let (present, older) = (find("tests/tracefs-growing"), find("tests/tracefs"));
        let module = Backend::Module { beside: false };
        let forgets = |text: &str, backend, tracefs: &Tracefs| {
            let text = lines(&plan(&asked(text), backend, tracefs, "1").unwrap());
            text.matches(":expire(10s)").count()
        };
        assert_eq!(forgets("bio --disks", module, &present), 1);
        assert_eq!(forgets("bio --queued", module, &present), 1);
        assert_eq!(forgets("runq", module, &present), 0);
        assert_eq!(forgets("bio --disks", Backend::C, &present), 0);
        assert_eq!(forgets("bio --disks", module, &older), 0);
    }

    #[test]
    fn few_rows_do_for_starts_that_are_forgotten() {
        let find = |path: &str| Tracefs::find(Some(path.as_ref())).unwrap();
        let (present, older) = (find("tests/tracefs-growing"), find("tests/tracefs"));
        let module = Backend::Module { beside: false };
        let starts = |text: &str, backend, tracefs: &Tracefs| {
            let text = lines(&plan(&asked(text), backend, tracefs, "1").unwrap());
            let line = text.lines().find(|line| line.contains(":ts0=")).unwrap();
            let (_, end) = line.split_once(":size=").unwrap();
            end.split('\'').next().unwrap().to_owned()
        };
        for rows in [128, 2048, 131_072] {
            for question in ["bio --disks", "bio --queued", "bio --disks --min 5"] {
                let question = format!("{question} --size {rows}");
                let wanted = format!("{rows}:expire(10s)");
                assert_eq!(starts(&question, module, &present), wanted);
            }
        }
        assert_eq!(starts("bio --disks", module, &present), "16384:expire(10s)");
        let sized = "bio --disks --size 2048";
        assert_eq!(starts(sized, module, &older), "16384");
        assert_eq!(starts(sized, Backend::C, &present), "16384");
        assert_eq!(starts("runq --size 2048", module, &present), "16384");
    }

    #[test]
    fn no_table_of_ends_fills_up() {
        let tracefs = Tracefs::find(Some("tests/tracefs-growing".as_ref())).unwrap();
        let module = Backend::Module { beside: false };
        let keyed_by_sector = |text: &str, backend| {
            let text = lines(&plan(&asked(text), backend, &tracefs, "1").unwrap());
            let keyed = text
                .lines()
                .filter(|line| line.contains("keys=dev,sector:"));
            let (forget, stay) = keyed.partition::<Vec<_>, _>(|line| line.contains(":expire("));
            (forget.len(), stay.len())
        };
        for question in ["bio --disks", "bio --disks --min 5", "bio --queued --max 5"] {
            assert_eq!(keyed_by_sector(question, module), (1, 0), "{question}");
            assert_eq!(keyed_by_sector(question, Backend::C), (0, 2), "{question}");
        }
    }

    #[test]
    fn tables_grow_where_they_may() {
        let find = |path: &str| Tracefs::find(Some(std::path::Path::new(path))).unwrap();
        let growing = find("tests/tracefs-growing");
        let module = Backend::Module { beside: false };
        let size_in = |tracefs: &Tracefs, text: &str, backend: Backend, memory: u64| {
            let fitted = fit(&[asked(text)], memory << 20, backend, tracefs, true).unwrap();
            let plan = plan(&fitted[0], backend, tracefs, "1").unwrap();
            let lines = lines(&plan);
            let (_, size) = lines.rsplit_once(":size=").unwrap();
            size.split(|c: char| !c.is_ascii_digit() && c != '.')
                .next()
                .map(str::to_owned)
        };
        let size = |text: &str, backend, memory| size_in(&growing, text, backend, memory);
        let of = |text: &str| Some(text.to_owned());
        assert_eq!(size("runq --by comm", module, 1 << 20), of("8192..131072"));
        let small = size("runq --by comm", module, 2048).unwrap();
        let (first, last) = small.split_once("..").unwrap();
        assert_eq!(first, "8192");
        assert!(last.parse::<u32>().unwrap() < 131_072, "{small}");
        // There is nothing to tell apart, the user knows better, and where nobody says that tables grow.
        assert_eq!(size("runq", module, 1 << 20), of("8192"));
        let sized = "runq --by comm --size 4096";
        assert_eq!(size(sized, module, 1 << 20), of("4096"));
        let beside = Backend::Module { beside: true };
        for backend in [beside, Backend::C] {
            assert_eq!(size("runq --by comm", backend, 1 << 20), of("8192"));
        }
        let older = find("tests/tracefs");
        assert_eq!(
            size_in(&older, "runq --by comm", module, 1 << 20),
            of("8192")
        );
    }

    #[test]
    fn the_first_second_chooses_intervals() {
        let second = |backend, text: &str| first_second(backend, &asked(text).question);
        assert_eq!(second(Backend::C, "runq --within 10"), Some(10));
        // Powers of two are enough, there are none, and the module has them as fine as is asked for.
        assert_eq!(second(Backend::C, "runq --within 100"), None);
        assert_eq!(second(Backend::C, "oncpu --within 10"), None);
        assert_eq!(second(Backend::C, "runq"), None);
        assert_eq!(
            second(Backend::Module { beside: true }, "runq --within 10"),
            None
        );
        let chosen = |text: &str, rows: &[(i128, u32, u64)]| {
            let mut asked = asked(text);
            let said = choose_width(&mut asked, &crate::model::tests::table(rows), 10);
            (said, asked.question.intervals)
        };
        let (said, intervals) = chosen("runq", &[(7, 14, 10), (7, 20, 1), (8, 15, 2)]);
        assert_eq!(
            said,
            "the intervals are 800ns wide by the first second, as by --buckets 800"
        );
        assert_eq!(intervals, Intervals::Width(800));
        let asked = chosen("runq --within 10", &[]);
        assert!(asked.0.starts_with("nothing was counted"), "{}", asked.0);
        assert_eq!(asked.1, Intervals::Within(10));
        let wide = [(7, 14, 10), (7, 24, 1)];
        let (said, intervals) = chosen("runq", &wide);
        assert!(
            said.ends_with("about 20962 rows, and there are 8192; --size 32768 makes room"),
            "{said}"
        );
        assert_eq!(intervals, Intervals::Usual);
        assert_eq!(chosen("runq --size 32768", &wide).1, Intervals::Width(800));
        let (said, _) = chosen("runq", &[(7, 14, 10), (7, 40, 1)]);
        assert!(
            said.ends_with("; ask for less by --max, --if or --by"),
            "{said}"
        );
    }

    #[test]
    fn the_advice_makes_room() {
        let waiting = |question: &Question| match question.measure {
            Measure::Latency { waiting, .. } => waiting,
            _ => question.size,
        };
        for text in ["bio", "offcpu --stacks", "kmem"] {
            let before = asked(text).question;
            let more = more_room(&before).unwrap();
            let after = asked(&format!("{text} --size {more}")).question;
            assert!(after.size > before.size, "{text}");
            assert!(waiting(&after) > waiting(&before), "{text}");
            let largest = asked(&format!("{text} --size {MOST_ROWS}")).question;
            assert_eq!(more_room(&largest), None);
        }
        let full = Lost {
            full: 1,
            ..Lost::default()
        };
        assert!(full.sentences(Some(8192))[0].contains("--size 8192"));
        assert!(!full.sentences(None)[0].contains("--size"));
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
        // The one that has no end ends with a signal.
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
