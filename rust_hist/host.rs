// SPDX-License-Identifier: GPL-2.0

//! The pure layers of `rust_hist` as a crate for the host.
//!
//! These are the files of the module, without the kernel. A command's text is parsed by [`lang`] and
//! compiled by [`program`]; the program runs over a record and adds to a [`tracing_map`], whose rows
//! [`render`] writes. [`schema`] defines, writes and shows synthetic events. All allocations go through
//! [`alloc`], so that the tests in `selftests/host` can make each of them fail.

#![no_std]

#[forbid(unsafe_code)]
pub mod alloc;
#[forbid(unsafe_code)]
pub mod bucket;
#[forbid(unsafe_code)]
pub mod error;
#[forbid(unsafe_code)]
pub mod expiry;
#[forbid(unsafe_code)]
pub mod field;
#[forbid(unsafe_code)]
pub mod lang;
#[forbid(unsafe_code)]
pub mod limits;
#[forbid(unsafe_code)]
pub mod overhead;
#[forbid(unsafe_code)]
pub mod program;
#[forbid(unsafe_code)]
pub mod rate;
#[forbid(unsafe_code)]
pub mod render;
#[forbid(unsafe_code)]
pub mod schema;
#[forbid(unsafe_code)]
pub mod stat;
pub mod sync;
#[forbid(unsafe_code)]
pub mod text;
#[forbid(unsafe_code)]
pub mod tracing_map;
