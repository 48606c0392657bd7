// SPDX-License-Identifier: MIT OR Apache-2.0

//! Creates the tool's objects in tracefs, and removes all of them again.
//!
//! A session has its own instance, named after the process id and the process's start time. The names of objects that
//! belong to all instances, synthetic events and probes, contain the process id. Each step first adds an entry to the
//! undo list, which runs in reverse when the session is dropped: at the end, at a signal, in a panic. Leftovers of a
//! killed process are removed by the next process, or by `rhist clean`; objects that the user keeps, only by the
//! latter.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{flock, FlockOperation};

use crate::backend::lines::FIRST_KIB;
use crate::backend::{Plan, Step};
use crate::error::{Error, Result};
use crate::question::condition;
use crate::reading;
use crate::tracefs::{names_in, read, Tracefs};
use crate::whose::threads;

/// The time for which events are counted to measure their rates.
pub const SAMPLE: Duration = Duration::from_millis(200);
const SCHEDSTATS: &str = "/proc/sys/kernel/sched_schedstats";
/// The suffix of the name of an instance whose owner needs `sched_schedstats`, which was off before the first such
/// owner. The last owner switches it off again.
const SCHEDSTATS_MARK: &str = "-schedstats";
/// The mark before that suffix in the name of an instance that the user keeps.
const KEEP_MARK: &str = "-keep";
/// The files that list objects of all instances, and that accept lines to remove them.
const SHARED: [&str; 3] = ["synthetic_events", "rsynthetic_events", "dynamic_events"];

/// How a step is undone.
#[derive(Debug)]
enum Undo {
    /// By a line in a file, of an instance or of all of them.
    Line {
        of: Tracefs,
        file: PathBuf,
        line: String,
    },
    Instance,
}

/// All objects that the tool has made for a question.
#[derive(Debug)]
pub struct Session {
    top: Tracefs,
    instance: Tracefs,
    name: String,
    undo: Vec<Undo>,
    keep: bool,
    /// The lock tells other processes that the owner is alive.
    _lock: Option<File>,
}

/// Returns the text in the names of objects of this process for its question number `question`, from 0: the process id
/// and, from the second question on, the question's number.
pub fn owner(question: usize) -> String {
    let pid = std::process::id();
    match question {
        0 => pid.to_string(),
        _ => format!("{pid}_{}", question + 1),
    }
}

/// Returns when a process was started, in clock ticks since boot; together with the id this identifies the process.
fn start_time(pid: &str) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program, in parentheses, may contain blanks; the time is the 20th field after it.
    stat.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(19)
        .map(str::to_owned)
}

impl Session {
    /// Creates the instance of the question with this number. With `keep` nothing is undone later.
    pub fn begin(tracefs: &Tracefs, plan: &Plan, question: usize, keep: bool) -> Result<Self> {
        let pid = owner(0);
        let start = start_time(&pid)
            .ok_or_else(|| Error::new("cannot read /proc/self/stat; mount /proc"))?;
        let turn = match plan.steps.contains(&Step::Schedstats) {
            true => Some(turn(tracefs)?),
            false => None,
        };
        let others = || instances(tracefs).iter().any(|name| is_marked(name));
        let mark = match turn.is_some() && (switched_off()? || others()) {
            true => SCHEDSTATS_MARK,
            false => "",
        };
        let which = match question {
            0 => String::new(),
            _ => format!("-{}", question + 1),
        };
        let kept = if keep { KEEP_MARK } else { "" };
        let name = format!("rhist-{pid}-{start}{which}{kept}{mark}");
        let instance = tracefs.instance(&name);
        let mut session = Self {
            top: tracefs.clone(),
            instance,
            name,
            undo: vec![Undo::Instance],
            keep,
            _lock: None,
        };
        let root = session.instance.root().display();
        session.instance.say(&format!("mkdir {root}"));
        if let Err(error) = fs::create_dir(session.instance.root()) {
            session.undo.clear();
            let root = error.kind() == io::ErrorKind::PermissionDenied;
            let way = if root { "; run as root" } else { "" };
            let error = Error::file("make the instance", session.instance.root(), &error);
            return Err(error!("{error}{way}"));
        }
        drop(turn);
        session._lock = lock(session.instance.root());
        // Nothing is traced into its buffer unless lines are asked for.
        write(&session.instance, "buffer_size_kb", "4")?;
        Ok(session)
    }

    /// Carries out steps of a plan.
    pub fn apply(&mut self, steps: &[Step]) -> Result<()> {
        steps.iter().try_for_each(|step| self.step(step))
    }

    fn step(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Schedstats => match is_marked(&self.name) {
                true => write_schedstats(&self.top, "1"),
                false => Ok(()),
            },
            Step::Processes { pids } => follow(&self.instance, pids),
            Step::Buffer { stack, user } => {
                for (wanted, option) in [(*stack, "stacktrace"), (*user, "userstacktrace")] {
                    if wanted {
                        write(&self.instance, &format!("options/{option}"), "1")?;
                    }
                }
                write(&self.instance, "trace_clock", "mono")?;
                write(&self.instance, "buffer_size_kb", &FIRST_KIB.to_string())
            }
            Step::Records { event, filter } => {
                self.has_event(event)?;
                let file = |name| self.instance.event_file(event, name);
                if let Some(filter) = filter {
                    self.instance.append(&file("filter"), filter)?;
                }
                let enable = file("enable");
                self.line(self.instance.clone(), enable, "1", "0".into())
            }
            Step::Dynamic { line, name } => {
                self.refuse_existing(&name.replace('/', ":"))?;
                let file = self.top.path("dynamic_events");
                self.line(self.top.clone(), file, line, format!("-:{name}"))
            }
            Step::Synthetic { file, line, name } => {
                self.refuse_existing(&format!("{}:{name}", file.trim_end_matches("_events")))?;
                let file = self.top.path(file);
                self.line(self.top.clone(), file, line, format!("!{name}"))
            }
            Step::Trigger { event, line } => {
                self.has_event(event)?;
                // An instance has its own error_log.
                let file = self.instance.event_file(event, "trigger");
                self.line(self.instance.clone(), file, line, format!("!{line}"))
            }
        }
    }

    /// Adds a line to a file, which `undo` undoes.
    fn line(&mut self, of: Tracefs, file: PathBuf, line: &str, undo: String) -> Result<()> {
        self.undo.push(Undo::Line {
            of: of.clone(),
            file: file.clone(),
            line: undo,
        });
        let written = of.append(&file, line);
        if written.is_err() {
            self.undo.pop();
        }
        Ok(written?)
    }

    fn has_event(&self, event: &str) -> Result<()> {
        match self.instance.has_event(event) {
            true => Ok(()),
            false => Err(error!("there is no event {event} in this kernel")),
        }
    }

    /// Carries steps out for as long as it takes to look at the instance.
    pub fn try_out<T>(
        &mut self,
        steps: &[Step],
        look: impl FnOnce(&Tracefs) -> Result<T>,
    ) -> Result<T> {
        let made = self.undo.len();
        let seen = self.apply(steps).and_then(|()| look(&self.instance));
        let undone = self.undo_to(made);
        let seen = seen?;
        undone.map(|()| seen)
    }

    /// Returns whether the kernel accepts a trigger, by creating it for a moment.
    pub fn takes(&mut self, event: &str, line: &str) -> bool {
        let (event, line) = (event.to_owned(), line.to_owned());
        self.try_out(&[Step::Trigger { event, line }], |_| Ok(()))
            .is_ok()
    }

    /// Returns two rates of each existing event for which these steps have triggers: the hits a second on the CPU with
    /// most of them, and on all CPUs. Triggers with the same filters, which exist for a moment, measure them.
    pub fn rates(&mut self, command: &str, steps: &[Step]) -> Result<Vec<(String, u128, u128)>> {
        let mut samples = samples(command, steps);
        // Events made for the question cannot happen more often than the events that they follow from.
        samples.retain(|(event, _)| self.instance.has_event(event));
        let mut events: Vec<String> = samples.iter().map(|(event, _)| event.clone()).collect();
        events.sort();
        events.dedup();
        let trigger = |(event, line)| Step::Trigger { event, line };
        let steps: Vec<Step> = samples.into_iter().map(trigger).collect();
        self.try_out(&steps, |instance| {
            let begin = Instant::now();
            thread::sleep(SAMPLE);
            let mut rates = Vec::new();
            for event in events {
                let file = read(&instance.event_file(&event, command))?;
                let tables = reading::tables(&event, &file)?;
                let rows = tables.iter().flat_map(|table| &table.rows);
                let hits = rows.filter_map(|row| row.values.first());
                let hits: Vec<u128> = hits.map(|hits| hits.unsigned_abs()).collect();
                let most = hits.iter().max().copied().unwrap_or(0);
                let millis = begin.elapsed().as_millis().max(1);
                let all: u128 = hits.iter().sum();
                rates.push((event, most * 1000 / millis, all * 1000 / millis));
            }
            Ok(rates)
        })
    }

    /// Refuses a name of an event that exists, as the tool never touches events of others.
    fn refuse_existing(&self, event: &str) -> Result<()> {
        match self.top.has_event(event) {
            true => Err(error!(
                "there is an event {event} already; 'rhist clean' removes what a killed rhist has left"
            )),
            false => Ok(()),
        }
    }

    /// Returns the instance of the session.
    pub fn instance(&self) -> &Tracefs {
        &self.instance
    }

    /// Undoes all steps, and returns an error about objects that are left.
    pub fn end(mut self) -> Result<()> {
        if self.keep {
            say!(
                "rhist: left as it is: {}; 'rhist clean' removes it",
                self.instance.root().display()
            );
            return Ok(());
        }
        self.undo_to(0)
    }

    /// Undoes the last steps until `left` steps remain.
    fn undo_to(&mut self, left: usize) -> Result<()> {
        let mut first = Ok(());
        while self.undo.len() > left {
            let Some(undo) = self.undo.pop() else { break };
            let done = match undo {
                Undo::Line { of, file, line } => of.append(&file, &line).map_err(Error::from),
                Undo::Instance => remove_instance(&self.top, &self.name),
            };
            first = first.and(done);
        }
        first
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.keep {
            if let Err(error) = self.undo_to(0) {
                say!("rhist: {error}\nrhist: 'rhist clean' removes what is left");
            }
        }
    }
}

/// Restricts an instance to records of these processes, their threads, and the tasks that they will start.
fn follow(instance: &Tracefs, pids: &[u64]) -> Result<()> {
    write(instance, "options/event-fork", "1")?;
    let mut named: Vec<u64> = Vec::new();
    loop {
        let threads = pids.iter().flat_map(|&pid| threads(Path::new("/"), pid));
        let more: Vec<u64> = threads.filter(|tid| !named.contains(tid)).collect();
        if more.is_empty() {
            break;
        }
        let line: Vec<String> = more.iter().map(u64::to_string).collect();
        instance.append(&instance.path("set_event_pid"), &line.join(" "))?;
        named.extend(more);
    }
    match named.is_empty() {
        true => Err(error!("there is no process {} any more", pids[0])),
        false => Ok(()),
    }
}

/// Replaces the content of a file of an instance.
fn write(instance: &Tracefs, name: &str, text: &str) -> Result<()> {
    let file = instance.path(name);
    instance.say(&format!("echo '{text}' > {}", file.display()));
    fs::write(&file, text).map_err(|error| Error::file("write", &file, &error))
}

/// Returns the triggers that count as many records as the triggers of these steps, each once, with their events.
fn samples(command: &str, steps: &[Step]) -> Vec<(String, String)> {
    let mut samples = Vec::new();
    for step in steps {
        let Step::Trigger { event, line } = step else {
            continue;
        };
        let filter = line.split_once(" if ").map(|(_, filter)| filter);
        let condition = condition(filter);
        let line = format!("{command}:keys=common_cpu:size=128{condition}");
        let sample = (event.clone(), line);
        if !samples.contains(&sample) {
            samples.push(sample);
        }
    }
    samples
}

/// Returns whether the kernel's statistics of waits are switched off; an error if it has none.
pub fn switched_off() -> Result<bool> {
    let off = fs::read_to_string(SCHEDSTATS).map_err(|_| {
        Error::new(
            "this kernel does not measure waits (CONFIG_SCHEDSTATS); ask without this option",
        )
    })?;
    Ok(off.trim() == "0")
}

fn write_schedstats(tracefs: &Tracefs, value: &str) -> Result<()> {
    tracefs.say(&format!("echo {value} > {SCHEDSTATS}"));
    fs::write(SCHEDSTATS, value)
        .map_err(|error| Error::file("write", Path::new(SCHEDSTATS), &error))
}

/// The parts of an instance's name that the tool has chosen.
#[derive(Debug, PartialEq, Eq)]
struct Owner<'a> {
    pid: &'a str,
    start: &'a str,
    /// Whether the user keeps the instance.
    kept: bool,
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Returns the owner in the name of an instance, if the tool has made it: others may name theirs `rhist-web-2`.
fn owner_of(name: &str) -> Option<Owner<'_>> {
    let name = name.strip_suffix(SCHEDSTATS_MARK).unwrap_or(name);
    let (name, kept) = match name.strip_suffix(KEEP_MARK) {
        Some(name) => (name, true),
        None => (name, false),
    };
    let parts: Vec<&str> = name.strip_prefix("rhist-")?.split('-').collect();
    match parts[..] {
        [pid, start] | [pid, start, _] if parts.iter().all(|part| is_number(part)) => {
            Some(Owner { pid, start, kept })
        }
        _ => None,
    }
}

/// Returns the names of all instances.
fn instances(tracefs: &Tracefs) -> Vec<String> {
    names_in(&tracefs.path("instances"))
}

/// Returns whether the owner of this instance needs `sched_schedstats`, which was off before.
fn is_marked(name: &str) -> bool {
    name.ends_with(SCHEDSTATS_MARK) && owner_of(name).is_some()
}

/// Waits until no other process is creating or removing an instance that needs `sched_schedstats`.
fn turn(tracefs: &Tracefs) -> Result<File> {
    let path = tracefs.path("instances");
    let locked = File::open(&path).and_then(|file| {
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    });
    locked.map_err(|error| Error::file("lock", &path, &error))
}

/// Removes an instance that has no triggers any more.
fn remove_instance(tracefs: &Tracefs, name: &str) -> Result<()> {
    let turn = match is_marked(name) {
        true => Some(turn(tracefs)?),
        false => None,
    };
    let other = |other: &String| other != name && is_marked(other);
    if turn.is_some() && !instances(tracefs).iter().any(other) {
        write_schedstats(tracefs, "0")?;
    }
    let instance = tracefs.instance(name);
    instance.say(&format!("rmdir {}", instance.root().display()));
    fs::remove_dir(instance.root())
        .map_err(|error| Error::file("remove the instance", instance.root(), &error))
}

/// Locks a directory, to tell others that its owner is alive.
fn lock(directory: &Path) -> Option<File> {
    let file = File::open(directory).ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(file)
}

/// The leftovers of killed processes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// The names of instances.
    pub instances: Vec<String>,
    /// Lines that remove objects of all instances, each with its file.
    pub shared: Vec<(String, String)>,
}

impl Leftovers {
    /// Finds instances and events whose owner is gone, including those that the user keeps.
    pub fn find(tracefs: &Tracefs) -> Self {
        Self::look(tracefs, true)
    }

    /// Finds instances and events whose owner is gone, except for those that the user keeps.
    pub fn find_unkept(tracefs: &Tracefs) -> Self {
        Self::look(tracefs, false)
    }

    fn look(tracefs: &Tracefs, also_kept: bool) -> Self {
        // The owners with an instance; this process has none yet, and a dead process may have had the same id.
        let mut alive = Vec::new();
        let mut left = Self::default();
        // Read before the instances: a living owner has its instance before its events.
        let shared = SHARED.map(|file| (file, tracefs.read_text(file).unwrap_or_default()));
        for name in instances(tracefs) {
            let Some(Owner { pid, start, kept }) = owner_of(&name) else {
                continue;
            };
            let stays = kept && !also_kept
                || start_time(pid).as_deref() == Some(start)
                || lock(tracefs.instance(&name).root()).is_none();
            match stays {
                true => alive.push(pid.to_owned()),
                false => left.instances.push(name),
            }
        }
        for (file, text) in shared {
            let undos = text.lines().filter_map(|line| shared_line(file, line));
            let dead = undos.filter(|(owner, _)| !alive.contains(owner));
            left.shared
                .extend(dead.map(|(_, undo)| (file.to_owned(), undo)));
        }
        left
    }

    /// Returns whether there are no leftovers.
    pub fn is_empty(&self) -> bool {
        self.instances.is_empty() && self.shared.is_empty()
    }

    /// Removes the leftovers, and returns an error for those that stay. A missing one was removed by another process.
    pub fn remove(&self, tracefs: &Tracefs) -> Result<()> {
        let mut first = Ok(());
        for name in &self.instances {
            let instance = tracefs.instance(name);
            let removed = remove_triggers(&instance).and_then(|()| remove_instance(tracefs, name));
            if instance.root().exists() {
                first = first.and(removed);
            }
        }
        for (file, line) in &self.shared {
            let removed = tracefs.append(&tracefs.path(file), line);
            let name = line.trim_start_matches(['!', '-', ':']);
            let stays = |text: String| text.contains(name);
            if tracefs.read_text(file).is_ok_and(stays) {
                first = first.and(removed.map_err(Error::from));
            }
        }
        first
    }
}

/// Returns the owner of the object in a line of a shared file, and the line that removes it.
fn shared_line(file: &str, line: &str) -> Option<(String, String)> {
    // After the process id there may be the number of a question.
    let owner = |name: &str, end: &[char]| -> Option<String> {
        let (pid, _) = name.strip_prefix("rhist_")?.split_once(end)?;
        is_number(pid).then(|| pid.to_owned())
    };
    if file != "dynamic_events" {
        let name = line.split_whitespace().next()?;
        return owner(name, &['_']).map(|pid| (pid, format!("!{name}")));
    }
    // Synthetic events, which this file lists, too, were found in their own file.
    let (_, rest) = line.split_once(':')?;
    let name = rest.split_whitespace().next()?;
    let (system, _) = name.split_once('/')?;
    let own = system.strip_prefix("rhist_")?.split('_').all(is_number);
    let pid = owner(name, &['_', '/']).filter(|_| own)?;
    Some((pid, format!("-:{name}")))
}

/// Removes all triggers of an instance without an owner, those whose variables others read last.
fn remove_triggers(instance: &Tracefs) -> Result<()> {
    let file = |event: &String| instance.event_file(event, "trigger");
    let mut files: Vec<PathBuf> = triggers_of(instance).iter().map(file).collect();
    loop {
        let before = files.len();
        let mut refused = Ok(());
        files.retain(|path| {
            // Truncation removes no trigger if one of them reads another's variable; so remove them by their lines,
            // last first, as readers come after the triggers that they read.
            for line in triggers(path).iter().rev() {
                let line = line
                    .trim_end_matches(" [active]")
                    .trim_end_matches(" [paused]");
                if let Err(error) = instance.append(path, &format!("!{line}")) {
                    refused = Err(error.into());
                }
            }
            let emptied = OpenOptions::new().write(true).truncate(true).open(path);
            if let Err(error) = emptied {
                refused = Err(Error::file("remove the triggers of", path, &error));
            }
            !triggers(path).is_empty()
        });
        if files.is_empty() {
            return Ok(());
        }
        if files.len() == before {
            return refused.and(Err(error!(
                "cannot remove the triggers of {}: something else uses them",
                instance.root().display()
            )));
        }
    }
}

/// Returns the lines of the triggers in a file.
fn triggers(path: &Path) -> Vec<String> {
    let text = String::from_utf8_lossy(&read(path).unwrap_or_default()).into_owned();
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(str::to_owned).collect()
}

/// Returns the events of an instance that have a trigger, as `system:event`.
pub fn triggers_of(instance: &Tracefs) -> Vec<String> {
    let root = instance.path("events");
    let mut events = Vec::new();
    for system in names_in(&root) {
        let of_system = names_in(&root.join(&system)).into_iter();
        events.extend(of_system.map(|event| format!("{system}:{event}")));
    }
    events.retain(|event| !triggers(&instance.event_file(event, "trigger")).is_empty());
    events.sort();
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_a_start() {
        assert!(start_time(&owner(0)).is_some());
        assert!(start_time("0").is_none());
    }

    #[test]
    fn samples_have_the_filters_of_the_triggers() {
        let trigger = |event: &str, line: &str| Step::Trigger {
            event: event.into(),
            line: line.into(),
        };
        let steps = [
            Step::Schedstats,
            trigger(
                "a:b",
                "hist:keys=x:ts0=common_timestamp:size=16384 if x > 1",
            ),
            trigger("a:b", "hist:keys=y:size=2048 if x > 1"),
            trigger("a:b", "hist:keys=y:size=2048"),
        ];
        let sample = |filter| {
            let line = format!("hist:keys=common_cpu:size=128{filter}");
            ("a:b".to_owned(), line)
        };
        assert_eq!(samples("hist", &steps), [" if x > 1", ""].map(sample));
    }

    #[test]
    fn only_own_lines_are_removed() {
        let of = |file, line| shared_line(file, line).map(|(pid, undo)| format!("{pid} {undo}"));
        assert_eq!(
            of("synthetic_events", "rhist_12_runq\tu64 lat").unwrap(),
            "12 !rhist_12_runq"
        );
        assert_eq!(of("synthetic_events", "rhist_x_runq\tu64 lat"), None);
        assert_eq!(of("synthetic_events", "rhist__mine\tu64 lat"), None);
        assert_eq!(of("synthetic_events", "wakeup\tu64 lat"), None);
        assert_eq!(
            of("dynamic_events", "t:rhist_12/rq block_rq_issue rq=$arg1").unwrap(),
            "12 -:rhist_12/rq"
        );
        assert_eq!(
            of("dynamic_events", "t:rhist_12_2/rq block_rq_issue rq=$arg1").unwrap(),
            "12 -:rhist_12_2/rq"
        );
        assert_eq!(
            of("dynamic_events", "s:synthetic/rhist_12_runq\tu64 lat"),
            None
        );
        assert_eq!(of("dynamic_events", "p:vfs/read vfs_read"), None);
        for line in [
            "p:rhist__mine/read vfs_read",
            "p:rhist_12_mine/read vfs_read",
            "p:rhist_12_/read vfs_read",
        ] {
            assert_eq!(of("dynamic_events", line), None);
        }
    }

    #[test]
    fn only_own_instances_have_an_owner() {
        for name in [
            "rhist-12-77",
            "rhist-12-77-2",
            "rhist-12-77-schedstats",
            "rhist-12-77-2-schedstats",
        ] {
            for (mark, kept) in [("", false), (KEEP_MARK, true)] {
                let name = match name.strip_suffix(SCHEDSTATS_MARK) {
                    Some(name) => format!("{name}{mark}{SCHEDSTATS_MARK}"),
                    None => format!("{name}{mark}"),
                };
                let (pid, start) = ("12", "77");
                let owner = Some(Owner { pid, start, kept });
                assert_eq!(owner_of(&name), owner, "{name}");
            }
        }
        for name in [
            "rhist",
            "rhist-",
            "rhist-1",
            "rhist--2",
            "rhist-1-",
            "rhist-1-2-",
            "rhist-1-2-x",
            "rhist-1-2-3-4",
            "rhist-1-2-schedstats-3",
            "rhist-1-2-schedstats-keep",
            "rhist-keep",
            "rhist-web-2",
            "rhist-web-2-schedstats",
            "rhist-my-test",
            "myrhist-1-2",
        ] {
            assert_eq!(owner_of(name), None, "{name}");
            assert!(!is_marked(name), "{name}");
        }
    }

    #[test]
    fn what_the_dead_have_left_is_found() {
        let root = std::env::temp_dir().join(format!("rhist-left-{}", std::process::id()));
        let own = format!("rhist-{}-{}", owner(0), start_time(&owner(0)).unwrap());
        // In a container, the process id 1 of a dead owner belongs to a living process.
        let reused = "rhist-1-18446744073709551615";
        for name in [
            own.as_str(),
            reused,
            "rhist-4194306-77-2-keep",
            "rhist-4194305-77",
            "rhist-4194305-77-schedstats",
            "somebody",
            "rhist",
            "rhist-web-2",
            "rhist-1-2-x",
        ] {
            fs::create_dir_all(root.join("instances").join(name)).unwrap();
        }
        fs::create_dir_all(root.join("events")).unwrap();
        fs::write(
            root.join("synthetic_events"),
            format!(
                "rhist_1_a\tu64 x\nrhist_4194305_a\tu64 x\nrhist_4194306_a\tu64 x\nrhist_{}_a\tu64 x\n",
                owner(0)
            ),
        )
        .unwrap();
        let tracefs = Tracefs::find(Some(&root)).unwrap();
        let line = |name: &str| ("synthetic_events".to_owned(), format!("!{name}"));
        let left = Leftovers::find_unkept(&tracefs);
        let killed = ["rhist-4194305-77", "rhist-4194305-77-schedstats"];
        assert_eq!(left.instances, [&[reused], &killed[..]].concat());
        assert_eq!(left.shared, ["rhist_1_a", "rhist_4194305_a"].map(line));
        let mut left = Leftovers::find(&tracefs);
        let kept = "rhist-4194306-77-2-keep";
        assert_eq!(left.instances, [&[reused], &killed[..], &[kept]].concat());
        let all = ["rhist_1_a", "rhist_4194305_a", "rhist_4194306_a"];
        assert_eq!(left.shared, all.map(line));
        // A directory that cannot be removed does not keep the others from being removed.
        left.instances.retain(|name| !is_marked(name));
        fs::write(root.join("instances").join(reused).join("busy"), "").unwrap();
        assert!(left.remove(&tracefs).is_err());
        let stays = |name: &&str| root.join("instances").join(name).exists();
        assert!(stays(&reused) && stays(&own.as_str()));
        assert!(![killed[0], kept].iter().any(stays));
        fs::remove_dir_all(root).unwrap();
    }
}
