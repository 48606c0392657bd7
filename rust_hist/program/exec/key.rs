// SPDX-License-Identifier: GPL-2.0

//! The forms in which the key of a hit is computed.
//!
//! C counterpart: `add_to_key()` of [`kernel/trace/trace_events_hist.c`](srctree/kernel/trace/trace_events_hist.c),
//! which copies all key parts and clears the rest.
//!
//! A new form is a type that implements [`KeyForm`], a [`KeyKind`], and a row in `program/paths.rs`.
//!
//! Context: any, NMI included.

use crate::{
    field::Env,
    limits::{
        COMM_LEN,
        C_KEYS_MAX,
        KEY_PARTS_MAX,
        KEY_WORDS_MAX, //
    },
    sync::{
        Atomic,
        Relaxed, //
    },
    tracing_map::{
        add_word,
        long_hash,
        Key,
        KeyHash,
        Sum,
        Whole,
        STEP, //
    }, //
};

use super::{
    super::{
        bytes::{
            u8_at,
            word_in, //
        },
        eval::{
            Inputs,
            NUMBERS,
            OF_RECORD, //
        },
        needs::{
            KeyKind,
            KEY_ANY,
            KEY_EXPRS,
            KEY_PARTS, //
        },
        operand::Operand,
        plan::KeyColumn,
        Op, //
    },
    place_of,
    stack_at,
    text::{
        most_in,
        until_nul,
        TextWords,
        WORD, //
    },
    Context, //
};

/// A form in which keys are computed. Implemented by types without values.
pub trait KeyForm: 'static {
    /// The kind of keys in this form.
    const KIND: KeyKind;

    /// Memory that a computed key may borrow.
    type Room<'r, E: Env + 'r>: Copy + Default;
    /// The computed key.
    type Key<'r>: Key;

    /// Computes the key of a hit: that of its row, or with `LOOKUP` the one for looking up variables of other triggers.
    /// `stamp` is the time stamp if `STEPS` has [`KEY_ANY`], else 0; `refs` are [the numbers of references](Inputs)
    /// known so far; the key may borrow `room`. Also returns how many strings were cut.
    fn key<'r, 'c: 'r, C: Context<'c>, const STEPS: u32, const LOOKUP: bool>(
        cx: C,
        stamp: u64,
        refs: &[u64],
        room: &'r mut Self::Room<'r, C>,
    ) -> (Self::Key<'r>, usize);

    /// Returns all words of the key if they are in one piece, as [`KeyKind::is_whole`] says.
    #[inline]
    fn whole<'a>(_key: &'a Self::Key<'_>) -> Option<&'a [u64]> {
        None
    }
}

/// A key of `N` words, each computed by itself: numbers, and short strings at a fixed place of the record.
pub struct Words<const N: usize>;

impl<const N: usize> KeyForm for Words<N> {
    const KIND: KeyKind = KeyKind::Words(N);

    type Room<'r, E: Env + 'r> = ();
    type Key<'r> = [u64; N];

    #[inline(always)]
    fn key<'r, 'c: 'r, C: Context<'c>, const STEPS: u32, const LOOKUP: bool>(
        cx: C,
        stamp: u64,
        refs: &[u64],
        _room: &'r mut (),
    ) -> ([u64; N], usize) {
        let mut key = [0; N];
        let [first, second, third, fourth, ..] =
            cx.program().key_of::<LOOKUP>().plan.words.places();

        // No loop, so that the words stay in registers.
        if let Some(to) = key.get_mut(0) {
            *to = word_of::<C, STEPS>(first, cx, stamp, refs);
        }
        if let Some(to) = key.get_mut(1) {
            *to = word_of::<C, STEPS>(second, cx, stamp, refs);
        }
        if let Some(to) = key.get_mut(2) {
            *to = word_of::<C, STEPS>(third, cx, stamp, refs);
        }
        if let Some(to) = key.get_mut(3) {
            *to = word_of::<C, STEPS>(fourth, cx, stamp, refs);
        }
        (key, 0)
    }

    #[inline]
    fn whole<'a>(key: &'a [u64; N]) -> Option<&'a [u64]> {
        Some(key)
    }
}

/// A key of more words than [`Words`] has, at most [`KEY_PARTS_MAX`], computed in a loop.
pub struct MoreWords;

impl KeyForm for MoreWords {
    const KIND: KeyKind = KeyKind::MoreWords;

    type Room<'r, E: Env + 'r> = [u64; KEY_PARTS_MAX];
    type Key<'r> = Summed<'r>;

    #[inline(always)]
    fn key<'r, 'c: 'r, C: Context<'c>, const STEPS: u32, const LOOKUP: bool>(
        cx: C,
        stamp: u64,
        refs: &[u64],
        room: &'r mut [u64; KEY_PARTS_MAX],
    ) -> (Summed<'r>, usize) {
        let words = cx.program().key_of::<LOOKUP>().plan.words.as_slice();
        let factors = cx.map().hash().factors();
        let mut sum = Sum::default();

        for ((to, word), factor) in room.iter_mut().zip(words).zip(factors) {
            *to = word_of::<C, STEPS>(word, cx, stamp, refs);
            sum.add(*to, *factor);
        }
        let key = Whole::of_all(room.get(..words.len()).unwrap_or(&[]));

        // INVARIANT: the loop has added each word.
        (Summed { key, sum }, 0)
    }

    #[inline]
    fn whole<'a>(key: &'a Summed<'_>) -> Option<&'a [u64]> {
        Some(key.key.words())
    }
}

/// A long contiguous key whose words were added up while it was computed.
///
/// # Invariants
///
/// `sum` is the sum of all words of the key.
#[derive(Clone, Copy)]
pub struct Summed<'r> {
    key: Whole<'r>,
    sum: Sum,
}

impl Key for Summed<'_> {
    const WORDS: Option<usize> = None;

    #[inline]
    fn hash(&self, hash: impl KeyHash) -> u64 {
        long_hash(hash, self.sum, self.key.trimmed_len())
    }

    #[inline]
    fn is_at(&self, words: &[Atomic<u64>], at: usize) -> bool {
        self.key.is_at(words, at)
    }

    #[inline]
    fn write(&self, to: &[Atomic<u64>]) {
        self.key.write(to);
    }
}

/// Computes a word of a key. The flags [`KEY_PARTS`], [`KEY_EXPRS`] and [`KEY_ANY`] in `STEPS` say which
/// kinds of numbers occur; for other kinds no code is made.
#[inline(always)]
fn word_of<'c, C: Context<'c>, const STEPS: u32>(
    word: &Operand,
    cx: C,
    stamp: u64,
    refs: &[u64],
) -> u64 {
    let plan = &cx.program().plan;
    let inputs = Inputs::new(cx, stamp, refs);
    let cpu = || cx.cpu();
    // Only `KEY_ANY` keys use numbers of references.
    let refs = if const { STEPS & KEY_ANY != 0 } {
        refs
    } else {
        &[]
    };
    let simple = match const { STEPS & KEY_PARTS } {
        0 => word.simple::<false>(inputs.record, cpu, refs),
        _ => word.simple::<true>(inputs.record, cpu, refs),
    };

    match simple {
        Some(value) => value,
        None if const { STEPS & KEY_ANY != 0 } => plan.computed::<NUMBERS>(word, inputs),
        None if const { STEPS & KEY_EXPRS != 0 } => plan.computed::<OF_RECORD>(word, inputs),
        None => {
            debug_assert!(false, "a path of such keys offers what the word is");
            0
        }
    }
}

/// A long key of at most [`C_KEYS_MAX`] columns, each a number, a short string or a string of the record.
///
/// Each column consists of whole words and one last word, followed by zeros: so one loop handles all columns.
pub struct Columns;

/// Memory for the columns of a [`Columns`] key.
#[derive(Clone, Copy)]
pub struct ColumnsRoom<'r> {
    comm: [u8; COMM_LEN],
    segments: [Segment<'r>; C_KEYS_MAX],
}

/// One column of a long key.
#[derive(Clone, Copy)]
struct Segment<'r> {
    /// The number of zero words that fill up the column before this one.
    gap: usize,
    /// The bytes of the whole words; `None` if there are none. Segments that are not used yet are zeros in memory, which
    /// the compiler writes at once.
    whole: Option<&'r [u8]>,
    /// The word after the whole ones: the rest of a string, or a number.
    last: u64,
}

/// A long key as segments.
///
/// # Invariants
///
/// `sum` is the sum of all words of the key, and `end` the index after its last word that is not 0.
#[derive(Clone, Copy)]
pub struct Segments<'r> {
    segments: &'r [Segment<'r>],
    sum: Sum,
    end: usize,
}

impl Default for ColumnsRoom<'_> {
    #[inline]
    fn default() -> Self {
        Self {
            comm: [0; COMM_LEN],
            segments: [Segment {
                gap: 0,
                whole: None,
                last: 0,
            }; C_KEYS_MAX],
        }
    }
}

impl KeyForm for Columns {
    const KIND: KeyKind = KeyKind::Columns;

    type Room<'r, E: Env + 'r> = ColumnsRoom<'r>;
    type Key<'r> = Segments<'r>;

    #[inline(always)]
    fn key<'r, 'c: 'r, C: Context<'c>, const STEPS: u32, const LOOKUP: bool>(
        cx: C,
        stamp: u64,
        refs: &[u64],
        room: &'r mut ColumnsRoom<'r>,
    ) -> (Segments<'r>, usize) {
        let (program, record, mut cuts) = (cx.program(), cx.record(), 0);
        let hash = cx.map().hash();
        let factors = hash.factors();
        let ColumnsRoom { comm, segments } = room;
        let (mut sum, mut end, mut next): (Sum, usize, usize) = (Sum::default(), 0, 0);

        let plan = program.key_of::<LOOKUP>().plan;

        if plan.has_comm {
            cx.comm(comm);
        }
        let comm: &'r [u8; COMM_LEN] = comm;

        for (KeyColumn { key, number }, segment) in plan.columns.iter().zip(segments.iter_mut()) {
            let first = key.first_word();
            let string = string_of(key.field.op, key.words(), record, comm, &mut cuts);
            let TextWords { whole, last, .. } = match string {
                Some(string) => string,
                None => TextWords::of_word(word_of::<C, STEPS>(number, cx, stamp, refs)),
            };
            let (mut at, mut rest) = (first, whole);

            while let Some((word, more)) = rest.split_first_chunk::<WORD>() {
                // Each word of a key has a factor. The test keeps the compiler from handling two words at once, while
                // most strings have one or two.
                let Some(factor) = factors.get(at) else {
                    break;
                };

                end = add_word(&mut sum, end, at, word_in(word), *factor);
                rest = more;
                // OVERFLOW: a word's index in a key is small, here and below.
                at = at.wrapping_add(1);
            }
            if let Some(factor) = factors.get(at) {
                end = add_word(&mut sum, end, at, last, *factor);
            }
            *segment = Segment {
                // OVERFLOW: the columns are in ascending order.
                gap: first.wrapping_sub(next),
                whole: Some(whole),
                last,
            };
            next = at.wrapping_add(1);
        }
        // INVARIANT: all words of the segments were added; the others are 0.
        let key = Segments {
            segments: segments.get(..plan.columns.len()).unwrap_or(&[]),
            sum,
            end,
        };
        (key, cuts)
    }
}

/// Returns the string in a key column of `words` words, up to its NUL: a string of the record or the task's name, which
/// is `comm`. `None` if `op` is no string. Adds to `cuts` if the string is too long.
#[inline(always)]
fn string_of<'r>(
    op: Op,
    words: usize,
    record: &'r [u8],
    comm: &'r [u8; COMM_LEN],
    cuts: &mut usize,
) -> Option<TextWords<'r>> {
    match place_of(op, record) {
        Some((at, len)) => {
            let most = most_in(words);
            let inside = match len <= most {
                true => TextWords::inside(record, at, len),
                false => None,
            };

            Some(inside.unwrap_or_else(|| beginning(record, at, len, most, cuts)))
        }
        None if op == Op::Comm => Some(TextWords::first(comm, until_nul(comm, 0, COMM_LEN).len())),
        None => None,
    }
}

/// Returns the first `most` bytes of a string that may be longer or may end outside the record. Only this writes
/// `cuts`, so that it takes no register elsewhere.
#[cold]
#[inline(never)]
fn beginning<'r>(
    record: &'r [u8],
    at: usize,
    len: usize,
    most: usize,
    cuts: &mut usize,
) -> TextWords<'r> {
    // A string whose only missing byte is its NUL is not cut.
    if len > most && u8_at(record, at.saturating_add(most)) != 0 {
        // OVERFLOW: there are few strings.
        *cuts = cuts.wrapping_add(1);
    }
    TextWords::new(record, at, len.min(most))
}

impl Key for Segments<'_> {
    const WORDS: Option<usize> = None;

    #[inline]
    fn hash(&self, hash: impl KeyHash) -> u64 {
        long_hash(hash, self.sum, self.end)
    }

    #[inline(always)]
    fn is_at(&self, words: &[Atomic<u64>], at: usize) -> bool {
        let Some(mut rest) = words.get(at..) else {
            return false;
        };

        for segment in self.segments {
            if !skip_zeros(&mut rest, segment.gap) {
                return false;
            }
            let whole = segment.whole.unwrap_or(&[]);
            let Some((own, behind)) = rest.split_at_checked(whole.len() / WORD) else {
                return false;
            };
            let mut both = own.iter().zip(whole.chunks_exact(WORD));

            // ORDERING: the slot was read with `Acquire`; the key of its element does not change.
            if !both.all(|(held, word)| held.load(Relaxed) == word_in(word)) {
                return false;
            }
            rest = behind;
            if !skip(&mut rest, segment.last) {
                return false;
            }
        }
        true
    }

    #[inline(always)]
    fn write(&self, to: &[Atomic<u64>]) {
        let mut words = to.iter();
        // ORDERING: the slot that names the element is published with `Release` after this.
        let mut put = |word: u64| {
            if let Some(place) = words.next() {
                place.store(word, Relaxed);
            }
        };

        for segment in self.segments {
            for _ in 0..segment.gap {
                put(0);
            }
            for word in segment.whole.unwrap_or(&[]).chunks_exact(WORD) {
                put(word_in(word));
            }
            put(segment.last);
        }
        for place in words {
            // ORDERING: the slot that names the element is published with `Release` after this.
            place.store(0, Relaxed);
        }
    }
}

/// If the first word of `held` is `wanted`, skips it.
#[inline]
fn skip(held: &mut &[Atomic<u64>], wanted: u64) -> bool {
    match held.split_first() {
        // ORDERING: the slot was read with `Acquire`; the key of its element does not change.
        Some((first, behind)) if first.load(Relaxed) == wanted => {
            *held = behind;
            true
        }
        _ => false,
    }
}

/// If the first `len` words of `held` are 0, skips them.
#[inline(always)]
fn skip_zeros(held: &mut &[Atomic<u64>], len: usize) -> bool {
    let Some((mut zeros, behind)) = held.split_at_checked(len) else {
        return false;
    };

    // A string column mostly has some 30 words to spare.
    while let Some((four, more)) = zeros.split_first_chunk() {
        if !are_zeros(four) {
            return false;
        }
        zeros = more;
    }
    while !zeros.is_empty() {
        if !skip(&mut zeros, 0) {
            return false;
        }
    }
    *held = behind;
    true
}

/// Returns whether all of these words are 0. No loop: a crate that is compiled for size does not unroll it.
#[inline(always)]
fn are_zeros([a, b, c, d]: &[Atomic<u64>; 4]) -> bool {
    // ORDERING: the slot was read with `Acquire`; the key of its element does not change.
    a.load(Relaxed) | b.load(Relaxed) | c.load(Relaxed) | d.load(Relaxed) == 0
}

/// A key that is one stack field of the record, used in place.
pub struct StackField;

/// The frames of a stack field of the record, trailing zeros dropped.
#[derive(Clone, Copy)]
pub struct Frames<'r>(&'r [u8]);

impl KeyForm for StackField {
    const KIND: KeyKind = KeyKind::StackField;

    type Room<'r, E: Env + 'r> = ();
    type Key<'r> = Frames<'r>;

    #[inline(always)]
    fn key<'r, 'c: 'r, C: Context<'c>, const STEPS: u32, const LOOKUP: bool>(
        cx: C,
        _stamp: u64,
        _refs: &[u64],
        _room: &'r mut (),
    ) -> (Frames<'r>, usize) {
        let record = cx.record();
        let mut frames = match cx.program().key_of::<LOOKUP>().keys.first() {
            Some(key) => match key.field.op {
                Op::StackField { offset } => stack_at(record, offset, key.words()),
                _ => &[],
            },
            None => &[],
        };

        while let Some((rest, [0, 0, 0, 0, 0, 0, 0, 0])) = frames.split_last_chunk() {
            frames = rest;
        }
        (Frames(frames), 0)
    }
}

impl Frames<'_> {
    /// Calls `each` for each word and the element at its index in `with`, which has the same length. Goes in steps of
    /// `STEP`, which takes fewer instructions than a plain loop.
    #[inline(always)]
    fn each_with<T>(&self, with: &[T], mut each: impl FnMut(u64, &T)) {
        let (mut steps, mut with) = (self.0.chunks_exact(STEP * WORD), with.chunks_exact(STEP));

        for (step, with) in steps.by_ref().zip(with.by_ref()) {
            for (word, with) in step.chunks_exact(WORD).zip(with) {
                each(word_in(word), with);
            }
        }
        for (word, with) in steps.remainder().chunks_exact(WORD).zip(with.remainder()) {
            each(word_in(word), with);
        }
    }
}

impl Key for Frames<'_> {
    const WORDS: Option<usize> = None;

    #[inline]
    fn hash(&self, hash: impl KeyHash) -> u64 {
        let len = self.0.len() / WORD;
        let mut sum = Sum::default();

        self.each_with(hash.factors().get(..len).unwrap_or(&[]), |word, factor| {
            sum.add(word, *factor)
        });
        long_hash(hash, sum, len)
    }

    #[inline]
    fn is_at(&self, words: &[Atomic<u64>], at: usize) -> bool {
        let mut differ = 0;
        // OVERFLOW: below the number of words.
        let Some(held) = words.get(at..at.wrapping_add(self.0.len() / WORD)) else {
            return false;
        };

        // ORDERING: the slot was read with `Acquire`; the key of its element does not change.
        self.each_with(held, |wanted, held| differ |= held.load(Relaxed) ^ wanted);
        differ == 0
    }

    #[inline]
    fn write(&self, to: &[Atomic<u64>]) {
        let words = self.0.chunks_exact(WORD).map(word_in);

        for (held, word) in to.iter().zip(words.chain(core::iter::repeat(0))) {
            // ORDERING: the slot that names the element is published with `Release` after this.
            held.store(word, Relaxed);
        }
    }
}

/// A key that is the kernel stack, used where it was unwound to.
pub struct Stack;

impl KeyForm for Stack {
    const KIND: KeyKind = KeyKind::Stack;

    type Room<'r, E: Env + 'r> = E::Stack;
    type Key<'r> = Whole<'r>;

    #[inline]
    fn key<'r, 'c: 'r, C: Context<'c>, const STEPS: u32, const LOOKUP: bool>(
        cx: C,
        _stamp: u64,
        _refs: &[u64],
        room: &'r mut C::Stack,
    ) -> (Whole<'r>, usize) {
        (Whole::of_long(cx.stack(room)), 0)
    }
}

/// A key of any kind, copied to one buffer.
pub struct Copied;

/// Words of a key of numbers and the name of the task, or of one with a short string.
const FEW_WORDS: usize = 16;
/// Words of a key with one string of any length and some numbers.
const MORE_WORDS: usize = 48;

/// Room for any key. No more of it is cleared than the key needs.
#[derive(Clone, Copy, Default)]
#[expect(
    clippy::large_enum_variant,
    reason = "it is on the stack of a hit, which cannot allocate"
)]
pub enum CopyRoom {
    /// No room.
    #[default]
    Empty,
    /// Room for [`FEW_WORDS`] words.
    Few([u64; FEW_WORDS]),
    /// Room for [`MORE_WORDS`] words.
    More([u64; MORE_WORDS]),
    /// Room for [`KEY_WORDS_MAX`] words.
    All([u64; KEY_WORDS_MAX]),
}

impl CopyRoom {
    /// Makes room for `len` words, all 0.
    #[inline(always)]
    fn make(&mut self, len: usize) -> &mut [u64] {
        *self = match len {
            0..=FEW_WORDS => Self::Few([0; FEW_WORDS]),
            n if n <= MORE_WORDS => Self::More([0; MORE_WORDS]),
            _ => Self::All([0; KEY_WORDS_MAX]),
        };
        let room: &mut [u64] = match self {
            Self::Empty => &mut [],
            Self::Few(room) => room,
            Self::More(room) => room,
            Self::All(room) => room,
        };

        room.get_mut(..len).unwrap_or(&mut [])
    }
}

impl KeyForm for Copied {
    const KIND: KeyKind = KeyKind::Copied;

    type Room<'r, E: Env + 'r> = CopyRoom;
    type Key<'r> = Whole<'r>;

    #[inline]
    fn key<'r, 'c: 'r, C: Context<'c>, const STEPS: u32, const LOOKUP: bool>(
        cx: C,
        stamp: u64,
        refs: &[u64],
        room: &'r mut CopyRoom,
    ) -> (Whole<'r>, usize) {
        let words = room.make(cx.program().key_of::<LOOKUP>().words);
        let cuts = copy_key::<C, LOOKUP>(cx, stamp, refs, words);

        (Whole::of_all(words), cuts)
    }

    #[inline]
    fn whole<'a>(key: &'a Whole<'_>) -> Option<&'a [u64]> {
        Some(key.words())
    }
}

/// Writes the words of a key to `buf`, which is all 0. Returns how many strings were cut.
///
/// Not inlined: its frame, which has room for a kernel stack, is gone when the rest of the hit runs.
#[inline(never)]
fn copy_key<'c, C: Context<'c>, const LOOKUP: bool>(
    cx: C,
    stamp: u64,
    refs: &[u64],
    buf: &mut [u64],
) -> usize {
    let (program, record, mut cuts) = (cx.program(), cx.record(), 0);
    let plan = program.key_of::<LOOKUP>().plan;

    // Each form of a key gives the same words for a record that ends early.
    for (to, word) in buf.iter_mut().zip(plan.words.as_slice()) {
        *to = word_of::<C, { KEY_ANY | KEY_PARTS }>(word, cx, stamp, refs);
    }
    if !plan.words.as_slice().is_empty() {
        return 0;
    }

    for KeyColumn { key, number } in &*plan.columns {
        let Some(slot) = buf
            .get_mut(key.first_word()..)
            .and_then(|from| from.get_mut(..key.words()))
        else {
            continue;
        };

        match key.field.op {
            Op::Comm | Op::StaticString { .. } | Op::DynString { .. } | Op::RelDynString { .. } => {
                let mut comm = [0; COMM_LEN];

                if key.field.op == Op::Comm {
                    cx.comm(&mut comm);
                }
                if let Some(TextWords { whole, last, .. }) =
                    string_of(key.field.op, key.words(), record, &comm, &mut cuts)
                {
                    let words = whole.chunks_exact(WORD).map(word_in);

                    for (to, word) in slot.iter_mut().zip(words.chain([last])) {
                        *to = word;
                    }
                }
            }
            Op::Stacktrace => {
                let mut room = C::Stack::default();

                for (word, frame) in slot.iter_mut().zip(cx.stack(&mut room)) {
                    *word = *frame;
                }
            }
            Op::StackField { offset } => {
                let frames = stack_at(record, offset, slot.len()).chunks_exact(WORD);

                for (to, frame) in slot.iter_mut().zip(frames) {
                    *to = word_in(frame);
                }
            }
            Op::One
            | Op::Num { .. }
            | Op::Timestamp
            | Op::Cpu
            | Op::EntryComm
            | Op::Const(_)
            | Op::Ref(_)
            | Op::Own(_)
            | Op::Task(_)
            | Op::Expr(_) => {
                if let Some(word) = slot.first_mut() {
                    *word = word_of::<C, KEY_ANY>(number, cx, stamp, refs);
                }
            }
        }
    }
    cuts
}
