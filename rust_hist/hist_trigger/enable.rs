// SPDX-License-Identifier: GPL-2.0

//! `enable_hist` and `disable_hist`: hits of an event continue or pause the hist triggers of another event.
//!
//! C counterpart: `hist_enable_trigger()`, and `event_enable_trigger_parse()` in
//! [`kernel/trace/trace_events_trigger.c`](srctree/kernel/trace/trace_events_trigger.c).
//!
//! Both commands share one type of trigger; an event has at most one trigger for each target.
//! Context: process, under `event_mutex`, but for the hit, which may be in any context.

use super::{
    command::Failure,
    filter,
    log::Log,
    HistTrigger, //
};
use crate::{
    error::Errno,
    ffi::{
        command::{
            Attached,
            Command,
            EntryFn,
            HitHandler,
            Line,
            Prepared,
            Trigger, //
        },
        enable::{
            SoftEnabled,
            Target, //
        },
        event::{
            EventFile,
            Hit, //
        },
        guard::{
            EventMutexHeld,
            PreemptOff, //
        },
        seq::SeqWriter,
        text::TextBuf, //
    },
    lang::{
        EnableSpec,
        ENABLE_UNLIMITED, //
    },
    sync::{
        Atomic,
        Relaxed, //
    },
    text::Out, //
};
use core::{
    ffi::CStr,
    fmt,
    fmt::Write, //
};
use kernel::prelude::*;

/// A trigger of one of the two commands.
pub(crate) struct EnableTrigger {
    target: Target,
    /// Whether the trigger pauses the triggers of its target, or else continues them.
    pauses: bool,
    /// How often the trigger still acts; [`ENABLE_UNLIMITED`] never changes.
    left: Atomic<u64>,
    /// The text of the filter after `if`.
    condition: Option<TextBuf>,
}

impl EnableTrigger {
    /// Continues or pauses the target's triggers, unless the count is used up.
    fn act(&self, preempt: &PreemptOff<'_>) {
        if self.take_one() {
            self.target.set_paused::<HistTrigger>(self.pauses, preempt);
        }
    }

    /// Lowers the count; returns false if it was used up already.
    ///
    /// PARITY: `event_trigger_count()` tests and lowers the count in two steps, so that two CPUs can
    /// act on one count.
    fn take_one(&self) -> bool {
        // ORDERING: the count publishes nothing else.
        let mut left = self.left.load(Relaxed);
        loop {
            match left {
                ENABLE_UNLIMITED => return true,
                0 => return false,
                // ORDERING: the count publishes nothing else.
                n => match self.left.cmpxchg(n, n.saturating_sub(1), Relaxed) {
                    Ok(_) => return true,
                    Err(now) => left = now,
                },
            }
        }
    }
}

/// Converts an error of the pure layers to the kernel's.
fn errno(errno: Errno) -> Error {
    Error::from_errno(-errno.code())
}

/// Looks up the target in the instance of `file`.
fn target<'a>(
    spec: &EnableSpec<'_>,
    file: &'a EventFile,
    held: &'a EventMutexHeld,
) -> Result<&'a EventFile> {
    let system = TextBuf::terminated(spec.system)?;
    let event = TextBuf::terminated(spec.event)?;
    file.instance()
        .event(system.as_c_str(), event.as_c_str(), held)
        .filter(|target| target.can_be_enabled())
        .ok_or(EINVAL)
}

/// Carries out one line.
pub(super) fn run(
    command: &Command<EnableTrigger>,
    file: &EventFile,
    line: Line<'_>,
    held: &EventMutexHeld,
) -> core::result::Result<(), Failure> {
    let text = line.params.map_or(b"".as_slice(), CStr::to_bytes);
    let log = Log {
        prefix: command.name().to_bytes(),
        text,
        file,
        removes: line.remove,
    };
    // PARITY: C logs nothing. Here each refusal has an entry in the error log, with its caret at byte `at` of the text.
    let refuse = |at: usize, why| {
        move |error| {
            if error != ENOMEM {
                log.say(why, b"", at.saturating_add(1));
            }
            Failure {
                error,
                why: Some(why),
            }
        }
    };
    if file.is_going() {
        return Err(refuse(0, c"The event is going away")(ENODEV));
    }
    let spec = EnableSpec::parse(text)
        .map_err(errno)
        .map_err(refuse(0, c"SYSTEM:EVENT is missing"))?;
    let target = target(&spec, file, held).map_err(refuse(0, c"No such event to act on"))?;
    let existing =
        Attached::<EnableTrigger>::all(file, held).find(|trigger| trigger.data().target.is(target));

    match (existing, line.remove) {
        (Some(existing), true) => existing.remove(held),
        (None, true) => {
            // PARITY: C logs nothing. The command succeeds.
            let why = c"No such trigger, none of this event acts on that one";
            log.say(why, b"", 1);
        }
        (existing, false) => {
            // As in C, the text is checked first.
            let left = spec
                .limit()
                .map_err(errno)
                .map_err(refuse(spec.count_at, c"The count is no number"))?;
            let condition = spec
                .filter()
                .map_err(errno)
                .map_err(refuse(spec.rest_at, c"The filter has no `if`"))?;
            if existing.is_some() {
                let why = c"This event has a trigger already that acts on that one";
                return Err(refuse(0, why)(EEXIST));
            }
            let pinned = Target::pin(target, held).map_err(refuse(
                0,
                c"The event is going away, or its module still being loaded",
            ))?;
            let data = EnableTrigger {
                target: pinned,
                // The name is `enable_...` or `disable_...`.
                pauses: log.prefix.starts_with(b"disable"),
                left: Atomic::new(left),
                condition: condition.map(TextBuf::terminated).transpose()?,
            };
            let filter = filter::compile(condition, file, held)?;
            let trigger = Prepared::new(command, data, filter, file)?;
            put(trigger, target, held).map_err(refuse(0, c"The events cannot be enabled"))?;
        }
    }
    Ok(())
}

/// Attaches a trigger to its event.
fn put(trigger: Prepared<EnableTrigger>, target: &EventFile, held: &EventMutexHeld) -> Result {
    let enabled = SoftEnabled::new(target, held)?;
    trigger.enable(held)?.attach();
    // From here on, `detached` disables the target.
    core::mem::forget(enabled);
    Ok(())
}

impl HitHandler<Self> for EnableTrigger {
    type Rest = Self;

    fn hit(trigger: &Self, hit: Hit<'_>) -> bool {
        trigger.act(hit.into_record().preempt_off());
        true
    }
}

#[vtable]
impl Trigger for EnableTrigger {
    // See `HistTrigger::TYPE`.
    const TYPE: u32 = 1 << 17;
    const NEEDS_RECORD: bool = false;
    const FIRST: bool = true;

    type Shared = ();

    fn parse(
        command: &Command<Self>,
        file: &EventFile,
        line: Line<'_>,
        held: &EventMutexHeld,
    ) -> Result {
        run(command, file, line, held).map_err(|failure| failure.error)
    }

    fn remove_all(file: &EventFile, held: &EventMutexHeld) {
        while let Some(trigger) = Attached::<Self>::all(file, held).next() {
            trigger.remove(held);
        }
    }

    fn entry(&self) -> EntryFn<Self> {
        EntryFn::of::<Self>()
    }

    fn miss(&self, preempt: &PreemptOff<'_>) {
        self.act(preempt);
    }

    fn event_going(trigger: Attached<'_, Self>, held: &EventMutexHeld) {
        trigger.remove(held);
    }

    fn detached(&self, held: &EventMutexHeld) {
        drop(SoftEnabled::kept(self.target.file(held), held));
    }

    fn print(trigger: &Attached<'_, Self>, out: &mut SeqWriter<'_>) -> fmt::Result {
        let data = trigger.data();
        let name = trigger.command().name().to_bytes();
        let (system, event) = data.target.names();
        for part in [name, b":", system, b":", event] {
            out.write_bytes(part)?;
        }
        // ORDERING: the count publishes nothing else.
        match data.left.load(Relaxed) {
            ENABLE_UNLIMITED => out.write_str(":unlimited")?,
            // CAST: C prints it as a signed number.
            left => write!(out, ":count={}", left as i64)?,
        }
        if let Some(condition) = &data.condition {
            out.write_str(" if ")?;
            out.write_bytes(condition.as_c_str().to_bytes())?;
        }
        out.write_str("\n")
    }
}
