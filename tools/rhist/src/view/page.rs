// SPDX-License-Identifier: MIT OR Apache-2.0

//! The whole screen: lines with styles, and the terminal that shows them.

use std::io::{self, stdout, Write};
use std::sync::Once;

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::style::{ContentStyle, Print, PrintStyledContent, StyledContent, Stylize};
use crossterm::terminal::{self, Clear, ClearType};
use crossterm::{execute, queue};

/// A part of a line, with its style.
pub type Part = StyledContent<String>;

/// Returns a part of a line without style.
pub fn plain(text: impl Into<String>) -> Part {
    ContentStyle::new().apply(text.into())
}

/// Returns a part of a line in bold type.
pub fn bold(text: impl Into<String>) -> Part {
    plain(text).bold()
}

/// The contents of the screen. Text beyond the edges is cut off.
pub struct Page {
    /// The number of characters of a line.
    pub width: usize,
    lines: Vec<Vec<Part>>,
}

/// Some consecutive lines of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area {
    /// Index of the first line.
    pub top: usize,
    /// The number of lines.
    pub height: usize,
}

impl Page {
    /// Returns an empty page.
    pub fn new(width: usize, height: usize) -> Self {
        Self {
            width,
            lines: vec![Vec::new(); height],
        }
    }

    /// Returns the area of the whole page.
    pub fn area(&self) -> Area {
        Area {
            top: 0,
            height: self.lines.len(),
        }
    }

    /// Writes the lines into an area.
    pub fn put(&mut self, area: Area, lines: impl IntoIterator<Item = Vec<Part>>) {
        let places = self.lines.iter_mut().skip(area.top).take(area.height);
        for (place, line) in places.zip(lines) {
            let mut room = self.width;
            *place = Vec::new();
            for part in line {
                let text: String = part.content().chars().take(room).collect();
                room -= text.chars().count();
                place.push(part.style().apply(text));
            }
        }
    }
}

impl Area {
    /// Returns the first line of the area, and the lines below it.
    pub fn below_first(self) -> (Self, Self) {
        let first = self.height.min(1);
        let area = |top, height| Self { top, height };
        (
            area(self.top, first),
            area(self.top + first, self.height - first),
        )
    }

    /// Returns the lines above the last one, and the last line.
    pub fn above_last(self) -> (Self, Self) {
        let last = self.height.min(1);
        let area = |top, height| Self { top, height };
        let others = self.height - last;
        (area(self.top, others), area(self.top + others, last))
    }
}

/// The terminal while it shows pages. Dropping this restores it, and so does a panic.
pub struct Terminal(());

impl Terminal {
    /// Takes the terminal.
    pub fn take() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                restore();
                before(panic);
            }));
        });
        terminal::enable_raw_mode()?;
        // From here on, dropping the value restores the terminal.
        let terminal = Self(());
        execute!(
            stdout(),
            terminal::EnterAlternateScreen,
            terminal::DisableLineWrap,
            Hide
        )?;
        Ok(terminal)
    }

    /// Draws a page of the terminal's size and shows it.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Page)) -> io::Result<()> {
        let (width, height) = terminal::size()?;
        let mut page = Page::new(width.into(), height.into());
        draw(&mut page);
        show(&page, &mut stdout().lock())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal; calling it twice is harmless.
fn restore() {
    let _ = terminal::disable_raw_mode();
    let _ = execute!(
        stdout(),
        Show,
        terminal::EnableLineWrap,
        terminal::LeaveAlternateScreen
    );
}

fn show(page: &Page, out: &mut impl Write) -> io::Result<()> {
    queue!(out, terminal::BeginSynchronizedUpdate)?;
    for (y, line) in (0..).zip(&page.lines) {
        queue!(out, MoveTo(0, y))?;
        for part in line {
            match *part.style() == ContentStyle::new() {
                true => queue!(out, Print(part.content()))?,
                false => queue!(out, PrintStyledContent(part.clone()))?,
            }
        }
        // A full line has no rest to clear.
        if line
            .iter()
            .map(|part| part.content().chars().count())
            .sum::<usize>()
            < page.width
        {
            queue!(out, Clear(ClearType::UntilNewLine))?;
        }
    }
    queue!(out, terminal::EndSynchronizedUpdate)?;
    out.flush()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crossterm::style::Attribute;

    impl Page {
        /// Returns each line in quotation marks, padded to the width of the page.
        pub(crate) fn text(&self) -> String {
            let line = |parts: &Vec<Part>| -> String {
                let text: String = parts.iter().map(|part| part.content().as_str()).collect();
                format!("\"{text:<0$}\"\n", self.width)
            };
            self.lines.iter().map(line).collect()
        }

        /// Returns the position of the first character in reverse video.
        pub(crate) fn reversed(&self) -> Option<(usize, usize)> {
            (0..).zip(&self.lines).find_map(|(y, line)| {
                let is = |part: &Part| part.style().attributes.has(Attribute::Reverse);
                let at = line.iter().position(is)?;
                let before = line[..at].iter().map(|part| part.content().chars().count());
                Some((before.sum(), y))
            })
        }
    }

    #[test]
    fn what_does_not_fit_is_cut_off() {
        let mut page = Page::new(4, 3);
        let (first, rest) = page.area().below_first();
        page.put(first, [vec![plain("ab"), bold("cdef"), plain("g")]]);
        page.put(rest, ["x", "y", "z"].map(|text| vec![plain(text)]));
        assert_eq!(page.text(), "\"abcd\"\n\"x   \"\n\"y   \"\n");
        let mut out = Vec::new();
        show(&page, &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(out.contains("\x1b[1;1Hab\x1b[1mcd"), "{out:?}");
        assert!(out.contains("\x1b[2;1Hx\x1b[K"), "{out:?}");
        let none = Area { top: 3, height: 0 };
        assert_eq!(
            (none.below_first(), none.above_last()),
            ((none, none), (none, none))
        );
    }
}
