// SPDX-License-Identifier: MIT OR Apache-2.0

//! The heat map on the whole screen: a cursor shows a cell's contents, and lists the rows in it.

use crossterm::event::KeyCode;
use crossterm::style::{Color, Stylize};

use super::heat::{colour, Picture};
use super::page::{bold, plain, Area, Page};
use crate::grid::{self, Epoch};
use crate::model::{KeyColumn, Number, Sum, Table};

/// The most epochs that are drawn: an hour of epochs of one second.
pub const MOST_EPOCHS: usize = 3600;
/// The most rows that are kept for lists.
const MOST_ROWS: usize = 50_000;

/// The epochs so far, and the position of the cursor.
#[derive(Default)]
pub struct Map {
    /// The column of intervals.
    column: Option<KeyColumn>,
    epochs: Vec<Epoch>,
    /// The tables of the latest epochs.
    tables: Vec<Table>,
    /// The picture that was drawn last, and its place on the screen.
    picture: Option<Picture>,
    drawn: Option<(usize, Area)>,
    /// The cursor: the index of an epoch, and the place of an interval.
    cursor: Option<(usize, Number)>,
    /// Whether the rows of the cell are shown instead of the map.
    pub listing: bool,
}

impl Map {
    /// Adds an epoch; ignores a table without intervals.
    pub fn add(&mut self, table: &Table) {
        let Some(column) = table.interval_column() else {
            return;
        };
        self.column = Some(table.keys[column].clone());
        self.epochs.push(Epoch::of(table));
        self.tables.push(table.clone());
        if self.epochs.len() > MOST_EPOCHS {
            self.epochs.remove(0);
            // When the oldest epoch is dropped, the cursor stays on its epoch.
            self.cursor = self
                .cursor
                .map(|(epoch, place)| (epoch.saturating_sub(1), place));
        }
        let mut rows = 0;
        let fit = self.tables.iter().rev().take_while(|table| {
            rows += table.rows.len();
            rows <= MOST_ROWS
        });
        let kept = fit.count().min(self.epochs.len());
        self.tables.drain(..self.tables.len() - kept);
    }

    /// Returns the cell under the cursor: its column, and its row counted from the lowest.
    fn cell(&self) -> Option<(&Picture, usize, usize)> {
        let picture = self.picture.as_ref()?;
        let (epoch, place) = self.cursor?;
        let map = &picture.map;
        let column = (epoch / map.together).min(map.columns.len() - 1);
        let row = (0..map.rows.places).find(|&row| place <= map.rows.range(row).1);
        Some((picture, column, row.unwrap_or(map.rows.places - 1)))
    }

    /// Moves the cursor by an arrow key; the first one puts it on the fullest cell of the last column.
    pub fn step(&mut self, arrow: KeyCode) {
        let Some(picture) = &self.picture else { return };
        let (columns, rows) = (picture.map.columns.len(), picture.map.rows.places);
        let (column, row) = match self.cell() {
            None => {
                let cells = picture.map.columns[columns - 1].cells.iter().enumerate();
                let fullest = cells.max_by_key(|&(_, hits)| hits);
                (columns - 1, fullest.map_or(0, |(row, _)| row))
            }
            Some((_, column, row)) => match arrow {
                KeyCode::Left => (column.saturating_sub(1), row),
                KeyCode::Right => ((column + 1).min(columns - 1), row),
                KeyCode::Up => (column, (row + 1).min(rows - 1)),
                _ => (column, row.saturating_sub(1)),
            },
        };
        self.cursor = Some((column * picture.map.together, picture.map.rows.range(row).1));
    }

    /// Shows the list of the cell's rows, or the map again.
    pub fn enter(&mut self) {
        self.listing = !self.listing && self.cursor.is_some();
    }

    /// Leaves the list, or removes the cursor; returns whether there was anything to leave.
    pub fn back(&mut self) -> bool {
        match self.listing {
            true => self.listing = false,
            false => return self.cursor.take().is_some(),
        }
        true
    }

    /// Returns the cell's contents in words, and its rows as a table; `None` for rows that are not kept any more.
    pub fn list(&self) -> Option<(String, Option<Table>)> {
        let (picture, column, row) = self.cell()?;
        let first = column * picture.map.together;
        let epochs = first..(first + picture.map.together).min(self.epochs.len());
        let gone = self.epochs.len() - self.tables.len();
        let tables = epochs.map(|epoch| self.tables.get(epoch.checked_sub(gone)?));
        let mut sum: Option<Sum> = None;
        for table in tables {
            let Some(table) = table else {
                sum = None;
                break;
            };
            let interval = table.interval_column()?;
            let kind = table.keys[interval].kind;
            let mut of_cell = table.without_rows();
            let rows = table.rows.iter().filter(|of| {
                let slot = grid::slot(kind, &of.keys[interval]);
                slot.and_then(|slot| picture.map.rows.place(slot)) == Some(row)
            });
            of_cell.rows = rows.cloned().collect();
            match &mut sum {
                Some(sum) => sum.add(&of_cell).ok()?,
                none => *none = Some(Sum::of(&of_cell)),
            }
        }
        Some((picture.read_out(column, row), sum.map(|sum| sum.table)))
    }

    /// Draws the map, which does not change during a pause, and the contents of the cursor's cell.
    pub fn draw(&mut self, page: &mut Page, area: Area, colours: bool, paused: bool) {
        let (rest, read_out) = area.above_last();
        let (body, axis) = rest.above_last();
        let size = (page.width, body);
        if !paused || self.drawn != Some(size) {
            self.picture = self.column.as_ref().and_then(|column| {
                Picture::new(column, &self.epochs, page.width, body.height, colours)
            });
            self.drawn = Some(size);
        }
        let Some(picture) = &self.picture else {
            let text = match self.column {
                None => " no numbers in intervals until now, which a map is of",
                Some(_) => " no hits yet",
            };
            page.put(body, [vec![plain(text)]]);
            return;
        };
        let cursor = self.cell().map(|(_, column, row)| (column, row));
        let lines = picture.lines().map(|line| {
            let mut parts = vec![plain(picture.label(line))];
            for column in 0..picture.map.columns.len() {
                let (character, front, back) = picture.cell(column, line);
                let mut part = plain(character.to_string().repeat(picture.wide));
                let is_cursor =
                    cursor.is_some_and(|(at, row)| at == column && picture.has(line, row));
                if is_cursor {
                    part = part.reverse();
                } else {
                    if front > 0 {
                        part = part.with(Color::AnsiValue(colour(front)));
                    }
                    if back > 0 {
                        part = part.on(Color::AnsiValue(colour(back)));
                    }
                }
                parts.push(part);
            }
            parts
        });
        page.put(body, lines);
        page.put(axis, [vec![plain(picture.axis())]]);
        if let Some((column, row)) = cursor {
            page.put(
                read_out,
                [vec![bold(format!(" {}", picture.read_out(column, row)))]],
            );
        }
    }
}
