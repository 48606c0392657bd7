// SPDX-License-Identifier: GPL-2.0

//! The compiler of expressions: operators, constants, references and event fields.
//!
//! C counterpart: `parse_expr()`, `parse_unary()`, `parse_atom()`, `parse_field()`, `parse_var_ref()` and
//! `create_hist_field()` of [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c). Operands
//! are looked up from left to right, so that a text with two mistakes is refused for the same mistake as in C. Their
//! code is emitted in one pass.
//!
//! Context: process, may sleep.

use crate::{
    alloc::Vec,
    error::{
        ErrKind,
        Errno,
        Refusal, //
    },
    field::{
        FieldDesc,
        FieldKind,
        TaskNumber, //
    },
    lang::{
        expr::{
            negated,
            root,
            Operator,
            Root, //
        },
        CommandText,
        Usage, //
    },
    limits::{
        EXPR_TEXT_MAX,
        OPERATORS_MAX,
        REFS_MAX,
        STACK_DEPTH,
        STR_SLOT, //
    },
    stat::Stat,
    text::{
        lex::{
            number,
            Split, //
        },
        Span, //
    },
    tracing_map::When, //
};

use super::{
    compile::{
        Compiler,
        Own, //
    },
    hint::{
        FOR_NUMBERS,
        FOR_STACKS,
        SECONDS, //
    },
    operand::halves,
    resolver::{
        ForeignVar,
        LookupError,
        Resolver, //
    },
    Action,
    Code,
    Field,
    Handler,
    Insn,
    Key,
    Kind,
    Modifier,
    Name,
    Op,
    Program,
    Ref,
    Time, //
};

/// A field and its span in the text.
pub(super) struct Parsed {
    pub(super) field: Field,
    /// The span whose start a caret for the field points at.
    pub(super) seen: Span,
}

impl Field {
    /// Returns a constant.
    fn constant(value: u64) -> Self {
        Self {
            name: Name::Fixed(""),
            op: Op::Const(value),
            ..Self::default()
        }
    }

    /// Returns a special field, which takes precedence over a field of the event with the same name.
    pub(super) fn special(name: &[u8], modifier: Modifier) -> Option<Self> {
        let (name, op) = match name {
            b"common_timestamp" => ("common_timestamp", Op::Timestamp),
            b"common_stacktrace" => ("common_stacktrace", Op::Stacktrace),
            b"common_cpu" => ("common_cpu", Op::Cpu),
            b"common_comm" => ("common_comm", Op::Comm),
            b"hitcount" => ("hitcount", Op::One),
            _ => return None,
        };

        Some(Self::generic(Name::Fixed(name), op, modifier))
    }

    /// Returns a field whose value is not in the record.
    pub(super) fn generic(name: Name, op: Op, modifier: Modifier) -> Self {
        // CAST: `STACK_DEPTH` and `STR_SLOT` are below 2^9.
        let (kind, size, type_name) = match op {
            Op::Stacktrace => (Kind::Stack, STACK_DEPTH as u32 * 8, "unsigned long[]"),
            Op::Cpu | Op::Task(TaskNumber::Uid) => (Kind::Number, 4, "unsigned int"),
            Op::Task(TaskNumber::Tgid) => (Kind::Number, 4, "pid_t"),
            Op::Task(TaskNumber::Node) => (Kind::Number, 4, "int"),
            Op::Comm | Op::EntryComm => (Kind::String, STR_SLOT as u32, "char[]"),
            _ => (Kind::Number, 8, "u64"),
        };

        Self {
            name,
            op,
            kind,
            modifier,
            usecs: modifier == Modifier::Usecs,
            time: match op {
                Op::Timestamp if modifier.buckets().is_none() => Time::Stamp,
                _ => Time::None,
            },
            size,
            signed: matches!(op, Op::Task(TaskNumber::Tgid | TaskNumber::Node)),
            signed_buckets: false,
            type_name: Name::Fixed(type_name),
        }
    }

    /// Returns the statistic of the field's numbers that is shown, if it has `.max` or the like as its modifier.
    pub(super) fn stat(&self) -> Option<Stat> {
        match self.modifier {
            Modifier::Stat(stat) => Some(stat),
            _ => None,
        }
    }

    /// Returns whether the field's numbers are put into buckets, by `.log2` or `.buckets`.
    pub(super) fn is_bucketed(&self) -> bool {
        self.modifier.buckets().is_some()
    }
}

impl Compiler<'_, '_> {
    /// Compiles one expression.
    pub(super) fn expression(&mut self, text: Span, usage: Usage) -> Result<Parsed, Refusal> {
        if root(&self.command, text) == Root::Atom {
            return self.atom(text, usage);
        }

        let mut operators = 0;
        let start = self.program.code.len();
        let mut parsed = self.operand(text, &mut operators)?;

        match parsed.field.op {
            Op::Expr(code) => {
                let name = self.name_code(code)?;

                // PARITY: Linux 7.2 writes beyond the end of its buffer.
                if name.len() > EXPR_TEXT_MAX {
                    return Err(self
                        .command
                        .explain(Errno::E2big, ErrKind::ExprTooLong, text));
                }
                parsed.field.name = Name::Made(name);
            }
            _ => self.program.code.truncate(start),
        }
        Ok(parsed)
    }

    /// Compiles an operand or a whole expression. The code pushes one number.
    fn operand(&mut self, text: Span, operators: &mut u32) -> Result<Parsed, Refusal> {
        if *operators > OPERATORS_MAX {
            return Err(self.refuse(ErrKind::TooManySubexpr, text));
        }

        match root(&self.command, text) {
            Root::Atom => {
                let parsed = self.atom(text, Usage::Operand)?;

                self.program.code.push(Insn::Push(parsed.field))?;
                Ok(parsed)
            }
            Root::Minus => self.negation(text, operators),
            Root::Binary(operator, at) => self.binary(text, operator, at, operators),
        }
    }

    fn negation(&mut self, text: Span, operators: &mut u32) -> Result<Parsed, Refusal> {
        *operators = operators.saturating_add(1);
        if *operators > OPERATORS_MAX {
            return Err(self.refuse(ErrKind::TooManySubexpr, text));
        }

        let inner = negated(&self.command, text)?;
        let start = self.program.code.len();
        let parsed = self.operand(inner, operators)?;

        self.check_operand(&parsed)?;
        self.program.code.push(Insn::Neg)?;
        Ok(Parsed {
            field: self.computed(start, &parsed.field)?,
            seen: Span {
                start: text.start,
                end: parsed.seen.end,
            },
        })
    }

    fn binary(
        &mut self,
        text: Span,
        operator: Operator,
        at: usize,
        operators: &mut u32,
    ) -> Result<Parsed, Refusal> {
        let left = Span { end: at, ..text };
        let right = Span {
            start: at.saturating_add(1),
            ..text
        };

        *operators = operators.saturating_add(1);
        if left.is_empty() || right.is_empty() {
            let at = Span { start: at, ..text };

            return Err(self.refuse(ErrKind::MissingOperand, at));
        }

        let start = self.program.code.len();
        let left = self.operand(left, operators)?;

        self.check_operand(&left)?;

        let right = self.operand(right, operators)?;

        self.check_operand(&right)?;
        if left.field.usecs != right.field.usecs {
            let refusal = Refusal::new(Errno::Einval, ErrKind::TimestampMismatch, 0);
            let is_number = |parsed: &Parsed| self.value_of(&parsed.field).is_some();

            return Err(match is_number(&left) || is_number(&right) {
                true => refusal.detailed(&[b"a number has none, ", SECONDS]),
                false => refusal,
            });
        }

        self.consume(&left.field);
        self.consume(&right.field);

        let (a, b) = (self.value_of(&left.field), self.value_of(&right.field));

        if operator == Operator::Div && b == Some(0) {
            return Err(Refusal::new(
                Errno::Edom,
                ErrKind::DivisionByZero,
                self.command.column(right.seen),
            ));
        }

        let field = match (a, b) {
            (Some(a), Some(b)) => {
                let field = Field::constant(fold(operator, a, b));

                self.program.code.truncate(start);
                self.program.code.push(Insn::Push(field))?;
                field
            }
            _ => {
                self.program.code.push(match operator {
                    Operator::Add => Insn::Add,
                    Operator::Sub => Insn::Sub,
                    Operator::Mul => Insn::Mul,
                    Operator::Div => Insn::Div,
                })?;
                Field {
                    time: Time::of(operator, left.field.time, right.field.time),
                    ..self.computed(start, &left.field)?
                }
            }
        };

        Ok(Parsed {
            field,
            seen: left.seen,
        })
    }

    /// Refuses an operand that is not a number.
    ///
    /// PARITY: `parse_expr()` accepts stacks, and references to strings.
    fn check_operand(&self, parsed: &Parsed) -> Result<(), Refusal> {
        match parsed.field.kind {
            Kind::Number => Ok(()),
            Kind::String | Kind::Cpumask | Kind::Stack => {
                Err(self.refuse(ErrKind::InvalidStrOperand, parsed.seen))
            }
        }
    }

    /// Marks the reference `field`, if it is one, as consuming: an operand of a binary operator unsets the variable
    /// that it reads.
    fn consume(&mut self, field: &Field) {
        if let Op::Ref(index) = field.op {
            if let Some(reference) = self.program.refs.get_mut(usize::from(index)) {
                reference.consume = true;
            }
        }
    }

    /// Returns the value of a constant, or of a reference to a variable that is a constant.
    fn value_of(&self, field: &Field) -> Option<u64> {
        match field.op {
            Op::Const(value) => Some(value),
            Op::Ref(index) => self.program.refs.get(usize::from(index))?.constant,
            Op::Own(n) if field.modifier == Modifier::None => {
                match self.program.vars.get(usize::from(n))?.field.op {
                    Op::Const(value) => Some(value),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Returns the field for the value of the code from `start` on; `left` is the leftmost operand of that code.
    fn computed(&self, start: usize, left: &Field) -> Result<Field, Refusal> {
        let narrow = |n: usize| u16::try_from(n).map_err(|_| Refusal::silent(Errno::E2big));
        let len = self.program.code.len().saturating_sub(start);

        Ok(Field {
            name: Name::Fixed(""),
            op: Op::Expr(Code {
                start: narrow(start)?,
                len: narrow(len)?,
            }),
            kind: Kind::Number,
            modifier: Modifier::None,
            time: Time::None,
            signed: left.may_be_negative(),
            signed_buckets: false,
            ..*left
        })
    }

    /// Compiles an atom: a constant, a reference or a field.
    pub(super) fn atom(&mut self, text: Span, usage: Usage) -> Result<Parsed, Refusal> {
        if self.starts_with_digit(text) {
            let value =
                number(text.of(self.text)).map_err(|_| self.refuse(ErrKind::ExpectNumber, text))?;

            return Ok(Parsed {
                field: Field::constant(value),
                seen: text,
            });
        }

        let (seen, event, atom) = self.qualified(text);
        let field = match self.referred(atom) {
            None => self
                .event_field(atom, usage, seen)
                .map_err(|refusal| self.second_modifier(event, refusal))?,
            Some(name) => match self.atom_of(name, false).filter(|_| self.is_target(event)) {
                Some(plain) if self.is_plain(plain) => self.event_field(plain, usage, seen)?,
                // PARITY: C looks for a field whose name is the constant.
                Some(constant) => match self.value(event, name, usage)? {
                    Some(field) => field,
                    None => self.event_field(constant, usage, seen)?,
                },
                None => self.referenced(event, name, usage)?,
            },
        };

        Ok(Parsed { field, seen })
    }

    /// Splits `system.event.` from a text with two dots: returns the span for carets, the system and event, and the
    /// name that follows.
    ///
    /// PARITY: `parse_atom()` ignores system and event unless a variable follows.
    pub(super) fn qualified(&self, text: Span) -> (Span, Option<(Span, Span)>, Span) {
        let mut parts = Split::new(self.text, text, b'.');

        match (parts.next(), parts.next(), parts.rest()) {
            (Some(system), Some(event), Some(atom)) => (system, Some((system, event)), atom),
            _ => (text, None, text),
        }
    }

    /// Returns the span whose start a caret for `text` points at: the system of a qualified name, else the whole text.
    pub(super) fn seen(&self, text: Span) -> Span {
        match self.starts_with_digit(text) {
            true => text,
            false => self.qualified(text).0,
        }
    }

    /// Returns whether the text of `span` begins like a constant.
    pub(super) fn starts_with_digit(&self, span: Span) -> bool {
        span.of(self.text).first().is_some_and(u8::is_ascii_digit)
    }

    /// Returns the name of the variable that an atom refers to.
    pub(super) fn referred(&self, atom: Span) -> Option<Span> {
        matches!(atom.of(self.text), [b'$', _, ..]).then(|| atom.skip(1))
    }

    /// Returns the first definition of the trigger's own variable `name` as an atom: as a reference if `refers`, else as
    /// a field or a constant.
    fn atom_of(&self, name: Span, refers: bool) -> Option<Span> {
        let name = name.of(self.text);
        let defs = self.defs.iter();

        defs.filter(|def| def.name.of(self.text) == name)
            .map(|def| def.expr)
            .filter(|&expr| root(&self.command, expr) == Root::Atom)
            .find(|&expr| self.referred(expr).is_some() == refers)
    }

    /// Compiles a reference to a variable of this trigger that is no plain field, or to a variable of another trigger.
    ///
    /// PARITY: if there is no variable, C looks for a field whose name has the dollar sign.
    fn referenced(
        &mut self,
        event: Option<(Span, Span)>,
        name: Span,
        usage: Usage,
    ) -> Result<Field, Refusal> {
        let first = match self.own {
            Own::First => true,
            Own::Computed if self.atom_of(name, true).is_none() => true,
            _ => self.event.defines(name.of(self.text)),
        };

        if let (true, Some(field)) = (first, self.value(event, name, usage)?) {
            return Ok(field);
        }

        let not_found = ErrKind::VarNotFound;
        let found = self.foreign(event, None, name, not_found);

        match found.and_then(|found| Ok(found.ok_or(self.refuse(not_found, name))?.1)) {
            Err(refusal)
                if !first
                    && (refusal.is(ErrKind::VarNotFound) || refusal.is(ErrKind::VarNotUnique)) =>
            {
                self.value(event, name, usage)?.ok_or(refusal)
            }
            found => found,
        }
    }

    /// Compiles a reference to a variable of this trigger, perhaps with a modifier, as the number that the hit gives to
    /// it.
    fn value(
        &mut self,
        event: Option<(Span, Span)>,
        name: Span,
        usage: Usage,
    ) -> Result<Option<Field>, Refusal> {
        if self.own == Own::Never || !self.is_target(event) {
            return Ok(None);
        }

        let (base, suffix) = match self.program.own_var(name.of(self.text), self.text) {
            Some(_) => (name, None),
            None => self.spec.name_and_modifier(name),
        };
        let Some(n) = self.program.own_var(base.of(self.text), self.text) else {
            return Ok(None);
        };
        let var = self.program.vars.get(usize::from(n)).map(|var| var.field);
        let Some(field) = var.filter(|field| field.kind == Kind::Number) else {
            return Ok(None);
        };
        let modifier = match suffix {
            None => Modifier::None,
            Some(suffix) => match self.spec.modifier(base, suffix, usage)? {
                // These modifiers describe a field of an event, not a number.
                Modifier::Usecs | Modifier::Execname | Modifier::Stacktrace => {
                    return Err(self.refuse(ErrKind::BadFieldModifier, suffix));
                }
                modifier => modifier,
            },
        };
        let shown = match event {
            Some((system, _)) => Span {
                start: system.start,
                ..base
            },
            None => base,
        };

        Ok(Some(Field {
            name: Name::Text(shown),
            op: Op::Own(n),
            kind: Kind::Number,
            modifier,
            ..field
        }))
    }

    /// Returns the [reference](Program::refer) to the variable `name` of another trigger, which [`find_var`] looks up on
    /// `event` if that was typed, else on the event of the handler. Refuses it with `not_found` if there is none.
    pub(super) fn foreign(
        &mut self,
        event: Option<(Span, Span)>,
        handler: Option<(Span, Span)>,
        name: Span,
        not_found: ErrKind,
    ) -> Result<Option<(u8, Field)>, Refusal> {
        let (actions, event_of_var) = (&self.program.actions, event.or(handler));
        let var = match find_var(self.event, actions, self.text, event_of_var, name) {
            Ok(var) => var.ok_or(self.command.refuse(not_found, name))?,
            Err(LookupError::NotUnique) => {
                return Err(self.command.refuse(ErrKind::VarNotUnique, name));
            }
            Err(LookupError::Failed(e)) => return Err(e.into()),
        };

        self.program
            .refer(&self.command, event, Name::Text(name), &var)
    }

    /// Returns the number of the task with this name, even if the event has a field of that name.
    pub(super) fn task_number(&self, name: Span) -> Option<TaskNumber> {
        let name = name.of(self.text);
        let mut all = TaskNumber::ALL.into_iter();

        all.find(|number| number.name().as_bytes() == name && self.event.has(*number))
    }

    /// Compiles a field of the event, or a special field.
    fn event_field(&mut self, text: Span, usage: Usage, seen: Span) -> Result<Field, Refusal> {
        let (name, modifier) = self.spec.name_and_modifier(text);
        let modifier = match modifier {
            Some(modifier) => self
                .spec
                .modifier(name, modifier, usage)
                .map_err(|refusal| self.valid_modifiers(name, usage, refusal))?,
            None => Modifier::None,
        };

        if let Some(field) = Field::special(name.of(self.text), modifier) {
            if modifier == Modifier::Stacktrace {
                return Err(self.bad_modifier(text, &[FOR_STACKS]));
            }
            if field.op == Op::Timestamp {
                self.program.timestamps = true;
                self.program.usecs |= field.usecs;
            }
            return match field.kind {
                Kind::Number => Ok(field),
                _ if field.is_bucketed() => Err(self.bad_modifier(seen, &[FOR_NUMBERS])),
                _ => Ok(field),
            };
        }

        let desc = self
            .event
            .field(name.of(self.text))
            .filter(|desc| desc.size > 0 || is_generic(desc.kind));
        let Some(desc) = desc else {
            if let Some(number) = self.task_number(name) {
                let op = Op::Task(number);

                return Ok(Field::generic(Name::Fixed(number.name()), op, modifier));
            }
            return Err(self.no_field(name));
        };
        let own_stack = desc.kind == FieldKind::Stack && desc.size > 0;

        if modifier == Modifier::Stacktrace && !own_stack {
            return Err(self.bad_modifier(text, &[FOR_STACKS]));
        }

        let is_bare_key = usage == Usage::Key && modifier == Modifier::None;
        let (op, kind) = read_op(&desc)
            .filter(|&(_, kind)| kind != Kind::Cpumask || is_bare_key)
            .ok_or(
                self.command
                    .explain(Errno::Enomem, ErrKind::UnsupportedField, name),
            )?;
        let field = match op {
            Op::Stacktrace => Field::generic(Name::Fixed("common_stacktrace"), op, modifier),
            Op::Cpu | Op::Comm => Field::generic(Name::Text(name), op, modifier),
            _ => Field {
                kind,
                size: match op {
                    // CAST: `STR_SLOT` is 256.
                    Op::DynString { .. } | Op::RelDynString { .. } => STR_SLOT as u32,
                    _ => desc.size,
                },
                signed: desc.signed && kind == Kind::Number,
                type_name: Name::make(&mut self.program.made, &[desc.type_name])?,
                ..Field::generic(
                    Name::Text(name),
                    op,
                    match modifier {
                        Modifier::None if own_stack => Modifier::Stacktrace,
                        modifier => modifier,
                    },
                )
            },
        };

        // PARITY: C applies `.log2` and `.buckets` to a string's address, and a hit then copies the string from the
        // result.
        if field.is_bucketed() && field.kind != Kind::Number {
            return Err(self.bad_modifier(seen, &[FOR_NUMBERS]));
        }
        Ok(field)
    }
}

/// Looks up the variable `name` of another trigger: on `event` if given, else on the event of a handler that defines
/// the variable, else on any event of the instance.
fn find_var<'r>(
    resolver: &'r mut dyn Resolver,
    actions: &[Action],
    text: &[u8],
    event: Option<(Span, Span)>,
    name: Span,
) -> Result<Option<ForeignVar<'r>>, LookupError> {
    let name = name.of(text);
    let mut source = event;

    if event.is_none() {
        for action in actions {
            let Handler::Match { system, event } = action.handler else {
                continue;
            };
            let here = resolver.var_of(system.of(text), event.of(text), name)?;

            if here.is_none() {
                continue;
            }
            match source {
                None => source = Some((system, event)),
                // PARITY: `find_match_var()` finds a variable twice if two handlers have the same event.
                Some(first) if same_event(text, first, (system, event)) => {}
                Some(_) => return Err(LookupError::NotUnique),
            }
        }
    }

    match source {
        Some((system, event)) => resolver.var_of(system.of(text), event.of(text), name),
        None => resolver.var(name),
    }
}

/// Returns whether two pairs of system and event have the same names.
fn same_event(text: &[u8], a: (Span, Span), b: (Span, Span)) -> bool {
    a.0.of(text) == b.0.of(text) && a.1.of(text) == b.1.of(text)
}

impl Program {
    /// Returns the place of the first field of `join()` whose kind or size differs from the key of `definer` at that
    /// position, or whose counterpart has buckets; the last field if `definer` has more or fewer keys; `None` without a
    /// difference or `join()`.
    fn join_differs(&self, definer: &Program) -> Option<Span> {
        let join = self.joins.first()?;
        let (own, others) = (&*join.keys, &definer.keys);
        let same = |(a, b): (&Key, &Key)| {
            a.field.kind == b.field.kind && a.size == b.size && !b.field.is_bucketed()
        };
        let agree = own
            .iter()
            .zip(others.iter())
            .take_while(|pair| same(*pair))
            .count();

        match join.spans.get(agree) {
            Some(at) => Some(*at),
            None if agree < others.len() => join.spans.last().copied(),
            None => None,
        }
    }

    /// Returns the index of the reference to `foreign`, and the reference as a field. A new reference is added; `None` if
    /// there are [`REFS_MAX`] already. `event` and `name` are the spans of the reference in this trigger's text.
    pub(super) fn refer(
        &mut self,
        command: &CommandText<'_>,
        event: Option<(Span, Span)>,
        name: Name,
        foreign: &ForeignVar<'_>,
    ) -> Result<Option<(u8, Field)>, Refusal> {
        for (index, existing) in (0..=u8::MAX).zip(self.refs.iter()) {
            if existing.table == foreign.table && existing.cell == foreign.var.cell {
                return Ok(Some((index, existing.field)));
            }
        }

        if let Some(at) = self.join_differs(foreign.definer) {
            let mut keys = Vec::new();

            foreign
                .definer
                .write_key_list(foreign.text, &mut keys)
                .map_err(|_| Refusal::silent(Errno::Enomem))?;
            return Err(command
                .refuse(ErrKind::JoinMismatch, at)
                .detailed(&[b"keys=", &keys]));
        }

        let Some(index) = u8::try_from(self.refs.len())
            .ok()
            .filter(|_| self.refs.len() < REFS_MAX)
        else {
            return Ok(None);
        };
        let reference = Ref::new(index, event, name, foreign, &mut self.made)?;

        self.refs.push(reference)?;
        Ok(Some((index, reference.field)))
    }
}

impl Program {
    /// Returns the index in the text of the first number that may be negative but is treated as unsigned, as in C: an
    /// operand of a division, or the variable of an `onmax()`; `None` if there is none.
    pub fn loses_sign(&self) -> Option<usize> {
        let keys = self.keys.iter().map(|key| &key.field);
        let vars = self.vars.iter().map(|var| &var.field);
        let mut fields = vars.chain(keys).chain(self.vals.iter());
        let divided = fields.find_map(|field| match field.op {
            Op::Expr(code) => signed_in(code.of(&self.code)).err(),
            _ => None,
        });

        divided.or_else(|| {
            self.actions.iter().find_map(|action| match action.handler {
                Handler::Track {
                    arg,
                    var,
                    when: When::Larger,
                } => {
                    let var = self.vars.get(usize::from(var))?;

                    var.field.may_be_negative().then_some(arg.start)
                }
                _ => None,
            })
        })
    }
}

/// Returns the index in the text of a number that may be negative and contributes to the result of `code`, if there is
/// one. The error is the index of such a number that is divided, or is a divisor.
fn signed_in(code: &[Insn]) -> Result<Option<usize>, usize> {
    let Some((insn, operands)) = code.split_last() else {
        return Ok(None);
    };

    match insn {
        Insn::Push(field) => Ok(match field.name {
            Name::Text(name) if field.may_be_negative() => Some(name.start),
            _ => None,
        }),
        Insn::Neg => signed_in(operands),
        Insn::Add | Insn::Sub | Insn::Mul | Insn::Div => {
            let (left, right) = halves(operands);
            let signed = signed_in(left)?.or(signed_in(right)?);

            match (insn, signed) {
                (Insn::Div, Some(at)) => Err(at),
                _ => Ok(signed),
            }
        }
    }
}

impl Ref {
    /// Returns a reference to `foreign` with the number `index`.
    fn new(
        index: u8,
        event: Option<(Span, Span)>,
        name: Name,
        foreign: &ForeignVar<'_>,
        made: &mut Vec<u8>,
    ) -> Result<Self, Refusal> {
        let shown = match (event, name) {
            (Some((system, _)), Name::Text(name)) => Name::Text(Span {
                start: system.start,
                ..name
            }),
            _ => name,
        };

        let field = foreign.var.field;
        let type_name = foreign.definer.name_of(field.type_name, foreign.text);

        Ok(Self {
            table: foreign.table,
            cell: foreign.var.cell,
            expires: foreign.definer.expiry().is_some(),
            consume: false,
            name,
            event,
            constant: match field.op {
                Op::Const(value) => Some(value),
                _ => None,
            },
            field: Field {
                name: shown,
                op: Op::Ref(index),
                modifier: Modifier::None,
                type_name: Name::make(made, &[type_name])?,
                ..field
            },
        })
    }
}

impl Name {
    /// Adds `parts`, which are not part of the trigger's text, to the bytes of the program; returns their name.
    pub(super) fn make(made: &mut Vec<u8>, parts: &[&[u8]]) -> Result<Self, Refusal> {
        let start = made.len();

        for part in parts {
            made.extend_from_slice(part)?;
        }
        Ok(Self::Made(Span {
            start,
            end: made.len(),
        }))
    }
}

/// Applies an operator to constants.
///
/// PARITY: `div_by_mult_and_shift()` rounds some quotients up; here all are truncated.
fn fold(operator: Operator, a: u64, b: u64) -> u64 {
    match operator {
        Operator::Add => a.wrapping_add(b),
        Operator::Sub => a.wrapping_sub(b),
        Operator::Mul => a.wrapping_mul(b),
        Operator::Div => a.checked_div(b).unwrap_or(u64::MAX),
    }
}

/// Returns whether a field of this kind may have no size, as it is not part of the record.
fn is_generic(kind: FieldKind) -> bool {
    matches!(kind, FieldKind::Cpu | FieldKind::Comm | FieldKind::Stack)
}

/// Returns whether the record has only the place and the length of the array, not the array itself.
fn is_place(type_name: &[u8]) -> bool {
    type_name.starts_with(b"__data_loc ") || type_name.starts_with(b"__rel_loc ")
}

/// Returns the source of a field's value in a hit, and the kind of the value; `None` if the type is not supported.
///
/// PARITY: `select_value_fn()` reads the place of an array as a number of 4 bytes.
pub(super) fn read_op(desc: &FieldDesc<'_>) -> Option<(Op, Kind)> {
    let offset = desc.offset;

    Some(match desc.kind {
        FieldKind::Cpu if desc.size == 0 => (Op::Cpu, Kind::Number),
        FieldKind::Comm => (Op::Comm, Kind::String),
        FieldKind::Stack if desc.size == 0 => (Op::Stacktrace, Kind::Stack),
        FieldKind::Stack => (Op::StackField { offset }, Kind::Stack),
        FieldKind::StaticString => {
            let len = desc.size;

            (Op::StaticString { offset, len }, Kind::String)
        }
        FieldKind::DynString => (Op::DynString { offset }, Kind::String),
        FieldKind::Cpumask => (Op::DynString { offset }, Kind::Cpumask),
        FieldKind::RelDynString => (Op::RelDynString { offset }, Kind::String),
        FieldKind::Function => return None,
        FieldKind::Other if is_place(desc.type_name) => return None,
        FieldKind::Other | FieldKind::PtrString | FieldKind::Cpu => {
            (Op::num(offset, desc.size, desc.signed)?, Kind::Number)
        }
    })
}
