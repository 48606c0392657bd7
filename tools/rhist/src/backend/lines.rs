// SPDX-License-Identifier: MIT OR Apache-2.0

//! Answers with a line for each hit: reads the records of an event in the tool's own instance, instead of a table of
//! hits.

use std::collections::HashMap;
use std::fs;

use super::c::next_span;
use super::{cpus, Lost, Maker, Source, Step, STACK};
use crate::error::Result;
use crate::model::{
    Account, Key, KeyColumn, Kind, Number, Row, Span, Table, Unit, ValueColumn, UNKNOWN,
};
use crate::question::{By, Measure, COMM, CURRENT};
use crate::tracefs::records::{Buffers, Record};
use crate::tracefs::symbols::{in_maps, Symbols};
use crate::tracefs::{Field, Format, Tracefs};

/// The first size of a CPU's buffer in KiB. It grows with the records that come between two reads.
pub const FIRST_KIB: u64 = 256;
/// Prefixes of the kernel's functions that write a record. They are on its stack.
const TRACING: [&str; 3] = ["trace_event_", "__do_trace_", "__traceiter_"];
/// The lowest address that a function can have.
const LOWEST: u64 = 4096;
/// How long the record of an earlier event waits for the line that it belongs to, in nanoseconds.
const PATIENCE: u64 = 10_000_000_000;
/// The key that stands for the arguments of a program: fields `arg0`, `arg1` and so on, each with `at0`, `at1`, which are 0
/// after the last one.
const ARGUMENTS: &str = "args";
/// The name of the column that says when a hit was, in nanoseconds of `CLOCK_REALTIME`.
pub const TIME: &str = "time";

/// The content of a line for each hit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Each {
    /// The event whose records are lines.
    event: String,
    /// The event that happens before, its field with the number of the task, and the field of `event` with that number.
    before: Option<(String, String, String)>,
    keys: Vec<By>,
    values: Vec<(String, Option<Unit>)>,
    /// Whether the line has the stack of the program besides the kernel's.
    user: bool,
}

/// Adds the steps that make the kernel write records of `event` which pass the filter.
pub(super) fn plan(maker: &mut Maker<'_>, event: &str, filter: Option<&str>) {
    let question = maker.question;
    let stack = question.by.iter().any(|by| by.key == STACK);
    let user = stack && question.is_of_current();
    maker.plan.steps.push(Step::Buffer { stack, user });
    let before = question.before.as_ref().map(|before| {
        let event = maker.event(&before.records.event);
        maker.plan.steps.push(Step::Records {
            event: event.clone(),
            filter: before.records.filter.clone(),
        });
        (event, before.on.clone(), before.end_on.clone())
    });
    let event = maker.event(event);
    maker.plan.steps.push(Step::Records {
        event: event.clone(),
        filter: filter.map(str::to_owned),
    });
    let mut keys = question.by.clone();
    let values = match &question.measure {
        Measure::Latency(latency) => {
            if latency.stack {
                keys.push(By {
                    label: "stack".into(),
                    key: "stack.stacktrace".into(),
                    owner: None,
                });
            }
            vec![("lat".to_owned(), Some(Unit::Ns))]
        }
        _ => {
            let sums = question.sums().iter();
            sums.map(|sum| (sum.field.clone(), sum.unit)).collect()
        }
    };
    maker.plan.event.clone_from(&event);
    maker.plan.each = Some(Each {
        event,
        before,
        keys,
        values,
        user,
    });
}

/// A hit: its record, the record of the event before it, and the stacks that follow it.
#[derive(Debug)]
struct Hit {
    record: Record,
    before: Option<Record>,
    stack: Vec<u64>,
    program: Vec<u64>,
}

/// The formats of the events that are read.
#[derive(Debug)]
struct Formats {
    line: Format,
    before: Format,
    stack: Format,
    program: Format,
}

impl Formats {
    fn of(instance: &Tracefs, each: &Each) -> Result<Self> {
        let ours = |name: &str| Format::of(instance, &format!("ftrace:{name}")).unwrap_or_default();
        let before = each.before.as_ref();
        let before = before.map(|(event, ..)| Format::of(instance, event));
        Ok(Self {
            line: Format::of(instance, &each.event)?,
            before: before.transpose()?.unwrap_or_default(),
            stack: ours("kernel_stack"),
            program: ours("user_stack"),
        })
    }

    /// Returns a field by its name, and the record that has it: the hit's own, or the one before it.
    fn find<'a>(&self, hit: &'a Hit, name: &str) -> Option<(&'a Record, &Field)> {
        let own = self.line.field(name).map(|field| (&hit.record, field));
        own.or_else(|| Some((hit.before.as_ref()?, self.before.field(name)?)))
    }
}

/// A source of tables in which each row is a record.
pub struct Lines {
    buffers: Buffers,
    each: Each,
    formats: Formats,
    /// The records of the event before, which wait for their lines, by task.
    waiting: HashMap<Number, Record>,
    /// The tables of the triggers that generate the lines' event, which may lose hits.
    tables: Option<Box<dyn Source>>,
    kib: u64,
    most_kib: u64,
    saved: Tracefs,
    symbols: Option<Symbols>,
    names: HashMap<Number, String>,
    maps: HashMap<Number, String>,
    /// The number of stacks of programs that had ended before their addresses were looked up.
    ended: u64,
    span: Span,
}

impl Lines {
    /// Opens the buffers of an instance in which the plan was carried out; `tables` tells what its triggers lose. The
    /// buffers of all CPUs together take at most a hundredth of `memory`.
    pub fn open(
        top: &Tracefs,
        instance: &Tracefs,
        each: &Each,
        tables: Option<Box<dyn Source>>,
        memory: u64,
    ) -> Result<Self> {
        Ok(Self {
            formats: Formats::of(instance, each)?,
            buffers: Buffers::open(instance)?,
            each: each.clone(),
            waiting: HashMap::new(),
            tables,
            kib: FIRST_KIB,
            most_kib: memory / 100 / 1024 / cpus(),
            saved: top.clone(),
            symbols: None,
            names: HashMap::new(),
            maps: HashMap::new(),
            ended: 0,
            span: next_span(None),
        })
    }

    /// Returns the hits in records that are in the order of time.
    fn hits(&mut self, records: Vec<Record>) -> Vec<Hit> {
        let mut hits: Vec<Hit> = Vec::new();
        let task = |record: &Record, format: &Format, name: &str| {
            format.field(name).and_then(|field| record.number(field))
        };
        for record in records {
            let event = record.event();
            let Formats {
                line,
                before,
                stack,
                program,
            } = &self.formats;
            if event == line.id {
                let key = self.each.before.as_ref();
                let key = key.and_then(|(_, _, on)| task(&record, line, on));
                hits.push(Hit {
                    before: key.and_then(|key| self.waiting.remove(&key)),
                    record,
                    stack: Vec::new(),
                    program: Vec::new(),
                });
                continue;
            }
            if event == before.id {
                let key = self.each.before.as_ref();
                let key = key.and_then(|(_, on, _)| task(&record, before, on));
                self.waiting.extend(key.map(|key| (key, record)));
                continue;
            }
            let mut of_cpu = hits.iter_mut().rev();
            let Some(hit) = of_cpu.find(|hit| hit.record.cpu == record.cpu) else {
                continue;
            };
            let addresses = |format: &Format| {
                let all = format.field("caller").map(|field| record.addresses(field));
                all.unwrap_or_default()
            };
            match event {
                id if id == stack.id => hit.stack = addresses(stack),
                id if id == program.id => hit.program = addresses(program),
                _ => {}
            }
        }
        let now = hits.last().map_or(0, |hit| hit.record.time);
        self.waiting
            .retain(|_, record| record.time + PATIENCE > now);
        hits
    }

    /// Returns the name of a task: its present one, or the one that the kernel has kept.
    fn comm(&mut self, pid: Number) -> String {
        if let Some(name) = self.names.get(&pid) {
            return name.clone();
        }
        let bytes = |text: &[u8]| text.iter().copied().map(char::from).collect::<String>();
        let now = fs::read(format!("/proc/{pid}/comm"));
        let now = now.map(|name| bytes(name.trim_ascii_end()));
        let kept = || {
            let all = bytes(&self.saved.read("saved_cmdlines").ok()?);
            let mut names = all.lines().filter_map(|line| line.split_once(' '));
            let found = names.find(|(number, _)| number.parse() == Ok(pid));
            found.map(|(_, name)| name.to_owned())
        };
        let name = match pid {
            0 => "swapper".to_owned(),
            _ => now.ok().or_else(kept).unwrap_or_else(|| "?".to_owned()),
        };
        self.names.insert(pid, name.clone());
        name
    }

    fn symbol(&mut self, address: u64) -> String {
        let symbols = self.symbols.get_or_insert_with(Symbols::of_kernel);
        symbols.name(address)
    }

    fn stack(&mut self, kernel: &[u64], program: &[u64], pid: Number) -> Key {
        // The stack of a synthetic event begins with the number of frames.
        let kernel = kernel.iter().skip_while(|&&at| at < LOWEST);
        let mut frames: Vec<String> = kernel.map(|&at| self.symbol(at)).collect();
        // The frames of the tracer itself come first.
        let tracing = |frame: &String| TRACING.iter().any(|start| frame.starts_with(start));
        let own = frames.iter().rposition(tracing);
        frames.drain(..own.map_or(0, |own| own + 1));
        if self.each.user && !program.is_empty() {
            let maps = self.maps.entry(pid).or_insert_with(|| {
                fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default()
            });
            self.ended += u64::from(maps.is_empty());
            let frame = |&at: &u64| in_maps(maps, at).unwrap_or_else(|| format!("{at:#x}"));
            frames.extend(program.iter().map(frame));
        }
        Key::Stack(frames)
    }

    /// Returns the arguments of a program, with `?` for each that the kernel could not read.
    fn arguments(&self, hit: &Hit) -> Option<String> {
        hit.before.as_ref()?;
        let mut all = Vec::new();
        for i in 0.. {
            let Some((record, at)) = self.formats.find(hit, &format!("at{i}")) else {
                break;
            };
            if record.number(at) == Some(0) {
                break;
            }
            all.push(match self.formats.find(hit, &format!("arg{i}")) {
                Some((record, text)) => record.text(text).unwrap_or_else(|| "?".into()),
                // The program has more arguments than the probe reads.
                None => "...".into(),
            });
        }
        Some(all.join(" "))
    }

    fn key(&mut self, by: &By, hit: &Hit) -> Key {
        let pid = Number::from(hit.record.pid());
        let unknown = || Key::Text("?".into());
        let number = match (by.field(), by.modifier()) {
            ("common_cpu", _) => Some(hit.record.cpu.into()),
            (CURRENT, _) => Some(pid),
            (COMM, _) => return Key::Text(self.comm(pid)),
            (STACK, _) => return self.stack(&hit.stack, &hit.program, pid),
            (name, ".stacktrace") => {
                let found = self.formats.find(hit, name);
                let found = found.map(|(record, field)| record.addresses(field));
                return self.stack(&found.unwrap_or_default(), &[], pid);
            }
            (ARGUMENTS, _) => return self.arguments(hit).map_or_else(unknown, Key::Text),
            (name, _) => match self.formats.find(hit, name) {
                None => return unknown(),
                Some((record, field)) => match record.number(field) {
                    None => return record.text(field).map_or_else(unknown, Key::Text),
                    number => number,
                },
            },
        };
        let Some(number) = number else {
            return unknown();
        };
        match by.modifier() {
            ".execname" => Key::Task {
                pid: number,
                comm: self.comm(number),
            },
            ".syscall" => Key::Syscall {
                number,
                name: usize::try_from(number)
                    .ok()
                    .and_then(syscalls::Sysno::new)
                    .map(|call| call.name().to_owned()),
            },
            ".sym" | ".sym-offset" => {
                let address = number as u64;
                let name = self.symbol(address);
                let name = match by.modifier() {
                    ".sym" => name.split('+').next().unwrap_or_default().to_owned(),
                    _ => name,
                };
                Key::Symbol { address, name }
            }
            ".hex" => Key::Text(format!("{number:#x}")),
            _ => Key::Number(number),
        }
    }

    /// Returns a table of these hits, in their order.
    fn table(&mut self, hits: &[Hit]) -> Table {
        let each = self.each.clone();
        let of = |(name, unit): &(String, Option<Unit>)| ValueColumn {
            unit: *unit,
            ..ValueColumn::of_sums(name.clone())
        };
        let values = each.values.iter().map(of);
        let count = ValueColumn::of_sums("hitcount".into());
        let values: Vec<ValueColumn> = std::iter::once(count).chain(values).collect();
        let since = Number::from(self.span.real) - Number::from(self.span.to);
        self.names.clear();
        self.maps.clear();
        let rows = hits.iter().map(|hit| {
            let mut row: Vec<Key> = each.keys.iter().map(|by| self.key(by, hit)).collect();
            row.push(Key::Number(Number::from(hit.record.time) + since));
            let number = |(name, _): &(String, _)| {
                let found = self.formats.find(hit, name);
                let found = found.and_then(|(record, field)| record.number(field));
                found.unwrap_or(UNKNOWN)
            };
            let values = each.values.iter().map(number);
            Row {
                keys: row,
                values: std::iter::once(1).chain(values).collect(),
                exemplar: None,
            }
        });
        let rows: Vec<Row> = rows.collect();
        let names = each.keys.iter().map(By::field).chain([TIME]);
        let keys = names.enumerate().map(|(i, name)| KeyColumn {
            name: name.to_owned(),
            kind: rows.first().map_or(Kind::Number, |row| match row.keys[i] {
                Key::Text(_) => Kind::Text,
                Key::Symbol { .. } => Kind::Symbol,
                Key::Task { .. } => Kind::Execname,
                Key::Syscall { .. } => Kind::Syscall,
                Key::Stack(_) => Kind::Stack,
                _ => Kind::Number,
            }),
            unit: None,
        });
        Table {
            event: each.event,
            trigger: String::new(),
            active: true,
            consumed: true,
            span: Some(self.span),
            keys: keys.collect(),
            values,
            account: Account {
                hits: rows.len() as u64,
                ..Account::default()
            },
            rows,
            cost: None,
        }
    }
}

impl Source for Lines {
    fn next(&mut self) -> Result<Table> {
        let (records, most) = self.buffers.read()?;
        // A buffer has room for four times as much as came since the last read.
        if most as u64 * 4 > self.kib * 1024 && self.kib < self.most_kib {
            self.kib = (self.kib * 2).min(self.most_kib);
            self.buffers.resize(self.kib)?;
        }
        self.span = next_span(Some(self.span));
        let hits = self.hits(records);
        Ok(self.table(&hits))
    }

    fn lost(&mut self) -> Result<Lost> {
        let tables = self.tables.as_mut().map(|tables| tables.lost());
        Ok(Lost {
            records: self.buffers.lost()?,
            damaged: self.buffers.damaged,
            ..tables.transpose()?.unwrap_or_default()
        })
    }

    fn remark(&self) -> Option<String> {
        (self.ended > 0).then(|| {
            format!(
                "{} stacks are of programs that had ended before they were looked up: they have addresses in place of files",
                self.ended
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::lines::Lines as Shown;
    use crate::view::table::Look;
    use crate::whose::tests::Tree;

    /// Returns a page of these records, each with its time and its content of whole words.
    fn page(records: &[(u64, Vec<u8>)]) -> Vec<u8> {
        let mut all = Vec::new();
        let mut before = 0;
        for (time, bytes) in records {
            let head = ((time - before) as u32) << 5;
            before = *time;
            all.extend(head.to_ne_bytes());
            all.extend((bytes.len() as u32 + 4).to_ne_bytes());
            all.extend(bytes);
        }
        let mut page = 0_u64.to_ne_bytes().to_vec();
        page.extend((all.len() as u64).to_ne_bytes());
        [page, all].concat()
    }

    /// Returns the content of a record: the head for this event and task, the words, and the text.
    fn record(event: u16, pid: i32, words: &[u64], text: &[u8]) -> Vec<u8> {
        let mut all = event.to_ne_bytes().to_vec();
        all.extend([0, 0]);
        all.extend(pid.to_ne_bytes());
        all.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        all.extend(text);
        all.resize(all.len().next_multiple_of(4), 0);
        all
    }

    fn field(declaration: &str, offset: usize, size: usize, signed: u8) -> String {
        format!("\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n")
    }

    /// Makes the files of an instance with these formats, and with this page for each CPU.
    fn instance(
        name: &str,
        formats: &[(&str, u16, &[String])],
        pages: &[Vec<u8>],
    ) -> (Tree, Tracefs) {
        let tree = Tree::new(name);
        for (event, id, fields) in formats {
            let text = format!("name: x\nID: {id}\nformat:\n{}", fields.concat());
            tree.file(&format!("events/{event}/format"), &text);
        }
        for (cpu, page) in pages.iter().enumerate() {
            let stats = format!("entries: 0\noverrun: {cpu}\ncommit overrun: 2\nbytes: 9\n");
            tree.file(&format!("per_cpu/cpu{cpu}/stats"), &stats);
            let raw = tree.0.join(format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
            fs::write(raw, page).unwrap();
        }
        tree.file("saved_cmdlines", "4194303 gone one\n");
        let tracefs = Tracefs::find(Some(&tree.0)).unwrap();
        (tree, tracefs)
    }

    fn by(label: &str, key: &str) -> By {
        By {
            label: label.into(),
            key: key.into(),
            owner: None,
        }
    }

    fn open(tracefs: &Tracefs, each: &Each) -> Lines {
        Lines::open(tracefs, tracefs, each, None, 1 << 30).unwrap()
    }

    /// Returns the lines that a table is shown as, without the times.
    fn shown(table: &Table, look: &Look) -> Vec<String> {
        let text = String::from_utf8(Shown::default().write(table, look)).unwrap();
        let cells = |line: &str| {
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        text.lines()
            .map(|line| cells(line)[1..].join(" "))
            .collect()
    }

    #[test]
    fn slow_hits_are_lines_in_the_order_of_time() {
        let fields = [
            field("u64 lat", 8, 8, 0),
            field("pid_t next_pid", 16, 4, 1),
            field("char next_comm[16]", 24, 16, 0),
        ];
        let hit = |lat, pid| record(9, 1, &[lat, pid], b"web\0\xff           ");
        let pages = [
            page(&[(1000, hit(5_000_000, 7)), (3000, hit(6_000_000, 8))]),
            page(&[(2000, hit(7_000_000, 4_194_303))]),
        ];
        let (_tree, tracefs) = instance("slow", &[("synthetic/late", 9, &fields)], &pages);
        let each = Each {
            event: "synthetic:late".into(),
            before: None,
            keys: vec![
                by("comm", "next_comm"),
                by("pid", "next_pid.execname"),
                by("cpu", "common_cpu"),
            ],
            values: vec![("lat".into(), Some(Unit::Ns))],
            user: false,
        };
        let mut lines = open(&tracefs, &each);
        let table = lines.next().unwrap();
        let look = Look {
            labels: vec!["comm".into(), "pid".into(), "cpu".into()],
            heading: "wait".into(),
            ..Look::default()
        };
        let all = shown(&table, &look);
        assert_eq!(all[0], "WAIT COMM PID CPU");
        assert!(
            all[1].starts_with("5.00ms web ") && all[1].ends_with("[7] 0"),
            "{all:?}"
        );
        assert_eq!(all[2], "7.00ms web gone one [4194303] 1");
        assert!(all[3].starts_with("6.00ms web"), "{all:?}");
        assert_eq!(
            (table.account.hits, table.rows[0].values.as_slice()),
            (3, &[1, 5_000_000][..])
        );
        // The time is of `CLOCK_REALTIME`.
        let Key::Number(time) = table.rows[0].keys[3] else {
            panic!("no time")
        };
        let span = table.span.unwrap();
        assert_eq!(time, i128::from(span.real - span.to + 1000));
        let lost = lines.lost().unwrap();
        assert_eq!((lost.records, lost.damaged), (1 + 2 + 2, 0));
        assert!(lost.sentences(None)[0].starts_with("5 lines lost"));
        assert!(lines.next().unwrap().rows.is_empty());
    }

    #[test]
    fn arguments_come_before_the_program() {
        let arguments = [
            field("int common_pid", 4, 4, 1),
            field("__data_loc char[] arg0", 8, 4, 0),
            field("__data_loc char[] arg1", 12, 4, 0),
            field("u64 at0", 16, 8, 0),
            field("u64 at1", 24, 8, 0),
            field("u64 at2", 32, 8, 0),
        ];
        let started = [field("pid_t old_pid", 8, 4, 1)];
        let before = |pid, second: u64, more| {
            let places = (3 << 16 | 40) | second << 32;
            record(7, pid, &[places, 1, 1, more], b"ls\0-l\0")
        };
        let after = |pid: u64| record(9, pid as i32, &[pid], b"");
        let pages = [page(&[
            (10, before(5, 3 << 16 | 43, 0)),
            (11, before(6, 0, 1)),
            (12, after(5)),
            (13, after(6)),
            // No earlier record has the arguments of this task.
            (14, after(8)),
        ])];
        let formats: [(&str, u16, &[String]); 2] =
            [("own/args", 7, &arguments), ("sched/exec", 9, &started)];
        let (_tree, tracefs) = instance("args", &formats, &pages);
        let each = Each {
            event: "sched:exec".into(),
            before: Some(("own:args".into(), "common_pid".into(), "old_pid".into())),
            keys: vec![by("args", "args")],
            values: Vec::new(),
            user: false,
        };
        let mut lines = open(&tracefs, &each);
        let table = lines.next().unwrap();
        assert_eq!(
            shown(&table, &Look::default()),
            ["ARGS", "ls -l", "ls ? ...", "?"]
        );
    }

    #[test]
    fn stacks_follow_their_line() {
        let stack = [field("unsigned long caller[8]", 16, 64, 0)];
        let own = std::process::id() as i32;
        let here = stacks_follow_their_line as *const () as u64;
        let of_kernel = |pid| {
            record(
                4,
                pid,
                &[2, 0xffff_ffff_0000_0001, 0xffff_ffff_0000_0002],
                b"",
            )
        };
        let of_program = |pid, at| record(5, pid, &[0, at, 0], b"");
        let pages = [
            page(&[
                (1, record(9, own, &[], b"")),
                (2, of_kernel(own)),
                (3, of_program(own, here)),
            ]),
            // Frames of a program that has ended are shown as addresses.
            page(&[(1, record(9, -7, &[], b"")), (2, of_program(-7, 0x1000))]),
        ];
        let formats: [(&str, u16, &[String]); 3] = [
            ("a/b", 9, &[]),
            ("ftrace/kernel_stack", 4, &stack),
            ("ftrace/user_stack", 5, &stack),
        ];
        let (_tree, tracefs) = instance("stacks", &formats, &pages);
        let each = Each {
            event: "a:b".into(),
            before: None,
            keys: vec![by("stack", STACK)],
            values: Vec::new(),
            user: true,
        };
        let mut lines = open(&tracefs, &each);
        assert_eq!(lines.remark(), None);
        let table = lines.next().unwrap();
        let frames = |row: usize| match &table.rows[row].keys[0] {
            Key::Stack(frames) => frames.clone(),
            other => panic!("{other:?}"),
        };
        let first = frames(0);
        assert_eq!(first.len(), 3);
        assert!(first[2].starts_with("rhist-"), "{first:?}");
        assert_eq!(frames(1), ["0x1000"]);
        assert!(lines
            .remark()
            .unwrap()
            .starts_with("1 stacks are of programs"));
    }
}
