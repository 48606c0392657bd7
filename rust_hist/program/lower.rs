// SPDX-License-Identifier: GPL-2.0

//! Lowering: from the compiled trigger to the [`Plan`](super::plan::Plan) that its hits run.
//!
//! Context: process.

use crate::{
    alloc::{
        AllocError,
        Vec, //
    },
    limits::List,
    tracing_map::SHORT_KEY_WORDS, //
};

use super::{
    exec::most_in,
    operand::{
        Operand,
        Source,
        Step,
        StepOp, //
    },
    plan::{
        ArgFrom,
        ArgStep,
        TextAt,
        VarStep,
        SLOT, //
    },
    ArgSource,
    Code,
    Field,
    Insn,
    Kind,
    Op,
    Program, //
};

impl Program {
    /// Lowers keys and values.
    pub(super) fn lower(&mut self) -> Result<(), AllocError> {
        let mut keys = List::new();
        let mut vals = List::new();

        for key in 0..self.keys().len() {
            if let Some(field) = self.keys().get(key).map(|key| key.field) {
                // There are as many places as keys, and below as values.
                let _ = keys.push(self.lower_number(&field)?);
            }
        }
        for val in 0..self.vals().len() {
            if let Some(&field) = self.vals().get(val) {
                let _ = vals.push(self.lower_number(&field)?);
            }
        }

        // INVARIANT: of the plan. What has no words is a key of another form.
        self.plan.words = self.lower_words(keys.as_slice()).unwrap_or_default();
        self.plan.keys = keys;
        self.plan.has_comm_key = self.keys().iter().any(|key| key.field.op == Op::Comm);
        self.plan.vals = vals;
        Ok(())
    }

    /// The words of a short key, if each can be computed by itself: as a number, or as a part of a string that always
    /// is in one place.
    fn lower_words(&self, numbers: &[Operand]) -> Option<List<Operand, SHORT_KEY_WORDS>> {
        let mut words = List::new();

        for (key, number) in self.keys().iter().zip(numbers) {
            match (key.field.kind, key.field.op) {
                (Kind::Number, _) => words.push(*number).ok()?,
                (_, Op::StaticString { offset, len }) => {
                    for i in 0..key.words() {
                        words
                            .push(Operand::of_text(offset, len, key.words(), i))
                            .ok()?;
                    }
                }
                _ => return None,
            }
        }
        Some(words)
    }

    /// Lowers a field; what is no number comes to 0.
    pub(super) fn lower_number(&mut self, field: &Field) -> Result<Operand, AllocError> {
        match field.op {
            Op::Expr(code) => match Operand::of_two(code.of(&self.code)) {
                Some(number) => {
                    self.plan.has_stamp |= number.source == Source::Timestamp;
                    Ok(number)
                }
                None => {
                    let code = self.lower_code(code)?;

                    Ok(Operand::of_steps(self.plan.steps_of(code), code))
                }
            },
            op => {
                self.plan.has_stamp |= op == Op::Timestamp;
                Ok(Operand::of_field(field))
            }
        }
    }

    /// Lowers an expression, and returns where its steps are.
    fn lower_code(&mut self, code: Code) -> Result<Code, AllocError> {
        let start = self.plan.steps.len();
        let mut insns = code.of(&self.code).iter().peekable();

        while let Some(insn) = insns.next() {
            let step = match insn {
                Insn::Push(field) => {
                    let operand = Operand::of_field(field);
                    let fused = insns.peek().and_then(|next| StepOp::with_operand(next));

                    if fused.is_some() {
                        insns.next();
                    }
                    Step {
                        op: fused.unwrap_or(StepOp::Push),
                        operand,
                    }
                }
                Insn::Neg => Step::plain(StepOp::Neg),
                Insn::Add => Step::plain(StepOp::AddStack),
                Insn::Sub => Step::plain(StepOp::SubStack),
                Insn::Mul => Step::plain(StepOp::MulStack),
                Insn::Div => Step::plain(StepOp::DivStack),
            };

            self.plan.has_stamp |= step.operand.source == Source::Timestamp;
            self.plan.steps.push(step)?;
        }

        let place = |n: usize| u16::try_from(n).map_err(|_| AllocError);

        Ok(Code {
            start: place(start)?,
            len: place(self.plan.steps.len().saturating_sub(start))?,
        })
    }

    /// Lowers the variables, in their order.
    pub(super) fn lower_vars(&mut self) -> Result<(), AllocError> {
        let mut vars = Vec::new();

        for at in 0..self.vars.len() {
            if let Some((field, cell)) = self.vars.get(at).map(|var| (var.field, var.cell)) {
                // A variable that is set from a dynamic string always has `SLOT` words: `VarStep::slot_words` relies on it.
                let is_slot = usize::from(cell.words) == SLOT;
                let text = match field.op {
                    Op::DynString { .. } | Op::RelDynString { .. } if !is_slot => None,
                    op => Some(op),
                };
                // The first word is not content, and the last byte of the others is a NUL.
                let room = cell.words.saturating_sub(1);
                let most = u32::try_from(most_in(room.into())).map_err(|_| AllocError)?;

                vars.push(VarStep {
                    number: self.lower_number(&field)?,
                    n: u8::try_from(at).map_err(|_| AllocError)?,
                    at: cell.at,
                    kind: cell.kind,
                    text: TextAt::new(text, most),
                    room: u8::try_from(room).unwrap_or(u8::MAX),
                })?;
            }
        }
        self.plan.vars = vars;
        Ok(())
    }

    /// Lowers the parameters of all actions, in their order.
    pub(super) fn lower_actions(&mut self) -> Result<(), AllocError> {
        let mut saves = Vec::new();
        let mut args = Vec::new();

        for at in 0..self.saves.len() {
            if let Some((field, words)) = self.saves.get(at).map(|save| (save.field, save.words()))
            {
                // The last byte of its words is for a NUL.
                let most = u32::try_from(most_in(words)).map_err(|_| AllocError)?;

                saves.push(ArgStep {
                    from: ArgFrom::Record,
                    n: 0,
                    number: self.lower_number(&field)?,
                    text: TextAt::new(Some(field.op), most),
                })?;
            }
        }
        for at in 0..self.args.len() {
            if let Some(source) = self.args.get(at).map(|arg| arg.source) {
                let (from, n, number) = match source {
                    ArgSource::Field(field) => (ArgFrom::Record, 0, self.lower_number(&field)?),
                    // Variables are numbers of the hit already.
                    ArgSource::Ref(n) => (ArgFrom::Ref, n, Operand::default()),
                    ArgSource::Own(n) => (ArgFrom::Own, n, Operand::default()),
                };

                // The last byte of its field is for a NUL, and so is that of the longest variable.
                let text = match self.immediate_field(&source).map(|field| field.op) {
                    Some(Op::StaticString { offset, len }) => Some(Op::StaticString {
                        offset,
                        len: len.saturating_sub(1),
                    }),
                    op => op,
                };
                let text = TextAt::new(text, u8::MAX.into());

                args.push(ArgStep {
                    from,
                    n,
                    number,
                    text,
                })?;
            }
        }
        self.plan.saves = saves;
        self.plan.args = args;
        Ok(())
    }

    /// The field of a parameter that is a string or stack and needs no look at an entry: of a variable of the trigger
    /// it takes what this very hit has stored, whoever has written to the entry since.
    #[inline]
    pub(super) fn immediate_field<'p>(&'p self, source: &'p ArgSource) -> Option<&'p Field> {
        let field = match source {
            ArgSource::Field(field) => return Some(field),
            ArgSource::Own(n) => self.vars.get(usize::from(*n))?.field(),
            ArgSource::Ref(_) => return None,
        };

        matches!(
            field.op,
            Op::Comm
                | Op::StaticString { .. }
                | Op::DynString { .. }
                | Op::RelDynString { .. }
                | Op::StackField { .. }
        )
        .then_some(field)
    }
}
