// SPDX-License-Identifier: GPL-2.0

//! The rows of a trigger with `quantiles()`: rows that only differ in the key with buckets become one row.
//!
//! There is no C counterpart.
//!
//! The rows of one group, ordered by their buckets, are a cumulative distribution of its hits. The quantile `p` is the
//! smallest number `v` with at least `p` percent of the hits at or below it (nearest rank). Only the bucket of `v` is
//! known; the largest number in the bucket is shown, so the shown value is never below the true quantile.
//!
//! Context: any. Never allocates.

use super::{
    key::right,
    text::decimal,
    value::VALUE_WIDTH,
    Renderer,
    Symbols, //
};
use crate::bucket::{
    Bounds,
    Buckets,
    Scale, //
};
use crate::limits::QUANTILES_MAX;
use crate::program::{
    Key,
    Program,
    Quantile, //
};
use crate::text::Out;
use crate::tracing_map::{
    sort::{
        row_of,
        sort,
        Column,
        Compare,
        SortEntry,
        SortKey, //
    },
    Account,
    Merge,
    Row,
    Rows, //
};
use core::fmt;

/// Folds the rows of a trigger.
///
/// A folded row has the key, the aux words and the sums of a row. In its key the folded word is 0, and the words of the
/// quantiles' buckets are added at the end. The sort keys of such a program refer to folded rows.
#[derive(Clone, Copy, Debug)]
pub struct Fold<'a> {
    quantiles: &'a [Quantile],
    /// Index of the folded word in a key.
    at: usize,
    /// The number of words of a key that is not folded.
    key_words: usize,
    buckets: Buckets,
    merge: &'a Merge,
}

impl<'a> Fold<'a> {
    /// Returns the fold for the rows of `program`; `None` if the program has no quantiles.
    pub fn of(program: &'a Program) -> Option<Self> {
        let key = program.folded_key()?;

        Some(Self {
            quantiles: program.quantiles(),
            at: key.first_word(),
            key_words: program.key_words(),
            buckets: key.field.buckets()?,
            merge: program.merge(),
        })
    }

    /// Orders rows by group and, in a group, by bucket: fills `order` with one entry for each row.
    pub fn sort(&self, rows: &Rows<'_>, order: &mut [SortEntry]) {
        let ascending = |at, compare| SortKey {
            column: Column::Key { at, compare },
            descending: false,
        };
        let behind = self.at.saturating_add(1);
        let words = self.key_words.saturating_sub(behind);

        sort(
            rows,
            &[
                ascending(0, Compare::Bytes { words: self.at }),
                ascending(behind, Compare::Bytes { words }),
                ascending(
                    self.at,
                    Compare::Number {
                        size: 8,
                        signed: self.buckets.has_signed_words(),
                    },
                ),
            ],
            order,
        );
    }

    /// Iterates over the groups of rows that [`Fold::sort`] has ordered: each group is a part of `order`.
    pub fn groups<'o>(
        &self,
        rows: &Rows<'o>,
        order: &'o [SortEntry],
    ) -> impl Iterator<Item = &'o [SortEntry]> + 'o {
        let (fold, rows) = (self.at, *rows);
        let key = move |entry: &SortEntry| rows.get(row_of(entry)).map(|row| row.key);

        order.chunk_by(move |a, b| match (key(a), key(b)) {
            (Some(a), Some(b)) => {
                let mut words = a.iter().zip(b).enumerate();

                words.all(|(at, (a, b))| a == b || at == fold)
            }
            _ => false,
        })
    }

    /// Returns the number of words of a folded row.
    pub fn row_words(&self, rows: &Rows<'_>) -> usize {
        rows.row_words().saturating_add(self.quantiles.len())
    }

    /// Folds `group`, an item of [`Fold::groups`], to `to`, which must have as many words as a folded row.
    pub fn fold(&self, rows: &Rows<'_>, group: &[SortEntry], to: &mut [u64]) {
        let members = || group.iter().filter_map(|entry| rows.get(row_of(entry)));
        let hits = |row: &Row<'_>| row.sums.first().copied().unwrap_or(0);
        let Some(first) = members().next() else {
            return;
        };
        let all = members().map(|row| hits(&row)).fold(0, u64::saturating_add);
        let mut quantiles = [0; QUANTILES_MAX];

        for (place, quantile) in quantiles.iter_mut().zip(self.quantiles) {
            let rank = quantile.rank(all);
            let mut below = 0u64;
            let found = members().find(|row| {
                below = below.saturating_add(hits(row));
                below >= rank
            });

            *place = found.map_or(0, |row| self.word(&row));
        }

        let quantiles = quantiles.iter().take(self.quantiles.len());
        let words = first.key.iter().chain(quantiles).chain(first.aux);
        let mut places = to.iter_mut();

        for (word, place) in words.zip(places.by_ref()) {
            *place = *word;
        }

        let sums = places.into_slice();

        sums.fill(0);
        for row in members() {
            self.merge.add(sums, row.sums);
        }
        if let Some(folded) = to.get_mut(self.at) {
            *folded = 0;
        }
    }

    /// Returns the folded rows in `words`, which [`Fold::fold`] has written; `rows` are the rows that were folded.
    pub fn rows<'w>(&self, rows: &Rows<'_>, words: &'w [u64]) -> Rows<'w> {
        let key_words = rows.key_words().saturating_add(self.quantiles.len());

        Rows::with_keys(rows, key_words, words)
    }

    /// Returns the bounds of the bucket of a row that is not folded.
    pub fn bounds(&self, row: &Row<'_>) -> Bounds {
        self.buckets.bounds(self.word(row))
    }

    /// Iterates over the quantiles of a folded row with the bounds of their buckets.
    pub fn quantiles<'r>(
        &self,
        row: &Row<'r>,
    ) -> impl Iterator<Item = (Quantile, Bounds)> + use<'a, 'r> {
        let words = row.key.get(self.key_words..).unwrap_or(&[]);
        let buckets = self.buckets;

        self.quantiles
            .iter()
            .zip(words)
            .map(move |(&quantile, &word)| (quantile, buckets.bounds(word)))
    }

    /// Returns whether a row is a folded one.
    pub(super) fn is_folded(&self, row: &Row<'_>) -> bool {
        row.key.len() > self.key_words
    }

    /// Returns whether folded rows lack this key.
    pub(super) fn leaves_out(&self, key: &Key) -> bool {
        key.first_word() == self.at
    }

    fn word(&self, row: &Row<'_>) -> u64 {
        row.key.get(self.at).copied().unwrap_or(0)
    }

    /// Writes the lines after the totals: the number of groups, and the precision of the quantiles. `others` says
    /// whether there is a row of others.
    pub fn totals<W: Out>(
        &self,
        account: &Account,
        groups: usize,
        others: bool,
        out: &mut W,
    ) -> fmt::Result {
        // CAST: `usize` has at most 64 bits.
        out.write_bytes(b"    Groups: ")?;
        out.write_bytes(decimal(groups as u64).as_bytes())?;
        out.write_bytes(b"\n    Quantiles: shown values are upper bounds, at most ")?;
        match self.buckets {
            Buckets::Log2(Scale::POWERS) => out.write_bytes(b"100 % above, or 1 for 0")?,
            Buckets::Log2(scale) => {
                let error = ERRORS.get(usize::from(scale.get())).copied();

                out.write_parts(&[error.unwrap_or_default(), b" % above"])?;
            }
            Buckets::SignedPowers => out.write_bytes(b"100 % above")?,
            Buckets::Width(width) | Buckets::SignedWidth(width) => {
                let most = decimal(width.get().saturating_sub(1));

                out.write_parts(&[most.as_bytes(), b" above"])?;
            }
        }
        if account.dropped_full != 0 {
            out.write_bytes(b"; they are those of the hits that were not dropped")?;
        }
        if others {
            out.write_bytes(b"; they are without the hits of others")?;
        }
        out.write_bytes(b"\n")
    }
}

/// The width of a bucket of each scale `N` in percent of its lower bound, rounded up: `2^(1/2^N) - 1`.
const ERRORS: [&[u8]; 7] = [b"100", b"41.5", b"19.0", b"9.1", b"4.5", b"2.2", b"1.1"];

impl<S: Symbols> Renderer<'_, S> {
    /// Writes the quantiles of a folded row.
    pub(super) fn quantiles<W: Out>(
        &self,
        fold: &Fold<'_>,
        row: &Row<'_>,
        out: &mut W,
    ) -> fmt::Result {
        for (quantile, Bounds { hi, .. }) in fold.quantiles(row) {
            out.write_bytes(b"  ")?;
            self.program.write_quantile(quantile, self.text, out)?;
            out.write_bytes(b": ")?;
            right(hi, VALUE_WIDTH, out)?;
        }
        Ok(())
    }
}
