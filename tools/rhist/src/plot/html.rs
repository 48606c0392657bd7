// SPDX-License-Identifier: MIT OR Apache-2.0

//! One HTML file with all pictures and the table. It needs no other file: no external script, font or picture.

use std::fmt::Write as _;

use super::flame;
use super::svg::{self, Picture};
use crate::error::Result;
use crate::model::{Agg, Group, Kind, Number, Table, ValueColumn};
use crate::quantile::{error_of, quantile, Percent};
use crate::record::{incomplete, Loaded, Series};
use crate::units;

/// The most groups in the table.
const MOST_ROWS: usize = 10_000;

const HEAD: &str = r#"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="viewport" content="width=device-width">
"#;

const STYLE: &str = "<style>
body { font-family: sans-serif; color: #222; max-width: 76em; margin: 1em auto; padding: 0 1em }
svg { max-width: 100%; height: auto; border: 1px solid #ddd; margin: .5em 0 }
table { border-collapse: collapse }
th, td { padding: .15em .7em; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap }
th.k, td.k { text-align: left }
code { overflow-wrap: anywhere }
.lost { color: #a00 }
</style>
";

/// Returns the HTML page for a series of a recording.
pub fn draw(loaded: &Loaded, series: &Series) -> Result<String> {
    let table = &series.sum.table;
    let title = escaped(&loaded.title);
    let mut out =
        format!("{HEAD}<title>{title}</title>\n{STYLE}</head>\n<body>\n<h1>{title}</h1>\n");
    let trigger = escaped(&units::text(&table.trigger));
    let _ = writeln!(out, "<p><code>{trigger}</code></p>");
    let lacks = [loaded.cut.clone(), incomplete(&table.account)];
    for text in lacks.into_iter().flatten() {
        let _ = writeln!(out, "<p class=\"lost\">{}</p>", escaped(&text));
    }
    let mut pictures = vec![Picture::Histogram];
    if table.interval().is_some() {
        pictures.extend([Picture::Cdf, Picture::Heat]);
    }
    for picture in pictures {
        out.push_str(&svg::draw(picture, &loaded.title, series)?);
        out.push('\n');
    }
    if table.keys.iter().any(|key| key.kind == Kind::Stack) && !table.rows.is_empty() {
        let flame = flame::draw(&loaded.title, table, flame::column(table, None)?)?;
        out.push_str(&still(&flame));
    }
    rows(table, &mut out);
    out.push_str("</body>\n</html>\n");
    Ok(out)
}

/// Writes the table of groups, most hits first.
fn rows(table: &Table, out: &mut String) {
    let interval = table.interval();
    // The sum of the measured field tells less than its percentiles, so it is left out.
    let sums: Vec<(usize, &ValueColumn)> = table
        .values
        .iter()
        .enumerate()
        .filter(|(_, value)| {
            let is_measure = interval.is_some_and(|column| column.name == value.name);
            value.name != "hitcount" && !(is_measure && value.agg == Agg::Sum)
        })
        .collect();
    let percents = ["50", "90", "99"].iter().filter(|_| interval.is_some());
    let percents: Vec<Percent> = percents.filter_map(|text| text.parse().ok()).collect();
    let count = |group: &Group| table.hits_of(&group.values);
    let mut groups = table.groups();
    groups.sort_by(|a, b| count(b).cmp(&count(a)).then_with(|| a.keys.cmp(&b.keys)));
    let all = groups.iter().map(count).fold(0, u64::saturating_add);

    out.push_str("<table>\n<tr>");
    for column in table.other_keys() {
        let name = escaped(&units::text(&column.name));
        let _ = write!(out, "<th class=\"k\">{name}</th>");
    }
    out.push_str("<th>hits</th><th>share</th>");
    for (_, value) in &sums {
        let _ = write!(out, "<th>{}</th>", escaped(&units::text(&value.title())));
    }
    for percent in &percents {
        let name = interval.map_or(String::new(), |column| units::text(&column.name));
        let _ = write!(out, "<th>{}.p{percent}</th>", escaped(&name));
    }
    out.push_str("</tr>\n");
    for group in groups.iter().take(MOST_ROWS) {
        out.push_str("<tr>");
        for key in table.words_of(group) {
            let _ = write!(out, "<td class=\"k\">{}</td>", escaped(&key));
        }
        let hits = units::count(count(group).into());
        let share = units::percent(count(group), all);
        let _ = write!(out, "<td>{hits}</td><td>{share}</td>");
        for &(i, value) in &sums {
            let number = units::shown(group.values[i], value, None);
            let _ = write!(out, "<td>{number}</td>");
        }
        for &percent in &percents {
            let bucket = quantile(&group.distribution, percent);
            let unit = interval.and_then(|column| column.unit);
            let text = bucket.map_or_else(String::new, |bucket| units::interval(bucket, unit));
            let _ = write!(out, "<td>{text}</td>");
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table>\n");
    if let Some(more) = groups.len().checked_sub(MOST_ROWS).filter(|&more| more > 0) {
        let more = units::count(more as Number);
        let _ = writeln!(out, "<p>and {more} rows with fewer hits</p>");
    }
    if let Some(exact) = interval.and_then(error_of) {
        let _ = writeln!(out, "<p>Percentiles are the intervals in which they are for sure; their ends are {exact}.</p>");
    }
}

/// Returns a flame graph for a part of a page: without the XML header and without the script.
fn still(flame: &str) -> String {
    let svg = &flame[flame.find("<svg").unwrap_or_default()..];
    let svg = svg.replacen(" onload=\"init(evt)\"", "", 1);
    match (svg.find("<script"), svg.find("</script>")) {
        (Some(begin), Some(end)) if begin < end => {
            [&svg[..begin], &svg[end + "</script>".len()..], "\n"].concat()
        }
        _ => svg,
    }
}

/// Returns a text with HTML's special characters escaped.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in units::plain(text).chars() {
        match character {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}
