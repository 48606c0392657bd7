// SPDX-License-Identifier: MIT OR Apache-2.0

//! The JSON lines of `hist_json` and `hist_pipe`: Documentation/hist-json.schema.json.
//!
//! Numbers have up to 64 bits and are never converted to floating point. Each character of a string stands for a byte.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::io::{self, BufRead, Read, Write};

use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::model::{
    Account, Agg, Bucket, Exemplar, Key, KeyColumn, Kind, Losses, Number, Row, Span, Table, Unit,
    ValueColumn, UNKNOWN,
};
use crate::units;
use crate::{Error, Result};

/// The version of the lines' format, which changes when the meaning of a member changes.
pub const VERSION: u64 = 1;

/// Returns a message if a line has a later version; `None` if it has no version, or a known one.
pub fn is_newer(line: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Versioned {
        v: u64,
    }
    let Versioned { v } = serde_json::from_slice(line).ok()?;
    (v > VERSION).then(|| format!("version {v}, which needs a newer rhist"))
}

/// The length in bytes at which a line is refused.
const LONGEST: u64 = 16 << 20;

/// Reads a line, including its newline; `line` stays empty at the end of the input.
pub fn read_line(lines: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<usize> {
    let read = lines.take(LONGEST).read_until(b'\n', line)?;
    if line.len() as u64 >= LONGEST && !line.ends_with(b"\n") {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a line is longer than 16 MiB",
        ));
    }
    Ok(read)
}

/// Returns the error of a column that no kernel prints, and with which pictures and exports would never end.
fn wrong_column(column: &KeyColumn) -> Option<&'static str> {
    match column.kind {
        Kind::Log2 { scale: 7.. } => Some("the scale of a column is above 6"),
        Kind::Buckets { width: 0 } => Some("the width of a column is 0"),
        _ => None,
    }
}

/// Returns whether a key is an interval that its column cannot have.
fn is_outside(key: &Key, column: &KeyColumn) -> bool {
    match (key, column.kind) {
        (
            Key::Bucket {
                index: Some(index), ..
            },
            Kind::Log2 { scale },
        ) => index.unsigned_abs() > 64 << scale,
        _ => false,
    }
}

/// Reads tables from lines. Lines of other types between tables are skipped.
pub struct Reader<R> {
    lines: R,
    line: Vec<u8>,
    number: usize,
}

impl<R: BufRead> Reader<R> {
    /// Returns a reader of these lines.
    pub fn new(lines: R) -> Self {
        Self {
            lines,
            line: Vec::new(),
            number: 0,
        }
    }

    /// Returns the next line that is not empty.
    fn next_line(&mut self) -> Result<Option<Line>> {
        loop {
            self.line.clear();
            self.number += 1;
            let read = read_line(&mut self.lines, &mut self.line);
            match read.map_err(|e| Error::new(format!("cannot read line {}: {e}", self.number)))? {
                0 => return Ok(None),
                _ if self.line.trim_ascii().is_empty() => {}
                _ => {
                    return Line::parse(&self.line).map(Some).map_err(|e| {
                        match is_newer(&self.line) {
                            Some(what) => Error::new(format!("line {} is of {what}", self.number)),
                            None => self.wrong(&e.to_string()),
                        }
                    })
                }
            }
        }
    }

    fn wrong(&self, what: &str) -> Error {
        Error::new(format!(
            "line {} is not as hist_json writes it: {what}",
            self.number
        ))
    }

    fn next_table(&mut self) -> Result<Option<Table>> {
        let mut table = loop {
            match self.next_line()? {
                None => return Ok(None),
                Some(Line::Head(table)) => break *table,
                Some(Line::Other) => {}
                Some(_) => {
                    return Err(self.wrong("it belongs to a table whose first line is missing"))
                }
            }
        };
        if let Some(what) = table.keys.iter().find_map(wrong_column) {
            return Err(self.wrong(what));
        }
        if !table.consumed {
            return Ok(Some(table));
        }
        loop {
            match self.next_line()? {
                Some(Line::Row(keys, values, exemplar)) if keys.len() == table.keys.len() && values.len() == table.values.len() => {
                    let mut columns = keys.iter().zip(&table.keys);
                    if columns.any(|(key, column)| is_outside(key, column)) {
                        return Err(self.wrong("an interval is none of its column"));
                    }
                    let values = values.iter().zip(&table.values);
                    let values = values.map(|(value, column)| value.of(column)).collect::<Option<_>>();
                    let values = values.ok_or_else(|| self.wrong("a number is none of its column"))?;
                    table.rows.push(Row { keys, values, exemplar });
                }
                Some(Line::Row(..)) => return Err(self.wrong("the row has not as many members as there are columns")),
                Some(Line::Other) => {}
                Some(Line::End(account)) => {
                    table.account = account;
                    return Ok(Some(table));
                }
                Some(Line::Head(_)) => return Err(self.wrong("a table begins before the one before it has ended")),
                None => {
                    return Err(Error::new(format!(
                        "the input ends after line {} in the middle of a table, of which {} rows were there",
                        self.number - 1,
                        table.rows.len()
                    )))
                }
            }
        }
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Table>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_table().transpose()
    }
}

/// Returns all tables in a text.
pub fn tables(text: &[u8]) -> Result<Vec<Table>> {
    Reader::new(text).collect()
}

enum Line {
    Head(Box<Table>),
    Row(Vec<Key>, Vec<Value>, Option<Box<Exemplar>>),
    End(Account),
    /// Lines of percentiles, which the reader computes from the rows instead, and of later types.
    Other,
}

impl Line {
    fn parse(line: &[u8]) -> serde_json::Result<Self> {
        #[derive(serde::Deserialize)]
        struct Tag<'a> {
            #[serde(rename = "type", borrow)]
            kind: Option<std::borrow::Cow<'a, str>>,
        }
        let row = || {
            serde_json::from_slice(line).map(|row: RawRow| match row.q {
                Some(IgnoredAny) => Self::Other,
                None => {
                    let kept = row
                        .saved
                        .into_iter()
                        .find(|(name, _)| name.starts_with("onmax("));
                    let exemplar = kept.and_then(|(_, kept)| kept).map(|kept| Exemplar {
                        value: kept.value.0,
                        fields: kept.row,
                    });
                    Self::Row(row.k, row.v, exemplar.map(Box::new))
                }
            })
        };
        // Most lines are rows, so they are tried first.
        if line.starts_with(b"{\"k\":") {
            return row();
        }
        match serde_json::from_slice::<Tag<'_>>(line)?.kind.as_deref() {
            // In a later version, members may have another meaning.
            Some("hist") if is_newer(line).is_some() => Err(de::Error::custom("it is newer")),
            Some("hist") => {
                serde_json::from_slice(line).map(|head: Head| Self::Head(Box::new(head.into())))
            }
            Some("end") => serde_json::from_slice(line).map(|end: End| Self::End(end.into())),
            Some(_) => Ok(Self::Other),
            None => row(),
        }
    }
}

#[derive(serde::Deserialize)]
struct Head {
    event: String,
    trigger: String,
    state: State,
    #[serde(default = "yes")]
    consumed: bool,
    epoch: u64,
    from: u64,
    to: u64,
    real: u64,
    keys: Vec<KeyColumn>,
    vals: Vec<ValueColumn>,
    overhead: Option<Overhead>,
}

#[derive(serde::Deserialize)]
struct Overhead {
    ppm: u64,
}

fn yes() -> bool {
    true
}

#[derive(PartialEq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Active,
    Paused,
}

impl From<Head> for Table {
    fn from(head: Head) -> Self {
        Self {
            event: head.event,
            trigger: head.trigger,
            active: head.state == State::Active,
            consumed: head.consumed,
            span: Some(Span {
                epoch: head.epoch,
                from: head.from,
                to: head.to,
                real: head.real,
            }),
            keys: head.keys,
            values: head.vals,
            rows: Vec::new(),
            account: Account::default(),
            cost: head.overhead.map(|overhead| overhead.ppm),
        }
    }
}

#[derive(serde::Deserialize)]
struct End {
    hits: u64,
    dropped_full: u64,
    #[serde(flatten)]
    losses: Losses,
}

impl From<End> for Account {
    fn from(end: End) -> Self {
        Self {
            hits: end.hits,
            full: end.dropped_full,
            losses: Some(end.losses),
        }
    }
}

#[derive(serde::Deserialize)]
struct RawRow {
    k: Vec<Key>,
    v: Vec<Value>,
    q: Option<IgnoredAny>,
    #[serde(default)]
    saved: BTreeMap<String, Option<Kept>>,
}

/// The values that a handler keeps with a row.
#[derive(serde::Deserialize)]
struct Kept {
    value: Integer,
    #[serde(default)]
    row: BTreeMap<String, Key>,
}

/// A signed or unsigned number of 64 bits.
struct Integer(Number);

impl<'de> Deserialize<'de> for Integer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Numbers;
        impl Visitor<'_> for Numbers {
            type Value = Integer;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an integer")
            }
            fn visit_u64<E>(self, n: u64) -> std::result::Result<Integer, E> {
                Ok(Integer(n.into()))
            }
            fn visit_i64<E>(self, n: i64) -> std::result::Result<Integer, E> {
                Ok(Integer(n.into()))
            }
        }
        deserializer.deserialize_any(Numbers)
    }
}

/// The value of a row in a column of values.
enum Value {
    Integer(Number),
    /// A number in hundredths; exact below 2^46.
    Decimal(Number),
    Nothing,
}

impl Value {
    /// Returns the number for this column; `None` if the column has numbers of another kind.
    fn of(&self, column: &ValueColumn) -> Option<Number> {
        match *self {
            Self::Integer(number) => (!column.agg.has_decimals()).then_some(number),
            Self::Decimal(number) => column.agg.has_decimals().then_some(number),
            Self::Nothing => (column.agg != Agg::Sum).then_some(UNKNOWN),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Values;
        impl Visitor<'_> for Values {
            type Value = Value;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or null")
            }
            fn visit_u64<E>(self, n: u64) -> std::result::Result<Value, E> {
                Ok(Value::Integer(n.into()))
            }
            fn visit_i64<E>(self, n: i64) -> std::result::Result<Value, E> {
                Ok(Value::Integer(n.into()))
            }
            fn visit_f64<E>(self, n: f64) -> std::result::Result<Value, E> {
                Ok(Value::Decimal((n * 100.0).round() as Number))
            }
            fn visit_unit<E>(self) -> std::result::Result<Value, E> {
                Ok(Value::Nothing)
            }
        }
        deserializer.deserialize_any(Values)
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_any(Keys)
    }
}

struct Keys;

impl<'de> Visitor<'de> for Keys {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_u64<E>(self, n: u64) -> std::result::Result<Key, E> {
        Ok(Key::Number(n.into()))
    }

    fn visit_i64<E>(self, n: i64) -> std::result::Result<Key, E> {
        Ok(Key::Number(n.into()))
    }

    fn visit_str<E>(self, text: &str) -> std::result::Result<Key, E> {
        Ok(Key::Text(text.into()))
    }

    fn visit_unit<E>(self) -> std::result::Result<Key, E> {
        // A line of percentiles, which is skipped, has null in place of the interval.
        Ok(Key::Text(String::new()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Key, A::Error> {
        #[derive(serde::Deserialize)]
        #[serde(field_identifier, rename_all = "lowercase")]
        enum Member {
            Addr,
            Sym,
            Pid,
            Comm,
            Nr,
            Name,
            Stack,
            I,
            Lo,
            Hi,
            #[serde(other)]
            Other,
        }
        let (mut address, mut text, mut number, mut name, mut stack) =
            (None, None, None, None, None);
        let (mut index, mut lo, mut hi) = (None, None, None);
        while let Some(member) = map.next_key()? {
            match member {
                Member::Addr => {
                    let hex: String = map.next_value()?;
                    let digits = hex.strip_prefix("0x").unwrap_or(&hex);
                    address = Some(u64::from_str_radix(digits, 16).map_err(de::Error::custom)?);
                }
                Member::Sym | Member::Comm => text = Some(map.next_value::<String>()?),
                Member::Pid | Member::Nr => number = Some(map.next_value::<Integer>()?.0),
                Member::Name => name = Some(map.next_value::<Option<String>>()?),
                Member::Stack => stack = Some(map.next_value()?),
                Member::I => index = Some(map.next_value()?),
                Member::Lo => lo = Some(map.next_value::<Integer>()?.0),
                Member::Hi => hi = Some(map.next_value::<Integer>()?.0),
                Member::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        match (address, text, number, name, stack, lo, hi) {
            (Some(address), Some(name), None, None, None, None, None) => {
                Ok(Key::Symbol { address, name })
            }
            (None, Some(comm), Some(pid), None, None, None, None) => Ok(Key::Task { pid, comm }),
            (None, None, Some(number), Some(name), None, None, None) => {
                Ok(Key::Syscall { number, name })
            }
            (None, None, None, None, Some(stack), None, None) => Ok(Key::Stack(stack)),
            (None, None, None, None, None, Some(lo), Some(hi)) => Ok(Key::Bucket {
                bucket: Bucket { lo, hi },
                index,
            }),
            _ => Err(de::Error::custom("a key of no known kind")),
        }
    }
}

/// Writes a table as lines that a [`Reader`] can read.
///
/// Numbers that text lacks are 0: the times of a table of C's implementation, and the losses that C does not count.
pub fn write(table: &Table, out: &mut impl Write) -> io::Result<()> {
    let mut line = String::new();
    head(table, &mut line);
    out.write_all(line.as_bytes())?;
    if !table.consumed {
        return Ok(());
    }
    for row in &table.rows {
        line.clear();
        line.push_str("{\"k\":[");
        for (i, one) in row.keys.iter().enumerate() {
            comma(&mut line, i);
            key(one, &mut line);
        }
        line.push_str("],\"v\":[");
        for (i, (&value, column)) in row.values.iter().zip(&table.values).enumerate() {
            comma(&mut line, i);
            line.push_str(&units::plain_value(value, column.agg).unwrap_or("null".into()));
        }
        line.push(']');
        if let Some(exemplar) = &row.exemplar {
            let _ = write!(
                line,
                ",\"saved\":{{\"onmax($lat)\":{{\"value\":{},\"row\":{{",
                exemplar.value
            );
            for (i, (name, field)) in exemplar.fields.iter().enumerate() {
                comma(&mut line, i);
                string(name, &mut line);
                line.push(':');
                key(field, &mut line);
            }
            line.push_str("}}}");
        }
        line.push_str("}\n");
        out.write_all(line.as_bytes())?;
    }
    let Account { hits, full, losses } = table.account;
    let losses = losses.unwrap_or(Losses {
        calls: hits.saturating_add(full),
        ..Losses::default()
    });
    write!(
        out,
        "{{\"type\":\"end\",\"entries\":{},\"calls\":{},\"hits\":{hits},\"dropped_full\":{full},\"dropped_nested\":{},\
         \"ignored\":{},\"lost_saves\":{},\"lost_traces\":{}",
        table.rows.len(),
        losses.calls,
        losses.nested,
        losses.ignored,
        losses.saves,
        losses.traces
    )?;
    for (name, number) in [
        ("retired", losses.retired),
        ("expired", losses.expired),
        ("overwritten", losses.overwritten),
    ] {
        if let Some(number) = number {
            write!(out, ",\"{name}\":{number}")?;
        }
    }
    out.write_all(b"}\n")
}

fn head(table: &Table, line: &mut String) {
    line.push_str("{\"v\":1,\"type\":\"hist\",\"event\":");
    string(&table.event, line);
    line.push_str(",\"trigger\":");
    string(&table.trigger, line);
    let state = if table.active { "active" } else { "paused" };
    let span = table.span.unwrap_or(Span {
        epoch: 1,
        from: 0,
        to: 0,
        real: 0,
    });
    let _ = write!(line, ",\"state\":\"{state}\"");
    if !table.consumed {
        line.push_str(",\"consumed\":false");
    }
    let _ = write!(
        line,
        ",\"epoch\":{},\"from\":{},\"to\":{},\"real\":{},\"keys\":[",
        span.epoch, span.from, span.to, span.real
    );
    let unit = |unit: Option<Unit>, line: &mut String| {
        // The kernel has no units besides times.
        if let Some(unit) = unit.filter(|&unit| unit != Unit::Bytes) {
            let _ = write!(line, ",\"unit\":\"{}\"", unit.name());
        }
    };
    for (i, column) in table.keys.iter().enumerate() {
        comma(line, i);
        line.push_str("{\"name\":");
        string(&column.name, line);
        line.push_str(",\"kind\":");
        line.push_str(match column.kind {
            Kind::Number => "\"number\"",
            Kind::Text => "\"string\"",
            Kind::Symbol => "\"symbol\"",
            Kind::Execname => "\"execname\"",
            Kind::Syscall => "\"syscall\"",
            Kind::Stack => "\"stack\"",
            Kind::Log2 { .. } => "\"log2\"",
            Kind::Buckets { .. } => "\"buckets\"",
        });
        if let Kind::Log2 { scale } = column.kind {
            let _ = write!(line, ",\"scale\":{scale}");
        }
        if let Kind::Buckets { width } = column.kind {
            let _ = write!(line, ",\"width\":{width}");
        }
        unit(column.unit, line);
        line.push('}');
    }
    line.push_str("],\"vals\":[");
    for (i, column) in table.values.iter().enumerate() {
        comma(line, i);
        line.push_str("{\"name\":");
        string(&column.name, line);
        if column.agg != Agg::Sum {
            let _ = write!(line, ",\"agg\":\"{}\"", column.agg.name());
        }
        unit(column.unit, line);
        line.push('}');
    }
    line.push_str("]}\n");
}

fn comma(line: &mut String, i: usize) {
    if i > 0 {
        line.push(',');
    }
}

fn key(key: &Key, line: &mut String) {
    // Writing to a string never fails.
    let _ = match key {
        Key::Number(number) => write!(line, "{number}"),
        Key::Text(text) => {
            string(text, line);
            Ok(())
        }
        Key::Symbol { address, name } => {
            let _ = write!(line, "{{\"addr\":\"{address:#x}\",\"sym\":");
            string(name, line);
            line.write_char('}')
        }
        Key::Task { pid, comm } => {
            let _ = write!(line, "{{\"pid\":{pid},\"comm\":");
            string(comm, line);
            line.write_char('}')
        }
        Key::Syscall { number, name } => {
            let _ = write!(line, "{{\"nr\":{number},\"name\":");
            match name {
                Some(name) => string(name, line),
                None => line.push_str("null"),
            }
            line.write_char('}')
        }
        Key::Stack(frames) => {
            line.push_str("{\"stack\":[");
            for (i, frame) in frames.iter().enumerate() {
                comma(line, i);
                string(frame, line);
            }
            line.write_str("]}")
        }
        Key::Bucket { bucket, index } => {
            line.push('{');
            if let Some(index) = index {
                let _ = write!(line, "\"i\":{index},");
            }
            write!(line, "\"lo\":{},\"hi\":{}}}", bucket.lo, bucket.hi)
        }
    };
}

/// Writes a string like the kernel does: printable ASCII unchanged, all else by its number.
fn string(text: &str, line: &mut String) {
    line.push('"');
    for character in text.chars() {
        match character {
            ' '..='~' if !matches!(character, '"' | '\\') => line.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    let _ = write!(line, "\\u{unit:04x}");
                }
            }
        }
    }
    line.push('"');
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    const TWO: &str = r#"{"v":1,"type":"hist","event":"sched:sched_switch","trigger":"hist:keys=next_comm,$lat.log2=3:vals=hitcount:sort=hitcount:size=2048","state":"active","epoch":3,"from":1000,"to":2000,"real":1700000000000000000,"keys":[{"name":"next_comm","kind":"string"},{"name":"lat","kind":"log2","scale":3,"unit":"ns"}],"vals":[{"name":"hitcount"}]}
{"k":["gawk",{"i":85,"lo":1435,"hi":1565}],"v":[88]}
{"k":["\u00fc\u0022",{"lo":0,"hi":0}],"v":[18446744073709551615]}
{"k":["gawk",null],"v":[88],"q":{"lat.p50":[1435,1565]}}
{"type":"end","entries":2,"groups":1,"calls":90,"hits":88,"dropped_full":0,"dropped_nested":0,"ignored":2,"lost_saves":0,"lost_traces":0}
{"type":"something new","v":5}
{"v":1,"type":"hist","event":"a:b","trigger":"hist:keys=x","state":"paused","consumed":false,"epoch":1,"from":0,"to":5,"real":6,"keys":[{"name":"x","kind":"buckets","width":10}],"vals":[{"name":"hitcount"}]}
"#;

    #[test]
    fn lines_become_tables() {
        let tables = tables(TWO.as_bytes()).unwrap();
        assert_eq!(tables.len(), 2);
        let table = &tables[0];
        assert_eq!(table.rows[1].values[0], Number::from(u64::MAX));
        assert_eq!(table.rows[1].keys[0], Key::Text("\u{fc}\"".into()));
        assert_eq!(table.keys[1].kind, Kind::Log2 { scale: 3 });
        assert_eq!(table.span.unwrap().seconds(), 1e-6);
        assert_eq!(table.account.losses.unwrap().ignored, 2);
        assert!(!tables[1].consumed);
        assert!(!tables[1].active);
    }

    #[test]
    fn the_kernels_lines_are_written_as_they_were() {
        let table = &tables(TWO.as_bytes()).unwrap()[0];
        let mut out = Vec::new();
        write(table, &mut out).unwrap();
        let again = String::from_utf8(out).unwrap();
        // The order of "unit" and "kind" may differ, but the lines of rows equal the kernel's.
        for line in TWO.lines().skip(1).take(2) {
            assert!(again.contains(line), "{again}");
        }
    }

    #[test]
    fn what_expires_is_written_where_it_is() {
        let end = "\"lost_traces\":0}\n";
        for expiring in ["", ",\"retired\":97,\"expired\":3,\"overwritten\":0"] {
            let kernel = format!("{}{expiring}}}\n", end.trim_end().trim_end_matches('}'));
            let table = &tables(TWO.replace(end, &kernel).as_bytes()).unwrap()[0];
            let mut out = Vec::new();
            write(table, &mut out).unwrap();
            let again = String::from_utf8(out).unwrap();
            assert!(again.ends_with(&kernel), "{again}");
        }
    }

    #[test]
    fn what_is_cut_is_said() {
        let lines: Vec<&str> = TWO.lines().collect();
        let cut = lines[..2].join("\n");
        assert!(tables(cut.as_bytes())
            .unwrap_err()
            .to_string()
            .contains("middle of a table"));
        assert!(tables(&TWO.as_bytes()[..700]).is_err());
        let headless = lines[1..].join("\n");
        assert!(tables(headless.as_bytes())
            .unwrap_err()
            .to_string()
            .starts_with("line 1 "));
        let twice = [lines[0], lines[0]].join("\n");
        assert!(tables(twice.as_bytes())
            .unwrap_err()
            .to_string()
            .starts_with("line 2 "));
    }

    #[test]
    fn what_is_no_sum_keeps_its_decimals() {
        let head = r#"{"v":1,"type":"hist","event":"a:b","trigger":"hist:keys=x","state":"active","epoch":1,"from":0,"to":1,"real":1,"keys":[{"name":"x","kind":"number"}],"vals":[{"name":"hitcount"},{"name":"y","agg":"max"},{"name":"y","agg":"avg"}]}"#;
        let end = r#"{"type":"end","entries":1,"calls":2,"hits":2,"dropped_full":0,"dropped_nested":0,"ignored":0,"lost_saves":0,"lost_traces":0}"#;
        let read = |row: &str| tables(format!("{head}\n{row}\n{end}\n").as_bytes());

        let all = read(r#"{"k":[1],"v":[2,7,-5.05]}"#).unwrap();
        assert_eq!(all[0].rows[0].values, [2, 7, -505]);
        let mut again = Vec::new();
        write(&all[0], &mut again).unwrap();
        assert!(String::from_utf8(again.clone())
            .unwrap()
            .contains(r#""v":[2,7,-5.05]"#));
        assert_eq!(tables(&again).unwrap(), all);
        let none = read(r#"{"k":[1],"v":[2,null,null]}"#).unwrap();
        assert_eq!(none[0].rows[0].values, [2, UNKNOWN, UNKNOWN]);

        for wrong in ["[2.5,7,1.00]", "[2,7.5,1.00]", "[2,7,1]", "[null,7,1.00]"] {
            let row = format!(r#"{{"k":[1],"v":{wrong}}}"#);
            assert!(
                read(&row)
                    .unwrap_err()
                    .to_string()
                    .contains("none of its column"),
                "{wrong}"
            );
        }
    }

    #[test]
    fn no_number_is_rounded() {
        let wrong = TWO.replace("[88]", "[88.5]");
        assert!(tables(wrong.as_bytes()).is_err());
        let large = TWO.replace("[88]", "[184467440737095516160]");
        assert!(tables(large.as_bytes()).is_err());
        let short = TWO.replace("[88]", "[88,1]");
        assert!(tables(short.as_bytes()).is_err());
    }

    #[test]
    fn what_no_kernel_writes_is_refused() {
        for (right, wrong, said) in [
            ("\"scale\":3", "\"scale\":7", "line 1 "),
            ("\"scale\":3", "\"scale\":200", "the scale of a column"),
            ("\"width\":10", "\"width\":0", "the width of a column"),
            ("\"i\":85", "\"i\":85000000000", "line 2 "),
            (
                "\"i\":85",
                "\"i\":-9223372036854775808",
                "an interval is none",
            ),
        ] {
            let text = TWO.replace(right, wrong);
            let error = tables(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        let endless = Reader::new(io::BufReader::new(io::repeat(b' '))).next();
        let error = endless.unwrap().unwrap_err().to_string();
        assert!(error.contains("longer than 16 MiB"), "{error}");
    }

    fn bytes() -> impl Strategy<Value = String> {
        prop::collection::vec(0u8..=255, 0..20)
            .prop_map(|bytes| bytes.into_iter().map(char::from).collect())
    }

    fn number() -> impl Strategy<Value = Number> {
        prop_oneof![
            any::<u64>().prop_map(Number::from),
            any::<i64>().prop_map(Number::from)
        ]
    }

    fn cell() -> impl Strategy<Value = (Kind, Key)> {
        prop_oneof![
            number().prop_map(|n| (Kind::Number, Key::Number(n))),
            bytes().prop_map(|text| (Kind::Text, Key::Text(text))),
            (any::<u64>(), bytes())
                .prop_map(|(address, name)| (Kind::Symbol, Key::Symbol { address, name })),
            (number(), bytes()).prop_map(|(pid, comm)| (Kind::Execname, Key::Task { pid, comm })),
            (number(), prop::option::of(bytes()))
                .prop_map(|(number, name)| (Kind::Syscall, Key::Syscall { number, name })),
            prop::collection::vec(bytes(), 0..5)
                .prop_map(|frames| (Kind::Stack, Key::Stack(frames))),
            (number(), number(), -64..=64i64, 0..7u8).prop_map(|(lo, hi, index, scale)| {
                let bucket = Bucket { lo, hi };
                (
                    Kind::Log2 { scale },
                    Key::Bucket {
                        bucket,
                        index: Some(index),
                    },
                )
            }),
            (number(), number(), 1..=u64::MAX).prop_map(|(lo, hi, width)| {
                let bucket = Bucket { lo, hi };
                (
                    Kind::Buckets { width },
                    Key::Bucket {
                        bucket,
                        index: None,
                    },
                )
            }),
        ]
    }

    prop_compose! {
        /// Generates any table with one row.
        pub(crate) fn any_table()(
            cells in prop::collection::vec(cell(), 1..4),
            values in prop::collection::vec(number(), 1..4),
            names in prop::collection::vec(bytes(), 8),
            numbers in prop::collection::vec(any::<u64>(), 11),
            expiring in prop::collection::vec(prop::option::of(any::<u64>()), 3),
            unit in prop::option::of(prop_oneof![Just(Unit::Ns), Just(Unit::Us)]),
            active in any::<bool>(),
            exemplar in prop::option::of((number(), bytes(), bytes().prop_map(Key::Text))),
        ) -> Table {
            let n = numbers;
            Table {
                event: names[0].clone(),
                trigger: names[1].clone(),
                active,
                consumed: true,
                span: Some(Span { epoch: n[0], from: n[1], to: n[2], real: n[3] }),
                keys: cells
                    .iter()
                    .zip(&names[2..])
                    .map(|(&(kind, _), name)| KeyColumn { name: name.clone(), kind, unit })
                    .collect(),
                values: values
                    .iter()
                    .zip(&names[5..])
                    .map(|(_, name)| ValueColumn { unit, ..ValueColumn::of_sums(name.clone()) })
                    .collect(),
                rows: vec![Row {
                    keys: cells.into_iter().map(|(_, key)| key).collect(),
                    values,
                    exemplar: exemplar.map(|(value, name, key)| Box::new(Exemplar {
                        value,
                        fields: [(name, key)].into(),
                    })),
                }],
                account: Account {
                    hits: n[4],
                    full: n[5],
                    losses: Some(Losses {
                        calls: n[6],
                        nested: n[7],
                        ignored: n[8],
                        saves: n[9],
                        traces: n[10],
                        retired: expiring[0],
                        expired: expiring[1],
                        overwritten: expiring[2],
                    }),
                },
                cost: None,
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(table in any_table()) {
            let mut out = Vec::new();
            write(&table, &mut out).unwrap();
            prop_assert!(out.is_ascii());
            prop_assert_eq!(tables(&out).unwrap(), vec![table]);
        }

        #[test]
        fn no_text_makes_it_panic(text in bytes(), at in 0..TWO.len()) {
            let broken = [&TWO[..at], &text, &TWO[at..]].concat();
            let _ = tables(broken.as_bytes());
            let _ = tables(&TWO.as_bytes()[..at]);
        }
    }
}
