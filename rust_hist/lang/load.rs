// SPDX-License-Identifier: GPL-2.0

//! The list of triggers that the module creates when it is loaded.
//!
//! There is no C counterpart: the built-in C code takes its triggers from the boot configuration.
//!
//! Context: process.

use crate::text::{
    lex::{
        is_blank,
        split_before,
        trim, //
    },
    Span, //
};

/// One trigger of the list: `SYSTEM.EVENT COMMAND[:PARAMS]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadEntry<'t> {
    /// The entry, trimmed.
    pub text: &'t [u8],
    /// The part before the first blank: the event.
    pub event: &'t [u8],
    /// The part after the first blank: the command as it is written to the event's `trigger` file.
    pub trigger: &'t [u8],
}

impl<'t> LoadEntry<'t> {
    fn new(text: &'t [u8]) -> Self {
        let (event, trigger) = split_before(text, is_blank);

        Self {
            text,
            event,
            trigger: trimmed(trigger),
        }
    }

    /// Returns the system and the name of the event, which the first dot or colon separates; `None`
    /// if either is missing.
    pub fn names(&self) -> Option<(&'t [u8], &'t [u8])> {
        let (system, name) = split_before(self.event, |b| matches!(b, b'.' | b':'));
        let name = name.get(1..)?;

        (!system.is_empty() && !name.is_empty()).then_some((system, name))
    }

    /// Returns the command's name and its parameters, which a colon or a blank separates, as in the `trigger` file.
    pub fn command(&self) -> (&'t [u8], Option<&'t [u8]>) {
        let (command, params) = split_before(self.trigger, |b| b == b':' || is_blank(b));
        let params = trimmed(params.get(1..).unwrap_or(&[]));

        (command, (!params.is_empty()).then_some(params))
    }
}

/// Iterates over the entries of `list` in order, without the empty ones.
///
/// A `;` or a newline separates two entries, unless it is between two `"`: a trigger has these bytes only in a quoted
/// string of its filter. A comma could not separate entries, since it separates the keys and the values of a trigger.
///
/// # Examples
///
/// ```
/// use rust_hist::lang::load_entries;
///
/// let list = b"sched.sched_switch hist:keys=next_pid; irq.softirq_entry hist:keys=vec";
/// let mut entries = load_entries(list);
/// let first = entries.next().ok_or("no entry")?;
///
/// assert_eq!(first.names(), Some((&b"sched"[..], &b"sched_switch"[..])));
/// assert_eq!(first.command(), (&b"hist"[..], Some(&b"keys=next_pid"[..])));
/// assert_eq!(entries.count(), 1);
/// # Ok::<(), &str>(())
/// ```
pub fn load_entries(list: &[u8]) -> impl Iterator<Item = LoadEntry<'_>> {
    let mut quoted = false;

    list.split(move |&b| {
        quoted ^= b == b'"';
        !quoted && matches!(b, b';' | b'\n')
    })
    .map(|text| LoadEntry::new(trimmed(text)))
    .filter(|entry| !entry.text.is_empty())
}

/// Returns `text` without white space at its ends.
fn trimmed(text: &[u8]) -> &[u8] {
    trim(text, Span::whole(text)).of(text)
}
