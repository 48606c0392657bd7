// SPDX-License-Identifier: GPL-2.0

//! Numbers and words of strings of a record, of which any byte may be missing.
//!
//! Context: any, NMI included. Never panics.

use crate::sync::{
    load_4,
    load_8, //
};

/// Extends a signed number to 64 bits.
#[inline]
pub(super) fn widen(value: impl Into<i64>) -> u64 {
    // CAST: keeps the bits.
    value.into() as u64
}

/// Returns the number of 8 bytes at `at`; 0 unless all of them are inside the record.
#[inline]
pub(super) fn u64_at(record: &[u8], at: usize) -> u64 {
    load_8(record, at).unwrap_or(0)
}

/// Returns the number of 4 bytes at `at`; 0 unless all of them are inside the record.
#[inline]
pub(super) fn u32_at(record: &[u8], at: usize) -> u32 {
    load_4(record, at).unwrap_or(0)
}

/// Returns the byte at `at`; 0 unless it is inside the record.
#[inline]
pub(super) fn u8_at(record: &[u8], at: usize) -> u8 {
    record.get(at).copied().unwrap_or(0)
}

/// Returns the offset and the length of a string, from the `__data_loc` word at `at`; both 0 if that is not inside.
#[inline]
pub(super) fn located(record: &[u8], at: usize) -> (usize, usize) {
    let word = u32_at(record, at);

    // CAST: tracing needs 32-bit pointers at least.
    ((word & 0xffff) as usize, (word >> 16) as usize)
}

/// Like [`located`], for `__rel_loc`: the offset in the word at `at` is relative to the end of that word.
#[inline]
pub(super) fn located_behind(record: &[u8], at: usize) -> (usize, usize) {
    let (behind, len) = located(record, at);

    (
        at.saturating_add(size_of::<u32>()).saturating_add(behind),
        len,
    )
}

/// Returns the first eight bytes as a word; 0 if there are fewer.
#[inline]
pub(super) fn word_in(bytes: &[u8]) -> u64 {
    u64_at(bytes, 0)
}

/// Returns eight bytes at `at` as a word, with zeros for bytes outside of the record.
#[inline]
pub(super) fn text_word(record: &[u8], at: u32) -> u64 {
    // CAST: tracing needs 32-bit pointers at least.
    match load_8(record, at as usize) {
        Some(word) => word,
        None => last_word(record, at),
    }
}

/// Like [`text_word`], for the end of the record, where fewer than eight bytes are left.
#[cold]
#[inline(never)]
fn last_word(record: &[u8], at: u32) -> u64 {
    let mut word = [0; size_of::<u64>()];
    // CAST: tracing needs 32-bit pointers at least.
    let rest = record.get(at as usize..).unwrap_or(&[]);

    for (to, from) in word.iter_mut().zip(rest) {
        *to = *from;
    }
    u64::from_ne_bytes(word)
}
