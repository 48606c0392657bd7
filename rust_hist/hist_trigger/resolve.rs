// SPDX-License-Identifier: GPL-2.0

//! What a trigger can refer to, for the compiler: the fields of its event, and the variables of the
//! triggers of its instance.
//!
//! C counterpart: `find_event_var()`, `find_var_file()` and `find_file_var()`.
//!
//! A trigger that reads a variable of another one owns that one's table together with it. The compiler
//! names tables by number; [`Names::into_tables`] gives the list that the numbers count.
//!
//! Context: process, under `event_mutex`.

use super::{
    storage::Table,
    HistTrigger, //
};
use crate::{
    alloc::{
        AllocError,
        Vec, //
    },
    ffi::{
        command::{
            Attached,
            Command, //
        },
        event::{
            EventFile,
            FieldClass, //
        },
        guard::EventMutexHeld, //
    },
    field::{
        FieldDesc,
        FieldKind,
        ForeignVar,
        Lookup,
        Resolver, //
    },
    program::{
        Purpose,
        Var, //
    }, //
};
use core::ffi::CStr;
use kernel::sync::Arc;

/// Longer than the name of any field, system or event.
const NAME_MAX: usize = 256;

/// The names that mean something to a trigger on one event.
pub(super) struct Names<'a> {
    command: &'a Command<HistTrigger>,
    file: &'a EventFile,
    held: &'a EventMutexHeld,
    purpose: Purpose,
    /// The tables whose variables were asked for.
    tables: Vec<Arc<Table>>,
}

impl<'a> Names<'a> {
    /// Those of a trigger of `command` on the event of `file`.
    pub(super) fn new(
        command: &'a Command<HistTrigger>,
        file: &'a EventFile,
        held: &'a EventMutexHeld,
        purpose: Purpose,
    ) -> Self {
        Self {
            command,
            file,
            held,
            purpose,
            tables: Vec::new(),
        }
    }

    /// The tables that the compiler was given numbers of.
    pub(super) fn tables(&self) -> &[Arc<Table>] {
        &self.tables
    }

    /// As [`Names::tables`], to keep.
    pub(super) fn into_tables(self) -> Vec<Arc<Table>> {
        self.tables
    }

    /// The number of a table.
    fn number(&mut self, table: &Arc<Table>) -> Result<u16, AllocError> {
        let known = self.tables.iter().position(|one| Arc::ptr_eq(one, table));
        let number = match known {
            Some(number) => number,
            None => {
                self.tables.push(table.clone())?;
                self.tables.len() - 1
            }
        };
        u16::try_from(number).map_err(|_| AllocError)
    }

    /// The variable `name` of a table.
    fn export(
        &mut self,
        table: Option<&'a Arc<Table>>,
        name: &[u8],
    ) -> Result<Option<ForeignVar<'a>>, Lookup> {
        let Some(table) = table else {
            return Ok(None);
        };
        let number = self.number(table)?;
        let definition = table.definition();
        Ok(definition.program.export(name, &definition.text, number))
    }

    /// The table of a variable that a trigger on this event reads already, by the name that its text
    /// has for it. This finds what cannot be found anew: whoever defined the variable may be gone with
    /// its module, or no longer be the only one. For removing and changing that trigger alone.
    fn known(&self, event: Option<(&[u8], &[u8])>, name: &[u8]) -> Option<&'a Arc<Table>> {
        if self.purpose == Purpose::New {
            return None;
        }
        Attached::<HistTrigger>::all(self.file, self.held).find_map(|trigger| {
            let data = trigger.data();
            let (program, text) = (&data.definition.program, &*data.definition.text);
            let var = program.refs().iter().find(|var| {
                let typed = var
                    .event()
                    .map(|(system, name)| (system.of(text), name.of(text)));
                typed == event && var.name().of(text) == name
            })?;
            data.sources.get(usize::from(var.table()))
        })
    }

    /// The first trigger on `file` that defines a variable `name`.
    fn definer(&self, file: &'a EventFile, name: &[u8]) -> Option<&'a HistTrigger> {
        Attached::<HistTrigger>::all(file, self.held)
            .map(|trigger| trigger.data())
            .find(|trigger| trigger.var(name).is_some())
    }
}

impl HistTrigger {
    /// The variable `name` that the trigger defines.
    fn var(&self, name: &[u8]) -> Option<&Var> {
        self.definition.program.var(name, &self.definition.text)
    }
}

/// Calls `f` with a name as C has it; nothing has a name that is too long, or has a NUL in it.
fn with_c_str<R>(name: &[u8], f: impl FnOnce(&CStr) -> Option<R>) -> Option<R> {
    let mut terminated = [0; NAME_MAX];
    // One byte stays for the NUL.
    terminated
        .get_mut(..NAME_MAX - 1)?
        .get_mut(..name.len())?
        .copy_from_slice(name);
    let name = CStr::from_bytes_until_nul(&terminated)
        .ok()
        .filter(|c_name| c_name.to_bytes().len() == name.len())?;
    f(name)
}

/// As [`with_c_str`], with the names of a system and an event.
fn with_event<R>(
    system: &[u8],
    event: &[u8],
    f: impl FnOnce(&CStr, &CStr) -> Option<R>,
) -> Option<R> {
    with_c_str(system, |system| with_c_str(event, |event| f(system, event)))
}

impl Resolver for Names<'_> {
    fn field(&self, name: &[u8]) -> Option<FieldDesc<'_>> {
        let field = with_c_str(name, |name| self.file.field(name, self.held))?;

        Some(FieldDesc {
            type_name: field.type_text(),
            offset: field.offset(),
            size: field.size(),
            signed: field.is_signed(),
            kind: kind(field.class()),
        })
    }

    fn is_own(&self, system: &[u8], event: &[u8]) -> bool {
        self.file
            .system()
            .is_some_and(|own| own.to_bytes() == system)
            && self.file.name().is_some_and(|own| own.to_bytes() == event)
    }

    fn event_exists(&self, system: &[u8], event: &[u8]) -> bool {
        with_event(system, event, |system, event| {
            self.file
                .instance()
                .has_event(system, event, self.held)
                .then_some(())
        })
        .is_some()
    }

    fn defines(&self, name: &[u8]) -> bool {
        self.definer(self.file, name).is_some()
    }

    fn var_of(
        &mut self,
        system: &[u8],
        event: &[u8],
        name: &[u8],
    ) -> Result<Option<ForeignVar<'_>>, Lookup> {
        let file = with_event(system, event, |system, event| {
            self.file.instance().event(system, event, self.held)
        });
        let table = match file.and_then(|file| self.definer(file, name)) {
            Some(trigger) => Some(&trigger.table),
            None => self.known(Some((system, event)), name),
        };
        self.export(table, name)
    }

    fn var(&mut self, name: &[u8]) -> Result<Option<ForeignVar<'_>>, Lookup> {
        let mut found: Option<Attached<'_, HistTrigger>> = None;
        let instance = self.file.instance();

        for trigger in self.command.triggers(self.held) {
            if !trigger.file().instance().is(&instance) || trigger.data().var(name).is_none() {
                continue;
            }
            match &found {
                None => found = Some(trigger),
                // Triggers of one name have their variables in common.
                Some(first)
                    if !core::ptr::eq(first.file(), trigger.file())
                        && !Arc::ptr_eq(&first.data().table, &trigger.data().table) =>
                {
                    // Whoever wants to remove a trigger means the variable that it has read since
                    // before the name became ambiguous.
                    return match self.known(None, name) {
                        Some(table) => self.export(Some(table), name),
                        None => Err(Lookup::NotUnique),
                    };
                }
                Some(_) => (),
            }
        }
        let table = match found {
            Some(trigger) => Some(&trigger.data().table),
            None => self.known(None, name),
        };
        self.export(table, name)
    }
}

fn kind(class: FieldClass) -> FieldKind {
    match class {
        FieldClass::Other => FieldKind::Other,
        FieldClass::StaticString => FieldKind::StaticString,
        FieldClass::DynString => FieldKind::DynString,
        FieldClass::RelDynString => FieldKind::RelDynString,
        FieldClass::PtrString => FieldKind::PtrString,
        FieldClass::TraceFn => FieldKind::Function,
        FieldClass::Comm => FieldKind::Comm,
        FieldClass::Cpu => FieldKind::Cpu,
        FieldClass::Stacktrace => FieldKind::Stack,
    }
}
