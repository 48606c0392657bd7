// SPDX-License-Identifier: GPL-2.0

//! Putting copied rows in order.
//!
//! The order is total: rows that are equal in all sort columns come in ascending order of their key
//! bytes, and no two rows have the same key. So the outcome does not depend on the algorithm, which
//! is a heapsort: no memory beside the order itself, no recursion, and the same time for every input.
//! What it moves has most of what it compares with it, so that it does not look for the rows.

use super::rows::{
    Row,
    Rows, //
};
use core::cmp::Ordering;

/// How the values of a column compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// As numbers, of which the lowest bytes count.
    Number {
        /// How many of them: 1, 2, 4 or 8. Numbers of another size are all equal.
        size: u32,
        /// Two's complement.
        signed: bool,
    },
    /// As strings that a NUL ends.
    Text {
        /// Words that the string lies in.
        words: usize,
    },
    /// Not at all.
    Equal,
}

/// What a sort looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// A part of the key that begins at this word.
    Key {
        /// First word of the part.
        at: usize,
        /// How it compares.
        compare: Compare,
    },
    /// A sum, as an unsigned number of 64 bits.
    Sum(usize),
}

/// One column to sort by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SortKey {
    /// The column.
    pub column: Column,
    /// Whether larger values come first.
    pub descending: bool,
}

impl Default for SortKey {
    fn default() -> Self {
        Self {
            column: Column::Sum(0),
            descending: false,
        }
    }
}

/// Compares the lowest `size` bytes of two numbers.
fn compare_numbers(a: u64, b: u64, size: u32, signed: bool) -> Ordering {
    match unused_bits(size) {
        // The bytes that count go to the top; for a signed number the sign bit is inverted, which
        // puts the negative ones below the others.
        Some(unused) => {
            let sign = sign_bit(signed);
            (a.wrapping_shl(unused) ^ sign).cmp(&(b.wrapping_shl(unused) ^ sign))
        }
        None => Ordering::Equal,
    }
}

/// Returns how many bits of a word a number of `size` bytes does not use.
fn unused_bits(size: u32) -> Option<u32> {
    match size {
        1 => Some(56),
        2 => Some(48),
        4 => Some(32),
        8 => Some(0),
        _ => None,
    }
}

/// Returns the bit to invert in a number whose bytes are at the top.
fn sign_bit(signed: bool) -> u64 {
    if signed {
        1 << 63
    } else {
        0
    }
}

/// Compares words as the bytes that they are in memory.
fn compare_bytes(a: &[u64], b: &[u64]) -> Ordering {
    for (a, b) in a.iter().zip(b) {
        if a != b {
            return a.to_be().cmp(&b.to_be());
        }
    }
    Ordering::Equal
}

/// Says whether one of the bytes of a word is NUL.
fn has_nul(word: u64) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    // A borrow into the top bit of a byte whose top bit was clear; the lowest one is exact.
    word.wrapping_sub(ONES) & !word & (ONES << 7) != 0
}

/// Compares words as strings: bytes up to the first NUL.
fn compare_text(a: &[u64], b: &[u64]) -> Ordering {
    for (a, b) in a.iter().zip(b) {
        if a == b {
            if has_nul(*a) {
                return Ordering::Equal;
            }
            continue;
        }
        for (a, b) in a.to_ne_bytes().iter().zip(&b.to_ne_bytes()) {
            if a != b {
                return a.cmp(b);
            }
            if *a == 0 {
                return Ordering::Equal;
            }
        }
    }
    Ordering::Equal
}

/// Returns `n` words from `at` on, or as many as there are.
fn part(key: &[u64], at: usize, n: usize) -> &[u64] {
    let rest = key.get(at..).unwrap_or(&[]);
    rest.get(..n).unwrap_or(rest)
}

impl Column {
    /// Compares two rows by this column, ascending.
    #[inline]
    fn compare(&self, a: &Row<'_>, b: &Row<'_>) -> Ordering {
        match *self {
            Self::Sum(i) => a.sums.get(i).cmp(&b.sums.get(i)),
            Self::Key { at, compare } => match compare {
                Compare::Number { size, signed } => {
                    let word = |row: &Row<'_>| row.key.get(at).copied().unwrap_or(0);
                    compare_numbers(word(a), word(b), size, signed)
                }
                Compare::Text { words } => {
                    compare_text(part(a.key, at, words), part(b.key, at, words))
                }
                Compare::Equal => Ordering::Equal,
            },
        }
    }
}

/// Compares two rows by `keys` and then by their key bytes.
pub fn compare_rows(a: &Row<'_>, b: &Row<'_>, keys: &[SortKey]) -> Ordering {
    for key in keys {
        let mut order = key.column.compare(a, b);
        if key.descending {
            order = order.reverse();
        }
        if order != Ordering::Equal {
            return order;
        }
    }
    compare_bytes(a.key, b.key)
}

/// A row on its way to its place: two numbers that decide most comparisons, and the row's index.
pub type SortEntry = [u64; 3];

/// Returns the index of the row at a place.
#[inline(always)]
pub fn row_of(place: &SortEntry) -> usize {
    let [_, _, row] = *place;
    // CAST: it was one.
    row as usize
}

/// How to get a number out of a row that orders rows as a sort column does.
///
/// Where two numbers are equal, two numeric columns are as well; of two texts only the beginnings.
struct Prefix {
    /// Where in the row the column is.
    at: usize,
    /// How far its bytes have to go up.
    unused: u32,
    /// The bits to invert: the sign, or all bits for a descending column.
    flip: u64,
    /// What the word is.
    kind: PrefixKind,
}

/// What the word is that a [`Prefix`] comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PrefixKind {
    /// A number.
    Number,
    /// The beginning of a text.
    Text,
    /// Bytes in their order.
    Bytes,
    /// Nothing that orders rows.
    Nothing,
}

impl Prefix {
    /// The one of rows that are all alike.
    const NOTHING: Self = Self {
        at: 0,
        unused: 0,
        flip: 0,
        kind: PrefixKind::Nothing,
    };

    /// The one of the first bytes of the key.
    const KEY: Self = Self {
        kind: PrefixKind::Bytes,
        ..Self::NOTHING
    };

    /// Returns the one for a column.
    fn of(key: &SortKey, rows: &Rows<'_>) -> Self {
        let descending = if key.descending { u64::MAX } else { 0 };
        let (at, unused, sign, kind) = match key.column {
            Column::Sum(i) => (rows.sum_at(i), 0, 0, PrefixKind::Number),
            Column::Key { at, compare } => match compare {
                Compare::Number { size, signed } => match unused_bits(size) {
                    Some(unused) => (at, unused, sign_bit(signed), PrefixKind::Number),
                    None => return Self::NOTHING,
                },
                Compare::Text { .. } => (at, 0, 0, PrefixKind::Text),
                Compare::Equal => return Self::NOTHING,
            },
        };

        Self {
            at,
            unused,
            flip: sign ^ descending,
            kind,
        }
    }

    /// Whether the columns are equal where the numbers are.
    fn is_exact(&self) -> bool {
        self.kind != PrefixKind::Text
    }

    #[inline(always)]
    fn get(&self, rows: &Rows<'_>, i: usize) -> u64 {
        let word = match self.kind {
            PrefixKind::Nothing => return 0,
            PrefixKind::Number => rows.word(i, self.at),
            PrefixKind::Text => beginning(rows.word(i, self.at)),
            PrefixKind::Bytes => rows.word(i, self.at).to_be(),
        };
        word.wrapping_shl(self.unused) ^ self.flip
    }
}

/// Returns a number that orders words as the strings in them are ordered: the first byte on top, and
/// nothing behind a NUL.
fn beginning(word: u64) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;

    let bytes = word.to_be();
    // The top bit of each byte that is NUL.
    // OVERFLOW: two times 7 bits fit in a byte.
    let nul = !((bytes & LOW).wrapping_add(LOW) | bytes | LOW);
    if nul == 0 {
        bytes
    } else {
        bytes & !u64::MAX.wrapping_shr(nul.leading_zeros())
    }
}

/// Fills `order` with the rows, sorted by `keys`.
///
/// Places past the rows, which a too long `order` has, come last, with numbers past theirs.
pub fn sort(rows: &Rows<'_>, keys: &[SortKey], order: &mut [SortEntry]) {
    let first = keys
        .first()
        .map_or(Prefix::KEY, |key| Prefix::of(key, rows));
    let (second, rest) = match (keys.get(1), first.is_exact()) {
        (_, false) => (Prefix::NOTHING, keys),
        (None, true) => (Prefix::KEY, &[] as &[_]),
        (Some(key), true) => {
            let second = Prefix::of(key, rows);
            let rest = if second.is_exact() { 2 } else { 1 };
            (second, keys.get(rest..).unwrap_or(&[]))
        }
    };
    for (i, place) in order.iter_mut().enumerate() {
        // CAST: no machine has more than 64 bits.
        *place = [first.get(rows, i), second.get(rows, i), i as u64];
    }

    let len = order.len().min(rows.len());
    let Some(order) = order.get_mut(..len) else {
        return;
    };
    heapsort(order, |a, b| {
        let ([first_a, second_a, _], [first_b, second_b, _]) = (*a, *b);
        if first_a != first_b {
            return first_a < first_b;
        }
        if second_a != second_b {
            return second_a < second_b;
        }
        comes_before(rows, rest, row_of(a), row_of(b))
    });
}

/// Compares two rows that are equal but for the columns in `rest`.
#[inline(never)]
fn comes_before(rows: &Rows<'_>, rest: &[SortKey], a: usize, b: usize) -> bool {
    if rest.is_empty() {
        return rows.key_is_less(a, b);
    }
    match (rows.get(a), rows.get(b)) {
        (Some(a), Some(b)) => compare_rows(&a, &b, rest) == Ordering::Less,
        _ => false,
    }
}

/// Sorts `v` with `less`, which must be a strict weak order.
fn heapsort(v: &mut [SortEntry], less: impl Fn(&SortEntry, &SortEntry) -> bool) {
    for root in (0..v.len() / 2).rev() {
        if let Some(&x) = v.get(root) {
            sift(v, root, x, &less);
        }
    }
    for end in (1..v.len()).rev() {
        let Some((last, heap)) = v.get_mut(..=end).and_then(<[SortEntry]>::split_last_mut) else {
            return;
        };
        let x = *last;
        if let Some(&largest) = heap.first() {
            *last = largest;
        }
        sift(heap, 0, x, &less);
    }
}

/// Puts `x` in its place in the heap below `root`, whose own value is dropped.
///
/// It goes down the path of larger children to a leaf without looking at `x`, and then up again from
/// there. The value comes from the end of the heap and belongs near the leaves, so this needs about
/// half the comparisons of stopping on the way down.
fn sift(
    heap: &mut [SortEntry],
    root: usize,
    x: SortEntry,
    less: &impl Fn(&SortEntry, &SortEntry) -> bool,
) {
    let mut hole = root;

    loop {
        // OVERFLOW: an index of values of many bytes is less than half of all addresses.
        let left = hole.wrapping_mul(2).wrapping_add(1);
        let right = left.wrapping_add(1);
        let Some(l) = heap.get(left) else {
            break;
        };
        let (child, larger) = match heap.get(right) {
            Some(r) if less(l, r) => (right, *r),
            _ => (left, *l),
        };
        if let Some(place) = heap.get_mut(hole) {
            *place = larger;
        }
        hole = child;
    }

    while hole > root {
        // OVERFLOW: more than `root`.
        let parent = hole.wrapping_sub(1) / 2;
        let Some(&p) = heap.get(parent) else {
            break;
        };
        if !less(&p, &x) {
            break;
        }
        if let Some(place) = heap.get_mut(hole) {
            *place = p;
        }
        hole = parent;
    }
    if let Some(place) = heap.get_mut(hole) {
        *place = x;
    }
}
