// SPDX-License-Identifier: GPL-2.0

//! Atomic words for the pure rooms: one API, three implementations.
//!
//! C counterpart: [`include/linux/atomic.h`](srctree/include/linux/atomic.h).
//! The names are those of `kernel::sync::atomic`, which is what a module is built with. On the
//! host the same API stands on `core`, and under `--cfg loom` on the model checker; under `--cfg nested`
//! a test may let something come in before any access, as an interrupt does. No other pure file names
//! the `kernel` crate.
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

/// Adds `v` to word `at` of `words`, which only this CPU writes, if there is one; a wrapped sum stays exact modulo
/// 2^64.
///
/// Interrupts and NMIs may nest at any point and add to the same word: nothing is lost. Other CPUs
/// may read the word at any time. When two CPUs add to one word at once, additions are lost, which
/// is why the callers decide by `tracing_map::Shape` whether a shard belongs to one CPU.
///
/// On x86_64 this is one `add` to memory without a `lock` prefix. Elsewhere no single instruction
/// does it and the addition is a relaxed atomic one.
#[inline(always)]
pub fn local_add(words: &[Atomic<u64>], at: usize, v: u64) {
    let Some(word) = words.get(at) else {
        return;
    };

    #[cfg(all(target_arch = "x86_64", not(loom), not(miri), not(nested)))]
    {
        let _ = word;
        // SAFETY: the index is one of the words, whose address the instruction computes: that of a live
        // `Atomic<u64>`, so it is aligned and valid for a read and a write of 8 bytes. All other accesses to
        // the word are atomic, the store of an aligned quadword is single-copy atomic on this architecture, and
        // an interrupt comes before or after the instruction, never inside.
        unsafe {
            core::arch::asm!(
                "add qword ptr [{words} + 8 * {at}], {v}",
                words = in(reg) words.as_ptr(),
                at = in(reg) at,
                v = in(reg) v,
                options(nostack),
            );
        }
    }

    #[cfg(not(all(target_arch = "x86_64", not(loom), not(miri), not(nested))))]
    {
        word.fetch_add(v, Relaxed);
    }
}

/// Adds one to word `at` of `words`, which only this CPU writes, if there is one; see [`local_add`].
#[inline(always)]
pub fn local_inc(words: &[Atomic<u64>], at: usize) {
    let Some(word) = words.get(at) else {
        return;
    };

    #[cfg(all(target_arch = "x86_64", not(loom), not(miri), not(nested)))]
    {
        let _ = word;
        // SAFETY: as in `local_add`.
        unsafe {
            core::arch::asm!(
                "inc qword ptr [{words} + 8 * {at}]",
                words = in(reg) words.as_ptr(),
                at = in(reg) at,
                options(nostack),
            );
        }
    }

    #[cfg(not(all(target_arch = "x86_64", not(loom), not(miri), not(nested))))]
    {
        word.fetch_add(1, Relaxed);
    }
}

#[cfg(all(CONFIG_RUST, not(target_arch = "x86_64")))]
compile_error!(
    "rust_hist sets a variable and its state in one step, by an instruction that the kernel crate \
     does not have and that sync.rs knows for x86_64 alone"
);

/// How often [`Pair::load`] reads without writing.
const LOAD_TRIES: usize = if cfg!(loom) { 1 } else { 4 };

/// Two words side by side that change together: a value, and what is to be known of it.
///
/// A view of memory that somebody else owns; it needs no lock. `meta` must change with every change
/// of the value and never come back to what it was, so that two equal looks at it prove that the
/// value in between belongs to it: users keep a version there.
///
/// # Invariants
///
/// `words` starts at a multiple of 16 bytes, except under the model checker.
#[derive(Clone, Copy)]
pub struct Pair<'a> {
    words: &'a [Atomic<u64>; 2],
}

/// What a [`Pair`] holds. A plain value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Both {
    /// The first word.
    pub value: u64,
    /// The second word.
    pub meta: u64,
}

impl<'a> Pair<'a> {
    /// Whether this CPU can do it. Nothing else here may be used where it cannot.
    pub fn supported() -> bool {
        #[cfg(all(target_arch = "x86_64", not(loom), not(miri), not(nested)))]
        {
            const CX16: u32 = 1 << 13;

            // SAFETY: all CPUs of this architecture have the instruction and the first leaf.
            #[allow(unused_unsafe, reason = "safe in newer compilers")]
            let features = unsafe { core::arch::x86_64::__cpuid(1) };
            features.ecx & CX16 != 0
        }
        #[cfg(not(all(target_arch = "x86_64", not(loom), not(miri), not(nested))))]
        true
    }

    /// The first two of `words`; `None` if they do not start at a multiple of 16 bytes.
    #[inline(always)]
    pub fn new(words: &'a [Atomic<u64>]) -> Option<Self> {
        Self::at(words, 0)
    }

    /// As [`Pair::new`], of those from `at` on.
    #[inline(always)]
    pub fn at(words: &'a [Atomic<u64>], at: u16) -> Option<Self> {
        let at = usize::from(at);
        // OVERFLOW: it was a short number.
        let words = words.get(at..at.wrapping_add(2))?.first_chunk::<2>()?;

        if is_aligned(words) {
            // INVARIANT: just checked.
            Some(Self { words })
        } else {
            None
        }
    }

    /// Reads both words as they were at one moment.
    #[inline]
    pub fn load(&self) -> Both {
        for _ in 0..LOAD_TRIES {
            // ORDERING: pairs with the full order of `cmpxchg`: whoever sees this meta sees the
            // value that came with it, or a later one.
            let meta = step::meta(self.words);
            // ORDERING: pairs with `cmpxchg` too: if the value is a later one, the look at the meta
            // below, which `Acquire` keeps behind, sees the later meta.
            let value = step::value(self.words);
            // ORDERING: see above.
            if step::meta(self.words) == meta {
                return Both { value, meta };
            }
        }
        // Somebody changes it all the time: exchange it for itself, which only succeeds if both are of one moment. It
        // fails because another exchange has succeeded.
        let mut seen = self.glance();
        while let Err(held) = self.cmpxchg(seen, seen) {
            seen = held;
        }
        seen
    }

    /// Reads the value alone.
    #[inline]
    pub fn value(&self) -> u64 {
        step::value(self.words)
    }

    /// Reads both words one after the other: they may be of two moments.
    ///
    /// Each of them is what it was at one; and an exchange for something else succeeds only if both are
    /// of the same, since `meta` never comes back. So who exchanges them does without [`Pair::load`].
    #[inline]
    pub fn glance(&self) -> Both {
        // ORDERING: as in `load`; the exchange that follows orders the rest.
        Both {
            meta: step::meta(self.words),
            value: step::value(self.words),
        }
    }

    /// The second word alone.
    #[inline(always)]
    pub fn meta(&self) -> u64 {
        // ORDERING: as in `load`; who wants the value reads both.
        step::meta(self.words)
    }

    /// Writes `new` if the words hold `old`, fully ordered. Else says what they hold: that orders nothing, and they
    /// may be of two moments, as after [`Pair::glance`].
    #[inline]
    pub fn cmpxchg(&self, old: Both, new: Both) -> Result<(), Both> {
        // INVARIANT: of `Pair`.
        step::cmpxchg(self.words, old, new)
    }
}

/// Whether the instruction for two words works here.
#[cfg(not(loom))]
#[inline(always)]
fn is_aligned(words: &[Atomic<u64>; 2]) -> bool {
    let [first, _] = words;
    first.as_ptr().addr() % 16 == 0
}

/// The model checker's words are no words.
#[cfg(loom)]
fn is_aligned(_words: &[Atomic<u64>; 2]) -> bool {
    true
}

/// The accesses to a pair. Its loads are all `Acquire`.
#[cfg(all(target_arch = "x86_64", not(loom), not(miri), not(nested)))]
mod step {
    use super::{
        Acquire,
        Atomic,
        Both, //
    };

    /// Reads the first word.
    #[inline(always)]
    pub(super) fn value(words: &[Atomic<u64>; 2]) -> u64 {
        let [value, _] = words;
        // ORDERING: see `Pair::load`.
        value.load(Acquire)
    }

    /// Reads the second word.
    #[inline(always)]
    pub(super) fn meta(words: &[Atomic<u64>; 2]) -> u64 {
        let [_, meta] = words;
        // ORDERING: see `Pair::load`.
        meta.load(Acquire)
    }

    /// Writes `new` if `words` hold `old`, else says what they hold. They must be aligned to 16 bytes.
    #[inline(always)]
    pub(super) fn cmpxchg(words: &[Atomic<u64>; 2], old: Both, new: Both) -> Result<(), Both> {
        let [first, _] = words;
        let ptr: *mut u64 = first.as_ptr();
        let value: u64;
        let meta: u64;
        let was_equal: u64;

        // SAFETY: `ptr` is that of an array of two live `Atomic<u64>`; all other accesses to them
        // are atomic, which a locked instruction on 16 aligned bytes is against accesses of any
        // size. It faults on other addresses, which `Pair` excludes. `rbx` cannot be named as an
        // operand, so its content is kept in `rsi` and put back, and with it that of `rsi`, by an
        // instruction that leaves the flags as they are; the compiler may choose it for an operand that
        // names no register, so all of them do.
        unsafe {
            core::arch::asm!(
                "xchg rsi, rbx",
                "lock cmpxchg16b [rdi]",
                "xchg rsi, rbx",
                "sete cl",
                in("rdi") ptr,
                in("rsi") new.value,
                inout("rcx") new.meta => was_equal,
                inout("rax") old.value => value,
                inout("rdx") old.meta => meta,
                options(nostack),
            );
        }
        // CAST: the lowest byte alone says it.
        if was_equal as u8 != 0 {
            Ok(())
        } else {
            Err(Both { value, meta })
        }
    }
}

#[cfg(any(loom, miri, nested, not(target_arch = "x86_64")))]
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

    /// A word type that has an atomic twin.
    pub trait AtomicType: Copy {
        /// The twin.
        type Cell;
    }

    /// A word that several contexts read and write.
    ///
    /// All accesses are atomic. It lives as long as its owner and needs no lock.
    #[cfg_attr(not(loom), repr(transparent))]
    pub struct Atomic<T: AtomicType> {
        cell: T::Cell,
        #[cfg(loom)]
        turn: cells::AtomicU32,
        /// What the word and its neighbour hold as a pair; nobody uses either of them as that and alone.
        #[cfg(loom)]
        pair: pair_model::Versions,
    }

    impl<T: AtomicType> Atomic<T> {
        /// Returns the word for an access.
        ///
        /// The model checker looks for interleavings that matter by comparing each access with the
        /// last one before it. A write that follows its own thread's read hides the reads of others
        /// from that, and so they are never tried after the write. An empty unordered
        /// read-modify-write before each access, on a word beside it, makes all accesses count and
        /// leaves what they may see as it is.
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

                /// Writes `new` if the word holds `old`; else says what it holds, unordered.
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

    /// Pairs for the model checker: all that a pair has ever held, and the number of what it holds.
    ///
    /// That number is the one word that the model checker sees. A load of either half is an `Acquire` load of it: it
    /// may show what was there before, but nothing older than what its thread has seen of the other half, which is
    /// what 16 bytes that are written at once, and `Acquire` loads of 8 of them, come to on each architecture. An
    /// exchange that fails orders nothing, and the first one shows two moments.
    #[cfg(loom)]
    pub(super) mod pair_model {
        extern crate std;

        use super::{
            super::Both,
            cells,
            Atomic,
            CoreOrdering, //
        };
        use std::{
            sync::{
                atomic::AtomicBool,
                Mutex,
                PoisonError, //
            },
            vec::Vec, //
        };

        /// What a pair has held, but for the zeros that come first, and which of it is there.
        #[allow(unreachable_pub, reason = "a part of a type that is public")]
        pub struct Versions {
            all: Mutex<Vec<Both>>,
            current: cells::AtomicUsize,
            was_torn: AtomicBool,
        }

        impl Versions {
            pub(super) fn new() -> Self {
                Self {
                    all: Mutex::new(Vec::new()),
                    current: cells::AtomicUsize::new(0),
                    was_torn: AtomicBool::new(false),
                }
            }

            fn get(&self, n: usize) -> Both {
                let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
                n.checked_sub(1).map_or(Both::default(), |n| all[n])
            }

            fn add(&self, new: Both) -> usize {
                let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
                all.push(new);
                all.len()
            }

            /// What a failed exchange has seen: once it is of two moments.
            fn torn(&self, n: usize, held: Both) -> Both {
                match self.was_torn.swap(true, CoreOrdering::Relaxed) {
                    true => held,
                    false => Both {
                        value: self.get(n.saturating_sub(1)).value,
                        ..held
                    },
                }
            }
        }

        /// What the pair holds, after a turn of the others; see [`Atomic::cell`].
        fn load(words: &[Atomic<u64>; 2]) -> Both {
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

        /// Writes `new` if `words` hold `old`, else says what they hold.
        pub(in super::super) fn cmpxchg(
            words: &[Atomic<u64>; 2],
            old: Both,
            new: Both,
        ) -> Result<(), Both> {
            let [Atomic { pair, .. }, _] = words;
            // A read-modify-write sees the latest. It is the turn of the others, too; behind it there is none.
            let n = pair.current.fetch_add(0, CoreOrdering::Relaxed);
            let held = pair.get(n);
            if held != old {
                return Err(pair.torn(n, held));
            }
            loom::stop_exploring();
            pair.current.swap(pair.add(new), CoreOrdering::AcqRel);
            loom::explore();
            Ok(())
        }
    }

    #[cfg(nested)]
    pub use self::interrupt::interrupted;

    /// What comes between two accesses of one thread.
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

        /// Runs `work` and calls `handler` before each access that it makes. What the handler does is
        /// not interrupted, unless by a handler of its own.
        pub fn interrupted<R>(handler: impl FnMut() + 'static, work: impl FnOnce() -> R) -> R {
            let before = HANDLER.replace(Some(Box::new(handler)));
            let result = work();
            HANDLER.set(before);
            result
        }

        /// Lets the handler come in.
        pub(super) fn step() {
            if let Some(mut handler) = HANDLER.take() {
                handler();
                HANDLER.set(Some(handler));
            }
        }
    }

    /// Pairs for one thread that is interrupted: one step each.
    #[cfg(nested)]
    pub(super) mod pair_model {
        use super::{
            super::Both,
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

        /// Writes `new` if `words` hold `old`, else says what they hold.
        pub(in super::super) fn cmpxchg(
            words: &[Atomic<u64>; 2],
            old: Both,
            new: Both,
        ) -> Result<(), Both> {
            let [value, meta] = words;
            step();
            let held = Both {
                value: value.cell.load(CoreOrdering::Relaxed),
                meta: meta.cell.load(CoreOrdering::Relaxed),
            };
            if held != old {
                return Err(held);
            }
            value.cell.store(new.value, CoreOrdering::Relaxed);
            meta.cell.store(new.meta, CoreOrdering::Relaxed);
            Ok(())
        }
    }

    /// Pairs where nothing better is known.
    #[cfg(all(not(loom), not(nested), any(miri, not(target_arch = "x86_64"))))]
    pub(super) mod pair_model {
        extern crate std;

        use super::{
            super::Both,
            Acquire,
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
            // ORDERING: see `Pair::load`.
            value.load(Acquire)
        }

        /// Reads the second word.
        pub(in super::super) fn meta(words: &[Atomic<u64>; 2]) -> u64 {
            let _held = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
            let [_, meta] = words;
            // ORDERING: see `Pair::load`.
            meta.load(Acquire)
        }

        /// Writes `new` if `words` hold `old`, else says what they hold.
        pub(in super::super) fn cmpxchg(
            words: &[Atomic<u64>; 2],
            old: Both,
            new: Both,
        ) -> Result<(), Both> {
            let _held = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
            let [value, meta] = words;
            // ORDERING: the lock orders these.
            let held = Both {
                value: value.load(Relaxed),
                meta: meta.load(Relaxed),
            };
            if held != old {
                return Err(held);
            }
            // ORDERING: as above.
            value.store(new.value, Relaxed);
            // ORDERING: as above.
            meta.store(new.meta, Relaxed);
            Ok(())
        }
    }
}
