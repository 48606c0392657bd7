// SPDX-License-Identifier: GPL-2.0

//! The text behind `enable_hist:` and `disable_hist:`.
//!
//! C counterpart: `event_enable_trigger_parse()` in
//! [`kernel/trace/trace_events_trigger.c`](srctree/kernel/trace/trace_events_trigger.c).
//!
//! Context: process.

use crate::{
    error::Errno,
    text::{
        lex::{
            self,
            Split, //
        },
        Span, //
    }, //
};

/// `SYSTEM:EVENT[:COUNT][ if FILTER]`, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnableSpec<'t> {
    /// The system of the event that is acted on.
    pub system: &'t [u8],
    /// Its name.
    pub event: &'t [u8],
    /// What stands behind its name.
    pub count: Option<&'t [u8]>,
    /// Where that begins in the text.
    pub count_at: usize,
    /// What follows the first blank, blanks stripped before it; it begins with `if` if it is right.
    rest: Option<&'t [u8]>,
    /// Where that begins in the text.
    pub rest_at: usize,
}

/// How often without a count. A count of this value means the same, as in C.
pub const UNLIMITED: u64 = u64::MAX;

impl<'t> EnableSpec<'t> {
    /// Takes the text apart, which has no blanks at its two ends.
    pub fn parse(text: &'t [u8]) -> Result<Self, Errno> {
        let blank = text.iter().position(|&b| lex::is_blank(b));
        let end = blank.unwrap_or(text.len());
        let all = Span::whole(text);
        let mut parts = Split::new(text, all.first(end), b':');
        let rest = lex::trim(text, all.behind(end));
        let system = parts.next().ok_or(Errno::Einval)?;
        let event = parts.next().ok_or(Errno::Einval)?;
        let count = parts.next();

        Ok(Self {
            system: system.of(text),
            event: event.of(text),
            count: count.map(|count| count.of(text)),
            count_at: count.map_or(end, |count| count.start),
            rest: Some(rest.of(text)).filter(|rest| !rest.is_empty()),
            rest_at: rest.start,
        })
    }

    /// How often the trigger acts: a number, or as a printed line has it, a signed number behind a word.
    ///
    /// PARITY: C does not take what it prints.
    pub fn limit(&self) -> Result<u64, Errno> {
        let Some(count) = self.count.filter(|&count| count != b"unlimited") else {
            return Ok(UNLIMITED);
        };

        match count.strip_prefix(b"count=") {
            Some([b'-', left @ ..]) => Ok(lex::number(left)?.wrapping_neg()),
            Some(left) => lex::number(left),
            None => lex::number(count),
        }
    }

    /// What follows `if`, if anything does.
    pub fn filter(&self) -> Result<Option<&'t [u8]>, Errno> {
        let Some(rest) = self.rest else {
            return Ok(None);
        };
        match rest.strip_prefix(b"if") {
            Some([first, filter @ ..]) if lex::is_blank(*first) => Ok(Some(filter)),
            _ => Err(Errno::Einval),
        }
    }
}
