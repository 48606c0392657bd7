// SPDX-License-Identifier: GPL-2.0

//! Hits on the paths of the module that are interrupted before each of their accesses. One binary, as all of these
//! paths are compiled for it.
//!
//! Run with `RUSTFLAGS="--cfg nested" cargo test --test nested`.

#![cfg(nested)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../lang_common/mod.rs"]
mod lang_common;
#[path = "../run/mod.rs"]
mod run;

mod nested_exec;
mod nested_expire;
mod nested_grow;
mod nested_map;
mod nested_tally;
