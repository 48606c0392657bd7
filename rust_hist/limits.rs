// SPDX-License-Identifier: GPL-2.0

//! The limits of a hist trigger, and a list that respects one.
//!
//! C counterpart: [`kernel/trace/tracing_map.h`](srctree/kernel/trace/tracing_map.h) and the
//! constants of [`include/linux/trace_events.h`](srctree/include/linux/trace_events.h).
//!
//! Context: any.

/// Most key fields of one trigger.
pub const KEYS_MAX: usize = 3;
/// Most sums of one trigger, the raw hitcount included.
pub const SUMS_MAX: usize = 3;
/// Most values of one trigger besides the raw hitcount.
pub const VALS_MAX: usize = SUMS_MAX - 1;
/// Most sort keys of one trigger.
pub const SORT_KEYS_MAX: usize = 2;
/// Most variables one trigger defines.
pub const VARS_MAX: usize = 16;
/// Most variables of other triggers that one trigger reads, its tracked ones included.
pub const REFS_MAX: usize = 16;
/// Most operators of one expression.
pub const OPERATORS_MAX: u32 = 3;
/// Most characters of the text of an expression, as the trigger line shows it.
pub const EXPR_TEXT_MAX: usize = STR_SLOT - 1;
/// Most values of one expression that wait at a time.
pub const STACK_MAX: usize = OPERATORS_MAX as usize + 1;
/// Most handlers with their actions in one trigger.
pub const ACTIONS_MAX: usize = 8;
/// Most parameters of one action (`SYNTH_FIELDS_MAX`).
pub const PARAMS_MAX: usize = 64;
/// Most hits of one CPU one inside the other, of which all but the last are generating an event
/// (`MAX_HIST_CNT`). The ring buffer has room for five records within a record.
pub const NEST_MAX: usize = 4;
/// Rows of a tracked value: one to read, one to write, one for a writer that interrupts.
pub const TRACK_ROWS: usize = 3;

/// log2 of the smallest, the default and the largest map.
pub const BITS_MIN: u32 = 7;
/// log2 of the map's size where the trigger names none.
pub const BITS_DEFAULT: u32 = 11;
/// log2 of the largest map.
pub const BITS_MAX: u32 = 17;

/// Bytes of the slot of a string whose length only the record knows (`MAX_FILTER_STR_VAL`).
pub const STR_SLOT: usize = 256;
/// Frames of a stack in a key (`HIST_STACKTRACE_DEPTH`).
pub const STACK_DEPTH: usize = 31;
/// Most bytes of a whole key: one string and one stack.
pub const KEY_SIZE_MAX: usize = STR_SLOT + STACK_DEPTH * 8;
/// [`KEY_SIZE_MAX`] in 64-bit words.
pub const KEY_WORDS_MAX: usize = KEY_SIZE_MAX / 8;
/// Bytes of a task's name, its NUL included (`TASK_COMM_LEN`).
pub const COMM_LEN: usize = 16;
/// Words of an entry that hold the name of the task that made it.
pub const COMM_WORDS: usize = COMM_LEN / 8;

/// A list of at most `N` items that lives where it stands: no allocation, plain copies.
///
/// # Invariants
///
/// `len <= N`; the items from `len` on are defaults that nobody sees.
#[derive(Clone, Copy, Debug)]
pub struct List<T, const N: usize> {
    items: [T; N],
    len: usize,
}

impl<T: Copy + Default, const N: usize> List<T, N> {
    /// An empty list.
    pub fn new() -> Self {
        // INVARIANT: 0 <= N.
        Self {
            items: [T::default(); N],
            len: 0,
        }
    }

    /// Appends `item`, or gives it back if the list is full.
    pub fn push(&mut self, item: T) -> Result<(), T> {
        match self.items.get_mut(self.len) {
            Some(place) => {
                *place = item;
                // INVARIANT: `len` was the index of an item, so it is below N here.
                self.len = self.len.saturating_add(1);
                Ok(())
            }
            None => Err(item),
        }
    }

    /// All places, those behind the items included.
    #[inline(always)]
    pub fn places(&self) -> &[T; N] {
        &self.items
    }

    /// The items in the order they came.
    #[inline(always)]
    pub fn as_slice(&self) -> &[T] {
        self.items.get(..self.len).unwrap_or(&[])
    }
}

impl<T: Copy + Default, const N: usize> Default for List<T, N> {
    fn default() -> Self {
        Self::new()
    }
}
