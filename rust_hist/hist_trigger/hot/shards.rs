// SPDX-License-Identifier: GPL-2.0

//! Whether each CPU of a table has a shard of its own, and the ways of triggers where that is not known.
//!
//! Where it has, as on all but large machines, a hit adds to it by single instructions; where CPUs share shards, by
//! atomic ones. The shortest ways, of which each instruction counts, are compiled for the first alone. The rest, and
//! the ways here, look at the table in each hit.
//!
//! The ways here look for their place in a chain of events as well. So one is for whatever takes none of the
//! shortest ways by either: it costs a few instructions more, and less code than a way for each.
//!
//! Context: that of the hit.

use super::{
    super::HistTrigger,
    chain::AtEnd,
    vars::{
        are_few,
        Since,
        Tracks, //
    },
    AllNumbers,
    Chain,
    Numbers, //
};
use crate::{
    ffi::command::Way,
    program::Program,
    tracing_map::{
        Place,
        Sharing, //
    }, //
};

/// What a way knows of the shards of its tables.
pub(super) trait Shards {
    /// Where a hit on this CPU counts.
    fn place(cpu: impl Fn() -> u32 + Copy) -> impl Place + Copy;
}

/// Each CPU has one of its own.
pub(super) struct Own;

impl Shards for Own {
    #[inline(always)]
    fn place(cpu: impl Fn() -> u32 + Copy) -> impl Place + Copy {
        cpu
    }
}

/// Each CPU may have one of its own, or share it with others.
pub(super) struct Any;

impl Shards for Any {
    #[inline(always)]
    fn place(cpu: impl Fn() -> u32 + Copy) -> impl Place + Copy {
        Sharing(cpu)
    }
}

/// The way for the records of a trigger that is at the end of a chain or whose CPUs may share shards, if there is one
/// here; `is_own` says that these share none.
pub(super) fn way(program: &Program, is_own: bool, chain: Chain) -> Option<Way<HistTrigger>> {
    if chain == Chain::Link || (is_own && chain == Chain::Outside) {
        return None;
    }
    let (since, tracking) = match are_few(program) {
        true => (program.since_keys(), program.tracking_keys()),
        false => (0, 0),
    };
    Some(match (program.number_keys(), program.all_numbers_keys()) {
        // Those have a way at the end of a chain.
        (1.., _) if is_own => return None,
        (1, _) => Way::short::<AtEnd<Numbers<1, true, Any>>>(),
        (2, _) => Way::short::<AtEnd<Numbers<2, true, Any>>>(),
        (3, _) => Way::short::<AtEnd<Numbers<3, true, Any>>>(),
        (4, _) => Way::short::<AtEnd<Numbers<4, true, Any>>>(),
        (_, 1) => Way::tried::<AtEnd<AllNumbers<1, true, Any>>>(),
        (_, 2) => Way::tried::<AtEnd<AllNumbers<2, true, Any>>>(),
        _ if since == 1 => Way::tried::<AtEnd<Since<1, Any>>>(),
        _ if tracking == 1 => Way::tried::<AtEnd<Tracks<1, Any>>>(),
        _ => return None,
    })
}
