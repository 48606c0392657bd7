// SPDX-License-Identifier: GPL-2.0

//! Tables as tests have them.

pub use crate::{
    ffi::{
        guard::{PreemptGuard, PreemptOff},
        memory::SharedWords,
    },
    hash::Hash,
    program::Program,
};

use crate::{
    ffi::{
        event::EventFile,
        event_files::{EventTable, LockedEvent},
        guard::{EventMutex, Guarded},
        poll::PollEvents,
        seq::SeqWriter,
    },
    hist_trigger::{
        growth::{self, Growth},
        json::JsonFile,
        pipe::PipeFile,
        storage::{self, Live},
        Definition, HistTrigger,
    },
    tracing_map::{Account, Map},
};
use kernel::{error::Error, prelude::GFP_KERNEL, sync::Arc};
use std::{
    ops::Deref,
    sync::{LazyLock, OnceLock},
};

/// A map of a table.
pub type HistMap = Map<SharedWords, Hash>;

/// Kept for ever: the module is not unloaded.
static MODULE: LazyLock<Growth> = LazyLock::new(|| {
    storage::seed_hashes(1);
    Growth::new()
});

/// The table of a trigger.
#[derive(Clone)]
pub struct Table(Arc<storage::Table>, Arc<Definition>);

/// One map of a table in a hit, as long as that is not over.
#[derive(Clone, Copy)]
pub struct Source<'a>(&'a Live, PreemptOff<'a>);

/// One map of a table, for one who keeps it.
pub struct Kept(Arc<Live>);

/// A hit that has begun and is not over.
pub struct Late(PreemptGuard, *const Live);

// SAFETY: the map is there until the hit is over.
unsafe impl Send for Late {}

impl Late {
    /// Returns the map that the hit has.
    pub fn source<'a>(&self, preempt: PreemptOff<'a>) -> Source<'a> {
        // SAFETY: the table frees no map before all hits are over that have seen it. That is what is tested: a block that was
        // freed says so when it is used.
        Source(unsafe { &*self.1 }, preempt)
    }
}

impl Table {
    /// Makes the table of a trigger, with `1 << bits` entries, and up to `1 << grows_to` if it is one that grows.
    pub fn new(
        program: &std::sync::Arc<rust_hist::program::Program>,
        text: &[u8],
        bits: u32,
        grows_to: u32,
    ) -> Result<Self, Error> {
        LazyLock::force(&MODULE);
        let program = Program::with_bits(program.clone(), bits, grows_to);
        let definition = Definition {
            prefix: b"hist",
            text: text.to_vec(),
            program,
        };
        let definition = Arc::new(definition, GFP_KERNEL)?;
        Ok(Self(storage::Table::new(definition.clone())?, definition))
    }

    /// Makes another one for the same trigger.
    pub fn anew(&self) -> Self {
        Self(
            storage::Table::new(self.1.clone()).expect("memory"),
            self.1.clone(),
        )
    }

    /// Returns whether each CPU has a shard of its own in all maps.
    pub fn is_per_cpu(&self) -> bool {
        self.0.is_per_cpu()
    }

    /// Begins a hit.
    pub fn begin_late(&self) -> Late {
        let section = PreemptGuard::of_hit(0);
        let live: *const Live = self.0.in_hit(section.proof());
        Late(section, live)
    }

    /// Returns the program of the trigger.
    pub fn program(&self) -> &Program {
        &self.1.program
    }

    /// Returns what a hit uses.
    pub fn in_hit<'a>(&'a self, preempt: PreemptOff<'a>) -> Source<'a> {
        Source(self.0.in_hit(preempt), preempt)
    }

    /// Returns what hits use that begin now. Takes no mutex: another task may have stopped that holds it.
    pub fn live(&self) -> Kept {
        let section = PreemptGuard::of_hit(0);
        let live: *const Live = self.0.in_hit(section.proof());
        // SAFETY: the address of a value of an `Arc`, which the table has or gives up after this section.
        let live = std::mem::ManuallyDrop::new(unsafe { Arc::from_raw(live) });
        Kept(Arc::clone(&live))
    }

    /// Asks for another map, as a hit does.
    pub fn ask_for_room(&self) {
        self.0.ask_for_room();
    }

    /// Gives the table another map if it needs one, as the thread does.
    pub fn replace(&self) -> Result<(), Error> {
        match self.0.expires() {
            true => self.0.succeed(),
            false => self.0.grow(),
        }
    }

    /// Empties the table.
    pub fn clear(&self) -> Result<(), Error> {
        self.0.clear(&EventMutex::lock())
    }

    /// Returns the bytes that it says it takes.
    pub fn bytes(&self) -> usize {
        self.0.bytes(&EventMutex::lock())
    }

    /// Returns what it has counted.
    pub fn account(&self) -> Result<Account, Error> {
        let counted = self.0.counted(&EventMutex::lock())?;
        let program = self.program();
        Ok(counted.before(program).plus(&counted.maps.account(program)))
    }

    /// Returns how often it has got a larger map, and how often a generation has ended early.
    pub fn replacements(&self) -> (u64, u64) {
        let held = EventMutex::lock();
        let grown = self.0.grown(&held).map_or(0, |grown| grown.times);
        (grown, self.0.forced(&held).unwrap_or(0))
    }

    /// Returns how many keys the present epoch has.
    pub fn entries(&self) -> Result<usize, Error> {
        Ok(self.0.counted(&EventMutex::lock())?.maps.keys())
    }
}

impl<'a> Source<'a> {
    /// Returns the map.
    pub fn map(self) -> &'a HistMap {
        &self.0.map
    }

    /// Returns the one before, in which there may be variables that are not in this one.
    pub fn replaced(self) -> Option<Self> {
        Some(Self(self.0.replaced(self.1)?, self.1))
    }
}

impl Kept {
    /// Returns whether both are the same map.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Deref for Kept {
    type Target = HistMap;

    fn deref(&self) -> &HistMap {
        &self.0.map
    }
}

/// An event with triggers.
pub struct Event(EventFile);

// SAFETY: the triggers change under the mutex alone.
unsafe impl Sync for Event {}
// SAFETY: the triggers change under the mutex alone.
unsafe impl Send for Event {}

impl Event {
    /// Returns one without triggers.
    pub fn new() -> Self {
        Self(EventFile {
            triggers: Guarded::new(Vec::new()),
        })
    }

    /// Puts a trigger on it.
    pub fn add(&self, table: &Table) -> Result<(), Error> {
        self.put(table, false)
    }

    /// Puts a trigger on it whose variables another one reads.
    pub fn add_used(&self, table: &Table) -> Result<(), Error> {
        self.put(table, true)
    }

    fn put(&self, table: &Table, is_used: bool) -> Result<(), Error> {
        let held = EventMutex::lock();
        let trigger = HistTrigger {
            definition: table.1.clone(),
            table: table.0.clone(),
            is_used,
        };
        growth::reserve(&table.0, &held)?;
        growth::add(&table.0, &held);
        self.0
            .triggers
            .get(&held)
            .push(Arc::new(trigger, GFP_KERNEL)?);
        Ok(())
    }

    /// Takes all triggers off.
    pub fn remove_all(&self) {
        let held = EventMutex::lock();
        for trigger in self.0.triggers.get(&held).drain(..) {
            growth::remove(&trigger.table, &held);
        }
    }

    /// Reads `hist_json`.
    pub fn read_json(&self) -> Result<String, Error> {
        let opened = JsonFile::open(LockedEvent::lock(&self.0))?;
        let copy = JsonFile::copy(&opened, LockedEvent::lock(&self.0))?;
        Ok(text::<JsonFile>(&copy))
    }
}

impl Default for Event {
    fn default() -> Self {
        Self::new()
    }
}

fn text<T: EventTable>(copy: &T::Copy) -> String {
    let mut bytes = Vec::new();
    for index in 0..T::records(copy) {
        T::show(copy, index, &mut SeqWriter(&mut bytes)).expect("there is room");
    }
    String::from_utf8(bytes).expect("JSON")
}

/// An open `hist_pipe`.
pub struct Pipe(std::sync::Arc<Event>, <PipeFile as EventTable>::Opened);

// SAFETY: what it has changes under the mutex alone.
unsafe impl Sync for Pipe {}
// SAFETY: what it has changes under the mutex alone.
unsafe impl Send for Pipe {}

/// What a read of `hist_pipe` has copied.
pub struct Epochs(<PipeFile as EventTable>::Copy);

// SAFETY: what it has changes under the mutex alone.
unsafe impl Send for Epochs {}

impl Pipe {
    /// Opens it.
    pub fn open(event: &std::sync::Arc<Event>) -> Result<Self, Error> {
        let opened = PipeFile::open(LockedEvent::lock(&event.0))?;
        Ok(Self(event.clone(), opened))
    }

    /// Reads it up to where the reader is given something.
    pub fn read(&self) -> Result<Epochs, Error> {
        let copy = PipeFile::copy(&self.1, LockedEvent::lock(&self.0 .0))?;
        Ok(Epochs(copy))
    }

    /// Returns whether there is something to read.
    pub fn is_readable(&self) -> bool {
        let ready = PipeFile::poll(&self.1, LockedEvent::lock(&self.0 .0));
        ready.0 & PollEvents::READABLE.0 != 0
    }
}

impl Epochs {
    /// Gives the reader what he has read. If this is not called he is gone.
    pub fn give(mut self) -> String {
        let text = text::<PipeFile>(&self.0);
        PipeFile::given(&mut self.0);
        text
    }
}
