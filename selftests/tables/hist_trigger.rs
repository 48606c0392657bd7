// SPDX-License-Identifier: GPL-2.0

//! What belongs to a trigger besides its table.

use super::storage::Table;
use crate::program::Program;
use kernel::sync::Arc;

/// What a trigger is.
pub struct Definition {
    pub prefix: &'static [u8],
    pub text: Vec<u8>,
    pub program: Program,
}

/// One trigger on one event.
pub struct HistTrigger {
    pub definition: Arc<Definition>,
    pub(super) table: Arc<Table>,
    /// Whether another trigger reads its variables.
    pub is_used: bool,
}

pub(crate) mod overhead {
    use super::HistTrigger;
    use crate::{
        ffi::{command::Attached, guard::EventMutexHeld},
        render::json,
    };

    pub fn of(_: &Attached<'_, HistTrigger>, _: &EventMutexHeld) -> Option<json::Overhead> {
        None
    }
}

pub(crate) mod remove {
    use super::HistTrigger;
    use crate::ffi::{command::Attached, guard::EventMutexHeld};

    pub fn user(trigger: &Attached<'_, HistTrigger>, _: &EventMutexHeld) -> Option<()> {
        trigger.data().is_used.then_some(())
    }

    pub fn log_in_use(_: &Attached<'_, HistTrigger>, _: &()) {
        crate::sim::log();
    }
}

pub(crate) mod snapshot {
    /// No test takes one.
    pub struct Snapshot(());
}

pub(crate) mod text {
    use crate::{render::Symbols, text::Out};
    use std::fmt;

    /// Names that tell addresses apart.
    pub struct KernelNames;

    impl Symbols for KernelNames {
        fn symbol<W: Out>(&self, addr: u64, out: &mut W) -> fmt::Result {
            write!(out, "sym_{addr:x}")
        }

        fn symbol_offset<W: Out>(&self, addr: u64, out: &mut W) -> fmt::Result {
            write!(out, "sym_{addr:x}+0x0")
        }

        fn syscall(&self, _: u64) -> Option<&[u8]> {
            None
        }
    }
}
