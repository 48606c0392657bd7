// SPDX-License-Identifier: GPL-2.0

//! The `hist_debug` file: the internal structure of an event's triggers.
//!
//! C counterpart: `hist_debug_show()`, which needs `CONFIG_HIST_TRIGGERS_DEBUG`. Here the file exists unless the module
//! is built with `RUST_HIST_DEBUG=n`.

use super::{
    storage::Table,
    told::{
        Tell,
        Told, //
    },
    write_header,
    Definition,
    HistTrigger, //
};
use crate::{
    ffi::{
        command::Attached,
        guard::EventMutexHeld,
        symbols,
        text::TextBuf, //
    },
    program::{
        DebugTables,
        Ref,
        VarInfo, //
    },
    text::Out, //
};
use core::fmt::{
    self,
    Write, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// The type of the file.
pub(crate) type DebugFile = Told<Debug>;

/// The file's text about one trigger.
pub(crate) struct Debug(TextBuf);

/// The tables that a trigger refers to, each identified by its address, which the kernel prints hashed.
struct Addresses<'a>(&'a HistTrigger);

impl Addresses<'_> {
    fn source(&self, reference: &Ref) -> Option<&Arc<Table>> {
        self.0.sources.get(usize::from(reference.table))
    }
}

fn write_address<T>(address: *const T, out: &mut dyn Out) -> fmt::Result {
    symbols::with_hashed(address, |hashed| out.write_bytes(hashed))
}

impl DebugTables for Addresses<'_> {
    fn write_own(&self, out: &mut dyn Out) -> fmt::Result {
        write_address(Arc::as_ptr(&self.0.table), out)
    }

    fn write_of(&self, reference: &Ref, out: &mut dyn Out) -> fmt::Result {
        match self.source(reference) {
            Some(table) => write_address(Arc::as_ptr(table), out),
            None => Ok(()),
        }
    }

    fn variable<R>(&self, reference: &Ref, found: impl FnOnce(VarInfo<'_>) -> R) -> R {
        let own = &self.0.definition;
        let name = own.program.name_of(reference.name, &own.text);
        match self.source(reference) {
            Some(table) => {
                let definition = table.definition();
                found(definition.program.describe(name, &definition.text))
            }
            None => found(VarInfo::default()),
        }
    }
}

impl Tell for Debug {
    fn of(n: usize, trigger: &Attached<'_, HistTrigger>, _held: &EventMutexHeld) -> Result<Self> {
        let data = trigger.data();
        let Definition { program, text, .. } = &*data.definition;
        let mut out = TextBuf::charged();

        write_header(n, trigger, &mut out)
            .and_then(|()| program.write_debug(text, &Addresses(data), &mut out))
            .and_then(|()| {
                // C's output has no such line.
                let [front, of_record, of_hit] = data.path.rows;
                write!(
                    out,
                    "\n  path: paths()[{front}], backs_of_record()[{of_record}], backs()[{of_hit}]\n"
                )
            })
            .map_err(|_| ENOMEM)?;
        Ok(Self(out))
    }

    fn tell(&self, out: &mut TextBuf) -> fmt::Result {
        out.write_bytes(self.0.as_bytes())
    }
}
