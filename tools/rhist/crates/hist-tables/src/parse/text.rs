// SPDX-License-Identifier: MIT OR Apache-2.0

//! The parser of the text in a `hist` file, which C's implementation and the module print alike.
//!
//! Rows tell neither the kind of a key nor, unambiguously, the end of a string. The line of the trigger has the
//! modifiers of the keys, and the widths to which the kernel pads its output tell the rest.

use crate::model::{Account, Bucket, Key, KeyColumn, Kind, Number, Row, Sum, Table, ValueColumn};
use crate::{Error, Result};

/// The width to which the kernel pads a string.
const STRING_WIDTH: usize = 50;
/// The width to which the kernel pads a number.
const NUMBER_WIDTH: usize = 10;
/// The width to which the kernel pads the name of a task.
const COMM_WIDTH: usize = 16;
/// The width of a bar, including the blank before it.
const BAR_WIDTH: usize = 21;

/// The contents of a `hist` file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Read {
    /// The tables, one for each trigger.
    pub tables: Vec<Table>,
    /// The error of a row that was left out, as the kernel prints no such row.
    pub left_out: Option<String>,
}

/// Returns the tables in the `hist` file of this event, `system:event`.
pub fn tables(event: &str, text: &[u8]) -> Result<Read> {
    // Each character stands for a byte, as in JSON.
    let text: String = text.iter().copied().map(char::from).collect();
    let mut read = Read::default();
    for one in text.split("# event histogram\n").skip(1) {
        let (table, left_out) = Parser::new(event, one)?.table()?;
        read.tables.push(table);
        read.left_out = read.left_out.or(left_out);
    }
    Ok(read)
}

/// Returns the columns of a trigger's keys, and whether each shows hexadecimal numbers. A key without a modifier has
/// the kind of numbers, until a row shows that it is a string.
fn keys_of(trigger: &str) -> Vec<(KeyColumn, bool)> {
    let keys = parameter(trigger, "keys=").unwrap_or_default();
    let hidden = trigger.contains(":quantiles(");
    keys.split(',')
        .map(|key| {
            let (name, modifier) = match key.rsplit_once('.') {
                Some((name, modifier)) if !name.is_empty() => (name, modifier),
                _ => (key, ""),
            };
            let number = |of: &str| modifier.strip_prefix(of).and_then(|n| n.parse().ok());
            let column = |name: &str, kind| KeyColumn {
                name: name.to_owned(),
                kind,
                unit: None,
            };
            let kind = match modifier {
                "hex" | "usecs" => Kind::Number,
                "sym" | "sym-offset" => Kind::Symbol,
                "execname" => Kind::Execname,
                "syscall" => Kind::Syscall,
                "stacktrace" => Kind::Stack,
                "log2" => Kind::Log2 { scale: 0 },
                _ if key == "common_stacktrace" || key == "stacktrace" => Kind::Stack,
                _ => match (number("log2="), number("buckets=")) {
                    (Some(scale), _) => Kind::Log2 {
                        scale: u8::try_from(scale).unwrap_or_default(),
                    },
                    (_, Some(width)) => Kind::Buckets { width },
                    _ => return (column(key, Kind::Number), false),
                },
            };
            let column = column(name.trim_start_matches('$'), kind);
            (column, modifier == "hex")
        })
        .filter(|(column, _)| !hidden || !column.kind.is_interval())
        .collect()
}

/// Returns the value of a trigger's parameter.
fn parameter<'a>(trigger: &'a str, name: &str) -> Option<&'a str> {
    let value = &trigger[trigger.find(name)? + name.len()..];
    value.split([':', ' ']).next()
}

struct Parser<'a> {
    rest: &'a str,
    /// Whether each key is shown as a hexadecimal number.
    hex: Vec<bool>,
    table: Table,
}

impl<'a> Parser<'a> {
    /// Parses the lines before the rows.
    fn new(event: &str, text: &'a str) -> Result<Self> {
        let wrong = || {
            Error::new(format!(
                "the text of the histogram of {event} has no line \"# trigger info\""
            ))
        };
        let start = text.find("# trigger info: ").ok_or_else(wrong)?;
        let (line, rest) = text[start + "# trigger info: ".len()..]
            .split_once('\n')
            .ok_or_else(wrong)?;
        let (trigger, active) = match line.strip_suffix(" [paused]") {
            Some(trigger) => (trigger, false),
            None => (line.strip_suffix(" [active]").unwrap_or(line), true),
        };
        let (keys, hex) = keys_of(trigger).into_iter().unzip();
        let values = parameter(trigger, ":vals=").unwrap_or_default();
        Ok(Self {
            rest: rest.trim_start_matches(['#', '\n']),
            hex,
            table: Table {
                event: event.into(),
                trigger: trigger.into(),
                active,
                consumed: true,
                span: None,
                keys,
                values: values
                    .split(',')
                    .filter(|name| {
                        !name.is_empty() && !name.ends_with(".percent") && !name.ends_with(".graph")
                    })
                    .map(|name| name.strip_suffix(".hex").unwrap_or(name).to_owned())
                    .map(ValueColumn::of_sums)
                    .collect(),
                rows: Vec::new(),
                account: Account::default(),
                cost: None,
            },
        })
    }

    fn table(mut self) -> Result<(Table, Option<String>)> {
        let mut wrong = None;
        while let Some(row) = self.rest.strip_prefix("{ ") {
            self.rest = row;
            if self.row().is_none() {
                // The text continues with the next row or, after the last one, with the totals.
                let next = row.find("\n{ ").or_else(|| row.find("\n\nTotals:"));
                self.rest = next.map_or("", |at| &row[at + 1..]);
                wrong = wrong.or(row.lines().next());
            }
        }
        let mut left_out = None;
        if let Some(row) = wrong {
            let text = format!(
                "a row of the histogram of {} is not as the kernel prints it: {row}",
                self.table.event
            );
            if self.table.rows.is_empty() {
                return Err(Error::new(text));
            }
            left_out = Some(text);
        }
        let total = |title: &str| {
            let line = self
                .rest
                .lines()
                .find_map(|line| line.trim_start().strip_prefix(title));
            line.and_then(|n| n.trim().parse().ok()).ok_or_else(|| {
                Error::new(format!(
                    "the text of the histogram of {} ends before its line \"{title}\"",
                    self.table.event
                ))
            })
        };
        self.table.account.hits = total("Hits:")?;
        self.table.account.full = total("Dropped:")?;
        // Two names that differ only in trailing blanks are the same key here, so their rows are added up.
        Ok((Sum::of(&self.table).table, left_out))
    }

    fn row(&mut self) -> Option<()> {
        let mut keys = Vec::with_capacity(self.hex.len());
        for i in 0..self.hex.len() {
            if i > 0 {
                self.skip(", ")?;
            }
            keys.push(self.key(i)?);
        }
        self.rest = self.rest.trim_start_matches(' ');
        self.skip("}")?;
        let (mut names, mut values) = (Vec::new(), Vec::new());
        while !self.rest.starts_with('\n') {
            if let Some((name, value)) = self.value()? {
                names.push(name);
                values.push(value);
            }
        }
        if self.table.rows.is_empty() {
            // C may omit a value that its trigger names, so the names are taken from the rows.
            self.table.values = names.into_iter().map(ValueColumn::of_sums).collect();
        }
        if values.len() != self.table.values.len() {
            return None;
        }
        self.table.rows.push(Row {
            keys,
            values,
            exemplar: None,
        });
        // What handlers keep is in lines of their own.
        self.skip("\n")?;
        while self.rest.starts_with('\t') {
            self.rest = self.rest.split_once('\n')?.1;
        }
        Some(())
    }

    fn key(&mut self, i: usize) -> Option<Key> {
        let kind = self.table.keys[i].kind;
        if kind == Kind::Stack {
            return self.stack(i);
        }
        let (name, rest) = self.rest.split_once(": ")?;
        self.rest = rest;
        self.table.keys[i].name = name.to_owned();
        match kind {
            _ if self.hex[i] => Some(Key::Number(self.hexadecimal()?.into())),
            Kind::Number | Kind::Text => self.plain(i),
            Kind::Symbol => {
                self.skip("[")?;
                let address = self.hexadecimal()?;
                self.skip("] ")?;
                let name = self.padded(self.end_of_key(0)?);
                Some(Key::Symbol { address, name })
            }
            Kind::Execname => {
                let from = self.place(COMM_WIDTH)?;
                Some(Key::Task {
                    comm: self.padded(from + self.rest[from..].find('[')?),
                    pid: self.bracketed()?,
                })
            }
            Kind::Syscall => {
                let name = self.padded(self.rest.find('[')?);
                Some(Key::Syscall {
                    name: Some(name).filter(|name| name != "unknown_syscall"),
                    number: self.bracketed()?,
                })
            }
            Kind::Log2 { scale: 0 } => {
                self.skip("~ 2^")?;
                let power = self.take(|c| c.is_ascii_digit()).parse::<u32>();
                let power = power.ok().filter(|&power| power <= 64)?;
                let hi = (1 << power).min(Number::from(u64::MAX));
                Some(Key::Bucket {
                    bucket: Bucket {
                        lo: if power == 0 { 0 } else { (1 << power) / 2 + 1 },
                        hi,
                    },
                    index: Some(power.into()),
                })
            }
            Kind::Log2 { .. } | Kind::Buckets { .. } => {
                self.skip("~ ")?;
                let lo = self.signed()?;
                self.skip("-")?;
                // The end of the last interval wraps around to a negative number.
                let hi = match self.signed()? {
                    hi if hi < lo => Number::from(u64::MAX),
                    hi => hi,
                };
                Some(Key::Bucket {
                    bucket: Bucket { lo, hi },
                    index: None,
                })
            }
            Kind::Stack => None,
        }
    }

    /// Parses a right-aligned number or a left-aligned string: the first row decides which one it is.
    fn plain(&mut self, i: usize) -> Option<Key> {
        let digits = self.rest.trim_start_matches(' ');
        let tail = digits.trim_start_matches(|c: char| c.is_ascii_digit());
        let width = self.rest.len() - tail.len();
        let looks_like_number = width >= NUMBER_WIDTH
            && tail.len() < digits.len()
            && (tail.starts_with(", ") || tail.starts_with(" }") || tail.starts_with('}'));
        let is_number = match self.table.rows.is_empty() {
            true => looks_like_number,
            false => self.table.keys[i].kind == Kind::Number,
        };
        if is_number {
            self.table.keys[i].kind = Kind::Number;
            self.rest = tail;
            return digits[..digits.len() - tail.len()]
                .parse()
                .ok()
                .map(Key::Number);
        }
        self.table.keys[i].kind = Kind::Text;
        let end = self.end_of_key(self.place(STRING_WIDTH)?)?;
        Some(Key::Text(self.padded(end)))
    }

    fn stack(&mut self, i: usize) -> Option<Key> {
        // After a field's name, the first frame follows on the same line.
        let end = self
            .rest
            .find(".stacktrace")
            .filter(|&at| !self.rest[..at].contains([' ', ':']));
        match end {
            Some(at) => {
                self.table.keys[i].name = self.rest[..at].to_owned();
                self.rest = &self.rest[at + ".stacktrace".len()..];
            }
            None => {
                let (name, rest) = self.rest.split_once(":\n")?;
                self.table.keys[i].name = name.to_owned();
                self.rest = rest;
            }
        }
        let mut frames = Vec::new();
        while self.rest.starts_with(' ') {
            let (frame, rest) = self.rest.split_once('\n')?;
            frames.push(frame.trim().to_owned());
            self.rest = rest;
        }
        Some(Key::Stack(frames))
    }

    /// Parses a count or a sum; the inner `None` is a share or a bar.
    fn value(&mut self) -> Option<Option<(String, Number)>> {
        self.rest = self.rest.trim_start_matches(' ');
        let line = self.rest.lines().next()?;
        if let Some(at) = line.find(" (%):") {
            if !line[..at].contains(':') {
                self.rest = self.rest[at + " (%):".len()..].trim_start_matches(' ');
                self.take(|c| c != ' ' && c != '\n');
                return Some(None);
            }
        }
        let (name, _) = line.split_once(": ")?;
        self.rest = &self.rest[name.len() + 1..];
        let bar = self
            .rest
            .get(..BAR_WIDTH)
            .filter(|bar| bar.chars().all(|c| c == ' ' || c == '#'));
        if bar.is_some() {
            self.rest = &self.rest[BAR_WIDTH..];
            return Some(None);
        }
        self.rest = self.rest.trim_start_matches(' ');
        let digits = self.take(|c| c != ' ' && c != '\n');
        let hex = parameter(&self.table.trigger, ":vals=")
            .unwrap_or_default()
            .split(',')
            .any(|value| value.strip_suffix(".hex") == Some(name));
        let number = match hex {
            true => u64::from_str_radix(digits, 16).ok()?.into(),
            false => digits.parse().ok()?,
        };
        Some(Some((name.to_owned(), number)))
    }

    /// Returns where the key at the current position ends, at index `from` or later.
    fn end_of_key(&self, from: usize) -> Option<usize> {
        // The name of a task may contain newlines.
        let mut pairs = self.rest.as_bytes().get(from..)?.windows(2);
        let at = pairs.position(|pair| matches!(pair, b", " | b" }" | b"} "))?;
        Some(from + at)
    }

    /// Returns the index of the byte at which a column of this width ends.
    fn place(&self, width: usize) -> Option<usize> {
        self.rest.char_indices().nth(width).map(|(at, _)| at)
    }

    /// Takes a text up to this index, and returns it without the blanks after it.
    fn padded(&mut self, end: usize) -> String {
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        text.trim_end_matches(' ').to_owned()
    }

    fn hexadecimal(&mut self) -> Option<u64> {
        let digits = self.take(|c| c.is_ascii_hexdigit());
        u64::from_str_radix(digits, 16).ok()
    }

    fn bracketed(&mut self) -> Option<Number> {
        self.skip("[")?;
        let (number, rest) = self.rest.split_once(']')?;
        self.rest = rest;
        number.trim().parse().ok()
    }

    fn signed(&mut self) -> Option<Number> {
        let sign = if self.skip("-").is_some() { -1 } else { 1 };
        let digits: Number = self.take(|c| c.is_ascii_digit()).parse().ok()?;
        Some(sign * digits)
    }

    fn skip(&mut self, what: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(what)?;
        Some(())
    }

    fn take(&mut self, of: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c: char| !of(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fmt::Write;

    fn one(trigger: &str, rows: &str, hits: u64) -> Table {
        let text = format!(
            "# event histogram\n#\n# trigger info: {trigger} [active]\n#\n\n{rows}\nTotals:\n    Hits: {hits}\n    \
             Entries: 1\n    Dropped: 7\n"
        );
        let mut tables = tables("a:b", text.as_bytes()).unwrap().tables;
        assert_eq!(tables.len(), 1);
        let table = tables.remove(0);
        assert_eq!(table.account.hits, hits);
        assert_eq!(table.account.full, 7);
        table
    }

    #[test]
    fn keys_of_every_kind() {
        let table = one(
            "hist:keys=call_site.sym:vals=hitcount,bytes_req,bytes_alloc:sort=bytes_alloc.descending:size=2048",
            "{ call_site: [ffffffff8161c8de] v9fs_dir_readdir_dotl [9p]                    } hitcount:          1  bytes_req:     262136  bytes_alloc:     262144\n",
            1,
        );
        let name = "v9fs_dir_readdir_dotl [9p]".into();
        let address = 0xffff_ffff_8161_c8de;
        assert_eq!(table.rows[0].keys, [Key::Symbol { address, name }]);
        assert_eq!(table.rows[0].values, [1, 262_136, 262_144]);
        assert_eq!(table.values[2].name, "bytes_alloc");

        let table = one(
            "hist:keys=id.syscall,lat.log2:vals=hitcount:sort=id:size=2048",
            "{ id: sys_rt_sigprocmask            [ 14], lat: ~ 2^7  } hitcount:          6\n\
             { id: unknown_syscall               [999], lat: ~ 2^0  } hitcount:          6\n\
             { id: unknown_syscall               [999], lat: ~ 2^64 } hitcount:          6\n",
            18,
        );
        assert_eq!(
            table.rows[0].keys[1].bucket(),
            Some(Bucket { lo: 65, hi: 128 })
        );
        assert_eq!(
            table.rows[1].keys[1].bucket(),
            Some(Bucket { lo: 0, hi: 1 })
        );
        assert_eq!(table.rows[2].keys[1].bucket().unwrap().hi, u64::MAX.into());
        let unknown = Key::Syscall {
            number: 999,
            name: None,
        };
        assert_eq!(table.rows[1].keys[0], unknown);

        let table = one(
            "hist:keys=common_pid.execname,common_cpu:vals=hitcount:sort=hitcount:size=2048",
            "{ common_pid: a, [1] } x      [       322], common_cpu:          1 } hitcount:         24\n",
            24,
        );
        let comm = "a, [1] } x".into();
        assert_eq!(
            table.rows[0].keys,
            [Key::Task { pid: 322, comm }, Key::Number(1)]
        );

        let table = one(
            "hist:keys=comm,x.hex,y.buckets=10:vals=hitcount:sort=hitcount:size=2048",
            "{ comm: a, b: c } d                                       , x: 7f, y: ~ 10-19 } hitcount:         24\n",
            24,
        );
        assert_eq!(table.rows[0].keys[0], Key::Text("a, b: c } d".into()));
        assert_eq!(table.rows[0].keys[1], Key::Number(0x7f));
        assert_eq!(table.keys[2].kind, Kind::Buckets { width: 10 });
        assert_eq!(
            table.rows[0].keys[2].bucket(),
            Some(Bucket { lo: 10, hi: 19 })
        );
    }

    #[test]
    fn names_of_tasks_may_be_anything() {
        let table = one(
            "hist:keys=comm,pid:vals=hitcount:sort=hitcount:size=2048",
            &format!(
                "{{ comm: {:<50}, pid:          1 }} hitcount:          2\n\
                 {{ comm: {:<50}, pid:          1 }} hitcount:          3\n\
                 {{ comm: {:<50}, pid:          1 }} hitcount:          4\n",
                "a\n{ b: c } d", "a", "a "
            ),
            9,
        );
        let keys = |name: &str| [Key::Text(name.into()), Key::Number(1)];
        assert_eq!(table.rows.len(), 2);
        assert_eq!(table.rows[0].keys, keys("a\n{ b: c } d"));
        assert_eq!(table.rows[1].keys, keys("a"));
        assert_eq!(table.rows[1].values, [7]);
        let table = one(
            "hist:keys=common_pid.execname:vals=hitcount:sort=hitcount:size=2048",
            "{ common_pid: a\nb             [       322] } hitcount:         24\n",
            24,
        );
        let comm = "a\nb".into();
        assert_eq!(table.rows[0].keys, [Key::Task { pid: 322, comm }]);
    }

    #[test]
    fn rows_that_cannot_be_read_are_left_out() {
        let row = "{ x:          5 } hitcount:          1\n";
        for wrong in ["{ x: 1\n2\n", "{ x:          6 } hitcount: many\n"] {
            let trigger = "hist:keys=x:vals=hitcount:sort=hitcount:size=2048";
            let table = one(trigger, &[row, wrong, row, wrong].concat(), 4);
            assert_eq!(table.rows.len(), 1);
            assert_eq!(table.rows[0].values, [2]);
            let text = format!(
                "# event histogram\n# trigger info: {trigger} [active]\n\n{wrong}\nTotals:\n"
            );
            let error = tables("a:b", text.as_bytes()).unwrap_err();
            assert!(error.to_string().contains("as the kernel prints it"));
        }
    }

    #[test]
    fn stacks_have_lines() {
        let table = one(
            "hist:keys=common_stacktrace,pid:vals=hitcount:sort=hitcount:size=2048",
            "{ common_stacktrace:\n         kernel_clone+0x29c/0x300\n         do_syscall_64+0x7e/0x240\n, pid:         42} hitcount:         42\n",
            42,
        );
        let frames = vec![
            "kernel_clone+0x29c/0x300".into(),
            "do_syscall_64+0x7e/0x240".into(),
        ];
        assert_eq!(table.rows[0].keys, [Key::Stack(frames), Key::Number(42)]);

        let table = one(
            "hist:keys=stack.stacktrace:vals=hitcount,lat:sort=hitcount:size=2048",
            "{ stack.stacktrace         kernel_clone+0x29c/0x300\n         do_syscall_64+0x7e/0x240\n} hitcount:         42  lat:          3\n",
            42,
        );
        assert_eq!(table.keys[0].name, "stack");
        assert_eq!(table.rows[0].values, [42, 3]);
    }

    #[test]
    fn shares_and_bars_are_no_values() {
        let table = one(
            "hist:keys=lat.log2:vals=hitcount.percent,hitcount.graph,len.hex:sort=lat:size=2048",
            "{ lat: ~ 2^7  } hitcount:        111  hitcount (%):   8.30  hitcount: ######                len:         ff\n\
             { lat: ~ 2^8  } hitcount:        267  hitcount (%):[ERROR]  hitcount:                       len:          0\n",
            378,
        );
        assert_eq!(table.values.len(), 2);
        assert_eq!(table.rows[0].values, [111, 255]);
        assert_eq!(table.rows[1].values, [267, 0]);
    }

    #[test]
    fn what_handlers_keep_is_passed_over() {
        let table = one(
            "hist:keys=next_pid:vals=hitcount:wait=common_timestamp.usecs-$ts0:sort=hitcount:size=2048:clock=global:onmax($wait).save(next_comm)",
            "{ next_pid:        557 } hitcount:          2\n\tmax:      17299  next_comm: sh                              \n\
             { next_pid:        558 } hitcount:          1\n\tmax:         99  next_comm: sh                              \n",
            3,
        );
        assert_eq!(table.rows.len(), 2);
    }

    #[test]
    fn triggers_of_one_event_are_tables() {
        let one = "# event histogram\n#\n# trigger info: hist:keys=x:vals=hitcount:sort=hitcount:size=2048 [paused]\n#\n\n\nTotals:\n    Hits: 0\n    Entries: 0\n    Dropped: 0\n";
        let two = format!("{one}\n\n{one}");
        let tables = tables("a:b", two.as_bytes()).unwrap().tables;
        assert_eq!(tables.len(), 2);
        assert!(!tables[1].active);
        assert_eq!(tables[1].keys[0].name, "x");
        assert_eq!(tables[1].values[0].name, "hitcount");
    }

    #[test]
    fn text_that_is_cut_is_refused() {
        let text = "# event histogram\n#\n# trigger info: hist:keys=x:vals=hitcount [active]\n#\n\n{ x:          5 } hitcount:          1\n\nTotals:\n    Hits: 1\n    Entries: 1\n    Dropped: 0\n";
        assert!(tables("a:b", text.as_bytes()).is_ok());
        for end in 20..text.len() - 2 {
            assert!(tables("a:b", &text.as_bytes()[..end]).is_err(), "{end}");
        }
    }

    proptest! {
        /// Generates rows like the kernel prints them, with arbitrary names of tasks.
        #[test]
        fn what_is_printed_is_read(
            rows in prop::collection::vec(
                (prop::collection::vec(1u8..=255, 1..16), any::<u64>(), 0..64u32, any::<u64>()), 1..20)
        ) {
            let mut text = String::new();
            let mut wanted = Vec::new();
            for (comm, number, power, hits) in rows {
                let comm: String = comm.into_iter().map(char::from).collect();
                let comm = format!("x{}", comm.trim_end_matches(' '));
                writeln!(
                    text,
                    "{{ comm: {comm:<50}, n: {number:>10}, lat: ~ 2^{power:<2} }} hitcount: {hits:>10}  n: {number:>10}"
                ).unwrap();
                wanted.push((Key::Text(comm), Key::Number(number.into()), power, hits));
            }
            let bytes = "# event histogram\n#\n# trigger info: hist:keys=comm,n,lat.log2:vals=hitcount,n [active]\n#\n\n"
                .chars()
                .chain(text.chars())
                .chain("\nTotals:\n    Hits: 1\n    Entries: 1\n    Dropped: 0\n".chars())
                .map(|c| c as u8)
                .collect::<Vec<u8>>();
            let table = &tables("a:b", &bytes).unwrap().tables[0];
            prop_assert_eq!(table.rows.len(), wanted.len());
            for (row, (comm, number, power, hits)) in table.rows.iter().zip(wanted) {
                prop_assert_eq!(&row.keys[0], &comm);
                prop_assert_eq!(&row.keys[1], &number);
                prop_assert_eq!(row.keys[2].bucket().unwrap().hi, 1i128 << power);
                prop_assert_eq!(row.values[0], Number::from(hits));
            }
        }

        #[test]
        fn no_text_makes_it_panic(rows in "[ {}:,~^0-9a-z#\n\t\\[\\]]{0,200}", modifier in "(\\.log2|\\.sym|\\.execname|\\.stacktrace|)") {
            let text = format!("# event histogram\n#\n# trigger info: hist:keys=a{modifier},b:vals=hitcount [active]\n#\n\n{{ {rows}");
            let _ = tables("a:b", text.as_bytes());
        }
    }
}
