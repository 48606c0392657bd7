// SPDX-License-Identifier: MIT OR Apache-2.0

//! A question: the measured quantity, the keys to group by, and the records that count. Backends make lines from it.

use serde::Deserialize;

use crate::error::Error;
use crate::model::Unit;

/// The system name that stands for the tool's own dynamic events.
pub const OWN: &str = "own";

/// The number of rows of a table, unless a recipe or the user says otherwise: the kernel's default.
pub const SIZE: u32 = 2048;
/// The key for the name of the running task. Only newer kernels' C implementation has it.
pub const COMM: &str = "common_comm";

/// The field with the number of the running task, which each event has.
pub const CURRENT: &str = "common_pid";

/// The key of a line with the task of the first event, where the second one has none.
pub const TASK: &str = "task.execname";

/// The rows of the smallest table.
const LEAST_ROWS: u32 = 128;

/// A question that the kernel can count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// A word for the question, which is in the names of objects made for it.
    pub name: String,
    /// Probes to create first, in the system [`OWN`].
    pub probes: Vec<Probe>,
    /// The measured quantity.
    pub measure: Measure,
    /// The keys to group by.
    pub by: Vec<By>,
    /// The number of rows of the table.
    pub size: u32,
    /// Whether the user has chosen the number of rows.
    pub size_asked: bool,
    /// The number of rows to which the table may grow, if tables can grow; at most `size` if it need not grow.
    pub most: u32,
    /// How fine the intervals are.
    pub intervals: Intervals,
    /// Whether triggers measure their own cost, if the implementation can do that.
    pub costs: bool,
    /// Whether the smallest number is kept, if the implementation can do that.
    pub smallest: bool,
    /// Whether the setting `kernel.sched_schedstats` must be 1.
    pub schedstats: bool,
    /// Whether the implementation lacks the key for the running task's name.
    pub lacks_comm: bool,
    /// The field with the number of the measured task, in the counted event; `None` if that has no such field.
    pub task: Option<String>,
    /// The field with the number of the measured task, in the first event of a latency.
    pub start_task: Option<String>,
    /// The fields of the largest hit of each row that are kept with it.
    pub saves: Vec<String>,
    /// Whether each hit is a line, in place of a table.
    pub lines: bool,
    /// The event whose record comes before that of a line and completes it, if there is one.
    pub before: Option<Before>,
    /// Whose tasks alone are wanted.
    pub only: Option<Only>,
    /// The threads that the wanted processes have when counting starts.
    pub threads: Vec<u64>,
}

/// A task, or something that a task belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The task itself.
    Task,
    /// The process of the task.
    Tgid,
    /// The user of the task.
    Uid,
    /// The control group of the task, which may be that of a container or a systemd unit.
    Cgroup,
    /// The pod of Kubernetes or podman that has the task's control group.
    Pod,
}

impl Owner {
    /// Returns the user's word for this kind of owner.
    pub fn name(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Tgid => "tgid",
            Self::Uid => "uid",
            Self::Cgroup => "cgroup",
            Self::Pod => "pod",
        }
    }

    /// Returns the kind of owner for a user's word; `None` for a task, which has a key of its own.
    pub fn named(word: &str) -> Option<Self> {
        let all = [Self::Tgid, Self::Uid, Self::Cgroup, Self::Pod];
        all.into_iter().find(|owner| owner.name() == word)
    }

    /// Returns the module's field for this owner of the running task.
    pub fn key(self) -> &'static str {
        match self {
            Self::Task => CURRENT,
            Self::Tgid => "common_tgid",
            Self::Uid => "common_uid",
            Self::Cgroup | Self::Pod => "common_cgroup",
        }
    }
}

/// The only tasks that are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Only {
    /// The tasks of these processes.
    Processes(Vec<u64>),
    /// The tasks of this control group, in the user's words, and of groups below it.
    Cgroup(String),
}

/// Returns a filter that is true if the field has one of several values.
pub fn any_of(field: &str, values: impl Iterator<Item = String>) -> String {
    values
        .map(|value| format!("{field} == {value}"))
        .collect::<Vec<_>>()
        .join(" || ")
}

/// How fine intervals are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Intervals {
    /// As fine as the backend makes them by default.
    #[default]
    Usual,
    /// Intervals of this width.
    Width(u64),
    /// Intervals of this width in nanoseconds, converted once the unit of the question is known.
    Time(u64),
    /// Intervals so fine that percentiles are at most this many percent above the true values.
    Within(u64),
}

/// A dynamic event.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// The kind of the probe, as in `dynamic_events`: `t`, `f`, `p`, `r`.
    pub kind: String,
    /// The name of the probe.
    pub name: String,
    /// The probed function or event, and the arguments.
    pub definition: String,
}

/// The error of an option that restricts or tells apart tasks, where the event has none.
pub fn nobody(event: &str, option: &str) -> Error {
    error!("{event} does not say for which task it is, so there is no {option} here")
}

/// A measured quantity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Measure {
    /// The number of records of an event, and sums of fields.
    Count {
        /// The event, and which of its records count.
        event: Records,
        /// The fields to sum.
        sums: Vec<Sum>,
    },
    /// The distribution of the numbers of a field.
    Distribution {
        /// The event, and which of its records count.
        event: Records,
        /// The field whose numbers are distributed.
        field: Sum,
    },
    /// The distribution of the time from one event to another one.
    Latency(Latency),
}

/// The time from one event to another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Latency {
    /// The first event.
    pub start: Records,
    /// The fields of the first event that must match the second one's.
    pub start_on: Vec<String>,
    /// The second event.
    pub end: Records,
    /// The fields of the second event that must match the first one's.
    pub end_on: Vec<String>,
    /// The number of rows for starts that have not ended.
    pub waiting: u32,
    /// The time after which starts without an end expire, as text for a trigger, if they can expire.
    pub expires: Option<String>,
    /// Whether the times are summed by the stack of the first event, instead of a distribution.
    pub stack: bool,
    /// The times that count, as a filter of an event with the field `lat`; `None` for all times.
    pub only: Option<String>,
}

/// The event before the one that makes a line, and the fields that it knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Before {
    /// The earlier event.
    pub records: Records,
    /// Its field with the number of the task.
    pub on: String,
    /// The field of the event of the lines that has this number.
    pub end_on: String,
}

/// The records that a question counts: an event, perhaps with a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Records {
    /// The event, as `system:event`.
    pub event: String,
    /// The records that count, as a filter of the kernel; `None` for all.
    pub filter: Option<String>,
    /// Whether the records are about the running task, so that the tool can leave itself out.
    pub of_current: bool,
}

impl Records {
    /// Returns all records of an event.
    pub fn all(event: impl Into<String>) -> Self {
        Self {
            event: event.into(),
            filter: None,
            of_current: false,
        }
    }

    /// Restricts the records by another filter.
    pub fn only(&mut self, filter: &str) {
        self.filter = Some(match self.filter.take() {
            None => filter.to_owned(),
            Some(old) => format!("({old}) && ({filter})"),
        });
    }
}

/// Returns the end of a trigger line for this filter, or nothing without one.
pub fn condition(filter: Option<&str>) -> String {
    filter.map_or_else(String::new, |filter| format!(" if {filter}"))
}

/// A field to sum, or to make a distribution of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sum {
    /// The name of the field.
    pub field: String,
    /// The unit of the field's numbers.
    pub unit: Option<Unit>,
}

/// A key to group by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct By {
    /// The user's word for the key.
    pub label: String,
    /// The field with its modifier, as text for a trigger; for an owner, the field with the task's number.
    pub key: String,
    /// The kind of owner to look up for the field's task, if the key is an owner.
    pub owner: Option<Owner>,
}

impl By {
    /// Returns the field without its modifier.
    pub fn field(&self) -> &str {
        self.key.split('.').next().unwrap_or_default()
    }

    /// Returns the modifier with its dot; an empty text if there is none.
    pub fn modifier(&self) -> &str {
        &self.key[self.field().len()..]
    }
}

impl Question {
    /// Returns the event whose records are counted: for a latency the second one.
    pub fn event(&self) -> &Records {
        match &self.measure {
            Measure::Count { event, .. } | Measure::Distribution { event, .. } => event,
            Measure::Latency(latency) => &latency.end,
        }
    }

    /// Returns the records of a latency's first event, if there is one, and the records that are counted.
    pub fn records(&mut self) -> (Option<&mut Records>, &mut Records) {
        match &mut self.measure {
            Measure::Count { event, .. } | Measure::Distribution { event, .. } => (None, event),
            Measure::Latency(Latency { start, end, .. }) => (Some(start), end),
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

    /// Returns the number of keys of the question's table.
    pub fn keys(&self) -> usize {
        self.by.len() + usize::from(self.has_intervals() || self.has_stack())
    }

    /// Returns whether a key is the name of the running task.
    pub fn is_by_comm(&self) -> bool {
        self.by.iter().any(|by| by.key == COMM)
    }

    /// Returns the fields to sum, including a field whose distribution is measured.
    pub fn sums(&self) -> &[Sum] {
        match &self.measure {
            Measure::Count { sums, .. } => sums,
            Measure::Distribution { field, .. } => std::slice::from_ref(field),
            Measure::Latency(_) => &[],
        }
    }

    /// Halves all tables, down to 128 rows. Returns whether one became smaller.
    pub fn halve(&mut self) -> bool {
        let half = |rows: &mut u32| {
            let before = std::mem::replace(rows, (*rows / 2).max(LEAST_ROWS));
            *rows < before
        };
        let size = half(&mut self.size);
        match &mut self.measure {
            Measure::Latency(latency) => half(&mut latency.waiting) || size,
            _ => size,
        }
    }

    /// Doubles the number of rows to which the table may grow, up to `most`. Returns whether that raised it.
    pub fn grow(&mut self, most: u32) -> bool {
        let before = self.most.max(self.size);
        self.most = before.saturating_mul(2).min(most);
        self.most > before
    }

    /// Returns whether one of the keys is the interval of the measured number.
    pub fn has_intervals(&self) -> bool {
        !matches!(self.measure, Measure::Count { .. }) && !self.has_stack()
    }

    /// Returns whether times are summed by the stack of the first event.
    pub fn has_stack(&self) -> bool {
        matches!(&self.measure, Measure::Latency(latency) if latency.stack)
    }

    /// Returns the unit of the intervals.
    pub fn unit(&self) -> Option<Unit> {
        match &self.measure {
            Measure::Count { .. } => None,
            Measure::Distribution { field, .. } => field.unit,
            Measure::Latency(_) => Some(Unit::Ns),
        }
    }
}
