// SPDX-License-Identifier: MIT OR Apache-2.0

//! Tables as text: aligned columns, and distributions as bars.

use std::io::{self, Write};

use anstyle::Style;

use crate::model::{
    Agg, Bucket, Distribution, Exemplar, Group, Key, KeyColumn, Kind, Number, Table, Unit, UNKNOWN,
};
use crate::output::{beside, blocks, widen};
use crate::quantile::{error_of, power_of_two, quantile, Percent};
use crate::units::{self, amount, Round, Scale};

/// The longest bar, in characters.
const BAR: usize = 40;
/// The widest column of keys, if columns are beside each other.
const WIDEST: usize = 48;
/// The most lines for intervals of one width; more intervals are merged.
const MOST_LINES: usize = 40;

/// The order of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sort {
    /// By the first sum in a table without intervals, else by hits; largest first.
    #[default]
    Largest,
    /// By the last percentile; largest first.
    Percentile,
    /// Rows sorted by their keys.
    Key,
}

/// The way to show a table.
#[derive(Debug, Clone, Default)]
pub struct Look {
    /// The names of the key columns except for the interval, in order.
    pub labels: Vec<String>,
    /// The names of numbers in key columns, by column.
    pub names: Vec<(String, Vec<(Number, String)>)>,
    /// The name of the measured number.
    pub heading: String,
    /// The percentiles to show.
    pub percents: Vec<Percent>,
    /// Whether to show the average, the total and the extremes, too.
    pub avg: bool,
    /// The most rows to show, 0 for all.
    pub top: usize,
    /// The order of the rows.
    pub sort: Sort,
    /// The unit for times; chosen for each number if it is `None`.
    pub scale: Option<Scale>,
    /// Whether the output is a terminal that shows colours.
    pub colour: bool,
    /// Whether bars may have characters beyond ASCII.
    pub blocks: bool,
    /// The number of columns of the terminal.
    pub width: usize,
    /// Whether to cut lines that are wider than the terminal.
    pub cut: bool,
}

/// Returns a key in the form in which it is shown.
pub fn key_text(key: &Key) -> String {
    match key {
        Key::Stack(frames) => {
            let frames: Vec<String> = frames
                .iter()
                .map(|frame| units::text(units::function(frame)))
                .collect();
            frames.join(" < ")
        }
        Key::Bucket { bucket, .. } => format!("{}..{}", bucket.lo, bucket.hi),
        key => units::key(key, None),
    }
}

impl Look {
    /// Returns how to show a table with the names that its columns have.
    pub fn of(table: &Table) -> Self {
        let labels = table.other_keys();
        let heading = table.interval().map(|column| units::text(&column.name));
        Self {
            labels: labels.map(|column| units::text(&column.name)).collect(),
            heading: heading.unwrap_or_default(),
            blocks: blocks(),
            ..Self::default()
        }
    }

    pub(super) fn key(&self, column: &str, key: &Key) -> String {
        if let Key::Number(number) = key {
            let names = self.names.iter().find(|(name, _)| name == column);
            let name = names.and_then(|(_, names)| names.iter().find(|(n, _)| n == number));
            if let Some((_, name)) = name {
                return name.clone();
            }
        }
        key_text(key)
    }

    /// Writes a table as text.
    pub fn write(&self, table: &Table, out: &mut impl Write) -> io::Result<()> {
        let groups = self.sorted(table);
        let interval = table.interval();
        let stacks = groups
            .iter()
            .any(|group| group.keys.iter().any(|key| matches!(key, Key::Stack(_))));
        match interval {
            _ if groups.is_empty() => writeln!(out, "  no hits"),
            Some(column) if self.labels.is_empty() => {
                self.histogram(&groups[0], column, out)?;
                self.percentiles(table, &groups[0], column, out)
            }
            _ if stacks => self.stacks(table, &groups, out),
            _ => self.columns(table, &groups, out),
        }
    }

    /// Returns the groups of a table in the order to show.
    pub fn sorted(&self, table: &Table) -> Vec<Group> {
        let mut groups = table.groups();
        let hits = table.hitcount().unwrap_or_default();
        let by = match table.interval_column() {
            Some(_) => hits,
            None => table.values.len().saturating_sub(1),
        };
        let last = self.percents.iter().max().copied();
        groups.sort_by_cached_key(|group| {
            let first = match self.sort {
                Sort::Largest => group.values.get(by).copied(),
                Sort::Percentile => last
                    .and_then(|last| quantile(&group.distribution, last))
                    .map(|bucket| bucket.hi),
                Sort::Key => None,
            };
            (std::cmp::Reverse(first), group.keys.clone())
        });
        groups
    }

    /// One row for each interval, with a bar.
    fn histogram(&self, group: &Group, column: &KeyColumn, out: &mut impl Write) -> io::Result<()> {
        let (all, unit) = (&group.distribution, column.unit);
        let shown = match column.kind {
            Kind::Buckets { width } if all.buckets.len() > MOST_LINES => {
                let width = Number::from(width.max(1));
                all.fold(|bucket| nearly_power_of_two(bucket, width))
                    .buckets
            }
            Kind::Buckets { .. } => all.buckets.clone(),
            _ => filled(&all.fold(power_of_two)),
        };
        let most = shown.iter().map(|&(_, n)| n).max().unwrap_or(1);
        // Both ends are rounded up, so that an interval begins with the number with which the previous one ends.
        let number = |n: Number| amount(n, unit, Round::Up, self.scale);
        let rows: Vec<(String, String, u64, String)> = shown
            .iter()
            .map(|&(bucket, n)| {
                let found = Exemplar::in_bucket(&group.exemplars, bucket);
                let said = found.map_or_else(String::new, |one| self.exemplar(one, unit));
                (number(bucket.lo), number(bucket.hi), n, said)
            })
            .collect();
        let low = rows.iter().map(|row| row.0.len()).max().unwrap_or(0);
        let high = rows.iter().map(|row| row.1.len()).max().unwrap_or(0);
        let heading = format!("{:>width$}", self.heading, width = low + high + 4);
        self.heading(&format!("  {heading} {:>12}  distribution", "count"), out)?;
        let said = rows.iter().map(|row| row.3.chars().count()).max();
        let said = said.filter(|&said| said > 0).map_or(0, |said| said + 2);
        let width = BAR
            .min(self.width.saturating_sub(low + high + 24 + said))
            .max(8);
        for (lo, hi, n, said) in &rows {
            let count = units::count((*n).into());
            let line = format!(
                "  {lo:>low$} .. {hi:>high$} {count:>12}  {:<width$}  {said}",
                self.bar(*n, most, width)
            );
            writeln!(out, "{}", self.line(line.trim_end()))?;
        }
        Ok(())
    }

    fn percentiles(
        &self,
        table: &Table,
        group: &Group,
        column: &KeyColumn,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let all = &group.distribution;
        let mut said: Vec<String> = self
            .percents
            .iter()
            .filter_map(|&percent| {
                let found = quantile(all, percent)?;
                Some(format!(
                    "p{percent} {}",
                    amount(found.hi, column.unit, Round::Up, self.scale)
                ))
            })
            .collect();
        let bound = error_of(column).unwrap_or_default();
        let hits = units::count(all.hits().into());
        if self.avg {
            let [avg, total, min, max] = self.aggregates(table, group);
            said.splice(0..0, [format!("avg {avg}"), format!("total {total}")]);
            said.extend([format!("min {min}"), format!("max {max}")]);
        } else if let Some(max) = self.largest(table) {
            let number = units::shown(group.values[max], &table.values[max], self.scale);
            said.push(format!("max {number}"));
        }
        match said.is_empty() {
            true => writeln!(out, "  {hits} hits"),
            false => {
                let line = format!("  {hits} hits  {}  ({bound})", said.join("  "));
                writeln!(out, "{}", self.line(&line))
            }
        }
    }

    /// Returns average, total, smallest and largest number of a group; bounds if the table has no such column.
    fn aggregates(&self, table: &Table, group: &Group) -> [String; 4] {
        let unit = table.interval().and_then(|column| column.unit);
        let of = |agg| {
            let column = table.of_measure(agg)?;
            Some(group.values[column]).filter(|&number| number != UNKNOWN)
        };
        let number = |number, round| amount(number, unit, round, self.scale);
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let all = &group.distribution;
        let hits = Number::from(all.hits());
        let (sum, min, max) = (of(Agg::Sum), of(Agg::Min), of(Agg::Max));
        let avg = sum
            .filter(|_| hits > 0)
            .map(|sum| number(sum / hits, Round::Down));
        let first = all.buckets.first();
        let last = all.buckets.last();
        let least = || first.map(|(bucket, _)| format!(">={}", number(bucket.lo, Round::Down)));
        let most = || last.map(|(bucket, _)| format!("<={}", number(bucket.hi, Round::Up)));
        [
            avg,
            sum.map(|sum| number(sum, Round::Down)),
            min.map(|min| number(min, Round::Down)).or_else(least),
            max.map(|max| number(max, Round::Up)).or_else(most),
        ]
        .map(or_none)
    }

    /// Returns the index of the column with the largest numbers, if it is to be shown beside the percentiles.
    fn largest(&self, table: &Table) -> Option<usize> {
        table
            .of_measure(Agg::Max)
            .filter(|_| !self.percents.is_empty())
    }

    /// Returns the groups that are to be shown.
    fn first<'a>(&self, groups: &'a [Group]) -> &'a [Group] {
        match self.top {
            0 => groups,
            top => &groups[..groups.len().min(top)],
        }
    }

    /// Writes one row for each group.
    fn columns(&self, table: &Table, groups: &[Group], out: &mut impl Write) -> io::Result<()> {
        let interval = table.interval_column();
        let hits = table.hitcount();
        // A table that is not grouped has one constant key, which is not shown.
        let keys = table.other_keys().filter(|_| !self.labels.is_empty());
        let keys: Vec<&str> = keys.map(|column| column.name.as_str()).collect();
        let labels = self.labels.iter();
        let mut titles: Vec<String> = labels.map(|label| label.to_uppercase()).collect();
        let left = titles.len();
        titles.push(match interval {
            Some(_) => "HITS".into(),
            None => self.heading.to_uppercase(),
        });
        let sums = (0..table.values.len()).filter(|&i| interval.is_none() && Some(i) != hits);
        let title = |sum: usize| units::text(&table.values[sum].title()).to_uppercase();
        titles.extend(sums.clone().map(title));
        let unit = interval.and_then(|column| table.keys[column].unit);
        let avg = self.avg && interval.is_some();
        if avg {
            titles.extend(["avg", "total"].map(str::to_owned));
        }
        if interval.is_some() {
            titles.extend(self.percents.iter().map(|percent| format!("p{percent}")));
        }
        let largest = self.largest(table).filter(|_| !avg);
        titles.extend(largest.map(|_| "max".to_owned()));
        if avg {
            titles.extend(["min", "max"].map(str::to_owned));
        }
        let shown = self.first(groups);
        let rows: Vec<Vec<String>> = shown
            .iter()
            .map(|group| {
                let mut cells: Vec<String> = keys
                    .iter()
                    .zip(&group.keys)
                    .map(|(column, key)| shortened(&self.key(column, key), WIDEST))
                    .collect();
                cells.push(hits.map_or_else(String::new, |hits| units::count(group.values[hits])));
                let value = |i: usize| units::shown(group.values[i], &table.values[i], self.scale);
                cells.extend(sums.clone().map(value));
                let aggregates = avg.then(|| self.aggregates(table, group));
                cells.extend(aggregates.iter().flat_map(|all| all[..2].to_vec()));
                if interval.is_some() {
                    for &percent in &self.percents {
                        let found = quantile(&group.distribution, percent);
                        cells.push(found.map_or_else(String::new, |found| {
                            amount(found.hi, unit, Round::Up, self.scale)
                        }));
                    }
                }
                cells.extend(largest.map(value));
                cells.extend(aggregates.iter().flat_map(|all| all[2..].to_vec()));
                cells
            })
            .collect();
        let mut widths = Vec::new();
        for cells in rows.iter().chain([&titles]) {
            widen(&mut widths, cells);
        }
        let line = |cells: &[String]| beside(cells, &widths, |i| i < left);
        let spark = interval.is_some().then(|| Spark::of(shown));
        let heading = match &spark {
            Some(spark) => format!("  {}  {}", line(&titles), spark.title(unit, self.scale)),
            None => format!("  {}", line(&titles)),
        };
        self.heading(heading.trim_end(), out)?;
        for (row, group) in rows.iter().zip(shown) {
            let bars = spark.as_ref().map_or_else(String::new, |spark| {
                spark.draw(&group.distribution, self.blocks)
            });
            let text = format!("  {}  {bars}", line(row));
            writeln!(out, "{}", self.line(text.trim_end()))?;
            let worst = group.exemplars.iter().max_by_key(|one| one.value);
            if let Some(worst) = worst {
                let text = format!("      {}", self.exemplar(worst, unit));
                writeln!(out, "{}", self.line(&text))?;
            }
        }
        self.more(groups.len() - shown.len(), out)?;
        if let (Some(column), false) = (interval, self.percents.is_empty()) {
            let bound = error_of(&table.keys[column]).unwrap_or_default();
            writeln!(out, "{}", self.line(&format!("  ({bound})")))?;
        }
        Ok(())
    }

    /// Writes one paragraph for each stack.
    fn stacks(&self, table: &Table, groups: &[Group], out: &mut impl Write) -> io::Result<()> {
        let shown = self.first(groups);
        for group in shown {
            let latency = table.values.iter().any(|column| column.name == "lat");
            let mut title: Vec<String> = table
                .values
                .iter()
                .zip(&group.values)
                .map(|(column, &value)| {
                    let name = match column.name.as_str() {
                        "hitcount" if latency && value == 1 => "time",
                        "hitcount" if latency => "times",
                        "hitcount" | "lat" => &self.heading,
                        _ => &units::text(&column.title()),
                    };
                    format!("{} {name}", units::shown(value, column, self.scale))
                })
                .collect();
            for (column, key) in table.other_keys().zip(&group.keys) {
                if !matches!(key, Key::Stack(_)) {
                    title.push(format!(
                        "{} {}",
                        units::text(&column.name),
                        self.key(&column.name, key)
                    ));
                }
            }
            self.heading(&format!("  {}", title.join("  ")), out)?;
            for key in &group.keys {
                let Key::Stack(frames) = key else { continue };
                for frame in frames {
                    let line = format!("      {}", units::text(units::function(frame)));
                    writeln!(out, "{}", self.line(&line))?;
                }
            }
        }
        self.more(groups.len() - shown.len(), out)
    }

    /// A hit as it is shown: its number, and which one it was.
    fn exemplar(&self, one: &Exemplar, unit: Option<Unit>) -> String {
        let field = |(name, key): (&String, &Key)| {
            format!("{}={}", Exemplar::short(name), self.key(name, key))
        };
        let fields = one.fields.iter().map(field);
        let number = amount(one.value, unit, Round::Up, self.scale);
        std::iter::once(number)
            .chain(fields)
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn more(&self, rows: usize, out: &mut impl Write) -> io::Result<()> {
        match rows {
            0 => Ok(()),
            _ => {
                let line = format!("  ... and {rows} more; --top 0 shows all");
                writeln!(out, "{}", self.line(&line))
            }
        }
    }

    /// A line, cut to the terminal if it is shown on one.
    pub(super) fn line(&self, text: &str) -> String {
        shortened(text, if self.cut { self.width } else { usize::MAX })
    }

    pub(super) fn heading(&self, text: &str, out: &mut impl Write) -> io::Result<()> {
        let style = match self.colour {
            true => Style::new().bold(),
            false => Style::new(),
        };
        writeln!(out, "{style}{}{style:#}", self.line(text))
    }

    fn bar(&self, n: u64, most: u64, width: usize) -> String {
        let eighths = u128::from(n) * width as u128 * 8 / u128::from(most.max(1));
        let eighths = usize::try_from(eighths).unwrap_or_default();
        if !self.blocks {
            return "#".repeat(eighths.div_ceil(8).min(width));
        }
        let part = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
        let mut bar = "█".repeat(eighths / 8);
        match (eighths % 8, n) {
            (0, 1..) if eighths == 0 => bar.push(part[1]),
            (0, _) => {}
            (rest, _) => bar.push(part[rest]),
        }
        bar
    }
}

/// Returns at most `width` characters of a text.
pub fn shortened(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        None => text.to_owned(),
        Some(_) => text.chars().take(width - 1).chain(['…']).collect(),
    }
}

/// Returns the range of intervals of this width that end in the same power of two.
fn nearly_power_of_two(bucket: Bucket, width: Number) -> Bucket {
    let power = power_of_two(bucket);
    Bucket {
        lo: power.lo / width * width,
        hi: (power.hi + 1) / width * width - 1,
    }
}

/// Returns all powers of two from the first one with hits to the last one.
fn filled(folded: &Distribution) -> Vec<(Bucket, u64)> {
    let (Some(&(first, _)), Some(&(last, _))) = (folded.buckets.first(), folded.buckets.last())
    else {
        return Vec::new();
    };
    let mut all = Vec::new();
    let mut bucket = first;
    while bucket.hi < last.hi {
        all.push((bucket, folded.hits_in(&bucket).unwrap_or(0)));
        // Intervals may differ from powers of two, for negative numbers.
        let next = power_of_two(Bucket {
            lo: bucket.hi + 1,
            hi: bucket.hi + 1,
        });
        if next.lo <= bucket.hi {
            return folded.buckets.clone();
        }
        bucket = next;
    }
    all.push((last, folded.buckets.last().map_or(0, |&(_, n)| n)));
    all
}

/// Small histograms of one line each, all over the same powers of two.
struct Spark {
    powers: Vec<Bucket>,
}

impl Spark {
    fn of(groups: &[Group]) -> Self {
        let all = Distribution::of(groups.iter().map(|group| &group.distribution));
        let powers = filled(&all.fold(power_of_two)).into_iter();
        Self {
            powers: powers.map(|(bucket, _)| bucket).collect(),
        }
    }

    fn title(&self, unit: Option<Unit>, scale: Option<Scale>) -> String {
        let first = self.powers.first().map(|bucket| bucket.lo);
        let last = self.powers.last().map(|bucket| bucket.hi);
        let [first, last] = [first, last]
            .map(|end| end.map_or_else(String::new, |n| amount(n, unit, Round::Up, scale)));
        let room = self
            .powers
            .len()
            .saturating_sub(first.len() + last.len() + 2);
        format!("{first} {} {last}", ".".repeat(room.max(2)))
    }

    fn draw(&self, distribution: &Distribution, blocks: bool) -> String {
        let levels: &[char] = match blocks {
            true => &['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
            false => &['.', ':', '-', '=', '+', '*', '#', '@'],
        };
        let folded = distribution.fold(power_of_two);
        let most = folded.buckets.iter().map(|&(_, n)| n).max();
        let most = u128::from(most.unwrap_or(1).max(1));
        let level = |n: u64| levels[(u128::from(n) * 7 / most) as usize];
        let level_of = |bucket| folded.hits_in(bucket).map_or(' ', level);
        self.powers.iter().map(level_of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{exemplify, table};

    fn look(labels: &[&str]) -> Look {
        Look {
            labels: labels.iter().map(|&label| label.into()).collect(),
            heading: "wait".into(),
            percents: vec!["50".parse().unwrap(), "99".parse().unwrap()],
            blocks: true,
            width: 80,
            ..Look::default()
        }
    }

    fn text(look: &Look, table: &Table) -> String {
        let mut out = Vec::new();
        look.write(table, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn groups_have_rows() {
        let shown = text(
            &look(&["pid"]),
            &table(&[(1, 10, 90), (1, 14, 10), (22, 12, 7)]),
        );
        assert_eq!(
            shown,
            "  PID  HITS     p50     p99  513ns .. 16.4us\n\
             \x20 1     100  1.03us  16.4us  █   ▁\n\
             \x20 22      7  4.10us  4.10us    █\n\
             \x20 (upper bounds, less than twice the true value)\n"
        );
    }

    #[test]
    fn one_group_is_a_histogram() {
        let mut one = table(&[(1, 10, 90), (1, 12, 9)]);
        one.keys.remove(0);
        for row in &mut one.rows {
            row.keys.remove(0);
        }
        let shown = text(&look(&[]), &one);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines.len(), 5, "{shown}");
        assert!(
            lines[1].starts_with("   513ns .. 1.03us           90  ████"),
            "{shown}"
        );
        assert!(lines[2].ends_with("            0"), "{shown:?}");
        assert_eq!(
            lines[4],
            "  99 hits  p50 1.03us  p99 4.10us  (upper bounds, less than twice the true value)"
        );
    }

    #[test]
    fn many_intervals_of_one_width_are_taken_together() {
        let wide = |lo: Number| Bucket { lo, hi: lo + 799 };
        for (lo, (first, last)) in [
            (0, (0, 799)),
            (800, (800, 1599)),
            (8000, (8000, 15_999)),
            (15_200, (8000, 15_999)),
            (16_000, (16_000, 31_999)),
        ] {
            let folded = nearly_power_of_two(wide(lo), 800);
            assert_eq!((folded.lo, folded.hi), (first, last), "{lo}");
        }
        let mut one = table(&(0..50).map(|i| (i, 1, 2)).collect::<Vec<_>>());
        one.keys.remove(0);
        one.keys[0].kind = Kind::Buckets { width: 800 };
        for (i, row) in (0..).zip(&mut one.rows) {
            row.keys = vec![Key::Bucket {
                bucket: wide(i * 800),
                index: None,
            }];
        }
        let shown = text(&look(&[]), &one);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines.len(), 9, "{shown}");
        assert!(
            lines[4].starts_with("  4.00us .. 8.00us           10  "),
            "{shown}"
        );
        assert!(lines[8].contains("100 hits  p50 20.0us"), "{shown}");
    }

    #[test]
    fn exemplars_say_which_hit_it_was() {
        let mut counted = table(&[(1, 10, 90), (1, 12, 9)]);
        exemplify(&mut counted, &[(1001, "make"), (3333, "a b")]);
        let rows = text(&look(&["pid"]), &counted);
        assert!(rows.contains("\n      3.34us cpu=1 comm=a b\n"), "{rows}");
        counted.keys.remove(0);
        counted
            .rows
            .iter_mut()
            .for_each(|row| drop(row.keys.remove(0)));
        let histogram = text(&look(&[]), &counted);
        let ends: Vec<&str> = histogram
            .lines()
            .skip(1)
            .map(|line| line.rsplit("  ").next().unwrap())
            .collect();
        assert_eq!(
            (ends[0], ends[2]),
            ("1.01us cpu=1 comm=make", "3.34us cpu=1 comm=a b"),
            "{histogram}"
        );
        assert!(
            histogram
                .lines()
                .take(4)
                .all(|line| line.chars().count() <= 80),
            "{histogram}"
        );
    }

    #[test]
    fn averages_are_beside_percentiles() {
        use crate::model::ValueColumn;
        let look = Look {
            avg: true,
            ..look(&["pid"])
        };
        // Two hits of at most 1024 ns and one of at most 2048 ns, counted as if each took that long.
        let mut counted = table(&[(7, 10, 2), (7, 11, 1)]);
        let row = |text: String| text.lines().nth(1).unwrap().to_owned();
        let bounds = row(text(&look, &counted));
        let shown = "  7       3  1.36us  4.09us  1.03us  2.05us  >=513ns  <=2.05us";
        assert!(bounds.starts_with(shown), "{bounds}");
        for (agg, numbers) in [(Agg::Min, [700, 1500]), (Agg::Max, [900, 1500])] {
            counted.values.push(ValueColumn {
                agg,
                ..counted.values[1].clone()
            });
            for (row, number) in counted.rows.iter_mut().zip(numbers) {
                row.values.push(number);
            }
        }
        let exact = row(text(&look, &counted));
        let shown = "  7       3  1.36us  4.09us  1.03us  1.50us  700ns  1.50us";
        assert!(exact.starts_with(shown), "{exact}");
        let whole = Look {
            labels: Vec::new(),
            ..look
        };
        counted.keys.remove(0);
        counted
            .rows
            .iter_mut()
            .for_each(|row| drop(row.keys.remove(0)));
        let said = text(&whole, &counted);
        let last =
            "3 hits  avg 1.36us  total 4.09us  p50 1.03us  p99 1.50us  min 700ns  max 1.50us  (";
        assert!(said.contains(last), "{said}");
    }

    #[test]
    fn lines_are_cut_to_a_terminal() {
        let wide = |cut| {
            let look = Look {
                width: 20,
                cut,
                colour: true,
                ..look(&["pid"])
            };
            let text = text(&look, &table(&[(1, 10, 90), (22, 12, 7)]));
            let plain = text.replace("\x1b[1m", "").replace("\x1b[0m", "");
            // The style is ended even if the line is cut.
            assert_eq!(
                text.matches("\x1b[1m").count(),
                text.matches("\x1b[0m").count()
            );
            plain
                .lines()
                .map(|line| line.chars().count())
                .max()
                .unwrap()
        };
        assert_eq!(wide(true), 20);
        assert!(wide(false) > 40);
    }

    #[test]
    fn rows_that_are_left_out_are_counted() {
        let look = Look {
            top: 1,
            ..look(&["pid"])
        };
        assert!(text(&look, &table(&[(1, 3, 1), (2, 3, 2)]))
            .contains("... and 1 more; --top 0 shows all"));
    }
}
