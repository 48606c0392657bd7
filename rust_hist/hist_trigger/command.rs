// SPDX-License-Identifier: GPL-2.0

//! Carries out lines written to a `trigger` file.
//!
//! C counterpart: `event_hist_trigger_parse()`, `existing_hist_update_only()` and
//! `hist_register_trigger()`.
//!
//! All steps that can fail come before the first visible change; earlier steps are undone by `Drop`. Setting the trace
//! clock is the last step that can fail, as it empties the buffers of the instance, which cannot be undone.
//!
//! Context: process, under `event_mutex`.

pub(super) use super::log::Failure;

use super::{
    filter,
    helper::Helper,
    hold::{
        self,
        Hold, //
    },
    log::Log,
    overhead,
    remove::{
        self,
        remove, //
    },
    resolve::Referents,
    snapshot::Snapshot,
    storage::Table,
    Definition,
    HistTrigger, //
};
use crate::{
    error::{
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
        event::EventFile,
        guard::EventMutexHeld,
        text::TextBuf, //
    },
    lang::{
        self,
        HistSpec,
        Update, //
    },
    program::{
        filter::Filter,
        ActionKind,
        Program,
        Purpose, //
    },
    text::Out, //
};
use core::ffi::CStr;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// The trace clock of a trigger without `clock=`.
const CLOCK: &[u8] = b"global";

/// One line, with everything needed to interpret it.
struct Request<'a> {
    command: &'a Command<HistTrigger>,
    file: &'a EventFile,
    held: &'a EventMutexHeld,
    log: Log<'a>,
    spec: KBox<HistSpec<'a>>,
}

/// Parses the text of a command.
///
/// Not inlined: the parsed text is large, and moves from its stack to the heap.
#[inline(never)]
pub(super) fn parse<'a>(
    prefix: &'a [u8],
    text: &'a [u8],
) -> core::result::Result<KBox<HistSpec<'a>>, Refusal> {
    let place = KBox::new_uninit(GFP_KERNEL)?;
    Ok(KBox::write(place, lang::parse(prefix, text)?))
}

/// Carries out one line.
pub(super) fn run(
    command: &Command<HistTrigger>,
    file: &EventFile,
    line: Line<'_>,
    held: &EventMutexHeld,
) -> core::result::Result<(), Failure> {
    if file.is_going() {
        return Err(ENODEV.into());
    }
    let typed = line.params.map_or(b"".as_slice(), CStr::to_bytes);
    let one_line = lang::in_one_line(typed)?;
    let log = Log {
        prefix: command.name().to_bytes(),
        text: one_line.as_deref().unwrap_or(typed),
        file,
        removes: line.remove,
    };
    Request::run(command, held, log)
}

impl<'a> Request<'a> {
    /// Carries out the line in `log`.
    ///
    /// Not inlined: compiling takes much stack, and needs nothing from the caller's frame.
    #[inline(never)]
    fn run(
        command: &'a Command<HistTrigger>,
        held: &'a EventMutexHeld,
        log: Log<'a>,
    ) -> core::result::Result<(), Failure> {
        let request = Self {
            command,
            file: log.file,
            held,
            log,
            spec: parse(log.prefix, log.text).map_err(|refusal| log.refuse(&refusal))?,
        };
        match log.removes {
            true => request.remove(),
            false => request.change_or_create(),
        }
    }

    /// Compiles the text, and lists the tables whose variables it reads.
    fn compile(
        &self,
        purpose: Purpose,
    ) -> core::result::Result<(KBox<Program>, Referents<'a>), Failure> {
        let mut names = Referents::new(self.command, self.file, self.held, purpose);
        let mut program = Definition::empty()?;
        program
            .fill(&self.spec, &mut names, purpose)
            .map_err(|refusal| self.log.refuse(&refusal))?;
        Ok((program, names))
    }

    /// Compiles the filter for the event.
    fn filter(&self, program: &Program) -> core::result::Result<Option<Filter>, Failure> {
        if let Some(refusal) = self.spec.refuse_filter() {
            return Err(self.log.refuse(&refusal));
        }
        filter::compile(program.filter(self.log.text), self.file, self.held)
    }

    /// Compiles the filter only to find errors in its text.
    ///
    /// Not inlined: the filter is on its stack.
    #[inline(never)]
    fn check_filter(&self, program: &Program) -> core::result::Result<(), Failure> {
        self.filter(program).map(drop)
    }

    /// Returns the trigger on the event that is the same as `program`.
    fn existing(&self, program: &Program) -> Option<Attached<'a, HistTrigger>> {
        Attached::<HistTrigger>::all(self.file, self.held)
            .find(|trigger| trigger.data().definition.is(program, self.log.text))
    }

    /// Returns the first trigger of the instance that has the name of `program`.
    fn namesake(&self, program: &Program) -> Option<Attached<'a, HistTrigger>> {
        let name = program.name(self.log.text)?;
        let instance = self.file.instance();
        self.command.triggers(self.held).find(|trigger| {
            let definition = &trigger.data().definition;
            definition.program.name(&definition.text) == Some(name)
                && trigger.file().instance().is(&instance)
        })
    }

    /// Carries out a line that removes a trigger.
    ///
    /// Not inlined: the stack of creating a trigger does not include this.
    #[inline(never)]
    fn remove(&self) -> core::result::Result<(), Failure> {
        let (program, _) = self.compile(Purpose::Change)?;
        self.check_filter(&program)?;
        let Some(trigger) = self.existing(&program) else {
            remove::nothing(&self.log, &program, self.held);
            return Ok(());
        };
        if let Some(user) = remove::user(&trigger, self.held) {
            return Err(self.log.refuse(&remove::in_use(&user)));
        }
        remove(trigger, self.held);
        Ok(())
    }

    fn change_or_create(&self) -> core::result::Result<(), Failure> {
        match self.spec.update() {
            Some(change) if self.change(change)? => Ok(()),
            // A new trigger may start paused; `cont` and `clear` have no effect on it.
            _ => self.create(),
        }
    }

    /// Changes the trigger of the text; returns whether there is one.
    ///
    /// Not inlined: its stack frame is gone before a trigger is created.
    #[inline(never)]
    fn change(&self, change: Update) -> core::result::Result<bool, Failure> {
        let (program, _) = self.compile(Purpose::Change)?;
        self.check_filter(&program)?;
        match self.existing(&program) {
            Some(trigger) => Ok(update(&trigger, change, self.held).map(|()| true)?),
            None => Ok(false),
        }
    }

    /// Returns the first trigger with the name of `program`, whose table that then shares. `program`, which reads the tables
    /// of `names`, is refused if it cannot.
    fn check_namesake(
        &self,
        program: &Program,
        names: &Referents<'_>,
    ) -> core::result::Result<Option<Attached<'a, HistTrigger>>, Failure> {
        let namesake = self.namesake(program);
        if let Some(first) = &namesake {
            let first = first.data();
            if !first.definition.has_shape(program, self.log.text)
                || !first.has_sources(&names.found.tables)
            {
                return Err(self.log.refuse(&self.spec.refuse_name()));
            }
        }
        Ok(namesake)
    }

    /// Compiles the text of a new trigger with its actions, and checks the trigger by itself.
    ///
    /// Not inlined: the stack that compiling takes is free again when the trigger is attached.
    #[inline(never)]
    fn settle(
        &self,
    ) -> core::result::Result<(KBox<Program>, Referents<'a>, Option<Filter>), Failure> {
        let (mut program, mut names) = self.compile(Purpose::New)?;
        let filter = self.filter(&program)?;
        program
            .create_actions(&self.spec, &mut names)
            .map_err(|refusal| self.log.refuse(&refusal))?;
        if snapshots(&program) > 1 {
            // The first snapshot action uses the instance's snapshot already.
            return Err(self.log.refuse(&Snapshot::busy()));
        }
        Ok((program, names, filter))
    }

    /// Creates a trigger and attaches it to its event.
    ///
    /// Not inlined: the stack of the other commands is not needed.
    #[inline(never)]
    fn create(&self) -> core::result::Result<(), Failure> {
        let (mut program, names, filter) = self.settle()?;
        let namesake = self.check_namesake(&program, &names)?;
        if self.existing(&program).is_some() {
            // PARITY: like `hist_register_trigger()`, points at the first column for this error and the next one.
            let exists = Refusal::new(Errno::Eexist, ErrKind::TriggerEexist, 0);
            return Err(self.log.refuse(&exists));
        }
        if program.needs_existing {
            let missing = Refusal::new(Errno::Enoent, ErrKind::TriggerEnoentClear, 0);
            return Err(self.log.refuse(&missing));
        }
        if let Some(first) = &namesake {
            program.join(&first.data().definition.program);
        }
        let warning = self.never_found(&program, &names.found.tables);
        let signed = program.loses_sign();
        let like = program.like_parameter(self.log.text);
        self.put(program, names, filter, namesake)?;
        let note = |kind: ErrKind, detail: &[u8], at: usize| {
            self.log.say(kind.text(), detail, at.saturating_add(1));
        };
        if let Some((at, word)) = like {
            note(ErrKind::LikeParameter, word, at);
        }
        if let Some((at, keys)) = warning {
            note(ErrKind::NeverFound, keys.as_bytes(), at);
        }
        if let Some(at) = signed {
            note(ErrKind::SignLost, b"", at);
        }
        Ok(())
    }

    /// Returns the place of the first reference that no hit can ever find, if there is one, and the keys by which its
    /// table has to be looked up.
    ///
    /// PARITY: C logs nothing.
    fn never_found(&self, program: &Program, tables: &[Arc<Table>]) -> Option<(usize, TextBuf)> {
        let source = |table: u16| {
            tables
                .get(usize::from(table))
                .map(|table| table.definition())
        };
        let (at, table) = program.never_found(|table| Some(&source(table)?.program))?;
        let mut keys = TextBuf::new();
        let definition = source(table)?;
        // If there is no memory, nothing is logged.
        keys.write_bytes(b"keys=").ok()?;
        definition
            .program
            .write_key_list(&definition.text, &mut keys)
            .ok()?;
        Some((at, keys))
    }

    /// Returns the clock that the instance must have for `program` and its helpers.
    fn clock(&self, program: &Program, helpers: &[Helper<'_>]) -> Result<Option<TextBuf>> {
        let name = if program.timestamps {
            program.clock(self.log.text).unwrap_or(CLOCK)
        } else if helpers.iter().any(Helper::needs_timestamp) {
            CLOCK
        } else {
            return Ok(None);
        };
        TextBuf::terminated(name).map(Some)
    }

    /// Attaches the trigger `program` to its event, and the helpers that `names` has created to theirs.
    ///
    /// Not inlined: the stack that compiling has taken is free again.
    #[inline(never)]
    fn put(
        &self,
        program: KBox<Program>,
        names: Referents<'a>,
        filter: Option<Filter>,
        namesake: Option<Attached<'a, HistTrigger>>,
    ) -> core::result::Result<(), Failure> {
        let held = self.held;
        let text = self.log.text;
        let Referents { found, helpers, .. } = names;
        let definition = Definition::new(self.command.name().to_bytes(), text, program)?;
        let program = &definition.program;
        let table = match &namesake {
            Some(first) => first.data().table.clone(),
            None => Table::new(definition.clone())?,
        };
        let clock = self.clock(program, &helpers)?;
        let data = HistTrigger::new(
            self.command,
            self.file,
            definition.clone(),
            table.clone(),
            found,
            held,
        )?;
        let mut trigger = Prepared::new(self.command, data, filter, self.file)?;
        if program.starts_paused {
            trigger.set_paused();
        }
        if program.overhead {
            trigger.time()?;
        }

        // On an error the following steps are undone in reverse order, and then the helpers.
        let instance = self.file.instance();
        let mut hold = Hold::new(instance);
        if hold::needs_instance(program) {
            hold.pin()?;
        }
        let trigger = trigger.enable(held)?;
        if namesake.is_none() && snapshots(program) != 0 {
            let snapshot =
                Snapshot::enable(self.file, held).map_err(|refusal| self.log.refuse(&refusal))?;
            table.set_snapshot(snapshot);
            hold.snapshot(table);
        }
        if let Some(clock) = clock {
            instance
                .set_clock(clock.as_c_str())
                .map_err(|_| self.log.refuse(&self.spec.refuse_clock()))?;
        }
        if program.timestamps {
            hold.exact_stamps();
        }
        for helper in helpers {
            helper.attach();
        }
        // From here on, `remove` releases the held resources.
        hold.keep();
        trigger.attach();
        if program.budget.is_some() {
            self.command.watch_soon(held);
        }
        Ok(())
    }
}

/// Returns the number of the program's actions that take snapshots.
fn snapshots(program: &Program) -> usize {
    let actions = program.actions.iter();
    actions
        .filter(|action| action.kind == ActionKind::Snapshot)
        .count()
}

/// Changes a trigger that exists.
fn update(trigger: &Attached<'_, HistTrigger>, change: Update, held: &EventMutexHeld) -> Result {
    match change {
        Update::Pause => trigger.set_paused(true),
        Update::Continue => trigger.set_paused(false),
        Update::Clear => {
            let table = &trigger.data().table;
            table.clear(held)?;
            overhead::clear(trigger.command(), table, held);
            return Ok(());
        }
    }
    overhead::decided(trigger, held);
    Ok(())
}
