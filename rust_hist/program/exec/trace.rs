// SPDX-License-Identifier: GPL-2.0

//! The values of the parameters of a `trace()`, read while its record is written.
//!
//! C counterpart: `update_field_vars()` and what `trace_event_raw_event_synth()` takes from
//! `var_ref_vals`, of [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//! A field is read from the record at hand, and so is what a variable of the trigger has from there; a
//! number is that of this very hit. Other strings and stacks are copied from where they are kept, in a
//! bounded number of tries.
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
        eval::NUMBERS,
        needs::EVERYTHING,
        operand::reference,
        plan::{
            ArgFrom,
            ArgStep, //
        },
        Action,
        Arg,
        ArgSource,
        Kind,
        Op, //
    },
    text::{
        bits_before_nul,
        cell_text,
        copy,
        copy_stack,
        copy_string,
        most_in,
        until_nul,
        WORD, //
    },
    Context,
    Hit, //
};

/// Words of the longest string.
const STRING_WORDS: usize = STR_SLOT / WORD;

/// The values of one action in one hit.
pub(super) struct ArgVals<'h, 'c, C: Context<'c>> {
    pub(super) hit: &'h Hit<'h, 'c, C>,
    pub(super) action: &'h Action,
    /// What is to be done for each of its parameters.
    pub(super) steps: &'h [ArgStep],
    /// The kernel stack, once it was unwound.
    pub(super) frames: Option<&'h [u64]>,
}

impl<'h, 'c: 'h, C: Context<'c>> ArgVals<'h, 'c, C> {
    fn source(&self, at: usize) -> Option<&'h ArgSource> {
        let args = self.hit.cx.program().args_of(self.action);

        args.get(at).map(Arg::source)
    }

    /// The string of a parameter that stands in the record.
    #[inline(always)]
    fn bytes(&self, at: usize) -> Option<&'h [u8]> {
        let record = self.hit.cx.record();
        let step = self.steps.get(at)?;
        let (at, len) = step.text.place(record)?;

        Some(until_nul(record, at, len))
    }

    /// Hands a string or stack on, word by word, `room` words at most, and returns how many there were;
    /// `put` may be given them all again, from word 0.
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
            // The name of the task: strings of the record have not come here.
            (Some(field), _) if kind == Kind::String => {
                let mut comm = [0; COMM_LEN];

                if field.op() == Op::Comm {
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
                let len = match field.op() {
                    Op::Stacktrace => self.frames.map(|frames| copy(frames, room, put)),
                    Op::StackField { offset } => {
                        Some(copy_stack(hit.cx.record(), offset, room, put))
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

    /// Whether a parameter is the stack at hand.
    fn has_stack(&self) -> bool {
        let args = self.hit.cx.program().args_of(self.action).iter();

        args.map(Arg::source)
            .any(|source| matches!(source, ArgSource::Field(field) if field.op() == Op::Stacktrace))
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

    /// Hands the words of a string on, up to that with its NUL, and returns how many bytes are before that.
    #[inline]
    fn string_to(&self, field: usize, mut put: impl FnMut(usize, u64)) -> Result<usize, Unread> {
        let mut seen = Seen::default();
        let words = self.text(field, Kind::String, STRING_WORDS, |at, word| {
            if seen.is_of_string(at, word) {
                put(at, word);
            }
        })?;

        Ok(seen.len.min(words.saturating_mul(WORD)))
    }

    /// Hands the frames of a stack on, up to the first that is 0, and returns how many they are.
    #[inline]
    fn stack_to(&self, field: usize, mut put: impl FnMut(usize, u64)) -> Result<usize, Unread> {
        let mut seen = Seen::default();
        let words = self.text(field, Kind::Stack, STACK_DEPTH, |at, frame| {
            if seen.is_of_stack(at, frame) {
                put(at, frame);
            }
        })?;

        Ok(seen.len.min(words))
    }
}

/// How much of a string or stack has gone by, which may begin again.
#[derive(Default)]
struct Seen {
    /// The bytes of a string, or the frames of a stack.
    len: usize,
    ended: bool,
}

impl Seen {
    /// Whether there is something of the string in its word `at`.
    #[inline(always)]
    fn is_of_string(&mut self, at: usize, word: u64) -> bool {
        if !self.goes_on(at) {
            return false;
        }
        let bits = bits_before_nul(word);

        self.ended = bits.is_some();
        // CAST: at most 64. OVERFLOW: the bytes of a string that is somewhere.
        let bytes = (bits.unwrap_or(u64::BITS) / u8::BITS) as usize;
        self.len = at.wrapping_mul(WORD).wrapping_add(bytes);
        true
    }

    /// Whether word `at` of a stack is a frame.
    #[inline(always)]
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

    /// Whether the end has not been seen before word `at`.
    #[inline(always)]
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
            ArgFrom::Own => self.hit.own_number::<EVERYTHING>(step.n),
            ArgFrom::Ref => reference(self.hit.refs, step.n.into()),
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
        let len = self.string_to(field, |at, word| put_word(to, at, word))?;

        // Longer than it was measured: another hit has set the variable since, and a part of its string is
        // none.
        if len > to.len() {
            return Err(Unread::Torn);
        }
        Ok(len)
    }

    fn stack_len(&self, field: usize) -> Result<usize, Unread> {
        self.stack_to(field, |_, _| ())
    }

    fn stack(&self, field: usize, to: &mut [u8]) -> Result<usize, Unread> {
        let room = to.len() / WORD;
        let len = self.stack_to(field, |at, frame| {
            if at < room {
                put_word(to, at, frame);
            }
        })?;

        // As for a string. No record has more frames than that.
        if len.min(STACK_DEPTH.saturating_sub(1)) > room {
            return Err(Unread::Torn);
        }
        Ok(len.min(room))
    }

    #[inline(always)]
    fn stable_string(&self, field: usize) -> Option<&[u8]> {
        self.bytes(field)
    }

    #[inline(always)]
    fn materialize<N: WithValues>(&self, next: N) -> N::Out {
        if self.has_stack() {
            self.materialize_stack(next)
        } else {
            next.run(self)
        }
    }
}

/// Writes a word at word `at`, or as much of it as fits.
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
