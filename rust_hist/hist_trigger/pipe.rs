// SPDX-License-Identifier: GPL-2.0

//! The `hist_pipe` file: each read from the beginning ends an epoch of the event's tables and returns its rows.
//!
//! There is no C counterpart. The lines have the form of `hist_json`.
//!
//! Each hit is in exactly one epoch. The maps of the next epoch, and all text that needs memory, are allocated before
//! the first map is exchanged. A table keeps a retired map until a reader has received its first bytes: if memory is
//! lacking or the reader is gone, the next reader gets that epoch.
//!
//! A table whose variables other triggers read is not consumed: starts in it have not ended.
//!
//! Context: process. `event_mutex` is not held while memory is allocated, hits are waited for, or rows are copied.

use super::{
    copied::{
        self,
        TableCopy, //
    },
    growth::settled,
    json::{
        Lines,
        ListedLines, //
    },
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

/// The type of the file.
pub(crate) struct PipeFile;

/// The state of an open file.
pub(crate) struct OpenPipe {
    seen: Seen,
    reader: Guarded<Reader>,
}

/// The state that an open file keeps from one read to the next.
struct Reader {
    /// The tables that count this file as a reader.
    tables: KVec<Arc<Table>>,
    /// Whether there were triggers when the file was opened or last read.
    had_triggers: bool,
    /// Whether the file has written to the error log: a mere reader may add only one entry.
    is_logged: bool,
}

/// The epochs that one read returns.
pub(crate) struct ReadEpochs {
    tables: KVec<Lines>,
    /// The claims on these epochs, until the reader has received the first bytes.
    claims: KVec<Claim>,
}

/// Returns whether a trigger is the first on its event with its table, and no other trigger reads its variables.
fn is_consumable(trigger: &Attached<'_, HistTrigger>, held: &EventMutexHeld) -> bool {
    let table = &trigger.data().table;
    let mut all = Attached::<HistTrigger>::all(trigger.file(), held);
    let first = all.find(|other| Arc::ptr_eq(&other.data().table, table));
    first.is_some_and(|first| core::ptr::eq(first.data(), trigger.data()))
        && remove::user(trigger, held).is_none()
}

/// Iterates over the triggers of an event whose tables can be consumed.
fn consumable<'a>(event: &'a LockedEvent<'_>) -> impl Iterator<Item = Attached<'a, HistTrigger>> {
    let held = event.held();
    Attached::all(event.file(), held).filter(move |trigger| is_consumable(trigger, held))
}

/// Returns whether there are triggers; `EBUSY` if other triggers read the variables of all tables, with an entry in the
/// error log unless `is_logged`.
fn check(event: &LockedEvent<'_>, is_logged: &mut bool) -> Result<bool> {
    let (file, held) = (event.file(), event.held());
    let Some(trigger) = Attached::<HistTrigger>::all(file, held).next() else {
        return Ok(false);
    };
    if consumable(event).next().is_some() {
        return Ok(true);
    }
    if let (false, Some(user)) = (replace(is_logged, true), remove::user(&trigger, held)) {
        remove::log_in_use(&trigger, &user);
    }
    Err(EBUSY)
}

impl OpenPipe {
    /// Makes the tables that this file consumes count it as a reader, and no other tables.
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

    /// Returns whether a reader has claimed an epoch of the file's tables that it has not received yet.
    fn has_claimed(&self, held: &EventMutexHeld) -> bool {
        let tables = &self.reader.get(held).tables;
        tables.iter().any(|table| table.is_claimed(held))
    }

    /// Returns the tables of the file without a map for the next epoch.
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
    /// Not inlined: its stack frame is gone when the rows are copied.
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

/// Allocates a map for each of the tables.
fn new_spares(tables: KVec<Arc<Table>>) -> Result<KVec<(Arc<Table>, UniqueArc<Live>)>> {
    let mut spares = KVec::with_capacity(tables.len(), GFP_KERNEL_ACCOUNT)?;
    for table in tables {
        let spare = table.new_spare()?;
        spares.push((table, spare), GFP_KERNEL_ACCOUNT)?;
    }
    Ok(spares)
}

impl Drop for OpenPipe {
    fn drop(&mut self) {
        self.exchange_tables(KVec::new(), &EventMutex::lock());
    }
}

/// Lists the triggers, and claims the ended epoch of each table that this read consumes.
///
/// Not inlined: its stack frame is gone when the rows are copied.
#[inline(never)]
fn claim(event: &LockedEvent<'_>) -> Result<(KVec<ListedLines<bool>>, KVec<Claim>)> {
    let (file, held) = (event.file(), event.held());
    let now = Moment::now();
    let mut listed = KVec::new();
    let mut tables = KVec::new();
    for trigger in Attached::<HistTrigger>::all(file, held) {
        let table = &trigger.data().table;
        let is_consumed = is_consumable(&trigger, held);
        let next = is_consumed.then(|| table.next_claim(&now, held));
        let next = next.transpose()?;
        let epoch = next.as_ref().map(|next| next.epoch);
        let epoch = epoch.unwrap_or_else(|| table.epoch(&now, held));
        let one = ListedLines::new(&trigger, epoch, Some(is_consumed), is_consumed, held)?;
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
    type Opened = OpenPipe;
    type Copy = ReadEpochs;

    fn open(event: LockedEvent<'_>) -> Result<OpenPipe> {
        let event = settled(event)?;
        let had_triggers = check(&event, &mut false)?;
        Ok(OpenPipe {
            reader: Guarded::new(Reader {
                tables: KVec::new(),
                had_triggers,
                is_logged: false,
            }),
            seen: Seen::new(event)?,
        })
    }

    fn copy(opened: &OpenPipe, event: LockedEvent<'_>) -> Result<ReadEpochs> {
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
                maps.map(|maps| TableCopy::of_settled(definition, maps))
                    .transpose()
            })?;
            tables.push(lines, GFP_KERNEL_ACCOUNT)?;
        }
        if let Some(none) = none {
            tables.push(none, GFP_KERNEL_ACCOUNT)?;
        }
        Ok(ReadEpochs { tables, claims })
    }

    fn records(epochs: &ReadEpochs) -> usize {
        copied::count(&epochs.tables, |lines| lines.len)
    }

    fn show(epochs: &ReadEpochs, index: usize, out: &mut SeqWriter<'_>) -> fmt::Result {
        match copied::find(&epochs.tables, index, |lines| lines.len) {
            Some((lines, index)) => lines.show(index, out),
            None => Ok(()),
        }
    }

    fn given(epochs: &mut ReadEpochs) {
        for mut claim in take(&mut epochs.claims) {
            claim.settle();
        }
    }

    fn poll(opened: &OpenPipe, event: LockedEvent<'_>) -> PollEvents {
        let Ok(event) = settled(event) else {
            return PollEvents::ERROR;
        };
        let held = event.held();
        let is_readable = consumable(&event).any(|trigger| trigger.data().table.has_unread(held));
        opened.seen.poll(Some(is_readable), event)
    }
}
