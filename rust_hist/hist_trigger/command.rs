// SPDX-License-Identifier: GPL-2.0

//! What a line written to a `trigger` file does.
//!
//! C counterpart: `event_hist_trigger_parse()`, `existing_hist_update_only()` and
//! `hist_register_trigger()`.
//!
//! Everything that can fail comes before the first change that anybody can see; what was done until
//! then undoes itself by `Drop`. The exception is the trace clock, which stays as it was set if the
//! event cannot be enabled after that.
//!
//! Context: process, under `event_mutex`.

use super::{
    remove,
    resolve::Fields,
    storage::{
        self,
        MapCell, //
    },
    text::TextBuf,
    Definition,
    HistTrigger, //
};
use crate::{
    error::{
        Entry,
        ErrKind,
        Errno,
        Refusal, //
    },
    ffi::{
        command::{
            Attached,
            Command,
            Line,
            Prepared, //
        },
        error_log,
        event::{
            EventFile,
            Instance, //
        },
        filter::FilterText,
        guard::EventMutexHeld, //
    },
    lang,
    program::{
        Out,
        Program,
        Update, //
    },
    render::COMM_WORDS,
    tracing_map::Dimensions, //
};
use core::ffi::CStr;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// The trace clock of a trigger that names none.
const CLOCK: &CStr = c"global";

/// Carries out one line.
pub(super) fn run(
    command: &Command<HistTrigger>,
    file: &EventFile,
    line: Line<'_>,
    held: &EventMutexHeld,
) -> Result {
    if file.is_going() {
        return Err(ENODEV);
    }
    let text = line.params.ok_or(EINVAL)?.to_bytes();
    let prefix = command.name().to_bytes();
    let log = Log { prefix, text, file };

    let program = compile(prefix, text, file, held).map_err(|refusal| log.refuse(&refusal))?;
    let mut filter = match program.filter(text) {
        Some(filter) => Some(FilterText::new(filter)?),
        None => None,
    };
    if let Some(filter) = &mut filter {
        filter.check(file, held)?;
    }
    let definition = define(prefix, text, program)?;
    let existing = Attached::<HistTrigger>::all(file, held)
        .find(|trigger| trigger.data().definition.is_same(&definition));

    match (existing, line.remove) {
        (Some(existing), true) => {
            remove(existing, file, held);
            Ok(())
        }
        (None, true) => Ok(()),
        (Some(existing), false) => match definition.program.update() {
            Some(change) => update(&existing, change, held),
            None => Err(log.refuse(&exists())),
        },
        (None, false) if definition.program.needs_existing() => Err(log.refuse(&not_there())),
        (None, false) => create(command, file, definition, filter, held),
    }
}

/// From the text to the program.
fn compile(
    prefix: &[u8],
    text: &[u8],
    file: &EventFile,
    held: &EventMutexHeld,
) -> core::result::Result<Program, Refusal> {
    let spec = lang::parse(prefix, text)?;
    Program::compile(&spec, &Fields { file, held })
}

/// Keeps the text with the program.
fn define(prefix: &'static [u8], text: &[u8], program: Program) -> Result<Arc<Definition>> {
    let mut copy = KVec::with_capacity(text.len(), GFP_KERNEL)?;
    copy.extend_from_slice(text, GFP_KERNEL)?;
    let definition = Definition {
        prefix,
        text: copy,
        program,
    };
    Ok(Arc::new(definition, GFP_KERNEL)?)
}

/// PARITY: `hist_register_trigger()` points at the first column for these two.
fn exists() -> Refusal {
    Refusal::new(Errno::Eexist, ErrKind::TriggerEexist, 0)
}

fn not_there() -> Refusal {
    Refusal::new(Errno::Enoent, ErrKind::TriggerEnoentClear, 0)
}

/// The dimensions of the map that a program needs.
fn dimensions(program: &Program) -> Dimensions {
    Dimensions {
        bits: program.size_bits(),
        key_words: program.key_words(),
        aux_words: if program.needs_comm() { COMM_WORDS } else { 0 },
        sums: program.sums(),
    }
}

/// Changes a trigger that exists.
fn update(trigger: &Attached<'_, HistTrigger>, change: Update, held: &EventMutexHeld) -> Result {
    match change {
        Update::Pause => trigger.set_paused(true),
        Update::Continue => trigger.set_paused(false),
        Update::Clear => {
            let data = trigger.data();
            let map = storage::new_map(dimensions(&data.definition.program))?;
            // SAFETY: nothing on the way here has asked for the map of this trigger.
            unsafe { data.map.replace(map, held) };
        }
    }
    Ok(())
}

/// Makes a trigger and puts it on its event.
fn create(
    command: &Command<HistTrigger>,
    file: &EventFile,
    definition: Arc<Definition>,
    filter: Option<FilterText>,
    held: &EventMutexHeld,
) -> Result {
    let program = definition.program;
    let map = storage::new_map(dimensions(&program))?;
    let data = HistTrigger {
        definition,
        map: MapCell::new(map),
    };
    let mut trigger = Prepared::new(command, data, file)?;
    if let Some(mut filter) = filter {
        trigger.set_filter(&mut filter, held)?;
    }
    if program.starts_paused() {
        trigger.set_paused();
    }
    if !program.needs_timestamp() {
        return trigger.attach(held);
    }

    let instance = file.instance();
    instance.set_clock(CLOCK)?;
    let stamps = ExactStamps::new(instance);
    trigger.attach(held)?;
    // From here on `remove` gives it back.
    core::mem::forget(stamps);
    Ok(())
}

/// Has records of an instance carry their final time stamp from the beginning, until it is dropped.
struct ExactStamps<'a>(Instance<'a>);

impl<'a> ExactStamps<'a> {
    fn new(instance: Instance<'a>) -> Self {
        instance.refuse_scratch();
        Self(instance)
    }
}

impl Drop for ExactStamps<'_> {
    fn drop(&mut self) {
        self.0.allow_scratch();
    }
}

/// What is needed to write to the error log.
struct Log<'a> {
    prefix: &'a [u8],
    text: &'a [u8],
    file: &'a EventFile,
}

impl Log<'_> {
    /// Logs why a command is refused, and returns the errno that goes with it.
    fn refuse(&self, refusal: &Refusal) -> Error {
        for entry in refusal.entries() {
            // Without memory the writer still gets the errno.
            let _ = self.add(entry);
        }
        Error::from_errno(-refusal.errno.code())
    }

    fn add(&self, entry: Entry) -> Result {
        let location = self.location()?;
        let command = joined(&[self.prefix, b":", self.text, b"\0"])?;
        error_log::report(
            self.file.instance(),
            CStr::from_bytes_until_nul(location.as_bytes()).map_err(|_| EINVAL)?,
            CStr::from_bytes_until_nul(command.as_bytes()).map_err(|_| EINVAL)?,
            entry.kind.text(),
            entry.at,
        );
        Ok(())
    }

    /// Where it happened: `hist:SYSTEM:EVENT`, or nothing for an event without a name.
    fn location(&self) -> Result<TextBuf> {
        match (self.file.system(), self.file.name()) {
            (Some(system), Some(name)) => joined(&[
                self.prefix,
                b":",
                system.to_bytes(),
                b":",
                name.to_bytes_with_nul(),
            ]),
            _ => joined(&[b"\0"]),
        }
    }
}

/// The parts one after the other.
fn joined(parts: &[&[u8]]) -> Result<TextBuf> {
    let mut text = TextBuf::new();
    for part in parts {
        text.write_bytes(part).map_err(|_| ENOMEM)?;
    }
    Ok(text)
}
