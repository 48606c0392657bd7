// SPDX-License-Identifier: GPL-2.0

//! Copies strings and stacks word by word, with no buffer between source and destination.
//!
//! C counterpart: `strscpy()` and `stack_trace_save()` as
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c) uses them.
//!
//! A buffer would need much of an interrupt's stack, and clearing it takes longer than copying most strings.
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

use super::super::{
    bytes::{
        text_word,
        word_in, //
    },
    Kind, //
};

/// Bytes in a word.
pub(super) const WORD: usize = size_of::<u64>();

/// Passes the words of a string or stack variable to `put`. Returns the number of words, `None` if unset.
#[inline]
pub(super) fn cell_text(
    words: &[Atomic<u64>],
    kind: Kind,
    room: usize,
    mut put: impl FnMut(usize, u64),
) -> Option<usize> {
    let cell = TextCell::new(words)?;

    match kind {
        Kind::String => cell.copy(
            room,
            #[inline(always)]
            |at, word| put(at, ended(word, at, room)),
        ),
        Kind::Number | Kind::Cpumask | Kind::Stack => cell.copy(room, put),
    }
}

/// Passes words to `put`. Returns how many.
#[inline]
pub(super) fn copy(words: impl Iterator<Item = u64>, mut put: impl FnMut(usize, u64)) -> usize {
    let mut len = 0;

    for word in words {
        put(len, word);
        // OVERFLOW: a number of words in memory.
        len = len.wrapping_add(1);
    }
    len
}

/// Word `at` of a string, with its last byte made NUL if it is the last word of `room`: the string may be longer than
/// the room.
#[inline]
fn ended(word: u64, at: usize, room: usize) -> u64 {
    if at.wrapping_add(1) == room {
        without_last_byte(word)
    } else {
        word
    }
}

/// Returns the word with its last byte in memory made NUL.
#[inline]
fn without_last_byte(word: u64) -> u64 {
    low(word, u64::BITS.wrapping_sub(u8::BITS))
}

/// Copies the content of a variable. Returns the number of words, `None` if the variable is unset.
///
/// The last byte of a string is made NUL: the room may be smaller than the variable.
#[inline(always)]
pub(super) fn copy_cell(words: &[Atomic<u64>], kind: Kind, to: WordWriter<'_>) -> Option<usize> {
    let len = TextCell::new(words)?.copy_to(to)?;

    if kind == Kind::String {
        to.change_last_of(len, without_last_byte);
    }
    Some(len)
}

/// Sets a variable to the content of another one, or unsets it if the other one is unset.
#[inline(never)]
pub(super) fn set_copy(words: &[Atomic<u64>], kind: Kind, from: &[Atomic<u64>]) {
    if let Some(cell) = TextCell::new(words) {
        // If another context is writing the variable, this one leaves it alone; see `TextCell::fill`.
        cell.fill(
            #[inline(always)]
            |to| copy_cell(from, kind, to),
        );
    }
}

/// Sets a variable to the `len` bytes at `at` of `bytes`, up to the first NUL. It must have room for them and a NUL.
#[inline(never)]
pub(super) fn set_string(words: &[Atomic<u64>], bytes: &[u8], at: usize, len: usize) {
    if let Some(cell) = TextCell::new(words) {
        // If another context is writing the variable, this one leaves it alone; see `TextCell::fill`.
        cell.fill(
            #[inline(always)]
            |to| {
                Some(copy_string(
                    bytes,
                    at,
                    len,
                    #[inline(always)]
                    |at, word| to.put(at, word),
                ))
            },
        );
    }
}

/// Some bytes as words: the bytes of the whole words, and a last word of the fewer than eight bytes left, padded with
/// zeros.
#[derive(Clone, Copy)]
pub(super) struct TextWords<'r> {
    pub(super) whole: &'r [u8],
    pub(super) last: u64,
    /// The number of bytes.
    len: usize,
}

impl<'r> TextWords<'r> {
    /// The `len` bytes at `at` of `bytes`, or as many of them as there are.
    #[inline]
    pub(super) fn new(bytes: &'r [u8], at: usize, len: usize) -> Self {
        match Self::inside(bytes, at, len) {
            Some(split) => split,
            None => Self::at_edge(bytes, at, len),
        }
    }

    /// The first `len` bytes; the last word is loaded from the bytes from its place on.
    #[inline(always)]
    pub(super) fn first(bytes: &'r [u8], len: usize) -> Self {
        let len = len.min(bytes.len());
        let (whole, rest) = bytes
            .split_at_checked(len / WORD * WORD)
            .unwrap_or((bytes, &[]));

        Self {
            whole,
            // CAST: below 8. OVERFLOW: at most 56.
            last: low(
                text_word(rest, 0),
                ((len % WORD) as u32).wrapping_mul(u8::BITS),
            ),
            len,
        }
    }

    /// The `len` bytes at `at`, if all are there and end at byte 8 or later, as strings of a record do. The last word
    /// is loaded from the eight bytes up to the end, as there may be none after it.
    #[inline]
    pub(super) fn inside(bytes: &'r [u8], at: usize, len: usize) -> Option<Self> {
        // OVERFLOW: an end that wrapped is before `at`, so `get` finds nothing.
        let end = at.wrapping_add(len);
        let from = bytes.get(at..end)?;
        let last = load_8(bytes, end.checked_sub(WORD)?)?;

        Some(Self {
            whole: from.get(..len / WORD * WORD)?,
            last: high(last, len % WORD),
            len,
        })
    }

    /// One word that is made of no bytes in memory, such as a number.
    #[inline]
    pub(super) fn of_word(last: u64) -> Self {
        Self {
            whole: &[],
            last,
            len: WORD,
        }
    }

    /// Like [`TextWords::new`], for bytes that end before the eighth byte or beyond the end of `bytes`.
    #[cold]
    #[inline(never)]
    fn at_edge(bytes: &'r [u8], at: usize, len: usize) -> Self {
        Self::first(bytes.get(at..).unwrap_or(&[]), len)
    }

    /// The number of words, with a last one that is not full.
    #[inline]
    fn words(&self) -> usize {
        // OVERFLOW: the length of bytes in memory.
        self.len.wrapping_add(WORD.wrapping_sub(1)) / WORD
    }

    /// Copies the words, bytes after a NUL included, if there is room for all whole words and one more. Returns the
    /// number of words, 0 if there is no room.
    #[inline]
    pub(super) fn copy(self, to: WordWriter<'_>) -> usize {
        let whole = self.whole.chunks_exact(WORD).map(word_in);

        // If the length is a multiple of eight, `words` does not count the last word.
        match to.put_with_last(whole, self.last) {
            true => self.words(),
            false => 0,
        }
    }
}

/// The bytes of a word before bit `bits` in memory order, followed by zeros.
#[inline]
fn low(word: u64, bits: u32) -> u64 {
    let mask = 1u64.wrapping_shl(bits).wrapping_sub(1);

    u64::from_le(word.to_le() & mask)
}

/// Marks the zero bytes of a little-endian word by their top bit. Only the first mark is reliable; 0 if there is no
/// zero byte.
#[inline]
fn nuls(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 0xff;
    const TOPS: u64 = ONES << 7;

    // OVERFLOW: a borrow comes only from bytes after the first zero byte.
    word.wrapping_sub(ONES) & !word & TOPS
}

/// Returns how many bits precede the first zero byte of a word in memory, `None` if there is none.
#[inline]
pub(super) fn bits_before_nul(word: u64) -> Option<u32> {
    let nuls = nuls(word.to_le());

    (nuls != 0).then(|| nuls.trailing_zeros() & !7)
}

/// The longest string, NUL not counted, that fits in `room` words.
#[inline]
pub(in super::super) fn most_in(room: usize) -> usize {
    room.saturating_mul(WORD).saturating_sub(1)
}

/// Passes the `len` bytes at `at` of `bytes`, or as many as there are, up to the first NUL, to `put` as words padded
/// with zeros. Returns the number of words.
#[inline(always)]
pub(super) fn copy_string(
    bytes: &[u8],
    at: usize,
    len: usize,
    mut put: impl FnMut(usize, u64),
) -> usize {
    let split = TextWords::new(bytes, at, len);
    let whole = split.whole.chunks_exact(WORD);

    // By number, so that the compiler sees that each word fits where there is room for `len` bytes.
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

/// The bytes of a word before its first zero byte, followed by zeros.
#[inline]
fn before_nul(word: u64) -> u64 {
    let word = word.to_le();

    // Keeps the bits below the lowest mark of `nuls`; bits of a zero byte below its mark are 0 anyway. Keeps all if
    // there is no mark.
    u64::from_le(word & nuls(word).wrapping_sub(1))
}

/// The last `len` bytes of a word, with `len` less than eight, followed by zeros.
#[inline]
fn high(word: u64, len: usize) -> u64 {
    // CAST: below 8. OVERFLOW: at most 56. Two shifts, since a shift by 64 bits would do nothing.
    let bits = u64::BITS
        .wrapping_sub(u8::BITS)
        .wrapping_sub((len as u32).wrapping_mul(u8::BITS));

    u64::from_le((word.to_le() >> u8::BITS).wrapping_shr(bits))
}

/// The `len` bytes at `at` of `bytes`, or as many as there are, up to the first NUL.
#[inline(always)]
pub(in super::super) fn until_nul(bytes: &[u8], at: usize, len: usize) -> &[u8] {
    let split = TextWords::new(bytes, at, len);
    let from = bytes.get(at..).unwrap_or(&[]);

    for (at, chunk) in split.whole.chunks_exact(WORD).enumerate() {
        let word = word_in(chunk);

        if let Some(bits) = bits_before_nul(word) {
            return upto(from, at, bits);
        }
    }
    // The last word holds fewer than eight bytes, so a NUL follows.
    let bits = bits_before_nul(split.last).unwrap_or(0);

    upto(from, split.len / WORD, bits)
}

/// The first bytes: so many whole words, and `bits` bits of the next.
#[inline]
fn upto(bytes: &[u8], words: usize, bits: u32) -> &[u8] {
    // CAST: at most 8. OVERFLOW: at most the length of a slice.
    let len = words
        .wrapping_mul(WORD)
        .wrapping_add((bits / u8::BITS) as usize);

    bytes.get(..len).unwrap_or(bytes)
}
