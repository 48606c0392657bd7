// SPDX-License-Identifier: MIT OR Apache-2.0

//! The backends, the module and C's implementation: each makes the lines for a question and reads the table.

pub mod c;
pub mod fold;
pub mod lines;
pub mod module;
mod owners;
mod triggers;

use std::fmt;

use fold::Fold;

use crate::error::{Error, Result};
use crate::model::{Account, Number, Table, Unit};
use crate::quantile::scale_within;
use crate::question::{condition, By, Intervals, Latency, Measure, Question, Records, COMM, OWN};
use crate::tracefs::{disks, failures, Format, Holds, Tracefs};

/// An implementation of hist triggers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// The module; beside C's implementation its commands begin with an `r`.
    Module {
        /// Whether the module is loaded beside C's implementation.
        beside: bool,
    },
    /// C's implementation.
    C,
}

/// The backend that the user wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Wanted {
    /// The module if it is loaded.
    #[default]
    Auto,
    /// The module.
    Module,
    /// C's implementation.
    C,
}

impl Wanted {
    /// Returns whether the user wants this backend.
    pub fn takes(self, backend: Backend) -> bool {
        self == Self::Auto || (self == Self::C) == (backend == Backend::C)
    }
}

impl Backend {
    /// Returns the backends of this kernel, the better one first.
    pub fn all(tracefs: &Tracefs) -> Vec<Self> {
        let has = |file: &str| tracefs.event_file("ftrace:print", file).exists();
        let mut all = Vec::new();
        if has("hist_json") {
            all.push(Self::Module { beside: false });
        } else {
            if has("rhist_json") {
                all.push(Self::Module { beside: true });
            }
            if has("hist") {
                all.push(Self::C);
            }
        }
        all
    }

    /// Returns the backend that the user wants.
    pub fn choose(tracefs: &Tracefs, wanted: Wanted) -> Result<Self> {
        let all = Self::all(tracefs);
        let found = all.iter().copied().find(|&backend| wanted.takes(backend));
        found.ok_or_else(|| {
            Error::new(match wanted {
                Wanted::Module => "the module rust_hist is not loaded; modprobe rust_hist, or use --backend c",
                Wanted::C => "this kernel has no hist triggers of its own (CONFIG_HIST_TRIGGERS); use --backend module",
                Wanted::Auto => {
                    "this kernel has no hist triggers: neither CONFIG_HIST_TRIGGERS nor the module rust_hist; \
                     'rhist doctor' says more"
                }
            })
        })
    }

    /// Returns the letter before the words of the module where C's implementation has the same ones, or else nothing.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Module { beside: true } => "r",
            _ => "",
        }
    }

    /// Returns the command of triggers, which is also the name of the file with their tables.
    pub fn command(self) -> String {
        format!("{}hist", self.prefix())
    }

    /// Returns whether tables may grow.
    pub fn grows(self, tracefs: &Tracefs) -> bool {
        self.says(tracefs, GROWS)
    }

    /// Returns whether the trigger that passes a latency on finds starts by `join()`: then it needs a row for each CPU,
    /// instead of one for each key ever seen. A stack is passed on in the row of its key.
    pub fn joins(self, stack: bool) -> bool {
        self != Self::C && !stack
    }

    /// Returns whether the README of tracefs has these words of the module. Beside C it is C's README.
    fn says(self, tracefs: &Tracefs, words: &str) -> bool {
        let says = |readme: String| readme.contains(words);
        self == Self::Module { beside: false } && tracefs.read_text("README").is_ok_and(says)
    }

    /// Returns the plan for a question.
    pub fn plan(self, tracefs: &Tracefs, question: &Question, owner: &str) -> Result<Plan> {
        let resolved = owners::resolve(self, self.says(tracefs, OWNERS), question)?;
        let question = &resolved.question;
        let (most, whose) = match self {
            Self::C => (3, "C's implementation"),
            Self::Module { .. } => (8, "the module"),
        };
        if question.keys() > most && !question.lines {
            return Err(error!(
                "{} fields are too many for --by: a table of {whose} has {most} keys{}{}",
                question.by.len(),
                if question.keys() > question.by.len() {
                    ", and one of them is the measure"
                } else {
                    ""
                },
                match resolved.fold {
                    Some(_) => "; one of the fields tells tasks apart, for the owners or the process that are asked for",
                    None => "",
                }
            ));
        }
        if self == Self::C && !question.saves.is_empty() {
            return Err(Error::new(
                "--exemplars needs the module; --slower TIME shows slow hits as lines with C's implementation, too",
            ));
        }
        let sums = question.sums();
        // C has three values, one of which is the number of hits.
        let most = if self == Self::C { 2 } else { most };
        if sums.len() > most {
            return Err(error!(
                "{} fields are too many for --sum: a table of {whose} has {most} sums",
                sums.len()
            ));
        }
        let own = own_format(tracefs, question)?;
        for name in sums {
            let holds = own.field(&name.field).map(|field| field.holds);
            if holds.is_some_and(|holds| !matches!(holds, Holds::Number { .. })) {
                return Err(error!(
                    "{} of {} is no number; 'rhist count {1} --by {0}' counts its values",
                    name.field,
                    question.event().event
                ));
            }
        }
        same_types(tracefs, question)?;
        let readme = tracefs.read_text("README").unwrap_or_default();
        // Before Linux 6.3 the stack of the kernel has another name, and can only be a key.
        let old_stack =
            self == Self::C && readme.contains("'stacktrace'") && !readme.contains(STACK);
        if old_stack && question.has_stack() {
            return Err(error!(
                "this kernel lacks variables that keep a stack, which '{}' by stack needs and Linux 6.3 has",
                question.name
            ));
        }
        let mut maker = Maker {
            backend: self,
            question,
            owner,
            plan: Plan {
                fold: resolved.fold,
                ..Plan::default()
            },
            processes: resolved.processes,
            format: own,
            grows: self.grows(tracefs),
            costs: question.costs && self.says(tracefs, OVERHEAD),
            expires: self.says(tracefs, EXPIRES),
        };
        triggers::plan(&mut maker)?;
        maker.plan.counted = maker.event(&question.event().event);
        let mut plan = maker.plan;
        if self == Self::C {
            plan.by_comm = question.lacks_comm && question.is_by_comm();
            if old_stack {
                for step in &mut plan.steps {
                    if let Step::Trigger { line, .. } = step {
                        *line = line.replace(STACK, "stacktrace");
                    }
                }
            }
        }
        let format = &maker.format;
        let plain = question.by.iter().filter(|by| by.modifier().is_empty());
        let plain = plain.map(|by| (by.label.as_str(), by.field()));
        let saved = question.saves.iter().map(|field| ("", field.as_str()));
        for (label, field) in plain.chain(saved) {
            let Some(field) = format.field(field) else {
                continue;
            };
            let names = match (label, field.kind.as_str()) {
                ("error", _) => failures(),
                (_, "dev_t") => disks(),
                _ => format.names(&field.name),
            };
            if !names.is_empty() {
                plan.names.push((field.name.clone(), names));
            }
        }
        let sums = sums.iter().map(|sum| sum.field.as_str());
        for name in question.by.iter().map(By::field).chain(sums) {
            let holds = format.field(name).map(|field| field.holds);
            if matches!(holds, Some(Holds::Number { signed: true, .. })) {
                plan.signed.push(name.to_owned());
            }
        }
        Ok(plan)
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Module { .. } => "module",
            Self::C => "c",
        })
    }
}

/// Returns the number of CPUs.
pub fn cpus() -> u64 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u64)
}

/// Refuses a latency whose two events can never match, as their fields have different types.
fn same_types(tracefs: &Tracefs, question: &Question) -> Result<()> {
    let Measure::Latency(Latency {
        start,
        start_on,
        end,
        end_on,
        ..
    }) = &question.measure
    else {
        return Ok(());
    };
    let format = |records: &Records| match records.event.starts_with(OWN) {
        true => Ok(Format::parse(PROBED)),
        false => Format::of(tracefs, &records.event),
    };
    let formats = (format(start)?, format(end)?);
    for (first, second) in start_on.iter().zip(end_on) {
        let (Some(a), Some(b)) = (formats.0.field(first), formats.1.field(second)) else {
            continue;
        };
        let alike = match (a.holds, b.holds) {
            (Holds::Number { size: a, .. }, Holds::Number { size: b, .. }) => a == b,
            (Holds::Chars(_) | Holds::Text, Holds::Chars(_) | Holds::Text) => true,
            _ => false,
        };
        if !alike {
            return Err(error!(
                "{first} of {} is '{}' and {second} of {} is '{}', so that they never agree; name other fields by --on",
                start.event, a.kind, end.event, b.kind
            ));
        }
    }
    Ok(())
}

/// The fields that all probes of functions have: probes have them as soon as they are made.
const PROBED: &str = "field:unsigned long __probe_ip; offset:8; size:8; signed:0;\n\
                      field:unsigned long __probe_func; offset:8; size:8; signed:0;\n";

/// The format of the event that is counted. A probe that is not made yet has the fields that its definition says.
fn own_format(tracefs: &Tracefs, question: &Question) -> Result<Format> {
    let event = &question.event().event;
    let Some(name) = event.strip_prefix(OWN) else {
        return Ok(Format::of(tracefs, event)?);
    };
    let mut text = PROBED.to_owned();
    let probe = question.probes.iter().find(|probe| name[1..] == probe.name);
    let words = probe.map_or("", |probe| &probe.definition).split(' ');
    for (field, fetched) in words.filter_map(|word| word.split_once('=')) {
        let (kind, size, signed) = match fetched.rsplit_once(':').map_or("", |(_, kind)| kind) {
            "string" | "ustring" => ("__data_loc char[]", 4, 0),
            "s32" => ("s32", 4, 1),
            "s64" => ("s64", 8, 1),
            _ => ("u64", 8, 0),
        };
        text += &format!("field:{kind} {field}; offset:8; size:{size}; signed:{signed};\n");
    }
    Ok(Format::parse(&text))
}

/// The steps that ask a question, and where to read the answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The event whose table is the answer.
    pub event: String,
    /// Whether rows of tasks are merged to rows of task names.
    pub by_comm: bool,
    /// How the kernel's rows become the wanted rows.
    pub fold: Option<Fold>,
    /// The parts of a line, where each hit is one.
    pub each: Option<lines::Each>,
    /// The event that the question is about, whichever one the table is of.
    pub counted: String,
    /// The name of the file with the table.
    pub file: String,
    /// All events that get triggers.
    pub events: Vec<String>,
    /// The unit of the intervals.
    pub unit: Option<Unit>,
    /// The units of sums, by the name of the column.
    pub sums: Vec<(String, Unit)>,
    /// The keys and sums that can be negative.
    pub signed: Vec<String>,
    /// The keys whose numbers have names, with these names.
    pub names: Vec<(String, Vec<(Number, String)>)>,
}

impl Plan {
    /// Returns the steps that create events and settings, and the steps after them.
    pub fn needs(&self) -> (&[Step], &[Step]) {
        let is_need = |step: &&Step| {
            matches!(
                step,
                Step::Schedstats | Step::Dynamic { .. } | Step::Processes { .. }
            )
        };
        let needs = self.steps.iter().take_while(is_need).count();
        self.steps.split_at(needs)
    }

    /// Returns the number of triggers.
    pub fn triggers(&self) -> u64 {
        let is_trigger = |step: &&Step| matches!(step, Step::Trigger { .. });
        self.steps.iter().filter(is_trigger).count() as u64
    }
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Switches `kernel.sched_schedstats` on.
    Schedstats,
    /// Restricts the instance to records of these processes, and of threads and processes that they start.
    Processes {
        /// The process ids.
        pids: Vec<u64>,
    },
    /// Adds a line to `dynamic_events`.
    Dynamic {
        /// The line to append.
        line: String,
        /// The event, as `system/event`.
        name: String,
    },
    /// Adds a line to the file of synthetic events.
    Synthetic {
        /// The name of the file.
        file: String,
        /// The line to append.
        line: String,
        /// The name of the event.
        name: String,
    },
    /// Makes the buffers of the instance keep records, with the stack of the kernel or of the program.
    Buffer {
        /// Whether records have the stack of the kernel.
        stack: bool,
        /// Whether records have the stack of the program.
        user: bool,
    },
    /// Makes the kernel write records of an event to the buffers of the instance.
    Records {
        /// `system:event`.
        event: String,
        /// The filter that the records have to pass.
        filter: Option<String>,
    },
    /// Adds a trigger.
    Trigger {
        /// The event, as `system:event`.
        event: String,
        /// The text of the trigger.
        line: String,
    },
}

// Texts in the README of tracefs that tell which words the module has.
pub(crate) const GROWS: &str = "'A..B'";
/// The text that tells that keys and filters may be owners of the running task.
const OWNERS: &str = "A filter knows those of the task";
pub(crate) const EXPIRES: &str = "[:expire(";
pub(crate) const OVERHEAD: &str = "[:overhead";

/// The key for the stack of the kernel.
const STACK: &str = "common_stacktrace";

/// log2 of the number of parts into which the module divides a power of two by default.
const SCALE: u8 = 3;

/// The types of numbers that a synthetic event can have.
const SYNTHETIC_TYPES: [&str; 15] = [
    "s8",
    "u8",
    "s16",
    "u16",
    "s32",
    "u32",
    "s64",
    "u64",
    "int",
    "unsigned int",
    "long",
    "unsigned long",
    "bool",
    "pid_t",
    "gfp_t",
];

/// Builds a plan, for both backends.
pub(crate) struct Maker<'a> {
    pub(crate) backend: Backend,
    pub(crate) question: &'a Question,
    /// The process id and question, which are in the names of objects that belong to all instances.
    owner: &'a str,
    pub(crate) plan: Plan,
    processes: Vec<u64>,
    pub(crate) format: Format,
    /// Whether the implementation can grow tables.
    grows: bool,
    /// Whether triggers measure their own cost.
    costs: bool,
    /// Whether the implementation can expire starts.
    expires: bool,
}

impl Maker<'_> {
    /// Adds the first steps: settings and events that the question needs before its triggers.
    pub(crate) fn needs(&mut self) {
        if self.question.schedstats {
            self.plan.steps.push(Step::Schedstats);
        }
        for probe in &self.question.probes {
            let name = format!("rhist_{}/{}", self.owner, probe.name);
            self.plan.steps.push(Step::Dynamic {
                line: format!("{}:{name} {}", probe.kind, probe.definition),
                name,
            });
        }
        if !self.processes.is_empty() {
            self.plan.steps.push(Step::Processes {
                pids: self.processes.clone(),
            });
        }
    }

    /// Returns the name of an event, with its system if it is a probe of the tool.
    pub(crate) fn event(&self, event: &str) -> String {
        match event
            .strip_prefix(OWN)
            .and_then(|rest| rest.strip_prefix(':'))
        {
            Some(name) => format!("rhist_{}:{name}", self.owner),
            None => event.to_owned(),
        }
    }

    /// Adds a trigger for these records: `text` is the part after `hist:` and before the filter.
    pub(crate) fn trigger(&mut self, records: &Records, text: &str) {
        let event = self.event(&records.event);
        let condition = condition(records.filter.as_deref());
        let costs = if self.costs { ":overhead" } else { "" };
        if !self.plan.events.contains(&event) {
            self.plan.events.push(event.clone());
        }
        self.plan.steps.push(Step::Trigger {
            event,
            line: format!("{}:{text}{costs}{condition}", self.backend.command()),
        });
    }

    /// Adds the trigger whose table is the answer.
    pub(crate) fn answer(&mut self, records: &Records, text: &str) {
        self.trigger(records, text);
        self.plan.event = self.event(&records.event);
    }

    /// Adds a synthetic event with these fields, and returns its name.
    pub(crate) fn synthetic(&mut self, fields: &[String]) -> String {
        let name = format!(
            "rhist_{}_{}",
            self.owner,
            self.question.name.replace('-', "_")
        );
        self.plan.steps.push(Step::Synthetic {
            file: format!("{}synthetic_events", self.backend.prefix()),
            line: format!("{name} {}", fields.join("; ")),
            name: name.clone(),
        });
        name
    }

    /// Returns the list of keys, with the interval of the measure last.
    pub(crate) fn keys(&self, interval: Option<String>) -> String {
        let old = self.backend == Backend::C && self.question.lacks_comm;
        let by = self.question.by.iter().map(|by| match by.key.as_str() {
            COMM if old => "common_pid.execname".to_owned(),
            key => key.to_owned(),
        });
        let keys: Vec<String> = by.chain(interval).collect();
        match keys.is_empty() {
            // A constant key, so that there is one row for all hits.
            true => "common_type".into(),
            false => keys.join(","),
        }
    }

    /// Returns the declaration of a field of a synthetic event that can hold `field` of the counted event.
    pub(crate) fn declaration(&self, field: &str) -> Result<String> {
        let event = &self.question.event().event;
        let wrong = |what: &str| {
            error!("{event} has {what} {field}; its fields are those of its file format")
        };
        let found = self.format.field(field).ok_or_else(|| wrong("no field"))?;
        Ok(match found.holds {
            // C compares the names of types first, and treats a field of an event as unsigned.
            Holds::Number { .. } if SYNTHETIC_TYPES.contains(&found.kind.as_str()) => {
                format!("{} {field}", found.kind)
            }
            Holds::Number { size, .. } => format!("u{} {field}", u32::from(size) * 8),
            Holds::Chars(size) => format!("char {field}[{size}]"),
            Holds::Text => format!("char {field}[]"),
            Holds::Other => return Err(wrong("something that is no key in")),
        })
    }

    /// Returns the number of rows of the table, and the number it may grow to, as text for a trigger.
    pub(crate) fn size(&self) -> String {
        let question = self.question;
        match self.grows && question.most > question.size {
            true => format!("{}..{}", question.size, question.most),
            false => question.size.to_string(),
        }
    }

    /// Returns the number of rows of the table of starts, and the time after which starts expire, as text for a
    /// trigger. The user's number of rows is enough only where starts expire.
    pub(crate) fn starts(&self, rows: u32, after: &Option<String>) -> String {
        match after {
            Some(after) if self.expires => {
                let asked = self.question.size_asked.then_some(self.question.size);
                format!("size={}:expire({after})", asked.unwrap_or(rows))
            }
            _ => format!("size={rows}"),
        }
    }

    /// Returns the values to show for a field beside its intervals: with the module also its largest number.
    pub(crate) fn shown(&self, field: &str) -> String {
        match self.backend {
            Backend::C => field.to_owned(),
            Backend::Module { .. } if self.question.smallest => {
                format!("{field},{field}.max,{field}.min")
            }
            Backend::Module { .. } => format!("{field},{field}.max"),
        }
    }

    /// Returns the action that keeps the largest hit of each row by this variable; an empty text if exemplars are not
    /// wanted.
    pub(crate) fn exemplars(&self, variable: &str) -> String {
        match self.question.saves.as_slice() {
            [] => String::new(),
            saves => format!(":onmax(${variable}).save({})", saves.join(",")),
        }
    }

    /// The intervals of a field.
    pub(crate) fn interval(&self, field: &str) -> String {
        let scale = match (self.question.intervals, self.backend) {
            (Intervals::Width(width), _) => return format!("{field}.buckets={width}"),
            (_, Backend::C) => 0,
            (Intervals::Usual | Intervals::Time(_), _) => SCALE,
            (Intervals::Within(percent), _) => scale_within(percent),
        };
        match scale {
            0 => format!("{field}.log2"),
            _ => format!("{field}.log2={scale}"),
        }
    }
}

/// A table that is read again and again; each time it has the hits since the last time.
pub trait Source {
    /// Returns the hits counted since the last call.
    fn next(&mut self) -> Result<Table>;

    /// Returns the losses of all triggers so far.
    fn lost(&mut self) -> Result<Lost>;

    /// Returns a sentence about the counted hits that the user should know; losses are in [`Source::lost`].
    fn remark(&self) -> Option<String> {
        None
    }

    /// Returns the JSON lines of the last table as they were read; `None` if it was not read as JSON.
    fn lines(&self) -> Option<&[u8]> {
        None
    }
}

/// The losses of a question's triggers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lost {
    /// Calls with a new key when the table was full.
    pub full: u64,
    /// Calls that were nested too deep.
    pub nested: u64,
    /// Records of synthetic events that could not be written.
    pub traces: u64,
    /// Records of lines that the buffers had no room for.
    pub records: u64,
    /// Pages of records that are not as the kernel writes them.
    pub damaged: u64,
    /// Starts that were forgotten, as they had not ended; nothing where none are.
    pub expired: Option<u64>,
    /// Starts that were followed by another start of the same key; `None` if starts never expire.
    pub overwritten: Option<u64>,
}

impl Lost {
    /// Sets the losses in `account` to those of all triggers since `before`, not only those of its own trigger.
    pub fn account(&self, before: &Self, account: &mut Account) {
        account.full = self.full.saturating_sub(before.full);
        if let Some(losses) = &mut account.losses {
            losses.nested = self.nested.saturating_sub(before.nested);
            losses.traces = self.traces.saturating_sub(before.traces);
            let since = |now: Option<u64>, then: Option<u64>| {
                Some(now?.saturating_sub(then.unwrap_or_default()))
            };
            losses.expired = since(self.expired, before.expired);
            losses.overwritten = since(self.overwritten, before.overwritten);
        }
    }

    /// Returns sentences about the losses, if any. `more` is a size of the tables that avoids losses, if there is one.
    pub fn sentences(&self, more: Option<u32>) -> Vec<String> {
        let mut said = Vec::new();
        if self.full > 0 {
            let way = match more {
                Some(more) => format!("--size {more} makes room"),
                None => "it cannot be larger; ask for fewer keys by --if or --by".into(),
            };
            said.push(format!(
                "table full: {} hits of new keys dropped; {way}",
                self.full
            ));
        }
        if self.nested > 0 {
            said.push(format!(
                "{} hits dropped that came inside others; ask for fewer events by --if",
                self.nested
            ));
        }
        if self.traces > 0 {
            said.push(format!(
                "{} records of synthetic events lost; ask for fewer events by --if",
                self.traces
            ));
        }
        if self.records > 0 {
            said.push(format!(
                "{} lines lost, as they came faster than they are read; ask for fewer by --slower, --if or -p",
                self.records
            ));
        }
        if self.damaged > 0 {
            said.push(format!(
                "{} pages of records are not as the kernel writes them, and their rest is missing; ask for a table, \
                 without --each and --slower",
                self.damaged
            ));
        }
        if let Some(expired) = self.expired.filter(|&expired| expired > 0) {
            said.push(format!(
                "{expired} starts were forgotten that had no end; their times are missing"
            ));
        }
        said
    }
}

/// Adds to a table's columns the units and names that the plan knows.
pub(crate) fn finish(table: &mut Table, plan: &Plan) {
    // Other intervals are keys to group by, without this unit.
    if let Some(column) = table.interval_column().map(|i| &mut table.keys[i]) {
        column.unit = column.unit.or(plan.unit);
    }
    for column in &mut table.values {
        if let Some(&(_, unit)) = plan.sums.iter().find(|(name, _)| *name == column.name) {
            column.unit = Some(unit);
        }
    }
    if plan.by_comm {
        table.name_tasks();
    }
    table.event.clone_from(&plan.counted);
    table.remove_negative_times();
}
