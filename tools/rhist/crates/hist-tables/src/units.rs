// SPDX-License-Identifier: MIT OR Apache-2.0

//! Numbers in a form for people, with three digits and a unit, and the text of keys.

use crate::model::{Agg, Bucket, Key, Number, Unit, ValueColumn, UNKNOWN};

/// The direction in which a shown number is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Round {
    /// The shown number is at most the true one.
    Down,
    /// The shown number is at least the true one.
    Up,
}

/// The unit in which times are shown: a power of 1000 nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Scale {
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

/// Returns the units that a number can be shown in, smallest first: the size in the given unit, and the name.
fn steps(unit: Option<Unit>) -> &'static [(u128, &'static str)] {
    match unit {
        Some(Unit::Ns) => &[
            (1, "ns"),
            (1_000, "us"),
            (1_000_000, "ms"),
            (1_000_000_000, "s"),
        ],
        Some(Unit::Us) => &[(1, "us"), (1_000, "ms"), (1_000_000, "s")],
        Some(Unit::Bytes) => &[
            (1, "B"),
            (1 << 10, "KiB"),
            (1 << 20, "MiB"),
            (1 << 30, "GiB"),
            (1 << 40, "TiB"),
        ],
        None => &[
            (1, ""),
            (1_000, "k"),
            (1_000_000, "M"),
            (1_000_000_000, "G"),
            (1_000_000_000_000, "T"),
        ],
    }
}

/// Returns a number in the unit that suits its size, with three digits.
pub fn value(number: Number, unit: Option<Unit>, round: Round) -> String {
    let steps = steps(unit);
    let fits = |&(step, _): &(u128, &str)| number.unsigned_abs() >= step;
    let place = steps.iter().rposition(fits).unwrap_or(0);
    let (text, shown) = digits(number, steps[place], round);
    // Rounded up, 999.9 us become 1 ms.
    match steps.get(place + 1) {
        Some(&next) if shown >= next.0 => digits(number, next, round).0,
        _ => text,
    }
}

/// Returns the digits of a number in a unit, with the unit's name, and the magnitude that they show.
fn digits(number: Number, (step, name): (u128, &str), round: Round) -> (String, u128) {
    let (sign, round) = match (number < 0, round) {
        (false, _) => ("", round),
        (true, Round::Down) => ("-", Round::Up),
        (true, Round::Up) => ("-", Round::Down),
    };
    let magnitude = number.unsigned_abs();
    let shown = |decimals: u32| {
        let scaled = magnitude.saturating_mul(10u128.pow(decimals));
        match round {
            Round::Down => scaled / step,
            Round::Up => scaled.div_ceil(step),
        }
    };
    let decimals: u32 = match magnitude / step {
        _ if step == 1 => 0,
        0 if shown(3) < 1000 => 3,
        0..10 => 2,
        10..100 => 1,
        _ => 0,
    };
    let (tens, shown) = (10u128.pow(decimals), shown(decimals));
    let whole = count(Number::try_from(shown / tens).unwrap_or(Number::MAX));
    let digits = match decimals {
        0 => whole,
        // Rounded up, 9.999 become 10.
        _ => format!(
            "{whole}.{:0width$}",
            shown % tens,
            width = decimals as usize
        ),
    };
    (
        format!("{sign}{digits}{name}"),
        shown.saturating_mul(step) / tens,
    )
}

/// Returns a number of a table: a time in the wanted unit, a count with all its digits.
pub fn amount(number: Number, unit: Option<Unit>, round: Round, wanted: Option<Scale>) -> String {
    let ns = match unit {
        None => return count(number),
        Some(Unit::Bytes) => None,
        Some(Unit::Ns) => Some(number),
        Some(Unit::Us) => Some(number * 1000),
    };
    match ns.zip(wanted) {
        None => value(number, unit, round),
        Some((ns, wanted)) => digits(ns, steps(Some(Unit::Ns))[wanted as usize], round).0,
    }
}

/// Returns a number of a column of values without its unit, for programs; `None` if it is unknown.
pub fn plain_value(number: Number, agg: Agg) -> Option<String> {
    match number {
        UNKNOWN => None,
        number if agg.has_decimals() => {
            let sign = if number < 0 { "-" } else { "" };
            let magnitude = number.unsigned_abs();
            Some(format!("{sign}{}.{:02}", magnitude / 100, magnitude % 100))
        }
        number => Some(number.to_string()),
    }
}

/// Returns a number of a column of values in the form for tables.
pub fn shown(number: Number, column: &ValueColumn, wanted: Option<Scale>) -> String {
    match number {
        UNKNOWN => "-".to_owned(),
        number if column.agg.has_decimals() => match column.unit {
            Some(_) => amount(number / 100, column.unit, Round::Up, wanted),
            None => {
                let sign = if number < 0 { "-" } else { "" };
                let magnitude = number.abs();
                let whole = count(magnitude / 100);
                format!("{sign}{whole}.{:02}", magnitude % 100)
            }
        },
        number => amount(number, column.unit, Round::Up, wanted),
    }
}

/// Returns an interval as text, with its ends rounded outwards.
pub fn interval(bucket: Bucket, unit: Option<Unit>) -> String {
    let (lo, hi) = (
        value(bucket.lo, unit, Round::Down),
        value(bucket.hi, unit, Round::Up),
    );
    if lo == hi {
        return lo;
    }
    // The unit is written once, as in 1.24-1.35us.
    let number = |text: &str| text.trim_end_matches(|c: char| !c.is_ascii_digit()).len();
    let name = &hi[number(&hi)..];
    let lo = lo
        .strip_suffix(name)
        .filter(|lo| number(lo) == lo.len())
        .unwrap_or(&lo);
    let between = if bucket.lo < 0 { ".." } else { "-" };
    format!("{lo}{between}{hi}")
}

/// Returns all digits of a count, in groups of three.
pub fn count(number: Number) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::from(if number < 0 { "-" } else { "" });
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns the share of a whole in percent, with one decimal.
pub fn percent(part: u64, whole: u64) -> String {
    let tenths = match whole {
        0 => 0,
        _ => (u128::from(part) * 2000 + u128::from(whole)) / (u128::from(whole) * 2),
    };
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// Returns hours, minutes and seconds of a time in nanoseconds of `CLOCK_REALTIME`.
pub fn time_of_day(real: u64) -> String {
    let seconds = real / 1_000_000_000 % 86_400;
    format!(
        "{:02}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// Returns a string of the kernel, whose characters stand for bytes, decoded as UTF-8 and made [`plain`].
pub fn text(bytes: &str) -> String {
    let bytes: Vec<u8> = bytes
        .chars()
        .map(|c| u8::try_from(c).unwrap_or(b'?'))
        .collect();
    plain(&String::from_utf8_lossy(&bytes))
}

/// Returns a text with question marks in place of characters that would command a terminal or are not allowed in XML.
pub fn plain(text: &str) -> String {
    let shown = |c: char| match c {
        '\u{fffe}' | '\u{ffff}' => '?',
        c if c.is_control() => '?',
        c => c,
    };
    text.chars().map(shown).collect()
}

/// Returns a key as one word.
pub fn key(key: &Key, unit: Option<Unit>) -> String {
    match key {
        Key::Number(number) => match unit {
            Some(_) => value(*number, unit, Round::Up),
            None => number.to_string(),
        },
        Key::Text(name) => text(name),
        Key::Symbol { address, name } if name.is_empty() => format!("{address:#x}"),
        // The size of the symbol's function is left out.
        Key::Symbol { name, .. } => match name.split_once('/') {
            Some((start, size)) => {
                let module = size.split_once(' ').map_or("", |(_, module)| module);
                text(format!("{start} {module}").trim_end())
            }
            None => text(name),
        },
        Key::Task { pid, comm } => format!("{} [{pid}]", text(comm)),
        Key::Syscall { number, name } => match name {
            Some(name) => text(name.strip_prefix("sys_").unwrap_or(name)),
            None => number.to_string(),
        },
        Key::Stack(frames) => frames
            .iter()
            .rev()
            .map(|frame| text(function(frame)))
            .collect::<Vec<_>>()
            .join(";"),
        Key::Bucket { bucket, .. } => interval(*bucket, unit),
    }
}

/// Returns the function of a frame, without offset and module: for `vfs_read+0x10/0x200` it is `vfs_read`.
pub fn function(frame: &str) -> &str {
    frame.split(['+', ' ']).next().unwrap_or(frame)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn three_digits_and_a_unit() {
        let ns = |n, round| value(n, Some(Unit::Ns), round);
        assert_eq!(ns(0, Round::Up), "0ns");
        assert_eq!(ns(999, Round::Up), "999ns");
        assert_eq!(ns(1_000, Round::Up), "1.00us");
        assert_eq!(ns(1_234, Round::Down), "1.23us");
        assert_eq!(ns(1_234, Round::Up), "1.24us");
        assert_eq!(ns(-1_234, Round::Up), "-1.23us");
        assert_eq!(ns(999_999, Round::Up), "1.00ms");
        assert_eq!(ns(9_999, Round::Up), "10.00us");
        assert_eq!(ns(12_345_678_901, Round::Down), "12.3s");
        assert_eq!(value(1536, Some(Unit::Bytes), Round::Up), "1.50KiB");
        assert_eq!(value(2_500_000, None, Round::Up), "2.50M");
        assert_eq!(value(u64::MAX.into(), None, Round::Down), "18,446,744T");
    }

    #[test]
    fn tables_have_the_unit_that_is_wanted() {
        let ns = |n, wanted| amount(n, Some(Unit::Ns), Round::Up, wanted);
        assert_eq!(ns(41_700, Some(Scale::Ms)), "0.042ms");
        assert_eq!(ns(-41_700, Some(Scale::Ms)), "-0.041ms");
        assert_eq!(ns(999_999, Some(Scale::Us)), "1,000us");
        assert_eq!(ns(1_234_567_000_000, None), "1,235s");
        assert_eq!(ns(0, Some(Scale::S)), "0.000s");
        assert_eq!(
            amount(250, Some(Unit::Us), Round::Up, Some(Scale::Ns)),
            "250,000ns"
        );
        assert_eq!(amount(250, Some(Unit::Us), Round::Up, None), "250us");
        assert_eq!(
            amount(2048, Some(Unit::Bytes), Round::Up, Some(Scale::Ms)),
            "2.00KiB"
        );
        assert_eq!(amount(-1500, None, Round::Up, None), "-1,500");
    }

    #[test]
    fn intervals_name_their_unit_once() {
        let ns = |lo, hi| interval(Bucket { lo, hi }, Some(Unit::Ns));
        assert_eq!(ns(91, 95), "91-95ns");
        assert_eq!(ns(1167, 1217), "1.16-1.22us");
        assert_eq!(ns(513, 1024), "513ns-1.03us");
        assert_eq!(ns(7, 7), "7ns");
        assert_eq!(ns(-8, -5), "-8..-5ns");
        assert_eq!(interval(Bucket { lo: 1, hi: 3 }, None), "1-3");
    }

    #[test]
    fn keys_are_words() {
        let stack = vec!["a+0x1/0x2".to_owned(), "b+0x3/0x4 [ext4]".to_owned()];
        assert_eq!(key(&Key::Stack(stack), None), "b;a");
        let name = Some("sys_read".to_owned());
        assert_eq!(key(&Key::Syscall { number: 0, name }, None), "read");
        assert_eq!(
            key(&Key::Text("\u{c3}\u{bc}\u{1b}[2J".into()), None),
            "ü?[2J"
        );
        assert_eq!(key(&Key::Number(1500), Some(Unit::Ns)), "1.50us");
        let symbol = |name: &str| {
            let name = name.into();
            key(&Key::Symbol { address: 1, name }, None)
        };
        assert_eq!(symbol("vfs_read+0x10/0x200"), "vfs_read+0x10");
        assert_eq!(symbol("v9fs_open+0x10/0x200 [9p]"), "v9fs_open+0x10 [9p]");
        assert_eq!(symbol("vfs_read"), "vfs_read");
        assert_eq!(symbol(""), "0x1");
    }

    #[test]
    fn counts_and_shares() {
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(-123), "-123");
        assert_eq!(percent(1, 3), "33.3 %");
        assert_eq!(percent(2, 3), "66.7 %");
        assert_eq!(percent(5, 0), "0.0 %");
        assert_eq!(percent(u64::MAX, u64::MAX), "100.0 %");
    }

    proptest! {
        #[test]
        fn any_number_has_a_text(number in any::<u64>(), up in any::<bool>()) {
            let round = if up { Round::Up } else { Round::Down };
            for unit in [None, Some(Unit::Ns), Some(Unit::Us), Some(Unit::Bytes)] {
                prop_assert!(value(number.into(), unit, round).len() <= 20);
                prop_assert!(value(-Number::from(number), unit, round).starts_with('-') || number == 0);
            }
        }
    }
}
