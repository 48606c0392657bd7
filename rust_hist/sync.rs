// SPDX-License-Identifier: GPL-2.0

//! Atomic words for the pure rooms: one API, three implementations.
//!
//! C counterpart: [`include/linux/atomic.h`](srctree/include/linux/atomic.h).
//! The names are those of `kernel::sync::atomic`, which is what a module is built with. On the
//! host the same API stands on `core`, and under `--cfg loom` on the model checker. No other pure
//! file names the `kernel` crate.
//!
//! Context: any, NMI included.

#![cfg_attr(
    CONFIG_RUST,
    allow(
        unreachable_pub,
        reason = "the root of the module keeps its rooms private"
    )
)]

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

/// Adds `v` to a word that only this CPU writes; a wrapped sum stays exact modulo 2^64.
///
/// Interrupts and NMIs may nest at any point and add to the same word: nothing is lost. Other CPUs
/// may read the word at any time. When two CPUs add to one word at once, additions are lost, which
/// is why the callers decide by `tracing_map::Shape` whether a shard belongs to one CPU.
///
/// On x86_64 this is one `add` to memory without a `lock` prefix. Elsewhere no single instruction
/// does it and the addition is a relaxed atomic one.
#[inline(always)]
pub fn local_add(word: &Atomic<u64>, v: u64) {
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    {
        let ptr: *mut u64 = word.as_ptr();

        // SAFETY: `ptr` comes from a reference to a live `Atomic<u64>`, so it is aligned and valid
        // for a read and a write of 8 bytes. All other accesses to the word are atomic, the store of
        // an aligned quadword is single-copy atomic on this architecture, and an interrupt comes
        // before or after the instruction, never inside.
        unsafe {
            core::arch::asm!(
                "add qword ptr [{ptr}], {v}",
                ptr = in(reg) ptr,
                v = in(reg) v,
                options(nostack),
            );
        }
    }

    #[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
    {
        word.fetch_add(v, Relaxed);
    }
}

/// Adds one to a word that only this CPU writes; see [`local_add`].
#[inline(always)]
pub fn local_inc(word: &Atomic<u64>) {
    #[cfg(all(target_arch = "x86_64", not(loom), not(miri)))]
    {
        let ptr: *mut u64 = word.as_ptr();

        // SAFETY: `ptr` comes from a reference to a live `Atomic<u64>`, so it is aligned and valid
        // for a read and a write of 8 bytes; one instruction, as in `local_add`, no tearing.
        unsafe {
            core::arch::asm!(
                "inc qword ptr [{ptr}]",
                ptr = in(reg) ptr,
                options(nostack),
            );
        }
    }

    #[cfg(not(all(target_arch = "x86_64", not(loom), not(miri))))]
    {
        word.fetch_add(1, Relaxed);
    }
}

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
}
