// SPDX-License-Identifier: GPL-2.0

//! The pure rooms of `rust_hist`, as a crate for the host.
//!
//! The same files as in the module, without the kernel: text -> `lang` -> `program` -> run over a
//! record -> `tracing_map` -> `render`. What they allocate goes through `alloc`, so that the tests in
//! `selftests/host` decide what memory there is.

#![no_std]

#[forbid(unsafe_code)]
pub mod alloc;
#[forbid(unsafe_code)]
pub mod error;
#[forbid(unsafe_code)]
pub mod field;
#[forbid(unsafe_code)]
pub mod lang;
#[forbid(unsafe_code)]
pub mod limits;
#[forbid(unsafe_code)]
pub mod program;
#[forbid(unsafe_code)]
pub mod render;
#[forbid(unsafe_code)]
pub mod schema;
pub mod sync;
#[forbid(unsafe_code)]
pub mod text;
#[forbid(unsafe_code)]
pub mod tracing_map;
