// SPDX-License-Identifier: MIT OR Apache-2.0

//! A histogram that was read: a table with columns, rows and an account of its hits.
//!
//! Tables are the same for both sources, the module (JSON) and the C implementation (text). They can be subtracted, as
//! counts only grow, and added.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use serde::{Deserialize, Deserializer};

use crate::{Error, Result};

/// A number in a key or a sum: any of `i64` and `u64`.
pub type Number = i128;

/// The unit of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Bytes.
    Bytes,
}

impl Unit {
    /// Returns the unit with this name, as in JSON and recipes.
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Ns, Self::Us, Self::Bytes];
        all.into_iter().find(|unit| unit.name() == name)
    }

    /// Returns the name of the unit.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ns => "ns",
            Self::Us => "us",
            Self::Bytes => "bytes",
        }
    }
}

/// The kind of a key column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Kind {
    /// A number.
    Number,
    /// A string.
    #[serde(rename = "string")]
    Text,
    /// An address and its symbol.
    Symbol,
    /// A task.
    Execname,
    /// A system call.
    Syscall,
    /// A stack trace.
    Stack,
    /// Intervals: `2^scale` of them for each power of two.
    Log2 {
        /// log2 of the number of intervals.
        #[serde(default)]
        scale: u8,
    },
    /// Intervals of this width.
    Buckets {
        /// The number of integers in an interval.
        #[serde(default)]
        width: u64,
    },
}

impl Kind {
    /// Whether the keys are intervals.
    pub fn is_interval(self) -> bool {
        matches!(self, Self::Log2 { .. } | Self::Buckets { .. })
    }
}

/// A column of keys.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct KeyColumn {
    /// The field, without modifiers.
    pub name: String,
    /// The kind of the column's values.
    #[serde(flatten)]
    pub kind: Kind,
    /// The unit of the column's numbers, if it is known.
    #[serde(default, deserialize_with = "known_unit")]
    pub unit: Option<Unit>,
}

/// Reads a unit from JSON; `None` for one that a later version may add.
fn known_unit<'de, D: Deserializer<'de>>(name: D) -> std::result::Result<Option<Unit>, D::Error> {
    let name = Option::<String>::deserialize(name)?;
    Ok(name.as_deref().and_then(Unit::named))
}

/// The statistic of a row's numbers that a column shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Agg {
    /// The sum.
    #[default]
    Sum,
    /// The smallest number.
    Min,
    /// The largest number.
    Max,
    /// The mean.
    Avg,
    /// The standard deviation.
    Stddev,
}

impl Agg {
    /// Returns the name of the statistic, as in triggers and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Min => "min",
            Self::Max => "max",
            Self::Avg => "avg",
            Self::Stddev => "stddev",
        }
    }

    /// Returns whether the statistic is in hundredths.
    pub fn has_decimals(self) -> bool {
        matches!(self, Self::Avg | Self::Stddev)
    }
}

/// A column of counts, sums, or other statistics of numbers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ValueColumn {
    /// `hitcount`, or the name of the field.
    pub name: String,
    /// The statistic of the field that the column shows.
    #[serde(default)]
    pub agg: Agg,
    /// The unit of the column's numbers, if it is known.
    #[serde(default, deserialize_with = "known_unit")]
    pub unit: Option<Unit>,
}

impl ValueColumn {
    /// Returns the column for the sums of a field.
    pub fn of_sums(name: String) -> Self {
        Self {
            name,
            agg: Agg::Sum,
            unit: None,
        }
    }

    /// Returns the title of the column.
    pub fn title(&self) -> String {
        let name = self.name.trim_start_matches('$');
        match self.agg {
            Agg::Sum => name.to_owned(),
            agg => format!("{name}.{}", agg.name()),
        }
    }

    /// Returns the number of two rows together, which is unknown for means and deviations.
    pub fn joined(&self, a: Number, b: Number) -> Number {
        match self.agg {
            Agg::Sum => a + b,
            Agg::Avg | Agg::Stddev => UNKNOWN,
            _ if a == UNKNOWN => b,
            _ if b == UNKNOWN => a,
            Agg::Min => a.min(b),
            Agg::Max => a.max(b),
        }
    }
}

/// The value of a row without a number in a column.
pub const UNKNOWN: Number = Number::MIN;

/// Adds the values of a row to those of another row; both have the columns `columns`.
pub fn join(columns: &[ValueColumn], to: &mut [Number], from: &[Number]) {
    for ((to, from), column) in to.iter_mut().zip(from).zip(columns) {
        *to = column.joined(*to, *from);
    }
}

/// An interval of integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bucket {
    /// The first number in the interval.
    pub lo: Number,
    /// The last number in the interval.
    pub hi: Number,
}

/// One key of a row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A number.
    Number(Number),
    /// A string. Each character stands for a byte.
    Text(String),
    /// An address and its symbol.
    Symbol {
        /// The address.
        address: u64,
        /// The symbol, perhaps with offset and module.
        name: String,
    },
    /// A task.
    Task {
        /// The task's id.
        pid: Number,
        /// The name that the task had when the row was created.
        comm: String,
    },
    /// A system call.
    Syscall {
        /// The number of the system call.
        number: Number,
        /// The name of the system call, with `sys_`, if it has one.
        name: Option<String>,
    },
    /// A stack trace, innermost function first.
    Stack(Vec<String>),
    /// An interval.
    Bucket {
        /// The numbers in the interval.
        bucket: Bucket,
        /// The index of the interval in native histograms; `None` unless the column is `Log2`, and for 0.
        index: Option<i64>,
    },
}

impl Key {
    /// Returns the interval, if the key is one.
    pub fn bucket(&self) -> Option<Bucket> {
        match self {
            Self::Bucket { bucket, .. } => Some(*bucket),
            _ => None,
        }
    }
}

/// A row: its keys, one for each key column, and its counts and sums, one for each value column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The keys.
    pub keys: Vec<Key>,
    /// Counts and sums.
    pub values: Vec<Number>,
    /// The hit with the largest number, if the trigger keeps one.
    pub exemplar: Option<Box<Exemplar>>,
}

/// A hit that stands for others: its number and its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exemplar {
    /// The number.
    pub value: Number,
    /// Fields of the hit.
    pub fields: BTreeMap<String, Key>,
}

impl Exemplar {
    /// The one of a larger number.
    fn larger(a: Option<Box<Self>>, b: &Option<Box<Self>>) -> Option<Box<Self>> {
        match (a, b) {
            (Some(a), Some(b)) if b.value > a.value => Some(b.clone()),
            (a, b) => a.or_else(|| b.clone()),
        }
    }

    /// Its fields as words, by their short names.
    pub fn named(&self) -> impl Iterator<Item = (&str, String)> {
        let fields = self.fields.iter();
        fields.map(|(name, key)| (Self::short(name), crate::units::key(key, None)))
    }

    /// The name of a field without what says only whose of several it is: `comm` for `next_comm`.
    pub fn short(name: &str) -> &str {
        let rest = ["common_", "next_"].iter();
        let mut rest = rest.filter_map(|prefix| name.strip_prefix(prefix));
        rest.next().unwrap_or(name)
    }

    /// The largest one of those that are in an interval.
    pub fn in_bucket(all: &[Self], bucket: Bucket) -> Option<&Self> {
        let inside = all
            .iter()
            .filter(|one| (bucket.lo..=bucket.hi).contains(&one.value));
        inside.max_by_key(|one| one.value)
    }
}

impl Row {
    /// Adds what another row of these columns has.
    fn join(&mut self, columns: &[ValueColumn], other: &Self) {
        join(columns, &mut self.values, &other.values);
        self.exemplar = Exemplar::larger(self.exemplar.take(), &other.exemplar);
    }
}

/// The time in which the hits of a table happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The number of the epoch of the table.
    pub epoch: u64,
    /// The beginning, in nanoseconds of `CLOCK_MONOTONIC`.
    pub from: u64,
    /// The end, in nanoseconds of `CLOCK_MONOTONIC`.
    pub to: u64,
    /// The end in nanoseconds of `CLOCK_REALTIME`.
    pub real: u64,
}

impl Span {
    /// Returns the beginning, in nanoseconds of `CLOCK_REALTIME`.
    pub fn begin(&self) -> u64 {
        self.real.saturating_sub(self.to.saturating_sub(self.from))
    }

    /// Returns the length in seconds.
    pub fn seconds(&self) -> f64 {
        self.to.saturating_sub(self.from) as f64 / 1e9
    }
}

/// Numbers that only the module counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub struct Losses {
    /// The number of calls of the trigger.
    pub calls: u64,
    /// Calls while too many others were in progress on the CPU, each nested in another.
    #[serde(rename = "dropped_nested")]
    pub nested: u64,
    /// Calls that needed a variable which was not set.
    pub ignored: u64,
    /// Hits whose fields `save()` had no room for.
    #[serde(rename = "lost_saves")]
    pub saves: u64,
    /// Records of synthetic events that could not be written.
    #[serde(rename = "lost_traces")]
    pub traces: u64,
    /// Hits that are in no row any more; `None`, like the following two, if starts never expire.
    pub retired: Option<u64>,
    /// Starts that no end has consumed.
    pub expired: Option<u64>,
    /// Starts that were overwritten by the next start of their key.
    pub overwritten: Option<u64>,
}

/// The outcomes of a trigger's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Account {
    /// The hits of all rows together.
    pub hits: u64,
    /// Calls with a new key when the table was full.
    pub full: u64,
    /// The other outcomes, which C's implementation does not count.
    pub losses: Option<Losses>,
}

impl Account {
    /// Adds the outcomes of later calls.
    pub fn add(&mut self, other: &Self) {
        *self = zip(self, other, u64::wrapping_add);
    }

    /// Returns whether both accounts are equal, where a missing number of expiry counts as 0.
    pub fn is_as(&self, other: &Self) -> bool {
        let nothing = Self {
            losses: Some(Losses {
                retired: Some(0),
                expired: Some(0),
                overwritten: Some(0),
                ..Losses::default()
            }),
            ..Self::default()
        };
        let whole = |account| zip(account, &nothing, u64::wrapping_add);
        whole(self) == whole(other)
    }
}

/// Applies an operation to each number of two accounts. A number of expiry that only one of them has is 0 in the other.
fn zip(a: &Account, b: &Account, f: impl Fn(u64, u64) -> u64) -> Account {
    let either = |a: Option<u64>, b: Option<u64>| {
        a.or(b)?;
        Some(f(a.unwrap_or_default(), b.unwrap_or_default()))
    };
    Account {
        hits: f(a.hits, b.hits),
        full: f(a.full, b.full),
        losses: a.losses.zip(b.losses).map(|(a, b)| Losses {
            calls: f(a.calls, b.calls),
            nested: f(a.nested, b.nested),
            ignored: f(a.ignored, b.ignored),
            saves: f(a.saves, b.saves),
            traces: f(a.traces, b.traces),
            retired: either(a.retired, b.retired),
            expired: either(a.expired, b.expired),
            overwritten: either(a.overwritten, b.overwritten),
        }),
    }
}

/// Returns the signed 64-bit number with these bits.
fn with_sign(number: Number) -> Number {
    u64::try_from(number).map_or(number, |bits| Number::from(bits as i64))
}

/// Returns the keys that identify a row in another reading: without names of symbols, which change with modules.
fn same_keys(keys: &[Key]) -> Cow<'_, [Key]> {
    let is_symbol = |key: &Key| matches!(key, Key::Symbol { .. });
    if !keys.iter().any(is_symbol) {
        return Cow::Borrowed(keys);
    }
    let without_name = |key: &Key| match *key {
        Key::Symbol { address, .. } => Key::Symbol {
            address,
            name: String::new(),
        },
        ref key => key.clone(),
    };
    Cow::Owned(keys.iter().map(without_name).collect())
}

/// A histogram, as it was read at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// `system:event`.
    pub event: String,
    /// The line of the trigger, in a form that can be typed.
    pub trigger: String,
    /// Whether the trigger is active, not paused.
    pub active: bool,
    /// Whether the rows are there; `hist_pipe` leaves them out if other triggers read the table's variables.
    pub consumed: bool,
    /// The time in which the hits happened; unknown for text.
    pub span: Option<Span>,
    /// The columns of keys.
    pub keys: Vec<KeyColumn>,
    /// The columns of counts and sums.
    pub values: Vec<ValueColumn>,
    /// The rows, in the order in which they were read.
    pub rows: Vec<Row>,
    /// The outcomes of the trigger's calls.
    pub account: Account,
    /// The cost of the trigger as a share of one CPU, in millionths, if it is measured.
    pub cost: Option<u64>,
}

/// The hits of one group of rows, by interval.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Distribution {
    /// The intervals that have hits, in ascending order, with their hits.
    pub buckets: Vec<(Bucket, u64)>,
    /// The smallest number, if it is known exactly.
    pub min: Option<Number>,
    /// The largest number, if it is known exactly.
    pub max: Option<Number>,
}

impl Distribution {
    /// Returns the number of all hits.
    pub fn hits(&self) -> u64 {
        self.buckets.iter().map(|&(_, n)| n).sum()
    }

    /// Returns the number of hits in one of the intervals.
    pub fn hits_in(&self, bucket: &Bucket) -> Option<u64> {
        let place = self
            .buckets
            .binary_search_by(|(other, _)| other.cmp(bucket));
        place.ok().map(|place| self.buckets[place].1)
    }

    /// Returns the distribution in wider intervals; `wider` maps each interval.
    pub fn fold(&self, wider: impl Fn(Bucket) -> Bucket) -> Self {
        let mut folded = BTreeMap::new();
        for &(bucket, hits) in &self.buckets {
            *folded.entry(wider(bucket)).or_default() += hits;
        }
        Self {
            buckets: folded.into_iter().collect(),
            ..*self
        }
    }

    /// Returns the sum of several distributions. The smallest and largest numbers are known if all with hits know them.
    pub fn of<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
        let all: Vec<&Self> = all.filter(|one| !one.buckets.is_empty()).collect();
        let known = |ends: Vec<Option<Number>>| ends.into_iter().collect::<Option<Vec<Number>>>();
        let min = known(all.iter().map(|one| one.min).collect());
        let max = known(all.iter().map(|one| one.max).collect());
        let buckets = all.iter().flat_map(|one| one.buckets.iter().copied());
        Self {
            buckets: buckets.collect(),
            min: min.and_then(|ends| ends.into_iter().min()),
            max: max.and_then(|ends| ends.into_iter().max()),
        }
        .fold(|bucket| bucket)
    }
}

/// The rows that differ only in the measured interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The other keys, in the order of their columns.
    pub keys: Vec<Key>,
    /// The counts and sums of the rows, added up.
    pub values: Vec<Number>,
    /// The hits by interval; empty if the table has no column of intervals.
    pub distribution: Distribution,
    /// The exemplars of the rows that have one.
    pub exemplars: Vec<Exemplar>,
}

impl Table {
    /// Returns the index of the column of counts.
    pub fn hitcount(&self) -> Option<usize> {
        self.values.iter().position(|v| v.name == "hitcount")
    }

    /// Returns the number of hits among the values of a row or a group of this table.
    pub fn hits_of(&self, values: &[Number]) -> u64 {
        let hits = self.hitcount().map_or(0, |column| values[column]);
        u64::try_from(hits).unwrap_or_default()
    }

    /// Returns the index of the column with this statistic of the measured field.
    pub fn of_measure(&self, agg: Agg) -> Option<usize> {
        let name = &self.interval()?.name;
        let mut values = self.values.iter();
        values.position(|value| value.agg == agg && value.name == *name)
    }

    /// Returns the index of the measured interval's column: the last one, as intervals to group by come before it.
    pub fn interval_column(&self) -> Option<usize> {
        self.keys.iter().rposition(|k| k.kind.is_interval())
    }

    /// Returns the measured interval's column.
    pub fn interval(&self) -> Option<&KeyColumn> {
        self.interval_column().map(|column| &self.keys[column])
    }

    /// Returns the keys of a group as they are shown, in the order of their columns.
    pub fn words_of<'a>(&'a self, group: &'a Group) -> impl Iterator<Item = String> + 'a {
        let keys = group.keys.iter().zip(self.other_keys());
        keys.map(|(key, column)| crate::units::key(key, column.unit))
    }

    /// Returns the columns of keys except for the measured interval.
    pub fn other_keys(&self) -> impl Iterator<Item = &KeyColumn> {
        let interval = self.interval_column();
        let keys = self.keys.iter().enumerate();
        keys.filter(move |&(i, _)| Some(i) != interval)
            .map(|(_, key)| key)
    }

    /// Removes negative times, which appear as larger than any clock can measure. They arise when an interrupt repeats
    /// the first event between the second event's time stamp and its trigger.
    pub fn remove_negative_times(&mut self) {
        let Some(column) = self.interval_column() else {
            return;
        };
        if !matches!(self.keys[column].unit, Some(Unit::Ns | Unit::Us)) {
            return;
        }
        let hits = self.hitcount();
        let mut removed = 0;
        self.rows.retain(|row| match row.keys[column] {
            Key::Bucket { bucket, .. } if bucket.lo > Number::from(i64::MAX) => {
                removed += hits.map_or(0, |i| u64::try_from(row.values[i]).unwrap_or_default());
                false
            }
            _ => true,
        });
        self.account.hits = self.account.hits.saturating_sub(removed);
    }

    /// Returns the hits since `earlier`, an earlier reading of the trigger, which has not been cleared since.
    ///
    /// Rows without a new hit are left out. Rows that are missing now, as names change with modules, are ignored.
    pub fn since(&self, earlier: &Self) -> Result<Self> {
        self.same_columns(earlier)?;
        let cleared = || {
            Error::new(format!(
                "the table of {} has become smaller between two readings, so somebody has cleared it; start again",
                self.event
            ))
        };
        if self.account.hits < earlier.account.hits || self.account.full < earlier.account.full {
            return Err(cleared());
        }
        let mut before: HashMap<Cow<'_, [Key]>, &[Number]> = earlier
            .rows
            .iter()
            .map(|row| (same_keys(&row.keys), row.values.as_slice()))
            .collect();
        let hits = self.hitcount();
        let mut rows = Vec::new();
        for row in &self.rows {
            let old = before.remove(&same_keys(&row.keys));
            let values: Vec<Number> = match old {
                Some(old) => {
                    let both = row.values.iter().zip(old).zip(&self.values);
                    both.map(|((new, old), column)| match column.agg {
                        Agg::Sum => new - old,
                        _ => UNKNOWN,
                    })
                    .collect()
                }
                None => row.values.clone(),
            };
            if hits.is_some_and(|i| values[i] < 0) {
                return Err(cleared());
            }
            let changed = match hits {
                Some(i) => values[i] > 0,
                None => values.iter().any(|&v| v != 0),
            };
            if changed {
                rows.push(Row {
                    keys: row.keys.clone(),
                    values,
                    exemplar: row.exemplar.clone(),
                });
            }
        }
        let mut account = zip(&self.account, &earlier.account, u64::saturating_sub);
        let gone = hits.map_or(0, |i| before.values().map(|values| values[i]).sum());
        account.hits = account
            .hits
            .saturating_add(u64::try_from(gone).unwrap_or_default());
        Ok(Self {
            rows,
            account,
            span: self.span.zip(earlier.span).map(|(now, then)| Span {
                from: then.to,
                ..now
            }),
            ..self.without_rows()
        })
    }

    /// Adds the hits of another table with the same columns: of a later epoch, or of another machine.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        let mut sum = Sum::of(self);
        sum.add(other)?;
        *self = sum.table;
        Ok(())
    }

    /// Returns this table without its rows and hits.
    pub fn without_rows(&self) -> Self {
        Self {
            event: self.event.clone(),
            trigger: self.trigger.clone(),
            keys: self.keys.clone(),
            values: self.values.clone(),
            rows: Vec::new(),
            ..*self
        }
    }

    /// Returns the rows grouped by all keys except for the measured interval, groups in the order of their first rows.
    pub fn groups(&self) -> Vec<Group> {
        let interval = self.interval_column();
        let mut places: HashMap<Vec<Key>, usize> = HashMap::new();
        let mut groups: Vec<(Group, BTreeMap<Bucket, u64>)> = Vec::new();
        for row in &self.rows {
            let keys: Vec<Key> = row
                .keys
                .iter()
                .enumerate()
                .filter(|&(i, _)| Some(i) != interval)
                .map(|(_, key)| key.clone())
                .collect();
            let place = *places.entry(keys).or_insert_with_key(|keys| {
                let group = Group {
                    keys: keys.clone(),
                    values: Vec::new(),
                    distribution: Distribution::default(),
                    exemplars: Vec::new(),
                };
                groups.push((group, BTreeMap::new()));
                groups.len() - 1
            });
            let (group, buckets) = &mut groups[place];
            match group.values.is_empty() {
                true => group.values.clone_from(&row.values),
                false => join(&self.values, &mut group.values, &row.values),
            }
            group.exemplars.extend(row.exemplar.as_deref().cloned());
            if let Some(bucket) = interval.and_then(|i| row.keys[i].bucket()) {
                *buckets.entry(bucket).or_default() += self.hits_of(&row.values);
            }
        }
        let end = |group: &Group, agg| {
            let end = group.values.get(self.of_measure(agg)?).copied();
            end.filter(|&end| end != UNKNOWN)
        };
        groups
            .into_iter()
            .map(|(group, buckets)| Group {
                distribution: Distribution {
                    buckets: buckets.into_iter().collect(),
                    min: end(&group, Agg::Min),
                    max: end(&group, Agg::Max),
                },
                ..group
            })
            .collect()
    }

    /// Merges rows of tasks with the same name to one row.
    pub fn name_tasks(&mut self) {
        for (i, column) in self.keys.iter_mut().enumerate() {
            if column.kind != Kind::Execname {
                continue;
            }
            column.kind = Kind::Text;
            for key in self.rows.iter_mut().filter_map(|row| row.keys.get_mut(i)) {
                if let Key::Task { comm, .. } = key {
                    *key = Key::Text(std::mem::take(comm));
                }
            }
        }
        self.rows = Sum::of(self).table.rows;
    }

    /// Converts the numbers of this key column to signed ones. C prints all of them as unsigned.
    pub fn signed(&mut self, column: usize) {
        for row in &mut self.rows {
            if let Some(Key::Number(number)) = row.keys.get_mut(column) {
                *number = with_sign(*number);
            }
        }
    }

    /// Converts the numbers of this column of sums to signed ones. C prints all of them as unsigned.
    pub fn signed_sum(&mut self, column: usize) {
        for sum in self
            .rows
            .iter_mut()
            .filter_map(|row| row.values.get_mut(column))
        {
            *sum = with_sign(*sum);
        }
    }

    /// Checks that both tables have the same columns. A table without rows may lack them, as in text.
    fn same_columns(&self, other: &Self) -> Result<()> {
        let same = self.keys == other.keys && self.values == other.values;
        if same || self.rows.is_empty() || other.rows.is_empty() {
            return Ok(());
        }
        Err(Error::new(format!(
            "the tables of {} and {} have different columns, so they cannot be compared",
            self.event, other.event
        )))
    }
}

/// The sum of tables of one trigger.
pub struct Sum {
    /// The sum so far.
    pub table: Table,
    places: HashMap<Vec<Key>, usize>,
}

impl Sum {
    /// Returns a sum that begins with this table.
    pub fn of(table: &Table) -> Self {
        let mut sum = Self {
            table: table.without_rows(),
            places: HashMap::new(),
        };
        sum.add_rows(&table.rows);
        sum
    }

    /// Adds a table of a later epoch, or of another machine.
    pub fn add(&mut self, table: &Table) -> Result<()> {
        let sum = &mut self.table;
        sum.same_columns(table)?;
        if sum.rows.is_empty() {
            sum.keys.clone_from(&table.keys);
            sum.values.clone_from(&table.values);
        }
        sum.account.add(&table.account);
        sum.span = sum.span.zip(table.span).map(|(a, b)| {
            let last = if a.to >= b.to { a } else { b };
            Span {
                from: a.from.min(b.from),
                ..last
            }
        });
        self.add_rows(&table.rows);
        Ok(())
    }

    fn add_rows(&mut self, rows: &[Row]) {
        for row in rows {
            match self.places.get(&row.keys) {
                Some(&place) => {
                    self.table.rows[place].join(&self.table.values, row);
                }
                None => {
                    self.places.insert(row.keys.clone(), self.table.rows.len());
                    self.table.rows.push(row.clone());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{exemplify, table};
    use proptest::prelude::*;

    fn sorted(mut table: Table) -> Table {
        table.rows.sort_by(|a, b| a.keys.cmp(&b.keys));
        table
    }

    #[test]
    fn a_maximum_is_no_sum() {
        let mut first = table(&[(1, 10, 90), (1, 12, 7), (2, 3, 1)]);
        for (agg, numbers) in [
            (Agg::Max, [7, 9, 1]),
            (Agg::Min, [3, UNKNOWN, 2]),
            (Agg::Avg, [105, 205, 305]),
        ] {
            first.values.push(ValueColumn {
                agg,
                ..ValueColumn::of_sums("lat".into())
            });
            for (row, number) in first.rows.iter_mut().zip(numbers) {
                row.values.push(number);
            }
        }
        let values = |groups: Vec<Group>| {
            groups
                .into_iter()
                .map(|group| group.values[2..].to_vec())
                .collect::<Vec<_>>()
        };
        assert_eq!(first.of_measure(Agg::Max), Some(2));
        assert_eq!(values(first.groups()), [[9, 3, UNKNOWN], [1, 2, 305]]);
        assert_eq!(first.values[2].title(), "lat.max");

        let mut both = first.clone();
        both.merge(&first).unwrap();
        assert_eq!(values(both.groups()), [[9, 3, UNKNOWN], [1, 2, UNKNOWN]]);
        // The maximum since an earlier reading is unknown.
        assert_eq!(
            both.since(&first).unwrap().rows[0].values[2..],
            [UNKNOWN; 3]
        );
    }

    #[test]
    fn times_below_zero_are_left_out() {
        let mut all = table(&[(1, 3, 5), (1, 64, 1), (2, 64, 7)]);
        all.remove_negative_times();
        assert_eq!(all, table(&[(1, 3, 5)]));
    }

    fn rows() -> impl Strategy<Value = Vec<(i128, u32, u64)>> {
        prop::collection::vec((0..8i128, 1..12u32, 1..100u64), 0..40)
    }

    proptest! {
        #[test]
        fn what_came_after_and_what_was_before_is_all(a in rows(), b in rows()) {
            let before = table(&a);
            let after = table(&[a, b.clone()].concat());
            let between = after.since(&before).unwrap();
            prop_assert_eq!(sorted(between.clone()), table(&b));
            let mut sum = before;
            sum.merge(&between).unwrap();
            prop_assert_eq!(sorted(sum), after);
        }

        #[test]
        fn merging_knows_no_order(a in rows(), b in rows(), c in rows()) {
            let [a, b, c] = [table(&a), table(&b), table(&c)];
            let mut left = a.clone();
            left.merge(&b).unwrap();
            left.merge(&c).unwrap();
            let mut right = c;
            right.merge(&b).unwrap();
            right.merge(&a).unwrap();
            prop_assert_eq!(sorted(left), sorted(right));
        }

        #[test]
        fn groups_have_all_hits(a in rows()) {
            let table = table(&a);
            let groups = table.groups();
            let hits: u64 = groups.iter().map(|g| g.distribution.hits()).sum();
            prop_assert_eq!(hits, table.account.hits);
            for group in &groups {
                prop_assert_eq!(Number::from(group.distribution.hits()), group.values[0]);
                prop_assert!(group.distribution.buckets.is_sorted());
            }
        }
    }

    #[test]
    fn the_last_interval_is_the_measure() {
        let mut divided = table(&[(1, 3, 5), (2, 7, 5)]);
        divided.keys[0].kind = Kind::Log2 { scale: 0 };
        let interval = divided.rows[0].keys[1].clone();
        for row in &mut divided.rows {
            row.keys[0] = interval.clone();
        }
        assert_eq!(divided.interval_column(), Some(1));
        let names: Vec<&str> = divided.other_keys().map(|key| key.name.as_str()).collect();
        assert_eq!(names, ["pid"]);
        let groups = divided.groups();
        assert_eq!(groups.len(), 1);
        assert_eq!(groups[0].distribution.buckets.len(), 2);
    }

    #[test]
    fn a_cleared_table_is_no_later_reading() {
        let before = table(&[(1, 3, 5), (2, 3, 5)]);
        assert!(table(&[(1, 3, 4), (2, 3, 9)]).since(&before).is_err());
        assert!(table(&[(1, 3, 5)]).since(&before).is_err());
    }

    #[test]
    fn names_change_with_modules() {
        let named = |name: &str, rows: &[(i128, u32, u64)]| {
            let mut table = table(rows);
            table.keys[0].kind = Kind::Symbol;
            for row in &mut table.rows {
                if let Key::Number(n) = row.keys[0] {
                    row.keys[0] = Key::Symbol {
                        address: n as u64,
                        name: name.into(),
                    };
                }
            }
            table
        };
        let before = named("f [a]", &[(1, 3, 5), (2, 3, 2)]);
        let after = named("0x1", &[(1, 3, 9)]);
        let since = after.since(&before).unwrap();
        assert_eq!(since, named("0x1", &[(1, 3, 4)]));
    }

    #[test]
    fn tasks_of_one_name_are_one_row() {
        let mut all = table(&[(1, 3, 5), (2, 3, 7), (3, 3, 1), (2, 4, 1)]);
        all.keys[0].kind = Kind::Execname;
        for row in &mut all.rows {
            let Key::Number(pid) = row.keys[0] else {
                panic!("no number")
            };
            let comm = if pid < 3 { "a" } else { "b" }.to_owned();
            row.keys[0] = Key::Task { pid, comm };
        }
        all.name_tasks();
        let rows: Vec<_> = all
            .rows
            .iter()
            .map(|row| (row.keys[0].clone(), row.values[0]))
            .collect();
        let text = |name: &str| Key::Text(name.to_owned());
        assert_eq!(rows, [(text("a"), 12), (text("a"), 1), (text("b"), 1)]);
        assert_eq!(all.keys[0].kind, Kind::Text);
    }

    #[test]
    fn the_larger_exemplar_stays() {
        let of = |all: &[(Number, &str)]| {
            let mut one = table(&[(1, 10, 5), (1, 12, 1)]);
            exemplify(&mut one, all);
            one
        };
        let mut sum = Sum::of(&of(&[(1000, "a"), (3000, "b")]));
        sum.add(&of(&[(900, "c"), (4000, "d")])).unwrap();
        sum.add(&of(&[])).unwrap();
        let mut merged = of(&[]);
        merged.merge(&of(&[(1000, "a"), (4000, "d")])).unwrap();
        assert_eq!(sum.table.rows[0].exemplar, merged.rows[0].exemplar);
        let all = &sum.table.groups()[0].exemplars;
        let names = |hi| {
            let one = Exemplar::in_bucket(all, Bucket { lo: 0, hi })?;
            Some(
                one.named()
                    .map(|(name, value)| format!("{name} {value}"))
                    .collect::<Vec<_>>()
                    .join(", "),
            )
        };
        assert_eq!(names(999), None);
        assert_eq!(names(1000).as_deref(), Some("cpu 1, comm a"));
        assert_eq!(names(5000).as_deref(), Some("cpu 1, comm d"));
    }

    #[test]
    fn other_columns_are_another_table() {
        let some = table(&[(1, 3, 5)]);
        let mut other = table(&[(1, 3, 5)]);
        other.values.pop();
        assert!(some.clone().merge(&other).is_err());
        assert!(some.since(&other).is_err());
        let mut none = table(&[]);
        none.values.pop();
        assert!(some.since(&none).is_ok());
        none.merge(&some).unwrap();
        assert_eq!(none, some);
    }

    #[test]
    fn numbers_of_c_get_their_sign() {
        let mut table = table(&[(i128::from(-2i64 as u64), 1, 1), (7, 1, 1)]);
        table.signed(0);
        let keys: Vec<&Key> = table.rows.iter().map(|row| &row.keys[0]).collect();
        assert_eq!(keys, [&Key::Number(7), &Key::Number(-2)]);
    }
}
