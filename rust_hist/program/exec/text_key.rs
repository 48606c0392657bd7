// SPDX-License-Identifier: GPL-2.0

//! Keys with strings of the record, and numbers at hand besides.
//!
//! C counterpart: `add_to_key()`, which copies them and clears the rest.
//!
//! Whatever such a column is, it comes to some whole words of the record and one word behind them: so one loop
//! does for all, where [`super::KeyPieces`] has to tell them apart at each step.
//!
//! Context: any, NMI included.

use crate::{
    limits::KEYS_MAX,
    sync::{
        Atomic,
        Relaxed, //
    },
    tracing_map::{
        Factors,
        Pieces, //
    }, //
};

use super::{
    super::{
        Op,
        Program, //
    },
    place_of,
    text::{
        last_word,
        low,
        most_in,
        WORD, //
    }, //
};

/// The key of one hit.
///
/// # Invariants
///
/// `sum` and `end` are those of all words of the pieces, as [`Pieces::sum`] returns them for the factors of the
/// maps that the key is looked up in.
pub struct TextKey<'k> {
    pieces: &'k [Piece<'k>],
    sum: u64,
    end: usize,
}

/// One column of it, but for zeros behind it.
#[derive(Clone, Copy)]
struct Piece<'r> {
    /// How many words come before it that are zeros of the column before it.
    gap: usize,
    /// Some words of the record.
    whole: &'r [u8],
    /// The word behind these: what is left of a string, or a number.
    last: u64,
}

impl Pieces for TextKey<'_> {
    #[inline(always)]
    fn each(&self, mut found: impl FnMut(usize, u64)) {
        let mut at: usize = 0;

        for piece in self.pieces {
            let mut whole = piece.whole;

            // OVERFLOW: below the words of a key, here and below.
            at = at.wrapping_add(piece.gap);
            while let Some((word, behind)) = whole.split_first_chunk() {
                found(at, u64::from_ne_bytes(*word));
                whole = behind;
                at = at.wrapping_add(1);
            }
            found(at, piece.last);
            at = at.wrapping_add(1);
        }
    }

    #[inline(always)]
    fn sum(&self, _factors: &Factors) -> (u64, usize) {
        (self.sum, self.end)
    }

    #[inline(always)]
    fn is_in(&self, held: &[Atomic<u64>]) -> bool {
        let mut rest = held;

        for piece in self.pieces {
            if !skip_zeros(&mut rest, piece.gap) {
                return false;
            }
            let Some((own, behind)) = rest.split_at_checked(piece.whole.len() / WORD) else {
                return false;
            };
            let mut words = own.iter().zip(piece.whole.chunks_exact(WORD));
            // ORDERING: as in `skip`.
            let are_same = words.all(|(held, word)| {
                held.load(Relaxed) == u64::from_ne_bytes(word.try_into().unwrap_or_default())
            });

            if !are_same {
                return false;
            }
            rest = behind;
            if !skip(&mut rest, piece.last) {
                return false;
            }
        }
        true
    }
}

/// Goes on behind the first word, if that is `wanted`.
#[inline(always)]
fn skip(held: &mut &[Atomic<u64>], wanted: u64) -> bool {
    match held.split_first() {
        // ORDERING: the key of an element that was found does not change.
        Some((first, behind)) if first.load(Relaxed) == wanted => {
            *held = behind;
            true
        }
        _ => false,
    }
}

/// Goes on behind so many words, if all of them are 0.
#[inline(always)]
fn skip_zeros(held: &mut &[Atomic<u64>], len: usize) -> bool {
    let Some((mut zeros, behind)) = held.split_at_checked(len) else {
        return false;
    };

    // Behind a string there mostly is room for some 30 words more.
    while let Some((eight, more)) = zeros.split_first_chunk::<8>() {
        if !are_zeros(eight) {
            return false;
        }
        zeros = more;
    }
    if let Some((four, more)) = zeros.split_first_chunk::<4>() {
        if !are_zeros(four) {
            return false;
        }
        zeros = more;
    }
    while !zeros.is_empty() {
        if !skip(&mut zeros, 0) {
            return false;
        }
    }
    *held = behind;
    true
}

/// Whether all of these words are 0.
#[inline(always)]
fn are_zeros<const N: usize>(words: &[Atomic<u64>; N]) -> bool {
    // ORDERING: as in `skip`.
    words.iter().fold(0, |all, word| all | word.load(Relaxed)) == 0
}

impl Program {
    /// Whether [`Program::with_text_key`] computes the key: it is made of strings of the record and of numbers that are
    /// at hand.
    #[inline(always)]
    pub fn has_text_key(&self) -> bool {
        self.plan.has_text_key
    }

    /// As [`Program::has_text_key`], while the program is lowered.
    pub(in super::super) fn text_key_does(&self) -> bool {
        let numbers = self.plan.keys.places();

        self.keys()
            .iter()
            .zip(numbers)
            .all(|(key, number)| match key.field.op {
                op if op.is_text_of_record() => true,
                Op::Num { .. } | Op::Cpu | Op::Const(_) | Op::One | Op::Expr(_) => {
                    number.is_simple()
                }
                _ => false,
            })
    }

    /// Computes the key of the hit, as [`Program::key`] does, of a program for which [`Program::has_text_key`], and
    /// hands it on, for maps with these factors.
    #[inline(always)]
    pub fn with_text_key<R>(
        &self,
        record: &[u8],
        cpu: impl Fn() -> u32 + Copy,
        factors: &Factors,
        found: impl FnOnce(&TextKey<'_>) -> R,
    ) -> R {
        let mut pieces = [Piece {
            gap: 0,
            whole: &[],
            last: 0,
        }; KEYS_MAX];
        let (mut sum, mut end, mut behind): (u64, usize, usize) = (0, 0, 0);
        let keys = self.keys().iter().zip(self.plan.keys.places());

        for ((key, number), piece) in keys.zip(&mut pieces) {
            let first = key.first_word();
            let (whole, last) = match place_of(key.field.op, record) {
                Some((place, len)) => split(record, place, len.min(most_in(key.words()))),
                None => (&[][..], number.simple(record, cpu).unwrap_or(0)),
            };
            let (mut at, mut rest) = (first, whole);
            let mut add = |at: usize, word: u64, factor: u64| {
                sum = sum.wrapping_add(word.wrapping_mul(factor));
                if word != 0 {
                    // OVERFLOW: below the words of a key, here and below.
                    end = at.wrapping_add(1);
                }
            };

            while let Some((word, more)) = rest.split_first_chunk() {
                // There is one for each word of a key; that this might not be so keeps the compiler from doing two
                // at once, while most strings have one or two.
                let Some(factor) = factors.get(at) else {
                    break;
                };

                add(at, u64::from_ne_bytes(*word), *factor);
                rest = more;
                at = at.wrapping_add(1);
            }
            if let Some(factor) = factors.get(at) {
                add(at, last, *factor);
            }
            *piece = Piece {
                // OVERFLOW: the columns are in ascending order.
                gap: first.wrapping_sub(behind),
                whole,
                last,
            };
            behind = at.wrapping_add(1);
        }
        // INVARIANT: all words of the pieces were added; the others are 0.
        found(&TextKey {
            pieces: pieces.get(..self.keys().len()).unwrap_or(&[]),
            sum,
            end,
        })
    }
}

/// `len` bytes at `at`, as many of them as there are: those of whole words, and the word behind them.
#[inline(always)]
fn split(record: &[u8], at: usize, len: usize) -> (&[u8], u64) {
    // OVERFLOW: then it ends before it begins, and is not inside.
    let end = at.wrapping_add(len / WORD * WORD).wrapping_add(WORD);

    match record.get(at..end).and_then(<[u8]>::split_last_chunk) {
        // CAST: less than a word. OVERFLOW: as above.
        Some((whole, last)) => (
            whole,
            low(
                u64::from_ne_bytes(*last),
                ((len % WORD) as u32).wrapping_mul(u8::BITS),
            ),
        ),
        None => split_at_end(record, at, len),
    }
}

/// As [`split`], where less than a word comes behind them.
#[inline(always)]
fn split_at_end(record: &[u8], at: usize, len: usize) -> (&[u8], u64) {
    let from = record.get(at..).unwrap_or(&[]);
    let len = len.min(from.len());
    let whole = from.get(..len / WORD * WORD).unwrap_or(&[]);

    (whole, last_word(from, len))
}
