// SPDX-License-Identifier: GPL-2.0

//! The interface to C: only files in this folder name C structures or generated bindings.
//!
//! The rest of the module sees safe views of the kernel's objects, and values that prove which locks and contexts a
//! caller has. The views decide nothing about histograms.

#![cfg_attr(
    rust_hist_stock,
    allow(
        dead_code,
        reason = "records of synthetic events are written on kernels with the series alone"
    )
)]

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
#[cfg(not(rust_hist_built_in))]
pub(crate) mod readme;
#[cfg_attr(rust_hist_stock, path = "ffi/core/stock/record.rs")]
pub(crate) mod record;
pub(crate) mod seq;
pub(crate) mod snapshot;
pub(crate) mod stack;
pub(crate) mod symbols;
#[cfg(rust_hist_synth_api)]
pub(crate) mod synth_api;
pub(crate) mod task;
pub(crate) mod text;
/// Functions of the tracing core that not all kernels export. Both versions have the functions of
/// [`ffi/core/patched.rs`](srctree/rust_hist/ffi/core/patched.rs), most of which have the names and the meaning of the core.
/// Kbuild chooses one version by the exports of the kernel.
#[cfg_attr(rust_hist_stock, path = "ffi/core/stock.rs")]
#[cfg_attr(not(rust_hist_stock), path = "ffi/core/patched.rs")]
pub(crate) mod trace_core;
pub(crate) mod trace_seq;
#[cfg(not(rust_hist_stock))]
#[cfg_attr(rust_hist_built_in, path = "ffi/core/patched/tracefs_file.rs")]
mod tracefs_file;
pub(crate) mod work;

/// Returns the module that contains this code, which is none.
#[cfg(rust_hist_built_in)]
const fn this_module() -> *mut bindings::module {
    core::ptr::null_mut()
}

/// Returns the module that contains this code.
///
/// Declared here, as the kernel crate's name for it depends on the version.
#[cfg(not(rust_hist_built_in))]
const fn this_module() -> *mut bindings::module {
    extern "C" {
        // Only the address of this symbol is used.
        static __this_module: u8;
    }

    (&raw const __this_module).cast_mut().cast()
}
