// SPDX-License-Identifier: MIT OR Apache-2.0

//! A question: what is measured, by what it is divided, and which records count. The backends make lines of it.

use crate::model::Unit;

/// The name of the system that stands for the questioner's own dynamic events.
pub const OWN: &str = "own";

/// The name of the task that runs, as a key. C has it only lately.
pub const COMM: &str = "common_comm";

/// The field of each event with the number of the task that runs.
pub const CURRENT: &str = "common_pid";

/// The key of a line with the task of the first event, where the second one has none.
pub const TASK: &str = "task.execname";

/// The rows of the smallest table.
const LEAST_ROWS: u32 = 128;

/// A question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// A word for it, which is in the names of what is made for it.
    pub name: String,
    /// Probes that are made first, in the system [`OWN`].
    pub probes: Vec<Probe>,
    /// What is measured.
    pub measure: Measure,
    /// By what.
    pub by: Vec<By>,
    /// Rows of the table.
    pub size: u32,
    /// Whether the user asked for that many.
    pub size_asked: bool,
    /// Rows that the table may grow to where the implementation has tables that grow; no more than `size` if it need not.
    pub most: u32,
    /// How fine its intervals are.
    pub intervals: Intervals,
    /// Whether its triggers measure what they take, where the implementation can.
    pub costs: bool,
    /// Whether the smallest number is kept, where the implementation can.
    pub smallest: bool,
    /// Whether `kernel.sched_schedstats` has to be 1.
    pub schedstats: bool,
    /// Whether the implementation lacks the name of the task that runs as a key.
    pub lacks_comm: bool,
    /// The field with the number of the task that is measured, of the event whose records are counted; nothing if it says
    /// none.
    pub task: Option<String>,
    /// The same of the first event of a latency.
    pub start_task: Option<String>,
    /// The fields of the largest hit of each row that are kept with it.
    pub saves: Vec<String>,
    /// Whether each hit is a line, in place of a table.
    pub lines: bool,
    /// The event whose record comes before that of a line and completes it, if there is one.
    pub before: Option<Before>,
    /// Whose tasks alone are wanted.
    pub only: Option<Only>,
    /// The threads that the wanted processes have at the start.
    pub threads: Vec<u64>,
}

/// What a task belongs to, or the task itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The task itself.
    Task,
    /// Its process.
    Tgid,
    /// Its user.
    Uid,
    /// Its control group, which is that of a container or a unit.
    Cgroup,
    /// The pod of Kubernetes or podman that its control group is in.
    Pod,
}

impl Owner {
    /// The word that users have for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Tgid => "tgid",
            Self::Uid => "uid",
            Self::Cgroup => "cgroup",
            Self::Pod => "pod",
        }
    }

    /// The one of this word; a task is a key of its own.
    pub fn named(word: &str) -> Option<Self> {
        let all = [Self::Tgid, Self::Uid, Self::Cgroup, Self::Pod];
        all.into_iter().find(|owner| owner.name() == word)
    }

    /// The field that the module has for the owner of the task that runs.
    pub fn key(self) -> &'static str {
        match self {
            Self::Task => CURRENT,
            Self::Tgid => "common_tgid",
            Self::Uid => "common_uid",
            Self::Cgroup | Self::Pod => "common_cgroup",
        }
    }
}

/// Whose tasks alone are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Only {
    /// Those of these processes.
    Processes(Vec<u64>),
    /// Those of a control group as a user calls it, and of those below it.
    Cgroup(String),
}

/// A filter for one of several values.
pub fn any_of(field: &str, values: impl Iterator<Item = String>) -> String {
    values
        .map(|value| format!("{field} == {value}"))
        .collect::<Vec<_>>()
        .join(" || ")
}

/// How fine intervals are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Intervals {
    /// As the backend has them unless somebody wants others.
    #[default]
    Usual,
    /// Of this width.
    Width(u64),
    /// Of this width in nanoseconds, until it is known in what the question counts.
    Time(u64),
    /// So that percentiles are at most so many percent above the true values.
    Within(u64),
}

/// A dynamic event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// Its kind, as `dynamic_events` writes it: `t`, `f`, `p`, `r`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// What is probed, and the arguments.
    pub definition: String,
}

/// What is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Measure {
    /// How often an event happens, and the sums of fields.
    Count {
        /// The event and which of its records count.
        event: Records,
        /// The fields that are summed.
        sums: Vec<Sum>,
    },
    /// How the numbers of a field are distributed.
    Distribution {
        /// The event and which of its records count.
        event: Records,
        /// The field.
        field: Sum,
    },
    /// How long it takes from one event to another one.
    Latency {
        /// The first event.
        start: Records,
        /// The fields of it that the other one has to agree with.
        start_on: Vec<String>,
        /// The second event.
        end: Records,
        /// Its fields.
        end_on: Vec<String>,
        /// Rows for what has started and not ended.
        waiting: u32,
        /// After which time that is forgotten which has not ended, as a trigger writes it, where the implementation forgets.
        expires: Option<String>,
        /// Whether the times are summed by the stack of the first event, in place of a distribution.
        stack: bool,
        /// Which times count, as a filter of an event with the field `lat`; without it all.
        only: Option<String>,
    },
}

/// What is known before that which makes a line happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Before {
    /// The earlier event.
    pub records: Records,
    /// Its field with the number of the task.
    pub on: String,
    /// The field of the event of the lines that has this number.
    pub end_on: String,
}

/// Records of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Records {
    /// `system:event`.
    pub event: String,
    /// Which ones, as a filter of the kernel.
    pub filter: Option<String>,
    /// Whether they are of the task that runs, so that the tool can leave itself out.
    pub of_current: bool,
}

impl Records {
    /// All records of an event.
    pub fn all(event: impl Into<String>) -> Self {
        Self {
            event: event.into(),
            filter: None,
            of_current: false,
        }
    }

    /// Narrows them down.
    pub fn only(&mut self, filter: &str) {
        self.filter = Some(match self.filter.take() {
            None => filter.to_owned(),
            Some(old) => format!("({old}) && ({filter})"),
        });
    }

    /// The end of a trigger line: nothing, or the filter.
    pub fn condition(&self) -> String {
        condition(self.filter.as_deref())
    }
}

/// The end of a trigger line for this filter.
pub fn condition(filter: Option<&str>) -> String {
    filter.map_or_else(String::new, |filter| format!(" if {filter}"))
}

/// A field that is summed or distributed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sum {
    /// The field.
    pub field: String,
    /// In what it counts.
    pub unit: Option<Unit>,
}

/// A key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct By {
    /// How the user calls it.
    pub label: String,
    /// The field with its modifier, as a trigger writes it; of an owner the field with the number of the task.
    pub key: String,
    /// Whether it is what the task belongs to that the field has.
    pub owner: Option<Owner>,
}

impl By {
    /// The field without modifier.
    pub fn field(&self) -> &str {
        self.key.split('.').next().unwrap_or_default()
    }

    /// The modifier with its dot, if there is one.
    pub fn modifier(&self) -> &str {
        &self.key[self.field().len()..]
    }

    /// Whether the field belongs to each event, so that an event that follows from it has it, too.
    pub fn is_common(&self) -> bool {
        self.field().starts_with("common_")
    }
}

impl Question {
    /// The event whose records are counted: of a latency the second one.
    pub fn event(&self) -> &Records {
        match &self.measure {
            Measure::Count { event, .. } | Measure::Distribution { event, .. } => event,
            Measure::Latency { end, .. } => end,
        }
    }

    /// The records of the first event of a latency, and those that are counted.
    pub fn records(&mut self) -> (Option<&mut Records>, &mut Records) {
        match &mut self.measure {
            Measure::Count { event, .. } | Measure::Distribution { event, .. } => (None, event),
            Measure::Latency { start, end, .. } => (Some(start), end),
        }
    }

    /// Whether the task that runs is the one that is measured.
    pub fn is_of_current(&self) -> bool {
        self.task.as_deref() == Some(CURRENT)
    }

    /// Leaves the records of these threads out, where the task that runs is the one that is measured.
    pub fn leave_out(&mut self, threads: &[u64]) {
        let records = match self.records() {
            (Some(start), end) if !end.of_current => start,
            (_, counted) => counted,
        };
        let others = threads
            .iter()
            .map(|thread| format!("common_pid != {thread}"));
        if records.of_current && !threads.is_empty() {
            records.only(&others.collect::<Vec<_>>().join(" && "));
        }
    }

    /// How many keys its table has.
    pub fn keys(&self) -> usize {
        let stack = matches!(self.measure, Measure::Latency { stack: true, .. });
        self.by.len() + usize::from(self.has_intervals() || stack)
    }

    /// Whether a key is the name of the task that runs.
    pub fn is_by_comm(&self) -> bool {
        self.by.iter().any(|by| by.key == COMM)
    }

    /// The fields that are summed, also that which is distributed.
    pub fn sums(&self) -> &[Sum] {
        match &self.measure {
            Measure::Count { sums, .. } => sums,
            Measure::Distribution { field, .. } => std::slice::from_ref(field),
            Measure::Latency { .. } => &[],
        }
    }

    /// Halves all tables, which have at least 128 rows. Says whether one has become smaller.
    pub fn halve(&mut self) -> bool {
        let half = |rows: &mut u32| {
            let before = std::mem::replace(rows, (*rows / 2).max(LEAST_ROWS));
            *rows < before
        };
        let size = half(&mut self.size);
        match &mut self.measure {
            Measure::Latency { waiting, .. } => half(waiting) || size,
            _ => size,
        }
    }

    /// Doubles the rows that the table may grow to, up to this many. Says whether there are more.
    pub fn grow(&mut self, most: u32) -> bool {
        let before = self.most.max(self.size);
        self.most = before.saturating_mul(2).min(most);
        self.most > before
    }

    /// Whether one of the keys is the interval of the measure.
    pub fn has_intervals(&self) -> bool {
        !matches!(
            self.measure,
            Measure::Count { .. } | Measure::Latency { stack: true, .. }
        )
    }

    /// The unit of the intervals.
    pub fn unit(&self) -> Option<Unit> {
        match &self.measure {
            Measure::Count { .. } => None,
            Measure::Distribution { field, .. } => field.unit,
            Measure::Latency { .. } => Some(Unit::Ns),
        }
    }
}
