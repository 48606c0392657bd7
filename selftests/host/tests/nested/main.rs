// SPDX-License-Identifier: GPL-2.0

//! Hits on the paths of the module that are interrupted before each of their accesses. One binary, as all of these
//! paths are compiled for it.
//!
//! Run with `RUSTFLAGS="--cfg nested" cargo test --test nested`.

#![cfg(nested)]

#[path = "../lang_common/mod.rs"]
mod lang_common;
#[path = "../run/mod.rs"]
mod run;

use rust_hist::sync::interrupted;
use std::{
    cell::Cell,
    rc::Rc, //
};

/// Runs `outer`, and `inner` once before its access `at`. Returns what `outer` does, and whether it came to that access.
fn interrupted_at<T>(at: u64, inner: impl Fn() + 'static, outer: impl FnOnce() -> T) -> (T, bool) {
    let (steps, came) = (Cell::new(0), Rc::new(Cell::new(false)));
    let handler = {
        let came = came.clone();
        move || {
            if steps.replace(steps.get() + 1) == at {
                inner();
                came.set(true);
            }
        }
    };
    let result = interrupted(handler, outer);

    (result, came.get())
}

mod nested_exec;
mod nested_expire;
mod nested_grow;
mod nested_map;
mod nested_tally;
