// SPDX-License-Identifier: GPL-2.0

//! Starts that expire, and what ends them, interrupted before each access by others and by the end of a generation, which
//! comes from another CPU; and the counting of what nobody has ended, interrupted by hits of the younger maps: X-66.

use crate::{
    interrupted_at,
    lang_common::*,
    run::*, //
};
use std::{
    cell::RefCell,
    rc::Rc, //
};

/// What comes in.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Came {
    /// Begins the key, with this number.
    Start(u8),
    /// Ends it.
    End,
    /// Takes what is more than a generation old out of sight, and has hits go to an empty map: two steps of the thread.
    Hide,
    Exchange,
    /// All that the thread does at the end of a generation.
    Turn,
}

const START: usize = 0;
const END: usize = 1;

/// One hit; returns whether it was one.
fn send(world: &World, n: usize, says: u8) -> bool {
    let mut record = [0; 32];

    record[8] = says;
    record[24] = 5;
    world.hit(n, &record, &AROUND).is_hit
}

/// Triggers, and what the thread has begun that ends generations of the first one.
struct Run {
    world: World,
    turn: RefCell<Option<Replacement>>,
}

impl Run {
    /// Ends the last turn, and begins the next one, up to where maps have been taken out of sight.
    fn hide(&self) {
        self.finish();
        let table = self.world.triggers[START].table.clone();
        Machine::this().pass(1000);
        let mut turn = Replacement::begin(move || table.replace());
        // There is memory for the map; the mutex is taken to hide others, and is about to be taken for the exchange.
        assert!(turn.go_to(At::Step) && turn.go_to(At::Lock) && turn.go_to(At::Lock));
        self.turn.replace(Some(turn));
    }

    fn exchange(&self) {
        let turn = &mut *self.turn.borrow_mut();
        assert!(turn.as_mut().expect("it has begun").go_to(At::Grace));
    }

    fn finish(&self) {
        if let Some(mut turn) = self.turn.take() {
            turn.finish();
        }
    }

    fn turn(&self) {
        self.finish();
        Machine::this().pass(1000);
        let done = self.world.triggers[START].table.replace();
        done.expect("memory");
    }

    fn happen(&self, event: Came) {
        match event {
            Came::Start(says) => assert!(send(&self.world, START, says)),
            Came::End => _ = send(&self.world, END, 0),
            Came::Hide => self.hide(),
            Came::Exchange => self.exchange(),
            Came::Turn => self.turn(),
        }
    }
}

/// Runs `outer`, before whose access `at` the `inner` come, and the others before and after it. Returns whether the inner
/// ones came.
///
/// Each start has a number of its own, so the sum of what was read says which ones were ended.
fn run(
    end: &str,
    before: &[Came],
    outer: Came,
    inner: &'static [Came],
    after: &[Came],
    at: u64,
) -> bool {
    let mut world = World {
        tables: Tables {
            bits: 2,
            ..Tables::default()
        },
        ..World::default()
    };
    world.add(&ZOO, ALL, "keys=u64:a=u8:expire(1s)");
    world.add(&ZOO, ALL, end);
    // A generation in which nothing has begun does not end. Nobody ends this start.
    assert!(world.hit(START, &[0; 32], &AROUND).is_hit);
    let run = Rc::new(Run {
        world,
        turn: RefCell::default(),
    });
    before.iter().for_each(|&event| run.happen(event));

    let nested = {
        let run = run.clone();
        move || inner.iter().for_each(|&event| run.happen(event))
    };
    let ((), came) = interrupted_at(at, nested, || run.happen(outer));
    if !came {
        run.finish();
        return false;
    }
    after.iter().for_each(|&event| run.happen(event));

    let all = [before, &[outer], inner, after].concat();
    let begun: Vec<u8> = all
        .iter()
        .filter_map(|event| match event {
            Came::Start(says) => Some(*says),
            _ => None,
        })
        .collect();
    let sums = run
        .world
        .sums(END)
        .first()
        .map_or((0, 0), |(_, sums)| (sums[0], sums[1]));
    let case = format!("{outer:?} by {inner:?} at {at} of {end}, {sums:?}");

    // Different sums of the starts are different sets of them: none was ended twice, and none that never began.
    let sets = 1u64 << begun.len();
    let ended = (0..sets).find(|set| {
        let of = |n: &usize| set >> n & 1 != 0;
        let chosen = (0..begun.len()).filter(of);
        let sum: u64 = chosen.clone().map(|n| u64::from(begun[n])).sum();

        (chosen.count() as u64, sum) == sums
    });
    assert!(ended.is_some(), "{case}: {begun:?}");

    // Each other one was overwritten, or nobody has ended it when all have expired.
    for _ in 0..3 {
        run.turn();
    }
    let account = run.world.triggers[START].table.account().expect("memory");
    let left = account.expired + account.overwritten;
    assert_eq!(sums.0 + left, begun.len() as u64 + 1, "{case}");
    true
}

/// Tries all places; returns how many there are.
fn all(run: impl Fn(u64) -> bool) {
    let tried = (0..).take_while(|&at| run(at)).count();

    assert!(tried >= 4, "{tried} tried");
}

#[test]
fn ends_and_starts_at_the_end_of_a_generation() {
    use Came::*;

    let cases: &[(&[Came], Came, &'static [Came], &[Came])] = &[
        // Who ends a start of the youngest map, and of the one before.
        (&[Start(1)], End, &[Hide, Exchange], &[]),
        (&[Start(1)], End, &[Hide, Exchange, End], &[]),
        (&[Start(1)], End, &[Hide, Exchange, Start(2)], &[End]),
        (&[Start(1)], End, &[Hide, Exchange, Start(2), End], &[End]),
        (&[Start(1), Hide, Exchange], End, &[End], &[]),
        (&[Start(1), Hide, Exchange], End, &[Hide], &[Exchange]),
        (&[Start(1), Hide, Exchange], End, &[Hide, Exchange], &[]),
        (
            &[Start(1), Hide, Exchange],
            End,
            &[Hide, Exchange, End],
            &[End],
        ),
        (&[Start(1), Hide, Exchange], End, &[Start(2)], &[End]),
        (&[Start(1), Hide, Exchange], End, &[Start(2), End], &[End]),
        (
            &[Start(1), Hide, Exchange],
            End,
            &[Start(2), Hide, Exchange],
            &[End],
        ),
        (
            &[Start(1), Hide, Exchange],
            End,
            &[Hide, Exchange, Start(2), End],
            &[],
        ),
        // Who begins again, while it is ended and while a generation ends.
        (&[Start(1)], Start(2), &[End], &[End]),
        (&[Start(1)], Start(2), &[Hide, Exchange], &[End]),
        (&[Start(1)], Start(2), &[Hide, Exchange, End], &[End]),
        (&[Start(1)], Start(2), &[Hide, Exchange, Start(4)], &[End]),
        (&[Start(1)], Start(2), &[Start(4)], &[End]),
        (&[Start(1)], Start(2), &[Start(4), End], &[End]),
        (&[Start(1), Hide, Exchange], Start(2), &[End], &[End]),
        (
            &[Start(1), Hide, Exchange],
            Start(2),
            &[Hide, Exchange, End],
            &[End],
        ),
        (
            &[Start(1), Hide, Exchange],
            Start(2),
            &[Start(4), End, Hide, Exchange],
            &[End],
        ),
        // The thread itself.
        (&[Start(1)], Turn, &[End], &[End]),
        (&[Start(1), Hide, Exchange, Start(2)], Turn, &[End], &[End]),
        (&[], Start(1), &[Hide, Exchange], &[End]),
        (&[], Start(1), &[Start(2), Hide, Exchange, End], &[End]),
    ];

    for end in [
        "keys=u64:x=$a+0:vals=$x",
        "keys=u64:x=$a+0,y=s16:vals=$x:onmax($y).save(u8)",
        "join(u64):x=$a+0:keys=u32:vals=$x",
    ] {
        for &(before, outer, inner, after) in cases {
            all(|at| run(end, before, outer, inner, after, at));
        }
    }
}
