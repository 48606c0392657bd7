// SPDX-License-Identifier: GPL-2.0

//! The interface to C: only files in this folder name C structures or generated bindings.
//!
//! The rest of the module sees safe views of the kernel's objects, and values that prove which locks and contexts a
//! caller has. The views decide nothing about histograms.

/// Returns a reference to the value that contains the C structure at an address as its member `$field`.
///
/// Unsafe: the structure must be that member, and the value must live as long as the reference is used.
macro_rules! owner_of {
    ($member:expr, $Owner:ty, $field:ident) => {
        &*kernel::container_of!($member.cast::<kernel::types::Opaque<_>>(), $Owner, $field)
    };
}

/// The functions for this architecture; each architecture has the functions described in
/// [`ffi/arch/x86_64.rs`](srctree/rust_hist/ffi/arch/x86_64.rs).
#[cfg_attr(target_arch = "x86_64", path = "ffi/arch/x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "ffi/arch/aarch64.rs")]
mod arch;
mod bindings;
pub(crate) mod clock;
pub(crate) mod command;
pub(crate) mod cpus;
mod delayed;
pub(crate) mod dyn_event;
pub(crate) mod enable;
pub(crate) mod error_log;
pub(crate) mod event;
pub(crate) mod event_files;
pub(crate) mod filter;
pub(crate) mod guard;
pub(crate) mod load;
pub(crate) mod memory;
pub(crate) mod meter;
mod module_notifier;
mod nofault;
pub(crate) mod poll;
pub(crate) mod random;
pub(crate) mod readme;
pub(crate) mod record;
pub(crate) mod seq;
pub(crate) mod snapshot;
pub(crate) mod stack;
pub(crate) mod symbols;
#[cfg(not(CONFIG_SYNTH_EVENTS))]
pub(crate) mod synth_api;
pub(crate) mod task;
pub(crate) mod text;
pub(crate) mod trace_seq;
mod tracefs_file;
pub(crate) mod work;

/// Returns the module that contains this code.
///
/// Declared here, as the kernel crate's name for it depends on the version.
const fn this_module() -> *mut bindings::module {
    extern "C" {
        // Only the address of this symbol is used.
        static __this_module: u8;
    }

    (&raw const __this_module).cast_mut().cast()
}
