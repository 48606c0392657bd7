// SPDX-License-Identifier: MIT OR Apache-2.0

//! Recordings: the JSON lines of `hist_pipe` without changes, after one line with the question.
//!
//! A program that reads `hist_pipe` can read a recording: it skips the first line, whose type it does not know. The
//! output of `hist_pipe` or `hist_json` that was saved by hand is also a recording, of an unknown question.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Write};
use std::path::Path;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::grid::{slots, Epoch, Slot};
use crate::model::{Account, Key, Kind, Number, Row, Sum, Table, Unit};
use crate::output::Progress;
use crate::parse::json;
use crate::units;

/// The first line of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    v: u64,
    #[serde(rename = "type")]
    kind: HeaderKind,
    /// The words of the question, as typed after `rhist record`: the first word is the recipe.
    #[serde(default)]
    pub question: Vec<String>,
    /// The title for pictures of the recording.
    #[serde(default)]
    pub title: String,
    /// The backend that counted: `module` or `c`.
    #[serde(default)]
    pub backend: String,
    /// The release of the kernel.
    #[serde(default)]
    pub kernel: String,
    /// The name of the machine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// Units of columns, by name, that the question tells but the kernel does not.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub units: BTreeMap<String, String>,
    /// The names of numbers, by the name of their column.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub names: BTreeMap<String, BTreeMap<i64, String>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum HeaderKind {
    #[default]
    #[serde(rename = "rhist")]
    Rhist,
}

impl Header {
    /// Returns the first line of a new recording.
    pub fn new(question: Vec<String>, title: String, backend: String, kernel: String) -> Self {
        Self {
            v: json::VERSION,
            question,
            title,
            backend,
            kernel,
            ..Self::default()
        }
    }

    /// Stores facts about a table that the question has but the kernel's lines lack: units, and names of numbers.
    pub fn know(&mut self, table: &Table, names: &[(String, Vec<(Number, String)>)]) {
        let keys = table.keys.iter().map(|column| (&column.name, column.unit));
        let values = table
            .values
            .iter()
            .map(|column| (&column.name, column.unit));
        let units = keys
            .chain(values)
            .filter_map(|(name, unit)| Some((name.clone(), unit?.name().to_owned())));
        self.units = units.collect();
        let numbers = |names: &[(Number, String)]| {
            let short = names
                .iter()
                .filter_map(|(number, name)| Some((i64::try_from(*number).ok()?, name.clone())));
            short.collect()
        };
        self.names = names
            .iter()
            .map(|(column, names)| (column.clone(), numbers(names)))
            .collect();
    }

    /// Adds to a table the units and names that the question has but the kernel's lines lack.
    pub fn complete(&self, table: &mut Table) {
        let unit = |name: &str| self.units.get(name).and_then(|unit| Unit::named(unit));
        for column in &mut table.values {
            column.unit = column.unit.or(unit(&column.name));
        }
        for (i, column) in table.keys.iter_mut().enumerate() {
            column.unit = column.unit.or(unit(&column.name));
            let Some(names) = self
                .names
                .get(&column.name)
                .filter(|_| column.kind == Kind::Number)
            else {
                continue;
            };
            for key in table.rows.iter_mut().filter_map(|row| row.keys.get_mut(i)) {
                let Key::Number(number) = key else { continue };
                if let Some(name) = i64::try_from(*number)
                    .ok()
                    .and_then(|number| names.get(&number))
                {
                    *key = Key::Text(name.clone());
                }
            }
        }
        table.remove_negative_times();
    }
}

/// Writes a recording.
pub struct Recorder<W>(pub W);

impl<W: Write> Recorder<W> {
    /// Begins the recording with its first line.
    pub fn begin(&mut self, header: &Header) -> io::Result<()> {
        self.lines(&[&serde_json::to_vec(header)?[..], b"\n"].concat())
    }

    /// Adds lines that were read from `hist_pipe` at once.
    pub fn lines(&mut self, lines: &[u8]) -> io::Result<()> {
        self.0.write_all(lines)?;
        self.0.flush()
    }

    /// Adds a table that was not read as JSON.
    pub fn table(&mut self, table: &Table) -> io::Result<()> {
        json::write(table, &mut self.0)?;
        self.0.flush()
    }
}

/// How much of a recording was read.
#[derive(Debug, Default)]
struct Place {
    bytes: Cell<u64>,
    ended: Cell<bool>,
}

impl Place {
    fn add(&self, bytes: usize) {
        self.bytes.set(self.bytes.get() + bytes as u64);
    }
}

/// A reader that counts the bytes read.
struct Watched<R> {
    inner: R,
    place: Rc<Place>,
}

impl<R: BufRead> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.place.ended.set(read == 0 && !buffer.is_empty());
        self.place.add(read);
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Watched<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let buffer = self.inner.fill_buf()?;
        self.place.ended.set(buffer.is_empty());
        Ok(buffer)
    }

    fn consume(&mut self, amount: usize) {
        self.place.add(amount);
        self.inner.consume(amount);
    }
}

/// The input of a recording: bytes that were read already, and the rest.
type Source = io::Chain<Cursor<Vec<u8>>, Box<dyn BufRead>>;

/// Reads a recording, table by table.
///
/// The recording may be cut, as its writer was killed; [`Recording::cut`] tells that at the end.
pub struct Recording {
    /// The first line, if the recording has one.
    pub header: Option<Header>,
    name: String,
    tables: json::Reader<Watched<Source>>,
    place: Rc<Place>,
    length: Option<u64>,
    progress: Option<Progress>,
    whole: usize,
    cut: Option<String>,
}

impl Recording {
    /// Opens this file, or the standard input for `-`.
    pub fn open(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Self::read("standard input", Box::new(BufReader::new(io::stdin())));
        }
        let file = File::open(path).map_err(|e| Error::file("open", path, &e))?;
        let about = file.metadata().ok().filter(|about| about.is_file());
        let name = path.display().to_string();
        Ok(Self {
            length: about.map(|about| about.len()),
            ..Self::read(&name, Box::new(BufReader::new(file)))?
        })
    }

    /// Shows from now on how much was read, if `wanted`.
    pub fn with_progress(mut self, wanted: bool) -> Self {
        self.progress = Progress::new(&self.name, self.length).filter(|_| wanted);
        self
    }

    /// Reads a recording from `source`; `name` is for messages.
    pub fn read(name: &str, mut source: Box<dyn BufRead>) -> Result<Self> {
        let mut first = Vec::new();
        json::read_line(&mut source, &mut first)
            .map_err(|e| Error::file("read", Path::new(name), &e))?;
        if first.is_empty() {
            return Err(error!("{name} is empty, so there is nothing to show"));
        }
        if let Some(what) = json::is_newer(&first) {
            return Err(error!("{name} is a recording of {what}"));
        }
        let mut header = serde_json::from_slice::<Header>(&first).ok();
        if let Some(header) = &mut header {
            header.title = units::plain(&header.title);
        }
        let place = Rc::new(Place::default());
        let watched = Watched {
            // The first line is read again, so that errors count lines from the beginning.
            inner: Cursor::new(first).chain(source),
            place: Rc::clone(&place),
        };
        Ok(Self {
            header,
            name: units::plain(name),
            tables: json::Reader::new(watched),
            place,
            length: None,
            progress: None,
            whole: 0,
            cut: None,
        })
    }

    /// Returns where the recording is cut, and which hits are missing; known once all was read.
    pub fn cut(&self) -> Option<&str> {
        self.cut.as_deref()
    }

    /// Returns the question in one line.
    pub fn title(&self) -> &str {
        match &self.header {
            Some(header) if !header.title.is_empty() => &header.title,
            _ => &self.name,
        }
    }
}

impl Iterator for Recording {
    type Item = Result<Table>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.cut.is_some() {
            return None;
        }
        let next = self.tables.next();
        match &mut self.progress {
            Some(progress) if matches!(next, Some(Ok(_))) => progress.at(self.place.bytes.get()),
            // Cleared, as messages about the end may follow.
            progress => *progress = None,
        }
        match next? {
            Ok(mut table) => {
                self.whole += 1;
                if let Some(header) = &self.header {
                    header.complete(&mut table);
                }
                Some(Ok(table))
            }
            Err(_) if self.place.ended.get() => {
                self.cut = Some(format!(
                    "{} is cut in the middle of a table, as if its writer was killed or the disk full; the {} whole \
                     tables before it are used",
                    self.name, self.whole
                ));
                None
            }
            Err(error) => Some(Err(error!("{}: {error}", self.name))),
        }
    }
}

/// All epochs of one trigger in a recording.
pub struct Series {
    /// The sum of the epochs.
    pub sum: Sum,
    /// The epochs, in order.
    pub epochs: Vec<Epoch>,
}

impl Series {
    /// Returns the hits of all rows.
    pub fn hits(&self) -> u64 {
        let table = &self.sum.table;
        let hits = table.rows.iter().map(|row| table.hits_of(&row.values));
        hits.fold(0, u64::saturating_add)
    }

    /// Returns all hits by interval.
    pub fn slots(&self) -> Vec<(Slot, u64)> {
        slots(&self.sum.table)
    }

    /// Returns the duration in seconds; `None` if it is unknown.
    pub fn seconds(&self) -> Option<f64> {
        let span = self.sum.table.span?;
        (span.to > span.from).then(|| span.seconds())
    }
}

/// A recording that was read to its end.
pub struct Loaded {
    /// The name of the recording's file.
    pub name: String,
    /// The question in one line.
    pub title: String,
    /// The counts of the triggers, in the order of their first tables.
    pub series: Vec<Series>,
    /// Where the recording is cut, and which hits are missing.
    pub cut: Option<String>,
}

impl Loaded {
    /// Reads a recording to its end, but keeps only the rows for which `wanted` is true.
    pub fn of(mut recording: Recording, wanted: impl Fn(&Table, &Row) -> bool) -> Result<Self> {
        let mut series: Vec<Series> = Vec::new();
        for table in &mut recording {
            let mut table = table?;
            // A table whose rows were not consumed has none in the recording: other triggers read its variables.
            if !table.consumed {
                continue;
            }
            let mut rows = std::mem::take(&mut table.rows);
            rows.retain(|row| wanted(&table, row));
            table.rows = rows;
            let epoch = Epoch::of(&table);
            let same = |series: &&mut Series| {
                let first = &series.sum.table;
                first.event == table.event && first.trigger == table.trigger
            };
            match series.iter_mut().find(same) {
                Some(series) => {
                    series.sum.add(&table)?;
                    series.epochs.push(epoch);
                }
                None => series.push(Series {
                    sum: Sum::of(&table),
                    epochs: vec![epoch],
                }),
            }
        }
        if series.is_empty() && recording.cut().is_none() {
            return Err(error!(
                "{} has no table; it is to be what 'rhist record' or a reader of hist_pipe wrote",
                recording.name
            ));
        }
        Ok(Self {
            title: recording.title().to_owned(),
            name: recording.name,
            series,
            cut: recording.cut,
        })
    }

    /// Returns the series with this number, counted from 1; without a number, the first one that has rows.
    pub fn series(&self, number: Option<usize>) -> Result<&Series> {
        let found = match number {
            Some(number) => number.checked_sub(1).and_then(|i| self.series.get(i)),
            None => self
                .series
                .iter()
                .find(|series| !series.sum.table.rows.is_empty())
                .or(self.series.first()),
        };
        found.ok_or_else(|| {
            let triggers = |(i, series): (usize, &Series)| {
                format!("\n  {}: {}", i + 1, series.sum.table.trigger)
            };
            Error::new(match self.series.len() {
                0 => "there is no whole table in the recording".to_owned(),
                _ => format!(
                    "there is no such table in the recording; say --table with one of{}",
                    self.series
                        .iter()
                        .enumerate()
                        .map(triggers)
                        .collect::<String>()
                ),
            })
        })
    }
}

/// Returns, in words, which hits an account lacks, and a remedy; `None` if it is complete.
pub fn incomplete(account: &Account) -> Option<String> {
    let losses = account.losses.unwrap_or_default();
    let reasons = [
        (
            account.full,
            "hits of new keys, as the table was full; record with a larger --size",
        ),
        (
            losses.nested,
            "hits that came while others were under way; trigger fewer events of events",
        ),
        (
            losses.saves,
            "times what save() keeps, for lack of room; record with a larger --size",
        ),
        (
            losses.traces,
            "records of synthetic events; make the trace buffer larger",
        ),
        (
            losses.expired.unwrap_or_default(),
            "times of what had no end, as its start was forgotten",
        ),
    ];
    let said: Vec<String> = reasons
        .iter()
        .filter(|&&(count, _)| count > 0)
        .map(|(count, what)| format!("{} {what}", units::count((*count).into())))
        .collect();
    (!said.is_empty()).then(|| format!("lost: {}", said.join("; ")))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::model::Span;
    use crate::testing::table;
    use proptest::prelude::*;

    /// Returns a recording of three epochs of a trigger.
    pub(crate) fn three_epochs() -> Vec<u8> {
        let header = Header::new(
            vec!["runq".into(), "1".into()],
            "How long do tasks wait for a CPU".into(),
            "module".into(),
            "7.2.13".into(),
        );
        let mut out = Vec::new();
        let mut recorder = Recorder(&mut out);
        recorder.begin(&header).unwrap();
        for (epoch, rows) in [
            (1, vec![(7, 10, 100), (7, 11, 50), (8, 20, 1)]),
            (2, vec![(7, 10, 90), (7, 12, 5)]),
            (3, vec![(7, 10, 80), (9, 3, 2)]),
        ] {
            let mut table = table(&rows);
            table.span = Some(Span {
                epoch,
                from: epoch * 1_000_000_000,
                to: (epoch + 1) * 1_000_000_000,
                real: 1_700_000_000_000_000_000 + epoch * 1_000_000_000,
            });
            table.account.losses = Some(Default::default());
            recorder.table(&table).unwrap();
        }
        out
    }

    pub(crate) fn open(bytes: &[u8]) -> Result<Recording> {
        Recording::read("x.jsonl", Box::new(Cursor::new(bytes.to_vec())))
    }

    pub(crate) fn load(bytes: &[u8]) -> Result<Loaded> {
        Loaded::of(open(bytes)?, |_, _| true)
    }

    #[test]
    fn what_is_recorded_is_read() {
        let recording = open(&three_epochs()).unwrap();
        let header = recording.header.clone().unwrap();
        assert_eq!(header.question, ["runq", "1"]);
        assert_eq!(header.kernel, "7.2.13");
        let loaded = load(&three_epochs()).unwrap();
        assert_eq!(loaded.title, "How long do tasks wait for a CPU");
        assert_eq!(loaded.cut, None);
        let series = loaded.series(None).unwrap();
        assert_eq!(series.epochs.len(), 3);
        assert_eq!(series.seconds(), Some(3.0));
        assert_eq!(series.sum.table.account.hits, 328);
        let hits: u64 = series.slots().iter().map(|&(_, hits)| hits).sum();
        assert_eq!(hits, 328);
        assert!(loaded.series(Some(2)).is_err());
        assert!(loaded.series(Some(0)).is_err());
    }

    #[test]
    fn what_hist_pipe_says_is_a_recording() {
        let all = three_epochs();
        let first = all.iter().position(|&b| b == b'\n').unwrap();
        let loaded = load(&all[first + 1..]).unwrap();
        assert_eq!(loaded.series[0].epochs.len(), 3);
        assert_eq!(loaded.title, "x.jsonl");
    }

    #[test]
    fn what_is_no_recording_is_refused() {
        let said = |bytes: &[u8]| load(bytes).err().unwrap().to_string();
        assert!(said(b"").contains("is empty"));
        assert!(said(b"hello\nworld\n").contains("line 1"));
        assert!(said(b"{}\n").contains("x.jsonl"));
        // A newer version may have other members.
        for newer in [
            "{\"v\":9,\"type\":\"rhist\"}",
            "{\"v\":9,\"kind\":5}",
            "{\"v\":2,\"type\":\"hist\"}",
        ] {
            let error = said(format!("{newer}\n").as_bytes());
            assert!(error.contains("newer rhist"), "{error}");
        }
        let lines =
            b"{\"v\":1,\"type\":\"rhist\"}\n{\"v\":2,\"type\":\"hist\",\"event\":\"a:b\"}\n";
        assert!(
            said(lines).contains("line 2 is of version 2"),
            "{}",
            said(lines)
        );
        assert!(said(b"{\"v\":1,\"type\":\"rhist\"}\n").contains("no table"));
    }

    #[test]
    fn lines_without_end_are_refused() {
        let zeros = Box::new(BufReader::new(io::repeat(0)));
        let error = Recording::read("/dev/zero", zeros).err().unwrap();
        assert!(error.to_string().contains("longer than 16 MiB"), "{error}");
    }

    #[test]
    fn what_the_question_knows_is_in_the_first_line() {
        let header = "{\"v\":1,\"type\":\"rhist\",\"units\":{\"lat\":\"us\",\"pid\":\"bytes\"},\
                      \"names\":{\"pid\":{\"7\":\"seven\"}}}\n";
        let text = String::from_utf8(three_epochs()).unwrap();
        let (_, lines) = text.split_once('\n').unwrap();
        let loaded = load([header, lines].concat().as_bytes()).unwrap();
        let table = &loaded.series[0].sum.table;
        // Facts in the kernel's lines take precedence over the question's.
        assert_eq!(table.keys[1].unit, Some(Unit::Ns));
        assert_eq!(table.keys[0].unit, Some(Unit::Bytes));
        assert!(table
            .rows
            .iter()
            .any(|row| row.keys[0] == Key::Text("seven".into())));
        assert!(table.rows.iter().any(|row| row.keys[0] == Key::Number(8)));
    }

    #[test]
    fn a_wrong_line_in_the_middle_is_no_cut() {
        let text = String::from_utf8(three_epochs())
            .unwrap()
            .replacen("{\"k\"", "{\"k", 1);
        assert!(load(text.as_bytes())
            .err()
            .unwrap()
            .to_string()
            .contains("line 3"));
    }

    #[test]
    fn a_sum_is_what_merging_gives() {
        let (a, b) = (
            table(&[(1, 2, 3), (2, 2, 1)]),
            table(&[(2, 2, 5), (3, 1, 1)]),
        );
        let mut sum = Sum::of(&a);
        sum.add(&b).unwrap();
        let mut merged = a;
        merged.merge(&b).unwrap();
        assert_eq!(sum.table, merged);
    }

    #[test]
    fn losses_are_said() {
        let mut account = Account::default();
        assert_eq!(incomplete(&account), None);
        account.full = 1812;
        assert!(incomplete(&account)
            .unwrap()
            .contains("1,812 hits of new keys"));
        let mut account = Account::default();
        let losses = account.losses.get_or_insert_default();
        // Hits that left all rows were still counted, and of an overwritten start the later one is measured.
        (losses.retired, losses.expired, losses.overwritten) = (Some(9), Some(0), Some(8));
        assert_eq!(incomplete(&account), None);
        account.losses.as_mut().unwrap().expired = Some(7);
        assert_eq!(
            incomplete(&account).unwrap(),
            "lost: 7 times of what had no end, as its start was forgotten"
        );
    }

    #[test]
    fn a_full_disk_is_said() {
        let file = File::options().write(true).open("/dev/full").unwrap();
        let header = Header::new(Vec::new(), String::new(), String::new(), String::new());
        let error = Recorder(file).begin(&header).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    proptest! {
        /// Checks that a recording cut anywhere yields its complete tables, and that a cut inside a table is reported.
        #[test]
        fn a_cut_recording_is_survived(at in 1usize..3000) {
            let all = three_epochs();
            let at = at.min(all.len());
            let loaded = match load(&all[..at]) {
                Ok(loaded) => loaded,
                Err(error) => {
                    prop_assert!(error.to_string().contains("no table"));
                    return Ok(());
                }
            };
            let epochs = loaded.series.first().map_or(0, |series| series.epochs.len());
            let text = std::str::from_utf8(&all[..at]).unwrap();
            // A table may lack at most the newline at its end.
            let ended = text.matches("\"lost_traces\":0}").count();
            prop_assert_eq!(epochs, ended);
            let between = text.trim_end().ends_with("\"lost_traces\":0}") || text.lines().count() == 1 && epochs == 0 && text.ends_with('}');
            prop_assert_eq!(loaded.cut.is_none(), between, "{}", text);
        }
    }
}
