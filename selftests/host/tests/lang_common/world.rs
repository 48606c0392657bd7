// SPDX-License-Identifier: GPL-2.0

//! Several events with triggers, for what a trigger sees of others.

use rust_hist::{
    alloc::AllocError,
    error::{
        ErrKind,
        Errno,
        Refusal, //
    },
    field::{
        FieldDesc,
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
    },
    schema::{
        self,
        Schema, //
    },
};

use super::*;

/// A trigger on an event.
pub(crate) struct Trigger {
    pub(crate) event: (&'static str, &'static str),
    pub(crate) text: Vec<u8>,
    pub(crate) program: Program,
}

/// Events of one instance, with the triggers that they have.
pub(crate) struct World {
    events: Vec<(&'static str, &'static str, Event)>,
    pub(crate) triggers: Vec<Trigger>,
    /// The synthetic events.
    pub(crate) synths: Vec<Schema>,
    /// The event that the next trigger is for.
    own: (&'static str, &'static str),
}

impl World {
    /// The events `kmem.kmalloc`, `sched.switch` and `zoo.all`, no trigger; the next one is for
    /// `zoo.all`.
    pub(crate) fn new() -> Self {
        Self {
            events: vec![
                ("kmem", "kmalloc", KMALLOC),
                ("sched", "switch", SWITCH),
                ("zoo", "all", ZOO),
            ],
            triggers: Vec::new(),
            synths: Vec::new(),
            own: ("zoo", "all"),
        }
    }

    /// Puts a trigger on an event.
    pub(crate) fn with(mut self, system: &'static str, event: &'static str, text: &str) -> Self {
        let own = core::mem::replace(&mut self.own, (system, event));
        let program = create(&mut self, text.as_bytes())
            .unwrap_or_else(|refusal| panic!("{text}: {refusal:?}"));

        self.triggers.push(Trigger {
            event: (system, event),
            text: text.as_bytes().to_vec(),
            program,
        });
        self.own = own;
        self
    }

    /// Defines a synthetic event.
    pub(crate) fn synth(mut self, text: &str) -> Self {
        match schema::parse(text.as_bytes(), |_| false) {
            Ok(schema::SynthCommand::Create(schema)) => self.synths.push(schema),
            other => panic!("{text}: {other:?}"),
        }
        self
    }

    /// Makes this event the one that the next trigger is for.
    pub(crate) fn on(mut self, system: &'static str, event: &'static str) -> Self {
        self.own = (system, event);
        self
    }

    /// Compiles a trigger for the world's own event.
    pub(crate) fn compile(&mut self, text: &str) -> Result<Program, Refusal> {
        create(self, text.as_bytes())
    }

    /// Checks that `text` is accepted and printed as `expected`, after which [`TAIL`] may stand for
    /// itself; and that what is printed makes the same trigger and the same line again.
    pub(crate) fn accepts(&mut self, text: &str, expected: &str) -> Program {
        let program = self
            .compile(text)
            .unwrap_or_else(|refusal| panic!("{text}: {refusal:?}"));
        let line = line_of(&program, text.as_bytes());
        let printed = std::str::from_utf8(behind_prefix(&line)).expect("is text");

        assert_eq!(printed, expected, "{text}");

        let printed = std::str::from_utf8(typed(&line)).expect("is text");
        let again = self
            .compile(printed)
            .unwrap_or_else(|refusal| panic!("{printed}: {refusal:?}"));

        assert_eq!(line_of(&again, printed.as_bytes()), line);
        assert!(program.same_trigger(text.as_bytes(), &again, printed.as_bytes()));
        assert!(again.same_trigger(printed.as_bytes(), &program, text.as_bytes()));

        let removal = Program::compile(
            &lang::parse(b"hist", printed.as_bytes()).expect("parses"),
            self,
            Purpose::Change,
        )
        .expect("can be looked for");

        assert!(program.same_trigger(text.as_bytes(), &removal, printed.as_bytes()));
        program
    }

    /// Checks that `text` is refused with `errno` and an entry: a kind, and the text whose first place the caret is at,
    /// or the place of `^` in it.
    pub(crate) fn refuses(&mut self, text: &str, errno: Errno, (kind, at): (ErrKind, &str)) {
        let whole = format!("hist:{text}");
        let caret = at.find('^').unwrap_or(0);
        let found = whole.find(&at.replace('^', ""));

        self.refuses_at(text, errno, (kind, found.map_or(0, |found| found + caret)));
    }

    /// As [`World::refuses`], with the column of the caret.
    pub(crate) fn refuses_at(&mut self, text: &str, errno: Errno, entry: (ErrKind, usize)) {
        let refusal = match self.compile(text) {
            Ok(_) => panic!("{text}: accepted"),
            Err(refusal) => refusal,
        };
        let found = refusal
            .entry()
            .map(|entry| (entry.kind, usize::from(entry.at)));

        assert_eq!(found, Some(entry), "{text}");
        assert_eq!(refusal.errno, errno, "{text}");
    }

    fn export(&self, name: &[u8], mut is: impl FnMut(&Trigger) -> bool) -> Option<ForeignVar<'_>> {
        self.triggers
            .iter()
            .enumerate()
            .filter(|(_, trigger)| is(trigger))
            .find_map(|(i, trigger)| {
                let table = u16::try_from(i).expect("few");

                trigger.program.export(name, &trigger.text, table)
            })
    }
}

impl Resolver for World {
    fn field(&self, name: &[u8]) -> Option<FieldDesc<'_>> {
        self.events
            .iter()
            .find(|(system, event, _)| (*system, *event) == self.own)
            .and_then(|(_, _, event)| event.field(name))
    }

    fn is_own(&self, system: &[u8], event: &[u8]) -> bool {
        (system, event) == (self.own.0.as_bytes(), self.own.1.as_bytes())
    }

    fn event_exists(&self, system: &[u8], event: &[u8]) -> bool {
        self.events
            .iter()
            .any(|(s, e, _)| (system, event) == (s.as_bytes(), e.as_bytes()))
    }

    fn defines(&self, name: &[u8]) -> bool {
        self.export(name, |trigger| trigger.event == self.own)
            .is_some()
    }

    fn var_of(
        &mut self,
        system: &[u8],
        event: &[u8],
        name: &[u8],
    ) -> Result<Option<ForeignVar<'_>>, LookupError> {
        Ok(self.export(name, |trigger| {
            (system, event) == (trigger.event.0.as_bytes(), trigger.event.1.as_bytes())
        }))
    }

    fn var(&mut self, name: &[u8]) -> Result<Option<ForeignVar<'_>>, LookupError> {
        let mut events: Vec<_> = self
            .triggers
            .iter()
            .filter(|trigger| trigger.program.var(name, &trigger.text).is_some())
            .map(|trigger| trigger.event)
            .collect();

        events.dedup();
        match *events.as_slice() {
            [] => Ok(None),
            [event] => Ok(self.export(name, |trigger| trigger.event == event)),
            _ => Err(LookupError::NotUnique),
        }
    }

    fn synth(&mut self, name: &[u8]) -> Result<Option<u16>, AllocError> {
        let found = self
            .synths
            .iter()
            .position(|synth| synth.name().to_bytes() == name);

        Ok(found.map(|at| u16::try_from(at).expect("few")))
    }

    fn synth_field(&self, synth: u16, index: usize) -> Option<SynthField<'_>> {
        self.synths
            .get(usize::from(synth))?
            .field(index)
            .map(SynthField::from)
    }

    fn matched_field(
        &mut self,
        user: &Program,
        system: &[u8],
        event: &[u8],
        name: &[u8],
    ) -> Result<MatchedField<'_>, AllocError> {
        let Some(&(system, event, _)) = self
            .events
            .iter()
            .find(|(s, e, _)| (system, event) == (s.as_bytes(), e.as_bytes()))
        else {
            return Ok(MatchedField::NoEvent);
        };
        let Some(model) = self
            .triggers
            .iter()
            .find(|trigger| trigger.event == (system, event) && trigger.program.has_keys_of(user))
        else {
            return Ok(MatchedField::NoHist);
        };
        let var = [b"synthetic_", name].concat();
        let is_there = |world: &Self| {
            world
                .export(&var, |trigger| trigger.event == (system, event))
                .is_some()
        };

        if !is_there(self) {
            let filter = model.program.filter(&model.text);
            let mut helper = Text::default();

            model
                .program
                .write_helper(&model.text, name, filter, &mut helper)
                .expect("the collector takes everything");

            let own = core::mem::replace(&mut self.own, (system, event));
            let made = create(self, &helper.0);

            self.own = own;
            match made {
                Ok(program) => self.triggers.push(Trigger {
                    event: (system, event),
                    text: helper.0,
                    program,
                }),
                Err(refusal) if refusal.is_silent() => return Err(AllocError),
                Err(refusal) => {
                    return Ok(MatchedField::NotCreated(
                        refusal.entry().map(|entry| entry.kind),
                    ))
                }
            }
        }
        Ok(self
            .export(&var, |trigger| trigger.event == (system, event))
            .map_or(MatchedField::NoVar, MatchedField::Var))
    }
}
