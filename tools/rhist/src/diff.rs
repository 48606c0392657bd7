// SPDX-License-Identifier: MIT OR Apache-2.0

//! Compares two recordings of one question: rates, distributions, and bounds of the shift of each percentile.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::error::Result;
use crate::model::{Bucket, Distribution, Key, KeyColumn, Number, Table};
use crate::output::columns;
use crate::quantile::{quantile, Percent};
use crate::record::{Loaded, Series};
use crate::units::{self, Round};

/// The most lines that a distribution takes.
const LINES: usize = 24;

/// The longest bar, in characters.
const BAR: usize = 20;

/// Which parts of a comparison to show.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The percentiles to compare.
    pub percents: Vec<Percent>,
    /// The number of groups to compare.
    pub top: usize,
    /// Whether bars may have characters beyond ASCII.
    pub blocks: bool,
}

/// Returns the comparison of two series as text.
pub fn compare(a: (&Loaded, &Series), b: (&Loaded, &Series), wanted: &Wanted) -> Result<String> {
    let (before, after) = (&a.1.sum.table, &b.1.sum.table);
    comparable(before, after)?;
    let mut out = String::new();
    for (side, (loaded, series)) in [("A", a), ("B", b)] {
        let _ = writeln!(out, "{side}: {}", said(loaded, series));
    }
    let groups = paired(before, after);
    let all = Pair {
        name: "all".to_owned(),
        sides: [sum(&groups, 0), sum(&groups, 1)],
    };
    rates(&all, &groups, [a.1, b.1], wanted.top, &mut out);
    if let Some(column) = before.interval() {
        shifts(&all, &groups, column, wanted, &mut out);
        distributions(&all, column, wanted.blocks, &mut out);
    }
    Ok(out)
}

/// Refuses tables that have different keys.
pub fn comparable(before: &Table, after: &Table) -> Result<()> {
    let same = |a: &KeyColumn, b: &KeyColumn| {
        a.name == b.name && a.unit == b.unit && a.kind.is_interval() == b.kind.is_interval()
    };
    let columns = before.keys.len() == after.keys.len()
        && before.keys.iter().zip(&after.keys).all(|(a, b)| same(a, b));
    match columns {
        true => Ok(()),
        false => Err(error!(
            "the two have different keys, {} and {}, so they cannot be compared; record the same question twice",
            names(before),
            names(after)
        )),
    }
}

fn names(table: &Table) -> String {
    let names = table.keys.iter().map(|key| units::text(&key.name));
    names.collect::<Vec<_>>().join(",")
}

fn said(loaded: &Loaded, series: &Series) -> String {
    let table = &series.sum.table;
    let time = series
        .seconds()
        .map_or_else(String::new, |seconds| format!(" in {seconds:.1} s"));
    let hits = units::count(series.hits().into());
    let title = match loaded.title == loaded.name {
        true => String::new(),
        false => format!("{}: ", loaded.title),
    };
    let epochs = match series.epochs.len() {
        1 => "1 epoch".to_owned(),
        more => format!("{more} epochs"),
    };
    format!(
        "{}: {title}{epochs}{time}, {hits} hits of {}",
        loaded.name,
        units::text(&table.event)
    )
}

/// A group's hits in one of the two recordings.
#[derive(Debug, Clone, Default)]
struct Side {
    hits: u64,
    distribution: Distribution,
}

/// A group in both recordings.
#[derive(Debug, Clone)]
struct Pair {
    name: String,
    sides: [Side; 2],
}

impl Pair {
    fn hits(&self) -> u64 {
        self.sides[0].hits.max(self.sides[1].hits)
    }
}

/// Returns the groups of both tables, most hits first.
fn paired(before: &Table, after: &Table) -> Vec<Pair> {
    let mut pairs: BTreeMap<Vec<Key>, Pair> = BTreeMap::new();
    for (side, table) in [before, after].into_iter().enumerate() {
        for group in table.groups() {
            let name = table.words_of(&group).collect::<Vec<_>>().join(", ");
            // Addresses differ from one kernel's boot to the next, so only names are compared.
            let keys = group.keys.into_iter().map(|key| match key {
                Key::Symbol { name, .. } => Key::Symbol { address: 0, name },
                key => key,
            });
            let pair = pairs.entry(keys.collect()).or_insert_with(|| Pair {
                name,
                sides: Default::default(),
            });
            let place = &mut pair.sides[side];
            place.hits += table.hits_of(&group.values);
            let both = [&place.distribution, &group.distribution];
            place.distribution = Distribution::of(both.into_iter());
        }
    }
    let mut pairs: Vec<Pair> = pairs.into_values().collect();
    // Groups with equal hits stay in the order of their keys.
    pairs.sort_by_key(|pair| std::cmp::Reverse(pair.hits()));
    pairs
}

/// Returns the sum of all groups, for one of the recordings.
fn sum(groups: &[Pair], side: usize) -> Side {
    let sides = || groups.iter().map(|pair| &pair.sides[side]);
    Side {
        hits: sides().map(|side| side.hits).sum(),
        distribution: Distribution::of(sides().map(|side| &side.distribution)),
    }
}

/// Writes the rate of each group in both recordings, and which groups are new or have vanished.
fn rates(all: &Pair, groups: &[Pair], series: [&Series; 2], top: usize, out: &mut String) {
    // Recordings of different length are compared by their hits in a second.
    let seconds = [series[0].seconds(), series[1].seconds()];
    let per_second = match seconds {
        [Some(a), Some(b)] => Some([a, b]),
        _ => None,
    };
    let titles = match per_second {
        Some(_) => ["", "A hits/s", "B hits/s", "change"],
        None => ["", "A hits", "B hits", "change"],
    };
    let mut lines = vec![titles.map(str::to_owned).to_vec()];
    let shown = groups.iter().filter(|pair| !pair.name.is_empty()).take(top);
    for pair in [all].into_iter().chain(shown) {
        let hits = [pair.sides[0].hits, pair.sides[1].hits];
        let rates = match per_second {
            Some(seconds) => [hits[0] as f64 / seconds[0], hits[1] as f64 / seconds[1]],
            None => hits.map(|hits| hits as f64),
        };
        let cell = |side: usize| match per_second {
            Some(_) => format!("{:.1}", rates[side]),
            None => units::count(hits[side].into()),
        };
        let change = match hits {
            [0, 0] => String::new(),
            [0, _] => "new".to_owned(),
            [_, 0] => "vanished".to_owned(),
            _ => format!("{:+.1} %", (rates[1] / rates[0] - 1.0) * 100.0),
        };
        lines.push(vec![pair.name.clone(), cell(0), cell(1), change]);
    }
    out.push('\n');
    out.push_str(&columns(&lines, |i| i == 0));
    more(groups, top, out);
    let only = |here: usize| {
        let is_only = |pair: &&Pair| pair.sides[here].hits > 0 && pair.sides[1 - here].hits == 0;
        groups.iter().filter(is_only).count()
    };
    let (vanished, new) = (only(0), only(1));
    if vanished + new > 0 && groups.len() > 1 {
        let _ = writeln!(out, "{new} new in B, {vanished} vanished");
    }
}

fn more(groups: &[Pair], top: usize, out: &mut String) {
    let named = groups.iter().filter(|pair| !pair.name.is_empty()).count();
    if let Some(more) = named.checked_sub(top).filter(|&more| more > 0) {
        let _ = writeln!(
            out,
            "and {} more; --top shows them",
            units::count(more as Number)
        );
    }
}

/// Returns the bounds between which a percentile has moved; each shift in between is possible.
pub fn shift(before: Bucket, after: Bucket) -> Bucket {
    Bucket {
        lo: after.lo - before.hi,
        hi: after.hi - before.lo,
    }
}

fn shifts(all: &Pair, groups: &[Pair], column: &KeyColumn, wanted: &Wanted, out: &mut String) {
    let name = units::text(&column.name);
    let mut titles = vec![String::new()];
    for percent in &wanted.percents {
        titles.extend([
            format!("A {name}.p{percent}"),
            format!("B {name}.p{percent}"),
            "shift".to_owned(),
        ]);
    }
    let mut lines = vec![titles];
    let both = groups
        .iter()
        .filter(|pair| !pair.name.is_empty() && pair.sides.iter().all(|side| side.hits > 0));
    for pair in [all].into_iter().chain(both.take(wanted.top)) {
        let mut line = vec![pair.name.clone()];
        for &percent in &wanted.percents {
            let found = [0, 1].map(|side| quantile(&pair.sides[side].distribution, percent));
            let cell = |bucket: Option<Bucket>| {
                bucket.map_or_else(|| "-".to_owned(), |b| units::interval(b, column.unit))
            };
            line.extend(found.map(cell));
            line.push(match found {
                [Some(before), Some(after)] => moved(shift(before, after), column),
                _ => String::new(),
            });
        }
        lines.push(line);
    }
    out.push('\n');
    out.push_str(&columns(&lines, |i| i == 0));
}

/// Returns a shift in words, which say so if there may be none.
fn moved(shift: Bucket, column: &KeyColumn) -> String {
    let number = |number: Number, round: Round| {
        let text = units::value(number, column.unit, round);
        let sign = if number > 0 { "+" } else { "" };
        format!("{sign}{text}")
    };
    let (lo, hi) = (number(shift.lo, Round::Down), number(shift.hi, Round::Up));
    match (shift.lo, shift.hi) {
        (0, 0) => "none".to_owned(),
        (..=0, 0..) => format!("within {lo}..{hi}"),
        _ => format!("{lo}..{hi}"),
    }
}

/// Returns the intervals of both recordings, merged until no interval of one lies partly in an interval of the other.
fn common(sides: &[Side; 2]) -> Vec<(Bucket, [u64; 2])> {
    let mut all: Vec<(Bucket, [u64; 2])> = Vec::new();
    let mut buckets: Vec<(Bucket, usize, u64)> = Vec::new();
    for (i, side) in sides.iter().enumerate() {
        let own = side.distribution.buckets.iter();
        buckets.extend(own.map(|&(bucket, hits)| (bucket, i, hits)));
    }
    buckets.sort_unstable();
    for (bucket, side, hits) in buckets {
        match all.last_mut() {
            Some((last, sums)) if bucket.lo <= last.hi => {
                last.hi = last.hi.max(bucket.hi);
                sums[side] += hits;
            }
            _ => {
                let mut sums = [0; 2];
                sums[side] = hits;
                all.push((bucket, sums));
            }
        }
    }
    all
}

fn distributions(all: &Pair, column: &KeyColumn, blocks: bool, out: &mut String) {
    let rows = common(&all.sides);
    let together = rows.len().div_ceil(LINES).max(1);
    let rows: Vec<(Bucket, [u64; 2])> = rows
        .chunks(together)
        .map(|rows| {
            let hits = [0, 1].map(|side| rows.iter().map(|(_, hits)| hits[side]).sum());
            let bucket = Bucket {
                lo: rows[0].0.lo,
                hi: rows[rows.len() - 1].0.hi,
            };
            (bucket, hits)
        })
        .collect();
    let totals = [all.sides[0].hits, all.sides[1].hits];
    let share = |hits: u64, side: usize| hits as f64 / totals[side].max(1) as f64;
    let most = rows
        .iter()
        .flat_map(|(_, hits)| [share(hits[0], 0), share(hits[1], 1)])
        .fold(0.0, f64::max);
    let label = |row: &(Bucket, _)| units::interval(row.0, column.unit);
    let labels: Vec<String> = rows.iter().map(label).collect();
    let name = units::text(&column.name);
    let lengths = labels
        .iter()
        .chain([&name])
        .map(|label| label.chars().count());
    let width = lengths.max().unwrap_or_default();
    let _ = writeln!(out, "\n{name:>width$}  {:<side$} B", "A", side = BAR + 9);
    for ((_, hits), label) in rows.iter().zip(labels) {
        let mut line = format!("{label:>width$} ");
        for side in [0, 1] {
            let eighths = match share(hits[side], side) {
                share if share > 0.0 => ((share / most * 8.0 * BAR as f64).round() as usize).max(1),
                _ => 0,
            };
            let _ = write!(
                line,
                " {:<BAR$} {:>8}",
                bar(eighths, blocks),
                units::percent(hits[side], totals[side])
            );
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

/// Returns a bar with a length in eighths of a character.
fn bar(eighths: usize, blocks: bool) -> String {
    if !blocks {
        return "#".repeat(eighths.div_ceil(8));
    }
    const PARTS: [char; 7] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let mut bar = "█".repeat(eighths / 8);
    bar.extend((eighths % 8).checked_sub(1).map(|part| PARTS[part]));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::{load, three_epochs};
    use crate::record::{Header, Recorder};
    use crate::testing::table;
    use proptest::prelude::*;

    fn recording(rows: &[(i128, u32, u64)]) -> Loaded {
        let header = Header::new(Vec::new(), "runq".into(), String::new(), String::new());
        let mut out = Vec::new();
        let mut recorder = Recorder(&mut out);
        recorder.begin(&header).unwrap();
        recorder.table(&table(rows)).unwrap();
        load(&out).unwrap()
    }

    fn wanted() -> Wanted {
        Wanted {
            percents: vec!["50".parse().unwrap(), "99".parse().unwrap()],
            top: 10,
            blocks: true,
        }
    }

    fn text(a: &Loaded, b: &Loaded) -> String {
        compare(
            (a, a.series(None).unwrap()),
            (b, b.series(None).unwrap()),
            &wanted(),
        )
        .unwrap()
    }

    #[test]
    fn two_are_side_by_side() {
        let a = load(&three_epochs()).unwrap();
        let b = recording(&[(7, 11, 100), (7, 12, 30), (8, 20, 5), (10, 4, 1)]);
        insta::assert_snapshot!("diff", text(&a, &b));
    }

    #[test]
    fn nothing_has_moved() {
        let a = recording(&[(7, 0, 3)]);
        let said = text(&a, &a);
        assert!(said.contains("+0.0 %"), "{said}");
        assert!(!said.contains("new"), "{said}");
    }

    #[test]
    fn other_keys_are_refused() {
        let a = recording(&[(7, 1, 3)]);
        let mut b = recording(&[(7, 1, 3)]);
        b.series[0].sum.table.keys[0].name = "comm".into();
        let error = compare((&a, &a.series[0]), (&b, &b.series[0]), &wanted()).unwrap_err();
        assert!(error.to_string().contains("pid,lat and comm,lat"));
    }

    proptest! {
        /// Checks that the distance of the true percentiles is within the bounds.
        #[test]
        fn a_shift_is_inside_its_bounds(
            a in prop::collection::vec(0u64..100_000, 1..100),
            b in prop::collection::vec(0u64..100_000, 1..100),
            (width_a, width_b) in (1u64..1000, 1u64..1000),
        ) {
            let distribution = |numbers: &[u64], width: u64| {
                let bucket = |n: u64| {
                    let lo = Number::from(n / width * width);
                    (Bucket { lo, hi: lo + Number::from(width) - 1 }, 1)
                };
                let buckets = numbers.iter().map(|&n| bucket(n)).collect();
                Distribution { buckets, ..Distribution::default() }.fold(|bucket| bucket)
            };
            let median = |numbers: &[u64]| {
                let mut sorted = numbers.to_vec();
                sorted.sort_unstable();
                Number::from(sorted[numbers.len().div_ceil(2) - 1])
            };
            let percent: Percent = "50".parse().unwrap();
            let before = quantile(&distribution(&a, width_a), percent).unwrap();
            let after = quantile(&distribution(&b, width_b), percent).unwrap();
            let shift = shift(before, after);
            let truth = median(&b) - median(&a);
            prop_assert!(shift.lo <= truth && truth <= shift.hi);
        }

        /// Checks that common intervals lose no hit and never cut an interval.
        #[test]
        fn common_intervals_have_all_hits(
            a in prop::collection::btree_map(0u64..200, 1u64..9, 0..40),
            b in prop::collection::btree_map(0u64..100, 1u64..9, 0..40),
        ) {
            let side = |buckets: &BTreeMap<u64, u64>, width: u64| Side {
                hits: buckets.values().sum(),
                distribution: Distribution {
                    buckets: buckets
                        .iter()
                        .map(|(&n, &hits)| {
                            let lo = Number::from(n * width);
                            (Bucket { lo, hi: lo + Number::from(width) - 1 }, hits)
                        })
                        .collect(),
                    ..Distribution::default()
                },
            };
            let sides = [side(&a, 4), side(&b, 8)];
            let all = common(&sides);
            for i in [0, 1] {
                prop_assert_eq!(all.iter().map(|(_, hits)| hits[i]).sum::<u64>(), sides[i].hits);
            }
            prop_assert!(all.windows(2).all(|pair| pair[0].0.hi < pair[1].0.lo));
            prop_assert!(all.iter().all(|(bucket, _)| bucket.hi - bucket.lo < 8));
        }
    }
}
