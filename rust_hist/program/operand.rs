// SPDX-License-Identifier: GPL-2.0

//! Numbers as a hit computes them: operands, and for expressions steps that each contain their operand.
//!
//! C counterpart: the functions of `enum hist_field_fn` of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//!
//! A [`Field`] has all facts about a column; a hit needs few of them. When the trigger is created each number becomes
//! an [`Operand`], which fixes its place, size and sign, and the operation applied to it, including the reciprocal of
//! the width by which it is divided.
//!
//! Context: constructors process; the rest any, NMI included. Never panics, and calls nothing.

use core::num::NonZeroU64;

use crate::{
    bucket::{
        ceil_log2,
        part_of,
        Buckets,
        Scale, //
    }, //
};

use super::{
    bytes::{
        text_word,
        u64_at, //
    },
    reciprocal::Reciprocal,
    Code,
    Field,
    Insn,
    Op, //
};

/// A number: its source and the operation applied to it. Fields that neither needs have their default values.
///
/// # Invariants
///
/// `is_changed` says whether `post` is not [`PostOp::None`]; `is_word` says whether `post` is that and `source` is
/// [`Source::Word`]. So one test recognises the most frequent operand, and one those without an operation.
// The size is 48 bytes: three times 16 takes fewer instructions to multiply an index by than 40 bytes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(16))]
pub(super) struct Operand {
    is_word: bool,
    is_changed: bool,
    pub(super) source: Source,
    /// Source of the first number of an expression; [`Source::Saved`] if the steps load it themselves.
    pub(super) first: Source,
    post: PostOp,
    /// How far the eight bytes are shifted to the right, which leaves a number of fewer bytes.
    right: u8,
    /// The offset in the record, or the index of a reference; for an expression, of its first number.
    at: u32,
    /// The shift of the divisor's reciprocal.
    shift: u8,
    /// The place of the expression's steps.
    pub(super) code: Code,
    /// The bit for the sign of a signed number of fewer than eight bytes; else 0.
    sign: u64,
    /// The magic number of the divisor's reciprocal; for a [`PostOp::Log2`] [`POWERS`],
    /// or how much coarser than the finest scale its buckets are, with [`SIGNED`] for a signed number.
    magic: u64,
    /// The factor by which the number is multiplied.
    factor: u64,
    /// The number to add after the multiplication; the constant itself, or the constant that an expression begins with;
    /// the index of the reference that [`PostOp::SubRef`] subtracts.
    add: u64,
}

// The bits of [`Source::Word`] and [`Source::Bytes`]. Tests of them stay apart from the comparisons of a `match`.
const WORD: u8 = 1 << 7;
const BYTES: u8 = 1 << 6;

/// The source of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Source {
    /// The eight bytes of the record at [`Operand::at`]: a number, or a part of a string.
    Word = WORD,
    /// The last ones of the eight bytes at [`Operand::at`].
    Bytes = BYTES,
    /// The first ones of the eight bytes at [`Operand::at`], where the record has fewer than eight up to their end:
    /// those of `common_type`, `common_flags` and `common_preempt_count`.
    Early = 0,
    Const,
    Cpu,
    Timestamp,
    Ref,
    /// The number that [`StepOp::Save`] has saved.
    Saved,
    /// An expression of simple numbers that have no parts, without [`StepOp::Save`] and without
    /// [rare](StepOp::is_rare) steps.
    Steps,
    /// Any expression that `Steps` does not cover.
    AnySteps,
}

/// The operation applied to a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PostOp {
    None,
    /// Multiplies by `factor` and adds `add`: sums, differences and products with constants become this.
    Linear,
    /// Divides by a constant and multiplies by `factor`: with the same constant, it rounds down to a multiple of it.
    Multiple,
    /// Takes the exponent of the smallest power of two that is not below the number; or the bucket of `.log2=N`, if
    /// `magic` has its scale.
    Log2,
    /// Subtracts a reference.
    SubRef,
}

/// An operation that [`Operand::then`] adds to a number.
#[derive(Clone, Copy)]
enum Then {
    /// Multiplies by the first one, and adds the second one.
    Linear(u64, u64),
    Divide(u64),
    /// Subtracts the number of the reference with this index.
    LessRef(u32),
}

/// The factor that negates a number.
const MINUS: u64 = u64::MAX;

// Flags beside the scale of a [`PostOp::Log2`]: a bit that does not change a shift, and a value for "no scale".
const SIGNED: u64 = 1 << 8;
const POWERS: u64 = 1 << 9;

impl Default for Operand {
    fn default() -> Self {
        // INVARIANT: a constant without an operation.
        Self {
            is_word: false,
            is_changed: false,
            source: Source::Const,
            first: Source::Saved,
            post: PostOp::None,
            right: 0,
            at: 0,
            shift: 0,
            code: Code::default(),
            sign: 0,
            magic: 0,
            factor: 1,
            add: 0,
        }
    }
}

/// One step of an expression, which changes the accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) op: StepOp,
    pub(super) operand: Operand,
}

/// The operation of a step on the accumulator and the step's operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepOp {
    /// Loads the operand, where [`Operand::first`] cannot express it. Only the first step of an expression may be this
    /// one.
    Load,
    /// Saves the accumulator, and loads the operand.
    Save,
    Add,
    Sub,
    Mul,
    Div,
    /// Sets the accumulator to the operand minus the accumulator.
    SubFrom,
    /// Sets the accumulator to the operand divided by the accumulator.
    DivInto,
    /// Sets the accumulator to the largest multiple of the operand that is not above it, for signed numbers.
    SignedMultiple,
}

impl Operand {
    /// Lowers a field that is not an expression. A field that is no number would become 0, but callers pass none.
    pub(super) fn of_field(field: &Field) -> Self {
        let operand = match field.op {
            // PARITY: `create_hist_field()` ignores `.log2` and `.buckets` of a hitcount, and
            // `hist_field_name()` then finds no name for it.
            Op::One => Self::constant(1),
            Op::Num {
                offset,
                size,
                signed,
            } => Self::of_bytes(offset, size.into(), signed),
            Op::Timestamp => Self::of_source(Source::Timestamp, 0),
            Op::Cpu => Self::of_source(Source::Cpu, 0),
            Op::Const(value) => Self::constant(value),
            Op::Ref(n) => Self::of_source(Source::Ref, n.into()),
            // The program refers to numbers of the hit by their index among the references, so these never get here.
            Op::Own(_)
            | Op::Task(_)
            | Op::Expr(_)
            | Op::Comm
            | Op::EntryComm
            | Op::StaticString { .. }
            | Op::DynString { .. }
            | Op::RelDynString { .. }
            | Op::Stacktrace
            | Op::StackField { .. } => Self::default(),
        };

        match (field.buckets(), operand.as_constant()) {
            (Some(Buckets::Log2(scale)), Some(value)) => {
                Self::constant(scale.word(value, field.signed))
            }
            (Some(Buckets::Log2(Scale::POWERS)), None) => Self {
                magic: POWERS,
                ..operand.with(PostOp::Log2)
            },
            (Some(Buckets::Log2(scale)), None) => operand.in_parts(scale, field.signed),
            (Some(Buckets::SignedPowers), _) => operand.in_parts(Scale::POWERS, true),
            (Some(Buckets::Width(width)), _) => operand
                .then(Then::Divide(width.get()))
                .and_then(|number| number.then(Then::Linear(width.get(), 0)))
                .unwrap_or(operand),
            // The caller adds a step for signed buckets.
            (Some(Buckets::SignedWidth(_)) | None, _) => operand,
        }
    }

    /// Returns the operand for a number or a part of a string: the bytes from `offset` on, of which there are one to
    /// eight.
    fn of_bytes(offset: u32, len: u32, is_signed: bool) -> Self {
        // OVERFLOW: there are at most eight bytes.
        let missing = 8u32.wrapping_sub(len);
        let (source, at) = match offset.checked_sub(missing) {
            Some(at) if missing == 0 => (Source::Word, at),
            Some(at) => (Source::Bytes, at),
            None => (Source::Early, offset),
        };
        // CAST: at most 56.
        let right = missing.wrapping_mul(8) as u8;

        // INVARIANT: there is no operation.
        Self {
            is_word: source == Source::Word,
            right,
            sign: match is_signed && missing != 0 {
                true => (1 << 63) >> right,
                false => 0,
            },
            ..Self::of_source(source, at)
        }
    }

    /// Returns this number with the bucket of `.log2=N` as its operation, for signed buckets if `signed`.
    fn in_parts(self, scale: Scale, signed: bool) -> Self {
        Self {
            magic: u64::from(scale.coarser()) | if signed { SIGNED } else { 0 },
            ..self.with(PostOp::Log2)
        }
    }

    pub(super) fn constant(value: u64) -> Self {
        Self {
            add: value,
            ..Self::default()
        }
    }

    /// Returns the value if this number is a constant.
    fn as_constant(&self) -> Option<u64> {
        (self.source == Source::Const).then_some(self.add)
    }

    fn of_source(source: Source, at: u32) -> Self {
        Self {
            source,
            at,
            ..Self::default()
        }
    }

    /// Lowers an expression that needs no steps: a number with at most operations by constants, or minus a reference;
    /// returns `None` for any other expression.
    pub(super) fn of_leaf(code: &[Insn]) -> Option<Self> {
        let (insn, operands) = code.split_last()?;
        let op = match insn {
            Insn::Push(field) => return Some(Self::of_field(field)),
            Insn::Neg => return Self::of_leaf(operands)?.then(StepOp::SubFrom.by(0)?),
            insn => StepOp::of(insn)?,
        };
        let (left, right) = halves(operands);
        let (left, right) = (Self::of_leaf(left)?, Self::of_leaf(right)?);
        let is_plain_ref = right.source == Source::Ref && right.post == PostOp::None;

        match (left.as_constant(), right.as_constant()) {
            (_, Some(constant)) => left.then(op.by(constant)?),
            (Some(constant), None) => right.then(op.swapped().by(constant)?),
            // Most expressions of references subtract one from a number.
            (None, None) if op == StepOp::Sub && is_plain_ref => left.then(Then::LessRef(right.at)),
            (None, None) => None,
        }
    }

    /// Returns this number with the operation `post` in place of its own.
    fn with(self, post: PostOp) -> Self {
        let is_changed = post != PostOp::None;

        // INVARIANT: a number that stays without an operation keeps its `is_word`.
        Self {
            is_word: self.is_word && !is_changed,
            is_changed,
            post,
            ..self
        }
    }

    /// Returns this number with one more operation; `None` if an operand cannot express both operations.
    fn then(self, then: Then) -> Option<Self> {
        let constant = self.as_constant();

        Some(match (then, self.post) {
            (Then::Linear(1, 0), _) => self,
            // `add` holds the constant already, so the operation stays a step.
            _ if self.first == Source::Const => return None,
            (Then::Linear(factor, add), post) => {
                let add = self.add.wrapping_mul(factor).wrapping_add(add);
                let factor = self.factor.wrapping_mul(factor);
                let post = match post {
                    PostOp::None if constant.is_some() => post,
                    PostOp::None | PostOp::Linear => PostOp::Linear,
                    PostOp::Multiple if add == 0 => post,
                    _ => return None,
                };

                Self {
                    factor,
                    add,
                    ..self.with(post)
                }
            }
            (Then::Divide(width), PostOp::None) => match constant {
                // A division by 0 stays a step, which gives all ones.
                Some(value) => Self::constant(value.checked_div(width)?),
                None => match Reciprocal::new(NonZeroU64::new(width)?) {
                    Some(Reciprocal { magic, shift }) => Self {
                        magic,
                        shift,
                        ..self.with(PostOp::Multiple)
                    },
                    None => self,
                },
            },
            (Then::LessRef(n), PostOp::None) if constant.is_none() => Self {
                add: n.into(),
                ..self.with(PostOp::SubRef)
            },
            _ => return None,
        })
    }

    /// Returns the operand for the number that [`StepOp::Save`] has saved.
    pub(super) fn saved() -> Self {
        Self::of_source(Source::Saved, 0)
    }

    /// Returns the operand for an expression with these steps, which are at `code`.
    pub(super) fn of_steps(steps: &[Step], code: Code) -> Self {
        // A last step with a constant becomes an operation of the operand, and needs no step.
        if let [steps @ .., last] = steps {
            let then = last.operand.as_constant().and_then(|by| last.op.by(by));
            let number = then.and_then(|then| Self::of_steps(steps, code).then(then));

            if let Some(number) = number {
                return number;
            }
        }
        let are_simple = steps.iter().all(|Step { op, operand }| {
            !op.is_rare() && operand.is_simple() && !operand.has_parts()
        });
        // The operand has room for one operation, so the first number must have none of its own.
        let first = steps
            .first()
            .map(|step| step.operand)
            .filter(|first| first.post == PostOp::None);
        let is_loaded = u16::from(first.is_some());
        let first = first.unwrap_or(Self::saved());

        Self {
            is_word: false,
            source: match are_simple {
                true => Source::Steps,
                false => Source::AnySteps,
            },
            first: first.source,
            code: Code {
                start: code.start.saturating_add(is_loaded),
                // The length is at most the length of the code.
                len: u16::try_from(steps.len())
                    .map_or(code.len, |len| len.saturating_sub(is_loaded)),
            },
            ..first
        }
    }

    /// Returns word `i` of a string of `len` bytes at `offset`, in a slot of `words` words, which ends with a NUL.
    pub(super) fn of_text(offset: u32, len: u32, words: usize, i: usize) -> Self {
        let word = size_of::<u64>();
        let first = i.saturating_mul(word);
        // CAST: tracing needs 32-bit pointers at least.
        let end = words
            .saturating_mul(word)
            .saturating_sub(1)
            .min(len as usize);
        let len = end.saturating_sub(first).min(word);

        // CAST: at most eight.
        match (u32::try_from(first), len as u32) {
            (Ok(first), len @ 1..) => Self::of_bytes(offset.saturating_add(first), len, false),
            _ => Self::constant(0),
        }
    }

    /// Returns whether the number is in the record, a constant or the CPU: [`Operand::simple`] computes it.
    pub(super) fn is_simple(&self) -> bool {
        let is_elsewhere = matches!(
            self.source,
            Source::Early
                | Source::Timestamp
                | Source::Ref
                | Source::Saved
                | Source::Steps
                | Source::AnySteps
        );

        !is_elsewhere && self.post != PostOp::SubRef
    }

    /// Returns whether the number is, or is computed from, one of the references, not counting the steps of its
    /// expression.
    pub(super) fn reads_list(&self) -> bool {
        self.source == Source::Ref || self.first == Source::Ref || self.post == PostOp::SubRef
    }

    /// Returns whether the number is simple and has no operation: [`Operand::load`] computes it.
    pub(super) fn is_plain(&self) -> bool {
        self.is_simple() && self.post == PostOp::None
    }

    /// Returns whether the number becomes a bucket of `.log2=N`, which only few paths compute by themselves.
    pub(super) fn has_parts(&self) -> bool {
        self.post == PostOp::Log2 && self.magic != POWERS
    }

    /// Returns the value of a [simple](Operand::is_simple) number, or of one minus one of `refs`. A number outside of
    /// the record is 0. With `PARTS` false the number [has no parts](Operand::has_parts).
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

    /// Returns the value of a simple number before its operation.
    #[inline]
    pub(super) fn load(&self, record: &[u8], cpu: impl Fn() -> u32) -> Option<u64> {
        if self.is_word {
            // CAST: tracing needs 32-bit pointers at least.
            return Some(u64_at(record, self.at as usize));
        }
        self.load_from(self.source, record, cpu)
    }

    /// Returns the number of kind `source` at this operand's place; `None` if it is neither in the record nor known
    /// beforehand.
    #[inline]
    pub(super) fn load_from(
        &self,
        source: Source,
        record: &[u8],
        cpu: impl Fn() -> u32,
    ) -> Option<u64> {
        // CAST: tracing needs 32-bit pointers at least.
        let at = self.at as usize;

        if source as u8 & WORD != 0 {
            return Some(u64_at(record, at));
        }
        if source as u8 & BYTES != 0 {
            return Some(self.end_of(u64_at(record, at)));
        }
        match source {
            Source::Const => Some(self.add),
            Source::Cpu => Some(cpu().into()),
            _ => None,
        }
    }

    /// Returns the number that `word` ends with, extended to 64 bits.
    #[inline(always)]
    fn end_of(&self, word: u64) -> u64 {
        let number = word.wrapping_shr(self.right.into());

        // If the bit of the sign is set, this sets all bits above it.
        (number ^ self.sign).wrapping_sub(self.sign)
    }

    /// Returns the number of kind `source` at this operand's place for the kinds that [`Operand::load_from`] leaves out;
    /// `other` for a kind without a place.
    #[inline]
    pub(super) fn load_other(
        &self,
        source: Source,
        record: &[u8],
        stamp: u64,
        refs: &[u64],
        other: u64,
    ) -> u64 {
        match source {
            Source::Early => {
                // CAST: tracing needs 32-bit pointers at least.
                let rest = record.get(self.at as usize..).unwrap_or(&[]);

                match rest.len().saturating_mul(8) >= 64usize.saturating_sub(self.right.into()) {
                    true => self.end_of(text_word(rest, 0).wrapping_shl(self.right.into())),
                    false => 0,
                }
            }
            Source::Timestamp => stamp,
            Source::Ref => self.reference(refs),
            _ => other,
        }
    }

    /// Returns the reference that this operand stands for, before its operation.
    #[inline]
    pub(super) fn reference(&self, refs: &[u64]) -> u64 {
        // CAST: a small number.
        reference(refs, self.at as usize)
    }

    /// Applies the operation to a value. With `PARTS` false the operand [has no parts](Operand::has_parts).
    #[inline(always)]
    pub(super) fn finish<const PARTS: bool>(&self, value: u64, refs: &[u64]) -> u64 {
        debug_assert!(PARTS || !self.has_parts());
        // Without jump tables, the compiler would merge a test of `post` with the comparisons of the `match` below.
        if !self.is_changed {
            return value;
        }
        match self.post {
            PostOp::None | PostOp::Linear => value.wrapping_mul(self.factor).wrapping_add(self.add),
            PostOp::Multiple => {
                let Self { magic, shift, .. } = *self;

                Reciprocal { magic, shift }
                    .quotient(value)
                    .wrapping_mul(self.factor)
            }
            PostOp::Log2 if PARTS && self.magic != POWERS => {
                // CAST: a small number.
                part_of(value, self.magic as u32, self.magic & SIGNED != 0)
            }
            PostOp::Log2 => ceil_log2(value),
            // CAST: a small number.
            PostOp::SubRef => value.wrapping_sub(reference(refs, self.add as usize)),
        }
    }
}

impl StepOp {
    /// Returns the operation of an instruction, with the top of the stack as operand and the other number in the
    /// accumulator; `None` if the instruction does not combine two numbers.
    pub(super) fn of(insn: &Insn) -> Option<Self> {
        match insn {
            Insn::Add => Some(Self::Add),
            Insn::Sub => Some(Self::Sub),
            Insn::Mul => Some(Self::Mul),
            Insn::Div => Some(Self::Div),
            Insn::Push(_) | Insn::Neg => None,
        }
    }

    /// Returns the operation of this step with a constant operand; `None` if an operand cannot express it.
    fn by(self, constant: u64) -> Option<Then> {
        match self {
            Self::Add => Some(Then::Linear(1, constant)),
            Self::Sub => Some(Then::Linear(1, constant.wrapping_neg())),
            Self::SubFrom => Some(Then::Linear(MINUS, constant)),
            Self::Mul => Some(Then::Linear(constant, 0)),
            Self::Div => Some(Then::Divide(constant)),
            Self::Load | Self::Save | Self::DivInto | Self::SignedMultiple => None,
        }
    }

    /// Returns whether the step takes more registers than the others, for which all hits of a path would pay:
    /// [`Source::Steps`] excludes it.
    fn is_rare(self) -> bool {
        matches!(self, Self::DivInto | Self::SignedMultiple)
    }

    /// Returns the operation with operand and accumulator exchanged.
    pub(super) fn swapped(self) -> Self {
        match self {
            Self::Sub => Self::SubFrom,
            Self::Div => Self::DivInto,
            other => other,
        }
    }
}

/// Returns reference `n`; 0 if there is none.
#[inline]
pub(super) fn reference(refs: &[u64], n: usize) -> u64 {
    refs.get(n).copied().unwrap_or(0)
}

/// Splits `code`, which pushes two numbers, before the instructions for the second one.
pub(super) fn halves(code: &[Insn]) -> (&[Insn], &[Insn]) {
    let mut wanted = 1usize;
    let last = code.iter().rposition(|insn| {
        match insn {
            Insn::Push(_) => wanted = wanted.saturating_sub(1),
            Insn::Neg => (),
            Insn::Add | Insn::Sub | Insn::Mul | Insn::Div => wanted = wanted.saturating_add(1),
        }
        wanted == 0
    });

    code.split_at_checked(last.unwrap_or(0)).unwrap_or_default()
}
