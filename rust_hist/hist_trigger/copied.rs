// SPDX-License-Identifier: GPL-2.0

//! A reader's copy of a table's rows, in the order in which they are shown.
//!
//! C counterpart: `print_entries()`, which works on the map itself.
//!
//! Context: process, may sleep, without a lock: copying takes time proportional to the number of rows.

use super::{
    storage::{
        HistMap,
        Maps, //
    },
    Definition, //
};
use crate::{
    ffi::memory,
    render::Fold,
    tracing_map::{
        sort::{
            self,
            SortEntry, //
        },
        Account,
        Generations,
        Row,
        Rows,
        Shape, //
    }, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// The rows of one table.
pub(super) struct TableCopy {
    pub(super) definition: Arc<Definition>,
    /// The outcomes of the calls; the hits are those of the copied rows, and of rows that have expired.
    pub(super) account: Account,
    /// The hits of rows that have expired, if starts expire.
    pub(super) retired: Option<u64>,
    shape: Shape,
    rows: OrderedRows,
    /// The sums of the keys that found no room, if there are any.
    others: KVVec<u64>,
    /// The folded rows of a trigger with `quantiles()`.
    groups: OrderedRows,
}

/// Rows, and the order in which they are shown.
#[derive(Default)]
struct OrderedRows {
    words: KVVec<u64>,
    order: KVVec<SortEntry>,
}

/// Rows and their order, borrowed for reading.
#[derive(Clone, Copy)]
pub(super) struct Ordered<'a> {
    /// All rows, in no particular order.
    pub(super) rows: Rows<'a>,
    order: &'a [SortEntry],
}

impl<'a> Ordered<'a> {
    /// Returns the number of rows.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns the row at a place of the order.
    pub(super) fn row(&self, place: usize) -> Option<Row<'a>> {
        self.rows.get(sort::row_of(self.order.get(place)?))
    }
}

/// Returns the order of rows, as `sort` fills it.
fn ordered(
    rows: &Rows<'_>,
    sort: impl FnOnce(&Rows<'_>, &mut [SortEntry]),
) -> Result<KVVec<SortEntry>> {
    let mut order = memory::charged_zeros(rows.len())?;
    sort(rows, &mut order);
    Ok(order)
}

/// Returns the words of the folded rows; `rows` are sorted by `order` into their groups.
fn folded(fold: &Fold<'_>, rows: &Rows<'_>, order: &[SortEntry]) -> Result<KVVec<u64>> {
    let row_words = fold.row_words(rows);
    let len = fold.groups(rows, order).count().checked_mul(row_words);
    let mut words = memory::charged_zeros(len.ok_or(ENOMEM)?)?;

    for (group, row) in fold
        .groups(rows, order)
        .zip(words.chunks_exact_mut(row_words.max(1)))
    {
        fold.fold(rows, group, row);
    }
    Ok(words)
}

/// Returns the words of all maps' rows, younger maps first, and the number of rows; `copy` copies the rows of one map.
///
/// Not inlined, as readers take much stack.
#[inline(never)]
fn rows_of(
    maps: &Maps,
    copy: impl Fn(&HistMap, usize, &mut [u64]) -> usize,
) -> Result<(KVVec<u64>, usize)> {
    let row_words = maps.youngest().shape().row_words();
    let (mut all, mut len): (KVVec<u64>, usize) = (KVVec::new(), 0);

    for map in maps.iter() {
        let used = map.used();
        let most = len.checked_add(used).and_then(|n| n.checked_mul(row_words));
        let mut words = memory::charged_zeros(most.ok_or(ENOMEM)?)?;
        let before = len * row_words;
        if let (Some(to), Some(from)) = (words.get_mut(..before), all.get(..before)) {
            to.copy_from_slice(from);
        }
        len += copy(map, used, words.get_mut(before..).unwrap_or_default());
        all = words;
    }
    Ok((all, len))
}

/// Returns the words of rows, merged from several maps to one row for each key.
///
/// Not inlined, as readers take much stack.
#[inline(never)]
fn merged(shape: &Shape, rows: &Rows<'_>) -> Result<KVVec<u64>> {
    let order = ordered(rows, |rows, order| sort::sort(rows, &[], order))?;
    let generations = Generations::new(*rows, &order);
    let words = generations.keys().checked_mul(rows.row_words());
    let mut words = memory::charged_zeros(words.ok_or(ENOMEM)?)?;
    generations.merge(&shape.merge, &mut words);
    Ok(words)
}

impl TableCopy {
    /// Copies the rows of maps while hits go on: all rows that existed when this was called.
    pub(super) fn of_live(definition: &Arc<Definition>, maps: &Maps) -> Result<Self> {
        let program = &definition.program;
        Self::new(definition, maps, |map, used, words| {
            map.copy_rows(used, words, |from, to| program.copy_aux(from, to))
        })
    }

    /// Copies the rows of maps that no hit uses any more, in less time.
    pub(super) fn of_settled(definition: &Arc<Definition>, maps: &Maps) -> Result<Self> {
        let program = &definition.program;
        Self::new(definition, maps, |map, _, words| {
            map.copy_settled_rows(words, |from, to| program.copy_aux(from, to))
        })
    }

    /// Not inlined: its stack frame is gone when the rows are shown.
    #[inline(never)]
    fn new(
        definition: &Arc<Definition>,
        maps: &Maps,
        copy: impl Fn(&HistMap, usize, &mut [u64]) -> usize,
    ) -> Result<Self> {
        let shape = *maps.youngest().shape();
        let (mut words, mut len) = rows_of(maps, copy)?;
        if maps.are_several() {
            words = merged(&shape, &Rows::new(&shape, &words, len))?;
            len = words.len() / shape.row_words().max(1);
        }

        let program = &definition.program;
        let as_wanted = |rows: &Rows<'_>, order: &mut [SortEntry]| {
            sort::sort(rows, program.sort_keys(), order);
        };
        let rows = Rows::new(&shape, &words, len);
        let mut others = memory::charged_zeros(shape.others().map_or(0, |_| shape.sums))?;
        // Tables with several maps have no row of others.
        let has_others = maps.youngest().copy_others(&mut others);
        let hits_of_others = others.first().copied().unwrap_or(0);
        if !has_others {
            others = KVVec::new();
        }
        let (order, groups) = match Fold::of(program) {
            Some(fold) => {
                let order = ordered(&rows, |rows, order| fold.sort(rows, order))?;
                let words = folded(&fold, &rows, &order)?;
                let groups = OrderedRows {
                    order: ordered(&fold.rows(&rows, &words), as_wanted)?,
                    words,
                };
                (order, groups)
            }
            None => (ordered(&rows, as_wanted)?, OrderedRows::default()),
        };
        Ok(Self {
            definition: definition.clone(),
            account: maps.account_of(program, rows.hits().wrapping_add(hits_of_others)),
            retired: maps.retired(),
            shape,
            others,
            rows: OrderedRows { words, order },
            groups,
        })
    }

    /// Returns a copy without rows, with only the outcomes of the calls.
    pub(super) fn without_rows(definition: &Arc<Definition>, maps: &Maps) -> Self {
        Self {
            definition: definition.clone(),
            account: maps.account(&definition.program),
            retired: maps.retired(),
            shape: *maps.youngest().shape(),
            rows: OrderedRows::default(),
            others: KVVec::new(),
            groups: OrderedRows::default(),
        }
    }

    /// Returns the rows of the table; for a trigger with `quantiles()` ordered by group and bucket.
    pub(super) fn rows(&self) -> Ordered<'_> {
        let OrderedRows { words, order } = &self.rows;
        Ordered {
            rows: Rows::new(&self.shape, words, order.len()),
            order,
        }
    }

    /// Returns the row of the keys that found no room, if there is one; it is shown last.
    pub(super) fn others(&self) -> Option<Row<'_>> {
        (!self.others.is_empty()).then(|| Row::of_others(&self.others))
    }

    /// Returns the fold of a trigger with `quantiles()`, and the folded rows.
    pub(super) fn groups(&self) -> Option<(Fold<'_>, Ordered<'_>)> {
        let fold = Fold::of(&self.definition.program)?;
        let OrderedRows { words, order } = &self.groups;
        let groups = Ordered {
            rows: fold.rows(&self.rows().rows, words),
            order,
        };
        Some((fold, groups))
    }

    /// Returns the rows that the file `hist` shows.
    pub(super) fn shown(&self) -> Ordered<'_> {
        self.groups()
            .map_or_else(|| self.rows(), |(_, groups)| groups)
    }
}

/// Returns the number of records in several tables; `records` returns the number of one table.
pub(super) fn count<T>(tables: &[T], records: impl Fn(&T) -> usize) -> usize {
    tables.iter().map(records).fold(0, usize::saturating_add)
}

/// Returns the table that has record `index`, and the index of the record in it; `records` returns the number of one
/// table's.
pub(super) fn find<T>(
    tables: &[T],
    index: usize,
    records: impl Fn(&T) -> usize,
) -> Option<(&T, usize)> {
    let mut index = index;
    for table in tables {
        match index.checked_sub(records(table)) {
            Some(rest) => index = rest,
            None => return Some((table, index)),
        }
    }
    None
}
