// SPDX-License-Identifier: GPL-2.0

//! The table of paths: all that offer what a trigger needs do the same with any record, whatever the tables hold; each
//! of them is the path of some triggers, and each trigger has one.

use super::exec_plan::{
    alike,
    fields,
    keys,
    numbers,
    surroundings,
    texts,
    vals, //
};
use crate::{
    grammar_file::{
        dice,
        Grammar, //
    },
    lang_common::*,
    run::*, //
};
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::TestRunner, //
};
use rust_hist::{
    program,
    stat::Stat,
    sync::Relaxed,
    tracing_map::Account, //
};
use std::collections::BTreeMap;

/// An event that triggers generate.
const GENERATED: (&str, &str) = (SYNTHETIC, "made");
/// CPUs that are too many for a shard each.
const MANY_CPUS: u32 = 8192;

/// Triggers and their hits.
#[derive(Clone, Debug)]
struct Case {
    tables: Tables,
    triggers: Vec<((&'static str, &'static str), String)>,
    records: Vec<Vec<u8>>,
    /// Trigger, record, and what is around; as many of either as there are, and from the first one again.
    hits: Vec<(usize, usize, Around)>,
}

/// What hits have left.
#[derive(Debug, PartialEq)]
struct Left {
    ended: Vec<Ended>,
    accounts: Vec<Account>,
    /// The words of the tables, of which all depends that anybody sees of them.
    words: Vec<Vec<u64>>,
}

/// The world of a case without those triggers that are refused; `None` if the last one is.
fn world(case: &Case) -> Option<World> {
    let mut world = World {
        tables: case.tables,
        ..World::default()
    };
    let mut is_added = false;

    world.synth("num u8 a");
    world.synth("big u64 a; s64 b; char[] c; long[] d");
    world.synth("done u64 x");
    for (event, text) in &case.triggers {
        is_added = world.try_add(&ZOO, *event, text.as_bytes()).is_ok();
    }
    is_added.then_some(world)
}

/// Makes the hits in tables that are empty; `path` chooses the path by the numbers of the hit and of the trigger.
fn run(world: &World, case: &Case, path: impl Fn(usize, usize) -> Path) -> Left {
    let world = world.anew();
    let hit = |(i, (n, record, around)): (usize, &(usize, usize, Around))| {
        let n = n % world.triggers.len();
        let record = &case.records[record % case.records.len()];
        let around = Around {
            cpu: around.cpu % world.tables.cpus,
            ..*around
        };

        world.hit_on(&path(i, n), n, record, &around)
    };
    let words = |trigger: &Trigger| {
        trigger
            .map()
            .words()
            .iter()
            .map(|word| word.load(Relaxed))
            .collect()
    };

    Left {
        ended: case.hits.iter().enumerate().map(hit).collect(),
        accounts: world
            .triggers
            .iter()
            .map(|trigger| trigger.map().account())
            .collect(),
        words: world.triggers.iter().map(words).collect(),
    }
}

/// Checks that all paths do what the last one does, by themselves and by turns.
fn check(world: &World, case: &Case) -> Result<(), TestCaseError> {
    let paths: Vec<Vec<Path>> = (0..world.triggers.len())
        .map(|n| world.paths(n).collect())
        .collect();
    let last = |n: usize| *paths[n].last().expect("one that offers everything");
    let wanted = run(world, case, |_, n| last(n));

    let mut calls = vec![0; world.triggers.len()];
    for (n, _, _) in &case.hits {
        calls[n % world.triggers.len()] += 1;
    }
    let counted: Vec<u64> = wanted.accounts.iter().map(Account::calls).collect();
    prop_assert_eq!(counted, calls);
    prop_assert_eq!(
        wanted
            .accounts
            .iter()
            .map(|account| account.hits)
            .sum::<u64>(),
        wanted
            .ended
            .iter()
            .map(|ended| u64::from(ended.is_hit))
            .sum::<u64>()
    );

    for (n, own) in paths.iter().enumerate() {
        prop_assert_eq!(own[0].name(), world.triggers[n].path.name());
        for path in own {
            let found = run(world, case, |_, m| if m == n { *path } else { last(m) });

            prop_assert!(
                found == wanted,
                "trigger {n} on {}: {found:#?} is not {wanted:#?}",
                path.name()
            );
        }
    }
    let by_turns = run(world, case, |i, n| paths[n][i % paths[n].len()]);
    prop_assert!(
        by_turns == wanted,
        "by turns: {by_turns:#?} is not {wanted:#?}"
    );
    Ok(())
}

/// The names of all fronts and all backs.
fn every_part() -> impl Iterator<Item = &'static str> {
    let fronts = program::paths::<Front>().map(|row| row.enter.name);
    let of_record = program::backs_of_record::<Front>().map(|row| row.enter.name);
    let of_hit = program::backs::<Front>().map(|row| row.enter.name);

    fronts.chain(of_record).chain(of_hit)
}

fn events() -> impl Strategy<Value = (&'static str, &'static str)> {
    prop_oneof![3 => Just(ALL), 1 => Just(GENERATED)]
}

fn tables() -> impl Strategy<Value = Tables> {
    let hashes = prop::sample::select(vec![Hash::Seeded, Hash::Seeded, Hash::Same, Hash::Quarters]);

    // With few elements a shard for each CPU takes too much.
    let sizes = vec![
        (0, 1),
        (1, 1),
        (2, 1),
        (3, 1),
        (7, CPUS),
        (1, CPUS),
        (2, MANY_CPUS),
    ];

    (prop::sample::select(sizes), hashes).prop_map(|((bits, cpus), hash)| Tables {
        bits,
        grows_to: bits + 1,
        cpus,
        hash,
    })
}

fn hits() -> impl Strategy<Value = Vec<(usize, usize, Around)>> {
    let around = (surroundings(), prop::bool::weighted(0.2))
        .prop_map(|(around, is_deep)| Around { is_deep, ..around });

    prop::collection::vec((any::<usize>(), any::<usize>(), around), 4..16)
}

/// Variables of another trigger, as they are defined there.
const DEFINED: &str = "n=u16,ts0=common_timestamp.usecs,name=filename,at=common_stacktrace,less=u8";

/// Those of a table that may grow.
const NUMBERS: &str = "n=u16,ts0=common_timestamp.usecs,less=u8";

/// What reads them, and takes some of them.
fn references() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "$n",
        "$less",
        "u64-$n",
        "$n+1",
        "common_timestamp.usecs-$ts0",
        "common_timestamp.usecs-$ts0-$n",
        "$name",
        "$at",
    ])
    .prop_map(str::to_owned)
}

fn handlers() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "onmax($v0).save(u8,filename,u64-s16)",
        "onmax($v0).snapshot()",
        "onmax($v0).num(s32)",
        "onchange($v0).save(stack,common_stacktrace,common_timestamp)",
        "onchange($v1).snapshot()",
        "onchange($v0,3).save(u16)",
        "onover($v1,100,50).snapshot()",
        "onover($v0,7).num(s32):limit(3/s)",
        "onchange($v0).big(u8,$v0,filename,stack)",
        "onmatch(zoo.other).num($v0)",
        "onmatch(zoo.other).num($n)",
        "onmatch(zoo.other).big($ts0,s64,$name,$at)",
        "onmatch(zoo.other).big(common_timestamp,$v0,common_comm,common_stacktrace)",
    ])
    .prop_map(str::to_owned)
}

/// A trigger that defines variables, and one that may read them, with the same keys or more.
fn pairs() -> impl Strategy<Value = Case> {
    let own = prop::sample::select(vec!["$v0", "$v1.log2", "$v0+u16", "$v0.buckets=5"]);
    let key = prop_oneof![4 => numbers(), 4 => keys(), 1 => own.clone().prop_map(str::to_owned)];
    let key = prop_oneof![
        5 => prop::collection::vec(key, 1..=3),
        // Of any keys so many would mostly be too long, or refused for one of them.
        1 => prop::collection::vec(numbers(), 4..=8)
    ];
    let var = prop_oneof![3 => texts(), 2 => references(), 1 => Just("common_stacktrace".to_owned()),
        1 => Just("stack".to_owned()), 1 => Just("common_timestamp.usecs".to_owned()),
        1 => Just("u64*3+u32".to_owned()), 1 => own.clone().prop_map(str::to_owned)];
    let shown = || {
        let stat = prop::sample::select(Stat::ALL.to_vec());

        (fields(), stat).prop_map(|(field, stat)| format!("{field}.{}", stat.name()))
    };
    let val =
        prop_oneof![4 => vals(), 1 => references(), 1 => own.prop_map(str::to_owned), 2 => shown()];
    let vars = prop::collection::vec(var, 0..=4);
    let vals = prop_oneof![
        5 => prop::collection::vec(val, 0..=2),
        1 => prop::collection::vec(shown(), 3..=8)
    ];
    let handlers = prop_oneof![
        2 => Just(Vec::new()),
        1 => prop::collection::vec(handlers(), 1..=2)
    ];
    let user = (
        key,
        vals,
        vars,
        handlers,
        events(),
        prop::bool::weighted(0.2),
    );

    (user, tables(), alike(), hits()).prop_map(
        |((keys, vals, vars, handlers, event, is_longer), tables, records, hits)| {
            let shared = match is_longer {
                true => &keys[..1],
                false => &keys[..],
            };
            let mut text = format!("keys={}", keys.join(","));

            if !vals.is_empty() {
                text += &format!(":vals={}", vals.join(","));
            }
            for (i, var) in vars.iter().enumerate() {
                text += &format!(":v{i}={var}");
            }
            for handler in handlers {
                text += &format!(":{handler}");
            }
            Case {
                tables,
                triggers: vec![
                    (OTHER, format!("keys={}:{DEFINED}", shared.join(","))),
                    (event, text),
                ],
                records,
                hits,
            }
        },
    )
}

/// The event of the first trigger.
const OTHER: (&str, &str) = ("zoo", "other");

/// A trigger that the grammar derives, and another one with the same keys that defines the variables of which the
/// grammar knows.
fn derived() -> impl Strategy<Value = Case> {
    let parts = (any::<u64>(), events(), tables());

    (parts, alike(), hits()).prop_map(
        |((seed, event, tables), records, hits)| {
            let text = Grammar::read().trigger_of_the_zoo(&mut dice(seed));
            let is_keys = |part: &&str| part.starts_with("key=") || part.starts_with("keys=");
            let keys = text.split(':').filter(is_keys).last().unwrap_or("keys=u8");
            let keys = keys.split(" if ").next().unwrap_or(keys);
            let define = "aa=u8,bb=s16,cc=u32,lat=u64,delta=s64,wakeup=common_timestamp,x1=filename,\
                          x2=s32,y0=common_stacktrace,zz=u16,ts0=common_timestamp.usecs,total=u64*3";

            Case {
                tables,
                triggers: vec![(OTHER, format!("{keys}:{define}")), (event, text)],
                records,
                hits,
            }
        },
    )
}

// What decides about the path.
const KEYS: &[&str] = &[
    "u8",
    "u8,s16",
    "u8,s16,u32",
    "u64*3",
    "u64*3,s16",
    "u64*3,s16,u32",
    "seven",
    "seven,u8",
    "seven,u8,s16",
    "sixteen,u8,s16",
    "u8.log2=3",
    "u8,s64.log2=4",
    "seven,u64.log2=6",
    "seven,s16,u64.log2=1",
    "sixteen,u64.log2=2,s16.log2=3",
    "common_timestamp.log2=5",
    "filename,u64.log2=4",
    "seven,u64*3",
    "sixteen,u64*3,s16",
    "filename",
    "filename,u64*3",
    "common_comm",
    "stack",
    "common_stacktrace",
    "common_stacktrace,u8",
    "$k",
    "$k.log2,u8",
    "$l:join(u8)",
    "u8,$l.log2:join(u8)",
    "seven,u8,$l:join(u8)",
    "$l:join(u8,u16)",
    "$l,u8:join(u8,u16)",
    "filename,$l:join(u8)",
    "common_tgid",
    "u8,common_cgroup.log2",
    "filename,common_uid",
    "$l:join(common_node)",
    "u8,s16,u32,u64,cpu",
    "u8,s16,u32,u64,cpu,s8",
    "sixteen,u8,s16,u32,u64,cpu",
    "u8,s16,u32,u64,cpu,s8,s32",
    "u8,s16,u32,u64,cpu,s8,s32,u16",
    "filename,stack,u8",
    "filename,stack,$l:join(u8)",
    "u8,s16,u32,u64,cpu,s8,s32.log2=2,u16",
    "filename,u8,s16,u32",
];
const VALS: &[&str] = &[
    "",
    ":vals=u64",
    ":vals=u64*3+u32",
    ":vals=common_timestamp",
    ":vals=$o:o=u64-s16",
    ":vals=common_uid",
    ":vals=u64.max,u32.stddev",
    ":vals=u64,u64.max",
    ":vals=u64,u32,s16",
    ":vals=$o.min,$o:o=u64-s16",
    ":vals=common_timestamp.avg,s16.max",
];
/// What keys and values name.
const OWN: &str = ":k=u8*3";
const JOINED: &str = ":l=u16-$n";
const VARS: &[&str] = &[
    "",
    ":v=s8",
    ":v=common_timestamp.usecs",
    ":v=u64*3+u32",
    ":v=s8,w=filename",
    ":v=s8,w=common_stacktrace",
    ":v=s8,w=common_comm",
    ":v=common_timestamp.usecs-$ts0",
    ":v=$n",
    ":v=u64-$n,w=common_timestamp.usecs-$ts0",
    ":v=s8,w=$name",
    ":v=common_cgroup,w=common_tgid+1",
];
const ACTIONS: &[&str] = &[
    "",
    ":onmax($v).save(u64)",
    ":onmax($v).snapshot()",
    ":onmatch(zoo.other).num(u8)",
];

/// All combinations of these but the keys.
fn combinations() -> impl Iterator<Item = ([&'static str; 3], (&'static str, &'static str))> {
    VALS.iter().flat_map(|vals| {
        VARS.iter().flat_map(move |vars| {
            ACTIONS.iter().flat_map(move |actions| {
                [ALL, GENERATED].map(move |event| ([*vals, *vars, *actions], event))
            })
        })
    })
}

/// One of the values of a strategy.
fn some<T>(strategy: impl Strategy<Value = T>, runner: &mut TestRunner) -> T {
    strategy.new_tree(runner).expect("generates").current()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    fn all_paths_of_a_pair_do_the_same(case in pairs()) {
        if let Some(world) = world(&case) {
            check(&world, &case)?;
        }
    }

    #[test]
    fn all_paths_of_what_the_grammar_derives_do_the_same(case in derived()) {
        if let Some(world) = world(&case) {
            check(&world, &case)?;
        }
    }
}

/// What is generated is of no use if most of it is refused.
#[test]
fn most_cases_are_accepted() {
    let mut runner = TestRunner::deterministic();
    let (mut accepted, mut with_refs, mut hits) = ([0; 2], 0, 0);

    for _ in 0..500 {
        let cases = [some(pairs(), &mut runner), some(derived(), &mut runner)];

        for (case, accepted) in cases.iter().zip(&mut accepted) {
            let Some(world) = world(case) else {
                continue;
            };
            let Trigger { program, .. } = world.triggers.last().expect("one");
            let left = run(&world, case, |_, n| world.triggers[n].path);

            *accepted += 1;
            if !program.refs.is_empty() {
                with_refs += 1;
                hits += left.accounts.last().expect("one").hits;
            }
        }
    }
    let enough = accepted[0] > 150 && accepted[1] > 150 && with_refs > 50 && hits > 50;
    assert!(
        enough,
        "{accepted:?} of 500, {with_refs} with references and {hits} hits"
    );
}

/// Each front and each back is that of triggers, for some of which all others that offer what they need do the same.
#[test]
fn each_part_is_that_of_some_trigger() {
    /// How many of them are hit.
    const CASES: usize = 10;

    let mut runner = TestRunner::deterministic();
    let mut found: BTreeMap<&str, Vec<Case>> =
        every_part().map(|name| (name, Vec::new())).collect();
    let sizes = [(0, 1), (1, 1), (3, 1), (1, MANY_CPUS), (3, MANY_CPUS)];

    for ((bits, cpus), keys) in sizes
        .into_iter()
        .flat_map(|size| KEYS.iter().map(move |keys| (size, keys)))
    {
        let (own, of_both) = match keys {
            _ if keys.contains("$k") => (OWN, OWN),
            _ if keys.contains("$l") => (JOINED, ""),
            _ => ("", ""),
        };
        // By which the variables are found.
        let by = keys
            .split_once(":join(")
            .map_or(*keys, |(_, by)| &by[..by.len() - 1]);

        let both = ["u8", by].map(|others| {
            [
                (others, DEFINED, ""),
                (others, NUMBERS, ":size=128..256"),
                (others, DEFINED, ":expire(1s)"),
            ]
        });
        for (others, defined, size) in both.into_iter().flatten() {
            let hash = match bits {
                1 => Hash::Same,
                _ => Hash::Seeded,
            };
            let mut case = Case {
                tables: Tables {
                    bits,
                    cpus,
                    hash,
                    ..Tables::default()
                },
                triggers: vec![(OTHER, format!("keys={others}:{defined}{of_both}{size}"))],
                records: Vec::new(),
                hits: Vec::new(),
            };
            let mut world = world(&case).expect("it defines variables");

            for ([vals, vars, actions], event) in combinations() {
                for change in ["", ":expire(1s)", ":size=128..256"] {
                    let text = format!("keys={keys}{vals}{vars}{actions}{own}{change}");

                    if world.try_add(&ZOO, event, text.as_bytes()).is_ok() {
                        let Trigger { path, .. } = world.triggers.pop().expect("just added");

                        case.triggers.truncate(1);
                        case.triggers.push((event, text));
                        for name in [path.front.name, path.back().name] {
                            found.get_mut(name).expect("a part").push(case.clone());
                        }
                    }
                }
            }
        }
    }
    for (path, cases) in found {
        assert!(!cases.is_empty(), "of no trigger: {path}");
        for i in 0..CASES {
            let case = Case {
                records: some(alike(), &mut runner),
                hits: some(hits(), &mut runner),
                ..cases[i * cases.len() / CASES].clone()
            };
            let world = world(&case).expect("it was accepted before");

            check(&world, &case).unwrap_or_else(|why| panic!("{:?}: {why}", case.triggers));
        }
    }
}
