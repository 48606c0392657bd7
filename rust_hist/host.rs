// SPDX-License-Identifier: GPL-2.0

//! The pure layers of `rust_hist` as a crate for the host.
//!
//! These are the files of the module, without the kernel. A command's text is parsed by [`lang`] and
//! compiled by [`program`]; the program runs over a record and adds to a [`tracing_map`], whose rows
//! [`render`] writes. [`schema`] defines, writes and shows synthetic events. All allocations go through
//! [`alloc`], so that the tests in `selftests/host` can make each of them fail.

#![no_std]
#![deny(unsafe_code)]

pub mod alloc;
pub mod bucket;
pub mod error;
pub mod expiry;
pub mod field;
pub mod lang;
pub mod limits;
pub mod overhead;
pub mod program;
pub mod rate;
pub mod render;
pub mod schema;
pub mod stat;
#[allow(unsafe_code)]
pub mod sync;
pub mod text;
pub mod tracing_map;
