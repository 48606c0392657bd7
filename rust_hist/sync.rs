// SPDX-License-Identifier: GPL-2.0

//! Atomic words for the pure layers: one API with several implementations.
//!
//! C counterpart: [`include/linux/atomic.h`](srctree/include/linux/atomic.h).
//! The API is that of `kernel::sync::atomic`, which the module uses. The host implements it with `core`,
//! and under `--cfg loom` with the model checker; under `--cfg nested` a test can run a handler before any
//! access, like an interrupt. Besides `alloc.rs` no other pure file names the `kernel` crate.
//!
//! Context: any, NMI included.

#[cfg(CONFIG_RUST)]
pub use kernel::sync::atomic::{
    Acquire,
    Atomic,
    Full,
    Relaxed,
    Release, //
};

#[cfg(not(CONFIG_RUST))]
pub use self::host::{
    Acquire,
    Atomic,
    Full,
    Relaxed,
    Release, //
};

#[cfg(nested)]
pub use self::host::interrupted;

/// The version of the edge for this architecture; that of a model where tests want to see each access, or where a host has
/// no version.
///
/// It has `local_add()`, `local_inc()`, `local_cmpxchg()`, `order_writes()`, `has_pairs()`, `cmpxchg_pair()`, `load_8()`,
/// `load_4()`, `load_2()` and `store_8()`, as described in
/// [`sync/x86_64.rs`](srctree/rust_hist/sync/x86_64.rs).
#[cfg(all(
    not(any(loom, miri, nested)),
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
#[cfg_attr(target_arch = "x86_64", path = "sync/x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "sync/aarch64.rs")]
mod arch;

#[cfg(not(all(
    not(any(loom, miri, nested)),
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
use self::host::arch_model as arch;

#[cfg(all(CONFIG_RUST, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
compile_error!(
    "rust_hist does not know this architecture: it needs sync/ARCH.rs, an exchange of 16 bytes and additions that \
     interrupts do not tear, and ffi/arch/ARCH.rs, the CPU's own words"
);

/// Adds `v`, wrapping around, to word `at` of `words`, if there is one. Only this CPU may write the word.
///
/// No addition is lost if interrupts and NMIs add to the same word at any point, and other CPUs may read
/// it at any time. If two CPUs add to one word, additions are lost on some architectures, so callers use this function
/// only if `tracing_map::Shape` has one shard for each CPU.
#[inline(always)]
pub fn local_add(words: &[Atomic<u64>], at: usize, v: u64) {
    local_add_behind::<0>(words, at, v);
}

/// The same to the word that is `BEHIND` words behind word `at`: the instruction adds both.
#[inline(always)]
pub fn local_add_behind<const BEHIND: usize>(words: &[Atomic<u64>], at: usize, v: u64) {
    // OVERFLOW: what has wrapped around is the index of another word, and the same for the instruction.
    if words.get(at.wrapping_add(BEHIND)).is_some() {
        // SAFETY: there is such a word.
        unsafe { arch::local_add::<BEHIND>(words, at, v) };
    }
}

/// Adds one, wrapping around, to word `at` of `words`, if there is one. Only this CPU may write the word;
/// [`local_add`] has the guarantees.
#[inline(always)]
pub fn local_inc(words: &[Atomic<u64>], at: usize) {
    if words.get(at).is_some() {
        // SAFETY: there is such a word.
        unsafe { arch::local_inc(words, at) };
    }
}

/// Has what this CPU writes from here on come after what it has written before, for whoever reads in the opposite order, each
/// word with [`Acquire`].
///
/// C counterpart: `smp_wmb()`.
#[inline(always)]
pub fn order_writes() {
    arch::order_writes();
}

/// Makes word `at` of `words`, if there is one, `v`, unless it is as large already. Only this CPU may write the word.
///
/// The largest `v` stays if interrupts and NMIs raise the same word at any point, and other CPUs may read it at any
/// time: one that comes between the look and the exchange makes the exchange fail, which tells what is there now. For
/// other CPUs that write it, see [`local_add`].
#[inline(always)]
pub fn local_raise(words: &[Atomic<u64>], at: usize, v: u64) {
    let Some(word) = words.get(at) else {
        return;
    };
    // ORDERING: a number by itself, here and below.
    let mut held = word.load(Relaxed);

    while held < v {
        match arch::local_cmpxchg(word, held, v) {
            Ok(_) => return,
            Err(now) => held = now,
        }
    }
}

/// Returns 8 bytes as a number, by one load wherever they lie, as C does. Of bytes the compiler does not know that they are
/// aligned, and on some architectures it takes one after the other.
#[inline(always)]
pub fn load_8(bytes: &[u8; 8]) -> u64 {
    arch::load_8(bytes)
}

/// The same of 4 bytes.
#[inline(always)]
pub fn load_4(bytes: &[u8; 4]) -> u32 {
    arch::load_4(bytes)
}

/// The same of 2 bytes.
#[inline(always)]
pub fn load_2(bytes: &[u8; 2]) -> u16 {
    arch::load_2(bytes)
}

/// Makes 8 bytes `number`, by one store wherever they lie.
#[inline(always)]
pub fn store_8(bytes: &mut [u8; 8], number: u64) {
    arch::store_8(bytes, number);
}

/// How often [`Pair::load`] tries to read both words before it exchanges them.
const LOAD_TRIES: usize = if cfg!(loom) { 1 } else { 4 };

/// Two adjacent words that change together: a value and its metadata.
///
/// It borrows the words and needs no lock. Each change of the value must change `meta` to something that
/// it has never been before; users keep a version there. So if two loads of `meta` return the same, a load
/// of the value between them returns the value that belongs to it.
///
/// # Invariants
///
/// `words` starts at a multiple of 16 bytes, except under the model checker.
///
/// # Examples
///
/// ```
/// use rust_hist::sync::{Atomic, Pair, PairValue};
///
/// #[repr(align(16))]
/// struct Aligned([Atomic<u64>; 2]);
///
/// let words = Aligned([Atomic::<u64>::new(0), Atomic::<u64>::new(0)]);
/// let pair = Pair::new(&words.0).ok_or("not aligned")?;
/// let old = pair.load();
/// let new = PairValue { value: 42, meta: old.meta + 1 };
///
/// assert_eq!(pair.cmpxchg(old, new), Ok(()));
/// assert_eq!(pair.cmpxchg(old, new), Err(new));
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Copy)]
pub struct Pair<'a> {
    words: &'a [Atomic<u64>; 2],
}

/// The two words of a [`Pair`]. A plain value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairValue {
    /// The first word.
    pub value: u64,
    /// The second word.
    pub meta: u64,
}

impl<'a> Pair<'a> {
    /// Returns whether the CPU can exchange 16 bytes. If it cannot, no [`Pair`] may be used.
    pub fn supported() -> bool {
        arch::has_pairs()
    }

    /// Returns the pair of the first two of `words`; `None` if there are fewer, or if they do not start at a
    /// multiple of 16 bytes.
    #[inline(always)]
    pub fn new(words: &'a [Atomic<u64>]) -> Option<Self> {
        Self::at(words, 0)
    }

    /// Returns the pair of the two words from `at` on; `None` if there are fewer, or if they do not start at
    /// a multiple of 16 bytes.
    #[inline(always)]
    pub fn at(words: &'a [Atomic<u64>], at: u16) -> Option<Self> {
        let at = usize::from(at);
        // OVERFLOW: `at` has 16 bits, and `usize` at least 32.
        let words = words.get(at..at.wrapping_add(2))?.first_chunk::<2>()?;

        if is_aligned(words) {
            // INVARIANT: `is_aligned` has checked the address.
            Some(Self { words })
        } else {
            None
        }
    }

    /// Reads both words as one atomic load of 16 bytes would.
    #[inline]
    pub fn load(&self) -> PairValue {
        for _ in 0..LOAD_TRIES {
            // ORDERING: `Acquire` pairs with the full ordering of `cmpxchg`: the load of the value below
            // returns the value that was stored with this meta, or a later one.
            let meta = step::meta(self.words);
            // ORDERING: `Acquire` pairs with the full ordering of `cmpxchg`: if this is a later value, the
            // load of meta below returns the later meta.
            let value = step::value(self.words);
            // ORDERING: the `Acquire` of the load of the value keeps this load after it.
            if step::meta(self.words) == meta {
                return PairValue { value, meta };
            }
        }
        // Other contexts keep changing the words: exchange them for themselves, which succeeds only if both
        // were read between two changes. It fails only because another exchange has succeeded.
        let mut seen = self.load_torn();
        while let Err(held) = self.cmpxchg(seen, seen) {
            seen = held;
        }
        seen
    }

    /// Reads one word after the other. Another context may change both in between, so the two may not belong
    /// together.
    ///
    /// This is enough for a caller that then exchanges them for something else: since `meta` never returns to
    /// an old value, [`Pair::cmpxchg`] fails unless the two belong together.
    #[inline]
    pub fn load_torn(&self) -> PairValue {
        // ORDERING: `Acquire` pairs with the full ordering of `cmpxchg`, so the value is not older than the
        // meta; the exchange that follows proves that it is not newer.
        PairValue {
            meta: step::meta(self.words),
            value: step::value(self.words),
        }
    }

    /// Reads the second word.
    #[inline(always)]
    pub fn meta(&self) -> u64 {
        // ORDERING: `Acquire` pairs with the full ordering of `cmpxchg`: what the writer did before is
        // visible to a caller that sees its meta.
        step::meta(self.words)
    }

    /// Writes `new` if the words hold `old`, fully ordered.
    ///
    /// # Errors
    ///
    /// What [`Pair::load_torn`] reads after the exchange has found other words than `old`. A failed exchange orders
    /// nothing.
    #[inline]
    pub fn cmpxchg(&self, old: PairValue, new: PairValue) -> Result<(), PairValue> {
        // The words are aligned to 16 bytes by the invariant of `Pair`.
        if step::cmpxchg(self.words, old, new) {
            Ok(())
        } else {
            Err(self.load_torn())
        }
    }
}

/// Returns whether the words are aligned as the instruction for 16 bytes needs it.
#[cfg(not(loom))]
#[inline(always)]
fn is_aligned(words: &[Atomic<u64>; 2]) -> bool {
    let [first, _] = words;
    first.as_ptr().addr() % 16 == 0
}

/// The model checker keeps its words elsewhere, so that their addresses have no meaning.
#[cfg(loom)]
fn is_aligned(_words: &[Atomic<u64>; 2]) -> bool {
    true
}

/// The accesses to a pair. All loads are `Acquire`.
#[cfg(all(
    not(any(loom, miri, nested)),
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod step {
    use super::{
        Acquire,
        Atomic, //
    };

    pub(super) use super::arch::cmpxchg_pair as cmpxchg;

    /// Reads the first word.
    #[inline(always)]
    pub(super) fn value(words: &[Atomic<u64>; 2]) -> u64 {
        let [value, _] = words;
        // ORDERING: pairs with the full ordering of `cmpxchg`, whose `meta` a later load then returns.
        value.load(Acquire)
    }

    /// Reads the second word.
    #[inline(always)]
    pub(super) fn meta(words: &[Atomic<u64>; 2]) -> u64 {
        let [_, meta] = words;
        // ORDERING: pairs with the full ordering of `cmpxchg`, whose value a later load then returns.
        meta.load(Acquire)
    }
}

#[cfg(not(all(
    not(any(loom, miri, nested)),
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
use self::host::pair_model as step;

/// The kernel's API over `core` or over the model checker.
#[cfg(not(CONFIG_RUST))]
mod host {
    use core::sync::atomic::Ordering as CoreOrdering;

    #[cfg(not(loom))]
    use core::sync::atomic as cells;
    #[cfg(loom)]
    use loom::sync::atomic as cells;

    /// No ordering with other locations.
    pub struct Relaxed;
    /// A load that later accesses cannot be moved before.
    pub struct Acquire;
    /// A store that earlier accesses cannot be moved after.
    pub struct Release;
    /// Ordered both ways, with one order that all CPUs agree on.
    pub struct Full;

    /// An ordering, for read-modify-write operations.
    pub trait Ordering {
        /// The ordering when the operation succeeds.
        const ORDER: CoreOrdering;
    }

    /// The orderings of a load.
    pub trait AcquireOrRelaxed: Ordering {}
    /// The orderings of a store.
    pub trait ReleaseOrRelaxed: Ordering {}

    impl Ordering for Relaxed {
        const ORDER: CoreOrdering = CoreOrdering::Relaxed;
    }
    impl Ordering for Acquire {
        const ORDER: CoreOrdering = CoreOrdering::Acquire;
    }
    impl Ordering for Release {
        const ORDER: CoreOrdering = CoreOrdering::Release;
    }
    impl Ordering for Full {
        const ORDER: CoreOrdering = CoreOrdering::SeqCst;
    }
    impl AcquireOrRelaxed for Acquire {}
    impl AcquireOrRelaxed for Relaxed {}
    impl ReleaseOrRelaxed for Release {}
    impl ReleaseOrRelaxed for Relaxed {}

    /// An integer type that has an atomic type.
    pub trait AtomicType: Copy {
        /// The atomic type.
        type Cell;
    }

    /// A word that several contexts read and write, without a lock: all accesses are atomic.
    #[cfg_attr(not(loom), repr(transparent))]
    pub struct Atomic<T: AtomicType> {
        cell: T::Cell,
        #[cfg(loom)]
        turn: cells::AtomicU32,
        /// The pair of this word and the next one. No word is accessed both as a part of a pair and alone.
        #[cfg(loom)]
        pair: pair_model::Versions,
    }

    impl<T: AtomicType> Atomic<T> {
        /// Returns the word for an access.
        ///
        /// The model checker finds interleavings to try by comparing each access with the last one before
        /// it. If a thread reads and then writes a word, the checker does not try the reads of other
        /// threads after that write. A relaxed read-modify-write without effect, on another word, before
        /// each access makes it try them, and does not change which values an access may return.
        #[inline(always)]
        fn cell(&self) -> &T::Cell {
            #[cfg(nested)]
            interrupt::step();
            #[cfg(loom)]
            self.turn.fetch_add(0, CoreOrdering::Relaxed);
            &self.cell
        }
    }

    macro_rules! atomic_word {
        ($word:ty, $cell:ident) => {
            impl AtomicType for $word {
                type Cell = cells::$cell;
            }

            impl Atomic<$word> {
                /// Returns a new word that holds `v`.
                pub fn new(v: $word) -> Self {
                    Self {
                        cell: cells::$cell::new(v),
                        #[cfg(loom)]
                        turn: cells::AtomicU32::new(0),
                        #[cfg(loom)]
                        pair: pair_model::Versions::new(),
                    }
                }

                /// Returns the address of the word, valid as long as the word is.
                #[cfg(not(loom))]
                pub fn as_ptr(&self) -> *mut $word {
                    self.cell.as_ptr()
                }

                /// Reads the word.
                #[inline(always)]
                pub fn load<O: AcquireOrRelaxed>(&self, _: O) -> $word {
                    self.cell().load(O::ORDER)
                }

                /// Writes the word.
                #[inline(always)]
                pub fn store<O: ReleaseOrRelaxed>(&self, v: $word, _: O) {
                    self.cell().store(v, O::ORDER)
                }

                /// Writes the word and returns what it held.
                #[inline(always)]
                pub fn xchg<O: Ordering>(&self, v: $word, _: O) -> $word {
                    self.cell().swap(v, O::ORDER)
                }

                /// Writes `new` if the word holds `old`; else returns what it holds, without ordering.
                #[inline(always)]
                pub fn cmpxchg<O: Ordering>(
                    &self,
                    old: $word,
                    new: $word,
                    _: O,
                ) -> Result<$word, $word> {
                    self.cell()
                        .compare_exchange(old, new, O::ORDER, CoreOrdering::Relaxed)
                }

                /// Adds `v`, wrapping around, and returns what the word held before.
                #[inline(always)]
                pub fn fetch_add<O: Ordering>(&self, v: $word, _: O) -> $word {
                    self.cell().fetch_add(v, O::ORDER)
                }
            }
        };
    }

    atomic_word!(u32, AtomicU32);
    atomic_word!(u64, AtomicU64);

    /// What `sync/ARCH.rs` has, where there is none, or where each access is to be seen.
    #[cfg(any(
        loom,
        miri,
        nested,
        not(any(target_arch = "x86_64", target_arch = "aarch64"))
    ))]
    pub(super) mod arch_model {
        use super::{
            cells,
            Atomic,
            CoreOrdering,
            Relaxed, //
        };

        /// Adds `v` to the word that is `BEHIND` words behind word `at`.
        ///
        /// # Safety
        ///
        /// None is needed.
        pub(in super::super) unsafe fn local_add<const BEHIND: usize>(
            words: &[Atomic<u64>],
            at: usize,
            v: u64,
        ) {
            // ORDERING: a number by itself.
            words[at + BEHIND].fetch_add(v, Relaxed);
        }

        /// Adds 1 to word `at`.
        ///
        /// # Safety
        ///
        /// None is needed.
        pub(in super::super) unsafe fn local_inc(words: &[Atomic<u64>], at: usize) {
            // ORDERING: a number by itself.
            words[at].fetch_add(1, Relaxed);
        }

        /// Orders writes.
        pub(in super::super) fn order_writes() {
            cells::fence(CoreOrdering::Release);
        }

        /// Makes `word` `new` if it is `old`; else returns what it is.
        pub(in super::super) fn local_cmpxchg(
            word: &Atomic<u64>,
            old: u64,
            new: u64,
        ) -> Result<u64, u64> {
            // ORDERING: a number by itself.
            word.cmpxchg(old, new, Relaxed)
        }

        /// Whether there are pairs.
        pub(in super::super) fn has_pairs() -> bool {
            true
        }

        /// Returns 8 bytes as a number.
        pub(in super::super) fn load_8(bytes: &[u8; 8]) -> u64 {
            u64::from_ne_bytes(*bytes)
        }

        /// Returns 4 bytes as a number.
        pub(in super::super) fn load_4(bytes: &[u8; 4]) -> u32 {
            u32::from_ne_bytes(*bytes)
        }

        /// Returns 2 bytes as a number.
        pub(in super::super) fn load_2(bytes: &[u8; 2]) -> u16 {
            u16::from_ne_bytes(*bytes)
        }

        /// Makes 8 bytes `number`.
        pub(in super::super) fn store_8(bytes: &mut [u8; 8], number: u64) {
            *bytes = number.to_ne_bytes();
        }
    }

    /// Pairs for the model checker: a list of all values that a pair has held, and the index of the current
    /// one.
    ///
    /// The model checker sees only the index. A load of either half is an `Acquire` load of the index: it may
    /// return an older value, but none older than its thread has seen of the other half. That is how 16 bytes
    /// that are written at once, and `Acquire` loads of 8 of them, behave on each architecture. An exchange that
    /// fails orders nothing.
    #[cfg(loom)]
    pub(super) mod pair_model {
        extern crate std;

        use super::{
            super::PairValue,
            cells,
            Atomic,
            CoreOrdering, //
        };
        use std::{
            sync::{
                Mutex,
                PoisonError, //
            },
            vec::Vec, //
        };

        /// The values that a pair has held after the initial zeros, and the number of the current one.
        #[allow(unreachable_pub, reason = "a part of a type that is public")]
        pub struct Versions {
            all: Mutex<Vec<PairValue>>,
            current: cells::AtomicUsize,
        }

        impl Versions {
            pub(super) fn new() -> Self {
                Self {
                    all: Mutex::new(Vec::new()),
                    current: cells::AtomicUsize::new(0),
                }
            }

            fn get(&self, n: usize) -> PairValue {
                let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
                n.checked_sub(1).map_or(PairValue::default(), |n| all[n])
            }

            fn add(&self, new: PairValue) -> usize {
                let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
                all.push(new);
                all.len()
            }
        }

        /// Returns what the pair holds, after an access that lets other threads run; see [`Atomic::cell`].
        fn load(words: &[Atomic<u64>; 2]) -> PairValue {
            let [first, _] = words;
            first.turn.fetch_add(0, CoreOrdering::Relaxed);
            first
                .pair
                .get(first.pair.current.load(CoreOrdering::Acquire))
        }

        /// Reads the first word.
        pub(in super::super) fn value(words: &[Atomic<u64>; 2]) -> u64 {
            load(words).value
        }

        /// Reads the second word.
        pub(in super::super) fn meta(words: &[Atomic<u64>; 2]) -> u64 {
            load(words).meta
        }

        /// Writes `new` if `words` hold `old`; says whether they did.
        pub(in super::super) fn cmpxchg(
            words: &[Atomic<u64>; 2],
            old: PairValue,
            new: PairValue,
        ) -> bool {
            let [Atomic { pair, .. }, _] = words;
            // A read-modify-write returns the latest index. Other threads may run before it, but not between
            // it and the exchange.
            let n = pair.current.fetch_add(0, CoreOrdering::Relaxed);
            let held = pair.get(n);
            if held != old {
                return false;
            }
            loom::stop_exploring();
            pair.current.swap(pair.add(new), CoreOrdering::AcqRel);
            loom::explore();
            true
        }
    }

    #[cfg(nested)]
    pub use self::interrupt::interrupted;

    /// The handler that runs between two accesses of one thread.
    #[cfg(nested)]
    mod interrupt {
        extern crate std;

        use std::{
            boxed::Box,
            cell::RefCell, //
        };

        type Handler = Box<dyn FnMut()>;

        std::thread_local! {
            static HANDLER: RefCell<Option<Handler>> = const { RefCell::new(None) };
        }

        /// Runs `work` and calls `handler` before each access that it makes. The accesses of the handler are
        /// not interrupted, unless it calls this function itself.
        pub fn interrupted<R>(handler: impl FnMut() + 'static, work: impl FnOnce() -> R) -> R {
            let before = HANDLER.replace(Some(Box::new(handler)));
            let result = work();
            HANDLER.set(before);
            result
        }

        /// Calls the handler, if there is one.
        pub(super) fn step() {
            if let Some(mut handler) = HANDLER.take() {
                handler();
                HANDLER.set(Some(handler));
            }
        }
    }

    /// Pairs for one thread that is interrupted: each access is one step.
    #[cfg(nested)]
    pub(super) mod pair_model {
        use super::{
            super::PairValue,
            interrupt::step,
            Atomic,
            CoreOrdering, //
        };

        /// Reads the first word.
        pub(in super::super) fn value(words: &[Atomic<u64>; 2]) -> u64 {
            let [value, _] = words;
            step();
            value.cell.load(CoreOrdering::Relaxed)
        }

        /// Reads the second word.
        pub(in super::super) fn meta(words: &[Atomic<u64>; 2]) -> u64 {
            let [_, meta] = words;
            step();
            meta.cell.load(CoreOrdering::Relaxed)
        }

        /// Writes `new` if `words` hold `old`; says whether they did.
        pub(in super::super) fn cmpxchg(
            words: &[Atomic<u64>; 2],
            old: PairValue,
            new: PairValue,
        ) -> bool {
            let [value, meta] = words;
            step();
            let held = PairValue {
                value: value.cell.load(CoreOrdering::Relaxed),
                meta: meta.cell.load(CoreOrdering::Relaxed),
            };
            if held != old {
                return false;
            }
            value.cell.store(new.value, CoreOrdering::Relaxed);
            meta.cell.store(new.meta, CoreOrdering::Relaxed);
            true
        }
    }

    /// Pairs for hosts without the instruction: a lock makes each access atomic.
    #[cfg(all(
        not(any(loom, nested)),
        any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64")))
    ))]
    pub(super) mod pair_model {
        extern crate std;

        use super::{
            super::PairValue,
            Atomic,
            Relaxed, //
        };
        use std::sync::{
            Mutex,
            PoisonError, //
        };

        static LOCK: Mutex<()> = Mutex::new(());

        /// Reads the first word.
        pub(in super::super) fn value(words: &[Atomic<u64>; 2]) -> u64 {
            let _held = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
            let [value, _] = words;
            // ORDERING: the lock orders it against `cmpxchg`.
            value.load(Relaxed)
        }

        /// Reads the second word.
        pub(in super::super) fn meta(words: &[Atomic<u64>; 2]) -> u64 {
            let _held = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
            let [_, meta] = words;
            // ORDERING: the lock orders it against `cmpxchg`.
            meta.load(Relaxed)
        }

        /// Writes `new` if `words` hold `old`; says whether they did.
        pub(in super::super) fn cmpxchg(
            words: &[Atomic<u64>; 2],
            old: PairValue,
            new: PairValue,
        ) -> bool {
            let _held = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
            let [value, meta] = words;
            // ORDERING: the lock orders these loads against other accesses.
            let held = PairValue {
                value: value.load(Relaxed),
                meta: meta.load(Relaxed),
            };
            if held != old {
                return false;
            }
            // ORDERING: the lock orders these stores against other accesses.
            value.store(new.value, Relaxed);
            meta.store(new.meta, Relaxed);
            true
        }
    }
}
