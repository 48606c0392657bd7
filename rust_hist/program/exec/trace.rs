// SPDX-License-Identifier: GPL-2.0

//! The values of the parameters of `trace()`, read while the synthetic record is written.
//!
//! C counterpart: `update_field_vars()` and what `trace_event_raw_event_synth()` takes from
//! `var_ref_vals`, of [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//! A field, or a variable that was set from one, is read from the record; a number is computed for this hit. Other
//! strings and stacks are copied from the variables, in a bounded number of tries.
//!
//! Context: any, NMI included.

use crate::{
    limits::{
        COMM_LEN,
        STACK_DEPTH,
        STR_SLOT, //
    },
    schema::{
        FieldValues,
        Unread,
        WithValues, //
    },
    sync::store_8, //
};

use super::{
    super::{
        bytes::word_in,
        eval::NUMBERS,
        needs::EVERYTHING,
        operand::reference,
        plan::{
            ArgFrom,
            ArgStep, //
        },
        Action,
        ArgSource,
        Kind,
        Op, //
    },
    stack_at,
    text::{
        bits_before_nul,
        cell_text,
        copy,
        copy_string,
        most_in,
        until_nul,
        WORD, //
    },
    Context,
    EntryHit, //
};

/// Words of the longest string.
const STRING_WORDS: usize = STR_SLOT / WORD;

/// The parameter values of a `trace()` action in one hit.
pub(super) struct ArgVals<'h, 'c, C: Context<'c>> {
    pub(super) hit: &'h EntryHit<'h, 'c, C>,
    pub(super) action: &'h Action,
    /// How to compute each parameter.
    pub(super) steps: &'h [ArgStep],
    /// The kernel stack, once it has been unwound.
    pub(super) frames: Option<&'h [u64]>,
}

impl<'h, 'c: 'h, C: Context<'c>> ArgVals<'h, 'c, C> {
    #[inline]
    fn source(&self, at: usize) -> Option<&'h ArgSource> {
        let args = self.hit.cx.program().args_of(self.action);

        args.get(at).map(|arg| &arg.source)
    }

    /// Returns the string of parameter `at` if it is a string of the record.
    #[inline(always)]
    fn bytes(&self, at: usize) -> Option<&'h [u8]> {
        let record = self.hit.cx.record();
        let step = self.steps.get(at)?;
        let (at, len) = step.text.place(record)?;

        Some(until_nul(record, at, len))
    }

    /// Passes a string or stack to `put`, at most `room` words. Returns the number of words. `put` may get all words
    /// again, from word 0 on, if another context was writing.
    #[inline(never)]
    fn text(
        &self,
        at: usize,
        kind: Kind,
        room: usize,
        put: impl FnMut(usize, u64),
    ) -> Result<usize, Unread> {
        let hit = self.hit;
        let source = self.source(at);
        let words = match (
            source.and_then(|source| hit.cx.program().immediate_field(source)),
            source,
        ) {
            // The task's name: strings of the record were handled by `bytes`.
            (Some(field), _) if kind == Kind::String => {
                let mut comm = [0; COMM_LEN];

                if field.op == Op::Comm {
                    hit.cx.comm(&mut comm);
                }
                return Ok(copy_string(
                    until_nul(&comm, 0, COMM_LEN),
                    0,
                    most_in(room),
                    put,
                ));
            }
            (Some(field), _) => {
                let len = match field.op {
                    Op::Stacktrace => self
                        .frames
                        .map(|frames| copy(frames.iter().copied().take(room), put)),
                    Op::StackField { offset } => {
                        let frames = stack_at(hit.cx.record(), offset, room);

                        Some(copy(frames.chunks_exact(WORD).map(word_in), put))
                    }
                    _ => None,
                };

                return len.ok_or(Unread::Torn);
            }
            (None, Some(ArgSource::Own(n))) => hit.own_words(*n),
            (None, Some(ArgSource::Ref(n))) => hit.foreign_words(*n),
            (None, Some(ArgSource::Field(_)) | None) => None,
        };

        words
            .and_then(|words| cell_text(words, kind, room, put))
            .ok_or(Unread::Torn)
    }

    /// Whether a parameter is the kernel stack.
    fn has_stack(&self) -> bool {
        let mut args = self.hit.cx.program().args_of(self.action).iter();

        args.any(|arg| matches!(arg.source, ArgSource::Field(field) if field.op == Op::Stacktrace))
    }

    /// [`FieldValues::materialize`] for values with a kernel stack ([`ArgVals::has_stack`]).
    #[inline(never)]
    fn materialize_stack<N: WithValues>(&self, next: N) -> N::Out {
        let mut room = C::Stack::default();

        next.run(&ArgVals {
            frames: Some(self.hit.cx.stack(&mut room)),
            ..*self
        })
    }

    /// Passes the words of a string to `put`, up to the word with its NUL. Returns the number of bytes before the NUL.
    #[inline]
    fn string_to(&self, field: usize, mut put: impl FnMut(usize, u64)) -> Result<usize, Unread> {
        let mut seen = PassedOn::default();
        let words = self.text(field, Kind::String, STRING_WORDS, |at, word| {
            if seen.is_of_string(at, word) {
                put(at, word);
            }
        })?;

        Ok(seen.len.min(words.saturating_mul(WORD)))
    }

    /// Passes the frames of a stack to `put`, up to the first that is 0. Returns the number of frames.
    #[inline]
    fn stack_to(&self, field: usize, mut put: impl FnMut(usize, u64)) -> Result<usize, Unread> {
        let mut seen = PassedOn::default();
        let words = self.text(field, Kind::Stack, STACK_DEPTH, |at, frame| {
            if seen.is_of_stack(at, frame) {
                put(at, frame);
            }
        })?;

        Ok(seen.len.min(words))
    }
}

/// How much of a string or stack has been passed on; begins again at word 0.
#[derive(Default)]
struct PassedOn {
    /// Bytes of a string, or frames of a stack.
    len: usize,
    ended: bool,
}

impl PassedOn {
    /// Counts word `at` of a string. Whether it belongs to the string.
    #[inline]
    fn is_of_string(&mut self, at: usize, word: u64) -> bool {
        if !self.goes_on(at) {
            return false;
        }
        let bits = bits_before_nul(word);

        self.ended = bits.is_some();
        // CAST: at most 64. OVERFLOW: the length of a string in memory.
        let bytes = (bits.unwrap_or(u64::BITS) / u8::BITS) as usize;
        self.len = at.wrapping_mul(WORD).wrapping_add(bytes);
        true
    }

    /// Counts word `at` of a stack. Whether it is a frame.
    #[inline]
    fn is_of_stack(&mut self, at: usize, frame: u64) -> bool {
        if !self.goes_on(at) {
            return false;
        }
        self.ended = frame == 0;
        if !self.ended {
            // OVERFLOW: the number of a frame.
            self.len = at.wrapping_add(1);
        }
        !self.ended
    }

    /// Whether the end was not seen before word `at`.
    #[inline]
    fn goes_on(&mut self, at: usize) -> bool {
        if at == 0 {
            *self = Self::default();
        }
        !self.ended
    }
}

impl<'h, 'c: 'h, C: Context<'c>> FieldValues for ArgVals<'h, 'c, C> {
    #[inline(always)]
    fn number(&self, field: usize) -> u64 {
        let Some(step) = self.steps.get(field) else {
            return 0;
        };

        match step.from {
            ArgFrom::Own(n) => self.hit.own_number::<EVERYTHING>(n),
            ArgFrom::Ref(n) => reference(self.hit.refs, n.into()),
            ArgFrom::Record => {
                let plan = &self.hit.cx.program().plan;

                plan.number::<NUMBERS>(&step.number, self.hit.inputs())
            }
        }
    }

    #[inline]
    fn string_len(&self, field: usize) -> Result<usize, Unread> {
        if let Some(bytes) = self.bytes(field) {
            return Ok(bytes.len());
        }
        self.string_to(field, |_, _| ())
    }

    #[inline]
    fn string(&self, field: usize, to: &mut [u8]) -> Result<usize, Unread> {
        if let Some(bytes) = self.bytes(field) {
            let len = bytes.len().min(to.len());

            if let (Some(bytes), Some(to)) = (bytes.get(..len), to.get_mut(..len)) {
                to.copy_from_slice(bytes);
            }
            return Ok(len);
        }
        let len = self.string_to(
            field,
            #[inline(always)]
            |at, word| put_word(to, at, word),
        )?;

        // Longer than when it was measured: another hit has set the variable since, and a part of its string is no
        // value.
        if len > to.len() {
            return Err(Unread::Torn);
        }
        Ok(len)
    }

    #[inline]
    fn stack_len(&self, field: usize) -> Result<usize, Unread> {
        self.stack_to(field, |_, _| ())
    }

    #[inline(always)]
    fn stack(&self, field: usize, to: &mut [u8]) -> Result<usize, Unread> {
        let room = to.len() / WORD;
        let len = self.stack_to(field, |at, frame| {
            if at < room {
                put_word(to, at, frame);
            }
        })?;

        // Longer than when it was measured, as for strings. No record has more frames than `STACK_DEPTH - 1`.
        if len.min(STACK_DEPTH.saturating_sub(1)) > room {
            return Err(Unread::Torn);
        }
        Ok(len.min(room))
    }

    #[inline]
    fn stable_string(&self, field: usize) -> Option<&[u8]> {
        self.bytes(field)
    }

    #[inline]
    fn materialize<N: WithValues>(&self, next: N) -> N::Out {
        if self.has_stack() {
            self.materialize_stack(next)
        } else {
            next.run(self)
        }
    }
}

/// Writes `word` at word `at` of `to`, or as much of it as fits.
#[inline(always)]
fn put_word(to: &mut [u8], at: usize, word: u64) {
    let to = to.get_mut(at.saturating_mul(WORD)..).unwrap_or(&mut []);

    match to.first_chunk_mut() {
        Some(to) => store_8(to, word),
        None => {
            for (to, from) in to.iter_mut().zip(word.to_ne_bytes()) {
                *to = from;
            }
        }
    }
}
