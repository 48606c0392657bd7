// SPDX-License-Identifier: GPL-2.0

//! The `hist_pipe` file: each read from the beginning ends an epoch of the tables of an event and has its rows.
//!
//! There is no C counterpart. The lines are those of `hist_json`.
//!
//! Each hit is in exactly one epoch. The maps of the next one are there, and the text that needs memory, before the
//! first map is exchanged. Of a retired map the table knows until a reader was given the first bytes of it: if he was
//! not, for lack of memory or because he is gone, whoever reads next has that epoch.
//!
//! A table whose variables other triggers read is left alone: what has begun in it has not ended.
//!
//! Context: process. `event_mutex` is not held while memory is allocated, hits are waited for, or rows are copied.

use super::{
    copied::{
        self,
        Copied, //
    },
    growth::settled,
    json::{
        Lines,
        Listed, //
    },
    log::Log,
    remove,
    seen::Seen,
    storage::{
        Claim,
        Live,
        Table, //
    },
    HistTrigger, //
};
use crate::ffi::{
    clock::Moment,
    command::Attached,
    event_files::{
        EventTable,
        LockedEvent, //
    },
    guard::{
        wait_for_hits,
        EventMutex,
        EventMutexHeld,
        Guarded, //
    },
    poll::PollEvents,
    seq::SeqWriter, //
};
use core::{
    fmt,
    mem::{
        replace,
        take, //
    }, //
};
use kernel::{
    prelude::*,
    sync::{
        Arc,
        UniqueArc, //
    }, //
};

/// The kind of file.
pub(crate) struct PipeFile;

/// An open file.
pub(crate) struct Opened {
    seen: Seen,
    reader: Guarded<Reader>,
}

/// What a file keeps from one read to the next.
struct Reader {
    /// The tables of which it counts as a reader.
    tables: KVec<Arc<Table>>,
    /// There were triggers when it was opened, or when it was read.
    had_triggers: bool,
    /// The error log has an entry of it: those who may only read are to add no more than that.
    is_logged: bool,
}

/// The epochs of one read.
pub(crate) struct Epochs {
    tables: KVec<Lines>,
    /// Until the reader was given the first of them.
    claims: KVec<Claim>,
}

/// Whether a trigger is the first one on its event that has its table, and nobody reads variables of it.
fn is_consumable(trigger: &Attached<'_, HistTrigger>, held: &EventMutexHeld) -> bool {
    let table = &trigger.data().table;
    let mut all = Attached::<HistTrigger>::all(trigger.file(), held);
    let first = all.find(|other| Arc::ptr_eq(&other.data().table, table));
    first.is_some_and(|first| core::ptr::eq(first.data(), trigger.data()))
        && remove::user(trigger, held).is_none()
}

/// The triggers of an event whose tables are consumed.
fn consumable<'a>(event: &'a LockedEvent<'_>) -> impl Iterator<Item = Attached<'a, HistTrigger>> {
    let held = event.held();
    Attached::all(event.file(), held).filter(move |trigger| is_consumable(trigger, held))
}

/// Says whether there are triggers; `EBUSY` if all tables are those of others, and an entry in the error log unless it
/// `is_logged`.
fn check(event: &LockedEvent<'_>, is_logged: &mut bool) -> Result<bool> {
    let (file, held) = (event.file(), event.held());
    let Some(trigger) = Attached::<HistTrigger>::all(file, held).next() else {
        return Ok(false);
    };
    if consumable(event).next().is_some() {
        return Ok(true);
    }
    if let (false, Some(user)) = (replace(is_logged, true), remove::user(&trigger, held)) {
        let definition = &trigger.data().definition;
        let log = Log {
            prefix: definition.prefix,
            text: &definition.text,
            file,
            removes: false,
        };
        // The errno is the one below.
        let _ = log.refuse(&remove::in_use(&user));
    }
    Err(EBUSY)
}

impl Opened {
    /// Counts the file as a reader of the tables that it consumes, and of no others.
    fn register(&self, event: &LockedEvent<'_>) -> Result {
        let held = event.held();
        let mut tables = KVec::new();
        for trigger in consumable(event) {
            tables.push(trigger.data().table.clone(), GFP_KERNEL_ACCOUNT)?;
        }
        self.exchange_tables(tables, held);
        Ok(())
    }

    fn exchange_tables(&self, tables: KVec<Arc<Table>>, held: &EventMutexHeld) {
        let reader = self.reader.get(held);
        for table in &tables {
            table.count_reader(true, held);
        }
        for table in replace(&mut reader.tables, tables) {
            table.count_reader(false, held);
        }
    }

    /// Whether a reader has an epoch of a table of the file that he has not been given yet.
    fn has_claimed(&self, held: &EventMutexHeld) -> bool {
        let tables = &self.reader.get(held).tables;
        tables.iter().any(|table| table.is_claimed(held))
    }

    /// The tables of the file that have no map for the next epoch.
    fn unready(&self, held: &EventMutexHeld) -> Result<KVec<Arc<Table>>> {
        let mut unready = KVec::new();
        for table in &self.reader.get(held).tables {
            if !table.is_ready(held) {
                unready.push(table.clone(), GFP_KERNEL_ACCOUNT)?;
            }
        }
        Ok(unready)
    }

    /// Gives each table of the file a map for the next epoch, and returns with `event_mutex` held.
    ///
    /// Not inlined: what it has on its stack is gone when the rows are copied.
    #[inline(never)]
    fn prepare<'a>(&self, mut event: LockedEvent<'a>) -> Result<LockedEvent<'a>> {
        loop {
            event = settled(event)?;
            let reader = self.reader.get(event.held());
            match check(&event, &mut reader.is_logged)? {
                true => reader.had_triggers = true,
                false if reader.had_triggers => return Err(ENODEV),
                false => {}
            }
            self.register(&event)?;
            if self.has_claimed(event.held()) {
                event = event.pause()?;
                continue;
            }
            let unready = self.unready(event.held())?;
            if unready.is_empty() {
                return Ok(event);
            }
            let spares;
            (event, spares) = event.unlocked(|| new_spares(unready))?;
            for (table, spare) in spares? {
                table.put_spare(spare, event.held());
            }
        }
    }
}

/// A map for each of the tables.
fn new_spares(tables: KVec<Arc<Table>>) -> Result<KVec<(Arc<Table>, UniqueArc<Live>)>> {
    let mut spares = KVec::with_capacity(tables.len(), GFP_KERNEL_ACCOUNT)?;
    for table in tables {
        let spare = table.new_spare()?;
        spares.push((table, spare), GFP_KERNEL_ACCOUNT)?;
    }
    Ok(spares)
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.exchange_tables(KVec::new(), &EventMutex::lock());
    }
}

/// Lists the triggers, each with its table if that is consumed, and claims the epochs of these.
///
/// Not inlined: what it has on its stack is gone when the rows are copied.
#[inline(never)]
fn claim(event: &LockedEvent<'_>) -> Result<(KVec<Listed<bool>>, KVec<Claim>)> {
    let (file, held) = (event.file(), event.held());
    let now = Moment::now();
    let mut listed = KVec::new();
    let mut tables = KVec::new();
    for trigger in Attached::<HistTrigger>::all(file, held) {
        let table = &trigger.data().table;
        let is_consumed = is_consumable(&trigger, held);
        let next = match is_consumed {
            true => Some(table.next_claim(&now, held)?),
            false => None,
        };
        let epoch = match &next {
            Some(next) => next.epoch,
            None => table.epoch(&now, held),
        };
        let one = Listed::new(&trigger, epoch, Some(is_consumed), is_consumed, held)?;
        listed.push(one, GFP_KERNEL_ACCOUNT)?;
        if let Some(next) = next {
            tables.push((table.clone(), next), GFP_KERNEL_ACCOUNT)?;
        }
    }

    // Nothing below needs memory, so no claim is dropped here, which would take `event_mutex` again.
    let mut claims = KVec::with_capacity(tables.len(), GFP_KERNEL_ACCOUNT)?;
    for (table, next) in tables {
        claims.push(Table::claim(table, next, &now, held), GFP_KERNEL_ACCOUNT)?;
    }
    Ok((listed, claims))
}

#[vtable]
impl EventTable for PipeFile {
    type Opened = Opened;
    type Copy = Epochs;

    fn open(event: LockedEvent<'_>) -> Result<Opened> {
        let event = settled(event)?;
        let had_triggers = check(&event, &mut false)?;
        Ok(Opened {
            reader: Guarded::new(Reader {
                tables: KVec::new(),
                had_triggers,
                is_logged: false,
            }),
            seen: Seen::new(event)?,
        })
    }

    fn copy(opened: &Opened, event: LockedEvent<'_>) -> Result<Epochs> {
        let event = opened.prepare(event)?;
        let (listed, claims) = claim(&event)?;
        let none = Lines::none_if(listed.is_empty(), event.file())?;
        drop(event);
        if !claims.is_empty() {
            wait_for_hits();
        }

        let mut left = claims.iter();
        let mut tables = KVec::with_capacity(listed.len(), GFP_KERNEL_ACCOUNT)?;
        for one in listed {
            let lines = one.copy(|definition, is_consumed| {
                let claim = is_consumed.then(|| left.next()).flatten();
                let maps = claim.and_then(Claim::maps);
                maps.map(|maps| Copied::of_settled(definition, maps))
                    .transpose()
            })?;
            tables.push(lines, GFP_KERNEL_ACCOUNT)?;
        }
        if let Some(none) = none {
            tables.push(none, GFP_KERNEL_ACCOUNT)?;
        }
        Ok(Epochs { tables, claims })
    }

    fn records(epochs: &Epochs) -> usize {
        copied::count(&epochs.tables, |lines| lines.len)
    }

    fn show(epochs: &Epochs, index: usize, out: &mut SeqWriter<'_>) -> fmt::Result {
        match copied::find(&epochs.tables, index, |lines| lines.len) {
            Some((lines, index)) => lines.show(index, out),
            None => Ok(()),
        }
    }

    fn given(epochs: &mut Epochs) {
        for mut claim in take(&mut epochs.claims) {
            claim.settle();
        }
    }

    fn poll(opened: &Opened, event: LockedEvent<'_>) -> PollEvents {
        let Ok(event) = settled(event) else {
            return PollEvents::ERROR;
        };
        let held = event.held();
        let is_readable = consumable(&event).any(|trigger| trigger.data().table.has_unread(held));
        opened.seen.poll_of(is_readable, event)
    }
}
