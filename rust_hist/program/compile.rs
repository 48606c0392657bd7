// SPDX-License-Identifier: GPL-2.0

//! The compiler, which makes a program of a specification and the fields of an event.
//!
//! C counterpart: `create_hist_data()` and the functions that it calls, of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//! The parts are checked in the order of C, so that a text with two mistakes is refused for the same mistake: handlers,
//! definitions of variables, values, variables, keys, sort keys.
//!
//! Context: process, may sleep.

use core::fmt::{
    self,
    Write, //
};

use crate::{
    alloc::{
        AllocError,
        Vec, //
    },
    bucket::Buckets,
    error::{
        ErrKind,
        Errno,
        Refusal, //
    },
    lang::{
        CommandText,
        HistSpec,
        Usage,
        EXPIRE, //
    },
    limits::{
        List,
        C_VALS_MAX,
        KEYS_MAX,
        KEY_SIZE_MAX,
        SORT_KEYS_MAX,
        STACK_DEPTH,
        STR_SLOT,
        VALS_MAX, //
    },
    stat::Stat,
    text::{
        Out,
        Span, //
    },
    tracing_map::{
        sort::{
            Column,
            Compare,
            SortKey, //
        },
        Gauge,
        Tallies,
        Tally, //
    }, //
};

use super::{
    expr::Parsed,
    hint::{
        VALID,
        VALUES, //
    },
    resolver::Resolver,
    var::Def,
    ActionKind,
    Code,
    Field,
    Insn,
    Join,
    Key,
    Kind,
    Modifier,
    Name,
    Op,
    Program,
    Purpose, //
};

/// The value that every trigger counts, even if it was not typed.
const HITCOUNT: &[u8] = b"hitcount";

impl Program {
    /// Returns an empty program, for [`Program::fill`]. Not inlined, so that it is built in the caller's place for it:
    /// it is large for a stack.
    #[inline(never)]
    pub fn empty() -> Self {
        Self::default()
    }

    /// Compiles `spec` for the event whose fields `event` looks up.
    ///
    /// [`Program::create_actions`] compiles the actions later. Until then the only effect outside of the program is
    /// that `event` numbers the tables that the program refers to.
    ///
    /// For the host: the stack of the kernel is too small, see [`Program::fill`].
    ///
    /// # Errors
    ///
    /// A [`Refusal`] with the errno for the writer and the messages for `error_log`.
    ///
    /// # Examples
    ///
    /// ```
    /// # mod event { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/event.rs")); }
    /// # use event::SchedSwitch;
    /// use rust_hist::{
    ///     error::ErrKind,
    ///     lang,
    ///     program::{Program, Purpose},
    /// };
    ///
    /// let spec = lang::parse(b"hist", b"keys=next_pid,next_prio")?;
    /// let refusal = Program::compile(&spec, &mut SchedSwitch, Purpose::New).expect_err("no such field");
    ///
    /// assert!(refusal.is(ErrKind::FieldNotFound));
    /// # Ok::<(), rust_hist::error::Refusal>(())
    /// ```
    #[cfg(not(CONFIG_RUST))]
    pub fn compile(
        spec: &HistSpec<'_>,
        event: &mut dyn Resolver,
        purpose: Purpose,
    ) -> Result<Self, Refusal> {
        let mut program = Self::empty();

        program.fill(spec, event, purpose)?;
        Ok(program)
    }

    /// Compiles `spec` like [`Program::compile`], but into `self`, an [empty](Program::empty) program: the stack has no
    /// room for both a program and the compiler.
    ///
    /// # Errors
    ///
    /// See [`Program::compile`]; after an error the caller has to drop the program.
    pub fn fill(
        &mut self,
        spec: &HistSpec<'_>,
        event: &mut dyn Resolver,
        purpose: Purpose,
    ) -> Result<(), Refusal> {
        self.bits = spec.bits;
        self.grows_to = spec.grows_to;
        self.others = spec.others.is_some();
        self.expiry = spec.expiry;
        (self.overhead, self.budget) = (spec.overhead, spec.budget);
        self.name = spec.name.map(|token| token.skip(b"name=".len()));
        self.clock = spec.clock;
        self.filter = spec.filter;
        self.nohitcount = spec.nohitcount;
        self.update = spec.update();
        self.needs_existing = spec.cont || spec.clear;

        // The parts are not inlined: the stack frame of one is gone before the next one is compiled.
        Compiler::new(self, spec, event).parse_actions()?;
        // `join()`, which C does not have.
        Compiler::new(self, spec, event).join()?;

        let mut compiler = Compiler::new(self, spec, event);

        compiler.own = compiler.own_in_vals();
        compiler.definitions()?;

        // Values that may name variables are compiled after the variables, all others in the order of C.
        let vals_last = compiler.vals_name_values();

        if !vals_last {
            compiler.vals()?;
        }
        compiler.variables(purpose)?;

        let columns = compiler.columns(vals_last);

        compiler.check_defined_elsewhere(columns)
    }
}

/// The meaning of a reference to a variable that the trigger itself defines, other than as a plain field: whether it is
/// the number that the hit gives to the variable. (A reference to a plain field always means the field.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Own {
    /// Never the trigger's own variable: C has no such references in actions.
    Never,
    /// The number of the hit, unless another trigger has a variable of that name, which is the only meaning in C.
    After,
    /// The number of the hit; for a variable that is itself a reference, as [`Own::After`].
    Computed,
    /// The number of the hit, regardless of other triggers.
    First,
}

/// The state of the compiler.
pub(super) struct Compiler<'a, 't> {
    pub(super) program: &'a mut Program,
    pub(super) spec: &'a HistSpec<'t>,
    pub(super) command: CommandText<'t>,
    /// The text of `spec`.
    pub(super) text: &'t [u8],
    pub(super) event: &'a mut dyn Resolver,
    /// The definitions of the trigger's variables, whose names an expression may use for a plain field.
    ///
    /// PARITY: C frees them before `create_actions()`, so the list is empty for actions.
    pub(super) defs: Vec<Def>,
    /// The meaning of a reference to a variable that the trigger itself defines, for the part compiled now.
    pub(super) own: Own,
    /// The variables, one bit each, that have the name of another trigger's variable of the event. They are refused if
    /// they turn out to be stored.
    pub(super) defined_elsewhere: u32,
}

impl<'a, 't> Compiler<'a, 't> {
    pub(super) fn new(
        program: &'a mut Program,
        spec: &'a HistSpec<'t>,
        event: &'a mut dyn Resolver,
    ) -> Self {
        Self {
            program,
            spec,
            command: spec.command,
            text: spec.command.text(),
            event,
            defs: Vec::new(),
            own: Own::Never,
            defined_elsewhere: 0,
        }
    }

    /// Returns a refusal with the errno `EINVAL`: `kind`, with the caret at the start of `span`.
    pub(super) fn refuse(&self, kind: ErrKind, span: Span) -> Refusal {
        self.command.refuse(kind, span)
    }

    /// Compiles values, keys and sort keys, which follow the variables.
    #[inline(never)]
    fn columns(&mut self, vals_last: bool) -> Result<(), Refusal> {
        if vals_last {
            self.vals()?;
        }
        self.own = Own::First;
        self.keys()?;
        self.check_column_names()?;
        self.place_variables()?;
        self.quantiles()?;
        self.limit()?;
        self.sort()
    }

    /// Refuses a column that has the name of a variable if there is a field of that name, too.
    fn check_column_names(&self) -> Result<(), Refusal> {
        let program = &self.program;
        let keys = program.keys.iter().map(|key| &key.field);
        let columns = keys.chain(program.vals.iter());
        let is_own = |field: &&Field| matches!(field.op, Op::Own(_));

        for own in columns.clone().filter(is_own) {
            let is_same = |other: &Field| {
                !is_own(&other)
                    && program.field_name(other, self.text) == program.field_name(own, self.text)
            };

            if let (true, Name::Text(name)) = (columns.clone().any(is_same), own.name) {
                return Err(self.refuse(ErrKind::AmbiguousColumn, name));
            }
        }
        Ok(())
    }

    /// Returns the meaning of references in values: with `join()`, which C does not have, the trigger's own variables
    /// come first.
    pub(super) fn own_in_vals(&self) -> Own {
        match self.spec.join {
            Some(_) => Own::First,
            None => Own::After,
        }
    }

    /// Compiles `join()`.
    #[inline(never)]
    fn join(&mut self) -> Result<(), Refusal> {
        let Some(list) = self.spec.join else {
            return Ok(());
        };
        let mut items = self.spec.items(list);
        let mut join = Join::default();

        for item in items.by_ref().take(KEYS_MAX) {
            let field = self.join_field(item)?;
            let key = Key::behind(join.size, field);
            let key = key.ok_or(self.refuse(ErrKind::KeyTooLong, item))?;

            // INVARIANT: the key begins where the one before it ends.
            join.keys.push(key)?;
            join.spans.push(item)?;
            join.size = join.size.saturating_add(key.size);
        }
        match items.rest() {
            Some(rest) => Err(self.refuse(ErrKind::TooManyKeys, rest)),
            None => Ok(self.program.joins.push(join)?),
        }
    }

    /// Compiles one field of `join()`.
    fn join_field(&mut self, item: Span) -> Result<Field, Refusal> {
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let name = item.of(self.text);
        let refusal = self.refuse(ErrKind::JoinField, item);

        if name.first().is_none_or(u8::is_ascii_digit) || !name.iter().all(is_name) {
            return Err(refusal);
        }

        let field = self.atom(item, Usage::Key)?.field;

        match field.op {
            Op::One => Err(refusal),
            _ => Ok(field),
        }
    }

    /// Refuses `join()` in a trigger that reads no variable of another trigger.
    pub(super) fn check_join(&self) -> Result<(), Refusal> {
        match self.spec.join {
            Some(list) if self.program.refs.is_empty() => {
                Err(self.refuse(ErrKind::JoinNoRef, list))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a table that grows if its rows keep strings or stacks, which cannot be moved to a larger map during
    /// hits; and a row for hits of several keys (`others`) if rows keep variables or tracked values, which belong to
    /// one key. With `expire()` nothing is moved.
    pub(super) fn check_rows(&self) -> Result<(), Refusal> {
        let program = &self.program;
        let mut stored = program.vars.iter().filter(|var| var.is_stored());
        let tracks = program.tracks();
        let refuse = |kind, at| Err(self.refuse(kind, at));

        match self.spec.others {
            Some(others) if tracks || stored.next().is_some() => {
                refuse(ErrKind::OthersVars, others)
            }
            _ if self.spec.expiry.is_some() => self.check_expiry(tracks),
            _ if !program.may_grow() => Ok(()),
            _ if stored.any(|var| var.field.kind != Kind::Number) => {
                refuse(ErrKind::GrowingVars, self.spec.size)
            }
            _ => Ok(()),
        }
    }

    /// Refuses `expire()` for a table if no stored number can tell that a start has ended, or if the table has tracked
    /// values, which do not expire with their generation.
    fn check_expiry(&self, tracks: bool) -> Result<(), Refusal> {
        let mut stored = self.program.vars.iter().filter(|var| var.is_stored());
        let mut words = self.spec.params(EXPIRE);
        let (first, second) = (words.next(), words.last());
        let kind = match second {
            Some(_) => ErrKind::ExpiryTwice,
            None if tracks => ErrKind::ExpiryTracks,
            None if !stored.any(|var| var.field.kind == Kind::Number) => ErrKind::ExpiryNoVar,
            None => return Ok(()),
        };
        let at = second.or(first).unwrap_or_default();

        Err(self.refuse(kind, at))
    }

    fn vals(&mut self) -> Result<(), Refusal> {
        if let Some(list) = self.spec.vals {
            let mut items = self.spec.items(list);
            let mut seen_hitcount = false;

            // One more than `VALS_MAX`, as the hit count may be one of the items.
            for _ in 0..=VALS_MAX {
                let vals = self.program.vals.len();
                let ends_in_hitcount = items
                    .rest()
                    .is_some_and(|rest| self.spec.is(rest, HITCOUNT));

                // PARITY: where `create_val_fields()` has no room for another value it ignores a hit count.
                if vals == VALS_MAX || vals == C_VALS_MAX && ends_in_hitcount {
                    break;
                }
                let Some(item) = items.next() else { break };

                // The first plain `hitcount` is sum 0, which every trigger has.
                if self.spec.is(item, HITCOUNT) && !seen_hitcount {
                    seen_hitcount = true;
                    continue;
                }

                let field = self.val(item)?;

                self.program.vals.push(field)?;
            }

            if let Some(rest) = items.rest().filter(|&rest| !self.spec.is(rest, HITCOUNT)) {
                return Err(self.refuse(ErrKind::TooManyVals, rest));
            }
        }

        if self.program.nohitcount && self.program.vals.is_empty() {
            return Err(Refusal::new(Errno::Enoent, ErrKind::NeedNohcVal, 0));
        }
        Ok(self.program.find_numbers()?)
    }

    fn val(&mut self, item: Span) -> Result<Field, Refusal> {
        let Parsed { field, seen } = self.expression(item, Usage::Value)?;
        let computed_or_named = field.is_bucketed()
            || matches!(
                field.modifier,
                Modifier::Sym | Modifier::SymOffset | Modifier::Syscall
            );

        match field.kind {
            _ if computed_or_named => Err(self.bad_modifier(seen, &[VALID, VALUES])),
            Kind::Stack => Err(self.bad_modifier(seen, &[b"a stack is no value"])),
            // PARITY: `__create_val_field()` accepts strings and sums their addresses.
            Kind::String | Kind::Cpumask => Err(self.refuse(ErrKind::StringValue, seen)),
            Kind::Number => Ok(field),
        }
    }

    #[inline(never)]
    fn keys(&mut self) -> Result<(), Refusal> {
        let mut items = self.spec.items(self.spec.keys);

        for item in items.by_ref().take(KEYS_MAX) {
            let field = if self.spec.is(item, b"stacktrace") {
                let name = Name::Fixed("common_stacktrace");

                Field::generic(name, Op::Stacktrace, Modifier::None)
            } else {
                let Parsed { mut field, seen } = self.expression(item, Usage::Key)?;

                // PARITY: C aligns the bits of negative numbers, and does not have `quantiles()`.
                field.signed_buckets = field.signed && !self.spec.quantiles.1.as_slice().is_empty();
                // The key of a trigger with `join()` may be another trigger's variable, if that is a number.
                if self.program.refers(&field)
                    && (self.spec.join.is_none() || field.kind != Kind::Number)
                {
                    return Err(self.refuse(ErrKind::InvalidRefKey, seen));
                }
                field
            };

            let key = Key::behind(self.program.key_size, field);
            let key = key.ok_or(self.refuse(ErrKind::KeyTooLong, item))?;

            self.program.keys.push(key)?;
            self.program.key_size = self.program.key_size.saturating_add(key.size);
        }

        match items.rest() {
            Some(rest) => Err(self.refuse(ErrKind::TooManyKeys, rest)),
            None => Ok(()),
        }
    }

    /// Sets the quantiles of the program; refuses them if the keys have no buckets to fold.
    fn quantiles(&mut self) -> Result<(), Refusal> {
        let (token, quantiles) = self.spec.quantiles;
        let refuse = |kind, at| Err(self.refuse(kind, at));

        if quantiles.as_slice().is_empty() {
            return Ok(());
        }

        let mut items = self
            .spec
            .items(self.spec.keys)
            .zip(self.program.keys.iter());
        let mut foldable = items
            .by_ref()
            .filter(|(_, key)| key.field.is_bucketed())
            .map(|(item, _)| item);

        match (foldable.next(), foldable.next()) {
            (Some(_), None) => {}
            (Some(_), Some(second)) => return refuse(ErrKind::QuantilesKey, second),
            (None, _) => return refuse(ErrKind::QuantilesKey, token),
        }

        let mut actions = self.program.actions.iter();

        if let Some(save) = actions.find(|action| action.kind == ActionKind::Save) {
            return refuse(ErrKind::QuantilesSave, save.word);
        }
        self.program.quantiles = quantiles;
        Ok(())
    }

    /// Sets the limit on the actions; refuses a limit if there is no action.
    fn limit(&mut self) -> Result<(), Refusal> {
        let Some((token, limit)) = self.spec.limit else {
            return Ok(());
        };

        if self.program.actions.is_empty() {
            let kind = ErrKind::LimitNoAction;
            return Err(self.refuse(kind, token));
        }
        self.program.limit = Some(limit);
        Ok(())
    }

    #[inline(never)]
    fn sort(&mut self) -> Result<(), Refusal> {
        let full = |_| Refusal::silent(Errno::Einval);
        let Some(list) = self.spec.sort else {
            return self.program.sort.push(SortKey::default()).map_err(full);
        };
        let mut items = self.spec.items(list);

        for place in 0..SORT_KEYS_MAX {
            let Some(item) = items.next() else { break };
            // PARITY: `create_sort_keys()` points at the word before the fields.
            let refuse = |kind| {
                let start = list.start.saturating_sub(b"sort=".len());

                Err(self.refuse(kind, Span { start, ..list }))
            };

            if item.is_empty() {
                return refuse(ErrKind::EmptySortField);
            }
            if place > 0 && items.rest().is_some() {
                return refuse(ErrKind::TooManySortFields);
            }

            let (name, suffix) = self.spec.name_and_modifier(item);

            if name.is_empty() {
                return refuse(ErrKind::EmptySortField);
            }

            let key = self.sort_key(item, name, suffix)?;

            self.program.sort.push(key).map_err(full)?;
        }
        Ok(())
    }

    fn sort_key(&self, item: Span, name: Span, suffix: Option<Span>) -> Result<SortKey, Refusal> {
        if let Some(quantile) = self.quantile(item) {
            return Ok(quantile);
        }

        let key = self.column_key(item, name, suffix)?;
        let folded = self.program.folded_key().map(Key::first_word);

        match key.column {
            Column::Key { at, .. } if Some(at) == folded => {
                Err(self.refuse(ErrKind::FoldedSort, item))
            }
            _ => Ok(key),
        }
    }

    /// Returns the sort key for `item`, if that names the column of a quantile.
    fn quantile(&self, item: Span) -> Option<SortKey> {
        let buckets = self.program.folded_key()?.field.buckets()?;
        let compare = Compare::Number {
            size: 8,
            signed: buckets.has_signed_words(),
        };
        let first = self.program.key_words();

        (first..)
            .zip(self.program.quantiles())
            .find_map(|(at, &quantile)| {
                let mut rest = Matcher(item.of(self.text));

                self.program
                    .write_quantile(quantile, self.text, &mut rest)
                    .ok()?;
                let descending = match rest.0 {
                    b"" | b".ascending" => false,
                    b".descending" => true,
                    _ => return None,
                };

                Some(SortKey {
                    column: Column::Key { at, compare },
                    descending,
                })
            })
    }

    fn column_key(&self, item: Span, name: Span, suffix: Option<Span>) -> Result<SortKey, Refusal> {
        if self.spec.is(name, HITCOUNT) {
            return Ok(SortKey {
                descending: self.descending(suffix)?,
                ..SortKey::default()
            });
        }

        // A column with `.max` or the like is sorted by its full name, which `printed()` finds.
        let named = self.program.column(|field| {
            field.stat().is_none()
                && self.program.field_name(field, self.text) == name.of(self.text)
        });
        let refusal = match named {
            Some(column) => match self.descending(suffix) {
                Ok(descending) => return Ok(SortKey { column, descending }),
                Err(refusal) => refusal,
            },
            None => self.refuse(ErrKind::InvalidSortField, name),
        };

        self.printed(item).ok_or(refusal)
    }

    /// Returns the sort key whose text in the trigger line is `item`.
    ///
    /// PARITY: such texts have modifiers, dollar signs and dots, which `create_sort_keys()` refuses.
    fn printed(&self, item: Span) -> Option<SortKey> {
        let bytes = item.of(self.text);
        let column = |bytes: &[u8]| {
            self.program.column(|field| {
                let (mut typed, mut shown) = (Matcher(bytes), Matcher(bytes));
                let is_typed = self.program.write_sorted(field, self.text, &mut typed);
                let is_shown = self.program.write_column(field, self.text, &mut shown);

                !matches!(field.op, Op::Const(_))
                    && (is_typed.is_ok() && typed.0.is_empty()
                        || field.stat().is_some() && is_shown.is_ok() && shown.0.is_empty())
            })
        };

        if let Some(column) = column(bytes) {
            return Some(SortKey {
                column,
                descending: false,
            });
        }

        let (bytes, descending) = match bytes.strip_suffix(b".descending") {
            Some(bytes) => (bytes, true),
            None => (bytes.strip_suffix(b".ascending")?, false),
        };

        Some(SortKey {
            column: column(bytes)?,
            descending,
        })
    }

    /// Returns whether a sort field is descending, from its `suffix`; refuses any other suffix than the two directions.
    fn descending(&self, suffix: Option<Span>) -> Result<bool, Refusal> {
        match suffix {
            None => Ok(false),
            Some(word) if self.spec.is(word, b"ascending") => Ok(false),
            Some(word) if self.spec.is(word, b"descending") => Ok(true),
            Some(word) => Err(self.refuse(ErrKind::InvalidSortModifier, word)),
        }
    }

    /// Adds the name of an expression to the program's bytes: the expression's text with constants folded.
    pub(super) fn name_code(&mut self, code: Code) -> Result<Span, Refusal> {
        let start = self.program.made.len();
        let mut made = core::mem::take(&mut self.program.made);
        let written = self.program.write_code(code, self.text, &mut made);

        self.program.made = made;
        // Writing to the buffer fails only if there is no memory.
        written.map_err(|_| Refusal::silent(Errno::Enomem))?;
        Ok(Span {
            start,
            end: self.program.made.len(),
        })
    }
}

impl Program {
    /// Returns whether the value of `field` depends on another trigger.
    fn refers(&self, field: &Field) -> bool {
        match field.op {
            Op::Ref(_) => true,
            // A variable is computed from variables before it, so the recursion ends.
            Op::Own(n) => {
                let var = self.vars.get(usize::from(n));

                var.is_some_and(|var| self.refers(&var.field))
            }
            Op::Expr(code) => code.of(&self.code).iter().any(|insn| match insn {
                Insn::Push(operand) => self.refers(operand),
                _ => false,
            }),
            _ => false,
        }
    }

    /// Finds the statistics that hits keep of each number, and the statistic that each column shows.
    ///
    /// If any value has `.max` or the like, columns of the same number share its statistics; otherwise each value has
    /// its own sum, as in C.
    fn find_numbers(&mut self) -> Result<(), AllocError> {
        let shares = self.vals.iter().any(|val| val.stat().is_some());
        let mut tallies: List<Tally, VALS_MAX> = List::new();
        let mut places: List<u8, VALS_MAX> = List::new();

        for (at, val) in (0..=u8::MAX).zip(&*self.vals) {
            let known = self.numbers.iter().position(|&first| {
                let first = self.vals.get(usize::from(first));

                shares && first.is_some_and(|first| first.op == val.op)
            });
            let n = known.unwrap_or(tallies.as_slice().len());

            if known.is_none() {
                // The list has as many places as there can be values, here and below.
                let _ = tallies.push(Tally::new(val.may_be_negative()));
                self.numbers.push(at)?;
            }
            if let (Some(tally), Some(stat)) = (tallies.get_mut(n), val.stat()) {
                tally.keep(stat);
            }
            let _ = places.push(u8::try_from(n).unwrap_or(u8::MAX));
        }

        self.tallies = Tallies::new(tallies.as_slice());
        for (val, &n) in self.vals.iter().zip(places.as_slice()) {
            let gauge = |stat| Gauge::new(&self.tallies, n.into(), stat);
            let column = match val.stat() {
                None | Some(Stat::Sum) => Column::Sum(gauge(Stat::Sum).sum()),
                Some(stat) => Column::Made(gauge(stat)),
            };
            self.columns.push(column)?;
        }
        Ok(())
    }

    /// Returns the column of the first value, or else of the first key, whose field `is` accepts.
    fn column(&self, is: impl Fn(&Field) -> bool) -> Option<Column> {
        if let Some(at) = self.vals.iter().position(&is) {
            return self.columns.get(at).copied();
        }
        let key = self.keys.iter().find(|key| is(&key.field))?;

        Some(Column::Key {
            at: key.first_word(),
            compare: comparison(key),
        })
    }
}

impl Key {
    /// Returns `field` as a key at `offset`; `None` if it would end beyond [`KEY_SIZE_MAX`].
    fn behind(offset: u32, field: Field) -> Option<Self> {
        let bytes = match field.op {
            Op::StaticString { len, .. } => usize::try_from(len).ok()?,
            Op::Comm | Op::DynString { .. } | Op::RelDynString { .. } => STR_SLOT,
            Op::Stacktrace | Op::StackField { .. } => STACK_DEPTH * 8,
            _ => 8,
        };
        let size = u32::try_from(bytes.checked_next_multiple_of(8)?).ok()?;
        let end = usize::try_from(offset.checked_add(size)?).ok()?;

        // INVARIANT: `offset` is the sum of the sizes of the keys before, `size` was rounded up to a multiple of 8, and
        // `offset + size` is `end`, which is at most `KEY_SIZE_MAX`.
        (end <= KEY_SIZE_MAX).then_some(Self {
            field,
            offset,
            size,
        })
    }
}

/// A writer that compares each write with the start of its bytes, which it removes. A write of other bytes fails.
struct Matcher<'b>(&'b [u8]);

impl Out for Matcher<'_> {
    fn write_bytes(&mut self, bytes: &[u8]) -> fmt::Result {
        self.0 = self.0.strip_prefix(bytes).ok_or(fmt::Error)?;
        Ok(())
    }
}

impl Write for Matcher<'_> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.write_bytes(s.as_bytes())
    }
}

/// Returns how the values of a key are compared for sorting.
///
/// PARITY: `create_tracing_map_fields()` compares the bytes of a `char *` as a string, and has no
/// order for `common_comm`.
fn comparison(key: &Key) -> Compare {
    let Field {
        op, size, signed, ..
    } = key.field;
    let words = key.words();
    let buckets = key.field.buckets();
    let has_signed_words = buckets.is_some_and(Buckets::has_signed_words);

    match key.field.kind {
        Kind::Stack => Compare::Equal,
        Kind::Cpumask => Compare::Mask { words },
        Kind::String => Compare::Text { words },
        Kind::Number => Compare::Number {
            size: match op {
                Op::Num { .. } if !has_signed_words => size,
                _ => 8,
            },
            signed: signed || has_signed_words,
        },
    }
}
