// SPDX-License-Identifier: GPL-2.0

//! The fields of an event, for the compiler of triggers.

use crate::{
    ffi::{
        event::{
            EventFile,
            FieldClass, //
        },
        guard::EventMutexHeld, //
    },
    field::{
        FieldDesc,
        FieldKind,
        Resolver, //
    }, //
};
use core::ffi::CStr;

/// Longer than the name of any field.
const NAME_MAX: usize = 256;

/// The fields of one event, under `event_mutex`.
pub(super) struct Fields<'a> {
    /// The event.
    pub(super) file: &'a EventFile,
    /// The proof that its fields stay.
    pub(super) held: &'a EventMutexHeld,
}

impl Resolver for Fields<'_> {
    fn field(&self, name: &[u8]) -> Option<FieldDesc<'_>> {
        let mut terminated = [0; NAME_MAX];
        // One byte stays for the NUL.
        terminated
            .get_mut(..NAME_MAX - 1)?
            .get_mut(..name.len())?
            .copy_from_slice(name);
        let name = CStr::from_bytes_until_nul(&terminated).ok()?;
        let field = self.file.field(name, self.held)?;

        Some(FieldDesc {
            type_name: field.type_text(),
            offset: field.offset(),
            size: field.size(),
            signed: field.is_signed(),
            kind: kind(field.class()),
        })
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
