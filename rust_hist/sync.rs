// SPDX-License-Identifier: GPL-2.0

//! Atomic words for the pure layers: one API with several implementations.
//!
//! C counterpart: [`include/linux/atomic.h`](srctree/include/linux/atomic.h).
//! The API is a part of `kernel::sync::atomic`, which the module uses. The host implements it with `core`, and under
//! `--cfg loom` with the model checker; under `--cfg nested` a test can run a handler before any access, like an
//! interrupt. Besides `alloc.rs` and `sync/` no other pure file names the `kernel` crate.
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

/// The functions for this architecture; or a model of them, for tests that check each access, or for other hosts.
///
/// The functions `local_add()`, `local_inc()`, `local_cmpxchg()`, `order_writes()`, `has_pairs()`, `cmpxchg_pair()`,
/// `set_pair()`, `load_8()`, `load_4()` and `store_8()` are described in [`sync/x86_64.rs`](srctree/rust_hist/sync/x86_64.rs).
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

#[cfg(all(CONFIG_RUST, target_arch = "aarch64"))]
pub(crate) use self::arch::alternative;

#[cfg(all(CONFIG_RUST, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
compile_error!(
    "rust_hist does not know this architecture: it needs sync/ARCH.rs, an exchange of 16 bytes and additions that \
     interrupts do not tear, and ffi/arch/ARCH.rs, the CPU's own words"
);

/// Adds `v`, wrapping around, to word `at` of `words`, if there is such a word. Only this CPU may write the word.
///
/// No addition is lost if interrupts and NMIs add to the same word at any point, and other CPUs may read it at any
/// time. Additions by two CPUs to one word may be lost on some architectures, so callers use this function only if
/// `tracing_map::Shape` has one shard for each CPU.
#[inline]
pub fn local_add(words: &[Atomic<u64>], at: usize, v: u64) {
    local_add_behind::<0>(words, at, v);
}

/// Like [`local_add`], for the word `BEHIND` words after word `at`: the instruction adds the two numbers.
#[inline]
pub fn local_add_behind<const BEHIND: usize>(words: &[Atomic<u64>], at: usize, v: u64) {
    // OVERFLOW: a sum that wraps around is the index of another word, for the instruction, too.
    if words.get(at.wrapping_add(BEHIND)).is_some() {
        // SAFETY: the word exists, as was just checked.
        unsafe { arch::local_add::<BEHIND>(words, at, v) };
    }
}

/// Adds 1, wrapping around, to word `at` of `words`, if there is such a word. Only this CPU may write the word; see
/// [`local_add`] for the guarantees.
#[inline]
pub fn local_inc(words: &[Atomic<u64>], at: usize) {
    if words.get(at).is_some() {
        // SAFETY: the word exists, as was just checked.
        unsafe { arch::local_inc(words, at) };
    }
}

/// Orders this CPU's later writes after its earlier writes, for readers that read the words in the opposite order, each
/// with [`Acquire`].
///
/// C counterpart: `smp_wmb()`.
#[inline]
pub fn order_writes() {
    arch::order_writes();
}

/// Raises word `at` of `words`, if there is such a word, to `v`, unless it is as large already. Only this CPU may write
/// the word.
///
/// The largest `v` stays if interrupts and NMIs raise the same word at any point, and other CPUs may read it at any
/// time: an interrupt between load and exchange makes the exchange fail, which returns the new content. For other CPUs
/// that write the word, see [`local_add`].
#[inline(always)]
pub fn local_raise(words: &[Atomic<u64>], at: usize, v: u64) {
    let Some(word) = words.get(at) else {
        return;
    };
    // ORDERING: the word publishes nothing else, here and below.
    let mut held = word.load(Relaxed);

    while held < v {
        match arch::local_cmpxchg(word, held, v) {
            Ok(_) => return,
            Err(now) => held = now,
        }
    }
}

/// Returns the 8 bytes at `at` as a number, by one load even if they are not aligned, as C does; `None` unless all are
/// inside. For plain bytes the compiler knows of no alignment, and on some architectures loads them one by one.
#[inline]
pub fn load_8(bytes: &[u8], at: usize) -> Option<u64> {
    // SAFETY: all bytes are inside, as was just checked.
    are_inside(bytes, at, 8).then(|| unsafe { arch::load_8(bytes, at) })
}

/// Returns the 4 bytes at `at` as a number, by one load even if they are not aligned; `None` unless all are inside.
#[inline]
pub fn load_4(bytes: &[u8], at: usize) -> Option<u32> {
    // SAFETY: all bytes are inside, as was just checked.
    are_inside(bytes, at, 4).then(|| unsafe { arch::load_4(bytes, at) })
}

/// Returns whether all of the `n` bytes at `at` are inside `bytes`.
#[inline]
fn are_inside(bytes: &[u8], at: usize, n: usize) -> bool {
    // OVERFLOW: a range that wraps ends before it begins, and is not inside.
    bytes.get(at..at.wrapping_add(n)).is_some()
}

/// Stores `number` in 8 bytes, by one store even if they are not aligned.
#[inline]
pub fn store_8(bytes: &mut [u8; 8], number: u64) {
    arch::store_8(bytes, number);
}

/// How often [`Pair::load`] tries to read both words before it exchanges them.
const LOAD_TRIES: usize = if cfg!(loom) { 1 } else { 4 };

/// Two adjacent words, aligned so that the CPU can exchange both at once: a value and its metadata. The memory of a map
/// consists of pairs, whose words may also be used [one by one](Pair::words).
///
/// No lock is needed. Each change of the value must set `meta` to something that it has never been before; users keep a
/// version there. So if two loads of `meta` return the same, a load of the value between them returns the value that
/// belongs to it.
///
/// # Examples
///
/// ```
/// use rust_hist::sync::{Pair, PairValue};
///
/// let pair = Pair::zero();
/// let old = pair.load();
/// let new = PairValue { value: 42, meta: old.meta + 1 };
///
/// assert_eq!(pair.cmpxchg(old, new), Ok(()));
/// assert_eq!(pair.cmpxchg(old, new), Err(new));
/// ```
// The model checker's words are larger, and no instruction exchanges two of them.
#[cfg_attr(not(loom), repr(C, align(16)))]
#[cfg_attr(loom, repr(transparent))]
pub struct Pair {
    words: [Atomic<u64>; 2],
}

const _: () = assert!(size_of::<Pair>() == 2 * size_of::<Atomic<u64>>());

/// The two words of a [`Pair`]. A plain value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairValue {
    /// The first word.
    pub value: u64,
    /// The second word.
    pub meta: u64,
}

impl Pair {
    /// Returns whether the CPU can exchange 16 bytes at once. If not, no [`Pair`] may be used.
    pub fn supported() -> bool {
        arch::has_pairs()
    }

    /// Returns two words that are 0.
    pub fn zero() -> Self {
        Self {
            words: [Atomic::<u64>::new(0), Atomic::<u64>::new(0)],
        }
    }

    /// Returns the pair whose first word is word `at` among the words of `pairs`; `at` must be even. `None` if it is
    /// beyond the end.
    #[inline]
    pub fn at(pairs: &[Self], at: u16) -> Option<&Self> {
        debug_assert!(at % 2 == 0 || usize::from(at / 2) >= pairs.len());
        pairs.get(usize::from(at / 2))
    }

    /// Returns the words of some pairs, one by one.
    #[inline]
    pub fn words(pairs: &[Self]) -> &[Atomic<u64>] {
        // SAFETY: a pair is an array of two words, and of the same size, as an assertion in this file checks; pairs
        // follow each other without a gap. OVERFLOW: the pairs have fewer bytes than the address space.
        unsafe { core::slice::from_raw_parts(pairs.as_ptr().cast(), pairs.len().wrapping_mul(2)) }
    }

    /// Reads both words as if by one atomic load of 16 bytes.
    #[inline]
    pub fn load(&self) -> PairValue {
        for _ in 0..LOAD_TRIES {
            // ORDERING: `Acquire` pairs with the full ordering of `cmpxchg`: the load of the value below
            // returns the value that was stored with this meta, or a later one.
            let meta = step::meta(self);
            // ORDERING: `Acquire` pairs with the full ordering of `cmpxchg`: if this is a later value, the
            // load of meta below returns the later meta.
            let value = step::value(self);
            // ORDERING: the `Acquire` of the load of the value keeps this load after it.
            if step::meta(self) == meta {
                return PairValue { value, meta };
            }
        }
        // Other contexts keep changing the words: exchange them for themselves, which succeeds only if both were read
        // between two changes. It fails only because another exchange has succeeded.
        let mut seen = self.load_torn();
        while let Err(held) = self.cmpxchg(seen, seen) {
            seen = held;
        }
        seen
    }

    /// Reads one word after the other. Another context may change both in between, so they may not belong together.
    ///
    /// This is enough for a caller that then exchanges both words: since `meta` never returns to an old value,
    /// [`Pair::cmpxchg`] fails unless the two belong together.
    #[inline]
    pub fn load_torn(&self) -> PairValue {
        // ORDERING: `Acquire` pairs with the full ordering of `cmpxchg`, so the value is not older than the
        // meta; the exchange that follows proves that it is not newer.
        PairValue {
            meta: step::meta(self),
            value: step::value(self),
        }
    }

    /// Replaces the words by the result of `change` for them; leaves them if that is `None`. Returns the words before
    /// and after the change. `change` must decide by `meta` alone: if the value that it gets does not belong to that,
    /// the exchange fails.
    #[inline]
    pub(crate) fn change(
        &self,
        change: impl Fn(PairValue) -> Option<PairValue>,
    ) -> Option<(PairValue, PairValue)> {
        let mut old = self.load_torn();

        loop {
            let new = change(old)?;

            match self.cmpxchg(old, new) {
                Ok(()) => return Some((old, new)),
                Err(held) => old = held,
            }
        }
    }

    /// Reads the first word.
    #[inline]
    pub fn value(&self) -> u64 {
        // ORDERING: `Acquire` pairs with the full ordering of `cmpxchg`: the writer's earlier accesses are
        // visible to a caller that sees its value.
        step::value(self)
    }

    /// Reads the second word.
    #[inline]
    pub fn meta(&self) -> u64 {
        // ORDERING: `Acquire` pairs with the full ordering of `cmpxchg`: the writer's earlier accesses are
        // visible to a caller that sees its meta.
        step::meta(self)
    }

    /// Sets the first word to `value`, adds `ADD` to the second one, wrapping around, and sets `BITS` there, fully
    /// ordered.
    #[inline]
    pub fn set<const ADD: u64, const BITS: u64>(&self, value: u64) {
        step::set::<ADD, BITS>(self, value);
    }

    /// Writes `new` if the words hold `old`, fully ordered.
    ///
    /// # Errors
    ///
    /// The words that [`Pair::load_torn`] reads after the exchange has found other words than `old`. A failed exchange
    /// orders nothing.
    #[inline]
    pub fn cmpxchg(&self, old: PairValue, new: PairValue) -> Result<(), PairValue> {
        if step::cmpxchg(self, old, new) {
            Ok(())
        } else {
            Err(self.load_torn())
        }
    }
}

/// Implements [`Pair::set`] by the exchange, for architectures without an instruction for it.
#[cfg(any(loom, miri, nested, not(target_arch = "aarch64")))]
#[inline(always)]
fn set_by_exchange<const ADD: u64, const BITS: u64>(pair: &Pair, value: u64) {
    // If the words were torn, the exchange fails.
    let mut old = pair.load_torn();
    let meta = |old: PairValue| old.meta.wrapping_add(ADD) | BITS;

    while let Err(held) = pair.cmpxchg(
        old,
        PairValue {
            value,
            meta: meta(old),
        },
    ) {
        old = held;
    }
}

/// The accesses to a pair's words. All loads are `Acquire`.
#[cfg(all(
    not(any(loom, miri, nested)),
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod step {
    use super::{
        Acquire,
        Pair, //
    };

    pub(super) use super::arch::{
        cmpxchg_pair as cmpxchg,
        set_pair as set, //
    };

    /// Reads the first word.
    #[inline]
    pub(super) fn value(pair: &Pair) -> u64 {
        let [value, _] = &pair.words;
        // ORDERING: pairs with the full ordering of `cmpxchg`: a later load of meta returns the meta of this value or a
        // later one.
        value.load(Acquire)
    }

    /// Reads the second word.
    #[inline]
    pub(super) fn meta(pair: &Pair) -> u64 {
        let [_, meta] = &pair.words;
        // ORDERING: pairs with the full ordering of `cmpxchg`: a later load of the value returns the value of this meta
        // or a later one.
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
    /// A load; later accesses cannot be moved before it.
    pub struct Acquire;
    /// A store; earlier accesses cannot be moved after it.
    pub struct Release;
    /// Ordered both ways; all CPUs agree on one order of such operations.
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

    /// A type with a corresponding atomic type.
    pub trait AtomicType: Copy {
        /// The atomic type.
        type Cell;

        /// Returns a new atomic word with this value.
        fn cell(self) -> Self::Cell;
    }

    /// A word that several contexts read and write, without a lock: all accesses are atomic.
    #[cfg_attr(not(loom), repr(transparent))]
    pub struct Atomic<T: AtomicType> {
        cell: T::Cell,
        #[cfg(loom)]
        turn: cells::AtomicU32,
        /// The model of the pair that begins with this word. No word is accessed both as a part of a pair and alone.
        #[cfg(loom)]
        pair: pair_model::Versions,
    }

    impl<T: AtomicType> Atomic<T> {
        /// Returns a new word that holds `v`.
        pub fn new(v: T) -> Self {
            Self {
                cell: v.cell(),
                #[cfg(loom)]
                turn: cells::AtomicU32::new(0),
                #[cfg(loom)]
                pair: pair_model::Versions::new(),
            }
        }

        /// Returns the underlying word for an access.
        ///
        /// The model checker finds interleavings to try by comparing each access with the last one before it. If a
        /// thread reads and then writes a word, the checker does not try reads of other threads after that write. A
        /// relaxed read-modify-write without effect, on another word, before each access makes it try them, and does
        /// not change which values an access may return.
        #[inline]
        fn cell(&self) -> &T::Cell {
            #[cfg(nested)]
            interrupt::step();
            #[cfg(loom)]
            self.turn.fetch_add(0, CoreOrdering::Relaxed);
            &self.cell
        }
    }

    macro_rules! atomic_accesses {
        ($type:ty) => {
            /// Reads the word.
            #[inline]
            pub fn load<O: AcquireOrRelaxed>(&self, _: O) -> $type {
                self.cell().load(O::ORDER)
            }

            /// Writes the word.
            #[inline]
            pub fn store<O: ReleaseOrRelaxed>(&self, v: $type, _: O) {
                self.cell().store(v, O::ORDER)
            }

            /// Writes the word and returns its old value.
            #[inline]
            pub fn xchg<O: Ordering>(&self, v: $type, _: O) -> $type {
                self.cell().swap(v, O::ORDER)
            }
        };
    }

    macro_rules! atomic_word {
        ($word:ty, $cell:ident) => {
            impl AtomicType for $word {
                type Cell = cells::$cell;

                fn cell(self) -> Self::Cell {
                    cells::$cell::new(self)
                }
            }

            impl Atomic<$word> {
                /// Returns the address of the word, valid as long as the word is.
                #[cfg(not(loom))]
                pub fn as_ptr(&self) -> *mut $word {
                    self.cell.as_ptr()
                }

                atomic_accesses!($word);

                /// Writes `new` if the word holds `old`; else returns the word's value, without ordering.
                #[inline]
                pub fn cmpxchg<O: Ordering>(
                    &self,
                    old: $word,
                    new: $word,
                    _: O,
                ) -> Result<$word, $word> {
                    self.cell()
                        .compare_exchange(old, new, O::ORDER, CoreOrdering::Relaxed)
                }

                /// Adds `v`, wrapping around, and returns the word's old value.
                #[inline]
                pub fn fetch_add<O: Ordering>(&self, v: $word, _: O) -> $word {
                    self.cell().fetch_add(v, O::ORDER)
                }
            }
        };
    }

    atomic_word!(u32, AtomicU32);
    atomic_word!(u64, AtomicU64);

    impl<T> AtomicType for *mut T {
        type Cell = cells::AtomicPtr<T>;

        fn cell(self) -> Self::Cell {
            cells::AtomicPtr::new(self)
        }
    }

    impl<T> Atomic<*mut T> {
        atomic_accesses!(*mut T);
    }

    /// A model of `sync/ARCH.rs`, for architectures without that file, and for tests that check each access.
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

        /// Adds `v` to the word that is `BEHIND` words after word `at`.
        ///
        /// # Safety
        ///
        /// There are no requirements.
        pub(in super::super) unsafe fn local_add<const BEHIND: usize>(
            words: &[Atomic<u64>],
            at: usize,
            v: u64,
        ) {
            // ORDERING: the word publishes nothing else.
            words[at + BEHIND].fetch_add(v, Relaxed);
        }

        /// Adds 1 to word `at`.
        ///
        /// # Safety
        ///
        /// There are no requirements.
        pub(in super::super) unsafe fn local_inc(words: &[Atomic<u64>], at: usize) {
            // ORDERING: the word publishes nothing else.
            words[at].fetch_add(1, Relaxed);
        }

        /// Orders earlier writes before later ones.
        pub(in super::super) fn order_writes() {
            cells::fence(CoreOrdering::Release);
        }

        /// Sets `word` to `new` if it is `old`; else returns its value.
        pub(in super::super) fn local_cmpxchg(
            word: &Atomic<u64>,
            old: u64,
            new: u64,
        ) -> Result<u64, u64> {
            // ORDERING: the word publishes nothing else.
            word.cmpxchg(old, new, Relaxed)
        }

        /// Returns whether pairs can be exchanged, as the model always can.
        pub(in super::super) fn has_pairs() -> bool {
            true
        }

        /// Returns 8 bytes as a number.
        ///
        /// # Safety
        ///
        /// There are no requirements.
        pub(in super::super) unsafe fn load_8(bytes: &[u8], at: usize) -> u64 {
            u64::from_ne_bytes(*bytes[at..].first_chunk().expect("they are inside"))
        }

        /// Returns 4 bytes as a number.
        ///
        /// # Safety
        ///
        /// There are no requirements.
        pub(in super::super) unsafe fn load_4(bytes: &[u8], at: usize) -> u32 {
            u32::from_ne_bytes(*bytes[at..].first_chunk().expect("they are inside"))
        }

        /// Stores `number` in 8 bytes.
        pub(in super::super) fn store_8(bytes: &mut [u8; 8], number: u64) {
            *bytes = number.to_ne_bytes();
        }
    }

    /// Pairs for the model checker: a list of all values that a pair has held, and the index of the current one.
    ///
    /// The model checker sees only the index. A load of either half is an `Acquire` load of the index: it may return an
    /// older value, but none older than its thread has seen of the other half. On each architecture, 16 bytes that are
    /// written at once and `Acquire` loads of 8 of them behave like this. A failed exchange orders nothing.
    #[cfg(loom)]
    pub(super) mod pair_model {
        extern crate std;

        use super::{
            super::{
                Pair,
                PairValue, //
            },
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

        /// The values that a pair has held after the initial zeros, and the index of the current one.
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

        /// Returns the current value of the pair, after an access that lets other threads run; see [`Atomic::cell`].
        fn load(pair: &Pair) -> PairValue {
            let [first, _] = &pair.words;
            first.turn.fetch_add(0, CoreOrdering::Relaxed);
            first
                .pair
                .get(first.pair.current.load(CoreOrdering::Acquire))
        }

        pub(in super::super) use super::super::set_by_exchange as set;

        /// Reads the first word.
        pub(in super::super) fn value(pair: &Pair) -> u64 {
            load(pair).value
        }

        /// Reads the second word.
        pub(in super::super) fn meta(pair: &Pair) -> u64 {
            load(pair).meta
        }

        /// Writes `new` if `pair` holds `old`; returns whether it did.
        pub(in super::super) fn cmpxchg(pair: &Pair, old: PairValue, new: PairValue) -> bool {
            let [Atomic { pair, .. }, _] = &pair.words;
            // A read-modify-write returns the latest index. Other threads may run before it, but not between it and the
            // exchange.
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

    /// Calls a handler between two accesses of one thread, like an interrupt.
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

        /// Runs `work` and calls `handler` before each of its accesses. The accesses of the handler are not
        /// interrupted, unless it calls this function itself.
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

    /// Pairs for one thread that is interrupted: a load of one word or an exchange of both is one step.
    #[cfg(nested)]
    pub(super) mod pair_model {
        use super::{
            super::{
                Pair,
                PairValue, //
            },
            interrupt::step,
            CoreOrdering, //
        };

        pub(in super::super) use super::super::set_by_exchange as set;

        /// Reads the first word.
        pub(in super::super) fn value(pair: &Pair) -> u64 {
            let [value, _] = &pair.words;
            step();
            value.cell.load(CoreOrdering::Relaxed)
        }

        /// Reads the second word.
        pub(in super::super) fn meta(pair: &Pair) -> u64 {
            let [_, meta] = &pair.words;
            step();
            meta.cell.load(CoreOrdering::Relaxed)
        }

        /// Writes `new` if `pair` holds `old`; returns whether it did.
        pub(in super::super) fn cmpxchg(pair: &Pair, old: PairValue, new: PairValue) -> bool {
            let [value, meta] = &pair.words;
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
            super::{
                Pair,
                PairValue, //
            },
            Atomic,
            Relaxed, //
        };
        use std::sync::{
            Mutex,
            PoisonError, //
        };

        static LOCK: Mutex<()> = Mutex::new(());

        pub(in super::super) use super::super::set_by_exchange as set;

        /// Reads the first word.
        pub(in super::super) fn value(pair: &Pair) -> u64 {
            let _held = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
            let [value, _] = &pair.words;
            // ORDERING: the lock orders this load against `cmpxchg`.
            value.load(Relaxed)
        }

        /// Reads the second word.
        pub(in super::super) fn meta(pair: &Pair) -> u64 {
            let _held = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
            let [_, meta] = &pair.words;
            // ORDERING: the lock orders this load against `cmpxchg`.
            meta.load(Relaxed)
        }

        /// Writes `new` if `pair` holds `old`; returns whether it did.
        pub(in super::super) fn cmpxchg(pair: &Pair, old: PairValue, new: PairValue) -> bool {
            let _held = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
            let [value, meta] = &pair.words;
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
