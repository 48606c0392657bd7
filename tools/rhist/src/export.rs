// SPDX-License-Identifier: MIT OR Apache-2.0

//! Exporting counts to systems that gather them from many machines.
//!
//! Prometheus and OpenTelemetry need, for each set of labels, one row of numbers that only grow. Labels are the keys
//! that are no intervals; the intervals become the buckets of a histogram without change.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Result;
use crate::grid::{self, Slot};
use crate::model::{
    self, Account, Agg, Exemplar, Key, KeyColumn, Kind, Losses, Number, Row, Span, Table, Unit,
    ValueColumn, UNKNOWN,
};
use crate::units;

pub mod otlp;
pub mod prometheus;

/// The most sets of labels that a table keeps apart; all further sets are counted together, as OpenTelemetry demands.
pub const MOST_SERIES: usize = 2000;

/// The labels of a series: names of key columns, and values.
pub type Labels = Vec<(String, String)>;

/// The counts of one series, which has the same labels everywhere.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Points {
    /// The number of hits.
    pub hits: u64,
    /// The sums, one for each column of values.
    pub values: Vec<Number>,
    /// The number of hits in each interval.
    pub slots: BTreeMap<Slot, u64>,
    /// The last exemplar of each interval that has one.
    pub exemplars: BTreeMap<Slot, Exemplar>,
}

impl Points {
    fn add(&mut self, hits: u64, row: &Row, columns: &[ValueColumn], slot: Option<Slot>) {
        let values = &row.values;
        self.hits = self.hits.wrapping_add(hits);
        match self.values.is_empty() {
            true => self.values.clone_from(values),
            false => model::join(columns, &mut self.values, values),
        }
        if let Some(slot) = slot {
            let count = self.slots.entry(slot).or_default();
            *count = count.wrapping_add(hits);
            let exemplar = row.exemplar.as_deref().cloned();
            self.exemplars.extend(exemplar.map(|one| (slot, one)));
        }
    }

    /// Returns the hits in buckets with these upper ends, which must be ascending and ends of intervals. Hits above the
    /// last end are in no bucket.
    pub fn bounds_in(&self, ends: &[Number]) -> Vec<(Number, u64)> {
        let mut bounds: Vec<(Number, u64)> = ends.iter().map(|&end| (end, 0)).collect();
        for (slot, &hits) in &self.slots {
            let place = ends.partition_point(|&end| end < slot.bucket.hi);
            if let Some((_, count)) = bounds.get_mut(place) {
                *count = count.wrapping_add(hits);
            }
        }
        bounds
    }

    /// Returns upper ends of buckets in ascending order, each with the hits above the end before it. The lower end of
    /// each interval is an end, too, so that no bucket looks wider than its interval.
    pub fn bounds(&self) -> Vec<(Number, u64)> {
        let mut bounds: Vec<(Number, u64)> = Vec::with_capacity(self.slots.len() * 2);
        for (&Slot { bucket, .. }, &hits) in &self.slots {
            let below = bucket.lo - 1;
            let is_open = match bounds.last() {
                Some(&(last, _)) => last < below,
                // Without an end below it, the first bucket is taken to begin at 0.
                None => below > 0 || bucket.lo < 0,
            };
            if is_open {
                bounds.push((below, 0));
            }
            bounds.push((bucket.hi, hits));
        }
        bounds
    }
}

/// All counts of one trigger.
#[derive(Debug, Clone)]
pub struct Set {
    /// The event, the trigger, the columns and the account; the rows are in `series`.
    pub head: Table,
    /// The number of the trigger among those of its event, from 1.
    pub number: usize,
    /// The counts by their labels.
    pub series: BTreeMap<Labels, Points>,
    /// The hits of all series beyond the limit.
    pub overflow: Option<Points>,
    /// When counting began and ended, in nanoseconds of `CLOCK_REALTIME`; 0 if that is unknown.
    pub times: (u64, u64),
    /// The indices of the keys that are labels, and the labels' names.
    keys: Vec<(usize, String)>,
}

impl Set {
    /// Returns an empty set for tables with the columns of `table`.
    fn new(table: &Table, number: usize, begin: u64) -> Self {
        let interval = table.interval_column();
        let mut names = BTreeSet::new();
        let others = table
            .keys
            .iter()
            .enumerate()
            .filter(|&(i, _)| Some(i) != interval);
        let keys = others.map(|(i, key)| {
            let mut name = word(key);
            // A field may be a key twice, as a number and as a name.
            while !names.insert(name.clone()) {
                name.push('_');
            }
            (i, name)
        });
        let mut head = table.without_rows();
        head.account = Account {
            losses: table.account.losses.map(|_| Losses::default()),
            ..Account::default()
        };
        let keys: Vec<(usize, String)> = keys.collect();
        // Without labels there is one series, which exists before the first hit.
        let only = keys.is_empty().then(Default::default);
        Self {
            number,
            series: only.into_iter().collect(),
            overflow: None,
            times: (begin, begin),
            keys,
            head,
        }
    }

    fn add(&mut self, table: &Table, most: usize) -> Result<()> {
        self.head.merge(&table.without_rows())?;
        let interval = table.interval_column().map(|i| (i, table.keys[i].kind));
        for row in &table.rows {
            let hits = table.hits_of(&row.values);
            let slot = interval.and_then(|(i, kind)| grid::slot(kind, &row.keys[i]));
            let labels = self.labels(row);
            let room = self.series.len() < most;
            let points = match self.series.get_mut(&labels) {
                Some(points) => points,
                None if room => self.series.entry(labels).or_default(),
                None => self.overflow.get_or_insert_default(),
            };
            points.add(hits, row, &table.values, slot);
        }
        Ok(())
    }

    fn labels(&self, row: &Row) -> Labels {
        let mut labels = Vec::with_capacity(self.keys.len());
        for (i, name) in &self.keys {
            let (value, more) = match &row.keys[*i] {
                Key::Task { pid, comm } => (pid.to_string(), Some(units::text(comm))),
                Key::Bucket { bucket, .. } => (format!("{}..{}", bucket.lo, bucket.hi), None),
                key => (units::key(key, None), None),
            };
            labels.push((name.clone(), value));
            labels.extend(more.map(|comm| (format!("{name}_name"), comm)));
        }
        labels
    }

    /// Returns all series, and last, without labels, the hits beyond the limit.
    pub fn all(&self) -> impl Iterator<Item = (Option<&Labels>, &Points)> {
        let series = self.series.iter();
        let series = series.map(|(labels, points)| (Some(labels), points));
        series.chain(self.overflow.as_ref().map(|points| (None, points)))
    }

    /// Returns the columns of sums, except for the number of hits and the sum of the measured field.
    pub fn sums(&self) -> impl Iterator<Item = (usize, &ValueColumn)> {
        let others = [self.head.hitcount(), self.head.of_measure(Agg::Sum)];
        let values = self.head.values.iter().enumerate();
        values.filter(move |&(i, value)| value.agg == Agg::Sum && !others.contains(&Some(i)))
    }

    /// Returns the sum, smallest or largest number of the field that intervals count, if the trigger has it.
    pub fn of_measure(&self, points: &Points, agg: Agg) -> Option<Number> {
        let number = points.values.get(self.head.of_measure(agg)?).copied();
        number.filter(|&number| number != UNKNOWN)
    }

    /// Returns the losses by reason, without those that C does not count, and without expired starts if none expire.
    pub fn lost(&self) -> Vec<(&'static str, u64)> {
        let mut lost = vec![("full", self.head.account.full)];
        if let Some(losses) = self.head.account.losses {
            lost.extend([
                ("nested", losses.nested),
                ("saves", losses.saves),
                ("traces", losses.traces),
            ]);
            let expiring = [
                ("retired", losses.retired),
                ("expired", losses.expired),
                ("overwritten", losses.overwritten),
            ];
            let there = |(reason, count): (_, Option<u64>)| Some((reason, count?));
            lost.extend(expiring.into_iter().filter_map(there));
        }
        lost
    }
}

/// All counts of several questions.
#[derive(Debug, Clone)]
pub struct Questions {
    /// The counts of each question, ordered by the first table.
    pub all: Vec<Metrics>,
    most: usize,
}

impl Questions {
    /// Returns an empty collection; at most `most` series of each trigger are kept apart.
    pub fn new(most: usize) -> Self {
        Self {
            all: Vec::new(),
            most,
        }
    }

    /// Returns the counts of the question named `question`, and sets the title if it has none yet.
    pub fn titled(&mut self, question: &str, title: &str) -> &mut Metrics {
        let metrics = self.of(question);
        if metrics.title.is_empty() {
            title.clone_into(&mut metrics.title);
        }
        metrics
    }

    /// Returns the counts of the question named `question`, empty ones if it is new.
    pub fn of(&mut self, question: &str) -> &mut Metrics {
        let same = |metrics: &Metrics| metrics.question == question;
        let place = self.all.iter().position(same).unwrap_or_else(|| {
            self.all.push(Metrics::new(question, self.most));
            self.all.len() - 1
        });
        &mut self.all[place]
    }
}

/// All counts of one question.
#[derive(Debug, Clone)]
pub struct Metrics {
    /// The name of the question, for the names of metrics.
    pub question: String,
    /// The question in words.
    pub title: String,
    /// The counts of the question's triggers.
    pub sets: Vec<Set>,
    most: usize,
    ends: BTreeMap<(String, String), Span>,
}

impl Metrics {
    /// Returns empty counts for the question named `question`; at most `most` series of each trigger are kept apart.
    pub fn new(question: &str, most: usize) -> Self {
        Self {
            question: question.to_owned(),
            title: String::new(),
            sets: Vec::new(),
            most,
            ends: BTreeMap::new(),
        }
    }

    /// Adds an epoch of a trigger, and returns all counts of the trigger so far.
    pub fn add(&mut self, table: &Table) -> Result<&Set> {
        let (begin, end) = self.times(table);
        let place = self.place(table, begin);
        let set = &mut self.sets[place];
        set.add(table, self.most)?;
        set.times.1 = end;
        Ok(set)
    }

    /// Returns the counts of the table's epoch alone; keeps only the epoch's end, at which the next epoch begins.
    pub fn delta(&mut self, table: &Table) -> Result<Set> {
        let (begin, end) = self.times(table);
        let place = self.place(table, begin);
        let mut set = Set::new(table, self.sets[place].number, begin);
        set.add(table, self.most)?;
        set.times.1 = end;
        Ok(set)
    }

    /// Returns the index of the set of a trigger, which is created if it is missing.
    fn place(&mut self, table: &Table, begin: u64) -> usize {
        let same = |set: &Set| set.head.event == table.event && set.head.trigger == table.trigger;
        self.sets.iter().position(same).unwrap_or_else(|| {
            let of_event = self.sets.iter().filter(|set| set.head.event == table.event);
            self.sets.push(Set::new(table, 1 + of_event.count(), begin));
            self.sets.len() - 1
        })
    }

    /// Returns when an epoch began and ended by `CLOCK_REALTIME`. It begins where the one before it ended, even if the
    /// clock was set in between.
    fn times(&mut self, table: &Table) -> (u64, u64) {
        let Some(span) = table.span else {
            return (0, 0);
        };
        let trigger = (table.event.clone(), table.trigger.clone());
        let before = self.ends.insert(trigger, span);
        let begin = match before {
            Some(before) if before.to == span.from && before.real <= span.real => before.real,
            _ => span.begin(),
        };
        (begin, span.real)
    }
}

/// Returns the label for a column of keys: the tool's word, which does not depend on the event's field.
fn word(column: &KeyColumn) -> String {
    let name = units::text(&column.name);
    let plain = ["common_", "next_", "prev_"]
        .iter()
        .find_map(|which| name.strip_prefix(which));
    match (column.kind, plain.unwrap_or(&name)) {
        (Kind::Syscall, _) => "syscall",
        (Kind::Stack, _) | (_, "stacktrace") => "stack",
        (Kind::Symbol, "call_site" | "location" | "ip") => "site",
        (_, "COMM") => "comm",
        (_, "lock_addr") => "lock",
        (_, "dport") => "port",
        (_, "sport") => "local",
        (_, "__probe_ip" | "__probe_func") => "function",
        (_, plain) => plain,
    }
    .to_owned()
}

/// Returns the name of an event, without the process id and the question's number in it: it must stay the same after a
/// restart, and with other questions beside this one.
pub fn event_name(event: &str) -> String {
    let number = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let Some((before, after)) = event.split_once("rhist_") else {
        return event.to_owned();
    };
    let (pid, rest) = after.split_at(number(after));
    if pid.is_empty() {
        return event.to_owned();
    }
    let question = rest.strip_prefix('_').unwrap_or_default();
    let rest = match question.split_at(number(question)) {
        (number, name) if !number.is_empty() && name.starts_with(['_', ':']) => name,
        _ => rest,
    };
    format!("{before}rhist{rest}")
}

/// Returns the number of this unit in one base unit of metrics, and the name of that base unit.
fn base(unit: Option<Unit>) -> (f64, Option<&'static str>) {
    match unit {
        Some(Unit::Ns) => (1e9, Some("seconds")),
        Some(Unit::Us) => (1e6, Some("seconds")),
        Some(Unit::Bytes) => (1.0, Some("bytes")),
        None => (1.0, None),
    }
}

/// Buckets of numbers of one sign in the exponential histograms of Prometheus and OpenTelemetry: hits by index.
pub type Indices = BTreeMap<i64, u64>;

/// The intervals of `.log2=N` as buckets of a native histogram with schema `N`, by index: exact for whole numbers in
/// their own unit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exponential {
    /// The hits in the bucket of 0.
    pub zero: u64,
    /// The largest number in the bucket of 0; the intervals of `.log2` without a number put 1 there, too.
    pub threshold: u64,
    /// The buckets of numbers above 0.
    pub positive: Indices,
    /// The buckets of numbers below 0, by their magnitudes.
    pub negative: Indices,
}

impl Exponential {
    /// Returns the buckets of `slots`; `index` converts the kernel's index of each interval.
    pub fn of(scale: u8, slots: &BTreeMap<Slot, u64>, index: impl Fn(i64) -> i64) -> Self {
        let mut all = Self {
            threshold: u64::from(scale == 0),
            ..Self::default()
        };
        for (slot, &hits) in slots {
            let given = |place: Number| i64::try_from(place).unwrap_or(i64::MAX);
            match slot.place {
                -1 => all.zero += hits,
                0 if scale == 0 => all.zero += hits,
                place @ 0.. => *all.positive.entry(index(given(place))).or_default() += hits,
                place => *all.negative.entry(index(given(-2 - place))).or_default() += hits,
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Bucket;

    #[test]
    fn events_have_the_same_name_after_a_new_start() {
        assert_eq!(
            event_name("synthetic:rhist_1234_runq"),
            "synthetic:rhist_runq"
        );
        assert_eq!(event_name("rhist_12:rq_done"), "rhist:rq_done");
        assert_eq!(
            event_name("synthetic:rhist_1234_2_runq"),
            "synthetic:rhist_runq"
        );
        assert_eq!(event_name("rhist_12_3:rq_done"), "rhist:rq_done");
        assert_eq!(event_name("sched:sched_switch"), "sched:sched_switch");
        assert_eq!(event_name("synthetic:rhist_mine"), "synthetic:rhist_mine");
    }

    #[test]
    fn labels_are_words() {
        let words = [
            ("next_comm", Kind::Text, "comm"),
            ("common_comm", Kind::Text, "comm"),
            ("COMM", Kind::Text, "comm"),
            ("common_cpu", Kind::Number, "cpu"),
            ("common_pid", Kind::Execname, "pid"),
            ("next_pid", Kind::Number, "pid"),
            ("id", Kind::Syscall, "syscall"),
            ("id", Kind::Number, "id"),
            ("call_site", Kind::Symbol, "site"),
            ("common_stacktrace", Kind::Stack, "stack"),
            ("dev", Kind::Number, "dev"),
        ];
        for (name, kind, label) in words {
            let name = name.to_owned();
            assert_eq!(
                word(&KeyColumn {
                    name,
                    kind,
                    unit: None
                }),
                label
            );
        }
    }

    #[test]
    fn bounds_leave_no_interval_open() {
        let bounds = |buckets: &[(Number, Number)]| {
            let mut points = Points::default();
            let row = Row {
                keys: Vec::new(),
                values: Vec::new(),
                exemplar: None,
            };
            for (place, &(lo, hi)) in (0..).zip(buckets) {
                let bucket = Bucket { lo, hi };
                points.add(1, &row, &[], Some(Slot { place, bucket }));
            }
            points
                .bounds()
                .iter()
                .map(|&(bound, _)| bound)
                .collect::<Vec<_>>()
        };
        assert_eq!(bounds(&[(0, 0), (1, 1), (2, 2)]), [0, 1, 2]);
        assert_eq!(bounds(&[(1, 1), (9, 16)]), [1, 8, 16]);
        assert_eq!(bounds(&[(9, 16), (17, 32)]), [8, 16, 32]);
        assert_eq!(
            bounds(&[(-8, -5), (-1, -1), (1, 1)]),
            [-9, -5, -2, -1, 0, 1]
        );
    }
}
