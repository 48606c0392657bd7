// SPDX-License-Identifier: MIT OR Apache-2.0

//! Pictures in files: SVG, and HTML with SVG in it.

use std::ops::Range;

use crate::grid::{Fold, Slot};
use crate::model::{Kind, Number, Unit};
use crate::units::{self, Round};

pub mod flame;
pub mod html;
pub mod svg;

/// The most marks with numbers on an axis.
const MARKS: usize = 12;

/// An axis for the numbers of a column of intervals. Each interval has a width of 1, so the axis is logarithmic for
/// `.log2` and linear for `.buckets`.
#[derive(Debug, Clone, Copy)]
pub struct Axis {
    kind: Kind,
    unit: Option<Unit>,
}

impl Axis {
    /// Returns the axis for intervals of this kind and unit.
    pub fn new(kind: Kind, unit: Option<Unit>) -> Self {
        Self { kind, unit }
    }

    /// Returns the range of an interval on the axis.
    pub fn slot(self, slot: Slot) -> Range<f64> {
        let end = slot.place as f64;
        end - 1.0..end
    }

    /// Returns the range, on the axis, of one of the wider intervals made by `fold`.
    pub fn folded(self, fold: &Fold, place: usize) -> Range<f64> {
        let (first, last) = fold.range(place);
        first as f64 - 1.0..last as f64
    }

    /// Returns the position of a number on the axis.
    fn at(self, number: Number) -> f64 {
        match self.kind {
            Kind::Buckets { width } => (number as f64 + 1.0) / width as f64 - 1.0,
            Kind::Log2 { scale } => {
                let log = |n: Number| (n as f64).log2() * f64::from(1u32 << scale.min(31));
                match number {
                    1.. => log(number),
                    0 => -1.5,
                    _ => -3.0 - log(-number),
                }
            }
            _ => number as f64,
        }
    }

    /// Returns the marks in a part of the axis: their positions and texts.
    pub fn marks(self, part: &Range<f64>) -> Vec<(f64, String)> {
        let inside = |numbers: Vec<Number>| -> Vec<(f64, Number)> {
            let places = numbers.into_iter().map(|number| (self.at(number), number));
            places
                .filter(|(at, _)| part.contains(at) || *at == part.end)
                .collect()
        };
        let candidates = match self.kind {
            Kind::Log2 { .. } => round_numbers(self.unit),
            _ => Vec::new(),
        };
        let marks = candidates
            .into_iter()
            .map(inside)
            .find(|marks| marks.len() <= MARKS);
        let marks = match marks {
            Some(marks) if marks.len() >= 3 => marks,
            _ => inside(self.even_numbers(part)),
        };
        marks
            .into_iter()
            .map(|(at, number)| (at, mark(number, self.unit)))
            .collect()
    }

    /// Returns equally spaced numbers in a part of the axis.
    fn even_numbers(self, part: &Range<f64>) -> Vec<Number> {
        let number = |at: f64| match self.kind {
            Kind::Buckets { width } => (at + 1.0) * width as f64 - 1.0,
            Kind::Log2 { scale } if at >= 0.0 => (at / f64::from(1u32 << scale.min(31))).exp2(),
            Kind::Log2 { scale } if at < -3.0 => {
                -((-3.0 - at) / f64::from(1u32 << scale.min(31))).exp2()
            }
            Kind::Log2 { .. } => 0.0,
            _ => at,
        };
        let (first, last) = (
            number(part.start).ceil() as Number,
            number(part.end).floor() as Number,
        );
        let fits = |step: &Number| (last - first) / step <= MARKS as Number / 2;
        let steps = (0..30).flat_map(|zeros| [1, 2, 5].map(|digit| digit * Number::pow(10, zeros)));
        let step = steps.into_iter().find(fits).unwrap_or(Number::MAX);
        let from = -(-first).div_euclid(step);
        (from..=last.div_euclid(step))
            .map(|times| times * step)
            .collect()
    }
}

/// Returns numbers for the marks of a logarithmic axis: many, fewer, and few.
fn round_numbers(unit: Option<Unit>) -> Vec<Vec<Number>> {
    let powers = |base: Number, count: u32| (0..count).map(move |power| base.pow(power));
    let sides = |numbers: Vec<Number>| {
        let negative = numbers.iter().rev().map(|n| -n).collect::<Vec<_>>();
        [negative, vec![0], numbers].concat()
    };
    let numbers: Vec<Vec<Number>> = match unit {
        Some(Unit::Bytes) => vec![
            powers(2, 65).collect(),
            powers(4, 33).collect(),
            powers(32, 13).collect(),
        ],
        _ => vec![
            powers(10, 20)
                .flat_map(|ten| [ten, 2 * ten, 5 * ten])
                .collect(),
            powers(10, 20).collect(),
            powers(1000, 7).collect(),
        ],
    };
    numbers.into_iter().map(sides).collect()
}

/// Returns the text of a mark, without trailing zeros.
fn mark(number: Number, unit: Option<Unit>) -> String {
    let text = units::value(number, unit, Round::Up);
    match text.split_once('.') {
        Some((whole, rest)) => {
            let name = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            let part = rest[..rest.len() - name.len()].trim_end_matches('0');
            let point = if part.is_empty() { "" } else { "." };
            format!("{whole}{point}{part}{name}")
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Bucket;

    fn said(axis: Axis, part: Range<f64>) -> Vec<String> {
        axis.marks(&part)
            .into_iter()
            .map(|(_, text)| text)
            .collect()
    }

    #[test]
    fn marks_are_round_numbers() {
        let ns = Axis::new(Kind::Log2 { scale: 3 }, Some(Unit::Ns));
        assert_eq!(
            said(ns, 52.9..107.0),
            ["100ns", "200ns", "500ns", "1us", "2us", "5us", "10us"]
        );
        assert_eq!(said(ns, 0.0..240.0).first().unwrap(), "1ns");
        assert_eq!(said(ns, 0.0..240.0).last().unwrap(), "1s");
        assert!(said(ns, -30.0..30.0).contains(&"0ns".to_owned()));
        let bytes = Axis::new(Kind::Log2 { scale: 0 }, Some(Unit::Bytes));
        assert_eq!(
            said(bytes, 9.0..13.0),
            ["512B", "1KiB", "2KiB", "4KiB", "8KiB"]
        );
        let linear = Axis::new(Kind::Buckets { width: 10 }, None);
        assert_eq!(said(linear, -1.0..9.0), ["0", "20", "40", "60", "80"]);
    }

    #[test]
    fn every_part_has_marks() {
        for scale in 0..7 {
            let axis = Axis::new(Kind::Log2 { scale }, Some(Unit::Ns));
            for end in 1..=64 << scale {
                for width in [1, 5, 64 << scale] {
                    let marks = axis.marks(&(f64::from(end - width)..f64::from(end)));
                    assert!(marks.len() <= MARKS + 1, "{scale} {end} {width}: {marks:?}");
                }
            }
        }
    }

    #[test]
    fn an_interval_is_where_its_numbers_are() {
        let axis = Axis::new(Kind::Log2 { scale: 3 }, None);
        let bucket = Bucket { lo: 1449, hi: 1579 };
        let range = axis.slot(Slot { place: 85, bucket });
        for number in [1449, 1579] {
            assert!(range.contains(&axis.at(number)));
        }
    }
}
