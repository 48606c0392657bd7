// SPDX-License-Identifier: GPL-2.0

//! Numbers as a hit computes them: an operand and, for expressions, steps that each have their operand with them.
//!
//! C counterpart: the functions of `enum hist_field_fn` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//!
//! A [`Field`] says all that is to be known of a column; a hit needs little of it. When the trigger is created each
//! number becomes an [`Operand`], in which all that can be known is decided: its place, its size and sign, and what is
//! done with it, with the reciprocal of the width by which it is divided.
//!
//! Context: constructors process; the rest any, NMI included. Never panics, and calls nothing.

use core::num::NonZeroU64;

use crate::bucket::{
    ceil_log2,
    part_of,
    Scale, //
};

use super::{
    bytes::{
        text_word,
        u16_at,
        u32_at,
        u64_at,
        u8_at,
        widen, //
    },
    reciprocal::Reciprocal,
    Code,
    Field,
    Insn,
    Load,
    Modifier,
    Op, //
};

/// A number: where it comes from, and what is done with it. What does not matter there is 0.
///
/// # Invariants
///
/// - `is_word` is set if `source` is [`Source::U64`] and `post` is [`PostOp::None`], and not else: one test recognises the
///   most frequent operand.
/// - `width` is short where `post` is [`PostOp::Multiple`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Operand {
    is_word: bool,
    pub(super) source: Source,
    /// Where the number comes from that the steps of an expression begin with: [`Source::Saved`] if they load it themselves.
    pub(super) first: Source,
    post: PostOp,
    /// The place in the record; the index of a reference. Of an expression that of its first number.
    at: u32,
    /// A constant; the mask of a [`Source::Text`]; the index of the reference of [`PostOp::SubRef`]; the scale of
    /// `.log2=N`, see [`Operand::scale_of`].
    value: u64,
    width: Reciprocal,
    /// The steps of the expression.
    pub(super) code: Code,
}

/// Where a number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    // Numbers of the record.
    U64,
    U32,
    S32,
    U16,
    S16,
    U8,
    S8,
    /// A word of a string of the record, some bytes of which may be masked out.
    Text,
    Const,
    Cpu,
    Timestamp,
    Ref,
    /// The number that [`StepOp::Save`] has saved.
    Saved,
    /// An expression of simple numbers that have no parts, without [`StepOp::Save`] and [`StepOp::DivInto`].
    Steps,
    /// Any other expression.
    AnySteps,
}

/// What is done with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PostOp {
    None,
    /// The exponent of the smallest power of two that is not below it; the bucket of `.log2=N`, if `value` says which.
    Log2,
    /// The largest multiple of a width that is not above it.
    Multiple,
    /// The largest multiple of a width that is not above it, where the reciprocal of the width has 65 bits.
    MultipleLong,
    /// Less a reference, of which `value` is the index.
    SubRef,
    // With a constant: `number + value`, `number - value`, `value - number`, `number * value`, `number / width`.
    AddImm,
    SubImm,
    RsubImm,
    MulImm,
    DivImm,
}

// Of [`Operand::scale_of`]: a bit that is no matter for a shift, and what is no scale.
const SIGNED: u64 = 1 << 8;
const POWERS: u64 = 1 << 9;

impl Default for Operand {
    fn default() -> Self {
        // INVARIANT: a constant, with which nothing is done.
        Self {
            is_word: false,
            source: Source::Const,
            first: Source::Saved,
            post: PostOp::None,
            at: 0,
            value: 0,
            width: Reciprocal::NONE,
            code: Code::default(),
        }
    }
}

/// One step of an expression. It changes the accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) op: StepOp,
    pub(super) operand: Operand,
}

/// What a step does with the accumulator and its operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepOp {
    /// Loads the operand, which the first number of an expression cannot say. The first step may be one, and no other.
    Load,
    /// Saves the accumulator, and loads the operand.
    Save,
    Add,
    Sub,
    Mul,
    Div,
    /// The operand minus the accumulator.
    SubFrom,
    /// The operand divided by the accumulator.
    DivInto,
}

impl Operand {
    /// Lowers a field that is not an expression. Fields that are no numbers never get here; they would become 0.
    pub(super) fn of_field(field: &Field) -> Self {
        let mut operand = Self::default();

        operand.source = match field.op {
            // PARITY: `create_hist_field()` ignores `.log2` and `.buckets` of a hitcount, and
            // `hist_field_name()` then finds no name for it.
            Op::One => {
                operand.value = 1;
                Source::Const
            }
            Op::Num { offset, load } => {
                operand.at = offset;
                Source::of(load)
            }
            Op::Timestamp => Source::Timestamp,
            Op::Cpu => Source::Cpu,
            Op::Const(value) => {
                operand.value = value;
                Source::Const
            }
            Op::Ref(n) => {
                operand.at = n.into();
                Source::Ref
            }
            // The program names numbers of the hit by their place among the references.
            Op::Own(_)
            | Op::Task(_)
            | Op::Expr(_)
            | Op::Comm
            | Op::EntryComm
            | Op::StaticString { .. }
            | Op::DynString { .. }
            | Op::RelDynString { .. }
            | Op::Stacktrace
            | Op::StackField { .. } => Source::Const,
        };

        // INVARIANT: a width with a short reciprocal has `Multiple`.
        operand.post = match field.modifier {
            Modifier::Log2(scale) if operand.source == Source::Const => {
                operand.value = scale.word(operand.value, field.signed);
                PostOp::None
            }
            Modifier::Log2(scale) => {
                operand.value = Self::scale_of(field, scale);
                PostOp::Log2
            }
            Modifier::Buckets(width) => match Reciprocal::new(width) {
                Some(width) => {
                    operand.width = width;
                    if width.is_short() {
                        PostOp::Multiple
                    } else {
                        PostOp::MultipleLong
                    }
                }
                None => PostOp::None,
            },
            _ => PostOp::None,
        };
        operand.is_word = operand.source == Source::U64 && operand.post == PostOp::None;
        operand
    }

    /// Lowers an expression that needs no steps: a number, perhaps with something done to it by a constant.
    pub(super) fn of_leaf(code: &[Insn]) -> Option<Self> {
        match code {
            [Insn::Push(field)] => Some(Self::of_field(field)),
            code => Self::of_two(code),
        }
    }

    /// Lowers an expression of a number and a constant, or the negative of a number; `None` if it is neither.
    fn of_two(code: &[Insn]) -> Option<Self> {
        let (left, right, insn) = match code {
            [Insn::Push(left), Insn::Push(right), insn] => (*left, *right, insn),
            // As 0 less the number.
            [Insn::Push(right), Insn::Neg] => {
                let zero = Field {
                    op: Op::Const(0),
                    ..Field::default()
                };
                (zero, *right, &Insn::Sub)
            }
            _ => return None,
        };
        let (number, value, post) = match (left.op, right.op, insn) {
            (_, Op::Const(value), Insn::Add) => (left, value, PostOp::AddImm),
            (Op::Const(value), _, Insn::Add) => (right, value, PostOp::AddImm),
            (_, Op::Const(value), Insn::Sub) => (left, value, PostOp::SubImm),
            (Op::Const(value), _, Insn::Sub) => (right, value, PostOp::RsubImm),
            (_, Op::Const(value), Insn::Mul) => (left, value, PostOp::MulImm),
            (Op::Const(value), _, Insn::Mul) => (right, value, PostOp::MulImm),
            (_, Op::Const(value), Insn::Div) => (left, value, PostOp::DivImm),
            _ => return None,
        };
        let operand = Self::of_field(&number);

        // A constant has no place for another value.
        if operand.source == Source::Const {
            return None;
        }
        operand.with(post, value)
    }

    /// This number with something done to it; `None` if there is no place for that.
    fn with(self, post: PostOp, value: u64) -> Option<Self> {
        if self.post != PostOp::None {
            return None;
        }
        Some(match post {
            // A division by the constant 0 has no reciprocal. It stays a step, which gives all ones.
            PostOp::DivImm => match Reciprocal::new(NonZeroU64::new(value)?) {
                // INVARIANT: something is done with it, here and below.
                Some(width) => Self {
                    is_word: false,
                    post,
                    width,
                    ..self
                },
                None => self,
            },
            _ => Self {
                is_word: false,
                post,
                value,
                ..self
            },
        })
    }

    /// The number that [`StepOp::Save`] has saved.
    pub(super) fn saved() -> Self {
        // INVARIANT: it is no word of the record.
        Self {
            source: Source::Saved,
            ..Self::default()
        }
    }

    /// What the steps of an expression come to, which are at `code`.
    pub(super) fn of_steps(steps: &[Step], code: Code) -> Self {
        let expression = |steps: &[Step]| {
            let are_simple = steps.iter().all(|Step { op, operand }| {
                *op != StepOp::DivInto && operand.is_simple() && !operand.has_parts()
            });
            // A constant has no place beside the number that the last step may have, and neither has what is done with it.
            let first = steps
                .first()
                .map(|step| step.operand)
                .filter(|first| first.post == PostOp::None && first.source != Source::Const);
            let is_loaded = u16::from(first.is_some());

            Self {
                source: match are_simple {
                    true => Source::Steps,
                    false => Source::AnySteps,
                },
                first: first.map_or(Source::Saved, |first| first.source),
                at: first.map_or(0, |first| first.at),
                code: Code {
                    start: code.start.saturating_add(is_loaded),
                    // No longer than the code.
                    len: u16::try_from(steps.len())
                        .map_or(code.len, |len| len.saturating_sub(is_loaded)),
                },
                ..Self::default()
            }
        };

        // A number less a reference: most expressions of references are that.
        if let [first, last] = steps {
            let (first, last_operand) = (first.operand, last.operand);
            let is_difference = last.op == StepOp::Sub
                && last_operand.source == Source::Ref
                && last_operand.post == PostOp::None
                && first.source != Source::Const;

            if let Some(operand) = is_difference
                .then(|| first.with(PostOp::SubRef, last_operand.at.into()))
                .flatten()
            {
                return operand;
            }
        }
        // A constant with which the last step is done needs no place among them.
        if let [steps @ .., last] = steps {
            let operand = last
                .as_post_op()
                .and_then(|(post, value)| expression(steps).with(post, value));

            if let Some(operand) = operand {
                return operand;
            }
        }
        expression(steps)
    }

    /// Word `i` of a string of `len` bytes at `offset`, in a slot of `words` words, which ends with a NUL.
    pub(super) fn of_text(offset: u32, len: u32, words: usize, i: usize) -> Self {
        let word = size_of::<u64>();
        let first = i.saturating_mul(word);
        // CAST: tracing needs 32-bit pointers at least.
        let end = words
            .saturating_mul(word)
            .saturating_sub(1)
            .min(len as usize);
        let mut mask = [0; size_of::<u64>()];

        for byte in mask.iter_mut().take(end.saturating_sub(first)) {
            *byte = 0xff;
        }
        // INVARIANT: nothing is done with it, and it is no number of 8 bytes.
        Self {
            source: Source::Text,
            at: u32::try_from(first).map_or(u32::MAX, |first| offset.saturating_add(first)),
            value: u64::from_ne_bytes(mask),
            ..Self::default()
        }
    }

    /// Whether it is in the record or known beforehand: [`Operand::simple`] computes it.
    pub(super) fn is_simple(&self) -> bool {
        let is_elsewhere = matches!(
            self.source,
            Source::Text
                | Source::Timestamp
                | Source::Ref
                | Source::Saved
                | Source::Steps
                | Source::AnySteps
        );

        !is_elsewhere && self.post != PostOp::SubRef
    }

    /// Whether it is, or is made of, one of the references, the steps of its expression aside.
    pub(super) fn reads_list(&self) -> bool {
        self.source == Source::Ref || self.first == Source::Ref || self.post == PostOp::SubRef
    }

    /// Whether it is simple, or a word of a string, as most keys are.
    pub(super) fn is_key_number(&self) -> bool {
        self.is_simple() || self.source == Source::Text
    }

    /// Whether it is simple, and nothing is done with it: [`Operand::load`] computes it.
    pub(super) fn is_plain(&self) -> bool {
        self.is_simple() && self.post == PostOp::None
    }

    /// Whether it becomes a bucket of `.log2=N`, which only few paths do by themselves.
    pub(super) fn has_parts(&self) -> bool {
        self.post == PostOp::Log2 && self.value != POWERS
    }

    /// What the `value` of a [`PostOp::Log2`] says: [`POWERS`], or how much coarser than the finest one the scale is, with
    /// [`SIGNED`] for a signed number.
    fn scale_of(field: &Field, scale: Scale) -> u64 {
        match (scale, field.signed) {
            (Scale::POWERS, _) => POWERS,
            (_, false) => scale.coarser().into(),
            (_, true) => u64::from(scale.coarser()) | SIGNED,
        }
    }

    /// Its value, if it [is simple](Operand::is_simple), or such a number less one of `refs`. What is not in the record
    /// is 0. With `PARTS` false it [has no parts](Operand::has_parts).
    #[inline(always)]
    pub(super) fn simple<const PARTS: bool>(
        &self,
        record: &[u8],
        cpu: impl Fn() -> u32,
        refs: &[u64],
    ) -> Option<u64> {
        if self.is_word {
            return self.load(record, cpu);
        }
        Some(self.finish::<PARTS>(self.load(record, cpu)?, refs))
    }

    /// Its value before anything is done with it, if it is simple.
    #[inline(always)]
    pub(super) fn load(&self, record: &[u8], cpu: impl Fn() -> u32) -> Option<u64> {
        if self.is_word {
            // CAST: tracing needs 32-bit pointers at least.
            return Some(u64_at(record, self.at as usize));
        }
        self.load_from(self.source, record, cpu)
    }

    /// The number at its place, if that is such a number of the record or known beforehand.
    #[inline(always)]
    pub(super) fn load_from(
        &self,
        source: Source,
        record: &[u8],
        cpu: impl Fn() -> u32,
    ) -> Option<u64> {
        // CAST: tracing needs 32-bit pointers at least.
        let at = self.at as usize;

        // CAST: a signed number has the same bits.
        Some(match source {
            Source::U64 => u64_at(record, at),
            Source::U32 => u32_at(record, at).into(),
            Source::S32 => widen(u32_at(record, at) as i32),
            Source::U16 => u16_at(record, at).into(),
            Source::S16 => widen(u16_at(record, at) as i16),
            Source::U8 => u8_at(record, at).into(),
            Source::S8 => widen(u8_at(record, at) as i8),
            Source::Const => self.value,
            Source::Cpu => cpu().into(),
            Source::Text
            | Source::Timestamp
            | Source::Ref
            | Source::Saved
            | Source::Steps
            | Source::AnySteps => return None,
        })
    }

    /// Its value as a word of a string.
    #[inline(always)]
    pub(super) fn text(&self, record: &[u8]) -> u64 {
        text_word(record, self.at) & self.value
    }

    /// The reference that it is, before anything is done with it.
    #[inline(always)]
    pub(super) fn reference(&self, refs: &[u64]) -> u64 {
        // CAST: a small number.
        reference(refs, self.at as usize)
    }

    /// What becomes of a value. With `PARTS` false it [has no parts](Operand::has_parts).
    #[inline(always)]
    pub(super) fn finish<const PARTS: bool>(&self, value: u64, refs: &[u64]) -> u64 {
        debug_assert!(PARTS || !self.has_parts());
        if self.post == PostOp::None {
            return value;
        }
        match self.post {
            PostOp::Multiple => self.width.cut_shortly(value),
            PostOp::Log2 if PARTS => {
                if self.value == POWERS {
                    return ceil_log2(value);
                }
                // CAST: a small number.
                part_of(value, self.value as u32, self.value & SIGNED != 0)
            }
            PostOp::Log2 => ceil_log2(value),
            PostOp::None | PostOp::MultipleLong => self.width.cut(value),
            // CAST: a small number.
            PostOp::SubRef => value.wrapping_sub(reference(refs, self.value as usize)),
            PostOp::AddImm => value.wrapping_add(self.value),
            PostOp::SubImm => value.wrapping_sub(self.value),
            PostOp::RsubImm => self.value.wrapping_sub(value),
            PostOp::MulImm => value.wrapping_mul(self.value),
            PostOp::DivImm => self.width.quotient(value),
        }
    }
}

impl Source {
    fn of(load: Load) -> Self {
        match load {
            Load::U64 | Load::S64 => Self::U64,
            Load::U32 => Self::U32,
            Load::S32 => Self::S32,
            Load::U16 => Self::U16,
            Load::S16 => Self::S16,
            Load::U8 => Self::U8,
            Load::S8 => Self::S8,
        }
    }
}

impl Step {
    /// The operation and its constant, if the step only combines the accumulator with a constant.
    fn as_post_op(&self) -> Option<(PostOp, u64)> {
        let constant = self.operand;
        let is_constant = constant.source == Source::Const && constant.post == PostOp::None;
        let post = match self.op {
            StepOp::Add => PostOp::AddImm,
            StepOp::Sub => PostOp::SubImm,
            StepOp::SubFrom => PostOp::RsubImm,
            StepOp::Mul => PostOp::MulImm,
            StepOp::Div => PostOp::DivImm,
            StepOp::Load | StepOp::Save | StepOp::DivInto => return None,
        };

        is_constant.then_some((post, constant.value))
    }
}

impl StepOp {
    /// That of an instruction, with the number on top of the stack as the operand and the other one in the accumulator;
    /// `None` if it does not combine two.
    pub(super) fn of(insn: &Insn) -> Option<Self> {
        match insn {
            Insn::Add => Some(Self::Add),
            Insn::Sub => Some(Self::Sub),
            Insn::Mul => Some(Self::Mul),
            Insn::Div => Some(Self::Div),
            Insn::Push(_) | Insn::Neg => None,
        }
    }

    /// The same with operand and accumulator exchanged.
    pub(super) fn swapped(self) -> Self {
        match self {
            Self::Sub => Self::SubFrom,
            Self::Div => Self::DivInto,
            other => other,
        }
    }
}

/// Reference `n`; 0 if there is none.
#[inline(always)]
pub(super) fn reference(refs: &[u64], n: usize) -> u64 {
    refs.get(n).copied().unwrap_or(0)
}
