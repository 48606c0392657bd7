// SPDX-License-Identifier: GPL-2.0

//! Numbers and padding with the output of `printf()`.
//!
//! A row takes some ten writes and a table may have a hundred thousand rows, so these functions write
//! bytes directly and do not use `core::fmt`.

use crate::text::Out;
use core::fmt;

/// Most decimal digits of a 64-bit number.
const PLACES: usize = 20;

/// The digits of a number, preceded by spaces.
///
/// # Invariants
///
/// `bytes[start..]` are ASCII digits, at least one; all before them are spaces.
pub(super) struct Digits {
    bytes: [u8; PLACES],
    start: usize,
}

impl Digits {
    /// Returns the digits.
    #[inline]
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or(&[])
    }

    /// Returns the digits, preceded by spaces up to `width` bytes, which is at most [`PLACES`].
    #[inline]
    pub(super) fn right(&self, width: usize) -> &[u8] {
        let start = self.start.min(PLACES.saturating_sub(width));
        self.bytes.get(start..).unwrap_or(&[])
    }
}

/// Returns the digits of `v` in a base of at most 16.
#[inline(always)]
fn digits<const BASE: u64>(mut v: u64) -> Digits {
    let mut digits = Digits {
        bytes: [b' '; PLACES],
        start: PLACES,
    };

    for place in digits.bytes.iter_mut().rev() {
        // CAST: the remainder is less than 16.
        *place = match (v % BASE) as u8 {
            digit @ 0..=9 => b'0' | digit,
            digit => digit.wrapping_add(b'a' - 10),
        };
        // INVARIANT: the byte at the new `start` is the digit that was just stored.
        // OVERFLOW: the loop runs at most `PLACES` times, and `start` begins at `PLACES`.
        digits.start = digits.start.wrapping_sub(1);
        v /= BASE;
        if v == 0 {
            break;
        }
    }
    digits
}

/// Returns `v` as `%llu` writes it.
pub(super) fn decimal(v: u64) -> Digits {
    digits::<10>(v)
}

/// Returns `v` as `%llx` writes it.
pub(super) fn hex(v: u64) -> Digits {
    digits::<16>(v)
}

/// Writes `n` spaces, at most 64: no column is wider.
pub(super) fn spaces<W: Out>(n: usize, out: &mut W) -> fmt::Result {
    const SPACES: &[u8] = &[b' '; 64];

    debug_assert!(n <= SPACES.len());
    out.write_bytes(SPACES.get(..n).unwrap_or(SPACES))
}

/// Writes `bytes` and pads them on the right to `width`, as `%-Ns` does.
pub(super) fn left<W: Out>(bytes: &[u8], width: usize, out: &mut W) -> fmt::Result {
    out.write_bytes(bytes)?;
    spaces(width.saturating_sub(bytes.len()), out)
}

/// Writes the output of `write`, padded on the right to `width`.
pub(super) fn left_with<W: Out>(
    width: usize,
    out: &mut W,
    write: impl FnOnce(&mut CountingWriter<'_, W>) -> fmt::Result,
) -> fmt::Result {
    let mut counted = CountingWriter { out, len: 0 };
    write(&mut counted)?;
    let len = counted.len;
    spaces(width.saturating_sub(len), out)
}

/// Writes the string in `words` up to its first NUL; all of it if it has none.
pub(super) fn string<W: Out>(words: &[u64], out: &mut W) -> fmt::Result {
    for word in words {
        let bytes = word.to_ne_bytes();
        let len = bytes.iter().position(|&byte| byte == 0);

        if len != Some(0) {
            let part = len.and_then(|len| bytes.get(..len)).unwrap_or(&bytes);
            out.write_bytes(part)?;
        }
        if len.is_some() {
            break;
        }
    }
    Ok(())
}

/// Writes the CPUs of the mask in `words` as `%*pbl` does: `0-1,3`.
pub(super) fn cpus<W: Out>(words: &[u64], out: &mut W) -> fmt::Result {
    let bits = words
        .iter()
        .flat_map(|word| (0..u64::BITS).map(move |bit| word.wrapping_shr(bit) & 1 != 0));
    let mut cpus = (0u64..)
        .zip(bits)
        .filter_map(|(cpu, is_in)| is_in.then_some(cpu))
        .peekable();
    let mut comma: &[u8] = b"";

    while let Some(first) = cpus.next() {
        let mut last = first;

        while let Some(next) = cpus.next_if_eq(&last.wrapping_add(1)) {
            last = next;
        }
        out.write_parts(&[comma, decimal(first).as_bytes()])?;
        if last > first {
            out.write_parts(&[b"-", decimal(last).as_bytes()])?;
        }
        comma = b",";
    }
    Ok(())
}

/// A writer that forwards to another one and counts the bytes.
pub(super) struct CountingWriter<'a, W> {
    out: &'a mut W,
    len: usize,
}

impl<W: Out> fmt::Write for CountingWriter<'_, W> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.write_bytes(s.as_bytes())
    }
}

impl<W: Out> Out for CountingWriter<'_, W> {
    fn write_bytes(&mut self, bytes: &[u8]) -> fmt::Result {
        self.len = self.len.saturating_add(bytes.len());
        self.out.write_bytes(bytes)
    }
}
