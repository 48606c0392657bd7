// SPDX-License-Identifier: GPL-2.0

//! Strings and stacks, word by word from where they are to where they go.
//!
//! C counterpart: `strscpy()` and `stack_trace_save()` as
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c) uses them.
//!
//! Nothing of them is kept in between: there is room for few on the stack of an interrupt, and to clear
//! it takes longer than most strings do.
//!
//! Context: any, NMI included.

use crate::{
    sync::{
        load_2,
        load_4,
        load_8,
        Atomic, //
    },
    tracing_map::{
        TextCell,
        WordWriter, //
    }, //
};

use super::{
    super::{
        bytes::word_in,
        Kind,
        Op, //
    },
    stack_at, //
};

/// Bytes of a word.
pub(super) const WORD: usize = size_of::<u64>();

/// Hands the content of a variable on.
#[inline]
pub(super) fn cell_text(
    words: &[Atomic<u64>],
    kind: Kind,
    room: usize,
    mut put: impl FnMut(usize, u64),
) -> Option<usize> {
    let cell = TextCell::new(words)?;

    match kind {
        Kind::String => cell.copy(room, |at, word| put(at, ended(word, at, room))),
        Kind::Number | Kind::Stack => cell.copy(room, put),
    }
}

/// Hands words on, and returns how many.
#[inline(always)]
pub(super) fn copy(words: &[u64], room: usize, mut put: impl FnMut(usize, u64)) -> usize {
    let mut len = 0;

    for &word in words.iter().take(room) {
        put(len, word);
        // OVERFLOW: below the length of a slice.
        len = len.wrapping_add(1);
    }
    len
}

/// A word of a string, whose last byte is a NUL if it is the last one of `room`: the room may be smaller
/// than that of where the string comes from.
#[inline(always)]
fn ended(word: u64, at: usize, room: usize) -> u64 {
    if at.wrapping_add(1) == room {
        without_last_byte(word)
    } else {
        word
    }
}

/// A word whose last byte in memory is a NUL.
#[inline(always)]
fn without_last_byte(word: u64) -> u64 {
    low(word, u64::BITS.wrapping_sub(u8::BITS))
}

/// Copies the content of a variable; returns how many words, or `None` if there is none.
///
/// The last byte of a string is a NUL: the room may be smaller than that of the variable.
#[inline(always)]
pub(super) fn copy_cell(words: &[Atomic<u64>], kind: Kind, to: WordWriter<'_>) -> Option<usize> {
    let len = TextCell::new(words)?.copy_to(to)?;

    if kind == Kind::String {
        to.change_last_of(len, without_last_byte);
    }
    Some(len)
}

/// Sets a variable to the content of another one, or unsets it if that is not set.
#[inline(never)]
pub(super) fn set_copy(words: &[Atomic<u64>], kind: Kind, from: &[Atomic<u64>]) {
    if let Some(cell) = TextCell::new(words) {
        // A writer that meets another one has nothing more to do; see `TextCell::fill`.
        cell.fill(|to| copy_cell(from, kind, to));
    }
}

/// Sets a variable to the first `len` bytes of `from`, up to the first NUL. There is room for that and a NUL.
#[inline(never)]
pub(super) fn set_string(words: &[Atomic<u64>], from: &[u8], len: usize) {
    if let Some(cell) = TextCell::new(words) {
        // A writer that meets another one has nothing more to do; see `TextCell::fill`.
        cell.fill(|to| Some(copy_string(from, len, |at, word| to.put(at, word))));
    }
}

/// Most bytes of a string in a field of fixed size that are copied without a look for its NUL, which takes longer than to
/// copy what is behind that.
const SHORT_FIELD: usize = 4 * WORD;

/// The `len` bytes at `at` of a record if [`copy_whole`] does for them: all are there, and there are not many more of them
/// than the string has.
#[inline(always)]
pub(super) fn short_field(text: Op, record: &[u8], at: usize, len: usize) -> Option<&[u8]> {
    if matches!(text, Op::StaticString { .. }) && len > SHORT_FIELD {
        return None;
    }
    // OVERFLOW: then it ends before it begins, and is not inside.
    record.get(at..at.wrapping_add(len))
}

/// Copies `from` with zeros behind it; returns how many words. What comes behind a NUL is copied, too.
#[inline(always)]
pub(super) fn copy_whole(from: &[u8], to: WordWriter<'_>) -> usize {
    let words = to.put_all(from.chunks_exact(WORD).map(word_in));

    if from.len() % WORD == 0 {
        return words;
    }
    to.put(
        words,
        match last_whole(from) {
            Some(word) => high(word, from.len() % WORD),
            None => short(from),
        },
    );
    // OVERFLOW: a number of words.
    words.wrapping_add(1)
}

/// The bytes in memory before bit `bits` of a word, and zeros behind them.
#[inline(always)]
pub(super) fn low(word: u64, bits: u32) -> u64 {
    let mask = 1u64.wrapping_shl(bits).wrapping_sub(1);

    u64::from_le(word.to_le() & mask)
}

/// A bit of the first byte of a word that is 0, and perhaps of bytes behind it, as in memory of a little-endian
/// machine; 0 if there is no such byte.
#[inline(always)]
fn nuls(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 0xff;
    const TOPS: u64 = ONES << 7;

    // OVERFLOW: what is borrowed comes from bytes behind the first one that is 0.
    word.wrapping_sub(ONES) & !word & TOPS
}

/// How many bits of a word come in memory before its first byte that is 0, if there is one.
#[inline(always)]
pub(super) fn bits_before_nul(word: u64) -> Option<u32> {
    let nuls = nuls(word.to_le());

    (nuls != 0).then(|| nuls.trailing_zeros() & !7)
}

/// The bytes of a string, its NUL apart, for which there is room in so many words.
#[inline(always)]
pub(in super::super) fn most_in(room: usize) -> usize {
    room.saturating_mul(WORD).saturating_sub(1)
}

/// Hands the first `len` bytes of `from` on, as many as there are, up to the first NUL, as words with zeros behind
/// them; returns how many words.
#[inline(always)]
pub(super) fn copy_string(from: &[u8], len: usize, mut put: impl FnMut(usize, u64)) -> usize {
    let len = len.min(from.len());
    let whole = from.get(..len).unwrap_or(&[]).chunks_exact(WORD);

    // By number, so that the compiler sees that each word has its place where there is room for `len`.
    for (at, chunk) in (0..len / WORD).zip(whole) {
        let word = word_in(chunk);

        if nuls(word.to_le()) != 0 {
            put(at, before_nul(word));
            // OVERFLOW: a number of words.
            return at.wrapping_add(1);
        }
        put(at, word);
    }
    if len % WORD == 0 {
        return len / WORD;
    }
    put(len / WORD, before_nul(last_word(from, len)));
    // OVERFLOW: a number of words.
    (len / WORD).wrapping_add(1)
}

/// The bytes of a word before the first one that is 0, and zeros behind them.
#[inline(always)]
fn before_nul(word: u64) -> u64 {
    let word = word.to_le();

    // All bits before the lowest one of `nuls`; where the others of these are, the word has none. All of it if there
    // is no such bit.
    u64::from_le(word & nuls(word).wrapping_sub(1))
}

/// What comes behind the whole words of the first `len` bytes of `from`, less than eight bytes, as a word with zeros
/// behind them; `from` is not shorter.
#[inline(always)]
pub(super) fn last_word(from: &[u8], len: usize) -> u64 {
    // OVERFLOW: at most `len`, and a word more than that.
    let at = len.wrapping_sub(len % WORD);

    match load_8(from, at) {
        // CAST: less than a word. OVERFLOW: at most 56.
        Some(word) => low(word, ((len % WORD) as u32).wrapping_mul(u8::BITS)),
        // It is the last one of the record.
        None => {
            let from = from.get(..len).unwrap_or(&[]);

            match last_whole(from) {
                Some(word) => high(word, len % WORD),
                None => short_text(from),
            }
        }
    }
}

/// The last eight bytes as a word, if there are so many.
#[inline(always)]
fn last_whole(bytes: &[u8]) -> Option<u64> {
    load_8(bytes, bytes.len().checked_sub(WORD)?)
}

/// The last `len` bytes of a word, less than eight, with zeros behind them.
#[inline(always)]
fn high(word: u64, len: usize) -> u64 {
    // CAST: less than a word. OVERFLOW: at most 56. Two shifts, since one by all bits of a word is none.
    let bits = u64::BITS
        .wrapping_sub(u8::BITS)
        .wrapping_sub((len as u32).wrapping_mul(u8::BITS));

    u64::from_le((word.to_le() >> u8::BITS).wrapping_shr(bits))
}

/// As [`short`], with a call: few strings are so short and the last one of their record.
#[inline(never)]
fn short_text(bytes: &[u8]) -> u64 {
    short(bytes)
}

/// The first `len` bytes of `from`, as many as there are, up to the first NUL.
#[inline(always)]
pub(super) fn until_nul(from: &[u8], len: usize) -> &[u8] {
    let len = len.min(from.len());
    let bytes = from.get(..len).unwrap_or(&[]);

    for (at, chunk) in (0..len / WORD).zip(bytes.chunks_exact(WORD)) {
        let word = word_in(chunk);

        if let Some(bits) = bits_before_nul(word) {
            return upto(bytes, at, bits);
        }
    }
    if len % WORD == 0 {
        return bytes;
    }
    // Less than a word, so there is a NUL behind it.
    let bits = bits_before_nul(last_word(from, len)).unwrap_or(0);

    upto(bytes, len / WORD, bits)
}

/// The bytes of so many words, and as many more as have so many bits.
#[inline(always)]
fn upto(bytes: &[u8], words: usize, bits: u32) -> &[u8] {
    // CAST: at most 8. OVERFLOW: at most the length of a slice.
    let len = words
        .wrapping_mul(WORD)
        .wrapping_add((bits / u8::BITS) as usize);

    bytes.get(..len).unwrap_or(bytes)
}

/// Less than eight bytes as a word, with zeros behind them.
#[inline(always)]
pub(super) fn short(bytes: &[u8]) -> u64 {
    let (mut word, mut at) = (0, 0);
    // CAST: less than a word. OVERFLOW: less than 64.
    let placed = |number: u64, at: usize| number.wrapping_shl((at as u32).wrapping_mul(u8::BITS));

    if let Some(four) = load_4(bytes, at) {
        word = u64::from(u32::from_le(four));
        at = size_of_val(&four);
    }
    if let Some(two) = load_2(bytes, at) {
        word |= placed(u16::from_le(two).into(), at);
        // OVERFLOW: at most 6.
        at = at.wrapping_add(size_of_val(&two));
    }
    if let Some(&one) = bytes.get(at) {
        word |= placed(one.into(), at);
    }
    u64::from_le(word)
}

/// Hands on the stack whose place the word at `offset` of a record gives, at most `room` frames; returns how many.
#[inline]
pub(super) fn copy_stack(
    record: &[u8],
    offset: u32,
    room: usize,
    mut put: impl FnMut(usize, u64),
) -> usize {
    let frames = stack_at(record, offset, room);

    for (at, frame) in frames.chunks_exact(WORD).enumerate() {
        put(at, word_in(frame));
    }
    frames.len() / WORD
}
