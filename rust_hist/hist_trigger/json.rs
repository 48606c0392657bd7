// SPDX-License-Identifier: GPL-2.0

//! The `hist_json` file: all tables of an event at the beginning of the read, for programs.
//!
//! There is no C counterpart. `render/json.rs` writes the lines.
//!
//! `event_mutex` is held while the tables are listed. Rows are copied, sorted and written without it.

use super::{
    copied::{
        self,
        TableCopy, //
    },
    growth::settled,
    overhead,
    seen::Seen,
    storage::Counted,
    text::KernelNames,
    Definition,
    HistTrigger, //
};
use crate::{
    ffi::{
        clock::Moment,
        command::Attached,
        event::EventFile,
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
        json::{
            self,
            End,
            Epoch,
            Head,
            Json, //
        }, //
    },
    text::Out, //
};
use core::fmt;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// The type of the file.
pub(crate) struct JsonFile;

/// The JSON lines of one table.
pub(crate) struct Lines {
    /// The number of lines.
    pub(super) len: usize,
    /// The first line, which describes the trigger.
    header: TextBuf,
    /// The rows and totals for the other lines; `None` if there are none.
    copied: Option<TableCopy>,
}

impl Lines {
    /// Returns the line of an event without triggers; `None` unless `is_empty`.
    pub(super) fn none_if(is_empty: bool, file: &EventFile) -> Result<Option<Self>> {
        if !is_empty {
            return Ok(None);
        }
        let mut header = TextBuf::charged();
        json::none(file.names(), &mut header).map_err(|_| ENOMEM)?;
        Ok(Some(Self {
            len: 1,
            header,
            copied: None,
        }))
    }

    /// Writes line `index`.
    pub(super) fn show(&self, index: usize, out: &mut SeqWriter<'_>) -> fmt::Result {
        let (Some(place), Some(copied)) = (index.checked_sub(1), &self.copied) else {
            return out.write_bytes(self.header.as_bytes());
        };
        let rows = copied.rows();
        if let Some(row) = rows.row(place) {
            return of(&copied.definition).row(&row, out);
        }
        let groups = copied.groups().map(|(_, groups)| groups);
        // After the rows come the groups, if there are any, and then the row of others.
        let row = place.checked_sub(rows.len()).and_then(|place| {
            let group = groups.and_then(|groups| groups.row(place));
            let last = groups.map_or(0, |groups| groups.len());
            group.or_else(|| copied.others().filter(|_| place == last))
        });
        match row {
            Some(row) => of(&copied.definition).row(&row, out),
            None => {
                let groups = groups.map(|groups| groups.len());
                let program = &copied.definition.program;
                let end = End {
                    entries: rows.len(),
                    groups,
                    retired: copied.retired,
                };
                json::end(program, &copied.account, &end, out)
            }
        }
    }
}

/// Returns the writer for a trigger's lines.
fn of(definition: &Definition) -> Json<'_, KernelNames> {
    Json {
        program: &definition.program,
        text: &definition.text,
        symbols: &KernelNames,
    }
}

/// A trigger as found at the beginning of the read, with a value of type `M` that tells where its rows are.
pub(super) struct ListedLines<M> {
    header: TextBuf,
    definition: Arc<Definition>,
    pub(super) map: M,
}

impl<M> ListedLines<M> {
    pub(super) fn new(
        trigger: &Attached<'_, HistTrigger>,
        epoch: Epoch,
        consumed: Option<bool>,
        map: M,
        held: &EventMutexHeld,
    ) -> Result<Self> {
        let file = trigger.file();
        let definition = &trigger.data().definition;
        let head = Head {
            event: file.names(),
            prefix: definition.prefix,
            paused: trigger.is_paused(),
            clock_in_ns: file.instance().clock_in_ns(),
            epoch,
            consumed,
            overhead: overhead::of(trigger, held),
        };
        let mut header = TextBuf::charged();
        of(definition)
            .header(&head, &mut header)
            .map_err(|_| ENOMEM)?;
        Ok(Self {
            header,
            definition: definition.clone(),
            map,
        })
    }

    /// Returns the lines, with the rows that `copy` returns, if it returns any.
    ///
    /// Not inlined: readers take much stack.
    #[inline(never)]
    pub(super) fn copy(
        self,
        copy: impl FnOnce(&Arc<Definition>, &M) -> Result<Option<TableCopy>>,
    ) -> Result<Lines> {
        let copied = copy(&self.definition, &self.map)?;
        let len = match &copied {
            Some(copied) => {
                let groups = copied.groups().map_or(0, |(_, groups)| groups.len());
                let others = usize::from(copied.others().is_some());
                let rows = copied.rows().len().saturating_add(groups);
                rows.saturating_add(others).saturating_add(2)
            }
            None => 1,
        };
        Ok(Lines {
            len,
            header: self.header,
            copied,
        })
    }
}

#[vtable]
impl EventTable for JsonFile {
    type Opened = Seen;
    type Copy = KVec<Lines>;

    fn open(event: LockedEvent<'_>) -> Result<Seen> {
        Seen::new(event)
    }

    fn copy(seen: &Seen, event: LockedEvent<'_>) -> Result<KVec<Lines>> {
        let event = settled(event)?;
        let (file, held) = (event.file(), event.held());
        let now = Moment::now();
        let mut listed: KVec<ListedLines<Counted>> = KVec::new();
        let mut hits: u64 = 0;
        for trigger in Attached::<HistTrigger>::all(file, held) {
            let table = &trigger.data().table;
            let counted = table.counted(held)?;
            let one = ListedLines::new(&trigger, table.epoch(&now, held), None, counted, held)?;
            listed.push(one, GFP_KERNEL_ACCOUNT)?;
        }
        let none = Lines::none_if(listed.is_empty(), file)?;
        drop(event);

        let mut tables = KVec::with_capacity(listed.len(), GFP_KERNEL_ACCOUNT)?;
        for one in listed {
            let lines = one.copy(|definition, counted| {
                let copied = TableCopy::of_live(definition, &counted.maps)?;
                let before = counted.before(&definition.program);
                hits = hits.wrapping_add(before.plus(&copied.account).hits);
                Ok(Some(copied))
            })?;
            tables.push(lines, GFP_KERNEL_ACCOUNT)?;
        }
        if let Some(none) = none {
            tables.push(none, GFP_KERNEL_ACCOUNT)?;
        }
        seen.read(hits);
        Ok(tables)
    }

    fn records(tables: &KVec<Lines>) -> usize {
        copied::count(tables, |lines| lines.len)
    }

    fn show(tables: &KVec<Lines>, index: usize, out: &mut SeqWriter<'_>) -> fmt::Result {
        match copied::find(tables, index, |lines| lines.len) {
            Some((lines, index)) => lines.show(index, out),
            None => Ok(()),
        }
    }

    fn poll(seen: &Seen, event: LockedEvent<'_>) -> PollEvents {
        seen.poll(None, event)
    }
}
