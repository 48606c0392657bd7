// SPDX-License-Identifier: GPL-2.0

//! The `hist` file: all tables of an event at the beginning of the read, as text.
//!
//! C counterpart: `hist_show()` and `event_hist_poll()`.
//!
//! `event_mutex` is held while the tables are listed. Rows are copied, sorted and written without it.

use super::{
    copied::{
        self,
        TableCopy, //
    },
    growth::settled,
    seen::Seen,
    snapshot::SnapshotHit,
    storage::Counted,
    text::KernelNames,
    write_header,
    Definition,
    HistTrigger, //
};
use crate::{
    ffi::{
        command::Attached,
        event_files::{
            EventTable,
            LockedEvent, //
        },
        guard::EventMutexHeld,
        poll::PollEvents,
        seq::SeqWriter,
        text::TextBuf, //
    },
    render::{
        self,
        Renderer,
        Stats, //
    },
    text::Out, //
};
use core::fmt;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// The type of the file.
pub(crate) struct HistFile;

/// A trigger as found at the beginning of the read.
struct ListedTable {
    /// The text up to the first row.
    header: TextBuf,
    definition: Arc<Definition>,
    counted: Counted,
    /// The hit that took the snapshot, if there was one.
    snapshot: Option<KBox<SnapshotHit>>,
}

impl ListedTable {
    /// Lists a trigger, which is preceded by `n` others in the file.
    fn new(n: usize, trigger: &Attached<'_, HistTrigger>, held: &EventMutexHeld) -> Result<Self> {
        let data = trigger.data();
        let mut header = TextBuf::charged();
        write_header(n, trigger, &mut header).map_err(|_| ENOMEM)?;
        Ok(Self {
            header,
            definition: data.definition.clone(),
            counted: data.table.counted(held)?,
            snapshot: match data.table.snapshot() {
                Some(snapshot) => snapshot.copy()?,
                None => None,
            },
        })
    }

    /// Not inlined: the result is on this function's stack before it is moved.
    ///
    /// PARITY: `hist_trigger_show()` shows no rows when there is no memory for them.
    #[inline(never)]
    fn copy(self) -> Shown {
        let maps = &self.counted.maps;
        let copied = TableCopy::of_live(&self.definition, maps)
            .unwrap_or_else(|_| TableCopy::without_rows(&self.definition, maps));
        let others = usize::from(copied.others().is_some());
        let rows = copied.shown().len().saturating_add(others);
        Shown {
            records: rows.saturating_add(2),
            header: self.header,
            stats: Stats::with(
                &self.definition.program,
                &copied.shown().rows,
                copied.others(),
            ),
            copied,
            snapshot: self.snapshot,
        }
    }
}

/// The text of one trigger, and the rows that are formatted when they are read.
pub(crate) struct Shown {
    /// The number of records: header, rows, the row of others, snapshot and totals.
    records: usize,
    header: TextBuf,
    stats: Stats,
    copied: TableCopy,
    snapshot: Option<KBox<SnapshotHit>>,
}

impl Shown {
    fn show(&self, index: usize, out: &mut SeqWriter<'_>) -> fmt::Result {
        let Some(place) = index.checked_sub(1) else {
            return out.write_bytes(self.header.as_bytes());
        };
        let definition = &self.copied.definition;
        let table = Renderer {
            program: &definition.program,
            text: &definition.text,
            stats: &self.stats,
            symbols: &KernelNames,
        };
        let shown = self.copied.shown();
        let others = || self.copied.others().filter(|_| place == shown.len());
        if let Some(row) = shown.row(place).or_else(others) {
            return table.row(&row, out);
        }
        if let Some(taken) = &self.snapshot {
            table.snapshot(taken.value, taken.key(), &taken.comm, out)?;
        }
        render::totals(&self.copied.account, self.copied.rows().len(), out)?;
        match self.copied.groups() {
            Some((fold, groups)) => {
                let others = self.copied.others().is_some();
                fold.totals(&self.copied.account, groups.len(), others, out)
            }
            None => Ok(()),
        }
    }
}

#[vtable]
impl EventTable for HistFile {
    type Opened = Seen;
    type Copy = KVec<Shown>;

    fn open(event: LockedEvent<'_>) -> Result<Seen> {
        Seen::new(event)
    }

    fn copy(seen: &Seen, event: LockedEvent<'_>) -> Result<KVec<Shown>> {
        let event = settled(event)?;
        let (file, held) = (event.file(), event.held());
        let mut listed: KVec<ListedTable> = KVec::new();
        let mut hits: u64 = 0;
        for (n, trigger) in Attached::all(file, held).enumerate() {
            listed.push(ListedTable::new(n, &trigger, held)?, GFP_KERNEL_ACCOUNT)?;
        }
        drop(event);

        let mut tables = KVec::with_capacity(listed.len(), GFP_KERNEL_ACCOUNT)?;
        for listed in listed {
            let before = listed.counted.before(&listed.definition.program);
            hits = hits.wrapping_add(before.hits);
            let shown = listed.copy();
            hits = hits.wrapping_add(shown.copied.account.hits);
            tables.push(shown, GFP_KERNEL_ACCOUNT)?;
        }
        seen.read(hits);
        Ok(tables)
    }

    fn records(tables: &KVec<Shown>) -> usize {
        copied::count(tables, |table| table.records)
    }

    fn show(tables: &KVec<Shown>, index: usize, out: &mut SeqWriter<'_>) -> fmt::Result {
        match copied::find(tables, index, |table| table.records) {
            Some((table, index)) => table.show(index, out),
            None => Ok(()),
        }
    }

    fn poll(seen: &Seen, event: LockedEvent<'_>) -> PollEvents {
        seen.poll(None, event)
    }
}
