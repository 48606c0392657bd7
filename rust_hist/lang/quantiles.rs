// SPDX-License-Identifier: GPL-2.0

//! `quantiles(p[,p ..])`: the parameter that folds the rows of all buckets into one row with quantiles.
//!
//! There is no C counterpart: C refuses the word.
//!
//! Context: process for parsing, any for the rest.

use core::fmt;

use crate::{
    error::{
        ErrKind,
        Refusal, //
    },
    limits::{
        List,
        QUANTILES_MAX, //
    },
    text::{
        lex::{
            position,
            thousandths,
            trim,
            write_thousandths,
            Split, //
        },
        Out,
        Span, //
    }, //
};

use super::CommandText;

/// The prefix by which `quantiles()` is recognised.
pub(super) const QUANTILES: &[u8] = b"quantiles(";

/// The whole in the unit of a quantile, a thousandth of a percent.
const WHOLE: u32 = 100 * PERCENT;
const PERCENT: u32 = 1000;

/// A quantile: a share of the hits, above 0 and at most all, in thousandths of a percent.
///
/// # Examples
///
/// ```
/// use rust_hist::lang::Quantile;
///
/// let median = Quantile::parse(b"50").ok_or("no quantile")?;
///
/// assert_eq!(median.rank(5), 3);
/// assert_eq!(Quantile::parse(b"100.1"), None);
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantile(u32);

impl Quantile {
    /// Parses a percentage with at most three decimals; `None` if `text` is no number above 0 and up to 100.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let units = thousandths(text)?;

        (1..=WHOLE).contains(&units).then_some(Self(units))
    }

    /// Returns the number of hits, of `hits` in all, that are at or below the quantile: its share of them, rounded up.
    pub fn rank(self, hits: u64) -> u64 {
        let whole = u64::from(WHOLE);
        let share = u64::from(self.0);
        // OVERFLOW: the share is at most a whole, so the first product is at most `hits`, and the second one at most
        // the square of a whole.
        let parts = (hits / whole).wrapping_mul(share);
        let rest = (hits % whole).wrapping_mul(share).div_ceil(whole);

        parts.wrapping_add(rest)
    }

    /// Writes the percentage in its shortest form.
    pub fn write(self, out: &mut dyn Out) -> fmt::Result {
        write_thousandths(self.0, out)
    }
}

/// Parses the text after [`QUANTILES`].
pub(super) fn parse(
    command: &CommandText<'_>,
    list: Span,
) -> Result<List<Quantile, QUANTILES_MAX>, Refusal> {
    let text = command.text();
    let refuse = |kind, at| Err(command.refuse(kind, at));
    let Some(end) = position(list.of(text), b')') else {
        return refuse(ErrKind::NoClosingParen, list);
    };
    let rest = list.skip(end).skip(1);
    let mut quantiles = List::<Quantile, QUANTILES_MAX>::new();

    if !rest.is_empty() {
        return refuse(ErrKind::UnknownWord, rest);
    }
    for item in Split::new(text, list.first(end), b',') {
        let item = trim(text, item);
        let quantile = Quantile::parse(item.of(text))
            .filter(|quantile| !quantiles.as_slice().contains(quantile));
        let Some(quantile) = quantile else {
            return refuse(ErrKind::InvalidQuantile, item);
        };

        if quantiles.push(quantile).is_err() {
            return refuse(ErrKind::TooManyQuantiles, item);
        }
    }
    Ok(quantiles)
}
