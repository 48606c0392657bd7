// SPDX-License-Identifier: GPL-2.0

//! Triggers that run: programs with their tables, from record to row and to synthetic event.

#![allow(dead_code, unused_imports, reason = "no test file uses all of this")]

use super::lang_common::*;
use kernel::error::Error;
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
        Back,
        Chosen,
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
        PathRow,
        Program,
        RecordPath,
        RecordRest,
        Resolver,
        BACK,
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
        Atomic,
        Pair,
        Relaxed, //
    },
    text::Out,
    tracing_map::{
        Elt,
        Inserter,
        Map,
        MapView,
        Row,
        Rows,
        When, //
    },
};
pub(crate) use rust_hist_tables::{
    sim::{
        with_hook,
        At,
        Machine,
        Task, //
    },
    Hash,
    Kept,
    Table, //
};
use rust_hist_tables::{
    Late,
    PreemptGuard,
    PreemptOff,
    SharedWords, //
    Source,
};
use std::{
    any::type_name,
    cell::RefCell,
    fmt,
    ops::Deref,
    sync::{
        Arc,
        Mutex, //
    }, //
};

/// CPUs that records come from, [`AROUND`] among them.
pub(crate) const CPUS: u32 = 4;

/// A trigger with its table.
pub(crate) struct Trigger {
    pub(crate) event: (&'static str, &'static str),
    pub(crate) text: Vec<u8>,
    pub(crate) program: Arc<Program>,
    pub(crate) table: Table,
    /// A hit that has begun and is not over, for hits that come late.
    late: Mutex<Option<Late>>,
    /// What is left of its `limit()`.
    pub(crate) turns: Turns,
    /// What the hits need.
    pub(crate) needs: Needs,
    /// The path that the module takes.
    pub(crate) path: Path,
}

impl Trigger {
    /// The map that a hit gets which begins now.
    pub(crate) fn map(&self) -> Kept {
        self.table.live()
    }

    /// Has a hit begin which is not over until [`Trigger::end_late`] is called.
    pub(crate) fn begin_late(&self) {
        *self.late.lock().expect("no panic") = Some(self.table.begin_late());
    }

    /// Ends the hit of [`Trigger::begin_late`].
    pub(crate) fn end_late(&self) {
        *self.late.lock().expect("no panic") = None;
    }

    /// Returns whether there is such a hit.
    pub(crate) fn has_late(&self) -> bool {
        self.late.lock().expect("no panic").is_some()
    }

    /// The map of a hit.
    fn source<'w>(&'w self, around: &Around, preempt: PreemptOff<'w>) -> Source<'w> {
        if around.is_late {
            if let Some(late) = &*self.late.lock().expect("no panic") {
                return late.source(preempt);
            }
        }
        self.table.in_hit(preempt)
    }
}

/// A task that gives a table another map, and goes on when it is told to.
pub(crate) struct Replacement(Option<Task<Result<(), Error>>>);

impl Replacement {
    /// Begins.
    pub(crate) fn begin(run: impl FnOnce() -> Result<(), Error> + Send + 'static) -> Self {
        Self(Some(Task::start(run)))
    }

    /// Goes on to the next place of this kind; returns whether it came to one before it was done.
    pub(crate) fn go_to(&mut self, place: At) -> bool {
        while let Some(task) = &mut self.0 {
            match task.step() {
                Ok(at) if at == place => return true,
                Ok(_) => (),
                Err(done) => {
                    done.expect("memory");
                    self.0 = None;
                }
            }
        }
        false
    }

    /// Goes on until it is done.
    pub(crate) fn finish(&mut self) {
        if let Some(task) = self.0.take() {
            task.finish().expect("memory");
        }
    }
}

/// How tables are made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tables {
    pub(crate) bits: u32,
    /// Of one that grows.
    pub(crate) grows_to: u32,
    pub(crate) cpus: u32,
    pub(crate) hash: Hash,
}

impl Default for Tables {
    fn default() -> Self {
        Self {
            bits: 7,
            grows_to: 8,
            cpus: CPUS,
            hash: Hash::Seeded,
        }
    }
}

impl Tables {
    /// Makes the table of a trigger.
    fn table(&self, program: &Arc<Program>, text: &[u8]) -> Table {
        Machine::set(self.hash, self.cpus);
        Table::new(program, text, self.bits, self.grows_to).expect("memory")
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
        let program = Arc::new(program);
        let table = self.tables.table(&program, text);
        let needs = self.needs(&program, &table, event);

        self.triggers.push(Trigger {
            event,
            text: text.to_vec(),
            program,
            table,
            late: Mutex::default(),
            turns: Turns::new(),
            needs,
            path: Path::of(program::select::<Front>(&needs)),
        });
        Ok(self.triggers.len() - 1)
    }

    /// What the hits of a program on `event` need, as the module finds it out.
    fn needs(&self, program: &Program, table: &Table, event: (&str, &str)) -> Needs {
        let generates = |action: &Action| matches!(action.kind, ActionKind::Trace { .. });
        let is_nested = event.0 == SYNTHETIC || program.actions.iter().any(generates);
        let sources = program.refs.iter().map(|reference| {
            let source = &self.triggers[usize::from(reference.table)];
            (source.program.key_words(), source.program.moves())
        });

        program.needs(!table.is_per_cpu(), is_nested, sources)
    }

    /// The same triggers, hit by nobody yet.
    pub(crate) fn anew(&self) -> Self {
        let trigger = |trigger: &Trigger| Trigger {
            text: trigger.text.clone(),
            program: trigger.program.clone(),
            table: trigger.table.anew(),
            late: Mutex::default(),
            turns: Turns::new(),
            ..*trigger
        };

        Machine::set(self.tables.hash, self.tables.cpus);

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
        let section = PreemptGuard::of_hit(around.cpu);

        (path.front.enter)(InWorld {
            world: self,
            trigger: &self.triggers[n],
            path,
            preempt: section.proof(),
            record,
            around,
            has_record_alone: false,
            ended: &ended,
            interrupt,
        });
        ended.into_inner()
    }

    /// The paths that offer what the hits of a trigger need: its own one, its back with each other front in the order of
    /// the table, its front with each other back, and last the one that offers everything.
    pub(crate) fn paths(&self, n: usize) -> impl Iterator<Item = Path> {
        let Trigger { needs, path, .. } = self.triggers[n];
        let back = needs.steps & BACK;
        let fronts = program::paths::<Front>()
            .filter(|row| needs.are_covered_by(&row.offers))
            .map(|row| Path {
                front: row.enter,
                ..path
            });
        let of_record = program::backs_of_record::<Front>()
            .filter(|row| path.front.is_of_record() && back & !row.offers == 0)
            .map(|row| Path {
                of_record: row.enter,
                ..path
            });
        let of_hit = program::backs::<Front>()
            .filter(|row| !path.front.is_of_record() && back & !row.offers == 0)
            .map(|row| Path {
                of_hit: row.enter,
                ..path
            });
        let mut paths: Vec<Path> = fronts.chain(of_record).chain(of_hit).collect();

        paths.push(Path {
            front: program::paths::<Front>().last().expect("some").enter,
            of_hit: program::backs::<Front>().last().expect("some").enter,
            ..path
        });
        paths.into_iter()
    }

    /// Calls `look` with the rows of a table, by ascending key.
    pub(crate) fn with_rows<R>(
        &self,
        n: usize,
        look: impl FnOnce(&Rows<'_>, Vec<Row<'_>>) -> R,
    ) -> R {
        let Trigger { program, .. } = &self.triggers[n];
        let map = self.triggers[n].map();
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
            let of = |row: &Row<'_>| (row.key.to_vec(), row.sums.to_vec());

            rows.iter().map(of).collect()
        })
    }

    /// The extra words of the entry with this key.
    pub(crate) fn aux(&self, n: usize, key: &[u64]) -> Aux {
        let map = self.triggers[n].map();
        let elt = map.lookup(key).expect("an entry");
        Aux(map, elt)
    }
}

/// The extra words of an entry.
pub(crate) struct Aux(Kept, Elt);

impl Deref for Aux {
    type Target = [Pair];

    fn deref(&self) -> &[Pair] {
        self.0.aux(self.1)
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

/// A front of the module as a function.
#[derive(Clone, Copy)]
pub(crate) struct Front {
    /// The type that it is made of.
    pub(crate) name: &'static str,
    enter: fn(InWorld<'_>),
}

/// A back of the module as a function.
#[derive(Clone, Copy)]
pub(crate) struct BackOf {
    /// The type that it is made of.
    pub(crate) name: &'static str,
    leave: for<'w> fn(InWorld<'w>, &'w Map<SharedWords, Hash>, Elt, &[u64]),
}

/// A path of the module.
#[derive(Clone, Copy)]
pub(crate) struct Path {
    pub(crate) front: Front,
    of_record: BackOf,
    of_hit: BackOf,
}

impl Front {
    fn is_of_record(&self) -> bool {
        self.name.contains("::OfRecord<")
    }
}

impl Path {
    fn of(chosen: Chosen<Front>) -> Self {
        Self {
            front: chosen.enter,
            of_record: chosen.of_record,
            of_hit: chosen.of_hit,
        }
    }

    /// The back that its front calls, if that does not do the work of one itself.
    pub(crate) fn back(&self) -> &BackOf {
        match self.front.is_of_record() {
            true => &self.of_record,
            false => &self.of_hit,
        }
    }

    /// What it is made of.
    pub(crate) fn name(&self) -> String {
        format!("{} and {}", self.front.name, self.back().name)
    }
}

/// A function of its own for each path, of which others are the rest.
#[inline(never)]
fn hit<'w, P: HitPath>(cx: InWorld<'w>) -> Outcome<MissedIn<'w, InWorld<'w>>> {
    P::hit(cx)
}

fn back<B: Back>() -> BackOf {
    BackOf {
        name: type_name::<B>(),
        leave: |cx, map, elt, refs| B::leave(cx, map, elt, refs),
    }
}

impl Entry for Front {
    type Fn = Self;
    type OfRecord = BackOf;
    type OfHit = BackOf;

    fn back_of_record<B: Back>() -> BackOf {
        back::<B>()
    }

    fn back<B: Back>() -> BackOf {
        back::<B>()
    }

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
    path: &'w Path,
    preempt: PreemptOff<'w>,
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
        self.trigger.table.ask_for_room();
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
    type Storage = SharedWords;
    type Hash = Hash;
    type NewEntry = Self;
    type Source = Source<'w>;

    fn program(&self) -> &'w Program {
        &self.trigger.program
    }

    fn record(&self) -> &'w [u8] {
        self.record
    }

    fn own(&self) -> Self::Source {
        self.trigger.source(self.around, self.preempt)
    }

    fn source(&self, table: u16) -> Option<Self::Source> {
        let trigger = self.world.triggers.get(usize::from(table))?;

        Some(trigger.source(self.around, self.preempt))
    }

    fn view(&self, source: Self::Source) -> MapView<'w, SharedWords, Hash> {
        source.map().view()
    }

    fn replaced(&self, source: Self::Source) -> Option<Self::Source> {
        source.replaced()
    }

    fn is_too_deep(&self) -> bool {
        self.around.is_deep && self.trigger.needs.steps & NESTED != 0
    }

    fn leave(self, map: &'w Map<SharedWords, Hash>, elt: Elt, refs: &[u64]) {
        assert_eq!(self.has_record_alone, self.path.front.is_of_record());
        (self.path.back().leave)(self, map, elt, refs);
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
        let mut sizes = Sizes::default();
        self.0.measure(values, &mut sizes)?;
        let mut record = vec![0xaa; sizes.record_len()];

        self.0.write(values, &sizes, &mut record)?;

        // Stable values are written by the fast path, which has to leave the same record.
        let mut stable = StableValues::default();
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
