// SPDX-License-Identifier: GPL-2.0

//! Records are written by the kernel.

use super::{
    bindings,
    event::Hit, //
};
use kernel::prelude::*;

/// The common values of the records that a hit writes. Empty here: the kernel fills them in itself.
#[derive(Clone, Copy)]
pub(crate) struct CommonFields;

impl CommonFields {
    /// Returns the moment of a hit.
    #[inline(always)]
    pub(crate) fn of(_hit: &Hit<'_>) -> Self {
        Self
    }
}

// CAST: a flag of the C enumeration.
pub(super) const SOFT_DISABLED: c_ulong = bindings::EVENT_FILE_FL_SOFT_DISABLED as c_ulong;
