// SPDX-License-Identifier: GPL-2.0

//! Starts that expire, and what ends them.

use crate::{
    lang_common::*,
    run::*, //
};
use proptest::prelude::*;
use rust_hist::tracing_map::{
    sort::{
        sort,
        SortEntry, //
    },
    Generations,
    Rows, //
};
use std::{
    cell::RefCell,
    collections::BTreeMap,
    ops::Range,
    rc::Rc,
    sync::atomic::{
        AtomicBool,
        AtomicU64,
        Ordering, //
    },
    thread,
    vec, //
};

const BITS: u32 = 4;
const GROWS_TO: u32 = 5;
/// As many keys as have room in a map that is crowded, which those from another one on are for.
const KEYS: u64 = 4;
const CROWD: u64 = 1000;

#[derive(Clone, Copy, Debug)]
enum Op {
    /// Begins a key; `late` if the hit has begun before the last exchange of maps.
    Start { key: u64, value: u8, late: bool },
    /// Ends it.
    End { key: u64, late: bool },
    /// Ends the generation.
    Turn,
    /// Crowds the map, so that there is a further one within the generation, or the generation ends early.
    Crowd,
}

fn op() -> impl Strategy<Value = Op> {
    let (key, late) = (0..KEYS, prop::bool::weighted(0.2));

    prop_oneof![
        4 => (key.clone(), 1..=u8::MAX, late.clone())
            .prop_map(|(key, value, late)| Op::Start { key, value, late }),
        3 => (key, late).prop_map(|(key, late)| Op::End { key, late }),
        2 => Just(Op::Turn),
        1 => Just(Op::Crowd),
    ]
}

fn record_of(key: u64, value: u8) -> [u8; 64] {
    let mut record = [0; 64];

    record[8] = value;
    record[24..32].copy_from_slice(&key.to_ne_bytes());
    record
}

/// The trigger that ends what the first one begins; between the two is one with a variable that is set for each key.
const END: usize = 2;

/// The starts of one map: of each key that has begun there, and whether it has ended.
#[derive(Clone, Default)]
struct Starts {
    last: BTreeMap<u64, Option<u8>>,
    /// How many others nobody has ended before the next one of the key.
    overwritten: u64,
}

/// Has the table get another map, as its generation is over.
fn turn(table: &Table) {
    Machine::this().pass(1000);
    table.replace().expect("memory");
}

struct Run {
    world: World,
    path: Path,
    ops: vec::IntoIter<Op>,
    /// The map that hits go to which begin now.
    live: Kept,
    /// Whether the next one begins a generation.
    is_turn: bool,
    /// From the oldest on, and the first of them that is in sight, and that which the next turn leaves in sight.
    maps: Vec<Starts>,
    first: usize,
    old: usize,
    /// Which of them late hits go to.
    late: usize,
    /// The maps that the last turn has taken out of sight, and the index of the first map that came after that turn.
    hidden: (Range<usize>, usize),
    next_key: u64,
    hits: u64,
    ignored: u64,
    sum: u64,
    /// What nobody has ended: of another start of the key, or of none.
    overwritten: u64,
    expired: u64,
}

impl Run {
    fn start(&mut self, key: u64, value: u8, late: bool) {
        let around = Around {
            is_late: late,
            ..AROUND
        };
        let at = if late { self.late } else { self.maps.len() - 1 };

        assert!(self.world.hit(0, &record_of(key, value), &around).is_hit);
        let map = &mut self.maps[at];
        let before = map.last.insert(key, Some(value));
        map.overwritten += u64::from(before.flatten().is_some());
    }

    fn end(&mut self, key: u64, late: bool) {
        let around = Around {
            is_late: late,
            ..AROUND
        };
        let at = if late { self.late } else { self.maps.len() - 1 };
        let is_hit = self
            .world
            .hit_on(&self.path, END, &record_of(key, 0), &around)
            .is_hit;
        let found = (self.first..=at)
            .rev()
            .find(|&n| self.maps[n].last.contains_key(&key))
            .and_then(|n| self.maps[n].last.get_mut(&key)?.take());

        assert_eq!(is_hit, found.is_some(), "key {key} on {}", self.path.name());
        match found {
            Some(value) => (self.hits, self.sum) = (self.hits + 1, self.sum + u64::from(value)),
            None => self.ignored += 1,
        }
    }

    /// Hits up to the operation that has the next map come, which is returned.
    fn hit(&mut self) -> Option<Op> {
        let live = self.world.triggers[0].map();
        if !live.is(&self.live) {
            self.live = live;
            if self.is_turn {
                self.hidden = (self.first..self.old, self.maps.len());
                (self.first, self.old) = (self.old, self.maps.len());
            }
            self.maps.push(Starts::default());
        }
        while let Some(op) = self.ops.next() {
            match op {
                Op::Start { key, value, late } => self.start(key, value, late),
                Op::End { key, late } => self.end(key, late),
                Op::Turn | Op::Crowd => return Some(op),
            }
        }
        None
    }

    /// Lets the hits be over that the last turn has waited for: what it has taken out of sight is counted.
    fn end_late(&mut self) {
        self.world.triggers[0].end_late();
        let (hidden, next) = std::mem::take(&mut self.hidden);
        for n in hidden {
            let younger = &self.maps[n + 1..next];
            let starts = &self.maps[n];
            self.overwritten += starts.overwritten;
            for (key, _) in starts.last.iter().filter(|(_, start)| start.is_some()) {
                match younger.iter().any(|map| map.last.contains_key(key)) {
                    true => self.overwritten += 1,
                    false => self.expired += 1,
                }
            }
        }
    }

    /// Does what has the next map come, and begins a hit that is late for it. Returns the table.
    fn prepare(&mut self, op: Op) -> Table {
        self.end_late();
        let table = self.world.triggers[0].table.clone();
        let most = 1
            << if table.program().grows_to.is_some() {
                GROWS_TO
            } else {
                BITS
            };
        match op {
            Op::Crowd => {
                while !self.live.is_crowded() {
                    self.start(self.next_key, 1, false);
                    self.next_key += 1;
                }
            }
            _ => Machine::this().pass(1000),
        }
        self.is_turn = !matches!(op, Op::Crowd) || self.live.shape().elts == most;
        self.late = self.maps.len() - 1;
        self.world.triggers[0].begin_late();
        table
    }
}

fn run(world: &World, path: &Path, ops: &[Op]) {
    let world = world.anew();
    let run = Rc::new(RefCell::new(Run {
        live: world.triggers[0].map(),
        world,
        path: *path,
        ops: ops.to_vec().into_iter(),
        is_turn: false,
        maps: vec![Starts::default()],
        first: 0,
        old: 0,
        late: 0,
        hidden: (0..0, 0),
        next_key: CROWD,
        hits: 0,
        ignored: 0,
        sum: 0,
        overwritten: 0,
        expired: 0,
    }));
    for key in 0..KEYS {
        let is_hit = run
            .borrow()
            .world
            .hit(1, &record_of(key, 0), &AROUND)
            .is_hit;
        assert!(is_hit);
    }

    // Three turns more, and all of them are gone.
    let mut next = run.borrow_mut().hit();
    let mut last = [Op::Turn; 3].into_iter();
    while let Some(op) = next.or_else(|| last.next()) {
        let table = run.borrow_mut().prepare(op);
        let at_grace = Rc::new(RefCell::new(None));
        let hook = {
            let (run, at_grace) = (run.clone(), at_grace.clone());
            move |place| {
                let mut run = run.borrow_mut();
                if place == At::Grace && run.world.triggers[0].has_late() {
                    at_grace.replace(Some(run.hit()));
                    run.end_late();
                }
            }
        };
        with_hook(hook, || table.replace()).expect("memory");
        next = at_grace.take().unwrap_or_else(|| run.borrow_mut().hit());
    }

    let run = run.borrow();
    let name = run.path.name();
    let account = run.world.triggers[END].map().account();
    assert_eq!(
        (account.hits, account.ignored),
        (run.hits, run.ignored),
        "{name}"
    );
    let sums = run.world.sums(END);
    assert_eq!(sums.iter().map(|(_, sums)| sums[1]).sum::<u64>(), run.sum);
    let account = run.world.triggers[0].table.account().expect("memory");
    let left = (account.expired, account.overwritten);
    assert_eq!(left, (run.expired, run.overwritten), "{name}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn each_start_is_ended_in_the_youngest_map_that_has_its_key(ops in prop::collection::vec(op(), 0..80)) {
        for (start, user) in [
            ("keys=u64:a=u8", "keys=u64:x=$a+0:vals=$x"),
            ("keys=u64:a=u8:size=128..256", "keys=u64:x=$a+0:vals=$x"),
            ("keys=u64:a=u8,b=u16,c=filename", "keys=u64:x=$a+0,y=$b+0:vals=$x"),
            ("keys=u64:b=u16,a=u8", "keys=u64:x=$a+0,y=$b+0:vals=$x:onmatch(sched.sched_waking).num(u64)"),
            ("keys=u64:a=u8:size=128..256", "join(u64):x=$a+0:keys=u32:vals=$x"),
            // A table that may be getting a larger map at the same time: on paths that look in both.
            ("keys=u64:a=u8", "keys=u64:x=$a+0,y=$other:vals=$x"),
        ] {
            for hash in [Hash::Seeded, Hash::Same] {
                let mut world = World {
                    tables: Tables { bits: BITS, grows_to: GROWS_TO, hash, ..Tables::default() },
                    ..World::default()
                };
                world.synth("num u64 a");
                world.add(&ZOO, WAKING, &format!("{start}:expire(1s)"));
                world.add(&ZOO, SWITCHED, "keys=u64:other=u16:size=128..256");
                world.add(&ZOO, ALL, user);
                let mut paths = 0;
                for path in world.paths(END) {
                    run(&world, &path, &ops);
                    paths += 1;
                }
                assert!(paths > 0);
            }
        }
    }
}

/// Threads begin keys and end them while another one ends generations, as fast as it may: none is matched twice, and each
/// one was ended, has expired, or is there.
#[test]
fn threads_begin_and_end_while_generations_end() {
    const TURNS: usize = 60;
    const KEYS: u64 = 300;
    let mut world = World {
        tables: Tables {
            bits: 12,
            ..Tables::default()
        },
        ..World::default()
    };
    world.add(&ZOO, WAKING, "keys=u64:a=u8:expire(1s)");
    world.add(&ZOO, ALL, "keys=u64:x=$a+0:vals=$x");
    let table = world.triggers[0].table.clone();
    let machine = Machine::this();
    let is_over = AtomicBool::new(false);
    let begun = AtomicU64::new(0);
    let hit = |cpu: u32, n: usize, key: u64| {
        let around = Around { cpu, ..AROUND };
        world.hit(n, &record_of(key, 1), &around).is_hit
    };

    thread::scope(|scope| {
        scope.spawn(|| {
            machine.join();
            for i in 0.. {
                if is_over.load(Ordering::SeqCst) {
                    break;
                }
                assert!(hit(0, 0, i % KEYS));
                begun.fetch_add(1, Ordering::SeqCst);
            }
        });
        for cpu in 1..3 {
            let (machine, is_over, hit) = (&machine, &is_over, &hit);
            scope.spawn(move || {
                machine.join();
                for i in 0.. {
                    if is_over.load(Ordering::SeqCst) {
                        break;
                    }
                    hit(cpu, 1, (i * 7) % KEYS);
                }
            });
        }
        for _ in 0..TURNS {
            turn(&table);
            thread::yield_now();
        }
        is_over.store(true, Ordering::SeqCst);
    });
    for _ in 0..3 {
        turn(&table);
    }
    let ended = world.triggers[1].map().account().hits;
    let account = table.account().expect("memory");
    let begun = begun.load(Ordering::SeqCst);
    assert_eq!(ended + account.expired + account.overwritten, begun);
    assert!(ended > 0 && begun > 0, "{ended} of {begun}");
}

/// Rows of several maps are one for each key, with what is kept of numbers merged as over CPUs.
#[test]
fn rows_of_generations_are_merged() {
    let mut world = World {
        tables: Tables {
            bits: 4,
            ..Tables::default()
        },
        ..World::default()
    };
    world.add(
        &ZOO,
        WAKING,
        "keys=u64:vals=u8,u8.max,u8.min:a=u8:expire(1s)",
    );
    let source = &world.triggers[0];
    let mut maps = Vec::new();
    for hits in [
        &[(7, 5), (8, 1), (7, 9)][..],
        &[(7, 3)],
        &[(9, 4), (7, 200)],
    ] {
        if !maps.is_empty() {
            turn(&source.table);
        }
        maps.push(source.map());
        for &(key, value) in hits {
            world.hit(0, &record_of(key, value), &AROUND);
        }
    }

    let shape = *maps[0].shape();
    let mut words = Vec::new();
    for (n, map) in maps.iter().enumerate().rev() {
        let mut copy = vec![0; map.used() * shape.row_words()];
        let len = map.copy_rows(map.used(), &mut copy, |_, to| to.fill(n as u64));
        copy.truncate(len * shape.row_words());
        words.extend(copy);
    }
    let rows = Rows::new(&shape, &words, words.len() / shape.row_words());
    let mut order = vec![SortEntry::default(); rows.len()];
    sort(&rows, &[], &mut order);
    let generations = Generations::new(rows, &order);
    assert_eq!((rows.len(), generations.keys()), (5, 3));
    let mut merged = vec![0; 3 * shape.row_words()];
    generations.merge(&shape.merge, &mut merged);
    let merged = Rows::new(&shape, &merged, 3);
    let all: Vec<_> = merged
        .iter()
        .map(|row| (row.key[0], row.sums[0], row.sums[1], row.aux[0]))
        .collect();
    // The extra words are those of the youngest map that has the key.
    assert!(all.contains(&(7, 4, 217, 2)), "{all:?}");
    assert!(
        all.contains(&(8, 1, 1, 0)) && all.contains(&(9, 1, 4, 2)),
        "{all:?}"
    );
    let seven = merged.iter().find(|row| row.key[0] == 7).expect("a row");
    assert_eq!(seven.sums[2], 200, "the maximum");
    let alone = |n: usize| maps[n].alone(maps[n + 1..].iter().map(|map| &**map));
    assert_eq!([alone(0), alone(1), alone(2)], [1, 0, 2]);
}
