// SPDX-License-Identifier: GPL-2.0

//! Triggers that run: programs with their tables, from record to row and to synthetic event.

#![allow(dead_code, reason = "no test file uses all of this")]

use super::{
    common::{
        Quarters,
        Same,
        Words, //
    },
    lang_common::*, //
};
use rust_hist::{
    alloc::AllocError,
    field::{
        Env,
        FieldDesc,
        SynthField,
        TaskNumber, //
    },
    limits::{
        COMM_LEN,
        COMM_WORDS,
        STACK_DEPTH, //
    },
    program::{
        self,
        Action,
        ActionKind,
        Context,
        Entry,
        ForeignVar,
        HitPath,
        LookPath,
        LookupError,
        MatchedField,
        MissedIn,
        Needs,
        Outcome,
        Program,
        RecordPath,
        RecordRest,
        Resolver,
        Row,
        NESTED, //
    },
    rate::{
        Limit,
        Turns, //
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
        Acquire,
        Atomic,
        Pair,
        Relaxed,
        Release, //
    },
    text::Out,
    tracing_map::{
        Dimensions,
        Inserter,
        KeyHash,
        Map,
        MapView,
        Row as TableRow,
        Rows,
        SeededHash,
        Shape,
        When, //
    },
};
use std::{
    any::type_name,
    cell::RefCell,
    fmt,
    ops::Range,
    sync::Arc, //
};

mod expiring;

/// CPUs that records come from, [`AROUND`] among them.
pub(crate) const CPUS: u32 = 4;

/// A trigger with its table.
pub(crate) struct Trigger {
    pub(crate) event: (&'static str, &'static str),
    pub(crate) text: Vec<u8>,
    pub(crate) program: Arc<Program>,
    pub(crate) map: Map<Words, Hash>,
    /// The words of the map.
    pub(crate) words: Words,
    /// Maps that take the place of the one before when [`Trigger::exchange`] says so.
    pub(crate) next: Vec<Map<Words, Hash>>,
    /// The number of the map that hits use, and that of the oldest one in which others look for variables. Where there are
    /// no further maps nobody looks at them.
    live: Atomic<u32>,
    oldest: Atomic<u32>,
    /// What is left of its `limit()`.
    pub(crate) turns: Turns,
    /// What the hits need.
    pub(crate) needs: Needs,
    /// The path that the module takes.
    pub(crate) path: Path,
}

impl Trigger {
    /// Has hits go to the next map.
    pub(crate) fn exchange(&self) {
        // As in `Table::exchange`.
        let live = self.number() + 1;

        assert!((live as usize) <= self.next.len());
        self.live.store(live, Release);
    }

    /// Calls `hit` for a hit that has begun before the exchange.
    pub(crate) fn as_before<R>(&self, hit: impl FnOnce() -> R) -> R {
        let live = self.number();

        self.live.store(live.saturating_sub(1), Relaxed);
        let ended = hit();
        self.live.store(live, Relaxed);
        ended
    }

    /// Adds the rows in these slots of the first map to the next one, and carries over what is in them.
    pub(crate) fn take_rows(&self, slots: Range<usize>) {
        let program = &self.program;
        let (fixed, carry) = (program.fixed_words(), |new: &[_], old: &[_]| {
            program.carry(new, old)
        });

        self.live().take_rows(&self.map, slots, 0, fixed, carry);
    }

    /// Takes the maps before the one that hits use out of sight: all of their variables have come to that, or expire.
    pub(crate) fn settle(&self) {
        self.hide(self.number());
    }

    /// Takes the maps before another one out of sight.
    pub(crate) fn hide(&self, number: u32) {
        // As in `Table::grow` and `Epochs::hide`.
        self.oldest.store(number, Release);
    }

    /// The number of the map that hits use.
    fn number(&self) -> u32 {
        match self.next.is_empty() {
            true => 0,
            // As in `Table::in_hit`.
            false => self.live.load(Acquire),
        }
    }

    /// The map before another one, if others look for variables there.
    fn replaced(&self, number: u32) -> Option<u32> {
        // As in `Live::replaced`.
        (number > 0 && number > self.oldest.load(Acquire)).then(|| number - 1)
    }

    /// A map by its number.
    pub(crate) fn numbered(&self, number: u32) -> &Map<Words, Hash> {
        match number.checked_sub(1) {
            None => &self.map,
            Some(n) => &self.next[n as usize],
        }
    }

    /// The map that a hit gets which asks for it now.
    pub(crate) fn live(&self) -> &Map<Words, Hash> {
        self.numbered(self.number())
    }
}

/// How tables are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tables {
    pub(crate) bits: u32,
    pub(crate) cpus: u32,
    pub(crate) hash: Hash,
}

impl Default for Tables {
    fn default() -> Self {
        Self {
            bits: 7,
            cpus: CPUS,
            hash: Hash::Seeded,
        }
    }
}

impl Tables {
    fn shape(&self, program: &Program) -> Option<Shape> {
        let dimensions = Dimensions {
            bits: self.bits,
            key_words: program.key_words(),
            aux_words: program.aux_words(),
            sums: program.sums(),
            others: program.others(),
            expires: program.expiry().is_some(),
            // A table of a test may grow once.
            grows_to: program.grows_to().map_or(0, |_| self.bits + 1),
        };

        Shape::with(dimensions, *program.merge(), self.cpus)
    }

    pub(crate) fn map(&self, shape: Shape) -> (Map<Words, Hash>, Words) {
        let words: Words = (0..shape.pairs()).map(|_| Pair::zero()).collect();
        let map = Map::new(shape, words.clone(), self.hash).expect("as many words as it asks for");

        (map, words)
    }
}

/// The hash of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Hash {
    /// That of the module.
    #[default]
    Seeded,
    /// All keys begin at the last slot, and those of one length have the same hash.
    Same,
    /// Short keys begin at one of four slots.
    Quarters,
}

impl KeyHash for Hash {
    fn hash(self, key: &[u64]) -> u64 {
        match self {
            Self::Seeded => SeededHash::default().hash(key),
            Self::Same => Same.hash(key),
            Self::Quarters => Quarters.hash(key),
        }
    }

    fn end(self, sum: u64) -> u64 {
        match self {
            Self::Same => u64::MAX,
            _ => SeededHash::default().end(sum),
        }
    }
}

/// All triggers of an instance, and all synthetic events.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) triggers: Vec<Trigger>,
    pub(crate) synths: Vec<Arc<Schema>>,
    /// How the tables of further triggers are made.
    pub(crate) tables: Tables,
}

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
            Ok(schema::SynthCommand::Create(schema)) => self.synths.push(Arc::new(schema)),
            other => panic!("{text}: {other:?}"),
        }
    }

    pub(crate) fn find(
        &self,
        name: &[u8],
        on: impl Fn(&Trigger) -> bool,
    ) -> Option<ForeignVar<'_>> {
        self.triggers.iter().enumerate().find_map(|(i, trigger)| {
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
        let shape = self.tables.shape(&program).ok_or("the shape")?;
        let (map, words) = self.tables.map(shape);
        let needs = self.needs(&program, &shape, event);

        self.triggers.push(Trigger {
            event,
            text: text.to_vec(),
            program: Arc::new(program),
            map,
            words,
            next: Vec::new(),
            live: Atomic::<u32>::new(0),
            oldest: Atomic::<u32>::new(0),
            turns: Turns::new(),
            needs,
            path: program::select::<Path>(&needs),
        });
        Ok(self.triggers.len() - 1)
    }

    /// What the hits of a program on `event` need, as the module finds it out.
    fn needs(&self, program: &Program, shape: &Shape, event: (&str, &str)) -> Needs {
        let generates = |action: &Action| matches!(action.kind(), ActionKind::Trace { .. });
        let is_nested = event.0 == SYNTHETIC || program.actions().iter().any(generates);
        let sources = program.refs().iter().map(|reference| {
            let source = &self.triggers[usize::from(reference.table())];
            (source.program.key_words(), source.program.moves())
        });

        program.needs(!shape.per_cpu(), is_nested, sources)
    }

    /// The same triggers, hit by nobody yet.
    pub(crate) fn anew(&self) -> Self {
        let trigger = |trigger: &Trigger| {
            let (map, words) = self.tables.map(*trigger.map.shape());

            Trigger {
                text: trigger.text.clone(),
                program: trigger.program.clone(),
                map,
                words,
                next: Vec::new(),
                live: Atomic::<u32>::new(0),
                oldest: Atomic::<u32>::new(0),
                turns: Turns::new(),
                ..*trigger
            }
        };

        Self {
            triggers: self.triggers.iter().map(trigger).collect(),
            synths: self.synths.clone(),
            tables: self.tables,
        }
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

    /// Runs one record through a trigger, on the path that the module takes.
    pub(crate) fn hit(&self, n: usize, record: &[u8], around: &Around) -> Ended {
        self.hit_on(&self.triggers[n].path, n, record, around)
    }

    /// The same, on some path that offers what the hits of the trigger need.
    pub(crate) fn hit_on(&self, path: &Path, n: usize, record: &[u8], around: &Around) -> Ended {
        self.interrupted(path, n, record, around, &|| ())
    }

    /// The same. `interrupt` comes between a path that needs nothing but the record and its rest, and between variables and
    /// actions: when an action asks whether anybody wants its event.
    pub(crate) fn interrupted(
        &self,
        path: &Path,
        n: usize,
        record: &[u8],
        around: &Around,
        interrupt: &dyn Fn(),
    ) -> Ended {
        let ended = RefCell::default();

        (path.enter)(InWorld {
            world: self,
            trigger: &self.triggers[n],
            record,
            around,
            has_record_alone: false,
            ended: &ended,
            interrupt,
        });
        ended.into_inner()
    }

    /// The paths that offer what the hits of a trigger need, in the order of the table.
    pub(crate) fn paths(&self, n: usize) -> impl Iterator<Item = Path> {
        let needs = self.triggers[n].needs;
        let covers = move |row: &Row<Path>| needs.are_covered_by(&row.offers);

        program::paths::<Path>()
            .into_iter()
            .filter(covers)
            .map(|row| row.enter)
    }

    /// Makes the next map of a trigger, with twice the elements and the keys that are there, as `Table::grow` does before hits
    /// are given it.
    pub(crate) fn enlarge(&mut self, n: usize) {
        let Trigger { program, map, .. } = &self.triggers[n];
        let dimensions = Dimensions {
            bits: map.shape().elts().ilog2() + 1,
            key_words: program.key_words(),
            aux_words: program.aux_words(),
            sums: program.sums(),
            ..Dimensions::default()
        };
        let shape = Shape::new(dimensions, self.tables.cpus).expect("in range");
        let mut next = self.tables.map(shape).0;

        next.reserve_for(map);
        for slots in map.slot_ranges() {
            next.take_keys(map, slots, program.fixed_words());
        }
        self.triggers[n].next = vec![next];
    }

    /// Calls `look` with the rows of a table, by ascending key.
    pub(crate) fn with_rows<R>(
        &self,
        n: usize,
        look: impl FnOnce(&Rows<'_>, Vec<TableRow<'_>>) -> R,
    ) -> R {
        let Trigger { program, .. } = &self.triggers[n];
        let map = self.triggers[n].live();
        let mut words = vec![0xdead_beef; map.used() * map.shape().row_words()];
        let len = map.copy_rows(map.used(), &mut words, |from, to| {
            program.copy_aux(from, to)
        });
        let rows = Rows::new(map.shape(), &words, len);
        let mut sorted: Vec<_> = rows.iter().collect();

        sorted.sort_by(|a, b| a.key.cmp(b.key));
        look(&rows, sorted)
    }

    /// The rows as a reader sees them, by ascending key.
    pub(crate) fn rows(&self, n: usize) -> Vec<String> {
        let Trigger { text, program, .. } = &self.triggers[n];

        self.with_rows(n, |rows, sorted| {
            let stats = Stats::of(program, rows);
            let table = Renderer {
                program,
                text,
                stats: &stats,
                symbols: &Frames,
            };
            let printed = sorted.iter().map(|row| {
                let mut out = Text::default();

                table.row(row, &mut out).expect("printed");
                String::from_utf8_lossy(&out.0).into_owned()
            });

            printed.collect()
        })
    }

    /// Keys and sums, by ascending key.
    pub(crate) fn sums(&self, n: usize) -> Vec<(Vec<u64>, Vec<u64>)> {
        self.with_rows(n, |_, rows| {
            let of = |row: &TableRow<'_>| (row.key.to_vec(), row.sums.to_vec());

            rows.iter().map(of).collect()
        })
    }

    /// The extra words of the entry with this key.
    pub(crate) fn aux(&self, n: usize, key: &[u64]) -> &[Pair] {
        let map = &self.triggers[n].map;
        map.lookup(key).map(|elt| map.aux(elt)).expect("an entry")
    }
}

/// What came of one record.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Ended {
    /// Whether an element counted it; else the account says why not.
    pub(crate) is_hit: bool,
    /// Whether a larger table was asked for.
    pub(crate) grows: bool,
    pub(crate) snapshots: Vec<u64>,
    /// The keys of the snapshots, each with the name of the task.
    pub(crate) snapshot_keys: Vec<Vec<u64>>,
    /// The synthetic events as `trace` shows them.
    pub(crate) traced: Vec<String>,
}

impl Ended {
    const fn new(is_hit: bool) -> Self {
        Self {
            is_hit,
            grows: false,
            snapshots: Vec::new(),
            snapshot_keys: Vec::new(),
            traced: Vec::new(),
        }
    }
}

pub(crate) const HIT: Ended = Ended::new(true);
pub(crate) const IGNORED: Ended = Ended::new(false);

/// A path of the module as a function.
#[derive(Clone, Copy)]
pub(crate) struct Path {
    /// The type that it is made of.
    pub(crate) name: &'static str,
    enter: fn(InWorld<'_>),
}

/// A function of its own for each path, of which others are the rest.
#[inline(never)]
fn hit<'w, P: HitPath>(cx: InWorld<'w>) -> Outcome<MissedIn<'w, InWorld<'w>>> {
    P::hit(cx)
}

impl Entry for Path {
    type Fn = Self;

    fn of_record<P: RecordPath>() -> Self {
        let enter = |cx: InWorld<'_>| {
            let cx = InWorld {
                has_record_alone: true,
                ..cx
            };
            if let Outcome::Redo(missed) = P::hit(cx) {
                cx.assert_nothing_done();
                (cx.interrupt)();
                P::Rest::hit(cx, missed);
            }
        };

        Self {
            name: type_name::<P>(),
            enter,
        }
    }

    fn of_look<P: LookPath>() -> Self {
        let enter = |cx: InWorld<'_>| {
            if let Some(found) = P::look(cx) {
                cx.assert_nothing_done();
                P::rest(cx, found);
            }
        };

        Self {
            name: type_name::<P>(),
            enter,
        }
    }

    fn of<P: HitPath>() -> Self {
        let enter = |cx: InWorld<'_>| {
            if let Outcome::Redo(_) = hit::<P>(cx) {
                cx.assert_nothing_done();
                assert!(matches!(hit::<P::Rest>(cx), Outcome::Done));
            }
        };

        Self {
            name: type_name::<P>(),
            enter,
        }
    }
}

/// One hit of one trigger.
#[derive(Clone, Copy)]
pub(crate) struct InWorld<'w> {
    world: &'w World,
    trigger: &'w Trigger,
    record: &'w [u8],
    around: &'w Around,
    /// Whether the path must do with the record.
    has_record_alone: bool,
    ended: &'w RefCell<Ended>,
    interrupt: &'w dyn Fn(),
}

impl InWorld<'_> {
    fn assert_nothing_done(&self) {
        assert_eq!(*self.ended.borrow(), IGNORED);
    }
}

impl Inserter for InWorld<'_> {
    fn init(self, aux: &[Atomic<u64>]) {
        self.trigger
            .program
            .keep_creator(aux, |name| self.comm(name));
    }

    fn crowded(&self) {
        self.ended.borrow_mut().grows = true;
    }
}

impl Env for InWorld<'_> {
    type Stack = ();

    fn timestamp(&self) -> u64 {
        assert!(!self.has_record_alone);
        self.around.ts
    }

    fn clock_in_ns(&self) -> bool {
        assert!(!self.has_record_alone);
        self.around.in_ns
    }

    fn cpu(&self) -> u32 {
        self.around.cpu
    }

    fn task(&self, which: TaskNumber) -> u64 {
        self.around.task[which as usize]
    }

    fn comm(&self, out: &mut [u8; COMM_LEN]) {
        out[..self.around.comm.len()].copy_from_slice(self.around.comm.as_bytes());
    }

    fn stack<'s>(&self, _: &'s mut ()) -> &'s [u64] {
        let frames = self.around.frames;

        frames.get(..STACK_DEPTH).unwrap_or(frames)
    }
}

impl<'w> Context<'w> for InWorld<'w> {
    type Storage = Words;
    type Hash = Hash;
    type NewEntry = Self;
    type Source = (&'w Trigger, u32);

    fn program(&self) -> &'w Program {
        &self.trigger.program
    }

    fn record(&self) -> &'w [u8] {
        self.record
    }

    fn own(&self) -> Self::Source {
        (self.trigger, self.trigger.number())
    }

    fn source(&self, table: u16) -> Option<Self::Source> {
        let trigger = self.world.triggers.get(usize::from(table))?;

        Some((trigger, trigger.number()))
    }

    fn view(&self, (trigger, number): Self::Source) -> MapView<'w, Words, Hash> {
        trigger.numbered(number).view()
    }

    fn replaced(&self, (trigger, number): Self::Source) -> Option<Self::Source> {
        trigger.replaced(number).map(|number| (trigger, number))
    }

    fn is_too_deep(&self) -> bool {
        self.around.is_deep && self.trigger.needs.steps & NESTED != 0
    }

    fn new_entry(&self) -> Self {
        *self
    }

    fn wake(&self) {
        let mut ended = self.ended.borrow_mut();

        assert!(!ended.is_hit, "counted twice");
        ended.is_hit = true;
    }

    fn is_within(&self, limit: &Limit) -> bool {
        self.trigger.turns.take(limit, self.around.ts)
    }

    fn snapshot(&self, _: When, value: u64, key: &[u64], aux: &[Atomic<u64>]) {
        let comm = match self.program().needs_comm() {
            true => &aux[..COMM_WORDS],
            false => &[],
        };
        let comm = comm.iter().map(|word| word.load(Relaxed));
        let mut ended = self.ended.borrow_mut();

        ended
            .snapshot_keys
            .push(key.iter().copied().chain(comm).collect());
        ended.snapshots.push(value);
    }

    fn is_wanted(&self, _: u16) -> bool {
        (self.interrupt)();
        true
    }

    fn trace(&self, synth: u16, values: &impl FieldValues) -> u32 {
        assert!(!self.has_record_alone && !self.is_too_deep());
        let schema = &self.world.synths[usize::from(synth)];
        let mut text = Text::default();

        let (traced, lost) = match values.materialize(Written(schema)) {
            Ok(record) => {
                schema
                    .write_line(&record, false, &Frames, &mut text)
                    .expect("printed");
                (String::from_utf8_lossy(&text.0).trim_end().to_string(), 0)
            }
            Err(lost) => (format!("{lost:?}"), 1),
        };
        self.ended.borrow_mut().traced.push(traced);
        lost
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

impl Resolver for Place<'_> {
    fn field(&self, name: &[u8]) -> Option<FieldDesc<'_>> {
        self.fields.field(name)
    }

    fn is_own(&self, system: &[u8], event: &[u8]) -> bool {
        is(self.event, system, event)
    }

    fn event_exists(&self, system: &[u8], event: &[u8]) -> bool {
        self.is_own(system, event)
            || self
                .world
                .triggers
                .iter()
                .any(|t| is(t.event, system, event))
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
        let is = |schema: &Arc<Schema>| schema.name().to_bytes() == name;

        Ok(self.world.synths.iter().position(is).map(|at| at as u16))
    }

    fn synth_field(&self, synth: u16, index: usize) -> Option<SynthField<'_>> {
        self.world.synths[usize::from(synth)]
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

/// What one hit of a trigger on [`ZOO`] that is alone leaves: the key, and the values behind the hit count.
pub(crate) fn one_hit(text: &str, record: &[u8], around: &Around) -> Option<(Vec<u64>, Vec<u64>)> {
    let mut world = World {
        tables: Tables {
            bits: 0,
            ..Tables::default()
        },
        ..World::default()
    };

    world.try_add(&ZOO, ALL, text.as_bytes()).ok()?;
    assert_eq!(world.hit(0, record, around), HIT);

    let (key, mut sums) = world.sums(0).remove(0);

    assert_eq!(sums.remove(0), 1);
    Some((key, sums))
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
    words_of_bytes(text.as_bytes(), words)
}

/// Bytes as words, padded with zeros.
pub(crate) fn words_of_bytes(bytes: &[u8], words: usize) -> Vec<u64> {
    let mut bytes = bytes.to_vec();
    bytes.resize(words * 8, 0);
    bytes
        .chunks_exact(8)
        .map(|chunk| u64::from_ne_bytes(chunk.try_into().expect("eight")))
        .collect()
}

/// The event that is [`ZOO`].
pub(crate) const ALL: (&str, &str) = ("zoo", "all");
/// The system of events that triggers generate.
pub(crate) const SYNTHETIC: &str = "synthetic";
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
