// SPDX-License-Identifier: MIT OR Apache-2.0

//! Recipes: the questions that the tool knows, as data. Help, man pages and documents are made from them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::model::Unit;
use crate::question::{
    any_of, By, Intervals, Measure, Only, Owner, Probe, Question, Records, Sum, CURRENT, OWN,
};
use crate::tracefs::{disks, Format, Tracefs};

/// Where an administrator adds recipes.
const MORE: &str = "/etc/rhist/recipes.d";

/// Rows of a table, unless a recipe or the user says otherwise: as in the kernel.
pub const SIZE: u32 = 2048;
/// Rows for what has started and not ended.
pub const WAITING: u32 = 16384;

/// What is of the task that runs.
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

/// In the order in which help lists them.
const BUILT_IN: &[(&str, &str)] = built_in![
    "runq", "offcpu", "oncpu", "profile", "bio", "syscalls", "fsync", "faults", "kmem", "irq",
    "softirq", "work", "locks", "tcp", "connect", "drops", "exec", "timers", "cache", "reclaim",
    "oom",
];

/// A question that the tool knows, in one or more variants.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Its name: that of its file.
    #[serde(skip)]
    pub name: String,
    /// What it answers, in one sentence.
    pub question: String,
    /// More about it: what is measured, and how to read the answer.
    pub prose: String,
    /// Options that narrow the records down.
    #[serde(default, rename = "option")]
    pub options: Vec<Narrowing>,
    /// Command lines that ask it.
    #[serde(default, rename = "example")]
    pub examples: Vec<Example>,
    /// The ways of asking. The first one without a flag that the kernel can do is the default.
    #[serde(rename = "variant")]
    pub variants: Vec<Variant>,
    /// What is wrong with its file.
    #[serde(skip)]
    pub broken: Option<String>,
}

/// A command line, and what it is for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// What is typed behind `rhist`.
    pub ask: String,
    /// What it shows.
    pub says: String,
}

/// An option with values that make a filter.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Narrowing {
    /// `--name`.
    pub name: String,
    /// `-n`.
    pub short: Option<char>,
    /// What stands for the values in help.
    pub value: String,
    /// What it does.
    pub help: String,
    /// What the values are.
    pub kind: Values,
    /// The field that has one of these values.
    pub field: String,
    /// Whether it is a field of the first event of a latency, and not of the one that is counted.
    #[serde(default)]
    pub start: bool,
}

/// What the values of an option are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Values {
    /// Names of system calls.
    Syscall,
    /// Names of disks.
    Disk,
    /// Letters of the states of tasks, as ps shows them.
    State,
}

impl Values {
    /// The number that the kernel has for a value.
    pub fn number(self, value: &str) -> Result<u64> {
        match self {
            Self::Syscall => {
                let name = value.strip_prefix("sys_").unwrap_or(value);
                let number: std::result::Result<syscalls::Sysno, _> = name.parse();
                number.map(|number| number.id() as u64).map_err(|_| {
                    Error::new(format!(
                        "'{value}' is no system call of this machine; 'rhist syscalls' shows names"
                    ))
                })
            }
            Self::State => match value {
                "S" => Ok(1),
                "D" => Ok(2),
                "T" => Ok(4),
                "t" => Ok(8),
                "P" => Ok(64),
                "I" => Ok(128),
                _ => Err(Error::new(format!(
                    "'{value}' is no state in which a task is off the CPU; there are: D, S, T, t, P, I"
                ))),
            },
            Self::Disk => {
                let name = value.strip_prefix("/dev/").unwrap_or(value);
                let found = disks().into_iter().find(|(_, disk)| disk == name);
                let number = found.and_then(|(number, _)| u64::try_from(number).ok());
                number.ok_or_else(|| {
                    Error::new(format!(
                        "'{value}' is no disk; 'ls /sys/class/block' shows those that are there"
                    ))
                })
            }
        }
    }
}

/// A way of asking.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// `--flag`; of several variants with one flag the first one is taken that the kernel can do.
    pub flag: Option<String>,
    /// What the flag does.
    #[serde(default)]
    pub help: String,
    /// What it measures.
    pub measure: Kind,
    /// How the measure is called over its column.
    pub heading: String,
    /// The event, unless it is a latency.
    pub event: Option<Side>,
    /// The first event of a latency.
    pub start: Option<Side>,
    /// The second one.
    pub end: Option<Side>,
    /// The field that is distributed.
    pub field: Option<String>,
    /// Its unit.
    pub unit: Option<String>,
    /// The fields that are summed.
    #[serde(default)]
    pub sums: Vec<String>,
    /// What `--by` knows, besides the fields of the event: names for keys.
    #[serde(default)]
    pub by: BTreeMap<String, String>,
    /// By what it is unless `--by` says otherwise.
    #[serde(default)]
    pub default_by: Vec<String>,
    /// By what it is whatever `--by` says.
    #[serde(default)]
    pub keep: Vec<String>,
    /// After which time the start of a latency may be forgotten, as a trigger writes it: for keys that do not come again.
    pub expires: Option<String>,
    /// Events that are made for it.
    #[serde(default)]
    pub probes: Vec<RawProbe>,
    /// Rows of the table.
    pub size: Option<u32>,
    /// Whether times are summed by the stack of the first event.
    #[serde(default)]
    pub stack: bool,
    /// Whether `kernel.sched_schedstats` has to be 1.
    #[serde(default)]
    pub schedstats: bool,
}

/// What a variant measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// How often something happens.
    Count,
    /// How a field is distributed.
    Distribution,
    /// How long something takes.
    Latency,
}

/// An event of a recipe.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Side {
    /// `system:event`.
    pub event: String,
    /// Which records count.
    pub filter: Option<String>,
    /// The fields in which two events agree.
    #[serde(default)]
    pub on: Vec<String>,
    /// The field that `-p` looks at.
    pub pid: Option<String>,
    /// The field that `-c` looks at.
    pub comm: Option<String>,
    /// The field that is 0 where a CPU is idle, which is left out unless `--idle` is there.
    pub idle: Option<String>,
}

impl Side {
    /// All records of an event, of tasks that run.
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

    /// Whether the task that runs is the one that is measured.
    fn is_of_current(&self) -> bool {
        self.pid.as_deref() == Some(CURRENT)
    }

    fn unnarrowed(&self, wishes: &Wishes) -> Records {
        let mut records = Records::all(&self.event);
        records.filter.clone_from(&self.filter);
        if let Some(idle) = self.idle.as_ref().filter(|_| !wishes.idle) {
            records.only(&format!("{idle} != 0"));
        }
        records
    }

    /// The records that the user wants.
    fn records(&self, wishes: &Wishes) -> Result<Records> {
        let mut records = self.unnarrowed(wishes);
        if !wishes.threads.is_empty() {
            let field = self.pid.as_ref().ok_or_else(|| {
                Error::new(format!(
                    "{} does not say for which task it is, so there is no -t here",
                    self.event
                ))
            })?;
            records.only(&any_of(field, wishes.threads.iter().map(u64::to_string)));
        }
        if let Some(comm) = &wishes.comm {
            let field = self.comm.as_ref().ok_or_else(|| {
                Error::new(format!(
                    "{} does not say for which task it is, so there is no -c here",
                    self.event
                ))
            })?;
            records.only(&format!("{field} == \"{comm}\""));
        }
        let processes = matches!(wishes.only, Some(Only::Processes(_)));
        let all = wishes.threads.is_empty() && wishes.comm.is_none() && !processes;
        records.of_current = all && self.is_of_current();
        Ok(records)
    }
}

/// A probe of a recipe.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawProbe {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// What is probed, and the arguments.
    pub definition: String,
}

/// What the user wants beyond the question.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    /// Only these threads.
    pub threads: Vec<u64>,
    /// Only tasks of these owners.
    pub only: Option<Only>,
    /// The threads that wanted processes have at the start.
    pub of_processes: Vec<u64>,
    /// Only tasks of this name.
    pub comm: Option<String>,
    /// Also where a CPU is idle.
    pub idle: bool,
    /// By these names or fields.
    pub by: Option<Vec<String>>,
    /// Only records that pass this filter of the kernel.
    pub filter: Option<String>,
    /// Only records with one of these values in the field of an option.
    pub values: Vec<(Narrowing, Vec<u64>)>,
    /// Only times of at least and at most so long.
    pub times: (Option<Duration>, Option<Duration>),
    /// Rows of the table.
    pub size: Option<u32>,
    /// How fine intervals are.
    pub intervals: Intervals,
}

impl Wishes {
    /// The filter for the times that are wanted, which are in this field; none if all are.
    fn only_times(&self, field: &Sum) -> Result<Option<String>> {
        let (min, max) = self.times;
        let name = &field.field;
        let per = match field.unit {
            Some(Unit::Ns) => 1,
            Some(Unit::Us) => 1000,
            _ if min.or(max).is_none() => return Ok(None),
            _ => {
                return Err(Error::new(format!(
                    "{name} is no time, so there is no --min and --max; write --if '{name} >= ..'"
                )))
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

/// Whether the kernel has probes of this kind, by its README.
pub fn has_probes(tracefs: &Tracefs, kind: &str) -> bool {
    let readme = tracefs.read_text("README").unwrap_or_default();
    // As many of "r" can be hit at once as it says.
    let most = if kind == "r" { "[maxactive]" } else { "" };
    readme.contains(&format!("{kind}{most}[:"))
}

impl Variant {
    /// The event whose records are counted.
    pub fn counted(&self) -> Option<&Side> {
        self.end.as_ref().or(self.event.as_ref())
    }

    /// The fields of the event whose records are counted that the question has if the user wants no others.
    fn usual_fields<'a>(&'a self, wishes: &'a Wishes) -> impl Iterator<Item = &'a str> {
        let keys = self
            .default_by
            .iter()
            .filter(|_| wishes.by.is_none())
            .filter_map(|label| self.by.get(label))
            .map(|key| key.split('.').next().unwrap_or_default())
            .filter(|field| !field.starts_with("common_"));
        keys.chain(self.sums.iter().chain(&self.field).map(String::as_str))
    }

    /// The field that this kernel's event lacks, of those.
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

    /// What this kernel lacks for it.
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

    /// The question, with what the user wants.
    pub fn question(&self, name: &str, tracefs: &Tracefs, wishes: &Wishes) -> Result<Question> {
        let incomplete = |what: &str| Error::new(format!("the recipe {name} has no {what}"));
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
            // It is enough if one of the two events knows the task.
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
                return Err(Error::new(format!(
                    "{} has no field {field} to narrow it down by",
                    counted.event
                )));
            }
            records.only(&only);
        }
        if let Some(filter) = &wishes.filter {
            records.only(filter);
        }
        let measure = match self.measure {
            Kind::Count if wishes.times != (None, None) => {
                return Err(Error::new(format!(
                    "{name} counts and measures no times here, so there is no --min and --max"
                )))
            }
            Kind::Count => Measure::Count {
                event: records,
                sums: self.sums.iter().map(|field| sum(field)).collect(),
            },
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
                Measure::Latency {
                    start: start_records.unwrap_or_else(|| start.unnarrowed(wishes)),
                    start_on: start.on.clone(),
                    end: records,
                    end_on: counted.on.clone(),
                    // The user who finds a table full cannot know which one.
                    waiting: if self.stack { WAITING / 2 } else { WAITING }
                        .max(wishes.size.unwrap_or_default()),
                    expires: self.expires.clone(),
                    stack: self.stack,
                    only: wishes.only_times(&Sum {
                        field: "lat".into(),
                        unit: Some(Unit::Ns),
                    })?,
                }
            }
        };
        let by: Vec<&String> = match &wishes.by {
            None => self.default_by.iter().collect(),
            Some(by) => {
                let kept = self.keep.iter().filter(|label| !by.contains(label));
                kept.chain(by).collect()
            }
        };
        let by: Vec<By> = by
            .into_iter()
            .map(|label| self.by(label, tracefs))
            .collect::<Result<_>>()?;
        // A row for each task, whoever has them.
        let tasks = wishes.only.is_some() || by.iter().any(|by| by.owner.is_some());
        let rows = self
            .size
            .unwrap_or(SIZE)
            .max(if tasks { WAITING } else { 0 });
        let task = |side: &Option<Side>| side.as_ref().and_then(|side| side.pid.clone());
        let mut question = Question {
            name: name.into(),
            probes: self
                .probes
                .iter()
                .map(|probe| Probe {
                    kind: probe.kind.clone(),
                    name: probe.name.clone(),
                    definition: probe.definition.clone(),
                })
                .collect(),
            measure,
            by,
            size: wishes.size.unwrap_or(rows),
            size_asked: wishes.size.is_some(),
            most: 0,
            intervals: wishes.intervals,
            costs: false,
            smallest: false,
            schedstats: self.schedstats,
            lacks_comm: false,
            task: counted.pid.clone(),
            start_task: task(&self.start),
            only: wishes.only.clone(),
            threads: wishes.of_processes.clone(),
        };
        if let Intervals::Time(ns) = question.intervals {
            question.intervals = Intervals::Width(match question.unit() {
                Some(Unit::Ns) => ns,
                Some(Unit::Us) => ns.div_ceil(1000),
                _ => {
                    return Err(Error::new(format!(
                        "{name} has no intervals of time here; write --buckets with a number alone"
                    )))
                }
            });
        }
        Ok(question)
    }

    /// A key by the name that the user has for it.
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
            let task = self
                .counted()
                .and_then(|side| side.pid.as_ref())
                .ok_or_else(|| {
                    Error::new(format!(
                    "{event} does not say for which task it is, so there is no --by {label} here"
                ))
                })?;
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
            return Err(Error::new(format!(
                "at {event} the task that runs is not the one that is measured, so there is no '{label}' of it; there are: {}",
                own.join(", ")
            )));
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
                Err(Error::new(format!(
                    "there is no '{label}' to divide {event} by; there are: {}, cpu, comm, pid, stack, tgid, uid, cgroup, pod",
                    known.join(", ")
                )))
            }
        }
    }
}

impl Recipe {
    /// Reads a recipe from its text.
    pub fn parse(name: &str, text: &str) -> Result<Self> {
        let recipe: Self = toml::from_str(text).map_err(|error| {
            Error::new(format!(
                "the recipe {name} is wrong: {}",
                error.to_string().trim_end()
            ))
        })?;
        if recipe.variants.is_empty() {
            return Err(Error::new(format!("the recipe {name} has no variant")));
        }
        Ok(Self {
            name: name.into(),
            ..recipe
        })
    }

    /// Reads a recipe from a file, whose name is its name.
    pub fn load(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).map_err(|error| Error::file("read", path, &error))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Self::parse(&name, &text)
    }

    /// Stands for one whose file is wrong: it can be named, and says then what is wrong.
    fn broken(path: &Path, error: &Error) -> Self {
        Self {
            name: path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            question: format!("The recipe of {} is wrong", path.display()),
            prose: String::new(),
            options: Vec::new(),
            examples: Vec::new(),
            variants: Vec::new(),
            broken: Some(format!("{}: {error}", path.display())),
        }
    }

    /// Whether its name is that of one of the tool's.
    pub fn is_built_in(&self) -> bool {
        BUILT_IN.iter().any(|(name, _)| *name == self.name)
    }

    /// Those of the tool, and those of the machine.
    pub fn all() -> Result<Vec<Self>> {
        Self::all_with(Path::new(MORE))
    }

    /// Those of the tool, and those of this directory. One that is wrong takes nothing away but itself.
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

    /// The flags of the variants, each once, with what they do.
    pub fn flags(&self) -> Vec<(&str, &str)> {
        let mut flags: Vec<(&str, &str)> = Vec::new();
        for variant in &self.variants {
            if let Some(flag) = variant
                .flag
                .as_deref()
                .filter(|flag| flags.iter().all(|(other, _)| other != flag))
            {
                flags.push((flag, &variant.help));
            }
        }
        flags
    }

    /// The first variant of this flag that the kernel can do as the user wants it, and its question.
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
        {
            refused = match variant
                .missing(tracefs)
                .or_else(|| variant.lacks_field(tracefs, wishes))
            {
                None => match variant.question(&self.name, tracefs, wishes) {
                    Ok(question) => return Ok((variant, question)),
                    Err(error) => Err(error),
                },
                Some(what) => Err(Error::new(format!(
                    "this kernel lacks {what}, which '{}' needs; 'rhist doctor' shows what it can answer",
                    self.name
                ))),
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
        // Nobody can read a directory as a file.
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
