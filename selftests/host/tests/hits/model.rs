// SPDX-License-Identifier: GPL-2.0

//! A table against a model of what its readers may.
//!
//! Hits, the thread, readers and `clear` come in any order, one place at which others may come in after the other. The
//! model has hits, sums and the account, and knows how many maps there may be; it knows nothing of how one map takes the
//! place of another one.

use crate::{
    lang_common::*,
    run::*, //
};
use kernel::{
    alloc::fail_after,
    error::Error, //
};
use proptest::prelude::*;
use rust_hist_tables::{
    Epochs,
    Event as Triggers,
    Pipe, //
};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        Mutex,
        MutexGuard,
        PoisonError, //
    }, //
};

/// Lets one test at a time run: the module has one list of tables.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());

    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What table it is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Fixed,
    Growing,
    GrowingWithOthers,
    /// Another trigger reads its variable.
    GrowingWithVariable,
    Expiring,
    ExpiringAndGrowing,
    /// Another trigger ends what it begins.
    ExpiringWithEnds,
}

impl Kind {
    fn text(self) -> &'static str {
        match self {
            Self::Fixed => "keys=u64:vals=u8",
            Self::Growing => "keys=u64:vals=u8:size=128..256",
            Self::GrowingWithOthers => "keys=u64:vals=u8:size=128..256:others",
            Self::GrowingWithVariable => "keys=u64:vals=u8:a=u8:size=128..256",
            Self::Expiring | Self::ExpiringWithEnds => "keys=u64:vals=u8:a=u8:expire(1s)",
            Self::ExpiringAndGrowing => "keys=u64:vals=u8:a=u8:expire(1s):size=128..256",
        }
    }

    fn has_ends(self) -> bool {
        matches!(self, Self::GrowingWithVariable | Self::ExpiringWithEnds)
    }

    fn grows(self) -> bool {
        self.text().contains("..")
    }

    fn expires(self) -> bool {
        self.text().contains("expire")
    }
}

/// Who gives the table other maps, besides the thread.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Others {
    Nobody,
    Pipes,
    Clears,
}

#[derive(Clone, Copy, Debug)]
enum Op {
    /// A hit that begins and ends.
    Hit {
        cpu: u32,
        key: u64,
        value: u8,
    },
    /// One that has begun before.
    Late {
        cpu: u32,
        key: u64,
        value: u8,
    },
    /// The hit begins, or ends, that others come late with.
    Begin,
    Over,
    /// A hit of the trigger that reads the variable.
    End {
        key: u64,
    },
    /// The thread goes on to the next place, if it has something to do.
    Thread,
    /// A reader goes on to the next place, or begins.
    Read {
        n: usize,
    },
    /// A reader of epochs goes on to the next place, or begins; it is given the rows, or is killed.
    Pipe {
        n: usize,
        is_given: bool,
    },
    Clear,
    Pass {
        ms: u64,
    },
    /// The next task that begins has memory for so many allocations.
    Fail {
        n: usize,
    },
}

const READERS: usize = 3;

fn op() -> impl Strategy<Value = Op> {
    let (cpu, key, value, n) = (0..3u32, 0..24u64, any::<u8>(), 0..READERS);

    prop_oneof![
        12 => (cpu.clone(), key.clone(), value.clone())
            .prop_map(|(cpu, key, value)| Op::Hit { cpu, key, value }),
        3 => (cpu, key.clone(), value).prop_map(|(cpu, key, value)| Op::Late { cpu, key, value }),
        2 => Just(Op::Begin),
        2 => Just(Op::Over),
        4 => key.prop_map(|key| Op::End { key }),
        12 => Just(Op::Thread),
        3 => n.clone().prop_map(|n| Op::Read { n }),
        8 => (n, prop::bool::weighted(0.7)).prop_map(|(n, is_given)| Op::Pipe { n, is_given }),
        3 => Just(Op::Clear),
        1 => (0..1500u64).prop_map(|ms| Op::Pass { ms }),
        1 => (0..8usize).prop_map(|n| Op::Fail { n }),
    ]
}

/// Hits and sum of each key.
type Counts = BTreeMap<u64, (u64, u64)>;

fn add(counts: &mut Counts, key: u64, (hits, sum): (u64, u64)) {
    let row = counts.entry(key).or_default();
    *row = (row.0 + hits, row.1 + sum);
}

/// One table as `hist_json` and `hist_pipe` have it.
#[derive(Default)]
struct Shown {
    epoch: u64,
    rows: Counts,
    others: (u64, u64),
    calls: u64,
    hits: u64,
}

fn shown(text: &str) -> Shown {
    let mut shown = Shown::default();

    for line in text.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let number = |value: &Value| value.as_u64().expect("a number");
        let sums = || (number(&line["v"][0]), number(&line["v"][1]));

        match line["type"].as_str() {
            Some("hist") => shown.epoch = number(&line["epoch"]),
            Some("end") => {
                (shown.calls, shown.hits) = (number(&line["calls"]), number(&line["hits"]))
            }
            _ if line["others"] == true => shown.others = sums(),
            _ => {
                let before = shown.rows.insert(number(&line["k"][0]), sums());
                assert!(before.is_none(), "two rows of a key: {text}");
            }
        }
    }
    shown
}

/// What a reader does.
enum Doing {
    Read(Task<Result<String, Error>>, Counts),
    /// Whether he will be given it.
    Pipe(Task<Result<Epochs, Error>>, bool),
    /// He has copied an epoch, and has not been given it yet.
    Holds(Epochs, bool),
}

/// The largest size that a table has at first.
const BITS: u32 = 3;
/// The size up to which one may grow.
const GROWS_TO: u32 = 5;

struct Run {
    kind: Kind,
    others: Others,
    /// The most elements of the table.
    most: usize,
    machine: Arc<Machine>,
    world: World,
    event: Arc<Triggers>,
    thread: Option<Task<()>>,
    clear: Option<Task<Result<(), Error>>>,
    pipes: Vec<Arc<Pipe>>,
    readers: [Option<Doing>; READERS],
    fails: Option<usize>,
    /// What hits have counted.
    counted: Counts,
    dropped: u64,
    calls: u64,
    /// What had been counted when the last `clear` began that has done something, and when it was over.
    cleared: (Counts, Counts),
    /// What had been counted when the one began that is not over.
    before_clear: Option<Counts>,
    begun: u64,
    ended: u64,
    epochs: BTreeMap<u64, Shown>,
}

fn record_of(key: u64, value: u8) -> [u8; 64] {
    let mut record = [0; 64];

    record[8] = value;
    record[24..32].copy_from_slice(&key.to_ne_bytes());
    record
}

impl Run {
    fn new(kind: Kind, others: Others, bits: u32, cpus: u32, hash: Hash) -> Self {
        let machine = Machine::start();
        let mut world = World {
            tables: Tables {
                bits,
                grows_to: GROWS_TO,
                cpus,
                hash,
            },
            ..World::default()
        };

        world.add(&ZOO, WAKING, kind.text());
        let event = Arc::new(Triggers::new());
        event.add(&world.triggers[0].table).expect("memory");
        if kind.has_ends() {
            world.tables.bits = 6;
            world.add(&ZOO, ALL, "keys=u64:x=$a+0:vals=$x");
        }
        let pipes = (0..READERS).map(|_| Arc::new(Pipe::open(&event).expect("memory")));
        let pipes = match others {
            Others::Pipes => pipes.collect(),
            _ => Vec::new(),
        };

        Self {
            kind,
            others,
            most: 1 << if kind.grows() { GROWS_TO } else { bits },
            machine,
            world,
            event,
            pipes,
            thread: None,
            clear: None,
            readers: Default::default(),
            fails: None,
            counted: Counts::new(),
            dropped: 0,
            calls: 0,
            cleared: Default::default(),
            before_clear: None,
            begun: 0,
            ended: 0,
            epochs: BTreeMap::new(),
        }
    }

    fn table(&self) -> &Table {
        &self.world.triggers[0].table
    }

    /// Starts a task, which may have memory for some allocations alone.
    fn start<R: Send + 'static>(&mut self, run: impl FnOnce() -> R + Send + 'static) -> Task<R> {
        let fails = self.fails.take();

        Task::start(move || {
            fail_after(fails);
            run()
        })
    }

    fn hit(&mut self, cpu: u32, key: u64, value: u8, is_late: bool) {
        let around = Around {
            cpu,
            is_late,
            ..AROUND
        };
        let may_grow = self.table().live().shape().elts < self.most;
        let ended = self.world.hit(0, &record_of(key, value), &around);
        let one = (1, u64::from(value));

        if !ended.is_hit && !is_late && !self.kind.expires() {
            assert_eq!(ended.grows, may_grow, "a drop that asks for nothing");
        }
        self.calls += 1;
        match ended.is_hit {
            true => {
                self.begun += 1;
                add(&mut self.counted, key, one);
            }
            false => self.dropped += 1,
        }
    }

    /// The thread goes on; returns whether it has something to do.
    fn go_on(&mut self) -> bool {
        if self.thread.is_none() && self.machine.takes_work() {
            self.thread = Some(self.start(Machine::work));
        }
        let Some(thread) = &mut self.thread else {
            return false;
        };

        if thread.step().is_err() {
            self.thread = None;
        }
        true
    }

    fn clear(&mut self) {
        if self.clear.is_none() {
            let table = self.table().clone();

            self.clear = Some(self.start(move || table.clear()));
            self.before_clear = Some(self.counted.clone());
        }
        let done = self.clear.as_mut().map(Task::step);
        if let Some(Err(result)) = done {
            self.clear = None;
            let before = self.before_clear.take().expect("it has begun");
            if result.is_ok() {
                self.cleared = (before, self.counted.clone());
            }
        }
    }

    /// What a table may show now, at least and at most.
    fn check(&self, shown: &Shown, at_least: &Counts, at_most: &Counts) {
        for (key, (hits, sum)) in &shown.rows {
            let most = at_most.get(key).copied().unwrap_or_default();
            assert!(
                *hits <= most.0 && *sum <= most.1,
                "key {key} has {hits} hits of {most:?}"
            );
        }
        for (key, least) in at_least {
            let row = shown.rows.get(key).copied().unwrap_or_default();
            assert!(
                row.0 >= least.0 && row.1 >= least.1,
                "key {key} has {row:?}, less than {least:?}"
            );
        }
    }

    fn read(&mut self, n: usize) {
        if self.readers[n].is_none() {
            let event = self.event.clone();
            let before = match self.others {
                // Keys without room are in the row of others.
                Others::Nobody if !self.kind.expires() && self.kind != Kind::GrowingWithOthers => {
                    self.counted.clone()
                }
                _ => Counts::new(),
            };

            let task = self.start(move || event.read_json());
            self.readers[n] = Some(Doing::Read(task, before));
        }
        self.step(n);
    }

    fn pipe(&mut self, n: usize, is_given: bool) {
        if self.readers[n].is_none() {
            let pipe = self.pipes[n].clone();

            let task = self.start(move || pipe.read());
            self.readers[n] = Some(Doing::Pipe(task, is_given));
        }
        self.step(n);
    }

    /// A reader goes on.
    fn step(&mut self, n: usize) {
        self.readers[n] = match self.readers[n].take() {
            Some(Doing::Read(mut task, before)) => match task.step() {
                Ok(_) => Some(Doing::Read(task, before)),
                Err(text) => {
                    if let Ok(text) = text {
                        self.check(&shown(&text), &before, &self.counted);
                    }
                    None
                }
            },
            Some(Doing::Pipe(mut task, is_given)) => match task.step() {
                Ok(_) => Some(Doing::Pipe(task, is_given)),
                Err(Ok(epochs)) => Some(Doing::Holds(epochs, is_given)),
                Err(Err(_)) => None,
            },
            Some(Doing::Holds(epochs, is_given)) => {
                // A poll waits while a table grows, so it is made only when the thread has nothing in hand.
                if self.thread.is_none() {
                    assert!(!self.pipes[n].is_readable(), "a read would wait");
                }
                if is_given {
                    self.take(epochs);
                }
                None
            }
            None => None,
        };
    }

    /// A reader has been given an epoch.
    fn take(&mut self, epochs: Epochs) {
        let shown = shown(&epochs.give());
        let number = shown.epoch;

        assert!(
            self.epochs.insert(number, shown).is_none(),
            "epoch {number} was given twice"
        );
    }

    /// What holds at each moment: the table is not larger than it may be, and there are not more maps than its own, the next
    /// one, one that is kept for the next epoch, and the one of an epoch that a reader has; and those that readers make at
    /// this moment.
    fn check_memory(&self) {
        let map = self.table().live();
        let shape = map.shape();
        let most = self.most;

        assert!(shape.elts <= most, "a table of {} elements", shape.elts);
        if !self.kind.expires() {
            // A map is smaller than one with the most elements.
            let maps = (5 + READERS) * most / shape.elts.min(most);
            let all = maps * shape.pairs() * 16 + self.bytes_of_others();
            let bytes = self.machine.bytes();
            assert!(bytes <= all, "{bytes} bytes of maps, more than {all}");
        }
    }

    /// The bytes of the tables that are not looked at.
    fn bytes_of_others(&self) -> usize {
        let of = |trigger: &Trigger| trigger.map().shape().pairs() * 16;

        self.world.triggers.iter().skip(1).map(of).sum()
    }

    fn op(&mut self, op: Op) {
        let trigger = &self.world.triggers[0];

        match op {
            Op::Hit { cpu, key, value } => self.hit(cpu, key, value, false),
            Op::Late { cpu, key, value } if trigger.has_late() => self.hit(cpu, key, value, true),
            Op::Begin if !trigger.has_late() => trigger.begin_late(),
            Op::Over => trigger.end_late(),
            Op::Late { .. } | Op::Begin => (),
            Op::End { key } if self.kind.has_ends() => {
                self.ended += u64::from(self.world.hit(1, &record_of(key, 0), &AROUND).is_hit);
            }
            Op::End { .. } => (),
            Op::Thread => _ = self.go_on(),
            Op::Read { n } => self.read(n),
            Op::Pipe { n, is_given } if self.others == Others::Pipes => self.pipe(n, is_given),
            Op::Clear if self.others == Others::Clears => self.clear(),
            Op::Pipe { .. } | Op::Clear => (),
            Op::Pass { ms } => self.machine.pass(ms),
            Op::Fail { n } => self.fails = Some(n),
        }
        self.check_memory();
    }

    /// Lets all come to an end that is under way.
    fn rest(&mut self) {
        self.world.triggers[0].end_late();
        self.fails = None;
        for _ in 0..100_000 {
            let mut goes_on = self.go_on();
            for n in 0..READERS {
                goes_on |= self.readers[n].is_some();
                self.step(n);
            }
            if self.clear.is_some() {
                goes_on = true;
                self.clear();
            }
            if !goes_on {
                return;
            }
        }
        panic!("no end is to be seen");
    }

    fn run(mut self, ops: &[Op]) {
        for &op in ops {
            self.op(op);
        }
        self.rest();
        // What there was no memory for is tried once more.
        self.machine.pass(1000);
        self.rest();
        match self.others {
            Others::Pipes if !self.kind.has_ends() => self.check_epochs(),
            _ if self.kind.expires() => (),
            _ => {
                self.check_rows();
                self.check_room();
            }
        }
        if self.kind == Kind::ExpiringWithEnds {
            self.check_starts();
        }
        self.event.remove_all();
        drop(self.pipes);
        if !self.kind.expires() {
            let all = self.world.triggers.iter();
            let maps: usize = all.map(|trigger| trigger.map().shape().pairs() * 16).sum();
            assert_eq!(self.machine.bytes(), maps, "maps that nobody needs");
        }
    }

    /// The rows, as all hits are over.
    fn check_rows(&self) {
        let found = shown(&self.event.read_json().expect("memory"));
        let account = self.table().account().expect("memory");
        let less = |cleared: &Counts| {
            let mut left = self.counted.clone();
            for (key, (hits, sum)) in cleared {
                let row = left.get_mut(key).expect("counted");
                *row = (row.0 - hits, row.1 - sum);
            }
            left
        };

        // What came before the last `clear` is gone, and what came meanwhile is there or not.
        if self.others == Others::Clears {
            let (least, most) = (less(&self.cleared.1), less(&self.cleared.0));
            if self.kind != Kind::GrowingWithOthers {
                self.check(&found, &least, &most);
            }
            let hits: u64 = found.rows.values().map(|(hits, _)| hits).sum();
            assert_eq!(
                (found.hits, account.hits),
                (hits + found.others.0, found.hits)
            );
            return;
        }
        // Keys without room are in the row of others.
        if self.kind == Kind::GrowingWithOthers {
            let all = |rows: &Counts| {
                rows.values()
                    .fold((0, 0), |all, row| (all.0 + row.0, all.1 + row.1))
            };
            let (of_rows, whole) = (all(&found.rows), all(&self.counted));
            assert_eq!(
                (of_rows.0 + found.others.0, of_rows.1 + found.others.1),
                whole
            );
            self.check(&found, &Counts::new(), &self.counted);
        } else {
            assert_eq!(found.rows, self.counted);
            assert_eq!(account.dropped_full, self.dropped);
        }
        assert_eq!((found.calls, account.calls()), (self.calls, self.calls));
        assert_eq!(found.rows.len(), self.table().entries().expect("memory"));
    }

    /// A table of the largest size has as many rows as elements when no further key has room.
    fn check_room(&mut self) {
        // Where a smaller table grows, some of them are dropped.
        for key in 1000..1000 + (3 << GROWS_TO) {
            self.hit(0, key, 1, false);
            self.rest();
        }
        let elts = self.table().live().shape().elts;
        assert_eq!(
            (self.table().entries().expect("memory"), elts),
            (self.most, self.most)
        );
    }

    /// Each hit is in one epoch, and each epoch was given once.
    fn check_epochs(&mut self) {
        let pipe = self.pipes[0].clone();
        let present = shown(&self.event.read_json().expect("memory")).epoch;

        while self
            .epochs
            .keys()
            .next_back()
            .is_none_or(|last| *last < present)
        {
            assert!(self.epochs.len() < 10_000, "no end is to be seen");
            self.take(pipe.read().expect("memory"));
        }
        let numbers: Vec<u64> = self.epochs.keys().copied().collect();
        assert_eq!(numbers, (1..=present).collect::<Vec<_>>());

        let (mut rows, mut others, mut calls) = (Counts::new(), (0, 0), 0);
        for epoch in self.epochs.values() {
            for (&key, &row) in &epoch.rows {
                add(&mut rows, key, row);
            }
            others = (others.0 + epoch.others.0, others.1 + epoch.others.1);
            calls += epoch.calls;
        }
        if !self.kind.expires() {
            assert_eq!(calls, self.calls);
            if self.kind != Kind::GrowingWithOthers {
                assert_eq!(rows, self.counted);
            } else {
                let all = |rows: &Counts| {
                    rows.values()
                        .fold((0, 0), |all, row| (all.0 + row.0, all.1 + row.1))
                };
                let (of_rows, whole) = (all(&rows), all(&self.counted));
                assert_eq!((of_rows.0 + others.0, of_rows.1 + others.1), whole);
            }
        }
        let account = self.table().account().expect("memory");
        assert_eq!(account.calls(), self.calls, "the account of all epochs");
    }

    /// Each start has been ended once, or was counted, when all have expired.
    fn check_starts(&mut self) {
        for _ in 0..3 {
            self.machine.pass(1000);
            self.rest();
        }
        for key in 0..24 {
            assert!(
                !self.world.hit(1, &record_of(key, 0), &AROUND).is_hit,
                "it has not expired"
            );
        }
        let account = self.table().account().expect("memory");
        match self.others {
            Others::Clears => (),
            _ => assert_eq!(
                self.ended + account.expired + account.overwritten,
                self.begun
            ),
        }
    }
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::Fixed),
        Just(Kind::Growing),
        Just(Kind::GrowingWithOthers),
        Just(Kind::GrowingWithVariable),
        Just(Kind::Expiring),
        Just(Kind::ExpiringAndGrowing),
        Just(Kind::ExpiringWithEnds),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn readers_see_what_hits_have_counted(
        kind in kind(),
        others in prop_oneof![Just(Others::Nobody), Just(Others::Pipes), Just(Others::Clears)],
        bits in 0..=BITS,
        // The last one makes three CPUs share a shard.
        cpus in prop_oneof![3 => Just(CPUS), 1 => Just(8192)],
        hash in prop_oneof![Just(Hash::Seeded), Just(Hash::Same), Just(Hash::Quarters)],
        ops in prop::collection::vec(op(), 0..250),
    ) {
        let _alone = alone();
        // Nobody reads epochs of a table whose variables others read.
        let others = match others {
            Others::Pipes if kind.has_ends() => Others::Nobody,
            others => others,
        };

        // A small one loses starts of its own accord.
        let bits = if kind.expires() { BITS } else { bits };
        Run::new(kind, others, bits, cpus, hash).run(&ops);
    }
}
