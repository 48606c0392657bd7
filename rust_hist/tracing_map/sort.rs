// SPDX-License-Identifier: GPL-2.0

//! Sorting copied rows.
//!
//! C counterpart: `tracing_map_sort_entries()`.
//!
//! The order is total: rows that are equal in all sort columns are in ascending order of their key bytes, and no two
//! rows have the same key. So the result does not depend on the algorithm. Heapsort needs no memory besides the order
//! itself, no recursion, and O(n log n) time for every input. An entry of the order contains prefixes of the sort
//! columns, which decide most comparisons without the row.
//!
//! Context: any. Never allocates.

use super::{
    rows::{
        Row,
        Rows, //
    },
    Gauge, //
};
use core::cmp::Ordering;

/// The comparison of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// The low bytes are compared as a number.
    Number {
        /// The size in bytes: 1, 2, 4 or 8. For any other size all values are equal.
        size: u32,
        /// Whether the number is signed.
        signed: bool,
    },
    /// The bytes up to the first NUL are compared, as `strcmp()` does.
    Text {
        /// The number of words of the string.
        words: usize,
    },
    /// Words are compared as the bytes that they have in memory.
    Bytes {
        /// The number of words.
        words: usize,
    },
    /// Words are compared as a number whose last word is the highest.
    Mask {
        /// The number of words.
        words: usize,
    },
    /// All values are equal.
    Equal,
}

/// A column to sort by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// A part of the key.
    Key {
        /// Index of the column's first word in the key.
        at: usize,
        /// The comparison of the column's values.
        compare: Compare,
    },
    /// A sum, as an unsigned number of 64 bits. Sum 0 is the hit count.
    Sum(usize),
    /// A number computed from some of the sums.
    Made(Gauge),
}

/// The default column is the hit count.
impl Default for Column {
    fn default() -> Self {
        Self::Sum(0)
    }
}

/// A column to sort by and its direction. The default is by ascending hit counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SortKey {
    /// The column.
    pub column: Column,
    /// Whether larger values come first.
    pub descending: bool,
}

/// Returns a word that compares like the lowest `size` bytes of `word`, signed or not; 0 for a size that no number has.
fn in_order(word: u64, size: u32, signed: bool) -> u64 {
    let unused = match size {
        1 => 56,
        2 => 48,
        4 => 32,
        8 => 0,
        _ => return 0,
    };
    let sign = if signed { 1 << 63 } else { 0 };

    // The shift moves the low bytes to the top; inverting the sign bit of a signed number makes negative numbers
    // smaller than the others.
    word.wrapping_shl(unused) ^ sign
}

/// Compares words as the bytes that they have in memory.
fn compare_bytes(a: &[u64], b: &[u64]) -> Ordering {
    for (a, b) in a.iter().zip(b) {
        if a != b {
            return a.to_be().cmp(&b.to_be());
        }
    }
    Ordering::Equal
}

/// Returns whether one of the bytes of a word is NUL.
fn has_nul(word: u64) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    // Subtracting 1 from each byte sets the top bit of a NUL. A borrow may also set it in a byte above a NUL.
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

/// Returns at most `n` words of `key` from `at` on.
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
            Self::Made(gauge) => gauge.number(a.sums).cmp(&gauge.number(b.sums)),
            Self::Key { at, compare } => match compare {
                Compare::Number { size, signed } => {
                    let word = |row: &Row<'_>| row.key.get(at).copied().unwrap_or(0);
                    in_order(word(a), size, signed).cmp(&in_order(word(b), size, signed))
                }
                Compare::Text { words } => {
                    compare_text(part(a.key, at, words), part(b.key, at, words))
                }
                Compare::Bytes { words } => {
                    compare_bytes(part(a.key, at, words), part(b.key, at, words))
                }
                Compare::Mask { words } => {
                    let (a, b) = (part(a.key, at, words), part(b.key, at, words));

                    a.iter().rev().cmp(b.iter().rev())
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

/// An entry of the order: two prefixes, which decide most comparisons, and the index of the row.
pub type SortEntry = [u64; 3];

/// Returns the index of the row of an entry.
#[inline]
pub fn row_of(entry: &SortEntry) -> usize {
    let [_, _, row] = *entry;
    // CAST: the word was made from a `usize`.
    row as usize
}

impl SortKey {
    /// A column whose values are all equal.
    const NOTHING: Self = Self::ascending(Compare::Equal);
    /// The first word of the row's key.
    const KEY: Self = Self::ascending(Compare::Bytes { words: 1 });

    const fn ascending(compare: Compare) -> Self {
        Self {
            column: Column::Key { at: 0, compare },
            descending: false,
        }
    }

    /// Returns whether rows with equal [prefixes](SortKey::prefix) have equal values.
    fn is_exact(&self) -> bool {
        match self.column {
            Column::Sum(_) => true,
            Column::Made(_) => false,
            Column::Key { compare, .. } => match compare {
                Compare::Number { .. } | Compare::Equal => true,
                Compare::Bytes { words } => words <= 1,
                Compare::Text { .. } | Compare::Mask { .. } => false,
            },
        }
    }

    /// Returns a number that orders row `i` like the column does.
    ///
    /// Equal numbers mean equal values in a numeric column; in a column of strings only that the first bytes are equal,
    /// and with decimals only that the digits before them are.
    #[inline]
    fn prefix(&self, rows: &Rows<'_>, i: usize) -> u64 {
        let word = match self.column {
            Column::Sum(sum) => rows.word(i, rows.sum_at(sum)),
            Column::Made(gauge) => rows.get(i).map_or(0, |row| gauge.rank(row.sums)),
            Column::Key { at, compare } => match compare {
                Compare::Number { size, signed } => in_order(rows.word(i, at), size, signed),
                Compare::Text { .. } => beginning(rows.word(i, at)),
                Compare::Bytes { words: 0 } | Compare::Mask { .. } | Compare::Equal => 0,
                Compare::Bytes { .. } => rows.word(i, at).to_be(),
            },
        };

        if self.descending {
            !word
        } else {
            word
        }
    }
}

/// Returns a number that compares like the string in a word: the first byte is the highest one, and what
/// follows a NUL is 0.
fn beginning(word: u64) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;

    let bytes = word.to_be();
    // `nul` has the top bit of each byte that is NUL.
    // OVERFLOW: the sum of two numbers of 7 bits has 8 bits, so no byte carries into the next one.
    let nul = !((bytes & LOW).wrapping_add(LOW) | bytes | LOW);
    if nul == 0 {
        bytes
    } else {
        bytes & !u64::MAX.wrapping_shr(nul.leading_zeros())
    }
}

/// Fills `order` with one entry for each row, sorted by `keys` and then by the bytes of the row's key.
///
/// If `order` has more entries than there are rows, the last entries have indices after the last row.
pub fn sort(rows: &Rows<'_>, keys: &[SortKey], order: &mut [SortEntry]) {
    let first = keys.first().unwrap_or(&SortKey::KEY);
    let (second, rest) = match keys.get(1) {
        _ if !first.is_exact() => (&SortKey::NOTHING, keys),
        None => (&SortKey::KEY, &[][..]),
        Some(second) if second.is_exact() => (second, keys.get(2..).unwrap_or(&[])),
        Some(second) => (second, keys.get(1..).unwrap_or(&[])),
    };
    for (i, entry) in order.iter_mut().enumerate() {
        // CAST: `usize` has at most 64 bits.
        *entry = [first.prefix(rows, i), second.prefix(rows, i), i as u64];
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

/// Returns whether row `a` comes before row `b`, if both are equal in all columns except those of `rest`.
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

/// Inserts `x` into the heap below `root`, whose value is overwritten.
///
/// Moves along the larger children to a leaf without comparing `x`, and from there up to the position of `x`. `x` comes
/// from the end of the heap and mostly belongs near the leaves, so this needs about half the comparisons of a search
/// from the top (bottom-up heapsort).
fn sift(
    heap: &mut [SortEntry],
    root: usize,
    x: SortEntry,
    less: &impl Fn(&SortEntry, &SortEntry) -> bool,
) {
    let mut hole = root;

    loop {
        // OVERFLOW: an entry has 24 bytes, so an index is less than a 24th of the address space.
        let left = hole.wrapping_mul(2).wrapping_add(1);
        let right = left.wrapping_add(1);
        let Some(l) = heap.get(left) else {
            break;
        };
        let (child, larger) = match heap.get(right) {
            Some(r) if less(l, r) => (right, *r),
            _ => (left, *l),
        };
        if let Some(entry) = heap.get_mut(hole) {
            *entry = larger;
        }
        hole = child;
    }

    while hole > root {
        // OVERFLOW: `hole` is greater than `root`, so it is not 0.
        let parent = hole.wrapping_sub(1) / 2;
        let Some(&p) = heap.get(parent) else {
            break;
        };
        if !less(&p, &x) {
            break;
        }
        if let Some(entry) = heap.get_mut(hole) {
            *entry = p;
        }
        hole = parent;
    }
    if let Some(entry) = heap.get_mut(hole) {
        *entry = x;
    }
}
