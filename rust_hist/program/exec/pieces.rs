// SPDX-License-Identifier: GPL-2.0

//! Keys with strings or stacks, as they lie in the record.
//!
//! C counterpart: `add_to_key()`, which copies them and clears the rest.
//!
//! There is room for 255 bytes of a string; most are short. To clear that room, fill it, and read it
//! twice takes longer than all else in a hit.
//!
//! Context: any, NMI included.

use crate::{
    field::Env,
    limits::{
        COMM_LEN,
        KEYS_MAX, //
    },
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
    array_at,
    location,
    string_in,
    text::{
        most_in,
        short,
        WORD, //
    }, //
};

/// The key of one hit.
pub struct KeyPieces<'r> {
    pieces: [Piece<'r>; KEYS_MAX],
    len: usize,
}

/// One key of it: its words from `at` on.
#[derive(Clone, Copy)]
struct Piece<'r> {
    at: usize,
    content: Content<'r>,
}

#[derive(Clone, Copy)]
enum Content<'r> {
    Number(u64),
    Bytes(&'r [u8]),
    Frames(&'r [u64]),
}

impl KeyPieces<'_> {
    #[inline(always)]
    fn all(&self) -> &[Piece<'_>] {
        self.pieces.get(..self.len).unwrap_or(&[])
    }
}

impl Pieces for KeyPieces<'_> {
    #[inline(always)]
    fn each(&self, mut found: impl FnMut(usize, u64)) {
        for piece in self.all() {
            piece.each(&mut found);
        }
    }

    #[inline(always)]
    fn sum(&self, factors: &Factors) -> (u64, usize) {
        let (mut sum, mut len): (u64, usize) = (0, 0);

        for piece in self.all() {
            let (of_piece, end) = piece.sum(factors);

            sum = sum.wrapping_add(of_piece);
            if end != 0 {
                len = end;
            }
        }
        (sum, len)
    }

    #[inline(always)]
    fn is_in(&self, held: &[Atomic<u64>]) -> bool {
        let mut rest = held;
        let mut next = 0;
        let mut differ = 0;

        for piece in self.all() {
            // OVERFLOW: in ascending order.
            let gap = piece.at.wrapping_sub(next);
            let (zeros, from) = rest.split_at_checked(gap).unwrap_or((&[], &[]));

            for zero in zeros {
                // ORDERING: the key of an element that was found does not change.
                differ |= zero.load(Relaxed);
            }
            let (differs, behind) = piece.differs(from);

            differ |= differs;
            // OVERFLOW: the words of a key.
            next = piece.at.wrapping_add(from.len().wrapping_sub(behind.len()));
            rest = behind;
        }
        differ == 0
    }
}

/// The first word, which must be there, and the others.
#[inline(always)]
fn take(held: &[Atomic<u64>]) -> (u64, &[Atomic<u64>]) {
    match held.split_first() {
        // ORDERING: as in `is_in`.
        Some((first, rest)) => (first.load(Relaxed), rest),
        None => (0, &[]),
    }
}

impl Piece<'_> {
    /// The sum of its words, each times its factor, and the end of the last one that is not 0; 0 if all are.
    #[inline(always)]
    fn sum(&self, factors: &Factors) -> (u64, usize) {
        let mut factors = factors.get(self.at..).unwrap_or(&[]).iter();
        let (mut sum, mut end): (u64, usize) = (0, 0);
        let mut at = self.at;
        let mut add = |word: u64, factor: Option<&u64>| {
            sum = sum.wrapping_add(word.wrapping_mul(*factor.unwrap_or(&0)));
            // OVERFLOW: below the words of a key.
            at = at.wrapping_add(1);
            if word != 0 {
                end = at;
            }
        };

        match self.content {
            Content::Number(word) => add(word, factors.next()),
            Content::Bytes(bytes) => {
                let chunks = bytes.chunks_exact(WORD);
                let last = chunks.remainder();

                for chunk in chunks {
                    let word = u64::from_ne_bytes(chunk.try_into().unwrap_or_default());
                    add(word, factors.next());
                }
                if !last.is_empty() {
                    add(short(last), factors.next());
                }
            }
            Content::Frames(frames) => {
                for &frame in frames {
                    add(frame, factors.next());
                }
            }
        }
        (sum, end)
    }

    /// Says which bits of its words are others in `held`, and what comes behind these.
    #[inline(always)]
    fn differs<'h>(&self, held: &'h [Atomic<u64>]) -> (u64, &'h [Atomic<u64>]) {
        let mut rest = held;
        let mut differ = 0;

        match self.content {
            Content::Number(word) => {
                let (is, behind) = take(rest);

                differ = is ^ word;
                rest = behind;
            }
            Content::Bytes(bytes) => {
                let chunks = bytes.chunks_exact(WORD);
                let last = chunks.remainder();

                for chunk in chunks {
                    let (is, behind) = take(rest);

                    differ |= is ^ u64::from_ne_bytes(chunk.try_into().unwrap_or_default());
                    rest = behind;
                }
                if !last.is_empty() {
                    let (is, behind) = take(rest);

                    differ |= is ^ short(last);
                    rest = behind;
                }
            }
            Content::Frames(frames) => {
                for &frame in frames {
                    let (is, behind) = take(rest);

                    differ |= is ^ frame;
                    rest = behind;
                }
            }
        }
        (differ, rest)
    }

    #[inline(always)]
    fn each(&self, found: &mut impl FnMut(usize, u64)) {
        let mut at = self.at;

        match self.content {
            Content::Number(word) => found(at, word),
            Content::Bytes(bytes) => {
                let chunks = bytes.chunks_exact(WORD);
                let rest = chunks.remainder();

                for chunk in chunks {
                    found(at, u64::from_ne_bytes(chunk.try_into().unwrap_or_default()));
                    // OVERFLOW: below the words of a key.
                    at = at.wrapping_add(1);
                }
                if !rest.is_empty() {
                    found(at, short(rest));
                }
            }
            Content::Frames(frames) => {
                for &frame in frames {
                    found(at, frame);
                    // OVERFLOW: as above.
                    at = at.wrapping_add(1);
                }
            }
        }
    }
}

impl Program {
    /// Whether the kernel stack of the hit is all that there is to the key.
    pub fn key_is_stack(&self) -> bool {
        matches!(self.keys(), [key] if matches!(key.field.op, Op::Stacktrace))
    }

    /// Computes the key of the hit, as [`Program::key`] does, and hands it on in pieces.
    #[inline(always)]
    pub fn key_in_pieces<R>(
        &self,
        record: &[u8],
        env: &impl Env,
        found: impl FnOnce(&KeyPieces<'_>) -> R,
    ) -> R {
        let mut comm = [0; COMM_LEN];
        let is_stack = |op| matches!(op, Op::Stacktrace);

        if self.keys().iter().any(|key| is_stack(key.field.op)) {
            env.stacktrace(|frames| found(&self.pieces(record, env, &mut comm, frames)))
        } else {
            found(&self.pieces(record, env, &mut comm, &[]))
        }
    }

    #[inline(always)]
    fn pieces<'r>(
        &self,
        record: &'r [u8],
        env: &impl Env,
        comm: &'r mut [u8; COMM_LEN],
        frames: &'r [u64],
    ) -> KeyPieces<'r> {
        let mut pieces = [Piece {
            at: 0,
            content: Content::Frames(&[]),
        }; KEYS_MAX];

        if self
            .keys()
            .iter()
            .any(|key| matches!(key.field.op, Op::Comm))
        {
            env.comm(comm);
        }
        let comm: &'r [u8; COMM_LEN] = comm;

        for ((key, number), piece) in self
            .keys()
            .iter()
            .zip(self.plan.keys.places())
            .zip(&mut pieces)
        {
            let room = key.words();

            piece.at = key.first_word();
            piece.content = match key.field.op {
                Op::Comm => Content::Bytes(name(comm)),
                Op::StaticString { .. } | Op::DynString { .. } | Op::RelDynString { .. } => {
                    let bytes = string_in(&key.field, record);

                    Content::Bytes(bytes.get(..most_in(room)).unwrap_or(bytes))
                }
                Op::Stacktrace => Content::Frames(frames.get(..room).unwrap_or(frames)),
                Op::StackField { offset } => {
                    Content::Bytes(stack_at(record, location(record, offset).0, room))
                }
                Op::One
                | Op::Num { .. }
                | Op::Timestamp
                | Op::Cpu
                | Op::EntryComm
                | Op::Const(_)
                | Op::Ref(_)
                // A key reads no variable of another trigger.
                | Op::Expr(_) => Content::Number(self.number_at(number, record, env, &[])),
            };
        }
        KeyPieces {
            pieces,
            len: self.keys().len(),
        }
    }
}

/// The bytes of a task's name, up to the NUL.
#[inline]
fn name(comm: &[u8; COMM_LEN]) -> &[u8] {
    let len = comm.iter().take_while(|&&byte| byte != 0).count();

    comm.get(..len).unwrap_or(comm)
}

/// The frames of the stack at `at` of a record, as many as there is room for and as are inside.
///
/// PARITY: `event_hist_trigger()` takes the count of the record for granted.
#[inline]
pub(super) fn stack_at(record: &[u8], at: usize, room: usize) -> &[u8] {
    let count = u64::from_ne_bytes(array_at(record, at));
    let frames = record
        .get(at..)
        .and_then(|from| from.get(WORD..))
        .unwrap_or(&[]);
    let whole = frames.len() / WORD;
    let count = usize::try_from(count)
        .unwrap_or(usize::MAX)
        .min(room)
        .min(whole);

    frames.get(..count.saturating_mul(WORD)).unwrap_or(&[])
}
