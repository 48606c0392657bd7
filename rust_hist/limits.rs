// SPDX-License-Identifier: GPL-2.0

//! The limits of a hist trigger, and a list with a fixed capacity.
//!
//! C counterpart: [`kernel/trace/tracing_map.h`](srctree/kernel/trace/tracing_map.h) and the
//! constants of [`include/linux/trace_events.h`](srctree/include/linux/trace_events.h).
//!
//! Context: any.

/// Most key fields of one trigger. C has room for three.
pub const KEYS_MAX: usize = 8;
/// Most key fields of one trigger in C.
pub const C_KEYS_MAX: usize = 3;
/// Most words of a key that are computed separately, without a loop.
pub const KEY_PARTS_MAX: usize = 8;
/// Most values of one trigger besides the raw hitcount. C has room for two.
pub const VALS_MAX: usize = 8;
/// Most values of one trigger in C.
pub const C_VALS_MAX: usize = 2;
/// Most sums of one trigger in C, the raw hitcount included. A hit adds up to this many without a loop.
pub const C_SUMS_MAX: usize = 1 + C_VALS_MAX;
/// Most words of an entry in the memory of one CPU: the raw hitcount, and all statistics of each value.
pub const SUM_WORDS_MAX: usize = 1 + VALS_MAX * TALLY_WORDS;
/// Most words of statistics of one value: its sum, seven words of its squares, its maximum and its minimum.
pub const TALLY_WORDS: usize = 10;
/// Most sort keys of one trigger.
pub const SORT_KEYS_MAX: usize = 2;
/// Most quantiles of one trigger.
pub const QUANTILES_MAX: usize = 8;
/// Most variables one trigger defines.
pub const VARS_MAX: usize = 16;
/// Most variables of other triggers that one trigger reads, its tracked ones included.
pub const REFS_MAX: usize = 16;
/// The number of [`crate::field::TaskNumber`]s.
pub const TASK_NUMBERS: usize = 4;
/// Most numbers in the list of a hit: the variables of other triggers that it reads, its own, and numbers of the task.
pub const NUMBERS_MAX: usize = REFS_MAX + VARS_MAX + TASK_NUMBERS;
/// Most operators of one expression.
pub const OPERATORS_MAX: u32 = 3;
/// Most characters of the text of an expression, as the trigger line shows it.
pub const EXPR_TEXT_MAX: usize = STR_SLOT - 1;
/// Most handlers with their actions in one trigger.
pub const ACTIONS_MAX: usize = 8;
/// Most parameters of one action (`SYNTH_FIELDS_MAX`).
pub const PARAMS_MAX: usize = 64;
/// Most hits that nest on one CPU, each inside the synthetic event that the one before it generates
/// (`MAX_HIST_CNT`). The ring buffer supports five nested records.
pub const NEST_MAX: usize = 4;
/// Rows of a tracked value: the current one, one that a hit is writing, and one for a hit that interrupts it.
pub const TRACK_ROWS: usize = 3;

/// log2 of the smallest number of entries of a map.
pub const BITS_MIN: u32 = 7;
/// log2 of the number of entries of a map without `size=`.
pub const BITS_DEFAULT: u32 = 11;
/// log2 of the largest number of entries of a map that `size=N` asks for.
pub const BITS_MAX: u32 = 17;
/// log2 of the largest number of entries of a map that may grow.
pub const GROWN_BITS_MAX: u32 = 20;

/// Bytes of the slot of a string without a fixed length (`MAX_FILTER_STR_VAL`).
pub const STR_SLOT: usize = 256;

/// Most CPUs of a mask that is a key: it takes the slot of a string, except for the last word.
pub const CPUMASK_KEY_MAX: u32 = (STR_SLOT as u32 / 8 - 1) * u64::BITS;
/// Frames of a stack in a key (`HIST_STACKTRACE_DEPTH`).
pub const STACK_DEPTH: usize = 31;
/// Most bytes of a whole key: four strings of no fixed length and a number.
pub const KEY_SIZE_MAX: usize = 4 * STR_SLOT + 8;
/// [`KEY_SIZE_MAX`] in 64-bit words.
pub const KEY_WORDS_MAX: usize = KEY_SIZE_MAX / 8;
/// Bytes of a task's name, its NUL included (`TASK_COMM_LEN`).
pub const COMM_LEN: usize = 16;
/// Words of an entry that hold the name of the task that created the entry.
pub const COMM_WORDS: usize = COMM_LEN / 8;

/// A list of at most `N` items in an array: it never allocates and is copied like an array.
///
/// # Invariants
///
/// `len <= N`; the items from `len` on are defaults.
///
/// # Examples
///
/// ```
/// use rust_hist::limits::List;
///
/// let mut list = List::<u32, 2>::new();
/// list.push(1)?;
/// list.push(2)?;
/// assert_eq!(list.push(3), Err(3), "the list is full");
/// assert_eq!(list.as_slice(), [1, 2]);
/// # Ok::<(), u32>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List<T, const N: usize> {
    items: [T; N],
    len: usize,
}

impl<T: Copy + Default, const N: usize> List<T, N> {
    /// Returns an empty list.
    pub fn new() -> Self {
        // INVARIANT: `len` is 0, which is at most `N`, and all items are defaults.
        Self {
            items: [T::default(); N],
            len: 0,
        }
    }

    /// Appends `item`.
    ///
    /// # Errors
    ///
    /// Returns `item` if the list is full.
    pub fn push(&mut self, item: T) -> Result<(), T> {
        match self.items.get_mut(self.len) {
            Some(place) => {
                *place = item;
                // INVARIANT: `len` is an index of the array, so `len + 1 <= N`.
                self.len = self.len.saturating_add(1);
                Ok(())
            }
            None => Err(item),
        }
    }

    /// Returns a mutable reference to item `i`; `None` if there is no such item.
    pub fn get_mut(&mut self, i: usize) -> Option<&mut T> {
        self.items.get_mut(..self.len)?.get_mut(i)
    }

    /// Returns the whole array, including the defaults after the items.
    #[inline]
    pub fn places(&self) -> &[T; N] {
        &self.items
    }

    /// Returns the items in the order in which they were appended.
    #[inline]
    pub fn as_slice(&self) -> &[T] {
        self.items.get(..self.len).unwrap_or(&[])
    }
}

impl<T: Copy + Default, const N: usize> Default for List<T, N> {
    fn default() -> Self {
        Self::new()
    }
}
