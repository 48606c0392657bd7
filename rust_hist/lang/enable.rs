// SPDX-License-Identifier: GPL-2.0

//! The text after `enable_hist:` and `disable_hist:`.
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

/// The parts of `SYSTEM:EVENT[:COUNT][ if FILTER]`.
///
/// # Examples
///
/// ```
/// use rust_hist::{error::Errno, lang::EnableSpec};
///
/// let spec = EnableSpec::parse(b"sched:sched_switch:5 if next_pid == 1")?;
/// assert_eq!((spec.system, spec.event), (&b"sched"[..], &b"sched_switch"[..]));
/// assert_eq!(spec.limit(), Ok(5));
/// assert_eq!(spec.filter(), Ok(Some(&b"next_pid == 1"[..])));
/// # Ok::<(), Errno>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnableSpec<'t> {
    /// The system of the event whose triggers are paused or continued.
    pub system: &'t [u8],
    /// The name of the event whose triggers are paused or continued.
    pub event: &'t [u8],
    /// The text after the second colon.
    pub count: Option<&'t [u8]>,
    /// Index of [`EnableSpec::count`] in the text.
    pub count_at: usize,
    /// The text after the first blank, trimmed; it is valid only if it begins with `if`.
    rest: Option<&'t [u8]>,
    /// Index in the text of the part after the first blank.
    pub rest_at: usize,
}

/// The limit of a trigger without a count. As in C, this value as a count means no limit, too.
pub const UNLIMITED: u64 = u64::MAX;

impl<'t> EnableSpec<'t> {
    /// Splits `text`, which the caller has trimmed.
    ///
    /// # Errors
    ///
    /// [`Errno::Einval`] if the system or the event is missing.
    pub fn parse(text: &'t [u8]) -> Result<Self, Errno> {
        let end = lex::split_before(text, lex::is_blank).0.len();
        let all = Span::whole(text);
        let mut parts = Split::new(text, all.first(end), b':');
        let rest = lex::trim(text, all.skip(end));
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

    /// Returns the number of hits on which the trigger acts. The text is a number, or `count=` and a signed number, or
    /// `unlimited`, as trigger lines show it.
    ///
    /// PARITY: C does not accept the count that its own trigger line shows.
    ///
    /// # Errors
    ///
    /// See [`lex::number`].
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

    /// Returns the filter after `if`, or `None` if nothing follows the event and the count.
    ///
    /// # Errors
    ///
    /// [`Errno::Einval`] if the part after the first blank does not begin with the word `if`.
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
