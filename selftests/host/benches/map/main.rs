// SPDX-License-Identifier: GPL-2.0

//! What the map alone costs, ours beside C's and a floor, on one thread and on several.
//!
//! Each thread draws keys with xorshift64, finds or inserts them and counts a hit. Keys are the numbers
//! from 0, or as many that lie anywhere in 64 bits. The floor is the
//! same loop with an array of its own in place of the map. A round runs all of them once, one after
//! the other, so that a machine that gets slower makes all of them slower; ratios are those of one
//! round, and of eleven rounds the median counts. Time is the CPU time of the threads.
//!
//! Output: a table of tab-separated columns, with a line of comment above; see `scripts/bench-map`,
//! which compiles the C implementation and has it linked (`--cfg c_map`).
//!
//! A last line of comment says if ours is past its limits. Nothing fails then: it is time that is measured.

#[cfg(c_map)]
mod kernel;

use rust_hist::sync::Pair;
use rust_hist::tracing_map::{Dimensions, Ending, Key, Lookup, Map, SeededHash, Shape};
use std::ffi::{c_int, c_long};
use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

/// The size of a table by default.
const BITS: u32 = 11;
const KEYS: [Keys; 4] = [
    Keys::in_a_row(1),
    Keys::in_a_row(64),
    Keys::in_a_row(1024),
    Keys::anywhere(1024),
];
const ROUNDS: usize = 11;
/// Keys that a thread draws before it waits for the others again.
const BURST: u64 = 20_000;
/// CPUs of a machine that are too many for a shard each.
const MANY_CPUS: usize = 512;
/// What ours may take on one thread, as a ratio to the floor.
const RATIO_MAX: f64 = 3.0;
/// What ours may take on two threads, as a ratio to one.
const TWO_THREADS_MAX: f64 = 1.15;

/// What a thread does for each key.
trait Subject: Sync {
    /// Draws `n` keys from `random` and counts them; `thread` is where the caller runs.
    fn run(&self, thread: usize, random: &mut Random, keys: Keys, n: u64);

    /// Returns the hits that were counted, `None` if it keeps none.
    fn hits(&self, keys: Keys) -> Option<u64>;
}

/// The keys of a round.
#[derive(Clone, Copy)]
struct Keys {
    /// A power of two.
    count: u64,
    is_spread: bool,
}

impl Keys {
    const fn in_a_row(count: u64) -> Self {
        Self {
            count,
            is_spread: false,
        }
    }

    const fn anywhere(count: u64) -> Self {
        Self {
            count,
            is_spread: true,
        }
    }

    /// A key for each number below `count`, another for another, as the events of the selftests have them.
    #[inline(always)]
    fn key(self, number: u64) -> u64 {
        let mut key = number.wrapping_add(1).wrapping_mul(0xd6e8_feb8_6659_fd93);
        key ^= key >> 29;
        key = key.wrapping_mul(0xa076_1d64_78bd_642f);
        match self.is_spread {
            true => key ^ (key >> 32),
            false => number,
        }
    }

    /// What is said of where they lie.
    fn place(self) -> &'static str {
        match self.is_spread {
            true => ", anywhere",
            false => "",
        }
    }
}

/// xorshift64.
struct Random(u64);

impl Random {
    #[inline(always)]
    fn number(&mut self, keys: Keys) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 & (keys.count - 1)
    }

    #[inline(always)]
    fn key(&mut self, keys: Keys) -> u64 {
        let number = self.number(keys);
        keys.key(number)
    }
}

/// An array for each thread, which nobody else looks at.
struct Floor;

impl Subject for Floor {
    fn run(&self, _thread: usize, random: &mut Random, keys: Keys, n: u64) {
        let mut counts = vec![0u64; keys.count as usize];
        let counts = black_box(counts.as_mut_slice());

        for _ in 0..n {
            let number = random.number(keys);
            // What the key takes, the others have as well.
            black_box(keys.key(number));
            counts[number as usize] = counts[number as usize].wrapping_add(1);
        }
        black_box(counts);
    }

    fn hits(&self, _keys: Keys) -> Option<u64> {
        None
    }
}

/// Our map, with the hit count alone, as `keys=` of one number makes it.
struct Ours(Map<Vec<Pair>, SeededHash>);

impl Ours {
    /// A map for this many CPUs. With very many of them, neighbours share a shard.
    fn new(cpus: usize) -> Self {
        let dimensions = Dimensions {
            bits: BITS,
            key_words: 1,
            sums: 1,
            ..Dimensions::default()
        };
        let shape = Shape::new(dimensions, cpus as u32).expect("dimensions in range");
        let words = (0..shape.pairs()).map(|_| Pair::zero()).collect();
        Self(
            Map::new(shape, words, Default::default())
                .expect("as many words as the shape asks for"),
        )
    }
}

impl Subject for Ours {
    fn run(&self, thread: usize, random: &mut Random, keys: Keys, n: u64) {
        let cpu = thread as u32;
        let per_cpu = self.0.shape().per_cpu();

        // As the hit of a trigger whose key is one number.
        for _ in 0..n {
            let key = [random.key(keys)];
            let map = self.0.view();
            let hash = key.hash(map.hash());
            let elt = match map.find(&key, hash) {
                Lookup::Found(elt) => Some(elt),
                Lookup::Full => None,
                Lookup::Absent(at) => self.0.insert_at(key, hash, at, |_: &[_]| ()),
            };
            let shard = map.shard(cpu, !per_cpu);
            match elt {
                Some(elt) => shard.hit(elt, &[0; 0]),
                None => shard.count(Ending::DroppedFull),
            }
        }
    }

    fn hits(&self, keys: Keys) -> Option<u64> {
        let hitcount = |key| self.0.lookup(&[key]).map_or(0, |elt| self.0.sum(elt, 0));
        Some((0..keys.count).map(|n| hitcount(keys.key(n))).sum())
    }
}

#[cfg(c_map)]
impl Subject for kernel::CMap {
    fn run(&self, _thread: usize, random: &mut Random, keys: Keys, n: u64) {
        for _ in 0..n {
            self.hit(random.key(keys));
        }
    }

    fn hits(&self, keys: Keys) -> Option<u64> {
        let hitcount = |n| self.hitcount(keys.key(n));
        Some((0..keys.count).map(hitcount).sum())
    }
}

#[repr(C)]
struct Timespec {
    seconds: c_long,
    nanoseconds: c_long,
}

const CLOCK_THREAD_CPUTIME_ID: c_int = 3;

unsafe extern "C" {
    fn clock_gettime(clock: c_int, to: *mut Timespec) -> c_int;
    fn sched_getaffinity(pid: c_int, size: usize, mask: *mut u64) -> c_int;
    fn sched_setaffinity(pid: c_int, size: usize, mask: *const u64) -> c_int;
}

/// Returns the CPU time of the calling thread.
fn cpu_seconds() -> f64 {
    let mut now = Timespec {
        seconds: 0,
        nanoseconds: 0,
    };
    // SAFETY: `now` is what the function fills.
    unsafe { clock_gettime(CLOCK_THREAD_CPUTIME_ID, &mut now) };
    now.seconds as f64 + now.nanoseconds as f64 * 1e-9
}

type CpuMask = [u64; 16];

/// Returns the CPUs that this process may use.
fn cpus() -> Vec<usize> {
    let mut mask: CpuMask = [0; 16];
    // SAFETY: the mask has the size that is said.
    unsafe { sched_getaffinity(0, size_of::<CpuMask>(), mask.as_mut_ptr()) };
    (0..mask.len() * 64)
        .filter(|cpu| mask[cpu / 64] >> (cpu % 64) & 1 != 0)
        .collect()
}

/// Keeps the calling thread on a CPU.
fn stay_on(cpu: usize) {
    let mut mask: CpuMask = [0; 16];
    mask[cpu / 64] |= 1 << (cpu % 64);
    // SAFETY: as in `cpus`.
    unsafe { sched_setaffinity(0, size_of::<CpuMask>(), mask.as_ptr()) };
}

/// What one run took.
#[derive(Clone, Copy)]
struct Cost {
    /// CPU time for a key, the mean of the threads.
    ns: f64,
    /// The part of the time that the threads had a CPU; below 1 other programs had it.
    share: f64,
}

/// Where threads wait for each other without going to sleep, so that they go on at once.
#[derive(Default)]
struct Line {
    came: AtomicUsize,
}

impl Line {
    /// Returns when all of `threads` have called it as often as the caller.
    fn wait(&self, threads: usize) {
        let came = self.came.fetch_add(1, Ordering::AcqRel);
        let wanted = (came / threads + 1) * threads;

        for turn in 1.. {
            if self.came.load(Ordering::Acquire) >= wanted {
                return;
            }
            spin_loop();
            // Another program may have the CPU that a thread waits for.
            if turn % 10_000 == 0 {
                thread::yield_now();
            }
        }
    }
}

/// Lets a thread on each of `cpus` draw `n` keys.
fn measure(subject: &dyn Subject, cpus: &[usize], keys: Keys, n: u64) -> Cost {
    let line = Line::default();
    let before = subject.hits(keys);

    let times: Vec<(f64, f64)> = thread::scope(|scope| {
        let threads: Vec<_> = cpus
            .iter()
            .enumerate()
            .map(|(thread, &cpu)| {
                let line = &line;
                scope.spawn(move || {
                    stay_on(cpu);
                    let mut random = Random(black_box(88_172_645_463_325_252 + thread as u64));
                    let mut times = (0.0, 0.0);
                    for _ in 0..n / BURST {
                        line.wait(cpus.len());
                        let (wall, used) = (Instant::now(), cpu_seconds());
                        subject.run(thread, &mut random, black_box(keys), BURST);
                        times.0 += cpu_seconds() - used;
                        times.1 += wall.elapsed().as_secs_f64();
                    }
                    times
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a thread that ends"))
            .collect()
    });

    // What is fast and wrong does not count.
    let drawn = n / BURST * BURST * cpus.len() as u64;
    if let (Some(before), Some(after)) = (before, subject.hits(keys)) {
        assert_eq!(after - before, drawn, "hits were lost");
    }

    let used: f64 = times.iter().map(|(used, _)| used).sum();
    let wall: f64 = times.iter().map(|(_, wall)| wall).sum();
    Cost {
        ns: used * 1e9 / drawn as f64,
        share: used / wall,
    }
}

/// The least, the median and the most.
fn spread(values: impl Iterator<Item = f64>) -> (f64, f64, f64) {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    (
        values[0],
        values[values.len() / 2],
        values[values.len() - 1],
    )
}

/// The costs of one subject in all rounds.
struct Series {
    name: &'static str,
    subject: Box<dyn Subject>,
    costs: Vec<Cost>,
}

impl Series {
    fn new(name: &'static str, subject: Box<dyn Subject>) -> Self {
        Self {
            name,
            subject,
            costs: Vec::new(),
        }
    }

    /// Returns the floor, C where it is linked, and ours: as it is on a machine with as many CPUs as
    /// there are threads, and on one with so many that those of the threads share a shard.
    fn all(cpus: usize) -> Vec<Self> {
        vec![
            Self::new("floor", Box::new(Floor)),
            #[cfg(c_map)]
            Self::new("C", Box::new(kernel::CMap::new(BITS))),
            Self::new("ours", Box::new(Ours::new(cpus))),
            Self::new("shared", Box::new(Ours::new(MANY_CPUS))),
        ]
    }

    /// Returns the median of what this takes in a round, by what `other` takes in it.
    fn ratio(&self, other: &Self) -> (f64, f64, f64) {
        let pairs = self.costs.iter().zip(&other.costs);
        spread(pairs.map(|(this, other)| this.ns / other.ns))
    }
}

/// All subjects on this many of the CPUs.
struct Group {
    threads: usize,
    series: Vec<Series>,
}

/// Runs everything with this many keys, on 1, 2, 4, ... and all of `cpus`.
fn rounds(cpus: &[usize], keys: Keys, n: u64) -> Vec<Group> {
    let powers = (0..)
        .map(|i| 1 << i)
        .take_while(|&threads| threads < cpus.len());
    let mut groups: Vec<Group> = powers
        .chain([cpus.len()])
        .map(|threads| Group {
            threads,
            series: Series::all(threads),
        })
        .collect();

    // The first round inserts the keys and does not count.
    for round in 0..=ROUNDS {
        for Group { threads, series } in &mut groups {
            for Series { subject, costs, .. } in series {
                let cost = measure(subject.as_ref(), &cpus[..*threads], keys, n);
                if round > 0 {
                    costs.push(cost);
                }
            }
        }
    }
    groups
}

/// Prints a row for each subject of a group.
fn print(group: &Group, keys: Keys) {
    let threads = group.threads;
    let (count, place) = (keys.count, keys.place());

    for series in &group.series {
        let (least, median, most) = spread(series.costs.iter().map(|cost| cost.ns));
        let (ratio_least, ratio, ratio_most) = series.ratio(&group.series[0]);
        let (_, share, _) = spread(series.costs.iter().map(|cost| cost.share));
        println!(
            "{threads}\t{count}{place}\t{}\t{median:.2}\t{least:.2}\t{most:.2}\t\
             {ratio:.2}\t{ratio_least:.2}\t{ratio_most:.2}\t{share:.2}\t{}",
            series.name,
            match (series.name, threads) {
                ("ours", 1) => RATIO_MAX.to_string(),
                _ => "-".into(),
            }
        );
    }
}

/// Prints what more threads cost, and says whether ours stays below its limits.
fn compare(groups: &[Group], keys: Keys) -> bool {
    let Some((one, more)) = groups.split_first() else {
        return true;
    };
    let (count, place) = (keys.count, keys.place());
    let mut met = true;

    for series in one.series.iter().filter(|series| series.name == "ours") {
        met &= series.ratio(&one.series[0]).1 <= RATIO_MAX;
    }
    for group in more {
        for (alone, series) in one.series.iter().zip(&group.series) {
            let (least, times, most) = series.ratio(alone);
            let is_held = series.name == "ours" && group.threads == 2;
            let at_most = match is_held {
                true => format!(", at most {TWO_THREADS_MAX}"),
                false => String::new(),
            };
            println!(
                "# {count} keys{place}, {}: {} threads take {times:.2} ({least:.2} to {most:.2}{at_most}) times one",
                series.name, group.threads
            );
            met &= !is_held || times <= TWO_THREADS_MAX;
        }
    }
    met
}

fn main() {
    let n = std::env::var("N").map_or(1_000_000, |n| n.parse().expect("N is a number"));
    let cpus = cpus();
    let mut met = true;

    println!(
        "threads\tkeys\tmap\tns\tns_min\tns_max\tratio\tratio_min\tratio_max\tcpu_share\tat_most"
    );
    for keys in KEYS {
        let groups = rounds(&cpus, keys, n);
        for group in &groups {
            print(group, keys);
        }
        met &= compare(&groups, keys);
    }

    if !met {
        println!("# past a limit: {RATIO_MAX} times the floor, {TWO_THREADS_MAX} times one thread");
    }
}
