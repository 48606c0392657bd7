// SPDX-License-Identifier: GPL-2.0

//! Surroundings in which a trigger finds all that it names, for texts whose event nobody has said.
//!
//! Each name that can be one is a field, and each variable that the trigger does not define is one of another trigger.
//! What type they have is not known: where the compiler refuses one type another one is tried, so that a text is refused
//! only if no event and no other trigger could make it valid.

use std::cell::{
    Cell,
    RefCell, //
};

use rust_hist::{
    alloc::AllocError,
    error::{
        ErrKind,
        Refusal, //
    },
    field::{
        FieldDesc,
        FieldKind,
        SynthClass,
        SynthField, //
    },
    lang,
    program::{
        ForeignVar,
        LookupError,
        MatchedField,
        Program,
        Purpose,
        Resolver, //
    }, //
};

/// The types that a field of a synthetic event is tried with.
const SYNTH: [(&[u8], u32, bool, SynthClass); 10] = [
    (b"u64", 8, false, SynthClass::Number),
    (b"s64", 8, true, SynthClass::Number),
    (b"u32", 4, false, SynthClass::Number),
    (b"s32", 4, true, SynthClass::Number),
    (b"u16", 2, false, SynthClass::Number),
    (b"s16", 2, true, SynthClass::Number),
    (b"u8", 1, false, SynthClass::Number),
    (b"s8", 1, true, SynthClass::Number),
    (b"__data_loc char[]", 4, false, SynthClass::DynString),
    (b"unsigned long[]", 8, false, SynthClass::Stack),
];

/// A variable of another trigger.
struct Other {
    name: Vec<u8>,
    text: Vec<u8>,
    program: Program,
}

/// The surroundings.
pub(crate) struct Any<'t> {
    text: &'t [u8],
    others: Vec<Other>,
    /// Whether variables of others are in microseconds.
    usecs: bool,
    /// Synthetic events: their names, and the types of their fields by their places in [`SYNTH`].
    synths: Vec<(Vec<u8>, Vec<usize>)>,
    /// The event of the trigger, where that makes a difference.
    own: Option<(Vec<u8>, Vec<u8>)>,
    /// The event whose variable was asked for last.
    asked: Option<(Vec<u8>, Vec<u8>)>,
    /// The variable that was asked for last and is not there yet, and the synthetic event.
    wanted: RefCell<Option<Vec<u8>>>,
    generated: Cell<Option<u16>>,
}

/// A field that all events have, or any other name as a field of its own: a stack where the text shows it as one.
fn any_field(text: &[u8], name: &[u8]) -> Option<FieldDesc<'static>> {
    let field = |type_name: &'static [u8], size, signed, kind| {
        Some(FieldDesc {
            type_name,
            offset: 8,
            size,
            signed,
            kind,
        })
    };
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';

    match name {
        b"cpu" | b"CPU" | b"common_cpu" => field(b"int", 0, true, FieldKind::Cpu),
        b"comm" | b"COMM" => field(b"char *", 0, true, FieldKind::Comm),
        b"stacktrace" | b"STACKTRACE" => field(b"char *", 0, true, FieldKind::Stack),
        b"common_type" => field(b"unsigned short", 2, false, FieldKind::Other),
        b"common_flags" | b"common_preempt_count" => {
            field(b"unsigned char", 1, false, FieldKind::Other)
        }
        b"common_pid" => field(b"int", 4, true, FieldKind::Other),
        [] | [b'0'..=b'9', ..] => None,
        _ if name.starts_with(b"common_") || !name.iter().all(is_name) => None,
        _ if name.ends_with(b"_comm") => field(b"char[16]", 16, false, FieldKind::StaticString),
        _ => {
            let stack = [name, b".stacktrace"].concat();

            match text.windows(stack.len()).any(|window| window == stack) {
                true => field(b"unsigned long[]", 4, false, FieldKind::Stack),
                false => field(b"u64", 8, false, FieldKind::Other),
            }
        }
    }
}

/// The event of a trigger whose variables others read.
struct Fields;

impl Resolver for Fields {
    fn field(&self, name: &[u8]) -> Option<FieldDesc<'_>> {
        any_field(&[], name)
    }
}

/// Compiles a whole trigger.
fn create(prefix: &[u8], text: &[u8], event: &mut dyn Resolver) -> Result<Program, Refusal> {
    let spec = lang::parse(prefix, text)?;
    let mut program = Program::compile(&spec, event, Purpose::New)?;

    program.create_actions(&spec, event)?;
    Ok(program)
}

/// Compiles the text after `hist:` for an event that has all fields and variables in it.
///
/// # Errors
///
/// The module's refusal of a text that is valid for no event. Columns in it count the command's `prefix`, too.
pub(crate) fn compile(prefix: &[u8], text: &[u8]) -> Result<Program, Refusal> {
    let mut any = Any {
        text,
        others: Vec::new(),
        usecs: false,
        synths: Vec::new(),
        own: None,
        asked: None,
        wanted: RefCell::new(None),
        generated: Cell::new(None),
    };

    loop {
        any.wanted.take();
        any.generated.set(None);

        match create(prefix, text, &mut any) {
            Err(refusal) if !any.adapt(&refusal) => return Err(refusal),
            Err(_) => {}
            Ok(program) => return Ok(program),
        }
    }
}

impl Any<'_> {
    /// Makes the surroundings others, after such a refusal. Returns whether there are any that were not tried.
    fn adapt(&mut self, refusal: &Refusal) -> bool {
        if let Some(name) = self.wanted.take() {
            return self.define(name);
        }
        // A key may be a variable of the trigger itself, also with the name of its event.
        if refusal.is(ErrKind::InvalidRefKey) && self.own.is_none() && self.asked.is_some() {
            self.own = self.asked.take();
            self.others.clear();
            return true;
        }
        if refusal.is(ErrKind::TimestampMismatch) && !self.usecs {
            self.usecs = true;
            let others = core::mem::take(&mut self.others);
            let mut defined = false;

            for other in others {
                defined |= self.define(other.name);
            }
            return defined;
        }

        let generated = self.generated.get().map(usize::from);
        let Some((_, fields)) = generated.and_then(|synth| self.synths.get_mut(synth)) else {
            return false;
        };

        if !refusal.is(ErrKind::SynthTypeMismatch) {
            return false;
        }
        match fields.last_mut() {
            // The compiler asks for one field after the other: either the last one does not fit, or the next is
            // missing.
            Some(last) if refusal.detail() != MISSING && *last + 1 < SYNTH.len() => *last += 1,
            _ if refusal.detail() == MISSING => fields.push(0),
            _ => return false,
        }
        true
    }

    /// Has another trigger define a variable. Returns whether that is possible.
    fn define(&mut self, name: Vec<u8>) -> bool {
        let time: &[u8] = match self.usecs {
            true => b"common_timestamp.usecs",
            false => b"value",
        };
        let keys = join(self.text).unwrap_or(b"value");
        let text = [b"keys=", keys, b":", &name[..], b"=", time].concat();
        let Ok(program) = create(b"hist", &text, &mut Fields) else {
            return false;
        };
        let is_defined = program.var(&name, &text).is_some();

        if is_defined {
            self.others.push(Other {
                name,
                text,
                program,
            });
        }
        is_defined
    }

    fn other(&self, name: &[u8]) -> Option<ForeignVar<'_>> {
        let mut others = self.others.iter().enumerate();
        let Some((place, other)) = others.find(|(_, other)| other.name == name) else {
            self.wanted.replace(Some(name.to_vec()));
            return None;
        };

        other
            .program
            .export(name, &other.text, u16::try_from(place).ok()?)
    }
}

/// The fields by which a text that was parsed looks for the variables of others.
fn join(text: &[u8]) -> Option<&[u8]> {
    text.split(|&byte| byte == b':')
        .filter_map(|word| word.strip_prefix(b"join("))
        .find_map(|list| list.split(|&byte| byte == b')').next())
}

/// The refusal for a synthetic event with fewer fields than the action has parameters.
const MISSING: &[u8] = b"the event has fewer fields";

impl Resolver for Any<'_> {
    fn field(&self, name: &[u8]) -> Option<FieldDesc<'_>> {
        any_field(self.text, name)
    }

    fn is_own(&self, system: &[u8], event: &[u8]) -> bool {
        let own = self.own.as_ref();

        own.is_some_and(|own| (&own.0[..], &own.1[..]) == (system, event))
    }

    fn event_exists(&self, _system: &[u8], _event: &[u8]) -> bool {
        true
    }

    fn var_of(
        &mut self,
        system: &[u8],
        event: &[u8],
        name: &[u8],
    ) -> Result<Option<ForeignVar<'_>>, LookupError> {
        self.asked = Some((system.to_vec(), event.to_vec()));
        Ok(self.other(name))
    }

    fn var(&mut self, name: &[u8]) -> Result<Option<ForeignVar<'_>>, LookupError> {
        Ok(self.other(name))
    }

    fn synth(&mut self, name: &[u8]) -> Result<Option<u16>, AllocError> {
        let found = self.synths.iter().position(|(synth, _)| synth == name);
        let place = found.unwrap_or_else(|| {
            self.synths.push((name.to_vec(), Vec::new()));
            self.synths.len() - 1
        });
        let place = u16::try_from(place).ok();

        self.generated.set(place);
        Ok(place)
    }

    fn synth_field(&self, synth: u16, index: usize) -> Option<SynthField<'_>> {
        let (_, fields) = self.synths.get(usize::from(synth))?;
        let &(type_name, size, signed, class) = SYNTH.get(*fields.get(index)?)?;

        Some(SynthField {
            name: b"field",
            type_name,
            size,
            signed,
            class,
        })
    }

    fn matched_field(
        &mut self,
        _user: &Program,
        _system: &[u8],
        _event: &[u8],
        name: &[u8],
    ) -> Result<MatchedField<'_>, AllocError> {
        let name = name.split(|&byte| byte == b'.').next().unwrap_or(name);

        Ok(match self.other(name) {
            Some(var) => MatchedField::Var(var),
            None => MatchedField::NoVar,
        })
    }
}
