// SPDX-License-Identifier: GPL-2.0

//! The list of triggers that the module makes when it is loaded.
//!
//! There is no C counterpart: what is built in reads its boot configuration instead.
//!
//! Context: process.

use crate::text::{
    lex,
    Span, //
};

/// One trigger of the list: `SYSTEM.EVENT COMMAND[:PARAMS]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadEntry<'t> {
    /// The whole entry, blanks at both ends stripped.
    pub text: &'t [u8],
    /// The event, up to the first blank.
    pub event: &'t [u8],
    /// What would be written to the event's `trigger` file.
    pub trigger: &'t [u8],
}

impl<'t> LoadEntry<'t> {
    fn new(text: &'t [u8]) -> Self {
        let all = Span::whole(text);
        let end = text
            .iter()
            .position(|&b| lex::is_blank(b))
            .unwrap_or(text.len());

        Self {
            text,
            event: all.first(end).of(text),
            trigger: lex::trim(text, all.behind(end)).of(text),
        }
    }

    /// System and name of the event; the first dot, or colon, separates them.
    pub fn names(&self) -> Option<(&'t [u8], &'t [u8])> {
        let at = self.event.iter().position(|&b| matches!(b, b'.' | b':'))?;
        let (system, name) = self.event.split_at_checked(at)?;
        let name = name.get(1..)?;

        (!system.is_empty() && !name.is_empty()).then_some((system, name))
    }

    /// The word of the command, and what follows it, as the `trigger` file separates them.
    pub fn command(&self) -> (&'t [u8], Option<&'t [u8]>) {
        let all = Span::whole(self.trigger);
        let Some(at) = self
            .trigger
            .iter()
            .position(|&b| b == b':' || lex::is_blank(b))
        else {
            return (self.trigger, None);
        };
        let params = lex::trim(self.trigger, all.behind(at).behind(1)).of(self.trigger);

        (
            all.first(at).of(self.trigger),
            (!params.is_empty()).then_some(params),
        )
    }
}

/// The entries of a list, in order; empty ones are left out.
///
/// They are separated by `;` or by a newline, neither of which a trigger has but in a quoted string of
/// its filter: what is between two `"` is never a separator. A comma, which separates the list items of
/// a trigger, could not be one.
pub fn load_entries(list: &[u8]) -> impl Iterator<Item = LoadEntry<'_>> {
    let mut quoted = false;

    list.split(move |&b| {
        quoted ^= b == b'"';
        !quoted && matches!(b, b';' | b'\n')
    })
    .map(|text| LoadEntry::new(lex::trim(text, Span::whole(text)).of(text)))
    .filter(|entry| !entry.text.is_empty())
}
