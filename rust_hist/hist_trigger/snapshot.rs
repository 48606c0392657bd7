// SPDX-License-Identifier: GPL-2.0

//! The action `snapshot()`: the condition for a snapshot of the instance, and the data kept of the hit that took it.
//!
//! C counterpart: `cond_snapshot_update()` and `track_data_snapshot_print()`.
//!
//! The condition compares with one value for the whole instance: among all entries of the table, the one with the
//! largest, or the latest, value has the snapshot. With a DELTA or a limit it is the entry for which the handler's
//! condition held last.

use crate::{
    error::{
        ErrKind,
        Errno,
        Refusal, //
    },
    ffi::{
        event::EventFile,
        guard::EventMutexHeld,
        snapshot::{
            CondSnapshot,
            Condition, //
        }, //
    },
    limits::{
        COMM_WORDS,
        KEY_WORDS_MAX, //
    },
    sync::{
        Atomic,
        Relaxed, //
    },
    tracing_map::When, //
};
use kernel::prelude::*;

/// The data of the hit that took the snapshot.
#[derive(Clone, Copy)]
pub(super) struct SnapshotHit {
    /// The tracked value of the hit.
    pub(super) value: u64,
    /// The name of the task that created the entry, if the trigger shows it.
    pub(super) comm: [u64; COMM_WORDS],
    key: [u64; KEY_WORDS_MAX],
    key_words: usize,
    /// Whether a snapshot was taken.
    is: bool,
}

impl SnapshotHit {
    const NONE: Self = Self {
        value: 0,
        comm: [0; COMM_WORDS],
        key: [0; KEY_WORDS_MAX],
        key_words: 0,
        is: false,
    };

    /// Returns the key of the entry.
    pub(super) fn key(&self) -> &[u64] {
        self.key.get(..self.key_words).unwrap_or(&[])
    }
}

/// A hit whose value has just become the tracked value of its entry.
pub(super) struct Candidate<'a> {
    when: When,
    value: u64,
    key: &'a [u64],
    comm: &'a [Atomic<u64>],
}

impl Condition for SnapshotHit {
    type Hit<'a> = Candidate<'a>;

    fn accept(&mut self, hit: &Candidate<'_>) -> bool {
        let is_better = match hit.when {
            When::Larger => hit.value > self.value,
            When::Other => hit.value != self.value,
            When::Apart { .. } | When::Above { .. } => true,
        };
        if !is_better {
            return false;
        }
        self.value = hit.value;
        self.is = true;
        self.key_words = hit.key.len().min(KEY_WORDS_MAX);
        for (to, from) in self.key.iter_mut().zip(hit.key) {
            *to = *from;
        }
        for (to, from) in self.comm.iter_mut().zip(hit.comm) {
            // ORDERING: the hit has found the entry, so it sees the name, which does not change any more.
            *to = from.load(Relaxed);
        }
        true
    }
}

/// The snapshot of one table.
pub(super) struct Snapshot(CondSnapshot<SnapshotHit>);

impl Snapshot {
    /// Makes the table the only user of the snapshot of `file`'s instance.
    ///
    /// The caller pins the instance until it has called [`Snapshot::disable`].
    pub(super) fn enable(
        file: &EventFile,
        _held: &EventMutexHeld,
    ) -> core::result::Result<Self, Refusal> {
        // SAFETY: `snapshot()` needs a variable, and a trigger with variables pins its instance.
        match unsafe { CondSnapshot::enable(file.instance(), SnapshotHit::NONE) } {
            Ok(snapshot) => Ok(Self(snapshot)),
            // PARITY: C logs nothing in these cases, see `action_create()`.
            Err(error) if error == EBUSY => Err(Self::busy()),
            Err(error) if error == ENODEV => {
                Err(Refusal::new(Errno::Enodev, ErrKind::NoSnapshot, 0))
            }
            Err(_) => Err(Refusal::silent(Errno::Enomem)),
        }
    }

    /// Returns the refusal of a second user of the snapshot.
    pub(super) fn busy() -> Refusal {
        Refusal::new(Errno::Ebusy, ErrKind::SnapshotBusy, 0)
    }

    /// Takes a snapshot if the value of this hit is better than the value of the present snapshot.
    ///
    /// Must be called with preemption off, after the value has become the tracked one of the entry with `key`. `comm`
    /// is the name of the task in the entry, or empty.
    pub(super) fn take(&self, when: When, value: u64, key: &[u64], comm: &[Atomic<u64>]) {
        self.0.take(&Candidate {
            when,
            value,
            key,
            comm,
        });
    }

    /// Returns the data of the hit that took the snapshot; `None` if there was none. `ENOMEM` if there is no memory.
    pub(super) fn copy(&self) -> Result<Option<KBox<SnapshotHit>>> {
        let taken = self.0.copy()?;
        Ok(taken.is.then_some(taken))
    }

    /// Releases the snapshot of the instance. Must be called after the last hit.
    pub(super) fn disable(&self) {
        self.0.disable();
    }
}
