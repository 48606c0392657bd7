// SPDX-License-Identifier: GPL-2.0

//! The compiler's look-ups for a trigger: fields of its event, and variables of other triggers in its instance.
//!
//! C counterpart: `find_event_var()`, `find_var_file()` and `find_file_var()`.
//!
//! A trigger that reads another trigger's variable owns that trigger's table, too. The compiler refers by number to
//! tables, and to the events that actions generate; [`Found`] has the lists that are indexed by these numbers.
//!
//! Context: process, under `event_mutex`.

use super::{
    helper::{
        self,
        Helper,
        NoHelper, //
    },
    storage::Table,
    Definition,
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
        event::EventFile,
        guard::EventMutexHeld,
        text::TextBuf, //
    },
    field::{
        FieldDesc,
        FieldKind,
        SynthField,
        TaskNumber, //
    },
    limits::CPUMASK_KEY_MAX,
    program::{
        ForeignVar,
        LookupError,
        MatchedField,
        Program,
        Purpose,
        Resolver,
        Var, //
    },
    synth::{
        self,
        SynthEvent, //
    }, //
};
use core::ffi::CStr;
use kernel::{
    cpu::nr_cpu_ids,
    prelude::{
        KVec,
        GFP_KERNEL, //
    },
    sync::Arc, //
};

/// Longer than most names of fields, and than all names of systems and events.
const NAME_MAX: usize = 256;

/// The objects that a trigger on one event can refer to by name.
pub(super) struct Referents<'a> {
    command: &'a Command<HistTrigger>,
    file: &'a EventFile,
    held: &'a EventMutexHeld,
    purpose: Purpose,
    /// The numbered objects.
    pub(super) found: Found,
    /// The helpers that were created to give a table a variable.
    pub(super) helpers: KVec<Helper<'a>>,
}

/// The objects to which the compiler has received numbers: their indices.
pub(super) struct Found {
    /// The tables whose variables the program reads.
    pub(super) tables: Vec<Arc<Table>>,
    /// The synthetic events that the program generates.
    pub(super) synths: Vec<Arc<SynthEvent>>,
}

impl<'a> Referents<'a> {
    /// Returns the names for a trigger of `command` on the event of `file`.
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
            found: Found {
                tables: Vec::new(),
                synths: Vec::new(),
            },
            helpers: KVec::new(),
        }
    }

    /// Returns the variable of a table for whose name `is` returns true.
    fn export(
        &mut self,
        table: Option<Arc<Table>>,
        is: impl Fn(&[u8]) -> bool,
    ) -> Result<Option<ForeignVar<'_>>, AllocError> {
        let Some(table) = table else {
            return Ok(None);
        };
        let number = number(&mut self.found.tables, table)?;
        let Some(table) = self.found.tables.get(usize::from(number)) else {
            return Ok(None);
        };
        let definition = table.definition();
        let mut names = definition.var_names();
        Ok(names
            .find(|name| is(name))
            .and_then(|name| definition.program.export(name, &definition.text, number)))
    }

    /// Returns the file of an event, including events that cannot be enabled.
    fn file_of(&self, system: &[u8], event: &[u8]) -> Option<&'a EventFile> {
        let instance = self.file.instance();
        with_c_str(system, |system| {
            with_c_str(event, |event| instance.event(system, event, self.held))
        })
    }

    /// Returns the table of a helper on `file` that was created for this command, and for whose definition `is` returns
    /// true.
    fn fresh(&self, file: &EventFile, is: impl Fn(&Definition) -> bool) -> Option<Arc<Table>> {
        self.helpers
            .iter()
            .find(|helper| core::ptr::eq(helper.file, file) && is(helper.table.definition()))
            .map(|helper| helper.table.clone())
    }

    /// Returns the table of a trigger on `file` that holds `field` with keys for `user`; a helper is created if there
    /// is none.
    ///
    /// Not inlined: creating a helper takes much stack.
    #[inline(never)]
    fn holder(
        &mut self,
        user: &Program,
        file: &'a EventFile,
        field: &[u8],
    ) -> Result<Arc<Table>, NoHelper> {
        let mut alike = Attached::<HistTrigger>::all(file, self.held)
            .map(|trigger| trigger.data())
            .filter(|data| data.definition.program.has_keys_of(user))
            .peekable();
        let like = *alike.peek().ok_or(NoHelper::NoLike)?;
        // PARITY: `find_synthetic_field_var()` takes any variable of that name, with any keys.
        if let Some(data) = alike.find(|data| data.definition.holds(field)) {
            return Ok(data.table.clone());
        }
        let fresh = self.fresh(file, |definition| {
            definition.program.has_keys_of(user) && definition.holds(field)
        });
        if let Some(table) = fresh {
            return Ok(table);
        }
        let helper = Helper::new(self.command, file, &like.definition, field, self.held)?;
        let table = helper.table.clone();
        self.helpers.push(helper, GFP_KERNEL)?;
        Ok(table)
    }

    /// Returns the table of a variable that a trigger on this event already reads, by the name in that trigger's text.
    /// This finds variables that a new look-up would not: their trigger may be gone with its module, or their name may
    /// have become ambiguous. Only for removing and changing that trigger.
    fn known(&self, event: Option<(&[u8], &[u8])>, name: &[u8]) -> Option<Arc<Table>> {
        if self.purpose == Purpose::New {
            return None;
        }
        Attached::<HistTrigger>::all(self.file, self.held).find_map(|trigger| {
            let data = trigger.data();
            let (program, text) = (&data.definition.program, &*data.definition.text);
            let var = program.refs.iter().find(|var| {
                let typed = var
                    .event
                    .map(|(system, name)| (system.of(text), name.of(text)));
                typed == event && program.name_of(var.name, text) == name
            })?;
            data.sources.get(usize::from(var.table)).cloned()
        })
    }

    /// Returns the first trigger on `file` that defines a variable `name`.
    fn definer(&self, file: &'a EventFile, name: &[u8]) -> Option<&'a HistTrigger> {
        Attached::<HistTrigger>::all(file, self.held)
            .map(|trigger| trigger.data())
            .find(|trigger| trigger.definition.var(name).is_some())
    }
}

impl Definition {
    /// Returns the variable `name` that the definition has.
    fn var(&self, name: &[u8]) -> Option<&Var> {
        self.program.var(name, &self.text)
    }
}

/// Returns the index of `item` in `list`, to which it is added if it is missing.
fn number<T>(list: &mut Vec<Arc<T>>, item: Arc<T>) -> Result<u16, AllocError> {
    let number = match list.iter().position(|one| Arc::ptr_eq(one, &item)) {
        Some(number) => number,
        None => {
            list.push(item)?;
            list.len() - 1
        }
    };
    u16::try_from(number).map_err(|_| AllocError)
}

/// Calls `f` with a name as a C string; `None` for a name with a NUL in it, which nothing has.
fn with_c_str<R>(name: &[u8], f: impl FnOnce(&CStr) -> Option<R>) -> Option<R> {
    let whole = |c_name: &&CStr| c_name.to_bytes().len() == name.len();
    let mut room = [0; NAME_MAX];
    // One byte is left for the NUL.
    match room
        .get_mut(..NAME_MAX - 1)
        .and_then(|room| room.get_mut(..name.len()))
    {
        Some(short) => {
            short.copy_from_slice(name);
            f(CStr::from_bytes_until_nul(&room).ok().filter(whole)?)
        }
        None => f(Some(TextBuf::terminated(name).ok()?.as_c_str()).filter(whole)?),
    }
}

impl Resolver for Referents<'_> {
    fn field(&self, name: &[u8]) -> Option<FieldDesc<'_>> {
        let mut field = field(self.file, name, self.held)?;

        // Masks that do not fit in a key are refused like other arrays.
        if field.kind == FieldKind::Cpumask && nr_cpu_ids() > CPUMASK_KEY_MAX {
            field.kind = FieldKind::Other;
        }
        Some(field)
    }

    fn fields<'f>(&'f self, visit: &mut dyn FnMut(&'f [u8])) {
        self.file.own_fields(self.held).for_each(visit);
    }

    fn has(&self, number: TaskNumber) -> bool {
        has(number)
    }

    fn is_own(&self, system: &[u8], event: &[u8]) -> bool {
        self.file.names() == (system, event)
    }

    fn event_exists(&self, system: &[u8], event: &[u8]) -> bool {
        self.file_of(system, event).is_some()
    }

    fn defines(&self, name: &[u8]) -> bool {
        self.definer(self.file, name).is_some()
    }

    fn var_of(
        &mut self,
        system: &[u8],
        event: &[u8],
        name: &[u8],
    ) -> Result<Option<ForeignVar<'_>>, LookupError> {
        let file = self.file_of(system, event);
        let file = file.filter(|file| file.can_be_enabled());
        let table = match file.and_then(|file| self.definer(file, name)) {
            Some(trigger) => Some(trigger.table.clone()),
            None => self
                .known(Some((system, event)), name)
                .or_else(|| self.fresh(file?, |definition| definition.var(name).is_some())),
        };
        Ok(self.export(table, |var| var == name)?)
    }

    fn var(&mut self, name: &[u8]) -> Result<Option<ForeignVar<'_>>, LookupError> {
        let mut found: Option<Attached<'_, HistTrigger>> = None;
        let instance = self.file.instance();

        for trigger in self.command.triggers(self.held) {
            if !trigger.file().instance().is(&instance)
                || trigger.data().definition.var(name).is_none()
            {
                continue;
            }
            match &found {
                None => found = Some(trigger),
                // Triggers with the same name share their table, and so their variables.
                Some(first)
                    if !core::ptr::eq(first.file(), trigger.file())
                        && !Arc::ptr_eq(&first.data().table, &trigger.data().table) =>
                {
                    // A command that removes a trigger means the variable that the trigger has read since before the
                    // name became ambiguous.
                    return match self.known(None, name) {
                        Some(table) => Ok(self.export(Some(table), |var| var == name)?),
                        None => Err(LookupError::NotUnique),
                    };
                }
                Some(_) => (),
            }
        }
        let table = match found {
            Some(trigger) => Some(trigger.data().table.clone()),
            None => self.known(None, name),
        };
        Ok(self.export(table, |var| var == name)?)
    }

    fn synth(&mut self, name: &[u8]) -> Result<Option<u16>, AllocError> {
        match synth::find(name, self.held) {
            Some(event) => number(&mut self.found.synths, event).map(Some),
            None => Ok(None),
        }
    }

    fn synth_field(&self, synth: u16, index: usize) -> Option<SynthField<'_>> {
        let event = self.found.synths.get(usize::from(synth))?;
        event.schema.field(index).map(SynthField::from)
    }

    fn matched_field(
        &mut self,
        user: &Program,
        system: &[u8],
        event: &[u8],
        name: &[u8],
    ) -> Result<MatchedField<'_>, AllocError> {
        // PARITY: `find_event_var()` does not find a helper's variable on `ftrace:print`.
        let Some(file) = self.file_of(system, event) else {
            return Ok(MatchedField::NoEvent);
        };
        match self.holder(user, file, name) {
            Ok(table) => Ok(self
                .export(Some(table), |var| helper::is_for(var, name))?
                .map_or(MatchedField::NoVar, MatchedField::Var)),
            Err(NoHelper::NoLike) => Ok(MatchedField::NoHist),
            Err(NoHelper::Refused(why)) => Ok(MatchedField::NotCreated(why)),
            Err(NoHelper::Memory) => Err(AllocError),
        }
    }
}

/// Returns the field `name` of the event of `file`.
pub(super) fn field<'a>(
    file: &'a EventFile,
    name: &[u8],
    held: &'a EventMutexHeld,
) -> Option<FieldDesc<'a>> {
    with_c_str(name, |name| file.field(name, held))
}

/// Returns whether a hit can compute this number of the task.
pub(super) fn has(number: TaskNumber) -> bool {
    number != TaskNumber::Cgroup || cfg!(CONFIG_CGROUPS)
}
