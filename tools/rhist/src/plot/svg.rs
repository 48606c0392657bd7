// SPDX-License-Identifier: MIT OR Apache-2.0

//! Histograms, distribution functions and heat maps as SVG.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::Axis;
use crate::error::Result;
use crate::grid::{level, Fold, HeatMap};
use crate::model::{Distribution, KeyColumn, Number, Table, Unit};
use crate::quantile::{error_of, quantile, Percent};
use crate::record::Series;
use crate::units::{self, Round};

/// The pictures that there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Picture {
    /// Hits of each interval, or of each row if there are none
    Histogram,
    /// Share of the hits up to each number, with its guaranteed band
    Cdf,
    /// Hits of each interval in each epoch
    Heat,
}

/// Width and height of a picture.
const SIZE: (u32, u32) = (960, 480);

/// The height of the title and the subtitle.
const HEAD: i32 = 56;

/// The horizontal position of a heat map's legend.
const LEGEND: i32 = 850;

/// The most bars or rows of cells in a picture.
const MOST_PLACES: usize = 160;

/// The most columns of cells in a picture.
const MOST_COLUMNS: usize = 400;

/// The most rows with a bar, for a table without intervals.
const MOST_BARS: usize = 24;

/// The most characters of a name beside a bar.
const NAME: usize = 38;

/// The most characters of the title and of the subtitle.
const TITLE: usize = 84;
const SUBTITLE: usize = 140;

const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
const FAINT: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);
const BAR: RGBColor = RGBColor(0x2f, 0x6d, 0xb3);

/// The colours of a heat map, from few hits to many.
const SHADES: [RGBColor; 10] = [
    RGBColor(0xe6, 0xee, 0xf6),
    RGBColor(0xc9, 0xdd, 0xee),
    RGBColor(0xa5, 0xc8, 0xe3),
    RGBColor(0x7a, 0xae, 0xd5),
    RGBColor(0x52, 0x93, 0xc5),
    RGBColor(0x34, 0x76, 0xb1),
    RGBColor(0x1f, 0x5a, 0x98),
    RGBColor(0x12, 0x41, 0x7b),
    RGBColor(0x0a, 0x2b, 0x5c),
    RGBColor(0x05, 0x18, 0x3b),
];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = std::result::Result<(), Box<dyn std::error::Error>>;

/// Draws one of the pictures as SVG.
pub fn draw(picture: Picture, title: &str, series: &Series) -> Result<String> {
    let table = &series.sum.table;
    let mut svg = String::new();
    let drawn = {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let drawn = match (picture, table.interval()) {
            (Picture::Histogram, Some(column)) => histogram(&area, title, series, column),
            (Picture::Histogram, None) => bars(&area, title, series),
            (Picture::Cdf, Some(column)) => cdf(&area, title, series, column),
            (Picture::Heat, Some(column)) => heat(&area, title, series, column),
            (_, None) => {
                return Err(error!(
                    "the keys of {} have no intervals (.log2 or .buckets), so there is only its histogram",
                    table.event
                ))
            }
        };
        drawn.and_then(|()| area.present().map_err(Into::into))
    };
    drawn.map_err(|e| error!("cannot draw the picture: {e}"))?;
    Ok(svg)
}

/// Draws the title and the subtitle; returns the area below them.
fn head<'a>(
    area: &Area<'a>,
    title: &str,
    subtitle: &str,
) -> std::result::Result<Area<'a>, Box<dyn std::error::Error>> {
    area.fill(&WHITE)?;
    let (head, rest) = area.split_vertically(HEAD);
    let write = |text: &str, most: usize, size: u32, y: i32| {
        let style = ("sans-serif", size).into_font().color(&INK);
        head.draw(&Text::new(cut(text, most), (16, y), style))
    };
    write(&units::plain(title), TITLE, 24, 12)?;
    write(subtitle, SUBTITLE, 16, 37)?;
    Ok(rest)
}

/// Returns the beginning of a text, with an ellipsis if the text is longer.
fn cut(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => text.chars().take(most - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

/// Returns the subtitle of all pictures: hits, duration, and losses.
fn account(series: &Series) -> String {
    let table = &series.sum.table;
    let mut text = format!(
        "{}, {} hits",
        units::text(&table.event),
        units::count(series.hits().into())
    );
    if let Some(span) = table.span.filter(|span| span.to > span.from) {
        let duration = units::value(Number::from(span.to - span.from), Some(Unit::Ns), Round::Up);
        text += &format!(" in {duration}");
    }
    let lost = table.account.losses.unwrap_or_default();
    let lost = table.account.full.saturating_add(lost.nested);
    if lost > 0 {
        text += &format!(", {} lost", units::count(lost.into()));
    }
    text
}

/// Returns the name of a column, some of its percentiles, and their precision, as text.
fn percentiles(table: &Table, column: &KeyColumn) -> String {
    let groups = table.groups();
    let distribution = Distribution::of(groups.iter().map(|group| &group.distribution));
    let said = ["50", "90", "99", "99.9"].iter().filter_map(|text| {
        let percent: Percent = text.parse().ok()?;
        Some(format!(
            "p{text} {}",
            units::interval(quantile(&distribution, percent)?, column.unit)
        ))
    });
    let mut texts: Vec<String> = said.collect();
    texts.extend(error_of(column));
    format!("{}: {}", name_of(column), texts.join(", "))
}

/// Returns the name of a column with its unit.
fn name_of(column: &KeyColumn) -> String {
    match column.unit {
        Some(unit) => format!("{} ({})", units::text(&column.name), unit.name()),
        None => units::text(&column.name),
    }
}

/// A part of an [`Axis`] with its marks, for plotters.
struct Scale {
    part: Range<f64>,
    marks: Vec<(f64, String)>,
}

impl Scale {
    fn new(axis: Axis, part: Range<f64>) -> Self {
        Self {
            marks: axis.marks(&part),
            part,
        }
    }
}

impl Ranged for Scale {
    type ValueType = f64;
    type FormatOption = NoDefaultFormatting;

    fn map(&self, &at: &f64, (first, last): (i32, i32)) -> i32 {
        let share = (at - self.part.start) / (self.part.end - self.part.start);
        first + (f64::from(last - first) * share).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match hint.weight().allow_light_points() {
            true => Vec::new(),
            false => self.marks.iter().map(|&(at, _)| at).collect(),
        }
    }

    fn range(&self) -> Range<f64> {
        self.part.clone()
    }
}

impl ValueFormatter<f64> for Scale {
    fn format_ext(&self, at: &f64) -> String {
        let mark = self.marks.iter().find(|(place, _)| place == at);
        mark.map_or_else(String::new, |(_, text)| text.clone())
    }
}

/// Returns the part of an axis that all intervals take, with a margin.
fn part_of(ranges: impl Iterator<Item = Range<f64>>) -> Range<f64> {
    let all = ranges
        .reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))
        .unwrap_or(0.0..1.0);
    let room = ((all.end - all.start) * 0.02).max(0.5);
    all.start - room..all.end + room
}

fn histogram(area: &Area<'_>, title: &str, series: &Series, column: &KeyColumn) -> Drawn {
    let slots = series.slots();
    let axis = Axis::new(column.kind, column.unit);
    let area = head(area, title, &account(series))?;
    let Some(fold) = Fold::of(column.kind, slots.iter().map(|(slot, _)| slot), MOST_PLACES) else {
        return empty(&area);
    };
    let mut hits = vec![0u64; fold.places];
    for (slot, count) in &slots {
        if let Some(sum) = fold.place(*slot).and_then(|place| hits.get_mut(place)) {
            *sum += count;
        }
    }
    let most = hits.iter().copied().max().unwrap_or_default();
    let part = part_of((0..fold.places).map(|place| axis.folded(&fold, place)));
    let mut chart = ChartBuilder::on(&area)
        .margin(16)
        .x_label_area_size(52)
        .y_label_area_size(76)
        .build_cartesian_2d(Scale::new(axis, part), 0.0..most as f64 * 1.05)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(FAINT)
        .light_line_style(WHITE)
        .label_style(("sans-serif", 15).into_font().color(&INK))
        .axis_desc_style(("sans-serif", 17).into_font().color(&INK))
        .x_desc(percentiles(&series.sum.table, column))
        .y_desc("hits of an interval")
        .y_label_formatter(&|&hits| super::mark(hits.round() as Number, None))
        .draw()?;
    chart.draw_series(
        hits.iter()
            .enumerate()
            .filter(|&(_, &count)| count > 0)
            .map(|(place, &count)| {
                let range = axis.folded(&fold, place);
                Rectangle::new(
                    [(range.start, 0.0), (range.end, count as f64)],
                    BAR.filled(),
                )
            }),
    )?;
    Ok(())
}

fn cdf(area: &Area<'_>, title: &str, series: &Series, column: &KeyColumn) -> Drawn {
    let slots = series.slots();
    let axis = Axis::new(column.kind, column.unit);
    let area = head(area, title, &account(series))?;
    let all: u64 = slots.iter().map(|&(_, hits)| hits).sum();
    if all == 0 {
        return empty(&area);
    }
    let part = part_of(slots.iter().map(|&(slot, _)| axis.slot(slot)));
    let end = part.end;
    let mut chart = ChartBuilder::on(&area)
        .margin(16)
        .x_label_area_size(52)
        .y_label_area_size(76)
        .build_cartesian_2d(Scale::new(axis, part.clone()), 0.0..102.0)?;
    chart
        .configure_mesh()
        .bold_line_style(FAINT)
        .light_line_style(WHITE)
        .label_style(("sans-serif", 15).into_font().color(&INK))
        .axis_desc_style(("sans-serif", 17).into_font().color(&INK))
        .x_desc(percentiles(&series.sum.table, column))
        .y_desc("hits up to this number; it runs inside the band")
        .y_label_formatter(&|percent| format!("{percent:.0} %"))
        .draw()?;
    // The share is known at the ends of an interval; inside, it is between the shares at both ends.
    let mut below = 0u64;
    let mut line = vec![(part.start, 0.0)];
    let mut band = Vec::new();
    for &(slot, hits) in &slots {
        let range = axis.slot(slot);
        let before = below as f64 * 100.0 / all as f64;
        below += hits;
        let after = below as f64 * 100.0 / all as f64;
        band.push(Rectangle::new(
            [(range.start, before), (range.end, after)],
            BAR.mix(0.3).filled(),
        ));
        line.extend([(range.start, before), (range.end, after)]);
    }
    line.push((end, 100.0));
    chart.draw_series(band)?;
    chart.draw_series([PathElement::new(line, BAR.stroke_width(2))])?;
    Ok(())
}

fn heat(area: &Area<'_>, title: &str, series: &Series, column: &KeyColumn) -> Drawn {
    let axis = Axis::new(column.kind, column.unit);
    let area = head(area, title, &account(series))?;
    let Some(map) = HeatMap::new(column.kind, &series.epochs, MOST_COLUMNS, MOST_PLACES) else {
        return empty(&area);
    };
    let (area, legend) = area.split_horizontally(LEGEND);
    let part = part_of((0..map.rows.places).map(|row| axis.folded(&map.rows, row)));
    let time = map.duration();
    let seconds = |ns: u64| ns as f64 / 1e9;
    let end = time.map_or(map.columns.len() as f64, |(_, duration)| seconds(duration));
    let mut chart = ChartBuilder::on(&area)
        .margin(16)
        .x_label_area_size(52)
        .y_label_area_size(76)
        .build_cartesian_2d(0.0..end, Scale::new(axis, part))?;
    let what = match time {
        Some((first, _)) => {
            format!("seconds after {} UTC", units::time_of_day(first.begin()))
        }
        None => "epochs".to_owned(),
    };
    chart
        .configure_mesh()
        .disable_mesh()
        .label_style(("sans-serif", 15).into_font().color(&INK))
        .axis_desc_style(("sans-serif", 17).into_font().color(&INK))
        .x_desc(what)
        .y_desc(name_of(column))
        .x_label_formatter(&|at| format!("{at}"))
        .draw()?;
    let most = map.most();
    let mut cells = Vec::new();
    for (i, column) in map.columns.iter().enumerate() {
        let (from, to) = match (time, column.spans) {
            (Some((begin, _)), Some((first, last))) => (
                seconds(first.from.saturating_sub(begin.from)),
                seconds(last.to.saturating_sub(begin.from)),
            ),
            _ => (i as f64, i as f64 + 1.0),
        };
        for (row, &hits) in column
            .cells
            .iter()
            .enumerate()
            .filter(|&(_, &hits)| hits > 0)
        {
            let range = axis.folded(&map.rows, row);
            let shade = SHADES[level(hits, most, SHADES.len()) - 1];
            cells.push(Rectangle::new(
                [(from, range.start), (to, range.end)],
                shade.filled(),
            ));
        }
    }
    chart.draw_series(cells)?;
    shades(&legend, most)
}

/// Draws the legend of a heat map's colours.
fn shades(area: &Area<'_>, most: u64) -> Drawn {
    let style = ("sans-serif", 15).into_font().color(&INK);
    area.draw(&Text::new("hits", (8, 16), style.clone()))?;
    let mut y = 40;
    // Each colour has a largest number of hits, of which only a few are labelled.
    for (i, shade) in SHADES.iter().enumerate().rev() {
        area.draw(&Rectangle::new([(8, y), (28, y + 18)], shade.filled()))?;
        let text = match i {
            0 => Some("1".to_owned()),
            _ if i + 1 == SHADES.len() => Some(units::count(most.into())),
            _ => None,
        };
        if let Some(text) = text {
            area.draw(&Text::new(text, (34, y + 3), style.clone()))?;
        }
        y += 18;
    }
    Ok(())
}

/// Draws the rows with most hits, one bar for each.
fn bars(area: &Area<'_>, title: &str, series: &Series) -> Drawn {
    let table = &series.sum.table;
    let area = head(area, title, &account(series))?;
    let mut rows = sorted(table);
    if rows.is_empty() {
        return empty(&area);
    }
    let all: u64 = rows
        .iter()
        .fold(0, |sum, (_, hits)| sum.saturating_add(*hits));
    let more = rows.len().saturating_sub(MOST_BARS);
    rows.truncate(MOST_BARS);
    let most = rows[0].1.max(1);
    let style = ("sans-serif", 14).into_font().color(&INK);
    let right = style.pos(Pos::new(HPos::Right, VPos::Top));
    let names: Vec<String> = table.keys.iter().map(name_of).collect();
    let axis = ("sans-serif", 17).into_font().color(&INK);
    area.draw(&Text::new(
        cut(&names.join(", "), NAME),
        (278, 6),
        axis.pos(Pos::new(HPos::Right, VPos::Top)),
    ))?;
    area.draw(&Text::new("hits", (288, 6), axis))?;
    let mut y = 30;
    for (name, hits) in &rows {
        let width = (500.0 * *hits as f64 / most as f64).round().max(1.0) as i32;
        area.draw(&Text::new(cut(name, NAME), (278, y + 1), right.clone()))?;
        area.draw(&Rectangle::new(
            [(288, y), (288 + width, y + 12)],
            BAR.filled(),
        ))?;
        let text = format!(
            "{} ({})",
            units::count((*hits).into()),
            units::percent(*hits, all)
        );
        area.draw(&Text::new(text, (296 + width, y + 1), style.clone()))?;
        y += 15;
    }
    if more > 0 {
        let text = format!("and {} rows with fewer hits", units::count(more as Number));
        area.draw(&Text::new(text, (288, y + 3), style))?;
    }
    Ok(())
}

/// Returns the groups of a table and their hits, most hits first, groups with equal hits by name.
pub fn sorted(table: &Table) -> Vec<(String, u64)> {
    let groups = table.groups();
    let row = |group| {
        let names: Vec<String> = table.words_of(group).collect();
        (names.join(", "), table.hits_of(&group.values))
    };
    let mut rows: Vec<(String, u64)> = groups.iter().map(row).collect();
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    rows
}

fn empty(area: &Area<'_>) -> Drawn {
    let style = ("sans-serif", 18).into_font().color(&INK);
    area.draw(&Text::new("There are no hits.", (16, 16), style))?;
    Ok(())
}
