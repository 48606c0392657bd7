// SPDX-License-Identifier: GPL-2.0

//! The machine that the tables of a test are on: each thread has one, and those that it starts by [`Task::start`] have the same.

use crate::sync::Pair;
use kernel::cpu::{nr_cpu_ids, set_nr_cpu_ids};
use rust_hist::tracing_map::HashSeed;
use std::{
    cell::RefCell,
    collections::BTreeSet,
    sync::{
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        mpsc::{channel, Receiver, Sender},
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
    },
    thread::{self, JoinHandle},
};

pub use crate::hash::Hash;

/// A place where others may come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// Before the mutex is taken, or while another task holds it.
    Lock,
    /// While hits are waited for.
    Grace,
    /// While another task is waited for.
    Pause,
    /// Before a block is allocated, and before a part of a map is gone through.
    Step,
}

type Hook = Box<dyn FnMut(At)>;

thread_local! {
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
    static MACHINE: RefCell<Arc<Machine>> = RefCell::default();
}

/// Has `hook` called at each such place of this thread while `run` runs.
pub fn with_hook<R>(hook: impl FnMut(At) + 'static, run: impl FnOnce() -> R) -> R {
    HOOK.set(Some(Box::new(hook)));
    let result = run();
    HOOK.set(None);
    result
}

pub(crate) fn log() {
    Machine::this().logged.fetch_add(1, Ordering::Relaxed);
}

pub(crate) fn at(place: At) {
    match HOOK.take() {
        Some(mut hook) => {
            hook(place);
            HOOK.set(Some(hook));
        }
        None if place == At::Step => (),
        None => thread::yield_now(),
    }
}

/// What the tables of a test share.
#[derive(Default)]
pub struct Machine {
    hash: Mutex<Hash>,
    /// Nanoseconds since it was started.
    now: AtomicU64,
    /// The sections without preemption that are not over, by their numbers.
    sections: Mutex<BTreeSet<u64>>,
    next_section: AtomicU64,
    /// Somebody has `event_mutex`.
    pub(crate) is_held: AtomicBool,
    /// Bytes of maps.
    bytes: AtomicUsize,
    /// Blocks that were freed are kept, so that a use of them is seen.
    kept: Option<Mutex<Vec<Arc<Block>>>>,
    /// Entries of the error log.
    logged: AtomicUsize,
    /// Somebody has asked for the work, or for it at a later time.
    is_asked: AtomicBool,
    due: AtomicU64,
}

static WORK: OnceLock<fn()> = OnceLock::new();

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Machine {
    /// Gives this thread another one, which keeps blocks that were freed.
    pub fn start() -> Arc<Self> {
        let machine = Arc::new(Self {
            kept: Some(Mutex::default()),
            due: AtomicU64::new(u64::MAX),
            ..Self::default()
        });
        MACHINE.set(machine.clone());
        machine
    }

    /// Chooses the hash of the tables that are made from now on, and how many CPUs they are for.
    pub fn set(hash: Hash, cpus: u32) {
        *lock(&Self::this().hash) = hash;
        set_nr_cpu_ids(cpus);
    }

    /// Has this thread be on the machine.
    pub fn join(self: &Arc<Self>) {
        MACHINE.set(self.clone());
    }

    /// Returns that of this thread.
    pub fn this() -> Arc<Self> {
        MACHINE.with_borrow(Arc::clone)
    }

    /// Returns how many entries the error log has had.
    pub fn logged(&self) -> usize {
        self.logged.load(Ordering::Relaxed)
    }

    /// Returns how many bytes maps have.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Lets time pass.
    pub fn pass(&self, ms: u64) {
        self.now.fetch_add(ms * 1_000_000, Ordering::Relaxed);
    }

    /// Returns whether the work is to be done now, which is to be asked for anew after that.
    pub fn takes_work(&self) -> bool {
        let due = self.due.load(Ordering::Relaxed);
        if self.now.load(Ordering::Relaxed) >= due {
            self.due.store(u64::MAX, Ordering::Relaxed);
            self.is_asked.store(true, Ordering::Relaxed);
        }
        self.is_asked.swap(false, Ordering::Relaxed)
    }

    /// Does the work.
    pub fn work() {
        if let Some(run) = WORK.get() {
            run();
        }
    }
}

pub(crate) fn hash(_: &'static HashSeed) -> Hash {
    *lock(&Machine::this().hash)
}

pub(crate) fn now() -> u64 {
    Machine::this().now.load(Ordering::Relaxed)
}

pub(crate) fn set_work(run: fn()) {
    WORK.get_or_init(|| run);
}

pub(crate) fn ask_for_work() {
    Machine::this().is_asked.store(true, Ordering::Relaxed);
}

pub(crate) fn ask_for_work_in(ms: u32) {
    let due = now().saturating_add(u64::from(ms) * 1_000_000);
    Machine::this().due.fetch_min(due, Ordering::Relaxed);
}

/// A section without preemption, until it is dropped.
pub struct Section(Arc<Machine>, u64);

impl Section {
    pub(crate) fn new() -> Self {
        let machine = Machine::this();
        let number = machine.next_section.fetch_add(1, Ordering::Relaxed);
        lock(&machine.sections).insert(number);
        Self(machine, number)
    }
}

impl Drop for Section {
    fn drop(&mut self) {
        lock(&self.0.sections).remove(&self.1);
    }
}

pub(crate) fn wait_for_sections() {
    let machine = Machine::this();
    let before: Vec<u64> = lock(&machine.sections).iter().copied().collect();
    loop {
        at(At::Grace);
        let now = lock(&machine.sections);
        if !before.iter().any(|number| now.contains(number)) {
            return;
        }
    }
}

/// A block of memory.
pub struct Block {
    pairs: Box<[Pair]>,
    is_freed: AtomicBool,
    machine: Arc<Machine>,
}

impl Block {
    pub(crate) fn new(pairs: usize) -> Arc<Self> {
        let machine = Machine::this();
        let pairs: Box<[Pair]> = (0..pairs).map(|_| Pair::zero()).collect();
        machine
            .bytes
            .fetch_add(size_of_val(&*pairs), Ordering::Relaxed);
        Arc::new(Self {
            pairs,
            is_freed: AtomicBool::new(false),
            machine,
        })
    }

    pub(crate) fn pairs(&self) -> &[Pair] {
        assert!(
            !self.is_freed.load(Ordering::Relaxed),
            "a map is used that was freed"
        );
        &self.pairs
    }

    pub(crate) fn free(self: &Arc<Self>) {
        assert!(
            !self.is_freed.swap(true, Ordering::Relaxed),
            "a map is freed twice"
        );
        self.machine
            .bytes
            .fetch_sub(size_of_val(&*self.pairs), Ordering::Relaxed);
        if let Some(kept) = &self.machine.kept {
            lock(kept).push(self.clone());
        }
    }
}

/// What a task says when it stops.
enum Stopped<R> {
    At(At),
    Done(R),
}

/// A task on this machine that goes on only when it is told to, from one place where others may come in to the next.
pub struct Task<R> {
    go: Sender<()>,
    stopped: Receiver<Stopped<R>>,
    thread: Option<JoinHandle<()>>,
}

impl<R: Send + 'static> Task<R> {
    /// Starts a task, which stops at the first such place.
    pub fn start(run: impl FnOnce() -> R + Send + 'static) -> Self {
        let (machine, cpus) = (Machine::this(), nr_cpu_ids());
        let (go, may_go) = channel();
        let (stops, stopped) = channel();
        let thread = thread::spawn(move || {
            MACHINE.set(machine);
            set_nr_cpu_ids(cpus);
            if may_go.recv().is_err() {
                return;
            }
            let stops_at = stops.clone();
            let result = with_hook(
                move |place| {
                    // A test that has failed waits for nobody.
                    if stops_at.send(Stopped::At(place)).is_ok() && may_go.recv().is_ok() {
                        return;
                    }
                    loop {
                        thread::park();
                    }
                },
                run,
            );
            // The test may have failed.
            let _ = stops.send(Stopped::Done(result));
        });
        Self {
            go,
            stopped,
            thread: Some(thread),
        }
    }

    /// Lets it go on to the next place, and says which; or returns what it has returned.
    pub fn step(&mut self) -> Result<At, R> {
        self.go.send(()).expect("a task that is not done");
        match self.stopped.recv() {
            Ok(Stopped::At(place)) => Ok(place),
            Ok(Stopped::Done(result)) => {
                self.thread.take().map(JoinHandle::join);
                Err(result)
            }
            Err(_) => panic!("a task has failed"),
        }
    }

    /// Lets it go on until it is done.
    pub fn finish(mut self) -> R {
        loop {
            if let Err(result) = self.step() {
                return result;
            }
        }
    }
}
