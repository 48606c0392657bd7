// SPDX-License-Identifier: GPL-2.0

//! What the tests of variables, expressions and actions begin with.

use super::world::World;
use rust_hist::{
    error::Refusal,
    lang,
    program::{
        Program,
        Purpose, //
    }, //
};

/// A world with variables of two other events.
pub(crate) fn world() -> World {
    World::new()
        .with(
            "sched",
            "switch",
            "keys=next_pid:ts0=common_timestamp.usecs,who=next_comm,prio=next_prio,both=next_pid",
        )
        .with(
            "kmem",
            "kmalloc",
            "keys=common_pid:bytes=bytes_req,seven=7,zero=0,both=node,st=common_stacktrace",
        )
}

/// The line of a trigger with `keys=s32`, the values, and what follows them.
pub(crate) fn line(vals: &str, vars: &str, rest: &str) -> String {
    format!("keys=s32:vals=hitcount{vals}{vars}:sort=hitcount:size=2048{rest}")
}

/// What follows the size of a trigger with stamps.
pub(crate) fn clock(text: &str) -> String {
    if text.contains("common_timestamp") {
        ":clock=global".into()
    } else {
        String::new()
    }
}

/// Compiles without settling what the handlers do.
pub(crate) fn compile_with(
    world: &mut World,
    text: &str,
    purpose: Purpose,
) -> Result<Program, Refusal> {
    Program::compile(&lang::parse(b"hist", text.as_bytes())?, world, purpose)
}
