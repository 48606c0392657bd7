// SPDX-License-Identifier: MIT OR Apache-2.0

//! A table or a heat map on the whole screen, redrawn after each interval.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};

use super::map::Map;
use super::page::{bold, plain, Area, Page, Terminal};
use super::table::{Look, Sort};
use crate::error::{Error, Result};
use crate::model::{Number, Table};
use crate::output::WholeScreen;
use crate::stop::{Stop, NEVER};
use crate::units;

/// The longest time between a key press and its effect.
const TICK: Duration = Duration::from_millis(50);

/// The state of the screen.
struct Screen<'a> {
    title: &'a str,
    look: Look,
    table: Option<Table>,
    paused: bool,
    /// The text that shown rows must contain, and whether the user is typing it.
    filter: String,
    typing: bool,
    scroll: usize,
    /// All epochs so far, and whether the heat map is shown instead of the last table.
    map: Map,
    heat: bool,
    colours: bool,
}

/// A source of tables for the screen.
pub trait Feed {
    /// Returns when the next table is due; `None` after the last one.
    fn due(&mut self) -> Option<Instant>;

    /// Returns the next table.
    fn next(&mut self) -> Result<Table>;

    /// Returns whether the last table stays on the screen until the user leaves it.
    fn stays(&self) -> bool;
}

/// A question that is being counted: a table after each interval.
pub struct Counted<'a> {
    next: &'a mut dyn FnMut() -> Result<Table>,
    interval: Duration,
    due: Instant,
    left: Option<u64>,
}

impl<'a> Counted<'a> {
    /// Returns the feed of the tables that `next` returns, `count` times or without a limit.
    pub fn new(
        interval: Duration,
        count: Option<u64>,
        next: &'a mut dyn FnMut() -> Result<Table>,
    ) -> Self {
        Self {
            next,
            interval,
            due: after(Instant::now(), interval),
            left: count,
        }
    }
}

/// Returns the end of an interval; never reached if it is too far away to be expressed.
fn after(begin: Instant, interval: Duration) -> Instant {
    begin.checked_add(interval).unwrap_or(begin + NEVER)
}

impl Feed for Counted<'_> {
    fn due(&mut self) -> Option<Instant> {
        (self.left != Some(0)).then_some(self.due)
    }

    fn next(&mut self) -> Result<Table> {
        self.due = after(self.due, self.interval).max(Instant::now());
        self.left = self.left.map(|left| left - 1);
        (self.next)()
    }

    fn stays(&self) -> bool {
        false
    }
}

/// Shows tables, or a heat map of them, until the user or a signal ends it, or the tables end.
pub fn run(title: &str, look: &Look, heat: bool, stop: &Stop, feed: &mut dyn Feed) -> Result<()> {
    if !std::io::stdout().is_terminal() {
        return Err(Error::new(
            "the output is no terminal, which --live and top are for; leave --live out",
        ));
    }
    let _whole = WholeScreen::take();
    let mut terminal =
        Terminal::take().map_err(|error| error!("cannot use this terminal: {error}"))?;
    let mut screen = Screen::new(title, look, heat);
    screen.run(&mut terminal, stop, feed)
}

impl<'a> Screen<'a> {
    fn new(title: &'a str, look: &Look, heat: bool) -> Self {
        Self {
            title,
            look: Look {
                colour: false,
                top: 0,
                ..look.clone()
            },
            table: None,
            paused: false,
            filter: String::new(),
            typing: false,
            scroll: 0,
            map: Map::default(),
            heat,
            colours: look.colour,
        }
    }

    fn run(&mut self, terminal: &mut Terminal, stop: &Stop, feed: &mut dyn Feed) -> Result<()> {
        let broken = |error: std::io::Error| error!("the terminal is gone: {error}");
        terminal.draw(|page| self.draw(page)).map_err(broken)?;
        loop {
            let now = Instant::now();
            let mut changed = false;
            let due = feed.due();
            if due.is_some_and(|due| now >= due) {
                let table = feed.next()?;
                changed = !self.paused;
                self.take(table);
            }
            if stop.wait(Some(now)) || feed.due().is_none() && !feed.stays() {
                return Ok(());
            }
            let wait = feed
                .due()
                .map_or(TICK, |due| due.saturating_duration_since(now).min(TICK));
            if event::poll(wait).map_err(broken)? {
                match event::read().map_err(broken)? {
                    Event::Key(key) if key.kind == KeyEventKind::Press => {
                        let control = key.modifiers.contains(KeyModifiers::CONTROL);
                        if self.key(key.code, control) {
                            return Ok(());
                        }
                        changed = true;
                    }
                    Event::Resize(..) => changed = true,
                    _ => {}
                }
            }
            if changed {
                terminal.draw(|page| self.draw(page)).map_err(broken)?;
            }
        }
    }

    fn take(&mut self, table: Table) {
        self.map.add(&table);
        if !self.paused {
            self.table = Some(table);
        }
    }

    /// Carries out a key. Returns whether the key ends the screen.
    fn key(&mut self, code: KeyCode, control: bool) -> bool {
        match code {
            KeyCode::Char('c') if control => return true,
            KeyCode::Char(c) if self.typing => self.filter.push(c),
            KeyCode::Backspace if self.typing => {
                self.filter.pop();
            }
            KeyCode::Enter if self.typing => self.typing = false,
            KeyCode::Esc if self.typing => {
                self.typing = false;
                self.filter.clear();
            }
            KeyCode::Esc if self.heat && self.map.back() => {}
            KeyCode::Char('q') | KeyCode::Esc => return true,
            KeyCode::Char('p') => self.paused = !self.paused,
            KeyCode::Char('h') => self.heat = !self.heat,
            KeyCode::Enter if self.heat => {
                self.map.enter();
                self.scroll = 0;
            }
            KeyCode::Left | KeyCode::Right | KeyCode::Up | KeyCode::Down
                if self.heat && !self.map.listing =>
            {
                self.map.step(code)
            }
            KeyCode::Char('s') => {
                self.look.sort = match self.look.sort {
                    Sort::Largest => Sort::Percentile,
                    Sort::Percentile => Sort::Key,
                    Sort::Key => Sort::Largest,
                }
            }
            KeyCode::Char('/') => {
                self.typing = true;
                self.filter.clear();
            }
            KeyCode::Down => self.scroll = self.scroll.saturating_add(1),
            KeyCode::Up => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::Home => self.scroll = 0,
            _ => {}
        }
        false
    }

    fn draw(&mut self, page: &mut Page) {
        let (head, rest) = page.area().below_first();
        let (body, foot) = rest.above_last();
        let head_text = match &self.table {
            None => format!(" {}  waiting for the first interval", self.title),
            Some(table) => {
                let length = table
                    .span
                    .map(|span| format!("  ({:.3} s)", span.seconds()));
                let hits = table.rows.iter().map(|row| table.hits_of(&row.values));
                // The cost is in percent of one CPU.
                let cost = table.cost.map(|ppm| ppm as f64 / 10_000.0);
                let cost = cost.map(|cost| format!("  own cost {cost:.2} %"));
                let paused = if self.paused { "  paused" } else { "" };
                format!(
                    " {}{}  {} hits{}{paused}",
                    self.title,
                    length.unwrap_or_default(),
                    units::count(hits.map(Number::from).sum()),
                    cost.unwrap_or_default()
                )
            }
        };
        page.put(head, [vec![bold(head_text)]]);
        let foot_text = match (self.typing, self.filter.is_empty()) {
            (true, _) => format!(" /{}", self.filter),
            _ if self.heat && self.map.listing => {
                " q quit  Enter map  s sort  / filter  up down".to_owned()
            }
            _ if self.heat => " q quit  p pause  h table  arrows cursor  Enter its rows".to_owned(),
            (false, true) => " q quit  p pause  h heat  s sort  / filter  up down".to_owned(),
            (false, false) => format!(" only rows with '{}'  / another  q quit", self.filter),
        };
        page.put(foot, [vec![plain(foot_text)]]);
        match (self.heat, self.map.listing) {
            (false, _) => {
                if let Some(table) = self.table.take() {
                    self.draw_table(page, body, &table);
                    self.table = Some(table);
                }
            }
            (true, false) => self.map.draw(page, body, self.colours, self.paused),
            (true, true) => {
                let (cell, body) = body.below_first();
                let Some((read_out, table)) = self.map.list() else {
                    return;
                };
                page.put(cell, [vec![plain(format!(" {read_out}"))]]);
                match table {
                    Some(table) => self.draw_table(page, body, &table),
                    None => {
                        let gone = " the rows of then are no longer there";
                        page.put(body, [vec![plain(gone)]]);
                    }
                }
            }
        }
    }

    fn draw_table(&mut self, page: &mut Page, body: Area, table: &Table) {
        let look = Look {
            width: page.width,
            // Only visible rows are made, unless they are to be searched.
            top: if self.filter.is_empty() {
                body.height + self.scroll
            } else {
                0
            },
            ..self.look.clone()
        };
        let mut out = Vec::new();
        if look.write(table, &mut out).is_err() {
            return;
        }
        let text = String::from_utf8_lossy(&out);
        let mut lines = text.lines();
        let heading = lines.next().unwrap_or_default();
        let rows: Vec<&str> = lines
            .filter(|line| self.filter.is_empty() || line.contains(&self.filter))
            .collect();
        self.scroll = self.scroll.min(rows.len().saturating_sub(1));
        let rows = rows[self.scroll..].iter().map(|row| vec![plain(*row)]);
        page.put(body, std::iter::once(vec![bold(heading)]).chain(rows));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record;
    use crate::testing::table;

    fn screen(width: usize, keys: &[KeyCode]) -> String {
        let look = Look {
            labels: vec!["pid".into()],
            heading: "wait".into(),
            percents: vec!["50".parse().unwrap()],
            blocks: true,
            ..Look::default()
        };
        let mut screen = Screen::new("rhist runq  module", &look, false);
        screen.take(table(&[(1, 10, 90), (22, 12, 7)]));
        for &key in keys {
            assert!(!screen.key(key, false));
        }
        let mut page = Page::new(width, 6);
        screen.draw(&mut page);
        page.text()
    }

    #[test]
    fn a_table_is_drawn() {
        assert_eq!(
            screen(44, &[]),
            "\" rhist runq  module  97 hits                \"\n\
             \"  PID  HITS     p50  513ns .. 4.10us        \"\n\
             \"  1      90  1.03us  █                      \"\n\
             \"  22      7  4.10us    █                    \"\n\
             \"  (upper bounds, less than twice the true va\"\n\
             \" q quit  p pause  h heat  s sort  / filter  \"\n"
        );
    }

    #[test]
    fn the_title_says_the_cost() {
        let mut screen = Screen::new("rhist runq", &Look::default(), false);
        screen.take(Table {
            cost: Some(612),
            ..table(&[(1, 10, 90)])
        });
        let mut page = Page::new(50, 4);
        screen.draw(&mut page);
        let shown = page.text();
        assert!(shown.contains("90 hits  own cost 0.06 %"), "{shown}");
    }

    #[test]
    fn an_interval_may_have_no_end() {
        let mut next = || Err(Error::new("nobody counts"));
        let mut feed = Counted::new(Duration::MAX, None, &mut next);
        let hour = Duration::from_secs(3600);
        assert!(feed.due().unwrap() > Instant::now() + hour);
        assert!(feed.next().is_err());
    }

    #[test]
    fn keys_change_it() {
        use KeyCode::Char;
        assert!(screen(44, &[Char('p')]).contains("paused"));
        let filtered = screen(44, &[Char('/'), Char('2'), Char('2'), KeyCode::Enter]);
        assert!(!filtered.contains("  1      90"), "{filtered}");
        assert!(filtered.contains("only rows with '22'"), "{filtered}");
        let sorted = screen(44, &[Char('s')]);
        assert!(
            sorted.find("  22 ").unwrap() < sorted.find("  1  ").unwrap(),
            "{sorted}"
        );
    }

    /// Returns the screen after three epochs and these keys, and the position of the cursor's mark.
    fn heat(colours: bool, keys: &[KeyCode]) -> (String, Option<(usize, usize)>) {
        let look = Look {
            labels: vec!["pid".into()],
            heading: "wait".into(),
            colour: colours,
            ..Look::default()
        };
        let mut screen = Screen::new("rhist runq", &look, true);
        for table in record::tests::open(&record::tests::three_epochs()).unwrap() {
            screen.take(table.unwrap());
        }
        let mut page = Page::new(60, 24);
        screen.draw(&mut page);
        for &key in keys {
            assert!(!screen.key(key, false));
            page = Page::new(60, 24);
            screen.draw(&mut page);
        }
        (page.text(), page.reversed())
    }

    #[test]
    fn a_cursor_reads_a_heat_map_out() {
        use KeyCode::{Char, Down, Enter, Esc, Left, Right, Up};
        let (plain, marked) = heat(false, &[]);
        insta::assert_snapshot!("map", plain);
        assert_eq!(marked, None);
        // The first arrow puts the cursor on the fullest cell of the last column, and no arrow moves it off the map.
        for keys in [
            &[Down][..],
            &[Left, Right],
            &[Right, Right],
            &[Left, Up, Down],
        ] {
            let (text, _) = heat(false, keys);
            assert!(
                text.contains(" 22:13:22 513ns-1.03us: 80 hits (97.6 %)"),
                "{text}"
            );
        }
        let (text, marked) = heat(false, &[Left, Left, Up, Up]);
        assert!(
            text.contains(" 22:13:21 2.04-4.10us: 5 hits (5.3 %)"),
            "{text}"
        );
        assert_eq!(marked, Some((16, 9)));
        let (text, _) = heat(false, &[Left, Left, Left, Left, Up, Up, Up]);
        assert!(
            text.contains(" 22:13:20 4.09-8.20us: 0 hits (0.0 %)"),
            "{text}"
        );
        // In colours a line has two rows of the map, and the cursor is in one of them.
        let (text, marked) = heat(true, &[Left, Left, Up, Up]);
        assert!(
            text.contains(" 22:13:21 2.04-4.10us: 5 hits (5.3 %)"),
            "{text}"
        );
        assert!(marked.is_some());
        let lists = [Left, Left, Left, Up, Enter];
        let (text, _) = heat(false, &lists);
        insta::assert_snapshot!("map_rows", text);
        assert_eq!(
            heat(false, &[&lists[..], &[Enter]].concat()).0,
            heat(false, &lists[..4]).0
        );
        assert_eq!(heat(false, &[Left, Esc]).1, None);
        assert!(heat(false, &[Char('h')]).0.contains("PID"));
        // Without a cursor no list can be shown.
        assert_eq!(heat(false, &[Enter]).0, plain);
    }

    #[test]
    fn a_map_needs_intervals() {
        let mut counted = table(&[(1, 10, 90)]);
        counted.keys.pop();
        let mut screen = Screen::new("rhist syscalls", &Look::default(), true);
        screen.take(counted);
        for width in [1, 9, 60] {
            let mut page = Page::new(width, 5);
            screen.draw(&mut page);
            let text = page.text();
            assert_eq!(text.contains("no numbers in intervals"), width == 60);
            screen.key(KeyCode::Left, false);
        }
    }

    #[test]
    fn a_terminal_of_20_columns_is_survived() {
        assert!(screen(20, &[]).contains("rhist runq"));
        assert!(screen(1, &[KeyCode::Down, KeyCode::Down]).len() > 5);
    }
}
