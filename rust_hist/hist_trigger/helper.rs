// SPDX-License-Identifier: GPL-2.0

//! Helper triggers, from which an action gets a field of the matched event.
//!
//! C counterpart: `create_field_var_hist()` and `unregister_field_var_hists()`.
//!
//! The record of the matched event is gone when the action runs. So a trigger on that event keeps the field in a
//! variable, `synthetic_FIELD`, with the key of an existing trigger. It is visible and readable like any trigger, but
//! owned by the triggers that read it: it is created for the first of them and removed with the last (`remove.rs`).
//!
//! A helper is completely prepared before anything is visible, and is attached together with the trigger that needs it,
//! or not at all.
//!
//! Context: process, under `event_mutex`.

use super::{
    command,
    filter,
    hold::Hold,
    resolve::{
        Found, //
        Referents,
    },
    storage::Table,
    Definition,
    HistTrigger, //
};
use crate::{
    alloc::AllocError,
    error::{
        ErrKind,
        Refusal, //
    },
    ffi::{
        command::{
            Command,
            Prepared,
            Ready, //
        },
        event::EventFile,
        guard::EventMutexHeld,
        text::TextBuf, //
    },
    program::{
        Purpose,
        HELPER_VAR, //
    }, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// The reason why no trigger holds a field.
pub(super) enum NoHelper {
    /// No trigger has compatible keys.
    NoLike,
    /// There is no memory for the helper.
    Memory,
    /// The text of the helper was refused, with this message if there is one.
    Refused(Option<ErrKind>),
}

impl From<AllocError> for NoHelper {
    fn from(_: AllocError) -> Self {
        Self::Memory
    }
}

impl From<Error> for NoHelper {
    fn from(error: Error) -> Self {
        if error == ENOMEM {
            Self::Memory
        } else {
            Self::Refused(None)
        }
    }
}

impl From<Refusal> for NoHelper {
    fn from(refusal: Refusal) -> Self {
        match refusal.entry() {
            Some(entry) => Self::Refused(Some(entry.kind)),
            None => Error::from_errno(-refusal.errno.code()).into(),
        }
    }
}

/// Returns whether `var` is the name of a helper's variable for `field`.
pub(super) fn is_for(var: &[u8], field: &[u8]) -> bool {
    var.strip_prefix(HELPER_VAR) == Some(field)
}

impl Definition {
    /// Iterates over the names of the stored variables that the trigger defines.
    pub(super) fn var_names(&self) -> impl Iterator<Item = &[u8]> {
        let vars = self.program.vars.iter();
        let stored = vars.filter(|var| var.is_stored());
        stored.map(|var| var.name.of(&self.text))
    }

    /// Returns whether a variable of the trigger holds `field` like a helper's.
    pub(super) fn holds(&self, field: &[u8]) -> bool {
        self.var_names().any(|var| is_for(var, field))
    }
}

/// Compiles the text of a helper on `file`.
///
/// A helper's variable may exist already, with keys that do not fit.
///
/// Not inlined: creating a helper takes much stack.
#[inline(never)]
fn compile(
    commands: &Command<HistTrigger>,
    file: &EventFile,
    held: &EventMutexHeld,
    prefix: &'static [u8],
    text: &[u8],
) -> core::result::Result<(Arc<Definition>, Found), NoHelper> {
    let spec = command::parse(prefix, text)?;
    let mut names = Referents::new(commands, file, held, Purpose::Change);
    let mut program = Definition::empty()?;
    program.fill(&spec, &mut names, Purpose::Change)?;
    program.create_actions(&spec, &mut names)?;
    let definition = Definition::new(prefix, text, program)?;
    Ok((definition, names.found))
}

/// A helper that is prepared but not attached. Dropping it undoes everything.
pub(super) struct Helper<'a> {
    // The fields are dropped in this order.
    trigger: Ready<'a, HistTrigger>,
    hold: Hold<'a>,
    /// The event of the helper.
    pub(super) file: &'a EventFile,
    pub(super) table: Arc<Table>,
}

impl<'a> Helper<'a> {
    /// Prepares a helper on the event of `file` that keeps `field` with the same keys as the trigger `like`, and with
    /// the same filter.
    pub(super) fn new(
        command: &'a Command<HistTrigger>,
        file: &'a EventFile,
        like: &Definition,
        field: &[u8],
        held: &'a EventMutexHeld,
    ) -> core::result::Result<Self, NoHelper> {
        let filter = like.program.filter(&like.text);
        let mut text = TextBuf::new();
        like.program
            .write_helper(&like.text, field, filter, &mut text)
            .map_err(|_| NoHelper::Memory)?;

        let (definition, found) = compile(command, file, held, like.prefix, text.as_bytes())?;
        Self::prepare(command, file, filter, definition, found, held)
    }

    /// Prepares a helper with this definition and the filter that is in its text.
    ///
    /// Not inlined: its stack frame is not needed while the text is compiled.
    #[inline(never)]
    fn prepare(
        command: &'a Command<HistTrigger>,
        file: &'a EventFile,
        filter: Option<&[u8]>,
        definition: Arc<Definition>,
        found: Found,
        held: &'a EventMutexHeld,
    ) -> core::result::Result<Self, NoHelper> {
        let table = Table::new(definition.clone())?;
        let mut data = HistTrigger::new(command, file, definition, table.clone(), found, held)?;
        data.helper = true;
        let filter = filter::compile(filter, file, held).map_err(|failure| failure.error)?;
        let trigger = Prepared::new(command, data, filter, file)?;
        let mut hold = Hold::new(file.instance());
        hold.pin()?;
        Ok(Self {
            trigger: trigger.enable(held)?,
            hold,
            file,
            table,
        })
    }

    /// Returns whether the helper keeps time stamps, which need the clock of the instance.
    pub(super) fn needs_timestamp(&self) -> bool {
        self.table.definition().program.timestamps
    }

    /// Attaches the helper to its event.
    pub(super) fn attach(mut self) {
        if self.needs_timestamp() {
            self.hold.exact_stamps();
        }
        // From here on, `remove` releases the held resources.
        self.hold.keep();
        self.trigger.attach();
    }
}
