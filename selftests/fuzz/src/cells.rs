// SPDX-License-Identifier: GPL-2.0

//! Any sequence of operations on the variables of an element, among them hits that interrupt one
//! another while they save a row or write a string, against plain values.

use rust_hist::{
    limits::TRACK_ROWS,
    sync::Pair,
    tracing_map::{
        NumCell,
        Order,
        Taken,
        TextCell,
        TrackCell,
        Tracked,
        When, //
    },
};

use crate::bytes::Bytes;

const TEXT_WORDS: usize = 3;
const OPS_MAX: usize = 500;

/// What there is, and what it should be.
struct Element<'w> {
    num: NumCell<'w>,
    text: TextCell<'w>,
    track: TrackCell<'w>,
    row_words: usize,
    /// The number; its changes are counted so that it is known whether a taken one may be put back.
    number: Option<u64>,
    changes: u64,
    taken: Option<(Taken, u64)>,
    string: Option<u64>,
    writing: bool,
    tracked: Option<(u64, u64)>,
    /// No number has come since that ends what the last stored one began.
    is_above: bool,
    /// Rows in the hands of hits that were interrupted.
    claimed: usize,
    serial: u64,
    ops: usize,
}

pub(crate) fn run(input: &[u8]) {
    let pairs: [Pair; 8] = std::array::from_fn(|_| Pair::zero());
    let mut input = Bytes(input);
    let words = input.below(3);
    let row_words = usize::from(words);
    let text = &Pair::words(&pairs)[4 + TRACK_ROWS * row_words..];
    let mut element = Element {
        num: NumCell::new(&pairs[0]),
        text: TextCell::new(&text[..1 + TEXT_WORDS]).expect("words"),
        track: TrackCell::new(&pairs, 2, words.into()).expect("words"),
        row_words,
        number: None,
        changes: 0,
        taken: None,
        string: None,
        writing: false,
        tracked: None,
        is_above: false,
        claimed: 0,
        serial: 0,
        ops: 0,
    };

    while !input.is_empty() && element.ops < OPS_MAX {
        element.step(&mut input, 0);
    }
}

impl Element<'_> {
    /// One operation, which another one may interrupt; the `depth` says how often that was so.
    fn step(&mut self, input: &mut Bytes<'_>, depth: u32) {
        let op = input.byte();

        self.ops += 1;
        self.serial += 1;
        match op % 10 {
            0 => {
                self.num.set(self.serial);
                self.number = Some(self.serial);
                self.changes += 1;
            }
            1 => assert_eq!(self.num.read(), self.number),
            2 => {
                let taken = self.num.consume();
                assert_eq!(taken.map(|taken| taken.value), self.number);
                if let Some(taken) = taken {
                    self.number = None;
                    self.changes += 1;
                    self.taken = Some((taken, self.changes));
                }
            }
            3 => {
                if let Some((taken, changes)) = self.taken.take() {
                    self.num.restore(&taken);
                    if changes == self.changes {
                        self.number = Some(taken.value);
                        self.changes += 1;
                    }
                }
            }
            4 | 5 => self.write(input, depth),
            6 => {
                let done = self.text.fill(|_| None);
                assert_eq!(done, !self.writing);
                if done {
                    self.string = None;
                }
            }
            7 => {
                let mut seen = [0; TEXT_WORDS];
                let copied = self.text.copy(TEXT_WORDS, |at, word| seen[at] = word);
                let found = copied.map(|_| seen[0]);
                assert_eq!(found, self.string.filter(|_| !self.writing));
                assert!(matches!(copied, None | Some(TEXT_WORDS)));
                assert!(found.is_none() || seen == [seen[0], !seen[0], seen[0] * 3]);
            }
            _ => self.update(input, op, depth),
        }
        self.look();
    }

    fn write(&mut self, input: &mut Bytes<'_>, depth: u32) {
        let v = self.serial;
        let was_writing = self.writing;
        let text = self.text;

        let done = text.fill(|to| {
            self.writing = true;
            to.put(0, v);
            // An interrupt finds the string half written.
            if depth < 3 {
                self.step(input, depth + 1);
            }
            to.put(1, !v);
            to.put(2, v * 3);
            Some(TEXT_WORDS)
        });
        assert_eq!(done, !was_writing);
        if done {
            self.writing = false;
            self.string = Some(v);
        }
    }

    fn update(&mut self, input: &mut Bytes<'_>, op: u8, depth: u32) {
        let order = Order::UNSIGNED;
        let when = match (op & 0x80 == 0, input.below(2) == 0) {
            (true, true) => When::Larger,
            (true, false) => When::Above {
                limit: 4,
                back: 2,
                order,
            },
            (false, true) => When::Other,
            (false, false) => When::Apart { by: 3, order },
        };
        let value = u64::from(op >> 4 & 7);
        let serial = self.serial;
        let row_words = self.row_words;
        let holds = |tracked: Option<(u64, u64)>, is_above: bool| {
            let old = tracked.map_or(0, |(value, _)| value);
            match when {
                When::Larger => value > old,
                When::Other => value != old,
                When::Apart { by, .. } => tracked.is_none() || value.abs_diff(old) >= by,
                When::Above { limit, .. } => !is_above && value > limit,
            }
        };
        let track = self.track;
        let ends = matches!(when, When::Above { back, .. } if self.is_above && value <= back);

        assert_eq!(track.end(&when, value), ends);
        self.is_above &= !ends;
        let expected = if !holds(self.tracked, self.is_above) {
            Some(Tracked::Same)
        } else if row_words > 0 && self.claimed == TRACK_ROWS - 1 {
            Some(Tracked::Lost)
        } else {
            None
        };

        let ended = track.update(&when, value, |row| {
            self.claimed += 1;
            row.put(0, serial);
            if depth < 4 {
                self.step(input, depth + 1);
            }
            row.put(1, !serial);
            self.claimed -= 1;
        });
        // What interrupted it may have stored more.
        let expected = expected.unwrap_or_else(|| {
            if holds(self.tracked, self.is_above) {
                self.tracked = Some((value, serial));
                self.is_above = true;
                Tracked::Stored
            } else {
                Tracked::Same
            }
        });
        assert_eq!(ended, expected);
    }

    /// The tracked number comes with its row at any time.
    fn look(&self) {
        let mut row = [0; 2];
        let found = self.track.read(&mut row);

        assert_eq!(found, self.tracked.map(|(value, _)| value));
        if let Some((_, serial)) = self.tracked {
            let expected = [serial, !serial];
            assert_eq!(row[..self.row_words], expected[..self.row_words]);
        }
    }
}
