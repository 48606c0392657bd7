// SPDX-License-Identifier: GPL-2.0

//! The filter of a trigger: the conditions after `if`, compiled to tests of a record.
//!
//! C counterpart: `struct event_filter`, `create_event_filter()` and `filter_match_preds()` of
//! [`kernel/trace/trace_events_filter.c`](srctree/kernel/trace/trace_events_filter.c).
//!
//! A filter is a list of tests. Each has the place of the next test for either result, always further on: a hit goes
//! through the list once, without recursion. `program/filter/parse.rs` makes the list from the text, with C's grammar,
//! errors and carets; `program/filter/text.rs` compares strings.
//!
//! Beyond C, conditions may name the numbers of the task (`common_tgid`, `common_cgroup`, `common_uid`, `common_node`)
//! and its name (`common_comm`). A field of the event with such a name takes precedence.
//!
//! Context: compiling: process, may sleep. Testing: any, NMI included; never allocates, sleeps, locks or panics.

mod parse;
mod text;

use crate::{
    alloc::{
        AllocError,
        Vec, //
    },
    error::{
        Errno,
        FilterErr, //
    },
    field::{
        FieldDesc,
        TaskNumber, //
    },
    limits::COMM_LEN,
    sync::load_8, //
};

use super::{
    bytes::{
        located,
        located_behind,
        text_word,
        u64_at,
        word_in, //
    },
    exec::place_of,
    types::{
        part,
        Op, //
    }, //
};

use self::text::How;

/// The look-ups of a filter's compiler: fields of the event, numbers of the task, and functions and CPUs of the kernel.
///
/// Context: process, may sleep.
pub trait Subject {
    /// Returns the field `name`, as [`Resolver::field`](super::Resolver::field) does.
    fn field(&self, name: &[u8]) -> Option<FieldDesc<'_>>;

    /// Returns whether a hit can compute this number of the task.
    fn has(&self, number: TaskNumber) -> bool;

    /// Returns the address and the size in bytes of a function of the kernel; `None` if there is no such function.
    fn function(&self, of: Function<'_>) -> Option<(u64, u64)>;

    /// Returns the set of CPUs for a list such as `0-3,8`, or `all`, as words whose lowest bit is the first CPU; `None`
    /// if `list` is no such list.
    ///
    /// # Errors
    ///
    /// [`AllocError`] if there is no memory.
    fn cpu_list(&self, list: &[u8]) -> Result<Option<Vec<u64>>, AllocError>;
}

/// A function of the kernel, as the text of a filter names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function<'t> {
    /// By its name.
    Name(&'t [u8]),
    /// By an address inside the function.
    Address(u64),
}

/// The context of a hit, for tests that need more than the record. Cheap to copy, like a few words.
///
/// Context: any, NMI included, with preemption off: an implementation takes no lock, does not sleep and does not allocate.
pub trait Surroundings: Copy {
    /// Returns the current CPU.
    fn cpu(&self) -> u32;

    /// Returns a number of the current task.
    fn task(&self, which: TaskNumber) -> u64;

    /// Writes the current task's name to `out`. A NUL ends a name that is shorter than `out`.
    fn comm(&self, out: &mut [u8; COMM_LEN]);

    /// Returns the result of `test` for the string at a kernel address, or at an address of the current task if
    /// `is_of_user`. `test` gets the bytes up to and including the NUL, at most 1024. Returns false if the string
    /// cannot be read.
    fn test_string(&self, address: u64, is_of_user: bool, test: impl FnOnce(&[u8]) -> bool)
        -> bool;
}

/// A compiled filter.
#[derive(Debug, Default)]
pub struct Filter {
    steps: Vec<FilterStep>,
    texts: Vec<Text>,
    /// The bytes of all patterns.
    patterns: Vec<u8>,
    /// The words of all sets of CPUs.
    cpus: Vec<u64>,
}

/// The operands that a filter's tests read besides bytes at fixed places of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// No operands but bytes at fixed places of a record.
    Bytes,
    /// The beginnings of strings at any place of the record, and the number of the CPU.
    Places,
    /// Numbers of the task.
    Task,
    /// Anything else, or both of [`Effort::Places`] and [`Effort::Task`].
    All,
}

/// A test, and the steps to go on with if it is false and if it is true: a later step, [`ACCEPT`] or [`REFUSE`].
#[derive(Clone, Copy, Debug)]
struct FilterStep {
    test: Test,
    next: [u16; 2],
}

const ACCEPT: u16 = u16::MAX;
const REFUSE: u16 = ACCEPT - 1;

/// A range of [`Filter::patterns`] or [`Filter::cpus`]: index of the first item, and number of items.
type ItemRange = (u16, u16);

/// A condition on a record. Offsets are bytes in the record.
#[derive(Clone, Copy, Debug)]
enum Test {
    Never,
    /// `Range(word, first, mask, span)`: true if `(word - first) & mask <= span`. So numbers of any size and sign,
    /// bits, and bytes of strings are compared.
    Range(Word, u64, u64, u64),
    /// True if the number in the masked bits of the word is a CPU of the set.
    Cpu(Word, u64, ItemRange),
    /// A comparison of strings, one of [`Filter::texts`].
    Text(u16),
    /// True if the mask of CPUs that the word at this offset locates equals the set.
    SameCpus(u32, ItemRange),
    /// True if the mask of CPUs that the word at this offset locates has a CPU in common with the set.
    AnyCpu(u32, ItemRange),
}

/// The eight bytes or the number that a test compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    /// Eight bytes of the record at this offset.
    At(u32),
    /// The first bytes of a string, padded with zeros. The word at this offset has the string's place and length; if
    /// true, the place is relative to the end of that word (`__rel_loc`).
    Located(bool, u32),
    Cpu,
    Task(TaskNumber),
    /// The first bytes of the name of the task.
    Comm,
}

/// A comparison of a string.
#[derive(Clone, Copy, Debug)]
struct Text {
    string: Str,
    how: How,
    pattern: ItemRange,
    /// Whether the condition is true if the string does not match. If the string cannot be read, the condition is
    /// false.
    is_not: bool,
}

/// The place of a string that a condition compares.
#[derive(Clone, Copy, Debug)]
enum Str {
    /// A string field of the record.
    In(Op),
    /// The bytes of the record from this offset on, up to a NUL: an array without a size, as in `ftrace:print`.
    ///
    /// PARITY: C finds neither an end nor a glob in such an array.
    Rest { offset: u32 },
    /// At the address that the record has at this offset: a kernel address, or one of the task.
    At { offset: u32, is_of_user: bool },
    /// The name of the task, with all bytes of the kernel's array.
    Comm,
    /// The name of the task, up to its first NUL.
    CommonComm,
}

/// Why a filter is refused: an errno for the writer, and an entry of `error_log`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterRefusal {
    /// The errno.
    pub errno: Errno,
    /// The message.
    pub kind: FilterErr,
    /// Column of the caret in the filter's text.
    pub at: usize,
}

impl From<AllocError> for FilterRefusal {
    fn from(_: AllocError) -> Self {
        Self {
            errno: Errno::Enomem,
            kind: FilterErr::Errno,
            at: 0,
        }
    }
}

impl Filter {
    /// Compiles the filter's text, which follows `if`.
    ///
    /// Context: process, may sleep.
    ///
    /// # Errors
    ///
    /// A [`FilterRefusal`] that says what is wrong with the text, and in which column.
    ///
    /// # Examples
    ///
    /// ```
    /// use rust_hist::{
    ///     alloc::{AllocError, Vec},
    ///     error::FilterErr,
    ///     field::{FieldDesc, TaskNumber},
    ///     program::filter::{Filter, Function, Subject},
    /// };
    ///
    /// struct NoEvent;
    ///
    /// impl Subject for NoEvent {
    ///     fn field(&self, _name: &[u8]) -> Option<FieldDesc<'_>> {
    ///         None
    ///     }
    ///     fn has(&self, _number: TaskNumber) -> bool {
    ///         true
    ///     }
    ///     fn function(&self, _of: Function<'_>) -> Option<(u64, u64)> {
    ///         None
    ///     }
    ///     fn cpu_list(&self, _list: &[u8]) -> Result<Option<Vec<u64>>, AllocError> {
    ///         Ok(None)
    ///     }
    /// }
    ///
    /// assert!(Filter::compile(b"common_tgid == 17", &NoEvent).is_ok());
    /// let refusal = Filter::compile(b"latency > 17", &NoEvent).unwrap_err();
    /// assert_eq!(refusal.kind, FilterErr::FieldNotFound);
    /// ```
    pub fn compile(text: &[u8], subject: &impl Subject) -> Result<Self, FilterRefusal> {
        parse::compile(text, subject)
    }

    /// Returns whether the record meets the conditions.
    ///
    /// Context: any, NMI included, with preemption off.
    pub fn accepts(&self, around: impl Surroundings, record: &[u8]) -> bool {
        self.run(|test| {
            Some(match test {
                Test::Range(word, first, mask, span) => {
                    is_in_range(word.bytes(around, record), first, mask, span)
                }
                _ => self.rest(test, around, record),
            })
        })
        .unwrap_or(false)
    }

    /// Returns the result of [`Filter::accepts`]; `None` if a test needs more than [`Effort::Bytes`] and, if the
    /// parameter is true, [`Effort::Places`] or [`Effort::Task`].
    // The kinds were chosen by measurement: with one more kind, each instance has to save registers.
    #[inline(always)]
    pub fn quick<const PLACES: bool, const TASK: bool>(
        &self,
        around: impl Surroundings,
        record: &[u8],
    ) -> Option<bool> {
        self.run(
            #[inline(always)]
            |test| {
                let Test::Range(word, first, mask, span) = test else {
                    return None;
                };
                let word = match word {
                    Word::At(at) => eight_bytes(record, *at)?,
                    Word::Located(is_relative, at) if const { PLACES } => {
                        located_bytes(record, *is_relative, *at)?
                    }
                    Word::Cpu if const { PLACES } => around.cpu().into(),
                    Word::Task(which) if const { TASK } => around.task(*which),
                    _ => return None,
                };

                Some(is_in_range(word, first, mask, span))
            },
        )
    }

    /// Returns the effort of testing records, provided that each record has the length of its event.
    pub fn effort(&self) -> Effort {
        let efforts = self.steps.iter().map(|step| match step.test {
            Test::Range(Word::At(_), ..) => Effort::Bytes,
            Test::Range(Word::Located(..) | Word::Cpu, ..) => Effort::Places,
            Test::Range(Word::Task(_), ..) => Effort::Task,
            _ => Effort::All,
        });

        efforts.fold(Effort::Bytes, |all, one| match (all, one) {
            (Effort::Bytes, other) | (other, Effort::Bytes) => other,
            (all, one) if all == one => all,
            _ => Effort::All,
        })
    }

    #[inline]
    fn run(&self, holds: impl Fn(&Test) -> Option<bool>) -> Option<bool> {
        let mut at = 0;

        // Ends, as each step leads to a later one.
        while let Some(step) = self.steps.get(usize::from(at)) {
            at = match holds(&step.test)? {
                true => step.next[1],
                false => step.next[0],
            };
        }
        Some(at == ACCEPT)
    }

    /// Returns the result of a test that is not a [`Test::Range`].
    #[inline(never)]
    fn rest(&self, test: &Test, around: impl Surroundings, record: &[u8]) -> bool {
        match *test {
            // `accepts()` evaluates a `Range` itself.
            Test::Never | Test::Range(..) => false,
            Test::Cpu(word, mask, set) => {
                let number = word.bytes(around, record) & mask;

                // OVERFLOW: the mask is not 0, so the shift is below 64.
                has_cpu(self.set(set), number.wrapping_shr(mask.trailing_zeros()))
            }
            Test::Text(n) => self
                .texts
                .get(usize::from(n))
                .is_some_and(|text| self.text_holds(text, around, record)),
            Test::SameCpus(at, set) => {
                words_of(record, at, self.set(set)).all(|(word, wanted)| word == wanted)
            }
            Test::AnyCpu(at, set) => {
                words_of(record, at, self.set(set)).any(|(word, wanted)| word & wanted != 0)
            }
        }
    }

    fn set(&self, set: ItemRange) -> &[u64] {
        part(&self.cpus, set.0, set.1)
    }

    #[inline(never)]
    fn text_holds(&self, text: &Text, around: impl Surroundings, record: &[u8]) -> bool {
        let pattern = part(&self.patterns, text.pattern.0, text.pattern.1);
        let test = |string: &[u8]| text.how.matches(string, pattern) != text.is_not;
        let mut comm = [0; COMM_LEN];

        match text.string {
            Str::In(op) => test(bytes_of(op, record)),
            // CAST: tracing needs 32-bit pointers at least.
            Str::Rest { offset } => {
                test(text::with_nul(record.get(offset as usize..).unwrap_or(&[])))
            }
            Str::At { offset, is_of_user } => {
                // CAST: tracing needs 32-bit pointers at least.
                around.test_string(u64_at(record, offset as usize), is_of_user, test)
            }
            Str::Comm => {
                around.comm(&mut comm);
                test(&comm)
            }
            Str::CommonComm => {
                around.comm(&mut comm);
                test(text::with_nul(&comm))
            }
        }
    }
}

/// Evaluates a [`Test::Range`]. The operands are references, so that they stay in memory until the word is computed:
/// otherwise they would take registers that need a stack frame.
#[inline]
fn is_in_range(word: u64, first: &u64, mask: &u64, span: &u64) -> bool {
    word.wrapping_sub(*first) & *mask <= *span
}

/// Returns the eight bytes at `at`; `None` unless the record has all of them.
#[inline]
fn eight_bytes(record: &[u8], at: u32) -> Option<u64> {
    // CAST: tracing needs 32-bit pointers at least.
    load_8(record, at as usize)
}

/// Returns the bytes of a [`Word::Located`]; `None` unless the record has eight bytes from the string's start on.
#[inline]
fn located_bytes(record: &[u8], is_relative: bool, at: u32) -> Option<u64> {
    let (from, len) = place(is_relative, record, at);

    Some(load_8(record, from)? & low_bytes(len))
}

impl Word {
    /// Returns the bytes or the number of this word, with zeros for bytes outside of the record.
    #[inline(always)]
    fn bytes(self, around: impl Surroundings, record: &[u8]) -> u64 {
        match self {
            Self::At(at) => text_word(record, at),
            Self::Located(is_relative, at) => {
                let (from, len) = place(is_relative, record, at);

                // CAST: an offset of 16 bits, perhaps from one of 32 bits.
                text_word(record, from as u32) & low_bytes(len)
            }
            Self::Cpu => around.cpu().into(),
            Self::Task(which) => around.task(which),
            Self::Comm => {
                let mut comm = [0; COMM_LEN];

                around.comm(&mut comm);
                word_in(&comm)
            }
        }
    }
}

/// Returns whether the set contains the CPU with this number.
fn has_cpu(set: &[u64], number: u64) -> bool {
    // CAST: C compares 32 bits of the number, too.
    let cpu = number as u32;
    // CAST: tracing needs 32-bit pointers at least.
    let word = set.get((cpu / u64::BITS) as usize);

    word.is_some_and(|word| word >> (cpu % u64::BITS) & 1 != 0)
}

/// Returns a mask of the first `len` bytes in memory, at most all eight.
#[inline]
fn low_bytes(len: usize) -> u64 {
    match len {
        // OVERFLOW: at most 7 times 8.
        0..8 => u64::from_le((1u64 << (len * 8)) - 1),
        _ => u64::MAX,
    }
}

/// Returns the place and the length of a string or mask that the word at `at` locates.
#[inline(always)]
fn place(is_relative: bool, record: &[u8], at: u32) -> (usize, usize) {
    // CAST: tracing needs 32-bit pointers at least.
    match is_relative {
        false => located(record, at as usize),
        true => located_behind(record, at as usize),
    }
}

/// Returns the bytes of a string of the record, without those beyond the record's end.
fn bytes_of(op: Op, record: &[u8]) -> &[u8] {
    let (at, len) = place_of(op, record).unwrap_or((0, 0));
    let from = record.get(at..).unwrap_or(&[]);

    from.get(..len).unwrap_or(from)
}

/// Returns the words of the record's mask of CPUs, located by the word at `at`, each with the word of `set` to compare.
/// `set` has the length of the kernel's masks. Bytes outside of the record are 0.
fn words_of<'a>(
    record: &'a [u8],
    at: u32,
    set: &'a [u64],
) -> impl Iterator<Item = (u64, u64)> + 'a {
    // CAST: tracing needs 32-bit pointers at least.
    let (from, _) = located(record, at as usize);

    let mut at = from;

    set.iter().map(move |&wanted| {
        let word = u64_at(record, at);

        at = at.saturating_add(size_of::<u64>());
        (word, wanted)
    })
}
