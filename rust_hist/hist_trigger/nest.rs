// SPDX-License-Identifier: GPL-2.0

//! How deep hits nest: a hit that generates a synthetic event is interrupted by the hits of that event.
//!
//! C counterpart: `get_hist_pad()` and `put_hist_pad()`.
//!
//! A trigger can generate the event that it is on, so a chain of events may have no end but the one that
//! is set here: of [`NEST_MAX`] hits one inside the other on a CPU, the last one's events find no hit that
//! counts them. As in C the hits of all contexts count together: the ring buffer keeps a word of bits for a
//! CPU, of which each record within a record takes five. C loses what is dropped without a trace.
//!
//! The stack of an interrupt is small. So what a hit needs much room for is not on the stack where hits
//! nest, but in a [`Pad`] of its level.
//!
//! Only what can be part of a chain pays for this: triggers that generate events, and, for a look at the count,
//! those on events that can be generated.
//!
//! Context: any, NMI included, with preemption off; [`Nest::new`] process.

use crate::{
    ffi::{
        event::Hit,
        guard::PreemptOff, //
    },
    limits::{
        KEY_WORDS_MAX,
        NEST_MAX,
        REFS_MAX,
        VARS_MAX, //
    },
    program::KeyBuf,
    sync::{
        Atomic,
        Relaxed, //
    }, //
};
use core::{
    cell::UnsafeCell,
    sync::atomic::{
        compiler_fence,
        Ordering::SeqCst, //
    }, //
};
use kernel::{
    cpu::nr_cpu_ids,
    prelude::*,
    sync::Arc,
    types::NotThreadSafe, //
};

/// What a hit writes down.
pub(super) struct Pad {
    /// Its key.
    pub(super) key: KeyBuf,
    /// The numbers that it reads of variables of other triggers, and stores in its own.
    pub(super) numbers: [u64; REFS_MAX + VARS_MAX],
}

impl Pad {
    const EMPTY: Self = Self {
        key: [0; KEY_WORDS_MAX],
        numbers: [0; REFS_MAX + VARS_MAX],
    };
}

/// What the hits on one CPU have, in cache lines of their own.
#[repr(align(64))]
struct PerCpu {
    /// How many of them are one inside the other at this moment.
    count: Atomic<u32>,
    pads: [UnsafeCell<Pad>; NEST_MAX],
}

impl PerCpu {
    const fn new() -> Self {
        Self {
            count: Atomic::new(0),
            pads: [const { UnsafeCell::new(Pad::EMPTY) }; NEST_MAX],
        }
    }
}

/// How many hits are one inside the other, on each CPU; one for all triggers.
///
/// # Invariants
///
/// - A count is written on its CPU alone, with preemption off, and whoever raises one while another of its
///   writers is interrupted has lowered it again before that one goes on.
/// - Pad `n` is used by the hit alone that has raised the count from `n`, until it lowers it.
pub(crate) struct Nest(KVVec<PerCpu>);

// SAFETY: by the type invariant a pad is used by one hit at a time; the counts are atomics.
unsafe impl Send for Nest {}

// SAFETY: as above.
unsafe impl Sync for Nest {}

impl Nest {
    /// Nobody is in a hit.
    pub(super) fn new() -> Result<Arc<Self>> {
        // CAST: a number of CPUs.
        let cpus = nr_cpu_ids() as usize;
        let mut all = KVVec::with_capacity(cpus, GFP_KERNEL)?;
        for _ in 0..cpus {
            all.push(PerCpu::new(), GFP_KERNEL)?;
        }
        // INVARIANT: all counts are 0.
        Ok(Arc::new(Self(all), GFP_KERNEL)?)
    }

    /// Whether no hit can begin on this CPU: it would be inside of as many others as there may be.
    #[inline(always)]
    pub(super) fn is_full(&self, preempt: &PreemptOff<'_>) -> bool {
        // CAST: as in `enter`.
        let cpu = self.0.get(preempt.cpu() as usize);
        // ORDERING: of this CPU alone.
        // CAST: as above.
        cpu.is_none_or(|cpu| cpu.count.load(Relaxed) as usize >= NEST_MAX)
    }

    /// Begins `hit`, unless it is inside of as many others as there may be.
    #[inline(always)]
    pub(super) fn enter<'a>(&'a self, hit: &'a Hit<'_>) -> Option<Level<'a>> {
        // CAST: `u32` fits in `usize` on every architecture that Linux supports.
        let cpu = hit.preempt_off().cpu() as usize;
        let PerCpu { count, pads } = self.0.get(cpu)?;
        // ORDERING: of this CPU alone.
        let at = count.load(Relaxed);
        // CAST: as above.
        let pad = pads.get(at as usize)?;
        // INVARIANT: whoever interrupts from here on finds the next pad; whoever did before is over.
        // ORDERING: as above.
        count.store(at.wrapping_add(1), Relaxed);
        // ORDERING: whoever interrupts this CPU does so between two instructions, so what the compiler must not
        // do is to write to the pad before the count says whose it is.
        compiler_fence(SeqCst);
        Some(Level {
            count,
            at,
            pad,
            _cpu: NotThreadSafe,
        })
    }
}

/// A hit that has begun; dropping it ends it.
///
/// # Invariants
///
/// `pad` is that of the hit, which keeps preemption off and has raised `count` from `at`.
pub(super) struct Level<'a> {
    count: &'a Atomic<u32>,
    at: u32,
    pad: &'a UnsafeCell<Pad>,
    _cpu: NotThreadSafe,
}

impl Level<'_> {
    /// What the hit writes to.
    #[inline(always)]
    pub(super) fn pad(&mut self) -> &mut Pad {
        // SAFETY: by the type invariants here and of `Nest` nobody else uses it while this value is there.
        unsafe { &mut *self.pad.get() }
    }
}

impl Drop for Level<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // INVARIANT: the hit is over, and with it all that have interrupted it.
        // ORDERING: nothing that this hit has done to the pad may come behind the store, after which the pad is
        // that of whoever interrupts; see `enter`.
        compiler_fence(SeqCst);
        // ORDERING: of this CPU alone.
        self.count.store(self.at, Relaxed);
    }
}
