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

use crate::{
    bucket::{
        ceil_log2,
        part_of,
        Buckets,
        Scale, //
    },
    sync::HAS_JUMP_TABLES, //
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
    Op, //
};

/// A number: where it comes from, and what is done with it. What does not matter there is as in the default.
///
/// # Invariants
///
/// `is_changed` says whether `post` is not [`PostOp::None`], and `is_word` whether it is, and `source` is [`Source::U64`]: one
/// test recognises the most frequent operand, and one those with which nothing is done.
// Three times sixteen bytes: an index is multiplied by that in fewer instructions than by its forty bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(16))]
pub(super) struct Operand {
    is_word: bool,
    is_changed: bool,
    pub(super) source: Source,
    /// Where the number comes from that the steps of an expression begin with: [`Source::Saved`] if they load it themselves.
    pub(super) first: Source,
    post: PostOp,
    /// The place in the record; the index of a reference. Of an expression that of its first number.
    at: u32,
    /// Of the reciprocal of what it is divided by: its shift.
    shift: u8,
    /// The steps of the expression.
    pub(super) code: Code,
    /// Of the reciprocal of what it is divided by: its magic number. The mask of a [`Source::Text`]. Of a [`PostOp::Log2`]
    /// [`POWERS`], or how much coarser than the finest one the scale is, with [`SIGNED`] for a signed number.
    magic: u64,
    /// By what it is multiplied.
    factor: u64,
    /// What is added to it then. The constant itself, or that which an expression begins with; the index of the reference
    /// of [`PostOp::SubRef`].
    add: u64,
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
    Const,
    Cpu,
    /// A word of a string of the record, some bytes of which may be masked out.
    Text,
    Timestamp,
    Ref,
    /// The number that [`StepOp::Save`] has saved.
    Saved,
    /// An expression of simple numbers that have no parts, without [`StepOp::Save`] and without
    /// [rare](StepOp::is_rare) steps.
    Steps,
    /// Any other expression.
    AnySteps,
}

/// What is done with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PostOp {
    None,
    /// Plus `add`.
    Add,
    /// Times `factor`, plus `add`: whatever sums, differences and products with constants come to.
    Linear,
    /// Divided by a constant.
    Quotient,
    /// Divided by a constant, times `factor`: the largest multiple of a width that is not above it.
    Multiple,
    /// Either where the reciprocal has 65 bits.
    LongMultiple,
    /// The exponent of the smallest power of two that is not below it; the bucket of `.log2=N`, if `magic` says which.
    Log2,
    /// Less a reference.
    SubRef,
}

/// What [`Operand::then`] does.
#[derive(Clone, Copy)]
enum Then {
    /// Multiplies by the first one, and adds the second one.
    Linear(u64, u64),
    Divide(u64),
    /// Takes the reference of this index off.
    LessRef(u32),
}

/// The factor that makes a number negative.
const MINUS: u64 = u64::MAX;

// Of the scale of a [`PostOp::Log2`]: a bit that is no matter for a shift, and what is no scale.
const SIGNED: u64 = 1 << 8;
const POWERS: u64 = 1 << 9;

impl Default for Operand {
    fn default() -> Self {
        // INVARIANT: a constant, with which nothing is done.
        Self {
            is_word: false,
            is_changed: false,
            source: Source::Const,
            first: Source::Saved,
            post: PostOp::None,
            at: 0,
            shift: 0,
            code: Code::default(),
            magic: 0,
            factor: 1,
            add: 0,
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
    /// The largest multiple of the operand that is not above the accumulator, of signed numbers.
    SignedMultiple,
}

impl Operand {
    /// Lowers a field that is not an expression. Fields that are no numbers never get here; they would become 0.
    pub(super) fn of_field(field: &Field) -> Self {
        let operand = match field.op {
            // PARITY: `create_hist_field()` ignores `.log2` and `.buckets` of a hitcount, and
            // `hist_field_name()` then finds no name for it.
            Op::One => Self::constant(1),
            Op::Num { offset, load } => {
                let source = Source::of(load);

                // INVARIANT: nothing is done with it.
                Self {
                    is_word: source == Source::U64,
                    ..Self::of_source(source, offset)
                }
            }
            Op::Timestamp => Self::of_source(Source::Timestamp, 0),
            Op::Cpu => Self::of_source(Source::Cpu, 0),
            Op::Const(value) => Self::constant(value),
            Op::Ref(n) => Self::of_source(Source::Ref, n.into()),
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
            // A step of its own follows.
            (Some(Buckets::SignedWidth(_)) | None, _) => operand,
        }
    }

    /// The bucket of this number, of a `signed` one with its sign.
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

    /// The constant that it is.
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

    /// Lowers an expression that needs no steps: a number, perhaps with something done to it by constants, or less a
    /// reference; `None` if it is none.
    pub(super) fn of_leaf(code: &[Insn]) -> Option<Self> {
        let (insn, operands) = code.split_last()?;
        let op = match insn {
            Insn::Push(field) => return Some(Self::of_field(field)),
            Insn::Neg => return Self::of_leaf(operands)?.then(StepOp::SubFrom.by(0)?),
            insn => StepOp::of(insn)?,
        };
        let (left, right) = operands.split_at_checked(start_of_last(operands))?;
        let (left, right) = (Self::of_leaf(left)?, Self::of_leaf(right)?);
        let is_plain_ref = right.source == Source::Ref && right.post == PostOp::None;

        match (left.as_constant(), right.as_constant()) {
            (_, Some(constant)) => left.then(op.by(constant)?),
            (Some(constant), None) => right.then(op.swapped().by(constant)?),
            // Most expressions of references are that.
            (None, None) if op == StepOp::Sub && is_plain_ref => left.then(Then::LessRef(right.at)),
            (None, None) => None,
        }
    }

    /// This number with `post` in place of what is done with it.
    fn with(self, post: PostOp) -> Self {
        let is_changed = post != PostOp::None;

        // INVARIANT: a number with which nothing is done stays what it is.
        Self {
            is_word: self.is_word && !is_changed,
            is_changed,
            post,
            ..self
        }
    }

    /// This number with something done to it; `None` if there is no place for that.
    fn then(self, then: Then) -> Option<Self> {
        let constant = self.as_constant();

        Some(match (then, self.post) {
            (Then::Linear(1, 0), _) => self,
            // `add` is the constant, so what follows stays a step.
            _ if self.first == Source::Const => return None,
            (Then::Linear(factor, add), post) => {
                let add = self.add.wrapping_mul(factor).wrapping_add(add);
                let factor = self.factor.wrapping_mul(factor);
                let post = match post {
                    PostOp::None if constant.is_some() => post,
                    PostOp::None | PostOp::Add | PostOp::Linear if factor == 1 => PostOp::Add,
                    PostOp::None | PostOp::Add => PostOp::Linear,
                    PostOp::Quotient | PostOp::Multiple if add == 0 => PostOp::Multiple,
                    PostOp::Linear => post,
                    PostOp::LongMultiple if add == 0 => post,
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
                    Some(reciprocal) => Self {
                        magic: reciprocal.magic,
                        shift: reciprocal.shift,
                        ..self.with(match reciprocal.is_short {
                            true => PostOp::Quotient,
                            false => PostOp::LongMultiple,
                        })
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

    /// The number that [`StepOp::Save`] has saved.
    pub(super) fn saved() -> Self {
        Self::of_source(Source::Saved, 0)
    }

    /// What the steps of an expression come to, which are at `code`.
    pub(super) fn of_steps(steps: &[Step], code: Code) -> Self {
        // Constants with which the last steps are done need no place among them.
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
        // What is done with a number has no place beside what is done with all.
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
                // No longer than the code.
                len: u16::try_from(steps.len())
                    .map_or(code.len, |len| len.saturating_sub(is_loaded)),
            },
            ..first
        }
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
        let at = u32::try_from(first).map_or(u32::MAX, |first| offset.saturating_add(first));

        Self {
            magic: u64::from_ne_bytes(mask),
            ..Self::of_source(Source::Text, at)
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
        self.post == PostOp::Log2 && self.magic != POWERS
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
        load(source, self.at, self.add, record, cpu)
    }

    /// Its value as a word of a string.
    #[inline(always)]
    pub(super) fn text(&self, record: &[u8]) -> u64 {
        text_word(record, self.at) & self.magic
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
        // Where no jump goes through a table, this test would become some of the comparisons by which the choice below is
        // made.
        let is_changed = match HAS_JUMP_TABLES {
            true => self.post != PostOp::None,
            false => self.is_changed,
        };

        if !is_changed {
            return value;
        }
        let quotient = || Reciprocal::short_quotient(self.magic, self.shift, value);

        match self.post {
            PostOp::None | PostOp::Add => value.wrapping_add(self.add),
            PostOp::Linear => value.wrapping_mul(self.factor).wrapping_add(self.add),
            PostOp::Quotient => quotient(),
            PostOp::Multiple => quotient().wrapping_mul(self.factor),
            PostOp::LongMultiple => {
                Reciprocal::long_quotient(self.magic, self.shift, value).wrapping_mul(self.factor)
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

impl Source {
    pub(super) fn of(load: Load) -> Self {
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

    /// What it does with a constant as the operand; `None` if that cannot be said without the accumulator.
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

    /// Whether it takes more registers than the others, for which all hits of a path would pay: [`Source::Steps`] are
    /// without it.
    fn is_rare(self) -> bool {
        matches!(self, Self::DivInto | Self::SignedMultiple)
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

/// The number at `at`, if it is one of the record, the CPU, or the constant.
#[inline(always)]
pub(super) fn load(
    source: Source,
    at: u32,
    constant: u64,
    record: &[u8],
    cpu: impl Fn() -> u32,
) -> Option<u64> {
    // CAST: tracing needs 32-bit pointers at least.
    let at = at as usize;

    // CAST: a signed number has the same bits.
    Some(match source {
        Source::U64 => u64_at(record, at),
        Source::U32 => u32_at(record, at).into(),
        Source::S32 => widen(u32_at(record, at) as i32),
        Source::U16 => u16_at(record, at).into(),
        Source::S16 => widen(u16_at(record, at) as i16),
        Source::U8 => u8_at(record, at).into(),
        Source::S8 => widen(u8_at(record, at) as i8),
        Source::Const => constant,
        Source::Cpu => cpu().into(),
        Source::Text
        | Source::Timestamp
        | Source::Ref
        | Source::Saved
        | Source::Steps
        | Source::AnySteps => return None,
    })
}

/// Reference `n`; 0 if there is none.
#[inline(always)]
pub(super) fn reference(refs: &[u64], n: usize) -> u64 {
    refs.get(n).copied().unwrap_or(0)
}

/// Where in `code`, which pushes two numbers, that begins which pushes the second one.
pub(super) fn start_of_last(code: &[Insn]) -> usize {
    let mut wanted = 1usize;

    for (at, insn) in code.iter().enumerate().rev() {
        match insn {
            Insn::Push(_) => wanted = wanted.saturating_sub(1),
            Insn::Neg => (),
            Insn::Add | Insn::Sub | Insn::Mul | Insn::Div => wanted = wanted.saturating_add(1),
        }
        if wanted == 0 {
            return at;
        }
    }
    0
}
