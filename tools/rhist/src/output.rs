// SPDX-License-Identifier: MIT OR Apache-2.0

//! Printing results, and messages beside them.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::model::Unit;
use crate::units::{self, Round};

/// The time after which the progress of a long task is shown.
const PATIENCE: Duration = Duration::from_secs(1);

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Colour {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Colour {
    /// Returns whether to use colours on an output that is, or is not, a terminal.
    pub fn wanted(self, terminal: bool) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => {
                terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            }
        }
    }
}

/// A file or the standard output.
pub struct Sink {
    out: Box<dyn Write>,
    name: String,
    /// Whether the output is a terminal.
    pub terminal: bool,
    /// The number of columns of the terminal.
    pub width: usize,
}

impl Sink {
    /// Opens the file; without one, the standard output.
    pub fn open(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else {
            let stdout = io::stdout();
            return Ok(Self {
                terminal: stdout.is_terminal(),
                width: width(&stdout),
                out: Box::new(stdout),
                name: "the output".into(),
            });
        };
        let file = File::create(path).map_err(|error| Error::file("write", path, &error))?;
        Ok(Self {
            out: Box::new(file),
            name: path.display().to_string(),
            terminal: false,
            width: 80,
        })
    }

    /// Writes all of `bytes`, and flushes them.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.out.write_all(bytes).and_then(|()| self.out.flush());
        written.map_err(|error| Error::file("write", Path::new(&self.name), &error))
    }
}

/// Returns the number of columns of a terminal; 80 if it is unknown.
fn width(terminal: impl AsFd) -> usize {
    let size = rustix::termios::tcgetwinsize(terminal);
    let columns = size.map_or(0, |size| usize::from(size.ws_col));
    if columns == 0 {
        80
    } else {
        columns.max(20)
    }
}

/// Prints to the standard output.
pub fn print(bytes: &[u8]) -> Result<()> {
    Sink::open(None)?.write(bytes)
}

/// Widens columns until these cells fit.
pub fn widen(widths: &mut Vec<usize>, cells: &[String]) {
    widths.resize(widths.len().max(cells.len()), 0);
    for (width, cell) in widths.iter_mut().zip(cells) {
        *width = cell.chars().count().max(*width);
    }
}

/// Returns cells side by side, in columns of these widths; those for which `left` holds are aligned to the left.
pub fn beside(cells: &[String], widths: &[usize], left: impl Fn(usize) -> bool) -> String {
    let cells = cells.iter().zip(widths).enumerate();
    let padded = cells.map(|(i, (cell, &width))| match left(i) {
        true => format!("{cell:<width$}"),
        false => format!("{cell:>width$}"),
    });
    padded.collect::<Vec<_>>().join("  ")
}

/// Returns lines of cells in columns, each as wide as its widest cell.
pub fn columns(lines: &[Vec<String>], left: impl Fn(usize) -> bool) -> String {
    let mut widths = Vec::new();
    lines.iter().for_each(|cells| widen(&mut widths, cells));
    let line = |cells: &Vec<String>| beside(cells, &widths, &left).trim_end().to_owned() + "\n";
    lines.iter().map(line).collect()
}

/// Messages that wait until the whole screen is released; `None` if it is not taken.
static HELD: Mutex<Option<String>> = Mutex::new(None);

/// Prints a message to the standard error. Control characters are removed, as they would command a terminal.
pub fn say(text: &str) {
    let text = printable(text) + "\n";
    match HELD.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
        Some(held) => held.push_str(&text),
        None => drop(io::stderr().write_all(text.as_bytes())),
    }
}

/// Prints a message that is made as by [`format!`], see [`say`].
macro_rules! say {
    ($($text:tt)*) => {
        $crate::output::say(&format!($($text)*))
    };
}

/// A token for the whole screen: while it exists, messages are kept back, and printed afterwards.
pub struct WholeScreen(());

impl WholeScreen {
    /// Takes the whole screen.
    pub fn take() -> Self {
        *HELD.lock().unwrap_or_else(PoisonError::into_inner) = Some(String::new());
        Self(())
    }
}

impl Drop for WholeScreen {
    fn drop(&mut self) {
        let held = HELD.lock().unwrap_or_else(PoisonError::into_inner).take();
        let _ = io::stderr().write_all(held.unwrap_or_default().as_bytes());
    }
}

/// Shows how much of a file was read, if that takes over a second: a line on the terminal, cleared on drop.
pub struct Progress {
    name: String,
    whole: Option<u64>,
    due: Instant,
    shown: usize,
}

impl Progress {
    /// Returns the progress for a file of this printable name and length; `None` if stderr is no terminal.
    pub fn new(name: &str, whole: Option<u64>) -> Option<Self> {
        io::stderr().is_terminal().then(|| Self {
            name: name.to_owned(),
            whole,
            due: Instant::now() + PATIENCE,
            shown: 0,
        })
    }

    /// Records that `done` bytes were read.
    pub fn at(&mut self, done: u64) {
        if Instant::now() < self.due {
            return;
        }
        self.due = Instant::now() + PATIENCE / 5;
        self.write(&self.line(done, width(io::stderr())));
    }

    /// Returns the text to show, cut to one line.
    fn line(&self, done: u64, width: usize) -> String {
        let much = match self.whole {
            Some(whole) => units::percent(done.min(whole), whole.max(1)),
            None => units::value(done.into(), Some(Unit::Bytes), Round::Down),
        };
        let line = format!("read {much} of {}", self.name);
        line.chars().take(width.saturating_sub(1)).collect()
    }

    /// Writes a line over the previous one.
    fn write(&mut self, line: &str) {
        let _ = write!(io::stderr(), "\r{line:<0$}\r", self.shown);
        self.shown = line.chars().count();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown > 0 {
            self.write("");
        }
    }
}

/// Returns the text without control characters other than newlines.
fn printable(text: &str) -> String {
    text.replace(|c: char| c.is_control() && c != '\n', "")
}

/// Returns whether the output may have characters beyond ASCII.
pub fn blocks() -> bool {
    let language = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|v| !v.is_empty()));
    language.is_some_and(|language| language.to_lowercase().replace('-', "").contains("utf8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_commands_no_terminal() {
        assert_eq!(printable("a\u{1b}]0;x\u{7}b\n\u{9b}c"), "a]0;xb\nc");
    }

    #[test]
    fn what_is_said_waits_for_the_screen() {
        let held = || HELD.lock().unwrap().clone();
        let screen = WholeScreen::take();
        say("a\u{7}b");
        assert_eq!(held().as_deref(), Some("ab\n"));
        drop(screen);
        assert_eq!(held(), None);
    }

    #[test]
    fn progress_is_one_line() {
        let progress = |whole| Progress {
            name: "ab.jsonl".into(),
            whole,
            due: Instant::now(),
            shown: 0,
        };
        assert_eq!(progress(Some(800)).line(200, 80), "read 25.0 % of ab.jsonl");
        assert_eq!(
            progress(None).line(2_500_000, 80),
            "read 2.38MiB of ab.jsonl"
        );
        assert_eq!(progress(Some(0)).line(7, 10), "read 0.0 ");
    }

    #[test]
    fn colours_are_for_terminals() {
        assert!(Colour::Always.wanted(false));
        assert!(!Colour::Never.wanted(true));
        assert!(!Colour::Auto.wanted(false));
    }
}
