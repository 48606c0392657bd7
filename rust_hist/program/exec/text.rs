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
        bytes::{
            text_word,
            word_in, //
        },
        Kind, //
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
        Kind::Number | Kind::Cpumask | Kind::Stack => cell.copy(room, put),
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

/// Sets a variable to the `len` bytes at `at` of `bytes`, up to the first NUL. There is room for that and a NUL.
#[inline(never)]
pub(super) fn set_string(words: &[Atomic<u64>], bytes: &[u8], at: usize, len: usize) {
    if let Some(cell) = TextCell::new(words) {
        // A writer that meets another one has nothing more to do; see `TextCell::fill`.
        cell.fill(|to| Some(copy_string(bytes, at, len, |at, word| to.put(at, word))));
    }
}

/// Some bytes as words: those that are whole, and one of the bytes behind them, fewer than eight, with zeros behind these.
#[derive(Clone, Copy)]
pub(super) struct Split<'r> {
    pub(super) whole: &'r [u8],
    pub(super) last: u64,
    /// How many bytes.
    len: usize,
}

impl<'r> Split<'r> {
    /// The `len` bytes at `at`, as many of them as there are.
    #[inline(always)]
    pub(super) fn new(bytes: &'r [u8], at: usize, len: usize) -> Self {
        match Self::inside(bytes, at, len) {
            Some(split) => split,
            None => Self::at_edge(bytes, at, len),
        }
    }

    /// The first `len` of the bytes, with a last word that is loaded with those behind it.
    #[inline(always)]
    pub(super) fn first(bytes: &'r [u8], len: usize) -> Self {
        let len = len.min(bytes.len());
        let (whole, rest) = bytes
            .split_at_checked(len / WORD * WORD)
            .unwrap_or((bytes, &[]));

        Self {
            whole,
            // CAST: less than a word. OVERFLOW: at most 56.
            last: low(
                text_word(rest, 0),
                ((len % WORD) as u32).wrapping_mul(u8::BITS),
            ),
            len,
        }
    }

    /// The same if all are there, and eight bytes end with them, as they do in each record: the last word is loaded with
    /// bytes that are before it, since behind it there may be none.
    #[inline(always)]
    pub(super) fn inside(bytes: &'r [u8], at: usize, len: usize) -> Option<Self> {
        // OVERFLOW: then it ends before it begins, and is not inside.
        let end = at.wrapping_add(len);
        let from = bytes.get(at..end)?;
        let last = load_8(bytes, end.checked_sub(WORD)?)?;

        Some(Self {
            whole: from.get(..len / WORD * WORD)?,
            last: high(last, len % WORD),
            len,
        })
    }

    /// A word that is none of bytes.
    #[inline(always)]
    pub(super) fn of_word(last: u64) -> Self {
        Self {
            whole: &[],
            last,
            len: WORD,
        }
    }

    /// The same where fewer bytes come before their end than a word has, or where the bytes end before they do.
    #[cold]
    #[inline(never)]
    fn at_edge(bytes: &'r [u8], at: usize, len: usize) -> Self {
        Self::first(bytes.get(at..).unwrap_or(&[]), len)
    }

    /// How many words they are.
    #[inline(always)]
    fn words(&self) -> usize {
        // OVERFLOW: they are bytes in memory.
        self.len.wrapping_add(WORD.wrapping_sub(1)) / WORD
    }

    /// Copies them, if there is room for the word behind the whole ones; returns how many words. What comes behind a NUL is
    /// copied, too.
    #[inline(always)]
    pub(super) fn copy(self, to: WordWriter<'_>) -> usize {
        let whole = self.whole.chunks_exact(WORD).map(word_in);

        // Where no bytes are behind the whole words, the last one is not among those that are counted.
        match to.put_with_last(whole, self.last) {
            true => self.words(),
            false => 0,
        }
    }
}

/// The bytes in memory before bit `bits` of a word, and zeros behind them.
#[inline(always)]
fn low(word: u64, bits: u32) -> u64 {
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

/// Hands the `len` bytes at `at` of `bytes` on, as many as there are, up to the first NUL, as words with zeros behind
/// them; returns how many words.
#[inline(always)]
pub(super) fn copy_string(
    bytes: &[u8],
    at: usize,
    len: usize,
    mut put: impl FnMut(usize, u64),
) -> usize {
    let split = Split::new(bytes, at, len);
    let whole = split.whole.chunks_exact(WORD);

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
    if split.len % WORD != 0 {
        put(split.len / WORD, before_nul(split.last));
    }
    split.words()
}

/// The bytes of a word before the first one that is 0, and zeros behind them.
#[inline(always)]
fn before_nul(word: u64) -> u64 {
    let word = word.to_le();

    // All bits before the lowest one of `nuls`; where the others of these are, the word has none. All of it if there
    // is no such bit.
    u64::from_le(word & nuls(word).wrapping_sub(1))
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

/// The `len` bytes at `at` of `bytes`, as many as there are, up to the first NUL.
#[inline(always)]
pub(in super::super) fn until_nul(bytes: &[u8], at: usize, len: usize) -> &[u8] {
    let split = Split::new(bytes, at, len);
    let from = bytes.get(at..).unwrap_or(&[]);

    for (at, chunk) in split.whole.chunks_exact(WORD).enumerate() {
        let word = word_in(chunk);

        if let Some(bits) = bits_before_nul(word) {
            return upto(from, at, bits);
        }
    }
    // Less than a word, so there is a NUL behind it.
    let bits = bits_before_nul(split.last).unwrap_or(0);

    upto(from, split.len / WORD, bits)
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
