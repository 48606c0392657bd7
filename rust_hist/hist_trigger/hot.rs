// SPDX-License-Identifier: GPL-2.0

//! Hits in the kernel: the context in which `program/hit.rs` runs, and its paths as functions for the core.
//!
//! C counterpart: `event_hist_trigger()`.
//! Context: any, NMI included, with preemption off. Never allocates, sleeps, locks or panics.

use super::{
    storage::{
        Live,
        Table, //
    },
    HistTrigger, //
};
use crate::{
    ffi::{
        clock,
        command::{
            EntryFn,
            HitHandler,
            LookHandler,
            RecordFallback,
            RecordHandler, //
        },
        event::{
            Hit,
            Record, //
        },
        guard::PreemptOff,
        memory::SharedWords,
        poll,
        record::CommonFields,
        stack,
        task, //
    },
    field::{
        Env,
        TaskNumber, //
    },
    limits::{
        COMM_LEN,
        COMM_WORDS, //
    },
    program::{
        self,
        Back,
        Chosen,
        Context,
        Entry,
        HitPath,
        LookPath,
        Missed,
        Outcome,
        Program,
        RecordPath,
        RecordRest, //
    },
    rate::Limit,
    schema::FieldValues,
    sync::Atomic,
    tracing_map::{
        Elt,
        Ending,
        Inserter,
        Map,
        MapView,
        NumCell,
        SeededHash,
        When, //
    }, //
};
use core::marker::PhantomData;
use kernel::sync::Arc;

/// The arguments of a path.
trait Arguments<'a>: Copy + 'a {
    /// Returns the record, with the proof that preemption is off.
    fn record(&self) -> Record<'a>;

    /// Returns the whole hit; `None` on a path that needs only the record.
    fn hit(&self) -> Option<Hit<'a>>;

    /// Calls the back of the trigger for fronts that are given this.
    fn leave(
        self,
        trigger: &'a HistTrigger,
        map: &'a Map<SharedWords, SeededHash>,
        elt: Elt,
        refs: &[u64],
    );
}

impl<'a> Arguments<'a> for Record<'a> {
    #[inline(always)]
    fn record(&self) -> Record<'a> {
        *self
    }

    #[inline(always)]
    fn hit(&self) -> Option<Hit<'a>> {
        debug_assert!(false, "a path that needs more than the record");
        None
    }

    #[inline(always)]
    fn leave(
        self,
        trigger: &'a HistTrigger,
        map: &'a Map<SharedWords, SeededHash>,
        elt: Elt,
        _refs: &[u64],
    ) {
        (trigger.path.of_record)(trigger, self, map, elt);
    }
}

impl<'a> Arguments<'a> for Hit<'a> {
    #[inline(always)]
    fn record(&self) -> Record<'a> {
        self.into_record()
    }

    #[inline(always)]
    fn hit(&self) -> Option<Hit<'a>> {
        Some(*self)
    }

    #[inline(always)]
    fn leave(
        self,
        trigger: &'a HistTrigger,
        map: &'a Map<SharedWords, SeededHash>,
        elt: Elt,
        refs: &[u64],
    ) {
        (trigger.path.of_hit)(trigger, &self, map, elt, refs);
    }
}

/// The context of one hit of one trigger.
#[derive(Clone, Copy)]
struct InKernel<'a, A> {
    trigger: &'a HistTrigger,
    arguments: A,
}

impl<'a, A: Arguments<'a>> InKernel<'a, A> {
    #[inline(always)]
    fn preempt(&self) -> PreemptOff<'a> {
        *self.arguments.record().preempt_off()
    }
}

impl<'a, A: Arguments<'a>> Env for InKernel<'a, A> {
    type Stack = stack::StackBuf;

    #[inline(always)]
    fn timestamp(&self) -> u64 {
        self.arguments.hit().map_or(0, |hit| hit.time_stamp())
    }

    #[inline(always)]
    fn clock_in_ns(&self) -> bool {
        self.arguments.hit().is_some_and(|hit| hit.clock_in_ns())
    }

    #[inline(always)]
    fn cpu(&self) -> u32 {
        self.preempt().cpu()
    }

    #[inline(always)]
    fn task(&self, which: TaskNumber) -> u64 {
        task::number(which, &self.preempt())
    }

    #[inline(always)]
    fn comm(&self, out: &mut [u8; COMM_LEN]) {
        task::comm(out, &self.preempt());
    }

    #[inline(always)]
    fn stack<'s>(&self, room: &'s mut stack::StackBuf) -> &'s [u64] {
        stack::save(room, &self.preempt())
    }
}

/// The creation of an entry by a hit. One register is enough for it.
struct NewEntry<'a> {
    trigger: &'a HistTrigger,
    preempt: PreemptOff<'a>,
}

impl Inserter for NewEntry<'_> {
    #[inline(always)]
    fn init(self, aux: &[Atomic<u64>]) {
        let program = &self.trigger.definition.program;

        program.keep_creator(aux, |name| creator(name, &self.preempt));
    }

    #[inline(always)]
    fn crowded(&self) {
        self.trigger.table.ask_for_room();
    }
}

/// Writes the name of the task that creates an entry.
#[inline]
fn creator(out: &mut [u8; COMM_LEN], preempt: &PreemptOff<'_>) {
    if task::is_idle(preempt) {
        for (to, from) in out.iter_mut().zip(b"<idle>") {
            *to = *from;
        }
    } else {
        task::comm(out, preempt);
    }
}

impl<'a, A: Arguments<'a>> Context<'a> for InKernel<'a, A> {
    type Storage = SharedWords;
    type Hash = SeededHash;
    type NewEntry = NewEntry<'a>;
    type Source = &'a Live;

    #[inline(always)]
    fn program(&self) -> &'a Program {
        &self.trigger.definition.program
    }

    #[inline(always)]
    fn record(&self) -> &'a [u8] {
        self.arguments.record().data()
    }

    #[inline(always)]
    fn source(&self, table: u16) -> Option<&'a Live> {
        let table = self.trigger.sources.get(usize::from(table))?;
        Some(table.in_hit(self.preempt()))
    }

    #[inline(always)]
    fn own(&self) -> &'a Live {
        self.trigger.table.in_hit(self.preempt())
    }

    #[inline(always)]
    fn view(&self, source: &'a Live) -> MapView<'a, SharedWords, SeededHash> {
        source.map.view()
    }

    #[inline(always)]
    fn replaced(&self, source: &'a Live) -> Option<&'a Live> {
        source.replaced(self.preempt())
    }

    #[inline(always)]
    fn is_too_deep(&self) -> bool {
        self.trigger.nesting.is_full(&self.preempt())
    }

    #[inline(always)]
    fn keep_rest(self, map: &'a Map<SharedWords, SeededHash>, elt: Elt, from: usize) {
        keep_rest(self.trigger, self.arguments, map, elt, from);
    }

    #[inline(always)]
    fn leave(self, map: &'a Map<SharedWords, SeededHash>, elt: Elt, refs: &[u64]) {
        self.arguments.leave(self.trigger, map, elt, refs);
    }

    #[inline(always)]
    fn new_entry(&self) -> NewEntry<'a> {
        NewEntry {
            trigger: self.trigger,
            preempt: self.preempt(),
        }
    }

    #[inline(always)]
    fn wake(&self) {
        poll::wake();
    }

    #[inline(always)]
    fn is_within(&self, limit: &Limit) -> bool {
        self.trigger.turns.take(limit, clock::fast())
    }

    #[cold]
    #[inline(never)]
    fn snapshot(&self, when: When, value: u64, key: &[u64], aux: &[Atomic<u64>]) {
        if let Some(snapshot) = self.trigger.table.snapshot() {
            let comm = match self.program().needs_comm() {
                true => aux.get(..COMM_WORDS).unwrap_or(&[]),
                false => &[],
            };
            snapshot.take(when, value, key, comm);
        }
    }

    #[inline(always)]
    fn is_wanted(&self, synth: u16) -> bool {
        let synth = self.trigger.synths.get(usize::from(synth));
        synth.is_some_and(|synth| synth.has_listeners())
    }

    #[inline(always)]
    fn trace(&self, synth: u16, values: &impl FieldValues) -> u32 {
        let preempt = self.preempt();
        let synth = self.trigger.synths.get(usize::from(synth));
        let (Some(synth), Some(hit)) = (synth, self.arguments.hit()) else {
            debug_assert!(
                false,
                "the program names its events, and its path has `NESTED`"
            );
            return 1;
        };
        let Some(_level) = self.trigger.nesting.enter(synth, &preempt) else {
            return 1;
        };
        synth.fire(values, CommonFields::of(&hit), &preempt)
    }
}

/// Implements [`Context::keep_rest`].
#[cold]
#[inline(never)]
fn keep_rest<'a, A: Arguments<'a>>(
    trigger: &'a HistTrigger,
    arguments: A,
    map: &Map<SharedWords, SeededHash>,
    elt: Elt,
    from: usize,
) {
    program::keep_plain(InKernel { trigger, arguments }, map, elt, from);
}

/// A path as functions for the kernel's callbacks.
struct Run<P>(PhantomData<P>);

impl<P: RecordPath> RecordHandler<HistTrigger> for Run<P> {
    type Rest = Run<P::Rest>;

    #[inline(always)]
    fn hit<'a>(
        trigger: &'a HistTrigger,
        record: Record<'a>,
    ) -> Option<Missed<'a, SharedWords, SeededHash>> {
        let cx = InKernel {
            trigger,
            arguments: record,
        };
        match P::hit(cx) {
            Outcome::Done => None,
            Outcome::Redo(missed) => Some(missed),
        }
    }
}

impl<R: RecordRest> RecordFallback<HistTrigger> for Run<R> {
    type Left<'a> = Missed<'a, SharedWords, SeededHash>;

    #[inline(always)]
    fn hit<'a>(
        trigger: &'a HistTrigger,
        record: Record<'a>,
        missed: Missed<'a, SharedWords, SeededHash>,
    ) {
        let cx = InKernel {
            trigger,
            arguments: record,
        };
        R::hit(cx, missed);
    }
}

impl<P: HitPath> HitHandler<HistTrigger> for Run<P> {
    type Rest = Run<P::Rest>;

    #[inline(always)]
    fn hit(trigger: &HistTrigger, hit: Hit<'_>) -> bool {
        let cx = InKernel {
            trigger,
            arguments: hit,
        };
        matches!(P::hit(cx), Outcome::Done)
    }
}

impl<P: LookPath> LookHandler<HistTrigger> for Run<P> {
    type Found<'a> = NumCell<'a>;

    #[inline(always)]
    fn look<'a>(trigger: &'a HistTrigger, hit: Hit<'a>) -> Option<NumCell<'a>> {
        P::look(InKernel {
            trigger,
            arguments: hit,
        })
    }

    #[inline(always)]
    fn rest<'a>(trigger: &'a HistTrigger, hit: Hit<'a>, found: NumCell<'a>) {
        let cx = InKernel {
            trigger,
            arguments: hit,
        };
        P::rest(cx, found);
    }
}

/// A back of fronts that need nothing but the record: all that it is given fits in registers.
type BackOfRecord = for<'a> fn(&'a HistTrigger, Record<'a>, &'a Map<SharedWords, SeededHash>, Elt);

/// A back of all other fronts.
type BackOfHit =
    for<'a> fn(&'a HistTrigger, &Hit<'a>, &'a Map<SharedWords, SeededHash>, Elt, &[u64]);

/// A back as a [`BackOfRecord`].
fn leave_record<'a, B: Back>(
    trigger: &'a HistTrigger,
    arguments: Record<'a>,
    map: &'a Map<SharedWords, SeededHash>,
    elt: Elt,
) {
    B::leave(InKernel { trigger, arguments }, map, elt, &[]);
}

/// A back as a [`BackOfHit`].
fn leave_hit<'a, B: Back>(
    trigger: &'a HistTrigger,
    hit: &Hit<'a>,
    map: &'a Map<SharedWords, SeededHash>,
    elt: Elt,
    refs: &[u64],
) {
    let arguments = *hit;

    B::leave(InKernel { trigger, arguments }, map, elt, refs);
}

/// The paths of hits as functions of the kernel: the core calls the front, and that the back.
pub(super) struct ForCore;

impl Entry for ForCore {
    type Fn = EntryFn<HistTrigger>;
    type OfRecord = BackOfRecord;
    type OfHit = BackOfHit;

    fn back_of_record<B: Back>() -> BackOfRecord {
        leave_record::<B>
    }

    fn back<B: Back>() -> BackOfHit {
        leave_hit::<B>
    }

    fn of_record<P: RecordPath>() -> Self::Fn {
        EntryFn::of_record::<Run<P>>()
    }

    fn of_look<P: LookPath>() -> Self::Fn {
        EntryFn::of_look::<Run<P>>()
    }

    fn of<P: HitPath>() -> Self::Fn {
        EntryFn::of::<Run<P>>()
    }
}

/// Chooses the path for the hits of a trigger that reads variables of `sources`.
pub(super) fn path(
    program: &Program,
    table: &Table,
    sources: &[Arc<Table>],
    is_nested: bool,
) -> Chosen<ForCore> {
    let sources = sources
        .iter()
        .map(|source| (source.key_words(), source.definition().program.moves()));

    program::select::<ForCore>(&program.needs(!table.is_per_cpu(), is_nested, sources))
}

/// Counts a call without a record as ignored.
///
/// Such calls happen because an event starts to call its triggers a moment before it passes the record.
pub(super) fn miss(trigger: &HistTrigger, preempt: &PreemptOff<'_>) {
    let map = &trigger.table.in_hit(*preempt).map;
    map.shard(preempt.cpu()).count(Ending::Ignored);
}
