// SPDX-License-Identifier: GPL-2.0

//! The edge to C: everything that names a C structure or a generated binding is in here.
//!
//! The rest of the module sees safe views of the kernel's objects, and proofs, as values, of the
//! locks and contexts that they need. The views decide nothing about histograms.

#![cfg_attr(
    rust_hist_stock,
    allow(
        dead_code,
        reason = "what writes records of events is for kernels with the series"
    )
)]

/// The value that has the C structure at an address as its member of this name, as a reference.
///
/// Unsafe: the structure must be that member, and the value live as long as the reference is used.
macro_rules! owner_of {
    ($member:expr, $Owner:ty, $field:ident) => {
        &*kernel::container_of!($member.cast::<kernel::types::Opaque<_>>(), $Owner, $field)
    };
}

/// The version of the edge for this architecture; each has the functions of
/// [`ffi/arch/x86_64.rs`](srctree/rust_hist/ffi/arch/x86_64.rs).
#[cfg_attr(target_arch = "x86_64", path = "ffi/arch/x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "ffi/arch/aarch64.rs")]
mod arch;
mod bindings;
pub(crate) mod clock;
pub(crate) mod command;
pub(crate) mod cpus;
mod delayed;
#[cfg_attr(rust_hist_stock, path = "ffi/core/stock/dyn_event.rs")]
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
#[cfg_attr(rust_hist_stock, path = "ffi/core/stock/record.rs")]
pub(crate) mod record;
pub(crate) mod seq;
pub(crate) mod snapshot;
pub(crate) mod stack;
pub(crate) mod symbols;
#[cfg(not(any(CONFIG_SYNTH_EVENTS, rust_hist_stock)))]
pub(crate) mod synth_api;
pub(crate) mod task;
pub(crate) mod text;
/// What the module needs of the tracing core beyond what all kernels export. Each of the two versions has the functions of
/// [`ffi/core/patched.rs`](srctree/rust_hist/ffi/core/patched.rs), which are mostly those of the core by name and meaning. Kbuild
/// chooses by what the kernel exports.
#[cfg_attr(rust_hist_stock, path = "ffi/core/stock.rs")]
#[cfg_attr(not(rust_hist_stock), path = "ffi/core/patched.rs")]
pub(crate) mod trace_core;
pub(crate) mod trace_seq;
#[cfg(not(rust_hist_stock))]
mod tracefs_file;
pub(crate) mod work;

/// The module that this code is in.
///
/// The kernel crate has it under a name that depends on the version.
const fn this_module() -> *mut bindings::module {
    extern "C" {
        // Only its address is of use here.
        static __this_module: u8;
    }

    (&raw const __this_module).cast_mut().cast()
}
