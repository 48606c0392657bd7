// SPDX-License-Identifier: GPL-2.0

//! The parts of the tracing core that only modules have.

use crate::ffi::{
    bindings,
    this_module, //
};

pub(in crate::ffi) use crate::ffi::bindings::{
    dyn_event_unregister,
    event_dir_file,
    event_dir_files_serve,
    tracing_readme_append, //
};

/// Whether the kernel has triggers and files of the names of the C implementation itself.
pub(crate) const HAS_HIST: bool = cfg!(CONFIG_HIST_TRIGGERS);

/// What all commands have in common.
pub(in crate::ffi) const COMMAND: bindings::event_command = bindings::event_command {
    owner: this_module(),
    ..pin_init::zeroed()
};

/// What all types of dynamic events have in common.
pub(in crate::ffi) const TYPE: bindings::dyn_event_operations = bindings::dyn_event_operations {
    owner: this_module(),
    ..pin_init::zeroed()
};
