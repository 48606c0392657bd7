// SPDX-License-Identifier: GPL-2.0

//! Triggers that run: programs with their tables, from record to row and to synthetic event.

#![allow(dead_code, reason = "no test file uses all of this")]

use super::{
    common::{
        map,
        Words, //
    },
    lang_common::*,
};
use rust_hist::{
    alloc::AllocError,
    field::{
        FieldDesc,
        SynthField, //
    },
    limits::{
        COMM_WORDS,
        KEY_WORDS_MAX,
        REFS_MAX,
        VALS_MAX,
        VARS_MAX, //
    },
    program::{
        Action,
        Effects,
        ForeignVar,
        LookupError,
        MatchedField,
        Program,
        Refs,
        Resolver,
        Tables, //
    },
    render::{
        Renderer,
        Stats,
        Symbols, //
    },
    schema::{
        self,
        FieldValues,
        KernelFormat,
        Lost,
        Schema,
        Sizes,
        StableValues,
        WithValues,
        HEADER, //
    },
    sync::{
        Atomic,
        Relaxed, //
    },
    text::Out,
    tracing_map::{
        Dimensions,
        Ending,
        Map,
        Pieces,
        Rows,
        SeededHash,
        Shape, //
    },
};
use std::{
    cell::RefCell,
    fmt, //
};

/// CPUs that records come from, [`AROUND`] among them.
pub(crate) const CPUS: u32 = 4;

/// A trigger with its table.
pub(crate) struct Trigger {
    pub(crate) event: (&'static str, &'static str),
    pub(crate) text: Vec<u8>,
    pub(crate) program: Program,
    pub(crate) map: Map<Words, SeededHash>,
}

/// All triggers of an instance, and all synthetic events.
#[derive(Default)]
pub(crate) struct World(pub(crate) Vec<Trigger>, pub(crate) Vec<Schema>);

/// An event of that instance, as the compiler sees it.
pub(crate) struct Place<'w> {
    pub(crate) fields: &'w Event,
    pub(crate) event: (&'static str, &'static str),
    pub(crate) world: &'w World,
}

pub(crate) fn is(event: (&str, &str), system: &[u8], name: &[u8]) -> bool {
    (event.0.as_bytes(), event.1.as_bytes()) == (system, name)
}

impl World {
    /// Defines a synthetic event.
    pub(crate) fn synth(&mut self, text: &str) {
        match schema::parse(text.as_bytes(), |_| false) {
            Ok(schema::SynthCommand::Create(schema)) => self.1.push(schema),
            other => panic!("{text}: {other:?}"),
        }
    }

    pub(crate) fn find(
        &self,
        name: &[u8],
        on: impl Fn(&Trigger) -> bool,
    ) -> Option<ForeignVar<'_>> {
        self.0.iter().enumerate().find_map(|(i, trigger)| {
            on(trigger)
                .then(|| trigger.program.export(name, &trigger.text, i as u16))
                .flatten()
        })
    }

    pub(crate) fn try_add(
        &mut self,
        fields: &Event,
        event: (&'static str, &'static str),
        text: &[u8],
    ) -> Result<usize, String> {
        let mut place = Place {
            fields,
            event,
            world: self,
        };
        let program = create(&mut place, text).map_err(|refusal| format!("{refusal:?}"))?;
        let dimensions = Dimensions {
            bits: 7,
            key_words: program.key_words(),
            aux_words: program.aux_words(),
            sums: program.sums(),
        };
        let shape = Shape::new(dimensions, CPUS).ok_or("the shape")?;

        self.0.push(Trigger {
            event,
            text: text.to_vec(),
            program,
            map: map(shape),
        });
        Ok(self.0.len() - 1)
    }

    /// Adds a trigger and returns its number.
    pub(crate) fn add(
        &mut self,
        fields: &Event,
        event: (&'static str, &'static str),
        text: &str,
    ) -> usize {
        self.try_add(fields, event, text.as_bytes())
            .unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    /// Runs one record through a trigger, as the module does.
    pub(crate) fn hit(&self, n: usize, record: &[u8], around: &Around) -> Ended {
        let Trigger { program, map, .. } = &self.0[n];
        let (mut key, mut refs, mut vals) = ([0; KEY_WORDS_MAX], [0; REFS_MAX], [0; VALS_MAX]);
        let mut ended = Ended {
            ending: Ending::Hit,
            lost: 0,
            snapshots: Vec::new(),
            traced: Vec::new(),
        };
        let shard = map.shard(around.cpu);

        let key = program.key(record, around, &mut key);
        forms_agree(program, record, around, key);
        let Ok(refs) = program.resolve(key, self, &mut refs) else {
            ended.ending = Ending::Ignored;
            shard.count(ended.ending);
            return ended;
        };
        let elt = map
            .insert(key, |aux| {
                for (to, from) in aux.iter().zip(words_of(around.comm, COMM_WORDS)) {
                    if program.needs_comm() {
                        to.store(from, Relaxed);
                    }
                }
            })
            .expect("room for all keys");
        shard.hit(elt, program.values(record, around, &refs, &mut vals));
        let aux = map.aux(elt);
        let mut own = [0; VARS_MAX];
        let own = program.set_vars(aux, record, around, &refs, &mut own);
        let outside = Outside::new(self);

        ended.lost = program.act(aux, &own, record, around, &refs, &outside);
        ended.snapshots = outside.snapshots.take();
        ended.traced = outside.traced.take();
        ended
    }

    /// The rows as a reader sees them, by ascending key.
    pub(crate) fn rows(&self, n: usize) -> Vec<String> {
        let Trigger {
            text, program, map, ..
        } = &self.0[n];
        let mut words = vec![0xdead_beef; map.used() * map.shape().row_words()];
        let len = map.copy_rows(map.used(), &mut words, |from, to| {
            program.copy_aux(from, to)
        });
        let rows = Rows::new(map.shape(), &words, len);
        let stats = Stats::of(&rows);
        let table = Renderer {
            program,
            text,
            stats: &stats,
            symbols: &Frames,
        };
        let mut rows: Vec<_> = rows.iter().collect();
        rows.sort_by(|a, b| a.key.cmp(b.key));
        rows.iter()
            .map(|row| {
                let mut out = Text::default();
                table.row(row, &mut out).expect("printed");
                String::from_utf8_lossy(&out.0).into_owned()
            })
            .collect()
    }

    /// The extra words of the entry with this key.
    pub(crate) fn aux(&self, n: usize, key: &[u64]) -> &[Atomic<u64>] {
        let map = &self.0[n].map;
        map.lookup(key).map(|elt| map.aux(elt)).expect("an entry")
    }
}

/// Checks that the forms of a key and of values in which the module's hits want them say the same.
fn forms_agree(program: &Program, record: &[u8], around: &Around, key: &[u64]) {
    let mut whole = key.to_vec();
    whole.resize(program.key_words(), 0);

    let mut pieced = vec![0; program.key_words()];
    program.key_in_pieces(record, around, |pieces| {
        pieces.each(|at, word| pieced[at] = word);
    });
    assert_eq!(pieced, whole);

    let cpu = || around.cpu;
    let short = match program.number_keys() {
        0 => return,
        1 => program.numbers_key::<1, true>(record, cpu).to_vec(),
        2 => program.numbers_key::<2, true>(record, cpu).to_vec(),
        3 => program.numbers_key::<3, true>(record, cpu).to_vec(),
        4 => program.numbers_key::<4, true>(record, cpu).to_vec(),
        words => panic!("{words} words"),
    };
    assert_eq!(short, whole);

    let mut room = [0; VALS_MAX];
    let values = program.values(record, around, &Refs::none(), &mut room);
    for (i, value) in values.iter().enumerate() {
        assert_eq!(program.number_val(i, record, cpu), *value);
    }
}

/// What came of one record.
#[derive(Debug, PartialEq)]
pub(crate) struct Ended {
    pub(crate) ending: Ending,
    pub(crate) lost: u64,
    pub(crate) snapshots: Vec<u64>,
    /// The synthetic events as `trace` shows them.
    pub(crate) traced: Vec<String>,
}

/// What actions of one hit do outside of the entry.
pub(crate) struct Outside<'w> {
    synths: &'w [Schema],
    pub(crate) snapshots: RefCell<Vec<u64>>,
    pub(crate) traced: RefCell<Vec<String>>,
    pub(crate) records: RefCell<Vec<Vec<u8>>>,
}

impl<'w> Outside<'w> {
    pub(crate) fn new(world: &'w World) -> Self {
        Self {
            synths: &world.1,
            snapshots: RefCell::default(),
            traced: RefCell::default(),
            records: RefCell::default(),
        }
    }
}

impl Effects for &Outside<'_> {
    fn snapshot(self, _: &Action, value: u64) {
        self.snapshots.borrow_mut().push(value);
    }

    fn is_wanted(self, _: u16) -> bool {
        true
    }

    fn trace(self, synth: u16, values: &impl FieldValues) {
        let schema = &self.synths[usize::from(synth)];
        let mut text = Text::default();

        match values.materialize(Written(schema)) {
            Ok(record) => {
                schema
                    .write_line(&record, false, &Frames, &mut text)
                    .expect("printed");
                self.traced
                    .borrow_mut()
                    .push(String::from_utf8_lossy(&text.0).trim_end().to_string());
                self.records.borrow_mut().push(record);
            }
            Err(lost) => self.traced.borrow_mut().push(format!("{lost:?}")),
        }
    }
}

/// Writes a record.
struct Written<'s>(&'s Schema);

impl WithValues for Written<'_> {
    type Out = Result<Vec<u8>, Lost>;

    fn run(self, values: &impl FieldValues) -> Self::Out {
        let mut sizes = Sizes::new();
        self.0.measure(values, &mut sizes)?;
        let mut record = vec![0xaa; sizes.record_len()];

        self.0.write(values, &sizes, &mut record)?;

        // Stable values are written by the fast path, which has to leave the same record.
        let mut stable = StableValues::new();
        if self.0.collect_stable(values, &mut stable) {
            let mut again = vec![0x55; stable.record_len()];
            assert_eq!(self.0.write_stable(&stable, &mut again), Some(()));
            assert_eq!(again[HEADER..], record[HEADER..]);
        }
        Ok(record)
    }
}

impl KernelFormat for Frames {
    fn symbol_offset<W: Out>(&self, addr: u64, out: &mut W) -> fmt::Result {
        write!(out, "sym_{addr:x}+0x0")
    }

    fn gfp_flags<W: Out>(&self, flags: u64, out: &mut W) -> fmt::Result {
        write!(out, "{flags:#x}")
    }
}

impl Tables for &World {
    fn aux(&self, table: u16, key: &[u64]) -> Option<&[Atomic<u64>]> {
        let map = &self.0[usize::from(table)].map;
        map.lookup(key).map(|elt| map.aux(elt))
    }
}

impl Resolver for Place<'_> {
    fn field(&self, name: &[u8]) -> Option<FieldDesc<'_>> {
        self.fields.field(name)
    }

    fn is_own(&self, system: &[u8], event: &[u8]) -> bool {
        is(self.event, system, event)
    }

    fn event_exists(&self, system: &[u8], event: &[u8]) -> bool {
        self.is_own(system, event) || self.world.0.iter().any(|t| is(t.event, system, event))
    }

    fn defines(&self, name: &[u8]) -> bool {
        self.world
            .find(name, |trigger| trigger.event == self.event)
            .is_some()
    }

    fn var_of(
        &mut self,
        system: &[u8],
        event: &[u8],
        name: &[u8],
    ) -> Result<Option<ForeignVar<'_>>, LookupError> {
        Ok(self
            .world
            .find(name, |trigger| is(trigger.event, system, event)))
    }

    fn var(&mut self, name: &[u8]) -> Result<Option<ForeignVar<'_>>, LookupError> {
        Ok(self.world.find(name, |_| true))
    }

    fn synth(&mut self, name: &[u8]) -> Result<Option<u16>, AllocError> {
        let is = |schema: &Schema| schema.name().to_bytes() == name;

        Ok(self.world.1.iter().position(is).map(|at| at as u16))
    }

    fn synth_field(&self, synth: u16, index: usize) -> Option<SynthField<'_>> {
        self.world.1[usize::from(synth)]
            .field(index)
            .map(SynthField::from)
    }

    /// There is one if a test has put the helper there.
    fn matched_field(
        &mut self,
        _: &Program,
        system: &[u8],
        event: &[u8],
        name: &[u8],
    ) -> Result<MatchedField<'_>, AllocError> {
        let name = [b"synthetic_", name].concat();

        Ok(self
            .world
            .find(&name, |trigger| is(trigger.event, system, event))
            .map_or(MatchedField::NoHist, MatchedField::Var))
    }
}

/// Symbols that are told apart.
pub(crate) struct Frames;

impl Symbols for Frames {
    fn symbol<W: Out>(&self, addr: u64, out: &mut W) -> fmt::Result {
        write!(out, "sym_{addr:x}")
    }

    fn symbol_offset<W: Out>(&self, addr: u64, out: &mut W) -> fmt::Result {
        write!(out, "sym_{addr:x}+0x0")
    }

    fn syscall(&self, _: u64) -> Option<&[u8]> {
        None
    }
}

/// A string as words, padded with zeros.
pub(crate) fn words_of(text: &str, words: usize) -> Vec<u64> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(words * 8, 0);
    bytes
        .chunks_exact(8)
        .map(|chunk| u64::from_ne_bytes(chunk.try_into().expect("eight")))
        .collect()
}

pub(crate) const WAKING: (&str, &str) = ("sched", "sched_waking");
pub(crate) const SWITCHED: (&str, &str) = ("sched", "sched_switch");

/// Someone wakes `pid`: the fields of a switch serve for that, too.
pub(crate) fn switch(prev: &str, prev_pid: i32, next: &str, next_pid: i32, prio: i32) -> Vec<u8> {
    let mut record = vec![0; 64];
    let mut put = |at: usize, bytes: &[u8]| record[at..at + bytes.len()].copy_from_slice(bytes);

    put(4, &prev_pid.to_ne_bytes());
    put(8, prev.as_bytes());
    put(24, &prev_pid.to_ne_bytes());
    put(28, &7i32.to_ne_bytes());
    put(40, next.as_bytes());
    put(56, &next_pid.to_ne_bytes());
    put(60, &prio.to_ne_bytes());
    record
}

pub(crate) fn at(ts: u64) -> Around {
    Around { ts, ..AROUND }
}

pub(crate) const HIT: Ended = Ended {
    ending: Ending::Hit,
    lost: 0,
    snapshots: Vec::new(),
    traced: Vec::new(),
};
pub(crate) const IGNORED: Ended = Ended {
    ending: Ending::Ignored,
    lost: 0,
    snapshots: Vec::new(),
    traced: Vec::new(),
};
