// SPDX-License-Identifier: GPL-2.0

//! The tables of triggers as a crate for the host.
//!
//! These are the module's files that allocate maps, exchange them while they are hit, and give epochs to readers. For
//! the parts of the kernel that they use, `selftests/tables` has replacements: memory, grace periods, `event_mutex`,
//! the thread and the time.

#![allow(dead_code, unused_imports, reason = "tests use a part")]
#![allow(unreachable_pub, reason = "the root keeps its layers private")]
#![allow(missing_docs, clippy::missing_safety_doc, reason = "for tests")]

pub use rust_hist::{
    alloc, bucket, error, expiry, field, lang, limits, overhead, rate, render, schema, stat, sync,
    text,
};

#[path = "../selftests/tables/hash.rs"]
mod hash;
#[path = "../selftests/tables/program.rs"]
pub mod program;
#[path = "../selftests/tables/sim.rs"]
pub mod sim;

pub use self::hist_trigger::table::*;

/// The map, with a hash that a test chooses.
pub mod tracing_map {
    pub use crate::hash::Hash as SeededHash;
    pub use rust_hist::tracing_map::*;
}

/// Stand-ins for the bindings to the kernel.
pub mod ffi {
    #[path = "../../selftests/tables/ffi/clock.rs"]
    pub mod clock;
    #[path = "../../selftests/tables/ffi/command.rs"]
    pub mod command;
    #[path = "../../selftests/tables/ffi/event_files.rs"]
    pub mod event_files;
    #[path = "../../selftests/tables/ffi/guard.rs"]
    pub mod guard;
    #[path = "../../selftests/tables/ffi/memory.rs"]
    pub mod memory;
    #[path = "../../selftests/tables/ffi/other.rs"]
    mod other;
    pub mod text;

    pub use self::other::*;
}

/// The files that create, change and read tables.
pub mod hist_trigger {
    pub(crate) mod copied;
    pub(crate) mod growth;
    pub(crate) mod json;
    pub(crate) mod pipe;
    pub(crate) mod seen;
    pub(crate) mod storage;

    #[path = "../../selftests/tables/hist_trigger.rs"]
    mod other;
    #[path = "../../selftests/tables/table.rs"]
    pub(crate) mod table;

    pub use self::other::*;
}
