// SPDX-License-Identifier: GPL-2.0

//! Numbers and words of strings of a record, of which any byte may be missing.
//!
//! Context: any, NMI included. Never panics.

/// A signed number in 64 bits.
#[inline(always)]
pub(super) fn widen(value: impl Into<i64>) -> u64 {
    // CAST: keeps the bits.
    value.into() as u64
}

/// As [`array_at`], of a place in a format.
#[inline(always)]
pub(super) fn bytes<const N: usize>(record: &[u8], at: u32) -> [u8; N] {
    // CAST: tracing needs 32-bit pointers at least.
    array_at(record, at as usize)
}

/// A word of eight bytes; 0 of any other number of them.
#[inline(always)]
pub(super) fn word_in(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(bytes.try_into().unwrap_or_default())
}

/// `N` bytes at `at`; zeros unless all are inside.
#[inline(always)]
pub(super) fn array_at<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    // OVERFLOW: then it ends before it begins, and is not inside.
    record
        .get(at..at.wrapping_add(N))
        .and_then(|bytes| bytes.first_chunk::<N>())
        .copied()
        .unwrap_or([0; N])
}

/// Eight bytes at `at`, with zeros for those that are not inside.
#[inline(always)]
pub(super) fn text_word(record: &[u8], at: u32) -> u64 {
    // CAST: as in `bytes`.
    match record.get(at as usize..).and_then(<[u8]>::first_chunk) {
        Some(word) => u64::from_ne_bytes(*word),
        None => last_word(record, at),
    }
}

/// As [`text_word`], of less than eight bytes.
#[cold]
#[inline(never)]
fn last_word(record: &[u8], at: u32) -> u64 {
    let mut word = [0; size_of::<u64>()];
    // CAST: as in `bytes`.
    let rest = record.get(at as usize..).unwrap_or(&[]);

    for (to, from) in word.iter_mut().zip(rest) {
        *to = *from;
    }
    u64::from_ne_bytes(word)
}
