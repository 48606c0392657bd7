// SPDX-License-Identifier: MIT OR Apache-2.0

//! Compares two recordings of several questions, and says the changes in sentences, the most expensive change first.
//!
//! A percentile has changed for sure if its bounds in the two recordings do not overlap. To exclude chance, each
//! recording is divided into parts, and all parts of one have to lie on the same side of all parts of the other one.
//! Without a change, all orders of the parts are equally likely, and only two of them are like this.

use std::collections::BTreeMap;
use std::io::Cursor;

use crate::diff;
use crate::error::{Error, Result};
use crate::model::{Bucket, Distribution, KeyColumn, Number, Sum, Table, Unit};
use crate::quantile::{quantile, Percent};
use crate::record::{incomplete, Header, Recording};
use crate::units::{self, Round};

/// The questions that `why` asks, in this order, until the budget is used up. The first key of a question names the
/// task or device that waits; a sentence may name the value of the second key that has most of the change.
pub const QUESTIONS: [&str; 9] = [
    "bio --disks",
    "fsync --by comm",
    "runq --by comm",
    "offcpu --state D --by comm",
    "tcp",
    "locks",
    "work",
    "softirq",
    "irq",
];

/// The smallest number of parts that a recording is divided into, if it has as many tables. The largest number is one
/// less than twice as many.
pub const PARTS: u32 = 12;

/// The smallest number of hits that a row must have in each recording to be compared.
const LEAST_HITS: u64 = 100;

/// The smallest number of orders in which the parts of both recordings can be, for a change not to be chance.
const ORDERS: u64 = 40_000;

/// The percentiles that are compared.
const PERCENTS: [Percent; 2] = [Percent::MEDIAN, Percent::TAIL];

/// The distribution for each value of the second key, by the value as it is shown.
type Shares = BTreeMap<String, Distribution>;

/// The rows of a table, by the value of their first key.
type Rows = BTreeMap<String, Shares>;

/// The answer of a recording to one question.
struct Answer {
    words: Vec<String>,
    whole: Sum,
    parts: Vec<Rows>,
}

impl Answer {
    /// Returns the answer in the tables of one trigger, if there are any.
    fn of(words: Vec<String>, tables: &[Table]) -> Result<Option<Self>> {
        let sum = |tables: &[Table]| -> Result<Option<Sum>> {
            let Some((first, others)) = tables.split_first() else {
                return Ok(None);
            };
            let mut sum = Sum::of(first);
            others.iter().try_for_each(|table| sum.add(table))?;
            Ok(Some(sum))
        };
        let each = (tables.len() / PARTS as usize).max(1);
        let mut parts = Vec::new();
        for part in tables.chunks(each) {
            parts.extend(sum(part)?.map(|sum| rows(&sum.table)));
        }
        Ok(sum(tables)?.map(|whole| Self {
            words,
            whole,
            parts,
        }))
    }

    /// Returns the question without its keys, which [`place`] puts into words.
    fn name(&self) -> String {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let words = words.split(|word| *word == "--by").next();
        units::plain(&words.unwrap_or_default().join(" "))
    }

    /// Returns a percentile of the row `key` in each part that has the row.
    fn in_parts(&self, key: &str, percent: Percent) -> Vec<Bucket> {
        let rows = self.parts.iter().filter_map(|rows| rows.get(key));
        rows.filter_map(|row| quantile(&whole(row), percent))
            .collect()
    }
}

/// A file with the recordings of several questions, one after the other.
pub struct Recorded {
    name: String,
    header: Header,
    answers: Vec<Answer>,
    /// The gaps in the recordings, in sentences.
    pub lacks: Vec<String>,
}

impl Recorded {
    /// Reads such a file from its bytes; `name` is for messages.
    pub fn of(name: &str, bytes: &[u8]) -> Result<Self> {
        let mut first: Option<Header> = None;
        let (mut answers, mut lacks) = (Vec::new(), Vec::new());
        for one in divided(bytes) {
            let mut recording = Recording::read(name, Box::new(Cursor::new(one.to_vec())))?;
            let header = recording.header.clone().ok_or_else(|| {
                error!("{name} does not say what was asked; it is to be what 'rhist record' wrote")
            })?;
            let question = units::plain(&header.question.join(" "));
            first.get_or_insert(header.clone());
            let tables: Result<Vec<Table>> = recording.by_ref().collect();
            let answer = tables.and_then(|mut tables| {
                tables.retain(|table| table.consumed);
                let trigger = tables.first().map(|table| table.trigger.clone());
                tables.retain(|table| Some(&table.trigger) == trigger.as_ref());
                Answer::of(header.question, &tables)
            });
            match answer {
                Ok(answer) => {
                    let sum = answer.as_ref().map(|answer| &answer.whole.table.account);
                    let said = [sum.and_then(incomplete), recording.cut().map(str::to_owned)];
                    lacks.extend(
                        said.iter()
                            .flatten()
                            .map(|what| format!("{question}: {what}")),
                    );
                    answers.extend(answer);
                }
                Err(error) => lacks.push(format!("{question} is left out: {error}")),
            }
        }
        let header = first.ok_or_else(|| error!("{name} is empty"))?;
        Ok(Self {
            name: units::plain(name),
            header,
            answers,
            lacks,
        })
    }

    /// Returns when the recordings ended, in nanoseconds of `CLOCK_REALTIME`, and how many seconds the longest one
    /// took.
    fn time(&self) -> (u64, f64) {
        let spans = self.answers.iter().filter_map(|one| one.whole.table.span);
        spans.fold((0, 0.0), |(real, seconds), span| {
            (real.max(span.real), seconds.max(span.seconds()))
        })
    }

    /// Returns a line with the name of the file, the time, the host, the kernel and the implementation that counted.
    fn said(&self) -> String {
        let (end, seconds) = self.time();
        let head = &self.header;
        format!(
            "{}: {seconds:.1} s until {} UTC, {}",
            self.name,
            units::time_of_day(end),
            units::plain(&[&*head.host, &head.kernel, &head.backend].join(", "))
        )
    }
}

/// Splits the bytes of a file into recordings; each begins with a line that says what was asked.
fn divided(bytes: &[u8]) -> Vec<&[u8]> {
    let mut all = Vec::new();
    let (mut begin, mut at) = (0, 0);
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        // The first line of a table begins like a header, too.
        let like = at > 0 && line.starts_with(b"{\"v\":");
        if like && serde_json::from_slice::<Header>(line).is_ok() {
            all.push(&bytes[begin..at]);
            begin = at;
        }
        at += line.len();
    }
    all.push(&bytes[begin..]);
    all
}

/// Returns the rows of a table, by the values of their keys as they are shown.
fn rows(table: &Table) -> Rows {
    let mut rows = Rows::new();
    for group in table.groups() {
        let mut keys = table.words_of(&group);
        let row = rows.entry(keys.next().unwrap_or_default()).or_default();
        let place = row.entry(keys.next().unwrap_or_default()).or_default();
        *place = Distribution::of([&*place, &group.distribution].into_iter());
    }
    rows
}

/// Returns the distribution of a row, with all values of its second key.
fn whole(row: &Shares) -> Distribution {
    Distribution::of(row.values())
}

/// Returns the least by which a percentile has changed, negative if it has become smaller; 0 if its bounds overlap, or
/// if the ends that are shown differ by less than a quarter.
fn least(before: Bucket, after: Bucket) -> Number {
    let shift = diff::shift(before, after);
    let (smaller, larger) = (before.hi.min(after.hi), before.hi.max(after.hi));
    match smaller * 5 <= larger * 4 {
        true if shift.lo > 0 => shift.lo,
        true if shift.hi < 0 => shift.hi,
        _ => 0,
    }
}

/// Returns whether all of `before` lie on the same side of all of `after`, and both are so many that this is not
/// chance.
fn are_apart(before: &[Bucket], after: &[Bucket]) -> bool {
    let below = |low: &[Bucket], high: &[Bucket]| {
        let most = low.iter().map(|bucket| bucket.hi).max();
        most.is_some_and(|most| high.iter().all(|bucket| bucket.lo > most))
    };
    // The number of ways to choose the places of `before` among all: a binomial coefficient.
    let (one, all) = (before.len() as u64, (before.len() + after.len()) as u64);
    let orders = (0..one).fold(1, |orders, i| orders * (all - i) / (i + 1));
    orders >= ORDERS && (below(before, after) || below(after, before))
}

/// Returns a key in words, as a sentence ends with it: " on sda", " for bash".
fn place(column: Option<&&KeyColumn>, key: &str) -> String {
    let of_task = ["comm", "pid", "tgid", "cgroup", "pod", "uid"];
    match column.map_or("", |column| column.name.as_str()) {
        "" => String::new(),
        "dev" => format!(" on {key}"),
        "rwbs" => format!(" of kind {key}"),
        name if of_task.iter().any(|end| name.ends_with(end)) => format!(" for {key}"),
        name => format!(" of {} {key}", units::text(name)),
    }
}

/// Returns in words which value of the second key has more than half of the hits above `before`, and which part; `None`
/// if no value has.
fn share(row: &Shares, before: Bucket, column: Option<&&KeyColumn>) -> Option<String> {
    column?;
    let above = |all: &Distribution| {
        let slow = all.buckets.iter().filter(|one| one.0.lo > before.hi);
        slow.map(|&(_, hits)| hits).sum::<u64>()
    };
    let all = above(&whole(row));
    let (key, most) = row
        .iter()
        .map(|(key, one)| (key, above(one)))
        .max_by_key(|&(_, most)| most)?;
    let much = units::percent(most, all);
    (most > all / 2).then(|| format!(", {much} of it{}", place(column, key)))
}

/// Adds the changes in the rows of one question, each with its rank, to `out`. Returns how many rows could be compared.
fn changes(before: &Answer, after: &Answer, out: &mut Vec<(Number, String)>) -> Result<usize> {
    let (then, table) = (&before.whole.table, &after.whole.table);
    diff::comparable(then, table)?;
    let unit = table.interval().and_then(|column| column.unit);
    let ns = match unit {
        Some(Unit::Ns) => 1,
        Some(Unit::Us) => 1000,
        _ => return Err(Error::new("it has no times")),
    };
    let value = |number: Number, round| units::value(number, unit, round);
    let others: Vec<&KeyColumn> = table.other_keys().collect();
    let then = rows(then);
    let mut compared = 0;
    for (key, now) in &rows(table) {
        let Some(then) = then.get(key).map(whole) else {
            continue;
        };
        let all = whole(now);
        let hits = all.hits();
        // Changes of the tool's own tasks are not reported.
        let own = key == "rhist" && others.first().is_some_and(|by| by.name.ends_with("comm"));
        if own || hits.min(then.hits()) < LEAST_HITS {
            continue;
        }
        compared += 1;
        let shifts = PERCENTS.iter().filter_map(|&percent| {
            let (from, to) = (quantile(&then, percent)?, quantile(&all, percent)?);
            let parts = [before, after].map(|answer| answer.in_parts(key, percent));
            let least = least(from, to);
            let sure = least != 0 && are_apart(&parts[0], &parts[1]);
            sure.then_some((least, percent, from, to))
        });
        let largest = shifts.max_by_key(|(least, ..)| least.abs());
        let Some((least, percent, from, to)) = largest else {
            continue;
        };
        let (more, share) = match least > 0 {
            true => ("longer", share(now, from, others.get(1))),
            false => ("shorter", None),
        };
        let text = format!(
            "{} p{percent} {} -> {}{}: at least {} {more}, {} hits{}",
            after.name(),
            value(from.hi, Round::Up),
            value(to.hi, Round::Up),
            place(others.first(), key),
            value(least.abs(), Round::Down),
            units::count(hits.into()),
            share.unwrap_or_default()
        );
        let cost = (least.abs() * ns).saturating_mul(hits.into());
        out.push((cost, text));
    }
    Ok(compared)
}

/// Returns the changes, in at most so many sentences.
pub fn compare(before: &Recorded, after: &Recorded, top: usize) -> String {
    let hours = (after.time().0 as f64 - before.time().0 as f64) / 3600e9;
    let mut lines = vec![
        format!("before: {}", before.said()),
        format!("now: {}, {hours:.1} hours later", after.said()),
    ];
    let (then, now) = (&before.header, &after.header);
    let others = [
        ("host", then.host != now.host),
        ("kernel", then.kernel != now.kernel),
        ("implementation", then.backend != now.backend),
    ];
    let others: Vec<&str> = others.iter().filter(|one| one.1).map(|one| one.0).collect();
    if !others.is_empty() {
        let which = others.join(" and another ");
        lines.push(format!("note: another {which}, which may be the reason"));
    }
    let (mut found, mut passed) = (Vec::new(), Vec::new());
    let (mut questions, mut compared) = (0, 0);
    let find =
        |all: &'_ Recorded, words: &[String]| all.answers.iter().position(|one| one.words == words);
    for now in &after.answers {
        let both = match find(before, &now.words) {
            Some(i) => changes(&before.answers[i], now, &mut found),
            None => Err(error!("not in {}", before.name)),
        };
        match both {
            Ok(rows) => (questions, compared) = (questions + 1, compared + rows),
            Err(error) => passed.push(format!("not compared: {}: {error}", now.name())),
        }
    }
    let gone = before
        .answers
        .iter()
        .filter(|then| find(after, &then.words).is_none());
    passed.extend(gone.map(|then| format!("not compared: {}: not in {}", then.name(), after.name)));
    found.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
    lines.push(String::new());
    let numbered = (1..).zip(found.iter().take(top));
    lines.extend(numbered.map(|(number, (_, text))| format!("{number:>2}. {text}")));
    if let Some(more) = found.len().checked_sub(top).filter(|&more| more > 0) {
        lines.push(format!("and {more} more; --top shows them"));
    }
    let rows = match found.len() {
        0 => "nothing has".to_owned(),
        1 => "1 row has".to_owned(),
        many => format!("{many} rows have"),
    };
    let plural = if questions == 1 { "" } else { "s" };
    lines.push(format!(
        "{rows} changed for sure, of {compared} rows with {LEAST_HITS} hits and more of {questions} question{plural}"
    ));
    lines.extend(passed);
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Key, Kind, Row, Span, ValueColumn};
    use crate::record::Recorder;
    use crate::testing::table;
    use proptest::prelude::*;
    use std::sync::LazyLock;

    /// A generator of random numbers, which are the same for the same seed.
    struct Chance(u64);

    impl Chance {
        /// Returns a random number from 0 up to 1.
        fn next(&mut self) -> f64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) as f64 / (1u64 << 53) as f64
        }

        /// Returns a random number, nearly normally distributed, with mean 0 and deviation 1.
        fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.next()).sum::<f64>() - 6.0
        }
    }

    /// The load of a row: the index of its question, its keys, its hits in a part, and its median in nanoseconds.
    type Load = (usize, &'static [&'static str], u32, f64);

    const LOADS: [Load; 13] = [
        (0, &["sda", "R"], 60, 300e3),
        (0, &["sda", "WS"], 300, 900e3),
        (0, &["dm-0", "W"], 20, 2e6),
        (1, &["mysqld"], 200, 4e6),
        (1, &["sshd"], 3, 3e6),
        (2, &["mysqld"], 400, 8e3),
        (2, &["nginx"], 250, 5e3),
        (2, &["cron"], 9, 20e3),
        (3, &["kworker"], 40, 1e6),
        (5, &["0xffff888000000000"], 30, 2e3),
        (7, &["NET_RX"], 250, 15e3),
        (8, &["24"], 250, 3e3),
        (2, &["rhist"], 60, 9e3),
    ];

    /// A change of a row: the index of its load, the share of its hits that change, and how many times as long they
    /// take.
    type Injected = (usize, f64, f64);

    /// Returns the interval of a number in a column with `.log2=scale`.
    fn interval(number: f64, scale: u8) -> Key {
        let parts = f64::from(1u32 << scale);
        let index = (number.log2() * parts).ceil();
        let end = |index: f64| (index / parts).exp2() as Number;
        Key::Bucket {
            bucket: Bucket {
                lo: end(index - 1.0) + 1,
                hi: end(index),
            },
            index: Some(index as i64),
        }
    }

    /// Makes a recording of a minute. The load of a row varies: it is heavier in some successive parts than in others.
    fn minute(seed: u64, scale: u8, injected: &[Injected]) -> Vec<u8> {
        let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut heavier = [0.0; LOADS.len()];
        let mut all = QUESTIONS.map(|question| {
            let words = question.split(' ').map(str::to_owned).collect();
            let mut header = Header::new(words, String::new(), "module".into(), "7.2".into());
            header.host = "web1".into();
            let mut recorder = Recorder(Vec::new());
            recorder.begin(&header).unwrap();
            recorder
        });
        for part in 0..u64::from(PARTS) {
            for (question, recorder) in all.iter_mut().enumerate() {
                let mut sums: BTreeMap<Vec<Key>, u64> = BTreeMap::new();
                let loads = LOADS.iter().enumerate();
                for (i, &(_, keys, hits, median)) in loads.filter(|(_, load)| load.0 == question) {
                    heavier[i] = 0.6 * heavier[i] + 0.1 * chance.normal();
                    for _ in 0..hits {
                        let wide = (0.5 * chance.normal() + heavier[i]).exp();
                        let mut slow = 1.0;
                        for &(_, part, times) in injected.iter().filter(|one| one.0 == i) {
                            if chance.next() < part {
                                slow = times;
                            }
                        }
                        let mut row: Vec<Key> =
                            keys.iter().map(|&key| Key::Text(key.into())).collect();
                        row.push(interval(median * wide * slow, scale));
                        *sums.entry(row).or_default() += 1;
                    }
                }
                let mut one = table(&[]);
                let names: &[&str] = match question {
                    0 => &["dev", "rwbs"],
                    1..=3 => &["next_comm"],
                    4 => &[],
                    5 => &["lock_addr"],
                    7 => &["vec"],
                    _ => &["irq"],
                };
                let names = names.iter().map(|&name| KeyColumn {
                    name: name.into(),
                    kind: Kind::Text,
                    unit: None,
                });
                let lat = KeyColumn {
                    kind: Kind::Log2 { scale },
                    ..one.keys[1].clone()
                };
                one.keys = names.chain([lat]).collect();
                one.values = vec![ValueColumn::of_sums("hitcount".into())];
                one.account.hits = sums.values().sum();
                let row = |(keys, hits): (Vec<Key>, u64)| Row {
                    keys,
                    exemplar: None,
                    values: vec![hits.into()],
                };
                one.rows = sums.into_iter().map(row).collect();
                one.span = Some(Span {
                    epoch: part + 1,
                    from: part * 5_000_000_000,
                    to: (part + 1) * 5_000_000_000,
                    real: 1_700_000_000_000_000_000 + seed * 3_600_000_000_000,
                });
                one.account.losses = Some(Default::default());
                recorder.table(&one).unwrap();
            }
        }
        all.into_iter().flat_map(|recorder| recorder.0).collect()
    }

    fn read(bytes: &[u8]) -> Recorded {
        let recorded = Recorded::of("x.jsonl", bytes).unwrap();
        assert_eq!(recorded.lacks, [""; 0]);
        recorded
    }

    /// Returns the sentences of a comparison, without their numbers.
    fn sentences(before: &[u8], after: &[u8]) -> Vec<String> {
        let said = compare(&read(before), &read(after), 100);
        let sentence = |line: &str| {
            let (number, text) = line.split_once(". ")?;
            let is_number = number.trim_start().parse::<u32>().is_ok();
            is_number.then(|| text.to_owned())
        };
        said.lines().filter_map(sentence).collect()
    }

    #[test]
    fn one_load_has_not_changed() {
        for scale in [0, 3] {
            let pairs = (1..=20).map(|seed| {
                let [before, after] = [seed, seed + 100].map(|seed| minute(seed, scale, &[]));
                sentences(&before, &after)
            });
            let said: Vec<String> = pairs.flatten().collect();
            assert!(said.len() <= 1, "{said:?}");
        }
    }

    #[test]
    fn each_injected_change_ranks_first() {
        let injected: [(Injected, &str); 10] = [
            (
                (1, 1.0, 3.0),
                "bio --disks p99 .. on sda: .. longer, .. of it of kind WS",
            ),
            (
                (1, 0.1, 12.0),
                "bio --disks p99 .. on sda: .. longer, .. of it of kind WS",
            ),
            (
                (2, 1.0, 4.0),
                "bio --disks p99 .. on dm-0: .. longer, .. of it of kind W",
            ),
            ((3, 0.1, 9.0), "fsync p99 .. for mysqld: .. longer"),
            ((3, 1.0, 0.2), "fsync p99 .. for mysqld: .. shorter"),
            ((5, 1.0, 5.0), "runq p99 .. for mysqld: .. longer"),
            ((6, 0.1, 40.0), "runq p99 .. for nginx: .. longer"),
            (
                (8, 1.0, 4.0),
                "offcpu --state D p99 .. for kworker: .. longer",
            ),
            (
                (9, 1.0, 30.0),
                "locks p99 .. of lock_addr 0xffff888000000000: .. longer",
            ),
            ((10, 0.1, 20.0), "softirq p99 .. of vec NET_RX: .. longer"),
        ];
        for (seed, (injected, wanted)) in (1..).zip(injected) {
            let before = minute(seed, 3, &[]);
            // A second, smaller change is reported after the large one.
            let after = minute(seed + 100, 3, &[(11, 1.0, 2.0), injected]);
            let said = sentences(&before, &after);
            let first = said.first().map_or("", String::as_str);
            for part in wanted.split(" .. ") {
                assert!(first.contains(part), "{wanted}: {said:?}");
            }
            let second = said.get(1).map_or("", String::as_str);
            assert!(second.starts_with("irq p"), "{said:?}");
        }
    }

    #[test]
    fn what_is_powers_of_two_has_changed_by_more() {
        let said = sentences(&minute(1, 0, &[]), &minute(101, 0, &[(3, 1.0, 8.0)]));
        assert_eq!(said.len(), 1);
        assert!(said[0].starts_with("fsync p99 "), "{said:?}");
    }

    #[test]
    fn a_shift_is_not_chance() {
        let at = |lo: Number| Bucket { lo, hi: lo + 9 };
        let all = |from: Number, parts: usize| vec![at(from); parts];
        assert!(are_apart(&all(0, 12), &all(10, 12)));
        assert!(are_apart(&all(10, 12), &all(0, 12)));
        assert!(!are_apart(&all(0, 12), &all(9, 12)));
        assert!(!are_apart(&[all(0, 11), all(10, 1)].concat(), &all(10, 12)));
        // With six and twelve parts, the order may be chance.
        assert!(!are_apart(&all(0, 6), &all(10, 12)));
        assert!(!are_apart(&[], &all(10, 12)));
        assert_eq!(least(at(100), at(130)), 21);
        assert_eq!(least(at(130), at(100)), -21);
        assert_eq!(least(at(100), at(109)), 0);
        assert_eq!(least(at(1000), at(1100)), 0);
    }

    #[test]
    fn what_differs_besides_is_said() {
        let before = minute(1, 3, &[]);
        let text = String::from_utf8(minute(2, 3, &[])).unwrap();
        let other = text.replace("web1", "db7").replace("\"7.2\"", "\"6.12\"");
        let said = compare(&read(&before), &read(other.as_bytes()), 10);
        assert!(
            said.contains("note: another host and another kernel,"),
            "{said}"
        );
        assert!(said.contains("nothing has changed for sure, of "), "{said}");
        assert!(said.contains("1.0 hours later"), "{said}");
        let (_, fewer) = text.split_at(text.rfind("{\"v\":1,\"type\":\"rhist\"").unwrap());
        let said = compare(&read(&before), &read(fewer.as_bytes()), 10);
        assert!(
            said.contains("not compared: fsync: not in x.jsonl"),
            "{said}"
        );
        let keys = text.replace("\"rwbs\"", "\"cmd\"");
        let said = compare(&read(&before), &read(keys.as_bytes()), 10);
        assert!(
            said.contains("not compared: bio --disks: the two have different keys"),
            "{said}"
        );
    }

    #[test]
    fn few_hits_say_nothing() {
        // Nothing is said of sshd, which has 36 hits, and of rhist, which is the tool itself, though they became ten
        // times as slow.
        let said = sentences(
            &minute(1, 3, &[]),
            &minute(101, 3, &[(4, 1.0, 10.0), (12, 1.0, 10.0)]),
        );
        assert_eq!(said, [""; 0]);
    }

    #[test]
    fn many_tables_are_few_parts() {
        let text = minute(1, 3, &[]);
        let one = divided(&text)[1];
        let (header, tables) = one.split_at(one.iter().position(|&b| b == b'\n').unwrap() + 1);
        for times in [1, 2, 3, 7] {
            let answers = read(&[header, &tables.repeat(times)].concat()).answers;
            let parts = answers[0].parts.len();
            assert!((12..24).contains(&parts), "{parts} for {times}");
            let hits = |row: &Shares| whole(row).hits();
            let of_parts = answers[0].parts.iter().flat_map(|rows| rows.values());
            let all = answers[0].whole.table.account.hits;
            assert_eq!(of_parts.map(hits).sum::<u64>(), all);
        }
    }

    #[test]
    fn another_version_is_refused() {
        let newer = String::from_utf8(minute(1, 3, &[]))
            .unwrap()
            .replacen("{\"v\":1", "{\"v\":2", 1);
        let error = Recorded::of("x.jsonl", newer.as_bytes()).err().unwrap();
        assert!(error.to_string().contains("needs a newer rhist"), "{error}");
        for (text, says) in [("", "is empty"), ("hello\n", "does not say what was asked")] {
            let error = Recorded::of("x.jsonl", text.as_bytes()).err().unwrap();
            assert!(error.to_string().contains(says), "{error}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        /// A recording with any damage is read or refused, and no message commands a terminal.
        #[test]
        fn damage_is_survived(
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..3), 1..20),
            swap in any::<bool>(),
        ) {
            static GOOD: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| {
                let two = |all: Vec<u8>| divided(&all)[..2].concat();
                [two(minute(1, 3, &[])), two(minute(101, 3, &[(3, 1.0, 8.0)]))]
            });
            let mut bytes = GOOD[1].clone();
            for (at, byte, how) in damage {
                let at = at.index(bytes.len().max(1)).min(bytes.len());
                let end = |length: u8| (at + usize::from(length)).min(bytes.len());
                match how {
                    0 => drop(bytes.splice(at..end(1), [byte])),
                    // Digits become larger ones, so numbers stay numbers.
                    1 => {
                        let digits = bytes[at..].iter().position(u8::is_ascii_digit);
                        let at = at + digits.unwrap_or_default();
                        bytes.splice(at..at, vec![b'0' + byte % 10; usize::from(byte % 20)]);
                    }
                    _ => drop(bytes.drain(at..end(byte))),
                }
            }
            let good = Recorded::of("x.jsonl", &GOOD[0]).unwrap();
            if let Ok(bad) = Recorded::of("x.jsonl", &bytes) {
                let pair = if swap { [&bad, &good] } else { [&good, &bad] };
                let said = compare(pair[0], pair[1], 10) + &bad.lacks.join("\n");
                prop_assert!(!said.contains(|c: char| c.is_control() && c != '\n'), "{said:?}");
            }
        }
    }
}
