// SPDX-License-Identifier: MIT OR Apache-2.0

//! Recipes: the tool's ready-made questions, as data, from which help, man pages and documents are made.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::model::Unit;
use crate::options::Options;
use crate::question::{
    any_of, nobody, Before, By, Intervals, Latency, Measure, Only, Owner, Probe, Question, Records,
    Sum, COMM, CURRENT, OWN, SIZE, TASK,
};
use crate::tracefs::{disks, Format, Holds, Tracefs};

/// The directory for an administrator's recipes.
const MORE: &str = "/etc/rhist/recipes.d";

/// The number of rows for starts that have not ended.
pub const WAITING: u32 = 16384;

/// The largest number of an event's own fields in a line.
const MOST_FIELDS: usize = 9;

/// The largest number of an event's own fields in an exemplar.
const MOST_SAVED: usize = 4;

/// Keys that belong to the current task.
const OF_CURRENT: [&str; 10] = [
    "common_pid",
    "common_tgid",
    "common_comm",
    "common_cgroup",
    "common_uid",
    "common_stacktrace",
    "comm",
    "pid",
    "task",
    "stack",
];

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../recipes/", $name, ".toml")))),*]
    };
}

/// The tool's own recipes, in the order of the help.
const BUILT_IN: &[(&str, &str)] = built_in![
    "runq", "offcpu", "oncpu", "profile", "bio", "syscalls", "fsync", "faults", "kmem", "irq",
    "softirq", "work", "locks", "tcp", "connect", "drops", "exec", "open", "timers", "cache",
    "reclaim", "oom",
];

/// A ready-made question, in one or more variants.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The name of the recipe, from the name of its file.
    #[serde(skip)]
    pub name: String,
    /// The question in one sentence.
    pub question: String,
    /// A longer description: the measured quantity, and how to read the answer.
    pub prose: String,
    /// Options that restrict the records.
    #[serde(default, rename = "option")]
    pub options: Vec<Narrowing>,
    /// Command lines with this recipe.
    #[serde(default, rename = "example")]
    pub examples: Vec<Example>,
    /// The ways of asking. The first one without a flag that the kernel supports is the default.
    #[serde(rename = "variant")]
    pub variants: Vec<Variant>,
    /// The error in the recipe's file, if it has one.
    #[serde(skip)]
    pub broken: Option<String>,
}

/// A command line, and its purpose.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// The words after `rhist`.
    pub ask: String,
    /// The purpose of the command line, in words.
    pub says: String,
}

/// An option whose values become a filter.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Narrowing {
    /// The long name of the option, without `--`.
    pub name: String,
    /// The short name of the option.
    pub short: Option<char>,
    /// The placeholder for the values in help.
    pub value: String,
    /// The help text of the option.
    pub help: String,
    /// The kind of the option's values.
    pub kind: Values,
    /// The field that must have one of the values.
    pub field: String,
    /// Whether the field is one of a latency's first event, instead of the counted event.
    #[serde(default)]
    pub start: bool,
}

/// A kind of values of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Values {
    /// Names of system calls.
    Syscall,
    /// Names of disks.
    Disk,
    /// Letters of task states, as `ps` shows them.
    State,
}

impl Values {
    /// Returns the kernel's number for a value.
    pub fn number(self, value: &str) -> Result<u64> {
        match self {
            Self::Syscall => {
                let name = value.strip_prefix("sys_").unwrap_or(value);
                let number: std::result::Result<syscalls::Sysno, _> = name.parse();
                number.map(|number| number.id() as u64).map_err(|_| {
                    error!(
                        "'{value}' is no system call of this machine; 'rhist syscalls' shows names"
                    )
                })
            }
            Self::State => match value {
                "S" => Ok(1),
                "D" => Ok(2),
                "T" => Ok(4),
                "t" => Ok(8),
                "P" => Ok(64),
                "I" => Ok(128),
                _ => Err(error!(
                    "'{value}' is no state in which a task is off the CPU; there are: D, S, T, t, P, I"
                )),
            },
            Self::Disk => {
                let name = value.strip_prefix("/dev/").unwrap_or(value);
                let found = disks().into_iter().find(|(_, disk)| disk == name);
                let number = found.and_then(|(number, _)| u64::try_from(number).ok());
                number.ok_or_else(|| {
                    error!(
                        "'{value}' is no disk; 'ls /sys/class/block' shows those that are there"
                    )
                })
            }
        }
    }
}

/// A way of asking a recipe's question.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// The flag that selects this way; if several variants have it, the first one that the kernel supports is taken.
    pub flag: Option<String>,
    /// The help text of the flag.
    #[serde(default)]
    pub help: String,
    /// The measured quantity.
    pub measure: Kind,
    /// The heading of the measured number's column.
    pub heading: String,
    /// The event that is counted, unless the measure is a latency.
    pub event: Option<Side>,
    /// The first event of a latency.
    pub start: Option<Side>,
    /// The second event of a latency.
    pub end: Option<Side>,
    /// The field whose distribution is measured.
    pub field: Option<String>,
    /// The unit of the measured field.
    pub unit: Option<String>,
    /// The fields to sum.
    #[serde(default)]
    pub sums: Vec<String>,
    /// Names that `--by` accepts besides fields of the event, with their keys.
    #[serde(default)]
    pub by: BTreeMap<String, String>,
    /// The keys to group by, unless `--by` gives others.
    #[serde(default)]
    pub default_by: Vec<String>,
    /// The keys to group by in any case, besides those of `--by`.
    #[serde(default)]
    pub keep: Vec<String>,
    /// True for a variant that only answers with a line for each hit, false for one that never does; `None` for both.
    pub each: Option<bool>,
    /// The fields of a line unless `--by` names others.
    #[serde(default)]
    pub lines: Vec<String>,
    /// After which time the start of a latency may be forgotten, as a trigger writes it: for keys that do not come again.
    pub expires: Option<String>,
    /// Probes that are created for this variant.
    #[serde(default)]
    pub probes: Vec<Probe>,
    /// The number of rows of the table.
    pub size: Option<u32>,
    /// Whether times are summed by the stack of the first event.
    #[serde(default)]
    pub stack: bool,
    /// Whether the setting `kernel.sched_schedstats` must be 1.
    #[serde(default)]
    pub schedstats: bool,
}

/// The kind of quantity that a variant measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The number of records.
    #[default]
    Count,
    /// The distribution of a field.
    Distribution,
    /// The distribution of the time between two events.
    Latency,
}

/// An event in a recipe.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Side {
    /// The event, as `system:event`.
    pub event: String,
    /// The records that count, as a filter.
    pub filter: Option<String>,
    /// The fields that must match between the two events of a latency.
    #[serde(default)]
    pub on: Vec<String>,
    /// The field with the task's number, which `-p` restricts.
    pub pid: Option<String>,
    /// The field with the task's name, which `-c` restricts.
    pub comm: Option<String>,
    /// The field that is 0 where a CPU is idle, which is left out unless `--idle` is there.
    pub idle: Option<String>,
}

impl Side {
    /// Returns all records of an event that is about the running task.
    pub fn of(event: &str) -> Self {
        Self {
            event: event.into(),
            filter: None,
            on: Vec::new(),
            pid: Some(CURRENT.into()),
            comm: Some("COMM".into()),
            idle: None,
        }
    }

    /// Returns whether the measured task is the running one.
    fn is_of_current(&self) -> bool {
        self.pid.as_deref() == Some(CURRENT)
    }

    fn unnarrowed(&self, wishes: &Wishes) -> Records {
        let mut records = Records::all(&self.event);
        records.filter.clone_from(&self.filter);
        if let Some(idle) = self.idle.as_ref().filter(|_| !wishes.options.idle) {
            records.only(&format!("{idle} != 0"));
        }
        records
    }

    /// Returns the records that match the user's wishes.
    fn records(&self, wishes: &Wishes) -> Result<Records> {
        let options = &wishes.options;
        let mut records = self.unnarrowed(wishes);
        if !options.tid.is_empty() {
            let field = self.pid.as_ref().ok_or_else(|| nobody(&self.event, "-t"))?;
            records.only(&any_of(field, options.tid.iter().map(u64::to_string)));
        }
        if let Some(comm) = &options.comm {
            let field = self
                .comm
                .as_ref()
                .ok_or_else(|| nobody(&self.event, "-c"))?;
            records.only(&format!("{field} == \"{comm}\""));
        }
        let processes = matches!(wishes.only, Some(Only::Processes(_)));
        let all = options.tid.is_empty() && options.comm.is_none() && !processes;
        records.of_current = all && self.is_of_current();
        Ok(records)
    }
}

/// The user's options for a question, and the facts that they refer to.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    /// The options as they were typed, with `--slower` as the shortest time.
    pub options: Options,
    /// The only owners whose tasks count.
    pub only: Option<Only>,
    /// The threads that the wanted processes have when counting starts.
    pub of_processes: Vec<u64>,
    /// Options that restrict a field, each with the numbers of its values.
    pub values: Vec<(Narrowing, Vec<u64>)>,
    /// Whether each hit is a line.
    pub lines: bool,
}

impl Wishes {
    /// Whether single hits are wanted.
    fn is_of_hits(&self) -> bool {
        self.lines || self.options.exemplars
    }

    /// The filter for the times that are wanted, which are in this field; none if all are.
    fn only_times(&self, field: &Sum) -> Result<Option<String>> {
        let (min, max) = (self.options.min, self.options.max);
        let name = &field.field;
        let per = match field.unit {
            Some(Unit::Ns) => 1,
            Some(Unit::Us) => 1000,
            _ if min.or(max).is_none() => return Ok(None),
            _ => {
                return Err(error!(
                    "{name} is no time, so there is no --min, --max and --slower; write --if '{name} >= ..'"
                ))
            }
        };
        let both = [
            min.map(|min| format!("{name} >= {}", min.as_nanos().div_ceil(per))),
            max.map(|max| format!("{name} <= {}", max.as_nanos() / per)),
        ];
        let both: Vec<String> = both.into_iter().flatten().collect();
        Ok((!both.is_empty()).then(|| both.join(" && ")))
    }
}

/// Returns whether the kernel has probes of this kind, as its README tells.
pub fn has_probes(tracefs: &Tracefs, kind: &str) -> bool {
    let readme = tracefs.read_text("README").unwrap_or_default();
    // The README names the limit of return probes that can be active at once.
    let most = if kind == "r" { "[maxactive]" } else { "" };
    readme.contains(&format!("{kind}{most}[:"))
}

impl Variant {
    /// Returns the event whose records are counted.
    pub fn counted(&self) -> Option<&Side> {
        self.end.as_ref().or(self.event.as_ref())
    }

    /// Returns the fields of the counted event that the question uses, if the user gives no other keys.
    fn usual_fields<'a>(&'a self, wishes: &'a Wishes) -> impl Iterator<Item = &'a str> {
        let keys = self
            .default_by
            .iter()
            .filter(|_| wishes.options.by.is_none())
            .filter_map(|label| self.by.get(label))
            .map(|key| key.split('.').next().unwrap_or_default())
            .filter(|field| !field.starts_with("common_"));
        keys.chain(self.sums.iter().chain(&self.field).map(String::as_str))
    }

    /// Returns the first of these fields that this kernel's event lacks.
    fn lacks_field(&self, tracefs: &Tracefs, wishes: &Wishes) -> Option<String> {
        let event = &self.counted()?.event;
        if event.starts_with(OWN) {
            return None;
        }
        let format = Format::of(tracefs, event).ok()?;
        self.usual_fields(wishes)
            .find(|field| format.field(field).is_none())
            .map(|field| format!("the field {field} of {event}"))
    }

    /// Returns what this kernel lacks for the variant, in words; `None` if it supports the variant.
    pub fn missing(&self, tracefs: &Tracefs) -> Option<String> {
        for side in [&self.event, &self.start, &self.end].into_iter().flatten() {
            if !side.event.starts_with(OWN) && !tracefs.has_event(&side.event) {
                return Some(format!("the event {}", side.event));
            }
        }
        let probe = self.probes.first()?;
        match has_probes(tracefs, &probe.kind) {
            true => None,
            false => Some(format!(
                "probes of the kind '{}' (CONFIG_FPROBE_EVENTS)",
                probe.kind
            )),
        }
    }

    /// Returns the question with the user's options.
    pub fn question(&self, name: &str, tracefs: &Tracefs, wishes: &Wishes) -> Result<Question> {
        let options = &wishes.options;
        let incomplete = |what: &str| error!("the recipe {name} has no {what}");
        let unit = self.unit.as_deref().and_then(Unit::named);
        let sum = |field: &str| Sum {
            field: field.into(),
            unit,
        };
        let counted = self.counted().ok_or_else(|| incomplete("event"))?;
        let mut records = counted.records(wishes);
        let mut start_records = None;
        if let Some(start) = &self.start {
            let narrowed = start.records(wishes);
            // It is enough if one of the two events has the task's field.
            if narrowed.is_ok() {
                records = records.or_else(|_| Ok(counted.unnarrowed(wishes)));
            }
            start_records = Some(narrowed.unwrap_or_else(|_| start.unnarrowed(wishes)));
        }
        let mut records = records?;
        for (Narrowing { field, start, .. }, values) in &wishes.values {
            let only = any_of(field, values.iter().map(u64::to_string));
            if let Some(records) = start_records.as_mut().filter(|_| *start) {
                records.only(&only);
                continue;
            }
            if counted.event.starts_with(OWN)
                || Format::of(tracefs, &counted.event)?.field(field).is_none()
            {
                return Err(error!(
                    "{} has no field {field} to narrow it down by",
                    counted.event
                ));
            }
            records.only(&only);
        }
        if let Some(filter) = &options.filter {
            records.only(filter);
        }
        let mut before = None;
        let measure = match self.measure {
            Kind::Count if options.min.or(options.max).is_some() => {
                return Err(error!(
                    "{name} counts and measures no times here, so there is no --min, --max and --slower"
                ))
            }
            Kind::Count => {
                let on = self.start.as_ref().and_then(|start| start.on.first());
                before = start_records.zip(on.zip(counted.on.first())).map(
                    |(records, (on, end_on))| Before {
                        records,
                        on: on.clone(),
                        end_on: end_on.clone(),
                    },
                );
                Measure::Count {
                    event: records,
                    sums: self.sums.iter().map(|field| sum(field)).collect(),
                }
            }
            Kind::Distribution => {
                let field = sum(self.field.as_ref().ok_or_else(|| incomplete("field"))?);
                if let Some(only) = wishes.only_times(&field)? {
                    records.only(&only);
                }
                Measure::Distribution {
                    event: records,
                    field,
                }
            }
            Kind::Latency => {
                let start = self.start.as_ref().ok_or_else(|| incomplete("start"))?;
                Measure::Latency(Latency {
                    start: start_records.unwrap_or_else(|| start.unnarrowed(wishes)),
                    start_on: start.on.clone(),
                    end: records,
                    end_on: counted.on.clone(),
                    // A user who finds a table full cannot know which one, so the option sets the size of both.
                    waiting: if self.stack { WAITING / 2 } else { WAITING }
                        .max(options.size.unwrap_or_default()),
                    expires: self.expires.clone(),
                    stack: self.stack,
                    only: wishes.only_times(&Sum {
                        field: "lat".into(),
                        unit: Some(Unit::Ns),
                    })?,
                })
            }
        };
        let own;
        let by: Vec<&String> = match &options.by {
            None if wishes.lines && self.lines.is_empty() => {
                own = self.own_fields(tracefs)?;
                own.iter().collect()
            }
            None if wishes.lines => self.lines.iter().collect(),
            None => self.default_by.iter().collect(),
            Some(by) => {
                let kept = self.keep.iter().filter(|label| !by.contains(label));
                kept.chain(by).collect()
            }
        };
        let mut by: Vec<By> = by
            .into_iter()
            .map(|label| self.by(label, tracefs))
            .collect::<Result<_>>()?;
        let task = |side: &Option<Side>| side.as_ref().and_then(|side| side.pid.clone());
        let start_task = task(&self.start);
        if wishes.lines && options.by.is_none() && counted.pid.is_none() && start_task.is_some() {
            by.push(By {
                label: "task".into(),
                key: TASK.into(),
                owner: None,
            });
        }
        // A row for each task, as owners are looked up by task.
        let tasks = wishes.only.is_some() || by.iter().any(|by| by.owner.is_some());
        let rows = self
            .size
            .unwrap_or(SIZE)
            .max(if tasks { WAITING } else { 0 });
        let mut question = Question {
            name: name.into(),
            probes: self.probes.clone(),
            measure,
            by,
            size: options.size.unwrap_or(rows),
            size_asked: options.size.is_some(),
            most: 0,
            intervals: options.intervals(),
            costs: false,
            smallest: false,
            schedstats: self.schedstats,
            lacks_comm: false,
            saves: Vec::new(),
            lines: wishes.lines,
            before,
            task: counted.pid.clone(),
            start_task,
            only: wishes.only.clone(),
            threads: wishes.of_processes.clone(),
        };
        if options.exemplars {
            question.saves = self.saves(&question, tracefs)?;
        }
        if let Intervals::Time(ns) = question.intervals {
            question.intervals = Intervals::Width(match question.unit() {
                Some(Unit::Ns) => ns,
                Some(Unit::Us) => ns.div_ceil(1000),
                _ => {
                    return Err(error!(
                        "{name} has no intervals of time here; write --buckets with a number alone"
                    ))
                }
            });
        }
        Ok(question)
    }

    /// Returns the fields that are kept of the largest hit of a row: those of a line that are no key of the row.
    fn saves(&self, question: &Question, tracefs: &Tracefs) -> Result<Vec<String>> {
        if !question.has_intervals() {
            return Err(error!(
                "{} counts here and has no intervals with a largest hit; leave --exemplars out",
                question.name
            ));
        }
        let own = match self.lines.is_empty() {
            true => self.own_fields(tracefs)?,
            false => self.lines.clone(),
        };
        let mut saves: Vec<String> = Vec::new();
        for label in own.iter().take(MOST_SAVED) {
            let by = self.by(label, tracefs)?;
            // An address alone says nothing.
            if by.modifier().starts_with(".sym") {
                continue;
            }
            // With the number of a task its name.
            let comm = (by.field() == CURRENT).then(|| COMM.to_owned());
            saves.extend(std::iter::once(by.field().to_owned()).chain(comm));
        }
        let is_said = |field: &String| question.by.iter().any(|by| by.field() == field);
        saves.retain(|field| !is_said(field));
        saves.dedup();
        Ok(saves)
    }

    /// Returns the fields of a line if no recipe lists them: the names that the variant has, or the task and the
    /// event's own fields.
    fn own_fields(&self, tracefs: &Tracefs) -> Result<Vec<String>> {
        let Some(side) = self.counted().filter(|_| self.by.is_empty()) else {
            let named = self.by.values().any(|key| key.ends_with(".execname"));
            let is_wanted = |key: &str| !(key.ends_with("stacktrace") || named && key == COMM);
            let names = self.by.iter().filter(|(_, key)| is_wanted(key));
            return Ok(names.map(|(name, _)| name.clone()).collect());
        };
        let task = side.is_of_current().then(|| "task".to_owned());
        let format = Format::of(tracefs, &side.event)?;
        let measured =
            |name: &String| self.sums.contains(name) || self.field.as_ref() == Some(name);
        let own = format
            .fields
            .iter()
            .filter(|field| field.holds != Holds::Other);
        let own = own.map(|field| field.name.clone());
        let own = own.filter(|name| !name.starts_with("common_") && !measured(name));
        Ok(task.into_iter().chain(own.take(MOST_FIELDS)).collect())
    }

    /// Returns the key for a name given to `--by`.
    fn by(&self, label: &str, tracefs: &Tracefs) -> Result<By> {
        let make = |key: &str| By {
            label: label.split('.').next().unwrap_or(label).into(),
            key: key.into(),
            owner: None,
        };
        if let Some(key) = self.by.get(label) {
            return Ok(make(key));
        }
        let event = &self
            .counted()
            .map_or_else(String::new, |side| side.event.clone());
        let format = match event.starts_with(OWN) {
            true => Format::default(),
            false => Format::of(tracefs, event)?,
        };
        if let Some(owner) = Owner::named(label).filter(|_| format.field(label).is_none()) {
            let task = self.counted().and_then(|side| side.pid.as_ref());
            let task = task.ok_or_else(|| nobody(event, &format!("--by {label}")))?;
            return Ok(By {
                owner: Some(owner),
                ..make(task)
            });
        }
        let field = label.split('.').next().unwrap_or_default();
        let side = self
            .counted()
            .filter(|side| side.pid.is_some() && !side.is_of_current());
        if side.is_some()
            && OF_CURRENT.contains(&field)
            && format
                .field(field)
                .is_none_or(|_| field.starts_with("common_"))
        {
            let own: Vec<&str> = self.by.keys().map(String::as_str).collect();
            return Err(error!(
                "at {event} the task that runs is not the one that is measured, so there is no '{label}' of it; there are: {}",
                own.join(", ")
            ));
        }
        if format.field(field).is_some() || field.starts_with("common_") {
            return Ok(make(label));
        }
        match label {
            "cpu" => Ok(make("common_cpu")),
            "comm" => Ok(make("common_comm")),
            "pid" | "task" => Ok(make("common_pid.execname")),
            "stack" => Ok(make("common_stacktrace")),
            _ => {
                let own = format.fields.iter().map(|field| field.name.as_str());
                let own = own.filter(|name| !name.starts_with("common_"));
                let known: Vec<&str> = self.by.keys().map(String::as_str).chain(own).collect();
                Err(error!(
                    "there is no '{label}' to divide {event} by; there are: {}, cpu, comm, pid, stack, tgid, uid, cgroup, pod",
                    known.join(", ")
                ))
            }
        }
    }
}

impl Recipe {
    /// Reads a recipe from its text.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let recipe: Self = toml::from_str(text).map_err(|error| {
            error!(
                "the recipe {name} is wrong: {}",
                error.to_string().trim_end()
            )
        })?;
        if recipe.variants.is_empty() {
            return Err(error!("the recipe {name} has no variant"));
        }
        Ok(Self {
            name: name.into(),
            ..recipe
        })
    }

    /// Reads a recipe from a file, after which the recipe is named.
    pub fn load(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).map_err(|error| Error::file("read", path, &error))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Self::parse(&name, &text)
    }

    /// Returns a recipe for a file with an error: naming it shows the error.
    fn broken(path: &Path, error: &Error) -> Self {
        Self {
            name: path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            question: format!("The recipe of {} is wrong", path.display()),
            broken: Some(format!("{}: {error}", path.display())),
            ..Self::default()
        }
    }

    /// Returns whether the recipe has the name of a built-in one.
    pub fn is_built_in(&self) -> bool {
        BUILT_IN.iter().any(|(name, _)| *name == self.name)
    }

    /// Returns the tool's recipes, and those of the machine.
    pub fn all() -> Result<Vec<Self>> {
        Self::all_with(Path::new(MORE))
    }

    /// Returns the tool's recipes, and those of this directory. A file with an error affects only its own recipe.
    fn all_with(more: &Path) -> Result<Vec<Self>> {
        let mut all = BUILT_IN
            .iter()
            .map(|(name, text)| Self::parse(name, text))
            .collect::<Result<Vec<_>>>()?;
        let mut files: Vec<_> = fs::read_dir(more)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect();
        files.sort();
        for path in files
            .iter()
            .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        {
            let recipe = Self::load(path).unwrap_or_else(|error| Self::broken(path, &error));
            all.retain(|other| other.name != recipe.name);
            all.push(recipe);
        }
        Ok(all)
    }

    /// Returns the flags of the variants, each once, with their help texts.
    pub fn flags(&self) -> Vec<(&str, &str)> {
        let mut flags: Vec<(&str, &str)> = Vec::new();
        for variant in &self.variants {
            let Some(flag) = &variant.flag else { continue };
            if flags.iter().all(|(other, _)| other != flag) {
                flags.push((flag, &variant.help));
            }
        }
        flags
    }

    /// Returns the first variant with this flag that the kernel supports with the user's options, and its question.
    pub fn ask(
        &self,
        flag: Option<&str>,
        tracefs: &Tracefs,
        wishes: &Wishes,
    ) -> Result<(&Variant, Question)> {
        let mut refused =
            Err(Error::new(self.broken.clone().unwrap_or_else(|| {
                format!("the recipe {} has no such variant", self.name)
            })));
        for variant in self
            .variants
            .iter()
            .filter(|variant| variant.flag.as_deref() == flag)
            .filter(|variant| variant.each.is_none_or(|each| each == wishes.is_of_hits()))
        {
            refused = match variant
                .missing(tracefs)
                .or_else(|| variant.lacks_field(tracefs, wishes))
            {
                None => match variant.question(&self.name, tracefs, wishes) {
                    Ok(question) => return Ok((variant, question)),
                    Err(error) => Err(error),
                },
                Some(what) => Err(error!(
                    "this kernel lacks {what}, which '{}' needs; 'rhist doctor' shows what it can answer",
                    self.name
                )),
            };
        }
        refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipes_are_complete() {
        let recipes = BUILT_IN
            .iter()
            .map(|(name, text)| Recipe::parse(name, text).unwrap());
        for recipe in recipes {
            assert!(recipe.question.ends_with('?'), "{}", recipe.name);
            assert!(recipe.prose.len() > 80, "{}", recipe.name);
            assert!(
                recipe.variants.iter().any(|variant| variant.flag.is_none()),
                "{}",
                recipe.name
            );
            for variant in &recipe.variants {
                assert_eq!(
                    variant.flag.is_some(),
                    !variant.help.is_empty(),
                    "{}",
                    recipe.name
                );
                assert_eq!(
                    variant.measure == Kind::Latency,
                    variant.start.is_some() && variant.end.is_some()
                );
                assert_eq!(
                    variant.measure == Kind::Distribution,
                    variant.field.is_some()
                );
                assert!(variant
                    .unit
                    .as_deref()
                    .is_none_or(|unit| Unit::named(unit).is_some()));
                for label in &variant.default_by {
                    assert!(variant.by.contains_key(label), "{} by {label}", recipe.name);
                }
                if let (Some(start), Some(end)) = (&variant.start, &variant.end) {
                    assert_eq!(start.on.len(), end.on.len(), "{}", recipe.name);
                    assert!(!start.on.is_empty());
                }
            }
        }
    }

    #[test]
    fn a_wrong_recipe_is_explained() {
        let error = Recipe::parse("mine", "question = 1")
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("the recipe mine is wrong:"), "{error}");
        let error =
            Recipe::parse("mine", "question = \"?\"\nprose = \"\"\nvariant = []").unwrap_err();
        assert_eq!(error.to_string(), "the recipe mine has no variant");
    }

    #[test]
    fn a_broken_recipe_breaks_itself_alone() {
        let directory = std::env::temp_dir().join(format!("rhist-recipes-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("exec.toml"), "question = \"?\"\nprose").unwrap();
        fs::write(directory.join("mine.toml"), BUILT_IN[0].1).unwrap();
        // A directory cannot be read as a file.
        fs::create_dir_all(directory.join("other.toml")).unwrap();
        let all = Recipe::all_with(&directory).unwrap();
        fs::remove_dir_all(&directory).unwrap();
        assert_eq!(all.len(), BUILT_IN.len() + 2);
        let tracefs = Tracefs::find(Some(Path::new("tests/tracefs"))).unwrap();
        let ask = |name: &str| {
            let recipe = all.iter().find(|recipe| recipe.name == name).unwrap();
            recipe.ask(None, &tracefs, &Wishes::default()).map(|_| ())
        };
        for name in ["mine", "runq", "fsync"] {
            assert!(ask(name).is_ok(), "{name}");
        }
        for name in ["exec", "other"] {
            let error = ask(name).unwrap_err().to_string();
            let file = directory.join(format!("{name}.toml"));
            assert!(error.starts_with(&file.display().to_string()), "{error}");
        }
    }

    #[test]
    fn values_have_numbers() {
        assert_eq!(
            Values::Syscall.number("read").unwrap(),
            Values::Syscall.number("sys_read").unwrap()
        );
        assert!(Values::Syscall.number("frobnicate").is_err());
        assert!(Values::Disk.number("no/such/disk").is_err());
    }
}
