// SPDX-License-Identifier: MIT OR Apache-2.0

//! The whole screen: lines with their styles, and the terminal that shows them.

use std::io::{self, stdout, Write};
use std::sync::Once;

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::style::{ContentStyle, Print, PrintStyledContent, StyledContent, Stylize};
use crossterm::terminal::{self, Clear, ClearType};
use crossterm::{execute, queue};

/// A part of a line, and how it looks.
pub type Part = StyledContent<String>;

/// A part as all others are.
pub fn plain(text: impl Into<String>) -> Part {
    ContentStyle::new().apply(text.into())
}

/// A part in bold type.
pub fn bold(text: impl Into<String>) -> Part {
    plain(text).bold()
}

/// What is to be seen. What does not fit is cut off.
pub struct Page {
    /// How many characters a line has.
    pub width: usize,
    lines: Vec<Vec<Part>>,
}

/// Some lines of a page, one below the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area {
    /// The first one.
    pub top: usize,
    /// How many there are.
    pub height: usize,
}

impl Page {
    /// An empty page.
    pub fn new(width: usize, height: usize) -> Self {
        Self {
            width,
            lines: vec![Vec::new(); height],
        }
    }

    /// All of its lines.
    pub fn area(&self) -> Area {
        Area {
            top: 0,
            height: self.lines.len(),
        }
    }

    /// Puts the lines into an area.
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
    /// The first line, and the others.
    pub fn below_first(self) -> (Self, Self) {
        let first = self.height.min(1);
        let area = |top, height| Self { top, height };
        (
            area(self.top, first),
            area(self.top + first, self.height - first),
        )
    }

    /// The others, and the last line.
    pub fn above_last(self) -> (Self, Self) {
        let last = self.height.min(1);
        let area = |top, height| Self { top, height };
        let others = self.height - last;
        (area(self.top, others), area(self.top + others, last))
    }
}

/// The terminal while it shows pages. It is as before when this is dropped, and in a panic.
pub struct Terminal(());

impl Terminal {
    /// Takes it.
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
        // From now on it is given back.
        let terminal = Self(());
        execute!(
            stdout(),
            terminal::EnterAlternateScreen,
            terminal::DisableLineWrap,
            Hide
        )?;
        Ok(terminal)
    }

    /// Shows what is drawn on a page of its size.
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

/// Gives the terminal back; doing it twice does no harm.
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
        // A line that is full has no end to clear.
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
        /// Each line in quotation marks, as wide as the page.
        pub(crate) fn text(&self) -> String {
            let line = |parts: &Vec<Part>| -> String {
                let text: String = parts.iter().map(|part| part.content().as_str()).collect();
                format!("\"{text:<0$}\"\n", self.width)
            };
            self.lines.iter().map(line).collect()
        }

        /// The place of the first character in reverse.
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
