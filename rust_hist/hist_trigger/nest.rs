// SPDX-License-Identifier: GPL-2.0

//! How deep hits nest: a hit that generates a synthetic event is interrupted by the hits of that event.
//!
//! C counterpart: `get_hist_pad()` and `put_hist_pad()`.
//!
//! A trigger can generate the event that it is on, so a chain of events may have no end but the one that
//! is set here: of [`NEST_MAX`] hits one inside the other, the last one's events find no hit that counts
//! them. C has the same depth, but counts the hits of all contexts together, and loses what is dropped
//! without a trace. Here an interrupt begins anew, and its stack is another one, or large enough.
//!
//! Only what can be part of a chain pays for this: triggers that generate events, and those on events that
//! can be generated.
//!
//! Context: any, NMI included, with preemption off; [`Nest::new`] process.

use crate::{
    ffi::event::{
        Context,
        Hit, //
    },
    limits::NEST_MAX,
    sync::{
        Atomic,
        Relaxed, //
    }, //
};
use core::marker::PhantomData;
use kernel::{
    cpu::nr_cpu_ids,
    prelude::*,
    sync::Arc,
    types::NotThreadSafe, //
};

/// The counts of one CPU, in a cache line of their own.
#[repr(align(64))]
struct Counts([Atomic<u32>; Context::ALL]);

/// How many hits of each context of each CPU are generating an event at this moment.
///
/// All triggers that need one share one: whoever makes the first trigger makes it, the last one's end is
/// its own.
///
/// # Invariants
///
/// Each count is written on its CPU alone, and whoever raises one while its writer is interrupted has
/// lowered it again before that one goes on.
pub(crate) struct Nest(KVVec<Counts>);

impl Nest {
    /// Nobody is generating anything.
    pub(super) fn new() -> Result<Arc<Self>> {
        // CAST: a number of CPUs.
        let cpus = nr_cpu_ids() as usize;
        let mut counts = KVVec::with_capacity(cpus, GFP_KERNEL)?;
        for _ in 0..cpus {
            counts.push(Counts([const { Atomic::new(0) }; Context::ALL]), GFP_KERNEL)?;
        }
        Ok(Arc::new(Self(counts), GFP_KERNEL)?)
    }

    /// The count of the context of a hit.
    #[inline]
    fn count(&self, hit: &Hit<'_>) -> Option<&Atomic<u32>> {
        // CAST: `u32` fits in `usize` on every architecture that Linux supports.
        let cpu = hit.preempt_off().cpu() as usize;
        self.0.get(cpu)?.0.get(hit.context().index())
    }

    /// Whether `hit` is inside of as many others as there may be.
    #[inline]
    pub(super) fn is_full(&self, hit: &Hit<'_>) -> bool {
        // ORDERING: of this CPU alone.
        self.count(hit)
            .is_none_or(|count| count.load(Relaxed) >= NEST_MAX)
    }

    /// Counts `hit` as one that is generating an event, until the result is dropped.
    #[inline]
    pub(super) fn enter<'a>(&'a self, hit: &'a Hit<'_>) -> Inside<'a> {
        let count = self.count(hit);
        if let Some(count) = count {
            // INVARIANT: preemption is off, and `Inside` lowers it.
            // ORDERING: of this CPU alone.
            count.store(count.load(Relaxed).wrapping_add(1), Relaxed);
        }
        Inside {
            count,
            _hit: PhantomData,
            _cpu: NotThreadSafe,
        }
    }
}

/// A hit is generating an event.
pub(super) struct Inside<'a> {
    count: Option<&'a Atomic<u32>>,
    /// It keeps preemption off.
    _hit: PhantomData<&'a Hit<'a>>,
    _cpu: NotThreadSafe,
}

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(count) = self.count {
            // INVARIANT: the event is written, and whatever came of it is over.
            // ORDERING: of this CPU alone.
            count.store(count.load(Relaxed).wrapping_sub(1), Relaxed);
        }
    }
}
