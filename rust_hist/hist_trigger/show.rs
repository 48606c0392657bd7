// SPDX-License-Identifier: GPL-2.0

//! The `hist` file: all tables of an event, as they were when the read began.
//!
//! C counterpart: `hist_show()` and `event_hist_poll()`.
//!
//! Rows are copied under `event_mutex`, which keeps the triggers but stops no hit, and sorted and
//! written without it.

use super::{
    snapshot::{
        Snapshot,
        Taken, //
    },
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
        memory,
        poll::PollEvents,
        seq::SeqWriter,
        text::TextBuf, //
    },
    render::{
        self,
        Fold,
        Renderer,
        Stats, //
    },
    sync::{
        Atomic,
        Relaxed, //
    },
    text::Out,
    tracing_map::{
        sort,
        Account,
        Rows,
        Shape, //
    }, //
};
use core::fmt;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// The kind of file.
pub(crate) struct HistFile;

/// The hits of all triggers of the event that the open file knows of.
///
/// Both change under `event_mutex` only.
pub(crate) struct Seen {
    /// When it was last read; 0 before.
    read: Atomic<u64>,
    /// When it was last opened, read or polled.
    asked: Atomic<u64>,
}

/// One trigger as it was copied.
pub(crate) struct Copied {
    /// Up to the first row.
    header: TextBuf,
    definition: Arc<Definition>,
    shape: Shape,
    account: Account,
    stats: Stats,
    words: KVVec<u64>,
    /// How many entries of the table were copied.
    entries: usize,
    /// Whether the words are those of folded rows.
    folded: bool,
    /// The rows as they are to be shown.
    order: KVVec<sort::SortEntry>,
    /// What is known of the hit that took the snapshot.
    snapshot: Option<KBox<Taken>>,
}

/// The hits of all triggers of an event.
fn hits(event: &LockedEvent<'_>) -> u64 {
    Attached::<HistTrigger>::all(event.file(), event.held())
        .map(|trigger| trigger.data().table.held(event.held()).map.hits())
        .fold(0, u64::wrapping_add)
}

impl Copied {
    /// Copies the rows of a trigger, of which `n` come before it in the file.
    ///
    /// PARITY: `hist_trigger_show()` shows no rows when there is no memory for them.
    fn new(n: usize, trigger: &Attached<'_, HistTrigger>, held: &EventMutexHeld) -> Result<Self> {
        let data = trigger.data();
        let map = &data.table.held(held).map;
        let shape = *map.shape();
        let used = map.used();
        let mut words = used
            .checked_mul(shape.row_words())
            .and_then(|len| memory::charged_zeros(len).ok())
            .unwrap_or_default();
        let program = &data.definition.program;
        let entries = map.copy_rows(used, &mut words, |from, to| program.copy_aux(from, to));
        // The hits of the rows, whatever was hit meanwhile; those of the table if there is no memory for
        // rows.
        let account = if used > 0 && words.is_empty() {
            map.account()
        } else {
            map.account_of(Rows::new(&shape, &words, entries).hits())
        };

        let mut header = TextBuf::charged();
        write_header(n, trigger, &mut header).map_err(|_| ENOMEM)?;

        Ok(Self {
            header,
            definition: data.definition.clone(),
            shape,
            account,
            stats: Stats::default(),
            words,
            entries,
            folded: false,
            order: KVVec::new(),
            snapshot: match data.table.snapshot().and_then(Snapshot::copy) {
                Some(taken) => Some(KBox::new(taken, GFP_KERNEL_ACCOUNT)?),
                None => None,
            },
        })
    }

    fn rows(&self) -> Rows<'_> {
        let rows = Rows::new(&self.shape, &self.words, self.entries);

        match self.fold() {
            Some(fold) if self.folded => fold.rows(&rows, &self.words),
            _ => rows,
        }
    }

    fn fold(&self) -> Option<Fold<'_>> {
        Fold::of(&self.definition.program)
    }

    /// Folds the rows of a trigger with quantiles and puts the rows in order; without memory for that there are none.
    fn sort(&mut self) {
        if self.fold().is_some() {
            self.words = self.folded().unwrap_or_default();
            self.folded = true;
        }

        let rows = self.rows();
        let len = rows.len();
        let mut order = memory::charged_zeros(len).unwrap_or_default();

        sort::sort(&rows, self.definition.program.sort_keys(), &mut order);
        self.stats = Stats::of(&rows);
        if order.len() != len {
            self.entries = 0;
        }
        self.order = order;
    }

    /// The words of the folded rows.
    fn folded(&self) -> Result<KVVec<u64>> {
        let rows = Rows::new(&self.shape, &self.words, self.entries);
        let fold = self.fold().ok_or(EINVAL)?;
        let mut order = memory::charged_zeros(rows.len())?;

        fold.sort(&rows, &mut order);

        let row_words = fold.row_words(&rows);
        let groups = fold.groups(&rows, &order);
        let len = groups.count().checked_mul(row_words).ok_or(ENOMEM)?;
        let mut words = memory::charged_zeros(len)?;

        for (group, row) in fold
            .groups(&rows, &order)
            .zip(words.chunks_exact_mut(row_words.max(1)))
        {
            fold.fold(&rows, group, row);
        }
        Ok(words)
    }

    /// Header, rows, snapshot and totals.
    fn records(&self) -> usize {
        self.order.len().saturating_add(2)
    }

    fn show(&self, index: usize, out: &mut SeqWriter<'_>) -> fmt::Result {
        let Some(place) = index.checked_sub(1) else {
            return out.write_bytes(self.header.as_bytes());
        };
        let table = Renderer {
            program: &self.definition.program,
            text: &self.definition.text,
            stats: &self.stats,
            symbols: &KernelNames,
        };
        let Some(row) = self.order.get(place).map(sort::row_of) else {
            if let Some(taken) = &self.snapshot {
                table.snapshot(taken.value, taken.key(), &taken.comm, out)?;
            }
            render::totals(&self.account, self.entries, out)?;
            return match self.fold() {
                Some(fold) => fold.totals(&self.account, self.rows().len(), out),
                None => Ok(()),
            };
        };
        match self.rows().get(row) {
            Some(row) => table.row(&row, out),
            None => Ok(()),
        }
    }
}

#[vtable]
impl EventTable for HistFile {
    type Opened = Seen;
    type Copy = KVec<Copied>;

    fn open(event: &LockedEvent<'_>) -> Result<Seen> {
        Ok(Seen {
            read: Atomic::new(0),
            asked: Atomic::new(hits(event)),
        })
    }

    fn copy(seen: &Seen, event: LockedEvent<'_>) -> Result<KVec<Copied>> {
        let (file, held) = (event.file(), event.held());
        let mut tables: KVec<Copied> = KVec::new();
        for (n, trigger) in Attached::all(file, held).enumerate() {
            tables.push(Copied::new(n, &trigger, held)?, GFP_KERNEL_ACCOUNT)?;
        }
        // A hit that the rows do not have yet is one that the reader is told of again.
        let hits = tables
            .iter()
            .map(|table| table.account.hits)
            .fold(0, u64::wrapping_add);
        // ORDERING: `event_mutex` orders these two.
        seen.read.store(hits, Relaxed);
        // ORDERING: `event_mutex` orders these two.
        seen.asked.store(hits, Relaxed);
        drop(event);

        for table in &mut tables {
            table.sort();
        }
        Ok(tables)
    }

    fn records(tables: &KVec<Copied>) -> usize {
        tables
            .iter()
            .map(Copied::records)
            .fold(0, usize::saturating_add)
    }

    fn show(tables: &KVec<Copied>, index: usize, out: &mut SeqWriter<'_>) -> fmt::Result {
        let mut index = index;
        for table in tables {
            match index.checked_sub(table.records()) {
                Some(rest) => index = rest,
                None => return table.show(index, out),
            }
        }
        Ok(())
    }

    fn poll(seen: &Seen, event: &LockedEvent<'_>) -> PollEvents {
        let hits = hits(event);
        let mut ready = PollEvents::NONE;
        // ORDERING: `event_mutex` orders both words.
        if seen.read.load(Relaxed) != hits {
            ready = ready.and(PollEvents::READABLE);
        }
        // ORDERING: `event_mutex` orders both words.
        if seen.asked.xchg(hits, Relaxed) != hits {
            ready = ready.and(PollEvents::PRIORITY);
        }
        ready
    }
}
