// SPDX-License-Identifier: GPL-2.0

//! Helper triggers: where an action gets a field of the matched event from.
//!
//! C counterpart: `create_field_var_hist()` and `unregister_field_var_hists()`.
//!
//! The record of the matched event is gone when the action runs. So a trigger on that event keeps the
//! field in a variable, `synthetic_FIELD`, under the key of a trigger that is there already. It is a
//! trigger like others, which everybody sees and may read, but it belongs to those that read it: it comes
//! with the first of them and goes with the last (`remove.rs`).
//!
//! A helper is complete before anything of it can be seen, and is put on its event with the trigger that
//! it was made for, or with none.
//!
//! Context: process, under `event_mutex`.

use super::{
    filter,
    hold::Hold,
    resolve::{
        Found, //
        Names,
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
    lang,
    program::{
        Purpose,
        HELPER_VAR, //
    }, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Why there is no helper.
pub(super) enum NoHelper {
    /// There is no memory for it.
    Memory,
    /// It was refused, for this reason if it is one of the text.
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

/// Whether `var` is the name of the variable for `field`.
pub(super) fn is_for(var: &[u8], field: &[u8]) -> bool {
    var.strip_prefix(HELPER_VAR) == Some(field)
}

impl Definition {
    /// The names of the variables that the trigger defines.
    pub(super) fn var_names(&self) -> impl Iterator<Item = &[u8]> {
        let vars = self.program.vars().iter();
        let stored = vars.filter(|var| var.is_stored());
        stored.map(|var| var.name().of(&self.text))
    }

    /// Whether a variable of the trigger holds `field`, as one of a helper does.
    pub(super) fn holds(&self, field: &[u8]) -> bool {
        self.var_names().any(|var| is_for(var, field))
    }
}

/// Compiles the text of a helper on `file`.
///
/// Its variable may be there already, under keys that are of no use to who wants it.
///
/// Not inlined: it takes much of a stack.
#[inline(never)]
fn compile(
    command: &Command<HistTrigger>,
    file: &EventFile,
    held: &EventMutexHeld,
    prefix: &'static [u8],
    text: &[u8],
) -> core::result::Result<(Arc<Definition>, Found), NoHelper> {
    let spec = lang::parse(prefix, text)?;
    let mut names = Names::new(command, file, held, Purpose::Change);
    let mut program = Definition::empty()?;
    program.fill(&spec, &mut names, Purpose::Change)?;
    program.create_actions(&spec, &mut names)?;
    let definition = Definition::new(prefix, text, program)?;
    Ok((definition, names.into_found().0))
}

/// A helper that is complete, and not on its event yet. Dropping it undoes it.
pub(super) struct Helper<'a> {
    // Dropped in this order.
    trigger: Ready<'a, HistTrigger>,
    hold: Hold<'a>,
    file: &'a EventFile,
    table: Arc<Table>,
}

impl<'a> Helper<'a> {
    /// Makes one on the event of `file` that keeps `field` as the trigger `like` there keeps its values: by
    /// the same keys, if the same filter lets the record through.
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

    /// Its table.
    pub(super) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// Whether it is one of an event.
    pub(super) fn is_on(&self, file: &EventFile) -> bool {
        core::ptr::eq(self.file, file)
    }

    /// Whether it keeps time stamps, for which the clock of the instance is to be set.
    pub(super) fn needs_timestamp(&self) -> bool {
        self.table.definition().program.needs_timestamp()
    }

    /// Puts it on its event.
    pub(super) fn attach(mut self) {
        if self.needs_timestamp() {
            self.hold.exact_stamps();
        }
        // From here on `remove` gives back what is held.
        self.hold.keep();
        self.trigger.attach();
    }
}
