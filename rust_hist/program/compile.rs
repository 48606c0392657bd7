// SPDX-License-Identifier: GPL-2.0

//! Specification and event fields to program: every check that needs the event.
//!
//! C counterpart: `create_hist_data()` and what it calls, of
//! [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c).
//! The order is that of C, values, keys, sort keys, so that a text with two mistakes gets the same
//! refusal.
//!
//! Context: process.

#![cfg_attr(not(CONFIG_RUST), forbid(unsafe_code))]
#![cfg_attr(
    CONFIG_RUST,
    allow(
        unreachable_pub,
        reason = "the root of the module keeps its rooms private"
    )
)]

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
        Resolver, //
    },
    lang::{
        FieldSpec,
        HistSpec,
        Usage, //
    },
    limits::{
        List,
        KEYS_MAX,
        KEY_SIZE_MAX,
        SORT_KEYS_MAX,
        STACK_DEPTH,
        STR_SLOT,
        SUMS_MAX, //
    },
};

use super::{
    Column,
    Field,
    Key,
    Kind,
    Load,
    Modifier,
    Name,
    Op,
    Order,
    Program,
    Purpose,
    SortKey,
    Span, //
};

/// The one field whose values are counted without being asked for.
const HITCOUNT: &[u8] = b"hitcount";

/// The special fields that no event can hide.
const SPECIAL: [(&[u8], &str, Op); 5] = [
    (b"common_timestamp", "common_timestamp", Op::Timestamp),
    (b"common_stacktrace", "common_stacktrace", Op::Stacktrace),
    (b"common_cpu", "common_cpu", Op::Cpu),
    (b"common_comm", "common_comm", Op::Comm),
    (HITCOUNT, "hitcount", Op::One),
];

impl Program {
    /// Compiles `spec` for the event whose fields `event` knows.
    ///
    /// What the handlers do is not settled yet: that is for [`Program::create_actions`].
    pub fn compile(
        spec: &HistSpec<'_>,
        event: &mut impl Resolver,
        _purpose: Purpose,
    ) -> Result<Self, Refusal> {
        let event = &*event;
        let mut program = Self {
            keys: List::new(),
            vals: List::new(),
            sort: List::new(),
            vars: Vec::new(),
            refs: Vec::new(),
            code: Vec::new(),
            actions: Vec::new(),
            params: Vec::new(),
            saves: Vec::new(),
            made: Vec::new(),
            key_size: 0,
            aux_words: 0,
            bits: spec.bits,
            name: None,
            clock: None,
            filter: spec.filter,
            timestamps: false,
            usecs: false,
            nohitcount: spec.nohitcount,
            update: spec.update(),
            needs_existing: spec.cont || spec.clear,
            starts_paused: spec.pause,
        };

        program.compile_vals(spec, event)?;
        program.compile_keys(spec, event)?;
        program.compile_sort(spec)?;
        Ok(program)
    }

    /// Settles what the handlers do: the last step before the trigger is made. A command that
    /// changes or removes a trigger does not come here.
    pub fn create_actions(
        &mut self,
        _spec: &HistSpec<'_>,
        _event: &mut impl Resolver,
    ) -> Result<(), Refusal> {
        Ok(())
    }

    fn compile_vals(&mut self, spec: &HistSpec<'_>, event: &impl Resolver) -> Result<(), Refusal> {
        if let Some(list) = spec.vals {
            let mut items = spec.items(list);
            let mut seen_hitcount = false;

            for _ in 0..SUMS_MAX {
                if self.sums() == SUMS_MAX {
                    break;
                }
                let Some(item) = items.next() else { break };

                // The first plain `hitcount` is sum 0, which is there anyhow.
                if spec.is(item, HITCOUNT) && !seen_hitcount {
                    seen_hitcount = true;
                    continue;
                }

                let field = self.compile_val(spec, event, item)?;

                self.vals
                    .push(field)
                    .map_err(|_| Refusal::silent(Errno::Einval))?;
            }

            if items.rest().is_some_and(|rest| !spec.is(rest, HITCOUNT)) {
                return Err(Refusal::silent(Errno::Einval));
            }
        }

        if self.nohitcount && self.vals().is_empty() {
            return Err(Refusal::new(Errno::Enoent, ErrKind::NeedNohcVal, 0));
        }
        Ok(())
    }

    fn compile_val(
        &mut self,
        spec: &HistSpec<'_>,
        event: &impl Resolver,
        item: Span,
    ) -> Result<Field, Refusal> {
        let parsed = spec.field(item, Usage::Value)?;
        let field = self.compile_field(spec, event, &parsed)?;
        let computed_or_named = matches!(
            field.modifier,
            Modifier::Log2
                | Modifier::Buckets(_)
                | Modifier::Sym
                | Modifier::SymOffset
                | Modifier::Syscall
        );

        match field.kind() {
            _ if computed_or_named => {
                Err(spec.command.refuse(ErrKind::BadFieldModifier, parsed.item))
            }
            Kind::Stack => Err(spec.command.refuse(ErrKind::BadFieldModifier, parsed.item)),
            // PARITY: `__create_val_field()` lets strings pass and sums their addresses.
            Kind::String => Err(spec.command.refuse(ErrKind::StringValue, parsed.item)),
            Kind::Number => Ok(field),
        }
    }

    fn compile_keys(&mut self, spec: &HistSpec<'_>, event: &impl Resolver) -> Result<(), Refusal> {
        let mut items = spec.items(spec.keys);

        for item in items.by_ref().take(KEYS_MAX) {
            let field = if spec.is(item, b"stacktrace") {
                Field {
                    name: Name::Fixed("common_stacktrace"),
                    op: Op::Stacktrace,
                    kind: Kind::Stack,
                    ..Field::default()
                }
            } else {
                let parsed = spec.field(item, Usage::Key)?;
                let field = self.compile_field(spec, event, &parsed)?;
                let computed = matches!(field.modifier, Modifier::Log2 | Modifier::Buckets(_));

                // PARITY: `create_hist_field()` takes the logarithm of a string's address, and the
                // hit then copies from there.
                if computed && field.kind() != Kind::Number {
                    return Err(spec.command.refuse(ErrKind::BadFieldModifier, parsed.item));
                }
                field
            };

            self.add_key(field)?;
        }

        match items.rest() {
            Some(_) => Err(Refusal::silent(Errno::Einval)),
            None => Ok(()),
        }
    }

    /// Gives `field` the next slot of the key.
    fn add_key(&mut self, field: Field) -> Result<(), Refusal> {
        let too_long = Refusal::silent(Errno::Einval);
        let bytes = match field.op {
            Op::Comm | Op::DynString { .. } | Op::RelDynString { .. } => STR_SLOT,
            Op::StaticString { len, .. } => usize::try_from(len).map_err(|_| too_long)?,
            Op::Stacktrace | Op::StackField { .. } => STACK_DEPTH * 8,
            _ => 8,
        };
        let size = bytes.checked_next_multiple_of(8).ok_or(too_long)?;
        // CAST: at most KEY_SIZE_MAX by the invariant.
        let offset = self.key_size as usize;
        let end = offset.saturating_add(size);

        if end > KEY_SIZE_MAX {
            return Err(too_long);
        }

        // INVARIANT: `offset` and `size` are multiples of 8, and `end` was just checked.
        let narrow = |bytes: usize| u32::try_from(bytes).map_err(|_| too_long);
        let key = Key {
            field,
            offset: narrow(offset)?,
            size: narrow(size)?,
        };

        self.keys.push(key).map_err(|_| too_long)?;
        self.key_size = narrow(end)?;
        Ok(())
    }

    /// Keeps bytes that stand nowhere in the text.
    fn make(&mut self, parts: &[&[u8]]) -> Result<Name, Refusal> {
        let start = self.made.len();

        for part in parts {
            self.made.extend_from_slice(part)?;
        }
        Ok(Name::Made(Span {
            start,
            end: self.made.len(),
        }))
    }

    /// Looks the field of `parsed` up and settles how to read it.
    fn compile_field(
        &mut self,
        spec: &HistSpec<'_>,
        event: &impl Resolver,
        parsed: &FieldSpec,
    ) -> Result<Field, Refusal> {
        let name = parsed.name.of(spec.command.text());
        let modifier = parsed.modifier;

        if let Some((_, fixed, op)) = SPECIAL.iter().find(|(word, ..)| *word == name) {
            if modifier == Modifier::Stacktrace {
                return Err(spec.command.refuse(ErrKind::BadFieldModifier, parsed.atom));
            }
            if *op == Op::Timestamp {
                self.timestamps = true;
                self.usecs |= modifier == Modifier::Usecs;
            }
            return Ok(Field {
                name: Name::Fixed(fixed),
                op: *op,
                kind: kind(*op),
                modifier,
                ..Field::default()
            });
        }

        let desc = event
            .field(name)
            .filter(|desc| desc.size > 0 || is_generic(desc.kind));
        let Some(desc) = desc else {
            let refusal = spec.command.refuse(ErrKind::FieldNotFound, parsed.name);

            return Err(refusal.after(parsed.note));
        };
        let own_stack = desc.kind == FieldKind::Stack && desc.size > 0;

        if modifier == Modifier::Stacktrace && !own_stack {
            return Err(spec.command.refuse(ErrKind::BadFieldModifier, parsed.atom));
        }

        let op = read_op(&desc).ok_or(Refusal::silent(Errno::Enomem))?;

        if op == Op::Stacktrace {
            return Ok(Field {
                name: Name::Fixed("common_stacktrace"),
                op,
                kind: Kind::Stack,
                modifier,
                ..Field::default()
            });
        }

        Ok(Field {
            name: Name::Text(parsed.name),
            op,
            kind: kind(op),
            modifier: if own_stack && modifier == Modifier::None {
                Modifier::Stacktrace
            } else {
                modifier
            },
            size: desc.size,
            signed: desc.signed,
            type_name: self.make(&[desc.type_name])?,
            usecs: modifier == Modifier::Usecs,
        })
    }

    fn compile_sort(&mut self, spec: &HistSpec<'_>) -> Result<(), Refusal> {
        let full = |_| Refusal::silent(Errno::Einval);
        let Some(list) = spec.sort else {
            return self.sort.push(SortKey::default()).map_err(full);
        };
        let mut items = spec.items(list);

        for place in 0..SORT_KEYS_MAX {
            let Some(item) = items.next() else { break };
            let refuse = |kind| Refusal::new(Errno::Einval, kind, spec.command.column_of(b"sort="));

            if item.is_empty() {
                return Err(refuse(ErrKind::EmptySortField));
            }
            if place > 0 && items.rest().is_some() {
                return Err(refuse(ErrKind::TooManySortFields));
            }

            let (name, suffix) = spec.name_and_modifier(item);

            if name.is_empty() {
                return Err(refuse(ErrKind::EmptySortField));
            }

            let key = self.compile_sort_key(spec, name, suffix)?;

            self.sort.push(key).map_err(full)?;
        }
        Ok(())
    }

    fn compile_sort_key(
        &self,
        spec: &HistSpec<'_>,
        name: Span,
        suffix: Option<Span>,
    ) -> Result<SortKey, Refusal> {
        let text = spec.command.text();

        if spec.is(name, HITCOUNT) {
            return Ok(SortKey {
                descending: descending(spec, suffix)?,
                ..SortKey::default()
            });
        }

        let called = |field: &Field| self.field_name(field, text) == name.of(text);
        let (column, field) = if let Some(at) = self.vals().iter().position(called) {
            (Column::Sum(at.saturating_add(1)), self.vals().get(at))
        } else {
            let at = self.keys().iter().position(|key| called(&key.field));

            (
                Column::Key(at.unwrap_or(0)),
                at.and_then(|at| self.keys().get(at)).map(Key::field),
            )
        };
        let field = field.ok_or(spec.command.refuse(ErrKind::InvalidSortField, name))?;

        Ok(SortKey {
            column,
            order: match column {
                Column::Sum(_) => SortKey::default().order,
                Column::Key(_) => key_order(field),
            },
            descending: descending(spec, self.without_modifier(spec, field, name, suffix))?,
        })
    }

    /// Takes the column's own modifier off what follows its name in `sort=`.
    ///
    /// PARITY: the printed line has it there, `create_sort_keys()` refuses it.
    fn without_modifier(
        &self,
        spec: &HistSpec<'_>,
        field: &Field,
        name: Span,
        suffix: Option<Span>,
    ) -> Option<Span> {
        let (word, rest) = spec.name_and_modifier(suffix?);

        for usage in [Usage::Key, Usage::Value] {
            if field.modifier != Modifier::None
                && spec.modifier(name, word, usage) == Ok(field.modifier)
            {
                return rest;
            }
        }
        suffix
    }
}

/// Reads the direction of a sort field.
fn descending(spec: &HistSpec<'_>, suffix: Option<Span>) -> Result<bool, Refusal> {
    match suffix {
        None => Ok(false),
        Some(word) if spec.is(word, b"ascending") => Ok(false),
        Some(word) if spec.is(word, b"descending") => Ok(true),
        Some(word) => Err(spec.command.refuse(ErrKind::InvalidSortModifier, word)),
    }
}

/// Whether a field of this kind needs no place in the record.
fn is_generic(kind: FieldKind) -> bool {
    matches!(kind, FieldKind::Cpu | FieldKind::Comm | FieldKind::Stack)
}

/// How to read a field; `None` if no column can hold it.
fn read_op(desc: &FieldDesc<'_>) -> Option<Op> {
    let offset = desc.offset;

    Some(match desc.kind {
        FieldKind::Cpu if desc.size == 0 => Op::Cpu,
        FieldKind::Comm => Op::Comm,
        FieldKind::Stack if desc.size == 0 => Op::Stacktrace,
        FieldKind::Stack => Op::StackField { offset },
        FieldKind::StaticString => Op::StaticString {
            offset,
            len: desc.size,
        },
        FieldKind::DynString => Op::DynString { offset },
        FieldKind::RelDynString => Op::RelDynString { offset },
        FieldKind::Function => return None,
        FieldKind::Other | FieldKind::PtrString | FieldKind::Cpu => Op::Num {
            offset,
            load: match (desc.size, desc.signed) {
                (1, false) => Load::U8,
                (1, true) => Load::S8,
                (2, false) => Load::U16,
                (2, true) => Load::S16,
                (4, false) => Load::U32,
                (4, true) => Load::S32,
                (8, false) => Load::U64,
                (8, true) => Load::S64,
                _ => return None,
            },
        },
    })
}

/// How a key's values compare.
///
/// PARITY: `create_tracing_map_fields()` compares the bytes of a `char *` as a string, and has no
/// order for `common_comm`.
fn key_order(field: &Field) -> Order {
    match field.op {
        Op::Num { .. } => Order::Number {
            size: field.size,
            signed: field.signed,
        },
        Op::Comm | Op::StaticString { .. } | Op::DynString { .. } | Op::RelDynString { .. } => {
            Order::String
        }
        Op::Stacktrace | Op::StackField { .. } => Order::None,
        _ => Order::Number {
            size: 8,
            signed: field.signed,
        },
    }
}

/// What an operation of the event's fields produces.
fn kind(op: Op) -> Kind {
    match op {
        Op::Comm
        | Op::StaticString { .. }
        | Op::DynString { .. }
        | Op::RelDynString { .. }
        | Op::EntryComm => Kind::String,
        Op::Stacktrace | Op::StackField { .. } => Kind::Stack,
        _ => Kind::Number,
    }
}
