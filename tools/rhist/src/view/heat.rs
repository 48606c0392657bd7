// SPDX-License-Identifier: MIT OR Apache-2.0

//! The heat map on a terminal: a column for each epoch, a row for a range of intervals, a shade for the number of hits.

use std::fmt::Write as _;
use std::io::stdout;

use crate::grid::{level, Epoch, HeatMap};
use crate::model::{KeyColumn, Table, Unit};
use crate::units::{self, Round};

/// Shades without colours, from no hits to the most hits.
const CHARACTERS: &[u8; 10] = b" .:-=+*#%@";

/// Shades from the 256 colours of terminals, from few hits to most: from dark blue to yellow and white.
const COLOURS: [u8; 12] = [17, 18, 54, 90, 126, 162, 198, 203, 209, 215, 221, 230];

/// The width of the numbers beside the map.
const LABEL: usize = 7;

/// The most characters for the width of an epoch.
const WIDEST: usize = 8;

/// The size of a picture, and whether it has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paper {
    /// The number of characters in a line.
    pub width: usize,
    /// The number of lines.
    pub height: usize,
    /// Whether the picture has 256 colours, and two cells in one character.
    pub colours: bool,
}

impl Paper {
    /// Returns the size of the standard output, or of a usual terminal if that is none.
    pub fn of_output(colours: bool) -> Self {
        let size = rustix::termios::tcgetwinsize(stdout()).ok();
        let size = size.filter(|size| size.ws_col > 0 && size.ws_row > 1);
        Self {
            width: size.map_or(80, |size| size.ws_col.into()),
            // The cursor's line is kept free.
            height: size.map_or(24, |size| usize::from(size.ws_row) - 1),
            colours,
        }
    }
}

/// Draws epochs of a table. The same epochs give the same picture.
pub fn draw(title: &str, table: &Table, epochs: &[Epoch], paper: Paper) -> String {
    let width = paper.width.max(LABEL + 2);
    let mut out = cut(&units::plain(title), width) + "\n";
    let Some(column) = table.interval() else {
        return out + &cut("no column of intervals", width) + "\n";
    };
    // The title, the axis and the legend take three lines.
    let lines = paper.height.saturating_sub(3).max(3);
    let Some(picture) = Picture::new(column, epochs, width, lines, paper.colours) else {
        return out + &cut("no hits yet", width) + "\n";
    };
    for line in picture.lines() {
        let mut text = picture.label(line);
        let mut pen = Pen::default();
        for column in 0..picture.map.columns.len() {
            let (character, upper, lower) = picture.cell(column, line);
            for _ in 0..picture.wide {
                pen.draw(&mut text, character, upper, lower);
            }
        }
        pen.lift(&mut text);
        let _ = writeln!(out, "{}", text.trim_end_matches(' '));
    }
    let _ = writeln!(out, "{}", picture.axis());
    let most = picture.most;
    let _ = writeln!(out, "{}", legend(most, paper.colours, width));
    out
}

/// A heat map in a given number of characters and lines.
pub struct Picture {
    /// The heat map to draw.
    pub map: HeatMap,
    /// The width of a column in characters.
    pub wide: usize,
    unit: Option<Unit>,
    most: u64,
    colours: bool,
    width: usize,
}

impl Picture {
    /// Returns the picture; `None` if there are no hits.
    pub fn new(
        column: &KeyColumn,
        epochs: &[Epoch],
        width: usize,
        lines: usize,
        colours: bool,
    ) -> Option<Self> {
        let columns = width.saturating_sub(LABEL + 1).max(1);
        let rows = if colours { 2 * lines } else { lines };
        let map = HeatMap::new(column.kind, epochs, columns, rows)?;
        Some(Self {
            wide: (columns / map.columns.len()).clamp(1, WIDEST),
            unit: column.unit,
            most: map.most(),
            map,
            colours,
            width,
        })
    }

    /// Iterates over the lines, each given by its upper row of the map; the highest numbers come first.
    pub fn lines(&self) -> impl Iterator<Item = usize> {
        let step = if self.colours { 2 } else { 1 };
        (0..self.map.rows.places).rev().step_by(step)
    }

    /// Returns whether a line shows a row of the map.
    pub fn has(&self, line: usize, row: usize) -> bool {
        row == line || self.colours && row + 1 == line
    }

    /// Returns the label before a line.
    pub fn label(&self, line: usize) -> String {
        let last = units::value(self.map.rows.last(line), self.unit, Round::Up);
        format!("{last:>LABEL$} ")
    }

    /// Returns the character of a cell, and the shades of its upper and its lower half, 0 for none.
    pub fn cell(&self, column: usize, line: usize) -> (char, usize, usize) {
        let shade = |row: usize, levels: usize| {
            let cell = self.map.columns[column].cells.get(row);
            level(cell.copied().unwrap_or_default(), self.most, levels)
        };
        if !self.colours {
            let shade = shade(line, CHARACTERS.len() - 1);
            return (char::from(CHARACTERS[shade]), 0, 0);
        }
        let lower = line
            .checked_sub(1)
            .map_or(0, |row| shade(row, COLOURS.len()));
        match (shade(line, COLOURS.len()), lower) {
            (0, 0) => (' ', 0, 0),
            (0, lower) => ('▄', lower, 0),
            (upper, lower) => ('▀', upper, lower),
        }
    }

    /// Returns a cell's contents in words: time, numbers, hits, and share of the hits at that time.
    pub fn read_out(&self, column: usize, row: usize) -> String {
        let time = self.map.columns[column]
            .spans
            .map_or_else(String::new, |(first, _)| {
                units::time_of_day(first.begin()) + " "
            });
        let cells = &self.map.columns[column].cells;
        let hits = cells.get(row).copied().unwrap_or_default();
        format!(
            "{time}{}: {} hits ({})",
            units::interval(self.map.rows.numbers(row), self.unit),
            units::count(hits.into()),
            units::percent(hits, cells.iter().sum())
        )
    }

    /// Returns the time axis: its beginning and its length.
    pub fn axis(&self) -> String {
        let drawn = self.wide * self.map.columns.len();
        let Some((first, duration)) = self.map.duration() else {
            return format!("{:>LABEL$} {} epochs", "", self.map.columns.len());
        };
        let end = units::value(duration.into(), Some(Unit::Ns), Round::Up);
        let clock = format!("{} UTC", units::time_of_day(first.begin()));
        let text = match drawn.checked_sub(clock.len() + end.len() + 2) {
            Some(free) => format!("{clock} {}+{end}", " ".repeat(free)),
            None => format!("+{end}"),
        };
        cut(&format!("{:>LABEL$} {text}", ""), self.width)
    }
}

/// Returns the terminal's colour for a shade above 0.
pub fn colour(shade: usize) -> u8 {
    COLOURS[shade - 1]
}

fn legend(most: u64, colours: bool, width: usize) -> String {
    let hits = format!("{} hits", units::count(most.into()));
    let mut shades = String::new();
    match colours {
        false => shades.extend(CHARACTERS[1..].iter().map(|&c| char::from(c))),
        true => {
            let mut pen = Pen::default();
            for level in 1..=COLOURS.len() {
                pen.draw(&mut shades, '▀', level, level);
            }
            pen.lift(&mut shades);
        }
    }
    let drawn = if colours {
        COLOURS.len()
    } else {
        CHARACTERS.len() - 1
    };
    match width.checked_sub(LABEL + 2 + drawn + hits.len()) {
        Some(_) => format!("{:>LABEL$} {shades} {hits}", 1),
        None => cut(&format!("at most {hits}"), width),
    }
}

/// Returns as much of a text as fits in a line.
fn cut(text: &str, width: usize) -> String {
    text.chars().take(width).collect()
}

/// The colours that the terminal uses at present.
#[derive(Default)]
struct Pen {
    front: usize,
    back: usize,
}

impl Pen {
    /// Draws a character in one shade on another; 0 leaves the colour as it is.
    fn draw(&mut self, line: &mut String, character: char, front: usize, back: usize) {
        let front = if front == 0 { self.front } else { front };
        if front != self.front {
            let _ = write!(line, "\x1b[38;5;{}m", colour(front));
            self.front = front;
        }
        if back != self.back {
            let _ = match back {
                0 => write!(line, "\x1b[49m"),
                _ => write!(line, "\x1b[48;5;{}m", colour(back)),
            };
            self.back = back;
        }
        line.push(character);
    }

    /// Switches the colours off.
    fn lift(&mut self, line: &mut String) {
        if self.front != 0 || self.back != 0 {
            line.push_str("\x1b[0m");
        }
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::{load, three_epochs};

    fn picture(width: usize, height: usize, colours: bool) -> String {
        let loaded = load(&three_epochs()).unwrap();
        let series = loaded.series(None).unwrap();
        let paper = Paper {
            width,
            height,
            colours,
        };
        draw(&loaded.title, &series.sum.table, &series.epochs, paper)
    }

    #[test]
    fn pictures_are_always_the_same() {
        insta::assert_snapshot!("heat_80x24", picture(80, 24, false));
        insta::assert_snapshot!("heat_20x10", picture(20, 10, false));
        insta::assert_snapshot!(
            "heat_80x12_colours",
            picture(80, 12, true).replace('\x1b', "^[")
        );
    }

    #[test]
    fn no_line_is_too_long() {
        for width in [10, 20, 33, 80, 200] {
            for line in picture(width, 8, false).lines() {
                assert!(line.chars().count() <= width, "{line}");
            }
        }
    }

    #[test]
    fn a_day_is_folded_into_a_line() {
        let loaded = load(&three_epochs()).unwrap();
        let series = loaded.series(None).unwrap();
        let day: Vec<Epoch> = series.epochs.iter().cycle().take(86_400).cloned().collect();
        let paper = Paper {
            width: 60,
            height: 10,
            colours: false,
        };
        let text = draw("", &series.sum.table, &day, paper);
        assert!(text.lines().all(|line| line.len() <= 60), "{text}");
        assert!(text.lines().count() <= 10);
    }

    #[test]
    fn what_cannot_be_drawn_is_said() {
        let loaded = load(&three_epochs()).unwrap();
        let mut table = loaded.series[0].sum.table.clone();
        let paper = Paper {
            width: 20,
            height: 10,
            colours: true,
        };
        assert!(draw("", &table, &[], paper).contains("no hits yet"));
        table.keys.pop();
        assert!(draw("", &table, &[], paper).contains("no column of interva"));
    }
}
