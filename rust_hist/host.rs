// SPDX-License-Identifier: GPL-2.0

//! The pure rooms of `rust_hist`, as a crate for the host.
//!
//! The same files as in the module, without the kernel: text -> `lang` -> `program` -> run over a
//! record -> `tracing_map` -> `render`. What they allocate goes through `alloc`, so that the tests in
//! `selftests/host` decide what memory there is.

#![no_std]

pub mod alloc;
pub mod error;
pub mod field;
pub mod lang;
pub mod limits;
pub mod program;
pub mod render;
pub mod schema;
pub mod sync;
pub mod tracing_map;
